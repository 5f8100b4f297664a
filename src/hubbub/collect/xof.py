"""XofTurboShake128 (draft-irtf-cfrg-vdaf-20, section 6.2.1), over many seeds at once.

TurboSHAKE128 (RFC 9861, section 2.1) with domain byte 1, of  len(dst) || dst || len(seed) || seed || binder.  A field
element is read from the next 8 or 16 bytes of the stream; bytes that hold the prime or more are passed over, which
happens to one element in 2^32 of Field64 and to one in 2^59 of Field128. The stream is pycryptodome's; it is an
optional part of hubbub (the extra `collect`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from hubbub.collect.field import Bytes, Elements, Field
from hubbub.errors import PolicyError, how_to_install

__all__ = ["SEED_SIZE", "derive_seeds", "expand", "expand_into_field", "prefix"]

SEED_SIZE: Final = 32

Binders = Iterable[bytes]


def _turboshake() -> Callable[..., Any]:
    try:
        from Crypto.Hash import TurboSHAKE128
    except ImportError:
        raise PolicyError(
            f"Prio3 takes its hash function from pycryptodome, which is not installed. {how_to_install('collect')}"
        ) from None
    return TurboSHAKE128.new


def prefix(dst: bytes) -> bytes:
    """What stands before the seed: the tag's length and the tag, and the length of a seed of 32 bytes."""
    return len(dst).to_bytes(2, "little") + dst + bytes([SEED_SIZE])


def _rows(seeds: Bytes) -> list[bytes]:
    return [row.tobytes() for row in seeds]


def expand(dst: bytes, seeds: Bytes, binders: Binders, length: int) -> Bytes:
    """The first `length` bytes of the stream of each seed: (n, 32) and n binders give (n, length)."""
    new, head = _turboshake(), prefix(dst)
    streams = [new(domain=1, data=head + s + b).read(length) for s, b in zip(_rows(seeds), binders, strict=True)]
    return np.frombuffer(b"".join(streams), np.uint8).reshape(len(streams), length)


def derive_seeds(dst: bytes, seeds: Bytes, binders: Binders) -> Bytes:
    """A new seed from each, (n, 32)."""
    return expand(dst, seeds, binders, SEED_SIZE)


def _patiently(field: Field, message: bytes, length: int) -> bytes:
    """`length` encoded elements, with those at or above the prime passed over."""
    stream = _turboshake()(domain=1, data=message)
    kept: list[bytes] = []
    while len(kept) < length:
        encoded = stream.read(field.size)
        if int.from_bytes(encoded, "little") < field.modulus:
            kept.append(encoded)
    return b"".join(kept)


def expand_into_field(
    field: Field, dst: bytes, seeds: Bytes, binders: list[bytes], length: int
) -> tuple[Elements, Bytes]:
    """`length` field elements from each seed: (limbs, length, n), and the same as bytes (n, length size)."""
    encoded = expand(dst, seeds, binders, length * field.size)
    elements, good = field.decode(encoded)
    if not bool(good.all()):
        encoded = encoded.copy()
        for i in np.flatnonzero(~good):
            message = prefix(dst) + seeds[i].tobytes() + binders[i]
            encoded[i] = np.frombuffer(_patiently(field, message, length), np.uint8)
        elements, _ = field.decode(encoded)
    return elements, encoded
