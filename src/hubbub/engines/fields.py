"""The columns of one table: physical types, declared types, and the expression that gives each value.

Physical types are named as DuckDB names them; an engine that has other names says which of these they are.

An expression is total: NaN is NULL, -0.0 is 0.0, wide types are cast safely, times are in the years 1 to 9999. A *unit*
is never cast in a way that could make two of them one: it is grouped by as it is stored, or by its exact text; where a
server takes no values of any length, a long one by its beginning and its SHA-256.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal

from hubbub.errors import PolicyError
from hubbub.remedies import CorrectName, DeclareType
from hubbub.spelling import meant_by
from hubbub.sql.bind.scope import did_you_mean, find_name
from hubbub.sql.emit.dialect import Dialect
from hubbub.tables.columns import Between, Declaration, Edges, OneOf, Text, UpTo, trimmed
from hubbub.tables.kinds import Kind

__all__ = ["CUT", "Fields", "normalised", "usable"]

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_TIMESTAMPS = {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
_UNITS = {"UBIGINT", "HUGEINT", "UHUGEINT", "DECIMAL", "BOOLEAN", "DATE", "TIME", "BLOB", "TIMESTAMP WITH TIME ZONE"}


CUT = "(cut where it is read)"
"""Stands behind a physical type whose values are told apart as they are stored, and no longer as they are read."""


@dataclass(frozen=True)
class Fields:
    """Everything known of a table's columns."""

    name: str
    physical: Mapping[str, str]
    types: Mapping[str, Kind]
    declared: Mapping[str, Declaration]
    dialect: Dialect

    def check_names(self) -> None:
        """Raises PolicyError for a declaration of no column, or one that the column's type contradicts."""
        for column in (*self.declared, *self.types):
            if column not in self.physical:
                free = [name for name in self.physical if name not in {*self.declared, *self.types}]
                raise PolicyError(
                    f"table {self.name!r} has no column {column!r}, which is declared. "
                    f"{did_you_mean(column, self.physical)}",
                    remedy=self._meant(column, free),
                )
        folded = [c.lower() for c in self.physical]
        if len(set(folded)) < len(folded):
            raise PolicyError(f"table {self.name!r} has two columns whose names differ in case alone; rename one.")
        for column, what in self.declared.items():
            self._check_declaration(column, what)

    def _check_declaration(self, column: str, what: Declaration) -> None:
        kind = self._kind_and_sql(column)[0]
        if (trimmed(what) or isinstance(what, Text)) and kind not in (Kind.TEXT, Kind.NULL):
            as_text = DeclareType(column, "text", table=self.name)
            raise PolicyError(
                f"table {self.name!r}: column {column!r} is declared as {what!r}, but it holds values of type "
                f"{kind.value}, which have no blanks around them. Declare {as_text.in_python()}, or leave that out.",
                remedy=as_text if kind is not Kind.OTHER else (),
            )
        if isinstance(what, Between | Edges | UpTo) and kind is not Kind.OTHER:
            numeric = not isinstance(what, Between) or what.numeric
            fits = kind in ((Kind.INTEGER, Kind.NUMBER) if numeric else (Kind.DATE, Kind.TIMESTAMP))
            if not fits:
                way = DeclareType(column, _type_of(what), table=self.name)
                raise PolicyError(
                    f"table {self.name!r}: column {column!r} is declared as {what!r}, but it holds values of type "
                    f"{kind.value}.{f' Declare {way.in_python()}.' if kind is Kind.TEXT else ''}",
                    remedy=way if kind is Kind.TEXT else (),
                )

    def _meant(self, column: str, known: Iterable[str]) -> tuple[CorrectName, ...]:
        near = meant_by(column, known)
        return () if near is None else (CorrectName(near, column, self.name),)

    def kinds(self) -> dict[str, Kind]:
        """The kind of each column."""
        return {column: self._kind_and_sql(column)[0] for column in self.physical}

    def zoned(self) -> frozenset[str]:
        """The columns that the source types as times with a zone: moments."""
        return frozenset(c for c, kind in self.kinds().items() if kind is Kind.TIMESTAMP and self._has_zone(c))

    def _has_zone(self, column: str) -> bool:
        return _base(self.physical[column]) == "TIMESTAMP WITH TIME ZONE"

    def expressions(self) -> dict[str, str]:
        """The expression of each column; blanks around texts are cut off where that is declared."""
        expressions = {column: self._kind_and_sql(column) for column in self.physical}
        return {
            column: self.dialect.call("TRIM", [sql], [kind]) if trimmed(self.declared.get(column)) else sql
            for column, (kind, sql) in expressions.items()
        }

    def unit(self, column: str) -> tuple[str, str]:
        """The name of the unit column as the source writes it, and its expression, by which units are told apart.

        Raises PolicyError where there is no such column, or its values cannot be told apart exactly.
        """
        name = find_name(column, self.physical)
        if name is None:
            raise PolicyError(
                f"table {self.name!r} has no column {column!r} to be its unit. {did_you_mean(column, self.physical)}",
                remedy=self._meant(column, self.physical),
            )
        base, sql = _base(self.physical[name]), self.dialect.quote(name)
        declared = self.types.get(name)
        if base in ("VARCHAR", "ENUM", "UUID"):
            if declared not in (None, Kind.TEXT, Kind.INTEGER):
                raise self._units_in_one(
                    name, f"is text, declared as {declared.value}; different texts", "text", "integer"
                )
            if declared is Kind.INTEGER:
                whole = self.dialect.cast(self.dialect.column_text(sql), Kind.TEXT, Kind.INTEGER)
                return name, f"(CASE WHEN {self.dialect.whole_text(self.dialect.column_text(sql))} THEN {whole} END)"
            text = self.dialect.column_text(sql)
            return name, text if base == "UUID" else self.dialect.unit_text(text)
        if declared is Kind.NUMBER and base not in ("DOUBLE", "FLOAT"):
            raise self._units_in_one(name, "is declared as a number; large whole numbers", "integer", "text")
        as_stored = not self.physical[name].endswith(CUT)  # else two people could be one
        if base in ("DOUBLE", "FLOAT") and as_stored:
            return name, self.dialect.unit_double(sql)
        if base in _INTEGERS | _TIMESTAMPS | _UNITS | {"NULL"} and as_stored:
            return name, self.dialect.unit(sql, base)
        is_so = f"is of type {self.physical[name]}; a unit is named by text, a number, a UUID or a date."
        if not as_stored:
            is_so = (
                f"is read as {self.physical[name].removesuffix(CUT)}, in which two values that the file may hold are "
                "one. Write the file anew with whole numbers or moments of 64 bits there, or text."
            )
        raise PolicyError(f"table {self.name!r}: the unit column {name!r} {is_so}")

    def _units_in_one(self, name: str, what: str, *types: str) -> PolicyError:
        ways = [DeclareType(name, kind, table=self.name) for kind in types]
        said = " or ".join(way.in_python() for way in ways)
        words = f"table {self.name!r}: the unit column {name!r} {what} could become one unit. Declare {said}."
        return PolicyError(words, remedy=ways)

    def key(self, column: str) -> tuple[str, str]:
        """The expression of a column that leads to the unit, told apart as units are, and a word for its type.

        Raises PolicyError where its values cannot be told apart exactly.
        """
        name, sql = self.unit(column)
        return sql, self.unit_type(name)

    def unit_type(self, column: str) -> str:
        """A word for the unit's type: whole numbers are compared with whole numbers, texts with texts."""
        base = _base(self.physical[column])
        if base in ("VARCHAR", "ENUM", "UUID"):
            return "integer" if self.types.get(column) is Kind.INTEGER else "text"
        if base in _INTEGERS | {"UBIGINT", "HUGEINT"}:
            return "integer"
        return self.physical[column].lower()

    def _kind_and_sql(self, column: str) -> tuple[Kind, str]:
        kind, sql = normalised(self.physical[column], self.dialect.quote(column), self.dialect)
        wanted = self.types.get(column)
        if kind is Kind.NULL and wanted is None:
            wanted = _kind_declared(self.declared.get(column))
        if wanted is None or wanted is kind:
            return kind, sql
        if kind is Kind.NULL:
            return wanted, self.dialect.null(wanted)
        if kind is Kind.TEXT:
            cast = self.dialect.cast(sql, kind, wanted)
            # As in a column of doubles: a text '-0' is 0.
            total = self.dialect.unit_double(cast) if wanted is Kind.NUMBER else _in_range(cast, wanted, self.dialect)
            return wanted, total
        if kind is not Kind.OTHER and (
            (kind, wanted) in ((Kind.INTEGER, Kind.NUMBER), (Kind.DATE, Kind.TIMESTAMP)) or wanted is Kind.TEXT
        ):
            return wanted, self.dialect.cast(sql, kind, wanted)
        written = self.physical[column].lower() if kind is Kind.OTHER else kind.value
        way = DeclareType(column, kind.value, table=self.name)
        raise PolicyError(
            f"table {self.name!r}: column {column!r} is declared as {wanted.value}, but the source says {written}."
            f"{f' Declare {way.in_python()}.' if kind is not Kind.OTHER else ''}",
            remedy=way if kind is not Kind.OTHER else (),
        )


