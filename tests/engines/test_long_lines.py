"""A line of a CSV that is too long is left out, and no other: Arrow reads no piece of 2 GiB, whoever wrote it."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest

from hubbub.engines.duckdb import csv_files
from hubbub.file_formats import Csv


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("read", [1, 3, 7, 64, 4096])
def test_a_line_beyond_the_longest_is_left_out_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: int, end: str
) -> None:
    """Its length made an error of everybody's answer. Read in small pieces here, of lines of at most 20 bytes."""
    monkeypatch.setattr(csv_files, "_SLICE", read)
    monkeypatch.setattr(csv_files, "_LONGEST", 20)
    for at in range(4):
        lines = ["1,a", "2,b", "3,c"]
        lines.insert(at, "9," + "x" * 5000)
        path = tmp_path / f"{read}{at}.csv"
        path.write_text("id,x\n" + "\n".join(lines) + end)
        assert csv_files.read_csv(str(path), ["id", "x"], Csv(), {}).column("id").to_pylist() == ["1", "2", "3"]


def test_no_piece_reaches_what_arrow_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert csv_files._LONGEST + 2 * csv_files._SLICE < 2**31 - 1000
    monkeypatch.setattr(csv_files, "_SLICE", 16)
    monkeypatch.setattr(csv_files, "_LONGEST", 64)
    pieces = list(csv_files._pieces(io.BytesIO(b"y" * 10_000 + b"\n" + b"x" * 60 + b"\nz")))
    assert max(map(len, pieces)) <= 64 + 2 * 16
    assert b"".join(pieces).split() == [b"x" * 60, b"z"]


def test_a_field_of_many_line_breaks_takes_no_longer_than_its_bytes(tmp_path: Path) -> None:
    """Each line of an open quote copied all lines before it: 200 kB of one person took more than a minute."""
    path = tmp_path / "breaks.csv"
    path.write_text('id,x\n1,a\n9,"' + "\n" * 120_000 + '"\n2,b\n')
    before = time.process_time()
    rows = csv_files.read_csv(str(path), ["id", "x"], Csv(quoted_line_breaks=True), {})
    assert time.process_time() - before < 5
    assert sorted(rows.column("id").to_pylist()) == ["1", "2", "9"]
