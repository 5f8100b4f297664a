"""MODE and APPROX_TOP_K: their exact privacy on neighbours, what their statement is worth, and what they answer."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.accounting import ZCDP, BoundedRange, PureDP, Repeated, cost
from hubbub.mechanisms import ExponentialMechanism, PermuteAndFlip
from hubbub.noise import Grid
from hubbub.tables.aggregates.base import Reach
from hubbub.tables.aggregates.mode import ChoiceMechanisms, ChoicePart, within
from hubbub.tables.aggregates.top_k import TopPart
from hubbub.tables.declare import Neighbours
from hubbub.tables.expressions import Column
from hubbub.tables.kinds import Kind
from hubbub.tables.measure import Measurement, MeasurementKind, Value
from people import HUGE, session, visits
from seeded import SeededBits

OF = Measurement(MeasurementKind.QUANTILES, values=(Value(Column("t0.n", Kind.INTEGER), Grid(0), 0, 3),))
LABELS = ("a", "b", "c", "d")
BOTH: list[Neighbours] = ["add_remove", "replace"]


def law(mechanisms: ChoiceMechanisms, counts: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """ln P of every answer of one group, by the laws of the choices in a row."""
    found = {}
    for answer in itertools.permutations(range(len(counts)), mechanisms.part.places):
        left, total = list(range(len(counts))), 0.0
        for chosen in answer:
            total += mechanisms.mechanism.log_prob(left.index(chosen), [counts[i] for i in left])
            left.remove(chosen)
        found[answer] = total
    return found


def with_unit(counts: tuple[int, ...], rows: int) -> list[tuple[int, ...]]:
    """The table with one unit of `rows` rows more, in any cells."""
    cells = itertools.combinations_with_replacement(range(len(counts)), rows)
    return [tuple(c + cell.count(i) for i, c in enumerate(counts)) for cell in cells]


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("places", [1, 2, 3])
@pytest.mark.parametrize("pure", [True, False], ids=["pure", "rho"])
def test_one_unit_moves_the_law_of_a_choice_by_its_share_at_most(relation: Neighbours, places: int, pure: bool) -> None:
    """Exact, all answers, two rows a unit: the loss in a group is the part's, and the worst tables come near it."""
    part = ChoicePart(OF, LABELS) if places == 1 else TopPart(OF, LABELS, places)
    mechanisms = part.priced(Reach(3, 2, relation), Fraction(3), pure=pure)
    each = float(mechanisms.mechanism.epsilon)
    most, worst = places * each, 0.0
    for base in [(0, 0, 0, 0), (4, 0, 0, 0), (5, 5, 1, 0), (0, 30, 30, 30), (9, 8, 7, 6)]:
        tables = with_unit(base, 2)
        pairs = [(base, t) for t in tables] if relation == "add_remove" else list(itertools.combinations(tables, 2))
        laws = {t: law(mechanisms, t) for t in {base, *tables}}
        for first, second in pairs:
            losses = [laws[first][answer] - laws[second][answer] for answer in laws[first]]
            worst = max(worst, max(losses), -min(losses))
            if not pure or places > 1:
                assert max(losses) - min(losses) <= most + 1e-9  # bounded range
    assert 0.4 * most < worst <= most + 1e-9


def test_under_replace_a_group_that_rows_only_leave_costs_half() -> None:
    """So that k shared groups and 2 (C - k) others cost C epsilon at most."""
    for part in (ChoicePart(OF, LABELS), TopPart(OF, LABELS, 2)):
        mechanisms = part.priced(Reach(1, 2, "replace"), Fraction(1), pure=True)
        most = float(mechanisms.mechanism.epsilon) * part.places
        for base in [(0, 0, 0, 0), (5, 5, 1, 0), (0, 30, 30, 30)]:
            before = law(mechanisms, base)
            for after in with_unit(base, 2):
                moved = law(mechanisms, after)
                assert max(abs(moved[a] - before[a]) for a in before) <= most / 2 + 1e-9


