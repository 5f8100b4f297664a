"""Who pays for reading a stored answer, and how a charge says through which token it was made.

A reading charges limits alone: the answer was drawn once, and costs the people in the data nothing more. Who reads what
another analyst was answered pays from `analyst:NAME`, once. A token of the service that has a cap pays from `token:ID`
for every answer that is read with it, once, also where its analyst has paid already: the cap bounds what whoever holds
the token learns. In the details of a charge, `token` is such a token's id, and `known` says of a reading that its
analyst had paid before, so that the token alone pays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hubbub.ledger.accounts import analyst_account, token_account
from hubbub.ledger.proofs import confirm

if TYPE_CHECKING:
    from hubbub.ledger.charge import Charge
    from hubbub.ledger.hash_chain import Connection
    from hubbub.ledger.records import Entry

__all__ = ["by_token", "is_due", "readers", "reading", "token_of"]


def by_token(details: str, token: str | None) -> str:
    """The details of a charge that is made with a token.

    >>> by_token('{"a": 1}', "1f0c5a7e"), by_token('{"a": 1}', None)
    ('{"a": 1, "token": "1f0c5a7e"}', '{"a": 1}')
    """
    return details if token is None else json.dumps({**json.loads(details), "token": token})


def token_of(details: str) -> str | None:
    """The token that a charge was made with, where that has a cap."""
    return _read(details).get("token")


def readers(kind: str, analyst: str, details: str) -> tuple[str, ...]:
    """The limits of whoever learns what a charge buys: his own, and his token's.

    >>> readers("reading", "ada", '{"release": "x", "token": "1f0c5a7e", "known": true}')
    ('token:1f0c5a7e',)
    """
    told = _read(details)
    own = () if kind == "reading" and told.get("known") is True else (analyst_account(analyst),)
    return (*own, *((token_account(told["token"]),) if "token" in told else ()))


def reading(connection: Connection, entry: Entry, analyst: str, token: str | None) -> str | None:
    """The details of the charge for reading an answer; None where all that would pay have paid.

    entry: of the answer. analyst: who reads it. token: through which token with a cap, if through one.

    Raises:
        PolicyError: its line, or that of a reading that was paid for, is not the one that was written.
    """
    rows = connection.execute(
        "SELECT serial, details FROM charge WHERE unit_space = ? AND question_key = ? AND kind = 'reading' AND "
        "analyst = ?",
        (entry.space, entry.question_key, analyst),
    ).fetchall()
    told_of = {line: made for line, details in rows if (made := json.loads(details)).get("release") == entry.id}
    confirm(connection, "charge", entry.serial, *told_of)
    read = list(told_of.values())
    mine = entry.analyst == analyst
    known = mine or bool(read)
    paid = token is None or (mine and token_of(entry.details) == token) or any(m.get("token") == token for m in read)
    if known and paid:
        return None
    told: dict[str, Any] = {"release": entry.id}
    told |= {} if paid else {"token": token}
    return json.dumps(told | ({"known": True} if known else {}))


def is_due(connection: Connection, entry: Entry, charge: Charge) -> bool:
    """Whether a reading costs what it did when it was looked at. It does not where somebody, in another process of the
    same reader's, paid for it meanwhile. entry: of the answer that is read.
    """
    return reading(connection, entry, charge.analyst, token_of(charge.details)) == charge.details


def _read(details: str) -> Mapping[str, Any]:
    if '"token"' not in details:
        return {}
    told = json.loads(details)
    return told if isinstance(told, dict) and isinstance(told.get("token"), str) else {}
