"""What an epsilon means: beliefs, odds, attacks, and words for them. Standard library only.

Neighbours: two data sets, one with and one without (or with another record of) the person; an attacker who
knows all else believes in the first with probability p before the answer. For a statement about an
*attribute* of a person who is surely in the data, use the replace loss: under an add/remove accounting,
twice epsilon.

- Posterior (Desfontaines 2020, Proposition 1): after any answer the belief lies in
  [p / (e^epsilon (1-p) + p), e^epsilon p / (1 + (e^epsilon - 1) p)]; the odds change by a factor of at most
  e^epsilon.
- Best attack: true positives less false positives are at most (e^epsilon - 1 + 2 delta)/(e^epsilon + 1)
  = tanh(epsilon/2) for delta = 0 (Kairouz, Oh, Viswanath 2015). The trade-off of errors is
  max(0, 1 - delta - e^epsilon a, e^(-epsilon)(1 - delta - a)).
- With delta > 0 the (epsilon, delta) pair is read as the canonical mechanism: the statements hold but for
  an event of
  probability delta, in which anything may be learned.
"""

from __future__ import annotations

import math
from typing import Any

from hubbub.accounting.amounts import Number, amount, probability
from hubbub.errors import ParameterError

__all__ = ["advantage", "explain", "odds", "odds_text", "plot", "posterior", "tradeoff_line"]


def posterior(prior: float, epsilon: float) -> tuple[float, float]:
    """The least and the largest belief after any answer of an epsilon-DP mechanism.

    >>> [round(b, 3) for b in posterior(0.5, math.log(3))]
    [0.25, 0.75]

    Raises ParameterError for a prior outside [0, 1] or epsilon < 0.
    """
    _check(epsilon, 0.0)
    if not 0 <= prior <= 1:
        raise ParameterError(f"prior = {prior} was asked; allowed is [0, 1].")
    shrink = math.exp(-epsilon)
    # Written with e^(-epsilon), so that a large epsilon does not overflow.
    return prior * shrink / ((1 - prior) + prior * shrink), prior / ((1 - prior) * shrink + prior)


def odds(epsilon: float) -> float:
    """The largest factor by which betting odds can change: e^epsilon (inf beyond the largest float)."""
    _check(epsilon, 0.0)
    return math.exp(epsilon) if epsilon < 709 else math.inf


def advantage(epsilon: float, delta: float = 0.0) -> float:
    """The best attack's advantage: true positives less false positives, (e^epsilon - 1 + 2
    delta)/(e^epsilon + 1).

    >>> round(advantage(1), 3)
    0.462
    """
    _check(epsilon, delta)
    return math.tanh(epsilon / 2) + delta * (1 - math.tanh(epsilon / 2))


def tradeoff_line(false_alarms: float, epsilon: float, delta: float = 0.0) -> float:
    """The least miss rate at a false-alarm rate, under (epsilon, delta)-DP (Wasserman, Zhou 2010)."""
    _check(epsilon, delta)
    grow = odds(epsilon)
    first = 1 - delta - (grow * false_alarms if false_alarms > 0 else 0.0)
    return max(0.0, first, math.exp(-epsilon) * (1 - delta - false_alarms))


def odds_text(epsilon: float, delta: float = 0.0) -> str:
    """Odds in whole cases of 100, the best-understood wording (Nanayakkara et al. 2023, odds-based text).

    >>> print(odds_text(1))
    Suppose somebody guesses from the answer whether you took part.
    If you do not take part, about 27 of 100 possible answers would suggest that you did.
    If you take part, about 73 of 100 possible answers would suggest that you did.
    """
    hit = (1 + advantage(epsilon, delta)) / 2
    low, high = math.floor(100 * (1 - hit) + 0.5), math.floor(100 * hit + 0.5)
    return (
        "Suppose somebody guesses from the answer whether you took part.\n"
        f"If you do not take part, about {low} of 100 possible answers would suggest that you did.\n"
        f"If you take part, about {high} of 100 possible answers would suggest that you did."
    )


