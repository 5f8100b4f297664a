"""How a ledger's budgets stand: what they are, what was spent, what is left, and whether a question fits."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from hubbub.ledger.accounts import (
    EVERYONE,
    Total,
    analyst_account,
    block_account,
    empty_filter,
    pure_cost,
    table_accounts,
)
from hubbub.ledger.books import AccountState, moment, total_of
from hubbub.ledger.budget import Budget, EpsilonLike, parse_epsilon
from hubbub.ledger.charging import accounts_of
from hubbub.ledger.handle import Handle
from hubbub.ledger.hash_chain import Connection
from hubbub.ledger.remainder import Remaining, question_cost

if TYPE_CHECKING:
    from hubbub.accounting import Cost

__all__ = ["Balance"]


class Balance(Handle):
    """What may be asked of a ledger without changing it. Part of `Ledger`."""

    def spaces(self) -> list[str]:
        """The unit spaces that have a budget here, sorted."""
        with self._reading() as connection:
            return [name for (name,) in connection.execute("SELECT name FROM unit_space ORDER BY name").fetchall()]

    def budget(self, space: str) -> Budget:
        """The budget of `space`, which bounds everything that is released about its units.

        Raises:
            PolicyError: the ledger holds no budget for it.
        """
        with self._reading() as connection:
            return self._budget(connection, space)

    def ceiling(self, space: str) -> Fraction:
        """The epsilon of the budget of `space`."""
        return self.budget(space).epsilon

    def spent(self, space: str) -> Fraction:
        """The pure losses of everything charged to `space`, whatever became of it, and what blocks hold."""
        return self.total(space).epsilon

    def total(self, space: str, account: str = EVERYONE) -> Total:
        """What an account of `space` has paid: epsilon, rho, delta."""
        with self._reading() as connection:
            self._budget(connection, space)
            return total_of(connection, space, account)

    def relation(self, space: str) -> str | None:
        """The neighbour relation that the losses of `space` are stated for; None before its first charge.

        It is recorded with the first charge whose details name one, in the same transaction; a later charge under
        another relation is refused.
        """
        with self._reading() as connection:
            return self._books_for(connection).relation(space)

    def remaining(self, space: str, *, dataset: str | None = None, analyst: str | None = None) -> Fraction:
        """The largest epsilon at which one more question with pure noise fits; exact for pure budgets.

        dataset, analyst: look at their limits too. Without them, at the joint ceiling alone.
        """
        return self.left(space, dataset=dataset, analyst=analyst).epsilon

    def left(
        self, space: str, *, dataset: str | None = None, analyst: str | None = None, block: str | None = None
    ) -> Remaining:
        """What one more question may cost: epsilon, rho, delta; and how many of one cost fit (`Remaining.how_many`).

        dataset, analyst: look at their limits too; without them, at the joint ceiling alone. block: what the reserved
        block of that analyst holds, in place of the joint budget and the analyst's.

        Raises:
            PolicyError: there is no such space, or no such block of that analyst.
        """
        with self._reading() as connection:
            budget = self._budget(connection, space)
            at = moment(connection)
            if block is None:
                named = [EVERYONE]
                named += [] if analyst is None else [analyst_account(analyst)]
            else:
                named = [block_account(block)]
            named += [] if dataset is None else table_accounts(dataset)
            payer = None if block is None else (block, analyst or "")
            standings = self._books_for(connection).standings(space, budget, named, payer, at)
            if block is None and dataset is None and analyst is None:  # the ceiling itself, whatever is granted below
                standings = [standings[0]._replace(filters=(empty_filter(budget, budget.epsilon),))]
            return Remaining.of(budget, standings)

    def question(self, space: str, epsilon: EpsilonLike, *, delta: Fraction | int = 0) -> Cost:
        """What a question asked of `space` at `epsilon` is charged: under a pure budget that epsilon; under one with
        delta the rho of one (epsilon, delta_z) release with Gaussian noise, and `delta` for its thresholds.

        Raises:
            ParameterError: epsilon is not a positive number, or delta lies outside [0, 1].
            PolicyError: there is no such space.
        """
        budget = self.budget(space)
        return pure_cost(parse_epsilon(epsilon)) if budget.pure else question_cost(budget, epsilon, delta=delta)

    def admits(self, cost: Cost, *, space: str, dataset: str, analyst: str, block: str | None = None) -> bool:
        """Whether a question of this cost would be charged now, as far as budgets go."""
        with self._reading() as connection:
            budget = self._budget(connection, space)
            accounts = accounts_of("question", dataset, analyst, block)
            payer = None if block is None else (block, analyst)
            found = self._books_for(connection).standings(space, budget, accounts, payer, moment(connection))
            return all(standing.admits(cost) for standing in found)

    def _books_for(self, connection: Connection) -> AccountState:
        return AccountState().begin(connection, None)
