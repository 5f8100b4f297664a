"""From an older schema of a ledger to the present one, inside the caller's transaction.

Nothing is forgotten on the way, or the transaction fails and the ledger stays as it was. Of version 1, which had no
chain, every charge, step and release becomes a link of a new one, in the order of their times, and every sum is added
up anew. Version 2 kept its sums in a table of postings; they move into the charges. Version 3 knew no joint clearances
and no sources; it gets their empty tables. Version 4 knew no purposes, and not whether there is an anchor. Version 5
knew no schedule, version 6 kept the words in the lines themselves, and one key for ever, version 7 set nothing aside
for training. Of all six the chain stays link by link, so that receipts from before still find theirs.
"""

from __future__ import annotations

import re
import sqlite3
import uuid
from collections.abc import Iterator
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
from hubbub.ledger.charging import accounts_of
from hubbub.ledger.hash_chain import Connection, Posting, Value, Writer, compact
from hubbub.ledger.schema import VERSION, sqlite_schema

__all__ = [
    "from_version_2",
    "from_version_3",
    "from_version_4",
    "from_version_5",
    "from_version_6",
    "from_version_7",
    "migrate",
]

_OLD: Final = ("unit_space", "data_version", "charge", "step", "release")
_CHARGE: Final = "CREATE TRIGGER charge_no_update"
_SINCE_3: Final = ("joint_clearance", "source")
_SINCE_4: Final = ("anchoring",)
_SINCE_5: Final = ("schedule", "silence", "pending")
_SINCE_6: Final = ("rekeying", "redaction", "restoring", "wording")
_SINCE_7: Final = ("training",)


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring a ledger file of schema `version`, 1 to 7, to the present one. The caller commits.

    Raises:
        PolicyError: the old ledger's own sums do not add up.
    """
    if version == 1:
        _from_version_1(connection)
    elif version == 2:
        connection.execute("DROP TRIGGER charge_no_update")
        from_version_2(connection, sqlite_schema())
        (trigger,) = (text for text in sqlite_schema() if text.startswith(_CHARGE))
        connection.execute(trigger)
    if version in (2, 3):
        from_version_3(connection, sqlite_schema())
    if version in (2, 3, 4):
        from_version_4(connection, sqlite_schema())
    if version in (2, 3, 4, 5):
        from_version_5(connection, sqlite_schema())
    if version in (2, 3, 4, 5, 6):
        from_version_6(connection, sqlite_schema())
    if version != 1:
        from_version_7(connection, sqlite_schema())
    connection.execute(f"PRAGMA user_version = {VERSION}")


def from_version_2(connection: Connection, schema: list[str]) -> None:
    """Move the postings into their charges, in SQLite or Postgres; charges may be changed while this runs.

    schema: the statements of the present version, of which those of version 3 are taken.

    Raises:
        PolicyError: a charge has no postings.
    """
    for index in ("charge_of_space", "charge_of_block", "posting_of_charge", "step_failed"):
        connection.execute(f"DROP INDEX IF EXISTS {index}")
    new = (" TABLE relation", " TABLE account", " TRIGGER relation_", " TRIGGER account_", " INDEX step_failed")
    for statement in schema:
        if any(name in statement for name in new):
            connection.execute(statement)
    connection.execute("ALTER TABLE charge ADD COLUMN sums TEXT NOT NULL DEFAULT ''")
    charges = connection.execute(
        "SELECT serial, unit_space, kind, dataset, analyst, block FROM charge ORDER BY serial"
    ).fetchall()
    for serial, space, *pays in charges:
        rows = connection.execute(
            "SELECT account, epsilon, rho, delta, impure FROM posting WHERE charge = ?", (serial,)
        ).fetchall()
        sums = {account: [space, account, *amounts] for account, *amounts in rows}
        accounts = accounts_of(*pays)
        if set(sums) != set(accounts):
            raise PolicyError("the old ledger's sums do not add up: a posting is missing. It is left as it is.")
        text = compact([sums[account] for account in accounts])
        connection.execute("UPDATE charge SET sums = ? WHERE serial = ?", (text, serial))
    connection.execute(
        "INSERT INTO account SELECT unit_space, account, max(charge) FROM posting GROUP BY unit_space, account"
    )
    connection.execute("DROP TABLE posting")


def from_version_3(connection: Connection, schema: list[str]) -> None:
    """Make the tables that version 3 did not have. schema: the statements of the present version."""
    _make(connection, schema, _SINCE_3)


def from_version_4(connection: Connection, schema: list[str]) -> None:
    """Give charges a purpose, which older ones do not have, and make the table that version 4 did not have."""
    connection.execute("ALTER TABLE charge ADD COLUMN purpose TEXT")
    _make(connection, schema, _SINCE_4)


def from_version_5(connection: Connection, schema: list[str]) -> None:
    """Make the tables of the schedule, which version 5 did not have."""
    _make(connection, schema, _SINCE_5)


def from_version_6(connection: Connection, schema: list[str]) -> None:
    """Make the tables of keys, of words that are removed, and of restored ledgers, which version 6 did not have."""
    _make(connection, schema, _SINCE_6)


def from_version_7(connection: Connection, schema: list[str]) -> None:
    """Make the table of what is set aside for training, which version 7 did not have."""
    _make(connection, schema, _SINCE_7)


def _make(connection: Connection, schema: list[str], tables: tuple[str, ...]) -> None:
    for statement in schema:
        if any(re.search(rf"(TABLE|TRIGGER|ON) {table}\b|TRIGGER {table}_", statement) for table in tables):
            connection.execute(statement)


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
    for time, _, kind, row in sorted(_old_rows(connection), key=lambda record: record[:2]):
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
    writer.finish()
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
    steps = ask("SELECT charge, number, state, time, incident FROM old_step ORDER BY charge, number").fetchall()
    answers = {charge: answer for charge, *answer in ask("SELECT charge, time, payload FROM old_release")}
    for charge, number, state, time, incident in steps:
        # A step comes after the one before, and an answer just before its charge is 'stored', whatever the clock said.
        starts[charge] = max(starts[charge], time)
        if state == "stored" and charge in answers:
            starts[charge] = max(starts[charge], answers[charge][0])
            yield starts[charge], (2 + 2 * number, charge), "release", (charge, answers[charge][1])
        yield starts[charge], (3 + 2 * number, charge), "step", (charge, state, incident, None)


def _charge(writer: Writer, columns: list[Value], sums: dict[tuple[str, str], Total]) -> int:
    charge_id, space, dataset, analyst, question_key, sql, epsilon, spent, event, details = map(str, columns)
    cost = pure_cost(read_amount(epsilon))
    postings: list[Posting] = []
    for account in (EVERYONE, table_account(dataset), analyst_account(analyst)):
        total = sums.get((space, account), Total()) + Total.of(cost)
        sums[space, account] = total
        postings.append((space, account, *total.written))
    if sums[space, EVERYONE].epsilon < read_amount(spent):
        raise PolicyError("the old ledger's sums do not add up: a charge is missing. It is left as it is.")
    row = (
        charge_id, "question", space, dataset, analyst, question_key, sql, epsilon, *Total.of(cost).written, event,
        details, None, None, None, None, None, None,
    )  # fmt: skip
    return writer.append_charge(row, postings)
