"""`hubbub grant`: how much an account may spend in all, and until when."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from hubbub.cli.console import note
from hubbub.cli.options import (
    epsilon_option,
    key_option,
    ledger_option,
    manage_ledger,
    me,
    one_space,
    policy_option,
    space_option,
)
from hubbub.ledger.budget import decimal_text

__all__ = ["account_named", "command"]


def account_named(text: str) -> str:
    """The account that a person means: an analyst's name alone is that analyst.

    >>> account_named("ada"), account_named("table:visits"), account_named("everyone")
    ('analyst:ada', 'table:visits', 'everyone')
    """
    return text if text == "everyone" or text.startswith(("analyst:", "table:")) else f"analyst:{text}"


@click.command("grant")
@click.argument("account")
@epsilon_option
@click.option("--until", metavar="DATE", help="When it ends, such as 2026-12-31 (its beginning, UTC).")
@click.option("--reason", default="", help="Why, for the record.")
@space_option
@policy_option
@ledger_option
@key_option
def command(
    account: str,
    epsilon: str,
    until: str | None,
    reason: str,
    unit_space: str | None,
    policy: Path | None,
    ledger: str | None,
    key_file: Path | None,
) -> None:
    """Set ACCOUNT's total limit to EPSILON; what it has already spent counts toward it.

    ACCOUNT is an analyst's name, `analyst:*` for each analyst without a grant, `table:NAME`, or `everyone`.
    """
    with manage_ledger(policy, ledger, key_file) as book:
        space = one_space(book, unit_space)
        before = next((a for a in book.balance.allowances(space) if a.account == account_named(account)), None)
        granted = book.steward.grant(space, account_named(account), epsilon, until=until, author=me(), reason=reason)
    ends = "" if granted.expires is None else f", until {granted.expires[:10]}"
    amount = decimal_text(granted.epsilon or Fraction(0))
    note(f"{granted.account} may spend epsilon {amount} in all{ends} ({space}).")
    if before is not None and before.expires is not None and granted.expires != before.expires:
        ended = before.expires[:10]
        note(f"The grant before ended {ended}; that end holds no more. To keep it, grant again with --until {ended}")
