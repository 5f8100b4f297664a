"""A lower bound on the epsilon of any callable, with stated confidence, from its outputs alone.

Samples are split. On the first part, events that tell D from D' are learnt (`scores`) and the one that promises most
is chosen, with its direction and threshold. On the second part, drawn afterwards, only that event is counted, and the
bound of `bounds` follows: nothing about the counted outputs was used to choose what to count. How many outputs are
counted is fixed before the first of them is drawn; should time run out, those not drawn count against the bound.

The bound is sound for independent outputs. It is never a proof of privacy: an event nobody thought of, or one rarer
than a few in `samples`, is not seen; `ceiling` is the most that could have been shown.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.audit.bounds import ceiling as ceiling_of, epsilon_bound, probability_of
from hubbub.audit.outputs import Layout, Run, draw, layout_of, matrix
from hubbub.audit.scores import Event, best_event
from hubbub.errors import ParameterError

__all__ = ["LowerBound", "lower_bound"]

Floats = NDArray[np.float64]

SAMPLES_PER_SECOND = 10_000_000 / 60
"""How many outputs are drawn at most, for each second allowed: 1e7 in a minute."""

_LARGEST_BATCH = 1 << 17
_CELLS_PER_BATCH = 1 << 22
_CELLS_KEPT = 1 << 24
_MOST_TRAINED = 200_000
_MOST_TESTED = 1_200_000
_SAFELY = 0.7
_LEAST_SAMPLES = 32


@dataclass(frozen=True)
class LowerBound:
    """What the samples show: the loss is at least `epsilon`, with probability `confidence` over the samples.

    ceiling: the most that so many counted samples could have shown. samples: all outputs drawn, on both data sets.
    counted: those on each side that the bound rests on. event: what was counted, in words; hits: how often, on the
    data set where it is likelier and on the other. seconds: how long it took.
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
) -> LowerBound:
    """A lower bound on the epsilon at which `run` is (epsilon, delta)-private on the neighbours d and d_prime.

    run: run(data, size) gives an array of `size` independent outputs along its first axis, each a number or a vector;
    exceptions, other lengths and dtypes are outputs too. d, d_prime: handed to `run` untouched. seconds: about how long
    it may take. max_samples: outputs to draw at most, on both together; by default 1e7 for each minute allowed.
    bits: look at the last bits of floats as well. Noise drawn in floating point gives itself away there (Mironov 2012),
    which is a flaw of nearly every program and hides all others; `float_support` is the audit for it.

    Raises ParameterError for a delta or confidence that is no probability, for too few seconds or samples, and where
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
        raise ParameterError(f"max_samples = {max_samples!r} was given; give a whole number.")
    most = max(most, 4 * _LEAST_SAMPLES) if max_samples is None else most
    if most < 4 * _LEAST_SAMPLES:
        raise ParameterError(f"max_samples = {most} was given; give at least {4 * _LEAST_SAMPLES}.")
    return _Audit(run, (d, d_prime), float(delta), float(confidence), float(seconds), most, bits).bound()


class _Audit:
    """One audit: its clock, and how many outputs it has drawn."""

    def __init__(
        self, run: Run, data: tuple[Any, Any], delta: float, confidence: float, seconds: float, most: int, bits: bool
    ) -> None:
        self.run, self.data, self.delta, self.confidence = run, data, delta, confidence
        self.bits = bits
        self.start, self.seconds, self.most = time.monotonic(), seconds, most
        self.drawn = 0

    @property
    def spent(self) -> float:
        """Seconds so far."""
        return time.monotonic() - self.start

    def bound(self) -> LowerBound:
        layout, first, rate = self._first()
        event, counted = self._event(layout, first, rate)
        mine, other = (0, 1) if event.forward else (1, 0)
        hits, missed = self._count(layout, event, counted)
        found = (hits[mine], hits[other] + missed)
        return LowerBound(
            epsilon_bound(found[0], counted, found[1], counted, confidence=self.confidence, delta=self.delta),
            ceiling_of(counted, confidence=self.confidence, delta=self.delta),
            self.drawn,
            counted,
            self.delta,
            self.confidence,
            self.spent,
            f"{event.scorer.name}, likelier on {'d' if event.forward else 'd_prime'}",
            found,
        )

    def _draw(self, side: int, size: int) -> list[Any]:
        parts = draw(self.run, self.data[side], size)
        self.drawn += sum(1 if isinstance(p, BaseException) else len(p) for p in parts)
        return parts

    def _first(self) -> tuple[Layout, list[list[Any]], float]:
        """Growing batches, until the time one pair of outputs takes is known."""
        drawn: list[list[Any]] = [[], []]
        size, batch = 8, 0.0
        while True:
            before = time.monotonic()
            for side in (0, 1):
                drawn[side] += self._draw(side, size)
            batch = (time.monotonic() - before) / size
            enough = time.monotonic() - before > 0.01 * self.seconds or self.spent > 0.1 * self.seconds
            if enough or 8 * size > self.most // 20:
                return layout_of(*drawn), drawn, batch
            size *= 4

    def _event(self, layout: Layout, first: list[list[Any]], rate: float) -> tuple[Event, int]:
        """The event to count, and on how many outputs of each side."""
        pairs = min(self.most // 2, int(0.6 * self.seconds / max(rate, 1e-9)))
        most = min(_MOST_TRAINED + _MOST_TESTED, _CELLS_KEPT // layout.columns)
        learning = max(2 * _LEAST_SAMPLES, min(int(0.35 * pairs), most))
        rows = [matrix(some, layout) for some in first]
        for side in (0, 1):
            short = learning - len(rows[side])
            more = [matrix(some, layout) for some in self._batches(side, short, layout, 0.4)]
            rows[side] = np.concatenate([rows[side], *more])
        half = [min(int(0.5 * len(r)), _MOST_TRAINED) for r in rows]
        train = (rows[0][: half[0]], rows[1][: half[1]])
        test = (rows[0][half[0] :], rows[1][half[1] :])

        def countable(pace: float) -> int:
            left = _SAFELY * self.seconds - self.spent
            return max(_LEAST_SAMPLES, min((self.most - self.drawn) // 2, int(left / (max(rate, 1e-9) + pace))))

        deadline = self.start + max(0.45 * self.seconds, self.spent + 0.05)
        event, pace = best_event(train, test, countable=countable, delta=self.delta, deadline=deadline, bits=self.bits)
        return event, countable(pace)

    def _batches(self, side: int, total: int, layout: Layout, share: float) -> Iterator[list[Any]]:
        """`total` outputs in batches, or fewer where `share` of the time is spent."""
        size = max(1, min(_LARGEST_BATCH, _CELLS_PER_BATCH // layout.columns))
        while total > 0 and (self.spent < share * self.seconds * (1 + side) / 2):
            parts = self._draw(side, min(size, total))
            total -= sum(1 if isinstance(p, BaseException) else len(p) for p in parts)
            yield parts

    def _count(self, layout: Layout, event: Event, counted: int) -> tuple[list[int], int]:
        """Hits on each side among `counted` outputs, and how many outputs of the side that must be rare are missing."""
        hits, done = [0, 0], [0, 0]
        size = max(1, min(_LARGEST_BATCH, _CELLS_PER_BATCH // layout.columns, counted))
        while min(done) < counted and (self.spent < 1.1 * self.seconds or min(done) == 0):
            for side in (0, 1):
                while done[side] < min(counted, done[1 - side] + size):
                    rows = matrix(self._draw(side, min(size, counted - done[side])), layout)
                    hits[side] += event.hits(rows)
                    done[side] += len(rows)
        rare = 1 if event.forward else 0
        return hits, counted - done[rare]
