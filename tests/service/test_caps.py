"""The cap of a token is an account of the ledger: of questions and of readings, in the transaction of the charge.

What whoever holds the token learns costs no more than the cap, whatever else its person asks, and however many ask at
once.
"""

from __future__ import annotations

import threading
from fractions import Fraction

import pytest

import hubbub as hb
from hubbub.ledger.store import Ledger
from hubbub.remedies import Attempt
from hubbub.service.people.people import People
from hubbub.service.people.person import TokenLimits
from hubbub.service.whole_desk import WholeDesk
from service.helpers import COUNT, SPACE, World

TENTH, HALF = {"epsilon": "0.1"}, {"epsilon": "0.5"}


@pytest.fixture
def world(tmp_path, monkeypatch):
    made = World(tmp_path / "l.db", monkeypatch)
    yield made
    made.close()


@pytest.fixture
def token(world, tmp_path):
    """A new token of ada's, with a cap."""
    people = People(tmp_path / "service.db", ledger=world.ledger)
    people.roll.add("ada", ["analyst"], by="test")

    def make(cap="1", **more):
        text = people.new_token("ada", by="test", cap=cap, **more)["token"]
        return people.prove({"token": text}).token

    yield make
    people.close()


def spent(world, account):
    return world.ledger.balance.total(SPACE, account).epsilon


def test_a_question_is_charged_to_the_token_in_the_same_charge(world, token):
    limited = token()
    world.desk.ask("ada", COUNT, TENTH, "r", token=limited)
    assert spent(world, f"token:{limited.id}") == spent(world, "analyst:ada") == Fraction(1, 10)
    told = world.desk.check("ada", COUNT, TENTH, token=limited)
    assert (told["left"], world.desk.check("ada", COUNT, TENTH)["left"]) == ("9/10", "299/10")
    with pytest.raises(hb.BudgetError, match=rf"0\.9 of 1 is left for the token {limited.id}"):
        world.desk.ask("ada", "SELECT SUM(x) AS s FROM v", {"epsilon": "0.95"}, "s", token=limited)
    world.desk.ask("ada", "SELECT SUM(x) AS s FROM v", {"epsilon": "0.95"}, "s")  # another door of hers
    assert spent(world, "analyst:ada") == Fraction(105, 100)
    assert world.ledger.record.verify().sound


def test_an_answer_that_was_asked_without_the_token_is_read_at_its_cap_once(world, token):
    limited = token("0.6")
    one = world.desk.ask("ada", COUNT, HALF, "r")
    other = world.desk.ask("ada", "SELECT SUM(x) AS s FROM v", HALF, "s")
    world.until(20)
    for _ in range(3):
        assert world.desk.answer("ada", one["id"], token=limited)["state"] == "answered"
    assert spent(world, f"token:{limited.id}") == Fraction(1, 2)
    assert spent(world, "analyst:ada") == 1
    with pytest.raises(hb.BudgetError, match=r"reading it counts .* is left for the token"):
        world.desk.answer("ada", other["id"], token=limited)
    with pytest.raises(hb.BudgetError, match=r"reading it counts .* is left for the token"):
        world.desk.ask("ada", "SELECT SUM(x) AS s FROM v", HALF, "t", token=limited)
    assert "answer" in world.desk.answer("ada", other["id"])
    assert spent(world, "everyone") == 1
    assert world.ledger.record.verify().sound


def test_a_stored_answer_of_somebody_else_costs_the_analyst_and_the_token(world, token):
    limited, second = token(), token()
    world.desk.ask("bob", COUNT, HALF, "r")
    world.until(10)
    for _ in range(2):
        assert "answer" in world.desk.ask("ada", COUNT, HALF, "a", token=limited)
    assert spent(world, f"token:{limited.id}") == spent(world, "analyst:ada") == Fraction(1, 2)
    world.desk.ask("ada", COUNT, HALF, "b", token=second)  # she has paid, the second token has not
    assert spent(world, f"token:{second.id}") == spent(world, "analyst:ada") == Fraction(1, 2)
    assert "token" not in hb.Release.from_wire(world.desk.ask("bob", COUNT, HALF, "r2")["answer"]).receipt


def test_who_shares_what_is_under_way_pays_with_his_token_too(world, token):
    limited = token()
    world.desk.ask("bob", COUNT, HALF, "r")
    one = world.desk.ask("ada", COUNT, HALF, "a", token=limited)
    assert spent(world, f"token:{limited.id}") == spent(world, "analyst:ada") == Fraction(1, 2)
    again = world.desk.ask("ada", COUNT, HALF, "b", token=token())  # her own, by another token: it pays at its reading
    assert again["id"] == one["id"]
    world.until(10)
    assert "answer" in world.desk.answer("ada", one["id"], token=limited)
    assert spent(world, f"token:{limited.id}") == Fraction(1, 2)
    third = token()
    world.desk.answer("ada", one["id"], token=third)
    assert spent(world, f"token:{third.id}") == Fraction(1, 2)


