"""Trainings by the real Opacus, through `hubbub.learning.opacus`: reserve, train, close; and what is refused.

    python -m benchmarks.peers install opacus
    python -m benchmarks.opacus_history                 # prints
    python -m benchmarks.opacus_history FILE.json       # and records it, as tests/learning/opacus_history.json was

Small nets on 600 rows that are drawn here. Each way of training is run to its end, and its cost is set beside what
Opacus' own accountants and dp-accounting make of the history that Opacus kept. Then each way to break the accounting
that is known is tried with the real objects. torch is no dependency: this runs in the peer's environment.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import hubbub as hb
from benchmarks import peers
from hubbub.accounting import epsilon
from hubbub.errors import HubbubError
from hubbub.learning import opacus
from hubbub.learning.opacus import Phase

ROWS, RATE, SIGMA, BATCH, DELTA = 600, 0.05, 1.0, 30, "1e-7"
PLAN = (Phase("1", "0.05", steps=40, batch=BATCH),)
RUNS: dict[str, tuple[Phase, ...]] = {
    "one phase": PLAN,
    "virtual steps": PLAN,
    "ghost clipping": PLAN,
    "a bound for each layer": PLAN,
    "a scheduler of noise": (Phase("1", "0.05", steps=20, batch=BATCH), Phase("1.25", "0.05", steps=20, batch=BATCH)),
    "phases of other rates": (
        Phase("1.1", "0.05", steps=20, batch=BATCH),
        Phase("0.9", "0.1", steps=30, batch=60),
        Phase("2", "0.02", steps=50, batch=12),
    ),
    "stopped early": (Phase("1.1", "0.02", steps=1000, batch=12),),
}
"""Ways of training, and the plan of each."""


class Net:
    """A small net with all that Opacus makes for it. rate, sigma, batch: of a phase; the rest goes to make_private."""

    def __init__(
        self, rate: float = RATE, sigma: float = SIGMA, batch: int | None = BATCH, loader: Any = None, **more: Any
    ) -> None:
        import torch
        from opacus import PrivacyEngine
        from opacus.data_loader import DPDataLoader
        from torch import nn

        torch.set_num_threads(1)
        torch.manual_seed(0)
        x = torch.randn(ROWS, 5)
        self.rows = torch.utils.data.TensorDataset(x, (x[:, 0] + x[:, 1] > 0).long())
        self.engine = more.pop("engine", None) or PrivacyEngine(accountant="rdp")
        wanted: dict[str, Any] = {"poisson_sampling": False, "max_grad_norm": 1.0, "noise_multiplier": sigma}
        plain = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2))
        self.module, self.optimizer, *criterion, self.loader = self.engine.make_private(
            module=plain,
            optimizer=torch.optim.SGD(plain.parameters(), lr=0.5),
            data_loader=loader(self.rows) if loader else DPDataLoader(self.rows, sample_rate=rate),
            **wanted | more,
        )
        self.loss = criterion[0] if criterion else nn.CrossEntropyLoss()
        if batch is not None:
            self.optimizer.expected_batch_size = batch

    def epoch(self, loader: Any = None) -> None:
        """A step for each batch."""
        for x, y in loader or self.loader:
            self.optimizer.zero_grad()
            self.loss(self.module(x), y).backward()
            self.optimizer.step()

    def every_fourth(self, *, clear: bool = True) -> None:
        """A step for four batches, whose gradients are added up."""
        for place, (x, y) in enumerate(self.loader):
            if place % 4 == 0 or clear:
                self.optimizer.zero_grad()
            self.loss(self.module(x), y).backward()
            if place % 4 == 3 or clear:
                self.optimizer.step()

    def right(self) -> float:
        """The share of rows that it tells."""
        x, y = self.rows.tensors
        return float((self.module(x).argmax(1) == y).float().mean())


def session() -> Any:
    """Rows of the same number, and a budget that sets much aside."""
    private = hb.table(pa.table({"x": np.arange(ROWS)}), unit=hb.EACH_ROW, columns={"x": hb.between(0, 1000)})
    budget = hb.Budget(50, "1e-5", training=(40, "1e-6"))
    return hb.Session({"t": private}, budget=budget, ledger=None, analyst="ada")


def _train(name: str, training: Any) -> tuple[Any, float]:
    """Train as planned. The engine, and how good the net is."""
    from opacus.schedulers import LambdaNoise
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    how: dict[str, Any] = {
        "ghost clipping": {"grad_sample_mode": "ghost"},
        "a bound for each layer": {"clipping": "per_layer", "max_grad_norm": [0.5] * 4},
    }
    first = training.plan.phases[0]
    net = Net(float(first.sample_rate), float(first.noise_multiplier), first.batch, **how.get(name, {}))
    training.watch(net.optimizer, net.loader, net.engine)
    net.epoch()
    match name:
        case "virtual steps":
            split = BatchMemoryManager(data_loader=net.loader, max_physical_batch_size=8, optimizer=net.optimizer)
            with split as parts:
                net.epoch(parts)
        case "a scheduler of noise":
            LambdaNoise(net.optimizer, noise_lambda=lambda epoch: 1.25)
            net.epoch()
        case "phases of other rates":
            for phase in training.plan.phases[1:]:
                rate, sigma = float(phase.sample_rate), float(phase.noise_multiplier)
                net = Net(rate, sigma, phase.batch, engine=net.engine)
                training.watch(net.optimizer, net.loader, net.engine)
                for _ in range(10):
                    net.epoch(itertools.islice(net.loader, phase.steps - _run_of(training, phase)))
        case _:
            net.epoch()
    return net.engine, net.right()


def _run_of(training: Any, phase: Phase) -> int:
    """How many steps of a phase were run."""
    before = 0
    for one in training.plan.phases:
        if one is phase:
            break
        before += one.steps
    return min(max(training.run - before, 0), phase.steps)


def epsilons(history: list[Any], delta: float) -> dict[str, float | None]:
    """What each accountant makes of a history."""
    from dp_accounting import dp_event, pld, rdp
    from opacus.accountants import create_accountant

    each: dict[str, float | None] = {}
    for name in ("rdp", "prv", "gdp"):
        accountant = create_accountant(mechanism=name)
        accountant.history = [tuple(phase) for phase in history]
        # The last one knows one phase alone, and takes the last of several.
        each[f"opacus {name}"] = None if name == "gdp" and len(history) > 1 else float(accountant.get_epsilon(delta))
    steps = [
        dp_event.SelfComposedDpEvent(dp_event.PoissonSampledDpEvent(q, dp_event.GaussianDpEvent(s)), n)
        for s, q, n in history
    ]
    whole = dp_event.ComposedDpEvent(steps)
    each["dp-accounting pld"] = float(pld.PLDAccountant().compose(whole).get_epsilon(delta))
    each["dp-accounting rdp"] = float(rdp.RdpAccountant().compose(whole).get_epsilon(delta))
    return each


def run(name: str) -> dict[str, Any]:
    """One way of training, to its end."""
    plan = RUNS[name]
    with session() as s:
        with opacus.reserve(s, "t", plan, delta=DELTA) as training:
            engine, right = _train(name, training)
        cost = training.close()
        history = [[float(sigma), float(rate), int(n)] for sigma, rate, n in engine.accountant.history]
        return {
            "plan": [[str(p.noise_multiplier), str(p.sample_rate), p.steps, p.batch] for p in plan],
            "history": history,
            "run": training.run,
            "charged": float(cost.epsilon),
            "delta": DELTA,
            "right": round(right, 4),
            "of the history": epsilon(opacus.event_of(history), DELTA),
            "others": epsilons(history, float(DELTA)),
        }


def _watched(training: Any, **how: Any) -> Net:
    net = Net(**how)
    training.watch(net.optimizer, net.loader, net.engine)
    return net


def _relabelled(training: Any) -> None:
    net = Net(rate=0.1)
    net.loader.sample_rate = RATE
    training.watch(net.optimizer, net.loader, net.engine)


def _added_up(training: Any, **how: Any) -> None:
    _watched(training, **how).every_fourth(clear=False)


def _signalled(training: Any) -> None:
    net = _watched(training)
    for place in range(len(net.loader)):
        net.optimizer.signal_skip_step(place % 4 != 3)
    net.every_fourth()


def _left_out(training: Any) -> None:
    net = _watched(training)
    net.epoch(batch for batch in net.loader if len(batch[0]) > BATCH)


def _from_elsewhere(training: Any) -> None:
    from torch.utils.data import DataLoader

    net = _watched(training)
    net.epoch(DataLoader(net.rows, batch_size=300))


def _scheduled(training: Any) -> None:
    from opacus.schedulers import LambdaNoise

    net = _watched(training)
    net.epoch()
    LambdaNoise(net.optimizer, noise_lambda=lambda epoch: 0.5)
    net.epoch()


def _clipped_elsewhere(training: Any, **how: Any) -> None:
    net = _watched(training, **how)
    net.epoch()
    net.optimizer.max_grad_norm = 0.01
    net.epoch()


def _adaptive(training: Any) -> None:
    from opacus.utils.adaptive_clipping.adaptive_clipping_utils import PrivacyEngineAdaptiveClipping

    _watched(training, engine=PrivacyEngineAdaptiveClipping(), grad_sample_mode="ghost", **_QUANTILE).epoch()


def _replaced(training: Any) -> None:
    net = _watched(training)
    net.optimizer.attach_step_hook(lambda optimizer: None)
    net.epoch()


def _past_the_plan(training: Any) -> None:
    net = _watched(training)
    for _ in range(3):
        net.epoch()


def _unwatched(training: Any) -> None:
    net = _watched(training)
    net.epoch()
    Net(engine=net.engine).epoch()


def _plainly(batch_size: int, **more: Any) -> Callable[[Any], Any]:
    def loader(rows: Any) -> Any:
        from torch.utils.data import DataLoader

        return DataLoader(rows, batch_size=batch_size, **more)

    return loader


def _with_processes(rows: Any) -> Any:
    from opacus.data_loader import DPDataLoader

    return DPDataLoader(rows, sample_rate=RATE, num_workers=1)


_QUANTILE: dict[str, Any] = {
    "target_unclipped_quantile": 0.5,
    "min_clipbound": 0.1,
    "max_clipbound": 10,
    "clipbound_learning_rate": 0.2,
}
LEAKS: dict[str, Callable[[Any], object]] = {
    "a rate of 1 / len(loader)": lambda t: _watched(t, loader=_plainly(32), poisson_sampling=True),
    "a batch size from the number of rows": lambda t: _watched(t, batch=None, rate=RATE, loader=_of_599),
    "fixed batches": lambda t: _watched(t, loader=_plainly(BATCH, shuffle=True)),
    "weighted batches": lambda t: _watched(t, loader=_weighted),
    "a rate written over": _relabelled,
    "processes that draw ahead": lambda t: _watched(t, loader=_with_processes),
    "random rows for empty batches": lambda t: _watched(t, poisson_sampling=True, rand_on_empty=True),
    "adaptive clipping": lambda t: _watched(t, clipping="adaptive", unclipped_num_std=2.0, **_QUANTILE),
    "adaptive ghost clipping": _adaptive,
    "other noise": lambda t: _watched(t, sigma=0.9),
    "a scheduler of noise that was not planned": _scheduled,
    "gradients of several batches": _added_up,
    "gradients of several batches, ghost": lambda t: _added_up(t, grad_sample_mode="ghost"),
    "several batches by signal_skip_step": _signalled,
    "batches left out": _left_out,
    "batches from elsewhere": _from_elsewhere,
    "noise for a smaller bound, ghost": lambda t: _clipped_elsewhere(t, grad_sample_mode="ghost"),
    "noise for a smaller bound, layers": lambda t: _clipped_elsewhere(t, clipping="per_layer", max_grad_norm=[0.5] * 4),
    "a step past the plan": _past_the_plan,
    "steps that nobody watched": _unwatched,
    "another hook in the place of ours": _replaced,
}
"""Ways to break the accounting."""


def _of_599(rows: Any) -> Any:
    from opacus.data_loader import DPDataLoader
    from torch.utils.data import Subset

    return DPDataLoader(Subset(rows, range(ROWS - 1)), sample_rate=RATE)


def _weighted(rows: Any) -> Any:
    from torch.utils.data import DataLoader, WeightedRandomSampler

    return DataLoader(rows, batch_size=BATCH, sampler=WeightedRandomSampler([1.0] * ROWS, ROWS))


def refused(name: str) -> dict[str, Any]:
    """What is said of one of them, and how many steps were run before."""
    with session() as s:
        training = opacus.reserve(s, "t", PLAN, delta=DELTA)
        try:
            with training:
                LEAKS[name](training)
        except HubbubError as error:
            return {"says": str(error).replace(training.charge_id, "ID"), "run": training.run}
    return {"says": None, "run": training.run}


def secure() -> str:
    """What becomes of secure_mode=True."""
    from opacus import PrivacyEngine

    try:
        PrivacyEngine(secure_mode=True)
    except ImportError as error:
        return str(error)
    return "made"


def main(arguments: list[str]) -> int:
    """The command line of this module."""
    if importlib.util.find_spec("opacus") is None:
        try:
            peer = str(peers.interpreter("opacus"))
        except peers.MissingPeer as missing:
            print(missing)
            return 0
        command = [peer, "-m", "benchmarks.opacus_history", *arguments]
        return subprocess.run(command, env=os.environ | {"PYTHONPATH": "src"}, check=False).returncode
    warnings.simplefilter("ignore")
    record: dict[str, Any] = {
        "versions": {name: version(name) for name in ("torch", "opacus", "dp-accounting")},
        "secure_mode": secure(),
        "runs": {name: run(name) for name in RUNS},
        "leaks": {name: refused(name) for name in LEAKS},
    }
    for name, one in record["runs"].items():
        others = {n: None if e is None else round(e, 4) for n, e in one["others"].items()}
        print(f"{name}: {one['history']}, {one['right']:.3f} right, charged {one['charged']:.4f}", flush=True)
        print(f"    {one['of the history']:.4f} at delta {DELTA}; {others}", flush=True)
    for name, one in record["leaks"].items():
        print(f"{name}: {one['run']} run, {one['says'] or 'NOT REFUSED'}", flush=True)
    if arguments:
        Path(arguments[0]).write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    return int(any(one["says"] is None for one in record["leaks"].values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
