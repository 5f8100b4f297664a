"""What differs between engines' SQL: types, total casts, rounding, hashes, ranks, functions.

Compiled text is the same in every dialect but for what stands here. Each engine has a dialect of its own beside it
(`hubbub.engines.duckdb.dialect` and its neighbours), which writes every rule in its own words, so that the same row
gives the same integer; where it cannot, the page "Engines" of the documentation says so. Every expression is total: an
engine that raises where another gives NULL is asked first whether the value fits.

What is the same in every dialect is written here once; everything else is abstract, so that no engine has another's
text because nobody thought of it.
"""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from hubbub.errors import InternalError
from hubbub.tables.expressions import comparable
from hubbub.tables.growth import CUT
from hubbub.tables.kinds import Kind

__all__ = ["Dialect", "Spelling", "constant_of", "power"]


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


@dataclass(frozen=True)
class Spelling:
    """Words that differ between engines and mean the same.

    bytes_of: the function that tells how many bytes a text has. end_of_text: in a regular expression. null_last: what
    stands after a column to be ordered by, NULL last, where the engine would have it first. fence: what ends a stage
    so that the engine does not write its expressions out where they are read, which may be in many places.
    """

    bytes_of: str
    end_of_text: str = r"\z"
    null_last: str = ""
    fence: str = ""


