"""Quantiles, and the ends as quantiles: the exponential mechanism on a grid of values, with brackets bought beside it.

A unit is in at most C groups, so a part's amount is divided by C. In a group, a third goes to the estimates, which are
drawn together (`hubbub.mechanisms.quantiles`), and a third to each of their two brackets
(`hubbub.mechanisms.quantile_bounds`); a minimum or a maximum is a bound itself and takes a whole share. All are
bounded range: epsilon-DP and epsilon^2/8-zCDP. Under replace a unit's rows may all move from one end to the other: that
is twice the rows.

Interval: the bracket, at 95 % or less; above that, the declared range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import ZCDP, Composed, Event, Repeated
from hubbub.accounting.rounding import digits_down, root_up
from hubbub.errors import InternalError
from hubbub.mechanisms.quantile_bounds import QuantileBound
from hubbub.mechanisms.quantiles import QuantileMechanism
from hubbub.noise import Bits
from hubbub.tables.aggregates.base import (
    RANKABLE,
    Aggregate,
    Declared,
    Family,
    Floats,
    Listed,
    Mechanisms,
    Names,
    OwnPart,
    Promise,
    Reach,
)
from hubbub.tables.kinds import TEMPORAL, Kind
from hubbub.tables.measure import QUANTILE_BITS, Measurement, MeasurementKind, value_of

__all__ = ["BRACKET_LEVEL", "FAMILY", "MAX", "MIN", "QUANTILE", "QuantileMechanisms", "QuantilePart", "epsilon_of_rho"]

BRACKET_LEVEL = Fraction(95, 100)
"""Brackets hold the true quantile with at least this probability; each side misses with half the rest, or less."""

LEVEL = 0.95


@dataclass(frozen=True)
class QuantilePart(OwnPart):
    """The quantiles `shares` of one measurement, in increasing order, with their brackets."""

    shares: tuple[Fraction, ...]

    def priced(self, reach: Reach, amount: Fraction, *, pure: bool) -> QuantileMechanisms:
        """The mechanisms of one group, for a part's amount (epsilon or rho)."""
        value = self.measurement.values[0]
        rows = reach.rows * (1 if reach.neighbours == "add_remove" else 2)
        inner = tuple(s for s in self.shares if 0 < s < 1)
        each = amount / reach.groups / len(self.shares)

        def bound(share: Fraction, amount: Fraction, beta: Fraction, *, upper: bool) -> QuantileBound:
            epsilon = amount if pure else epsilon_of_rho(8 * amount)
            return QuantileBound(share, value.floor, value.ceiling, epsilon, rows, beta, upper)

        main = None
        if inner:
            rounds = len(inner).bit_length()
            whole = each * len(inner) / 3
            main = QuantileMechanism(
                shares=inner,
                lower=value.floor,
                upper=value.ceiling,
                epsilon=whole if pure else epsilon_of_rho(8 * rounds * whole),
                rows=rows,
            )
        beta = (1 - BRACKET_LEVEL) / 2
        return QuantileMechanisms(
            self,
            reach.groups,
            None if pure else amount,
            main,
            tuple(bound(s, each / 3, beta, upper=False) for s in inner),
            tuple(bound(s, each / 3, beta, upper=True) for s in inner),
            bound(Fraction(0), each, beta, upper=True) if 0 in self.shares else None,
            bound(Fraction(1), each, beta, upper=False) if 1 in self.shares else None,
        )

    def read(self, values: Any, groups: int) -> Floats:
        """In steps: [share][estimate, low, high][group]."""
        return np.array(values, np.float64).reshape(len(self.shares), 3, groups)


def epsilon_of_rho(square: Fraction) -> Fraction:
    """A rational below the square root, by less than 1e-14 of it."""
    return digits_down(square / root_up(square), 15)


