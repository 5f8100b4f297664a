"""The service under load, beside a trivial handler of the same server in the same run.

python -m benchmarks.service_load [--seconds S] [--clients N] [--answer-time S] [--rounds N]

    checks      a second, by so many people at once, and how long each took; beside GET /healthz by as many
    lateness    how long after its release an answer has arrived, of so many questions of each person; beside how late a
                plain timer is on this machine meanwhile
    trivial     GET /healthz while four people send the heaviest checks there are
    streams     200 idle event streams; GET /healthz then, and the memory of the front

Checks are answered at whole tenths of a second, one after the other of each token: a person has at most ten a second.
"""

from __future__ import annotations

import argparse
import http.client
import json
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.service import world
from hubbub.ledger.policy import load_policy
from hubbub.service.people.at_home import opened_people
from hubbub.service.serve import Service

LIMITS = "[service]\nchecks_a_second = 1000\nchecks_at_once = 100000\n"
LIGHT = {"sql": "SELECT COUNT(*) AS n FROM t", "options": {"epsilon": "0.1"}}


class Client:
    """One connection, kept open."""

    def __init__(self, port: int, token: str) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """One request; what is told."""
        data = None if body is None else json.dumps(body)
        try:
            self._http.request(method, path, data, {**self._headers, **headers})
            response = self._http.getresponse()
        except (http.client.HTTPException, OSError):  # the service hung up: nothing was said for seconds
            self._http.close()
            self._http.request(method, path, data, {**self._headers, **headers})
            response = self._http.getresponse()
        content = response.read()
        if response.status >= 400:
            raise RuntimeError(content.decode())
        return json.loads(content)


def heavy(k: int) -> dict[str, Any]:
    """A check that takes as long to plan as there is time for: as many aggregates as one question may have, each with a
    condition of its own; and in turn the dearest text that was found, a list of values as long as a text may be, which
    is given up after two seconds.
    """
    terms = ", ".join(f"SUM(CASE WHEN g > {(k + i) % 90} THEN g END) AS s{i}" for i in range(100))
    listed = f"SELECT COUNT(*) AS n FROM t WHERE g IN ({','.join(['1'] * 49_000)}) AND g < {5 + k % 90}"
    sql = listed if k % 2 else f"SELECT {terms} FROM t WHERE g < {5 + k % 90}"
    return {"sql": sql, "options": {"epsilon": "1"}}


