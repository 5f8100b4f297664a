"""Pairs that are looked for: which are chosen, what the tables cost, what one unit moves, and where none is sought."""

from __future__ import annotations

import itertools
import time
import weakref
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.accounting import cost, rho_of_epsilon
from hubbub.audit import replay
from hubbub.errors import ParameterError
from hubbub.learning import AdditiveModel, LogisticRegression, load, pairs
from hubbub.learning.bases import Turned, either, turned
from hubbub.learning.cells import longest
from hubbub.learning.exact import SCALE, Coded
from hubbub.learning.features import ONE, Categories, Design, Numbers, Pair, column_of
from hubbub.learning.linear import clamped_residual
from hubbub.learning.logistic import binary_residual, softmax_residual
from hubbub.learning.model import LEVELS, Classes, Problem, Range
from hubbub.learning.pairs import FIRST, TABLES, candidates, chosen, in_design, longest_pairs, pairs_are_sought, tables
from hubbub.mechanisms.calibration import Spend
from hubbub.mechanisms.recording import recording
from seeded import SeededBits

DECLARED: dict[str, Any] = {
    "rain": hb.one_of("n", "y"),
    "wind": hb.one_of("n", "y"),
    "place": hb.one_of(*"abcdefgh"),
    "heat": hb.between(0, 1000),
    "age": hb.between(0, 9, nullable=False),
    "out": hb.one_of("no", "yes"),
    "far": hb.one_of("no", "near", "far"),
    "miles": hb.between(0, 20),
    "w": hb.between(0, 5),
}
NAMES = ["rain", "wind", "place", "heat", "age"]
WHOLE = frozenset(("heat", "age"))
MANY = 4_000_000
FEW = 24_000
SUMS = 3 * 7


def days(n: int = 400) -> dict[str, Any]:
    """Somebody goes out if it rains or is windy, but not both."""
    rng = np.random.default_rng(3)
    rain, wind, yes = rng.integers(0, 2, n), rng.integers(0, 2, n), np.array(["n", "y"])
    heat = np.where(rng.random(n) < 0.5, 0, rng.integers(0, 40, n))
    return {
        "rain": yes[rain],
        "wind": yes[wind],
        "place": rng.choice(list("abcdefgh"), n),
        "heat": heat,
        "age": rng.integers(0, 10, n),
        "out": np.where(rain ^ wind, "yes", "no"),
        "far": np.where(rain ^ wind, "far", rng.choice(["no", "near"], n)),
        "miles": 15.0 * (rain ^ wind) + rng.uniform(0, 4, n),
        "w": rng.integers(0, 6, n),
    }


def fitted(table: Any = None, *, how: Any = None, **parameters: Any) -> AdditiveModel:
    fit = {"columns": DECLARED, "epsilon": 5, "delta": "1e-6", "bits": SeededBits(3)} | (how or {})
    given = {"target": "out", "rows": MANY, "pairs": "auto"} | parameters
    return AdditiveModel(NAMES, **given).fit(days() if table is None else table, **fit)


def priced(target: str, rows: int, epsilon: float = 5, **more: Any) -> Problem:
    model = AdditiveModel(NAMES, target, rows=rows, pairs="auto", weight=more.get("weight"))
    return model.problem(DECLARED, spend=Spend(rho=rho_of_epsilon(epsilon, "1e-6")), whole=WHOLE)


@pytest.mark.parametrize("target", ["out", "far", "miles"])
def test_what_two_columns_say_together_is_learned_though_nobody_named_them(target: str) -> None:
    rows = days(4000)
    model = fitted(rows, target=target, rows=4000, how={"epsilon": 40})
    sought = [name for name, column in model.design_.columns.items() if isinstance(column, Pair)]
    assert sought[0] == "rain x wind"
    assert len(sought) < 5
    assert set(model.effects_["rain x wind"]) == {"n & n", "n & y", "y & n", "y & y"}
    assert (load(model.to_json()).predict(rows) == model.predict(rows)).all()
    if target == "out":
        assert (model.predict(rows) == rows["out"]).all()
    if target == "miles":
        assert np.abs(np.asarray(model.predict(rows)) - rows["miles"]).mean() < 3


