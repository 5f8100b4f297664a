"""Postgres: what may be declared, what a role must be allowed, and what is told when the server fails."""

from __future__ import annotations

import contextlib
import pickle
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from engines.places import Embedded, Postgres
from hubbub.engines.postgres.engine import PostgresEngine
from hubbub.engines.postgres.settings import statements
from hubbub.tables.kinds import Kind
from hubbub.tables.remote import PostgresAddress, remote
from people import visits

ROWS = visits().source
SQL = "SELECT ward, COUNT(*), SUM(n), AVG(age) FROM visits GROUP BY ward"


@pytest.fixture(scope="module")
def place(postgres_server: str) -> Iterator[Postgres]:
    found = Postgres(postgres_server, {"visits": visits()}, {"visits": ROWS})
    yield found
    found.close()


def declare(place: Postgres, inner: str, **more: Any) -> Any:
    return hb.table(place.url, table=inner, unit=more.pop("unit", "id"), **more)


def test_a_role_that_may_only_select_is_enough(place: Postgres) -> None:
    import psycopg

    with psycopg.connect(place.url) as con, pytest.raises(psycopg.errors.InsufficientPrivilege):
        con.execute("CREATE TEMP TABLE own (x int)")
    here = Embedded({"visits": visits()}, {"visits": ROWS})
    (plan,) = here.desk.plans(SQL)
    assert place.engine.run(plan).vectors == here.engine.run(plan).vectors
    here.close()


def test_a_question_reads_only_and_makes_nothing(place: Postgres) -> None:
    here = Embedded({"visits": visits()}, {"visits": ROWS})
    (plan,) = here.desk.plans(SQL)
    _, texts = place.engine.texts(plan)
    with place.con.cursor() as cursor:
        cursor.execute("BEGIN READ ONLY")
        cursor.execute(statements(150000).encode())
        cursor.execute("EXPLAIN (FORMAT JSON) " + texts[-1])
        found = str(cursor.fetchone())
        cursor.execute("ROLLBACK")
    assert found.count("'Relation Name': 'visits'") == 1  # one scan
    assert "Aggregate" in found
    here.close()


@pytest.mark.parametrize(
    ("make", "inner", "says"),
    [
        ("CREATE VIEW mixed AS SELECT id, sum(n) OVER () AS n FROM visits", "mixed", "is a view"),
        ("CREATE MATERIALIZED VIEW kept AS SELECT * FROM visits", "kept", "is a materialised view"),
        ("CREATE TABLE made (id int, n int GENERATED ALWAYS AS (id + 1) STORED)", "made", "generated columns"),
        (
            "CREATE TABLE elder (id int, n int); "
            "CREATE TABLE younger (n int GENERATED ALWAYS AS (id * 50) STORED) INHERITS (elder)",
            "elder",
            "has parts with generated columns",
        ),
        (
            "CREATE TABLE parted (id int, n int) PARTITION BY RANGE (id); "
            "CREATE TABLE half (id int, n int) PARTITION BY RANGE (id); "
            "CREATE TABLE part (id int, n int GENERATED ALWAYS AS (id * 7) STORED); "
            "ALTER TABLE half ATTACH PARTITION part FOR VALUES FROM (0) TO (50); "
            "ALTER TABLE parted ATTACH PARTITION half FOR VALUES FROM (0) TO (100)",
            "parted",
            "has parts with generated columns",
        ),
        (
            "CREATE TABLE secured (id int); ALTER TABLE secured ENABLE ROW LEVEL SECURITY; "
            "CREATE POLICY p ON secured USING (true)",
            "secured",
            "row security",
        ),
        ("SELECT 1", "visit", "Did you mean 'visits'"),
        ("SELECT 1", "nowhere.visits", "has no table"),
    ],
)
def test_what_is_no_base_table_is_refused(place: Postgres, make: str, inner: str, says: str) -> None:
    place.con.execute(make)
    place.con.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    engine = PostgresEngine()
    with pytest.raises(hb.PolicyError, match=says):
        engine.add("t", declare(place, inner))
    engine.close()


def test_a_part_with_generated_columns_that_comes_later_is_noticed_before_a_charge(place: Postgres) -> None:
    place.con.execute("CREATE TABLE growing (id int, n int); GRANT SELECT ON growing TO reader")
    engine = PostgresEngine()
    engine.add("t", declare(place, "growing"))
    assert engine.mark("t")
    place.con.execute("CREATE TABLE grown (n int GENERATED ALWAYS AS (id * 50) STORED) INHERITS (growing)")
    with pytest.raises(hb.PolicyError, match="generated columns"):
        engine.mark("t")
    engine.close()


