"""Every node over every combination of kinds that the binder accepts, over rows at the ends of every type (P33, P52).

A form is SQL with places, `CASE WHEN {0} THEN {1} ELSE {2} END`. Its places are filled with columns and constants of
every kind (depth 1), and with every other form (depth 2), in one place or the same one in all of them; what the binder
refuses is left out. `expressions(depth)` lists them, `some(count)` draws from both depths so that each pair of forms
is met before any is met again, `questions()` puts them where relations have operands: set operations, joins,
sub-queries, groups, windows.

For DuckDB, Postgres and Spark alike: `bound(text)` is the expression, which each dialect writes in its own words;
`rows()` are the rows that every engine can hold.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import sqlglot

from hubbub.errors import QueryError
from hubbub.sql.bind.expression import ExpressionReader
from hubbub.sql.text.functions import UNITS
from hubbub.tables.expressions import Column, Expression
from hubbub.tables.functions import PARTS
from hubbub.tables.kinds import Kind

__all__ = [
    "COLUMNS",
    "bound",
    "expressions",
    "far_rows",
    "fillings",
    "positions",
    "questions",
    "rows",
    "some",
    "zeros",
]

COLUMNS = {
    "i": Kind.INTEGER,
    "x": Kind.NUMBER,
    "s": Kind.TEXT,
    "b": Kind.BOOLEAN,
    "d": Kind.DATE,
    "t": Kind.TIMESTAMP,
}
"""The columns of `rows`, beside the unit `id`."""

FAR = "'5881580-07-10'"
CONSTANTS = ["NULL", "9223372036854775807", "(-3)", "0.1", "1.7e308", "'A'", "'2025-01-31'", FAR, "TRUE"]
CONSTANTS += ["DATE '0001-01-01'", "DATE '9999-12-31'", "TIMESTAMP '9999-12-31 23:59:59.999999'"]
LEAVES = [*COLUMNS, "CAST(s AS DATE)", *CONSTANTS]
"""What stands in a place at depth 1. A date of a text is the only one that a row can write."""

FEWER = [*COLUMNS, "CAST(s AS DATE)", "NULL", FAR, "9223372036854775807", "TIMESTAMP '9999-12-31 23:59:59.999999'"]

BESIDE = ["NULL", "9223372036854775807", "1.7e308", "'A'", FAR, "DATE '9999-12-31'", "TIMESTAMP '2025-01-31 12:00:00'"]
"""What stands in a list of constants."""

_ONE = ["-({0})", "NOT {0}", "{0} IS NULL", "{0} IS NOT TRUE", "{0} LIKE 'a%'", "{0} ILIKE '%A_!%' ESCAPE '!'"]
_ONE += [f"{name}({{0}})" for name in ("ABS", "SIGN", "FLOOR", "CEIL", "ROUND", "SQRT", "EXP", "LN", "LOG10", "LENGTH")]
_ONE += [f"{name}({{0}})" for name in ("LOWER", "UPPER", "TRIM", "LTRIM", "RTRIM", "REVERSE")]
_ONE += [f"CAST({{0}} AS {t})" for t in ("BIGINT", "DOUBLE", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP")]
_ONE += ["ROUND({0}, 15)", "ROUND({0}, -15)", "SUBSTR({0}, -2, 5)", "SUBSTR({0}, 0, -1000000)", "SUBSTR({0}, 1000000)"]
_ONE += ["LEFT({0}, -1)", "LEFT({0}, 3)", "RIGHT({0}, -1000000)", "RIGHT({0}, 2)", "REPLACE({0}, 'A', 'bb')"]
_ONE += [f"EXTRACT({part} FROM {{0}})" for part in sorted(PARTS)]
_ONE += [f"DATE_TRUNC('{unit}', {{0}})" for unit in sorted(UNITS)]
_ONE += [f"POWER({{0}}, {n})" for n in ("0", "2", "3", "8", "-2", "0.5", "2.5", "11")] + ["POWER(1.5, {0})"]
_ONE += ["EPOCH({0})", "SPLIT_PART({0}, '-', 2)", "CONCAT({0}, 1)", "LIST_CONTAINS(['A', '-0'], {0})"]
_ONE += ["REGEXP_MATCHES({0}, '^[^0-9]+.?$|inf')", "REGEXP_FULL_MATCH({0}, '\\d{{1,3}}[-.]?(0|1)\\W*')"]
_ONE += [f"({{0}} {sign} INTERVAL '{n}' {unit})" for sign, n, unit in (("+", 4000, "YEAR"), ("-", 1, "MONTH"))]
_ONE += ["({0} - INTERVAL '4000' YEAR)", "({0} + INTERVAL '1464000' DAY)", "({0} - INTERVAL 90000 SECOND)"]
_ONE += ["({0} + 3)", "LAST_DAY({0})", "TIME_BUCKET(INTERVAL '12 hours', {0})", "TIME_BUCKET(INTERVAL '1 month', {0})"]
_TWO = ["EXTRACT(DAY FROM {0} - {1})", "({0} - {1} > INTERVAL '2' DAY)", "CONCAT_WS('-', {0}, {1})"]
_TWO += [f"({{0}} {op} {{1}})" for op in ("+", "-", "*", "/", "//", "%", "=", "<>", "<", ">=", "AND", "OR", "||")]
_TWO += ["{0} IS DISTINCT FROM {1}", "{0} IN ({1})", "{0} NOT IN (NULL, {1})", "CASE {0} WHEN {1} THEN 1 END"]
_TWO += [f"{name}({{0}}, {{1}})" for name in ("COALESCE", "LEAST", "GREATEST", "NULLIF")]
_TWO += [f"{name}({{0}}, {{1}})" for name in ("STARTS_WITH", "ENDS_WITH", "CONTAINS")]
_TWO += [f"DATE_DIFF('{unit}', {{0}}, {{1}})" for unit in sorted(UNITS)]
_TWO += ["IF(b, {0}, {1})", "CASE WHEN s = 'A' THEN {0} WHEN x > 0 THEN NULL ELSE {1} END", "IF({0}, {1}, NULL)"]
_THREE = ["CASE WHEN {0} THEN {1} ELSE {2} END", "{0} BETWEEN {1} AND {2}", "{0} IN ({1}, {2})"]
_THREE += ["IF(b, {0}, IF(x > 0, {1}, {2}))"]
_THREE += [f"{name}({{0}}, {{1}}, {{2}})" for name in ("COALESCE", "LEAST", "GREATEST")]
FORMS = [*((f, 1) for f in _ONE), *((f, 2) for f in _TWO), *((f, 3) for f in _THREE)]


def _column(node: Any) -> Expression:
    return Column(node.name, COLUMNS[node.name])


def _refused(node: Any) -> Expression:
    raise QueryError("no aggregate stands here.")


@cache
def bound(text: str) -> Expression | None:
    """The expression; None where the binder refuses it."""
    try:
        return ExpressionReader(text, _column, _refused).read(sqlglot.parse_one(text, read="duckdb"))
    except QueryError:
        return None


@cache
def _accepted(form: str, places: int) -> tuple[str, ...]:
    """A form over every combination of columns and constants that the binder accepts."""
    leaves = LEAVES if places == 1 else LEAVES[1::2] + FEWER if places == 2 else FEWER
    filled = (form.format(*chosen) for chosen in itertools.product(dict.fromkeys(leaves), repeat=places))
    return tuple(text for text in filled if bound(text) is not None)


@cache
def _beside(form: str, places: int, place: int, kind: Kind | None) -> tuple[tuple[str, ...], ...]:
    """What may stand in the other places where an expression of a kind stands in one: columns of each kind, constants
    where columns may not, and "" in each for the same expression again."""
    here = next((name for name, of in COLUMNS.items() if of is kind), "NULL")
    others: list[tuple[str, ...]] = list(itertools.product(BESIDE if "IN (" in form else COLUMNS, repeat=places - 1))
    others += [("",) * (places - 1)] * (place == 0 and places > 1)
    return tuple(o for o in others if bound(_filled(form, place, o, here)) is not None)


def _filled(form: str, place: int, others: tuple[str, ...], inner: str) -> str:
    return form.format(*[o or f"({inner})" for o in (*others[:place], "", *others[place:])])


def _nested(form: str, places: int, place: int, inner: str) -> Iterator[str]:
    """A form with another in one of its places, beside whatever may stand in the others."""
    node = bound(inner)
    assert node is not None
    for others in _beside(form, places, place, node.kind):
        if bound(text := _filled(form, place, others, inner)) is not None:
            yield text


@cache
def _inner() -> tuple[tuple[str, ...], ...]:
    """The insides of depth 2: for each form its fillings that differ in the kinds of what stands in them."""
    found = []
    for form, places in FORMS:
        kinds: dict[object, str] = {}
        beside = BESIDE if "IN (" in form else [*COLUMNS, "CAST(s AS DATE)"]
        for leaves in itertools.product([*COLUMNS, "CAST(s AS DATE)"], *[beside] * (places - 1)):
            if bound(text := form.format(*leaves)) is not None:
                kinds.setdefault(leaves, text)
        found.append(tuple(kinds.values()))
    return tuple(found)


def fillings(form: str) -> tuple[str, ...]:
    """One form at depth 1: all that the binder accepts."""
    return _accepted(form, dict(FORMS)[form])


def expressions(depth: int) -> Iterator[str]:
    """All of one depth, as SQL. Depth 2 has hundreds of thousands."""
    if depth == 1:
        for form, places in FORMS:
            yield from _accepted(form, places)
        return
    for form, places in FORMS:
        for inner, place in itertools.product(itertools.chain(*_inner()), range(places)):
            yield from _nested(form, places, place, inner)


def some(count: int, *, seed: int = 0, depth: int = 2) -> list[str]:
    """That many expressions, the same for a seed: at depth 2 each form within each place of each other one comes
    before any comes again, at depth 1 each form; what else stands there is drawn."""
    draw = random.Random(seed)
    every = [(form, places, place) for form, places in FORMS for place in range(places if depth > 1 else 1)]
    pairs = [(*outer, inside) for outer in every for inside in (_inner() if depth > 1 else [()])]
    found: dict[str, None] = {}
    for _ in range(50):
        draw.shuffle(pairs)
        for form, places, place, inside in pairs:
            text = draw.choice(_accepted(form, places)) if depth == 1 else _drawn(form, places, place, inside, draw)
            if text is not None:
                found[text] = None
            if len(found) == count:
                return list(found)
    return list(found)


ZEROS = ["-x", "(x * i)", "ROUND(x / 4)", "LEAST(-x, 0.0)"]
"""Numbers that are 0.0 for one row and -0.0 for another."""


def zeros(count: int | None = None, *, seed: int = 0) -> list[tuple[str, str]]:
    """Every form with such a number in each of its places, and the same with 0.0 in place of -0.0; or so many of them,
    each form first once.

    An engine holds the two for equal, and which of equal values a unit's smallest is, or its first, follows from the
    order of rows. So nothing may tell them apart.
    """
    draw, of_forms = random.Random(seed), list[list[tuple[str, str]]]()
    for form, places in FORMS:
        found = []
        for place, zero in itertools.product(range(places), ZEROS):
            for others in _beside(form, places, place, Kind.NUMBER):
                one, two = (_filled(form, place, others, z) for z in (zero, f"({zero} + 0)"))
                if "" not in others and bound(one) is not None and bound(two) is not None:
                    found.append((one, two))
        draw.shuffle(found)
        of_forms.append(found)
    each_form_first = itertools.chain(*itertools.zip_longest(*of_forms))
    return list(dict.fromkeys(pair for pair in each_form_first if pair is not None))[:count]


def _drawn(form: str, places: int, place: int, inside: Sequence[str], draw: random.Random) -> str | None:
    inner = draw.choice(inside)
    node = bound(inner)
    assert node is not None
    others = _beside(form, places, place, node.kind)
    text = _filled(form, place, draw.choice(others), inner) if others else None
    return text if text is not None and bound(text) is not None else None


# -- rows -------------------------------------------------------------------------------------------------------

WHOLE = [0, 1, -1, 7, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), None]
REAL = [0.0, -0.0, 1.0, -1.5, 0.5, 2.0**53, 9.3e18, 1e300, 1.7e308, -1.7e308, 5e-324, 1e-300, None]
REAL += [float("inf"), float("-inf"), float("nan")]
TEXTS = ["", "A", "a ", "\t1", "%", "é", "e\u0301", "ß", "İ", "\U0001f600", "'; --", "\\", "x" * 300, None]
TEXTS += ["1", "-0", "1e400", "9223372036854775808", "1.5", "nan", "inf", "true", "NO", "0x10", "1_000", "12:30"]
TEXTS += ["2025-01-31", "2024-02-30", "0000-01-01", "0001-01-01", "9999-12-31 23:59:59.999999", "2025-01-31T10:00:00Z"]
TEXTS += ["10000-01-01", "5881580-07-10", "5881580-07-11", "294247-01-10 04:00:54.775807", "infinity", "-infinity"]
TEXTS += ["0044-03-15 (BC)", "4714-11-23 (BC)", "290309-12-22 (BC) 00:00:00", "2025-01-31 24:00:00", "epoch"]
DAYS = [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1), dt.date(1582, 10, 10), dt.date(2024, 2, 29), None]
TIMES = [dt.datetime.min, dt.datetime.max, dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), None]
TIMES += [dt.datetime(1900, 1, 1, 0, 0, 1), dt.datetime(2025, 3, 30, 2, 30)]
FAR_DAYS = [2**31 - 1, -(2**31) + 1, 2**31 - 2, -(2**31) + 2, 2932897, -719163, 106751991, 106751992]
"""Days since 1970 that DuckDB holds: both infinities, the ends, the first beyond each year, the last that is a time."""
FAR_TIMES = [2**63 - 1, -(2**63) + 1, 2**63 - 2, -(2**63) + 2, 253402300800000000, -62135596800000001]
UNITS_OF_ROWS = 40


def rows(count: int = 400, *, seed: int = 1, without: str = "") -> pa.Table:
    """Rows that every engine can hold: each value of each column, then values drawn. without: a character that texts
    of an engine do not have."""
    draw = random.Random(seed)
    values: dict[str, list[Any]] = {"i": WHOLE, "x": REAL, "s": TEXTS, "b": [True, False, None], "d": DAYS, "t": TIMES}
    kinds = {"i": pa.int64(), "x": pa.float64(), "s": pa.string(), "b": pa.bool_(), "d": pa.date32()}
    columns: dict[str, Any] = {"id": pa.array([k % UNITS_OF_ROWS for k in range(count)], pa.int64())}
    for name, known in values.items():
        known = [v for v in known if not (without and isinstance(v, str) and without in v)]
        listed = [*known, *(draw.choice(known) for _ in range(count))][:count]
        draw.shuffle(listed)
        columns[name] = pa.array(listed, kinds.get(name, pa.timestamp("us")))
    return pa.table(columns)


def far_rows(count: int = 400, *, seed: int = 2) -> pa.Table:
    """Rows with days and times that DuckDB and Parquet hold and Python does not, and texts with a zero byte."""
    table, draw = rows(count, seed=seed), random.Random(seed)
    days = pa.array([draw.choice(FAR_DAYS) for _ in range(count)], pa.int32()).view(pa.date32())
    times = pa.array([draw.choice(FAR_TIMES) for _ in range(count)], pa.int64()).view(pa.timestamp("us"))
    texts = [draw.choice(["\0", "a\0b", *TEXTS]) for _ in range(count)]
    for name, column in (("d", days), ("t", times), ("s", pa.array(texts, pa.string()))):
        table = table.set_column(table.column_names.index(name), name, column)
    return table


# -- where relations have operands --------------------------------------------------------------------------------

_OVER = "OVER (PARTITION BY id ORDER BY {1}, i)"
POSITIONS = [
    # {0}, {1}: two expressions; c: how many values that are not NULL.
    "SELECT COUNT(c) AS c FROM (SELECT id, {0} AS c FROM p UNION ALL SELECT id, {1} FROM p)",
    "SELECT COUNT(c) AS c FROM (SELECT id, {0} AS c FROM p UNION SELECT id, {1} FROM p)",
    "SELECT COUNT(c) AS c FROM (SELECT id, {0} AS c FROM p INTERSECT SELECT id, {1} FROM p)",
    "SELECT COUNT(c) AS c FROM (SELECT id, {0} AS c FROM p EXCEPT ALL SELECT id, {1} FROM p)",
    "SELECT COUNT(*) AS c FROM p JOIN p AS q ON p.id = q.id AND {0} = {q1}",
    "SELECT COUNT(*) AS c FROM p LEFT JOIN p AS q ON p.id = q.id AND {0} < {q1}",
    "SELECT COUNT(*) AS c FROM p FULL JOIN p AS q ON p.id = q.id AND {0} = {q1}",
    "SELECT COUNT(*) AS c FROM p JOIN w AS q ON {0} = {q1}",
    "SELECT COUNT(*) AS c FROM p WHERE {0} IN (SELECT {1} FROM w)",
    "SELECT COUNT(*) AS c FROM p WHERE {0} NOT IN (SELECT {1} FROM w)",
    "SELECT COUNT(*) AS c FROM p WHERE EXISTS (SELECT 1 FROM w AS q WHERE {q1} = {0})",
    "SELECT COUNT(*) AS c FROM p WHERE {0} = {1} AND {0} >= {1}",
    "SELECT COUNT(c) AS c FROM (SELECT id, LAG({0}, 1, {1}) OVER (PARTITION BY id ORDER BY i) AS c FROM p)",
    "SELECT COUNT(c) AS c FROM (SELECT id, LEAD({0}, 2, {1}) OVER (PARTITION BY id ORDER BY i) AS c FROM p)",
    f"SELECT COUNT(c) AS c FROM (SELECT id, FIRST_VALUE({{0}}) {_OVER} AS c FROM p)",
    f"SELECT COUNT(c) AS c FROM (SELECT id, SUM({{0}}) {_OVER} AS c FROM p)",
    f"SELECT COUNT(c) AS c FROM (SELECT id, AVG({{0}}) {_OVER} AS c FROM p)",
    f"SELECT COUNT(c) AS c FROM (SELECT id, MAX({{0}}) {_OVER} AS c FROM p)",
    "SELECT COUNT(c) AS c FROM (SELECT id, RANK() OVER (PARTITION BY id, {0} ORDER BY {1}) AS c FROM p)",
    "SELECT COUNT(c) AS c FROM (SELECT DISTINCT id, {0} AS c, {1} AS e FROM p)",
    *(
        f"SELECT COUNT(c) AS c FROM (SELECT id, {{1}} AS k, {inner}({{0}}) AS c FROM p GROUP BY id, {{1}})"
        for inner in ("COUNT", "SUM", "AVG", "MIN", "MAX", "MEDIAN", "BOOL_AND", "BOOL_OR")
    ),
    "SELECT COUNT(c) AS c FROM (SELECT id, COUNT(DISTINCT {0}) AS c FROM p GROUP BY id HAVING MIN({0}) < MAX({1}))",
    "SELECT COUNT(DISTINCT {0}) AS c FROM p WHERE {1} IS NOT NULL",
    "SELECT COUNT(*) FILTER (WHERE {0} = {1}) AS c FROM p",
    "SELECT {0} AS k, COUNT({1}) AS c FROM p GROUP BY {0}",
]
"""The places that a relation has for expressions. `{q1}`: the second, of another relation's row."""

