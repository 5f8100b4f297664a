"""Sessions whose rows are elsewhere: charged before they look, and the charge stays whatever happens then."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from engines.places import Postgres
from hubbub.tables.declare import PrivateTable
from hubbub.tables.remote import remote
from people import HUGE, visits

ROWS = visits().source
SQL = "SELECT ward, COUNT(*) AS c, SUM(n) AS s FROM visits GROUP BY ward ORDER BY c DESC, ward"


@pytest.fixture(scope="module")
def place(postgres_server: str) -> Iterator[Postgres]:
    found = Postgres(postgres_server, {"visits": visits()}, {"visits": ROWS})
    yield found
    found.close()


def open_session(table: PrivateTable, ledger: Path, epsilon: int = 10 * HUGE) -> hb.Session:
    return hb.Session({"visits": table}, budget=hb.Budget(epsilon), ledger=ledger)


def rows(answer: Any) -> list[Any]:
    return [tuple(round(v) if isinstance(v, float) else v for v in row) for row in answer.rows()]


def test_a_session_on_postgres_answers_as_one_on_a_frame(place: Postgres, tmp_path: Path) -> None:
    with (
        open_session(visits(), tmp_path / "a.db") as here,
        open_session(place.tables["visits"], tmp_path / "b.db") as there,
    ):
        assert rows(there.sql(SQL, epsilon=HUGE)) == rows(here.sql(SQL, epsilon=HUGE))


def test_no_password_reaches_ledger_or_receipt(place: Postgres, tmp_path: Path) -> None:
    secret = "tell-nobody-7"
    url = place.url.replace("reader@", f"reader:{secret}@")
    table = replace(place.tables["visits"], source=remote(url))
    with open_session(table, tmp_path / "b.db") as session:
        answer = session.sql(SQL, epsilon=1)
        shown = f"{answer.receipt} {session.receipt(answer.charge_id)} {session} {session.history()}"
    assert secret not in shown
    assert all(secret.encode() not in file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.parametrize("how", ["pg_terminate_backend", "pg_cancel_backend"])
def test_a_backend_lost_in_mid_query_keeps_its_charge(place: Postgres, tmp_path: Path, how: str) -> None:
    import psycopg

    with open_session(place.tables["visits"], tmp_path / "b.db", epsilon=2) as session:
        caught: list[BaseException] = []

        def ask() -> None:
            try:
                session.sql("SELECT COUNT(*) FROM visits", epsilon=1)
            except hb.HubbubError as error:
                caught.append(error)

        with psycopg.connect(place.admin) as holder:
            holder.execute("LOCK TABLE visits IN ACCESS EXCLUSIVE MODE")
            thread = threading.Thread(target=ask)
            thread.start()
            waiting = (
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'hubbub' AND wait_event_type = 'Lock' "
                "AND query NOT LIKE '%PREPARE%'"
            )
            deadline = time.monotonic() + 20
            while not (row := place.con.execute(waiting).fetchone()) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert row is not None
            place.con.execute(f"SELECT {how}(%s)", [row[0]])
            thread.join(20)
        assert not thread.is_alive()
        assert [type(error) for error in caught] == [hb.EngineError]
        assert session.remaining == 1
        assert rows(session.sql("SELECT COUNT(DISTINCT id) AS u FROM visits", epsilon="0.5"))  # no lock is stuck


def test_a_server_that_is_gone_costs_nothing(place: Postgres, tmp_path: Path) -> None:
    with open_session(place.tables["visits"], tmp_path / "b.db", epsilon=2) as session:
        place.con.execute("ALTER ROLE reader NOLOGIN")
        try:
            with pytest.raises(hb.PolicyError, match="Nothing was charged"):
                session.sql(SQL, epsilon=1)
        finally:
            place.con.execute("ALTER ROLE reader LOGIN")
        assert session.remaining == 2


def frame_of(spark: Any) -> Any:
    kinds = "id BIGINT, ward STRING, age DOUBLE, n BIGINT, ok BOOLEAN, day DATE"
    made = spark.createDataFrame(list(zip(*(c.to_pylist() for c in ROWS.columns), strict=True)), kinds)
    return made.localCheckpoint()


def test_a_session_on_spark_answers_as_one_on_a_frame(spark: Any, tmp_path: Path) -> None:
    table = replace(visits(), source=remote(frame_of(spark)))
    with open_session(visits(), tmp_path / "a.db") as here, open_session(table, tmp_path / "b.db") as there:
        answer = there.sql(SQL, epsilon=HUGE)
        assert rows(answer) == rows(here.sql(SQL, epsilon=HUGE))
        assert [tuple(row) for row in answer.to_spark(spark).collect()] == answer.rows()


def test_a_table_of_spark_s_catalogue_is_known_by_name_and_a_view_is_refused(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame_of(spark).createOrReplaceTempView("seen_visits")
    for name, says in (("seen_visits", "is a temporary"), ("no_such_table", "has no table")):
        table = replace(visits(), source=remote(f"spark:{name}"))
        with pytest.raises(hb.PolicyError, match=says):
            open_session(table, tmp_path / "b.db")
    frame_of(spark).write.mode("overwrite").option("path", str(tmp_path / "rows")).saveAsTable("kept_visits")
    try:
        table = replace(visits(), source=remote("spark:kept_visits"))
        with open_session(table, tmp_path / "b.db") as session:
            assert rows(session.sql("SELECT COUNT(*) AS c FROM visits", epsilon=HUGE)) == [(6,)]
    finally:
        spark.sql("DROP TABLE kept_visits")


def test_spark_runs_no_python_and_hands_over_one_row_per_group(spark: Any) -> None:
    from answers import Desk
    from engines.places import Spark

    there = Spark(spark, {"visits": visits(max_groups=2, max_rows=2)}, {"visits": ROWS})
    (plan,) = Desk({"visits": visits(max_groups=2, max_rows=2)}).plans(SQL)
    _, (text,) = there.engine.texts(plan)
    found = there.engine._session.sql(text)
    physical = found._jdf.queryExecution().executedPlan().toString()
    assert "Python" not in physical
    assert physical.count("Scan ExistingRDD") == 1  # one scan
    assert physical.split("\n")[0].startswith("AdaptiveSparkPlan")
    assert physical.split("\n")[1].lstrip("+- ").startswith("HashAggregate")  # what is collected is already by group
    assert found.count() == 4
    there.close()


def test_a_job_of_spark_that_is_cancelled_keeps_its_charge(spark: Any, tmp_path: Path) -> None:
    slow = frame_of(spark).crossJoin(spark.range(400_000_000).withColumnRenamed("id", "k"))
    table = replace(visits(), source=remote(slow), trusted_view=True)
    few = replace(visits(), source=remote(frame_of(spark)))
    with hb.Session({"visits": table, "few": few}, budget=hb.Budget(2), ledger=tmp_path / "b.db") as session:
        caught: list[BaseException] = []

        def ask() -> None:
            try:
                session.sql("SELECT SUM(n) FROM visits WHERE k > 0", epsilon=1)
            except hb.HubbubError as error:
                caught.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        tracker = spark.sparkContext.statusTracker()
        deadline = time.monotonic() + 30
        while not tracker.getActiveJobsIds() and time.monotonic() < deadline:
            time.sleep(0.05)
        session._engine.interrupt()
        thread.join(60)
        assert not thread.is_alive()
        assert [type(error) for error in caught] == [hb.EngineError]
        assert session.remaining == 1
        assert rows(session.sql("SELECT COUNT(DISTINCT id) AS u FROM few", epsilon="0.5"))  # the next is answered
        assert session.remaining == 0.5
