"""Every death of a process that had a question open is recorded, once, and locks: in any order of what can happen."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hubbub.errors import InternalError, PolicyError
from hubbub.ledger import charging, life, process, under_way
from hubbub.ledger.budget import Budget
from hubbub.ledger.rules import Rules
from hubbub.ledger.store import Ledger
from hubbub.ledger.under_way import OpenQuestion, UnderWay
from ledger.helpers import SPACE, charge, fork, resume, wait

BUDGETS = {SPACE: Budget(100)}
ANALYSTS = ("ada", "bob", "cleo", "dan", "eve")
OPEN = ("charged", "retried", "drawing")


class Deaths(RuleBasedStateMachine):
    """Processes are played by their owner texts; each has its own open ledger on one file."""

    def __init__(self) -> None:
        super().__init__()
        from tempfile import mkdtemp

        self.path = os.path.join(mkdtemp(prefix="hubbub-deaths-"), "b.db")
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(charging, "this_process", lambda: self.owner)
        self.patch.setattr(life, "this_process", lambda: self.owner)
        self.patch.setattr(under_way, "this_process", lambda: self.owner)
        self.patch.setattr(under_way, "is_gone", lambda owner, *_: owner not in self.alive)
        self.patch.setattr(life, "is_gone", lambda owner, *_: owner not in self.alive)
        self.patch.setattr(charging, "is_gone", lambda owner, *_: owner not in self.alive)
        self.number = 0
        self.alive: dict[str, Ledger] = {}
        self.order: list[str] = []
        self.owner = ""
        self.states: dict[str, str] = {}  # what each charge is, by our own reckoning
        self.owners: dict[str, str] = {}
        self.questions: dict[str, tuple[str, str]] = {}
        self.spent: set[str] = set()  # those whose free retry is over
        self.deaths = 0
        self.seen = 0  # of those, how many somebody had the time to notice
        self.failed: list[tuple[str, int]] = []
        self.cleared: list[tuple[str | None, int]] = []
        self.start()

    def start(self) -> None:
        self.number += 1
        self.owner = f"place/ns/{self.number}/1"
        self.alive[self.owner] = Ledger.open(self.path, budgets=BUDGETS, patience=0)
        self.notice()

    def notice(self) -> None:
        """Whoever opens a ledger, or looks, notices all that died."""
        for charge_id, state in self.states.items():
            if state in OPEN and self.owners[charge_id] not in self.alive:
                self.states[charge_id] = "lost"
                self.failed.append((self.questions[charge_id][0], len(self.failed) + len(self.cleared)))

    def act(self, number: int) -> Ledger:
        self.owner = sorted(self.alive)[number % len(self.alive)]
        # Each process has its own list of what it has under way.
        self.patch.setattr(life, "_UNDER_WAY", {c for c, o in self.owners.items()
                                                if o == self.owner and self.states[c] in OPEN})  # fmt: skip
        return self.alive[self.owner]

    def locked(self, analyst: str) -> bool:
        since = max((at for who, at in self.cleared if who == analyst), default=-1)
        if sum(who == analyst and at > since for who, at in self.failed) >= 3:
            return True
        return self.joint() >= 10

    def joint(self) -> int:
        """The failures that count towards everybody's lock."""
        since = max((at for who, at in self.cleared if who is None), default=-1)
        counts: dict[tuple[str, int], int] = {}
        for who, at in self.failed:
            if at > since:
                period = who, sum(w == who and c < at for w, c in self.cleared)
                counts[period] = counts.get(period, 0) + 1
        return sum(min(3, count) for count in counts.values())

    def waits(self, analyst: str) -> bool:
        """Whether as many questions of his are open, some of them elsewhere, as may still be seen to fail."""
        owners = [self.owners[c] for c, s in self.states.items() if s in OPEN and self.questions[c][0] == analyst]
        since = max((at for who, at in self.cleared if who == analyst), default=-1)
        failures = sum(who == analyst and at > since for who, at in self.failed)
        return failures + len(owners) >= 3 and any(owner != self.owner for owner in owners)

    def kept_out(self) -> bool:
        """Whether as many other processes have questions open as failures of everybody may still be seen."""
        keepers = {self.owners[c] for c, s in self.states.items() if s in OPEN}
        return self.owner not in keepers and len(keepers) >= 10 - self.joint()

    @rule(who=st.integers(0, 9), analyst=st.sampled_from(ANALYSTS))
    def ask(self, who: int, analyst: str) -> None:
        ledger = self.act(who)
        key = f"q{len(self.states)}"
        ledger.charges.mark_lost()
        self.notice()
        try:
            charge_id = charge(ledger, "0.01", analyst=analyst, question_key=key)
        except PolicyError as error:
            assert self.locked(analyst) or self.waits(analyst) or self.kept_out(), error
            return
        assert not self.locked(analyst)
        assert not self.waits(analyst)
        assert not self.kept_out()
        self.states[charge_id], self.owners[charge_id] = "charged", self.owner
        self.questions[charge_id] = analyst, key

    def pick(self, number: int, *states: str) -> str | None:
        found = [c for c, s in self.states.items() if s in states and self.owners[c] in self.alive]
        return found[number % len(found)] if found else None

    def as_owner(self, charge_id: str) -> Ledger:
        return self.act(sorted(self.alive).index(self.owners[charge_id]))

    @rule(number=st.integers(0, 99))
    def draw(self, number: int) -> None:
        if charge_id := self.pick(number, "charged", "retried"):
            ledger = self.as_owner(charge_id)
            if not self.held_back(charge_id, lambda: ledger.charges.advance(charge_id, "drawing")):
                self.states[charge_id] = "drawing"
                self.spent.add(charge_id)

    @rule(number=st.integers(0, 99))
    def store(self, number: int) -> None:
        if charge_id := self.pick(number, "drawing"):
            ledger = self.as_owner(charge_id)
            if not self.held_back(charge_id, lambda: ledger.charges.store(charge_id, "answer")):
                self.states[charge_id] = "stored"

    @rule(number=st.integers(0, 99))
    def fail(self, number: int) -> None:
        if charge_id := self.pick(number, *OPEN):
            ledger = self.as_owner(charge_id)
            if not self.held_back(charge_id, lambda: ledger.charges.advance(charge_id, "failed", incident="i")):
                self.states[charge_id] = "failed"
                self.failed.append((self.questions[charge_id][0], len(self.failed) + len(self.cleared)))

    def held_back(self, charge_id: str, step: Callable[[], None]) -> bool:
        """Whether the analyst was locked meanwhile: then no step tells how the question went."""
        if not self.locked(self.questions[charge_id][0]):
            step()
            return False
        with pytest.raises(PolicyError, match="whether it failed is not said"):
            step()
        self.states[charge_id] = "withdrawn"
        return True

    @rule(number=st.integers(0, 99))
    def interrupt(self, number: int) -> None:
        if charge_id := self.pick(number, *OPEN):
            self.as_owner(charge_id).charges.let_go(charge_id)
            self.states[charge_id] = "withdrawn"

    @rule(number=st.integers(0, 99), who=st.integers(0, 9))
    def retry(self, number: int, who: int) -> None:
        found = [c for c, s in self.states.items() if s in ("withdrawn", "lost")
                 or (s in OPEN and self.owners[c] not in self.alive)]  # fmt: skip
        if not found:
            return
        charge_id = found[number % len(found)]
        analyst, key = self.questions[charge_id]
        ledger = self.act(who)
        try:
            again = resume(ledger, space=SPACE, question_key=key, analyst=analyst, epsilon=Fraction("0.01"))
        except PolicyError:
            self.notice()
            assert self.locked(analyst) or self.waits(analyst) or self.kept_out()
            return
        waited = self.waits(analyst)
        if again is not None or charge_id not in self.spent:
            self.notice()
            assert not self.locked(analyst)
            assert not waited
        if charge_id in self.spent:
            assert again is None
            return
        assert again == charge_id
        self.states[charge_id], self.owners[charge_id] = "retried", self.owner
        self.spent.add(charge_id)

    @precondition(lambda self: len(self.alive) > 1)
    @rule(who=st.integers(0, 9))
    def kill(self, who: int) -> None:
        ledger = self.act(who)
        self.deaths += sum(s in OPEN and self.owners[c] == self.owner for c, s in self.states.items())
        del self.alive[self.owner]
        ledger._handle.store.close()  # and not ledger.close(), which gives up what is open

    @precondition(lambda self: len(self.alive) < 4)
    @rule()
    def another(self) -> None:
        self.start()

    @rule(who=st.integers(0, 9))
    def look(self, who: int) -> None:
        self.act(who).charges.mark_lost()
        self.notice()

    @rule(who=st.integers(0, 9), analyst=st.sampled_from((None, *ANALYSTS)))
    def clear(self, who: int, analyst: str | None) -> None:
        ledger = self.act(who)
        if analyst is None:
            ledger.steward.unlock_all(SPACE, author="steward")
        else:
            ledger.steward.unlock(SPACE, analyst, author="steward")
        self.cleared.append((analyst, len(self.failed) + len(self.cleared)))

    @invariant()
    def every_death_is_recorded_once(self) -> None:
        ledger = self.act(0)
        ledger.charges.mark_lost()
        self.notice()
        with ledger._handle.reading() as connection:
            (lost,) = connection.execute("SELECT count(*) FROM step WHERE state = 'lost'").fetchone()
        assert lost == self.deaths
        assert {e.id: e.state for e in ledger.record.history()} == self.states

    def teardown(self) -> None:
        assert self.act(0).record.verify().problems == ()
        for ledger in self.alive.values():
            ledger._handle.store.close()
        self.patch.undo()


