"""kill -9 of runner, clerk and front in any order: nothing uncharged, nothing charged twice, nothing lost, chain good.

The soak kills a thousand times; `HUBBUB_SOAK=FOLDER` keeps its ledger and its count there, and goes on where it ended.
"""

from __future__ import annotations

import json
import os
import random
import signal
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest

import hubbub as hb
from hubbub.ledger.store import Ledger
from hubbub.service.serve import Service
from service.helpers import token_of
from service.test_processes import Client, free_port, slow

pytest.importorskip("starlette", reason="the service needs the extra `serve`")

EPSILON = Fraction(1, 1000)


def children(process: int) -> list[int]:
    """The processes that a process started, and those that they did: a runner is forked by the nursery."""
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(pid) for pid in task.read_text().split()]
    return found + [below for each in found for below in children(each)]


class Soak:
    """A service that is killed, and a client who asks meanwhile; what was told is kept in a file."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._file = folder, folder / "state.json"
        self.state = {"kills": 0, "asked": {}, "token": ""}
        if self._file.exists():
            self.state = json.loads(self._file.read_text())
        else:
            policy = slow(folder, 30.0)
            policy.write_text(policy.read_text().replace("= 1000", "= 1000000"))
            self.state["token"] = token_of(policy, "ada")
        port = free_port()
        self.client = Client(port, self.state["token"])
        self.service = Service(folder / "hubbub.toml", host="127.0.0.1", port=port, say=lambda _: None)
        self.service.start()
        self.client.ready()

    def ask(self) -> None:
        """One more question; whether it was charged is not known where the line breaks."""
        key = f"k{len(self.state['asked'])}"
        self.state["asked"][key] = None
        self._repeat(key)

    def _repeat(self, key: str) -> None:
        sql = f"SELECT COUNT(*) AS n FROM v WHERE x < {1 + int(key[1:]) % 49} AND x >= {int(key[1:]) // 49 % 40 - 40}"
        status, told = self.client.call("/api/v1/ask", {"sql": sql, "options": {"epsilon": str(EPSILON)}}, key=key)
        if status == 202:
            known = self.state["asked"][key]
            assert known in (None, told["id"]), "one request, two charges"
            self.state["asked"][key] = told["id"]
        elif status == 200:
            self.state["asked"][key] = "stored"

    def kill(self, what: str) -> None:
        """One of the three, without a word; then whoever watches starts it again."""
        clerk, front = self.service.clerk.popen, self.service.front.popen
        runners = children(clerk.pid)
        victim = {"clerk": [clerk.pid], "front": [front.pid], "runner": runners}[what]
        if victim:
            os.kill(random.Random(self.state["kills"]).choice(victim), signal.SIGKILL)
        for child in (clerk, front):
            if child.pid in victim:
                child.wait()
        self.service.watch()
        self.client.ready()
        self.state["kills"] += 1
        self._file.write_text(json.dumps(self.state))

    def close(self) -> None:
        """Stop, and look at what stands in the ledger."""
        for key, known in list(self.state["asked"].items())[-20:]:
            if known is None:
                self._repeat(key)
        states = {}
        for charge in list(self.state["asked"].values())[-20:]:
            if charge not in (None, "stored"):
                states[charge] = self.client.call(f"/api/v1/answers/{charge}")[1].get("state")
        self._file.write_text(json.dumps(self.state))
        self.service.stop()
        with Ledger.inspect(self.folder / "l.db") as ledger:
            assert ledger.record.verify().problems == ()
            questions = [entry for entry in ledger.record.history() if entry.kind == "question"]
            assert len({entry.request for entry in questions}) == len(questions) <= len(self.state["asked"])
            known = {entry.id: entry for entry in questions}
            for charge in self.state["asked"].values():
                assert charge in (None, "stored") or charge in known, "told, and not charged"
            for charge, state in states.items():
                stored = ledger.record.release(charge)
                assert (stored is not None) == (state == "answered") or state == "asked"
            assert ledger.balance.spent("id") == EPSILON * len(questions)


def victim(number: int) -> str:
    """What is killed then: each of the three in three kills, in any order."""
    return random.Random(number // 3).sample(("runner", "clerk", "front"), 3)[number % 3]


def killed(folder: Path, kills: int) -> None:
    soak = Soak(folder)
    try:
        while soak.state["kills"] < kills:
            coin = random.Random(soak.state["kills"])
            for _ in range(coin.randint(1, 2)):
                soak.ask()
            soak.kill(victim(soak.state["kills"]))
    finally:
        soak.close()


def test_a_few_kills(tmp_path):
    killed(tmp_path, 3)


@pytest.mark.soak
def test_a_thousand_kills(tmp_path):
    folder = Path(os.environ.get("HUBBUB_SOAK", tmp_path))
    folder.mkdir(exist_ok=True)
    killed(folder, 1000)


def test_what_a_soak_asks_can_be_asked(tmp_path):
    """The questions of a soak are answered by the library, too: none is refused for its words."""
    hb.Session.from_policy(slow(tmp_path, 30.0), create_ledger=True).close()
    with hb.Session.from_policy(tmp_path / "hubbub.toml") as session:
        for k in (0, 48, 49, 1959):
            session.check(f"SELECT COUNT(*) AS n FROM v WHERE x < {1 + k % 49} AND x >= {k // 49 % 40 - 40}", epsilon=1)
