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
every death is recorded, once: a charge is dead if its last step leaves it open (charged, retried, drawing) and its
owner is gone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Final

from hubbub.errors import HubbubError, InternalError, PolicyError
from hubbub.ledger import incidents
from hubbub.ledger.accounts import Total, analyst_account, read_amount, write_amount
from hubbub.ledger.books import AccountState, moment
from hubbub.ledger.charging import Busy, check_failures, check_under_way
from hubbub.ledger.handle import checked_text
from hubbub.ledger.hash_chain import Connection, Writer
from hubbub.ledger.process import is_gone, this_process
from hubbub.ledger.records import Entry, State, StoredRelease, entries
from hubbub.ledger.steward import Steward
from hubbub.ledger.under_way import OpenQuestion

__all__ = ["ChargeLifecycle"]

_NEXT: Final[dict[str, tuple[str, ...]]] = {
    "charged": ("drawing", "failed"),
    "retried": ("drawing", "failed"),
    "drawing": ("failed",),  # and 'stored', which `store` alone may reach: it brings the answer
    "stored": ("shown",),
}
_UNDRAWN: Final = ("charged", "retried")
_OPEN: Final = (*_UNDRAWN, "drawing")

# Charges this process has under way: nobody but a thread of ours may still draw them. Each change of it is one step of
# Python's, so it needs no lock, which an interrupt could leave held.
_UNDER_WAY: set[str] = set()