TestDeaths = Deaths.TestCase
TestDeaths.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)


class ManyDeaths(Deaths):
    """The same, longer."""


@pytest.mark.soak
class TestManyDeaths(ManyDeaths.TestCase):
    settings = settings(max_examples=1000, stateful_step_count=80, deadline=None)


def die(place: str, *, retrying: bool, drawing: bool) -> None:
    """A child asks a question, or takes it up again, and is killed."""

    def child() -> None:
        ledger = Ledger.open(place, budgets=BUDGETS)
        found = resume(ledger, space=SPACE, question_key="k", analyst="ada", epsilon=Fraction("0.1"))
        assert (found is not None) == retrying
        charge_id = found or charge(ledger, "0.1")
        if drawing:
            ledger.charges.advance(charge_id, "drawing")
        os.kill(os.getpid(), signal.SIGKILL)

    assert wait(fork(child)) == [-signal.SIGKILL]


@pytest.mark.parametrize("drawing", [False, True])
def test_a_retried_question_that_dies_counts_too(place, drawing):
    """Interrupted, asked again for nothing, and killed: before, no such death was ever counted."""
    with Ledger.open(place, budgets=BUDGETS) as ledger:
        for _ in range(3):
            ledger.charges.let_go(charge(ledger, "0.1"))
            die(place, retrying=True, drawing=drawing)
        ledger.charges.mark_lost()
        assert ledger.balance.failures(SPACE)["ada"] == (3, 3)
        with pytest.raises(PolicyError, match=r"3 questions of the analyst 'ada' failed"):
            charge(ledger, "0.1")
        assert ledger.record.verify().problems == ()


