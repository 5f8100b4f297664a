"""In which coordinates a design is learned: other features of the same codes, which make less noise of the same budget.

Noise is as large as the longest row. With the same noise on each sum, what is learned depends on features by K(x, x') =
<x, x'> alone: noise adds a random function whose covariance is K, and descent finds first what has much of K. So a
column's coordinates should spend the length of a row on what a column is likely to say:

- **Values.** e_k - 1/K instead of e_k. That all values say the same is what the intercept is for; a row's squared
  length is 1 - 1/K instead of 1: half for two values.
- **Numbers in m bins.** At each of the m - 1 inner edges, +s to its right and -s to its left, (m - 1) s^2 <= 1: K falls
  in a line with the distance of two bins, so that bins are told by those beside them, and every row has length 1
  wherever it lies. (One feature for each bin knows nothing of neighbours; the number itself is short in the middle.)
  Beside them a quarter of the number, for what differs within a bin; the feature of NULL; and, where rows are many
  (`fine`), half of each bin's own feature, for what no neighbour tells.
- **Numbers without bins**: the number itself.
- **Pairs**: half of every product of a coordinate of the one column and one of the other, so K is a quarter of the
  product of the two columns' K: what columns say by themselves is found first, and a row is a quarter longer in square.

The features of a code are a public table of whole numbers here too (plain features times a public matrix, rounded
down), and `Design.norm2` of it is the largest squared length, exactly: so residual x features, summed over rows, moves
by what `hubbub.learning.exact` says of any design. Weights go back to the plain features by the same matrix:
post-processing. Adult at epsilon .1: AUC .894 instead of .879, at the same cost (`benchmarks/learning.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.learning.features import MOST_FEATURES, ONE, Categories, Column, Design, Integers, Numbers, Pair

__all__ = ["Turned", "either", "own_features", "plain_covariance", "plain_mean", "plain_weights", "turned"]


@dataclass(frozen=True, eq=False)
class Turned:
    """A column in other coordinates. basis: what each plain feature is of them, a row each; `ONE` is 1.

    >>> Turned.of(Categories(("no", "yes"))).features.tolist()
    [[128, -128], [-128, 128], [0, 0]]
    """

    column: Column
    basis: Integers

    @classmethod
    def of(cls, column: Column, *, fine: bool = False) -> Turned:
        """The coordinates that suit a column. fine: where rows are many."""
        return cls(column, _basis(column, fine))

    @property
    def size(self) -> int:
        """How many codes there are."""
        return self.column.size

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each coordinate."""
        return tuple(map(str, range(self.basis.shape[1])))

    @cached_property
    def features(self) -> Integers:
        """A row of features for each code: of a pair those of its columns, multiplied, which is the same and quick."""
        if isinstance(self.column, Pair):
            return _multiplied(*(Turned.of(part).features for part in self.column.parts))
        return self.column.features @ self.basis // ONE

    def to_json(self) -> dict[str, Any]:
        """The plain column as JSON."""
        return self.column.to_json()


def _basis(column: Column, fine: bool) -> Integers:
    match column:
        case Categories():
            return _of_values(column)
        case Numbers():
            return _of_numbers(column, fine=fine)
    first, second = (_basis(part, False) for part in column.parts)
    return _multiplied(first, second)


def _multiplied(first: Integers, second: Integers) -> Integers:
    """Half of every product of a coordinate of the one and one of the other, for every two rows."""
    product: Integers = np.rint(np.kron(first, second) / (2 * ONE)).astype(np.int64)
    return product


def _of_values(column: Categories) -> Integers:
    values = len(column.values)
    return np.rint(ONE * (np.eye(values) - 1 / values)).astype(np.int64)


