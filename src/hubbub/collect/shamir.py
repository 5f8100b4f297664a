"""Shamir's secret sharing (1979): any `threshold` of n shares give a secret of 32 bytes, fewer say nothing about it.

A polynomial of degree threshold - 1 over the integers modulo p = 2^521 - 1, uniform but for its value at 0, the secret;
share i is its value at i >= 1. Fewer than `threshold` values are uniform whatever the secret is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hubbub.errors import PolicyError
from hubbub.noise import Bits, uniform_below

__all__ = ["PRIME", "SHARE_SIZE", "joined", "split", "weights_at_zero"]

PRIME: Final = (1 << 521) - 1
SHARE_SIZE: Final = 66


def split(secret: bytes, places: Sequence[int], threshold: int, *, bits: Bits | None = None) -> dict[int, bytes]:
    """A share for each place (whole numbers from 1 on)."""
    coefficients = [int.from_bytes(secret, "little")]
    coefficients += [uniform_below(PRIME, bits=bits) for _ in range(threshold - 1)]
    shares = {}
    for place in places:
        value = 0
        for coefficient in reversed(coefficients):
            value = (value * place + coefficient) % PRIME
        shares[place] = value.to_bytes(SHARE_SIZE, "little")
    return shares


def weights_at_zero(places: Sequence[int]) -> dict[int, int]:
    """What to multiply the shares at these places by, so that their sum is the secret (Lagrange)."""
    out = {}
    for i in places:
        above, below = 1, 1
        for j in places:
            if j != i:
                above, below = above * j % PRIME, below * (j - i) % PRIME
        out[i] = above * pow(below, -1, PRIME) % PRIME
    return out


def joined(shares: Mapping[int, bytes], weights: Mapping[int, int]) -> bytes:
    """The secret of 32 bytes whose shares these are.

    Raises:
        PolicyError: they are not the shares of such a secret.
    """
    value = sum(int.from_bytes(shares[i], "little") * weight for i, weight in weights.items()) % PRIME
    if value >= 1 << 256:
        raise PolicyError("the shares that came do not belong together: some client sent a false one.")
    return value.to_bytes(32, "little")
