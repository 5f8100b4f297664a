"""A runner that was taken over: whatever it says, it answers its own order, once, or nothing.

It says it on its own line, which the clerk made for it and no other process has: the clerk kept the order that it sent
there, and reads what comes as the outcome of that one. A signature would be checked by what is checked here already,
and made by the process that was taken over. Each way to answer another question, or more than was asked, is tried.
"""

from __future__ import annotations

import json
import socket
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import hubbub as hb
from hubbub.accounting import ZCDP, cost
from hubbub.answer.release import Release
from hubbub.service.frames import send
from hubbub.service.lanes import Lanes
from hubbub.session.run import Order, Outcome
from service.helpers import COUNT, SPACE, World, executed
from service.test_found_in_service import AUTO, Found

BY_WARD = "SELECT w, COUNT(*) AS n, AVG(x) AS m FROM v GROUP BY w"
AT = {"epsilon": "1"}


class Kept(World):
    """A world whose runners say nothing until the test does; it keeps the orders that they were sent."""

    def __init__(self, *given: Any, **more: Any) -> None:
        self.orders: dict[str, Order] = {}
        super().__init__(*given, outcome="silence", **more)

    def start(self, one: Any, order: Order) -> None:
        self.orders[one.id] = order
        super().start(one, order)

    def said(self, one: str, *told: Any) -> list[bool]:
        """Have the runner of a question say something on its line; whether each was taken for its outcome."""
        here, there = socket.socketpair()
        for piece in told:
            send(there, piece)
        there.close()
        taken: list[bool] = []

        def finished(scheduled: Any, outcome: Outcome) -> None:
            taken.append(self.desk.finished(scheduled, outcome))

        lanes = SimpleNamespace(_finished=finished)
        process = SimpleNamespace(socket=here, lock=threading.Lock())
        Lanes._listen(lanes, process, self.ledger.timetable.find(one), self.orders[one])  # type: ignore[arg-type]
        here.close()
        return taken


@pytest.fixture
def world(tmp_path, monkeypatch):
    made = Kept(tmp_path / "l.db", monkeypatch)
    yield made
    made.close()


def asked(world: World, sql: str = BY_WARD, request: str = "r") -> str:
    return str(world.desk.ask("ada", sql, AT, request)["id"])


def wire(outcome: Outcome) -> dict[str, str]:
    return {"outcome": outcome.to_wire()}


def test_another_order_s_number_is_no_outcome(world):
    one, two = asked(world), asked(world, COUNT, "s")
    world.until(1)
    assert list(world.orders) == [one]  # the other one waits for the lane
    own = executed(world.orders[one])
    assert world.said(one, wire(replace(own, charge=two))) == []
    assert world.said(one, wire(Outcome(two, incident="17ab"))) == []
    assert world.said(one, wire(own)) == [True]
    world.until(12)
    assert world.desk.answer("ada", one)["state"] == "answered"
    assert world.desk.answer("ada", two)["state"] == "no answer"


def test_what_was_said_before_an_order_came_is_of_no_order(world):
    """It waits on the line and is read first: as an outcome without the number, which only the order tells."""
    first = asked(world)
    world.until(6)
    old = executed(world.orders[first])
    second = asked(world, COUNT, "s")
    world.until(6.5)
    assert world.said(second, wire(old), wire(executed(world.orders[second]))) == []
    world.until(12)
    assert world.desk.answer("ada", second)["state"] == "no answer"


def test_the_first_outcome_alone_is_read(world):
    one = asked(world)
    world.until(1)
    own = executed(world.orders[one])
    other = replace(own, payload=own.payload.replace("[90]", "[91]"))
    assert world.said(one, wire(own), wire(other)) == [True]
    assert world.said(one, wire(other)) == [False]
    world.until(6)
    assert world.ledger.record.release(one).payload == own.payload
    assert world.said(one, wire(other)) == [False]  # after its release


def test_an_old_answer_of_another_question_does_not_fit(world):
    first = asked(world, COUNT)
    world.until(1)
    old = executed(world.orders[first])
    assert world.said(first, wire(old)) == [True]
    world.until(6)
    second = asked(world, BY_WARD, "s")
    world.until(6.5)
    assert world.said(second, wire(replace(old, charge=second))) == [True]
    world.until(12)
    incident = world.ledger.timetable.find(second).incident
    with pytest.raises(hb.EngineError, match=incident):
        world.desk.answer("ada", second)


def _spend(payload: dict[str, Any]) -> None:
    payload["spend"]["epsilon"] = "20"


def _shares(payload: dict[str, Any]) -> None:
    payload["shares"] = ["1/2"]


def _other_groups(payload: dict[str, Any]) -> None:
    payload["plans"][0]["groups"] = [["a"], ["b"], ["the row of Ann"]]


