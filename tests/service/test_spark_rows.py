"""Tables of Spark in the service: their runner is their driver, which is not shut in, and that is said.

Here no Spark is started: the rows of a driver are where its cluster is. What is looked at is how a runner of such a
table is made, and what it says of its walls.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hubbub.cli.serve import shut_in
from hubbub.ledger.policy import load_policy
from hubbub.service import lanes, runner
from hubbub.service.frames import receive, send
from hubbub.service.lanes import Lanes
from service.test_brought import Lane, process as waiting

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


DRIVER = """
import subprocess, sys, time
from types import SimpleNamespace
from hubbub.service import runner

java = subprocess.Popen([sys.executable, "-P", "-c", "input()"], stdin=subprocess.PIPE)

def executed(opened, order):
    java.kill()
    java.wait()
    time.sleep(1)  # it would be gone by now
    return "what became of it"

runner.load_policy = lambda path: None
runner._opened = lambda policy, objects: (SimpleNamespace(limit=lambda seconds: None), {"java": java.pid}, {})
runner._java, runner._executed = lambda: java, executed
sys.exit(runner.main([sys.argv[1]]))
"""


@pytest.fixture
def driver():
    """A runner whose Java is another process: the line to it, itself, and the number of that."""
    here, there = socket.socketpair()
    command = [sys.executable, "-P", "-c", DRIVER, str(there.fileno())]
    with here, subprocess.Popen(command, pass_fds=[there.fileno()]) as process:
        there.close()
        send(here, {"policy": "", "objects": {}})
        yield here, process, receive(here)["ready"]["java"]
        process.kill()


def test_a_driver_that_waits_ends_with_its_java(driver):
    """So its lane has another one by the next question, which would fail on this one, and be charged."""
    _, process, java = driver
    os.kill(java, signal.SIGKILL)
    assert process.wait(60) == 1


def test_a_driver_whose_java_ends_in_a_run_says_what_became_of_it(driver):
    line, process, _ = driver
    send(line, {"order": "", "seconds": 60.0})
    assert receive(line) == {"outcome": "what became of it"}
    assert process.poll() is None  # until the end of its slot, whatever it did


def test_a_process_that_is_gone_is_given_no_question():
    """The next look replaces it; what is asked before that runs on the other one of the lane."""
    one, order = SimpleNamespace(slot=SimpleNamespace(lane=0)), SimpleNamespace(to_wire=str)
    line, other = socket.socketpair()
    with line, other:
        gone, there = waiting(None, 0.0), waiting(line, 0.0)
        gone.ready = there.ready = True
        gone.popen = SimpleNamespace(poll=lambda: -9)
        assert Lane(gone, there).start(one, order, 5.0)
        assert (gone.ends, there.ends is not None) == (None, True)
        assert not Lane(gone).start(one, order, 5.0)
