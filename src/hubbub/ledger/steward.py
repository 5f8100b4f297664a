"""The steward's half of the ledger: grants and limits, refreshes, clearances, receipts, and what was refused.

**Grants.** An allowance says what an account may spend *in all*: the last one counts, from its expiry on nothing more
may be spent, and a revocation ends it at once. It can lie anywhere up to the ceiling of the unit space, and touches
only what is unspent. Raising the ceiling itself is possible, recorded, and a different promise to the people in the
data: `raise_ceiling` says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from hubbub.errors import ParameterError, PolicyError
from hubbub.ledger import anchor
from hubbub.ledger.accounts import EACH_ANALYST, EVERYONE, read_amount, write_amount
from hubbub.ledger.books import CEILING, POLICY_AUTHOR, AccountState, latest_allowances
from hubbub.ledger.budget import Budget, decimal_text, parse_epsilon
from hubbub.ledger.checkpoint import Checkpoint
from hubbub.ledger.handle import anchored_beyond, checked_text
from hubbub.ledger.hash_chain import Connection, Writer, head_of
from hubbub.ledger.records import Allowance, Entry, Refusal, entries
from hubbub.ledger.schema import COLUMNS
from hubbub.ledger.verify import Verification, verify
from hubbub.ledger.versions import Versions

__all__ = ["Steward", "moment_of"]


class Steward(Versions):
    """What a steward does with a ledger. Part of `Ledger`."""

    def grant(
        self,
        space: str,
        account: str,
        epsilon: Fraction | int | float | str,
        *,
        until: str | date | datetime | None = None,
        author: str,
        reason: str = "",
    ) -> Allowance:
        """Let an account of `space` spend `epsilon` in all, what it has spent included.

        Args:
            space: the unit space.
            account: `analyst:NAME`, `analyst:*` for each analyst without a grant, `table:NAME`, or `everyone`.
            epsilon: the limit, at most the ceiling of the space.
            until: when it ends: a date (its beginning, UTC) or a time; None: never.
            author: who grants it.
            reason: why, for the record.

        Raises:
            ParameterError: epsilon, the account or the time is none.
            PolicyError: epsilon lies above the ceiling, or the space has no budget.
        """
        amount = parse_epsilon(epsilon)
        ends = None if until is None else moment_of(until)
        _check_author(author)
        _check_account(account)
        with self._writing() as writer:
            if ends is not None and ends <= writer.time:
                raise PolicyError(
                    f"a grant until {ends[:16]} is over before it begins: the ledger's time is {writer.time[:16]} "
                    "(UTC), which is that of its last entry where the clock is behind it. Give a later end, or none."
                )
            ceiling = self._budget(writer.connection, space).epsilon
            if amount > ceiling:
                raise PolicyError(
                    f"a grant of epsilon {decimal_text(amount)} lies above the ceiling of the unit space {space!r}, "
                    f"{decimal_text(ceiling)}. Grant {decimal_text(ceiling)} or less."
                )
            _allow(writer, space, account, amount, ends, author, reason)
        return self._allowance(space, account)

    def revoke(self, space: str, account: str, *, author: str, reason: str = "") -> Allowance:
        """Let an account spend nothing more. What it has spent, and its stored answers, stay.

        Raises:
            ParameterError: there is no such kind of account.
            PolicyError: the space has no budget.
        """
        _check_account(account)
        _check_author(author)
        with self._writing() as writer:
            self._budget(writer.connection, space)
            _allow(writer, space, account, None, None, author, reason)
        return self._allowance(space, account)

    def raise_ceiling(self, space: str, epsilon: Fraction | int | float | str, *, author: str, reason: str) -> Budget:
        """Raise the ceiling of a space: a weaker promise than the people in the data were given, on the record.

        Raises:
            PolicyError: the new ceiling is not above the old one, or no reason is given.
        """
        amount = parse_epsilon(epsilon)
        _check_author(author)
        if not reason.strip():
            raise PolicyError("raising a ceiling weakens the promise that was made: give the reason, for the record.")
        with self._writing() as writer:
            old = self._budget(writer.connection, space).epsilon
            if amount <= old:
                raise PolicyError(
                    f"the ceiling of the unit space {space!r} is {decimal_text(old)}; found {decimal_text(amount)}, "
                    "which is not above it. A ceiling is not lowered: grant less to `everyone` instead."
                )
            _allow(writer, space, CEILING, amount, None, author, reason)
        with self._reading() as connection:
            return self._budget(connection, space)

    def allowances(self, space: str) -> list[Allowance]:
        """What was last said about each account of `space`, raised ceilings included, by account."""
        with self._reading() as connection:
            return _all_allowances(connection, space)

    def policy_limits(self, space: str) -> dict[str, Fraction]:
        """The limits that the policy file gave, by account, as last recorded."""
        with self._reading() as connection:
            self._budget(connection, space)
            found = _policy_records(connection, space)
        return {account: amount for account, (amount, reason) in found.items() if reason == _NAMED}

    def record_limits(self, space: str, limits: Mapping[str, Fraction], *, author: str = POLICY_AUTHOR) -> list[str]:
        """Record the policy's limits where they changed; the accounts concerned.

        One that equals the default is a limit too.

        A limit that is gone is the ceiling, and an analyst's own that is gone is what each analyst may spend.

        Raises:
            PolicyError: a limit lies above the ceiling.
        """
        changed = []
        with self._writing() as writer:
            budget = self._budget(writer.connection, space)
            before = _policy_records(writer.connection, space)
            for account in sorted(before.keys() | limits.keys()):
                amount = limits.get(account, _default_limit(account, limits, budget))
                if amount > budget.epsilon:
                    raise PolicyError(
                        f"the limit of {account}, epsilon {decimal_text(amount)}, lies above the ceiling of the unit "
                        f"space {space!r}, {decimal_text(budget.epsilon)}."
                    )
                reason = _NAMED if account in limits else _NAMED_NO_MORE
                if before.get(account) != (amount, reason):
                    _allow(writer, space, account, amount, None, author, reason)
                    changed.append(account)
        return changed

    def policy_differs(self, space: str, limits: Mapping[str, Fraction]) -> list[str]:
        """The accounts that the policy's limits let spend another amount than those that were last recorded."""
        with self._reading() as connection:
            budget = self._budget(connection, space)
            known = {account: amount for account, (amount, _) in _policy_records(connection, space).items()}
        return sorted(
            account
            for account in known.keys() | limits.keys()
            if known.get(account, _default_limit(account, known, budget))
            != limits.get(account, _default_limit(account, limits, budget))
        )

    def unlock(self, space: str, analyst: str, *, author: str) -> None:
        """Clear an analyst's engine failures, after looking at the incidents.

        Raises:
            PolicyError: the space has no budget.
        """
        with self._writing() as writer:
            self._budget(writer.connection, space)
            writer.append("clearance", space, checked_text(analyst, "analyst"), checked_text(author, "author"))

    def unlock_all(self, space: str, *, author: str) -> None:
        """Clear the failures that lock a unit space for everybody. Analysts at their own limits stay locked.

        Raises:
            PolicyError: the space has no budget.
        """
        with self._writing() as writer:
            self._budget(writer.connection, space)
            writer.append("joint_clearance", space, checked_text(author, "author"))

    def failures(self, space: str) -> dict[str | None, tuple[int, int]]:
        """How many questions failed that count, and how many may: of each analyst, and of all together under None.

        Raises:
            PolicyError: the space has no budget.
        """
        with self._reading() as connection:
            self._budget(connection, space)
            books = AccountState().begin(connection, None)
            names = books.spellings(space)
            found = connection.execute(
                "SELECT DISTINCT charge.analyst FROM step CROSS JOIN charge WHERE step.state IN ('failed', 'lost') AND "
                f"charge.serial = step.charge AND charge.unit_space IN ({', '.join('?' * len(names))}) "
                "ORDER BY charge.analyst",
                names,
            ).fetchall()
            joint = books.joint_failures(space, self._max_failures)
            counted: dict[str | None, tuple[int, int]] = {None: (joint, self._max_failures_all)}
            for (analyst,) in found:
                counted[analyst] = books.failures(space, analyst), self._max_failures
        return counted

    def refusals(self, *, since: str | None = None) -> list[Refusal]:
        """What was asked and did not fit, oldest first."""
        columns = ", ".join(f"refusal.{name}" for name in COLUMNS["refusal"])
        with self._reading() as connection:
            found = connection.execute(
                f"SELECT journal.time, {columns} FROM refusal JOIN journal ON journal.serial = refusal.serial "
                "WHERE journal.time >= ? ORDER BY refusal.serial",
                (since or "",),
            ).fetchall()
        return [Refusal(*row) for row in found]

    def receipt(self, charge_id: str) -> dict[str, Any]:
        """What was asked and run, what it cost, under which policy, on which data; and where the chain stood.

        Whoever keeps it can show later, with `verify`, that the ledger was rewritten or put back.

        Raises:
            PolicyError: there is no such charge.
        """
        entry = self.entry(charge_id)
        with self._reading() as connection:
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

    def verify(
        self,
        receipt: Mapping[str, Any] | None = None,
        *,
        head: tuple[int, str] | None = None,
        checkpoint: str | None = None,
    ) -> Verification:
        """Walk the whole chain, add up every sum, check every life; and find a receipt's links in it, and a head.

        head: a line and its hash (16 characters of it suffice) that were noted before. Without such a note, or an
        anchor, nothing tells that the end of the chain was cut off or an older copy put back. checkpoint: what
        `checkpoint` wrote of an earlier walk; what stands before it is trusted, and not looked at.

        Raises:
            PolicyError: the ledger cannot be read, or the checkpoint is not one of it.
        """
        with self._reading() as connection:
            heads = {} if head is None else {"the head that was noted": head}
            if self._anchor is not None and (at := anchor.read(self._anchor, self.id, self._key)) is not None:
                heads[anchor.ANCHOR] = at
            start = None if checkpoint is None else Checkpoint.read(checkpoint, self.id, self._key)
            return verify(connection, self._key, receipt, heads, start)

    def checkpoint(self, found: Verification) -> str:
        """Where a walk ended that found nothing, as text that is kept outside the ledger, for a later one.

        Raises:
            PolicyError: it found something.
        """
        if found.end is None:
            raise PolicyError("only the walk over a ledger that is sound ends in a checkpoint.")
        return found.end.text(self.id, self._key)

    def remove_anchor(self, *, author: str) -> None:
        """Record that the ledger has no anchor any more, so that it may be opened without one. The file stays.

        Raises:
            PolicyError: no anchor was named, or the ledger does not hold its line.
        """
        if self._anchor is None:
            raise PolicyError(_NO_ANCHOR)
        with self._writing() as writer:
            writer.append("anchoring", 0, checked_text(author, "author"))

    def make_anchor(self, *, accept_older: bool = False, author: str = "hubbub") -> int:
        """Make the anchor anew, at the ledger's present head; the line that it names.

        accept_older: also where the ledger ends before the line that the anchor names, and what was spent since is
        forgotten. author: who says so; from here on the ledger is not opened without it.

        Raises:
            PolicyError: no anchor was named, or the ledger does not hold its line.
        """
        if self._anchor is None:
            raise PolicyError(_NO_ANCHOR)
        with self._writing(anchored=False) as writer:
            before = None if accept_older else anchor.read(self._anchor, self.id, self._key)
            head = writer.head
            if before is not None and not anchor.stands(writer.connection, before):
                raise PolicyError(anchored_beyond(self.where, self._anchor, before[0], head))
            anchor.write(self._anchor, self.id, self._key, head, patience=self._patience, back=True)
        self._note_anchor(checked_text(author, "author"))
        return head.serial

    def export(self) -> Iterator[str]:
        """Every row with its link, as lines of JSON, in the order of the chain. Payloads of releases are included.

        Read in pieces, between which others may write: what was appended since comes too, nothing else changes.
        """
        last = 0
        while piece := self._piece(last):
            yield from piece
            last += len(piece)

    def _piece(self, last: int) -> list[str]:
        with self._reading() as connection:
            links = connection.execute(
                "SELECT serial, time, kind, hash FROM journal WHERE serial > ? ORDER BY serial LIMIT 1000", (last,)
            ).fetchall()
            return [_exported(connection, *each) for each in links]

    def accounts(self, space: str) -> list[str]:
        """The accounts of `space` that anything was charged to, sorted."""
        with self._reading() as connection:
            found = connection.execute(
                "SELECT name FROM account WHERE unit_space = ? ORDER BY name", (space,)
            ).fetchall()
        return [account for (account,) in found]

    def integrity(self) -> str:
        """'ok', or what is wrong with the store below the rows.

        Raises:
            PolicyError: it cannot be read at all.
        """
        return self._database.integrity()

    def backup(self, target: Path) -> None:
        """Write one whole state of the ledger to a new file.

        Raises:
            PolicyError: the target exists or cannot be written, or the ledger lives in Postgres, which has `pg_dump`.
        """
        self._database.backup(target)

    def entry(self, charge_id: str) -> Entry:
        """One charge, in full.

        Raises:
            PolicyError: there is no such charge.
        """
        with self._reading() as connection:
            found = entries(connection, "WHERE charge.id = ?", charge_id)
        if not found:
            raise PolicyError(
                f"there is no charge {charge_id!r} in the ledger {self.where}. `hubbub history` lists them."
            )
        return found[0]

    def _allowance(self, space: str, account: str) -> Allowance:
        with self._reading() as connection:
            return latest_allowances(connection, space, [account])[account]