@pytest.mark.parametrize("target", ["out", "far", "miles"])
@pytest.mark.parametrize(
    ("neighbours", "rows_per_unit", "weight"), [("add_remove", 1, None), ("add_remove", 3, "w"), ("replace", 2, "w")]
)
def test_one_unit_moves_every_sum_by_what_is_charged_at_most(
    target: str, neighbours: str, rows_per_unit: int, weight: str | None
) -> None:
    """With the outputs frozen, on tables that differ in one unit of extreme rows."""
    rows = {k: np.asarray(v, object) for k, v in days(60).items()}
    units = np.repeat(np.arange(20), 3)
    far = {
        "rain": ["y", "zz", None, "y", "y"], "wind": ["y", "y", None, "y", "y"], "place": ["h", "a", None, "h", "h"],
        "heat": [1000, -5, None, 1000, 1000], "age": [9, 0, None, 9, 9], "out": ["no", "yes", "no", "no", None],
        "far": ["near", "far", "near", "near", None], "miles": [0.0, 20.0, 0.0, 0.0, None], "w": [5, 900, None, 5, 5],
    }  # fmt: skip
    near = {k: np.append(v[:57], far[k]) for k, v in rows.items()}
    few = ["rain", "heat"]

    def run(data: tuple[dict[str, Any], Any]) -> str:
        table, owners = {k: list(v) for k, v in data[0].items()}, data[1]
        how = {"columns": DECLARED, "units": owners, "rows_per_unit": rows_per_unit, "neighbours": neighbours}
        how |= {"epsilon": 0.9, "delta": "1e-6", "bits": SeededBits(3)}
        many = FEW * rows_per_unit * (2 if neighbours == "replace" else 1)
        model = AdditiveModel(few, target, weight=weight, rows=many, pairs="auto").fit(table, **how)
        return model.to_json()

    base = {k: v[:57] for k, v in rows.items()}
    changed = (near, np.append(units[:57], [19] * 5))
    other = (base, units[:57]) if neighbours == "add_remove" else (rows, units)
    with recording() as records:
        run(other)
    tables_of = [r for r in records if len(r.values) == SUMS * (3 if target == "far" else 1)]
    assert len(tables_of) == 1
    assert replay(run, other, changed) == []
    assert replay(run, changed, other) == []


@pytest.mark.parametrize("kind", [2, 3, 5, "number"])
def test_the_sensitivity_of_the_tables_is_what_one_row_moves_them_by_at_the_worst_weights(kind: Any) -> None:
    """No more, and hardly less."""
    design = Design({name: Categories(("a", "b")) for name in ("x", "y", "z")})
    sought, reach = candidates(design), SCALE if kind != "number" else SCALE // 5
    target = Range("t", Fraction(0), Fraction(1)) if kind == "number" else Classes.of("t", hb.one_of(*range(kind)))
    problem = Problem(AdditiveModel(), design, target, None, Spend(rho=Fraction(1)), rows=5)
    weights = np.zeros((1 if kind in (2, "number") else kind, design.width), np.int64)
    weights[0, 0] = 1 << 32
    residual = {2: binary_residual, "number": lambda s, y: clamped_residual(s, y, clamp=reach)}
    most = 0
    for label in range(LEVELS if kind == "number" else kind)[:5]:
        row = Coded(design, [np.array([0]), np.array([1]), np.array([0])], np.array([label]))
        values = residual.get(kind, softmax_residual)(row.scores(weights), row.label)
        codes = [pairs._codes(pair, row) for pair in sought.values()]
        sums = tables(row, values, codes, [pair.size for pair in sought.values()])
        most = max(most, sum(v * v for v in sums))
    charged = pairs.table_noise(problem, len(sought), reach).sensitivity
    assert 0.99 * charged < most <= charged


