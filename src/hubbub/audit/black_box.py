"""A lower bound on the epsilon of any callable, with stated confidence, from its outputs alone.

Samples are split. On the first part, events that tell D from D' are learnt (`scores`, `corners`) and a few finalists
are chosen, each with its direction, its threshold and its kind of bound (`choice`). On the second part, drawn
afterwards, only these events are counted, all on the same outputs.

Why the bound holds. Let A be all that happened before the counting: what was learnt, F finalists S_1 .. S_F with a
direction each, how many outputs are to be counted, and whether they are drawn one by one. Given A, the counted outputs
are independent draws of the two laws. So the hits of S_i on each side are binomial (Poisson, where the sizes are: they
are drawn from the system's randomness, which no output knows), and a bound of `bounds` at 1 - alpha/F exceeds the true
epsilon with probability at most alpha/F, given A. One of the F does so with probability at most alpha: the sum. This
holds however the F events depend on each other, for every A, and so without A as well. Two things may go wrong while
counting, and neither is mended: time runs out, or a batch raises, so that its outputs are missing. Each missing output
counts as a hit where hits lower the bound, and as none where they raise it; the bounds are monotone in both counts, so
the bound is at most that of the outputs which would have been there.

A mechanism that raises is drawn one output at a time from then on, if learning shows that it does: had the batches that
raise been drawn again instead, the outputs that raise would be counted too rarely, and a bound could be false.

The bound is sound for independent outputs. It is never a proof of privacy: an event nobody thought of, or one rarer
than a few in `samples`, is not seen; `ceiling` is the most that could have been shown.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.audit.bounds import epsilon_bound, probability_of, ratio_bound
from hubbub.audit.choice import LEAST_FOR_RATIOS, Event, best_events
from hubbub.audit.clock import Clock, Deadline
from hubbub.audit.features import Features, Seen
from hubbub.audit.outputs import Layout, Run, draw, draw_once, layout_of, matrix
from hubbub.errors import ParameterError, what_was_given
from hubbub.noise import uniform_below

__all__ = ["LowerBound", "lower_bound"]

Floats = NDArray[np.float64]

SAMPLES_PER_SECOND = 10_000_000 / 60
"""How many outputs are drawn at most, for each second allowed: 1e7 in a minute."""

_LARGEST_BATCH = 1 << 15
_CELLS_PER_BATCH = 1 << 20
_CELLS_KEPT = 1 << 24
_MOST_LEARNT = 500_000
_TRAINED = 0.55
_SAFELY = 0.8
_LEAST_SAMPLES = 32
_LEARNING, _LEARNING_LITTLE, _LITTLE = 0.2, 0.2, 20_000


@dataclass(frozen=True)
class LowerBound:
    """What the samples show: the loss is at least `epsilon`, with probability `confidence` over the samples.

    ceiling: the most that so many counted samples could have shown. samples: all outputs drawn, on both data sets.
    counted: those on each side that the bound rests on. event: what was counted, in words; hits: how often, on the
    data set where it is likelier and on the other. events: how many events were counted, of which this shows most; each
    has its share of 1 - confidence. seconds: how long it took.
    """

    epsilon: float
    ceiling: float
    samples: int
    counted: int
    delta: float
    confidence: float
    seconds: float
    event: str
    hits: tuple[int, int]
    events: int = 1

    def __str__(self) -> str:
        beside = f" at delta = {self.delta:g}" if self.delta else ""
        return (
            f"epsilon >= {self.epsilon:.4g}{beside} with confidence {self.confidence:g} "
            f"({self.samples:,} samples, {self.seconds:.1f} s; the most they could show: {self.ceiling:.4g})"
        )


def lower_bound(
    run: Run,
    d: Any,
    d_prime: Any,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    seconds: float = 60,
    max_samples: int | None = None,
    bits: bool = False,
    clock: Clock = time.monotonic,
) -> LowerBound:
    """A lower bound on the epsilon at which `run` is (epsilon, delta)-private on the neighbours d and d_prime.

    run: run(data, size) gives an array of `size` independent outputs along its first axis, each a number or a vector;
    exceptions, other lengths and dtypes are outputs too. d, d_prime: handed to `run` untouched. seconds: about how long
    it may take. max_samples: outputs to draw at most, on both together; by default 1e7 for each minute allowed.
    bits: look at the last bits of floats as well. Noise drawn in floating point gives itself away there (Mironov 2012),
    which is a flaw of nearly every program and hides all others; `float_support` is the audit for it. clock: what
    `seconds` are read from; `time.process_time` where others use the machine as well.

    Raises ParameterError for a delta or confidence that is not a probability, for too few seconds or samples, and where
    `run` gives another number of outputs than it was asked for.

    >>> coin = lambda data, size: np.full(size, data)
    >>> lower_bound(coin, 0, 1, seconds=0.2, max_samples=2000).epsilon > 4
    True
    """
    probability_of(delta, "delta")
    if not 0 < float(confidence) < 1:
        raise ParameterError(f"confidence = {confidence} was given; give a number between 0 and 1, such as 0.95.")
    if not 0 < float(seconds) < math.inf:
        raise ParameterError(f"seconds = {seconds} was given; give a positive number of seconds.")
    most = int(SAMPLES_PER_SECOND * seconds) if max_samples is None else max_samples
    if isinstance(most, bool) or not isinstance(most, int):
        raise ParameterError(f"max_samples = {what_was_given(max_samples)} was given; give a whole number.")
    most = max(most, 4 * _LEAST_SAMPLES) if max_samples is None else most
    if most < 4 * _LEAST_SAMPLES:
        raise ParameterError(f"max_samples = {most} was given; give at least {4 * _LEAST_SAMPLES}.")
    return _Audit(run, (d, d_prime), float(delta), float(confidence), float(seconds), most, bits, clock).bound()


class _Audit:
    """One audit: its clock, and how many outputs it has drawn."""

    def __init__(
        self, run: Run, data: tuple[Any, Any], delta: float, confidence: float, seconds: float, most: int, bits: bool,
        clock: Clock,
    ) -> None:  # fmt: skip
        self.run, self.data, self.delta, self.confidence = run, data, delta, confidence
        self.bits, self.clock = bits, clock
        self.start, self.seconds, self.most = clock(), seconds, most
        self.drawn = 0
        self.singly = False

    @property
    def spent(self) -> float:
        """Seconds so far."""
        return self.clock() - self.start

    def bound(self) -> LowerBound:
        layout, first, rate = self._first()
        features, events, sizes = self._events(layout, first, rate)
        hits, missing = self._count(layout, features, events, sizes)
        share = 1 - (1 - self.confidence) / len(events)
        shown = [self._shown(event, hits[i], missing, sizes, share) for i, event in enumerate(events)]
        best = max(range(len(events)), key=lambda i: shown[i][0])
        event = events[best]
        return LowerBound(
            shown[best][0],
            max(self._ceiling(event, sizes, share) for event in events),
            self.drawn,
            min(sizes),
            self.delta,
            self.confidence,
            self.spent,
            f"{event.name}, likelier on {'d' if event.forward else 'd_prime'}",
            shown[best][1],
            len(events),
        )

    def _shown(
        self, event: Event, hits: list[int], missing: list[int], sizes: list[int], share: float
    ) -> tuple[float, tuple[int, int]]:
        """The bound that an event shows, and its hits: what is missing counts against it."""
        mine, other = (0, 1) if event.forward else (1, 0)
        counts = (hits[mine], hits[other] + missing[other])
        return self._bound(event, counts, (sizes[mine], sizes[other]), share), counts

    def _bound(self, event: Event, hits: tuple[int, int], sizes: tuple[int, int], share: float) -> float:
        if event.ratio:
            return ratio_bound(*hits, confidence=share)
        return epsilon_bound(hits[0], sizes[0], hits[1], sizes[1], confidence=share, delta=self.delta)

    def _ceiling(self, event: Event, sizes: list[int], share: float) -> float:
        mine, other = (0, 1) if event.forward else (1, 0)
        return self._bound(event, (sizes[mine], 0), (sizes[mine], sizes[other]), share)

    def _draw(self, side: int, size: int) -> list[Any]:
        """Outputs to learn from."""
        parts = draw(self.run, self.data[side], size)
        self.drawn += sum(1 if isinstance(p, BaseException) else len(p) for p in parts)
        self.singly = self.singly or any(isinstance(p, BaseException) for p in parts)
        return parts

    def _first(self) -> tuple[Layout, list[list[Any]], float]:
        """Growing batches, until the time one pair of outputs takes is known."""
        drawn: list[list[Any]] = [[], []]
        size, batch = 8, 0.0
        while True:
            before = self.clock()
            for side in (0, 1):
                drawn[side] += self._draw(side, size)
            batch = (self.clock() - before) / size
            enough = self.clock() - before > 0.01 * self.seconds or self.spent > 0.1 * self.seconds
            if enough or 8 * size > self.most // 20:
                return layout_of(*drawn), drawn, batch
            size *= 4

    def _events(self, layout: Layout, first: list[list[Any]], rate: float) -> tuple[Features, list[Event], list[int]]:
        """The events to count, and on how many outputs of each side."""
        pairs = min(self.most // 2, int(0.6 * self.seconds / max(rate, 1e-9)))
        learnt = (_LEARNING + _LEARNING_LITTLE / (1 + pairs / _LITTLE)) * pairs
        learning = max(2 * _LEAST_SAMPLES, min(int(learnt), _MOST_LEARNT, _CELLS_KEPT // layout.columns))
        rows = [matrix(some, layout) for some in first]
        began, already = self.clock(), self.drawn
        for side in (0, 1):
            short = learning - len(rows[side])
            more = [matrix(some, layout) for some in self._batches(side, short, layout, 0.4)]
            rows[side] = np.concatenate([rows[side], *more])
        if self.drawn > already:
            # What was seen last tells best: outputs may be drawn one by one by now.
            rate = max(rate / 4, 2 * (self.clock() - began) / (self.drawn - already))
        half = [int(_TRAINED * len(r)) for r in rows]
        train = (rows[0][: half[0]], rows[1][: half[1]])
        test = (rows[0][half[0] :], rows[1][half[1] :])

        def countable(pace: float) -> int:
            # However long learning took, some time is for counting.
            left = max(_SAFELY * self.seconds - self.spent, 0.2 * self.seconds)
            return max(_LEAST_SAMPLES, min((self.most - self.drawn) // 2, int(left / (max(rate, 1e-9) + pace))))

        deadline = Deadline(self.start + max(0.45 * self.seconds, self.spent + 0.05), self.clock)
        features, events, pace = best_events(
            train, test, countable=countable, confidence=self.confidence, delta=self.delta, deadline=deadline,
            bits=self.bits,
        )  # fmt: skip
        size = countable(pace)
        if size < LEAST_FOR_RATIOS:
            events = [replace(event, ratio=False) for event in events]
        if not any(event.ratio for event in events):
            return features, events, [size, size]
        mean = size - 5 * math.sqrt(size)
        return features, events, [max(1, _poisson(mean)) for _ in (0, 1)]

    def _batches(self, side: int, total: int, layout: Layout, share: float) -> Iterator[list[Any]]:
        """`total` outputs in batches, or fewer where `share` of the time is spent."""
        size = max(1, min(_LARGEST_BATCH, _CELLS_PER_BATCH // layout.columns))
        while total > 0 and (self.spent < share * self.seconds * (1 + side) / 2):
            parts = self._draw(side, min(size, total))
            total -= sum(1 if isinstance(p, BaseException) else len(p) for p in parts)
            yield parts

    def _count(
        self, layout: Layout, features: Features, events: list[Event], sizes: list[int]
    ) -> tuple[list[list[int]], list[int]]:
        """Hits of each event on each side among `sizes` outputs, and how many outputs of each side are missing."""
        hits = [[0, 0] for _ in events]
        asked, missing = [0, 0], [0, 0]
        batch = max(1, min(_LARGEST_BATCH, _CELLS_PER_BATCH // layout.columns))
        while (asked[0] < sizes[0] or asked[1] < sizes[1]) and (self.spent < 1.25 * self.seconds or not all(asked)):
            for side in (0, 1):
                size = min(batch, sizes[side] - asked[side], self.most - self.drawn)
                if size <= 0:
                    continue
                drawn = draw_once(self.run, self.data[side], size, singly=self.singly)
                asked[side] += size
                self.drawn += size
                if not drawn:
                    missing[side] += size
                    continue
                seen = Seen(matrix(drawn, layout), features.values)
                for i, event in enumerate(events):
                    hits[i][side] += int(np.count_nonzero(event.member(seen)))
            if self.drawn >= self.most:
                break
        return hits, [missing[side] + sizes[side] - asked[side] for side in (0, 1)]


def _poisson(mean: float) -> int:
    """A Poisson number: the quantile of a uniform one of 53 bits, so right to about 1e-16 in each probability."""
    from scipy.stats import poisson

    return int(poisson.ppf((uniform_below(2**53) + 0.5) / 2**53, mean))
