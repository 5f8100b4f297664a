"""What is left, as every command says it: for a question, for one account, for each unit space."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from hubbub.ledger.accounts import TOGETHER
from hubbub.ledger.budget import decimal_text, short_text

if TYPE_CHECKING:
    from hubbub.answer.release import Release
    from hubbub.ledger.budget import Budget
    from hubbub.ledger.remainder import Remaining
    from hubbub.ledger.store import Ledger, LedgerView
    from hubbub.session import Session

__all__ = ["left_after", "left_of", "left_text", "more_like"]


def left_of(book: Ledger | LedgerView, space: str, *, granted: bool = False, **account: str) -> Fraction:
    """The largest epsilon of one more question to a unit space.

    account: `dataset` or `analyst`, to look at their limits too. granted: at what `everyone` was granted, always.
    """
    budget, left = book.balance.budget(space), book.balance.left(space, granted=granted, **account)
    return left.epsilon if budget.pure else max(_gaussian(budget, left), left.epsilon)


def left_text(
    book: Ledger | LedgerView, space: str, *, exact: bool = False, granted: bool = False, **account: str
) -> str:
    """`left_of` for people: six digits, rounded down, where it is long. exact: for programs, where the budget is pure;
    under one with delta a square root rounds anyway.
    """
    left = left_of(book, space, granted=granted, **account)
    return decimal_text(left) if exact and book.balance.budget(space).pure else short_text(left)


def left_after(session: Session, release: Release) -> str | None:
    """What is left of the unit space that an answer was charged to, for the analyst, its tables and its kind of noise,
    as `check` would say it of the same question; None for public tables alone, which charge nothing.
    """
    receipt = release.receipt
    if "unit_space" not in receipt:
        return None
    space, book = receipt["unit_space"], session.ledger
    budget, left = (
        book.balance.budget(space),
        book.balance.left(space, dataset=TOGETHER.join(receipt["tables"]), analyst=session.analyst),
    )
    return short_text(left.epsilon if budget.pure or receipt["rho"] is None else _gaussian(budget, left))


def more_like(session: Session, release: Release) -> str:
    """How many more such questions fit, and why the figures do not add up; nothing under a budget without delta."""
    receipt = release.receipt
    if "unit_space" not in receipt or release.charge_id == "":
        return ""
    space, balance = receipt["unit_space"], session.ledger.balance
    if balance.budget(space).pure or receipt["rho"] is None:
        return ""
    left = balance.left(space, dataset=TOGETHER.join(receipt["tables"]), analyst=session.analyst)
    many = left.how_many(balance.question(space, release.epsilon, delta=Fraction(receipt.get("delta") or 0)))
    more = f", for about {many:,} more such question{'' if many == 1 else 's'}" if many else ""
    return f"{more} (under a delta, noise of many questions adds up more slowly than their epsilons)"


def _gaussian(budget: Budget, left: Remaining) -> Fraction:
    from hubbub.accounting import rho_of_epsilon
    from hubbub.session.check import settled

    return settled(left.question, lambda epsilon: rho_of_epsilon(epsilon, budget.delta_conversion) <= left.rho)
