"""What is written when a block ends, when a charge gives back what it does not use, and when a charge is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from hubbub.errors import InternalError
from hubbub.ledger.accounts import Total, block_account
from hubbub.ledger.books import total_of
from hubbub.ledger.budget import Budget
from hubbub.ledger.charge import Charge
from hubbub.ledger.charging import Refused, Request, accounts_of
from hubbub.ledger.hash_chain import Writer
from hubbub.ledger.readings import by_token, token_of
from hubbub.ledger.records import Entry, believed, entries
from hubbub.ledger.rules import Rules

if TYPE_CHECKING:
    from hubbub.accounting import Event

__all__ = ["end_block", "note_refusal", "planned", "refused_text", "return_unused"]

_REFUSALS: Final = 200  # of one analyst and day that are kept; the rest are refused all the same
_FAR: Final = 20_000  # so many lines back they are counted
_SHOWN: Final = 1500  # characters of a refused question that are kept


def end_block(writer: Writer, entry: Entry, rules: Rules) -> None:
    """Give back what a block did not use, unless it is closed.

    Raises:
        PolicyError: its line, or that of a step, is not the one that was written.
    """
    now = believed(writer.connection, entry.id)
    if now is None or now.state == "closed":
        return
    entry = now
    used = total_of(writer.connection, entry.space, block_account(entry.id)).within(entry.spend)
    back = Charge(
        kind="return", space=entry.space, analyst=entry.analyst, epsilon=used.epsilon, cost=used,
        sql="(what the block used)", block=entry.id, details=by_token("{}", token_of(entry.details)),
    )  # fmt: skip
    _return(writer, back, accounts_of("return", "", entry.analyst, None, back.details), entry.spend, rules)
    writer.append("step", entry.serial, "closed", None, None)


def return_unused(writer: Writer, charge_id: str, used: Total, budget: Budget, rules: Rules) -> None:
    """Of what a question that is being drawn was charged, `used` stays; the rest comes back. So it does of a reading
    that was charged before the answer was there, and shares its fate.

    Raises InternalError where it is not a question that is being drawn, gave something back, or used more.
    """
    entry = believed(writer.connection, charge_id)
    if entry is None or not (entry.kind == "reading" or (entry.kind == "question" and entry.state == "drawing")):
        raise InternalError(f"charge {charge_id} is not being drawn and gives nothing back")
    if entries(writer.connection, "WHERE charge.kind = 'return' AND charge.block = ?", charge_id):
        raise InternalError(f"charge {charge_id} gave back what it did not use")
    if not used.is_within(entry.spend):
        raise InternalError(f"charge {charge_id} used more than was charged")
    back = Charge(
        kind="return", space=entry.space, dataset=entry.dataset, analyst=entry.analyst,
        epsilon=_as_epsilon(used, budget), cost=used, sql="(what the charge used)", block=charge_id,
    )  # fmt: skip
    accounts = accounts_of(entry.kind, entry.dataset, entry.analyst, entry.block, entry.details)
    _return(writer, back, accounts, entry.spend, rules)


def _return(writer: Writer, back: Charge, accounts: Sequence[str], held: Total, rules: Rules) -> None:
    made = Request.of(back, rules)
    totals = [(name, total_of(writer.connection, back.space, name) + made.spend - held) for name in accounts]
    writer.append_charge(made.row, [(back.space, name, *total.written) for name, total in totals])
    writer.finish()  # another one of this transaction finds these sums


def note_refusal(writer: Writer, charge: Charge, refused: Refused) -> None:
    """Keep what did not fit, its beginning at least; of one analyst and day not more than 200."""
    error, since = refused.error, f"{writer.time[:10]}T"
    (count,) = writer.connection.execute(
        "SELECT count(*) FROM refusal JOIN journal ON journal.serial = refusal.serial WHERE "
        "refusal.unit_space = ? AND refusal.analyst = ? AND journal.time >= ? AND refusal.serial > ?",
        (charge.space, charge.analyst, since, max(0, writer.head.serial - _FAR)),
    ).fetchone()
    if count < _REFUSALS:
        dataset, sql = _short(charge.dataset, _SHOWN), refused_text(charge.sql)
        writer.append("refusal", charge.space, dataset, charge.analyst, sql, refused.account, error.asked, error.left)


def refused_text(sql: str) -> str:
    """A refused question as it is kept."""
    return _short(sql, _SHOWN)


def _as_epsilon(spent: Total, budget: Budget) -> Fraction:
    """An amount as people see it: under a budget with delta, the epsilon of one release at that rho."""
    from hubbub.accounting import epsilon_of_rho

    return spent.epsilon if not spent.impure else epsilon_of_rho(spent.rho, budget.delta_conversion)


def _short(text: str, most: int) -> str:
    """A text, or its beginning with the SHA-256 of the whole."""
    if len(text) <= most:
        return text
    return f"{text[:most]}... ({len(text)} characters, SHA-256 {hashlib.sha256(text.encode()).hexdigest()})"


def planned(events: Sequence[Event]) -> str:
    """What the questions of a plan may draw on: the sum of their costs, which may be more than the plan's own."""
    from hubbub.accounting import cost

    if not events:
        return "{}"
    costs = [cost(event) for event in events]
    return json.dumps({"parts": Total.of(sum(costs[1:], costs[0])).written})
