"""Unary encodings: k bits, one of them the truth, each flipped on its own (Wang, Blocki, Li, Jha 2017, section 4.3).

*Symmetric* (basic one-time RAPPOR): every bit is flipped with probability L = 1/(1+e^(epsilon/2)), rounded up. Two
categories differ in two bits, each costing a factor e^(epsilon/2). p = 1 - L, q = L.

*Optimised*: the true bit stays 1 with probability 1/2, a 0 becomes 1 with probability q = 1/(1+e^epsilon), rounded
up. The factor is p(1-q) / ((1-p)q) = (1-q)/q <= e^epsilon. Its variance factor 4 e^epsilon/(e^epsilon-1)^2 is the
least of all such (p, q) for a rare category.

Every bit of a report is drawn alone, so a lying client can support all categories at once: k / (p-q) in all.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hubbub.accounting.amounts import Number
from hubbub.local.bitmaps import bitmap_type, byte_rows, column_sums, contains
from hubbub.local.draws import Array, Integers, coins, lie_chance
from hubbub.local.oracle import Categories, FrequencyOracle, chunks, epsilon_above_zero, named_categories
from hubbub.local.randomizer import CategoryRandomizer
from hubbub.noise import Bits

__all__ = ["OptimizedUnary", "SymmetricUnary", "unary_reports"]

_CELLS = 1 << 21


def unary_reports(hot: Array, size: int, p: Fraction, q: Fraction, bits: Bits | None) -> Array:
    """Packed rows of `size` bits: bit hot[i] of row i is 1 with probability p, every other with probability q."""
    out = np.empty((len(hot), -(-size // 8)), np.uint8)
    for part in chunks(len(hot), max(1, _CELLS // size)):
        true = hot[part]
        cells = coins(q, true.size * size, bits)
        cells[np.arange(true.size) * size + true.astype(np.int64)] = coins(p, true.size, bits)
        out[part] = np.packbits(cells.reshape(true.size, size), axis=1)
    return out


@dataclass(frozen=True)
class UnaryRandomizer(CategoryRandomizer):
    """Bits, of which the true one is 1 with probability p, every other with probability q."""

    @property
    def report_type(self) -> np.dtype[Any]:
        return bitmap_type(self.size)

    @property
    def parameters(self) -> dict[str, object]:
        return {"one_if_true": str(self.p), "one_if_false": str(self.q)}

    def chance(self, report: Any, data: int) -> Fraction:
        out = Fraction(1)
        for i in range(self.size):
            one = self.p if i == data else self.q
            out *= one if contains(report, i) else 1 - one
        return out

    def _client(self, places: Array, bits: Bits | None) -> Array:
        return unary_reports(places, self.size, self.p, self.q, bits)

    def _valid(self, reports: Any) -> tuple[Array, int]:
        return byte_rows(reports, self.size)

    def _supporters(self, reports: Array) -> Integers:
        return column_sums(reports, self.size)


class SymmetricRandomizer(UnaryRandomizer):
    """Every bit is flipped with the same probability."""

    @property
    def p(self) -> Fraction:
        return 1 - self.q

    @property
    def q(self) -> Fraction:
        return lie_chance(1, self.epsilon / 2)


class OptimizedRandomizer(UnaryRandomizer):
    """The true bit is a fair coin."""

    @property
    def p(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def q(self) -> Fraction:
        return lie_chance(1, self.epsilon)


class SymmetricUnary(FrequencyOracle):
    """Symmetric unary encoding. A report is a packed set of categories.

    >>> round(SymmetricUnary(1, 16).variance_factor, 2)
    3.92
    """

    name: ClassVar[str] = "symmetric_unary"

    randomizer: SymmetricRandomizer

    def __init__(self, epsilon: Number, categories: Categories) -> None:
        size, labels = named_categories(categories)
        super().__init__(SymmetricRandomizer(epsilon_above_zero(epsilon), size), labels)


class OptimizedUnary(FrequencyOracle):
    """Optimised unary encoding. A report is a packed set of categories.

    >>> round(OptimizedUnary(1, 16).variance_factor, 2)
    3.68
    """

    name: ClassVar[str] = "optimized_unary"

    randomizer: OptimizedRandomizer

    def __init__(self, epsilon: Number, categories: Categories) -> None:
        size, labels = named_categories(categories)
        super().__init__(OptimizedRandomizer(epsilon_above_zero(epsilon), size), labels)
