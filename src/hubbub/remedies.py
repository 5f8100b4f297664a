"""What to do about a refusal, as data: `error.remedy`, which each face says in its own words.

A remedy changes what was asked or what is declared so that the question is then answered, with the same columns and as
many groups. What only a person can know, such as the range of a column, is a blank: `fill` it, never from the rows.

>>> remedy = DeclareRange("age")
>>> remedy.in_python()
'columns={"age": hb.between(low, high)}'
>>> remedy.on_a_page()
'age = { between = [low, high] } under the columns of its table in the policy file (a steward writes it)'
>>> remedy.fill(low=0, high=120).in_python()
'columns={"age": hb.between(0, 120)}'
>>> read_remedy(remedy.to_wire()) == remedy
True
"""

from __future__ import annotations

import datetime as dt
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Final, Self

from hubbub.errors import ParameterError

__all__ = [
    "REMEDIES",
    "AllowOthers",
    "AskLess",
    "Attempt",
    "DeclareLimits",
    "DeclareRange",
    "DeclareType",
    "DeclareValues",
    "GiveKeys",
    "GiveOptions",
    "GiveParameter",
    "KeepBudget",
    "LeaveOut",
    "Remedy",
    "Rewrite",
    "TrimBlanks",
    "UseDelta",
    "read_remedy",
]


@dataclass(frozen=True)
class Attempt:
    """What was tried: the SQL (of synthesis: the table's name), the options, and the session's budget."""

    sql: str
    options: Mapping[str, Any] = field(default_factory=dict)
    budget: Any = None

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
        return {"remedy": self.kind, **{f.name: _to_json(getattr(self, f.name)) for f in fields(self)}}


@dataclass(frozen=True)
class _OfColumn(Remedy):
    """A remedy that declares something of a column. table: whose it is, needed where several are declared."""

    column: str

    def _declared(self, tables: dict[str, Any], table: str | None, how: str, *values: Any) -> dict[str, Any]:
        name = table if table is not None else _only(tables, self)
        return {**tables, name: tables[name].declaring(self.column, how, *values)}

    def on_a_page(self) -> str:
        return f"{self.on_the_command_line()} (a steward writes it)"


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
        if not self.missing:
            return ", ".join(_said(end) for end in (self.low, self.high))
        return '"2020-01-01", "2024-12-31"' if self.temporal else "low, high"

    def in_python(self) -> str:
        return f'columns={{"{self.column}": hb.between({self._bounds()})}}'

    def on_the_command_line(self) -> str:
        return f"{_key(self.column)} = {{ between = [{self._bounds()}] }} {_UNDER_COLUMNS}"


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
        return f'columns={{"{self.column}": hb.one_of({_list(self.values)})}}'

    def on_the_command_line(self) -> str:
        return f"{_key(self.column)} = {{ one_of = [{_list(self.values)}] }} {_UNDER_COLUMNS}"


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
        return f'{_key(self.column)} = "{self.type}" under the types of its table in the policy file'


@dataclass(frozen=True)
class DeclareLimits(Remedy):
    """Declare how much one unit may contribute: `max_groups`, `max_rows` or `max_total`, a number for each name."""

    kind: ClassVar[str] = "declare limits"
    blanks: ClassVar[tuple[str, ...]] = ("values",)

    names: tuple[str, ...]
    values: tuple[int, ...] = ()
    table: str | None = None

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        name = self.table if self.table is not None else _only(tables, self)
        limits = dict(zip(self.names, self.values, strict=True))
        return attempt, {**tables, name: replace(tables[name], **limits)}

    def in_python(self) -> str:
        return self._list("{}={}", " and " if "max_total" not in self.names else ", ")

    def on_the_command_line(self) -> str:
        return self._list("{} = {}", " and ")

    def _list(self, form: str, between: str) -> str:
        values = self.values or ("...",) * len(self.names)
        return between.join(form.format(n, v) for n, v in zip(self.names, values, strict=True))


