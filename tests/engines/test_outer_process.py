"""The outer part runs in a process of its own, which one statement can end, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub import plain
from hubbub.confine import landlock_version
from hubbub.engines import outer_process
from hubbub.engines.outer import OuterSide
from hubbub.engines.outer_process import engine_of, why_inside

HALF = 'SELECT "r"."a0" / 2 AS "n" FROM "released0" AS "r" ORDER BY 1'
RELEASED = {"released0": pa.table({"a0": [2.0, 4.0], "place": [0, 1]})}
WARDS = hb.public(pa.table({"ward": ["A", "B"]}))
ENDLESS = "(SELECT unnest(range(1000000)) AS x) a, (SELECT unnest(range(1000000)) AS y) b"


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with plain.only(plain=False):
        yield


def process() -> int:
    """The number of the process that runs the next statement."""
    with outer_process._PROCESSES.one() as child:
        assert child is not None
        return child._popen.pid


@pytest.fixture
def side() -> Iterator[OuterSide]:
    side = OuterSide({"wards": WARDS}, seconds=20)
    yield side
    side.close()


def test_there_is_a_process_and_it_is_kept_warm(side: OuterSide) -> None:
    assert why_inside() is None
    first = process()
    assert first != os.getpid()
    for _ in range(3):
        assert side.run(HALF, (), RELEASED).to_pydict() == {"n": [1.0, 2.0]}
        assert side.run("SELECT count(*) AS c FROM wards", ("wards",), {}).to_pydict() == {"c": [2]}
    assert process() == first


@pytest.mark.parametrize(
    "hostile",
    [
        "SELECT length(repeat('x', 3000000000)) AS n",
        "SELECT length(repeat(repeat('x', 1000000), 1000000)) AS n",
    ],
)
def test_one_giant_value_hurts_that_process_alone(side: OuterSide, hostile: str) -> None:
    before = peak()
    small = OuterSide({"wards": WARDS}, seconds=3, memory=2**25)
    with pytest.raises(hb.QueryError):
        small.run(hostile, (), {})
    assert peak() - before < 2**26, "the value was made in this process"
    assert side.run(HALF, (), RELEASED).num_rows == 2


def peak() -> int:
    """The most bytes that this process ever held."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_what_does_not_stop_is_ended_at_its_deadline(side: OuterSide, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a function that looks at no interrupt would: the process is stopped outright."""
    monkeypatch.setattr(outer_process, "_GRACE", 0.1)
    slow, first = OuterSide({}, seconds=0.2), process()
    os.kill(first, signal.SIGSTOP)
    began = time.monotonic()
    large = {"released0": pa.table({"a0": [0.5] * 2_000_000})}  # more than a socket holds
    with pytest.raises(hb.QueryError, match=r"run for 0\.2 seconds"):
        slow.run("SELECT 1 AS n", (), large)
    assert time.monotonic() - began < 30
    assert process() != first
    assert side.run(HALF, (), RELEASED).num_rows == 2


def test_a_statement_that_is_late_is_stopped(side: OuterSide) -> None:
    slow = OuterSide({}, seconds=0.3)
    with pytest.raises(hb.QueryError, match=r"run for 0\.3 seconds"):
        slow.run(f"SELECT count(*) AS n FROM {ENDLESS} WHERE x + y = 3", (), {})
    assert side.run(HALF, (), RELEASED).num_rows == 2


def test_a_process_that_dies_is_told_and_started_again(side: OuterSide) -> None:
    first = process()
    with side.open((), RELEASED) as engine:
        os.kill(first, signal.SIGKILL)
        with pytest.raises(hb.QueryError, match="more memory"):
            engine.arrow(HALF)
    assert side.run(HALF, (), RELEASED).num_rows == 2
    assert process() != first


