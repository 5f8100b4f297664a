"""MD5 (RFC 1321) of many short messages at once, in numpy: the first word of the digest.

All messages have the same length, at most 55 bytes, so each is one block of sixteen 32-bit words, of which most are the
same for all: those are Python ints and are folded into the round constants. The first word of the digest is final
after step 60 of 64. Every operation is on uint32, modulo 2^32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["LONGEST", "Words", "first_words"]

Words = NDArray[np.uint32]
LONGEST = 55

_SHIFTS = (7, 12, 17, 22) * 4 + (5, 9, 14, 20) * 4 + (4, 11, 16, 23) * 4 + (6, 10, 15, 21) * 4
_CONSTANTS = tuple(int(abs(math.sin(i + 1)) * 2**32) for i in range(64))
_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_FINAL_STEP = 61


def first_words(words: Sequence[Words | int], n: int) -> Words:
    """Word A of the MD5 digests of n padded blocks; each of the 16 words is one int, or an array of n."""
    a, b, c, d = (np.full(n, word, np.uint32) for word in _START)
    mixed, spare = np.empty(n, np.uint32), np.empty(n, np.uint32)
    for step in range(_FINAL_STEP):
        index = _mix(step, b, c, d, mixed)
        a += mixed
        word = words[index]
        if isinstance(word, int):
            a += np.uint32((word + _CONSTANTS[step]) & 0xFFFFFFFF)
        else:
            a += word
            a += np.uint32(_CONSTANTS[step])
        np.right_shift(a, np.uint32(32 - _SHIFTS[step]), out=spare)
        a <<= np.uint32(_SHIFTS[step])
        a |= spare
        a += b
        a, b, c, d = d, a, b, c
    b += np.uint32(_START[0])
    return b


def _mix(step: int, b: Words, c: Words, d: Words, out: Words) -> int:
    """The round's function of b, c and d into `out`; the index of the message word of this step."""
    match step // 16:
        case 0:
            np.bitwise_xor(c, d, out=out)
            out &= b
            out ^= d
            return step
        case 1:
            np.bitwise_xor(b, c, out=out)
            out &= d
            out ^= c
            return (5 * step + 1) % 16
        case 2:
            np.bitwise_xor(b, c, out=out)
            out ^= d
            return (3 * step + 5) % 16
        case _:
            np.invert(d, out=out)
            out |= b
            out ^= c
            return 7 * step % 16