_V = "(VALUES {v}) AS v(a)"
VALUES = [
    f"SELECT COUNT(*) AS c FROM p JOIN {_V} ON {{0}} = a",
    f"SELECT COUNT(a) AS c FROM p LEFT JOIN {_V} ON {{0}} >= a",
    f"SELECT COUNT(*) AS c FROM p WHERE {{0}} IN (SELECT a FROM {_V})",
    f"SELECT COUNT(*) AS c FROM p WHERE {{0}} NOT IN (SELECT a FROM {_V})",
    f"SELECT a AS k, COUNT({{0}}) AS c FROM p JOIN {_V} ON {{0}} = a GROUP BY a",
    f"SELECT a AS k, COUNT({{0}}) AS c FROM {_V} LEFT JOIN p ON {{0}} = a GROUP BY a",
    f"SELECT COUNT(c) AS c FROM (SELECT p.id, COALESCE({{0}}, a) AS c FROM p JOIN {_V} ON {{0}} IS DISTINCT FROM a)",
    f"SELECT COUNT(c) AS c FROM (SELECT p.id, MAX(LEAST({{0}}, a)) AS c FROM p JOIN {_V} ON b GROUP BY p.id)",
]
"""Where rows that are written in a question meet those of people."""

LISTED = ["(1), (NULL)", "(9223372036854775807), (-1)", "(0.1), (1.7e308)", "(1), (2.5)", "(-9.5e300), (0)"]
LISTED += ["('A'), ('-0')", f"('2025-01-31'), ({FAR})", "(TRUE), (NULL)", "(NULL), (NULL)"]
LISTED += ["(DATE '0001-01-01'), (DATE '9999-12-31')", "(TIMESTAMP '9999-12-31 23:59:59.999999'), (NULL)"]
LISTED += ["(DATE '2025-01-31'), (TIMESTAMP '0001-01-01 00:00:00')"]
"""Rows of one column: both ends of each kind, NULL, kinds that meet in one column."""