@dataclass(frozen=True)
class GiveKeys(Remedy):
    """Say with the question which groups are asked for. sql: the question with the key named, where it has no name."""

    kind: ClassVar[str] = "give keys"

    name: str
    values: tuple[Any, ...] = ()
    unnamed: bool = False
    sql: str | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        return (*(() if self.values else ("values",)), *(("sql",) if self.unnamed and self.sql is None else ()))

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        keys = {**attempt.options.get("keys", {}), self.name: list(self.values)}
        return replace(attempt.having(keys=keys), sql=self.sql or attempt.sql), tables

    def in_python(self) -> str:
        return f'keys={{"{self.name}": [{_list(self.values)}]}}'

    def on_the_command_line(self) -> str:
        values = ",".join("null" if v is None else str(v) for v in self.values) or "VALUE,VALUE"
        return f"--keys '{self.name}={values}'"

    def on_a_page(self) -> str:
        return _by_a_program(self.in_python())


@dataclass(frozen=True)
class GiveParameter(Remedy):
    """Say the value of a parameter of the question."""

    kind: ClassVar[str] = "give a parameter"
    blanks: ClassVar[tuple[str, ...]] = ("value",)

    name: str
    value: Any = None

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        return attempt.having(params={**dict(attempt.options.get("params", {})), self.name: self.value}), tables

    def in_python(self) -> str:
        return f"params={{{self.name!r}: {'...' if self.missing else _said(self.value)}}}"

    def on_the_command_line(self) -> str:
        return f"-p {self.name} {'VALUE' if self.missing else self.value}"

    def on_a_page(self) -> str:
        return f"write {'its value' if self.missing else _said(self.value)} in place of :{self.name}"


@dataclass(frozen=True)
class GiveOptions(Remedy):
    """Say more with the question, such as its epsilon; a value for each name. instead: options that are left out."""

    kind: ClassVar[str] = "give options"
    blanks: ClassVar[tuple[str, ...]] = ("values",)

    names: tuple[str, ...]
    values: tuple[Any, ...] = ()
    instead: tuple[str, ...] = ()

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        kept = {name: value for name, value in attempt.options.items() if name not in self.instead}
        return replace(attempt, options=kept | dict(zip(self.names, self.values, strict=True))), tables

    def in_python(self) -> str:
        return " with ".join(f"{name}={value}" for name, value in self._pairs())

    def on_the_command_line(self) -> str:
        return " with ".join(f"{_option(name)}{'' if value == '...' else f' {value}'}" for name, value in self._pairs())

    def on_a_page(self) -> str:
        if not all(name in _FIELDS for name in self.names):
            return _by_a_program(self.in_python())
        return " and ".join(_FIELDS[name].format(value.strip('"')) for name, value in self._pairs())

    def _pairs(self) -> list[tuple[str, str]]:
        values = [_said(v) for v in self.values] if self.values else ["..."] * len(self.names)
        return list(zip(self.names, values, strict=True))


@dataclass(frozen=True)
class LeaveOut(Remedy):
    """Ask without options that do not go with the others, or with this question."""

    kind: ClassVar[str] = "leave out options"

    names: tuple[str, ...]

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        return replace(attempt, options={n: v for n, v in attempt.options.items() if n not in self.names}), tables

    def in_python(self) -> str:
        return f"without {' and '.join(f'{name}=' for name in self.names)}"

    def on_the_command_line(self) -> str:
        return f"without {' and '.join(map(_option, self.names))}"

    def on_a_page(self) -> str:
        return f"without {' and '.join(_FIELDS.get(name, name).format('...') for name in self.names)}"


@dataclass(frozen=True)
class UseDelta(Remedy):
    """Use a budget with a delta."""

    kind: ClassVar[str] = "use a delta"

    delta: str = "1e-6"

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        return replace(attempt, budget=type(attempt.budget)(attempt.budget.epsilon, self.delta)), tables

    def in_python(self) -> str:
        return f"hb.Budget(epsilon=3, delta={self.delta})"

    def on_the_command_line(self) -> str:
        return f"delta = {self.delta} under [budget] of the policy file"

    def on_a_page(self) -> str:
        return f"{self.on_the_command_line()} (a steward writes it)"


@dataclass(frozen=True)
class KeepBudget(Remedy):
    """Declare the budget that the ledger was created with. written: its parts, such as ("epsilon=1", "delta=1e-6")."""

    kind: ClassVar[str] = "keep the budget"

    written: tuple[str, ...]

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        parts: dict[str, Any] = {n: v.strip("'") for n, v in (part.split("=", 1) for part in self.written)}
        if "training" in parts:
            parts["training"] = tuple(v.strip("' ") for v in parts["training"].strip("()").split(","))
        return replace(attempt, budget=type(attempt.budget)(**parts)), tables

    def in_python(self) -> str:
        return f"ask with Budget({', '.join(self.written)})."

    def on_the_command_line(self) -> str:
        written = (part.replace("=(", " = [").replace(")", "]") for part in self.written)
        lines = " and ".join(part.replace("=", " = ").replace(" =  = ", " = ").replace("'", '"') for part in written)
        return (
            f"write {lines} under [budget] of the policy file again. A steward raises a ceiling: `hubbub ledger raise "
            "--epsilon NUMBER --reason TEXT`, then the policy file says the same number."
        )


