"""Private tables against the engine's own plain work, and against OpenDP where it is installed: targets T1-T3, U1, U2.

python -m benchmarks.tables [--rows MILLIONS] [--large]

T1: count and mean of a value in each of 100 groups, each unit bounded to 5 groups of 10 rows; Parquet to answer. The
floor is DuckDB's own non-private pre-aggregation, one row per unit and group, in the same run. `--large` is T2: the
same on ten times the rows. U1 is the noise of one promise, from 200 answers. U2 is T1's question on 200,000 rows.
"""

from __future__ import annotations

import argparse
import math
import resource
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import hubbub as hb
from benchmarks.peers import MissingPeer, run
from benchmarks.timing import best, machine, table

QUESTIONS = {
    "count, sum": "SELECT g, COUNT(*) AS n, SUM(v) AS s FROM t GROUP BY g",
    "count, mean": "SELECT g, COUNT(*) AS n, AVG(v) AS m FROM t GROUP BY g",
}
PLAIN = "SELECT count(*), sum(n), sum(s) FROM (SELECT u, g, count(*) AS n, sum(v) AS s FROM '{path}' GROUP BY u, g)"

# Groups are kept from the first on: OpenDP's sample of them names a column twice, which its own polars refuses.
OPENDP = """
import json, sys, time
import opendp.prelude as dp, polars as pl
dp.enable_features("contrib")
path, groups, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
start = time.perf_counter()
frame = pl.scan_parquet(path).with_columns(pl.col("g").cast(pl.Int64))
context = dp.Context.compositor(
    data=frame, privacy_unit=dp.unit_of(contributions=[
        dp.polars.Bound(by=[], per_group=50),
        dp.polars.Bound(by=["g"], per_group=10, num_groups=5)], identifier=pl.col("u")),
    privacy_loss=dp.loss_of(epsilon=1.0), split_evenly_over=1,
    margins=[dp.polars.Margin(by=["g"], max_length=rows, max_groups=groups)])
keys = pl.LazyFrame({"g": list(range(groups))}, schema={"g": pl.Int64})
bounded = context.query().truncate_per_group(10, by=["g"]).truncate_num_groups(5, by=["g"], keep="first")
answer = bounded.group_by("g").agg(
    dp.len(), pl.col("v").fill_null(0.0).fill_nan(0.0).dp.sum((0.0, 100.0))).with_keys(keys).release().collect()
assert answer.shape == (groups, 3)
print(json.dumps(time.perf_counter() - start))
"""


def make(path: Path, rows: int, units: int, groups: int) -> None:
    """A table of visits: unit u, group g, value v."""
    duckdb.sql(
        f"COPY (SELECT (hash(range) % {units})::BIGINT AS u, (hash(range + 7777777777) % {groups})::INTEGER AS g, "
        f"(hash(range * 3 + 5) % 10000)::DOUBLE / 100.0 AS v FROM range({rows})) TO '{path}' (FORMAT parquet)"
    )


def session(path: Path, groups: int) -> hb.Session:
    declared = hb.table(
        str(path),
        unit="u",
        max_groups=5,
        max_rows=10,
        columns={"g": hb.one_of(*range(groups)), "v": hb.between(0, 100, nullable=False)},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return hb.Session({"t": declared}, budget=hb.Budget(10**6), ledger=None)


def speed(folder: Path, rows: int, units: int, groups: int, name: str, *, rivals: bool) -> list[list[str]]:
    """Ours against the floor, in turns."""
    path = folder / f"{name}.parquet"
    make(path, rows, units, groups)
    connection = duckdb.connect()
    floors: list[float] = []
    ours: dict[str, list[float]] = {q: [] for q in QUESTIONS}
    with session(path, groups) as asked:
        for sql in QUESTIONS.values():
            asked.sql(sql, epsilon=1, fresh=True)
        for _ in range(3):
            floors.append(best(lambda: connection.execute(PLAIN.format(path=path)).fetchall(), repeats=1, warm=False))
            for q, sql in QUESTIONS.items():
                ours[q].append(best(lambda sql=sql: asked.sql(sql, epsilon=1, fresh=True), repeats=1, warm=False))
    floor = statistics.median(floors)
    found = [[f"{name} DuckDB pre-aggregation", f"{floor:.2f} s", ""]]
    for q, times in ours.items():
        middle = statistics.median(times)
        found.append([f"{name} hubbub, {q}", f"{middle:.2f} s", f"{middle / floor:.2f}x the floor"])
    if rivals:
        try:
            seconds = run("opendp", OPENDP, path, groups, rows)
            found.append([f"{name} OpenDP, count and sum", f"{seconds:.2f} s", f"{seconds / middle:.1f}x ours"])
        except MissingPeer as missing:
            found.append([f"{name} OpenDP", "-", str(missing)])
        except RuntimeError as failed:
            found.append([f"{name} OpenDP", "failed", str(failed).splitlines()[-1][:60]])
    path.unlink()
    return found


def noise() -> list[list[str]]:
    """U1: the spread of the answers of one promise, over 200 draws."""
    rng = np.random.default_rng(1)
    units = np.repeat(np.arange(3000), rng.integers(1, 9, 3000))
    frame = pa.table({"u": units, "g": rng.integers(0, 5, len(units)), "v": rng.uniform(0, 100, len(units))})
    declared = hb.table(
        frame,
        unit="u",
        max_groups=3,
        max_rows=2,
        columns={"g": hb.one_of(*range(5)), "v": hb.between(0, 100, nullable=False)},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        opened = hb.Session({"t": declared}, budget=hb.Budget(10**6), ledger=None)
    with opened as asked:
        sql = "SELECT g, COUNT(*) AS n, AVG(v) AS m FROM t GROUP BY g"
        drawn = [asked.sql(sql, epsilon=1, fresh=True).to_dict() for _ in range(200)]
        truth = asked.sql(sql, epsilon=10**5).to_dict()
    counts = np.array([d["n"] for d in drawn], float) - np.array(truth["n"], float)
    means = np.array([d["m"] for d in drawn], float) - np.array(truth["m"], float)
    spread = [math.sqrt(float((x**2).mean())) for x in (counts, means)]
    return [
        ["U1 count, root mean squared error", f"{spread[0]:.2f}", "target 12.2"],
        ["U1 mean, root mean squared error", f"{spread[1]:.3f}", "target .46"],
    ]


def small(folder: Path) -> list[list[str]]:
    """U2 and T3: the small table, warm; and `check`."""
    path = folder / "u2.parquet"
    make(path, 200_000, 20_000, 100)
    sql = QUESTIONS["count, mean"]
    with session(path, 100) as asked:
        answer = best(lambda: asked.sql(sql, epsilon=1, fresh=True), repeats=5)
        check = best(lambda: asked.check(sql, epsilon=1), repeats=20)
    return [
        ["U2 200,000 rows, Parquet to answer", f"{answer * 1e3:.0f} ms", "target 200 ms"],
        ["T3 check", f"{check * 1e3:.1f} ms", "target 30 ms"],
    ]


def main() -> int:
    """The command line of this module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=10, help="millions of rows for T1")
    parser.add_argument("--large", action="store_true", help="T2 too: ten times the rows")
    given = parser.parse_args()
    rows = int(given.rows * 1e6)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [*small(folder), *noise(), *speed(folder, rows, rows // 10, 100, "T1", rivals=True)]
        if given.large:
            lines += speed(folder, rows * 10, rows, 100, "T2", rivals=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(table(["what", "figure", ""], lines))
    print(f"peak memory {peak:.2f} GiB; {machine()}; {time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
