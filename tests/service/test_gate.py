"""The gate by itself: who may what as a person would write it down, and every door of `done`, one after the other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hubbub.errors import QueryError
from hubbub.service import gate as gate_of
from hubbub.service.acts import ACTS, checked
from hubbub.service.gate import Gate, Unknown
from hubbub.service.people.person import NotAllowed, NotKnown, TooMany

WHO: dict[tuple[str, ...], set[str]] = {
    (): {"metrics", "login", "invited", "accept", "enter", "ways", "begin", "onward", "finish"},
    ("known",): {
        "whoami", "logout", "change_passphrase", "tokens", "create_token", "end_token", "devices", "end_device",
        "end_other_devices", "binding", "begin_binding",
    },
    ("check",): {"check", "budget", "table"},
    ("ask",): {
        "ask", "answer", "read", "answers", "check_refine", "refine", "check_bounds", "plan", "cancel", "history",
        "receipt", "events", "request_budget", "my_requests", "withdraw_request",
    },
    ("check", "steward", "auditor"): {"tables"},
    ("steward", "auditor", "metrics"): {"spending"},
    ("steward", "auditor"): {
        "people", "requests", "spaces", "limits", "charges", "chain", "audit", "verify_audit",
        "bound_costs", "policy_changes", "begin_chain", "chain_walk",
    },
    ("steward",): {
        "invite", "set_roles", "disable", "enable", "leave", "reset", "tokens_of", "end_token_of", "decide", "grant",
        "revoke_grant", "unlock", "raise_ceiling", "refresh", "incidents", "incident",
    },
}  # fmt: skip
READING = {
    "metrics", "login", "invited", "accept", "enter", "whoami", "tokens", "tables", "check", "answer", "answers",
    "check_refine", "budget", "table", "history", "receipt", "events", "my_requests", "people", "requests", "spaces",
    "limits", "charges", "chain", "audit", "verify_audit", "tokens_of", "incidents",
    "devices", "ways", "begin", "onward", "finish", "binding", "spending",
    "bound_costs", "policy_changes", "chain_walk",
}  # fmt: skip
"""What changes nothing that a forged form of another page could do harm with: no word of the form is asked for."""


def test_who_may_what_is_what_was_meant() -> None:
    assert {act.name: tuple(act.needs) for act in ACTS.values()} == {
        n: who for who, names in WHO.items() for n in names
    }


def test_what_changes_something_needs_the_word_of_the_form() -> None:
    assert {act.name for act in ACTS.values() if not act.changes} == READING


def test_what_weakens_a_promise_is_confirmed_and_what_is_ones_own_is_done_on_the_pages() -> None:
    assert {act.name for act in ACTS.values() if act.confirmed} == {"grant", "unlock", "raise_ceiling"}
    assert {act.name for act in ACTS.values() if act.page} == {
        "logout", "change_passphrase", "devices", "end_device", "end_other_devices", "binding", "begin_binding",
    }  # fmt: skip
    assert {a.name for a in ACTS.values() if a.room == "people"} >= {"login", "create_token", "tokens"}


def test_the_limits_of_a_token_go_with_whatever_spends_or_says_what_is_left() -> None:
    spends = {"check", "ask", "answer", "read", "check_refine", "refine", "check_bounds", "plan", "budget"}
    assert {act.name for act in ACTS.values() if act.limited} == spends


@pytest.mark.parametrize("name", sorted(ACTS))
def test_fields_are_all_there_each_of_its_kind_and_no_others(name: str) -> None:
    act = ACTS[name]
    some = {str: "x", dict: {}, list: [], int: 3, bool: True}
    wrong = {str: [], dict: [], list: "x", int: "3", bool: 1}
    needed = dict(act.required) | ({"passphrase": str, "reason": str} if act.confirmed else {})
    given = {field: some[kind] for field, kind in needed.items()}
    assert checked(act, given) == given
    for field in needed:
        with pytest.raises(QueryError, match="missing"):
            checked(act, {k: v for k, v in given.items() if k != field})
    for field, kind in {**needed, **act.optional}.items():
        with pytest.raises(QueryError, match=r"is not (a text|an object|a list|a whole number|true or false)\."):
            checked(act, {**given, field: wrong[kind]})
    if act.required:
        with pytest.raises(QueryError, match=r"is not|missing"):
            checked(act, {**given, next(iter(act.required)): None})
    for field, kind in act.optional.items():
        assert checked(act, {**given, field: None}) == {k: v for k, v in given.items() if k != field}
        assert checked(act, {**given, field: some[kind]})[field] == some[kind]
        if kind is int:
            with pytest.raises(QueryError, match="is not a whole number"):
                checked(act, {**given, field: True})
    for more in {"who", "analyst", "person", "passphrases"} - {*act.optional}:
        with pytest.raises(QueryError, match="there is no"):
            checked(act, {**given, more: "x"})
        with pytest.raises(QueryError, match="there is no"):
            checked(act, {**given, more: None})  # what is null is left out, where there is such a field
    for nothing in (None, [], "x"):
        with pytest.raises(QueryError, match="expected an object"):
            checked(act, nothing)


def test_an_object_is_as_deep_as_may_be_and_no_deeper() -> None:
    def nested(depth: int, last: Any) -> Any:
        for level in range(depth - 1):
            last = [last] if level % 2 else {"a": last, "b": 1}
        return last

    for last in ({}, []):
        assert checked(ACTS["check"], {"sql": "s", "options": {"a": nested(31, last)}})
        with pytest.raises(QueryError, match="deeper than 32"):
            checked(ACTS["check"], {"sql": "s", "options": {"a": nested(32, last)}})
    with pytest.raises(QueryError, match="deeper"):
        checked(ACTS["plan"], {"questions": [1, {"a": nested(40, {})}, 2], "request": "r"})


class Room:
    def __init__(self) -> None:
        self.done: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        def method(*who: Any, **given: Any) -> str:
            self.done.append((name, who, given))
            return f"told of {name}"

        return method


class People(Room):
    """Everybody's proofs: the proof of a person is his name, with the scopes that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Any] = []
        self.confirmed: list[Any] = []
        self.forms = True

    def prove(self, proof: Any, *, changes: bool) -> Any:
        self.asked.append((proof, changes))
        if proof is None:
            raise NotKnown("who?")
        name, scopes, session = proof
        may = lambda needs: bool(set(needs) & set(scopes))  # noqa: E731
        return SimpleNamespace(name=name, may=may, session=session, token="its limits")

    def confirm(self, person: Any, passphrase: str) -> None:
        self.confirmed.append((person.name, passphrase))
        if passphrase != "right":
            raise NotAllowed("wrong")


