"""Exact output laws of whole mechanisms over grids of neighbouring inputs, for the checker."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def integer_pairs(sensitivity: int) -> list[tuple[int, int]]:
    """All moves of one integer within the sensitivity."""
    return [(0, d) for d in range(-sensitivity, sensitivity + 1)]


def score_pairs(values: Iterable[int], n: int, moves: Sequence[int]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All score vectors over `values`, each with all ways of moving every score by one of `moves`."""
    return [
        (start, tuple(s + d for s, d in zip(start, step, strict=True)))
        for start in itertools.product(values, repeat=n)
        for step in itertools.product(moves, repeat=n)
    ]


def row_pairs(domain: Sequence[int], n: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All tables of at most n rows, each with a row more."""
    return [
        (table, (*table, row))
        for size in range(n)
        for table in itertools.combinations_with_replacement(domain, size)
        for row in domain
    ]


def over(log_prob: Callable[..., float], outputs: Sequence[Any], **options: Any) -> Callable[[Any], Floats]:
    """data -> ln P(output) for a fixed list of outputs."""
    return lambda data: np.array([log_prob(output, data, **options) for output in outputs])


def yes_no_strings(length: int) -> list[tuple[bool, ...]]:
    """All answers of at most `length` questions."""
    return [o for k in range(1, length + 1) for o in itertools.product((False, True), repeat=k)]


def reach(scale: float) -> int:
    """A half-width that holds all but e^-40 of Laplace noise of this scale."""
    return math.ceil(40 * scale) + 2
