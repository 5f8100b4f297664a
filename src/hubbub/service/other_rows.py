"""Tables of which the policy names other rows than it did: a new version of them, before anybody asks.

The clerk opens no source, so nothing tells it that a file was replaced, and only a steward's refresh says so. But which
file, which table in it and how it is read stands in the policy, and each charge says under which policy it was made.
Where that named another one, what is stored is of other rows than those that are read now.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hubbub.ledger.store import Ledger

__all__ = ["note_other_rows", "rows_named"]

_READ: Final = ("source", "table", "csv", "rows_kept")
"""What a policy says of which rows of a table are read, and how; of the kinds of columns a question's own name does."""

REASON: Final = "the policy names other rows"


def rows_named(policy: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What a policy says of which rows of each private table are read, as it is written.

    >>> rows_named({"tables": {"v": {"source": "v.duckdb", "table": "visits", "unit": "id"}}})
    {'v': {'source': 'v.duckdb', 'table': 'visits'}}
    """
    return {
        name: {part: said[part] for part in _READ if part in said} for name, said in policy.get("tables", {}).items()
    }


def note_other_rows(
    ledger: Ledger, policy: str, spaces: Mapping[str, str], log: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Give each table a new version of which its present one was asked about under a policy that named other rows.

    policy: the text of the one that holds. spaces: the unit space of each private table. The tables concerned.

    Raises PolicyError where the ledger cannot be read or written.
    """
    now, newest = rows_named(tomllib.loads(policy)), ledger.versions.newest()
    others = []
    for name, space in spaces.items():
        version = newest.get((space, name))
        for text in [] if version is None else ledger.versions.policies_of(version):
            before: dict[str, dict[str, Any]] = {}
            with suppress(tomllib.TOMLDecodeError):  # of declarations without a file
                before = rows_named(tomllib.loads(text))
            if before.get(name, now.get(name)) != now.get(name):
                ledger.steward.refresh(space, name, reason=REASON)
                log(f"table {name!r}: {REASON} than it did, so what is stored of it is not given for them")
                others.append(name)
                break
    return others
