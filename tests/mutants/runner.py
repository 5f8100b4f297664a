"""Runs tests on a changed source: a fork for each, which imports the changed module in place of the real one.

    python -m mutants.runner hubbub.tables.price --sample 20 --seed 1
    python -m mutants.runner --total 100 --seed 2 --record mutants/record.tsv
    python -m mutants.runner --bugs --every 10

(in `tests/`, with `src/` and `tests/` on the path.) First each file of the rooms is run with nothing changed: a test
that fails then would seem to notice every change, and ends the run. It notes which tests come past which statement
(`mutants.reach`; kept in `.mutants/` for later runs), and a change is tried with those of its room. A change is
*killed* where one of them fails that passes, in the same company, with nothing changed; or where the module no longer
works at all. What survives is printed with its place. A change under which the tests never end is counted apart: no
test said that anything is wrong. Changes of all modules together are tried in an order of chance, so that those tried
up to any moment are a uniform sample too; what is written into a module leaves all others in their order.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
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
from typing import Any, TypeAlias

from mutants.bugs import BUGS, Bug
from mutants.equivalents import EQUIVALENT
from mutants.operators import Change, changes, mutated, statements
from mutants.reach import NOTE, Noted, Watch, files_of, noting, picked, read
from mutants.record import KILLED, Line, Record, around, numbered
from mutants.rooms import ROOMS, TEXTS

ROOT = Path(__file__).parents[2]
LIMIT = 900
"""Seconds of a processor for the tests of one change, and four times as many of a clock: on a busy machine tests that
pass are slow, and would look like tests that never end.
"""


NOTES = ROOT / ".mutants"
Chosen: TypeAlias = tuple[str, list[str] | None]
"""A path, and the names of the tests of it that are run; None is all of them."""
_NONE_COLLECTED = 5
"""What pytest says where a path has no test that is asked for: all of them are large counts, say."""


@dataclass(frozen=True)
class Outcome:
    """What became of a change: `killed`, `endless`, or neither, which is to say that it survived.

    by: the first test that failed, "?" where the module does not even work. shaky: a test that failed and fails with
    nothing changed too, in the same company, and so says nothing.
    """

    module: str
    change: Change
    killed: bool
    seconds: float
    endless: bool = False
    by: str = ""
    shaky: str = ""

    @property
    def survived(self) -> bool:
        return not self.killed and not self.endless

    def __str__(self) -> str:
        shaky = f" (but {self.shaky} is shaky)" if self.shaky else ""
        what = f"killed by {self.by}:" if self.killed else "ENDLESS" if self.endless else f"SURVIVED{shaky}"
        return f"{what} {self.module.removeprefix('hubbub.')}:{self.change}  ({self.seconds:.0f} s)"


def source_of(module: str) -> str:
    return (ROOT / "src" / Path(*module.split("."))).with_suffix(".py").read_text()


def run_change(module: str, change: Change, tests: Sequence[Chosen], limit: int | None = None) -> Outcome:
    """Whether any of the tests fails on a change, and passes without it. They are run in order, the first failure ends
    it.
    """
    source = source_of(module)
    start = time.monotonic()
    passed, by = _told({module: compile(mutated(source, change.number), module, "exec")}, tests, limit)
    shaky = ""
    if passed is False and by != "?":
        code = compile(ast.parse(source), module, "exec")
        if not _told({module: code}, _up_to(by, tests), limit)[0]:
            passed, by, shaky = True, "", by
    return Outcome(module, change, passed is False, time.monotonic() - start, passed is None, by, shaky)


def _up_to(by: str, tests: Sequence[Chosen]) -> list[Chosen]:
    """The tests of one file up to the one that failed; the whole path where it is not known what was run before it."""
    for path, names in tests:
        if names is not None and by in names:
            return [(path, names[: names.index(by) + 1])]
    return [(path, names) for path, names in tests if names is None and by.startswith(path)] or list(tests)


def failing(module: str, source: str, tests: Sequence[str]) -> str | None:
    """The first test that fails with this source in the place of a module's own; None if all pass.

    Where the module does not even work, or the tests never end: "?".
    """
    passed, by = _told({module: compile(source, module, "exec")}, [(path, None) for path in tests])
    return None if passed else by


def _told(
    codes: Mapping[str, object], tests: Sequence[Chosen], limit: int | None = None, watch: Path | None = None
) -> tuple[bool | None, str]:
    """What `in_fork` returns for these tests, and the first that failed, "?" if none can be named."""
    with tempfile.NamedTemporaryFile() as told:
        passed = in_fork(lambda: _tests_pass(codes, tests, told.name, watch), limit or LIMIT)
        return passed, told.read().decode() or "?"


def control(modules: Sequence[str], *, again: bool = False) -> tuple[dict[str, Noted], list[str]]:
    """What each file of the rooms of these modules notes with nothing changed, and what fails or never ends.

    All modules note together, put in place from their syntax trees, as a changed one is. A file that has run and is as
    it was is not run again, unless `again` says so.
    """
    codes = {module: compile(noting(source_of(module), module), module, "exec") for module in ROOMS}
    noted, wrong = dict[str, Noted](), list[str]()
    for file in dict.fromkeys(file for module in modules for file in room_of(module)):
        kept = NOTES / f"{hashlib.sha256(file.encode()).hexdigest()[:16]}.json"
        text = hashlib.sha256((ROOT / file).read_bytes()).hexdigest()
        if kept.exists() and not again:
            noted[file] = Noted.load(kept)
            if noted[file].text == text:
                continue
        with tempfile.TemporaryDirectory() as folder:
            lines = Path(folder) / "lines"
            start = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
            passed, by = _told(codes, [(file, None)], watch=lines)
            seconds = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - start
            said = "passes" if passed else "NEVER ENDS" if passed is None else f"RED at {by}"
            print(f"unchanged: {file} {said}  ({seconds:.0f} s of a processor)", flush=True)
            if not passed:
                wrong.append(file)
                continue
            noted[file] = read(lines.read_text().splitlines(), text)
            noted[file].save(kept)
    return noted, wrong


def room_of(module: str) -> list[str]:
    """The files of a room, in its order, each once."""
    return list(dict.fromkeys(file for path in ROOMS[module] for file in files_of(ROOT, path)))


def in_fork(work: Callable[[], bool], limit: int) -> bool | None:
    """What `work` returns in a child process; False where the child dies, None where it takes longer than the limit.

    Who catches the signal at the limit is killed five seconds later, and took too long all the same.
    """
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            signal.alarm(4 * limit)
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


class _Named:
    """Leaves out the tests that have other names."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = set(names)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if item.nodeid in self.names]


