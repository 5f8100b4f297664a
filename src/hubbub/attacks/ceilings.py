"""What no attack can exceed, whoever runs it: the ceilings that differential privacy puts on success.

Let the answers be (epsilon, delta)-indistinguishable between any two worlds the attacker cannot tell apart beforehand
(epsilon composed over everything asked; `posterior` and `advantage` are in `hubbub.accounting.meaning`).

- Membership or any two worlds: true positives less false positives are at most
  (e^epsilon - 1 + 2 delta)/(e^epsilon + 1) (Kairouz, Oh, Viswanath 2015), and at a false-positive rate a the true
  positives are at most 1 - max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta - a)) (Wasserman, Zhou 2010).
- A secret value with prior odds o = p/(1-p) of its likeliest value: right with probability at most
  (o e^epsilon + delta)/(1 + o e^epsilon). For k values that are equally likely it is e^epsilon/(k - 1 + e^epsilon) at
  delta = 0 (min-entropy leakage; Alvim, Andres, Chatzikokolakis, Palamidessi 2011), and for a bit
  e^epsilon/(1 + e^epsilon).
- Whose row: of n rows that their owners randomised alone, each epsilon-private against any other (local DP), the
  target's is named with probability at most e^(2 epsilon)/(n - 1 + e^(2 epsilon)), all n equally likely before: two of
  these worlds differ by two rows that swapped owners. (No central release has rows about people at all.)

Proof of the second: let A_x be the outputs at which x is guessed, pi the prior, s = sum pi_x P_x(A_x). For each x,
P_x(A_x) <= e^epsilon Q_x(A_x) + delta with Q_x the mixture of the others, hence pi_x P_x(A_x) <=
pi_x/(1 - pi_x) e^epsilon sum_(y != x) pi_y P_y(A_x) + pi_x delta. Sum over x: s <= o e^epsilon (1 - s) + delta.

epsilon is that *between the two worlds*: changing a secret of a person who stays in the data costs the replace loss,
under an add/remove accounting twice epsilon (unless the answers hold only people with the secret).
"""

from __future__ import annotations

import math
from fractions import Fraction

from hubbub.accounting.amounts import Number, amount, count, probability
from hubbub.accounting.meaning import advantage, tradeoff_line

__all__ = ["advantage_ceiling", "bit_ceiling", "guess_ceiling", "hit_ceiling", "row_ceiling"]


def advantage_ceiling(epsilon: Number, delta: Number = 0) -> float:
    """The largest difference of true and false positives: (e^epsilon - 1 + 2 delta)/(e^epsilon + 1).

    >>> round(advantage_ceiling(0.5), 3), round(advantage_ceiling(1), 3)
    (0.245, 0.462)

    Raises ParameterError for epsilon < 0 or delta outside [0, 1), as all functions here.
    """
    return advantage(float(amount(epsilon, "epsilon")), float(probability(delta, "delta")))


def guess_ceiling(likeliest: Number, epsilon: Number, delta: Number = 0) -> float:
    """How often a secret can be guessed whose likeliest value has the prior probability `likeliest`.

    >>> round(guess_ceiling("1/4", 1), 3)  # one of four equal values: e/(3 + e)
    0.475
    """
    p = float(probability(likeliest, "likeliest", one=True))
    e, d = float(amount(epsilon, "epsilon")), float(probability(delta, "delta"))
    # Written with e^-epsilon, so that a large epsilon does not overflow.
    against = (1 - p) * math.exp(-e)
    right = p / (p + against) if p else 0.0
    return min(1.0, right + d * (1 - right))


def bit_ceiling(epsilon: Number, delta: Number = 0) -> float:
    """How often a fair secret bit can be guessed: (e^epsilon + delta)/(e^epsilon + 1).

    >>> round(bit_ceiling(1), 3)
    0.731
    """
    return guess_ceiling("1/2", epsilon, delta)


def hit_ceiling(false_rate: Number, epsilon: Number, delta: Number = 0) -> float:
    """The largest true-positive rate of a test whose false-positive rate is at most `false_rate`.

    >>> round(hit_ceiling("0.01", 1), 4)
    0.0272
    """
    a = float(probability(false_rate, "false_rate", one=True))
    return 1 - tradeoff_line(a, float(amount(epsilon, "epsilon")), float(probability(delta, "delta")))


def row_ceiling(rows: int, epsilon: Number) -> float:
    """How often a target's row can be named among so many rows, each randomised by its owner at epsilon.

    >>> round(row_ceiling(500, 1), 4)
    0.0146
    """
    return guess_ceiling(Fraction(1, count(rows, "rows")), 2 * amount(epsilon, "epsilon"))
