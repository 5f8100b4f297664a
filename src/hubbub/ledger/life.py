"""The life of a charge after it was made: who may draw it, what became of it, and the answer that it paid for.

    charged -> drawing -> stored -> shown
    charged -> failed                          the engine could not finish: an answer too, so it counts
    charged, drawing -> withdrawn              its own process gave it up
    charged, drawing -> lost                   its process died: it counts like a failure
    charged, withdrawn, lost -> retried -> ... once, and then as from charged; never once it was drawing
    drawing -> failed

Each step is durable before the next begins. A crash leaves its charge where it stood: budget may be wasted, an answer
never goes out uncharged. From `charged` one free retry is allowed, because nothing was drawn; from `drawing` on, none.
A charge is drawn by its last owner only, and once.

That an engine failed, or brought its process down for want of memory, may tell about the data. Such charges stay, and
after `max_failures` of them the analyst waits for a steward; after `max_failures_all` in a unit space, everybody. What
is under way then gets no answer either: it is withdrawn, and nobody is told whether it failed. So no more failures are
told than may be, however many questions are asked together. A death tells itself, by the end of its process: so no more
questions of an analyst are under way in several processes than he may still see fail (`hubbub.ledger.under_way`). And
every death is recorded, once: a charge is dead if its last step leaves it open and its owner is gone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hubbub.errors import BudgetError, HubbubError, InternalError, PolicyError
from hubbub.ledger import incidents, records
from hubbub.ledger.accounts import Total, write_amount
from hubbub.ledger.blocks import end_block, note_refusal, planned, return_unused
from hubbub.ledger.books import AccountState, moment
from hubbub.ledger.budget import parse_epsilon
from hubbub.ledger.charge import Charge, checked_analyst, checked_text
from hubbub.ledger.charging import Busy, Refused, Request, check_failures, check_purpose, check_under_way, record
from hubbub.ledger.fair_queue import FairLock
from hubbub.ledger.handle import Handle
from hubbub.ledger.hash_chain import Connection, Writer
from hubbub.ledger.process import is_gone, this_process
from hubbub.ledger.readings import reading
from hubbub.ledger.record import Record
from hubbub.ledger.records import OPEN, UNDRAWN, Entry, State, StoredRelease, entries_to, paid_for, standing_of
from hubbub.ledger.standing import Balance
from hubbub.ledger.under_way import UnderWay, dead

if TYPE_CHECKING:
    from hubbub.accounting import Cost, Event

__all__ = ["ChargeLifecycle"]

_NEXT: Final[dict[str, tuple[str, ...]]] = {
    "charged": ("drawing", "failed"),
    "retried": ("drawing", "failed"),
    "drawing": ("failed",),  # and 'stored', which `store` alone may reach: it brings the answer
    "stored": ("shown",),
}
_LOOK: Final = 10.0  # seconds between two looks for processes that died

# Charges this process has under way: nobody but a thread of ours may still draw them. Each change of it is one step of
# Python's, so it needs no lock, which an interrupt could leave held.
_UNDER_WAY: set[str] = set()


class ChargeLifecycle:
    """How charges are made, and what happens to them."""

    def __init__(self, handle: Handle, record: Record, balance: Balance) -> None:
        self._handle, self._record, self._balance = handle, record, balance
        self._books = AccountState()
        self._taken: set[str] = set()  # the charges that were made here and are not drawn yet
        self._doubtful: set[str] = set()  # given up, and perhaps recorded before an error came
        self._under_way = UnderWay()
        self._looked = 0.0  # when dead processes were last looked for
        self._mine = threading.local()  # `owned`: what this thread took up
        self._sharing = FairLock()  # two threads that read one answer at once pay once

    def charge(self, charge: Charge) -> str:
        """Charge a question; on the disk before this returns the charge's id.

        Raises:
            BudgetError: it does not fit. Nothing was charged; the refusal is recorded.
            QueryError: the idempotency key was used before; or the ledger wants a purpose, and none was given.
            PolicyError: the ledger cannot record it, or the analyst is locked. No answer may follow.
        """
        made = self._request(charge)
        self._charge(made)
        return made.id

    def charge_once(self, charge: Charge) -> tuple[str, bool]:
        """As `charge`, unless this very question, by its key, at no less epsilon, is answered or under way.

        Two that ask the same at once thus pay once. Returns the charge, and whether it is new: if not, it is another's,
        whose answer `Record.await_release` brings.

        Raises: as `charge`.
        """
        made = self._request(charge, once=True)
        known = self._charge(made)
        return (made.id, True) if known is None else (known, False)

    def _request(self, charge: Charge, *, once: bool = False) -> Request:
        check_purpose(charge, self._handle.rules)
        return Request.of(charge, self._handle.rules, once=once)

    def _charge(self, made: Request) -> str | None:
        """Record a request, durably; the charge of another that makes it needless."""
        self._settle()
        if made.charge.kind == "question":
            self._take_up(made.id)
            self._look_for_the_dead()
        deadline, pause = time.monotonic() + self._handle.patience, 0.005
        try:
            while isinstance(recorded := self._recorded(made), Busy):
                pause = self._wait_for_others(recorded, deadline, pause)
        except BaseException:
            self.let_go(made.id, unsure=made.id in self._doubtful)
            raise
        if recorded is not None:
            self._put_down(made.id)
        if isinstance(recorded, Refused):
            raise recorded.error
        return recorded

    def _recorded(self, made: Request) -> Refused | Busy | str | None:
        """One transaction that records a request, or finds what stands against it."""
        try:
            with self._handle.writing() as writer:
                books = self._books.begin(writer.connection, writer.head)
                self._under_way.look(writer.connection)
                own = self._own(writer, books, made)
                books.end(writer.head)
            return own
        except PolicyError:
            if not self._handle.store.unsure:
                raise
            self._doubtful.add(made.id)
            if not self._holds(made.id):
                raise
            self._doubtful.discard(made.id)
            return None

    def _holds(self, charge_id: str) -> bool:
        """Whether a charge is found after the answer to its COMMIT was lost, on a new connection."""
        with suppress(HubbubError), self._handle.reading() as connection:
            return connection.execute("SELECT 1 FROM charge WHERE id = ?", (charge_id,)).fetchone() is not None
        return False

    def _look_for_the_dead(self) -> None:
        now = time.monotonic()
        if now > self._looked + _LOOK:
            self._looked = now
            self.mark_lost()

    def _own(self, writer: Writer, books: AccountState, made: Request) -> Refused | Busy | str | None:
        recorded = record(writer, books, made, self._under_way)
        if isinstance(recorded, Refused):
            note_refusal(writer, made.charge, recorded)
        return recorded

    def resume(self, asked: Charge, *, charge: str | None = None) -> str | None:
        """Take over a charge of this very question, at exactly this cost, that nothing was drawn for: its free retry.

        Two costs may share the rounded epsilon of a rho. One with a name is of that name. charge: this one, no other.

        Returns the charge, which this process now owns, or None where there is none to take over.

        Raises:
            PolicyError: too many of the analyst's questions failed, or as many as may fail are under way for too long.
        """
        space, analyst, spend = asked.space, asked.analyst, asked.spend

        def wanted(connection: Connection) -> Entry | None:
            abandoned = _abandoned(connection, space, asked.question_key, analyst, asked.epsilon)
            fits = (e for e in abandoned if e.block == asked.block and charge in (None, e.id) and e.spend == spend)
            one = next((e for e in fits if asked.request in (None, e.request)), None)
            return None if one is None else records.believed(connection, one.id)

        deadline, pause = time.monotonic() + self._handle.patience, _SHORT
        while True:
            with self._handle.reading() as connection:
                if wanted(connection) is None:
                    return None
            self.mark_lost()
            taken: str | None = None
            try:
                with self._handle.writing() as writer:
                    entry = wanted(writer.connection)
                    if entry is None:
                        return None
                    books = AccountState().begin(writer.connection, writer.head)
                    under_way = self._under_way.look(writer.connection)
                    check_failures(books, space, analyst, self._handle.rules)
                    busy = check_under_way(books, under_way, space, analyst, this_process(), self._handle.rules)
                    if busy is None:
                        taken = entry.id
                        self._take_up(taken)
                        writer.append("step", entry.serial, "retried", None, this_process())
            except BaseException:  # Ctrl-C may come at the end of the transaction, which stands then
                if taken is not None:
                    self.let_go(taken)
                raise
            if busy is None:
                return taken
            pause = self._wait_for_others(busy, deadline, pause)

    def _wait_for_others(self, busy: Busy, deadline: float, pause: float) -> float:
        """Wait a little until another question of the analyst has come to its end; how long to wait the next time.

        Raises PolicyError after the deadline. One whose process died meanwhile has come to its end too, and counts.
        """
        self.mark_lost()
        if time.monotonic() > deadline:
            raise busy.error
        time.sleep(pause)
        return min(pause * 1.5, _LONG)

    def mark_lost(self) -> int:
        """Record as lost what dead processes left open; how many there were. Counts toward the failure locks."""
        with self._handle.reading() as connection:
            lost = dead(self._under_way.look(connection).all, moment(connection))
        if not lost:
            return 0
        with self._handle.writing() as writer:
            lost = dead(self._under_way.look(writer.connection).all, moment(writer.connection))
            for serial in lost:
                writer.append("step", serial, "lost", None, None)
        return len(lost)

    def let_go(self, charge_id: str, *, unsure: bool = False) -> None:
        """This process gives a charge up, or has finished it. Given up undrawn, it may be taken over, once.

        unsure: a server may be recording it at this moment. Then what became of it is seen to at the next charge, and
        in `close`; so it is where giving it up fails, or is interrupted.
        """
        if charge_id not in _UNDER_WAY:
            return
        self._doubtful.add(charge_id)
        self._put_down(charge_id)
        with suppress(HubbubError):
            if self._withdraw([charge_id]) or not unsure:
                self._doubtful.discard(charge_id)

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Work on charges that this thread makes or takes over within: at its end, what is not finished is given up.

        Ctrl-C may come before whoever asked has the charge's id, and again at that end: so its thread knows it.
        """
        mine: set[str] = getattr(self._mine, "charges", None) or set()
        for charge_id in mine:
            self.let_go(charge_id)
        self._mine.charges = mine
        try:
            yield
        finally:
            for charge_id in mine:
                self.let_go(charge_id)
            self._mine.charges = None

    def close(self) -> None:
        """Give up what is charged and not drawn yet, so that it may be taken over. Whatever was charged stays."""
        mine = sorted(self._taken)
        if mine:
            with suppress(HubbubError):
                self._withdraw(mine)
            for charge_id in mine:
                self._put_down(charge_id)
        self._settle()

    def _settle(self) -> None:
        """Give up what was given up before, and may have been recorded since. Where that fails, it is tried again."""
        for charge_id in sorted(self._doubtful - _UNDER_WAY):
            with suppress(HubbubError):
                self._give_up(charge_id)
                self._doubtful.discard(charge_id)

    def _give_up(self, charge_id: str) -> None:
        """Withdraw a charge that a server may be recording, once it has done so or never will; close such a block.

        Nobody was told of it, so it gives its budget back.
        """
        with self._handle.writing():
            pass  # whose lock a transaction before this one holds until its end
        self._withdraw([charge_id])
        if any(block.id == charge_id for block in self._record.open_blocks()):
            self.close_block(charge_id)

    def _withdraw(self, charges: Sequence[str]) -> bool:
        """Record that this process gives up charges that it has not finished; whether any of them is recorded."""
        with self._handle.reading() as connection:
            ask = "SELECT 1 FROM charge WHERE id = ?"
            known = [charge_id for charge_id in charges if connection.execute(ask, (charge_id,)).fetchone()]
        if not known:
            return False  # it was interrupted while it waited to charge: no need to wait for anybody again
        with self._handle.writing() as writer:
            for charge_id in known:
                serial, standing, owner, *_ = standing_of(writer.connection, charge_id)
                if standing in OPEN and owner == this_process():
                    writer.append("step", serial, "withdrawn", None, None)
        return True

    def _take_up(self, charge_id: str) -> None:
        mine = getattr(self._mine, "charges", None)
        if mine is not None:
            mine.add(charge_id)
        _UNDER_WAY.add(charge_id)
        self._taken.add(charge_id)
        self._doubtful.discard(charge_id)

    def _put_down(self, charge_id: str) -> None:
        self._taken.discard(charge_id)
        _UNDER_WAY.discard(charge_id)

    def advance(self, charge_id: str, state: State, *, incident: str | None = None) -> None:
        """Record the next step of a charge's life, durably. Being shown once more is not a step.

        Args:
            charge_id: the charge.
            state: 'drawing', 'shown' or 'failed'; an answer is stored with `store`.
            incident: with 'failed', the id under which the engine's own words were kept.

        Raises:
            InternalError: there is no such charge, or it cannot go there from where it is.
            PolicyError: the ledger cannot record it; or another process has taken the charge over; or the analyst was
                locked meanwhile, whichever step it was to be but 'shown'.
        """
        if state == "shown":
            with self._handle.reading() as connection:
                if standing_of(connection, charge_id, confirmed=False)[1] == "shown":
                    return
        with self._handle.writing() as writer:
            books = self._books.begin(writer.connection, writer.head)
            serial, standing, owner, *whose = standing_of(writer.connection, charge_id, confirmed=not books.alone)
            if standing == state == "shown":
                return
            if standing in UNDRAWN and owner not in (None, this_process()):
                raise PolicyError(
                    "another process has taken this question over, because this one looked dead. Nothing was drawn "
                    "here; ask again: its answer is free."
                )
            if standing == "lost":
                raise PolicyError(_GIVEN_UP)
            if state not in _NEXT.get(standing, ()):
                raise InternalError(f"charge {charge_id} is '{standing}' and cannot become '{state}'")
            locked = self._held_back(writer, books, serial, *whose) if state != "shown" else None
            if locked is None:
                writer.append("step", serial, state, incident, None)
                if state != "failed":  # of what the books hold, nothing changed
                    books.end(writer.head)
        if state == "failed" or locked is not None:
            self._put_down(charge_id)
        if locked is not None:
            raise locked

    def store(self, charge_id: str, payload: str) -> None:
        """Keep the answer that charge `charge_id` paid for: from here on it is a release, and free to read.

        Raises:
            InternalError: there is no such charge, or it is not 'drawing'.
            PolicyError: the ledger cannot record it, or the analyst was locked meanwhile; the answer must not be shown.
        """
        with self._handle.writing() as writer:
            books = self._books.begin(writer.connection, writer.head)
            serial, standing, _, *whose = standing_of(writer.connection, charge_id, confirmed=not books.alone)
            if standing == "lost":
                raise PolicyError(_GIVEN_UP)
            if standing != "drawing":
                raise InternalError(f"charge {charge_id} is '{standing}'; an answer is stored only while drawing")
            locked = self._held_back(writer, books, serial, *whose)
            if locked is None:
                writer.append("release", serial, checked_text(payload, "release"))
                writer.append("step", serial, "stored", None, None)
                books.end(writer.head)
        self._put_down(charge_id)
        if locked is not None:
            raise locked

    def _held_back(
        self, writer: Writer, books: AccountState, serial: int, space: str, analyst: str
    ) -> PolicyError | None:
        """Give up a question that is under way, if its analyst was locked since; what to say then.

        Whether it failed is not told: else as many failures could be seen as questions were under way together. So the
        one that failed and the one that did not are recorded alike, and raise alike.
        """
        try:
            check_failures(books, space, analyst, self._handle.rules)
        except PolicyError as locked:
            writer.append("step", serial, "withdrawn", None, None)
            return PolicyError(f"{locked} {_HELD_BACK}")
        return None

    def keep_incident(self, incident: str, words: str) -> Path:
        """Keep the engine's own words about a failure, for the steward alone: they may hold private values.

        They lie outside the ledger, in a folder that only this user may enter, and can be deleted at any time.

        Raises:
            PolicyError: the folder cannot be written.
        """
        return incidents.keep(self._handle.path, incident, words)

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
        held: list[str] | None = None,
    ) -> str:
        """Set a part of the budget aside; the id of the block, which pays for the questions charged to it.

        What it does not use comes back with `close_block`. Under an approximate budget a block at `epsilon` holds
        the rho of one such release.

        cost: what a plan costs, exactly. plan: its text. events: what the plan will run, each question's, instead of
        `cost`: the plan is then charged at the smaller of the sum of their rhos and the plan's own
        (`hubbub.accounting.plans`), and its questions draw on the sum. purpose: as of a question. held: has
        the block's id before it is recorded, so that who closes it has it whenever Ctrl-C comes; not where this raises.

        Raises: as `charge`.
        """
        from hubbub.accounting.plans import plan_cost

        made = self._request(
            Charge(
                kind="block" if plan is None else "plan",
                space=space,
                analyst=analyst,
                epsilon=parse_epsilon(epsilon),
                cost=cost or (plan_cost(events) if events else self._balance.question(space, epsilon)),
                sql="(reserved)" if plan is None else plan,
                details=planned(events),
                purpose=purpose,
            )
        )
        held = [] if held is None else held
        try:
            held.append(made.id)
            self._charge(made)
        except BudgetError:
            held.clear()
            raise
        except BaseException as error:  # Ctrl-C may come at the end of the transaction, which stands then
            self._doubtful.add(made.id)
            held.clear()
            if not isinstance(error, HubbubError):
                self._settle()
            raise
        return made.id

    def close_block(self, block: str) -> None:
        """Give back what a block did not use. Closing it again changes nothing.

        Raises:
            PolicyError: there is no such block.
        """
        entry = self._record.entry(block)
        if entry.kind not in ("block", "plan"):
            raise PolicyError(f"charge {block!r} is not a reserved block.")
        try:
            with self._handle.writing() as writer:
                end_block(writer, entry, self._handle.rules)
        except BaseException:  # Ctrl-C, say: it is closed with the next charge, or with the ledger
            self._doubtful.add(block)
            raise

    def give_back(self, charge_id: str, *, used: Cost) -> None:
        """Give back what a question that is being drawn will not use: of what it was charged, `used` stays.

        Whoever calls this vouches that nothing else is drawn for the charge, whatever comes.

        Raises:
            InternalError: the charge is not a question that is being drawn, or gave something back before, or `used` is
                more than was charged.
        """
        budget = self._balance.budget(self._record.entry(charge_id).space)
        with self._handle.writing() as writer:
            return_unused(writer, charge_id, Total.of(used), budget, self._handle.rules)

    def share(self, release: StoredRelease, analyst: str, *, token: str | None = None) -> None:
        """Charge the analyst's own limit, once, for reading what another analyst released, and the cap of the token
        through which it is read (`hubbub.ledger.readings`). The joint budget is free.

        Raises:
            BudgetError: the analyst's limit or the cap does not hold it.
        """
        if release.entry.analyst == analyst and token is None:
            return
        checked_analyst(analyst)
        with self._sharing:
            self._read(release.entry, analyst, token)

    def _read(self, entry: Entry, analyst: str, token: str | None) -> None:
        with self._handle.reading() as connection:
            details = reading(connection, entry, analyst, token)
            paid = paid_for(connection, entry)  # of a question that stopped early, what it used
        if details is not None:
            read = Charge(
                kind="reading", space=entry.space, dataset=entry.dataset, analyst=analyst, sql=entry.sql,
                question_key=entry.question_key, epsilon=paid.epsilon, cost=paid.spend, event=entry.event,
                details=details, policy=entry.policy, data_version=entry.data_version,
            )  # fmt: skip
            if self._charge(Request.of(read, self._handle.rules, once=True)) is not None:
                self._read(entry, analyst, token)  # another process paid meanwhile, for some of it at least


