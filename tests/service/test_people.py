"""Who may what: proofs that are forged, old, of somebody else; people who are disabled; a log that is rewritten."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from contextlib import ExitStack

import pytest

import hubbub as hb
from hubbub.errors import PolicyError, QueryError
from hubbub.service import gate as gate_of
from hubbub.service.acts import ACTS
from hubbub.service.gate import Gate
from hubbub.service.people import keys, store as store_of
from hubbub.service.people.people import People, link_of
from hubbub.service.people.person import SCOPES, NotAllowed, NotKnown, Person, TooMany
from hubbub.service.people.registry import Registry
from hubbub.service.people.store import after

BEGAN = "2026-11-23T00:00:00.000000Z"
PHRASE = "correct horse battery"


class Clock:
    def __init__(self):
        self.time = BEGAN

    def __call__(self):
        return self.time

    def later(self, **more):
        self.time = after(self.time, **more)


class Desk:
    """Notes who is let in, and as whom."""

    def __init__(self):
        self.done = []

    def __getattr__(self, name):
        def method(who, **given):
            who = getattr(who, "name", who)  # the office is told the person
            self.done.append((name, who, given))
            return {"of": who}

        return method


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """The cost of scrypt is a test of its own."""
    monkeypatch.setattr(keys, "_N", 2)


@pytest.fixture
def people(tmp_path):
    made = People(tmp_path / "service.db", clock=Clock(), url="https://data.example.org")
    made.clock = made.store.clock
    for name, role in (("ada", "analyst"), ("bob", "analyst"), ("sue", "steward"), ("aud", "auditor")):
        made.roll.add(name, [role], by="test")
    yield made
    assert made.store.verify().sound
    made.close()


@pytest.fixture
def desk():
    return Desk()


@pytest.fixture
def gate(people, desk):
    rooms = dict.fromkeys(("desk", "declared", "office", "requests", "archive", "elsewhere"), desk)
    return Gate(people, {**rooms, "registry": Registry(people)})


def token(people, name, **more):
    return {"token": people.new_token(name, by="test", **more)["token"]}


def session(people, name, phrase=PHRASE):
    key, _ = people.roll.reset(name, by="test")
    told = people.accept(key, phrase)
    return {"session": told["session"], "csrf": told["csrf"]}


GIVEN = {"sql": "s", "options": {}, "request": "r", "charge": "c", "name": "bob", "roles": ["analyst"], "token": "x"}


def given_to(act):
    secret = {"passphrase": PHRASE, "reason": "r"} if act.confirmed else {}
    kinds = {list: [], bool: True, dict: {}}
    return {name: GIVEN.get(name, kinds.get(kind, "x")) for name, kind in act.required.items()} | secret


def test_every_act_is_behind_the_gate_and_says_what_it_needs():
    assert {name for act in ACTS.values() for name in act.needs} <= {*SCOPES, "known"}
    open_to_all = {act.name for act in ACTS.values() if not act.needs}
    assert open_to_all == {
        "metrics", "login", "invited", "accept", "enter", "ways", "begin", "onward", "finish",
    }  # fmt: skip
    for act in ACTS.values():
        assert not (act.confirmed and not act.changes), act.name
        if not {"steward", "auditor"} & {*act.needs}:
            assert not {"analyst", "person", "who"} & {*act.required, *act.optional}, act.name
        if act.room in ("people", "registry"):
            assert callable(getattr({"people": People, "registry": Registry}[act.room], act.name))


@pytest.mark.parametrize(
    "who",
    ["nobody", "ada", "bob, checks only", "sue", "aud", "aud, metrics", "expired", "revoked", "disabled", "forged",
     "a session"],
)  # fmt: skip
def test_the_matrix_of_who_may_what(people, desk, gate, who):
    """Every act, by everybody: what he may is done, everything else is refused before anything is looked at."""
    session(people, "sue")  # who chooses a passphrase, for what is confirmed
    proofs = {
        "nobody": None,
        "ada": token(people, "ada"),
        "bob, checks only": token(people, "bob", scopes=["check"]),
        "sue": token(people, "sue"),
        "aud": token(people, "aud"),
        "aud, metrics": token(people, "aud", scopes=["metrics"]),
        "forged": {"token": token(people, "ada")["token"][:-1] + "!"},
        "a session": session(people, "sue"),
    }
    scopes = {
        "ada": {"check", "ask"},
        "bob, checks only": {"check"},
        "sue": {"steward"},
        "aud": {"auditor", "metrics"},
        "aud, metrics": {"metrics"},
        "a session": {"steward"},
    }
    if who == "expired":
        proofs[who] = token(people, "ada", days=1)
        people.clock.later(days=1)
    if who == "revoked":
        proofs[who] = token(people, "ada")
        people.keys.end(proofs[who]["token"].split("_")[1], by="test")
    if who == "disabled":
        proofs[who] = token(people, "ada")
        people.roll.disable("ada", by="test")
    for act in ACTS.values():
        if not act.needs or act.page or act.name in ("reset", "disable", "leave"):
            continue
        allowed = bool(scopes.get(who, set()).intersection(act.needs)) or (who in scopes and act.needs == ("known",))
        before = len(desk.done)
        try:
            gate.done(act.name, given_to(act), proofs[who])
        except (NotKnown, NotAllowed) as error:
            assert not allowed, (act.name, error)
            assert isinstance(error, NotAllowed) == (who in scopes), act.name
            assert len(desk.done) == before
        except (PolicyError, QueryError, AttributeError):
            assert allowed, act.name  # it was let in, and there is no such token
        else:
            assert allowed, act.name
            assert act.room in ("people", "registry") or desk.done[-1][:2] == (
                act.name,
                who.split(",")[0].replace("a session", "sue"),
            )


@pytest.mark.parametrize(
    "proof",
    [None, {}, [], "x", {"token": 3}, {"token": ""}, {"token": "hub__"}, {"session": ""}, {"session": None},
     {"token": "hub_ffffffff_" + "a" * 32}, {"token": "\ud800_\ud800_x"}, {"analyst": "ada"}],
)  # fmt: skip
def test_what_is_no_proof_opens_nothing(gate, proof):
    with pytest.raises(NotKnown):
        gate.done("tables", {}, proof)


def test_a_field_that_names_somebody_else_is_refused(people, gate, desk):
    for more in ({"analyst": "bob"}, {"token": "x"}, {"who": "bob"}):
        with pytest.raises(QueryError, match="there is no"):
            gate.done("ask", {"sql": "s", "options": {}, "request": "r", **more}, token(people, "ada"))
    for wrong in ({"sql": 1}, {"options": []}, {"options": None}):
        with pytest.raises(QueryError, match="is not"):
            gate.done("ask", {"sql": "s", "options": {}, "request": "r", **wrong}, token(people, "ada"))
    with pytest.raises(QueryError, match="missing"):
        gate.done("ask", {"sql": "s"}, token(people, "ada"))
    assert desk.done == []


@pytest.mark.parametrize("depth", [40, 900])
def test_what_is_nested_without_an_end_is_refused(people, gate, desk, depth):
    deep = json.loads('{"a":' * depth + "1" + "}" * depth)
    with pytest.raises(QueryError, match="nested deeper"):
        gate.done("check", {"sql": "s", "options": deep}, token(people, "ada"))
    with pytest.raises(QueryError, match="nested deeper"):
        gate.done("plan", {"questions": [[deep]], "request": "r"}, token(people, "ada"))
    assert desk.done == []
    gate.done("check", {"sql": "s", "options": {"keys": {"a": [["x"]]}}}, token(people, "ada"))


def test_tokens_are_random_shown_once_and_kept_as_hashes(people, tmp_path):
    first, second = (people.new_token("ada", by="test") for _ in range(2))
    assert re.fullmatch(r"hub_[0-9a-f]{8}_[a-z2-7]{32}", first["token"])
    assert first["token"] != second["token"]
    assert (tmp_path / "service.db").stat().st_mode & 0o777 == 0o600
    people.store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for file in tmp_path.iterdir():
        assert first["token"].split("_")[2].encode() not in file.read_bytes()
    assert "hash" not in json.dumps(people.keys.of("ada"))


def test_so_many_tokens_a_day_whether_they_have_ended_or_not(people):
    for _ in range(200):
        people.keys.end(people.new_token("ada", by="test")["id"], by="test")
    with pytest.raises(hb.PolicyError, match="200 tokens were made"):
        people.new_token("ada", by="test")
    people.new_token("bob", by="test")
    people.clock.later(days=1)
    people.new_token("ada", by="test")


def test_a_half_of_one_token_and_a_half_of_another_are_none(people):
    one, other = (people.new_token("ada", by="test")["token"].split("_") for _ in range(2))
    with pytest.raises(NotKnown):
        people.prove({"token": f"hub_{one[1]}_{other[2]}"})


def test_a_token_makes_none_that_may_more_than_itself(people, gate):
    weak = token(people, "ada", scopes=["check"], most="0.1", days=10)
    for more in ({"scopes": ["ask"], "most": "0.1"}, {"scopes": ["check"]}, {"scopes": ["check"], "most": "0.2"},
                 {"scopes": ["check"], "most": "0.1", "days": 20}):  # fmt: skip
        with pytest.raises(NotAllowed, match="no token that may do more"):
            gate.done("create_token", more, weak)
    made = gate.done("create_token", {"scopes": ["check"], "most": "0.1", "days": 9}, weak)
    assert people.prove({"token": made["token"]}).scopes == {"check"}
    with pytest.raises(QueryError, match="scopes"):
        gate.done("create_token", {"scopes": ["steward"]}, token(people, "ada"))
    with pytest.raises(PolicyError, match="no token"):
        gate.done("end_token", {"token": made["id"]}, token(people, "bob"))
    strong = people.new_token("ada", by="test")
    with pytest.raises(NotAllowed, match="ends itself"):
        gate.done("end_token", {"token": strong["id"]}, weak)
    gate.done("end_token", {"token": made["id"]}, {"token": strong["token"]})
    gate.done("end_token", {"token": weak["token"].split("_")[1]}, weak)
    with pytest.raises(NotKnown):
        people.prove(weak)


def test_a_token_ends_none_that_does_more_costs_more_or_lasts_longer(people, gate):
    """Whoever may not make such a token may not end it, either."""
    weak = token(people, "ada", scopes=["check"], most="0.1", days=10)
    same = {"scopes": ["check"], "most": "0.1", "days": 10}
    for more in ({"scopes": ["ask"]}, {"most": None}, {"most": "0.2"}, {"days": 11}):
        other = people.new_token("ada", by="test", **{**same, **more})
        with pytest.raises(NotAllowed, match="ends itself"):
            gate.done("end_token", {"token": other["id"]}, weak)
        assert people.prove({"token": other["token"]}).name == "ada"
    for less in ({}, {"most": "0.05"}, {"days": 9}):
        other = people.new_token("ada", by="test", **{**same, **less})
        gate.done("end_token", {"token": other["id"]}, weak)
        with pytest.raises(NotKnown):
            people.prove({"token": other["token"]})


def test_a_token_loses_what_its_person_loses(people):
    proof = token(people, "ada")
    assert people.prove(proof).scopes == {"check", "ask"}
    people.roll.set_roles("ada", ["auditor"], by="test")
    assert people.prove(proof).scopes == set()


def test_a_disabled_person_s_live_session_and_tokens_open_nothing(people):
    page, bearer = session(people, "ada"), token(people, "ada")
    people.roll.disable("ada", by="test")
    for proof in (page, bearer):
        with pytest.raises(NotKnown):
            people.prove(proof)
    with pytest.raises(NotKnown):
        people.login("ada", PHRASE)
    people.roll.enable("ada", by="test")
    with pytest.raises(NotKnown):
        people.prove(page)  # sessions do not come back
    assert people.prove(bearer).name == "ada"
    people.roll.disable("ada", by="test", left=True)
    people.roll.enable("ada", by="test")
    with pytest.raises(NotKnown):
        people.prove(bearer)  # what has ended stays ended
    with pytest.raises(PolicyError, match="taken"):
        people.roll.add("ADA", ["analyst"], by="test")


def test_a_session_ends_by_itself_by_logging_out_and_with_another_role(people, gate):
    page = session(people, "ada")
    assert people.prove(page).name == "ada"
    people.clock.later(hours=12)
    with pytest.raises(NotKnown):
        people.prove(page)
    page, other = session(people, "bob"), people.login("bob", PHRASE)
    gate.done("logout", {}, page)
    with pytest.raises(NotKnown):
        people.prove(page)  # replayed
    people.roll.set_roles("bob", ["analyst", "auditor"], by="test")
    with pytest.raises(NotKnown):
        people.prove({"session": other["session"]})
    again = people.login("bob", PHRASE)
    assert again["session"] != other["session"]


def test_what_has_ended_does_not_begin_again_where_the_clock_is_set_back(people, tmp_path, monkeypatch):
    page = session(people, "ada")
    bearer = token(people, "ada", days=1)
    people.clock.later(days=2)
    bobs = session(people, "bob")
    people.clock.later(days=-2)
    again = People(tmp_path / "service.db", clock=people.clock)
    for each in (people, again):
        for ended in (page, bearer):
            with pytest.raises(NotKnown):
                each.prove(ended)
        assert each.prove(bobs).name == "bob"
    again.close()
    hour, running = 3600, store_of.time.monotonic()
    with monkeypatch.context() as patched:
        patched.setattr(store_of.time, "monotonic", lambda: running + 12 * hour)  # and it goes on
        with pytest.raises(NotKnown):
            people.prove(bobs)


def test_a_token_that_ended_since_anything_was_written_does_not_begin_again(people, monkeypatch):
    bearer = token(people, "ada", days=2)
    running, hour = store_of.time.monotonic(), 3600
    with monkeypatch.context() as patched:
        patched.setattr(store_of.time, "monotonic", lambda: running + 72 * hour)
        people.clock.later(days=1)  # it was three, and was set back to one
        with pytest.raises(NotKnown):
            people.prove(bearer)


def test_one_sees_one_s_own_sessions_and_ends_them(people, gate):
    here = session(people, "ada")
    people.clock.later(minutes=1)
    phone = people.login("ada", PHRASE, "Safari on an iPhone " + "x" * 100)
    people.clock.later(minutes=1)
    other, bobs = people.login("ada", PHRASE), session(people, "bob")
    told = gate.done("devices", {}, here)
    assert [one["here"] for one in told] == [True, False, False]
    assert told[2]["device"].startswith("Safari on an iPhone")
    assert len(told[2]["device"]) == 60
    assert here["session"] not in json.dumps(told)
    assert set(told[0]) == {"id", "since", "until", "device", "here"}
    with pytest.raises(QueryError, match="no such session"):
        gate.done("end_device", {"device": gate.done("devices", {}, bobs)[0]["id"]}, here)
    with pytest.raises(NotAllowed, match="form"):
        gate.done("end_device", {"device": told[2]["id"]}, {"session": here["session"]})
    assert gate.done("end_device", {"device": told[2]["id"]}, here) == {"ended": 1}
    with pytest.raises(NotKnown):
        people.prove({"session": phone["session"]})
    assert people.prove({"session": other["session"]}).name == "ada"
    assert gate.done("end_other_devices", {}, here) == {"ended": 1}
    with pytest.raises(NotKnown):
        people.prove({"session": other["session"]})
    assert [len(gate.done("devices", {}, who)) for who in (here, bobs)] == [1, 1]
    assert [line["act"] for line in people.store.lines()][-2:] == ["sessions ended", "sessions ended"]
    with pytest.raises(NotAllowed, match="on the pages"):
        gate.done("devices", {}, token(people, "ada"))


def test_a_file_of_the_version_before_is_read(tmp_path):
    path = tmp_path / "service.db"
    People(path).close()
    with sqlite3.connect(path) as old:
        old.execute("DROP TABLE subject")
        old.execute("ALTER TABLE session DROP COLUMN device")
        old.execute("PRAGMA user_version = 1")
    old.close()
    again = People(path)
    again.roll.add("ada", ["analyst"], by="test")
    again.sessions.entrance("ada", "inv_e", minutes=10)
    assert again.enter("inv_e", "Firefox on Linux")["name"] == "ada"
    again.close()


def test_a_form_needs_its_own_session_s_word(people, gate):
    page, other = session(people, "ada"), session(people, "bob")
    for word in ("", "x", other["csrf"], "\ud800"):
        with pytest.raises(NotAllowed, match="form"):
            gate.done("create_token", {}, {"session": page["session"], "csrf": word})
    with pytest.raises(NotAllowed, match="form"):
        gate.done("create_token", {}, {"session": page["session"]})
    assert gate.done("create_token", {}, page)["id"]
    with pytest.raises(NotAllowed, match="on the pages"):
        gate.done("change_passphrase", {"old": PHRASE, "new": "another long phrase"}, token(people, "ada"))
    assert page["session"] not in json.dumps(people.store.rows("SELECT * FROM session"))


def test_a_link_is_used_once_and_not_after_its_end(people):
    key, until = people.roll.reset("ada", by="test")
    assert people.invited(key) == {"name": "ada", "kind": "reset"}
    with pytest.raises(QueryError, match="12 to"):
        people.accept(key, "short")
    with pytest.raises(QueryError, match="12 to"):
        people.accept(key, "a" * 40)
    people.accept(key, PHRASE)
    for act in (people.invited, lambda k: people.accept(k, PHRASE)):
        with pytest.raises(NotKnown, match="was used"):
            act(key)
    key, until = people.roll.reset("bob", by="test")
    people.clock.time = until
    with pytest.raises(NotKnown):
        people.accept(key, PHRASE)
    first, _ = people.roll.reset("bob", by="test")
    people.roll.reset("bob", by="test")
    with pytest.raises(NotKnown):
        people.invited(first)  # a newer one took its place
    people.sessions.entrance("bob", "inv_e", minutes=10)
    with pytest.raises(NotKnown):
        people.accept("inv_e", PHRASE)
    assert people.enter("inv_e")["name"] == "bob"
    with pytest.raises(NotKnown):
        people.enter("inv_e")


def test_whoever_has_an_entrance_is_not_invited_any_more(people):
    key, _ = people.roll.add("guest", ["analyst"], by="test")
    people.sessions.entrance("guest", "inv_g", minutes=10)
    with pytest.raises(NotKnown):
        people.invited(key)
    people.enter("inv_g")
    (guest,) = [one for one in people.roll.everybody() if one["name"] == "guest"]
    assert guest["link_until"] is None
    assert guest["state"] == "active"


def test_logins_are_five_a_minute_and_tell_not_who_exists(people, monkeypatch):
    session(people, "ada")
    slow = []
    monkeypatch.setattr(people.sessions._passphrases, "_slow", lambda p, s: slow.append(p) or b"\1" * 32)
    words = set()
    for name in ("ada", "nobody"):
        for _ in range(5):
            with pytest.raises(NotKnown) as refused:
                people.login(name, "wrong")
            words.add(str(refused.value))
        with pytest.raises(TooMany, match="5 tries a minute") as many:
            people.login(name, "wrong")
        assert many.value.retry_after == 12
    assert len(words) == 1
    assert len(slow) == 10  # as much work for a name that is none
    assert "nobody" not in json.dumps(people.store.lines())  # it may be a passphrase that was typed there


def test_a_name_that_is_none_takes_little_of_the_memory_however_long(people):
    for number in range(3):
        with pytest.raises(NotKnown):
            people.login(f"{number}" * 200_000, "wrong")
    assert {len(name) for name in people.sessions._tries._left} == {64}


def test_who_finds_the_line_full_has_made_no_tries_and_no_name_forgotten(people):
    session(people, "ada")
    with ExitStack() as line:
        for _ in range(keys._LINE):
            line.enter_context(people.sessions._passphrases.place())
        for number in range(20):
            with pytest.raises(TooMany, match="many log in"):
                people.login(f"name {number}", "wrong")
        assert people.sessions._tries._left == {}
    assert people.login("ada", PHRASE)["name"] == "ada"


def test_passphrases_are_computed_one_at_a_time_and_few_wait(people, monkeypatch):
    made, inside, most, go = keys.Passphrases(), [0], [0], threading.Event()

    def scrypt(*_, **__):
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        go.wait(5)
        inside[0] -= 1
        return b"\0" * 32

    monkeypatch.setattr(keys.hashlib, "scrypt", scrypt)
    refused = []

    def one():
        try:
            made.kept("x" * 12)
        except TooMany as error:
            refused.append(error)

    threads = [threading.Thread(target=one) for _ in range(12)]
    for thread in threads:
        thread.start()
    while len(refused) < 4:
        threads[-1].join(0.01)
    go.set()
    for thread in threads:
        thread.join(5)
    assert (most[0], len(refused)) == (1, 4)


def test_scrypt_is_that_of_rfc_7914(monkeypatch):
    import hashlib

    monkeypatch.setattr(keys, "_N", 1 << 15)
    kept = keys.Passphrases().kept(PHRASE)
    _, salt, known = kept.split("$")
    expected = hashlib.scrypt(PHRASE.encode(), salt=bytes.fromhex(salt), n=2**15, r=8, p=1, maxmem=2**26, dklen=32)
    assert expected.hex() == known
    assert keys.Passphrases().is_right(PHRASE, kept)
    assert not keys.Passphrases().is_right("another", kept)
    assert not keys.Passphrases().is_right("", None)


def test_a_steward_s_token_opens_no_steward_s_account_without_the_passphrase(people, gate):
    """Else whoever steals it resets its own person's passphrase, and confirms with the new one whatever he likes."""
    session(people, "sue")
    proof = token(people, "sue")
    for act, given in (
        ("reset", {"name": "sue"}),
        ("invite", {"name": "eve", "roles": ["steward", "analyst"]}),
        ("set_roles", {"name": "ada", "roles": ["steward"]}),
    ):
        with pytest.raises(NotAllowed, match="needs your passphrase"):
            gate.done(act, given, proof)
        with pytest.raises(NotAllowed, match="not right"):
            gate.done(act, {**given, "passphrase": "a guess, and no more"}, proof)
    assert people.login("sue", PHRASE)["name"] == "sue"
    assert gate.done("set_roles", {"name": "ada", "roles": ["steward"], "passphrase": PHRASE}, proof)
    assert gate.done("reset", {"name": "bob"}, proof)["key"].startswith("inv_")


