"""To remove the words of questions from a ledger: whose lines, and that they are gone from its file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hubbub.errors import PolicyError
from hubbub.ledger.blocks import refused_text
from hubbub.ledger.charge import checked_text
from hubbub.ledger.records import OPEN, Entry, entries
from hubbub.ledger.wording import REMOVED, is_commitment

if TYPE_CHECKING:
    from hubbub.ledger.hash_chain import Connection, Writer

__all__ = ["days_ago", "remove_words", "removed_before"]


def days_ago(days: int) -> str:
    """A moment so many days ago, as the ledger writes it; the first that there is where that lies before it."""
    try:
        moment = datetime.now(UTC) - timedelta(days=days)
    except OverflowError:
        moment = datetime.min.replace(tzinfo=UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def remove_words(writer: Writer, entry: Entry, author: str) -> int:
    """Remove the text of a question wherever it stands: with its charge, its schedule, others' readings of its answer,
    and refusals of the very same text. How many lines lose their words.

    Raises:
        PolicyError: the question is under way; or its words stand in the line itself, under an older schema.
    """
    ask = writer.connection.execute
    pending = ask("SELECT 1 FROM pending WHERE charge = ?", (entry.serial,)).fetchone()
    if (entry.state in OPEN and entry.kind == "question") or pending is not None:
        raise PolicyError(f"the question {entry.id} is under way: its words are needed until it is told.")
    (held,) = ask("SELECT sql FROM charge WHERE serial = ?", (entry.serial,)).fetchone()
    if not is_commitment(held):
        raise PolicyError(
            f"the charge {entry.id} was recorded by an older hubbub, whose lines hold their words themselves: without "
            "them its link could not be verified. It is left as it is."
        )
    readings = entries(writer.connection, "WHERE charge.kind = 'reading' AND question_key = ?", entry.question_key)
    of_it = [one.serial for one in readings if json.loads(one.details).get("release") == entry.id]
    charges = [entry.serial, *of_it]
    lines = [*charges, *_scheduled(writer.connection, charges)]
    if entry.sql != REMOVED:
        lines += _refused(writer.connection, entry)
    return _remove(writer, lines, author)


def _scheduled(connection: Connection, charges: Iterable[int]) -> list[int]:
    ask = "SELECT serial FROM schedule WHERE charge = ?"
    return [int(serial) for charge in charges for (serial,) in connection.execute(ask, (charge,)).fetchall()]


def _refused(connection: Connection, entry: Entry) -> list[int]:
    rows = connection.execute(
        "SELECT refusal.serial FROM refusal JOIN wording ON wording.serial = refusal.serial WHERE unit_space = ? AND "
        "analyst = ? AND wording.content = ?",
        (entry.space, entry.analyst, refused_text(entry.sql)),
    )
    return [int(serial) for (serial,) in rows.fetchall()]


def removed_before(writer: Writer, time: str, author: str) -> int:
    """Remove the words of every question and refusal before a time, but of those that are under way. How many lines."""
    lines: list[int] = []
    for kind, charge in (("charge", "charge.serial"), ("schedule", "schedule.charge"), ("refusal", "-1")):
        under_way = f"{charge} IN (SELECT charge FROM pending)"
        rows = writer.connection.execute(
            f"SELECT {kind}.serial FROM {kind} JOIN wording ON wording.serial = {kind}.serial JOIN journal ON "
            f"journal.serial = {kind}.serial WHERE journal.time < ? AND NOT {under_way} ORDER BY {kind}.serial",
            (time,),
        ).fetchall()
        lines += [int(serial) for (serial,) in rows]
    return _remove(writer, lines, author)


def _remove(writer: Writer, lines: Iterable[int], author: str) -> int:
    done = 0
    for line in sorted(set(lines)):
        if writer.connection.execute("SELECT 1 FROM wording WHERE serial = ?", (line,)).fetchone() is not None:
            writer.append("redaction", line, checked_text(author, "author"))
            writer.connection.execute("DELETE FROM wording WHERE serial = ?", (line,))
            done += 1
    return done
