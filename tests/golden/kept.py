"""Texts of many cases that are kept in one file. `HUBBUB_GOLDEN=write` writes them anew; read the difference before
it is committed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["Kept"]

_WRITES = os.environ.get("HUBBUB_GOLDEN") == "write"
_BETWEEN = "\n\n== \n"


@dataclass(frozen=True)
class Kept:
    """A recording. name: of its file, beside this one. said: what is told of the n-th case now. count: of cases."""

    name: str
    said: Callable[[int], str]
    count: int

    def check(self, at: int) -> None:
        """Fails if another text is told of a case than is kept; skips where they are written anew."""
        if _WRITES:
            pytest.skip("written as a whole by the test of all of them")
        assert self.said(at) == self._texts()[at], f"the {at}-th of {self._file.name} has changed"

    def all(self) -> list[str]:
        """All texts that are kept, one for each case; they are written first where that is asked for."""
        if _WRITES:
            self._file.write_bytes((_BETWEEN.join(map(self.said, range(self.count))) + "\n").encode())
        texts = self._texts()
        assert len(texts) == self.count
        return texts

    @property
    def _file(self) -> Path:
        return Path(__file__).parent / f"{self.name}.txt"

    def _texts(self) -> list[str]:
        return self._file.read_bytes().decode().removesuffix("\n").split(_BETWEEN)
