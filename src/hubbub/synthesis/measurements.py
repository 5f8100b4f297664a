"""Buying marginals and choices: the only place of the synthesis of records that looks at private rows.

*Measuring.* The marginal of some columns over coarse cells is a vector of counts. Where a unit has at most R rows, and
the rows of units add up, adding or removing a unit moves it by at most R in l2 (all rows in one cell, the worst case);
replacing one moves it by at most sqrt(2) R (R rows leave one cell, R enter another). Independent discrete Gaussian
noise of parameter sigma^2 on every cell is S / (2 sigma^2)-zCDP for squared sensitivity S = R^2 or 2 R^2 (Canonne,
Kamath, Steinke 2020, Theorem 14).

*Sharing.* Marginals with c cells each at cost rho_c have a total expected l1 error proportional to sum c / sqrt(rho_c),
which rho_c proportional to c^(2/3) makes least (by Lagrange; the same split as that of PrivSyn, Zhang et al. 2021).

*Choosing.* A candidate's score is ||n - m||_1 over its cells, minus a public penalty: n the exact counts, m the counts
of a public model rounded to integers. One unit moves it by at most R (add/remove) or 2 R (replace), so the exponential
mechanism at epsilon, with that sensitivity, is epsilon^2/8-zCDP (Cesar, Rogers 2021, Lemma 3.2).

All costs are exact rationals; variances are multiples of 1/64, rounded up, so that a cost is never above its share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import ZCDP, BoundedRange, Composed, Event, cost
from hubbub.accounting.amounts import count
from hubbub.errors import InternalError, ParameterError, what_was_given
from hubbub.mechanisms import ExponentialMechanism
from hubbub.mechanisms.calibration import Calibrated, Spend, calibrated
from hubbub.mechanisms.recording import through
from hubbub.noise import Bits, gaussian
from hubbub.synthesis.domain import Domain
from hubbub.synthesis.marginals import MarginalPlan, MarginalRelease

__all__ = ["Curator", "Measurement", "Parts", "choice_epsilon", "shares"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Parts = Mapping[str, Integers]
"""For each column, the coarse part that each of its values belongs to."""

_STEPS = 64


@dataclass(frozen=True)
class Measurement:
    """A noisy marginal: counts over coarse cells, and the variance of the noise on each."""

    columns: tuple[str, ...]
    counts: Floats
    variance: float

    def __post_init__(self) -> None:
        if self.counts.ndim != len(self.columns) or self.variance <= 0:
            raise InternalError(f"a measurement over {self.columns} has {self.counts.ndim} axes")


def shares(rho: Fraction, cells: Sequence[int]) -> list[Fraction]:
    """rho split over marginals in proportion to cells^(2/3), in whole thousandths.

    >>> shares(Fraction(1), [1, 8])
    [Fraction(1, 5), Fraction(4, 5)]
    """
    weights = [round(1000 * c ** (2 / 3)) for c in cells]
    return [rho * w / sum(weights) for w in weights]


def choice_epsilon(rho: Fraction) -> Fraction:
    """The largest epsilon of nine digits whose exponential mechanism costs at most rho: epsilon^2 / 8 <= rho."""
    root = math.isqrt(8 * rho.numerator * 10**18 // rho.denominator)
    return Fraction(root, 10**9)


def _rounded_up(variance: Fraction) -> Fraction:
    """A multiple of 1/64 that is a float: the noise of many cells is drawn from floats, of 53 digits."""
    steps = math.ceil(variance * _STEPS)
    spare = max(0, steps.bit_length() - 53)
    return Fraction(-(-steps >> spare) << spare, _STEPS)


def _countable(model: Integers) -> Integers:
    """A public model's counts, cut so that its distance from real ones is a 64-bit number.

    One that wrapped around would move by 2^64 with one row.
    """
    most = 2**62 // max(1, model.size)
    return np.clip(model, -most, most)


@dataclass
class Curator:
    """Holds private codes, answers only with noise, and keeps the events of what it answered.

    codes: (n, d), as `Domain.records` gives them, of which each unit has at most `rows_per_unit` rows; neighbours:
    "add_remove" or "replace". bits: a bit source for tests.
    """

    codes: Integers = field(repr=False)
    domain: Domain
    rows_per_unit: int = 1
    neighbours: str = "add_remove"
    bits: Bits | None = field(default=None, repr=False)
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        count(self.rows_per_unit, "rows_per_unit")
        if self.neighbours not in ("add_remove", "replace"):
            raise ParameterError(
                f"neighbours={what_was_given(self.neighbours)} was asked; it is 'add_remove' or 'replace'."
            )

    @property
    def squared_sensitivity(self) -> int:
        """How far one unit moves a marginal, in squared l2."""
        return self.rows_per_unit**2 * (1 if self.neighbours == "add_remove" else 2)

    @property
    def score_sensitivity(self) -> int:
        """How far one unit moves an l1 distance of counts."""
        return self.rows_per_unit * (1 if self.neighbours == "add_remove" else 2)

    @property
    def loss(self) -> Event:
        """The event of everything answered so far."""
        return Composed(self.events) if self.events else ZCDP(0)

    @property
    def spent(self) -> Fraction:
        """The exact rho of everything answered so far."""
        return sum((cost(event).rho for event in self.events), Fraction(0))

    def noise(self, rho: Fraction) -> Calibrated:
        """The noise of a marginal at cost rho at most: of a variance that is a multiple of 1/64 and a float."""
        if rho <= 0:
            raise ParameterError(f"rho = {rho} was asked of a marginal; its cost must be positive.")
        return calibrated(spend=Spend(rho=rho), l2_squared=self.squared_sensitivity, rounded=_rounded_up)

    def total(self, rho: Fraction) -> Measurement:
        """The noisy number of rows."""
        noise = self.noise(rho)
        self.events.append(noise.event)
        (noisy,) = noise.release([len(self.codes)], bits=self.bits)
        return Measurement((), np.asarray(float(noisy)), float(noise.sigma2))

    def measure(
        self, marginals: Sequence[tuple[str, ...]], parts: Parts | None, rhos: Sequence[Fraction]
    ) -> list[Measurement]:
        """Noisy marginals over coarse cells (over values where `parts` is None), each at its own cost.

        Raises ParameterError for a marginal of more than 2^24 cells.
        """
        noises = [self.noise(rho) for rho in rhos]
        variances = [noise.sigma2 for noise in noises]
        self.events.extend(noise.event for noise in noises)
        tables = [self._count(columns, parts) for columns in marginals]
        # The noise of all cells is drawn at once, each with exactly the variance that was charged.
        drawn = [float(v) for v in variances]
        if any(Fraction(f) != v for f, v in zip(drawn, variances, strict=True)):
            raise InternalError("a variance is not a float, so that other noise would be drawn than was charged")
        each = np.repeat(drawn, [t.size for t in tables])
        all_noise = gaussian(variance=each, size=each.shape, bits=self.bits)
        pieces = np.split(all_noise, np.cumsum([t.size for t in tables])[:-1])
        return [
            Measurement(tuple(columns), self._noisy(table, z, noise), float(noise.sigma2))
            for columns, table, z, noise in zip(marginals, tables, pieces, noises, strict=True)
        ]

    def _noisy(self, table: Integers, drawn: Integers, noise: Calibrated) -> Floats:
        """The door where counts and noise meet."""
        noisy = through(
            table.ravel(),
            sensitivity=noise.sensitivity,
            norm="l2_squared",
            law=noise.law,
            draw=lambda: table.ravel() + drawn,
        )
        return np.array(noisy, np.float64).reshape(table.shape)

    @property
    def marginal_rows(self) -> int:
        """The `unit_rows` of a plan of marginals: exchanging R rows is adding and removing, 2 R moves in a row."""
        return self.rows_per_unit * (1 if self.neighbours == "add_remove" else 2)

    def release(self, plan: MarginalPlan, parts: Parts) -> MarginalRelease:
        """A noise-optimal release of marginals over parts; the plan was made for `marginal_rows`."""
        if plan.unit_rows != self.marginal_rows:
            raise InternalError(f"a plan for {plan.unit_rows} rows was given where a unit moves {self.marginal_rows}")
        self.events.append(plan.loss)
        return plan.release(self._coarse(parts)[0], bits=self.bits)

    def choose(
        self,
        candidates: Sequence[tuple[str, ...]],
        models: Sequence[Integers],
        penalties: Sequence[int],
        parts: Parts | None,
        rho: Fraction,
        *,
        weights: Sequence[int] | None = None,
    ) -> int:
        """The place of a candidate whose exact marginal is far from the model's, at cost rho at most.

        models: whole counts, one table per candidate; penalties, weights (1 by default): whole numbers, from public
        values only. A score is multiplied by its weight, and the sensitivity by the largest.
        """
        scores, mechanism = self._choice(candidates, models, penalties, parts, rho, weights)
        self.events.append(BoundedRange(mechanism.epsilon))
        return mechanism.release(scores, bits=self.bits)

    def log_probs(
        self,
        candidates: Sequence[tuple[str, ...]],
        models: Sequence[Integers],
        penalties: Sequence[int],
        parts: Parts | None,
        rho: Fraction,
        *,
        weights: Sequence[int] | None = None,
    ) -> Floats:
        """ln P(place) of `choose`, exactly: private, for the checker."""
        scores, mechanism = self._choice(candidates, models, penalties, parts, rho, weights)
        return mechanism.log_probs(scores)

    def _choice(
        self,
        candidates: Sequence[tuple[str, ...]],
        models: Sequence[Integers],
        penalties: Sequence[int],
        parts: Parts | None,
        rho: Fraction,
        weights: Sequence[int] | None,
    ) -> tuple[list[int], ExponentialMechanism]:
        factors = [1] * len(candidates) if weights is None else list(weights)
        scores = [
            w * (int(np.abs(self._count(columns, parts) - _countable(model)).sum()) - int(penalty))
            for w, columns, model, penalty in zip(factors, candidates, models, penalties, strict=True)
        ]
        epsilon = choice_epsilon(rho)
        if epsilon <= 0:
            raise ParameterError(f"rho = {float(rho):g} was asked of a choice; it is too small for any.")
        return scores, ExponentialMechanism(epsilon=epsilon, sensitivity=self.score_sensitivity * max(factors))

    def _count(self, columns: tuple[str, ...], parts: Parts | None) -> Integers:
        if parts is None:
            return self.domain.count(self.codes, columns)
        coarse, sizes = self._coarse(parts)
        if columns not in self._tables:
            self._tables[columns] = self._coarse_count(columns, coarse, sizes)
        return self._tables[columns]

    def _coarse_count(self, columns: tuple[str, ...], coarse: Integers, sizes: Sequence[int]) -> Integers:
        shape = tuple(sizes[self.domain.place(c)] for c in columns)
        flat: Integers = np.zeros(len(self.codes), np.int64)
        for column, size in zip(columns, shape, strict=True):
            flat *= size
            flat += coarse[:, self.domain.place(column)]
        return np.bincount(flat, minlength=math.prod(shape)).reshape(shape)

    def _coarse(self, parts: Parts) -> tuple[Integers, list[int]]:
        """The codes by parts; kept, with their marginals, while the parts are the same object."""
        if self._kept is None or self._kept[0] is not parts:
            columns = [parts[c][self.codes[:, j]] for j, c in enumerate(self.domain.columns)]
            sizes = [int(parts[c].max()) + 1 for c in self.domain.columns]
            self._tables.clear()
            self._kept = (parts, np.stack(columns, axis=1).astype(np.int64, order="F"), sizes)
        return self._kept[1], self._kept[2]

    _kept: tuple[Parts, Integers, list[int]] | None = field(default=None, init=False, repr=False)

    _tables: dict[tuple[str, ...], Integers] = field(default_factory=dict, init=False, repr=False)

    def __reduce__(self) -> str:
        raise InternalError("a curator holds private rows and cannot be pickled")
