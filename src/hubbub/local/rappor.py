"""RAPPOR: Bloom filters, a permanent and an instantaneous randomised response (Erlingsson, Pihur, Korolova 2014).

A person in cohort j has the Bloom filter of m bits with the public hashes of that cohort, h different bits of it set
(double hashing with an odd step, m a power of two). Each bit is replaced by 1 with probability f/2, by 0 with f/2, and
kept else: the *permanent* response, drawn once per value and kept on the device. Each report then sets a bit with
probability `one_if_set` where the permanent bit is 1 and `one_if_clear` where it is 0: the *instantaneous* response.

Two filters differ in at most 2h bits. So all reports of one value together cost at most
2 h ln((1 - f/2) / (f/2)), which is `epsilon` here, f/2 being rounded up; and one report alone costs at most
h ln(s (1-c) / (c (1-s))), s and c the chances of a 1 where the filter is set and clear (their Theorems 1 and 2).

Decoding with a list of candidates, which must hold everybody's value: per cohort and bit, (ones/n_j - c) / (s - c) is
unbiased for the share of people whose filter has the bit, and the shares f of the candidates follow by least squares.
With K_j = X_j' X_j, X_j the filters of cohort j (m x k), G = sum n_j K_j of full rank and K = G/n, the covariance
given the sizes n_j of the cohorts, which are public, and the true shares is exactly

    G^-1 (sum n_j X_j' D_j X_j + n/(n-1) sum n_j (K_j - K)(diag f - f f')(K_j - K)) G^-1:

the coins of the bits, D_j the diagonal of their variances, and who is in which cohort, which is a random division of n
people into groups of these sizes (multivariate hypergeometric). The estimate puts the projected shares in for f.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hubbub.accounting.amounts import Number, probability
from hubbub.accounting.events import Event, PureDP
from hubbub.accounting.rounding import digits_up, ln
from hubbub.errors import ParameterError
from hubbub.local.bitmaps import column_sums
from hubbub.local.draws import Array, Flags, Floats, Integers, coins, lie_chance, uniform
from hubbub.local.estimate import Estimate, simplex_projection
from hubbub.local.hashes import public_bucket, public_seeds
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
from hubbub.noise import Bits

__all__ = ["Rappor"]


@dataclass(frozen=True, eq=False)
class _Design:
    """The least squares of the cohorts that are present: n_j, X_j, K_j, G and its pseudo-inverse."""

    people: Floats
    filters: list[Floats]
    grams: list[Floats]
    total: Floats
    inverse: Floats


@dataclass(frozen=True)
class RapporRandomizer(CategoryRandomizer):
    """Both responses: `permanent`, to be kept on the device, and from it `instantaneous`; `release` draws both."""

    hashes: int
    bloom_bits: int
    cohorts: int
    one_if_set: Fraction
    one_if_clear: Fraction
    public_name: str

    @property
    def flip(self) -> Fraction:
        """f/2, the chance that the permanent response turns a bit over."""
        return lie_chance(1, self.epsilon / (2 * self.hashes))

    @property
    def p(self) -> Fraction:
        return self.one_if_set - self.flip * (self.one_if_set - self.one_if_clear)

    @property
    def q(self) -> Fraction:
        return self.one_if_clear + self.flip * (self.one_if_set - self.one_if_clear)

    @property
    def loss(self) -> Event:
        """What one report costs if it stays the only one; all reports of one value cost epsilon together."""
        if self.q == 0:
            return PureDP(self.epsilon)
        odds = (self.p * (1 - self.q)) / (self.q * (1 - self.p))
        alone = digits_up(Fraction(ln(odds)) * self.hashes * (1 + Fraction(1, 10**40)))
        return PureDP(min(alone, self.epsilon))

    @property
    def report_type(self) -> np.dtype[Any]:
        return np.dtype([("cohort", "<u2"), ("bits", np.uint8, (self.bloom_bits // 8,))])

    @property
    def parameters(self) -> dict[str, object]:
        return {"flip": str(self.flip)}

    def filters(self, cohort: Any, places: Any) -> Flags:
        """The Bloom filters of places in their cohorts, shape (n, bloom_bits)."""
        seeds = public_seeds(2 * self.cohorts, self.public_name)
        first, second = 2 * np.asarray(cohort), 2 * np.asarray(cohort) + 1
        start = public_bucket(seeds[first], places, self.bloom_bits).astype(np.int64)
        step = 2 * public_bucket(seeds[second], places, self.bloom_bits // 2).astype(np.int64) + 1
        ones = (start[:, None] + step[:, None] * np.arange(self.hashes)) % self.bloom_bits
        out = np.zeros((start.size, self.bloom_bits), np.bool_)
        np.put_along_axis(out, ones, True, axis=1)
        return out

    def permanent(self, places: Array, *, bits: Bits | None = None) -> Array:
        """The permanent responses, one row per place: keep each on its device, as long as the value stays."""
        out = np.empty(len(places), self.report_type)
        for part in chunks(len(places), CHUNK):
            cohort = uniform(self.cohorts, len(places[part]), bits).astype(np.int64)
            true = self.filters(cohort, places[part])
            flipped = coins(self.flip, true.size, bits).reshape(true.shape)
            out["cohort"][part], out["bits"][part] = cohort, np.packbits(true ^ flipped, axis=1)
        return out

    def instantaneous(self, permanent: Array, *, bits: Bits | None = None) -> Array:
        """Fresh reports from permanent responses."""
        out = permanent.copy()
        for part in chunks(len(out), CHUNK):
            kept = np.unpackbits(permanent["bits"][part], axis=1).astype(np.bool_)
            set_ = coins(self.one_if_set, kept.size, bits).reshape(kept.shape)
            clear = coins(self.one_if_clear, kept.size, bits).reshape(kept.shape)
            out["bits"][part] = np.packbits(np.where(kept, set_, clear), axis=1)
        return out

    def chance(self, report: Any, data: int) -> Fraction:
        true = self.filters([int(report["cohort"])], [data])[0]
        ones = np.unpackbits(report["bits"]).astype(np.bool_)
        out = Fraction(1, self.cohorts)
        for is_set, one in zip(true.tolist(), ones.tolist(), strict=True):
            chance = self.p if is_set else self.q
            out *= chance if one else 1 - chance
        return out

    def _client(self, places: Array, bits: Bits | None) -> Array:
        return self.instantaneous(self.permanent(places, bits=bits), bits=bits)

    def _valid(self, reports: Any) -> tuple[Array, int]:
        array, lost = valid_rows(reports, self.report_type)
        clean = array["cohort"] < self.cohorts
        return (array, lost) if bool(clean.all()) else (array[clean], lost + int(np.count_nonzero(~clean)))

    def _supporters(self, reports: Array) -> Integers:
        """Ones per cohort and bit, and the reports of each cohort in the last column."""
        out = np.zeros((self.cohorts, self.bloom_bits + 1), np.int64)
        for j in range(self.cohorts):
            rows = np.ascontiguousarray(reports["bits"][reports["cohort"] == j])
            out[j, :-1], out[j, -1] = column_sums(rows, self.bloom_bits), len(rows)
        return out


class Rappor(FrequencyOracle):
    """RAPPOR for a list of candidates. `privatize` draws both responses; to ask again and again, keep `permanent`.

    >>> oracle = Rappor(4, 100)
    >>> oracle.loss.epsilon, round(float(oracle.randomizer.loss.epsilon), 3)
    (Fraction(4, 1), 0.992)
    """

    name: ClassVar[str] = "rappor"

    randomizer: RapporRandomizer

    def __init__(
        self,
        epsilon: Number,
        categories: Categories,
        *,
        hashes: int = 2,
        bloom_bits: int = 32,
        cohorts: int = 64,
        one_if_set: Number = "3/4",
        one_if_clear: Number = "1/2",
        public_name: str = "hubbub rappor 1",
    ) -> None:
        size, labels = named_categories(categories, 1 << 11)
        exact = epsilon_above_zero(epsilon)
        m = whole(bloom_bits, "bloom_bits", 8, 1 << 12)
        if m & (m - 1):
            raise ParameterError(f"bloom_bits = {m} was asked; it is a power of two.")
        set_, clear = probability(one_if_set, "one_if_set", one=True), probability(one_if_clear, "one_if_clear")
        if not clear < set_:
            raise ParameterError(f"one_if_clear = {clear} was asked; it must lie below one_if_set = {set_}.")
        ways = whole(hashes, "hashes", 1, m // 2), m, whole(cohorts, "cohorts", 1, 1 << 12)
        super().__init__(RapporRandomizer(exact, size, *ways, set_, clear, str(public_name)), labels)

    @property
    def loss(self) -> Event:
        """What all reports of one value cost; one report alone costs `randomizer.loss`."""
        return PureDP(self.epsilon)

    @property
    def variance_factor(self) -> float:
        raise ParameterError("the variance of RAPPOR depends on the candidates' filters; see estimate().variance.")

    @property
    def influence(self) -> float:
        raise ParameterError("one report moves RAPPOR's least squares by what the filters say; no figure is given.")

    def permanent(self, values: Any, *, bits: Bits | None = None) -> Array:
        """The permanent responses, one row per value: keep each on its device, as long as the value stays."""
        return self.randomizer.permanent(self.indexes(values), bits=bits)

    def instantaneous(self, permanent: Array, *, bits: Bits | None = None) -> Array:
        """Fresh reports from permanent responses."""
        return self.randomizer.instantaneous(permanent, bits=bits)

    def empty(self) -> Tally:
        return Tally(self, 0, np.zeros((self.randomizer.cohorts, self.randomizer.bloom_bits + 1), np.int64), 0)

    def _estimate(self, tally: Tally) -> Estimate:
        ones, people = tally.counts[:, :-1], tally.counts[:, -1].astype(np.float64)
        design, p, q = self._design(people), self.randomizer.p, self.randomizer.q
        right = np.zeros(self.size)
        for j, x in zip(np.flatnonzero(people), design.filters, strict=True):
            right += x.T @ (ones[j] - people[j] * float(q)) / float(p - q)
        shares = design.inverse @ right
        variance = self._variances(design, simplex_projection(shares))
        return Estimate(self.categories, tally.n, tally.dropped, shares, variance)

    def variances(self, people: Any, shares: Any) -> Floats:
        """The variance of each share, shape (k,), given how many reports came from each cohort, shape (cohorts,), and
        the true shares. Exact if the filters of the cohorts that are present tell all candidates apart.
        """
        sizes, given = np.asarray(people, np.float64), np.asarray(shares, np.float64)
        if sizes.shape != (self.randomizer.cohorts,) or given.shape != (self.size,) or not bool((sizes >= 0).all()):
            raise ParameterError(
                f"people of shape {sizes.shape} and shares of shape {given.shape} were given; give a number, 0 or "
                f"more, for each of {self.randomizer.cohorts} cohorts and a share for each of {self.size} categories."
            )
        return self._variances(self._design(sizes), given)

    def _design(self, people: Floats) -> _Design:
        present, all_ = np.flatnonzero(people), np.arange(self.size)
        filters = [self.randomizer.filters(np.full(self.size, j), all_).T.astype(np.float64) for j in present]
        grams = [x.T @ x for x in filters]
        total = np.zeros((self.size, self.size))
        for j, gram in zip(present, grams, strict=True):
            total += people[j] * gram
        return _Design(
            people[present], filters, grams, total, np.asarray(np.linalg.pinv(total, hermitian=True), np.float64)
        )

    def _variances(self, design: _Design, shares: Floats) -> Floats:
        p, q, n = float(self.randomizer.p), float(self.randomizer.q), float(design.people.sum())
        middle = np.zeros((self.size, self.size))
        spread = (np.diag(shares) - np.outer(shares, shares)) * n / max(n - 1, 1)
        for size, x, gram in zip(design.people, design.filters, design.grams, strict=True):
            held = x @ shares
            noise = (held * p * (1 - p) + (1 - held) * q * (1 - q)) / (p - q) ** 2
            apart = gram - design.total / n
            middle += size * ((x.T * noise) @ x + apart @ spread @ apart)
        return np.asarray(np.einsum("ij,jk,ki->i", design.inverse, middle, design.inverse, optimize=True))
