"""Noise-optimal release of marginals: which residual gets which share of rho, the draw, and the tables.

Let the marginals A asked have weights a_A >= 0 per cell. By `residuals`, the cell variance of A is sum_B sigma_B^2
w(A, B), and the cost sum_B p_B / (2 sigma_B^2) = rho, over all B within some A (the closure). With
v_B = sum_A a_A |cells of A| w(A, B), the total weighted variance is least at

    sigma_B^2 = T sqrt(p_B / v_B) / (2 rho),   T = sum_B sqrt(p_B v_B),   and then it is T^2 / (2 rho)

(Xiao, Li, Zhang, Kifer 2023, Theorem 5; by Cauchy-Schwarz). No unbiased Gaussian matrix mechanism does better: T^2
equals the singular-value bound of Li and Miklau 2013 for these workloads.

Minimising the *largest* weighted cell variance is the dual of a maximum over weights: T(lambda)^2, with lambda on the
simplex, is concave, its maximum is the least possible largest variance, and a multiplicative ascent finds it to a
relative gap that is measured (at most 0.1 %).

Neighbours: one row added or removed; a unit of up to `unit_rows` rows costs `unit_rows`^2 as much, which is planned
for. Replacing a row is adding and removing one: at most 4 rho. Units: rows. Domain and marginals are public.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import Number, events as ev, rho_of_epsilon
from hubbub.errors import ParameterError, what_was_given
from hubbub.mechanisms.calibrate import epsilon_of, one_of, whole_number
from hubbub.mechanisms.calibration import Calibrated, Spend, calibrated
from hubbub.noise import MAX_SCALE, Bits
from hubbub.synthesis.answers import Answer, half_width
from hubbub.synthesis.domain import MAX_CELLS, Domain
from hubbub.synthesis.residuals import centre, cost_factor, project, spread, squared_move, subsets

__all__ = [
    "MarginalPlan",
    "MarginalRelease",
    "all_marginals",
    "plan_marginals",
    "rho_from",
    "within_bits",
    "within_limits",
]

Columns = tuple[str, ...]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Objective = Literal["total", "largest"]

# Shares of rho are multiples of 2^-40 of it: exact, and optimal to twelve digits.
_SHARES = 2**40
# All tables of one release together: half a gigabyte.
_MAX_TOTAL = 2**26
_MAX_CLOSURE = 2**17
# Of pairs of columns that nobody named: all those of 181 columns.
_MOST_TOGETHER = 2**14
_GAP = 1e-3


def rho_from(rho: Number | None, epsilon: Number | None, delta: Number | None) -> Fraction:
    """rho itself, or that of (epsilon, delta), rounded down. Raises ParameterError unless one of the two is given."""
    one_of("a release", rho=rho, epsilon=epsilon)
    if rho is not None:
        return epsilon_of(rho, name="rho")
    if delta is None:
        raise ParameterError("epsilon= was given without delta=; Gaussian noise is never pure: give a delta above 0.")
    assert epsilon is not None
    return rho_of_epsilon(epsilon_of(epsilon), delta)


def all_marginals(domain: Domain, *ways: int) -> tuple[Columns, ...]:
    """All k-way marginals for each k in `ways`.

    >>> all_marginals(Domain(("a", "b", "c"), (2, 2, 2)), 2)
    (('a', 'b'), ('a', 'c'), ('b', 'c'))
    """
    for k in ways:
        if not 0 <= whole_number(k, "a way", least=0) <= len(domain):
            raise ParameterError(f"{k}-way marginals were asked of {len(domain)} columns; give 0 <= k <= the columns.")
    return tuple(c for k in ways for c in itertools.combinations(domain.columns, k))


def within_limits(cells: Sequence[int]) -> list[int]:
    """The places of those marginals, of so many cells each, that one release holds together; the smallest go first.

    >>> within_limits([2**25, 6, 12])
    [1, 2]
    """
    order = sorted(range(len(cells)), key=cells.__getitem__)[:_MOST_TOGETHER]
    totals = itertools.accumulate(cells[place] for place in order)
    return sorted(p for p, t in zip(order, totals, strict=True) if cells[p] <= MAX_CELLS and t <= _MAX_TOTAL)


@dataclass(frozen=True)
class MarginalPlan:
    """What a release of marginals will cost and how exact it will be, known before any row is read.

    `shares` says how much of rho each residual gets; they sum to rho exactly.
    """

    domain: Domain
    marginals: tuple[Columns, ...]
    rho: Fraction
    unit_rows: int
    shares: Mapping[Columns, Fraction] = field(repr=False)

    @property
    def loss(self) -> ev.Event:
        """The event to charge."""
        return ev.ZCDP(self.rho)

    def noise(self, columns: Columns) -> Calibrated:
        """The noise on the integers of one residual."""
        return calibrated(spend=Spend(rho=self.shares[columns]), l2_squared=self.squared_move(columns))

    def parameter(self, columns: Columns) -> Fraction:
        """s^2: the discrete Gaussian parameter of the integers drawn for one residual."""
        return self.noise(columns).sigma2

    def squared_move(self, columns: Columns) -> int:
        """How far one unit moves the integers of one residual, in squared l2."""
        return self.unit_rows**2 * squared_move(self.domain.shape(columns))

    def sigma2(self, columns: Columns) -> float:
        """sigma^2 of one residual, in rows squared: the exact variance of its integers over the squared cells."""
        return float(self.noise(columns).law.variance) / self.domain.cells(columns) ** 2

    def variance(self, columns: Sequence[str]) -> float:
        """The variance of every cell of a marginal: an asked one, or one within it."""
        own = self.covered(columns)
        shape = dict(zip(own, self.domain.shape(own), strict=True))
        return math.fsum(self.sigma2(b) * _weight(shape, b) for b in subsets(own) if all(shape[c] > 1 for c in b))

    def rmse(self, marginals: Iterable[Sequence[str]] | None = None) -> float:
        """The root of the mean cell variance over marginals, by default those asked."""
        chosen = self.marginals if marginals is None else [self.covered(m) for m in marginals]
        cells = [self.domain.cells(m) for m in chosen]
        total = math.fsum(k * self.variance(m) for k, m in zip(cells, chosen, strict=True))
        return math.sqrt(total / sum(cells))

    def hopeless(self, rows: int) -> tuple[Columns, ...]:
        """The marginals whose noise is worse than saying `rows` / cells everywhere, whatever the table holds.

        The even table of k cells errs by at most rows sqrt((1 - 1/k)/k) in root mean square.
        """
        n = whole_number(rows, "rows", least=0)
        too_noisy = []
        for m in self.marginals:
            k = self.domain.cells(m)
            if k > 1 and math.sqrt(self.variance(m)) >= n * math.sqrt((1 - 1 / k) / k):
                too_noisy.append(m)
        return tuple(too_noisy)

    def covered(self, columns: Sequence[str]) -> Columns:
        """The columns in the domain's order. Raises ParameterError where no asked marginal holds them all."""
        own = self.domain.marginal(columns)
        if not any(set(own) <= set(m) for m in self.marginals):
            raise ParameterError(
                f"the marginal over {own} was asked; the plan has "
                f"{', '.join(map(str, self.marginals[:5]))}{', ...' if len(self.marginals) > 5 else ''}, and those "
                "within them. Ask for it when planning."
            )
        return own

    def release(self, codes: Any, *, bits: Bits | None = None) -> MarginalRelease:
        """Draw the noisy residuals of a table of codes, shape (n, d). bits: a bit source for tests.

        Charge `loss` first. Raises ParameterError for codes outside the domain.
        """
        records = self.domain.records(codes)
        residuals = {}
        for columns in self.shares:
            exact = centre(self.domain.count(records, columns))
            residuals[columns] = project(self._noisy(columns, exact, bits)) / self.domain.cells(columns)
        return MarginalRelease(self, residuals)

    def _noisy(self, columns: Columns, exact: Integers, bits: Bits | None) -> Integers:
        return self.noise(columns).release_array(exact, bits=bits)