def test_who_does_not_get_in_keeps_no_steward_from_confirming(people):
    page = session(people, "sue")
    person = people.prove(page)
    for _ in range(5):
        with pytest.raises(NotKnown):
            people.login("sue", "wrong")
    with pytest.raises(TooMany):
        people.login("sue", PHRASE)
    people.confirm(person, PHRASE)


def test_so_many_changes_of_one_person(people, gate):
    proof = token(people, "sue")
    for _ in range(60):
        gate.done("enable", {"name": "ada"}, proof)
    with pytest.raises(TooMany, match="1 changes a second"):
        gate.done("enable", {"name": "ada"}, proof)
    gate.done("people", {}, proof)


def test_nothing_secret_stands_in_any_byte_that_is_written(people, gate, tmp_path):
    secret = [PHRASE]
    page = session(people, "ada")
    secret += [page["session"], page["csrf"]]
    for name in ("ada", "sue"):
        made = people.new_token(name, by="test", label="a label")
        secret.append(made["token"].split("_")[2])
    key, _ = people.roll.reset("bob", by="test")
    secret.append(key)
    for wrong in ("wrong horse battery", "another wrong one"):
        with pytest.raises(NotKnown):
            people.login("ada", wrong)
        secret.append(wrong)
    people.change_passphrase(people.prove(page), old=PHRASE, new="quite another phrase")
    secret.append("quite another phrase")
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert len(written) > 10_000
    for each in secret:
        assert each.encode() not in written


