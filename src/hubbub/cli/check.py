"""`hubbub check`: the cost and the error of a question, before it is asked. Reads no rows, charges nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hubbub.cli.console import printable
from hubbub.cli.formats import as_json
from hubbub.cli.options import (
    open_session_to_check,
    params_option,
    policy_option,
    question_options,
    question_text,
    terms_given,
    terms_options,
    write,
)

if TYPE_CHECKING:
    from hubbub.session.check import Check

__all__ = ["command"]


@click.command("check")
@question_options
@params_option
@terms_options
@policy_option
@click.option(
    "--assume-rows",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Rows to assume in a group where the error of an average depends on it.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def command(
    sql: str | None,
    file: Path | None,
    params: dict[str, object],
    policy: Path | None,
    assume_rows: int,
    form: str,
    **terms: Any,
) -> None:
    """What the question SQL would cost and how exact it would be; reads no rows."""
    asked, given = question_text(sql, file), terms_given(terms, params)
    with open_session_to_check(policy) as session:
        estimate = session.check(asked, assume_rows=assume_rows, **given)
    write(as_json(_fields(estimate)) if form == "json" else printable(str(estimate)), None)


def _fields(check: Check) -> dict[str, object]:
    return {
        "epsilon": check.epsilon,
        "left": check.left,
        "affordable": check.affordable,
        "stored": check.stored,
        "mechanism": check.mechanism,
        "notes": check.notes,
        "columns": [
            {"name": c.name, "plus_minus": c.plus_minus, "ranks": c.ranks, "note": c.unit_note} for c in check.columns
        ],
        "how_many": check.how_many,
        "sides": [
            {
                "noise": side.name,
                "cost": side.cost,
                "fits": side.fits,
                "columns": {c.name: c.ranks if c.ranks is not None else c.plus_minus for c in side.columns},
            }
            for side in check.sides
        ],
    }
