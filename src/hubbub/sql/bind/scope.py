"""What names mean in one SELECT: the sources of its FROM, each with its columns.

A column is an expression over the columns of the owned relation, so that a projection costs nothing: `income / 12 AS
m` in a sub-query is the expression itself wherever `m` stands.
"""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

from sqlglot import exp

from hubbub.remedies import CorrectName, DeclareType, Rewrite
from hubbub.spelling import meant_by
from hubbub.sql.text.locate import in_place, refuse
from hubbub.sql.text.texts import as_name
from hubbub.tables.columns import Scalar
from hubbub.tables.declare import EACH_ROW, PrivateTable
from hubbub.tables.expressions import Column, Expression
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import Scan

__all__ = ["Catalog", "PublicSide", "Scope", "Source", "TableColumns", "TableInfo", "did_you_mean", "find_name"]


@dataclass(frozen=True)
class TableInfo:
    """What the reader may know of a table: its columns, and for a private one its unit column (and a word for its type)
    and declaration. zoned: its columns of moments, of times with a zone."""

    columns: Mapping[str, Kind]
    private: bool
    unit: str | None = None
    table: PrivateTable | None = None
    unit_type: str | None = None
    zoned: frozenset[str] = frozenset()

    @property
    def declaration(self) -> PrivateTable:
        return self.table or PrivateTable(source=None, unit=self.unit or EACH_ROW)

    @cached_property
    def folded(self) -> Mapping[str, str | None]:
        """As `folded` says it of the columns, worked out once for all questions."""
        return folded(self.columns)


Catalog = Mapping[str, TableInfo]


class PublicSide(Protocol):
    """What the reader may ask about public data: SQL over public tables and (empty) releases."""

    def describe(
        self,
        sql: str,
        tables: tuple[str, ...],
        released: Mapping[str, Mapping[str, Kind]],
        *,
        answer: bool = False,
    ) -> dict[str, Kind]:
        """The columns of a statement, in order. answer: it is the whole statement, to be shown.

        Raises QueryError, in the engine's words, where it is refused, and where a column of an answer cannot be shown.
        """
        ...

    def values(self, sql: str, tables: tuple[str, ...], column: str) -> tuple[Scalar, ...] | None:
        """The different values of a column in order; None where there are too many."""
        ...

    def unique(self, sql: str, tables: tuple[str, ...], columns: tuple[str, ...]) -> bool:
        """Whether no two rows are equal in these columns."""
        ...

    def most(self, sql: str, tables: tuple[str, ...], columns: tuple[tuple[str, Kind], ...]) -> int:
        """How many rows are equal in these columns at most, compared as values of these kinds."""
        ...

    def longest(self, sql: str, tables: tuple[str, ...], column: str) -> int:
        """How many characters the longest text of a column has."""
        ...


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is not known: the nearest one, or the list.

    >>> did_you_mean("wrad", ["ward", "age"])
    "Did you mean 'ward'?"
    """
    known = sorted(known)
    near = meant_by(name, known) or _nearest(name, known)
    if near is not None:
        return f"Did you mean {near!r}?"
    if not known:
        return "There is none."
    shown = ", ".join(repr(k) for k in known[:8])
    return f"Known: {shown}{', ...' if len(known) > 8 else ''}."


def table_meant(name: str, known: Iterable[str]) -> tuple[Rewrite, ...]:
    """The name of a table that was meant, where it is asked for by its name alone; nothing where that is not plain.

    >>> table_meant("vists", ["visits", "wards"])
    (Rewrite(example="'visits'", sql='visits'),)
    """
    near = meant_by(name, known)
    return () if near is None else (Rewrite(repr(near), near),)


def inner_table_meant(name: str, known: Iterable[str], table: str) -> tuple[CorrectName, ...]:
    """The table of a file or a database that was meant by the declaration of a table."""
    near = meant_by(name, known)
    return () if near is None else (CorrectName(near, name, table, inner=True),)


def meant(name: str, known: Iterable[str], text: str, node: exp.Expr) -> tuple[Rewrite, ...]:
    """The question with the name that was meant; nothing where that is not plain, or could be another one."""
    near = meant_by(name, known)
    if near is None:
        return ()
    return (Rewrite(near, in_place(as_name(near), text, node).sql),)


def _nearest(name: str, known: Sequence[str]) -> str | None:
    near = difflib.get_close_matches(name.lower(), [k.lower() for k in known], n=1, cutoff=0.6)
    return next(k for k in known if k.lower() == near[0]) if near else None


def find_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` stands for: the same, or the only one that differs in case alone."""
    known = list(known)
    if name in known:
        return name
    folded = [k for k in known if k.lower() == name.lower()]
    return folded[0] if len(folded) == 1 else None