def tried(gate, people, desk):
    """Attacks on the gate that must all come to nothing: the names of those that did not."""
    page = session(people, "ada")
    check, whole, left = token(people, "bob", scopes=["check"]), token(people, "ada"), token(people, "aud")
    people.roll.disable("aud", by="test")
    asked, given = {"sql": "s", "options": {}, "request": "r"}, {"sql": "s", "options": {}}
    attacks = {
        "another scope": ("ask", asked, check),
        "another role": ("people", {}, whole),
        "no word of the form": ("ask", asked, {"session": page["session"]}),
        "disabled": ("whoami", {}, left),
        "nobody": ("check", given, None),
        "a token where a page is needed": ("logout", {}, whole),
        "as somebody else": ("check", {**given, "analyst": "bob"}, whole),
        "no passphrase": ("unlock", {"reason": "r", "passphrase": "x"}, token(people, "sue")),
    }
    through = []
    for name, attack in attacks.items():
        try:
            gate.done(*attack)
        except (NotKnown, NotAllowed, QueryError):
            continue
        through.append(name)
    return through


def test_attacks_on_the_gate_come_to_nothing_and_find_every_bug_that_is_planted(people, desk, monkeypatch):
    rooms = dict.fromkeys(("desk", "declared", "office", "requests", "archive"), desk) | {"registry": Registry(people)}
    assert tried(Gate(people, rooms), people, desk) == []

    def planted(where, what, how):
        with monkeypatch.context() as patched:
            patched.setattr(where, what, how)
            return set(tried(Gate(people, rooms), people, desk))

    people.roll.enable("aud", by="test")
    assert planted(Person, "may", lambda self, needs: True) == {"another scope", "another role"}
    people.roll.enable("aud", by="test")
    assert planted(people.sessions, "check_form", lambda person, word: None) == {"no word of the form"}
    people.roll.enable("aud", by="test")
    assert planted(people, "confirm", lambda person, passphrase: None) == {"no passphrase"}
    people.roll.enable("aud", by="test")
    assert planted(gate_of, "checked", lambda act, given: {"passphrase": "", **given}) >= {"as somebody else"}
    people.roll.enable("aud", by="test")
    assert planted(people.roll, "disable", lambda name, by: None) == {"disabled"}


