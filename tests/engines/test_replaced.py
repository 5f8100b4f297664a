"""A database file that is replaced while a session has it open is noticed before the charge."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import hubbub as hb
from hubbub.errors import PolicyError

COUNT = "SELECT COUNT(*) AS n FROM visits"


def database(path: Path, rows: int) -> str:
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE visits AS SELECT range AS id FROM range({rows})")
    return str(path)


def test_a_duckdb_file_replaced_by_a_rename_is_refused_and_a_new_session_reads_the_new_one(tmp_path: Path) -> None:
    """Before, the old file's rows were released under the data version of the new one."""
    file = database(tmp_path / "a.duckdb", 10)
    declared = {"visits": hb.table(file, table="visits", unit="id", max_groups=1, max_rows=1)}

    def session() -> hb.Session:
        return hb.Session(declared, budget=hb.Budget(100), ledger=tmp_path / "b.db", analyst="ada")

    with session() as s:
        s.sql(COUNT, epsilon=20)
        os.replace(database(tmp_path / "new.duckdb", 500), file)
        with pytest.raises(PolicyError, match=r"replaced while this session had it open.*Nothing was charged"):
            s.sql(COUNT, epsilon=20)
        assert s.remaining == Fraction(80)
    with session() as s:
        ((count,),) = s.sql(COUNT, epsilon=20).rows()
        assert isinstance(count, int)
        assert abs(count - 500) < 20  # beyond by chance: less than 1e-150
        assert s.remaining == Fraction(60)
