"""`hubbub revoke`: an account may spend nothing more."""

from __future__ import annotations

from pathlib import Path

import click

from hubbub.cli.console import note
from hubbub.cli.grant import account_named
from hubbub.cli.options import key_option, ledger_option, manage_ledger, me, one_space, policy_option, space_option

__all__ = ["command"]


@click.command("revoke")
@click.argument("account")
@click.option("--reason", default="", help="Why, for the record.")
@space_option
@policy_option
@ledger_option
@key_option
def command(
    account: str,
    reason: str,
    unit_space: str | None,
    policy: Path | None,
    ledger: str | None,
    key_file: Path | None,
) -> None:
    """Let ACCOUNT spend nothing more. What it has spent, and its stored answers, stay."""
    with manage_ledger(policy, ledger, key_file) as book:
        space = one_space(book, unit_space)
        revoked = book.steward.revoke(space, account_named(account), author=me(), reason=reason)
    note(f"{revoked.account} may spend nothing more ({space}).")