def test_the_last_steward_stays(people):
    for act in (
        lambda: people.roll.disable("sue", by="test"),
        lambda: people.roll.set_roles("sue", ["analyst"], by="test"),
    ):
        with pytest.raises(PolicyError, match="last steward"):
            act()
    people.roll.set_roles("bob", ["steward"], by="test")
    people.roll.disable("sue", by="test")
    with pytest.raises(PolicyError, match="last steward"):
        people.roll.disable("bob", by="test")


def test_a_first_start_invites_one_steward(tmp_path):
    clock = Clock()
    made = People(tmp_path / "service.db", clock=clock)
    name, key = made.roll.first_steward()
    assert (name, made.invited(key)["kind"]) == ("steward", "invitation")
    assert link_of("invitation", key) == f"/invitation/{key}"
    assert made.roll.first_steward() is None  # it is still open
    clock.later(days=8)
    name, again = made.roll.first_steward()
    assert (name, again != key) == ("steward", True)
    made.accept(again, PHRASE)
    clock.later(days=30)
    assert made.roll.first_steward() is None
    made.close()


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a\nb",
        "-x",
        "*",
        "a" * 101,
        "hub_x",
        "a\x1b[31m",
        "\ud800",
        "..",
        "a/b",
        "ada\ufe0f",
        "\u3164",
        "ada\u200b",
        "The Service",
        "\uff48ubbub",
    ],
)
def test_what_is_no_name_is_refused(people, name):
    with pytest.raises(QueryError):
        people.roll.add(name, ["analyst"], by="test")


