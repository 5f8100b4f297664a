"""The tables of a ledger, version 8, for SQLite and Postgres alike.

    ledger        its random id, and whether its chain is keyed
    journal       one line for every row of the tables below: when, what, and the hash that chains them all
    unit_space    whose budget it is, and its ceiling when it was created
    training      what of a unit space's budget is set aside for training, from its creation on
    relation      the neighbour relation that a unit space's losses are stated for, from its first charge on
    allowance     what an account may spend: grants, revocations, limits of the policy, raised ceilings
    policy        the texts of policies under which something was asked
    data_version  the random id of a data set's current rows
    charge        what was asked, what it cost, and what every account that pays had spent when it was added
    step          the life of a charge after 'charged'
    release       the answer that left
    schedule      when a question of the service runs and when its answer leaves; the last row of a charge counts
    silence       at its release time a question of the service had no answer
    refusal       what was asked and did not fit
    clearance     a steward unlocked an analyst
    joint_clearance  a steward unlocked a unit space for everybody
    source        in which unit space a source stands, by its place and its unit column
    anchoring     from here on the ledger has an anchor outside it, or none: the last row counts
    rekeying      from here on the chain has another key; the one before, under the new one (`hubbub.ledger.keys`)
    redaction     the words of this line are gone
    restoring     this ledger may lack what was charged after that line: what it held open was closed
    wording       the words that a line commits to: of questions, refusals and answers (`hubbub.ledger.wording`)
    account       the last charge that an account paid for: where its sum is found
    pending       what is scheduled and was not told yet, and what its run brought; a row goes when it is told

Every row but those of the last three tables has the serial number of its line in the journal. Those tables only ever
grow, and triggers hold them to it. `wording` has that of the line whose words it holds; they are never changed, and go
where a `redaction` says so. `account` holds no amount, only places, and moves forward only: the sums that decide
stand in the charges, under the chain. So a charge costs the same whether ten or a million went before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

__all__ = ["APPLICATION_ID", "COLUMNS", "HASHED", "VERSION", "postgres_schema", "sqlite_schema"]

APPLICATION_ID: Final = 0x68756262
"""'hubb': marks a SQLite file as a ledger of ours, in its header."""

VERSION: Final = 8
"""The schema this code reads and writes."""

_T, _N, _I, _N_I = "TEXT NOT NULL", "TEXT", "INTEGER NOT NULL", "INTEGER"

_TABLES: Final[dict[str, dict[str, str]]] = {
    "ledger": {"id": _T, "secret": _T, "key_check": _N},
    "unit_space": {"name": f"{_T} UNIQUE", "epsilon": _T, "delta": _N, "delta_threshold": _N},
    "training": {"unit_space": f"{_T} UNIQUE", "epsilon": _T, "delta": _T},
    "relation": {"unit_space": f"{_T} UNIQUE", "neighbours": _T},
    "allowance": {
        "unit_space": _T, "account": _T, "epsilon": _N, "expires": _N, "author": _T, "reason": _T,
    },
    "policy": {"hash": f"{_T} UNIQUE", "content": _T},
    "data_version": {"unit_space": _T, "dataset": _T, "id": f"{_T} UNIQUE", "reason": _T, "fingerprint": _N},
    "charge": {
        "id": f"{_T} UNIQUE", "kind": _T, "unit_space": _T, "dataset": _T, "analyst": _T, "question_key": _T,
        "sql": _T, "epsilon": _T, "pure": _T, "rho": _T, "delta": _T, "impure": _I, "event": _T, "details": _T,
        "policy": _N, "data_version": _N, "request": _N, "block": _N, "owner": _N, "purpose": _N,
    },
    "step": {"charge": _I, "state": _T, "incident": _N, "owner": _N},
    "release": {"charge": f"{_I} UNIQUE", "payload": _T},
    "refusal": {
        "unit_space": _T, "dataset": _T, "analyst": _T, "sql": _T, "account": _T, "asked": _T, "remaining": _T,
    },
    "clearance": {"unit_space": _T, "analyst": _T, "author": _T},
    "joint_clearance": {"unit_space": _T, "author": _T},
    "source": {"place": _T, "unit": _T, "unit_space": _T},
    "anchoring": {"kept": _I, "author": _T},
    "schedule": {
        "charge": _I, "shares": _N_I, "lane": _I, "made": _I, "starts": _I, "ends": _I, "due": _I, "running": _I,
        "boot": _T, "incident": _T, "ask": _T,
    },
    "silence": {"charge": f"{_I} UNIQUE", "incident": _T},
    "rekeying": {"key_check": _T, "wrapped": _N, "author": _T},
    "redaction": {"line": f"{_I} UNIQUE", "author": _T},
    "restoring": {"line": _I, "hash": _T, "author": _T, "reason": _T},
}  # fmt: skip

COLUMNS: Final[dict[str, tuple[str, ...]]] = {table: tuple(columns) for table, columns in _TABLES.items()}
"""The columns of every journaled table after `serial`, in the order in which they are hashed. A charge's `sums` come
after its columns; a purpose that it does not have is left out (`hash_chain.linked_row`)."""

HASHED: Final = tuple(COLUMNS)
"""The journaled tables."""

_JOURNAL: Final = (
    "CREATE TABLE journal (serial INTEGER PRIMARY KEY NOT NULL, time TEXT NOT NULL, kind TEXT NOT NULL, "
    "hash TEXT NOT NULL)"
)
_ACCOUNT: Final = (
    "CREATE TABLE account (unit_space TEXT NOT NULL, name TEXT NOT NULL, charge INTEGER NOT NULL, "
    "PRIMARY KEY (unit_space, name))"
)
_PENDING: Final = "CREATE TABLE pending (charge INTEGER PRIMARY KEY NOT NULL, state TEXT NOT NULL, payload TEXT)"
_WORDING: Final = (
    "CREATE TABLE wording (serial INTEGER PRIMARY KEY NOT NULL, salt TEXT NOT NULL, content TEXT NOT NULL)"
)
_INDEXES: Final = (
    "CREATE INDEX allowance_of ON allowance (unit_space, account, serial)",
    "CREATE INDEX data_version_of ON data_version (unit_space, dataset, serial)",
    "CREATE INDEX charge_of_question ON charge (unit_space, question_key)",
    "CREATE UNIQUE INDEX charge_of_request ON charge (unit_space, analyst, request) WHERE request IS NOT NULL",
    "CREATE INDEX step_of_charge ON step (charge, serial)",
    "CREATE INDEX source_of ON source (place, unit)",
    "CREATE INDEX step_failed ON step (charge) WHERE state IN ('failed', 'lost')",
    "CREATE INDEX schedule_of_charge ON schedule (charge, serial)",
    "CREATE INDEX schedule_due ON schedule (due)",
)


def _tables() -> Iterator[str]:
    yield _JOURNAL
    for table, columns in _TABLES.items():
        parts = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        sums = f", sums {_T}" if table == "charge" else ""
        yield f"CREATE TABLE {table} (serial INTEGER PRIMARY KEY NOT NULL, {parts}{sums})"
    yield from _INDEXES


def sqlite_schema() -> list[str]:
    """The statements that make an empty ledger in SQLite."""
    triggers = [
        f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        for table in ("journal", *HASHED)
        for verb in ("UPDATE", "DELETE")
    ]
    moves = (
        "CREATE TRIGGER account_no_delete BEFORE DELETE ON account "
        "BEGIN SELECT RAISE(ABORT, 'account moves forward only'); END",
        "CREATE TRIGGER account_no_return BEFORE UPDATE ON account WHEN NEW.charge <= OLD.charge OR "
        "NEW.name <> OLD.name OR NEW.unit_space <> OLD.unit_space "
        "BEGIN SELECT RAISE(ABORT, 'account moves forward only'); END",
        "CREATE TRIGGER wording_no_update BEFORE UPDATE ON wording "
        "BEGIN SELECT RAISE(ABORT, 'wording is never changed'); END",
    )
    return [*_tables(), f"{_ACCOUNT} WITHOUT ROWID", _PENDING, _WORDING, *triggers, *moves]


def postgres_schema() -> list[str]:
    """The statements that make an empty ledger in a schema of a Postgres database."""
    tables = [text.replace("INTEGER", "BIGINT") for text in (*_tables(), _ACCOUNT, _PENDING, _WORDING)]
    refuse = (
        "CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$"
    )
    triggers = [
        f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
        for table in ("journal", *HASHED)
    ]
    moves = (
        "CREATE TRIGGER account_no_return BEFORE UPDATE ON account FOR EACH ROW WHEN (NEW.charge <= OLD.charge OR "
        "NEW.name <> OLD.name OR NEW.unit_space <> OLD.unit_space) EXECUTE FUNCTION refuse_change()",
        "CREATE TRIGGER account_no_delete BEFORE DELETE OR TRUNCATE ON account FOR EACH STATEMENT "
        "EXECUTE FUNCTION refuse_change()",
        "CREATE TRIGGER wording_no_update BEFORE UPDATE ON wording FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
    )
    return [*tables, refuse, *triggers, *moves]
