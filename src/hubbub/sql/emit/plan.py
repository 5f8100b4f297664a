"""From a plan to one SQL text: bounded, integer sums per group, in the dialect of an engine.

The text is made of our own nodes: every name is quoted or our own (`c0`, `c1`, ...), every constant printed from its
value; what differs between engines stands in `hubbub.sql.emit.dialect`.
First the relation, a stage for each node (`hubbub.sql.emit.relation`), with the column `unit`; then

    filtered   the keys; values in steps of the grid
    owned      values clamped to the declared range
    placed     rows in declared groups, the group as its position in the declared order
    per_unit   one row per unit and group: rows n, values n0, n1, ..., sums s0, s1, ... of integers on the grid
    bounded    at most R rows per unit and group: counts are cut at R; where a unit has v > R values, its sum is
               scaled to s R / v, truncated toward zero, in 128 bits
    kept       at most C groups per unit, chosen by a hash of (unit, group), ties by the group itself
    (answer)   sums over units, one row per group

Where norms are clipped, `sized` and `weighted` come after `per_unit`, `bounded` weighs a unit's integers, and no group
is dropped (`hubbub.sql.emit.clipping`).

Scaling keeps a unit's mean and needs no choice among its rows, so neither scan order nor ties can matter. Which
groups are kept is a function of the unit's own rows. So every row of `kept` is owned, and adding a unit changes the
answer by that unit's bounded part alone. What cannot be scaled (the values that quantiles and COUNT(DISTINCT x) look
at) is chosen among a unit's own rows by a hash of the value, in a text of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from hubbub.sql.emit.clipping import clipped_sql, clipping_stages
from hubbub.sql.emit.dialect import Dialect
from hubbub.sql.emit.expression import Together, expression_sql, renamed
from hubbub.sql.emit.lists import beside
from hubbub.sql.emit.place import Place
from hubbub.sql.emit.relation import Stage, relation_stages
from hubbub.sql.emit.substituted import substituted
from hubbub.tables.aggregate_query import Key
from hubbub.tables.expressions import Column, Expression, columns_of
from hubbub.tables.kinds import TEMPORAL, Kind
from hubbub.tables.measure import Measurement, MeasurementKind, Value
from hubbub.tables.plan import PLACES, Plan, Search
from hubbub.tables.relations import names_read
from hubbub.tables.repeats import cuts

__all__ = [
    "aggregate_sql",
    "columns_read",
    "image_sql",
    "listed_sql",
    "placed_sql",
    "search_sql",
    "summed",
]


def aggregate_sql(plan: Plan, places: Mapping[str, Place], dialect: Dialect) -> str:
    """The engine's part of a question: one row per group that is not empty, of exact integers.

    places: where each declared table is. A public relation is expected as a view under its own place's name.

    The result has columns g0, g1, ... (positions in the declared domains; the key itself where groups are found
    privately) and m0, m1, ...: one for each measurement that is a sum over units.
    """
    if plan.search is not None:
        return search_sql(plan.search, places, dialect)
    stages = [*_owned(plan, places, dialect), *_placed(plan, dialect), *_contributions(plan, dialect)]
    keys = [f"g{i}" for i in range(len(plan.domains))]
    sums = [f"{dialect.grand_total(f'm{i}')} AS m{i}" for i, m in enumerate(plan.measurements) if summed(m)]
    group = f"\nGROUP BY {', '.join(keys)}" if keys else ""
    if not keys and not sums:
        sums = ["0 AS none"]
    return _text([*stages], f"SELECT {', '.join(keys + sums)}\nFROM {stages[-1][0]}{group}", dialect)


def listed_sql(plan: Plan, places: Mapping[str, Place], i: int, dialect: Dialect) -> str:
    """The text for measurement number i, which is not a sum over units: DISTINCT or QUANTILES.

    The result has columns g0, g1, ... and `m` (how many different values), or `x` and `m` (how often each step).
    """
    keys = [f"g{j}" for j in range(len(plan.domains))]
    stages = [*_owned(plan, places, dialect), *_placed(plan, dialect), *_chosen(plan, i, dialect)]
    group = ", ".join([*keys, *([] if plan.measurements[i].counting is MeasurementKind.DISTINCT else ["x"])])
    what = (
        ["count(DISTINCT x) AS m"]
        if plan.measurements[i].counting is MeasurementKind.DISTINCT
        else ["x", "sum(n) AS m"]
    )
    grouped = f"\nGROUP BY {group}" if group else ""
    return _text(stages, f"SELECT {', '.join([*keys, *what])}\nFROM {stages[-1][0]}{grouped}", dialect)


def placed_sql(plan: Plan, places: Mapping[str, Place], dialect: Dialect) -> str:
    """The rows of a plan in their groups, with all values: what the other texts add up."""
    return _text([*_owned(plan, places, dialect), *_placed(plan, dialect)], f"SELECT *\nFROM {_rows(plan)}", dialect)


def summed(measurement: Measurement) -> bool:
    """Whether a measurement is a sum over units of bounded integers."""
    return measurement.counting not in (MeasurementKind.DISTINCT, MeasurementKind.QUANTILES)


def _text(stages: Sequence[Stage], select: str, dialect: Dialect) -> str:
    """The stages and what is selected of them.

    Postgres writes a stage's expressions out wherever a later one reads them, which writes them out again: of ten
    UNION ALLs within each other that is a plan of gigabytes. A short text has few stages, and reads few of a large
    table's rows by an index where filters reach the table; but a text of 1,100 characters may be 800 MB, too.
    """
    fence = dialect.spelling.fence
    if fence and sum(len(sql) for _, sql in stages) <= _SHORT and substituted(stages) <= _FEW:
        fence = ""
    body = ",\n".join(f"{name} AS (\n{sql}{fence}\n)" for name, sql in stages)
    return f"WITH {body}\n{select}"


_SHORT: Final = 4_000
"""Characters of all stages up to which an engine may write them into each other."""
_FEW: Final = 40_000
"""Words and signs that one may have then: some megabytes of a plan."""


def columns_read(plan: Plan) -> frozenset[str]:
    """The columns that the texts of a plan read, beside those that name units or lead to them."""
    return names_read(plan.question.relation).union(*map(columns_of, _above(plan)))


def _above(plan: Plan) -> list[Expression]:
    """What is computed of the rows of a plan's relation."""
    arguments = [e for m in plan.measurements for e in (m.argument, *(v.argument for v in m.values)) if e is not None]
    return [*(k.expression for k in plan.keys), *arguments]


