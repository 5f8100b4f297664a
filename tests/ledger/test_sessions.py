"""The ledger seen through a session: retries, requests, blocks, plans, refreshes, and the averaging attack."""

from __future__ import annotations

import os
import signal
import threading
import time
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import hubbub as hb
import hubbub.engines.duckdb.engine
from hubbub.errors import EngineError, InternalError
from hubbub.ledger.accounts import analyst_account
from hubbub.session import Session
from ledger.helpers import fork, wait
from people import session, visits

COUNT = "SELECT COUNT(*) AS n FROM visits"
WARDS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def test_the_averaging_attack_gains_nothing():
    with session(epsilon=1) as s:
        answers = {s.sql(COUNT, epsilon="0.1").rows()[0] for _ in range(50)}
        assert (len(answers), s.remaining, len(s.history())) == (1, Fraction(9, 10), 1)


def test_the_averaging_attack_with_fresh_draws_ends_at_the_predicted_count():
    with session(epsilon=1) as s:
        for _ in range(40):
            s.sql(COUNT, epsilon="1/40", fresh=True)
        with pytest.raises(hb.BudgetError):
            s.sql(COUNT, epsilon="1/40", fresh=True)
        assert (s.remaining, len(s.history())) == (0, 40)


def test_a_session_that_died_before_the_draw_is_retried_for_nothing(tmp_path):
    path = tmp_path / "b.db"
    with session(epsilon=1, ledger=path) as s:
        s.check(COUNT, epsilon=1)

    def child() -> None:
        with session(epsilon=1, ledger=path) as s:
            s._engine.run = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
            s.sql(COUNT, epsilon="0.5")

    assert wait(fork(child)) == [-signal.SIGKILL]
    with session(epsilon=1, ledger=path) as s:
        assert s.remaining == Fraction(1, 2)
        assert s.sql(COUNT, epsilon="0.5").charged
        assert [entry.state for entry in s.history()] == ["shown"]
        assert s.remaining == Fraction(1, 2)
        assert s.ledger.record.verify().sound


def test_an_interrupted_question_is_retried_for_nothing_once():
    with session(epsilon=1) as s:
        run = s._engine.run

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        for _ in range(2):
            s._engine.run = interrupt  # type: ignore[assignment,method-assign]
            with pytest.raises(KeyboardInterrupt):
                s.sql(COUNT, epsilon="0.25")
        assert s.remaining == Fraction(3, 4)
        s._engine.run = run  # type: ignore[method-assign]
        s.sql(COUNT, epsilon="0.25")
        assert s.remaining == Fraction(1, 2)


def test_engine_failures_keep_their_charges_and_lock_after_three():
    with session(epsilon=1) as s:
        run = s._engine.run

        def fail(*_: object) -> None:
            raise EngineError("i-1")

        s._engine.run = fail  # type: ignore[assignment,method-assign]
        for _ in range(3):
            with pytest.raises(EngineError):
                s.sql(COUNT, epsilon="0.125")
        s._engine.run = run  # type: ignore[method-assign]
        with pytest.raises(hb.PolicyError, match="hubbub ledger unlock"):
            s.sql(COUNT, epsilon="0.125")
        assert s.remaining == Fraction(5, 8)
        s._ledger.steward.unlock("id", s.analyst, author="steward")
        assert s.sql(COUNT, epsilon="0.125").charged


@pytest.mark.parametrize("error", [EngineError("i-1"), RuntimeError("private words"), InternalError("private words")])
def test_questions_asked_together_tell_no_more_failures_than_may_be(error):
    """Before, each of any number of threads was told its own failure: the lock came after them all.

    What they are told instead is the same words for each, with no other error behind them.
    """
    with session(epsilon=1) as s:
        together, run, failures = threading.Barrier(8, timeout=120), s._engine.run, []

        def fail(*given: object) -> object:
            if together.wait() % 2:
                failures.append(1)
                raise error
            for _ in range(600):
                if s.ledger.balance.failures("id").get(s.analyst, (0, 3))[0] >= 3:
                    break
                time.sleep(0.1)
            return run(*given)

        s._engine.run = fail  # type: ignore[assignment,method-assign]
        told: list[BaseException | None] = []

        def ask(number: int) -> None:
            try:
                s.sql(f"SELECT COUNT(*) AS n FROM visits WHERE age > {number}", epsilon="0.001")
                told.append(None)
            except hb.HubbubError as refused:
                told.append(refused)

        asking = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for each in asking:
            each.start()
        for each in asking:
            each.join()
        assert len(failures) == 4
        assert sum(isinstance(each, EngineError) for each in told) == 3
        held_back = [each for each in told if isinstance(each, hb.PolicyError)]
        assert len(held_back) == 5
        assert len({str(each) for each in held_back}) == 1
        assert [each.__context__ for each in told if each is not None] == [None] * 8
        assert s.ledger.balance.failures("id")[s.analyst] == (3, 3)


