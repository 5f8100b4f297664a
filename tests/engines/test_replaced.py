"""A database file that is replaced while a session has it open is noticed before the charge."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import hubbub as hb
from hubbub.errors import EngineError, PolicyError

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


_DIES = """
import os, sys, duckdb
connection = duckdb.connect(sys.argv[1])
connection.execute("INSERT INTO visits SELECT range + ? FROM range(490)", [int(sys.argv[2])])
os._exit(0)
"""


def test_rows_that_a_program_left_in_the_log_of_a_database_are_another_version(tmp_path: Path) -> None:
    """DuckDB reads them, and the file beside them is the same: what was stored would be taken for an answer of them."""
    file = database(tmp_path / "a.duckdb", 10)
    before = Path(file).stat()
    declared = {"visits": hb.table(file, table="visits", unit="id", max_groups=1, max_rows=1)}
    for counted in (10, 500, 990):
        with hb.Session(declared, budget=hb.Budget(100), ledger=tmp_path / "b.db", analyst="ada") as s:
            ((count,),) = s.sql(COUNT, epsilon=20).rows()
            assert isinstance(count, int)
            assert abs(count - counted) < 20
        subprocess.run([sys.executable, "-c", _DIES, file, str(counted)], check=True)
        assert Path(f"{file}.wal").stat().st_size
        after = Path(file).stat()
        if counted == 10:  # a second program writes what the first one left there into the file
            assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


REPLACED = {
    "renamed": lambda file, other: os.replace(other, file),
    "written over": lambda file, other: file.write_bytes(other.read_bytes()),
    "gone": lambda file, _: file.unlink(),
    "another behind the link": lambda file, other: (os.replace(file, f"{file}.old"), os.symlink(other, file)),
}


def _break(engine: Any) -> None:
    """DuckDB's own word after an internal error: everything on this connection is refused from now on."""
    engine._con.close()


@pytest.mark.parametrize("how", [None, *REPLACED])
def test_an_engine_that_mends_itself_in_a_question_opens_the_file_that_was_charged_or_none(
    tmp_path: Path, how: str | None
) -> None:
    """The engine breaks after the charge, and the file is another one when it is opened again: no row of it is read."""
    path, beside = tmp_path / "a.duckdb", database(tmp_path / "beside.duckdb", 7)
    file, other = database(path, 10), Path(database(tmp_path / "new.duckdb", 500))
    declared = {
        "visits": hb.table(file, table="visits", unit="id", max_groups=1, max_rows=1),
        "others": hb.table(beside, table="visits", unit="id", unit_space="others", max_groups=1, max_rows=1),
    }
    with hb.Session(declared, budget=hb.Budget(100), ledger=tmp_path / "b.db", analyst="ada") as s:
        engine: Any = s._engine
        asked, answers = [0], engine._answers

        def broken(*arguments: Any) -> Any:
            asked[0] += 1
            if asked[0] == 1:
                _break(engine)
                if how is not None:
                    REPLACED[how](path, other)
            return answers(*arguments)

        engine._answers = broken
        with pytest.raises(EngineError):
            s.sql(COUNT, epsilon=20)
        assert s.remaining == Fraction(80)
        if how is None:
            assert abs(s.sql(COUNT, epsilon=30).rows()[0][0] - 10) < 20
            return
        for table in ("visits", "others"):  # nothing more is charged for an engine that has no files
            with pytest.raises(PolicyError, match="Nothing was charged"):
                s.sql(f"SELECT COUNT(*) AS n FROM {table}", epsilon=20)
        assert s.remaining == Fraction(80)
        assert engine._lost == "visits"


def test_a_database_that_is_written_in_place_while_it_is_open_is_refused(tmp_path: Path) -> None:
    """Its inode stays, and half of its pages are in memory."""
    file = database(tmp_path / "a.duckdb", 10)
    declared = {"visits": hb.table(file, table="visits", unit="id", max_groups=1, max_rows=1)}
    with hb.Session(declared, budget=hb.Budget(100), ledger=tmp_path / "b.db", analyst="ada") as s:
        Path(file).write_bytes(Path(database(tmp_path / "new.duckdb", 500)).read_bytes())
        with pytest.raises(PolicyError, match="open a new session"):
            s.sql(COUNT, epsilon=20)
        assert s.remaining == Fraction(100)
