"""Nets that Opacus trains, paid from what a budget sets aside for training: reserve, train, close.

    with opacus.reserve(session, "visits", [Phase("1.1", "0.01", steps=1000, batch=256)], delta="1e-7") as training:
        training.watch(optimizer, loader, engine)      # of `PrivacyEngine.make_private`
        ...                                            # the usual loop

Nothing of Opacus or torch is imported: what they made is looked at by name. The steps are planned, and the whole plan
is charged before the first one. A step beyond it, or one with other noise or another rate, raises in the optimizer's
own hook, before the weights move.

**What it costs.** A step of Opacus is a Poisson sample of the rows at rate q, gradients clipped to C, and Gaussian
noise of deviation sigma C: `PoissonSampled(Gaussian(sigma), q)`, under adding or removing a row. The phases of a plan
compose; their epsilon at delta is the certified upper one of `accounting.bounds`. It is charged to `Budget(training=)`,
whose epsilons and deltas add up, and is never turned into rho.

**What comes back.** A plan that was never begun comes back whole. One that is stopped early may have been stopped
*because* of what was seen, so the epsilon of the steps that ran, as if they alone had been planned, would be too small.
What is charged then holds for whatever rule of stopping. With A_a the moment of order a of one step (Mironov, Talwar,
Zhang 2019, Section 3.3; the order of the two tables does not matter, Corollary 7) and r = ln A_a / (a - 1), the process
exp((a - 1) (loss - sum of r)) is a supermartingale, so by Ville's inequality the loss exceeds
sum of r + ln(1/d) / (a - 1) at *any* step with probability at most d. The order a is fixed by the plan. Of delta, 99 of
100 parts pay for the whole plan, and d is the last one: a plan that ran to its end and one that stopped are two events,
whose deltas add up.

**What is refused**, as it would break that: another sampler than Poisson's, a rate or batch size that follows from the
number of rows (1 / len(loader) does), adaptive clipping, several processes, tables with several rows of a unit, or
stated under replacement. A step is of one batch that the watched loader's sampler drew: batches that are added up
(`signal_skip_step`, or several `backward`) count a row several times, a batch that was drawn and not used tells why it
was not, and a batch from elsewhere was not sampled. Where gradients are clipped at another place than noise is scaled
(ghost clipping, a bound for each layer), the bound stays as it was. A row of random numbers in place of an empty batch
(`rand_on_empty`) moves a sum twice as far.

**What is not exact.** Opacus draws its noise as floats of torch: not the discrete noise that all else here has. The
receipt says so.
"""

from __future__ import annotations

import json
import math
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import TracebackType
from typing import Any, Final, Self

from hubbub.accounting import Composed, Cost, Event, Gaussian, PoissonSampled, Repeated, bounds, to_json
from hubbub.accounting.amounts import Number, amount, count
from hubbub.errors import ParameterError, PolicyError, QueryError, what_was_given
from hubbub.ledger.budget import decimal_text
from hubbub.ledger.charge import Charge

__all__ = ["Phase", "Plan", "Training", "event_of", "reserve"]

_STOPPING: Final = Fraction(1, 100)
_ORDERS: Final = (*range(2, 64), *range(64, 512, 8))
_PLACES: Final = 10**9
_SAMPLERS: Final = ("UniformWithReplacementSampler",)
_OPTIMIZERS: Final = ("DPOptimizer", "DPOptimizerFastGradientClipping", "DPPerLayerOptimizer")


@dataclass(frozen=True, init=False)
class Phase:
    """Steps of one kind. noise_multiplier: sigma, as text or a ratio. sample_rate: q, public. batch: the expected size
    of a batch that gradients are divided by: public, and no function of the number of rows.
    """

    noise_multiplier: Fraction
    sample_rate: Fraction
    steps: int
    batch: int

    def __init__(self, noise_multiplier: Number, sample_rate: Number, *, steps: int, batch: int) -> None:
        object.__setattr__(self, "noise_multiplier", amount(noise_multiplier, "noise_multiplier"))
        object.__setattr__(self, "sample_rate", amount(sample_rate, "sample_rate"))
        object.__setattr__(self, "steps", count(steps, "steps"))
        object.__setattr__(self, "batch", count(batch, "batch"))
        if not self.noise_multiplier or not 0 < self.sample_rate <= 1:
            raise ParameterError("a phase has a noise multiplier above 0 and a sample rate between 0 and 1.")

    @property
    def event(self) -> Event:
        """What one step is."""
        return PoissonSampled(Gaussian(self.noise_multiplier), self.sample_rate)


