"""What every account has spent and may spend, as it stands in one transaction.

An account's limit is its last allowance if there is one, else the ceiling; a block's is what it holds. A charge is
admitted if the sum after it lies within the limits of every account that pays (`hubbub.ledger.accounts`).

What was read once need not be read again while nobody else wrote: the chain's head tells, since every row has its link.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from hubbub.errors import PolicyError
from hubbub.ledger.accounts import (
    EACH_ANALYST,
    EVERYONE,
    TRAINING,
    Total,
    analyst_account,
    block_account,
    empty_filter,
    is_token,
    largest_question,
    read_amount,
    training_filter,
)
from hubbub.ledger.budget import Budget
from hubbub.ledger.hash_chain import Connection, Head, head_of, now_at, untrue
from hubbub.ledger.proofs import confirm, proofs_of
from hubbub.ledger.records import Allowance, Entry, believed
from hubbub.spelling import one_spelling

if TYPE_CHECKING:
    from hubbub.accounting import Cost, PureFilter, ZCDPFilter

__all__ = [
    "CEILING",
    "NAMED_NO_MORE",
    "NOTHING",
    "POLICY_AUTHOR",
    "AccountState",
    "Standing",
    "allowances_since",
    "known_budget",
    "latest_allowances",
    "moment",
    "stated_relation",
    "total_of",
    "totals_of",
]

CEILING: Final = "ceiling"
POLICY_AUTHOR: Final = "policy"
NAMED_NO_MORE: Final = "hubbub.toml names it no more"
_MANY: Final = 1000
NOTHING: Final = Total()

Filters: TypeAlias = "tuple[PureFilter | ZCDPFilter, ...]"


class Standing(NamedTuple):
    """One account: the filters that all of its charges together must pass, what bounds it, and what it has paid."""

    account: str
    filters: Filters
    allowance: Allowance | None
    paid: Total
    elsewhere: Total = NOTHING  # what it paid under other spellings of the space, which counts too

    def admits(self, cost: Cost) -> bool:
        """Whether one more charge of this cost fits; decided in exact rationals."""
        return self.holds(self.paid + Total.of(cost))

    def holds(self, total: Total) -> bool:
        """Whether a sum of charges under this spelling, with those under others, lies within every filter."""
        cost = (total + self.elsewhere).cost
        return all(full.holds(cost) for full in self.filters)

    @property
    def left(self) -> Fraction:
        """The largest epsilon at which one more question with pure noise fits."""
        return min(largest_question(full) for full in self.spent_filters)

    @property
    def spent_filters(self) -> Filters:
        """The filters, having spent what was paid."""
        return tuple(replace(full, spent=(self.paid + self.elsewhere).cost) for full in self.filters)


class AccountState:
    """The accounts of a ledger, read as they are asked for: from `begin` in one transaction, until `end`.

    alone: whether nobody else wrote since the last transaction that ended.
    """

    alone: bool

    def __init__(self) -> None:
        self._head: Head | None = None
        # Other spellings of a space: no ledger of this version gets a new one.
        self._twins: dict[str, list[str]] = {}
        self._forget()

    def begin(self, connection: Connection, head: Head | None) -> AccountState:
        """Read in this transaction from here on; forget what is no longer so."""
        self.alone = head is not None and head == self._head
        if head != self._head or len(self._totals) > _MANY:
            self._forget()
        self._head = None
        self.connection = connection
        return self

    def end(self, head: Head) -> None:
        """The transaction was committed, and the chain ends at `head`."""
        self._head = head

    def _forget(self) -> None:
        self._budgets: dict[str, Budget | None] = {}
        self._allowances: dict[tuple[str, str], Allowance | None] = {}
        self._limits: dict[tuple[str, str], tuple[Allowance | None, Filters]] = {}
        self._spelt: set[tuple[str, str]] = set()
        self._totals: dict[tuple[str, str], Total] = {}
        self._all_failed: dict[str, list[tuple[str, int]]] = {}
        self._failures: dict[tuple[str, str], int] = {}
        self._joint_failures: dict[tuple[str, int], int] = {}
        self._relations: dict[str, str | None] = {}

    def budget(self, space: str) -> Budget | None:
        """The budget of a space as it is now."""
        if space not in self._budgets:
            self._budgets[space] = known_budget(self.connection, space)
        return self._budgets[space]

    def standings(
        self, space: str, budget: Budget, accounts: Sequence[str], payer: tuple[str, str] | None, at: str
    ) -> list[Standing]:
        """Each account as it stands at the time `at`. payer: the block that pays, and the analyst who asks."""
        self._read(space, accounts if payer is None else [*accounts, analyst_account(payer[1]), EVERYONE])
        standings = []
        for account in accounts:
            key = space, account
            if payer is not None and account == block_account(payer[0]):
                filters = self._block(space, budget, *payer, at)
                standings.append(Standing(account, filters, None, self._totals[key]))
                continue
            if account == TRAINING:
                ended = self._allowance(space, account)
                own: Filters = (training_filter(budget, over=ended is not None),)  # type: ignore[assignment]  # `holds` alone
                standings.append(Standing(account, own, ended, self._totals[key]))
                continue
            known = self._limits.get(key)
            if known is None:
                allowance = self._allowance(space, account)
                limit = budget.for_questions
                if allowance is None and is_token(account):  # a cap that is not there holds nothing
                    limit = Fraction(0)
                if allowance is not None and allowance.epsilon is not None:
                    limit = min(limit, allowance.epsilon)
                known = self._limits[key] = (allowance, (empty_filter(budget, limit),))
            allowance, filters = known
            if allowance is not None and allowance.over(at):
                filters = (empty_filter(budget, Fraction(0)),)
            standings.append(Standing(account, filters, allowance, self._totals[key], self._elsewhere(space, account)))
        return standings

    def _elsewhere(self, space: str, account: str) -> Total:
        """What an account paid under other spellings of the same unit space, as a ledger of an older version has them.

        They are the same people's, so their sum counts, whichever of them a steward ended.
        """
        elsewhere = NOTHING
        for twin in self.spellings(space)[1:]:
            elsewhere += total_of(self.connection, twin, account)
        return elsewhere

    def spellings(self, space: str) -> list[str]:
        """The unit space as it is named, then its other spellings: one people, whichever a steward ended."""
        if space not in self._twins:
            known = self.connection.execute("SELECT name FROM unit_space").fetchall()
            same = one_spelling(space)
            self._twins[space] = [name for (name,) in known if name != space and _alike(name, same)]
        return [space, *self._twins[space]]

    def _named(self, space: str) -> tuple[str, list[str]]:
        """A condition that holds for every spelling of a unit space, and what it asks for."""
        spellings = self.spellings(space)
        return f"unit_space IN ({', '.join('?' * len(spellings))})", spellings

    def post(self, space: str, account: str, total: Total) -> None:
        """An account's sum is now this."""
        self._totals[space, account] = total

    def failures(self, space: str, analyst: str) -> int:
        """How many questions of an analyst failed in the engine, or died there, since a steward last looked."""
        key = space, analyst
        if key not in self._failures:
            failed = [serial for who, serial in self._failed(space) if who == analyst]
            if failed:
                here, names = self._named(space)
                (cleared,) = self.connection.execute(
                    f"SELECT coalesce(max(serial), 0) FROM clearance WHERE {here} AND analyst = ?", (*names, analyst)
                ).fetchone()
                failed = [serial for serial in failed if serial > cleared]
            self._failures[key] = len(failed)
        return self._failures[key]

    def _failed(self, space: str) -> list[tuple[str, int]]:
        """The failures in a space: of whom, and the line. Mostly there are none, and then nothing more is read."""
        if space not in self._all_failed:
            here, names = self._named(space)
            failed = self.connection.execute(
                # The failures first, which are few: SQLite keeps the order of a CROSS JOIN.
                "SELECT charge.analyst, step.serial, charge.serial FROM step CROSS JOIN charge WHERE "
                f"step.state IN ('failed', 'lost') AND charge.serial = step.charge AND charge.{here}",
                names,
            ).fetchall()
            confirm(self.connection, "step", *(line for _, line, _ in failed))
            confirm(self.connection, "charge", *{line for *_, line in failed})
            self._all_failed[space] = [(who, line) for who, line, _ in failed]
        return self._all_failed[space]

    def joint_failures(self, space: str, allowed: int) -> int:
        """How many questions of a space failed, of all analysts, since a steward last cleared the space.

        allowed: so many of one analyst, at most, between two clearances of his own: at his limit he adds no more.
        """
        key = space, allowed
        if not self._failed(space):
            return 0
        if key not in self._joint_failures:
            here, names = self._named(space)
            (looked,) = self.connection.execute(
                f"SELECT coalesce(max(serial), 0) FROM joint_clearance WHERE {here}", names
            ).fetchone()
            failed = [(who, serial) for who, serial in self._failed(space) if serial > looked]
            cleared = self.connection.execute(f"SELECT analyst, serial FROM clearance WHERE {here}", names).fetchall()
            counts = Counter((a, sum(who == a and at < serial for who, at in cleared)) for a, serial in failed)
            self._joint_failures[key] = sum(min(count, allowed) for count in counts.values())
        return self._joint_failures[key]

    def relation(self, space: str) -> str | None:
        """The neighbour relation that the space's losses are stated for; None before its first charge."""
        if space not in self._relations:
            rows = (
                self.connection.execute("SELECT neighbours FROM relation WHERE unit_space = ?", (name,)).fetchone()
                or _first_relation(self.connection, name)
                for name in self.spellings(space)
            )
            self._relations[space] = next((row[0] for row in rows if row is not None), None)
        return self._relations[space]

    def relate(self, space: str, neighbours: str) -> None:
        """The relation of a space is now recorded."""
        self._relations[space] = neighbours

    def check_spelling(self, space: str, account: str) -> None:
        """See that an analyst's account is not another spelling of one that has a limit: it would have none there.

        Raises:
            PolicyError: it is.
        """
        own = self._allowances.get((space, account))
        if (
            (space, account) in self._spelt
            or not account.startswith("analyst:")
            or not (own is None or _is_silence(own))
        ):
            return
        name = account.removeprefix("analyst:")
        said = self.connection.execute("SELECT DISTINCT account FROM allowance WHERE unit_space = ?", (space,))
        others = [a for (a,) in said.fetchall() if a != account and str(a).startswith("analyst:")]
        same = [a for a in others if _alike(a.removeprefix("analyst:"), one_spelling(name))]
        there = {} if not same else latest_allowances(self.connection, space, same)
        known = next((one.account for one in there.values() if not _is_silence(one)), None)
        if known is not None:
            raise PolicyError(
                f"the ledger has a limit for {known!r}, and the analyst who asks is called {name!r}: the limit would "
                f"not be kept. Ask as {known.removeprefix('analyst:')!r}, or let a steward give the other spelling a "
                f"limit of its own: `hubbub grant {account} --epsilon EPSILON`. Nothing was charged."
            )
        self._spelt.add((space, account))

    def _allowance(self, space: str, account: str) -> Allowance | None:
        own = self._allowances.get((space, account))
        if account.startswith("analyst:") and (own is None or _is_silence(own)):
            return self._allowances.get((space, EACH_ANALYST)) or own
        return own

    def _read(self, space: str, accounts: Iterable[str]) -> None:
        """Read sums and allowances of those accounts that are not known yet."""
        new = [account for account in accounts if (space, account) not in self._totals]
        if not new:
            return
        for account, total in zip(new, totals_of(self.connection, space, new), strict=True):
            self._totals[space, account] = total
        said = latest_allowances(self.connection, space, [*new, EACH_ANALYST])
        for account in (*new, EACH_ANALYST):
            self._allowances[space, account] = said.get(account)

    def _block(self, space: str, budget: Budget, block: str, analyst: str, at: str) -> Filters:
        """What a block still admits: questions of its own unit space, by the analyst who reserved it.

        It may have been admitted to the joint budget by its epsilon or by its rho alone, so its questions stay within
        both of what it holds. What is unspent of it ends with the analyst's right to spend: by revocation or expiry.
        """
        from hubbub.accounting import PureFilter, ZCDPFilter

        entry = _own_block(self.connection, space, block, analyst)
        self.check_spelling(space, analyst_account(analyst))
        for account in (analyst_account(analyst), EVERYONE):
            allowance = self._allowance(space, account)
            if allowance is not None and allowance.over(at):
                what = "was revoked" if allowance.epsilon is None else f"expired at {allowance.expires}"
                raise PolicyError(
                    f"the block {block!r} is reserved, but what {account!r} was granted {what}, and what is unspent of "
                    "a block ends with it. Ask the steward for a grant. Nothing was charged."
                )
        parts = json.loads(entry.details).get("parts")
        held = entry.spend if parts is None else Total.read(*parts)
        pure = PureFilter(epsilon=held.epsilon)
        if budget.pure:
            return (pure,)
        rho = ZCDPFilter(rho=held.rho, delta_threshold=held.delta)
        return (rho,) if held.impure else (pure, rho)


