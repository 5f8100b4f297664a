"""What a runner may take of its machine: memory, disk, cores; and that it is the first to go where memory is short."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import hubbub as hb
from service.test_before_asking import policy as write_policy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limits of a process are Linux's")

OPENED = """
import json, os, sys
from pathlib import Path
from hubbub.ledger.policy import load_policy
from hubbub.service import runner
runner._first_to_go()
opened, _, _ = runner._opened(load_policy(sys.argv[1]), {})
cores, sched_getaffinity = json.loads(sys.argv[2]), os.sched_getaffinity
if cores is not None:
    os.sched_getaffinity = lambda _: set(cores)
runner._yield_to_others()
ask = lambda sql: opened._data.engine._con.execute(sql).fetchone()[0]
tasks = os.listdir("/proc/self/task")
told = {
    "memory": ask("SELECT current_setting('memory_limit')"),
    "disk": ask("SELECT current_setting('max_temp_directory_size')"),
    "aside": ask("SELECT current_setting('temp_directory')"),
    "threads": ask("SELECT current_setting('threads')"),
    "locked": ask("SELECT current_setting('lock_configuration')"),
    "goes": int(Path("/proc/self/oom_score_adj").read_text()),
    "cores": sorted({core for task in tasks for core in sched_getaffinity(int(task))}),
    "nice": sorted({os.getpriority(os.PRIO_PROCESS, int(task)) for task in tasks}),
}
print(json.dumps(told))
"""


def opened(folder: Path, cores: list[int] | None = None) -> dict:
    """What holds of a process that opened its tables as a runner does. cores: which ones it believes to have."""
    file = write_policy(folder)
    file.write_text(file.read_text().replace("max_aggregates", "memory = 512\nmax_aggregates"))
    hb.Session.from_policy(file, create_ledger=True).close()
    (folder / "own").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", OPENED, str(file), json.dumps(cores)],
        env={**os.environ, "TMPDIR": str(folder / "own")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_runner_takes_the_memory_and_the_disk_of_its_policy_and_goes_first(tmp_path):
    told = opened(tmp_path)
    assert (told["memory"], told["disk"]) == ("512.0 MiB", "2.0 GiB")
    assert told["aside"].startswith(str(tmp_path / "own"))
    assert told["locked"] is True
    assert told["goes"] == 1000
    own = sorted(os.sched_getaffinity(0))
    assert told["cores"] == (own[1:] or own)
    assert told["threads"] == max(1, len(own) - 1)


def test_a_runner_of_a_machine_with_one_core_leaves_it_the_right_of_way(tmp_path):
    assert opened(tmp_path, cores=[0])["nice"] == [max(10, os.getpriority(os.PRIO_PROCESS, 0))]


ASIDE = """
import json, os, sys
from hubbub.engines.duckdb.bounds import bound
from hubbub.engines.duckdb.engine import DuckDBEngine
bound(memory=100 << 20, disk=int(sys.argv[1]) << 20, threads=1)
engine = DuckDBEngine()
try:
    text = "md5(i::VARCHAR) || md5((i + 1)::VARCHAR)"
    engine._con.execute(f"CREATE TEMP TABLE t AS SELECT {text} AS m FROM range(3_000_000) r(i)")
    asked = engine._con.execute("SELECT count(*) FROM t").fetchone()[0]
except Exception as error:
    asked = type(error).__name__
print(json.dumps(asked))
engine.close()
"""


@pytest.mark.parametrize(("disk", "told"), [(1, "OutOfMemoryException"), (4096, 3_000_000)])
def test_what_does_not_fit_into_memory_has_the_room_that_it_was_given(disk, told):
    done = subprocess.run(
        [sys.executable, "-c", ASIDE, str(disk)], capture_output=True, text=True, timeout=120, check=True
    )
    assert json.loads(done.stdout) == told, duckdb.__version__