class ChargeLifecycle(Steward):
    """What happens to charges once they are made. Part of `Ledger`."""

    def resume(
        self,
        *,
        space: str,
        question_key: str,
        analyst: str,
        epsilon: Fraction,
        block: str | None = None,
        charge: str | None = None,
        spend: Total | None = None,
    ) -> str | None:
        """Take over a charge of this very question that nothing was drawn for: its one free retry.

        charge: this one and no other. spend: only one that cost exactly this; the epsilon of a rho is rounded, so two
        costs may share it.

        Returns the charge, which this process now owns, or None where there is none to take over.

        Raises:
            PolicyError: too many of the analyst's questions failed, or as many as may fail are under way for too long.
        """

        def wanted(connection: Connection) -> Entry | None:
            found = _abandoned(connection, space, question_key, analyst, epsilon)
            fits = (e for e in found if e.block == block and charge in (None, e.id) and spend in (None, e.spend))
            return next(fits, None)

        deadline, pause = time.monotonic() + self._patience, _SHORT
        while True:
            with self._reading() as connection:
                if wanted(connection) is None:
                    return None
            self.bury()
            taken: str | None = None
            try:
                with self._writing() as writer:
                    entry = wanted(writer.connection)
                    if entry is None:
                        return None
                    books, under_way = (
                        AccountState().begin(writer.connection, writer.head),
                        self._under_way.look(writer.connection),
                    )
                    check_failures(books, space, analyst, self._max_failures, self._max_failures_all)
                    allowed = self._max_failures, self._max_failures_all
                    busy = check_under_way(books, under_way, space, analyst, this_process(), *allowed)
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
        self.bury()
        if time.monotonic() > deadline:
            raise busy.error
        time.sleep(pause)
        return min(pause * 1.5, _LONG)

    def bury(self) -> int:
        """Record as lost what dead processes left open; how many there were. Counts toward the failure locks."""
        with self._reading() as connection:
            found = _dead(self._under_way.look(connection).all, moment(connection))
        if not found:
            return 0
        with self._writing() as writer:
            found = _dead(self._under_way.look(writer.connection).all, moment(writer.connection))
            for serial in found:
                writer.append("step", serial, "lost", None, None)
        return len(found)

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

    def close(self) -> None:
        """Close the store. Whatever was charged stays; what was not drawn yet is given up, and may be taken over."""
        mine = sorted(self._taken)
        if mine:
            with suppress(HubbubError):
                self._withdraw(mine)
            for charge_id in mine:
                self._put_down(charge_id)
        self._settle()
        super().close()

    def _settle(self) -> None:
        """Give up what was given up before, and may have been recorded since. Where that fails, it is tried again."""
        for charge_id in sorted(self._doubtful - _UNDER_WAY):
            with suppress(HubbubError):
                self._give_up(charge_id)
                self._doubtful.discard(charge_id)

    def _give_up(self, charge_id: str) -> None:
        """Withdraw a charge that a server may be recording: once it has done so, or never will."""
        with self._writing():
            pass  # whose lock a transaction before this one holds until its end
        self._withdraw([charge_id])

    def _withdraw(self, charges: Sequence[str]) -> bool:
        """Record that this process gives up charges that it has not finished; whether any of them is recorded."""
        with self._reading() as connection:
            ask = "SELECT 1 FROM charge WHERE id = ?"
            known = [charge_id for charge_id in charges if connection.execute(ask, (charge_id,)).fetchone()]
        if not known:
            return False  # it was interrupted while it waited to charge: no need to wait for anybody again
        with self._writing() as writer:
            for charge_id in known:
                serial, standing, owner, *_ = _standing(writer.connection, charge_id)
                if standing in _OPEN and owner == this_process():
                    writer.append("step", serial, "withdrawn", None, None)
        return True

    def _take_up(self, charge_id: str) -> None:
        _UNDER_WAY.add(charge_id)
        self._taken.add(charge_id)
        self._doubtful.discard(charge_id)

    def _put_down(self, charge_id: str) -> None:
        self._taken.discard(charge_id)
        _UNDER_WAY.discard(charge_id)

    def requested(self, *, space: str, analyst: str, request: str) -> Entry | None:
        """The charge that an idempotency key stands for, if it was used."""
        with self._reading() as connection:
            found = entries(connection, "WHERE unit_space = ? AND analyst = ? AND request = ?", space, analyst, request)
        return found[0] if found else None

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
            with self._reading() as connection:
                if _standing(connection, charge_id)[1] == "shown":
                    return
        with self._writing() as writer:
            books = self._books.begin(writer.connection, writer.head)
            serial, standing, owner, *whose = _standing(writer.connection, charge_id)
            if standing == state == "shown":
                return
            if standing in _UNDRAWN and owner not in (None, this_process()):
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
        with self._writing() as writer:
            books = self._books.begin(writer.connection, writer.head)
            serial, standing, _, *whose = _standing(writer.connection, charge_id)
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
            check_failures(books, space, analyst, self._max_failures, self._max_failures_all)
        except PolicyError as locked:
            writer.append("step", serial, "withdrawn", None, None)
            return PolicyError(f"{locked} {_HELD_BACK}")
        return None

    def find_release(
        self, *, space: str, question_key: str, at_least: Fraction, reader: str | None = None
    ) -> StoredRelease | None:
        """The stored answer to this question that cost most, if any cost `at_least` or more.

        reader: whose limit would be charged for another's. What is his own, or was read by him, comes first; then the
        dearest that his limit admits: a dearer one that somebody buys takes nothing away from him.
        """
        with self._reading() as connection:
            found = connection.execute(
                "SELECT id, epsilon, analyst FROM charge JOIN release ON release.charge = charge.serial "
                "WHERE unit_space = ? AND question_key = ?",
                (space, question_key),
            ).fetchall()
            enough = [(read_amount(epsilon), charge_id, whose) for charge_id, epsilon, whose in found]
            ranked = sorted((each for each in enough if each[0] >= at_least), reverse=True)
            if reader is not None and any(whose != reader for _, _, whose in ranked):
                ranked.sort(key=lambda each: self._distance(connection, space, question_key, each[1], reader))
        return self.release(ranked[0][1]) if ranked else None

    def _distance(self, connection: Connection, space: str, question_key: str, charge_id: str, reader: str) -> int:
        """0 for a release that costs the reader nothing, 1 for one that his limit admits, 2 for others."""
        (entry,) = entries(connection, "WHERE charge.id = ?", charge_id)
        read = entries(
            connection,
            "WHERE unit_space = ? AND question_key = ? AND charge.kind = 'reading' AND analyst = ? AND details = ?",
            space,
            question_key,
            reader,
            json.dumps({"release": charge_id}),
        )
        if entry.analyst == reader or read:
            return 0
        back = entries(connection, "WHERE charge.kind = 'return' AND charge.block = ?", charge_id)
        cost = (back[0] if back else entry).spend.cost
        books, account = AccountState().begin(connection, None), analyst_account(reader)
        found = books.standings(space, self._budget(connection, space), (account,), None, moment(connection))
        return 1 if all(standing.admits(cost) for standing in found) else 2

    def release(self, charge_id: str) -> StoredRelease | None:
        """The answer that `charge_id` paid for; None if it never got that far.

        Raises:
            PolicyError: there is no such charge.
        """
        entry = self.entry(charge_id)
        with self._reading() as connection:
            row = connection.execute("SELECT payload FROM release WHERE charge = ?", (entry.serial,)).fetchone()
        return StoredRelease(entry, row[0]) if row else None

    def await_release(self, charge_id: str, *, patience: float | None = None) -> StoredRelease | None:
        """The answer of a charge that another process or thread works on; None if it comes to nothing.

        patience: seconds to wait for it; by default the ledger's own.

        Raises:
            PolicyError: there is no such charge; or it is still under way after that, and may be answered yet.
        """
        deadline, pause = time.monotonic() + (self._patience if patience is None else patience), 0.005
        while True:
            entry = self.entry(charge_id)
            if entry.state in ("stored", "shown"):
                return self.release(charge_id)
            if entry.state not in _OPEN or self._is_dead(entry):
                return None
            if time.monotonic() > deadline:
                raise PolicyError(
                    f"the very same question is under way ({charge_id}) and has no answer yet. This one waited for it "
                    "as long as it may. Nothing was charged for it: ask again later, and the answer is there."
                )
            time.sleep(pause)
            pause = min(pause * 1.5, 0.1)

    def _is_dead(self, entry: Entry) -> bool:
        with self._reading() as connection:
            owner = _standing(connection, entry.id)[2]
            return owner is None or is_gone(owner, entry.time, moment(connection))

    def keep_incident(self, incident: str, words: str) -> Path:
        """Keep the engine's own words about a failure, for the steward alone: they may hold private values.

        They lie outside the ledger, in a folder that only this user may enter, and can be deleted at any time.

        Raises:
            PolicyError: the folder cannot be written.
        """
        return incidents.keep(self.path, incident, words)

    def incident_words(self, incident: str) -> str:
        """What `keep_incident` kept.

        Raises:
            PolicyError: there is no such incident here, or it is not for this user to read.
        """
        return incidents.read(self.path, incident)

    def history(self, space: str | None = None, *, since: str | None = None, analyst: str | None = None) -> list[Entry]:
        """Every charge, oldest first; of one unit space or analyst, or from a time on, if named."""
        wanted = {"unit_space = ?": space, "journal.time >= ?": since, "analyst = ?": analyst}
        given = {text: value for text, value in wanted.items() if value is not None}
        where = f"WHERE {' AND '.join(given)}" if given else ""
        with self._reading() as connection:
            return entries(connection, where, *given.values())


