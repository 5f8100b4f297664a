"""What became of the changes that were tried, in a file: a later run goes on where an earlier one stopped.

A line each: the module, what was changed (and which of several that read alike), a digest of the function or class
around it, what became of it the first time and the last time, and the test that killed it. It counts as long as that
function stands as it stood and the file has its test still; what survived is tried anew.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Final

from mutants.operators import Change, within

__all__ = ["KILLED", "Line", "Record", "around", "numbered"]

KILLED: Final = "killed"


@dataclass(frozen=True)
class Line:
    module: str
    change: str
    nth: int
    around: str
    first: str
    last: str
    by: str = ""

    @property
    def key(self) -> tuple[str, str, int, str]:
        return self.module, self.change, self.nth, self.around


class Record:
    """The lines of a file, which may not be there yet. With no file nothing is kept."""

    def __init__(self, file: Path | None, tests: Path) -> None:
        self.file, self.tests, self.lines = file, tests, dict[tuple[str, str, int, str], Line]()
        if file is not None and file.exists():
            for text in file.read_text().splitlines()[1:]:
                module, change, nth, around, first, last, by = text.split("\t")
                line = Line(module, change, int(nth), around, first, last, by)
                self.lines[line.key] = line

    def known(self, module: str, change: str, nth: int, around: str) -> Line | None:
        """What is known of a change that was killed, and would be now."""
        line = self.lines.get((module, change, nth, around))
        return line if line is not None and line.last == KILLED and self._stands(line.by) else None

    def first(self, module: str, change: str, nth: int, around: str) -> str | None:
        """What became of a change the first time it was tried."""
        line = self.lines.get((module, change, nth, around))
        return None if line is None else line.first

    def telling(self, module: str) -> Counter[str]:
        """How many changes of a module each file of tests killed."""
        return Counter(
            line.by.partition("::")[0] for line in self.lines.values() if line.module == module and "::" in line.by
        )

    def add(self, line: Line) -> None:
        self.lines[line.key] = line
        if self.file is not None:
            heading = "\t".join(field.name for field in fields(Line))
            rows = sorted("\t".join(str(value) for value in astuple(one)) for one in self.lines.values())
            self.file.write_text("\n".join([heading, *rows, ""]))

    def _stands(self, by: str) -> bool:
        file, _, test = by.partition("::")
        name = test.rpartition("::")[2].partition("[")[0]
        path = self.tests / file
        return not name or (path.exists() and f"def {name}(" in path.read_text())


def around(source: str, line: int) -> str:
    """A digest of what stands around a line."""
    return hashlib.sha256(within(source, line).encode()).hexdigest()[:12]


def numbered(changes: Iterable[Change]) -> list[tuple[Change, int]]:
    """Each change and which one it is of those that read alike, from 0."""
    count, out = Counter[str](), list[tuple[Change, int]]()
    for change in changes:
        out.append((change, count[change.what]))
        count[change.what] += 1
    return out