def folded(names: Iterable[str]) -> dict[str, str | None]:
    """The only name that is so in lower case; None where there are several.

    >>> folded(["Age", "x", "X"])
    {'age': 'Age', 'x': None}
    """
    known: dict[str, str | None] = {}
    for name in names:
        known[name.lower()] = None if name.lower() in known else name
    return known


class TableColumns(Mapping[str, Expression]):
    """What each column of a table is. Made when it is asked for: a question names few of two hundred.

    moments: those that are made already, because their clocks are looked at in any case.
    """

    def __init__(self, info: TableInfo, scan: Scan, moments: Mapping[str, Expression]) -> None:
        self.info, self.place, self._scan, self._made = info, scan.place, scan, dict(moments)

    def __getitem__(self, name: str) -> Expression:
        if name not in self._made:
            self._made[name] = self._scan.column(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scan.columns)

    def __len__(self) -> int:
        return len(self._scan.columns)

    def __contains__(self, name: object) -> bool:
        return name in self._scan.columns

    def names_of(self, expression: Expression) -> list[str]:
        """The columns that are this expression: one of its name, or a moment as a zone's clocks show it."""
        if not isinstance(expression, Column):
            return [name for name, made in self._made.items() if made == expression]
        name = expression.name.removeprefix(f"{self.place}.")
        return [name] if name in self and self[name] == expression else []


@dataclass(frozen=True)
class Source:
    """One item of FROM: its alias, and what each of its columns is."""

    alias: str
    columns: Mapping[str, Expression]

    def named(self, name: str) -> str | None:
        """The column that `name` stands for, as `find_name` finds it, whatever the number of columns."""
        return name if name in self.columns else self._folded.get(name.lower())

    @cached_property
    def _folded(self) -> Mapping[str, str | None]:
        return self.columns.info.folded if isinstance(self.columns, TableColumns) else folded(self.columns)


