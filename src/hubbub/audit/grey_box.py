"""Two runs side by side: one on a table, one on a neighbour with the outputs of every noise primitive frozen.

With the outputs frozen, all that is left is deterministic (`hubbub.mechanisms.recording` has the argument), so a
private program must, on the neighbour,

- ask the same primitives of the same laws in the same order, with the same sensitivities;
- put in values that moved by at most the declared sensitivity (not at all, where the data sets are the same rows in
  another form);
- give the same answer, to the last bit and dtype, or fail with the same class and text;
- say the same: warnings, log lines, standard output and error.

One differing pair is a proof of a violation, not a statistic. What the frozen runs cannot see is looked at beside
them: that noise is fresh in every run and cell (`fresh`), that a release is possible under the law it claims, and
that the laws together cost no more than was charged (`spent`).
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, zip_longest
from typing import Any

import numpy as np

from hubbub.accounting import cost as cost_of, events as ev
from hubbub.accounting.exact import Cost
from hubbub.mechanisms import ExponentialMechanism, KNormMechanism, PermuteAndFlip, StaircaseMechanism
from hubbub.mechanisms.groups import GroupThreshold
from hubbub.mechanisms.recording import Recorded, distance, recording, replaying
from hubbub.mechanisms.staircase import StaircaseLaw
from hubbub.mechanisms.top_k import UnknownTopK
from hubbub.noise import DiscreteGaussian, DiscreteLaplace

__all__ = ["Observed", "Violation", "compare", "fresh", "observe", "replay", "spent"]

_IDS = re.compile(r"\b[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b|\d{4}-\d\d-\d\dT[\d:.+Z]+|0x[0-9a-f]+")
_FALSE_ALARM = 1e-9
_ROUNDING = 1e-15


@dataclass(frozen=True)
class Violation:
    """What differed. `kind`: moved, flow, answer, error, said, reused, impossible or cost.

    detail: in words; it may hold numbers taken from the audited rows.
    """

    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


@dataclass(frozen=True)
class Observed:
    """One run: its answer or what it raised, what it said, and the calls of noise primitives."""

    answer: Any
    raised: tuple[str, str] | None
    said: tuple[str, ...]
    records: tuple[Recorded, ...] = field(repr=False)


def observe(
    run: Callable[[Any], Any],
    data: Any,
    *,
    frozen: Sequence[Recorded] | None = None,
    before: Callable[[], None] = lambda: None,
) -> Observed:
    """Run on `data`, with outputs frozen to those of `frozen`, if given. before: called before each draw."""
    answer, raised = None, None
    tape = recording(before=before) if frozen is None else replaying(frozen, before=before)
    with _listening() as said, tape as records:
        try:
            answer = run(data)
        except Exception as error:  # whatever it is, it is an answer that must not depend on the rows
            raised = (type(error).__name__, _plain(str(error)))
    return Observed(answer, raised, tuple(said), tuple(records))


def replay(run: Callable[[Any], Any], d: Any, d_prime: Any, *, same: bool = False) -> list[Violation]:
    """The violations that one pair of neighbours shows; an empty list if none.

    run: data -> answer; its noise comes from `hubbub.mechanisms`. same: the data sets hold the same rows in another
    form (permuted, another dtype), so that nothing may move.
    """
    first = observe(run, d)
    second = observe(run, d_prime, frozen=first.records)
    return compare(first, second, same=same)


def compare(first: Observed, second: Observed, *, same: bool = False) -> list[Violation]:
    """The violations that a run and its replay show."""
    violations = list(_flow(first.records, second.records))
    if not violations:
        violations += _moved(first.records, second.records, same)
    violations += _impossible(first.records)
    if first.raised != second.raised:
        violations.append(Violation("error", f"{_raised(first)} on one, {_raised(second)} on its neighbour"))
    elif not identical(first.answer, second.answer) and not _vanished(first.records, second.records):
        one, other = _differing(first.answer, second.answer)
        violations.append(Violation("answer", f"{_short(one)} on one, {_short(other)} on its neighbour"))
    if first.said != second.said:
        violations.append(Violation("said", f"{list(first.said)} on one, {list(second.said)} on its neighbour"))
    return violations


def _flow(first: Sequence[Recorded], second: Sequence[Recorded]) -> Iterator[Violation]:
    if len(first) != len(second):
        yield Violation("flow", f"{len(first)} noise primitives were called on one, {len(second)} on its neighbour")
        return
    for i, (a, b) in enumerate(zip(first, second, strict=True)):
        if (a.norm, a.distribution, a.sensitivity) != (b.norm, b.distribution, b.sensitivity):
            yield Violation("flow", f"primitive {i} has another law or sensitivity on the neighbour")


def _moved(first: Sequence[Recorded], second: Sequence[Recorded], same: bool) -> Iterator[Violation]:
    for i, (a, b) in enumerate(zip(first, second, strict=True)):
        allowed = 0 if same else a.sensitivity
        if allowed is None:
            yield Violation("moved", f"primitive {i} declares no sensitivity")
        elif (moved := distance(a, b)) > allowed:
            yield Violation("moved", f"the input of primitive {i} moved by {moved} ({a.norm}); declared: {allowed}")
    ways = defaultdict[Any, set[bool]](set)
    for a, b in zip(first, second, strict=True):
        if a.norm == "asked" and a.distribution.monotone and a.values != b.values:
            ways[a.keys].add(a.values < b.values)
    if any(len(both) > 1 for both in ways.values()):
        yield Violation("moved", "the questions of a monotone sparse vector moved both ways; declared: one way")


def _impossible(records: Sequence[Recorded]) -> Iterator[Violation]:
    """Releases that the declared law cannot give: a group shown below its threshold, a quantile out of bounds."""
    for i, record in enumerate(records):
        if not _possible(record):
            yield Violation("impossible", f"what primitive {i} released has probability 0 under its law")


def _possible(record: Recorded) -> bool:
    law, released = record.distribution, record.released
    match record.norm:
        case "groups" if isinstance(law, UnknownTopK):
            return law.log_prob(sorted(released, key=released.get), record.values) > -math.inf
        case "groups":
            shown = [
                released.get(i) if isinstance(released, dict) else bool(released[i]) for i in range(len(record.values))
            ]
            return all(law.log_prob(out, n) > -math.inf for out, n in zip(shown, record.values, strict=True))
        case "linf" | "one_way":
            return 0 <= int(released) < len(record.values)
        case "asked":
            return True
        case "rows":
            # A bound is one step; quantiles drawn together are several.
            return all(law.low <= q <= law.high for q in np.ravel(released))
        case _:
            return len(released) == len(record.values)


def _vanished(first: Sequence[Recorded], second: Sequence[Recorded]) -> bool:
    """A group that was shown is not there on the neighbour: the event that delta pays for, which cannot be frozen."""
    return any(
        a.norm == "groups" and isinstance(a.released, dict) and len(a.released) != len(b.released)
        for a, b in zip(first, second, strict=False)
    )


def fresh(run: Callable[[Any], Any], data: Any, *, runs: int = 8) -> list[Violation]:
    """Noise that is the same twice: in two runs, in two primitives, or in two cells of one.

    Two draws that are equal in all of `runs` runs (or one draw in two runs) are reported if, under the declared laws,
    some such pair has a probability of at most 1e-9 for the whole audit.
    """
    tapes = [observe(run, data).records for _ in range(runs)]
    shapes = Counter(tuple((record.norm, len(record.values)) for record in tape) for tape in tapes)
    usual = max(shapes, key=lambda shape: shapes[shape])
    if any(_parted(one, other) for one, other in combinations(tapes, 2)):
        return [Violation("flow", "the noise primitives differ between runs on the same data")]
    # What follows may depend on what was released before: which groups are shown, how soon a sparse vector says Yes, in
    # what parts a column is cut. Runs of the usual shape are compared, and of all what they have in common.
    alike = [tape for tape in tapes if tuple((record.norm, len(record.values)) for record in tape) == usual]
    looks = [alike] if len(shapes) == 1 else [alike, [tape[: _in_common(list(shapes))] for tape in tapes]]
    return list(dict.fromkeys(v for tapes in looks for v in _reused(tapes, _FALSE_ALARM / len(looks))))[:5]


def _in_common(shapes: Sequence[Sequence[Any]]) -> int:
    """With how many primitives all of these begin."""
    different = (i for i, each in enumerate(zip(*shapes, strict=False)) if len(set(each)) > 1)
    return next(different, min(map(len, shapes)))


def _reused(tapes: Sequence[Sequence[Recorded]], false_alarm: float) -> list[Violation]:
    """Noise that is the same in two runs of one shape, or in two cells of all of them."""
    runs = len(tapes)
    noises = [[_noise(record) for record in tape] for tape in tapes]
    chance = [_collisions(record) for record in tapes[0] if _additive(record)]
    flat = [np.array([z for noise in run for z in noise], dtype=object) for run in noises]
    odds = np.array([c for some in chance for c in some])
    violations = []
    for i, j in combinations(range(runs), 2):
        if flat[i].size and bool((flat[i] == flat[j]).all()) and odds.prod() * runs**2 < false_alarm:
            violations.append(Violation("reused", f"runs {i} and {j} drew the same noise"))
    return [*violations, *_twice(flat, odds, false_alarm)]


def _parted(one: Sequence[Recorded], other: Sequence[Recorded]) -> bool:
    """Whether two runs on the same data call other primitives though nothing that was released before differs."""
    for a, b in zip_longest(one, other):
        if a is None or b is None or (a.norm, len(a.values)) != (b.norm, len(b.values)):
            return True
        if not identical(a.released, b.released):
            return False
    return False


def _twice(flat: list[Any], odds: Any, false_alarm: float) -> Iterator[Violation]:
    cells = min(odds.size, 200)
    for a, b in combinations(range(cells), 2):
        if all(noise[a] == noise[b] for noise in flat) and odds[a] ** len(flat) * cells**2 < false_alarm:
            yield Violation("reused", f"draws {a} and {b} are equal in every run")


def _additive(record: Recorded) -> bool:
    return record.norm in ("l1", "l2_squared", "gauge")


def _noise(record: Recorded) -> list[int]:
    return [r - v for r, v in zip(record.released, record.values, strict=True)] if _additive(record) else []


def _collisions(record: Recorded) -> list[float]:
    """Of each cell, a bound on the probability that two draws are equal: the largest mass of one value.

    Of K-norm noise it is that whatever the other cells are: a step of one adds its own norm g at most, so the masses
    along a cell fall by exp(-g / b) a step at most, and the largest of them is tanh(g / 2b) of their sum at most.
    """
    law, cells = record.distribution, len(record.values)
    if isinstance(law, KNormMechanism):
        steps = ([int(i == j) for j in range(cells)] for i in range(cells))
        return [math.tanh(float(law.gauge(step) / law.scale) / 2) for step in steps]
    if isinstance(law, StaircaseMechanism):
        law = law.error()
    known = isinstance(law, DiscreteLaplace | DiscreteGaussian | StaircaseLaw)
    return [math.exp(float(law.log_pmf(0))) if known else 1.0] * cells


def spent(records: Sequence[Recorded], neighbours: Sequence[Recorded] = ()) -> Cost:
    """What the recorded primitives cost together, from the laws they drew from.

    neighbours: the records of the replay. Quantiles and choices are drawn group by group, and a unit is in few groups:
    each costs what moved there, the share x of its sensitivity: x epsilon and x^2 rho. For quantiles x is d/s, of the d
    rows that moved. For choices, whose law does not change where all scores move alike, it is w r / epsilon, w the
    largest move less the least one, r the rate (`hubbub.mechanisms.selection`): their losses are multiples of w r.
    Every other primitive costs its whole loss.
    """
    total = cost_of(ev.PureDP(0))
    for i, record in enumerate(records):
        one = cost_of(_event(record))
        share = _share(record, neighbours[i]) if i < len(neighbours) else None
        if share is not None:
            one = Cost(None if one.epsilon is None else one.epsilon * share, one.rho * share**2, one.delta)
        total += one
    return total


def _share(record: Recorded, other: Recorded) -> Fraction | None:
    """Which share of its loss a primitive that is drawn group by group costs, for what moved; None for any other."""
    law = record.distribution
    if record.norm == "rows":
        return Fraction(distance(record, other), record.sensitivity)
    if isinstance(law, ExponentialMechanism | PermuteAndFlip) and len(record.values) == len(other.values):
        moves = [a - b for a, b in zip(record.values, other.values, strict=True)]
        return min(Fraction(1), Fraction(max(moves) - min(moves)) * law.rate / law.epsilon)
    return None


def _event(record: Recorded) -> ev.Event:
    law = record.distribution
    if record.norm == "asked":
        return ev.PureDP(0)  # paid for when the sparse vector was opened
    if isinstance(law, DiscreteLaplace):
        return ev.DiscreteLaplace(law.scale, sensitivity=record.sensitivity)
    if isinstance(law, DiscreteGaussian):
        return ev.ZCDP(record.sensitivity / (2 * law.sigma2))
    event = law.loss
    assert isinstance(event, ev.Event)
    if isinstance(law, GroupThreshold) and (excess := law.one_unit * law.groups - float(law.delta)) > _ROUNDING:
        # Shown more often than the delta that its loss names.
        return ev.Composed([event, ev.ApproxDP(0, min(0.999, excess))])
    if isinstance(law, UnknownTopK) and (excess := law.one_unit * law.items - float(law.delta)) > _ROUNDING:
        return ev.Composed([event, ev.ApproxDP(0, min(0.999, excess))])
    return event


def identical(a: Any, b: Any) -> bool:
    """Equal to the last bit, type and order; NaN equals NaN.

    >>> identical({"x": [1.0, float("nan")]}, {"x": [1.0, float("nan")]}), identical(1, 1.0), identical(0.0, -0.0)
    (True, False, False)
    """
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and identical(a.tolist(), b.tolist())
    if isinstance(a, dict):
        return identical(list(a.items()), list(b.items()))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(identical(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return bool(a == b)


def _raised(run: Observed) -> str:
    return "no error" if run.raised is None else f"{run.raised[0]}: {run.raised[1][:200]}"


def _differing(first: Any, second: Any) -> tuple[Any, Any]:
    """What differs of two answers: of mappings with the same keys in the same order, the entries that do."""
    if not (isinstance(first, dict) and isinstance(second, dict) and identical(list(first), list(second))):
        return first, second
    keys = [key for key in first if not identical(first[key], second[key])]
    return {key: first[key] for key in keys}, {key: second[key] for key in keys}


def _short(answer: Any) -> str:
    text = _plain(repr(answer))
    return text if len(text) <= 200 else f"{text[:200]} ..."


def _plain(text: str) -> str:
    """Text without ids and times, which differ between any two runs."""
    return _IDS.sub("ID", text)


class _Lines(logging.Handler):
    def __init__(self, said: list[str]) -> None:
        super().__init__(level=logging.DEBUG)
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        self._said.append(_plain(f"{record.name} {record.levelname}: {record.getMessage()}"))


@contextlib.contextmanager
def _listening() -> Iterator[list[str]]:
    """Warnings, log lines, standard output and error, within the block."""
    said: list[str] = []
    handler, root, out = _Lines(said), logging.getLogger(), io.StringIO()
    root.addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                yield said
    finally:
        root.removeHandler(handler)
    said += [_plain(f"{w.category.__name__}: {w.message}") for w in warned]
    said += [_plain(out.getvalue())] if out.getvalue() else []
