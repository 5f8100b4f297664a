"""Planted secrets occur in no byte that the service writes under load: logs, answers, errors, pages, counts.

Planted are a token, a passphrase, the ledger's key, an address of a database with its password, a value of the rows,
and the path of the rows. `hubbub serve` is a process of its own, as in life; everything it says is kept: also the pages
of who is logged in, a stream's first event, and an answer as CSV and as Arrow. Once rows and ledger are files, and once
both are in Postgres, which is asked by the address with its password.
"""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("starlette", reason="the service needs the extra `serve`")

import hubbub as hb
from hubbub.ledger.policy import load_policy
from hubbub.service.pages import office_routes
from hubbub.service.pages.routes import ROUTES
from hubbub.service.people.at_home import opened_people
from ledger.conftest import database, postgres_server
from service.helpers import COUNT, answer_time, token_of
from service.test_before_asking import policy as write_policy
from service.test_processes import Client, free_port

__all__ = ["database", "postgres_server"]

PHRASE = "planted-passphrase-7f3ac2"
VALUE = "planted-value-of-zoe-91bd"
PASSWORD = "word-5e2f"
DSN = f"postgresql://planted:{PASSWORD}@db.example.org/people"
FOLDER = "planted-folder-44ae"
KEY = "planted-key-of-the-ledger-d80c"
PATHS = ("budget", "history", "tables", "tables/v", "answers", "me", "tokens", "people", "audit", "nothing")


POSTGRES = """
[ledger]
url = "env:HUBBUB_PLANTED_LEDGER"
key_file = "key"
[budget]
epsilon = 5
[service]
answer_time = {seconds}
[tables.v]
source = "env:HUBBUB_PLANTED"
table = "public.v"
unit = "id"
max_groups = 1
max_rows = 1
[tables.v.columns]
x = { between = [0, 50] }
w = { one_of = ["a", "b", "c"] }
"""


@pytest.fixture(params=["files", "postgres"])
def place(request, tmp_path, monkeypatch):
    """A policy with everything planted."""
    folder = tmp_path / FOLDER
    folder.mkdir()
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setenv("HUBBUB_PLANTED", DSN)
    return files(folder) if request.param == "files" else postgres(folder, request, monkeypatch)


def postgres(folder, request, monkeypatch):
    """Rows and ledger in databases, each by an address with a password."""
    import psycopg

    rows, budgets = (request.getfixturevalue("database")() for _ in range(2))
    with psycopg.connect(rows, autocommit=True) as connection:
        connection.execute("CREATE TABLE v (id integer NOT NULL, x integer, w text)")
        connection.execute(
            "INSERT INTO v SELECT i, i %% 50, CASE i WHEN 7 THEN %s ELSE (ARRAY['a', 'b', 'c'])[1 + i %% 3] END "
            "FROM generate_series(0, 89) AS i",
            [VALUE],
        )
        reader = f"planted_{connection.info.dbname}"
        connection.execute(f"CREATE ROLE {reader} LOGIN".encode())
        connection.execute(f"GRANT SELECT ON v TO {reader}".encode())
    monkeypatch.setenv("HUBBUB_PLANTED", rows.replace("hubbub@", f"{reader}:{PASSWORD}@"))
    monkeypatch.setenv("HUBBUB_PLANTED_LEDGER", budgets.replace("hubbub@", f"hubbub:{PASSWORD}@"))
    (folder / "key").write_text(KEY)
    file = folder / "hubbub.toml"
    file.write_text(POSTGRES.replace("{seconds}", f"{answer_time():g}"))
    hb.Session.from_policy(file, create_ledger=True).close()
    return file


def files(folder):
    """Rows and ledger in files; the address of a database is in the environment alone."""
    file = write_policy(folder)
    rows = pq.read_table(folder / "v.parquet")
    names = rows.column("w").to_pylist()
    names[7] = VALUE
    pq.write_table(rows.set_column(rows.column_names.index("w"), "w", [names]), folder / "v.parquet")
    (folder / "key").write_text(KEY)
    text = file.read_text().replace("answer_time = 1.5", f"answer_time = {answer_time():g}")
    file.write_text(text.replace('file = "l.db"', 'file = "l.db"\nkey_file = "key"'))
    hb.Session.from_policy(file, create_ledger=True).close()
    return file


class Heard:
    """Everything that was told, by everybody."""

    def __init__(self, port):
        self.port, self.bytes = port, bytearray()
        self._lock = threading.Lock()

    def call(self, method, path, body=None, headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=90)
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path, data, {"Content-Type": "application/json", **dict(headers)})
            response = connection.getresponse()
            streams = "event-stream" in response.headers.get("content-type", "")
            content = b"".join(iter(response.readline, b"\n")) if streams else response.read()
            with self._lock:
                self.bytes += repr(response.getheaders()).encode() + content
            return response.status, content
        finally:
            connection.close()