def event_of(history: Iterable[tuple[float | str, float | str, int]]) -> Event:
    """What an accountant's history says was run: (noise multiplier, sample rate, steps) of each phase.

    >>> event_of([(1.1, 0.01, 5000), (0.9, 0.02, 2000)]).children[1].times
    2000
    """
    return Composed(
        [Repeated(PoissonSampled(Gaussian(str(sigma)), str(rate)), steps) for sigma, rate, steps in history]
    )


@dataclass(frozen=True)
class Plan:
    """Phases in their order, and delta."""

    phases: tuple[Phase, ...]
    delta: Fraction

    def __post_init__(self) -> None:
        if not self.phases or not all(isinstance(phase, Phase) for phase in self.phases):
            raise ParameterError("phases: expected Phase(...) objects, at least one.")
        if not 0 < self.delta < 1:
            raise ParameterError(f"delta={self.delta}: expected a number between 0 and 1, such as 1e-7.")

    @property
    def steps(self) -> int:
        """How many there are in all."""
        return sum(phase.steps for phase in self.phases)

    @property
    def event(self) -> Event:
        """All that may be run."""
        return Composed([Repeated(phase.event, phase.steps) for phase in self.phases])

    @property
    def epsilon(self) -> Fraction:
        """What the whole plan costs, rounded up."""
        return _up(bounds(self.event, self.delta * (1 - _STOPPING))[1])

    def cost(self, steps: int) -> Cost:
        """What is charged in the end if so many steps were run, whatever made them stop."""
        if steps == 0:
            return Cost(Fraction(0), Fraction(0))
        epsilon = self.epsilon
        if steps < self.steps:
            epsilon = min(epsilon, self._stopped(steps))
        return Cost(epsilon, epsilon**2 / 2, self.delta)

    def _stopped(self, steps: int) -> Fraction:
        """An epsilon for so many steps that holds at all of them together."""
        spare = math.log(1 / (self.delta * _STOPPING))

        def at(order: int, steps: int) -> float:
            moments, left = 0.0, steps
            for phase in self.phases:
                moments += min(left, phase.steps) * _log_moment(phase, order)
                left -= min(left, phase.steps)
            return (moments + spare) / (order - 1)

        # The order is a function of the plan alone: the best one at half of it.
        order = min(_ORDERS, key=lambda order: at(order, (self.steps + 1) // 2))
        return _up(at(order, steps) * (1 + 1e-9))


def _up(epsilon: float) -> Fraction:
    """The next multiple of 10^-9."""
    return Fraction(math.ceil(Fraction(epsilon) * _PLACES), _PLACES)


def _log_moment(phase: Phase, order: int) -> float:
    """ln E[(P/Q)^order] under Q of one step: sum_k C(a, k) (1 - q)^(a - k) q^k exp((k^2 - k) / (2 sigma^2))."""
    rate, variance = float(phase.sample_rate), float(phase.noise_multiplier) ** 2
    if rate == 1:
        return order * (order - 1) / (2 * variance)
    terms = [
        math.lgamma(order + 1)
        - math.lgamma(k + 1)
        - math.lgamma(order - k + 1)
        + (order - k) * math.log1p(-rate)
        + k * math.log(rate)
        + (k * k - k) / (2 * variance)
        for k in range(order + 1)
    ]
    most = max(terms)
    return most + math.log(math.fsum(math.exp(term - most) for term in terms)) + 1e-12 * order


def reserve(session: Any, table: str, phases: Sequence[Phase], *, delta: Number) -> Training:
    """Charge a whole plan to what the budget sets aside for training; nothing may be trained before.

    session: of `hb.Session`, where the rows are. table: whose rows the loader gives: each row its own unit, neighbours
    that add or remove one. delta: of the plan.

    Raises QueryError or PolicyError for a table that Poisson samples of rows do not fit; BudgetError where the plan
    does not fit. Nothing is charged then.
    """
    plan = Plan(tuple(phases), amount(delta, "delta"))
    door = getattr(session, "_door", None)
    if door is None:
        raise QueryError("session: expected an hb.Session of this process; nothing is trained through a service.")
    declared = door.data.private(table)
    info = door.data.catalog[table]
    if info.unit is not None or declared.path is not None:
        raise PolicyError(
            f"table {what_was_given(table)}: Poisson samples are of rows, and a unit here may have several. Train "
            "on a table with one row a unit that is declared unit=hb.EACH_ROW. Nothing was charged."
        )
    if declared.neighbours != "add_remove":
        raise PolicyError(
            f"table {what_was_given(table)} is stated under {what_was_given(declared.neighbours)}; Poisson "
            "samples are accounted for under adding or removing a row. Nothing was charged."
        )
    cost = plan.cost(plan.steps)
    assert cost.epsilon is not None
    details = {
        "kind": "training",
        "paid_from": "training",
        "table": table,
        "unit": "each row",
        "neighbours": "add_remove",
        "mechanism": "Poisson-sampled Gaussian noise of Opacus: floats, not exact",
        "phases": [[str(p.noise_multiplier), str(p.sample_rate), p.steps, p.batch] for p in plan.phases],
        "epsilon": decimal_text(cost.epsilon),
        "delta": decimal_text(plan.delta),
    }
    charge = Charge(
        space=declared.space,
        dataset=table,
        analyst=door.analyst,
        epsilon=cost.epsilon,
        sql=f"training on {table}: {plan.steps:,} steps",
        question_key=f"training {uuid.uuid4().hex}",
        event=to_json(plan.event),
        details=json.dumps(details),
        cost=cost,
        purpose=door.purpose,
    )
    return Training(door, plan, door.ledger.charges.charge(charge))


class Training:
    """A plan that is charged. `watch` what trains, then train; `close` it, or leave its `with` block.

    plan: what may be run. charge_id: of its charge. run: how many steps were.
    """

    def __init__(self, door: Any, plan: Plan, charge_id: str) -> None:
        self.plan, self.charge_id, self.run = plan, charge_id, 0
        self.secure = True
        self._door, self._closed = door, False
        self._engines: list[tuple[Any, int]] = []
        self._watched: list[_Watched] = []
        self._samplers: list[Any] = []

    def __repr__(self) -> str:
        return f"Training({self.run} of {self.plan.steps} steps, epsilon {decimal_text(self.plan.epsilon)})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def phase(self) -> Phase | None:
        """Of the next step; None where there is none."""
        left = self.run
        for phase in self.plan.phases:
            if left < phase.steps:
                return phase
            left -= phase.steps
        return None

    def watch(self, optimizer: Any, loader: Any, engine: Any = None) -> None:
        """Look at what `make_private` made, and from here on at each of its steps; for each phase that has its own.

        Before the loader is iterated: a step is of one batch that its sampler draws from here on. engine: the
        PrivacyEngine, whose own history is then compared at the end.

        Raises PolicyError for what would break the accounting.
        """
        watched = next((w for w in self._watched if w.optimizer is optimizer), None) or _Watched(optimizer)
        self._check(watched, loader)
        if not getattr(optimizer, "secure_mode", False):
            self.secure = False
            warnings.warn(
                "Opacus draws its noise with torch's generator, which is not secure where its state is known: "
                "PrivacyEngine(secure_mode=True) for what is released.",
                UserWarning,
                stacklevel=2,
            )
        if engine is not None and all(engine is not known for known, _ in self._engines):
            self._engines.append((engine, _steps_of(engine)))
        watched.loader, watched.clip = loader, getattr(optimizer, "max_grad_norm", None)
        sampler = _counting(loader.batch_sampler)
        if all(sampler is not known for known in self._samplers):
            self._samplers.append(sampler)
            sampler.hubbub_used = sampler.hubbub_drawn
        if watched not in self._watched:
            self._watched.append(watched)
            watched.hook = _hook(self, watched, getattr(optimizer, "step_hook", None))
            optimizer.attach_step_hook(watched.hook)

    def _check(self, watched: _Watched, loader: Any) -> None:
        """Raises PolicyError for a step that was not planned."""
        phase = self.phase
        if self._closed or phase is None:
            raise PolicyError(
                f"the plan has {self.plan.steps} steps, and all were run, or it is closed: this step was not charged. "
                "Reserve another plan."
            )
        wrong = _wrong_loader(loader, phase) or _wrong_optimizer(watched, phase)
        if wrong is not None:
            raise PolicyError(wrong)

    def _step(self, watched: _Watched) -> None:
        self._check(watched, watched.loader)
        wrong = _wrong_step(watched)
        if wrong is not None:
            raise PolicyError(wrong)
        if self.run == 0:
            self._door.ledger.charges.advance(self.charge_id, "drawing")
        self.run += 1

    def close(self) -> Cost:
        """Record how many steps were run; what is not needed comes back. The cost that stays.

        Raises PolicyError where an engine's own history says that others were, or where another hook stands in the
        place of ours: the charge stays whole then.
        """
        charges = self._door.ledger.charges
        if self._closed:
            return self.plan.cost(self.run)
        self._closed = True
        seen = [_steps_of(engine) - before for engine, before in self._engines]
        lost = any(getattr(w.optimizer, "step_hook", None) is not w.hook for w in self._watched)
        others = lost or (bool(seen) and sum(seen) != self.run)
        cost = self.plan.cost(self.plan.steps if others else self.run)
        try:
            if self.run == 0:
                charges.advance(self.charge_id, "drawing")
            if cost != self.plan.cost(self.plan.steps):
                charges.give_back(self.charge_id, used=cost)
            phases = [[str(p.noise_multiplier), str(p.sample_rate), p.steps] for p in self.plan.phases]
            kept = {"format": "training 1", "phases": phases, "run": self.run, "secure": self.secure}
            charges.store(self.charge_id, json.dumps(kept | {"delta": str(self.plan.delta), "others": others}))
            charges.advance(self.charge_id, "shown")
        finally:
            charges.let_go(self.charge_id)
        if others:
            counted = f"the engine counts {sum(seen)} steps, and {self.run} were watched"
            counted = "another step hook was attached over the one that watches" if lost else counted
            raise PolicyError(
                f"{counted}: some may have run past the plan. The whole plan stays charged ({self.charge_id}), and "
                "does not cover those others: do not release this model."
            )
        return cost


@dataclass(eq=False)
class _Watched:
    """An optimizer, its loader, and what its gradients were clipped at when they were looked at."""

    optimizer: Any
    loader: Any = None
    clip: Any = None
    hook: Any = None


def _hook(training: Training, watched: _Watched, before: Any) -> Callable[[Any], None]:
    """What an optimizer calls between its noise and the moving of weights."""

    def hook(stepping: Any) -> None:
        training._step(watched)
        if before is not None:
            before(stepping)

    return hook


def _counting(sampler: Any) -> Any:
    """The same sampler, which counts from now on how many batches it drew.

    A loader takes no other sampler once it is made, and Opacus' manager of virtual batches iterates this one itself.
    """
    kind = type(sampler)
    if not hasattr(sampler, "hubbub_drawn"):

        def drawn(self: Any) -> Iterator[Any]:
            for batch in kind.__iter__(self):
                self.hubbub_drawn += 1
                yield batch

        sampler.hubbub_drawn = sampler.hubbub_used = 0
        sampler.__class__ = type(kind.__name__, (kind,), {"__iter__": drawn})
    return sampler


def _wrong_loader(loader: Any, phase: Phase) -> str | None:
    """What is wrong with a loader, if anything is."""
    sampler = getattr(loader, "batch_sampler", None)
    kind = type(sampler).__name__
    if kind not in _SAMPLERS:
        return (
            f"the loader draws its batches by a {kind}: the cost is that of Poisson samples, which Opacus' own "
            "loader draws in one process (DPDataLoader(rows, sample_rate=...))."
        )
    for rate in (getattr(loader, "sample_rate", None), getattr(sampler, "sample_rate", None)):
        if rate != float(phase.sample_rate):
            return (
                f"the loader samples at a rate of {rate}, and {decimal_text(phase.sample_rate)} is planned. A rate of "
                "1 / len(loader) follows from the number of rows, which is private: give it, as in "
                f"DPDataLoader(rows, sample_rate={float(phase.sample_rate)})."
            )
    if getattr(loader, "num_workers", 0):
        return (
            f"num_workers={loader.num_workers}: processes of the loader draw batches ahead, and whether a step is of "
            "one batch is not known then. Take num_workers=0."
        )
    if getattr(getattr(loader, "collate_fn", None), "rand_on_empty", False):
        return (
            "rand_on_empty=True puts a row of random numbers in the place of an empty batch: the row of a person moves "
            "the sum twice as far there as is accounted for. Take rand_on_empty=False."
        )
    return None


def _wrong_optimizer(watched: _Watched, phase: Phase) -> str | None:
    """What is wrong with an optimizer, if anything is."""
    optimizer = watched.optimizer
    kind = type(optimizer).__name__
    noise, batch = getattr(optimizer, "noise_multiplier", None), getattr(optimizer, "expected_batch_size", None)
    if kind not in _OPTIMIZERS or hasattr(optimizer, "_adjusted_noise_multiplier"):
        adaptive = " with adaptive clipping" if kind in _OPTIMIZERS else ""
        return (
            f"a {kind}{adaptive} steps otherwise than is accounted for: take one of {', '.join(_OPTIMIZERS)}, in one "
            "process, clipping at a fixed norm."
        )
    if noise != float(phase.noise_multiplier):
        return f"the optimizer's noise multiplier is {noise}, and {decimal_text(phase.noise_multiplier)} is planned."
    if batch != phase.batch:
        return (
            f"gradients are divided by an expected batch of {batch}, and {phase.batch} is planned. make_private "
            "takes it from the number of rows, which is private, and whose last digit then moves every weight: "
            f"optimizer.expected_batch_size = {phase.batch}."
        )
    clip = getattr(optimizer, "max_grad_norm", None)
    if watched.hook is not None and kind != "DPOptimizer" and clip != watched.clip:
        return (
            f"the noise is now that of gradients clipped at {clip}, and a {kind} clips them by {watched.clip}, "
            "which stands elsewhere. Make the optimizer anew, in a phase of its own."
        )
    return None


def _wrong_step(watched: _Watched) -> str | None:
    """What is wrong with a step that is about to move the weights, if anything is."""
    optimizer, sampler = watched.optimizer, watched.loader.batch_sampler
    drawn = sampler.hubbub_drawn - sampler.hubbub_used
    if drawn != 1:
        return (
            f"{drawn} batches were drawn from the watched loader since the step before, and a step is of one: "
            "batches that are added up count a person several times, and one that is left out tells why. Step once for "
            "each batch, empty ones too; for fewer steps take itertools.islice(loader, steps); read rows for anything "
            "else from another loader. Large batches are split by BatchMemoryManager."
        )
    sampler.hubbub_used = sampler.hubbub_drawn
    if getattr(optimizer, "accumulated_iterations", 1) != 1:
        return (
            f"a batch in {optimizer.accumulated_iterations} parts, by whose number Opacus divides the noisy gradients; "
            "it follows from the batch. Split batches by BatchMemoryManager."
        )
    clip = getattr(optimizer, "max_grad_norm", None)
    if clip != watched.clip:
        return (
            f"gradients are clipped at {clip}, and at {watched.clip} when the optimizer was looked at: within a batch "
            "in parts the noise would not fit. Between two batches, say training.watch(optimizer, loader) again."
        )
    return None


def _steps_of(engine: Any) -> int:
    """How many steps an engine's accountant has counted."""
    return sum(int(steps) for _, _, steps in engine.accountant.history)
