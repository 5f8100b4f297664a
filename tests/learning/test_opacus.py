"""Training by Opacus, paid from its own share: with stand-ins that have the same names, and what the real one recorded.

torch is no dependency of ours. The stand-ins follow opacus/optimizers/optimizer.py (pre_step: clip, add noise, scale,
then step_hook), data_loader.py, utils/uniform_sampler.py and privacy_engine.py. `opacus_history.json` is of real
trainings, and of real ways to break their accounting (`python -m benchmarks.opacus_history`; versions stand in it).
"""

from __future__ import annotations

import inspect
import itertools
import json
import math
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
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
    def __init__(self, rate: float = 0.01) -> None:
        self.sample_rate = rate

    def __iter__(self) -> Iterator[list[int]]:
        yield from ([place] for place in range(round(1 / self.sample_rate)))


class WeightedRandomSampler:
    pass


class Collate:
    def __init__(self, rand_on_empty: bool = False) -> None:
        self.rand_on_empty = rand_on_empty


class Loader:
    def __init__(self, rate: float, sampler: Any = None, num_workers: int = 0, rand_on_empty: bool = False) -> None:
        self.sample_rate, self.batch_sampler = rate, sampler or UniformWithReplacementSampler(rate)
        self.num_workers, self.collate_fn = num_workers, Collate(rand_on_empty)

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.batch_sampler)


class DPOptimizer:
    def __init__(self, noise: float, batch: int, secure: bool = True) -> None:
        self.noise_multiplier, self.expected_batch_size, self.secure_mode = noise, batch, secure
        self.max_grad_norm, self.accumulated_iterations = 1.0, 1
        self.step_hook: Any = None
        self.moved = 0

    def attach_step_hook(self, hook: Any) -> None:
        self.step_hook = hook

    def step(self) -> None:
        if self.step_hook:
            self.step_hook(self)
        self.moved += 1


class DPPerLayerOptimizer(DPOptimizer):
    pass


class DPOptimizerFastGradientClipping(DPOptimizer):
    pass


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


def train(optimizer: DPOptimizer, loader: Loader, steps: int) -> None:
    """A step for each batch, over as many epochs as it takes."""
    batches = itertools.chain.from_iterable(itertools.repeat(loader))
    for _ in itertools.islice(batches, steps):
        optimizer.step()


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
        train(optimizer, loader, 100)
        with pytest.raises(PolicyError, match="all were run"):
            train(optimizer, loader, 1)
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
            train(optimizer, loader, 500)
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
        # Made with another rate, and written over to fit the plan: the sampler draws at the other.
        (DPOptimizer(1.1, 64), Loader(0.01, UniformWithReplacementSampler(0.1)), r"rate of 0\.1"),
        (DPOptimizer(1.1, 64), Loader(0.01, num_workers=2), "num_workers=2"),
        (DPOptimizer(1.1, 64), Loader(0.01, rand_on_empty=True), "rand_on_empty"),
    ],
)
def test_what_breaks_the_accounting_is_refused(optimizer: Any, loader: Any, says: str) -> None:
    with (
        session() as s,
        opacus.reserve(s, "t", [PHASE], delta=DELTA) as training,
        pytest.raises(PolicyError, match=says),
    ):
        training.watch(optimizer, loader)


def watched(training: opacus.Training, kind: type[DPOptimizer] = DPOptimizer) -> tuple[DPOptimizer, Loader]:
    optimizer, loader = kind(1.1, 64), Loader(0.01)
    training.watch(optimizer, loader)
    return optimizer, loader


@pytest.mark.parametrize("drawn", [0, 2, 4])
def test_a_step_is_of_one_batch_that_the_watched_loader_drew(drawn: int) -> None:
    """None: a batch from elsewhere. Several: added up, which counts a person several times, or left out."""
    with session() as s, opacus.reserve(s, "t", [PHASE], delta=DELTA) as training:
        optimizer, loader = watched(training)
        train(optimizer, loader, 3)
        batches = iter(loader)
        for _ in range(drawn):
            next(batches)
        with pytest.raises(PolicyError, match=f"{drawn} batches were drawn"):
            optimizer.step()
        assert (optimizer.moved, training.run) == (3, 3)


def test_a_batch_in_parts_by_hand_is_refused() -> None:
    with session() as s, opacus.reserve(s, "t", [PHASE], delta=DELTA) as training:
        optimizer, loader = watched(training)
        optimizer.accumulated_iterations = 3
        with pytest.raises(PolicyError, match="in 3 parts"):
            train(optimizer, loader, 1)


@pytest.mark.parametrize("kind", [DPPerLayerOptimizer, DPOptimizerFastGradientClipping])
def test_noise_for_another_bound_than_the_one_that_clips_is_refused(kind: type[DPOptimizer]) -> None:
    """Opacus keeps their bounds elsewhere; a plain optimizer clips by the same number that scales its noise."""
    with session() as s, opacus.reserve(s, "t", [PHASE], delta=DELTA) as training:
        optimizer, loader = watched(training, kind)
        train(optimizer, loader, 1)
        optimizer.max_grad_norm = 0.01
        for again in (lambda: train(optimizer, loader, 1), lambda: training.watch(optimizer, loader)):
            with pytest.raises(PolicyError, match=r"clipped at 0\.01"):
                again()
        plain, its = watched(training)
        plain.max_grad_norm = 0.5
        with pytest.raises(PolicyError, match="Between two batches"):
            train(plain, its, 1)


