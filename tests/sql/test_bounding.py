"""What compiled text hands to the noise, integer by integer: bounded rows, values and groups of each unit.

Small tables whose integers are known by hand; no noise, no price. A limit that is off by one, a part of a text that is
left out, or rows that meet other rows than theirs give another integer here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk
from hubbub import plain
from hubbub.engines.base import Exact
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.engines.duckdb.relations import image
from hubbub.tables.plan import Plan, make_plans
from hubbub.tables.relations import leaves
from people import engine

Row = tuple[Any, ...]

COLUMNS = {"g": hb.one_of("a", "b", "c"), "v": hb.between(0, 100), "w": hb.between(0, 100)}
OPEN: dict[str, Any] = {"max_groups": 9, "max_rows": 9, "columns": COLUMNS}


def measured(rows: list[Row], sql: str, *, unit: Any = "id", portable: bool = False, **declared: Any) -> dict[str, Any]:
    """The integers of each measurement by what it counts. A row is (id, g, v, w); sums are of steps less the centre."""
    names, kinds = ("id", "g", "v", "w"), (pa.int64(), pa.string(), pa.int64(), pa.int64())
    columns = zip(*rows, strict=True) if rows else [()] * 4
    table = {n: pa.array(c, kind) for n, kind, c in zip(names, kinds, columns, strict=True)}
    if unit != "id":
        del table["id"]
    with engine("t", hb.table(pa.table(table), unit=unit, **(OPEN | declared)), portable=portable) as (duck, plan):
        asked = plan(sql)
        vectors = both_ways(duck, asked).vectors
    assert len({m.counting for m in asked.measurements}) == len(vectors)
    return {m.counting.value: v for m, v in zip(asked.measurements, vectors, strict=True)}


def both_ways(duck: DuckDBEngine, plan: Plan) -> Exact:
    """What the text answers, and nothing else where rows are ranked in process."""
    with plain.only(plain=True):
        by_text = duck.run(plan)
    with plain.only(plain=False):
        ranked = duck.run(plan)
    assert told(ranked) == told(by_text)
    return by_text


def told(exact: Exact) -> Any:
    return exact.vectors if exact.groups is None else [dict(zip(exact.groups, v, strict=True)) for v in exact.vectors]


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


@pytest.mark.parametrize("portable", [False, True], ids=["own hash", "portable"])
@pytest.mark.parametrize("keep", [1, 2, 3])
def test_of_three_groups_a_unit_keeps_as_many_as_it_may_in_every_measurement(keep: int, portable: bool) -> None:
    rows = [(u, g, u, 1) for u in range(40) for g in "abc" for _ in range(2)]
    sql = "SELECT g, COUNT(*), COUNT(v), SUM(v), COUNT(DISTINCT id) FROM t GROUP BY g"
    found = measured(rows, sql, max_groups=keep, max_rows=1, portable=portable)
    for what in ("rows", "values", "units"):
        assert sum(found[what]) == 40 * keep, what
    assert sum(found["sum"]) == keep * sum(u - 50 for u in range(40))
    assert keep == 3 or max(found["rows"]) < 40  # chosen by a hash of the unit, too
    listed = measured(rows, "SELECT g, MEDIAN(v) FROM t GROUP BY g", max_groups=keep, max_rows=1, portable=portable)[
        "quantiles"
    ]
    assert sum(n for group in listed for _, n in group) == 40 * keep
    if keep < 3:  # the very groups that the counts are of
        assert [len(group) for group in listed] == list(found["rows"])
    different = measured(
        rows, "SELECT g, COUNT(DISTINCT v) FROM t GROUP BY g", max_groups=keep, max_rows=1, portable=portable
    )
    assert different["distinct"] == found["units"]


@pytest.mark.parametrize("groups", ["abc", "bca", "xaybzc"])
def test_zero_and_minus_zero_are_one_person_whichever_row_comes_first(groups: str) -> None:
    """A text of the unit is hashed where engines share a hash, and 0.0 and -0.0 are two texts."""
    found = []
    for ids in ([0.0, -0.0], [-0.0, 0.0]):
        rows = pa.table({"id": [i for i in ids for _ in groups], "g": [*groups] * 2})
        table = hb.table(rows, unit="id", max_groups=1, max_rows=2, columns={"g": hb.one_of(*groups)})
        with engine("t", table, portable=True) as (duck, plan):
            found.append(both_ways(duck, plan("SELECT g, COUNT(*) FROM t GROUP BY g")).vectors)
    assert found[0] == found[1]
    assert sum(found[0][0]) == 2


def test_both_sides_of_a_full_join_are_their_owners() -> None:
    sides = "(SELECT id, v FROM t WHERE v = 5) a FULL JOIN (SELECT id, v FROM t WHERE v > 5) b ON a.id = b.id"
    rows = of_unit(1, 5, 6) + of_unit(2, 5) + of_unit(3, 6, 7) + of_unit(4, 5)
    assert measured(rows, f"SELECT COUNT(*) FROM {sides} AND a.v = b.v", max_total=1) == {"rows": (4,)}
    assert measured(rows, f"SELECT COUNT(*), COUNT(a.v) FROM {sides}", max_total=2) == {"rows": (5,), "values": (3,)}


@pytest.mark.parametrize("condition", ["v > 3", "NOT v <= 3", "v IN (5, NULL)", "v > 3 OR NULL", "v BETWEEN w AND 9"])
def test_what_is_not_known_to_be_true_is_no_row(condition: str) -> None:
    rows = of_unit(1, 5, None, 1) + of_unit(2, None) + [(3, "a", 2, None)]
    known = 2 if condition == "v BETWEEN w AND 9" else 1
    assert measured(rows, f"SELECT COUNT(*) FROM t WHERE {condition}", max_total=9) == {"rows": (known,)}


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
        found = dict(zip(plan.measurements, both_ways(asked[0], plan).vectors, strict=True))
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
    assert both == {"rows": (0, 1, 0, 0, 0, 3)}


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
    exact = both_ways(desk.engine, plan)
    desk.engine.close()
    assert exact.groups is not None
    vectors = [dict(zip(exact.groups, vector, strict=True)) for vector in exact.vectors]
    return {m.counting.value: vector for m, vector in zip(plan.measurements, vectors, strict=True)}


EACH = "(SELECT id, COUNT(*) AS k FROM t GROUP BY id)"
RELATIONS = {
    "SELECT * FROM t": 4,
    f"SELECT * FROM {EACH}": 1,
    "SELECT id, g, COUNT(*) AS k FROM t GROUP BY id, g": 3,
    "SELECT DISTINCT id, g FROM t": 3,
    f"SELECT DISTINCT id, k FROM {EACH}": 1,
    "SELECT id FROM t UNION ALL SELECT id FROM t": 8,
    f"SELECT * FROM {EACH} UNION ALL SELECT * FROM {EACH}": 2,
    f"SELECT * FROM {EACH} UNION SELECT id, 9 FROM {EACH}": 2,
    f"SELECT * FROM {EACH} EXCEPT SELECT id, 9 FROM t": 1,
    "SELECT id, v FROM t EXCEPT ALL SELECT id, 9 FROM t": 4,
    f"SELECT a.id FROM {EACH} a JOIN {EACH} b ON a.id = b.id": 1,
    f"SELECT a.id FROM {EACH} a FULL JOIN {EACH} b ON a.id = b.id": 1,
    f"SELECT a.id FROM {EACH} a FULL JOIN {EACH} b ON a.id = b.id AND a.k > 100": 2,
    f"SELECT a.id FROM {EACH} a LEFT JOIN {EACH} b ON a.id = b.id AND a.k > 100": 1,
    f"SELECT a.id FROM {EACH} a JOIN t b ON a.id = b.id": 4,
    f"SELECT a.id FROM t a JOIN {EACH} b ON a.id = b.id": 4,
    f"SELECT a.id FROM {EACH} a SEMI JOIN t b ON a.id = b.id": 1,
    f"SELECT a.id FROM t a SEMI JOIN {EACH} b ON a.id = b.id": 4,
    f"SELECT id FROM {EACH} a JOIN names ON a.k = names.n": 1,
    f"SELECT id FROM {EACH} a LEFT JOIN names ON a.k = names.n": 1,
    f"SELECT id FROM {EACH} a JOIN names ON a.k = names.twice": 2,
    f"SELECT id FROM {EACH} a CROSS JOIN names": 5,
    f"SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY k) AS r FROM {EACH}": 1,
}
"""Relations over one person's four rows, and how many rows of that person they have."""


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    frame = pa.table({"id": [1] * 4, "g": ["a", "b", "b", "c"], "v": [1, 2, 3, 4]})
    names = pa.table({"n": [1, 2, 3, 4, 5], "twice": [4, 4, 5, 5, 6]})
    found = Desk({"t": hb.table(frame, unit="id", max_groups=1, max_rows=3), "names": hb.public(names)})
    yield found
    found.engine.close()


