"""Hardness of synthetic data: rows that nobody can make up (`docs/theorems.md`, A8).

One signing key sk*, n rows (m_i, S(sk*, m_i), vk*) with random messages m_i. For each verification key vk a counting
query asks which share of the rows holds a valid signature under vk; under vk* it is 1. A synthetic table that answers
it well has a valid row. Its message is either new, and the curator forged a signature, or one of the m_i. Exchange
row i for one with a fresh message: then m_i is independent of the output, and stands in one of its r rows with
probability r 2^-b at most, b the bits of a message. So an (epsilon, delta)-DP curator shows a given message with
probability at most

    e^epsilon r 2^-b + delta,         and any of the n with at most n (e^epsilon r 2^-b + delta):

no efficient private curator makes accurate rows (Dwork, Naor, Reingold, Rothblum, Vadhan 2009). It is rows that are
hard, not answers: the same query, asked, is the count n with Laplace noise, within ln(1/beta)/(epsilon n) of 1.

By the PCP theorem the verification can be told by conjunctions of two literals on longer rows: if one-way functions
exist, there is an alpha > 0 such that no polynomial-time (1, 1/10n)-DP mechanism with n = poly(d) makes a synthetic
table that answers all of them within alpha (Ullman, Vadhan 2011). That is a theorem about rows of impractical length;
it is stated here, and not run.

Signatures are Ed25519, messages 16 random bytes; a row is 112 bytes: message, signature, verification key.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting.amounts import Number, amount, probability
from hubbub.errors import ParameterError
from hubbub.mechanisms import LaplaceMechanism
from hubbub.mechanisms.calibrate import whole_number
from hubbub.noise import Bits, system_bits

__all__ = ["Hardness", "SignedRows", "copied_chance", "hardness_report", "signed_rows", "valid_share"]

Bytes = NDArray[np.uint8]
ROW: Final = 112
_MESSAGE, _SIGNATURE, _KEY = slice(0, 16), slice(16, 80), slice(80, 112)
_BITS: Final = 128


@dataclass(frozen=True, eq=False)
class SignedRows:
    """Rows of shape (n, 112), all signed with one key, and the key that verifies them."""

    rows: Bytes
    key: bytes

    @property
    def messages(self) -> list[str]:
        """The messages, as hexadecimal texts."""
        return _messages(self.rows)


def _messages(rows: Bytes) -> list[str]:
    return [row[_MESSAGE].tobytes().hex() for row in rows]


def signed_rows(n: int, *, bits: Bits | None = None) -> SignedRows:
    """n rows with random messages, signed with a fresh Ed25519 key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    number, source = whole_number(n, "n"), system_bits() if bits is None else bits
    private = Ed25519PrivateKey.from_private_bytes(source.u64(4).tobytes())
    key = private.public_key().public_bytes_raw()
    rows = np.empty((number, ROW), np.uint8)
    rows[:, _MESSAGE] = source.u64(2 * number).view(np.uint8).reshape(number, 16)
    for row in rows:
        row[_SIGNATURE] = np.frombuffer(private.sign(row[_MESSAGE].tobytes()), np.uint8)
    rows[:, _KEY] = np.frombuffer(key, np.uint8)
    return SignedRows(rows, key)


def valid_share(rows: Any, key: bytes) -> float:
    """The share of rows that hold a valid signature under a verification key; other keys' rows are not valid."""
    given = _rows(rows)
    return float(_valid(given, key).mean()) if len(given) else 0.0


def _valid(rows: Bytes, key: bytes) -> NDArray[np.bool_]:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    public, valid = Ed25519PublicKey.from_public_bytes(key), np.zeros(len(rows), bool)
    for i, row in enumerate(rows):
        if row[_KEY].tobytes() != key:
            continue
        try:
            public.verify(row[_SIGNATURE].tobytes(), row[_MESSAGE].tobytes())
        except InvalidSignature:
            continue
        valid[i] = True
    return valid


def _rows(values: Any) -> Bytes:
    array = np.asarray(values)
    fits = array.ndim == 2 and array.shape[1] == ROW and array.dtype.kind in "iu"
    if not fits or array.min(initial=0) < 0 or array.max(initial=0) > 255:
        raise ParameterError(f"rows have shape {array.shape}; give bytes, {ROW} in a row.")
    return array.astype(np.uint8)


def copied_chance(n: int, rows: int, *, epsilon: Number, delta: Number = 0) -> float:
    """n (e^epsilon r 2^-128 + delta), at most 1: how often any of n messages stands among r private rows.

    >>> copied_chance(1000, 1000, epsilon=1) < 1e-32
    True
    """
    one = math.exp(min(700.0, float(amount(epsilon, "epsilon")))) * rows * 2.0**-_BITS
    return min(1.0, n * (one + float(probability(delta, "delta"))))


@dataclass(frozen=True)
class Hardness:
    """What a curator made of signed rows.

    truth, synthetic: the shares of valid rows. counted: the same query answered with Laplace noise at `epsilon`, and
    `within`, its error at 95 %. copied: the share of the true messages that stand in the synthetic rows.
    """

    truth: float
    synthetic: float
    counted: float
    within: float
    copied: float
    n: int
    rows: int

    @property
    def success(self) -> float:
        """The share of valid synthetic rows."""
        return self.synthetic

    def ceiling(self, epsilon: Number, delta: Number = 0) -> float:
        """How often an efficient private curator has any valid row, if nobody forges a signature."""
        return copied_chance(self.n, self.rows, epsilon=epsilon, delta=delta)

    def plot(self, ax: Any = None) -> Any:
        """Three bars: the truth, the synthetic rows, the count that was asked."""
        from hubbub import plots

        values = [self.truth, self.synthetic, self.counted]
        off = [0.0, 0.0, self.within]
        low, high = ([v + sign * o for v, o in zip(values, off, strict=True)] for sign in (-1, 1))
        names, title = ["true rows", "synthetic rows", "the count, asked"], "Valid signatures"
        return plots.whiskers(
            names, values, low, high, kind="bars", title=title, xlabel="", ylabel="share of rows", ax=ax
        )


def hardness_report(
    curator: Callable[[Bytes], Any], *, n: int = 200, epsilon: Number = 1, bits: Bits | None = None
) -> Hardness:
    """Runs a curator, who makes rows of 112 bytes from n signed ones, and counts; epsilon is that of the count."""
    data = signed_rows(n, bits=bits)
    made = _rows(curator(data.rows.copy()))
    count = LaplaceMechanism(sensitivity=1, epsilon=epsilon)
    valid = int(_valid(data.rows, data.key).sum())
    return Hardness(
        truth=valid / n,
        synthetic=valid_share(made, data.key),
        counted=count.release(valid, bits=bits) / n,
        within=float(count.accuracy("0.05")) / n,
        copied=len(set(data.messages) & set(_messages(made))) / n,
        n=n,
        rows=len(made),
    )