_HELD_BACK: Final = (
    "This question was under way meanwhile. It gets no answer, and whether it failed is not said; its charge stays, "
    "and pays for its one retry afterwards where nothing was drawn for it."
)
_GIVEN_UP: Final = (
    "another process took this one for dead, and recorded its question as lost, which counts as a failure. No answer "
    "is given."
)
_SHORT, _LONG = 0.005, 0.1  # seconds between two looks whether another question has come to its end


def _abandoned(
    connection: Connection, space: str, question_key: str, analyst: str, epsilon: Fraction
) -> Sequence[Entry]:
    """The charges of a question that nothing was drawn for, that nobody works on, and that were not retried yet."""
    charges = entries_to(
        connection,
        space,
        question_key,
        "analyst = ? AND epsilon = ? AND charge.kind = 'question' "
        "AND (step.state IS NULL OR step.state IN ('withdrawn', 'lost')) AND NOT EXISTS "
        "(SELECT 1 FROM step AS again WHERE again.charge = charge.serial AND again.state IN ('retried', 'drawing'))",
        analyst,
        write_amount(epsilon),
    )
    at = moment(connection)
    return [entry for entry in charges if entry.state != "charged" or _is_abandoned(connection, entry, at)]


def _is_abandoned(connection: Connection, entry: Entry, at: str) -> bool:
    if entry.id in _UNDER_WAY:
        return False
    owner = connection.execute("SELECT owner FROM charge WHERE serial = ?", (entry.serial,)).fetchone()[0]
    return owner is not None and (owner == this_process() or is_gone(owner, entry.time, at))
