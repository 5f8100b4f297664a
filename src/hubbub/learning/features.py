"""Columns as features: from declared values and ranges to integer codes, and from codes to rows of a public integer
table.

Every column becomes one code per row, and every code has a row of integers, its features, in a table that follows from
declarations alone. So a row of a private table is a few codes, each a function of that row only; its features are whole
numbers on the grid of 2^-8; and the largest length that a row of features can have is known exactly (`Design.norm2`).

- Categories: a code for each declared value, with one feature that is 1 there and 0 elsewhere. A value that is not
  declared, and NULL where it is not, has features of 0: it is neither dropped nor guessed.
- Numbers from lo to hi: `linear`, the number moved to [-1, 1] and rounded to the grid (NULL: the midpoint, 0); and
  `bins`, a feature for each bin between declared edges, and one for NULL where it may come. Numbers beyond the range
  are clamped. A code tells the bin and the grid step: codes are numbered by comparing with one public list of cuts, and
  nothing else is computed from a number. So every engine that can compare numbers finds the same code.
- Pairs of columns: a code for each two codes, with one feature that is 1 where a row has this value or bin of the one
  and that of the other. The code is a function of the row too, so a pair is one more column.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError, PolicyError, what_was_given
from hubbub.remedies import DeclareRange, DeclareValues
from hubbub.tables.columns import Between, Declaration, Edges, OneOf, Scalar
from hubbub.tables.kinds import undecimal

__all__ = [
    "ONE",
    "Categories",
    "Column",
    "Design",
    "Integers",
    "Numbers",
    "Pair",
    "Scoring",
    "coded",
    "column_of",
    "identity",
    "ratio",
    "read_column",
]

Integers: TypeAlias = NDArray[np.int64]

ONE: Final = 1 << 8
"""The feature 1 on the grid."""
MOST_FEATURES: Final = 1 << 12
_MOST_CODES: Final = 1 << 20
_MOST_CELLS: Final = 1 << 10
_MOST_SCORE: Final = 1 << 62
_HALF: Final = 30
_LARGEST: Final = 10**300
"""Beyond it no float tells where a number lies."""
_RATIO: Final = re.compile(r"-?[0-9]{1,1000}(/[0-9]{1,1000})?")


@dataclass(frozen=True)
class Categories:
    """A column of declared values. other: the value that stands for every undeclared one, among `values`.

    >>> Categories(("no", "yes")).features.tolist()
    [[256, 0], [0, 256], [0, 0]]
    """

    values: tuple[Scalar, ...]
    other: str | None = None

    def __post_init__(self) -> None:
        if self.other is not None and self.other not in self.values:
            raise ParameterError(
                f"other={what_was_given(self.other):.40} stands for what is not declared, and is not among the values."
            )

    @property
    def size(self) -> int:
        """How many codes there are; the last one is that of undeclared values."""
        return len(self.values) + 1

    @property
    def names(self) -> tuple[str, ...]:
        """What each feature stands for."""
        return tuple("NULL" if v is None else str(v) for v in self.values)

    @cached_property
    def features(self) -> Integers:
        """A row of features for each code."""
        return np.vstack([ONE * np.eye(len(self.values), dtype=np.int64), np.zeros((1, len(self.values)), np.int64)])

    @cached_property
    def places(self) -> dict[Any, int]:
        """The code of each value; of any other one it is `default`."""
        return {identity(v): i for i, v in enumerate(self.values)}

    @property
    def default(self) -> int:
        """The code of a value that is not declared."""
        return self.size - 1 if self.other is None else self.values.index(self.other)

    def codes(self, column: Any) -> Integers:
        """The code of each value of an Arrow array."""
        encoded = column.dictionary_encode()
        of_value = [self.places.get(identity(v), self.default) for v in encoded.dictionary.to_pylist()]
        null = self.places.get(identity(None), self.default)
        at = encoded.indices.fill_null(len(of_value)).to_numpy(zero_copy_only=False)
        codes: Integers = np.array([*of_value, null], np.int64)[at]
        return codes

    def to_json(self) -> dict[str, Any]:
        """The column as JSON."""
        return {"values": list(self.values), "other": self.other}


@dataclass(frozen=True)
class Numbers:
    """A column of numbers between `low` and `high`. edges: of its bins, the ends included, or none. linear: whether the
    number itself is a feature. nullable: whether NULL has a bin of its own. cells: numbers at which codes are told
    apart beside that; they make no features.

    >>> two = Numbers(Fraction(0), Fraction(10), edges=(Fraction(0), Fraction(5), Fraction(10)), nullable=True)
    >>> two.features.tolist()
    [[256, 0, 0], [0, 256, 0], [0, 0, 256]]
    """

    low: Fraction
    high: Fraction
    edges: tuple[Fraction, ...] = ()
    linear: bool = False
    nullable: bool = False
    cells: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        low, high, *edges = self._whole((self.low, self.high, *self.edges))
        ordered = all(a < b for a, b in pairwise(edges))
        if not low < high or not ordered or not (edges or self.linear) or len(edges) == 1:
            raise ParameterError(f"numbers from {self.low} to {self.high} in bins {list(map(str, self.edges))!r:.80}.")
        if max(map(abs, (low, high, *edges))) > _LARGEST * self._parts:
            raise ParameterError("the numbers of a model, and the edges of its bins, lie within +-1e300.")

    @cached_property
    def _parts(self) -> int:
        """Of how many parts of 1 all numbers of the column are whole multiples: integers are quick to compare."""
        ends = (self.low, self.high, *self.edges, *self.cells)
        return math.lcm(*(e.denominator for e in ends)) * (4 * ONE if self.linear else 1)

    def _whole(self, numbers: Iterable[Fraction]) -> list[int]:
        return [n.numerator * (self._parts // n.denominator) for n in numbers]

    @property
    def bins(self) -> int:
        """How many bins there are, without that of NULL."""
        return max(0, len(self.edges) - 1)

    @property
    def size(self) -> int:
        """How many codes there are; the last one is that of a missing number."""
        return len(self._marks) + 2

    @property
    def cuts(self) -> tuple[Fraction, ...]:
        """A code is how many of these are not above the number: half steps of the grid, and inner edges."""
        return tuple(Fraction(mark, self._parts) for mark in self._marks)

    @cached_property
    def _marks(self) -> list[int]:
        """The cuts, in parts."""
        return sorted({*self._steps, *self._whole(self.edges[1:-1]), *self._whole(self.cells)})

    def places(self, cuts: Sequence[Fraction]) -> Integers:
        """For each code but that of a missing number, how many of the cuts are not above its numbers; cuts that are not
        its own count by its least number."""
        marks = self._whole(cuts)
        return np.array([bisect_right(marks, at) for at in [*self._whole([self.low]), *self._marks]], np.int64)

    @cached_property
    def _steps(self) -> list[int]:
        if not self.linear:
            return []
        low, high = self._whole((self.low, self.high))
        return [low + (high - low) // (4 * ONE) * (2 * k + 1) for k in range(2 * ONE)]

    @property
    def names(self) -> tuple[str, ...]:
        """What each feature stands for."""
        ends = [f"{float(e):g}" for e in self.edges]
        last = len(ends) - 2
        labels = [f"[{a}, {b}{']' if i == last else ')'}" for i, (a, b) in enumerate(pairwise(ends))]
        return (*(["linear"] if self.linear else []), *labels, *(["NULL"] if self.edges and self.nullable else []))

    @cached_property
    def features(self) -> Integers:
        """A row of features for each code."""
        rows = np.zeros((self.size, len(self.names)), np.int64)
        first, inner = int(self.linear), self._whole(self.edges[1:-1])
        for code, at in enumerate(
            [*self._whole([self.low]), *self._marks]
        ):  # the least number of each code, whatever lies below
            if self.linear:
                rows[code, 0] = bisect_right(self._steps, at) - ONE
            if self.edges:
                rows[code, first + bisect_right(inner, at)] = ONE
        if self.edges:
            rows[-1, first + (self.bins if self.nullable else self.bins // 2)] = ONE
        return rows

    @cached_property
    def _cuts(self) -> NDArray[np.float64]:
        # The least float that is not below the cut: a float is at or above both, or neither.
        rounded = [mark / self._parts for mark in self._marks]
        ratios = map(float.as_integer_ratio, rounded)
        below = [n * self._parts < mark * d for (n, d), mark in zip(ratios, self._marks, strict=True)]
        return np.where(below, np.nextafter(rounded, np.inf), rounded)

    def codes(self, column: Any) -> Integers:
        """The code of each number of an Arrow array; what is not a number is missing."""
        import pyarrow as pa

        numeric = any(test(column.type) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))
        if not numeric:
            return np.full(len(column), self.size - 1, np.int64)
        # NaN where it is null, and never an exception: whether one comes would be an answer.
        numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        places: Integers = np.searchsorted(self._cuts, numbers, "right")
        places[np.isnan(numbers)] = self.size - 1
        return places

    def to_json(self) -> dict[str, Any]:
        """The column as JSON."""
        return {
            "low": str(self.low),
            "high": str(self.high),
            "edges": [str(e) for e in self.edges],
            "linear": self.linear,
            "nullable": self.nullable,
            **({"cells": [str(c) for c in self.cells]} if self.cells else {}),
        }


@dataclass(frozen=True)
class Pair:
    """Two columns as one. names_in: of the two. parts: their values or bins.

    >>> two = Categories(("no", "yes"))
    >>> pair = Pair(("rain", "wind"), (two, two))
    >>> pair.names[1], pair.features[1].tolist()
    ('no & yes', [0, 256, 0, 0])
    """

    names_in: tuple[str, str]
    parts: tuple[Categories | Numbers, Categories | Numbers]

    most: ClassVar[int] = _MOST_CELLS
    """How many cells one may have."""

    def __post_init__(self) -> None:
        if not all(isinstance(p, Categories) or (isinstance(p, Numbers) and not p.linear) for p in self.parts):
            raise ParameterError("a pair is of two columns of values or bins.")
        if self.size > _MOST_CELLS:
            raise ParameterError(
                f"the pair {' and '.join(self.names_in)!r:.80} has {self.size} cells; {_MOST_CELLS} are allowed. Give "
                "fewer bins."
            )

    @property
    def size(self) -> int:
        """How many codes there are: every two of the columns', the second's running faster."""
        return self.parts[0].size * self.parts[1].size

    @property
    def names(self) -> tuple[str, ...]:
        """What each feature stands for."""
        first, second = self.parts
        return tuple(f"{a} & {b}" for a in first.names for b in second.names)

    @cached_property
    def features(self) -> Integers:
        """A row of features for each code."""
        first, second = (part.features // ONE for part in self.parts)
        return ONE * np.kron(first, second)

    def codes(self, first: Any, second: Any) -> Integers:
        """The code of each row of two Arrow columns."""
        return coded(self.parts[0], first) * self.parts[1].size + coded(self.parts[1], second)

    def to_json(self) -> dict[str, Any]:
        """The pair as JSON."""
        return {"pair": list(self.names_in), "parts": [part.to_json() for part in self.parts]}


Column: TypeAlias = Categories | Numbers | Pair


@dataclass(frozen=True, eq=False)
class Design:
    """The columns of a model, in order, and the features that they make, an intercept before them all.

    >>> one = Design({"sex": Categories(("f", "m"))})
    >>> one.width, one.norm2 == 2 * ONE**2, one.names
    (3, True, ('intercept', 'sex=f', 'sex=m'))
    """

    columns: Mapping[str, Column]

    def __post_init__(self) -> None:
        if not self.columns:
            raise ParameterError("a model needs at least one column.")
        if self.width > MOST_FEATURES or any(c.size > _MOST_CODES for c in self.columns.values()):
            raise ParameterError(f"these columns make {self.width} features; {MOST_FEATURES} are allowed.")

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first feature of each column."""
        starts = [1]
        for column in self.columns.values():
            starts.append(starts[-1] + len(column.names))
        return tuple(starts[:-1])

    @property
    def width(self) -> int:
        """How many features there are."""
        return 1 + sum(len(c.names) for c in self.columns.values())

    @property
    def names(self) -> tuple[str, ...]:
        """What each feature stands for."""
        pairs = [(name, n) for name, c in self.columns.items() for n in c.names]
        return ("intercept", *(name if n == "linear" else f"{name}={n}" for name, n in pairs))

    @property
    def norm2(self) -> int:
        """The largest squared length of a row of features, exactly: no row of values has more.

        The features of a row are one row of each column's table beside the intercept, so the largest squared length is
        the sum of the columns' largest.
        """
        return ONE**2 + sum(int((c.features**2).sum(axis=1).max()) for c in self.columns.values())

    def lookups(self, weights: Integers) -> list[Integers]:
        """For each column, what each of its codes adds to the score of integer weights (without the intercept)."""
        return [
            c.features @ weights[start : start + len(c.names)]
            for start, c in zip(self.starts, self.columns.values(), strict=True)
        ]

    def scoring(self, weights: Integers) -> Scoring:
        """The scores of (outputs, width) integer weights."""
        each = [self.lookups(w) for w in weights]
        tables = tuple(np.stack(of_outputs) for of_outputs in zip(*each, strict=True))
        return Scoring(tuple(ONE * int(w[0]) for w in weights), tables)

    def gathered(self, total: int, sums: Sequence[Integers]) -> list[int]:
        """The sum of r x over rows, from the sum of r over all rows and, for each column, over the rows of each code.

        Whole numbers of any size. The sums are 64-bit integers; their upper and lower halves are multiplied by
        themselves, so that no part leaves 64 bits: 2^20 codes of features of at most 2^8, halves of at most 2^33.
        """
        gathered = [ONE * int(total)]
        for column, of_code in zip(self.columns.values(), sums, strict=True):
            upper, lower = column.features.T @ (of_code >> _HALF), column.features.T @ (of_code & ((1 << _HALF) - 1))
            gathered += [(high << _HALF) + low for high, low in zip(upper.tolist(), lower.tolist(), strict=True)]
        return gathered

    def encode(self, table: Any) -> list[Integers]:
        """The codes of an Arrow table's rows, one array for each column."""
        return [
            c.codes(*map(table.column, c.names_in)) if isinstance(c, Pair) else coded(c, table.column(name))
            for name, c in self.columns.items()
        ]

    @property
    def read(self) -> tuple[str, ...]:
        """Which columns of a table it reads, each once."""
        each = (c.names_in if isinstance(c, Pair) else (name,) for name, c in self.columns.items())
        return tuple(dict.fromkeys(name for names in each for name in names))

    def to_json(self) -> dict[str, Any]:
        """The design as JSON."""
        return {name: c.to_json() for name, c in self.columns.items()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Design:
        """What `to_json` wrote."""
        return cls({name: read_column(c) for name, c in stored.items()})


@dataclass(frozen=True, eq=False)
class Scoring:
    """Scores of rows, in multiples of 2^-24: an output, or several, each a sum of whole numbers that are looked up by
    the codes of a row.

    starts: with what each output begins. tables: for each column, what each of its codes adds: (outputs, codes).

    >>> Scoring((5,), (np.array([[-8, 1]]), np.array([[0, 2]]))).most
    15
    """

    starts: tuple[int, ...]
    tables: tuple[Integers, ...]

    @property
    def most(self) -> int:
        """Beyond it lies no score, and no part of the sum that it is, of any row."""
        return max(map(abs, self.starts)) + sum(max(int(t.max()), -int(t.min())) for t in self.tables)

    def fits(self, design: Design, outputs: int) -> bool:
        """Whether it gives every row of a design so many scores, all of them exact in 64 bits."""
        shapes = [(outputs, column.size) for column in design.columns.values()]
        whole = all(t.dtype == np.int64 for t in self.tables)
        fits = len(self.starts) == outputs and [t.shape for t in self.tables] == shapes and whole
        return fits and self.most * outputs < _MOST_SCORE


def coded(column: Categories | Numbers, values: Any) -> Integers:
    """The codes of a chunked Arrow array."""
    return np.concatenate([np.zeros(0, np.int64), *(column.codes(chunk) for chunk in values.chunks)])


def read_column(stored: Mapping[str, Any]) -> Column:
    """What a column's `to_json` wrote."""
    if "pair" in stored:
        first, second = stored["pair"]
        left, right = map(_read_part, stored["parts"])
        return Pair((str(first), str(second)), (left, right))
    return _read_part(stored)


def _read_part(stored: Mapping[str, Any]) -> Categories | Numbers:
    if "values" in stored:
        return Categories(tuple(stored["values"]), stored["other"])
    ends = tuple(ratio(e) for e in stored["edges"])
    return Numbers(ratio(stored["low"]), ratio(stored["high"]), ends, stored["linear"], stored["nullable"])


def ratio(text: str) -> Fraction:
    """What `str` wrote of a fraction.

    Raises ValueError for any other text: that of 1e999999999 is short, and its number fills the memory.

    >>> ratio("-7/2")
    Fraction(-7, 2)
    """
    if not _RATIO.fullmatch(text):
        raise ValueError("this is not the text of a fraction")
    return Fraction(text)


def column_of(
    name: str,
    declared: Declaration | None,
    *,
    linear: bool,
    bins: int | Sequence[float] | None,
    whole: bool = False,
) -> Categories | Numbers:
    """A declared column as features. bins: their number or edges, None for none. whole: whether its numbers are.

    Raises PolicyError for a column of which neither values nor a range of numbers is declared.
    """
    match declared:
        case OneOf(values=values, other=other):
            if not all(isinstance(v, bool | int | float | str | None) for v in values):
                raise PolicyError(
                    f"the column {what_was_given(name)} holds dates; a model takes numbers and categories. Leave "
                    "it out."
                )
            return Categories((*values, other) if other is not None else values, other)
        case Between(nullable=nullable) if declared.numeric:
            assert isinstance(declared.low, Fraction)
            assert isinstance(declared.high, Fraction)
            ends = _edges(name, declared.low, declared.high, bins, whole)
            return Numbers(declared.low, declared.high, ends, linear, nullable)
        case Edges(ends=ends, nullable=nullable):
            own = ends if isinstance(bins, int) else _edges(name, declared.low, declared.high, bins, whole)
            return Numbers(declared.low, declared.high, own, linear, nullable)
    ways = (DeclareValues(name), DeclareRange(name))
    raise PolicyError(
        f"the column {what_was_given(name)} has no declared values or range of numbers, which a model needs: they "
        f"are never read from private rows. Declare {' or '.join(way.in_python() for way in ways)}, or leave it out.",
        remedy=ways,
    )


def _edges(
    name: str, low: Fraction, high: Fraction, bins: int | Sequence[float] | None, whole: bool
) -> tuple[Fraction, ...]:
    """The edges of bins: equal ones, one for each whole number where there are few."""
    if bins is None:
        return ()
    if isinstance(bins, int):
        if whole and high - low < bins:
            return tuple(Fraction(e) for e in range(int(low), int(high) + 2))
        return tuple(low + (high - low) * i / bins for i in range(bins + 1))
    try:
        ends = tuple(Fraction(str(e)) for e in bins)
    except (TypeError, ValueError):
        raise ParameterError(
            f"bins of {what_was_given(name)}: expected numbers in order, as in [0, 18, 65, 120]."
        ) from None
    if len(ends) < 2 or any(a >= b for a, b in pairwise(ends)):
        raise ParameterError(f"bins of {what_was_given(name)}: expected at least two numbers, ascending.")
    return ends


def identity(value: Any) -> Any:
    """1 and 1.0 are one value, and so is a decimal of that number, as which an engine's widest whole numbers come; True
    is another; NaN is NULL. Never an exception.
    """
    value = undecimal(value)
    if isinstance(value, float) and value != value:
        value = None
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int | float):
        return ("number", float(value)) if abs(value) < 2**53 else ("large", value)
    try:
        hash(value)
    except TypeError:
        return ("unhashable", None)
    return ("value", value)
