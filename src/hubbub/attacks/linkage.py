"""Linkage and uniqueness: names come back when a release and a named list share a few columns (`docs/theorems.md`, A1).

Sweeney (1997, 2000) joined hospital discharges without names to a voter list on ZIP code, birth date and sex, and found
the record of the governor of Massachusetts; 87 % of the people of the United States are unique in those three columns.

**Uniqueness.** N people who fall independently and uniformly into K cells: a person is alone with probability
(1 - 1/K)^(N-1), about exp(-(N-1)/K) (Golle 2006). With cell probabilities p: sum p (1-p)^(N-1).

**Linkage.** A row of the release is re-identified when exactly one row of the list has its values, and exactly one row
of the release has them.

**Secrets through counts.** The attacker knows everybody's columns (who is in which cell), sees the counts of every cell
by secret value, and guesses each person's secret as the value with the largest count. Exact counts leave no doubt in a
cell whose people share one secret; a cell of one always does. Some of that is learned about a group rather than about
a person: it would be guessed even if the person's own row were missing. What a row itself gives away is the
difference. Under add/remove (epsilon, delta)-DP, with `baseline` the share right if each row in turn were missing,

    share right <= min(e^epsilon baseline + delta, 1 - e^-epsilon (1 - delta - baseline))       (`hit_ceiling`),

for every person in expectation, hence, as the right side is concave, for the mean over people.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.accounting.amounts import Number
from hubbub.attacks.ceilings import hit_ceiling, row_ceiling
from hubbub.attacks.inputs import Flags, Integers, cells, codes, columns_of, same_length, table_shape
from hubbub.errors import ParameterError
from hubbub.mechanisms import LaplaceMechanism
from hubbub.noise import Bits

__all__ = [
    "Linkage",
    "Secrets",
    "Uniqueness",
    "expected_uniqueness",
    "link",
    "secret_counts",
    "secrets_from_counts",
    "uniqueness",
]


def expected_uniqueness(people: int, cells: float) -> float:
    """The expected share of unique people: exp(-(N-1)/K) in the limit; (1 - 1/K)^(N-1) here.

    >>> round(expected_uniqueness(282_000_000 // 30_000, 365.25 * 80 * 2), 2)  # a ZIP code of 9,400 people
    0.85
    """
    if people < 1 or not cells >= 1:
        raise ParameterError(f"people = {people}, cells = {cells} were asked; give at least one of each.")
    return math.exp((people - 1) * math.log1p(-1 / cells)) if cells > 1 else float(people == 1)


@dataclass(frozen=True, eq=False)
class Uniqueness:
    """How many people have a combination of values to themselves.

    sizes: for each person, how many share the combination (the person included).
    """

    columns: tuple[str, ...]
    sizes: Integers

    @property
    def people(self) -> int:
        """N."""
        return len(self.sizes)

    @property
    def occupied(self) -> int:
        """How many combinations occur."""
        return round(float((1 / self.sizes).sum()))

    @property
    def unique(self) -> int:
        """How many people are alone."""
        return int((self.sizes == 1).sum())

    @property
    def success(self) -> float:
        """The share of people who are unique: whoever knows these columns of them can name their row."""
        return self.unique / self.people

    def ceiling(self, epsilon: Number) -> float:
        """Of as many rows that their owners randomised at epsilon, the chance that a row is named."""
        return row_ceiling(self.people, epsilon)

    def plot(self, ax: Any = None) -> Any:
        """The share of people in groups of at most so many."""
        from hubbub import plots

        sizes = np.arange(1, 21)
        share = [float((self.sizes <= s).mean()) for s in sizes]
        title = f"Who shares {', '.join(self.columns)}"
        line = ("", sizes.tolist(), share)
        return plots.curves([line], title=title, xlabel="people in the group, at most", ylabel="share of people", ax=ax)


def uniqueness(table: Mapping[str, Any], columns: Sequence[str]) -> Uniqueness:
    """Counts, for every person, the people who share the values of `columns`. One row per person.

    >>> found = uniqueness({"zip": [1, 1, 2], "sex": ["f", "f", "m"]}, ["zip", "sex"])
    >>> found.unique, found.occupied
    (1, 2)
    """
    cell = cells(columns_of(table, columns))
    return Uniqueness(tuple(columns), np.bincount(cell)[cell])


@dataclass(frozen=True, eq=False)
class Linkage:
    """Rows of a release and the rows of a named list they were linked to.

    rows, names: row numbers in the release and in the list, pairwise. right: where the truth was given, which hold.
    """

    rows: Integers
    names: Integers
    released: int
    right: Flags | None

    @property
    def success(self) -> float:
        """The share of released rows that got the right name, or a name at all where the truth is not known."""
        hits = len(self.rows) if self.right is None else int(self.right.sum())
        return hits / self.released

    @property
    def precision(self) -> float | None:
        """The share of names given that are right; None where the truth is not known or no name was given."""
        return float(self.right.mean()) if self.right is not None and len(self.right) else None

    def ceiling(self, epsilon: Number) -> float:
        """Of as many rows that their owners randomised at epsilon, the largest expected share named rightly."""
        return row_ceiling(self.released, epsilon)

    def plot(self, ax: Any = None) -> Any:
        """The share of rows named beside the ceiling over epsilon."""
        from hubbub import plots

        grid = [i / 10 for i in range(151)]
        lines = [
            ("ceiling for private answers", grid, [self.ceiling(e) for e in grid]),
            ("rows named", grid, [self.success] * len(grid)),
        ]
        return plots.curves(lines, title="Names come back", xlabel="epsilon of a row", ylabel="share of rows", ax=ax)


def link(release: Mapping[str, Any], named: Mapping[str, Any], on: Sequence[str], *, truth: Any = None) -> Linkage:
    """Links rows of a release to rows of a named list where the values of `on` are unique in both.

    truth: for each released row the row of the list that it really belongs to (-1: nobody), to count what is right.

    Raises ParameterError for columns that either side lacks.
    """
    columns_of(release, on), columns_of(named, on)
    n, m = len(release[on[0]]), len(named[on[0]])
    both = [codes(np.concatenate([_objects(release[c]), _objects(named[c])])) for c in on]
    cell = cells(both)
    here, there = cell[:n], cell[n:]
    size = int(cell.max()) + 1
    alone = (np.bincount(here, minlength=size) == 1) & (np.bincount(there, minlength=size) == 1)
    row_of, name_of = np.full(size, -1), np.full(size, -1)
    row_of[here], name_of[there] = np.arange(n), np.arange(m)
    linked = np.flatnonzero(alone)
    rows, names = row_of[linked], name_of[linked]
    if truth is None:
        return Linkage(rows, names, n, None)
    known = np.asarray(truth)
    same_length(release=here, truth=known)
    return Linkage(rows, names, n, known[rows] == names)


def _objects(values: Any) -> Any:
    return np.array(np.asarray(values).tolist(), dtype=object)


@dataclass(frozen=True, eq=False)
class Secrets:
    """A secret guessed for every person from counts by cell and secret value.

    guesses: the guessed value's code for each person. sure: where the whole count of the cell lies on one value.
    right: which guesses hold. absent: which would, had the person's own row been missing.
    """

    guesses: Integers
    sure: Flags
    right: Flags
    absent: Flags

    @property
    def success(self) -> float:
        """The share of people whose secret was guessed rightly."""
        return float(self.right.mean())

    @property
    def certain(self) -> float:
        """The share of people whose secret the counts leave no doubt about, and who have it."""
        return float((self.sure & self.right).mean())

    @property
    def baseline(self) -> float:
        """The share right if each person's own row were missing: what a group says about its members."""
        return float(self.absent.mean())

    def ceiling(self, epsilon: Number, delta: Number = 0) -> float:
        """The largest expected success beside this baseline; epsilon of adding or removing a row."""
        return hit_ceiling(self.baseline, epsilon, delta)

    def plot(self, ax: Any = None) -> Any:
        """The success beside the ceiling over epsilon."""
        from hubbub import plots

        grid = [i / 50 for i in range(201)]
        lines = [
            ("ceiling for private answers", grid, [self.ceiling(e) for e in grid]),
            ("this attack", grid, [self.success] * len(grid)),
            ("without the person's row", grid, [self.baseline] * len(grid)),
        ]
        return plots.curves(lines, title="Secrets guessed from counts", xlabel="epsilon", ylabel="share right", ax=ax)


def secret_counts(table: Mapping[str, Any], columns: Sequence[str], secret: str) -> Integers:
    """The exact counts of every occupied cell of `columns` by value of `secret`: shape (cells, values)."""
    return _counted(*_coded(table, columns, secret))


def secrets_from_counts(
    table: Mapping[str, Any],
    columns: Sequence[str],
    secret: str,
    *,
    epsilon: Number | None = None,
    bits: Bits | None = None,
) -> Secrets:
    """Guesses everybody's secret from the counts of `columns` by `secret`: exact ones, or hubbub's at `epsilon`.

    The counts are a histogram: one row added or removed moves one count by one. Which cells are occupied, and the
    shares of the secrets, the attacker knows beforehand; the shares break ties.
    """
    cell, value = _coded(table, columns, secret)
    exact = _counted(cell, value)
    counts: Any = exact
    if epsilon is not None:
        noise = LaplaceMechanism(sensitivity=1, epsilon=epsilon, cells=exact.size)
        counts = noise.release(exact.ravel(), bits=bits)
    seen = np.asarray(counts, dtype=np.float64).reshape(exact.shape)
    ties = np.bincount(value) / len(value) / 2
    people = np.arange(len(value))
    without = seen[cell]
    without[people, value] -= 1
    guesses = np.argmax(seen + ties, axis=1)[cell]
    absent = np.argmax(without + ties, axis=1)
    return Secrets(guesses, ((seen > 0).sum(axis=1) == 1)[cell], guesses == value, absent == value)


def _coded(table: Mapping[str, Any], columns: Sequence[str], secret: str) -> tuple[Integers, Integers]:
    *known, value = columns_of(table, [*columns, secret])
    if not known:
        raise ParameterError("no columns were named; name what the attacker knows about people.")
    return cells(known), value


def _counted(cell: Integers, value: Integers) -> Integers:
    shape = table_shape(int(cell.max()) + 1, int(value.max()) + 1)
    flat = np.bincount(cell * shape[1] + value, minlength=shape[0] * shape[1])
    return np.asarray(flat.reshape(shape), dtype=np.int64)
