"""Base tables only, unless `trusted_view` says that a steward vouches: refused without it, read with it, everywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import hubbub as hb
from engines.places import Postgres
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.engines.postgres.engine import PostgresEngine
from people import HUGE, visits

ROWS = visits().source
SAYS = r"which can mix rows of several people\. Name a base table; .* declare trusted_view = true"


@pytest.fixture(scope="module")
def place(postgres_server: str) -> Iterator[Postgres]:
    found = Postgres(postgres_server, {"visits": visits()}, {"visits": ROWS})
    yield found
    found.close()


def total(table: Any, ledger: Path, sql: str = "SELECT SUM(n) AS s FROM v") -> int:
    with hb.Session({"v": table}, budget=hb.Budget(10 * HUGE), ledger=ledger) as session:
        ((found,),) = session.sql(sql, epsilon=HUGE).rows()
    return round(found)


def declared(source: Any, inner: str | None, trusted: bool, unit: str = "id") -> Any:
    limits: dict[str, Any] = {"max_total": 9, "columns": {"n": hb.between(0, 100)}}
    return hb.table(source, table=inner, unit=unit, trusted_view=trusted, **limits)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "v.duckdb")) as con:
        con.register("frame", ROWS)
        con.execute("CREATE TABLE visits AS SELECT id, ward, n FROM frame")
        con.execute("CREATE VIEW part AS SELECT id, n + 1 AS n FROM visits WHERE ward = 'A'")
        con.execute("CREATE TABLE made (id INTEGER, n INTEGER GENERATED ALWAYS AS (id + 1))")
        con.execute("INSERT INTO made VALUES (1), (2)")
    return tmp_path / "v.duckdb"


@pytest.mark.parametrize(("inner", "says", "truth"), [("part", "is a view", 13), ("made", "has generated columns", 5)])
def test_a_view_in_a_duckdb_file_is_read_where_somebody_vouches(
    file: Path, tmp_path: Path, inner: str, says: str, truth: int
) -> None:
    with pytest.raises(hb.PolicyError, match=f"{says}, {SAYS}"):
        total(declared(file, inner, trusted=False), tmp_path / "b.db")
    assert total(declared(file, inner, trusted=True), tmp_path / "b.db") == truth


def test_a_view_that_reads_outside_its_file_or_hides_a_collation_is_refused_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text("id,n\n1,2\n")
    with duckdb.connect(str(tmp_path / "v.duckdb")) as con:
        con.execute(f"CREATE VIEW outside AS SELECT * FROM read_csv('{tmp_path}/o.csv')")
    engine = DuckDBEngine()
    with pytest.raises(hb.PolicyError, match=r"cannot be read from its file alone.*Nothing was charged") as caught:
        engine.add("v", declared(tmp_path / "v.duckdb", "outside", trusted=True))
    assert "o.csv" not in str(caught.value)
    engine.close()
    with duckdb.connect(str(tmp_path / "c.duckdb")) as con:
        con.execute("CREATE TABLE low (id VARCHAR COLLATE NOCASE, n INTEGER); CREATE VIEW seen AS SELECT * FROM low")
    engine = DuckDBEngine()
    with pytest.raises(hb.PolicyError, match="collation"):
        engine.add("v", declared(tmp_path / "c.duckdb", "seen", trusted=True))
    engine.close()
    engine = DuckDBEngine()
    with pytest.raises(hb.PolicyError, match="has no table 'sen'"):
        engine.add("v", declared(tmp_path / "c.duckdb", "sen", trusted=True))
    engine.close()


FOLDED = [
    "CREATE MACRO all_of() AS TABLE SELECT id COLLATE NOCASE AS id, n FROM b; CREATE VIEW v AS FROM all_of()",
    "CREATE MACRO low(x) AS CAST(x AS VARCHAR) COLLATE NOCASE; CREATE VIEW v AS SELECT low(id) AS id, n FROM b",
    "CREATE VIEW v AS SELECT * FROM query('SELECT id COLL' || 'ATE NOCASE AS id, n FROM b')",
    "CREATE TABLE c (id VARCHAR COLLATE NOCASE, n INTEGER); CREATE VIEW v AS FROM b UNION ALL FROM c",
    "CREATE TABLE c (id VARCHAR COLLATE NOCASE, n INTEGER); CREATE VIEW v AS FROM c WHERE FALSE UNION ALL FROM b",
]


@pytest.mark.parametrize("made", FOLDED)
def test_a_collation_is_seen_whatever_gives_it_to_a_view(tmp_path: Path, made: str) -> None:
    """`a` and `A` were one person where a macro gave it."""
    with duckdb.connect(str(tmp_path / "c.duckdb")) as con:
        con.execute(f"CREATE TABLE b (id VARCHAR, n INTEGER); INSERT INTO b VALUES ('a', 1), ('A', 1); {made}")
        ((people,),) = con.execute("SELECT COUNT(DISTINCT id) FROM v").fetchall()
    engine = DuckDBEngine()
    if people == 2:
        engine.add("v", declared(tmp_path / "c.duckdb", "v", trusted=True))
    else:
        with pytest.raises(hb.PolicyError, match="collation"):
            engine.add("v", declared(tmp_path / "c.duckdb", "v", trusted=True))
    engine.close()
    assert people == 1 or "UNION" in made


@pytest.mark.parametrize("base", ["source1", "SOURCE0", "listed0", "p2", "patient12"])
def test_a_view_beside_a_table_of_the_engine_s_own_names_is_refused(tmp_path: Path, base: str) -> None:
    """In a view that name was the engine's own: it read the rows of another table, under this one's units."""
    with duckdb.connect(str(tmp_path / "s.duckdb")) as con:
        con.execute(f"CREATE TABLE {base} AS SELECT range AS id, 1 AS n FROM range(40)")
        con.execute(f"CREATE VIEW v AS SELECT * FROM {base}")
    engine = DuckDBEngine()
    with pytest.raises(hb.PolicyError, match="rename it there"):
        engine.add("v", declared(tmp_path / "s.duckdb", "v", trusted=True))
    engine.close()
    engine = DuckDBEngine()
    engine.add("v", declared(tmp_path / "s.duckdb", base, trusted=False))
    engine.close()


POSTGRES = [
    ("CREATE VIEW part AS SELECT id, n + 1 AS n FROM visits WHERE ward = 'A'", "part", "is a view", 13),
    (
        "CREATE MATERIALIZED VIEW kept AS SELECT id, n FROM visits WHERE ward = 'A'",
        "kept",
        "is a materialised view",
        10,
    ),
    (
        "CREATE TABLE made (id int, n int GENERATED ALWAYS AS (id + 1) STORED); INSERT INTO made VALUES (1), (2)",
        "made",
        "has generated columns",
        5,
    ),
]


@pytest.mark.parametrize(("make", "inner", "says", "truth"), POSTGRES)
def test_a_view_of_postgres_is_read_where_somebody_vouches(
    place: Postgres, tmp_path: Path, make: str, inner: str, says: str, truth: int
) -> None:
    place.con.execute(make.encode())
    place.con.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    with pytest.raises(hb.PolicyError, match=f"{says}, {SAYS}"):
        total(declared(place.url, inner, trusted=False), tmp_path / "b.db")
    assert total(declared(place.url, inner, trusted=True), tmp_path / "b.db") == truth


def test_a_partitioned_table_is_a_base_table_and_a_foreign_one_is_not(place: Postgres, tmp_path: Path) -> None:
    place.con.execute(
        "CREATE TABLE parted (id int, n int) PARTITION BY RANGE (id);"
        "CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (9);"
        "INSERT INTO parted VALUES (1, 2), (3, 4); GRANT SELECT ON parted TO reader"
    )
    assert total(declared(place.url, "parted", trusted=False), tmp_path / "b.db") == 6
    try:
        place.con.execute("CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw")
    except Exception:
        pytest.skip("this Postgres comes without file_fdw")
    (tmp_path / "rows.csv").write_text("1,5\n2,6\n")
    rows = place_for_the_server(place, "1,5\n2,6\n")
    place.con.execute(
        f"CREATE FOREIGN TABLE far (id int, n int) SERVER files OPTIONS (filename '{rows}', format 'csv');"
        f"CREATE FOREIGN TABLE high PARTITION OF parted FOR VALUES FROM (10) TO (99) SERVER files "
        f"OPTIONS (filename '{rows}', format 'csv'); GRANT SELECT ON far, high TO reader"
    )
    for inner, says in (("far", "is a foreign table"), ("parted", "has parts that are foreign tables")):
        with pytest.raises(hb.PolicyError, match=f"{says}, {SAYS}"):
            total(declared(place.url, inner, trusted=False), tmp_path / "c.db")
    assert total(declared(place.url, "far", trusted=True), tmp_path / "c.db") == 11


def place_for_the_server(place: Postgres, text: str) -> str:
    """A file that the server itself has written where it can read it."""
    (folder,) = place.con.execute("SHOW data_directory").fetchone()
    place.con.execute(f"COPY (SELECT unnest(string_to_array('{text.strip()}', E'\\n'))) TO '{folder}/rows.csv'")
    return f"{folder}/rows.csv"


def test_what_a_question_could_not_read_is_refused_before_it_is_charged(place: Postgres) -> None:
    """Rights, row security below the view, names found by the search path alone, a materialised view that is empty."""
    place.con.execute(
        "CREATE TABLE secured (id int, n int); ALTER TABLE secured ENABLE ROW LEVEL SECURITY;"
        "CREATE POLICY p ON secured USING (true); GRANT SELECT ON secured TO reader;"
        "CREATE VIEW below WITH (security_invoker = true) AS SELECT * FROM secured; GRANT SELECT ON below TO reader;"
        "CREATE VIEW closed AS SELECT id, n FROM visits; REVOKE ALL ON closed FROM reader;"
        "CREATE MATERIALIZED VIEW empty AS SELECT id, n FROM visits WITH NO DATA; GRANT SELECT ON empty TO reader"
    )
    engine = PostgresEngine()
    for inner in ("below", "closed", "empty"):
        with pytest.raises(hb.PolicyError, match=r"cannot be read as questions read it .*Nothing was charged"):
            engine.add("v", declared(place.url, inner, trusted=True))
    with pytest.raises(hb.PolicyError, match="row security for this role"):
        engine.add("v", declared(place.url, "secured", trusted=True))
    engine.close()


def test_a_view_s_other_definition_is_another_version_of_the_data(place: Postgres) -> None:
    place.con.execute("CREATE VIEW turns AS SELECT id, n FROM visits; GRANT SELECT ON turns TO reader")
    engine = PostgresEngine()
    engine.add("v", declared(place.url, "turns", trusted=True))
    before = engine.mark("v")
    assert engine.mark("v") == before
    place.con.execute("CREATE OR REPLACE VIEW turns AS SELECT id, n FROM visits WHERE n > 2")
    assert engine.mark("v") != before
    engine.close()


def test_a_view_of_spark_is_read_where_somebody_vouches(spark: Any, tmp_path: Path) -> None:
    rows = list(zip(*(ROWS[c].to_pylist() for c in ("id", "ward", "n")), strict=True))
    frame = spark.createDataFrame(rows, "id BIGINT, ward STRING, n BIGINT")
    frame.write.mode("overwrite").option("path", str(tmp_path / "rows")).saveAsTable("base_visits")
    frame.createOrReplaceTempView("passing")
    spark.sql("CREATE OR REPLACE VIEW some_visits AS SELECT id, n + 1 AS n FROM base_visits WHERE ward = 'A'")
    try:
        for inner, says, truth in (("some_visits", "is a view", 13), ("passing", "is a temporary view", 21)):
            with pytest.raises(hb.PolicyError, match=f"{says}, {SAYS}"):
                total(declared(f"spark:{inner}", None, trusted=False), tmp_path / "b.db")
            assert total(declared(f"spark:{inner}", None, trusted=True), tmp_path / f"{inner}.db") == truth
    finally:
        spark.sql("DROP VIEW some_visits")
        spark.sql("DROP TABLE base_visits")


def test_a_row_that_fails_in_a_trusted_view_of_spark_writes_nothing_down(
    spark: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """pyspark logs the error of a statement with the value it failed on."""
    spark.createDataFrame([(1, "7"), (2, "secret-word")], "id INT, t STRING").createOrReplaceTempView("texts")
    spark.sql("CREATE OR REPLACE TEMP VIEW cast_texts AS SELECT id, CAST(t AS INT) AS n FROM texts")
    table = declared("spark:cast_texts", None, trusted=True)
    with hb.Session({"v": table}, budget=hb.Budget(2), ledger=tmp_path / "b.db") as session:
        with pytest.raises(hb.EngineError) as caught:
            session.sql("SELECT SUM(n) AS s FROM v", epsilon=1)
        assert session.remaining == 1
    out, err = capfd.readouterr()
    assert "secret-word" not in out + err + str(caught.value)
    assert caught.value.__cause__ is None


def test_who_vouched_is_in_the_ledger_s_record(file: Path, tmp_path: Path) -> None:
    for trusted in (False, True):
        inner = "part" if trusted else "visits"
        table = declared(file, inner, trusted=trusted)
        with hb.Session({"v": table}, budget=hb.Budget(9), ledger=tmp_path / f"{trusted}.db") as session:
            answer = session.sql("SELECT SUM(n) AS s FROM v", epsilon=1)
            record = json.loads(session.ledger.record.policy_text(answer.receipt["policy"]))
        assert record["v"]["trusted_view"] == str(trusted)


def test_the_word_is_true_or_false() -> None:
    with pytest.raises(hb.PolicyError, match="trusted_view='yes': expected True or False"):
        hb.table("v.duckdb", table="v", unit="id", trusted_view="yes")  # type: ignore[arg-type]