def _alike(name: object, spelling: str) -> bool:
    return isinstance(name, str) and one_spelling(name) == spelling


def _own_block(connection: Connection, space: str, block: str, analyst: str) -> Entry:
    """The open block that this analyst reserved in this space, or a PolicyError."""
    entry = believed(connection, block)
    problem = None
    if entry is None or entry.kind not in ("block", "plan"):
        problem = f"there is no reserved block {block!r}."
    elif entry.state == "closed":
        problem = f"the reserved block {block!r} is closed. Reserve another, or ask without one."
    elif entry.space != space:
        problem = (
            f"the reserved block {block!r} pays for the unit space {entry.space!r}, not for {space!r}. Ask without it. "
            "Nothing was charged."
        )
    elif entry.analyst != analyst:
        problem = f"the reserved block {block!r} belongs to another analyst. Nothing was charged."
    if entry is None or problem is not None:
        raise PolicyError(problem)
    return entry


def _first_relation(connection: Connection, space: str) -> tuple[str] | None:
    """The relation that the first question of a space was charged under, where its details say so."""
    row = connection.execute(
        "SELECT details FROM charge WHERE unit_space = ? AND kind = 'question' ORDER BY serial LIMIT 1", (space,)
    ).fetchone()
    said = None if row is None else stated_relation(row[0])
    return None if said is None else (said,)


