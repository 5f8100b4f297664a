"""Ctrl-C stops the question of the thread that it reaches; what other threads ask of the same engine goes on."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import hubbub as hb
from engines.places import Postgres
from hubbub.engines.stopping import asker, stoppable
from people import visits

PAIRS = "SELECT SUM(a.x) AS s FROM t a JOIN t b ON a.id = b.id AND a.x <> b.x + {}"
COLUMNS = {"x": hb.between(0, 10)}


@pytest.fixture
def interrupts() -> Iterator[Callable[[Callable[[], bool]], None]]:
    """Send this process one SIGINT as soon as something is so."""
    threads = []

    def when(ready: Callable[[], bool]) -> None:
        def send() -> None:
            end = time.monotonic() + 60
            while not ready() and time.monotonic() < end:
                time.sleep(0.01)
            time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGINT)

        threads.append(threading.Thread(target=send))
        threads[0].start()

    yield when
    threads[0].join()


class Beside:
    """A question in another thread: what came of it."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self.answer: Any = None
        self.error: BaseException | None = None

        def run() -> None:
            try:
                self.answer = ask()
            except BaseException as error:
                self.error = error

        self.thread = threading.Thread(target=run)
        self.thread.start()

    def came(self) -> Any:
        self.thread.join(120)
        assert not self.thread.is_alive()
        assert self.error is None, self.error
        return self.answer


def one_of_two(session: Any, asked: list[str], interrupts: Any, ready: Callable[[], bool]) -> None:
    """Two questions at once, of which the main thread's is interrupted."""
    other = Beside(lambda: session.sql(asked[1], epsilon=1))
    interrupts(ready)
    with pytest.raises(KeyboardInterrupt):
        session.sql(asked[0], epsilon=1)
    assert other.came().rows()
    assert sorted(entry.state for entry in session.history()) == ["shown", "withdrawn"]


def test_duckdb_goes_on_with_what_another_thread_asked(tmp_path: Path, interrupts: Any) -> None:
    frame = pa.table({"id": [1] * 8_000, "x": list(range(8_000))})
    tables = {"t": hb.table(frame, unit="id", max_total=1, columns=COLUMNS)}
    with hb.Session(tables, budget=hb.Budget(4), ledger=tmp_path / "b.db", analyst="ana") as session:
        running = session._engine._running
        one_of_two(session, [PAIRS.format(k) for k in (1, 2)], interrupts, lambda: len(running) == 2)


def test_spark_goes_on_with_what_another_thread_asked(spark: Any, tmp_path: Path, interrupts: Any) -> None:
    rows = spark.range(2_000).selectExpr("1 AS id", "CAST(id AS DOUBLE) AS x")
    tables = {"t": hb.table(rows, unit="id", max_total=1, columns=COLUMNS, trusted_view=True)}
    handler = signal.getsignal(signal.SIGINT)
    with hb.Session(tables, budget=hb.Budget(4), ledger=tmp_path / "b.db", analyst="ana") as session:
        tracker = spark.sparkContext.statusTracker()
        ready = lambda: len(tracker.getActiveJobsIds()) == 2  # noqa: E731
        one_of_two(session, [PAIRS.format(k) for k in (1, 2)], interrupts, ready)
    assert signal.getsignal(signal.SIGINT) is handler


def test_postgres_goes_on_with_what_another_thread_asked(postgres_server: str, tmp_path: Path, interrupts: Any) -> None:
    source = visits().source
    place = Postgres(postgres_server, {"visits": visits()}, {"visits": source})
    tables = {"visits": hb.table(place.url, table="visits", unit="id")}
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'hubbub' AND wait_event_type = 'Lock'"
    asked = [f"SELECT COUNT(DISTINCT id) AS u FROM visits WHERE n > {k}" for k in (0, 1)]
    with (
        hb.Session(tables, budget=hb.Budget(4), ledger=tmp_path / "b.db", analyst="ana") as session,
        psycopg.connect(place.admin) as holder,
    ):
        for sql in asked:
            session.check(sql, epsilon=1)
        holder.execute("LOCK TABLE visits IN ACCESS EXCLUSIVE MODE")

        def ready() -> bool:
            return place.con.execute(waiting).fetchone() == (2,)

        running = session._engine._running
        other = Beside(lambda: session.sql(asked[1], epsilon=1))
        interrupts(lambda: len(session.history()) == 2 and len(running) == 2 and ready())
        with pytest.raises(KeyboardInterrupt):
            session.sql(asked[0], epsilon=1)
        holder.rollback()
        assert other.came().rows()
        assert sorted(entry.state for entry in session.history()) == ["shown", "withdrawn"]
    place.close()


def test_each_call_works_for_an_asker_of_its_own() -> None:
    found = [stoppable(asker, lambda _: None) for _ in range(2)]
    assert found[0] is not found[1]
    assert asker() is None
    assert Beside(lambda: stoppable(asker, lambda _: None)).came() is None
