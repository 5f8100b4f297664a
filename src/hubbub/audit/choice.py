"""The events to count: a few that promise most, chosen on samples that are not counted.

An event's hope is the bound that it will show with as many outputs as there will be time to count, if it comes as often
as it did here. Of thousands of events the luckiest looks best, so its promise is less by some standard deviations of
its log-ratio here. How many is a matter of caution: the common event is sure to show a little, the rare one may show
much. The best event for each caution is a *finalist*; all are counted, on the same outputs, each at a share of
1 - confidence (`black_box` has the argument), and those that nearly coincide only once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.audit.bounds import expected_bounds, likely_bounds
from hubbub.audit.clock import Clock, Deadline
from hubbub.audit.corners import Corner, corners
from hubbub.audit.features import Features, Seen, features_of
from hubbub.audit.scores import Learnt, Scorer, joint_scorers, learnt, scorers

__all__ = ["LEAST_FOR_RATIOS", "Event", "best_events"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

_CAUTIONS = (3.0, 1.5, 0.7)
_OVERLAP = 0.8
_HALF, _NEVER, _IN_A_ROW = 0.5, 0.1, 3
_IN_CORNERS, _CORNERS = 6, 24
LEAST_FOR_RATIOS = 5000
"""Outputs a side from which on Poisson sizes, which vary by their root, cost little."""


@dataclass(frozen=True)
class Event:
    """A set of outputs. `forward`: it is likelier on D; else on D'. `hope`, and the deviation of its log-ratio.

    ratio: the bound comes from Poisson sizes, instead of two intervals.
    """

    name: str
    member: Callable[[Seen], NDArray[np.bool_]]
    forward: bool
    hope: float
    spread: float
    ratio: bool

    def promise(self, caution: float) -> float:
        """The bound it will show, less so many standard deviations."""
        return self.hope - caution * self.spread


@dataclass(frozen=True)
class Stake:
    """What the counting will be like. countable: seconds for a pair -> how many pairs; confidence: of one event."""

    countable: Callable[[float], int]
    confidence: float
    delta: float
    clock: Clock


def best_events(
    train: tuple[Floats, Floats],
    test: tuple[Floats, Floats],
    *,
    countable: Callable[[float], int],
    confidence: float,
    delta: float,
    deadline: Deadline,
    bits: bool = False,
) -> tuple[Features, list[Event], float]:
    """The finalists, the best first, and the seconds that one pair of outputs takes for all of them.

    train, test: rows on D, rows on D': to learn from, and to choose by. countable: seconds that events take for a
    pair of outputs -> how many pairs there will be time to count. bits: look at the bits of floats as well.
    """
    features = features_of(*train, bits=bits)
    p, q = (Seen(rows, features.values) for rows in train)
    few = [Seen(rows, features.values) for rows in test]
    stake = Stake(countable, 1 - (1 - confidence) / 3, delta, deadline.clock)
    events: list[Event] = []
    known = learnt(features, p, q)
    both = [Pooled((few[i], side)) for i, side in enumerate((p, q))]
    apart = [Pooled((rows,)) for rows in few]
    for scorer in scorers(known, deadline):
        events += _thresholds(scorer, both if scorer.stiff else apart, stake)
    if len(known.columns) > 1 and not deadline.passed:
        events += _quadrants(known, apart, stake)
    for scorer in joint_scorers(known, deadline):
        events += _thresholds(scorer, both if scorer.stiff else apart, stake)
    return features, *_finalists(events, few, test, stake)


@dataclass(frozen=True)
class Pooled:
    """Outputs of one data set that may judge an event."""

    parts: tuple[Seen, ...]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def joined(self, scores_of: Callable[[Seen], NDArray[Any]]) -> NDArray[Any]:
        """What `of` says of all of them."""
        return np.concatenate([scores_of(part) for part in self.parts])


def _thresholds(scorer: Scorer, test: list[Pooled], stake: Stake) -> Iterator[Event]:
    """The best events of a scorer, those of both directions."""
    codes, clock = [side.joined(lambda part: part.once(scorer, scorer.codes)) for side in test], stake.clock
    began = clock()
    part = test[0].parts[0]
    scorer.codes(Seen(part.rows[:5000], part.values))
    pace = 2 * (clock() - began) / min(5000, len(part))
    for order in scorer.orders:
        counts = [np.bincount(c, minlength=order.size)[order] for c in codes]
        for forward in (True, False):
            # The last cells are those of D; for D' the order is read from its other end.
            mine, other = (counts[0][::-1], counts[1][::-1]) if forward else (counts[1], counts[0])
            sums = np.cumsum(mine), np.cumsum(other)
            # An event ends with a cell that holds something.
            ends = np.flatnonzero(mine)
            if ends.size == 0:
                continue
            ordered = order[::-1] if forward else order
            n, m = map(len, test if forward else test[::-1])
            rare, surer = _estimated(sums[0][ends], sums[1][ends])
            hope, spread = _quickly(sums[0][ends], n, rare, m, stake, pace, surer)
            for at in {int(np.argmax(hope - caution * spread)) for caution in _CAUTIONS}:
                cells = np.zeros(order.size, dtype=np.bool_)
                cells[ordered[: ends[at] + 1]] = True
                member = _in_cells(scorer, cells)
                yield _event(
                    scorer.name,
                    member,
                    forward,
                    int(sums[0][ends[at]]),
                    n,
                    float(rare[at]),
                    m,
                    stake,
                    pace,
                    float(surer[at]),
                )


def _estimated(mine: Codes, other: Codes) -> tuple[Floats, Floats]:
    """The hits on the other side, cell by cell outwards from the surest, for events of which none was seen there.

    Where g more outputs in a row hit on one side alone, few hits of the other can lie within: 1/(1 + g/3), say, of
    one; and by g/3 that is the surer, as if so many had been seen. Both are given.
    """
    none = other == 0
    surer = np.where(none, np.maximum(mine[none].max(initial=0) - mine, 0) / _IN_A_ROW, 0.0)
    return np.where(none, np.maximum(_NEVER, 1 / (1 + surer)) - _HALF, other), surer


def _in_cells(scorer: Scorer, cells: NDArray[np.bool_]) -> Callable[[Seen], NDArray[np.bool_]]:
    return lambda seen: np.asarray(cells[seen.once(scorer, scorer.codes)])


def _event(
    name: str, member: Callable[[Seen], NDArray[np.bool_]], forward: bool,
    mine: int, n: int, other: float, m: int, stake: Stake, pace: float, surer: float = 0.0,
) -> Event:  # fmt: skip
    counted = stake.countable(pace)
    spread = math.sqrt(1 / (mine + 1) + 1 / (max(other, 0) + 1 + surer))
    two, ratio = expected_bounds(mine / n, (other + _HALF) / m, counted, confidence=stake.confidence, delta=stake.delta)
    better = counted >= LEAST_FOR_RATIOS and bool(ratio > two)
    return Event(name, member, forward, float(ratio if better else two), spread, better)


def _quickly(
    mine: Floats | Codes, n: int, other: Floats | Codes, m: int, stake: Stake, pace: float,
    surer: Floats | float = 0.0,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Hopes of many events, nearly, and their standard deviations."""
    counted = stake.countable(pace)
    alpha = 1 - stake.confidence
    k, rare = mine * (counted / n), (other + _HALF) * (counted / m)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(1 / (mine + 1) + 1 / (np.maximum(other, 0) + 1 + surer))
        low, high = (likely_bounds(c, counted, -NormalDist().inv_cdf(alpha / 2))[i] for i, c in enumerate((k, rare)))
        best = np.where(low > stake.delta, np.log((low - stake.delta) / high), -np.inf)
        if stake.delta == 0 and counted >= LEAST_FOR_RATIOS:
            wide = -NormalDist().inv_cdf(alpha) * np.sqrt(1 / k + 1 / (rare + 1))
            best = np.maximum(best, np.where(k > 0, np.log(k) - np.log(rare + 0.5) - wide, -np.inf))
    return np.asarray(best), np.asarray(spread)