def moment_of(when: str | date | datetime) -> str:
    """A date or time as the ledger writes it, in UTC; a date means its beginning.

    >>> moment_of("2026-12-31")
    '2026-12-31T00:00:00.000000Z'

    Raises:
        ParameterError: it is neither.
    """
    try:
        found = datetime.fromisoformat(when) if isinstance(when, str) else when
    except ValueError:
        raise ParameterError(
            f"{when!r} is neither a date nor a time. Write one such as 2026-12-31 or 2026-12-31T18:00."
        ) from None
    if not isinstance(found, datetime):
        found = datetime(found.year, found.month, found.day)
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    return found.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _exported(connection: Connection, serial: int, time: str, kind: str, digest: str) -> str:
    """One row with its link, without the ledger's own secrets; a charge with the sums that its link holds too."""
    columns = (*COLUMNS[kind], "sums") if kind == "charge" else COLUMNS[kind]
    row = connection.execute(f"SELECT {', '.join(columns)} FROM {kind} WHERE serial = ?", (serial,)).fetchone()
    if row is None:
        raise PolicyError(
            f"line {serial} of the ledger has lost its row in {kind!r}: `hubbub ledger verify` tells more."
        )
    public = {k: v for k, v in zip(columns, row, strict=True) if k not in ("secret", "fingerprint")}
    return json.dumps({"serial": serial, "time": time, "kind": kind, "row": public, "hash": digest})


