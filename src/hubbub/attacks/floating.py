"""Floating-point noise names the value it hides (`docs/theorems.md`, A10).

Textbook Laplace noise is value + s b ln(u), u a multiple of 2^-53, s = -1 or 1, each step rounded to a double. Doubles
cannot be everywhere, so an output is possible under one value and impossible under its neighbour.

- **Support** (Mironov 2012, "On significance of the least significant bits for differential privacy"): is there
  a u with fl(v + s fl(b fl(ln u))) = y? Only the few multiples of 2^-53 around e^(-|y - v|/b) need to be tried.
- **Precision** (Haney et al. 2022, "Precision-based attacks and interval refining"): v is a multiple of ulp(v) and the
  noise z of ulp(z), so y = v + z is a multiple of the smaller one of them, up to rounding, which only coarsens. A y
  with finer bits than that rules v out.

An output that only one of two neighbours could give breaks pure privacy at any epsilon. hubbub adds integers on a grid,
so that every output of one value is an output of every other; the guess is then right at most
e^epsilon/(1 + e^epsilon) of the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.accounting.amounts import Number, scale as positive
from hubbub.attacks.ceilings import bit_ceiling
from hubbub.attacks.inputs import Flags, Floats, numbers, same_length
from hubbub.noise import Bits, uniform_below

__all__ = ["FloatingPoint", "float_laplace", "read_floats"]

_NEARBY = 3


@dataclass(frozen=True, eq=False)
class FloatingPoint:
    """Outputs traced to one of two values.

    sure: outputs that, of textbook noise, only one of the two could have given. guesses: True for the second value.
    right: which hold.
    """

    sure: Flags
    guesses: Flags
    right: Flags

    @property
    def success(self) -> float:
        """The share of outputs traced rightly."""
        return float(self.right.mean())

    @property
    def certain(self) -> float:
        """The share of outputs that name the value beyond doubt: only one is possible, and it is the true one."""
        return float((self.sure & self.right).mean())

    def ceiling(self, epsilon: Number, delta: Number = 0) -> float:
        """The largest expected success where the two values are epsilon apart and equally likely."""
        return bit_ceiling(epsilon, delta)

    def plot(self, ax: Any = None) -> Any:
        """The success beside the ceiling over epsilon."""
        from hubbub import plots

        grid = [i / 25 for i in range(101)]
        lines = [
            ("ceiling for private answers", grid, [self.ceiling(e) for e in grid]),
            ("this attack", grid, [self.success] * len(grid)),
        ]
        title = "Values read from the last bits"
        return plots.curves(lines, title=title, xlabel="epsilon", ylabel="share right", ax=ax)


def float_laplace(values: Any, scale: Number, *, bits: Bits | None = None) -> Floats:
    """Textbook Laplace noise in floats on each value: a *broken* sampler, to be attacked and never to be used."""
    array, b = numbers(values, "values"), float(positive(scale, "scale"))
    u = (uniform_below(1 << 53, len(array), bits=bits) + 1).astype(np.float64) * 2.0**-53
    sign = np.where(uniform_below(2, len(array), bits=bits) == 0, -1.0, 1.0)
    return np.asarray(array + sign * (b * np.log(u)))


def read_floats(outputs: Any, values: tuple[float, float], scale: Number, *, truth: Any) -> FloatingPoint:
    """Traces each output to one of two values by what textbook noise of this scale could have made.

    truth: for each output 0 or 1, which value was hidden. Where both or neither are possible, the nearer one is
    guessed.
    """
    y, b = numbers(outputs, "outputs"), float(positive(scale, "scale"))
    second = np.asarray(truth, dtype=bool)
    same_length(outputs=y, truth=second)
    possible = [_reachable(y, v, b) & _fine_enough(y, v) for v in values]
    sure = possible[0] ^ possible[1]
    nearer = np.abs(y - values[1]) < np.abs(y - values[0])
    guesses = np.where(sure, possible[1], nearer)
    return FloatingPoint(sure, guesses, guesses == second)


def _reachable(y: Floats, value: float, b: float) -> Flags:
    reachable = np.zeros(len(y), bool)
    centre = np.rint(np.exp(-np.abs(y - value) / b) * 2.0**53)
    # The output's own rounding blurs ln u by half an ulp of y: as many steps of u have to be tried on either side.
    for shift in range(-_NEARBY, _NEARBY + 1):
        u = np.clip(centre + shift, 1, 2.0**53) * 2.0**-53
        for sign in (-1.0, 1.0):
            reachable |= value + sign * (b * np.log(u)) == y
    # Where the steps of u are finer than those of the output, every output near is possible.
    return reachable | (np.spacing(np.abs(y)) > b / np.maximum(centre, 1.0))


def _fine_enough(y: Floats, value: float) -> Flags:
    unit = np.minimum(np.spacing(np.abs(value)), np.spacing(np.abs(y - value))) if value else np.spacing(np.abs(y))
    return np.asarray(np.fmod(y, unit) == 0)
