"""An old ledger opens, holds what it held, and is as sound as a new one."""

from __future__ import annotations

import re
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.errors import PolicyError
from hubbub.ledger import migrate, schema, under_way
from hubbub.ledger.accounts import analyst_account, table_account
from hubbub.ledger.budget import Budget
from hubbub.ledger.database import Database
from hubbub.ledger.hash_chain import head_of
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, charge, fork, resume, wait

BUDGETS = {SPACE: Budget(1)}


@pytest.fixture
def path(tmp_path) -> Path:
    connection = sqlite3.connect(tmp_path / "old.db")
    connection.executescript((Path(__file__).parent / "version1.sql").read_text())
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    return tmp_path / "old.db"


def test_an_old_ledger_opens_and_holds_what_it_held(path):
    with Ledger.open(path, budgets=BUDGETS) as ledger:
        assert ledger.record.verify().problems == ()
        assert ledger.balance.spaces() == ["household", SPACE]
        assert (ledger.balance.ceiling("household"), ledger.balance.remaining(SPACE)) == (2, Fraction(11, 30))
        assert [(e.id, e.epsilon, e.state, e.incident, e.analyst) for e in ledger.record.history()] == [
            ("c1", Fraction(1, 10), "shown", None, "ada"),
            ("c2", Fraction(1, 3), "stored", None, "bob"),
            ("c3", Fraction(1, 10), "failed", "i17", "ada"),
            ("c4", Fraction(1, 10), "charged", None, "ada"),
        ]
        assert [ledger.record.release(c).payload for c in ("c1", "c2")] == ["answer 1", "answer 2"]
        assert ledger.balance.total(SPACE, analyst_account("ada")).epsilon == Fraction(3, 10)
        assert ledger.balance.total(SPACE, table_account("visits")).epsilon == Fraction(19, 30)
        assert ledger.versions.data_version(SPACE, "visits") == "0123456789abcdef0123456789abcdef"
        assert resume(ledger, space=SPACE, question_key="k4", analyst="ada", epsilon=Fraction(1, 10)) is None
        charge(ledger, "1/30")
        assert ledger.balance.remaining(SPACE) == Fraction(1, 3)


def test_reading_an_old_ledger_says_how_to_bring_it_up_to_date(path):
    before = path.read_bytes()
    with pytest.raises(PolicyError, match=r"schema version 1; this hubbub reads version 8\..*hubbub ledger migrate"):
        Ledger.inspect(path)
    assert path.read_bytes() == before


def test_an_old_ledger_whose_sums_are_wrong_is_left_as_it_is(path):
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO charge VALUES (9, 'c9', '2026-02-01T00:00:00.000000Z', 'patient_id', 'visits', "
                       "'a', 'k', 's', '1/10', '9/10', '{}', '{}')")  # fmt: skip
    connection.commit()
    connection.close()
    for _ in range(2):
        with pytest.raises(PolicyError, match="sums do not add up"):
            Ledger.open(path, budgets=BUDGETS)
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (1,)


def test_six_that_migrate_at_once_migrate_once(path):
    def child() -> None:
        with Ledger.open(path, budgets=BUDGETS) as ledger:
            charge(ledger, "1/60")

    assert wait(*(fork(child) for _ in range(6))) == [0] * 6
    with Ledger.open(path, budgets=BUDGETS) as ledger:
        assert ledger.record.verify().sound
        assert ledger.balance.remaining(SPACE) == Fraction(11, 30) - Fraction(1, 10)


def test_killed_while_migrating_the_old_ledger_stays(path, monkeypatch):
    def fatal(*_: object) -> int:
        import os

        os._exit(9)

    with monkeypatch.context() as patch:
        patch.setattr(migrate, "_charge", fatal)
        assert wait(fork(lambda: Ledger.open(path, budgets=BUDGETS))) == [9]
    with Ledger.open(path, budgets=BUDGETS) as ledger:
        assert len(ledger.record.history()) == 4


HEAD2 = "cade9231f232e98c02ef19d65a44168e7cdeb8c2ebf970956026bb21462786ec"
BUDGETS2 = {SPACE: Budget(3, "1e-6"), "household": Budget(2)}
VERSION2 = (Path(__file__).parent / "version2.sql").read_text()


