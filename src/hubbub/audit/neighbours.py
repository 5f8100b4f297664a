"""Neighbours of a table, made to hurt: what a unit could hold that breaks a system.

A table is an Arrow table with a column that names the unit. Under `add_remove` a neighbour has one unit more (a
newcomer, or nobody at all where the table is one unit); under `replace` the first unit's rows become the newcomer's.
The newcomers: every extreme value of every column's type, alone and together; all NULL; a category nobody declared;
the twin of a unit; a thousand rows; no row. Beside them the same rows in another form, where nothing may move:
permuted, in chunks, with text as a dictionary or as large text, with rows of no unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hubbub.errors import ParameterError, what_was_given

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Pair", "newcomers", "pairs", "row_pairs"]

Relation = Literal["add_remove", "replace"]

_FLOATS = (float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 5e-324, -0.0, 0.1, 2.0**53 + 2)
_TEXTS = ("nobody declared this", "", " ", "a", "é", "e\u0301", "'; DROP TABLE t; --", "%", "x" * 10_000, "\u202e")
_DAYS = (0, -719_162, 2_932_896)
_MANY = 1000


@dataclass(frozen=True)
class Pair:
    """A table (or tables, as whoever opens them wants them) and its neighbour. same: the same rows in another form."""

    name: str
    d: Any
    d_prime: Any
    same: bool = False


def pairs(table: pa.Table, unit: str, *, relation: Relation = "add_remove") -> Iterator[Pair]:
    """Nasty neighbours of a table of at least one unit.

    Raises ParameterError where the unit column is missing, or no row has a unit.
    """
    if unit not in table.column_names:
        raise ParameterError(
            f"unit = {what_was_given(unit)} was asked; the columns are {', '.join(table.column_names)}."
        )
    ids = [u for u in table[unit].to_pylist() if u is not None]
    if not ids:
        raise ParameterError(f"no row has a {unit}; give a table of at least one unit.")
    lone = _only(table, unit, ids[0])
    for name, rows in newcomers(table, unit, ids[0]):
        yield Pair(name, table, _with(table, unit, ids, rows, relation))
    yield Pair("one unit against another" if relation == "replace" else "one unit against nobody", lone, (
        _with(lone, unit, [ids[0]], _rows(table, unit, 1), "replace") if relation == "replace" else lone.slice(0, 0)
    ))  # fmt: skip
    for name, other in _forms(table, unit):
        yield Pair(name, table, other, same=True)


def row_pairs(table: pa.Table, unit: str, *, relation: Relation = "add_remove") -> Iterator[Pair]:
    """Neighbours where each row is a unit: one row more, or the first exchanged; without the column `unit`."""
    import pyarrow as pa

    rows = table.drop_columns([unit])
    kept = rows.slice(1) if relation == "replace" else rows
    for name, more in newcomers(rows, None, None):
        if len(more) == 1:
            # Last and first, because a row's number is not part of it.
            added = pa.Table.from_pylist(more, schema=rows.schema)
            yield Pair(name, rows, pa.concat_tables([added, kept]))
            yield Pair(f"{name}, at the end", rows, pa.concat_tables([kept, added]))
    lone = rows.slice(5, 1)
    yield Pair("one row against another or none", lone, rows.slice(7, 1) if relation == "replace" else lone.slice(0, 0))
    yield Pair("rows in reverse", rows, rows.take(list(range(len(rows)))[::-1]), same=True)


def _only(table: pa.Table, unit: str, who: Any) -> pa.Table:
    import pyarrow.compute as pc

    return table.filter(pc.equal(table[unit], who))


def _with(table: pa.Table, unit: str, ids: list[Any], rows: list[dict[str, Any]], relation: Relation) -> pa.Table:
    """The neighbour in which a newcomer has these rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if relation == "replace":
        newcomer, kept = ids[0], table.filter(pc.fill_null(pc.not_equal(table[unit], ids[0]), True))
    else:
        newcomer, kept = _stranger(ids), table
    more = pa.Table.from_pylist([{**row, unit: newcomer} for row in rows], schema=table.schema)
    # First, because order and position must not matter.
    return pa.concat_tables([more, kept])


def _stranger(ids: list[Any]) -> Any:
    return f"{max(ids)}x" if isinstance(ids[0], str) else max(ids) + 1


def _rows(table: pa.Table, unit: str | None, count: int) -> list[dict[str, Any]]:
    """Ordinary rows, to be spoilt: the first row that has no NULL, else the first."""
    rows = table.slice(0, 100).to_pylist()
    whole = [row for row in rows if None not in row.values()]
    return [dict((whole or rows)[0]) for _ in range(count)]


def newcomers(table: pa.Table, unit: str | None, twin: Any) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """What a newcomer could hold: names and rows. unit: the column that is left alone; twin: one of its values."""
    plain = _rows(table, unit, 1)[0]
    every: list[dict[str, Any]] = []
    for column in table.schema:
        if column.name == unit:
            continue
        values = [*_extremes(column.type), None]
        spoilt = [{**plain, column.name: value} for value in values]
        every += spoilt
        for row in spoilt:
            yield f"one row, {column.name} = {str(row[column.name])[:24]!r}", [row]
        yield f"every extreme of {column.name}", spoilt
    yield "every extreme of every column", every
    yield "all NULL", [dict.fromkeys(plain)]
    if unit is not None and unit in table.column_names:
        yield "the twin of another", _only(table, unit, twin).to_pylist()
    yield "a thousand rows", [dict(plain) for _ in range(_MANY)]
    yield "no row", []


def _extremes(kind: pa.DataType) -> tuple[Any, ...]:
    import datetime as dt

    import pyarrow.types as is_a

    if is_a.is_floating(kind):
        return _FLOATS
    if is_a.is_integer(kind):
        bits = kind.bit_width
        signed = is_a.is_signed_integer(kind)
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        return (0, 1, low, high, *((-1, 2**53 + 1) if signed and bits == 64 else ()))
    if is_a.is_boolean(kind):
        return (False, True)
    if is_a.is_string(kind) or is_a.is_large_string(kind):
        return _TEXTS
    if is_a.is_date(kind):
        return tuple(dt.date(1970, 1, 1) + dt.timedelta(days=d) for d in _DAYS)
    if is_a.is_timestamp(kind):
        return (dt.datetime(1970, 1, 1), dt.datetime(1700, 1, 1), dt.datetime(2261, 12, 31, 23, 59, 59))
    return ()


def _forms(table: pa.Table, unit: str) -> Iterator[tuple[str, pa.Table]]:
    """The same rows in other forms."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.types as is_a

    n = len(table)
    yield "rows in reverse", table.take(np.arange(n)[::-1].copy())
    yield "every second row first", table.take(np.argsort(np.arange(n) % 2, kind="stable"))
    yield "one row a chunk", pa.concat_tables([table.slice(i, 1) for i in range(n)])
    for i, column in enumerate(table.schema):
        if is_a.is_string(column.type):
            for name, kind in (("a dictionary", None), ("large text", pa.large_string())):
                values = table[column.name].dictionary_encode() if kind is None else table[column.name].cast(kind)
                yield f"{column.name} as {name}", table.set_column(i, column.name, values)
    nobody = pa.Table.from_pylist([{**_rows(table, unit, 1)[0], unit: None}] * 3, schema=table.schema)
    yield "rows of no unit", pa.concat_tables([nobody, table])
