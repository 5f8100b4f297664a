"""The Laplace mechanism, on integers or on a grid of reals, for one value or a vector.

Let f have l1 sensitivity Delta = max ||f(D) - f(D')||_1 over neighbours (Dwork, McSherry, Nissim, Smith 2006,
Theorem 3.6; on integers the geometric mechanism of Ghosh, Roughgarden, Sundararajan 2009). Releasing f(D) + Z, with
independent P(Z_i = z) proportional to exp(-|z| / b), is (Delta / b)-DP, and tight. Accuracy: for a whole t,

    P(|Z_i| > t) = 2 q^(t+1) / (1+q) <= exp(-t / b),  q = exp(-1/b),
    P(max_i |Z_i| > ceil(b ln(k / beta))) <= beta     for k cells.

On a grid of step h, at half-steps t = (m + 1/2) h, P(|Z| > t) = exp(-t/b) / cosh(h / 2b): the tail e^-t of the
continuous law exactly, but for a factor that tends to 1 with h^2.
Units: `sensitivity`, `scale` and answers are in the user's unit; the grid turns them into steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.accounting import events as ev
from hubbub.accounting.amounts import Number, scale as positive
from hubbub.errors import ParameterError
from hubbub.mechanisms.additive import add_noise
from hubbub.mechanisms.calibrate import (
    beta_of,
    differences,
    epsilon_of,
    integers,
    like,
    one_of,
    private_integers,
    sensitivity_of,
    smallest_epsilon,
    steps_of,
    whole_number,
)
from hubbub.mechanisms.calibration import Spend, calibrated
from hubbub.noise import Bits, DiscreteLaplace, Grid
from hubbub.noise.parameters import drawable

__all__ = ["LaplaceMechanism"]


@dataclass(frozen=True, init=False)
class LaplaceMechanism:
    """Exact discrete Laplace noise on a value, or on each of `cells` values with a joint l1 sensitivity.

    Give exactly one of: epsilon; scale (of the noise, in the unit of the values); within, with confidence: the error
    of all cells together is to be at most `within` with probability `confidence`.

    >>> LaplaceMechanism(sensitivity=5, epsilon=1).scale
    Fraction(5, 1)
    >>> LaplaceMechanism(sensitivity=1, within=50, confidence=0.95).epsilon < Fraction(6, 100)
    True

    Raises ParameterError for a missing or doubled calibration, and for an unbounded sensitivity.
    """

    steps: int
    step_scale: Fraction
    cells: int
    grid: Grid | None

    def __init__(
        self,
        *,
        sensitivity: Number | None,
        epsilon: Number | None = None,
        scale: Number | None = None,
        within: Number | None = None,
        confidence: Number | None = None,
        cells: int = 1,
        grid: Grid | None = None,
    ) -> None:
        chosen = one_of("the Laplace mechanism", epsilon=epsilon, scale=scale, within=within)
        number = whole_number(cells, "cells")
        steps = steps_of(sensitivity_of(sensitivity), grid, number)
        step = Fraction(1) if grid is None else grid.step
        if chosen == "epsilon" and epsilon is not None:
            noise = calibrated(spend=Spend(epsilon=epsilon_of(epsilon)), l1=steps).scale
        elif chosen == "scale" and scale is not None:
            noise = positive(scale, "scale") / step
        else:
            noise = steps / _epsilon_within(within, confidence, steps, step, number)
        for name, value in {"steps": steps, "step_scale": noise, "cells": number, "grid": grid}.items():
            object.__setattr__(self, name, value)
        drawable(noise, "the scale of the noise, in steps,")

    @property
    def step(self) -> Fraction:
        """The grid's step; 1 for integers."""
        return Fraction(1) if self.grid is None else self.grid.step

    @property
    def scale(self) -> Fraction:
        """b, in the unit of the values."""
        return self.step_scale * self.step

    @property
    def epsilon(self) -> Fraction:
        """Delta / b."""
        return self.steps / self.step_scale

    @property
    def loss(self) -> ev.Event:
        """The event to charge."""
        return ev.DiscreteLaplace(self.step_scale, sensitivity=self.steps)

    def release(self, values: Any, *, bits: Bits | None = None) -> Any:
        """The noisy value, or array of values: ints without a grid; on a grid a Fraction, or floats."""
        exact = private_integers(values, self.grid, self.cells)
        return like(values, add_noise(exact, sensitivity=self.steps, distribution=self.error(), bits=bits), self.grid)

    def error(self) -> DiscreteLaplace:
        """The exact law of the error of one cell, in steps."""
        return DiscreteLaplace(self.step_scale)

    def accuracy(self, beta: Number) -> Fraction:
        """b ln(cells / beta), rounded up to a step: every cell is within it with probability at least 1 - beta."""
        return math.ceil(float(self.step_scale) * math.log(self.cells / beta_of(beta)) - 1e-9) * self.step

    def log_prob(self, output: Any, data: Any) -> float:
        """ln P(release(data) = output)."""
        shift = differences(integers(output, self.grid, self.cells), integers(data, self.grid, self.cells))
        return float(np.sum(self.error().log_pmf(shift)))


def _epsilon_within(
    within: Number | None, confidence: Number | None, steps: int, step: Fraction, cells: int
) -> Fraction:
    """The smallest epsilon with P(max |Z| <= within) >= confidence."""
    if within is None or confidence is None:
        raise ParameterError("within= was given without confidence=; say how often the error is to be within it.")
    reach = math.floor(positive(within, "within") / step)
    failing = beta_of(1 - Fraction(str(confidence)))
    per_cell = -math.expm1(math.log1p(-failing) / cells)

    def enough(epsilon: Fraction) -> bool:
        return 2 * float(DiscreteLaplace(steps / epsilon).tail(reach)) <= per_cell

    return smallest_epsilon(enough, f"an error within {within}")