@dataclass(frozen=True)
class QuantileMechanisms(Mechanisms):
    """The mechanisms of one group's quantiles: estimates together, a bound below and above each, and the ends.

    groups: in how many one unit counts. rho: what is charged, under rho.
    """

    part: QuantilePart
    groups: int
    rho: Fraction | None
    main: QuantileMechanism | None
    below: tuple[QuantileBound, ...]
    above: tuple[QuantileBound, ...]
    minimum: QuantileBound | None
    maximum: QuantileBound | None

    @property
    def each(self) -> tuple[QuantileBound, ...]:
        """All bounds, in the order in which they are drawn."""
        return (*self.below, *self.above, *(b for b in (self.minimum, self.maximum) if b is not None))

    @property
    def event(self) -> Event:
        """Bounded range in all groups that one unit touches; under rho the very rho is charged."""
        if self.rho is not None:
            return ZCDP(self.rho)
        losses = [] if self.main is None else [self.main.loss]
        losses += [b.loss for b in self.each]
        one = Composed(losses)
        return one if self.groups == 1 else Repeated(one, self.groups)

    def draw(self, tables: Sequence[Any], bits: Bits | None) -> list[list[list[int]]]:
        """For each share the estimate and the ends of its bracket, by group: [share][estimate, low, high][group]."""
        if self.part.measurement.counting is not MeasurementKind.QUANTILES:
            raise InternalError("quantiles are drawn of a table of values")
        draws = [self._one(table, bits) for table in tables]
        return [[[group[s][k] for group in draws] for k in range(3)] for s in range(len(self.part.shares))]

    def _one(self, table: Any, bits: Bits | None) -> list[tuple[int, int, int]]:
        points, heights = np.asarray(table, np.int64).reshape(-1, 2).T.copy()
        value, shares = self.part.measurement.values[0], self.part.shares
        if points.size and (points[0] < value.floor or points[-1] > value.ceiling or np.any(np.diff(points) <= 0)):
            raise InternalError("an engine returned a table of values out of order or out of range")
        inner = [] if self.main is None else self.main.release_counted(points, heights, bits=bits).tolist()
        below = [b.release(points, heights, bits=bits) for b in self.below]
        above = [b.release(points, heights, bits=bits) for b in self.above]
        splits = []
        for share in shares:
            if share == 0 or share == 1:
                end = self.minimum if share == 0 else self.maximum
                assert end is not None
                estimate = end.release(points, heights, bits=bits)
                splits.append((estimate, value.floor, estimate) if share == 0 else (estimate, estimate, value.ceiling))
            else:
                i = len([s for s in shares[: shares.index(share)] if s > 0])
                splits.append((inner[i], min(below[i], inner[i]), max(above[i], inner[i])))
        return splits

    @property
    def words(self) -> str:
        shares = self.part.shares
        many = f"{len(shares)} quantiles" if len(shares) > 1 else "a quantile"
        return f"exponential mechanism for {many}, with brackets"

    @property
    def details(self) -> dict[str, Any]:
        each = [draw.epsilon for draw in (self.main, *self.each) if draw is not None]
        of_time = self.part.measurement.values[0].clock
        step = str(self.part.measurement.step) if of_time is None else of_time.words
        details = {"counts": "quantiles", "step": step, "shares": [str(s) for s in self.part.shares]}
        return details | {"mechanism": "exponential", "epsilons": [str(e) for e in each]}