def test_a_request_sent_twice_is_charged_and_drawn_once():
    with session(epsilon=1) as s:
        first = s.sql(COUNT, epsilon="0.25", fresh=True, idempotency_key="r")
        again = s.sql(COUNT, epsilon="0.25", fresh=True, idempotency_key="r")
        assert (again.rows(), again.charged, s.remaining) == (first.rows(), False, Fraction(3, 4))
        with pytest.raises(hb.QueryError, match="stands for another question"):
            s.sql(WARDS, epsilon="0.25", idempotency_key="r")
        with pytest.raises(hb.QueryError, match="stands for another question"):
            s.sql(COUNT, epsilon="0.5", idempotency_key="r")


def test_a_request_that_was_lost_while_drawing_says_so(monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with session(epsilon=1) as s:
        with monkeypatch.context() as broken:
            broken.setattr("hubbub.session.statement.draw", fail)
            with pytest.raises(KeyboardInterrupt):
                s.sql(COUNT, epsilon="0.25", idempotency_key="r")
        with pytest.raises(hb.QueryError, match="now 'withdrawn'"):
            s.sql(COUNT, epsilon="0.25", idempotency_key="r")
        s.sql(COUNT, epsilon="0.25", idempotency_key="r2")
        assert s.remaining == Fraction(1, 2)


@pytest.mark.parametrize("given_up_as", [None, "other"])
def test_a_name_stands_for_one_draw_beside_what_was_given_up(tmp_path, given_up_as):
    """The free retry of a request without that name is another's charge, by which the name would not be found."""
    with session(epsilon=1, ledger=tmp_path / "b.db") as s:
        run, s._engine.run = s._engine.run, interrupted
        with pytest.raises(KeyboardInterrupt):
            s.sql(COUNT, epsilon="0.25", idempotency_key=given_up_as)
        s._engine.run = run
        first, again = (s.sql(COUNT, epsilon="0.25", fresh=True, idempotency_key="r").charge_id for _ in range(2))
        assert first == again
        assert s.sql(COUNT, epsilon="0.25", fresh=True).charged  # without a name it takes over what was given up
        assert s.remaining == Fraction(1, 2)


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_block_is_kept_for_its_questions():
    with session(epsilon=1) as s:
        with s.reserve(epsilon="0.75") as block:
            assert s.remaining == Fraction(1, 4)
            s.sql(COUNT, epsilon="0.5")
            assert s.receipt(s.history()[-1].id)["charged"]["to"] == f"block {block}"
            with pytest.raises(hb.BudgetError, match="the reserved block"):
                s.sql(WARDS, epsilon="0.5")
            with pytest.raises(hb.QueryError, match="reserved already"), s.reserve(epsilon=1):
                pass
        assert s.remaining == Fraction(1, 2)
        assert s.ledger.record.verify().sound


def test_a_plan_is_charged_as_one_or_not_at_all():
    with session(epsilon=1) as s:
        answers = s.plan([(COUNT, "0.25"), (WARDS, "0.5")])
        assert [len(a) for a in answers] == [1, 4]
        assert s.remaining == Fraction(1, 4)
        assert [e.kind for e in s.history()] == ["plan", "question", "question", "return"]
        assert [a.charged for a in s.plan([(COUNT, "0.25"), (WARDS, "0.5")])] == [False, False]
        with pytest.raises(hb.BudgetError, match="the plan asks for epsilon"):
            s.plan([(f"{COUNT} WHERE n > 1", "0.2"), (f"{COUNT} WHERE n > 2", "0.1")])
        assert (s.remaining, len(s.history())) == (Fraction(1, 4), 4)
        with pytest.raises(hb.QueryError):
            s.plan([(f"{COUNT} WHERE n > 1", "0.2"), ("SELECT nothing", "0.1")])
        assert s.ledger.record.verify().sound


def test_a_refresh_asks_anew_and_gives_nothing_back():
    with session(epsilon=1) as s:
        s.sql(COUNT, epsilon="0.25")
        s.refresh("visits")
        assert s.sql(COUNT, epsilon="0.25").charged
        assert s.remaining == Fraction(1, 2)
        with pytest.raises(hb.PolicyError, match="not a private table"):
            s.refresh("nothing")


def test_a_file_that_changed_is_a_refresh(tmp_path):
    source = tmp_path / "v.parquet"

    def write(rows: int) -> None:
        duckdb.connect().execute(f"COPY (SELECT range AS id FROM range({rows})) TO '{source}' (FORMAT parquet)")

    write(100)
    table = hb.table(source, unit="id", max_rows=1, max_groups=1)
    with Session({"v": table}, budget=hb.Budget(1), ledger=tmp_path / "b.db") as s:
        assert s.sql("SELECT COUNT(*) FROM v", epsilon="0.25").charged
        assert not s.sql("SELECT COUNT(*) FROM v", epsilon="0.25").charged
    write(1000)
    with Session({"v": table}, budget=hb.Budget(1), ledger=tmp_path / "b.db") as s:
        assert s.sql("SELECT COUNT(*) FROM v", epsilon="0.25").charged
        assert len({entry.data_version for entry in s.history()}) == 2


def test_another_analyst_reads_for_nothing_within_their_own_limit(tmp_path):
    path = tmp_path / "b.db"
    tables = {"visits": visits()}
    with Session(tables, budget=hb.Budget(1), ledger=path, analyst="ada") as ada:
        answer = ada.sql(COUNT, epsilon="0.5")
        ada._ledger.steward.grant("id", analyst_account("bob"), "0.6", author="steward")
    with Session(tables, budget=hb.Budget(1), ledger=path, analyst="bob") as bob:
        read = bob.sql(COUNT, epsilon="0.5")
        assert (read.rows(), read.charged, bob.remaining) == (answer.rows(), False, Fraction(1, 2))
        bob.sql(COUNT, epsilon="0.5")
        assert bob.ledger.balance.total("id", analyst_account("bob")).epsilon == Fraction(1, 2)
        check = bob.check(WARDS, epsilon="0.2")
        assert (check.left, check.affordable) == (Fraction(1, 10), False)
        with pytest.raises(hb.BudgetError, match=r"0\.1 of 0\.6 is left for the analyst 'bob'"):
            bob.sql(WARDS, epsilon="0.2")


POLICY = """\
[ledger]
file = "budget.db"
[budget]
epsilon = 3
per_analyst = 1
analysts = { ada = 2 }
[tables.v]
source = "v.parquet"
unit = "id"
max_groups = 1
max_rows = 1
budget = 1.5
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    duckdb.connect().execute(f"COPY (SELECT range AS id FROM range(100)) TO '{tmp_path}/v.parquet' (FORMAT parquet)")
    (tmp_path / "hubbub.toml").write_text(POLICY)
    return tmp_path / "hubbub.toml"


def test_the_limits_of_a_policy_hold_and_changes_are_recorded_first(policy):
    Session.from_policy(policy, create_ledger=True).close()
    question = "SELECT COUNT(*) FROM v"
    with Session.from_policy(policy, analyst="bob") as s:
        with pytest.raises(hb.BudgetError, match="1 of 1 is left for the analyst 'bob'"):
            s.sql(question, epsilon="1.1")
        s.sql(question, epsilon=1)
        digest = s.history()[0].policy
        assert s.ledger.record.policy_text(digest) == POLICY
    with Session.from_policy(policy, analyst="ada") as s:
        with pytest.raises(hb.BudgetError, match=r"0\.5 of 1\.5 is left for the table 'v'"):
            s.sql(question, epsilon=1, fresh=True)
    policy.write_text(POLICY.replace("ada = 2", "ada = 1"))
    with pytest.raises(hb.PolicyError, match=r"other limits than its ledger holds, for analyst:ada.*ledger create"):
        Session.from_policy(policy)
    Session.from_policy(policy, create_ledger=True).close()
    with Session.from_policy(policy, analyst="ada") as s:
        assert s.ledger.balance.remaining("id", analyst="ada") == 1


def test_a_keyed_ledger_needs_the_key_that_the_policy_names(policy):
    policy.write_text(POLICY.replace('file = "budget.db"', 'file = "budget.db"\nkey_file = "key"'))
    with pytest.raises(hb.PolicyError, match="cannot read the key file"):
        Session.from_policy(policy, create_ledger=True)
    (policy.parent / "key").write_bytes(b"short")
    with pytest.raises(hb.PolicyError, match="has 5 bytes"):
        Session.from_policy(policy, create_ledger=True)
    (policy.parent / "key").write_bytes(b"0123456789abcdef0123456789abcdef\n")
    with Session.from_policy(policy, create_ledger=True) as s:
        s.sql("SELECT COUNT(*) FROM v", epsilon=1)
        assert s.ledger.record.verify().sound
    policy.write_text(POLICY)
    with pytest.raises(hb.PolicyError, match="is keyed"):
        Session.from_policy(policy)


def test_a_ledger_in_postgres_serves_a_session(database):
    address = database()
    with session(epsilon=1, ledger=address) as s:
        first = s.sql(WARDS, epsilon="0.5")
        assert "postgresql:///ledger" in repr(s)
    with session(epsilon=1, ledger=address) as s:
        assert s.sql(WARDS, epsilon="0.5").rows() == first.rows()
        assert s.remaining == Fraction(1, 2)
        assert s.ledger.record.verify().sound