def stated_relation(details: str) -> str | None:
    """The neighbour relation that a charge's details name."""
    if '"neighbours"' not in details:
        return None
    content = json.loads(details)
    said = content.get("neighbours") if isinstance(content, dict) else None
    return said if isinstance(said, str) else None


def known_budget(connection: Connection, space: str) -> Budget | None:
    """The budget of a space: as created, or as last raised."""
    if (proofs := proofs_of(connection)) is not None:
        proofs.look(connection)
    row = connection.execute(  # by the rows, whose links fit, and not by an index of them
        "SELECT unit_space.epsilon, unit_space.delta, delta_threshold, training.epsilon, training.delta "
        "FROM unit_space LEFT JOIN training ON training.unit_space || '' = unit_space.name WHERE name || '' = ?",
        (space,),
    ).fetchone()
    if row is None:
        return None
    raised = latest_allowances(connection, space, [CEILING]).get(CEILING)
    created = _budget_of(*row)
    if raised is None or raised.epsilon is None:
        return created
    threshold = created.delta_threshold or None
    return Budget(raised.epsilon, created.delta, delta_threshold=threshold, training=created.training)


@lru_cache(maxsize=64)
def _budget_of(
    epsilon: str, delta: str | None, threshold: str | None, own: str | None = None, share: str | None = None
) -> Budget:
    if delta is None or threshold is None:
        return Budget(read_amount(epsilon))
    training = None if own is None or share is None else (read_amount(own), read_amount(share))
    return Budget(read_amount(epsilon), read_amount(delta), delta_threshold=read_amount(threshold), training=training)