def _tests_pass(codes: Mapping[str, object], tests: Sequence[Chosen], told: str, watch: Path | None) -> bool:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # to load them all takes longer than most tests
    import pytest

    watching = [] if watch is None else [Watch(watch)]
    sys.meta_path.insert(0, _Changed(codes, *(one.note for one in watching)))
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))  # as `python -m pytest` has it: some tests import `benchmarks`
    common = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not soak"]
    done = list[str]()
    for path, names in tests:
        # One by one: to collect a whole room takes longer than the first test that fails. What has run is left out.
        ignored = [f"--ignore={earlier}" for earlier in done if not path.startswith(earlier)]
        done += [path] if names is None else []
        plugins = [_First(told), *watching, *([] if names is None else [_Named(names)])]
        if pytest.main([*common, *ignored, path], plugins) not in (0, _NONE_COLLECTED):
            return False
    return True


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives some modules another code, and what it calls to note that it runs."""

    def __init__(self, codes: Mapping[str, object], note: Callable[[str], None] | None = None) -> None:
        self.codes, self.note = codes, note

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name not in self.codes:
            return None
        file = (ROOT / "src" / Path(*name.split("."))).with_suffix(".py")
        return importlib.util.spec_from_file_location(name, file, loader=self)

    def create_module(self, spec: object) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        if self.note is not None:
            setattr(module, NOTE, self.note)
        exec(self.codes[module.__name__], module.__dict__)  # type: ignore[arg-type]


def sample(module: str, count: int | None, seed: int) -> list[Change]:
    """Some of a module's changes, or all of them, less those that are known to change nothing."""
    same = EQUIVALENT.get(module, {})
    every = changes(source_of(module), texts=module.startswith(TEXTS))
    found = [change for change in every if change.what not in same]
    return found if count is None or count >= len(found) else random.Random(seed).sample(found, count)


