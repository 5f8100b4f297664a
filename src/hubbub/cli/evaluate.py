"""`hubbub evaluate`: how good a fitted model is on a private table, at a cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from hubbub.cli.console import note, printable
from hubbub.cli.options import agree, epsilon_option, open_session, policy_option, purpose_option, rows_per_unit_option
from hubbub.cli.predict import class_called, read_model
from hubbub.cli.standing import left_text
from hubbub.ledger.budget import decimal_text

__all__ = ["command"]


@click.command("evaluate")
@click.argument("model", metavar="MODEL", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("table", metavar="TABLE")
@click.option("--positive", metavar="CLASS", help="Of which of two classes to show the calibration, too: free.")
@epsilon_option
@rows_per_unit_option
@policy_option
@purpose_option
@click.option("--yes", is_flag=True, help="Spend without asking; needed where no person can answer.")
@click.option("--fresh", is_flag=True, help="Draw and charge again, even if stored figures would be free.")
def command(
    model: Path,
    table: str,
    positive: str | None,
    epsilon: str,
    rows_per_unit: int | None,
    policy: Path | None,
    purpose: str | None,
    yes: bool,
    fresh: bool,
) -> None:
    """How good the MODEL that `hubbub fit` wrote is on the private TABLE, which should hold other people."""
    fitted = read_model(model)
    if positive is not None:
        if not hasattr(fitted, "positive"):
            raise click.UsageError(f"--positive {positive}: a {type(fitted).__name__} tells no two classes.")
        fitted.set_params(positive=class_called(positive, fitted.kept_["classes"] or ()))
    agree(epsilon, yes=yes)
    with open_session(policy, purpose) as session:
        figures = session.evaluate(fitted, table, epsilon=epsilon, rows_per_unit=rows_per_unit, fresh=fresh)
        space = session.ledger.record.receipt(figures.charge_id)["unit_space"]
        left = left_text(session.ledger, space, dataset=table, analyst=session.analyst)
    click.echo(printable(str(figures)))
    if positive is not None:
        _tell_calibration(figures.calibration, positive)
    said = f"Charged epsilon {decimal_text(figures.cost)}" if figures.charged else "Stored: nothing charged"
    note(f"{said}; {left} is left.")


def _tell_calibration(steps: Sequence[tuple[float, float, float]], positive: str) -> None:
    """Of each step of scores with clearly more rows than noise: what was predicted, and what was so."""
    for probability, share, rows in steps:
        click.echo(printable(f"p({positive}) about {probability:.3f}: {share:.3f} of about {rows:,.0f} rows"))
    if not steps:
        note("No step of scores has clearly more rows than noise, so there is no calibration: spend more.")