def explain(epsilon: Number, delta: Number = 0, prior: Number | None = None) -> str:
    """What (epsilon, delta)-DP promises, in plain words; `prior` is the attacker's belief before (1/2
    unless given).

    >>> print(explain(1).splitlines()[0])
    epsilon = 1: strong protection.

    Raises ParameterError for epsilon < 0, delta outside [0, 1) or a prior outside [0, 1].
    """
    e, d = float(amount(epsilon, "epsilon")), float(probability(delta, "delta"))
    p = 0.5 if prior is None else float(probability(prior, "prior", one=True))
    low, high = posterior(p, e)
    lines = [f"epsilon = {e:g}{f', delta = {d:g}' if d else ''}: {_verdict(e)}", ""]
    lines += [odds_text(e, d), ""]
    lines += [
        f"Someone who thinks there is a {_percent(p, exact=True)} chance that you are in the data",
        f"will think the chance is between {_percent(low)} and {_percent(high)} after seeing any answer,",
        "even if they know every other record.",
        f"Betting odds change by a factor of at most {odds(e):.3g}.",
        f"The best possible attack flags people who took part at most {_points(advantage(e, d))} percentage points",
        "more often than people who did not.",
    ]
    if d:
        lines += [
            f"Beliefs and odds hold except with probability {d:g} (1 in {1 / d:,.0f}); then anything may be learned.",
        ]
    lines += [
        "",
        "If it is known that you are in the data, and the question is what your record says, double epsilon first.",
    ]
    return "\n".join(lines)


def plot(epsilon: Number, delta: Number = 0, ax: Any = None) -> Any:
    """The posterior against the prior for this epsilon, between the bounds (thesis, Figures 2.1 and
    2.2), as an Axes.
    """
    from hubbub import plots

    e = float(amount(epsilon, "epsilon"))
    d = float(probability(delta, "delta"))
    priors = [i / 200 for i in range(201)]
    both = [posterior(p, e) for p in priors]
    note = f", but for delta = {d:g}" if d else ""
    return plots.band(
        priors,
        [b[0] for b in both],
        [b[1] for b in both],
        middle=priors,
        title=f"Belief after an answer at epsilon = {e:g}{note}",
        xlabel="belief before",
        ylabel="belief after",
        ax=ax,
    )


def plot_many(epsilons: list[float], ax: Any = None) -> Any:
    """Upper and lower posterior curves for several epsilons (thesis, Figure 2.2), as an Axes."""
    from hubbub import plots

    priors = [i / 200 for i in range(201)]
    lines = []
    for e in epsilons:
        lines.append((f"epsilon = {e:g}", priors, [posterior(p, e)[1] for p in priors]))
        lines.append(("", priors, [posterior(p, e)[0] for p in priors]))
    return plots.curves(
        lines,
        title="Belief after an answer",
        xlabel="belief before",
        ylabel="belief after",
        paired=True,
        ax=ax,
    )


def plot_tradeoff(epsilon: Number, delta: Number = 0, ax: Any = None) -> Any:
    """Least miss rate against false alarms (D10), as an Axes."""
    from hubbub import plots

    e, d = float(amount(epsilon, "epsilon")), float(probability(delta, "delta"))
    alarms = [i / 200 for i in range(201)]
    lines = [
        (f"epsilon = {e:g}", alarms, [tradeoff_line(a, e, d) for a in alarms]),
        ("guessing", alarms, [1 - a for a in alarms]),
    ]
    return plots.curves(lines, title="What the best attack misses", xlabel="false alarms", ylabel="misses", ax=ax)


def _verdict(epsilon: float) -> str:
    for limit, words in (
        (0.1, "very strong protection; an answer says almost nothing about one person."),
        (1.0, "strong protection."),
        (math.log(3) * 2, "moderate protection; a suspicion can grow noticeably."),
        (5.0, "weak protection in the worst case; a suspicion can become near certainty."),
    ):
        if epsilon <= limit:
            return words
    return "hardly a worst-case promise; somebody who knows all else could be nearly certain."


def _percent(p: float, *, exact: bool = False) -> str:
    """A share in words; rounding never says certainty unless it is given as `exact`."""
    if not exact and p >= 0.9995:
        return "more than 99.9 %"
    if not exact and p < 0.0005:
        return "less than 0.1 %"
    return f"{100 * p:.1f}".removesuffix(".0") + " %"


def _points(share: float) -> str:
    """An upper bound in percentage points, rounded up to a tenth."""
    return f"{math.ceil(1000 * share - 1e-9) / 10:g}"


def _check(epsilon: float, delta: float) -> None:
    if not (0 <= epsilon < math.inf and 0 <= delta < 1):
        raise ParameterError(f"epsilon = {epsilon}, delta = {delta}: allowed are epsilon >= 0 and delta in [0, 1).")
