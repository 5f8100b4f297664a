"""Bit sources for tests: reproducible, replayed, counted."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from hubbub.noise import Bits


class SeededBits(Bits):
    """A fixed stream for a seed (PCG64 output, keyed by SHA-256 of the seed). `drawn` counts the bytes."""

    def __init__(self, seed: int | str = 0) -> None:
        key = int.from_bytes(hashlib.sha256(str(seed).encode()).digest(), "little")
        self._generator = np.random.PCG64(key)
        self.drawn = 0

    def fill(self, buffer: NDArray[np.uint8]) -> None:
        n = buffer.size
        self.drawn += n
        words = np.atleast_1d(self._generator.random_raw(-(-n // 8)))
        buffer[:] = words.view(np.uint8)[:n]


class ReplayBits(Bits):
    """Hands out given bytes first, then those of a seeded stream."""

    def __init__(self, first: bytes, seed: int | str = 0) -> None:
        self._first = first
        self._rest = SeededBits(seed)

    def fill(self, buffer: NDArray[np.uint8]) -> None:
        given, self._first = self._first[: buffer.size], self._first[buffer.size :]
        buffer[: len(given)] = np.frombuffer(given, np.uint8)
        if len(given) < buffer.size:
            rest = np.empty(buffer.size - len(given), np.uint8)
            self._rest.fill(rest)
            buffer[len(given) :] = rest
