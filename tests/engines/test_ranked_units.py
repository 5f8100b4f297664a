"""Units of every type that DuckDB has are the same people ranked in this process and in SQL: 0.0 and -0.0, every NaN,
numbers beyond Arrow's decimals, ends of time, texts that differ late, bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk
from engines.places import answer
from engines.test_ranking import by_text, quickly
from hubbub.engines.duckdb import engine as duckdb_engine, pieces
from hubbub.engines.duckdb.engine import DuckDBEngine, bounded
from hubbub.engines.duckdb.relations import image
from hubbub.sql.bind.query import TableInfo
from hubbub.sql.emit.ranked import ranks
from hubbub.tables.declare import Limits
from hubbub.tables.plan import make_plans

__all__ = ["quickly"]

LONG = "repeat('x', 70000)"
UNITS = {
    "DOUBLE": ["0.0", "-0.0", "'nan'", "'-nan'", "'inf'", "1.5", "5e-324"],
    "FLOAT": ["0.0", "-0.0", "'nan'", "'inf'"],
    "DECIMAL(10, 2)": ["0.00", "-0.0", "1.5", "1.50"],
    "DECIMAL(38, 10)": ["0", "9999999999999999999999999999", "1.5"],
    "HUGEINT": ["0", "170141183460469231731687303715884105727", "18446744073709551616"],
    "UHUGEINT": ["0", "340282366920938463463374607431768211455"],
    "UBIGINT": ["0", "18446744073709551615", "9223372036854775808"],
    "TINYINT": ["0", "-128", "127"],
    "DATE": ["'2020-01-01'", "'infinity'", "'-infinity'", "'5881580-07-10'"],
    "TIMESTAMP": ["'2020-01-01'", "'infinity'", "'294247-01-10'"],
    "TIMESTAMP_NS": ["'2020-01-01'", "'2020-01-01 00:00:00.000000001'"],
    "TIMESTAMPTZ": ["'2020-01-01'", "'2020-01-01 01:00+01'"],
    "TIME": ["'01:00'", "'02:00'"],
    "BLOB": ["'a'", "'\\x00'", "'a\\x00'"],
    "BOOLEAN": ["true", "false"],
    "UUID": ["'00000000-0000-0000-0000-000000000001'", "'00000000-0000-0000-0000-000000000002'"],
    "ENUM('a', 'b')": ["'a'", "'b'"],
    "VARCHAR": ["'a'", "'a '", "'A'", "''", "'a' || chr(0)", f"{LONG} || '1'", f"{LONG} || '2'"],
}
RANKED_HERE = ("TINYINT", "UBIGINT", "VARCHAR", "UUID", "ENUM('a', 'b')")
"""Units that this process compares itself, as whole numbers or texts: others are the engine's to compare."""
ASKED = [
    "SELECT g, MEDIAN(x), SUM(x), SUM(y), COUNT(y) FROM v GROUP BY g",
    "SELECT h, SUM(x), SUM(y) FROM v GROUP BY h",
]


@pytest.mark.parametrize("kind", UNITS)
def test_units_of_every_type_are_the_same_people(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, path = Random(kind), tmp_path / "v.duckdb"
    inserted = [
        f"(CAST({value} AS {kind}), '{chance.choice('abcd')}', '{chance.choice('ef')}', "
        f"{chance.choice([0, 1, 50, -7])}, {chance.choice(['NULL', 0, 3])})"
        for value in (*UNITS[kind], "NULL")
        for _ in range(9)
    ]
    with duckdb.connect(path) as con:
        con.execute(f"CREATE TABLE v (id {kind}, g VARCHAR, h VARCHAR, x DOUBLE, y INTEGER)")
        con.execute(f"INSERT INTO v VALUES {', '.join(inserted)}")
    columns = {"g": hb.one_of(*"abcd"), "x": hb.between(0, 10), "y": hb.between(0, 5)}
    declared = hb.table(path, table="v", unit="id", max_groups=2, max_rows=2, columns=columns)
    engine, desk = DuckDBEngine(), Desk({})
    schema = engine.add("v", declared)
    engine.seal()
    desk.catalog["v"] = TableInfo(schema.columns, private=True, unit=schema.unit, table=declared.without_source())
    ranked, here = 0, list[object]()
    monkeypatch.setattr(duckdb_engine, "bounded", lambda *given: here.append(given[1]) or bounded(*given))
    for question in (q for sql in ASKED for q in desk.statement(sql).questions):
        for plan in make_plans(question, image, limits=Limits(2, 2, None), private_keys=True):
            ranked += ranks(plan)
            for rows_in_one_part in (2, 10**6):
                monkeypatch.setattr(pieces, "FEW_ROWS", rows_in_one_part)
                assert answer(engine, plan, {}) == by_text(engine, plan, {})
    engine.close()
    assert ranked >= 2
    assert len(here) == (2 * ranked if kind in RANKED_HERE else 0), "what fails here, the text answers in silence"


@pytest.mark.parametrize("letters", [100, 300])
def test_no_long_text_is_written_out_for_each_row_of_one_person(
    letters: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10,000 rows of a unit of 200,000 letters, 28 KB as Parquet, were two gigabytes; so were they for a long key."""
    path = tmp_path / "v.parquet"
    rows = f"SELECT repeat('z', {letters}) || (i % 30) AS id, repeat('k', {letters}) || (i % 3) AS h, i AS x, i AS y"
    duckdb.sql(f"COPY ({rows} FROM range(900) AS t(i)) TO '{path}'")
    columns = {"x": hb.between(0, 10), "y": hb.between(0, 5)}
    declared = hb.table(path, unit="id", max_groups=2, max_rows=2, columns=columns)
    engine, desk = DuckDBEngine(), Desk({})
    schema = engine.add("v", declared)
    engine.seal()
    desk.catalog["v"] = TableInfo(schema.columns, private=True, unit=schema.unit, table=declared.without_source())
    longest: list[int] = []

    def looked_at(batches: Iterable[pa.RecordBatch], *given: Any) -> Any:
        every = list(batches)
        texts = (v for batch in every for column in batch.columns for v in column.to_pylist() if isinstance(v, str))
        longest.extend(map(len, texts))
        return bounded(every, *given)

    monkeypatch.setattr(duckdb_engine, "bounded", looked_at)
    for question in (q for sql in ["SELECT SUM(x), SUM(y) FROM v", ASKED[1]] for q in desk.statement(sql).questions):
        (plan,) = make_plans(question, image, limits=Limits(2, 2, None), private_keys=True)
        assert ranks(plan)
        longest.clear()
        assert answer(engine, plan, {}) == by_text(engine, plan, {})
        assert bool(longest) == (letters == 100 or not plan.private_keys)
        assert max(longest, default=0) <= 101
    engine.close()
