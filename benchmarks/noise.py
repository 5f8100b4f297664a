"""Exact noise against OpenDP, diffprivlib and numpy's insecure floats: targets N1, N2, N3.

python -m benchmarks.noise
"""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np

from benchmarks import peers
from benchmarks.timing import best, each, machine, table
from hubbub import noise
from hubbub.noise.tables import gaussian_table, laplace_table

N = 1_000_000
SCALES = (0.1, 1, 10, 100, 127, 128, 1000, 10**6, 10**9, 2**53)

OPENDP = """
import json, sys, time
import opendp.prelude as dp
dp.enable_features("contrib")
n, calls = 30_000, 2000
space = dp.vector_domain(dp.atom_domain(T=int))
out = {}
for name, metric, then in (("laplace", dp.l1_distance(T=int), dp.m.then_laplace),
                           ("gaussian", dp.l2_distance(T=float), dp.m.then_gaussian)):
    for scale in json.loads(sys.argv[1]):
        work = (space, metric) >> then(scale=float(scale))
        data = [0] * n
        times = []
        for _ in range(5):
            start = time.perf_counter()
            work(data)
            times.append(time.perf_counter() - start)
        out[f"{name} {scale}"] = n / min(times)
one = (dp.atom_domain(T=int), dp.absolute_distance(T=int)) >> dp.m.then_laplace(scale=10.0)
start = time.perf_counter()
for _ in range(calls):
    one(0)
out["one"] = (time.perf_counter() - start) / calls
print(json.dumps(out))
"""

DIFFPRIVLIB = """
import json, time
from diffprivlib.mechanisms import Geometric, Laplace
out = {}
for name, mechanism, zero in (("geometric", Geometric(epsilon=0.1, sensitivity=1), 0),
                              ("laplace", Laplace(epsilon=0.1, sensitivity=1), 0.0)):
    start = time.perf_counter()
    for _ in range(20_000):
        mechanism.randomise(zero)
    out[name] = (time.perf_counter() - start) / 20_000
print(json.dumps(out))
"""


def _rival(name: str, code: str, *arguments: object) -> dict[str, float]:
    try:
        return dict(peers.run(name, code, *arguments))
    except peers.MissingPeer as missing:
        print(f"({missing})")
        return {}


def _millions(rate: float | None) -> str:
    return "-" if rate is None else f"{rate / 1e6:.4g}"


def _times(ours: float, rival: float | None) -> str:
    return "-" if rival is None else f"{ours / rival:.3g}x"


def bulk(opendp: dict[str, float], floor: float) -> None:
    """N1, N2: a million draws."""
    rows = []
    laws = (("laplace", noise.laplace, False), ("gaussian", noise.gaussian, True))
    for name, draw, normal in laws:
        for scale in SCALES:
            fast = N / best(lambda d=draw, b=scale: d(b, N), repeats=25)
            # A source of bits that is passed is used in one thread.
            alone = N / best(lambda d=draw, b=scale: d(b, N, bits=noise.system_bits()), repeats=15)
            hardened = N / best(lambda d=draw, b=scale: d(b, N, mode="hardened"), repeats=3)
            build = best(
                lambda b=scale, g=normal: (
                    gaussian_table(Fraction(b) ** 2) if g else laplace_table(Fraction(b), two_sided=True)
                ),
                repeats=3,
            )
            theirs = opendp.get(f"{name} {scale}")
            rows.append(
                [
                    f"{name} {'2^53' if scale == 2**53 else format(scale, 'g')}",
                    _millions(fast),
                    _times(fast, floor),
                    _millions(theirs),
                    _times(fast, theirs),
                    _millions(alone),
                    _millions(hardened),
                    f"{build * 1e3:.1f}",
                ]
            )
    head = ["1e6 exact draws", "M/s", "/ numpy", "OpenDP M/s", "/ OpenDP", "1 thread M/s", "hardened M/s", "table ms"]
    print(table(head, rows))
    print(f"numpy float Laplace (insecure), scale 10: {floor / 1e6:.1f} M/s")


def cells() -> None:
    """A scale for every cell, and the other draws."""
    scales = np.random.default_rng(1).uniform(0.1, 1e6, N)
    shares = np.random.default_rng(2).uniform(0, 1, N)
    work = {
        "laplace, a scale per cell": lambda: noise.laplace(scales),
        "gaussian, a sigma per cell": lambda: noise.gaussian(scales),
        "geometric 10": lambda: noise.geometric(10, N),
        "bernoulli 1/3": lambda: noise.bernoulli(Fraction(1, 3), N),
        "bernoulli, p per cell": lambda: noise.bernoulli(shares),
        "bernoulli_exp 1": lambda: noise.bernoulli_exp(1, N),
        "uniform_below 1000": lambda: noise.uniform_below(1000, N),
        "choice of 16": lambda: noise.choice(list(range(1, 17)), N),
    }
    rows = [[name, _millions(N / best(run, repeats=3))] for name, run in work.items()]
    print(table(["1e6 draws", "M/s"], rows))


def few(opendp: dict[str, float], diffprivlib: dict[str, float]) -> None:
    """N3: one draw, a few dozen, and the first of a scale never seen."""
    rows = []
    fresh = iter(range(10**9))
    for name, draw in (("laplace", noise.laplace), ("gaussian", noise.gaussian)):
        for scale in (10, 10**6):
            new = each(lambda d=draw, b=scale: d(b + Fraction(next(fresh), 7**20), 32), calls=500)
            rows.append(
                [
                    f"{name} {scale:g}",
                    f"{each(lambda d=draw, b=scale: d(b)) * 1e6:.1f}",
                    f"{each(lambda d=draw, b=scale: d(b, 32)) * 1e6:.1f}",
                    f"{new * 1e6:.1f}",
                ]
            )
    print(table(["microseconds", "one draw", "32 draws", "32, new scale"], rows))
    if opendp:
        print(f"OpenDP, one draw: {opendp['one'] * 1e6:.0f} us")
    for name, seconds in diffprivlib.items():
        print(f"diffprivlib {name}, one draw: {seconds * 1e6:.1f} us")


def main() -> None:
    """Print everything."""
    print(machine())
    generator = np.random.default_rng()
    start = time.perf_counter()
    opendp = _rival("opendp", OPENDP, str(list(SCALES)))
    diffprivlib = _rival("diffprivlib", DIFFPRIVLIB)
    floor = N / best(lambda: generator.laplace(0, 10, N), repeats=15)
    bulk(opendp, floor)
    print()
    cells()
    print()
    few(opendp, diffprivlib)
    print(f"({time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
