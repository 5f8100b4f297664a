"""Workloads: k linear queries on a table, answered as exact counts.

A counting query is a predicate q on rows; its count is sum_i q(x_i), its share that divided by n. A linear query has
values in [0, 1] or any rationals. A workload is a list of k of them; with a finite universe it is a k x |X| matrix A,
and its answers are A h for the histogram h. Matrices stay structured: a family knows `evaluate` (rows -> answers),
`answers` (histogram -> answers), `adjoint` (A^T w) and `column` (one row's answers) without ever building A.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError, what_was_given
from hubbub.noise.parameters import exact
from hubbub.queries.sensitivity import Neighbours, Sensitivity, brute_force, checked, differences, exact_integers

__all__ = ["InnerProducts", "Linear", "Predicates", "Stack", "Workload"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
_MATERIAL = 2**24
_LARGEST = 2**500


class Workload(ABC):
    """The base of all workloads. size: k. universe: |X|, or None where it is not known. unit: of the answers."""

    size: int
    universe: int | None
    unit: Fraction = Fraction(1)

    @property
    def domain(self) -> Hashable | None:
        """What the rows are: workloads of equal domains have the same row at the same place of the universe.

        None where that is not known; then a stack adds up sensitivities.
        """
        return None

    @abstractmethod
    def evaluate(self, rows: Any) -> Integers:
        """Exact answers on a table, integers of shape (k,), in multiples of `unit`: int64 where they surely fit."""

    @abstractmethod
    def column(self, x: int) -> Integers:
        """The answers of the table that is the one row x of the universe."""

    def moved_by(self, neighbours: Neighbours) -> Neighbours:
        """What neighbours do to the answers: "add_remove" moves them by a column, "replace" by a difference of two."""
        return checked(neighbours)

    def moves(self, neighbours: Neighbours) -> NDArray[Any]:
        """All that neighbours' answers may differ by, up to sign, in multiples of `unit`: shape (moves, k)."""
        return differences(self.columns(), self.moved_by(neighbours))

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """Exact sensitivities of the answers (counts, not shares)."""
        return brute_force(self.columns(), self.moved_by(neighbours), self.unit)

    def shares(self, rows: Any) -> Floats:
        """Answers divided by the number of rows, floats of shape (k,)."""
        n = len(rows)
        if n == 0:
            raise ParameterError("shares of an empty table have no meaning; ask for counts with evaluate().")
        answers = self.evaluate(rows)
        if answers.dtype == object:
            return np.array([float(Fraction(a) * self.unit / n) for a in answers])
        return np.asarray(answers * float(self.unit) / n)

    def answers(self, histogram: Any) -> NDArray[Any]:
        """A h for a histogram of shape (universe,), in multiples of `unit`; floats or integers."""
        return product(self.columns().T, histogram)

    def adjoint(self, weights: Any) -> NDArray[Any]:
        """A^T w for weights of shape (k,): one number per row of the universe."""
        return product(self.columns(), weights)

    def columns(self) -> Integers:
        """All columns, shape (universe, k), for small universes.

        Raises ParameterError without a universe, or beyond 2^24 entries.
        """
        if self.universe is None:
            raise _no_universe()
        if self.universe * self.size > _MATERIAL:
            raise ParameterError(
                f"{self.universe} x {self.size} entries were asked as a dense matrix; use evaluate, answers and "
                "adjoint, which families of known structure have without it."
            )
        return np.stack([self.column(x) for x in range(self.universe)])


