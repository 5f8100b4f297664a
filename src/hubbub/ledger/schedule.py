"""When an answer leaves: computed from the times of submissions and from declarations alone, never from a run.

Question i is submitted at s_i; its answer time D_i is declared. Lanes are taken strictly in the order of submission:

    v_i = max(s_i, the earliest time at which a lane is free)          its virtual start, on that lane
    the lane is free again at v_i + D_i
    r_i = v_i + D_i, rounded up to a tick                              its release

**A run starts at v_i, not before**, and is ended at v_i + D_i at the latest; its answer counts only if it came before.

**Theorem.** Let each lane have k >= 2 processes, and let a process that was ended be ready again within
R <= (k - 1) min D. Then at every v_i a process of the lane is ready, every run has ended by r_i, and what is told of a
question at any time before r_i is the same whatever the runs did.

*Proof.* The runs of a lane have windows [v, v + D] that do not overlap. Between the end of one and the start of the
k-th after it lie k - 1 whole windows, (k - 1) min D >= R in all; so the process of the first is ready when the k-th
begins. v_i, r_i and the lane are functions of s_1..s_i and D_1..D_i. Nothing else is told before r_i. QED

(A queue that runs ahead of its virtual times, or one spare process for several lanes, is late for some schedules;
`tests/service/test_schedule.py` finds them.) Times are whole microseconds.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

from hubbub.errors import ParameterError, PolicyError

__all__ = [
    "SECOND", "Fate", "Moment", "Queue", "QueueFull", "Slot", "SteadyClock", "boot_clock", "check_room", "free_lanes",
    "instant", "microseconds", "place",
]  # fmt: skip

SECOND: Final = 1_000_000
Fate: TypeAlias = Literal["asked", "answered", "no answer"]
"""What is told of a question that was charged."""

_BEGAN: Final = datetime(1970, 1, 1, tzinfo=UTC)


class QueueFull(PolicyError):
    """As many of the analyst's wait as may, or the same in other words. retry_after: seconds until one is told."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(frozen=True)
class Moment:
    """Now, by two clocks, in microseconds. wall: since 1970; may be set. running: since the machine started, by a clock
    that nobody sets; boot: which start that was.
    """

    wall: int
    running: int
    boot: str


class SteadyClock:
    """The wall clock, but that it goes on by the running clock where it was set back, or stands still as the ledger's
    time does then. It is never ahead of what the running clock says of an earlier moment, and never goes back while the
    machine runs. Two readings that differ by a second, as those of two threads may, are of one and the same clock.

    >>> clock = SteadyClock()
    >>> [clock.moment(wall, running, "b").wall for wall, running in ((50, 7), (60, 17), (60, SECOND + 27))]
    [50, 60, 1000070]
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: Moment | None = None
        self._last = 0

    def since(self, at: Moment) -> None:
        """Go on from a moment of an earlier process."""
        with self._lock:
            if self._known is None or (self._known.boot == at.boot and self._known.wall < at.wall):
                self._known, self._last = at, at.wall

    def moment(self, wall: int, running: int, boot: str) -> Moment:
        """Now. wall: what the ledger's clock says."""
        with self._lock:
            known = self._known
            gone = wall if known is None or known.boot != boot else known.wall + running - known.running
            if wall >= gone or (wall > self._last and gone - wall <= SECOND):
                self._known = Moment(wall, running, boot)
            elif gone - wall <= SECOND:
                wall = max(wall, self._last)
            else:
                wall = gone
            self._last = wall
            return Moment(wall, running, boot)


@dataclass(frozen=True)
class Slot:
    """Where and when a question runs, and when its answer leaves. at: when that was computed.

    >>> slot = Slot(0, at=Moment(0, 500, "b"), starts=0, ends=40, due=50)
    >>> slot.time(Moment(60, 530, "b"))     # the wall clock was set forward by half
    30
    """

    lane: int
    at: Moment
    starts: int
    ends: int
    due: int

    def time(self, now: Moment) -> int:
        """The time that counts for it: what has come, has come by both clocks. After a restart of the machine there is
        the wall clock alone."""
        if now.boot != self.at.boot:
            return now.wall
        return min(now.wall, self.at.wall + now.running - self.at.running)


@dataclass(frozen=True)
class Queue:
    """The lanes, the tick of releases, and how much of one analyst may wait. Times in microseconds."""

    lanes: int = 1
    tick: int = SECOND // 10
    most: int = 20
    longest: int = 600 * SECOND


def check_room(mine: Sequence[Slot], length: int, queue: Queue, at: Moment) -> None:
    """By the virtual queue: a place is free when its answer is told. mine: what waits of the analyst's. length: of one
    more. Raises QueueFull."""
    taken = sum(slot.ends - slot.starts for slot in mine)
    if len(mine) < queue.most and (not mine or taken + length <= queue.longest):
        return
    first = min(slot.due - slot.time(at) for slot in mine)
    raise QueueFull(
        f"{len(mine)} of your questions wait, of {taken / SECOND:g} seconds in all; {queue.most} questions and "
        f"{queue.longest / SECOND:g} seconds may. The next one is told in {first / SECOND:.1f} seconds. Nothing was "
        "charged: ask again then.",
        max(1, -(-first // SECOND)),
    )


def place(now: Moment, length: int, free: Sequence[int], tick: int) -> Slot:
    """The slot of a question that is submitted now. length: its answer time. free: when each lane is free.

    >>> place(Moment(7, 0, "b"), 10, [5, 3], tick=4)
    Slot(lane=0, at=Moment(wall=7, running=0, boot='b'), starts=7, ends=17, due=20)
    >>> place(Moment(7, 0, "b"), 10, [12, 9], tick=4).starts
    9

    Raises:
        ParameterError: there is no lane, or a length that is not positive.
    """
    if not free or length < 1 or tick < 1:
        raise ParameterError(f"a schedule needs a lane, an answer time and a tick; found {free}, {length}, {tick}.")
    starts = [max(now.wall, at) for at in free]
    lane = min(range(len(free)), key=lambda k: (starts[k], k))
    ends = starts[lane] + length
    return Slot(lane, now, starts[lane], ends, -(-ends // tick) * tick)


def free_lanes(waiting: Sequence[Slot], lanes: int, at: Moment, tick: int) -> list[int]:
    """When each lane is free, by the wall clock: what was placed before that was set forward ends later by it.

    >>> free_lanes([Slot(0, Moment(0, 0, "b"), 0, 50, 50)], 1, Moment(1001, 1, "b"), tick=10)
    [1050]
    """
    free = [at.wall] * lanes
    for slot in waiting:
        if slot.lane < lanes:
            ahead = at.wall - slot.time(at)
            ends = slot.ends + (ahead if ahead > tick else 0)  # not for what two clocks differ always
            free[slot.lane] = max(free[slot.lane], ends)
    return free


def microseconds(text: str) -> int:
    """A time of the ledger's, since 1970.

    >>> microseconds("1970-01-01T00:00:01.000002Z")
    1000002
    """
    return (datetime.fromisoformat(text) - _BEGAN) // timedelta(microseconds=1)


def instant(time: int) -> str:
    """Such a time as the ledger writes it.

    >>> instant(1000002)
    '1970-01-01T00:00:01.000002Z'
    """
    return (_BEGAN + timedelta(microseconds=time)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def boot_clock() -> tuple[int, str]:
    """Microseconds since this machine started, by a clock that nobody sets, and which start that was."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock) // 1000, _boot()


@lru_cache(maxsize=1)
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return uuid.uuid4().hex  # of this process: then the wall clock alone counts after a restart
