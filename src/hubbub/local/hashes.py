"""A strongly universal family of hashes (Dietzfelbinger 1996, "Universal hashing and k-wise independence").

h(x) = ((a x + b) mod 2^63) div 2^31 for x < 2^32 and a, b uniform below 2^63: for x != x' the pair (h(x), h(x')) is
uniform on pairs of 32-bit words. A word u falls into bucket floor(u g / 2^32) of g, which takes within one word of
2^32/g of them, so that the chance that two different x collide is exactly `collision(g)`, 1/g up to a factor
1 + (g/2^32)^2.

Here a and b are kept doubled, as even 64-bit words, so that arithmetic modulo 2^64 and its upper half do the work.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.local.draws import Array, Integers
from hubbub.noise import Bits, uniform_below

__all__ = ["MAX_BUCKETS", "bucket", "bucket_edges", "collision", "fresh_seeds", "public_bucket", "public_seeds"]

Words = NDArray[np.uint64]

MAX_BUCKETS = 1 << 16
_HALF = np.uint64(32)


def fresh_seeds(n: int, bits: Bits | None) -> tuple[Words, Words]:
    """n pairs (2a, 2b), random."""
    words = uniform_below(1 << 63, 2 * n, bits=bits).view(np.uint64) << np.uint64(1)
    return words[:n], words[n:]


def public_seeds(n: int, name: str) -> Words:
    """n words that everybody can compute: word i is the first 8 bytes of SHA-256(name + ":" + i), little-endian."""
    text = b"".join(hashlib.sha256(f"{name}:{i}".encode()).digest()[:8] for i in range(n))
    return np.frombuffer(text, "<u8").astype(np.uint64)


def public_bucket(seed: Any, x: Any, buckets: int) -> Array:
    """The bucket of each x under the public hashes with these seeds, broadcast: the upper half of
    mix(seed + 0x9E3779B97F4A7C15 (x+1)), mix being the finaliser of splitmix64 (Steele, Lea, Flood 2014).

    The strongly universal family is not used here: its values at three points depend on each other, which shows where
    many reports share a hash. These behave as random functions.
    """
    with np.errstate(over="ignore"):
        z = seed + np.uint64(0x9E3779B97F4A7C15) * (np.asarray(x).astype(np.uint64) + np.uint64(1))
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((((z ^ (z >> np.uint64(31))) >> _HALF) * np.uint64(buckets)) >> _HALF)


def bucket(a: Any, b: Any, x: Any, buckets: int) -> Array:
    """The bucket of each x, broadcast with the doubled seeds."""
    with np.errstate(over="ignore"):
        words = (a * np.asarray(x).astype(np.uint64) + b) >> _HALF
    return np.asarray((words * np.uint64(buckets)) >> _HALF)


def bucket_edges(buckets: int) -> list[int]:
    """The first word of each bucket, and 2^32: word u is in bucket y iff edges[y] <= u < edges[y+1]."""
    return [-((-y << 32) // buckets) for y in range(buckets + 1)]


def collision(buckets: int) -> Fraction:
    """The chance that two different inputs fall into one bucket."""
    edges = bucket_edges(buckets)
    return Fraction(sum((high - low) ** 2 for low, high in pairwise(edges)), 1 << 64)


def supporters(a: Words, b: Words, low: Words, width: Words, x: Words) -> Integers:
    """For each x, in how many of the reports (a, b, [low, low + width) of 64-bit words) the hash of x falls."""
    rows = max(1, (1 << 16) // max(x.size, 1))
    out = np.zeros(x.size, np.int64)
    cells = np.empty((rows, x.size), np.uint64)
    hits = np.empty((rows, x.size), np.bool_)
    shift = b - low
    for start in range(0, a.size, rows):
        stop = min(a.size, start + rows)
        part, hit = cells[: stop - start], hits[: stop - start]
        np.multiply(a[start:stop, None], x, out=part)
        part += shift[start:stop, None]
        np.less(part, width[start:stop, None], out=hit)
        out += np.count_nonzero(hit, axis=0)
    return out
