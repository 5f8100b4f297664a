"""The staircase mechanism on integers: the least expected error of all epsilon-DP noises for one number.

Geng, Viswanath 2014 (discrete case, Section 6): for sensitivity Delta and a width r in 1 .. Delta, with q = e^-epsilon,

    P(Z = k Delta + j) = a q^k        for 0 <= j < r,
    P(Z = k Delta + j) = a q^(k+1)    for r <= j < Delta,   k >= 0, and symmetric,

is epsilon-DP: moving by at most Delta crosses at most one step. a is fixed by the total mass. The width that
minimises E|Z| depends on epsilon and Delta only. For Delta = 1 this is the geometric mechanism; for large epsilon
and Delta the error falls like e^(-epsilon/2) where that of Laplace falls like 1/epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import events as ev
from hubbub.accounting.amounts import Number
from hubbub.errors import ParameterError
from hubbub.mechanisms.calibrate import (
    beta_of,
    epsilon_of,
    integers,
    like,
    private_integers,
    sensitivity_of,
    steps_of,
    whole_number,
)
from hubbub.mechanisms.recording import through
from hubbub.mechanisms.weighted import weighted_choice
from hubbub.noise import Bits, Geometric, Grid, bernoulli, uniform_below
from hubbub.noise.parameters import MAX_SCALE

__all__ = ["StaircaseLaw", "StaircaseMechanism"]


@dataclass(frozen=True)
class StaircaseLaw:
    """The law of the noise. epsilon: exact; sensitivity Delta and width r in steps, 1 <= r <= Delta."""

    epsilon: Fraction
    sensitivity: int
    width: int

    def __post_init__(self) -> None:
        if not 1 <= self.width <= self.sensitivity:
            raise ParameterError(f"width = {self.width} was asked of staircase noise; it lies in 1 .. sensitivity.")
        # Beyond, draws would leave int64; within, with a probability below exp(-2^10), as for the Laplace law.
        if self.sensitivity > MAX_SCALE or self.sensitivity / self.epsilon > MAX_SCALE:
            raise ParameterError(
                f"sensitivity {self.sensitivity} at epsilon {float(self.epsilon):g} was asked of staircase noise, "
                "whose draws are int64: sensitivity and sensitivity / epsilon may be at most 2^53. Use a coarser grid."
            )

    @property
    def top(self) -> float:
        """a = P(Z = 0)."""
        q = math.exp(-float(self.epsilon))
        one_side = (self.width + (self.sensitivity - self.width) * q) / -math.expm1(-float(self.epsilon))
        return 1 / (2 * one_side - 1)

    def log_pmf(self, x: Any) -> Any:
        """ln P(Z = x), elementwise."""
        # One number may be any Python int.
        block, place = np.divmod(np.abs(x), self.sensitivity) if np.ndim(x) else divmod(abs(int(x)), self.sensitivity)
        logs = math.log(self.top) - float(self.epsilon) * (block + (place >= self.width))
        return float(logs) if np.ndim(logs) == 0 else logs

    def tail(self, x: int) -> float:
        """P(Z > x) for x >= 0."""
        q = math.exp(-float(self.epsilon))
        block, place = divmod(x + 1, self.sensitivity)
        high, low = max(0, self.width - place), self.sensitivity - max(self.width, place)
        whole = (self.width + (self.sensitivity - self.width) * q) * q / -math.expm1(-float(self.epsilon))
        return float(self.top * q**block * (high + low * q + whole))

    @property
    def mean_size(self) -> float:
        """E|Z|."""
        q, d, r = math.exp(-float(self.epsilon)), self.sensitivity, self.width
        heads, places = r + (d - r) * q, r * (r - 1) / 2 + (d * (d - 1) - r * (r - 1)) / 2 * q
        # sum_k q^k (k d heads + places), with sum q^k = 1/(1-q) and sum k q^k = q/(1-q)^2.
        return 2 * self.top * (d * heads * q / (1 - q) ** 2 + places / (1 - q))

    def sample(self, size: int, *, bits: Bits | None = None) -> NDArray[np.int64]:
        """Exact draws: block from a geometric law, high or low step and a place on it, sign; not minus zero.

        Steps are not found by rejection: of the best width they are about e^(-epsilon/2) of all places.
        """
        ways = np.array([self.width, self.sensitivity - self.width])
        out: NDArray[np.int64] = np.empty(size, np.int64)
        todo = np.arange(size)
        while todo.size:
            low = weighted_choice(np.arange(2), self.epsilon, counts=ways, size=todo.size, bits=bits)
            place = low * self.width + uniform_below(ways[low], bits=bits)
            block = Geometric(1 / self.epsilon).sample(todo.size, bits=bits)
            negative = bernoulli(Fraction(1, 2), todo.size, bits=bits)
            size_of = block * self.sensitivity + place
            kept = ~(negative & (size_of == 0))
            out[todo[kept]] = np.where(negative, -size_of, size_of)[kept]
            todo = todo[~kept]
        return out


@dataclass(frozen=True, init=False)
class StaircaseMechanism:
    """One number with staircase noise of the best width.

    >>> StaircaseMechanism(sensitivity=1, epsilon=1).error().width
    1
    """

    steps: int
    epsilon: Fraction
    width: int
    grid: Grid | None

    def __init__(
        self, *, sensitivity: Number | None, epsilon: Number, width: int | None = None, grid: Grid | None = None
    ) -> None:
        steps = steps_of(sensitivity_of(sensitivity), grid, 1)
        exact = epsilon_of(epsilon)
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "epsilon", exact)
        object.__setattr__(self, "grid", grid)
        best = best_width(exact, steps) if width is None else min(whole_number(width, "width"), steps)
        object.__setattr__(self, "width", best)
        self.error()  # which refuses what cannot be drawn

    @property
    def loss(self) -> ev.Event:
        """The event to charge."""
        return ev.PureDP(self.epsilon)

    def error(self) -> StaircaseLaw:
        """The exact law of the error, in steps."""
        return StaircaseLaw(self.epsilon, self.steps, self.width)

    def release(self, value: Any, *, bits: Bits | None = None) -> Any:
        """The noisy value: an int without a grid, a Fraction on one."""
        exact = private_integers(value, self.grid, 1)

        def draw() -> tuple[int, ...]:
            return (exact[0] + int(self.error().sample(1, bits=bits)[0]),)

        return like(value, through(exact, sensitivity=self.steps, norm="l1", law=self, draw=draw), self.grid)

    def accuracy(self, beta: Number) -> Fraction:
        """The least error that is not exceeded with probability 1 - beta, from the exact law."""
        chance, law = beta_of(beta), self.error()
        low, high = -1, self.steps
        while 2 * law.tail(high) > chance:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if 2 * law.tail(middle) > chance else (low, middle)
        return high * (Fraction(1) if self.grid is None else self.grid.step)

    def log_prob(self, output: Any, data: Any) -> float:
        """ln P(release(data) = output)."""
        return float(self.error().log_pmf(integers(output, self.grid, 1)[0] - integers(data, self.grid, 1)[0]))


def best_width(epsilon: Fraction, sensitivity: int) -> int:
    """The width in 1 .. sensitivity that minimises E|Z|; E|Z| falls, then grows with the width."""
    low, high = 1, sensitivity
    while high - low > 2:
        third = (high - low) // 3
        left, right = low + third, high - third
        if StaircaseLaw(epsilon, sensitivity, left).mean_size <= StaircaseLaw(epsilon, sensitivity, right).mean_size:
            high = right
        else:
            low = left
    return min(range(low, high + 1), key=lambda r: StaircaseLaw(epsilon, sensitivity, r).mean_size)
