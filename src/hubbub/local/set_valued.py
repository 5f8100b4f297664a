"""Answers that are sets, and keys with values: padding and sampling.

*Sets* (Qin et al. 2016; Wang, Li, Jha 2018, "Locally differentially private frequent itemset mining"). A set of m items
out of d is padded with dummies d, d+1, ... to l items if it is smaller, one of its max(m, l) items is drawn uniformly,
and sent through a frequency oracle over d + l categories. What was drawn is one category, so the report costs epsilon.
l times the share of an item is unbiased for the share of people who hold it, as long as nobody holds more than l items;
someone with m > l items counts as l/m of one.

*Keys with values in [-1, 1]* (Gu, Li, Cheng, Xiong, Cao 2020, "PCKV"). The value of the drawn key is rounded to -1 or 1
at random, without bias; the pair is one of 2 (d + l) categories; a dummy takes a value of 0. From the two unbiased
shares, l (f+ + f-) estimates how many people hold the key, and (f+ - f-) / (f+ + f-) the mean of its values.

Which item is drawn is chance too, so variances here are those of the sampled item: at most
l^2 (A + B f + f (1-f)) / n with f the sampled item's share.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hubbub.accounting.amounts import Number
from hubbub.accounting.events import Event
from hubbub.errors import ParameterError
from hubbub.local.choose import best_oracle
from hubbub.local.draws import Array, Floats, Integers
from hubbub.local.estimate import Estimate, normal_quantile
from hubbub.local.oracle import Categories, FrequencyOracle, Tally, named_categories, whole
from hubbub.noise import Bits, bernoulli, uniform_below

__all__ = ["KeyValue", "KeyValueEstimate", "SetValued"]


@dataclass(frozen=True, init=False)
class _Sampled:
    """Padding and sampling before an oracle. `cells` categories for every item."""

    size: int
    labels: tuple[Hashable, ...] | None
    padding: int
    oracle: FrequencyOracle

    def _prepare(self, epsilon: Number, categories: Categories, padding: int, cells: int) -> None:
        size, labels = named_categories(categories, 1 << 20)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "padding", whole(padding, "padding", 1, 1 << 16))
        object.__setattr__(self, "oracle", best_oracle(epsilon, cells * (size + self.padding)))

    @property
    def categories(self) -> Sequence[Hashable]:
        """The items, in the order of estimates."""
        return range(self.size) if self.labels is None else self.labels

    @property
    def loss(self) -> Event:
        """What one report costs its person."""
        return self.oracle.loss

    def aggregate(self, reports: Any) -> Tally:
        """Count reports; what no client can have sent is dropped and counted."""
        return self.oracle.aggregate(reports)

    def _sample(self, sizes: Integers, bits: Bits | None) -> Integers:
        """Which item of each set: 0 .. max(m, l) - 1; from m on it is a dummy."""
        return uniform_below(np.maximum(sizes, self.padding), bits=bits) if sizes.size else sizes

    def _scaled(self, estimate: Estimate, places: slice) -> tuple[Floats, Floats]:
        """l times the shares, and their variance, sampling included."""
        shares = estimate.shares[places]
        likely = np.clip(shares, 0, 1)
        variance = estimate.variance[places] + likely * (1 - likely) / max(estimate.n, 1)
        return self.padding * shares, self.padding**2 * variance


@dataclass(frozen=True, init=False)
class SetValued(_Sampled):
    """Everybody answers with a set of the categories, padded to `padding` items.

    >>> SetValued(1, 100, padding=4).oracle.size
    104
    """

    def __init__(self, epsilon: Number, categories: Categories, *, padding: int) -> None:
        self._prepare(epsilon, categories, padding, 1)

    def privatize(self, sets: Iterable[Iterable[Hashable]], *, bits: Bits | None = None) -> Array:
        """One report for each set."""
        place = {label: i for i, label in enumerate(self.categories)}
        items = [[place.get(item, -1) for item in dict.fromkeys(one)] for one in sets]
        flat = np.array([item for one in items for item in one], np.int64)
        if flat.size and flat.min() < 0:
            raise ParameterError("some set holds an item that is not declared; declare it, or leave it out of the set.")
        sizes = np.array([len(one) for one in items], np.int64)
        drawn = self._sample(sizes, bits)
        return self.oracle.privatize(_pick(flat, sizes, drawn, self.size), bits=bits)

    def estimate(self, reports: Any) -> Estimate:
        """The share of people who hold each item; the shares need not add to one."""
        return self.finish(self.aggregate(reports))

    def finish(self, tally: Tally) -> Estimate:
        """The same from tallies added up."""
        estimate = tally.estimate()
        shares, variance = self._scaled(estimate, slice(0, self.size))
        return Estimate(self.categories, estimate.n, estimate.dropped, shares, variance)


def _pick(flat: Integers, sizes: Integers, drawn: Integers, size: int) -> Integers:
    """The drawn item of each set, or the dummy that stands at its place."""
    start = np.cumsum(sizes) - sizes
    real = drawn < sizes
    out = size + drawn - sizes
    out[real] = flat[(start + drawn)[real]]
    return out


@dataclass(frozen=True, eq=False)
class KeyValueEstimate:
    """Shares of people who hold each key, and the mean value among them, each of shape (d,)."""

    categories: Sequence[Hashable]
    n: int
    dropped: int
    shares: Floats
    variance: Floats
    means: Floats
    mean_variance: Floats

    def interval(self, level: float = 0.95, *, of: Literal["shares", "means"] = "shares") -> tuple[Floats, Floats]:
        """Normal intervals: of shares, cut to [0, 1], or of means (delta method), cut to [-1, 1]."""
        centre, variance = (self.shares, self.variance) if of == "shares" else (self.means, self.mean_variance)
        low, high = (0.0, 1.0) if of == "shares" else (-1.0, 1.0)
        reach = normal_quantile(level) * np.sqrt(variance)
        return np.clip(centre - reach, low, high), np.clip(centre + reach, low, high)


@dataclass(frozen=True, init=False)
class KeyValue(_Sampled):
    """Everybody answers with a mapping from keys to numbers in [-1, 1], padded to `padding` keys.

    >>> KeyValue(1, ["a", "b"], padding=2).oracle.size
    8
    """

    def __init__(self, epsilon: Number, categories: Categories, *, padding: int) -> None:
        self._prepare(epsilon, categories, padding, 2)

    def privatize(self, answers: Iterable[Mapping[Any, float]], *, bits: Bits | None = None) -> Array:
        """One report for each mapping. Values outside [-1, 1] are clamped, NaN counts as 0."""
        place = {label: i for i, label in enumerate(self.categories)}
        pairs = [[(place.get(key, -1), value) for key, value in answer.items()] for answer in answers]
        keys = np.array([key for one in pairs for key, _ in one], np.int64)
        if keys.size and keys.min() < 0:
            raise ParameterError("some answer holds a key that is not declared; declare it, or leave it out.")
        values = np.array([value for one in pairs for _, value in one], np.float64)
        sizes = np.array([len(one) for one in pairs], np.int64)
        drawn = self._sample(sizes, bits)
        item = _pick(keys, sizes, drawn, self.size)
        value = np.zeros(sizes.size)
        real = drawn < sizes
        value[real] = values[(np.cumsum(sizes) - sizes + drawn)[real]]
        # On 2^20 steps the chance of +1 is exact as a float.
        share = np.floor((np.clip(np.nan_to_num(value), -1, 1) + 1) / 2 * 2**20 + 0.5) / 2**20
        return self.oracle.privatize(2 * item + bernoulli(share, bits=bits), bits=bits)

    def estimate(self, reports: Any) -> KeyValueEstimate:
        """Shares and means of every key."""
        return self.finish(self.aggregate(reports))

    def finish(self, tally: Tally) -> KeyValueEstimate:
        """The same from tallies added up."""
        estimate = tally.estimate()
        minus, minus_variance = self._scaled(estimate, slice(0, 2 * self.size, 2))
        plus, plus_variance = self._scaled(estimate, slice(1, 2 * self.size, 2))
        held, difference = plus + minus, plus - minus
        variance = plus_variance + minus_variance
        # A share below its own noise says nothing about a mean; the ratio is kept within [-1, 1].
        safe = np.maximum(held, np.sqrt(variance))
        means = np.clip(difference / safe, -1, 1)
        slopes = ((1 - means) / safe) ** 2 * plus_variance + ((1 + means) / safe) ** 2 * minus_variance
        return KeyValueEstimate(self.categories, estimate.n, estimate.dropped, held, variance, means, slopes)
