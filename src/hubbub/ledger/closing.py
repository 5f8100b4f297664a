"""What is done to a ledger that may lack what was charged last: nothing is given that may have been given since.

An older copy of a ledger knows less than was spent. What was spent since is not known, so all of what it takes for
unspent is closed, on the record, in one transaction:

    what is left        `everyone` may spend nothing more in any unit space, until a steward grants it anew
    training            nothing more is paid from what a budget sets aside for it: what was is not known
    open blocks         are closed, and what they held stays spent: they may have been used up
    what was not drawn  has had its draw: it may have been drawn and told since
    what was running    has no answer
    data versions       every data set gets a new one: its rows may have been refreshed since
    limits              every account that has one may spend nothing more: it may have been revoked or lowered since

Stored answers stay on the record; a question that is asked again is drawn anew, from the rows of now. A line of
`restoring` says which line was the last one that is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hubbub.ledger.accounts import EVERYONE, TRAINING
from hubbub.ledger.books import CEILING
from hubbub.ledger.charge import checked_text
from hubbub.ledger.versions import issue

if TYPE_CHECKING:
    from hubbub.ledger.hash_chain import Head, Writer

__all__ = ["close_what_is_open"]

_RESTORED: Final = "an older copy was accepted"
"""Why a data version was issued then: one that is declared, so it ends those before it."""

_STEPS: Final = {
    None: ("drawing", "withdrawn"),
    "charged": ("drawing", "withdrawn"),
    "retried": ("drawing", "withdrawn"),
    "withdrawn": ("retried", "drawing", "withdrawn"),
    "lost": ("retried", "drawing", "withdrawn"),
    "drawing": ("withdrawn",),
}
"""From where a question that has no answer stands, to where nothing is drawn for it any more."""


def close_what_is_open(writer: Writer, known: Head, *, author: str, reason: str) -> None:
    """Close everything that a ledger takes for open. known: its head before.

    author, reason: for the record.
    """
    author, reason = checked_text(author, "author"), checked_text(reason, "reason")
    writer.append("restoring", known.serial, known.hash, author, reason)
    ask = writer.connection.execute
    closed = {(space, EVERYONE) for (space,) in ask("SELECT name FROM unit_space").fetchall()}
    closed |= {(space, TRAINING) for (space,) in ask("SELECT unit_space FROM training").fetchall()}
    limits = ask("SELECT unit_space, account FROM allowance WHERE account <> ?", (CEILING,)).fetchall()
    closed |= {(space, account) for space, account in limits}
    for space, account in sorted(closed):
        writer.append("allowance", space, account, None, None, author, reason)
    rows = ask("SELECT DISTINCT unit_space, dataset FROM data_version ORDER BY unit_space, dataset").fetchall()
    for space, dataset in rows:
        issue(writer, space, dataset, _RESTORED, None)
    _close_blocks(writer)
    _close_questions(writer)


def _close_blocks(writer: Writer) -> None:
    blocks = writer.connection.execute(
        "SELECT serial FROM charge WHERE kind IN ('block', 'plan') AND NOT EXISTS "
        "(SELECT 1 FROM step WHERE step.charge = charge.serial AND step.state = 'closed') ORDER BY serial"
    ).fetchall()
    for (serial,) in blocks:
        writer.append("step", serial, "closed", None, None)


def _close_questions(writer: Writer) -> None:
    questions = writer.connection.execute(
        "SELECT charge.serial, last.state, (SELECT s.incident FROM schedule AS s WHERE s.charge = charge.serial "
        "ORDER BY s.serial DESC LIMIT 1), EXISTS (SELECT 1 FROM step AS spent WHERE spent.charge = charge.serial AND "
        "spent.state IN ('retried', 'drawing')) FROM charge LEFT JOIN step AS last ON last.serial = "
        "(SELECT max(step.serial) FROM step WHERE step.charge = charge.serial) WHERE charge.kind = 'question' AND "
        "(last.state IS NULL OR last.state IN ('charged', 'retried', 'withdrawn', 'lost', 'drawing')) "
        "ORDER BY charge.serial"
    ).fetchall()
    for serial, state, incident, spent in questions:
        if state in ("withdrawn", "lost") and spent:
            continue
        *before, last = _STEPS[state]
        for step in before:
            writer.append("step", serial, step, None, None)
        if incident is not None:  # of the service: it is told that there is no answer
            writer.append("silence", serial, incident)
        writer.append("step", serial, last, None, None)
    writer.connection.execute("DELETE FROM pending")
