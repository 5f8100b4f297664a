"""One bug per room, planted by replacing a function; where a room is rebuilt, its bug is re-planted here."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hubbub.ledger.store import Ledger
from hubbub.noise import DiscreteLaplace

Patch = pytest.MonkeyPatch


def replace(patch: Patch, module: str, name: str, wrap: Callable[[Any], Any]) -> None:
    """Put `wrap(original)` in the place of module.name."""
    home = importlib.import_module(module)
    patch.setattr(home, name, wrap(getattr(home, name)))


def sensitivity_off_by_one_group(patch: Patch) -> None:
    """tables: a unit in two groups is priced as if it were in one."""

    def wrap(real: Any) -> Any:
        def one_less(bounds: Any, *rest: Any) -> int:
            return int(real(type(bounds)(max(1, bounds.groups - 1), bounds.rows), *rest))

        return one_less

    replace(patch, "hubbub.tables.plan", "sensitivity", wrap)


def missing_clamp(patch: Patch) -> None:
    """sql: values above the declared range are summed as they are."""

    def wrap(real: Any) -> Any:
        @functools.wraps(real)
        def unclamped(x: str, measurement: Any) -> str:
            text: str = real(x, measurement)
            return text.replace(f"WHEN {x} >= {measurement.ceiling} THEN", f"WHEN {x} >= 1e300 THEN")

        return unclamped

    replace(patch, "hubbub.sql.compile", "_clamped", wrap)


def nan_passing(patch: Patch) -> None:
    """engines: a NaN, which is read as NULL, is summed as a huge number."""

    def wrap(real: Any) -> Any:
        @functools.wraps(real)
        def passing(x: str, measurement: Any) -> str:
            text: str = real(x, measurement)
            return text.replace(f"WHEN {x} IS NULL THEN NULL", f"WHEN {x} IS NULL THEN {2**40}")

        return passing

    replace(patch, "hubbub.sql.compile", "_clamped", wrap)


def noise_reused(patch: Patch) -> None:
    """noise: draws of one scale and size are kept and handed out again."""
    real, kept = DiscreteLaplace.sample, {}

    def sample(self: DiscreteLaplace, size: Any = None, **options: Any) -> Any:
        key = (self.scale, size)
        if key not in kept:
            kept[key] = real(self, size, **options)
        return kept[key]

    patch.setattr(DiscreteLaplace, "sample", sample)


def noise_of_one_cell_for_all(patch: Patch) -> None:
    """mechanisms: one draw is added to every cell of a vector."""
    real = DiscreteLaplace.sample

    def sample(self: DiscreteLaplace, size: Any = None, **options: Any) -> Any:
        drawn = real(self, size, **options)
        return drawn if size is None else np.full_like(drawn, drawn.ravel()[0] if np.size(drawn) else 0)

    patch.setattr(DiscreteLaplace, "sample", sample)


def charge_after_answer(patch: Patch) -> None:
    """ledger: the charge is written when the answer is stored."""
    charge, store = Ledger.charge, Ledger.store
    waiting: dict[str, dict[str, Any]] = {}
    real_id: dict[str, str] = {}

    def later(self: Ledger, **what: Any) -> str:
        name = f"later {len(waiting) + len(real_id)}"
        waiting[name] = what
        return name

    def stored(self: Ledger, charge_id: str, payload: str) -> None:
        real_id[charge_id] = charge(self, **waiting.pop(charge_id))
        self.advance(real_id[charge_id], "drawing")
        store(self, real_id[charge_id], payload)

    patch.setattr(Ledger, "charge", later)
    patch.setattr(Ledger, "store", stored)
    for name in ("advance", "release", "let_go"):
        real = getattr(Ledger, name)

        def known(self: Ledger, charge_id: str, *rest: Any, _real: Any = real, **options: Any) -> Any:
            if charge_id in waiting:
                return None
            return _real(self, real_id.get(charge_id, charge_id), *rest, **options)

        patch.setattr(Ledger, name, known)


def groups_of_the_data(patch: Patch) -> None:
    """release: groups whose exact count is 0 are left out of the answer."""

    def wrap(real: Any) -> Any:
        @functools.wraps(real)
        def shorter(estimates: Any) -> Any:
            chosen = real(estimates)
            vectors = _LAST_EXACT[-1]
            kept = tuple(i for i in range(len(vectors[0])) if any(v[i] for v in vectors))
            return type(chosen)(*(kept, *list(vars(chosen).values())[1:])) if len(vectors[0]) > 1 else chosen

        return shorter

    replace(patch, "hubbub.session", "choose", wrap)

    def remember(real: Any) -> Any:
        def run(self: Any, plan: Any) -> Any:
            exact = real(self, plan)
            _LAST_EXACT.append(exact.vectors)
            return exact

        return run

    engine = importlib.import_module("hubbub.engines.duckdb").DuckDBEngine
    patch.setattr(engine, "run", remember(engine.run))


_LAST_EXACT: list[Any] = []
