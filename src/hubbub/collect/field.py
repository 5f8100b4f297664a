"""Two prime fields, with arithmetic on whole arrays: Field64 and Field128 of draft-irtf-cfrg-vdaf-20, section 6.1.3.

    p = 2^64 - 2^32 + 1          p = 2^128 - 7 2^66 + 1          each of the form 2^a - c 2^b + 1, and 1 modulo 2^26

*Elements* are int64 arrays whose first axis holds limbs of 26 bits, least first; the last axis runs over reports. A
limb may be negative or a little too long ("loose"): sums need no carries, and `canonical` gives the one form in [0, p).

*Products* are Montgomery's (1985), R = 2^(26 limbs): `mul(a, b)` is a b / R modulo p, so of two factors one has to be
`scaled` (times R). Challenges and constants are scaled, measurements and proofs are not. Since p = 1 modulo 2^26, a
reduction step by one limb is: m = -t modulo 2^26, add m p, drop the limb, where m p = m 2^a - m c 2^b + m.

*Bounds.* Loose limbs are below 2^26 + 2^22 in size, after at most one sum or difference twice that. A column of a
product has 5 terms below 2^53.2 x 2; up to 64 products are added before a reduction, and 64 x 5 x 2^54.2 < 2^62.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError

__all__ = ["FIELD64", "FIELD128", "Bytes", "Elements", "Field", "Flags"]

Elements = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]

_WIDTH: Final = 26
_MASK: Final = (1 << _WIDTH) - 1
_TERMS: Final = 64


@dataclass(frozen=True)
class Field:
    """The field of p = 2^(8 size) - factor 2^shift + 1 elements, `size` bytes each on the wire.

    generator_order: of the roots of unity, as a power of two. root: a generator of all of them, 7^((p-1)/order).

    >>> FIELD64.modulus == 2**32 * 4294967295 + 1, FIELD128.modulus == 2**66 * 4611686018427387897 + 1
    (True, True)
    """

    size: int
    factor: int
    shift: int

    def __post_init__(self) -> None:
        if self.size not in (8, 16) or (self.modulus - 1) & _MASK:
            raise ParameterError("a field has elements of 8 or 16 bytes and a prime that is 1 modulo 2^26.")

    @property
    def modulus(self) -> int:
        """The prime p."""
        return (1 << 8 * self.size) - (self.factor << self.shift) + 1

    @cached_property
    def limbs(self) -> int:
        """How many limbs an element has."""
        return -(-8 * self.size // _WIDTH)

    @cached_property
    def _scale(self) -> int:
        return (1 << _WIDTH * self.limbs) % self.modulus

    # Conversions.

    def constants(self, values: Sequence[int], *, scaled: bool = False) -> Elements:
        """Integers as elements, shape (limbs, len(values), 1)."""
        factor = self._scale if scaled else 1
        reduced = [v * factor % self.modulus for v in values]
        rows = [[v >> _WIDTH * i & _MASK for v in reduced] for i in range(self.limbs)]
        return np.array(rows, np.int64).reshape(self.limbs, len(values), 1)

    def small(self, values: NDArray[Any]) -> Elements:
        """Integers in [0, 2^26) of any shape as elements."""
        out = np.zeros((self.limbs, *values.shape), np.int64)
        out[0] = values
        return out

    def integers(self, elements: Elements) -> list[int]:
        """The integers in [0, p) of elements of shape (limbs, k), k Python ints."""
        columns = elements.reshape(self.limbs, -1).T.tolist()
        return [sum(v << _WIDTH * i for i, v in enumerate(limbs)) % self.modulus for limbs in columns]

    def decode(self, encoded: Bytes) -> tuple[Elements, Flags]:
        """Elements (limbs, k, n) of bytes (n, k size), and which of the n rows hold nothing but integers below p."""
        words = np.ascontiguousarray(encoded).view("<u8")
        words = words.reshape(len(encoded), encoded.shape[1] // self.size, self.size // 8)
        words = words.transpose(2, 1, 0).astype(np.uint64, order="C")
        low, high = words[0], words[-1]
        out = np.empty((self.limbs, *low.shape), np.int64)
        mask = np.uint64(_MASK)
        parts = [low & mask, low >> np.uint64(26) & mask, low >> np.uint64(52)]
        if self.size == 8:
            good = low < np.uint64(self.modulus)
        else:
            top = np.uint64(self.modulus >> 64)
            good = (high < top) | ((high == top) & (low < np.uint64(self.modulus & 0xFFFFFFFFFFFFFFFF)))
            parts[2] |= (high << np.uint64(12)) & mask
            parts += [high >> np.uint64(14) & mask, high >> np.uint64(40)]
        for i, part in enumerate(parts):
            out[i] = part
        return out, np.asarray(good.all(axis=0))

    def encode(self, elements: Elements) -> Bytes:
        """Bytes (n, k size) of elements (limbs, k, n), in any form."""
        x = self.canonical(elements).astype(np.uint64)
        low = x[0] | x[1] << np.uint64(26) | x[2] << np.uint64(52)
        words = (
            [low] if self.size == 8 else [low, x[2] >> np.uint64(12) | x[3] << np.uint64(14) | x[4] << np.uint64(40)]
        )
        stacked = np.stack(words).transpose(2, 1, 0).astype("<u8", order="C")
        return stacked.reshape(len(stacked), stacked.shape[1] * stacked.shape[2]).view(np.uint8)

    # Arithmetic.

    def mul(self, a: Elements, b: Elements) -> Elements:
        """a b / R: the product, if one of the two is scaled; scaled, if both are."""
        shape = np.broadcast_shapes(a.shape[1:], b.shape[1:])
        columns = np.empty((2 * self.limbs, *shape), np.int64)
        part = np.empty((self.limbs, *shape), np.int64)
        np.multiply(a[0], b, out=columns[: self.limbs])
        columns[self.limbs :] = 0
        for i in range(1, self.limbs):
            np.multiply(a[i], b, out=part)
            columns[i : i + self.limbs] += part
        return self._reduced(columns)

    def dot(self, a: Elements, b: Elements) -> Elements:
        """The sum of products along the second axis: shapes (limbs, k, ...), result (limbs, ...)."""
        shape = np.broadcast_shapes(a.shape[1:], b.shape[1:])
        total = np.zeros((self.limbs, *shape[1:]), np.int64)
        a, b = np.broadcast_to(a, (self.limbs, *shape)), np.broadcast_to(b, (self.limbs, *shape))
        for start in range(0, shape[0], _TERMS):
            part = slice(start, start + _TERMS)
            columns = np.zeros((2 * self.limbs, *shape[1:]), np.int64)
            for i in range(self.limbs):
                for j in range(self.limbs):
                    columns[i + j] += np.einsum("k...,k...->...", a[i, part], b[j, part])
            total += self._reduced(columns)
        return self.loose(total)

    def scaled(self, a: Elements) -> Elements:
        """a R."""
        return self.mul(a, self._square.reshape(self.limbs, *(1,) * (a.ndim - 1)))

    @cached_property
    def _square(self) -> Elements:
        return self.constants([self._scale], scaled=True)

    def loose(self, a: Elements) -> Elements:
        """The same elements with loose limbs, of sums of up to 2^30 loose elements."""
        return self._carried(self._carried(a.copy()))

    def tidied(self, a: Elements) -> Elements:
        """As `loose`, in place, of sums of up to 16 loose elements."""
        return self._carried(a)

    def canonical(self, a: Elements) -> Elements:
        """The same elements as limbs of integers in [0, p)."""
        x = self._carried(self._carried(self._carried(a.copy())))
        # Now -p < value < 2^a: a last fold makes it whole, and p is taken off where it still fits.
        self._carry(x)
        self._fold(x)
        self._carry(x)
        less = x.copy()
        less[0] -= 1
        less[self.shift // _WIDTH] += self.factor << self.shift % _WIDTH
        self._carry(less)
        over = less[-1] >> self._top
        less[-1] &= (1 << self._top) - 1
        return np.where(over > 0, less, x)

    def is_zero(self, a: Elements) -> Flags:
        """Where elements are 0 modulo p, without the axis of limbs."""
        return np.asarray(~self.canonical(a).any(axis=0))

    @property
    def _top(self) -> int:
        return 8 * self.size - _WIDTH * (self.limbs - 1)

    def _reduced(self, t: Elements) -> Elements:
        """Montgomery's reduction of 2 limbs columns, in place."""
        low, high = self.shift // _WIDTH, 8 * self.size // _WIDTH
        drop, add = self.factor << self.shift % _WIDTH, 8 * self.size % _WIDTH
        m, part = np.empty(t.shape[1:], np.int64), np.empty(t.shape[1:], np.int64)
        for i in range(self.limbs):
            np.negative(t[i], out=m)
            m &= _MASK
            np.add(t[i], m, out=part)
            part >>= _WIDTH
            t[i + 1] += part
            np.multiply(m, drop, out=part)
            t[i + low] -= part
            m <<= add
            t[i + high] += m
        return self._carried(t[self.limbs :])

    def _carried(self, x: Elements) -> Elements:
        """Carries, then what lies above 2^a folded down by 2^a = c 2^b - 1. In place."""
        self._carry(x)
        self._fold(x)
        return x

    def _carry(self, x: Elements) -> None:
        part = np.empty(x.shape[1:], np.int64)
        for i in range(self.limbs - 1):
            np.right_shift(x[i], _WIDTH, out=part)
            x[i + 1] += part
            x[i] &= _MASK

    def _fold(self, x: Elements) -> None:
        over = x[-1] >> self._top
        x[-1] &= (1 << self._top) - 1
        x[0] -= over
        x[self.shift // _WIDTH] += over * (self.factor << self.shift % _WIDTH)

    # Roots of unity and polynomials by their values there.

    def root(self, n: int) -> int:
        """The principal n-th root of unity, n a power of two: 7^((p - 1) / n)."""
        if n < 1 or n & (n - 1) or (self.modulus - 1) % n:
            raise ParameterError(f"n = {n} was asked; roots of unity have a power of two for order.")
        return pow(7, (self.modulus - 1) // n, self.modulus)

    def roots(self, n: int) -> list[int]:
        """Its first n powers."""
        base, out = self.root(n), [1]
        for _ in range(n - 1):
            out.append(out[-1] * base % self.modulus)
        return out


FIELD64: Final = Field(size=8, factor=1, shift=32)
FIELD128: Final = Field(size=16, factor=7, shift=66)