def looks_as_before(ledger: Ledger) -> None:
    """What the ledger of version 2 held, it holds; and its chain is the one it had."""
    found = ledger.record.verify()
    assert found.problems == ()
    with ledger._handle.reading() as connection:
        assert head_of(connection).hash == HEAD2
    assert [(e.kind, e.state) for e in ledger.record.history(SPACE)] == [
        ("question", "shown"), ("reading", "charged"), ("question", "shown"), ("question", "shown"),
        ("block", "closed"), ("question", "charged"), ("return", "charged"), ("block", "charged"),
        ("question", "failed"),
    ]  # fmt: skip
    assert ledger.balance.accounts("household") == ["analyst:ada", "everyone", "table:homes"]
    assert ledger.balance.total("household").epsilon == Fraction(1, 2)
    assert ledger.balance.total(SPACE, analyst_account("ada")).epsilon == Fraction(1, 2)
    assert ledger.balance.relation(SPACE) == "add_remove"
    assert len(ledger.record.open_blocks()) == len(ledger.record.refusals()) == 1


def test_a_ledger_of_version_2_keeps_its_chain(tmp_path):
    connection = sqlite3.connect(tmp_path / "old.db")
    connection.executescript(VERSION2)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    store = Database(tmp_path / "old.db")  # opened for writing, so brought up to date
    store.close()
    with Ledger.inspect(tmp_path / "old.db") as ledger:
        looks_as_before(ledger)
    with Ledger.open(tmp_path / "old.db", budgets=BUDGETS2) as ledger:
        charge(ledger, "1/10", details='{"neighbours": "add_remove"}')
        assert ledger.record.verify().problems == ()
    with Ledger.open(tmp_path / "new.db", budgets=BUDGETS2):
        pass
    names = [
        {name for (name,) in sqlite3.connect(tmp_path / file).execute("SELECT name FROM sqlite_master")}
        for file in ("old.db", "new.db")
    ]
    assert names[0] == names[1]


def test_a_ledger_of_version_2_whose_postings_are_gone_is_left_as_it_is(tmp_path):
    connection = sqlite3.connect(tmp_path / "old.db")
    connection.executescript(VERSION2)
    connection.execute("DROP TRIGGER posting_no_delete")
    connection.execute("DELETE FROM posting WHERE account = 'everyone' AND charge = (SELECT max(charge) FROM posting)")
    connection.commit()
    connection.close()
    with pytest.raises(PolicyError, match="a posting is missing"):
        Ledger.open(tmp_path / "old.db", budgets=BUDGETS2)
    assert sqlite3.connect(tmp_path / "old.db").execute("PRAGMA user_version").fetchone() == (2,)


def old_postgres(database, text, version, *more):
    """The address of a Postgres ledger of an older version, made from what SQLite held then."""
    import psycopg

    address = database()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA hubbub")
        connection.execute("SET search_path = hubbub")
        connection.execute("CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
                           "$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$")  # fmt: skip
        for statement in text.split(";\n"):
            if statement.lstrip().startswith(("CREATE TABLE", "INSERT INTO", "CREATE INDEX", "CREATE UNIQUE")):
                connection.execute(statement.replace("WITHOUT ROWID", "").replace("INTEGER", "BIGINT").encode())
        for statement in (
            *more,
            "CREATE TABLE version (number BIGINT NOT NULL)",
            f"INSERT INTO version VALUES ({version})",
        ):
            connection.execute(statement.encode())
    return address


def test_a_ledger_of_version_2_in_postgres_keeps_its_chain(database):
    address = old_postgres(
        database,
        VERSION2,
        2,
        "CREATE TRIGGER charge_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON charge "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
    )
    with pytest.raises(PolicyError, match="hubbub ledger migrate"):
        Ledger.inspect(address)
    Ledger.manage(address).close()
    with Ledger.inspect(address) as ledger:
        with ledger._handle.reading() as read:
            # Which of its processes still run is chance: a number of theirs may be another's now.
            lost = read.execute("SELECT count(*), count(DISTINCT charge) FROM step WHERE state = 'lost'").fetchone()
            assert lost[0] == lost[1]
        assert ledger.record.verify().problems == ()
        assert ledger.balance.total("household").epsilon == Fraction(1, 2)


