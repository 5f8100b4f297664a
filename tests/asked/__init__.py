"""Random questions and random tables for tests: the whole SQL subset as a grammar, and people who do their worst.

Four tables: `visits` and `people` of the unit `id`, `items` whose owner is reached through `vid`, the public `wards`.
An owned relation of the grammar always has the columns `id`, `a` (a number) and `b` (a text), so that relations nest.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import hubbub as hb

WARDS = ["A", "B", "C", "a", "", None, "undeclared"]
FLOATS = [0.0, -0.0, 1.0, 49.999999, 50.0, 99.5, 1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf"), None]
INTEGERS = [0, 1, -1, 3, 7, 2**63 - 1, -(2**63), 2**53 + 1, None]
DAYS = [dt.date(1970, 1, 1), dt.date(2025, 2, 28), dt.date(2025, 12, 31), dt.date(9999, 12, 31), None]

PUBLIC = pa.table(
    {
        "ward": ["A", "B", "B", "C", None, "nowhere"],
        "region": ["north", "south", "east", None, "north", "west"],
        "beds": pa.array([3, 0, -2, 7, 1, None], pa.int64()),
    }
)
"""B stands twice: a join repeats its rows. One ward is NULL, one number too."""

SCHEMAS: dict[str, dict[str, pa.DataType]] = {
    "visits": {
        "id": pa.int64(),
        "vid": pa.int64(),
        "ward": pa.string(),
        "x": pa.float64(),
        "n": pa.int64(),
        "ok": pa.bool_(),
        "day": pa.date32(),
    },
    "people": {"id": pa.int64(), "sex": pa.string(), "income": pa.int64()},
    "items": {"vid": pa.int64(), "price": pa.float64(), "kind": pa.string()},
}
COLUMNS: dict[str, dict[str, Any]] = {
    "visits": {
        "ward": hb.one_of("A", "B", "C", None),
        "x": hb.between(0, 100),
        "n": hb.between(-5, 10),
        "ok": hb.one_of(True, False, None),
    },
    "people": {"sex": hb.one_of("m", "f"), "income": hb.between(0, 50, nullable=False)},
    "items": {"price": hb.between(0, 20), "kind": hb.one_of("A", "x")},
}

Rows = dict[str, list[tuple[Any, ...]]]
"""The rows of one unit, or of everybody, table by table, without the owner's name where it is known."""


def tables(neighbours: str, *, each_row: bool = False, undeclared: bool = False, **limits: Any) -> dict[str, Any]:
    """The declared tables, all empty. undeclared: nothing is said of their numbers, so no bounds are known."""
    empty = {name: pa.schema(list(s.items())).empty_table() for name, s in SCHEMAS.items()}
    common: dict[str, Any] = {"neighbours": neighbours, "max_groups": 2, "max_rows": 2} | limits
    said = {name: {} if undeclared else columns for name, columns in COLUMNS.items()}
    if each_row:
        visits = hb.table(empty["visits"], unit=hb.EACH_ROW, columns=said["visits"], **common)
        return {"visits": visits, "wards": hb.public(PUBLIC)}
    return {
        "visits": hb.table(empty["visits"], unit="id", columns=said["visits"], **common),
        "people": hb.table(empty["people"], unit="id", columns=said["people"], **common),
        "items": hb.table(empty["items"], unit="visits.id", through="vid", columns=said["items"], **common),
        "wards": hb.public(PUBLIC),
    }


def frames(units: dict[Any, Rows]) -> dict[str, pa.Table]:
    """The tables that hold these units; a unit named None is nobody."""
    found = {}
    for name, schema in SCHEMAS.items():
        rows: list[tuple[Any, ...]] = []
        for unit, of_unit in units.items():
            for row in of_unit[name]:
                # A visit's number is of its unit (or of unit 0); an item's is of its own unit's visits alone.
                own = (unit if unit is not None else 8) * 10
                first = own + row[0] if name == "items" else unit
                rest = (row[0] if row[0] is None or row[0] < 0 else own + row[0], *row[1:]) if name == "visits" else row
                rows.append((first, *row[1:]) if name == "items" else (first, *rest))
        columns = list(zip(*rows, strict=True)) if rows else [[]] * len(schema)
        kinds = schema.items()
        found[name] = pa.table({c: pa.array(v, k) for (c, k), v in zip(kinds, columns, strict=True)})
    return found