def test_a_question_that_dies_while_it_draws_counts_and_is_not_retried(place):
    die(place, retrying=False, drawing=True)
    with Ledger.open(place, budgets=BUDGETS) as ledger:
        (entry,) = ledger.record.history()
        assert entry.state == "lost"
        assert resume(ledger, space=SPACE, question_key="k", analyst="ada", epsilon=Fraction("0.1")) is None
        with pytest.raises(PolicyError, match="took this one for dead"):
            ledger.charges.store(entry.id, "answer")
        with pytest.raises(PolicyError, match="took this one for dead"):
            ledger.charges.advance(entry.id, "drawing")


@pytest.mark.parametrize("failed", [0, 2])
def test_processes_that_die_together_are_seen_to_die_no_more_often_than_may_be(place, failed):
    """Before, each of any number of processes charged its question, and each death told something about the rows."""
    with Ledger.open(place, budgets=BUDGETS) as ledger:
        for number in range(failed):
            ledger.charges.advance(charge(ledger, "0.01", question_key=f"failed{number}"), "failed")
        read, write = os.pipe()

        def child() -> None:
            own = Ledger.open(place, budgets=BUDGETS, patience=2)
            try:
                charge(own, "0.01", question_key=f"q{os.getpid()}")
            except PolicyError as refused:
                assert "under way" in str(refused)
                os.write(write, b"r")
                return
            os.write(write, b"c")
            time.sleep(600)

        children = [fork(child) for _ in range(8)]
        said = b"".join(os.read(read, 1) for _ in children)
        assert said.count(b"c") == 3 - failed
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        codes = wait(*children)
        ledger.charges.mark_lost()
        assert ledger.balance.failures(SPACE)["ada"] == (3, 3)
        assert len(ledger.record.history()) == 3
        assert set(codes) <= {0, -signal.SIGKILL}
        os.close(read)
        os.close(write)


