"""Which pairs of columns act together: chosen from noisy tables of what a first model leaves unsaid.

An additive model adds up what each column says. Where two columns say something together (whom a wage is paid to by sex
and marriage), that is left over: the residuals of its rows do not add up to nothing in each cell of the two. So a
first model is fitted with a tenth of the amount; the residuals of all rows are added up by the cells of every two
columns, with noise, for three twentieths; and the model is fitted anew with the rest, on the columns and the pairs in
whose tables more is left than noise explains.

**What it costs.** A row's residual r at public weights lies within +-c: 2^20 of two classes, the cut of a number, and
of several classes it is a vector of squared length 2 2^40 at most (`hubbub.learning.logistic`). A row is in one cell of
each of P pairs, so it moves the tables by P r^2 in squared l2; times w^2 and R^2 for weights and rows of a unit, and
four times that under replace, for residuals have signs (`Problem.moved`). With discrete Gaussian noise that is
P c^2 w^2 R^2 / (2 sigma^2)-zCDP (Canonne, Kamath, Steinke 2020, Theorem 14). The three parts are fixed before the
first, and each is a function of released numbers and of rows: adaptive composition (Bun, Steinke 2016, Lemma 2.3), and
one charge. Which pairs are chosen is post-processing.

**Where.** Only where the noise on a cell is at most a 1000th of what all rows' residuals could add up to: it follows
from the amount, P, and the number of rows, public or bought. Else no pair is looked for, and nothing is spent on it.

**Which pairs.** Numbers in six bins of their own edges at most, joined where the bought histogram says that rows are
few; columns of 64 values at most. A table is turned to the coordinates of the pair (`hubbub.learning.bases`), in which
what one column says alone has hardly a part. Its energy is the sum of squares there, less what noise adds. Rows are few
enough to leave energy by chance, the same in every table per length of its rows: it is taken to be the median of all
(of fewer than five tables, a quarter of the rows with the largest residual). Pairs whose energy is above that by three
standard deviations of both together, at most forty, the largest first, become columns of the model.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any, Final

import numpy as np

from hubbub.accounting import Event
from hubbub.learning.bases import Turned
from hubbub.learning.cells import longest, recoded
from hubbub.learning.descent import Floats, noise_of
from hubbub.learning.exact import SCALE, Coded
from hubbub.learning.features import MOST_FEATURES, ONE, Categories, Column, Design, Integers, Numbers, Pair
from hubbub.learning.linear import clamped_residual, descended
from hubbub.learning.logistic import binary_residual, draw_classes, softmax_residual
from hubbub.learning.model import Classes, Problem
from hubbub.mechanisms.calibration import Calibrated, Spend
from hubbub.noise import Bits

__all__ = [
    "candidates",
    "check_noise_of_tables",
    "chosen",
    "first_of",
    "in_design",
    "longest_pairs",
    "pairs_are_sought",
    "rest_of",
    "seek",
    "table_noise",
    "tables",
]

FIRST: Final = Fraction(1, 10)
"""The part of the amount that the first model has."""
TABLES: Final = Fraction(3, 20)
"""The part that buys the tables."""
_NOISE: Final = 1e-3
_BINS: Final = 6
_VALUES: Final = 64
_MOST: Final = 40
_SURE: Final = 3.0
_FEW: Final = 5
_MOST_SUMS: Final = 1 << 17


def candidates(design: Design, shares: Mapping[str, Floats] | None = None) -> dict[str, Pair]:
    """Every two columns that may be looked at together, of a design without pairs. shares: of the rows in each bin, by
    column, as far as a bought histogram says it.

    >>> two = Categories(("no", "yes"))
    >>> list(candidates(Design({"rain": two, "wind": two, "heat": two})))
    ['rain x wind', 'rain x heat', 'wind x heat']
    """
    parts = {name: _part(column, (shares or {}).get(name)) for name, column in design.columns.items()}
    pairs, room = {}, _room(design)
    for (a, first), (b, second) in combinations(parts.items(), 2):
        if first is None or second is None or first.size * second.size > Pair.most:
            continue
        if len(first.names) * len(second.names) <= room:
            pairs[f"{a} x {b}"] = Pair((a, b), (first, second))
    pairs = {name: pair for name, pair in pairs.items() if name not in design.columns}
    return pairs if sum(pair.size for pair in pairs.values()) <= _MOST_SUMS else {}


def _part(column: Column, shares: Floats | None) -> Categories | Numbers | None:
    """A column as one of a pair."""
    if isinstance(column, Categories):
        return column if len(column.values) <= _VALUES else None
    if isinstance(column, Pair) or column.bins < 2:
        return None
    mass = [1.0] * column.bins if shares is None or len(shares) != column.bins else shares.tolist()
    edges = list(column.edges)
    while len(mass) > _BINS:
        at = min(range(len(mass) - 1), key=lambda k: mass[k] + mass[k + 1])
        mass[at] += mass.pop(at + 1)
        del edges[at + 1]
    return Numbers(column.low, column.high, tuple(edges), nullable=column.nullable)


def _residual_squared(problem: Problem) -> int:
    """The squared length of a row's residuals at most, in units of that of a number's cut or of 2^20."""
    return 2 if isinstance(problem.target, Classes) and len(problem.target.values) > 2 else 1


def table_noise(problem: Problem, pairs: int, reach: int) -> Calibrated:
    """The noise on each sum of the tables of so many pairs, at residuals within +-reach."""
    moved = problem.moved(pairs * _residual_squared(problem) * reach**2)
    return noise_of(problem.rho * TABLES, moved)


def pairs_are_sought(problem: Problem, n: float) -> bool:
    """Whether pairs are looked for with about n rows, after bins were bought or were not."""
    pairs = len(candidates(problem.design))
    moved = problem.moved(pairs * _residual_squared(problem))
    noise = math.sqrt(moved / (2 * float(problem.rho * TABLES))) / problem.heaviest
    return bool(pairs) and noise <= _NOISE * n


def check_noise_of_tables(problem: Problem) -> None:
    """Raises ParameterError where noise does not fit into 64 bits."""
    table_noise(problem, len(candidates(problem.design)), SCALE)


def first_of(problem: Problem) -> Problem:
    """The first model."""
    return replace(problem, spend=Spend(rho=problem.rho * FIRST), rows=problem.rows or 1)


def rest_of(problem: Problem, design: Design) -> Problem:
    """The model of what is left, on columns and pairs."""
    spend = Spend(rho=problem.rho * (1 - FIRST - TABLES))
    return replace(problem, design=design, spend=spend, rows=problem.rows or 1)


def longest_pairs(design: Design, *, wide: bool = False) -> Design:
    """A design whose rows are as long as those with any pairs that may be chosen: which may be many short ones, where
    there is no room for as many long ones. So it has pairs of four cells, whose rows are the longest but for a little.
    wide: those are beside the longest that there is room for, which have the most coordinates."""
    pairs = candidates(design)
    lengths = _lengths(pairs)
    many = len(_that_fit(design, {name: pairs[name] for name in sorted(pairs, key=lambda k: len(pairs[k].names))}))
    in_order = sorted(pairs, key=lambda name: -lengths[name])
    kept = _that_fit(design, {name: pairs[name] for name in in_order}) if wide else {}
    short = sum(lengths[name] for name in in_order[:many]) - sum(lengths[name] for name in kept)
    halves = Numbers(Fraction(0), Fraction(2), tuple(map(Fraction, range(3))))
    stand_in = Pair(("", ""), (halves, halves))
    (length,) = _lengths({"": stand_in}).values()
    more = {f" x {k}": stand_in for k in range(-(-short // length))}
    # Cells are no features: a column has as many bins as are certain.
    return Design({**longest(design).columns, **kept, **more})


def _lengths(pairs: Mapping[str, Pair]) -> dict[str, int]:
    """The squared length of a row of each pair's features at most: the same of all of so many values or bins."""
    known: dict[Any, int] = {}
    lengths = {}
    for name, pair in pairs.items():
        like = tuple((type(part), len(part.names), part.size) for part in pair.parts)
        if like not in known:
            known[like] = int((Turned.of(pair).features ** 2).sum(axis=1).max())
        lengths[name] = known[like]
    return lengths


