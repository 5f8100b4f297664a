"""What a ledger tells: charges, answers, receipts, refusals; and whether it still says what it said. Reads only."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from hubbub.errors import PolicyError
from hubbub.ledger import incidents
from hubbub.ledger.accounts import TOGETHER
from hubbub.ledger.anchor import ANCHOR
from hubbub.ledger.books import AccountState, moment
from hubbub.ledger.budget import decimal_text
from hubbub.ledger.checkpoint import Checkpoint
from hubbub.ledger.handle import Handle
from hubbub.ledger.hash_chain import Connection, head_of, untrue
from hubbub.ledger.process import is_gone
from hubbub.ledger.proofs import answers, see_row
from hubbub.ledger.readings import readers, reading
from hubbub.ledger.records import OPEN, Entry, Refusal, StoredRelease, answers_to, entries, paid_for, standing_of
from hubbub.ledger.schema import COLUMNS
from hubbub.ledger.verify import Verification, verify
from hubbub.ledger.wording import WORDS, shown, words_of

__all__ = ["Record"]


class Record:
    """What stands in a ledger. Nothing here changes it."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def history(self, space: str | None = None, *, since: str | None = None, analyst: str | None = None) -> list[Entry]:
        """Every charge, oldest first; of one unit space or analyst, or from a time on, if named."""
        wanted = {"unit_space = ?": space, "journal.time >= ?": since, "analyst = ?": analyst}
        given = {text: value for text, value in wanted.items() if value is not None}
        where = f"WHERE {' AND '.join(given)}" if given else ""
        with self._handle.reading() as connection:
            return entries(connection, where, *given.values())

    def entry(self, charge_id: str) -> Entry:
        """One charge, in full.

        Raises:
            PolicyError: there is no such charge.
        """
        with self._handle.reading() as connection:
            charges = entries(connection, "WHERE charge.id = ?", charge_id)
        if not charges:
            raise PolicyError(
                f"there is no charge {charge_id!r} in the ledger {self._handle.where}. `hubbub history` lists them."
            )
        return charges[0]

    def paid(self, entry: Entry) -> Entry:
        """The line that says what a charge cost: of one that gave back what it did not use, that of what it used."""
        with self._handle.reading() as connection:
            return paid_for(connection, entry)

    def release(self, charge_id: str) -> StoredRelease | None:
        """The answer that `charge_id` paid for; None if it never got that far.

        Raises:
            PolicyError: there is no such charge, or the answer is not the one that was stored.
        """
        entry = self.entry(charge_id)
        with self._handle.reading() as connection:
            stored = answers(connection, "charge.id = ?", charge_id)
            if stored:
                see_row(connection, entry.serial, id=charge_id)
        return StoredRelease(entry, stored[0][1]) if stored else None

    def find_release(
        self,
        *,
        space: str,
        question_key: str,
        at_least: Fraction,
        reader: str | None = None,
        token: str | None = None,
    ) -> StoredRelease | None:
        """The stored answer to this question that cost most, if any cost `at_least` or more.

        reader: whose limit would be charged for another's; where analysts do not share answers, his own alone is found.
        token: through which he reads it, where that has a cap. What is his own, or was read by him, comes first; then
        the dearest that his limits admit: a dearer one that somebody buys takes nothing away from him.
        """
        with self._handle.reading() as connection:
            whose_alone = None if self._handle.rules.shared_answers else reader
            ranked = sorted(answers_to(connection, space, question_key, at_least, whose_alone), reverse=True)
            if reader is not None and (token is not None or any(whose != reader for _, _, whose in ranked)):
                ranked.sort(key=lambda each: self._distance(connection, each[1], reader, token))
        stored = self.release(ranked[0][1]) if ranked else None
        if stored is not None and (stored.entry.space, stored.entry.question_key) != (space, question_key):
            raise untrue(f"charge in line {stored.entry.serial} is not the one that its index names")
        return stored

    def _distance(self, connection: Connection, charge_id: str, reader: str, token: str | None) -> int:
        """0 for a release that costs the reader nothing, 1 for one that his limits admit, 2 for others."""
        (entry,) = entries(connection, "WHERE charge.id = ?", charge_id)
        details = reading(connection, entry, reader, token)
        if details is None:
            return 0
        cost = paid_for(connection, entry).spend.cost
        books, accounts = AccountState().begin(connection, None), readers("reading", reader, details)
        budget = self._handle.budget(connection, entry.space)
        standings = books.standings(entry.space, budget, accounts, None, moment(connection))
        return 1 if all(standing.admits(cost) for standing in standings) else 2

    def has_read(self, release: Entry, reader: str, *, token: str | None = None) -> bool:
        """Whether reading this costs an analyst nothing: it is his own, or his limit was charged for it; and so was the
        cap of the token through which he reads it, if there is one.
        """
        with self._handle.reading() as connection:
            return reading(connection, release, reader, token) is None

    def bounds_found(self, *, space: str, analyst: str, version: str, token: str | None = None) -> list[str]:
        """The payloads of an analyst's answers to questions whose bounds were found, of these versions of the rows.

        token: through which he asks, where that has a cap: those alone that it has paid for.

        Raises:
            PolicyError: one is not the one that was stored.
        """
        with self._handle.reading() as connection:
            where = "unit_space = ? AND analyst = ? AND data_version = ? AND details LIKE ?"
            rows = answers(connection, where, space, analyst, version, '%"sums_to_bound"%')
            if token is not None:
                asked = {charge_id: entries(connection, "WHERE charge.id = ?", charge_id)[0] for charge_id, _ in rows}
                rows = [each for each in rows if reading(connection, asked[each[0]], analyst, token) is None]
        return [payload for _, payload in rows]

    def requested(self, *, space: str, analyst: str, request: str) -> Entry | None:
        """The charge that an idempotency key stands for, if it was used."""
        with self._handle.reading() as connection:
            charges = entries(
                connection, "WHERE unit_space = ? AND analyst = ? AND request = ?", space, analyst, request
            )
        return charges[0] if charges else None

    def await_release(self, charge_id: str, *, patience: float | None = None) -> StoredRelease | None:
        """The answer of a charge that another process or thread works on; None if it comes to nothing.

        patience: seconds to wait for it; by default the ledger's own.

        Raises:
            PolicyError: there is no such charge; or it is still under way after that, and may be answered yet.
        """
        deadline, pause = time.monotonic() + (self._handle.patience if patience is None else patience), 0.005
        while True:
            entry = self.entry(charge_id)
            if entry.state in ("stored", "shown"):
                return self.release(charge_id)
            if entry.state not in OPEN:
                return None
            if self._is_dead(entry):
                if self.entry(charge_id).state == entry.state:
                    return None
                continue  # it was stored, and its process ended, after the entry was read
            if time.monotonic() > deadline:
                raise PolicyError(
                    f"the very same question is under way ({charge_id}) and has no answer yet. This one waited for it "
                    "as long as it may. Nothing was charged for it: ask again later, and the answer is there."
                )
            time.sleep(pause)
            pause = min(pause * 1.5, 0.1)

    def _is_dead(self, entry: Entry) -> bool:
        with self._handle.reading() as connection:
            owner = standing_of(connection, entry.id)[2]
            return owner is None or is_gone(owner, entry.time, moment(connection))

    def open_blocks(self) -> list[Entry]:
        """The blocks that still hold budget, oldest first: `close_block` frees what they did not use."""
        with self._handle.reading() as connection:
            blocks = entries(connection, "WHERE charge.kind IN ('block', 'plan')")
        return [entry for entry in blocks if entry.state != "closed"]

    def receipt(self, charge_id: str) -> dict[str, Any]:
        """What was asked and run, what it cost, under which policy, on which data; and where the chain stood.

        Whoever keeps it can show later, with `verify`, that the ledger was rewritten or put back.

        Raises:
            PolicyError: there is no such charge.
        """
        entry = self.entry(charge_id)
        with self._handle.reading() as connection:
            head = head_of(connection)
            name = connection.execute("SELECT id FROM ledger").fetchone()[0]
        return {
            "id": entry.id,
            "time": entry.time,
            "kind": entry.kind,
            "state": entry.state,
            "analyst": entry.analyst,
            "sql": entry.sql,
            **({} if entry.purpose is None else {"purpose": entry.purpose}),
            "unit_space": entry.space,
            "dataset": entry.dataset,
            "data_version": entry.data_version,
            "policy": entry.policy,
            **self._looked_at(entry),
            "epsilon": decimal_text(entry.epsilon),
            "charged": {
                "epsilon": None if entry.spend.impure else decimal_text(entry.spend.epsilon),
                "rho": decimal_text(entry.spend.rho),
                "delta": decimal_text(entry.spend.delta),
                "to": "the joint budget" if entry.block is None else f"block {entry.block}",
            },
            "event": json.loads(entry.event),
            **json.loads(entry.details),
            "chain": {
                "ledger": name,
                "charge": {"serial": entry.serial, "hash": entry.hash},
                "head": {"serial": head.serial, "hash": head.hash},
            },
        }

    def _looked_at(self, entry: Entry) -> dict[str, list[str]]:
        """The tables asked about of which the policy says that somebody looked at their rows before he declared them.

        What is declared after a look depends on the rows, which is outside the proof.
        """
        try:
            tables = tomllib.loads(self.policy_text(entry.policy or "")).get("tables", {}) if entry.policy else {}
        except (PolicyError, ValueError):  # what a session in Python declares is no TOML
            return {}
        asked = set(entry.dataset.split(TOGETHER))
        looked_at = sorted(
            name for name, body in tables.items() if name in asked and body.get("looked_at_rows") is True
        )
        return {"looked_at_rows": looked_at} if looked_at else {}

    def refusals(self, *, since: str | None = None) -> list[Refusal]:
        """What was asked and did not fit, oldest first."""
        columns = ", ".join(
            words_of("refusal") if name == WORDS["refusal"] else f"refusal.{name}" for name in COLUMNS["refusal"]
        )
        with self._handle.reading() as connection:
            rows = connection.execute(
                f"SELECT journal.time, {columns} FROM refusal JOIN journal ON journal.serial = refusal.serial "
                "WHERE journal.time >= ? ORDER BY refusal.serial",
                (since or "",),
            ).fetchall()
        return [replace(told, sql=shown(told.sql)) for told in (Refusal(*row) for row in rows)]

    def policies(self) -> list[tuple[str, str]]:
        """The hash and the text of each policy under which something was asked."""
        with self._handle.reading() as connection:
            policies = connection.execute("SELECT hash, content FROM policy ORDER BY serial").fetchall()
        return [(str(digest), str(text)) for digest, text in policies]

    def policy_text(self, digest: str) -> str:
        """The policy with this hash; the beginning of one suffices.

        Raises:
            PolicyError: none or several are known.
        """
        with self._handle.reading() as connection:
            policies = connection.execute("SELECT hash, content FROM policy").fetchall()
        texts = [text for known, text in policies if digest and known.startswith(digest)]
        if len(texts) != 1:
            what = "no policy" if not texts else f"{len(texts)} policies"
            raise PolicyError(
                f"{what} with the hash {digest!r} in the ledger. `hubbub receipt ID` shows that of a charge."
            )
        return str(texts[0])

    def incident_words(self, incident: str) -> str:
        """What `keep_incident` kept.

        Raises:
            PolicyError: there is no such incident here, or it is not for this user to read.
        """
        return incidents.read(self._handle.path, incident)

    def verify(
        self,
        receipt: Mapping[str, Any] | None = None,
        *,
        head: tuple[int, str] | None = None,
        heads: Mapping[str, tuple[int, str]] | None = None,
        checkpoint: str | None = None,
        told: Callable[[int], None] = lambda _: None,
    ) -> Verification:
        """Walk the whole chain, add up every sum, check every life; and find a receipt's links in it, and a head.

        head: a line and its hash (16 characters of it suffice) that were noted before. Without such a note, or an
        anchor, nothing tells that the end of the chain was cut off or an older copy put back. heads: several of them,
        by what they are called, as a witness keeps them. checkpoint: what
        `checkpoint` wrote of an earlier walk; what stands before it is trusted, and not looked at. told: is told now
        and then how many lines were looked at.

        Raises:
            PolicyError: the ledger cannot be read, or the checkpoint is not one of it.
        """
        with self._handle.reading() as connection:
            heads = {**(heads or {}), **({} if head is None else {"the head that was noted": head})}
            if (at := self._handle.anchored()) is not None:
                heads[ANCHOR] = at
            start = None if checkpoint is None else Checkpoint.read(checkpoint, self._handle.id, self._handle.key)
            return verify(connection, self._handle.key, receipt, heads, start, told)

    def checkpoint(self, verified: Verification) -> str:
        """Where a walk ended that found nothing, as text that is kept outside the ledger, for a later one.

        Raises:
            PolicyError: it found something.
        """
        if verified.end is None:
            raise PolicyError("only the walk over a ledger that is sound ends in a checkpoint.")
        return verified.end.text(self._handle.id, self._handle.key)

    def export(self) -> Iterator[str]:
        """Every row with its link, as lines of JSON, in the order of the chain, with the words that it commits to.

        Read in pieces, between which others may write: what was appended since comes too, nothing else changes.
        """
        last = 0
        while piece := self._piece(last):
            yield from piece
            last += len(piece)

    def _piece(self, last: int) -> list[str]:
        with self._handle.reading() as connection:
            links = connection.execute(
                "SELECT serial, time, kind, hash FROM journal WHERE serial > ? ORDER BY serial LIMIT 1000", (last,)
            ).fetchall()
            return [_exported(connection, *each) for each in links]

    def integrity(self) -> str:
        """'ok', or what is wrong with the store below the rows.

        Raises:
            PolicyError: it cannot be read at all.
        """
        return self._handle.store.integrity()

    def backup(self, target: Path) -> None:
        """Write one whole state of the ledger to a new file.

        Raises:
            PolicyError: the target exists or cannot be written, or the ledger lives in Postgres, which has `pg_dump`.
        """
        self._handle.store.backup(target)


def _exported(connection: Connection, serial: int, time: str, kind: str, digest: str) -> str:
    """One row with its link, without the ledger's own secret, by which fingerprints are keyed; a charge with the sums
    that its link holds too.
    """
    columns = (*COLUMNS[kind], "sums") if kind == "charge" else COLUMNS[kind]
    row = connection.execute(f"SELECT {', '.join(columns)} FROM {kind} WHERE serial = ?", (serial,)).fetchone()
    if row is None:
        raise PolicyError(
            f"line {serial} of the ledger has lost its row in {kind!r}: `hubbub ledger verify` tells more."
        )
    public = {k: v for k, v in zip(columns, row, strict=True) if k != "secret"}
    words = connection.execute("SELECT salt, content FROM wording WHERE serial = ?", (serial,)).fetchone()
    kept = {} if words is None else {"words": {"salt": words[0], "text": words[1]}}
    return json.dumps({"serial": serial, "time": time, "kind": kind, "row": public, **kept, "hash": digest})
