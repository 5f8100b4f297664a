"""The door of synthetic data: codes in, synthetic codes out, at an exact cost.

    plan                 the method, from schema, budget and number of rows (`planner`); nothing is read
    number of rows       declared, or bought with a fiftieth of the budget
    single columns       bought over values, cut into coarse parts (`parts`)
    joint marginals      bought over parts, as the method says (`optimal`, `tree`, `aim`)
    model, records       fitted and drawn: post-processing (`graphical`, `sampling`)

The whole is rho-zCDP by adaptive composition: its events add up to at most the rho asked, whatever the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import Event, Number
from hubbub.accounting.amounts import count
from hubbub.errors import ParameterError
from hubbub.noise import Bits
from hubbub.remedies import GiveOptions, LeaveOut
from hubbub.synthesis.aim import fit_adaptive
from hubbub.synthesis.constraints import Constraint
from hubbub.synthesis.domain import Domain
from hubbub.synthesis.graphical import JunctionTree, Model
from hubbub.synthesis.marginals import rho_from
from hubbub.synthesis.measurements import Curator
from hubbub.synthesis.optimal import fit_marginals
from hubbub.synthesis.parts import projected
from hubbub.synthesis.planner import MAX_JOINT, MOST_PARTS, SynthesisPlan, plan_synthesis
from hubbub.synthesis.probe import SHARE, Probe
from hubbub.synthesis.report import SynthesisReport
from hubbub.synthesis.sampling import draw_records, refine
from hubbub.synthesis.setting import Fitted, Setting, Support, begin
from hubbub.synthesis.tree import fit_tree

__all__ = ["SyntheticData", "check_rows", "prepared", "synthesize"]

Integers = NDArray[np.int64]

_MOST_ROWS = 50_000_000  # that are drawn
_MOST_NOISE = 1_000_000
_LEAST_BOUGHT = 2 / (SHARE * _MOST_NOISE**2)  # of rho, per squared sensitivity: so much is 2 sd of the bought number
_LEAST = Fraction(1, 10**12)
_LEAST_PER_MOVE = Fraction(1, 10**15)  # of rho, per squared sensitivity: all noise then fits into 53 bits


@dataclass(frozen=True)
class SyntheticData:
    """Synthetic records, what they cost, and how good they are predicted to be.

    codes: (rows, d), columns in the order of the domain. loss: the event that was run; rho: its exact cost, at most
    what was asked.
    """

    domain: Domain
    codes: Integers = field(repr=False)
    loss: Event = field(repr=False)
    rho: Fraction
    report: SynthesisReport

    @property
    def plan(self) -> SynthesisPlan:
        """What was run, and why."""
        return self.report.plan


def synthesize(
    codes: Any,
    domain: Domain,
    *,
    rho: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rows: int | None = None,
    rows_per_unit: int = 1,
    neighbours: str = "add_remove",
    method: str = "auto",
    thorough: bool = False,
    constraints: Sequence[Constraint] = (),
    iterations: int | None = None,
    first: Probe | None = None,
    bits: Bits | None = None,
) -> SyntheticData:
    """A synthetic table over `domain`, for rho-zCDP or for (epsilon, delta).

    codes: (n, d) integer codes (`Schema.encode` makes them), of which each unit has at most `rows_per_unit`. rows: the
    public number of rows, if it is public; None buys a noisy one. neighbours: "add_remove" or "replace". method: one of
    `METHODS`, or "auto". thorough: let "auto" pick the adaptive method. constraints: what no record may be. iterations:
    of the fit; None: 100, more for small domains and large budgets. first: a probe of the same rows that was drawn for
    its share of this budget (`hubbub.synthesis.probe`); its count then stands for the one that would be bought. bits: a
    bit source for tests.

    Raises ParameterError, before anything is spent, for codes outside the domain, a budget that is not positive, a
    method that cannot serve the domain, constraints that do not fit or allow nothing, and, where `rows` is declared,
    more than 50 million of them, or a budget too small to tell more than uniform records would.
    """
    budget = rho_from(rho, epsilon, delta)
    curator = Curator(domain.records(codes), domain, rows_per_unit, neighbours, bits)
    squared = curator.squared_sensitivity
    left = budget if first is None else budget * (1 - SHARE)
    support, plan = prepared(
        domain,
        rho=left,
        rows=rows,
        squared_sensitivity=squared,
        method=method,
        thorough=thorough,
        constraints=constraints,
    )
    if first is not None:
        curator.events.append(first.event)
    if rows is None:
        if first is None:
            noisy = curator.total(budget * SHARE)
            total, variance, left = float(noisy.counts), noisy.variance, budget - curator.spent
        else:
            total, variance = float(first.declared), float(first.variance)
        total = max(total, 0.0)
        # Planned for fewer rows than may have been drawn: noise must not promise what rows do not hold.
        sure = max(total - 2 * variance**0.5, 1.0)
        plan = plan_synthesis(
            domain, rho=left, rows=sure, method=method, squared_sensitivity=squared, thorough=thorough
        )
    else:
        total = float(rows)
    number = min(round(total), _MOST_ROWS)
    setting, fitted = _run(curator, plan, left, total, support.constraints, iterations or _iterations(domain, plan))
    drawn = _records(support, setting, fitted, number, bits)
    warnings: tuple[str, ...] = ()
    if not plan.beats_uniform:
        warnings += ("The budget does not beat uniform records; these are uniform.",)
    if round(total) > number:
        warnings += (f"Of about {round(total):,} rows {number:,} were drawn; scale counts by the quotient.",)
    report = SynthesisReport(domain, plan, number, warnings, setting, fitted, drawn)
    return SyntheticData(domain, drawn, curator.loss, curator.spent, report)


def check_rows(rows: int | None) -> None:
    """Raises ParameterError for more declared rows than are drawn."""
    if rows is not None and count(rows, "rows", least=0) > _MOST_ROWS:
        way = LeaveOut(("rows",))
        raise ParameterError(
            f"rows = {rows} was asked; a synthetic table has at most {_MOST_ROWS:,} rows. Ask {way.in_python()}: how "
            "many there are is then bought, and of more than that so many are drawn. Nothing was spent.",
            remedy=way,
        )


def prepared(
    domain: Domain,
    *,
    rho: Fraction,
    rows: int | None,
    squared_sensitivity: int,
    method: str = "auto",
    thorough: bool = False,
    constraints: Sequence[Constraint] = (),
) -> tuple[Support, SynthesisPlan]:
    """What the constraints allow, and a first plan: all that is known before a row is read.

    Raises ParameterError for whatever `synthesize` refuses, its codes aside. Without declared rows many are supposed.
    """
    least, why = max(_LEAST, _LEAST_PER_MOVE * squared_sensitivity), "no noise could be drawn. Give more."
    if rows is None and least < _LEAST_BOUGHT * squared_sensitivity:
        least = _LEAST_BOUGHT * squared_sensitivity
        why = f"an empty table could be answered with {_MOST_NOISE:,} rows of noise. Give more, or declare rows=."
    if rho < least:
        raise ParameterError(
            f"a budget of rho = {float(rho):.3g} was asked; below {float(least):g}, with as many rows of a unit as "
            f"were asked, {why}"
        )
    check_rows(rows)
    wide = max(domain.sizes)
    if wide > MAX_JOINT:
        raise ParameterError(
            f"a column has {wide} values, of which at most {MAX_JOINT} are laid out; declare coarser ones."
        )
    support = _support(domain, constraints)
    plan = plan_synthesis(
        domain,
        rho=rho,
        rows=10**6 if rows is None else rows,
        method=method,
        squared_sensitivity=squared_sensitivity,
        thorough=thorough,
    )
    if rows is not None and rows > 0 and method == "auto" and not plan.beats_uniform:
        more, uniform = GiveOptions(("epsilon",)), GiveOptions(("method",), ("uniform",))
        raise ParameterError(
            f"{plan.reason} Nothing was spent: ask with a larger amount, {more.in_python()}, or with "
            f"{uniform.in_python()} for uniform records.",
            remedy=(more, uniform),
        )
    # Where the number of rows is bought, the plan that runs is made for it, and may cut columns more finely.
    support.check(plan.parts if rows is not None else max(plan.parts, MOST_PARTS))
    return support, plan


def _support(domain: Domain, constraints: Sequence[Constraint]) -> Support:
    """The constraints over the domain's columns."""
    for constraint in constraints:
        if domain.cells(constraint.columns) > MAX_JOINT:
            raise ParameterError(
                f"a constraint over {constraint.columns} has {domain.cells(constraint.columns)} cells; at most "
                f"{MAX_JOINT} are laid out. State it over fewer columns, or declare coarser values."
            )
    return Support(domain, tuple(c.over(domain) for c in constraints))