def _room(design: Design) -> int:
    """How many features pairs may have."""
    return MOST_FEATURES * 3 // 4 - design.width


def _that_fit(design: Design, pairs: Mapping[str, Pair]) -> dict[str, Pair]:
    """Those of the pairs, forty at most, that there is room for, the first first."""
    kept: dict[str, Pair] = {}
    room = _room(design)
    for name, pair in pairs.items():
        if len(pair.names) <= room and len(kept) < _MOST:
            kept[name] = pair
            room -= len(pair.names)
    return kept


def seek(problem: Problem, rows: Coded, n: float, bits: Bits | None) -> Generator[Event, None, tuple[Problem, Coded]]:
    """Yields the events of the first model and of the tables before they are drawn, if pairs are looked for; returns
    the model of what is left, and the rows with the pairs that were chosen."""
    if not pairs_are_sought(problem, n):
        return problem, rows
    pairs = candidates(problem.design, problem.shares)
    values, reach = yield from _left_over(first_of(problem), rows, n, bits)
    noise = table_noise(problem, len(pairs), reach)
    yield noise.event
    codes = (_codes(pair, rows) for pair in pairs.values())  # of one pair at a time: there may be thousands
    sums = tables(rows, values, codes, [pair.size for pair in pairs.values()])
    noisy = np.array(noise.release(sums, bits=bits), np.float64) / (reach * problem.heaviest)
    deviation = math.sqrt(noise.sigma2) / (reach * problem.heaviest)
    names = chosen(pairs, noisy, deviation, n, outputs=len(values))
    kept = _that_fit(problem.design, {name: pairs[name] for name in names})
    design = Design({**problem.design.columns, **kept})
    return rest_of(problem, design), in_design(rows, design)


