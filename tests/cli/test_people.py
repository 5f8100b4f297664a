"""`hubbub person` and `hubbub token`, on the machine itself."""

from __future__ import annotations

import json
import re
import sqlite3

import pytest

import hubbub as hb
from hubbub.cli.main import run
from hubbub.ledger.policy import load_policy
from hubbub.ledger.store import Ledger
from hubbub.service.people import keys
from hubbub.service.people.at_home import opened_people
from service.test_before_asking import policy as write_policy


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(keys, "_N", 2)
    file = write_policy(tmp_path)
    hb.Session.from_policy(file, create_ledger=True).close()
    monkeypatch.chdir(tmp_path)

    def called(*arguments):
        code = run(list(arguments))
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    called.policy = load_policy(file)
    return called


def test_somebody_comes_gets_a_token_and_leaves(call):
    code, link, _ = call("person", "add", "ada")
    assert (code, re.fullmatch(r"/invitation/inv_[a-z2-7]{32}\n", link) is not None) == (0, True)
    assert call("person", "add", "ada")[0] == 3
    code, token, told = call("token", "create", "ada", "--label", "board", "--cap", "1", "--most", "0.1", "--days", "9")
    assert (code, token.startswith("hub_")) == (0, True)
    assert token.split("_")[1] in told
    listed = json.loads(call("token", "list", "ada", "--format", "json")[1])
    assert [(one["cap"], one["most"], one["state"], one["label"]) for one in listed] == [("1", "0.1", "live", "board")]
    people = opened_people(call.policy)
    assert people.prove({"token": token.strip()}).name == "ada"
    assert call("token", "revoke", token.split("_")[1])[0] == 0
    with pytest.raises(hb.errors.HubbubError):  # at once, for whoever has the file open
        people.prove({"token": token.strip()})
    people.close()
    assert call("token", "revoke", "feedbeef")[0] == 3
    assert call("person", "roles", "ada", "--role", "auditor")[0] == 0
    assert call("person", "disable", "ada", "--left")[0] == 0
    with Ledger.inspect(call.policy.ledger) as ledger:
        (space,) = ledger.balance.spaces()
        assert ledger.balance.limit(space, "ada") == 0
    (ada,) = json.loads(call("person", "list", "--format", "json")[1])
    assert (ada["state"], ada["roles"]) == ("left", "auditor")


def test_the_log_is_shown_and_verified(call):
    call("person", "add", "sue", "--role", "steward")
    call("person", "reset", "sue")
    code, shown, _ = call("person", "log", "--format", "csv")
    assert code == 0
    assert "person added" in shown
    assert "(at the machine)" in shown
    assert "inv_" not in shown
    code, _, told = call("person", "log", "--verify")
    head = re.search(r"the head is ([0-9a-f]{64})", told)[1]
    assert code == 0
    assert call("person", "log", "--verify", "--head", head)[0] == 0
    code, found, _ = call("person", "log", "--verify", "--head", "0" * 64)
    assert (code, "rewritten or cut" in found) == (3, True)
    with sqlite3.connect(call.policy.ledger.with_name("service.db")) as damaged:
        damaged.execute("DROP TRIGGER log_no_update")
        damaged.execute("UPDATE log SET who = 'eve' WHERE serial = 1")
    assert call("person", "log", "--verify")[0] == 3


def test_the_last_steward_stays_also_at_the_machine(call):
    call("person", "add", "sue", "--role", "steward")
    assert call("person", "disable", "sue")[0] == 3
    assert "last steward" in call("person", "roles", "sue", "--role", "analyst")[2]