def test_steps_of_an_old_ledger_whose_clock_was_set_back_keep_their_order(path):
    connection = sqlite3.connect(path)
    for trigger in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {trigger[0]}")
    connection.execute("UPDATE step SET time = '2001-01-01T00:00:00.000000Z' WHERE state = 'shown'")
    connection.execute("UPDATE step SET time = '2030-01-01T00:00:00.000000Z' WHERE state = 'drawing'")
    connection.execute("UPDATE release SET time = '2001-01-01T00:00:00.000000Z'")
    connection.commit()
    connection.close()
    with Ledger.open(path, budgets=BUDGETS) as ledger:
        assert ledger.record.verify().problems == ()
        assert [entry.state for entry in ledger.record.history()] == ["shown", "stored", "failed", "charged"]


HEAD3 = "c58cbcbfe3303c523a33429a2335f86740ff103e1ce6bbe7f3f3850439512f1d"
BUDGETS3 = {SPACE: Budget(3), "Patients": Budget(2)}


def test_a_ledger_of_version_3_keeps_its_chain_and_counts_its_deaths(tmp_path, monkeypatch):
    """What died while it drew, or while it was retried, was not counted then; it is now."""
    connection = sqlite3.connect(tmp_path / "old.db")
    connection.executescript((Path(__file__).parent / "version3.sql").read_text())
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    with pytest.raises(PolicyError, match=r"version 3; this hubbub reads version 8\..*hubbub ledger migrate"):
        Ledger.inspect(tmp_path / "old.db")
    Database(tmp_path / "old.db").close()
    with Ledger.inspect(tmp_path / "old.db") as ledger:
        assert ledger.record.verify().problems == ()
        with ledger._handle.reading() as connection:
            assert head_of(connection).hash == HEAD3
    monkeypatch.setattr(under_way, "is_gone", lambda *_: True)
    with Ledger.open(tmp_path / "old.db", budgets=BUDGETS3) as ledger:
        assert {e.question_key: e.state for e in ledger.record.history() if e.question_key in "fwdc"} == {
            "": "charged", "f": "failed", "w": "withdrawn", "d": "lost", "c": "withdrawn",
        }  # fmt: skip
        ledger.steward.unlock_all(SPACE, author="steward")
        assert ledger.record.verify().problems == ()
    with Ledger.open(tmp_path / "new.db", budgets={SPACE: Budget(3)}):  # which takes no such spelling as "Patients"
        pass
    names = [
        {name for (name,) in sqlite3.connect(tmp_path / file).execute("SELECT name FROM sqlite_master")}
        for file in ("old.db", "new.db")
    ]
    assert names[0] == names[1]


HEAD4 = "265c44877464a10387a4eb841534007e2fda67edb3dcd09f8835b7151e382850"
VERSION4 = (Path(__file__).parent / "version4.sql").read_text()


def what_version_4_held(place: str) -> None:
    """Charges without a purpose, each with the link that it had; and what is added bears one."""
    with Ledger.open(place, budgets={SPACE: Budget(3)}) as ledger:
        with ledger._handle.reading() as connection:
            assert connection.execute("SELECT hash FROM journal WHERE serial = 34").fetchone() == (HEAD4,)
        assert ledger.record.verify().problems == ()
        assert [(e.question_key, e.kind, e.state) for e in ledger.record.history()] == [
            ("s", "question", "shown"), ("s", "reading", "charged"), ("w", "question", "withdrawn"),
            ("f", "question", "failed"), ("", "block", "closed"), ("b", "question", "shown"),
            ("", "return", "charged"), ("g", "question", "stored"), ("", "return", "charged"),
        ]  # fmt: skip
        assert {entry.purpose for entry in ledger.record.history()} == {None}
        assert (ledger.balance.spent(SPACE), len(ledger.record.refusals())) == (Fraction(6, 10), 1)
        charge(ledger, "1/10", details='{"neighbours": "add_remove"}', purpose="a yearly report")
        assert ledger.record.history()[-1].purpose == "a yearly report"
        assert ledger.record.verify().problems == ()


