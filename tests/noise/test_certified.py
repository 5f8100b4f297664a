"""Enclosures and decisions against mpmath."""

import random
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings, strategies as st

from hubbub.noise.certified import Uniform, ceil_sqrt, exp_bounds, odds_bounds, rational_bounds
from seeded import ReplayBits, SeededBits

RATES = st.one_of(
    st.fractions(min_value=0, max_value=200, max_denominator=10**9),
    st.floats(min_value=0, max_value=1e9, allow_nan=False).map(Fraction),
)


def _scaled(value: mpmath.mpf, precision: int) -> mpmath.mpf:
    return mpmath.ldexp(value, precision)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(RATES, st.integers(min_value=1, max_value=300))
def test_exponentials_are_enclosed_within_four_units(x: Fraction, precision: int) -> None:
    low, high = exp_bounds(x, precision)
    with mpmath.workprec(precision + 2200 if x > 1000 else precision + 400):
        truth = _scaled(mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator), precision)
        assert low <= truth <= high
    assert high - low <= 4


@pytest.mark.parametrize(("precision", "count"), [(20, 100), (64, 100), (300, 100), (3000, 100)])
def test_exponentials_a_hair_from_an_integer_are_enclosed(precision: int, count: int) -> None:
    """2^precision exp(-x) = k +- 2^-120: any error of the series that is not counted ends on the wrong side of k.

    Without the series' share of the error 10 of the first 600 cases fail; with a constant in place of what grows
    with the number of terms, some at 3000 bits do. What is counted is a few times what can be met: the terms' errors
    alternate in sign, so that no x attains the bound itself.
    """
    rng = random.Random(precision)
    with mpmath.workprec(precision + 800):
        for i in range(2 * count):
            k = rng.randrange(1, 1 << precision)
            near = mpmath.mpf(k) + mpmath.ldexp(1 if i & 1 else -1, -120)
            fine = precision + 300
            x = Fraction(int(mpmath.ldexp(-mpmath.log(mpmath.ldexp(near, -precision)), fine)), 1 << fine)
            truth = _scaled(mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator), precision)
            assert abs(truth - near) < mpmath.ldexp(1, -130)
            low, high = exp_bounds(x, precision)
            assert low <= truth <= high


@settings(max_examples=100, deadline=None, derandomize=True)
@given(RATES, st.integers(min_value=8, max_value=200))
def test_the_sign_of_a_laplace_draw_is_enclosed(x: Fraction, precision: int) -> None:
    low, high = odds_bounds(x, precision)
    with mpmath.workprec(precision + 400):
        q = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)
        assert low <= _scaled(q / (1 + q), precision) <= high
    assert high - low <= 6


def test_a_rate_beyond_every_float_is_decided_at_once() -> None:
    assert exp_bounds(Fraction(10) ** 400, 64) == (0, 1)
    assert exp_bounds(1 / Fraction(5e-324), 1000) == (0, 1)


@given(st.fractions(min_value=0, max_value=1), st.integers(min_value=0, max_value=80))
def test_rationals_are_enclosed_within_one_unit(p: Fraction, precision: int) -> None:
    low, high = rational_bounds(p, precision)
    assert low <= p * 2**precision <= high <= low + 1


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(5), Fraction(7, 10**6)])
@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_a_uniform_that_starts_like_the_threshold_goes_on_to_more_bits(rate: Fraction, offset: int) -> None:
    """U's first 64 bits are those of exp(-rate), off by `offset` units, and the next 64 too, or all zeros or ones."""
    wide = exp_bounds(rate, 300)[0] >> 44  # 256 bits of exp(-rate)
    prefix = (wide >> 192) + offset
    next_words = {0: (wide >> 128) & (2**64 - 1), 1: 0, 2: 2**64 - 1}
    for kind, word in next_words.items():
        u = Uniform(prefix, 64, ReplayBits(word.to_bytes(8, "little")))
        decided = u.below_exp(rate)
        known = Fraction(u.prefix, 2**u.length)
        with mpmath.workprec(800):
            truth = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)
            cell = mpmath.mpf(known.numerator) / known.denominator
            assert decided == (cell < truth)
        if offset == 0:
            assert u.length >= (192 if kind == 0 else 128)
        else:
            assert u.length == 64


def test_bits_drawn_beforehand_are_used_first() -> None:
    source = SeededBits()
    u = Uniform(5, 64, source, spare=9)
    u.extend()
    assert (u.prefix, u.length, source.drawn) == ((5 << 64) | 9, 128, 0)
    u.extend()
    assert (u.length, source.drawn) == (192, 8)


@pytest.mark.parametrize("scale", [Fraction(1, 7), Fraction(3), Fraction(10**9), Fraction(2) ** 100])
@pytest.mark.parametrize("prefix", [0, 1, 2**20, 2**63, 2**64 - 1])
def test_floor_of_the_logarithm(scale: Fraction, prefix: int) -> None:
    u = Uniform(prefix, 64, SeededBits(1))
    k = u.floor_log(scale)
    with mpmath.workprec(600):
        low, high = (
            -mpmath.log(mpmath.mpf(u.prefix + end) / mpmath.mpf(2) ** u.length)
            * (mpmath.mpf(scale.numerator) / scale.denominator)
            for end in (1, 0 if u.prefix else mpmath.mpf("1e-300"))
        )
        assert mpmath.floor(low) <= k <= mpmath.floor(high)
        if u.prefix:
            assert mpmath.floor(low) == mpmath.floor(high) or high - low > 1


@given(st.fractions(min_value=0, max_value=10**6))
def test_integer_root_rounds_up(x: Fraction) -> None:
    root = ceil_sqrt(x)
    assert root * root >= x
    assert root == 0 or (root - 1) ** 2 < x


@pytest.mark.parametrize(("offset", "word", "below"), [(1, 0, True), (-1, 2**64 - 1, False)])
def test_an_enclosure_that_straddles_the_cell_decides_nothing(offset: int, word: int, below: bool) -> None:
    """p lies half a unit of 2^-80 inside an end of U's cell, and its enclosure reaches across: U goes on."""
    k = 0x123456789ABCDEF0
    p = Fraction(2 * (k + (offset < 0)) * 2**16 + offset, 2 * 2**80)

    def bounds(precision: int) -> tuple[int, int]:
        return (int(p * 2**precision) - 2, int(p * 2**precision) + 2)

    u = Uniform(k, 64, ReplayBits(word.to_bytes(8, "little") * 4))
    assert u.below(bounds) == below
    assert u.length > 64
