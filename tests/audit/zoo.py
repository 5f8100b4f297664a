"""Broken and correct mechanisms as callables run(data, size), for the black box; each with its neighbours and claim.

They are the list of known breakages: each claims epsilon (0.1 unless said) and does not keep it. Noise comes from a
seeded numpy stream, because speed and repeatability are what a test of the auditor needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

EPSILON = 0.1

Make = Callable[[np.random.Generator], Callable[[Any, int], Any]]


@dataclass(frozen=True)
class Case:
    """A mechanism, two neighbours, and what it claims."""

    make: Make
    d: Any
    d_prime: Any
    claim: float = EPSILON
    delta: float = 0.0

    def run(self, seed: int) -> Callable[[Any, int], Any]:
        return self.make(np.random.default_rng(seed))


def noisy_vector(scale: float, cells: int) -> Make:
    """Laplace noise on `cells` values."""
    return lambda g: lambda data, n: np.asarray(data) + g.laplace(0, scale, (n, cells))


def noisy_max(noise: str, shows: str) -> Make:
    """Report noisy max with scale 2/eps; shows the index, or the value."""

    def make(g: np.random.Generator) -> Callable[[Any, int], Any]:
        draw = {"laplace": lambda *a: g.laplace(0, *a), "exponential": g.exponential}[noise]

        def run(data: Any, n: int) -> Any:
            noisy = np.asarray(data) + draw(2 / EPSILON, (n, len(data)))
            return noisy.argmax(axis=1) if shows == "index" else noisy.max(axis=1)

        return run

    return make


def sparse_vector(
    threshold: float, answer: float | None, *, cutoff: int | None = None, value: bool = False, bar: float = 0.0
) -> Make:
    """Answers 1 (above), 0 (below), NaN (stopped); with `value`, the noisy value that passed."""

    def make(g: np.random.Generator) -> Callable[[Any, int], Any]:
        def run(data: Any, n: int) -> Any:
            noise = 0.0 if answer is None else g.laplace(0, answer, (n, len(data)))
            noisy = np.asarray(data, float) + noise + np.zeros((n, 1))
            above = noisy >= bar + g.laplace(0, threshold, (n, 1))
            out = np.where(above, noisy if value else 1.0, -1e6 if value else 0.0)
            if cutoff is not None:
                stopped = np.cumsum(above, axis=1) - above >= cutoff
                out[stopped] = np.nan
            return out

        return run

    return make


def of_sum(scale: float, change: Callable[[Any], float]) -> Make:
    """Laplace noise on one number computed from the data."""
    return lambda g: lambda data, n: change(data) + g.laplace(0, scale, n)


def exact_n(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """A mean whose sum is noisy and whose count is not; noise on the integers."""

    def run(data: Any, n: int) -> Any:
        q = 1 - np.exp(-EPSILON / 100)
        return (sum(data) + g.geometric(q, n) - g.geometric(q, n)) / len(data)

    return run


def classes_from_labels(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """Counts of the classes that occur."""
    return lambda data, n: np.unique(data, return_counts=True)[1] + g.laplace(0, 1 / EPSILON, (n, len(set(data))))


def classic_gaussian(epsilon: float, delta: float) -> Make:
    """sigma^2 = 2 ln(1.25/delta) / epsilon^2, which is proved for epsilon <= 1 only."""
    sigma = np.sqrt(2 * np.log(1.25 / delta)) / epsilon
    return lambda g: lambda data, n: data + g.normal(0, sigma, n)


def wrapping(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """A sum in int64, clamped values of 2^62 each."""

    def run(data: Any, n: int) -> Any:
        with np.errstate(over="ignore"):
            total = np.array([2**62] * len(data), dtype=np.int64).sum()
        return float(total) + g.laplace(0, 2.0**62 / EPSILON, n)

    return run


def float32_sum(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """A sequential sum in float32: where the total is 2^24, a removed row moves it by nearly 2."""

    def run(data: Any, n: int) -> Any:
        total = np.float32(data[0])
        for value in data[1:]:
            total = np.float32(total + np.float32(value))
        return float(total) + g.laplace(0, 1 / EPSILON, n)

    return run


def shuffled_batches(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """Noisy sums of 10 batches of a shuffled set; Poisson sampling with rate 1/10 is claimed."""

    def run(data: Any, n: int) -> Any:
        sums = np.full((n, 10), -float(len(data) - 1) / 10)
        sums[np.arange(n), g.integers(0, 10, n)] += data[0]
        return sums + g.normal(0, 0.5, (n, 10))

    return run


def nan_through_clip(g: np.random.Generator) -> Callable[[Any, int], Any]:
    return lambda data, n: np.clip(data, 0, 1).sum() + g.laplace(0, 1 / EPSILON, n)


def parallel(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """20 Laplace answers at eps/20 each."""
    return lambda data, n: data + g.laplace(0, 20 / EPSILON, (n, 20))


def clamped(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """A noisy count clamped to bounds that everybody knows: ties at both."""
    return lambda data, n: np.clip(data + g.laplace(0, 1 / EPSILON, n), 0, 60)


def noised_again(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """A noisy count, and the same with more noise on top: what is made of an answer costs nothing."""

    def run(data: Any, n: int) -> Any:
        first = data + g.laplace(0, 1 / EPSILON, (n, 1))
        return np.concatenate([first, first + g.laplace(0, 3, (n, 1))], axis=1)

    return run


def second_if_high(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """A count at half of epsilon; where it passes 20, another at the other half."""

    def run(data: Any, n: int) -> Any:
        both = data + g.laplace(0, 2 / EPSILON, (n, 2))
        both[both[:, 0] <= 20, 1] = np.nan
        return both

    return run


def raises_by_its_answer(g: np.random.Generator) -> Callable[[Any, int], Any]:
    """A noisy count, which raises where it is far below zero."""

    def run(data: Any, n: int) -> Any:
        noisy = data + g.laplace(0, 1 / EPSILON, n)
        if (noisy < -60).any():
            raise ValueError("far below zero")
        return noisy

    return run


E = EPSILON
ZERO, ONE = [0] * 10, [1] * 10
HALF = [1] * 5 + [-1] * 5

BROKEN = {
    "histogram with scale epsilon": Case(noisy_vector(E, 5), [3, 1, 4, 1, 5], [3, 2, 4, 1, 5]),
    "noisy max with its value, Laplace": Case(noisy_max("laplace", "value"), [0] * 5, [1] * 5),
    "noisy max with its value, exponential": Case(noisy_max("exponential", "value"), [0] * 5, [1] * 5),
    "sparse vector 3: shows the value": Case(
        sparse_vector(2 / E, 2 / E, cutoff=1, value=True), [0] * 6 + [10], [1] * 6 + [11]
    ),
    "sparse vector 4: little noise": Case(
        sparse_vector(4 / E, 4 / (3 * E), cutoff=1), [0] * 10 + [-5], [1] * 10 + [-6]
    ),
    "sparse vector 5: no noise on answers": Case(sparse_vector(2 / E, None), ZERO, HALF),
    "sparse vector 6: no end": Case(sparse_vector(2 / E, 2 / E), ZERO, HALF),
    "prefix sums at the noise of one": Case(noisy_vector(1 / E, 10), ZERO, ONE),
    "two answers charged once": Case(noisy_vector(1 / E, 2), [7, 7], [8, 8]),
    "sum of unclipped values": Case(of_sum(1 / E, sum), [1.0] * 5, [1.0] * 5 + [50.0]),
    "division by the exact n": Case(exact_n, [50] * 4, [50] * 5),
    "classes taken from the labels": Case(classes_from_labels, ["a", "b"], ["a", "b", "c"]),
    "NaN through clip": Case(nan_through_clip, [0.5], [0.5, float("nan")]),
    "int64 wrap": Case(wrapping, [1], [1, 1]),
    "float32 sum": Case(float32_sum, [2.0**24 + 2], [2.0**24 + 2, 1.0]),
    "shuffled batches as Poisson": Case(shuffled_batches, [2.0] + [0.0] * 20, [0.0] + [0.0] * 20, claim=3.1),
}

CORRECT = {
    "Laplace": Case(noisy_vector(1 / E, 1), [0], [1]),
    "noisy histogram": Case(noisy_vector(1 / E, 5), [3, 1, 4, 1, 5], [3, 2, 4, 1, 5]),
    "noisy max index, Laplace": Case(noisy_max("laplace", "index"), [0] * 5, [1, 0, 0, 0, 1]),
    "noisy max index, exponential": Case(noisy_max("exponential", "index"), [0] * 5, [1, 0, 0, 0, 1]),
    "sparse vector 1": Case(sparse_vector(2 / E, 4 / E, cutoff=1), ZERO, HALF),
    "sparse vector 2": Case(sparse_vector(2 / E, 4 / E, cutoff=1), [0] * 10 + [-5], [1] * 10 + [-6]),
    "20 parallel Laplace": Case(parallel, 0, 1),
    "clamped to public bounds": Case(clamped, 20, 21),
    "noise on top of noise": Case(noised_again, 0, 1),
    "a second count where the first is high": Case(second_if_high, 0, 1),
    "raises by its noisy answer": Case(raises_by_its_answer, 0, 1),
}
