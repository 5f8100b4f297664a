"""Edges cut from a bought histogram: cells that follow from the declaration, what one unit moves, what is chosen."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from statistics import harmonic_mean
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.accounting import cost, rho_of_epsilon
from hubbub.audit import replay
from hubbub.errors import ParameterError
from hubbub.learning import AdditiveModel, CategoricalNB, LogisticRegression, load
from hubbub.learning.bases import either, turned
from hubbub.learning.cells import (
    SHARE,
    _shares,
    bins_are_bought,
    cut,
    edges_of,
    in_equal_bins,
    longest,
    most_bins,
    recoded,
    with_cells,
)
from hubbub.learning.exact import Coded
from hubbub.learning.features import MOST_FEATURES, Design, Numbers, column_of
from hubbub.learning.spread import USUAL
from hubbub.mechanisms.calibration import Spend
from hubbub.mechanisms.recording import recording
from seeded import SeededBits

DECLARED: dict[str, Any] = {
    "gain": hb.between(0, 100_000),
    "age": hb.between(17, 90),
    "level": hb.between(1, 16, nullable=False),
    "loss": hb.edges(0, 1, 2000),
    "rich": hb.one_of("no", "yes"),
    "pay": hb.between(0, 100),
    "w": hb.between(0, 5),
}
NAMES = ["gain", "age", "level", "loss"]
WHOLE = frozenset(("gain", "age", "level", "loss"))
N = 3000
MANY = 4_000_000


def people(n: int = N) -> dict[str, Any]:
    """Most gain nothing; of the others those who gain 500 or 1,300 are rich, and hardly anybody else."""
    rng = np.random.default_rng(1)
    gain = np.where(rng.random(n) < 0.6, 0, rng.choice([300, 500, 900, 1300, 1700], n))
    rich = np.isin(gain, (500, 1300)) ^ (rng.random(n) < 0.02)
    rows = {
        "gain": gain,
        "age": rng.integers(17, 91, n),
        "level": rng.integers(1, 17, n),
        "loss": rng.integers(0, 2, n),
    }
    return rows | {"rich": np.where(rich, "yes", "no"), "pay": 40 * rich + gain / 100, "w": rng.integers(0, 6, n)}


def fitted(table: Any = None, *, how: Any = None, **parameters: Any) -> AdditiveModel:
    fit = {"columns": DECLARED, "epsilon": 5, "delta": "1e-6", "bits": SeededBits(3)} | (how or {})
    model = AdditiveModel(NAMES, **({"target": "rich", "rows": MANY} | parameters))
    return model.fit(people(500) if table is None else table, **fit)


def number(low: Any, high: Any, *, whole: bool = False) -> Numbers:
    column = column_of("x", hb.between(low, high), linear=True, bins=16, whole=whole)
    assert isinstance(column, Numbers)
    return with_cells(column, whole)


@pytest.mark.parametrize("ends", [(0, 1), (0, 10**9), (-7, 3), (1e-9, 1.000000001), (10**9, 10**9 + 3)])
def test_cells_are_ever_finer_beside_the_ends_and_nothing(ends: Any) -> None:
    column = number(*ends)
    every = sorted({*column.edges, *column.cells})
    assert every[0] == column.low
    assert every[-1] == column.high
    names = [f"{float(e):g}" for e in every]
    assert len(set(names)) == len(names) or ends[0] == 10**9  # equal bins of a narrow range far from 0 have one name
    gaps = [b - a for a, b in pairwise(every)]
    assert max(gaps) <= (column.high - column.low) / (16 if ends[0] == 10**9 else 1024)
    if ends == (0, 10**9):
        assert every[1] < 16
    if ends == (-7, 3):
        assert 0 in every


def test_cells_of_whole_numbers_are_whole() -> None:
    column = number(17, 90, whole=True)
    assert sorted({*column.edges, *column.cells}) == list(range(17, 91))
    assert len(column.edges) == 17
    gains = number(0, 99_999, whole=True)
    assert all(c.denominator == 1 for c in (*gains.cells, *gains.edges))
    assert gains.cells[0] == 1


def test_codes_of_cells_become_those_of_bins() -> None:
    """What is read once in cells is what would be read in bins: at every cut, beside it, beyond the ends, and NULL."""
    rng = np.random.default_rng(2)
    for column in (number(0, 10), number(-3, 100_000, whole=True)):
        ends = [column.low, *rng.choice(sorted({*column.edges, *column.cells})[1:-1], 9, replace=False), column.high]
        bins = replace(column, edges=tuple(sorted(ends)), cells=())
        at = np.array([float(c) for c in column.cuts])
        values = np.concatenate([at, np.nextafter(at, -1e9), np.nextafter(at, 1e9), [-1e300, 1e300, np.nan]])
        held = pa.array(values)
        rows = Coded(Design({"x": column}), [column.codes(held)], np.zeros(len(values), np.int64))
        assert recoded(rows, Design({"x": bins})).codes[0].tolist() == bins.codes(held).tolist()


def test_the_histogram_costs_a_20th_and_one_row_is_in_one_cell_of_each_column() -> None:
    with recording() as records:
        model = fitted()
    first = records[0]
    assert first.sensitivity == 2  # gain and age: level has a bin for each number, and loss has its own edges
    rho = rho_of_epsilon(5, "1e-6")
    spent = [r.sensitivity / (2 * r.distribution.sigma2) for r in records]
    assert rho * SHARE * Fraction(99, 100) < spent[0] <= rho * SHARE
    assert rho * Fraction(99, 100) < sum(spent) == cost(model.loss_).rho <= rho


@pytest.mark.parametrize(
    ("rows_per_unit", "relation", "weight"), [(1, "add_remove", None), (3, "add_remove", "w"), (2, "replace", None)]
)
def test_one_unit_moves_the_histogram_by_what_is_charged_at_most(
    rows_per_unit: int, relation: str, weight: str | None
) -> None:
    rows = {k: np.asarray(v, object) for k, v in people(60).items()}
    units, far = np.arange(60) // 3, {"gain": 5, "age": 40, "level": 99, "loss": None, "rich": "yes", "pay": 9, "w": 9}
    other = {k: np.append(v, [far[k]] * rows_per_unit) for k, v in rows.items()}
    more = np.append(units, [99] * rows_per_unit)
    if relation == "replace":  # the last unit's rows are exchanged for others
        rows, units = {k: np.append(v, v[:2]) for k, v in rows.items()}, np.append(units, [99] * 2)
    model = AdditiveModel(NAMES, "rich", weight=weight, rows=10 * MANY)
    problem = model.problem(
        DECLARED, spend=Spend(rho=Fraction(1)), whole=WHOLE, rows_per_unit=rows_per_unit, neighbours=relation
    )

    def run(data: tuple[dict[str, Any], Any]) -> str:
        coded = problem.encode(pa.table({k: list(v) for k, v in data[0].items()}), data[1])
        steps = cut(problem, coded, 10 * MANY, SeededBits(2))
        next(steps)
        with pytest.raises(StopIteration) as done:
            next(steps)
        return str(done.value.value[0].design.to_json())

    assert replay(run, (rows, units), (other, more)) == []
    assert replay(run, (other, more), (rows, units)) == []


def test_rows_in_another_order_give_the_same_edges() -> None:
    rows = people(400)
    order = np.random.default_rng(3).permutation(400)
    mixed = {k: v[order] for k, v in rows.items()}
    assert replay(lambda d: fitted(d).to_json(), rows, mixed, same=True) == []


def test_bins_are_cut_where_the_rows_are_and_kept_scored_and_exported() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    import pandas as pd

    rows = people()
    equal, model = (fitted(rows, rows=None, bins=bins, how={"epsilon": 40}) for bins in (16, "auto"))
    right = [float((m.predict(rows) == rows["rich"]).mean()) for m in (equal, model)]
    assert right[1] > 0.95 > 0.9 > right[0]
    edges = [float(e) for e in model.design_.columns["gain"].edges]
    assert edges[:2] == [0, 1]  # who gains nothing has a bin
    assert {6250.0 * k for k in range(17)} <= set(edges)
    assert len(equal.design_.columns["gain"].edges) == 17
    again = load(model.to_json())
    assert (again.predict_proba(rows) == model.predict_proba(rows)).all()
    assert "cells" not in model.to_json()
    assert len(model.effects_["gain"]) == len(edges) - 1
    theirs = model.to_sklearn().predict_proba(pd.DataFrame(rows)[NAMES].astype(float))
    assert np.abs(theirs - model.predict_proba(rows)).max() < 0.05


@pytest.mark.parametrize("target", ["rich", "pay"])
@pytest.mark.parametrize(("kappa", "bins"), [(960, 16), (1040, 32), (1960, 32), (2040, 16)])
def test_few_rows_buy_nothing_and_have_equal_bins(target: str, kappa: float, bins: int) -> None:
    """Twice as many where rows tell them apart, and have no features of their own yet; not of 16 whole numbers."""
    rho = float(rho_of_epsilon(2, "1e-6"))
    rows = round(kappa / math.sqrt(2 * rho) * (1 if target == "rich" else 4 * USUAL))
    of_few = {"target": target, "rows": rows, "how": {"epsilon": 2}}
    model, other = fitted(**of_few), fitted(**of_few, bins=bins)
    (same,) = {r.sensitivity for r in _records(**of_few) if len(r.values) > 2}
    assert same > 2**35
    columns = model.design_.columns
    assert [len(c.names) for c in columns.values()] == [len(c.names) for c in other.design_.columns.values()]
    assert columns["gain"] == other.design_.columns["gain"]
    assert columns["level"].names == fitted(**of_few, bins=16).design_.columns["level"].names
    if target == "rich":  # to a number, steps follow from the spread that is bought
        assert model.loss_ == other.loss_
    problem = AdditiveModel(NAMES, target, rows=rows).problem(
        DECLARED, spend=Spend(rho=rho_of_epsilon(2, "1e-6")), whole=WHOLE
    )
    assert not bins_are_bought(problem, rows)
    assert in_equal_bins(problem, rows).design.to_json() == model.design_.to_json()
    assert max(d.norm2 for d in problem.estimator._coordinates(problem)) >= turned(model.design_).norm2


def _records(**changes: Any) -> list[Any]:
    with recording() as records:
        fitted(**changes)
    return list(records)


def test_to_a_number_edges_are_cut_of_a_fifth_of_the_rows() -> None:
    """Noise of a 300th of the rows: too much for classes."""
    problems = {
        target: AdditiveModel(NAMES, target, rows=2000).problem(
            DECLARED, spend=Spend(rho=rho_of_epsilon(5, "1e-6")), whole=WHOLE
        )
        for target in ("rich", "pay")
    }
    assert {target: bins_are_bought(problem, 2000) for target, problem in problems.items()} == {
        "rich": False,
        "pay": True,
    }
    assert not bins_are_bought(problems["pay"], 500)


def test_what_is_forecast_is_what_is_drawn() -> None:
    """As many sums, and the noise on them to a hundredth: many bins make rows as long as few."""
    for target in ("rich", "pay"):
        for rows in (500, MANY):
            model = AdditiveModel(NAMES, target, rows=rows)
            problem = model.problem(DECLARED, spend=Spend(rho=rho_of_epsilon(5, "1e-6")), whole=WHOLE)
            steps, noise = model._predicted(problem, rows)
            drawn = _records(target=target, rows=rows)
            assert bins_are_bought(problem, rows) is (rows == MANY)
            if target == "rich":
                assert len(drawn) == steps
                each = [float(r.distribution.sigma2) for r in drawn[int(rows == MANY) :]]
                assert math.sqrt(harmonic_mean(each)) / 2**28 == pytest.approx(noise, rel=0.01)
            excess = model._excess(problem, rows)
            assert excess is not None
            assert excess > 0


def test_no_row_is_longer_than_what_is_recorded() -> None:
    column = number(0, 10)
    for fine in (0, 1):
        most = either(longest(Design({"x": column})))[fine].norm2
        for bins in (2, 5, 16, 17, 90, 272):
            edges = tuple(Fraction(10 * k, bins) for k in range(bins + 1))
            design = Design({"x": replace(column, edges=edges, cells=())})
            assert either(design)[fine].norm2 <= most


def test_noise_alone_rarely_makes_a_bin() -> None:
    rng, ends = np.random.default_rng(5), range(1025)
    first = range(0, 1025, 64)
    made = sum(len(edges_of(ends, first, rng.normal(0, 1, 1024), 1.0, 5, 256)) > 17 for _ in range(200))
    assert made <= 12


def test_even_rows_keep_equal_bins_and_a_heavy_number_has_one_of_its_own() -> None:
    rng, ends, first = np.random.default_rng(5), range(1025), range(0, 1025, 64)
    held = rng.poisson(10, 1024) + rng.normal(0, 3, 1024)
    assert edges_of(ends, first, held, 3.0, 15, 256) == list(first)
    held[200] += 300
    assert edges_of(ends, first, held, 3.0, 15, 256) == sorted([*first, 200, 201])
    tail = 20_000 / np.arange(1, 1025) ** 2
    cut = edges_of(ends, first, tail, 3.0, 15, 256)
    assert len(cut) > 22
    assert len(edges_of(ends, first, tail, 3.0, 15, 19)) <= 20


def test_two_heavy_numbers_beside_each_other_do_not_hide_one_another() -> None:
    """The share of the rows below is nowhere far from that of the length, if one is in each half of a bin."""
    ends, first, held = range(129), (0, 64, 128), np.zeros(128)
    held[[20, 44]] = 40
    assert edges_of(ends, first, held, 3.0, 15, 256, closely=False) == [0, 64, 128]
    assert edges_of(ends, first, held, 3.0, 15, 256) == [0, 20, 21, 44, 45, 64, 128]
    held[64:] = 10
    held[90:94] -= 10  # and a gap is a bin too
    assert edges_of(ends, first, held, 1.0, 15, 256) == [0, 20, 21, 44, 45, 64, 90, 94, 128]


def test_few_cells_are_cut_out_for_classes_and_with_little_noise() -> None:
    gain = np.random.default_rng(4).permutation(np.repeat([8300, 10_400, 0], [50, 50, 300]))
    rows = people(400) | {"gain": gain}

    def edges(target: str, n: int) -> set[float]:
        column = fitted(rows, target=target, rows=n, how={"epsilon": 12}).design_.columns["gain"]
        return {float(edge) for edge in column.edges}

    heavy = edges("rich", 20_000) - edges("pay", 20_000)
    assert [sum(low < edge <= low + 300 for edge in heavy) for low in (8200, 10_300)] == [2, 2]
    # Of so few rows the noise may hide a 512th.
    assert edges("rich", 5000) == edges("pay", 5000)


def test_shares_of_bins_are_not_underestimated() -> None:
    """They are noisy counts, a deviation up, and follow a bin's cells."""
    assert _shares(range(5), (0, 1, 4), np.array([9.0, -3, 2, 5]), 2.0).tolist() == [11, 4 + 2 * math.sqrt(3)]


