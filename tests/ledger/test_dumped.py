"""A ledger in Postgres is dumped and put back as the page on operations says: its own words, run by a shell."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hubbub.ledger.budget import Budget
from hubbub.ledger.policy import load_policy
from hubbub.ledger.store import Ledger
from hubbub.service.people.at_home import opened_people
from hubbub.service.people.person import NotKnown
from ledger.conftest import _binaries
from ledger.helpers import SPACE, charge

PAGE = Path(__file__).parents[2] / "docs/reference/operations.md"
POLICY = """\
[ledger]
url = "env:BUDGETS"
[budget]
epsilon = 4
[tables.t]
source = "t.parquet"
unit = "{space}"
unit_space = "{space}"
"""


def blocks(word: str) -> str:
    """The block of the page with this word in it."""
    (found,) = [b for b in re.findall(r"```shell\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL) if word in b]
    return str(found)


@pytest.fixture
def shell(tmp_path, database):
    """Runs a block where the policy lies, with hubbub and Postgres's own programs; /backups is a folder of the test."""
    binaries = _binaries()
    if binaries is None or shutil.which("sqlite3") is None or not (binaries / "pg_dump").exists():
        pytest.skip("the programs of Postgres and SQLite are not here")
    (tmp_path / "bin").mkdir()
    (tmp_path / "backups").mkdir()
    own = tmp_path / "bin/hubbub"
    own.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hubbub "$@"\n')
    own.chmod(own.stat().st_mode | stat.S_IXUSR)
    address = database()
    place = f"{tmp_path / 'bin'}:{binaries}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": place, "BUDGETS": address}
    pq.write_table(pa.table({SPACE: [1, 2]}), tmp_path / "t.parquet")
    (tmp_path / "hubbub.toml").write_text(POLICY.format(space=SPACE))

    def run(block: str) -> subprocess.CompletedProcess[str]:
        text = "set -e\n" + block.replace("/backups", str(tmp_path / "backups"))
        done = subprocess.run(["bash", "-c", text], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    run.address = address  # type: ignore[attr-defined]
    return run


def test_a_dump_is_made_and_put_back_as_the_page_says(shell, tmp_path, monkeypatch):
    monkeypatch.setenv("BUDGETS", shell.address)
    shell("hubbub ledger create\nhubbub person add ada\nhubbub token create ada > token")
    with Ledger.open(shell.address, budgets={SPACE: Budget(4)}) as ledger:
        charge(ledger, Fraction(1, 2))
    shell(blocks("pg_dump"))
    with Ledger.open(shell.address, budgets={SPACE: Budget(4)}) as ledger:  # charged after the dump: what no dump knows
        charge(ledger, Fraction(1, 4))
    (tmp_path / "service.db").write_bytes((tmp_path / "backups/service.db").read_bytes())
    done = shell(blocks("pg_restore"))
    assert "Nobody can log in, and no token holds" in done.stderr
    with Ledger.open(shell.address, budgets={SPACE: Budget(4)}) as ledger:
        assert ledger.record.verify().problems == ()
        assert ledger.balance.spent(SPACE) == Fraction(1, 2)
        assert ledger.balance.remaining(SPACE, analyst="ada") == Fraction(5, 2)  # of 3 that were granted, not of 4
    people = opened_people(load_policy(tmp_path / "hubbub.toml"))
    with pytest.raises(NotKnown):
        people.prove({"token": (tmp_path / "token").read_text().strip()})
    people.close()


def test_what_was_left_is_aside_and_still_readable(shell):
    import psycopg

    shell("hubbub ledger create")
    shell(blocks("pg_dump"))
    with Ledger.open(shell.address, budgets={SPACE: Budget(4)}) as ledger:
        charge(ledger, Fraction(1, 4))
    shell(blocks("pg_restore"))
    with psycopg.connect(shell.address) as connection:
        found = connection.execute("SELECT count(*) FROM hubbub_before.charge").fetchone()
    assert found == (1,)
