"""What a connection does that a session does not, and what it cannot: each of it refused, with the reason."""

from __future__ import annotations

import ast
import contextlib
import json
import socket
import subprocess
import sys
import threading
import warnings
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("starlette", reason="the service needs the extra `serve`")

import hubbub as hb
from hubbub import errors
from hubbub.errors import EngineError, InternalError
from hubbub.ledger.charging import Locked
from hubbub.ledger.timetable import QueueFull
from hubbub.remedies import GiveOptions
from hubbub.remote import NOT_HERE, Connection
from hubbub.remote.answers import refinement_of
from hubbub.remote.wire import Wire, raised_again
from hubbub.service.clerk import _refusal
from hubbub.service.http.problem import problem
from hubbub.service.states import HELD
from remote.living import Living
from remote.test_face import tables

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def living(tmp_path_factory):
    made = Living(tmp_path_factory.mktemp("living"), tables(), hb.Budget(100))
    yield made
    made.close()


@pytest.fixture(scope="module")
def ada(living):
    with hb.connect(living.url, token=living.token("ada"), purpose="a test") as made:
        yield made


@pytest.mark.parametrize("name", NOT_HERE)
def test_what_is_not_here_is_refused_with_the_reason(ada, name):
    reason = NOT_HERE[name].split("(")[0]
    fresh = partial(ada.sql, "SELECT COUNT(*) FROM visits", epsilon=1, fresh=True)
    act = fresh if name == "fresh=True" else partial(getattr, ada, name)
    with pytest.raises(hb.PolicyError) as refused:
        act()
    assert str(refused.value).startswith(f"{name}: not through a service: {reason}")


def test_a_connection_has_everything_of_a_session_or_says_why_not():
    session = {name for name in dir(hb.Session) if not name.startswith("_")}
    assert session - set(dir(Connection)) == {*NOT_HERE} - {"fresh=True", "ledger"}
    page = (ROOT / "docs/tutorial/ask-through-a-service.md").read_text("utf-8")
    for name, reason in NOT_HERE.items():
        assert f"`{name}`" in page
        assert reason in " ".join(page.split())


def test_it_imports_nothing_but_pythons_own_pyarrow_and_hubbub():
    imported = set()
    for file in (ROOT / "src/hubbub/remote").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            imported |= {name.partition(".")[0] for name in names}
    assert imported <= {*sys.stdlib_module_names, "pyarrow", "hubbub"}


def test_questions_that_are_asked_ahead_wait_together(ada):
    asked = [ada.ask(f"SELECT COUNT(*) AS n FROM visits WHERE n < {k}", epsilon="0.5") for k in (2, 3, 4)]
    assert all(one.release_at is not None for one in asked)
    assert [len(one.answer()) for one in asked] == [1, 1, 1]
    assert ada.ask("SELECT COUNT(*) AS n FROM visits WHERE n < 2", epsilon="0.5").release_at is None
    assert ada.answer(asked[0].id).to_arrow().equals(asked[0].answer().to_arrow())
    assert {entry.purpose for entry in ada.history()} == {"a test"}


def test_another_s_question_is_not_there(living, ada):
    one = ada.ask("SELECT COUNT(*) AS n FROM visits WHERE n = 3", epsilon="0.5")
    with hb.connect(living.url, token=living.token("bob")) as bob:
        for act in (lambda: bob.answer(one.id), lambda: bob.receipt(one.id), lambda: bob.answer("0" * 32)):
            with pytest.raises(hb.PolicyError, match=r"^there is no such question of yours\.$"):
                act()
        assert bob.history() == []


@pytest.mark.parametrize("token", ["hub_00000000_" + "a" * 32, "x"])
def test_a_token_that_is_not_known(living, token):
    with pytest.raises(hb.PolicyError):
        hb.connect(living.url, token=token)


@pytest.mark.parametrize("url", ["", "data.example.org", "ftp://x", "http://", "http://a@b/", "http://x/?token=1"])
def test_what_is_no_address(url):
    with pytest.raises(hb.PolicyError, match="expected the address of a service"):
        hb.connect(url, token="hub_x")


def test_a_password_in_an_address_is_not_shown():
    with pytest.raises(hb.PolicyError) as refused:
        hb.connect("http://ada:tell-nobody@b/", token="hub_x")
    assert "tell-nobody" not in str(refused.value)


@pytest.mark.parametrize(("url", "warned"), [("http://192.0.2.1", True), ("http://127.0.0.1", False)])
def test_a_token_that_would_go_in_the_clear_is_warned_of(url, warned):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        Wire(url, "hub_x", patience=1)
    assert [str(one.message).startswith("192.0.2.1 is asked without TLS") for one in seen] == [True] * warned


@pytest.mark.parametrize("token", ["", " ", "a\nb", "\u00e9", None])
def test_what_is_no_token(token):
    with pytest.raises(hb.PolicyError, match="expected a token"):
        hb.connect("http://127.0.0.1:1", token=token)


