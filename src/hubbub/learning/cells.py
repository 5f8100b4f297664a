"""Bins where the rows are: edges cut from one noisy histogram, which a small part of the amount buys before the model.

Equal bins of a declared range tell little of a column whose numbers lie close together in it: of 0 to 99,999 in 16
bins, more than 95 % of capital gains are in the first. Here codes tell fine cells apart, which follow from the
declaration alone (`with_cells`), rows are counted by cell with noise, edges are chosen among those of cells, and each
code becomes that of its bin: no row is read again.

**What it costs.** A row is in one cell of each of c columns at most, so it adds its weight w to at most c counts: the
squared l2 norm moves by c w^2, times R^2 for R rows of a unit, and twice that under replace, as counts only grow
(`Problem.moved`). With discrete Gaussian noise of parameter sigma^2 that is c w^2 R^2 / (2 sigma^2)-zCDP (Canonne,
Kamath, Steinke 2020, Theorem 14). It is a 20th of the amount. Edges are post-processing; what the model then costs was
fixed before, and its sensitivity is a function of released numbers: adaptive composition (Bun, Steinke 2016, Lemma
2.3), and one charge.

**Where.** Only where the noise on a cell is at most a 384th of the rows, public or bought, or a 200th where a number is
learned, and where there is room for more features: else the bins are equal ones, and nothing is bought. There are 16 of
them; 32 where kappa is from 1000 to 2000 (`hubbub.learning.descent`; of a number with the spread that is usual): rows
tell so many apart, and bins have no features of their own yet, so that rows are no longer. Below 1000 some tasks gained
by that and others lost. All of it follows from public or released numbers.

**Which edges.** The 16 equal ones stay. A bin is cut where it is not even: where the share of its rows below a cell's
edge is furthest from that edge's share of its length, and so are its parts, as long as the rows that are amiss are more
than a 1024th of all, five standard deviations of the noise, two of the noise of so many cells, and twice the square
root of the bin's rows. So a number that many rows have gets a bin of its own, a long tail bins where it is thick, and
numbers that are spread evenly keep equal bins, for every bin adds noise: cut into 256 bins of as many rows each, ten
even columns fell from R squared .882 to .832. Noise alone makes a bin about once in a thousand.

**Two heavy numbers, one on either side,** hide each other from that rule, and with some draws of the noise half of the
bins of a tail were missed. So one to eight cells are cut out of a bin, too, which have more or fewer rows than their
share of its length by a 1024th of all, and by five standard deviations of the noise and of chance together: for
classes, where five of the noise are at most a 512th of the rows. With less, and to a number, such bins were a loss: of
years in fractions, each year is a heavy number, and tells hardly more than its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any, Final

import numpy as np

from hubbub.accounting import Event
from hubbub.learning.descent import Floats, plan_descent
from hubbub.learning.exact import Coded
from hubbub.learning.features import MOST_FEATURES, Column, Design, Integers, Numbers
from hubbub.learning.model import Classes, Problem
from hubbub.learning.spread import USUAL
from hubbub.mechanisms.calibration import Calibrated, Spend, calibrated
from hubbub.noise import Bits

__all__ = [
    "AUTO",
    "EQUAL",
    "SHARE",
    "bins_are_bought",
    "cut",
    "edges_of",
    "in_equal_bins",
    "longest",
    "recoded",
    "the_rest",
    "with_cells",
]

AUTO: Final = "auto"
"""The bins that are chosen here."""
EQUAL: Final = 16
"""How many equal bins there are at least."""
SHARE: Final = Fraction(1, 20)
"""The part of the amount that buys the histogram."""
_CELLS: Final = 1 << 10
_HALVINGS: Final = 16
_MOST_BINS: Final = 1 << 8
_FEWEST: Final = 16
_AMISS: Final = 1 << 10
_SURE: Final = 5.0
_MOST_CUT_OUT: Final = 8
_CLEAR: Final = 1 << 9
_TELLING: Final = 1000.0
_NOISE: Final = 1 / 384
_NOISE_OF_NUMBERS: Final = 5e-3


@cache
def with_cells(column: Numbers, whole: bool) -> Numbers:
    """The column with cells: a 1024th of the range each, and ever finer ones beside both ends, and 0. whole: whether
    its numbers are, and so all edges.

    >>> len(with_cells(Numbers(Fraction(0), Fraction(9), (Fraction(0), Fraction(9))), True).cells)
    8
    """
    low, high = column.low, column.high
    steps = {k << _HALVINGS for k in range(1, _CELLS)} | {1 << k for k in range(_HALVINGS)}
    steps |= {(_CELLS << _HALVINGS) - (1 << k) for k in range(_HALVINGS)}
    grain = (high - low) / (_CELLS << _HALVINGS)
    cells = {low + grain * step for step in steps}
    if low < 0 < high:
        cells |= {Fraction(0), *(sign * grain * (1 << k) for k in range(_HALVINGS) for sign in (-1, 1))}
    edges = column.edges
    if whole:
        cells = {Fraction(math.ceil(c)) for c in cells}
        edges = tuple(sorted({low, high, *(Fraction(math.ceil(e)) for e in edges[1:-1])}))
    # Each edge has a name of its own.
    named = {f"{float(e):g}": e for e in edges}
    for cell in sorted(cells):
        if low < cell < high:
            named.setdefault(f"{float(cell):g}", cell)
    return replace(column, edges=edges, cells=tuple(sorted(set(named.values()) - set(edges))))


def _in_cells(design: Design) -> dict[str, Numbers]:
    return {name: c for name, c in design.columns.items() if isinstance(c, Numbers) and c.cells}


def most_bins(design: Design) -> int:
    """How many bins beside the equal ones a column may have: as many features as there is room for in any case."""
    return min(_MOST_BINS, (MOST_FEATURES // 2 - design.width) // max(1, len(_in_cells(design))))


def _noise(problem: Problem) -> Calibrated:
    """The noise on the count of a cell."""
    moved = problem.moved(len(_in_cells(problem.design)), acute=True)
    return calibrated(spend=problem.spend.of_amount(problem.rho * SHARE), l2_squared=moved)


def bins_are_bought(problem: Problem, n: float) -> bool:
    """Whether edges are cut from a histogram, with about n rows."""
    if not _in_cells(problem.design) or most_bins(problem.design) < _FEWEST:
        return False
    most = _NOISE if isinstance(problem.target, Classes) else _NOISE_OF_NUMBERS
    return math.sqrt(_noise(problem).sigma2) <= most * n * problem.heaviest


def _are_halved(problem: Problem, n: float) -> bool:
    """Whether there are twice as many equal bins, with about n rows, where no histogram is bought."""
    usual = 1.0 if isinstance(problem.target, Classes) else 4 * USUAL
    plan = plan_descent(n / problem.rows_per_unit / usual, float(problem.rho))
    return plan.kappa >= _TELLING and not plan.fine and most_bins(problem.design) >= _FEWEST


def _halved(column: Numbers) -> tuple[Fraction, ...]:
    """The edges, and those cells' edges that halve equal bins; of whole numbers the next whole one."""
    middles = [column.low + (column.high - column.low) * Fraction(2 * k + 1, 2 * EQUAL) for k in range(EQUAL)]
    cells = set(column.cells)
    more = {at if at in cells else Fraction(math.ceil(at)) for at in middles}
    return tuple(sorted({*column.edges, *(more & cells)}))


