"""Training by Opacus, paid from its own share: with stand-ins that have the same names, and histories as it keeps them.

torch is no dependency of ours. The stand-ins follow opacus/optimizers/optimizer.py (pre_step: clip, add noise, scale,
then step_hook), data_loader.py and privacy_engine.py.
"""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.accounting import bounds, delta as delta_at, epsilon as epsilon_at
from hubbub.errors import BudgetError, ParameterError, PolicyError, QueryError
from hubbub.learning import opacus
from hubbub.learning.opacus import Phase, Plan, event_of
from hubbub.session import Session

DELTA = Fraction(1, 10**7)


class UniformWithReplacementSampler:
    pass


class WeightedRandomSampler:
    pass


class Loader:
    def __init__(self, rate: float, sampler: Any = None) -> None:
        self.sample_rate, self.batch_sampler = rate, sampler or UniformWithReplacementSampler()


class DPOptimizer:
    def __init__(self, noise: float, batch: int, secure: bool = True) -> None:
        self.noise_multiplier, self.expected_batch_size, self.secure_mode = noise, batch, secure
        self.step_hook: Any = None
        self.moved = 0

    def attach_step_hook(self, hook: Any) -> None:
        self.step_hook = hook

    def step(self) -> None:
        if self.step_hook:
            self.step_hook(self)
        self.moved += 1


class AdaClipDPOptimizer(DPOptimizer):
    pass


class Accountant:
    def __init__(self) -> None:
        self.history: list[tuple[float, float, int]] = []

    def step(self, noise: float, rate: float) -> None:
        if self.history and self.history[-1][:2] == (noise, rate):
            *_, (_, _, steps) = self.history
            self.history[-1] = (noise, rate, steps + 1)
        else:
            self.history.append((noise, rate, 1))


class Engine:
    def __init__(self) -> None:
        self.accountant = Accountant()

    def make_private(self, noise: float, rate: float, batch: int, **more: Any) -> tuple[DPOptimizer, Loader]:
        optimizer = DPOptimizer(noise, batch, **more)
        optimizer.attach_step_hook(lambda o: self.accountant.step(o.noise_multiplier, rate))
        return optimizer, Loader(rate)


def session(training: Any = (2, "1e-6"), ledger: Any = None, epsilon: int = 5, **declared: Any) -> Session:
    rows = pa.table({"id": np.arange(100), "age": np.arange(100)})
    declared = {"unit": hb.EACH_ROW, "columns": {"age": hb.between(0, 100)}} | declared
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        budget = hb.Budget(epsilon, "1e-5", training=training)
        return Session({"t": hb.table(rows, **declared)}, budget=budget, ledger=ledger, analyst="ada")


def space(s: Session) -> str:
    (name,) = s._data.spaces().values()
    return name


PHASE = Phase("1.1", "0.01", steps=100, batch=64)


def test_the_known_histories_cost_what_they_cost() -> None:
    assert epsilon_at(event_of([(1.1, 0.01, 10_000)]), "1e-5") == pytest.approx(5.192583, abs=1e-6)
    two = event_of([(1.1, 0.01, 5000), (0.9, 0.02, 2000)])
    assert epsilon_at(two, "1e-5") == pytest.approx(8.0725, abs=1e-4)
    plan = Plan(
        (Phase("1.1", "0.01", steps=5000, batch=9), Phase("0.9", "0.02", steps=2000, batch=9)), Fraction("1e-5")
    )
    assert plan.event == two
    low, high = bounds(two, Fraction("0.99e-5"))
    assert low <= high <= float(plan.epsilon) <= high + 2e-9


