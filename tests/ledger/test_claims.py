"""Who may work on a question: crashes count, two that ask at once pay once, and what is ended stays ended."""

from __future__ import annotations

import json
import os
import signal
import stat
import threading
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

from hubbub.cli.ledger import command
from hubbub.errors import BudgetError, ParameterError, PolicyError
from hubbub.ledger.accounts import EACH_ANALYST, analyst_account
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Charge, Ledger
from ledger.helpers import SPACE, charge, fork, resume, wait

BUDGETS = {SPACE: Budget(1)}
QUESTION = {"space": SPACE, "question_key": "k", "analyst": "ada", "epsilon": Fraction(1, 10)}
COLUMNS = {"space": SPACE, "dataset": "visits", "question_key": "k", "sql": "s", "event": "{}", "details": "{}"}
ADA = analyst_account("ada")


@pytest.fixture
def ledger(place):
    with Ledger.open(place, budgets=BUDGETS) as opened:
        yield opened


def die(place: str, key: str = "k") -> None:
    """A child charges a question and is killed, as by a system that is out of memory."""

    def child() -> None:
        charge(Ledger.open(place, budgets=BUDGETS), "0.1", question_key=key)
        os.kill(os.getpid(), signal.SIGKILL)

    assert wait(fork(child)) == [-signal.SIGKILL]


def once(ledger: Ledger, epsilon: str = "0.1", analyst: str = "ada") -> tuple[str, bool]:
    return ledger.charges.charge_once(Charge(epsilon=Fraction(epsilon), analyst=analyst, **COLUMNS))


def test_processes_that_die_count_toward_the_lock(ledger, place):
    for number in range(3):
        die(place, str(number))
    with Ledger.open(place, budgets=BUDGETS) as later:
        assert [entry.state for entry in later.record.history()] == ["lost"] * 3
        with pytest.raises(PolicyError, match=r"3 questions of the analyst 'ada' failed in the engine, or died there"):
            charge(later, "0.1")
        with pytest.raises(PolicyError, match="hubbub ledger unlock ada"):
            resume(later, **(QUESTION | {"question_key": "1"}))
        charge(later, "0.1", analyst="bob")
        later.steward.unlock(SPACE, "ada", author="steward")
        assert resume(later, **(QUESTION | {"question_key": "1"})) is not None
        assert later.record.verify().sound


def test_a_question_that_was_given_up_counts_for_nothing_and_may_be_retried_once(ledger):
    for number in range(4):
        ledger.charges.let_go(charge(ledger, "0.1", question_key=str(number)))
    charge_id = ledger.record.history()[0].id
    assert ledger.record.entry(charge_id).state == "withdrawn"
    again = QUESTION | {"question_key": "0"}
    assert resume(ledger, **again) == charge_id
    ledger.charges.let_go(charge_id)
    assert resume(ledger, **again) is None
    charge(ledger, "0.1", question_key="more")
    assert ledger.record.verify().sound


def test_a_ledger_that_is_closed_gives_its_open_charges_up(place):
    with Ledger.open(place, budgets=BUDGETS) as one:
        drawn = charge(one, "0.1")
        one.charges.advance(drawn, "drawing")
        left = charge(one, "0.1", question_key="left")
    with Ledger.open(place, budgets=BUDGETS) as two:
        assert (two.record.entry(drawn).state, two.record.entry(left).state) == ("withdrawn", "withdrawn")
        assert resume(two, space=SPACE, question_key="k", analyst="ada", epsilon=Fraction(1, 10)) is None
        assert two.record.verify().sound


def test_two_that_ask_the_same_at_once_pay_once(ledger):
    charge_id, new = once(ledger)
    assert new
    assert once(ledger) == (charge_id, False)
    assert once(ledger, analyst="bob") == (charge_id, False)
    assert once(ledger, "0.2")[1]  # a better answer is another one
    got: list[object] = []
    waiter = threading.Thread(target=lambda: got.append(ledger.record.await_release(charge_id)))
    waiter.start()
    ledger.charges.advance(charge_id, "drawing")
    ledger.charges.store(charge_id, "answer")
    waiter.join()
    assert got[0].payload == "answer"
    assert once(ledger) == (charge_id, False)
    assert ledger.balance.spent(SPACE) == Fraction(3, 10)


