"""k-anonymity: what it counts, why it fails in many columns, and why two releases undo it (`docs/theorems.md`, A1).

A table is k-anonymous in its quasi-identifiers when every combination that occurs belongs to at least k rows (Samarati,
Sweeney 1998; Sweeney 2002); it is l-diverse when every such class holds at least l different secrets
(Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam 2007).

**Curse of dimension** (Aggarwal 2005): with d columns of c values and N rows, a row shares its combination with about
(N-1) c^-d others, so as d grows nearly every row is alone and generalising back to k leaves no use. `dimension_curse`
shows k and the share of lone rows as columns are added.

**Intersection** (Ganta, Kasiviswanathan, Smith 2008): who is in two k-anonymous releases has, in each, a class with a
set of possible secrets; the true secret lies in both sets. Where they meet in one value, it is known. k-anonymity does
not compose; differential privacy does: releases of epsilon_1 and epsilon_2 are epsilon_1 + epsilon_2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.accounting.amounts import Number
from hubbub.attacks.ceilings import guess_ceiling, row_ceiling
from hubbub.attacks.inputs import Flags, Integers, cells, codes, columns_of, numbers, same_length, table_shape
from hubbub.errors import ParameterError, what_was_given

__all__ = [
    "Anonymity",
    "Curse",
    "Intersection",
    "dimension_curse",
    "intersect",
    "intersect_counts",
    "k_anonymity",
    "mondrian",
]


@dataclass(frozen=True)
class Anonymity:
    """The anonymity of a table in some columns.

    k: the size of the smallest class. classes: how many there are. l: the least number of different secrets in a class
    (None without a secret). exposed: the share of rows in a class with a single secret: k-anonymous, and known.
    """

    columns: tuple[str, ...]
    k: int
    classes: int
    l: int | None  # noqa: E741 -- the field's letter
    exposed: float | None


def k_anonymity(table: Mapping[str, Any], columns: Sequence[str], secret: str | None = None) -> Anonymity:
    """k, and l where a secret is named, of a table with one row per person.

    >>> k_anonymity({"age": [30, 30, 40, 40], "ill": [1, 1, 0, 1]}, ["age"], "ill")
    Anonymity(columns=('age',), k=2, classes=2, l=1, exposed=0.5)
    """
    cell = cells(columns_of(table, columns))
    sizes = np.bincount(cell)
    if secret is None:
        return Anonymity(tuple(columns), int(sizes.min()), len(sizes), None, None)
    value = columns_of(table, [secret])[0]
    same_length(columns=cell, secret=value)
    kinds = np.bincount(np.unique(np.stack([cell, value]), axis=1)[0])
    return Anonymity(tuple(columns), int(sizes.min()), len(sizes), int(kinds.min()), float((kinds[cell] == 1).mean()))


@dataclass(frozen=True)
class Curse:
    """k and the share of lone rows for the first 1, 2, ... columns of so many people."""

    people: int
    columns: tuple[str, ...]
    k: tuple[int, ...]
    alone: tuple[float, ...]

    @property
    def success(self) -> float:
        """The share of rows that are alone in all columns."""
        return self.alone[-1]

    def ceiling(self, epsilon: Number) -> float:
        """Of as many rows that their owners randomised at epsilon, the chance that a row is named."""
        return row_ceiling(self.people, epsilon)

    def plot(self, ax: Any = None) -> Any:
        """The share of lone rows over the number of columns."""
        from hubbub import plots

        line = ("", list(range(1, len(self.columns) + 1)), list(self.alone))
        title = "The curse of dimension"
        return plots.curves([line], title=title, xlabel="columns known", ylabel="share of rows alone", ax=ax)


def dimension_curse(table: Mapping[str, Any], columns: Sequence[str]) -> Curse:
    """How k falls, and how many rows are alone, as columns are added in the order given."""
    arrays = columns_of(table, columns)
    cell, k, alone = np.zeros(len(arrays[0]), np.int64), [], []
    for column in arrays:
        cell = cells([cell, column])
        sizes = np.bincount(cell)
        k.append(int(sizes.min()))
        alone.append(float((sizes[cell] == 1).mean()))
    return Curse(len(cell), tuple(columns), tuple(k), tuple(alone))


def mondrian(points: Any, k: int) -> Integers:
    """Makes numbers k-anonymous: a class for every row, each of at least k rows (LeFevre, DeWitt, Ramakrishnan 2006).

    points: shape (rows, columns). The widest column (of its whole range) is cut at its median while both sides keep k
    rows. The classes are boxes; which box a point lies in is what such a release publishes.
    """
    array = numbers(points, "points", dimensions=2)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= len(array):
        raise ParameterError(
            f"k = {what_was_given(k)} was asked of {len(array)} rows; give a whole number from 1 to that."
        )
    span = np.maximum(np.ptp(array, axis=0), 1e-300)
    classes = np.empty(len(array), np.int64)
    todo, boxes = [np.arange(len(array))], 0
    while todo:
        rows = todo.pop()
        parts = _cut(array, rows, span, k)
        if parts is None:
            classes[rows] = boxes
            boxes += 1
        else:
            todo += parts
    return classes


def _cut(array: Any, rows: Integers, span: Any, k: int) -> list[Integers] | None:
    for column in np.argsort(-np.ptp(array[rows], axis=0) / span, kind="stable"):
        values = array[rows, column]
        left = values <= np.median(values)
        if k <= int(left.sum()) <= len(rows) - k:
            return [rows[left], rows[~left]]
    return None


@dataclass(frozen=True, eq=False)
class Intersection:
    """What several releases together say of each target's secret.

    candidates: how many secrets remain possible for each target. right: where the guess (the likeliest of those) holds.
    values: how many secrets there are.
    """

    candidates: Integers
    right: Flags
    values: int

    @property
    def pinned(self) -> float:
        """The share of targets with one secret left."""
        return float((self.candidates == 1).mean())

    @property
    def success(self) -> float:
        """The share of targets whose secret was guessed rightly."""
        return float(self.right.mean())

    def ceiling(self, epsilon: Number, delta: Number = 0) -> float:
        """The largest expected success for secrets that are uniform and independent of everything else.

        epsilon: of all releases together, between two secrets of a person (replace).
        """
        return guess_ceiling(1 / self.values, epsilon, delta)

    def plot(self, ax: Any = None) -> Any:
        """The share of targets with at most so many secrets left."""
        from hubbub import plots

        most = list(range(1, self.values + 1))
        line = ("", most, [float((self.candidates <= c).mean()) for c in most])
        title = "What several releases leave open"
        return plots.curves([line], title=title, xlabel="secrets left, at most", ylabel="share of targets", ax=ax)


def intersect(releases: Sequence[tuple[Any, Any]], targets: Sequence[Any], truth: Any) -> Intersection:
    """Intersects the secrets of the targets' classes over several releases.

    releases: for each, the class and the secret of every released row, as two arrays. targets: for each release, the
    class that each target falls in. truth: each target's secret, to count what is right.

    >>> a = ([0, 0, 1, 1], ["flu", "HIV", "flu", "flu"])
    >>> b = ([0, 0, 1, 1], ["HIV", "cold", "flu", "cold"])
    >>> found = intersect([a, b], [[0], [0]], ["HIV"])
    >>> found.candidates.tolist(), found.success
    ([1], 1.0)
    """
    secrets = codes(np.concatenate([np.array(list(s), dtype=object) for _, s in releases] + [_list(truth)]))
    truth_codes = secrets[-len(truth) :]
    counts, at = [], 0
    for classes, rows in releases:
        counts.append(_histogram(np.asarray(classes), secrets[at : at + len(rows)], int(secrets.max()) + 1))
        at += len(rows)
    return intersect_counts(counts, targets, truth_codes)


def intersect_counts(releases: Sequence[Any], targets: Sequence[Any], truth: Any) -> Intersection:
    """The same from counts, exact or noisy: for each release an array of shape (classes, secrets).

    A secret is a candidate while its count is above 0 in every release; the guess has the largest product of counts
    among the candidates (noisy counts below 1/2 count as 1/2, so that a draw of noise rules nothing out for good).
    """
    known = np.asarray(truth)
    same_length(truth=known, **{f"targets_{i}": t for i, t in enumerate(targets)})
    if not releases or len(releases) != len(targets):
        raise ParameterError(f"{len(releases)} releases, classes in {len(targets)} were given; give one for each.")
    possible = np.ones((len(known), np.asarray(releases[0]).shape[1]), bool)
    weight = np.zeros(possible.shape)
    for counts, classes in zip(releases, targets, strict=True):
        of_target = numbers(counts, "counts", dimensions=2)[np.asarray(classes, dtype=np.int64)]
        possible &= of_target > 0
        weight += np.log(np.maximum(of_target, 0.5))
    # Where noise left no candidate, the heaviest of all secrets is guessed.
    guess = np.argmax(np.where(possible, weight + 1e6, weight), axis=1)
    return Intersection(possible.sum(axis=1), guess == known, possible.shape[1])


def _histogram(classes: Integers, secrets: Integers, values: int) -> Integers:
    same_length(classes=classes, secrets=secrets)
    shape = table_shape(int(classes.max()) + 1, values)
    return np.asarray(np.bincount(classes * values + secrets, minlength=shape[0] * values).reshape(shape))


def _list(values: Any) -> Any:
    return np.array(list(values), dtype=object)