def _quadrants(known: Learnt, test: list[Pooled], stake: Stake) -> Iterator[Event]:
    p, q = known.p, known.q

    def worth(mine: Floats, other: Floats) -> Floats:
        hope, spread = _quickly(mine, len(p), other, len(q), stake, 0.0)
        return hope - _CAUTIONS[0] * spread

    best = sorted(corners(p, q, known.distinct(_IN_CORNERS), worth), key=lambda corner: -corner.promise)[:_CORNERS]
    for corner in best:
        yield _judged(corner, test, stake)


def _judged(corner: Corner, test: list[Pooled], stake: Stake) -> Event:
    hits = [int(np.count_nonzero(rows.joined(corner))) for rows in test]
    (mine, n), (other, m) = ((hits[i], len(test[i])) for i in ((0, 1) if corner.forward else (1, 0)))
    return _event(str(corner), corner, corner.forward, mine, n, other, m, stake, 0.0)


def _finalists(
    events: list[Event], few: list[Seen], test: tuple[Floats, Floats], stake: Stake
) -> tuple[list[Event], float]:
    """The best event for each caution, those left out that nearly coincide with one before."""
    chosen: list[Event] = []
    hits: list[NDArray[np.bool_]] = []
    for caution in _CAUTIONS:
        event = max(events, key=lambda event: event.promise(caution))
        members = event.member(few[0 if event.forward else 1])
        if all(
            event.forward != other.forward or _overlap(members, there) < _OVERLAP
            for other, there in zip(chosen, hits, strict=True)
        ):
            chosen.append(event)
            hits.append(members)
    part = Seen(test[0][:20_000], few[0].values)
    began = stake.clock()
    for event in chosen:
        event.member(part)
    return chosen, max(1e-9, 2 * (stake.clock() - began) / len(part))


def _overlap(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    either = int(np.count_nonzero(a | b))
    return int(np.count_nonzero(a & b)) / either if either else 1.0
