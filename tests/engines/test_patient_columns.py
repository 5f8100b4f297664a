"""The patient reading of a Parquet file reads what a question reads, and no more: that it is made may tell nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from answers import Desk


def texts(*values: bytes) -> pa.Array:
    """A column of texts of any bytes."""
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


def damaged(path: Path, column: int) -> None:
    """The file with a page of a column, written plainly, that no reader takes."""
    at = pq.read_metadata(path).row_group(0).column(column).data_page_offset
    written = bytearray(path.read_bytes())
    written[at : at + 8] = b"\xff" * 8
    path.write_bytes(written)


@pytest.mark.parametrize("value", [b"a", b"\xff"])
def test_a_column_that_cannot_be_read_fails_no_question_without_it(tmp_path: Path, value: bytes) -> None:
    """One person's text that is not UTF-8 made the answer about all others an error."""
    path = tmp_path / "t.parquet"
    rows = pa.table({"u": [1, 2, 3], "s": texts(b"a", b"b", value), "x": ["x", "y", "z"]})
    pq.write_table(rows, path, use_dictionary=False, compression="none")
    damaged(path, 2)
    desk = Desk({"t": hb.table(str(path), unit="u", max_total=1)})
    answer = desk.ask("SELECT COUNT(*) AS n FROM t WHERE s = 'b'", 1000)
    assert answer.to_pandas()["n"].tolist() == [1]


FILES: dict[str, dict[str, Any]] = {
    "people": {
        "name": texts(b"ann", b"bob", b"\xff", b"cy"),
        "city": texts(b"rome", b"\xfe", b"rome", b"bern"),
        "badge": texts(b"k", b"l", b"m", b"\xff"),
    },
    "stays": {"badge": texts(b"k", b"\xff", b"k", b"l", b"m"), "bed": texts(b"a", b"b", b"b", b"\xfd", b"a")},
    "visits": {
        "Who": texts(b"ann", b"ann", b"bob", b"cy", b"\xff"),
        "ward": texts(b"a", b"b", b"b", b"\xfd", b"a"),
        "at": pa.array([0, 1, 2, 3, 2**62], pa.int64()).cast(pa.timestamp("ms")),
        "n": pa.array([1, 2, 3, 4, 5]),
    },
}

EVERY = {name: tuple(columns) for name, columns in FILES.items()}

QUESTIONS = [
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT COUNT(ward) AS n FROM visits",
    "SELECT COUNT(DISTINCT WARD) AS n FROM visits",
    "SELECT SUM(n) AS n FROM visits WHERE UPPER(ward) = 'B'",
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT COUNT(*) AS n FROM visits WHERE at < TIMESTAMP '1970-01-02'",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT who, ward, at FROM visits)",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT * FROM visits)",
    "SELECT SUM(k) AS n FROM (SELECT who, COUNT(DISTINCT ward) AS k FROM visits GROUP BY who)",
    "SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY ward) AS k FROM visits) WHERE k=1",
    "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.who = b.who AND a.ward < b.ward",
    "SELECT COUNT(*) AS n FROM visits JOIN people ON who = name WHERE city = 'rome'",
    "SELECT COUNT(*) AS n FROM people WHERE EXISTS (SELECT 1 FROM visits WHERE who = name AND ward = 'b')",
    "SELECT COUNT(*) AS n FROM stays WHERE bed = 'b'",
    "SELECT COUNT(*) AS n FROM stays AS s JOIN people AS p ON s.badge = p.badge WHERE bed = 'b' AND city = 'rome'",
]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Files with a value in every column at which the quick reading fails."""
    folder = tmp_path_factory.mktemp("files")
    for name, columns in FILES.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    limits: dict[str, Any] = {"max_groups": 4, "max_rows": 4, "max_total": 8}
    wards: dict[str, Any] = {"ward": hb.one_of("a", "b"), "n": hb.between(0, 9)}
    cities = {"city": hb.one_of("rome", "bern")}
    visits, people, stays = (str(folder / f"{name}.parquet") for name in ("visits", "people", "stays"))
    return Desk(
        {
            "visits": hb.table(visits, unit="Who", unit_space="name", columns=wards, **limits),
            "people": hb.table(people, unit="name", columns=cities, **limits),
            "stays": hb.table(stays, unit="people.name", through="badge", max_groups=4, max_rows=4, max_total=8),
        }
    )


@pytest.mark.parametrize("asked", QUESTIONS)
def test_it_has_every_column_that_a_question_reads(desk: Desk, asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All columns are read as the question's are."""
    few = [desk.engine.run(plan) for plan in desk.plans(asked)]
    monkeypatch.setattr("hubbub.engines.duckdb.engine._columns_read", lambda *_: EVERY)
    assert few == [desk.engine.run(plan) for plan in desk.plans(asked)]
