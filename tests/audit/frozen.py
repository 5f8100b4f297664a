"""Bits that start anew after every noise primitive, so that what follows a frozen output is the same on a neighbour."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.recording import _tape
from hubbub.noise import Bits
from seeded import SeededBits


class FrozenBits(Bits):
    """A seeded stream for each number of primitives that were called: replayed ones take no bits."""

    def __init__(self) -> None:
        self._tape: Any = None
        self._place = -1
        self._stream = SeededBits()

    def fill(self, buffer: NDArray[np.uint8]) -> None:
        tape = _tape.get()
        place = -1 if tape is None else len(tape.records)
        if tape is not self._tape or place != self._place:
            self._tape, self._place, self._stream = tape, place, SeededBits(f"after {place}")
        self._stream.fill(buffer)
