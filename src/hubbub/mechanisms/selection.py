"""Picking one of many by integer scores: the exponential mechanism, permute-and-flip, report noisy max.

Candidates have scores s_i(D), and one unit moves each by at most Delta. `monotone=True` declares more: one unit moves
all scores in the same direction (counts, under add/remove), which saves a factor 2. Let r = epsilon / 2 Delta, or
epsilon / Delta if monotone, and d_i = max s - s_i.

*Exponential* (McSherry, Talwar 2007, Theorem 6): P(i) proportional to exp(-r d_i). epsilon-DP, and epsilon-bounded
range (Durfee, Rogers 2019), so epsilon^2/8-zCDP. With probability at least 1 - e^-t the chosen score exceeds
OPT - (1/r)(ln(|R|/|R_opt|) + t).
*Permute-and-flip* (McKenna, Sheldon 2020): walk through the candidates in random order and take i with probability
p_i = exp(-r d_i). P(i) = p_i integral_0^1 prod_{j != i} (1 - p_j t) dt. epsilon-DP, never worse than the exponential
mechanism, not bounded range. It is noisy max with continuous exponential noise of scale 1/r (Ding et al. 2021).
*Report noisy max* (Dwork, Roth 2014, Claim 3.9): add noise of scale 1/r to every score, report the index of the
largest (lowest index among ties) and never its value. On integers: discrete Laplace, or geometric (one-sided).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import events as ev
from hubbub.accounting.amounts import Number
from hubbub.errors import ParameterError, what_was_given
from hubbub.mechanisms.calibrate import beta_of, epsilon_of, flag, sensitivity_of, whole_number, within_floats
from hubbub.mechanisms.recording import Norm, through
from hubbub.mechanisms.weighted import integer_steps, log_weights, quiet, weighted_choice
from hubbub.noise import Bits, DiscreteLaplace, Geometric, bernoulli_exp, uniform_below
from hubbub.noise.parameters import drawable

__all__ = ["ExponentialMechanism", "NoisyMax", "PermuteAndFlip"]

Floats = NDArray[np.float64]

_FARTHEST = 2**61


@dataclass(frozen=True, init=False)
class _Selection:
    """What the three have in common: epsilon, the sensitivity of a score, and whether scores move together."""

    epsilon: Fraction
    sensitivity: Fraction
    monotone: bool

    def __init__(self, *, epsilon: Number, sensitivity: Number | None, monotone: bool = False) -> None:
        object.__setattr__(self, "epsilon", epsilon_of(epsilon))
        object.__setattr__(self, "sensitivity", sensitivity_of(sensitivity))
        object.__setattr__(self, "monotone", flag(monotone, "monotone"))
        within_floats(self.rate, "epsilon / sensitivity")

    @property
    def rate(self) -> Fraction:
        """r: how fast probability falls with the distance from the best score."""
        return self.epsilon / (self.sensitivity if self.monotone else 2 * self.sensitivity)

    def _recorded(self, scores: Any, draw: Callable[[], int]) -> int:
        norm: Norm = "one_way" if self.monotone else "linf"
        return through(scores, sensitivity=self.sensitivity, norm=norm, law=self, draw=draw)

    def _gap(self, beta: Number, candidates: int, best: int = 1) -> float:
        """(ln(|R| / |R_opt|) + ln(1/beta)) / r."""
        if not 1 <= whole_number(best, "best") <= whole_number(candidates, "candidates"):
            raise ParameterError(f"best = {best} of candidates = {candidates}; give 1 <= best <= candidates.")
        return (math.log(candidates / best) - math.log(beta_of(beta))) / float(self.rate)


class ExponentialMechanism(_Selection):
    """An index drawn with probability proportional to exp(r score), exactly.

    >>> mechanism = ExponentialMechanism(epsilon=1, sensitivity=1)
    >>> [round(math.exp(p), 4) for p in mechanism.log_probs([3, 1])]
    [0.7311, 0.2689]
    """

    @property
    def loss(self) -> ev.Event:
        """The event to charge."""
        return ev.BoundedRange(self.epsilon)

    def release(self, scores: Any, *, bits: Bits | None = None) -> int:
        """The index chosen. scores: integers or Fractions, shape (n,)."""
        return self._recorded(scores, lambda: self._pick(scores, bits))

    def _pick(self, scores: Any, bits: Bits | None) -> int:
        steps, unit = integer_steps(scores)
        return int(weighted_choice(steps, self.rate * unit, bits=bits))

    def accuracy(self, beta: Number, *, candidates: int, best: int = 1) -> float:
        """How far below the best score the choice may be, with probability 1 - beta; `best` candidates share it."""
        return self._gap(beta, candidates, best)

    @quiet
    def log_probs(self, data: Any) -> Floats:
        """ln P(index) for all indices."""
        steps, unit = integer_steps(data)
        logs = log_weights(steps, self.rate * unit)
        return np.asarray(logs - _log_sum(logs))

    def log_prob(self, output: int, data: Any) -> float:
        """ln P(release(data) = output)."""
        return float(self.log_probs(data)[output])


class PermuteAndFlip(_Selection):
    """The first candidate, in random order, whose coin of bias exp(-r (best - score)) falls on heads.

    >>> [round(math.exp(p), 4) for p in PermuteAndFlip(epsilon=1, sensitivity=1).log_probs([3, 1])]
    [0.8161, 0.1839]
    """

    @property
    def loss(self) -> ev.Event:
        """The event to charge: pure only, because permute-and-flip is not bounded range."""
        return ev.PureDP(self.epsilon)

    def release(self, scores: Any, *, bits: Bits | None = None) -> int:
        """The index chosen. scores: integers or Fractions, shape (n,)."""
        return self._recorded(scores, lambda: self._pick(scores, bits))

    def _pick(self, scores: Any, bits: Bits | None) -> int:
        steps, unit = integer_steps(scores)
        rate, n = self.rate * unit, len(steps)
        places = uniform_below(np.arange(n, 0, -1), bits=bits)
        order = list(range(n))
        for k in range(n):
            other = k + int(places[k])
            order[k], order[other] = order[other], order[k]
            if bernoulli_exp(rate * int(steps[order[k]]), bits=bits):
                return order[k]
        raise AssertionError("the best candidate is always taken")

    def accuracy(self, beta: Number, *, candidates: int, best: int = 1) -> float:
        """The exponential mechanism's bound, which holds here too (McKenna, Sheldon 2020, Theorem 2)."""
        return self._gap(beta, candidates, best)

    @quiet
    def log_probs(self, data: Any) -> Floats:
        """ln P(index) for all indices, by a Gauss rule: exact for the polynomial in t, up to 400 candidates.

        Beyond, 200 nodes: they lie as close as 1e-5 at the ends, where the integrand of 1e4 candidates varies.
        """
        steps, unit = integer_steps(data)
        logs = log_weights(steps, self.rate * unit)
        nodes, weights = np.polynomial.legendre.leggauss(min(len(logs) // 2 + 1, 200))
        points = (nodes + 1) / 2
        factors = np.log1p(-np.exp(logs)[:, None] * points[None, :])
        rest = factors.sum(axis=0)[None, :] - factors
        return np.asarray(logs + np.log((np.exp(rest) * weights[None, :] / 2).sum(axis=1)))

    def log_prob(self, output: int, data: Any) -> float:
        """ln P(release(data) = output)."""
        return float(self.log_probs(data)[output])


@dataclass(frozen=True, init=False)
class NoisyMax(_Selection):
    """The index of the largest integer score plus noise; its value is never given.

    noise: "exponential" (geometric, one-sided; the better one) or "laplace" (discrete, two-sided).
    """

    noise: str

    def __init__(
        self,
        *,
        epsilon: Number,
        sensitivity: Number | None,
        monotone: bool = False,
        noise: str = "exponential",
    ) -> None:
        super().__init__(epsilon=epsilon, sensitivity=sensitivity, monotone=monotone)
        if self.sensitivity.denominator != 1:
            raise ParameterError(f"sensitivity = {self.sensitivity}; integer scores have a whole sensitivity.")
        if noise not in ("exponential", "laplace"):
            raise ParameterError(f"noise = {what_was_given(noise)} was asked; it is 'exponential' or 'laplace'.")
        object.__setattr__(self, "noise", noise)
        drawable(1 / self.rate, "the scale of noisy max")

    @property
    def loss(self) -> ev.Event:
        """The event to charge."""
        return ev.PureDP(self.epsilon)

    def error(self) -> DiscreteLaplace | Geometric:
        """The exact law of the noise on one score."""
        return Geometric(1 / self.rate) if self.noise == "exponential" else DiscreteLaplace(1 / self.rate)

    def release(self, scores: Any, *, bits: Bits | None = None) -> int:
        """The index chosen. scores: integers, shape (n,)."""
        return self._recorded(scores, lambda: self._pick(scores, bits))

    def _pick(self, scores: Any, bits: Bits | None) -> int:
        steps = _whole_steps(scores)
        noise = self.error().sample(len(steps), bits=bits)
        return int(np.argmax(noise - steps))

    def accuracy(self, beta: Number, *, candidates: int) -> float:
        """How far below the best score the choice may be, with probability 1 - beta."""
        one_sided = self._gap(beta, candidates)
        return one_sided if self.noise == "exponential" else 2 * one_sided

    @quiet
    def log_probs(self, data: Any) -> Floats:
        """ln P(index) for all indices: the sum over the winner's noisy score of P(all others stay below it)."""
        steps = _whole_steps(data)
        law, reach = self.error(), math.ceil(60 / float(self.rate))
        # Far candidates cannot win at values that matter; the window holds all but e^-60 of the mass.
        values = np.arange(-int(min(steps.max(), reach)) - reach, reach + 1)
        mass = np.exp(law.log_pmf(values[None, :] + steps[:, None]))
        below = np.log(np.asarray(law.cdf(values[None, :] + steps[:, None] - 1)))
        upto = np.log(np.asarray(law.cdf(values[None, :] + steps[:, None])))
        n = len(steps)
        out = np.empty(n)
        for i in range(n):
            others = below[:i].sum(axis=0) + upto[i + 1 :].sum(axis=0)
            out[i] = (mass[i] * np.exp(others)).sum()
        return np.asarray(np.log(out))

    def log_prob(self, output: int, data: Any) -> float:
        """ln P(release(data) = output)."""
        return float(self.log_probs(data)[output])


def _whole_steps(scores: Any) -> NDArray[np.int64]:
    """Distances below the best score, at most 2^61: no noise bridges that, and a unit moves them no farther for it."""
    steps, unit = integer_steps(scores)
    if unit != 1:
        raise ParameterError("noisy max takes integer scores; put other scores on a grid.")
    return np.asarray(np.minimum(steps, _FARTHEST), dtype=np.int64)


def _log_sum(logs: Floats) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))