def test_where_nobody_answers_and_where_somebody_else_does():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(hb.PolicyError, match="does not answer"):
        hb.connect(f"http://127.0.0.1:{port}", token="hub_x")
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer():
            heard, _ = other.accept()
            with heard:
                heard.recv(4096)
                heard.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(hb.PolicyError, match="not one of hubbub's"):
            hb.connect(f"http://127.0.0.1:{other.getsockname()[1]}", token="hub_x")
        thread.join(5)


@pytest.mark.parametrize(
    "error",
    [
        hb.QueryError("words\n  SELECT\n  ^^^", remedy=GiveOptions(("epsilon",))),
        hb.ParameterError("a number"),
        hb.PolicyError("declare it"),
        hb.BudgetError("too much", asked="1", left="1/3"),
        EngineError("5ad37e753933"),
        QueueFull("later", 7),
        Locked("a steward looks"),
        InternalError("a defect"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_refusal_comes_over_the_wire_as_it_was(error):
    error.position = (0, 6) if isinstance(error, hb.QueryError) else None
    told = _refusal(error)
    sent = json.loads(bytes(problem(told.pop("kind"), told.pop("text"), **told).body))
    again = raised_again(sent)
    assert isinstance(error, type(again))
    assert type(again).__name__ in ("PolicyError", type(error).__name__)
    assert (str(again), again.position) == (str(error), error.position)
    assert again.remedies == error.remedies
    for name in ("asked", "left", "incident"):
        assert getattr(again, name, None) == getattr(error, name, None)


def test_a_refusal_that_makes_no_sense_is_still_one():
    for told in ({}, {"class": "SystemExit", "detail": 3}, {"position": [1]}, {"class": "errors", "kind": "query"}):
        assert isinstance(raised_again(told), hb.HubbubError)


def test_it_waits_where_it_is_told_to(monkeypatch):
    said = iter([(429, 1.0, {}), (503, 2.0, {}), (200, None, {"name": "ada"})])
    slept = []
    monkeypatch.setattr("hubbub.remote.wire.time.sleep", slept.append)
    wire = Wire("http://127.0.0.1:1", "hub_x", patience=10)
    monkeypatch.setattr(wire, "_asked", lambda *_: next(said))
    assert wire.get("/me") == {"name": "ada"}
    assert slept == [1.0, 2.0]
    monkeypatch.setattr(wire, "_asked", lambda *_: (429, 11.0, {"kind": "queue", "detail": "20 wait"}))
    with pytest.raises(hb.PolicyError, match="20 wait"):
        wire.get("/me")


def asked_of(monkeypatch, retry_after):
    """What a line makes of a refusal with this header."""
    wire = Wire("http://127.0.0.1:1", "hub_x", patience=0)
    said = SimpleNamespace(status=429, headers={"Retry-After": retry_after}, read=lambda _: b"{}")
    monkeypatch.setattr(wire, "_connected", lambda: SimpleNamespace(request=lambda *_: None, getresponse=lambda: said))
    return wire._asked("GET", "/me", None, None)


def test_whatever_a_service_says_of_waiting_is_met_and_waited_for(monkeypatch):
    """Headers are read as latin-1, three of whose digits are no numbers; 0 would be a loop without a pause."""
    letters = [chr(code) for code in range(1, 256)]
    for said in (*letters, *(f"1{letter}" for letter in letters), "-1", "1e9", "inf", "nan", "9" * 5000, "", None):
        _, wait, _ = asked_of(monkeypatch, said)
        number = bool(said) and all("0" <= letter <= "9" for letter in said)
        assert wait == (max(0.1, float(said)) if number else None), repr(said)


def test_a_service_that_does_not_wait_is_not_asked_without_a_pause(monkeypatch):
    made, slept = object.__new__(Connection), []
    said = iter([{"state": "asked", "id": "q"}] * 20 + [{"state": "answered", "answer": 1}])
    monkeypatch.setattr(made, "told_of", lambda *_, **__: next(said), raising=False)
    monkeypatch.setattr("hubbub.remote.connection.time.sleep", slept.append)
    assert made._waited({"state": "asked", "id": "q"}, "answer")["answer"] == 1
    assert slept == [0.5] * 20


def test_whatever_a_refusal_holds_it_is_one_with_its_words():
    odd = [
        None,
        3,
        -1.5,
        1e400,
        True,
        "x",
        [],
        [1],
        [1, 2],
        ["a", "b"],
        [None, 1],
        [1e400, 2],
        {},
        {"remedy": "x"},
        [{}],
    ]
    names = [*vars(errors), "no such", None]
    for name in names:
        for value in odd:
            told = {"kind": "query", "class": name, "detail": "its words", "position": value, "remedies": value}
            assert str(raised_again(told)) == "its words", (name, value)
        for part in ("kind", "class", "detail", "asked", "left"):
            assert all(isinstance(raised_again({"class": name, part: value}), hb.HubbubError) for value in odd)


ODD = [
    None, 3, -1.5, 1e400, True, "x", "answer", [], [1], [[]], {}, {"state": 1}, {"state": "asked"},
    {"state": "waiting"},
    {"state": "no answer"}, {"state": "answered", "answer": 1}, {"state": "answered", "answer": {}, "bounds": {}},
    {"state": "asked", "release_at": "soon"}, {"state": "asked", "release_at": 3}, {"questions": 1}, {"questions": [1]},
    {"left": "1/0"}, {"left": []}, {"spaces": []}, {"spaces": [1]}, {"spaces": [{"epsilon": "x", "delta": []}]},
    {"columns": [["n", 10**400, 1, "x"]]}, {"columns": 1}, {"epsilon": "1", "left": None, "columns": []},
    [{"id": 1}], [{"id": "a", "asked_at": 1, "sql": 1, "state": "x", "epsilon": "1/0"}], {"answer": 1}, {"bounds": 1},
    {"v": 1}, {"v": {"columns": {"x": "y"}}}, {"v": {"columns": {}, "private": 1, "unit": 1, "declared": {"x": 1}}},
]  # fmt: skip
ACTS = {
    "ask": lambda c: c.ask("SELECT 1", epsilon=1),
    "sql": lambda c: c.sql("SELECT 1", epsilon=1),
    "check": lambda c: c.check("SELECT 1", epsilon=1),
    "check_bounds": lambda c: c.check_bounds("SELECT 1", epsilon=1),
    "plan": lambda c: c.plan([("SELECT 1", 1)]),
    "answer": lambda c: c.answer("a"),
    "refined": lambda c: c.refined("a", 1),
    "refinement": lambda c: refinement_of(c, "a", Fraction(1)),
    "history": lambda c: c.history(),
    "receipt": lambda c: c.receipt("a"),
    "tables": lambda c: c.tables,
    "table": lambda c: c.table("v"),
    "remaining": lambda c: c.remaining,
    "budget": lambda c: c.budget,
    "analyst": lambda c: c.analyst,
}


class Asked(Exception):
    """A question is asked about again."""


@pytest.mark.parametrize("act", ACTS)
def test_whatever_a_service_tells_is_understood_or_refused(monkeypatch, act):
    """Told once, and for good: a service that tells nothing else for ever is waited for, as it may."""
    asked = []
    for told in ODD:
        said = iter([told, told, told])

        def tell(path, *_, said=said, **__):
            asked.append(path)
            for each in said:
                return each
            raise Asked

        monkeypatch.setattr("hubbub.remote.connection.time.sleep", lambda _: None)
        wire = SimpleNamespace(url="http://here", get=tell, post=tell)
        with contextlib.suppress(hb.HubbubError, Asked):
            ACTS[act](Connection(wire))
    assert set(asked) > {"/me"} or act == "analyst"


@pytest.mark.parametrize("act", ["sql", "check_bounds", "plan", "answer", "refined"])
def test_a_refusal_while_an_answer_is_waited_for_keeps_its_class_and_words(act):
    """A ParameterError is a ValueError, as what cannot be read is: it was told as a service that is not understood."""

    def refuse(path, *_, **__):
        if path.startswith("/answers/") and not path.endswith("refine"):
            raise hb.ParameterError("its words")
        return {"state": "asked", "id": "a", "questions": [{"state": "asked", "id": "a"}]}

    with pytest.raises(hb.ParameterError, match="its words"):
        ACTS[act](Connection(SimpleNamespace(url="http://here", get=refuse, post=refuse)))


@pytest.mark.parametrize("state", HELD)
@pytest.mark.parametrize("act", ["sql", "check_bounds", "plan", "answer", "refined"])
def test_a_question_that_is_not_in_the_schedule_is_not_waited_for(act, state):
    """There is nothing to wait for but people: who asked is told so, and does not ask for ever."""
    asked = []

    def tell(path, *_, **__):
        asked.append(path)
        if len(asked) > 2:
            raise Asked
        return {"state": state, "id": "w", "questions": [{"state": state, "id": "w"}]}

    with pytest.raises(hb.PolicyError, match=r"steward|taken back"):
        ACTS[act](Connection(SimpleNamespace(url="http://here", get=tell, post=tell)))


def test_the_id_of_a_question_is_a_part_of_an_address_and_no_more():
    asked = []
    wire = SimpleNamespace(get=lambda *_: {}, post=lambda path, *_: asked.append(path))
    with pytest.raises(hb.PolicyError, match="not understood"):
        refinement_of(Connection(wire), "../x?y#z", Fraction(1))
    assert asked == ["/answers/..%2Fx%3Fy%23z/refine/check"]


def test_a_token_stands_in_no_address_and_in_no_words(ada, living):
    token = living.token("cy")
    made = hb.connect(living.url, token=token)
    assert token not in repr(made)
    assert token not in made.wire.url


def test_names_load_when_they_are_used():
    script = "import hubbub, sys; hubbub.connect; assert not {'duckdb', 'pandas', 'starlette'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
