"""What the owner of a table declares: who is protected, how much one unit may add, what a column can hold.

Nothing in a declaration comes from private rows (law 7). Declarations are choices, not promises about the data:
a value outside `between` is clamped at the aggregate, a group outside `one_of` is dropped, and a unit with more
rows or groups than allowed is bounded.

Neighbours. `add_remove` (default): two tables are neighbours when one holds one unit more. `replace`: when one
unit's rows are exchanged for others.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Literal, get_args

from hubbub.errors import PolicyError
from hubbub.spelling import one_spelling, space_name
from hubbub.tables.kinds import Kind, kind_named
from hubbub.tables.remote import PostgresAddress, SparkFrame, SparkName, remote

__all__ = [
    "EACH_ROW",
    "Between",
    "Bounding",
    "EachRow",
    "Edges",
    "Limits",
    "Neighbours",
    "OneOf",
    "PrivateTable",
    "PublicTable",
    "Ranged",
    "Text",
    "between",
    "edges",
    "one_of",
    "public",
    "table",
    "text",
]

Neighbours = Literal["add_remove", "replace"]
Bounding = Literal["groups", "norm"]
Scalar = bool | int | float | str | dt.date | dt.datetime | None


class EachRow:
    """The type of `EACH_ROW`: every single row is a unit of its own."""

    _only: EachRow | None = None

    def __new__(cls) -> EachRow:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "EACH_ROW"


EACH_ROW: Final = EachRow()
"""`unit=hb.EACH_ROW` protects single rows. Right only where no person has two rows."""


@dataclass(frozen=True)
class Between:
    """Declared bounds of a column, in the column's own unit. Build it with `between`."""

    low: Fraction | dt.date | dt.datetime
    high: Fraction | dt.date | dt.datetime
    nullable: bool = True

    @property
    def numeric(self) -> bool:
        return isinstance(self.low, Fraction)

    def __repr__(self) -> str:
        tail = "" if self.nullable else ", nullable=False"
        return f"between({_plain(self.low)}, {_plain(self.high)}{tail})"


@dataclass(frozen=True)
class OneOf:
    """Declared values of a column, in the order in which answers list them. Build it with `one_of`.

    other: the group of every value that is not declared, NULL too unless it is; None for no such group. others: whether
    questions may compare the column with values that are not declared. trim: whether blanks around a text are cut off
    before it is looked at.
    """

    values: tuple[Scalar, ...]
    other: str | None = None
    others: bool = False
    trim: bool = False

    @property
    def open(self) -> bool:
        """Whether values that are not declared are known to occur: `other` groups them, `others` leaves them."""
        return self.others or self.other is not None

    def __repr__(self) -> str:
        tail = "" if self.other is None else f", other={self.other!r}"
        tail += ", others=True" if self.others else ""
        tail += ", trim=True" if self.trim else ""
        return f"one_of({', '.join(map(repr, self.values))}{tail})"


@dataclass(frozen=True)
class Text:
    """A column of text of which no values are declared. Build it with `text`."""

    trim: bool = False

    def __repr__(self) -> str:
        return f"text({'trim=True' if self.trim else ''})"


@dataclass(frozen=True)
class Edges:
    """Declared bounds of a numeric column, with the edges of the groups it falls into. Build it with `edges`."""

    ends: tuple[Fraction, ...]
    nullable: bool = True

    @property
    def low(self) -> Fraction:
        return self.ends[0]

    @property
    def high(self) -> Fraction:
        return self.ends[-1]

    def labels(self) -> tuple[str, ...]:
        """The groups: half-open, the last one closed."""
        texts = [_plain(end) for end in self.ends]
        last = len(texts) - 2
        return tuple(f"[{a}, {b}{']' if i == last else ')'}" for i, (a, b) in enumerate(itertools.pairwise(texts)))

    def __repr__(self) -> str:
        tail = "" if self.nullable else ", nullable=False"
        return f"edges({', '.join(map(_plain, self.ends))}{tail})"


@dataclass(frozen=True)
class Ranged:
    """What follows for a computed column: its least and largest value where there are any. Never declared."""

    low: Fraction | None
    high: Fraction | None


Declaration = Between | OneOf | Edges | Ranged | Text

BLANKS: Final = "".join(map(chr, (0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)))
"""Unicode's space separators, which TRIM removes, on every engine."""