@dataclass
class Scope:
    """The sources of one SELECT. merged: columns of USING, which belong to both sides. sides: these, each as its source
    has it. outer: the SELECT around.
    """

    text: str
    sources: list[Source] = field(default_factory=list)
    merged: dict[str, Expression] = field(default_factory=dict)
    sides: set[tuple[str, str]] = field(default_factory=set)
    outer: Scope | None = None

    def column(self, node: exp.Column) -> Expression:
        """What a column is.

        Raises QueryError for one that is unknown, ambiguous, or of a type that questions cannot use.
        """
        expression = self.find(node)
        if isinstance(expression, Column) and expression.kind is Kind.OTHER:
            remedy = DeclareType(expression.called)
            raise refuse(
                f"the column {node.name!r} is of a type that questions cannot use. If it holds text or numbers, "
                f"declare {remedy.in_python()}.",
                self.text,
                node,
                remedy=remedy,
            )
        return expression

    def find(self, node: exp.Column) -> Expression:
        if not isinstance(node.this, exp.Identifier):
            alone = isinstance(node.parent, exp.Count) and len(self.sources) == 1
            rows = Rewrite("COUNT(*)", in_place("*", self.text, node).sql if alone else None)
            said = f"'*' is not a value; for the number of rows write {rows.example}."
            raise refuse(said, self.text, node, remedy=rows)
        if node.args.get("db") or node.args.get("catalog"):
            way = in_place(f"{node.table}.{node.name}", self.text, node)
            raise refuse(
                f"{node.sql()!r}: a column is named by itself or with its table: {way.example}.",
                self.text,
                node,
                remedy=way,
            )
        if node.table:
            source = self.source(node.table)
            if source is None:
                raise refuse(
                    f"{node.sql()!r}: no such table in this question. "
                    f"{did_you_mean(node.table, [s.alias for s in self.sources])}",
                    self.text,
                    node,
                    remedy=meant(node.table, [s.alias for s in self.sources], self.text, node.args["table"]),
                )
            name = source.named(node.name)
            if name is None:
                raise self._unknown(node, source.columns, source.alias)
            return _called(source.columns[name], name)
        name = find_name(node.name, self.merged)
        if name is not None:
            return _called(self.merged[name], name)
        holders = [(s, column) for s in self.sources if (column := s.named(node.name)) is not None]
        if not holders:
            every = [c for s in self.sources for c in s.columns]
            raise self._unknown(node, every, self.sources[0].alias if len(self.sources) == 1 else "")
        if len(holders) > 1:
            raise self._of_several(node, holders)
        source, column = holders[0]
        return _called(source.columns[column], column)

    def knows(self, node: exp.Column) -> bool:
        """Whether a column is one of this SELECT's own."""
        if node.table:
            source = self.source(node.table)
            return source is not None and source.named(node.name) is not None
        return any(s.named(node.name) is not None for s in self.sources)

    def source(self, alias: str) -> Source | None:
        """The item of FROM of this name. An alias hides a table's own name, which then means a SELECT further out."""
        return next((s for s in self.sources if s.alias.lower() == alias.lower()), None)

    def every(self, left_out: Container[tuple[str, str]] = ()) -> dict[str, Expression]:
        """All columns in order, as `*` lists them; a column of USING once, where its first side stands that is not
        left out; a name taken twice refused by its reader.

        left_out: columns as `held` names them.
        """
        columns, listed = dict[str, Expression](), set[str]()
        for source in self.sources:
            for name, own in source.columns.items():
                merged = find_name(name, self.merged) if (source.alias, name) in self.sides else None
                if (source.alias, name) in left_out or merged in listed:
                    continue
                if merged is not None:
                    listed.add(merged)
                called, i = merged or name, 1
                unique = called
                while unique in columns:
                    unique, i = f"{called}_{i}", i + 1
                columns[unique] = own if merged is None else self.merged[merged]
        return columns

    def held(self, name: str, table: str = "") -> list[tuple[str, str]]:
        """The columns of a name, each with the alias of its source."""
        sources = [s for s in self.sources if table.lower() in ("", s.alias.lower())]
        return [(s.alias, column) for s in sources if (column := s.named(name)) is not None]

    def _of_several(self, node: exp.Column, holders: Sequence[tuple[Source, str]]) -> Exception:
        """What refuses a column that several tables have: whose it is only its writer knows, so each way is a blank."""
        names = " and ".join(repr(s.alias) for s, _ in holders)
        ways = [Rewrite(f"{s.alias}.{column}") for s, column in holders]
        whose = " or ".join(way.example for way in ways)
        return refuse(f"{node.name!r} is a column of {names}: write {whose}.", self.text, node, remedy=ways)

    def names_of(self, expression: Expression) -> list[str]:
        """The columns that are this expression, by the names that `every` gives them."""
        columns = self.sources[0].columns if len(self.sources) == 1 and not self.merged else None
        if isinstance(columns, TableColumns):
            return columns.names_of(expression)
        return [name for name, one in self.every().items() if one == expression]

    def _unknown(self, node: exp.Column, known: Iterable[str], table: str) -> Exception:
        where = f" in table {table!r}" if table else ""
        text = not node.table and node.this.args.get("quoted")
        quoted = exp.Literal.string(node.name).sql()
        hint = f" Double quotes are for names; text stands in single ones: {quoted}." if text else ""
        as_text = (in_place(quoted, self.text, node),) if text else ()
        near = meant(node.name, known, self.text, node.this)
        return refuse(
            f"unknown column {node.name!r}{where}. {did_you_mean(node.name, known)}{hint}",
            self.text,
            node,
            # A name in double quotes that is near to a column is either: what was meant only its writer knows.
            remedy=() if as_text and near else (*as_text, *near),
        )


def _called(expression: Expression, name: str) -> Expression:
    """A computed column under the name by which it is asked for; those of tables keep the declared one."""
    return replace(expression, shown=name) if isinstance(expression, Column) and expression.shown else expression
