"""`hubbub check`: the cost and the error of a question, before it is asked. Reads no rows, charges nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hubbub.cli.console import printable
from hubbub.cli.formats import as_json
from hubbub.cli.options import epsilon_option, open_session, policy_option, write

if TYPE_CHECKING:
    from hubbub.check import Check

__all__ = ["command"]


@click.command("check")
@click.argument("sql")
@epsilon_option
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
def command(sql: str, epsilon: str, policy: Path | None, assume_rows: int, form: str) -> None:
    """What the question SQL would cost and how exact it would be; reads no rows."""
    with open_session(policy) as session:
        found = session.check(sql, epsilon=epsilon, assume_rows=assume_rows)
    write(as_json(_fields(found)) if form == "json" else printable(str(found)), None)


def _fields(check: Check) -> dict[str, object]:
    return {
        "epsilon": check.epsilon,
        "left": check.left,
        "affordable": check.affordable,
        "stored": check.stored,
        "mechanism": check.mechanism,
        "columns": [
            {"name": column.name, "plus_minus": column.plus_minus, "note": column.unit_note} for column in check.columns
        ],
    }
