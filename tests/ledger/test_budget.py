"""What is written as an epsilon is exactly what is counted."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hubbub.errors import ParameterError
from hubbub.ledger.budget import Budget, decimal_text, parse_epsilon


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        (" 1/3 ", Fraction(1, 3)),
        ("+.5", Fraction(1, 2)),
        ("2.", Fraction(2)),
        (1e-9, Fraction(1, 10**9)),
        (5e-324, Fraction(5, 10**324)),
        (Fraction(2, 7), Fraction(2, 7)),
        (Decimal("0.25"), Fraction(1, 4)),
        (np.float64(0.3), Fraction(3, 10)),
        (np.int64(2), Fraction(2)),
        (0.1 + 0.2, Fraction("0.30000000000000004")),
    ],
)
def test_an_epsilon_is_what_was_written(written, meant):
    assert parse_epsilon(written) == meant


@pytest.mark.parametrize(
    "wrong",
    [0, -1, 0.0, -0.5, "0", "-1/2", "0/5", math.nan, math.inf, -math.inf, "nan", "inf", "", "one", "1/0",
     "1e9999", "0x10", "1_000", "1 2", "--1", "1" * 500, True, False, np.True_, None, [1], 1j,
     Decimal("NaN"), Fraction(0), Fraction(-1, 2)],
)  # fmt: skip
def test_what_is_no_positive_number_is_refused(wrong):
    with pytest.raises(ParameterError, match=r"^epsilon"):
        parse_epsilon(wrong)


def test_an_error_names_the_amount_and_the_way_out():
    with pytest.raises(ParameterError, match=r"the budget's epsilon = -2 .* greater than zero\. Write a positive"):
        Budget(-2)


@given(st.fractions())
def test_the_text_of_an_amount_reads_back_exactly(amount):
    assert Fraction(decimal_text(amount)) == amount


@pytest.mark.parametrize(
    ("amount", "text"),
    [("3", "3"), ("100", "100"), ("0.05", "0.05"), ("1/3", "1/3"),
     ("0.30000000000000004", "0.30000000000000004"), ("1e-40", "1E-40"), ("0", "0")],
)  # fmt: skip
def test_amounts_are_shown_as_decimals_where_that_is_exact(amount, text):
    assert decimal_text(Fraction(amount)) == text


def test_a_budget_shows_as_it_is_written():
    for budget in (Budget(3), Budget(epsilon=0.5), Budget("1/3")):
        assert eval(repr(budget)) == budget
    assert repr(Budget(0.5)) == "Budget(epsilon=0.5)"


def test_a_budget_with_delta_sets_half_of_it_aside_unless_said():
    budget = Budget(3, delta=1e-6)
    assert (budget.delta, budget.delta_threshold, budget.delta_conversion, budget.pure) == (
        Fraction(1, 10**6), Fraction(1, 2 * 10**6), Fraction(1, 2 * 10**6), False,
    )  # fmt: skip
    assert repr(budget) == "Budget(epsilon=3, delta=0.000001)"
    said = Budget(3, "1e-6", delta_threshold="1e-7")
    assert said.delta_conversion == Fraction(9, 10**7)
    assert eval(repr(said)) == said


@pytest.mark.parametrize(
    ("delta", "threshold", "message"),
    [(0, None, "delta = 0 .* greater than zero"), (1, None, "must be below 1"), ("nan", None, "not a number"),
     ("1e-6", "1e-6", "must be below delta"), ("1e-6", 0, "greater than zero"), (None, "1e-7", "give delta too")],
)  # fmt: skip
def test_a_delta_out_of_range_is_refused(delta, threshold, message):
    with pytest.raises(ParameterError, match=message):
        Budget(3, delta, delta_threshold=threshold)


def test_a_budget_does_not_change():
    with pytest.raises(AttributeError):
        Budget(1).epsilon = Fraction(2)  # type: ignore[misc]
