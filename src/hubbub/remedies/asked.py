"""Remedies that change what is asked: its text, its options, and the budget that it is asked under."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from hubbub.remedies.base import Attempt, Remedy, listed, said

__all__ = [
    "AskLess",
    "GiveKeys",
    "GiveOptions",
    "GiveParameter",
    "KeepBudget",
    "LeaveOut",
    "Rewrite",
    "UseDelta",
]

_OPTIONS: Final = {"rows_per_unit": "max-rows"}
_FIELDS: Final = {"epsilon": '"spend {} epsilon"', "within": '"be within ± {}"', "at_most": '"for at most {} epsilon"'}
"""The fields of a page that take an option, as they read there."""


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
        return f'keys={{"{self.name}": [{listed(self.values)}]}}'

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
        return f"params={{{self.name!r}: {'...' if self.missing else said(self.value)}}}"

    def on_the_command_line(self) -> str:
        return f"-p {self.name} {'VALUE' if self.missing else self.value}"

    def on_a_page(self) -> str:
        return f"write {'its value' if self.missing else said(self.value)} in place of :{self.name}"


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
        values = [said(v) for v in self.values] if self.values else ["..."] * len(self.names)
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


def _by_a_program(written: str) -> str:
    """A way that a page has no field for, and a program that asks the service has."""
    return f"{written} from a program (a page has no field for it)"


def _option(name: str) -> str:
    """An option as the command line spells it."""
    return f"--{_OPTIONS.get(name, name.replace('_', '-'))}"
