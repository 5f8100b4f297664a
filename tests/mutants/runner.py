"""Runs tests on a changed source: a fork for each, which imports the changed module in place of the real one.

    python -m mutants.runner hubbub.tables.price --sample 20 --seed 1
    python -m mutants.runner --total 100 --seed 2
    python -m mutants.runner --bugs --every 10

(in `tests/`, with `src/` and `tests/` on the path.) First the rooms are run with nothing changed: a test that fails
then would seem to notice every change, and ends the run. A change is *killed* where a test of its room fails, or the
module no longer works at all. What survives is printed with its place. A change under which the tests never end is
counted apart: no test said that anything is wrong. Changes of all modules together are tried in an order of chance, so
that those tried up to any moment are a uniform sample too.
"""

from __future__ import annotations

import argparse
import ast
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
pass are slow, and would look like tests that never end.
"""


_NONE_COLLECTED = 5
"""What pytest says where a path has no test that is asked for: all of them are large counts, say."""


@dataclass(frozen=True)
class Outcome:
    """What became of a change: `killed`, `endless`, or neither, which is to say that it survived.

    by: the first test that failed, "?" where the module does not even work.
    """

    module: str
    change: Change
    killed: bool
    seconds: float
    endless: bool = False
    by: str = ""

    @property
    def survived(self) -> bool:
        return not self.killed and not self.endless

    def __str__(self) -> str:
        what = f"killed by {self.by}:" if self.killed else "ENDLESS" if self.endless else "SURVIVED"
        return f"{what} {self.module.removeprefix('hubbub.')}:{self.change}  ({self.seconds:.0f} s)"


def source_of(module: str) -> str:
    return (ROOT / "src" / Path(*module.split("."))).with_suffix(".py").read_text()


def run_change(module: str, change: Change, tests: Sequence[str]) -> Outcome:
    """Whether any of the tests fails on a change. They are run in order, the first failure ends it."""
    code = compile(mutated(source_of(module), change.number), module, "exec")
    start = time.monotonic()
    passed, by = _told({module: code}, tests)
    return Outcome(module, change, passed is False, time.monotonic() - start, passed is None, by)


def failing(module: str, source: str, tests: Sequence[str]) -> str | None:
    """The first test that fails with this source in the place of a module's own; None if all pass.

    Where the module does not even work, or the tests never end: "?".
    """
    passed, by = _told({module: compile(source, module, "exec")}, tests)
    return None if passed else by


def _told(codes: Mapping[str, object], tests: Sequence[str], *, before: Sequence[str] = ()) -> tuple[bool | None, str]:
    """What `in_fork` returns for these tests, and the first that failed, "?" if none can be named."""
    with tempfile.NamedTemporaryFile() as told:
        passed = in_fork(lambda: _tests_pass(codes, tests, told.name, before))
        return passed, told.read().decode() or "?"


def red(modules: Sequence[str]) -> list[str]:
    """What the rooms of these modules say with nothing changed, path by path: the paths that fail or never end.

    The modules are put in place from their syntax trees, as a changed one is. A room that takes longer than a change is
    given is red as well: each change that survives would seem endless.
    """
    codes = {module: compile(ast.parse(source_of(module)), module, "exec") for module in modules}
    wrong, seconds = [], dict[str, float]()
    for path in dict.fromkeys(path for module in modules for path in ROOMS[module]):
        start = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        passed, by = _told(codes, [path], before=list(seconds))
        seconds[path] = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - start
        said = "passes" if passed else "NEVER ENDS" if passed is None else f"RED at {by}"
        print(f"unchanged: {path} {said}  ({seconds[path]:.0f} s of a processor)", flush=True)
        if not passed:
            wrong.append(path)
    for module in modules:
        if sum(seconds[path] for path in ROOMS[module]) > LIMIT:
            print(f"unchanged: the room of {module} takes longer than {LIMIT} s", flush=True)
            wrong.append(module)
    return wrong


def in_fork(work: Callable[[], bool]) -> bool | None:
    """What `work` returns in a child process; False where the child dies, None where it takes longer than `LIMIT`.

    Who catches the signal at the limit is killed five seconds later, and took too long all the same.
    """
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
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGXCPU, signal.SIGKILL):
        return None
    return status == 0


class _First:
    """Writes the name of the first test that fails into a file."""

    def __init__(self, file: str) -> None:
        self.file = file

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not Path(self.file).read_text():
            Path(self.file).write_text(report.nodeid)


def _tests_pass(codes: Mapping[str, object], tests: Sequence[str], told: str, before: Sequence[str]) -> bool:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # to load them all takes longer than most tests
    import pytest

    sys.meta_path.insert(0, _Changed(codes))
    os.chdir(ROOT)
    common = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not soak"]
    for i, path in enumerate(tests):
        # One by one: to collect a whole room takes longer than the first test that fails. What has run is left out.
        done = [f"--ignore={earlier}" for earlier in [*before, *tests[:i]] if not path.startswith(earlier)]
        if pytest.main([*common, *done, path], [_First(told)]) not in (0, _NONE_COLLECTED):
            return False
    return True


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives some modules another code."""

    def __init__(self, codes: Mapping[str, object]) -> None:
        self.codes = codes

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name not in self.codes:
            return None
        file = (ROOT / "src" / Path(*name.split("."))).with_suffix(".py")
        return importlib.util.spec_from_file_location(name, file, loader=self)

    def create_module(self, spec: object) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(self.codes[module.__name__], module.__dict__)  # type: ignore[arg-type]