def _type_of(what: Between | Edges | UpTo) -> str:
    """The type that a column of text is declared as, to lie in a range."""
    if not isinstance(what, Between) or what.numeric:
        return "number"
    return "timestamp" if isinstance(what.low, dt.datetime) else "date"


def _kind_declared(what: Declaration | None) -> Kind | None:
    match what:
        case Between(numeric=True) | Edges() | UpTo():
            return Kind.NUMBER
        case Between():
            return Kind.TIMESTAMP
        case OneOf(values=values):
            first = next((v for v in values if v is not None), None)
            if isinstance(first, bool):
                return Kind.BOOLEAN
            if isinstance(first, int | float):
                return Kind.NUMBER
            return Kind.TEXT if isinstance(first, str) or first is None else Kind.TIMESTAMP
        case Text():
            return Kind.TEXT
    return None


def _in_range(sql: str, kind: Kind, dialect: Dialect) -> str:
    """A value, or NULL where it is a time outside the years 1 to 9999 (infinite ones included)."""
    match kind:
        case Kind.DATE | Kind.TIMESTAMP:
            return dialect.in_years(sql, kind, stored=True)
    return sql


def _within_digits(physical: str, sql: str, dialect: Dialect) -> str:
    """A decimal of 38 digits, or NULL where a file or a frame stores more: no cast takes the least such number."""
    scale = re.fullmatch(r"DECIMAL\(38,(\d+)\)", physical)
    if scale is None:
        return sql
    most = Decimal(10**38 - 1).scaleb(-int(scale[1]), Context(prec=38))
    # As a number alone, 38 nines behind the point would be a double.
    return dialect.stored_between(sql, *(f"CAST('{sign}{most:f}' AS {physical})" for sign in ("-", "")))