_HELD_BACK: Final = (
    "This question was under way meanwhile. It gets no answer, and whether it failed is not said; its charge stays, "
    "and pays for its one retry afterwards where nothing was drawn for it."
)
_GIVEN_UP: Final = (
    "another process took this one for dead, and recorded its question as lost, which counts as a failure. No answer "
    "is given."
)


_SHORT, _LONG = 0.005, 0.1  # seconds between two looks whether another question has come to its end


def _dead(questions: Iterable[OpenQuestion], at: str) -> list[int]:
    """Of the questions that are open, the lines of those whose process died."""
    here = this_process().rsplit("/", 2)[0] + "/"
    gone: dict[str, bool] = {}
    found: list[int] = []
    for question in questions:
        owner, since = question.owner, question.since
        key = owner if owner.startswith(here) else f"{owner} {since}"  # here, how long ago it was matters nothing
        if key not in gone:
            gone[key] = owner != this_process() and is_gone(owner, since, at)
        if gone[key]:
            found.append(question.serial)
    return found


def _abandoned(
    connection: Connection, space: str, question_key: str, analyst: str, epsilon: Fraction
) -> Sequence[Entry]:
    """The charges of a question that nothing was drawn for, that nobody works on, and that were not retried yet."""
    found = entries(
        connection,
        "WHERE unit_space = ? AND question_key = ? AND analyst = ? AND epsilon = ? AND charge.kind = 'question' "
        "AND (step.state IS NULL OR step.state IN ('withdrawn', 'lost')) AND NOT EXISTS "
        "(SELECT 1 FROM step AS again WHERE again.charge = charge.serial AND again.state IN ('retried', 'drawing'))",
        space,
        question_key,
        analyst,
        write_amount(epsilon),
    )
    at = moment(connection)
    return [entry for entry in found if entry.state != "charged" or _is_abandoned(connection, entry, at)]


def _is_abandoned(connection: Connection, entry: Entry, at: str) -> bool:
    if entry.id in _UNDER_WAY:
        return False
    owner = connection.execute("SELECT owner FROM charge WHERE serial = ?", (entry.serial,)).fetchone()[0]
    return owner is not None and (owner == this_process() or is_gone(owner, entry.time, at))


def _standing(connection: Connection, charge_id: str) -> tuple[int, str, str | None, str, str]:
    """A charge's number, its state, the process that owns it (who made it, or took it over), its space and analyst."""
    row = connection.execute(
        "SELECT serial, (SELECT state FROM step WHERE step.charge = charge.serial ORDER BY step.serial DESC LIMIT 1), "
        "(SELECT step.owner FROM step WHERE step.charge = charge.serial AND step.owner IS NOT NULL "
        "ORDER BY step.serial DESC LIMIT 1), owner, unit_space, analyst FROM charge WHERE id = ?",
        (charge_id,),
    ).fetchone()
    if row is None:
        raise InternalError(f"there is no charge {charge_id!r} in the ledger")
    serial, state, taken, made, space, analyst = row
    return int(serial), state or "charged", taken or made, space, analyst
