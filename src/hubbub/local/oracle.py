"""What all frequency oracles share: categories, clients, tallies.

A *frequency oracle* asks everyone the same question with k declared answers. The client randomises the answer of its
own person (`privatize`), the server adds reports up (`aggregate`) and undoes the bias (`estimate`).

- An oracle is a `randomizer`, which takes places 0 .. k-1 and makes one report of each, with names for the places
  and with tallies. Each protocol is a class of randomizers, and an oracle that is built with it.
- Privacy is that of one report (`randomizer`): its law is all that a proof or an audit reads.
- A tally is a count of supporters per category, so tallies add in any order, and nothing else is kept.
- A report that no client can send is counted as dropped. One report that a *lying* client may send moves the estimate
  of one category's share by at most `influence` / n, and m liars by m times that: nobody can tell them from others.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from hubbub.accounting.amounts import Number, amount
from hubbub.errors import ParameterError, what_was_given
from hubbub.local.draws import Array, Flags, Integers
from hubbub.local.estimate import Estimate
from hubbub.local.randomizer import CategoryRandomizer, LocalOracle
from hubbub.noise import Bits

__all__ = [
    "MAX_CATEGORIES",
    "MAX_EPSILON",
    "FrequencyOracle",
    "Tally",
    "chunks",
    "epsilon_above_zero",
    "integer_reports",
    "named_categories",
    "valid_rows",
    "whole",
]

MAX_CATEGORIES = 1 << 24
MIN_EPSILON = Fraction(1, 10**9)
MAX_EPSILON = 500
CHUNK = 1 << 16

Categories = int | Sequence[Hashable]


def epsilon_above_zero(value: Number, name: str = "epsilon") -> Fraction:
    """A budget amount as written, from 1e-9 (below, reports say nothing) to 500, so that e^epsilon is a float.

    Raises ParameterError for any other.
    """
    epsilon = amount(value, name)
    if epsilon < MIN_EPSILON:
        least = float(MIN_EPSILON)
        raise ParameterError(f"{name} below {least:g} was asked, and such reports say nothing. Give a larger {name}.")
    if epsilon > MAX_EPSILON:
        raise ParameterError(f"{name} above {MAX_EPSILON} was asked, which hides nothing. Give a smaller {name}.")
    return epsilon


def whole(value: Any, name: str, least: int, most: int) -> int:
    """A whole number between two others."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise ParameterError(f"{name} = {what_was_given(value)} was asked; give a whole number from {least} to {most}.")
    return int(value)


def named_categories(categories: Categories, most: int = MAX_CATEGORIES) -> tuple[int, tuple[Hashable, ...] | None]:
    """How many categories there are, 2 to `most`, and their labels, or None for 0 .. k-1."""
    if isinstance(categories, int | np.integer):
        return whole(categories, "categories", 2, most), None
    labels = tuple(categories)
    if isinstance(categories, str) or len(set(labels)) != len(labels) or not 2 <= len(labels) <= most:
        raise ParameterError(
            f"categories has {len(labels)} entries; give a number of categories, or 2 to {most} different labels."
        )
    return len(labels), labels


def integer_reports(reports: Any, below: int) -> tuple[Array, int]:
    """The integers 0 .. below-1 among reports, and how many others there were. Never raises."""
    array = reports if isinstance(reports, np.ndarray) else _array(reports)
    if array.ndim != 1 or array.dtype.kind not in "iuO":
        return np.empty(0, np.int64), len(array) if array.ndim else 1
    if array.dtype == object:
        good = [v for v in array.tolist() if isinstance(v, int) and not isinstance(v, bool) and 0 <= v < below]
        return np.array(good, np.int64), array.size - len(good)
    if array.dtype.kind == "u" and below > np.iinfo(array.dtype).max:
        return array, 0
    valid = (array >= 0) & (array < below)
    kept = array if bool(valid.all()) else array[valid]
    return kept, array.size - kept.size


def valid_rows(reports: Any, kind: np.dtype[Any]) -> tuple[Array, int]:
    """The records of one structured type among reports, and how many others there were. Never raises."""
    if isinstance(reports, np.ndarray | np.void) and reports.dtype == kind and reports.ndim <= 1:
        return np.atleast_1d(np.asarray(reports)), 0
    rows = list(reports) if isinstance(reports, list | tuple) or np.ndim(reports) else [reports]
    good = [r for r in rows if isinstance(r, np.void) and r.dtype == kind]
    return np.array(good, kind), len(rows) - len(good)


def _array(reports: Any) -> Array:
    """An array of whatever came; one object per report where numpy cannot make sense of it."""
    items = list(reports) if isinstance(reports, list | tuple) else [reports]
    out = np.empty(len(items), object)
    for i, item in enumerate(items):
        out[i] = item.item() if isinstance(item, np.generic) else item
    return out


