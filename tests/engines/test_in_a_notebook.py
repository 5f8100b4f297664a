"""In a notebook DuckDB refuses to be told anything about its progress bar where ipywidgets is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

KERNEL = """
import sys, types
class Kernel:
    config = {"IPKernelApp": {}}
sys.modules["IPython"] = types.ModuleType("IPython")
sys.modules["IPython"].get_ipython = Kernel
WIDGETS
import duckdb
con = duckdb.connect()
try:
    con.execute("SET enable_progress_bar = false")
    print("may be set")
except duckdb.InvalidInputException:
    print("may not be set")
import pyarrow as pa
import hubbub as hb
rows = hb.table(pa.table({"id": range(50)}), unit="id", max_total=1)
with hb.Session({"v": rows}, budget=hb.Budget(10**9), ledger="b.db") as session:
    print(session.sql("SELECT COUNT(*) FROM v", epsilon=10**6).rows())
"""
NONE = 'sys.modules["ipywidgets"] = None'


@pytest.mark.parametrize(("widgets", "said"), [(NONE, "may not be set"), ("", "")], ids=["without", "as it is"])
def test_a_session_answers_in_a_kernel(widgets: str, said: str, tmp_path) -> None:
    program = KERNEL.replace("WIDGETS", widgets)  # by `-c`: DuckDB takes a file's program for no notebook
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    assert done.stdout.endswith("[(50,)]\n")