@dataclass(frozen=True)
class AskLess(Remedy):
    """Ask with a smaller epsilon: the largest for which the budget has room."""

    kind: ClassVar[str] = "ask for less"

    epsilon: str

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        kept = {n: v for n, v in attempt.options.items() if n not in ("rho", "within", "at_most")}
        return replace(attempt, options=kept | {"epsilon": self.epsilon}), tables

    def in_python(self) -> str:
        return f"epsilon {self.epsilon} or less"

    def on_the_command_line(self) -> str:
        return f"--epsilon {self.epsilon} or less"

    def on_a_page(self) -> str:
        return self.in_python()


@dataclass(frozen=True)
class Rewrite(Remedy):
    """Write the question otherwise, in SQL, which is the same on all faces. example: the part to write.

    sql: the whole question, written so.
    """

    kind: ClassVar[str] = "rewrite"
    blanks: ClassVar[tuple[str, ...]] = ("sql",)

    example: str
    sql: str | None = None

    def _applied(self, attempt: Attempt, tables: dict[str, Any]) -> tuple[Attempt, dict[str, Any]]:
        return replace(attempt, sql=self.sql or ""), tables

    def in_python(self) -> str:
        return self.example

    def on_the_command_line(self) -> str:
        return self.example


REMEDIES: Final[Mapping[str, type[Remedy]]] = {
    remedy.kind: remedy
    for remedy in (
        DeclareRange, DeclareValues, AllowOthers, TrimBlanks, DeclareType, DeclareLimits, GiveKeys, GiveParameter,
        GiveOptions, LeaveOut, UseDelta, KeepBudget, AskLess, Rewrite,
    )
}  # fmt: skip
"""All kinds of remedy that there are, by the name they have on the wire."""

_UNDER_COLUMNS: Final = "under the columns of its table in the policy file"
_OPTIONS: Final = {"rows_per_unit": "max-rows"}


_FIELDS: Final = {"epsilon": '"spend {} epsilon"', "within": '"be within ± {}"', "at_most": '"for at most {} epsilon"'}
"""The fields of a page that take an option, as they read there."""


def read_remedy(wire: Mapping[str, Any]) -> Remedy:
    """What `to_wire` wrote.

    Raises ParameterError for anything else.
    """
    try:
        parts = {name: _from_json(value) for name, value in wire.items() if name != "remedy"}
        return REMEDIES[wire["remedy"]](**parts)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ParameterError("this is not a remedy of this version of hubbub.") from None


def _only(tables: Mapping[str, Any], remedy: Remedy) -> str:
    private = [name for name, table in tables.items() if hasattr(table, "declaring")]
    if len(private) != 1:
        raise ParameterError(f"{remedy.in_python()}: say of which table: remedy.fill(table=...).")
    return private[0]


def _by_a_program(written: str) -> str:
    """A way that a page has no field for, and a program that asks the service has."""
    return f"{written} from a program (a page has no field for it)"


def _option(name: str) -> str:
    """An option as the command line spells it."""
    return f"--{_OPTIONS.get(name, name.replace('_', '-'))}"


def _key(name: str) -> str:
    """A name as TOML writes it before an equals sign.

    >>> _key("ward"), _key("cost (EUR)")
    ('ward', '"cost (EUR)"')
    """
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _list(values: Sequence[Any]) -> str:
    return ", ".join(_said(v) for v in values) or "..."


def _said(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(str(value)) if isinstance(value, dt.date) else str(value)


def _to_json(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_to_json(v) for v in value]
    if isinstance(value, dt.date):
        return {"$time" if isinstance(value, dt.datetime) else "$date": value.isoformat()}
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _from_json(value: Any) -> Any:
    match value:
        case list():
            return tuple(_from_json(v) for v in value)
        case {"$time": str(text)}:
            return dt.datetime.fromisoformat(text)
        case {"$date": str(text)}:
            return dt.date.fromisoformat(text)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
