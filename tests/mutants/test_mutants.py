"""Tests of the tests: planted privacy bugs are found, and changes of the source are noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mutants.bugs import BUGS
from mutants.equivalents import EQUIVALENT
from mutants.operators import changes, mutated
from mutants.rooms import ROOMS, TEXTS
from mutants.runner import source_of

TESTS = Path(__file__).parents[1]


def told_by_the_runner(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The runner in a process of its own: here hubbub is imported already, and a fork would have the real one."""
    path = os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])
    command = [sys.executable, "-m", "mutants.runner", *arguments]
    return subprocess.run(
        command, cwd=TESTS, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )


def test_a_hundred_privacy_bugs_of_distinct_kinds_are_planted() -> None:
    assert len({bug.what for bug in BUGS}) == len(BUGS) >= 100
    for bug in BUGS:
        assert source_of(bug.module).count(bug.old) == 1, f"plant again: {bug}"
        file, _, name = bug.found_by.partition("::")
        assert f"def {name.partition('[')[0]}(" in (TESTS.parent / file).read_text(), bug


def test_planted_bugs_are_found_by_the_tests_they_name() -> None:
    """Each tenth; the soak runs all. A module that no longer works at all is not a bug that a test found."""
    ran = told_by_the_runner("--bugs", "--every", "10")
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
