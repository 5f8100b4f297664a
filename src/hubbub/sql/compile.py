"""From a plan to one SQL text: bounded, integer sums per group, in DuckDB's dialect.

The text is made of our own nodes: every name is quoted, every constant printed from its value.

    scanned    the columns the question reads, normalised so that no row can raise; the unit
    filtered   WHERE; rows without a unit are dropped; values in steps of the grid
    owned      values clamped to the declared range
    placed     rows in declared groups, the group as its position in the declared order
    per_unit   one row per unit and group: rows n, values v, sums s of integers on the grid
    bounded    at most R rows per unit and group: counts are cut at R; where a unit has v > R values, its sum is
               scaled to s R / v, truncated toward zero, in 128 bits
    kept       at most C groups per unit, chosen by a hash of (unit, group), ties by the group itself
    (answer)   sums over units, one row per group

Scaling keeps a unit's mean and needs no choice among its rows, so neither scan order nor ties can matter. Which
groups are kept is a function of the unit's own rows. So every row of `kept` is owned, and adding a unit changes the
answer by that unit's bounded part alone.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import assert_never

from hubbub.errors import InternalError, QueryError
from hubbub.sql.functions import WRITE
from hubbub.tables.expressions import (
    Arithmetic,
    Call,
    Case,
    Column,
    Compare,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    Logic,
    Negate,
    Not,
    columns_of,
    rebuild,
)
from hubbub.tables.functions import FUNCTIONS
from hubbub.tables.kinds import NUMERIC, Kind
from hubbub.tables.plan import Counting, Measurement, Plan
from hubbub.tables.question import Aggregate, Key, Question

__all__ = ["aggregate_sql", "choice_sql", "computed_sql", "expression_sql", "image_sql", "quote"]


MAX_EXPRESSION = 200_000
_FLOAT_FUNCTIONS = {"ABS", "SIGN", "FLOOR", "CEIL", "ROUND", "SQRT", "EXP", "LN", "LOG10"}
_TYPES = {
    Kind.INTEGER: "BIGINT",
    Kind.NUMBER: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}


def quote(name: str) -> str:
    """A name as a quoted identifier.

    >>> quote('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def constant_sql(value: object) -> str:
    """A constant, printed from its value."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return f"({value})" if value < 0 else str(value)
        case Fraction() | float():
            return f"CAST('{float(value)!r}' AS DOUBLE)"
        case str():
            return _text_sql(value)
        case dt.datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
    raise InternalError(f"a constant of type {type(value).__name__}")


def _text_sql(value: str) -> str:
    if "\0" in value:
        return "(" + " || chr(0) || ".join(_text_sql(part) for part in value.split("\0")) + ")"
    return "'" + value.replace("'", "''") + "'"


def _double(sql: str) -> str:
    return f"CAST({sql} AS DOUBLE)"


def expression_sql(node: Expression) -> str:
    """A row expression; total on every row (see `hubbub.tables.expressions`).

    Raises QueryError where the text would grow beyond all use.
    """
    sql = _expression(node)
    if len(sql) > MAX_EXPRESSION:
        raise QueryError("this expression is too complex: divisions, remainders or CASE are nested too deeply.")
    return sql


def _expression(node: Expression) -> str:
    if node.kind is Kind.NULL:
        # Without a type of its own: a typed NULL beside a text would make the engine cast the text, and fail on it.
        return "NULL"
    match node:
        case Column(name=name):
            return quote(name)
        case Literal(value=value):
            return constant_sql(value)
        case Arithmetic() | Negate():
            raw = _raw(node)
            return f"(CASE WHEN isfinite({raw}) THEN {raw} END)"
        case Compare(op=op, left=left, right=right):
            a, b = _aligned(left, right)
            return f"({a} {op} {b})"
        case Logic(op=op, terms=terms):
            return f"({f' {op} '.join(map(expression_sql, terms))})"
        case Not(operand=operand):
            return f"(NOT {expression_sql(operand)})"
        case IsNull(operand=operand):
            return f"({expression_sql(operand)} IS NULL)"
        case InList(operand=operand, values=values):
            return f"({_in_terms(operand, values)})"
        case Like(operand=operand, pattern=pattern, ignore_case=ignore_case):
            word = "ILIKE" if ignore_case else "LIKE"
            return f"({expression_sql(operand)} {word} {_pattern_sql(pattern)})"
        case Case():
            return _case(node)
        case Call(name=name):
            if name in _FLOAT_FUNCTIONS:
                raw = _raw(node)
                return f"(CASE WHEN isfinite({raw}) THEN {raw} END)"
            return _call(node)
    assert_never(node)


def _pattern_sql(parts: tuple[str, ...]) -> str:
    """A pattern, with one escape character that no engine changes, and only where it is needed.

    DuckDB looks at the escape character row by row and fails on the first row that meets a wrong one, so a user's own
    never reaches it.
    """
    texts = [part[1:] for part in parts if part[0] == "="]
    if not any(c in text for text in texts for c in "%_"):
        return _text_sql("".join(part[1:] if part[0] == "=" else part for part in parts))
    escaped = "".join(re.sub(r"([\\%_])", r"\\\1", part[1:]) if part[0] == "=" else part for part in parts)
    return f"{_text_sql(escaped)} ESCAPE '\\'"


def _raw(node: Expression) -> str:
    """A number as a double that may be infinite or NaN. Through + - * and a sign, what is not finite stays so."""
    sql = _raw_unchecked(node)
    if len(sql) > MAX_EXPRESSION:
        raise QueryError("this expression is too complex: divisions or remainders are nested too deeply.")
    return sql


def _raw_unchecked(node: Expression) -> str:
    match node:
        case Negate(operand=operand):
            return f"(-{_raw(operand)})"
        case Arithmetic(op=("+" | "-" | "*") as op, left=left, right=right):
            return f"({_raw(left)} {op} {_raw(right)})"
        case Arithmetic(op="/", left=left, right=right):
            return f"({_raw(left)} / {_divisor(right)})"
        case Arithmetic(op="//", left=left, right=right):
            return f"floor({_raw(left)} / {_divisor(right)})"
        case Arithmetic(left=left, right=right):
            a, b = _raw(left), _divisor(right)
            return f"({a} - {b} * floor({a} / {b}))"
        case Call(name=name, arguments=(first, *rest)) if name in _FLOAT_FUNCTIONS:
            return WRITE[name]([_raw(first), *map(expression_sql, rest)])
        case _:
            return _double(expression_sql(node))


def _call(node: Call) -> str:
    """A function whose arguments are values or NULL; where it may give any of them, they have one type."""
    arguments = node.arguments
    if FUNCTIONS[node.name].gives is None and node.name != "DATE_TRUNC":
        return WRITE[node.name]([_as_kind(a, node.kind) for a in arguments])
    if node.name == "DATE_DIFF":
        return WRITE[node.name]([expression_sql(arguments[0]), *(_as_kind(a, Kind.TIMESTAMP) for a in arguments[1:])])
    takes = FUNCTIONS[node.name].takes
    sql = WRITE[node.name]([_argument(a, takes[min(i, len(takes) - 1)]) for i, a in enumerate(arguments)])
    if node.name == "DATE_TRUNC" and node.kind is Kind.DATE:
        return f"TRY_CAST({sql} AS DATE)"
    return f"(CASE WHEN isfinite({sql}) THEN {sql} END)" if node.name == "CAST_NUMBER" else sql


def _argument(node: Expression, takes: frozenset[Kind]) -> str:
    """An argument; where it is NULL itself, of a type that the function takes."""
    if node.kind is not Kind.NULL:
        return expression_sql(node)
    return f"CAST(NULL AS {_TYPES[next(k for k in (Kind.TEXT, Kind.TIMESTAMP, Kind.NUMBER) if k in takes)]})"


def _as_kind(node: Expression, kind: Kind) -> str:
    """An expression as a value of a kind that holds all of its own."""
    sql = expression_sql(node)
    if kind in (Kind.NULL, node.kind):
        return _double(sql) if kind is Kind.NUMBER else sql
    return f"TRY_CAST({sql} AS {_TYPES[kind]})"


def _divisor(node: Expression) -> str:
    """A finite number other than 0, or NULL."""
    if isinstance(node, Literal) and node.value:
        return _double(constant_sql(node.value))
    raw = _raw(node)
    return f"(CASE WHEN isfinite({raw}) AND {raw} <> 0 THEN {raw} END)"


def _in_terms(operand: Expression, values: tuple[Literal, ...]) -> str:
    """`operand IN (...)` with all sides in one type, by casts that cannot fail."""
    widest = Literal(next((v.value for v in values if v.kind in (Kind.NUMBER, Kind.TIMESTAMP)), None))
    a = _aligned(operand, widest)[0] if widest.value is not None else expression_sql(operand)
    target: Expression = widest if widest.value is not None else operand
    return f"{a} IN ({', '.join(_aligned(v, target)[0] for v in values)})"


def _aligned(left: Expression, right: Expression) -> tuple[str, str]:
    """Both sides in one type, by casts that cannot fail."""
    a, b = expression_sql(left), expression_sql(right)
    kinds = {left.kind, right.kind}
    if Kind.NUMBER in kinds and kinds <= NUMERIC:
        return _double(a), _double(b)
    if kinds == {Kind.DATE, Kind.TIMESTAMP}:
        return f"TRY_CAST({a} AS TIMESTAMP)", f"TRY_CAST({b} AS TIMESTAMP)"
    return a, b


def _case(node: Case) -> str:
    as_double = node.kind is Kind.NUMBER

    def branch(value: Expression) -> str:
        sql = expression_sql(value)
        return _double(sql) if as_double else sql

    parts = " ".join(
        f"WHEN {expression_sql(condition)} THEN {branch(value)}"
        for condition, value in zip(node.conditions, node.values, strict=True)
    )
    return f"(CASE {parts} ELSE {branch(node.default)} END)"


def aggregate_sql(plan: Plan, source: str, columns: Mapping[str, str], unit: str | None) -> str:
    """The engine's part of a question: one row per group that is not empty, of exact integers.

    source: a relation, already safe to paste. columns: for each column its normalised expression over `source`.
    unit: the unit's normalised expression, None where each row is a unit.

    The result has columns g0, g1, ... (positions in the declared domains) and m0, m1, ... (measurements).
    """
    stages = [*_owned(plan, source, columns, unit), *_placed(plan), *_contributions(plan)]
    body = ",\n".join(f"{name} AS (\n{sql}\n)" for name, sql in stages)
    keys = [f"g{i}" for i in range(len(plan.domains))]
    sums = [f"CAST(coalesce(sum(m{i}), 0) AS HUGEINT) AS m{i}" for i in range(len(plan.measurements))]
    group = f"\nGROUP BY {', '.join(keys)}" if keys else ""
    return f"WITH {body}\nSELECT {', '.join(keys + sums)}\nFROM {stages[-1][0]}{group}"


Stage = tuple[str, str]


def _owned(plan: Plan, source: str, columns: Mapping[str, str], unit: str | None) -> Iterator[Stage]:
    question = plan.question
    needed: frozenset[str] = frozenset()
    keys = [k.expression for k in question.keys]
    for expression in (question.where, *keys, *(m.argument for m in plan.measurements)):
        needed |= columns_of(expression) if expression is not None else frozenset()
    # Names of ours (c0, c1, ...): a user's column can never meet a name that this text uses.
    names = {name: f"c{i}" for i, name in enumerate(sorted(needed))}
    owner = [f"{unit} AS unit"] if unit is not None else []
    fields = owner + [f"{columns[name]} AS {alias}" for name, alias in names.items()]
    yield "scanned", f"  SELECT {', '.join(fields) or '1 AS one'}\n  FROM {source}"

    def sql(node: Expression) -> str:
        return expression_sql(_renamed(node, names))

    conditions = [f"coalesce({sql(question.where)}, FALSE)"] if question.where is not None else []
    conditions += ["unit IS NOT NULL"] if unit is not None else []
    keep = f"\n  WHERE {' AND '.join(conditions)}" if conditions else ""
    values = {i: m for i, m in enumerate(plan.measurements) if m.argument is not None}
    parts = ["unit"] if unit is not None else []
    parts += [f"{_key(k, sql)} AS k{i}" for i, k in enumerate(question.keys)]
    parts += [f"{_steps(m, sql)} AS x{i}" for i, m in values.items()]
    yield "filtered", f"  SELECT {', '.join(parts) or '1 AS one'}\n  FROM scanned{keep}"
    clamped = "".join(f", {_clamped(f'x{i}', m)} AS v{i}" for i, m in values.items())
    yield "owned", f"  SELECT *{clamped}\n  FROM filtered"


def _key(key: Key, sql: Callable[[Expression], str]) -> str:
    text = sql(key.expression)
    return text if key.kind is key.expression.kind else f"TRY_CAST({text} AS {_TYPES[key.kind]})"


def _renamed(node: Expression, names: Mapping[str, str]) -> Expression:
    if isinstance(node, Column):
        return Column(names[node.name], node.kind)
    return rebuild(node, lambda child: _renamed(child, names))


def _steps(measurement: Measurement, sql: Callable[[Expression], str]) -> str:
    """One row's value in steps of the grid, rounded half to even, not yet clamped; or the value that is counted."""
    assert measurement.argument is not None
    value = sql(measurement.argument)
    if measurement.counting is Counting.VALUES:
        return value
    return f"round_even({_double(value)} * {_double(repr(2.0**-measurement.grid.exponent))}, 0)"


def _clamped(x: str, measurement: Measurement) -> str:
    """One row's integer: clamped, less the centre. NULL is left out, or counts as the midpoint."""
    if measurement.counting is Counting.VALUES:
        return f"CASE WHEN {x} IS NOT NULL THEN 1 END"
    floor, ceiling, centre = measurement.floor, measurement.ceiling, measurement.centre
    missing = "NULL" if measurement.nullable else str((floor + ceiling) // 2 - centre)
    return (
        f"CASE WHEN {x} IS NULL THEN {missing} WHEN {x} <= {floor} THEN {floor - centre} "
        f"WHEN {x} >= {ceiling} THEN {ceiling - centre} ELSE TRY_CAST({x} AS BIGINT) - ({centre}) END"
    )


def _placed(plan: Plan) -> Iterator[Stage]:
    """Only rows in declared groups, the group as its position: a join with public, unique keys keeps ownership."""
    if not plan.domains:
        return
    for i, domain in enumerate(plan.domains):
        kind = plan.question.keys[i].kind
        rows = ", ".join(f"({constant_sql(value)}, {position})" for position, value in enumerate(domain))
        yield (
            f"d{i}",
            f"  SELECT CAST(key AS {_TYPES[kind]}) AS key, g{i}\n  FROM (VALUES {rows}) AS d(key, g{i})",
        )
    joins = "".join(f"\n  JOIN d{i} ON owned.k{i} IS NOT DISTINCT FROM d{i}.key" for i in range(len(plan.domains)))
    groups = ", ".join(f"d{i}.g{i}" for i in range(len(plan.domains)))
    yield "placed", f"  SELECT owned.*, {groups}\n  FROM owned{joins}"


def _contributions(plan: Plan) -> Iterator[Stage]:
    """Each unit's bounded part of each measurement."""
    rows = "placed" if plan.domains else "owned"
    keys = "".join(f"g{i}, " for i in range(len(plan.domains)))
    if plan.each_row:
        parts = ", ".join(f"{_single_row(i, m)} AS m{i}" for i, m in enumerate(plan.measurements))
        yield "bounded", f"  SELECT {keys}{parts}\n  FROM {rows}"
        return
    totals = ["count(*) AS n"]
    for i, m in enumerate(plan.measurements):
        if m.argument is not None:
            totals.append(f"count(v{i}) AS n{i}")
        if m.counting is Counting.SUM:
            totals.append(f"CAST(sum(v{i}) AS HUGEINT) AS s{i}")
    yield "per_unit", f"  SELECT unit, {keys}{', '.join(totals)}\n  FROM {rows}\n  GROUP BY {keys}unit"
    parts = ", ".join(f"{_bounded(i, m, plan.bounds.rows)} AS m{i}" for i, m in enumerate(plan.measurements))
    yield "bounded", f"  SELECT unit, {keys}{parts}\n  FROM per_unit"
    if plan.domains and plan.bounds.groups < plan.group_count:
        order = f"hash(unit, {keys.rstrip(', ')}), {keys.rstrip(', ')}"
        yield (
            "kept",
            f"  SELECT * FROM bounded\n  QUALIFY row_number() OVER (PARTITION BY unit ORDER BY {order}) "
            f"<= {plan.bounds.groups}",
        )


def _single_row(i: int, measurement: Measurement) -> str:
    return "1" if measurement.argument is None else f"v{i}"


def _bounded(i: int, measurement: Measurement, rows: int) -> str:
    match measurement.counting:
        case Counting.UNITS:
            return "1"
        case Counting.ROWS:
            return f"least(n, {rows})"
        case Counting.VALUES:
            return f"least(n{i}, {rows})"
        case Counting.SUM:
            return f"CASE WHEN n{i} > {rows} THEN s{i} * {rows} // greatest(n{i}, 1) ELSE s{i} END"
    assert_never(measurement.counting)


def choice_sql(question: Question) -> str:
    """The part above the aggregate: which rows of the table `released` are shown, in which order, and what is
    computed from them.

    `released` has a column `place` beside the keys and aggregates; ties are broken by it, so that the order of an
    answer is a function of the released values alone. The result has `place`, then each computed column.
    """
    having = f" WHERE {expression_sql(question.having)}" if question.having is not None else ""
    terms = [
        f"{expression_sql(o.by)} {'DESC' if o.descending else 'ASC'} NULLS {'FIRST' if o.nulls_first else 'LAST'}"
        for o in question.order
    ]
    limit = f" LIMIT {question.limit}" if question.limit is not None else ""
    offset = f" OFFSET {question.offset}" if question.offset else ""
    columns = ", ".join(["place", *computed_sql(question)])
    return f"SELECT {columns} FROM released{having} ORDER BY {', '.join([*terms, 'place'])}{limit}{offset}"


def computed_sql(question: Question) -> list[str]:
    """The computed columns of an answer, as expressions over the table `released`."""
    return [expression_sql(o.what) for o in question.outputs if not isinstance(o.what, Key | Aggregate)]


def image_sql(expression: Expression, columns: Sequence[Column]) -> str:
    """An expression's value for each row of the product of the tables `values0`, `values1`, ..., one for each column.

    Each has the columns `place` and `value`; the result is in the order of the places, the last table fastest.
    """
    names = {column.name: f"c{i}" for i, column in enumerate(columns)}
    fields = ", ".join(f"values{i}.value AS c{i}, values{i}.place AS p{i}" for i in range(len(columns)))
    tables = ", ".join(f"values{i}" for i in range(len(columns)))
    order = ", ".join(f"p{i}" for i in range(len(columns)))
    text = _key(Key(expression), lambda node: expression_sql(_renamed(node, names)))
    return f"SELECT {text} FROM (SELECT {fields} FROM {tables}) ORDER BY {order}"
