"""The first step of a synthetic table: is there anything to make it of?

A row counts only if every column asked for has a declared value. Where hardly any row does (" Male" for "Male"), a
table would be paid in full and be empty. So a fiftieth of the budget asks how many do; where its answer says hardly
any, nothing else is drawn.

**Counts.** a: rows with declared values everywhere, of which each unit keeps at most R. b: other rows, of which a
unit with a_u of the first kind keeps at most R - a_u. The noisy a is asked for where the number of rows is public;
else (a, b), whose sum is the number of rows bought, and the noisy a the number of synthetic ones.

**Sensitivity.** A unit adds (a_u, b_u) with a_u + b_u <= R, both >= 0: at most R in l2. So adding or removing one
moves a, and (a, b), by at most R. Exchanging one for another moves a by at most R, for a_u and a_v lie in [0, R]; and
(a, b) by at most sqrt(2) R, from (R, 0) to (0, R). Discrete Gaussian noise of parameter sigma^2 on integers is S / (2
sigma^2)-zCDP for squared sensitivity S (Canonne, Kamath, Steinke 2020, Theorem 14).

**The whole.** Let rho be what is charged, before a row is read. The probe is rho/50-zCDP. What comes after is a
function of the probe's *output*: nothing, or a mechanism that is 49 rho/50-zCDP whatever that output was. By adaptive
composition (Bun, Steinke 2016, Lemma 2.3) the pair is rho-zCDP; and a transcript that stops after the probe is a
post-processing of the probe, so its loss is that of the probe alone. Hence giving back 49 rho/50 when it stops leaves
in the ledger an upper bound of the sum of the rhos of what ran. That sum stays within what was admitted, with the
amounts chosen by outputs: what the ledger's filter asks for (Whitehouse, Ramdas, Rogers, Wu 2023, Theorem 1). Whether
it stopped, and that something came back, is told by the probe's output, which is public by then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.accounting import Event
from hubbub.errors import InternalError
from hubbub.mechanisms.calibration import Spend, calibrated
from hubbub.noise import Bits

__all__ = ["SHARE", "Probe", "probe", "undeclared"]

SHARE = Fraction(1, 50)
"""Of the budget, for this step."""
_HARDLY = 10
_LEVEL = Fraction(95, 100)
_STEPS = 64


@dataclass(frozen=True)
class Probe:
    """What the first step said.

    declared: rows with declared values; rows: all of them, public or bought; reach: half of the 95 % interval of
    `declared`. event: what was run. variance: of the noise.
    """

    declared: int
    rows: int
    reach: int
    event: Event
    variance: Fraction

    @property
    def hardly_any(self) -> bool:
        """Whether at most a tenth of the rows have declared values, as far as 95 % of such answers tell."""
        return _HARDLY * (self.declared + self.reach) < self.rows


def probe(
    declared: int,
    others: int,
    *,
    rho: Fraction,
    rows: int | None,
    rows_per_unit: int,
    neighbours: str,
    bits: Bits | None = None,
) -> Probe:
    """The noisy counts, for rho-zCDP. declared, others: a and b of the exact counts; rows: the public number, or None.

    Raises InternalError for a relation that is neither "add_remove" nor "replace".
    """
    if neighbours not in ("add_remove", "replace"):
        raise InternalError(f"a probe for neighbours={neighbours!r}")
    counts = [declared] if rows is not None else [declared, others]
    squared = rows_per_unit**2 * (2 if rows is None and neighbours == "replace" else 1)
    noise = calibrated(
        spend=Spend(rho=rho), l2_squared=squared, rounded=lambda v: Fraction(math.ceil(v * _STEPS), _STEPS)
    )
    noisy = noise.release(counts, bits=bits)
    total = sum(noisy) if rows is None else rows
    return Probe(noisy[0], total, noise.law.half_width(_LEVEL), noise.event, noise.sigma2)


def undeclared(codes: Any, owners: Sequence[int] | None, rows_per_unit: int) -> int:
    """b: rows with a code of -1, of which a unit keeps what its other rows leave of `rows_per_unit`.

    codes: (n, d). owners: a number for each row's unit, -1 for none; None: each row is its own unit.

    >>> undeclared(np.array([[-1], [2], [-1], [-1]]), [0, 0, 0, -1], 2)
    1
    """
    within = (np.asarray(codes) >= 0).all(axis=1)
    if owners is None:
        return int((~within).sum())
    units = np.asarray(owners, np.int64)  # of no rows, too
    there = units >= 0
    size = int(units.max(initial=-1)) + 1
    kept = np.bincount(units[there & within], minlength=size)
    others = np.bincount(units[there & ~within], minlength=size)
    return int(np.minimum(others, np.maximum(rows_per_unit - kept, 0)).sum())
