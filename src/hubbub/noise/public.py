"""Numbers that look random and are a function of what is public already: for choices that nobody has to guess.

A start of k-means, a resample of released counts, a spread of points for a plot. Not noise: whoever knows what was
released knows them. Noise comes from `hubbub.noise.Bits` alone.
"""

from __future__ import annotations

import hashlib

import numpy as np

__all__ = ["public_generator"]


def public_generator(released: bytes) -> np.random.Generator:
    """A generator that gives the same numbers whenever it is made from the same public bytes.

    >>> public_generator(b"1").random() == public_generator(b"1").random()
    True
    """
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(released).digest(), "big")))
