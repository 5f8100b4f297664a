"""Means of vectors in an l2 ball.

The vector is padded to D = 2^t coordinates, divided by the radius, and rotated by a public random rotation: signs,
then the Walsh-Hadamard matrix over sqrt(D). Of a rotated unit vector all coordinates lie within
c = min(1, sqrt(2 ln(200 D) / D)) with probability 99 % over the signs (Hoeffding and a union bound: 2 D e^(-c^2 D/2));
beyond that they are clamped. The client draws a coordinate uniformly and sends it with the one-bit response (`means`)
to its value in [-c, c]. The coordinate is independent of the vector, so the report costs epsilon.

The mean squared error of the mean is at most D^2 U^2 / n, U = c (e^epsilon+1)/(e^epsilon-1), about
8 d ln(200 d) / (epsilon^2 n) for small epsilon: optimal but for the logarithm (Duchi, Jordan, Wainwright 2018,
Proposition 3). Floats appear only before the client's coins and after the server's sums.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hubbub.accounting.amounts import Number, scale
from hubbub.errors import ParameterError
from hubbub.local.direct import integer_type
from hubbub.local.draws import Array, Floats, Integers, coins, lie_chance, uniform
from hubbub.local.means import GRID, LARGEST, check_steps
from hubbub.local.oracle import chunks, epsilon_above_zero, integer_reports, whole
from hubbub.local.randomizer import LocalOracle, Randomizer
from hubbub.noise import Bits, bernoulli

__all__ = ["BallMean", "BallTally", "VectorEstimate", "rotate"]


def rotate(vectors: Floats) -> Floats:
    """Rows times the symmetric orthogonal Walsh-Hadamard matrix; the row length is a power of two."""
    out = np.array(vectors, np.float64)
    half = 1
    while half < out.shape[1]:
        pairs = out.reshape(len(out), -1, 2, half)
        pairs[:, :, 0], pairs[:, :, 1] = pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]
        half *= 2
    return np.asarray(out / math.sqrt(out.shape[1]), np.float64)


@dataclass(frozen=True)
class VectorEstimate:
    """A mean vector, shape (d,), and the expectation of its squared l2 error, `squared_error`."""

    mean: Floats
    squared_error: float
    n: int
    dropped: int


@dataclass(frozen=True)
class BallRandomizer(Randomizer):
    """A client for the steps of D = `padded` rotated coordinates: one coordinate, and the one-bit response to its step.

    A report is twice the coordinate, plus the bit.
    """

    padded: int

    @property
    def clamp(self) -> float:
        """c, in units of the radius: a multiple of 2^-20, so that it is the same float everywhere."""
        return min(1.0, math.ceil(math.sqrt(2 * math.log(200 * self.padded) / self.padded) * GRID) / GRID)

    @property
    def lie(self) -> Fraction:
        """L, the chance that the bit is flipped."""
        return lie_chance(1, self.epsilon)

    @property
    def report_type(self) -> np.dtype[Any]:
        return integer_type(2 * self.padded)

    @property
    def parameters(self) -> dict[str, object]:
        return {"steps": GRID, "padded": self.padded, "clamp": self.clamp, "lie": str(self.lie)}

    def chance(self, report: int, data: Any) -> Fraction:
        """P(report | rotated steps of the vector), exactly."""
        share = Fraction(int(np.asarray(data).ravel()[int(report) // 2]), GRID)
        one = self.lie + (1 - 2 * self.lie) * share
        return (one if int(report) % 2 else 1 - one) / self.padded

    def release(self, data: Integers, *, bits: Bits | None = None) -> Array:
        """Reports for rows of steps, shape (n, D).

        Raises:
            ParameterError: a step is not one of 0 .. G.
        """
        check_steps(data)
        coordinate = uniform(self.padded, len(data), bits).astype(np.int64)
        share = data[np.arange(len(data)), coordinate] / GRID
        bit = bernoulli(share, bits=bits) ^ coins(self.lie, len(data), bits)
        return (2 * coordinate + bit).astype(self.report_type)


@dataclass(frozen=True, init=False, repr=False)
class BallMean(LocalOracle):
    """A client for vectors of `dimension` numbers with l2 norm at most `radius`; longer ones are shrunk to it.

    >>> BallMean(1, 100).report_bytes
    1
    """

    randomizer: BallRandomizer
    dimension: int
    radius: Fraction
    public_name: str

    name: ClassVar[str] = "ball_mean"

    def __init__(
        self, epsilon: Number, dimension: int, radius: Number = 1, public_name: str = "hubbub rotation 1"
    ) -> None:
        exact, size = epsilon_above_zero(epsilon), whole(dimension, "dimension", 1, 1 << 20)
        object.__setattr__(self, "randomizer", BallRandomizer(exact, 1 << (size - 1).bit_length()))
        object.__setattr__(self, "dimension", size)
        object.__setattr__(self, "radius", scale(radius, "radius"))
        if not Fraction(1, LARGEST) <= self.radius <= LARGEST:
            raise ParameterError("radius was asked beyond 1e-300 .. 1e300; use another unit.")
        object.__setattr__(self, "public_name", str(public_name))

    def __repr__(self) -> str:
        return f"BallMean({', '.join(f'{name}={getattr(self, name)!r}' for name in self.arguments)})"

    @property
    def arguments(self) -> dict[str, object]:
        """What the constructor was given, as plain values."""
        return {
            "epsilon": str(self.epsilon),
            "dimension": self.dimension,
            "radius": str(self.radius),
            "public_name": self.public_name,
        }

    def signs(self) -> Floats:
        """The public signs, shape (D,): -1 where the bits of SHA-256(public_name:0), (public_name:1) ... are set."""
        blocks = -(-self.randomizer.padded // 256)
        text = b"".join(hashlib.sha256(f"{self.public_name}:{i}".encode()).digest() for i in range(blocks))
        bits = np.unpackbits(np.frombuffer(text, np.uint8))[: self.randomizer.padded]
        return np.where(bits == 1, -1.0, 1.0)

    def steps(self, vectors: Any) -> Integers:
        """Rotated coordinates on the grid 0 .. G of [-c, c], shape (n, D). NaN and infinities count as 0."""
        rows = np.atleast_2d(np.asarray(vectors, np.float64))
        if rows.shape[1] != self.dimension:
            raise ParameterError(
                f"vectors have {rows.shape[1]} numbers each; the client was built for {self.dimension}."
            )
        # A caller's np.seterr must not turn an overflow, which depends on a person's vector, into an exception.
        with np.errstate(all="ignore"):
            share = np.clip((rotate(self._shrunk(rows) * self.signs()) / self.randomizer.clamp + 1) / 2, 0, 1)
        return np.floor(share * GRID + 0.5).astype(np.int64)

    def _shrunk(self, rows: Floats) -> Floats:
        """Rows in units of the radius, of norm at most 1, padded to D."""
        rows = np.where(np.isfinite(rows), rows, 0)
        # Each by its own largest number first: what is finite then stays finite, whatever the radius.
        largest = np.abs(rows).max(axis=1, keepdims=True)
        rows = np.where(largest > 0, rows / largest, 0.0)
        length = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
        wide = np.zeros((len(rows), self.randomizer.padded))
        wide[:, : self.dimension] = rows * np.minimum(largest / float(self.radius), 1 / length)
        return wide

    def privatize(self, vectors: Any, *, bits: Bits | None = None) -> Array:
        """Reports for vectors of shape (n, d), or one report for one vector."""
        rows = np.atleast_2d(np.asarray(vectors, np.float64))
        out = np.empty(len(rows), self.randomizer.report_type)
        for part in chunks(len(rows), max(1, (1 << 20) // self.randomizer.padded)):
            out[part] = self.randomizer.release(self.steps(rows[part]), bits=bits)
        return out if np.ndim(vectors) == 2 else out[0]

    def aggregate(self, reports: Any) -> BallTally:
        """Count reports; what no client can have sent is dropped and counted."""
        valid, dropped = integer_reports(reports, 2 * self.randomizer.padded)
        counts = np.bincount(valid.astype(np.int64), minlength=2 * self.randomizer.padded)
        return BallTally(self, counts.reshape(-1, 2), dropped)

    def estimate(self, reports: Any) -> VectorEstimate:
        """`aggregate` and `BallTally.estimate` at once."""
        return self.aggregate(reports).estimate()


@dataclass(frozen=True, eq=False)
class BallTally:
    """How often each coordinate was sent with each bit, shape (D, 2). Tallies of one client add."""

    oracle: BallMean
    counts: Integers
    dropped: int

    @property
    def n(self) -> int:
        """Valid reports."""
        return int(self.counts.sum())

    def __add__(self, other: BallTally) -> BallTally:
        if not isinstance(other, BallTally) or other.oracle != self.oracle:
            raise ParameterError("tallies of different oracles were added; add those of one oracle.")
        return BallTally(self.oracle, self.counts + other.counts, self.dropped + other.dropped)

    def __radd__(self, other: object) -> BallTally:
        if other == 0:  # so that sum() works
            return self
        return NotImplemented

    def estimate(self) -> VectorEstimate:
        """The mean of the rotated vectors, rotated back; unbiased but for clamping."""
        oracle, client, n = self.oracle, self.oracle.randomizer, max(self.n, 1)
        unit = client.clamp / float(1 - 2 * client.lie)
        rotated = client.padded * unit * (self.counts[:, 1] - self.counts[:, 0]) / n
        mean = (rotate(rotated[None, :])[0] * oracle.signs())[: oracle.dimension] * float(oracle.radius)
        share = oracle.dimension / client.padded
        error = (client.padded * unit * float(oracle.radius)) ** 2 / n * share
        return VectorEstimate(mean, error if self.n else math.inf, self.n, self.dropped)
