"""What each step of descent is given of the amount: all of it in the end, most where a gradient moves the model far."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.accounting import cost, rho_of_epsilon
from hubbub.errors import ParameterError
from hubbub.learning import LinearRegression, LogisticRegression, descent, linear, logistic
from hubbub.learning.descent import Plan, descend, even_noise, parts_of, plan_descent
from hubbub.learning.exact import Coded
from hubbub.learning.features import Categories, Design
from hubbub.mechanisms.calibration import Spend
from hubbub.mechanisms.recording import recording
from hubbub.noise import MAX_SCALE
from seeded import SeededBits

DECLARED: dict[str, Any] = {"x": hb.between(0, 10), "ill": hb.one_of("no", "yes"), "pay": hb.between(0, 100)}


def people(n: int = 800) -> dict[str, Any]:
    x = np.random.default_rng(1).uniform(0, 10, n)
    return {"x": x, "ill": np.where(x > 5, "yes", "no"), "pay": 10 * x}


def moved_by_each_gradient(steps: int, rising: bool) -> list[float]:
    """How far the model goes by a gradient of 1 in one step and none in the others, as descent itself goes."""
    design = Design({"k": Categories(("a", "b"))})
    rows = Coded(design, [np.zeros(1, np.int64)], np.zeros(1, np.int64))
    lengths = []
    for at in range(steps):
        turn = iter(range(steps))

        def residual(scores: Any, label: Any, turn: Any = turn, at: int = at) -> Any:
            return np.full((1, len(label)), (1 << 20) * (next(turn) == at))

        walk = descend(
            rows, residual, outputs=1, rho=Fraction(10**30), squared=1, plan=Plan(steps, 1.0, 1.0, rising), n=1.0,
            bits=SeededBits(1),
        )  # fmt: skip
        try:
            while True:
                next(walk)
        except StopIteration as done:
            lengths.append(abs(float(done.value[0, 0])))
    return lengths


@pytest.mark.parametrize("rising", [False, True])
@pytest.mark.parametrize("steps", [4, 5, 9, 32])
def test_a_step_has_a_part_as_the_root_of_how_far_its_gradient_moves_the_model(steps: int, rising: bool) -> None:
    moved = np.array(moved_by_each_gradient(steps, rising))
    wanted = np.sqrt(np.maximum(moved / moved.max(), 0.02))
    parts = np.array([float(part) for part in parts_of(steps, rising)])
    assert parts / parts[0] == pytest.approx(wanted / wanted[0], abs=0.04)


def test_the_parts_are_the_whole_exactly() -> None:
    for steps, rising in itertools.product((*range(4, 60), 199, 200, 201), (False, True)):
        parts = parts_of(steps, rising)
        assert len(parts) == steps
        assert sum(parts) == 1
        assert min(parts) > 0
        # Few: what they cost is added up in fractions, whose denominator has the digits of all of them.
        assert len(set(parts)) <= 16
        assert list(parts) == sorted(parts, reverse=True)


@pytest.mark.parametrize("rows", [800, 4000])
@pytest.mark.parametrize("model", [LogisticRegression(["x"], "ill"), LinearRegression(["x"], "pay")])
def test_each_step_has_noise_for_its_part_and_all_cost_what_was_asked(model: Any, rows: int) -> None:
    model.set_params(rows=rows)
    with recording() as records:
        loss = model.fit(people(), columns=DECLARED, epsilon=5, delta="1e-6", bits=SeededBits(3)).loss_
    each = [Fraction(r.sensitivity) / (2 * r.distribution.sigma2) for r in records]
    rho = rho_of_epsilon(5, "1e-6")
    assert rho * Fraction(999_999, 10**6) < sum(each) == cost(loss).rho <= rho
    steps = each[-model.n_iter_ :]
    for spent, part in zip(steps, parts_of(model.n_iter_, rows == 4000), strict=True):
        assert float(spent / sum(steps)) == pytest.approx(float(part), rel=1e-6)


def test_noise_that_only_the_last_step_cannot_draw_is_refused_before_a_charge() -> None:
    squared, steps = 1 << 40, 50
    rho = Fraction(squared * steps, 2 * MAX_SCALE**2) * 2  # an even part has half of the largest variance
    with pytest.raises(ParameterError, match="does not fit into 64 bits"):
        even_noise(rho, steps, squared)
    assert even_noise(8 * rho, steps, squared).sigma2 > 0


def most_checked(monkeypatch: pytest.MonkeyPatch, check: Any) -> Fraction:
    """The largest variance that a check before a charge asks about."""
    asked, honest = list[Fraction](), descent.noise_of

    def noise_of(rho: Fraction, squared: int) -> Any:
        asked.append(squared / (2 * rho))
        return honest(rho, squared)

    with monkeypatch.context() as patch:
        patch.setattr(descent, "noise_of", noise_of)
        check()
    return max(asked)


@pytest.mark.parametrize("rows", [2000, 3900, 4100, 8000, 24_400, 24_600])
def test_no_cut_that_is_bought_has_more_noise_than_was_asked_about(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a smaller one makes the mean one of all iterates, of more steps, too."""
    problem = LinearRegression(["x"], "pay", rows=rows).problem(DECLARED, spend=Spend(rho=Fraction(1, 2)))
    most = most_checked(monkeypatch, lambda: problem.estimator._check_noise(problem, rows))
    rho = problem.rho - linear._for_spread(problem, rows, None)
    for reach in range(1 << 15, (1 << 19) + 1, 1 << 12):
        plan = linear.plan_numbers(problem, rows, reach, rho)
        squared = linear.descent_squared(problem, reach, fine=plan.fine)
        assert squared / (2 * rho * min(parts_of(plan.steps, plan.rising))) <= most


