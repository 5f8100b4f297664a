"""Best-of timing and plain tables, shared by the benchmarks."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence


def best(work: Callable[[], object], *, repeats: int = 7, warm: bool = True) -> float:
    """The shortest wall time of `repeats` runs, in seconds; the least disturbed one."""
    if warm:
        work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def each(work: Callable[[], object], *, calls: int = 2000, repeats: int = 5) -> float:
    """Seconds per call of something too short to time alone."""

    def many() -> None:
        for _ in range(calls):
            work()

    return best(many, repeats=repeats) / calls


def machine() -> str:
    """One line on where the figures were taken."""
    return f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, {platform.system()}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned text: the first column to the left, the others to the right."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )
