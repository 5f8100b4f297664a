"""One spelling for the names that budgets hang on: unit spaces, tables, analysts.

Two names that people take for one must not be two budgets. So the name of a unit space has one normal form: Unicode's
NFKC, case-folded, blanks at the ends dropped and those within made one space. Characters that cannot be seen are
refused, and so are letters of two alphabets that look alike within one name (Unicode Technical Standard 39, "mixed
script").
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

from hubbub.errors import PolicyError

__all__ = ["one_spelling", "space_name", "table_name"]

# Unicode's Default_Ignorable_Code_Point (DerivedCoreProperties), and the blanks that are letters or symbols.
_UNSEEN: Final = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
_ALIKE: Final = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE", "COPTIC")


@lru_cache(maxsize=4096)
def one_spelling(name: str) -> str:
    """The form under which names are compared; whatever cannot be seen left out.

    >>> one_spelling(" Pid\\u200b") == one_spelling("pid")
    True
    """
    seen = "".join(character for character in name if not _is_unseen(character))
    for _ in range(2):  # case folding may undo the normal form
        seen = unicodedata.normalize("NFKC", seen).casefold()
    return " ".join(unicodedata.normalize("NFKC", seen).split())


def space_name(name: str, what: str = "unit_space") -> str:
    """The name of a unit space in its one form.

    Raises PolicyError for a name with characters that cannot be seen, or with letters of alphabets that look alike.

    >>> space_name(" Patient  ID ")
    'patient id'
    """
    _check(name, what)
    name_there = one_spelling(name)
    if not name_there:
        raise PolicyError(f"{what}={name!r} names nothing. Write a name such as 'patient_id'.")
    return name_there


def table_name(name: str) -> str:
    """The name of a table as it was written: SQL and the limits of tables go by it.

    Raises PolicyError as `space_name`, and for a name that Unicode's NFC writes otherwise.
    """
    _check(name, "table")
    if unicodedata.normalize("NFC", name) != name or name != name.strip():
        raise PolicyError(
            f"table {name!a}: the same name has another spelling, {unicodedata.normalize('NFC', name.strip())!a}"
            ". Write that one, so that it is one table with one limit."
        )
    return name


def _check(name: str, what: str) -> None:
    unseen = next((character for character in name if _is_unseen(character)), None)
    if unseen is not None:
        raise PolicyError(
            f"{what}={name!a} holds a character that cannot be seen (U+{ord(unseen):04X}), so it looks like another "
            "name. Leave it out."
        )
    scripts = {unicodedata.name(c, "").partition(" ")[0] for c in unicodedata.normalize("NFKC", name) if c.isalpha()}
    mixed = [script.capitalize() for script in _ALIKE if script in scripts]
    if len(mixed) > 1:
        raise PolicyError(
            f"{what}={name!a} mixes letters of {' and '.join(mixed)} that look alike. Write it in one alphabet."
        )


def _is_unseen(character: str) -> bool:
    code = ord(character)
    return any(low <= code <= high for low, high in _UNSEEN) or unicodedata.category(character) in ("Cc", "Cf", "Co")
