"""The life of a charge after it was made: who may draw it, what became of it, and the answer that it paid for.

    charged -> drawing -> stored -> shown
    charged -> failed                          the engine could not finish: an answer too, so it counts
    charged -> withdrawn                       its own process gave it up before anything was drawn
    charged -> lost                            its process died before anything was drawn: it counts like a failure
    charged, withdrawn, lost -> retried -> ... once, and then as from charged
    drawing -> failed

Each step is durable before the next begins. A crash leaves its charge where it stood: budget may be wasted, an answer
never goes out uncharged. From `charged` one free retry is allowed, because nothing was drawn; from `drawing` on, none.
A charge is drawn by its last owner only, and once.

That an engine failed, or brought its process down for want of memory, may tell about the data. Such charges stay, and
after `max_failures` of them the analyst waits for a steward.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from hubbub.errors import HubbubError, InternalError, PolicyError
from hubbub.ledger import incidents
from hubbub.ledger.accounts import read_amount, write_amount
from hubbub.ledger.books import Books, moment
from hubbub.ledger.charging import check_failures
from hubbub.ledger.handle import checked_text
from hubbub.ledger.journal import Connection, head_of
from hubbub.ledger.owner import is_gone, this_process
from hubbub.ledger.records import Entry, State, StoredRelease, entries
from hubbub.ledger.steward import Stewardship

__all__ = ["Lives"]

_NEXT: Final[dict[str, tuple[str, ...]]] = {
    "charged": ("drawing", "failed"),
    "retried": ("drawing", "failed"),
    "drawing": ("failed",),  # and 'stored', which `store` alone may reach: it brings the answer
    "stored": ("shown",),
}
_UNDRAWN: Final = ("charged", "retried")

# Charges this process has under way: nobody but a thread of ours may still draw them.
_UNDER_WAY: set[str] = set()
_UNDER_WAY_LOCK = threading.Lock()


class Lives(Stewardship):
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
    ) -> str | None:
        """Take over a charge of this very question that nothing was drawn for: its one free retry.

        charge: this one and no other.

        Returns the charge, which this process now owns, or None where there is none to take over.

        Raises:
            PolicyError: too many of the analyst's questions failed.
        """

        def wanted(connection: Connection) -> Entry | None:
            found = _abandoned(connection, space, question_key, analyst, epsilon)
            return next((e for e in found if e.block == block and charge in (None, e.id)), None)

        with self._reading() as connection:
            if wanted(connection) is None:
                return None
        self.bury(question_key=question_key)
        with self._writing() as writer:
            entry = wanted(writer.connection)
            if entry is None:
                return None
            books = Books().begin(writer.connection, writer.head)
            check_failures(books, space, analyst, self._max_failures)
            writer.append("step", entry.serial, "retried", None, this_process())
        self._take_up(entry.id)
        return entry.id

    def bury(self, *, question_key: str | None = None) -> int:
        """Record as lost what dead processes left undrawn; how many there were. Counts toward the failure lock.

        question_key: look at the charges of this question only; else at all that were not looked at before.
        """
        with self._reading() as connection:
            found = self._dead(connection, question_key)
        if not found:
            return 0
        with self._writing() as writer:
            found = self._dead(writer.connection, question_key)
            for serial in found:
                writer.append("step", serial, "lost", None, None)
        return len(found)

    def _dead(self, connection: Connection, question_key: str | None) -> list[int]:
        one = "" if question_key is None else "AND charge.question_key = ? "
        rows: list[Any] = connection.execute(
            "SELECT charge.serial, charge.owner, (SELECT owner FROM step WHERE step.charge = charge.serial "
            "ORDER BY step.serial DESC LIMIT 1), journal.time FROM charge "
            "JOIN journal ON journal.serial = charge.serial WHERE charge.serial > ? AND charge.kind = 'question' "
            f"AND charge.owner IS NOT NULL {one}AND NOT EXISTS "
            "(SELECT 1 FROM step WHERE step.charge = charge.serial AND step.state <> 'retried') ORDER BY charge.serial",
            (0 if one else self._settled, *([] if question_key is None else [question_key])),
        ).fetchall()
        at = moment(connection)
        mine = this_process()
        dead: dict[str, bool] = {mine: False}
        found: list[int] = []
        open_ones: list[int] = []
        for serial, first, second, since in rows:
            owner = second or first
            if owner not in dead:
                dead[owner] = is_gone(owner, since, at)
            (found if dead[owner] else open_ones).append(int(serial))
        if question_key is None and not found:
            self._settled = min(open_ones, default=head_of(connection).serial + 1) - 1
        return found

    def let_go(self, charge_id: str) -> None:
        """This process gives a charge up, or has finished it. Given up undrawn, it may be taken over, once."""
        if not self._put_down(charge_id):
            return
        with suppress(HubbubError):  # where even that fails, it is found later
            self._withdraw([charge_id])

    def close(self) -> None:
        """Close the store. Whatever was charged stays; what was not drawn yet is given up, and may be taken over."""
        with _UNDER_WAY_LOCK:
            mine = sorted(self._taken)
        if mine:
            with suppress(HubbubError):
                self._withdraw(mine)
            for charge_id in mine:
                self._put_down(charge_id)
        super().close()

    def _withdraw(self, charges: Sequence[str]) -> None:
        """Record that this process gives its undrawn charges up."""
        with self._writing() as writer:
            for charge_id in charges:
                serial, standing, owner = _standing(writer.connection, charge_id)
                if standing in _UNDRAWN and owner == this_process():
                    writer.append("step", serial, "withdrawn", None, None)

    def _take_up(self, charge_id: str) -> None:
        with _UNDER_WAY_LOCK:
            _UNDER_WAY.add(charge_id)
            self._taken.add(charge_id)

    def _put_down(self, charge_id: str) -> bool:
        with _UNDER_WAY_LOCK:
            known = charge_id in _UNDER_WAY
            _UNDER_WAY.discard(charge_id)
            self._taken.discard(charge_id)
            return known

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
            if state not in _NEXT.get(standing, ()):
                raise InternalError(f"charge {charge_id} is '{standing}' and cannot become '{state}'")
            if standing in _UNDRAWN and owner not in (None, this_process()):
                raise PolicyError(
                    "another process has taken this question over, because this one looked dead. Nothing was drawn "
                    "here; ask again: its answer is free."
                )
            writer.append("step", serial, state, incident, None)
        if state != "shown":
            self._put_down(charge_id)

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

    def await_release(self, charge_id: str, *, patience: float = 60.0) -> StoredRelease | None:
        """The answer of a charge that another process or thread works on; None if it comes to nothing, or not in time.

        Raises:
            PolicyError: there is no such charge.
        """
        deadline, pause = time.monotonic() + patience, 0.005
        while True:
            entry = self.entry(charge_id)
            if entry.state in ("stored", "shown"):
                return self.release(charge_id)
            if entry.state not in (*_UNDRAWN, "drawing") or time.monotonic() > deadline or self._is_dead(entry):
                return None
            time.sleep(pause)
            pause = min(pause * 1.5, 0.1)

    def _is_dead(self, entry: Entry) -> bool:
        with self._reading() as connection:
            owner = _owner(connection, entry.serial)
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


def _abandoned(
    connection: Connection, space: str, question_key: str, analyst: str, epsilon: Fraction
) -> Sequence[Entry]:
    """The charges of a question that nothing was drawn for, that nobody works on, and that were not retried yet."""
    found = entries(
        connection,
        "WHERE unit_space = ? AND question_key = ? AND analyst = ? AND epsilon = ? AND charge.kind = 'question' "
        "AND (step.state IS NULL OR step.state IN ('withdrawn', 'lost')) AND NOT EXISTS "
        "(SELECT 1 FROM step AS again WHERE again.charge = charge.serial AND again.state = 'retried')",
        space,
        question_key,
        analyst,
        write_amount(epsilon),
    )
    at = moment(connection)
    return [entry for entry in found if entry.state != "charged" or _is_abandoned(connection, entry, at)]


def _is_abandoned(connection: Connection, entry: Entry, at: str) -> bool:
    with _UNDER_WAY_LOCK:
        if entry.id in _UNDER_WAY:
            return False
    owner = connection.execute("SELECT owner FROM charge WHERE serial = ?", (entry.serial,)).fetchone()[0]
    return owner is not None and (owner == this_process() or is_gone(owner, entry.time, at))


def _owner(connection: Connection, serial: int) -> str | None:
    """The process that works on a charge: who made it, or took it over."""
    row = connection.execute(
        "SELECT owner, (SELECT step.owner FROM step WHERE step.charge = charge.serial AND step.owner IS NOT NULL "
        "ORDER BY step.serial DESC LIMIT 1) FROM charge WHERE serial = ?",
        (serial,),
    ).fetchone()
    return row[1] or row[0]  # type: ignore[no-any-return]


def _standing(connection: Connection, charge_id: str) -> tuple[int, str, str | None]:
    """A charge's number, its state, and the process that owns it."""
    row = connection.execute("SELECT serial, owner FROM charge WHERE id = ?", (charge_id,)).fetchone()
    if row is None:
        raise InternalError(f"there is no charge {charge_id!r} in the ledger")
    last = connection.execute(
        "SELECT state, owner FROM step WHERE charge = ? ORDER BY serial DESC LIMIT 1", (row[0],)
    ).fetchone()
    return (int(row[0]), "charged", row[1]) if last is None else (int(row[0]), str(last[0]), last[1])
