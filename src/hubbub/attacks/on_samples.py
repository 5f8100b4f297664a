"""Attacks on a table of one's own that work on a sample: ratings, membership, reconstruction, inversion, leaderboard.

Who is attacked, which subsets are asked and which classifiers are submitted is drawn from `hubbub.noise`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hubbub.accounting.amounts import Number, count
from hubbub.attacks.ceilings import guess_ceiling
from hubbub.attacks.inputs import Flags, Integers, chosen, codes, columns_of, fair, table_shape
from hubbub.attacks.inversion import ModelInversion, fit_linear, invert_model
from hubbub.attacks.membership import find_members
from hubbub.attacks.overfitting import Ladder, overfit_leaderboard, private_board
from hubbub.attacks.ratings import RatingTable, deanonymise, randomised_rows
from hubbub.attacks.reconstruction import contingency_queries, random_subsets, reconstruct
from hubbub.attacks.report import Finding, Report, balanced, column, has_value
from hubbub.errors import ParameterError
from hubbub.mechanisms import LaplaceMechanism
from hubbub.noise import Bits

__all__ = ["inversion", "leaderboard", "membership", "ratings", "reconstruction"]

_MOST_ENTRIES = 20_000_000
_OUTCOME = 3
_MODELS = 20
_MOST_FEATURES = 400
_MOST_PEOPLE = 1000


def ratings(
    table: Mapping[str, Any],
    user: str,
    item: str,
    *,
    rating: str | None = None,
    day: str | None = None,
    known: int = 8,
    targets: int = 100,
    epsilon: Number,
    bits: Bits | None = None,
) -> Report:
    """Names rows of random users from `known` of their items; private rows are randomised by their owners."""
    full = RatingTable(
        column(table, user),
        column(table, item),
        None if rating is None else column(table, rating),
        None if day is None else _days(column(table, day)),
    )
    about, names = _known_entries(full, count(known, "known"), count(targets, "targets"), bits)
    n = full.rows[1]
    exact = deanonymise(full, about, names)
    popular = _popular(full, n)
    kept = RatingTable(np.asarray(full.users)[popular], np.asarray(full.items)[popular])
    bare = [[entry[:1] for entry in entries] for entries in about]
    private = deanonymise(randomised_rows(kept, epsilon, bits=bits), bare, names)
    return Report(
        (
            Finding("targets whose row stands out and is theirs", exact.success),
            Finding("targets given somebody else's row", exact.wrong),
            Finding("targets whose best row is theirs", exact.best_guess, private.best_guess, private.ceiling(epsilon)),
        ),
        (
            f"{n:,} users, {len(full.by_item):,} items; {len(names):,} targets, up to {known} known entries each.",
            "Private rows: who holds which item, each row randomised by its owner at epsilon.",
        ),
        exact,
    )


def _known_entries(table: RatingTable, known: int, targets: int, bits: Bits | None) -> tuple[list[Any], list[Any]]:
    """For each of random users up to `known` random entries of theirs, and their labels."""
    row, n = table.rows
    order = np.argsort(row, kind="stable")
    starts = np.searchsorted(row[order], np.arange(n + 1))
    about, names = [], []
    for target in chosen(n, min(targets, n), bits).tolist():
        mine = order[starts[target] : starts[target + 1]]
        some = mine[chosen(len(mine), min(known, len(mine)), bits)].tolist()
        about.append([(table.items[i], *(None if v is None else v[i] for v in table.values)) for i in some])
        names.append(table.users[some[0]])
    return about, names


def _popular(table: RatingTable, users: int) -> Any:
    """Entries of the items that fit into memory as a users x items table, most popular first."""
    most = max(1, _MOST_ENTRIES // users)
    entries = sorted(table.by_item.values(), key=len, reverse=True)[:most]
    return np.sort(np.concatenate(entries))


def _days(values: Any) -> Any:
    array = np.asarray(values)
    if array.dtype.kind == "M":
        return array.astype("datetime64[D]").astype(np.int64)
    if array.dtype.kind == "O" and hasattr(array[0], "toordinal"):
        return np.array([d.toordinal() for d in array])
    return array


def membership(
    table: Mapping[str, Any],
    columns: Sequence[str],
    *,
    members: int = 100,
    epsilon: Number,
    bits: Bits | None = None,
) -> Report:
    """Who of the file is in a random group, from the group's frequencies of every value of `columns`."""
    coded = columns_of(table, columns)
    table_shape(len(coded[0]), sum(int(c.max()) + 1 for c in coded))
    cells = np.concatenate([c[:, None] == np.arange(int(c.max()) + 1) for c in coded], axis=1).astype(np.int64)
    n = len(cells)
    if not 1 <= members < n:
        raise ParameterError(f"members = {members} was asked of {n} rows; give fewer than there are.")
    share = cells.mean(axis=0)
    cells, share = cells[:, (share > 0) & (share < 1)], share[(share > 0) & (share < 1)]
    if not len(share):
        raise ParameterError("every column has one value only; name columns in which people differ.")
    inside = np.zeros(n, bool)
    inside[chosen(n, members, bits)] = True
    counts = cells[inside].sum(axis=0)
    noise = LaplaceMechanism(sensitivity=2 * len(columns), epsilon=epsilon, cells=len(counts))
    exact = find_members(cells, counts / members, share, members=inside)
    private = find_members(cells, noise.release(counts, bits=bits) / members, share, members=inside)
    return Report(
        (
            Finding(
                "members found, when 1 in 10 non-members is wrongly accused",
                _hits(exact, "0.1"),
                _hits(private, "0.1"),
                private.hit_ceiling("0.1", epsilon),
            ),
            Finding(
                "best gap: members found minus non-members wrongly accused",
                exact.success,
                private.success,
                private.ceiling(epsilon),
            ),
        ),
        (
            f"A group of {members:,} of {n:,} people; {len(share):,} frequencies of {len(columns)} columns.",
            "Epsilon for replacing a person, as the group's size is known: two counts of each column change.",
            "The best advantage takes the best of all thresholds in hindsight, which flatters in small groups.",
        ),
        exact,
    )


