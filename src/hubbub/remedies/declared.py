"""Remedies that change what is declared of a table, or the policy file in which it is declared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from hubbub.remedies.base import Attempt, OfTable, Remedy, key, listed, only_private, said

__all__ = [
    "AllowOthers",
    "DeclareLimits",
    "DeclareRange",
    "DeclareType",
    "DeclareValues",
    "TrimBlanks",
]

UNDER_COLUMNS: Final = "under the columns of its table in the policy file"


@dataclass(frozen=True)
class _OfColumn(OfTable):
    """A remedy that declares something of a column. table: whose it is, needed where several are declared."""

    column: str

    def _declared(self, tables: dict[str, Any], table: str | None, how: str, *values: Any) -> dict[str, Any]:
        name = self._table(tables, table)
        return {**tables, name: tables[name].declaring(self.column, how, *values)}


@dataclass(frozen=True)
class DeclareRange(_OfColumn):
    """Declare between which bounds a column lies. temporal: it holds dates or times, written as ISO texts."""

    kind: ClassVar[str] = "declare a range"
    blanks: ClassVar[tuple[str, ...]] = ("low", "high")

    low: Any = None
    high: Any = None
    temporal: bool = False
    table: str | None = None

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        return attempt, self._declared(tables, self.table, "between", self.low, self.high)

    def _bounds(self) -> str:
        if self.temporal and self.missing:
            return '"2020-01-01", "2024-12-31"'
        return ", ".join(name if end is None else said(end) for name, end in (("low", self.low), ("high", self.high)))

    def in_python(self) -> str:
        return f'columns={{"{self.column}": hb.between({self._bounds()})}}'

    def on_the_command_line(self) -> str:
        return f"{key(self.column)} = {{ between = [{self._bounds()}] }} {UNDER_COLUMNS}"


@dataclass(frozen=True)
class DeclareValues(_OfColumn):
    """Declare which values a column has."""

    kind: ClassVar[str] = "declare values"
    blanks: ClassVar[tuple[str, ...]] = ("values",)

    values: tuple[Any, ...] = ()
    table: str | None = None

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        return attempt, self._declared(tables, self.table, "one_of", *self.values)

    def in_python(self) -> str:
        return f'columns={{"{self.column}": hb.one_of({listed(self.values)})}}'

    def on_the_command_line(self) -> str:
        return f"{key(self.column)} = {{ one_of = [{listed(self.values)}] }} {UNDER_COLUMNS}"


@dataclass(frozen=True)
class AllowOthers(_OfColumn):
    """Declare that a column has other values beside those that are named."""

    kind: ClassVar[str] = "allow other values"

    table: str | None = None

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        return attempt, self._declared(tables, self.table, "others")

    def in_python(self) -> str:
        return "hb.one_of(..., others=True)"

    def on_the_command_line(self) -> str:
        return "others = true beside its one_of in the policy file"


@dataclass(frozen=True)
class TrimBlanks(_OfColumn):
    """Declare that blanks around a column's values do not count."""

    kind: ClassVar[str] = "cut off blanks"
    blanks: ClassVar[tuple[str, ...]] = ("column",)

    column: str = ""
    table: str | None = None

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        return attempt, self._declared(tables, self.table, "trim")

    def in_python(self) -> str:
        return "hb.one_of(..., trim=True)"

    def on_the_command_line(self) -> str:
        return "trim = true beside a column's one_of in the policy file"


@dataclass(frozen=True)
class DeclareType(_OfColumn):
    """Declare as what a column is read whose own type questions cannot use."""

    kind: ClassVar[str] = "declare a type"

    type: str = "text"
    table: str | None = None

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        return attempt, self._declared(tables, self.table, "type", self.type)

    def in_python(self) -> str:
        return f'types={{"{self.column}": "{self.type}"}}'

    def on_the_command_line(self) -> str:
        return f'{key(self.column)} = "{self.type}" under the types of its table in the policy file'


@dataclass(frozen=True)
class DeclareLimits(Remedy):
    """Declare how much one unit may contribute: `max_groups`, `max_rows` or `max_total`, a number for each name."""

    kind: ClassVar[str] = "declare limits"
    blanks: ClassVar[tuple[str, ...]] = ("values",)

    names: tuple[str, ...]
    values: tuple[int, ...] = ()
    table: str | None = None

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        name = self.table if self.table is not None else only_private(tables, self)
        limits = dict(zip(self.names, self.values, strict=True))
        return attempt, {**tables, name: replace(tables[name], **limits)}

    def in_python(self) -> str:
        return self._list("{}={}", " and " if "max_total" not in self.names else ", ")

    def on_the_command_line(self) -> str:
        return self._list("{} = {}", " and ")

    def _list(self, form: str, between: str) -> str:
        values = self.values or ("...",) * len(self.names)
        return between.join(form.format(n, v) for n, v in zip(self.names, values, strict=True))
