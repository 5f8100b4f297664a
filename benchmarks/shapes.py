"""Every shape of question against the engine's own plain work on the same rows: target T5.

python -m benchmarks.shapes [--rows MILLIONS] [--only WORD] [--repeats N] [--rivals [NAME ...]]

The floor of a shape is what DuckDB takes for the same bounded work without privacy, written by hand, in the same
process, from the same Parquet file, in turns with ours. Of each the shortest time counts, by the clock and by the
processors: other work on the machine lengthens the first more than the second. Memory is the most that the process
held while ours ran, beside that of the first shape, T1. With `--rivals`, the same questions are put to others too, on
as many rows as each can bear, beside ours on the same rows.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

import hubbub as hb
from benchmarks.shapes_rivals import MILLIONS, seconds
from benchmarks.timing import best, machine, table

GROUPS = 100
STEPS = range(0, 100, 5)


@dataclass(frozen=True)
class Shape:
    """A question of ours, its floor over the views t and tt, and the largest ratio that is good enough. key: what the
    rivals call it."""

    key: str
    name: str
    ours: str
    floor: str
    most: float = 1.25
    options: tuple[tuple[str, Any], ...] = ()


_PER_UNIT = (
    "SELECT grp, sum(c), sum(s) FROM (SELECT uid, grp, count(*) c, sum(value) s FROM {t} GROUP BY 1, 2) GROUP BY 1"
)
_MONTH = "extract(month FROM day)"
_TWENTY = ", ".join(f"sum(least(c{i}, 10))" for i in range(len(STEPS)))
_FILTERED = ", ".join(f"count(*) FILTER (WHERE value > {at}) c{i}" for i, at in enumerate(STEPS))
_TWENTY_OURS = ", ".join(f"SUM(CASE WHEN value > {at} THEN 1 ELSE 0 END) AS c{i}" for i, at in enumerate(STEPS))
_DELTA = (("private", True),)

SHAPES = (
    Shape(
        "T1",
        "count and mean by 100 groups (T1)",
        "SELECT grp, COUNT(*) AS n, AVG(value) AS m FROM t GROUP BY grp",
        _PER_UNIT.format(t="t"),
    ),
    Shape(
        "text",
        "the same, units named by text",
        "SELECT grp, COUNT(*) AS n, AVG(value) AS m FROM tt GROUP BY grp",
        _PER_UNIT.format(t="tt"),
    ),
    Shape(
        "count",
        "count of all",
        "SELECT COUNT(*) AS n FROM t",
        "SELECT sum(least(c, 10)) FROM (SELECT uid, count(*) c FROM t GROUP BY uid)",
    ),
    Shape(
        "people",
        "people by group",
        "SELECT grp, COUNT(DISTINCT uid) AS n FROM t GROUP BY grp",
        "SELECT grp, count(*) FROM (SELECT DISTINCT uid, grp FROM t) GROUP BY 1",
    ),
    Shape(
        "total",
        "total of each person, mean",
        "SELECT AVG(s) AS m FROM (SELECT uid, SUM(value) AS s FROM t GROUP BY uid) AS x WHERE s BETWEEN 0 AND 2000",
        "SELECT avg(least(s, 2000)) FROM (SELECT uid, sum(value) s FROM t GROUP BY uid)",
    ),
    Shape(
        "where",
        "WHERE and an expression",
        "SELECT grp, SUM(value * 2 + 1) AS s FROM t WHERE day >= DATE '2025-06-01' AND value > 10 GROUP BY grp",
        "SELECT grp, sum(s) FROM (SELECT uid, grp, sum(value * 2 + 1) s FROM t "
        "WHERE day >= DATE '2025-06-01' AND value > 10 GROUP BY 1, 2) GROUP BY 1",
    ),
    Shape(
        "months",
        "months by groups",
        "SELECT EXTRACT(month FROM day) AS mon, grp, COUNT(*) AS n FROM t GROUP BY mon, grp",
        f"SELECT m, grp, sum(c) FROM (SELECT uid, {_MONTH} m, grp, count(*) c FROM t GROUP BY 1, 2, 3) GROUP BY 1, 2",
    ),
    Shape(
        "moments",
        "variance and correlation",
        f"SELECT VARIANCE(value) AS v, CORR(value, {_MONTH}) AS c FROM t",
        f"SELECT sum(a), sum(b), sum(c), sum(d), sum(e) FROM (SELECT uid, sum(value) a, sum(value * value) b, "
        f"sum({_MONTH}) c, sum({_MONTH} * {_MONTH}) d, sum(value * {_MONTH}) e FROM t GROUP BY uid)",
    ),
    Shape(
        "twenty",
        "twenty sums",
        f"SELECT {_TWENTY_OURS} FROM t",
        f"SELECT {_TWENTY} FROM (SELECT uid, {_FILTERED} FROM t GROUP BY uid)",
    ),
    Shape(
        "found",
        "groups found privately",
        "SELECT day, COUNT(*) AS n FROM found GROUP BY day",
        "SELECT day, sum(least(c, 10)) FROM (SELECT uid, day, count(*) c FROM t GROUP BY 1, 2) GROUP BY 1",
        options=_DELTA,
    ),
    Shape(
        "median",
        "median by 100 groups",
        "SELECT grp, MEDIAN(value) AS m FROM t GROUP BY grp",
        "SELECT grp, quantile_cont(value, .5) FROM (SELECT grp, value, "
        "row_number() OVER (PARTITION BY uid, grp ORDER BY hash(value)) r FROM t) WHERE r <= 10 GROUP BY 1",
        0.8,
    ),
    Shape(
        "quantiles",
        "four quantiles of all",
        "SELECT "
        + ", ".join(f"QUANTILE_CONT(value, {q}) AS q{i}" for i, q in enumerate((0.1, 0.5, 0.9, 0.99)))
        + " FROM t",
        "SELECT quantile_cont(value, [.1, .5, .9, .99]) FROM (SELECT value, "
        "row_number() OVER (PARTITION BY uid ORDER BY hash(value)) r FROM t) WHERE r <= 10",
        0.8,
    ),
)


def make(path: Path, rows: int) -> None:
    """A table of visits: ten a person on average, a group of 100, a value, a day of one year."""
    duckdb.sql(
        f"COPY (SELECT (hash(range) % {max(1, rows // 10)})::BIGINT AS uid, "
        f"'g' || (hash(range + 7777777777) % {GROUPS}) AS grp, (hash(range * 3 + 5) % 10000)::DOUBLE / 100.0 AS value, "
        f"DATE '2025-01-01' + (hash(range + 99) % 365)::INTEGER AS day FROM range({rows})) "
        f"TO '{path}' (FORMAT parquet)"
    )


def made(path: Path, text: Path, rows: int) -> None:
    """The same table twice: units named by numbers, and by texts."""
    make(path, rows)
    duckdb.sql(f"COPY (SELECT * REPLACE (uid::VARCHAR AS uid) FROM '{path}') TO '{text}' (FORMAT parquet)")


def opened(path: Path, text: Path) -> tuple[hb.Session, hb.Session]:
    """Sessions for groups that are declared, and for those that are found."""
    columns = {
        "grp": hb.one_of(*(f"g{i}" for i in range(GROUPS))),
        "value": hb.between(0, 100, nullable=False),
        "day": hb.between("2025-01-01", "2025-12-31", nullable=False),
    }
    limits = {"unit": "uid", "max_groups": 5, "max_rows": 10, "max_total": 10}
    found = {name: what for name, what in columns.items() if name != "day"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        tables = {
            "t": hb.table(str(path), columns=columns, **limits),
            "tt": hb.table(str(text), columns=columns, **limits),
        }
        return (
            hb.Session(tables, budget=hb.Budget(10**6), ledger=None),
            hb.Session(
                {"found": hb.table(str(path), columns=found, **limits)},
                budget=hb.Budget(10**4, delta="1e-2"),
                ledger=None,
            ),
        )


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock and by the processors."""
    start, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - used


