"""What one row may hold: P1 to P4, P6, P10, P12, P28, P29 and P26."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from hubbub.audit import Pair, Question
from pitfalls.worlds import (
    BASE,
    COLUMNS,
    EVERYTHING,
    PURE,
    SCHEMA,
    WITH_DELTA,
    answer,
    compare,
    declared,
    finite,
    frame,
    hold,
    opened,
    same,
)

FLOATS = [[5e-324, -5e-324, -0.0, 2.2e-308], [1e308, -1e308, 1e308], [math.inf, -math.inf], [math.nan, math.inf]]
EDGES = [[{"g": "A", "x": x, "n": 1} for x in of_unit] for of_unit in FLOATS]
WORST = [row for rows in EDGES for row in rows]
"""Denormals and minus zero; values whose sum overflows; both infinities; NaN."""


def test_p01_floats_at_the_edge_move_integers_by_what_is_declared() -> None:
    hold(EDGES, *EVERYTHING, "SELECT x > 50 AS hot, COUNT(*) AS c, SUM(-x) AS s FROM t GROUP BY 1")


def test_p01_floats_at_the_edge_give_finite_answers() -> None:
    with opened(frame(dict(enumerate(EDGES)))) as session:
        for sql in (EVERYTHING[0], EVERYTHING[2], "SELECT SUM(LEAST(GREATEST(x * x / 3 - x, 0), 9)) AS s FROM t"):
            assert finite(session.sql(sql, epsilon=1).rows())


def test_p01_floats_at_the_edge_as_group_keys() -> None:
    bins = {**COLUMNS, "x": hb.between(0, 99)}
    hold([WORST], "SELECT FLOOR(x / 25) AS k, COUNT(*) AS c FROM t GROUP BY 1", columns=bins)
    hold(EDGES, "SELECT x, COUNT(*) AS c, AVG(n) AS m FROM t GROUP BY x", budget=WITH_DELTA)
    listed = {**COLUMNS, "x": hb.one_of(0.0, 1.0, None)}
    hold([WORST], "SELECT x, COUNT(*) AS c FROM t GROUP BY x", columns=listed)


def test_p01_a_nan_is_null_and_minus_zero_is_zero() -> None:
    table = frame({1: [{"x": math.nan}], 2: [{"x": -0.0}], 3: [{"x": 0.0}], 4: [{"x": math.inf}]})
    columns = {"x": hb.one_of(0, 100, None)}
    assert answer(table, "SELECT x, COUNT(*) AS c FROM t GROUP BY x", columns=columns) == [(0, 2), (100, 0), (None, 1)]
    assert answer(table, "SELECT COUNT(x) AS c, SUM(x) AS s FROM t") == [(3, 100.0)]


ODD: list[Any] = [None, "x", b"\xff", [1, 2], {"a": 1}, object(), 1 + 2j, Decimal("NaN"), pd.NaT, 10**400, True, 1]


def test_p02_a_value_of_another_type_is_null_and_no_error() -> None:
    def made(table: pa.Table) -> pd.DataFrame:
        """A frame of objects in which n = 7000 + i stands for the i-th odd value."""
        found = table.to_pandas()
        for name in ("x", "s"):
            values = [v if n < 7000 else ODD[int(n) - 7000] for v, n in zip(found[name], found["n"], strict=True)]
            found[name] = pd.Series(values, dtype=object)
        return found

    questions = (EVERYTHING[0], "SELECT COUNT(s) AS c, COUNT(*) AS r FROM t WHERE LOWER(s) < 'm' OR s IS NULL")
    newcomers = [[{"g": "A", "n": 7000 + i} for i in range(at, at + 4)] for at in range(0, len(ODD), 4)]
    hold(newcomers, *questions, made=made, types={"x": "number", "s": "text"})


BIG = {"n": hb.between(0, 2**62)}


def test_p03_the_widest_integers_are_clamped_and_their_sums_do_not_wrap() -> None:
    """Values of 2^62 clamped to [0, 2^62]: one row against two, and four that would wrap a 64-bit sum."""
    questions = (
        "SELECT SUM(n) AS s FROM t",
        "SELECT SUM(n + n) AS s, AVG(n) AS m FROM t",
        "SELECT SUM(-n) AS s FROM t",
    )
    newcomers = [[{"n": 2**62}] * rows for rows in (1, 2, 5)] + [[{"n": 2**63 - 1}, {"n": -(2**63)}]]
    hold(newcomers, *questions, columns=BIG, max_total=5)
    (row,) = answer(frame({u: [{"n": 2**62}] for u in range(8)}), "SELECT SUM(n) AS s FROM t", columns=BIG)
    assert row[0] == pytest.approx(8 * 2**62, rel=1e-6)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int16(), pa.uint64(), pa.decimal128(9, 2), pa.float16()])
def test_p03_small_types_are_widened(kind: pa.DataType) -> None:
    schema = SCHEMA.set(3, pa.field("n", kind))
    value = np.float16(100) if kind == pa.float16() else Decimal(100) if pa.types.is_decimal(kind) else 100
    rows = {u: [{"n": value}] * 2 for u in range(10)}
    columns = {"n": hb.between(0, 127)}
    assert answer(frame(rows, schema), "SELECT SUM(n + n) AS s FROM t", columns=columns) == [(4000.0,)]
    hold([[{"n": value}] * 3], "SELECT SUM(n) AS s, SUM(n * n) AS q FROM t", base=rows, schema=schema, columns=columns)


def test_p04_order_and_partition_change_no_bit(tmp_path: Path) -> None:
    values = [2.0**53, *[1.0] * 1000, *[0.1] * 500]
    units = {i: [{"g": "A", "x": x, "n": i % 3}] for i, x in enumerate(values)}
    table = frame(units)
    generator = np.random.default_rng(4)  # test data, not noise
    shuffled = table.take(generator.permutation(len(values)))
    pieces = pa.concat_tables([shuffled.slice(i, 37) for i in range(0, len(values), 37)])
    columns = {**COLUMNS, "x": hb.between(0, 2.0**53)}
    per_unit = (
        "SELECT SUM(LEAST(y, 9)) AS s, AVG(LEAST(y, 9)) AS m FROM (SELECT id, SUM(x / 3) AS y FROM t GROUP BY id)"
    )
    questions = (EVERYTHING[0], per_unit)
    for other in (shuffled, pieces):
        same(table, other, *questions, columns=columns)
    for name, size in (("one", 10**6), ("many", 50)):
        pq.write_table(shuffled if name == "many" else table, tmp_path / f"{name}.parquet", row_group_size=size)
    same(tmp_path / "one.parquet", tmp_path / "many.parquet", *questions[1:], columns=columns)
    few = {0: units[0] + units[1] + units[2] + units[1001] + units[1002]}
    back = {0: list(reversed(few[0]))}
    same(frame(few).to_pandas(), frame(back), *questions, columns=columns)


def test_p06_nobody_against_one_unit() -> None:
    questions = [EVERYTHING[2], "SELECT AVG(x) / COUNT(*) AS r, CORR(x, n) AS k FROM t"]
    some, none = [[{"g": "A", "x": 5.0, "n": 1}]], " FROM t WHERE n > 100 OR x < -3"
    hold(some, *questions, *[sql.replace(" FROM t", none) for sql in questions], base={})


def test_p06_an_empty_answer_has_its_shape_and_its_charge() -> None:
    for units in ({}, {1: [{"g": "nowhere"}]}, {1: [{}]}):
        with opened(frame(units), budget=hb.Budget(4)) as session:
            for sql in EVERYTHING:
                release = session.sql(sql, epsilon=1)
                assert len(release) == (3 if "GROUP BY" in sql else 1)
                assert finite([row[1:] if "GROUP BY" in sql else row for row in release.rows()])
            assert session.remaining == 1


MADE = [
    "CAST(s AS INT)",
    "CAST(s AS DATE)",
    "CAST(s AS BOOLEAN)",
    "CASE WHEN x < 10 THEN 'low' WHEN x >= 10 THEN 'high' END",
    "x % (n - n)",
    "x / n",
    "LN(x)",
    "LOG10(n)",
    "SQRT(-x)",
    "NULLIF(x, x)",
    "EXTRACT(hour FROM CAST(s AS TIMESTAMP))",
    "DATE_TRUNC('month', at)",
    "SUBSTR(s, -5, 2)",
    "EXP(x * 99)",
]


def test_p10_nulls_that_the_engine_makes_are_counted_as_private() -> None:
    newcomers = [
        [{"s": "not a date", "x": 0.0, "n": 0, "at": None}, {"s": None, "x": math.nan}],
        [{"s": "2025-02-30", "x": -1.0, "n": -1, "at": dt.datetime(9999, 12, 31)}],
    ]
    shown = ", ".join(f"COUNT({made}) AS c{i}" for i, made in enumerate(MADE))
    hold(newcomers, f"SELECT {shown} FROM t", f"SELECT COUNT(*) AS c FROM t WHERE {MADE[0]} IS NULL")
    with opened(frame(BASE), budget=hb.Budget(2)) as session:
        assert session.sql(f"SELECT COUNT({MADE[0]}) AS c FROM t", epsilon=1).charged
        assert session.remaining == 1


BOMBS = [
    "s LIKE '%a%a%a%a%a%a%a%a%a%a%a%a%b'",
    "x / (n - n) > 1 OR x % 0 = 1",
    "EXP(EXP(x)) > 1 OR x * x * x * x * 1e308 * 1e308 > 5",
    "CAST(s AS BIGINT) > 1 OR CAST(s AS TIMESTAMP) > at",
    "LN(n - n) IS NULL AND SQRT(-1 - x * x) IS NULL",
    "n * n * n * n * 9223372036854775807 > 5 OR -n > 9223372036854775807 OR ABS(n) > 3",
    "REPLACE(UPPER(REVERSE(s)), 'A', 'bb') LIKE 'b%' ESCAPE '!'",
    "DATE_DIFF('second', at, TIMESTAMP '1970-01-01 00:00:00') > 5 OR EXTRACT(year FROM at) > 2000",
    "LEFT(s, 1000000) = RIGHT(s, 1000000) OR LENGTH(s || s) > 9",
]
MONSTERS: list[dict[str, Any]] = [
    {"s": "a" * 20_000, "x": 0.0, "n": 2**63 - 1, "at": dt.datetime(9999, 12, 31, 23, 59, 59, 999999)},
    {"s": "\0\ud7ff\U0010ffff\u202e", "x": 1e308, "n": -(2**63), "at": dt.datetime(1, 1, 1)},
]


def test_p12_no_expression_raises_on_any_row() -> None:
    asked = "SELECT COUNT(*) AS c, AVG(CASE WHEN {0} THEN 1 ELSE 0 END) AS m FROM t WHERE {0} OR x IS NULL"
    hold([MONSTERS], *[asked.format(bomb) for bomb in BOMBS])


def test_p12_times_beyond_the_calendar_and_texts_that_are_no_texts() -> None:
    far = SCHEMA.set(5, pa.field("at", pa.timestamp("s")))
    sql = "SELECT COUNT(at) AS c, COUNT(*) AS r FROM t WHERE at > TIMESTAMP '2020-01-01 00:00:00' OR at IS NULL"
    table = frame(BASE, far)
    edge = pa.table({**{n: pa.nulls(2, far.field(n).type) for n in far.names}, "id": pa.array([9, 9], pa.int64())})
    edge = edge.set_column(5, "at", pa.array([2**62, -(2**62)], pa.timestamp("s"))).cast(far)
    same_shape = pa.concat_tables([table, edge])
    with opened(same_shape) as session:
        assert session.sql(sql, epsilon=1).to_arrow().schema == opened(table).sql(sql, epsilon=1).to_arrow().schema
    bad = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
    worse = frame({1: [{"x": 1.0}]}).set_column(4, "s", bad)
    rows = answer(pa.concat_tables([frame(BASE), worse]), "SELECT COUNT(*) AS c, COUNT(UPPER(s)) AS u FROM t")
    assert rows[0][0] == 17


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM t WHERE REPEAT(s, 1000000000) = 'a'",
        "SELECT COUNT(*) FROM t WHERE POWER(x, 1e6) > 1",
        "SELECT COUNT(*) FROM t WHERE REGEXP_MATCHES(s, '(a+)+$')",
        "SELECT COUNT(*) FROM t WHERE s SIMILAR TO '(a+)+b'",
        "SELECT COUNT(*) FROM t WHERE error(s) = 'a'",
        "SELECT COUNT(*) FROM t WHERE x = " + "(" * 5_000 + "1" + ")" * 5_000,
        "SELECT COUNT(*) FROM t WHERE " + "NOT " * 5_000 + "n = 1",
        "SELECT COUNT(*) FROM t WHERE n = " + " + ".join(["n"] * 5_000),
    ],
    ids=["repeat", "power", "regex", "similar", "error", "parentheses", "not", "plus"],
)
def test_p12_what_could_exhaust_an_engine_is_refused_for_nothing(sql: str) -> None:
    with opened(frame(BASE), budget=hb.Budget(1)) as session:
        with pytest.raises(hb.HubbubError) as caught:
            session.sql(sql, epsilon=1)
        assert not isinstance(caught.value, hb.InternalError | hb.EngineError)
        assert session.history() == []


def test_p26_one_unit_of_a_million_rows_counts_like_any() -> None:
    """Its time is not hidden (docs/concepts/limits.md says so); everything else is."""
    table, one = frame(BASE), frame({99: [{"g": "A", "x": 3.0, "n": 2}]})
    million = one.take(pa.array(np.zeros(10**6, np.int64)))
    pair = Pair("a million rows", table, pa.concat_tables([table, million]))
    compare([pair], "add_remove", EVERYTHING[1], budget=PURE)
    page = Path(__file__).parents[2] / "docs/concepts/limits.md"
    assert "How long a question takes depends on the rows" in page.read_text()


def test_p28_groups_match_what_is_declared_and_nothing_else() -> None:
    texts = ["A", "a", "A ", " A", "", "\u00e9", "e\u0301", None, "NULL", "A\0", "\uff21", "nan", "1", "1.0"]
    table = frame({i: [{"g": text}] for i, text in enumerate(texts)})
    wanted = {"g": hb.one_of("A", "\u00e9", None, "", "1")}
    sql = "SELECT g, COUNT(*) AS c FROM t GROUP BY g"
    assert answer(table, sql, columns=wanted) == [("A", 1), ("\u00e9", 1), (None, 1), ("", 1), ("1", 1)]
    hold([[{"g": text} for text in texts[i::3]] for i in range(3)], sql, columns=wanted)


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        (pa.array([1, 1, 2], pa.int64()), (1.0, 2), [(1, 2), (2, 1)]),
        (pa.array([1.0, math.nan, 2.0]), (1, None), [(1, 1), (None, 1)]),
        (pa.array([Decimal("1.50"), Decimal("1.5"), None]), (1.5, None), [(1.5, 2), (None, 1)]),
        (pa.array(["1", "1.0", "01"]), ("1", "01"), [("1", 1), ("01", 1)]),
    ],
    ids=["integers", "floats", "decimals", "texts"],
)
def test_p28_numbers_of_every_type_are_one_group_by_value(column: Any, values: Any, expected: Any) -> None:
    table = pa.table({"id": [1, 2, 3], "k": column})
    sql = "SELECT k, COUNT(*) AS c FROM t GROUP BY k"
    assert answer(table, sql, columns={"k": hb.one_of(*values)}) == expected


def test_p28_instants_are_grouped_in_utc_whatever_their_zone() -> None:
    moment = dt.datetime(2025, 3, 30, 1, 30, tzinfo=dt.UTC)
    sql = "SELECT EXTRACT(hour FROM at) AS h, COUNT(*) AS c FROM t GROUP BY 1 HAVING c > 0.5"
    for zone in ("UTC", "Asia/Tokyo", "America/New_York", "Europe/Paris"):
        table = pa.table({"id": [1], "at": pa.array([moment], pa.timestamp("us", zone))})
        assert answer(table, sql, columns={}) == [(1, 1)]


IDS: dict[str, tuple[Any, int]] = {
    "NULL is nobody": (pa.array([None, None, 1], pa.int64()), 1),
    "one id for all": (pa.array([7, 7, 7], pa.int64()), 1),
    "floats by value, NaN is nobody": (pa.array([0.0, -0.0, math.nan]), 1),
    "case and spaces differ": (pa.array(["a", "A", "a "]), 3),
    "decimals by value": (pa.array([Decimal("1.10"), Decimal("1.1"), Decimal("2")]), 2),
    "composed and decomposed differ": (pa.array(["\u00e9", "e\u0301", "e"]), 3),
    "the empty text is somebody": (pa.array(["", "", None]), 1),
}


@pytest.mark.parametrize("name", IDS)
def test_p29_whose_row_it_is(name: str) -> None:
    ids, people = IDS[name]
    table = pa.table({"id": ids, "x": [1.0, 2.0, 3.0]})
    rows = answer(table, "SELECT COUNT(DISTINCT id) AS u, COUNT(*) AS r FROM t", max_rows=9, columns={})
    assert rows == [(people, len(ids) - (ids.null_count + ("NaN" in name)))]


def test_p29_one_unit_that_owns_every_row_moves_no_more_than_any() -> None:
    everything = [row for rows in BASE.values() for row in rows] * 20
    hold([everything], EVERYTHING[1], base={})
    hold([everything], *EVERYTHING)


def test_p29_rows_of_nobody_change_nothing() -> None:
    nobody = frame({None: [{"g": "A", "x": 1.0, "n": 1, "s": "1"}] * 9})
    same(frame(BASE), pa.concat_tables([nobody, frame(BASE), nobody]), *EVERYTHING)


def test_p29_one_unit_in_two_tables_is_one() -> None:
    visits, people = frame(BASE), pa.table({"id": [0, 1, 1], "sex": ["m", "f", "f"]})
    tables = {
        "t": declared(visits),
        "p": hb.table(people, unit="id", max_groups=1, max_rows=1, columns={"sex": hb.one_of("m", "f")}),
    }
    with pytest.warns(UserWarning, match="memory"):
        session = hb.Session(tables, budget=hb.Budget(2), ledger=None)
    with session:
        session.sql("SELECT COUNT(*) FROM t", epsilon=1)
        session.sql("SELECT sex, COUNT(*) FROM p GROUP BY sex", epsilon=1)
        assert session.remaining == 0
        with pytest.raises(hb.BudgetError):
            session.sql("SELECT COUNT(DISTINCT id) FROM p", epsilon="0.01")


def test_bad_input_a_million_public_groups() -> None:
    edge = [*range(50), 999]
    table = pa.table({"id": [1] * 50 + [2], "k": edge, "j": edge})
    sql, thousand = "SELECT k, j, COUNT(*) AS c FROM t GROUP BY k, j", range(1000)
    with opened(table, columns={}, budget=hb.Budget(10**10)) as session:
        found = session.sql(sql, epsilon=10**9, keys={"k": thousand, "j": thousand}).to_arrow().column("c").to_numpy()
        assert (found.size, found.sum(), found[999_999]) == (10**6, 3, 1)
        with pytest.raises(hb.QueryError, match="1,000,000"):
            session.check(sql, epsilon=1, keys={"k": thousand, "j": range(1001)})


def test_bad_input_decimals_are_summed_exactly() -> None:
    cents = pa.table({"id": list(range(30)), "d": pa.array([Decimal("0.10")] * 30, pa.decimal128(10, 2))})
    (row,) = answer(cents, "SELECT SUM(d) AS s, AVG(d) AS m FROM t", columns={"d": hb.between(0, 1)})
    assert row == (pytest.approx(3.0, abs=1e-4), pytest.approx(0.1, abs=1e-6))


@pytest.mark.parametrize(
    "name", ['"', "'", "a b", 'x"; DROP TABLE t; --', "\u00e9", "e\u0301", "select", "\u202e", "a\nb", "%s"]
)
def test_bad_input_columns_of_any_name(name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    table = pa.table({"id": [1, 2, 3], name: ["u", "v", "u"]})
    sql = f"SELECT {quoted} AS k, COUNT(*) AS c FROM t WHERE {quoted} <> 'w' GROUP BY {quoted}"
    assert answer(table, sql, columns={name: hb.one_of("u", "v")}) == [("u", 2), ("v", 1)]


def test_bad_input_the_question_says_its_own_keys() -> None:
    asked = Question("SELECT s, COUNT(*) AS c FROM t GROUP BY s", {"keys": {"s": ["1", "nowhere"]}})
    hold([[{"s": "nobody's"}, {"s": "1"}, {"s": None}]], asked)
