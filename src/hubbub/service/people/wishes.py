"""What waits for a steward: requests for more budget, and questions that cost more than one may ask without a yes.

open        waits
granted     a steward said yes
declined    a steward said no, and why
withdrawn   taken back, or its person may not come in any more
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from hubbub.errors import PolicyError
from hubbub.ledger.wording import REMOVED
from hubbub.service.people.store import Store

__all__ = ["Wish", "Wishes"]

_State: TypeAlias = Literal["open", "granted", "declined", "withdrawn"]
_MOST: Final = 20  # that wait, of one person
_COLUMNS: Final = "id, kind, person, made, what, name, state, steward, decided, reason, outcome"


@dataclass(frozen=True)
class Wish:
    """One of them. what: plain values. name: of the request, by which it is known when it is sent again. outcome: the
    id of the question that it became, "" for a stored answer that has none; of more budget, while its grant is made,
    the last line that the ledger then had about what accounts may spend.
    """

    id: str
    kind: str
    person: str
    made: str
    what: Mapping[str, Any]
    name: str | None
    state: _State
    steward: str | None
    decided: str | None
    reason: str | None
    outcome: str | None


class Wishes:
    """What waits, in the file."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, kind: str, person: str, what: Mapping[str, Any], *, name: str | None = None) -> Wish:
        """Let one more wait.

        Raises PolicyError where as many of this person wait as may.
        """
        identity = f"w{uuid.uuid4().hex[1:]}"
        with self._store.writing() as write:
            count = "SELECT count(*) FROM wish WHERE person = ? AND state = 'open'"
            if write(count, person).fetchone()[0] >= _MOST:
                raise PolicyError(f"{_MOST} of your requests wait for a steward; withdraw one, or wait for an answer.")
            write(
                "INSERT INTO wish (id, kind, person, made, what, name, state) VALUES (?, ?, ?, ?, ?, ?, 'open')",
                identity, kind, person, write.time, json.dumps(what), name,
            )  # fmt: skip
            write.note(person, f"{kind} asked for", request=identity, epsilon=what.get("epsilon"))
        return self.one(identity)

    def one(self, identity: str) -> Wish:
        """One by its id.

        Raises PolicyError where there is none.
        """
        wishes = self._rows("id = ?", identity)
        if not wishes:
            raise PolicyError(f"there is no request {identity!r:.60}.")
        return wishes[0]

    def known(self, kind: str, person: str, name: str) -> Wish | None:
        """The one that a request stands for."""
        return next(iter(self._rows("kind = ? AND person = ? AND name = ?", kind, person, name)), None)

    def all(self, *, state: str | None = None, person: str | None = None) -> list[Wish]:
        """All of them, the newest first; of one state, or one person."""
        given = [("state", state), ("person", person)]
        named = [(name, value) for name, value in given if value is not None]
        return self._rows(" AND ".join(f"{name} = ?" for name, _ in named) or "1 = 1", *(value for _, value in named))

    def settle(self, identity: str, state: _State, *, by: str, reason: str = "", outcome: str | None = None) -> None:
        """Say what became of one that is open.

        Raises PolicyError where it is not.
        """
        with self._store.writing() as write:
            done = write(
                "UPDATE wish SET state = ?, steward = ?, decided = ?, reason = ?, outcome = ? WHERE id = ? AND "
                "state = 'open'",
                state, by, write.time, reason, outcome, identity,
            )  # fmt: skip
            if done.rowcount != 1:
                raise PolicyError(f"the request {identity!r:.60} does not wait any more.")
            write.note(by, f"request {state}", request=identity, reason=reason)

    def reopen(self, identity: str, *, by: str) -> None:
        """Let one wait again whose yes could not be carried out; of somebody who was disabled meanwhile it is
        withdrawn, as all of his were that waited then.
        """
        with self._store.writing() as write:
            row = write(
                "SELECT person.state FROM wish JOIN person ON person.name = wish.person WHERE wish.id = ?", identity
            ).fetchone()
            state = "open" if row is not None and row[0] == "active" else "withdrawn"
            done = write(
                "UPDATE wish SET state = ?, steward = NULL, decided = NULL, reason = NULL, outcome = NULL WHERE id = ? "
                "AND state = 'granted'",
                state, identity,
            )  # fmt: skip
            if done.rowcount == 1:
                write.note(by, "request open again" if state == "open" else "request withdrawn", request=identity)

    def became(self, identity: str, outcome: str | None) -> None:
        """Note which question one became, or, by None, that its grant was made."""
        with self._store.writing() as write:
            write("UPDATE wish SET outcome = ? WHERE id = ?", outcome, identity)

    def remove_words(self, before: str, *, by: str) -> int:
        """Remove the words of questions that were decided, of those that were made before a time; of how many."""
        decided = "kind = 'question' AND state <> 'open' AND made < ?"
        old = [wish for wish in self._rows(decided, before) if wish.what["sql"] != REMOVED]
        if old:
            with self._store.writing() as write:
                for wish in old:
                    what = {**wish.what, "sql": REMOVED, "options": {}, "purpose": None}
                    write("UPDATE wish SET what = ? WHERE id = ?", json.dumps(what), wish.id)
                write.note(by, "words of requests removed", requests=len(old))
        return len(old)

    def _rows(self, where: str, *values: str) -> list[Wish]:
        rows = self._store.rows(f"SELECT {_COLUMNS} FROM wish WHERE {where} ORDER BY made DESC, id", *values)
        named = [dict(zip(_COLUMNS.split(", "), row, strict=True)) for row in rows]
        return [Wish(**{**row, "what": json.loads(row["what"])}) for row in named]
