"""What only people know of a table, asked in turn or said by options; and what three questions would cost under it.

Nothing is read from the rows: a proposal that came from them would publish them.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from hubbub.cli.console import note, show_table
from hubbub.cli.declared import between_toml, date_format, is_number, number_signs, one_of_toml
from hubbub.cli.options import Limit
from hubbub.errors import HubbubError
from hubbub.ledger.column_policy import KINDS

if TYPE_CHECKING:
    from hubbub.session import Session

__all__ = ["NONE", "Choices", "Field", "ask_choices", "ask_kinds", "ask_ledger", "ask_tables", "ask_unit",
           "check_columns", "choices_options", "chosen", "show_prices"]  # fmt: skip

_Function = TypeVar("_Function", bound=Callable[..., Any])
_EPSILONS: Final = ("0.1", "0.5", "1")
_FOUND: Final = (1, 10)
"""The bounds for which questions are priced whose bound is found in their charge."""
_WRITTEN: Final = ("number", "date", "timestamp")
"""The kinds that files write in several ways."""


@dataclass(frozen=True)
class Field:
    """A column that may be declared. form: how its file writes dates, where that is not ISO's."""

    name: str
    kind: str
    form: str | None = None


@dataclass(frozen=True)
class Choices:
    """What a policy is to say. columns: of each "values" or "bounds", and they as written, with commas.

    kinds: of columns of a CSV or a sheet, the kind, and how 31 December 2025 or 1234.5 is written there, "" for the
    usual way. max_groups, max_rows: None for no number: each question has it found in its own charge.
    """

    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    max_groups: int | None = None
    max_rows: int | None = None
    epsilon: str = "1"
    delta: str | None = None
    kinds: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def toml(self, column: Field) -> str:
        """What is declared of a column, as the policy writes it.

        Raises click's UsageError where it does not fit the kind.
        """
        how, text = self.columns[column.name]
        try:
            return (one_of_toml if how == "values" else between_toml)(text, column.kind, column.form)
        except click.UsageError as error:
            raise click.UsageError(f"{column.name}: {error.message}") from None


NONE: Final = Choices()


def choices_options(command: _Function) -> _Function:
    """The options that say beforehand what would be asked."""
    for option in (
        click.option("--delta", metavar="NUMBER", help="A budget with a delta, such as 1e-6: holds more questions."),
        click.option("--epsilon", metavar="NUMBER", help="The ceiling for all answers together; default 1."),
        click.option("--max-rows", type=Limit(), metavar="N", help="With how many rows a person counts; default auto."),
        click.option(
            "--max-groups", type=Limit(), metavar="N", help="In how many groups a person counts; default auto."
        ),
        click.option("--bounds", multiple=True, metavar="COLUMN=LOW,HIGH", help="Bounds known beforehand."),
        click.option("--values", multiple=True, metavar="COLUMN=A,B,...", help="Values known beforehand."),
        click.option(
            "--kind",
            "kinds",
            multiple=True,
            metavar="COLUMN=KIND[,EXAMPLE]",
            help="What a column of a CSV holds; the example: how 31 December 2025 or 1234.5 is written.",
        ),
    ):
        command = option(command)
    return command


def chosen(
    values: Sequence[str],
    bounds: Sequence[str],
    max_groups: int | str | None,
    max_rows: int | str | None,
    epsilon: str | None,
    delta: str | None,
    kinds: Sequence[str] = (),
) -> Choices:
    """The choices that options made.

    Raises click's UsageError for what is not written as its option says, ParameterError for an epsilon that is not one.
    """
    columns = {name: ("values", rest) for name, rest in map(_pair, values)}
    columns |= {name: ("bounds", rest) for name, rest in map(_pair, bounds)}
    said = {name: _kind(rest) for name, rest in map(_pair, kinds)}
    number = delta and _number(delta)
    return Choices(columns, _limit(max_groups), _limit(max_rows), _number(epsilon or "1"), number, said)


def _kind(text: str) -> tuple[str, str]:
    """A kind, and the example behind it."""
    kind, _, example = text.partition(",")
    if kind not in KINDS:
        raise click.UsageError(f"{text}: the kinds are {', '.join(KINDS)}.")
    if example and kind not in _WRITTEN:
        raise click.UsageError(f"{text}: a column of type {kind} is written in one way; leave the example out.")
    return kind, example.strip()


def _limit(said: int | str | None) -> int | None:
    """A number; None for "auto", or nothing said."""
    if isinstance(said, int) and said < 1:
        raise click.UsageError(f"{said}: a limit is a whole number from 1, or auto.")
    return said if isinstance(said, int) else None