def test_nobody_waits_for_what_comes_to_nothing(ledger, place):
    die(place)
    (entry,) = ledger.record.history()
    assert ledger.record.await_release(entry.id, patience=5) is None
    charge_id, new = once(ledger)
    assert new
    ledger.charges.advance(charge_id, "failed")
    assert ledger.record.await_release(charge_id) is None
    other, new = once(ledger)
    assert new
    with pytest.raises(PolicyError, match="has no answer yet"):
        ledger.record.await_release(other, patience=0.02)


def test_an_answer_that_is_stored_between_two_looks_is_no_dead_question(place, monkeypatch):
    with Ledger.open(place, budgets=BUDGETS) as ledger:
        charge_id, _ = once(ledger)

        def ended(_entry):
            ledger.charges.advance(charge_id, "drawing")
            ledger.charges.store(charge_id, "answer")
            return True

        monkeypatch.setattr(ledger.record, "_is_dead", ended)
        assert ledger.record.await_release(charge_id).payload == "answer"


def test_many_processes_that_ask_the_same_pay_once(place):
    Ledger.open(place, budgets=BUDGETS).close()
    read, write = os.pipe()

    def child() -> None:
        with Ledger.open(place, budgets=BUDGETS) as ledger:
            charge_id, new = once(ledger)
            if new:
                ledger.charges.advance(charge_id, "drawing")
                ledger.charges.store(charge_id, "answer")
            release = ledger.record.await_release(charge_id)
            os.write(write, f"{release.payload} {new:d}\n".encode())

    assert wait(*(fork(child) for _ in range(6))) == [0] * 6
    os.close(write)
    with os.fdopen(read) as pipe:
        assert sorted(pipe.read().split("\n")) == ["", *["answer 0"] * 5, "answer 1"]


def test_the_first_charge_settles_the_neighbour_relation(ledger):
    assert ledger.balance.relation(SPACE) is None
    charge(ledger, "0.1", details=json.dumps({"neighbours": "replace"}))
    charge(ledger, "0.1", details=json.dumps({"neighbours": "replace"}))
    assert ledger.balance.relation(SPACE) == "replace"
    with pytest.raises(PolicyError, match="made for neighbours='replace', and this question is for 'add_remove'"):
        charge(ledger, "0.1", details=json.dumps({"neighbours": "add_remove"}))
    assert ledger.balance.spent(SPACE) == Fraction(2, 10)
    assert ledger.record.verify().sound


def test_two_relations_that_race_into_an_empty_ledger_do_not_both_win(place):
    Ledger.open(place, budgets=BUDGETS).close()

    def child(relation: str) -> None:
        with Ledger.open(place, budgets=BUDGETS) as ledger:
            try:
                charge(ledger, "0.1", details=json.dumps({"neighbours": relation}))
            except PolicyError:
                os._exit(7)

    codes = wait(*(fork(lambda r=r: child(r)) for r in ("replace", "add_remove") * 3))
    assert sorted(codes) == [0, 0, 0, 7, 7, 7]
    assert len(set(codes[::2])) == len(set(codes[1::2])) == 1


def test_one_file_by_two_paths_is_one_ledger(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "other.db").symlink_to(tmp_path / "real" / "b.db")
    monkeypatch.chdir(tmp_path)
    places = [tmp_path / "real" / "b.db", "real/b.db", "link/b.db", "link/../real/b.db", "other.db"]
    ledgers = [Ledger.open(where, budgets=BUDGETS) for where in places]
    for number, ledger in enumerate(ledgers):
        charge(ledger, "0.1", question_key=str(number))
    assert {ledger.path for ledger in ledgers} == {(tmp_path / "real" / "b.db").resolve()}
    assert [ledger.balance.spent(SPACE) for ledger in ledgers] == [Fraction(1, 2)] * 5
    for ledger in ledgers:
        ledger.close()
    assert os.listdir(tmp_path / "real") == ["b.db"]


def test_what_a_block_holds_ends_with_the_right_to_spend(ledger):
    block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(1, 2))
    charge(ledger, "0.1", block=block)
    ledger.steward.revoke(SPACE, ADA, author="steward")
    with pytest.raises(PolicyError, match=r"what 'analyst:ada' was granted was revoked.*Nothing was charged"):
        charge(ledger, "0.1", block=block)
    ledger.steward.grant(SPACE, ADA, 1, author="steward")
    charge(ledger, "0.1", block=block)
    ledger.charges.close_block(block)
    assert ledger.balance.spent(SPACE) == Fraction(2, 10)


