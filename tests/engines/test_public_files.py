"""Public rows are those that their files hold now, however many there are, and whatever time they bear."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from hubbub.engines.outer import OuterSide


def write(file: Path, value: int) -> None:
    """Such a file, of one size whatever the value, and of one time."""
    pq.write_table(pa.table({"v": [value, value]}), file)
    os.utime(file, ns=(10**18, 10**18))


@pytest.mark.parametrize("source", ["f.parquet", "folder", "folder/*.parquet"])
@pytest.mark.parametrize("pinned", [False, True], ids=["asked", "pinned"])
def test_public_rows_are_read_anew_where_a_file_changes(tmp_path: Path, source: str, pinned: bool) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    files = [tmp_path / "f.parquet", folder / "a.parquet", folder / "b.parquet"]
    for file in files:
        write(file, 5)
    public = OuterSide({"pub": hb.public(str(tmp_path / source))})

    def most() -> int:
        side = public.pinned() if pinned else public
        return int(max(side.table("pub").column("v").to_pylist()))

    assert most() == 5
    before, rows = public.fingerprint("pub"), public.table("pub")
    assert public.table("pub") is rows
    for value in (6, 7):
        for file in files[::2]:  # one of the folder's two
            write(file, value)
        assert most() == value
    assert public.fingerprint("pub") != before
    if source != "f.parquet":
        write(folder / "c.parquet", 8)
        assert most() == 8
        (folder / "c.parquet").unlink()
        assert most() == 7
