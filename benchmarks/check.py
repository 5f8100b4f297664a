"""What a question costs beside its rows: planning, long lists of groups, a command's start, SQL over releases.

    python -m benchmarks.check            each time beside a floor of the same run

Planning: `check` of 1, 20 and 200 aggregates, a text that is new and one that was asked before, in times of what
sqlglot takes to parse the text. Lists: a key of 100,000 declared values and two of 1,000, over 200,000 rows, in times
of DuckDB's own GROUP BY over the same rows and values. The command: seconds of processors of `hubbub query` on a small
file, in times of a process that imports duckdb and pyarrow alone. The outer part: SQL over a release, in its process
and inside, in milliseconds on the wall. All others are seconds of processors.
"""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import sqlglot

import hubbub as hb
from benchmarks.timing import machine, table
from hubbub.engines.outer import OuterSide
from hubbub.engines.outer_process import end_all
from hubbub.process import begin_command

ROWS = 200_000
WORDS = ("SUM", "AVG", "VAR_SAMP", "COUNT")
SHAPES: dict[str, dict[str, int]] = {"a key of 100,000": {"k": 100_000}, "two keys of 1,000": {"k": 1000, "j": 1000}}
POLICY = """
[budget]
epsilon = 1000000
[ledger]
file = "budget.db"
[tables.people]
source = "people.csv"
unit = "id"
max_total = 1
types = {age = "integer"}
columns.age.between = [0, 100]
"""
HALF = 'SELECT "r"."a0" / 2 AS "n" FROM "released0" AS "r" ORDER BY 1'


def opened(rows: pa.Table, columns: dict[str, Any]) -> hb.Session:
    """A session whose budget holds whatever is asked."""
    declared = hb.table(rows, unit="u", max_groups=3, max_rows=3, columns=columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hb.Session({"t": declared}, budget=hb.Budget(10**6), ledger=None)


def middle(work: Callable[[], object], runs: int = 5, clock: Callable[[], float] = process_time) -> float:
    """The median of some runs, in seconds of processors, after one that warms up."""
    work()
    times = []
    for _ in range(runs):
        start = clock()
        work()
        times.append(clock() - start)
    return median(times)


def planning() -> Iterator[list[str]]:
    """One line for each number of aggregates."""
    names = [f"c{i}" for i in range(200)]
    rows = pa.table({"u": np.arange(1000), **{name: np.arange(1000) % 50 for name in names}})
    with opened(rows, {name: hb.between(0, 50) for name in names}) as session:
        for count in (1, 20, 200):
            listed = ", ".join(f"{WORDS[i % 4]}({name}) AS a_{name}" for i, name in enumerate(names[:count]))
            text, number = f"SELECT {listed} FROM t WHERE c0 > ", itertools.count()
            floor = middle(lambda text=text: sqlglot.parse_one(f"{text}0", read="duckdb"))
            new = middle(lambda text=text, number=number: session.check(f"{text}{next(number)}", epsilon=1))
            again = middle(lambda text=text: session.check(f"{text}-1", epsilon=1))
            figures = (f"{1e3 * new:,.1f}", f"{1e3 * again:,.1f}", f"{1e3 * floor:,.1f}")
            yield [f"check, {count} aggregates", *figures, f"{new / floor:.1f}", f"{again / floor:.1f}"]


def lists() -> Iterator[list[str]]:
    """One line for each shape of declared groups."""
    draw = np.arange(ROWS) * 7919
    shapes: dict[str, dict[str, int]] = {
        "a key of 100,000": {"k": 100_000},
        "two keys of 1,000": {"k": 1000, "j": 1000},
    }
    for name, sizes in shapes.items():
        keys = {key: draw // (i + 1) % size for i, (key, size) in enumerate(sizes.items())}
        rows = pa.table({"u": np.arange(ROWS) // 2, "x": draw % 50, **keys})
        of_keys = {key: hb.one_of(*range(size)) for key, size in sizes.items()}
        by, number = ", ".join(sizes), itertools.count(1)
        with opened(rows, {"x": hb.between(0, 50), **of_keys}) as session, duckdb.connect() as con:
            con.register("t", rows)
            every = " CROSS JOIN ".join(f"range({size}) AS {key}_({key})" for key, size in sizes.items())
            plain = f"SELECT {by}, count(t.u), sum(t.x) FROM {every} LEFT JOIN t USING ({by}) GROUP BY {by}"
            floor = middle(lambda con=con, plain=plain: con.sql(plain).to_arrow_table(), runs=3)
            text = f"SELECT {by}, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY {by}"
            took = middle(lambda text=text, number=number: session.sql(text, epsilon=next(number)).to_arrow(), runs=3)
        yield [name, f"{took:.2f} s", "", f"{floor:.2f} s", f"{took / floor:.1f}", ""]


def processor_seconds(*arguments: str, cwd: str) -> float:
    """Of processors, of a process and those that it started; the least of five."""
    times = []
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], cwd=cwd, env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def command() -> list[str]:
    """`hubbub query` on a file of two rows."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "hubbub.toml").write_text(POLICY)
        Path(folder, "people.csv").write_text("id,age\n1,30\n2,40\n")
        subprocess.run(
            [sys.executable, "-m", "hubbub", "ledger", "create"], cwd=folder, check=True, capture_output=True
        )
        query = ("-m", "hubbub", "query", "SELECT AVG(age) AS a FROM people", "--epsilon", "1", "--yes")
        took = processor_seconds(*query, cwd=folder)
        floor = processor_seconds("-c", "import duckdb, pyarrow", cwd=folder)
    return ["hubbub query, CPU", f"{took:.2f} s", "", f"{floor:.2f} s", f"{took / floor:.1f}", ""]


def outer() -> list[str]:
    """SQL over a release: in its process, beside inside."""
    released = {"released0": pa.table({"a0": [2.0, 4.0], "place": [0, 1]})}
    there = middle(lambda: OuterSide({}).run(HALF, (), released), 25, perf_counter)
    end_all()
    begin_command(once=True)
    inside = middle(lambda: OuterSide({}).run(HALF, (), released), 25, perf_counter)
    figures = (f"{1e3 * there:.1f}", "", f"{1e3 * inside:.1f}")
    return ["SQL over a release", *figures, f"{there / inside:.1f}", ""]


def main() -> None:
    print(machine(), flush=True)
    rows = [*planning(), *lists(), command(), outer()]
    print(table(("", "new, ms", "again, ms", "floor, ms", "new / floor", "again / floor"), rows))


if __name__ == "__main__":
    main()
