"""Tables of Spark in the service: their runner is their driver, which is not shut in, and that is said.

Here no Spark is started: the rows of a driver are where its cluster is. What is looked at is how a runner of such a
table is made, and what it says of its walls.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from hubbub.cli.serve import shut_in
from hubbub.ledger.policy import load_policy
from hubbub.service import lanes, runner
from hubbub.service.lanes import Lanes

POLICY = """
[ledger]
file = "l.db"
[budget]
epsilon = 1
[tables.v]
source = "spark:clinic.visits"
unit = "id"
max_groups = 1
max_rows = 2
[tables.v.columns]
x = { between = [0, 50] }
"""


@pytest.fixture
def policy(tmp_path: Path):
    file = tmp_path / "hubbub.toml"
    file.write_text(POLICY)
    return load_policy(file)


def test_a_runner_of_spark_is_not_shut_in_and_says_so(policy, monkeypatch):
    confined = []
    monkeypatch.setattr(runner, "confine", lambda **given: confined.append(given))
    opened = SimpleNamespace(_data=SimpleNamespace(), alone=lambda: None)
    monkeypatch.setattr("hubbub.session.runner.Runner", lambda tables: opened)
    monkeypatch.setattr("hubbub.session.empty.schema_of", lambda data: {"v": {}})
    monkeypatch.setattr("hubbub.noise.set_mode", lambda mode: None)
    monkeypatch.setattr("hubbub.engines.duckdb.bounds.bound", lambda **given: None)
    _, schema, held = runner._opened(policy, {})
    assert (confined, schema) == ([], {"v": {}})
    assert "files NOT shut in (no Landlock), memory NOT hidden, new rights possible, network open" in shut_in(held)


def test_a_runner_of_spark_is_started_by_itself_and_knows_where_java_is(policy, monkeypatch):
    """Java's threads do not outlive a fork; and a driver needs what its cluster is reached by."""
    started = []

    class Popen:
        pid = 1

        def __init__(self, command, **more):
            started.append((command[-2], more["env"]))

        def kill(self): ...
        def wait(self): ...
        def poll(self): ...

    class Nursery:
        works = staticmethod(lambda: True)

        def __init__(self, *_):
            raise AssertionError("forked")

    monkeypatch.setattr(lanes.subprocess, "Popen", Popen)
    monkeypatch.setattr(lanes, "Nursery", Nursery)
    monkeypatch.setenv("JAVA_HOME", "/java")
    made = Lanes(policy, lambda one, outcome: None)
    with contextlib.closing(made):
        assert [what for what, _ in started] == ["hubbub.service.runner"] * 2
        assert all(own["JAVA_HOME"] == "/java" for _, own in started)
