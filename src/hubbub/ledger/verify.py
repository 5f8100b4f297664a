"""Does a ledger still say what it said? The chain, the sums, and the lives of charges, checked from the first row on.

Found are: a row that was changed, added or moved; one that was removed from the middle; a sum that is not that of its
charges; a budget that is overspent; an answer without its charge; a life that cannot be.

Not found, with a key or without: that the end of the chain was cut off, or an older copy put back. What is left is a
chain that fits. Only a note from outside tells: a receipt, a head that the steward noted, or an anchor
(`hubbub.ledger.anchor`). Without a key, whoever can write the file can also compute another chain, and only such a note
tells that either.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from hubbub.errors import PolicyError
from hubbub.ledger.accounts import EVERYONE, TRAINING, Total, block_account, empty_filter, training_filter
from hubbub.ledger.anchor import ANCHOR, is_anchored
from hubbub.ledger.books import known_budget
from hubbub.ledger.charging import accounts_of
from hubbub.ledger.checkpoint import Checkpoint, Past
from hubbub.ledger.hash_chain import START, Connection, Head, link, linked_row, now
from hubbub.ledger.interrupts import let_in
from hubbub.ledger.keys import Epochs, current_check, epochs_of, key_at
from hubbub.ledger.schema import COLUMNS, HASHED
from hubbub.ledger.wording import WORDS, commitment, is_commitment
from hubbub.spelling import one_spelling

if TYPE_CHECKING:
    from hubbub.accounting import PureFilter, ZCDPFilter

__all__ = ["Verification", "verify"]

_ENOUGH: Final = 20
_HASH: Final = re.compile(r"[0-9a-f]{16,64}")
"""A hash of the chain, or enough of its beginning."""
_PIECE: Final = 1000  # lines that are read together
_Rows: TypeAlias = "dict[str, dict[int, Any] | None]"
_BEFORE: Final = {
    "withdrawn": ("charged", "retried", "drawing"),
    "lost": ("charged", "retried", "drawing"),
    "retried": ("charged", "withdrawn", "lost"),
    "drawing": ("charged", "retried"),
    "stored": ("drawing",),
    "shown": ("stored",),
    "failed": ("charged", "retried", "drawing"),
    "closed": ("charged",),
}


@dataclass(frozen=True)
class Verification:
    """What verifying found. problems: what is wrong, the first twenty; none in a sound ledger. notes: what a
    steward should know and is not damage. end: of a sound one, where a later walk may go on from."""

    rows: int
    serial: int
    head: str
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    end: Checkpoint | None = field(default=None, repr=False)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify(
    connection: Connection,
    key: bytes | None,
    receipt: Mapping[str, Any] | None,
    heads: Mapping[str, tuple[int, str]] | None = None,
    start: Checkpoint | None = None,
    told: Callable[[int], None] = lambda _: None,
) -> Verification:
    """Check a whole ledger, in one reading transaction; memory grows with the number of charges.

    heads: lines and their hashes that were noted outside, by what they are called. start: where an earlier walk ended
    that found nothing; what lies before it is taken for what it was then, and is not looked at. told: is told now and
    then how many lines were looked at.
    """
    walk = Walk(connection, key, start, told)
    places = dict(heads or {})
    if start is not None:
        places["the checkpoint"] = start.head.serial, start.head.hash
    problems = [*_some(walk.chain()), *_some(walk.rest()), *_some(_found(connection, receipt))]
    problems += _some(_noted(connection, places))
    notes = []
    if start is not None:
        notes.append(
            f"what stands before line {start.head.serial} was not looked at: the checkpoint of {start.head.time[:16]} "
            "is trusted for it"
        )
    if walk.head.time > (at := now()):
        notes.append(
            f"its last entry is of {walk.head.time[:16]} (UTC), and the clock says {at[:16]}: a clock was wrong then, "
            "or is now. The ledger's time never goes back, so every grant that ends before that entry is over; grant "
            "anew with a later end, or without one"
        )
    if is_anchored(connection) and ANCHOR not in places:
        notes.append(
            "it has an anchor, and was read without it: that its end was cut off, or an older copy put back, would not "
            "be found"
        )
    end = None if problems else walk.end()
    return Verification(walk.rows, walk.head.serial, walk.head.hash, tuple(problems[:_ENOUGH]), tuple(notes), end)


def _some(problems: Iterator[str]) -> Iterator[str]:
    for number, problem in enumerate(problems):
        if number == _ENOUGH:
            return
        yield problem


class Walk:
    """One pass over the journal, from its beginning or from where an earlier one ended."""

    def __init__(
        self,
        connection: Connection,
        key: bytes | None,
        start: Checkpoint | None = None,
        told: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._told = told
        self.ask = connection.execute
        self.connection = connection
        self.key = key
        self.epochs: Epochs = ((0, key),)
        self.removed: set[int] = set()  # the lines whose words a steward removed
        self.head = START if start is None else start.head
        self.rows = 0 if start is None else start.rows
        self.kinds = dict.fromkeys(HASHED, 0) | (dict(start.kinds) if start is not None else {})
        self.latest: dict[tuple[str, str], int] = {}
        self.totals: dict[tuple[str, str], Total] = {}
        for space, account, serial, total in () if start is None else start.accounts:
            self.latest[space, account], self.totals[space, account] = serial, total
        self.past = Past(connection, 0 if start is None else start.head.serial)
        self.states: dict[int, str] = {}
        self.spent: set[int] = set()  # the charges whose one free retry is over
        self.held: dict[str, Total] = {}
        self.asked: dict[str, tuple[int, Total, tuple[str, ...]] | None] = {}

    def end(self) -> Checkpoint:
        """Where it ended, for a later one to go on from."""
        accounts = [(*key, self.latest[key], total) for key, total in sorted(self.totals.items())]
        return Checkpoint(self.head, self.rows, dict(self.kinds), tuple(accounts))

    def chain(self) -> Iterator[str]:
        """Every link, and with it every row, its sums and its place in a life."""
        if current_check(self.connection) is not None and self.key is None:
            yield "the chain is keyed, and no key was given: name the key file to check it"
            return
        try:
            self.epochs = epochs_of(self.connection, self.key)
        except PolicyError as error:
            yield str(error)
            return
        self.removed = {line for (line,) in self.ask("SELECT line FROM redaction").fetchall()}
        for lines in self._lines():
            let_in()
            rows = self._rows(lines)
            for serial, time, kind, digest in lines:
                yield from self._line(serial, time, kind, digest, rows)
            yield from self._words(lines, rows)
            self._told(self.rows)

    def _line(self, serial: int, time: Any, kind: Any, digest: Any, rows: _Rows) -> Iterator[str]:
        if not (type(time) is type(kind) is type(digest) is str):
            yield f"line {serial}: it holds what no ledger writes"
            self.head, self.rows = Head(serial, self.head.time, ""), self.rows + 1
            return
        if serial != self.head.serial + 1:
            yield f"line {self.head.serial + 1}: missing, the next one is {serial}"
        if time < self.head.time:
            yield f"line {serial}: its time {time} lies before that of the line above"
        try:
            row = self._row(kind, serial, rows) if kind in self.kinds else None
            fits = row is not None and self._fits(time, kind, *row, digest)
        except (sqlite3.Error, TypeError, ValueError):  # bytes, or text that is none
            yield f"line {serial}: its {kind} holds what no ledger writes"
            self.kinds[kind] += 1
            self.head, self.rows = Head(serial, time, digest), self.rows + 1
            return
        if row is None:
            yield f"line {serial}: its row in {kind!r} is missing"
        else:
            self.kinds[kind] += 1
            values, postings = row
            if not fits:
                yield f"line {serial}: this {kind} or its link was changed"
            yield from self._meaning(kind, serial, dict(zip(COLUMNS[kind], values, strict=True)), postings)
        self.head = Head(serial, time, digest)
        self.rows += 1

    def _fits(self, time: str, kind: str, values: list[Any], postings: list[list[Any]], digest: str) -> bool:
        return link(self.head.hash, time, kind, [*linked_row(kind, values), *postings], self._key()) == digest

    def _key(self) -> bytes | None:
        """The key of the line after the last one that was looked at."""
        return key_at(self.epochs, self.head.serial + 1)

    def _words(self, lines: list[Any], rows: _Rows) -> Iterator[str]:
        """Whether the words of these lines are those that they commit to, and none is gone that nobody removed."""
        ask = "SELECT serial, salt, content FROM wording WHERE serial BETWEEN ? AND ?"
        try:
            kept = {serial: words for serial, *words in self.ask(ask, (lines[0][0], lines[-1][0])).fetchall()}
        except sqlite3.Error:
            yield f"line {lines[0][0]} to {lines[-1][0]}: their words cannot be read"
            return
        for kind in WORDS.keys() & rows.keys():
            at = COLUMNS[kind].index(WORDS[kind])
            for serial, row in (rows[kind] or {}).items():
                words = kept.pop(serial, None)
                if words is None and is_commitment(row[at]) and serial not in self.removed:
                    yield f"line {serial}: its words are gone, and nobody removed them"
                elif words is not None and commitment(*map(str, words)) != row[at]:
                    yield f"line {serial}: its words are not those that it commits to"
        if kept and None not in rows.values():
            yield f"line {min(kept)}: it commits to no words, and has some"

    def _lines(self) -> Iterator[list[Any]]:
        """The lines of the journal in pieces; one that cannot be read without its contents."""
        ask = "SELECT serial, time, kind, hash FROM journal"
        last = self.past.line or None
        while True:
            where, given = ("", ()) if last is None else (" WHERE serial > ?", (last,))
            try:
                lines = self.ask(f"{ask}{where} ORDER BY serial LIMIT {_PIECE}", given).fetchall()
            except sqlite3.Error:
                serials = self.ask(
                    f"SELECT serial FROM journal{where} ORDER BY serial LIMIT {_PIECE}", given
                ).fetchall()
                lines = [self._alone(serial) for (serial,) in serials]
            if not lines:
                return
            yield lines
            last = lines[-1][0]

    def _alone(self, serial: int) -> Any:
        try:
            return self.ask("SELECT serial, time, kind, hash FROM journal WHERE serial = ?", (serial,)).fetchone()
        except sqlite3.Error:
            return serial, None, None, None

    def _rows(self, lines: list[Any]) -> _Rows:
        """The rows of these lines, by kind: a few questions in place of one for each. None where they cannot be read
        together, as something in them is damaged."""
        by_serial: _Rows = {}
        for kind in {kind for _, _, kind, _ in lines if isinstance(kind, str)} & self.kinds.keys():
            ask = f"SELECT serial, {_columns(kind)} FROM {kind} WHERE serial BETWEEN ? AND ?"
            try:
                rows = self.ask(ask, (lines[0][0], lines[-1][0])).fetchall()
                by_serial[kind] = {serial: row for serial, *row in rows}
            except sqlite3.Error:
                by_serial[kind] = None
        return by_serial

    def _row(self, kind: str, serial: int, rows: _Rows) -> tuple[list[Any], list[list[Any]]] | None:
        together = rows.get(kind)
        if together is None:
            row = self.ask(f"SELECT {_columns(kind)} FROM {kind} WHERE serial = ?", (serial,)).fetchone()
        else:
            row = together.get(serial)
        if row is None:
            return None
        if kind != "charge":
            return list(row), []
        *values, written = row
        return values, _postings(written)

    def _meaning(self, kind: str, serial: int, row: dict[str, Any], postings: list[list[Any]]) -> Iterator[str]:
        try:
            match kind:
                case "charge":
                    yield from self._sums(serial, row, postings)
                case "step":
                    before = self._state(row["charge"])
                    if before not in _BEFORE.get(row["state"], ()):
                        yield f"line {serial}: a charge that is {before!r} became {row['state']!r}"
                    if row["state"] == "retried" and self._is_spent(row["charge"]):
                        yield f"line {serial}: a charge that was retried after it was retried or drawn"
                    if row["state"] in ("retried", "drawing"):
                        self.spent.add(row["charge"])
                    self.states[row["charge"]] = row["state"]
                case "release" | "silence" if self._state(row["charge"]) != "drawing":
                    yield f"line {serial}: an outcome without a charge that was drawing"
        except PolicyError as error:
            yield f"line {serial}: {error}"
        except (TypeError, ValueError, KeyError):
            yield f"line {serial}: this {kind} holds what no ledger writes"

    def _state(self, charge: int) -> str | None:
        return self.states[charge] if charge in self.states else self.past.state(charge)

    def _is_spent(self, charge: int) -> bool:
        return charge in self.spent or self.past.is_spent(charge)

    def _held(self, block: str) -> Total:
        if block not in self.held:
            self.held[block] = self.past.held(block)
        return self.held[block]

    def _question(self, charge_id: str) -> tuple[int, Total, tuple[str, ...]] | None:
        """A question or reading that may give something back; only once, after that it is none any more. Its line is 0
        for a reading, which is not drawn.
        """
        asked_with = self.asked[charge_id] if charge_id in self.asked else self.past.question(charge_id)
        self.asked[charge_id] = None
        return asked_with

    def _sums(self, serial: int, row: dict[str, Any], postings: list[list[Any]]) -> Iterator[str]:
        self.states[serial] = "charged"
        spend = Total.read(row["pure"], row["rho"], row["delta"], int(row["impure"]))
        space, block = row["unit_space"], row["block"]
        if row["kind"] in ("block", "plan"):
            self.held[row["id"]] = spend
        accounts = accounts_of(row["kind"], row["dataset"], row["analyst"], block, row["details"])
        if row["kind"] in ("question", "reading"):
            self.asked[row["id"]] = (serial if row["kind"] == "question" else 0, spend, accounts)
        back, of_question = Total(), None
        if row["kind"] == "return":
            of_question, back = self._question(block), self._held(block)
        if of_question is not None:
            asked, back, accounts = of_question
            if asked and self._state(asked) != "drawing":
                yield f"line {serial}: a charge gave back what it did not use, and was not being drawn"
            if not spend.is_within(back):
                yield f"line {serial}: what a charge used is more than was charged"
        if tuple(posting[1] for posting in postings) != accounts:
            yield f"line {serial}: this charge is not posted to the accounts that pay for it"
        before, after = None, Total()
        for _, account, *sums in postings:
            total = self.totals.get((space, account), Total())
            if total is not before:  # often two accounts have paid the same
                before = total
                after = total + spend - back if row["kind"] == "return" else total + spend
            if (*sums,) != after.written and Total.read(*sums) != after:
                yield f"line {serial}: the sum of {account!r} is not that of its charges"
            self.totals[space, account] = after
            self.latest[space, account] = serial
        if row["kind"] == "return" and of_question is None:
            used = self.totals.get((space, block_account(block)), Total())
            if used.within(back) != spend:
                yield f"line {serial}: what came back is not what the block left"

    def rest(self) -> Iterator[str]:
        """Rows that no link knows, and budgets that are overspent."""
        for kind, count in self.kinds.items():
            rows_there = self.ask(f"SELECT count(*) FROM {kind}").fetchone()[0]
            if rows_there != count:
                yield f"{kind}: {rows_there} rows, and {count} in the chain"
        pointed = {(space, name): at for space, name, at in self.ask("SELECT * FROM account").fetchall()}
        if pointed != self.latest:
            wrong = {name for (_, name), _ in set(pointed.items()) ^ set(self.latest.items())}
            yield f"account: the last charge of {', '.join(sorted(wrong))} is another one than it says"
        for (space, account), total in self.totals.items():
            try:
                budget = known_budget(self.connection, space)
            except (PolicyError, sqlite3.Error) as error:
                yield f"the budget of the unit space {space!r}: {error}"
                continue
            if budget is None:
                yield f"the unit space {space!r} has charges and no budget"
            elif account == TRAINING and not training_filter(budget).holds(total.cost):
                yield f"what the unit space {space!r} sets aside for training is overspent"
            elif account == EVERYONE and not empty_filter(budget, budget.epsilon).holds(total.cost):
                yield f"the unit space {space!r} is overspent"
            elif account == EVERYONE:
                yield from self._together(space, total, empty_filter(budget, budget.epsilon))

    def _together(self, space: str, total: Total, allowed: PureFilter | ZCDPFilter) -> Iterator[str]:
        """Other spellings of a unit space are the same people, and what was spent under them counts (`books`)."""
        twins = [name for name, account in self.totals if account == EVERYONE and name != space]
        twins = [name for name in twins if one_spelling(str(name)) == one_spelling(str(space))]
        for name in twins:
            total = total + self.totals[name, EVERYONE]
        if twins and not allowed.holds(total.cost):
            others = ", ".join(map(repr, sorted(twins)))
            yield f"the unit space {space!r} is overspent with what was spent under its other spellings, {others}"


def _columns(kind: str) -> str:
    return ", ".join(COLUMNS[kind]) + (", sums" if kind == "charge" else "")


def _postings(written: str) -> list[list[Any]]:
    """A charge's sums as they were written; none where somebody else wrote them."""
    try:
        postings = json.loads(written)
        return [[str(s), str(a), str(e), str(r), str(d), int(impure)] for s, a, e, r, d, impure in postings]
    except (ValueError, TypeError):
        return []


