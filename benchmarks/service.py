"""Two real worlds of the service: a person with no rows or with millions; can a client tell which?

python -m benchmarks.service [--rows MILLIONS] [--seconds S] [--answer-time S] [--lanes K] [--analysts N]

Analysts ask by HTTP in each world, and again as soon as they are told, so that lanes are never free:
one answer is told when another question starts. The worlds take turns, so that a machine that grows slower
tells nothing. Noted are whether there was an answer, how long after its release it came, and how long
checks took meanwhile. The two are compared by `hubbub.audit.service.compare` at .99, and what so many times could show
is said. That an answer's lateness tells is a defect; that checks' times may tell, because cores, caches and memory are
shared, is listed as open in the docs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import duckdb

import hubbub as hb
from hubbub.audit.service import compare, resolution
from hubbub.ledger.policy import load_policy
from hubbub.service.people.at_home import opened_people
from hubbub.service.serve import Service

POLICY = """
[ledger]
file = "budget.db"
max_failures = 1000000
max_failures_all = 1000000
[budget]
epsilon = 1000
[service]
answer_time = {seconds}
lanes = {lanes}
[tables.t]
source = "t.parquet"
unit = "u"
max_groups = 2
max_rows = 3
[tables.t.columns]
g = {{ between = [0, 99] }}
"""


TURNS: Final = (0, 1, 1, 0, 1, 0, 0, 1)
"""Which world is asked, one after the other: no drift that is a square of time tells one from the other."""


@dataclass(frozen=True)
class Setting:
    """How the worlds are asked. seconds: in each world, in all its turns."""

    seconds: float
    answer_time: float
    lanes: int
    analysts: int


def world(folder: Path, millions: float, setting: Setting) -> None:
    """200,000 rows of 50,000 people, and those of one person more. No failure locks anybody: it is noted."""
    heavy = f"UNION ALL SELECT -1, i % 100 FROM range({round(millions * 1e6)}) r(i)"
    rows = f"SELECT i % 50000 AS u, i * 7 % 100 AS g FROM range(200000) r(i) {heavy}"
    duckdb.connect().execute(f"COPY ({rows}) TO '{folder}/t.parquet' (FORMAT parquet)")
    (folder / "hubbub.toml").write_text(POLICY.format(seconds=setting.answer_time, lanes=setting.lanes))
    hb.Session.from_policy(folder / "hubbub.toml", create_ledger=True).close()


def call(port: int, token: str, path: str, body: Mapping[str, Any] | None = None, key: str = "") -> Any:
    """One request."""
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key, "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)) as found:
        return json.loads(found.read())


def measured(millions: float, setting: Setting) -> dict[str, list[float]]:
    """What is measured in a turn of a world: whether there was an answer, how late, and how long checks took."""
    folder = Path(tempfile.mkdtemp(prefix="hubbub-world-"))
    world(folder, millions, setting)
    people = opened_people(load_policy(folder / "hubbub.toml"))
    tokens = []
    for k in range(setting.analysts):
        people.roll.add(f"analyst{k}", ["analyst"], by="the benchmark")
        tokens.append(people.new_token(f"analyst{k}", by="the benchmark")["token"])
    people.close()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    service = Service(folder / "hubbub.toml", host="127.0.0.1", port=port, say=lambda _: None)
    service.start()
    time.sleep(3)
    noted: dict[str, list[float]] = {"answered": [], "late": [], "checks": []}
    asking = [Analyst(port, token, k, noted) for k, token in enumerate(tokens)]
    try:
        with ThreadPoolExecutor(len(asking)) as pool:
            until = time.monotonic() + setting.seconds / (len(TURNS) / 2)
            for done in [pool.submit(each.ask_until, until) for each in asking]:
                done.result()
    finally:
        service.stop()
        shutil.rmtree(folder)
    return noted


@dataclass
class Analyst:
    """One who asks again as soon as he is told; the first of them checks meanwhile."""

    port: int
    token: str
    number: int
    noted: dict[str, list[float]]

    def ask_until(self, until: float) -> None:
        """Ask one question after another, each another one."""
        k = 0
        while time.monotonic() < until:
            text = f"SELECT g, COUNT(*) AS n FROM t WHERE g < {5 + k % 90} AND g >= {self.number % 5} GROUP BY g"
            # Another amount is another question, whoever asked it before.
            asked = self._call("/api/v1/ask", {"sql": text, "options": {"epsilon": f"0.1{self.number:02}{k:03}"}}, k)
            release = datetime.fromisoformat(asked["release_at"]).timestamp()
            while self.number == 0 and time.time() < release - 1:
                began = time.monotonic()
                self._call("/api/v1/check", {"sql": text, "options": {"epsilon": "0.5"}})
                self.noted["checks"].append(time.monotonic() - began)
                time.sleep(0.2)
            told = self._call(f"/api/v1/answers/{asked['id']}?wait=60")
            self.noted["late"].append(time.time() - release)
            self.noted["answered"].append(float(told["state"] == "answered"))
            k += 1

    def _call(self, path: str, body: Mapping[str, Any] | None = None, k: int = 0) -> Any:
        return call(self.port, self.token, path, body, key=f"k{k}")


def main() -> int:
    """Both worlds, and what tells them apart."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=float, default=3.0, help="millions of rows of the one person")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--answer-time", type=float, default=2.0)
    parser.add_argument("--lanes", type=int, default=4)
    parser.add_argument("--analysts", type=int, default=8)
    given = parser.parse_args()
    setting = Setting(given.seconds, given.answer_time, given.lanes, given.analysts)
    worlds: list[dict[str, list[float]]] = [{}, {}]
    for which in TURNS:
        for what, times in measured((0.0, given.rows)[which], setting).items():
            worlds[which].setdefault(what, []).extend(times)
    told = False
    for what in ("answered", "late", "checks"):
        one, two = (noted[what] for noted in worlds)
        apart = compare(one, two, tests=3)
        told |= apart and what != "checks"
        middle = statistics.mean if what == "answered" else statistics.median
        medians = [f"{middle(times):.3f} (n={len(times)})" for times in (one, two)]
        shown = resolution(len(one), len(two), tests=3)
        power = "too few to show any difference" if shown > 1 else f"a difference of {shown:.2f} would show"
        print(f"{what:<9} {medians[0]} and {medians[1]}: {'APART' if apart else 'not told apart'}; {power}")
    return int(told)


if __name__ == "__main__":
    sys.exit(main())
