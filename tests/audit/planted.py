"""One bug per room, planted by replacing a function; where a room is rebuilt, its bug is re-planted here."""

from __future__ import annotations

import dataclasses
import importlib
import json
import logging
import re
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hubbub.accounting import from_json, to_json
from hubbub.ledger.life import ChargeLifecycle
from hubbub.ledger.record import Record
from hubbub.mechanisms.groups import GroupThreshold
from hubbub.mechanisms.recording import through
from hubbub.noise import DiscreteLaplace

Patch = pytest.MonkeyPatch


def replace(patch: Patch, module: str, name: str, wrap: Callable[[Any], Any]) -> None:
    """Put `wrap(original)` in the place of module.name."""
    home = importlib.import_module(module)
    patch.setattr(home, name, wrap(getattr(home, name)))


def replace_method(patch: Patch, module: str, owner: str, name: str, wrap: Callable[[Any], Any]) -> None:
    """Put `wrap(original)` in the place of a method."""
    home = getattr(importlib.import_module(module), owner)
    patch.setattr(home, name, wrap(getattr(home, name)))


def sensitivity_off_by_one_group(patch: Patch) -> None:
    """tables: a unit in two groups is priced as if it were in one."""

    def wrap(real: Any) -> Any:
        def one_less(measurement: Any, bounds: Any, *rest: Any) -> int:
            return int(real(measurement, type(bounds)(max(1, bounds.groups - 1), bounds.rows), *rest))

        return one_less

    replace(patch, "hubbub.tables.plan", "l1", wrap)
    replace(patch, "hubbub.tables.plan", "l2_squared", wrap)


