"""What noisy integers are turned into: estimates, intervals and forecasts of every aggregate, as recorded.

Each case is a few aggregates over one small table, with ranges, bounds and an amount drawn by a fixed seed, from no
rows to hundreds of them; the noise comes from a seeded bit source. `HUBBUB_GOLDEN=write` writes the recordings anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from random import Random
from typing import Any, get_args

import numpy as np
import pytest

import hubbub as hb
from golden.kept import Kept
from hubbub.errors import HubbubError
from hubbub.tables.aggregate_query import Aggregate
from hubbub.tables.aggregates import FUNCTIONS
from hubbub.tables.columns import Declaration
from hubbub.tables.declare import Neighbours
from hubbub.tables.draw_release import draw
from hubbub.tables.estimates import expected, read
from hubbub.tables.expressions import Column
from hubbub.tables.measure import Bounds
from hubbub.tables.price import Spend, make_price
from seeded import SeededBits
from tables.made import Row, X, Y, measured, plan

COUNT, PARTS = 150, 15
ONE = ["COUNT_VALUES", "SUM", "AVG", "VAR_SAMP", "VAR_POP", "STDDEV_SAMP", "STDDEV_POP", "COUNT_DISTINCT", "GEOMEAN"]
TWO = ["COVAR_SAMP", "COVAR_POP", "CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2"]
SHARES = ["0.5", "0.25", "0.01", "1", "0"]
AGGREGATES = [
    *(Aggregate(FUNCTIONS[name]) for name in ("COUNT_ROWS", "COUNT_UNITS")),
    *(Aggregate(FUNCTIONS[name], (column,)) for name in ONE for column in (X, Y)),
    *(Aggregate(FUNCTIONS[name], pair) for name in TWO for pair in ((X, Y), (Y, X))),
    *(Aggregate(FUNCTIONS["QUANTILE"], (column,), Fraction(share)) for column in (X, Y) for share in SHARES),
    *(Aggregate(FUNCTIONS[name], (X,)) for name in ("MIN", "MAX")),
]
XS: list[Declaration] = [
    *(hb.between(0, 100), hb.between(0, 100, nullable=False), hb.between(-1, 1), hb.between(1, 10**6)),
    *(hb.between(0.001, 0.002), hb.between(5, 9, nullable=False), hb.between(-(10**12), 10**12)),
]
YS: list[Declaration] = [hb.between(-4, 4), hb.between(0, 1, nullable=False), hb.between(-1000, -10)]
SPENDS = [
    *(Spend(epsilon=Fraction(e)) for e in ("1/50", "1/2", "3", "1000")),
    *(Spend(rho=Fraction(r)) for r in ("1/5000", "1/8", "50")),
]
BOUNDS = [Bounds(1, 1), Bounds(2, 1), Bounds(1, 3), Bounds(2, 4)]


def _rows(chance: Random, declared: Mapping[str, Declaration], n: int) -> list[tuple[int, str, Row]]:
    """n rows of n / 2 units in two wards; values hang together, some are there no more than a NULL is, some outside."""
    ranges = {name.partition(".")[2]: what for name, what in declared.items()}
    rows: list[tuple[int, str, Row]] = []
    for _ in range(n):
        at, row = chance.betavariate(2, 5), {}
        for name, what in ranges.items():
            low, high = float(what.low), float(what.high)  # type: ignore[union-attr, arg-type]
            value = low + (high - low) * min(max(at + chance.gauss(0, 0.2), -0.1), 1.1)
            row[name] = None if chance.random() < 0.1 else value
        rows.append((chance.randrange(n // 2 + 1), f"w{chance.randrange(2):06d}", row))
    return rows


def _numbers(values: Any) -> str:
    """To nine digits: the last ones of a double are another machine's."""
    return " ".join(f"{v:.9g}" for v in np.asarray(values, dtype=float).ravel())


def _said(at: int) -> str:
    """What is recorded of one case."""
    chance = Random(f"estimated {at}")
    declared = {"t0.x": chance.choice(XS), "t0.y": chance.choice(YS)}
    aggregates = list(dict.fromkeys(chance.choices(AGGREGATES, k=3)))
    spend, bounds, n = chance.choice(SPENDS), chance.choice(BOUNDS), chance.choice([0, 1, 7, 60, 300])
    neighbours: Neighbours = chance.choice(get_args(Neighbours))
    names = [
        f"{a.function.names.key}({', '.join(c.called for c in a.arguments if isinstance(c, Column))})"
        for a in aggregates
    ]
    told = [f"{names} of {declared}: {n} rows, {bounds}, {spend}, {neighbours}"]
    try:
        made = plan(*aggregates, groups=2, bounds=bounds, declared=declared, neighbours=neighbours)
        price = make_price([made], spend)
    except HubbubError as error:
        return "\n".join([*told, f"{type(error).__name__}: {error}"])
    told += [repr(price.event)]
    (scales,) = expected(price)
    (estimates,) = read(price, draw(price, [measured(made, _rows(chance, declared, n))], SeededBits(at)))
    for name, aggregate in zip(names, aggregates, strict=True):
        low, high = estimates.intervals(aggregate, 0.9)
        if aggregate.function.names.key not in ("QUANTILE", "MIN", "MAX"):
            told.append(
                f"{name} is foretold {_numbers([scales.predicted(aggregate, 0.95, r) for r in (9, 900, 10**7)])}"
            )
        told.append(f"{name} = {_numbers(estimates.values(aggregate))} from {_numbers(low)} to {_numbers(high)}")
    return "\n".join(told)


ESTIMATED = Kept("estimated", _said, COUNT)


@pytest.mark.parametrize("part", range(PARTS))
def test_estimates_are_as_recorded(part: int) -> None:
    for at in range(part, COUNT, PARTS):
        ESTIMATED.check(at)


def test_the_recordings_hold_every_aggregate() -> None:
    recorded = ESTIMATED.all()
    told = "\n".join(recorded)
    for aggregate in AGGREGATES:
        assert f"\n{aggregate.function.names.key}(" in told
    assert sum("Error" in text for text in recorded) < COUNT // 4
