"""The steward's half of the ledger: grants and limits, refreshes, clearances, receipts, and what was refused.

**Grants.** An allowance says what an account may spend *in all*: the last one counts, from its expiry on nothing more
may be spent, and a revocation ends it at once. It can lie anywhere up to the ceiling of the unit space, and touches
only what is unspent. Raising the ceiling itself is possible, recorded, and a different promise to the people in the
data: `raise_ceiling` says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Final

from hubbub.errors import ParameterError, PolicyError
from hubbub.ledger import anchor
from hubbub.ledger.accounts import EVERYONE, write_amount
from hubbub.ledger.allowances import NAMED, NAMED_NO_MORE, default_limit, policy_records
from hubbub.ledger.books import CEILING, POLICY_AUTHOR, latest_allowances
from hubbub.ledger.budget import Budget, decimal_text, parse_epsilon
from hubbub.ledger.charge import checked_text
from hubbub.ledger.closing import close_what_is_open
from hubbub.ledger.handle import Handle, anchored_beyond
from hubbub.ledger.hash_chain import Writer
from hubbub.ledger.records import Allowance, entries
from hubbub.ledger.removing import remove_words, removed_before
from hubbub.ledger.versions import CHANGED, FIRST, issue, version_of

__all__ = ["Steward", "moment_of"]


_NO_ANCHOR: Final = "no anchor is named: write `anchor` into the policy's [ledger]."


class Steward:
    """What a steward does with a ledger."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

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
        """Set an account's total limit in `space` to `epsilon`; what it has already spent counts toward it.

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
        with self._handle.writing() as writer:
            if ends is not None and ends <= writer.time:
                raise PolicyError(
                    f"a grant until {ends[:16]} is over before it begins: the ledger's time is {writer.time[:16]} "
                    "(UTC), which is that of its last entry where the clock is behind it. Give a later end, or none."
                )
            ceiling = self._handle.budget(writer.connection, space).epsilon
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
        with self._handle.writing() as writer:
            self._handle.budget(writer.connection, space)
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
        with self._handle.writing() as writer:
            old = self._handle.budget(writer.connection, space).epsilon
            if amount <= old:
                raise PolicyError(
                    f"the ceiling of the unit space {space!r} is {decimal_text(old)}; found {decimal_text(amount)}, "
                    "which is not above it. A ceiling is not lowered: grant less to `everyone` instead."
                )
            _allow(writer, space, CEILING, amount, None, author, reason)
        with self._handle.reading() as connection:
            return self._handle.budget(connection, space)

    def record_limits(self, space: str, limits: Mapping[str, Fraction], *, author: str = POLICY_AUTHOR) -> list[str]:
        """Record the policy's limits where they changed; the accounts concerned.

        One that equals the default is a limit too.

        A limit that is gone is the ceiling, and an analyst's own that is gone is what each analyst may spend.

        Raises:
            PolicyError: a limit lies above the ceiling.
        """
        changed = []
        with self._handle.writing() as writer:
            budget = self._handle.budget(writer.connection, space)
            before = policy_records(writer.connection, space)
            for account in sorted(before.keys() | limits.keys()):
                amount = limits.get(account, default_limit(account, limits, budget))
                if amount > budget.epsilon:
                    raise PolicyError(
                        f"the limit of {account}, epsilon {decimal_text(amount)}, lies above the ceiling of the unit "
                        f"space {space!r}, {decimal_text(budget.epsilon)}."
                    )
                reason = NAMED if account in limits else NAMED_NO_MORE
                if before.get(account) != (amount, reason):
                    _allow(writer, space, account, amount, None, author, reason)
                    changed.append(account)
        return changed

    def unlock(self, space: str, analyst: str, *, author: str) -> None:
        """Clear an analyst's engine failures, after looking at the incidents.

        Raises:
            PolicyError: the space has no budget.
        """
        with self._handle.writing() as writer:
            self._handle.budget(writer.connection, space)
            writer.append("clearance", space, checked_text(analyst, "analyst"), checked_text(author, "author"))

    def unlock_all(self, space: str, *, author: str) -> None:
        """Clear the failures that lock a unit space for everybody. Analysts at their own limits stay locked.

        Raises:
            PolicyError: the space has no budget.
        """
        with self._handle.writing() as writer:
            self._handle.budget(writer.connection, space)
            writer.append("joint_clearance", space, checked_text(author, "author"))

    def refresh(self, space: str, dataset: str, *, reason: str = "declared") -> str:
        """Declare that the data set has new rows: its new version. No budget comes back.

        Raises:
            PolicyError: the space has no budget.
        """
        with self._handle.writing() as writer:
            self._handle.budget(writer.connection, space)
            known = version_of(writer.connection, space, dataset)
            reason = f"declared: {reason}" if reason in (FIRST, CHANGED) else reason
            return issue(writer, space, dataset, reason, None if known is None else known[1])

    def remove_anchor(self, *, author: str) -> None:
        """Record that the ledger has no anchor any more, so that it may be opened without one. The file stays.

        Raises:
            PolicyError: no anchor was named, or the ledger does not hold its line.
        """
        if self._handle.anchor is None:
            raise PolicyError(_NO_ANCHOR)
        with self._handle.writing() as writer:
            writer.append("anchoring", 0, checked_text(author, "author"))

    def make_anchor(self, *, accept_older: bool = False, author: str = "hubbub") -> int:
        """Make the anchor anew, at the ledger's present head; the line that it names.

        accept_older: also where the ledger ends before the line that the anchor names. What was spent since is not
        known, so nothing that it takes for left may be spent (`close_what_is_open`), until a steward grants it anew.
        author: who says so; from here on the ledger is not opened without it.

        Raises:
            PolicyError: no anchor was named, or the ledger does not hold its line.
        """
        if self._handle.anchor is None:
            raise PolicyError(_NO_ANCHOR)
        with self._handle.writing(anchored=False) as writer:
            head, before = writer.head, self._before(writer, accept_older)
            if before is None:
                self._handle.move_anchor(head, back=True)
            else:
                why = f"an older copy was accepted: its anchor named line {before}"
                close_what_is_open(writer, head, author=author, reason=why)
                head = writer.head
        if before is not None:  # until it is moved back, the ledger is refused; then it has nothing left
            self._handle.move_anchor(head, back=True)
        self._handle.note_anchor(checked_text(author, "author"))
        return head.serial

    def _before(self, writer: Writer, accept_older: bool) -> int | None:
        """The line that the anchor names, where the ledger does not hold it."""
        at, where = self._handle.anchored(), self._handle.anchor
        if at is None or where is None or anchor.stands(writer.connection, at):
            return None
        if not accept_older:
            raise anchored_beyond(self._handle.where, where, at[0], writer.head)
        return at[0]

    def accept_older(self, *, author: str, reason: str, anchor_at: Path | None = None) -> int:
        """Close what this ledger takes for open, since it may lack what was charged last; the line where it ended.

        anchor_at: its anchor, which then names its head. The ledger was opened without it.

        Raises:
            PolicyError: the anchor cannot be written.
        """
        with self._handle.writing(anchored=False) as writer:
            known = writer.head
            close_what_is_open(writer, known, author=author, reason=reason)
            head = writer.head
        if anchor_at is not None:
            self._handle.anchor = anchor_at
            self._handle.move_anchor(head, back=True)
            self._handle.note_anchor(author)
        return known.serial

    def rekey(self, new: bytes, *, author: str) -> int:
        """Give the chain another key, or its first one; the line from which on it holds. No link changes.

        Whoever has the ledger open with the key before records nothing more. The new key verifies the whole chain.

        Raises:
            PolicyError: the key is shorter than 16 bytes, or is the present one.
        """
        if len(new) < 16:
            raise PolicyError(f"the new key has {len(new)} bytes; allowed are 16 or more, from a random source.")
        if new == self._handle.key:
            raise PolicyError("this is the ledger's key already: give another.")
        return self._handle.rekey(new, checked_text(author, "author"))

    def redact(self, charge_id: str, *, author: str) -> int:
        """Remove the text of a question; how many lines lost their words. The chain verifies as before.

        Amounts, times, the analyst, the answer and the question's hash stay: an answer that is stored is found by it.

        Raises:
            PolicyError: there is no such charge; it is under way; or an older hubbub wrote its words into its line.
        """
        with self._handle.writing() as writer:
            charges = entries(writer.connection, "WHERE charge.id = ?", charge_id)
            if not charges:
                raise PolicyError(f"there is no charge {charge_id!r} in the ledger {self._handle.where}.")
            lines = remove_words(writer, charges[0], author)
        self._handle.store.forget()
        return lines

    def redact_before(self, time: str, *, author: str) -> int:
        """Remove the text of every question and refusal before a time, in UTC; how many lines lost their words."""
        with self._handle.reading() as connection:
            old = connection.execute(
                "SELECT 1 FROM wording JOIN journal ON journal.serial = wording.serial WHERE journal.time < ? AND "
                "journal.kind <> 'release'",
                (time,),
            ).fetchone()
        if old is None:
            return 0
        with self._handle.writing() as writer:
            lines = removed_before(writer, time, author)
        self._handle.store.forget()
        return lines

    def _allowance(self, space: str, account: str) -> Allowance:
        with self._handle.reading() as connection:
            return latest_allowances(connection, space, [account])[account]


def moment_of(when: str | date | datetime) -> str:
    """A date or time as the ledger writes it, in UTC; a date means its beginning.

    >>> moment_of("2026-12-31")
    '2026-12-31T00:00:00.000000Z'

    Raises:
        ParameterError: it is neither.
    """
    try:
        moment = datetime.fromisoformat(when) if isinstance(when, str) else when
        if not isinstance(moment, datetime):
            moment = datetime(moment.year, moment.month, moment.day)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError, AttributeError):  # AttributeError: it has no year
        raise ParameterError(
            f"{when!r} is not a date as ISO 8601 writes it, nor a time. Write the year first, as in 2026-12-31 or "
            "2026-12-31T18:00 (UTC)."
        ) from None
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _check_account(account: str) -> None:
    kind, colon, name = account.partition(":")
    if account != EVERYONE and not (kind in ("analyst", "table", "token") and colon and name):
        raise ParameterError(
            f"{account!r} is not an account. Accounts are 'everyone', 'analyst:NAME', 'analyst:*', 'table:NAME' and "
            "'token:ID'."
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
