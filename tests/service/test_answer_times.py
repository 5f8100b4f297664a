"""A change of answer times may tell of runs that did not end in time: it is recorded with a reason, as a clearance."""

from __future__ import annotations

import tomllib

import pytest

import hubbub as hb
from hubbub.cli.main import run
from hubbub.errors import PolicyError
from hubbub.ledger.policy import load_policy
from hubbub.ledger.store import Ledger
from hubbub.ledger.timetable import Queue
from hubbub.service import clerk
from hubbub.service.answer_times import agree_on_times, times_of
from hubbub.service.clerk import empty_tables
from hubbub.service.desk import Desk
from hubbub.session.empty import schema_of
from hubbub.session.open import declared_tables
from hubbub.session.runner import Runner
from service.test_before_asking import policy as write_policy

SPACES = {"v": "id"}


@pytest.fixture
def file(tmp_path):
    made = write_policy(tmp_path)
    hb.Session.from_policy(made, create_ledger=True).close()
    return made


def asked(file):
    """The service is asked once, by the answer times that stand in the file."""
    policy = load_policy(file)
    data = empty_tables(policy, schema_of(Runner(declared_tables(policy))._data))
    with clerk._ledger(policy, data) as ledger:
        desk = Desk(data, ledger, policy=policy.text, times={"v": 10**6}, queue=Queue(), start=lambda one, order: None)
        desk.ask("ada", "SELECT COUNT(*) AS n FROM v", {"epsilon": "0.1"}, f"r{len(desk.history('ada'))}")
    data.close()


def changed(file, seconds):
    text = file.read_text()
    before = text[text.rindex("answer_time") :].splitlines()[0]  # of the table
    file.write_text(text.replace(before, f"answer_time = {seconds}"))


def agree(file):
    policy = load_policy(file)
    times = {n: t.answer_time or policy.service.answer_time for n, t in policy.tables.items()}
    with Ledger.inspect(policy.ledger) as ledger:
        agree_on_times(ledger, times, SPACES)


def unlock(file, *more):
    assert run(("ledger", "unlock", "--policy", str(file), *more)) == 0


def test_a_change_of_answer_times_is_a_clearance_with_a_reason(file):
    agree(file)
    changed(file, 3)
    agree(file)  # nobody was asked by the older ones
    asked(file)
    agree(file)
    changed(file, 4)
    with pytest.raises(PolicyError, match=r"'v' was 3 seconds .* is 4 now.*unlock --all --unit-space id --reason"):
        agree(file)
    unlock(file, "--all")
    with pytest.raises(PolicyError):
        agree(file)  # no reason was given
    unlock(file, "--all", "--reason", "a larger table is coming")
    agree(file)
    with Ledger.inspect(load_policy(file).ledger) as ledger:
        with ledger._handle.reading() as connection:
            authors = [
                a for (a,) in connection.execute("SELECT author FROM joint_clearance ORDER BY serial").fetchall()
            ]
        assert authors[-1].endswith(": a larger table is coming")
        assert ledger.record.verify().problems == ()


def test_what_was_said_before_the_last_question_says_nothing_of_a_later_change(file):
    unlock(file, "--all", "--reason", "to begin with")
    asked(file)
    changed(file, 30)
    with pytest.raises(PolicyError):
        agree(file)
    changed(file, 1.5)
    agree(file)


def test_a_clerk_does_not_start_by_other_answer_times(file):
    asked(file)
    changed(file, 30)
    with pytest.raises(PolicyError, match="counts as a clearance"):
        clerk.Clerk(load_policy(file))


def test_answer_times_are_read_as_the_policy_declares_them(file):
    policy = load_policy(file)
    declared = {n: t.answer_time or policy.service.answer_time for n, t in policy.tables.items()}
    assert times_of(tomllib.loads(policy.text)) == declared
