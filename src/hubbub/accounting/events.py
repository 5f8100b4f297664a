"""Events: what was run, and so costs privacy. One vocabulary for the whole package.

An event is a frozen value that names a mechanism, or a guarantee, by exact parameters. What it costs is
asked of `hubbub.accounting`: `epsilon(event, delta)`, `rho(event)`, `bounds(event, delta)`, ...

The laws of this file:
- Parameters are exact rationals (`amounts.py` says how numbers are read).
- Epsilons, rhos and deltas are those of *one* neighbouring step; `Group` is for several.
- Plain mechanisms state their own sensitivity, so they fit either neighbour relation. `PoissonSampled` is
  add/remove and `SampledWithoutReplacement` is replace: only these two clash (`neighbours`).
- `Composed` and `Repeated` are adaptive: a later mechanism may depend on earlier answers; its parameters
  are fixed.
  For parameters chosen after seeing answers, use a filter (`filters.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from hubbub.accounting.amounts import Number, amount, count, probability, scale
from hubbub.errors import ParameterError, what_was_given

__all__ = [
    "ZCDP",
    "ApproxDP",
    "BoundedRange",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Gaussian",
    "GaussianDP",
    "Group",
    "Laplace",
    "Parallel",
    "PoissonSampled",
    "PureDP",
    "RandomizedResponse",
    "Repeated",
    "SampledWithoutReplacement",
    "Threshold",
    "neighbours",
]


class Event:
    """The base of all events. `children` are the events inside it."""

    __slots__ = ()

    @property
    def children(self) -> tuple[Event, ...]:
        return ()


def _set(owner: Event, /, **fields: object) -> None:
    for name, value in fields.items():
        object.__setattr__(owner, name, value)


def _inner(value: object, where: str) -> Event:
    if not isinstance(value, Event):
        raise ParameterError(f"{where} holds {type(value).__name__}, not an event. Give events, such as PureDP(1).")
    return value


def _list(events: Iterable[Event], where: str) -> tuple[Event, ...]:
    items = tuple(_inner(e, where) for e in events)
    if not items:
        raise ParameterError(f"{where} holds no events. Give at least one; PureDP(0) costs nothing.")
    return items


@dataclass(frozen=True, init=False)
class PureDP(Event):
    """An epsilon-DP mechanism of which no more is known.

    >>> PureDP(0.1).epsilon
    Fraction(1, 10)
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        _set(self, epsilon=amount(epsilon, "epsilon"))


