"""The ledger: one joint budget per unit space, limits below it, charges, and the releases they paid for.

**The filter** is that of `hubbub.ledger.accounts`. It is decided in exact rationals inside the transaction that records
the charge. So however many processes ask, and however adaptively, the releases of one unit space together keep the
promise of its ceiling.

**The life of a charge** is a path through

    charged -> (retried ->) drawing -> stored -> shown
          \\-> failed         \\-> failed

each step durable before the next begins. A crash leaves its charge where it stood: budget may be wasted, an answer
never goes out uncharged. From `charged` one free retry is allowed, because nothing was drawn; from `drawing` on, none.
A charge is drawn by its last owner only, and once. That an engine failed is itself an answer: such charges stay, and
after `max_failures` of them the analyst waits for a steward.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterable, Mapping
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Final, Self

from hubbub.errors import BudgetError, InternalError, PolicyError, QueryError
from hubbub.ledger.accounts import (
    EVERYONE,
    Total,
    analyst_account,
    block_account,
    filter_of,
    largest_question,
    pure_cost,
    read_amount,
    rho_at,
    table_account,
    write_amount,
)
from hubbub.ledger.budget import Budget, decimal_text, parse_epsilon
from hubbub.ledger.database import Database
from hubbub.ledger.handle import (
    accounts_of,
    checked_text,
    first_row,
    known_budget,
    open_store,
    total_of,
)
from hubbub.ledger.journal import Connection, Value, Writer
from hubbub.ledger.limits import filters_of, moment as moment_now
from hubbub.ledger.owner import is_gone, this_process
from hubbub.ledger.records import Allowance, Entry, State, StoredRelease, entries
from hubbub.ledger.steward import Stewardship

if TYPE_CHECKING:
    from hubbub.accounting import Cost

__all__ = ["Entry", "Ledger", "State", "StoredRelease"]

_NEXT: Final[dict[str, tuple[str, ...]]] = {
    "charged": ("drawing", "failed"),
    "retried": ("drawing", "failed"),
    "drawing": ("failed",),  # and 'stored', which `store` alone may reach: it brings the answer
    "stored": ("shown",),
    "shown": (),
    "failed": (),
    "closed": (),
}

# Charges this process has under way: nobody but a thread of ours may still draw them.
_UNDER_WAY: set[str] = set()
_UNDER_WAY_LOCK = threading.Lock()


class Ledger(Stewardship):
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

    def remaining(self, space: str, *, dataset: str | None = None, analyst: str | None = None) -> Fraction:
        """The largest epsilon at which one more question with pure noise fits; exact for pure budgets.

        dataset, analyst: look at their limits too. Without them, at the joint ceiling alone.
        """
        with self._reading() as connection:
            budget = self._budget(connection, space)
            accounts = [EVERYONE]
            accounts += [] if dataset is None else [table_account(dataset)]
            accounts += [] if analyst is None else [analyst_account(analyst)]
            if dataset is None and analyst is None:
                return largest_question(filter_of(budget, budget.epsilon, total_of(connection, space, EVERYONE)))
            return min(
                largest_question(found)
                for _, found, _, _ in filters_of(connection, space, budget, accounts, None, moment_now(connection))
            )

    def admits(self, cost: Cost, *, space: str, dataset: str, analyst: str, block: str | None = None) -> bool:
        """Whether a question of this cost would be charged now, as far as budgets go."""
        with self._reading() as connection:
            budget = self._budget(connection, space)
            accounts = accounts_of("question", dataset, analyst, block)
            payer, now = _payer(block, analyst), moment_now(connection)
            return all(f.admits(cost) for _, f, _, _ in filters_of(connection, space, budget, accounts, payer, now))

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
            dataset: the name of the data set asked about.
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
        asked = parse_epsilon(epsilon)
        texts = {"data set": dataset, "analyst": analyst, "question key": question_key, "question": sql}
        for what, text in texts.items():
            checked_text(text, what)
        row = _Row(
            "question", space, dataset, analyst, question_key, sql, asked, cost or pure_cost(asked), event, details,
            policy, data_version, request, block,
        )  # fmt: skip
        return self._charge(row)

    def reserve(
        self, *, space: str, analyst: str, epsilon: Fraction, cost: Cost | None = None, plan: str | None = None
    ) -> str:
        """Set a part of the budget aside; the id of the block, which pays for the questions charged to it.

        What it does not use comes back with `close_block`. Under an approximate budget a block at `epsilon` holds
        the rho of one such release.

        cost: what a plan costs, exactly. plan: its text.

        Raises: as `charge`.
        """
        asked = parse_epsilon(epsilon)
        if cost is None:
            budget = self.budget(space)
            cost = pure_cost(asked) if budget.pure else _rho_cost(budget, asked)
        kind = "block" if plan is None else "plan"
        row = _Row(kind, space, "", analyst, "", plan or "(reserved)", asked, cost, "{}", "{}", None, None, None, None)
        return self._charge(row)

    def close_block(self, block: str) -> None:
        """Give back what a block did not use. Closing it again changes nothing.

        Raises:
            PolicyError: there is no such block.
        """
        entry = self.entry(block)
        if entry.kind not in ("block", "plan"):
            raise PolicyError(f"charge {block!r} is no reserved block.")
        with self._writing() as writer:
            if _standing(writer.connection, block)[1] == "closed":
                return
            used = total_of(writer.connection, entry.space, block_account(block))
            accounts = accounts_of("return", "", entry.analyst, None)
            totals = [(a, total_of(writer.connection, entry.space, a) + used - entry.spend) for a in accounts]
            row = _Row(
                "return", entry.space, "", entry.analyst, "", "(what the block used)", used.epsilon, used.cost, "{}",
                "{}", None, None, None, block,
            )  # fmt: skip
            row.append(writer, uuid.uuid4().hex, used, totals)
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
                _Row(
                    "reading", entry.space, entry.dataset, analyst, entry.question_key, entry.sql, entry.epsilon,
                    entry.spend.cost, entry.event, details, entry.policy, entry.data_version, None, None,
                )
            )  # fmt: skip

    def _charge(self, row: _Row) -> str:
        charge_id = uuid.uuid4().hex
        if row.kind == "question":
            with _UNDER_WAY_LOCK:
                _UNDER_WAY.add(charge_id)
        try:
            with self._writing() as writer:
                refused = self._try(writer, row, charge_id)
        except BaseException:
            self.let_go(charge_id)
            raise
        if refused is not None:
            self.let_go(charge_id)
            raise refused
        return charge_id

    def _try(self, writer: Writer, row: _Row, charge_id: str) -> BudgetError | None:
        """Record the charge if every account admits it; else the refusal, which is recorded too."""
        connection = writer.connection
        budget = self._budget(connection, row.space)
        self._check_lock(connection, row)
        if row.request is not None:
            _check_request(connection, row)
        accounts = accounts_of(row.kind, row.dataset, row.analyst, row.block)
        spend = Total.of(row.cost)
        totals = []
        for account, found, allowance, paid in filters_of(
            connection, row.space, budget, accounts, _payer(row.block, row.analyst), writer.time
        ):
            if not found.admits(row.cost):
                left = largest_question(found)
                writer.append(
                    "refusal", row.space, row.dataset, row.analyst, row.sql, account, decimal_text(row.epsilon),
                    decimal_text(left),
                )  # fmt: skip
                return _overrun(row, account, left, budget, allowance, writer.time)
            totals.append((account, paid + spend))
        row.append(writer, charge_id, spend, totals)
        return None

    def _check_lock(self, connection: Connection, row: _Row) -> None:
        if row.kind == "reading":
            return
        failures = connection.execute(
            # The failures first, which are few: SQLite keeps the order of a CROSS JOIN.
            "SELECT count(*) FROM step CROSS JOIN charge WHERE step.state = 'failed' AND charge.serial = step.charge "
            "AND charge.unit_space = ? AND charge.analyst = ? AND step.serial > "
            "(SELECT coalesce(max(serial), 0) FROM clearance WHERE unit_space = ? AND analyst = ?)",
            (row.space, row.analyst, row.space, row.analyst),
        ).fetchone()[0]
        if failures >= self._max_failures:
            raise PolicyError(
                f"{failures} questions of the analyst {row.analyst!r} failed in the engine, and {self._max_failures} "
                "are allowed, because that something fails may tell about the data. Stored answers stay readable. A "
                "steward looks at the incidents (`hubbub history`) and clears this: "
                f"`hubbub ledger unlock {row.analyst}`."
            )

    def resume(
        self,
        *,
        space: str,
        question_key: str,
        analyst: str,
        epsilon: Fraction,
        block: str | None = None,
        charge: str | None = None,
    ) -> str | None:
        """Take over a charge of this very question whose process died before it drew: its one free retry.

        charge: this one and no other.

        Returns the charge, which this process now owns, or None where there is none to take over.
        """

        def wanted(connection: Connection) -> Entry | None:
            found = _abandoned(connection, space, question_key, analyst, epsilon)
            return next((e for e in found if e.block == block and charge in (None, e.id)), None)

        with self._reading() as connection:
            if wanted(connection) is None:
                return None
        with self._writing() as writer:
            entry = wanted(writer.connection)
            if entry is None:
                return None
            writer.append("step", entry.serial, "retried", None, this_process())
        with _UNDER_WAY_LOCK:
            _UNDER_WAY.add(entry.id)
        return entry.id

    def let_go(self, charge_id: str) -> None:
        """This process gives a charge up, or has finished it: it may be taken over if it still stands at 'charged'."""
        with _UNDER_WAY_LOCK:
            _UNDER_WAY.discard(charge_id)

    def requested(self, *, space: str, analyst: str, request: str) -> Entry | None:
        """The charge that an idempotency key stands for, if it was used."""
        with self._reading() as connection:
            found = entries(connection, "WHERE unit_space = ? AND analyst = ? AND request = ?", space, analyst, request)
        return found[0] if found else None

    def advance(self, charge_id: str, state: State, *, incident: str | None = None) -> None:
        """Record the next step of a charge's life, durably. Being shown once more is no step.

        Args:
            charge_id: the charge.
            state: 'drawing', 'shown' or 'failed'; an answer is stored with `store`.
            incident: with 'failed', the id under which the engine's own words were kept.

        Raises:
            InternalError: there is no such charge, or it cannot go there from where it is.
            PolicyError: the ledger cannot record it, or another process has taken the charge over.
        """
        if state == "shown":
            with self._reading() as connection:
                if _standing(connection, charge_id)[1] == "shown":
                    return
        with self._writing() as writer:
            serial, standing, owner = _standing(writer.connection, charge_id)
            if standing == state == "shown":
                return
            if state not in _NEXT[standing]:
                raise InternalError(f"charge {charge_id} is '{standing}' and cannot become '{state}'")
            if standing in ("charged", "retried") and owner not in (None, this_process()):
                raise PolicyError(
                    "another process has taken this question over, because this one looked dead. Nothing was drawn "
                    "here; ask again: its answer is free."
                )
            writer.append("step", serial, state, incident, None)
        if state != "shown":
            self.let_go(charge_id)

    def store(self, charge_id: str, payload: str) -> None:
        """Keep the answer that charge `charge_id` paid for: from here on it is a release, and free to read.

        Raises:
            InternalError: there is no such charge, or it is not 'drawing'.
            PolicyError: the ledger cannot record it; the answer must not be shown.
        """
        with self._writing() as writer:
            serial, standing, _ = _standing(writer.connection, charge_id)
            if standing != "drawing":
                raise InternalError(f"charge {charge_id} is '{standing}'; an answer is stored only while drawing")
            writer.append("release", serial, checked_text(payload, "release"))
            writer.append("step", serial, "stored", None, None)

    def find_release(self, *, space: str, question_key: str, at_least: Fraction) -> StoredRelease | None:
        """The stored answer to this question that cost most, if any cost `at_least` or more."""
        with self._reading() as connection:
            found = connection.execute(
                "SELECT id, epsilon FROM charge JOIN release ON release.charge = charge.serial "
                "WHERE unit_space = ? AND question_key = ?",
                (space, question_key),
            ).fetchall()
        dearest = max(((read_amount(epsilon), charge_id) for charge_id, epsilon in found), default=None)
        return self.release(dearest[1]) if dearest and dearest[0] >= at_least else None

    def release(self, charge_id: str) -> StoredRelease | None:
        """The answer that `charge_id` paid for; None if it never got that far.

        Raises:
            PolicyError: there is no such charge.
        """
        entry = self.entry(charge_id)
        with self._reading() as connection:
            row = connection.execute("SELECT payload FROM release WHERE charge = ?", (entry.serial,)).fetchone()
        return StoredRelease(entry, row[0]) if row else None

    def history(self, space: str | None = None, *, since: str | None = None, analyst: str | None = None) -> list[Entry]:
        """Every charge, oldest first; of one unit space or analyst, or from a time on, if named."""
        wanted = {"unit_space = ?": space, "journal.time >= ?": since, "analyst = ?": analyst}
        given = {text: value for text, value in wanted.items() if value is not None}
        where = f"WHERE {' AND '.join(given)}" if given else ""
        with self._reading() as connection:
            return entries(connection, where, *given.values())


class _Row:
    """A charge that is to be recorded."""

    def __init__(
        self, kind: str, space: str, dataset: str, analyst: str, question_key: str, sql: str, epsilon: Fraction,
        cost: Cost, event: str, details: str, policy: str | None, data_version: str | None, request: str | None,
        block: str | None,
    ) -> None:  # fmt: skip
        self.kind, self.space, self.dataset, self.analyst = kind, space, dataset, analyst
        self.question_key, self.sql, self.epsilon, self.cost = question_key, sql, epsilon, cost
        self.request, self.block = request, block
        self._rest = (event, details, policy, data_version, request, block)

    def append(self, writer: Writer, charge_id: str, spend: Total, totals: Iterable[tuple[str, Total]]) -> None:
        postings: list[tuple[Value, ...]] = [(self.space, account, *_written(total)) for account, total in totals]
        owner = this_process() if self.kind == "question" else None
        writer.append(
            "charge", charge_id, self.kind, self.space, self.dataset, self.analyst, self.question_key, self.sql,
            write_amount(self.epsilon), *_written(spend), *self._rest, owner, postings=postings,
        )  # fmt: skip


def _written(total: Total) -> tuple[str, str, str, int]:
    return write_amount(total.epsilon), write_amount(total.rho), write_amount(total.delta), total.impure


def _rho_cost(budget: Budget, epsilon: Fraction) -> Cost:
    from hubbub.accounting import Cost

    return Cost(None, rho_at(budget, epsilon))


def _check_request(connection: Connection, row: _Row) -> None:
    used = connection.execute(
        "SELECT id FROM charge WHERE unit_space = ? AND analyst = ? AND request = ?",
        (row.space, row.analyst, row.request),
    ).fetchone()
    if used is not None:
        raise QueryError(
            f"the idempotency key {row.request!r} was used for charge {used[0]}. Ask for that request's answer with "
            "it, or use a new key."
        )


def _abandoned(connection: Connection, space: str, question_key: str, analyst: str, epsilon: Fraction) -> list[Entry]:
    """The charges of a question that nothing was drawn for, whose process is gone, and that were not retried yet."""
    found = entries(
        connection,
        "WHERE unit_space = ? AND question_key = ? AND analyst = ? AND epsilon = ? AND charge.kind = 'question' "
        "AND step.state IS NULL",
        space,
        question_key,
        analyst,
        write_amount(epsilon),
    )
    moment = moment_now(connection)
    return [entry for entry in found if _is_abandoned(connection, entry, moment)]


def _is_abandoned(connection: Connection, entry: Entry, moment: str) -> bool:
    with _UNDER_WAY_LOCK:
        if entry.id in _UNDER_WAY:
            return False
    owner = connection.execute("SELECT owner FROM charge WHERE serial = ?", (entry.serial,)).fetchone()[0]
    return owner is not None and (owner == this_process() or is_gone(owner, entry.time, moment))


def _standing(connection: Connection, charge_id: str) -> tuple[int, str, str | None]:
    """A charge's number, its state, and the process that owns it."""
    row = connection.execute("SELECT serial, owner FROM charge WHERE id = ?", (charge_id,)).fetchone()
    if row is None:
        raise InternalError(f"there is no charge {charge_id!r} in the ledger")
    last = connection.execute(
        "SELECT state, owner FROM step WHERE charge = ? ORDER BY serial DESC LIMIT 1", (row[0],)
    ).fetchone()
    return (int(row[0]), "charged", row[1]) if last is None else (int(row[0]), str(last[0]), last[1])


