"""`hubbub bounds`: how much the limits of a question leave out, and which would be best; bought."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hubbub.cli.console import note, printable
from hubbub.cli.formats import as_json
from hubbub.cli.options import (
    agree,
    open_session,
    params_option,
    policy_option,
    purpose_option,
    question_options,
    question_text,
    terms_given,
    terms_options,
    write,
)
from hubbub.ledger.budget import decimal_text

if TYPE_CHECKING:
    from hubbub.session.check_bounds import BoundsCheck

__all__ = ["command"]


@click.command("bounds")
@question_options
@params_option
@terms_options
@policy_option
@purpose_option
@click.option("--at", metavar="NUMBER", help="The epsilon that errors are predicted for; else the same.")
@click.option("--yes", is_flag=True, help="Spend without asking; needed where no person can answer.")
@click.option("--fresh", is_flag=True, help="Draw and charge again, even if a stored answer would be free.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def command(
    sql: str | None,
    file: Path | None,
    params: dict[str, object],
    policy: Path | None,
    purpose: str | None,
    at: str | None,
    yes: bool,
    fresh: bool,
    form: str,
    **terms: Any,
) -> None:
    """How much the limits of the question SQL leave out of units and rows, for --epsilon; and which limits are best."""
    asked, given = question_text(sql, file), terms_given(terms, params)
    if "epsilon" not in given or "within" in given:
        raise click.UsageError("say what it may cost: --epsilon NUMBER.")
    from hubbub.session.consent import bounds_are_stored

    with open_session(policy, purpose) as session:
        if fresh or not bounds_are_stored(session, asked, **given):
            agree(str(given["epsilon"]), yes=yes)
        check = session.check_bounds(asked, at=at, fresh=fresh, **given)
    write(as_json(_fields(check)) if form == "json" else printable(str(check)), None)
    charged = f"Charged epsilon {decimal_text(check.cost)}." if check.charged else "Stored: nothing charged."
    note(f"{charged} Asked again, it is free.")


def _fields(check: BoundsCheck) -> dict[str, object]:
    return {
        "cost": check.cost,
        "charged": check.charged,
        "charge": check.charge_id,
        "limits": [asdict(limit) for limit in check.limits],
    }
