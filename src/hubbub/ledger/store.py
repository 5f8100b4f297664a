"""The ledger: one joint budget per unit space, limits below it, charges, and the releases they paid for.

**The filter** is that of `hubbub.ledger.accounts`. It is decided in exact rationals inside the transaction that records
the charge. So however many processes ask, and however adaptively, the releases of one unit space together keep the
promise of its ceiling. What becomes of a charge is told in `hubbub.ledger.life`.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

from hubbub.errors import BudgetError, HubbubError, InternalError, PolicyError, QueryError
from hubbub.ledger.accounts import (
    Total,
    block_account,
    pure_cost,
    write_amount,
)
from hubbub.ledger.anchor import unnamed
from hubbub.ledger.books import AccountState, known_budget, total_of
from hubbub.ledger.budget import Budget, parse_epsilon
from hubbub.ledger.charging import MAX_FAILURES, MAX_FAILURES_ALL, Busy, Refused, Request, accounts_of, record
from hubbub.ledger.database import Database
from hubbub.ledger.handle import checked_analyst, checked_purpose, checked_text, first_row, open_store
from hubbub.ledger.hash_chain import Connection, Writer
from hubbub.ledger.life import ChargeLifecycle
from hubbub.ledger.records import Entry, State, StoredRelease, entries
from hubbub.ledger.spaces import recorded_space
from hubbub.ledger.standing import Balance
from hubbub.spelling import space_name

if TYPE_CHECKING:
    from hubbub.accounting import Cost, Event

__all__ = ["Entry", "Ledger", "State", "StoredRelease"]

_REFUSALS: Final = 200  # of one analyst and day that are kept; the rest are refused all the same
_FAR: Final = 20_000  # so many lines back they are counted
_SHOWN: Final = 1500  # characters of a refused question that are kept
_LOOK: Final = 10.0  # seconds between two looks for processes that died


class Ledger(ChargeLifecycle, Balance):
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
        new_spaces: Collection[str] = (),
        sources: Mapping[tuple[str, str], str] | None = None,
        check: Callable[[Ledger], None] | None = None,
        patience: float = 30.0,
        key: bytes | None = None,
        max_failures: int = MAX_FAILURES,
        max_failures_all: int = MAX_FAILURES_ALL,
        anchor: str | PathLike[str] | None = None,
        unanchored: bool = False,
        require_purpose: bool = False,
    ) -> Self:
        """Open the ledger for spending.

        Args:
            place: the ledger file, or a Postgres address (`postgresql://...`).
            budgets: unit space -> its budget. A ledger that has none yet gets these, if `create` is true.
            create: make a missing ledger; safe when several processes do so at once.
            new_spaces: those that a ledger which has others already gets a budget for. Any other space that is new to
                it is refused: it may be the same people's by another name, and a second budget for them.
            sources: (place, unit) -> unit space, as in `remember_sources`; noted with spaces that are new, or, where
                one stands in another space, neither.
            check: what raises where the ledger is not the caller's, before anything is written.
            patience: seconds to wait for other writers before giving up.
            key: the secret of the hash chain; must be the one the ledger was created with.
            max_failures: after this many engine failures an analyst waits for a steward.
            max_failures_all: after this many in one unit space, everybody does.
            anchor: a file outside the ledger that its head is kept in, after each commit, so that an older copy put
                back in its place is found (`hubbub.ledger.anchor`). One that is missing is made for a new ledger alone.
                A ledger that has one is not opened without it.
            unanchored: all the same, to mend the anchor itself.
            require_purpose: refuse a question without one, before its charge.

        Raises:
            PolicyError: the ledger is missing (and `create` is false), is older than its anchor, is none, is damaged,
                newer than this hubbub, cannot be written, needs another key, or holds another budget for one of the
                spaces.
        """
        store, file = open_store(place, create=create, patience=patience, read_only=False, key=key)
        ledger = cls(
            store,
            file,
            key=key,
            max_failures=max_failures,
            max_failures_all=max_failures_all,
            anchor_at=None if anchor is None else Path(anchor),
            patience=patience,
            require_purpose=require_purpose,
        )
        if anchor is not None:
            ledger.check_anchor(make=create and not ledger.spaces())
        elif not unanchored and ledger._has_anchor():
            raise unnamed(ledger.where)
        ledger._agree(budgets, new_spaces, create, sources or {}, check)
        if anchor is not None:
            ledger._note_anchor("hubbub")
        ledger.bury()
        return ledger

    @classmethod
    def in_memory(
        cls,
        budgets: Mapping[str, Budget],
        *,
        max_failures: int = MAX_FAILURES,
        max_failures_all: int = MAX_FAILURES_ALL,
        require_purpose: bool = False,
    ) -> Self:
        """A ledger that this process alone sees, and that ends with it."""
        store = Database(None, fill=lambda c: first_row(c, None))
        ledger = cls(
            store, None, max_failures=max_failures, max_failures_all=max_failures_all, require_purpose=require_purpose
        )
        ledger._agree(budgets, (), True)
        return ledger

    @classmethod
    def inspect(
        cls,
        place: str | PathLike[str],
        *,
        key: bytes | None = None,
        max_failures: int = MAX_FAILURES,
        max_failures_all: int = MAX_FAILURES_ALL,
        anchor: str | PathLike[str] | None = None,
    ) -> Self:
        """Open an existing ledger for reading only. A keyed ledger may be read without its key.

        anchor: where it has one; the ledger must hold what it names.

        Raises:
            PolicyError: as `open`.
        """
        store, file = open_store(place, create=False, patience=30.0, read_only=True, key=key)
        ledger = cls(
            store,
            file,
            key=key,
            keyless=True,
            max_failures=max_failures,
            max_failures_all=max_failures_all,
            anchor_at=None if anchor is None else Path(anchor),
        )
        ledger.check_anchor()
        return ledger

    @classmethod
    def manage(
        cls,
        place: str | PathLike[str],
        *,
        key: bytes | None = None,
        anchor: str | PathLike[str] | None = None,
        unanchored: bool = False,
    ) -> Self:
        """Open an existing ledger for a steward's entries: grants, refreshes, clearances. Adds no unit space.

        unanchored: without the anchor that it has, to mend that.

        Raises:
            PolicyError: as `open`.
        """
        return cls.open(place, budgets={}, create=False, key=key, anchor=anchor, unanchored=unanchored)

    def _agree(
        self,
        budgets: Mapping[str, Budget],
        new_spaces: Collection[str],
        first: bool,
        sources: Mapping[tuple[str, str], str] = MappingProxyType({}),
        check: Callable[[Ledger], None] | None = None,
    ) -> None:
        """See that every unit space has its budget, or give it one where that is wanted.

        first: a ledger that holds none yet gets all of them.
        """
        with self._reading() as connection:
            self.spelling = {space: recorded_space(connection, space) or space for space in budgets}
            known = {space: known_budget(connection, name) for space, name in self.spelling.items()}
        if check is not None:
            check(self)
        if known == dict(budgets):
            return
        with self._writing() as writer:
            any_known = writer.connection.execute("SELECT 1 FROM unit_space").fetchone() is not None
            added = []
            for space, budget in budgets.items():
                name = self.spelling[space] = recorded_space(writer.connection, space) or space
                found = known_budget(writer.connection, name)
                if found is None:
                    if space not in new_spaces and (any_known or not first):
                        raise PolicyError(_new_space(writer.connection, self.where, space))
                    _add_space(writer, space, budget)
                    added.append(space)
                elif found != budget:
                    raise PolicyError(
                        f"this session declares {budget!r} for the unit space {space!r}, but its ledger "
                        f"{self.where} was created with {found!r}. A ceiling is "
                        f"fixed when the ledger is created: ask with {found!r}."
                    )
            # A session that is refused for its sources leaves no space behind that the next one would find here.
            self._note_sources(writer, {at: self.spelling.get(s, s) for at, s in sources.items()})
        self.added = tuple(added)

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
        purpose: str | None = None,
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
            purpose: what it is asked for, at most 200 characters; shown wherever the charge is.

        Raises:
            BudgetError: it does not fit. Nothing was charged; the refusal is recorded.
            ParameterError: epsilon is not a positive rational. Nothing was charged.
            QueryError: the idempotency key was used before; or the ledger wants a purpose, and none was given.
            PolicyError: the ledger cannot record it, or the analyst is locked. No answer may follow.
        """
        made = self._question(
            space=space, dataset=dataset, analyst=analyst, question_key=question_key, sql=sql, epsilon=epsilon,
            event=event, details=details, cost=cost, policy=policy, data_version=data_version,
            request=request, block=block, purpose=purpose,
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
        purpose: str | None = None,
    ) -> tuple[str, bool]:
        """As `charge`, unless this very question, by its key, at no less epsilon, is answered or under way.

        Two that ask the same at once thus pay once. Returns the charge, and whether it is new: if not, it is another's,
        whose answer `await_release` brings.

        Raises: as `charge`.
        """
        made = self._question(
            space=space, dataset=dataset, analyst=analyst, question_key=question_key, sql=sql, epsilon=epsilon,
            event=event, details=details, cost=cost, policy=policy, data_version=data_version,
            request=request, block=block, purpose=purpose,
            once=True,
        )  # fmt: skip
        known = self._charge(made)
        return (made.id, True) if known is None else (known, False)

    @property
    def _allowed(self) -> dict[str, Any]:
        return {"max_failures": self._max_failures, "max_failures_all": self._max_failures_all}

    def _question(self, *, epsilon: Fraction, cost: Cost | None, **columns: Any) -> Request:
        asked = parse_epsilon(epsilon)
        for name in ("dataset", "question_key", "sql"):
            checked_text(columns[name], _NAMES[name])
        checked_analyst(columns["analyst"])
        self._check_purpose(columns["purpose"])
        return Request.of("question", epsilon=asked, cost=cost or pure_cost(asked), **self._allowed, **columns)

    def _check_purpose(self, purpose: str | None) -> str | None:
        if self._require_purpose and purpose is None:
            raise QueryError(
                "the policy wants to know what a question is asked for (`require_purpose`): say it in a few words, "
                "purpose= in Python, --purpose on the command line. Nothing was charged."
            )
        return checked_purpose(purpose)

    def reserve(
        self,
        *,
        space: str,
        analyst: str,
        epsilon: Fraction,
        cost: Cost | None = None,
        plan: str | None = None,
        events: Sequence[Event] = (),
        purpose: str | None = None,
    ) -> str:
        """Set a part of the budget aside; the id of the block, which pays for the questions charged to it.

        What it does not use comes back with `close_block`. Under an approximate budget a block at `epsilon` holds
        the rho of one such release.

        cost: what a plan costs, exactly. plan: its text. events: what the plan will run, each question's, instead of
        `cost`: the plan is then charged at the smaller of the sum of their rhos and the plan's own
        (`hubbub.accounting.plans`), and its questions draw on the sum. purpose: as of a question.

        Raises: as `charge`.
        """
        from hubbub.accounting.plans import plan_cost

        asked = parse_epsilon(epsilon)
        made = Request.of(
            "block" if plan is None else "plan",
            space=space,
            analyst=checked_analyst(analyst),
            epsilon=asked,
            cost=cost or (plan_cost(events) if events else self.question(space, asked)),
            sql="(reserved)" if plan is None else checked_text(plan, "plan"),
            details=_planned(events),
            purpose=self._check_purpose(purpose),
            **self._allowed,
        )
        try:
            self._charge(made)
        except BudgetError:
            raise
        except BaseException as error:  # Ctrl-C may come at the end of the transaction, which stands then
            self._doubtful.add(made.id)
            if not isinstance(error, HubbubError):
                self._settle()
            raise
        return made.id

    def _give_up(self, charge_id: str) -> None:
        """As of a question, so of a block: nobody was told of it, so it gives its budget back."""
        super()._give_up(charge_id)
        if any(block.id == charge_id for block in self.open_blocks()):
            self.close_block(charge_id)

    def close_block(self, block: str) -> None:
        """Give back what a block did not use. Closing it again changes nothing.

        Raises:
            PolicyError: there is no such block.
        """
        entry = self.entry(block)
        if entry.kind not in ("block", "plan"):
            raise PolicyError(f"charge {block!r} is not a reserved block.")
        try:
            self._close(entry)
        except BaseException:  # Ctrl-C, say: it is closed with the next charge, or with the ledger
            self._doubtful.add(block)
            raise

    def _close(self, entry: Entry) -> None:
        block = entry.id
        with self._writing() as writer:
            (now,) = entries(writer.connection, "WHERE charge.id = ?", block)
            if now.state == "closed":
                return
            used = total_of(writer.connection, entry.space, block_account(block)).within(entry.spend)
            back = Request.of(
                "return", space=entry.space, analyst=entry.analyst, epsilon=used.epsilon, cost=used,
                sql="(what the block used)", block=block, **self._allowed,
            )  # fmt: skip
            accounts = accounts_of("return", "", entry.analyst, None)
            totals = [(a, total_of(writer.connection, entry.space, a) + used - entry.spend) for a in accounts]
            writer.append_charge(back.row, [(entry.space, account, *total.written) for account, total in totals])
            writer.append("step", entry.serial, "closed", None, None)

    def give_back(self, charge_id: str, *, used: Cost) -> None:
        """Give back what a question that is being drawn will not use: of what it was charged, `used` stays.

        Whoever calls this vouches that nothing else is drawn for the charge, whatever comes.

        Raises:
            InternalError: the charge is not a question that is being drawn, or gave something back before, or `used` is
                more than was charged.
        """
        spent = Total.of(used)
        shown = _as_epsilon(spent, self.budget(self.entry(charge_id).space))
        with self._writing() as writer:
            found = entries(writer.connection, "WHERE charge.id = ?", charge_id)
            if not found or found[0].kind != "question" or found[0].state != "drawing":
                raise InternalError(f"charge {charge_id} is not being drawn and gives nothing back")
            (entry,) = found
            if entries(writer.connection, "WHERE charge.kind = 'return' AND charge.block = ?", charge_id):
                raise InternalError(f"charge {charge_id} gave back what it did not use")
            if not spent.is_within(entry.spend):
                raise InternalError(f"charge {charge_id} used more than was charged")
            back = Request.of(
                "return", space=entry.space, dataset=entry.dataset, analyst=entry.analyst, epsilon=shown, cost=spent,
                sql="(what the charge used)", block=charge_id, **self._allowed,
            )  # fmt: skip
            accounts = accounts_of("question", entry.dataset, entry.analyst, entry.block)
            totals = [(a, total_of(writer.connection, entry.space, a) + spent - entry.spend) for a in accounts]
            writer.append_charge(back.row, [(entry.space, account, *total.written) for account, total in totals])

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
        checked_analyst(analyst)
        details = json.dumps({"release": entry.id})
        with self._reading() as connection:
            known = connection.execute(
                "SELECT 1 FROM charge WHERE unit_space = ? AND question_key = ? AND kind = 'reading' AND analyst = ? "
                "AND details = ?",
                (entry.space, entry.question_key, analyst, details),
            ).fetchone()
            back = entries(connection, "WHERE charge.kind = 'return' AND charge.block = ?", entry.id)
        paid = back[0] if back else entry  # of a question that stopped early, what it used
        if known is None:
            self._charge(
                Request.of(
                    "reading", space=entry.space, dataset=entry.dataset, analyst=analyst, sql=entry.sql,
                    question_key=entry.question_key, epsilon=paid.epsilon, cost=paid.spend.cost, event=entry.event,
                    details=details, policy=entry.policy, data_version=entry.data_version, **self._allowed,
                )
            )  # fmt: skip

    def _charge(self, made: Request) -> str | None:
        """Record a request, durably; the charge of another that makes it needless."""
        self._settle()
        if made.kind == "question":
            self._take_up(made.id)
            self._look_for_the_dead()
        deadline, pause = time.monotonic() + self._patience, 0.005
        try:
            while isinstance(found := self._recorded(made), Busy):
                pause = self._wait_for_others(found, deadline, pause)
        except BaseException:
            self.let_go(made.id, unsure=made.id in self._doubtful)
            raise
        if found is not None:
            self._put_down(made.id)
        if isinstance(found, Refused):
            raise found.error
        return found

    def _recorded(self, made: Request) -> Refused | Busy | str | None:
        """One transaction that records a request, or finds what stands against it."""
        try:
            with self._writing() as writer:
                books = self._books.begin(writer.connection, writer.head)
                self._under_way.look(writer.connection)
                found = self._own(writer, books, made)
                books.end(writer.head)
            return found
        except PolicyError:
            if not self._database.unsure:
                raise
            self._doubtful.add(made.id)
            if not self._holds(made.id):
                raise
            self._doubtful.discard(made.id)
            return None

    def _holds(self, charge_id: str) -> bool:
        """Whether a charge is found after the answer to its COMMIT was lost, on a new connection."""
        with suppress(HubbubError), self._reading() as connection:
            return connection.execute("SELECT 1 FROM charge WHERE id = ?", (charge_id,)).fetchone() is not None
        return False

    def _look_for_the_dead(self) -> None:
        now = time.monotonic()
        if now > self._looked + _LOOK:
            self._looked = now
            self.bury()

    def _own(self, writer: Writer, books: AccountState, made: Request) -> Refused | Busy | str | None:
        found = record(writer, books, made, self._under_way)
        if isinstance(found, Refused):
            row, error = made.row, found.error
            since = f"{writer.time[:10]}T"
            (count,) = writer.connection.execute(
                "SELECT count(*) FROM refusal JOIN journal ON journal.serial = refusal.serial WHERE "
                "refusal.unit_space = ? AND refusal.analyst = ? AND journal.time >= ? AND refusal.serial > ?",
                (made.space, made.analyst, since, max(0, writer.head.serial - _FAR)),
            ).fetchone()
            if count < _REFUSALS:
                said = [_short(str(text), _SHOWN) for text in (row[3], row[6])]
                writer.append(
                    "refusal", made.space, said[0], made.analyst, said[1], found.account, error.asked, error.left
                )
        return found


