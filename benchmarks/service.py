"""Two real worlds of the service: a person with no rows or with millions; can a client tell which?

python -m benchmarks.service [--rows MILLIONS] [--seconds S] [--answer-time S]

In each world the service answers one question after another by HTTP, for so many seconds, with one runner busy. Noted
are how long after its release an answer came, and how long checks took meanwhile. The two are compared by
`hubbub.audit.service.compare` at .99, and what so few times could show is said. That an answer's lateness tells is a
defect; that checks' times may tell, because cores, caches and memory are shared, is listed as open in the docs.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

import hubbub as hb
from hubbub.audit.service import compare, resolution
from hubbub.ledger.policy import load_policy
from hubbub.service.people.at_home import opened_people
from hubbub.service.serve import Service

POLICY = """
[ledger]
file = "budget.db"
[budget]
epsilon = 1000
[service]
answer_time = {seconds}
[tables.t]
source = "t.parquet"
unit = "u"
max_groups = 2
max_rows = 3
[tables.t.columns]
g = {{ between = [0, 99] }}
"""


def world(folder: Path, millions: float, answer_time: float) -> None:
    """200,000 rows of 50,000 people, and those of one person more."""
    heavy = f"UNION ALL SELECT -1, i % 100 FROM range({round(millions * 1e6)}) r(i)"
    rows = f"SELECT i % 50000 AS u, i * 7 % 100 AS g FROM range(200000) r(i) {heavy}"
    duckdb.connect().execute(f"COPY ({rows}) TO '{folder}/t.parquet' (FORMAT parquet)")
    (folder / "hubbub.toml").write_text(POLICY.format(seconds=answer_time))
    hb.Session.from_policy(folder / "hubbub.toml", create_ledger=True).close()


def call(port: int, token: str, path: str, body: Mapping[str, Any] | None = None, key: str = "") -> Any:
    """One request."""
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key, "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)) as found:
        return json.loads(found.read())


def measured(millions: float, seconds: float, answer_time: float) -> dict[str, list[float]]:
    """How late answers were after their releases, and how long checks took."""
    folder = Path(tempfile.mkdtemp(prefix="hubbub-world-"))
    world(folder, millions, answer_time)
    people = opened_people(load_policy(folder / "hubbub.toml"))
    people.roll.add("ada", ["analyst"], by="the benchmark")
    token = people.new_token("ada", by="the benchmark")["token"]
    people.close()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    service = Service(folder / "hubbub.toml", host="127.0.0.1", port=port, say=lambda _: None)
    service.start()
    time.sleep(3)
    noted: dict[str, list[float]] = {"late": [], "checks": [], "answered": []}
    try:
        until, k = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            sql = f"SELECT g, COUNT(*) AS n FROM t WHERE g < {5 + k % 90} GROUP BY g"
            asked = call(port, token, "/api/v1/ask", {"sql": sql, "options": {"epsilon": "0.1"}}, key=f"k{k}")
            release = datetime.fromisoformat(asked["release_at"]).timestamp()
            while time.time() < release - 1:
                began = time.monotonic()
                call(port, token, "/api/v1/check", {"sql": sql, "options": {"epsilon": "0.2"}})
                noted["checks"].append(time.monotonic() - began)
                time.sleep(0.2)
            told = call(port, token, f"/api/v1/answers/{asked['id']}?wait=30")
            noted["late"].append(time.time() - release)
            noted["answered"].append(float(told["state"] == "answered"))
            k += 1
    finally:
        service.stop()
    return noted


def main() -> int:
    """Both worlds, and what tells them apart."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=float, default=3.0, help="millions of rows of the one person")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--answer-time", type=float, default=10.0)
    given = parser.parse_args()
    worlds = [measured(millions, given.seconds, given.answer_time) for millions in (0.0, given.rows)]
    told = False
    for what in ("answered", "late", "checks"):
        one, two = (noted[what] for noted in worlds)
        apart = compare(one, two, tests=3)
        told |= apart and what != "checks"
        medians = [f"{statistics.median(times):.3f} (n={len(times)})" for times in (one, two)]
        shown = resolution(len(one), len(two), tests=3)
        power = "too few to show any difference" if shown >= 1 else f"a difference of {shown:.2f} would show"
        print(f"{what:<9} medians {medians[0]} and {medians[1]}: {'APART' if apart else 'not told apart'}; {power}")
    return int(told)


if __name__ == "__main__":
    sys.exit(main())
