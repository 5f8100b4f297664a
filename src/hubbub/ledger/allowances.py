"""What accounts may spend, as it was last said: by stewards, and by the policy file."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from hubbub.ledger.accounts import EACH_ANALYST, read_amount
from hubbub.ledger.books import NAMED_NO_MORE, POLICY_AUTHOR, latest_allowances
from hubbub.ledger.budget import Budget
from hubbub.ledger.hash_chain import Connection
from hubbub.ledger.records import Allowance

__all__ = ["NAMED", "NAMED_NO_MORE", "all_allowances", "default_limit", "policy_records"]

NAMED: Final = "hubbub.toml"


def all_allowances(connection: Connection, space: str) -> list[Allowance]:
    """What was last said about each account, by account."""
    accounts = connection.execute(
        "SELECT DISTINCT account FROM allowance WHERE unit_space = ? ORDER BY account", (space,)
    ).fetchall()
    if not accounts:
        return []
    return list(latest_allowances(connection, space, [account for (account,) in accounts]).values())


def policy_records(connection: Connection, space: str) -> dict[str, tuple[Fraction, str]]:
    """What the policy file last gave each account, and whether it named the account then."""
    records = connection.execute(
        "SELECT account, epsilon, reason FROM allowance WHERE unit_space = ? AND author = ? AND epsilon IS NOT NULL "
        "ORDER BY serial",
        (space, POLICY_AUTHOR),
    ).fetchall()
    return {account: (read_amount(epsilon), reason) for account, epsilon, reason in records}


def default_limit(account: str, limits: Mapping[str, Fraction], budget: Budget) -> Fraction:
    """What an account may spend that has no limit of its own."""
    if account.startswith("analyst:") and account != EACH_ANALYST:
        return limits.get(EACH_ANALYST, budget.epsilon)
    return budget.epsilon
