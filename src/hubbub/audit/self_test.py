"""hubbub audits itself: every mechanism by every audit that fits, and the session on nasty neighbours.

Four parts: the exact laws of all mechanisms against their claims; the black box on what they really draw; the bits and
bytes of the noise; and the session's questions on nasty neighbours with the noise frozen.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from hubbub import mechanisms as m
from hubbub.accounting import pure_epsilon
from hubbub.audit.black_box import lower_bound
from hubbub.audit.exact import exact
from hubbub.audit.fixtures import SCENES, Scene
from hubbub.audit.floats import bytes_drawn, float_support
from hubbub.audit.neighbours import Relation
from hubbub.audit.report import Line, Report, line_of
from hubbub.audit.sessions import audit_session
from hubbub.noise import Bits, Grid, gaussian, laplace

__all__ = ["self_test"]

Progress = Callable[[str], None]

_AGAIN = ("SELECT COUNT(*) AS a, SUM(x) AS b FROM t", "SELECT ward, COUNT(*) AS a, SUM(n) AS b FROM t GROUP BY ward")
_RUNS = 6
_JOINED = ("SELECT p.sex, SUM(p.income) AS a FROM t JOIN p ON t.id = p.id GROUP BY p.sex",)
_PEOPLE, _HOUSE = SCENES[0], SCENES[2]


@dataclass(frozen=True)
class Subject:
    """A mechanism, neighbouring inputs, outputs to enumerate, and options of its `log_prob`."""

    name: str
    mechanism: Any
    pairs: tuple[tuple[Any, Any], ...]
    outputs: tuple[Any, ...]
    claim: tuple[float, float]

    def law(self, data: Any) -> Any:
        """ln P(output) for all outputs."""
        return np.array([self.mechanism(output, data) for output in self.outputs])


def _pure(mechanism: Any) -> tuple[float, float]:
    loss = pure_epsilon(mechanism.loss)
    assert loss is not None
    return float(loss), 0.0


def _subjects() -> Iterator[Subject]:
    line = tuple(range(-60, 61))
    for name, one in (
        ("Laplace", m.LaplaceMechanism(sensitivity=2, epsilon=1)),
        ("staircase", m.StaircaseMechanism(sensitivity=2, epsilon=1)),
    ):
        yield Subject(name, one.log_prob, tuple((0, d) for d in (-2, -1, 1, 2)), line, _pure(one))
    for rho, epsilon in (("1/8", 1.0), ("1/50", 0.5)):
        normal = m.GaussianMechanism(sensitivity=1, rho=rho)
        claim = (epsilon, m.claimed_delta(normal.loss, epsilon))
        wide = tuple(range(-math.ceil(30 * math.sqrt(normal.variance)), math.ceil(30 * math.sqrt(normal.variance)) + 2))
        yield Subject(f"Gaussian, rho = {rho}", normal.log_prob, ((0, 1), (1, 0)), wide, claim)
    scores = tuple(
        (a, tuple(x + d for x, d in zip(a, move, strict=True)))
        for a in itertools.product((0, 1, 3), repeat=3)
        for move in itertools.product((-1, 0, 1), repeat=3)
    )
    for name, choice in (
        ("exponential", m.ExponentialMechanism(epsilon=1, sensitivity=1)),
        ("permute-and-flip", m.PermuteAndFlip(epsilon=1, sensitivity=1)),
        ("noisy max, exponential", m.NoisyMax(epsilon=1, sensitivity=1)),
        ("noisy max, Laplace", m.NoisyMax(epsilon=1, sensitivity=1, noise="laplace")),
    ):
        yield Subject(name, choice.log_prob, scores[::7], (0, 1, 2), _pure(choice))
    yield from _more_subjects()


def _more_subjects() -> Iterator[Subject]:
    answers = tuple(o for k in (1, 2, 3) for o in itertools.product((False, True), repeat=k))
    sparse = m.SparseVector(epsilon=1, positives=1, sensitivity=1)
    asked = tuple((a, b) for a in ((0, 0, 0), (1, -1, 0)) for b in itertools.product((-1, 0, 1), repeat=3))
    moved = tuple((a, tuple(x + d for x, d in zip(a, b, strict=True))) for a, b in asked)
    yield Subject("sparse vector", lambda o, d: sparse.log_prob(o, d, threshold=0), moved[::3], answers, _pure(sparse))
    median = m.QuantileMechanism(shares=["1/4", "3/4"], lower=0, upper=3, epsilon=1)
    tables = [t for n in range(4) for t in itertools.combinations_with_replacement((0, 1, 3), n)]
    grown = tuple((t, (*t, row)) for t in tables for row in (0, 1, 3))
    pairs = tuple((a, b) for a in range(4) for b in range(a, 4))
    yield Subject("quantiles", median.log_prob, grown, pairs, _pure(median))
    response, kary = m.RandomizedResponse(epsilon=1), m.KaryResponse(categories=4, epsilon=1)
    yield Subject("randomised response", response.log_prob, ((True, False),), (True, False), _pure(response))
    yield Subject("k-ary response", kary.log_prob, ((0, 1), (2, 3)), tuple(range(4)), _pure(kary))
    groups = m.OptimalGroupSelection(epsilon=1, delta="1e-3")
    sizes = tuple((n, n + 1) for n in range(30))
    yield Subject("group selection", groups.log_prob, sizes, (True, False), (1.0, 1e-3))
    shown = m.GroupThreshold(epsilon=1, delta="1e-3")
    counts = (None, *range(-60, 120))
    yield Subject("group threshold", shown.log_prob, sizes[:20], counts, (1.0, 1e-3))


def _exact_lines() -> Iterator[Line]:
    for subject in _subjects():
        start = time.monotonic()
        epsilon, delta = subject.claim
        examined = exact(subject.law, subject.pairs, epsilon=epsilon, delta=delta)
        # Where delta is claimed, what counts is delta at the claimed epsilon.
        claimed, shown = (epsilon, examined.epsilon) if delta == 0 else (delta, examined.delta)
        name = subject.name if delta == 0 else f"{subject.name}: delta at {epsilon:g}"
        yield Line(name, "exact", claimed, shown, not examined.holds, seconds=time.monotonic() - start)


def _drawn() -> Iterator[tuple[str, Callable[[Any, int], Any], Any, Any, float]]:
    """What is really drawn: name, run, neighbours, claim."""
    yield "Laplace, drawn", lambda d, n: d + laplace(10, n), 0, 1, 0.1
    histogram = [3, 0, 4, 1, 5], [3, 1, 4, 1, 5]
    yield "histogram, drawn", lambda d, n: np.asarray(d) + laplace(10, (n, 5)), *histogram, 0.1
    response = m.RandomizedResponse(epsilon=1)
    yield "randomised response, drawn", lambda d, n: response.release(np.full(n, d)), False, True, 1.0
    top = m.NoisyMax(epsilon=1, sensitivity=1)
    scores = [0, 0, 3], [1, 0, 2]
    yield "noisy max, drawn", lambda d, n: [top.release(d) for _ in range(n)], *scores, 1.0
    flip = m.PermuteAndFlip(epsilon=1, sensitivity=1)
    yield "permute-and-flip, drawn", lambda d, n: [flip.release(d) for _ in range(n)], *scores, 1.0
    sparse = m.SparseVector(epsilon=1, positives=1, sensitivity=1)

    def asked(data: Any, n: int) -> Any:
        out = np.full((n, len(data)), np.nan)
        for row in out:
            given = sparse.release(data, threshold=0)
            row[: len(given)] = given
        return out

    yield "sparse vector, drawn", asked, [0, 0, 0, -2], [1, 1, 1, -3], 1.0


def _bit_lines(seconds: float, confidence: float) -> Iterator[Line]:
    grid = Grid(-20)

    def on_grid(data: Any, n: int) -> Any:
        return grid.from_integers(int(data / grid.step) + laplace(10 / grid.step, n))

    start = time.monotonic()
    support = float_support(on_grid, 0, 1, samples=50_000, confidence=confidence, seconds=seconds)
    shown = max(support.bound.epsilon, math.inf if support.identifying > 0 else 0.0)
    yield Line(
        "Laplace on a grid: last bits", "floats", 0.1, shown, shown > 0.1, support.bound.ceiling,
        support.bound.samples + 100_000, time.monotonic() - start, support.bound.confidence,
    )  # fmt: skip
    for name, draw in (("Laplace", laplace), ("Gaussian", gaussian)):
        start = time.monotonic()

        def one(bits: Bits, draw: Any = draw) -> int:
            return int(draw(10, bits=bits, mode="hardened"))

        taken = bytes_drawn(one, draws=5000)
        yield Line(
            f"{name}, hardened: bytes against the draw", "bytes", 0, taken.gap if taken.depends else 0, taken.depends,
            samples=taken.draws, seconds=time.monotonic() - start,
        )  # fmt: skip


def _session_line(scene: Scene, relation: Relation, thorough: bool) -> Line:
    start = time.monotonic()
    tried = list(scene.pairs(relation))
    few = tried if thorough else tried[:: len(tried) // 2][:2]
    audited = audit_session(
        lambda data: scene.open(data, relation, None),
        # Each relation asks its own half of those that are asked at all.
        questions=scene.questions if thorough else scene.few(relation),
        relation=relation,
        neighbours=few,
        runs=8 if thorough else 0,
    )
    first = [f"{sql} on {name}: {violation}" for sql, name, violation in audited.violations[:3]]
    return Line(
        f"{scene.name}: {audited.questions} questions, {audited.neighbours} neighbours ({relation})", "grey box", 0,
        len(audited.violations), bool(audited.violations), seconds=time.monotonic() - start, detail="; ".join(first),
    )  # fmt: skip


def _fresh_line() -> Line:
    """Noise that is the same twice: a short self-test asks two questions of one table again and again for it."""
    start = time.monotonic()
    scene = _PEOPLE
    nobody = next(p for p in scene.pairs("add_remove") if p.name.startswith("one unit against"))
    audited = audit_session(
        lambda data: scene.open(data, "add_remove", None), questions=_AGAIN, neighbours=[nobody], runs=_RUNS
    )
    first = [f"{sql} on {name}: {violation}" for sql, name, violation in audited.violations[:3]]
    return Line(
        f"people: noise of {audited.questions} questions, {_RUNS} times", "grey box", 0,
        len(audited.violations), bool(audited.violations), seconds=time.monotonic() - start, detail="; ".join(first),
    )  # fmt: skip


def _joined_line() -> Line:
    """A join by the unit, where a unit has a thousand rows: it meets nobody else's."""
    start = time.monotonic()
    many = next(p for p in _HOUSE.pairs("add_remove") if p.name.startswith("a thousand rows"))
    audited = audit_session(lambda data: _HOUSE.open(data, "add_remove", None), questions=_JOINED, neighbours=[many])
    first = [f"{sql} on {name}: {violation}" for sql, name, violation in audited.violations[:3]]
    return Line(
        "house: a join by the unit, a thousand rows", "grey box", 0,
        len(audited.violations), bool(audited.violations), seconds=time.monotonic() - start, detail="; ".join(first),
    )  # fmt: skip


def self_test(
    *, seconds: float = 2.0, confidence: float = 0.999, thorough: bool = False, progress: Progress = lambda _: None
) -> Report:
    """Run hubbub's audit of itself.

    seconds: for each black-box audit. confidence: of each of them; all of them together are less sure. thorough: ask
    every question on every neighbour of each scene, instead of every few of them, each for one relation, on two.
    progress: is told what is audited next.
    """
    lines: list[Line] = []
    progress("exact laws")
    lines += _exact_lines()
    for name, run, d, d_prime, claim in _drawn():
        progress(name)
        lines.append(line_of(name, lower_bound(run, d, d_prime, confidence=confidence, seconds=seconds), claim))
    progress("bits and bytes")
    lines += _bit_lines(seconds, confidence)
    if not thorough:
        progress("people: noise that is the same twice")
        lines.append(_fresh_line())
        progress("house: a join by the unit")
        lines.append(_joined_line())
    for scene in SCENES:
        for relation in get_args(Relation):
            progress(f"{scene.name}: questions on nasty neighbours ({relation})")
            lines.append(_session_line(scene, relation, thorough))
    return Report(tuple(lines))
