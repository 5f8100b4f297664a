"""A folder of Parquet files, or those that fit a pattern, are one table; each row is what its own file says."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from hubbub.engines.duckdb.relations import load_public
from hubbub.file_formats import files_of

BAD = b"\xff bad"


def parts(folder: Path, *, bad: int | None = None, count: int = 4) -> None:
    """Files of ten units each; in one of them a text that is not UTF-8, which DuckDB's reader stops at."""
    for n in range(count):
        (folder / f"day={n}").mkdir(parents=True, exist_ok=True)
        names = [BAD if n == bad and i == 0 else f"unit {n} {i}".encode() for i in range(10)]
        texts = pa.array(names, pa.binary())
        columns = {
            "id": pa.Array.from_buffers(pa.string(), 10, texts.buffers()),
            "x": pa.array(range(10 * n, 10 * n + 10)),
        }
        pq.write_table(pa.table(columns), folder / f"day={n}" / "part.parquet")


def session(source: Path, **more: Any) -> hb.Session:
    table = hb.table(source, unit="id", max_groups=1, max_rows=1, columns={"x": hb.between(0, 100)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hb.Session({"v": table}, budget=hb.Budget(10**6), **{"ledger": None} | more)


QUESTION = "SELECT COUNT(*) AS n, SUM(x) AS total FROM v"


def test_a_folder_and_a_pattern_are_one_table(tmp_path: Path) -> None:
    parts(tmp_path / "v")
    (tmp_path / "v" / "_SUCCESS").write_text("")
    (tmp_path / "v" / "_old.parquet").write_text("not a table")
    for source, n in ((tmp_path / "v", 40), (tmp_path / "v" / "*" / "*.parquet", 40), (tmp_path / "v" / "day=1", 10)):
        with session(source) as asked:
            (row,) = asked.sql(QUESTION, epsilon=100_000).rows()
            assert row[0] == n
            assert row[1] == pytest.approx(sum(range(40)) if n == 40 else sum(range(10, 20)), abs=1)


@pytest.mark.parametrize("bad", range(4))
def test_a_bad_value_in_one_file_changes_no_row_of_another(tmp_path: Path, bad: int) -> None:
    """The patient reading joins rows by their number in their own file: by the number alone, files would mix."""
    parts(tmp_path / "v", bad=bad)
    with session(tmp_path / "v") as asked:
        sums = "SELECT COUNT(*) AS n, SUM(x) AS total FROM v"
        (row,) = asked.sql(sums, epsilon=100_000).rows()
        assert row == (39, pytest.approx(sum(range(40)) - 10 * bad, abs=1))
        high = f"SELECT COUNT(*) AS n FROM v WHERE id = 'unit {3 - bad} 7' AND x = {10 * (3 - bad) + 7}"
        assert asked.sql(high, epsilon=1000).rows() == [(1,)]


@pytest.mark.parametrize("bad", [None, 0, 1])
@pytest.mark.parametrize("types", [(pa.string(), pa.large_string()), (pa.large_string(), pa.string())], ids=str)
def test_texts_that_programs_write_in_types_of_their_own_are_one(tmp_path: Path, types: Any, bad: int | None) -> None:
    """pandas and pyarrow write `string`, polars `large_string`: a bad value must not tell that both are there."""
    for n, kind in enumerate(types):
        binary = pa.binary() if kind == pa.string() else pa.large_binary()
        names = pa.array([BAD if n == bad and i == 0 else f"unit {n} {i}".encode() for i in range(5)], binary)
        texts = pa.Array.from_buffers(kind, 5, names.buffers())
        pq.write_table(pa.table({"id": texts, "x": range(5)}), tmp_path / f"{n}.parquet")
    with session(tmp_path) as asked:
        assert asked.sql("SELECT COUNT(*) AS n FROM v", epsilon=1000).rows() == [(10 - (bad is not None),)]


def test_a_file_that_comes_later_is_another_version_in_another_session(tmp_path: Path) -> None:
    parts(tmp_path / "v", count=3)
    ledger = tmp_path / "budget.db"
    with session(tmp_path / "v", ledger=ledger) as asked:
        assert asked.sql(QUESTION, epsilon=1000).rows()[0][0] == 30
        parts(tmp_path / "v", count=4)
        left = asked.remaining
        with pytest.raises(hb.PolicyError, match="the files of the table 'v' have changed"):
            asked.sql(QUESTION, epsilon=1000)
        assert asked.remaining == left
    with session(tmp_path / "v", ledger=ledger) as asked:
        answer = asked.sql(QUESTION, epsilon=1000)
        assert answer.charged
        assert answer.rows()[0][0] == 40


def test_files_of_other_columns_and_folders_without_files_are_refused(tmp_path: Path) -> None:
    parts(tmp_path / "v")
    pq.write_table(pa.table({"id": ["a"], "x": [1.5]}), tmp_path / "v" / "other.parquet")
    with pytest.raises(hb.PolicyError, match="different columns, or types"):
        session(tmp_path / "v")
    (tmp_path / "empty").mkdir()
    for source in (tmp_path / "empty", tmp_path / "none*.parquet"):
        with pytest.raises(hb.PolicyError, match=r"ends in \.parquet"):
            session(source)


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    path = tmp_path / "what?.parquet"
    pq.write_table(pa.table({"id": ["a"], "x": [1]}), path)
    pq.write_table(pa.table({"id": ["a"], "x": [1]}), tmp_path / "whats.parquet")
    assert files_of(path) == [str(path.resolve())]


def test_a_policy_names_a_folder_or_a_pattern(tmp_path: Path) -> None:
    parts(tmp_path / "v")
    for source in ("v", "v/*/part.parquet"):
        text = f"""
        [ledger]
        file = "budget.db"
        [budget]
        epsilon = 1000
        [tables.v]
        source = "{source}"
        unit = "id"
        max_groups = 1
        max_rows = 1
        """
        (tmp_path / "hubbub.toml").write_text(text)
        with hb.Session.from_policy(tmp_path / "hubbub.toml", create_ledger=True) as asked:
            assert asked.sql("SELECT COUNT(*) AS n FROM v", epsilon=500).rows() == [(40,)]
        for old in tmp_path.glob("budget.db*"):
            old.unlink()


@pytest.mark.parametrize("bad", [None, 0, 3])
@pytest.mark.parametrize("pattern", ["", "*/*.parquet"])
def test_a_file_that_links_lead_to_is_read_once_whatever_is_in_it(
    tmp_path: Path, pattern: str, bad: int | None
) -> None:
    """Joined by file and row, rows that were read twice met twice: one bad text made four of everybody's two."""
    parts(tmp_path / "v", bad=bad)
    (tmp_path / "v" / "latest").symlink_to("day=3", target_is_directory=True)
    (tmp_path / "v" / "day=0" / "same.parquet").symlink_to("part.parquet")
    (tmp_path / "v" / "day=0" / "other.parquet").hardlink_to(tmp_path / "v" / "day=1" / "part.parquet")
    with session(tmp_path / "v" / pattern) as asked:
        ids = "SELECT COUNT(*) AS n, COUNT(DISTINCT id) AS ids FROM v"
        missing = bad is not None
        assert asked.sql(ids, epsilon=100_000, max_rows=9).rows() == [(50 - missing, 40 - missing)]


ODD = ["v[1]", "v*", "{v?,w}", "**", "v'[\"]"]


@pytest.mark.parametrize("bad", [False, True])
@pytest.mark.parametrize("kind", ["folder", "in a folder", "file", "linked", "public"])
@pytest.mark.parametrize("name", ODD)
def test_a_name_that_looks_like_a_pattern_is_itself_for_every_reader(
    tmp_path: Path, name: str, kind: str, bad: bool
) -> None:
    """Beside all that it would stand for, each of which the session may open."""
    others = [other for other in ("v1", "v", "vv", "w", "va", "[") if other != name]
    paths = {}
    for i, other in enumerate((name, *others)):
        folder = tmp_path / other if "folder" in kind else tmp_path
        folder.mkdir(exist_ok=True)
        file = folder / ("part.parquet" if "folder" in kind else f"{other}.parquet")
        texts = pa.array([b"unit %d" % n for n in range(5 + i)] + ([BAD] if bad else []), pa.binary())
        ids = pa.Array.from_buffers(pa.string(), len(texts), texts.buffers())
        pq.write_table(pa.table({"id": ids, "x": pa.array([1] * len(ids))}), file)
        if kind == "linked":
            file = Path(f"{file}.link.parquet")
            os.symlink(f"{other}.parquet", file)
        paths[other] = folder if kind == "folder" else file
    if kind == "public":
        rows = load_public({"p": hb.public(str(paths[name]))})["p"] if not bad else None
        assert rows is None or rows.num_rows == 5
        return
    tables = {f"t{i}": hb.table(path, unit="id", max_groups=1, max_rows=1) for i, path in enumerate(paths.values())}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with hb.Session(tables, budget=hb.Budget(10**6), ledger=None) as asked:
            for i in range(2):
                assert asked.sql(f"SELECT COUNT(*) AS n FROM t{i}", epsilon=10_000).rows() == [(5 + i,)]


def test_a_public_csv_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    for name, rows in (("p[1]", "a\n1\n"), ("p1", "a\n2\n3\n")):
        (tmp_path / f"{name}.csv").write_text(rows)
    public = hb.public(str(tmp_path / "p[1].csv"))
    assert load_public({"p": public})["p"].to_pydict() == {"a": [1]}
