"""The texts of each dialect: golden files, and texts that another reader can parse."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import sqlglot

import hubbub as hb
from hubbub.engines.duckdb.dialect import DUCKDB, DUCKDB_PORTABLE
from hubbub.engines.postgres.dialect import POSTGRES
from hubbub.engines.spark.dialect import SPARK
from hubbub.sql.emit.dialect import Dialect
from hubbub.sql.emit.place import Place
from hubbub.sql.emit.plan import aggregate_sql, listed_sql
from people import engine, visits
from sql.test_compile import QUESTIONS

GOLDEN = Path(__file__).parent / "golden"
OURS: list[tuple[str, Dialect]] = [("duckdb", DUCKDB_PORTABLE), ("postgres", POSTGRES), ("spark", SPARK)]


def compiled(name: str, dialect: Dialect) -> str:
    sql, changes = QUESTIONS[name]
    with engine("visits", visits(**changes)) as (duck, plan):
        found = plan(sql)
        places = duck._places(found.question.relation)
    unit = None if places["visits"].unit is None else dialect.quote("id")
    columns = {c: dialect.quote(c) for c in places["visits"].columns}
    return (
        aggregate_sql(found, {"visits": Place("visits", columns, unit, lambda c: (columns[c], "integer"))}, dialect)
        + "\n"
    )


@pytest.mark.parametrize(("name", "dialect"), OURS[1:], ids=[name for name, _ in OURS[1:]])
@pytest.mark.parametrize("question", QUESTIONS)
def test_compiled_text_is_the_golden_text_of_its_dialect(question: str, name: str, dialect: Dialect) -> None:
    """`HUBBUB_GOLDEN=write` writes the files anew; read the difference before committing it."""
    file, text = GOLDEN / name / f"{question}.sql", compiled(question, dialect)
    if os.environ.get("HUBBUB_GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize(("name", "dialect"), OURS, ids=[name for name, _ in OURS])
@pytest.mark.parametrize("question", QUESTIONS)
def test_each_text_is_one_statement_of_its_dialect(question: str, name: str, dialect: Dialect) -> None:
    (found,) = sqlglot.parse(compiled(question, dialect), read=name)
    assert isinstance(found, sqlglot.exp.Select)


@pytest.mark.parametrize("target", ["bigquery", "snowflake"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_text_can_be_written_for_warehouses_and_read_back(question: str, target: str) -> None:
    """Translated from DuckDB's and parsed back to the same stages. It has never run there."""
    (text,) = sqlglot.transpile(compiled(question, DUCKDB), read="duckdb", write=target)
    (found,) = sqlglot.parse(text, read=target)
    (source,) = sqlglot.parse(compiled(question, DUCKDB), read="duckdb")
    assert found is not None
    assert source is not None
    assert [c.alias for c in found.ctes] == [c.alias for c in source.ctes]


@pytest.mark.parametrize("name", ["duckdb", "postgres", "spark", "bigquery", "snowflake"])
@pytest.mark.parametrize("asked", ["MAX(day)", "MEDIAN(CAST(day AS TIMESTAMP))"])
def test_dates_and_times_are_steps_in_each_dialect(asked: str, name: str) -> None:
    """Days since the first one, or microseconds by the step of the clock."""
    dialect = dict(OURS).get(name, DUCKDB)
    declared = visits(columns={"day": hb.between("1970-01-01", "1971-12-31")}, max_total=10)
    with engine("visits", declared) as (_, plan):
        found = plan(f"SELECT {asked} FROM visits")
    place = Place("visits", {"day": dialect.quote("day")}, dialect.quote("id"), lambda c: (c, "integer"))
    text = listed_sql(found, {"visits": place}, 0, dialect)
    (translated,) = [text] if name in dict(OURS) else sqlglot.transpile(text, read="duckdb", write=name)
    (statement,) = sqlglot.parse(translated, read=name)
    assert isinstance(statement, sqlglot.exp.Select)
    (value,) = found.measurements[0].values
    assert (value.floor, value.ceiling) == ((0, 729) if asked == "MAX(day)" else (0, 729 * 24 * 3))
