"""A command imports what it needs and no more: which modules there are is counted, not seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

NOT_NEEDED = {
    *"pandas scipy matplotlib polars pyspark psycopg cryptography sklearn ssl asyncio numpy.random".split(),
    *"numpy.ma hubbub.plots.chart".split(),
    *"pyarrow.parquet pyarrow.fs pyarrow.dataset sqlglot.dialects.spark sqlglot.dialects.postgres".split(),
    *"hubbub.learning hubbub.attacks hubbub.audit hubbub.local hubbub.games hubbub.collect hubbub.service".split(),
    *"hubbub.engines.spark.engine hubbub.engines.postgres.engine hubbub.synthesis.aim hubbub.synthesis.mwem".split(),
}
"""Modules that a question about a CSV does without."""

LISTED = "import sys; print(); print(*sorted(sys.modules))"
COMMAND = """
import sys
sys.argv = ['hubbub', *{!r}]
from hubbub.cli.main import light, run
light.begin(sys.argv[1:])
assert run(sys.argv[1:]) == 0
"""

POLICY = """
[budget]
epsilon = 3
[ledger]
file = "budget.db"
[tables.people]
source = "people.csv"
unit = "id"
max_groups = 1
max_rows = 1
types = {age = "integer"}
columns.age.between = [0, 100]
columns.ward.one_of = ["a", "b"]
"""


def modules_of(program: str, cwd: Path) -> set[str]:
    """The modules that there are when a program has ended."""
    done = subprocess.run([sys.executable, "-c", program + LISTED], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def of_hubbub(modules: set[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] == "hubbub"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hubbub.toml").write_text(POLICY)
    (tmp_path / "people.csv").write_text("id,age,ward\n1,30,a\n2,40,b\n")
    return tmp_path


def test_a_query_imports_what_it_needs(folder: Path) -> None:
    modules_of(COMMAND.format(["ledger", "create"]), folder)
    for sql in (
        "SELECT AVG(age) AS a, COUNT(*) AS n FROM people",
        "SELECT ward, SUM(age) AS s FROM people GROUP BY ward",
    ):
        modules = modules_of(COMMAND.format(["query", sql, "--epsilon", "1", "--yes"]), folder)
        assert modules & NOT_NEEDED == set(), sql
        assert {"duckdb", "pyarrow", "hubbub.session.session"} <= modules, "the question was not asked"
        assert "GROUP BY" in sql or "pyarrow.compute" not in modules


def test_help_and_import_load_next_to_nothing(tmp_path: Path) -> None:
    assert of_hubbub(modules_of("import hubbub\n", tmp_path)) <= {"hubbub", "hubbub._version"}
    helped = of_hubbub(modules_of(COMMAND.format(["--help"]), tmp_path))
    assert {"hubbub.errors", "hubbub.cli.main"} <= helped
    assert len(helped) <= 12, helped


def test_pandas_is_hidden_from_pyarrow_alone(folder: Path) -> None:
    """In a command's process alone, and there for the first array alone: whoever imports it gets it."""
    hidden = "from hubbub.cli import light\nfrom pathlib import Path\n{}light.without_pandas(Path('hubbub.toml'))\n"
    alone = modules_of(hidden.format("light.begin([])\n") + "import pyarrow\npyarrow.array([1])\n", folder)
    assert "pandas" not in alone
    asked = modules_of(
        hidden.format("light.begin([])\n") + "import pandas\nimport pyarrow\npyarrow.array([1])\n", folder
    )
    assert "pandas" in asked
    lent = modules_of(hidden.format("") + "import pandas, pyarrow\npyarrow.table({'a': [1]}).to_pandas()\n", folder)
    assert "pandas" in lent
    (folder / "hubbub.toml").write_text(POLICY.replace("people.csv", "spark:people"))
    assert "pandas" in modules_of(hidden.format("light.begin([])\n") + "import pyarrow\npyarrow.array([1])\n", folder)


def test_templates_that_are_put_off_write_the_same(tmp_path: Path) -> None:
    """What one process writes with them, where a question is asked once, is what any other does."""
    written = """
from hubbub.cli import light
light.begin([{!r}])
import hubbub.sql.text.read, sqlglot
from sqlglot.generators.duckdb import DuckDBGenerator
put_off = [n for n, made in vars(DuckDBGenerator).items() if type(made).__name__ == '_Later']
print(len(put_off))
for sql in ("SELECT STRTOK('a b', ' ', 1)", "SELECT ARRAY_EXCEPT([1], [2])", "SELECT SEQ4()", "SELECT RANDSTR(3, 1)",
            "SELECT MAP_CAT(a, b)", "SELECT UUID_STRING('a', 'b')", "SELECT MINHASH(3, a)", "SELECT ARRAYS_ZIP(a, b)"):
    print(sqlglot.transpile(sql, read='snowflake', write='duckdb'))
"""
    told = []
    for command in ("query", "shell"):
        done = subprocess.run(
            [sys.executable, "-c", written.format(command)], capture_output=True, text=True, cwd=tmp_path, check=True
        )
        told.append(done.stdout.splitlines())
    (put_off, *once), (none, *often) = told
    assert int(put_off) > 10
    assert none == "0"
    assert once == often


def test_a_command_ends_with_its_code_what_it_wrote_and_nothing_else(folder: Path) -> None:
    """What runs at the end has run, and the binding of DuckDB reports no object as lost."""
    written = """
import atexit, sys
atexit.register(print, "at the end")
sys.argv = ["hubbub", *{!r}]
from hubbub.cli.main import main
main()
"""
    for words, code in ((["check", "SELECT COUNT(*) AS n FROM people", "--epsilon", "0.1"], 0), (["check"], 2)):
        done = subprocess.run([sys.executable, "-c", written.format(words)], capture_output=True, text=True, cwd=folder)
        assert done.returncode == code
        assert done.stdout.endswith("at the end\n")
        assert "leaked" not in done.stderr
