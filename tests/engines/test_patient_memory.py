"""What the patient reading of a Parquet file holds does not grow with a text's rows, nor with those of the file: one
person's value that is not UTF-8 made an answer an error for everybody where memory did not hold all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from answers import Desk
from people import HUGE

MIB = 2**20
LONG = 32_767
POOLS = list[pa.MemoryPool]()
"""Of all tests: what was taken from one may be given back after its test."""


@pytest.fixture
def taken() -> Iterator[pa.MemoryPool]:
    """What Arrow takes during a test."""
    before = pa.default_memory_pool()
    POOLS.append(pa.proxy_memory_pool(before))
    pa.set_memory_pool(POOLS[-1])
    yield POOLS[-1]
    pa.set_memory_pool(before)


def coded(entries: list[bytes], places: list[int]) -> pa.Array:
    texts = pa.Array.from_buffers(pa.string(), len(entries), pa.array(entries, pa.binary()).buffers())
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), texts)


def counted(path: Path, *questions: str) -> list[object]:
    desk = Desk({"t": hb.table(str(path), unit="u", max_groups=1, max_rows=1)})
    answers = [desk.ask(f"SELECT COUNT({asked}) AS n FROM t", HUGE).rows()[0][0] for asked in questions]
    desk.engine.close()
    return answers


@pytest.mark.parametrize("part", [2_000, 20_000])
def test_a_text_of_a_dictionary_is_not_written_out_for_each_row(
    tmp_path: Path, taken: pa.MemoryPool, part: int
) -> None:
    """A file of 4,480 bytes took gigabytes: a note that stood in all rows of one person."""
    notes = coded([b"n" * LONG, b"ok", b"\xff"], [1] * 20 + [2] + [0] * 4_979)
    rows = pa.table({"u": pa.array([*range(21), *[7] * 4_979], pa.int64()), "note": notes})
    path = tmp_path / "t.parquet"
    pq.write_table(rows, path, store_schema=False, row_group_size=part)
    before = taken.max_memory()
    assert counted(path, "note", "DISTINCT u", "*") == [20, 21, 21]
    assert max(taken.max_memory() - before, 0) < 16 * MIB


def test_the_rows_of_a_file_are_not_held_outside_the_engine(tmp_path: Path, taken: pa.MemoryPool) -> None:
    """Each row took 140 bytes and more of this process, whatever the limit: with it the file's whole path."""
    count, folder = 200_000, tmp_path / "a_folder_with_a_rather_long_name" / "and_another_one"
    folder.mkdir(parents=True)
    units = pa.array(range(count), pa.int64())
    notes = coded([b"a", b"b", b"\xff"], [2, *[i % 2 for i in range(1, count)]])
    pq.write_table(pa.table({"u": units, "note": notes}), folder / "t.parquet", store_schema=False, row_group_size=4096)
    before = taken.max_memory()
    assert counted(folder / "t.parquet", "note") == [count - 1]
    assert taken.max_memory() - before < 4 * MIB


def test_rows_of_several_files_meet_their_own_texts(tmp_path: Path) -> None:
    """In files and parts of unlike dictionaries, of which some have a text that is not UTF-8 or is NULL."""
    expected = 0
    for i in range(3):
        entries = [f"{i} {k}".encode() for k in range(5)] + [b"\xff"] * (i == 1)
        places = [k % len(entries) for k in range(50)]
        texts = [entries[k].decode(errors="replace") if k % 7 else None for k in places]
        own = [f"{i} {k}" if k < 5 else "none" for k in places]
        column = coded(entries, places)
        column = pa.DictionaryArray.from_arrays(
            pa.array([k if text is not None else None for k, text in zip(places, texts, strict=True)], pa.int32()),
            column.dictionary,
        )
        rows = {"u": [f"{i}:{k}" for k in range(50)], "note": column, "own": own}
        pq.write_table(pa.table(rows), tmp_path / f"{i}.parquet", row_group_size=20, store_schema=False)
        expected += sum(text == mine for text, mine in zip(texts, own, strict=True))
    desk = Desk({"t": hb.table(str(tmp_path), unit="u", max_groups=1, max_rows=1)})
    assert desk.ask("SELECT COUNT(*) AS n FROM t WHERE note = own", HUGE).rows() == [(expected,)]
    assert desk.ask("SELECT COUNT(*) AS n FROM t WHERE note <> own", HUGE).rows() == [(0,)]
    desk.engine.close()