def during(seconds: float, acts: Sequence[Callable[[], Any]]) -> list[float]:
    """How long each call took, of all that so many threads made in so many seconds."""
    until, times, lock = time.monotonic() + seconds, list[float](), threading.Lock()

    def repeat(act: Callable[[], Any]) -> None:
        while time.monotonic() < until:
            began = time.monotonic()
            act()
            with lock:
                times.append(time.monotonic() - began)

    threads = [threading.Thread(target=repeat, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def share(times: Sequence[float], part: float) -> float:
    """A quantile, in milliseconds."""
    return 1000 * sorted(times)[min(len(times) - 1, int(part * len(times)))]


def memory(pid: int) -> float:
    """The resident memory of a process, in MB."""
    line = next(each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmRSS"))
    return float(line.split()[1]) / 1024


def streams(port: int, token: str, count: int) -> list[socket.socket]:
    """Open event streams that nobody asks anything in."""
    opened = []
    for _ in range(count):
        one = socket.create_connection(("127.0.0.1", port), timeout=30)
        head = f"GET /api/v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
        one.sendall(head.encode())
        assert b"200" in one.recv(64)
        opened.append(one)
    return opened


def measured(service: Service, port: int, tokens: Sequence[str], seconds: float, rounds: int) -> None:
    """Everything, printed."""
    assert service.front is not None
    calls = [Client(port, token) for token in tokens]
    for one in calls:
        one.call("POST", "/api/v1/check", LIGHT)
    trivial = during(seconds, [lambda one=one: one.call("GET", "/healthz") for one in calls])
    checks = during(seconds, [lambda one=one: one.call("POST", "/api/v1/check", LIGHT) for one in calls])
    print(f"trivial   {len(trivial) / seconds:.0f}/s, p95 {share(trivial, 0.95):.0f} ms")
    print(f"checks    {len(checks) / seconds:.0f}/s by {len(calls)}, p95 {share(checks, 0.95):.0f} ms; ", end="")
    print(f"{len(checks) / len(trivial):.3f} of the trivial handler's")
    stop, number = threading.Event(), iter(range(10**9))

    def weigh(one: Client) -> None:
        while not stop.is_set():
            with suppress(RuntimeError):  # given up
                one.call("POST", "/api/v1/check", heavy(next(number)))

    weighing = [threading.Thread(target=weigh, args=(one,)) for one in calls[:4]]
    for thread in weighing:
        thread.start()
    beside = during(seconds, [lambda: calls[5].call("GET", "/healthz")])
    stop.set()
    for thread in weighing:
        thread.join()
    print(f"beside    four heavy checkers: trivial p99 {share(beside, 0.99):.0f} ms, n = {len(beside)}")
    before = memory(service.front.popen.pid)
    idle = [each for token in tokens[:10] for each in streams(port, token, 20)]
    time.sleep(6)
    quiet = during(seconds, [lambda: calls[5].call("GET", "/healthz")])
    print(f"streams   {len(idle)} idle: trivial p99 {share(quiet, 0.99):.0f} ms; ", end="")
    print(f"front {before:.0f} MB before, {memory(service.front.popen.pid):.0f} MB with them")
    for each in idle:
        each.close()
    lateness(calls, rounds)


def lateness(calls: Sequence[Client], rounds: int) -> None:
    """Everybody asks, and waits for what he asked; printed."""
    asked = []
    for number in range(rounds):
        for k, one in enumerate(calls):
            question = {"sql": f"SELECT COUNT(*) AS n FROM t WHERE g < {k} AND g > {number - 50}"}
            asked.append((one, one.call("POST", "/api/v1/ask", LIGHT | question, **{"Idempotency-Key": f"k{number}"})))
    began = datetime.now(UTC).isoformat()  # what is told before nobody waits for it yet
    asked = [(one, told) for one, told in asked if told["release_at"] > began]
    late, timers, lock = list[float](), list[float](), threading.Lock()

    def wait(one: Client) -> None:
        for told in [told for caller, told in asked if caller is one]:
            while one.call("GET", f"/api/v1/answers/{told['id']}?wait=50")["state"] == "asked":
                pass
            now = time.time()
            with lock:
                late.append(now - datetime.fromisoformat(told["release_at"]).timestamp())

    waiting = [threading.Thread(target=wait, args=(one,)) for one in calls]
    for thread in waiting:
        thread.start()
    for told in sorted(told["release_at"] for _, told in asked):
        due = datetime.fromisoformat(told).timestamp()
        time.sleep(max(0.0, due - time.time()))
        timers.append(max(0.0, time.time() - due))
    for thread in waiting:
        thread.join()
    for what, times in (("lateness", late), ("a timer", timers)):
        print(f"{what:<9} median {share(times, 0.5):.0f}, p99 {share(times, 0.99):.0f} ms after the release, ", end="")
        print(f"n = {len(times)}")


def main() -> int:
    """Start a service, load it, end it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--answer-time", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=1, help="questions of each person, for the lateness")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="hubbub-load-"))
    world(folder, 0.0, given.answer_time)
    file = folder / "hubbub.toml"
    file.write_text(file.read_text().replace("[service]\n", LIMITS))
    people = opened_people(load_policy(file))
    tokens = []
    for k in range(given.clients):
        people.roll.add(f"analyst{k}", ["analyst"], by="the benchmark")
        tokens.append(people.new_token(f"analyst{k}", by="the benchmark")["token"])
    people.close()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    service = Service(file, host="127.0.0.1", port=port, say=lambda _: None)
    service.start()
    time.sleep(2)
    try:
        measured(service, port, tokens, given.seconds, given.rounds)
    finally:
        service.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
