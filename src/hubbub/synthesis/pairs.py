"""All pairs at once: every two-way marginal over parts, measured together; the graph is chosen from noisy answers.

One release of all d (d - 1) / 2 pairs, each at a cost proportional to its cells^(2/3) (`measurements`). What follows is
free: the dependence of a pair is the l1 distance of its noisy shares from the product of its columns, less what noise
alone would give (0.8 s per cell); pairs enter the graph by dependence while its cliques stay small (`graphical.grow`).
No selection is paid for, and every pair, also one that a tree would leave out, is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from hubbub.synthesis.measurements import Curator, Measurement, shares
from hubbub.synthesis.setting import Fitted, Setting

__all__ = ["dependence", "fit_pairs", "pairs_of"]

_NORMAL_MEAN = 0.8  # E|Z| of a standard normal variable, rounded
_LEAST_DEPENDENCE = 0.003


def pairs_of(setting: Setting) -> list[tuple[int, int]]:
    """All pairs of columns of which each has two parts at least."""
    varied = [j for j, size in enumerate(setting.sizes) if size > 1]
    return list(combinations(varied, 2))


def fit_pairs(
    curator: Curator, setting: Setting, rho: Fraction, *, iterations: int = 100
) -> Fitted:
    """The model of all pairs that fit into a graph, bought at rho."""
    pairs = pairs_of(setting)
    measured = _buy(curator, setting, pairs, rho)
    ordered = sorted(measured, key=lambda m: -dependence(setting, m))
    wanted = [setting.places(m.columns) for m in ordered if dependence(setting, m) > _LEAST_DEPENDENCE]
    taken = set(setting.graph(wanted))
    used = [m for m in measured if setting.places(m.columns) in taken]
    return Fitted(setting.fit(used, iterations=iterations), tuple(used), tuple(measured))


def _buy(
    curator: Curator, setting: Setting, pairs: Sequence[tuple[int, ...]], rho: Fraction
) -> list[Measurement]:
    if not pairs:
        return []
    cells = [int(np.prod([setting.sizes[a] for a in pair])) for pair in pairs]
    return curator.measure([setting.names(pair) for pair in pairs], setting.parts, shares(rho, cells))


def dependence(setting: Setting, measured: Measurement) -> float:
    """How far a noisy pair is from independence, as a total-variation distance, less what noise alone would give."""
    base = setting.base
    a, b = setting.places(measured.columns)
    scale = max(setting.total, 1.0)
    distance = float(np.abs(measured.counts / scale - np.outer(base[a], base[b])).sum()) / 2
    return distance - _NORMAL_MEAN / 2 * measured.counts.size * measured.variance**0.5 / scale
