"""Reconstruction: overly exact answers to too many questions give back a whole column (`docs/theorems.md`, A6).

n people have secret bits x; query i is a set of people (row q_i of a 0/1 matrix Q), its answer a_i = q_i . x + error.
The attacker looks for bits that fit the answers.

**Brute force** (Dinur, Nissim 2003; Dwork, Roth 2014, Theorem 8.1). If every subset query is answered within
E = alpha n, any x' that fits all answers within E differs from x in at most 4E places. *Proof*: q . x and q . x' both
lie within E of the answer, so they differ by at most 2E; take for q the people with x = 1, x' = 0, then those with
x = 0, x' = 1. For any set of queries the certificate is found by looking: the farthest of all bit strings that fit.

**Linear programming** (Dinur, Nissim 2003; Dwork, McSherry, Talwar 2007): minimise sum |a_i - q_i . z| over
0 <= z <= 1 and round. O(n) random queries with error o(sqrt n) give all but o(n) bits; a share of arbitrarily wrong
answers (up to about .239) does no harm.

**Least squares**: minimise sum (a_i - q_i . z)^2 and round. For m random queries and Gaussian noise sigma each bit is
right with probability about Phi(sqrt(m - n)/(4 sigma)): the errors of z have the covariance sigma^2 (Q^T Q)^-1, about
4 sigma^2/(m - n) each.

**Big bang**: with people's public attributes known, the cells of overlapping contingency tables are such queries, and
counts of a secret in several tables give the column back (`contingency_queries`).

**Ceiling**, for each bit: e^epsilon/(1 + e^epsilon), where a bit flips at epsilon.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal, get_args

import numpy as np

from hubbub.accounting.amounts import Number
from hubbub.attacks.ceilings import guess_ceiling
from hubbub.attacks.inputs import Flags, Floats, Integers, cells, codes, fair, numbers, same_length, zeros_ones
from hubbub.errors import ParameterError, what_was_given
from hubbub.noise import Bits
from hubbub.queries import InnerProducts

__all__ = [
    "Reconstruction",
    "adversarial_answers",
    "all_subsets",
    "contingency_queries",
    "least_squares_accuracy",
    "random_subsets",
    "reconstruct",
]

Method = Literal["lp", "least_squares", "brute_force"]
_MOST_BRUTE = 22


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Reconstructed bits.

    bits: the guess for each person. error: the largest |a_i - q_i . bits|. right: which hold, where the truth is known.
    wrong_at_most: brute force's certificate, where `within` was given: no bit string that fits the answers within it is
    farther away; at most 4 `within` where all subsets were asked.
    """

    bits: Integers
    error: float
    right: Flags | None
    wrong_at_most: int | None
    method: Method

    @property
    def success(self) -> float:
        """The share of bits that are right. Raises ParameterError where the truth was not given."""
        if self.right is None:
            raise ParameterError("truth= was not given, so nothing says what is right. Give it to count.")
        return float(self.right.mean())

    def ceiling(self, epsilon: Number, delta: Number = 0, *, likeliest: Number = "1/2") -> float:
        """The largest expected success where a bit flips at epsilon, for independent bits.

        likeliest: the prior probability of a bit's likelier value.
        """
        return guess_ceiling(likeliest, epsilon, delta)

    def plot(self, ax: Any = None) -> Any:
        """The ceiling over epsilon, beside this success where it is known."""
        from hubbub import plots

        grid = [i / 25 for i in range(151)]
        lines = [("ceiling for private answers", grid, [self.ceiling(e) for e in grid])]
        if self.right is not None:
            lines.append(("this attack", grid, [self.success] * len(grid)))
        return plots.curves(lines, title="Bits reconstructed", xlabel="epsilon", ylabel="share right", ax=ax)


def reconstruct(
    queries: Any,
    answers: Any,
    *,
    method: Method = "lp",
    within: float | None = None,
    truth: Any = None,
) -> Reconstruction:
    """Finds secret bits that fit answers to subset queries.

    queries: a 0/1 matrix of shape (m, n), or an `InnerProducts` workload. answers: m counts, exact or noisy. truth: the
    bits, to count what is right. within: for brute force, an error that all answers are known to stay within, for the
    certificate. Brute force takes the bit string with the least largest error.

    >>> sets = [[1, 1, 0], [0, 1, 1], [1, 1, 1]]
    >>> reconstruct(sets, [1, 1, 2], method="brute_force").bits.tolist()
    [1, 0, 1]

    Raises ParameterError for shapes that do not fit, for brute force on more than 22 people, and where no bit string
    fits `within`.
    """
    matrix = zeros_ones(queries.columns().T if isinstance(queries, InnerProducts) else queries, "queries", dimensions=2)
    given = numbers(answers, "answers")
    same_length(queries=matrix, answers=given)
    if method not in get_args(Method):
        raise ParameterError(f"method = {what_was_given(method)} was asked; allowed are {', '.join(get_args(Method))}.")
    wrong = None
    if method == "brute_force":
        bits, wrong = _brute_force(matrix, given, within)
    else:
        z = _lp(matrix, given) if method == "lp" else _least_squares(matrix, given)
        bits = (z > 0.5).astype(np.int64)
    right = None
    if truth is not None:
        known = zeros_ones(truth, "truth")
        same_length(people=bits, truth=known)
        right = bits == known
    return Reconstruction(bits, float(np.abs(given - matrix @ bits).max()), right, wrong, method)