@pytest.mark.parametrize("name", ["ADA", "\uff41\uff44\uff41", "\U0001d41a\u1d48a"])
def test_a_name_that_looks_like_another_is_taken(people, name):
    with pytest.raises(PolicyError, match="'ada' is taken"):
        people.roll.add(name, ["analyst"], by="test")


def test_the_log_is_a_chain_that_shows_what_was_done_to_it(people, tmp_path):
    session(people, "ada")
    token(people, "ada", label="for the dashboard")
    whole = people.store.verify()
    assert whole.sound
    text = json.dumps(people.store.lines())
    assert "person added" in text
    assert PHRASE not in text
    assert not re.search(r"hub_[0-9a-f]{8}_|inv_", text)
    for damage, found in (
        ("UPDATE log SET who = 'eve' WHERE serial = 2", "line 2 of the log is not what was written"),
        ("DELETE FROM log WHERE serial = 2", "line 2 of the log is missing"),
        ("DELETE FROM log WHERE serial > 2", "does not hold the line"),
    ):
        copy = tmp_path / "copy.db"
        copy.unlink(missing_ok=True)
        with sqlite3.connect(copy) as other:
            people.store._connection.backup(other)
            other.execute("DROP TRIGGER log_no_update")
            other.execute("DROP TRIGGER log_no_delete")
            other.execute(damage)
        damaged = People(copy)
        assert any(found in problem for problem in damaged.store.verify(head=whole.head).problems)
        damaged.close()
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        people.store._connection.execute("UPDATE log SET who = 'eve'")


