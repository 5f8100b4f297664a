"""The audit of the service finds every planted bug, and nothing where there is none.

Its two worlds differ in how long a run takes: 0.2 seconds, or 4.8 of the 5 it has (or beyond them, for a runner that
overruns). The test moves their clock, so nothing here depends on how fast this machine is. Each is attacked at the
desk, and by HTTP alone, through the application, the real gate and tokens.
"""

from __future__ import annotations

import random
from functools import partial

import pytest

from hubbub.audit.service import SCRIPTS, attack, compare, plain, resolution, told_apart
from hubbub.service.desk import Desk
from hubbub.service.http import api
from hubbub.service.whole_desk import WholeDesk
from service.faces import FaceWorld
from service.helpers import World
from service.planted import BUGS
from service.played import AtDesk, ByHTTP

SQL = "SELECT COUNT(*) AS n FROM v WHERE x < 49"


@pytest.fixture
def worlds(tmp_path, monkeypatch):
    """Pairs of worlds, as somebody sees them: at the desk, or by HTTP with a token."""
    monkeypatch.setattr(api, "_TICK", 0.001)  # of the wall's clock, which checks wait for
    made = []

    def make(outcome="answer", takes=(0.2, 4.8), *, player=AtDesk, desk=Desk, **more):
        def one(each):
            given = {"takes": each, "outcome": outcome, "step": 0.1, **more}
            place = tmp_path / str(len(made))
            if player is AtDesk:
                made.append(World(place, monkeypatch, desk=desk, **given))
            else:
                place.mkdir()
                whole = WholeDesk if desk is Desk else type("Planted", (desk, WholeDesk), {})
                made.append(FaceWorld(place, monkeypatch, desk=whole, **given))
            return player(made[-1])

        return tuple(partial(one, each) for each in takes)

    yield make
    for each in made:
        getattr(each, "people", each.ledger).close()
        each.ledger.close()


def outcome_of(script):
    return {"lock": "failure", "again": "failure", "room": "failure", "after": "killed"}.get(script, "answer")


OTHERS = [
    (script, outcome)
    for script in SCRIPTS
    for outcome in ("answer", "failure", "silence", "killed")
    if outcome != outcome_of(script)
]


PLAYERS = pytest.mark.parametrize("player", [AtDesk, ByHTTP])


@PLAYERS
@pytest.mark.parametrize(
    ("script", "outcome"),
    [(script, outcome_of(script)) for script in SCRIPTS]
    + [pytest.param(*other, marks=pytest.mark.soak) for other in OTHERS],
)
def test_the_audit_cannot_tell_two_worlds_apart(worlds, script, outcome, player):
    assert attack(worlds(outcome, player=player), SQL, scripts={script: SCRIPTS[script]}) == []


@PLAYERS
@pytest.mark.parametrize("name", BUGS)
def test_the_audit_finds_each_planted_bug(worlds, name, player):
    bug = BUGS[name]
    planted = {"desk": bug.desk, "timetable": bug.timetable, "left_working": bug.left_working}
    found = attack(
        worlds(bug.outcome, (0.2, bug.takes), player=player, **planted),
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
