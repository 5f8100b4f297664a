"""DuckDB's SQL. Its rules are the ones that every dialect keeps.

`TRY` stands around what could raise, below casts that are total already. `DUCKDB_PORTABLE` has the hash that the others
have (MD5 of the texts, apart by chr(31)); it chooses the same groups and values of a unit beyond its bounds as they do.
The default is DuckDB's own hash, which is several times faster.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import ClassVar, Final

from hubbub._typing import override
from hubbub.sql.emit.dialect import Dialect, Spelling, power
from hubbub.sql.text.functions import WRITE
from hubbub.tables.growth import NAME
from hubbub.tables.kinds import Kind

__all__ = ["DUCKDB", "DUCKDB_PORTABLE", "DuckDB", "quote"]

SEPARATOR: Final = "chr(31)"


class DuckDB(Dialect):
    """DuckDB (2.0 and later)."""

    name = "duckdb"
    types: ClassVar[dict[Kind, str]] = {
        Kind.INTEGER: "BIGINT",
        Kind.NUMBER: "DOUBLE",
        Kind.TEXT: "VARCHAR",
        Kind.BOOLEAN: "BOOLEAN",
        Kind.DATE: "DATE",
        Kind.TIMESTAMP: "TIMESTAMP",
    }
    checked = False
    spelling = Spelling("strlen")

    def __init__(
        self,
        *,
        portable: bool = False,
        lists_beside: bool = False,
        casts: bool = True,
        net: bool = True,
        years: bool = True,
    ) -> None:
        """portable: whether the hash is that of the other dialects. lists_beside: whether whoever runs a text registers
        long lists of values beside it (`lists_of`).

        casts, net, years: for tests alone, which leave out the casts of operands, the `TRY` around nodes, or the years
        of dates and times that are made, to see that what is left holds without them.
        """
        self.portable, self.casts, self.net, self.years = portable, casts, net, years
        self.lists_beside = lists_beside

    # Names and constants

    @override
    def quote(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    @override
    def leaf_column(self, name: str, place: int) -> str:
        return self.quote(name)

    @override
    def literal(self, value: str) -> str:
        if "\0" in value:
            return "(" + " || chr(0) || ".join(self.literal(part) for part in value.split("\0")) + ")"
        return "'" + value.replace("'", "''") + "'"

    @override
    def text(self, value: str) -> str:
        return self.literal(value)

    @override
    def _moment(self, value: dt.datetime) -> str:
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"

    @override
    def like(self, operand: str, parts: tuple[str, ...], ignore_case: bool) -> str:
        word = "ILIKE" if ignore_case else "LIKE"
        special = any(c in part[1:] for part in parts if part[0] == "=" for c in "%_")
        escaped = "".join(_escaped(part, special) for part in parts)
        return f"({operand} {word} {self.literal(escaped)}{_ESCAPE if special else ''})"

    # Numbers

    @override
    def double(self, sql: str) -> str:
        return f"CAST({sql} AS {self.types[Kind.NUMBER]})"

    @override
    def finite(self, sql: str) -> str:
        return f"(CASE WHEN isfinite({sql}) THEN {sql} END)"

    @override
    def divisor(self, sql: str) -> str:
        return f"(CASE WHEN isfinite({sql}) AND {sql} <> 0 THEN {sql} END)"

    @override
    def floor(self, sql: str, *, toward_zero: bool = False) -> str:
        return f"{'trunc' if toward_zero else 'floor'}({sql})"

    @override
    def not_nan(self, sql: str) -> str:
        return f"(CASE WHEN isnan({sql}) THEN NULL ELSE {sql} END)"

    @override
    def unit_double(self, sql: str) -> str:
        return f"(CASE WHEN isnan({sql}) THEN NULL ELSE {self.double(sql)} + 0.0 END)"

    @override
    def unit(self, sql: str, physical: str) -> str:
        return sql

    @override
    def unit_name(self, sql: str, unit_type: str) -> str:
        match unit_type:
            case "text":
                return f"(CASE WHEN strlen({sql}) > {NAME} THEN 'x' || sha256({sql}) ELSE {sql} END)"
            case "blob":
                return f"(CASE WHEN octet_length({sql}) > {NAME} THEN encode('x' || sha256({sql})) ELSE {sql} END)"
        return sql

    @override
    def own(self, sql: str, kind: Kind) -> str:
        return f"min({sql})"

    @override
    def decimal(self, sql: str) -> str:
        return self.cast(sql, Kind.OTHER, Kind.NUMBER)

    @override
    def column_text(self, sql: str) -> str:
        return f"CAST({sql} AS {self.types[Kind.TEXT]})"

    @override
    def instant(self, sql: str) -> str:
        return self.tried(f"make_timestamp(epoch_us({sql}))")

    @override
    def whole_text(self, sql: str) -> str:
        return self.tried(f"regexp_full_match({sql}, '\\s*[+-]?[0-9]+\\s*')")

    @override
    def row_number(self) -> str:
        return "row_number() OVER ()"

    @override
    def stored_between(self, sql: str, first: str, last: str) -> str:
        """As everywhere, and what the CASE passes on lies between the ends by itself.

        Of a Parquet file's dictionary DuckDB computes many a function once for each entry, also for entries of no row
        that is asked about. A CASE whose condition holds for all rows of a vector hands the whole dictionary on; no TRY
        holds the error of a cast that DuckDB believes to have none.
        """
        return f"(CASE WHEN {sql} BETWEEN {first} AND {last} THEN least(greatest({sql}, {first}), {last}) END)"

    # Casts

    @override
    def cast(self, sql: str, kind: Kind, to: Kind) -> str:
        return f"TRY_CAST({sql} AS {self.types[to]})"

    @override
    def tried(self, sql: str) -> str:
        return f"TRY({sql})" if self.net else sql

    # Values on a grid

    @override
    def steps(self, x: str, exponent: int) -> str:
        return f"round_even({self.double(x)} * CAST({power(-exponent)!r} AS DOUBLE), 0)"

    @override
    def clamped(self, x: str, exponent: int, floor: int, ceiling: int, centre: int, missing: str) -> str:
        # Whole doubles below 2^53 are subtracted exactly, and unlike whole numbers they never overflow.
        between = f"TRY_CAST({x} - CAST({centre}.0 AS DOUBLE) AS BIGINT)"
        return (
            f"CASE WHEN {x} IS NULL THEN {missing} WHEN {x} <= {floor} THEN {floor - centre} "
            f"WHEN {x} >= {ceiling} THEN {ceiling - centre} ELSE {between} END"
        )

    @override
    def on_grid(self, x: str, exponent: int) -> str:
        # A cast to a whole number rounds half to even, as `steps` does, in a third of the time.
        return f"TRY_CAST({self.double(x)} * CAST({power(-exponent)!r} AS DOUBLE) AS BIGINT)"

    @override
    def millionths(self, x: str) -> str:
        return f"TRY_CAST({x} AS DECIMAL(18, 6))"

    @override
    def real_total(self, total: str) -> str:
        return self.double(total)

    @override
    def total_as(self, total: str, kind: Kind) -> str:
        return f"TRY_CAST({total} AS {self.types[kind]})"

    # Sums that cannot overflow

    @override
    def whole_sum(self, x: str) -> str:
        return x

    @override
    def total(self, sql: str) -> str:
        return f"CAST(sum({sql}) AS HUGEINT)"

    @override
    def grand_total(self, sql: str) -> str:
        return f"CAST(coalesce(sum({sql}), 0) AS HUGEINT)"

    @override
    def product(self, a: str, b: str) -> str:
        return self.tried(f"({a} * {b})")

    @override
    def quotient(self, a: str, b: int) -> str:
        return self.tried(f"{a} // {b}")

    @override
    def rank(self, x: str, cuts: Sequence[float]) -> str:
        return f"len(list_filter([{', '.join(map(self.real, cuts))}]::DOUBLE[], lambda c: c <= {x}))"

    @override
    def pick(self, values: Sequence[int], place: str) -> str:
        return f"([{', '.join(map(str, values))}]::BIGINT[])[{place} + 1]"

    @override
    def beside(self, sql: str, kind: Kind) -> str:
        return self.wide(sql) if kind is Kind.INTEGER else sql

    @override
    def wide(self, x: str) -> str:
        return f"CAST({x} AS HUGEINT)"

    @override
    def divided(self, a: str, b: str) -> str:
        return self.tried(f"{a} // {b}")

    @override
    def scaled(self, total: str, rows: int, count: str) -> str:
        return self.tried(f"{self.tried(f'{self.wide(total)} * {rows}')} // greatest({count}, 1)")

    # Choosing

    @override
    def hash(self, *parts: str) -> str:
        if not self.portable:
            return f"hash({', '.join(parts)})"
        return f"md5(concat_ws({SEPARATOR}, {', '.join(f'CAST({p} AS VARCHAR)' for p in parts)}))"

    @override
    def first(self, source: str, columns: str, partition: str, order: str, bound: int) -> str:
        return (
            f"  SELECT {columns} FROM {source}\n  QUALIFY row_number() OVER (PARTITION BY {partition} "
            f"ORDER BY {order}) <= {bound}"
        )

    @override
    def same(self, a: str, b: str) -> str:
        return f"{a} IS NOT DISTINCT FROM {b}"

    @override
    def meets(self, key: str, domain: str, kind: Kind, nullable: bool) -> str:
        return self.same(key, f"{domain}.key")

    @override
    def semi(self, columns: str, left: str, right: str, on: str, negated: bool) -> str:
        word = "NOT EXISTS" if negated else "EXISTS"
        return f"  SELECT {columns} FROM {left} AS a\n  WHERE {word} (SELECT 1 FROM {right} AS b WHERE {on})"

    # Aggregates and functions

    @override
    def extreme(self, word: str, x: str, kind: Kind) -> str:
        chosen = f"TRY_CAST({word}({x}) AS {self.types.get(kind, 'BIGINT')})"
        return self.not_nan(chosen) if word == "median" and kind is Kind.NUMBER else chosen

    @override
    def call(self, name: str, arguments: Sequence[str], kinds: Sequence[Kind]) -> str:
        if name == "CAST_TEXT" and kinds[0] is Kind.NUMBER:
            arguments = [f"({arguments[0]} + 0.0)"]  # -0.0 is equal to 0.0, and its text must be too
        if name == "ROUND" and len(arguments) > 1:
            return _round(*arguments)
        sql = WRITE[name](arguments)
        if self.years and kinds[0] is Kind.TEXT and name in ("CAST_DATE", "CAST_TIMESTAMP"):
            return self.in_years(sql, Kind[name.removeprefix("CAST_")])
        return self.in_years(sql, Kind.TIMESTAMP) if name == "DATE_ADD" and self.years else sql


def _round(x: str, places: str) -> str:
    """A number scaled, rounded half away from 0 and scaled back, as on the other engines.

    What ROUND(x, 1) is differs from one version of DuckDB to the next.
    """
    n = int(places.strip("()"))
    return f"(round({x} * 1e{n}) / 1e{n})" if n > 0 else f"round({x}, {places})"


_ESCAPE: Final = " ESCAPE '\\'"


def _escaped(part: str, special: bool) -> str:
    if part[0] != "=":
        return part
    return "".join(f"\\{c}" if special and c in "\\%_" else c for c in part[1:])


DUCKDB: Final = DuckDB()
DUCKDB_PORTABLE: Final = DuckDB(portable=True)


def quote(name: str) -> str:
    """A name as a quoted identifier of DuckDB.

    >>> quote('a"b')
    '"a""b"'
    """
    return DUCKDB.quote(name)