@dataclass(frozen=True, repr=False)
class FrequencyOracle(LocalOracle):
    """The base of all frequency oracles: a client for places 0 .. k-1, with names for them.

    randomizer: the client, whose law it states exactly. labels: the categories' names, or None for 0 .. k-1.
    """

    randomizer: CategoryRandomizer
    labels: tuple[Hashable, ...] | None = None

    name: ClassVar[str]

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}({repr(self.randomizer).partition('(')[2]}"

    @property
    def size(self) -> int:
        """k, the number of categories."""
        return self.randomizer.size

    @property
    def categories(self) -> Sequence[Hashable]:
        """The labels, in the order of estimates."""
        return range(self.size) if self.labels is None else self.labels

    @property
    def arguments(self) -> dict[str, object]:
        """What the constructor was given, as plain values."""
        client = self.randomizer
        own = {f.name: getattr(client, f.name) for f in fields(client) if f.name not in ("epsilon", "size")}
        given = {"epsilon": client.epsilon, "categories": self.size if self.labels is None else list(self.labels)} | own
        return {name: str(value) if isinstance(value, Fraction) else value for name, value in given.items()}

    @property
    def variance_factor(self) -> float:
        """n times the variance of the share of a category that nobody is in: A = q(1-q)/(p-q)^2."""
        p, q = self.randomizer.p, self.randomizer.q
        return float(q * (1 - q) / (p - q) ** 2)

    @property
    def influence(self) -> float:
        """How far one lying report moves the estimated *count* of one category, at most: 1/(p-q)."""
        return float(1 / (self.randomizer.p - self.randomizer.q))

    def variance(self, n: int, share: float = 0.0) -> float:
        """The exact variance of an estimated share, over the coins of n clients of whom `share` are in it."""
        p, q = self.randomizer.p, self.randomizer.q
        return (self.variance_factor + float((1 - p - q) / (p - q)) * share) / n

    def indexes(self, values: Any, unknown: Hashable | None = None) -> Array:
        """Places of values among the categories. Values that are none of them count as `unknown`.

        Raises ParameterError, which names no value, if there are such values and `unknown` is not given.
        """
        if self.labels is None:
            places, good = _places_of_integers(_plain(values), self.size)
        else:
            table = {label: i for i, label in enumerate(self.labels)}
            items = values.tolist() if isinstance(values, np.ndarray) else list(values)
            places = np.array([_place(table, v) for v in items], np.int64)
            good = places >= 0
        if bool(good.all()):
            return places
        if unknown is None or unknown not in self.categories:
            raise ParameterError(
                "some value is not one of the declared categories. Declare it, or say which category such values count "
                "as: privatize(values, unknown=CATEGORY)."
            )
        return np.where(good, places, list(self.categories).index(unknown))

    def privatize(self, values: Any, *, unknown: Hashable | None = None, bits: Bits | None = None) -> Array:
        """The client: reports for one value (a 0-dimensional or (width,) array) or for many, shape (n,) or (n, width).

        Values are labels, or integers 0 .. k-1 where no labels were given. Raises ParameterError for a value that is
        no category, unless `unknown` says which category it counts as.
        """
        alone = isinstance(values, str | bytes) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) == 0
        reports = self.randomizer._client(self.indexes([values] if alone else values, unknown), bits)
        return reports[0] if alone else reports

    def empty(self) -> Tally:
        """A tally of no reports."""
        return Tally(self, 0, np.zeros(self.size, np.int64), 0)

    def aggregate(self, reports: Any) -> Tally:
        """The server: count reports. What no client can have sent is dropped and counted; nothing raises."""
        valid, dropped = self.randomizer._valid(reports)
        return Tally(self, len(valid), self.randomizer._supporters(valid), dropped)

    def estimate(self, reports: Any) -> Estimate:
        """`aggregate` and `Tally.estimate` at once."""
        return self.aggregate(reports).estimate()

    def _estimate(self, tally: Tally) -> Estimate:
        exact_p, exact_q = self.randomizer.p, self.randomizer.q
        p, q, n = float(exact_p), float(exact_q), max(tally.n, 1)
        gap = float(exact_p - exact_q)
        shares = (tally.counts / n - q) / gap if tally.n else np.zeros(self.size)
        base, slope = q * (1 - q) / gap**2, (1 - p - q) / gap
        variance = (base + slope * np.clip(shares, 0, 1)) / n
        return Estimate(self.categories, tally.n, tally.dropped, shares, variance, base, slope)


def _plain(values: Any) -> Array:
    try:
        return np.asarray(values)
    except ValueError:  # lists within lists
        return np.empty(len(values), object)


def _place(table: dict[Hashable, int], value: Any) -> int:
    try:
        return table.get(value, -1)
    except TypeError:  # a value that cannot be hashed is not a label
        return -1


def _places_of_integers(values: Array, size: int) -> tuple[Array, Flags]:
    if values.dtype.kind in "biu":
        values = values.astype(np.int8) if values.dtype.kind == "b" else values
        good = (values >= 0) & (values < size)
        return values, good
    if values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            good = (values >= 0) & (values < size) & (values == np.floor(values))
        return np.where(good, values, 0).astype(np.int64), good
    return np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_)


@dataclass(frozen=True, eq=False)
class Tally:
    """Reports added up: `counts[i]` of the n valid reports support category i. Tallies of one oracle add.

    >>> from hubbub.local import DirectEncoding
    >>> oracle = DirectEncoding(1, 4)
    >>> total = oracle.aggregate(np.array([0, 1, 2])) + oracle.aggregate(np.array([3, 9]))
    >>> total.n, total.dropped, total.counts
    (4, 1, array([1, 1, 1, 1]))
    """

    oracle: FrequencyOracle
    n: int
    counts: Integers
    dropped: int

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally) or other.oracle != self.oracle:
            raise ParameterError("tallies of different oracles were added; add those of one oracle.")
        return Tally(self.oracle, self.n + other.n, self.counts + other.counts, self.dropped + other.dropped)

    def __radd__(self, other: object) -> Self:
        if other == 0:  # so that sum() works
            return self
        return NotImplemented

    def estimate(self) -> Estimate:
        """Unbiased shares with their variance."""
        return self.oracle._estimate(self)


def chunks(n: int, rows: int) -> Iterator[slice]:
    """Slices of at most `rows` rows."""
    for start in range(0, n, rows):
        yield slice(start, min(n, start + rows))
