"""From an older schema of a ledger file to the present one, a version at a time, inside the caller's transaction.

Nothing is forgotten on the way: every charge, step and release of version 1 becomes a link of the new chain, in the
order of their times, and every sum is added up anew. So a migrated ledger holds what it held, or the transaction fails
and the file stays as it was.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterator
from typing import Final

from hubbub.errors import PolicyError
from hubbub.ledger.accounts import (
    EVERYONE,
    Total,
    analyst_account,
    pure_cost,
    read_amount,
    table_account,
    write_amount,
)
from hubbub.ledger.journal import Value, Writer
from hubbub.ledger.schema import VERSION, sqlite_schema

__all__ = ["migrate"]

_OLD: Final = ("unit_space", "data_version", "charge", "step", "release")


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring a ledger of schema `version` to the present one. The caller commits.

    Raises:
        PolicyError: the old ledger's own sums do not add up.
    """
    while version < VERSION:
        _STEPS[version](connection)
        version += 1
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _from_version_1(connection: sqlite3.Connection) -> None:
    """Version 1 kept pure budgets, one sum per unit space, and no chain."""
    for (index,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    ).fetchall():
        connection.execute(f"DROP INDEX {index}")
    for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    for table in _OLD:
        connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    for statement in sqlite_schema():
        connection.execute(statement)
    writer = _Moments(connection)
    writer.append("ledger", uuid.uuid4().hex, uuid.uuid4().hex + uuid.uuid4().hex, None)
    sums: dict[tuple[str, str], Total] = {}
    serials: dict[int, int] = {}
    for time, _, kind, row in sorted(_old_rows(connection), key=lambda found: found[:2]):
        writer.time = max(writer.time, time)
        match kind:
            case "charge":
                old, *columns = row
                serials[int(str(old))] = _charge(writer, columns, sums)
            case "step" | "release":
                charge, *columns = row
                writer.append(kind, serials[int(str(charge))], *columns)
            case _:
                writer.append(kind, *row)
    for table in reversed(_OLD):
        connection.execute(f"DROP TABLE old_{table}")


class _Moments(Writer):
    """A writer of the past: its time is the row's own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection, None)
        self.time = ""


def _old_rows(connection: sqlite3.Connection) -> Iterator[tuple[str, tuple[int, int], str, tuple[Value, ...]]]:
    """Every row of version 1 with its time, and its place among those of one time: a charge before its steps."""
    ask = connection.execute
    for name, ceiling, created in ask("SELECT name, ceiling, created FROM old_unit_space ORDER BY name"):
        yield "", (0, 0), "unit_space", (name, write_amount(read_amount(ceiling)), None, None)
        del created  # all old spaces come first: a charge may bear an earlier time if the clock was set back
    for serial, space, dataset, version, issued in ask("SELECT * FROM old_data_version"):
        yield issued, (1, serial), "data_version", (space, dataset, version, "first asked for", None)
    charges = ask(
        "SELECT serial, time, id, unit_space, dataset, analyst, question_key, sql, epsilon, spent, event, details "
        "FROM old_charge"
    )
    latest = ""
    starts: dict[int, str] = {}
    for serial, time, *columns in sorted(charges.fetchall()):
        starts[serial] = latest = max(latest, time)
        yield latest, (2, serial), "charge", (serial, *columns)
    for charge, number, state, time, incident in ask("SELECT * FROM old_step ORDER BY charge, number").fetchall():
        yield max(time, starts[charge]), (3 + 2 * number, charge), "step", (charge, state, incident, None)
    for charge, time, payload in ask("SELECT charge, time, payload FROM old_release").fetchall():
        yield max(time, starts[charge]), (6, charge), "release", (charge, payload)


def _charge(writer: Writer, columns: list[Value], sums: dict[tuple[str, str], Total]) -> int:
    charge_id, space, dataset, analyst, question_key, sql, epsilon, spent, event, details = map(str, columns)
    cost = pure_cost(read_amount(epsilon))
    postings: list[tuple[Value, ...]] = []
    for account in (EVERYONE, table_account(dataset), analyst_account(analyst)):
        total = sums.get((space, account), Total()) + Total.of(cost)
        sums[space, account] = total
        amounts = (write_amount(total.epsilon), write_amount(total.rho), write_amount(total.delta))
        postings.append((space, account, *amounts, total.impure))
    if sums[space, EVERYONE].epsilon < read_amount(spent):
        raise PolicyError("the old ledger's sums do not add up: a charge is missing. It is left as it is.")
    return writer.append(
        "charge", charge_id, "question", space, dataset, analyst, question_key, sql, epsilon, epsilon,
        write_amount(cost.rho), "0/1", 0, event, details, None, None, None, None, None, postings=postings,
    )  # fmt: skip


_STEPS: Final[dict[int, Callable[[sqlite3.Connection], None]]] = {1: _from_version_1}
