"""Durable charges per second, eight processes on one ledger, against SQLite's own floor: target B1.

python -m benchmarks.ledger

The floor is the least that is durable and exact: eight processes, each in a loop of BEGIN IMMEDIATE, one SELECT of the
sum, one INSERT, COMMIT, with a write-ahead log and synchronous=FULL. Ours adds the accounts, the filter and the chain.
The two take turns in the same run, on the same disk; the ratio of the medians counts. A third row is a charge's
whole life.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import hubbub.accounting  # noqa: F401  (the parent is warm: children import nothing)
from benchmarks.timing import machine, table
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Charge, Ledger

PROCESSES = 8
SECONDS = 3.0
ROUNDS = 5
SPACE = "patient_id"
BUDGET = {SPACE: Budget(10**6)}


def floor(path: Path, until: float) -> int:
    """The least: one durable row a transaction, with its running sum."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=60)
    connection.execute("PRAGMA synchronous = FULL")
    done = 0
    while time.monotonic() < until:
        connection.execute("BEGIN IMMEDIATE")
        row = connection.execute("SELECT spent FROM charge ORDER BY serial DESC LIMIT 1").fetchone()
        spent = (row[0] if row else 0) + 1
        connection.execute("INSERT INTO charge (spent, sql) VALUES (?, ?)", (spent, "SELECT COUNT(*) FROM visits"))
        connection.execute("COMMIT")
        done += 1
    connection.close()
    return done


def _charge(ledger: Ledger, number: int) -> str:
    return ledger.charges.charge(
        Charge(
            space=SPACE,
            dataset="visits",
            analyst="ada",
            question_key=f"{os.getpid()} {number}",
            sql="SELECT COUNT(*) FROM visits",
            epsilon=Fraction(1, 1000),
            event="{}",
            details="{}",
        )
    )


def charges(path: Path, until: float) -> int:
    """Ours: a charge."""
    done = 0
    with Ledger.open(path, budgets=BUDGET, patience=60, max_failures=10**9) as ledger:
        while time.monotonic() < until:
            _charge(ledger, done)
            done += 1
    return done


def lives(path: Path, until: float) -> int:
    """Ours: a charge, drawing, stored, shown; four durable steps."""
    done = 0
    with Ledger.open(path, budgets=BUDGET, patience=60, max_failures=10**9) as ledger:
        while time.monotonic() < until:
            charge = _charge(ledger, done)
            ledger.charges.advance(charge, "drawing")
            ledger.charges.store(charge, "answer")
            ledger.charges.advance(charge, "shown")
            done += 1
    return done


def rate(work: Callable[[Path, float], int], path: Path) -> float:
    """Operations per second of all processes together."""
    until = time.monotonic() + SECONDS
    read, write = os.pipe()
    children = []
    for _ in range(PROCESSES):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.write(write, f"{work(path, until)}\n".encode())
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        children.append(pid)
    os.close(write)
    failed = [pid for pid in children if os.waitpid(pid, 0)[1] != 0]
    with os.fdopen(read) as pipe:
        done = sum(map(int, pipe.read().split()))
    if failed:
        raise SystemExit(f"{len(failed)} processes failed")
    return done / SECONDS


def main() -> int:
    """0 if the target is met."""
    folder = Path(tempfile.mkdtemp(prefix="hubbub-bench-", dir=os.environ.get("HUBBUB_BENCH_DIR")))
    found: dict[str, list[float]] = {"SQLite floor": [], "hubbub, a charge": [], "hubbub, a whole life": []}
    charged, wrong = 0, []
    try:
        for turn in range(ROUNDS):
            found["SQLite floor"].append(rate(floor, _floor_file(folder / f"floor{turn}.db")))
            for name, work in (("hubbub, a charge", charges), ("hubbub, a whole life", lives)):
                path = folder / f"{name[8:]} {turn}.db"
                Ledger.open(path, budgets=BUDGET).close()
                found[name].append(rate(work, path))
                with Ledger.inspect(path) as ledger:
                    count, verified = len(ledger.record.history()), ledger.record.verify()
                    if ledger.balance.spent(SPACE) != count * Fraction(1, 1000) or count != round(
                        found[name][-1] * SECONDS
                    ):
                        wrong.append(f"{path.name}: lost or overspent")
                    wrong += verified.problems
                charged += count
    finally:
        shutil.rmtree(folder)
    base = statistics.median(found["SQLite floor"])
    rows = [
        (name, f"{statistics.median(rates):,.0f}", f"{min(rates):,.0f}..{max(rates):,.0f}",
         f"{statistics.median(rates) / base:.2f}")
        for name, rates in found.items()
    ]  # fmt: skip
    print(machine())
    print(f"{PROCESSES} processes, {SECONDS:g} s a turn, {ROUNDS} turns each; medians")
    print(table(("B1", "per second", "range", "ratio"), rows))
    print(f"{charged:,} charges in the ledgers; lost, overspent or out of the chain: {'; '.join(wrong) or 'none'}")
    reached = statistics.median(found["hubbub, a charge"]) / base
    print(f"B1: {reached:.0%} of the floor; the target is 50 %: {'met' if reached >= 0.5 else 'MISSED'}")
    return 0 if reached >= 0.5 and not wrong else 1


def _floor_file(path: Path) -> Path:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE charge (serial INTEGER PRIMARY KEY, spent INTEGER NOT NULL, sql TEXT NOT NULL)")
    connection.close()
    return path


if __name__ == "__main__":
    sys.exit(main())
