"""Broken mechanisms whose law is known exactly, and the best bound that anybody could have shown on them.

Each comes with the kind of its evidence and its law as masses of cells, on D and on D': by enumeration, from the
distribution function, or by quadrature. Cells lie within level sets of the log-likelihood ratio, up to the width of the
quadrature, so that their order by it is that of Neyman and Pearson: `ideal` takes the first cells of that order
which promise most.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv
from scipy.stats import chi2

from audit.zoo import BROKEN, EPSILON, Case

Floats = NDArray[np.float64]
Law = tuple[Floats, Floats]

E = EPSILON


@dataclass(frozen=True)
class Graded:
    """A broken mechanism, the kind of its evidence, its law on D and D', and whether it was known before."""

    kind: str
    case: Case
    law: Callable[[], Law]
    known: bool = False


def ideal(law: Law, n: int, *, confidence: float, delta: float = 0.0, ratio: bool = False) -> float:
    """The bound that the best event shows if n outputs of each side are counted and hits are as many as expected.

    By Clopper and Pearson at half of 1 - confidence each; with `ratio`, by the test of the ratio of two Poisson means.
    Both directions are tried, and the better one is given.
    """
    return max(_ideal(*sides, n, 1 - confidence, delta, ratio) for sides in (law, law[::-1]))


def _ideal(p: Floats, q: Floats, n: int, alpha: float, delta: float, ratio: bool) -> float:
    p, q = p.ravel(), q.ravel()
    some = p > 0
    p, q = p[some], q[some]
    with np.errstate(divide="ignore"):
        order = np.argsort(np.log(q) - np.log(p), kind="stable")
    a, b = np.cumsum(p[order]), np.cumsum(q[order])
    # Cells enough for every size of event, however fine the law is.
    at = np.unique(np.searchsorted(a, np.geomspace(max(a[0], 0.5 / n), a[-1], 4000)).clip(0, a.size - 1))
    k, other = n * a[at].clip(0, 1), n * b[at].clip(0, 1)
    if ratio:
        share = betaincinv(k, other + 1, alpha)
        return float(np.max(np.log(share) - np.log1p(-share)))
    low = betaincinv(k, np.maximum(n - k, 0) + 1, alpha / 2)
    high = np.where(other >= n, 1.0, betaincinv(other + 1, np.maximum(n - other, 1e-300), 1 - alpha / 2))
    return float(np.max(np.log(np.maximum(low - delta, 1e-300) / high)))


def F(x: Any, scale: float) -> Floats:
    """The distribution function of Laplace noise."""
    tail = 0.5 * np.exp(-np.abs(x) / scale)
    return np.where(np.asarray(x) < 0, tail, 1 - tail)


def between(cdf: Callable[[Floats], Floats], edges: Floats) -> Floats:
    """Masses between edges, and beyond both ends."""
    return np.diff(np.concatenate([[0.0], cdf(edges), [1.0]]))


def of_columns(p: Floats, q: Floats, count: int, step: float = 2e-3) -> Law:
    """The law of `count` independent columns, each with cells p on D and q on D', by the sum of log-ratios.

    Sums are binned at `step`, which mixes events whose ratios differ by it.
    """
    place = np.rint(np.log(p / q) / step).astype(np.int64)
    low = place.min()
    one = [np.bincount(place - low, w) for w in (p, q)]
    out = [one[0], one[1]]
    for _ in range(count - 1):
        out = [np.convolve(a, b) for a, b in zip(out, one, strict=True)]
    return out[0], out[1]


LINE = np.linspace(-400, 400, 800_001)


