"""Rows that stay in Postgres, through the whole service: its runners ask the server, and nobody else can; and what a
runner that was killed left running there is over before another one takes its place.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import hubbub as hb
from hubbub.ledger.policy import load_policy
from hubbub.ledger.store import Ledger
from hubbub.service.clerk import Clerk
from hubbub.service.serve import Service
from ledger.conftest import database, postgres_server
from service.helpers import answer_time, token_of
from service.test_processes import Client, free_port

pytest.importorskip("starlette", reason="the service needs the extra `serve`")

__all__ = ["database", "postgres_server"]

POLICY = """
[ledger]
file = "l.db"
[budget]
epsilon = 100000
[service]
answer_time = {seconds}
[tables.v]
source = "env:HUBBUB_ROWS"
table = "public.v"
unit = "id"
max_groups = 1
max_rows = 2
[tables.v.columns]
x = { between = [0, 50] }
w = { one_of = ["a", "b", "c"] }
"""
BY_WARD = "SELECT w, COUNT(*) AS n, SUM(x) AS s FROM v GROUP BY w ORDER BY w"


@pytest.fixture
def policy(database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of ninety people, two rows each, which a role may read that may do nothing else."""
    import psycopg

    address = database()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE v (id integer NOT NULL, x integer, w text)")
        connection.execute(
            "INSERT INTO v SELECT i % 90, i % 50, (ARRAY['a', 'b', 'c'])[1 + i % 3] FROM generate_series(0, 179) AS i"
        )
        name = connection.info.dbname
        connection.execute("CREATE VIEW sleeps AS SELECT v.* FROM v, LATERAL (SELECT pg_sleep(3600)) AS s")
        connection.execute(f"CREATE ROLE reader_of_{name} LOGIN".encode())
        connection.execute(f"GRANT SELECT ON v, sleeps TO reader_of_{name}".encode())
    monkeypatch.setenv("HUBBUB_ROWS", address.replace("hubbub@", f"reader_of_{name}@"))
    file = tmp_path / "hubbub.toml"
    file.write_text(POLICY.replace("{seconds}", f"{answer_time():g}"))
    hb.Session.from_policy(file, create_ledger=True).close()
    return file


def test_a_question_about_rows_in_postgres_is_answered_through_the_service(policy: Path, tmp_path: Path) -> None:
    port, token = free_port(), token_of(policy, "ada")
    made = Service(policy, host="127.0.0.1", port=port, say=lambda _: None)
    made.start()
    try:
        client = Client(port, token)
        client.ready()
        body = {"sql": BY_WARD, "options": {"epsilon": "20000"}}
        status, check = client.call("/api/v1/check", body)
        assert (status, [name for name, _ in check["types"]]) == (200, ["w", "n", "s"])
        status, asked = client.call("/api/v1/ask", body, key="one")
        assert (status, asked["state"]) == (202, "asked")
        status, told = client.call(f"/api/v1/answers/{asked['id']}?wait=60")
        assert (status, told["state"]) == (200, "answered")
        release = hb.Release.from_wire(json.dumps(told["answer"]))
        sums = {w: sum(i % 50 for i in range(180) if i % 3 == at) for at, w in enumerate("abc")}
        rows = release.to_arrow().to_pylist()
        assert [(row["w"], row["n"]) for row in rows] == [("a", 60), ("b", 60), ("c", 60)]
        assert [row["s"] for row in rows] == pytest.approx(list(sums.values()), abs=1)
        # The front was given no address of a database.
        front = Path(f"/proc/{made.front.popen.pid}/environ").read_bytes()
        assert b"HUBBUB_ROWS" not in front
        assert b"reader_of_" not in front
    finally:
        made.stop()
    with Ledger.inspect(tmp_path / "l.db") as ledger:
        assert ledger.record.verify(release.receipt).sound
        assert [entry.state for entry in ledger.record.history()] == ["stored"]


def awaited(what: Callable[[], object], seconds: float = 60.0) -> object:
    """What is told as soon as it is true of something."""
    until = time.monotonic() + seconds
    while not (told := what()) and time.monotonic() < until:
        time.sleep(0.02)
    assert told
    return told


def test_what_a_killed_runner_left_running_in_the_server_is_over_before_another_takes_its_place(policy: Path) -> None:
    import psycopg

    text = policy.read_text().replace('"public.v"', '"public.sleeps"\ntrusted_view = true')
    policy.write_text(re.sub("answer_time = .*", "answer_time = 8", text))
    hb.Session.from_policy(policy).close()
    clerk = Clerk(load_policy(policy))
    busy = lambda: [one for one in clerk.lanes._processes if one.ends is not None]  # noqa: E731
    try:
        with psycopg.connect(re.sub("reader_of_[a-z0-9]+@", "hubbub@", os.environ["HUBBUB_ROWS"])) as admin:
            admin.autocommit = True
            sleeping = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%sleeps%'"
            asked = clerk.desk.ask("ada", BY_WARD, {"epsilon": "1"}, "one")
            backend = awaited(lambda: admin.execute(sleeping).fetchone())
            (killed,) = awaited(busy)
            os.kill(killed.popen.pid, signal.SIGKILL)
            awaited(lambda: killed not in clerk.lanes._processes)
            awaited(lambda: all(one.ready for one in clerk.lanes._processes))
            left = admin.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", backend).fetchone()
            assert left == (0,)
        awaited(lambda: clerk.desk.answer("ada", asked["id"])["state"] == "no answer")
    finally:
        clerk.close()