def test_a_training_is_charged_whole_before_its_first_step() -> None:
    with session() as s, opacus.reserve(s, "t", [PHASE], delta=DELTA) as training:
        left = s.ledger.balance.training(space(s))
        assert left == (2 - training.plan.epsilon, Fraction("1e-6") - DELTA)
        assert s.ledger.balance.total(space(s)).epsilon == 0
        engine = Engine()
        optimizer, loader = engine.make_private(1.1, 0.01, 64)
        training.watch(optimizer, loader, engine)
        for _ in range(100):
            optimizer.step()
        with pytest.raises(PolicyError, match="all were run"):
            optimizer.step()
        assert optimizer.moved == 100
        assert training.close().epsilon == training.plan.epsilon
        assert s.ledger.balance.training(space(s)) == left
        (entry,) = s.history()
        assert entry.state == "shown"
        assert s.ledger.record.receipt(entry.id)
        assert engine.accountant.history == [(1.1, 0.01, 100)]


def test_a_plan_that_was_not_begun_comes_back_whole() -> None:
    with session() as s:
        with opacus.reserve(s, "t", [PHASE], delta=DELTA) as training:
            pass
        assert training.run == 0
        assert s.ledger.balance.training(space(s)) == (2, Fraction("1e-6"))


def test_one_that_stops_early_costs_what_holds_for_every_rule_of_stopping() -> None:
    plan = Plan((Phase("1.1", "0.01", steps=10_000, batch=64),), DELTA)
    costs = [plan.cost(k).epsilon for k in (1, 500, 5000, 9999, 10_000)]
    assert costs == sorted(costs)
    assert costs[-1] == plan.epsilon
    assert costs[1] is not None
    assert costs[2] is not None
    assert costs[1] < costs[2] < plan.epsilon
    # More than the steps alone would have cost, had they been planned.
    alone = bounds(event_of([("1.1", "0.01", 5000)]), DELTA)[1]
    assert alone < float(costs[2])
    with session(training=(8, "1e-6"), epsilon=9) as s:
        engine = Engine()
        optimizer, loader = engine.make_private(1.1, 0.01, 64)
        with opacus.reserve(s, "t", list(plan.phases), delta=DELTA) as training:
            training.watch(optimizer, loader, engine)
            for _ in range(500):
                optimizer.step()
        assert s.ledger.balance.training(space(s)) == (8 - costs[1], Fraction("1e-6") - DELTA)


def test_the_moment_is_that_of_the_sampled_gaussian() -> None:
    """Against the integral, in both directions: the bound at every step is of the larger."""
    from scipy.integrate import quad

    for sigma, rate, order in ((1.1, 0.01, 8), (0.9, 0.2, 3), (2.0, 0.5, 16)):
        phase = Phase(str(sigma), str(rate), steps=1, batch=1)

        def ratio(x: float, sigma: float = sigma, rate: float = rate) -> float:
            return 1 - rate + rate * math.exp((2 * x - 1) / (2 * sigma**2))

        def density(x: float, sigma: float = sigma) -> float:
            return math.exp(-(x**2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))

        ours = opacus._log_moment(phase, order)
        ends = (-30 * sigma, order + 30 * sigma)
        one = quad(lambda x: density(x) * ratio(x) ** order, *ends, limit=500, points=[0.0, float(order)])[0]  # noqa: B023
        other = quad(lambda x: density(x) * ratio(x) ** (1 - order), *ends, limit=500, points=[0.0, 1.0])[0]  # noqa: B023
        assert ours == pytest.approx(math.log(one), rel=1e-6)
        assert math.log(other) <= ours


def test_the_bound_at_every_step_is_rarely_exceeded_at_any() -> None:
    """20,000 runs of one coordinate that stop as soon as the loss is beyond what would be charged."""
    plan = Plan((Phase("1", "0.2", steps=60, batch=1),), Fraction(1, 20))
    charged = np.array([float(plan._stopped(k)) for k in range(1, 60)])
    naive = np.array([epsilon_at(event_of([("1", "0.2", k)]), plan.delta) for k in (1, 5, 20, 59)])
    assert (charged[[0, 4, 19, 58]] > naive).all()
    rng = np.random.default_rng(11)
    with_it = rng.random((20_000, 59)) < 0.2
    x = rng.normal(0, 1, with_it.shape) + with_it
    loss = np.log(0.8 + 0.2 * np.exp(x - 0.5)).cumsum(axis=1)
    assert (loss > charged).any(axis=1).mean() <= 1 / 20 / 100 * 3