def _check_account(account: str) -> None:
    kind, colon, name = account.partition(":")
    if account != EVERYONE and not (kind in ("analyst", "table") and colon and name):
        raise ParameterError(
            f"{account!r} is not an account. Accounts are 'everyone', 'analyst:NAME', 'analyst:*' and 'table:NAME'."
        )


def _check_author(author: str) -> None:
    """The policy file speaks under a name of its own, so that its limits are known from a steward's."""
    if author == POLICY_AUTHOR:
        raise ParameterError(
            f"author={author!r} is the name under which the policy file's limits are recorded: give another."
        )


def _allow(
    writer: Writer, space: str, account: str, amount: Fraction | None, ends: str | None, author: str, reason: str
) -> None:
    texts = checked_text(account, "account"), checked_text(author, "author"), checked_text(reason, "reason")
    ratio = None if amount is None else write_amount(amount)
    writer.append("allowance", space, texts[0], ratio, ends, texts[1], texts[2])


def _all_allowances(connection: Connection, space: str) -> list[Allowance]:
    accounts = connection.execute(
        "SELECT DISTINCT account FROM allowance WHERE unit_space = ? ORDER BY account", (space,)
    ).fetchall()
    if not accounts:
        return []
    return list(latest_allowances(connection, space, [account for (account,) in accounts]).values())


_NO_ANCHOR: Final = "no anchor is named: write `anchor` into the policy's [ledger]."
_NAMED: Final = "hubbub.toml"
_NAMED_NO_MORE: Final = "hubbub.toml names it no more"


def _policy_records(connection: Connection, space: str) -> dict[str, tuple[Fraction, str]]:
    """What the policy file last gave each account, and whether it named the account then."""
    found = connection.execute(
        "SELECT account, epsilon, reason FROM allowance WHERE unit_space = ? AND author = ? AND epsilon IS NOT NULL "
        "ORDER BY serial",
        (space, POLICY_AUTHOR),
    ).fetchall()
    return {account: (read_amount(epsilon), reason) for account, epsilon, reason in found}


def _default_limit(account: str, limits: Mapping[str, Fraction], budget: Budget) -> Fraction:
    """What an account may spend that has no limit of its own."""
    if account.startswith("analyst:") and account != EACH_ANALYST:
        return limits.get(EACH_ANALYST, budget.epsilon)
    return budget.epsilon
