"""What a ledger says of drawn acts of analysts, stewards and processes, one after another, as recorded.

Two processes, which are played, share a file; the clock is drawn too, so one of them may be gone. What is recorded:
what each act returns or raises, then what every account has spent and may spend, and every line of the history.
`HUBBUB_GOLDEN=write` writes it anew.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import re
import tempfile
import uuid
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from golden.kept import Kept
from hubbub.accounting import ApproxDP, Cost, Event, Gaussian, PureDP
from hubbub.errors import HubbubError
from hubbub.ledger import charging, hash_chain, life, under_way
from hubbub.ledger.accounts import Total
from hubbub.ledger.budget import Budget
from hubbub.ledger.charge import Charge
from hubbub.ledger.store import Ledger

COUNT, ACTS = 48, 36
SPACE, OTHER = "pid", "shop"
ANALYSTS, TABLES, TOKENS = ("ada", "bob", "cy"), ("visits", "wards"), ("1f0c5a7e", "2e1d4b6f")
BUDGETS = [
    Budget(1),
    Budget(2),
    Budget(1, "1e-6"),
    Budget(3, "1e-6", delta_threshold="1e-7"),
    Budget(2, "1e-6", training=("1/2", "1e-7")),
]
COSTS = [
    *([None] * 5),
    Cost(None, Fraction(1, 50)),
    Cost(None, Fraction(1, 100), Fraction(1, 10**8)),
    Cost(Fraction(0), Fraction(0), Fraction(1, 10**7)),
]
ACCOUNTS = [
    *(f"analyst:{name}" for name in (*ANALYSTS, "*")),
    *(f"table:{name}" for name in TABLES),
    *(f"token:{name}" for name in TOKENS),
    *("everyone", "training", "block:x", "ada"),
]
ODD = ['["neighbours", "token", "training"]', '{"neighbours": 1, "token": 2, "paid_from": "training "}']
"""Details that say less than they seem to."""
ADDED = [Cost(Fraction(1, 10), Fraction(1, 200)), Cost(None, Fraction(1, 1000))]
EPSILONS = [Fraction(n, 20) for n in (1, 2, 2, 4, 5, 10, 20, 60)]


class _World:
    """Two processes at one ledger; what they did so far, and the clock."""

    def __init__(self, at: int, folder: Path, by: pytest.MonkeyPatch) -> None:
        self.chance, self.by = Random(f"ledgers {at}"), by
        self.time = dt.datetime(2090, 1, 1)
        self.charges, self.blocks, self.told = list[str](), list[str](), list[str]()
        self.under_way = [set[str](), set[str]()]
        by.setattr(hash_chain, "now", lambda: f"{self.time:%Y-%m-%dT%H:%M:%S.%f}Z")
        by.setattr(life, "_LOOK", -1.0)
        ids = Random(f"ids {at}")
        by.setattr(charging, "uuid", SimpleNamespace(uuid4=lambda: uuid.UUID(int=ids.getrandbits(128))))
        budget = self.chance.choice(BUDGETS)
        few = self.chance.choice([dict[str, Any](), {"max_failures": 2}, {"max_failures": 1, "max_failures_all": 2}])
        self.rules = {**few, **self.chance.choice([{}, {}, {"shared_answers": False}, {"require_purpose": True}])}
        self.told.append(f"{budget!r} {self.rules}")
        self.ledgers = list[Ledger]()
        for process in (0, 1):
            self.go(process)
            budgets = {SPACE: budget, OTHER: Budget(1)}
            self.ledgers.append(Ledger.open(folder / "l.db", budgets=budgets, patience=0.02, **self.rules))
        for token in TOKENS:
            self.ledger.steward.grant(SPACE, f"token:{token}", self.chance.choice(EPSILONS[:6]), author="sue")

    def go(self, process: int) -> None:
        """From here on what is done is done by this process."""
        self.process = process
        for module in (charging, life, under_way):
            self.by.setattr(module, "this_process", lambda: f"elsewhere/ns/{process + 1}/1")
        self.by.setattr(life, "_UNDER_WAY", self.under_way[process])

    @property
    def ledger(self) -> Ledger:
        return self.ledgers[self.process]

    def some(self, charges: list[str]) -> str:
        """One of them, mostly a late one; or one that there is not."""
        if not charges or self.chance.random() < 0.03:
            return "f" * 32
        return charges[-1 - min(int(self.chance.expovariate(0.7)), len(charges) - 1)]

    def charge(self, **more: Any) -> Charge:
        chance = self.chance
        told: dict[str, Any] = {"neighbours": chance.choice(["add_remove"] * 12 + ["replace"])}
        told |= {"token": chance.choice(TOKENS)} if chance.random() < 0.15 else {}
        told |= {"paid_from": "training"} if chance.random() < 0.08 else {}
        columns: dict[str, Any] = {
            "space": chance.choice([SPACE] * 16 + [OTHER, "nobody"]),
            "dataset": chance.choice([*TABLES, "visits + wards"]),
            "analyst": chance.choice(ANALYSTS),
            "epsilon": chance.choice(EPSILONS),
            "question_key": f"k{chance.randrange(3)}",
            "sql": "SELECT COUNT(*) FROM visits",
            "details": chance.choice([json.dumps(told)] * 15 + ODD),
            "cost": chance.choice(COSTS),
            "request": chance.choice([None] * 5 + ["r"]),
            "purpose": chance.choice([None, "a look"]),
            "block": self.some(self.blocks) if self.blocks and chance.random() < 0.3 else None,
        }
        return Charge(**(columns | more))

    def act(self) -> None:
        """One act: what it was, and what came of it."""
        self.time += self.chance.choice([dt.timedelta(seconds=1)] * 8 + [dt.timedelta(minutes=61)])
        self.go(self.chance.choice([0, 0, 1]))
        does = self.chance.choice(DOES)
        before = len(self.told)
        self.told.append("")
        try:
            what, result = does(self)
        except HubbubError as error:
            what, result = self.told.pop() or does.__name__, f"{type(error).__name__}: {error}"
        self.told[before:] = [f"{self.process} {what}", f"    {result}"]

    def doing(self, what: str) -> None:
        """Say what is begun, before it may raise."""
        self.told[-1] = what


def _charge(world: _World) -> tuple[str, object]:
    made, once = world.charge(), world.chance.random() < 0.4
    world.doing(what := f"{'once' if once else 'charge'} {_shown(made)}")
    if once:
        charge, new = world.ledger.charges.charge_once(made)
        world.charges += [charge] if new else []
        return what, (charge, new)
    world.charges.append(world.ledger.charges.charge(made))
    return what, world.charges[-1]


def _step(world: _World) -> tuple[str, object]:
    charge, state = world.some(world.charges), world.chance.choice(["drawing", "drawing", "failed", "shown", "lost"])
    world.doing(what := f"advance {charge} {state}")
    return what, world.ledger.charges.advance(charge, state, incident="i" if state == "failed" else None)  # type: ignore[arg-type,func-returns-value]


def _answer(world: _World) -> tuple[str, object]:
    """Charge, draw and store, as a question is answered."""
    made = world.charge()
    world.doing(what := f"answer {_shown(made)}")
    charges = world.ledger.charges
    world.charges.append(charge := charges.charge(made))
    charges.advance(charge, "drawing")
    if world.chance.random() < 0.2:
        used = Total.of(Cost(Fraction(1, 40), Fraction(1, 3200))) if world.chance.random() < 0.7 else made.spend
        charges.give_back(charge, used=used.cost)
    charges.store(charge, '{"n": 1}')
    return what, charge


def _fail(world: _World) -> tuple[str, object]:
    made = world.charge(purpose="a look", block=None)
    world.doing(what := f"fail {_shown(made)}")
    world.charges.append(charge := world.ledger.charges.charge(made))
    world.ledger.charges.advance(charge, "failed")
    return what, charge


def _store(world: _World) -> tuple[str, object]:
    world.doing(what := f"store {(charge := world.some(world.charges))}")
    return what, world.ledger.charges.store(charge, '{"n": 1}')  # type: ignore[func-returns-value]


def _resume(world: _World) -> tuple[str, object]:
    """Take up what was asked last in its words, or something else."""
    made, entry = world.charge(), None
    if world.charges and world.chance.random() < 0.7:
        entry = world.ledger.record.entry(world.some(world.charges))
        columns = ("space", "analyst", "question_key", "epsilon", "dataset", "block")
        made = world.charge(cost=entry.spend, **{name: getattr(entry, name) for name in columns})
    this = entry.id if entry is not None and world.chance.random() < 0.3 else None
    world.doing(what := f"resume {this} {_shown(made)}")
    return what, world.ledger.charges.resume(made, charge=this)


def _let_go(world: _World) -> tuple[str, object]:
    world.doing(what := f"let go {(charge := world.some(world.charges))}")
    return what, world.ledger.charges.let_go(charge)  # type: ignore[func-returns-value]


def _lost(world: _World) -> tuple[str, object]:
    return "look for the dead", world.ledger.charges.mark_lost()


def _share(world: _World) -> tuple[str, object]:
    chance = world.chance
    reader, token = chance.choice(ANALYSTS), chance.choice([None, None, *TOKENS])
    stored = [world.ledger.record.release(entry.id) for entry in world.ledger.record.history()]
    releases = [one for one in stored if one is not None]
    if not releases:
        return "share", "nothing is there"
    release = chance.choice(releases)
    world.doing(what := f"share {release.charge_id} {reader} {token}")
    world.ledger.charges.share(release, reader, token=token)
    return what, [world.ledger.record.has_read(release.entry, who, token=token) for who in ANALYSTS]


def _find(world: _World) -> tuple[str, object]:
    """Which stored answer there is."""
    chance = world.chance
    key, epsilon = f"k{chance.randrange(3)}", chance.choice(EPSILONS)
    reader, token = chance.choice([None, *ANALYSTS]), chance.choice([None, None, *TOKENS])
    world.doing(what := f"find {key} {epsilon} {reader} {token}")
    find = world.ledger.record.find_release
    stored = find(space=SPACE, question_key=key, at_least=epsilon, reader=reader, token=token)
    return what, None if stored is None else (stored.charge_id, stored.payload)


def _reserve(world: _World) -> tuple[str, object]:
    chance = world.chance
    analyst, epsilon = chance.choice(ANALYSTS), chance.choice(EPSILONS)
    plan = chance.choice([None, None, "two questions"])
    events: list[Event] = [] if plan is None else [PureDP("1/10"), *chance.choice([[], [PureDP("1/5")]])]
    if plan is not None and world.ledger.balance.budget(SPACE).delta and chance.random() < 0.5:
        events = [Gaussian(20), Gaussian(30), ApproxDP("1/10", "1e-9")]
    world.doing(what := f"reserve {analyst} {epsilon} {plan} {len(events)}")
    block = world.ledger.charges.reserve(
        space=SPACE, analyst=analyst, epsilon=epsilon, plan=plan, events=events, purpose="a look"
    )
    world.blocks.append(block)
    return what, block


def _close(world: _World) -> tuple[str, object]:
    world.doing(what := f"close {(block := world.some([*world.charges[-1:], *world.blocks]))}")
    return what, world.ledger.charges.close_block(block)  # type: ignore[func-returns-value]


def _steward(world: _World) -> tuple[str, object]:
    chance, steward = world.chance, world.ledger.steward
    account, epsilon, analyst = chance.choice(ACCOUNTS), chance.choice(EPSILONS), chance.choice(ANALYSTS)
    until = chance.choice([None, None, None, "2090-01-01T03:00:00Z"])
    limits = {f"analyst:{name}": chance.choice(EPSILONS[:6]) for name in chance.sample((*ANALYSTS, "*"), 2)}
    acts: list[tuple[str, Callable[[], object]]] = [
        *[
            (
                f"grant {account} {epsilon} {until}",
                lambda: steward.grant(SPACE, account, epsilon, author="sue", until=until),
            )
        ]
        * 4,
        (f"revoke {account}", lambda: steward.revoke(SPACE, account, author="sue", reason="x")),
        (f"raise {epsilon}", lambda: steward.raise_ceiling(SPACE, epsilon, author="sue", reason="x")),
        (f"limits {limits}", lambda: steward.record_limits(SPACE, limits)),
        (f"unlock {analyst}", lambda: steward.unlock(SPACE, analyst, author="sue")),
        ("unlock all", lambda: steward.unlock_all(SPACE, author="sue")),
    ]
    what, does = chance.choice(acts)
    world.doing(what)
    return what, does()


DOES = [
    *[_charge] * 6,
    *[_answer] * 6,
    *[_step] * 5,
    *[_store, _let_go, _lost, _fail] * 2,
    *[_resume, _share, _share, _find, _reserve, _reserve, _close],
    *[_steward] * 5,
]


def _shown(made: Charge) -> str:
    cost = "" if made.cost is None else f" {made.spend.written}"
    return " ".join(map(str, (made.space, made.dataset, made.analyst, made.question_key, made.epsilon))) + (
        f"{cost} {made.details} {made.request} {made.purpose} {made.block}"
    )


def _balances(ledger: Ledger) -> list[str]:
    """All that is said of accounts and lines."""
    balance, record = ledger.balance, ledger.record
    told = [
        f"spent {balance.spent(SPACE)} {balance.total(SPACE)} relation {balance.relation(SPACE)}",
        f"training {balance.training(SPACE)} failures {balance.failures(SPACE)} limits {balance.policy_limits(SPACE)}",
    ]
    told += [f"{account}: {balance.total(SPACE, account)}" for account in balance.accounts(SPACE)]
    for analyst in ANALYSTS:
        told.append(f"{analyst}: limit {balance.limit(SPACE, analyst)}")
        for table, token in itertools.product(TABLES, (None, TOKENS[0])):
            left = balance.left(SPACE, analyst=analyst, dataset=table, token=token)
            fits = [left.how_many(cost) for cost in ADDED]
            fits += [balance.admits(c, space=SPACE, dataset=table, analyst=analyst, token=token) for c in ADDED]
            told.append(f"  {table} {token} {left.epsilon} {left.rho} {left.delta} {left.question} {fits}")
    for said in balance.allowances(SPACE):
        told.append(f"said {said.account} {said.epsilon} {said.expires} {said.author} {said.reason}")
    for one in record.history():
        told.append(f"{one.serial} {one.id} {one.kind} {one.state} {one.analyst} {one.epsilon} {one.spend.written}")
        told[-1] += f" {one.block} {one.details} paid {record.paid(one).epsilon} {record.paid(one).spend.written}"
    for block in record.open_blocks():
        told.append(f"open {block.id}")
        try:
            left = balance.left(SPACE, analyst=block.analyst, block=block.id)
            told[-1] += f" {left.epsilon} {left.rho} {left.delta} {left.question}"
        except HubbubError as error:
            told[-1] += f" {error}"
    told += [f"refused {one.account} {one.analyst} {one.asked} {one.left}" for one in record.refusals()]
    return told


def _said(at: int) -> str:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as by:
        world = _World(at, Path(folder), by)
        for _ in range(ACTS):
            world.act()
        first = list[str]()
        for process in (0, 1):
            world.go(process)
            told = _balances(world.ledger)
            world.told += ["so does the other"] if told == first else [f"process {process} says:", *told]
            first = told
        for process in (0, 1):
            world.go(process)
            world.ledger.close()
        world.told += [
            f"closed: {one.id} {one.state}" for one in Ledger.inspect(Path(folder) / "l.db").record.history()
        ]
    names = dict[str, str]()
    said = re.sub(r"\b[0-9a-f]{32}\b", lambda m: names.setdefault(m[0], f"c{len(names)}"), "\n".join(world.told))
    return re.sub(r"\b[0-9a-f]{64}\b", "HASH", said).replace(str(folder), "FOLDER")


LEDGERS = Kept("ledgers", _said, COUNT)


@pytest.mark.parametrize("at", range(COUNT))
def test_what_a_ledger_says_is_as_recorded(at: int) -> None:
    LEDGERS.check(at)


def test_the_recordings_hold_acts_and_refusals_of_every_kind() -> None:
    told = "\n".join(LEDGERS.all())
    for text in (
        "another process has taken this question over",
        "failed in the engine",
        "is closed. Reserve another",
        "belongs to another analyst",
        "was revoked",
        "expired at",
        "the idempotency key",
        "above the ceiling",
        "wants to know what a question is asked for",
        "Losses under two relations",
        "under way, some in other processes",
        "aside for training",
        "for the table",
        "the token",
        "the reserved block",
        "reading it counts",
        " retried ",
        " lost ",
        " withdrawn ",
        "an answer is stored only while drawing",
    ):
        assert text in told, text