_SINCE_6 = "rekeying|redaction|restoring|wording|training"


def without(version: int, tables: str) -> str:
    """What makes a ledger of this version of a present one that holds none of these tables' rows."""
    later = [text for text in schema.sqlite_schema() if re.search(rf"\b({tables})", text)]
    names = [re.match(r"CREATE (UNIQUE )?(TABLE|INDEX|TRIGGER) (\w+)", text).group(2, 3) for text in later]
    return "".join(f"DROP {kind} {name};" for kind, name in reversed(names)) + f"PRAGMA user_version = {version};"


def test_a_ledger_of_version_5_keeps_its_chain_and_takes_a_schedule(tmp_path):
    connection = sqlite3.connect(tmp_path / "old.db")
    connection.executescript(VERSION4)
    migrate.migrate(connection, 4)
    connection.commit()
    connection.executescript(without(5, f"schedule|silence|pending|{_SINCE_6}"))
    assert not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schedule'").fetchall()
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    what_version_4_held(tmp_path / "old.db")
    with Ledger.open(tmp_path / "old.db", budgets={SPACE: Budget(3)}) as ledger:
        assert ledger.record.integrity() == "ok"
        with ledger._handle.reading() as found:
            assert found.execute("SELECT count(*) FROM schedule, silence, pending").fetchone() == (0,)


def test_a_ledger_of_version_6_keeps_the_words_in_its_lines_and_removes_those_of_new_ones(tmp_path):
    connection = sqlite3.connect(tmp_path / "old.db")
    connection.executescript(VERSION4)
    migrate.migrate(connection, 4)
    connection.commit()
    connection.executescript(without(6, _SINCE_6))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    what_version_4_held(tmp_path / "old.db")
    with Ledger.open(tmp_path / "old.db", budgets={SPACE: Budget(3)}) as ledger:
        assert ledger.record.integrity() == "ok"
        with pytest.raises(PolicyError, match="an older hubbub, whose lines hold their words themselves"):
            ledger.steward.redact(next(e.id for e in ledger.record.history() if e.state == "stored"), author="ada")
        new = charge(ledger, "1/1000", question_key="new", sql="SELECT 'Zoe'")
        ledger.charges.let_go(new)
        assert ledger.steward.redact(new, author="ada") == 1
        assert ledger.record.entry(new).sql == "(removed)"
        assert ledger.record.verify().problems == ()


def test_a_ledger_of_version_7_keeps_its_chain_and_has_nothing_for_training(tmp_path):
    connection = sqlite3.connect(tmp_path / "old.db")
    connection.executescript(VERSION4)
    migrate.migrate(connection, 4)
    connection.commit()
    connection.executescript(without(7, "training"))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    what_version_4_held(tmp_path / "old.db")
    with Ledger.open(tmp_path / "old.db", budgets={SPACE: Budget(3)}) as ledger:
        assert ledger.balance.budget(SPACE).training is None
        assert ledger.balance.training(SPACE) == (0, 0)
        assert ledger.record.integrity() == "ok"


def test_a_ledger_of_version_4_keeps_its_chain_and_takes_purposes(tmp_path):
    connection = sqlite3.connect(tmp_path / "old.db")
    connection.executescript(VERSION4)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    with pytest.raises(PolicyError, match=r"version 4; this hubbub reads version 8\..*hubbub ledger migrate"):
        Ledger.inspect(tmp_path / "old.db")
    what_version_4_held(tmp_path / "old.db")
    Ledger.open(tmp_path / "new.db", budgets={SPACE: Budget(3)}).close()
    names = [
        {name for (name,) in sqlite3.connect(tmp_path / file).execute("SELECT name FROM sqlite_master")}
        for file in ("old.db", "new.db")
    ]
    assert names[0] == names[1]


def test_a_ledger_of_version_4_in_postgres_keeps_its_chain_and_takes_purposes(database):
    address = old_postgres(database, VERSION4, 4)
    what_version_4_held(address)
