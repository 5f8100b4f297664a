"""What the schedule of the service says of drawn acts, one after another, as recorded.

Questions, plans, ticks, what runs bring, restarts in good order and in none, clocks that are set, machines that start
anew. What is recorded: what each act returns or raises, and every slot, fate and line after them.
`HUBBUB_GOLDEN=write` writes it anew.
"""

from __future__ import annotations

import json
import re
import tempfile
import uuid
from fractions import Fraction
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from golden.kept import Kept
from hubbub.accounting import Cost
from hubbub.errors import HubbubError
from hubbub.ledger import charging, hash_chain, timetable
from hubbub.ledger.accounts import Total
from hubbub.ledger.budget import Budget
from hubbub.ledger.charge import Charge
from hubbub.ledger.schedule import SECOND, Queue, Slot, instant
from hubbub.ledger.store import Ledger
from hubbub.ledger.timetable import Asking, Scheduled

COUNT, ACTS = 40, 40
START = 1_790_000_000 * SECOND
SPACE, ANALYSTS, TOKEN = "pid", ("ada", "bob", "cy"), "1f0c5a7e"
QUEUES = [
    Queue(),
    Queue(lanes=2, tick=SECOND),
    Queue(lanes=3, tick=SECOND // 10, most=3),
    Queue(lanes=1, tick=SECOND, longest=12 * SECOND),
]


class _World:
    def __init__(self, at: int, folder: Path, by: pytest.MonkeyPatch) -> None:
        self.chance = Random(f"timetables {at}")
        self.time, self.running, self.boot = 0, 0, "boot"
        self.told, self.plan = list[str](), list[Asking]()
        ids = Random(f"ids {at}")
        made = SimpleNamespace(uuid4=lambda: uuid.UUID(int=ids.getrandbits(128)))
        for module in (charging, timetable):
            by.setattr(module, "uuid", made)
        by.setattr(hash_chain, "now", lambda: instant(START + self.time))
        self.queue, budget = self.chance.choice(QUEUES), self.chance.choice([Budget(4), Budget(4, "1e-6"), Budget(30)])
        rules: dict[str, Any] = self.chance.choice([{}, {"max_failures": 2}])
        self.shared = self.chance.random() < 0.7
        self.ledger = Ledger.open(folder / "t.db", budgets={SPACE: budget}, shared_answers=self.shared, **rules)
        self.ledger.timetable.running = lambda: (self.running, self.boot)
        self.ledger.steward.grant(SPACE, f"token:{TOKEN}", "1", author="sue")
        self.ledger.steward.grant(SPACE, "analyst:cy", "1/2", author="sue")
        self.told.append(f"{self.queue} {budget!r} {rules} {self.shared}")

    def pass_time(self) -> None:
        """Both clocks go on; now and then one of them does otherwise."""
        step = self.chance.choice([0, SECOND // 3, SECOND, 2 * SECOND, 2 * SECOND, 5 * SECOND])
        self.time, self.running = self.time + step, self.running + step
        match self.chance.random():
            case p if p < 0.03:
                self.time += 60 * SECOND  # set forward
            case p if p < 0.05:
                self.time, self.running = self.time + 90 * SECOND, self.running + 90 * SECOND  # a machine's sleep
            case p if p < 0.07:
                self.running, self.boot = 0, self.boot + "+"

    def asking(self) -> Asking:
        chance = self.chance
        key, capped = f"k{chance.randrange(4)}", chance.random() < 0.3
        charge = Charge(
            space=SPACE,
            dataset="visits",
            analyst=chance.choice(ANALYSTS),
            epsilon=Fraction(chance.choice([1, 2, 2, 4, 10]), 20),
            question_key=key,
            sql=f"SELECT {key}",
            details=chance.choice(["{}"] * 4 + [json.dumps({"token": TOKEN})]),
            request=chance.choice([None, None, None, "r", "q"]),
            purpose="a look",
        )
        words = {"sql": key, "now": chance.random(), "options": chance.choice([{}, {}, {}, {"params": 1}])}
        ask = json.dumps(words | ({"capped": True} if capped else {}))
        return Asking(charge, ask, chance.choice([SECOND, 3 * SECOND, 5 * SECOND]))

    def act(self) -> None:
        self.pass_time()
        does = self.chance.choice(DOES)
        self.told.append(does.__name__)
        try:
            self.told.append(f"    {does(self)}")
        except HubbubError as error:
            after = getattr(error, "retry_after", "")
            self.told.append(f"    {type(error).__name__}: {error} {after}".rstrip())


def _slot(slot: Slot) -> str:
    starts, ends, due = ((time - START) / SECOND for time in (slot.starts, slot.ends, slot.due))
    return f"{slot.lane}: {starts:g} {ends:g} {due:g}"


def _shown(one: Scheduled) -> str:
    kind = ("capped " if one.capped else "") + ("new" if one.new else "")
    return f"{one.id} {one.serial} {one.analyst} {one.sql} [{_slot(one.slot)}] paid by {one.paid_by} {kind}".rstrip()


def submit(world: _World) -> str:
    one = world.asking()
    world.told[-1] += (
        f" {one.charge.analyst} {one.charge.question_key} {one.charge.epsilon} {one.charge.request} {one.ask}"
    )
    fresh = world.chance.random() < 0.15
    submitted = world.ledger.timetable.submit(
        one.charge, ask=one.ask, length=one.length, queue=world.queue, shared=world.shared, fresh=fresh
    )
    return _shown(submitted)


def plan(world: _World) -> str:
    """Questions of one analyst that are charged as one; now and then the last plan again, or that and one more."""
    again = world.chance.random()
    asked = list(world.plan) if again < 0.4 else []
    if not asked or again < 0.2:
        several = [world.asking() for _ in range(world.chance.choice([1, 2, 3]))]
        whose = (asked or several)[0].charge.analyst
        asked += [
            Asking(_of(one.charge, whose, at + len(asked)), one.ask, one.length) for at, one in enumerate(several)
        ]
    world.plan, whose = asked, asked[0].charge.analyst
    cost = sum((Fraction(one.charge.epsilon) for one in asked), Fraction(0))
    block = Charge(space=SPACE, analyst=whose, epsilon=cost, kind="plan", sql="some", purpose="a look")
    done = world.ledger.timetable.submit_plan(block, asked, queue=world.queue, shared=world.shared)
    return "; ".join(map(_shown, done))


def _of(charge: Charge, analyst: str, at: int) -> Charge:
    request = f"p{at}" if charge.request is None else f"{charge.request}{at}"
    return Charge(
        space=SPACE, dataset=charge.dataset, analyst=analyst, epsilon=charge.epsilon, question_key=charge.question_key,
        sql=charge.sql, request=request, purpose="a look",
    )  # fmt: skip


def tick(world: _World) -> str:
    queue = world.queue if world.chance.random() < 0.5 else None
    return "; ".join(map(_shown, world.ledger.timetable.tick(queue)))


def stage(world: _World) -> str:
    """What a run brings: mostly of one that runs, and mostly an answer."""
    chance, times = world.chance, world.ledger.timetable
    running, all_of_them = times.running_now(), times.everybody()
    some = running if running and chance.random() < 0.85 else all_of_them
    if not some:
        return "nothing to run"
    one = chance.choice(some)
    payload = chance.choice(['{"n": 1}', '{"n": 1}', None])
    spend = world.ledger.record.entry(one.id).spend
    used = chance.choice([None, Total.of(Cost(Fraction(1, 40), Fraction(1, 3200))), spend + spend])
    staged = times.stage(one.id, payload, used=used, words=None if payload else "what the engine said")
    return f"{one.id} {payload} {None if used is None else used.written} {staged}"


def restart(world: _World) -> str:
    if world.chance.random() < 0.5:
        world.ledger.timetable.stop()
        world.pass_time()
        world.told[-1] += " after a stop"
    return "; ".join(map(_shown, world.ledger.timetable.restart(world.queue)))


def look(world: _World) -> str:
    times = world.ledger.timetable
    coming, now = times.next_time(), times.now()
    told = [f"next {None if coming is None else (coming - START) / SECOND:}", f"now {now.running} {now.boot}"]
    return " ".join([*told, *(f"{one.id} {times.fate(one)}" for one in times.running_now())])


DOES = [*[submit] * 8, *[tick] * 7, *[stage] * 5, *[plan] * 3, restart, look, look]


def _lines(ledger: Ledger) -> list[str]:
    """All that is said of questions and lines at the end."""
    times, record = ledger.timetable, ledger.record
    every = times.everybody()
    assert [times.find(one.id) for one in every] == every
    assert sorted(one.id for who in ANALYSTS for one in times.of(who)) == sorted(one.id for one in every)
    told = [f"{one.id} {times.fate(one)} {sorted(times.links(one))} {one.incident}" for one in every]
    told += [] if times.fates(every) == [times.fate(one) for one in every] else ["fates differ"]
    for entry in record.history():
        paid = record.paid(entry)
        told.append(f"{entry.serial} {entry.id} {entry.kind} {entry.state} {entry.analyst} {entry.spend.written}")
        told[-1] += f" {entry.block} {entry.details} paid {paid.spend.written} {entry.incident}"
    told += [f"{account} {ledger.balance.total(SPACE, account)}" for account in ledger.balance.accounts(SPACE)]
    told += [f"refused {one.account} {one.analyst} {one.asked} {one.left}" for one in record.refusals()]
    told.append(f"failures {ledger.balance.failures(SPACE)} {record.verify().problems}")
    return told


def _said(at: int) -> str:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as by:
        world = _World(at, Path(folder), by)
        with world.ledger:
            for _ in range(ACTS):
                world.act()
            world.time, world.running = world.time + 200 * SECOND, world.running + 200 * SECOND
            world.told += [tick(world), *_lines(world.ledger)]
    names = dict[str, str]()
    return re.sub(r"\b[0-9a-f]{32}\b", lambda m: names.setdefault(m[0], f"c{len(names)}"), "\n".join(world.told))


TIMETABLES = Kept("timetables", _said, COUNT)


@pytest.mark.parametrize("at", range(COUNT))
def test_what_the_schedule_says_is_as_recorded(at: int) -> None:
    TIMETABLES.check(at)


def test_the_recordings_hold_acts_and_refusals_of_every_kind() -> None:
    told = "\n".join(TIMETABLES.all())
    for text in (
        "of your questions wait",
        "in other words",
        "was answered meanwhile",
        "stands for another question",
        "stands for another plan",
        "not enough budget",
        "for the token",
        " return ",
        " reading ",
        " withdrawn ",
        " failed ",
        "answered",
        "no answer",
        "after a stop",
        "boot+",
    ):
        assert text in told, text
    assert "fates differ" not in told