class Dialect(ABC):
    """The SQL of one engine.

    portable: whether the hash is the one that every dialect has, MD5 of the texts, apart by chr(31). casts: whether
    operands are cast; left out by a test alone, on DuckDB. full_joins: whether a FULL JOIN on more than the unit may
    hold no side in memory. lists_beside: whether long lists of declared values are
    tables beside a text (`hubbub.sql.emit.lists`).
    """

    name: ClassVar[str]
    """As sqlglot calls it."""

    types: ClassVar[dict[Kind, str]]
    checked: ClassVar[bool]
    """Whether arithmetic raises where its result is too large or too small, so that operands are kept in a range."""

    spelling: ClassVar[Spelling]

    portable: bool = True
    casts: bool = True
    full_joins: bool = True
    lists_beside: bool = False

    # The same in every dialect

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
                return self._moment(value)
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
                return self._moment(dt.datetime(value.year, value.month, value.day))
        return self.constant(value)

    def real(self, value: float) -> str:
        """A double, exactly."""
        return f"CAST('{value!r}' AS {self.types[Kind.NUMBER]})"

    def in_years(self, sql: str, kind: Kind, *, stored: bool = False) -> str:
        """A date or timestamp; NULL where it is infinite or outside the years 1 to 9999, as Python has no such.

        stored: whether it is as a source holds it, of whatever year.
        """
        ends = ("DATE '0001-01-01'", "DATE '9999-12-31'")
        if kind is not Kind.DATE:
            ends = self._moment(dt.datetime.min), self._moment(dt.datetime.max)
        return self.stored_between(sql, *ends) if stored else self.between(sql, *ends)

    def between(self, sql: str, first: str, last: str) -> str:
        """A value; NULL where it does not lie between two ends."""
        return f"(CASE WHEN {sql} BETWEEN {first} AND {last} THEN {sql} END)"

    def stored_between(self, sql: str, first: str, last: str) -> str:
        """A value of a source; NULL where it does not lie between two ends."""
        return self.between(sql, first, last)

    def key(self, sql: str, kind: Kind) -> str:
        """A value that is hashed: 0.0 and -0.0 are equal, and yet two texts."""
        return f"({sql} + 0.0)" if kind is Kind.NUMBER and self.portable else sql

    def cut(self, sql: str) -> str:
        """A text's first `CUT` characters, so that no row's text is longer (see `hubbub.tables.growth`).

        A text of that many bytes or fewer is not touched; bytes are counted without reading the text.
        """
        size, start = f"{self.spelling.bytes_of}({sql})", self.tried(f"left({sql}, {CUT})")
        return f"(CASE WHEN {size} > {CUT} THEN {start} ELSE {sql} END)"

    def unit_text(self, sql: str) -> str:
        """A text that names a unit, of a length that the engine can hash, whatever stands in a row."""
        return sql

    def operand(self, sql: str, kind: Kind, to: Kind) -> str:
        """A value where values of another kind stand, or may stand: in that kind, which holds all of its own."""
        return sql if not self.casts and Kind.NULL not in (kind, to) else self.column(sql, kind, to)

    def column(self, sql: str, kind: Kind, to: Kind) -> str:
        """The same where no `TRY` can stand around what the engine would add: in a set operation, or a window."""
        if kind is Kind.NULL and to is not Kind.NULL:
            return self.null(to)
        if not comparable(kind, to):
            raise InternalError(f"a {kind.value} where a {to.value} stands")
        if to is Kind.NULL:
            return sql
        if to is Kind.NUMBER:
            return self.double(sql)
        return sql if kind is to else self.cast(sql, kind, to)

    def null(self, kind: Kind) -> str:
        """NULL of a kind."""
        return f"CAST(NULL AS {self.types.get(kind, 'BIGINT')})"

    # Names and constants

    @abstractmethod
    def quote(self, name: str) -> str:
        """A name as a quoted identifier."""

    @abstractmethod
    def leaf_column(self, name: str, place: int) -> str:
        """The column of a public relation by its name, or by its place in the relation."""

    @abstractmethod
    def literal(self, value: str) -> str:
        """A text in quotes."""

    @abstractmethod
    def text(self, value: str) -> str:
        """A text constant in an expression."""

    @abstractmethod
    def _moment(self, value: dt.datetime) -> str:
        """A timestamp without a zone."""

    @abstractmethod
    def like(self, operand: str, parts: tuple[str, ...], ignore_case: bool) -> str:
        """`operand LIKE pattern`, with an escape character only where one is needed.

        DuckDB looks at the escape character row by row and fails on the first row that meets a wrong one, so a user's
        own never reaches it.
        """

    # Numbers

    @abstractmethod
    def double(self, sql: str) -> str:
        """A value as a double."""

    @abstractmethod
    def finite(self, sql: str) -> str:
        """A double, NULL where it is infinite or NaN."""

    @abstractmethod
    def divisor(self, sql: str) -> str:
        """A finite double other than 0, or NULL."""

    @abstractmethod
    def floor(self, sql: str, *, toward_zero: bool = False) -> str:
        """The largest whole number that is no larger, or a double without its fraction."""

    @abstractmethod
    def not_nan(self, sql: str) -> str:
        """A double, NULL where it is NaN."""

    @abstractmethod
    def unit_double(self, sql: str) -> str:
        """A double that names a unit: 0.0 and -0.0 are one unit, NaN is none."""

    @abstractmethod
    def unit(self, sql: str, physical: str) -> str:
        """A unit as it is stored, of a type that is neither text nor double; values that are equal have one text."""

    @abstractmethod
    def unit_name(self, sql: str, unit_type: str) -> str:
        """A unit's text, or bytes, of up to `NAME` bytes; of more a hash of it, longer than any that is none.

        unit_type: the word for its type (`hubbub.engines.fields`); a unit of another type is short.
        """

    @abstractmethod
    def own(self, sql: str, kind: Kind) -> str:
        """The value of an owner's rows that is the same in all of them."""

    @abstractmethod
    def decimal(self, sql: str) -> str:
        """A decimal column as a double."""

    @abstractmethod
    def column_text(self, sql: str) -> str:
        """A text column, compared byte by byte."""

    @abstractmethod
    def instant(self, sql: str) -> str:
        """A column of instants as their time in UTC."""

    @abstractmethod
    def whole_text(self, sql: str) -> str:
        """Whether a text is a whole number, and so may name a unit."""

    @abstractmethod
    def row_number(self) -> str:
        """A number of its own for each row of a table in which each row is a unit."""

    # Casts

    @abstractmethod
    def cast(self, sql: str, kind: Kind, to: Kind) -> str:
        """A value as another kind; NULL where it has none there."""

    @abstractmethod
    def tried(self, sql: str) -> str:
        """What could raise, NULL where it does. Other dialects have no such thing: what they write never raises."""

    # Values on a grid

    @abstractmethod
    def steps(self, x: str, exponent: int) -> str:
        """A double in steps of 2^exponent, rounded half to even, or what `clamped` can make that of."""

    @abstractmethod
    def clamped(self, x: str, exponent: int, floor: int, ceiling: int, centre: int, missing: str) -> str:
        """The whole number of steps within floor and ceiling, less the centre; `missing` where x is NULL."""

    @abstractmethod
    def on_grid(self, x: str, exponent: int) -> str:
        """A double in steps of 2^exponent as a whole number of 64 bits, NULL where it is too large."""

    @abstractmethod
    def millionths(self, x: str) -> str:
        """A double as a decimal with six places, to be added up exactly."""

    @abstractmethod
    def real_total(self, total: str) -> str:
        """A sum of `millionths` or whole numbers as a double."""

    @abstractmethod
    def total_as(self, total: str, kind: Kind) -> str:
        """A sum of whole numbers or decimals as a value of a kind."""

    # Sums that cannot overflow

    @abstractmethod
    def whole_sum(self, x: str) -> str:
        """A whole number of 64 bits, as SUM has to see it so as not to overflow."""

    @abstractmethod
    def total(self, sql: str) -> str:
        """A sum over rows of integers below 2^44."""

    @abstractmethod
    def grand_total(self, sql: str) -> str:
        """A sum over units, 0 where there is none."""

    @abstractmethod
    def product(self, a: str, b: str) -> str:
        """The product of two whole numbers, which is at most 2^62."""

    @abstractmethod
    def quotient(self, a: str, b: int) -> str:
        """a / b of whole numbers, truncated toward zero."""

    @abstractmethod
    def rank(self, x: str, cuts: Sequence[float]) -> str:
        """How many public numbers, in ascending order, are not above a double that is neither NULL nor NaN."""

    @abstractmethod
    def pick(self, values: Sequence[int], place: str) -> str:
        """The public whole number that stands at a place, a whole number from 0."""

    @abstractmethod
    def beside(self, sql: str, kind: Kind) -> str:
        """A value, or its default, of LAG and LEAD: the engine takes the type of the first for both.

        Whole numbers are stored in 64 bits, or in 128; one that is made narrower could fail, and no `TRY` can stand
        around an argument of a window.
        """

    @abstractmethod
    def wide(self, x: str) -> str:
        """A whole number in 128 bits or more."""

    @abstractmethod
    def divided(self, a: str, b: str) -> str:
        """a / b of wide whole numbers, truncated toward zero."""

    @abstractmethod
    def scaled(self, total: str, rows: int, count: str) -> str:
        """total * rows / count, truncated toward zero; 1 stands for a count of 0."""

    # Choosing

    @abstractmethod
    def hash(self, *parts: str) -> str:
        """A hash of values, by which groups and values are chosen."""

    @abstractmethod
    def first(self, source: str, columns: str, partition: str, order: str, bound: int) -> str:
        """The first rows of each partition, at most `bound`."""

    @abstractmethod
    def same(self, a: str, b: str) -> str:
        """Whether two values are equal or both NULL."""

    @abstractmethod
    def meets(self, key: str, domain: str, kind: Kind, nullable: bool) -> str:
        """Whether a key is that of a row of declared ones. nullable: whether NULL is declared."""

    @abstractmethod
    def semi(self, columns: str, left: str, right: str, on: str, negated: bool) -> str:
        """The rows of one relation, `a`, that meet one of another, `b`; or those that meet none."""

    # Aggregates and functions

    @abstractmethod
    def extreme(self, word: str, x: str, kind: Kind) -> str:
        """The smallest, the largest or the middle value of one owner's rows; NULL between -inf and inf."""

    @abstractmethod
    def call(self, name: str, arguments: Sequence[str], kinds: Sequence[Kind]) -> str:
        """A function of `hubbub.tables.functions`; `kinds` are those of its arguments."""
