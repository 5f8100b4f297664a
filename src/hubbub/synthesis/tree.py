"""A tree of pairs, chosen by the exponential mechanism (Chow, Liu 1968; privately as in McKenna, Miklau, Sheldon 2021,
"Winning the NIST contest", and Zhang et al. 2017, "PrivBayes").

d - 1 times: among the pairs that join two components of the forest so far, choose one whose exact counts (over parts)
are far in l1 from those of independent columns; the score moves by at most R (2 R under replace) with one unit,
whatever the answers so far, so a choice at epsilon is epsilon^2/8-zCDP. Then the d - 1 chosen pairs are measured. The
model of a tree is exact: its cliques are the pairs.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.synthesis.measurements import Curator, shares
from hubbub.synthesis.optimal import pairs_of
from hubbub.synthesis.setting import Fitted, Setting

__all__ = ["choose_tree", "fit_tree"]

_CHOOSING = Fraction(1, 10)


def choose_tree(curator: Curator, setting: Setting, rho: Fraction) -> list[tuple[int, int]]:
    """The edges of a spanning tree of the columns, bought at rho."""
    groups = list(range(len(setting.sizes)))
    models = {pair: independent_counts(setting, pair) for pair in pairs_of(setting)}
    edges: list[tuple[int, int]] = []
    varied = sum(size > 1 for size in setting.sizes)
    for _ in range(varied - 1):
        candidates = [p for p in models if groups[p[0]] != groups[p[1]]]
        chosen = curator.choose(
            [setting.names(p) for p in candidates],
            [models[p] for p in candidates],
            [0] * len(candidates),
            setting.parts,
            rho / (varied - 1),
        )
        a, b = candidates[chosen]
        edges.append((a, b))
        groups = [groups[a] if g == groups[b] else g for g in groups]
    return edges


def independent_counts(setting: Setting, pair: tuple[int, int]) -> NDArray[np.int64]:
    """The whole counts that a pair would have if its columns were independent."""
    base = setting.base
    return np.rint(max(setting.total, 0.0) * np.outer(base[pair[0]], base[pair[1]])).astype(np.int64)


def fit_tree(curator: Curator, setting: Setting, rho: Fraction, *, iterations: int = 100) -> Fitted:
    """The model of a tree of pairs: a tenth of rho chooses, the rest measures."""
    edges = choose_tree(curator, setting, rho * _CHOOSING)
    if not edges:
        return Fitted(setting.fit([], iterations=iterations), (), ())
    cells = [setting.sizes[a] * setting.sizes[b] for a, b in edges]
    measured = curator.measure([setting.names(e) for e in edges], setting.parts, shares(rho * (1 - _CHOOSING), cells))
    taken = set(setting.graph(edges))
    used = [m for m in measured if setting.places(m.columns) in taken]
    return Fitted(setting.fit(used, iterations=iterations), tuple(used), tuple(measured))
