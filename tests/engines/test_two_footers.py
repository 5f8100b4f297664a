"""What a Parquet footer says of a file's rows, and the two readings of the file: both believe it, or neither.

DuckDB makes NULLs of a part that is said to be all NULL, and stops at the rows that a part is said to have; Arrow
looked at the values, and went on with the next part's rows. So one person's text that is not UTF-8, which decides which
of the two reads, decided over everybody's rows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from answers import Desk
from engines.footer import changed, chunks, numbers
from engines.parquet_columns import BAD
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.engines.duckdb.parquet_footer import Leaf, parts_of
from hubbub.engines.duckdb.relations import LEFT_OUT
from hubbub.errors import PolicyError
from people import HUGE

ROWS, PART = 24, 8


def write(path: Path, bad: int | None = None, **how: Any) -> Path:
    """Three parts of eight rows. bad: the row whose note is not UTF-8."""
    rows = range(ROWS)
    columns = {
        "u": pa.array([f"p{i}" for i in rows]),
        "t": pa.array(["x" * (i % 3) if i % 4 else None for i in rows]),
        "at": pa.array([i * 1000 if i % 7 else None for i in rows], pa.timestamp("ms")),
        "n": pa.array([i if i % 5 else None for i in rows]),
        "note": pa.array([BAD if i == bad else "goooood"[: len(BAD)] for i in rows]),
    }
    pq.write_table(pa.table(columns), path, row_group_size=PART, compression="none", **how)
    path.write_bytes(path.read_bytes().replace(BAD.encode(), b"\xff" * len(BAD)))
    return path


def both(path: Path) -> list[Any] | None:
    """The rows in each reading, or that it fails; None for a file that is refused."""
    engine = DuckDBEngine()
    try:
        engine.add("t", hb.table(str(path), unit="u", max_total=1))
        known = engine._known["t"]
        assert known.patient is not None
        text = f"SELECT {known.unit}, {', '.join(known.columns[c] for c in ('t', 'at', 'n', 'note'))} FROM {{}}"
        readings: list[Any] = []
        for relation, patient in ((known.relation, None), (known.patient.relation("p"), known.patient)):
            with duckdb.connect(config={"disabled_optimizers": LEFT_OUT}) as con:
                try:
                    if patient is not None:
                        patient.fill(con, "p")
                    readings.append(sorted(map(repr, con.execute(text.format(relation)).fetchall())))
                except (duckdb.Error, pa.ArrowException, OSError, ValueError):
                    readings.append("fails")
        return readings
    except PolicyError:
        return None
    finally:
        engine.close()


def _null(place: int, parts: slice) -> Callable[[Any], None]:
    def lie(footer: Any) -> None:
        for group in footer[4][1][1][parts]:
            group[1][1][1][place][3][1][12][1][3] = (6, PART)

    return lie


def _rows(more: int, *parts: int) -> Callable[[Any], None]:
    """The same lie wherever rows are counted: of the file, of its parts, of their columns."""

    def lie(footer: Any) -> None:
        for i, group in enumerate(footer[4][1][1]):
            if i in parts:
                group[3] = (6, PART + more)
                for column in group[1][1][1]:
                    column[3][1][5] = (6, PART + more)
        footer[3] = (6, ROWS + more * len(parts))

    return lie


def _levels(footer: Any) -> None:
    for _, column in chunks(footer):
        column[16][1][3][1][1].pop()


LIES: dict[str, Callable[[Any], Any]] = {
    "units are NULL": _null(0, slice(1, 2)),
    "texts are NULL": _null(1, slice(0, 3)),
    "moments are NULL": _null(2, slice(0, 1)),
    "notes are NULL": _null(4, slice(2, 3)),
    "a part has fewer rows": _rows(-1, 0),
    "two parts have fewer rows": _rows(-3, 0, 1),
    "a part has no rows": _rows(-PART, 1),
    "the file has more rows": lambda footer: footer.update({3: (6, ROWS + 1)}),
    "the file has fewer rows": lambda footer: footer.update({3: (6, ROWS - 1)}),
    "a part is left out": lambda footer: footer[4][1][1].pop(),
    "a part has more rows than values": lambda footer: footer[4][1][1][0].update({3: (6, PART + 1)}),
    "levels are left out": _levels,
}
HOW = {
    "dictionaries": {},
    "plain": {"use_dictionary": False},
    "small pages": {"use_dictionary": False, "data_page_version": "2.0", "data_page_size": 10},
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("lie", LIES)
def test_both_readings_believe_a_footer_or_the_file_is_refused(tmp_path: Path, lie: str, how: str) -> None:
    path = write(tmp_path / "t.parquet", **HOW[how])  # type: ignore[arg-type]
    changed(path, LIES[lie])
    readings = both(path)
    assert readings is None or readings[0] == readings[1]


def test_an_honest_footer_is_written_as_it_was_read(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet")
    before = path.read_bytes()
    changed(path, lambda footer: None)
    assert path.read_bytes() == before
    readings = both(path)
    assert readings is not None
    assert readings[0] == readings[1] != "fails"


@pytest.mark.parametrize("lie", ["units are NULL", "texts are NULL", "two parts have fewer rows"])
def test_one_text_changes_nobody_s_rows_whatever_the_footer_says(tmp_path: Path, lie: str) -> None:
    answers = []
    for bad in (None, ROWS - 1):
        path = write(tmp_path / f"{bad}.parquet", bad)
        changed(path, LIES[lie])
        desk = Desk({"t": hb.table(str(path), unit="u", max_groups=1, max_rows=1)})
        rest = f"FROM t WHERE n < {ROWS - 1} AND note <> ''"
        asked = ("COUNT(*)", "COUNT(t)", "COUNT(CASE WHEN u < 'p15' THEN 1 END)")
        answers.append([desk.ask(f"SELECT {what} AS c {rest}", HUGE).rows() for what in asked])
        desk.engine.close()
    assert answers[0] == answers[1]


@pytest.mark.soak
@pytest.mark.parametrize("value", [0, 1, PART, PART + 1, ROWS])
def test_no_number_that_counts_tells_the_readings_apart(tmp_path: Path, value: int) -> None:
    """Each number of a footer by itself. Of those that say where a column's bytes are and of what type, Arrow believes
    more than DuckDB does, and fails.
    """
    path = write(tmp_path / "t.parquet")
    whole = path.read_bytes()
    total = 0

    def every(footer: Any) -> None:
        nonlocal total
        total = sum(1 for _ in numbers(footer))

    changed(path, every)
    for i in range(total):
        path.write_bytes(whole)
        changed(path, lambda footer, i=i: list(numbers(footer))[i](value))
        readings = both(path)
        assert readings is None or readings[0] == readings[1] or "fails" in readings, i


class Coded(pa.ExtensionType):
    """A type of some program's own, registered where a file of it is read."""

    def __init__(self) -> None:
        super().__init__(pa.dictionary(pa.int32(), pa.string()), "hubbub.tests.coded")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: Any, serialized: bytes) -> Coded:
        return cls()


