"""Private questions on each engine against the same engine's plain GROUP BY, on the same rows.

python -m benchmarks.engines [--rows MILLIONS] [--postgres ADDRESS] [--spark] [--tumult]

Count and sum of a value in each of 100 groups, each unit bounded to 5 groups of 10 rows. Three floors: the plain
question (one GROUP BY); the plain work that bounding cannot do without (one row for each unit and group, then the
sums); and the same bounds as one writes them by hand, with five groups of a unit taken by a hash. `--spark` also times
the first question of a new process: opening a session and asking, against `spark.sql` of the compiled text in a
session of its own, in another process that is as new. `--postgres` names a database in which the table `bench_rows`
may be made anew; `--spark` runs a local Spark on a Parquet file. DuckDB runs twice: with its own hash, and with the one
that the other engines share. `--tumult` puts the same question to Tumult Analytics, on the Spark of its own
environment, as wide as ours: a count and a sum, two questions in its language, each of half the budget.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import hubbub as hb
from benchmarks.peers import MissingPeer, run
from benchmarks.tables import make
from benchmarks.timing import best, machine, table
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.engines.duckdb.relations import image
from hubbub.sql.bind.query import TableInfo, parse
from hubbub.tables.aggregate_query import Statement
from hubbub.tables.declare import PrivateTable
from hubbub.tables.plan import Plan, make_plans

SQL = "SELECT g, COUNT(*) AS n, SUM(v) AS s FROM t GROUP BY g"
PLAIN = "SELECT g, count(*), sum(v) FROM {0} GROUP BY g"
PER_UNIT = (
    "SELECT g, sum(n), sum(s) FROM (SELECT u, g, count(*) AS n, sum(v) AS s FROM {0} GROUP BY u, g) AS p GROUP BY g"
)
BY_HAND = (
    "SELECT g, sum(least(n, 10)), sum(CASE WHEN n > 10 THEN s * 10 / n ELSE s END) FROM (SELECT p.*, row_number() OVER "
    "(PARTITION BY u ORDER BY md5(concat(u, '|', g))) AS r FROM (SELECT u, g, count(*) AS n, "
    "sum(least(greatest(v, 0), 100)) AS s FROM {0} WHERE u IS NOT NULL AND g BETWEEN 0 AND 99 GROUP BY u, g) AS p) AS k"
    " WHERE r <= 5 GROUP BY g"
)
FLOORS = (PLAIN, PER_UNIT, BY_HAND)
GROUPS = 100

# Its Python workers would be the first python3 of the path. Its memory is that of our own Spark below.
TUMULT = """
import json, os, sys, time
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
path, folder, groups, cores, floors = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5:]
spark = (
    SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false").config("spark.driver.memory", "4g")
    .config("spark.sql.warehouse.dir", folder).getOrCreate())
spark.sparkContext.setLogLevel("OFF")
from tmlt.analytics import (
    AddRowsWithID, KeySet, MaxGroupsPerID, MaxRowsPerGroupPerID, PureDPBudget, QueryBuilder, Session)
frame = spark.read.parquet(path)
frame.createOrReplaceTempView("bench_rows")
keys = KeySet.from_dict({"g": list(range(groups))})

def ask():
    session = Session.from_dataframe(PureDPBudget(1), "t", frame, protected_change=AddRowsWithID("u"))
    bounded = QueryBuilder("t").enforce(MaxGroupsPerID("g", 5)).enforce(MaxRowsPerGroupPerID("g", 10)).groupby(keys)
    for question in (bounded.count(), bounded.sum("v", 0.0, 100.0)):
        assert len(session.evaluate(question, PureDPBudget(0.5)).collect()) == groups

def best(work):
    found = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found[1:])

