"""The families of aggregates: their records are whole, and the newer ones are right, private and covered."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import hubbub as hb
from hubbub import verbs
from hubbub.sql.bind.query import PublicQuestion
from hubbub.tables.aggregate_query import Aggregate
from hubbub.tables.aggregates import FAMILIES, FUNCTIONS, spelled
from hubbub.tables.columns import Declaration
from hubbub.tables.draw_release import draw
from hubbub.tables.estimates import read
from hubbub.tables.price import Spend, make_price
from hubbub.verbs.functions import MADE
from people import HUGE, session, visits
from seeded import SeededBits
from tables.made import Exact, X, Y, plan, row_integer

ROOT = Path(__file__).parents[2]
LINES = [Aggregate(FUNCTIONS[name], (Y, X)) for name in ("REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2")]


def test_every_record_is_whole_and_no_name_means_two_things() -> None:
    functions = [f for family in FAMILIES for f in family.functions]
    assert len({f.names.key for f in functions}) == len(functions) == len(FUNCTIONS)
    spellings = [s for f in functions for s in f.names.spellings]
    assert len(set(spellings)) == len(spellings)
    assert all(spelled(s) in functions for s in spellings)
    assert all(family.audit and family.reference for family in FAMILIES)
    # COUNT(*) and COUNT(x) are both counts; the top of declared values and of others are both tops.
    assert len({f.names.word for f in functions}) >= len(functions) - 2


def test_every_verb_of_a_record_is_a_name_of_hubbub_with_its_line_in_the_reference() -> None:
    page = (ROOT / "docs/reference/verbs.md").read_text("utf-8")
    for name, verb in MADE.items():
        assert getattr(hb, name) is getattr(verbs, name) is verb
        assert f"`{name}(" in page, name
        if next(f for f in FUNCTIONS.values() if f.names.verb == name).arity:
            with pytest.raises(hb.ParameterError, match=name):
                verb()


def test_a_verb_is_the_sql_of_its_record_and_comes_back() -> None:
    with session(epsilon=10 * HUGE, visits=visits()) as s:
        asked = s.table("visits").agg(hb.regr_slope("n", "age"), hb.geomean(hb.greatest("age", 1)).alias("g"))
        assert "REGR_SLOPE" in asked.sql()
        text = verbs.from_sql("SELECT REGR_R2(n, age) AS r, GEOMEAN(age) FROM visits")
        assert "hb.regr_r2('n', 'age')" in text
        assert "hb.geomean('age')" in text
        assert not isinstance(asked.check(epsilon=1), PublicQuestion)


# -- lines ------------------------------------------------------------------------------------------------------------


def exact(made, rows: list[Mapping[str, float | None]], groups: int) -> Exact:  # type: ignore[no-untyped-def]
    """The same rows in every group."""
    found = []
    for m in made.measurements:
        total = sum(v for v in (row_integer(m, row) for row in rows) if v is not None)
        found.append([total] * groups)
    return Exact(tuple(found))


@pytest.mark.parametrize("spend", [Spend(epsilon=1), Spend(rho=0.1)], ids=["pure", "rho"])  # type: ignore[arg-type]
@pytest.mark.parametrize("aggregate", LINES, ids=lambda a: a.function.names.key)
@pytest.mark.parametrize("n", [60, 400, 5000])
def test_intervals_of_a_line_hold_the_truth(aggregate: Aggregate, spend: Spend, n: int) -> None:
    """1,500 draws each; the truth is without noise. 95 % +- 2.8 % is five standard deviations; more is fine."""
    groups, rng = 1500, np.random.default_rng(n)
    declared: dict[str, Declaration] = {"t0.x": hb.between(0, 100), "t0.y": hb.between(-4, 4)}
    x = rng.uniform(0, 100, n)
    rows = [{"x": float(a), "y": float(np.clip(0.03 * a - 1 + rng.normal(0, 1), -4, 4))} for a in x]
    made = plan(aggregate, groups=groups, declared=declared)
    integers = exact(made, rows, groups)  # type: ignore[arg-type]
    (scarcely,) = read(*_drawn(made, integers, Spend(epsilon=10**9)))  # type: ignore[arg-type]
    truth = scarcely.values(aggregate)
    (found,) = read(*_drawn(made, integers, spend))
    low, high = found.intervals(aggregate, 0.95)
    covered = np.mean((low <= truth + 1e-9) & (truth <= high + 1e-9))
    assert covered >= 0.922
    if n == 5000:
        assert np.isfinite(low).all()
        assert (
            np.median(high - low)
            < {"REGR_SLOPE": 0.06, "REGR_INTERCEPT": 4, "REGR_R2": 0.8}[aggregate.function.names.key]
        )
        assert covered <= 0.99


def _drawn(made, integers: Exact, spend: Spend):  # type: ignore[no-untyped-def]
    price = make_price([made], spend)
    return price, draw(price, [integers], SeededBits("lines"))


def test_a_line_agrees_with_least_squares_and_says_null_where_x_does_not_vary() -> None:
    rng = np.random.default_rng(3)
    x, declared = rng.uniform(0, 100, 300), {"t0.x": hb.between(0, 100), "t0.y": hb.between(-4, 4)}
    y = np.clip(0.02 * x - 0.7 + rng.normal(0, 0.5, 300), -4, 4)
    slope, intercept = np.polyfit(x, y, 1)
    wanted = dict(zip(LINES, (slope, intercept, np.corrcoef(x, y)[0, 1] ** 2), strict=True))
    for aggregate in LINES:
        made = plan(aggregate, declared=declared)
        rows = [{"x": float(a), "y": float(b)} for a, b in zip(x, y, strict=True)]
        (found,) = read(*_drawn(made, exact(made, rows, 1), Spend(epsilon=10**9)))  # type: ignore[arg-type]
        assert found.values(aggregate)[0] == pytest.approx(wanted[aggregate], abs=1e-4)
    for aggregate in LINES[:2]:
        made = plan(aggregate, declared=declared)
        same = exact(made, [{"x": 50.0, "y": 1.0}] * 300, 1)  # type: ignore[list-item]
        (found,) = read(*_drawn(made, same, Spend(epsilon=1)))  # type: ignore[arg-type]
        assert [abs(end[0]) for end in found.intervals(aggregate, 0.95)] == [math.inf, math.inf]


def test_a_line_without_ends_is_shown_as_such() -> None:
    with session(epsilon=10**6, visits=visits()) as s:
        answer = s.sql("SELECT REGR_SLOPE(n, age) AS b FROM visits", epsilon="0.01")
        ends = answer.intervals().to_pylist()[0]
        assert ends["b_low"] is None
        assert ends["b_high"] is None
        assert "NULL" in str(answer) or "± inf" in str(answer)


# -- geometric means --------------------------------------------------------------------------------------------------


def test_a_geometric_mean_needs_a_range_above_zero() -> None:
    with session(epsilon=10 * HUGE, visits=visits()) as s:
        with pytest.raises(hb.QueryError, match="above 0"):
            s.check("SELECT GEOMEAN(age) FROM visits", epsilon=1)
        found = s.sql("SELECT GEOMEAN(GREATEST(age, 1)) AS g, AVG(age) AS m FROM visits", epsilon=HUGE).rows()
        assert 1 <= found[0][0] <= found[0][1] + 1e-6


def test_values_below_the_range_of_a_geometric_mean_count_as_its_lower_end() -> None:
    import pyarrow as pa

    table = pa.table({"id": list(range(5)), "x": [-3.0, 0.0, 4.0, 4.0, None]})
    declared = hb.table(table, unit="id", columns={"x": hb.between(1, 16)}, max_total=1)
    with session(epsilon=10 * HUGE, t=declared) as s:
        ((found,),) = s.sql("SELECT GEOMEAN(x) FROM t", epsilon=HUGE).rows()
    assert found == pytest.approx(2.0, rel=1e-4)  # 1, 1, 4, 4


def test_a_name_that_is_nearly_an_aggregate_s_is_answered_with_it() -> None:
    with session(visits=visits()) as s:
        for asked, meant in (
            ("GEOMEANN(age)", "GEOMEAN"),
            ("REGR_SLOP(n, age)", "REGR_SLOPE"),
            ("STDEV_POP(n)", "STDDEV_POP"),
        ):
            with pytest.raises(hb.QueryError, match=f"Did you mean {meant}"):
                s.check(f"SELECT {asked} FROM visits", epsilon=1)
