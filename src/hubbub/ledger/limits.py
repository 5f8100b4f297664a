"""The filters of the accounts that a charge concerns, as they stand at one moment.

Each is the account's own (`hubbub.ledger.accounts`): under its last allowance if there is one, else under the ceiling;
for a block, under what it holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from hubbub.errors import PolicyError
from hubbub.ledger.accounts import EACH_ANALYST, Total, block_account, filter_of
from hubbub.ledger.budget import Budget
from hubbub.ledger.handle import latest_allowances, total_of
from hubbub.ledger.journal import Connection, head_of, now
from hubbub.ledger.records import Allowance, entries

if TYPE_CHECKING:
    from hubbub.accounting import PureFilter, ZCDPFilter

__all__ = ["filters_of", "moment"]


def filters_of(
    connection: Connection,
    space: str,
    budget: Budget,
    accounts: Iterable[str],
    block: tuple[str, str] | None,
    at: str,
) -> list[tuple[str, PureFilter | ZCDPFilter, Allowance | None, Total]]:
    """For each account: its filter as it stands, the allowance that bounds it, if one does, and what it has paid.

    block: the block that pays, and the analyst who asks.
    """
    accounts = list(accounts)
    said = latest_allowances(connection, space, [*accounts, EACH_ANALYST])
    found: list[tuple[str, PureFilter | ZCDPFilter, Allowance | None, Total]] = []
    for account in accounts:
        spent = total_of(connection, space, account)
        if block is not None and account == block_account(block[0]):
            found.append((account, _block_filter(connection, space, budget, *block, spent), None, spent))
            continue
        allowance = said.get(account)
        if allowance is None and account.startswith("analyst:"):
            allowance = said.get(EACH_ANALYST)
        limit = budget.epsilon
        if allowance is not None:
            limit = Fraction(0) if allowance.over(at) else min(limit, allowance.epsilon or Fraction(0))
        found.append((account, filter_of(budget, limit, spent), allowance, spent))
    return found


def _block_filter(
    connection: Connection, space: str, budget: Budget, block: str, analyst: str, spent: Total
) -> PureFilter | ZCDPFilter:
    """What a block still admits: questions of its own unit space, by the analyst who reserved it.

    A block may have been admitted to the joint budget by its epsilon or by its rho alone, so its questions stay within
    both of what it holds.
    """
    from hubbub.accounting import PureFilter

    (entry,) = entries(connection, "WHERE charge.id = ?", block) or (None,)
    if entry is None or entry.kind not in ("block", "plan"):
        raise PolicyError(f"there is no reserved block {block!r}.")
    if entry.state == "closed":
        raise PolicyError(f"the reserved block {block!r} is closed. Reserve another, or ask without one.")
    if entry.space != space:
        raise PolicyError(
            f"the reserved block {block!r} pays for the unit space {entry.space!r}, not for {space!r}. Ask without it. "
            "Nothing was charged."
        )
    if entry.analyst != analyst:
        raise PolicyError(f"the reserved block {block!r} belongs to another analyst. Nothing was charged.")
    held = entry.spend
    if budget.pure:
        return PureFilter(epsilon=held.epsilon, spent=spent.cost)
    return _held_filter(held, spent)


def _held_filter(held: Total, spent: Total) -> ZCDPFilter:
    from hubbub.accounting import Cost, Event, PureFilter, ZCDPFilter, cost as cost_of

    by_epsilon = None if held.impure else PureFilter(epsilon=held.epsilon, spent=spent.cost)

    class Held(ZCDPFilter):
        """Within rho and delta, and within epsilon where the block holds one."""

        def admits(self, event: Event | Cost) -> bool:
            cost = event if isinstance(event, Cost) else cost_of(event)
            pure = by_epsilon is None or (cost.epsilon is not None and by_epsilon.admits(cost))
            return pure and super().admits(cost)

    return Held(rho=held.rho, delta_threshold=held.delta, epsilon=Fraction(0), spent=spent.cost)


def moment(connection: Connection) -> str:
    """Now, but never before the last entry: setting a clock back does not bring a grant back."""
    return max(now(), head_of(connection).time)
