"""De-anonymising sparse ratings: a few public ratings find a person's whole row (`docs/theorems.md`, A2).

Narayanan, Shmatikov 2008 ("Robust de-anonymization of large sparse datasets"), section 4, algorithm Scoreboard-RH.
An attacker knows some items a target rated, with approximate ratings and days. Each row r' of the release is scored,

    score(r') = sum over known items i that r' holds of w_i (e^(-|rating - rating'| / 1.5) + e^(-|day - day'| / 30)),
    w_i = 1 / ln |supp(i)|,  |supp(i)| = how many rows hold item i (rare items tell most),

and the best row is taken if it stands out: (best - second best) / (standard deviation of the scores) >= 1.5
(*eccentricity*), else nobody. Where an item is held by one or two rows, ln 2 stands for ln |supp(i)|, which would be 0
or less than that. Netflix: 8 ratings, 2 of them wrong, days within two weeks, name 99 % of the records.

**Ceiling.** Differential privacy has no rows about people. Rows that each person randomised alone (local DP at epsilon)
can be published; the target's among n is then named with probability at most e^(2 epsilon)/(n - 1 + e^(2 epsilon)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hubbub.accounting.amounts import Number, amount
from hubbub.attacks.ceilings import row_ceiling
from hubbub.attacks.inputs import Flags, Floats, Integers, codes, numbers, same_length
from hubbub.errors import ParameterError
from hubbub.mechanisms import RandomizedResponse
from hubbub.noise import Bits

__all__ = ["Deanonymised", "Match", "RatingTable", "deanonymise", "randomised_rows"]

RATING_SCALE, DAY_SCALE = 1.5, 30.0


@dataclass(frozen=True, eq=False)
class RatingTable:
    """Entries (user, item, rating, day), one for each rating; ratings and days are optional.

    users: pseudonyms; items: any labels. Raises ParameterError for arrays of different lengths.
    """

    users: Any
    items: Any
    ratings: Any = None
    days: Any = None

    def __post_init__(self) -> None:
        given = {"users": self.users, "items": self.items, "ratings": self.ratings, "days": self.days}
        if same_length(**{k: v for k, v in given.items() if v is not None}) == 0:
            raise ParameterError("there are no ratings; give at least one.")

    @cached_property
    def rows(self) -> tuple[Integers, int]:
        """Each entry's row (one per user), and how many rows there are."""
        row = codes(self.users)
        return row, int(row.max()) + 1

    @cached_property
    def by_item(self) -> dict[Any, Integers]:
        """The entries of every item."""
        item = codes(self.items)
        order = np.argsort(item, kind="stable")
        starts = np.searchsorted(item[order], np.arange(int(item.max()) + 2))
        labels = np.asarray(self.items, dtype=object)
        return {labels[order[a]]: order[a:b] for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)}

    @cached_property
    def values(self) -> tuple[Floats | None, Floats | None]:
        """Ratings and days as floats."""
        return (
            None if self.ratings is None else numbers(self.ratings, "ratings"),
            None if self.days is None else numbers(self.days, "days"),
        )


@dataclass(frozen=True)
class Match:
    """The best row for a target. row: its number; None where nothing stands out. best: whether or not it stands out."""

    row: int | None
    best: int
    score: float
    eccentricity: float


def _match(table: RatingTable, known: Sequence[tuple[Any, ...]], eccentricity: float) -> Match:
    row, n = table.rows
    scores = np.zeros(n)
    for item, *about in known:
        entries = table.by_item.get(item)
        if entries is None:
            continue
        near = np.zeros(len(entries))
        for values, value, scale in zip(table.values, [*about, None, None], (RATING_SCALE, DAY_SCALE), strict=False):
            near += 0.5 if values is None or value is None else np.exp(-np.abs(values[entries] - value) / scale)
        np.add.at(scores, row[entries], near / np.log(max(2, len(entries))))
    best = int(np.argmax(scores))
    second = float(np.max(np.delete(scores, best), initial=0.0))
    spread = float(scores.std())
    lead = (float(scores[best]) - second) / spread if spread > 0 else 0.0
    return Match(best if lead >= eccentricity else None, best, float(scores[best]), lead)