def test_a_schema_and_odd_names_are_quoted(place: Postgres) -> None:
    place.con.execute('CREATE SCHEMA "Ho ""x"; CREATE TABLE "Ho ""x"."V i" ("I d" int, "a""b" text)')
    place.con.execute('GRANT USAGE ON SCHEMA "Ho ""x" TO reader; GRANT SELECT ON "Ho ""x"."V i" TO reader')
    engine = PostgresEngine()
    schema = engine.add("t", declare(place, 'Ho "x.V i', unit="I d"))
    assert schema.columns == {"I d": Kind.INTEGER, 'a"b': Kind.TEXT}
    engine.close()


def test_no_value_of_a_column_makes_the_server_fail(place: Postgres) -> None:
    """The extremes of every type, under every aggregate and cast; the integers stay within what is declared."""
    place.con.execute(
        """CREATE TABLE hard (id int, d double precision, r real, m numeric, b bigint, t text, day date, at timestamp,
             zone timestamptz, u uuid, c char(4));
           INSERT INTO hard VALUES
             (1, 'NaN', 'NaN', 'NaN', 9223372036854775807, 'NaN', 'infinity', 'infinity', 'infinity', NULL, 'x'),
             (2, 'Infinity', '-Infinity', 1e400, -9223372036854775808, '1e999', '-infinity', '-infinity', '-infinity',
              gen_random_uuid(), ''),
             (3, 1e308, 3e38, 1e-400, 0, '-1e-999', '5874897-12-31', '294276-12-31', '294276-12-31', NULL, NULL),
             (4, 5e-324, 1e-45, 0, 1, '2025-02-30', '4713-01-01 BC', '4713-01-01 BC', '4713-01-02 BC', NULL, 'y'),
             (5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
             (6, -0.0, 0, -5, 2, '2024-02-29 23:59:59.5', '2024-02-29', '2024-02-29', '2024-02-29', NULL, 'z')"""
    )
    place.con.execute("GRANT SELECT ON hard TO reader")
    source = declare(place, "hard", max_groups=9, max_rows=9, max_total=9)
    engine, local = PostgresEngine(), Embedded({}, {})
    schema = engine.add("hard", source)
    from hubbub.sql.bind.query import TableInfo

    table = source.without_source()
    local.desk.catalog["hard"] = TableInfo(schema.columns, private=True, unit="id", table=table)
    numbers = ["d", "r", "m", "b", "CAST(t AS DOUBLE)", "CAST(t AS BIGINT)", "EXTRACT(year FROM day)"]
    numbers += ["d * d * d * d", "d / r", "d - d", "EXP(d)", "LN(d)", "SQRT(d)", "b * b * b", "m % d", "d // m"]
    numbers += ["DATE_DIFF('day', at, zone)", "EXTRACT(second FROM CAST(t AS TIMESTAMP))", "ROUND(d, 3)"]
    for number in numbers:
        for shape in ("SUM(LEAST(GREATEST({}, -5), 5))", "COUNT({})", "COUNT(DISTINCT {})"):
            (plan,) = local.desk.plans(f"SELECT {shape.format(number)} FROM hard")
            (vector, *_) = engine.run(plan).vectors
            assert abs(vector[0]) <= 6 * 2**22, number
    for sql in (
        "SELECT SUM(LEAST(GREATEST(s, -5), 5)) FROM "
        "(SELECT id, SUM(d) + AVG(m) + MEDIAN(r) AS s FROM hard GROUP BY id)",
        "SELECT COUNT(*) FROM hard WHERE LEFT(t, -3) || RIGHT(t, 2) LIKE '%_' OR UPPER(t) ILIKE 'nan' OR u = c",
        "SELECT COUNT(*) FROM hard WHERE DATE_TRUNC('week', at) < CAST(t AS TIMESTAMP) OR CAST(t AS BOOLEAN)",
    ):
        (plan,) = local.desk.plans(sql)
        assert 0 <= abs(engine.run(plan).vectors[0][0]) <= 6 * 2**22
    engine.close()


def test_columns_that_changed_are_noticed_before_a_charge(place: Postgres) -> None:
    place.con.execute("CREATE TABLE moving (id int, n int); GRANT SELECT ON moving TO reader")
    engine = PostgresEngine()
    engine.add("t", declare(place, "moving"))
    first = engine.mark("t")
    place.con.execute("TRUNCATE moving")
    assert engine.mark("t") != first
    place.con.execute("ALTER TABLE moving ADD COLUMN m int")
    with pytest.raises(hb.PolicyError, match="columns of the table 't' have changed"):
        engine.recheck("t")
    engine.close()


def test_a_password_is_in_no_text(place: Postgres) -> None:
    address = remote("postgresql://ada:tell-nobody@127.0.0.1:1/none?password=tell-nobody")
    assert isinstance(address, PostgresAddress)
    declared = hb.table(address.url, table="t", unit="id")
    with pytest.raises(hb.PolicyError) as caught:
        PostgresEngine().add("t", declared)
    for text in (str(address), repr(address), repr(declared), str(caught.value), str(declared.source)):
        assert "tell-nobody" not in text
    assert caught.value.__cause__ is None
    with pytest.raises(TypeError):
        pickle.dumps(address)


