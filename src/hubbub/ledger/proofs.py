"""What a charge is decided by, compared with the chain before it is believed: sums, limits and budgets.

`verify` looks at every line of a ledger; a question looks at those that decide it, so that one flipped bit gives
nothing back. A sum is believed if no later charge names its account, and if the link of the charge that holds it fits.
So an account that nothing points to has paid nothing only once all charges were looked through. Limits and budgets are
few, as are clearances: the links of all of them are computed, and no limit may be missing that an index should find.
Nor may a row be gone whose line stands: lines and rows are counted.

Where a step decides (a block is closed or is not, a question was drawn or may be taken over, it failed), its link fits,
and so does that of the charge. That a charge has no step needs more: a step that now names another charge would be
missed. So where that gives something (a draw, or what a block holds), the links of all steps since the charge are
computed.

An answer that is stored is given if it is the one that its line commits to, and the link of that line fits.

Lines are never changed, so each is looked at once in a process, as long as the chain still holds the last one that was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

from hubbub.ledger.hash_chain import START, Connection, Head, Value, head_of, link, linked_row, untrue
from hubbub.ledger.keys import Epochs, key_at
from hubbub.ledger.schema import COLUMNS
from hubbub.ledger.wording import commitment, is_commitment

__all__ = ["Proofs", "answers", "confirm", "confirm_steps", "proofs_of", "see_row"]

_DECIDING: Final = ("unit_space", "training", "relation", "allowance", "clearance", "joint_clearance")
_COUNTED: Final = (*_DECIDING, "step", "release", "schedule", "silence")  # of these no row may be gone
_PIECE: Final = 1000  # lines that are read together
_SOME: Final = 500  # lines that are named in one statement


def proofs_of(connection: Connection) -> Proofs | None:
    """What is known of the ledger that a transaction belongs to; None of a connection that no ledger opened."""
    proofs: Proofs | None = getattr(connection, "proofs", None)
    return proofs


class Proofs:
    """What one process has looked at of one ledger; used inside the transactions of its store, one at a time.

    keys: those of the chain. has_key: whether the present one is among them; without it no link can be computed, and
    nothing is charged.
    """

    def __init__(self) -> None:
        self.keys: Callable[[], Epochs] = lambda: ((0, None),)
        self.has_key: Callable[[Connection], bool] = lambda _: False
        self._forget()

    def _forget(self) -> None:
        self._head: Head | None = None  # up to here all is known, but for the charges up to the line `_floor`
        self._floor = 0
        self._latest: dict[tuple[str, str], int] = {}  # the last charge that names an account
        self._said: dict[tuple[str, str], list[int]] = {}  # the lines that say what an account may spend
        self._fitting: set[tuple[str, int]] = set()  # kinds and lines of rows whose link fits
        self._steps: tuple[int, int] | None = None  # after the first line and up to the second all steps fit

    def look(self, connection: Connection) -> None:
        """Look at what was written since the last look.

        Raises:
            PolicyError: a line that decides is not the one that was written.
        """
        head = head_of(connection)
        if head == self._head:
            return
        if self._head is not None and not _holds(connection, self._head):
            self._forget()
        if self._head is None:
            for kind in _DECIDING:
                self._note(self._confirmed(connection, kind, f"{kind}.serial > 0"), kind)
            _count(connection)
            self._floor = head.serial
        else:
            self._go_on(connection, self._head.serial)
        self._head = head

    def _go_on(self, connection: Connection, last: int) -> None:
        """Look at the lines after `last`."""
        lines = connection.execute("SELECT serial, kind FROM journal WHERE serial > ?", (last,)).fetchall()
        new = {kind: {serial for serial, its_kind in lines if its_kind == kind} for kind in {k for _, k in lines}}
        latest = _named(connection, last, None) if "charge" in new else {}
        charges = connection.execute("SELECT serial FROM charge WHERE serial > ?", (last,)).fetchall()
        if {serial for (serial,) in charges} != new.get("charge", set()):
            raise untrue("last lines lack one of charge")
        for kind in new.keys() & set(_COUNTED):
            if kind in _DECIDING:
                rows = self._confirmed(connection, kind, f"{kind}.serial > ?", last)
                self._note(rows, kind)
            else:
                rows = connection.execute(f"SELECT serial FROM {kind} WHERE serial > ?", (last,)).fetchall()
            if {serial for serial, *_ in rows} != new[kind]:
                raise untrue(f"last lines lack one of {kind}")
        self._latest |= latest

    def _note(self, rows: Sequence[Sequence[Any]], kind: str) -> None:
        for serial, space, account, *_ in rows if kind == "allowance" else ():
            lines = self._said.setdefault((space, account), [])
            if not lines or serial > lines[-1]:
                lines.append(serial)

    def said(self, space: str, accounts: Iterable[str]) -> list[int]:
        """The lines that say what these accounts may spend, in their order."""
        return sorted(line for account in accounts for line in self._said.get((space, account), ()))

    def is_last(self, connection: Connection, space: str, account: str, charge: int) -> bool:
        """Whether no charge after this line names the account. charge: 0 where nothing points to one."""
        first = charge
        if not charge and account.startswith("block:"):  # nothing is paid from a block before it is reserved
            row = connection.execute("SELECT serial FROM charge WHERE id = ?", (account.removeprefix("block:"),))
            (first,) = row.fetchone() or (0,)
        if first < self._floor:
            for top, bottom in pairwise([*range(self._floor, first, -_PIECE), first]):
                self._latest = _named(connection, bottom, top) | self._latest
                self._floor = bottom
        return self._latest.get((space, account), 0) <= charge

    def confirm(self, connection: Connection, kind: str, *lines: int) -> None:
        """See that the links of rows of `kind` fit.

        Raises:
            PolicyError: one does not.
        """
        self.look(connection)
        new = [line for line in lines if (kind, line) not in self._fitting]
        for start in range(0, len(new), _SOME):
            some = new[start : start + _SOME]
            self._confirmed(connection, kind, f"{kind}.serial IN ({', '.join('?' * len(some))})", *some)
            self._fitting.update((kind, line) for line in some)

    def confirm_steps(self, connection: Connection, since: int) -> None:
        """See that the link of every step after a line fits: none of them belongs to another charge than it says.

        Raises:
            PolicyError: one does not.
        """
        self.look(connection)
        last = head_of(connection).serial
        low, high = (last, last) if self._steps is None else self._steps
        for start in [*range(high, last, _PIECE), *range(since, low, _PIECE)]:
            end = min(start + _PIECE, last if start >= high else low)
            where = "step.serial > ? AND step.serial <= ?"
            rows = self._confirmed(connection, "step", where, start, end)
            (lines,) = connection.execute(
                "SELECT count(*) FROM journal WHERE kind = 'step' AND serial > ? AND serial <= ?", (start, end)
            ).fetchone()
            if len(rows) != lines:
                raise untrue(f"lines from {start + 1} to {end} lack one of step")
        self._steps = min(since, low), last

    def _confirmed(self, connection: Connection, kind: str, where: str, *values: Value) -> list[Sequence[Any]]:
        """The rows of `kind` that `where` selects, each with its line before it, once their links fit."""
        columns = [*COLUMNS[kind], "sums"] if kind == "charge" else COLUMNS[kind]
        rows = connection.execute(
            f"SELECT {kind}.serial, {', '.join(f'{kind}.{column}' for column in columns)}, above.hash, line.time, "
            f"line.kind, line.hash FROM {kind} LEFT JOIN journal AS line ON line.serial = {kind}.serial LEFT JOIN "
            f"journal AS above ON above.serial = {kind}.serial - 1 WHERE {where} ORDER BY {kind}.serial",
            values,
        ).fetchall()
        epochs, at = self.keys(), len(columns) + 1
        for row in rows:
            if not _fits(kind, row[0], row[1:at], row[at:], epochs):
                if not self.has_key(connection):  # none was given, or the chain got another one since
                    break
                raise untrue(f"line {row[0]}, of {kind}, is not the one that its link was made of")
        return [row[:at] for row in rows]


def confirm(connection: Connection, kind: str, *lines: int) -> None:
    """As `Proofs.confirm`, of the ledger that a transaction belongs to."""
    if lines and (proofs := proofs_of(connection)) is not None:
        proofs.confirm(connection, kind, *lines)


def confirm_steps(connection: Connection, since: int) -> None:
    """As `Proofs.confirm_steps`, of the ledger that a transaction belongs to."""
    if (proofs := proofs_of(connection)) is not None:
        proofs.confirm_steps(connection, since)


def answers(connection: Connection, where: str, *values: Value) -> list[tuple[str, str]]:
    """The charges that `where` selects and that are answered, oldest first: the id and the words of the answer of each.

    Raises:
        PolicyError: words are not those that their line commits to, or the line is not the one that was written.
    """
    rows = connection.execute(
        "SELECT charge.id, charge.serial, release.serial, release.payload, w.salt, w.content FROM charge "
        "JOIN release ON release.charge = charge.serial LEFT JOIN wording AS w ON w.serial = release.serial "
        f"WHERE {where} ORDER BY charge.serial",
        values,
    ).fetchall()
    for charge, serial, line, row, salt, words in rows:
        if words is None and is_commitment(row):
            raise untrue(f"answer in line {line} has lost its words")
        if words is not None and commitment(str(salt), str(words)) != row:
            raise untrue(f"answer in line {line} is not the one that was given")
        its = connection.execute("SELECT charge FROM release WHERE serial = ?", (line,)).fetchone()
        if its is None or its[0] != serial:
            raise untrue(f"answer in line {line} is not that of line {serial}")
        see_row(connection, serial, id=charge)
        confirm(connection, "charge", serial)
        confirm(connection, "release", line)
    return [(charge, row if words is None else words) for charge, _, _, row, _, words in rows]


def see_row(connection: Connection, serial: int, **columns: Value) -> None:
    """See that a charge that an index named is the one that was looked for: SQLite believes the index, not the row.

    serial: its line, by which it is read again, without any index. columns: what was looked for.

    Raises:
        PolicyError: its row says another thing.
    """
    names = ", ".join(columns)
    row = connection.execute(f"SELECT {names} FROM charge WHERE serial = ?", (serial,)).fetchone()
    if row is None or tuple(row) != tuple(columns.values()):
        raise untrue(f"charge in line {serial} is not the one that its index names")


def _holds(connection: Connection, head: Head) -> bool:
    row = connection.execute("SELECT hash FROM journal WHERE serial = ?", (head.serial,)).fetchone()
    return head == START or (row is not None and row[0] == head.hash)


def _count(connection: Connection) -> None:
    """See that no row of a line that decides is gone: lines that stand without theirs would give back what they say."""
    lines = dict(connection.execute("SELECT kind, count(*) FROM journal GROUP BY kind").fetchall())
    ask = " UNION ALL ".join(f"SELECT '{kind}', count(*) FROM {kind}" for kind in ("charge", *_COUNTED))
    for kind, rows in connection.execute(ask).fetchall():
        if rows != lines.get(kind, 0):
            raise untrue(f"lines of {kind} are {lines.get(kind, 0)}, and its rows are {rows}")


def _fits(kind: str, serial: Any, row: Sequence[Any], line: Sequence[Any], epochs: Epochs) -> bool:
    above, time, its_kind, digest = line
    try:
        *values, sums = [*row] if kind == "charge" else [*row, "[]"]
        content = [*linked_row(kind, values), *json.loads(sums)]
        made = link(START.hash if serial == 1 else above, time, kind, content, key_at(epochs, serial))
    except (TypeError, ValueError):  # bytes, or text that is none
        return False
    return bool(its_kind == kind and digest == made)


def _named(connection: Connection, after: int, until: int | None) -> dict[tuple[str, str], int]:
    """The last charge, of those after one line and until another, that names an account."""
    end, values = ("", (after,)) if until is None else (" AND serial <= ?", (after, until))
    rows = connection.execute(f"SELECT serial, sums FROM charge WHERE serial > ?{end} ORDER BY serial", values)
    try:
        return {(space, name): line for line, sums in rows.fetchall() for space, name, *_ in json.loads(sums)}
    except (TypeError, ValueError):
        raise untrue("charges have sums that no ledger writes") from None