@dataclass(frozen=True, eq=False)
class Deanonymised:
    """Targets and the rows they were taken for.

    matches: one per target. right: where the best row is the target's. rows: how many rows there are.
    """

    matches: tuple[Match, ...]
    right: Flags
    rows: int

    @property
    def success(self) -> float:
        """The share of targets whose row was named, and rightly (it stood out)."""
        named = np.array([m.row is not None for m in self.matches])
        return float((named & self.right).mean())

    @property
    def best_guess(self) -> float:
        """The share of targets whose best row is theirs, whether or not it stands out."""
        return float(self.right.mean())

    @property
    def wrong(self) -> float:
        """The share of targets that were given somebody else's row."""
        named = np.array([m.row is not None for m in self.matches])
        return float((named & ~self.right).mean())

    def ceiling(self, epsilon: Number) -> float:
        """For rows randomised at `epsilon` each: e^(2 epsilon)/(rows - 1 + e^(2 epsilon)), for `best_guess` as well."""
        return row_ceiling(self.rows, epsilon)

    def plot(self, ax: Any = None) -> Any:
        """The eccentricity of the matches, in order."""
        from hubbub import plots

        lead = sorted((m.eccentricity for m in self.matches), reverse=True)
        line = ("", [(i + 1) / len(lead) for i in range(len(lead))], lead)
        title = "How far the best row stands out"
        return plots.curves([line], title=title, xlabel="share of targets", ylabel="eccentricity", ax=ax)


def deanonymise(
    table: RatingTable, known: Sequence[Sequence[tuple[Any, ...]]], truth: Any, *, eccentricity: float = 1.5
) -> Deanonymised:
    """Finds the rows of targets from a few of their ratings.

    known: for each target its known entries (item,), (item, rating) or (item, rating, day); None for what is not
    known. truth: each target's user label in the table. A target without one single common item matches nobody.

    >>> table = RatingTable(["u", "u", "v", "w"], ["rare", "hit", "hit", "hit"])
    >>> deanonymise(table, [[("rare",), ("hit",)]], ["u"]).best_guess
    1.0
    """
    same_length(known=known, truth=truth)
    if not len(known):
        raise ParameterError("there is no target; give the known ratings of at least one.")
    labels = dict(zip(np.asarray(table.users, dtype=object).tolist(), table.rows[0].tolist(), strict=True))
    matches = tuple(_match(table, entries, eccentricity) for entries in known)
    right = [m.best == labels.get(user) and m.score > 0 for m, user in zip(matches, list(truth), strict=True)]
    return Deanonymised(matches, np.array(right, dtype=bool), table.rows[1])


def randomised_rows(table: RatingTable, epsilon: Number, *, bits: Bits | None = None) -> RatingTable:
    """The table as local differential privacy lets it be published: who holds which item, each row randomised.

    Every user answers, for each of the d items, "do you hold it?" by randomised response at epsilon/d; ratings and
    days are left out. A row is epsilon-private against any other row.
    """
    row, n = table.rows
    items = list(table.by_item)
    held = np.zeros((n, len(items)), bool)
    for j, item in enumerate(items):
        held[row[table.by_item[item]], j] = True
    response = RandomizedResponse(epsilon=amount(epsilon, "epsilon") / len(items))
    said = np.asarray(response.release(held.ravel(), bits=bits), dtype=bool).reshape(held.shape)
    # A row must not vanish where somebody says No to everything: it would name those who do not.
    at, which = np.nonzero(said)
    empty = np.flatnonzero(~said.any(axis=1))
    users = np.empty(n, dtype=object)
    users[row] = np.asarray(table.users, dtype=object)
    labels = np.array([*items, None], dtype=object)
    return RatingTable(
        users[np.concatenate([at, empty])], labels[np.concatenate([which, np.full(len(empty), len(items))])]
    )
