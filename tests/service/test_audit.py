"""The audit of the service finds every planted bug, and nothing where there is none.

Its two worlds differ in how long a run takes: 0.2 seconds, or 4.8 of the 5 it has (or beyond them, for a runner that
overruns). The test moves their clock, so nothing here depends on how fast this machine is.
"""

from __future__ import annotations

import random
from functools import partial

import pytest

from hubbub.audit.service import SCRIPTS, attack, compare, plain, resolution, told_apart
from service.helpers import World
from service.planted import BUGS

SQL = "SELECT COUNT(*) AS n FROM v WHERE x < 49"


class Played:
    """A world as a client sees it."""

    def __init__(self, world):
        self.world = world

    def until(self, seconds):
        self.world.until(seconds)

    def ask(self, who, sql, options, key):
        return self.world.desk.ask(who, sql, options, key)

    def check(self, who, sql, options):
        return self.world.desk.check(who, sql, options)

    def see(self, what, who, charge):
        desk = self.world.desk
        match what:
            case "answer" | "receipt":
                return getattr(desk, what)(who, charge)
            case "history" | "events":
                return getattr(desk, what)(who)
            case "metrics":
                return desk.metrics()
        return list(self.world.lines)

    def leave(self, how, who, charge):
        if how == "cancel":
            return self.world.desk.cancel(who, charge)
        return self.world.desk.disconnected(who, charge)

    def restart(self):
        self.world.restart()


@pytest.fixture
def worlds(tmp_path, monkeypatch):
    made = []

    def make(outcome="answer", takes=(0.2, 4.8), **more):
        def one(each):
            made.append(World(tmp_path / f"{len(made)}.db", monkeypatch, takes=each, outcome=outcome, step=0.1, **more))
            return Played(made[-1])

        return tuple(partial(one, each) for each in takes)

    yield make
    for each in made:
        each.ledger.close()


def outcome_of(script):
    return "failure" if script in ("lock", "again", "room") else "answer"


OTHERS = [
    (script, outcome)
    for script in SCRIPTS
    for outcome in ("answer", "failure", "silence")
    if outcome != outcome_of(script)
]


@pytest.mark.parametrize(
    ("script", "outcome"),
    [(script, outcome_of(script)) for script in SCRIPTS]
    + [pytest.param(*other, marks=pytest.mark.soak) for other in OTHERS],
)
def test_the_audit_cannot_tell_two_worlds_apart(worlds, script, outcome):
    assert attack(worlds(outcome), SQL, scripts={script: SCRIPTS[script]}) == []


@pytest.mark.parametrize("name", BUGS)
def test_the_audit_finds_each_planted_bug(worlds, name):
    bug = BUGS[name]
    takes = (0.2, 7.0) if "overruns" in name else (0.2, 4.7)
    found = attack(
        worlds(bug.outcome, takes, desk=bug.desk, timetable=bug.timetable),
        SQL,
        scripts={bug.script: SCRIPTS[bug.script]},
    )
    assert [each.script for each in found] == [bug.script]


def test_what_is_told_is_compared_without_its_random_names():
    one, two = [{"id": "a" * 32, "x": 1}, "a" * 32], [{"id": "b" * 32, "x": 1}, "b" * 32]
    assert plain(one) == plain(two)
    assert told_apart("s", one, two) == []
    assert told_apart("s", one, [two[0], "c" * 32])[0].place == 1
    assert told_apart("s", one, [*two, 3])[0].place == 2


def test_times_of_two_worlds_are_compared_by_their_laws():
    coin = random.Random(7)
    one = [coin.random() for _ in range(400)]
    assert not compare(one, [coin.random() for _ in range(400)])
    assert compare(one, [x + 0.4 for x in one])
    assert not compare([], one)
    wrong = 0
    for seed in range(200):
        coin = random.Random(seed)
        wrong += compare([coin.random() for _ in range(60)], [coin.random() for _ in range(60)])
    assert resolution(6, 6) > 1 > resolution(60, 60)  # of a few times nothing follows
    assert wrong == 0  # at .99 two would be no surprise; the bound is a sure one