def positions(first: str, second: str) -> Iterator[str]:
    """A question for each place, with two expressions in it. Some are refused for what they are."""
    for position in POSITIONS:
        yield position.format(first if "q1" not in position else _at(first, "p"), second, q1=_at(second, "q"))


def _at(text: str, place: str) -> str:
    """An expression whose columns are those of one relation."""
    tree = sqlglot.parse_one(text, read="duckdb")
    for column in list(tree.find_all(sqlglot.exp.Column)):
        column.set("table", sqlglot.exp.to_identifier(place))
    return tree.sql("duckdb")


def questions(count: int | None = None, *, seed: int = 0) -> list[str]:
    """Every place with every pair of kinds, of columns, constants and dates made of texts, and with every list of
    VALUES; or that many of them drawn.

    They ask the tables `p` (private, unit `id`) and `w` (public), both with the columns of `rows`.
    """
    ends = [*COLUMNS, "CAST(s AS DATE)", "CAST(s AS TIMESTAMP)", FAR, "9223372036854775807", "NULL"]
    every = [q for a, b in itertools.product(ends, repeat=2) if (a, b) != ("NULL", "NULL") for q in positions(a, b)]
    every += [q.format(_at(a, "p"), v=v) for q, a, v in itertools.product(VALUES, ends, LISTED)]
    if count is None:
        return every
    draw = random.Random(seed)
    draw.shuffle(every)
    return every[:count]
