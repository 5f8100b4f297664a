"""The real processes: walls that hold, a line that only the front may use, tokens, and an answer by HTTP.

Times here are generous, and no outcome hangs on one: the answer time is twenty seconds, and most of that is waiting.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

import hubbub as hb
from hubbub.confine import landlock_version
from hubbub.ledger.policy import load_policy
from hubbub.ledger.store import Ledger
from hubbub.service.frames import receive, send
from hubbub.service.http.api import Face
from hubbub.service.http.app import application
from hubbub.service.http.line import ClerkLine
from hubbub.service.rates import Rate
from hubbub.service.serve import Service, listening_place
from service.helpers import COUNT, answer_time, token_of
from service.test_before_asking import policy as write_policy

pytest.importorskip("starlette", reason="the service needs the extra `serve`")

CONFINED = """
import json, os, socket, sys, threading
from pathlib import Path
from hubbub.confine import confine
folder = Path(sys.argv[1])
held = confine(read=[folder / "data.txt"], write=[folder / "own"])
def tried(act):
    try:
        act()
        return "done"
    except OSError as error:
        return type(error).__name__
def connect():
    with socket.create_connection(("127.0.0.1", int(sys.argv[2])), timeout=5):
        pass
told = {
    "data": tried(lambda: (folder / "data.txt").read_text()),
    "key": tried(lambda: (folder / "key").read_text()),
    "list": tried(lambda: os.listdir(folder)),
    "write data": tried(lambda: (folder / "data.txt").write_text("x")),
    "write beside": tried(lambda: (folder / "new").write_text("x")),
    "own": tried(lambda: (folder / "own" / "spill").write_text("x")),
    "socket": tried(connect),
}
import duckdb
told["engine"] = duckdb.connect().execute("SELECT 41 + 1").fetchone()[0]
lines = Path("/proc/self/status").read_text().splitlines()
told["status"] = next(line for line in lines if line.startswith("NoNewPrivs")).split()[1]
print(json.dumps([vars(held), told]))
"""


def test_a_process_that_is_shut_in_reads_what_it_was_told_and_nothing_else(tmp_path):
    (tmp_path / "own").mkdir()
    for name in ("data.txt", "key"):
        (tmp_path / name).write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-c", CONFINED, str(tmp_path), port],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
    held, told = json.loads(done.stdout)
    assert (told["data"], told["own"], told["engine"]) == ("done", "done", 42)
    assert told["status"] == "1"
    assert held["undumpable"]
    assert held["landlock"] == landlock_version()
    if held["landlock"]:
        assert [told[k] for k in ("key", "list", "write data", "write beside")] == ["PermissionError"] * 4
    if held["landlock"] >= 4:
        assert told["socket"] == "PermissionError"
        assert not held["network"]


GREEDY = """
import json
from hubbub.confine import confine
confine(read=[], data=400 << 20)
def held(size):
    try:
        return len(bytearray(size << 20)) >> 20
    except MemoryError:
        return "MemoryError"
own = [held(32), held(1024)]
import duckdb
engine = duckdb.connect()
engine.execute("SET memory_limit = '10GB'; SET max_temp_directory_size = '0B'; SET enable_progress_bar = false")
try:
    engine.execute("SELECT count(DISTINCT md5(i::VARCHAR)) FROM range(30_000_000) t(i)")
    asked = "done"
except duckdb.Error as error:
    asked = type(error).__name__