@dataclass(frozen=True)
class MarginalRelease:
    """Noisy residuals, and the unbiased, mutually consistent tables they make. Reading costs nothing."""

    plan: MarginalPlan
    residuals: Mapping[Columns, Floats] = field(repr=False)

    @property
    def loss(self) -> ev.Event:
        """What was spent."""
        return self.plan.loss

    def table(self, columns: Sequence[str]) -> Floats:
        """The noisy marginal, floats with one axis per column in the order asked. Cells may be negative."""
        own = self.plan.covered(columns)
        shape = self.plan.domain.shape(own)
        out: Floats = np.zeros(shape)
        for b in subsets(own):
            if b in self.residuals:
                out += spread(self.residuals[b], b, own, shape)
        return np.asarray(out.transpose([own.index(c) for c in columns]))

    def total(self) -> Answer:
        """The noisy number of rows."""
        return self.sum(())

    def interval(self, columns: Sequence[str], confidence: Number = Fraction(95, 100)) -> tuple[Floats, Floats]:
        """(low, high) for every cell of a marginal, each of which holds its truth with this confidence."""
        table = self.table(columns)
        own = self.plan.covered(columns)
        reach = half_width(self.plan.variance(own), 1 / self.plan.domain.cells(own), confidence)
        return table - reach, table + reach

    def sum(self, columns: Sequence[str], weights: Any = None) -> Answer:
        """A weighted sum of the cells of one marginal, with its exact variance.

        weights: an array of the marginal's shape (truth values for a plain sum of some cells); None sums them all.
        """
        names = tuple(columns)
        own = self.plan.covered(names)
        shape = self.plan.domain.shape(names)
        given: Floats = np.ones(shape) if weights is None else np.asarray(weights, dtype=np.float64)
        if given.shape != shape or not bool(np.isfinite(given).all()):
            raise ParameterError(f"weights of shape {given.shape} were given; give finite numbers of shape {shape}.")
        value = float((self.table(names) * given).sum())
        ordered = given.transpose([names.index(c) for c in own])
        parts = [(b, _part(ordered, own, b)) for b in subsets(own) if b in self.residuals]
        variance = math.fsum(self.plan.sigma2(b) * float((g * g).sum()) for b, g in parts)
        step = max(float(np.abs(g).max(initial=0.0)) / self.plan.domain.cells(b) for b, g in parts)
        return Answer(value, variance, step)


