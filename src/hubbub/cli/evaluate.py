"""`hubbub evaluate`: how good a fitted model is on a private table, at a cost."""

from __future__ import annotations

from pathlib import Path

import click

from hubbub.cli.console import note, printable
from hubbub.cli.options import agree, epsilon_option, open_session, policy_option, purpose_option, rows_per_unit_option
from hubbub.cli.predict import read_model
from hubbub.cli.standing import left_text
from hubbub.ledger.budget import decimal_text

__all__ = ["command"]


@click.command("evaluate")
@click.argument("model", metavar="MODEL", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("table", metavar="TABLE")
@epsilon_option
@rows_per_unit_option
@policy_option
@purpose_option
@click.option("--yes", is_flag=True, help="Spend without asking; needed where no person can answer.")
@click.option("--fresh", is_flag=True, help="Draw and charge again, even if stored figures would be free.")
def command(
    model: Path,
    table: str,
    epsilon: str,
    rows_per_unit: int | None,
    policy: Path | None,
    purpose: str | None,
    yes: bool,
    fresh: bool,
) -> None:
    """How good the MODEL that `hubbub fit` wrote is on the private TABLE, which should hold other people."""
    fitted = read_model(model)
    agree(epsilon, yes=yes)
    with open_session(policy, purpose) as session:
        figures = session.evaluate(fitted, table, epsilon=epsilon, rows_per_unit=rows_per_unit, fresh=fresh)
        space = session.ledger.record.receipt(figures.charge_id)["unit_space"]
        left = left_text(session.ledger, space, dataset=table, analyst=session.analyst)
    click.echo(printable(str(figures)))
    said = f"Charged epsilon {decimal_text(figures.cost)}" if figures.charged else "Stored: nothing charged"
    note(f"{said}; {left} is left.")
