"""What an event costs, in exact rational numbers: the part of accounting that a ledger may decide with.

`cost(event)` is three numbers of which each is true on its own (neighbours: the event's own relation):
- epsilon: the event is epsilon-DP (None if no finite epsilon is known);
- rho, delta: the event is delta-approximate rho-zCDP (Bun, Steinke 2016, Definition 8.1).

Rules, with sources. Laplace noise and randomised response are epsilon-DP, hence epsilon^2/2-zCDP (Bun,
Steinke 2016, Proposition 1.4). Gaussian noise, continuous or discrete, is Delta^2/(2 sigma^2)-zCDP
(Canonne, Kamath, Steinke 2020). Bounded range epsilon is epsilon-DP and epsilon^2/8-zCDP
(Cesar, Rogers 2021, Lemma 3.2). mu-Gaussian DP is mu^2/2-zCDP. (epsilon, delta)-DP is delta-approximate
epsilon^2/2-zCDP. Composition adds epsilons, rhos and deltas (also when adaptive); disjoint units take the
maximum; a group of k multiplies epsilon by k and rho by k^2. Sampling never makes a cost larger
(quasi-convexity of the divergences): its amplification, which is not rational, is left to the numerical
accountant, except delta, which is multiplied by the rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hubbub.accounting import events as ev
from hubbub.errors import ParameterError

__all__ = ["Cost", "cost", "pure_epsilon", "rho"]


@dataclass(frozen=True)
class Cost:
    """An exact cost: epsilon-DP (None: no finite epsilon), and delta-approximate rho-zCDP.

    >>> Cost(Fraction(1), Fraction(1, 2)) + Cost(None, Fraction(1, 4), Fraction(1, 10**6))
    Cost(epsilon=None, rho=Fraction(3, 4), delta=Fraction(1, 1000000))
    """

    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        # By numerators: a ledger makes several of these for every charge.
        negative = (self.epsilon is not None and self.epsilon.numerator < 0) or self.rho.numerator < 0
        if negative or not 0 <= self.delta.numerator <= self.delta.denominator:
            raise ParameterError(f"{self} is not a cost: epsilon and rho must be >= 0 and delta in [0, 1].")

    def __add__(self, other: Cost) -> Cost:
        """Adaptive composition."""
        both = None if self.epsilon is None or other.epsilon is None else self.epsilon + other.epsilon
        return Cost(both, self.rho + other.rho, min(Fraction(1), self.delta + other.delta))

    def times(self, n: int) -> Cost:
        """Adaptive composition with itself, n >= 0 times."""
        epsilon = None if self.epsilon is None else n * self.epsilon
        return Cost(epsilon, n * self.rho, min(Fraction(1), n * self.delta))


def pure_epsilon(event: ev.Event) -> Fraction | None:
    """The exact epsilon for which the event is proved epsilon-DP, or None where there is none.

    >>> pure_epsilon(ev.Repeated(ev.DiscreteLaplace(10, sensitivity=2), 5))
    Fraction(1, 1)
    """
    return cost(event).epsilon


def rho(event: ev.Event) -> Fraction:
    """The exact rho for which the event is rho-zCDP.

    >>> rho(ev.Gaussian(2))
    Fraction(1, 8)

    Raises ParameterError if the event is only approximately so; `cost` then gives (rho, delta).
    """
    price = cost(event)
    if price.delta:
        raise ParameterError(
            "the event has no finite rho by itself: it fails with probability up to "
            f"{float(price.delta):.3g}. Ask "
            "`cost(event)` for its approximate zCDP (rho, delta)."
        )
    return price.rho


def cost(event: ev.Event) -> Cost:
    """The exact cost of an event.

    >>> cost(ev.BoundedRange(2))
    Cost(epsilon=Fraction(2, 1), rho=Fraction(1, 2), delta=Fraction(0, 1))
    """
    match event:
        case ev.PureDP() | ev.RandomizedResponse():
            return _pure(event.epsilon)
        case ev.Laplace() | ev.DiscreteLaplace():
            return _pure(Fraction(event.sensitivity) / event.scale)
        case ev.BoundedRange():
            return Cost(event.epsilon, event.epsilon**2 / 8)
        case ev.Gaussian() | ev.DiscreteGaussian():
            return _gaussian(Fraction(event.sensitivity) / event.sigma)
        case ev.GaussianDP():
            return _gaussian(event.mu)
        case ev.ZCDP():
            return Cost(Fraction(0) if event.rho == 0 else None, event.rho)
        case ev.ApproxDP():
            return _approximate(event.epsilon, event.delta)
        case ev.Threshold():
            return _approximate(event.epsilon, event.delta).times(event.groups)
        case ev.PoissonSampled() | ev.SampledWithoutReplacement():
            inner = cost(event.event)
            return Cost(inner.epsilon, inner.rho, inner.delta * event.rate) if event.rate else _pure(Fraction(0))
        case ev.Repeated():
            return cost(event.event).times(event.times)
        case ev.Composed():
            return sum((cost(e) for e in event.events[1:]), cost(event.events[0]))
        case ev.Parallel():
            return _worst([cost(e) for e in event.events])
        case ev.Group():
            return _group(event.event, event.size)
        case _:
            raise ParameterError(f"{type(event).__name__} is not one of hubbub's events.")


def _pure(epsilon: Fraction) -> Cost:
    return Cost(epsilon, epsilon**2 / 2)


def _gaussian(mu: Fraction) -> Cost:
    return Cost(Fraction(0) if mu == 0 else None, mu**2 / 2)


def _approximate(epsilon: Fraction, delta: Fraction) -> Cost:
    return Cost(epsilon if delta == 0 else None, epsilon**2 / 2, delta)


def _worst(costs: list[Cost]) -> Cost:
    epsilons = [c.epsilon for c in costs if c.epsilon is not None]
    epsilon = max(epsilons) if len(epsilons) == len(costs) else None
    return Cost(epsilon, max(c.rho for c in costs), max(c.delta for c in costs))


def _group(event: ev.Event, size: int) -> Cost:
    """rho of a group is size^2 rho (Bun, Steinke 2016, Proposition 1.9); approximate parts need `scaled`."""
    inner = cost(event)
    if inner.delta == 0:
        epsilon = None if inner.epsilon is None else size * inner.epsilon
        return Cost(epsilon, size**2 * inner.rho)
    return cost(scaled(event, size))


def scaled(event: ev.Event, size: int) -> ev.Event:
    """The event as a group of `size` units sees it, without `Group`: exact where the mechanism is known.

    Noise on a number: the sensitivity is multiplied. Randomised response: each unit answers for itself. Known
    guarantees: size * epsilon, size * mu, size^2 * rho, and (k epsilon, delta (e^(k epsilon) -
    1)/(e^epsilon - 1)) for (epsilon, delta)-DP, of which the textbook's k delta e^((k-1) epsilon) is a
    bound.

    Raises ParameterError for sampled events, whose group privacy has no such rule.
    """
    match event:
        case ev.Laplace() | ev.DiscreteLaplace():
            return type(event)(event.scale, event.sensitivity * size)
        case ev.Gaussian() | ev.DiscreteGaussian():
            return type(event)(event.sigma, event.sensitivity * size)
        case ev.PureDP():
            return ev.PureDP(event.epsilon * size)
        case ev.BoundedRange():
            return ev.BoundedRange(event.epsilon * size, event.adaptive)
        case ev.GaussianDP():
            return ev.GaussianDP(event.mu * size)
        case ev.ZCDP():
            return ev.ZCDP(event.rho * size**2)
        case ev.RandomizedResponse():
            return ev.Repeated(event, size)
        case ev.ApproxDP():
            return _approximate_group(event, size)
        case ev.Threshold():
            return scaled(ev.Repeated(ev.ApproxDP(event.epsilon, event.delta), event.groups), size)
        case ev.Composed():
            return ev.Composed([scaled(e, size) for e in event.events])
        case ev.Repeated():
            return ev.Repeated(scaled(event.event, size), event.times)
        case ev.Group():
            return scaled(event.event, event.size * size)
        case ev.Parallel():
            return _parallel_group(event, size)
        case _:
            raise ParameterError(
                f"the group privacy of {type(event).__name__} has no rule that holds in general. "
                "Bound what a unit "
                "contributes instead, and state the sensitivity of the inner event."
            )


def _approximate_group(event: ev.ApproxDP, size: int) -> ev.ApproxDP:
    # sum of e^(i epsilon), i < size, rounded up; a delta of 1 or more promises nothing.
    from hubbub.accounting.rounding import exp_up

    delta = event.delta * sum(exp_up(i * event.epsilon) for i in range(size))
    if delta >= 1:
        raise ParameterError(
            f"a group of {size} under ({float(event.epsilon):g}, {float(event.delta):g})-DP has delta "
            ">= 1, which "
            "promises nothing. Use a smaller group, epsilon or delta."
        )
    return ev.ApproxDP(event.epsilon * size, delta)


def _parallel_group(event: ev.Parallel, size: int) -> ev.Event:
    """A group may spread over the parts: at most `size` parts are met, each with at most the whole group."""
    grown = [scaled(e, size) for e in event.events]
    if len(set(grown)) == 1 and size == 1:
        return grown[0]
    pure = [pure_epsilon(e) for e in event.events]
    if all(p is not None for p in pure):
        return ev.PureDP(size * max(p for p in pure if p is not None))
    if all(cost(e).delta == 0 for e in event.events):
        return ev.ZCDP(size**2 * max(rho(e) for e in event.events))
    raise ParameterError(
        "the group privacy of Parallel is known for pure and zCDP parts only. Take the group of each part first."
    )