print(json.dumps([*own, asked]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of a process's data is Linux's")
def test_a_runner_takes_no_more_memory_than_it_was_given():
    """Neither Python nor the engine, whatever the engine's own setting says."""
    done = subprocess.run([sys.executable, "-c", GREEDY], capture_output=True, text=True, check=True, timeout=120)
    assert json.loads(done.stdout) == [32, "MemoryError", "OutOfMemoryException"]


def test_pieces_on_a_line_have_their_length(tmp_path):
    here, there = socket.socketpair()
    send(here, {"a": [1, None]})
    assert receive(there) == {"a": [1, None]}
    here.sendall(b"\x00\x00\x00\x02{]")
    with pytest.raises(hb.errors.InternalError, match="not JSON"):
        receive(there)
    here.sendall(b"\x00\x01\x00\x00" + b"[" * (1 << 16))
    with pytest.raises(hb.errors.InternalError, match="not JSON"):
        receive(there)
    here.sendall(b"\xff\xff\xff\xff")
    with pytest.raises(hb.errors.InternalError, match="more than it may"):
        receive(there)
    here.sendall(b"\x00\x00\x04\x01")
    with pytest.raises(hb.errors.InternalError, match="more than it may"):
        receive(there, most=1024)
    here.close()
    assert receive(there) is None
    there.close()


ODD = ["127.0.0.1:²", "127.0.0.1:१", "127.0.0.1:65536", f"127.0.0.1:{'9' * 5000}", "127.0.0.1: 80", "127.0.0.1:80\n"]


@pytest.mark.parametrize("place", ["0.0.0.0:80", "8080", "example.org:443", "192.168.1.1:80", ":80", "x:y", *ODD])
def test_without_tls_it_listens_on_this_machine_alone(place):
    with pytest.raises(hb.PolicyError, match="--listen"):
        listening_place(place, tls=False)
    assert listening_place("[::1]:80", tls=False) == ("::1", 80)
    assert listening_place("0.0.0.0:443", tls=True) == ("0.0.0.0", 443)


def test_so_many_checks_a_second():
    now = [0.0]
    rate = Rate(5, 20, clock=lambda: now[0])
    assert [rate.takes("ada") for _ in range(21)] == [True] * 20 + [False]
    assert rate.takes("bob")
    now[0] = 0.2
    assert [rate.takes("ada"), rate.takes("ada")] == [True, False]


def test_what_is_left_on_a_line_is_said_to_nobody(short_folder):
    """Else the next who asks on it is told what was meant for another."""
    place = str(short_folder / "clerk")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen()
        held = []

        def clerk(before, told):
            connection = listening.accept()[0]
            held.append(connection)
            receive(connection)
            receive(connection)
            connection.sendall(before)
            send(connection, {"told": told})

        line = ClerkLine(place, "word")
        for before, told in ((b"\x00\x00\x00\x02{]", "bob's"), (b"", "ada's")):
            thread = threading.Thread(target=clerk, args=(before, told), daemon=True)
            thread.start()
            with suppress(hb.errors.InternalError):
                heard = line.ask("history", {})
            thread.join(5)
        assert heard == {"told": "ada's"}
        for connection in held:
            connection.close()


def test_the_front_is_told_no_address_of_a_database(tmp_path, monkeypatch):
    told = {}

    class Popen:
        def __init__(self, command, **more):
            told[command[-1]], self.stdin = more, io.StringIO()

    monkeypatch.setenv("PGPASSWORD", "secret")
    monkeypatch.setattr("hubbub.service.serve.subprocess.Popen", Popen)
    made = Service(tmp_path / "policy", host="127.0.0.1", port=1)
    for what in ("front", "clerk"):
        made._spawn(what, {})
    assert "PATH" in told["hubbub.service.front"]["env"]
    assert "PGPASSWORD" not in told["hubbub.service.front"]["env"]
    assert told["hubbub.service.clerk"]["env"] is None  # which starts the runners


class Line(ClerkLine):
    """A clerk that says what the test wants."""

    def __init__(self, said):
        self.said, self.asked = said, []

    def ask(self, act, given, proof=None):
        self.asked.append((act, given, proof))
        return json.loads(json.dumps(self.said))


def called(app, method, path, *, body=b"", headers=()):
    """One request to an ASGI application: status, headers, body."""
    sent, bodies = [], [body]

    async def run():
        async def receive():
            if not bodies:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": bodies.pop(), "more_body": False}

        async def say(message):
            sent.append(message)

        path_, _, query = path.partition("?")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path_,
            "raw_path": path_.encode(), "query_string": query.encode(), "root_path": "", "scheme": "http",
            "headers": [(k.lower().encode(), v.encode()) for k, v in headers],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
        }  # fmt: skip
        await app(scope, receive, say)

    asyncio.run(run())
    content = b"".join(m.get("body", b"") for m in sent[1:])
    return sent[0]["status"], {k.decode(): v.decode() for k, v in sent[0]["headers"]}, content


def test_an_analyst_who_asks_much_at_once_keeps_himself_waiting():
    """Planning is one statement at a time, and so many threads wait for it: not all of them for one person."""

    class Slow(Line):
        at_once, most = 0, 0

        def ask(self, act, given, proof=None):
            if proof == {"token": "ada's"}:
                self.at_once += 1
                self.most = max(self.most, self.at_once)
                time.sleep(0.02)
                self.at_once -= 1
            return {"told": proof}

    line = Slow(None)
    face = Face(line)

    async def all_of_them():
        whose = ["ada's"] * 10 + ["bob's"] * 3
        await asyncio.gather(*(face.told("check", {}, {"token": token}) for token in whose))

    asyncio.run(all_of_them())
    assert line.most == 1


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("query", 422),
        ("policy", 403),
        ("budget", 409),
        ("locked", 423),
        ("queue", 429),
        ("unknown", 404),
        ("away", 503),
        ("unauthenticated", 401),
        ("forbidden", 403),
        ("rate", 429),
    ],
)
def test_refusals_are_problems_in_the_library_s_words(kind, status):
    more = {"retry_after": 7} if status == 429 else {}
    app = application(Line({"refused": {"kind": kind, "text": "words", **more}}))
    headers = [("Authorization", "Bearer hub_x"), ("Idempotency-Key", "r")]
    body = json.dumps({"sql": COUNT, "options": {"epsilon": "1"}}).encode()
    found, sent, content = called(app, "POST", "/api/v1/ask", body=body, headers=headers)
    assert (found, sent["content-type"]) == (status, "application/problem+json")
    problem = json.loads(content)
    assert (problem["status"], problem["detail"]) == (status, "words")
    assert sent.get("retry-after") == {429: "7", 503: "2"}.get(status)
    assert sent.get("www-authenticate") == ("Bearer" if status == 401 else None)


