"""The machine's wall clock is set back: the ledger's time stands still then, and the service goes on all the same, by
the clock that nobody sets.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from hubbub.ledger import hash_chain
from hubbub.ledger.schedule import SECOND, Moment, SteadyClock, instant
from service.helpers import COUNT, START, World

AT = {"epsilon": "0.1"}


class SetBack(World):
    """A world whose wall clock may be set."""

    def set(self, monkeypatch: pytest.MonkeyPatch, ahead: float) -> None:
        """The wall clock is so many seconds ahead from now on."""
        monkeypatch.setattr(hash_chain, "now", lambda: instant(START + round((self.clock.seconds + ahead) * SECOND)))

    def told_after(self, name: str) -> float:
        """How long a question takes until it is told, in seconds."""
        began = self.clock.seconds
        one = self.desk.ask("ada", f"{COUNT} WHERE x > {len(name)}", AT, name)
        while self.desk.answer("ada", one["id"])["state"] == "asked":
            assert self.clock.seconds < began + 30
            self.until(self.clock.seconds + 0.5)
        assert self.desk.answer("ada", one["id"])["state"] == "answered"
        return round(self.clock.seconds - began, 3)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SetBack]:
    made = SetBack(tmp_path / "ledger.db", monkeypatch)
    yield made
    made.close()


@pytest.mark.parametrize("back", [0.4, 1.5, 3.0, 3600.0, 20 * 3600.0])
def test_a_clock_that_is_set_back_stops_nothing(world: SetBack, monkeypatch: pytest.MonkeyPatch, back: float) -> None:
    assert world.told_after("a") == 5
    world.until(7)
    world.set(monkeypatch, -back)
    assert 5 <= world.told_after("bb") <= 6
    world.restart()  # of the service alone
    assert 5 <= world.told_after("ccc") <= 6
    world.ledger.timetable.stop()
    world.restart()
    world.set(monkeypatch, 0)  # and it is set right again
    assert 5 <= world.told_after("dddd") <= 6


def test_a_clock_that_is_set_back_amid_a_run_costs_no_answer(world: SetBack, monkeypatch: pytest.MonkeyPatch) -> None:
    world.takes = 4.0
    one = world.desk.ask("ada", COUNT, AT, "r")
    world.until(2)
    world.set(monkeypatch, -3600)
    world.until(4.9)
    assert world.desk.answer("ada", one["id"])["state"] == "asked"
    world.until(6.1)
    assert world.desk.answer("ada", one["id"])["state"] == "answered"


def test_a_clock_that_was_ahead_and_is_set_right_stops_nothing(world: SetBack, monkeypatch: pytest.MonkeyPatch) -> None:
    world.set(monkeypatch, 20 * 3600)
    assert world.told_after("a") == 5
    world.set(monkeypatch, 0)
    assert 5 <= world.told_after("bb") <= 6


def test_no_moment_is_ahead_of_both_clocks_and_none_goes_back() -> None:
    """Random settings of the wall clock and threads that come late: what has come has come by the running clock."""
    luck = random.Random(7)
    for _ in range(300):
        clock, ahead, running, head, told = SteadyClock(), 0, 0, 0, list[Moment]()
        greatest = 0
        for _ in range(40):
            running += luck.choice((1, 1000, SECOND // 3, 2 * SECOND, 90 * SECOND))
            if luck.random() < 0.2:
                ahead += luck.choice((-1, 1)) * luck.choice((1000, SECOND // 2, 3 * SECOND, 3600 * SECOND))
                greatest = max(greatest, ahead)
            now = 10_000 * SECOND + running + ahead
            head = max(head, now) if luck.random() < 0.5 else head
            late = luck.choice((0, 0, 500))
            told.append(clock.moment(max(now - late, head), running, "b"))
        assert all(a.wall <= b.wall for a, b in pairwise(told))
        assert all(one.wall <= 10_000 * SECOND + one.running + greatest for one in told)
        assert all(b.wall - a.wall >= b.running - a.running - SECOND for a, b in pairwise(told))
