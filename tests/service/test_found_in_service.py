"""Bounds that are found, limits that are looked at, and shares of an answer, through clerk and runner: what they cost,
when they are told, and that nothing of their runs is told before.
"""

from __future__ import annotations

import json
from fractions import Fraction
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.accounting import ZCDP, Composed, DiscreteLaplace, PureDP, cost, from_json
from hubbub.answer.release import Release
from hubbub.ledger.budget import Budget
from hubbub.ledger.schedule import SECOND
from hubbub.ledger.store import Ledger
from hubbub.service.people.person import TokenLimits
from hubbub.service.whole_desk import WholeDesk
from hubbub.session.check_bounds import BoundsCheck
from hubbub.session.empty import EmptyTables, schema_of
from hubbub.session.run import Order, Outcome
from hubbub.session.runner import Runner
from seeded import SeededBits
from service.helpers import ANSWER_TIME, SPACE, World
from service.test_desk import plain

COUNT = "SELECT COUNT(*) AS n FROM v"
AUTO = {"epsilon": "1", "max_rows": "auto"}
SHARE = {"within": "10 %", "at_most": "5"}


def declared(units: int = 3000) -> dict[str, hb.PrivateTable]:
    """Units with 1, 2, 4 or 8 rows; x of 2 in each."""
    rows = [u for u in range(units) for _ in range(2 ** (u % 4))]
    columns = {"x": hb.between(0, "auto"), "y": hb.between(0, 4)}
    frame = pa.table({"id": rows, "x": [2] * len(rows), "y": [2] * len(rows)})
    return {"v": hb.table(frame, unit="id", columns=columns, unit_space=SPACE)}


@lru_cache(maxsize=2)
def tables(units: int) -> tuple[Runner, EmptyTables]:
    runner = Runner(declared(units), _bits=SeededBits(units))
    return runner, EmptyTables(declared(units), schema_of(runner._data))


class Found(World):
    """A world of people with several rows, under a budget with delta."""

    def __init__(self, place: Any, monkeypatch: Any, *, units: int = 3000, pure: bool = True, **more: Any) -> None:
        self.units, self.budget = units, Budget(30) if pure else Budget(30, "1e-6")
        opened = Ledger.open
        with monkeypatch.context() as patched:
            patched.setattr(Ledger, "open", lambda at, budgets, **m: opened(at, budgets={SPACE: self.budget}, **m))
            super().__init__(place, monkeypatch, desk=WholeDesk, **more)

    def opened(self) -> WholeDesk:
        return WholeDesk(
            tables(self.units)[1],
            self.ledger,
            policy="{}",
            times={"v": round(self.answer_time * SECOND)},
            queue=self.queue,
            start=self.start,
            log=self.log,
        )

    def start(self, one: Any, order: Order) -> None:
        brought = None
        if self.outcome == "answer":
            order = Order.from_wire(order.to_wire())
            brought = Outcome.from_wire(tables(self.units)[0].execute(order, drawing=lambda: None).to_wire(), order)
        if self.outcome == "failure":
            brought = Outcome(order.charge, incident="of the engine", words="private words")
        self._due.append((self.clock.seconds + self.takes, one, brought))


