"""What goes into every noise primitive and what comes out, for tests and the auditor; nothing at all in production.

A primitive M takes private integers v and promises that neighbours' integers v, v' differ by at most its declared
sensitivity, in its own norm. Everything between the rows and v is deterministic given earlier outputs. So a program is
private as claimed if, run again on a neighbour with the *outputs of the first run frozen*, it asks the same primitives
of the same laws in the same order, each v has moved by at most its sensitivity, and it answers the same: that is the
coupling which the adaptive composition theorem (Dwork, Roth 2014, Theorem 3.14) needs.

Norms, for d = v - v':

    l1          sum |d_i|                          Laplace noise
    l2_squared  sum d_i^2                          Gaussian noise
    linf        max |d_i|                          scores of a selection
    one_way     max |d_i| if no two d_i differ in sign, else infinite: monotone scores
    rows        size of the symmetric difference of v and v' as multisets: quantiles
    gauge       the norm of the law itself: K-norm noise
    opened      max |d_i|, which is 0, of the public threshold: a sparse vector is opened, where all of it is paid for
    asked       max |d_i|: a question to one that is open
    groups      sum |d_i| over groups of one key, zeros added: unit counts of private groups. Without keys, the least
                sum over all ways to line up v and v'

Outside a `recording` or `replaying` block `through` is one look-up of a context variable.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal, TypeVar, assert_never

from hubbub.errors import InternalError

__all__ = ["Norm", "Recorded", "distance", "place_on_tape", "recording", "replaying", "through"]

Norm = Literal["l1", "l2_squared", "linf", "one_way", "gauge", "opened", "asked", "rows", "groups"]
T = TypeVar("T")


@dataclass(frozen=True)
class Recorded:
    """One call of a primitive. It holds private integers: for tests and the auditor, never shown or stored.

    values: what went in. sensitivity: how far neighbours may move it, in `norm`. distribution: the law or mechanism,
    public. released: what came out. keys: of the groups, where they are private; of a question, the place on the tape
    at which its sparse vector was opened.
    """

    values: tuple[Any, ...]
    sensitivity: Any
    distribution: Any
    released: Any
    norm: Norm = "l1"
    keys: tuple[Hashable, ...] | None = None

    def __reduce__(self) -> str:
        raise InternalError("a record of private integers cannot be pickled")

    def __repr__(self) -> str:
        return f"Recorded({len(self.values)} private integers, sensitivity={self.sensitivity})"


@dataclass(frozen=True)
class _Tape:
    records: list[Recorded]
    frozen: Sequence[Recorded]
    before: Callable[[], None]


_tape: ContextVar[_Tape | None] = ContextVar("hubbub_records", default=None)


def _nothing() -> None:
    return None


@contextmanager
def _running(tape: _Tape) -> Iterator[list[Recorded]]:
    token = _tape.set(tape)
    try:
        yield tape.records
    finally:
        _tape.reset(token)


def recording(*, before: Callable[[], None] = _nothing) -> Any:
    """Within the block, every call of a primitive in this context is appended to the list that is handed out.

    before: called before each draw.
    """
    return _running(_Tape([], (), before))


def replaying(records: Sequence[Recorded], *, before: Callable[[], None] = _nothing) -> Any:
    """As `recording`, but the n-th call releases what the n-th of `records` did, where the shapes allow it."""
    return _running(_Tape([], tuple(records), before))


def place_on_tape() -> int:
    """How many calls were recorded before the next one; 0 while no auditor listens."""
    tape = _tape.get()
    return 0 if tape is None else len(tape.records)


def through(
    values: Iterable[Any],
    *,
    sensitivity: Any,
    norm: Norm,
    law: Any,
    draw: Callable[[], T],
    keys: Iterable[Hashable] | None = None,
) -> T:
    """What `draw` gives; while an auditor listens, it is recorded, or replaced by the output that is replayed."""
    tape = _tape.get()
    if tape is None:
        return draw()
    tape.before()
    place = len(tape.records)
    # numpy's integers wrap where Python's grow.
    plain = tuple(v.item() if hasattr(v, "item") else v for v in values)
    now = Recorded(plain, sensitivity, law, None, norm, None if keys is None else tuple(keys))
    then = tape.frozen[place] if place < len(tape.frozen) else None
    released: T = draw() if then is None or not _fits(then, now) else _again(then, now)
    tape.records.append(replace(now, released=released))
    return released


def _fits(then: Recorded, now: Recorded) -> bool:
    """Whether what was released then can be an answer now."""
    if (then.norm, type(then.distribution)) != (now.norm, type(now.distribution)):
        return False
    if now.norm == "groups":
        return (_keyed(then, now) and isinstance(then.released, dict)) or len(then.values) == len(now.values)
    return now.norm == "rows" or len(then.values) == len(now.values)


def _keyed(then: Recorded, now: Recorded) -> bool:
    return then.keys is not None and now.keys is not None


def _again(then: Recorded, now: Recorded) -> Any:
    """What was released then; groups go by their keys, because the places of private groups shift."""
    if now.norm != "groups" or then.keys is None or now.keys is None or not isinstance(then.released, dict):
        return then.released
    places = {key: i for i, key in enumerate(now.keys)}
    kept = {places[then.keys[i]]: count for i, count in then.released.items() if then.keys[i] in places}
    return dict(sorted(kept.items()))


def distance(first: Recorded, second: Recorded) -> Any:
    """How far apart the inputs of two calls are, in the norm of the first; infinite where they cannot be compared.

    >>> one, two = (Recorded((n, 5), 1, None, None) for n in (3, 7))
    >>> distance(one, two)
    4
    """
    a, b, norm = first.values, second.values, first.norm
    if norm == "rows":
        left, right = Counter(a), Counter(b)
        return (left - right).total() + (right - left).total()
    if norm == "groups" and first.keys is not None and second.keys is not None:
        left, right = Counter(dict(zip(first.keys, a, strict=True))), Counter(dict(zip(second.keys, b, strict=True)))
        return sum(abs(left[key] - right[key]) for key in left.keys() | right.keys())
    if norm == "groups":
        # Sorted lists, largest first, are the line-up with the least sum of differences.
        pairs = zip_longest(sorted(a, reverse=True), sorted(b, reverse=True), fillvalue=0)
        return sum(abs(x - y) for x, y in pairs)
    if len(a) != len(b):
        return math.inf
    moves = [x - y for x, y in zip(a, b, strict=True)]
    match norm:
        case "l1":
            return sum(map(abs, moves))
        case "l2_squared":
            return sum(d * d for d in moves)
        case "linf" | "asked" | "opened":
            return max(map(abs, moves), default=0)
        case "one_way":
            both = any(d > 0 for d in moves) and any(d < 0 for d in moves)
            return math.inf if both else max(map(abs, moves), default=0)
        case "gauge":
            return first.distribution.gauge(moves)
    assert_never(norm)