def _iterations(domain: Domain, plan: SynthesisPlan) -> int:
    """Small problems and small noise are worth a closer fit."""
    return 300 if domain.universe <= plan.cells else 100 if plan.cells <= 10_000 else 250


def _run(
    curator: Curator,
    plan: SynthesisPlan,
    rho: Fraction,
    total: float,
    constraints: Sequence[Constraint],
    iterations: int,
) -> tuple[Setting | None, Fitted | None]:
    """Spend rho as the plan says."""
    if plan.method == "uniform":
        return None, None
    share = {"independent": Fraction(1), "joint": Fraction(1, 20)}.get(plan.method, plan.singles)
    # Tables over values: of the whole universe, or of single columns; constraints join columns, and are over parts.
    by_value = plan.method == "joint" or (plan.method == "independent" and not constraints)
    parts = max(curator.domain.sizes) if by_value else plan.parts
    setting = begin(curator, rho * share, total, parts=parts, cells=plan.cells, constraints=constraints)
    left = rho * (1 - share)
    match plan.method:
        case "joint":
            return setting, _joint(curator, setting, left)
        case "tree":
            return setting, fit_tree(curator, setting, left, iterations=iterations)
        case "marginals":
            return setting, fit_marginals(curator, setting, left, iterations=iterations)
        case "adaptive":
            return setting, fit_adaptive(curator, setting, left, iterations=iterations)
        case _:
            return setting, Fitted(setting.fit([], iterations=iterations), (), ())


