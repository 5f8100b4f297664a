"""Records as integer codes: declared values and bins, and the way back.

A column is *categories* (all values declared) or *edges* (numbers binned by declared edges). Everything here is a
function of one row and of declarations, never of the set of rows: which codes exist is public (law 7).

- Categories: a value's code is its place; an undeclared value becomes the `other` one, or else its row is dropped.
- Edges e_0 < ... < e_k: bin i is [e_i, e_(i+1)), the last one closed; numbers outside are clamped into the end bins. A
  missing value (None, NaN, text) has a code of its own if `nullable`, else it counts as the middle bin.

On the way back a bin becomes a uniform number of the bin (whole if `whole`), whatever the rows in it were.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError, what_was_given
from hubbub.noise import Bits, system_bits
from hubbub.synthesis.domain import Domain
from hubbub.tables.kinds import undecimal

__all__ = ["Categories", "Edges", "Schema", "identity"]

Integers = NDArray[np.int64]
Scalar = bool | int | float | str | None


@dataclass(frozen=True, init=False)
class Categories:
    """A column of declared values, None included where it may be missing.

    other: a further value that stands for every undeclared one; without it such rows are dropped.

    >>> Categories("no", "yes").codes(["yes", "maybe", "no"])
    array([ 1, -1,  0])
    """

    values: tuple[Scalar, ...]
    other: str | None = None

    def __init__(self, *values: Scalar, other: str | None = None) -> None:
        categories = (*values, other) if other is not None else values
        if not values or len({identity(v) for v in categories}) != len(categories):
            raise ParameterError(
                "categories: give each value once, and at least one. Values of a column are declared, never read from "
                "private rows."
            )
        object.__setattr__(self, "values", categories)
        object.__setattr__(self, "other", other)

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.values)

    def codes(self, column: Sequence[Any]) -> Integers:
        """The code of each value; -1 where it is not declared."""
        places = {identity(v): i for i, v in enumerate(self.values)}
        default = self.size - 1 if self.other is not None else -1
        return np.fromiter((places.get(identity(undecimal(v)), default) for v in column), np.int64, len(column))

    def values_of(self, codes: Integers, *, bits: Bits | None = None) -> list[Any]:
        """The value of each code."""
        return [self.values[c] for c in codes]


@dataclass(frozen=True, init=False)
class Edges:
    """A column of numbers in bins between declared edges.

    >>> Edges([0, 18, 65, 120], whole=True).codes([17, 18, 500])
    array([0, 1, 2])
    """

    edges: tuple[float, ...]
    whole: bool = False
    nullable: bool = False

    def __init__(self, edges: Sequence[float], *, whole: bool = False, nullable: bool = False) -> None:
        bounds = tuple(float(e) for e in edges)
        ordered = len(bounds) >= 2 and all(a < b for a, b in pairwise(bounds))
        if not ordered or not all(math.isfinite(e) for e in bounds):
            raise ParameterError(f"edges {list(edges)!r} were declared; give at least two finite numbers, ascending.")
        if whole and any(e != int(e) for e in bounds):
            raise ParameterError(f"edges {list(edges)!r} of a whole-numbered column; give whole numbers.")
        for name, value in {"edges": bounds, "whole": whole, "nullable": nullable}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def between(cls, low: float, high: float, *, bins: int = 32, whole: bool = False, nullable: bool = False) -> Edges:
        """Equal bins from low to high: a bin for each whole number where there are at most `bins` of them."""
        if not low < high or bins < 1:
            raise ParameterError(
                f"between {what_was_given(low)} and {what_was_given(high)} in {bins} bins; give low < high and a "
                "bin at least."
            )
        if whole:
            step = math.ceil((high - low + 1) / bins)
            edges: list[float] = [*range(int(low), int(high) + 1, step), int(high) + 1]
        else:
            edges = [low + (high - low) * i / bins for i in range(bins)] + [high]
        return cls(edges, whole=whole, nullable=nullable)

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return len(self.edges) - 1

    @property
    def size(self) -> int:
        """How many codes there are: the bins, and the missing value where it is allowed."""
        return self.bins + self.nullable

    def codes(self, column: Sequence[Any]) -> Integers:
        """The code of each number."""
        numbers = np.fromiter((_number(v) for v in column), np.float64, len(column))
        missing = np.isnan(numbers)
        places = np.searchsorted(np.array(self.edges), np.where(missing, self.edges[0], numbers), "right") - 1
        out = np.clip(places, 0, self.bins - 1).astype(np.int64)
        out[missing] = self.bins if self.nullable else self.bins // 2
        return out

    def values_of(self, codes: Integers, *, bits: Bits | None = None) -> list[Any]:
        """A uniform number of each bin; None for the missing value."""
        source = system_bits() if bits is None else bits
        low, high = np.array(self.edges[:-1]), np.array(self.edges[1:])
        places = np.minimum(codes, self.bins - 1)
        u = (source.u64(len(codes)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        drawn = low[places] + (high - low)[places] * u
        if self.whole:
            drawn = np.minimum(np.floor(drawn), np.maximum(high[places] - 1, low[places]))
        missing = codes >= self.bins
        kind: Any = int if self.whole else float
        return [None if m else kind(x) for m, x in zip(missing, drawn, strict=True)]


Column = Categories | Edges


@dataclass(frozen=True, init=False)
class Schema:
    """The declared columns of a table, and the way from rows to codes and back.

    >>> people = Schema({"age": Edges([0, 18, 65, 120]), "smokes": Categories("no", "yes")})
    >>> people.domain
    Domain(columns=('age', 'smokes'), sizes=(3, 2))
    >>> people.encode({"age": [40, 3], "smokes": ["no", "?"]})
    array([[1, 0]])
    """

    columns: Mapping[str, Column]

    def __init__(self, columns: Mapping[str, Column]) -> None:
        wrong = [name for name, column in columns.items() if not isinstance(column, Categories | Edges)]
        if wrong or not columns:
            raise ParameterError(
                f"no domain is declared for {', '.join(map(repr, wrong)) or 'any column'}; a domain is never read from "
                "private rows. Declare Categories(...) or Edges(...) for each column."
            )
        object.__setattr__(self, "columns", dict(columns))

    @property
    def domain(self) -> Domain:
        """The columns and how many codes each has."""
        return Domain(tuple(self.columns), tuple(c.size for c in self.columns.values()))

    def encode(self, table: Mapping[str, Sequence[Any]]) -> Integers:
        """The rows of a table of columns as codes, shape (n, d); rows with an undeclared value are left out.

        Raises ParameterError for a column that is missing, or columns of different lengths.
        """
        codes = self.places(table)
        return np.asfortranarray(codes[(codes >= 0).all(axis=1)])

    def places(self, table: Mapping[str, Sequence[Any]]) -> Integers:
        """The same for every row, in order, with -1 for an undeclared value.

        Raises ParameterError for a column that is missing, or columns of different lengths.
        """
        missing = [name for name in self.columns if name not in table]
        if missing:
            raise ParameterError(f"the table has no column {missing[0]!r}; it has {', '.join(map(repr, table))}.")
        if len({len(table[name]) for name in self.columns}) > 1:
            raise ParameterError("the table's columns have different lengths; give one value per row to each.")
        return np.stack([column.codes(table[name]) for name, column in self.columns.items()], axis=1)

    def decode(self, codes: Integers, *, bits: Bits | None = None) -> dict[str, list[Any]]:
        """Codes as a table of columns: categories as declared, bins as uniform numbers of the bin."""
        return {name: column.values_of(codes[:, j], bits=bits) for j, (name, column) in enumerate(self.columns.items())}


def identity(value: Any) -> Any:
    """1, 1.0 and True are values of their own kinds; numpy's scalars are Python's."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and math.isnan(plain):
        plain = None
    try:
        hash(plain)
    except TypeError:
        return ("unhashable", None)
    if isinstance(plain, bool):
        return ("bool", plain)
    return ("number", float(plain)) if isinstance(plain, int | float) and abs(plain) < 2**53 else ("value", plain)


def _number(value: Any) -> float:
    """A number as a float; NaN for what is none. Never an exception: whether one comes would be an answer."""
    if isinstance(value, str | bytes) or value is None:
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