def _more_groups(payload: dict[str, Any]) -> None:
    payload["plans"][0]["parts"] = [[[*vector, 0] for vector in part] for part in payload["plans"][0]["parts"]]


def _fewer_groups(payload: dict[str, Any]) -> None:
    payload["plans"][0]["parts"] = [[vector[:1] for vector in part] for part in payload["plans"][0]["parts"]]


def _more_vectors(payload: dict[str, Any]) -> None:
    payload["plans"][0]["parts"][0].append([1, 2, 3])


def _more_parts(payload: dict[str, Any]) -> None:
    payload["plans"][0]["parts"].append([[1, 2, 3]])


def _more_plans(payload: dict[str, Any]) -> None:
    payload["plans"].append(payload["plans"][0])


def _words(payload: dict[str, Any]) -> None:
    payload["plans"][0]["parts"][0][0] = ["1", "2", "3"]


def _fractions(payload: dict[str, Any]) -> None:
    payload["plans"][0]["parts"][0][0] = [0.5, 1.5, float("nan")]


def _huge(payload: dict[str, Any]) -> None:
    payload["plans"][0]["parts"][0][0] = [10**400] * 3


def _found(payload: dict[str, Any]) -> None:
    payload["found"] = [{"key": "k", "plan": 0, "what": "rows", "bound": "2", "beyond": 0, "note": "Ann"}]


def _nothing(payload: dict[str, Any]) -> None:
    payload["nothing"] = "nothing was found"


def _steps(payload: dict[str, Any]) -> None:
    payload["looks"], payload["used"] = [dict(payload)], "1/100"


def _note(payload: dict[str, Any]) -> None:
    payload["note"] = "the row of Ann"


CHANGES = [
    _spend, _shares, _other_groups, _more_groups, _fewer_groups, _more_vectors, _more_parts, _more_plans,
    _words, _fractions, _huge, _found, _nothing, _steps, _note,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=[c.__name__.strip("_") for c in CHANGES])
def test_what_was_not_drawn_of_this_order_is_an_incident(world, change):
    """Other noise than was charged, other groups, more draws, fields of another kind of question."""
    one = asked(world)
    world.until(1)
    own = executed(world.orders[one])
    payload = json.loads(own.payload)
    change(payload)
    world.said(one, wire(replace(own, payload=json.dumps(payload))))
    world.until(6)
    with pytest.raises(hb.EngineError, match=world.ledger.timetable.find(one).incident):
        world.desk.answer("ada", one)
    assert world.ledger.balance.spent(SPACE) == 1


@pytest.mark.parametrize("sql", [COUNT, BY_WARD, "SELECT w, MEDIAN(x) AS m, COUNT(*) AS n FROM v GROUP BY w"])
def test_its_own_outcome_is_the_answer(world, sql):
    one = asked(world, sql)
    world.until(1)
    assert world.said(one, wire(executed(world.orders[one]))) == [True]
    world.until(6)
    assert Release.from_wire(world.desk.answer("ada", one)["answer"]).rows()


@pytest.mark.parametrize(
    "more",
    [
        {"charge": None},
        {"used": ["1/100", None, "0"]},
        {"receipt": {"epsilon": "0.001"}},
        {"cost": "0"},
        {"space": "another"},
        {"analyst": "grace"},
        {"incident": "17ab"},
        {"payload": 7},
        {"payload": ["a"]},
    ],
    ids=lambda more: next(iter(more)),
)
def test_a_receipt_is_the_clerk_s(world, more):
    """What was charged, to whom, for what: the outcome has no field for it, and gives back nothing of a fixed order."""
    one = asked(world)
    world.until(1)
    own = json.loads(executed(world.orders[one]).to_wire())
    assert True not in world.said(one, {"outcome": json.dumps(own | more)})
    world.until(6)
    assert world.desk.answer("ada", one)["state"] == "no answer"
    told = world.desk.receipt("ada", one)
    assert (told["analyst"], told["epsilon"]) == ("ada", "1")
    assert world.ledger.balance.spent(SPACE) == 1


def test_a_capped_order_gives_back_no_more_than_its_answer_left(tmp_path, monkeypatch):
    """The bound was found and the answer drawn: both are paid."""
    w = Found(tmp_path / "l.db", monkeypatch, takes=1)
    one = w.desk.ask("ada", COUNT, AUTO, "r")["id"]
    scheduled, brought = w._due[0][1], w._due[0][2]
    order = w.desk._order(scheduled)
    with pytest.raises(hb.ParameterError, match="so little"):
        Outcome.from_wire(replace(brought, used=cost(ZCDP("1/1000"))).to_wire(), order)
    payload = json.loads(brought.payload)
    payload["looks"], payload["used"] = [], "0"
    w._due[0] = (1.0, scheduled, replace(brought, payload=json.dumps(payload)))
    w.until(20)
    with pytest.raises(hb.EngineError):
        w.desk.answer("ada", one)
    w.close()