def _hits(roc: Any, rate: str) -> float:
    """The true positives at the threshold that says "in" of that share of others (columns need not be independent)."""
    hits, alarms = roc.curve
    return float(hits[np.searchsorted(alarms, float(rate), side="right") - 1])


def reconstruction(
    table: Mapping[str, Any],
    secret: str,
    value: str | None = None,
    *,
    columns: Sequence[str] = (),
    people: int = 100,
    epsilon: Number,
    bits: Bits | None = None,
) -> Report:
    """The secret bits of random people, from random subset counts (four a person), or from 2-way tables of columns."""
    truth = has_value(table, secret, value).astype(np.int64)
    if not 2 <= people <= _MOST_PEOPLE:
        raise ParameterError(f"people = {people} was asked; give 2 to {_MOST_PEOPLE:,}.")
    rows = chosen(len(truth), min(people, len(truth)), bits)
    truth, n = truth[rows], len(rows)
    balanced(truth == 1)
    if columns:
        queries = contingency_queries([c[rows] for c in columns_of(table, columns)], t=min(2, len(columns)))
        asked = f"all {len(queries):,} occupied cells of the 2-way tables of {', '.join(columns)}"
    else:
        queries = random_subsets(4 * n, n, bits=bits)
        asked = f"{len(queries):,} random subsets"
    answers = queries @ truth
    exact = reconstruct(queries, answers, truth=truth)
    noise = LaplaceMechanism(sensitivity=int(queries.sum(axis=0).max()), epsilon=epsilon, cells=len(answers))
    private = reconstruct(queries, noise.release(answers, bits=bits), truth=truth)
    common = max(float(truth.mean()), 1 - float(truth.mean()))
    ceiling = guess_ceiling(common, epsilon)
    return Report(
        (
            Finding(f"{secret}: right, by linear programming", exact.success, private.success, ceiling),
            Finding("a blind guess of the commoner answer", common, common),
        ),
        (f"{n:,} people; how many of them have it in {asked}. All private counts together cost epsilon.",),
        exact,
    )