@pytest.mark.parametrize(
    ("optimizer", "loader", "says"),
    [
        (DPOptimizer(1.1, 64), Loader(0.01, WeightedRandomSampler()), "WeightedRandomSampler"),
        (DPOptimizer(1.1, 64), Loader(1 / 99), "1 / len"),
        (DPOptimizer(1.0, 64), Loader(0.01), "noise multiplier is 1.0"),
        (DPOptimizer(1.1, 63), Loader(0.01), "expected_batch_size = 64"),
        (AdaClipDPOptimizer(1.1, 64), Loader(0.01), "AdaClipDPOptimizer"),
        (DPOptimizer(1.1, 64), object(), "NoneType"),
    ],
)
def test_what_breaks_the_accounting_is_refused(optimizer: Any, loader: Any, says: str) -> None:
    with (
        session() as s,
        opacus.reserve(s, "t", [PHASE], delta=DELTA) as training,
        pytest.raises(PolicyError, match=says),
    ):
        training.watch(optimizer, loader)


def test_a_change_amid_training_is_refused_before_the_weights_move() -> None:
    with session() as s, opacus.reserve(s, "t", [PHASE], delta=DELTA) as training:
        optimizer, loader = Engine().make_private(1.1, 0.01, 64)
        training.watch(optimizer, loader)
        optimizer.step()
        optimizer.noise_multiplier = 0.5
        with pytest.raises(PolicyError, match="noise multiplier"):
            optimizer.step()
        assert (optimizer.moved, training.run) == (1, 1)


def test_phases_follow_each_other() -> None:
    phases = [Phase("1.1", "0.01", steps=2, batch=64), Phase("2", "0.02", steps=1, batch=128)]
    with session() as s, opacus.reserve(s, "t", phases, delta=DELTA) as training:
        engine = Engine()
        first, loader = engine.make_private(1.1, 0.01, 64)
        training.watch(first, loader, engine)
        first.step()
        first.step()
        with pytest.raises(PolicyError, match=r"rate of 0\.01, and 0\.02 is planned"):
            first.step()
        second, wider = engine.make_private(2.0, 0.02, 128)
        training.watch(second, wider, engine)
        second.step()
        assert training.phase is None
        assert event_of(engine.accountant.history) == training.plan.event


def test_steps_that_nobody_watched_are_told_and_nothing_comes_back() -> None:
    with session() as s:
        engine = Engine()
        optimizer, loader = engine.make_private(1.1, 0.01, 64)
        training = opacus.reserve(s, "t", [PHASE], delta=DELTA)
        training.watch(optimizer, loader, engine)
        optimizer.step()
        engine.accountant.step(1.1, 0.01)
        with pytest.raises(PolicyError, match="counts 2 steps, and 1 were watched"):
            training.close()
        assert s.ledger.balance.training(space(s))[0] == 2 - training.plan.epsilon


def test_an_insecure_generator_is_told_and_stands_in_the_record() -> None:
    with session() as s, opacus.reserve(s, "t", [PHASE], delta=DELTA) as training:
        optimizer, loader = Engine().make_private(1.1, 0.01, 64, secure=False)
        with pytest.warns(UserWarning, match="secure_mode=True"):
            training.watch(optimizer, loader)
        training.close()
        release = s.ledger.record.release(training.charge_id)
        assert release is not None
        assert release.contents["secure"] is False


def test_what_does_not_fit_is_refused_and_questions_keep_theirs() -> None:
    with session(training=("0.01", "1e-6")) as s:
        with pytest.raises(BudgetError, match=r"epsilon 0\.01 aside for training"):
            opacus.reserve(s, "t", [PHASE], delta=DELTA)
        assert not s.history()
        s.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
        assert s.ledger.balance.training(space(s)) == (Fraction("0.01"), Fraction("1e-6"))
    with session(training=None) as s, pytest.raises(BudgetError, match="sets nothing aside"):
        opacus.reserve(s, "t", [PHASE], delta=DELTA)