def test_the_greatest_epsilon_of_a_question(world, token):
    limited = token(most="0.1")
    with pytest.raises(hb.PolicyError, match=r"asks at epsilon 0\.1 at most, and the question at 0\.5") as refused:
        world.desk.ask("ada", COUNT, HALF, "r", token=limited)
    [less] = refused.value.remedies
    assert less.in_python() in str(refused.value)
    attempt, _ = less.apply(Attempt(COUNT, HALF), {})
    assert attempt.options == TENTH
    assert world.desk.check("ada", COUNT, HALF, token=limited)["fits"] is False
    assert world.desk.check("ada", COUNT, TENTH, token=limited)["fits"] is True
    world.desk.ask("ada", COUNT, TENTH, "s", token=limited)
    assert spent(world, "everyone") == Fraction(1, 10)


def test_a_cap_that_the_ledger_does_not_know_holds_nothing(world):
    with pytest.raises(hb.BudgetError, match="is left for the token feedbeef"):
        world.desk.ask("ada", COUNT, TENTH, "r", token=TokenLimits("feedbeef", None, Fraction(100)))
    assert spent(world, "everyone") == 0


def test_a_token_with_a_cap_makes_no_tokens(world, token, tmp_path):
    people = People(tmp_path / "service.db", ledger=world.ledger)
    text = people.new_token("ada", by="test", cap="1")["token"]
    with pytest.raises(hb.errors.HubbubError, match="makes no tokens"):
        people.create_token(people.prove({"token": text}), cap="1")
    people.close()


def test_a_posting_that_leaves_the_token_out_is_found(world, token, tmp_path, monkeypatch):
    """Planted: a ledger whose charges forget the token's account does not verify."""
    from hubbub.ledger import charging

    limited = token()
    monkeypatch.setattr(charging, "readers", lambda kind, analyst, details: (f"analyst:{analyst}",))
    world.desk.ask("ada", COUNT, TENTH, "r", token=limited)
    monkeypatch.undo()
    with Ledger.inspect(tmp_path / "l.db") as ledger:
        assert any("not posted to the accounts" in problem for problem in ledger.record.verify().problems)
    world.close = lambda: world.ledger.close()


