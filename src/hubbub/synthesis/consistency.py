"""Post-processing of noisy tables: agreement, no negative cells, whole numbers. All optional, and free.

Noisy tables are released, hence public: any function of them keeps their privacy (Dwork, Roth 2014, Proposition 2.1).
It costs something else: unbiasedness, and with it the stated variances and intervals, which hold for the tables as
drawn.

*Agreement.* Tables y_A with independent noise of variance v_A per cell. In the residual basis (`residuals`) the least-
squares tables that have all shared marginals in common are, one residual at a time, averages: the residual on B of the
marginal of y_A has noise v_A prod_{j in A - B} n_j, so r_B averages those of all A that hold B with these precisions.
*No negative cells.* The nearest table in the Euclidean norm: with a total T, max(x - t, 0) with t such that the sum
is T (Duchi, Shalev-Shwartz, Singer, Chandra 2008); without, max(x, 0).
*Both.* The nearest point of the two convex sets, by Dykstra's alternating projections.
*Whole numbers.* Largest remainders: cells move by less than 1, and the sum is the rounded total. Several tables that
share marginals cannot in general be rounded so that they still agree; each is rounded by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.synthesis.domain import Domain
from hubbub.synthesis.residuals import project, spread, subsets

__all__ = ["agreeing", "disagreement", "nonnegative", "nonnegative_agreeing", "whole_numbers"]

Columns = tuple[str, ...]
Floats = NDArray[np.float64]
Tables = Mapping[Columns, Any]


def nonnegative(table: Any, *, total: float | None = None) -> Floats:
    """The nearest table without negative cells, with this sum if given.

    >>> nonnegative([3.0, -1.0, 2.0], total=4.0)
    array([2.5, 0. , 1.5])

    Raises ParameterError for cells that are not finite, or a negative total.
    """
    cells = _finite(table)
    if total is None:
        return np.asarray(np.maximum(cells, 0.0))
    if not (math.isfinite(total) and total >= 0):
        raise ParameterError(f"total = {total} was asked of a table of counts; give a finite number of at least 0.")
    falling = np.sort(cells.ravel())[::-1]
    # The k largest cells stay positive: their common cut t keeps the sum, and the next cell is not above it.
    cuts = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    kept = max(1, int(np.count_nonzero(falling > cuts)))
    return np.asarray(np.maximum(cells - cuts[kept - 1], 0.0))


def whole_numbers(table: Any, *, total: int | None = None) -> NDArray[np.int64]:
    """Whole cells of at least 0: each within 1 of the nonnegative table of the same sum, the sum exact.

    >>> whole_numbers([1.6, 0.3, 2.1])
    array([2, 0, 2])
    """
    cells = _finite(table)
    wanted = max(0, round(float(cells.sum()))) if total is None else total
    near = nonnegative(cells, total=float(wanted))
    low = np.floor(near).astype(np.int64)
    missing = wanted - int(low.sum())
    # Ties go to the earlier cell, so that the same table is always rounded alike.
    order = np.argsort(-(near - low).ravel(), kind="stable")
    low.ravel()[order[:missing]] += 1
    return low


def agreeing(
    domain: Domain, tables: Tables, *, variances: Mapping[Columns, float] | None = None
) -> dict[Columns, Floats]:
    """The least-squares tables that agree on every marginal they share.

    tables: marginal -> array with one axis per column, in the order of its name. variances: of each table's cells; all
    alike if None.

    >>> found = agreeing(Domain(("a", "b"), (2, 2)), {("a",): [4.0, 0.0], ("a", "b"): [[1.0, 1.0], [0.0, 0.0]]})
    >>> found[("a",)]
    array([3.33333333, 0.        ])
    """
    given = _tables(domain, tables)
    sums: dict[frozenset[str], Floats] = {}
    weights: dict[frozenset[str], float] = {}
    for columns, table in given.items():
        variance = 1.0 if variances is None else float(variances[columns])
        if not (variance > 0 and math.isfinite(variance)):
            raise ParameterError(f"the variance {variance} was given for {columns}; give a number above 0.")
        for own in subsets(columns):
            rest = tuple(i for i, c in enumerate(columns) if c not in own)
            precision = 1 / (variance * math.prod(table.shape[i] for i in rest))
            residual = precision * project(table.sum(axis=rest)) if rest else precision * project(table)
            key, ordered = frozenset(own), _ordered(residual, own, domain.marginal(own))
            sums[key] = sums.get(key, 0.0) + ordered
            weights[key] = weights.get(key, 0.0) + precision
    out = {}
    for columns in given:
        own = domain.marginal(columns)
        shape = domain.shape(own)
        table = np.zeros(shape)
        for b in subsets(own):
            table += spread(sums[frozenset(b)] / weights[frozenset(b)], b, own, shape)
        out[columns] = np.asarray(table.transpose([own.index(c) for c in columns]))
    return out


def nonnegative_agreeing(
    domain: Domain,
    tables: Tables,
    *,
    total: float | None = None,
    variances: Mapping[Columns, float] | None = None,
    rounds: int = 200,
) -> dict[Columns, Floats]:
    """Tables without negative cells that agree with each other (`disagreement` says how nearly), all of one total.

    total: the least-squares one if None, at least 0. Stops after `rounds` alternations.
    """
    now = agreeing(domain, tables, variances=variances)
    amount = max(0.0, float(next(iter(now.values())).sum())) if total is None else total
    corrections = {c: np.zeros_like(t) for c, t in now.items()}
    best = {c: nonnegative(t, total=amount) for c, t in now.items()}
    for _ in range(rounds):
        pushed = {c: t + corrections[c] for c, t in now.items()}
        best = {c: nonnegative(t, total=amount) for c, t in pushed.items()}
        corrections = {c: pushed[c] - best[c] for c in best}
        now = agreeing(domain, best, variances=variances)
        if max(float(np.abs(now[c] - best[c]).max()) for c in now) <= 1e-6 * max(1.0, amount):
            break
    return best


def disagreement(domain: Domain, tables: Tables) -> float:
    """The largest difference between two tables on a cell of a marginal that they share."""
    given = _tables(domain, tables)
    seen: dict[Columns, tuple[Floats, Floats]] = {}
    for columns, table in given.items():
        for own in subsets(columns):
            rest = tuple(i for i, c in enumerate(columns) if c not in own)
            shared = _ordered(table.sum(axis=rest) if rest else table, own, domain.marginal(own))
            low, high = seen.get(domain.marginal(own), (shared, shared))
            seen[domain.marginal(own)] = np.minimum(low, shared), np.maximum(high, shared)
    return max(float(np.max(high - low)) for low, high in seen.values())


def _tables(domain: Domain, tables: Tables) -> dict[Columns, Floats]:
    if not tables:
        raise ParameterError("no tables were given; give at least one, by the names of its columns.")
    out = {}
    for columns, table in tables.items():
        domain.marginal(columns)
        cells = _finite(table)
        if cells.shape != domain.shape(columns):
            raise ParameterError(
                f"the table on {columns} has shape {cells.shape}; the domain says {domain.shape(columns)}."
            )
        out[columns] = cells
    return out


def _ordered(table: Any, columns: Sequence[str], wanted: Sequence[str]) -> Floats:
    """The axes of a table on `columns` in the order of `wanted`."""
    return np.asarray(table).transpose([list(columns).index(c) for c in wanted])


def _finite(table: Any) -> Floats:
    cells = np.asarray(table, dtype=np.float64)
    if cells.size == 0 or not bool(np.isfinite(cells).all()):
        raise ParameterError("a table of finite numbers is needed, with at least one cell.")
    return cells