_NAMES: Final = {"dataset": "data set", "question_key": "question key", "sql": "question"}


def _as_epsilon(spent: Total, budget: Budget) -> Fraction:
    """An amount as people see it: under a budget with delta, the epsilon of one release at that rho."""
    from hubbub.accounting import epsilon_of_rho

    return spent.epsilon if not spent.impure else epsilon_of_rho(spent.rho, budget.delta_conversion)


def _add_space(writer: Writer, space: str, budget: Budget) -> None:
    if space != space_name(space):
        raise PolicyError(f"the unit space {space!r} is written {space_name(space)!r}.")
    delta = None if budget.delta is None else write_amount(budget.delta)
    share = None if budget.delta is None else write_amount(budget.delta_threshold)
    writer.append("unit_space", checked_text(space, "unit space"), write_amount(budget.epsilon), delta, share)


def _new_space(connection: Connection, where: str, space: str) -> str:
    known = [repr(name) for (name,) in connection.execute("SELECT name FROM unit_space ORDER BY name").fetchall()]
    return (
        f"the unit space {space!r} is new to the ledger {where}, which holds budgets for {', '.join(known) or 'none'}. "
        f"If these are the same people by another name, declare unit_space={known[0] if known else repr(space)}. If "
        "they are others, they get a budget of their own when a steward says so: `hubbub ledger create` from a policy, "
        f"new_unit_spaces=[{space!r}] in Python. Nothing was charged."
    )


def _short(text: str, most: int) -> str:
    """A text, or its beginning with the SHA-256 of the whole."""
    if len(text) <= most:
        return text
    return f"{text[:most]}... ({len(text)} characters, SHA-256 {hashlib.sha256(text.encode()).hexdigest()})"


def _planned(events: Sequence[Event]) -> str:
    """What the questions of a plan may draw on: the sum of their costs, which may be more than the plan's own."""
    from hubbub.accounting import cost

    if not events:
        return "{}"
    costs = [cost(event) for event in events]
    return json.dumps({"parts": Total.of(sum(costs[1:], costs[0])).written})
