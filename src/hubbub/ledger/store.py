"""The ledger: one joint budget per unit space, limits below it, charges, and the releases they paid for.

**The filter** is that of `hubbub.ledger.accounts`. It is decided in exact rationals inside the transaction that records
the charge. So however many processes ask, and however adaptively, the releases of one unit space together keep the
promise of its ceiling. What becomes of a charge is told in `hubbub.ledger.life`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self

from hubbub.errors import PolicyError
from hubbub.ledger.accounts import write_amount
from hubbub.ledger.anchor import ANCHOR, unnamed
from hubbub.ledger.books import known_budget
from hubbub.ledger.budget import Budget
from hubbub.ledger.chain_state import ChainState
from hubbub.ledger.charge import Charge, checked_text
from hubbub.ledger.database import Database
from hubbub.ledger.handle import Handle, first_row, open_store
from hubbub.ledger.hash_chain import Connection, Writer
from hubbub.ledger.life import ChargeLifecycle
from hubbub.ledger.record import Record
from hubbub.ledger.records import Entry, State, StoredRelease
from hubbub.ledger.rules import MAX_FAILURES, MAX_FAILURES_ALL, Rules
from hubbub.ledger.spaces import recorded_space
from hubbub.ledger.standing import Balance
from hubbub.ledger.steward import Steward
from hubbub.ledger.timetable import Timetable
from hubbub.ledger.verify import Verification
from hubbub.ledger.versions import Versions
from hubbub.remedies import KeepBudget
from hubbub.spelling import space_name

__all__ = ["Charge", "Entry", "Ledger", "LedgerView", "State", "StoredRelease", "verify_beside"]


@dataclass(frozen=True)
class LedgerView:
    """What an analyst may see of a ledger: what is left, and what stands there. It neither charges nor changes.

    added: the unit spaces that got a budget when it was opened.
    """

    balance: Balance
    record: Record
    where: str
    id: str
    added: tuple[str, ...] = ()


class Ledger:
    """A ledger, in a file, in Postgres or in memory. Safe for threads and across forks; processes share it.

    Build one with `open`, `in_memory` or `inspect`. Its parts: `charges` makes and follows them, `timetable` those of
    the service; `balance` says what is left, `record` what stands there, `chain` where its chain is; `steward` and
    `versions` are for whoever keeps it.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self.balance = Balance(handle)
        self.record = Record(handle)
        self.chain = ChainState(handle)
        self.versions = Versions(handle)
        self.steward = Steward(handle)
        self.charges = ChargeLifecycle(handle, self.record, self.balance)
        self.timetable = Timetable(handle)
        self.spelling: dict[str, str] = {}  # of the unit spaces that it was opened with: how they are recorded
        self.added: tuple[str, ...] = ()  # those of them that it got a budget for when it was opened
        self.path: Final = handle.path
        self.where: Final = handle.where
        self.id: Final = handle.id

    @property
    def view(self) -> LedgerView:
        """What an analyst may see of it."""
        return LedgerView(self.balance, self.record, self.where, self.id, self.added)

    @property
    def rules(self) -> Rules:
        """What the policy says of every question."""
        return self._handle.rules

    def close(self) -> None:
        """Close it. Whatever was charged stays; what was not drawn yet is given up, and may be taken over."""
        self.charges.close()
        self._handle.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return "Ledger.in_memory()" if self.where == "in memory" else f"Ledger({self.where!r})"

    def name_anchor(self, place: Path | None) -> None:
        """Name the anchor of a ledger that is open, for the steward's `make_anchor` and for `verify`."""
        self._handle.anchor = place

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
        shared_answers: bool = True,
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
            shared_answers: whether analysts see and reuse each other's stored answers.

        Raises:
            PolicyError: the ledger is missing (and `create` is false), is older than its anchor, is none, is damaged,
                newer than this hubbub, cannot be written, needs another key, or holds another budget for one of the
                spaces.
        """
        # Whole before anybody charges: Ctrl-C amid an import may leave it locked for all other threads.
        import_module("hubbub.accounting")
        store, file = open_store(place, create=create, patience=patience, read_only=False, key=key)
        handle = Handle(
            store,
            file,
            key=key,
            anchor_at=None if anchor is None else Path(anchor),
            patience=patience,
            rules=Rules(max_failures, max_failures_all, require_purpose, shared_answers),
        )
        ledger = cls(handle)
        if anchor is not None:
            handle.check_anchor(make=create and not ledger.balance.spaces())
        elif not unanchored and handle.has_anchor():
            raise unnamed(ledger.where)
        ledger._agree(budgets, new_spaces, create, sources or {}, check)
        if anchor is not None:
            handle.note_anchor("hubbub")
        ledger.charges.mark_lost()
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
        ledger = cls(Handle(store, None, rules=Rules(max_failures, max_failures_all, require_purpose)))
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
        handle = Handle(
            store,
            file,
            key=key,
            keyless=True,
            anchor_at=None if anchor is None else Path(anchor),
            rules=Rules(max_failures, max_failures_all),
        )
        handle.check_anchor()
        return cls(handle)

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
        with self._handle.reading() as connection:
            self.spelling = {space: recorded_space(connection, space) or space for space in budgets}
            known = {space: known_budget(connection, name) for space, name in self.spelling.items()}
        if check is not None:
            check(self)
        if known == dict(budgets):
            return
        with self._handle.writing() as writer:
            any_known = writer.connection.execute("SELECT 1 FROM unit_space").fetchone() is not None
            added = []
            for space, budget in budgets.items():
                name = self.spelling[space] = recorded_space(writer.connection, space) or space
                budget_there = known_budget(writer.connection, name)
                if budget_there is None:
                    if space not in new_spaces and (any_known or not first):
                        raise PolicyError(_new_space(writer.connection, self.where, space))
                    _add_space(writer, space, budget)
                    added.append(space)
                elif budget_there != budget:
                    keeping = KeepBudget(budget_there.written)
                    raise PolicyError(
                        f"{budget!r} is declared for the unit space {space!r}, but its ledger {self.where} was created "
                        f"with {budget_there!r}. A ceiling is fixed when the ledger is created: {keeping.in_python()}",
                        remedy=keeping,
                    )
            # A session that is refused for its sources leaves no space behind that the next one would find here.
            self.versions.note_sources(writer, {at: self.spelling.get(s, s) for at, s in sources.items()})
        self.added = tuple(added)


def _add_space(writer: Writer, space: str, budget: Budget) -> None:
    if space != space_name(space):
        raise PolicyError(f"the unit space {space!r} is written {space_name(space)!r}.")
    delta = None if budget.delta is None else write_amount(budget.delta)
    share = None if budget.delta is None else write_amount(budget.delta_threshold)
    writer.append("unit_space", checked_text(space, "unit space"), write_amount(budget.epsilon), delta, share)
    if budget.training is not None:
        writer.append("training", space, *map(write_amount, budget.training))


def _new_space(connection: Connection, where: str, space: str) -> str:
    known = [repr(name) for (name,) in connection.execute("SELECT name FROM unit_space ORDER BY name").fetchall()]
    return (
        f"the unit space {space!r} is new to the ledger {where}, which holds budgets for {', '.join(known) or 'none'}. "
        f"If these are the same people by another name, declare unit_space={known[0] if known else repr(space)}. If "
        "they are others, they get a budget of their own when a steward says so: `hubbub ledger create` from a policy, "
        f"new_unit_spaces=[{space!r}] in Python. Nothing was charged."
    )


def verify_beside(
    ledger: Ledger,
    place: str | PathLike[str],
    receipt: Mapping[str, Any] | None = None,
    told: Callable[[int], None] = lambda _: None,
) -> Verification:
    """`record.verify` of an open ledger, by a handle of its own at the same place: no charge waits for it. The anchor
    is that of now, before the walk; later ones are of lines that it does not see.
    """
    at = ledger._handle.anchored()
    with type(ledger).inspect(place, key=ledger._handle.key) as other:
        return other.record.verify(receipt, heads=None if at is None else {ANCHOR: at}, told=told)
