"""Composition on the lattice: one tilted Fourier convolution, with every error counted.

Measures p_c on hZ, composed n_c times, have P = conv_c p_c^(n_c), and

    delta(epsilon) = P(infinity) + sum over l > epsilon of P(loss) (1 - e^(epsilon - loss)).

Tilt: w_c = p_c e^(theta loss) / M_c with M_c its sum; then P(loss) = e^K e^(-theta loss) W(loss), K = sum
n_c ln M_c, and W, the convolution of the w_c, is a probability whose mean is near epsilon when theta is the
saddle point. So W is needed only to a *relative* accuracy of its own scale, and delta = 1e-30 is as easy as
1e-3.

Errors, all counted in `Convolved`:
- the window: W is computed on N points, hence modulo N h. Mass outside the window is bounded by a second tilt
  (Chernoff); above, what lies right of it is added; below, what was wrapped in is taken off where it would
  weigh most;
- round-off: each transform value is within 8 u (log2 N + 2) of the truth (a path of log2 N butterflies; the
  inputs sum
  to 1), powers by squaring multiply that by n_c; the sum of these over all frequencies, divided by N,
  bounds the error of every W(loss);
- masses, tilts and logarithms: relative errors, multiplied out over the number of compositions;
- losses known within `moved`: epsilon is moved by the sum of these.

A sum over the lattice of e^(-theta loss)(1 - e^(epsilon - loss)) over l > epsilon is at most e^(-theta
epsilon) (1 / (h theta (theta+1)) + peak), peak = theta^theta / (theta+1)^(theta+1) its largest term.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from hubbub.accounting.lattice import MOST_POINTS, Measure, too_wide
from hubbub.accounting.pairs import UNIT

__all__ = ["Convolved", "Part", "convolve", "log_mgf", "saddle"]

Array = NDArray[np.float64]
Part = tuple[Measure, int]
# Mass of W allowed outside the window, as a natural logarithm.
_OUTSIDE = -37.0
# The second tilts that are tried for it, in deviations, and how many lattice points are one block of their sums.
_FACTORS = (0.7, 1.5, 3.0, 5.0, 8.5)
_BLOCK = 256


@dataclass(frozen=True)
class Convolved:
    """The composed loss: tilted masses `w` at (first + k) h, and its errors. See the head of this file."""

    h: float
    first: int
    w: Array
    theta: float
    scale: float
    infinite: float
    relative: float
    absolute: float
    wrapped: float
    right: float
    moved: float
    floor: float

    def above(self, epsilon: float) -> float:
        """At least delta(epsilon)."""
        at = epsilon - self.moved
        if at < self.floor:
            return 1.0
        total, at_edge = self._sum(at), self._right(at)
        if self.scale - self.theta * at > 700:
            return 1.0
        ceiling = math.exp(self.scale - self.theta * at)
        error = self.absolute * self._weight()
        value = ceiling * (max(0.0, total + error) + at_edge) * (1 + self.relative)
        value += self.infinite * (1 + self.relative)
        return min(1.0, value * (1 + 1e-12))

    def below(self, epsilon: float) -> float:
        """At most delta(epsilon)."""
        at = epsilon + self.moved
        total = self._sum(at) - self.absolute * self._weight() - self.wrapped * _peak(self.theta)
        value = math.exp(min(self.scale - self.theta * at, 700.0)) * max(0.0, total) * (1 - self.relative)
        value += self.infinite * (1 - self.relative)
        return max(0.0, value * (1 - 1e-12))

    def middle(self, epsilon: float) -> tuple[float, float]:
        """delta(epsilon) without its errors, and the derivative of its logarithm."""
        k = self._start(epsilon)
        gap = (self.first + k + np.arange(self.w.size - k)) * self.h - epsilon
        base = self.w[k:] * np.exp(-self.theta * gap)
        value, slope = float(np.sum(-base * np.expm1(-gap))), -float(np.sum(base * np.exp(-gap)))
        outer = math.exp(min(self.scale - self.theta * epsilon, 700.0))
        delta = outer * value + self.infinite
        return delta, outer * slope / delta if delta > 0 else -self.theta

    def _start(self, epsilon: float) -> int:
        return min(max(0, math.floor(epsilon / self.h) - self.first + 1), self.w.size)

    def _sum(self, epsilon: float) -> float:
        """sum of W(loss) e^(-theta (loss - epsilon)) (1 - e^(epsilon - loss)) over the window's l >
        epsilon.
        """
        k = self._start(epsilon)
        gap = (self.first + k + np.arange(self.w.size - k)) * self.h - epsilon
        gap = np.maximum(gap, 0.0)
        return float(np.sum(self.w[k:] * np.exp(-self.theta * gap) * -np.expm1(-gap)))

    def _right(self, epsilon: float) -> float:
        edge = (self.first + self.w.size) * self.h
        return self.right * math.exp(-self.theta * max(0.0, edge - epsilon))

    def _weight(self) -> float:
        """A bound on the sum of the weights of all lattice points in the window."""
        theta = self.theta
        every = float(self.w.size)
        return min(every, 1 / (self.h * theta * (theta + 1)) + _peak(theta)) if theta > 0 else every


def _peak(theta: float) -> float:
    return math.exp(theta * math.log(theta) - (theta + 1) * math.log1p(theta)) if theta > 0 else 1.0


def log_mgf(measure: Measure, s: float) -> tuple[float, float, float]:
    """K(s) = ln sum p e^(s loss), and its first two derivatives."""
    loss = (measure.first + np.arange(measure.mass.size)) * measure.h
    with np.errstate(divide="ignore"):
        top = s * float(loss[int(np.argmax(np.log(measure.mass) + s * loss))])
    w = measure.mass * np.exp(np.minimum(s * loss - top, 700.0))
    total = float(w.sum())
    if total <= 0:
        return -math.inf, 0.0, 0.0
    mean = float(w @ loss) / total
    spread = loss - mean
    return top + math.log(total), mean, float(w @ (spread * spread)) / total


def _total(parts: Sequence[Part], s: float) -> tuple[float, float, float]:
    values = [(n, log_mgf(m, s)) for m, n in parts]
    return tuple(sum(n * v[i] for n, v in values) for i in range(3))  # type: ignore[return-value]


def saddle(parts: Sequence[Part], log_delta: float | None, epsilon: float | None = None) -> float:
    """The theta > 0 at which the tilted mean is where it is needed: at epsilon, or where delta is about
    e^log_delta.
    """

    def excess(theta: float) -> float:
        k, mean, variance = _total(parts, theta)
        if epsilon is not None:
            return epsilon - mean
        normal = 0.5 * math.log(2 * math.pi * max(variance, 1e-300) + 1.0)
        return k - theta * mean - math.log(theta * (1 + theta)) - normal - (log_delta or 0.0)

    # Losses that end have no saddle point near their end: there the tilt stays where exponents are moderate.
    reach = sum(n * m.h * (m.mass.size - 1) for m, n in parts)
    most = max(600.0 / max(reach, 1e-12), 25.0 / math.sqrt(max(_total(parts, 0.0)[2], 1e-24)))
    low, high = 1e-4, min(1.0, most)
    while excess(high) > 0 and high < most:
        low, high = high, min(high * 4, most)
    while excess(low) < 0 and low > 1e-5:
        low /= 10
    for _ in range(20):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        if high < 1.05 * low:
            break
    return math.sqrt(low * high)


def convolve(parts: Sequence[Part], theta: float) -> Convolved:
    """Composes measures that share one h. Raises ParameterError when the window exceeds the memory
    allowed.
    """
    h = parts[0][0].h
    tilted = [_tilt(m, theta) for m, _ in parts]
    counts = [n for _, n in parts]
    scale = math.fsum(n * t[1] for n, t in zip(counts, tilted, strict=True))
    deviation = math.sqrt(max(sum(n * t[2][1] for n, t in zip(counts, tilted, strict=True)), 0.0))
    lowest = sum(n * m.first for m, n in parts)
    highest = lowest + sum(n * (m.mass.size - 1) for m, n in parts)
    start, stop = _window(parts, tilted, theta, deviation, lowest, highest)
    points = max(16, stop - start + 2)
    size = fft.next_fast_len(points, real=True)
    if size > MOST_POINTS:
        raise too_wide(size, "the composition")
    w, absolute = _convolve([t[0] for t in tilted], counts, size)
    w = np.roll(w, -((start - lowest) % size))
    # Nothing is outside a window that holds the whole support.
    outside = 0.0 if size >= highest - lowest + 1 else math.exp(_OUTSIDE + 1e-6)
    relative = sum(n * UNIT * (t[3] + 2 * abs(t[1]) + 12) for n, t in zip(counts, tilted, strict=True))
    relative = math.expm1(relative + UNIT * (2 * abs(scale) + 1000.0) + 64 * UNIT * math.log2(size))
    moved = sum(n * m.moved for m, n in parts)
    return Convolved(
        h,
        start,
        w,
        theta,
        scale,
        _infinite(parts),
        relative,
        absolute,
        2 * outside,
        outside,
        moved,
        start * h if start > lowest else -math.inf,
    )


def _tilt(measure: Measure, theta: float) -> tuple[Array, float, tuple[float, float], float]:
    """Normalised tilted masses, ln of their sum, their mean and variance, and the largest exponent that
    matters.
    """
    loss = (measure.first + np.arange(measure.mass.size)) * measure.h
    # Masses are zero or at least 1e-280, so no exponent relative to the heaviest term exceeds 700.
    with np.errstate(divide="ignore"):
        heaviest = int(np.argmax(np.log(measure.mass) + theta * loss))
    top = theta * float(loss[heaviest])
    w = measure.mass * np.exp(np.minimum(theta * loss - top, 700.0))
    total = float(w.sum())
    w /= total
    mean = float(w @ loss)
    spread = loss - mean
    exponent = float(np.max(np.abs(theta * loss - top)[w > 1e-290], initial=0.0)) + abs(top)
    return w, top + math.log(total), (mean, float(w @ (spread * spread))), exponent


def _window(
    parts: Sequence[Part],
    tilted: Sequence[tuple[Array, float, tuple[float, float], float]],
    theta: float,
    deviation: float,
    lowest: int,
    highest: int,
) -> tuple[int, int]:
    """Ends of a window outside which, on either side, W has at most e^_OUTSIDE (Chernoff)."""
    h = parts[0][0].h
    best_right, best_left = math.inf, -math.inf
    tries = np.array(_FACTORS) / max(deviation, h)
    both = np.concatenate((tries, -tries))
    grown = [n * _grown(m, t[0], both, theta, t[1]) for (m, n), t in zip(parts, tilted, strict=True)]
    for s, up, down in zip(tries, *np.split(np.sum(grown, axis=0), 2), strict=True):
        best_right = min(best_right, float((up - _OUTSIDE) / s))
        best_left = max(best_left, -float((down - _OUTSIDE) / s))
    start = max(lowest, math.floor(best_left / h) - 1)
    return start, min(highest, math.ceil(best_right / h) + 1)


def _grown(measure: Measure, w: Array, shifts: Array, theta: float, k0: float) -> Array:
    """At least K(theta + s) - K(theta) at each shift s, K = ln sum p e^(s loss), w the masses tilted at theta.

    On a lattice e^(s loss) is a product of a block's and a place's, so that all shifts are one product of matrices. Its
    terms are positive: it is right within u times the exponents and the lengths of the sums, which is added.
    """
    h, size = measure.h, w.size
    rows = -(-size // _BLOCK)
    largest = float(np.max(np.abs(shifts))) * (abs(measure.first) + rows * _BLOCK) * h
    if largest > 200.0:
        return np.asarray([log_mgf(measure, theta + s)[0] - k0 for s in shifts.tolist()])
    matrix = np.pad(w, (0, rows * _BLOCK - size)).reshape(rows, _BLOCK)
    inside = np.exp(np.outer(np.arange(_BLOCK) * h, shifts))
    at = np.exp(np.outer((measure.first + _BLOCK * np.arange(rows)) * h, shifts))
    logs = np.log(np.sum((matrix @ inside) * at, axis=0))
    return np.asarray(logs + UNIT * (8 * largest + 2 * (_BLOCK + rows) + 64))


def _convolve(weights: Sequence[Array], counts: Sequence[int], size: int) -> tuple[Array, float]:
    """The cyclic convolution power, and a bound on the error of each of its values."""
    unit = 8 * UNIT * (math.log2(size) + 2)
    product: NDArray[np.complex128] | None = None
    log_bound = np.zeros(size // 2 + 1)
    growth = np.zeros(size // 2 + 1)
    for w, n in zip(weights, counts, strict=True):
        folded = w if w.size <= size else np.bincount(np.arange(w.size) % size, w, size)
        spectrum = fft.rfft(folded, size)
        bound = np.abs(spectrum) + unit
        log_bound += n * np.log(bound)
        growth += n * (unit / bound + 4 * UNIT)
        power = _power(spectrum, n)
        product = power if product is None else product * power
    assert product is not None
    # |true - computed| <= prod bound^n * growth, and never more than twice the product; 1.01 for these
    # very sums.
    total = 2 * float(np.sum(np.exp(log_bound) * (np.minimum(growth, 2.0) + unit)))
    return fft.irfft(product, size), 1.01 * total / size + 1e-280


def _power(x: NDArray[np.complex128], n: int) -> NDArray[np.complex128]:
    """x^n by squaring: its relative error is at most about 4 u n, which `numpy.power` does not promise."""
    result: NDArray[np.complex128] | None = None
    square = x
    while n:
        if n & 1:
            result = square.copy() if result is None else result * square
        n >>= 1
        if n:
            square = square * square
    assert result is not None
    return result


def _infinite(parts: Sequence[Part]) -> float:
    """Mass at infinity of the composition: prod (F + I)^n - prod F^n for finite masses F and infinite
    ones I.
    """
    whole = math.fsum(n * math.log(float(m.mass.sum()) + m.infinite) for m, n in parts)
    if not any(m.infinite for m, _ in parts):
        return 0.0
    finite = math.fsum(n * math.log1p(-m.infinite / (float(m.mass.sum()) + m.infinite)) for m, n in parts)
    return math.exp(whole) * -math.expm1(finite)