def test_delta_adds_up_too() -> None:
    with session(training=(4, "1.5e-7")) as s:
        opacus.reserve(s, "t", [PHASE], delta=DELTA).close()
        opacus.reserve(s, "t", [PHASE], delta=DELTA)
        with pytest.raises(BudgetError, match="delta"):
            opacus.reserve(s, "t", [PHASE], delta=DELTA)


def test_units_of_several_rows_and_replacement_are_refused() -> None:
    for declared, says in (
        ({"unit": "id", "max_total": 1}, "one row a unit"),
        ({"neighbours": "replace"}, "adding or removing"),
    ):
        with session(**declared) as s:
            with pytest.raises(PolicyError, match=says):
                opacus.reserve(s, "t", [PHASE], delta=DELTA)
            assert not s.history()
    with pytest.raises(QueryError, match="of this process"):
        opacus.reserve(object(), "t", [PHASE], delta=DELTA)
    for wrong in ([], ["phase"]):
        with session() as s, pytest.raises(ParameterError):
            opacus.reserve(s, "t", wrong, delta=DELTA)  # type: ignore[arg-type]


def test_who_has_a_limit_does_not_train_beside_it(tmp_path: Any) -> None:
    place = tmp_path / "l.db"
    with session(ledger=place) as s:
        s._ledger.steward.grant(space(s), "analyst:ada", "0.5", author="eve", reason="a limit")
        with pytest.raises(PolicyError, match="limit of its own"):
            opacus.reserve(s, "t", [PHASE], delta=DELTA)


def test_a_ledger_keeps_what_is_set_aside_and_verifies(tmp_path: Any) -> None:
    place = tmp_path / "l.db"
    with session(ledger=place) as s:
        optimizer, loader = Engine().make_private(1.1, 0.01, 64)
        with opacus.reserve(s, "t", [PHASE], delta=DELTA) as training:
            training.watch(optimizer, loader)
            for _ in range(40):
                optimizer.step()
        left = s.ledger.balance.training(space(s))
    with session(ledger=place) as s:
        assert s.ledger.balance.training(space(s)) == left
        assert s._ledger.record.verify().problems == ()
    for other in (None, (1, "1e-6")):
        with pytest.raises(PolicyError, match=r"training=\(2, 0\.000001\)"), session(training=other, ledger=place):
            pass


def test_the_whole_promise_is_kept_by_both_parts() -> None:
    budget = hb.Budget(5, "1e-5", training=(2, "1e-6"))
    assert (budget.for_questions, budget.delta_for_questions) == (3, Fraction("9e-6"))
    assert budget.delta_conversion == Fraction("5e-6")
    assert budget.delta_threshold == Fraction("4e-6")
    assert repr(budget) == "Budget(epsilon=5, delta=0.00001, training=(2, 0.000001))"
    assert eval(repr(budget), {"Budget": hb.Budget}) == budget
    with session() as s:
        plain = hb.Budget(3, "9e-6", delta_threshold="4e-6")
        with (
            pytest.warns(UserWarning, match="in memory"),
            Session({"t": s._data.tables["t"]}, budget=plain, ledger=None) as other,
        ):
            assert s.ledger.balance.left(space(s)).rho == other.ledger.balance.left(space(other)).rho
    for wrong, says in (
        (lambda: hb.Budget(5, training=(1, "1e-7")), "give delta too"),
        (lambda: hb.Budget(5, "1e-5", training=(5, "1e-7")), "left for questions"),
        (lambda: hb.Budget(5, "1e-5", training=(1, "5e-6")), "below half"),
        (lambda: hb.Budget(5, "1e-5", training=1), "expected an epsilon and a delta"),
        (lambda: hb.Budget(5, "1e-5", training=(1, 0)), "greater than zero"),
    ):
        with pytest.raises(ParameterError, match=says):
            wrong()


def test_a_ledger_verifies_delta() -> None:
    event = event_of([("1.1", "0.01", 100)])
    plan = Plan((PHASE,), DELTA)
    assert delta_at(event, plan.epsilon) <= float(DELTA)