def load(heard, token, k):
    """What an analyst does, and somebody who tries things."""
    mine = {"Authorization": f"Bearer {token}"}
    question = {"sql": f"SELECT w, COUNT(*) AS n FROM v WHERE x < {k} GROUP BY w", "options": {"epsilon": "0.01"}}
    for headers in (mine, {}, {"Authorization": f"Bearer {token[:-2]}zz"}, {"Authorization": f"Basic {token}"}):
        heard.call("POST", "/api/v1/check", question, headers)
        heard.call("POST", "/api/v1/ask", question, {**headers, "Idempotency-Key": f"k{k}"})
        for path in (
            "budget",
            "history",
            "tables",
            "tables/v",
            "answers",
            "me",
            "tokens",
            "people",
            "audit",
            "nothing",
        ):
            heard.call("GET", f"/api/v1/{path}", None, headers)
    for sql in (
        "SELECT",
        "SELECT w FROM v",
        "SELECT MAX(w) FROM v",
        "DESCRIBE v",
        "SELECT COUNT(*) FROM v WHERE w > 'q'",
    ):
        heard.call("POST", "/api/v1/check", {"sql": sql, "options": {"epsilon": "0.1"}}, mine)
    for body in (b"{", b"[]", b"\xff" * 10, b"x" * 300_000, {"sql": 3}, {"passphrase": "x"}):
        heard.call("POST", "/api/v1/ask", body, {**mine, "Idempotency-Key": "w"})
    for path in (
        "/",
        "/login",
        "/learn",
        "/openapi.json",
        "/docs",
        "/healthz",
        "/readyz",
        "/../etc/passwd",
        "/static/x",
    ):
        heard.call("GET", path)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    heard.call("POST", "/login", f"name=sue&passphrase={PHRASE}x".encode(), form)
    heard.call("POST", "/api/v1/unlock", {"passphrase": PHRASE, "reason": "r"}, mine)
    heard.call("GET", f"/api/v1/budget?token={token}", None, {})


def looked_at(heard, asked):
    """The pages of a steward who is an analyst, too, logged in: every page that there is."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    connection = http.client.HTTPConnection("127.0.0.1", heard.port, timeout=90)
    connection.request("POST", "/login", f"name=sue&passphrase={PHRASE}&next=/".encode(), form)
    response = connection.getresponse()
    response.read()
    connection.close()
    assert response.status == 303
    cookie = {"Cookie": response.headers["set-cookie"].partition(";")[0]}
    pages = [path for method, path, _ in (*ROUTES, *office_routes.ROUTES) if method == "GET" and "{" not in path]
    shown = {path: heard.call("GET", path, None, cookie)[0] for path in [*pages, f"/a/{asked}", "/people/ada"]}
    assert {path for path, status in shown.items() if status == 200} >= {"/", "/library", "/account", "/people", "/log"}
    assert not {path for path, status in shown.items() if status >= 500}


def as_files(heard, token, asked):
    """An answer that is there, in every form; and the first event of a stream."""
    mine = {"Authorization": f"Bearer {token}"}
    status, content = heard.call("GET", f"/api/v1/answers/{asked}?wait=60", None, mine)
    assert (status, json.loads(content)["state"]) == (200, "answered")
    heard.call("GET", f"/api/v1/answers/{asked}/receipt", None, mine)
    status, content = heard.call("GET", f"/api/v1/answers/{asked}?format=csv", None, mine)
    assert (status, content.splitlines()[0]) == (200, b'"n","n_low","n_high"')
    status, content = heard.call("GET", f"/api/v1/answers/{asked}?format=arrow", None, mine)
    assert (status, pa.ipc.open_stream(content).read_all().column_names[0]) == (200, "n")
    status, content = heard.call("GET", "/api/v1/events", None, mine)
    assert (status, content[:6]) == (200, b"id: 1\n")


def test_planted_secrets_are_in_no_byte_that_is_written(place, tmp_path):
    token = token_of(place, "ada")
    people = opened_people(load_policy(place))
    people.roll.add("sue", ["steward", "analyst"], by="the test")
    people.accept(people.roll.reset("sue", by="the test")[0], PHRASE)
    people.close()
    port, counts, log = free_port(), free_port(), tmp_path / "log"
    command = [sys.executable, "-m", "hubbub", "serve", "--policy", str(place), "--listen", f"127.0.0.1:{port}"]
    with log.open("wb") as said:
        serving = subprocess.Popen(
            [*command, "--metrics", f"127.0.0.1:{counts}"], stdout=said, stderr=said,
        )  # fmt: skip
    heard = Heard(port)
    try:
        client = Client(port, token)
        client.ready()
        asked = client.call("/api/v1/ask", {"sql": COUNT, "options": {"epsilon": "0.5"}}, key="first")[1]
        crowd = [threading.Thread(target=load, args=(heard, token, k)) for k in (3, 7, 11, 15)]
        for each in crowd:
            each.start()
        for each in crowd:
            each.join()
        as_files(heard, token, asked["id"])
        looked_at(heard, asked["id"])
        metrics = Heard(counts)
        assert b"hubbub_questions_total" in metrics.call("GET", "/metrics")[1]
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.wait(120)
    assert len(heard.bytes) > 50_000
    assert b"SELECT w, COUNT(*)" in heard.bytes  # what one asked is told to oneself: so much is heard
    assert b"SELECT" not in log.read_bytes()
    written = {"heard": bytes(heard.bytes), "metrics": bytes(metrics.bytes), "log": log.read_bytes()}
    kept = [file for file in place.parent.glob("service.db*") if file.is_file()]
    written |= {file.name: file.read_bytes() for file in kept}
    secret = token.rpartition("_")[2]
    planted = {"token": secret, "passphrase": PHRASE, "key": KEY, "DSN": PASSWORD, "value": VALUE, "path": FOLDER}
    assert len(kept) >= 1
    for where, content in written.items():
        for what, text in planted.items():
            if (where, what) == ("log", "path"):
                continue  # whoever starts it named the policy there; it is his
            assert text.encode() not in content, f"{what} in {where}"