print(json.dumps([best(ask), *(best(lambda: spark.sql(sql.format("bench_rows")).collect()) for sql in floors)]))
"""


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
    """One engine: seconds of ours and of the floors, and the ratios."""
    plan = planned(engine, source)
    ours = best(lambda: engine.run(plan), repeats=3)
    floors = [best(lambda sql=sql: plain(sql.format(relation)), repeats=3) for sql in FLOORS]
    engine.close()
    return shown(name, ours, floors)


def shown(name: str, private: float, floors: list[float]) -> list[str]:
    return [name, *(f"{t:.2f} s" for t in (private, *floors)), *(f"{private / floor:.1f}x" for floor in floors)]


def postgres_line(path: Path, address: str) -> list[str]:
    import psycopg

    from hubbub.engines.postgres.engine import PostgresEngine

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
    from hubbub.engines.spark.engine import SparkEngine

    spark = spark_session(path.parent)
    frame = spark.read.parquet(str(path))
    frame.createOrReplaceTempView("bench_rows")
    found = line("Spark", SparkEngine(), declared(frame), lambda sql: spark.sql(sql).collect(), "bench_rows")
    spark.stop()
    return found


def spark_session(folder: Path) -> Any:
    """A local Spark on all processors."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    spark = (
        builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def first_of_ours(path: Path) -> float:
    """Seconds in which a new process opens a session on Spark and has its first answer."""
    frame = spark_session(path.parent).read.parquet(str(path))
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with hb.Session({"t": declared(frame)}, budget=hb.Budget(10), ledger=None) as session:
            assert session.sql(SQL, epsilon=1).rows
    return time.perf_counter() - start


def first_of_spark(path: Path) -> float:
    """Seconds in which a new process has the rows of the same compiled text from `spark.sql` in a new session."""
    from hubbub.engines.spark.dialect import SPARK
    from hubbub.engines.spark.engine import SparkEngine

    spark = spark_session(path.parent)
    engine = SparkEngine()
    text = engine.compile(planned(engine, declared(spark.read.parquet(str(path)))))
    (view,) = set(re.findall(r"hubbub_[0-9a-f]{12}_\d+", text))
    start = time.perf_counter()
    new = spark.newSession()
    frame = new.read.parquet(str(path))
    frame.toDF(*(SPARK.shown_as(c) for c in frame.columns)).createOrReplaceTempView(view)
    new.conf.set("spark.sql.shuffle.partitions", spark.conf.get("spark.sql.shuffle.partitions"))
    assert new.sql(text).collect()
    return time.perf_counter() - start


def first_line(path: Path) -> str:
    """The first question of a new process, ours and Spark's alone in turns, the best of three each."""
    told: dict[str, list[float]] = {"first_of_ours": [], "first_of_spark": []}
    for _ in range(3):
        for name, seconds in told.items():
            code = (
                f"from pathlib import Path; from benchmarks import engines; print(engines.{name}(Path({str(path)!r})))"
            )
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600)
            seconds.append(float(done.stdout.split()[-1]))
    ours, alone = (min(seconds) for seconds in told.values())
    return f"first question on Spark: {ours:.2f} s, spark.sql of the same text {alone:.2f} s, {ours - alone:+.2f} s"


def tumult_line(path: Path) -> list[str]:
    """Tumult Analytics on its own Spark, of as many threads and as much memory as ours; dashes where it cannot run."""
    try:
        folder = path.parent / "tumult"
        private, *found = run("tumult", TUMULT, path, folder, GROUPS, os.cpu_count(), *FLOORS, timeout=7200)
    except (MissingPeer, RuntimeError, subprocess.TimeoutExpired) as why:
        print(f"Tumult did not run: {why}")
        return ["Tumult on Spark", *"-------"]
    return shown("Tumult on Spark", private, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1, help="millions of rows")
    parser.add_argument("--postgres", metavar="ADDRESS")
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--tumult", action="store_true")
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
        first = ""
        if asked.spark:
            first = first_line(path)
            rows.append(spark_line(path))
        if asked.tumult:
            rows.append(tumult_line(path))
    print(table(["engine", "private", "plain", "per unit", "by hand", "to plain", "to per unit", "to by hand"], rows))
    print(first)


if __name__ == "__main__":
    main()
