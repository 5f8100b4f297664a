"""How far one unit can move the answers of a workload.

For answers f(D) in Q^k and neighbours D, D', with v = f(D) - f(D'): l0 = max #{i : v_i != 0}, l1 = max sum |v_i|,
l2^2 = max sum v_i^2, linf = max |v_i|. Add/remove: D' has one row more, so v ranges over the columns a_x of the query
matrix. Replace: one row becomes another, so v ranges over the differences a_x - a_y (no unit is ever nobody here;
where a WHERE may drop a row, zero is a column too).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError, what_was_given

__all__ = ["Neighbours", "Sensitivity", "brute_force", "differences", "exact_integers"]

Neighbours = Literal["add_remove", "replace"]
_PAIRS = 2**24
# Sums and differences of so small entries fit int64, over any matrix that fits the memory; others are Python ints.
_SMALL = 2**31


@dataclass(frozen=True)
class Sensitivity:
    """Exact sensitivities of counts. `attained` is False where they are bounds that no universe was given to check.

    >>> Sensitivity(2, Fraction(2), Fraction(2), Fraction(1)).of_shares(100).l1
    Fraction(1, 50)
    """

    l0: int
    l1: Fraction
    l2_squared: Fraction
    linf: Fraction
    attained: bool = True

    @property
    def l2(self) -> float:
        """The l2 sensitivity, as a float; l2_squared is exact."""
        return math.sqrt(self.l2_squared)

    def of_shares(self, n: int) -> Sensitivity:
        """Of the answers divided by a public number of rows n."""
        if n < 1:
            raise ParameterError(f"n = {n} was given; shares are of n >= 1 rows.")
        return Sensitivity(self.l0, self.l1 / n, self.l2_squared / n**2, self.linf / n, self.attained)

    def of_rows(self, rows: int) -> Sensitivity:
        """Of a unit with at most `rows` rows, which may all be alike: norms grow by `rows`, l0 at most so."""
        if rows < 1:
            raise ParameterError(f"rows = {rows} was given; a unit has at most some number of rows >= 1.")
        attained = self.attained and rows == 1
        return Sensitivity(self.l0 * rows, self.l1 * rows, self.l2_squared * rows**2, self.linf * rows, attained)


def checked(neighbours: Neighbours) -> Neighbours:
    """The relation, if it is one. Raises ParameterError."""
    if neighbours not in ("add_remove", "replace"):
        raise ParameterError(f"neighbours = {what_was_given(neighbours)} was asked; it is 'add_remove' or 'replace'.")
    return neighbours


def exact_integers(values: Any) -> NDArray[Any]:
    """A matrix or vector of integers as int64 where no sum of them can leave it, else as Python ints (dtype object).

    Raises ParameterError for what is not an integer.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iub" and not (
        array.dtype == object and all(isinstance(v, int | np.integer) for v in array.ravel())
    ):
        raise ParameterError(f"values of {array.dtype} were given where integers are needed; give whole numbers.")
    if array.size == 0 or -_SMALL < int(array.min()) <= int(array.max()) < _SMALL:
        return array.astype(np.int64)
    out = np.empty(array.shape, dtype=object)
    out.ravel()[:] = [int(v) for v in array.ravel()]
    return out


def differences(columns: Any, neighbours: Neighbours) -> NDArray[Any]:
    """The different vectors that neighbours' answers may differ by, up to sign: shape (moves, k), integers.

    Raises ParameterError where replace would need more than 2^24 numbers.
    """
    rows = _different(exact_integers(columns))
    if checked(neighbours) == "add_remove":
        return rows
    if len(rows) ** 2 * rows.shape[1] > _PAIRS:
        raise _too_many(len(rows))
    return _different(np.concatenate([rows[i:] - rows[i] for i in range(len(rows))]))


def brute_force(columns: Any, neighbours: Neighbours, unit: Fraction = Fraction(1)) -> Sensitivity:
    """From the whole matrix: columns of shape (universe, k), integers that count multiples of `unit`.

    Raises ParameterError where replace would need more than 2^24 pairs of different columns.
    """
    rows = _different(exact_integers(columns))
    if checked(neighbours) == "add_remove":
        return _norms(rows, unit)
    if len(rows) ** 2 > _PAIRS:
        raise _too_many(len(rows))
    norms = [_norms(rows[i + 1 :] - rows[i], unit) for i in range(len(rows) - 1)]
    return Sensitivity(
        max((s.l0 for s in norms), default=0),
        max((s.l1 for s in norms), default=Fraction(0)),
        max((s.l2_squared for s in norms), default=Fraction(0)),
        max((s.linf for s in norms), default=Fraction(0)),
    )


def _different(rows: NDArray[Any]) -> NDArray[Any]:
    if rows.dtype != object:
        return np.asarray(np.unique(rows, axis=0))
    return np.array(sorted({tuple(row) for row in rows.tolist()}), dtype=object)


def _too_many(columns: int) -> ParameterError:
    return ParameterError(
        f"replace was asked over {columns} different columns, too many pairs to try; use a family of known "
        "structure, or add/remove, which costs at most a factor 2 less."
    )


def _norms(moves: Any, unit: Fraction) -> Sensitivity:
    sizes = np.abs(moves)
    # Python ints, because squares may pass int64.
    wide = sizes.astype(object) if sizes.size and int(sizes.max()) > 2**20 else sizes
    return Sensitivity(
        int((sizes != 0).sum(axis=1).max(initial=0)),
        Fraction(int(max(sizes.sum(axis=1), default=0))) * unit,
        Fraction(int(max((wide * wide).sum(axis=1), default=0))) * unit**2,
        Fraction(int(sizes.max(initial=0))) * unit,
    )
