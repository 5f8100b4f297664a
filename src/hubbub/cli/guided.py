"""What only people know of a table, asked in turn or said by options; and what three questions would cost under it.

Nothing is read from the rows: a proposal that came from them would publish them.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from hubbub.cli.console import note, show_table
from hubbub.cli.options import Limit
from hubbub.errors import HubbubError

if TYPE_CHECKING:
    from hubbub.session import Session

__all__ = ["NONE", "Choices", "ask_choices", "ask_unit", "check_columns", "choices_options", "chosen", "show_prices"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_EPSILONS: Final = ("0.1", "0.5", "1")


@dataclass(frozen=True)
class Choices:
    """What a policy is to say. columns: of each "values" or "bounds", and they as written, with commas.

    max_groups, max_rows: None for no number: each question has it found in its own charge.
    """

    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    max_groups: int | None = None
    max_rows: int | None = None
    epsilon: str = "1"
    delta: str | None = None

    def toml(self, column: str, kind: str) -> str:
        """What is declared of a column of this kind, as the policy writes it."""
        how, text = self.columns[column]
        return _one_of(text, kind) if how == "values" else _between(text)


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
) -> Choices:
    """The choices that options made.

    Raises click's UsageError for what is not written as its option says, ParameterError for an epsilon that is not one.
    """
    columns = {name: ("values", rest) for name, rest in map(_pair, values)}
    columns |= {name: ("bounds", rest) for name, rest in map(_pair, bounds)}
    return Choices(columns, _limit(max_groups), _limit(max_rows), _number(epsilon or "1"), delta and _number(delta))


def _limit(said: int | str | None) -> int | None:
    """A number; None for "auto", or nothing said."""
    if isinstance(said, int) and said < 1:
        raise click.UsageError(f"{said}: a limit is a whole number from 1, or auto.")
    return said if isinstance(said, int) else None


def check_columns(choices: Choices, columns: Sequence[tuple[str, str]]) -> None:
    """Raises click's UsageError for a choice about a column that no private table has."""
    known = [name for name, _ in columns]
    for name in choices.columns:
        if name not in known:
            raise click.UsageError(f"no private table has a column {name!r} to declare; there are {', '.join(known)}.")
    for name, kind in columns:
        if name in choices.columns:
            choices.toml(name, kind)


def ask_unit(table: str, columns: Sequence[tuple[str, str]]) -> str | None:
    """The column that names who is protected; None for each row."""
    names = [name for name, _ in columns]
    note(f"{table}: {', '.join(names)}")
    said = click.prompt(
        "Which column names who is protected? (each row: where nobody has two)",
        type=click.Choice([*names, "each row"]), show_choices=False, err=True,
    )  # fmt: skip
    return None if said == "each row" else str(said)


def ask_choices(choices: Choices, columns: Sequence[tuple[str, str]]) -> Choices:
    """What was not said yet, asked in turn. Enter leaves a column as a comment, and a limit as it is proposed."""
    note("Write what you know beforehand, and nothing that you saw in the rows: it is public. Enter leaves it out.")
    declared = dict(choices.columns)
    for name, kind in columns:
        if name not in declared and (said := _asked(name, kind)) is not None:
            declared[name] = said
    note("How fully may a person count? A number is public and holds for every question; auto is found in each charge.")
    groups = _asked_limit("In how many groups of one answer?", choices.max_groups)
    rows = _asked_limit("With how many rows in each?", choices.max_rows)
    epsilon = click.prompt("The ceiling for all answers together: epsilon", choices.epsilon, err=True)
    return replace(choices, columns=declared, max_groups=groups, max_rows=rows, epsilon=_number(str(epsilon)))


def _asked_limit(text: str, proposed: int | None) -> int | None:
    return _limit(click.prompt(text, proposed or "auto", type=Limit(), err=True))


def _asked(name: str, kind: str) -> tuple[str, str] | None:
    if kind == "boolean":
        return "values", "false,true"
    how, example = ("values", "A,B,C") if kind == "text" else ("bounds", "LOW,HIGH")
    while said := click.prompt(f"{name} ({kind}): its {how}, as {example}", "", show_default=False, err=True).strip():
        try:
            Choices({name: (how, said)}).toml(name, kind)
        except click.UsageError as error:
            note(error.message)
        else:
            return how, said
    return None


def _pair(text: str) -> tuple[str, str]:
    name, _, rest = text.partition("=")
    if not name or not rest:
        raise click.UsageError(f"{text}: write COLUMN=..., as in ward=A,B,C or age=0,120.")
    return name, rest


def _one_of(text: str, kind: str) -> str:
    """Values as TOML: texts, dates and times in quotes, numbers and booleans as they are."""
    values = [value.strip() for value in next(csv.reader([text], skipinitialspace=True))]
    if kind in ("integer", "number", "boolean"):
        for value in values:
            if not (value in ("false", "true") if kind == "boolean" else _is_number(value)):
                raise click.UsageError(f"{text}: {value!r} is not a value of type {kind}.")
    else:
        values = [json.dumps(value, ensure_ascii=False) for value in values]
    return f"{{ one_of = [{', '.join(values)}] }}"


def _between(text: str) -> str:
    """Bounds as TOML: numbers as they are, dates and times in quotes."""
    ends = [end.strip() for end in text.split(",")]
    if len(ends) != 2 or not all(ends):
        raise click.UsageError(f"{text}: write two bounds, LOW,HIGH, as in 0,120 or 2025-01-01,2025-12-31.")
    return f"{{ between = [{', '.join(e if _is_number(e) else json.dumps(e) for e in ends)}] }}"


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", text) is not None


def _number(text: str) -> str:
    from hubbub.ledger.budget import parse_epsilon

    parse_epsilon(text)
    return text if _is_number(text) else json.dumps(text)


def show_prices(policy: Path) -> None:
    """Three questions that the policy allows, at three epsilons: how exact each would be. Reads no rows."""
    from hubbub.cli.options import open_session_to_check
    from hubbub.tables.plan import ASSUMED

    with open_session_to_check(policy) as session:
        samples = _samples(session)
        rows = [(sql, *(_width(session, sql, epsilon) for epsilon in _EPSILONS)) for sql in samples]
        bounds = f" (where the bound that is found is {ASSUMED})" if any(_limits(session, s) for s in samples) else ""
    if rows:
        note(f"What three questions would cost: 95 % of answers lie within{bounds}")
        show_table(("question", *(f"epsilon {e}" for e in _EPSILONS)), rows, right=(False, True, True, True))


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


def _limits(session: Session, sql: str) -> dict[str, Any]:
    """What a question has to say where no limit is declared."""
    from hubbub.tables.declare import PrivateTable

    table = next(t for t in session._data.tables.values() if isinstance(t, PrivateTable))
    needed = {"max_groups": table.limits.groups} if "GROUP BY" in sql else {}
    return {n: "auto" for n, limit in {**needed, "max_rows": table.limits.rows}.items() if limit is None}


def _width(session: Session, sql: str, epsilon: str) -> str:
    try:
        wide = session.check(sql, epsilon=epsilon, **_limits(session, sql)).columns[-1].plus_minus
    except HubbubError:
        return "-"
    return "-" if wide is None else f"± {wide:,.4g}"
