"""A connection that is lost in mid-query, a cluster whose Java is killed: a clear error, one charge, nothing stuck."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from engines.places import Postgres
from hubbub.tables.remote import remote
from people import visits


class Line:
    """A port of this machine that leads to a server's socket, until it is cut."""

    def __init__(self, server: str) -> None:
        self.target = f"{server}/.s.PGSQL.5432"
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                here, _ = self.listener.accept()
                there = socket.socket(socket.AF_UNIX)
                there.connect(self.target)
                self.ends += [here, there]
                for one, other in ((here, there), (there, here)):
                    threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := one.recv(65536):
                other.sendall(piece)
            other.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        for end in self.ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self.ends = []

    def close(self) -> None:
        self.listener.close()
        self.cut()


@pytest.fixture
def place(postgres_server: str) -> Iterator[Postgres]:
    found = Postgres(postgres_server, {"visits": visits()}, {"visits": visits().source})
    yield found
    found.close()


def test_a_connection_lost_in_mid_query_keeps_its_charge_and_no_lock(
    place: Postgres, postgres_server: str, tmp_path: Path
) -> None:
    import psycopg

    line = Line(postgres_server)
    url = f"postgresql://reader@127.0.0.1:{line.port}/{place.database}?sslmode=disable&gssencmode=disable"
    table = replace(place.tables["visits"], source=remote(url))
    caught: list[BaseException] = []
    with hb.Session({"visits": table}, budget=hb.Budget(2), ledger=tmp_path / "b.db") as session:

        def ask() -> None:
            try:
                session.sql("SELECT COUNT(*) FROM visits", epsilon=1)
            except BaseException as error:
                caught.append(error)

        with psycopg.connect(place.admin) as holder:
            holder.execute("LOCK TABLE visits IN ACCESS EXCLUSIVE MODE")
            thread = threading.Thread(target=ask)
            thread.start()
            waiting = (
                "SELECT 1 FROM pg_stat_activity WHERE application_name = 'hubbub' AND wait_event_type = 'Lock' "
                "AND query NOT LIKE '%PREPARE%'"
            )
            deadline = time.monotonic() + 20
            while not place.con.execute(waiting).fetchone() and time.monotonic() < deadline:
                time.sleep(0.01)
            line.cut()
            thread.join(20)
            assert not thread.is_alive()
        assert [type(error) for error in caught] == [hb.EngineError]
        assert "visits" not in str(caught[0])
        assert "127.0.0.1" not in str(caught[0])
        assert caught[0].__cause__ is None
        assert session.remaining == 1
        assert session.sql("SELECT COUNT(DISTINCT id) AS u FROM visits", epsilon="0.5").rows()
        held = "SELECT count(*) FROM pg_locks WHERE relation = 'visits'::regclass"
        while place.con.execute(held).fetchone() != (0,) and time.monotonic() < deadline + 20:
            time.sleep(0.01)
        assert place.con.execute(held).fetchone() == (0,)
    line.close()