def inversion(
    table: Mapping[str, Any],
    columns: Sequence[str],
    secret: str,
    outcome: str,
    value: str | None = None,
    *,
    members: int | None = None,
    epsilon: Number,
    bits: Bits | None = None,
) -> Report:
    """The secret of people a linear model was trained on, from the model, their outcome and their other columns.

    Features are coded as -1 and 1 (every value of every column against the rest), the outcome as -3 .. 3 by its rank.
    members: how many are trained on; by default half as many as there are features, so that the exact model fits them
    all: it has more weights than people.
    """
    features = _features(columns_of(table, columns), has_value(table, secret, value))
    n = len(features)
    trained = max(2, min(features.shape[1], n) // 2) if members is None else members
    if not 2 <= trained <= n // 2:
        raise ParameterError(f"members = {trained} was asked of {n} rows; give 2 to half of them.")
    outcomes = _ranks(column(table, outcome))
    inside = np.arange(2 * trained) < trained
    inversions: dict[bool, list[ModelInversion]] = {False: [], True: []}
    for _ in range(_MODELS):
        people = chosen(n, 2 * trained, bits)
        x, y = features[people], outcomes[people]
        for is_private, results in inversions.items():
            model = (
                fit_linear(x[inside], y[inside], epsilon=epsilon, bound=_OUTCOME, bits=bits)
                if is_private
                else fit_linear(x[inside], y[inside])
            )
            results.append(invert_model(model, x, y, position=x.shape[1] - 1, values=[-1, 1], members=inside))
    exact, private = _together(inversions[False]), _together(inversions[True])
    return Report(
        (
            Finding("right for people the model was trained on", exact.success, private.success),
            Finding("advantage over people it never saw", exact.advantage, private.advantage, private.ceiling(epsilon)),
        ),
        (
            f"{_MODELS} models, each with {trained:,} people trained on and {trained:,} others; {x.shape[1]} features.",
            "Each private model costs epsilon, for replacing a person.",
        ),
        exact,
    )


def _features(columns: Sequence[Integers], secret: Flags) -> Integers:
    """Every value of every column, and last the secret, as -1 and 1."""
    width = sum(int(c.max()) + 1 for c in columns)
    if width > _MOST_FEATURES:
        raise ParameterError(f"the columns have {width:,} values in all; name columns with at most {_MOST_FEATURES}.")
    coded = [c[:, None] == np.arange(int(c.max()) + 1) for c in columns]
    return np.where(np.concatenate([*coded, secret[:, None]], axis=1), 1, -1).astype(np.int64)


def _together(parts: Sequence[ModelInversion]) -> ModelInversion:
    """Several attacks as one."""
    members = [p.members for p in parts if p.members is not None]
    return ModelInversion(
        np.concatenate([p.guesses for p in parts]),
        np.concatenate([p.right for p in parts]),
        np.concatenate(members),
    )


def _ranks(values: Any) -> Integers:
    """Seven classes of about equal size by rank, as -3 .. 3; ties stay together."""
    code = codes(np.asarray(values))
    below = np.concatenate([[0], np.cumsum(np.bincount(code))])[code]
    return np.asarray(np.minimum(7 * below // len(code), 6) - _OUTCOME)


def leaderboard(
    table: Mapping[str, Any],
    label: str,
    value: str | None = None,
    *,
    submissions: int = 1000,
    epsilon: Number,
    bits: Bits | None = None,
) -> Report:
    """How far random submissions climb on a leaderboard whose secret labels are this column."""
    # Random submissions know nothing of the labels. Turning each label round by a coin makes a constant answer useless,
    # so that what is left above 1/2 comes from the scores.
    labels = has_value(table, label, value) ^ (fair((len(table[label]),), bits) == 1)
    exact = overfit_leaderboard(labels, submissions, bits=bits)
    ladder = overfit_leaderboard(labels, submissions, board=Ladder(), bits=bits)
    board = private_board(len(labels), submissions, epsilon, bits=bits)
    private = overfit_leaderboard(labels, submissions, board=board, bits=bits)
    ceiling = private.ceiling(epsilon)
    return Report(
        (
            Finding("overstatement of a vote of random submissions", exact.success, private.success, ceiling),
            Finding("the same on a Ladder", ladder.success),
            Finding("in theory, with exact scores", exact.predicted - 0.5),
        ),
        (f"{submissions:,} submissions against {len(labels):,} labels. All private scores together cost epsilon.",),
        exact,
    )
