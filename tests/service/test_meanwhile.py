"""A passphrase takes a while to compute: whose session, token or role ended meanwhile does nothing more with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hubbub.service.acts import ACTS
from hubbub.service.gate import Gate
from hubbub.service.people.people import People
from hubbub.service.people.person import NotKnown
from hubbub.service.people.registry import Registry
from service.test_people import PHRASE, Desk, _quick, desk, people, session, token  # noqa: F401  (fixtures)

ENDS: dict[str, Callable[[People, dict[str, str]], object]] = {
    "disabled": lambda folk, proof: folk.roll.disable("sue", by="tom"),
    "another role": lambda folk, proof: folk.roll.set_roles("sue", ["auditor"], by="tom"),
    "a link for a lost passphrase": lambda folk, proof: folk.roll.reset("sue", by="tom"),
    "logged out": lambda folk, proof: folk.sessions.logout(folk.prove(proof)),
}
NEW = "another correct horse"
ACT_OF: dict[str, dict[str, Any]] = {
    "change_passphrase": {"old": PHRASE, "new": NEW},
    "grant": {"account": "analyst:ada", "epsilon": "1", "reason": "x", "passphrase": PHRASE},
    "invite": {"name": "eve", "roles": ["steward"], "passphrase": PHRASE},
    "set_roles": {"name": "ada", "roles": ["steward"], "passphrase": PHRASE},
    "reset": {"name": "tom", "passphrase": PHRASE},
}


def meanwhile(folk: People, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], *, when: int = 1) -> None:
    """Have this happen once while a passphrase is computed: the first one, or the second."""
    slow, calls = folk.sessions._passphrases._slow, [0]

    def slowly(passphrase: str, salt: bytes) -> bytes:
        calls[0] += 1
        told = slow(passphrase, salt)
        if calls[0] == when:
            act()
        return told

    monkeypatch.setattr(folk.sessions._passphrases, "_slow", slowly)


@pytest.fixture
def gate(people: People, desk: Desk) -> Gate:  # noqa: F811
    people.roll.add("tom", ["steward"], by="test")
    rooms = dict.fromkeys(("desk", "declared", "office", "requests", "archive", "elsewhere"), desk)
    return Gate(people, {**rooms, "registry": Registry(people)})


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("name", sorted(ACT_OF))
def test_whose_session_ends_while_his_passphrase_is_computed_does_nothing(
    people: People,  # noqa: F811
    desk: Desk,  # noqa: F811
    gate: Gate,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    how: str,
) -> None:
    proof = session(people, "sue")
    meanwhile(people, monkeypatch, lambda: ENDS[how](people, proof))
    with pytest.raises(NotKnown):
        gate.done(name, ACT_OF[name], proof)
    roles = {one["name"]: one["roles"] for one in people.roll.everybody()}
    assert "eve" not in roles
    assert roles["ada"] == ["analyst"]
    assert desk.done == []
    with pytest.raises(NotKnown):
        people.login("sue", NEW)


@pytest.mark.parametrize("how", ENDS)
def test_a_new_passphrase_is_not_kept_where_the_session_ends_while_it_is_computed(
    people: People,  # noqa: F811
    gate: Gate,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    """Else whoever has a stolen passphrase outruns the steward who takes it from him."""
    proof = session(people, "sue")
    meanwhile(people, monkeypatch, lambda: ENDS[how](people, proof), when=2)
    with pytest.raises(NotKnown):
        gate.done("change_passphrase", ACT_OF["change_passphrase"], proof)
    with pytest.raises(NotKnown):
        people.login("sue", NEW)


@pytest.mark.parametrize("how", ["ended", "disabled", "another role"])
def test_a_token_that_ends_while_a_passphrase_is_computed_confirms_nothing(
    people: People,  # noqa: F811
    desk: Desk,  # noqa: F811
    gate: Gate,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    session(people, "sue")
    proof = token(people, "sue")
    ended = ENDS | {"ended": lambda folk, proof: folk.keys.end(proof["token"].split("_")[1], by="tom")}
    meanwhile(people, monkeypatch, lambda: ended[how](people, proof))
    with pytest.raises(NotKnown):
        gate.done("grant", ACT_OF["grant"], proof)
    assert desk.done == []
    assert ACTS["grant"].confirmed
