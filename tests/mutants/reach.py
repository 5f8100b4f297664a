"""Which tests come past which statement, so that a change is tried with them and with no others.

The modules of the rooms are compiled with a note before every statement inside a function, and each file of the rooms
is run once with nothing changed, in a process of its own. What a process notes between two tests, while it imports or
collects, counts for all tests of the file; what a child that was forked notes counts for the test that forked it. A
statement is known by its function and its text, not by its line: what was noted stays of use when lines move, and a
statement that was never noted is tried with the whole room.

A test that only reads what another one left behind (a fixture of its file, a cache) does not come past: so after the
tests that do, the rest of their files is run too. A choice that is too small lets a change survive, and kills none.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

__all__ = ["NOTE", "OUTSIDE", "Noted", "Watch", "files_of", "noting", "owners", "picked", "read"]

NOTE: Final = "_mutants_note"
"""What a noting module calls: the runner puts it there."""
OUTSIDE: Final = -1
"""The number of no test: what is noted between tests."""
_write: Final = os.write  # as it is before a test puts another in its place


@dataclass
class Noted:
    """What one file of tests notes. text: a digest of the file. seconds: of each test, by its name, in their order.

    past: the numbers of the tests that come past a statement, by the statement's digest.
    """

    text: str
    seconds: dict[str, float] = field(default_factory=dict)
    past: dict[str, list[int]] = field(default_factory=dict)

    def at(self, statement: str) -> list[str]:
        """The tests that come past a statement; all of them where it is noted outside tests."""
        numbers, names = self.past.get(statement, []), list(self.seconds)
        return names if OUTSIDE in numbers else [names[number] for number in numbers]

    def save(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, file: Path) -> Noted:
        return cls(**json.loads(file.read_text()))


def owners(tree: ast.Module) -> dict[int, str | None]:
    """Of each node, by its `id`, the digest of the innermost statement that it stands in; None outside functions."""
    owner = dict[int, str | None]()

    def visit(node: ast.AST, statement: str | None, where: str, inside: bool) -> None:
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name, value in ast.iter_fields(node):
            body = name == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            place, deep = (f"{where}.{node.name}", inside or function) if body else (where, inside)
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    now = _digest(place, child) if deep and isinstance(child, ast.stmt) else statement
                    owner[id(child)] = now
                    visit(child, now, place, deep)

    visit(tree, None, "", False)
    return owner


def _digest(where: str, statement: ast.AST) -> str:
    first = ast.unparse(statement).splitlines()[0]
    return hashlib.sha256(f"{where}: {first}".encode()).hexdigest()[:16]


def noting(source: str, module: str) -> ast.Module:
    """A module's tree with a note before each statement inside a function."""
    tree = ast.parse(source)
    owner = owners(tree)
    for node in list(ast.walk(tree)):
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and all(isinstance(one, ast.stmt) for one in value):
                docstring = name == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                setattr(node, name, list(_noted(value, owner, module, docstring)))
    return ast.fix_missing_locations(tree)


def _noted(
    body: Iterable[ast.stmt], owner: Mapping[int, str | None], module: str, docstring: bool
) -> Iterator[ast.stmt]:
    for i, one in enumerate(body):
        statement = owner[id(one)]
        if statement is not None and not (docstring and i == 0 and _is_text(one)):
            call = ast.Call(ast.Name(NOTE, ast.Load()), [ast.Constant(f"{module} {statement}")], [])
            yield ast.copy_location(ast.Expr(call), one)
        yield one


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


class Watch:
    """A plugin of pytest that writes what its file notes: a line for each statement and test, and one for each time.

    Forked processes write into the same file, at its end.
    """

    def __init__(self, file: Path) -> None:
        self.out = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.test, self.seen = "", set[str]()

    def note(self, statement: str) -> None:
        if statement not in self.seen:
            self.seen.add(statement)
            with suppress(OSError):  # a test that lets files be no longer than so much
                _write(self.out, f"past\t{self.test}\t{statement}\n".encode())

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.test = nodeid
        self.seen.clear()

    def pytest_runtest_logreport(self, report: Any) -> None:
        _write(self.out, f"time\t{report.nodeid}\t{report.duration}\n".encode())

    def pytest_runtest_logfinish(self) -> None:
        self.test = ""
        self.seen.clear()


def read(lines: Iterable[str], text: str) -> Noted:
    """What the plugin wrote."""
    noted, past = Noted(text), dict[str, set[str]]()
    for line in lines:
        kind, test, what = line.rstrip("\n").split("\t")
        if kind == "time":
            noted.seconds[test] = round(noted.seconds.get(test, 0.0) + float(what), 4)
        else:
            past.setdefault(what, set()).add(test)
    number = {name: i for i, name in enumerate(noted.seconds)}
    noted.past = {what: sorted(number.get(test, OUTSIDE) for test in tests) for what, tests in past.items()}
    return noted


def files_of(root: Path, path: str) -> list[str]:
    """The files of tests under a path of a room, in the order of pytest."""
    place = root / path
    return [path] if place.is_file() else sorted(str(file.relative_to(root)) for file in place.rglob("test_*.py"))


def picked(
    room: Sequence[str], noted: Mapping[str, Noted], statement: str | None, telling: Mapping[str, int]
) -> list[tuple[str, list[str] | None]]:
    """The files of a room to be run, in order, and which tests of each; None is all of them.

    room: its files, the telling ones first. telling: how many changes of this module each file killed before.
    First the tests that come past the statement, then the rest of their files.
    """
    if statement is None or not any(statement in one.past for one in noted.values()):
        return [(file, None) for file in sorted(room, key=lambda file: -telling.get(file, 0))]
    tests = {file: noted[file].at(statement) for file in room if file in noted}

    def price(file: str) -> tuple[int, float]:
        return -telling.get(file, 0), sum(noted[file].seconds[test] for test in tests[file])

    past = sorted((file for file in tests if tests[file]), key=price)
    rest = [(file, [test for test in noted[file].seconds if test not in set(tests[file])]) for file in past]
    return [(file, tests[file]) for file in past] + [(file, names) for file, names in rest if names]