def _owned(
    plan: Plan, places: Mapping[str, Place], dialect: Dialect, *, x: Callable[[Value, str], str] | None = None
) -> Iterator[Stage]:
    """The relation, and the two stages above it.

    x: what stands for a value's steps, from the text of its argument; its integers are then made elsewhere.
    """
    question = plan.question
    # Names of ours (c0, c1, ...): a user's column can never meet a name that this text uses.
    names = {name: f"c{i}" for i, name in enumerate(sorted(columns_read(plan)))}
    cut = cuts(question.relation, _above(plan))
    stages = list(relation_stages(question.relation, places, names, dialect, with_unit=_has_unit(plan), cut=cut))
    yield from stages

    together = Together(dialect)

    def sql(node: Expression) -> str:
        return together.sql(renamed(node, names))

    parts = ["unit"] if _has_unit(plan) else []
    parts += [f"{_key(k, sql, dialect)} AS k{i}" for i, k in enumerate(plan.keys)]
    values = plan.values.items()
    steps = x or (lambda value, text: dialect.steps(text, value.grid.exponent))
    parts += [f"{steps(value, sql(value.argument))} AS x{i}" for value, i in values]
    parts += [f"{dialect.key(sql(e), e.kind)} AS y{i}" for e, i in plan.counted.items()]
    yield "filtered", f"  SELECT {', '.join(parts) or '1 AS one'}\n  FROM {stages[-1][0]}"
    clamped = [] if x else [f", {_clamped(f'x{i}', value, dialect)} AS v{i}" for value, i in values]
    yield "owned", f"  SELECT *{''.join(clamped)}\n  FROM filtered"


def _has_unit(plan: Plan) -> bool:
    return not (plan.one_row and plan.question.each_row)


def _key(key: Key, sql: Callable[[Expression], str], dialect: Dialect) -> str:
    text = sql(key.expression)
    return text if key.kind is key.expression.kind else dialect.cast(text, key.expression.kind, key.kind)


