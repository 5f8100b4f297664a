"""The schedule: whatever runs do, nothing ends after its release, and what is told before is the same.

The simulator knows two processes a lane, runs that end by themselves or are killed, and respawns. It also finds what
is wrong with the two schedules that look right: a queue that runs ahead, and one spare process for all lanes.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings, strategies as st

from hubbub.errors import ParameterError
from hubbub.ledger.schedule import Moment, Slot, place

TICK = 7


@dataclass(frozen=True)
class Asked:
    """When, its answer time, and how long its run would take: the one thing that depends on rows."""

    at: int
    length: int
    takes: int
    who: int = 0


def slots(asked: list[Asked], lanes: int) -> list[Slot]:
    free, found = [0] * lanes, []
    for one in asked:
        slot = place(Moment(one.at, one.at, "b"), one.length, free, TICK)
        free[slot.lane] = slot.ends
        found.append(slot)
    return found


def simulated(
    asked: list[Asked], lanes: int, respawn: int, *, spares: int | None = None, each: int = 2
) -> list[tuple[int, int]]:
    """When each run began and ended. spares: so many processes beside one a lane, shared; else so many each lane.

    Every process is ended at the end of its window, and ready `respawn` later.
    """
    own = [[0] * each for _ in range(lanes)]
    pool = [0] * (lanes + (spares or 0))
    found = []
    for one, slot in zip(asked, slots(asked, lanes), strict=True):
        ready = own[slot.lane] if spares is None else pool
        which = min(range(len(ready)), key=lambda k: ready[k])
        begins = max(slot.starts, ready[which])
        ends = min(begins + one.takes, begins + one.length)
        ready[which] = max(slot.ends, ends) + respawn
        found.append((begins, ends))
    return found


def run_ahead(asked: list[Asked], lanes: int) -> list[int]:
    """When runs end if each begins as soon as any process is free, the two analysts in turn."""
    free, left, ends = [0] * lanes, list(range(len(asked))), dict[int, int]()
    turn = 0
    while left:
        now = min(free)
        here = [i for i in left if asked[i].at <= now] or [min(left, key=lambda i: asked[i].at)]
        i = next((i for i in here if asked[i].who == turn), here[0])
        turn = 1 - asked[i].who
        lane = free.index(now)
        free[lane] = ends[i] = max(now, asked[i].at) + min(asked[i].takes, asked[i].length)
        left.remove(i)
    return [ends[i] for i in range(len(asked))]


def random_schedule(seed: int) -> tuple[list[Asked], int]:
    coin = random.Random(seed)
    at, found = 0, []
    for _ in range(coin.randint(1, 14)):
        at += coin.choice([0, 0, 1, 3, 10, 40])
        length = coin.choice([10, 20, 20, 35])
        found.append(Asked(at, length, coin.choice([1, length // 2, length, 10 * length]), coin.randint(0, 1)))
    return found, coin.randint(1, 3)


def test_nothing_ends_after_its_release_in_four_thousand_random_schedules():
    for seed in range(4000):
        asked, lanes = random_schedule(seed)
        each = 2 + seed % 3
        respawn = (each - 1) * min(one.length for one in asked)
        runs = simulated(asked, lanes, respawn, each=each)
        for slot, (begins, ends) in zip(slots(asked, lanes), runs, strict=True):
            assert begins == slot.starts, seed
            assert ends <= slot.ends <= slot.due < slot.ends + TICK, seed


_ASKED = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 40), st.integers(1, 90)), min_size=1, max_size=25)


@settings(max_examples=300, deadline=None)
@given(_ASKED, st.integers(1, 5), st.integers(2, 8))
def test_nothing_ends_after_its_release_whatever_hypothesis_thinks_of(gaps, lanes, each):
    asked, at = [], 0
    for gap, length, takes in gaps:
        at += gap
        asked.append(Asked(at, length, takes))
    runs = simulated(asked, lanes, (each - 1) * min(one.length for one in asked), each=each)
    assert all(b == s.starts and e <= s.due for s, (b, e) in zip(slots(asked, lanes), runs, strict=True))


@settings(max_examples=200, deadline=None)
@given(_ASKED, st.integers(1, 5), st.integers(1, 1000))
def test_the_schedule_knows_nothing_of_how_long_runs_take(gaps, lanes, other):
    at, one, two = 0, [], []
    for gap, length, takes in gaps:
        at += gap
        one.append(Asked(at, length, takes))
        two.append(Asked(at, length, takes * other))
    assert slots(one, lanes) == slots(two, lanes)


@settings(max_examples=200, deadline=None)
@given(_ASKED, st.integers(1, 5))
def test_starts_come_in_the_order_of_submission_and_no_lane_runs_two_at_once(gaps, lanes):
    at, asked = 0, []
    for gap, length, takes in gaps:
        at += gap
        asked.append(Asked(at, length, takes))
    found = slots(asked, lanes)
    assert [s.starts for s in found] == sorted(s.starts for s in found)
    for lane in range(lanes):
        mine = [s for s in found if s.lane == lane]
        assert all(a.ends <= b.starts for a, b in itertools.pairwise(mine))


def test_the_simulator_finds_that_one_spare_for_several_lanes_is_late():
    late = 0
    for seed in range(500):
        coin = random.Random(seed)
        asked = [Asked(at, 3, coin.choice([1, 100])) for at in sorted(coin.randrange(20) for _ in range(8))]
        runs = simulated(asked, 2, 2, spares=1)
        late += any(ends > slot.due for slot, (_, ends) in zip(slots(asked, 2), runs, strict=True))
    assert late > 20


def test_the_simulator_finds_that_a_queue_that_runs_ahead_in_turns_is_late():
    late = 0
    for seed in range(4000):
        asked, lanes = random_schedule(seed)
        whole = [replace(one, takes=one.length) for one in asked]
        late += any(end > told for told, end in zip(run_ahead(whole, lanes), run_ahead(asked, lanes), strict=True))
    assert late > 40


def test_a_respawn_longer_than_the_answer_time_is_late():
    """What `serve` refuses."""
    asked = [Asked(0, 10, 100)] * 5
    runs = simulated(asked, 1, 25)
    assert any(ends > slot.due for slot, (_, ends) in zip(slots(asked, 1), runs, strict=True))


def test_a_clock_set_forward_releases_nothing_early_and_one_set_back_neither():
    slot = place(Moment(1000, 50, "b"), 100, [0], 10)
    assert slot.due == 1100
    assert slot.time(Moment(5000, 60, "b")) == 1010  # set forward: the other clock says that 10 have gone
    assert slot.time(Moment(900, 500, "b")) == 900  # set back
    assert slot.time(Moment(1100, 3, "another start")) == 1100


@pytest.mark.parametrize(("free", "length", "tick"), [([], 1, 1), ([0], 0, 1), ([0], 1, 0)])
def test_a_schedule_without_lanes_or_lengths_is_refused(free, length, tick):
    with pytest.raises(ParameterError, match="a schedule needs"):
        place(Moment(0, 0, ""), length, free, tick)