@pytest.mark.parametrize("many", [12, 110])
def test_a_wide_model_has_room_for_what_it_buys(many: int) -> None:
    """Told before a row is read: nothing that was bought is lost to a design of too many features."""
    columns = {f"x{k}": hb.between(0, 1) for k in range(many)} | {"rich": DECLARED["rich"]}
    model = AdditiveModel([f"x{k}" for k in range(many)], "rich", rows=10**9)
    problem = model.problem(columns, spend=Spend(rho=Fraction(1)))
    assert bins_are_bought(problem, 10**9) is (many == 12)
    assert many == 110 or problem.design.width + many * most_bins(problem.design) <= MOST_FEATURES


def test_a_choice_tries_models_in_the_bins_that_they_cut() -> None:
    table = hb.table(pa.table(people(2000)), unit=hb.EACH_ROW, columns=DECLARED)
    with hb.Session({"t": table}, budget=hb.Budget(9, "1e-6"), ledger=None, _bits=SeededBits(8)) as session:
        models = [AdditiveModel(["gain"], "rich", rows=MANY), CategoricalNB(["gain"], "rich")]
        best = session.fit(models, "t", epsilon=4)
        assert best.cost == 4
        assert len(best.figures_) == 2
        assert session.fit(models, "t", epsilon=4).cost == 0


def test_a_fit_that_buys_bins_is_one_charge_and_then_free() -> None:
    table = hb.table(pa.table(people(500)), unit=hb.EACH_ROW, columns=DECLARED)
    with hb.Session({"t": table}, budget=hb.Budget(9, "1e-6"), ledger=None, _bits=SeededBits(9)) as session:
        model = AdditiveModel(NAMES, "rich", rows=MANY)
        steps = session.check_fit(model, "t", epsilon=2).steps
        fit = session.fit(model, "t", epsilon=2)
        assert steps == fit.n_iter_ + 1
        assert fit.receipt["squared_length"] >= max(d.norm2 for d in either(fit.design_))
        assert session.remaining > 6.9
        assert session.fit(model, "t", epsilon=2).kept_ == fit.kept_
        assert session.remaining > 6.9
        assert session.evaluate(fit, "t", epsilon=1).rows > 0


def test_other_models_know_no_such_bins() -> None:
    with pytest.raises(ParameterError, match="bins of 'gain'"):
        LogisticRegression(NAMES, "rich", bins="auto").problem(DECLARED, spend=Spend(rho=Fraction(1)))
    with pytest.raises(ParameterError, match="bins of 'gain'"):
        fitted(bins="quantiles")