def test_a_log_with_the_ledger_s_key_cannot_be_made_without_it(tmp_path):
    made = People(tmp_path / "service.db", key=b"k" * 32)
    made.roll.add("ada", ["analyst"], by="test")
    assert made.store.verify().sound
    made.close()
    other = People(tmp_path / "service.db")
    assert not other.store.verify().sound
    other.close()


def test_so_many_checks_of_one_person_whatever_tokens_he_has(people, desk):
    gate = Gate(people, {"desk": desk}, checks=(5.0, 3))
    proofs = [token(people, "ada") for _ in range(3)]
    given = {"sql": "s", "options": {}}
    for proof in proofs:
        gate.done("check", given, proof)
    with pytest.raises(TooMany) as many:
        gate.done("check", given, proofs[0])
    assert many.value.retry_after == 1
    gate.done("check", given, token(people, "bob"))


def test_one_act_of_a_person_after_the_other_whatever_tokens_he_has(people):
    inside, most, go = [], [], threading.Event()

    class Slow:
        def history(self, who):
            inside.append(who)
            most.append(inside.count("ada"))
            go.wait(10 if who == "ada" else 0)
            inside.remove(who)
            return {"of": who}

    gate, told = Gate(people, {"desk": Slow()}), []

    def one(proof):
        try:
            told.append(gate.done("history", {}, proof))
        except TooMany as error:
            told.append(error.retry_after)

    threads = [threading.Thread(target=one, args=(token(people, "ada"),)) for _ in range(12)]
    for thread in threads:
        thread.start()
    while len(told) < 4:
        threads[-1].join(0.01)
        assert any(thread.is_alive() for thread in threads)
    assert gate.done("history", {}, token(people, "bob")) == {"of": "bob"}  # while hers wait
    go.set()
    for thread in threads:
        thread.join(10)
    assert (told[:4], told[4:], max(most)) == ([1] * 4, [{"of": "ada"}] * 8, 1)
    assert gate.done("history", {}, token(people, "ada")) == {"of": "ada"}
    assert gate._turns._people == {}