def trimmed(what: Declaration | None) -> bool:
    """Whether blanks around the texts of a column are cut off as it is read."""
    return isinstance(what, OneOf | Text) and what.trim


@dataclass(frozen=True)
class Limits:
    """How much one unit contributes: C groups, R rows in each, so many rows in an answer without groups.

    bounding: how a unit beyond that is cut down: "groups" are dropped and rows cut, or its "norm" over all groups is
    clipped (`hubbub.tables.clipping`).
    """

    groups: int | None = None
    rows: int | None = None
    total: int | None = None
    bounding: Bounding | None = None


def _plain(bound: object) -> str:
    if isinstance(bound, Fraction):
        return str(bound.numerator) if bound.denominator == 1 else repr(float(bound))
    return repr(str(bound))


def _bound(value: object, which: str) -> Fraction | dt.date | dt.datetime:
    """One end of `between`: numbers are read as written (0.1 is one tenth), text as an ISO date or time."""
    if isinstance(value, bool) or value is None:
        raise PolicyError(f"between(): {which} bound is {value!r}; expected a number, a date or an ISO string.")
    if isinstance(value, dt.datetime | dt.date):
        return value
    if isinstance(value, str):
        return _temporal(value, which)
    if isinstance(value, Fraction | int):
        return Fraction(value)
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise PolicyError(
            f"between(): {which} bound is {value!r}; expected a number, a date or an ISO string."
        ) from None
    if not math.isfinite(number):
        raise PolicyError(
            f"between(): {which} bound is {value!r}; bounds are finite. Declare the range you would believe."
        )
    return Fraction(str(value) if isinstance(value, Decimal) else repr(number))


def _temporal(text: str, which: str) -> dt.date | dt.datetime:
    try:
        return dt.date.fromisoformat(text) if len(text) <= 10 else dt.datetime.fromisoformat(text)
    except ValueError:
        raise PolicyError(
            f"between(): {which} bound {text!r} is not an ISO date or time such as '2025-01-31'. "
            "Write numbers without quotes."
        ) from None


def between(low: object, high: object, *, nullable: bool = True) -> Between:
    """Declare that a column's values lie between `low` and `high`, ends included.

    Values outside are clamped when they are aggregated, NaN counts as NULL. A NULL is left out of SUM, AVG and
    COUNT(column); with `nullable=False` it counts as the midpoint.

    low, high: numbers, dates, datetimes or ISO strings, low < high.

    Raises PolicyError for bounds that are missing, infinite, NaN, of two kinds, or not in order.

    >>> between(0, 120)
    between(0, 120)
    """
    lo, hi = _bound(low, "lower"), _bound(high, "upper")
    if isinstance(lo, Fraction) != isinstance(hi, Fraction) or isinstance(lo, dt.datetime) != isinstance(
        hi, dt.datetime
    ):
        raise PolicyError(f"between({low!r}, {high!r}): the bounds are of two kinds; give two of one kind.")
    if not lo < hi:  # type: ignore[operator]
        raise PolicyError(f"between({low!r}, {high!r}): the lower bound must be below the upper one.")
    return Between(lo, hi, nullable)


def edges(*ends: object, nullable: bool = True) -> Edges:
    """Declare a numeric column's bounds, and the edges of the groups that GROUP BY on it has.

    ends: at least two numbers in increasing order. Values outside the first and the last are clamped when they are
    aggregated, and dropped when they are grouped.

    Raises PolicyError for fewer than two edges, for edges out of order, or that are no numbers.

    >>> edges(0, 18, 65, 120).labels()
    ('[0, 18)', '[18, 65)', '[65, 120]')
    """
    found = tuple(_bound(end, "an") for end in ends)
    numbers = tuple(e for e in found if isinstance(e, Fraction))
    if len(numbers) < len(found) or len(numbers) < 2:
        raise PolicyError(f"edges{ends!r}: give at least two numbers, as in hb.edges(0, 18, 65, 120).")
    if any(a >= b for a, b in itertools.pairwise(numbers)):
        raise PolicyError(f"edges{ends!r}: the edges must increase.")
    return Edges(numbers, nullable)


