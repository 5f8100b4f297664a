"""Queries: what is asked of a table, and how far one unit can move the answers.

Answers are exact integers (counts); shares divide by a public n. Sensitivities are computed from structure or by
trying all rows of a universe, under either neighbour relation, never assumed. Matrices are never built for families
that have a structure: a million queries take no million columns.

Given by hand   `Predicates`, `Linear`, `InnerProducts` (subset sums of private bits), `Stack`
Families        `Points`, `Thresholds`, `Ranges`, `AttributeMeans`, `Conjunctions`, `Marginals`
Sensitivity     `Sensitivity` (l0, l1, l2, linf), `Neighbours`, `brute_force`
"""

from hubbub.queries.families import AttributeMeans, Conjunctions, Marginals, Points, Ranges, Thresholds
from hubbub.queries.sensitivity import Neighbours, Sensitivity, brute_force
from hubbub.queries.workload import InnerProducts, Linear, Predicates, Stack, Workload

__all__ = [
    "AttributeMeans",
    "Conjunctions",
    "InnerProducts",
    "Linear",
    "Marginals",
    "Neighbours",
    "Points",
    "Predicates",
    "Ranges",
    "Sensitivity",
    "Stack",
    "Thresholds",
    "Workload",
    "brute_force",
]


def __dir__() -> list[str]:
    return sorted(__all__)
