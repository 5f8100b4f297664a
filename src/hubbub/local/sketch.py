"""Count-mean sketch: unary encoding of a hash, for answers from a large set (Apple 2017, "Learning with privacy at
scale", section 3.2.1; the same as their one-hot vectors of signs with all bits sent).

There are m public hashes into w buckets. The client draws one of them, j, encodes bucket h_j(v) in w bits, flips each
with probability L = 1/(1+e^(epsilon/2)) rounded up, and sends j and the bits. A report supports v iff bit h_j(v) is
set: p = 1 - L, and with c the chance of a collision q = c p + (1-c) L.

The hashes are public and fixed, so a category may collide with a common one in several of them. Let C_vu be the share
of the m hashes under which v and u collide (C_vv = 1). A person with u supports v with chance r_vu = L + (p-L) C_vu,
and people are independent, so given the hashes and the true shares f the estimate of the share of v has exactly

    bias      (p-L)/(p-q) sum_(u != v) f_u (C_vu - c)
    variance  sum_u f_u r_vu (1 - r_vu) / (n (p-q)^2).

Over the choice of the hashes the bias has mean 0 and variance

    ((p-L)/(p-q))^2 c (1-c) / m sum_(u != v) f_u^2  =  about  sum_(u != v) f_u^2 / (m (w-1));

it does not shrink with n, so take m w of the order of n or more. The variance that an estimate states is its mean
squared error given the hashes, the variance above and the square of the bias, with the projected shares put in for f.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hubbub.accounting.amounts import Number
from hubbub.errors import ParameterError
from hubbub.local.bitmaps import byte_rows, column_sums, contains
from hubbub.local.draws import Array, Floats, Integers, lie_chance, uniform
from hubbub.local.estimate import Estimate, simplex_projection
from hubbub.local.hashes import collision, public_bucket, public_seeds
from hubbub.local.oracle import (
    CHUNK,
    Categories,
    FrequencyOracle,
    Tally,
    chunks,
    epsilon_above_zero,
    named_categories,
    valid_rows,
    whole,
)
from hubbub.local.randomizer import CategoryRandomizer
from hubbub.local.unary import unary_reports
from hubbub.noise import Bits

__all__ = ["CountMeanSketch"]

_PAIRS = 1 << 9  # so many categories are compared pair by pair


@dataclass(frozen=True)
class SketchRandomizer(CategoryRandomizer):
    """The number of a public hash and, as `buckets` bits, where it sends the category, each bit flipped at random."""

    hashes: int
    buckets: int
    public_name: str

    @property
    def lie(self) -> Fraction:
        """L, the chance that a bit is flipped."""
        return lie_chance(1, self.epsilon / 2)

    @property
    def p(self) -> Fraction:
        return 1 - self.lie

    @property
    def q(self) -> Fraction:
        same = collision(self.buckets)
        return same * self.p + (1 - same) * self.lie

    @property
    def report_type(self) -> np.dtype[Any]:
        return np.dtype([("hash", "<u2"), ("bits", np.uint8, (-(-self.buckets // 8),))])

    @property
    def parameters(self) -> dict[str, object]:
        return {"flip": str(self.lie)}

    def chance(self, report: Any, data: int) -> Fraction:
        seeds = public_seeds(self.hashes, self.public_name)
        j = int(report["hash"])
        true = int(public_bucket(seeds[j], data, self.buckets))
        out = Fraction(1, self.hashes)
        for i in range(self.buckets):
            out *= self.p if contains(report["bits"], i) == (i == true) else self.lie
        return out

    def _client(self, places: Array, bits: Bits | None) -> Array:
        out = np.empty(len(places), self.report_type)
        seeds = public_seeds(self.hashes, self.public_name)
        for part in chunks(len(places), CHUNK):
            j = uniform(self.hashes, len(places[part]), bits)
            out["hash"][part] = j
            hot = public_bucket(seeds[j], places[part], self.buckets)
            out["bits"][part] = unary_reports(hot, self.buckets, self.p, self.lie, bits)
        return out

    def _valid(self, reports: Any) -> tuple[Array, int]:
        kind = self.report_type
        array, lost = valid_rows(reports, kind)
        spare = 8 * kind["bits"].shape[0] - self.buckets
        clean = (array["hash"] < self.hashes) & ((array["bits"][:, -1] & np.uint8((1 << spare) - 1)) == 0)
        return (array, lost) if bool(clean.all()) else (array[clean], lost + int(np.count_nonzero(~clean)))

    def _supporters(self, reports: Array) -> Integers:
        sketch = np.zeros((self.hashes, self.buckets), np.int64)
        order = np.argsort(reports["hash"], kind="stable")
        ends = np.searchsorted(reports["hash"][order], np.arange(self.hashes + 1))
        for j in range(self.hashes):
            rows, _ = byte_rows(reports["bits"][order[ends[j] : ends[j + 1]]], self.buckets)
            sketch[j] = column_sums(rows, self.buckets)
        out = np.zeros(self.size, np.int64)
        for row, places in zip(sketch, self._places(), strict=True):
            out += row[places]
        return out

    def _places(self) -> Iterator[Array]:
        """The bucket of every category, shape (k,), under one public hash after the other."""
        for seed in public_seeds(self.hashes, self.public_name):
            yield public_bucket(seed, np.arange(self.size), self.buckets)


class CountMeanSketch(FrequencyOracle):
    """A count-mean sketch with `hashes` public hash functions, derived from the text `public_name`, into `buckets`.

    >>> CountMeanSketch(2, 5000, hashes=256, buckets=64).report_bytes
    10
    """

    name: ClassVar[str] = "count_mean_sketch"

    randomizer: SketchRandomizer

    def __init__(
        self,
        epsilon: Number,
        categories: Categories,
        *,
        hashes: int = 1024,
        buckets: int = 256,
        public_name: str = "hubbub count-mean sketch 1",
    ) -> None:
        size, labels = named_categories(categories)
        client = SketchRandomizer(
            epsilon_above_zero(epsilon),
            size,
            whole(hashes, "hashes", 1, 1 << 16),
            whole(buckets, "buckets", 2, 1 << 12),
            str(public_name),
        )
        super().__init__(client, labels)

    def _collisions(self, shares: Floats) -> Floats:
        """sum_(u != v) f_u C_vu: in what share of (person, hash) somebody else falls into the bucket of v."""
        out = np.zeros(self.size)
        for places in self.randomizer._places():
            out += np.bincount(places.astype(np.int64), shares, self.randomizer.buckets)[places]
        return np.asarray(out / self.randomizer.hashes - shares)

    def hash_bias(self, shares: Floats) -> Floats:
        """How far the public hashes in use move the mean of each share, for given true shares, shape (k,). Exact."""
        f = self._given(shares)
        others = self._collisions(f) - float(collision(self.randomizer.buckets)) * (np.sum(f) - f)
        return np.asarray(others * float(self._stretch()))

    def variances(self, n: int, shares: Floats) -> Floats:
        """The variance of each share over the coins of n clients, given the public hashes and the true shares, (k,).

        Exact for up to 512 categories. Beyond, the people who are not in v count with their mean of r_vu, which is
        never too little, r (1-r) being concave, and too much by a part of about 1/`hashes`.
        """
        f, client = self._given(shares), self.randomizer
        lie, slope = float(client.lie), float(client.p - client.lie)
        if self.size <= _PAIRS:
            collide = np.zeros((self.size, self.size))
            for places in client._places():
                collide += places[:, None] == places
            support = lie + slope * collide / client.hashes
            spread = (support * (1 - support)) @ f
        else:
            rest = np.maximum(np.sum(f) - f, np.finfo(np.float64).tiny)
            support = lie + slope * self._collisions(f) / rest
            spread = f * float(client.p * (1 - client.p)) + rest * support * (1 - support)
        return np.asarray(spread / (n * float(client.p - client.q) ** 2))

    def _given(self, shares: Any) -> Floats:
        given = np.asarray(shares, np.float64)
        if given.shape != (self.size,):
            raise ParameterError(
                f"shares of shape {given.shape} were given; give one for each of {self.size} categories."
            )
        return given

    def hash_variance(self, shares: Floats) -> Floats:
        """The variance of `hash_bias` over the choice of the hashes, for given true shares, shape (k,)."""
        same = collision(self.randomizer.buckets)
        squares = np.sum(shares**2) - shares**2
        return squares * float(same * (1 - same)) * float(self._stretch()) ** 2 / self.randomizer.hashes

    def _stretch(self) -> Fraction:
        client = self.randomizer
        return (client.p - client.lie) / (client.p - client.q)

    def _estimate(self, tally: Tally) -> Estimate:
        plain = super()._estimate(tally)
        likely = simplex_projection(plain.shares)
        variance = self.variances(max(plain.n, 1), likely) + self.hash_bias(likely) ** 2
        return Estimate(plain.categories, plain.n, plain.dropped, plain.shares, variance)