def _overrun(
    row: _Row, account: str, left: Fraction, budget: Budget, allowance: Allowance | None, moment: str
) -> BudgetError:
    asked, rest = decimal_text(row.epsilon), decimal_text(left)
    what = {"question": "the question", "reading": "reading this answer", "block": "the block", "plan": "the plan"}
    start = f"{what[row.kind]} asks for epsilon {asked}, and"
    kind, _, name = account.partition(":")
    whom = {
        "table": f"the table {name!r}",
        "analyst": f"the analyst {name!r}",
        "block": "the reserved block",
        EVERYONE: f"the unit space {row.space!r}",
    }[kind]
    whole = decimal_text(budget.epsilon if allowance is None or allowance.epsilon is None else allowance.epsilon)
    if allowance is not None and allowance.over(moment):
        ended = "was revoked" if allowance.epsilon is None else f"expired at {allowance.expires}"
        message = f"{start} what {whom} was granted {ended}. Ask the steward for a grant"
    else:
        of = "" if kind == "block" else f" of {whole}"
        way_out = f"Ask with epsilon {rest} or less" if left else "The budget is spent: no new question fits"
        message = f"{start} {rest}{of} is left for {whom}. {way_out}"
    return BudgetError(f"{message}; what was released before can be read again for free.", asked=asked, left=rest)


def _payer(block: str | None, analyst: str) -> tuple[str, str] | None:
    return None if block is None else (block, analyst)
