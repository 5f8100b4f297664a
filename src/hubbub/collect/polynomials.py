"""Polynomials given by their values at roots of unity ("Lagrange basis"): draft-irtf-cfrg-vdaf-20, section 6.1.2.

Let a be the principal root of order N. `doubled` turns the values of a polynomial of degree below N at a^0 .. a^(N-1)
into those at the 2N powers of a root of order 2N: an inverse transform, a shift by that root, a transform (radix two,
Cooley and Tukey 1965).

*Values anywhere.* A polynomial of degree below N with the values v_i at a^i has at t the value

    sum_i v_i l_i(t),    l_i(t) = 1/N sum_m t^m a^(-im):    a transform of the powers of t, and no division.

If its degree is below N - 1, the values sum to 0 with weights a^i, so the last one is v_(N-1) = - sum_i v_i a^(i+1),
and the weights of the others are l_i(t) - a^(i+1) l_(N-1)(t). The draft's own recursion computes the same elements.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hubbub.collect.field import Elements, Field

__all__ = ["doubled", "next_power_of_two", "weights_at"]


def next_power_of_two(n: int) -> int:
    """The smallest power of two at or above n >= 1."""
    return 1 << (n - 1).bit_length()


@lru_cache(maxsize=256)
def _powers(field: Field, base: int, count: int, first: int = 1) -> Elements:
    """first, first base, first base^2, ... scaled: (limbs, count, 1)."""
    out = [first % field.modulus]
    for _ in range(count - 1):
        out.append(out[-1] * base % field.modulus)
    return field.constants(out, scaled=True)


def _like(constants: Elements, other: Elements) -> Elements:
    return constants.reshape(*constants.shape[:2], *(1,) * (other.ndim - 2))


@lru_cache(maxsize=64)
def _reversed_bits(n: int) -> list[int]:
    """0 .. n-1 with their bits in reverse order."""
    return [0] if n == 1 else [2 * i for i in _reversed_bits(n // 2)] + [2 * i + 1 for i in _reversed_bits(n // 2)]


def _transform(field: Field, a: Elements, root: int) -> Elements:
    """Values at the powers of a root of coefficients along the second axis: all butterflies of a level at once."""
    n, rest = a.shape[1], a.shape[2:]
    x, size = a[:, _reversed_bits(n)], 2
    while size <= n:
        halves = x.reshape(field.limbs, n // size, 2, size // 2, *rest)
        odd = halves[:, :, 1]
        if size > 2:
            turns = _powers(field, pow(root, n // size, field.modulus), size // 2)
            odd = field.mul(odd, turns.reshape(field.limbs, 1, size // 2, *(1,) * len(rest)))
        out = np.empty_like(halves)
        np.add(halves[:, :, 0], odd, out=out[:, :, 0])
        np.subtract(halves[:, :, 0], odd, out=out[:, :, 1])
        x, size = field.tidied(out).reshape(field.limbs, n, *rest), 2 * size
    return x


def _inverse(field: Field, root: int) -> int:
    return pow(root, -1, field.modulus)


def doubled(field: Field, values: Elements) -> Elements:
    """Values (limbs, N, ...) at the powers of a root of order N, as (limbs, 2N, ...) at those of a root of order 2N."""
    n = values.shape[1]
    root, shift = field.root(n), field.root(2 * n)
    coefficients = _transform(field, values, _inverse(field, root))
    turned = field.mul(coefficients, _like(_powers(field, shift, n, _inverse(field, n)), values))
    odd = _transform(field, turned, root)
    return np.stack([values, odd], axis=2).reshape(field.limbs, 2 * n, *values.shape[2:])


def weights_at(field: Field, t: Elements, order: int, *, short: bool = False) -> Elements:
    """R l_i(t), shape (limbs, order, n), at scaled points t of shape (limbs, n).

    short: of a polynomial of degree below order - 1, by its first order - 1 values: (limbs, order - 1, n).
    """
    powers = np.broadcast_to(field.constants([_inverse(field, order)], scaled=True), (field.limbs, 1, t.shape[-1]))
    step = t[:, None]
    while powers.shape[1] < order:
        powers = np.concatenate([powers, field.mul(powers, step)], axis=1)
        step = field.mul(step, step)
    root = field.root(order)
    weights = _transform(field, powers, _inverse(field, root))
    if not short:
        return weights
    return field.loose(weights[:, :-1] - field.mul(weights[:, -1:], _powers(field, root, order - 1, root)))