def late_value(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """Sparse vector at 1/2 that gives the place of the first Yes and the noisy value itself."""

    def run(data: Any, n: int) -> Any:
        bar = 1 + g.laplace(0, 4, (n, 1))
        noisy = np.asarray(data, float) + g.laplace(0, 8, (n, len(data)))
        above = noisy >= bar
        some, first = above.any(axis=1), above.argmax(axis=1)
        return np.c_[np.where(some, first, -1), np.where(some, noisy[np.arange(n), first], -1e9)]

    return run


def late_value_law() -> Law:
    step, queries = 0.05, 40
    t = np.arange(-80, 160, step) + step / 2
    v = t + step / 2
    bar = np.exp(-np.abs(t - 1) / 4) / 8 * step

    def on(x: float) -> Floats:
        value = np.exp(-np.abs(v - x) / 8) / 16 * step
        parts = [value * np.cumsum(bar * F(t - x, 8) ** i) for i in range(queries)]
        return np.concatenate([*parts, [(bar * F(t - x, 8) ** queries).sum()]])

    return on(0.0), on(1.0)


def largest_law(cdf: Callable[[Floats], Floats]) -> Law:
    """The largest of five."""
    return between(lambda x: cdf(x) ** 5, LINE), between(lambda x: cdf(x - 1) ** 5, LINE)


def exponential(x: Floats) -> Floats:
    return np.where(x > 0, -np.expm1(-np.maximum(x, 0) / (2 / E)), 0.0)


def first_yes_law() -> Law:
    """Sparse vector 4: which answer is the first Yes."""
    t = (np.arange(-400_000, 400_000) + 0.5) / 100
    bar = np.exp(-np.abs(t) * E / 4) * E / 8 / 100

    def on(data: list[int]) -> Floats:
        left, out = bar, []
        for x in data:
            below = F(t - x, 4 / (3 * E))
            out.append(float((left * (1 - below)).sum()))
            left = left * below
        return np.array([*out, float(left.sum())])

    return on([0] * 10 + [-5]), on([1] * 10 + [-6])


def no_end_law() -> Law:
    """Sparse vector 6: how many of the first five and of the last five are above."""
    t = (np.arange(-400_000, 400_000) + 0.5) / 500
    bar = np.exp(-np.abs(t) * E / 2) * E / 4 / 500
    ways = [math.comb(5, k) for k in range(6)]

    def on(first: float, last: float) -> Floats:
        a, b = F(t - first, 2 / E), F(t - last, 2 / E)
        ones = [a ** (5 - k) * (1 - a) ** k * ways[k] for k in range(6)]
        twos = [b ** (5 - k) * (1 - b) ** k * ways[k] for k in range(6)]
        return np.array([(bar * x * y).sum() for x in ones for y in twos])

    return on(0, 0), on(1, -1)


def moved_columns_law(count: int, scale: float, move: float = 1.0) -> Law:
    edges = np.linspace(-12 * scale, 12 * scale + move, 4001)
    return of_columns(between(lambda x: F(x, scale), edges), between(lambda x: F(x - move, scale), edges), count)


def week(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """Counts of 28 days; whoever comes on seven of them is protected as if on one."""

    def run(days: Any, n: int) -> Any:
        counts = np.zeros(28)
        counts[list(days)] = 1
        return counts + g.laplace(0, 1 / E, (n, 28))

    return run


CUT = 6 / E


def cut_off(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """Laplace noise within six scales, by inversion."""
    low = float(F(-CUT, 1 / E))

    def run(data: float, n: int) -> Any:
        u = g.uniform(low, 1 - low, n)
        return data + np.where(u < 0.5, np.log(2 * u), -np.log(2 - 2 * u)) / E

    return run


def cut_off_law() -> Law:
    low = float(F(-CUT, 1 / E))

    def on(d: float) -> Floats:
        return between(lambda x: ((F(x - d, 1 / E) - low) / (1 - 2 * low)).clip(0, 1), LINE)

    return on(0.0), on(1.0)


def geometric_masses(reach: int) -> Floats:
    r = math.exp(-E)
    return (1 - r) / (1 + r) * r ** np.abs(np.arange(-reach, reach + 1))


def two_sided(g: np.random.Generator, shape: Any) -> Any:
    q = 1 - math.exp(-E)
    return g.geometric(q, shape) - g.geometric(q, shape)


def noise_by_value(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """Noise made from the true count: equal counts get equal noise."""

    def run(data: Any, n: int) -> Any:
        noise = two_sided(g, (n, 2))
        return np.asarray(data) + (noise if data[0] != data[1] else noise[:, :1])

    return run


def noise_by_value_law() -> Law:
    """D: the same noise twice. D': independent, and the second is 1 more."""
    reach = 300
    one = geometric_masses(reach)
    moved = np.concatenate([[0.0], one[:-1]])
    return np.diag(one), np.outer(one, moved)


def clamped_to_size(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """A count of 20, clamped to the exact number of rows."""
    return lambda rows, n: np.clip(20 + two_sided(g, n), 0, rows)


def clamped_to_size_law() -> Law:
    noisy = 20 + np.arange(-400, 401)
    one = geometric_masses(400)
    p, q = (np.bincount(np.clip(noisy, 0, rows), one, minlength=62) for rows in (60, 61))
    return p, q


def kary(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """Twenty categories, kept with the probability that is right for two."""
    keep = 1 / (1 + math.exp(-E))

    def run(data: int, n: int) -> Any:
        return np.where(g.random(n) < keep, data, (data + g.integers(1, 20, n)) % 20)

    return run


def kary_law() -> Law:
    keep = 1 / (1 + math.exp(-E))
    p, q = (np.where(np.arange(20) == d, keep, (1 - keep) / 19) for d in (0, 1))
    return p, q


def empty_sample(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """A noisy mean of a sample, each of whose rows is taken with probability 0.9; the mean of none raises."""

    def run(rows: int, n: int) -> Any:
        if not (g.random((n, rows)) < 0.9).any(axis=1).all():
            raise ZeroDivisionError("division by zero")
        return 1 + g.laplace(0, 1 / E, n)

    return run


def own_scale(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """Laplace noise whose scale is the largest value of the data."""
    return lambda largest, n: g.laplace(0, largest, n)


def own_scale_law() -> Law:
    edges = np.linspace(-500, 500, 1_000_001)
    return between(lambda x: F(x, 10.0), edges), between(lambda x: F(x, 11.0), edges)


def gate(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """Two counts; where the first passes 100, the second is taken for public and gets a twentieth of the noise."""

    def run(data: float, n: int) -> Any:
        first = data + g.laplace(0, 2 / E, n)
        return np.c_[first, data + g.laplace(0, 1, n) * np.where(first > 100, 1.0, 2 / E)]

    return run


def gate_law() -> Law:
    first = np.sort(np.concatenate([np.linspace(-300, 400, 1401), [100.0]]))
    open_ = np.append(np.append(False, first >= 100), True)[:-1]
    wide = np.linspace(-300, 301, 1203)
    narrow = np.linspace(-20, 21, 1641)

    def on(d: float) -> Floats:
        one = between(lambda x: F(x - d, 2 / E), first)
        shut = np.outer(one[~open_], between(lambda x: F(x - d, 2 / E), wide))
        return np.concatenate([shut.ravel(), np.outer(one[open_], between(lambda x: F(x - d, 1.0), narrow)).ravel()])

    return on(0.0), on(1.0)


def shared_noise(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """Two counts with nearly the same noise: each alone has enough of it."""

    def run(data: Any, n: int) -> Any:
        return np.asarray(data) + g.laplace(0, 2 / E, (n, 1)) + g.laplace(0, 2, (n, 2)) * [0, 1]

    return run


def shared_noise_law() -> Law:
    return between(lambda x: F(x, 2.0), LINE), between(lambda x: F(x - 1, 2.0), LINE)


def own_spread(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """Normal noise on 20 sums, as wide as the data."""
    return lambda spread, n: g.normal(0, spread, (n, 20))


def own_spread_law() -> Law:
    squares = np.linspace(0, 12_000, 400_001)
    return between(lambda x: chi2.cdf(x / 100, 20), squares), between(lambda x: chi2.cdf(x / 10.5**2, 20), squares)


RARE = 2e-4


def rarely_raw(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """Once in five thousand answers the noise is forgotten."""
    return lambda data, n: data + np.where(g.random(n) < RARE, 0.0, g.laplace(0, 1 / E, n))


def rarely_raw_law() -> Law:
    def on(d: float, atoms: list[float]) -> Floats:
        return np.concatenate([(1 - RARE) * between(lambda x: F(x - d, 1 / E), LINE), atoms])

    return on(0.0, [RARE, 0.0]), on(1.0, [0.0, RARE])


def _named(kind: str, name: str, law: Callable[[], Law]) -> dict[str, Graded]:
    return {name: Graded(kind, BROKEN[name], law, known=True)}


GRADED: dict[str, Graded] = {
    "sparse vector: late and low": Graded(
        "two columns", Case(late_value, [0.0] * 40, [1.0] * 40, claim=0.5), late_value_law, known=True
    ),
    **_named("one column", "noisy max with its value, Laplace", lambda: largest_law(lambda x: F(x, 2 / E))),
    **_named("a tail", "noisy max with its value, exponential", lambda: largest_law(exponential)),
    **_named("run of columns", "sparse vector 4: little noise", first_yes_law),
    **_named("run of columns", "sparse vector 6: no end", no_end_law),
    **_named("run of columns", "prefix sums at the noise of one", lambda: moved_columns_law(10, 1 / E)),
    "a week charged as a day": Graded(
        "run of columns", Case(week, (), tuple(range(11, 18))), lambda: moved_columns_law(7, 1 / E)
    ),
    "noise as wide as the data, 20 sums": Graded("run of columns", Case(own_spread, 10.0, 10.5), own_spread_law),
    "noise cut off at six scales": Graded("a tail", Case(cut_off, 0.0, 1.0), cut_off_law),
    "scale from the data": Graded("a tail", Case(own_scale, 10.0, 11.0), own_scale_law),
    "a gate that opens to little noise": Graded("two columns", Case(gate, 0.0, 1.0), gate_law),
    "noise shared by two counts": Graded("two columns", Case(shared_noise, [0, 0], [0, 1]), shared_noise_law),
    "noise made from the value": Graded("ties", Case(noise_by_value, (5, 5), (5, 6)), noise_by_value_law),
    "clamped to the exact size": Graded("ties", Case(clamped_to_size, 60, 61), clamped_to_size_law),
    "noise forgotten now and then": Graded("ties", Case(rarely_raw, 0.0, 1.0), rarely_raw_law),
    "twenty categories kept as two": Graded("one column", Case(kary, 0, 1), kary_law),
    "mean of an empty sample": Graded(
        "exception", Case(empty_sample, 3, 4), lambda: (np.array([1e-3, 0.999]), np.array([1e-4, 0.9999]))
    ),
}
