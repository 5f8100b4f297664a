"""How budgets stand: what they are, what was spent, what is left, and whether a question fits. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from hubbub.ledger.accounts import (
    EVERYONE,
    TRAINING,
    Total,
    analyst_account,
    block_account,
    empty_filter,
    pure_cost,
    table_accounts,
    token_account,
    training_filter,
)
from hubbub.ledger.allowances import NAMED, all_allowances, default_limit, policy_records
from hubbub.ledger.books import AccountState, allowances_since, latest_allowances, moment, total_of
from hubbub.ledger.budget import Budget, EpsilonLike, parse_epsilon
from hubbub.ledger.charging import accounts_of
from hubbub.ledger.handle import Handle
from hubbub.ledger.hash_chain import Connection
from hubbub.ledger.readings import by_token
from hubbub.ledger.records import Allowance
from hubbub.ledger.remainder import Remaining, question_cost

if TYPE_CHECKING:
    from hubbub.accounting import Cost

__all__ = ["Balance"]


class Balance:
    """What may be asked of the budgets of a ledger without changing it."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def spaces(self) -> list[str]:
        """The unit spaces that have a budget here, sorted."""
        with self._handle.reading() as connection:
            return [name for (name,) in connection.execute("SELECT name FROM unit_space ORDER BY name").fetchall()]

    def budget(self, space: str) -> Budget:
        """The budget of `space`, which bounds everything that is released about its units.

        Raises:
            PolicyError: the ledger holds no budget for it.
        """
        with self._handle.reading() as connection:
            return self._handle.budget(connection, space)

    def ceiling(self, space: str) -> Fraction:
        """The epsilon of the budget of `space`."""
        return self.budget(space).epsilon

    def spent(self, space: str) -> Fraction:
        """The pure losses of everything charged to `space`, whatever became of it, and what blocks hold."""
        return self.total(space).epsilon

    def total(self, space: str, account: str = EVERYONE) -> Total:
        """What an account of `space` has paid: epsilon, rho, delta."""
        with self._handle.reading() as connection:
            self._handle.budget(connection, space)
            return total_of(connection, space, account)

    def relation(self, space: str) -> str | None:
        """The neighbour relation that the losses of `space` are stated for; None before its first charge.

        It is recorded with the first charge whose details name one, in the same transaction; a later charge under
        another relation is refused.
        """
        with self._handle.reading() as connection:
            return self._books_for(connection).relation(space)

    def remaining(self, space: str, *, dataset: str | None = None, analyst: str | None = None) -> Fraction:
        """The largest epsilon at which one more question with pure noise fits; exact for pure budgets.

        dataset, analyst: look at their limits too. Without them, at the joint ceiling alone.
        """
        return self.left(space, dataset=dataset, analyst=analyst).epsilon

    def left(
        self,
        space: str,
        *,
        dataset: str | None = None,
        analyst: str | None = None,
        block: str | None = None,
        token: str | None = None,
        granted: bool = False,
    ) -> Remaining:
        """What one more question may cost: epsilon, rho, delta; and how many of one cost fit (`Remaining.how_many`).

        dataset, analyst: look at their limits too; without them, at the joint ceiling alone. block: what the reserved
        block of that analyst holds, in place of the joint budget and the analyst's. token: one that has a cap. granted:
        look at what `everyone` was granted, where nothing else is named, too.

        Raises:
            PolicyError: there is no such space, or no such block of that analyst.
        """
        with self._handle.reading() as connection:
            budget = self._handle.budget(connection, space)
            at = moment(connection)
            if block is None:
                named = [EVERYONE]
                named += [] if analyst is None else [analyst_account(analyst)]
            else:
                named = [block_account(block)]
            named += [] if dataset is None else table_accounts(dataset)
            named += [] if token is None else [token_account(token)]
            payer = None if block is None else (block, analyst or "")
            standings = self._books_for(connection).standings(space, budget, named, payer, at)
            if named == [EVERYONE] and not granted:  # the ceiling itself, whatever is granted below
                standings = [standings[0]._replace(filters=(empty_filter(budget, budget.epsilon),))]
            return Remaining.of(budget, standings)

    def training(self, space: str) -> tuple[Fraction, Fraction]:
        """What is left of the epsilon and delta that are set aside for training.

        Raises:
            PolicyError: there is no such space.
        """
        paid, budget = self.total(space, TRAINING), self.budget(space)
        with self._handle.reading() as connection:
            over = bool(latest_allowances(connection, space, [TRAINING]))
        return (Fraction(0), Fraction(0)) if over else replace(training_filter(budget), spent=paid.cost).left

    def limit(self, space: str, analyst: str) -> Fraction:
        """What an analyst may spend in all: his last allowance, if there is one; at most the budget."""
        with self._handle.reading() as connection:
            budget, at = self._handle.budget(connection, space), moment(connection)
            accounts = [analyst_account(analyst)]
            (standing,) = self._books_for(connection).standings(space, budget, accounts, None, at)
        allowance = standing.allowance
        if allowance is None:
            return budget.for_questions
        most = budget.for_questions
        return Fraction(0) if allowance.over(at) else min(most, allowance.epsilon or most)

    def question(self, space: str, epsilon: EpsilonLike, *, delta: Fraction | int = 0) -> Cost:
        """What a question asked of `space` at `epsilon` is charged: under a pure budget that epsilon; under one with
        delta the rho of one (epsilon, delta_z) release with Gaussian noise, and `delta` for its thresholds.

        Raises:
            ParameterError: epsilon is not a positive number, or delta lies outside [0, 1].
            PolicyError: there is no such space.
        """
        budget = self.budget(space)
        return pure_cost(parse_epsilon(epsilon)) if budget.pure else question_cost(budget, epsilon, delta=delta)

    def admits(
        self,
        cost: Cost,
        *,
        space: str,
        dataset: str,
        analyst: str,
        block: str | None = None,
        token: str | None = None,
    ) -> bool:
        """Whether a question of this cost would be charged now, as far as budgets go."""
        with self._handle.reading() as connection:
            budget = self._handle.budget(connection, space)
            accounts = accounts_of("question", dataset, analyst, block, by_token("{}", token))
            payer = None if block is None else (block, analyst)
            standings = self._books_for(connection).standings(space, budget, accounts, payer, moment(connection))
            return all(standing.admits(cost) for standing in standings)

    def _books_for(self, connection: Connection) -> AccountState:
        return AccountState().begin(connection, None)

    def accounts(self, space: str) -> list[str]:
        """The accounts of `space` that anything was charged to, sorted."""
        with self._handle.reading() as connection:
            rows = connection.execute(
                "SELECT name FROM account WHERE unit_space = ? ORDER BY name", (space,)
            ).fetchall()
        return [account for (account,) in rows]

    def failures(self, space: str) -> dict[str | None, tuple[int, int]]:
        """How many questions failed that count, and how many may: of each analyst, and of all together under None.

        Raises:
            PolicyError: the space has no budget.
        """
        with self._handle.reading() as connection:
            self._handle.budget(connection, space)
            books = AccountState().begin(connection, None)
            names = books.spellings(space)
            rows = connection.execute(
                "SELECT DISTINCT charge.analyst FROM step CROSS JOIN charge WHERE step.state IN ('failed', 'lost') AND "
                f"charge.serial = step.charge AND charge.unit_space IN ({', '.join('?' * len(names))}) "
                "ORDER BY charge.analyst",
                names,
            ).fetchall()
            joint = books.joint_failures(space, self._handle.rules.max_failures)
            counted: dict[str | None, tuple[int, int]] = {None: (joint, self._handle.rules.max_failures_all)}
            for (analyst,) in rows:
                counted[analyst] = books.failures(space, analyst), self._handle.rules.max_failures
        return counted

    def allowances(self, space: str) -> list[Allowance]:
        """What was last said about each account of `space`, raised ceilings included, by account."""
        with self._handle.reading() as connection:
            return all_allowances(connection, space)

    def said_of(self, space: str, account: str, *, after: int) -> list[Allowance]:
        """All that was said about one account of `space` after a line of the ledger, in its order."""
        with self._handle.reading() as connection:
            return allowances_since(connection, space, account, after)

    def policy_limits(self, space: str) -> dict[str, Fraction]:
        """The limits that the policy file gave, by account, as last recorded."""
        with self._handle.reading() as connection:
            self._handle.budget(connection, space)
            records = policy_records(connection, space)
        return {account: amount for account, (amount, reason) in records.items() if reason == NAMED}

    def policy_differs(self, space: str, limits: Mapping[str, Fraction]) -> list[str]:
        """The accounts that the policy's limits let spend another amount than those that were last recorded."""
        with self._handle.reading() as connection:
            budget = self._handle.budget(connection, space)
            known = {account: amount for account, (amount, _) in policy_records(connection, space).items()}
        return sorted(
            account
            for account in known.keys() | limits.keys()
            if known.get(account, default_limit(account, known, budget))
            != limits.get(account, default_limit(account, limits, budget))
        )
