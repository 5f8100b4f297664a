"""The contract of every store: what a ledger promises, in a file, in memory and in Postgres alike."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hubbub.errors import BudgetError, InternalError, ParameterError, PolicyError, QueryError
from hubbub.ledger import schema
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, charge


@pytest.fixture(params=["file", "memory", "postgres"])
def ledger(request, tmp_path):
    budgets = {SPACE: Budget(1)}
    match request.param:
        case "file":
            opened = Ledger.open(tmp_path / "b.db", budgets=budgets)
        case "memory":
            opened = Ledger.in_memory(budgets)
        case _:
            opened = Ledger.open(request.getfixturevalue("database")(), budgets=budgets)
    with opened:
        yield opened


def answered(ledger: Ledger, epsilon: str, payload: str, **changes: str) -> str:
    charge_id = charge(ledger, epsilon, **changes)
    ledger.charges.advance(charge_id, "drawing")
    ledger.charges.store(charge_id, payload)
    return charge_id


def test_a_new_space_has_everything_left(ledger):
    assert (ledger.balance.ceiling(SPACE), ledger.balance.spent(SPACE), ledger.balance.remaining(SPACE)) == (1, 0, 1)
    assert ledger.balance.spaces() == [SPACE]


def test_a_tenth_fits_ten_times_exactly(ledger):
    for _ in range(10):
        charge(ledger, "0.1")
    assert ledger.balance.remaining(SPACE) == 0


def test_one_ulp_too_much_is_refused_and_costs_nothing(ledger):
    charge(ledger, "0.7")
    with pytest.raises(BudgetError) as refusal:
        charge(ledger, str(0.1 + 0.2))
    assert (refusal.value.asked, refusal.value.left) == ("0.30000000000000004", "0.3")
    assert "0.30000000000000004, and 0.3 of 1 is left" in str(refusal.value)
    charge(ledger, "0.3")
    assert ledger.balance.remaining(SPACE) == 0
    with pytest.raises(BudgetError, match="The budget is spent"):
        charge(ledger, "1e-300")


@pytest.mark.parametrize("wrong", [Fraction(-1, 2), Fraction(0)])
def test_nothing_can_be_given_back_by_a_negative_charge(ledger, wrong):
    with pytest.raises(ParameterError):
        charge(ledger, wrong)
    assert ledger.record.history() == []


def test_spaces_have_budgets_of_their_own(tmp_path):
    with Ledger.open(tmp_path / "b.db", budgets={"a": Budget(1), "b": Budget("1/3")}) as ledger:
        charge(ledger, 1, space="a")
        charge(ledger, "1/3", space="b")
        assert (ledger.balance.remaining("a"), ledger.balance.remaining("b")) == (0, 0)
        assert [entry.space for entry in ledger.record.history()] == ["a", "b"]
        assert len(ledger.record.history("b")) == 1


def test_a_space_without_a_budget_is_refused(ledger):
    for ask in (
        ledger.balance.remaining,
        ledger.balance.ceiling,
        ledger.balance.spent,
        lambda s: charge(ledger, 1, space=s),
    ):
        with pytest.raises(PolicyError, match="no budget for the unit space 'nobody'"):
            ask("nobody")
    with pytest.raises(PolicyError, match="nobody"):
        ledger.versions.data_version("nobody", "visits")


def test_a_charge_lives_from_charged_to_shown(ledger):
    charge_id = charge(ledger, "0.5", event='{"kind": "laplace"}', details='{"scale": 2}')
    states = [ledger.record.entry(charge_id).state]
    ledger.charges.advance(charge_id, "drawing")
    states.append(ledger.record.entry(charge_id).state)
    assert ledger.record.release(charge_id) is None
    ledger.charges.store(charge_id, "answer")
    states.append(ledger.record.entry(charge_id).state)
    ledger.charges.advance(charge_id, "shown")
    entry = ledger.record.entry(charge_id)
    assert [*states, entry.state] == ["charged", "drawing", "stored", "shown"]
    assert (entry.epsilon, entry.event, entry.details) == (
        Fraction(1, 2),
        '{"kind": "laplace"}',
        '{"scale": 2}',
    )
    assert (entry.analyst, entry.dataset, entry.question_key) == ("ada", "visits", "k")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", entry.time)
    assert ledger.record.release(charge_id).payload == "answer"


def test_a_release_may_be_shown_again_and_nothing_else_repeats(ledger):
    charge_id = answered(ledger, "0.5", "answer")
    ledger.charges.advance(charge_id, "shown")
    ledger.charges.advance(charge_id, "shown")
    assert ledger.record.entry(charge_id).state == "shown"


PATHS = {
    "charged": (),
    "drawing": ("drawing",),
    "stored": ("drawing", "stored"),
    "shown": ("drawing", "stored", "shown"),
    "failed": ("drawing", "failed"),
}
LEGAL = {
    ("charged", "drawing"), ("charged", "failed"), ("drawing", "stored"), ("drawing", "failed"),
    ("stored", "shown"), ("shown", "shown"),
}  # fmt: skip


@pytest.mark.parametrize("start", PATHS)
def test_every_other_step_is_refused(start):
    for end in PATHS:
        ledger = Ledger.in_memory({SPACE: Budget(1)})
        charge_id = charge(ledger, 1)

        def go(state: str, ledger: Ledger = ledger, charge_id: str = charge_id) -> None:
            if state == "stored":
                ledger.charges.store(charge_id, "answer")
            else:
                ledger.charges.advance(charge_id, state)

        for state in PATHS[start]:
            go(state)
        if (start, end) in LEGAL:
            go(end)
            assert ledger.record.entry(charge_id).state == end
        else:
            with pytest.raises(InternalError):
                go(end)
            assert ledger.record.entry(charge_id).state == start


def test_an_answer_comes_only_with_store(ledger):
    charge_id = charge(ledger, 1)
    ledger.charges.advance(charge_id, "drawing")
    with pytest.raises(InternalError, match="cannot become 'stored'"):
        ledger.charges.advance(charge_id, "stored")


def test_a_failed_charge_stays_spent_and_keeps_its_incident(ledger):
    charge_id = charge(ledger, "0.25")
    ledger.charges.advance(charge_id, "failed", incident="i-17")
    entry = ledger.record.entry(charge_id)
    assert (entry.state, entry.incident) == ("failed", "i-17")
    assert ledger.balance.remaining(SPACE) == Fraction(3, 4)


def test_an_unknown_charge_is_named(ledger):
    with pytest.raises(PolicyError, match="no charge 'x'"):
        ledger.record.entry("x")
    with pytest.raises(InternalError, match="no charge 'x'"):
        ledger.charges.advance("x", "drawing")
    with pytest.raises(InternalError, match="no charge 'x'"):
        ledger.charges.store("x", "answer")


def test_the_dearest_release_of_a_question_is_found(ledger):
    cheap = answered(ledger, "0.1", "cheap")
    dear = answered(ledger, "0.3", "dear")
    answered(ledger, "0.4", "another", question_key="other")
    charge(ledger, "0.2")  # never drawn: no release
    assert ledger.record.find_release(space=SPACE, question_key="k", at_least=Fraction(1, 10)).payload == "dear"
    found = ledger.record.find_release(space=SPACE, question_key="k", at_least=Fraction(3, 10))
    assert (found.charge_id, found.epsilon) == (dear, Fraction(3, 10))
    assert found.charge_id != cheap
    assert ledger.record.find_release(space=SPACE, question_key="k", at_least=Fraction(4, 10)) is None
    assert ledger.record.find_release(space=SPACE, question_key="new", at_least=Fraction(1, 10)) is None


def test_a_data_version_is_issued_once(ledger):
    first = ledger.versions.data_version(SPACE, "visits")
    assert ledger.versions.data_version(SPACE, "visits") == first
    assert ledger.versions.data_version(SPACE, "wards") != first
    assert re.fullmatch(r"[0-9a-f]{32}", first)


def test_text_that_is_no_unicode_is_refused_before_anything(ledger):
    with pytest.raises(QueryError, match="the question is not valid Unicode: character 3"):
        charge(ledger, 1, sql="ab\ud800")
    assert ledger.balance.remaining(SPACE) == 1


def test_any_text_survives(ledger):
    strange = "'; DROP TABLE charge; -- ? %s \x00 \N{SNOWMAN} \"\n"
    if "postgresql" in ledger.where:
        with pytest.raises(QueryError, match="NUL character, which Postgres cannot keep"):
            charge(ledger, 1, sql=strange)
        strange = strange.replace("\x00", "")
    charge_id = charge(ledger, 1, sql=strange, analyst=strange, dataset=strange, question_key=strange)
    entry = ledger.record.entry(charge_id)
    assert (entry.sql, entry.analyst, entry.dataset, entry.question_key) == (strange,) * 4


@pytest.mark.parametrize("statement", ["UPDATE charge SET epsilon = '0/1'", "DELETE FROM charge",
                                       "DELETE FROM step", "UPDATE release SET payload = ''"])  # fmt: skip
def test_the_file_itself_refuses_to_forget(ledger, statement):
    answered(ledger, "0.5", "answer")
    with pytest.raises(PolicyError, match="append-only"), ledger._handle.store.writing() as connection:
        connection.execute(statement)
    assert ledger.balance.remaining(SPACE) == Fraction(1, 2)


def test_a_clock_set_back_does_not_reorder_the_history(ledger, monkeypatch):
    from hubbub.ledger import hash_chain as journal

    charge(ledger, "0.1")
    monkeypatch.setattr(journal, "now", lambda: "1999-01-01T00:00:00.000000Z")
    charge(ledger, "0.1")
    times = [entry.time for entry in ledger.record.history()]
    assert times == sorted(times)
    assert times[0] > "2000"


def test_an_interrupted_transaction_leaves_nothing(ledger):
    class Interrupt(BaseException):
        pass

    def half() -> None:
        with ledger._handle.store.writing() as connection:
            connection.execute("INSERT INTO unit_space VALUES (99, 'half', '1/1', NULL, NULL)")
            raise Interrupt

    with pytest.raises(Interrupt):
        half()
    assert ledger.balance.spaces() == [SPACE]


class LedgerAgreesWithTenLines(RuleBasedStateMachine):
    """The model: per space a ceiling and the list of what was charged."""

    amounts = st.one_of(
        st.sampled_from([Fraction(1, 10), Fraction(1, 3), Fraction(3, 10), Fraction(str(0.1 + 0.2))]),
        st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(2), max_denominator=10**6),
    )

    def __init__(self):
        super().__init__()
        self.ceilings = {"a": Fraction(1), "b": Fraction(10, 3)}
        self.charged = {"a": [], "b": []}
        self.ledger = Ledger.in_memory({name: Budget(amount) for name, amount in self.ceilings.items()})

    @rule(space=st.sampled_from("ab"), epsilon=amounts)
    def ask(self, space, epsilon):
        fits = sum(self.charged[space]) + epsilon <= self.ceilings[space]
        try:
            charge(self.ledger, epsilon, space=space)
        except BudgetError:
            assert not fits
        else:
            assert fits
            self.charged[space].append(epsilon)

    @invariant()
    def same(self):
        for space, amounts in self.charged.items():
            assert self.ledger.balance.spent(space) == sum(amounts)
            assert self.ledger.balance.remaining(space) == self.ceilings[space] - sum(amounts)
            assert [entry.epsilon for entry in self.ledger.record.history(space)] == amounts


LedgerAgreesWithTenLines.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
test_a_ledger_agrees_with_a_ten_line_model = LedgerAgreesWithTenLines.TestCase


def test_every_write_waits_for_the_disk(tmp_path):
    with (
        Ledger.open(tmp_path / "b.db", budgets={SPACE: Budget(1)}) as ledger,
        ledger._handle.store.reading() as con,
    ):
        settings_found = {name: con.execute(f"PRAGMA {name}").fetchone()[0] for name in
                          ("journal_mode", "synchronous", "application_id", "user_version")}  # fmt: skip
    assert settings_found == {
        "journal_mode": "wal",
        "synchronous": 2,  # FULL
        "application_id": schema.APPLICATION_ID,
        "user_version": schema.VERSION,
    }


def test_a_dearer_release_of_another_takes_no_release_away(ledger):
    def bought(epsilon, analyst):
        made = charge(ledger, epsilon, analyst=analyst)
        ledger.charges.advance(made, "drawing")
        ledger.charges.store(made, epsilon)
        return made

    def found(reader):
        stored = ledger.record.find_release(space=SPACE, question_key="k", at_least=Fraction(1, 100), reader=reader)
        ledger.charges.share(stored, reader)
        return stored.payload

    for analyst in ("bob", "cat"):
        ledger.steward.grant(SPACE, f"analyst:{analyst}", Fraction(2, 10), author="steward")
    bought("0.05", "bob")
    bought("0.08", "bob")
    assert found("cat") == "0.08"
    bought("0.5", "mal")
    assert found("bob") == "0.08"
    assert found("cat") == "0.08"
    ledger.steward.grant(SPACE, "analyst:eve", Fraction(6, 100), author="steward")
    assert found("eve") == "0.05"
    assert found("dan") == "0.5"
