"""How what the desk tells is written: answers in a form that was asked for, refusals, declared columns."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Final, Literal, get_args

from hubbub.answer.release import Release
from hubbub.answer.wire import arrow_stream, csv_text
from hubbub.arguments import a_level
from hubbub.errors import EngineError, HubbubError, InternalError, ParameterError
from hubbub.session.options import written_value
from hubbub.sql.bind.scope import TableInfo
from hubbub.tables.columns import Between, Edges, OneOf, Text, UpTo

__all__ = [
    "Form",
    "OtherQuestion",
    "Shown",
    "brought",
    "clauses_told",
    "declared_column",
    "declared_table",
    "refusal_of",
    "shown_as",
    "written",
]

Form = Literal["json", "arrow", "csv"]
_LEVEL: Final = 0.95


@dataclass(frozen=True)
class OtherQuestion:
    """What an answer is shown as the answer to: another text, or other clauses; None where its own stay."""

    sql: str | None = None
    having: str | None = None
    order: str | None = None
    limit: str | None = None

    @property
    def any(self) -> bool:
        """Whether anything is another than it was."""
        return any(part is not None for part in (self.sql, self.having, self.order, self.limit))

    def text(self, own: str) -> str:
        """The text of it. own: of the question that was asked."""
        from hubbub.sql.text.clauses import Clauses, clauses_of, with_clauses

        sql = own if self.sql is None else self.sql
        given = {name: getattr(self, name) for name in ("having", "order", "limit")}
        if all(text is None for text in given.values()):
            return sql
        known = clauses_of(sql) or Clauses()
        return with_clauses(sql, replace(known, **{name: text for name, text in given.items() if text is not None}))


def clauses_told(sql: str) -> dict[str, str] | None:
    """The clauses of a question; None where it has no place for them."""
    from hubbub.sql.text.clauses import clauses_of

    known = clauses_of(sql)
    return None if known is None else asdict(known)


@dataclass(frozen=True)
class Shown:
    """How an answer is wanted. level: of its intervals, beside the usual ones; form: as what it is written; other: as
    the answer to what.
    """

    level: float | None = None
    form: Form = "json"
    other: OtherQuestion = OtherQuestion()


def shown_as(level: object = None, form: object = "json") -> Shown:
    """How an answer is wanted, checked.

    >>> shown_as("0.9", "csv").level, shown_as("0.9", "csv").form
    (0.9, 'csv')

    Raises ParameterError for a level that is none, and a form that there is not.
    """
    if form not in get_args(Form):
        raise ParameterError(f"form={form!r:.60}: an answer is written as {', '.join(get_args(Form))}.")
    try:
        number = float(level) if isinstance(level, str) else level
    except ValueError:
        number = level
    return Shown(None if number is None else a_level(number), form)  # type: ignore[arg-type]


def written(release: Release, shown: Shown) -> dict[str, str]:
    """An answer in the form that was asked for, under the name of the form; JSON under "answer".

    arrow: an IPC stream in base 64, with the rest of the JSON document in the metadata of its schema. csv: with the
    ends of each estimate's interval behind it.
    """
    match shown.form:
        case "json":
            return {"answer": release.to_wire(level=shown.level)}
        case "arrow":
            about = json.loads(release.to_wire(level=shown.level))
            del about["table"]
            table = release.to_arrow() if shown.level is None else release.intervals(shown.level)
            table = table.replace_schema_metadata({"hubbub": json.dumps(about)})
            return {"arrow": base64.b64encode(arrow_stream(table)).decode("ascii")}
        case _:
            return {"csv": csv_text(release.intervals(_LEVEL if shown.level is None else shown.level))}


@contextmanager
def brought(incident: str) -> Iterator[None]:
    """Read what a run brought, which is anything where somebody took its process over: of whatever goes wrong the
    incident is told. A refusal passes.

    Raises EngineError.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, HubbubError) and not isinstance(error, InternalError):
            raise
        raise EngineError(incident) from None


def declared_table(info: TableInfo) -> dict[str, Any]:
    """What is declared of a table: who is protected, how much of one unit counts, and each column. No rows."""
    if not info.private:
        return {"unit": None, "limits": {}, "declared": {}}
    declaration = info.declaration
    limits = {
        "max_groups": declaration.max_groups,
        "max_rows": declaration.max_rows,
        "max_total": declaration.max_total,
        "bounding": None if declaration.bounding == "groups" else declaration.bounding,
    }
    return {
        "unit": info.unit or "each row",
        "limits": {name: value for name, value in limits.items() if value},
        "declared": {name: declared_column(what) for name, what in declaration.columns.items()},
    }


def declared_column(what: object) -> dict[str, Any]:
    """What is declared of a column, as JSON; `text` is what Python writes, `as` its class and fields."""
    told: dict[str, Any] = {"text": repr(what), "as": _fields(what)}
    match what:
        case Between():
            told |= {"between": [_plain(what.low), _plain(what.high)], "numeric": what.numeric}
        case Edges():
            told |= {"edges": [_plain(end) for end in what.ends], "labels": list(what.labels())}
        case OneOf():
            told |= {"one_of": [_plain(value) for value in what.values], "other": what.other, "others": what.others}
        case UpTo():
            told |= {"between": [_plain(what.low), "auto"], "numeric": True}
        case Text():
            pass
    return told


def _fields(what: Any) -> list[Any]:
    """The class of a declaration, and its fields as the options of a question are written."""
    fields = {name: getattr(what, name) for name in what.__dataclass_fields__}
    return [type(what).__name__, {name: written_value(value, name) for name, value in fields.items()}]


def _plain(value: object) -> Any:
    """A declared value as JSON; amounts and times as text."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else str(value)
    return value if isinstance(value, str | bool | int | float | None) else str(value)


def refusal_of(error: Any) -> Mapping[str, Any]:
    """What a client needs to raise the same: the class, the position in the text, the ways out."""
    told: dict[str, Any] = {"class": type(error).__name__}
    if error.position is not None:
        told["position"] = list(error.position)
    if error.remedies:
        told["remedies"] = [remedy.to_wire() for remedy in error.remedies]
    if getattr(error, "incident", None):
        told["incident"] = error.incident
    return told
