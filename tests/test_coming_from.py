"""The other library's half of each page for people who come from it runs as printed, where that library is installed.

OpenDP and dp-accounting are in the extra `test`. The rest of OpenDP's page, and all of dp-accounting's, are blocks of
Python that `test_docs.py` runs. diffprivlib stands beside its rivals in `.venvs`, where `make peers` was run.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[1]
BEFORE = {
    "opendp": "",
    "diffprivlib": "import numpy as np\nward = np.array(['A', 'B', 'C'] * 300)\ncost = np.arange(900) % 500\n",
}


def _half(name: str) -> str:
    page = (ROOT / f"docs/coming-from/from-{name}.md").read_text("utf-8")
    (half,) = re.findall(r"```\{code-block\} python\n(.*?)```", page, re.DOTALL)
    return str(half)


def _python(name: str) -> Path | None:
    """The interpreter that has a library."""
    apart = ROOT / f".venvs/{name}/bin/python"
    return apart if apart.exists() else Path(sys.executable) if importlib.util.find_spec(name) else None


@pytest.mark.parametrize("name", list(BEFORE))
def test_the_other_half_runs_where_its_library_is(name: str, tmp_path: Path) -> None:
    python = _python(name)
    if python is None:
        pytest.skip(f"{name} is not installed")
    rows = {"patient_id": [str(i // 2) for i in range(900)], "ward": ["A", "B", "C"] * 300, "cost": [7.0] * 900}
    pq.write_table(pa.table(rows), tmp_path / "visits.parquet")
    done = subprocess.run(
        [str(python), "-c", BEFORE[name] + _half(name)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    if other := re.search(r"python polars version \(\S+\) != expected version \(\S+\)", done.stderr):
        pytest.skip(f"OpenDP serialises frames for one version of Polars alone: {other[0]}")
    assert done.returncode == 0, done.stderr
    assert all(ward in done.stdout for ward in "ABC")
