"""Answers within a share of themselves: what they cost, when they stop, and how often their intervals hold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.accounting.zcdp import rho_of_epsilon
from hubbub.answer.evaluate import after_stopping
from hubbub.session import Session
from hubbub.session.looks import STEPS, cost_of_steps
from seeded import SeededBits

COUNT = "SELECT COUNT(*) AS n FROM t"
CAP = "20"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def opened(n: int, *, delta: Any = 1e-6, bits: Any = None) -> Session:
    frame = pa.table(
        {"id": range(n), "ward": ["A" if i % 10 else "B" for i in range(n)], "x": [i % 7 for i in range(n)]}
    )
    table = hb.table(
        frame,
        unit="id",
        max_groups=1,
        max_rows=1,
        columns={"ward": hb.one_of("A", "B", "C"), "x": hb.between(0, 6)},
    )
    budget = hb.Budget(50) if delta is None else hb.Budget(50, delta)
    return Session({"t": table}, budget=budget, ledger=None, _bits=bits or SeededBits(1))


def spent(s: Session) -> Fraction:
    space = "id"
    return s._ledger.balance.total(space).cost.rho


@pytest.mark.parametrize("n", [300, 3000, 30000])
def test_it_costs_at_most_three_times_what_one_who_knows_the_answer_would_pay(n: int) -> None:
    """The oracle's rho: 1.96 sigma = .1 N. The mean over 9 answers, and no single one above 6 times."""
    oracle = 1.959964**2 / (2 * (0.1 * n) ** 2)
    factors = []
    for seed in range(9):
        with opened(n, bits=SeededBits(f"{n} {seed}")) as s:
            r = s.sql(COUNT, within="10 %", at_most=CAP)
            factors.append(float(spent(s)) / oracle)
        assert r.error.half_widths()["n"][0] <= 0.12 * abs(r.to_dict()["n"][0]) + 1
    assert np.mean(factors) <= 3
    assert max(factors) <= 6


def test_what_is_not_used_comes_back_and_the_answer_says_so() -> None:
    with opened(3000) as s:
        check = s.check(COUNT, within="10 %", at_most=CAP)
        assert (check.epsilon, check.fits) == (20, True)
        assert "comes back" in str(check)
        r = s.sql(COUNT, within="10 %", at_most=CAP)
        assert 0 < r.cost < Fraction(1, 10)
        assert s.remaining > 49
        assert r.text.notes[0].startswith("stopped after step ")
        assert r.epsilon == r.cost
        again = s.sql(COUNT, within="10 %", at_most=CAP)
        assert (again.cost, again.rows()) == (0, r.rows())
        with pytest.raises(hb.QueryError, match="step by step"):
            r.refine(1)
        plain = s.sql(COUNT, epsilon=1)
        assert plain.charged  # it is not taken for an answer at the cap
        assert s.sql(COUNT, within="5 %", at_most=CAP).charged


def test_groups_below_the_floor_need_not_be_exact() -> None:
    by_ward = "SELECT ward, COUNT(*) AS n FROM t GROUP BY ward"
    with opened(3000) as s:
        r = s.sql(by_ward, within="10 %", at_most=CAP, at_least=100)
        few = spent(s)
        width = r.error.half_widths()["n"][0]
        assert width <= 0.12 * 300
        s.sql(by_ward, within="10 %", at_most=CAP)
        assert spent(s) - few == rho_of_epsilon(Fraction(20), s._ledger.balance.budget("id").delta_conversion)


def test_means_are_looked_at_by_their_own_intervals() -> None:
    with opened(3000) as s:
        r = s.sql("SELECT AVG(x) AS a, COUNT(*) AS n FROM t", within="10 %", at_most=CAP)
    (a,) = r.to_dict()["a"]
    assert abs(a - 3) < 0.4
    assert r.error.half_widths()["a"][0] <= 0.12 * abs(a)


@pytest.mark.parametrize(
    ("sql", "options", "delta", "words"),
    [
        (COUNT, {}, None, "Use a budget with delta"),
        (COUNT, {"noise": "laplace"}, 1e-6, "averages of Laplace draws lose"),
        ("SELECT MEDIAN(x) FROM t", {}, 1e-6, "drawn whole"),
        ("SELECT x + id AS k, COUNT(*) FROM t GROUP BY x + id", {}, 1e-6, "found privately"),
        (COUNT, {"max_rows": "auto"}, 1e-6, "found in the charge"),
        (COUNT, {"within": "much %"}, 1e-6, "expected a share"),
        (COUNT, {"within": "0 %"}, 1e-6, "expected a share"),
        (COUNT, {"within": 5, "at_least": 3}, 1e-6, "goes with a share"),
        (COUNT, {"at_least": -3}, 1e-6, "above 0"),
    ],
)
def test_what_has_no_steps_is_refused_with_the_way_out(
    sql: str, options: dict[str, Any], delta: Any, words: str
) -> None:
    with opened(300, delta=delta) as s:
        with pytest.raises(hb.HubbubError, match=words):
            s.sql(sql, **{"within": "10 %", "at_most": CAP, **options})
        assert s.remaining == 50


