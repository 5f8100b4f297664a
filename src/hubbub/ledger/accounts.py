"""Accounts: who pays for a charge, what each may spend, and the exact sums that decide.

**Accounts of a unit space.** `everyone` is the joint budget: the promise to the people in the data, on the sum over
all analysts, because analysts may collude. `table:NAME` and `analyst:NAME` are limits below it, `analyst:*` the
limit of each analyst who has none of their own. `token:ID` is the cap of a token of the service. `block:ID` is what a
reserved block holds. `training` is what a budget sets aside for nets that are trained elsewhere; questions have the
rest (`Budget.for_questions`).

**Filters.** Every account admits a charge by the same rule (Rogers, Roth, Ullman, Vadhan 2016, Theorem 3.6, for pure
budgets; Whitehouse, Ramdas, Rogers, Wu 2023, Theorem 1, for approximate zCDP): the sum of epsilons stays within the
account's epsilon while all was pure, *or* the sum of rhos within its rho and the deltas within its share. The rho of a
limit is that of its epsilon at the *data set's* delta, so that one and the same rho is charged everywhere.

**Arithmetic.** Sums are exact rationals. A sum whose denominator grows beyond 2,048 bits is rounded up to 60 decimal
places: against the spender, and so that no choice of epsilons makes the ledger slow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from hubbub.accounting.amounts import ratio
from hubbub.errors import PolicyError
from hubbub.ledger.budget import Budget

if TYPE_CHECKING:
    from hubbub.accounting import BasicFilter, Cost, PureFilter, ZCDPFilter

__all__ = [
    "EACH_ANALYST",
    "EVERYONE",
    "TOGETHER",
    "TRAINING",
    "Total",
    "analyst_account",
    "block_account",
    "empty_filter",
    "is_token",
    "largest_question",
    "pure_cost",
    "read_amount",
    "rho_at",
    "table_account",
    "table_accounts",
    "token_account",
    "training_filter",
    "write_amount",
]

EVERYONE: Final = "everyone"
EACH_ANALYST: Final = "analyst:*"
TRAINING: Final = "training"
_ZERO, _ONE = Fraction(0), Fraction(1)
_LONG: Final = 2048
_GRID: Final = 10**60


TOGETHER: Final = " + "
"""Between the names of the data sets that one question reads: each one's own limit is charged."""


def table_accounts(dataset: str) -> tuple[str, ...]:
    """The accounts of the data sets that a charge names.

    >>> table_accounts("items + orders")
    ('table:items', 'table:orders')
    """
    return tuple(dict.fromkeys(map(table_account, dataset.split(TOGETHER))))


def table_account(dataset: str) -> str:
    """The account of one data set."""
    return f"table:{dataset}"


def analyst_account(analyst: str) -> str:
    """The account of one analyst."""
    return f"analyst:{analyst}"


def token_account(token: str) -> str:
    """The account of a token of the service that has a cap: what all that is asked and read with it may cost."""
    return f"token:{token}"


def is_token(account: str) -> bool:
    """Whether an account is a token's."""
    return account.startswith("token:")


def block_account(charge_id: str) -> str:
    """The account of a reserved block or plan."""
    return f"block:{charge_id}"


