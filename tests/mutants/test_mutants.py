"""Tests of the tests: planted privacy bugs are found, and changes of the source are noticed."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mutants import runner
from mutants.bugs import BUGS
from mutants.equivalents import EQUIVALENT
from mutants.operators import changes, mutated, statements
from mutants.reach import NOTE, noting, owners, picked, read
from mutants.record import KILLED, Line, Record, around
from mutants.rooms import ROOMS, TEXTS
from mutants.runner import drawn, share_killed, source_of

TESTS = Path(__file__).parents[1]


def told_by_the_runner(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The runner in a process of its own: here hubbub is imported already, and a fork would have the real one."""
    return _python("-m", "mutants.runner", *arguments)


def told_of_one_room(test: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The runner with one module, whose room is one file, and three seconds for each change."""
    program = (
        "import sys\n"
        "from mutants import runner\n"
        f"runner.ROOMS, runner.LIMIT, runner.warm = {{'hubbub.ledger.readings': ({str(test)!r},)}}, 3, lambda: None\n"
        "sys.exit(runner.main())"
    )
    return _python("-c", program, "hubbub.ledger.readings", "--total", "1", *arguments)


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])
    environment = os.environ | {"PYTHONPATH": path}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=TESTS, env=environment, capture_output=True, text=True, check=False)


def test_a_hundred_privacy_bugs_of_distinct_kinds_are_planted() -> None:
    assert len({bug.what for bug in BUGS}) == len(BUGS) >= 100
    for bug in BUGS:
        assert source_of(bug.module).count(bug.old) == 1, f"plant again: {bug}"
        file, _, name = bug.found_by.partition("::")
        assert f"def {name.partition('[')[0]}(" in (TESTS.parent / file).read_text(), bug


def test_planted_bugs_are_found_by_the_tests_they_name() -> None:
    """Each twentieth; the soak runs all. A module that no longer works at all is not a bug that a test found."""
    ran = told_by_the_runner("--bugs", "--every", "20")
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.soak
def test_every_planted_bug_is_found() -> None:
    ran = told_by_the_runner("--bugs")
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.soak
def test_at_least_95_percent_of_changes_are_noticed() -> None:
    """Twelve changes of each module of pricing, bounding, SQL and charging, chosen by a fixed seed."""
    ran = told_by_the_runner("--sample", "12", "--seed", "7")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_room_that_fails_with_nothing_changed_ends_the_run(tmp_path: Path) -> None:
    """Else it would seem to notice every change."""
    room = tmp_path / "test_red.py"
    room.write_text("def test_red():\n    assert False\n")
    ran = told_of_one_room(room)
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert "RED at" in ran.stdout
    assert "test_red.py::test_red" in ran.stdout
    assert "killed" not in ran.stdout


ONCE = "import pathlib; once = pathlib.Path(__file__).with_name('once'); a = once.exists(); once.touch(); assert a"
"""Fails the first time, which is with the change, and passes the second time, with nothing changed."""


@pytest.mark.parametrize(
    ("body", "counted", "code"),
    [
        (ONCE, "1 of 1 changes killed, 0 survived, 0 endless", 0),
        ("assert False", "0 of 1 changes killed, 1 survived, 0 endless", 1),
        ("pass", "0 of 1 changes killed, 1 survived, 0 endless", 1),
        ("while True: pass", "0 of 1 changes killed, 0 survived, 1 endless", 1),
    ],
)
def test_killed_survived_and_endless_are_counted_apart(tmp_path: Path, body: str, counted: str, code: int) -> None:
    """What fails with nothing changed as well says nothing of the change."""
    room = tmp_path / "test_room.py"
    room.write_text(f"def test_room():\n    {body}\n")
    ran = told_of_one_room(room, "--unchecked")
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert counted in ran.stdout.splitlines(), ran.stdout + ran.stderr


def test_a_sample_says_between_what_shares_of_all_changes_are_killed() -> None:
    """Clopper and Pearson's interval, as in tables of it."""
    assert share_killed(95, 100) == pytest.approx((0.8872, 0.9836), abs=1e-4)
    assert share_killed(10, 10) == pytest.approx((0.6915, 1.0), abs=1e-4)
    assert share_killed(0, 10) == pytest.approx((0.0, 0.3085), abs=1e-4)


def test_the_changes_tried_so_far_are_an_even_sample_of_all() -> None:
    """Drawn in an order of chance, not module by module: what was stopped can be counted."""
    some = list(drawn(list(ROOMS), 200, 3))
    assert len({(module, change.number) for module, changed in some for change in changed}) == 200
    assert len({module for module, _ in some[:40]}) > 10


def test_what_is_written_into_a_module_leaves_the_order_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [(module, change.what) for module, (change,) in drawn(list(ROOMS), 100, 3)]
    real = runner.source_of
    monkeypatch.setattr(runner, "source_of", lambda module: f"MORE = 7 + 8\n{real(module)}")
    after = [(module, change.what) for module, (change,) in drawn(list(ROOMS), 100, 3)]
    kept = [one for one in before if one in after]
    assert [one for one in after if one in before] == kept
    assert len(kept) > 80


SOURCE = """
def outer(x):
    \"\"\"Says nothing.\"\"\"
    if x > 3:
        return [y for y in range(x)
                if y]
    elif x:
        def inner():
            return x + 1
        return inner
    return None
TABLE = {1: lambda: 2}
"""


def test_a_statement_is_noted_when_a_call_comes_past_it() -> None:
    tree = ast.parse(SOURCE)
    owner = owners(tree)
    at = {node.lineno: owner[id(node)] for node in ast.walk(tree) if isinstance(node, ast.stmt)}
    assert at[2] is at[12] is None  # a module's own statements run for every test
    noted = list[str]()
    names = {NOTE: noted.append}
    exec(compile(noting(SOURCE, "m"), "m", "exec"), names)
    assert noted == []
    for x, lines in ((5, [4, 5]), (1, [4, 7, 8, 10]), (0, [4, 7, 11])):
        noted.clear()
        inner = names["outer"](x)
        assert noted == [f"m {at[line]}" for line in lines]
    names["outer"](1)()
    assert noted[-1] == f"m {at[9]}"
    both = statements(SOURCE)
    numbers = [change.number for change in changes(SOURCE, texts=False) if change.line in (5, 6)]
    assert {both[number] for number in numbers} == {at[5]}
    lines_away = "\n" * 7 + SOURCE
    assert statements(lines_away) == both  # known by their texts, wherever they stand
    del inner


def test_the_tests_that_come_past_a_statement_are_run_first_and_the_rest_of_their_files_last() -> None:
    lines = ["past\t\tm imported", *(f"time\tt.py::{name}\t0.25" for name in "abb"), "past\tt.py::b\tm s"]
    noted = {"t.py": read(lines, "text"), "u.py": read(["time\tu.py::c\t0.1", "past\tu.py::c\tm s"], "text"),
             "v.py": read(["time\tv.py::d\t1"], "text")}  # fmt: skip
    assert noted["t.py"].seconds == {"t.py::a": 0.25, "t.py::b": 0.5}
    room = ["t.py", "u.py", "v.py"]
    first = [("u.py", ["u.py::c"]), ("t.py", ["t.py::b"])]
    assert picked(room, noted, "m s", {}) == [*first, ("t.py", ["t.py::a"])]
    assert picked(room, noted, "m s", {"t.py": 2})[:2] == first[::-1]  # what killed before is run before
    assert picked(room, noted, "m imported", {}) == [("t.py", ["t.py::a", "t.py::b"])]
    for unknown in (None, "m new"):
        assert picked(room, noted, unknown, {}) == [(file, None) for file in room]


def test_what_is_recorded_counts_while_its_function_and_its_test_stand(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_a(): ...\n")
    kept, source = tmp_path / "record.tsv", "def f():\n    return 1 + 2\n\n\ndef g():\n    return 3\n"
    name = ("m", "f: 1 -> 2", 0, around(source, 2))
    Record(kept, tmp_path).add(Line(*name, "survived", "survived"))
    assert Record(kept, tmp_path).known(*name) is None  # what survived is tried anew
    again = Record(kept, tmp_path)
    again.add(Line(*name, again.first(*name) or KILLED, KILLED, "test_a.py::test_a[1]"))
    known = Record(kept, tmp_path).known(*name)
    assert known is not None
    assert (known.first, known.last) == ("survived", KILLED)
    assert Record(kept, tmp_path).telling("m") == {"test_a.py": 1}
    moved = around(f"\n\n{source.replace('3', '4')}", 4)
    assert moved == around(source, 2) != around(source.replace("2", "3"), 2)
    (tmp_path / "test_a.py").write_text("def test_b(): ...\n")
    assert Record(kept, tmp_path).known(*name) is None


def test_every_change_that_is_left_out_is_one_and_has_its_reason() -> None:
    for module, same in EQUIVALENT.items():
        every = {change.what for change in changes(source_of(module), texts=module.startswith(TEXTS))}
        assert set(same) <= every, module
        assert all(same.values())


@pytest.mark.parametrize("module", ROOMS)
def test_every_change_gives_a_module_that_compiles_and_is_another(module: str) -> None:
    source = source_of(module)
    every = changes(source, texts=module.startswith(TEXTS))
    assert len(every) > 20
    assert len({change.number for change in every}) == len(every)
    for change in every[:: max(1, len(every) // 10)]:
        compile(mutated(source, change.number), module, "exec")
