"""Overfitting a holdout and a leaderboard, and two ways to reuse them (`docs/theorems.md`, D12).

**Holdout.** Labels are coin flips, so no classifier is right more than half the time. An analyst keeps the variables
whose agreement with the label is beyond 1/(2 sqrt n) from 1/2, to the same side, on the training data *and* on the
holdout, takes the k of them that agree most on the training data and lets them vote. The holdout chose, so it flatters:
at n = d = 10,000 and k = 500 it says .63.

**Thresholdout** (Dwork, Feldman, Hardt, Pitassi, Reingold, Roth 2015, "Generalization in adaptive data analysis and
holdout reuse", Figure 1). For a query with the shares a_t on the training data and a_h on the holdout:

    if |a_h - a_t| > T + gamma + eta:  answer a_h + xi, draw gamma anew, and one of B such answers is used up
    else:                              answer a_t
    with gamma ~ Lap(2 sigma), eta ~ Lap(4 sigma), xi ~ Lap(sigma).

A share moves by 1/n when a holdout row is replaced, so each of the B rounds is a sparse vector that stops at the first
Yes, 1/(2 sigma n) for the threshold and as much for the queries, and 1/(sigma n) for the answer: 2B/(sigma n)-DP in
all, and `accounting.generalisation` bounds how far it can mislead. Here everything is counts, and the noise is
discrete Laplace of scale sigma n (and multiples).

**Leaderboard.** k random submissions, each kept or turned round by its score, and a majority vote, are right on the
board's n rows with probability about Phi(sqrt(2k/(pi n))), and half the time elsewhere.

**Ladder** (Blum, Hardt 2015, Algorithms 1 and 2): a score is shown only where it beats the best before by a step,
rounded to the step; else the best is shown again. Without a fixed step, the step is the standard deviation of the
difference between the two submissions' rows, over sqrt n, and scores are rounded to 1/n.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np

from hubbub.accounting.amounts import Number, amount, count, scale as positive
from hubbub.accounting.generalisation import expected_gap
from hubbub.attacks.inputs import Floats, Integers, fair, zeros_ones
from hubbub.errors import QueryError
from hubbub.mechanisms import LaplaceMechanism
from hubbub.mechanisms.slots import Slots
from hubbub.noise import Bits, laplace

__all__ = [
    "HoldoutOverfitting",
    "Ladder",
    "LeaderboardOverfitting",
    "Thresholdout",
    "leaderboard_accuracy",
    "overfit_holdout",
    "overfit_leaderboard",
    "private_board",
]

_COLUMNS = 512


class Thresholdout:
    """A reusable holdout of n rows. threshold: T; noise: sigma; both shares. overflows: B."""

    def __init__(self, n: int, *, threshold: Number, noise: Number, overflows: int, bits: Bits | None = None) -> None:
        self.n = count(n, "n")
        self._threshold, self._noise = amount(threshold, "threshold") * n, amount(noise, "noise") * n
        self._slots = Slots(overflows, "the holdout's overflows are used up; a fresh holdout is needed.")
        self._overflows, self._bits = count(overflows, "overflows"), bits
        self._gamma = laplace(2 * self._noise, bits=bits)

    @property
    def epsilon(self) -> Fraction:
        """What all answers together cost a row of the holdout: 2B/(sigma n)."""
        return 2 * self._overflows / self._noise

    @property
    def left(self) -> int:
        """How many answers may still be taken from the holdout."""
        return self._slots.left

    def ask(self, train: int, holdout: int) -> Fraction:
        """The share of rows that satisfy a predicate, given how many do in training data and holdout (n rows each).

        Raises QueryError once B answers came from the holdout.
        """
        with self._slots.taken():
            apart = abs(int(holdout) - int(train))
            if apart <= self._threshold + self._gamma + laplace(4 * self._noise, bits=self._bits):
                self._slots.put_back()
                return Fraction(int(train), self.n)
            self._gamma = laplace(2 * self._noise, bits=self._bits)
            return Fraction(int(holdout) + laplace(self._noise, bits=self._bits), self.n)


@dataclass(frozen=True, eq=False)
class HoldoutOverfitting:
    """What was said about classifiers that are right half the time.

    selected: how many variables voted. reported: the accuracy that the analyst was told. holdout: the accuracy on the
    holdout itself. epsilon: what the answers cost a row of the holdout; None where they were exact.
    """

    selected: tuple[int, ...]
    reported: Floats
    holdout: Floats
    epsilon: Fraction | None

    @property
    def truth(self) -> float:
        """The accuracy on fresh data: labels are coin flips."""
        return 0.5

    @property
    def success(self) -> float:
        """How far the analyst was misled, at most: the largest |reported - truth|."""
        return float(np.abs(self.reported - self.truth).max())

    def ceiling(self, epsilon: Number, delta: Number = 0) -> float:
        """The largest |expected accuracy on the holdout - truth| of what is chosen from answers at this epsilon."""
        return expected_gap(float(amount(epsilon, "epsilon")), float(amount(delta, "delta")))

    def plot(self, ax: Any = None) -> Any:
        """Reported and true accuracy over the number of variables."""
        from hubbub import plots

        x = list(self.selected)
        lines = [("reported", x, self.reported.tolist()), ("truth", x, [self.truth] * len(x))]
        return plots.curves(lines, title="A reused holdout", xlabel="variables", ylabel="accuracy", ax=ax)


def overfit_holdout(
    *,
    n: int = 10_000,
    d: int = 10_000,
    selected: Sequence[int] = (500,),
    holdout: Thresholdout | None = None,
    bits: Bits | None = None,
) -> HoldoutOverfitting:
    """Runs the analyst on n rows of d coin flips for training and as many for the holdout, exact or reusable.

    selected: how many variables vote; fewer vote where fewer pass the filter.
    """
    labels = fair((2, count(n, "n")), bits)
    agree, kept = _agreements(labels, count(d, "d"), bits)
    if holdout is None:
        seen: Any = agree[1] / n
    else:
        seen = np.array([float(holdout.ask(int(t), int(h))) for t, h in agree.T])
    train = agree[0] / n
    edge = 1 / (2 * math.sqrt(n))
    sure = (np.abs(train - 0.5) >= edge) & (np.abs(seen - 0.5) >= edge) & ((train > 0.5) == (seen > 0.5))
    order = np.argsort(-np.where(sure, np.abs(train - 0.5), -1.0), kind="stable")[: int(sure.sum())]
    reported, exact, used = [], [], []
    for k in selected:
        chosen = order[: count(k, "selected")]
        right = [_votes_right(kept[part][chosen], train[chosen] > 0.5, labels[part]) for part in (0, 1)]
        reported.append(right[1] / n if holdout is None else float(holdout.ask(right[0], right[1])))
        exact.append(right[1] / n)
        used.append(len(chosen))
    return HoldoutOverfitting(
        tuple(used), np.array(reported), np.array(exact), None if holdout is None else holdout.epsilon
    )


def _agreements(labels: Any, d: int, bits: Bits | None) -> tuple[Integers, list[Any]]:
    """How often each variable equals the label, shape (2, d), and the variables as packed bits, one row each."""
    n = labels.shape[1]
    packed = [np.packbits(labels[part]) for part in (0, 1)]
    agree, kept = np.empty((2, d), np.int64), []
    for part in (0, 1):
        columns = []
        for start in range(0, d, _COLUMNS):
            block = np.packbits(fair((min(_COLUMNS, d - start), n), bits), axis=1)
            differ = np.bitwise_count(block ^ packed[part]).sum(axis=1, dtype=np.int64)
            agree[part, start : start + len(block)] = n - differ
            columns.append(block)
        kept.append(np.concatenate(columns))
    return agree, kept


def _votes_right(variables: Any, same_side: Any, labels: Any) -> int:
    """How many rows the majority gets right; a variable on the other side of 1/2 votes for its opposite; ties say 0."""
    n = len(labels)
    votes = np.zeros(n, np.int64)
    for row, same in zip(variables, same_side, strict=True):
        votes += np.unpackbits(row, count=n) ^ (not same)
    return int(((2 * votes > len(variables)) == labels).sum())


class Ladder:
    """A leaderboard that shows a score only where it is clearly better. step: fixed, or None for the paired test."""

    def __init__(self, step: Number | None = None) -> None:
        self._step = None if step is None else positive(step, "step")
        self._best, self._rows, self._shown = Fraction(0), np.zeros(0), Fraction(0)

    def submit(self, right: Any) -> Fraction:
        """The score shown for a submission that is right on the rows where `right` is 1."""
        rows = zeros_ones(right, "right").astype(np.float64)
        n, score = len(rows), Fraction(int(rows.sum()), len(rows))
        before = self._rows if len(self._rows) == n else np.zeros(n)
        step = self._step or Fraction(float((rows - before).std())) / Fraction(math.isqrt(n << 64), 1 << 32)
        if score > self._best + step:
            unit = self._step or Fraction(1, n)
            self._best, self._rows = score, rows
            self._shown = round(score / unit) * unit
        return self._shown


def private_board(n: int, submissions: int, epsilon: Number, *, bits: Bits | None = None) -> Callable[[Any], Fraction]:
    """A board whose scores together are epsilon-DP for a row (replace): discrete Laplace noise of scale k/epsilon."""
    noise = LaplaceMechanism(sensitivity=1, epsilon=amount(epsilon, "epsilon") / count(submissions, "submissions"))
    left = Slots(submissions, "all submissions were used; a private board needs a new budget for more.")

    def submit(right: Any) -> Fraction:
        with left.taken():
            return Fraction(int(noise.release(int(np.sum(right)), bits=bits)), n)

    return submit


@dataclass(frozen=True)
class LeaderboardOverfitting:
    """A vote of random submissions. board: its accuracy on the board's rows. predicted: in theory, for exact scores."""

    submissions: int
    rows: int
    board: float
    predicted: float

    @property
    def success(self) -> float:
        """How far the board's rows overstate it: its accuracy there less 1/2, which it is elsewhere."""
        return self.board - 0.5

    def ceiling(self, epsilon: Number, delta: Number = 0) -> float:
        """The largest expected `success` where all scores together are (epsilon, delta)-DP under replace."""
        return expected_gap(float(amount(epsilon, "epsilon")), float(amount(delta, "delta")))

    def plot(self, ax: Any = None) -> Any:
        """In theory: the accuracy on the board's rows over the number of random submissions, with exact scores."""
        from hubbub import plots

        grid = [round(10 ** (i / 20)) for i in range(81)]
        lines = [
            ("exact scores, in theory", [float(k) for k in grid], [leaderboard_accuracy(k, self.rows) for k in grid]),
            ("this board", [float(self.submissions)] * 2, [0.5, self.board]),
        ]
        return plots.curves(lines, title="Climbing a leaderboard", xlabel="submissions", ylabel="accuracy", ax=ax)