def sample(module: str, count: int | None, seed: int) -> list[Change]:
    """Some of a module's changes, or all of them, less those that are known to change nothing."""
    same = EQUIVALENT.get(module, {})
    every = changes(source_of(module), texts=module.startswith(TEXTS))
    found = [change for change in every if change.what not in same]
    return found if count is None or count >= len(found) else random.Random(seed).sample(found, count)


def drawn(modules: Sequence[str], total: int, seed: int) -> Iterator[tuple[str, list[Change]]]:
    """A uniform sample of the changes of all modules together, in an order of chance."""
    every = [(module, change) for module in modules for change in sample(module, None, seed)]
    for module, change in random.Random(seed).sample(every, min(total, len(every))):
        yield module, [change]


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


def tried(chosen: Iterable[tuple[str, Sequence[Change]]]) -> list[Outcome]:
    """What became of each change, told as it is found."""
    outcomes = list[Outcome]()
    for module, some in chosen:
        for change in some:
            outcomes.append(run_change(module, change, ROOMS[module]))
            print(f"{outcomes[-1]}  [{counted(outcomes)}]", flush=True)
    return outcomes


def counted(outcomes: Sequence[Outcome]) -> str:
    killed, endless = sum(o.killed for o in outcomes), sum(o.endless for o in outcomes)
    alive = len(outcomes) - killed - endless
    return f"{killed} of {len(outcomes)} changes killed, {alive} survived, {endless} endless"


def share_killed(killed: int, all_tried: int) -> tuple[float, float]:
    """Of which shares of all changes a uniform sample of this many may be, with confidence .95 (Clopper, Pearson)."""
    from scipy.stats import beta

    low = beta.ppf(0.025, killed, all_tried - killed + 1) if killed else 0.0
    high = beta.ppf(0.975, killed + 1, all_tried - killed) if killed < all_tried else 1.0
    return float(low), float(high)


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
    parser.add_argument("--unchecked", action="store_true", help="do not run the rooms with nothing changed first")
    given = parser.parse_args()
    warm()
    if given.bugs:
        bugs = BUGS[:: given.every]
        not_found = missed(bugs)
        print(f"{len(bugs) - len(not_found)} of {len(bugs)} planted bugs found")
        return 1 if not_found else 0
    if not given.unchecked and red(given.modules):
        print("a room is red with nothing changed: no change was tried")
        return 2
    each = ((module, sample(module, given.sample, given.seed)) for module in given.modules)
    outcomes = tried(each if given.total is None else drawn(given.modules, given.total, given.seed))
    killed = sum(outcome.killed for outcome in outcomes)
    print(counted(outcomes))
    if given.total is not None:
        low, high = share_killed(killed, len(outcomes))
        print(f"of all changes between {low:.1%} and {high:.1%} are killed, with confidence .95")
    return 0 if killed >= 0.95 * len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
