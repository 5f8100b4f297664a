"""kill -9 of runner, clerk and front in any order: nothing uncharged, nothing charged twice, nothing lost, chain good.

What was once told "answered" is read again after kills, and must be the same to the byte; what was told "no answer"
stays so. Kills fall at any moment of a question's life: while it is sent, runs, waits for its release, is told.

The soak kills a thousand times; `HUBBUB_KILLS=FOLDER` keeps its ledger and its count there, and goes on where it ended.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.ledger.store import Ledger
from hubbub.service.serve import Service
from service.helpers import token_of
from service.test_processes import Client, free_port, slow

pytest.importorskip("starlette", reason="the service needs the extra `serve`")

EPSILON = Fraction(1, 1000)
LANES = 2


def children(process: int) -> list[int]:
    """The processes that a process started, and those that they did: a runner is forked by the nursery."""
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(pid) for pid in task.read_text().split()]
    return found + [below for each in found for below in children(each)]


def policy_for(folder: Path, seconds: float) -> Path:
    """Answers that take so long, in two lanes; no failure locks anybody."""
    policy = slow(folder, seconds)
    text = (
        policy.read_text().replace("= 1000", "= 1000000").replace("max_aggregates", f"lanes = {LANES}\nmax_aggregates")
    )
    policy.write_text(text)
    return policy


class Soak:
    """A service that is killed, and a client who asks meanwhile; what was told is kept in files.

    asked: the id of each request, by its key; None where the line broke before one was told. fates: what was told of an
    id at the last, when that is final. An answer stands in a file of its own.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder, self.seconds, self._file = folder, seconds, folder / "state.json"
        self.state: dict[str, Any] = {"kills": 0, "asked": {}, "fates": {}, "token": ""}
        if self._file.exists():
            self.state = json.loads(self._file.read_text())
        else:
            self.state["token"] = token_of(policy_for(folder, seconds), "ada")
            (folder / "answers").mkdir()
        port = free_port()
        self.client = Client(port, self.state["token"])
        self.service = Service(folder / "hubbub.toml", host="127.0.0.1", port=port, say=lambda _: None)
        self.service.start()
        self.client.ready()

    def save(self) -> None:
        draft = self._file.with_suffix(".new")
        draft.write_text(json.dumps(self.state))
        draft.replace(self._file)

    def ask(self) -> str:
        """One more question; whether it was charged is not known where the line breaks."""
        key = f"k{len(self.state['asked'])}"
        self.state["asked"][key] = None
        self.repeat(key)
        return key

    def repeat(self, key: str) -> None:
        """The same request again: it has the id that it had, if it has one."""
        sql = f"SELECT COUNT(*) AS n FROM v WHERE x < {1 + int(key[1:]) % 49} AND x >= {int(key[1:]) // 49 % 40 - 40}"
        status, told = self.client.call("/api/v1/ask", {"sql": sql, "options": {"epsilon": str(EPSILON)}}, key=key)
        if status in (200, 202):
            known = self.state["asked"][key]
            assert known in (None, told["id"]), "one request, two charges"
            self.state["asked"][key] = told["id"]

    def look(self, charge: str, wait: float = 0) -> str | None:
        """What is told of a question now: an answer that was told once is told again, the same. None: nobody says."""
        status, told = self.client.call(f"/api/v1/answers/{charge}?wait={wait}")
        if status in (0, 503):
            return None
        assert status == 200, (charge, told)
        state, before = str(told["state"]), self.state["fates"].get(charge)
        assert before in (None, state), f"{charge} was told {before!r}, and now {state!r}"
        if state == "answered":
            text, file = json.dumps(told, sort_keys=True), self.folder / "answers" / charge
            if file.exists():
                assert file.read_text() == text, "another answer than before"
            file.write_text(text)
        if state != "asked":
            self.state["fates"][charge] = state
        return state

    def look_back(self, coin: random.Random) -> None:
        """What was not final when somebody looked last, and some of what was."""
        known = [charge for charge in self.state["asked"].values() if charge is not None]
        final = [charge for charge in known if charge in self.state["fates"]]
        for charge in [c for c in known if c not in self.state["fates"]] + coin.sample(final, min(3, len(final))):
            self.look(charge)
        for key, charge in list(self.state["asked"].items())[-5:]:
            if charge is None:
                self.repeat(key)

    def kill(self, what: str, coin: random.Random) -> None:
        """One of the three, without a word, while a question is sent; then whoever watches starts it again."""
        clerk, front = self.service.clerk.popen, self.service.front.popen
        victim = {"clerk": [clerk.pid], "front": [front.pid], "runner": children(clerk.pid)}[what]
        sender = threading.Thread(target=self.ask)
        sender.start()
        time.sleep(coin.uniform(0, 0.1))
        if victim:
            with suppress(ProcessLookupError):  # a runner came to its end
                os.kill(coin.choice(victim), signal.SIGKILL)
        for child in (clerk, front):
            if child.pid in victim:
                child.wait()
        sender.join()
        for _ in range(10):  # a clerk refuses to start where a runner is not ready in time
            self.service.watch()
            if self.service.clerk.popen.poll() is None:
                break
        self.client.ready()
        self.state["kills"] += 1
        self.save()

    def close(self) -> None:
        """Read every answer once more, stop, and look at what stands in the ledger."""
        try:
            for charge in self.state["asked"].values():
                if charge is not None:
                    self.look(charge)
            self.save()
        finally:
            self.service.stop()
        with Ledger.inspect(self.folder / "l.db") as ledger:
            assert ledger.record.verify().problems == ()
            questions = {entry.id: entry for entry in ledger.record.history() if entry.kind == "question"}
            requests = {entry.request for entry in questions.values()}
            assert len(requests) == len(questions)
            assert requests <= set(self.state["asked"])
            told = {charge for charge in self.state["asked"].values() if charge is not None}
            assert told <= set(questions), "told, and not charged"
            for charge, fate in self.state["fates"].items():
                assert (ledger.record.release(charge) is not None) == (fate == "answered"), (charge, fate)
            assert ledger.balance.spent("id") == EPSILON * len(questions)

    def answered(self) -> int:
        """How many questions were told to be answered."""
        return list(self.state["fates"].values()).count("answered")