def forget_peak() -> None:
    """Let the most memory that was held be what is held now, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", "ascii")


def peak() -> float:
    """The most memory that was held, in GB."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text("ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def measured(folder: Path, rows: int, only: str, repeats: int) -> list[list[str]]:
    """A line for each shape."""
    path, text = folder / "t.parquet", folder / "tt.parquet"
    made(path, text, rows)
    plain = duckdb.connect()
    plain.execute(f"CREATE VIEW t AS FROM '{path}'; CREATE VIEW tt AS FROM '{text}'")
    plain.execute("SET threads = 2")
    declared, found = opened(path, text)
    lines = []
    first = None
    for shape in SHAPES:
        if only not in shape.name:
            continue
        session = found if dict(shape.options).get("private") else declared
        ours = lambda: session.sql(shape.ours, epsilon=1, fresh=True)  # noqa: B023, E731
        floor = lambda: plain.execute(shape.floor).fetchall()  # noqa: B023, E731
        floor(), ours()
        taken = []
        for _ in range(repeats):
            under = timed(floor)
            forget_peak()
            taken.append((under, timed(ours)))
            held = peak()
        first = first or held
        (wall, cpu), (own, own_cpu) = (tuple(min(t[i][j] for t in taken) for j in (0, 1)) for i in (0, 1))
        met = "" if own / wall <= shape.most else "over"
        ratios = f"{own / wall:.2f}", f"{own_cpu / cpu:.2f}", f"{shape.most}"
        lines.append(
            [shape.name, f"{wall:.2f}", f"{own:.2f}", *ratios, met, f"{held:.2f} GB", f"{held / first:.2f}"],
        )
        print("  ".join(lines[-1]), flush=True)
    declared.close()
    found.close()
    return lines


