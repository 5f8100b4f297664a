"""Differential privacy implies generalisation: bounds on how far a chosen query can overfit (`docs/theorems.md`, D12).

S holds n independent draws; a mechanism, (epsilon, delta)-DP under *replace* neighbours, picks h: X -> [0,
1] from S. h(S) is its mean on the sample, h(P) its true mean.
"""

from __future__ import annotations

import math

from hubbub.errors import ParameterError

__all__ = ["expected_gap", "pure_tail", "sample_size", "tail"]


def expected_gap(epsilon: float, delta: float = 0.0) -> float:
    """|E h(S) - E h(P)| <= e^epsilon - 1 + delta, which is at most 2 epsilon + delta for epsilon < 1.

    (Dwork, Feldman, Hardt, Pitassi, Reingold, Roth 2015; Bassily et al. 2016, Lemma 3.1.) At most 1.

    >>> expected_gap(0.1) <= 2 * 0.1
    True
    """
    _check(epsilon, delta)
    return min(1.0, math.expm1(epsilon) + delta)


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