def test_an_interrupted_statement_ends_its_process(side: OuterSide) -> None:
    first, me = process(), threading.main_thread().ident
    assert me is not None
    timer = threading.Timer(0.5, signal.pthread_kill, (me, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        side.run(f"SELECT count(*) AS n FROM {ENDLESS} WHERE x + y = 3", (), {})
    timer.join()
    assert process() != first
    assert side.run(HALF, (), RELEASED).num_rows == 2


def test_two_statements_at_once_have_two_processes(side: OuterSide) -> None:
    with side.open((), RELEASED) as one, side.open((), {"released0": pa.table({"a0": [8.0], "place": [0]})}) as two:
        assert one.arrow(HALF).to_pydict() == {"n": [1.0, 2.0]}
        assert two.arrow(HALF).to_pydict() == {"n": [4.0]}
        assert one.arrow(HALF).num_rows == 2


def test_nothing_of_one_statement_is_there_for_the_next(side: OuterSide) -> None:
    with side.open(("wards",), RELEASED) as engine:
        engine.execute("CREATE TABLE left_behind AS SELECT 1 AS x")
    for table in ("left_behind", "released0", "wards"):
        with pytest.raises(hb.QueryError, match="does not exist"):
            side.run(f"SELECT * FROM {table}", (), {})


@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
def test_the_process_is_shut_in(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    with outer_process._PROCESSES.one() as child:
        assert child is not None
        assert child.held["landlock"] >= 1
        assert child.held["no_new_privs"]
        assert child.held["undumpable"]
        limits = Path(f"/proc/{child._popen.pid}/limits")
        assert limits.exists()
    with engine_of({}, {}, seconds=5, memory=2**27) as engine:
        for text in (f"SELECT * FROM read_csv('{secret}')", f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'"):
            with pytest.raises(hb.QueryError):
                engine.arrow(text)


def test_a_service_has_one_ready_whatever_was_asked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = outer_process._Processes()
    monkeypatch.setattr(outer_process, "_PROCESSES", processes)
    outer_process.keep_ready()
    first = process()
    with outer_process._PROCESSES.one() as child:
        assert child is not None
        child.talking = True  # as one that is given up in the middle of a word
    for _ in range(600):
        if processes._free:
            break
        time.sleep(0.05)
    (ready,) = processes._free
    assert ready._popen.pid != first
    processes.end()


def test_where_there_can_be_none_the_engine_runs_inside(side: OuterSide, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outer_process, "_PROCESSES", outer_process._Processes())
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert side.run(HALF, (), RELEASED).to_pydict() == {"n": [1.0, 2.0]}
    assert side.describe(HALF, (), {"released0": {"a0": hb.tables.kinds.Kind.NUMBER}}) != {}  # type: ignore[attr-defined]
    assert why_inside() == "none could be started (FileNotFoundError)"


def test_none_is_left_behind() -> None:
    program = (
        "import pyarrow as pa\nfrom hubbub.engines import outer_process as o\n"
        "with o._PROCESSES.one() as child:\n    print(child._popen.pid, flush=True)\n{}"
    )
    for end in ("", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"):
        done = subprocess.run([sys.executable, "-c", program.format(end)], capture_output=True, text=True)
        pid = int(done.stdout)
        for _ in range(100):
            if not Path(f"/proc/{pid}").exists() or _zombie(pid):
                break
            time.sleep(0.05)
        else:
            pytest.fail("the process outlives the one that asks")


def _zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_session_asks_there(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    call = outer_process._There._call

    def counted(self: Any, said: Any, tables: Any = ()) -> Any:
        asked.append(said["do"])
        return call(self, said, tables)

    monkeypatch.setattr(outer_process._There, "_call", counted)
    rows = pa.table({"u": [1, 2, 3]})
    with pytest.warns(UserWarning, match="ledger=None"):
        opened = hb.Session({"t": hb.table(rows, unit="u", max_total=1)}, budget=hb.Budget(100), ledger=None)
    with opened as s:
        s.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
        assert asked == [], "columns alone need no engine"
        s.sql("SELECT COUNT(*) * 2 AS n FROM t", epsilon=1)
        assert asked == ["describe", "open", "arrow"]
