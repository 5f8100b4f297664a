"""One spelling for the names that budgets hang on: unit spaces, tables, analysts.

Two names that people take for one must not be two budgets. So the name of a unit space has one normal form: Unicode's
NFKC, case-folded, blanks at the ends dropped and those within made one space. Characters that cannot be seen are
refused, and so are letters of two alphabets that look alike within one name (Unicode Technical Standard 39, "mixed
script").

`meant_by` reads a name that is not known as the one known name that it is a slip of the pen away from.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from hubbub.errors import PolicyError

__all__ = ["meant_by", "one_letter_apart", "one_spelling", "space_name", "table_name"]

# Unicode's Default_Ignorable_Code_Point (DerivedCoreProperties), and the blanks that are letters or symbols.
_UNSEEN: Final = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
_BETWEEN: Final = re.compile(r"(?<=\w)[\s_-]+(?=\w)")
_NUMBER: Final = re.compile(r"\d+")
_ROMAN: Final = re.compile("[ivxlcdm]+")
_OWN: Final = frozenset(
    "abduction adduction adverse averse affluent angel angle breadth breath casual causal choose chose coma comma "
    "complement compliment contact contract country county dairy dependant dependent desert dessert diary discreet "
    "discrete effluent expand expend heart heat hearth hoping hopping later latter loose lose marital martial moral "
    "morale patent patents patient patients perineal peroneal personal personnel planed planned planet plant quiet "
    "quite reserve reverse sever severe server signed singed silver sliver staring starring starting stationary "
    "stationery statue statute super supper thorough though through trail trails trial trials unite untie united "
    "untied".split()
)
"""Words of which one is a slip away from another, and each is as likely a name."""
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


def meant_by(name: str, known: Iterable[str]) -> str | None:
    """The known name that somebody meant who wrote another one; None where that is not plain, or where two are as near.

    Names are the same in all but case and what stands between words, or one slip apart in one word. A slip is a letter
    twice that stands once, or the other way round; an s at the end, more or less; in words of four letters two that are
    exchanged, in words of five one more or less, and in words of seven one for another, but not the first or the last:
    `stage` is not `state`, nor `employer` `employee`. Digits, Roman ones too, and signs are never slips, nor is a word
    that is one by itself: `contact` is not `contract`.

    >>> meant_by("wrads", ["wards", "age"]), meant_by("Patient ID", ["patient_id"]), meant_by("totl", ["total"])
    ('wards', 'patient_id', 'total')
    >>> meant_by("income_2025", ["income_2024"]), meant_by("stage", ["state"]), meant_by("agee", ["age", "ager"])
    (None, None, None)
    >>> meant_by("employer", ["employee"]), meant_by("county_code", ["country_code"]), meant_by("contrct", ["contract"])
    (None, None, 'contract')
    >>> meant_by("Stage I", ["Stage II", "Stage III"]), meant_by("AAA", ["AA"]), meant_by("XXIV", ["XXVI"])
    (None, None, None)
    """
    near = one_letter_apart(name, known)
    if len(near) != 1 or _NUMBER.findall(name) != _NUMBER.findall(near[0]):
        return None
    apart = _apart(_words(name), _words(near[0]))
    return near[0] if apart is not None and _is_slip(*apart) else None


def one_letter_apart(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known names that are at most one letter apart from another one, or two that are exchanged.

    >>> one_letter_apart("WHER", ["WHERE", "WHEN", "WITH"])
    ('WHERE', 'WHEN')
    """
    apart = {one: _apart(_words(name), _words(one)) for one in known}
    return tuple(one for one, pair in apart.items() if pair is not None and _at_most_one_letter(*pair))


def _words(name: str) -> list[str]:
    return _BETWEEN.split(name.strip().lower())


def _apart(written: list[str], known: list[str]) -> tuple[str, str] | None:
    """The one word in which two names differ; two empty ones where they are the same, None where they differ more."""
    if "".join(written) == "".join(known):
        return "", ""
    if len(written) != len(known):  # a word that is cut in two, or two that are one
        written, known = ["".join(written)], ["".join(known)]
    apart = [pair for pair in zip(written, known, strict=True) if pair[0] != pair[1]]
    return apart[0] if len(apart) == 1 else None


def _first_difference(a: str, b: str) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _at_most_one_letter(a: str, b: str) -> bool:
    """Whether two words are one letter apart, or two letters that are exchanged."""
    i = _first_difference(a, b)
    exchanged = a[i : i + 2] == b[i : i + 2][::-1] and a[i + 2 :] == b[i + 2 :]
    return exchanged or a[i + 1 :] == b[i + 1 :] or a[i:] == b[i + 1 :] or a[i + 1 :] == b[i:]


def _is_slip(a: str, b: str) -> bool:
    """Whether two words that are one letter apart are most probably one word."""
    if a == b:
        return True
    if (a in _OWN and b in _OWN) or (_ROMAN.fullmatch(a) and _ROMAN.fullmatch(b)):
        return False
    i = _first_difference(a, b)
    if not (a[i : i + 1] + b[i : i + 1]).isalpha():
        return False
    if len(a) == len(b):
        exchanged = a[i : i + 2] == b[i : i + 2][::-1]
        return i > 0 and (len(a) > 3 if exchanged else len(a) > 6 and i < len(a) - 1)
    short, long = sorted((a, b), key=len)
    if i == len(short) and long[-1] == "s":
        return len(short) > 2
    if i > 0 and long[i] == long[i - 1]:
        return len(short) == 1 or len(set(short)) > 1  # not of grades: AAA and AA
    return i > 0 and len(long) > 4 and i < len(short)