_CLUSTER = """
import json, os, signal, sys, threading, time
import pyarrow as pa
from pyspark.sql import SparkSession
import hubbub as hb

how, folder = sys.argv[1:]
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.ui.showConsoleProgress", "false").config("spark.sql.warehouse.dir", folder).getOrCreate())
spark.sparkContext.setLogLevel("OFF")
# The multiplication keeps the length of the job from the optimiser.
frame = spark.range(10).crossJoin(spark.range(10**11).selectExpr("id * 3 AS k"))
frame = frame.selectExpr("id", "'who-was-here' AS ward", "k")
limits = {"unit": "id", "max_groups": 1, "max_rows": 1, "trusted_view": True}
table = hb.table(frame, columns={"ward": hb.one_of("who-was-here")}, **limits)
session = hb.Session({"t": table}, budget=hb.Budget(3), ledger=folder + "/b.db")
found = []

def ask():
    try:
        session.sql("SELECT ward, COUNT(*) FROM t WHERE k > 1 GROUP BY ward", epsilon=1)
    except BaseException as error:
        found.append([type(error).__name__, str(error), repr(error.__cause__), str(session.remaining)])

thread = threading.Thread(target=ask)
thread.start()
tracker = spark.sparkContext.statusTracker()
while not tracker.getActiveJobsIds() and not found:
    time.sleep(0.05)
time.sleep(0.5)
if how == "killed":
    java = int(spark.sparkContext._gateway.jvm.java.lang.ProcessHandle.current().pid())
    os.kill(java, signal.SIGKILL)
else:
    spark.stop()
thread.join(60)
assert not thread.is_alive()
ask()
session.close()
here = hb.table(pa.table({"id": [1, 2, 3]}), unit="id")
with hb.Session({"t": here}, budget=hb.Budget(3), ledger=folder + "/b.db") as other:  # no lock is stuck
    found.append(str(other.remaining))
print(json.dumps(found))
"""


@pytest.mark.soak
@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_cluster_lost_in_mid_query_keeps_its_charge_and_costs_nothing_after(how: str, tmp_path: Path) -> None:
    """In a process of its own: the other tests need their Spark."""
    pytest.importorskip("pyspark", reason="Spark needs the extra `spark`")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    done = subprocess.run(
        [sys.executable, "-c", _CLUSTER, how, str(tmp_path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    (kind, text, cause, left), (later, told, _, then), opened = found
    assert (kind, cause, left) == ("EngineError", "None", "2")
    assert "who-was-here" not in text
    assert later == "PolicyError"
    assert "Nothing was charged" in told
    assert then == opened == "2"
    assert "who-was-here" not in done.stderr


_BETWEEN = """
import json, sys
from pyspark.sql import SparkSession
import hubbub as hb

COUNT = "SELECT COUNT(*) FROM t"

def running():
    return (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
            .config("spark.sql.warehouse.dir", sys.argv[1]).getOrCreate())

def told(step):
    try:
        return str(step())
    except BaseException as error:
        return [type(error).__name__, str(error)]

found = []
for how in ("spark.stop()", "stopped in Java", "another Spark since"):
    spark = running()
    table = hb.table(spark.range(10), unit="id", max_groups=1, max_rows=1)
    session, unused = (hb.Session({"t": table}, budget=hb.Budget(3), ledger=None) for _ in range(2))
    session.sql(COUNT, epsilon=1)
    if how == "stopped in Java":
        spark.sparkContext._jsc.sc().stop()
    else:
        spark.stop()
    after = running() if how == "another Spark since" else spark
    steps = (
        lambda: session.sql(COUNT, epsilon=1),
        lambda: session.sql(COUNT, epsilon=1, fresh=True),
        lambda: session.check(COUNT, epsilon=1),
        lambda: unused.sql(COUNT, epsilon=1),
        lambda: hb.Session({"t": table}, budget=hb.Budget(3), ledger=None),
    )
    found.append([how, [told(step) for step in steps], str(session.remaining), str(unused.remaining)])
    session.close()
    unused.close()
    after.stop()
print(json.dumps(found))
"""


@pytest.mark.soak
def test_a_spark_that_was_stopped_between_questions_is_named_before_a_charge(tmp_path: Path) -> None:
    """In a process of its own. Before, a session over frames of a stopped Spark ended in py4j's own error."""
    pytest.importorskip("pyspark", reason="Spark needs the extra `spark`")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    done = subprocess.run(
        [sys.executable, "-P", "-c", _BETWEEN, str(tmp_path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    for how, told, asked, unused in json.loads(done.stdout.splitlines()[-1]):
        assert (asked, unused) == ("2", "3"), how
        for kind, text in told:
            assert kind == "PolicyError", (how, text)
            assert "its Spark has stopped" in text
            assert "Nothing was charged" in text