@pytest.mark.parametrize("relation", BOTH)
def test_what_is_charged_for_choices_is_what_runs(relation: Neighbours) -> None:
    reach = Reach(3, 2, relation)
    mode = ChoicePart(OF, LABELS).priced(reach, Fraction(1), pure=True)
    assert mode.event == Repeated(PureDP(Fraction(1, 3)), 3)
    assert isinstance(mode.mechanism, PermuteAndFlip)
    top = TopPart(OF, LABELS, 2).priced(reach, Fraction(1), pure=True)
    assert top.event == Repeated(BoundedRange(Fraction(1, 6)), 6)
    for made in (mode, top):
        assert cost(made.event).epsilon == 1
        assert made.mechanism.sensitivity == 2
        assert made.mechanism.monotone == (relation == "add_remove")
    for part in (ChoicePart(OF, LABELS), TopPart(OF, LABELS, 2)):
        rho = part.priced(reach, Fraction(1, 10), pure=False)
        assert isinstance(rho.mechanism, ExponentialMechanism)
        assert rho.event == ZCDP(Fraction(1, 10))
        spent = 3 * part.places * rho.mechanism.epsilon**2 / 8
        assert Fraction(999, 10000) < spent <= Fraction(1, 10)


@pytest.mark.parametrize("kind", [ExponentialMechanism, PermuteAndFlip])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_a_choice_is_within_its_rows_19_times_in_20(kind: Any, epsilon: str) -> None:
    """Exact, on the worst tables and on random ones: P(more than t rows below the best) <= .05; t - 1 can fail."""
    mechanism, rng = kind(epsilon=epsilon, sensitivity=2), np.random.default_rng(1)
    for m in (2, 5, 20):
        t = within(m, mechanism.rate)
        tables = [[t + 1] + [0] * (m - 1), *(rng.integers(0, 3 * t + 2, m).tolist() for _ in range(20))]
        for counts in tables:
            chances = np.exp(mechanism.log_probs(counts))
            assert chances[max(counts) - np.array(counts) > t].sum() <= 0.05 + 1e-9
        if kind is ExponentialMechanism and t > 0:
            chances = np.exp(mechanism.log_probs([t] + [0] * (m - 1)))
            assert chances[1:].sum() > 0.05
    assert within(1, mechanism.rate) == 0


def test_permute_and_flip_is_never_further_from_the_mode() -> None:
    rng = np.random.default_rng(2)
    flip, weigh = (kind(epsilon=1, sensitivity=1) for kind in (PermuteAndFlip, ExponentialMechanism))
    for _ in range(60):
        counts = rng.integers(0, 12, 6)
        gaps = counts.max() - counts
        for g in range(1, 12):
            flipped, weighed = (np.exp(m.log_probs(counts))[gaps >= g].sum() for m in (flip, weigh))
            assert flipped <= weighed + 1e-9


def test_draws_follow_the_law_and_equal_counts_are_equally_likely() -> None:
    """20,000 draws of two places among four values, two of them equal: false alarm below 1e-9 (seven deviations)."""
    mechanisms = TopPart(OF, LABELS, 2).priced(Reach(1, 1, "add_remove"), Fraction(2), pure=True)
    counts, n = (3, 3, 1, 0), 20_000
    drawn = mechanisms.draw([tuple(enumerate(counts))] * n, SeededBits("choices"))
    seen = np.zeros((4, 4))
    np.add.at(seen, (drawn[0], drawn[1]), 1)
    for answer, log in law(mechanisms, counts).items():
        p = math.exp(log)
        assert abs(seen[answer] - n * p) <= 7 * math.sqrt(n * p * (1 - p)) + 1
    assert law(mechanisms, counts)[0, 1] == pytest.approx(law(mechanisms, counts)[1, 0])