def _of_numbers(column: Numbers, *, fine: bool) -> Integers:
    parts: list[Integers] = []
    if column.linear:
        parts.append(np.array([[ONE // 4 if column.bins > 1 else ONE]], np.int64))
    if column.edges:
        bins, cuts = np.arange(column.bins)[:, None], np.arange(column.bins - 1)[None]
        step = math.isqrt(ONE**2 // max(1, column.bins - 1))
        own = ONE // 2 * np.eye(column.bins, dtype=np.int64) if fine else np.zeros((column.bins, 0), np.int64)
        parts.append(np.hstack([np.where(bins > cuts, step, -step), own]))
        if column.nullable:
            parts.append(np.array([[ONE]], np.int64))
    basis: Integers = np.zeros([sum(p.shape[axis] for p in parts) for axis in (0, 1)], np.int64)
    row = place = 0
    for part in parts:
        basis[row : row + part.shape[0], place : place + part.shape[1]] = part
        row, place = row + part.shape[0], place + part.shape[1]
    return basis


def turned(design: Design, *, fine: bool = False) -> Design:
    """The same columns in the coordinates in which they are learned. fine: where rows are many, and features few.

    Which of the two is public: it follows from the number of rows, public or bought.
    """
    columns: dict[str, Any] = _turned(design, fine)
    return Design(columns)


def either(design: Design) -> tuple[Design, Design]:
    """The coordinates where rows are few, and where they are many."""
    return turned(design), turned(design, fine=True)


def _turned(design: Design, fine: bool) -> dict[str, Turned]:
    """Each column; in the fine coordinates where a design has room for them."""
    columns = {name: Turned.of(column, fine=fine) for name, column in design.columns.items()}
    fits = 1 + sum(column.basis.shape[1] for column in columns.values()) <= MOST_FEATURES
    return columns if fits or not fine else _turned(design, False)


def own_features(design: Design) -> dict[str, slice]:
    """Where the bins' own features are of each column of a turned design that has any: in fine coordinates alone.

    >>> from fractions import Fraction
    >>> halves = Numbers(Fraction(0), Fraction(2), (Fraction(0), Fraction(1), Fraction(2)), linear=True)
    >>> own_features(turned(Design({"x": halves}), fine=True)), own_features(turned(Design({"x": halves})))
    ({'x': slice(3, 5, None)}, {})
    """
    places = {}
    for name, start, column in zip(design.columns, design.starts, design.columns.values(), strict=True):
        plain = column.column if isinstance(column, Turned) else column
        if isinstance(plain, Numbers) and plain.edges:
            first = int(plain.linear) + plain.bins - 1
            if len(column.names) > first + int(plain.nullable):
                places[name] = slice(start + first, start + first + plain.bins)
    return places


def plain_weights(design: Design, weights: NDArray[np.float64], *, fine: bool = False) -> NDArray[np.float64]:
    """Weights of the plain features, (outputs, width), of those in the coordinates of `turned`."""
    parts, at = [weights[:, :1]], 1
    for column in _turned(design, fine).values():
        parts.append(weights[:, at : at + column.basis.shape[1]] @ column.basis.T / ONE)
        at += column.basis.shape[1]
    return np.hstack(parts)


def plain_covariance(design: Design, covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The covariance of the plain features, (width - 1, width - 1), of that in the coordinates of `turned`.

    That all values of a column are as likely as another is no direction of either: rows of declared values have the
    same sum there.
    """
    once = plain_weights(design, np.pad(covariance, ((0, 0), (1, 0))))[:, 1:]
    return plain_weights(design, np.pad(once.T, ((0, 0), (1, 0))))[:, 1:]


def plain_mean(design: Design, mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of the plain features, (width - 1,), of that in the coordinates of `turned`; an undeclared value counts
    as a bit of each declared one."""
    plain = plain_weights(design, np.pad(mean, (1, 0))[None])[0, 1:]
    for start, column in zip(design.starts, design.columns.values(), strict=True):
        if isinstance(column, Categories):
            plain[start - 1 : start - 1 + len(column.values)] += 1 / len(column.values)
    return plain