def beside(folder: Path, rivals: list[str], most: float, only: str) -> list[list[str]]:
    """A line for each shape and rival: its seconds and ours, on the same rows. most: millions of rows."""
    lines = []
    for millions in sorted({min(most, size) for name in rivals for size in MILLIONS[name]}):
        path, text = folder / f"{millions:g}.parquet", folder / f"{millions:g}t.parquet"
        made(path, text, int(millions * 1e6))
        declared, found = opened(path, text)
        for shape in SHAPES:
            session = found if dict(shape.options).get("private") else declared
            ours: float | None = None
            for name in rivals:
                if only not in shape.name or millions not in {min(most, size) for size in MILLIONS[name]}:
                    continue
                took, why = seconds(name, shape.key, text if shape.key == "text" else path, int(millions * 1e6))
                if took is not None and ours is None:
                    ours = best(lambda: session.sql(shape.ours, epsilon=1, fresh=True), repeats=3)  # noqa: B023
                given = (
                    ["", "", ""]
                    if took is None or ours is None
                    else [f"{took:.2f}", f"{ours:.2f}", f"{took / ours:.0f}x"]
                )
                lines.append([shape.name, name, f"{millions:g} M", *given, why])
                print("  ".join(lines[-1]), flush=True)
        declared.close()
        found.close()
    return lines


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=10.0, help="millions of rows")
    parser.add_argument("--only", default="", help="shapes whose names hold this")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rivals", nargs="*", choices=list(MILLIONS), help="these, or all; see benchmarks.peers")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = measured(Path(folder), int(asked.rows * 1e6), asked.only, asked.repeats)
        others = [] if asked.rivals is None else asked.rivals or list(MILLIONS)
        theirs = beside(Path(folder), others, asked.rows, asked.only)
    print(f"\n{machine()}; {asked.rows:g} M rows, seconds\n")
    head = ["shape", "floor", "ours", "ratio", "by CPU", "at most", "", "memory", "of T1's"]
    print(table(head, lines))
    if theirs:
        print(f"\n{table(['shape', 'rival', 'rows', 'seconds', 'ours', 'ratio', ''], theirs)}")


if __name__ == "__main__":
    main()