def plan_marginals(
    domain: Domain,
    marginals: Iterable[Sequence[str]],
    *,
    rho: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    weights: Sequence[float] | None = None,
    objective: Objective = "total",
    unit_rows: int = 1,
) -> MarginalPlan:
    """The best split of rho (or of the rho of epsilon and delta) among the residuals of some marginals.

    weights: one per marginal, of each of its cells; all 1 if None. objective: the "total" weighted variance of all
    cells, or the "largest" weighted cell variance. unit_rows: how many rows a unit has at most.

    >>> people = Domain(("sex", "age"), (2, 3))
    >>> plan = plan_marginals(people, [("sex",), ("age",)], rho="1/2")
    >>> plan.loss, round(plan.rmse(), 4)
    (ZCDP(rho=Fraction(1, 2)), 1.2409)

    Raises ParameterError for unknown columns, no marginals, bad weights, or more cells than can be laid out.
    """
    amount = rho_from(rho, epsilon, delta)
    asked, importance = _asked(domain, marginals, weights)
    closure, entries = _variances(domain, asked)
    rows, columns, factors = entries
    costs = np.array([float(cost_factor(domain.shape(b))) for b in closure])
    if objective == "total":
        multiplicity = importance * np.array([domain.cells(m) for m in asked])
        values = np.bincount(columns, weights=multiplicity[rows] * factors, minlength=len(closure))
        best = _split(costs, values.astype(np.float64))
    elif objective == "largest":
        matrix = np.zeros((len(asked), len(closure)))
        matrix[rows, columns] = importance[rows] * factors
        best = _fair_split(costs, matrix)
    else:
        raise ParameterError(f"objective = {what_was_given(objective)} was asked; it is 'total' or 'largest'.")
    if not bool(np.isfinite(best).all()):
        raise ParameterError("weights so far apart, or so large, cannot be told from one another; give smaller ones.")
    whole = np.maximum(1, np.floor(best * _SHARES)).astype(object)
    whole[int(np.argmax(best))] += _SHARES - sum(whole)
    shares = {b: amount * Fraction(int(k), _SHARES) for b, k in zip(closure, whole, strict=True)}
    plan = MarginalPlan(domain, asked, amount, whole_number(unit_rows, "unit_rows"), shares)
    within_bits(map(plan.noise, shares), plan.unit_rows)
    return plan


def within_bits(noises: Iterable[Calibrated], unit_rows: int) -> None:
    """Raise ParameterError where a draw may leave 64 bits: when a release is planned, before anybody charges it."""
    worst = max(noise.sigma2 for noise in noises)
    if worst > MAX_SCALE**2:
        raise ParameterError(
            f"unit_rows = {unit_rows} was asked, and at this budget the noise for so many rows of a unit does not fit "
            "into 64 bits. Give fewer, or more budget."
        )