def pair_with_half_its_sensitivity(patch: Patch) -> None:
    """tables: the two sums of a pair are priced as if only one of them moved."""

    def wrap(real: Any) -> Any:
        def pair(self: Any, family: Any, **options: Any) -> None:
            place = len(self.parts)
            real(self, family, **options)
            part = self.parts[place]
            self.parts[place] = dataclasses.replace(part, l1=part.l1 // 2)

        return pair

    replace_method(patch, "hubbub.tables.parts", "_Builder", "pair", wrap)


def quantiles_of_replace_as_of_add_remove(patch: Patch) -> None:
    """tables: R rows instead of 2 R where a unit's rows are exchanged."""

    def wrap(real: Any) -> Any:
        def add_remove(part: Any, reach: Any, *rest: Any, **options: Any) -> Any:
            return real(part, dataclasses.replace(reach, neighbours="add_remove"), *rest, **options)

        return add_remove

    replace_method(patch, "hubbub.tables.aggregates.quantile", "QuantilePart", "priced", wrap)


def choices_in_several_groups_at_the_price_of_one(patch: Patch) -> None:
    """tables: a unit in C groups is priced as if it were in one, and the charge says so."""

    def wrap(real: Any) -> Any:
        def in_one(part: Any, reach: Any, *rest: Any, **options: Any) -> Any:
            return real(part, dataclasses.replace(reach, groups=1), *rest, **options)

        return in_one

    replace_method(patch, "hubbub.tables.aggregates.mode", "ChoicePart", "priced", wrap)


def charge_of_half_the_price(patch: Patch) -> None:
    """tables: what the ledger is told is half of what is drawn."""

    def wrap(real: Any) -> Any:
        def halved(price: Any) -> Any:
            found = json.loads(to_json(real.func(price)))
            for one in found["event"]["events"]:
                one["scale"] = str(2 * Fraction(one["scale"]))
            return from_json(json.dumps(found))

        return property(halved)

    replace_method(patch, "hubbub.tables.price", "Price", "event", wrap)


def missing_clamp(patch: Patch) -> None:
    """sql: values above the declared range are summed as they are."""

    def wrap(real: Any) -> Any:
        return lambda x, value, dialect: real(x, dataclasses.replace(value, ceiling=2**62), dialect)

    replace(patch, "hubbub.sql.emit.plan", "_clamped", wrap)


def nan_passing(patch: Patch) -> None:
    """sql: a NaN, which is not a value, is summed as a huge number."""

    def wrap(real: Any) -> Any:
        def passing(x: str, value: Any, dialect: Any) -> str:
            return f"CASE WHEN {x} IS NULL THEN {2**30} ELSE {real(x, value, dialect)} END"

        return passing

    replace(patch, "hubbub.sql.emit.plan", "_clamped", wrap)


def rows_unbounded(patch: Patch) -> None:
    """sql: a unit counts with one row more than its limit."""

    def wrap(real: Any) -> Any:
        def one_more(i: int, measurement: Any, plan: Any, dialect: Any) -> Any:
            bounds = dataclasses.replace(plan.bounds, rows=plan.bounds.rows + 1)
            return real(i, measurement, SimpleNamespace(bounds=bounds, clips=plan.clips), dialect)

        return one_more

    replace(patch, "hubbub.sql.emit.plan", "_bounded", wrap)


def join_without_the_owner(patch: Patch) -> None:
    """sql: two people's rows meet."""

    def wrap(real: Any) -> Any:
        return lambda self, join: real(self, dataclasses.replace(join, by_unit=False, on=None))

    replace_method(patch, "hubbub.sql.emit.relation", "_Writer", "_join", wrap)


def window_without_the_unit(patch: Patch) -> None:
    """sql: rows are numbered among everybody's."""

    def wrap(real: Any) -> Any:
        return lambda self, *rest: re.sub(r"PARTITION BY [\w, \"]+?( ORDER|\))", r"PARTITION BY 1\1", real(self, *rest))

    replace_method(patch, "hubbub.sql.emit.relation", "_Writer", "_over", wrap)


def groups_chosen_by_all_rows(patch: Patch) -> None:
    """sql: which groups of a unit are kept is decided by everybody's rows."""

    def wrap(real: Any) -> Any:
        order = "CASE WHEN (SELECT count(*) FROM r1) % 2 = 0 THEN g0 ELSE 1000 - g0 END"
        return lambda plan, dialect: f"CAST({order} AS UBIGINT)"

    for room in ("plan", "ranked"):
        replace(patch, f"hubbub.sql.emit.{room}", "_rank_of_group", wrap)


def group_kept_without_threshold(patch: Patch) -> None:
    """mechanisms: every group that is there is shown."""

    def release(self: Any, counts: Any, *, keys: Any = None, bits: Any = None) -> Any:
        noise = self.noise.sample(len(counts), bits=bits)
        shown = {i: int(c + z) for i, (c, z) in enumerate(zip(counts, noise, strict=True))}
        return through(counts, sensitivity=self.groups, norm="groups", law=self, keys=keys, draw=lambda: shown)

    patch.setattr(GroupThreshold, "release", release)


def threshold_too_low(patch: Patch) -> None:
    """mechanisms: the threshold of another delta."""
    real = GroupThreshold.__init__

    def lower(self: Any, **given: Any) -> None:
        real(self, **given)
        object.__setattr__(self, "threshold", self.threshold - 1)

    patch.setattr(GroupThreshold, "__init__", lower)


def rows_of_a_unit_unbounded(patch: Patch) -> None:
    """synthesis: all rows of a unit are kept."""

    def wrap(real: Any) -> Any:
        return lambda codes, units, rows: real(codes, units, 10**6)

    replace(patch, "hubbub.synthesis.session_adapter", "bounded", wrap)


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
    charge, store = ChargeLifecycle.charge, ChargeLifecycle.store
    waiting: dict[str, Any] = {}
    real_id: dict[str, str] = {}

    def later(self: ChargeLifecycle, what: Any) -> str:
        name = f"later {len(waiting) + len(real_id)}"
        waiting[name] = what
        return name

    def stored(self: ChargeLifecycle, charge_id: str, payload: str) -> None:
        real_id[charge_id] = charge(self, waiting.pop(charge_id))
        self.advance(real_id[charge_id], "drawing")
        store(self, real_id[charge_id], payload)

    patch.setattr(ChargeLifecycle, "charge", later)
    patch.setattr(ChargeLifecycle, "store", stored)
    for part, name in ((ChargeLifecycle, "advance"), (Record, "release"), (ChargeLifecycle, "let_go")):
        real = getattr(part, name)

        def known(self: Any, charge_id: str, *rest: Any, _real: Any = real, **options: Any) -> Any:
            if charge_id in waiting:
                return None
            return _real(self, real_id.get(charge_id, charge_id), *rest, **options)

        patch.setattr(part, name, known)


def groups_in_order_of_their_counts(patch: Patch) -> None:
    """release: the rows of an answer are in the order of exact counts."""
    engine = importlib.import_module("hubbub.engines.duckdb.engine").DuckDBEngine
    release = importlib.import_module("hubbub.answer.release").Release
    run, to_arrow = engine.run, release.to_arrow
    last: list[Any] = []

    def remember(self: Any, *given: Any) -> Any:
        last[:] = [run(self, *given)]
        return last[0]

    def ordered(self: Any) -> Any:
        table, vector = to_arrow(self), last[0].vectors[0] if last else ()
        order = sorted(range(len(vector)), key=lambda i: vector[i])
        return table.take(order) if 1 < len(vector) == len(table) else table

    patch.setattr(engine, "run", remember)
    patch.setattr(release, "to_arrow", ordered)


def words_of_the_data(patch: Patch) -> None:
    """engines: a log line says how many rows were found."""
    engine = importlib.import_module("hubbub.engines.duckdb.engine").DuckDBEngine
    run = engine.run

    def telling(self: Any, *given: Any) -> Any:
        exact = run(self, *given)
        logging.getLogger("hubbub").warning("found %s", exact.vectors[0][:1])
        return exact

    patch.setattr(engine, "run", telling)


def search_that_never_stops_alike(patch: Patch) -> None:
    """mechanisms: the bound is walked up by thresholds with one-sided noise of their own, which has no finite loss."""

    def wrap(real: Any) -> Any:
        def walk(self: Any, counts: Any, *, bits: Any = None) -> tuple[int, ...]:
            draw = DiscreteLaplace(2 * Fraction(self.law.scale)).sample(len(counts) + 1, bits=bits)
            threshold = 1 + abs(int(draw[0]))  # units are few here: as 15 / epsilon would be at this epsilon
            place = 0
            while place < len(counts) - 1 and sum(counts[place + 1 :]) + abs(int(draw[place + 1])) >= threshold:
                place += 1
            return tuple(10**9 if at == place else 0 for at in range(len(counts)))

        return walk

    replace_method(patch, "hubbub.mechanisms.place_search", "PlaceSearch", "release", wrap)


def histograms_at_the_price_of_one(patch: Patch) -> None:
    """session: a check of bounds draws a histogram for each limit, and charges the first."""
    replace(patch, "hubbub.session.check_bounds", "Composed", lambda real: lambda events: events[0])