def _found(connection: Connection, receipt: Mapping[str, Any] | None) -> Iterator[str]:
    """Whether the links that a receipt names are still in the chain."""
    if receipt is None:
        return
    try:
        chain = receipt["chain"]
        # A receipt of the service holds hashes alone, and no head before its release.
        links = {"charge": chain["charge"]} | ({"head": chain["head"]} if "head" in chain else {})
        places = {what: (int(at["serial"]), str(at["hash"])) for what, at in links.items() if "serial" in at}
        hashes = {what: str(at["hash"]) for what, at in links.items() if "serial" not in at}
        name = str(chain["ledger"])
        if not all(
            _HASH.fullmatch(digest) for digest in [*hashes.values(), *(digest for _, digest in places.values())]
        ):
            raise ValueError("no hash")
    except (KeyError, TypeError, ValueError, OverflowError):
        raise PolicyError("this is not a receipt of a ledger: it names no link of a chain.") from None
    if connection.execute("SELECT id FROM ledger").fetchone()[0] != name:
        yield "the receipt is another ledger's"
        return
    yield from _noted(connection, {f"the receipt's {what}": place for what, place in places.items()})
    for what, digest in hashes.items():
        if connection.execute("SELECT 1 FROM journal WHERE hash = ?", (digest,)).fetchone() is None:
            yield f"the receipt's {what} is gone: the ledger was rewritten, or an earlier state was put back"


def _noted(connection: Connection, places: Mapping[str, tuple[int, str]]) -> Iterator[str]:
    for what, (serial, digest) in places.items():
        row = None
        if 0 < serial < 2**63:  # no ledger has another line
            row = connection.execute("SELECT hash FROM journal WHERE serial = ?", (serial,)).fetchone()
        if row is None:
            yield f"{what} (line {serial}) is gone: an earlier state of the ledger was put back"
        elif not _HASH.fullmatch(digest) or not row[0].startswith(digest):
            yield f"{what} (line {serial}) is another one now: the ledger was rewritten"