def test_a_sensitivity_of_one_pair_for_all_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test of replay can fail."""
    honest = pairs.table_noise
    monkeypatch.setattr(pairs, "table_noise", lambda problem, _, reach: honest(problem, 1, reach))
    rows = days(60)
    one = {k: np.append(v, v[:1]) for k, v in rows.items()}
    one["rain"][-1], one["wind"][-1], one["out"][-1] = "y", "n", "no"
    how = {"columns": DECLARED, "epsilon": 0.9, "delta": "1e-6"}

    def run(table: Any) -> str:
        model = AdditiveModel(["rain", "wind", "place", "age"], "out", rows=2 * FEW, pairs="auto")
        return model.fit(table, bits=SeededBits(3), **how).to_json()

    assert "moved" in {v.kind for v in replay(run, rows, one)}


@pytest.mark.parametrize("target", ["out", "far", "miles"])
@pytest.mark.parametrize("rows", [None, MANY])
def test_it_costs_what_was_asked_exactly_in_parts_fixed_before(target: str, rows: int | None) -> None:
    rho, epsilon = rho_of_epsilon(60, "1e-6"), 60
    with recording() as records:
        loss = fitted(days(2000), target=target, rows=rows, how={"epsilon": epsilon}).loss_
    each = [Fraction(r.sensitivity) / (2 * r.distribution.sigma2) for r in records]
    assert rho * Fraction(999_999, 10**6) < sum(each) == cost(loss).rho <= rho
    sums = sum(pair.size for pair in candidates(longest(priced(target, MANY).design)).values())
    of_tables = [len(r.values) for r in records].index(sums * (3 if target == "far" else 1))
    left = rho * (1 if rows else Fraction(49, 50)) * Fraction(19, 20)
    assert float(each[of_tables]) == pytest.approx(float(left * TABLES), rel=1e-5)
    assert float(sum(each[of_tables + 1 :])) == pytest.approx(float(left * (1 - TABLES - FIRST)), rel=1e-5)


@pytest.mark.parametrize("target", ["out", "far", "miles"])
def test_what_is_forecast_is_what_is_drawn(target: str) -> None:
    problem = priced(target, MANY)
    steps, noise = problem.estimator._predicted(problem, MANY)
    with recording() as records:
        fitted(target=target)
    bought = 2 * (target == "miles")  # the spread of a number, for each of both models
    assert abs(len(records) - bought - steps) <= (0 if target != "miles" else 2)
    excess = problem.estimator._excess(problem, MANY)
    assert excess is not None
    assert noise > 0
    assert excess > 0


def test_of_few_rows_no_pair_is_sought_and_nothing_is_spent_on_it() -> None:
    problem = priced("out", 2000, 1)
    assert not pairs_are_sought(problem, 2000)
    few = {"rows": 2000, "how": {"epsilon": 1}}
    with recording() as records:
        sought = fitted(**few)
    with recording() as others:
        alone = fitted(pairs=None, **few)
    assert sought.kept_["fit"] == alone.kept_["fit"]
    assert [r.distribution for r in records] == [r.distribution for r in others]


def test_a_row_has_the_code_of_a_pair_that_a_prediction_gives_it() -> None:
    """Of numbers in bins that were cut, NULL, and values that are not declared, too."""
    rows = {k: np.asarray(v, object) for k, v in days(300).items()}
    for name, odd in {"rain": [None, "zz"], "heat": [None, -7], "age": [None, 99], "place": [None, "q"]}.items():
        rows[name][:2] = odd
    table = pa.table({k: list(v) for k, v in rows.items()})
    problem = priced("out", MANY)
    coded = problem.encode(table, None)
    heat = problem.design.columns["heat"]
    assert isinstance(heat, Numbers)
    cut = replace(heat, edges=tuple(sorted({*heat.edges, *heat.cells[:9]})), cells=())
    plain = Design({**problem.design.columns, "heat": cut})
    sought = candidates(plain, {"heat": np.arange(1.0, cut.bins + 1)})
    assert len(sought) == 10
    assert {len(p.parts[1].edges) for n, p in sought.items() if n.endswith("x heat")} == {7}
    design = Design({**plain.columns, **sought})
    for got, wanted in zip(in_design(coded, design).codes, design.encode(table), strict=True):
        assert (got == wanted).all()


def test_sums_of_tables_do_not_depend_on_the_order_of_rows() -> None:
    rng = np.random.default_rng(1)
    values, codes = rng.integers(-(1 << 20), 1 << 20, (1, 200_000)), rng.integers(0, 5, 200_000)
    design, order = Design({"x": Categories(("a", "b"))}), rng.permutation(200_000)
    rows = Coded(design, [codes % 2], codes * 0)
    wanted = [int(values[0][codes == k].sum()) for k in range(5)]
    assert tables(rows, values, [codes], [5]) == wanted
    assert tables(rows, values[:, order], [codes[order]], [5]) == wanted


def test_noise_alone_rarely_makes_a_pair() -> None:
    rng = np.random.default_rng(5)
    sought = candidates(Design({f"x{k}": Categories(tuple("abcd"[: 2 + k % 3])) for k in range(9)}))
    size = sum(pair.size for pair in sought.values())
    made = [len(chosen(sought, rng.normal(0, 7, size), 7.0, 9000)) for _ in range(40)]
    assert np.mean(made) < 1


def test_no_row_is_longer_than_what_is_recorded() -> None:
    table = hb.table(pa.table(days()), unit=hb.EACH_ROW, columns=DECLARED)
    with hb.Session({"t": table}, budget=hb.Budget(90, "1e-6"), ledger=None, _bits=SeededBits(9)) as session:
        model = AdditiveModel(NAMES, "out", pairs="auto", rows=MANY)
        steps = session.check_fit(model, "t", epsilon=40).steps
        fit = session.fit(model, "t", epsilon=40)
        assert steps > fit.n_iter_ + 2
        assert fit.receipt["squared_length"] >= max(d.norm2 for d in either(fit.design_))
        left = session.remaining
        assert session.fit(model, "t", epsilon=40).kept_ == fit.kept_
        assert session.remaining == left < 90


@pytest.mark.soak
def test_a_choice_tries_models_with_the_pairs_that_they_find() -> None:
    table = hb.table(pa.table(days(2000)), unit=hb.EACH_ROW, columns=DECLARED)
    with hb.Session({"t": table}, budget=hb.Budget(90, "1e-6"), ledger=None, _bits=SeededBits(9)) as session:
        models = [AdditiveModel(NAMES, "out", pairs="auto", rows=MANY), LogisticRegression(["rain"], "out", rows=MANY)]
        assert len(session.fit(models, "t", epsilon=30).figures_) == 2


def test_the_longest_pairs_are_as_long_as_any_that_are_chosen() -> None:
    design = Design({"x": Categories(tuple("abc")), "y": Categories(tuple("abcd")), "z": Categories(("a", "b"))})
    most = longest_pairs(design)
    for name, pair in candidates(design).items():
        some = Design({**design.columns, name: pair})
        assert turned(some).norm2 <= turned(most).norm2
    wide = Design({f"x{k}": Categories(tuple(range(30))) for k in range(60)})
    assert longest_pairs(wide).width <= 3072


@pytest.mark.parametrize("wide", [False, True])
def test_many_short_pairs_may_be_longer_than_few_long_ones(wide: bool) -> None:
    """As of adult: for 40 pairs there is room, but not for the 40 longest."""
    numbers = column_of("n", hb.between(0, 100), linear=True, bins=16)
    sizes = (9, 16, 7, 15, 6, 5, 2, 42)
    design = Design({f"x{k}": Categories(tuple(range(k))) for k in sizes} | {f"n{k}": numbers for k in range(4)})
    sought, most = candidates(design), longest_pairs(design, wide=wide)
    reached = 0
    for order in (lambda k: len(sought[k].names), lambda k: -len(sought[k].names), str):
        some = pairs._that_fit(design, {name: sought[name] for name in sorted(sought, key=order)})
        reached = max(reached, turned(Design({**design.columns, **some}), fine=True).norm2)
    assert reached <= turned(most, fine=True).norm2 < reached * 1.2
    assert wide == (turned(most).width > 1000)


def test_where_no_pair_has_room_none_is_sought_and_nothing_is_spent_on_it() -> None:
    full = Design({f"x{k}": Categories(tuple(range(60))) for k in range(51)} | {"y": Categories((0, 1))})
    assert candidates(full) == {}
    assert len(candidates(Design(dict(list(full.columns.items())[-3:])))) == 2
    assert not pairs_are_sought(replace(priced("out", MANY), design=full), MANY)


def test_codes_of_few_pairs_are_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred columns make 5,000 pairs, of a code for each row."""
    honest, held, most = pairs._codes, weakref.WeakSet[Any](), [0]

    class Held(np.ndarray):  # an array that can be held weakly and hashed
        def __hash__(self) -> int:  # type: ignore[override]
            return id(self)

        def __eq__(self, other: object) -> Any:
            return self is other

    def codes(pair: Pair, rows: Coded) -> Any:
        array = honest(pair, rows).view(Held)
        held.add(array)
        most[0] = max(most[0], len(held))
        return array

    monkeypatch.setattr(pairs, "_codes", codes)
    fitted()
    assert 0 < most[0] <= 2


def test_a_pair_of_many_values_is_turned_quickly_to_what_its_basis_says() -> None:
    thirty, few = Categories(tuple(range(30))), Categories((0, 1, 2))
    numbers: Any = column_of("n", hb.between(0, 100), linear=False, bins=6)
    for first, second in itertools.product((few, numbers, replace(numbers, nullable=False)), repeat=2):
        pair = Turned.of(Pair(("a", "b"), (first, second)))
        assert (pair.features == pair.column.features @ pair.basis // ONE).all()
    began = time.process_time()
    longest_pairs(Design({f"x{k}": thirty for k in range(16)}))
    assert time.process_time() - began < 5  # it was 75


def test_columns_that_make_no_pair_are_left_out() -> None:
    wide = Categories(tuple(range(65)))
    line = Numbers(Fraction(0), Fraction(1), linear=True)
    assert candidates(Design({"x": wide, "y": line, "z": Categories(("a", "b"))})) == {}
    assert not pairs_are_sought(replace(priced("out", MANY), design=Design({"x": wide})), MANY)


def test_another_word_for_pairs_is_refused() -> None:
    with pytest.raises(ParameterError, match="is not a pair of features, or stands twice"):
        fitted(pairs="all")
