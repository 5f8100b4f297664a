"""What a session shows of itself: its tables as they are declared, and its history. Nothing here reads a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction

from hubbub.answer.release import text_table
from hubbub.errors import QueryError
from hubbub.ledger.budget import decimal_text, short_text
from hubbub.ledger.records import Entry
from hubbub.plots.page import html_lines, html_table
from hubbub.sql.bind.scope import Catalog, TableInfo, did_you_mean, find_name, table_meant

__all__ = ["DeclaredColumn", "DeclaredTable", "DeclaredTables", "EpsilonLeft", "History", "not_private"]

_COLUMNS = ("column", "kind", "declared")
_TABLES = ("table", "protects", "counts of one unit", "columns")
_HISTORY = ("time", "analyst", "table", "epsilon", "state", "question")


def not_private(name: str, tables: Iterable[str]) -> QueryError:
    """What refuses a table that is not private, with the nearest one that is."""
    tables = sorted(tables)
    return QueryError(
        f"{name!r} is not a private table of this session. {did_you_mean(name, tables)}",
        remedy=table_meant(name, tables),
    )


@dataclass(frozen=True)
class DeclaredColumn:
    """A column: its kind, and what is declared of it, as Python writes it; "" where nothing is."""

    name: str
    kind: str
    declared: str


@dataclass(frozen=True, repr=False)
class DeclaredTable:
    """A table as it is declared. unit: who is protected; None for a public table."""

    name: str
    unit: str | None
    limits: str
    columns: tuple[DeclaredColumn, ...] = field(default=())

    @property
    def about(self) -> str:
        """Who is protected, and how much of one unit an answer counts, in a sentence."""
        if self.unit is None:
            return "public: answered exactly, at no cost"
        return f"protects {self.unit}; {self.limits or 'no limits declared'}"

    @property
    def schema(self) -> dict[str, str]:
        """The kind of each column, by its name: `{"age": "integer", ...}`."""
        return {c.name: c.kind for c in self.columns}

    def _rows(self) -> list[tuple[str, ...]]:
        return [(c.name, c.kind, c.declared) for c in self.columns]

    def __repr__(self) -> str:
        return f"{self.name}: {self.about}\n{text_table(_COLUMNS, self._rows(), words=True)}"

    def _repr_html_(self) -> str:
        return f"<div>{html_lines([f'{self.name}: {self.about}'])}{html_table(_COLUMNS, self._rows())}</div>"


class DeclaredTables(Mapping[str, DeclaredTable]):
    """The tables of a session by name, in any case of letters."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    @property
    def catalog(self) -> Catalog:
        """What the reader of a question knows of them."""
        return self._catalog

    def __getitem__(self, name: str) -> DeclaredTable:
        """Raises QueryError, with the nearest name, for a table that is not there."""
        known = find_name(name, self._catalog) if isinstance(name, str) else None
        if known is None:
            said = f"there is no table {name!r}. {did_you_mean(str(name), self._catalog)}"
            raise QueryError(said, remedy=table_meant(str(name), self._catalog))
        return _declared(known, self._catalog[known])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and find_name(name, self._catalog) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._catalog)

    def __len__(self) -> int:
        return len(self._catalog)

    def _rows(self) -> list[tuple[str, ...]]:
        return [(t.name, t.unit or "nobody", t.limits, ", ".join(c.name for c in t.columns)) for t in self.values()]

    def __repr__(self) -> str:
        return text_table(_TABLES, self._rows(), words=True)

    def _repr_html_(self) -> str:
        return f"<div>{html_table(_TABLES, self._rows())}</div>"


def _declared(name: str, info: TableInfo) -> DeclaredTable:
    declared = info.declaration.columns if info.private else {}
    columns = tuple(
        DeclaredColumn(column, kind.value, "" if column not in declared else repr(declared[column]))
        for column, kind in info.columns.items()
    )
    if not info.private:
        return DeclaredTable(name, None, "", columns)
    table = info.declaration
    stated = {"max_groups": table.max_groups, "max_rows": table.max_rows, "max_total": table.max_total}
    said = [f"{key} = {value}" for key, value in stated.items() if value]
    return DeclaredTable(name, info.unit or "each row", ", ".join(said), columns)


class EpsilonLeft(Fraction):
    """An exact number that shows itself in a notebook as what is left of a budget. whole: the budget's epsilon."""

    __slots__ = ("whole",)
    whole: Fraction

    @classmethod
    def of_whole(cls, left: Fraction, whole: Fraction) -> EpsilonLeft:
        """So much of a budget."""
        made = cls(left)
        made.whole = whole
        return made

    def __reduce__(self) -> tuple[type[Fraction], tuple[str]]:
        return Fraction, (str(self),)

    def __copy__(self) -> EpsilonLeft:
        return EpsilonLeft.of_whole(Fraction(self), self.whole)

    def __deepcopy__(self, memo: dict[int, object]) -> EpsilonLeft:
        return copy(self)

    def __repr__(self) -> str:
        return repr(Fraction(self))

    def _repr_html_(self) -> str:
        return html_lines([f"epsilon {short_text(self)} of {decimal_text(self.whole)} is left"])


class History(list[Entry]):
    """The charges of a ledger, oldest first: a list, that shows itself as a table."""

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                e.time[:19].replace("T", " "),
                e.analyst,
                e.dataset,
                decimal_text(e.epsilon),
                e.state,
                " ".join(e.sql.split()),
            )
            for e in self
        ]

    def __repr__(self) -> str:
        return text_table(_HISTORY, self._rows(), words=True) if self else "nothing was asked yet"

    def _repr_html_(self) -> str:
        return f"<div>{html_table(_HISTORY, self._rows()) if self else html_lines(['nothing was asked yet'])}</div>"