def _equal_edges(problem: Problem, n: float) -> dict[str, tuple[Fraction, ...]]:
    """The edges of each column that has cells, where no histogram is bought."""
    columns, halved = _in_cells(problem.design), _are_halved(problem, n)
    return {name: _halved(column) if halved else column.edges for name, column in columns.items()}


def _with_edges(design: Design, edges: Mapping[str, tuple[Fraction, ...]]) -> Design:
    """The design with these edges instead of cells."""
    plain: dict[str, Column] = {
        name: replace(column, edges=edges[name], cells=()) if isinstance(column, Numbers) and column.cells else column
        for name, column in design.columns.items()
    }
    return Design(plain)


def in_equal_bins(problem: Problem, n: float) -> Problem:
    """The model with about n rows, where no histogram is bought."""
    return replace(problem, design=_with_edges(problem.design, _equal_edges(problem, n)))


def the_rest(problem: Problem) -> Problem:
    """The same model, of what is left for it."""
    return replace(problem, spend=Spend(rho=problem.rho * (1 - SHARE)), rows=problem.rows or 1)


def cut(problem: Problem, rows: Coded, n: float, bits: Bits | None) -> Generator[Event, None, tuple[Problem, Coded]]:
    """Yields the event of the histogram before it is drawn, if it is bought; returns the model of bins without cells,
    and the rows in them."""
    columns: Mapping[str, Numbers] = _in_cells(problem.design)
    edges = _equal_edges(problem, n)
    left = problem
    if bins_are_bought(problem, n):
        noise = _noise(problem)
        yield noise.event
        noisy = np.array(noise.release(_counts(rows), bits=bits), np.float64) / problem.heaviest
        deviation, at = math.sqrt(noise.sigma2) / problem.heaviest, 0
        clear = _SURE * deviation <= n / _CLEAR
        closely, shares = clear and isinstance(problem.target, Classes), {}
        for name, column in columns.items():
            ends = _ends(column)
            held = noisy[at : at + len(ends) - 1]
            at += len(held)
            least, most = max(n / _AMISS, _SURE * deviation), column.bins + most_bins(problem.design)
            edges[name] = tuple(edges_of(ends, column.edges, held, deviation, least, most, closely=closely))
            shares[name] = _shares(ends, edges[name], held, deviation) / n
        left = replace(the_rest(problem), shares=shares if clear else None)
    design = _with_edges(problem.design, edges)
    return replace(left, design=design), recoded(rows, design)


def _ends(column: Numbers) -> list[Fraction]:
    """The edges of all cells."""
    return sorted({*column.edges, *column.cells})