@pytest.mark.parametrize("rows", [0, ROWS])
def test_a_text_of_a_type_of_its_own_and_a_file_without_rows_end_no_process(tmp_path: Path, rows: int) -> None:
    path = write(tmp_path / "t.parquet")
    table = pq.read_table(path).slice(0, rows)
    coded = pa.ExtensionArray.from_storage(Coded(), table["t"].combine_chunks().dictionary_encode())
    pa.register_extension_type(Coded())
    try:
        pq.write_table(table.set_column(1, "t", coded), path)
        readings = both(path)
    finally:
        pa.unregister_extension_type("hubbub.tests.coded")
    assert readings is not None
    assert readings[0] == readings[1] != "fails"
    assert len(readings[0]) == rows


def _more(path: Path, *fields: bytes) -> None:
    """Write the file anew with more fields at the end of its footer."""
    whole = path.read_bytes()
    at = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    footer = whole[at:-9] + b"".join(fields) + b"\0"
    path.write_bytes(whole[:at] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


ROWS_AGAIN, LONG_NUMBER, MANY = b"\x06\x06\x0e", b"\x06\x86\x80\x08\x0e", b"\xff\xff\xff\xff\x7f"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(ROWS_AGAIN, id="the number of rows twice"),
        pytest.param(LONG_NUMBER, id="field 65539, whose lowest 16 bits are 3"),
        pytest.param(b"\x06\x05\x00", id="a field below 0"),
        pytest.param(b"\x19\xf9" + b"\x80" * 10 + b"\x00", id="a count of more than 64 bits"),
        pytest.param(b"\x19\xf1" + MANY, id="34 billion truths in no byte"),
        pytest.param(b"\x19\xf7" + MANY, id="34 billion doubles in no byte"),
        pytest.param(b"\x18" + MANY, id="a text of 34 billion bytes"),
    ],
)
def test_a_footer_of_which_readers_may_read_another_is_refused_at_once(tmp_path: Path, fields: bytes) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1, 2, 3]}), path, store_schema=False)
    assert [part.rows for part in parts_of(str(path), [Leaf(1, 0)])] == [3]
    _more(path, fields)
    with pytest.raises(ValueError, match="no footer"):
        parts_of(str(path), [Leaf(1, 0)])


def test_a_number_of_another_type_than_its_fields_is_refused(tmp_path: Path) -> None:
    """Readers pass it over, so what it says is not what they know."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1, 2, 3]}), path)

    def narrower(footer: Any) -> None:
        for _, column in chunks(footer):
            column[12][1][3] = (5, 3)

    changed(path, narrower)
    with pytest.raises(ValueError, match="no footer"):
        parts_of(str(path), [Leaf(1, 0)])
