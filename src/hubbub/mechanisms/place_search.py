"""A bound found in one noisy histogram: of one place per unit, walked up from the noisily largest place.

Each unit gives one value, which falls on one of J = 41 places of a grid that no data chose: place 0 holds values of 0
or less, place k (k = 1 .. 40) those in (2^(a+k-2), 2^(a+k-1)], the last one all that is larger. So a unit moves one
count by one, or (replace) two: l1 1 (2), l2 squared 1 (2). All counts get noise Z of one law: discrete Laplace of scale
b = 1/epsilon_s (2/epsilon_s), or discrete Gaussian of sigma^2 = 1/(2 rho_s) (1/rho_s). That is the whole mechanism, and
what is charged (`hubbub.mechanisms.calibration`); everything below is post-processing of the noisy counts N_0 .. N_40.

*The walk.* From the place of the largest N (the lowest such) up to the first place j at which N_(j+1) < t_1 and
N_(j+1) + N_(j+2) < t_2. Where the largest N is below t_0 there are too few units to find a bound, and none is given.

*It does not run away.* Let L be the largest place that holds a unit. The walk ends above L + 3 only if the noise alone
starts it there, with probability at most J P(Z >= t_0), or carries it past four places: each needs Z >= t_1, or two of
them a sum of two draws of at least t_2. With t_0, t_1, t_2 = 18, 3.2, 11 scales (6, 2.3, 5.5 sigma) both together are
at most 1e-6 for every table (`tests/mechanisms/test_place_search.py` computes it from the law). A walk that stops at
the first pair below one threshold, or thresholds compared one by one with noise of their own, has not both: the first
runs past L + 3 with 1e-5 and more, the second (one-sided noise, on while count + nu >= T + r) has no finite loss at
all.

*What is cut.* With probability 1 - beta at most U = N_(j+1) + ... + N_40 + q units lie above place j, q the
(1 - beta / J) quantile of the sum of as many draws: the union over all places j that the walk may choose. By how much
they exceed the bound is not known: nothing private bounds it.

Histogram on a grid of powers of two: Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo, Gipson 2020, section 5.1.1
(which takes the outermost place above a threshold). Post-processing: Dwork, Roth 2014, Proposition 2.1; the answer that
follows: their Theorem 3.14 (adaptive composition), Bun, Steinke 2016, Lemma 2.3 (zCDP).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import Event
from hubbub.errors import InternalError
from hubbub.mechanisms.calibration import Calibrated, Spend, calibrated
from hubbub.noise import Bits, DiscreteLaplace

__all__ = ["PLACES", "PlaceSearch"]

PLACES: Final = 41
BETA: Final = 0.05
_LAPLACE: Final = (18.0, 3.2, 11.0)
_GAUSSIAN: Final = (6.0, 2.3, 5.5)
_REACH: Final = 45
"""Beyond so many scales of Laplace noise (of Gaussian noise: a quarter) lies less than 1e-18 of it."""

_NOTHING: Final = 1e-20

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PlaceSearch:
    """The search of one bound at an amount.

    spend: what the histogram costs. replace: whether neighbours exchange a unit's rows.
    """

    spend: Spend
    replace: bool = False

    @cached_property
    def _noise(self) -> Calibrated:
        moved = 2 if self.replace else 1
        return calibrated(spend=self.spend, l1=moved, l2_squared=moved)

    @property
    def event(self) -> Event:
        """The event to charge."""
        return self._noise.event

    @property
    def law(self) -> Any:
        """The law of the noise on each count."""
        return self._noise.law

    @property
    def unit(self) -> float:
        """What thresholds are counted in: the scale of Laplace noise, sigma of Gaussian noise."""
        law = self._noise.law
        return float(law.scale) if isinstance(law, DiscreteLaplace) else math.sqrt(law.sigma2)

    @cached_property
    def thresholds(self) -> tuple[int, int, int]:
        """t_0, t_1, t_2."""
        times = _LAPLACE if isinstance(self._noise.law, DiscreteLaplace) else _GAUSSIAN
        few, one, two = (math.ceil(t * self.unit) for t in times)
        return few, one, two

    def release(self, counts: Sequence[int], *, bits: Bits | None = None) -> tuple[int, ...]:
        """The noisy counts of units by place."""
        if len(counts) != PLACES:
            raise InternalError(f"a search has {PLACES} places")
        return self._noise.release(tuple(map(int, counts)), bits=bits)

    def found(self, noisy: Sequence[int]) -> int | None:
        """The place of the bound, in a row of noisy counts; None where there are too few units to find one.

        >>> from fractions import Fraction
        >>> search = PlaceSearch(Spend(epsilon=Fraction(1)))
        >>> search.found([0, 900, 400, 100, 20, 1, *[0] * 35]), search.found([3] * 41)
        (4, None)
        """
        few, one, two = self.thresholds
        last = len(noisy) - 1
        j = max(range(last + 1), key=lambda place: (noisy[place], -place))
        if noisy[j] < few:
            return None
        above = [*noisy, 0, 0]
        while j < last and (above[j + 1] >= one or above[j + 1] + above[j + 2] >= two):
            j += 1
        return j

    def beyond(self, noisy: Sequence[int], place: int, *, beta: float = BETA) -> int:
        """U: with probability 1 - beta at most so many units lie above the place that was found."""
        rest = list(noisy[place + 1 :])
        return max(0, sum(rest) + self.margin(len(rest), beta / PLACES)) if rest else 0

    def margin(self, places: int, beta: float) -> int:
        """What the sum of so many draws exceeds with probability beta at most."""
        return _quantile(self.unit, isinstance(self.law, DiscreteLaplace), places, beta)

    # -- the exact law, for tests and predictions ------------------------------------------------------------------

    def chances(self, counts: Sequence[int]) -> Floats:
        """The probability of each outcome for these counts: places 0 .. 40, then "too few".

        Over the value v of the largest noisy count and its place s: places below s stay below v, those above it at v
        or below. The walk looks at two counts at a time, and only at whether they reach thresholds, so values beyond
        t_2 and the reach of the noise are one.
        """
        few, one, two = self.thresholds
        noise, pmf = self._pmf()
        chances = np.zeros(PLACES + 1)
        cap = max(two + noise, 1)
        values = np.arange(-noise, cap + 1)
        # For each value of the count after the next: the least value of the next one that carries the walk on.
        least = np.clip(np.minimum(one, two - values) + noise, 0, len(values))
        cdf = np.concatenate([np.cumsum(pmf), [1.0]])

        def below(place: int, v: Any) -> Any:
            """P(N_place <= v)."""
            at = np.clip(np.asarray(v) - counts[place] + noise, -1, len(pmf))
            return np.where(at < 0, 0.0, cdf[np.clip(at, 0, len(pmf))])

        top = max(counts)
        tops = np.arange(top - noise, top + noise + 1)
        later = [below(i, tops) for i in range(PLACES)]

        def entry(place: int) -> Floats:
            if place < PLACES:
                return _entry(int(counts[place]), tops, values, pmf)
            return np.broadcast_to((values == 0).astype(float), (len(tops), len(values)))

        for s in range(PLACES):
            at = tops - counts[s] + noise
            weight = np.where((at >= 0) & (at < len(pmf)), pmf[np.clip(at, 0, len(pmf) - 1)], 0.0)
            for i in range(s):
                weight = weight * below(i, tops - 1)
            chances[PLACES] += (weight * (tops < few) * math.prod(later[s + 1 :], start=np.ones(1))).sum()
            if weight.sum() < _NOTHING:
                continue
            state = (weight * (tops >= few))[:, None] * entry(s + 1)
            for j in range(s, PLACES):
                if j == PLACES - 1:
                    chances[j] += state.sum()
                    break
                after = entry(j + 2)
                upto = np.concatenate([np.zeros((len(tops), 1)), np.cumsum(state, axis=1)], axis=1)
                ends = upto[:, least] * after
                chances[j] += (ends.sum(axis=1) * math.prod(later[j + 3 :], start=np.ones(1))).sum()
                state = (upto[:, -1:] - upto[:, least]) * after
                if state.sum() < _NOTHING:
                    break
        return chances

    def _pmf(self) -> tuple[int, Floats]:
        """How far the noise reaches, and its probabilities from there to there."""
        laplace = isinstance(self.law, DiscreteLaplace)
        reach = math.ceil((_REACH if laplace else _REACH / 4) * self.unit) + 2
        z = np.arange(-reach, reach + 1)
        pmf = np.exp(-np.abs(z) / self.unit) if laplace else np.exp(-(z.astype(float) ** 2) / (2 * self.unit**2))
        return reach, pmf / pmf.sum()


def _entry(count: int, tops: Any, values: Any, pmf: Floats) -> Floats:
    """P(N = value and N <= top), by top and value; a value at an end of `values` stands for all beyond."""
    noise = len(pmf) // 2
    real = np.arange(count - noise, count + noise + 1)
    kept = pmf[None, :] * (real[None, :] <= tops[:, None])
    table = np.zeros((len(tops), len(values)))
    low, high = (int(np.clip(end - real[0], 0, len(real))) for end in (values[0], values[-1]))
    table[:, 0] += kept[:, :low].sum(axis=1)
    table[:, -1] += kept[:, high:].sum(axis=1)
    first = max(int(real[0]) - int(values[0]), 0)
    table[:, first : first + high - low] += kept[:, low:high]
    return table


@lru_cache(maxsize=256)
def _quantile(unit: float, laplace: bool, draws: int, beta: float) -> int:
    """The (1 - beta) quantile of a sum of draws, from above: Chernoff's bound, over a grid of its parameter.

    Laplace: E exp(t Z) = (1 - q)^2 / ((1 - q e^t)(1 - q e^-t)), q = e^(-1/b), t < 1/b. Gaussian: at most
    exp(t^2 sigma^2 / 2) (Canonne, Kamath, Steinke 2020, Fact 19).
    """
    if draws == 0:
        return 0
    if not laplace:
        return math.ceil(unit * math.sqrt(2 * draws * math.log(1 / beta)))
    q = math.exp(-1 / unit)
    best = math.inf
    for i in range(1, 400):
        t = i / 400 / unit
        # q e^t as one power: e^t alone is beyond floats where there is hardly any noise.
        each = 2 * math.log(1 - q) - math.log(1 - math.exp(t - 1 / unit)) - math.log(1 - q * math.exp(-t))
        best = min(best, (draws * each + math.log(1 / beta)) / t)
    return math.ceil(best)
