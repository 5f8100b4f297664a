"""Columns of answers as quantities with an error, and arithmetic with them.

A column holds its estimates and other draws of them (`hubbub.answer.evaluate`). Arithmetic is done draw by draw, so
the error of a sum, a difference, a product or a ratio needs no formula: its interval at a level holds the central part
of the draws. Two columns of one release share its noise; columns of two releases have independent noise. Rows meet by
their position: both sides have the same keys, or one of them a single row.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.answer.evaluate import after_stopping
from hubbub.answer.intervals import around
from hubbub.arguments import a_level
from hubbub.errors import ParameterError

__all__ = ["Column"]

Floats: TypeAlias = NDArray[np.float64]
Operation: TypeAlias = Callable[[Any, Any], Any]


def _operator(apply: Operation, sign: str, *, turned: bool = False) -> Callable[[Any, object], Any]:
    def operate(self: Column, other: object) -> Any:
        if isinstance(other, bool) or not isinstance(other, Column | int | float | np.integer | np.floating):
            return NotImplemented
        return self._with(other, apply, sign, turned=turned)

    return operate


@dataclass(frozen=True, eq=False)
class Column:
    """Estimates with their errors. values: one for each row, NaN for NULL. draws: [draw][row].

    keys: what tells the rows apart. charges: the charges whose noise is in it, each with the release it was read from.
    one with `release["name"]`.
    """

    name: str
    values: Floats
    draws: Floats = field(repr=False)
    keys: tuple[tuple[Any, ...], ...] = field(repr=False)
    charges: frozenset[tuple[str, int]] = field(default=frozenset(), repr=False)
    _exact: Callable[[float], tuple[Floats, Floats] | None] | None = field(default=None, repr=False)
    _stopped: bool = field(default=False, repr=False)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """The lower and the upper ends of the intervals.

        Raises ParameterError for a level outside (0, 1).
        """
        level = a_level(level)
        exact = None if self._exact is None else self._exact(level)
        if exact is not None:
            return exact
        return around(self.values, self.draws, after_stopping(level) if self._stopped else level)

    def half_width(self, level: float = 0.95) -> Floats:
        """The larger distance from each value to an end of its interval."""
        low, high = self.interval(level)
        return np.asarray(np.maximum(self.values - low, high - self.values))

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[float]:
        return iter(self.values.tolist())

    def __str__(self) -> str:
        widths = self.half_width()
        shown = [f"{v:,.4g} ± {w:,.2g}" for v, w in zip(self.values[:10], widths[:10], strict=True)]
        more = ", ..." if len(self) > 10 else ""
        return f"{self.name}: {', '.join(shown)}{more}"

    __add__, __radd__ = _operator(operator.add, "+"), _operator(operator.add, "+", turned=True)
    __sub__, __rsub__ = _operator(operator.sub, "-"), _operator(operator.sub, "-", turned=True)
    __mul__, __rmul__ = _operator(operator.mul, "*"), _operator(operator.mul, "*", turned=True)
    __truediv__ = _operator(operator.truediv, "/")
    __rtruediv__ = _operator(operator.truediv, "/", turned=True)

    def __neg__(self) -> Any:
        return 0 - self

    def _with(self, other: object, apply: Operation, sign: str, *, turned: bool) -> Column:
        if not isinstance(other, Column):
            other = Column(f"{other:g}", np.array([float(other)]), np.array([[float(other)]]), ((),))  # type: ignore[arg-type]
        self._meets(other, sign)
        one, two = (other, self) if turned else (self, other)
        size = min(len(c.draws) for c in (one, two) if len(c.draws) > 1 or len(c.values) > 1) if _known(one, two) else 1
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            values = _finite(apply(one.values, two.values))
            draws = _finite(apply(_first(one.draws, size), _first(two.draws, size)))
        keys, charges = self.keys if len(self) >= len(other) else other.keys, self.charges | other.charges
        stopped = self._stopped or other._stopped
        return Column(f"({one.name} {sign} {two.name})", values, draws, keys, charges, None, stopped)

    def _meets(self, other: Column, sign: str) -> None:
        read = self.charges | other.charges
        if len({charge for charge, _ in read}) < len(read):
            raise ParameterError(
                f"{self.name} {sign} {other.name}: both hold the same draw of the noise, read twice. Take both columns "
                "from one release."
            )
        if 1 in (len(self), len(other)) and () in (*self.keys[:1], *other.keys[:1]):
            return
        if self.keys != other.keys:
            raise ParameterError(
                f"{self.name} {sign} {other.name}: the rows differ ({len(self)} and {len(other)}), or have other keys. "
                "Allowed: columns with the same keys in the same order, or one of a single row without keys. Ask with "
                "ORDER BY the keys."
            )


def _known(*columns: Column) -> bool:
    return any(len(c.draws) > 1 for c in columns)


def _first(draws: Floats, size: int) -> Floats:
    """The first draws; a constant's only one stands for all."""
    return draws if len(draws) == 1 else draws[:size]


def _finite(values: Any) -> Floats:
    return np.asarray(np.where(np.isfinite(values), values, np.nan), np.float64)
