"""Private gradient descent: every step sums over all rows, exactly, and adds discrete Gaussian noise.

**One step.** The sum over rows of (residual x features) is a vector of whole numbers that one unit moves by at most D
in l2 (`hubbub.learning.exact`: 2^20 sqrt N for one residual per row, sqrt 2 as much for softmax; times the largest
weight of a row, times the rows of a unit; twice under replace). With discrete Gaussian noise of parameter sigma^2 it is
D^2 / (2 sigma^2)-zCDP (Canonne, Kamath, Steinke 2020, Theorem 14). The weights it is computed at are a function of
earlier noisy sums, so steps at rho_1, ..., rho_T, rho in all, are rho-zCDP (Bun, Steinke 2016, Lemma 2.3). Momentum,
step sizes, the mean of iterates are post-processing. Nothing looks at a private loss: T and all rho_t are fixed before
the first step.

**What each step is given.** The gradient of a late step hardly moves the mean iterate. Where the loss is flat, it moves
it in proportion to v_t, the sum over the iterates after t of what each counts times 1 + 0.9 + 0.9^2 + ...; and rho_t
is in proportion to the root of v_t, of at least a 50th of the largest, in 16ths: few amounts differ, so that their sum
is a fraction of few digits. The sum of v_t^2 / rho_t would be least with rho_t as v_t; but where the loss is curved,
late steps move the mean as far as early ones, and the root was better (`docs/concepts/learning.md`).

It is done in the coordinates of `hubbub.learning.bases`, in which rows are shorter; in the fine ones where kappa,
below, is 2000 or more.

**The rule** (measured on ten tasks: `benchmarks/learning.py`). With rows of length 1, kappa = n sqrt(2 rho) is how many
rows stand against the noise of a single step. tau = kappa / 20, from 2 to 800, is how far descent may go; a step is lr
= tau / 32, from 0.5 to 4, in units of 4 / n (1 / the largest curvature of the logistic loss); there are T = tau / lr of
them, 4 at least, so 200 at most; momentum is 0.9; the model is the mean of the second half of the iterates. Where
kappa is 2000 or more it is the mean of all of them, each counted by its place (the first as 1/2, the second as 3/2),
and there are three tenths more of them, unless that were more than 200: noise averages out over more steps.

**What may be expected.** Noisy gradient steps of a convex loss from 0, with the step that suits best, have a mean
iterate whose loss per row is in expectation at most B s sqrt(d / T) / n above that of the best weights, of length B:
d coordinates, s the standard deviation of the noise on a sum in one of T steps, n rows (B^2 / (2 a T) + a d s^2 / (2
n^2) for steps a, at its least; Bassily, Smith, Thakurta 2014, whose constant is larger for their sampling). It does not
depend on T, as s^2 grows with it. Momentum and the rule above were not proved to keep it: it is a forecast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import Event
from hubbub.errors import ParameterError
from hubbub.learning.bases import plain_weights, turned
from hubbub.learning.exact import SCALE, Coded, on_grid
from hubbub.learning.features import ONE, Integers
from hubbub.learning.pace import Pace
from hubbub.mechanisms.calibration import Calibrated, Spend, calibrated
from hubbub.noise import MAX_SCALE, Bits

__all__ = [
    "Descent",
    "Floats",
    "Plan",
    "descend",
    "even_noise",
    "expected_excess",
    "parts_of",
    "plan_descent",
    "whole_variance",
    "within_bits",
]

Floats: TypeAlias = NDArray[np.float64]
Residual: TypeAlias = Callable[[Integers, Integers], Integers]
Descent: TypeAlias = Generator[Event, None, Floats]

_MOMENTUM = 0.9
_MANY = 2000
_LONGER = 1.3
_MOST_STEPS = 200
_LEAST_MOVED = 0.02
_GRAIN = 16


@dataclass(frozen=True)
class Plan:
    """How descent goes. steps: T. lr: the length of a step in units of 4 / n. kappa: rows against noise. rising:
    whether the model is the mean of all iterates, later ones counted more, instead of the second half.
    """

    steps: int
    lr: float
    kappa: float
    rising: bool = False

    @property
    def fine(self) -> bool:
        """Whether rows are so many that bins are told apart by features of their own, too (`hubbub.learning.bases`)."""
        return self.kappa >= _MANY


def plan_descent(rows: float, rho: float) -> Plan:
    """The steps for about so many rows of length 1 at a total cost of rho.

    >>> plan = plan_descent(26_000, 0.03056)
    >>> plan.steps, plan.lr, round(plan.kappa)
    (104, 4.0, 6428)
    """
    kappa = max(1.0, rows) * math.sqrt(2 * rho)
    tau = min(max(kappa / 20, 2.0), 800.0)
    lr = min(max(tau / 32, 0.5), 4.0)
    longer = round(_LONGER * tau / lr)
    rising = kappa >= _MANY and longer <= _MOST_STEPS
    return Plan(longer if rising else max(4, round(tau / lr)), lr, kappa, rising)


def counted(t: int, steps: int, rising: bool) -> float:
    """What the iterate after step t counts in the mean that is the model."""
    return t + 0.5 if rising else float(2 * t >= steps)


@cache
def parts_of(steps: int, rising: bool = False) -> tuple[Fraction, ...]:
    """The part of rho that each step is given: 1 in all, exactly. rising: as `Plan.rising`.

    >>> [str(part) for part in parts_of(4)]
    ['16/47', '14/47', '11/47', '6/47']
    """
    moved = [0.0] * steps
    for t in range(steps):
        speed = at = 0.0
        for later in range(t, steps):
            speed = _MOMENTUM * speed + float(later == t)
            at += speed
            moved[t] += at * counted(later, steps, rising)
    roots = [round(_GRAIN * math.sqrt(max(v / max(moved), _LEAST_MOVED))) for v in moved]
    return tuple(Fraction(root, sum(roots)) for root in roots)


def even_noise(rho: Fraction, steps: int, squared: int) -> Calibrated:
    """The noise of a step that would be given an even part of rho. Raises what `within_bits` does for any step, of
    three tenths more of them too: what is bought before the first may come out where there are so many."""
    most = max(steps, min(round(_LONGER * steps) + 1, _MOST_STEPS))
    noise_of(rho * min(*parts_of(steps), *parts_of(steps, True), *parts_of(most, True)), squared)
    return noise_of(rho / steps, squared)


def expected_excess(rows: float, coordinates: int, steps: int, noise: float) -> float:
    """How far the loss of a row is expected above the best, per unit of length of the best weights.

    noise: the standard deviation on a sum in a step of an even part, in rows.

    >>> round(expected_excess(26_000, 100, 80, 120.0), 5)
    0.00516
    """
    return noise * math.sqrt(coordinates / steps) / rows


def whole_variance(variance: Fraction) -> Fraction:
    """The variance rounded up to a whole number: it is about 2^40 at least, so this costs nothing."""
    return Fraction(math.ceil(variance))


def noise_of(rho: Fraction, squared: int) -> Calibrated:
    """The noise of one step. Raises what `within_bits` does."""
    return within_bits(calibrated(spend=Spend(rho=rho), l2_squared=squared, rounded=whole_variance))


def within_bits(noise: Calibrated) -> Calibrated:
    """The same noise, if it can be drawn.

    Raises ParameterError where its draws may leave 64 bits: before a charge, if it is asked for then.
    """
    if noise.law.variance > MAX_SCALE**2:
        raise ParameterError(
            "one unit may have so many rows, of such weights, that at so small an epsilon the noise on a sum does not "
            "fit into 64 bits. Give a smaller rows_per_unit, or more epsilon."
        )
    return noise


def descend(
    rows: Coded,
    residual: Residual,
    *,
    outputs: int,
    rho: Fraction,
    squared: int,
    plan: Plan,
    n: float,
    curvature: float = 0.25,
    start: float = 0.0,
    shares: Mapping[str, Floats] | None = None,
    bits: Bits | None = None,
) -> Descent:
    """Yields the event of each step before it is drawn; returns the mean of the later iterates, (outputs, width)
    weights of the plain features.

    residual: as `Coded.sums` takes it, one for each output. squared: the squared sensitivity of one step's sums, in the
    coordinates of `turned`. n: the number of rows, public or bought. curvature: the largest one of the loss. start: the
    score from which it goes. shares: of the rows in each bin, by column, as far as they were bought
    (`hubbub.learning.pace`).
    """
    plain, parts = rows.design, parts_of(plan.steps, plan.rising)
    rows = replace(rows, design=turned(plain, fine=plan.fine))
    design = rows.design
    length = math.sqrt(design.norm2) / ONE
    step = plan.lr / (curvature * max(n, 1.0))
    grid = SCALE * ONE * length
    pace = Pace.of(design, shares or {}, plan.steps)
    at, speed, mean = np.zeros((3, outputs, design.width))
    at[:, 0] = start * length
    total = 0.0
    for t, part in enumerate(parts):
        noise = noise_of(rho * part, squared)
        yield noise.event
        sums = rows.sums(np.array([on_grid(w) for w in at / length]), residual)
        noisy = noise.release([v for of_output in sums for v in of_output], bits=bits)
        gradient = np.array(noisy, np.float64).reshape(at.shape) / grid
        speed = _MOMENTUM * speed + gradient
        at = at - step * pace.factors(t, gradient, math.sqrt(noise.law.variance) / grid) * speed
        share = counted(t, plan.steps, plan.rising)
        mean, total = mean + share * at, total + share
    return plain_weights(plain, mean / total / length, fine=plan.fine)