def test_a_plain_bound_may_change_between_two_batches() -> None:
    with session() as s, opacus.reserve(s, "t", [PHASE], delta=DELTA) as training:
        optimizer, loader = watched(training)
        train(optimizer, loader, 2)
        optimizer.max_grad_norm = 0.5
        training.watch(optimizer, loader)
        train(optimizer, loader, 2)
        assert training.run == 4  # each once, though it was looked at twice


def test_ghost_clipping_that_adapts_is_refused() -> None:
    """Its noise is another than the history says, and it releases how many were clipped."""
    with session() as s, opacus.reserve(s, "t", [PHASE], delta=DELTA) as training:
        optimizer, loader = watched(training, DPOptimizerFastGradientClipping)
        optimizer._adjusted_noise_multiplier = 1.2  # type: ignore[attr-defined]
        with pytest.raises(PolicyError, match="adaptive clipping"):
            train(optimizer, loader, 1)


def test_a_hook_in_the_place_of_ours_keeps_the_whole_charge() -> None:
    """The engine's own count is lost with ours, and the plan was given back whole."""
    with session() as s:
        training = opacus.reserve(s, "t", [PHASE], delta=DELTA)
        optimizer, loader = watched(training)
        optimizer.attach_step_hook(lambda stepping: None)
        train(optimizer, loader, 50)
        with pytest.raises(PolicyError, match="another step hook"):
            training.close()
        assert s.ledger.balance.training(space(s))[0] == 2 - training.plan.epsilon
        assert s._ledger.record.verify().problems == ()


RECORD = json.loads((Path(__file__).parent / "opacus_history.json").read_text("utf-8"))


@pytest.mark.parametrize("name", RECORD["runs"])
def test_a_real_training_costs_what_exact_accounting_says(name: str) -> None:
    """The history as Opacus kept it, and the figures of its accountants and of dp-accounting for it."""
    one = RECORD["runs"][name]
    delta, others = Fraction(one["delta"]), one["others"]
    plan = Plan(tuple(Phase(s, q, steps=n, batch=b) for s, q, n, b in one["plan"]), delta)
    ours = epsilon_at(event_of(one["history"]), delta)
    assert ours == pytest.approx(one["of the history"], rel=1e-9)
    assert ours == pytest.approx(others["dp-accounting pld"], rel=1e-4)
    # Upper bounds all, the closest within the error of .01 that it allows itself.
    assert ours <= others["opacus prv"] <= ours + 0.011
    assert ours < min(others["opacus rdp"], others["dp-accounting rdp"])
    # "Experimental and can underestimate", as Opacus says of it.
    assert others["opacus gdp"] is None or others["opacus gdp"] < ours
    assert sum(n for _, _, n in one["history"]) == one["run"]
    assert float(plan.cost(one["run"]).epsilon or 0) == one["charged"] >= ours
    if one["run"] == plan.steps:
        assert event_of(one["history"]) == plan.event
        assert one["charged"] <= ours * 1.001
    assert one["right"] > 0.9  # of 600 rows, half in each class


def test_each_known_way_to_break_the_accounting_was_refused_with_the_real_objects() -> None:
    leaks = RECORD["leaks"]
    assert len(leaks) == 21
    assert [name for name, one in leaks.items() if one["says"] is None] == []
    # The words are those of today: the record is of this adapter, not of an older one.
    says = inspect.getsource(opacus)
    for one in leaks.values():
        assert any(one["says"][at : at + 24] in says for at in range(len(one["says"]) - 23)), one["says"]
    assert "torchcsprng" in RECORD["secure_mode"]  # which no torch of these versions can load
    assert set(RECORD["versions"]) == {"torch", "opacus", "dp-accounting"}


def test_a_change_amid_training_is_refused_before_the_weights_move() -> None:
    with session() as s, opacus.reserve(s, "t", [PHASE], delta=DELTA) as training:
        optimizer, loader = Engine().make_private(1.1, 0.01, 64)
        training.watch(optimizer, loader)
        train(optimizer, loader, 1)
        optimizer.noise_multiplier = 0.5
        with pytest.raises(PolicyError, match="noise multiplier"):
            train(optimizer, loader, 1)
        assert (optimizer.moved, training.run) == (1, 1)


def test_phases_follow_each_other() -> None:
    phases = [Phase("1.1", "0.01", steps=2, batch=64), Phase("2", "0.02", steps=1, batch=128)]
    with session() as s, opacus.reserve(s, "t", phases, delta=DELTA) as training:
        engine = Engine()
        first, loader = engine.make_private(1.1, 0.01, 64)
        training.watch(first, loader, engine)
        train(first, loader, 2)
        with pytest.raises(PolicyError, match=r"rate of 0\.01, and 0\.02 is planned"):
            train(first, loader, 1)
        second, wider = engine.make_private(2.0, 0.02, 128)
        training.watch(second, wider, engine)
        train(second, wider, 1)
        assert training.phase is None
        assert event_of(engine.accountant.history) == training.plan.event


def test_steps_that_nobody_watched_are_told_and_nothing_comes_back() -> None:
    with session() as s:
        engine = Engine()
        optimizer, loader = engine.make_private(1.1, 0.01, 64)
        training = opacus.reserve(s, "t", [PHASE], delta=DELTA)
        training.watch(optimizer, loader, engine)
        train(optimizer, loader, 1)
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
            train(optimizer, loader, 40)
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