def coverage(size: float, level: float, *, hedged: bool, runs: int, seed: int) -> tuple[float, float]:
    """How often the interval after stopping holds a truth of `size` first standard deviations, and the answer is within
    10 % of it: normal noise, precision doubled at each step.
    """
    random = np.random.default_rng(seed)
    total = np.zeros(runs)
    value, going = np.zeros(runs), np.ones(runs, bool)
    final, scale = np.zeros(runs), np.zeros(runs)
    precision = 0.0
    for k in range(STEPS):
        if not going.any():
            break
        step = 1.0 if k == 0 else 2.0 ** (k - 1)
        total += step * (size + random.standard_normal(runs) / math.sqrt(step))
        precision += step
        value = total / precision
        stop = going & ((1.959964 / math.sqrt(precision) <= 0.1 * np.abs(value)) | (k == STEPS - 1))
        final[stop], scale[stop] = value[stop], 1 / math.sqrt(precision)
        going &= ~stop
    z = abs(np.sqrt(2) * _inverse_erf(after_stopping(level) if hedged else level))
    return float((np.abs(final - size) <= z * scale).mean()), float((np.abs(final - size) <= 0.1 * size).mean())


@pytest.mark.parametrize(
    ("amounts", "shares"),
    [(["1/4", "1/4", "1/2"], ["1/2", "1/2"]), (["1"], ["1"]), ([f"1/{2**31}"] * 2, ["1/3"]), (["1/2"], ["1/8"])],
)
def test_steps_that_double_up_to_the_cap_itself_cost_their_sum(amounts: list[str], shares: list[str]) -> None:
    contents = {"looks": [{"spend": {"rho": amount}, "shares": shares} for amount in amounts]}
    assert cost_of_steps(Fraction(1), contents) == sum(map(Fraction, amounts))


@pytest.mark.parametrize(
    ("amounts", "shares"),
    [
        ([f"1/{2**32}"], ["1"]),  # less than the first step can be
        (["1/3"], ["1"]),
        (["1/2", "1/4"], ["1"]),
        (["1/2", "1/2", "1"], ["1"]),  # twice the cap
        (["1/2"], ["1/2", "1/2", "1/100"]),  # more was drawn than was charged
        (["1/2"], ["1/2", "0"]),
        (["1/2"], ["3/2", "-1/2"]),
    ],
)
def test_other_steps_are_no_steps_of_a_stored_answer(amounts: list[str], shares: list[str]) -> None:
    contents = {"looks": [{"spend": {"rho": amount}, "shares": shares} for amount in amounts]}
    with pytest.raises(ValueError, match=r"steps of this kind|than was charged"):
        cost_of_steps(Fraction(1), contents)


def test_one_step_of_which_more_was_drawn_than_was_charged_is_enough_to_refuse_all() -> None:
    looks = [{"spend": {"rho": "1/4"}, "shares": ["1"]}, {"spend": {"rho": "1/4"}, "shares": ["1", "1/100"]}]
    with pytest.raises(ValueError, match="more was drawn than was charged"):
        cost_of_steps(Fraction(1), {"looks": looks})


def _inverse_erf(p: float) -> float:
    from scipy.special import erfinv

    return float(erfinv(p))


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95, 0.99])
def test_intervals_after_stopping_hold_as_often_as_they_say_at_the_worst_size(level: float) -> None:
    """20,000 runs at each of 25 sizes; within three standard deviations. Without the hedge they do not hold."""
    sizes = np.geomspace(2, 40, 25)
    held = [coverage(float(s), level, hedged=True, runs=20_000, seed=i) for i, s in enumerate(sizes)]
    assert min(c for c, _ in held) >= level - 3 * math.sqrt(level * (1 - level) / 20_000)
    if level == 0.95:
        assert min(w for _, w in held) >= 0.95
        bare = [coverage(float(s), level, hedged=False, runs=20_000, seed=i)[0] for i, s in enumerate(sizes)]
        assert min(bare) < 0.945
