"""What is not an amount, no level, no group, no question and no picture is refused in our words, and costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.arguments import a_fraction
from hubbub.session import Session
from people import session, visits

SQL = "SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward"
SIGNALING = Decimal("sNaN")


def refused(opened: Session, ask: Callable[[], object], words: str = "") -> None:
    """An error of ours, with nothing charged."""
    before = opened.remaining
    with pytest.raises(hb.HubbubError, match=words):
        ask()
    assert opened.remaining == before


@pytest.mark.parametrize(
    "bad", [SIGNALING, Decimal("NaN"), Decimal("-Infinity"), -(10**5000), Fraction(-(10**5000))], ids=range(5)
)
def test_what_is_no_amount_is_refused(bad: Any) -> None:
    with session(10) as opened:
        for ask in (opened.sql, opened.check):
            refused(opened, lambda ask=ask: ask(SQL, epsilon=bad), "epsilon")
            refused(opened, lambda ask=ask: ask(SQL, rho=bad), "rho")
            refused(opened, lambda ask=ask: ask(SQL, epsilon=1, delta=bad), "delta")
            refused(opened, lambda ask=ask: ask(SQL, within=3, at_most=bad), "at_most")
        refused(opened, lambda: opened.suggest_bounds("visits", "n", epsilon=bad), "epsilon")
        answer = opened.sql(SQL, epsilon=1)
        refused(opened, lambda: answer.refine(bad), "epsilon")
    for amounts in (
        {"epsilon": bad},
        {"epsilon": 1, "delta": bad},
        {"epsilon": 1, "delta": 0.1, "delta_threshold": bad},
    ):
        with pytest.raises(hb.ParameterError, match="not allowed"):
            hb.Budget(**amounts)


@pytest.mark.parametrize(
    "bad", [SIGNALING, Decimal("NaN"), Fraction(10**400), Fraction(1, 10**400), 0.0, float("nan"), 1]
)
def test_what_is_no_level_is_refused(bad: Any) -> None:
    with session(10) as opened:
        answer = opened.sql(SQL, epsilon=1)
        for ask in (answer.intervals, answer.error.half_widths, answer.text.rows, answer["visits"].interval):
            refused(opened, lambda ask=ask: ask(bad), "level")
        assert answer.intervals(Decimal("0.9")).equals(answer.intervals(0.9))


@pytest.mark.parametrize("bad", [[[1]], [SIGNALING], [{}], ["A", np.array([1, 2])]])
def test_groups_that_no_column_holds_are_refused(bad: Any) -> None:
    with session(10) as opened:
        refused(opened, lambda: opened.sql(SQL, epsilon=1, keys={"ward": bad}), "keys: 'ward'")
        refused(opened, lambda: opened.check(SQL, epsilon=1, keys={"ward": bad}), "keys: 'ward'")


@pytest.mark.parametrize(
    "bad",
    [None, "x", [], np.array([0.1, 0.2]), np.array([0.5]), SIGNALING, float("nan"), True, np.bool_(True), -0.1, 1j],
)
def test_what_is_no_fraction_is_refused(bad: Any) -> None:
    with pytest.raises(hb.ParameterError, match="allowed is a number from 0 to 1"):
        hb.quantile("n", bad)


@pytest.mark.parametrize(
    "good", [0, 1, 0.5, Decimal("0.25"), Fraction(1, 3), np.float32(0.5), np.float64(0.5), np.int64(1)]
)
def test_a_fraction_is_any_number_from_0_to_1(good: Any) -> None:
    assert a_fraction(good, "fraction") == good
    assert hb.quantile("n", good).name == "quantile_n"


def test_a_constant_that_is_no_number_is_refused() -> None:
    with pytest.raises(hb.ParameterError, match="finite"):
        hb.lit(SIGNALING)


@pytest.mark.parametrize("bad", [None, "visits", 5, [], {"a": 1}, hb.col("n")])
def test_rows_meet_nothing_but_questions(bad: Any) -> None:
    with session(10) as opened:
        rows = opened.table("visits")
        for verb in ("union", "intersect", "minus"):
            refused(opened, lambda verb=verb: getattr(rows, verb)(bad), f"{verb} takes another question")
        refused(opened, lambda: rows.agg(hb.count()).union(bad), "union takes another question")
        if not isinstance(bad, str):
            refused(opened, lambda: rows.join(bad, on="id"), "join takes another question")
        if not isinstance(bad, list):  # an empty one stands for the total
            refused(opened, lambda: rows.grouping_sets(bad), "grouping_sets takes lists of columns")
        refused(opened, lambda: rows.grouping_sets(["ward"], "ward"), "grouping_sets takes lists of columns")
        refused(opened, lambda: rows.join(rows, on=5), "on takes lists of columns")


def test_a_picture_is_drawn_on_axes_alone() -> None:
    plt = pytest.importorskip("matplotlib.figure")
    with session(10) as opened:
        answer = opened.sql(SQL, epsilon=1)
        for bad in ("x", 0, [], plt.Figure()):
            refused(opened, lambda bad=bad: answer.plot(ax=bad), "expected Axes of matplotlib")
        axes = plt.Figure().add_subplot()
        assert answer.plot(ax=axes) is axes


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (("n", "typo"), "typo"),
        (("n", "ward"), "text"),
        (("n", "day"), "date"),
        (("n", "n"), "stands twice"),
        (("n", "N"), "stands twice"),
    ],
)
def test_bounds_of_several_columns_are_bought_together_or_not_at_all(columns: tuple[str, ...], words: str) -> None:
    with session(2) as opened:
        refused(opened, lambda: opened.suggest_bounds("visits", *columns, epsilon=1), words)
        assert not opened.history()


@pytest.mark.parametrize("budget", [hb.Budget(2), hb.Budget(2, 1e-6)])
def test_bounds_of_columns_that_do_not_fit_together_cost_nothing(budget: hb.Budget) -> None:
    with pytest.warns(UserWarning, match="memory"):
        opened = hb.Session({"visits": visits()}, budget=budget, ledger=None)
    with opened:
        with pytest.raises(hb.BudgetError, match="together") as told:
            opened.suggest_bounds("visits", "n", "age", epsilon=5)
        assert told.value.asked == "5"
        assert not opened.history()
        found = opened.suggest_bounds("visits", "n", "age", epsilon=1)
        assert set(found) == {"n", "age"}
        left = opened.remaining
        assert opened.suggest_bounds("visits", "n", "age", epsilon=1) == found  # stored, so free
        assert opened.remaining == left
