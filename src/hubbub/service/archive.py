"""The archive of the clerk: what stewards and auditors read of the ledger. They are trusted with when runs ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from hubbub.errors import HubbubError
from hubbub.ledger.difference import differences
from hubbub.ledger.policy import Policy, load_policy
from hubbub.ledger.records import Entry
from hubbub.ledger.store import Ledger
from hubbub.ledger.verify import Verification
from hubbub.service.people.people import People
from hubbub.service.people.person import Person
from hubbub.service.walks import Walking, Walks

__all__ = ["Archive"]

_MOST: Final = 1000
_FAILED: Final = ("failed", "lost")


class Archive:
    """What was charged, what failed, what was done to whom, whether both chains are whole, and what the policy file
    says otherwise.

    walking: looks through the chain by a handle of its own. policy: what holds, to compare its file with.
    """

    def __init__(
        self, people: People, ledger: Ledger, *, walking: Walking | None = None, policy: Policy | None = None
    ) -> None:
        self._people, self._ledger, self.walking, self.policy = people, ledger, walking, policy
        self._walks = Walks()

    def incidents(self, person: Person) -> list[dict[str, Any]]:
        """The questions that had no answer, the newest first, and when somebody looked at why."""
        del person
        looked = {
            line["about"]["incident"]: line["time"]
            for line in self._people.store.acts_of("incident read")
            if "incident" in line["about"]
        }
        failed = [one for one in self._ledger.record.history() if one.state in _FAILED and one.incident is not None]
        return [
            {
                "incident": one.incident,
                "analyst": one.analyst,
                "space": one.space,
                "at": one.time,
                "looked_at": looked.get(str(one.incident)),
            }
            for one in reversed(failed)
        ]

    def incident(self, person: Person, *, incident: str) -> dict[str, Any]:
        """The engine's own words of a failure, which may hold values; that they were read is a line of the log."""
        words = self._ledger.record.incident_words(incident)
        self._people.store.note(person.name, "incident read", {"incident": incident})
        return {"incident": incident, "words": words}

    def policy_changes(self, person: Person) -> dict[str, Any]:
        """What the policy file says otherwise than what holds here, a sentence each. A change holds after a restart.

        problem: why the file cannot be read, or "".
        """
        del person
        if self.policy is None:
            return {"changes": [], "problem": ""}
        try:
            return {"changes": differences(self.policy, load_policy(self.policy.path)), "problem": ""}
        except HubbubError as error:
            return {"changes": [], "problem": str(error)}

    def charges(
        self, person: Person, *, after: int = 0, most: int = 200, analyst: str | None = None
    ) -> list[dict[str, Any]]:
        """Charges, the newest first. after: so many are left out. analyst: whose, where not everybody's."""
        del person
        entries = list(reversed(self._ledger.record.history(analyst=analyst)))
        return [_charge(one) for one in entries[max(0, after) : max(0, after) + max(1, min(most, _MOST))]]

    def audit(
        self, person: Person, *, after: int = 0, most: int = 1000, before: int | None = None
    ) -> list[dict[str, Any]]:
        """Lines of the log after one, oldest first; or before one, newest first."""
        del person
        return self._people.store.lines(after=after, most=max(1, min(most, 10_000)), before=before)

    def verify_audit(self, person: Person, *, head: str | None = None) -> dict[str, Any]:
        """Whether the log is whole. head: one that was kept elsewhere."""
        del person
        checked = self._people.store.verify(head=head)
        return {**asdict(checked), "problems": list(checked.problems), "sound": checked.sound}

    def chain(self, person: Person, *, receipt: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Whether the ledger is whole: links, sums and lives. receipt: one that was kept; its links must be there."""
        checked = self._ledger.record.verify(receipt)
        self._looked_through(person, checked)
        return self._found(checked)

    def _looked_through(self, person: Person, checked: Verification) -> None:
        self._people.store.note(person.name, "chain verified", {"links": checked.rows, "sound": checked.sound})

    def _found(self, checked: Verification) -> dict[str, Any]:
        return {
            "links": checked.rows,
            "head": checked.head,
            "sound": checked.sound,
            "problems": list(checked.problems),
            "notes": list(checked.notes),
            "at": self._people.store.moment(),
        }

    def begin_chain(
        self, person: Person, *, receipt: Mapping[str, Any] | None = None, head: str = ""
    ) -> dict[str, Any]:
        """Begin what `chain` does, and tell how far it is. head: a note about the log, for when it has ended."""
        walking = self.walking or (lambda kept, told: self._ledger.record.verify(kept, told=told))
        lines = self._ledger.chain.lines()
        ended = partial(self._looked_through, person)
        self._walks.begin(person.name, walking, lines=lines, receipt=receipt, head=head, ended=ended)
        return self.chain_walk(person)

    def chain_walk(self, person: Person) -> dict[str, Any]:
        """How far the last walk of this person is: of so many lines; and, once it has ended, what it found."""
        walk = self._walks.of(person.name)
        if walk is None:
            return {"state": "none"}
        told = {"done": min(walk.done, walk.lines), "lines": walk.lines, "head": walk.head, "receipt": walk.kept}
        if walk.problem:
            return {"state": "failed", **told, "problem": walk.problem}
        if walk.verified is None:
            return {"state": "walking", **told}
        return {"state": "done", **told, "found": self._found(walk.verified)}


def _charge(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "time": entry.time,
        "analyst": entry.analyst,
        "space": entry.space,
        "kind": entry.kind,
        "epsilon": str(entry.epsilon),
        "state": entry.state,
        "purpose": entry.purpose or "",
        "sql": entry.sql,
    }
