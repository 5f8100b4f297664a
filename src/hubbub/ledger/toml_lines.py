"""Where in a TOML text a key stands: what `tomllib` does not tell.

A key's line is that of its own `key =` or `[header]`, or of the nearest key above it that has one: the
parts of an inline table are found at the line where the table begins. Only error messages depend on this.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

from hubbub.remedies import CorrectPolicy
from hubbub.spelling import meant_by

__all__ = ["Lines"]

_BARE = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_PATH = rf"{_BARE}(?:\s*\.\s*{_BARE})*"
_HEADER = re.compile(rf"\s*\[\s*({_PATH})\s*\]")
_KEY = re.compile(rf"\s*({_PATH})\s*=")


class Lines:
    """The line numbers of one TOML text, from 1."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._of: dict[tuple[str, ...], int] = {(): 1}
        section: tuple[str, ...] = ()
        for number, line in enumerate(text.splitlines(), start=1):
            if header := _HEADER.match(line):
                section = _keys(header[1])
                self._note(section, number)
            elif key := _KEY.match(line):
                self._note((*section, *_keys(key[1])), number)

    def _note(self, at: tuple[str, ...], number: int) -> None:
        for length in range(len(at) + 1):
            self._of.setdefault(at[:length], number)

    def of(self, at: tuple[str, ...]) -> int:
        """The line of the key that `at` leads to, or of the nearest one above it."""
        while at not in self._of:
            at = at[:-1]
        return self._of[at]

    def meant(self, at: tuple[str, ...], old: object, known: Sequence[str]) -> tuple[CorrectPolicy, ...]:
        """The line of a key with the known word that was meant by another one."""
        return self.corrected(at, old, meant_by(old, known)) if isinstance(old, str) else ()

    def corrected(self, at: tuple[str, ...], old: str, new: str | None) -> tuple[CorrectPolicy, ...]:
        """The line of a key with another word in it, where the old one stands there once; else it is not that plain."""
        line = self.of(at)
        plain = new is not None and self._lines and self._lines[line - 1].count(old) == 1
        return (CorrectPolicy(line, old, new),) if plain and new is not None else ()


def _keys(path: str) -> tuple[str, ...]:
    """The parts of a dotted key, unquoted by the TOML reader itself; none for what only looks like one."""
    keys: list[str] = []
    try:
        value: Any = tomllib.loads(f"{path} = 0")
    except tomllib.TOMLDecodeError:  # a line inside a longer text
        return ()
    while isinstance(value, dict):
        ((key, value),) = value.items()
        keys.append(key)
    return tuple(keys)