def race(ledgers, limited, analysts, key):
    """Everybody asks another question at once, at .1; how many were charged."""
    from hubbub.ledger.charge import Charge
    from hubbub.ledger.readings import by_token

    ready, charged, refused = threading.Barrier(len(analysts)), [], []

    def one(k):
        ledger = ledgers[k % len(ledgers)]
        asked = Charge(
            space=SPACE, analyst=analysts[k], epsilon=Fraction(1, 10), sql="q", question_key=f"{key}{k}",
            details=by_token("{}", limited and limited.id),
        )  # fmt: skip
        ready.wait()
        try:
            charged.append(ledger.charges.charge(asked))
        except hb.BudgetError as error:
            refused.append(error)

    threads = [threading.Thread(target=one, args=(k,)) for k in range(len(analysts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(charged) + len(refused) == len(analysts)
    return len(charged)


def test_fifty_clients_race_for_the_last_tenth_and_exactly_one_gets_it(tmp_path):
    """Of the joint budget by fifty analysts, and of one token's cap; over several connections to one file."""
    budgets = {SPACE: hb.Budget("1.1")}
    ledgers = [Ledger.open(tmp_path / "l.db", budgets=budgets) for _ in range(4)]
    people = People(tmp_path / "service.db", ledger=ledgers[0])
    people.roll.add("ada", ["analyst"], by="test")
    made = people.new_token("ada", by="test", cap="0.1")
    limited = people.prove({"token": made["token"]}).token
    assert race(ledgers, limited, ["ada"] * 50, "t") == 1
    from hubbub.ledger.charge import Charge

    for k in range(9):
        ledgers[0].charges.charge(
            Charge(space=SPACE, analyst="bob", epsilon=Fraction(1, 10), sql="q", question_key=f"b{k}")
        )
    assert race(ledgers, None, [f"analyst {k}" for k in range(50)], "e") == 1
    assert ledgers[0].balance.total(SPACE).epsilon == Fraction(11, 10)
    assert ledgers[0].record.verify().sound
    people.close()
    for ledger in ledgers:
        ledger.close()


def test_a_plan_and_a_second_draw_are_charged_to_the_token_too(tmp_path, monkeypatch):
    from hubbub.service.whole_desk import WholeDesk

    world = World(tmp_path / "w.db", monkeypatch, desk=WholeDesk)
    people = People(tmp_path / "s.db", ledger=world.ledger)
    people.roll.add("ada", ["analyst"], by="test")
    limited, other = (
        people.prove({"token": people.new_token("ada", by="test", cap="1", most="0.3")["token"]}).token for _ in "ab"
    )
    asked = [{"sql": f"SELECT COUNT(*) AS n FROM v WHERE x < {k}", "options": TENTH} for k in (3, 4)]
    told = world.desk.plan("ada", asked, "p", token=limited)
    world.until(20)
    assert spent(world, f"token:{limited.id}") == spent(world, "analyst:ada") == Fraction(2, 10)
    assert "answer" in world.desk.answer("ada", told[0]["id"], token=limited)
    assert spent(world, f"token:{limited.id}") == Fraction(2, 10)
    for epsilon, error, words in (("0.1", hb.QueryError, "read this answer first"),):
        with pytest.raises(error, match=words):
            world.desk.check_refine("ada", told[0]["id"], epsilon, token=other)
    with pytest.raises(hb.PolicyError, match="at most"):
        world.desk.refine("ada", told[0]["id"], "0.4", "x", token=limited)
    again = world.desk.refine("ada", told[0]["id"], "0.2", "y", token=limited)
    world.until(40)
    assert spent(world, f"token:{limited.id}") == Fraction(4, 10)
    assert "answer" in world.desk.answer("ada", again["id"], token=limited)
    world.desk.answer("ada", again["id"], token=other)
    assert spent(world, f"token:{other.id}") == Fraction(3, 10)  # both draws
    assert world.desk.budget("ada", token=other)["spaces"][0]["yours"]["left"] == "7/10"
    with pytest.raises(hb.PolicyError, match="at most"):
        world.desk.plan("ada", [{"sql": COUNT, "options": HALF}], "q", token=limited)
    people.close()
    world.close()


def test_words_are_removed_from_readings_through_tokens_too(world, token):
    limited = token()
    one = world.desk.ask("ada", COUNT, TENTH, "r")
    world.until(5)
    world.desk.answer("ada", one["id"], token=limited)
    world.desk.ask("bob", COUNT, TENTH, "s", token=limited)
    world.ledger.steward.redact(one["id"], author="grace")
    assert [entry.sql for entry in world.ledger.record.history()] == ["(removed)"] * 3


def test_what_a_token_is_told_of_refining_is_what_its_cap_holds(tmp_path, monkeypatch):
    world = World(tmp_path / "l.db", monkeypatch, desk=WholeDesk)
    people = People(tmp_path / "service.db", ledger=world.ledger)
    people.roll.add("ada", ["analyst"], by="test")
    limited = people.prove({"token": people.new_token("ada", by="test", cap="0.3")["token"]}).token
    one = world.desk.ask("ada", COUNT, TENTH, "r", token=limited)["id"]
    world.until(5)
    told = world.desk.check_refine("ada", one, "0.4", token=limited)
    assert (told["left"], told["fits"]) == ("1/5", False)
    assert world.desk.check_refine("ada", one, "0.4")["fits"]
    people.close()
    world.close()


@pytest.mark.parametrize("other", [{"sql": "SELECT SUM(x) AS s FROM v"}, {"having": "n > nope"}, {"limit": "x"}])
def test_what_cannot_be_shown_is_refused_before_the_cap_is_charged(world, token, other):
    one = world.desk.ask("ada", COUNT, TENTH, "r")["id"]
    world.until(6)
    limited = token()
    with pytest.raises(hb.QueryError):
        world.desk.answer("ada", one, token=limited, **other)
    assert spent(world, f"token:{limited.id}") == 0
    world.desk.answer("ada", one, token=limited)
    assert spent(world, f"token:{limited.id}") == Fraction(1, 10)


def test_limits_in_another_form_are_refused_before_anybody_is_charged(tmp_path, monkeypatch):
    world = World(tmp_path / "w.db", monkeypatch, desk=WholeDesk)
    one = world.desk.check_bounds("ada", COUNT, TENTH, "r")["id"]
    world.until(20)
    with pytest.raises(hb.QueryError, match="told as JSON"):
        world.desk.read("bob", one, form="csv")
    assert spent(world, "analyst:bob") == 0
    assert "bounds" in world.desk.read("bob", one)
    world.close()