class Predicates(Workload):
    """Counting queries given as Python callables: array of n rows -> n truth values.

    universe: an array of all possible rows, if it is finite; then sensitivities are exact, predicates see these public
    rows only, and a private row that is not among them satisfies none. Without it they are the bound k that holds for
    any k predicates.

    >>> over_30 = Predicates([lambda age: age > 30, lambda age: age > 60], universe=np.arange(121))
    >>> over_30.evaluate(np.array([20, 40, 70])), over_30.sensitivity("add_remove").l1
    (array([2, 1]), Fraction(2, 1))
    """

    def __init__(self, predicates: Sequence[Callable[[Any], Any]], *, universe: Any = None) -> None:
        if not predicates:
            raise ParameterError("a workload of no queries was given; give at least one predicate.")
        self.predicates = tuple(predicates)
        self.size = len(self.predicates)
        self._rows = None if universe is None else np.asarray(universe)
        self.universe = None if self._rows is None else len(self._rows)
        if self.universe == 0:
            raise ParameterError("a universe of no rows was given; give all possible rows.")

    @property
    def domain(self) -> Hashable | None:
        if self._rows is None:
            return None
        if self._rows.dtype.kind in "iu" and np.array_equal(self._rows, np.arange(len(self._rows))):
            return "values", len(self._rows)
        return "rows", self._rows.shape, tuple(_keys(self._rows))

    def evaluate(self, rows: Any) -> Integers:
        if self._rows is not None:
            return product(self.columns().T, self._histogram(rows))
        return np.array([int(np.count_nonzero(self._truth(q, rows))) for q in self.predicates], dtype=np.int64)

    def column(self, x: int) -> Integers:
        if self._rows is None:
            raise _no_universe()
        return np.array([int(self._truth(q, self._rows)[x]) for q in self.predicates], dtype=np.int64)

    def columns(self) -> Integers:
        if self._rows is None:
            raise _no_universe()
        return np.stack([self._truth(q, self._rows) for q in self.predicates], axis=1).astype(np.int64)

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        checked(neighbours)
        if self._rows is None:
            k = Fraction(self.size)
            return Sensitivity(self.size, k, k, Fraction(1), attained=False)
        return super().sensitivity(neighbours)

    def _histogram(self, rows: Any) -> Integers:
        """How often each row of the universe occurs; equal rows of the universe are counted at the first."""
        assert self._rows is not None
        array = np.asarray(rows)
        if array.size and array.shape[1:] != self._rows.shape[1:]:
            raise ParameterError(
                f"rows of shape {array.shape[1:]} were given; the universe has {self._rows.shape[1:]}."
            )
        places: dict[Any, int] = {}
        for place, key in enumerate(_keys(self._rows)):
            places.setdefault(key, place)
        counts: Integers = np.zeros(len(self._rows), np.int64)
        for key, times in Counter(_keys(array)).items():
            if key in places:
                counts[places[key]] += times
        return counts

    def _truth(self, predicate: Callable[[Any], Any], rows: Any) -> NDArray[np.bool_]:
        truth = np.asarray(predicate(rows))
        if truth.dtype != np.bool_ or truth.shape != (len(rows),):
            raise ParameterError(
                f"a predicate gave {truth.dtype} of shape {truth.shape} for {len(rows)} rows; it must give one truth "
                "value per row."
            )
        return truth


class Linear(Workload):
    """Linear queries from a matrix of rationals, shape (k, universe); rows are indices into the universe.

    >>> half = Linear([[0, Fraction(1, 2), 1]])
    >>> half.evaluate(np.array([1, 2, 2])) * half.unit
    array([Fraction(5, 2)], dtype=object)
    """

    def __init__(self, matrix: Any) -> None:
        array = np.asarray(matrix, dtype=object)
        if array.ndim != 2 or array.size == 0:
            raise ParameterError(f"a matrix of shape {array.shape} was given; give (queries, universe), both above 0.")
        read = [[_rational(v) for v in row] for row in array]
        denominator = math.lcm(*(v.denominator for row in read for v in row))
        whole = [[int(v * denominator) for v in row] for row in read]
        if max(abs(v) for row in whole for v in row) > _LARGEST:
            raise ParameterError(
                f"the values have the common unit 1/{float(denominator) if denominator < _LARGEST else '2^500'}, in "
                "which some is beyond 2^500; give values of similar size, as texts or Fractions (0.1 is not a tenth)."
            )
        self.unit = Fraction(1, denominator)
        self._matrix = exact_integers(np.array(whole, dtype=object))
        self.size, self.universe = self._matrix.shape

    @property
    def domain(self) -> Hashable | None:
        return "values", self.universe

    def evaluate(self, rows: Any) -> Integers:
        counts = np.bincount(indices(rows, self._matrix.shape[1]), minlength=self._matrix.shape[1])
        return product(self._matrix, counts)

    def column(self, x: int) -> Integers:
        return np.asarray(self._matrix[:, x])

    def columns(self) -> Integers:
        return np.ascontiguousarray(self._matrix.T)


class InnerProducts(Workload):
    """Inner products with a vector of private bits, one bit per person (subset sums): S x, S of shape (k, n).

    Here a neighbour flips one person's bit (replace), or takes it to 0 (add/remove): both move the answers by one
    column of S.
    """

    def __init__(self, subsets: Any) -> None:
        self._subsets = exact_integers(subsets)
        if self._subsets.ndim != 2 or self._subsets.size == 0:
            raise ParameterError("subsets are an integer matrix of shape (queries, people).")
        self.size, self.universe = self._subsets.shape

    def evaluate(self, rows: Any) -> Integers:
        bits = np.asarray(rows)
        if bits.shape != (self._subsets.shape[1],) or not bool(np.isin(bits, (0, 1)).all()):
            raise ParameterError(f"private bits are {self._subsets.shape[1]} zeros and ones.")
        return product(self._subsets, bits.astype(np.int64))

    def column(self, x: int) -> Integers:
        return np.asarray(self._subsets[:, x])

    def columns(self) -> Integers:
        return np.ascontiguousarray(self._subsets.T)

    @property
    def domain(self) -> Hashable | None:
        return "people", self.universe

    def moved_by(self, neighbours: Neighbours) -> Neighbours:
        checked(neighbours)
        return "add_remove"


