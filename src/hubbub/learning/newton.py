"""Few passes: descent along one noisy matrix of moments, for rows that stay where they are.

The sum of x x^T, bought once with noise on its upper triangle, bounds the curvature of the logistic loss: the
Hessian is at most a quarter of it (Bohning, Lindsay 1988). A step is -(M / 4 + s)^-1 (gradient + r w), M made positive
semidefinite. The ridge r is the noise of a gradient's entry: what lies below it is noise. s is r and the noise of M, so
that a direction which M takes for flat by chance is not gone too far. Steps have Nesterov's momentum (Beck, Teboulle
2009).

**What it costs.** One row moves the upper triangle of M by sqrt((N^2 + sum x_i^4) / 2) in l2 at most, N =
`Design.norm2` (`hubbub.learning.exact.triangle_squared`); and each gradient by 2^20 sqrt N. A fifth of rho buys M, each
of the eight gradients a tenth: composition as in `hubbub.learning.descent`. All else is post-processing of these sums.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from hubbub.accounting import Event
from hubbub.learning.bases import plain_weights, turned
from hubbub.learning.descent import Floats, noise_of
from hubbub.learning.exact import SCALE, on_grid
from hubbub.learning.features import ONE
from hubbub.noise import Bits

__all__ = ["PASSES", "newton"]

PASSES: Final = 8
_FOR_MOMENTS: Final = Fraction(1, 5)


def newton(
    rows: Any, *, rho: Fraction, moment_squared: int, step_squared: int, bits: Bits | None = None
) -> Generator[Event, None, Floats]:
    """Yields each event before it is drawn; returns the weights of two classes, (1, width), of the
    plain features.

    rows: as `Coded` has `second_moment` and `logistic_sums`. moment_squared, step_squared: how far a unit moves them.
    """
    plain = rows.design
    rows = replace(rows, design=turned(plain))
    design, noise = rows.design, noise_of(rho * _FOR_MOMENTS, moment_squared)
    yield noise.event
    upper = np.triu_indices(design.width)
    noisy = noise.release([int(v) for v in rows.second_moment()[upper]], bits=bits)
    moment = np.zeros((design.width, design.width))
    moment[upper] = np.array(noisy, np.float64) / ONE**2
    values, vectors = np.linalg.eigh(moment + np.triu(moment, 1).T)
    whole = (vectors * np.maximum(values, 0)) @ vectors.T / 4
    off = math.sqrt(noise.sigma2) / ONE**2 * math.sqrt(design.width) / 4
    step = noise_of(rho * (1 - _FOR_MOMENTS) / PASSES, step_squared)
    ridge = math.sqrt(step.sigma2) / (SCALE * ONE)
    penalty = np.full(design.width, ridge)
    penalty[0] = 1e-3 * ridge  # how common a class is, is not shrunk
    inverse = np.linalg.inv(whole + (ridge + off) * np.eye(design.width))
    at, ahead, inertia = np.zeros(design.width), np.zeros(design.width), 1.0
    for _ in range(PASSES):
        yield step.event
        sums = step.release(rows.logistic_sums(on_grid(ahead)), bits=bits)
        before, at = at, ahead - inverse @ (np.array(sums, np.float64) / (SCALE * ONE) + penalty * ahead)
        inertia, last = (1 + math.sqrt(1 + 4 * inertia**2)) / 2, inertia
        ahead = at + (last - 1) / inertia * (at - before)
    return plain_weights(plain, np.array(at)[None])
