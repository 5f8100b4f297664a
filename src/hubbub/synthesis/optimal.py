"""All pairs at once, at least noise: marginals over parts by residuals, the graph chosen from noisy answers.

One noise-optimal release (`marginals`, `residuals`) of all pairs of columns over parts (of very wide tables, of the
smallest that fit into one); of all triples where the whole universe over parts fits into one clique. What follows is
free: the dependence of a pair is the l1 distance of its noisy shares from the product of its columns, less what noise
alone would give (0.8 s per cell); pairs enter the graph by dependence while its cliques stay small (`graphical.grow`).
The model is fitted to the residuals themselves, whose noises are independent. No selection is paid for, and every pair,
also one that a tree would leave out, is seen.

Weights: cells^(-1/2) per cell, which evens out l1 errors between small tables and large ones.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np

from hubbub.synthesis.domain import Domain
from hubbub.synthesis.graphical import Clique, JunctionTree, Target, estimate
from hubbub.synthesis.marginals import MarginalRelease, plan_marginals, within_limits
from hubbub.synthesis.measurements import Curator, Measurement
from hubbub.synthesis.setting import Fitted, Setting

__all__ = ["dependence", "fit_marginals", "pairs_of"]

_NORMAL_MEAN = 0.8  # E|Z| of a standard normal variable, rounded
_LEAST_DEPENDENCE = 0.003
_LEAST_VARIANCE = 1 / 64
"""The least that a model is fitted with: at a very large rho the noise of whole counts is 0 but once in ever, and its
variance less than the least double."""


def pairs_of(setting: Setting) -> list[tuple[int, int]]:
    """All pairs of columns of which each has two parts at least."""
    return list(combinations(_varied(setting), 2))


def _varied(setting: Setting) -> list[int]:
    return [j for j, size in enumerate(setting.sizes) if size > 1]


def fit_marginals(curator: Curator, setting: Setting, rho: Fraction, *, iterations: int = 100) -> Fitted:
    """The model of all pairs (or triples) that fit into a graph, bought at rho."""
    varied = _varied(setting)
    whole = math.prod(setting.sizes) <= setting.cells
    width = min(3 if whole else 2, len(varied))
    wanted = list(combinations(varied, width)) if width else []
    kept = within_limits([math.prod(setting.sizes[a] for a in c) for c in wanted])
    if not kept:
        return Fitted(setting.fit([], iterations=iterations), (), ())
    coarse = Domain(setting.domain.columns, setting.sizes)
    names = [setting.names(wanted[place]) for place in kept]
    plan = plan_marginals(
        coarse,
        names,
        rho=rho,
        weights=[1 / math.sqrt(coarse.cells(c)) for c in names],
        unit_rows=curator.marginal_rows,
    )
    release = curator.release(plan, setting.parts)
    tables = [Measurement(c, release.table(c), max(plan.variance(c), _LEAST_VARIANCE)) for c in names]
    if width == 2:
        ordered = sorted(((dependence(setting, m), m) for m in tables), key=lambda scored: -scored[0])
        taken = setting.graph([setting.places(m.columns) for d, m in ordered if d > _LEAST_DEPENDENCE])
    else:
        taken = setting.graph([setting.places(m.columns) for m in tables])
    return _fit(setting, release, taken, tables, iterations)


def _fit(
    setting: Setting, release: MarginalRelease, taken: list[Clique], tables: list[Measurement], iterations: int
) -> Fitted:
    scale = max(setting.total, 1.0)
    cliques = [set(c) for c in taken]
    targets = setting.targets([])
    for columns, residual in release.residuals.items():
        places = setting.places(columns)
        if len(places) == 1 or (places and any(set(places) <= c for c in cliques)):
            deviation = math.sqrt(max(release.plan.sigma2(columns), _LEAST_VARIANCE)) / scale
            targets.append(Target(places, residual / scale, deviation, centred=True))
    tree = JunctionTree.of([*setting.masks, *(t.columns for t in targets)], setting.sizes)
    model = estimate(tree, targets, setting.base, masks=setting.masks, iterations=iterations)
    chosen = set(taken)
    used = tuple(m for m in tables if setting.places(m.columns) in chosen)
    return Fitted(model, used, tuple(tables))


def dependence(setting: Setting, measured: Measurement) -> float:
    """How far a noisy pair is from independence, as a total-variation distance, less what noise alone would give."""
    base = setting.base
    a, b = setting.places(measured.columns)
    scale = max(setting.total, 1.0)
    distance = float(np.abs(measured.counts / scale - np.outer(base[a], base[b])).sum()) / 2
    return distance - _NORMAL_MEAN / 2 * measured.counts.size * math.sqrt(measured.variance) / scale
