"""One clerk at a time on one ledger, by whatever name: a second one would take for dead what the first one runs."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.errors import PolicyError
from hubbub.ledger.policy import Policy, load_policy
from hubbub.service import clerk
from service.helpers import COUNT
from service.test_before_asking import policy as write_policy
from service.test_office import NoLanes

HOLDS = """
import sys, time
from pathlib import Path
from hubbub.ledger.policy import load_policy
from hubbub.service.alone import Alone
held = Alone(load_policy(Path(sys.argv[1])))
print("held", flush=True)
time.sleep(60)
"""


class StartedLanes(NoLanes):
    """Runners that take what they are given, and never end it."""

    def start(self, one: Any, order: Any, seconds: float) -> bool:
        return True


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    file = write_policy(tmp_path)
    hb.Session.from_policy(file, create_ledger=True).close()
    return load_policy(file)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clerk, "Lanes", StartedLanes)
    monkeypatch.setattr(clerk, "keep_ready", lambda: None)
    if hasattr(clerk, "Alone"):
        monkeypatch.setattr(clerk, "Alone", partial(clerk.Alone, patience=0.1))


def test_a_second_clerk_takes_nothing_that_the_first_one_runs(policy: Policy, at_once: None) -> None:
    with closing(clerk.Clerk(policy)) as first:
        asked = first.desk.ask("ada", COUNT, {"epsilon": "1"}, "one")
        first.desk.tick()
        (running,) = first.ledger.timetable.running_now()
        with pytest.raises(PolicyError, match=rf"another clerk \(process {os.getpid()}\) serves this ledger"):
            clerk.Clerk(policy).close()
        assert first.ledger.timetable.stage(running.id, "{}"), "its outcome would not be taken any more"
        assert asked["state"] == "asked"
    clerk.Clerk(policy).close()  # it has ended


def test_by_another_way_to_the_same_ledger_it_is_the_same(policy: Policy, tmp_path: Path, at_once: None) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / Path(policy.ledger).name).symlink_to(policy.ledger)
    text = policy.path.read_text().replace(f'"{Path(policy.ledger).name}"', f'"elsewhere/{Path(policy.ledger).name}"')
    other = policy.path.with_name("other.toml")
    other.write_text(text)
    assert load_policy(other).ledger != policy.ledger
    with closing(clerk.Clerk(policy)), pytest.raises(PolicyError, match="serves this ledger"):
        clerk.Clerk(load_policy(other)).close()


def test_a_clerk_that_was_killed_keeps_nobody_out(policy: Policy, at_once: None) -> None:
    held = subprocess.Popen([sys.executable, "-P", "-c", HOLDS, str(policy.path)], stdout=subprocess.PIPE, text=True)
    with held:
        assert held.stdout is not None
        assert held.stdout.readline() == "held\n"
        with pytest.raises(PolicyError, match=rf"process {held.pid}\)"):
            clerk.Clerk(policy).close()
        held.kill()
    clerk.Clerk(policy).close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the lock of the file beside it is all there is")
@pytest.mark.parametrize("how", ["the lock is removed", "the lock is another file", "another name"])
def test_neither_a_lost_lock_nor_another_name_lets_a_second_clerk_in(policy: Policy, at_once: None, how: str) -> None:
    held = subprocess.Popen([sys.executable, "-P", "-c", HOLDS, str(policy.path)], stdout=subprocess.PIPE, text=True)
    with held:
        assert held.stdout is not None
        assert held.stdout.readline() == "held\n"
        ledger, second = Path(policy.ledger), policy
        lock = ledger.with_name(f"{ledger.name}-clerk")
        if how == "another name":
            other, name = policy.path.with_name("other.toml"), ledger.with_name("other.db")
            os.link(ledger, name)
            other.write_text(policy.path.read_text().replace(f'"{ledger.name}"', f'"{name.name}"'))
            second = load_policy(other)
        elif how == "the lock is removed":
            lock.unlink()
        else:
            lock.rename(lock.with_name("lock.old"))
            lock.write_text("")
        with pytest.raises(PolicyError, match=r"another clerk .* serves this ledger"):
            clerk.Clerk(second).close()
        held.kill()


def test_one_that_cannot_start_keeps_nobody_out(policy: Policy, at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(clerk, "keep_ready", lambda: 1 // 0)
        broken.setattr(StartedLanes, "close", lambda self: None)
        with pytest.raises(ZeroDivisionError):
            clerk.Clerk(policy)
    clerk.Clerk(policy).close()