@pytest.fixture
def people() -> People:
    return People()


@pytest.fixture
def desk() -> Room:
    return Room()


@pytest.fixture
def office() -> Room:
    return Room()


@pytest.fixture
def gate(people: People, desk: Room, office: Room) -> Gate:
    behind = dict.fromkeys(("office", "requests", "archive", "registry", "declared"), office)
    return Gate(people, {"desk": desk, **behind}, checks=(1.0, 2))  # type: ignore[arg-type]


ADA, SUE = ("ada", ["check", "ask"], None), ("sue", ["steward"], "a session")


def test_what_is_no_act_here_is_unknown_before_anybody_is_looked_at(gate: Gate, people: People) -> None:
    for name in ("none", "", "_as", "done", 3, None, ["check"]):
        with pytest.raises(Unknown, match="there is no"):
            gate.done(name, {}, ADA)
    with pytest.raises(Unknown):
        Gate(people, {}).done("check", {"sql": "s", "options": {}}, ADA)  # type: ignore[arg-type]
    assert people.asked == []


def test_an_act_is_done_in_its_room_for_whoever_proved_to_be_him(gate: Gate, desk: Room, office: Room) -> None:
    assert gate.done("history", {}, ADA) == "told of history"
    assert gate.done("check", {"sql": "s", "options": {}}, ADA) == "told of check"
    assert desk.done == [
        ("history", ("ada",), {}),
        ("check", ("ada",), {"sql": "s", "options": {}, "token": "its limits"}),
    ]
    gate.done("my_requests", {}, ADA)
    ((name, (person,), given),) = office.done  # the office is told the person, with his session and roles
    assert (name, person.name, given) == ("my_requests", "ada", {})


def test_who_may_not_is_refused_before_his_fields_are_looked_at(gate: Gate, desk: Room, office: Room) -> None:
    with pytest.raises(NotAllowed, match="needs steward"):
        gate.done("unlock", "no fields", ADA)
    with pytest.raises(NotKnown):
        gate.done("check", "no fields", None)
    with pytest.raises(NotAllowed, match="on the pages"):
        gate.done("change_passphrase", {"old": "a", "new": "b"}, ADA)
    assert gate.done("change_passphrase", {"old": "a", "new": "b"}, SUE)
    assert gate.done("whoami", {}, ("nothing", [], None))
    assert (desk.done, office.done) == ([], [])


