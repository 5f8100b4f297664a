"""`hubbub ledger`: the steward's dealings with the ledger file."""

from __future__ import annotations

from pathlib import Path

import click

from hubbub.cli.console import note
from hubbub.cli.options import policy_option
from hubbub.ledger.budget import decimal_text

__all__ = ["command"]


@click.group("ledger")
def command() -> None:
    """Create the ledger that the policy file names."""


@command.command("create")
@policy_option
def create(policy: Path | None) -> None:
    """Create the ledger file that the policy names, with the policy's budget for each unit space.

    The budget is the ceiling for everything that is ever asked, and does not change afterwards. A ledger that
    exists already is kept as it is; unit spaces new to it are added.
    """
    from hubbub.session import Session

    with Session.from_policy(policy, create_ledger=True) as session:
        ceiling = decimal_text(session.budget.epsilon)
        left = decimal_text(session.remaining)
    note(f"The ledger is ready: epsilon {left} of {ceiling} is left.")