@pytest.fixture
def world(tmp_path, monkeypatch):
    made = []

    def make(**more):
        made.append(Found(tmp_path / f"{len(made)}.db", monkeypatch, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()


def left(w, who="ada"):
    return Fraction(w.desk.budget(who)["left"])


def test_a_bound_is_found_in_the_charge_of_its_answer_which_has_two_answer_times(world):
    w = world()
    told = w.desk.check("ada", COUNT, AUTO)
    assert (told["answer_time"], [bound for bound, _ in told["bounds"]]) == (2 * ANSWER_TIME, [4, 32, 256])
    one = w.desk.ask("ada", COUNT, AUTO, "r")
    w.until(2 * ANSWER_TIME - 0.1)
    assert w.desk.answer("ada", one["id"])["state"] == "asked"
    assert w.desk.check("ada", COUNT, {**AUTO, "epsilon": "2"})["answer_time"] == 2 * ANSWER_TIME  # not known yet
    w.until(2 * ANSWER_TIME)
    r = Release.from_wire(w.desk.answer("ada", one["id"])["answer"])
    assert abs(r.to_dict()["n"][0] - 11250) < 200
    assert r.text.notes[0].startswith("found: at most 8 rows of one id; with probability .95 at most ")
    assert r.receipt["found"][0]["bound"] == "8"
    (entry,) = [e for e in w.ledger.record.history() if e.kind == "question"]
    assert from_json(entry.event) == Composed([DiscreteLaplace(Fraction(10, 3), 1), PureDP(Fraction(7, 10))])
    assert left(w) == 29


def test_a_bound_that_was_found_is_known_from_its_release_on(world):
    w = world()
    w.desk.ask("ada", COUNT, AUTO, "r")
    w.until(2 * ANSWER_TIME)
    more = {**AUTO, "epsilon": "2"}
    told = w.desk.check("ada", COUNT, more)
    assert (told["answer_time"], told.get("bounds", [])) == (ANSWER_TIME, [])
    two = w.desk.ask("ada", COUNT, more, "s")
    assert w.desk.ask("ada", COUNT, more, "s")["id"] == two["id"]
    w.until(3 * ANSWER_TIME)
    assert from_json(w.ledger.record.entry(two["id"]).event) == Composed([DiscreteLaplace(4, 8)])
    again = w.desk.ask("ada", COUNT, AUTO, "t")
    assert (again["state"], left(w)) == ("answered", 27)


def test_a_token_with_a_cap_knows_no_bound_that_it_has_not_paid_for(world):
    w = world()
    w.ledger.steward.grant(SPACE, "token:feedbeef", 10, author="test", reason="its cap")
    token = TokenLimits("feedbeef", None, Fraction(10))
    one = w.desk.ask("ada", COUNT, AUTO, "r")
    w.until(2 * ANSWER_TIME)
    more = {**AUTO, "epsilon": "2"}
    assert w.desk.check("ada", COUNT, more, token=token)["answer_time"] == 2 * ANSWER_TIME
    assert w.desk.check("ada", COUNT, more)["answer_time"] == ANSWER_TIME
    w.desk.answer("ada", one["id"], token=token)
    assert w.ledger.balance.total(SPACE, "token:feedbeef").epsilon == 1
    assert w.desk.check("ada", COUNT, more, token=token)["answer_time"] == ANSWER_TIME


def test_a_request_that_is_sent_again_after_its_bound_was_found_is_the_same(world):
    w = world()
    one = w.desk.ask("ada", COUNT, AUTO, "r")
    w.until(2 * ANSWER_TIME)
    assert w.desk.ask("ada", COUNT, AUTO, "r")["id"] == one["id"]


def test_too_few_units_say_so_at_the_release_and_the_rest_comes_back_then(world):
    w = world(units=20)
    one = w.desk.ask("ada", COUNT, AUTO, "r")
    w.until(9.9)
    assert left(w) == 29
    w.until(10)
    assert left(w) == 30 - Fraction(3, 10)
    with pytest.raises(hb.QueryError, match=r"too few units to find a bound.*the rest came back"):
        w.desk.answer("ada", one["id"])
    with pytest.raises(hb.QueryError, match=r"too few units.*Nothing was charged"):
        w.desk.ask("ada", COUNT, AUTO, "s")
    assert [each["epsilon"] for each in w.desk.history("ada")] == ["3/10"]


def test_who_is_told_that_another_s_search_found_nothing_is_told_what_that_counts(world):
    """It is something learned of the rows, so the limits of whoever learns it count it: once."""
    w = world(units=20)
    token, bobs = (TokenLimits(name, None, Fraction(10)) for name in ("feedbeef", "deadbeef"))
    for name in ("feedbeef", "deadbeef"):
        w.ledger.steward.grant(SPACE, f"token:{name}", 10, author="test", reason="its cap")
    one = w.desk.ask("ada", COUNT, AUTO, "r")
    w.until(1)
    shares = w.desk.ask("cyd", COUNT, AUTO, "r")
    w.until(20)

    def spent(who):
        return Fraction(w.desk.budget(who)["spaces"][0]["yours"]["spent"])

    for _ in range(2):
        with pytest.raises(hb.QueryError, match=r"counts against your own limit, once, and nothing else"):
            w.desk.ask("bob", COUNT, AUTO, "s")
        with pytest.raises(hb.QueryError, match=r"counts against your own limit, once, and nothing else"):
            w.desk.answer("cyd", shares["id"])
        with pytest.raises(hb.QueryError, match=r"counts against the cap of this token, once, and nothing else"):
            w.desk.answer("ada", one["id"], token=token)
        with pytest.raises(hb.QueryError, match=r"The search was charged, and the rest came back"):
            w.desk.answer("ada", one["id"])
    with pytest.raises(hb.QueryError, match=r"counts against your own limit and the cap of this token, once"):
        w.desk.ask("bob", COUNT, AUTO, "t", token=bobs)
    assert {spent(who) for who in ("ada", "bob", "cyd")} == {Fraction(3, 10)}
    caps = {w.ledger.balance.total(SPACE, f"token:{name}").epsilon for name in ("feedbeef", "deadbeef")}
    assert caps == {Fraction(3, 10)}
    assert left(w) == 30 - Fraction(3, 10)


def test_a_share_of_the_answer_gives_back_what_it_did_not_use_at_its_release(world):
    w = world(pure=False)
    told = w.desk.check("ada", "SELECT COUNT(DISTINCT id) AS n FROM v", SHARE)
    assert told["answer_time"] == ANSWER_TIME
    whole = left(w)
    one = w.desk.ask("ada", "SELECT COUNT(DISTINCT id) AS n FROM v", SHARE, "r")
    w.until(4.9)
    held = left(w)
    w.until(5)
    r = Release.from_wire(w.desk.answer("ada", one["id"])["answer"])
    assert abs(r.to_dict()["n"][0] - 3000) < 600
    assert r.text.notes[0].startswith("stopped after step ")
    assert held < left(w) < whole
    assert float(whole - left(w)) < 1
    assert w.desk.answers("bob")[0]["costs"] != "5"


def test_who_joins_pays_what_was_used_and_no_more(world):
    w = world(pure=False)
    asked = "SELECT COUNT(DISTINCT id) AS n FROM v", SHARE
    w.desk.ask("ada", *asked, "r")
    w.until(1)
    w.desk.ask("bob", *asked, "s")
    assert float(Fraction(w.desk.budget("bob")["spaces"][0]["yours"]["spent"])) == pytest.approx(5)
    w.until(10)
    (mine,) = w.desk.history("bob")
    spent = {who: Fraction(w.desk.budget(who)["spaces"][0]["yours"]["spent"]) for who in ("ada", "bob")}
    assert spent["bob"] == spent["ada"] < 1
    assert Fraction(mine["epsilon"]) < 1


def test_limits_are_looked_at_through_the_service(world):
    w = world()
    given = {"epsilon": "1"}
    one = w.desk.check_bounds("ada", COUNT, given, "r", at="0.5")
    assert w.desk.check_bounds("ada", COUNT, given, "r", at="0.5") == one
    w.until(4.9)
    assert "bounds" not in w.desk.answer("ada", one["id"])
    w.until(5)
    told = w.desk.answer("ada", one["id"])["bounds"]
    check = BoundsCheck.from_wire(json.loads(json.dumps(told)))
    assert check.limits[0].recommended == 8
    assert (check.cost, check.charged, left(w)) == (1, True, 29)
    again = w.desk.check_bounds("ada", COUNT, given, "s", at="0.5")
    assert (again["state"], again["id"], left(w)) == ("answered", one["id"], 29)
    stored = BoundsCheck.from_wire(again["bounds"])
    assert (stored.limits, stored.cost) == (check.limits, 0)
    assert "recommended: max_rows = 8" in str(stored)
    w.desk.read("bob", one["id"])
    assert w.desk.budget("bob")["spaces"][0]["yours"]["spent"] == "1"
    with pytest.raises(hb.QueryError, match="no better answer"):
        w.desk.check_refine("ada", one["id"], "1")
    with pytest.raises(hb.QueryError, match="as JSON"):
        w.desk.answer("ada", one["id"], form="csv")
    with pytest.raises(hb.ParameterError):
        w.desk.check_bounds("ada", COUNT, given, "t", at="much")
    with pytest.raises(hb.ParameterError, match="is not a check of bounds"):
        BoundsCheck.from_wire({"format": "bounds 0"})


def test_a_plan_takes_none_of_them(world):
    w = world()
    with pytest.raises(hb.QueryError, match="is asked alone"):
        w.desk.plan("ada", [{"sql": COUNT, "options": AUTO}], "p")
    assert left(w) == 30


def test_what_a_runner_says_it_used_is_never_more_than_was_charged(world):
    w = world(takes=1)
    one = w.desk.ask("ada", COUNT, AUTO, "r")
    at, scheduled, brought = w._due[0]
    w._due = [(at, scheduled, Outcome(one["id"], payload=brought.payload, used=cost(PureDP(2))))]
    w.until(10)
    assert w.desk.answer("ada", one["id"])["state"] == "no answer"
    assert left(w) == 29


@pytest.mark.parametrize("outcome", ["failure", "silence"])
def test_a_failure_gives_nothing_back(world, outcome):
    """That something failed is an answer, and what it drew before is not known."""
    w = world(takes=1, outcome=outcome)
    w.desk.ask("ada", COUNT, AUTO, "r")
    w.until(10)
    assert left(w) == 29


def test_a_runner_does_not_say_that_an_answer_cost_less_than_it_does(world):
    """Whoever takes a runner over would have an answer for nothing."""
    w = world(takes=1)
    w.desk.ask("ada", COUNT, AUTO, "r")
    _, scheduled, brought = w._due[0]
    order = w.desk._order(scheduled)
    search, answer = from_json(order.event).children
    nothing = json.dumps({"format": "x", "nothing": "too few"})

    def said(payload, used):
        return Outcome.from_wire(Outcome(order.charge, payload=payload, used=used).to_wire(), order)

    for payload, used in ((brought.payload, search), (brought.payload, answer), (nothing, PureDP("1/100"))):
        with pytest.raises(hb.ParameterError, match="was not drawn for so little"):
            said(payload, cost(used))
    assert said(nothing, cost(search)).used == cost(search)
    assert said(brought.payload, None).payload == brought.payload


def test_a_share_of_the_answer_costs_what_its_steps_say_and_they_are_such_steps(world):
    """Else whoever takes a runner over could say that an exact answer cost next to nothing."""
    w = world(takes=1, pure=False)
    w.desk.ask("ada", "SELECT COUNT(DISTINCT id) AS n FROM v", SHARE, "r")
    _, scheduled, brought = w._due[0]
    order = w.desk._order(scheduled)
    contents, cap = json.loads(brought.payload), cost(from_json(order.event)).rho
    assert len(contents["looks"]) > 2
    assert {cap / Fraction(contents["looks"][0]["spend"]["rho"])} <= {Fraction(2**k) for k in range(32)}

    def said(looks, used=None):
        used = sum((Fraction(step["spend"]["rho"]) for step in looks), Fraction(0)) if used is None else used
        text = json.dumps({**contents, "looks": looks, "used": str(used)})
        told = Outcome(order.charge, payload=text, used=cost(ZCDP(used)))
        return Outcome.from_wire(told.to_wire(), order)

    def at(step, **more):
        return {**step, **more}

    def rho(step, times):
        return at(step, spend={**step["spend"], "rho": str(Fraction(step["spend"]["rho"]) * times)})

    looks, first = contents["looks"], contents["looks"][0]
    assert said(looks).used == cost(ZCDP(Fraction(contents["used"])))
    tiny = Fraction(1, 2**30)
    wrong = [
        (looks, Fraction(contents["used"]) / 2),  # less than they say
        ([*looks[:-1], rho(looks[-1], tiny)], None),  # the last one for less than all before it
        ([rho(step, tiny) for step in looks], None),  # from below the first step that there is
        ([rho(step, Fraction(3, 2)) for step in looks], None),  # not by halves of what was reserved
        ([rho(first, Fraction(cap) / Fraction(first["spend"]["rho"]) * 2)], None),  # more than was reserved
        ([at(first, shares=["2"])], None),  # more exact than it cost
        ([at(first, shares=["1", "-1", "1"])], None),
        ([at(first, shares=[])], None),
        ([], Fraction(0)),
        ([at(first, shares=["1e-999999999"])], None),  # which takes hours to read
    ]
    for steps, used in wrong:
        with pytest.raises(hb.ParameterError, match="was not drawn for so little"):
            said(steps, used)


@pytest.mark.parametrize("outcome", ["answer", "failure", "silence"])
@pytest.mark.parametrize("units", [3000, 20])
def test_nothing_of_their_runs_is_told_before_the_release(world, outcome, units):
    """Two worlds, in one of which runs take long, or fail, or find nothing: what is told until the release is the
    same, also of what the chain holds.
    """
    told = []
    for takes, many, ends in ((0.2, 3000, "answer"), (9.8, units, outcome)):
        w = world(takes=takes, outcome=ends, units=many)
        w.desk.ask("ada", COUNT, AUTO, "a")
        heard: list[Any] = [w.desk.check_bounds("bob", COUNT, {"epsilon": "1"}, "b")]
        for at in (0.1, 3, 5.1, 9.8, 9.9):
            w.until(at)
            for who in ("ada", "bob"):
                heard += [w.desk.answers(who), w.desk.budget(who), w.desk.history(who), w.desk.events(who)]
                heard += [w.desk.check(who, COUNT, {**AUTO, "epsilon": "2"}), w.desk.metrics()]
            heard.append(w.ledger._handle.reading)  # not told: the same number of links
            with w.ledger._handle.reading() as connection:
                heard[-1] = connection.execute("SELECT count(*) FROM journal").fetchone()[0]
        told.append(plain(heard))
    assert told[0] == told[1]


@pytest.mark.parametrize("outcome", ["answer", "failure"])
def test_a_release_adds_as_many_links_whatever_happened(world, outcome):
    w = world(outcome=outcome)
    w.desk.ask("ada", COUNT, AUTO, "a")
    w.until(1)
    w.desk.ask("bob", COUNT, AUTO, "b")
    w.until(9.9)
    with w.ledger._handle.reading() as connection:
        (before,) = connection.execute("SELECT count(*) FROM journal").fetchone()
    w.until(10)
    with w.ledger._handle.reading() as connection:
        (after,) = connection.execute("SELECT count(*) FROM journal").fetchone()
    assert after - before == 4  # what was not used, of both; the outcome; the step
