"""What stands in the schedule: the questions of the service, with their last slots, and what their runs brought.

What a run brought waits in `pending`, which no chain holds. So it bears a seal: HMAC-SHA-256 over the line of its
charge and what was staged, with the key of that line, or the ledger's own secret where the chain has none. A row whose
seal does not fit (a byte was changed; or an older hubbub staged it, which wrote none) counts as if the process had died
before it brought anything: a failure, told at its release, and nothing comes back. Of the others none waits for it.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from hubbub.ledger.accounts import Total
from hubbub.ledger.hash_chain import Connection, compact, untrue
from hubbub.ledger.keys import key_at
from hubbub.ledger.proofs import confirm, proofs_of
from hubbub.ledger.records import Entry, entries
from hubbub.ledger.schedule import Fate, Moment, Slot
from hubbub.ledger.wording import commitment, is_commitment, shown, words_of

__all__ = [
    "NOTHING_BROUGHT", "OUTCOME", "STOPPED", "Brought", "Scheduled", "brought", "fate_of", "one_where", "paying",
    "pending_of", "rows_of", "sealed", "stopped_at", "untold_of",
]  # fmt: skip

STOPPED: Final = 0  # the row of `pending` that says when the service stopped, with nothing running


@dataclass(frozen=True)
class Scheduled:
    """A question of the service. id: of its charge, or of the reading's where it shares another's fate. ask: as another
    process reads it. incident: drawn at submission, whatever happens.
    """

    id: str
    serial: int
    analyst: str
    space: str
    sql: str
    ask: str
    incident: str
    slot: Slot
    shares: str | None = None
    new: bool = field(default=False, compare=False)

    @property
    def paid_by(self) -> str:
        """The charge that is drawn."""
        return self.shares or self.id

    @property
    def capped(self) -> bool:
        """Whether it may use less than it was charged: what it does not use comes back at its release."""
        return not is_commitment(self.ask) and json.loads(self.ask).get("capped") is True


OUTCOME: Final = (
    "SELECT step.state, charge.id, step.serial FROM charge JOIN step ON step.charge = charge.serial WHERE "
    "step.state IN ('stored', 'failed', 'withdrawn')"
)


def fate_of(row: Sequence[Any] | None) -> Fate:
    """What is told of a question whose outcome is this."""
    return "asked" if row is None else "answered" if row[0] == "stored" else "no answer"


_SELECT: Final = (
    f"SELECT c.id, c.serial, c.analyst, c.unit_space, {words_of('charge', 'c')}, {words_of('schedule', 's')}, "
    "s.incident, s.lane, s.made, s.running, s.boot, s.starts, s.ends, s.due, "
    "(SELECT o.id FROM charge AS o WHERE o.serial = s.shares), "
    "s.serial, s.shares, s.ask, (SELECT w.salt FROM wording AS w WHERE w.serial = s.serial) "
    "FROM schedule AS s JOIN charge AS c ON c.serial = s.charge "
    "WHERE s.serial = (SELECT max(l.serial) FROM schedule AS l WHERE l.charge = s.charge) AND "
)


def rows_of(connection: Connection, where: str, *parameters: str | int) -> list[Scheduled]:
    """Questions with their last slots, oldest first.

    Raises:
        PolicyError: the line of one, of its charge or of the charge whose fate it shares is not the one that was
            written, or its words are not.
    """
    rows = connection.execute(f"{_SELECT}{where} ORDER BY c.serial", parameters).fetchall()
    confirm(connection, "schedule", *(line for *_, line, _, _, _ in rows))
    shared = {shares for *_, shares, _, _ in rows if shares is not None}
    confirm(connection, "charge", *(row[1] for row in rows), *shared)
    for row in rows:
        *_, line, _, kept, salt = row
        _check_words(connection, line, kept, salt, row[5])
    return [_read(row[:15]) for row in rows]


def _check_words(connection: Connection, line: int, kept: str, salt: object, words: str) -> None:
    """See that what is asked is what its line commits to: it is run as it stands."""
    if not is_commitment(kept):
        return  # an older schema, whose line holds it itself
    if salt is None:  # removed, on the record
        fits = connection.execute("SELECT 1 FROM redaction WHERE line = ?", (line,)).fetchone() is not None
    else:
        fits = commitment(str(salt), words) == kept
    if not fits:
        raise untrue(f"words in line {line}, of schedule, are not those that were written")


def untold_of(connection: Connection, at: Moment) -> list[Scheduled]:
    """What was not told yet, oldest first: what is due later by the wall clock; what is due by that alone, as it was
    set forward; and what is due, and no tick has come since.
    """
    under_way = "SELECT charge FROM pending"
    return rows_of(connection, f"(s.due > ? OR s.charge IN ({under_way}) OR s.shares IN ({under_way}))", at.wall)


def one_where(connection: Connection, where: str, *parameters: str | int) -> Scheduled | None:
    """The first of such questions; None if there is none."""
    return next(iter(rows_of(connection, where, *parameters)), None)


def _read(row: Sequence[Any]) -> Scheduled:
    identity, serial, analyst, space, sql, ask, incident, lane, made, running, boot, starts, ends, due, shares = row
    slot = Slot(lane, Moment(made, running, boot), starts, ends, due)
    return Scheduled(identity, serial, analyst, space, shown(sql), ask, incident, slot, shares)


def pending_of(connection: Connection) -> list[tuple[Scheduled, str, str | None]]:
    """What was not told yet, with its state and what its run brought; oldest first. A row of what is not, or no more,
    to be told is not looked at: whoever changed it takes the answer from a question, and gives none.
    """
    kept = _kept(connection, "charge <> ?")
    if not kept:
        return []
    untold = (
        "s.charge IN (SELECT charge FROM pending) AND s.shares IS NULL AND NOT EXISTS (SELECT 1 FROM step WHERE "
        "step.charge = s.charge AND step.state IN ('stored', 'failed', 'withdrawn'))"
    )
    known = {one.serial: one for one in rows_of(connection, untold)}
    return [(known[serial], state, payload) for serial, state, payload in kept if serial in known]


class Brought(NamedTuple):
    """What a run brought. payload: its answer; None for a failure. used: where that is less than was charged. is_run:
    whether there was a run. is_whole: whether the row is the one that was staged.
    """

    payload: str | None
    used: Total | None = None
    is_run: bool = True
    is_whole: bool = True


NOTHING_BROUGHT: Final = Brought(None, is_whole=False)
"""As of a process that died."""


def brought(connection: Connection, serial: int, state: str, payload: str | None) -> Brought:
    """What a run brought, as it was staged."""
    if state in ("waiting", "drawing", "failure"):
        return Brought(None)
    content = _unsealed(connection, serial, state, payload)
    match state:
        case "changed" if content is not None:
            return Brought(None, is_run=False)
        case "answer" if content is not None:
            return Brought(content)
        case "part" if content is not None:
            used, text = json.loads(content)
            return Brought(text, Total.read(*used))
        case _:
            return NOTHING_BROUGHT


def sealed(connection: Connection, serial: int, state: str, content: str) -> str:
    """What `pending` holds of an outcome, with its seal."""
    return f"{_seal(connection, serial, state, content)} {content}"


def stopped_at(connection: Connection) -> int | None:
    """When the service stopped in good order; None if it did not, or nothing says so that can be believed."""
    content = next((_unsealed(connection, *row) for row in _kept(connection, "charge = ?")), None)
    return None if content is None else int(content)


def _kept(connection: Connection, where: str) -> list[tuple[int, str, str | None]]:
    """Rows of `pending`, as they stand. SQLite reads text that is none as bytes alone, and one row may not stop all."""
    text = "{}" if hasattr(connection, "now") else "CAST({} AS BLOB)"
    columns = f"charge, {text.format('state')}, {text.format('payload')}"
    rows = connection.execute(f"SELECT {columns} FROM pending WHERE {where} ORDER BY charge", (STOPPED,)).fetchall()
    return [(charge, str(_text(state)), _text(payload)) for charge, state, payload in rows]


def _text(kept: object) -> str | None:
    return kept.decode(errors="replace") if isinstance(kept, bytes) else None if kept is None else str(kept)


def _unsealed(connection: Connection, serial: int, state: str, payload: str | None) -> str | None:
    """What was staged; None where its seal does not fit."""
    seal, blank, content = (payload or "").partition(" ")
    fits = hmac.compare_digest(seal.encode(), _seal(connection, serial, state, content).encode())
    return content if fits and blank else None


def _seal(connection: Connection, serial: int, state: str, content: str) -> str:
    """serial: of the charge whose outcome it is, or STOPPED."""
    (secret,) = connection.execute("SELECT secret FROM ledger").fetchone()
    line = connection.execute("SELECT hash FROM journal WHERE serial = ?", (serial,)).fetchone()
    proofs = proofs_of(connection)
    key = None if proofs is None else key_at(proofs.keys(), max(serial, 1))
    text = compact(["hubbub pending", None if line is None else line[0], serial, state, content])
    return hmac.new(str(secret).encode() if key is None else key, text.encode(), "sha256").hexdigest()


def paying(connection: Connection, one: Scheduled) -> list[Entry]:
    """The charge of a question, and those of whoever shares its fate."""
    sharing = connection.execute(
        "SELECT c.id FROM schedule AS s JOIN charge AS c ON c.serial = s.charge WHERE s.shares = ? "
        "GROUP BY c.id, c.serial ORDER BY c.serial",
        (one.serial,),
    ).fetchall()
    each = (one.id, *(shared for (shared,) in sharing))
    return [entry for charge_id in each for entry in entries(connection, "WHERE charge.id = ?", charge_id)]
