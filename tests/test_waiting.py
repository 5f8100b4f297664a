"""Long work on a terminal: a line that tells the time alone, and Ctrl-C that stops the engine and leaves all well."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hubbub.engines.stopping import stoppable
from hubbub.errors import EngineError
from hubbub.ledger.store import Ledger

HERE = Path(__file__).parent

SLOW = """
import os, sys, time
import pyarrow as pa
import hubbub as hb
import hubbub.progress
from hubbub.engines.duckdb.engine import DuckDBEngine

hubbub.progress.AFTER = hubbub.progress.EVERY = 0.25
run = DuckDBEngine.run
def slow(self, *arguments):
    time.sleep(1)
    return run(self, *arguments)
DuckDBEngine.run = slow
frame = pa.table({"id": [1, 2, 3]})
tables = {"t": hb.table(frame, unit="id", max_total=1)}
with hb.Session(tables, budget=hb.Budget(1), ledger=sys.argv[1]) as s:
    print(len(s.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)))
"""


def _stderr_of(script: str, argument: str, *, terminal: bool = True, **environment: str) -> str:
    """What a script writes to its stderr, a terminal or a pipe; its stdout has to be 1."""
    ours, theirs = pty.openpty() if terminal else os.pipe()
    known = {k: v for k, v in os.environ.items() if k not in ("TERM", "HUBBUB_PROGRESS")}
    child = subprocess.Popen(
        [sys.executable, "-c", script, argument],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=known | {"TERM": "xterm"} | environment,
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # a terminal whose other side is closed
            break
        if not piece:
            break
        written += piece
    os.close(ours)
    assert child.communicate(timeout=60)[0].strip() == b"1"
    assert child.returncode == 0, written
    return written.decode()


def test_a_terminal_sees_the_seconds_and_then_nothing(tmp_path: Path) -> None:
    written = _stderr_of(SLOW, str(tmp_path / "budget.db"))
    shown = [line for line in written.split("\r") if line.strip()]
    assert shown
    assert all(re.fullmatch(r"asking: \d+ s \(Ctrl-C stops\)", line) for line in shown)
    assert written.endswith("\r")
    assert written.split("\r")[-2] == " " * len(shown[-1])


@pytest.mark.parametrize("how", ["pipe", "HUBBUB_PROGRESS", "TERM"])
def test_who_is_no_terminal_or_wants_no_line_sees_none(how: str, tmp_path: Path) -> None:
    environment = {"pipe": {}, "HUBBUB_PROGRESS": {"HUBBUB_PROGRESS": "0"}, "TERM": {"TERM": "dumb"}}[how]
    assert _stderr_of(SLOW, str(tmp_path / "budget.db"), terminal=how != "pipe", **environment) == ""


# One unit of 200,000 rows, joined with itself: minutes of work for the engine.
STUCK = """
import sys
import pyarrow as pa
import pyarrow.compute as pc
import hubbub as hb

frame = pa.table({"id": [1] * 200_000, "x": list(range(200_000))})
tables = {"t": hb.table(frame, unit="id", max_total=1, columns={"x": hb.between(0, 10)})}
with hb.Session(tables, budget=hb.Budget(1), ledger=sys.argv[1], analyst="ana") as s:
    print("open", flush=True)
    try:
        s.sql("SELECT SUM(a.x) FROM t a JOIN t b ON a.id = b.id AND a.x <> b.x + 1", epsilon="0.5")
    except KeyboardInterrupt:
        print("interrupted", len(s._engine._running), flush=True)
    print(s.remaining, [e.state for e in s.history()], flush=True)
    print(s.sql("SELECT COUNT(*) AS n FROM t", epsilon="0.5").charged, s.remaining, flush=True)
"""


def _until_charged(ledger: Path) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with Ledger.inspect(ledger) as book:
            if book.record.history():
                return
        time.sleep(0.05)
    raise AssertionError("nothing was charged")


def test_ctrl_c_stops_the_engine_and_leaves_the_ledger_right(tmp_path: Path) -> None:
    ledger = tmp_path / "budget.db"
    child = subprocess.Popen([sys.executable, "-c", STUCK, str(ledger)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        _until_charged(ledger)
        time.sleep(0.5)  # well inside the engine's work
        child.send_signal(signal.SIGINT)
        sent = time.monotonic()
        ready, _, _ = select.select([child.stdout], [], [], 30)
        assert ready
        assert child.stdout.readline() == "interrupted 0\n"
        assert time.monotonic() - sent < 3  # 0.1 s on a machine with nothing else to do
        # Charged, and given up before anything was drawn: asked again it costs nothing, once.
        assert child.stdout.readline() == "1/2 ['withdrawn']\n"
        assert child.stdout.readline() == "True 0\n"
        assert child.wait(timeout=30) == 0
    finally:
        child.kill()
        child.wait()
    with Ledger.inspect(ledger) as book:
        assert [entry.state for entry in book.record.history()] == ["withdrawn", "shown"]
        assert book.record.verify().sound


def test_work_elsewhere_gives_what_it_gives() -> None:
    assert stoppable(lambda: threading.current_thread().name, lambda _: None) == "hubbub-engine"
    with pytest.raises(EngineError, match="i-1"):
        stoppable(lambda: (_ for _ in ()).throw(EngineError("i-1")), lambda _: None)
    names: list[str] = []
    other = threading.Thread(target=lambda: names.append(stoppable(lambda: threading.current_thread().name, exit)))
    other.start()
    other.join()
    assert names == [other.name]  # no signal reaches it: nothing to wait for


@pytest.mark.usefixtures("ctrl_c")
def test_what_a_signal_raises_comes_out_once_the_work_has_ended() -> None:
    told, ended = threading.Event(), threading.Event()
    calls: list[float] = []

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        told.wait(10)
        ended.set()

    def stop(_: object) -> None:
        calls.append(time.monotonic())
        if len(calls) == 3:  # the first two met no statement
            told.set()
        raise RuntimeError("an engine's own words")

    with pytest.raises(KeyboardInterrupt):
        stoppable(work, stop)
    assert ended.is_set()
    assert len(calls) >= 3


def test_who_is_interrupted_before_the_work_has_begun_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C there took five seconds: what never began was stopped again and again. It begins no more, either."""
    begun, starts = list[str](), list[threading.Thread]()

    def start(thread: threading.Thread) -> None:
        starts.append(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(KeyboardInterrupt):
        stoppable(lambda: begun.append("work"), lambda _: begun.append("stop"))
    starts[0].run()
    assert begun == []