def latest_allowances(connection: Connection, space: str, accounts: Sequence[str]) -> dict[str, Allowance]:
    """What now holds for each of `accounts`, where anything was said.

    The last word counts; but what a steward ended, or gave until a time, the policy file does not bring back, and that
    it names an account no more changes nothing that a steward said. The file ends nothing: an end is a steward's.
    """
    marks = ", ".join("?" * len(accounts))
    said: dict[str, Allowance] = {}
    all_said = _allowances(connection, f"unit_space = ? AND account IN ({marks})", space, *accounts)
    if (proofs := proofs_of(connection)) is not None:
        proofs.look(connection)
        if [one.serial for one in all_said] != proofs.said(space, {*accounts}):
            raise untrue(f"limits of {space!r} are not all found")
    for one in all_said:
        before = said.get(one.account)
        stays = before is not None and (before.ends or (_is_silence(one) and before.author != POLICY_AUTHOR))
        if one.author != POLICY_AUTHOR or one.epsilon is None or not stays:
            said[one.account] = one
    return said


def _is_silence(said: Allowance) -> bool:
    """Whether it says that the policy file names an account no more, and nothing else."""
    return said.author == POLICY_AUTHOR and said.reason == NAMED_NO_MORE


def allowances_since(connection: Connection, space: str, account: str, serial: int) -> list[Allowance]:
    """All that was said about one account after a line of the ledger, in its order."""
    where = "unit_space = ? AND account = ? AND allowance.serial > ?"
    return _allowances(connection, where, space, account, serial)


