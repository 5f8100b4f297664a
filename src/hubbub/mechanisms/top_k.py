"""The k most frequent of items that nobody declared: names in order, and fewer than k where too few are frequent.

One unit adds at most `sensitivity` to the count of each of at most `items` items. Let r be epsilon / sensitivity under
add/remove, half of that under replace. A choice is the exponential mechanism among the items that are there, each with
its count as score, and one more candidate, "no other", whose score is a fixed number T:

    P(i) proportional to exp(r c_i), c_i > 0;   P(no other) proportional to exp(r T).

k choices are made, each among what was not chosen before; "no other" ends them.

*Law.* Let D' be D and a unit. Items of D' alone have counts of at most `sensitivity`, and there are at most `items` of
them, so one is chosen with probability p <= items exp(r (sensitivity - T)), which T keeps at delta / k. Given that none
is, the choices from D and D' have the same candidates, and exp(r (c'_i - c_i)) / exp(0) lies in [1, e^epsilon], up to
one factor: they are epsilon-bounded range. So a choice is delta/k-approximately epsilon-bounded range: with probability
1 - delta/k it behaves as one that is. k of them compose adaptively; after any history the same argument holds of what
is left. Under replace either side has items of its own, and scores move both ways: r is halved, and nothing else.

The number of items in the data does not enter, and the counts of other units do not: T is fixed beforehand. Durfee and
Rogers 2019 (Section 4) compare with the count of the (k+1)-th item instead, which is better where counts are large and
flat, and needs its own noise; what is shared is that an item of one unit alone is seen with probability delta, and that
k is a most.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.accounting import events as ev
from hubbub.accounting.amounts import Number, probability
from hubbub.accounting.rounding import exp_up, ln
from hubbub.errors import ParameterError
from hubbub.mechanisms.calibrate import capped_counts, epsilon_of, flag, whole_number, within_floats
from hubbub.mechanisms.recording import through
from hubbub.mechanisms.weighted import integer_steps, log_weights, quiet, weighted_choice
from hubbub.noise import Bits

__all__ = ["UnknownTopK"]

_MOST = 2**61


@dataclass(frozen=True, init=False)
class UnknownTopK:
    """The k most frequent items, where which items there are is private.

    epsilon: of one choice. delta: for all k. items: the most items of one unit. sensitivity: how much one unit moves
    one item's count. monotone: all counts of one unit move in one direction (add/remove).

    >>> mechanism = UnknownTopK(3, epsilon=1, delta="1e-6")
    >>> mechanism.floor, round(mechanism.shown(20), 3)
    (16, 0.982)
    """

    k: int
    epsilon: Fraction
    delta: Fraction
    items: int
    sensitivity: int
    monotone: bool
    floor: int

    def __init__(
        self,
        k: int,
        *,
        epsilon: Number,
        delta: Number,
        items: int = 1,
        sensitivity: int = 1,
        monotone: bool = True,
    ) -> None:
        declared = probability(delta, "delta")
        if declared == 0:
            raise ParameterError(
                "delta = 0 was asked where the items are private: that an item exists would tell that a unit is in it. "
                "Give a delta above 0, or declare the items."
            )
        values = {
            "k": whole_number(k, "k"),
            "epsilon": epsilon_of(epsilon),
            "delta": declared,
            "items": whole_number(items, "items"),
            "sensitivity": whole_number(sensitivity, "sensitivity"),
            "monotone": flag(monotone, "monotone"),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "floor", self._floor())

    @property
    def rate(self) -> Fraction:
        """r: how fast the weight of an item grows with its count."""
        return within_floats(
            self.epsilon / (self.sensitivity if self.monotone else 2 * self.sensitivity), "epsilon / sensitivity"
        )

    def _floor(self) -> int:
        """T: the least whole number that keeps delta / k in each choice, decided in rationals."""
        most, rate = self.delta / self.k / self.items, self.rate

        def enough(floor: int) -> bool:
            return floor >= self.sensitivity and exp_up(rate * (self.sensitivity - floor)) <= most

        floor = self.sensitivity + max(0, math.floor(-float(ln(most)) / float(rate)) - 2)
        if floor >= _MOST:
            raise ParameterError("at this epsilon and delta no item would be shown; give a larger epsilon or delta.")
        while not enough(floor):
            floor += 1
        return floor

    @property
    def loss(self) -> ev.Event:
        """The event to charge: k adaptive choices, and the chance that an item of one unit alone is chosen."""
        return ev.Composed([ev.Repeated(ev.BoundedRange(self.epsilon), self.k), ev.ApproxDP(0, self.delta)])

    def shown(self, count: int) -> float:
        """The chance that an item of so many rows is chosen before "no other" is, if no other item is near."""
        return 1 / (1 + math.exp(min(700.0, float(self.rate) * (self.floor - count))))

    @property
    def one_unit(self) -> float:
        """A bound on the chance that an item of one unit alone is among the k."""
        return min(1.0, self.k * math.exp(float(self.rate * (self.sensitivity - self.floor))))

    def release(self, counts: Any, *, keys: Iterable[Hashable] | None = None, bits: Bits | None = None) -> list[int]:
        """Positions of the chosen items, the most frequent first; at most k. counts: integers, shape (items there,).

        An item whose count is 0 is not there. keys: what the items are called, for the auditor alone.
        """
        exact = capped_counts(counts, _MOST)
        if exact is None:
            raise ParameterError("counts are whole numbers >= 0, one for each item.")

        def draw() -> dict[int, int]:
            left, places = [int(i) for i in np.flatnonzero(exact)], dict[int, int]()
            while left and len(places) < self.k:
                steps, unit = integer_steps(np.append(exact[left], self.floor))
                chosen = int(weighted_choice(steps, self.rate * unit, bits=bits))
                if chosen == len(left):
                    break
                places[left.pop(chosen)] = len(places)
            return places

        moved = self.items * self.sensitivity * (1 if self.monotone else 2)
        places = through(exact, sensitivity=moved, norm="groups", law=self, draw=draw, keys=keys)
        return sorted(places, key=lambda i: places[i])

    @quiet
    def log_prob(self, output: Sequence[int], data: Any) -> float:
        """ln P(release(data) = output), exactly the law above."""
        exact, total = np.asarray(data, np.int64), 0.0
        left = [int(i) for i in np.flatnonzero(exact)]
        ended = len(output) < min(self.k, len(left))
        for chosen in (*output, *((-1,) if ended else ())):
            if chosen >= 0 and chosen not in left:
                return -math.inf
            steps, unit = integer_steps(np.append(exact[left], self.floor))
            logs = log_weights(steps, self.rate * unit)
            total += float(logs[left.index(chosen) if chosen >= 0 else -1]) - float(np.logaddexp.reduce(logs))
            left = [i for i in left if i != chosen]
        return total if len(output) <= self.k else -math.inf
