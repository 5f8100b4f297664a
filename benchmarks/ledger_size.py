"""What a charge costs in a ledger of many entries: as at 10^3, so at 10^6.

python -m benchmarks.ledger_size [LARGEST]

A ledger is filled with copies of one charge and its steps, written past the ledger's own door, which only `verify`
would notice; then charges are made through the door, in turns at each size. Each charge's row holds the sums of its
accounts, so a charge reads the last row of each, whatever stands before it; opening reads the head and what is under
way.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

from benchmarks.ledger import BUDGET, SPACE, _charge
from benchmarks.timing import machine, table
from hubbub.ledger.store import Ledger

CHARGES = 40
ROUNDS = 5
LEAST = Fraction(1, 10**6)
MOST_RATIO = 1.5


def fill(path: Path, size: int) -> None:
    """A ledger of `size` charges, each with its release and three steps."""
    with Ledger.open(path, budgets=BUDGET) as ledger:
        life(ledger, 0)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    last = connection.execute("SELECT max(serial) FROM journal").fetchone()[0]
    first = connection.execute("SELECT max(serial) FROM charge").fetchone()[0]
    # A step of `each` serials for each copy, so that a life's rows keep their order.
    each = last - first + 1
    count = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {size - 1})"
    connection.execute("BEGIN")
    shift = {"charge": ("serial", "id", "question_key"), "step": ("serial", "charge"), "release": ("serial", "charge")}
    for kind, moved in shift.items():
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({kind})")]
        wanted = ", ".join(
            f"t.{c}" if c not in moved else f"t.{c} + i * {each}" if c in ("serial", "charge") else f"t.{c} || ' ' || i"
            for c in columns
        )
        connection.execute(f"{count} INSERT INTO {kind} SELECT {wanted} FROM {kind} AS t, n WHERE t.serial >= {first}")
    connection.execute(
        f"{count} INSERT INTO journal SELECT serial + i * {each}, time, kind, hash FROM journal, n "
        f"WHERE serial >= {first}"
    )
    connection.execute(f"UPDATE account SET charge = charge + {(size - 1) * each}")
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def life(ledger: Ledger, number: int) -> float:
    """A charge and its steps; the seconds of the charge alone."""
    start = time.perf_counter()
    charge = _charge(ledger, number)
    took = time.perf_counter() - start
    ledger.charges.advance(charge, "drawing")
    ledger.charges.store(charge, "answer")
    ledger.charges.advance(charge, "shown")
    return took


def measured(path: Path, turn: int) -> tuple[float, float, float, float]:
    """Milliseconds: opening; the median charge; the median whole life; the median look for a stored answer."""
    start = time.perf_counter()
    with Ledger.open(path, budgets=BUDGET) as ledger:
        opened = time.perf_counter() - start
        alone, whole, asked = [], [], []
        for number in range(1 + turn * CHARGES, 1 + (turn + 1) * CHARGES):
            start = time.perf_counter()
            alone.append(life(ledger, number))
            whole.append(time.perf_counter() - start)
            start = time.perf_counter()
            ledger.record.find_release(
                space=SPACE, question_key=f"{os.getpid()} {number}", at_least=LEAST, reader="ada"
            )
            asked.append(time.perf_counter() - start)
    return 1000 * opened, *(1000 * statistics.median(each) for each in (alone, whole, asked))


def main(largest: int = 10**6) -> int:
    """0 if a charge at the largest size takes at most 1.5 times as long as at 10^3."""
    folder = Path(tempfile.mkdtemp(prefix="hubbub-bench-", dir=os.environ.get("HUBBUB_BENCH_DIR")))
    sizes = [size for size in (10**3, 10**4, 10**5, 10**6) if size <= largest]
    paths = [folder / f"{size}.db" for size in sizes]
    times: list[list[tuple[float, ...]]] = [[] for _ in sizes]
    try:
        for size, path in zip(sizes, paths, strict=True):
            fill(path, size)
        bytes_each = [path.stat().st_size for path in paths]
        for turn in range(ROUNDS):
            for at, path in enumerate(paths):
                times[at].append(measured(path, turn))
    finally:
        shutil.rmtree(folder)
    rows = [
        (size, whole, *(statistics.median(column) for column in zip(*each, strict=True)))
        for size, whole, each in zip(sizes, bytes_each, times, strict=True)
    ]
    print(machine())
    shown = [(f"{n:,}", f"{size / 2**20:,.0f}", *(f"{ms:.2f}" for ms in times)) for n, size, *times in rows]
    print(table(("charges", "MiB", "open, ms", "charge, ms", "whole life, ms", "stored?, ms"), shown))
    ratio = rows[-1][3] / rows[0][3]
    print(f"a charge at {sizes[-1]:,} takes {ratio:.2f} times as long as at {sizes[0]:,}: at most {MOST_RATIO} asked")
    return 0 if ratio <= MOST_RATIO else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