@dataclass(frozen=True, init=False)
class ApproxDP(Event):
    """An (epsilon, delta)-DP mechanism of which no more is known.

    >>> ApproxDP(1, "1e-6").delta
    Fraction(1, 1000000)
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        _set(self, epsilon=amount(epsilon, "epsilon"), delta=probability(delta, "delta"))


@dataclass(frozen=True, init=False)
class ZCDP(Event):
    """A rho-zCDP mechanism (Bun, Steinke 2016, Definition 1.1): D_alpha <= rho alpha for all alpha > 1.

    >>> ZCDP("1/2").rho
    Fraction(1, 2)
    """

    rho: Fraction

    def __init__(self, rho: Number) -> None:
        _set(self, rho=amount(rho, "rho"))


@dataclass(frozen=True, init=False)
class GaussianDP(Event):
    """A mu-Gaussian-DP mechanism (Dong, Roth, Su 2022): no easier to attack than N(0,1)
    from N(mu,1).

    >>> GaussianDP(0.5).mu
    Fraction(1, 2)
    """

    mu: Fraction

    def __init__(self, mu: Number) -> None:
        _set(self, mu=amount(mu, "mu"))


@dataclass(frozen=True, init=False)
class Laplace(Event):
    """Laplace noise of a scale b on a value of an l1 sensitivity: pure epsilon = sensitivity / b.

    >>> Laplace(scale=10).scale
    Fraction(10, 1)
    """

    scale: Fraction
    sensitivity: Fraction

    def __init__(self, scale: Number, sensitivity: Number = 1) -> None:
        _set(self, scale=_scale(scale, "scale"), sensitivity=_scale(sensitivity, "sensitivity", zero=True))


@dataclass(frozen=True, init=False)
class DiscreteLaplace(Event):
    """Integer noise with P(x) proportional to exp(-|x|/scale) on an integer of whole-numbered l1 sensitivity.

    >>> DiscreteLaplace(2, sensitivity=3).sensitivity
    3
    """

    scale: Fraction
    sensitivity: int

    def __init__(self, scale: Number, sensitivity: Number = 1) -> None:
        _set(self, scale=_scale(scale, "scale"), sensitivity=_whole(sensitivity))


@dataclass(frozen=True, init=False)
class Gaussian(Event):
    """Normal noise of standard deviation sigma on a value of an l2 sensitivity.

    >>> Gaussian(0.5).sigma
    Fraction(1, 2)
    """

    sigma: Fraction
    sensitivity: Fraction

    def __init__(self, sigma: Number, sensitivity: Number = 1) -> None:
        _set(self, sigma=_scale(sigma, "sigma"), sensitivity=_scale(sensitivity, "sensitivity", zero=True))


@dataclass(frozen=True, init=False)
class DiscreteGaussian(Event):
    """Integer noise with P(x) proportional to exp(-x^2 / 2 sigma^2) on an integer of whole-numbered
    sensitivity.

    One number. A vector whose coordinates each change by at most 1 is `Repeated(DiscreteGaussian(sigma), d)`.

    >>> DiscreteGaussian(3).sigma
    Fraction(3, 1)
    """

    sigma: Fraction
    sensitivity: int

    def __init__(self, sigma: Number, sensitivity: Number = 1) -> None:
        _set(self, sigma=_scale(sigma, "sigma"), sensitivity=_whole(sensitivity))


@dataclass(frozen=True, init=False)
class RandomizedResponse(Event):
    """k-ary randomised response: the truth with e^epsilon times the probability of each other category.

    >>> RandomizedResponse("1.5").categories
    2
    """

    epsilon: Fraction
    categories: int

    def __init__(self, epsilon: Number, categories: int = 2) -> None:
        _set(self, epsilon=amount(epsilon, "epsilon"), categories=count(categories, "categories", least=2))


@dataclass(frozen=True, init=False)
class BoundedRange(Event):
    """An epsilon-bounded-range mechanism: its loss lies in an interval of length epsilon (Durfee, Rogers
    2019).

    The exponential mechanism with scores of sensitivity s and weights exp(epsilon score / 2s).
    Permute-and-flip is not bounded range: use `PureDP`. Composed adaptively (the interval may be chosen
    after earlier answers) unless `adaptive=False`.

    >>> BoundedRange("0.2").adaptive
    True
    """

    epsilon: Fraction
    adaptive: bool

    def __init__(self, epsilon: Number, adaptive: bool = True) -> None:
        if not isinstance(adaptive, bool):
            raise ParameterError(f"adaptive = {what_was_given(adaptive)} was asked; allowed are True and False.")
        _set(self, epsilon=amount(epsilon, "epsilon"), adaptive=adaptive)


@dataclass(frozen=True, init=False)
class Threshold(Event):
    """Selection of groups by noisy counts above a threshold; one unit touches at most `groups` of them.

    `epsilon` and `delta` are those of *one* group: the noise on its count, and the chance that a group of
    one unit passes. In all that is `groups` adaptive compositions of `ApproxDP(epsilon, delta)`.

    >>> Threshold(1, "1e-6", groups=3).groups
    3
    """

    epsilon: Fraction
    delta: Fraction
    groups: int

    def __init__(self, epsilon: Number, delta: Number, groups: int = 1) -> None:
        _set(
            self,
            epsilon=amount(epsilon, "epsilon"),
            delta=probability(delta, "delta"),
            groups=count(groups, "groups"),
        )


@dataclass(frozen=True, init=False)
class PoissonSampled(Event):
    """The event on a sample that holds each unit independently with probability `rate`; add/remove
    neighbours.

    >>> PoissonSampled(Gaussian(1.1), 0.01).rate
    Fraction(1, 100)
    """

    event: Event
    rate: Fraction

    def __init__(self, event: Event, rate: Number) -> None:
        _set(self, event=_inner(event, "PoissonSampled"), rate=probability(rate, "rate", one=True))
        neighbours(self)

    @property
    def children(self) -> tuple[Event, ...]:
        return (self.event,)


@dataclass(frozen=True, init=False)
class SampledWithoutReplacement(Event):
    """The event on a uniform sample of `rate` * n of the n units; replace neighbours, n public.

    >>> SampledWithoutReplacement(Laplace(1), "1/2").rate
    Fraction(1, 2)
    """

    event: Event
    rate: Fraction

    def __init__(self, event: Event, rate: Number) -> None:
        _set(self, event=_inner(event, "SampledWithoutReplacement"), rate=probability(rate, "rate", one=True))
        neighbours(self)

    @property
    def children(self) -> tuple[Event, ...]:
        return (self.event,)


@dataclass(frozen=True, init=False)
class Composed(Event):
    """Several events on the same data, each allowed to depend on the answers before it; the order is the
    analyst's.

    >>> len(Composed([PureDP(1), Gaussian(2)]).events)
    2
    """

    events: tuple[Event, ...]

    def __init__(self, events: Iterable[Event]) -> None:
        _set(self, events=_list(events, "Composed"))
        neighbours(self)

    @property
    def children(self) -> tuple[Event, ...]:
        return self.events


@dataclass(frozen=True, init=False)
class Repeated(Event):
    """`Composed` of the same event, `times` times.

    >>> Repeated(PureDP("0.1"), 100).times
    100
    """

    event: Event
    times: int

    def __init__(self, event: Event, times: int) -> None:
        _set(self, event=_inner(event, "Repeated"), times=count(times, "times"))

    @property
    def children(self) -> tuple[Event, ...]:
        return (self.event,)


@dataclass(frozen=True, init=False)
class Parallel(Event):
    """Events on disjoint parts of the *units*: one unit meets one of them. Add/remove neighbours only.

    >>> Parallel([PureDP(1), PureDP(2)]).events[1].epsilon
    Fraction(2, 1)
    """

    events: tuple[Event, ...]

    def __init__(self, events: Iterable[Event]) -> None:
        _set(self, events=_list(events, "Parallel"))
        neighbours(self)

    @property
    def children(self) -> tuple[Event, ...]:
        return self.events


@dataclass(frozen=True, init=False)
class Group(Event):
    """The event seen by a group of `size` units that all change at once.

    >>> Group(Laplace(1), 3).size
    3
    """

    event: Event
    size: int

    def __init__(self, event: Event, size: int) -> None:
        _set(self, event=_inner(event, "Group"), size=count(size, "size"))

    @property
    def children(self) -> tuple[Event, ...]:
        return (self.event,)


def neighbours(event: Event) -> str:
    """'add_remove', 'replace', or 'either': the neighbour relation the event's numbers are about.

    >>> neighbours(PoissonSampled(Gaussian(1), "0.1"))
    'add_remove'

    Raises ParameterError when parts of the event need different relations.
    """
    own = {PoissonSampled: "add_remove", Parallel: "add_remove", SampledWithoutReplacement: "replace"}
    relations = {neighbours(child) for child in event.children} | {own.get(type(event), "either")}
    relations.discard("either")
    if len(relations) > 1:
        raise ParameterError(
            f"{type(event).__name__} mixes neighbour relations: PoissonSampled and Parallel are about "
            "adding or "
            "removing a unit, SampledWithoutReplacement about replacing one. Use one kind of "
            "sampling throughout."
        )
    return relations.pop() if relations else "either"


def _scale(value: Number, name: str, *, zero: bool = False) -> Fraction:
    return scale(value, name, zero=zero)


def _whole(value: Number) -> int:
    parsed = scale(value, "sensitivity", zero=True)
    if parsed.denominator != 1:
        raise ParameterError(
            f"sensitivity = {parsed} was asked for integer noise; allowed are whole numbers, because "
            "the noise lives on "
            "them. Put the value on an integer grid, or repeat the event once per coordinate."
        )
    return parsed.numerator
