"""What stands in the schedule: the questions of the service, with their last slots, and what their runs brought."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hubbub.ledger.accounts import Total
from hubbub.ledger.hash_chain import Connection
from hubbub.ledger.records import Entry, entries
from hubbub.ledger.schedule import Fate, Moment, Slot
from hubbub.ledger.wording import is_commitment, shown, words_of

__all__ = [
    "OUTCOME", "STOPPED", "Scheduled", "brought", "fate_of", "one_where", "paying", "pending_of", "rows_of",
    "untold_of",
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
    "SELECT step.state, charge.id FROM charge JOIN step ON step.charge = charge.serial WHERE "
    "step.state IN ('stored', 'failed', 'withdrawn')"
)


def fate_of(row: Sequence[Any] | None) -> Fate:
    """What is told of a question whose outcome is this."""
    return "asked" if row is None else "answered" if row[0] == "stored" else "no answer"


_SELECT: Final = (
    f"SELECT c.id, c.serial, c.analyst, c.unit_space, {words_of('charge', 'c')}, {words_of('schedule', 's')}, "
    "s.incident, s.lane, s.made, s.running, s.boot, s.starts, s.ends, s.due, "
    "(SELECT o.id FROM charge AS o WHERE o.serial = s.shares) "
    "FROM schedule AS s JOIN charge AS c ON c.serial = s.charge "
    "WHERE s.serial = (SELECT max(l.serial) FROM schedule AS l WHERE l.charge = s.charge) AND "
)


def rows_of(connection: Connection, where: str, *parameters: str | int) -> list[Scheduled]:
    """Questions with their last slots, oldest first."""
    rows = connection.execute(f"{_SELECT}{where} ORDER BY c.serial", parameters).fetchall()
    return [_read(row) for row in rows]


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
    """What was not told yet, with its state and what its run brought; oldest first."""
    kept = connection.execute(
        "SELECT charge, state, payload FROM pending WHERE charge <> ? ORDER BY charge", (STOPPED,)
    ).fetchall()
    if not kept:
        return []
    known = {one.serial: one for one in rows_of(connection, "s.charge IN (SELECT charge FROM pending)")}
    return [(known[serial], state, payload) for serial, state, payload in kept]


def brought(state: str, payload: str | None) -> tuple[str | None, Total | None, bool]:
    """What a run brought, as it was staged: its answer, and what it used where that is less than was charged. And
    whether there was a run.
    """
    if state != "part" or payload is None:
        return payload, None, state != "changed"
    used, text = json.loads(payload)
    return text, Total.read(*used), True


def paying(connection: Connection, one: Scheduled) -> list[Entry]:
    """The charge of a question, and those of whoever shares its fate."""
    sharing = connection.execute(
        "SELECT c.id FROM schedule AS s JOIN charge AS c ON c.serial = s.charge WHERE s.shares = ? "
        "GROUP BY c.id, c.serial ORDER BY c.serial",
        (one.serial,),
    ).fetchall()
    each = (one.id, *(shared for (shared,) in sharing))
    return [entry for charge_id in each for entry in entries(connection, "WHERE charge.id = ?", charge_id)]
