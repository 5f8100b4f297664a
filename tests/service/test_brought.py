"""What a run brought is anything where somebody took its process over: the clerk tells an answer or an incident, soon.

`Fraction` reads "1e999999999" for hours, and nobody else is told anything meanwhile. So amounts of a payload are read
as ratios alone; a text of the same kind stands for it here that `Fraction` reads at once.
"""

from __future__ import annotations

import copy
import json
import socket
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

import hubbub as hb
from hubbub.service.frames import send
from hubbub.service.lanes import _PATIENCE, Lanes, _Process
from hubbub.session.finding import bounds_in
from service.helpers import World
from service.test_found_in_service import AUTO, SHARE, Found

FORMS = "SELECT w, COUNT(*) AS n, AVG(x) AS m, MEDIAN(x) AS h FROM v GROUP BY w"
COUNTED = "SELECT COUNT(*) AS n FROM v"
LONG = "1e3"


def places(payload, at=()):
    """Every place of a payload, of lists the first two pieces."""
    yield at
    pieces = (
        payload.items() if isinstance(payload, dict) else enumerate(payload[:2] if isinstance(payload, list) else [])
    )
    for key, piece in pieces:
        yield from places(piece, (*at, key))


def put(payload, at, value):
    changed = copy.deepcopy(payload)
    piece = changed
    for key in at[:-1]:
        piece = piece[key]
    piece[at[-1]] = value
    return json.dumps(changed)


def read(w, monkeypatch, charge, payload):
    """What is told of a question whose run brought this: its state, or "incident"."""
    stored = type(w.ledger.record).release
    with monkeypatch.context() as patched:
        patched.setattr(
            type(w.ledger.record), "release", lambda self, name: replace(stored(self, name), payload=payload)
        )
        try:
            return w.desk.answer("ada", charge)["state"]
        except hb.EngineError:
            return "incident"
        except hb.PolicyError as error:
            assert "another version" in str(error)
            return "incident"


@pytest.fixture
def asked(tmp_path, monkeypatch, request):
    """A world in which a question was answered: the world, its id, its payload."""
    sql, options, world, more = request.param
    w = world(tmp_path / "l.db", monkeypatch, takes=1, **more)
    charge = w.desk.ask("ada", sql, options, "r")["id"]
    w.until(11)
    assert w.desk.answer("ada", charge)["state"] == "answered"
    yield w, charge, json.loads(w.ledger.record.release(charge).payload)
    w.close()


PLAIN = (FORMS, {"epsilon": "0.5"}, World, {})
BOUND = ("SELECT SUM(x) AS s FROM v", {**AUTO, "total_error": True}, Found, {})
STEPS = ("SELECT COUNT(DISTINCT id) AS n FROM v", SHARE, Found, {"pure": False})


@pytest.mark.parametrize("asked", [PLAIN, BOUND, STEPS], indirect=True)
def test_an_amount_is_a_ratio_and_nothing_that_takes_long_to_read(asked, monkeypatch):
    w, charge, payload = asked
    amounts = [
        at
        for at in places(payload)
        if (at and at[-2:-1] in (("spend",), ("shares",), ("part",))) or at[-1:] in (("bound",), ("used",))
    ]
    assert len(amounts) > 3
    told = {at: read(w, monkeypatch, charge, put(payload, at, LONG)) for at in amounts}
    assert {at for at, state in told.items() if state == "answered"} == set()


WRONG = (None, -1, 10**400, 2**63, "", "x", [], {}, [[]], "\ud800", 1e308, float("nan"))


@pytest.mark.parametrize("asked", [PLAIN], indirect=True)
@pytest.mark.parametrize(
    "wrong", [10**400, [], pytest.param(WRONG, marks=pytest.mark.soak)], ids=["long", "none", "all"]
)
def test_whatever_is_wrong_is_an_incident(asked, monkeypatch, wrong):
    w, charge, payload = asked
    for value in wrong if wrong is WRONG else [wrong]:
        for at in list(places(payload))[1:]:
            assert read(w, monkeypatch, charge, put(payload, at, value)) in ("answered", "incident"), (at, value)
    assert read(w, monkeypatch, charge, "[" * 100_000) == "incident"