def _clamped(x: str, value: Value, dialect: Dialect) -> str:
    """One row's integer: clamped, less the centre. NULL is left out, or counts as the midpoint."""
    floor, ceiling, centre = value.floor, value.ceiling, value.centre
    missing = "NULL" if value.nullable else str((floor + ceiling) // 2 - centre)
    return dialect.clamped(x, value.grid.exponent, floor, ceiling, centre, missing)


def _placed(plan: Plan, dialect: Dialect) -> Iterator[Stage]:
    """Only rows in declared groups, the group as its position: a join with public, unique keys keeps ownership."""
    if not plan.domains:
        return
    joins, groups, listed = "", [], beside(plan, dialect)
    for i, domain in enumerate(plan.domains):
        kind = plan.keys[i].kind
        if domain is None:
            placed = f"owned.k{i}"
            group = dialect.in_years(placed, kind) if kind in TEMPORAL else dialect.key(placed, kind)
            groups.append(f"{group} AS g{i}")
            continue
        if i in listed:
            rows = listed[i]
        else:
            known = (f"({dialect.constant_as(value, kind)}, {position})" for position, value in enumerate(domain))
            rows = f"(VALUES {', '.join(known)})"
        key = "CAST(key AS " + dialect.types[kind] + ")"
        yield (
            f"d{i}",
            # Each key once, whatever was declared: a row can meet one place alone.
            f"  SELECT key, min(g{i}) AS g{i} FROM (\n"
            f"    SELECT {dialect.column_text('key') if kind is Kind.TEXT else key} AS key, g{i}\n"
            f"    FROM {rows} AS d(key, g{i})\n  ) AS known GROUP BY key",
        )
        joins += f"\n  JOIN d{i} ON {dialect.meets(f'owned.k{i}', f'd{i}', kind, None in domain)}"
        groups.append(f"d{i}.g{i}")
    yield "placed", f"  SELECT owned.*, {', '.join(groups)}\n  FROM owned{joins}"


def _rows(plan: Plan) -> str:
    return "placed" if plan.domains else "owned"


def _row(plan: Plan, measurement: Measurement, dialect: Dialect) -> str:
    """What one row adds to a measurement: an integer, or NULL for nothing."""
    match measurement.counting:
        case MeasurementKind.SUM:
            return f"v{plan.values[measurement.values[0]]}"
        case MeasurementKind.PRODUCT:
            x, y = (f"v{plan.values[v]}" for v in measurement.values)
            return _product(x, y, measurement, dialect)
    if measurement.argument is None:
        return "1"
    return f"CASE WHEN y{plan.counted[measurement.argument]} IS NOT NULL THEN 1 END"


def _product(x: str, y: str, measurement: Measurement, dialect: Dialect) -> str:
    """floor(x y / 2^shift) - centre, exactly: the product of any two factors is at most 2^62."""
    divisor = 2**measurement.shift
    product = dialect.product(x, y)
    # Quotients are truncated toward zero; what is below zero and has a remainder is one lower.
    floored = product
    if divisor != 1:
        rest = dialect.tried(f"({product} % {divisor})")
        below = f"CASE WHEN {product} < 0 AND {rest} <> 0 THEN 1 ELSE 0 END"
        floored = dialect.tried(f"({dialect.quotient(product, divisor)} - {below})")
    return dialect.tried(f"({floored} - ({measurement.centre}))")


def _contributions(plan: Plan, dialect: Dialect) -> Iterator[Stage]:
    """Each unit's bounded part of each measurement."""
    rows = _rows(plan)
    keys = "".join(f"g{i}, " for i in range(len(plan.domains)))
    sums = [(i, m) for i, m in enumerate(plan.measurements) if summed(m)]
    if plan.one_row:
        parts = ", ".join(f"{_row(plan, m, dialect)} AS m{i}" for i, m in sums)
        yield "bounded", f"  SELECT {keys}{parts or '1 AS one'}\n  FROM {rows}"
        return
    totals = ["count(*) AS n"]
    for i, m in sums:
        if m.counting in (MeasurementKind.SUM, MeasurementKind.PRODUCT):
            row = _row(plan, m, dialect)
            totals += [f"count({row}) AS n{i}", f"{dialect.total(row)} AS s{i}"]
        elif m.argument is not None:
            totals.append(f"count(y{plan.counted[m.argument]}) AS n{i}")
    yield "per_unit", f"  SELECT unit, {keys}{', '.join(totals)}\n  FROM {rows}\n  GROUP BY {keys}unit"
    parts = ", ".join(f"{_bounded(i, m, plan, dialect)} AS m{i}" for i, m in sums)
    if plan.clipping:
        yield from clipping_stages(plan, dialect)
    source = "weighted" if plan.clipping else "per_unit"
    yield "bounded", f"  SELECT unit, {keys}{parts or '1 AS one'}\n  FROM {source}"
    if not plan.clipping and _too_many_groups(plan):
        yield "kept", dialect.first("bounded", "*", "unit", _order_of_groups(plan, dialect), plan.bounds.groups)


def _too_many_groups(plan: Plan) -> bool:
    """Whether a unit may be in more groups than it counts in."""
    return bool(plan.domains) and (plan.group_count is None or plan.bounds.groups < plan.group_count)


def _order_of_groups(plan: Plan, dialect: Dialect) -> str:
    """By a hash of the unit and the group, ties by the group.

    Where each row is a unit, its number says where it was scanned, which other rows decide: the group alone is hashed.
    """
    return ", ".join([_rank_of_group(plan, dialect), *_group_names(plan)])


def _rank_of_group(plan: Plan, dialect: Dialect) -> str:
    return dialect.hash(*([] if plan.question.each_row else ["unit"]), *_group_names(plan))


def _group_names(plan: Plan) -> list[str]:
    return [f"g{i}" for i in range(len(plan.domains))]


def _bounded(i: int, measurement: Measurement, plan: Plan, dialect: Dialect) -> str:
    if plan.clips(measurement):
        return clipped_sql(plan, i, dialect)
    if measurement.cap:
        return f"CASE WHEN s{i} > {measurement.cap} THEN {measurement.cap} ELSE s{i} END"
    rows = plan.bounds.rows
    match measurement.counting:
        case MeasurementKind.UNITS:
            return "1" if measurement.argument is None else f"least(n{i}, 1)"
        case MeasurementKind.ROWS:
            return f"least(n, {rows})"
        case MeasurementKind.VALUES:
            return f"least(n{i}, {rows})"
    return f"CASE WHEN n{i} > {rows} THEN {dialect.scaled(f's{i}', rows, f'n{i}')} ELSE s{i} END"


def _chosen(plan: Plan, i: int, dialect: Dialect) -> Iterator[Stage]:
    """The values of one unit that count: in at most C groups, the same as for sums, at most R in each.

    Which of a unit's values are kept is decided by a hash of the value, ties by the value, equal values by a number
    of their own: a function of the unit's own rows as a bag, whatever their order.
    """
    measurement, rows = plan.measurements[i], _rows(plan)
    keys = "".join(f"g{j}, " for j in range(len(plan.domains)))
    distinct = measurement.counting is MeasurementKind.DISTINCT
    if distinct:
        assert measurement.argument is not None
        x = f"y{plan.counted[measurement.argument]}"
    else:
        value = measurement.values[0]
        x = dialect.tried(f"(v{plan.values[value]} + ({value.centre}))")
    if plan.one_row:
        yield "chosen", f"  SELECT {keys}{x} AS x, 1 AS n\n  FROM {rows}\n  WHERE {x} IS NOT NULL"
        return
    source = rows
    if _too_many_groups(plan) and plan.question.each_row:
        # Rows are numbered as they are scanned; what is read twice could be numbered in two ways.
        place = f"dense_rank() OVER (PARTITION BY unit ORDER BY {_order_of_groups(plan, dialect)}) AS place"
        yield "ranked", f"  SELECT {rows}.*, {place} FROM {rows}"
        yield "within", f"  SELECT * FROM ranked WHERE place <= {plan.bounds.groups}"
        source = "within"
    elif _too_many_groups(plan):
        tight = keys.rstrip(", ")
        yield "present", f"  SELECT unit, {tight} FROM {rows} GROUP BY unit, {tight}"
        order = _order_of_groups(plan, dialect)
        yield "groups", dialect.first("present", f"unit, {tight}", "unit", order, plan.bounds.groups)
        same = " AND ".join(dialect.same(f"{rows}.g{j}", f"groups.g{j}") for j in range(len(plan.domains)))
        yield "within", f"  SELECT {rows}.* FROM {rows} JOIN groups ON {rows}.unit = groups.unit AND {same}"
        source = "within"
    yield (
        "values_of",
        f"  SELECT unit, {keys}{x} AS x, count(*) AS n\n  FROM {source}\n  WHERE {x} IS NOT NULL\n"
        f"  GROUP BY unit, {keys}{x}",
    )
    partition = f"unit{''.join(f', g{j}' for j in range(len(plan.domains)))}"
    order = f"{dialect.hash('x')}, x"
    if distinct:
        yield "chosen", dialect.first("values_of", f"{keys}x", partition, order, plan.bounds.rows)
        return
    # Of equal values a unit keeps as many as are left of its R rows.
    over = f"PARTITION BY {partition} ORDER BY {order} ROWS UNBOUNDED PRECEDING"
    yield "counted", f"  SELECT {keys}x, n, sum(n) OVER ({over}) AS upto\n  FROM values_of"
    left = dialect.tried(f"({plan.bounds.rows} - {dialect.tried('(upto - n)')})")
    yield "chosen", f"  SELECT {keys}x, least(n, {left}) AS n\n  FROM counted\n  WHERE {left} > 0"


def search_sql(search: Search, places: Mapping[str, Place], dialect: Dialect) -> str:
    """How many units have their value on each place of a search (`hubbub.tables.search`), in the columns g0 and m0.

    present    the groups of each unit; or counted: what it has in each, of which `kept` are as many as count
    most       one value for each unit
    """
    plan, what = search.plan, search.what
    stages = [*_owned(plan, places, dialect), *_placed(plan, dialect)]
    keys = "".join(f"g{i}, " for i in range(len(plan.domains)))
    value = "1" if search.measurement is None else f"v{plan.values[search.measurement.values[0]]}"
    if plan.one_row:
        stages.append(("most", f"  SELECT {value} AS most\n  FROM {_rows(plan)}"))
    elif what == "groups":
        tight = keys.rstrip(", ")
        stages.append(("present", f"  SELECT unit, {tight}\n  FROM {_rows(plan)}\n  GROUP BY unit, {tight}"))
        stages.append(("most", "  SELECT unit, count(*) AS most\n  FROM present\n  GROUP BY unit"))
    else:
        size = "count(*)" if search.measurement is None else dialect.total(value)
        counted = f"  SELECT unit, {keys}{size} AS n\n  FROM {_rows(plan)}\n  GROUP BY {keys}unit"
        stages.append(("counted", counted))
        if _too_many_groups(plan):
            order = _order_of_groups(plan, dialect)
            stages.append(("kept", dialect.first("counted", "*", "unit", order, plan.bounds.groups)))
        stages.append(("most", f"  SELECT unit, max(n) AS most\n  FROM {stages[-1][0]}\n  GROUP BY unit"))
    upto = " ".join(f"WHEN most <= {2**k} THEN {k + 1}" for k in range(PLACES - 2))
    place = f"CASE WHEN most IS NULL OR most <= 0 THEN 0 {upto} ELSE {PLACES - 1} END"
    stages.append(("standing", f"  SELECT {place} AS g0\n  FROM most"))
    return _text(stages, "SELECT g0, count(*) AS m0\nFROM standing\nGROUP BY g0", dialect)


def image_sql(expression: Expression, columns: Sequence[Column], dialect: Dialect) -> str:
    """An expression's value for each row of the product of the tables `values0`, `values1`, ..., one for each column.

    Each has the columns `place` and `value`; the result is in the order of the places, the last table fastest.
    """
    names = {column.name: f"c{i}" for i, column in enumerate(columns)}
    fields = ", ".join(f"values{i}.value AS c{i}, values{i}.place AS p{i}" for i in range(len(columns)))
    tables = ", ".join(f"values{i}" for i in range(len(columns)))
    order = ", ".join(f"p{i}" for i in range(len(columns)))
    text = _key(Key(expression), lambda node: expression_sql(renamed(node, names), dialect), dialect)
    return f"SELECT {text} FROM (SELECT {fields} FROM {tables}) ORDER BY {order}"
