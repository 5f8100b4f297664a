"""Bounds that are found in the charge, on real purchases: CDNOW, 69,659 rows of 23,570 customers, and their dollars.

    python -m benchmarks.bounds [--runs 1000]     a folder with cdnow_transactions.csv, in HUBBUB_DATA

For epsilon .1, .3 and 1: the root mean square error of the total, search and answer within the epsilon; the same for
the best power of two, known in advance; and from the laws, without a run, the chance that the bound lies more than
three doublings above the largest value's place, and more than two below the best one's.
"""

from __future__ import annotations

import argparse
import os
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.mechanisms.calibration import Spend
from hubbub.mechanisms.place_search import PLACES, PlaceSearch
from hubbub.noise import DiscreteLaplace
from hubbub.session.finding import SHARE
from hubbub.tables.measure import GRID_BITS

HERE = Path(__file__).parents[2] / "shared/data/cdnow"
EPSILONS = ("1/10", "3/10", "1")


def customers() -> dict[str, tuple[Any, int]]:
    """For each customer the number of rows, and dollars; each with a, the exponent of its first place."""
    path = Path(os.environ.get("HUBBUB_DATA", HERE)) / "cdnow_transactions.csv"
    rows: dict[str, list[float]] = {}
    for line in path.read_text().splitlines()[1:]:
        customer, *_, dollars = line.split(",")
        rows.setdefault(customer, []).append(float(dollars))
    return {
        "rows": (np.array([len(r) for r in rows.values()], float), 0),
        "dollars": (np.array([sum(r) for r in rows.values()]), -8),
    }


def places(values: Any, exponent: int) -> Any:
    """The place of each value."""
    steps = np.ceil(values * 2.0**-exponent)
    return np.where(steps <= 0, 0, np.minimum(np.ceil(np.log2(np.maximum(steps, 1))) + 1, PLACES - 1)).astype(int)


def measured(values: Any, exponent: int, epsilon: Fraction, runs: int) -> dict[str, float]:
    """What one total comes to."""
    search = PlaceSearch(Spend(epsilon=SHARE * epsilon))
    at = places(values, exponent)
    counts, total = np.bincount(at, minlength=PLACES).tolist(), float(values.sum())
    bounds = [2.0 ** (exponent + max(place, 1) - 1) for place in range(PLACES)]
    clipped = [float(np.minimum(values, bound).sum()) for bound in bounds]
    errors, missed = [], 0
    for _ in range(runs):
        place = search.found(search.release(counts))
        if place is None:
            missed += 1
            continue
        step = 1.0 if exponent == 0 else bounds[place] / 2**GRID_BITS
        law = DiscreteLaplace(Fraction(bounds[place] / step) / ((1 - SHARE) * epsilon))
        errors.append(clipped[place] - total + float(law.sample(1)[0]) * step)
    costs = [(c - total) ** 2 + 2 * (b / float(epsilon)) ** 2 for b, c in zip(bounds, clipped, strict=True)]
    best = int(np.argmin(costs))
    chances = search.chances(counts)
    relative = np.abs(errors) / total
    return {
        "rms": 100 * float(np.sqrt(np.mean(relative**2))),
        "best": 100 * float(np.sqrt(costs[best])) / total,
        "median": 100 * float(np.median(relative)),
        "beyond ten medians": float((relative > 10 * np.median(relative)).mean()),
        "above": float(chances[at.max() + 4 : PLACES].sum()),
        "below": float(chances[: best - 2].sum()),
        "none": missed / runs,
    }


def main() -> None:
    """Prints one line for each total and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    print("total    epsilon   rms %  best % median % > 10 medians    above    below")
    for name, (values, exponent) in customers().items():
        for epsilon in map(Fraction, EPSILONS):
            start = time.perf_counter()
            line = measured(values, exponent, epsilon, runs)
            print(
                f"{name:8} {float(epsilon):7g} {line['rms']:7.2f} {line['best']:7.2f} {line['median']:8.2f} "
                f"{line['beyond ten medians']:12.1e} {line['above']:8.1e} {line['below']:8.1e}   "
                f"{time.perf_counter() - start:.0f} s"
            )


if __name__ == "__main__":
    main()
