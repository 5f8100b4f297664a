"""What the ledger tells: charges, releases, allowances, refusals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, get_args

from hubbub.errors import InternalError, PolicyError
from hubbub.ledger.accounts import Total, read_amount
from hubbub.ledger.hash_chain import Connection, Value, untrue
from hubbub.ledger.proofs import confirm, confirm_steps, see_row
from hubbub.ledger.wording import shown, words_of

__all__ = [
    "Allowance",
    "Entry",
    "IsStored",
    "Kind",
    "Refusal",
    "State",
    "StoredRelease",
    "answers_to",
    "believed",
    "check_state",
    "entries",
    "entries_to",
    "paid_for",
    "standing_of",
]

State: TypeAlias = Literal["charged", "withdrawn", "lost", "retried", "drawing", "stored", "shown", "failed", "closed"]
Kind: TypeAlias = Literal["question", "reading", "block", "plan", "return"]
"""question: an answer was asked for. reading: somebody else's answer was read, and one's own limit pays. block, plan:
reserved for questions to come. return: how much a block, or a question that stopped early, used; the rest came back."""


@dataclass(frozen=True)
class Entry:
    """One charge, in full. `time` is ISO 8601 in UTC; `event` and `details` are JSON text.

    epsilon: what was asked for. spend: what it costs, as every account concerned adds it. block: the block or plan that
    paid instead of the joint budget. purpose: what it was asked for, where that was said. serial, hash: its
    line in the journal.
    """

    id: str
    time: str
    space: str
    dataset: str
    analyst: str
    question_key: str
    sql: str
    epsilon: Fraction
    state: State
    event: str
    details: str
    incident: str | None = None
    kind: Kind = "question"
    spend: Total = field(default_factory=Total)
    policy: str | None = None
    data_version: str | None = None
    request: str | None = None
    block: str | None = None
    purpose: str | None = None
    serial: int = 0
    hash: str = ""


@dataclass(frozen=True)
class StoredRelease:
    """An answer that has been drawn and stored: reading it again costs nothing."""

    entry: Entry
    payload: str

    @cached_property
    def contents(self) -> Mapping[str, Any]:
        """The payload, read once."""
        contents: Mapping[str, Any] = json.loads(self.payload)
        return contents

    @property
    def charge_id(self) -> str:
        """The charge that paid for it."""
        return self.entry.id

    @property
    def epsilon(self) -> Fraction:
        """What it was asked for at."""
        return self.entry.epsilon


@dataclass(frozen=True)
class Allowance:
    """What an account may spend in all. epsilon None: nothing more. expires: after that time, nothing more."""

    space: str
    account: str
    epsilon: Fraction | None
    expires: str | None
    author: str
    reason: str
    time: str
    serial: int

    @property
    def ends(self) -> bool:
        """Whether it says that the account may spend nothing more, now or from some time on."""
        return self.epsilon is None or self.expires is not None

    def over(self, now: str) -> bool:
        """Whether it has ended by then."""
        return self.epsilon is None or (self.expires is not None and self.expires <= now)


@dataclass(frozen=True)
class Refusal:
    """A question that did not fit: which account refused it, what was asked, what was left."""

    time: str
    space: str
    dataset: str
    analyst: str
    sql: str
    account: str
    asked: str
    left: str


_STATES: Final = frozenset(get_args(State))

UNDRAWN: Final = ("charged", "retried")
OPEN: Final = (*UNDRAWN, "drawing")
"""The states of a charge that somebody works on."""

_CHARGE = (
    "SELECT charge.serial, journal.time, journal.hash, charge.id, kind_, unit_space, dataset, analyst, question_key, "
    f"{words_of('charge')}, epsilon, pure, rho, delta, impure, event, details, policy, data_version, request, block, "
    "purpose, step.state, step.incident "
    "FROM charge JOIN journal ON journal.serial = charge.serial LEFT JOIN step ON step.serial = "
    "(SELECT max(last.serial) FROM step AS last WHERE last.charge = charge.serial)"
).replace("kind_", "charge.kind")


class IsStored(PolicyError):
    """The answer that a charge would buy is stored: it was not there yet when whoever charges looked for it."""


def answers_to(
    connection: Connection, space: str, question_key: str, at_least: Fraction, analyst: str | None
) -> list[tuple[Fraction, str, str]]:
    """The charges of a question that are answered, and cost so much or more: epsilon, id and analyst of each.

    analyst: whose alone; None for everybody's.
    """
    rows = connection.execute(
        "SELECT epsilon, id, analyst FROM charge JOIN release ON release.charge = charge.serial "
        "WHERE unit_space = ? AND question_key = ?",
        (space, question_key),
    ).fetchall()
    read = [(read_amount(epsilon), charge_id, whose) for epsilon, charge_id, whose in rows]
    return [each for each in read if each[0] >= at_least and analyst in (None, each[2])]


def entries(connection: Connection, where: str = "", *parameters: Value) -> list[Entry]:
    """The charges that `where` selects, oldest first."""
    rows = connection.execute(f"{_CHARGE} {where} ORDER BY charge.serial", parameters)
    return [_entry(row) for row in rows.fetchall()]


def entries_to(connection: Connection, space: str, question_key: str, where: str, *parameters: Value) -> list[Entry]:
    """The charges of a question that `where` selects, oldest first.

    Raises:
        PolicyError: an index names the row of another one.
    """
    where = f"WHERE unit_space = ? AND question_key = ? AND {where}"
    charges = entries(connection, where, space, question_key, *parameters)
    for entry in charges:
        see_row(connection, entry.serial, unit_space=space, question_key=question_key, id=entry.id)
    return charges


def believed(connection: Connection, charge_id: str) -> Entry | None:
    """A charge that decides something by what it holds or where it stands; None if there is none of this id.

    Raises:
        PolicyError: its line, or that of a step since, is not the one that was written.
    """
    (entry,) = entries(connection, "WHERE charge.id = ?", charge_id) or (None,)
    if entry is not None:
        see_row(connection, entry.serial, id=charge_id)
        confirm(connection, "charge", entry.serial)
        confirm_steps(connection, entry.serial)
        check_state(entry.serial, entry.state)
    return entry


def check_state(serial: int, state: object) -> None:
    """See that a charge, of this line, stands where one can.

    Raises:
        PolicyError: no ledger writes that state.
    """
    if state not in _STATES:
        raise untrue(f"charge in line {serial} has a step that no ledger writes")


def paid_for(connection: Connection, entry: Entry) -> Entry:
    """The line that says what a charge cost: of one that gave back what it did not use, that of what it used.

    Raises:
        PolicyError: it is not the one that was written.
    """
    back = entries(connection, "WHERE charge.kind = 'return' AND charge.block = ?", entry.id)
    confirm(connection, "charge", entry.serial, *(one.serial for one in back))
    return back[0] if back and back[0].spend != entry.spend else entry


def _entry(row: Any) -> Entry:
    (serial, time, digest, charge_id, kind, space, dataset, analyst, question_key, sql, epsilon, pure, rho, delta,
     impure, event, details, policy, version, request, block, purpose, state, incident) = row  # fmt: skip
    return Entry(
        id=charge_id,
        time=time,
        space=space,
        dataset=dataset,
        analyst=analyst,
        question_key=question_key,
        sql=shown(sql),
        epsilon=read_amount(epsilon),
        state=state or "charged",
        event=event,
        details=details,
        incident=incident,
        kind=kind,
        spend=Total(read_amount(pure), read_amount(rho), read_amount(delta), impure),
        policy=policy,
        data_version=version,
        request=request,
        block=block,
        purpose=purpose,
        serial=serial,
        hash=digest,
    )


def standing_of(
    connection: Connection, charge_id: str, *, confirmed: bool = True
) -> tuple[int, str, str | None, str, str]:
    """A charge's number, its state, the process that owns it (who made it, or took it over), its space and analyst.

    confirmed: unless it decides nothing, or nobody but this process wrote since it looked at the charge.

    Raises:
        PolicyError: its line, or that of one of its steps, is not the one that was written; or, where nothing was
            drawn yet, that of any step since.
    """
    row = connection.execute(
        "SELECT serial, (SELECT state FROM step WHERE step.charge = charge.serial ORDER BY step.serial DESC LIMIT 1), "
        "(SELECT step.owner FROM step WHERE step.charge = charge.serial AND step.owner IS NOT NULL "
        "ORDER BY step.serial DESC LIMIT 1), owner, unit_space, analyst FROM charge WHERE id = ?",
        (charge_id,),
    ).fetchone()
    if row is None:
        raise InternalError(f"there is no charge {charge_id!r} in the ledger")
    serial, last, taken, made, space, analyst = row
    state = last or "charged"
    check_state(serial, state)
    if confirmed:
        see_row(connection, serial, id=charge_id)
        confirm(connection, "charge", serial)
        steps = connection.execute("SELECT serial FROM step WHERE charge = ?", (serial,)).fetchall()
        confirm(connection, "step", *(line for (line,) in steps))
        if state in UNDRAWN:
            confirm_steps(connection, serial)
    return int(serial), state, taken or made, space, analyst
