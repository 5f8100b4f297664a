"""A cluster of Spark that loses workers while questions run: every answer is the one of a cluster that lost none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]


@pytest.mark.parametrize("times", [2, pytest.param(60, marks=pytest.mark.soak)])
def test_an_executor_that_is_killed_changes_no_answer(tmp_path: Path, times: int) -> None:
    """Tasks are run again, on other executors and in another order. The cluster is a program of its own."""
    pytest.importorskip("pyspark", reason="Spark needs the extra `spark`")
    if shutil.which("java") is None or not Path("/proc/self/stat").exists():
        pytest.skip("a cluster of this machine's own needs Java and /proc")
    path = os.pathsep.join([str(HERE), str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "engines.lost_worker", str(tmp_path), str(times)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "killed while a question ran" in ran.stdout
    assert not ran.stdout.strip().startswith("0 ")
