"""What floats and clocks give away: the grid on which noise lies, and how many random bytes a draw takes.

Noise drawn in floating point does not reach every float, and which ones it reaches depends on the true value (Mironov
2012). Near 0 the sum 0 + noise keeps all bits of the noise, 1 + noise is rounded to a multiple of 2^-53: an output
finer than that was not made from 1. Large true values hide it, so 0 against 1 is the test. `float_support` asks for
the share of outputs finer than anything the neighbour gives in the same binade, and for the epsilon that the bits
alone show.

A sampler that takes more bytes for some values than for others gives values away to whoever sees the generator or the
clock. `bytes_drawn` counts them, value by value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.audit.black_box import LowerBound, lower_bound
from hubbub.audit.features import lowest_bit
from hubbub.audit.outputs import Run
from hubbub.errors import ParameterError
from hubbub.noise import Bits, system_bits

__all__ = ["BytesDrawn", "FloatSupport", "bytes_drawn", "float_support"]


@dataclass(frozen=True)
class FloatSupport:
    """What the bits of outputs say. identifying: the share finer than any output of the neighbour in the same binade.

    bound: the black box, looking at bits. grid: log2 of the coarsest step of which all outputs are multiples.
    """

    identifying: float
    grid: float
    bound: LowerBound


def float_support(
    run: Run,
    d: Any = 0,
    d_prime: Any = 1,
    *,
    samples: int = 100_000,
    confidence: float = 0.95,
    seconds: float = 20,
) -> FloatSupport:
    """Look for outputs that only one of two neighbours can give, by their last bits.

    run: run(data, size) -> `size` numbers. samples: on each side, for the shares; the bound draws as many again.

    Raises ParameterError where the outputs are not numbers, one each.
    """
    half = samples // 2
    draws = [_numbers(run(data, samples), samples) for data in (d, d_prime)]
    shares = [_finer(draws[i][half:], draws[1 - i]) for i in (0, 1)]
    grid = min(float(lowest_bit(y).min()) for y in draws)
    bound = lower_bound(run, d, d_prime, confidence=confidence, seconds=seconds, max_samples=2 * samples, bits=True)
    return FloatSupport(max(shares), grid, bound)


def _numbers(outputs: Any, samples: int) -> NDArray[np.float64]:
    array = np.asarray(outputs)
    if array.shape != (samples,) or array.dtype.kind not in "iufb":
        raise ParameterError(f"run gave {array.dtype} of shape {array.shape}; give {samples} numbers.")
    return array.astype(np.float64)


def _finer(mine: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The share of `mine` off the grid of `other` in its binade and sign, where `other` is seen often."""
    cell_mine, cell_other = (_binade(y) for y in (mine, other))
    least = np.full(int(max(cell_mine.max(), cell_other.max())) + 1, np.inf)
    seen = np.bincount(cell_other, minlength=least.size)
    np.minimum.at(least, cell_other, lowest_bit(other))
    # Where the neighbour was seen a hundred times, its finest output has its grid but with probability 2^-100.
    return float(np.mean((seen[cell_mine] >= 100) & (lowest_bit(mine) < least[cell_mine])))


def _binade(values: NDArray[np.float64]) -> NDArray[np.int64]:
    exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))[1].astype(np.int64)
    return 2 * (exponent + 1100) + (values < 0)


@dataclass(frozen=True)
class BytesDrawn:
    """How many bytes single draws took, between `least` and `most`.

    by_value: |value| -> (draws, mean bytes), for values seen at least 30 times. chance: the probability that bytes
    which do not depend on the value look as dependent as these (chi-square, of |value| against bytes).
    """

    draws: int
    least: int
    most: int
    by_value: dict[int, tuple[int, float]]
    chance: float

    @property
    def depends(self) -> bool:
        """Whether the number of bytes tells on the value; wrongly so with a probability of 1e-9."""
        return self.chance < 1e-9

    @property
    def gap(self) -> float:
        """The largest difference of mean bytes between two values."""
        means = [mean for _, mean in self.by_value.values()]
        return max(means) - min(means) if means else 0.0


class _Counted(Bits):
    """The system's bits, counted as they are drawn."""

    def __init__(self) -> None:
        self.drawn = 0

    def fill(self, buffer: NDArray[np.uint8]) -> None:
        self.drawn += buffer.size
        system_bits().fill(buffer)


def bytes_drawn(draw: Callable[[Bits], int], *, draws: int = 5000) -> BytesDrawn:
    """Count the random bytes of single draws. draw: a bit source -> one integer drawn with it."""
    values, counts = np.empty(draws, dtype=np.int64), np.empty(draws, dtype=np.int64)
    for i in range(draws):
        bits = _Counted()
        values[i], counts[i] = abs(int(draw(bits))), bits.drawn
    by_value = {
        int(v): (int(np.count_nonzero(values == v)), float(counts[values == v].mean()))
        for v in np.unique(values)
        if np.count_nonzero(values == v) >= 30
    }
    return BytesDrawn(draws, int(counts.min()), int(counts.max()), by_value, _chance(values, counts))


def _chance(values: NDArray[np.int64], counts: NDArray[np.int64]) -> float:
    """The p-value of independence, with rare values and rare byte counts lumped so that the chi-square law applies."""
    from scipy.stats import chi2_contingency

    usual = np.bincount(counts).argmax()
    order = np.argsort(values, kind="stable")
    parts = np.array_split(order, max(2, min(20, int(np.count_nonzero(counts != usual)) // 20)))
    # Equal values belong to one part; the cut is moved to the end of a run.
    bounds = [values[part[0]] for part in parts[1:]]
    place = np.searchsorted(np.unique(bounds), values, "right")
    table = np.array([[np.sum((place == k) & (counts == usual)), np.sum((place == k) & (counts != usual))]
                      for k in range(int(place.max()) + 1)])  # fmt: skip
    table = table[table.sum(axis=1) > 0]
    if len(table) < 2 or (table.sum(axis=0) == 0).any():
        return 1.0
    return float(chi2_contingency(table, correction=False).pvalue)
