"""What can go wrong with a server is said, and gives no answer."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress

import psycopg
import pytest

from hubbub.errors import PolicyError
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, charge

BUDGETS = {SPACE: Budget(1)}


def test_a_server_that_is_not_there_is_named_without_its_password(tmp_path):
    pytest.importorskip("psycopg", reason="the Postgres store needs the extra `postgres`")
    address = f"postgresql://ada:secret@/ledger?host={tmp_path}"
    with pytest.raises(PolicyError, match=r"cannot reach the ledger postgresql:///ledger\.") as error:
        Ledger.open(address, budgets=BUDGETS)
    assert "secret" not in str(error.value)


def test_a_database_without_a_ledger_is_left_alone_unless_one_is_wanted(database):
    address = database()
    with pytest.raises(PolicyError, match="there is no ledger in postgresql:///ledger"):
        Ledger.inspect(address)
    with pytest.raises(PolicyError, match="hubbub ledger create"):
        Ledger.open(address, budgets=BUDGETS, create=False)
    Ledger.open(address, budgets=BUDGETS).close()
    with Ledger.inspect(address) as ledger:
        assert ledger.balance.remaining(SPACE) == 1
        with pytest.raises(PolicyError, match="opened for reading only"):
            charge(ledger, 1)


def test_a_lock_held_for_too_long_is_said_and_not_stuck(database):
    import psycopg

    address = database()
    with Ledger.open(address, budgets=BUDGETS, patience=0.2) as ledger, psycopg.connect(address) as other:
        other.execute("SELECT 1 FROM hubbub.ledger FOR UPDATE")
        with pytest.raises(PolicyError, match="held by another process for too long"):
            charge(ledger, "1/4")
        other.rollback()
        charge(ledger, "1/4")
        assert ledger.record.verify().sound


def test_a_connection_that_breaks_is_said_and_opened_anew(database):
    import psycopg

    address = database()
    with Ledger.open(address, budgets=BUDGETS) as ledger:
        charge(ledger, "1/4")
        with psycopg.connect(address, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                          "WHERE application_name = 'hubbub' AND datname = current_database()")  # fmt: skip
        with pytest.raises(PolicyError, match="no answer is given"):
            charge(ledger, "1/4")
        charge(ledger, "1/4")
        assert (ledger.balance.remaining(SPACE), len(ledger.record.history())) == (Budget("1/2").epsilon, 2)


class Proxy:
    """Between the ledger and its server: once told to, it loses the answer to a COMMIT, by a cut or by silence."""

    def __init__(self, address: str) -> None:
        folder = address.partition("host=")[2]
        self.how: str | None = None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.server = os.path.join(folder, ".s.PGSQL.5432")
        name = address.partition("@/")[2].partition("?")[0]
        port = self.listener.getsockname()[1]
        self.address = f"postgresql://hubbub@127.0.0.1:{port}/{name}?sslmode=disable&gssencmode=disable"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            client, _ = self.listener.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.server)
            threading.Thread(target=self.pass_on, args=(client, server), daemon=True).start()
            threading.Thread(target=self.answer, args=(server, client), daemon=True).start()

    def pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                server.sendall(data)

    def answer(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                if self.how is not None and b"COMMIT\x00" in data:
                    how, self.how = self.how, None
                    if how == "cut":
                        client.shutdown(socket.SHUT_RDWR)
                        server.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)


@pytest.mark.parametrize("how", ["cut", "silence"])
def test_a_charge_whose_commit_was_not_answered_is_looked_up(database, how):
    """Before, a silent network was waited for without end, and a recorded step was said not to be."""
    proxy = Proxy(database())
    with Ledger.open(proxy.address, budgets=BUDGETS, patience=2.0) as ledger:
        ledger.charges._looked = time.monotonic() + 1000
        proxy.how = how
        charge_id = charge(ledger, "1/4")  # it was recorded, so it goes on
        assert [entry.id for entry in ledger.record.history()] == [charge_id]
        for step in (
            lambda: ledger.charges.advance(charge_id, "drawing"),
            lambda: ledger.charges.store(charge_id, "answer"),
        ):
            proxy.how, begun = how, time.monotonic()
            with pytest.raises(PolicyError, match=r"may have been recorded.*not charged twice"):
                step()
            assert time.monotonic() < begun + 30
        assert ledger.record.release(charge_id).payload == "answer"
        assert ledger.balance.remaining(SPACE) == Budget("3/4").epsilon


def test_a_server_that_does_not_flush_is_refused(database, monkeypatch):
    from hubbub.ledger import postgres

    address = database()
    monkeypatch.setattr(postgres, "_NEEDED", ("fsync", "zero_damaged_pages"))  # the second is off anywhere
    with pytest.raises(PolicyError, match="runs with zero_damaged_pages off: after a power cut"):
        Ledger.open(address, budgets=BUDGETS)


def test_a_transaction_that_postgres_rolls_back_without_a_word_gives_no_answer(database):
    """COMMIT after a statement that failed is a ROLLBACK, and no error."""
    with Ledger.open(database(), budgets=BUDGETS) as ledger:

        def step() -> None:
            with ledger._handle.store.writing() as connection, suppress(psycopg.Error):
                connection.execute("SELECT 1 / 0")

        with pytest.raises(PolicyError, match="did not record this step"):
            step()
        charge(ledger, "0.1")
        assert ledger.record.verify().problems == ()


def test_every_transaction_is_flushed_whatever_a_pooler_made_of_the_connection(database):
    with Ledger.open(database(), budgets=BUDGETS) as ledger:
        with ledger._handle.reading() as connection:
            assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
        ledger._handle.store._connection.execute("SET synchronous_commit = off")
        for _ in range(8):
            with ledger._handle.writing() as writer:
                assert writer.connection.execute("SHOW synchronous_commit").fetchone() == ("on",)


RULES = {
    "CREATE RULE r AS ON INSERT TO hubbub.{} DO INSTEAD NOTHING": "DROP RULE r ON hubbub.{}",
    "CREATE FUNCTION hubbub.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
    "CREATE TRIGGER r BEFORE INSERT ON hubbub.{} FOR EACH ROW EXECUTE FUNCTION hubbub.f()": "DROP TRIGGER r "
    "ON hubbub.{}",
}


@pytest.mark.parametrize("rule", RULES, ids=["rule", "trigger"])
@pytest.mark.parametrize("table", ["charge", "journal", "wording", "step", "account"])
def test_a_row_that_somebody_else_s_rule_drops_is_not_taken_for_written(database, table, rule):
    address = database()
    with Ledger.open(address, budgets=BUDGETS) as ledger, psycopg.connect(address, autocommit=True) as other:
        made = charge(ledger, "0.1")
        other.execute(rule.format(table))

        def steps() -> None:
            ledger.charges.advance(made, "drawing")
            charge(ledger, "0.1", question_key="another")

        with pytest.raises(PolicyError, match=r"did not write what|could not be used"):
            steps()
        with pytest.raises(PolicyError, match=r"rules or triggers that are not its own \(r\)"):
            Ledger.open(address, budgets=BUDGETS)
        with Ledger.inspect(address) as looked:
            assert looked.record.verify().sound
        other.execute(RULES[rule].format(table))
        charge(ledger, "0.1", question_key="after")
        assert ledger.record.verify().sound


@pytest.mark.parametrize("table", ["account", "charge", "allowance", "step"])
def test_rows_that_a_policy_hides_are_an_error_and_not_left_out(database, table):
    address = database()
    with Ledger.open(address, budgets=BUDGETS) as ledger, psycopg.connect(address, autocommit=True) as other:
        charge(ledger, "0.1")
        other.execute("DO $$ BEGIN CREATE ROLE an LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
        other.execute("GRANT USAGE ON SCHEMA hubbub TO an")
        other.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA hubbub TO an")
        other.execute(f"ALTER TABLE hubbub.{table} ENABLE ROW LEVEL SECURITY")
        other.execute(f"CREATE POLICY p ON hubbub.{table} FOR INSERT WITH CHECK (true)")
        with (
            pytest.raises(PolicyError, match="on tables without row-level security"),
            Ledger.open(address.replace("//hubbub@", "//an@"), budgets=BUDGETS) as hidden,
        ):
            charge(hidden, "0.1", analyst="eve")


def test_a_server_whose_clock_is_years_ahead_records_nothing(database, monkeypatch):
    from hubbub.ledger import postgres

    with Ledger.open(database(), budgets=BUDGETS) as ledger:
        before, plain = ledger.record.verify().serial, postgres._CLOCK
        with monkeypatch.context() as wrong:
            ahead = plain.replace(b"clock_timestamp()", b"(clock_timestamp() + interval '10 years')")
            wrong.setattr(postgres, "_CLOCK", ahead)
            with pytest.raises(PolicyError, match=r"server is 365\d\.\d days ahead of this machine's"):
                charge(ledger, "0.1")
        assert ledger.record.verify().serial == before
        charge(ledger, "0.1")


@pytest.mark.parametrize("encoding", ["LATIN1", "EUC_JP", "SQL_ASCII"])
def test_a_database_that_cannot_hold_every_text_is_refused(database, encoding):
    place = database()
    name = f"other_{encoding.lower()}_{os.getpid()}"
    with psycopg.connect(place, autocommit=True) as connection:
        ask = f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        connection.execute(ask.encode())
        try:
            other = psycopg.conninfo.conninfo_to_dict(place)
            with pytest.raises(PolicyError, match=f"keeps text as {encoding}"):
                Ledger.open(f"postgresql://hubbub@/{name}?host={other['host']}", budgets={SPACE: Budget(3)}).close()
        finally:
            connection.execute(f"DROP DATABASE {name}".encode())


def test_text_is_kept_whatever_encoding_the_environment_of_a_client_names(database, monkeypatch):
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with Ledger.open(database(), budgets={SPACE: Budget(3)}) as ledger:
        charge(ledger, 1, analyst="\u0141ukasz")
        assert [entry.analyst for entry in ledger.record.history()] == ["\u0141ukasz"]
