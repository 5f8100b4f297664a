"""What the owner of a table declares: who is protected, how much one unit may add, what a column can hold.

Nothing in a declaration comes from private rows (law 7). Declarations are choices, not promises about the data:
a value outside `between` is clamped at the aggregate, a group outside `one_of` is dropped, and a unit with more
rows or groups than allowed is bounded.

Neighbours. `add_remove` (default): two tables are neighbours when one holds one unit more. `replace`: when one
unit's rows are exchanged for others.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, get_args

from hubbub.errors import PolicyError, what_was_given
from hubbub.file_formats import Csv, csv_from
from hubbub.keywords import named
from hubbub.remedies import DeclareLimits, DeclareOption, DeclareRange, DeclareType, DeclareValues, DeclareWithout
from hubbub.spelling import meant_by, one_spelling, space_name
from hubbub.tables.columns import Between, Declaration, Edges, OneOf, Text, UpTo, between, one_of, trimmed
from hubbub.tables.kinds import Kind, kind_meant, kind_named
from hubbub.tables.remote import is_remote, remote

__all__ = [
    "EACH_ROW",
    "Bounding",
    "EachRow",
    "Limits",
    "Neighbours",
    "PrivateTable",
    "PublicTable",
    "public",
    "table",
]

Neighbours = Literal["add_remove", "replace"]
Bounding = Literal["groups", "norm"]
Auto = Literal["auto"]


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
class Limits:
    """How much one unit contributes: C groups, R rows in each, so many rows in an answer without groups.

    bounding: how a unit beyond that is cut down: "groups" are dropped and rows cut, or its "norm" over all groups is
    clipped (`hubbub.tables.clipping`). auto: which of "groups" and "rows" are found in the charge.
    """

    groups: int | None = None
    rows: int | None = None
    total: int | None = None
    bounding: Bounding | None = None
    auto: tuple[str, ...] = ()


@dataclass(frozen=True)
class PrivateTable:
    """A declared table about people. Build it with `table`; `source` is held, not read.

    copy: a file with at most so many rows of each unit, which is read in its place (`hubbub.session.copies`).
    rows_per_unit_at_most: a statement about the rows, on which no privacy rests (`hubbub.session.total_error`).
    """

    source: Any = field(repr=False)
    unit: str | EachRow
    inner_table: str | None = None
    max_groups: int | Auto | None = None
    max_rows: int | Auto | None = None
    max_total: int | None = None
    bounding: Bounding = "groups"
    columns: Mapping[str, Declaration] = field(default_factory=dict)
    types: Mapping[str, Kind] = field(default_factory=dict)
    neighbours: Neighbours = "add_remove"
    unit_space: str | None = None
    through: Mapping[str, str] = field(default_factory=dict)
    trusted_view: bool = False
    csv: Csv | None = None
    copy: str | None = None
    rows_per_unit_at_most: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        if self.source is not None:
            raise PolicyError("a declared private table holds people's rows and cannot be pickled; declare it anew.")
        return self.__dict__

    def without_source(self) -> PrivateTable:
        """The declaration alone, for what outlives the question."""
        return replace(self, source=None, copy=None)

    def declaring(self, column: str, how: str, *values: Any, **flags: Any) -> PrivateTable:
        """This table with one more thing declared of a column, as a remedy says it (`hubbub.remedies`).

        how: "between" or "one_of" with values and flags, "type" with a kind, "others" or "trim" of declared values.
        """
        if how == "type":
            return replace(self, types={**self.types, column: Kind(*values)})
        if how in ("others", "trim"):
            what = self.columns.get(column)
            if not isinstance(what, OneOf):
                raise PolicyError(f"column {column!r} has no declared values. Declare them: hb.one_of(...).")
            flagged = replace(what, others=True) if how == "others" else replace(what, trim=True)
            return replace(self, columns={**self.columns, column: flagged})
        made = between(*values, **flags) if how == "between" else one_of(*values, **flags)
        return replace(self, columns={**self.columns, column: made})

    def renaming(self, old: str, new: str, *, inner: bool = False, key: bool = False) -> PrivateTable:
        """This table with a column under another name wherever it is declared, or with another table of its source.

        key: the column is another table's, by which the units of this one are reached.
        """
        if inner:
            return replace(self, inner_table=new)
        if key:
            return replace(self, through={own: new if there == old else there for own, there in self.through.items()})
        named = {old: new}
        return replace(
            self,
            unit=named.get(self.unit, self.unit) if isinstance(self.unit, str) and not self.through else self.unit,
            columns={named.get(name, name): what for name, what in self.columns.items()},
            types={named.get(name, name): kind for name, kind in self.types.items()},
            through={named.get(own, own): key for own, key in self.through.items()},
            csv=self.csv and replace(self.csv, formats={named.get(n, n): how for n, how in self.csv.formats.items()}),
        )

    @property
    def limits(self) -> Limits:
        given = {"groups": self.max_groups, "rows": self.max_rows}
        auto = tuple(name for name, value in given.items() if value == "auto")
        numbers = {name: value if isinstance(value, int) else None for name, value in given.items()}
        return Limits(**numbers, total=self.max_total, bounding=self.bounding, auto=auto)

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
    csv: Csv | None = None

    def declaring(self, column: str, how: str, kind: str) -> PublicTable:
        """This table with the type of a column, as a remedy says it: nothing else is declared of public columns."""
        return replace(self, types={**self.types, column: Kind(kind)})

    def renaming(self, old: str, new: str, *, inner: bool = False, key: bool = False) -> PublicTable:
        """As `PrivateTable.renaming`."""
        if inner:
            return replace(self, inner_table=new)
        named = {old: new}
        return replace(
            self,
            types={named.get(name, name): kind for name, kind in self.types.items()},
            csv=self.csv and replace(self.csv, formats={named.get(n, n): how for n, how in self.csv.formats.items()}),
        )


def _limit_or_auto(name: str, value: object) -> int | Auto | None:
    return "auto" if isinstance(value, str) and value == "auto" else _limit(name, value)


def _limit(name: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 2**31 - 1:
        way = DeclareLimits((name,)) if name.startswith("max_") else DeclareOption(name)
        raise PolicyError(
            f"{name}={what_was_given(value)}: expected a whole number from 1 to 2147483647, as in {way.in_python()}",
            remedy=way,
        )
    return value


def _source(source: object) -> object:
    elsewhere = source if is_remote(source) else remote(source)
    if elsewhere is not None:
        return elsewhere
    problem = f"is a {type(source).__name__}"
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if isinstance(path, bytes) or not any("\ud800" <= character <= "\udfff" for character in path):
            return path
        problem = "has a name that is not UTF-8, which engines cannot be given; rename it"
    elif hasattr(source, "__arrow_c_stream__"):
        return source
    raise PolicyError(
        f"a table's source {problem}; expected a path to a .parquet, .csv or .duckdb file, "
        "a frame with __arrow_c_stream__ (pandas, polars, pyarrow, ...), postgresql://HOST/DATABASE, env:NAME or "
        "spark:TABLE."
    )


def _types(types: Mapping[str, str] | None) -> dict[str, Kind]:
    _mapping("types", types)
    for name, word in (types or {}).items():
        meant = kind_meant(word)
        if meant is not None:
            way = DeclareType(name, meant.value)
            raise PolicyError(f"unknown column type {word!r}. Write {way.in_python()}.", remedy=way)
    return {name: kind_named(word) for name, word in (types or {}).items()}


def _one_word(option: str, given: object, allowed: Sequence[str]) -> None:
    """Raises PolicyError for an option that is none of some words, with the one that was meant."""
    if not (isinstance(given, str) and given in allowed):
        meant = meant_by(given, allowed) if isinstance(given, str) else None
        way = DeclareOption(option, meant)
        raise PolicyError(
            f"{option}={what_was_given(given)}: expected {' or '.join(map(repr, allowed))}."
            f"{f' Write {way.in_python()}.' if meant else ''}",
            remedy=way if meant else (),
        )


@named
def table(
    source: object,
    *,
    unit: str | EachRow,
    table: str | None = None,
    max_groups: int | Auto | None = None,
    max_rows: int | Auto | None = None,
    max_total: int | None = None,
    bounding: Bounding = "groups",
    columns: Mapping[str, Declaration] | None = None,
    types: Mapping[str, str] | None = None,
    neighbours: Neighbours = "add_remove",
    unit_space: str | None = None,
    through: str | Mapping[str, str] | None = None,
    trusted_view: bool = False,
    csv: Csv | Mapping[str, Any] | None = None,
    rows_per_unit_at_most: int | None = None,
) -> PrivateTable:
    """Declare a private table. Nothing is read until a question is asked.

    source: a path to a .parquet, .csv or .duckdb file, a folder of Parquet files or a pattern that names them, any
        frame with `__arrow_c_stream__`, the address of a Postgres
        database or the variable that holds it ("env:NAME"), a table of Spark ("spark:NAME") or a data frame of Spark.
    unit: the column that names who is protected; rows where it is NULL are dropped. Or `EACH_ROW`.
    table: the table's name inside a DuckDB file or a database.
    max_groups: in how many groups of one answer a unit counts at most.
    max_rows: with how many rows a unit counts in one group at most. Both may be "auto": each question then finds it in
        its own charge, unless it gives a number; with bounding="norm" they are numbers.
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
    csv: how a CSV is written, where it is not with commas, in UTF-8, with a header line: hb.Csv(delimiter=";", ...).
    rows_per_unit_at_most: a statement that no unit has more rows in this table. It bounds nothing and protects nobody:
        `total_error=True` takes it for what intervals of the total hold, and prints whose statement it is.

    Raises PolicyError for anything declared wrongly.
    """
    if not isinstance(trusted_view, bool):
        raise PolicyError(f"trusted_view={what_was_given(trusted_view)}: expected True or False.")
    if not (isinstance(unit, str) and unit) and unit is not EACH_ROW:
        raise PolicyError(
            f"unit={what_was_given(unit)}: name the column that says who is protected, or use hb.EACH_ROW."
        )
    _mapping("columns", columns)
    _one_word("neighbours", neighbours, get_args(Neighbours))
    _one_word("bounding", bounding, get_args(Bounding))
    if bounding == "norm" and "auto" in (max_groups, max_rows):
        limits = {"max_groups": max_groups, "max_rows": max_rows}
        numbers = DeclareLimits(tuple(name for name, value in limits.items() if value == "auto"))
        groups = DeclareOption("bounding", "groups")
        raise PolicyError(
            'bounding="norm" clips to what max_groups and max_rows allow: give numbers, not "auto", '
            f"{numbers.in_python()}; or find them with {groups.in_python()}.",
            remedy=(numbers, groups),
        )
    declared = dict(columns or {})
    for name, what in declared.items():
        if not isinstance(what, Between | OneOf | Edges | Text | UpTo):
            ways = (DeclareRange(name), DeclareValues(name)) if isinstance(name, str) else ()
            raise PolicyError(
                f"column {name!r} is declared as {what_was_given(what)}; expected hb.between(low, high), "
                f"hb.one_of(...), hb.edges(...) or hb.text(...){': ' if ways else ''}"
                f"{' or '.join(way.in_python() for way in ways)}.",
                remedy=ways,
            )
    _keep_units(declared, unit, through)
    return PrivateTable(
        source=_source(source),
        unit=unit,
        inner_table=table,
        max_groups=_limit_or_auto("max_groups", max_groups),
        max_rows=_limit_or_auto("max_rows", max_rows),
        max_total=_limit("max_total", max_total),
        bounding=bounding,
        columns=declared,
        types=_types(types),
        neighbours=neighbours,
        unit_space=None if unit_space is None else space_name(_text("unit_space", unit_space)),
        through=_through(unit, through),
        trusted_view=trusted_view,
        csv=None if csv is None else csv_from(csv),
        rows_per_unit_at_most=_limit("rows_per_unit_at_most", rows_per_unit_at_most),
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
            plain = DeclareWithout("trim", name)
            raise PolicyError(
                f"column {name!r} says who is protected, and two people whose names differ in blanks would become one: "
                f"declare it {plain.in_python()}.",
                remedy=plain,
            )


def _text(what: str, given: object) -> str:
    if not isinstance(given, str):
        raise PolicyError(f"{what}={what_was_given(given)}: expected text, such as 'patient_id'.")
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


@named
def public(
    source: object,
    *,
    table: str | None = None,
    types: Mapping[str, str] | None = None,
    csv: Csv | Mapping[str, Any] | None = None,
) -> PublicTable:
    """Declare a public table: one that protects nobody. It is answered exactly, at no cost.

    csv: how a CSV is written, as for `table`; its columns are then text unless `types` says otherwise.

    Raises PolicyError for a source that is neither a path nor a frame.
    """
    how = None if csv is None else csv_from(csv)
    return PublicTable(source=_source(source), inner_table=table, types=_types(types), csv=how)
