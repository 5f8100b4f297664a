"""`hubbub steward`: what only somebody who may see rows may run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hubbub.cli.console import note
from hubbub.cli.options import policy_option, show
from hubbub.errors import PolicyError

if TYPE_CHECKING:
    from hubbub.engines.duckdb.inspect import TableReport

__all__ = ["command"]


@click.group("steward")
def command() -> None:
    """What a steward may ask of the rows themselves. Not for analysts."""


@command.command("check-data")
@click.argument("names", nargs=-1, metavar="[TABLE]...")
@policy_option
@click.option("--format", "form", type=click.Choice(["table", "json", "csv", "md"]), default="table")
def check_data(names: tuple[str, ...], policy: Path | None, form: str) -> None:
    """How many values of each column fail, are outside what is declared, or are NULL: exact, from the rows.

    For a steward, who may see rows: nothing here is private. It charges nothing, since it answers no analyst.
    """
    from hubbub.engines.duckdb.inspect import inspect_rows
    from hubbub.ledger.policy import find_policy, load_policy
    from hubbub.session.open import private_of

    policy_file = load_policy(policy or find_policy())
    for name in names:
        if name not in policy_file.tables:
            raise PolicyError(f"the policy has no private table {name!r}; it has {', '.join(policy_file.tables)}.")
    note("Exact counts from the rows, for a steward alone: they are not private, so do not pass them on.")
    rows = []
    for name in names or tuple(policy_file.tables):
        if not isinstance(policy_file.tables[name].source, Path):
            note(f"{name}: its rows are in a database; ask there.")
            continue
        report = inspect_rows(name, private_of(policy_file.tables[name]))
        note(_about(report))
        rows += [
            (
                name,
                c.name,
                c.kind,
                *map(str, (c.values, c.null, c.failing)),
                "" if c.outside is None else str(c.outside),
            )
            for c in report.columns
        ]
    columns = ("table", "column", "kind", "values", "null", "failing", "outside")
    show(columns, rows, form, right=[False] * 3 + [True] * 4)


def _about(report: TableReport) -> str:
    parts = [f"{report.name}: {report.rows:,} rows"]
    if report.units is not None:
        parts.append(f"of {report.units:,} units, at most {report.largest:,} of one")
    if report.left_out:
        parts.append(
            f"{report.left_out:,} lines are not rows: they have another number of fields, or a quote that is not closed"
        )
    return "; ".join(parts) + "."