def check_columns(choices: Choices, columns: Sequence[Field]) -> None:
    """Raises click's UsageError for a choice about a column that no private table has, or that does not fit it."""
    known = [column.name for column in columns]
    for name in choices.columns:
        if name not in known:
            raise click.UsageError(f"no private table has a column {name!r} to declare; there are {', '.join(known)}.")
    for column in columns:
        if column.name in choices.columns:
            choices.toml(column)


def ask_tables(source: str, there: Sequence[str]) -> list[str]:
    """Which tables of a database the policy is for. there: those it has, where that is known."""
    if there:
        note(f"{source} holds {', '.join(there)}")
    while True:
        shown = "Which tables? Separate several with commas" + ("; Enter takes all" if there else ", as SCHEMA.NAME")
        said = click.prompt(shown, ",".join(there) or None, show_default=False, err=True)
        names = [name.strip() for name in str(said).split(",") if name.strip()]
        unknown = [name for name in names if there and name not in there]
        if not unknown:
            return names
        note(f"{source} has no table {unknown[0]!r}.")


def ask_kinds(columns: Sequence[Field], *, comma: bool) -> dict[str, tuple[str, str]]:
    """What each column of a file without types holds, and how it is written. comma: whether a decimal comma is likely.

    Enter leaves a column as it is proposed.
    """
    note(
        f"The file does not say what its columns hold. The kinds are {', '.join(KINDS)}. Enter takes what is proposed."
    )
    said: dict[str, tuple[str, str]] = {}
    signs = ""
    for column in columns:
        kind = click.prompt(
            f"{column.name}: its kind", column.kind, type=click.Choice(KINDS), show_choices=False, err=True
        )
        example = ""
        if kind == "number":
            example = signs = signs or _asked_example(
                f"{column.name}: 1234.5 is written", "1234,5" if comma else "1234.5"
            )
        elif kind in _WRITTEN and not (kind == column.kind and column.form):
            day = "2025-12-31" if kind == "date" else "2025-12-31 18:05"
            example = _asked_example(f"{column.name}: {day} is written", day)
        if (kind, example) != (column.kind, ""):
            said[column.name] = (kind, example)
    return said


def _asked_example(text: str, proposed: str) -> str:
    while True:
        said = str(click.prompt(text, proposed, err=True)).strip()
        try:
            number_signs(said) if "1234" in proposed else date_format(said)
        except click.UsageError as error:
            note(error.message)
        else:
            return said


def ask_ledger(epsilon: str) -> bool:
    """Whether the ledger is made at once."""
    return click.confirm(
        f"Make the ledger now? It fixes the ceiling, epsilon {epsilon}; read the policy first", default=False, err=True
    )


def ask_unit(table: str, columns: Sequence[tuple[str, str]]) -> str | None:
    """The column that names who is protected; None for each row."""
    names = [name for name, _ in columns]
    note(f"{table}: {', '.join(names)}")
    said = click.prompt(
        "Which column names who is protected? (each row: where nobody has two)",
        type=click.Choice([*names, "each row"]), show_choices=False, err=True,
    )  # fmt: skip
    return None if said == "each row" else str(said)


def ask_choices(choices: Choices, columns: Sequence[Field]) -> Choices:
    """What was not said yet, asked in turn. Enter leaves a column as a comment, and a limit as it is proposed."""
    note("Write what you know beforehand, and nothing that you saw in the rows: it is public. Enter leaves it out.")
    declared = dict(choices.columns)
    for column in columns:
        if column.name not in declared and (said := _asked(column)) is not None:
            declared[column.name] = said
    note("How fully may a person count? A number is public and holds for every question; auto is found in each charge.")
    groups = _asked_limit("In how many groups of one answer?", choices.max_groups)
    rows = _asked_limit("With how many rows in each?", choices.max_rows)
    epsilon = click.prompt("The ceiling for all answers together: epsilon", choices.epsilon, err=True)
    return replace(choices, columns=declared, max_groups=groups, max_rows=rows, epsilon=_number(str(epsilon)))


def _asked_limit(text: str, proposed: int | None) -> int | None:
    return _limit(click.prompt(text, proposed or "auto", type=Limit(), err=True))


