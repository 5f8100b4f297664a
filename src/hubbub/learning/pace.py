"""How far descent goes in a bin's own feature: farther where earlier noisy sums say that it has far to go.

A bin that few rows are in turns its weight slowly: the curvature along a bin's own feature is a quarter of its share of
the rows, so that after all steps a five-hundredth of the rows has hardly begun. Steps that are longer for all are no
way out, for they are as long as the largest curvature allows, and where there is nothing to learn they add noise. So
each column's own features have a factor, 1 at first.

**What it follows.** Three counts of steps, a tenth, a fifth and three tenths of all, end windows. Gradients of a window
are added up; the mean square of the sums, of one column's own features, in units of that of their noise, less 1, is its
energy: about 0 where nothing is left to learn. After the second and the third window the factor grows by twice the
energy, tenfold at most, to 30 at most. The first is left out: all columns learn then what one of them will keep.

**How far is safe.** In a bin that holds the share q of the rows the factor is at most 1 + 1 / (10 q): so own features
of a column add a 40th to the curvature, in units in which a row's length in the column is about 1. q is what the bought
histogram says (`hubbub.learning.cells`), and a standard deviation of its noise more. Where none was bought, or five
deviations are more than a 512th of the rows, all factors are 1.

All this is computed from noisy sums and noisy counts that are charged for: post-processing. It moves neither a
sensitivity nor a number of steps.

**Only for classes.** To a number, steps are as long as the curvature of squares; descent there is nearer to its end,
which residuals that are cut off draw away from the mean, and longer steps lost (`docs/concepts/learning.md`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.learning.bases import own_features
from hubbub.learning.features import Design

__all__ = ["Pace"]

Floats: TypeAlias = NDArray[np.float64]

_ENDS: Final = (10, 5, 10 / 3)
_GROWTH: Final = 2.0
_ONCE: Final = 10.0
_MOST: Final = 30.0
_ADDED: Final = 0.1


@dataclass
class Pace:
    """The factor of each coordinate's steps, as descent goes on.

    places: of each column's own features. limits: the largest factor of each of them. steps: T.
    """

    places: list[slice]
    limits: list[Floats]
    steps: int

    @classmethod
    def of(cls, design: Design, shares: Mapping[str, Floats], steps: int) -> Pace:
        """For a design in the coordinates of `turned`. shares: of the rows in each bin, by column."""
        own = {name: place for name, place in own_features(design).items() if name in shares}
        limits = [1 + _ADDED / np.maximum(shares[name], 1e-9) for name in own]
        return cls(list(own.values()), limits, steps)

    def __post_init__(self) -> None:
        self._ends = [round(self.steps / part) for part in _ENDS]
        self._factors = [1.0] * len(self.places)
        self._sums: Floats = np.zeros((1, 1))
        self._noise = 0.0

    def factors(self, t: int, gradient: Floats, deviation: float) -> Floats:
        """The factor of each coordinate in step t, whose noisy gradient it takes note of: (width,).

        gradient: (outputs, width). deviation: the standard deviation of the noise on a coordinate of it.

        >>> pace = Pace([slice(1, 3)], [np.array([30.0, 1.5])], 10)
        >>> [pace.factors(t, np.array([[0.0, 2.0, 2.0]]), 1.0).tolist() for t in (0, 1, 2)][1:]
        [[1.0, 1.0, 1.0], [1.0, 6.0, 1.5]]
        """
        if t in self._ends and self._noise:
            if t > self._ends[0]:
                self._grow()
            self._sums, self._noise = np.zeros((1, 1)), 0.0
        self._sums, self._noise = self._sums + gradient, self._noise + deviation**2
        factors = np.ones(gradient.shape[1])
        for place, factor, limit in zip(self.places, self._factors, self.limits, strict=True):
            factors[place] = np.minimum(factor, limit)
        return factors

    def _grow(self) -> None:
        for k, place in enumerate(self.places):
            energy = float((self._sums[:, place] ** 2).mean()) / self._noise - 1
            self._factors[k] = min(self._factors[k] * min(max(_GROWTH * energy, 1.0), _ONCE), _MOST)