def test_what_needs_no_proof_looks_at_none(gate: Gate, people: People, desk: Room) -> None:
    gate.done("login", {"name": "ada", "passphrase": "p"}, None)
    gate.done("metrics", {}, ("ada", [], None))
    assert people.done == [("login", (), {"name": "ada", "passphrase": "p"})]
    assert desk.done == [("metrics", (), {})]
    assert people.asked == []


def test_the_word_of_a_form_is_asked_for_where_something_changes(gate: Gate, people: People) -> None:
    gate.done("history", {}, ADA)
    gate.done("cancel", {"charge": "c"}, ADA)
    assert [changes for _, changes in people.asked] == [False, True]


def test_what_is_confirmed_is_done_with_the_right_passphrase_and_without_it(
    gate: Gate, people: People, office: Room
) -> None:
    given = {"account": "everyone", "epsilon": "1", "reason": "r"}
    with pytest.raises(NotAllowed, match="wrong"):
        gate.done("grant", {**given, "passphrase": "other"}, SUE)
    assert office.done == []
    gate.done("grant", {**given, "passphrase": "right"}, SUE)
    ((name, (person,), fields),) = office.done
    assert (name, person.name, fields) == ("grant", "sue", given)
    assert people.confirmed == [("sue", "other"), ("sue", "right")]
    gate.done("incidents", {}, SUE)
    assert len(people.confirmed) == 2


@pytest.mark.parametrize("also", ["check", "check_refine"])
def test_checks_of_one_person_are_so_many_and_other_acts_are_not_counted(gate: Gate, also: str) -> None:
    fields = {"check": {"sql": "s", "options": {}}, "check_refine": {"charge": "c", "epsilon": "1"}}
    for name in ("check", also):
        gate.done(name, fields[name], ADA)
    with pytest.raises(TooMany, match="1 checks a second, 2 at once; try again in 1 s") as many:
        gate.done(also, fields[also], ADA)
    assert many.value.retry_after == 1
    for _ in range(5):
        gate.done("history", {}, ADA)
    gate.done("check", fields["check"], ("bob", ["check"], None))


def test_changes_of_one_person_are_so_many_but_those_at_the_desk_have_a_price_of_their_own(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "_changes", gate_of.Rate(0.01, 3))
    for _ in range(3):
        gate.done("disable", {"name": "bob"}, SUE)
    with pytest.raises(TooMany, match="1 changes a second, 60 at once"):
        gate.done("enable", {"name": "bob"}, SUE)
    gate.done("people", {}, SUE)
    for _ in range(5):
        gate.done("cancel", {"charge": "c"}, ("sue", ["ask"], None))
    gate.done("end_token", {"token": "t"}, ADA)


def test_who_may_no_more_after_his_turn_came_does_nothing(gate: Gate, people: People, desk: Room) -> None:
    """Where he waited, his proof is looked at once more; where he did not, once is enough."""

    class Waited:
        def __init__(self, waited: bool) -> None:
            self.waited = waited

        def of(self, name: str) -> Any:
            assert name == "ada"
            return self

        def __enter__(self) -> bool:
            return self.waited

        def __exit__(self, *error: object) -> None:
            pass

    gate._turns = Waited(False)  # type: ignore[assignment]
    gate.done("history", {}, ADA)
    assert len(people.asked) == 1
    gate._turns = Waited(True)  # type: ignore[assignment]
    gate.done("history", {}, ADA)
    assert len(people.asked) == 3
    people.prove = lambda proof, *, changes: _now(people, proof, changes)  # type: ignore[method-assign]
    gate.done("check", {"sql": "s", "options": {}}, ADA)
    assert desk.done[-1][2]["token"] == "limits 5", "those of now"
    people.prove = People.prove.__get__(people)  # type: ignore[method-assign]
    proved = people.prove
    calls: list[Any] = []

    def once(proof: Any, *, changes: bool) -> Any:
        calls.append(proof)
        return proved(proof if len(calls) == 1 else None, changes=changes)

    people.prove = once  # type: ignore[method-assign]
    with pytest.raises(NotKnown):
        gate.done("history", {}, ADA)
    assert len(desk.done) == 3


def _now(people: People, proof: Any, changes: bool) -> Any:
    """A person whose limits are other ones each time that he is looked at."""
    person = People.prove(people, proof, changes=changes)
    person.token = f"limits {len(people.asked)}"
    return person


def test_a_text_that_no_file_could_hold_is_no_field() -> None:
    with pytest.raises(QueryError, match="not valid Unicode"):
        checked(ACTS["check"], {"sql": "a\ud800", "options": {}})
