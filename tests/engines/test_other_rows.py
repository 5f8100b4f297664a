"""A stored answer is given for the rows it was made of, not for others that look alike from outside."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import hubbub as hb

TYPES = {"pid": "integer", "w": "text"}


def rows(word: str) -> pa.Table:
    return pa.table({"pid": list(range(50)), "w": [word] * 50})


def database(table: pa.Table, file: Path) -> None:
    file.unlink(missing_ok=True)
    with duckdb.connect(str(file)) as connection:
        connection.register("found", table)
        connection.execute("CREATE TABLE visits AS SELECT * FROM found")


WRITERS: dict[str, Callable[[pa.Table, Path], object]] = {
    "csv": pyarrow.csv.write_csv, "parquet": pq.write_table, "duckdb": database,
}  # fmt: skip


def write(file: Path, word: str) -> Path:
    WRITERS[file.suffix[1:]](rows(word), file)
    os.utime(file, (1e9, 1e9))
    return file


def ask(file: Path, ledger: Path) -> tuple[list[tuple[object, ...]], bool, str]:
    inner = "visits" if file.suffix == ".duckdb" else None
    types = TYPES if file.suffix == ".csv" else None
    table = hb.table(file, unit="pid", table=inner, max_groups=1, max_rows=1, types=types)
    with hb.Session({"visits": table}, budget=hb.Budget(1000), ledger=ledger, analyst="ada") as session:
        found = session.sql("SELECT COUNT(*) AS n FROM visits WHERE w = 'A'", epsilon=50)
        return found.rows(), found.charged, found.receipt["data_version"]


def beside(file: Path) -> Path:
    """A file of another name, as another year's would be."""
    return write(file.with_name(f"other{file.suffix}"), "B")


def in_place(file: Path) -> Path:
    return write(file, "B")


def by_a_rename(file: Path) -> Path:
    os.replace(beside(file), file)
    return file


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("other", [beside, in_place, by_a_rename])
def test_other_rows_of_equal_size_and_time_are_asked_about_anew(tmp_path, kind, other):
    """Before, the answer about the first file was given for the second, free of charge."""
    first = write(tmp_path / f"t.{kind}", "A")
    stat = first.stat()
    was = ask(first, tmp_path / "b.db")
    assert ask(first, tmp_path / "b.db") == (was[0], False, was[2])
    second = other(first)
    assert (second.stat().st_size, second.stat().st_mtime_ns) == (stat.st_size, stat.st_mtime_ns)
    (((count,),), charged, version) = ask(second, tmp_path / "b.db")
    assert charged
    assert version != was[2]
    assert abs(count) < 20  # beyond by chance: less than 1e-400


def test_a_copied_database_of_postgres_has_rows_of_its_own(tmp_path, postgres_server):
    """In a database made from another one, tables and their files have the numbers that they have there."""
    import psycopg

    base = f"postgresql://hubbub@/{{}}?host={postgres_server}"
    with psycopg.connect(base.format("postgres"), autocommit=True) as admin:
        admin.execute("CREATE DATABASE y2023")
        try:
            with psycopg.connect(base.format("y2023"), autocommit=True) as connection:
                connection.execute("CREATE TABLE visits AS SELECT generate_series(1, 50) AS pid")
            admin.execute("CREATE DATABASE y2024 TEMPLATE y2023")
            with psycopg.connect(base.format("y2024"), autocommit=True) as connection:
                connection.execute("DELETE FROM visits")
            found = []
            for name in ("y2023", "y2024", "y2023"):
                table = hb.table(base.format(name), table="visits", unit="pid", max_groups=1, max_rows=1)
                with hb.Session({"v": table}, budget=hb.Budget(1000), ledger=tmp_path / "b.db", analyst="ada") as s:
                    found.append(s.sql("SELECT COUNT(*) AS n FROM v", epsilon=50).rows()[0][0])
            assert found[0] > 30
            assert found[1] < 20
        finally:
            for name in ("y2024", "y2023"):
                admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