def _asked(column: Field) -> tuple[str, str] | None:
    if column.kind == "boolean":
        return "values", "false,true"
    how, example = ("values", "A,B,C") if column.kind == "text" else ("bounds", "LOW,HIGH")
    if column.kind in ("date", "timestamp"):
        example = "2025-01-01,2025-12-31" if column.form is None else _days_as(column.form)
    text = f"{column.name} ({column.kind}): its {how}, as {example}"
    while said := click.prompt(text, "", show_default=False, err=True).strip():
        try:
            Choices({column.name: (how, said)}).toml(column)
        except click.UsageError as error:
            note(error.message)
        else:
            return how, said
    return None


def _days_as(form: str) -> str:
    """A year's first and last day, as a file writes them."""
    days = (dt.date(2025, 1, 1), dt.date(2025, 12, 31))
    return ",".join(day.strftime(re.split(r"[ T]%[HI]", form)[0]) for day in days)


def _pair(text: str) -> tuple[str, str]:
    name, _, rest = text.partition("=")
    if not name or not rest:
        raise click.UsageError(f"{text}: write COLUMN=..., as in ward=A,B,C or age=0,120.")
    return name, rest


def _number(text: str) -> str:
    from hubbub.ledger.budget import parse_epsilon

    parse_epsilon(text)
    return text if is_number(text) else json.dumps(text)


def show_prices(policy: Path) -> None:
    """Three questions that the policy allows, at three epsilons: how exact each would be. Reads no rows.

    What a limit of "auto" finds is not known before the rows are read, so a question is priced for two bounds.
    """
    from hubbub.cli.options import open_session_to_check

    with open_session_to_check(policy) as session:
        rows: list[tuple[str, ...]] = []
        is_found = any(_limits(session, sql) for sql in _samples(session))
        for sql in _samples(session):
            for bound in _FOUND if _limits(session, sql) else (0,):
                widths = [_width(session, sql, epsilon, bound) for epsilon in _EPSILONS]
                rows.append((sql, *([str(bound) if bound else ""] if is_found else []), *widths))
    if rows:
        which = " (limits are found in the charge: were a person found with so many rows, in 4 groups at most)"
        note(f"What three questions would cost: 95 % of answers lie within{which if is_found else ''}")
        heads = ("question", *(["rows"] if is_found else []), *(f"epsilon {e}" for e in _EPSILONS))
        show_table(heads, rows, right=[False] + [True] * (len(heads) - 1))


def _samples(session: Session) -> list[str]:
    """A count, counts by a declared column, and a mean: what the declarations allow."""
    from hubbub.tables.columns import Between, OneOf
    from hubbub.tables.declare import PrivateTable

    name, table = next((n, t) for n, t in session._data.tables.items() if isinstance(t, PrivateTable))
    samples = [f"SELECT COUNT(*) AS n FROM {_quoted(name)}"]
    groups = [c for c, what in table.columns.items() if isinstance(what, OneOf)]
    means = [c for c, what in table.columns.items() if isinstance(what, Between) and what.numeric]
    samples += [f"SELECT {_quoted(c)}, COUNT(*) AS n FROM {_quoted(name)} GROUP BY 1" for c in groups[:1]]
    return samples + [f"SELECT AVG({_quoted(c)}) AS mean FROM {_quoted(name)}" for c in means[:1]]


def _quoted(name: str) -> str:
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'


def _limits(session: Session, sql: str, bound: int = 1) -> dict[str, int]:
    """The limits that are found in the charge of a question, were this bound found of its rows."""
    from hubbub.tables.declare import PrivateTable

    limits = next(t.limits for t in session._data.tables.values() if isinstance(t, PrivateTable))
    if "GROUP BY" not in sql:
        return {"max_total": bound} if limits.rows is None and limits.total is None else {}
    groups = {"max_groups": min(bound, 4)} if limits.groups is None else {}
    return groups | ({"max_rows": bound} if limits.rows is None else {})


def _width(session: Session, sql: str, epsilon: str, bound: int) -> str:
    """The half-width of the last column, for limits that are declared, or, where some are found, for this bound.

    The search has a share of the amount: of epsilon, or of rho, to whose root the width is inverse.
    """
    from hubbub.session.finding import SHARE, SHARE_OF_RHO

    limits, pure = _limits(session, sql, bound), not session.budget.delta
    amount = Fraction(epsilon) * (1 - SHARE if limits and pure else 1)
    try:
        wide = session.check(sql, epsilon=amount, **limits).columns[-1].plus_minus  # type: ignore[arg-type]
    except HubbubError:
        return "-"
    if wide is None:
        return "-"
    return f"± {wide / (1 - float(SHARE_OF_RHO)) ** 0.5 if limits and not pure else wide:,.4g}"
