"""Differential privacy implies generalisation: bounds on how far a chosen query can overfit (`docs/theorems.md`, D12).

S holds n independent draws; a mechanism, (epsilon, delta)-DP under *replace* neighbours, picks h: X -> [0,
1] from S. h(S) is its mean on the sample, h(P) its true mean.
"""

from __future__ import annotations

import math

from hubbub.accounting.meaning import advantage
from hubbub.errors import ParameterError

__all__ = ["expected_gap", "pure_tail", "sample_size", "tail"]


def expected_gap(epsilon: float, delta: float = 0.0) -> float:
    """|E h(S) - E h(P)|: at most tanh(epsilon / 4) at delta = 0, else (e^epsilon - 1 + 2 delta)/(e^epsilon + 1).

    Given the answer y and the other rows, the chances of row i relative to P, r(x) = p(y|x)/p(y), lie within a factor
    of e^epsilon of each other and have the mean 1. h(S) exceeds h(P) by E (r - 1)_+ at most: with r on two values,
    the larger on a share w, w (1-w)(e^epsilon - 1)/(1 - w + e^epsilon w), whose largest is tanh(epsilon / 4). A report
    of a set of mass 1/(1 + e^(epsilon/2)) on one row reaches it. With delta, means of h in [0, 1] differ by the total
    variation distance at most (`meaning.advantage`), which is at most epsilon / 2 + delta. The usual proof (McSherry,
    folklore; Bassily et al. 2016, Lemma 3.1) has e^epsilon - 1 + delta, some texts 2 epsilon + delta for epsilon < 1.

    >>> round(expected_gap(0.1), 4)
    0.025
    """
    _check(epsilon, delta)
    if delta == 0:
        return math.tanh(epsilon / 4)
    return advantage(epsilon, delta)


def pure_tail(epsilon: float, n: int, gap: float) -> float:
    """P(|h(S) - h(P)| > gap) <= 4 e^(-n gap^2 / 12) for a pure mechanism with epsilon <= gap / 4.

    (Dwork, Feldman, Hardt, Pitassi, Reingold, Roth 2015, "Preserving statistical validity", Theorem 9: with
    n >= 12 ln(4/beta)/gap^2 the probability is at most beta; of epsilon, half of what they need is asked
    here.) 1 where it says nothing.
    """
    _check(epsilon, 0.0)
    if epsilon > gap / 4 or n < 1:
        return 1.0
    return min(1.0, 4 * math.exp(-n * gap * gap / 12))


def tail(epsilon: float, delta: float, n: int) -> tuple[float, float]:
    """(gap, probability): P(|h(S) - h(P)| >= 18 epsilon) <= delta / epsilon.

    Holds for 0 < epsilon < 1/3, 0 < delta < epsilon / 4 and n >= ln(4 epsilon / delta) / epsilon^2
    (Bassily, Nissim, Smith, Steinke, Stemmer, Ullman 2016, Theorem 7.2). Raises ParameterError outside.
    """
    _check(epsilon, delta)
    if not (0 < epsilon < 1 / 3 and 0 < delta < epsilon / 4):
        raise ParameterError(
            f"epsilon = {epsilon}, delta = {delta} were asked; the theorem holds for 0 < epsilon < 1/3 and "
            "0 < delta < epsilon / 4. Use `expected_gap`, which holds always."
        )
    least = sample_size(epsilon, delta)
    if n < least:
        raise ParameterError(f"n = {n} was asked; the theorem needs at least {least} at this epsilon and delta.")
    return min(1.0, 18 * epsilon), delta / epsilon


def sample_size(epsilon: float, delta: float) -> int:
    """The least n for which `tail` speaks."""
    return math.ceil(math.log(4 * epsilon / delta) / epsilon**2)


def _check(epsilon: float, delta: float) -> None:
    if not (0 <= epsilon < math.inf and 0 <= delta < 1):
        raise ParameterError(f"epsilon = {epsilon}, delta = {delta}: allowed are epsilon >= 0 and delta in [0, 1).")
