"""What each step of descent is given of the amount: all of it in the end, most where a gradient moves the model far."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.accounting import cost, rho_of_epsilon
from hubbub.errors import ParameterError
from hubbub.learning import LinearRegression, LogisticRegression
from hubbub.learning.descent import Plan, descend, even_noise, parts_of
from hubbub.learning.exact import Coded
from hubbub.learning.features import Categories, Design
from hubbub.mechanisms.recording import recording
from hubbub.noise import MAX_SCALE
from seeded import SeededBits

DECLARED: dict[str, Any] = {"x": hb.between(0, 10), "ill": hb.one_of("no", "yes"), "pay": hb.between(0, 100)}


def people(n: int = 800) -> dict[str, Any]:
    x = np.random.default_rng(1).uniform(0, 10, n)
    return {"x": x, "ill": np.where(x > 5, "yes", "no"), "pay": 10 * x}


def moved_by_each_gradient(steps: int) -> list[float]:
    """How far the model goes by a gradient of 1 in one step and none in the others, as descent itself goes."""
    design = Design({"k": Categories(("a", "b"))})
    rows = Coded(design, [np.zeros(1, np.int64)], np.zeros(1, np.int64))
    lengths = []
    for at in range(steps):
        turn = iter(range(steps))

        def residual(scores: Any, label: Any, turn: Any = turn, at: int = at) -> Any:
            return np.full((1, len(label)), (1 << 20) * (next(turn) == at))

        walk = descend(
            rows, residual, outputs=1, rho=Fraction(10**30), squared=1, plan=Plan(steps, 1.0, 1.0), n=1.0,
            bits=SeededBits(1),
        )  # fmt: skip
        try:
            while True:
                next(walk)
        except StopIteration as done:
            lengths.append(abs(float(done.value[0, 0])))
    return lengths


@pytest.mark.parametrize("steps", [4, 5, 9, 32])
def test_a_step_has_a_part_as_the_root_of_how_far_its_gradient_moves_the_model(steps: int) -> None:
    moved = np.array(moved_by_each_gradient(steps))
    wanted = np.sqrt(np.maximum(moved / moved.max(), 0.02))
    parts = np.array([float(part) for part in parts_of(steps)])
    assert parts / parts[0] == pytest.approx(wanted / wanted[0], abs=2e-3)


def test_the_parts_are_the_whole_exactly() -> None:
    for steps in range(4, 202):
        parts = parts_of(steps)
        assert len(parts) == steps
        assert sum(parts) == 1
        assert min(parts) > 0
        assert list(parts) == sorted(parts, reverse=True)


@pytest.mark.parametrize(
    "model", [LogisticRegression(["x"], "ill", rows=800), LinearRegression(["x"], "pay", rows=800)]
)
def test_each_step_has_noise_for_its_part_and_all_cost_what_was_asked(model: Any) -> None:
    with recording() as records:
        loss = model.fit(people(), columns=DECLARED, epsilon=5, delta="1e-6", bits=SeededBits(3)).loss_
    each = [Fraction(r.sensitivity) / (2 * r.distribution.sigma2) for r in records]
    rho = rho_of_epsilon(5, "1e-6")
    assert rho * Fraction(999_999, 10**6) < sum(each) == cost(loss).rho <= rho
    steps = each[-model.n_iter_ :]
    for spent, part in zip(steps, parts_of(model.n_iter_), strict=True):
        assert float(spent / sum(steps)) == pytest.approx(float(part), rel=1e-6)


def test_noise_that_only_the_last_step_cannot_draw_is_refused_before_a_charge() -> None:
    squared, steps = 1 << 40, 50
    rho = Fraction(squared * steps, 2 * MAX_SCALE**2) * 2  # an even part has half of the largest variance
    with pytest.raises(ParameterError, match="does not fit into 64 bits"):
        even_noise(rho, steps, squared)
    assert even_noise(8 * rho, steps, squared).sigma2 > 0
