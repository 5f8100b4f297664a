"""The values of a policy file, each checked where it stands: an error names the file, the line and what is allowed."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hubbub.addresses import looks_like_connection, masked
from hubbub.errors import PolicyError
from hubbub.ledger.toml_lines import Lines
from hubbub.remedies import Remedy
from hubbub.spelling import meant_by, space_name

__all__ = ["POLICY_NAME", "PolicyValues"]

POLICY_NAME: Final = "hubbub.toml"


@dataclass(frozen=True)
class PolicyValues:
    """Reads one file's values. at: the keys that lead to one, ("tables", "visits", "unit"). Each raises PolicyError."""

    file: Path
    lines: Lines

    def known(
        self,
        at: tuple[str, ...],
        section: dict[str, Any],
        allowed: tuple[str, ...],
        *,
        required: tuple[str, ...] = (),
    ) -> None:
        for key in section:
            if key not in allowed:
                ways = self.lines.meant((*at, key), key, [k for k in allowed if k not in section])
                said = f"unknown key {key!r}; allowed: {', '.join(allowed)}{_near(key, allowed)}"
                raise self.wrong((*at, key), said, ways)
        for key in required:
            if key not in section:
                raise self.wrong(at, f"{key} is missing")

    def section(self, at: tuple[str, ...], body: object, *, example: str = "") -> dict[str, Any]:
        if not isinstance(body, dict):
            raise self.wrong(at, f"found {body!r}; allowed: {example or f'a section [{_dotted(at)}]'}")
        return body

    def wrong(self, at: tuple[str, ...], message: str, ways: Sequence[Remedy] = ()) -> PolicyError:
        line = self.lines.of(at)
        # What was found may be an address, mistyped; what is allowed are words of ours, and of _dotted.
        before, allowed, rest = message.rpartition("; allowed: ")
        said = f"{masked(before)}{allowed}{rest}" if allowed else masked(message)
        words = f"{self.file}:{line}: {_dotted(at)}: {said}{'' if said[-1] in '.?' else '.'}"
        return PolicyError(words, remedy=ways)

    def flag(self, at: tuple[str, ...], value: object) -> bool:
        if not isinstance(value, bool):
            raise self.wrong(at, f"found {value!r}; allowed: true or false")
        return value

    def limit(self, at: tuple[str, ...], value: object) -> int | None:
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise self.wrong(at, f"found {value!r}; allowed: a whole number, 1 or more")
        return value

    def text(self, at: tuple[str, ...], value: object) -> str | None:
        if value is not None and (not isinstance(value, str) or not value):
            raise self.wrong(at, f"found {value!r}; allowed: text in quotes")
        return value

    def choice(self, at: tuple[str, ...], value: object, allowed: tuple[str, ...]) -> str:
        if not isinstance(value, str) or value not in allowed:
            ways = self.lines.meant(at, value, allowed)
            raise self.wrong(at, f"found {value!r}; allowed: {', '.join(allowed)}{_near(value, allowed)}", ways)
        return value

    def space(self, at: tuple[str, ...], value: object) -> str | None:
        text = self.text(at, value)
        try:
            return None if text is None else space_name(text)
        except PolicyError as error:
            raise self.wrong(at, str(error)) from None

    def place(self, at: tuple[str, ...], value: object, allowed: str = "a file") -> Path:
        text = self.text(at, value) or ""
        if looks_like_connection(text):
            raise self.wrong(at, f"found {value!r}; allowed: {allowed}")
        return Path(os.path.normpath(self.file.parent / Path(text).expanduser()))

    def variable(self, at: tuple[str, ...], text: str) -> None:
        """Refuses a variable that can have no such name. That it is set matters to who connects alone."""
        if text.startswith("env:") and not re.fullmatch(r"env:[A-Za-z_][A-Za-z0-9_]*", text):
            raise self.wrong(at, f"found {text!r}; allowed: env:NAME, of letters, digits and underscores")


def _dotted(at: tuple[str, ...]) -> str:
    return masked(".".join(at)) or POLICY_NAME


def _near(wrong: object, allowed: tuple[str, ...]) -> str:
    close = meant_by(str(wrong), allowed) or next(iter(difflib.get_close_matches(str(wrong), allowed, n=1)), None)
    return "" if close is None else f". Did you mean {close!r}?"
