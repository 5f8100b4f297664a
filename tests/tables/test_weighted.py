"""Survey weights: plain arithmetic's counts, sums and means, which no unit moves by more than is charged."""

from __future__ import annotations

import itertools
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.errors import ParameterError, PolicyError, QueryError
from hubbub.tables.aggregates.base import Aggregate
from hubbub.tables.aggregates.weighted import WEIGHTED_AVG, WEIGHTED_SUM
from hubbub.tables.columns import between
from hubbub.tables.expressions import Column
from hubbub.tables.kinds import Kind
from hubbub.tables.measure import Bounds, MeasurementKind, l1, l2_squared
from people import HUGE, session

COLUMNS = {"x": hb.between(-10, 60), "w": hb.between(0, 10), "g": hb.one_of("a", "b"), "v": hb.between(-1, 10)}


def _rows(count: int = 300, seed: int = 1) -> list[dict[str, Any]]:
    chance = Random(seed)
    return [
        {
            "id": i,
            "x": None if i % 17 == 0 else chance.randrange(-40, 240) / 4,
            "w": None if i % 23 == 0 else chance.randrange(0, 80) / 8,
            "g": chance.choice("ab"),
            "v": 1.0,
        }
        for i in range(count)
    ]


def _asked(text: str, epsilon: Any = HUGE, **more: Any) -> Any:
    table = hb.table(pa.Table.from_pylist(_rows()), unit="id", max_rows=1, max_groups=1, columns=COLUMNS)
    with session(epsilon=10**7 * HUGE, v=table) as s:
        return s.sql(text, epsilon=epsilon, **more)


def _plainly(group: str) -> tuple[float, float, float, float]:
    rows = [r for r in _rows() if r["g"] == group and r["w"] is not None]
    both = [r for r in rows if r["x"] is not None]
    total = sum(r["x"] * r["w"] for r in both)
    return sum(r["w"] for r in rows), sum(r["w"] for r in both), total, total / sum(r["w"] for r in both)


WRITTEN = "SELECT g, WEIGHTED_COUNT(w) AS n, WEIGHTED_SUM(x, w) AS s, WEIGHTED_AVG(x, w) AS m FROM v GROUP BY g"
FAR = "SELECT WEIGHTED_SUM(x, w) AS s FROM v"
BY_OPTION = "SELECT g, COUNT(*) AS n, COUNT(x) AS c, SUM(x) AS s, AVG(x) AS m, SUM(x) / COUNT(x) AS r FROM v GROUP BY g"


def test_they_are_what_plain_arithmetic_gives() -> None:
    for group, *found in _asked(WRITTEN).rows():
        n, _, total, mean = _plainly(group)
        assert found == pytest.approx([n, total, mean], rel=1e-5)


def test_weight_makes_counts_sums_and_means_weighted() -> None:
    for group, *found in _asked(BY_OPTION, weight="w").rows():
        n, known, total, mean = _plainly(group)
        assert found == pytest.approx([n, known, total, mean, mean], rel=1e-5)
    plain = _asked("SELECT COUNT(*) AS n, WEIGHTED_COUNT(w) AS all FROM v").rows()[0]
    assert plain[0] == 300
    both = [r for r in _rows() if r["w"] is not None and r["x"] is not None]
    above = sum(r["w"] for r in both if r["x"] > 20) / sum(r["w"] for r in both)
    for text, more in (("AVG(x > 20)", {"weight": "w"}), ("WEIGHTED_AVG(x > 20, w)", {})):
        ((share,),) = _asked(f"SELECT {text} AS m FROM v", **more).rows()
        assert share == pytest.approx(above, rel=1e-5)