def text(*, trim: bool = False) -> Text:
    """Declare a column of text whose values are not declared.

    trim: cut off blanks (Unicode's space separators) around each text as it is read, before anything looks at it.

    Raises PolicyError where trim is neither True nor False.

    >>> text(trim=True)
    text(trim=True)
    """
    return Text(_choice("text", "trim", trim))


def _choice(whose: str, name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise PolicyError(f"{whose}: {name}={value!r}: expected True or False.")
    return value


def one_of(*values: Scalar, other: str | None = None, others: bool = False, trim: bool = False) -> OneOf:
    """Declare all values of a column that an answer may name as a group, in the order of the answer.

    Any values, None included (then NULL is a group). Rows with another value are dropped from grouped answers; with
    `other`, a text, they form a last group of that name, for columns of text.

    A question that looks for a value which is not declared (`ward = 'cardiology'`) is refused before it costs anything:
    it is spelt wrongly, more often than not. others: such values occur, and may be asked for; they are no groups.
    `other` implies it.

    trim: cut off blanks (Unicode's space separators) around each text as it is read: " A" is "A".

    Raises PolicyError for no values, a value twice, NaN, values of mixed kinds, and with `trim` for values that are no
    text or begin or end with a blank.

    >>> one_of("A", "B", None)
    one_of('A', 'B', None)
    """
    if len(values) == 1 and isinstance(values[0], Iterable) and not isinstance(values[0], str | bytes):
        raise PolicyError(f"one_of takes the values themselves: one_of(*{type(values[0]).__name__}), not one_of(...).")
    if not values:
        raise PolicyError("one_of() needs at least one value: the groups an answer may name.")
    cleaned = tuple(_category(v) for v in values)
    families = {_family(v) for v in cleaned if v is not None}
    if len(families) > 1:
        raise PolicyError(f"one_of: values of mixed kinds ({', '.join(sorted(families))}); give values of one kind.")
    if len(set(cleaned)) < len(cleaned):
        twice = next(v for i, v in enumerate(cleaned) if v in cleaned[:i])
        raise PolicyError(f"one_of: the value {twice!r} stands twice; each group is named once.")
    if other is not None and (not isinstance(other, str) or families - {"text"} or other in cleaned):
        raise PolicyError(f"one_of: other={other!r}: expected a text beside texts, and not one of them.")
    found = OneOf(cleaned, other, _choice("one_of", "others", others), _choice("one_of", "trim", trim))
    if trim and families - {"text"}:
        raise PolicyError(f"one_of: trim=True is for texts; the values are of kind {', '.join(families)}.")
    never = [v for v in cleaned if isinstance(v, str) and v != v.strip(BLANKS)]
    if trim and never:
        raise PolicyError(
            f"one_of: {never[0]!r} begins or ends with a blank, which trim=True cuts off: write "
            f"{never[0].strip(BLANKS)!r}."
        )
    return found


def _category(value: object) -> Scalar:
    item = getattr(value, "item", None)
    if callable(item) and type(value).__module__ == "numpy":
        value = item()
    if isinstance(value, float) and not math.isfinite(value):
        raise PolicyError(f"one_of: {value!r} cannot be a group; NaN and infinities never match. Leave it out.")
    if isinstance(value, float) and value == 0:
        return 0.0
    if isinstance(value, dt.datetime):
        value = plain_moment(value)
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise PolicyError(f"one_of: {value!r} holds half a character, which no column of text does.") from None
    if value is None or isinstance(value, bool | int | float | str | dt.date):
        return value
    raise PolicyError(
        f"one_of: {value!r} is a {type(value).__name__}; expected text, a number, a boolean, a date or None."
    )


def plain_moment(value: dt.datetime) -> dt.datetime:
    """A time as columns hold it: in UTC without a zone, of whole microseconds.

    Raises PolicyError for one that is no such time: nanoseconds, NaT.
    """
    try:
        if getattr(value, "nanosecond", 0):
            raise ValueError
        moved = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo is not None else value
        return dt.datetime(*moved.timetuple()[:6], moved.microsecond)
    except (ValueError, TypeError, OverflowError):
        raise PolicyError(
            f"{value!r} is no time of whole microseconds in the years 1 to 9999, which a group has to be."
        ) from None


def _family(value: Scalar) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "date"


@dataclass(frozen=True)
class PrivateTable:
    """A declared table about people. Build it with `table`; `source` is held, not read."""

    source: Any = field(repr=False)
    unit: str | EachRow
    inner_table: str | None = None
    max_groups: int | None = None
    max_rows: int | None = None
    max_total: int | None = None
    bounding: Bounding = "groups"
    columns: Mapping[str, Declaration] = field(default_factory=dict)
    types: Mapping[str, Kind] = field(default_factory=dict)
    neighbours: Neighbours = "add_remove"
    unit_space: str | None = None
    through: Mapping[str, str] = field(default_factory=dict)
    trusted_view: bool = False

    def __getstate__(self) -> dict[str, Any]:
        if self.source is not None:
            raise PolicyError("a declared private table holds people's rows and cannot be pickled; declare it anew.")
        return self.__dict__

    def without_source(self) -> PrivateTable:
        """The declaration alone, for what outlives the question."""
        return replace(self, source=None)

    @property
    def limits(self) -> Limits:
        return Limits(self.max_groups, self.max_rows, self.max_total, self.bounding)

    @property
    def path(self) -> tuple[str, str, str, str] | None:
        """For a unit of another table: (own column, table, its key, the last name of the unit)."""
        if not self.through or not isinstance(self.unit, str):
            return None
        table, _, last = self.unit.rpartition(".")
        own, key = next(iter(self.through.items()))
        return own, table, key, last

    @property
    def space(self) -> str:
        """The unit space, under which the ledger keeps one budget."""
        if self.unit_space is not None:
            return self.unit_space
        if not isinstance(self.unit, str):
            return "each row"
        name = self.unit.rpartition(".")[2] if self.through else self.unit
        return one_spelling(name) or name


@dataclass(frozen=True)
class PublicTable:
    """A declared table that protects nobody. Build it with `public`."""

    source: Any = field(repr=False)
    inner_table: str | None = None
    types: Mapping[str, Kind] = field(default_factory=dict)


def _limit(name: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 2**31 - 1:
        raise PolicyError(f"{name}={value!r}: expected a whole number from 1 to 2147483647.")
    return value


def _source(source: object) -> object:
    elsewhere = source if isinstance(source, PostgresAddress | SparkName | SparkFrame) else remote(source)
    if elsewhere is not None:
        return elsewhere
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    if hasattr(source, "__arrow_c_stream__"):
        return source
    raise PolicyError(
        f"a table's source is a {type(source).__name__}; expected a path to a .parquet, .csv or .duckdb file, "
        "a frame with __arrow_c_stream__ (pandas, polars, pyarrow, ...), postgresql://HOST/DATABASE, env:NAME or "
        "spark:TABLE."
    )


def _types(types: Mapping[str, str] | None) -> dict[str, Kind]:
    _mapping("types", types)
    return {name: kind_named(word) for name, word in (types or {}).items()}


def table(
    source: object,
    *,
    unit: str | EachRow,
    table: str | None = None,
    max_groups: int | None = None,
    max_rows: int | None = None,
    max_total: int | None = None,
    bounding: Bounding = "groups",
    columns: Mapping[str, Declaration] | None = None,
    types: Mapping[str, str] | None = None,
    neighbours: Neighbours = "add_remove",
    unit_space: str | None = None,
    through: str | Mapping[str, str] | None = None,
    trusted_view: bool = False,
) -> PrivateTable:
    """Declare a private table. Nothing is read until a question is asked.

    source: a path to a .parquet, .csv or .duckdb file, any frame with `__arrow_c_stream__`, the address of a Postgres
        database or the variable that holds it ("env:NAME"), a table of Spark ("spark:NAME") or a data frame of Spark.
    unit: the column that names who is protected; rows where it is NULL are dropped. Or `EACH_ROW`.
    table: the table's name inside a DuckDB file or a database.
    max_groups: in how many groups of one answer a unit counts at most.
    max_rows: with how many rows a unit counts in one group at most.
    max_total: with how many rows a unit counts in an answer without groups (default max_groups * max_rows).
    bounding: what happens to a unit beyond these limits: with "groups" some of its groups are dropped and its rows are
        cut in each group; with "norm" all its rows are weighted down until their norm over all groups fits.
    columns: `between(...)` or `one_of(...)` by column name; a sum needs bounds, a group needs values.
    types: kinds by column name (integer, number, text, boolean, date, timestamp); required for a CSV, and for
        pandas columns of dtype object.
    neighbours: "add_remove" or "replace".
    unit_space: tables of one unit space share one budget; default: the name of the unit column. Case, blanks
        and the forms that Unicode has for one text make no difference.
    through: for a unit that stands in another table: unit="orders.customer_id", through="order_id" finds a row's
        owner in the table `orders` by their common column; {"order": "order_id"} where it has two names. That table
        may itself reach its unit through a third.
    trusted_view: accept a view, a foreign table or generated columns where a base table is asked for. Whoever says so
        vouches that each row belongs to one unit, that it depends on that unit's rows and public ones alone, and that
        no row makes reading fail.

    Raises PolicyError for anything declared wrongly.
    """
    if not isinstance(trusted_view, bool):
        raise PolicyError(f"trusted_view={trusted_view!r}: expected True or False.")
    if not (isinstance(unit, str) and unit) and unit is not EACH_ROW:
        raise PolicyError(f"unit={unit!r}: name the column that says who is protected, or use hb.EACH_ROW.")
    _mapping("columns", columns)
    if not (isinstance(neighbours, str) and neighbours in get_args(Neighbours)):
        raise PolicyError(f"neighbours={neighbours!r}: expected 'add_remove' or 'replace'.")
    if not (isinstance(bounding, str) and bounding in get_args(Bounding)):
        raise PolicyError(f"bounding={bounding!r}: expected 'groups' or 'norm'.")
    declared = dict(columns or {})
    for name, what in declared.items():
        if not isinstance(what, Between | OneOf | Edges | Text):
            raise PolicyError(
                f"column {name!r} is declared as {what!r}; expected hb.between(low, high), hb.one_of(...), "
                "hb.edges(...) or hb.text(...)."
            )
    _keep_units(declared, unit, through)
    return PrivateTable(
        source=_source(source),
        unit=unit,
        inner_table=table,
        max_groups=_limit("max_groups", max_groups),
        max_rows=_limit("max_rows", max_rows),
        max_total=_limit("max_total", max_total),
        bounding=bounding,
        columns=declared,
        types=_types(types),
        neighbours=neighbours,
        unit_space=None if unit_space is None else space_name(_text("unit_space", unit_space)),
        through=_through(unit, through),
        trusted_view=trusted_view,
    )


def _keep_units(declared: Mapping[str, Declaration], unit: str | EachRow, through: object) -> None:
    """Units are told apart as the source writes them: two that differ in blanks are two.

    Raises PolicyError for a unit column, or one that leads to the unit, of which blanks would be cut off.
    """
    own = (
        {unit}
        if isinstance(unit, str) and through is None
        else set(map(str, through if isinstance(through, dict) else [through]))
    )
    for name, what in declared.items():
        if trimmed(what) and name.lower() in {str(column).lower() for column in own}:
            raise PolicyError(
                f"column {name!r} says who is protected, and two people whose names differ in blanks would become one: "
                "declare it without trim."
            )


def _text(what: str, given: object) -> str:
    if not isinstance(given, str):
        raise PolicyError(f"{what}={given!r}: expected text, such as 'patient_id'.")
    return given


def _mapping(what: str, given: object) -> None:
    if given is not None and not isinstance(given, Mapping):
        raise PolicyError(
            f"{what}: expected names and what is declared of each, as a dict; got {type(given).__name__}."
        )


def _through(unit: str | EachRow, through: str | Mapping[str, str] | None) -> dict[str, str]:
    if through is None:
        return {}
    if not isinstance(through, str):
        _mapping("through", through)
    pairs = {through: through} if isinstance(through, str) else dict(through)
    named = isinstance(unit, str) and all(unit.rpartition("."))
    if not named or len(pairs) != 1 or not all(isinstance(c, str) and c for pair in pairs.items() for c in pair):
        raise PolicyError(
            f"through={through!r}: with it, unit names a table and its column, and through the column that leads "
            'there, as in unit="orders.customer_id", through="order_id".'
        )
    return pairs


def public(source: object, *, table: str | None = None, types: Mapping[str, str] | None = None) -> PublicTable:
    """Declare a public table: one that protects nobody. It is answered exactly, at no cost.

    Raises PolicyError for a source that is neither a path nor a frame.
    """
    return PublicTable(source=_source(source), inner_table=table, types=_types(types))