def _allowances(connection: Connection, where: str, *values: str | int) -> list[Allowance]:
    rows = connection.execute(
        "SELECT unit_space, account, epsilon, expires, author, reason, journal.time, allowance.serial FROM allowance "
        f"JOIN journal ON journal.serial = allowance.serial WHERE {where} ORDER BY allowance.serial",
        values,
    ).fetchall()
    return [
        Allowance(space, account, None if epsilon is None else read_amount(epsilon), *rest)
        for space, account, epsilon, *rest in rows
    ]


def total_of(connection: Connection, space: str, account: str) -> Total:
    """The sum of what an account has paid: it stands in the last charge that was posted to it.

    Raises:
        PolicyError: it is not believed: it is not that of its last charge, or that charge is not the one that was
            written (`hubbub.ledger.proofs`).
    """
    (total,) = totals_of(connection, space, [account])
    return total


def totals_of(connection: Connection, space: str, accounts: Sequence[str]) -> list[Total]:
    """As `total_of`, of each account."""
    rows = connection.execute(
        "SELECT account.name, account.charge, charge.sums FROM account LEFT JOIN charge ON "
        f"charge.serial = account.charge WHERE account.unit_space = ? AND name IN ({', '.join('?' * len(accounts))})",
        (space, *accounts),
    ).fetchall()
    pointed = {name: (line, sums) for name, line, sums in rows}
    proofs = proofs_of(connection)
    if proofs is not None:
        proofs.look(connection)
    totals = []
    for account in accounts:
        line, sums = pointed.get(account, (0, None))
        total = NOTHING if account not in pointed else _posted(sums, space, account)
        if total is None or not isinstance(line, int):
            raise untrue(f"account {account!r} points to a charge that it did not pay")
        if proofs is not None:
            if not proofs.is_last(connection, space, account, line):
                raise untrue(f"account {account!r} paid for more charges than it points to")
            if line:
                proofs.confirm(connection, "charge", line)
        totals.append(total)
    return totals


def _posted(sums: object, space: str, account: str) -> Total | None:
    """The sum of an account in the text of a charge's sums; None where there is none."""
    with suppress(ValueError, TypeError):  # text that is not a list of sums
        for where, name, epsilon, rho, delta, impure in json.loads(str(sums)):
            if (where, name) == (space, account):
                return Total.read(epsilon, rho, delta, impure)
    return None


def moment(connection: Connection) -> str:
    """Now, but never before the last entry: setting a clock back does not bring a grant back."""
    return max(now_at(connection), head_of(connection).time)
