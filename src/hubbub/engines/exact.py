"""What an engine answered, as vectors over all groups: the same for every engine."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from hubbub._typing import override
from hubbub.engines.base import Exact
from hubbub.sql.emit.plan import summed
from hubbub.tables.columns import Scalar
from hubbub.tables.measure import MeasurementKind
from hubbub.tables.plan import Plan

__all__ = ["Histogram", "Steps", "exact"]


class Steps(Sequence[tuple[int, int]]):
    """The values of one group that a quantile looks at: pairs (step, how often) by increasing step, as two arrays."""

    def __init__(self, points: npt.NDArray[np.int64], heights: npt.NDArray[np.int64]) -> None:
        self.points, self.heights = points, heights

    @override
    def __len__(self) -> int:
        return len(self.points)

    @override
    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.points.tolist(), self.heights.tolist(), strict=True)

    @overload
    def __getitem__(self, at: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[tuple[int, int], ...]: ...
    @override
    def __getitem__(self, at: int | slice) -> Any:
        return tuple(self)[at]

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.stack([self.points, self.heights], axis=1).astype(dtype or np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class Histogram:
    """What `listed_sql` lists of values: how often each step is there, by increasing group and step.

    group: its number in canonical order; or in `names`, where groups are found privately.
    """

    group: npt.NDArray[np.int64]
    step: npt.NDArray[np.int64]
    count: npt.NDArray[np.int64]
    names: Sequence[tuple[Any, ...]] | None = None

    def tables(self) -> Iterator[tuple[int, Steps]]:
        """The steps of each group that has any."""
        starts = np.flatnonzero(np.diff(self.group, prepend=-1))
        for start, end in itertools.pairwise([*starts.tolist(), len(self.group)]):
            yield int(self.group[start]), Steps(self.step[start:end], self.count[start:end])


def exact(
    plan: Plan, rows: Sequence[tuple[Any, ...]], listed: Mapping[int, Sequence[tuple[Any, ...]] | Histogram]
) -> Exact:
    """The answer of the engine as vectors over all groups, 0 (or nothing) where it has no row.

    Groups that the engine tells apart are different values in Python too: the text sees to that. If two ever were not,
    they would be added up, for a row must never take the place of another's.
    """
    places, sizes = len(plan.domains), [len(d) if d is not None else 0 for d in plan.domains]
    groups: tuple[tuple[Scalar, ...], ...] | None = None
    if plan.private_keys:
        observed = dict.fromkeys(_private_group(plan, row[:places]) for row in rows)
        at_group = {group: i for i, group in enumerate(observed)}
        groups, count = tuple(observed), len(observed)
    else:
        count = plan.group_count or 0

    def at(key: tuple[Any, ...]) -> int:
        if groups is not None:
            return at_group[_private_group(plan, key)]
        place = 0
        for size, position in zip(sizes, key, strict=True):
            place = place * size + position
        return place

    sums = [i for i, m in enumerate(plan.measurements) if summed(m)]
    empty: list[Any] = [() if m.counting is MeasurementKind.QUANTILES else 0 for m in plan.measurements]
    vectors: list[list[Any]] = [[nothing] * count for nothing in empty]
    for row in rows:
        place = at(row[:places])
        for i, value in zip(sums, row[places:], strict=False):
            vectors[i][place] += int(value)
    for i, values in listed.items():
        if isinstance(values, Histogram):
            for number, steps in values.tables():
                vectors[i][number if values.names is None else at(values.names[number])] = steps
            continue
        if plan.measurements[i].counting is MeasurementKind.DISTINCT:
            for row in values:
                vectors[i][at(row[:places])] += int(row[places])
            continue
        pairs: dict[int, list[tuple[int, int]]] = {}
        for *key, x, n in values:
            pairs.setdefault(at(tuple(key)), []).append((int(x), int(n)))
        for place, of_group in pairs.items():
            vectors[i][place] = tuple(sorted(of_group))
    return Exact(tuple(map(tuple, vectors)), groups)


def _private_group(plan: Plan, key: tuple[Any, ...]) -> tuple[Scalar, ...]:
    """A group's keys: found ones as they are, declared ones from their position. Of -0.0 and 0.0 it is 0.0."""
    return tuple(
        (value + 0.0 if isinstance(value, float) else value) if domain is None else domain[value]
        for value, domain in zip(key, plan.domains, strict=True)
    )
