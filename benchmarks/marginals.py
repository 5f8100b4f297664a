"""Marginals and ranges: targets W1 and W4; many queries: each way's error seen beside its promise, and the crossover.

python -m benchmarks.marginals [w1] [w4] [many] [picture FILE]

W1's floor is the singular-value bound (Li, Miklau 2013), from eigenvalues in closed form; its rivals are independent
Gaussian answers. W4's rival figures are those HDMM reaches (3.065 for prefixes, 3.568 for all ranges, 26 to 141 s).
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np

from benchmarks.timing import best, machine, table
from hubbub.queries import Ranges, Thresholds
from hubbub.synthesis import Domain, all_marginals, observe, plan_marginals, plan_ranges, promises
from hubbub.synthesis.residuals import subsets

DATA = Path(__file__).resolve().parents[2] / "shared/data"
SEEDS = 5


def w1() -> None:
    """All k-way marginals of Adult's 14 columns, per unit of budget (rho 1/2)."""
    path = DATA / "adult/adult_mbi-domain.json"
    if not path.exists():
        print("W1 needs the shared data folder, which is not here.")
        return
    sizes = json.loads(path.read_text())
    domain = Domain(tuple(sizes), tuple(sizes.values()))
    codes = np.loadtxt(path.with_name("adult_mbi_discretized.csv"), delimiter=",", skiprows=1, dtype=np.int64)
    lines = []
    for ways in ((1,), (2,), (3,), (1, 2, 3)):
        asked = all_marginals(domain, *ways)
        plan = plan_marginals(domain, asked, rho="1/2")
        seconds = best(lambda asked=asked: plan_marginals(domain, asked, rho="1/2"))
        cells = sum(map(domain.cells, asked))
        mass: dict[tuple[str, ...], float] = {}
        for m in asked:
            for b in subsets(m):
                mass[b] = mass.get(b, 0.0) + 1 / domain.cells(m)
        nuclear = sum(math.sqrt(v) * math.prod(n - 1 for n in domain.shape(b)) for b, v in mass.items())
        floor, rival = nuclear / math.sqrt(cells), math.sqrt(len(asked))
        name = ", ".join(map(str, ways)) + "-way"
        ours = plan.rmse()
        lines.append([
            name, f"{cells:,}", f"{floor:.4f}", f"{ours:.4f}", f"{ours / floor:.5f}", f"{rival / ours:.2f}x",
            f"{1e3 * seconds:.1f} ms",
        ])  # fmt: skip
    print(table(["W1 Adult", "cells", "bound", "ours", "ratio", "independent", "plan"], lines))
    plan = plan_marginals(domain, all_marginals(domain, 2), rho="1/2")
    errors = []
    for _ in range(SEEDS):
        release = plan.release(codes)
        squares = sum(((release.table(m) - domain.count(codes, m)) ** 2).sum() for m in plan.marginals)
        errors.append(math.sqrt(squares / sum(map(domain.cells, plan.marginals))))
    spread = f"{np.mean(errors):.4f} +- {np.std(errors):.4f}"
    print(f"2-way, {SEEDS} releases: root mean squared error {spread}; planned {plan.rmse():.4f}")
    print(f"one release: {best(lambda: plan.release(codes), repeats=3):.2f} s")


def w4() -> None:
    """Prefixes and all ranges of 1024 values at sensitivity 1 and sigma 1 (rho 1/2)."""
    lines = []
    for name, workload, rival in (("prefixes", Thresholds(1024), 3.065), ("all ranges", Ranges(1024), 3.568)):
        plan = plan_ranges(workload, rho="1/2")
        assert plan.bound is not None
        seconds = best(lambda w=workload: plan_ranges(w, rho="1/2"), repeats=3)
        tree = plan_ranges(workload, rho="1/2", method="hierarchy")
        lines.append([
            name, f"{plan.bound:.4f}", f"{plan.rmse:.4f}", f"{plan.rmse / plan.bound:.4f}", f"{plan.rmse / rival:.4f}",
            f"{tree.rmse:.3f}", f"{seconds:.2f} s",
        ])  # fmt: skip
    print(table(["W4, 1024 values", "bound", "ours", "to bound", "to HDMM", "hierarchy", "plan"], lines))


def many() -> None:
    """Largest error of a share, seen (five runs) and promised, on a table of little variety."""
    lines = []
    for name, workload, n in (("16 thresholds", Thresholds(16), 20_000), ("32,896 ranges", Ranges(256), 20_000)):
        rows = np.minimum(workload.values - 1, np.arange(n) % 997 * workload.values // 2000)
        runs = [observe(workload, rows, epsilon=1, delta="1e-9", small_rows=6) for _ in range(SEEDS)]
        for way in runs[0]:
            seen = [run[way][0] for run in runs]
            promised = min(1.0, runs[0][way][1])
            lines.append([f"{name}: {way}", f"{np.mean(seen):.4f}", f"{np.std(seen):.4f}", f"{promised:.4f}"])
    print(table(["n = 20,000, (1, 1e-9)", "seen", "spread", "promised"], lines))


def picture(path: str) -> None:
    """The crossover at n = 10,000, 1024 possible rows, (1, 1e-9)."""
    ks = [round(10 ** (i / 3)) for i in range(31)]
    drawn = promises(n=10_000, universe=1024, queries=sorted(set(ks)), epsilon=1, delta="1e-9").draw()
    drawn.figure.savefig(path)
    print(f"wrote {path}")


def main() -> None:
    """What was asked, or all but the picture."""
    asked = sys.argv[1:]
    print(machine())
    for name, work in (("w1", w1), ("w4", w4), ("many", many)):
        if not asked or name in asked:
            work()
    if "picture" in asked:
        picture(asked[asked.index("picture") + 1])


if __name__ == "__main__":
    main()
