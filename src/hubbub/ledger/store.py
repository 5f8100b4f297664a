"""The ledger: one joint budget per unit space, limits below it, charges, and the releases they paid for.

**The filter** is that of `hubbub.ledger.accounts`. It is decided in exact rationals inside the transaction that records
the charge. So however many processes ask, and however adaptively, the releases of one unit space together keep the
promise of its ceiling. What becomes of a charge is told in `hubbub.ledger.life`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Self

from hubbub.errors import HubbubError, PolicyError
from hubbub.ledger.accounts import (
    Total,
    block_account,
    pure_cost,
    write_amount,
)
from hubbub.ledger.books import Books, known_budget, total_of
from hubbub.ledger.budget import Budget, parse_epsilon
from hubbub.ledger.charging import Refused, Request, accounts_of, record
from hubbub.ledger.database import Database
from hubbub.ledger.handle import Pull, checked_text, first_row, open_store
from hubbub.ledger.journal import Connection, Writer
from hubbub.ledger.life import Lives
from hubbub.ledger.records import Entry, State, StoredRelease, entries
from hubbub.ledger.standing import Standings

if TYPE_CHECKING:
    from hubbub.accounting import Cost, Event

__all__ = ["Entry", "Ledger", "State", "StoredRelease"]

_BATCH: Final = 64  # charges recorded in one transaction at most
_LOOK: Final = 10.0  # seconds between two looks for processes that died


class Ledger(Lives, Standings):
    """A ledger, in a file, in Postgres or in memory. Safe for threads and across forks; processes share it.

    Build one with `open`, `in_memory` or `inspect`.
    """

    @classmethod
    def open(
        cls,
        place: str | PathLike[str],
        *,
        budgets: Mapping[str, Budget],
        create: bool = True,
        patience: float = 30.0,
        key: bytes | None = None,
        max_failures: int = 3,
    ) -> Self:
        """Open the ledger for spending.

        Args:
            place: the ledger file, or a Postgres address (`postgresql://...`).
            budgets: unit space -> its budget. A space the ledger does not know is added.
            create: make a missing ledger; safe when several processes do so at once.
            patience: seconds to wait for other writers before giving up.
            key: the secret of the hash chain; must be the one the ledger was created with.
            max_failures: after this many engine failures an analyst waits for a steward.

        Raises:
            PolicyError: the ledger is missing (and `create` is false), is none, is damaged, newer than this hubbub,
                cannot be written, needs another key, or holds another budget for one of the spaces.
        """
        store, file = open_store(place, create=create, patience=patience, read_only=False, key=key)
        ledger = cls(store, file, key=key, max_failures=max_failures)
        ledger._agree(budgets)
        ledger.bury()
        return ledger

    @classmethod
    def in_memory(cls, budgets: Mapping[str, Budget], *, max_failures: int = 3) -> Self:
        """A ledger that this process alone sees, and that ends with it."""
        ledger = cls(Database(None, fill=lambda c: first_row(c, None)), None, max_failures=max_failures)
        ledger._agree(budgets)
        return ledger

    @classmethod
    def inspect(cls, place: str | PathLike[str], *, key: bytes | None = None) -> Self:
        """Open an existing ledger for reading only. A keyed ledger may be read without its key.

        Raises:
            PolicyError: as `open`.
        """
        store, file = open_store(place, create=False, patience=30.0, read_only=True, key=key)
        return cls(store, file, key=key, keyless=True)

    @classmethod
    def manage(cls, place: str | PathLike[str], *, key: bytes | None = None) -> Self:
        """Open an existing ledger for a steward's entries: grants, refreshes, clearances. Adds no unit space.

        Raises:
            PolicyError: as `open`.
        """
        return cls.open(place, budgets={}, create=False, key=key)

    def _agree(self, budgets: Mapping[str, Budget]) -> None:
        with self._reading() as connection:
            known = {space: known_budget(connection, space) for space in budgets}
        if budgets and known == dict(budgets):
            return
        with self._writing() as writer:
            for space, budget in budgets.items():
                found = known_budget(writer.connection, space)
                if found is None:
                    delta = None if budget.delta is None else write_amount(budget.delta)
                    share = None if budget.delta is None else write_amount(budget.delta_threshold)
                    writer.append(
                        "unit_space", checked_text(space, "unit space"), write_amount(budget.epsilon), delta, share
                    )
                elif found != budget:
                    raise PolicyError(
                        f"this session declares {budget!r} for the unit space {space!r}, but its ledger "
                        f"{self.where} was created with {found!r}. A ceiling is "
                        f"fixed when the ledger is created: ask with {found!r}."
                    )

    def charge(
        self,
        *,
        space: str,
        dataset: str,
        analyst: str,
        question_key: str,
        sql: str,
        epsilon: Fraction,
        event: str,
        details: str,
        cost: Cost | None = None,
        policy: str | None = None,
        data_version: str | None = None,
        request: str | None = None,
        block: str | None = None,
    ) -> str:
        """Charge a question to `space`; on the disk before this returns the charge's id.

        Args:
            space: the unit space that pays.
            dataset: the name of the data set asked about; of several, joined by `accounts.TOGETHER`.
            analyst: who asks.
            question_key: equal for equal questions; `find_release` looks it up.
            sql: the question, as people read it.
            epsilon: what was asked for, exact and positive.
            event: what will be run, as JSON.
            details: sensitivity, scale and what else a receipt shows, as JSON.
            cost: the exact cost of the event; `epsilon`, pure, unless said.
            policy: the hash of the policy it is asked under (`remember_policy`).
            data_version: the id of the data's rows.
            request: the idempotency key of the analyst's request.
            block: the reserved block that pays instead of the joint budget.

        Raises:
            BudgetError: it does not fit. Nothing was charged; the refusal is recorded.
            ParameterError: epsilon is not a positive rational. Nothing was charged.
            QueryError: the idempotency key was used before.
            PolicyError: the ledger cannot record it, or the analyst is locked. No answer may follow.
        """
        made = self._question(
            space=space, dataset=dataset, analyst=analyst, question_key=question_key, sql=sql, epsilon=epsilon,
            event=event, details=details, cost=cost, policy=policy, data_version=data_version,
            request=request, block=block,
        )  # fmt: skip
        self._charge(made)
        return made.id

    def charge_once(
        self,
        *,
        space: str,
        dataset: str,
        analyst: str,
        question_key: str,
        sql: str,
        epsilon: Fraction,
        event: str,
        details: str,
        cost: Cost | None = None,
        policy: str | None = None,
        data_version: str | None = None,
        request: str | None = None,
        block: str | None = None,
    ) -> tuple[str, bool]:
        """As `charge`, unless this very question, by its key, at no less epsilon, is answered or under way.

        Two that ask the same at once thus pay once. Returns the charge, and whether it is new: if not, it is another's,
        whose answer `await_release` brings.

        Raises: as `charge`.
        """
        made = self._question(
            space=space, dataset=dataset, analyst=analyst, question_key=question_key, sql=sql, epsilon=epsilon,
            event=event, details=details, cost=cost, policy=policy, data_version=data_version,
            request=request, block=block,
            once=True,
        )  # fmt: skip
        known = self._charge(made)
        return (made.id, True) if known is None else (known, False)

    def _question(self, *, epsilon: Fraction, cost: Cost | None, **columns: Any) -> Request:
        asked = parse_epsilon(epsilon)
        for name in ("dataset", "analyst", "question_key", "sql"):
            checked_text(columns[name], _NAMES[name])
        return Request.of(
            "question", epsilon=asked, cost=cost or pure_cost(asked), max_failures=self._max_failures, **columns
        )

    def reserve(
        self,
        *,
        space: str,
        analyst: str,
        epsilon: Fraction,
        cost: Cost | None = None,
        plan: str | None = None,
        events: Sequence[Event] = (),
    ) -> str:
        """Set a part of the budget aside; the id of the block, which pays for the questions charged to it.

        What it does not use comes back with `close_block`. Under an approximate budget a block at `epsilon` holds
        the rho of one such release.

        cost: what a plan costs, exactly. plan: its text. events: what the plan will run, each question's, instead of
        `cost`: the plan is then charged at the smaller of the sum of their rhos and the plan's own
        (`hubbub.accounting.plans`), and its questions draw on the sum.

        Raises: as `charge`.
        """
        from hubbub.accounting.plans import plan_cost

        asked = parse_epsilon(epsilon)
        made = Request.of(
            "block" if plan is None else "plan",
            space=space,
            analyst=checked_text(analyst, "analyst"),
            epsilon=asked,
            cost=cost or (plan_cost(events) if events else self.question(space, asked)),
            sql="(reserved)" if plan is None else checked_text(plan, "plan"),
            details=_planned(events),
            max_failures=self._max_failures,
        )
        self._charge(made)
        return made.id

    def close_block(self, block: str) -> None:
        """Give back what a block did not use. Closing it again changes nothing.

        Raises:
            PolicyError: there is no such block.
        """
        entry = self.entry(block)
        if entry.kind not in ("block", "plan"):
            raise PolicyError(f"charge {block!r} is no reserved block.")
        with self._writing() as writer:
            (now,) = entries(writer.connection, "WHERE charge.id = ?", block)
            if now.state == "closed":
                return
            used = total_of(writer.connection, entry.space, block_account(block)).within(entry.spend)
            back = Request.of(
                "return", space=entry.space, analyst=entry.analyst, epsilon=used.epsilon, cost=used,
                sql="(what the block used)", block=block, max_failures=self._max_failures,
            )  # fmt: skip
            accounts = accounts_of("return", "", entry.analyst, None)
            totals = [(a, total_of(writer.connection, entry.space, a) + used - entry.spend) for a in accounts]
            writer.append_charge(back.row, [(entry.space, account, *total.written) for account, total in totals])
            writer.append("step", entry.serial, "closed", None, None)

    def open_blocks(self) -> list[Entry]:
        """The blocks that still hold budget, oldest first: `close_block` frees what they did not use."""
        with self._reading() as connection:
            found = entries(connection, "WHERE charge.kind IN ('block', 'plan')")
        return [entry for entry in found if entry.state != "closed"]

    def share(self, release: StoredRelease, analyst: str) -> None:
        """Charge the analyst's own limit, once, for reading what another analyst released. The joint budget is free.

        Raises:
            BudgetError: the analyst's limit does not hold it.
        """
        entry = release.entry
        if entry.analyst == analyst:
            return
        details = json.dumps({"release": entry.id})
        with self._reading() as connection:
            known = connection.execute(
                "SELECT 1 FROM charge WHERE unit_space = ? AND question_key = ? AND kind = 'reading' AND analyst = ? "
                "AND details = ?",
                (entry.space, entry.question_key, analyst, details),
            ).fetchone()
        if known is None:
            self._charge(
                Request.of(
                    "reading", space=entry.space, dataset=entry.dataset, analyst=analyst, sql=entry.sql,
                    question_key=entry.question_key, epsilon=entry.epsilon, cost=entry.spend.cost, event=entry.event,
                    details=details, policy=entry.policy, data_version=entry.data_version,
                    max_failures=self._max_failures,
                )
            )  # fmt: skip

    def _charge(self, made: Request) -> str | None:
        """Record a request, durably, with those of others who wait; the charge of another that makes it needless."""
        if made.kind == "question":
            self._take_up(made.id)
            self._look_for_the_dead()
        outcome: list[Refused | str | None] = []
        try:
            self._database.together(made.id, lambda: made.text, self._recorder(made, outcome))
        except BaseException:
            self.let_go(made.id)
            raise
        found = outcome[0] if outcome else None
        if found is not None:
            self._put_down(made.id)
        if isinstance(found, Refused):
            raise found.error
        return found

    def _look_for_the_dead(self) -> None:
        now = time.monotonic()
        if now > self._looked + _LOOK:
            self._looked = now
            self.bury()

    def _recorder(
        self, made: Request, outcome: list[Refused | str | None]
    ) -> Callable[[Connection, Pull], list[tuple[int, str, bool]]]:
        """What records one's own request, and those that others wait for, in one transaction."""

        def run(connection: Connection, pull: Pull) -> list[tuple[int, str, bool]]:
            writer = Writer(connection, self._key)
            books = self._books.begin(connection, writer.head)
            outcome[:] = [None if _is_recorded(connection, made) else self._own(writer, books, made)]
            results: list[tuple[int, str, bool]] = []
            while len(results) < _BATCH and (waiting := pull()):
                results += [self._anothers(writer, books, *each) for each in waiting]
            writer.finish()
            books.end(writer.head)
            return results

        return run

    def _own(self, writer: Writer, books: Books, made: Request) -> Refused | str | None:
        found = record(writer, books, made)
        if isinstance(found, Refused):
            row, error = made.row, found.error
            writer.append("refusal", made.space, row[3], made.analyst, row[6], found.account, error.asked, error.left)
        return found

    def _anothers(self, writer: Writer, books: Books, slot: int, text: str, unsure: bool) -> tuple[int, str, bool]:
        """Record what another waits for, if nothing stands against it; else it finds that out by itself.

        unsure: somebody may have recorded it, and died before saying so.
        """
        request = Request.read(text)
        if unsure and _is_recorded(writer.connection, request):
            return slot, request.id, True
        try:
            return slot, request.id, record(writer, books, request) is None
        except HubbubError:
            return slot, request.id, False


_NAMES: Final = {"dataset": "data set", "analyst": "analyst", "question_key": "question key", "sql": "question"}


def _planned(events: Sequence[Event]) -> str:
    """What the questions of a plan may draw on: the sum of their costs, which may be more than the plan's own."""
    from hubbub.accounting import cost

    if not events:
        return "{}"
    costs = [cost(event) for event in events]
    return json.dumps({"parts": Total.of(sum(costs[1:], costs[0])).written})


def _is_recorded(connection: Connection, request: Request) -> bool:
    """Whether it is in the ledger."""
    return connection.execute("SELECT 1 FROM charge WHERE id = ?", (request.id,)).fetchone() is not None