@dataclass(frozen=True)
class Total:
    """A sum of costs. `impure` counts those that have no pure epsilon; while it is 0, `epsilon` is the pure loss.

    >>> Total(Fraction(1, 2), Fraction(1, 8)) + Total(Fraction(0), Fraction(1, 4), impure=1)
    Total(epsilon=Fraction(1, 2), rho=Fraction(3, 8), delta=Fraction(0, 1), impure=1)
    """

    epsilon: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    impure: int = 0

    @classmethod
    def of(cls, cost: Cost) -> Total:
        """The total of one cost."""
        return cls(cost.epsilon or Fraction(0), cost.rho, cost.delta, int(cost.epsilon is None))

    @classmethod
    @lru_cache(maxsize=4096)
    def read(cls, epsilon: str, rho: str, delta: str, impure: int) -> Total:
        """What `written` wrote."""
        return cls(read_amount(epsilon), read_amount(rho), read_amount(delta), impure)

    @property
    def written(self) -> tuple[str, str, str, int]:
        """The total as the ledger keeps it."""
        return write_amount(self.epsilon), write_amount(self.rho), write_amount(self.delta), self.impure

    @property
    def cost(self) -> Cost:
        """The total as the accountant sees it."""
        from hubbub.accounting import Cost

        return Cost(None if self.impure else self.epsilon, self.rho, min(_ONE, self.delta) if self.delta else _ZERO)

    def __add__(self, other: Total) -> Total:
        return Total(
            _held(self.epsilon + other.epsilon) if other.epsilon else self.epsilon,
            _held(self.rho + other.rho) if other.rho else self.rho,
            _held(self.delta + other.delta) if other.delta else self.delta,
            self.impure + other.impure,
        )

    def within(self, held: Total) -> Total:
        """The smaller of each amount: what was used of a plan costs no more than its parts, nor than the whole plan."""
        epsilon = self.epsilon if held.impure else min(self.epsilon, held.epsilon)
        return Total(epsilon, min(self.rho, held.rho), min(self.delta, held.delta), self.impure)

    def is_within(self, held: Total) -> bool:
        """Whether no amount is larger."""
        pure = bool(held.impure) or (not self.impure and self.epsilon <= held.epsilon)
        return pure and self.rho <= held.rho and self.delta <= held.delta and self.impure <= held.impure

    def __sub__(self, other: Total) -> Total:
        """What is left of a reserved total after `other` was used of it; never below zero."""
        zero = Fraction(0)
        return Total(
            max(zero, _held(self.epsilon - other.epsilon)),
            max(zero, _held(self.rho - other.rho)),
            max(zero, _held(self.delta - other.delta)),
            self.impure - other.impure,
        )


def _held(amount: Fraction) -> Fraction:
    """`amount`, or the next larger multiple of 10^-60 where its denominator is out of hand."""
    if amount.denominator.bit_length() <= _LONG:
        return amount
    return Fraction(-((-amount.numerator * _GRID) // amount.denominator), _GRID)


@lru_cache(maxsize=1024)
def pure_cost(epsilon: Fraction) -> Cost:
    """The cost of an epsilon-DP question, which is epsilon^2/2-zCDP (Bun, Steinke 2016, Proposition 1.4)."""
    from hubbub.accounting import Cost

    return Cost(epsilon, epsilon * epsilon / 2)


def rho_at(budget: Budget, epsilon: Fraction) -> Fraction:
    """The rho of one (epsilon, delta) release at an approximate budget's own delta, rounded down once."""
    from hubbub.accounting import rho_of_epsilon

    return rho_of_epsilon(epsilon, budget.delta_conversion)


@lru_cache(maxsize=1024)
def empty_filter(budget: Budget, epsilon: Fraction) -> PureFilter | ZCDPFilter:
    """The filter of an account that may spend `epsilon` under `budget`'s kind and has spent nothing."""
    from hubbub.accounting import PureFilter, ZCDPFilter

    if budget.delta is None:
        return PureFilter.of(epsilon)
    if not epsilon:
        return ZCDPFilter()
    most = min(epsilon, budget.for_questions)
    return ZCDPFilter.of(most, budget.delta_for_questions, delta_threshold=budget.delta_threshold)


def training_filter(budget: Budget, *, over: bool = False) -> BasicFilter:
    """The filter of what a budget sets aside for training: nothing, where it sets nothing aside.

    over: nothing more is paid from it.
    """
    from hubbub.accounting import BasicFilter

    epsilon, delta = (None if over else budget.training) or (Fraction(0), Fraction(0))
    return BasicFilter(epsilon=epsilon, delta=delta)


def largest_question(filled: PureFilter | ZCDPFilter) -> Fraction:
    """The largest epsilon at which one more question with pure noise fits.

    Under rho it is sqrt(2 (rho - spent)), rounded down to 15 decimal places; under a pure budget it is exact.
    """
    from hubbub.accounting import PureFilter

    if isinstance(filled, PureFilter):
        return max(Fraction(0), filled.left)
    left = filled.left
    by_rho = Fraction(math.isqrt(2 * left.rho.numerator * 10**30 // left.rho.denominator), 10**15)
    return max(by_rho, left.epsilon or Fraction(0))


def write_amount(amount: Fraction) -> str:
    """An exact amount as the ledger keeps it."""
    return f"{amount.numerator}/{amount.denominator}"


def read_amount(text: str) -> Fraction:
    """What `write_amount` wrote.

    Raises:
        PolicyError: it is something else, so somebody else wrote into the ledger.
    """
    try:
        return ratio(text)
    except ValueError:
        raise PolicyError(
            "the ledger holds an amount that is not a ratio: somebody else wrote into it. No answer is given; restore "
            "a backup that holds every charge."
        ) from None
