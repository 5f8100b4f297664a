"""What can go wrong with a server is said, and gives no answer."""

from __future__ import annotations

import pytest

from hubbub.errors import PolicyError
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, charge

BUDGETS = {SPACE: Budget(1)}


def test_a_server_that_is_not_there_is_named_without_its_password(tmp_path):
    pytest.importorskip("psycopg", reason="the Postgres store needs the extra hubbub[postgres]")
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
        assert ledger.remaining(SPACE) == 1
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
        assert ledger.verify().sound


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
        assert (ledger.remaining(SPACE), len(ledger.history())) == (Budget("1/2").epsilon, 2)