@pytest.mark.parametrize(("relation", "rows"), RELATIONS.items())
def test_a_person_counts_as_one_row_only_where_no_table_could_give_two(desk: Desk, relation: str, rows: int) -> None:
    (plan,) = desk.plans(f"SELECT COUNT(*) FROM ({relation}) AS r")
    (question,) = desk.statement(f"SELECT COUNT(*) FROM ({relation}) AS r").questions
    publics = {leaf.place: desk.outer.leaf(leaf, {}) for leaf in leaves(question.relation)}
    assert desk.engine.run(plan, publics).vectors == ((min(rows, plan.bounds.rows),),)
    assert plan.sensitivity(plan.measurements[0]) == plan.bounds.rows
    assert plan.one_row == (rows == 1)


@pytest.mark.parametrize(
    "window",
    [
        "ROW_NUMBER() OVER (PARTITION BY id ORDER BY w)",
        "LAG(v, 1, 100) OVER (PARTITION BY id ORDER BY w) + 1 - v",
        "SUM(v) OVER (PARTITION BY id ORDER BY w ROWS UNBOUNDED PRECEDING) - v",
        "FIRST_VALUE(v) OVER (PARTITION BY id ORDER BY w DESC) + 1 - v",
    ],
)
def test_what_an_order_leaves_equal_is_decided_by_the_rows_and_not_by_their_places(window: str) -> None:
    rows = [row for unit in range(20) for row in of_unit(unit, unit, 30, 20 + unit, 10)]
    sql = f"SELECT SUM(v) FROM (SELECT id, v, {window} AS k FROM t) WHERE k <= 1"
    assert measured(rows, sql, max_total=9) == measured(rows[::-1], sql, max_total=9)


