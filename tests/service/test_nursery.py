"""Runners are forked from a process that has loaded what they need: quickly, apart from each other, and again after a
kill."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

import hubbub as hb
from hubbub.ledger.policy import load_policy
from hubbub.service import lanes as lanes_of
from hubbub.service.frames import receive, send
from hubbub.service.lanes import Lanes
from hubbub.service.nursery import Nursery
from service.test_before_asking import policy as write_policy

pytestmark = pytest.mark.skipif(not Nursery.works(), reason="the system has no handles of processes")


@pytest.fixture
def policy(tmp_path):
    file = write_policy(tmp_path)
    hb.Session.from_policy(file, create_ledger=True).close()
    return load_policy(file)


def test_runners_that_are_forked_are_ready_soon_and_hold_nothing_of_each_other(policy):
    made = Nursery({name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ})
    runners, times = [], []
    for _ in range(3):
        began = time.monotonic()
        here, there = socket.socketpair()
        folder = tempfile.mkdtemp()
        runners.append((here, made.fork(there, {"TMPDIR": folder, "HUBBUB_APPLICATION": "test"}), folder))
        there.close()
        send(here, {"policy": str(policy.path), "objects": {}})
        assert "v" in receive(here)["ready"]
        times.append(time.monotonic() - began)
    for _, runner, _ in runners:
        assert runner.poll() is None
        with suppress(PermissionError):  # it is undumpable: only root may look
            held = [os.readlink(each) for each in Path(f"/proc/{runner.pid}/fd").iterdir()]
            assert sum(each.startswith("socket:") for each in held) == 1
    first, second = runners[0], runners[1]
    first[1].kill()
    first[1].wait()
    assert first[1].poll() == 0
    assert second[1].poll() is None
    for here, runner, _ in runners:
        here.close()
        runner.kill()
        runner.wait()
    made.close()
    assert min(times) < 10


def test_a_nursery_that_is_killed_is_started_again(policy, monkeypatch):
    lanes = Lanes(policy, lambda one, outcome: None)
    try:
        lanes.wait()
        first = lanes._nursery
        os.kill(first.pid, 9)
        first._popen.wait()
        lanes.grow(3)
        lanes.wait()
        assert lanes._nursery is not first
        assert len(lanes.pids) == 3
    finally:
        lanes.close()


def test_without_a_nursery_runners_start_by_themselves(policy, monkeypatch):
    monkeypatch.setattr(lanes_of.Nursery, "works", staticmethod(lambda: False))
    lanes = Lanes(policy, lambda one, outcome: None)
    try:
        lanes.wait()
        assert lanes._nursery is None
        assert len(lanes.pids) == 2
    finally:
        lanes.close()


def test_a_nursery_that_keeps_a_thread_forks_nothing(monkeypatch):
    from hubbub.service import nursery

    monkeypatch.setattr(nursery, "_NO_THREADS", {"JE_ARROW_MALLOC_CONF": "background_thread:true"})
    made = Nursery({name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ})
    here, there = socket.socketpair()
    with pytest.raises(OSError):
        made.fork(there, {"TMPDIR": "/tmp"})
    for each in (here, there):
        each.close()
    made.close()


LEAVING = """
import os, signal, socket, sys, time
from hubbub.service import nursery
nursery._load = lambda: None
def run(handle, environment):
    line = socket.socket(fileno=handle)
    os.setsid()
    if os.fork() == 0:
        line.send(str(os.getpid()).encode())
    time.sleep(600)
nursery._run = run
nursery.main(sys.argv[1:])
"""


def test_what_a_runner_leaves_behind_ends_with_it(monkeypatch):
    """A process that it forked, in a session of its own."""
    popen = subprocess.Popen
    with monkeypatch.context() as patched:
        leaving = lambda command, **more: popen([sys.executable, "-c", LEAVING, command[-1]], **more)  # noqa: E731
        patched.setattr(subprocess, "Popen", leaving)
        made = Nursery({name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ})
    here, there = socket.socketpair()
    runner = made.fork(there, {})
    there.close()
    here.settimeout(60)
    left = os.pidfd_open(int(here.recv(20)))
    assert not select.select([left], [], [], 1.2)[0]  # while its runner runs, it is let be
    runner.kill()
    runner.wait()
    assert select.select([left], [], [], 60)[0]
    os.close(left)
    here.close()
    made.close()
