"""The tables of a ledger file, version 1.

    unit_space    whose budget it is, and its ceiling
    data_version  the random id of a data set's current rows, issued by the ledger
    charge        what was asked, what it cost, and the space's sum of costs up to and including this charge
    step          the life of a charge after 'charged': drawing, stored, shown, or failed
    release       the answer that left

All but `unit_space` only ever grow, and triggers hold them to it. `spent` repeats what summing `epsilon`
would
give: it makes a charge cost the same whether ten or a million went before.
"""

from __future__ import annotations

from typing import Final

__all__ = ["APPLICATION_ID", "SCHEMA", "VERSION"]

APPLICATION_ID: Final = 0x68756262
"""'hubb': marks a SQLite file as a ledger of ours, in its header."""

VERSION: Final = 1
"""The schema this code reads and writes; kept in `user_version`."""

_TABLES: Final = (
    """
CREATE TABLE unit_space (
    name    TEXT PRIMARY KEY NOT NULL,
    ceiling TEXT NOT NULL,
    created TEXT NOT NULL
)""",
    """
CREATE TABLE data_version (
    serial     INTEGER PRIMARY KEY AUTOINCREMENT,
    unit_space TEXT NOT NULL REFERENCES unit_space (name),
    dataset    TEXT NOT NULL,
    id         TEXT NOT NULL UNIQUE,
    issued     TEXT NOT NULL
)""",
    """
CREATE TABLE charge (
    serial       INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    time         TEXT NOT NULL,
    unit_space   TEXT NOT NULL REFERENCES unit_space (name),
    dataset      TEXT NOT NULL,
    analyst      TEXT NOT NULL,
    question_key TEXT NOT NULL,
    sql          TEXT NOT NULL,
    epsilon      TEXT NOT NULL,
    spent        TEXT NOT NULL,
    event        TEXT NOT NULL,
    details      TEXT NOT NULL
)""",
    """
CREATE TABLE step (
    charge   INTEGER NOT NULL REFERENCES charge (serial),
    number   INTEGER NOT NULL,
    state    TEXT NOT NULL CHECK (state IN ('drawing', 'stored', 'shown', 'failed')),
    time     TEXT NOT NULL,
    incident TEXT,
    PRIMARY KEY (charge, number)
) WITHOUT ROWID""",
    """
CREATE TABLE release (
    charge  INTEGER PRIMARY KEY REFERENCES charge (serial),
    time    TEXT NOT NULL,
    payload TEXT NOT NULL
)""",
    "CREATE INDEX data_version_of ON data_version (unit_space, dataset, serial)",
    "CREATE INDEX charge_of_space ON charge (unit_space, serial)",
    "CREATE INDEX charge_of_question ON charge (unit_space, question_key)",
)

_APPEND_ONLY: Final = tuple(
    f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
    f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    for table in ("data_version", "charge", "step", "release")
    for verb in ("UPDATE", "DELETE")
)

SCHEMA: Final = (*_TABLES, *_APPEND_ONLY)
"""The statements that make an empty ledger."""