def _least_squares(matrix: Integers, answers: Floats) -> Floats:
    # About 1/2, so that of many solutions the one nearest to knowing nothing is taken.
    centred = answers - matrix.sum(axis=1) / 2
    # Q^T Q is of whole numbers, exact in floats, and small; directions that no query sees stay at 1/2.
    queries = matrix.astype(np.float64)
    return np.asarray(0.5 + np.linalg.lstsq(queries.T @ queries, queries.T @ centred, rcond=1e-11)[0])


def _lp(matrix: Integers, answers: Floats) -> Floats:
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix, hstack, identity

    m, n = matrix.shape
    # Q z + above - below = a, above and below >= 0; their sum is the error to minimise.
    equal = hstack([csr_matrix(matrix), identity(m), -identity(m)], format="csr")
    cost = np.concatenate([np.zeros(n), np.ones(2 * m)])
    bounds = [(0, 1)] * n + [(0, None)] * (2 * m)
    solution = linprog(cost, A_eq=equal, b_eq=answers, bounds=bounds, method="highs")
    if solution.x is None:
        raise ParameterError("the linear program was not solved; give answers of the size of counts.")
    return np.asarray(solution.x[:n])


def _brute_force(matrix: Integers, answers: Floats, within: float | None) -> tuple[Integers, int | None]:
    n = matrix.shape[1]
    if n > _MOST_BRUTE:
        raise ParameterError(f"brute force was asked of {n} people; allowed are {_MOST_BRUTE}. Use method='lp'.")
    errors = np.empty(1 << n)
    # Counts below 2^24 are exact as float32.
    queries = np.ascontiguousarray(matrix.T.astype(np.float32))
    step = max(1, (1 << 24) // len(answers))
    for start in range(0, 1 << n, step):
        strings = _strings(np.arange(start, min(start + step, 1 << n)), n)
        fits = np.abs(strings.astype(np.float32) @ queries - answers)
        errors[start : start + len(strings)] = fits.max(axis=1)
    best = int(np.argmin(errors))
    bits = _strings(np.array([best]), n)[0]
    if within is None:
        return bits, None
    reach = within + 1e-9 * (1 + abs(within))
    if errors[best] > reach:
        raise ParameterError(f"within = {within} was asked, and no bit string fits the answers so well; give more.")
    apart = np.flatnonzero(errors <= reach) ^ best
    return bits, max(int(a).bit_count() for a in apart.tolist())


def _strings(numbers: Integers, n: int) -> Integers:
    """The bits of numbers below 2^n, the first person's first."""
    return np.asarray(numbers[:, None] >> np.arange(n - 1, -1, -1) & 1)


def least_squares_accuracy(n: int, m: int, sigma: float) -> float:
    """About how many bits least squares gets right: Phi(sqrt(m - n)/(4 sigma)), m > n random subset queries.

    >>> [round(least_squares_accuracy(100, 400, s * 10), 2) for s in (0.1, 0.25, 1, 2)]
    [1.0, 0.96, 0.67, 0.59]
    """
    if m <= n or sigma < 0:
        said = ", ".join(f"{k} = {what_was_given(v)}" for k, v in {"n": n, "m": m, "sigma": sigma}.items())
        raise ParameterError(f"{said} were asked; give m > n and sigma >= 0.")
    return NormalDist().cdf(math.sqrt(m - n) / (4 * sigma)) if sigma > 0 else 1.0


def random_subsets(m: int, n: int, *, bits: Bits | None = None) -> Integers:
    """m subsets of n people, every person in each with probability 1/2: shape (m, n)."""
    return fair((m, n), bits).astype(np.int64)


def all_subsets(n: int) -> Integers:
    """All 2^n subsets of n people: shape (2^n, n)."""
    if not 1 <= n <= _MOST_BRUTE:
        raise ParameterError(f"all subsets of {n} people were asked; allowed are 1 to {_MOST_BRUTE}.")
    return _strings(np.arange(1 << n), n)


def adversarial_answers(queries: Any, truth: Any, errors: int) -> tuple[Floats, Integers]:
    """Answers (q.x + q.x')/2 for an x' with `errors` ones of x cleared and `errors` zeros set; and x'.

    They lie within errors/2 of both, for every query, so no attacker can tell x from x': of the 4 alpha n places that
    the theorem allows, alpha n = errors/2, all 2 errors are really wrong.
    """
    matrix, x = zeros_ones(queries, "queries", dimensions=2), zeros_ones(truth, "truth")
    ones, zeros = np.flatnonzero(x == 1), np.flatnonzero(x == 0)
    if errors < 0 or errors > min(len(ones), len(zeros)):
        raise ParameterError(f"errors = {errors} was asked; there are {len(ones)} ones and {len(zeros)} zeros.")
    other = x.copy()
    other[ones[:errors]], other[zeros[:errors]] = 0, 1
    return np.asarray((matrix @ x + matrix @ other) / 2), other


def contingency_queries(attributes: Sequence[Any], *, t: int) -> Integers:
    """The cells of all t-way tables of known attributes as subset queries: shape (occupied cells, people).

    attributes: one array of labels for each attribute. The answer to a row is the number of people with the secret in
    that cell.
    """
    if not 1 <= t <= len(attributes):
        raise ParameterError(f"t = {t} was asked of {len(attributes)} attributes; give 1 to that.")
    columns = [codes(a) for a in attributes]
    parts = []
    for chosen in itertools.combinations(columns, t):
        cell = cells(chosen)
        parts.append(cell[None, :] == np.arange(int(cell.max()) + 1)[:, None])
    return np.concatenate(parts).astype(np.int64)