def test_the_policy_does_not_bring_back_what_a_steward_ended(ledger):
    ledger.steward.record_limits(SPACE, {ADA: Fraction(1, 2), EACH_ANALYST: Fraction(1, 4)})
    ledger.steward.revoke(SPACE, ADA, author="steward")
    assert ledger.steward.record_limits(SPACE, {ADA: Fraction(3, 4), EACH_ANALYST: Fraction(1, 4)}) == [ADA]
    assert ledger.balance.policy_limits(SPACE) == {ADA: Fraction(3, 4), EACH_ANALYST: Fraction(1, 4)}
    with pytest.raises(BudgetError, match="was revoked"):
        charge(ledger, "0.1")
    ledger.steward.grant(SPACE, ADA, "0.3", author="steward")
    with pytest.raises(BudgetError, match=r"0\.3 of 0\.3 is left for the analyst 'ada'"):
        charge(ledger, "0.4")
    assert ledger.steward.record_limits(SPACE, {ADA: Fraction(1, 2), EACH_ANALYST: Fraction(1, 4)}) == [ADA]
    charge(ledger, "0.4")


@pytest.mark.parametrize("own", [None, "0.2"])
@pytest.mark.parametrize("each", [None, "0.1"])
def test_a_line_that_goes_from_the_policy_gives_nobody_more_than_a_steward_said(ledger, own, each):
    ledger.steward.record_limits(SPACE, {ADA: Fraction(1, 2)})
    for account, amount in ((ADA, own), (EACH_ANALYST, each)):
        if amount is not None:
            ledger.steward.grant(SPACE, account, amount, author="steward")
    assert ledger.steward.record_limits(SPACE, {}) == [ADA]
    ceiling = ledger.balance.ceiling(SPACE)
    assert ledger.balance.limit(SPACE, "ada") == Fraction(own or each or ceiling)
    assert ledger.balance.policy_differs(SPACE, {}) == []
    with pytest.raises(BudgetError):
        charge(ledger, Fraction(own or each or ceiling) + Fraction(1, 100))
    ledger.steward.grant(SPACE, EACH_ANALYST, "0.05", author="steward")  # she has none of her own, or hers
    assert ledger.balance.limit(SPACE, "ada") == Fraction(own or "0.05")


def test_nobody_writes_under_the_policys_name(ledger):
    for act in (lambda: ledger.steward.revoke(SPACE, ADA, author="policy"),
                lambda: ledger.steward.grant(SPACE, ADA, "0.1", author="policy"),
                lambda: ledger.steward.raise_ceiling(SPACE, 2, author="policy", reason="r")):  # fmt: skip
        with pytest.raises(ParameterError, match="the policy file's limits"):
            act()
    assert ledger.balance.policy_limits(SPACE) == {}


def test_an_export_holds_no_lock_while_it_is_read(ledger, place):
    charge(ledger, "0.1")
    lines = ledger.record.export()
    first = next(lines)
    charge(ledger, "0.1")
    with Ledger.open(place, budgets=BUDGETS) as other:
        charge(other, "0.1")
        ledger.close()
        rest = list(lines)
    assert [json.loads(line)["serial"] for line in [first, *rest]] == list(range(1, len(rest) + 2))


def test_the_engines_own_words_are_for_the_owner_alone(tmp_path, monkeypatch):
    with Ledger.open(tmp_path / "b.db", budgets=BUDGETS) as ledger:
        file = ledger.charges.keep_incident("17ab", "out of memory near 'Ada Lovelace'")
        assert ledger.record.incident_words("17ab") == "out of memory near 'Ada Lovelace'"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert "Lovelace" not in "".join(ledger.record.export())
        with pytest.raises(PolicyError, match="no words of an incident 99"):
            ledger.record.incident_words("99")
        for wrong in ("../b", "", "a/b"):
            with pytest.raises(PolicyError, match="is not the id"):
                ledger.charges.keep_incident(wrong, "x")
    found = CliRunner().invoke(command, ["incident", "17ab", "--ledger", str(tmp_path / "b.db")])
    assert (found.exit_code, found.output) == (0, "out of memory near 'Ada Lovelace'\n")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Ledger.in_memory(BUDGETS) as ledger:
        assert ledger.charges.keep_incident("1", "x") == Path(tmp_path / "state" / "hubbub" / "incidents" / "1.txt")
