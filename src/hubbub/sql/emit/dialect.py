"""What differs between engines' SQL: types, total casts, rounding, hashes, ranks, functions.

Compiled text is the same in every dialect but for what stands here. The rules are DuckDB's, and each dialect writes
them in its own words so that the same row gives the same integer; where it cannot, the page "Engines" of the
documentation says so. Every expression is total: an engine that raises where DuckDB gives NULL is asked first whether
the value fits.

`portable` is DuckDB with the hash that the others have (MD5 of the texts, apart by chr(31)); it chooses the same groups
and values of a unit beyond its bounds as they do. The default is DuckDB's own hash, which is several times faster.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Final

from hubbub.errors import InternalError
from hubbub.sql.text.functions import WRITE
from hubbub.tables.expressions import comparable
from hubbub.tables.growth import CUT
from hubbub.tables.kinds import Kind

__all__ = ["DUCKDB", "DUCKDB_PORTABLE", "Dialect", "constant_of", "power"]

SEPARATOR: Final = "chr(31)"


def power(exponent: int) -> float:
    """2^exponent, exactly.

    >>> power(-2)
    0.25
    """
    return 2.0**exponent


def constant_of(text: str) -> str:
    """The text of a constant that stands quoted, as the name of a unit of time does.

    >>> constant_of("'MONTH'")
    'MONTH'
    """
    return text.strip("'").upper()


class Dialect:
    """DuckDB's SQL; other dialects are subclasses that say what they write otherwise."""

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
    """Whether arithmetic raises where its result is too large or too small, so that operands are kept in a range."""

    bytes_of = "strlen"
    """The function that tells how many bytes a text has."""

    def __init__(self, *, portable: bool = False, casts: bool = True, net: bool = True, years: bool = True) -> None:
        """portable: whether the hash is that of the other dialects.

        casts, net, years: for tests alone, which leave out the casts of operands, the `TRY` around nodes, or the years
        of dates and times that are made, to see that what is left holds without them.
        """
        self.portable, self.casts, self.net, self.years = portable, casts, net, years

    # Names and constants

    def quote(self, name: str) -> str:
        """A name as a quoted identifier."""
        return '"' + name.replace('"', '""') + '"'

    def leaf_column(self, name: str, place: int) -> str:
        """The column of a public relation by its name, or by its place in the relation."""
        return self.quote(name)

    def literal(self, value: str) -> str:
        """A text in quotes."""
        if "\0" in value:
            return "(" + " || chr(0) || ".join(self.literal(part) for part in value.split("\0")) + ")"
        return "'" + value.replace("'", "''") + "'"

    def text(self, value: str) -> str:
        """A text constant in an expression."""
        return self.literal(value)

    def constant(self, value: object) -> str:
        """A constant, printed from its value."""
        match value:
            case None:
                return "NULL"
            case bool():
                return "TRUE" if value else "FALSE"
            case int():
                return f"({value})" if value < 0 else str(value)
            case Fraction() | float():
                return self.real(float(value))
            case str():
                return self.text(value)
            case dt.datetime():
                return self.moment(value)
            case dt.date():
                return f"DATE '{value.isoformat()}'"
        raise InternalError(f"a constant of type {type(value).__name__}")

    def typed(self, value: object) -> str:
        """A constant of the type of its kind: a small whole number is of 64 bits, too."""
        if isinstance(value, int) and not isinstance(value, bool):
            return f"CAST({self.constant(value)} AS {self.types[Kind.INTEGER]})"
        return self.constant(value)

    def constant_as(self, value: object, kind: Kind) -> str:
        """A declared value among others of a kind, all of them of one type."""
        match value:
            case bool():
                pass
            case int() | float() | Fraction() if kind is Kind.NUMBER:
                return self.real(float(value))
            case dt.datetime() if kind is Kind.DATE:
                return self.constant(value.date())
            case dt.date() if kind is Kind.TIMESTAMP and not isinstance(value, dt.datetime):
                return self.moment(dt.datetime(value.year, value.month, value.day))
        return self.constant(value)

    def moment(self, value: dt.datetime) -> str:
        """A timestamp without a zone."""
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"

    def real(self, value: float) -> str:
        """A double, exactly."""
        return f"CAST('{value!r}' AS {self.types[Kind.NUMBER]})"

    def like(self, operand: str, parts: tuple[str, ...], ignore_case: bool) -> str:
        """`operand LIKE pattern`, with an escape character only where one is needed.

        DuckDB looks at the escape character row by row and fails on the first row that meets a wrong one, so a user's
        own never reaches it.
        """
        word = "ILIKE" if ignore_case else "LIKE"
        special = any(c in part[1:] for part in parts if part[0] == "=" for c in "%_")
        escaped = "".join(_escaped(part, special) for part in parts)
        return f"({operand} {word} {self.literal(escaped)}{_ESCAPE if special else ''})"

    # Numbers

    def double(self, sql: str) -> str:
        return f"CAST({sql} AS {self.types[Kind.NUMBER]})"

    def finite(self, sql: str) -> str:
        """A double, NULL where it is infinite or NaN."""
        return f"(CASE WHEN isfinite({sql}) THEN {sql} END)"

    def divisor(self, sql: str) -> str:
        """A finite double other than 0, or NULL."""
        return f"(CASE WHEN isfinite({sql}) AND {sql} <> 0 THEN {sql} END)"

    def floor(self, sql: str) -> str:
        return f"floor({sql})"

    def not_nan(self, sql: str) -> str:
        """A double, NULL where it is NaN."""
        return f"(CASE WHEN isnan({sql}) THEN NULL ELSE {sql} END)"

    def in_years(self, sql: str, kind: Kind) -> str:
        """A date or timestamp; NULL where it is infinite or outside the years 1 to 9999, as Python has no such."""
        if kind is Kind.DATE:
            return f"(CASE WHEN {sql} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {sql} END)"
        first, last = map(self.moment, (dt.datetime.min, dt.datetime.max))
        return f"(CASE WHEN {sql} BETWEEN {first} AND {last} THEN {sql} END)"

    def unit_double(self, sql: str) -> str:
        """A double that names a unit: 0.0 and -0.0 are one unit, NaN is none."""
        return f"(CASE WHEN isnan({sql}) THEN NULL ELSE {self.double(sql)} + 0.0 END)"

    def unit(self, sql: str, physical: str) -> str:
        """A unit as it is stored, of a type that is neither text nor double; values that are equal have one text."""
        return sql

    def own(self, sql: str, kind: Kind) -> str:
        """The value of an owner's rows that is the same in all of them."""
        return f"min({sql})"

    def key(self, sql: str, kind: Kind) -> str:
        """A value that is hashed: 0.0 and -0.0 are equal, and yet two texts."""
        return f"({sql} + 0.0)" if kind is Kind.NUMBER and self.portable else sql

    def decimal(self, sql: str) -> str:
        """A decimal column as a double."""
        return self.cast(sql, Kind.OTHER, Kind.NUMBER)

    def column_text(self, sql: str) -> str:
        """A text column, compared byte by byte."""
        return f"CAST({sql} AS {self.types[Kind.TEXT]})"

    def cut(self, sql: str) -> str:
        """A text's first `CUT` characters, so that no row's text is longer (see `hubbub.tables.growth`).

        A text of that many bytes or fewer is not touched; bytes are counted without reading the text.
        """
        return f"(CASE WHEN {self.bytes_of}({sql}) > {CUT} THEN {self.tried(f'left({sql}, {CUT})')} ELSE {sql} END)"

    def instant(self, sql: str) -> str:
        """A column of instants as their time in UTC."""
        return self.tried(f"make_timestamp(epoch_us({sql}))")

    def whole_text(self, sql: str) -> str:
        """Whether a text is a whole number, and so may name a unit."""
        return self.tried(f"regexp_full_match({sql}, '\\s*[+-]?[0-9]+\\s*')")

    def row_number(self) -> str:
        """A number of its own for each row of a table in which each row is a unit."""
        return "row_number() OVER ()"

    # Casts

    def cast(self, sql: str, of: Kind, to: Kind) -> str:
        """A value as another kind; NULL where it has none there."""
        return f"TRY_CAST({sql} AS {self.types[to]})"

    def operand(self, sql: str, of: Kind, to: Kind) -> str:
        """A value where values of another kind stand, or may stand: in that kind, which holds all of its own."""
        return sql if not self.casts and Kind.NULL not in (of, to) else self.column(sql, of, to)

    def column(self, sql: str, of: Kind, to: Kind) -> str:
        """The same where no `TRY` can stand around what the engine would add: in a set operation, or a window."""
        if of is Kind.NULL and to is not Kind.NULL:
            return self.null(to)
        if not comparable(of, to):
            raise InternalError(f"a {of.value} where a {to.value} stands")
        if to is Kind.NULL:
            return sql
        if to is Kind.NUMBER:
            return self.double(sql)
        return sql if of is to else self.cast(sql, of, to)

    def tried(self, sql: str) -> str:
        """What could raise, NULL where it does. Other dialects have no such thing: what they write never raises."""
        return f"TRY({sql})" if self.net else sql

    def null(self, kind: Kind) -> str:
        """NULL of a kind."""
        return f"CAST(NULL AS {self.types.get(kind, 'BIGINT')})"

    # Values on a grid

    def steps(self, x: str, exponent: int) -> str:
        """A double in steps of 2^exponent, rounded half to even, or what `clamped` can make that of."""
        return f"round_even({self.double(x)} * CAST({power(-exponent)!r} AS DOUBLE), 0)"

    def clamped(self, x: str, exponent: int, floor: int, ceiling: int, centre: int, missing: str) -> str:
        """The whole number of steps within floor and ceiling, less the centre; `missing` where x is NULL."""
        # Whole doubles below 2^53 are subtracted exactly, and unlike whole numbers they never overflow.
        between = f"TRY_CAST({x} - CAST({centre}.0 AS DOUBLE) AS BIGINT)"
        return (
            f"CASE WHEN {x} IS NULL THEN {missing} WHEN {x} <= {floor} THEN {floor - centre} "
            f"WHEN {x} >= {ceiling} THEN {ceiling - centre} ELSE {between} END"
        )

    def on_grid(self, x: str, exponent: int) -> str:
        """A double in steps of 2^exponent as a whole number of 64 bits, NULL where it is too large."""
        return f"TRY_CAST(round_even({self.double(x)} * CAST({power(-exponent)!r} AS DOUBLE), 0) AS BIGINT)"

    def millionths(self, x: str) -> str:
        """A double as a decimal with six places, to be added up exactly."""
        return f"TRY_CAST({x} AS DECIMAL(18, 6))"

    def real_total(self, total: str) -> str:
        """A sum of `millionths` or whole numbers as a double."""
        return self.double(total)

    def total_as(self, total: str, kind: Kind) -> str:
        """A sum of whole numbers or decimals as a value of a kind."""
        return f"TRY_CAST({total} AS {self.types[kind]})"

    # Sums that cannot overflow

    def whole_sum(self, x: str) -> str:
        """A whole number of 64 bits, as SUM has to see it so as not to overflow."""
        return x

    def total(self, sql: str) -> str:
        """A sum over rows of integers below 2^44."""
        return f"CAST(sum({sql}) AS HUGEINT)"

    def grand_total(self, sql: str) -> str:
        """A sum over units, 0 where there is none."""
        return f"CAST(coalesce(sum({sql}), 0) AS HUGEINT)"

    def product(self, a: str, b: str) -> str:
        """The product of two whole numbers below 2^22."""
        return self.tried(f"({a} * {b})")

    def quotient(self, a: str, b: int) -> str:
        """a / b of whole numbers, truncated toward zero."""
        return self.tried(f"{a} // {b}")

    def wide(self, x: str) -> str:
        """A whole number in 128 bits or more."""
        return f"CAST({x} AS HUGEINT)"

    def divided(self, a: str, b: str) -> str:
        """a / b of wide whole numbers, truncated toward zero."""
        return self.tried(f"{a} // {b}")

    def scaled(self, total: str, rows: int, count: str) -> str:
        """total * rows / count, truncated toward zero; 1 stands for a count of 0."""
        return self.tried(f"{self.tried(f'{self.wide(total)} * {rows}')} // greatest({count}, 1)")

    # Choosing

    def hash(self, *parts: str) -> str:
        """A hash of values, by which groups and values are chosen."""
        if not self.portable:
            return f"hash({', '.join(parts)})"
        return f"md5(concat_ws({SEPARATOR}, {', '.join(f'CAST({p} AS VARCHAR)' for p in parts)}))"

    def first(self, source: str, columns: str, partition: str, order: str, bound: int) -> str:
        """The first rows of each partition, at most `bound`."""
        return (
            f"  SELECT {columns} FROM {source}\n  QUALIFY row_number() OVER (PARTITION BY {partition} "
            f"ORDER BY {order}) <= {bound}"
        )

    def same(self, a: str, b: str) -> str:
        """Whether two values are equal or both NULL."""
        return f"{a} IS NOT DISTINCT FROM {b}"

    def meets(self, key: str, domain: str, kind: Kind, nullable: bool) -> str:
        """Whether a key is that of a row of declared ones. nullable: whether NULL is declared."""
        return self.same(key, f"{domain}.key")

    def semi(self, columns: str, left: str, right: str, on: str, negated: bool) -> str:
        """The rows of one relation, `a`, that meet one of another, `b`; or those that meet none."""
        word = "NOT EXISTS" if negated else "EXISTS"
        return f"  SELECT {columns} FROM {left} AS a\n  WHERE {word} (SELECT 1 FROM {right} AS b WHERE {on})"

    # Aggregates and functions

    def extreme(self, word: str, x: str, kind: Kind) -> str:
        """The smallest, the largest or the middle value of one owner's rows; NULL between -inf and inf."""
        found = f"TRY_CAST({word}({x}) AS {self.types.get(kind, 'BIGINT')})"
        return self.not_nan(found) if word == "median" and kind is Kind.NUMBER else found

    def call(self, name: str, arguments: Sequence[str], kinds: Sequence[Kind]) -> str:
        """A function of `hubbub.tables.functions`; `kinds` are those of its arguments."""
        if name == "CAST_TEXT" and kinds[0] is Kind.NUMBER:
            arguments = [f"({arguments[0]} + 0.0)"]  # -0.0 is equal to 0.0, and its text must be too
        sql = WRITE[name](arguments)
        if self.years and kinds[0] is Kind.TEXT and name in ("CAST_DATE", "CAST_TIMESTAMP"):
            return self.in_years(sql, Kind[name.removeprefix("CAST_")])
        return sql


_ESCAPE: Final = " ESCAPE '\\'"


def _escaped(part: str, special: bool) -> str:
    if part[0] != "=":
        return part
    return "".join(f"\\{c}" if special and c in "\\%_" else c for c in part[1:])


DUCKDB: Final = Dialect()
DUCKDB_PORTABLE: Final = Dialect(portable=True)