def _left_over(
    problem: Problem, rows: Coded, n: float, bits: Bits | None
) -> Generator[Event, None, tuple[Integers, int]]:
    """The residuals of each row, (outputs, n), at the weights of a model, which is released; and how large one is."""
    if not isinstance(problem.target, Classes):
        weights, _, reach = yield from descended(problem, rows, n, bits, None)
        return clamped_residual(rows.scores(weights), rows.label, clamp=reach), reach
    fit = yield from draw_classes(problem, rows, n, bits)
    scores = rows.scores(np.array(fit["weights"], np.int64))
    residual = binary_residual if len(problem.target.values) == 2 else softmax_residual
    return residual(scores, rows.label), SCALE


def tables(rows: Coded, values: Integers, codes: Iterable[Integers], sizes: Sequence[int]) -> list[int]:
    """The sums of each of the values, (outputs, n), times the rows' weights, by each code of each pair."""
    sums: list[int] = []
    for code, size in zip(codes, sizes, strict=True):
        for of_output in values:
            held = of_output if rows.weights is None else of_output * rows.weights
            sums += rows.summed(held, code, size).tolist()
    return sums


def _codes(pair: Pair, rows: Coded) -> Integers:
    """The code of each row in a pair of columns whose edges are its own."""
    first, second = (
        _in_part(part, rows.design.columns[name], rows.codes[list(rows.design.columns).index(name)])
        for part, name in zip(pair.parts, pair.names_in, strict=True)
    )
    return first * pair.parts[1].size + second


def _in_part(part: Categories | Numbers, column: Column, codes: Integers) -> Integers:
    if not isinstance(part, Numbers) or not isinstance(column, Numbers):
        return codes
    return np.append(column.places(part.cuts), part.size - 1)[codes]


def in_design(rows: Coded, design: Design) -> Coded:
    """The same rows in a design of the same columns, with edges among those of their cells, and of pairs of them."""
    plain = recoded(rows, Design({name: design.columns[name] for name in rows.design.columns}))
    more = [c for name, c in design.columns.items() if isinstance(c, Pair) and name not in plain.design.columns]
    return replace(plain, design=design, codes=[*plain.codes, *(_codes(pair, plain) for pair in more)])


@dataclass(frozen=True)
class _Shape:
    """A pair's coordinates. first, second: what each code of its columns has of them."""

    first: Floats
    second: Floats

    @classmethod
    def of(cls, pair: Pair) -> _Shape:
        first, second = (Turned.of(part).features / ONE for part in pair.parts)
        return cls(first, second)

    @property
    def length(self) -> float:
        """The squared length of its rows at most."""
        return float((self.first**2).sum(axis=1).max() * (self.second**2).sum(axis=1).max())

    @property
    def whole(self) -> float:
        """The energy of sums of which each is independent, of variance 1."""
        return float((self.first**2).sum() * (self.second**2).sum()) / self.length

    @property
    def spread(self) -> float:
        """Its standard deviation, as a share of it."""
        grams = [float(((part.T @ part) ** 2).sum()) for part in (self.first, self.second)]
        return math.sqrt(2 * grams[0] * grams[1]) / (self.whole * self.length)

    def energy(self, sums: Floats) -> float:
        """The squares of sums by cell in its coordinates, per length of its rows."""
        return float(((self.first.T @ sums @ self.second) ** 2).sum()) / self.length


def chosen(pairs: Mapping[str, Pair], noisy: Floats, deviation: float, n: float, *, outputs: int = 1) -> list[str]:
    """The names of the pairs that say something together, from noisy tables: those that say most first.

    noisy: sums of residuals by output and cell, one pair's after another's, in units of the largest residual.
    deviation: of the noise on each. n: rows.
    """
    shapes, energies, at = [_Shape.of(pair) for pair in pairs.values()], [], 0
    for pair, shape in zip(pairs.values(), shapes, strict=True):
        cells = (outputs, *(part.size for part in pair.parts))
        energies.append(shape.energy(noisy[at : at + math.prod(cells)].reshape(cells)))
        at += math.prod(cells)
    noise = np.array([shape.whole for shape in shapes]) * outputs * deviation**2
    left = np.array(energies) - noise
    by_chance = n / 4 if len(pairs) < _FEW else max(float(np.median(left)), 0.0)
    spread = np.array([shape.spread for shape in shapes]) / math.sqrt(outputs) * np.hypot(noise, by_chance)
    above = (left - by_chance) / np.maximum(spread, 1e-9)
    names = list(pairs)
    order = sorted(np.flatnonzero(above > _SURE), key=lambda k: -left[k])
    return [names[k] for k in order[:_MOST]]
