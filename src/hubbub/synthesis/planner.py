"""Which strategy, and how good it will be: decided from schema, budget and number of rows, before anything is spent.

    joint         one histogram of all records; for universes of few cells
    independent   single columns only
    tree          d - 1 pairs chosen privately (Chow, Liu)
    marginals     all pairs at once at least noise, the graph chosen from noisy answers (triples in small universes)
    adaptive      pairs and triples chosen one after another (AIM); the slowest, and rarely better on wide tables
    uniform       nothing at all: what remains where the noise would drown everything

Let x = sigma / n, the noise of one count that takes the whole budget, as a share of n rows. No method is best at every
x. The predicted error (mean total-variation distance of all k-way marginals) has parts that are known and parts that
are assumed:

- known: the noise of single columns and of the measured tables, from their cells and costs; the blur of coarse parts;
- assumed: how much dependence a strategy leaves out, on data like a census survey (`BIAS`, measured on UCI Adult at
  budgets without noise). Where columns depend more, structure is worth more than predicted; the order of methods is
  then conservative.

Tests hold the prediction to a factor of two on Adult (epsilon .1 to 10) and on the ACS excerpt (.1 and 1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from types import MappingProxyType
from typing import Final

from hubbub.accounting.amounts import Number, amount
from hubbub.errors import ParameterError, what_was_given
from hubbub.remedies import GiveOptions, LeaveOut
from hubbub.spelling import meant_by
from hubbub.synthesis.domain import Domain

__all__ = ["METHODS", "SynthesisPlan", "plan_synthesis"]

METHODS: Final = ("joint", "independent", "tree", "marginals", "adaptive", "uniform")
"""The strategies, as `method=` names them."""

MAX_JOINT: Final = 2**20
MOST_PARTS: Final = 32
BIAS: Final[Mapping[str, tuple[float, float, float]]] = MappingProxyType(
    {
        "joint": (0.0, 0.0, 0.0),
        "independent": (0.0, 0.075, 0.165),
        "tree": (0.0, 0.033, 0.085),
        "marginals": (0.0, 0.022, 0.056),
        "adaptive": (0.0, 0.024, 0.060),
        "uniform": (0.6, 0.75, 0.85),
    }
)
"""Assumed error without noise, of 1-, 2- and 3-way marginals."""

_TYPICAL = 1.2e-4  # x of 48,842 rows at epsilon 1, delta 1e-9: where the shares below were tuned
_NORMAL = 0.4  # E|Z| / 2: a cell's contribution to a total-variation distance


@dataclass(frozen=True)
class SynthesisPlan:
    """What will be run: the method, its parameters, the predicted errors of all methods, and why.

    singles: the share of the budget for single columns. parts: about how many parts a column is cut into. cells: the
    most a clique may have. errors: per method, the predicted mean total-variation distance of 1-, 2-, 3-way marginals.
    stored: whether a session has this very table already, free of charge.
    """

    method: str
    singles: Fraction
    parts: int
    cells: int
    rho: Fraction
    rows: float
    errors: Mapping[str, tuple[float, float, float]]
    reason: str
    stored: bool = False

    @property
    def error(self) -> tuple[float, float, float]:
        """Predicted mean total-variation distances of 1-, 2- and 3-way marginals."""
        return self.errors[self.method]

    @property
    def beats_uniform(self) -> bool:
        """Whether the budget is predicted to tell more than uniform records would."""
        return self.method != "uniform"

    def __str__(self) -> str:
        lines = [self.reason, f"{'method':12s} {'1-way':>7s} {'2-way':>7s} {'3-way':>7s}   (predicted mean distance)"]
        for name, errors in self.errors.items():
            mark = "*" if name == self.method else " "
            lines.append(f"{mark}{name:11s} " + " ".join(f"{e:7.4f}" for e in errors))
        return "\n".join(lines)


def plan_synthesis(
    domain: Domain,
    *,
    rho: Number,
    rows: float,
    method: str = "auto",
    squared_sensitivity: int = 1,
    thorough: bool = False,
) -> SynthesisPlan:
    """The plan for a budget rho and (about) so many rows. Reads no data.

    squared_sensitivity: of one marginal (`Curator.squared_sensitivity`). thorough: let the adaptive method, which takes
    ten times as long as the others, be picked.

    Raises ParameterError for an unknown method, a budget of 0, and "joint" on a universe too large for it.
    """
    budget = amount(rho, "rho")
    if budget == 0:
        raise ParameterError("rho = 0 was asked of synthetic data; give a positive budget.")
    if method not in (*METHODS, "auto"):
        meant = meant_by(method, METHODS) if isinstance(method, str) else None
        way = GiveOptions(("method",), (meant,)) if meant else LeaveOut(("method",))
        raise ParameterError(
            f"method={what_was_given(method)} was asked; it is one of 'auto', {', '.join(map(repr, METHODS))}. Ask "
            f"{'with ' if meant else ''}{way.in_python()}.",
            remedy=way,
        )
    if method == "joint" and domain.universe > MAX_JOINT:
        without = LeaveOut(("method",))
        raise ParameterError(
            f"method='joint' was asked on a universe of {_big(domain.universe)} records; a histogram of at most "
            f"{MAX_JOINT} is laid out. Any of 'independent', 'tree', 'marginals', 'adaptive' would do; asked "
            f"{without.in_python()}, one is chosen.",
            remedy=without,
        )
    x = math.sqrt(squared_sensitivity / (2 * float(budget))) / max(float(rows), 1.0)
    singles = Fraction(round(100 * min(0.6, max(0.15, 0.3 * (x / _TYPICAL) ** 0.25))), 100)
    parts = min(MOST_PARTS, max(8, round(10 * (_TYPICAL / x) ** 0.35)))
    cells = 10_000 if x > _TYPICAL / 3 else 30_000
    if domain.universe <= cells:
        # One clique holds everything: nothing is gained by coarser parts.
        parts = max(domain.sizes)
    errors = {
        name: _predict(name, domain, x, float(singles), parts, cells)
        for name in METHODS
        if name != "joint" or domain.universe <= MAX_JOINT
    }
    chosen, reason = (method, f"{method}: as asked.") if method != "auto" else _pick(errors, domain, thorough)
    return SynthesisPlan(chosen, singles, parts, cells, budget, rows, MappingProxyType(errors), reason)


def _pick(errors: Mapping[str, tuple[float, float, float]], domain: Domain, thorough: bool) -> tuple[str, str]:
    """The method of least predicted error over pairs and triples."""
    open_to = [m for m in errors if thorough or m != "adaptive"]
    width = min(len(domain), 3)
    ordered = sorted(open_to, key=lambda m: (sum(errors[m][1:width]) if width > 1 else errors[m][0], METHODS.index(m)))
    best, next_best = ordered[0], ordered[1]
    if best == "uniform" or errors[best][width - 1] > 0.9 * errors["uniform"][width - 1]:
        best = "uniform"
        return best, (
            "uniform: the budget is too small for this domain and number of rows; noise would drown every column. "
            "Give more budget, fewer columns, or coarser values."
        )
    why = {
        "joint": f"the universe has only {domain.universe} records, so that all of it is measured at once",
        "independent": "the noise of joint marginals would exceed the dependence that they show",
        "tree": "a few pairs carry most of the dependence, and more would be drowned",
        "marginals": "the budget shows every pair of columns over coarse parts",
        "adaptive": "the budget is better spent on a few marginals, each chosen after the last, than on all pairs",
    }[best]
    gap = errors[next_best][width - 1] - errors[best][width - 1]
    return best, f"{best}: {why}; {next_best} is next, by {gap:.4f}."


def _predict(
    method: str, domain: Domain, x: float, singles: float, parts: int, cells: int
) -> tuple[float, float, float]:
    """Mean total-variation distances of 1-, 2-, 3-way marginals."""
    bias, cap = BIAS[method], BIAS["uniform"]
    whole = max(domain.sizes) <= parts and domain.universe <= cells
    if method == "uniform":
        return bias
    if method == "joint":
        noise = _joint_noise(domain, x)
    elif method == "marginals" and whole:
        # All triples are measured, over values, and nothing is left out.
        bias = BIAS["joint"]
        alone = _single_noise(domain, x / math.sqrt(singles))
        triple = _table_noise([math.prod(c) for c in combinations(domain.sizes, min(3, len(domain)))], x)
        noise = (alone, alone + 0.2 * triple, alone + 0.45 * triple)
    else:
        alone = _single_noise(domain, x / math.sqrt(1.0 if method == "independent" else singles))
        joint = 0.0 if method == "independent" else _pair_noise(method, domain, x / math.sqrt(1 - singles), parts)
        blur = 0.0 if method == "independent" else 0.06 / parts
        noise = (alone, 1.5 * alone + joint + blur, 2.2 * alone + 2 * joint + 2 * blur)
    # Noise that reaches the level of uniform records cannot do more harm than that.
    one, two, three = (b + (1 - b / c) * c * -math.expm1(-e / c) for b, e, c in zip(bias, noise, cap, strict=True))
    return one, two, three


def _single_noise(domain: Domain, x: float) -> float:
    """Of single columns; a quarter less than the cells say, because counts are not negative."""
    return 0.75 * _table_noise(domain.sizes, x)


def _pair_noise(method: str, domain: Domain, x: float, parts: int) -> float:
    """The same for pairs over parts, of which regularisation leaves about a twentieth."""
    sizes = [min(c, parts) for c in domain.sizes]
    cells = sorted(a * b for a, b in combinations(sizes, 2))
    if method != "marginals":
        # A choice takes some of the pairs, and rather the larger ones.
        cells = cells[len(cells) // 2 :][: (len(sizes) - 1) * (2 if method == "adaptive" else 1)]
    return 0.05 * _table_noise(cells, x)


def _table_noise(cells: Sequence[int], x: float) -> float:
    """Mean over tables of 0.4 c s, where the budget is split in proportion to c^(2/3)."""
    scale = math.sqrt(sum(c ** (2 / 3) for c in cells))
    return _mean([_NORMAL * c * x * scale / c ** (1 / 3) for c in cells])


def _joint_noise(domain: Domain, x: float) -> tuple[float, float, float]:
    """A k-way cell sums universe / cells noisy counts."""
    return tuple(  # type: ignore[return-value]
        _mean([_NORMAL * x * math.sqrt(domain.universe * math.prod(c)) for c in combinations(domain.sizes, k)])
        for k in (1, 2, 3)
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _big(number: int) -> str:
    return str(number) if number < 10**9 else f"about 1e{len(str(number)) - 1}"