@pytest.mark.parametrize("kappa", [1990, 12_350, 13_000])
def test_no_number_of_rows_that_is_bought_has_more_noise_than_was_asked_about(
    kappa: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked about as many as there may be; a few less may have more steps."""
    many = 10**7
    rho = Fraction(kappa**2, 2 * many**2)
    problem = LogisticRegression(["x"], "ill").problem(DECLARED, spend=Spend(rho=rho * 50 / 49))
    most = most_checked(monkeypatch, lambda: problem.estimator._check_noise(problem, many))
    for n in range(many // 100, many + 1, many // 100):
        plan = logistic.plan_classes(problem, n)
        squared = logistic.descent_squared(problem, fine=plan.fine)
        assert squared / (2 * problem.rho * min(parts_of(plan.steps, plan.rising))) <= most


def test_of_many_rows_the_model_is_the_mean_of_all_iterates_counted_by_their_place() -> None:
    """A gradient of 1 in the first step alone, by hand: iterates 1, 1.9, 2.71, 3.439 of weights 1/2, 3/2, 5/2, 7/2."""
    at = np.cumsum(0.9 ** np.arange(4.0))
    many, few = (moved_by_each_gradient(4, rising)[0] for rising in (True, False))
    assert many / few == pytest.approx(np.average(at, weights=[1, 3, 5, 7]) / at[2:].mean(), rel=1e-3)


def test_the_sum_of_many_steps_at_huge_noise_can_be_written() -> None:
    """Python writes no whole number of more than 4,300 digits, and a ledger writes what was spent."""
    with recording() as records:
        model = LogisticRegression(["x"], "ill", rows=10**12)
        model.fit(people(50), columns=DECLARED, epsilon=5, delta="1e-6", units=np.arange(50), rows_per_unit=10**5)
    each = [Fraction(r.sensitivity) / (2 * r.distribution.sigma2) for r in records]
    assert len(each) == 200
    assert len(str(sum(each))) < 2000


def test_where_rows_are_many_there_are_more_steps_but_never_more_than_200() -> None:
    kappas = [1999.0, 2001.0, 12_300.0, 12_400.0, 10.0**6]
    plans = [plan_descent(kappa, 0.5) for kappa in kappas]
    assert [(plan.steps, plan.rising) for plan in plans] == [
        (32, False),
        (42, True),
        (200, True),
        (155, False),
        (200, False),
    ]
