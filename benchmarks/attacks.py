"""Reconstruction (target K1) and the other figures that attacks are known by, beside what theory says.

python -m benchmarks.attacks
"""

from __future__ import annotations

import hashlib
import math
import time

import numpy as np

from benchmarks.timing import machine, table
from hubbub import attacks
from hubbub.noise import gaussian, uniform_below

N, M, RUNS = 100, 400, 40


def reconstruction() -> None:
    """K1: bits right of n = 100 from m = 4n subset counts with Gaussian noise, means of RUNS runs."""
    rows = []
    for factor in (0.1, 0.25, 1.0, 2.0):
        sigma, right, seconds = (
            factor * math.sqrt(N),
            {"least_squares": 0.0, "lp": 0.0},
            {"least_squares": 0.0, "lp": 0.0},
        )
        for _ in range(RUNS):
            truth, queries = uniform_below(2, N), attacks.random_subsets(M, N)
            answers = queries @ truth + gaussian(sigma=sigma, size=M)
            for method in ("least_squares", "lp"):
                start = time.perf_counter()
                right[method] += attacks.reconstruct(queries, answers, method=method, truth=truth).success / RUNS
                seconds[method] += (time.perf_counter() - start) / RUNS
        theory = attacks.least_squares_accuracy(N, M, sigma)
        target = {0.25: ">= .90", 2.0: "<= .65"}.get(factor, "")
        rows.append(
            (f"{factor} sqrt n", f"{right['least_squares']:.3f}", f"{theory:.3f}", f"{right['lp']:.3f}", target,
             f"{1e3 * seconds['least_squares']:.1f} ms", f"{1e3 * seconds['lp']:.0f} ms")
        )  # fmt: skip
    print("K1: reconstruction, n = 100, m = 400, share of bits right")
    print(table(("noise", "least squares", "theory", "LP", "target", "time", "time (LP)"), rows))


def hashes() -> None:
    """All 18,278,000 taxi medallions through MD5, beside hashlib one by one."""
    wanted = [hashlib.md5(t.encode()).hexdigest() for t in ("5X41", "SB042", "ZZZ999")]
    start = time.perf_counter()
    found = attacks.reverse_hashes(wanted)
    ours = time.perf_counter() - start
    texts = list(attacks.Format("XX999").texts())
    start = time.perf_counter()
    for text in texts:
        hashlib.md5(text).digest()
    one_by_one = (time.perf_counter() - start) * found.tried / len(texts)
    rows = [
        ("hubbub", f"{ours:.2f} s", f"{found.tried / ours / 1e6:.1f} M/s"),
        ("hashlib in a loop", f"{one_by_one:.2f} s", f"{found.tried / one_by_one / 1e6:.1f} M/s"),
    ]
    print(f"\nHash reversal: {len(found.found)} of {len(wanted)} medallions found; ratio {one_by_one / ours:.1f}")
    print(table(("", "18,278,000 medallions", ""), rows))


def others() -> None:
    """Overfitting, membership and averaging, one run each."""
    rows = []
    exact = attacks.overfit_holdout()
    reusable = attacks.Thresholdout(10_000, threshold="0.04", noise="0.001", overflows=20)
    kept = attacks.overfit_holdout(holdout=reusable)
    rows.append(("standard holdout, k = 500", f"{exact.reported[0]:.3f}", ".63"))
    rows.append(("Thresholdout", f"{kept.reported[0]:.3f}", ".50 +- .04"))
    labels = uniform_below(2, 4000)
    rows.append(("leaderboard, k = 1000", f"{attacks.overfit_leaderboard(labels, 1000).board:.3f}", ".656"))
    ladder = attacks.overfit_leaderboard(labels, 1000, board=attacks.Ladder()).board
    rows.append(("Ladder", f"{ladder:.3f}", ".517"))
    half = np.full(2500, 0.5)
    group, strangers = attacks.people(half, 100), attacks.people(half, 2000)
    found = attacks.find_members(
        np.concatenate([group, strangers]), group.mean(axis=0), half, members=np.arange(2100) < 100
    )
    rows.append(("membership, true positives at .01", f"{found.true_positives('0.01'):.3f}", ".99"))
    truth = uniform_below(2, 20_000)
    read = attacks.read_floats(attacks.float_laplace(truth.astype(float), 10), (0, 1), 10, truth=truth)
    rows.append(("float Laplace at epsilon .1: traced", f"{read.success:.3f}", f"> {read.ceiling('0.1'):.3f}"))
    print("\nOther figures")
    print(table(("attack", "measured", "known"), rows))


def main() -> None:
    """All of it, in seconds."""
    print(machine())
    reconstruction()
    hashes()
    others()


if __name__ == "__main__":
    main()
