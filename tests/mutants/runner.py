"""Runs tests on a changed source: a fork for each, which imports the changed module in place of the real one.

    python -m mutants.runner hubbub.tables.price --sample 20 --seed 1
    python -m mutants.runner --total 100 --seed 2
    python -m mutants.runner --bugs --every 10

(in `tests/`, with `src/` and `tests/` on the path.) A change is *killed* where a test of its room fails, or the module
no longer works at all. What survives is printed with its place.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.abc
import importlib.util
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from mutants.bugs import BUGS, Bug
from mutants.equivalents import EQUIVALENT
from mutants.operators import Change, changes, mutated
from mutants.rooms import ROOMS, TEXTS

ROOT = Path(__file__).parents[2]
LIMIT = 900
"""Seconds of a processor for the tests of one change, and four times as many of a clock: on a busy machine tests that
pass are slow, and would look like tests that never end. A change that makes them endless is killed by that, and told.
"""


_NONE_COLLECTED = 5
"""What pytest says where a path has no test that is asked for: all of them are large counts, say."""


@dataclass(frozen=True)
class Outcome:
    module: str
    change: Change
    killed: bool
    seconds: float
    endless: bool = False


def source_of(module: str) -> str:
    return (ROOT / "src" / Path(*module.split("."))).with_suffix(".py").read_text()


def run_change(module: str, change: Change, tests: Sequence[str]) -> Outcome:
    """Whether any of the tests fails on a change. They are run in order, the first failure ends it."""
    tree = mutated(source_of(module), change.number)
    start = time.monotonic()
    passed = in_fork(lambda: _tests_pass(module, compile(tree, module, "exec"), tests))
    return Outcome(module, change, not passed, time.monotonic() - start, passed is None)


def failing(module: str, source: str, tests: Sequence[str]) -> str | None:
    """The first test that fails with this source in the place of a module's own; None if all pass.

    Where the module does not even work, or the tests never end: "?".
    """
    with tempfile.NamedTemporaryFile() as told:
        passed = in_fork(lambda: _tests_pass(module, compile(source, module, "exec"), tests, told.name))
        return None if passed else told.read().decode() or "?"


def in_fork(work: Callable[[], bool]) -> bool | None:
    """What `work` returns in a child process; False where the child dies, None where it takes longer than `LIMIT`."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 5))
            signal.alarm(4 * LIMIT)
            sink = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(sink, stream)
            os._exit(0 if work() else 1)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGXCPU):
        return None
    return status == 0


class _First:
    """Writes the name of the first test that fails into a file."""

    def __init__(self, file: str) -> None:
        self.file = file

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not Path(self.file).read_text():
            Path(self.file).write_text(report.nodeid)


def _tests_pass(module: str, code: object, tests: Sequence[str], told: str = os.devnull) -> bool:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # to load them all takes longer than most tests
    import pytest

    sys.meta_path.insert(0, _Changed(module, code))
    os.chdir(ROOT)
    common = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not soak"]
    for i, path in enumerate(tests):
        # One by one: to collect a whole room takes longer than the first test that fails. What has run is left out.
        done = [f"--ignore={before}" for before in tests[:i]]
        if pytest.main([*common, *done, path], [_First(told)]) not in (0, _NONE_COLLECTED):
            return False
    return True


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module its changed code."""

    def __init__(self, module: str, code: object) -> None:
        self.module, self.code = module, code

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name != self.module:
            return None
        file = (ROOT / "src" / Path(*name.split("."))).with_suffix(".py")
        return importlib.util.spec_from_file_location(name, file, loader=self)

    def create_module(self, spec: object) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, module.__dict__)  # type: ignore[arg-type]


def sample(module: str, count: int | None, seed: int) -> list[Change]:
    """Some of a module's changes, or all of them, less those that are known to change nothing."""
    same = EQUIVALENT.get(module, {})
    every = changes(source_of(module), texts=module.startswith(TEXTS))
    found = [change for change in every if change.what not in same]
    return found if count is None or count >= len(found) else random.Random(seed).sample(found, count)


def drawn(modules: Sequence[str], total: int, seed: int) -> Iterator[tuple[str, list[Change]]]:
    """A uniform sample of the changes of all modules together, by module."""
    every = [(module, change) for module in modules for change in sample(module, None, seed)]
    some = random.Random(seed).sample(every, min(total, len(every)))
    for module in modules:
        yield module, [change for of, change in some if of == module]


def warm() -> None:
    """Imports what every test needs and no change touches, so that a fork has it."""
    for name in (
        "numpy",
        "duckdb",
        "pyarrow",
        "pyarrow.parquet",
        "pandas",
        "polars",
        "sqlglot",
        "hypothesis",
        "pytest",
    ):
        importlib.import_module(name)
    assert not any(name.split(".")[0] == "hubbub" for name in sys.modules), "hubbub is imported in the child alone"


def survivors(chosen: Iterable[tuple[str, Sequence[Change]]]) -> tuple[list[Outcome], int]:
    """The changes that no test noticed, told as they are found, and how many were tried."""
    alive, tried = [], 0
    for module, some in chosen:
        for change in some:
            outcome = run_change(module, change, ROOMS[module])
            tried += 1
            if not outcome.killed:
                alive.append(outcome)
                print(f"SURVIVED {module.removeprefix('hubbub.')}:{change}  ({outcome.seconds:.0f} s)", flush=True)
            if outcome.endless:
                print(f"ENDLESS {module.removeprefix('hubbub.')}:{change}  ({outcome.seconds:.0f} s)", flush=True)
        print(f"{module}: so far {tried - len(alive)} of {tried} killed", flush=True)
    return alive, tried


def missed(bugs: Sequence[Bug]) -> list[Bug]:
    """The planted bugs that their own test does not find, told as they are tried."""
    found = []
    for bug in bugs:
        source = source_of(bug.module)
        if source.count(bug.old) != 1:
            print(f"PLANT AGAIN ({source.count(bug.old)} places): {bug}", flush=True)
            found.append(bug)
            continue
        test = failing(bug.module, source.replace(bug.old, bug.new), (bug.found_by,))
        if test in (None, "?"):  # a module that does not even work, or a test without end, is not a bug that was found
            found.append(bug)
        print(f"{'MISSED' if test in (None, '?') else f'found by {test}'}: {bug}", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mutants.runner", description="Changed sources, and who notices.")
    parser.add_argument("modules", nargs="*", default=list(ROOMS))
    parser.add_argument("--sample", type=int, default=None, help="changes of each module; all of them if left out")
    parser.add_argument("--total", type=int, default=None, help="changes of all modules together, each as likely")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bugs", action="store_true", help="the planted bugs instead")
    parser.add_argument("--every", type=int, default=1, help="with --bugs: each n-th of them")
    given = parser.parse_args()
    warm()
    if given.bugs:
        bugs = BUGS[:: given.every]
        not_found = missed(bugs)
        print(f"{len(bugs) - len(not_found)} of {len(bugs)} planted bugs found")
        return 1 if not_found else 0
    each = ((module, sample(module, given.sample, given.seed)) for module in given.modules)
    chosen = each if given.total is None else drawn(given.modules, given.total, given.seed)
    alive, tried = survivors(chosen)
    print(f"{tried - len(alive)} of {tried} changes killed")
    return 0 if len(alive) <= 0.05 * tried else 1


if __name__ == "__main__":
    sys.exit(main())