@pytest.mark.parametrize(("rows", "groups"), [(1, 1), (3, 2)])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_the_sensitivity_of_products_is_the_most_that_one_unit_adds(rows: int, groups: int, neighbours: Any) -> None:
    declared = {"x": between(-3, 5), "w": between(0, 4)}
    x, w = Column("x", Kind.INTEGER), Column("w", Kind.INTEGER)
    for function in (WEIGHTED_SUM, WEIGHTED_AVG):
        product = function.measured(Aggregate(function, (x, w)), declared)[0]
        assert product.counting is MeasurementKind.PRODUCT
        a, b = product.values
        ends = itertools.product(range(a.low, a.high + 1), range(b.low, b.high + 1))
        each = {(i * j) >> product.shift for i, j in ends}  # what one row adds, over every row
        assert (min(each), max(each)) == (product.low, product.high)
        parts = range(rows * min(each), rows * max(each) + 1)  # what one unit adds to one group
        most = max(abs(p) for p in parts)
        apart = max(abs(p - q) for p in (min(parts), max(parts), 0) for q in (min(parts), max(parts), 0))
        reach = l1(product, Bounds(groups, rows), groups, neighbours)
        squared = l2_squared(product, Bounds(groups, rows), groups, neighbours)
        move = most if neighbours == "add_remove" else apart
        assert (reach, squared) == (groups * move, groups * move**2)


def test_a_weight_beyond_its_range_counts_as_its_end_and_a_missing_one_not_at_all() -> None:
    rows = [
        {"id": 1, "x": 1.0, "w": 1e9},
        {"id": 2, "x": 4.0, "w": -5.0},
        {"id": 3, "x": 7.0, "w": None},
        {"id": 4, "x": 9.0, "w": 5.0},
    ]
    table = hb.table(
        pa.Table.from_pylist(rows), unit="id", max_rows=1, max_groups=1, columns={k: COLUMNS[k] for k in "xw"}
    )
    with session(epsilon=10**7 * HUGE, v=table) as s:
        found = s.sql("SELECT COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m FROM v", epsilon=HUGE, weight="w").rows()[0]
    assert found == pytest.approx([15, 10 + 45, 55 / 15], rel=1e-5)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    chance, groups = Random(5), 400
    rows = [
        {"id": i, "g": i % groups, "x": float(chance.randrange(-10, 61)), "w": float(chance.randrange(0, 11))}
        for i in range(groups * 30)
    ]
    columns = {"x": COLUMNS["x"], "w": COLUMNS["w"], "g": hb.between(0, groups - 1)}
    table = hb.table(pa.Table.from_pylist(rows), unit="id", max_rows=1, max_groups=1, columns=columns)
    with session(epsilon=100, v=table) as s:
        answer = s.sql("SELECT g, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m FROM v GROUP BY g", epsilon=1, weight="w")
    truth: dict[int, list[float]] = {}
    for g in range(groups):
        own = [r for r in rows if r["g"] == g]
        n, total = sum(r["w"] for r in own), sum(r["w"] * r["x"] for r in own)
        truth[g] = [n, total, total / n]
    for at, name in enumerate("nsm"):
        ends = answer.intervals().to_pylist()
        held = sum(r[f"{name}_low"] <= truth[r["g"]][at] <= r[f"{name}_high"] for r in ends)
        assert held >= 350, name  # 380 expected at least; 30 fewer has a probability below 1e-9


def test_a_price_says_for_which_weights_the_error_of_a_mean_is() -> None:
    """With a tenth of the weights the error is ten times as large: "at most" alone would be false."""
    weights = {most: [most / 2] * 1000 for most in (8, 10)}
    for most, w in weights.items():
        rows = pa.table({"id": range(1000), "x": [10.0] * 1000, "w": w})
        declared = hb.table(rows, unit="id", max_rows=1, columns={"x": COLUMNS["x"], "w": hb.between(0, most)})
        with session(epsilon=10, v=declared) as s:
            told = s.check("SELECT AVG(x) AS m FROM v", epsilon=1, weight="w", max_total=1).columns[0]
            answer = s.sql("SELECT AVG(x) AS m FROM v", epsilon=1, weight="w", max_total=1)
        assert told.unit_note == "at most, if a group has 1,000 values, their weights half of the largest on average"
        assert answer.error.half_widths()["m"][0] <= 1.5 * told.plus_minus


def test_twice_the_weight_is_twice_the_noise() -> None:
    table = pa.Table.from_pylist(_rows())
    widths = []
    for most in (10, 20):
        declared = hb.table(table, unit="id", max_rows=1, max_groups=1, columns={**COLUMNS, "w": hb.between(0, most)})
        with session(epsilon=10, v=declared) as s:
            widths.append(s.sql("SELECT SUM(x) AS s FROM v", epsilon=1, weight="w").error.half_widths()["s"][0])
    assert widths[1] == pytest.approx(2 * widths[0], rel=0.01)