def _joint(curator: Curator, setting: Setting, rho: Fraction) -> Fitted:
    """One histogram of the whole universe, projected on what is possible."""
    columns = setting.domain.columns
    (measured,) = curator.measure([columns], None, [rho])
    everything = tuple(range(len(columns)))
    tree = JunctionTree.of([everything], setting.sizes)
    allowed = np.ones(setting.sizes, np.bool_)
    for places, mask in setting.masks.items():
        allowed &= tree.spread(mask, places, 0)
    if not allowed.any():
        raise ParameterError("the constraints allow no record at all; drop one of them.")
    table = np.zeros(setting.sizes)
    table[allowed] = projected(measured.counts[allowed], max(setting.total, 1.0))
    model = Model(tree, (table / table.sum(),), 1.0)
    return Fitted(model, (measured,), (measured,))


def _records(
    support: Support, setting: Setting | None, fitted: Fitted | None, rows: int, bits: Bits | None
) -> Integers:
    """Records over parts, then values within parts; uniform ones where nothing was bought."""
    domain = support.domain
    if setting is None or fitted is None:
        model, parts = support.uniform(), support.parts
        shares = [np.full(size, 1 / size) for size in domain.sizes]
    else:
        model, parts, shares = fitted.model, dict(setting.parts), list(setting.singles)
    coarse = draw_records(model, rows, bits=bits)
    columns = [refine(coarse[:, j], parts[name], shares[j], bits=bits) for j, name in enumerate(domain.columns)]
    return np.asfortranarray(np.stack(columns, axis=1))