a_visit = st.tuples(
    st.sampled_from([0, 0, 1, 2, None, -5]),  # -5: a number that nobody else's items have, shared by everybody
    st.sampled_from(WARDS),
    st.sampled_from(FLOATS),
    st.sampled_from(INTEGERS),
    st.sampled_from([True, False, None]),
    st.sampled_from(DAYS),
)
a_person = st.tuples(st.sampled_from(["m", "f", None, "A"]), st.sampled_from([0, 10, 50, 99, -7, None]))
an_item = st.tuples(st.sampled_from([0, 1, 2, 7]), st.sampled_from(FLOATS), st.sampled_from(["A", "x", None]))


def _repeated(rows: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(rows, max_size=most).map(lambda r: r + r[:2])


a_unit: st.SearchStrategy[Rows] = st.fixed_dictionaries(
    {"visits": _repeated(a_visit, 5), "people": _repeated(a_person, 2), "items": _repeated(an_item, 3)}
)
GREEDY: Rows = {
    "visits": [
        (i % 3, b, x, n, True, DAYS[1])
        for i, b in enumerate(["A", "B", "m", None] * 3)
        for x, n in [(50.0, 7), (1.0, 1)]
    ],
    "people": [("m", 50), ("f", 0)] * 2,
    "items": [(i, x, kind) for i in range(3) for x in (0.0, 20.0) for kind in ("A", "x")],
}
"""A unit that is in every group of every key, with more rows than any limit."""
a_newcomer: st.SearchStrategy[Rows] = st.one_of(a_unit, st.just(GREEDY))
everybody = st.lists(a_unit, max_size=4).map(lambda units: dict(enumerate(units)))


# -- the grammar ------------------------------------------------------------------------------------------------------

CONDITIONS = [
    "{a} > 3",
    "{a} IS NOT NULL AND {b} <> 'A'",
    "{a} / {a} > 0 OR {b} IS NULL",
    "{a} % 2 = 1",
    "FMOD({a}, 2) = 1 OR FDIV({a}, 3) < -1",
    "{b} IN ('A', 'm', 'north')",
    "NOT ({b} LIKE '%a%')",
    "CASE WHEN {a} < 0 THEN {b} = 'A' ELSE {a} * {a} > 10 END",
    "COALESCE({b}, 'A') = UPPER({b})",
    "{a} BETWEEN 0 AND 60",
    "SQRT({a}) < 5 AND LN({a}) > 0",
]
NUMBERS = [
    "{a}",
    "{a} + 1",
    "LEAST({a}, 9)",
    "{a} / 7",
    "{a} // 7 + {a} % 7",
    "FMOD({a}, 7)",
    "ABS({a})",
    "ROUND({a} / 3, 1)",
    "COALESCE({a}, 2)",
    "LENGTH({b})",
    "CASE WHEN {b} = 'A' THEN {a} ELSE 1 END",
    "NULLIF({a}, 1) * -2",
    "CAST({a} AS BIGINT)",
]
TEXTS = ["{b}", "UPPER({b})", "COALESCE({b}, 'none')", "SUBSTR({b}, 1, 1)", "CASE WHEN {a} > 3 THEN 'A' ELSE {b} END"]
BASES = [
    "SELECT id, n AS a, ward AS b FROM visits",
    "SELECT id, x AS a, ward AS b FROM visits WHERE ok OR day > DATE '2000-01-01'",
    "SELECT id, EXTRACT(month FROM day) AS a, CAST(ok AS VARCHAR) AS b FROM visits",
    "SELECT id, income AS a, sex AS b FROM people",
    "SELECT v.id, i.price AS a, i.kind AS b FROM items i JOIN visits v ON i.vid = v.vid",
    "SELECT p.id, i.price + p.income AS a, p.sex AS b FROM people p, visits v, items i "
    "WHERE p.id = v.id AND v.vid = i.vid",
]
INNER = ["COUNT(*)", "COUNT({a})", "COUNT(DISTINCT {b})", "SUM({a})", "AVG({a})", "MIN({a})", "MAX({a})", "MEDIAN({a})"]
INNER += ["COUNT(*) FILTER (WHERE {a} > 2)", "SUM(CASE WHEN {b} = 'A' THEN 1 ELSE 0 END)", "MAX({a}) - MIN({a})"]
WINDOWS = [
    "ROW_NUMBER() OVER (PARTITION BY {id} ORDER BY {a})",
    "ROW_NUMBER() OVER (PARTITION BY {id}, {b})",
    "RANK() OVER (PARTITION BY {id} ORDER BY {a} DESC)",
    "DENSE_RANK() OVER (PARTITION BY {id} ORDER BY {b} NULLS FIRST)",
    "LAG({a}) OVER (PARTITION BY {id} ORDER BY {a})",
    "LEAD({a}, 2, 5) OVER (PARTITION BY {id} ORDER BY {b}, {a} DESC)",
    "FIRST_VALUE({a}) OVER (PARTITION BY {id} ORDER BY {b})",
    "LAST_VALUE({a}) OVER (PARTITION BY {id}, {b} ORDER BY {a} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "SUM({a}) OVER (PARTITION BY {id} ORDER BY {a})",
    "AVG({a}) OVER (PARTITION BY {id})",
    "COUNT(*) OVER (PARTITION BY {b}, {id})",
    "MAX({a}) OVER (PARTITION BY {id} ORDER BY {b} ROWS UNBOUNDED PRECEDING)",
]
COMBINES = ["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]


def _of(text: str, alias: str) -> str:
    return text.format(a=f"{alias}.a", b=f"{alias}.b", id=f"{alias}.id")


@st.composite
def relations(draw: Any, depth: int = 3, releases: bool = False) -> str:
    """The text of an owned relation with the columns id, a, b. releases: whether it may read a release."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return str(draw(st.sampled_from(BASES)))
    pick = st.sampled_from
    one = draw(relations(depth=depth - 1, releases=releases))
    form = draw(st.integers(0, 18 if releases else 15))
    condition = _of(draw(pick(CONDITIONS)), "r")
    if form == 0:
        return f"SELECT id, {_of(draw(pick(NUMBERS)), 'r')} AS a, {_of(draw(pick(TEXTS)), 'r')} AS b FROM ({one}) r"
    if form == 1:
        return f"SELECT * FROM ({one}) r WHERE {condition}"
    if form == 2:
        return f"SELECT id, {_of(draw(pick(INNER)), 'r')} AS a, MAX(b) AS b FROM ({one}) r GROUP BY id"
    if form == 3:
        having = draw(pick(["", "HAVING COUNT(*) > 1", "HAVING MAX(a) > 2 AND b <> 'A'"]))
        return f"SELECT id, {_of(draw(pick(INNER)), 'r')} AS a, b FROM ({one}) r GROUP BY id, b {having}"
    if form == 4:
        return f"SELECT id, {_of(draw(pick(WINDOWS)), 'r')} AS a, b FROM ({one}) r"
    if form == 5:
        return f"SELECT * FROM ({one}) r QUALIFY {_of(draw(pick(WINDOWS)), 'r')} <= {draw(st.integers(1, 3))}"
    if form == 6:
        return f"SELECT DISTINCT id, {draw(pick(['a', '1 AS a', 'a % 2 AS a', 'FMOD(a, 2) AS a']))}, b FROM ({one}) r"
    if form == 7:
        how = draw(pick(["JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN"]))
        region = "b" if how.split()[0] in ("SEMI", "ANTI") else "w.region AS b"
        a = "a" if region == "b" else draw(pick(["a", "COALESCE(w.beds, a) AS a"]))
        also = draw(pick(["", " AND w.beds > 0", " OR w.ward IS NULL"]))
        return f"SELECT id, {a}, {region} FROM ({one}) r {how} wards w ON r.b = w.ward{also}"
    if form == 8:
        word = draw(pick(["IN", "NOT IN"]))
        where = draw(pick(["", " WHERE ward IS NOT NULL", " WHERE beds > 100"]))
        return f"SELECT * FROM ({one}) r WHERE b {word} (SELECT ward FROM wards{where})"
    if form == 9:
        return f"SELECT * FROM ({one}) r WHERE a > (SELECT AVG(beds) FROM wards)"
    two = draw(relations(depth=depth - 1, releases=releases))
    if form in (10, 11):
        how = draw(pick(["JOIN", "LEFT JOIN", "JOIN", "RIGHT JOIN"]))
        also = draw(pick(["", " AND l.b = r.b", " AND l.a < r.a", " AND (l.b = r.b OR l.a IS NULL)"]))
        owner = "r.id" if how == "RIGHT JOIN" else "l.id"
        columns = draw(pick(["l.a, r.b", "r.a, l.b", "l.a + r.a AS a, r.b", "COALESCE(r.a, l.a) AS a, l.b"]))
        return f"SELECT {owner}, {columns} FROM ({one}) l {how} ({two}) r ON l.id = r.id{also}"
    if form in (12, 13):
        return f"({one}) {draw(pick(COMBINES))} ({two})"
    if form == 14:
        negated = draw(pick(["", "NOT "]))
        if draw(st.integers(0, 2)) == 0:
            among = f"{draw(pick(['a', 'r.a + 1', '3']))} {negated}IN (SELECT a FROM ({two}) q WHERE q.id = r.id)"
            where = draw(pick(["({}) IS NOT FALSE", "{} OR b = 'A'"])).format(among)
            return f"SELECT * FROM ({one}) r WHERE {where}"
        if draw(st.booleans()):
            inner = f"SELECT id FROM ({two}) q WHERE {condition.replace('r.', 'q.')}"
            return f"SELECT * FROM ({one}) r WHERE id {negated}IN ({inner})"
        also = draw(pick(["", " AND q.a > r.a", " AND q.b = r.b"]))
        return f"SELECT * FROM ({one}) r WHERE {negated}EXISTS (SELECT 1 FROM ({two}) q WHERE q.id = r.id{also})"
    if form == 16:
        return f"SELECT * FROM ({one}) r WHERE {draw(pick(['a', 'LENGTH(b)']))} > {draw(_scalar(two))}"
    if form == 17:
        negated, having = (
            draw(pick(["", "NOT "])),
            draw(pick([" HAVING COUNT(*) > 1", " HAVING AVG(LEAST(LENGTH(b), 3)) < 2"])),
        )
        return f"SELECT * FROM ({one}) r WHERE b {negated}IN (SELECT {SORT} FROM ({two}) q GROUP BY 1{having})"
    if form == 18:
        how = draw(pick(["JOIN", "LEFT JOIN"]))
        groups = f"SELECT {SORT} AS k, COUNT(*) AS n, AVG({FINAL_NUMBERS[0]}) AS m FROM ({two}) q GROUP BY 1"
        also = draw(pick(["", " AND g.n > 0", " AND r.a < g.m"]))
        number = draw(pick(["a", "g.m AS a", "g.n AS a"]))
        return f"SELECT id, {number}, b FROM ({one}) r {how} ({groups}) g ON r.b = g.k{also}"
    inner = draw(pick(["MAX(q.a)", "COUNT(*)", "AVG(q.a)"]))
    return f"SELECT * FROM ({one}) r WHERE a >= (SELECT {inner} FROM ({two}) q WHERE q.id = r.id)"


SORT = "CASE WHEN b = 'A' THEN 'A' WHEN b = 'm' THEN 'm' ELSE 'other' END"
FINAL_NUMBERS = ["LEAST(GREATEST(a, -5), 20)", "LEAST(GREATEST(a * 2, 0), 30)", "CASE WHEN a > 3 THEN 1 ELSE 0 END"]
AGGREGATES = [
    "COUNT(*)",
    "COUNT(a)",
    "COUNT(b)",
    "COUNT(DISTINCT a)",
    "COUNT(DISTINCT b)",
    "COUNT(*) FILTER (WHERE a > 1)",
    "COUNT_IF(b >= 'A')",
    *(f"{f}({x})" for f in ("SUM", "AVG", "VAR_POP", "STDDEV", "MEDIAN", "MIN", "MAX") for x in FINAL_NUMBERS),
    "QUANTILE_CONT(LEAST(GREATEST(a, -5), 20), 0.3)",
    "COVAR_POP(LEAST(GREATEST(a, -5), 20), LEAST(LENGTH(b), 3))",
    "CORR(LEAST(GREATEST(a, -5), 20), CASE WHEN b > 'B' THEN 1 ELSE 0 END)",
]
KEYS = [
    "",
    "",
    SORT,
    "a > 3",
    "b IS NULL",
    "b",
    "a",
    "a, b",
]


@st.composite
def _scalar(draw: Any, relation: str) -> str:
    """A sub-query of one value over people: a release of its own."""
    value = draw(st.sampled_from([f"AVG({FINAL_NUMBERS[0]})", "COUNT(*) / 2", f"MEDIAN({FINAL_NUMBERS[1]})"]))
    return f"(SELECT {value} FROM ({relation}) s)"


@st.composite
def row_relations(draw: Any, depth: int = 2) -> str:
    """An owned relation over `visits` alone, for rows that are units of their own: columns a and b."""
    if depth == 0:
        return "SELECT n AS a, ward AS b FROM visits"
    one, pick = draw(row_relations(depth=depth - 1)), st.sampled_from
    condition = _of(draw(pick(CONDITIONS)), "r")
    how = draw(pick(["JOIN", "LEFT JOIN"]))
    return str(
        draw(
            pick(
                [
                    f"SELECT * FROM ({one}) r WHERE {condition}",
                    f"SELECT {_of(draw(pick(NUMBERS)), 'r')} AS a, {_of(draw(pick(TEXTS)), 'r')} AS b FROM ({one}) r",
                    f"SELECT COALESCE(w.beds, a) AS a, w.region AS b FROM ({one}) r {how} wards w ON r.b = w.ward",
                    f"SELECT a, w.ward AS b FROM ({one}) r {how} wards w ON r.a >= w.beds OR w.beds IS NULL",
                    f"SELECT * FROM ({one}) r WHERE b NOT IN (SELECT ward FROM wards WHERE ward IS NOT NULL)",
                ]
            )
        )
    )


@st.composite
def questions(draw: Any, depth: int = 3, each_row: bool = False) -> str:
    """The text of a question over an owned relation: any aggregates, any keys."""
    relation = draw(row_relations() if each_row else relations(depth=depth))
    aggregates = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=3, unique=True))
    if not each_row and draw(st.integers(0, 3)) == 0:
        aggregates.append("COUNT(DISTINCT id)")
    key = draw(st.sampled_from(KEYS))
    where = draw(st.sampled_from(["", "", *(f" WHERE {c.format(a='a', b='b')}" for c in CONDITIONS[:4])]))
    shown = ", ".join(f"{text} AS c{i}" for i, text in enumerate(aggregates))
    group = f" GROUP BY {key}" if key else ""
    return f"SELECT {shown} FROM ({relation}) t{where}{group}"


SEVERAL = [
    "ROLLUP ({0}, {1})",
    "CUBE ({0}, {1})",
    "GROUPING SETS (({0}, {1}), ({1}), ())",
    "GROUPING SETS (({0}), ({1}))",
    "{0}, ROLLUP ({1})",
    "GROUPING SETS (({0}, {1}), ({0}, {1}, (b LIKE 'A%')), ({1}))",
]
FOUND = ["a", "b"]
"""Keys whose groups are found privately."""


@st.composite
def statements(draw: Any, depth: int = 3) -> str:
    """The text of a statement: a question, or several groupings, several private aggregates, releases that are read,
    a public table whose rows are the groups."""
    pick = st.sampled_from
    form = draw(st.integers(0, 11))
    relation = draw(relations(depth=depth, releases=form in (3, 4, 5)))
    aggregates = draw(st.lists(pick([*AGGREGATES, "COUNT(DISTINCT id)"]), min_size=1, max_size=2, unique=True))
    shown = ", ".join(f"{text} AS c{i}" for i, text in enumerate(aggregates))
    if form < 3:
        return str(draw(questions(depth=depth)))
    if form < 6:
        key = draw(pick(KEYS))
        where = f" WHERE a > {draw(_scalar(draw(relations(depth=depth - 1))))}" if form == 4 else ""
        group = f" GROUP BY {key}" if key else ""
        return f"SELECT {shown} FROM ({relation}) t{where}{group}"
    if form < 8:
        keys = draw(st.permutations([SORT, "(a > 3)", "(b IS NULL)", draw(pick(FOUND))]))
        return f"SELECT {shown} FROM ({relation}) t GROUP BY {draw(pick(SEVERAL)).format(*keys)}"
    if form < 10:
        also = draw(pick(["", " AND t.a > w.beds", " AND t.a < 9", " AND w.beds > 0"]))
        tables = [f"wards w LEFT JOIN ({relation}) t", f"({relation}) t RIGHT JOIN wards w"]
        plain = [(i, text) for i, text in enumerate(aggregates) if "FILTER" not in text] or [(0, "COUNT(b)")]
        key = draw(pick(["w.region", "w.ward", "w.region, w.ward", "w.beds, w.region", "UPPER(w.region)"]))
        # Each aggregate has to leave out the public rows that nobody's row meets.
        counted = ", ".join(
            f"{text.replace('(*)', '(t.a)')} FILTER (WHERE id IS NOT NULL) AS c{i}" for i, text in plain
        )
        return f"SELECT {counted} FROM {draw(pick(tables))} ON t.b = w.ward{also} GROUP BY {key}"
    second = draw(relations(depth=depth - 1))
    other = draw(pick(AGGREGATES))
    if form == 10:
        key = draw(pick([SORT, "a > 3", "b"]))
        one, two = (
            f"SELECT {key} AS k, {what} AS c FROM ({rows}) t GROUP BY 1"
            for what, rows in ((aggregates[0], relation), (other, second))
        )
        how = draw(pick(["JOIN", "LEFT JOIN", "FULL JOIN"]))
        return f"WITH x AS ({one}), y AS ({two}) SELECT x.k, x.c, y.c - x.c AS d FROM x {how} y ON x.k = y.k"
    one, two = f"SELECT {aggregates[0]} AS c FROM ({relation}) t", f"SELECT {other} AS c FROM ({second}) t"
    return str(draw(pick([f"{one} UNION ALL {two}", f"SELECT ({one}) AS c, ({two}) AS d"])))