def leaderboard_accuracy(submissions: int, n: int) -> float:
    """Phi(sqrt(2k/(pi n))): what k random submissions reach on n rows with exact scores.

    >>> round(leaderboard_accuracy(1000, 4000), 3)
    0.655
    """
    return NormalDist().cdf(math.sqrt(2 * count(submissions, "submissions") / (math.pi * count(n, "n"))))


def overfit_leaderboard(
    labels: Any,
    submissions: int,
    *,
    board: Ladder | Callable[[Any], Fraction] | None = None,
    bits: Bits | None = None,
) -> LeaderboardOverfitting:
    """Sends random submissions and lets those that scored well vote.

    labels: the board's secret labels, zeros and ones. board: None shows exact scores; a `Ladder`; or a function of the
    vector of rows that are right, such as a `private_board`. A submission below 1/2 votes for its opposite; on a Ladder
    those vote whose score was shown as a new best.
    """
    truth = zeros_ones(labels, "labels").astype(np.uint8)
    n, votes, voters = len(truth), np.zeros(len(truth), np.int64), 0
    best: Fraction | None = None
    for _ in range(count(submissions, "submissions")):
        guess = fair((n,), bits)
        right = guess == truth
        if isinstance(board, Ladder):
            shown = board.submit(right)
            if shown == best:
                continue
            best = shown
        else:
            shown = Fraction(int(right.sum()), n) if board is None else board(right)
        votes += guess if 2 * shown > 1 else 1 - guess
        voters += 1
    if voters == 0:
        raise QueryError("the board showed no score; send at least one submission.")
    final = 2 * votes > voters
    return LeaderboardOverfitting(submissions, n, float((final == truth).mean()), leaderboard_accuracy(submissions, n))
