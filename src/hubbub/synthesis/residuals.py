"""The residual decomposition of marginals, on integers.

Let column j have n_j values, and P_j = I - J/n_j (J: all ones), the projection that takes the mean away. For a set A of
columns the *residual* of a table x is r_A = (tensor_{j in A} P_j) x_A, x_A its marginal on A: what the marginal knows
beyond all smaller ones. Residuals of different sets are orthogonal, and (Xiao, Li, Zhang, Kifer 2023, Theorem 1)

    x_A = sum over B within A of r_B / prod_{j in A - B} n_j       (spread evenly over the columns of A - B).

Their mechanism releases r_A with noise of covariance sigma_A^2 tensor P_j, at cost rho = p_A / (2 sigma_A^2) per added
or removed row, p_A = prod_{j in A} (n_j - 1)/n_j. Here that law is drawn on integers. C_A = tensor (n_j I - J) has
integer entries, and one row of the table moves C_A x_A by a vector of squared norm exactly prod n_j (n_j - 1), so

    y_A = C_A x_A + Z,   Z independent discrete Gaussian of parameter s_A^2,   costs   prod n_j (n_j - 1) / (2 s_A^2)

exactly, and (tensor P_j) y_A / prod n_j = r_A + noise of covariance sigma_A^2 tensor P_j with sigma_A = s_A / prod n_j:
the same cost and the same variance as theirs, with no float before the noise is in.

Units: rows of the table. The cell variance of x_A is sum over B of sigma_B^2 w(A, B), with
w(A, B) = prod_{j in B} (n_j - 1)/n_j prod_{j in A - B} 1/n_j^2 (their Theorem 4), the same for every cell.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["centre", "cost_factor", "project", "spread", "squared_move", "subsets"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def subsets(columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """All subsets of a tuple of columns, the empty one first, each in the order given."""
    return itertools.chain.from_iterable(itertools.combinations(columns, k) for k in range(len(columns) + 1))


def squared_move(sizes: Iterable[int]) -> int:
    """How far one row moves C_A x_A, squared: prod n (n - 1).

    >>> squared_move([3, 2])
    12
    """
    return math.prod(n * (n - 1) for n in sizes)


def cost_factor(sizes: Iterable[int]) -> Fraction:
    """p_A = prod (n - 1)/n.

    >>> cost_factor([3, 2])
    Fraction(1, 3)
    """
    return math.prod((Fraction(n - 1, n) for n in sizes), start=Fraction(1))


def centre(table: Integers) -> Integers:
    """C_A x_A: integers of the table's shape. Entries stay below rows * prod (n_j - 1) in size.

    >>> centre(np.array([3, 1, 2]))
    array([ 3, -3,  0])
    """
    out = table
    for axis, n in enumerate(table.shape):
        out = n * out - out.sum(axis=axis, keepdims=True)
    return out


def project(table: Any) -> Floats:
    """(tensor P_j) of a table of floats: every mean along every axis is taken away."""
    out = np.asarray(table, dtype=np.float64)
    for axis in range(out.ndim):
        out = out - out.mean(axis=axis, keepdims=True)
    return out


def spread(residual: Floats, own: Sequence[str], columns: Sequence[str], shape: Sequence[int]) -> Floats:
    """r_B / prod n_j, of a shape that broadcasts over the table of `columns`. own: B, in the order of `columns`."""
    others = math.prod(n for c, n in zip(columns, shape, strict=True) if c not in own)
    return np.asarray(residual).reshape([n if c in own else 1 for c, n in zip(columns, shape, strict=True)]) / others