def test_what_is_chosen_is_told_with_its_statement_and_without_an_interval() -> None:
    with session(epsilon=10 * HUGE, visits=visits()) as s:
        asked = s.check("SELECT MODE(ward) AS m, COUNT(*) AS n FROM visits", epsilon=1, max_total=2)
        assert asked.columns[0].rows is not None
        told = f"mode: within {asked.columns[0].rows} rows of the true mode, 19 times in 20."
        assert told in str(asked)
        answer = s.sql("SELECT MODE(ward) AS m, COUNT(*) AS n FROM visits", epsilon=1, max_total=2)
        assert told in str(answer)
        assert told in answer._repr_html_()
        assert answer.intervals().column_names == ["m", "n", "n_low", "n_high"]
        (part,) = (p for p in s.receipt(answer.charge_id)["measurements"] if "candidates" in p)
        assert part["within_rows"] == [asked.columns[0].rows]
        top = s.sql("SELECT APPROX_TOP_K(n, 3) AS t, MODE(n) AS m FROM visits", epsilon=1)
        assert len(set(top.rows()[0][0])) == 3
        assert "its last place is within" in str(top)
        with pytest.raises(hb.ParameterError, match="column of numbers"):
            top["m"]
        assert top.error.half_widths() == {}
        computed = s.sql("SELECT MODE(n) + 1 AS next FROM visits", epsilon=1).intervals().to_pylist()[0]
        assert computed["next_low"] < 10 < 90 < computed["next_high"]  # any declared value


def test_a_budget_in_rho_pays_for_choices_too() -> None:
    budget = hb.Budget(10**7, "1e-6")
    with pytest.warns(UserWarning, match="memory"), hb.Session({"visits": visits()}, budget=budget, ledger=None) as s:
        answer = s.sql("SELECT MODE(ward) AS m, APPROX_TOP_K(ok, 2) AS t FROM visits", epsilon=10**6)
        assert answer.rows() == [("A", [True, False])]


def test_nulls_and_undeclared_values_are_not_chosen_and_an_empty_group_gives_any() -> None:
    table = pa.table({"id": list(range(9)), "w": ["B", "B", "x", "x", "x", None, None, None, None]})
    declared = hb.table(table, unit="id", columns={"w": hb.one_of("A", "B", None)}, max_total=1)
    with session(epsilon=10**6 * HUGE, t=declared) as s:
        assert s.sql("SELECT MODE(w) AS m FROM t", epsilon=HUGE).rows() == [("B",)]
        for nothing in ("FALSE", "w IS NULL"):
            asked = f"SELECT MODE(w) AS m FROM t WHERE {nothing}"
            assert {s.sql(asked, epsilon=HUGE, fresh=True).rows()[0][0] for _ in range(40)} == {"A", "B"}


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT MODE(age) FROM visits", "declared values"),
        ("SELECT MODE(UPPER(ward)) FROM visits", "group by it"),
        ("SELECT APPROX_TOP_K(ward, 4) FROM visits", "asked for 4 of 3"),
        ("SELECT APPROX_TOP_K(ward, 0) FROM visits", "from 1 to 50"),
        ("SELECT APPROX_TOP_K(ward) FROM visits", "from 1 to 50"),
        ("SELECT APPROX_TOP_K(ward, n) FROM visits", "from 1 to 50"),
        ("SELECT MODE(DISTINCT ward) FROM visits", "DISTINCT"),
    ],
)
def test_what_cannot_be_chosen_from_is_refused_with_the_way_out(sql: str, says: str) -> None:
    with session(visits=visits()) as s, pytest.raises((hb.QueryError, hb.PolicyError), match=says):
        s.check(sql, epsilon=1)


def test_days_and_computed_values_are_chosen_from() -> None:
    changed = visits(columns={"day": hb.between("1970-01-01", "1970-12-31"), "n": hb.between(0, 100)})
    with session(epsilon=10**6 * HUGE, visits=changed) as s:
        import datetime as dt

        asked = "SELECT MODE(day) FILTER (WHERE n = 3) AS d, MODE(n // 5) AS h, MODE(n > 2) AS big FROM visits"
        assert s.sql(asked, epsilon=HUGE).rows() == [(dt.date(1970, 3, 22), 0, True)]
        bands = "SELECT MODE(CASE WHEN n < 3 THEN 'low' ELSE 'high' END) AS b FROM visits"
        assert s.sql(bands, epsilon=HUGE).rows() == [("high",)]
