"""What compiled text hands to the noise, integer by integer: bounded rows, values and groups of each unit.

Small tables whose integers are known by hand; no noise, no price. A limit that is off by one, a part of a text that is
left out, or rows that meet other rows than theirs give another integer here.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk
from hubbub.engines.duckdb import image
from hubbub.tables.plan import make_plans
from people import engine

Row = tuple[Any, ...]

COLUMNS = {"g": hb.one_of("a", "b", "c"), "v": hb.between(0, 100), "w": hb.between(0, 100)}
OPEN: dict[str, Any] = {"max_groups": 9, "max_rows": 9, "columns": COLUMNS}


def measured(rows: list[Row], sql: str, *, unit: Any = "id", **declared: Any) -> dict[str, Any]:
    """The integers of each measurement by what it counts. A row is (id, g, v, w); sums are of steps less the centre."""
    names, kinds = ("id", "g", "v", "w"), (pa.int64(), pa.string(), pa.int64(), pa.int64())
    columns = zip(*rows, strict=True) if rows else [()] * 4
    table = {n: pa.array(c, kind) for n, kind, c in zip(names, kinds, columns, strict=True)}
    if unit != "id":
        del table["id"]
    with engine("t", hb.table(pa.table(table), unit=unit, **(OPEN | declared))) as (duck, plan):
        asked = plan(sql)
        found = duck.run(asked).vectors
    assert len({m.counting for m in asked.measurements}) == len(found)
    return {m.counting.value: v for m, v in zip(asked.measurements, found, strict=True)}


def of_unit(unit: int, *values: int | None, g: str | None = "a") -> list[Row]:
    return [(unit, g, v, 1) for v in values]


TWO = {"max_total": 2}


def test_rows_and_values_of_a_unit_are_cut_at_its_rows_and_units_count_once() -> None:
    rows = of_unit(1, 10, None, 20, 30, None) + of_unit(2, None) + of_unit(3, 5, 5)
    assert measured(rows, "SELECT COUNT(*), COUNT(v), COUNT(DISTINCT id) FROM t", **TWO) == {
        "rows": (2 + 1 + 2,),
        "values": (2 + 0 + 2,),
        "units": (3,),
    }
    assert measured(rows, "SELECT COUNT(*) FROM t", max_total=4) == {"rows": (4 + 1 + 2,)}
    assert measured(rows, "SELECT COUNT(*) FROM t", max_total=5) == {"rows": (5 + 1 + 2,)}


def test_a_unit_counts_once_though_several_of_its_rows_meet_the_condition() -> None:
    rows = of_unit(1, 10, 20, 30) + of_unit(2, 1) + of_unit(3, 50, 0)
    sql = "SELECT COUNT(DISTINCT id) FILTER (WHERE v >= 10) FROM t"
    assert measured(rows, sql, max_total=9) == {"units": (2,)}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((10, 20), -70),
        ((10, 20, 30), -60),  # -90 of three rows: two thirds
        ((10, 20, 31), -59),  # -89 * 2 / 3, truncated toward zero
        ((90, 80, 69), 59),
        ((10, 20, 31, None), -59),  # NULL is no row of the sum
        ((100,) * 7, 100),
        ((0,) * 7, -100),
        ((1000, -1000, 100), 33),  # clamped first: (50 - 50 + 50) * 2 / 3
    ],
)
def test_a_sum_beyond_its_rows_is_scaled_toward_zero(values: tuple[int | None, ...], expected: int) -> None:
    """Less the centre 50 of each row."""
    assert measured(of_unit(1, *values), "SELECT SUM(v) FROM t", **TWO)["sum"] == (expected,)


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_of_three_groups_a_unit_keeps_as_many_as_it_may_in_every_measurement(keep: int) -> None:
    rows = [(u, g, u, 1) for u in range(40) for g in "abc" for _ in range(2)]
    sql = "SELECT g, COUNT(*), COUNT(v), SUM(v), COUNT(DISTINCT id) FROM t GROUP BY g"
    found = measured(rows, sql, max_groups=keep, max_rows=1)
    for what in ("rows", "values", "units"):
        assert sum(found[what]) == 40 * keep, what
    assert sum(found["sum"]) == keep * sum(u - 50 for u in range(40))
    assert keep == 3 or max(found["rows"]) < 40  # chosen by a hash of the unit, too
    listed = measured(rows, "SELECT g, MEDIAN(v) FROM t GROUP BY g", max_groups=keep, max_rows=1)["quantiles"]
    assert sum(n for group in listed for _, n in group) == 40 * keep
    if keep < 3:  # the very groups that the counts are of
        assert [len(group) for group in listed] == list(found["rows"])
    different = measured(rows, "SELECT g, COUNT(DISTINCT v) FROM t GROUP BY g", max_groups=keep, max_rows=1)
    assert different["distinct"] == found["units"]


def test_of_two_groups_one_is_kept() -> None:
    rows = [(u, g, u, 1) for u in range(40) for g in "ab"]
    columns = COLUMNS | {"g": hb.one_of("a", "b")}
    found = measured(rows, "SELECT g, COUNT(*) FROM t GROUP BY g", max_groups=1, max_rows=1, columns=columns)
    assert sum(found["rows"]) == 40
    assert 0 < found["rows"][0] < 40


def test_where_each_row_is_a_unit_it_is_one_row_of_one_group() -> None:
    rows = [(0, g, v, 1) for v, g in enumerate("aabbbcx")] + [(0, None, 9, 1), (0, "a", None, 1)]
    sql = "SELECT g, COUNT(*), COUNT(v), SUM(v) FROM t GROUP BY g"
    declared = {"max_groups": None, "max_rows": None}
    assert measured(rows, sql, unit=hb.EACH_ROW, **declared) == {
        "rows": (3, 3, 1),
        "values": (2, 3, 1),
        "sum": (0 + 1 - 100, 2 + 3 + 4 - 150, 5 - 50),
    }
    listed = measured(rows, "SELECT g, MEDIAN(v) FROM t GROUP BY g", unit=hb.EACH_ROW, **declared)["quantiles"]
    assert [tuple(group) for group in listed] == [((0, 1), (1, 1)), ((2, 1), (3, 1), (4, 1)), ((5, 1),)]
    found = measured(rows, "SELECT g, COUNT(DISTINCT v) FROM t GROUP BY g", unit=hb.EACH_ROW, **declared)
    assert found == {"distinct": (2, 3, 1)}


def test_of_a_unit_s_values_as_many_are_listed_as_it_has_rows() -> None:
    sql = "SELECT MEDIAN(v) FROM t"
    for rows, total in ((of_unit(1, 1, 2, 3, 4, 5), 2), (of_unit(1, 7, 7, 7), 2), (of_unit(1, 7, 8, None), 2)):
        (listed,) = measured(rows, sql, **TWO)["quantiles"]
        assert sum(n for _, n in listed) == total
        assert {value for value, _ in listed} <= {row[2] for row in rows}
    # Equal values fill what is left, whichever of the two comes first: 2 of three rows in all.
    (listed,) = measured(of_unit(1, 7, 7, 7, 9, 9), sql, max_total=4)["quantiles"]
    assert dict(listed) in ({7: 3, 9: 1}, {7: 2, 9: 2})
    (listed,) = measured(of_unit(1, 200, -3, 50), sql, max_total=9)["quantiles"]
    assert dict(listed) == {100: 1, 0: 1, 50: 1}
    (listed,) = measured(of_unit(1, 5, 6) + of_unit(2, 5) + of_unit(3), sql, max_total=9)["quantiles"]
    assert dict(listed) == {5: 2, 6: 1}


def test_of_a_unit_s_different_values_as_many_count_as_it_has_rows() -> None:
    sql = "SELECT COUNT(DISTINCT v) FROM t"
    assert measured(of_unit(1, 1, 2, 3, 4, None), sql, **TWO) == {"distinct": (2,)}
    assert measured(of_unit(1, 1, 1, 1, 2) + of_unit(2, 2, None), sql, **TWO) == {"distinct": (2,)}
    assert measured(of_unit(1, 1, 2) + of_unit(2, 3, 4), sql, **TWO) == {"distinct": (4,)}
    assert measured(of_unit(1, None), sql, **TWO) == {"distinct": (0,)}


def test_a_value_is_within_its_ends_exactly() -> None:
    """On a grid of 1: at the floor, at the ceiling, one beyond, far beyond, and NULL left out."""
    for value, step in ((0, 0), (1, 1), (-1, 0), (-1000, 0), (99, 99), (100, 100), (101, 100), (10**6, 100)):
        assert measured(of_unit(1, value), "SELECT SUM(v) FROM t", max_total=1)["sum"] == (step - 50,)
    found = measured(of_unit(1, None), "SELECT SUM(v) FROM t", max_total=1)
    assert (found["sum"], found["values"]) == ((0,), (0,))
    sure = COLUMNS | {"v": hb.between(0, 90, nullable=False)}
    found = measured(of_unit(1, None, 90, 0), "SELECT SUM(v) FROM t", max_total=9, columns=sure)
    assert found == {"sum": (0 + 45 - 45,), "rows": (3,)}


def test_products_are_rounded_down_and_centred() -> None:
    """x y / 2^shift less the centre, of steps on both sides of 0: a group of its own for each pair of values."""
    pairs = [(v, w) for v in (0, 1, 3, 50, 99, 100) for w in (0, 2, 50, 97, 100)]
    names = [f"p{i}" for i in range(len(pairs))]
    rows = pa.table({"id": range(len(pairs)), "g": names, "v": [v for v, _ in pairs], "w": [w for _, w in pairs]})
    with engine("t", hb.table(rows, unit="id", **(OPEN | {"columns": COLUMNS | {"g": hb.one_of(*names)}}))) as asked:
        plan = asked[1]("SELECT g, COVAR_POP(v * 900, w * 900) FROM t GROUP BY g")
        found = dict(zip(plan.measurements, asked[0].run(plan).vectors, strict=True))
    (product,) = [m for m in found if m.counting.value == "product"]
    assert product.shift > 0
    (x, y), steps = product.values, []
    for v, w in pairs:
        a, b = (v, w) if ".v" in repr(x.argument) else (w, v)
        left, right = ((n * 900) / of.grid.step - of.centre for n, of in ((a, x), (b, y)))
        assert left.denominator == right.denominator == 1
        steps.append(int(left) * int(right))
    assert min(steps) < 0 < max(steps)
    assert any(step % 2**product.shift for step in steps if step < 0)
    assert found[product] == tuple((step >> product.shift) - product.centre for step in steps)


def test_each_declared_group_is_a_place_and_nothing_else_is() -> None:
    rows = [(1, g, 1, 1) for g in ("a", "A", "a ", "", None, "c", "x", "c", "c")]
    sql = "SELECT g, COUNT(*) FROM t GROUP BY g"
    assert measured(rows, sql) == {"rows": (1, 0, 3)}
    known = COLUMNS | {"g": hb.one_of(None, "a", "")}
    assert measured(rows, sql, columns=known) == {"rows": (1, 1, 1)}
    both = measured(rows, "SELECT g, v > 0 AS k, COUNT(*) FROM t GROUP BY g, k")
    assert both == {"rows": (0, 1, 0, 0, 0, 0, 0, 3, 0)}


def test_groups_found_privately_are_those_that_rows_have_and_of_each_unit_as_many_as_it_may_be_in() -> None:
    rows = [(u, f"s{u % 3}") for u in range(12)] + [(20, None), (20, None)]
    expected = {("s0",): 4, ("s1",): 4, ("s2",): 4, (None,): 1}
    assert found_privately(rows, max_groups=1, max_rows=1) == {"rows": expected, "units": expected}
    many = [(u, g) for u in range(40) for g in "abcd"]
    for keep in (1, 3):
        for vector in found_privately(many, max_groups=keep, max_rows=1).values():
            assert sum(vector.values()) == 40 * keep
            assert len(vector) == 4


def found_privately(rows: list[Row], **declared: Any) -> dict[str, dict[Any, int]]:
    table = hb.table(pa.table({"id": [u for u, _ in rows], "g": [g for _, g in rows]}), unit="id", **declared)
    desk = Desk({"t": table})
    (question,) = desk.statement("SELECT g, COUNT(*) FROM t GROUP BY g").questions
    (plan,) = make_plans(question, image, private_keys=True)
    exact = desk.engine.run(plan, {})
    desk.engine.close()
    assert exact.groups is not None
    vectors = [dict(zip(exact.groups, vector, strict=True)) for vector in exact.vectors]
    return {m.counting.value: vector for m, vector in zip(plan.measurements, vectors, strict=True)}