@pytest.mark.parametrize("asked", [BOUND], indirect=True)
def test_a_bound_is_what_a_search_finds_or_is_not_read(asked):
    """It is known in later questions of its analyst: what is none would stop each of them."""
    _, _, payload = asked
    found = payload["found"][0]
    assert [*bounds_in(json.dumps(payload)).values()] == [{k: v for k, v in found.items() if k != "plan"}]
    wrong = [(name, value) for name in found for value in (None, -1, 10**400, [], {}, float("nan"))]
    wrong += [("bound", text) for text in ("x", "0", "-1", "1/0", LONG, "9" * 2000)]
    wrong += [("place", 41), ("noisy", [0]), ("noisy", ["0"] * 41), ("part", ["0", None]), ("part", ["1", "1"])]
    for name, value in wrong:
        assert bounds_in(put(payload, ("found", 0, name), value)) is None, (name, value)
    assert bounds_in(json.dumps({**payload, "found": [{**found, "what": "rows", "bound": "3"}]})) is None
    for text in (
        "[" * 100_000,
        "[]",
        "x",
        json.dumps({**payload, "found": {}}),
        json.dumps({**payload, "found": [[]]}),
    ):
        assert bounds_in(text) is None


def test_a_run_that_brings_a_bound_that_is_none_has_no_answer(tmp_path, monkeypatch):
    """As one that brings no outcome: it failed. Neither its own question nor the next one is a defect of ours."""
    w = Found(tmp_path / "l.db", monkeypatch, takes=1)
    charge = w.desk.ask("ada", COUNTED, AUTO, "r")["id"]
    ((at, scheduled, brought),) = w._due
    payload = put(json.loads(brought.payload), ("found", 0, "bound"), "x")
    w._due = [(at, scheduled, replace(brought, payload=payload))]
    w.until(11)
    assert w.desk.answer("ada", charge)["state"] == "no answer"
    more = {**AUTO, "epsilon": "2"}
    assert w.desk.check("ada", COUNTED, more)["answer_time"] == 10  # the bound is not known
    with monkeypatch.context() as patched:  # of a ledger that kept one
        patched.setattr(type(w.ledger.record), "bounds_found", lambda *_, **__: [payload, "["])
        assert w.desk.check("ada", COUNTED, more)["answer_time"] == 10
    w.close()


@pytest.mark.parametrize(
    "said", [{"what": "x"}, {"what": "z"}, {"what": "groups"}, {"what": "x", "bound": "1/3"}], ids=str
)
def test_a_bound_of_another_search_under_the_name_of_one_is_not_known(tmp_path, monkeypatch, said):
    """It is of the form that a search writes; planning with it raised what nobody reads, in every later question."""
    w = Found(tmp_path / "l.db", monkeypatch, takes=1)
    charge = w.desk.ask("ada", COUNTED, AUTO, "r")["id"]
    w.until(11)
    payload = json.loads(w.ledger.record.release(charge).payload)
    texts = [json.dumps(payload)]
    monkeypatch.setattr(type(w.ledger.record), "bounds_found", lambda *_, **__: texts)
    more = {**AUTO, "epsilon": "2"}
    assert w.desk.check("ada", COUNTED, more)["answer_time"] == 5  # it is known
    payload["found"][0] |= said
    texts[0] = json.dumps(payload)
    assert bounds_in(texts[0])
    assert w.desk.check("ada", COUNTED, more)["answer_time"] == 10
    w.close()


class Lane(Lanes):
    """Lanes without a process of their own."""

    def __init__(self, *processes):
        self._lock, self._processes, self.replaced = threading.RLock(), list(processes), []
        self._policy = SimpleNamespace(path="policy", service=SimpleNamespace(lanes=1))
        self._objects, self._closed = SimpleNamespace(keep=lambda paths: None), False

    def _look(self):
        pass

    def _replace(self, process):
        self.replaced.append(process)


def process(line, began):
    return _Process(0, 0, SimpleNamespace(poll=lambda: None), line, "", began)


@pytest.mark.parametrize("said", [[1], "ready", {"ready": {}}, {"refused": ["x"]}, {}])
def test_a_runner_that_says_what_none_says_is_replaced(said):
    here, there = socket.socketpair()
    with here, there:
        one = process(here, time.monotonic() - 2)
        lanes = Lane(one)
        send(there, said)
        lanes._greet(one)
        assert not one.ready
        lanes.sweep()
        assert lanes.replaced == [one]


def test_a_runner_that_never_says_that_it_is_ready_is_replaced():
    late, soon = process(None, time.monotonic() - _PATIENCE - 1), process(None, time.monotonic())
    lanes = Lane(late, soon)
    lanes.sweep()
    assert lanes.replaced == [late]
