"""Hadamard response: report a row of a Hadamard matrix in which the category's column is likely +1.

K is the least power of two above k, H[y, c] = (-1)^popcount(y & c), and category v has column c = v + 1, which is not
constant. With probability 1 - L the report y is uniform on the K/2 rows with H[y, c] = +1, else on those with -1;
L = 1/(1+e^epsilon), rounded up (Acharya, Sun, Zhang 2019, section 3, one block). Two columns differ in half the rows:
p = 1 - L and q = 1/2. A report has log2 K bits, and the server needs one fast Walsh-Hadamard transform of the counts
of y, K log K in all. Good for epsilon up to about 1; its variance factor is ((e^epsilon+1)/(e^epsilon-1))^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hubbub.accounting.amounts import Number
from hubbub.local.direct import integer_type
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

__all__ = ["HadamardResponse", "walsh_hadamard"]


def walsh_hadamard(values: Integers) -> Integers:
    """sum over y of values[y] (-1)^popcount(y & c), for every c; the length is a power of two.

    >>> walsh_hadamard(np.array([1, 0, 0, 1]))
    array([2, 0, 0, 2])
    """
    out = np.array(values, np.int64)
    half = 1
    while half < out.size:
        pairs = out.reshape(-1, 2, half)
        pairs[:, 0], pairs[:, 1] = pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]
        half *= 2
    return out


@dataclass(frozen=True)
class HadamardRandomizer(CategoryRandomizer):
    """A row number below `rows`."""

    @property
    def rows(self) -> int:
        """K, a power of two above k."""
        return 1 << self.size.bit_length()

    @property
    def lie(self) -> Fraction:
        """L, the chance of a row with -1."""
        return lie_chance(1, self.epsilon)

    @property
    def p(self) -> Fraction:
        return 1 - self.lie

    @property
    def q(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def report_type(self) -> np.dtype[Any]:
        return integer_type(self.rows)

    @property
    def parameters(self) -> dict[str, object]:
        return {"rows": self.rows, "lie": str(self.lie)}

    def chance(self, report: Any, data: int) -> Fraction:
        odd = (int(report) & (data + 1)).bit_count() & 1
        return (self.lie if odd else 1 - self.lie) * 2 / self.rows

    def _client(self, places: Array, bits: Bits | None) -> Array:
        out = np.empty(len(places), self.report_type)
        for part in chunks(len(places), CHUNK):
            column = places[part].astype(np.int64) + 1
            row = uniform(self.rows, column.size, bits).astype(np.int64)
            odd = (np.bitwise_count(row & column) & 1).astype(np.bool_)
            wrong = odd != coins(self.lie, column.size, bits)
            # Flipping a bit that the column holds changes the sign, and maps the one half onto the other.
            out[part] = row ^ np.where(wrong, column & -column, 0)
        return out

    def _valid(self, reports: Any) -> tuple[Array, int]:
        return integer_reports(reports, self.rows)

    def _supporters(self, reports: Array) -> Integers:
        seen = np.zeros(self.rows, np.int64)
        for part in chunks(len(reports), 1 << 20):
            seen += np.bincount(reports[part], minlength=self.rows)
        return (len(reports) + walsh_hadamard(seen)[1 : self.size + 1]) // 2


class HadamardResponse(FrequencyOracle):
    """Hadamard response. A report is a row number below `randomizer.rows`.

    >>> oracle = HadamardResponse(1, 100)
    >>> oracle.randomizer.rows, round(oracle.variance_factor, 2)
    (128, 4.68)
    """

    name: ClassVar[str] = "hadamard"

    randomizer: HadamardRandomizer

    def __init__(self, epsilon: Number, categories: Categories) -> None:
        size, labels = named_categories(categories)
        super().__init__(HadamardRandomizer(epsilon_above_zero(epsilon), size), labels)
