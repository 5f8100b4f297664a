"""How long a runner takes to be gone follows from its rows: from its memory, and from what it put aside in its folder.

A runner of two gigabytes takes a third of a second to be gone, three gigabytes of files as long again. Whatever takes
how long there, the clock goes on: another runner is there, what comes next starts, and nobody who reads an answer at
its release waits.
"""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

import hubbub as hb
from hubbub.ledger.policy import load_policy
from hubbub.service import lanes as lanes_of
from hubbub.service.lanes import Lanes
from service.test_before_asking import policy as write_policy


@pytest.fixture
def lanes(tmp_path):
    file = write_policy(tmp_path)
    hb.Session.from_policy(file, create_ledger=True).close()
    made = Lanes(load_policy(file), lambda one, outcome: None)
    made.wait()
    yield made
    made.close()


def at_once(act):
    """What an act brought; nothing where it waits for something, and the test holds that for a minute."""
    brought = []
    thread = threading.Thread(target=lambda: brought.append(act()), daemon=True)
    thread.start()
    thread.join(20)
    return brought


@pytest.mark.parametrize("slow", ["memory", "folder"])
def test_the_clock_waits_for_nothing_of_a_runner_that_is_ended(lanes, monkeypatch, slow):
    gone, first = threading.Event(), lanes._processes[0]
    if slow == "memory":
        wait = first.popen.wait
        monkeypatch.setattr(first.popen, "wait", lambda: (gone.wait(60), wait()))
    else:
        removed = lanes_of.shutil.rmtree
        monkeypatch.setattr(lanes_of.shutil, "rmtree", lambda *a, **more: (gone.wait(60), removed(*a, **more)))
    first.ends = time.monotonic() - 1  # it was given a question, and its time is over
    try:
        assert at_once(lanes.sweep) == [None]
        assert first not in lanes._processes
        assert len(lanes.pids) == 2
        nothing = SimpleNamespace(to_wire=str)
        asked = SimpleNamespace(slot=SimpleNamespace(lane=0))
        assert at_once(lambda: lanes.start(asked, nothing, 5.0)) == [True]
    finally:
        gone.set()


def test_what_was_killed_is_gone_when_the_lanes_are_closed(lanes):
    killed = list(lanes._processes)
    lanes.close()
    assert all(one.popen.poll() is not None for one in killed)
    assert not any(one.is_alive() for one in lanes._ending)
