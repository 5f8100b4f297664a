"""The questions that are open: charged, and neither answered nor given up. Each may still turn out to fail.

That a process died while its question ran tells about the rows, and nobody can keep it from being seen. So it is
bounded beforehand, by what may be under way. Let F failures of an analyst count, O of his questions be open, and
`max_failures` be m. A fresh question is admitted where none of his is open in another process, or F + O < m.

So either F + O <= m, and no more than m failures are ever seen, or all that is open is one process's. That one tells at
most m failures of the engine (what is under way at the lock is withdrawn, `hubbub.ledger.life`), and dies once. In all
at most m + 1 are seen between two clearances, however many processes ask together and die together.

Analysts may collude, so the same is bounded for all of them together, by processes: one dies once, whatever it runs,
and counts at most `max_failures` failures of each analyst. Let F failures of a unit space count, questions about it be
open in P processes, and `max_failures_all` be M. A process that has none open is admitted where F + P < M; one that has
waits for nobody. So of processes that die together no more than M deaths are seen with the failures before them. What
engines fail meanwhile is withheld at the lock: in all fewer than 2 M are seen between two clearances. One analyst has
questions open in at most `max_failures` processes, so he alone cannot keep the others out before the joint count is
that near to its limit, where he could as well lock everybody by failing.

A space counts under every spelling that a ledger of an older version has of it, as its sums do: one people. What is
open is read from the chain once, then line by line as it grows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hubbub.ledger.process import is_gone, this_process
from hubbub.ledger.records import OPEN, check_state
from hubbub.spelling import one_spelling

if TYPE_CHECKING:
    from hubbub.ledger.hash_chain import Connection

__all__ = ["OpenQuestion", "UnderWay", "dead"]


@dataclass(frozen=True)
class OpenQuestion:
    """One that is under way: its charge's line, whose it is, and since when its process was last heard of."""

    serial: int
    space: str
    analyst: str
    owner: str
    since: str

    @property
    def people(self) -> str:
        """Its unit space, whatever its spelling."""
        return one_spelling(str(self.space))


class UnderWay:
    """The open questions of a ledger, as of the last `look`."""

    def __init__(self) -> None:
        self._open: dict[int, OpenQuestion] = {}
        self._counts: dict[tuple[str, str], Counter[str]] = {}  # of an analyst in a space: how many, by their processes
        self._processes: dict[str, Counter[str]] = {}  # of a space: how many, by their processes
        self._seen = -1  # the last line that was looked at
        self._fresh: list[OpenQuestion] = []  # of the transaction under way

    def look(self, connection: Connection) -> UnderWay:
        """Take in what was committed since; before anything is written in a transaction.

        Raises:
            PolicyError: a step is of a state that no ledger writes.
        """
        self._fresh.clear()
        if self._seen < 0:
            rows = connection.execute(_ALL).fetchall()
            self._seen = int(connection.execute("SELECT coalesce(max(serial), 0) FROM journal").fetchone()[0])
        else:
            rows = connection.execute(_NEW, (self._seen, self._seen)).fetchall()
        for line, serial, state, owner, space, analyst, since in rows:
            before = self._close(int(serial))
            check_state(int(serial), state)
            if state in OPEN:
                holder = before.owner if before is not None and state == "drawing" else owner
                if holder is not None:  # as it is where a ledger of the first version was
                    self._note(OpenQuestion(int(serial), space, analyst, holder, since))
            self._seen = max(self._seen, int(line))
        return self

    def _close(self, serial: int) -> OpenQuestion | None:
        entry = self._open.pop(serial, None)
        if entry is not None:
            for counts in (self._counts[entry.people, entry.analyst], self._processes[entry.people]):
                counts[entry.owner] -= 1
                if not counts[entry.owner]:
                    del counts[entry.owner]
        return entry

    def _note(self, question: OpenQuestion) -> None:
        self._open[question.serial] = question
        self._counts.setdefault((question.people, question.analyst), Counter())[question.owner] += 1
        self._processes.setdefault(question.people, Counter())[question.owner] += 1

    def add(self, question: OpenQuestion) -> None:
        """One that is charged in this transaction, which may not be committed."""
        self._fresh.append(question)

    @property
    def all(self) -> list[OpenQuestion]:
        """Those that were open at the last look, by their lines."""
        return sorted(self._open.values(), key=lambda question: question.serial)

    def blocks(self, space: str, analyst: str, owner: str, free: int) -> int:
        """How many open questions of an analyst are in the way of one more, of the process `owner`; 0 if none.

        free: so many failures of his may still be seen.
        """
        people = one_spelling(space)
        counts: Counter[str] = self._counts.get((people, analyst), Counter())
        fresh = [one.owner for one in self._fresh if (one.people, one.analyst) == (people, analyst)]
        blocks = sum(counts.values()) + len(fresh)
        return blocks if blocks >= free and any(other != owner for other in (*counts, *fresh)) else 0

    def keeps_out(self, space: str, owner: str, free: int) -> int:
        """How many processes have questions open, if they are in the way of one of the process `owner`; 0 if not.

        free: so many failures of all analysts together may still be seen.
        """
        people = one_spelling(space)
        keepers = {*self._processes.get(people, ()), *(one.owner for one in self._fresh if one.people == people)}
        return len(keepers) if owner not in keepers and len(keepers) >= free else 0


def dead(questions: Iterable[OpenQuestion], at: str) -> list[int]:
    """Of the questions that are open, the lines of those whose process died."""
    here = this_process().rsplit("/", 2)[0] + "/"
    gone: dict[str, bool] = {}
    serials: list[int] = []
    for question in questions:
        owner, since = question.owner, question.since
        key = owner if owner.startswith(here) else f"{owner} {since}"  # here, how long ago it was matters nothing
        if key not in gone:
            gone[key] = owner != this_process() and is_gone(owner, since, at)
        if gone[key]:
            serials.append(question.serial)
    return serials


_COLUMNS: Final = "charge.unit_space, charge.analyst, journal.time"
_ALL: Final = (
    "SELECT charge.serial, charge.serial, coalesce(last.state, 'charged'), coalesce((SELECT owner FROM step WHERE "
    "step.charge = charge.serial AND step.owner IS NOT NULL ORDER BY step.serial DESC LIMIT 1), charge.owner), "
    f"{_COLUMNS} FROM charge LEFT JOIN step AS last ON last.serial = "
    "(SELECT max(serial) FROM step WHERE step.charge = charge.serial) "
    "JOIN journal ON journal.serial = coalesce(last.serial, charge.serial) "
    "WHERE charge.kind = 'question' AND charge.owner IS NOT NULL "
    "AND (last.state IS NULL OR last.state NOT IN ('withdrawn', 'lost', 'stored', 'shown', 'failed', 'closed')) "
    "ORDER BY charge.serial"
)
_NEW: Final = (
    f"SELECT charge.serial, charge.serial, 'charged', charge.owner, {_COLUMNS} FROM charge "
    "JOIN journal ON journal.serial = charge.serial WHERE charge.serial > ? AND charge.kind = 'question' UNION ALL "
    f"SELECT step.serial, step.charge, step.state, coalesce(step.owner, charge.owner), {_COLUMNS} FROM step "
    "JOIN charge ON charge.serial = step.charge JOIN journal ON journal.serial = step.serial "
    "WHERE step.serial > ? AND charge.kind = 'question' ORDER BY 1"
)