def _base(physical: str) -> str:
    """The name of a physical type without its parameters; lists and structures are themselves."""
    return physical if physical.endswith("]") else physical.split("(")[0].strip('"').upper()


def normalised(physical: str, sql: str, dialect: Dialect) -> tuple[Kind, str]:
    """The kind of a physical type, and a total expression of a column of that type."""
    base = _base(physical)
    if base in _INTEGERS:
        return Kind.INTEGER, f"CAST({sql} AS {dialect.types[Kind.INTEGER]})"
    if base in ("UBIGINT", "HUGEINT"):
        return Kind.INTEGER, f"CAST({sql} AS HUGEINT)"
    if base in ("DOUBLE", "FLOAT"):
        # 0.0 and -0.0 are equal, and yet two texts: whichever row came first would show.
        return Kind.NUMBER, dialect.unit_double(sql)
    if base in ("DECIMAL", "UHUGEINT"):
        return Kind.NUMBER, dialect.decimal(_within_digits(physical, sql, dialect))
    if base in ("VARCHAR", "ENUM", "UUID"):
        # A UUID is short; a value of an ENUM may be as long as any text.
        return Kind.TEXT, dialect.column_text(sql) if base == "UUID" else dialect.cut(dialect.column_text(sql))
    if base == "BOOLEAN":
        return Kind.BOOLEAN, sql
    if base == "DATE":
        return Kind.DATE, _in_range(sql, Kind.DATE, dialect)
    if base in _TIMESTAMPS:
        return Kind.TIMESTAMP, _in_range(dialect.cast(sql, Kind.TIMESTAMP, Kind.TIMESTAMP), Kind.TIMESTAMP, dialect)
    if base == "TIMESTAMP WITH TIME ZONE":
        return Kind.TIMESTAMP, _in_range(dialect.instant(sql), Kind.TIMESTAMP, dialect)
    if base == "NULL":
        return Kind.NULL, "NULL"
    return Kind.OTHER, "NULL"


def usable(physical: str, dialect: Dialect) -> bool:
    """Whether a column of a physical type can be used: in an expression, or as a unit."""
    return _base(physical) in _UNITS or normalised(physical, "", dialect)[0] is not Kind.OTHER