@pytest.mark.parametrize("failed", [0, 1])
def test_processes_of_many_analysts_that_die_together_are_bounded_by_the_joint_limit(place, failed):
    """Before, each of any number of analysts had one under way, and every death was seen."""
    limits = {"max_failures": 3, "max_failures_all": 2}
    with Ledger.open(place, budgets=BUDGETS, **limits) as ledger:
        for _ in range(failed):
            ledger.charges.advance(charge(ledger, "0.01", analyst="first"), "failed")
        read, write = os.pipe()

        def child() -> None:
            own = Ledger.open(place, budgets=BUDGETS, patience=1, **limits)
            try:
                charge(own, "0.01", analyst=f"a{os.getpid()}")
            except PolicyError as refused:
                assert "other processes have questions" in str(refused)
                os.write(write, b"r")
                return
            charge(own, "0.01", analyst=f"b{os.getpid()}")  # of a process that dies anyway, once
            os.write(write, b"c")
            time.sleep(600)

        children = [fork(child) for _ in range(5)]
        said = b"".join(os.read(read, 1) for _ in children)
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        codes = wait(*children)
        assert said.count(b"c") == 2 - failed
        ledger.charges.mark_lost()
        assert ledger.balance.failures(SPACE)[None] == (failed + 2 * (2 - failed), 2)
        assert set(codes) <= {0, -signal.SIGKILL}
        os.close(read)
        os.close(write)


def test_many_processes_of_one_analyst_wait_for_each_other_and_all_are_answered(place):
    Ledger.open(place, budgets=BUDGETS).close()

    def child() -> None:
        with Ledger.open(place, budgets=BUDGETS) as ledger:
            for number in range(4):
                made = charge(ledger, "0.01", question_key=f"{os.getpid()} {number}")
                ledger.charges.advance(made, "drawing")
                ledger.charges.store(made, "answer")

    assert wait(*[fork(child) for _ in range(6)]) == [0] * 6
    with Ledger.open(place, budgets=BUDGETS) as ledger:
        assert [entry.state for entry in ledger.record.history()] == ["stored"] * 24
        assert ledger.record.verify().problems == ()


def test_threads_of_one_process_need_not_wait_and_another_process_does(place):
    with Ledger.open(place, budgets=BUDGETS) as ledger:
        made = [charge(ledger, "0.01", question_key=f"q{n}") for n in range(5)]

        def child() -> None:
            other = Ledger.open(place, budgets=BUDGETS, patience=0.2)
            with pytest.raises(PolicyError, match="5 questions of the analyst 'ada' are under way"):
                charge(other, "0.01", question_key="mine")
            charge(other, "0.01", question_key="mine", analyst="bob")
            assert resume(other, space=SPACE, question_key="given up", analyst="ada", epsilon=Fraction(1)) is None

        assert wait(fork(child)) == [0]
        ledger.charges.let_go(made.pop())
        ledger.charges.let_go(made.pop())
        ledger.charges.let_go(made.pop())

        def retry() -> None:
            other = Ledger.open(place, budgets=BUDGETS, patience=0.2)
            for number in (2, 3):  # the second would be the fourth that is open
                assert resume(other, space=SPACE, question_key=f"q{number}", analyst="ada", epsilon=Fraction("0.01")), (
                    number
                )

        def child_retries() -> None:
            with pytest.raises(PolicyError, match="3 questions of the analyst 'ada' are under way"):
                retry()

        assert wait(fork(child_retries)) == [0]


def fail(ledger: Ledger, analyst: str, count: int) -> None:
    """So many questions of an analyst fail, which others that read another setting may have let through."""
    made = [charge(ledger, "0.01", analyst=analyst, question_key=f"{analyst}{n}") for n in range(count)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger._handle, "rules", Rules(10**9, 10**9))
        for charge_id in made:
            ledger.charges.advance(charge_id, "failed")


