"""A change of answer times: an act with a reason, dated, that counts as a clearance.

Whether a run ended in its time depends on the rows, and a steward sees it. So the answer times that he declares next
may tell of them, as his clearing of failures may. Where something was asked, they change by an act alone: `hubbub
ledger unlock --all --reason TEXT` for each unit space that is concerned, after the last question by the older ones.
That is a joint clearance, a line of the chain, by whom and why; and how many there were is seen by everybody who reads
it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from hubbub.errors import PolicyError
from hubbub.ledger.books import AccountState
from hubbub.ledger.service_policy import ServicePolicy

if TYPE_CHECKING:
    from hubbub.ledger.store import Ledger

__all__ = ["agree_on_times", "times_of"]

REASON: Final = ": "
"""What stands between a steward's name and his reason, in a clearance."""


def times_of(policy: Mapping[str, Any]) -> dict[str, float]:
    """The answer time of each private table of a policy, as it is written.

    >>> times_of({"service": {"answer_time": 2}, "tables": {"v": {}, "w": {"answer_time": 9}}})
    {'v': 2.0, 'w': 9.0}
    """
    general = policy.get("service", {}).get("answer_time", ServicePolicy.answer_time)
    return {name: float(one.get("answer_time", general)) for name, one in policy.get("tables", {}).items()}


def agree_on_times(ledger: Ledger, times: Mapping[str, float], spaces: Mapping[str, str]) -> None:
    """See that answer times are those by which the service was asked last, or that a steward said why they are not.

    times: of each private table, in seconds. spaces: the unit space of each.

    Raises PolicyError where he did not.
    """
    with ledger._handle.reading() as connection:
        row = connection.execute(
            "SELECT c.serial, p.content FROM schedule AS s JOIN charge AS c ON c.serial = s.charge JOIN policy AS p ON "
            "p.hash = c.policy ORDER BY c.serial DESC LIMIT 1"
        ).fetchone()
        before: dict[str, float] = {}
        if row is not None:
            with suppress(tomllib.TOMLDecodeError):  # of declarations without a file
                before = times_of(tomllib.loads(row[1]))
        changed = {name: seconds for name, seconds in times.items() if before.get(name, seconds) != seconds}
        books = AccountState().begin(connection, None)
        for name, seconds in changed.items():
            names = books.spellings(spaces[name])
            here = f"unit_space IN ({', '.join('?' * len(names))})"
            said = connection.execute(
                f"SELECT author FROM joint_clearance WHERE {here} AND serial > ?", (*names, row[0])
            ).fetchall()
            if not any(REASON in author for (author,) in said):
                raise PolicyError(
                    f"the answer time of {name!r} was {before[name]:g} seconds when the service was last asked, and is "
                    f"{seconds:g} now. A steward who saw which runs did not end in time may tell of them by that, so "
                    "it counts as a clearance: record it, and why, with `hubbub ledger unlock --all --unit-space "
                    f"{spaces[name]} --reason TEXT`, or declare {before[name]:g} again."
                )