def test_who_asks_is_left_to_the_clerk_and_a_request_is_known_by_its_key():
    token = "hub_1"
    line = Line({"told": {"id": "f" * 32, "state": "asked", "release_at": "2026-01-01T00:00:00Z"}})
    app = application(line)
    body = json.dumps({"sql": COUNT, "options": {"epsilon": "1"}}).encode()
    mine = [("Authorization", f"Bearer {token}")]
    for headers in ([], [("Authorization", "Bearer ")], [("Authorization", token)]):
        status, sent, _ = called(app, "POST", "/api/v1/ask", body=body, headers=headers)
        assert (status, sent["www-authenticate"]) == (401, "Bearer")
    assert called(app, "POST", "/api/v1/ask", body=body, headers=mine)[0] == 400
    for wrong in (b"[]", b"{", b'{"sql": 1}', b'{"sql": "x", "options": 3}', b'{"sql": "x", "analyst": "mallory"}'):
        assert called(app, "POST", "/api/v1/ask", body=wrong, headers=[*mine, ("Idempotency-Key", "r")])[0] == 400
    assert called(app, "POST", "/api/v1/check", body=b"x" * 300_000, headers=mine)[0] == 413
    assert line.asked == []
    status, sent, _ = called(app, "POST", "/api/v1/ask", body=body, headers=[*mine, ("Idempotency-Key", "r")])
    assert (status, sent["location"]) == (202, f"/api/v1/answers/{'f' * 32}")
    assert line.asked[0] == (
        "ask",
        {"sql": COUNT, "options": {"epsilon": "1"}, "request": "r"},
        {"token": token},
    )  # fmt: skip
    assert called(app, "GET", "/api/v1/answers/x?wait=nan", headers=mine)[0] == 400
    assert called(app, "GET", "/healthz")[0] == 200


def slow(folder: Path, seconds: float) -> Path:
    """A policy whose answers take so long, and its ledger."""
    file = write_policy(folder)
    text = file.read_text().replace("answer_time = 1.5", f"answer_time = {seconds}")
    file.write_text(text.replace('file = "l.db"', 'file = "l.db"\nmax_failures = 1000\nmax_failures_all = 1000'))
    hb.Session.from_policy(file, create_ledger=True).close()
    return file


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Client:
    """HTTP, as an analyst has it."""

    def __init__(self, port: int, token: str) -> None:
        self._at, self._token = f"http://127.0.0.1:{port}", token

    def call(self, path: str, body: dict | None = None, key: str | None = None) -> tuple[int, dict]:
        known = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        headers = known | ({} if key is None else {"Idempotency-Key": key})
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self._at + path, data, headers), timeout=90) as found:
                return found.status, json.loads(found.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())
        except OSError:
            return 0, {}

    def ready(self) -> None:
        until = time.monotonic() + 60
        while self.call("/healthz")[0] != 200 and time.monotonic() < until:
            time.sleep(0.1)