@pytest.mark.parametrize("drawing", [False, True])
def test_no_more_failures_are_told_than_may_be_however_many_questions_are_asked_together(place, drawing):
    """Before, each of any number of questions under way told its own failure, and the lock came after them all."""
    with Ledger.open(place, budgets=BUDGETS, max_failures_all=100) as ledger:
        made = [charge(ledger, "0.01", question_key=f"q{n}") for n in range(8)]
        others = charge(ledger, "0.01", analyst="bob", question_key="bob's")
        for charge_id in made if drawing else ():
            ledger.charges.advance(charge_id, "drawing")
        for charge_id in made[:3]:
            ledger.charges.advance(charge_id, "failed", incident="i")
        ends = [
            lambda c: ledger.charges.advance(c, "failed", incident="i"),
            lambda c: ledger.charges.store(c, "answer") if drawing else ledger.charges.advance(c, "drawing"),
        ]
        told = set()
        for number, charge_id in enumerate(made[3:]):
            with pytest.raises(PolicyError) as caught:
                ends[number % 2](charge_id)
            told.add((str(caught.value), ledger.record.entry(charge_id).state, ledger.record.release(charge_id)))
        assert len(told) == 1
        assert "3 questions of the analyst 'ada' failed" in next(iter(told))[0]
        assert ledger.balance.failures(SPACE) == {None: (3, 100), "ada": (3, 3)}
        ledger.charges.advance(others, "drawing")
        ledger.charges.store(others, "answer")
        ledger.steward.unlock(SPACE, "ada", author="steward")
        again = resume(ledger, space=SPACE, question_key="q5", analyst="ada", epsilon=Fraction("0.01"))
        assert again == (None if drawing else made[5])
        assert ledger.record.verify().problems == ()


def test_ten_failures_in_a_unit_space_lock_everybody_until_a_steward_looks():
    with Ledger.in_memory({SPACE: Budget(100), "other": Budget(1)}) as ledger:
        kept = charge(ledger, 1, analyst="zoe")
        ledger.charges.advance(kept, "drawing")
        ledger.charges.store(kept, "answer")
        for analyst in ("ada", "bob", "cleo"):
            fail(ledger, analyst, 3)
        charge(ledger, "0.1", analyst="zoe")
        fail(ledger, "dan", 1)
        with pytest.raises(PolicyError, match=r"10 questions about the unit space.*hubbub ledger unlock --all"):
            charge(ledger, "0.1", analyst="zoe")
        charge(ledger, "0.1", space="other", analyst="zoe")
        ledger.charges.share(
            ledger.record.release(kept), "yan"
        )  # stored answers stay free, for those who read them too
        assert ledger.balance.failures(SPACE)[None] == (10, 10)
        ledger.steward.unlock(SPACE, "ada", author="steward")
        with pytest.raises(PolicyError, match="unlock --all"):
            charge(ledger, "0.1", analyst="ada")
        ledger.steward.unlock_all(SPACE, author="steward")
        charge(ledger, "0.1", analyst="zoe")
        with pytest.raises(PolicyError, match="hubbub ledger unlock bob"):
            charge(ledger, "0.1", analyst="bob")
        assert ledger.record.verify().sound


def test_an_analyst_at_his_own_limit_adds_no_more_to_the_joint_count():
    with Ledger.in_memory({SPACE: Budget(100)}) as ledger:
        fail(ledger, "ada", 40)
        assert ledger.balance.failures(SPACE) == {None: (3, 10), "ada": (40, 3)}
        charge(ledger, "0.1", analyst="bob")
        ledger.steward.unlock(SPACE, "ada", author="steward")
        fail(ledger, "ada", 40)
        assert ledger.balance.failures(SPACE)[None] == (6, 10)


def test_how_many_failures_lock_everybody_is_a_setting():
    with Ledger.in_memory({SPACE: Budget(100)}, max_failures_all=2) as ledger:
        fail(ledger, "ada", 1)
        fail(ledger, "bob", 1)
        with pytest.raises(PolicyError, match="2 are allowed to all analysts together"):
            charge(ledger, "0.1", analyst="zoe")


