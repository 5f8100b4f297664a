"""A Parquet file's dictionary holds values of rows that a question is not about; none of them makes DuckDB fail.

DuckDB computes a function that it believes to have no errors once for each entry of a dictionary. Where it errs in
that, no TRY holds the error, and a CASE in front of it does not help where its condition holds for all rows of a
vector: then it hands the whole dictionary on. So each file here has many more rows than a vector, and the odd values
stand in its first rows alone.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from answers import Desk
from engines.corpus import COLUMNS, FORMS, TEXTS, bound
from engines.evaluated import written
from hubbub.engines.duckdb.dialect import DUCKDB
from hubbub.engines.duckdb.relations import LEFT_OUT
from hubbub.engines.fields import Fields
from people import HUGE

PLAIN = 6000
"""Rows with a plain value: three vectors."""
ENDS = [2**63 - 1, -(2**63), -(2**63) + 1, -(2**63) + 2, 2**62, -(2**62), 253402300800000000, -62135596800000001]
DAYS = [2**31 - 1, -(2**31), -(2**31) + 1, 2932897, -719163, 106751992]


def _whole(kind: Any, odd: list[int], plain: list[int], width: Any = None) -> pa.Array:
    return pa.array([*odd, *(plain[k % len(plain)] for k in range(PLAIN))], width or pa.int64()).view(kind)


def _moments(unit: str, zone: str | None) -> pa.Array:
    most = 2**63 // {"ms": 1000}.get(unit, 1) - 1
    plain = {"ms": 10**12, "us": 10**15, "ns": 10**18}[unit]
    ends = {max(-most, min(most, end)) for end in ENDS} | ({-(2**63)} if unit != "ms" else set())
    return _whole(pa.timestamp(unit, zone), sorted(ends), [plain, plain + 1, plain + 2])


def _decimals(digits: int, scale: int) -> pa.Array:
    end = 2 ** (8 * ((10**digits - 1).bit_length() // 8 + 1) - 1)
    values = [end - 1, -end, -end + 1, 10**digits - 1, 1 - 10**digits, *[1, 2, 3] * (PLAIN // 3)]
    held = b"".join(n.to_bytes(16, "little", signed=True) for n in values)
    return pa.Array.from_buffers(pa.decimal128(digits, scale), len(values), [None, pa.py_buffer(held)])


STORED: dict[str, pa.Array] = {
    **{
        f"moments {u} {z}": _moments(u, z) for u in ("ms", "us", "ns") for z in (None, "UTC") if (u, z) != ("ns", "UTC")
    },
    "days": _whole(pa.date32(), DAYS, [20000, 20001], pa.int32()),
    "whole": _whole(pa.int64(), ENDS, [1, 2, 3]),
    "whole 8": _whole(pa.int8(), [127, -128], [1, 2], pa.int8()),
    "unsigned": pa.array([2**64 - 1, 2**63, *[1, 2, 3] * (PLAIN // 3)], pa.uint64()),
    **{
        f"decimals {d}, {s}": _decimals(d, s) for d, s in ((3, 1), (9, 2), (18, 2), (20, 5), (38, 0), (38, 2), (38, 38))
    },
    "numbers": pa.array([math.nan, math.inf, -math.inf, 1.7e308, 5e-324, -0.0, *[1.0, 2.5] * (PLAIN // 2)]),
    "texts": pa.array([*TEXTS, "\0", *["A", "2025-01-31"] * (PLAIN // 2)]),
    "bytes": pa.array([b"\xff", b"", *[b"a", b"b"] * (PLAIN // 2)]),
}
CASTS = [f"CAST(({{0}}) AS {kind})" for kind in ("VARCHAR", "BIGINT", "DATE", "TIMESTAMP")]


def _file(path: Path, column: pa.Array, **how: Any) -> str:
    pq.write_table(
        pa.table({"id": range(len(column)), "c": column}), path, version="2.6", write_statistics=False, **how
    )
    return str(path)


def _asked(column: str) -> list[str]:
    """Every form of one place, and casts of what it makes."""
    made = [form.format(column) for form, places in FORMS if places == 1]
    made += [cast.format(text) for text in made if bound(text) is not None for cast in CASTS]
    return [text for text in made if bound(text) is not None]


@pytest.mark.parametrize("name", [*STORED, "moments of 96 bits"])
def test_no_value_of_a_dictionary_fails_for_rows_that_have_others(name: str, tmp_path: Path) -> None:
    old = name not in STORED
    column = STORED["moments ns None" if old else name]
    path = _file(tmp_path / "t.parquet", column, use_deprecated_int96_timestamps=old)
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute(f"SET disabled_optimizers = '{LEFT_OUT}'")
        kinds = {c: kind for c, kind, *_ in con.execute(f"DESCRIBE FROM '{path}'").fetchall()}
        fields = Fields("t", kinds, {}, {}, DUCKDB)
        named = next((c for c, kind in COLUMNS.items() if kind is fields.kinds()["c"]), None)
        texts = [text for _, text in written(_asked(named), DUCKDB)] if named else []
        read = f"SELECT {fields.expressions()['c']} AS {named or 'c'} FROM '{path}'"
        if texts:
            counts = ", ".join(f"count({text})" for text in texts)
            assert len(con.execute(f"SELECT {counts} FROM ({read})").fetchone() or ()) == len(texts)
        if not (old or name in ("decimals 3, 1", "whole 8")):  # which name nobody
            _, unit = fields.unit("c")
            named_by = DUCKDB.unit_name(unit, fields.unit_type("c"))
            assert con.execute(f"SELECT count(hash({unit})), count(hash({named_by})) FROM '{path}'").fetchall()


@pytest.mark.parametrize(
    ("name", "sql", "least"),
    [
        ("moments us None", "SELECT COUNT(*) AS c FROM t WHERE CAST(c AS VARCHAR) LIKE '2001%'", 6000),
        ("moments ms None", "SELECT COUNT(*) AS c FROM t WHERE CONCAT(c, '!') LIKE '2001%'", 6000),
        ("decimals 38, 2", "SELECT COUNT(*) AS c FROM t WHERE -c < 0", 6000),
        ("decimals 38, 38", "SELECT COUNT(DISTINCT c) AS c FROM t", 3),
    ],
)
def test_one_row_of_a_file_does_not_decide_whether_there_is_an_answer(
    name: str, sql: str, least: int, tmp_path: Path
) -> None:
    desk = Desk({"t": hb.table(_file(tmp_path / "t.parquet", STORED[name]), unit="id", max_groups=1, max_rows=1)})
    ((count,),) = desk.ask(sql, HUGE).rows()
    assert isinstance(count, int | float)
    assert count >= least
    desk.engine.close()


def test_what_duckdb_makes_of_a_dictionary(tmp_path: Path) -> None:
    """Why what a CASE passes on lies between the ends by itself: when DuckDB fails no longer, this says it."""
    path = _file(tmp_path / "t.parquet", STORED["moments us None"])
    guarded = "CASE WHEN c BETWEEN TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31' THEN c END"
    with duckdb.connect() as con, pytest.raises(duckdb.InternalException, match="not marked as fallible"):
        con.execute(f"SELECT count(TRY(CAST({guarded} AS VARCHAR))) FROM '{path}'").fetchall()