def _asked(
    domain: Domain, marginals: Iterable[Sequence[str]], weights: Sequence[float] | None
) -> tuple[tuple[Columns, ...], Floats]:
    """The marginals, each once, and their weights (those of repeated ones add up)."""
    listed = [domain.marginal(m) for m in marginals]
    if not listed:
        raise ParameterError("no marginals were asked; give at least one tuple of columns.")
    given = np.ones(len(listed)) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.shape != (len(listed),) or not bool(np.isfinite(given).all()) or bool((given <= 0).any()):
        raise ParameterError(f"{given.size} weights were given for {len(listed)} marginals; give one above 0 for each.")
    merged: dict[Columns, float] = {}
    for m, w in zip(listed, given, strict=True):
        merged[m] = merged.get(m, 0.0) + float(w)
    for m in merged:
        if domain.cells(m) > MAX_CELLS:
            raise ParameterError(
                f"the marginal over {m} has {domain.cells(m)} cells, of which at most {MAX_CELLS} are laid out. Ask "
                "fewer columns at once, declare coarser values, or ask for synthetic records (a tree or adaptive "
                "model), which never lays out a table that wide."
            )
    total = sum(domain.cells(m) for m in merged)
    if total > _MAX_TOTAL:
        raise ParameterError(
            f"the marginals have {total} cells together, of which at most {_MAX_TOTAL} fit one release. Ask fewer "
            "marginals, or ask for synthetic records instead."
        )
    return tuple(merged), np.array(list(merged.values()))


def _variances(domain: Domain, asked: tuple[Columns, ...]) -> tuple[list[Columns], tuple[Integers, Integers, Floats]]:
    """The closure, and w(A, B) as the entries of a matrix of shape (asked, closure): rows, columns and values, which
    are few. Residuals over one-valued columns are zero.
    """
    size = dict(zip(domain.columns, domain.sizes, strict=True))
    place: dict[Columns, int] = {}
    entries: list[tuple[int, int, float]] = []
    for i, m in enumerate(asked):
        own = [c for c in m if size[c] > 1]
        if 2 ** len(own) > _MAX_CLOSURE or len(place) > _MAX_CLOSURE:
            raise ParameterError(
                f"the marginals ask for more than {_MAX_CLOSURE} residuals; ask marginals of fewer columns."
            )
        # w(A, B) is a product over columns, so all subsets follow from smaller ones.
        weighted: list[tuple[Columns, float]] = [((), 1.0)]
        for c in own:
            n = size[c]
            weighted = [pair for b, w in weighted for pair in ((b, w / n**2), ((*b, c), w * (n - 1) / n))]
        entries += [(i, place.setdefault(b, len(place)), w) for b, w in weighted]
    rows, columns, values = zip(*entries, strict=True)
    return list(place), (np.array(rows), np.array(columns), np.array(values))


def _weight(shape: Mapping[str, int], own: Columns) -> float:
    return math.prod((n - 1) / n if c in own else 1 / n**2 for c, n in shape.items())


def _split(costs: Floats, values: Floats) -> Floats:
    """Shares of rho: sigma_B^2 ~ sqrt(p/v) makes p / sigma^2 ~ sqrt(p v)."""
    roots = np.sqrt(costs * values)
    return np.asarray(roots / roots.sum())


def _fair_split(costs: Floats, matrix: Floats) -> Floats:
    """Shares that minimise max_A (matrix sigma^2)_A, by multiplicative ascent of the dual T(lambda)^2."""
    multipliers = np.full(len(matrix), 1 / len(matrix))
    best, least = _split(costs, multipliers @ matrix), math.inf
    for _ in range(2000):
        values = multipliers @ matrix
        shares = _split(costs, values)
        variances = matrix @ (costs / shares)
        worst, bound = float(variances.max()), float(np.sqrt(costs * values).sum()) ** 2
        if worst < least:
            best, least = shares, worst
        if worst <= bound * (1 + _GAP):
            break
        multipliers *= variances / worst
        multipliers /= multipliers.sum()
    return best


def _part(weights: Floats, columns: Columns, own: Columns) -> Floats:
    """What a sum over the cells of `columns` takes of the residual on `own`: means over the rest, then projected."""
    rest = tuple(i for i, c in enumerate(columns) if c not in own)
    return project(weights.mean(axis=rest) if rest else weights)