def test_what_was_given_up_while_drawing_stays_spent_and_counts_not():
    with Ledger.in_memory({SPACE: Budget(1)}) as ledger:
        charge_id = charge(ledger, "0.1")
        ledger.charges.advance(charge_id, "drawing")
        ledger.charges.let_go(charge_id)
        assert ledger.record.entry(charge_id).state == "withdrawn"
        assert resume(ledger, space=SPACE, question_key="k", analyst="ada", epsilon=Fraction("0.1")) is None
        assert ledger.balance.failures(SPACE) == {None: (0, 10)}
        with pytest.raises(InternalError):
            ledger.charges.store(charge_id, "answer")


def test_any_number_of_open_charges_is_looked_at_and_given_up(tmp_path, monkeypatch):
    """More at once than one statement takes."""
    with Ledger.open(tmp_path / "b.db", budgets={SPACE: Budget(10**6)}) as ledger:
        made = [charge(ledger, "0.001", question_key=str(number)) for number in range(600)]
        assert ledger.charges.mark_lost() == ledger.charges.mark_lost() == 0
        assert len(ledger.charges._under_way.all) == 600
        ledger.charges.advance(made[0], "drawing")
        assert ledger.charges.mark_lost() == 0
        assert len(ledger.charges._under_way.all) == 600
        with monkeypatch.context() as patch:
            patch.setattr(under_way, "this_process", lambda: "place/ns/1/1")
            patch.setattr(under_way, "is_gone", lambda *_: True)
            assert ledger.charges.mark_lost() == 600
        assert ledger.charges.mark_lost() == 0
        assert not ledger.charges._under_way.all


def test_a_process_that_is_hidden_from_this_user_is_not_taken_for_dead(monkeypatch):
    """With `hidepid`, /proc shows nothing of other users' processes."""
    owner = process.this_process()
    at = "2026-01-01T00:00:00+00:00"

    def refused(pid: int, number: int) -> None:
        assert number == 0
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(process, "_start", lambda _: "")
        assert not process.is_gone(owner, at, at)
        patch.setattr(os, "kill", refused)
        assert not process.is_gone(owner, at, at)
    place = owner.rsplit("/", 2)[0]
    assert process.is_gone(f"{place}/{2**22 + 1}/7", at, at)
    assert process.is_gone(f"{place}/{2**80}/7", at, at)


def test_failures_and_the_relation_count_under_every_spelling_of_a_space(place):
    """A ledger of an older hubbub may hold one people under two names, of which a steward ended one."""
    with Ledger.open(place, budgets=BUDGETS) as ledger:
        twin = f"{SPACE} "
        with ledger._handle.writing() as writer:
            writer.append("unit_space", twin, "1/1", None, None)
        charge(ledger, "0.1", space=twin, analyst="bob", details='{"neighbours": "add_remove"}')
        for number in range(3):
            ledger.charges.advance(charge(ledger, "0.01", space=twin, question_key=f"{number}"), "failed")
        ledger.steward.revoke(twin, "everyone", author="steward")
        assert ledger.balance.failures(SPACE) == {None: (3, 10), "ada": (3, 3)}
        with pytest.raises(PolicyError, match="hubbub ledger unlock ada"):
            charge(ledger, "0.1")
        with pytest.raises(PolicyError, match="declare neighbours='add_remove'"):
            charge(ledger, "0.1", analyst="bob", details='{"neighbours": "replace"}')
        ledger.steward.unlock(SPACE, "ada", author="steward")
        charge(ledger, "0.1")


@pytest.mark.parametrize("again", ["Patients", " PATIENTS", "\uff50atients"])
def test_what_is_under_way_counts_under_every_spelling_of_a_space(again):
    """Before, each spelling had as many questions open as one may see fail."""
    way = UnderWay()
    for number in range(3):
        way.add(OpenQuestion(number, again if number else "patients", "ada", f"process{number}", ""))
    assert way.blocks("patients", "ada", "mine", 3) == way.blocks(again, "ada", "mine", 3) == 3
    assert way.keeps_out("patients", "mine", 3) == way.keeps_out(again, "mine", 3) == 3
    assert way.blocks("others", "ada", "mine", 3) == way.keeps_out("others", "mine", 3) == 0
    for question in (*way._fresh,):
        way._note(question)
    way._fresh.clear()
    assert way.blocks("patients", "ada", "mine", 3) == way.keeps_out(again, "mine", 3) == 3
    for number in range(3):
        way._close(number)
    assert way.blocks(again, "ada", "mine", 3) == way.keeps_out("patients", "mine", 3) == 0