def drawn(modules: Sequence[str], total: int, seed: int) -> Iterator[tuple[str, list[Change]]]:
    """A uniform sample of the changes of all modules together, in an order of chance: by a digest of each."""

    def place(one: tuple[str, Change, int]) -> bytes:
        return hashlib.sha256(f"{seed} {one[0]} {one[1].what} {one[2]}".encode()).digest()

    every = [(module, change, n) for module in modules for change, n in numbered(sample(module, None, seed))]
    for module, change, _ in sorted(every, key=place)[:total]:
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


def tried(chosen: Iterable[tuple[str, Sequence[Change]]], noted: Mapping[str, Noted], record: Record) -> list[Outcome]:
    """What became of each change, told as it is found. With nothing noted each is tried with its whole room."""
    outcomes = list[Outcome]()
    for module, some in chosen:
        source = source_of(module)
        nth = {change.number: n for change, n in numbered(changes(source, texts=module.startswith(TEXTS)))}
        owner = statements(source)
        for change in some:
            name = (module, change.what, nth[change.number], around(source, change.line))
            known = record.known(*name)
            if known is not None:
                outcome = Outcome(module, change, True, 0.0, by=known.by)
            else:
                outcome = run_change(module, change, *_with(module, owner[change.number], noted, record))
                last = KILLED if outcome.killed else "endless" if outcome.endless else "survived"
                record.add(Line(*name, record.first(*name) or last, last, outcome.by))
            outcomes.append(outcome)
            print(f"{outcome}  [{counted(outcomes)}]", flush=True)
    return outcomes


def _with(
    module: str, statement: str | None, noted: Mapping[str, Noted], record: Record
) -> tuple[Sequence[Chosen], int]:
    """The tests of a change, and the seconds that they may take: many times what they took with nothing changed."""
    if not noted:
        return [(path, None) for path in ROOMS[module]], LIMIT
    room = room_of(module)
    here = {file: noted[file] for file in room}
    tests = picked(room, here, None if statement is None else f"{module} {statement}", record.telling(module))
    expected = sum(
        seconds for path, names in tests for test, seconds in here[path].seconds.items() if not names or test in names
    )
    return tests, min(LIMIT, 60 + round(5 * expected))


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
    parser.add_argument("--again", action="store_true", help="run all of them so, those too whose notes are kept")
    parser.add_argument("--record", type=Path, default=None, help="of what was tried: what it tells is not tried")
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each fork compiles all of hubbub and its tests
    sys.dont_write_bytecode = False
    warm()
    if given.bugs:
        bugs = BUGS[:: given.every]
        not_found = missed(bugs)
        print(f"{len(bugs) - len(not_found)} of {len(bugs)} planted bugs found")
        return 1 if not_found else 0
    noted, wrong = ({}, []) if given.unchecked else control(given.modules, again=given.again)
    if wrong:
        print("a room is red with nothing changed: no change was tried")
        return 2
    each = ((module, sample(module, given.sample, given.seed)) for module in given.modules)
    chosen = each if given.total is None else drawn(given.modules, given.total, given.seed)
    outcomes = tried(chosen, noted, Record(given.record, ROOT))
    killed = sum(outcome.killed for outcome in outcomes)
    print(counted(outcomes))
    if given.total is not None:
        low, high = share_killed(killed, len(outcomes))
        print(f"of all changes between {low:.1%} and {high:.1%} are killed, with confidence .95")
    return 0 if killed >= 0.95 * len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
