"""The domain of a table: columns with finitely many public values each, and the counting of its marginals.

A record is d integer codes, 0 <= code_j < size_j; a table is a matrix of codes, shape (n, d). The marginal of a tuple
of columns is the contingency table of counts over their values: an integer array of shape (size_j for j in columns).
Both are public: sizes are declared, never read from the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError, what_was_given

__all__ = ["MAX_CELLS", "Domain"]

Integers = NDArray[np.int64]

# No table of more cells than this is laid out: 128 MiB of counts.
MAX_CELLS = 2**24


@dataclass(frozen=True)
class Domain:
    """Names of columns and how many values each has.

    >>> people = Domain(("sex", "age"), (2, 3))
    >>> people.count(np.array([[0, 2], [1, 2], [0, 0]]), ("age",))
    array([1, 0, 2])

    Raises ParameterError for no columns, repeated names, or a size below 1.
    """

    columns: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if len(set(self.columns)) != len(self.columns) or len(self.columns) != len(self.sizes) or not self.columns:
            raise ParameterError(
                f"a domain of {len(self.columns)} columns ({len(set(self.columns))} different) and {len(self.sizes)} "
                "sizes was given; give at least one column, each named once, with one size each."
            )
        for name, size in zip(self.columns, self.sizes, strict=True):
            if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
                raise ParameterError(
                    f"column {what_was_given(name)} has size {what_was_given(size)}; a size is a whole number of "
                    "values of at least 1. Declare the column's values (one_of), or its range and edges (between)."
                )
        object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def universe(self) -> int:
        """How many different records there can be."""
        return math.prod(self.sizes)

    def place(self, column: str) -> int:
        """The position of a column. Raises ParameterError for one that is not there."""
        try:
            return self.columns.index(column)
        except ValueError:
            raise ParameterError(
                f"column {what_was_given(column)} was asked; the domain has {', '.join(map(repr, self.columns))}."
            ) from None

    def size(self, column: str) -> int:
        """How many values a column has."""
        return self.sizes[self.place(column)]

    def shape(self, columns: Iterable[str]) -> tuple[int, ...]:
        """The shape of the marginal of some columns; () for none."""
        return tuple(self.size(c) for c in columns)

    def cells(self, columns: Iterable[str]) -> int:
        """How many cells that marginal has."""
        return math.prod(self.shape(columns))

    def project(self, columns: Sequence[str]) -> Domain:
        """The domain of these columns only, in this order."""
        return Domain(tuple(columns), self.shape(columns))

    def marginal(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns of one marginal, in the order of the domain. Raises ParameterError for a repeated one."""
        names = tuple(columns)
        if isinstance(columns, str) or len(set(names)) != len(names):
            said = ", ".join(map(what_was_given, [columns] if isinstance(columns, str) else names[:8]))
            raise ParameterError(f"a marginal over {said} was asked; give a tuple of different columns.")
        return tuple(sorted(names, key=self.place))

    def records(self, codes: Any) -> Integers:
        """The codes as int64 of shape (n, d), each column contiguous in memory.

        Raises ParameterError where they are not integers of that shape within the sizes.
        """
        array = np.asarray(codes)
        if array.ndim != 2 or array.shape[1] != len(self.columns) or array.dtype.kind not in "iu":
            raise ParameterError(
                f"records of shape {array.shape} and type {array.dtype} were given; give integer codes of shape "
                f"(n, {len(self.columns)}), columns in the order of the domain."
            )
        if array.size and (bool((array < 0).any()) or bool((array >= np.array(self.sizes)).any())):
            raise ParameterError("a code lies outside its column's declared values; codes are 0 .. size - 1.")
        return np.asfortranarray(array, dtype=np.int64)

    def index(self, codes: Integers, columns: Sequence[str]) -> Integers:
        """The row-major cell of each record in a marginal, shape (n,). codes: as `records` gives them."""
        if self.cells(columns) > 2**62:
            raise ParameterError(
                f"a marginal over {len(columns)} columns has more cells than integers number; ask fewer."
            )
        flat: Integers = np.zeros(len(codes), np.int64)
        for column in columns:
            place = self.place(column)
            flat *= self.sizes[place]
            flat += codes[:, place]
        return flat

    def count(self, codes: Integers, columns: Sequence[str]) -> Integers:
        """The marginal of some columns, in their order: exact counts of shape `shape(columns)`.

        Raises ParameterError beyond 2^24 cells.
        """
        cells = self.cells(columns)
        if cells > MAX_CELLS:
            raise ParameterError(
                f"the marginal over {tuple(columns)} has {cells} cells; a table of at most {MAX_CELLS} is laid out. "
                "Ask fewer columns at once, or declare coarser values."
            )
        counts = np.bincount(self.index(codes, columns), minlength=cells)
        return np.asarray(counts.reshape(self.shape(columns)), dtype=np.int64)