@pytest.mark.parametrize(
    ("text", "weight", "words"),
    [
        ("SELECT COUNT(*) FROM v", "v", "a weight is at least 0"),
        ("SELECT COUNT(*) FROM v", "g", "a weight is a number"),
        ("SELECT COUNT(*) FROM v", "nobody", "no column 'nobody'"),
        ("SELECT COUNT(*) FROM (SELECT x FROM v) u", "w", "has to hand it on"),
        ("SELECT MEDIAN(x) FROM v", "w", "has no weighted form"),
        ("SELECT COUNT(DISTINCT id) FROM v", "w", "has no weighted form"),
        ("SELECT WEIGHTED_AVG(x, id) FROM v", None, "no declared bounds"),
    ],
)
def test_what_is_no_weight_is_refused_with_a_way_out(text: str, weight: str | None, words: str) -> None:
    with pytest.raises((QueryError, PolicyError), match=words):
        _asked(text, weight=weight)
    with pytest.raises(ParameterError, match="weight"):
        _asked(text, weight=3)


def test_a_stored_answer_is_one_of_the_same_weight() -> None:
    table = hb.table(pa.Table.from_pylist(_rows()), unit="id", max_rows=1, max_groups=1, columns=COLUMNS)
    with session(epsilon=100, v=table) as s:
        plain, weighted, written = (
            s.sql(text, epsilon=Fraction(1), **more)
            for text, more in (
                ("SELECT COUNT(*) AS n FROM v", {}),
                ("SELECT COUNT(*) AS n FROM v", {"weight": "w"}),
                ("SELECT WEIGHTED_COUNT(w) AS n FROM v", {}),
            )
        )
        assert [plain.charged, weighted.charged, written.charged] == [True, True, False]


def test_in_python() -> None:
    table = hb.table(pa.Table.from_pylist(_rows()), unit="id", max_rows=1, max_groups=1, columns=COLUMNS)
    with session(epsilon=10**7 * HUGE, v=table) as s:
        asked = s.table("v").group_by("g").agg(m=hb.weighted_mean("x", "w"), n=hb.weighted_count("w"))
        for group, mean, n in asked.run(epsilon=HUGE).rows():
            assert [n, mean] == pytest.approx([_plainly(group)[0], _plainly(group)[3]], rel=1e-5)


@pytest.mark.parametrize("question", ["SELECT WEIGHTED_SUM(x, w) AS s, MEDIAN(x) AS m FROM v", FAR])
@pytest.mark.parametrize("near", [724, 2**31])
def test_values_far_from_0_are_multiplied_without_leaving_64_bits(question: str, near: int) -> None:
    columns = {"x": hb.between(near, near + 1), "w": hb.between(near, near + 1)}
    found, sensitivity = [], 0.0
    for last in (near, near + 1):
        rows = [{"id": i, "x": float(value), "w": float(value)} for i, value in enumerate((near, near, last))]
        table = hb.table(pa.Table.from_pylist(rows), unit="id", max_total=1, columns=columns, neighbours="replace")
        with session(epsilon=10**7 * HUGE, v=table) as s:
            answer = s.sql(question, epsilon=HUGE)
            found.append(answer.rows()[0][0])
            assert found[-1] == pytest.approx(2 * near**2 + last**2, rel=1e-5)
            (sums,) = (m for m in answer.receipt["measurements"] if m["counts"] == "products")
            sensitivity = sums["sensitivity"] * float(Fraction(sums["step"]))
    assert abs(found[1] - found[0]) <= sensitivity * (1 + 1e-6)


@pytest.mark.parametrize("ends", [(0, 20), (724, 725), (2**60, 2**60 + 1), (10, 20)])
def test_a_product_of_steps_fits_into_64_bits(ends: tuple[int, int]) -> None:
    declared = {"v.x": between(-(2**60) - 1, -(2**60)), "v.w": between(*ends)}
    x, w = (Column(name, Kind.NUMBER) for name in declared)
    for pair in itertools.product((x, w), (w,)):
        (product,) = WEIGHTED_SUM.measured(Aggregate(WEIGHTED_SUM, pair), declared)
        largest = [max(abs(v.low), abs(v.high)) for v in product.values]
        assert largest[0] * largest[1] <= 2**62
