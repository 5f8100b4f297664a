"""Private questions on each engine against the same engine's plain GROUP BY, on the same rows.

python -m benchmarks.engines [--rows MILLIONS] [--postgres ADDRESS] [--spark]

Count and sum of a value in each of 100 groups, each unit bounded to 5 groups of 10 rows. Two floors: the plain
question (one GROUP BY), and the plain work that bounding cannot do without (one row for each unit and group, then the
sums). `--postgres` names a database in which the table `bench_rows` may be made anew; `--spark` runs a local Spark
on a Parquet file. DuckDB runs twice: with its own hash, and with the one that the other engines share.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import hubbub as hb
from benchmarks.tables import make
from benchmarks.timing import best, machine, table
from hubbub.engines.duckdb import DuckDBEngine, image
from hubbub.sql.parse import TableInfo, parse
from hubbub.tables.declare import PrivateTable
from hubbub.tables.plan import Plan, make_plans
from hubbub.tables.question import Statement

SQL = "SELECT g, COUNT(*) AS n, SUM(v) AS s FROM t GROUP BY g"
PLAIN = "SELECT g, count(*), sum(v) FROM {0} GROUP BY g"
PER_UNIT = (
    "SELECT g, sum(n), sum(s) FROM (SELECT u, g, count(*) AS n, sum(v) AS s FROM {0} GROUP BY u, g) AS p GROUP BY g"
)
GROUPS = 100


def declared(source: object, **more: Any) -> PrivateTable:
    columns = {"g": hb.one_of(*range(GROUPS)), "v": hb.between(0, 100, nullable=False)}
    return hb.table(source, unit="u", max_groups=5, max_rows=10, columns=columns, **more)


def planned(engine: Any, source: PrivateTable) -> Plan:
    """The plan of the question on an engine that now knows the table."""
    schema = engine.add("t", source)
    engine.seal()
    catalog = {"t": TableInfo(schema.columns, private=True, unit="u", table=source.without_source())}
    statement = parse(SQL, catalog)
    assert isinstance(statement, Statement)
    return make_plans(statement.questions[0], image)[0]


def line(name: str, engine: Any, source: PrivateTable, plain: Callable[[str], object], relation: str) -> list[str]:
    """One engine: seconds of ours and of both floors, and the ratios."""
    plan = planned(engine, source)
    ours = best(lambda: engine.run(plan), repeats=3)
    floors = [best(lambda sql=sql: plain(sql.format(relation)), repeats=3) for sql in (PLAIN, PER_UNIT)]
    engine.close()
    return [name, *(f"{t:.2f} s" for t in (ours, *floors)), *(f"{ours / floor:.1f}x" for floor in floors)]


def postgres_line(path: Path, address: str) -> list[str]:
    import psycopg

    from hubbub.engines.postgres import PostgresEngine

    with psycopg.connect(address, autocommit=True) as con:
        con.execute("DROP TABLE IF EXISTS bench_rows")
        con.execute("CREATE UNLOGGED TABLE bench_rows (u bigint, g int, v double precision)")
        with (
            con.cursor().copy("COPY bench_rows FROM STDIN (FORMAT csv)") as copy,
            tempfile.TemporaryDirectory() as folder,
        ):
            flat = Path(folder) / "rows.csv"
            duckdb.sql(f"COPY (SELECT u, g, v FROM '{path}') TO '{flat}' (HEADER false)")
            with open(flat, "rb") as file:
                while piece := file.read(1 << 20):
                    copy.write(piece)
        con.execute("VACUUM ANALYZE bench_rows")
        source = declared(address, table="bench_rows")
        found = line(
            "Postgres", PostgresEngine(), source, lambda sql: con.execute(sql.encode()).fetchall(), "bench_rows"
        )
        con.execute("DROP TABLE bench_rows")
    return found


def spark_line(path: Path) -> list[str]:
    from pyspark.sql import SparkSession

    from hubbub.engines.spark import SparkEngine

    builder: Any = SparkSession.builder
    spark = (
        builder.master("local[*]").config("spark.ui.enabled", "false").config("spark.driver.memory", "4g").getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    frame = spark.read.parquet(str(path))
    frame.createOrReplaceTempView("bench_rows")
    found = line("Spark", SparkEngine(), declared(frame), lambda sql: spark.sql(sql).collect(), "bench_rows")
    spark.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1, help="millions of rows")
    parser.add_argument("--postgres", metavar="ADDRESS")
    parser.add_argument("--spark", action="store_true")
    asked = parser.parse_args()
    count = int(asked.rows * 1e6)
    print(f"{count:,} rows, {count // 10:,} units, {GROUPS} groups; best of 3; {machine()}\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        make(path, count, count // 10, GROUPS)
        con = duckdb.connect()
        rows = [
            line(
                name,
                DuckDBEngine(portable=portable),
                declared(str(path)),
                lambda q: con.execute(q).fetchall(),
                f"'{path}'",
            )
            for name, portable in (("DuckDB", False), ("DuckDB, shared hash", True))
        ]
        if asked.postgres:
            rows.append(postgres_line(path, asked.postgres))
        if asked.spark:
            rows.append(spark_line(path))
    print(table(["engine", "private", "plain", "per unit", "to plain", "to per unit"], rows))


if __name__ == "__main__":
    main()
