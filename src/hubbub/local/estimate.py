"""Estimates from local reports: unbiased shares, their variance, intervals, and the nearest distribution.

*Pure protocols* (Wang, Blocki, Li, Jha 2017, Definition 2). A report *supports* some categories: the true one with
probability p, each other one with probability q < p. From s supporters of a category among n reports,

    f = (s/n - q) / (p - q)

is unbiased for its share. Reports are independent, so given the true answers, with share f,

    n Var = A + B f,    A = q(1-q) / (p-q)^2,    B = (1-p-q) / (p-q),

exactly. For people drawn at random from a population, f(1-f) comes on top. Intervals are *score intervals* (Wilson
1927): all f with (estimate - f)^2 <= z^2 Var(f), which is a quadratic inequality.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from hubbub.errors import ParameterError, what_was_given
from hubbub.local.draws import Floats

__all__ = ["Estimate", "MeanEstimate", "normal_quantile", "simplex_projection"]

Of = Literal["respondents", "population"]


def normal_quantile(level: float, comparisons: int = 1) -> float:
    """z with P(|N(0,1)| <= z) = level, or jointly for several intervals at least level (Bonferroni)."""
    if isinstance(level, bool) or not 0 < float(level) < 1:
        raise ParameterError(
            f"level = {what_was_given(level)} was asked; it is a probability: give 0 < level < 1, such as 0.95."
        )
    return -NormalDist().inv_cdf((1 - float(level)) / (2 * comparisons))


def simplex_projection(shares: Floats) -> Floats:
    """The probability vector nearest to `shares` in the l2 norm, shape (k,).

    x_i = max(0, f_i - t) with the t that makes them add to one (Held, Wolfe, Crowder 1974). No cost in privacy; it
    lowers the total squared error, and it biases small shares upwards.

    >>> simplex_projection(np.array([0.9, 0.3, -0.1]))
    array([0.8, 0.2, 0. ])
    """
    values = np.asarray(shares, np.float64)
    down = np.sort(values)[::-1]
    over = (np.cumsum(down) - 1) / np.arange(1, down.size + 1)
    last = int(np.flatnonzero(down > over)[-1])
    return np.asarray(np.maximum(values - over[last], 0))


@dataclass(frozen=True, eq=False)
class Estimate:
    """Unbiased shares of categories. `shares` and `variance` have shape (k,); variance is that given the true answers
    and all public hashes and cohorts, with the estimate (cut to [0, 1], or projected) put in for the true shares; of
    the count-mean sketch it is the mean squared error. `base` and `slope` are A and B where they apply.
    """

    categories: Sequence[Hashable]
    n: int
    dropped: int
    shares: Floats
    variance: Floats
    base: float | None = None
    slope: float | None = None

    @property
    def counts(self) -> Floats:
        """How many people, instead of which share: n times `shares`."""
        return self.n * self.shares

    @property
    def sd(self) -> Floats:
        """The standard deviation of each share."""
        return np.sqrt(self.variance)

    def projected(self) -> Floats:
        """The shares moved to the nearest probability distribution."""
        return simplex_projection(self.shares)

    def interval(
        self, level: float = 0.95, *, of: Of = "respondents", simultaneous: bool = False
    ) -> tuple[Floats, Floats]:
        """Lower and upper ends, cut to [0, 1], each of shape (k,).

        `of="respondents"`: the share among the people who answered. `of="population"`: the share in the population
        they were drawn from at random, which is wider. `simultaneous`: all k at once hold at the level.
        """
        if of not in ("respondents", "population"):
            raise ParameterError(f"of = {what_was_given(of)} was asked; it is 'respondents' or 'population'.")
        z = normal_quantile(level, self.shares.size if simultaneous else 1)
        drawn = 1.0 if of == "population" else 0.0
        if self.base is None or self.slope is None:
            share = np.clip(self.shares, 0, 1)
            reach = z * np.sqrt(self.variance + drawn * share * (1 - share) / max(self.n, 1))
            return np.clip(self.shares - reach, 0, 1), np.clip(self.shares + reach, 0, 1)
        return _score(self.shares, z * z / max(self.n, 1), self.base, self.slope, drawn)

    def plot(self, level: float = 0.95, *, title: str = "Estimated shares", ax: Any = None) -> Any:
        """Shares with their intervals, as matplotlib Axes; `hubbub.plots.save` writes them to a file."""
        from hubbub import plots

        low, high = self.interval(level)
        shares = np.clip(self.shares, 0, 1)
        names = [str(c) for c in self.categories]
        label = f"share, {level:.0%} intervals"
        ends = (np.minimum(low, shares).tolist(), np.maximum(high, shares).tolist())
        return plots.intervals(names, shares.tolist(), *ends, title=title, ylabel=label, ax=ax)


def _score(shares: Floats, c: float, base: float, slope: float, drawn: float) -> tuple[Floats, Floats]:
    """The f with (shares - f)^2 <= c (base + (slope + drawn) f - drawn f^2), cut to [0, 1]."""
    lead = 1 + c * drawn
    middle = shares + c * (slope + drawn) / 2
    root = np.sqrt(np.maximum(middle**2 - lead * (shares**2 - c * base), 0))
    return np.clip((middle - root) / lead, 0, 1), np.clip((middle + root) / lead, 0, 1)


@dataclass(frozen=True)
class MeanEstimate:
    """An unbiased mean with the variance that the reports themselves show (people and coins together)."""

    mean: float
    variance: float
    n: int
    dropped: int
    lower: float
    upper: float

    @property
    def sd(self) -> float:
        """The standard deviation of the mean."""
        return math.sqrt(self.variance)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Normal interval, cut to the declared bounds. For n below about 50 reports it is too narrow."""
        reach = normal_quantile(level) * self.sd
        low, high = (min(max(v, self.lower), self.upper) for v in (self.mean - reach, self.mean + reach))
        return low, high