class Stack(Workload):
    """Several workloads over one universe, answered together; sensitivities are joint, not sums of maxima.

    Where some part's universe is not known (predicates without one), they are sums, which bound the joint ones.
    """

    def __init__(self, workloads: Sequence[Workload]) -> None:
        parts = tuple(workloads)
        domains = {w.domain for w in parts}
        mixed = len(domains - {None}) > 1 or len({w.universe for w in parts}) > 1
        if not parts or mixed or len({w.unit for w in parts}) > 1:
            raise ParameterError(
                "a stack holds workloads over one universe, with the same rows in the same order, and with answers in "
                "one unit."
            )
        self.parts, self._domain = parts, None if None in domains else domains.pop()
        self.size, self.unit = sum(w.size for w in parts), parts[0].unit
        self.universe = None if self._domain is None else parts[0].universe

    @property
    def domain(self) -> Hashable | None:
        return self._domain

    def moved_by(self, neighbours: Neighbours) -> Neighbours:
        return self.parts[0].moved_by(neighbours)

    def evaluate(self, rows: Any) -> Integers:
        return np.concatenate([w.evaluate(rows) for w in self.parts])

    def column(self, x: int) -> Integers:
        return np.concatenate([w.column(x) for w in self.parts])

    def answers(self, histogram: Any) -> NDArray[Any]:
        return np.concatenate([w.answers(histogram) for w in self.parts])

    def adjoint(self, weights: Any) -> NDArray[Any]:
        ends = np.cumsum([w.size for w in self.parts])[:-1]
        pieces = np.split(np.asarray(weights), ends)
        return np.asarray(sum(w.adjoint(piece) for w, piece in zip(self.parts, pieces, strict=True)))

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        if self.domain is None:
            parts = [w.sensitivity(neighbours) for w in self.parts]
            return Sensitivity(
                sum(s.l0 for s in parts),
                sum((s.l1 for s in parts), Fraction(0)),
                sum((s.l2_squared for s in parts), Fraction(0)),
                max(s.linf for s in parts),
                attained=False,
            )
        return super().sensitivity(neighbours)


def product(matrix: Any, vector: Any) -> NDArray[Any]:
    """matrix @ vector; of integers that may leave int64, in Python ints."""
    entries, weights = np.asarray(matrix), np.asarray(vector)
    if entries.dtype.kind in "iub" and weights.dtype.kind in "iub" and entries.size:
        largest = max(abs(int(entries.min())), abs(int(entries.max())))
        heaviest = max(abs(int(weights.min())), abs(int(weights.max())))
        if largest * heaviest * weights.size >= 2**62:
            entries, weights = entries.astype(object), weights.astype(object)
    return np.asarray(entries @ weights)


def indices(rows: Any, universe: int) -> Integers:
    """Rows as indices into a universe. Raises ParameterError for others."""
    array = np.asarray(rows)
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not 0 <= int(array.min()) <= int(array.max()) < universe:
        raise ParameterError(f"rows are integers 0 .. {universe - 1}, one per row; map values to them first.")
    return array.astype(np.int64)


def _no_universe() -> ParameterError:
    return ParameterError("the workload has no universe; give universe= (all possible rows).")


def _keys(rows: NDArray[Any]) -> list[Any]:
    """One hashable key per row: Python compares ints and floats exactly, where numpy would round them to one type."""
    if rows.ndim <= 1 or rows.size == 0:
        return list(rows.tolist()) if rows.size else []
    return [tuple(row) for row in rows.reshape(len(rows), -1).tolist()]


def _rational(value: Any) -> Fraction:
    if isinstance(value, float) and not math.isfinite(value):
        raise ParameterError(f"a query has the value {value}; sensitivity would be unbounded. Give finite values.")
    if isinstance(value, bool | np.bool_):
        return Fraction(int(value))
    if not isinstance(value, str):
        return exact(value, "a query's value")
    try:
        # "1e999999999" is a short text and an enormous rational.
        if not re.fullmatch(r"[^eE]{1,400}([eE][+-]?[0-9]{1,3})?", value):
            raise ValueError
        return Fraction(value)
    except (ValueError, ZeroDivisionError):
        raise ParameterError(
            f"a query has the value {what_was_given(value)}, which is not a number; give ints or Fractions."
        ) from None