@dataclass(frozen=True, eq=False, repr=False)
class Quantile(Listed):
    """A quantile: of the share that the question says, or (an end) of this one."""

    end: Fraction | None = None

    kinds: ClassVar[frozenset[Kind]] = RANKABLE
    part_type: ClassVar[type[OwnPart]] = QuantilePart

    def kind(self, aggregate: Aggregate) -> Kind:
        """Quantiles of dates and times are dates and times."""
        argument = aggregate.argument
        return argument.kind if argument is not None and argument.kind in TEMPORAL else Kind.NUMBER

    def measured(self, aggregate: Aggregate, declared: Declared) -> tuple[Measurement, ...]:
        """The table of values, on at most 2^16 steps."""
        (argument,) = aggregate.arguments
        value = value_of(argument, declared, bits=QUANTILE_BITS, centred=False)
        return (Measurement(MeasurementKind.QUANTILES, values=(value,)),)

    def share(self, aggregate: Aggregate) -> Fraction:
        """The share of one such aggregate: 0 for MIN, 1 for MAX."""
        share = self.end if self.end is not None else aggregate.fraction
        if share is None:
            raise InternalError("a quantile without its share")
        return share

    def part(self, measurement: Measurement, aggregates: Sequence[Aggregate], declared: Declared) -> OwnPart:
        return QuantilePart(measurement, tuple(sorted({_share(a) for a in aggregates})))

    def values(self, aggregate: Aggregate, part: QuantilePart, drawn: Floats) -> NDArray[Any]:
        return np.asarray(self._steps(aggregate, part, drawn)[0])

    def ends(self, aggregate: Aggregate, part: QuantilePart, drawn: Floats, level: float) -> tuple[Floats, Floats]:
        _, low, high = self._steps(aggregate, part, drawn)
        if level <= BRACKET_LEVEL:
            return low, high
        value = part.measurement.values[0]
        least, most = value.numbers(np.array([value.floor, value.ceiling], np.float64))
        return np.full_like(low, least), np.full_like(high, most)

    def redrawn(self, aggregate: Aggregate, part: QuantilePart, drawn: Floats, places: Any, uniform: Floats) -> Floats:
        """A quantile has no known noise law. It is at one end of its bracket as often as at the other, and else spread
        evenly between them: the truth may lie at an end, as a maximum at its declared bound. So what is computed from
        up to three quantiles reaches as far as they do together. Each moves on its own.
        """
        _, low, high = (ends[places] for ends in self._steps(aggregate, part, drawn))
        within = np.clip((uniform[part.shares.index(self.share(aggregate))] - _AT_AN_END) / (1 - 2 * _AT_AN_END), 0, 1)
        return np.asarray(np.clip(low + (high - low) * within, low, high))  # a sum of doubles may pass the end

    def promise(self, aggregate: Aggregate, mechanisms: QuantileMechanisms) -> Promise:
        """In how many ranks it is off at most, in 95 % of answers."""
        share, note = self.share(aggregate), "in ranks; its interval is bought with it"
        end = mechanisms.minimum if share == 0 else mechanisms.maximum if share == 1 else None
        if end is not None:
            # The margin is kept on one side; the error of the draw itself comes on top.
            size = math.log(end.high - end.low + 1) + math.log(1 / (1 - LEVEL))
            return Promise(note, ranks=float(end.margin) + size / float(end.rate))
        main = mechanisms.main
        assert main is not None
        return Promise(note, ranks=main.accuracy(Fraction(5, 100) / main.rounds) * main.rounds)

    def _steps(self, aggregate: Aggregate, part: QuantilePart, drawn: Floats) -> Any:
        return part.measurement.values[0].numbers(drawn[part.shares.index(self.share(aggregate))])


_AT_AN_END: Final = 0.3
"""How often a quantile is drawn at each end of its bracket: three of them at one together in more than 2.5 %."""


def _share(aggregate: Aggregate) -> Fraction:
    assert isinstance(aggregate.function, Quantile)
    return aggregate.function.share(aggregate)


QUANTILE = Quantile(Names("QUANTILE", "QUANTILE_CONT", "quantile", forms=("MEDIAN(x)", "QUANTILE_CONT(x, 0.9)")))
MIN = Quantile(Names("MIN", "MIN", "min", ("MIN",), ("MIN(x)",)), end=Fraction(0))
MAX = Quantile(Names("MAX", "MAX", "max", ("MAX",), ("MAX(x)",)), end=Fraction(1))

FAMILY = Family(
    (QUANTILE, MIN, MAX),
    (
        (
            "`MEDIAN(x)`, `QUANTILE_CONT(x, 0.9)`, `QUANTILE_CONT(x, [0.25, 0.75])`",
            "a value near the asked rank; several of one column share one amount",
            "bounds",
        ),
        ("`PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)`", "the same in other words", "bounds"),
        ("`MIN(x)`, `MAX(x)`", "quantiles near the ends", "bounds"),
        ("`MEDIAN(day)`, `MIN(day)`, `MAX(moment)`, ...", "quantiles of dates and times are dates and times", "bounds"),
    ),
    (
        "MEDIAN(x)",
        "QUANTILE_CONT(n, 0.3)",
        "MIN(x)",
        "MAX(n)",
        "MEDIAN(must)",
        "MAX(LEAST(GREATEST(x * n, -5), 5))",
    ),
)
