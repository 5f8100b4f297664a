"""What a model learns of declared columns, and how much each row counts: as whole numbers, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from hubbub.errors import PolicyError, what_was_given
from hubbub.learning.exact import HEAVIEST
from hubbub.learning.features import Categories, Integers, Numbers, coded
from hubbub.remedies import DeclareValues
from hubbub.tables.columns import OneOf, Scalar

__all__ = ["LEVELS", "Classes", "Range", "Weight"]

LEVELS: Final = 1 << 10
"""Steps of a target that is a number."""


@dataclass(frozen=True)
class Classes:
    """A target of declared classes, sorted. `column` reads it.

    >>> Classes.of("t", OneOf(("yes", "no", None))).values
    ('no', 'yes')
    """

    name: str
    values: tuple[Scalar, ...]
    column: Categories

    @classmethod
    def of(cls, name: str, declared: OneOf) -> Classes:
        """The classes that a column declares, without NULL.

        Raises PolicyError for fewer than two.
        """
        declared_classes = [v for v in declared.values if v is not None]
        declared_classes += [declared.other] if declared.other is not None else []
        if len(declared_classes) < 2 or not all(isinstance(v, bool | int | float | str) for v in declared_classes):
            way = DeclareValues(name)
            raise PolicyError(
                f"the target {what_was_given(name)} needs at least two declared classes, which are not dates: "
                f"{way.in_python()}.",
                remedy=way,
            )
        values = tuple(sorted(declared_classes))
        return cls(name, values, Categories(values, declared.other))

    def label(self, column: Any) -> Integers:
        """The place of each row's class; -1 for none."""
        places = coded(self.column, column)
        if self.column.other is not None:  # NULL is not another value
            places = np.where(column.is_null().to_numpy(), len(self.values), places)
        return np.where(places < len(self.values), places, -1)


@dataclass(frozen=True)
class Range:
    """A target that is a number from low to high, in steps of a 1024th."""

    name: str
    low: Fraction
    high: Fraction

    most = LEVELS

    @cached_property
    def column(self) -> Numbers:
        """The steps as codes: from 0 to `most`, and one for what is not a number."""
        width = self.high - self.low
        return _cut(tuple(self.low + width * (2 * k + 1) / (2 * LEVELS) for k in range(LEVELS)))

    def label(self, column: Any) -> Integers:
        """The step of each row's number, from 0 to 1024; -1 for none."""
        steps = coded(self.column, column)
        return np.where(steps <= self.most, steps, -1)


def _cut(cuts: tuple[Fraction, ...]) -> Numbers:
    """Codes that tell how many of the cuts lie at or below a number."""
    low, high = cuts[0] - 1, cuts[-1] + 1
    return Numbers(low, high, (low, *cuts, high))


@dataclass(frozen=True)
class Weight:
    """A column of weights from 0 to `high`."""

    name: str
    high: Fraction

    most = HEAVIEST

    @cached_property
    def column(self) -> Numbers:
        """The steps of the grid as codes: from 0 to `most`, and one for what is not a number."""
        return _cut(tuple(self.high * (2 * k + 1) / (2 * HEAVIEST) for k in range(HEAVIEST)))

    def grid(self, column: Any) -> Integers:
        """The weight of each row on its grid; 0 for what is not a number."""
        steps = coded(self.column, column)
        return np.where(steps <= self.most, steps, 0)
