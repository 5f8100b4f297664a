"""Remedies that put a declaration right which could not be made, or a policy file that could not be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Final

from hubbub.errors import ParameterError
from hubbub.remedies.base import Attempt, OfTable, Remedy, key, listed, only_private, said

__all__ = [
    "CallTable",
    "CorrectName",
    "CorrectPolicy",
    "DeclareColumn",
    "DeclareOption",
    "DeclareTypes",
    "DeclareWithout",
]

_HELD_AS: Final = {"table": "inner_table"}
"""What an argument of `hb.table` is called in the declaration that it makes, where that is another name."""


@dataclass(frozen=True)
class CorrectName(OfTable):
    """Write a name of the source as the source has it, wherever the declaration of a table names it.

    new, old: the name of a column; with inner=True of the table inside a file or a database; with key=True of the
    column of another table by which the units are reached.
    """

    kind: ClassVar[str] = "correct a name"

    new: str
    old: str
    table: str | None = None
    inner: bool = False
    key: bool = False

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        name = self._table(tables, self.table)
        return attempt, {**tables, name: tables[name].renaming(self.old, self.new, inner=self.inner, key=self.key)}

    def in_python(self) -> str:
        return repr(self.new)

    def on_the_command_line(self) -> str:
        return f"{key(self.new)} in place of {key(self.old)} in the policy file"


@dataclass(frozen=True)
class DeclareOption(OfTable):
    """Declare something else of a table itself, such as its `neighbours`, or of each of several."""

    kind: ClassVar[str] = "declare an option"
    blanks: ClassVar[tuple[str, ...]] = ("value",)

    name: str
    value: Any = None
    tables: tuple[str, ...] = ()

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        names = self.tables or (only_private(tables, self, "tables"),)
        declared = {_HELD_AS.get(self.name, self.name): self.value}
        return attempt, {**tables, **{name: replace(tables[name], **declared) for name in names}}

    def in_python(self) -> str:
        return f"{self.name}={'...' if self.missing else repr(self.value)}"

    def on_the_command_line(self) -> str:
        return f"{self.name} = {'...' if self.missing else said(self.value)} under its table in the policy file"


@dataclass(frozen=True)
class DeclareWithout(OfTable):
    """Declare a table, or with `column` one of its columns, without an option that does not go with the rest."""

    kind: ClassVar[str] = "declare without"

    name: str
    column: str | None = None
    table: str | None = None

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        name = self._table(tables, self.table)
        declared = tables[name]
        if self.column is None:
            return attempt, {**tables, name: self._off(declared)}
        columns = {c: self._off(what) if c == self.column else what for c, what in declared.columns.items()}
        return attempt, {**tables, name: replace(declared, columns=columns)}

    def _off(self, declared: Any) -> Any:
        """What was declared, with the option as it is where nobody gives it."""
        usual = {f.name: f.default for f in fields(declared)}
        return replace(declared, **{self.name: usual[self.name]}) if self.name in usual else declared

    def in_python(self) -> str:
        return f"without {self.name}="

    def on_the_command_line(self) -> str:
        where = "under its table" if self.column is None else f"at {key(self.column)}"
        return f"without {self.name} {where} in the policy file"


@dataclass(frozen=True)
class CallTable(OfTable):
    """Call a table by the name that the ledger knows it by: the same but for capital letters."""

    kind: ClassVar[str] = "call a table"

    new: str
    old: str

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        return attempt, {self.new if name == self.old else name: table for name, table in tables.items()}

    def in_python(self) -> str:
        return repr(self.new)

    def on_the_command_line(self) -> str:
        return f"[tables.{key(self.new)}] in place of [tables.{key(self.old)}] in the policy file"


@dataclass(frozen=True)
class DeclareColumn(OfTable):
    """Declare of a column what was meant by a declaration that cannot be made: of which one, who wrote it knows.

    how: "between" or "one_of". flags: what is declared beside the values, as pairs, such as ("nullable", False).
    """

    kind: ClassVar[str] = "declare so"
    blanks: ClassVar[tuple[str, ...]] = ("column",)

    how: str
    values: tuple[Any, ...]
    flags: tuple[tuple[str, Any], ...] = ()
    column: str = ""
    table: str | None = None

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        name = self._table(tables, self.table)
        declared = tables[name].declaring(self.column, self.how, *self.values, **dict(self.flags))
        return attempt, {**tables, name: declared}

    def in_python(self) -> str:
        flags = "".join(f", {name}={value!r}" for name, value in self.flags)
        return f"hb.{self.how}({listed(self.values)}{flags})"

    def on_the_command_line(self) -> str:
        flags = "".join(f", {name} = {json.dumps(value)}" for name, value in self.flags)
        return f"{self.how} = [{listed(self.values)}]{flags} at this column in the policy file"


@dataclass(frozen=True)
class DeclareTypes(OfTable):
    """Declare as what the columns of a table are read that has no types of its own: `types`, one for each column."""

    kind: ClassVar[str] = "declare types"
    blanks: ClassVar[tuple[str, ...]] = ("types",)

    columns: tuple[str, ...]
    types: tuple[str, ...] = ()
    table: str | None = None

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        name = self._table(tables, self.table)
        for column, kind in zip(self.columns, self.types, strict=True):
            tables = {**tables, name: tables[name].declaring(column, "type", kind)}
        return attempt, tables

    def in_python(self) -> str:
        return f"types={{{self._list('{}: {}', lambda name: json.dumps(name, ensure_ascii=False))}}}"

    def on_the_command_line(self) -> str:
        return f"types = {{ {self._list('{} = {}', key)} }} under its table in the policy file"

    def _list(self, form: str, name: Callable[[str], str]) -> str:
        """Each column with its type; of a blank the first three."""
        types = list(map(said, self.types)) or ["..."] * len(self.columns[:3])
        pairs = [form.format(name(column), kind) for column, kind in zip(self.columns, types, strict=False)]
        return ", ".join(pairs if len(pairs) == len(self.columns) else [*pairs, "..."])


@dataclass(frozen=True)
class CorrectPolicy(Remedy):
    """Write a word of the policy file otherwise, in the one place of a line where it stands."""

    kind: ClassVar[str] = "correct the policy file"

    line: int
    old: str
    new: str

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        lines = (attempt.policy or "").splitlines(keepends=True)
        at = self.line - 1
        if at >= len(lines) or lines[at].count(self.old) != 1:
            raise ParameterError(f"line {self.line} of the policy file does not hold {self.old} once: read it again.")
        lines[at] = lines[at].replace(self.old, self.new)
        return replace(attempt, policy="".join(lines)), tables

    def in_python(self) -> str:
        return repr(self.new.strip('"'))

    def on_the_command_line(self) -> str:
        return f"{self.new} in place of {self.old} in line {self.line}"

    def on_a_page(self) -> str:
        return f"{self.on_the_command_line()} of the policy file (a steward writes it)"