PER_UNIT = {
    "COUNT(*)": (4, 1),
    "COUNT(v)": (3, 1),
    "COUNT(DISTINCT v)": (2, 1),
    "SUM(v)": (17, 9),
    "MIN(v)": (5, 9),
    "MAX(v)": (7, 9),
    "MEDIAN(v)": (5, 9),
    "ROUND(AVG(v) * 3)": (17, 27),
    "MAX(v) - MIN(v) + COUNT(g)": (5, 1),
    "COUNT(*) FILTER (WHERE v > 5)": (1, 1),
    "CASE WHEN BOOL_OR(v > 6) THEN 3 ELSE 1 END": (3, 3),
    "CASE WHEN BOOL_AND(v > 6) THEN 3 ELSE 1 END": (1, 3),
}


@pytest.mark.parametrize(("inner", "expected"), PER_UNIT.items())
def test_an_aggregate_of_one_person_sees_that_person_s_rows_alone(inner: str, expected: tuple[int, int]) -> None:
    rows = [(1, "a", 5, 1), (1, "a", 5, 1), (1, "b", 7, 1), (1, None, None, 1), (2, "b", 9, 2)]
    whole = f"LEAST(GREATEST(CAST({inner} AS BIGINT), 0), 100)"
    found = measured(rows, f"SELECT SUM(k) FROM (SELECT id, {whole} AS k FROM t GROUP BY id)")
    assert found == {"sum": (sum(expected) - 2 * 50,), "values": (2,)}
    by_group = f"SELECT SUM(k) FROM (SELECT id, w, {whole} AS k FROM t GROUP BY id, w)"
    assert measured(rows, by_group, max_total=9) == found
