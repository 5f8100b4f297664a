"""Reals on a grid: exact rounding, total clamping, honest sensitivities."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hubbub.errors import ParameterError
from hubbub.noise import Grid

EXPONENTS = st.integers(min_value=-40, max_value=10)


@settings(derandomize=True)
@given(EXPONENTS, st.floats(min_value=-1000, max_value=1000))
def test_rounding_is_exactly_half_up(exponent: int, value: float) -> None:
    grid = Grid(exponent)
    expected = math.floor(Fraction(value) / grid.step + Fraction(1, 2))
    assert grid.to_integers(value) == expected == grid.nearest(value)


@pytest.mark.parametrize("value", [0.49999999999999994, -0.5, 0.5, -0.50000000000000011, -1e-300, 2.0**52 + 0.5])
def test_rounding_survives_the_classic_traps(value: float) -> None:
    assert Grid(0).to_integers(value) == math.floor(Fraction(value) + Fraction(1, 2))


@settings(derandomize=True, max_examples=300)
@given(EXPONENTS, st.floats(min_value=-50, max_value=50), st.floats(min_value=-50, max_value=50))
def test_two_reals_move_apart_by_no_more_than_the_stated_sensitivity(exponent: int, a: float, b: float) -> None:
    grid = Grid(exponent)
    apart = abs(Fraction(a) - Fraction(b))
    assert abs(int(grid.to_integers(a)) - int(grid.to_integers(b))) <= grid.sensitivity(apart)


@settings(derandomize=True, max_examples=200)
@given(st.lists(st.tuples(st.floats(-4, 4), st.floats(-4, 4)), min_size=1, max_size=6))
def test_vectors_move_apart_by_no_more_than_the_stated_sensitivities(pairs: list[tuple[float, float]]) -> None:
    grid = Grid(-1)
    before, after = np.array(pairs).T
    moved = (grid.to_integers(before) - grid.to_integers(after)).tolist()
    apart = [abs(Fraction(a) - Fraction(b)) for a, b in pairs]
    assert sum(map(abs, moved)) <= grid.sensitivity(sum(apart), len(pairs))
    squared = sum(d * d for d in apart)
    root = Fraction(math.isqrt(math.ceil(squared * 10**12)) + 1, 10**6)
    assert sum(m * m for m in moved) <= grid.sensitivity2(root, len(pairs)) ** 2


def test_ties_to_even_would_break_the_sensitivity() -> None:
    """0.5 and 1.5 are one step apart; half-to-even sends them to 0 and 2."""
    grid = Grid(0)
    assert np.diff(grid.to_integers([0.5, 1.5])) == [1] == [grid.sensitivity(1)]
    assert np.diff(np.rint([0.5, 1.5])) == [2]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, 7.3])
def test_with_bounds_every_float_has_an_image(value: float) -> None:
    grid = Grid(-4)
    found = int(grid.to_integers(value, 0, 10))
    assert 0 <= found <= 160
    expected = {np.inf: 160, 1e308: 160, -np.inf: 0, -1e308: 0}
    if math.isnan(value):
        assert found == 80
    else:
        assert found == (expected[value] if value in expected else grid.nearest(value))


def test_bounds_off_the_grid_are_rounded_like_values() -> None:
    grid = Grid(-1)
    assert grid.to_integers([0.3, 0.1, 99, -99], Fraction(3, 10), 10).tolist() == [1, 1, 20, 1]


@pytest.mark.parametrize("values", [[np.nan], [np.inf], [1e30], ["a"], [None], [1j], [True]])
def test_without_bounds_only_what_fits_is_taken(values: Any) -> None:
    with pytest.raises(ParameterError):
        Grid(-4).to_integers(values)


@pytest.mark.parametrize("bounds", [(1, 0), (0, 1e30), (float("nan"), 1), (0, None)])
def test_bounds_that_are_none_are_refused(bounds: tuple[Any, Any]) -> None:
    with pytest.raises(ParameterError):
        Grid(-4).to_integers([1.0], *bounds)


def test_back_from_the_grid() -> None:
    grid = Grid(-3)
    assert grid.from_integers(np.array([1, -8, 20])).tolist() == [0.125, -1.0, 2.5]
    assert grid.from_integers(3) == Fraction(3, 8)
    assert grid.from_integers(2**80) == Fraction(2**77)
    assert np.array_equal(grid.to_integers(grid.from_integers(np.arange(-50, 50))), np.arange(-50, 50))


def test_a_grid_for_a_range() -> None:
    assert Grid.of_range(0, 100, 2**20).exponent == -14
    for lower, upper, steps in ((0, 100, 2**20), (-1, 1, 1000), (Fraction(1, 3), 2, 7), (0, 2**30, 2**20)):
        step = Grid.of_range(lower, upper, steps).step
        assert step <= Fraction(upper - lower) / steps < 2 * step
    with pytest.raises(ParameterError):
        Grid.of_range(1, 1)


@pytest.mark.parametrize("exponent", [0.5, True, "1", 2000, None])
def test_a_grid_has_an_integer_exponent(exponent: Any) -> None:
    with pytest.raises(ParameterError):
        Grid(exponent)


def test_integers_are_taken_exactly_or_not_at_all() -> None:
    assert Grid(2).to_integers(np.array([6, 5, -6])).tolist() == [2, 1, -1]
    with pytest.raises(ParameterError):
        Grid(0).to_integers(np.array([2**53 + 1]))
    with pytest.raises(ParameterError):
        Grid(0).sensitivity(-1)


INTS = [0, 1, -1, 2, 3, -3, 7, -8, 2**52 + 1, 2**53 - 1, 2**53 + 1, -(2**53) - 1, 2**62 + 3, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize("exponent", [-1000, -60, -3, 0, 1, 2, 10, 53, 62, 63, 64, 65, 200])
@pytest.mark.parametrize("unsigned", [False, True])
def test_private_ints_of_any_size_are_clamped_and_never_raise(exponent: int, unsigned: bool) -> None:
    """Against exact rationals: half up, then clamped. An error for one unit's value would betray it."""
    grid = Grid(exponent)
    values = [2**64 - 1, 2**63 + 5, *(v for v in INTS if v >= 0)] if unsigned else INTS
    array = np.array(values, np.uint64 if unsigned else np.int64)
    for low, high in ((-(2**53), 2**53), (-5, 3), (1, 7), (-9, -2)):
        found = grid.to_integers(array, low * grid.step, high * grid.step)
        exact = [min(max(grid.nearest(v), low), high) for v in values]
        assert found.dtype == np.int64
        assert found.tolist() == exact
    assert grid.to_integers(np.array([], array.dtype), 0, grid.step).shape == (0,)
    assert grid.to_integers(np.array([-128, 127], np.int8), 0, grid.step).shape == (2,)


def test_a_callers_error_state_lets_no_private_value_raise() -> None:
    """numpy raises for underflow if told to; one tiny value in a column would then be an answer."""
    values = np.array([5e-324, 1e308, -1e308, np.nan, np.inf, 1.0])
    with np.errstate(all="raise"):
        assert Grid(60).to_integers(values, 0, 2**70).tolist() == [0, 1024, 0, 512, 1024, 0]
        assert Grid(-100).to_integers(values, 0, Fraction(1, 2**60)).tolist()[0] == 0