def _slow(place: Postgres) -> tuple[PostgresEngine, Any]:
    """An engine whose next question takes some seconds: the table is locked by somebody else."""
    here = Embedded({"visits": visits()}, {"visits": ROWS})
    (plan,) = here.desk.plans(SQL)
    here.close()
    return place.engine, plan


@pytest.mark.parametrize("how", ["killed backend", "cancelled", "interrupted"])
def test_a_question_that_is_stopped_tells_an_incident_alone(place: Postgres, how: str) -> None:
    import psycopg

    engine, plan = _slow(place)
    caught: list[BaseException] = []

    def ask() -> None:
        try:
            engine.run(plan)
        except hb.EngineError as error:
            caught.append(error)

    with psycopg.connect(place.admin) as holder:
        holder.execute("LOCK TABLE visits IN ACCESS EXCLUSIVE MODE")
        thread = threading.Thread(target=ask)
        thread.start()
        waiting = "SELECT pid FROM pg_stat_activity WHERE application_name = 'hubbub' AND wait_event_type = 'Lock'"
        while not (row := place.con.execute(waiting).fetchone()):
            time.sleep(0.01)
        if how == "interrupted":
            engine.interrupt()
        else:
            word = "pg_terminate_backend" if how == "killed backend" else "pg_cancel_backend"
            place.con.execute(f"SELECT {word}(%s)", [row[0]])
        thread.join(20)
    assert not thread.is_alive()
    assert len(caught) == 1
    assert "visits" not in str(caught[0])
    assert caught[0].__cause__ is None
    with contextlib.suppress(ValueError):
        raise ValueError
    assert place.con.execute("SELECT count(*) FROM pg_locks WHERE relation = 'visits'::regclass").fetchone() == (0,)
    assert engine.run(plan).vectors  # the next question is answered


def test_private_tables_of_one_session_are_in_one_database(place: Postgres) -> None:
    engine = PostgresEngine()
    engine.add("a", declare(place, "visits"))
    other = replace(declare(place, "visits"), source=remote(place.url + "&connect_timeout=5"))
    with pytest.raises(hb.PolicyError, match="another database"):
        engine.add("b", other)
    with pytest.raises(hb.PolicyError, match="all in Postgres"):
        engine.add("c", hb.table(pa.table({"id": [1]}), unit="id"))
    engine.close()


def test_the_server_ends_by_itself_what_has_no_time_left(place: Postgres) -> None:
    """So that no statement goes on beside the next question of the service, whoever is ended here."""
    place.con.execute("CREATE VIEW sleeps AS SELECT v.* FROM visits AS v, LATERAL (SELECT pg_sleep(30)) AS s")
    place.con.execute("GRANT SELECT ON sleeps TO PUBLIC")
    engine = PostgresEngine()
    name, table = "visits", declare(place, "sleeps", trusted_view=True, columns=visits().columns)
    engine.add(name, table)
    engine.limit(0.5)
    here = Embedded({"visits": visits()}, {"visits": ROWS})
    (plan,) = here.desk.plans("SELECT COUNT(*) FROM visits")
    began = time.monotonic()
    with pytest.raises(hb.EngineError):
        engine.run(plan)
    assert time.monotonic() - began < 10
    running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%sleeps%' AND pid <> "
    assert place.con.execute(running + "pg_backend_pid()").fetchone() == (0,)
    here.close()
    engine.close()
    place.con.execute("DROP VIEW sleeps")


def test_what_an_earlier_process_of_the_same_name_left_running_is_ended_first(
    place: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    engine = PostgresEngine()
    engine.add("visits", declare(place, "visits", columns=visits().columns))
    earlier = psycopg.connect(place.url, autocommit=True, application_name="hubbub one 0.1")
    other = psycopg.connect(place.url, autocommit=True, application_name="hubbub one 0.2")
    there = f"SELECT count(*) FROM pg_stat_activity WHERE pid = {earlier.info.backend_pid}"
    ended = []

    def sleep() -> None:
        with contextlib.suppress(psycopg.Error):
            earlier.execute("SELECT pg_sleep(60)")
        ended.append(time.monotonic())

    thread = threading.Thread(target=sleep)
    thread.start()
    engine.end_earlier()  # without a name of its own, it ends nobody's
    time.sleep(0.2)
    assert not ended
    monkeypatch.setenv("HUBBUB_APPLICATION", "hubbub one 0.1")
    engine.end_earlier()
    assert place.con.execute(there).fetchone() == (0,)  # it waited until that was so
    thread.join(10)
    assert ended
    assert other.execute("SELECT 1").fetchone() == (1,)
    other.close()
    engine.close()