@pytest.fixture
def service(tmp_path):
    """A service of its own, and a client of ada's."""
    started = []

    def start():
        file, port = slow(tmp_path, answer_time()), free_port()
        token = token_of(file, "ada")
        made = Service(file, host="127.0.0.1", port=port, say=lambda _: None)
        started.append(made)
        made.start()
        client = Client(port, token)
        client.ready()
        return made, client

    yield start
    for each in started:
        each.stop()


def test_an_answer_by_http_comes_at_its_release(service, tmp_path):
    made, client = service()
    declared = load_policy(tmp_path / "hubbub.toml").tables["v"].answer_time
    if sys.platform == "linux":  # what an engine says by itself goes into no log, and not to the clerk's starter
        said = {os.readlink(f"/proc/{pid}/fd/{stream}") for pid in made.ready["runners"] for stream in (1, 2)}
        assert said == {"/dev/null"}
    body = {"sql": COUNT, "options": {"epsilon": "0.5"}}
    status, check = client.call("/api/v1/check", body)
    assert (status, check["types"], check["stored"], check["answer_time"]) == (200, [["n", "int64"]], False, declared)
    status, asked = client.call("/api/v1/ask", body, key="r")
    assert (status, asked["state"]) == (202, "asked")
    assert client.call("/api/v1/ask", body, key="r") == (202, asked)
    status, told = client.call(f"/api/v1/answers/{asked['id']}?wait=60")
    assert (status, told["state"]) == (200, "answered")
    release = hb.Release.from_wire(json.dumps(told["answer"]))
    assert abs(release.to_arrow().column("n")[0].as_py() - 90) < 200
    assert client.call("/api/v1/ask", body, key="s")[0] == 200
    assert client.call(f"/api/v1/answers/{'0' * 32}")[0] == 404
    if landlock_version() >= 4:
        assert made.ready["held"] == {
            "landlock": landlock_version(), "undumpable": True, "no_new_privs": True, "network": False
        }  # fmt: skip
    if landlock_version():
        status = Path(f"/proc/{made.front.popen.pid}/status").read_text()
        assert re.search(r"NoNewPrivs:\s+1", status)
    # A runner knows the socket's place, and not the word that opens it.
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(made._clerk_told["socket"])
        heard = None
        with suppress(OSError):  # it is closed, whatever is said on it
            send(line, "a guess")
            send(line, {"act": "metrics", "given": {}})
            heard = receive(line)
        assert heard is None
    made.stop()
    with Ledger.inspect(tmp_path / "l.db") as ledger:
        assert ledger.record.verify(release.receipt).sound
        assert [e.state for e in ledger.record.history()] == ["stored"]


def test_serve_refuses_an_answer_time_that_its_processes_do_not_keep(tmp_path, monkeypatch):
    from hubbub.service import clerk
    from hubbub.service.clerk import Clerk

    needed = clerk._processes
    monkeypatch.setattr(clerk, "_MOST", 2)
    monkeypatch.setattr(clerk, "_processes", lambda times, took: needed(times, max(took, 0.1)))  # if it is quick
    file = slow(tmp_path, 0.1)
    with pytest.raises(hb.PolicyError, match=r"a runner took \d+\.\d to be ready.*answer_time = \d+ or more"):
        Clerk(load_policy(file))
    assert threading.active_count() < 50


@pytest.mark.soak
def test_what_is_killed_is_started_again_and_nothing_goes_out_uncharged(service, tmp_path):
    """The clerk while a question runs, and the front: the question has no answer, and the service goes on."""
    made, client = service()
    body = {"sql": COUNT, "options": {"epsilon": "0.5"}}
    asked = client.call("/api/v1/ask", body, key="r")[1]
    for child in (made.clerk, made.front):
        os.kill(child.popen.pid, signal.SIGKILL)
        child.popen.wait()
        made.watch()
    client.ready()
    told = client.call(f"/api/v1/answers/{asked['id']}?wait=60")[1]
    assert told["state"] == "no answer"
    assert client.call("/api/v1/check", body)[1]["left"] == "9/2"
    made.stop()
    with Ledger.inspect(tmp_path / "l.db") as ledger:
        assert ledger.record.verify().sound
        assert [e.state for e in ledger.record.history()] == ["failed"]
