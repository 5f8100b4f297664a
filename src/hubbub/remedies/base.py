"""What every remedy is: what it changes, what is left to fill in, and how it is said, written and read."""

from __future__ import annotations

import datetime as dt
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

from hubbub.errors import ParameterError

__all__ = ["Attempt", "OfTable", "Remedy", "from_json", "key", "listed", "only_private", "said", "to_json"]


@dataclass(frozen=True)
class Attempt:
    """What was tried: the SQL (of synthesis: the table's name), the options, and the session's budget.

    policy: the text of the policy file, where that is what cannot be read.
    """

    sql: str
    options: Mapping[str, Any] = field(default_factory=dict)
    budget: Any = None
    policy: str | None = None

    def having(self, **options: Any) -> Attempt:
        """The same with more options."""
        return replace(self, options={**self.options, **options})


@dataclass(frozen=True)
class Remedy(ABC):
    """One way out of a refusal. blanks: the fields that only a person can fill, while they are empty."""

    kind: ClassVar[str]
    blanks: ClassVar[tuple[str, ...]] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """The blanks that are not filled yet."""
        return tuple(name for name in self.blanks if getattr(self, name) in (None, (), ""))

    def fill(self, **values: Any) -> Self:
        """The same with blanks filled.

        Raises ParameterError for a name that is not a field.
        """
        known = [f.name for f in fields(self)]
        for name in values:
            if name not in known:
                raise ParameterError(f"{name!r} is not a part of {self.kind!r}. Allowed: {', '.join(known)}.")
        return replace(self, **{n: tuple(v) if isinstance(v, list) else v for n, v in values.items()})

    def apply(self, attempt: Attempt, tables: Mapping[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        """The question and the tables to try next.

        Raises ParameterError where a blank is not filled.
        """
        if self.missing:
            given = ", ".join(f"{name}=..." for name in self.missing)
            raise ParameterError(f"{self.in_python()}: fill in what only you know: remedy.fill({given}).")
        return self._applied(attempt, dict(tables))

    @abstractmethod
    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]: ...

    @abstractmethod
    def in_python(self) -> str:
        """What to write in Python; the text of the error holds these very words."""

    @abstractmethod
    def on_the_command_line(self) -> str:
        """What to write at the command line, or in the policy file."""

    def on_a_page(self) -> str:
        """What to do on a page of the service; what is declared, a steward writes into the policy file."""
        return self.on_the_command_line()

    def to_wire(self) -> dict[str, Any]:
        """This remedy as JSON."""
        return {"remedy": self.kind, **{f.name: to_json(getattr(self, f.name)) for f in fields(self)}}


@dataclass(frozen=True)
class OfTable(Remedy):
    """A remedy that changes what is declared of a table. On a page a steward reads it."""

    def _table(self, tables: Mapping[str, Any], name: str | None) -> str:
        return name if name is not None else only_private(tables, self)

    def on_a_page(self) -> str:
        return f"{self.on_the_command_line()} (a steward writes it)"


def only_private(tables: Mapping[str, Any], remedy: Remedy, part: str = "table") -> str:
    """The name of the private table, where there is one. Raises ParameterError where there are several."""
    private = [name for name, table in tables.items() if hasattr(table, "unit")]
    if len(private) != 1:
        raise ParameterError(f"{remedy.in_python()}: say of which table: remedy.fill({part}=...).")
    return private[0]


def key(name: str) -> str:
    """A name as TOML writes it before an equals sign.

    >>> key("ward"), key("cost (EUR)")
    ('ward', '"cost (EUR)"')
    """
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def listed(values: Sequence[Any]) -> str:
    """Values as both Python and TOML write them in a list; dots for none."""
    return ", ".join(said(v) for v in values) or "..."


def said(value: Any) -> str:
    """A value as both Python and TOML write it."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(str(value)) if isinstance(value, dt.date) else str(value)


def to_json(value: Any) -> Any:
    """A field of a remedy as JSON has it."""
    if isinstance(value, tuple | list):
        return [to_json(v) for v in value]
    if isinstance(value, dt.date):
        return {"$time" if isinstance(value, dt.datetime) else "$date": value.isoformat()}
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def from_json(value: Any) -> Any:
    """What `to_json` wrote."""
    match value:
        case list():
            return tuple(from_json(v) for v in value)
        case {"$time": str(text)}:
            return dt.datetime.fromisoformat(text)
        case {"$date": str(text)}:
            return dt.date.fromisoformat(text)
    return value
