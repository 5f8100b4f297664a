"""Text that steers no terminal and begins no line of its own: what people typed, and keys that are released."""

from __future__ import annotations

import unicodedata

__all__ = ["in_one_line", "printable"]


def printable(text: str) -> str:
    """`text` without characters that steer a terminal: another analyst's SQL must not write on this screen.

    >>> printable("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return "".join(_visible(character) for character in text.expandtabs(4).replace("\t", " "))


def in_one_line(text: str) -> str:
    """The same for a cell of a table: a line break in a name or a key would look like a further row.

    >>> in_one_line("a\\nb  1 ± 0")
    'a\\\\nb  1 ± 0'
    """
    return printable(text).replace("\n", "\\n")


def _visible(character: str) -> str:
    if character == "\n" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return character
    return character.encode("unicode_escape").decode("ascii")
