"""Local hashing: k-ary response to a hash of the category, each client with a hash of its own.

The client draws a hash H from a strongly universal family (`hashes`), computes h = H(v) among g buckets, and sends H
with the k-ary response y to h (Wang, Blocki, Li, Jha 2017, section 4.4). The hash is independent of v and y costs
e^epsilon, whatever H is. A report supports all categories that H sends to y: p = 1 - L with L = (g-1)/(g-1+e^epsilon)
rounded up, and q = (1-L) c + L (1-c)/(g-1), where c is the family's exact chance of a collision, 1/g to 10 digits or
more. *Optimal*: g next to e^epsilon + 1, variance factor close to 4 e^epsilon/(e^epsilon-1)^2. *Binary*: g = 2
(Bassily, Smith 2015). Reports stay small however many categories there are; the server hashes every category for every
report.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hubbub.accounting.amounts import Number
from hubbub.errors import ParameterError
from hubbub.local.direct import respond
from hubbub.local.draws import Array, Flags, Integers, lie_chance
from hubbub.local.hashes import MAX_BUCKETS, bucket, bucket_edges, collision, fresh_seeds, supporters
from hubbub.local.oracle import (
    CHUNK,
    Categories,
    FrequencyOracle,
    chunks,
    epsilon_above_zero,
    named_categories,
    valid_rows,
    whole,
)
from hubbub.local.randomizer import CategoryRandomizer
from hubbub.noise import Bits

__all__ = [
    "REPORT",
    "HashingRandomizer",
    "LocalHashing",
    "clean_hashed",
    "hashed_reports",
    "hashed_supporters",
    "rates",
    "valid_hashed",
]

REPORT = np.dtype([("a", "<u8"), ("b", "<u8"), ("y", "<u2")])
"""A report: the doubled seeds of its hash, and the answer."""


def rates(buckets: int, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """p and q for that many buckets."""
    lie = lie_chance(buckets - 1, epsilon)
    same = collision(buckets)
    return 1 - lie, (1 - lie) * same + lie * (1 - same) / (buckets - 1)


def best_buckets(epsilon: Fraction) -> int:
    """The number of buckets of least variance factor: next to e^epsilon + 1."""
    near = int(min(math.exp(min(float(epsilon), 20.0)) + 1, MAX_BUCKETS - 1))

    def factor(buckets: int) -> Fraction:
        p, q = rates(buckets, epsilon)
        return q * (1 - q) / (p - q) ** 2

    return min((near, near + 1), key=factor)


def hashed_reports(x: Array, buckets: int, lie: Fraction, bits: Bits | None) -> Array:
    """Reports for inputs x < 2^32, shape (n,), dtype REPORT."""
    out = np.empty(len(x), REPORT)
    for part in chunks(len(x), CHUNK):
        a, b = fresh_seeds(len(x[part]), bits)
        out["a"][part], out["b"][part] = a, b
        out["y"][part] = respond(bucket(a, b, x[part], buckets), buckets, lie, bits)
    return out


def valid_hashed(reports: Any, buckets: int) -> tuple[Array, int]:
    """Reports with even seeds and an answer below `buckets`, and how many others there were. Never raises."""
    array, lost = valid_rows(reports, REPORT)
    clean = clean_hashed(array, buckets)
    return (array, lost) if bool(clean.all()) else (array[clean], lost + int(np.count_nonzero(~clean)))


def clean_hashed(reports: Array, buckets: int) -> Flags:
    """Which reports have even seeds and an answer below `buckets`."""
    return np.asarray((reports["y"] < buckets) & (((reports["a"] | reports["b"]) & np.uint64(1)) == 0))


def hashed_supporters(reports: Array, buckets: int, x: Array) -> Integers:
    """How many reports support each input x < 2^32."""
    edges = np.array(bucket_edges(buckets), np.uint64)
    lows, widths = edges[:-1] << np.uint64(32), np.diff(edges) << np.uint64(32)
    out = np.zeros(len(x), np.int64)
    points = np.asarray(x).astype(np.uint64)
    for part in chunks(len(reports), 1 << 18):
        some = reports[part]
        a, b, y = (np.ascontiguousarray(some[name]) for name in ("a", "b", "y"))
        for columns in chunks(points.size, 1 << 14):
            out[columns] += supporters(a, b, lows[y], widths[y], points[columns])
    return out


@dataclass(frozen=True)
class HashingRandomizer(CategoryRandomizer):
    """A fresh hash into `buckets`, and k-ary response to the bucket."""

    buckets: int

    @property
    def lie(self) -> Fraction:
        """L, the chance of naming another bucket."""
        return lie_chance(self.buckets - 1, self.epsilon)

    @property
    def p(self) -> Fraction:
        return rates(self.buckets, self.epsilon)[0]

    @property
    def q(self) -> Fraction:
        return rates(self.buckets, self.epsilon)[1]

    @property
    def report_type(self) -> np.dtype[Any]:
        return REPORT

    @property
    def parameters(self) -> dict[str, object]:
        return {"lie": str(self.lie)}

    def chance(self, report: Any, data: int) -> Fraction:
        hashed = int(bucket(report["a"], report["b"], data, self.buckets))
        answer = 1 - self.lie if hashed == int(report["y"]) else self.lie / (self.buckets - 1)
        return answer / (1 << 126)

    def _client(self, places: Array, bits: Bits | None) -> Array:
        return hashed_reports(places, self.buckets, self.lie, bits)

    def _valid(self, reports: Any) -> tuple[Array, int]:
        return valid_hashed(reports, self.buckets)

    def _supporters(self, reports: Array) -> Integers:
        return hashed_supporters(reports, self.buckets, np.arange(self.size))


class LocalHashing(FrequencyOracle):
    """Local hashing into `buckets`: the optimal number unless given; 2 is binary local hashing.

    >>> oracle = LocalHashing(1, 128)
    >>> oracle.randomizer.buckets, round(oracle.variance_factor, 2)
    (4, 3.69)
    """

    name: ClassVar[str] = "hashing"

    randomizer: HashingRandomizer

    def __init__(self, epsilon: Number, categories: Categories, *, buckets: int | None = None) -> None:
        size, labels = named_categories(categories)
        exact = epsilon_above_zero(epsilon)
        count = best_buckets(exact) if buckets is None else whole(buckets, "buckets", 2, MAX_BUCKETS)
        super().__init__(HashingRandomizer(exact, size, count), labels)
        if self.randomizer.p <= self.randomizer.q:
            raise ParameterError(f"buckets = {count} at epsilon = {epsilon} says nothing; give fewer buckets.")
