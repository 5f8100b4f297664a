"""A needle in a haystack: whether a person is in a group, from the group's frequencies alone (`docs/theorems.md`, A5).

A study publishes, for d binary attributes (alleles, diagnoses, items), the frequencies q_j among its n people. The
attacker knows one person's bits x and the frequencies p_j of the population, and scores x; a high score says "in".

    Homer et al. 2008            sum |x_j - p_j| - |x_j - q_j|
    likelihood ratio             sum x_j ln(q_j/p_j) + (1 - x_j) ln((1-q_j)/(1-p_j))
                                 (Sankararaman, Obozinski, Jordan, Halperin 2009)
    inner product                sum (x_j - p_j)(q_j - p_j)     (Dwork, Smith, Steinke, Ullman, Vadhan 2015)

For bits, and frequencies within [0, 1], Homer's score is the inner product but for constants; for genotypes of three
values it is not.

For independent attributes each score is linear in independent bits, so under "not in" its mean and variance are known
exactly given q and p: sum p_j a_j and sum v_j a_j^2 + const, v_j = p_j(1-p_j), a_j the weight of bit j. Scores are
given in units of that standard deviation; the threshold for a false-positive rate is the normal quantile.

**Power** of the inner product for exact means and equal v: z = sqrt(d/n) standard deviations between "in" and "not in";
noise of standard deviation sigma on each mean divides z by sqrt(1 + n sigma^2 / v).

**Ceiling.** True less false positives: (e^epsilon - 1 + 2 delta)/(e^epsilon + 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Literal, get_args

import numpy as np

from hubbub.accounting.amounts import Number, probability
from hubbub.attacks.ceilings import advantage_ceiling, hit_ceiling
from hubbub.attacks.inputs import Flags, Floats, Integers, numbers, same_length, zeros_ones
from hubbub.errors import ParameterError, what_was_given
from hubbub.noise import Bits, bernoulli

__all__ = ["Membership", "Method", "find_members", "membership_power", "membership_z", "people"]

Method = Literal["inner_product", "likelihood_ratio", "homer"]
_NORMAL = NormalDist()


@dataclass(frozen=True, eq=False)
class Membership:
    """Scores of targets, in standard deviations above what somebody not in the group has.

    members: who is in, where that was given.
    """

    scores: Floats
    members: Flags | None
    method: Method

    def guesses(self, false_rate: Number = "1/2") -> Flags:
        """Who is said to be in, at a false-positive rate."""
        return np.asarray(self.scores > _threshold(false_rate))

    def true_positives(self, false_rate: Number = "1/2") -> float:
        """The share of members who are found."""
        return float(self.guesses(false_rate)[self._known()].mean())

    def false_positives(self, false_rate: Number = "1/2") -> float:
        """The share of others who are said to be in; near `false_rate` where the attributes are independent."""
        return float(self.guesses(false_rate)[~self._known()].mean())

    def advantage(self, false_rate: Number = "1/2") -> float:
        """True positives less false positives."""
        return self.true_positives(false_rate) - self.false_positives(false_rate)

    @property
    def success(self) -> float:
        """The largest advantage over all thresholds (an optimistic figure for few targets)."""
        hits, alarms = self.curve
        return float(np.max(hits - alarms))

    @property
    def curve(self) -> tuple[Floats, Floats]:
        """True and false positives at every threshold, from the strictest on."""
        inside = self._known()[np.argsort(-self.scores, kind="stable")]
        start = np.zeros(1)
        hits = np.concatenate([start, np.cumsum(inside) / max(1, inside.sum())])
        return hits, np.concatenate([start, np.cumsum(~inside) / max(1, (~inside).sum())])

    def ceiling(self, epsilon: Number, delta: Number = 0) -> float:
        """The largest expected advantage at any one threshold."""
        return advantage_ceiling(epsilon, delta)

    def hit_ceiling(self, false_rate: Number, epsilon: Number, delta: Number = 0) -> float:
        """The largest expected true-positive rate at a false-positive rate."""
        return hit_ceiling(false_rate, epsilon, delta)

    def plot(self, ax: Any = None, *, epsilon: Number = 1, delta: Number = 0) -> Any:
        """True over false positives, beside the ceiling at epsilon."""
        from hubbub import plots

        hits, alarms = self.curve
        grid = [i / 100 for i in range(101)]
        lines = [
            ("this attack", alarms.tolist(), hits.tolist()),
            (f"ceiling at epsilon {epsilon}", grid, [hit_ceiling(a, epsilon, delta) for a in grid]),
            ("guessing", grid, grid),
        ]
        title = "Who is in the group"
        return plots.curves(lines, title=title, xlabel="false positives", ylabel="true positives", ax=ax)

    def _known(self) -> Flags:
        if self.members is None:
            raise ParameterError("members= was not given, so nothing says who is right. Give it to count.")
        return self.members


def _threshold(false_rate: Number) -> float:
    rate = float(probability(false_rate, "false_rate"))
    if rate == 0:
        raise ParameterError("false_rate = 0 was asked; no threshold gives that. Give a small number above 0.")
    return _NORMAL.inv_cdf(1 - rate)


def find_members(
    targets: Any, published: Any, population: Any, *, members: Any = None, method: Method = "inner_product"
) -> Membership:
    """Scores targets against published frequencies.

    targets: bits of shape (people, d). published: the group's frequencies, exact or noisy, shape (d,). population: the
    frequencies of people at large, strictly between 0 and 1. members: which targets are in, to count what is right.

    Raises ParameterError for shapes that do not fit, and for population frequencies of 0 or 1.
    """
    if method not in get_args(Method):
        raise ParameterError(f"method = {what_was_given(method)} was asked; allowed are {', '.join(get_args(Method))}.")
    x = zeros_ones(targets, "targets", dimensions=2)
    q, p = numbers(published, "published"), numbers(population, "population")
    same_length(published=q, population=p, attributes=x.T)
    if not bool(((p > 0) & (p < 1)).all()):
        raise ParameterError("a population frequency is 0 or 1; leave out attributes that nobody or everybody has.")
    weights = _weights(q, p, method)
    spread = float(np.sqrt((p * (1 - p) * weights**2).sum()))
    scores = (x - p) @ weights / (spread if spread > 0 else 1.0)
    inside = None if members is None else np.asarray(members, dtype=bool)
    if inside is not None:
        same_length(targets=x, members=inside)
    return Membership(np.asarray(scores), inside, method)


def _weights(q: Floats, p: Floats, method: Method) -> Floats:
    """How much the score grows when a bit goes from 0 to 1."""
    if method == "inner_product":
        return q - p
    if method == "homer":
        return np.asarray((np.abs(1 - p) - np.abs(1 - q)) - (np.abs(p) - np.abs(q)))
    # Noisy frequencies may lie outside (0, 1), where the logarithm has no value.
    inside = np.clip(q, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(inside / p) - np.log((1 - inside) / (1 - p)))


def membership_z(d: int, n: int, *, noise: float = 0.0, variance: float = 0.25) -> float:
    """Standard deviations between "in" and "not in": sqrt(d/n) / sqrt(1 + n noise^2 / v), v = p(1-p).

    >>> membership_z(2500, 100)
    5.0
    """
    return math.sqrt(d / n) / math.sqrt(1 + n * noise**2 / variance)


def membership_power(d: int, n: int, false_rate: Number, *, noise: float = 0.0, variance: float = 0.25) -> float:
    """The true-positive rate of the inner product at a false-positive rate, in the normal limit.

    >>> round(membership_power(2500, 100, "0.01"), 3)
    0.996
    """
    return _NORMAL.cdf(membership_z(d, n, noise=noise, variance=variance) - _threshold(false_rate))


def people(frequencies: Any, n: int, *, bits: Bits | None = None) -> Integers:
    """n people with independent bits, P(bit j = 1) the frequency j to 2^-20: shape (n, d), to try the attack on."""
    p = np.rint(numbers(frequencies, "frequencies") * (1 << 20)).astype(np.int64)
    columns = [bernoulli(Fraction(int(share), 1 << 20), n, bits=bits) for share in p]
    return np.stack(columns, axis=1).astype(np.int64)