def test_who_is_disabled_while_he_waits_for_his_turn_does_nothing(people):
    began, go, told = threading.Event(), threading.Event(), []

    class Slow:
        def history(self, who):
            began.set()
            go.wait(10)
            return {"of": who}

    gate = Gate(people, {"desk": Slow()})

    def one(proof):
        try:
            told.append(gate.done("history", {}, proof))
        except NotKnown as error:
            told.append(error)

    threads = [threading.Thread(target=one, args=(token(people, "ada"),)) for _ in range(2)]
    threads[0].start()
    assert began.wait(5)
    threads[1].start()
    while gate._turns._people["ada"][1] < 2:
        threads[1].join(0.01)
        assert threads[0].is_alive()
    people.roll.disable("ada", by="test")
    go.set()
    for thread in threads:
        thread.join(10)
    assert told[0] == {"of": "ada"}
    assert isinstance(told[1], NotKnown)


def test_another_file_is_refused(tmp_path):
    (tmp_path / "service.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(hb.PolicyError, match="cannot be written"):
        People(tmp_path / "service.db")


def test_what_cannot_be_written_is_refused_in_words_and_nothing_of_it_stays(people):
    people.store._connection.execute("PRAGMA max_page_count = 1")  # as on a full disk

    def add_many():
        for number in range(100):
            people.roll.add(f"a{number}" * 10, ["analyst"], by="the test")

    with pytest.raises(PolicyError, match=r"the file of people, service\.db, cannot be written \(.* disk is full\)"):
        add_many()
    before = [one["name"] for one in people.roll.everybody()]
    people.store._connection.execute("PRAGMA max_page_count = 100000")
    people.roll.add("somebody else", ["analyst"], by="the test")
    assert {one["name"] for one in people.roll.everybody()} == {*before, "somebody else"}
    assert people.store.verify().sound


@pytest.mark.parametrize("full", [False, True])
def test_whether_a_name_is_known_shows_neither_by_what_is_written_nor_by_a_full_disk(people, full):
    key, _ = people.roll.add("ada lovelace", ["analyst"], by="the test")
    people.accept(key, PHRASE)
    log, grown = people.store.path.with_name("service.db-wal"), []
    for name in ("ada lovelace", "nobody of that name"):
        before = log.stat().st_size
        people.store._connection.execute(f"PRAGMA query_only = {full}")
        with pytest.raises(NotKnown, match="the name or the passphrase is not right"):
            people.login(name, "wrong horse battery")
        people.store._connection.execute("PRAGMA query_only = OFF")
        grown.append(log.stat().st_size > before)
    assert grown == [not full] * 2
    assert [line["act"] for line in people.store.lines(most=-1)].count("login refused") == (0 if full else 1)
    assert "nobody" not in str(people.store.lines(most=-1))