def _counts(rows: Coded) -> list[int]:
    """How many rows, or how much of their weights, there are in each cell of each column; NULL is in none."""
    (whole,) = rows.histograms(np.zeros(len(rows.label), np.int64), 1)
    counts: list[int] = []
    for column, of_code in zip(rows.design.columns.values(), whole.of_code, strict=True):
        if isinstance(column, Numbers) and column.cells:
            ends = _ends(column)
            held = np.zeros(len(ends) - 1, np.int64)
            np.add.at(held, column.places(ends[1:-1]), of_code[:-1])
            counts += held.tolist()
    return counts


def _shares(ends: Sequence[Fraction], edges: Sequence[Fraction], held: Floats, deviation: float) -> Floats:
    """How many rows each bin has, and a standard deviation of the noise more."""
    place = {end: i for i, end in enumerate(ends)}
    starts = np.array([place[edge] for edge in edges[:-1]])
    cells = np.diff([*starts, len(held)])
    return np.asarray(np.maximum(np.add.reduceat(held, starts), 0) + deviation * np.sqrt(cells), np.float64)


def edges_of(
    ends: Sequence[Fraction],
    first: Sequence[Fraction],
    held: Any,
    deviation: float,
    least: float,
    most: int,
    *,
    closely: bool = True,
) -> list[Fraction]:
    """Edges of at most `most` bins, from noisy counts of cells. ends: those of cells. first: those that stay.
    deviation: of the noise on a count. least: of so many rows amiss. closely: whether few cells are looked at as well.

    >>> edges_of(range(7), (0, 6), [0, 0, 90, 0, 0, 0], 1.0, 9, 9)
    [0, 2, 3, 6]
    """
    while True:
        edges = sorted({*first, *_uneven(ends, first, np.asarray(held, np.float64), deviation, least, closely)})
        if len(edges) - 1 <= most:
            return edges
        least *= 1.5


def _uneven(
    ends: Sequence[Fraction],
    first: Sequence[Fraction],
    held: Floats,
    deviation: float,
    least: float,
    closely: bool,
) -> list[Fraction]:
    """At which edges of cells bins are cut."""
    lengths = np.array([float((b - a) / (ends[-1] - ends[0])) for a, b in pairwise(ends)])
    place = {end: i for i, end in enumerate(ends)}
    left = list(pairwise(place[end] for end in first))
    cuts = []
    while left:
        a, b = left.pop()
        if b - a < 2:
            continue
        at = _in_two(held[a:b], lengths[a:b], deviation, least)
        if not at and closely:
            at = _cut_out(held[a:b], lengths[a:b], deviation, least)
        cuts += [ends[a + k] for k in at]
        if at:
            left += pairwise([a, *(a + k for k in at), b])
    return cuts


def _in_two(held: Floats, lengths: Floats, deviation: float, least: float) -> list[int]:
    """After how many cells a bin is cut, if it is."""
    below, along = np.cumsum(held), np.cumsum(lengths)
    amiss = np.abs(below - below[-1] * along / along[-1])[:-1]
    at = int(amiss.argmax())
    enough = max(least, 2 * deviation * math.sqrt(len(held)), 2 * math.sqrt(max(below[-1], 0)))
    return [at + 1] if amiss[at] >= enough else []


def _cut_out(held: Floats, lengths: Floats, deviation: float, least: float) -> list[int]:
    """Before and after which cells a bin is cut, if few of them are most amiss together."""
    below, along = np.append(0, np.cumsum(held)), np.append(0, np.cumsum(lengths))
    worst, cuts, few = 1.0, list[int](), 1
    while few <= min(_MOST_CUT_OUT, len(held) - 1):
        due = np.maximum(below[-1], 0) * (along[few:] - along[:-few]) / along[-1]
        enough = np.maximum(least, _SURE * np.sqrt(deviation**2 * few + due))
        ratios = np.abs(below[few:] - below[:-few] - due) / enough
        at = int(ratios.argmax())
        if ratios[at] >= worst:
            worst, cuts = float(ratios[at]), [k for k in (at, at + few) if 0 < k < len(held)]
        few *= 2
    return cuts


def recoded(rows: Coded, design: Design) -> Coded:
    """The same rows in a design whose edges are among those of their cells."""
    codes: list[Integers] = []
    for old, new, held in zip(rows.design.columns.values(), design.columns.values(), rows.codes, strict=True):
        if isinstance(old, Numbers) and isinstance(new, Numbers) and old.cells:
            codes.append(np.append(old.places(new.cuts), new.size - 1)[held])
        else:
            codes.append(held)
    return replace(rows, design=design, codes=codes)


def longest(design: Design) -> Design:
    """A design whose rows are as long, in any coordinates, as those of any edges: of 17 bins, whose 16 inner edges
    have a length of 1 exactly; others are rounded down."""
    columns: dict[str, Column] = {}
    for name, column in design.columns.items():
        if isinstance(column, Numbers) and column.cells:
            ends = tuple(column.low + (column.high - column.low) * k / 17 for k in range(18))
            columns[name] = replace(column, edges=ends, cells=())
        else:
            columns[name] = column
    return Design(columns)
