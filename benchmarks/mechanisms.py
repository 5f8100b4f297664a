"""Quantiles against OpenDP and diffprivlib (target W5), and the time of one draw of every mechanism.

python -m benchmarks.mechanisms
"""

from __future__ import annotations

import time
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import peers
from benchmarks.timing import each, machine, table
from hubbub.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    KNormMechanism,
    LaplaceMechanism,
    NoisyMax,
    PermuteAndFlip,
    Polytope,
    QuantileMechanism,
    RandomizedResponse,
    SparseVector,
    StaircaseMechanism,
    rank_error,
)
from hubbub.noise import Grid

TABLES, ROWS, EPSILON = 40, 1000, 1
SHARES = [Fraction(i, 30) for i in range(1, 30)]

# The same tables in every process: a seeded numpy stream, values in [0, 1].
DATA = """
import numpy as np
def tables(kind, count, rows):
    out = []
    for seed in range(count):
        g = np.random.default_rng(seed)
        x = {"uniform": lambda: g.uniform(0, 1, rows), "normal": lambda: g.normal(.5, .1, rows),
             "skewed": lambda: g.lognormal(-3, 1, rows)}[kind]()
        out.append(np.clip(x, 0, 1))
    return out
"""
KINDS = ("uniform", "normal", "skewed")

OPENDP = (
    DATA
    + """
import json, sys, time
import opendp.prelude as dp
dp.enable_features("contrib")
count, rows, m = map(int, sys.argv[1:4])
space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
grid = [i / 1024 for i in range(1025)]
def one(alpha):
    build = lambda scale: space >> dp.m.then_private_quantile(dp.max_divergence(), candidates=grid, alpha=alpha,
                                                              scale=scale)
    return build(dp.binary_search_param(build, d_in=1, d_out=1 / m))
asked = [one(i / (m + 1)) for i in range(1, m + 1)]
out, start = {}, time.perf_counter()
for kind in ("uniform", "normal", "skewed"):
    out[kind] = [[q(x.tolist()) for q in asked] for x in tables(kind, count, rows)]
out["seconds"] = (time.perf_counter() - start) / (3 * count)
print(json.dumps(out))
"""
)

DIFFPRIVLIB = (
    DATA
    + """
import json, sys, time, warnings
from diffprivlib.tools import quantile
warnings.simplefilter("ignore")
count, rows, m = map(int, sys.argv[1:4])
shares = [i / (m + 1) for i in range(1, m + 1)]
out, start = {}, time.perf_counter()
for kind in ("uniform", "normal", "skewed"):
    data = tables(kind, count, rows)
    out[kind] = [[float(quantile(x, s, epsilon=1 / m, bounds=(0, 1))) for s in shares] for x in data]
out["seconds"] = (time.perf_counter() - start) / (3 * count)
print(json.dumps(out))
"""
)


def _tables(kind: str) -> list[NDArray[np.float64]]:
    scope: dict[str, Any] = {}
    exec(DATA, scope)
    return list(scope["tables"](kind, TABLES, ROWS))


def _ours(shares: list[Fraction], epsilon: Fraction) -> tuple[dict[str, list[Any]], float]:
    mechanism = QuantileMechanism(shares=shares, lower=0, upper=1, epsilon=epsilon, grid=Grid(-20))
    start = time.perf_counter()
    found = {kind: [mechanism.release(rows) for rows in _tables(kind)] for kind in KINDS}
    return found, (time.perf_counter() - start) / (len(KINDS) * TABLES)


def _one_by_one() -> tuple[dict[str, list[Any]], float]:
    parts = [_ours([share], Fraction(EPSILON, len(SHARES))) for share in SHARES]
    found = {kind: [[p[0][kind][t][0] for p in parts] for t in range(TABLES)] for kind in KINDS}
    return found, sum(p[1] for p in parts)


def quantiles() -> None:
    """W5: 29 quantiles of 1000 rows at epsilon 1; the error is the mean over quantiles, and the largest of them."""
    makers: dict[str, Any] = {
        "hubbub": lambda: _ours(SHARES, Fraction(EPSILON)),
        "hubbub, one by one": _one_by_one,
    }
    for name, code in (("opendp", OPENDP), ("diffprivlib", DIFFPRIVLIB)):
        makers[f"{name}, one by one"] = lambda name=name, code=code: _peer(name, code)
    rows = []
    for name, make in makers.items():
        try:
            found, seconds = make()
        except peers.MissingPeer as missing:
            print(f"({missing})")
            continue
        cells = []
        for kind in KINDS:
            errors = [rank_error(x, y, SHARES) for x, y in zip(_tables(kind), found[kind], strict=True)]
            cells += [f"{np.mean(errors):.4f}", f"{np.mean([e.max() for e in errors]):.4f}"]
        rows.append([name, *cells, f"{seconds * 1e3:.1f}"])
    head = ["29 quantiles, n = 1000, eps 1"]
    print(table([*head, *(f"{kind} {what}" for kind in KINDS for what in ("mean", "worst")), "ms"], rows))
    print("rank error as a share of the rows; target W5: mean <= .018")


def _peer(name: str, code: str) -> tuple[dict[str, list[Any]], float]:
    out = peers.run(name, code, TABLES, ROWS, len(SHARES))
    return out, out["seconds"]


def draws() -> None:
    """Microseconds for one release."""
    scores = list(range(1000))
    truths = np.zeros(1_000_000, np.bool_)
    square = Polytope.of([[1, 1], [1, 0], [0, 1]])
    values = [0] * 100
    cube, ball = (KNormMechanism(norm=n, sensitivity=1, cells=10, epsilon=1) for n in ("linf", "l2"))
    sparse = SparseVector(epsilon=1, positives=3, sensitivity=1)
    work: dict[str, tuple[Any, int]] = {
        "Laplace, one": (partial(LaplaceMechanism(sensitivity=1, epsilon=1).release, 5), 500),
        "Gaussian, one": (partial(GaussianMechanism(sensitivity=1, rho="1/8").release, 5), 500),
        "staircase, one": (partial(StaircaseMechanism(sensitivity=50, epsilon=3).release, 5), 200),
        "exponential, 1000 scores": (partial(ExponentialMechanism(epsilon=1, sensitivity=1).release, scores), 100),
        "permute-and-flip, 1000 scores": (partial(PermuteAndFlip(epsilon=1, sensitivity=1).release, scores), 20),
        "noisy max, 1000 scores": (partial(NoisyMax(epsilon=1, sensitivity=1).release, scores), 100),
        "sparse vector, 100 questions": (partial(sparse.release, values, threshold=10**4), 20),
        "K-norm l-infinity, 10 cells": (cube.noise, 50),
        "K-norm l2, 10 cells": (ball.noise, 10),
        "K-norm polytope, 2 cells": (KNormMechanism(norm=square, sensitivity=1, cells=2, epsilon=1).noise, 20),
        "randomised response, 1e6 people": (partial(RandomizedResponse(epsilon=1).release, truths), 1),
    }
    rows = [[name, f"{each(run, calls=calls, repeats=3) * 1e6:.0f}"] for name, (run, calls) in work.items()]
    print(table(["one release", "microseconds"], rows))


def main() -> None:
    """Print everything."""
    print(machine())
    quantiles()
    print()
    draws()


if __name__ == "__main__":
    main()
