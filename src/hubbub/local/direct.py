"""k-ary randomised response ("direct encoding", "generalised randomised response").

The client reports its category with probability 1 - L, and each other one with probability L/(k-1), where L is
(k-1)/(k-1+e^epsilon) rounded up (`draws`). Kairouz, Bonawitz, Ramage 2016, section 3. A report supports the category
it names: p = 1 - L, q = L/(k-1). Best of all oracles for k < 3 e^epsilon + 2, roughly (Wang et al. 2017, section 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hubbub.accounting.amounts import Number
from hubbub.accounting.events import Event, RandomizedResponse
from hubbub.local.draws import Array, Integers, coins, lie_chance, uniform
from hubbub.local.oracle import (
    CHUNK,
    Categories,
    FrequencyOracle,
    chunks,
    epsilon_above_zero,
    integer_reports,
    named_categories,
)
from hubbub.local.randomizer import CategoryRandomizer
from hubbub.noise import Bits

__all__ = ["DirectEncoding", "integer_type", "respond"]


def integer_type(below: int) -> np.dtype[Any]:
    """The smallest little-endian unsigned type that holds 0 .. below-1."""
    return np.dtype("u1" if below <= 1 << 8 else "<u2" if below <= 1 << 16 else "<u4")


def respond(values: Array, below: int, lie: Fraction, bits: Bits | None) -> Array:
    """k-ary response to values 0 .. below-1: another one, uniformly, with probability `lie`.

    Everybody draws a shift; that it is drawn at all does not depend on the value.
    """
    kind = integer_type(below)
    out = np.empty(len(values), kind)
    wide = np.uint16 if below <= 1 << 12 else np.int64
    for part in chunks(len(values), CHUNK):
        truth: Array = values[part].astype(wide)
        lies = coins(lie, truth.size, bits)
        shift: Array = uniform(below - 1, truth.size, bits) + wide(1)
        # truth + shift mod below, without a division.
        moved = truth + shift * lies
        np.subtract(moved, wide(below), out=moved, where=moved >= below)
        out[part] = moved
    return out


@dataclass(frozen=True)
class DirectRandomizer(CategoryRandomizer):
    """k-ary response: a place."""

    @property
    def lie(self) -> Fraction:
        """L, the chance of naming another category."""
        return lie_chance(self.size - 1, self.epsilon)

    @property
    def p(self) -> Fraction:
        return 1 - self.lie

    @property
    def q(self) -> Fraction:
        return self.lie / (self.size - 1)

    @property
    def loss(self) -> Event:
        return RandomizedResponse(self.epsilon, self.size)

    @property
    def report_type(self) -> np.dtype[Any]:
        return integer_type(self.size)

    @property
    def parameters(self) -> dict[str, object]:
        return {"lie": str(self.lie)}

    def chance(self, report: Any, data: int) -> Fraction:
        return self.p if int(report) == data else self.q

    def _client(self, places: Array, bits: Bits | None) -> Array:
        return respond(places, self.size, self.lie, bits)

    def _valid(self, reports: Any) -> tuple[Array, int]:
        return integer_reports(reports, self.size)

    def _supporters(self, reports: Array) -> Integers:
        out = np.zeros(self.size, np.int64)
        for part in chunks(len(reports), 1 << 20):
            out += np.bincount(reports[part], minlength=self.size)
        return out


class DirectEncoding(FrequencyOracle):
    """k-ary response. A report is the index of a category.

    >>> oracle = DirectEncoding(1, ["red", "green", "blue"])
    >>> float(oracle.randomizer.p)
    0.5761168847658291
    """

    name: ClassVar[str] = "direct"

    randomizer: DirectRandomizer

    def __init__(self, epsilon: Number, categories: Categories) -> None:
        size, labels = named_categories(categories)
        super().__init__(DirectRandomizer(epsilon_above_zero(epsilon), size), labels)