def victim(number: int) -> str:
    """What is killed then: each of the three in three kills, in any order."""
    return random.Random(number // 3).sample(("runner", "clerk", "front"), 3)[number % 3]


def killed(folder: Path, kills: int, seconds: float) -> Soak:
    """Kill so many times, each at any moment of a question's life."""
    soak = Soak(folder, seconds)
    try:
        while soak.state["kills"] < kills:
            coin = random.Random(soak.state["kills"])
            for _ in range(coin.randint(1, 2)):
                soak.ask()
            time.sleep(coin.uniform(0, 1.6 * seconds))
            soak.look_back(coin)
            soak.kill(victim(soak.state["kills"]), coin)
    finally:
        soak.close()
    return soak


def test_an_answer_that_was_told_is_there_after_a_kill_of_each(tmp_path):
    soak = Soak(tmp_path, 4.0)
    try:
        for _ in range(20):  # a machine that is behind gives no answer at times; that is not looked at here
            if soak.look(soak.state["asked"][soak.ask()], wait=60) == "answered":
                break
        assert soak.answered() == 1
        for number in range(3):
            soak.kill(victim(number), random.Random(number))
            soak.look_back(random.Random(number))
        assert soak.state["kills"] == 3
    finally:
        soak.close()


@pytest.mark.soak
def test_a_thousand_kills(tmp_path):
    """Nothing is lost that was charged and stored; an answer in ten kills at least, or it shows nothing."""
    folder = Path(os.environ.get("HUBBUB_KILLS", tmp_path))
    folder.mkdir(exist_ok=True)
    soak = killed(folder, int(os.environ.get("HUBBUB_KILLS_COUNT", "1000")), 1.5)
    assert soak.answered() >= soak.state["kills"] / 10


def test_what_a_soak_asks_can_be_asked(tmp_path):
    """The questions of a soak are answered by the library, too: none is refused for its words."""
    hb.Session.from_policy(slow(tmp_path, 30.0), create_ledger=True).close()
    with hb.Session.from_policy(tmp_path / "hubbub.toml") as session:
        for k in (0, 48, 49, 1959):
            session.check(f"SELECT COUNT(*) AS n FROM v WHERE x < {1 + k % 49} AND x >= {k // 49 % 40 - 40}", epsilon=1)
