"""Draws against their laws: both methods, both modes, on each side of every change of path."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from counts import part
from hubbub import noise
from hubbub.errors import ParameterError
from hubbub.noise import DiscreteGaussian, DiscreteLaplace, Geometric, direct, draw
from hubbub.noise.parameters import approximation, many_cells, one_cell
from hubbub.noise.tables import gaussian_table, laplace_table
from seeded import ReplayBits, SeededBits

N = part(4_000_000)
"""Draws of each law: the soak takes as many as the tests state, CI a quarter."""
Fits = Callable[[np.ndarray, Any], None]

LAPLACE = [0.1, 1, Fraction(22, 7), 10, 127.9, 128, 129, 1000.5, 4095.9, 4096, 10**6, 1e12, 2**53]
SIGMAS = [0.1, 0.9, 1, 2.5, 63, 299, 300, 301, 1000.5, 10**5, 1e9, 2**53]


def _filled(table: Any, n: int, seed: str) -> np.ndarray:
    out = np.empty(n, np.int64)
    table.fill(out, SeededBits(seed))
    return out


@pytest.mark.parametrize("scale", LAPLACE, ids=str)
def test_laplace_tables_follow_the_law(scale: Any, fits: Fits) -> None:
    """n = 4e6, false alarm 1e-9."""
    fits(_filled(laplace_table(Fraction(scale), two_sided=True), N, f"t{scale}"), DiscreteLaplace(scale))


@pytest.mark.parametrize("scale", [0.5, 10, 127.9, 128, 10**6], ids=str)
def test_geometric_tables_follow_the_law(scale: Any, fits: Fits) -> None:
    """n = 4e6, false alarm 1e-9."""
    fits(_filled(laplace_table(Fraction(scale), two_sided=False), N, f"g{scale}"), Geometric(scale))


@pytest.mark.parametrize("sigma", SIGMAS, ids=str)
def test_gaussian_tables_follow_the_law(sigma: Any, fits: Fits) -> None:
    """n = 4e6, false alarm 1e-9."""
    fits(_filled(gaussian_table(Fraction(sigma) ** 2), N, f"s{sigma}"), DiscreteGaussian(sigma))


def _direct(many: Any, parameter: Fraction, n: int, seed: str, spare: bool) -> np.ndarray:
    return draw._in_chunks(many, one_cell(parameter), (n,), SeededBits(seed), spare)


@pytest.mark.parametrize("spare", [False, True], ids=["fast", "hardened"])
@pytest.mark.parametrize("scale", [0.1, 1, 10, 4095.9, 4096, 1e12, 2**53], ids=str)
def test_laplace_without_tables_follows_the_law(scale: Any, spare: bool, fits: Fits) -> None:
    """n = 4e6 (fast) or 1e6, false alarm 1e-9."""
    n = N // 4 if spare else N
    fits(_direct(direct.laplace, Fraction(scale), n, f"d{scale}{spare}", spare), DiscreteLaplace(scale))


@pytest.mark.parametrize("scale", [0.5, 100, 4096, 1e9], ids=str)
def test_geometric_without_tables_follows_the_law(scale: Any, fits: Fits) -> None:
    """n = 4e6, false alarm 1e-9."""
    fits(_direct(direct.geometric, Fraction(scale), N, f"dg{scale}", False), Geometric(scale))


@pytest.mark.parametrize("spare", [False, True], ids=["fast", "hardened"])
@pytest.mark.parametrize("sigma", [0.1, 0.9, 1, 2.5, 300, 4096, 2**53], ids=str)
def test_gaussian_without_tables_follows_the_law(sigma: Any, spare: bool, fits: Fits) -> None:
    """n = 1e6, false alarm 1e-9."""
    draws = _direct(direct.gaussian, Fraction(sigma) ** 2, N // 4, f"ds{sigma}{spare}", spare)
    fits(draws, DiscreteGaussian(sigma))


@pytest.mark.parametrize("sigma", [0.7, 40], ids=str)
def test_small_batches_of_gaussians_follow_the_law(sigma: float, fits: Fits) -> None:
    """Batches below 1024 propose four times at once; 2,000 batches of 50, false alarm 1e-9."""
    bits = SeededBits("batches")
    cell = one_cell(Fraction(sigma) ** 2)
    draws = np.concatenate([direct.gaussian(cell, 50, bits, False) for _ in range(2000)])
    fits(draws, DiscreteGaussian(sigma))


@pytest.mark.parametrize(
    ("one", "law", "parameter"),
    [
        (direct.laplace_one, DiscreteLaplace(Fraction(22, 7)), Fraction(22, 7)),
        (direct.laplace_one, DiscreteLaplace(5000), Fraction(5000)),
        (direct.geometric_one, Geometric(9), Fraction(9)),
        (direct.geometric_one, Geometric(10**7), Fraction(10**7)),
        (direct.gaussian_one, DiscreteGaussian(0.8), Fraction(0.8) ** 2),
        (direct.gaussian_one, DiscreteGaussian(10**4), Fraction(10**8)),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_single_draws_follow_the_law(one: Any, law: Any, parameter: Fraction, fits: Fits) -> None:
    """n = 6e4, a third of it in CI, false alarm 1e-9."""
    bits = SeededBits("one")
    draws = [one(approximation(parameter), lambda: parameter, bits) for _ in range(part(60_000, 3))]
    fits(np.array(draws), law)


def test_low_digits_of_wide_laws_are_drawn_like_the_rest(fits: Fits) -> None:
    """x mod 256 for scales where it is uniform to 1e-9; n = 4e6, 256 cells, false alarm 1e-9."""
    from scipy.stats import chi2

    for draws in (
        _filled(laplace_table(Fraction(10**12), two_sided=True), N, "low"),
        _filled(gaussian_table(Fraction(10**20)), N, "low"),
        _direct(direct.laplace, Fraction(10**12), N, "low", False),
    ):
        counts = np.bincount(draws & 255, minlength=256)
        statistic = ((counts - N / 256) ** 2).sum() / (N / 256)
        assert chi2.sf(statistic, 255) >= 1e-9


def test_tiny_scales_draw_zero() -> None:
    """P(X != 0) < exp(-1e8), so no draw of any number ever differs."""
    for name in ("laplace", "gaussian", "geometric"):
        function = getattr(noise, name)
        for scale in (1e-9, 1e-300, 5e-324, Fraction(1, 10**400)):
            assert function(scale) == 0
            assert not function(scale, 1000).any()
            assert not function([scale] * 10).any()
            assert not function(scale, 200_000 if scale == 1e-9 else 10, mode="hardened").any()
    assert not noise.laplace(1e-9, 200_000).any()


# --- a scale for every cell ---------------------------------------------------------------------------------


def test_each_cell_has_its_own_scale(fits: Fits) -> None:
    """n = 2e5 per scale, false alarm 1e-9 each."""
    scales = np.array([0.2, 3, 1000, 1e7, 1e15])
    draws = noise.laplace(scales, (N // 20, 5), bits=SeededBits("cells"))
    normal = noise.gaussian(scales, (N // 20, 5), bits=SeededBits("cells"))
    powers = noise.gaussian(variance=scales, size=(N // 20, 5), bits=SeededBits("cells"))
    once = noise.geometric(scales, (N // 20, 5), bits=SeededBits("cells"))
    for i, scale in enumerate(scales):
        fits(draws[:, i], DiscreteLaplace(float(scale)))
        fits(normal[:, i], DiscreteGaussian(float(scale)))
        fits(powers[:, i], DiscreteGaussian.from_variance(float(scale)))
        fits(once[:, i], Geometric(float(scale)))


def test_cells_take_every_kind_of_number_and_shape() -> None:
    assert noise.laplace(np.array([[1, 2], [3, 4]])).shape == (2, 2)
    assert noise.laplace([1, 2, 3], (4, 3)).shape == (4, 3)
    assert noise.gaussian([Fraction(1, 3), 2.5, 10**6]).dtype == np.int64
    assert noise.laplace(np.float32([0.1, 2])).shape == (2,)
    assert noise.geometric(np.zeros((0, 3)) + 1.0).shape == (0, 3)
    assert noise.laplace(np.array([2.0]), 5).shape == (5,)
    assert noise.laplace(3, 0).shape == (0,)
    assert noise.laplace(3, ()).shape == ()
    assert type(noise.laplace(3)) is int
    assert type(noise.laplace(np.float64(3))) is int


def test_the_choice_of_method_depends_on_the_number_of_draws_only(fits: Fits) -> None:
    """Below and above the size that is worth a table; n in all 4e6, false alarm 1e-9."""
    bits = SeededBits("sizes")
    sizes = [1, 50, 1000, 131_071, 131_072, 131_073, 500_000, 70_000, 3_116_283]
    draws = [noise.laplace(Fraction(77, 3), n, bits=bits) for n in sizes]
    assert [d.size for d in draws] == sizes
    fits(np.concatenate(draws), DiscreteLaplace(Fraction(77, 3)))


# --- forced decisions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [Fraction(1, 40), Fraction(1, 2), Fraction(10), Fraction(3000)], ids=str)
def test_a_uniform_on_the_border_of_two_values_is_decided_exactly(scale: Fraction) -> None:
    """U's first 64 bits are those of exp(-k/b), a unit less or more: floor(-b ln U) by 200-bit logarithms."""
    words = []
    with mpmath.workprec(300):
        for k in (1, 2, 5, 17):
            border = int(
                mpmath.floor(mpmath.ldexp(mpmath.exp(-k / (mpmath.mpf(scale.numerator) / scale.denominator)), 64))
            )
            words += [border - 1, border + 1, border - 2**12, border + 2**12]
    words += [0, 1, 2**12 - 1, 2**12, 2**64 - 1, 2**64 - 2**12]
    words = [w for w in words if 0 <= w < 2**64]
    raw = np.array(words, np.uint64).tobytes()
    many = direct.geometric(one_cell(scale), len(words), ReplayBits(raw), False)
    single = [direct.geometric_one(float(scale), lambda: scale, ReplayBits(np.uint64(w).tobytes())) for w in words]
    with mpmath.workprec(300):
        for word, found, alone in zip(words, many.tolist(), single, strict=True):
            b = mpmath.mpf(scale.numerator) / scale.denominator
            low = mpmath.floor(-b * mpmath.log(mpmath.ldexp(word + 1, -64)))
            high = mpmath.floor(-b * mpmath.log(mpmath.ldexp(word, -64))) if word else mpmath.inf
            assert low <= found <= high
            assert low <= alone <= high


@pytest.mark.parametrize("x", [Fraction(1, 10**6), Fraction(1, 3), Fraction(2), Fraction(30)], ids=str)
def test_an_acceptance_on_the_border_is_decided_exactly(x: Fraction) -> None:
    from hubbub.noise.certified import exp_bounds

    low, high = exp_bounds(x, 64)
    words = [w for w in range(low - 3, high + 4) if 0 <= w < 2**64]
    sure = [w for w in words if w + 1 <= low or w >= high]
    raw = np.array(sure, np.uint64).tobytes()
    draws = direct.Uniforms.draw(len(sure), ReplayBits(raw), False)
    found = direct.accept_exp(draws, np.full(len(sure), float(x)), lambda _: x)
    assert found.tolist() == [w + 1 <= low for w in sure]
    for word in sure:
        alone = direct.bernoulli_exp_one(float(x), lambda: x, ReplayBits(np.uint64(word).tobytes()))
        assert alone == (word + 1 <= low)


def test_platform_functions_stay_far_inside_the_bands() -> None:
    """The bands allow errors of 2^6 units in the last place of exp and log; measured over 2e4 points each."""
    rng = np.random.default_rng(7)
    prefix = rng.integers(1, 2**52, 20_000).astype(np.float64) + 0.5
    prefix[:2000] = 2.0**52 - np.arange(2000) - 0.5
    u = prefix * 2.0**-52
    x = np.concatenate([rng.exponential(3, 10_000), rng.uniform(0, 700, 5000), 10.0 ** rng.uniform(-12, 0, 5000)])
    logs, exps = np.log(u), np.exp(-x)
    with mpmath.workdps(30):
        for value, found in zip(u.tolist(), logs.tolist(), strict=True):
            truth = mpmath.log(mpmath.mpf(value))
            assert abs(found - truth) <= 2**3 * abs(truth) * 2.0**-53
            assert abs(math.log(value) - truth) <= 2**3 * abs(truth) * 2.0**-53
        for value, found in zip(x.tolist(), exps.tolist(), strict=True):
            truth = mpmath.exp(-mpmath.mpf(value))
            assert abs(found - truth) <= 2**3 * truth * 2.0**-53
            assert abs(math.exp(-value) - truth) <= 2**3 * truth * 2.0**-53


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["laplace", "gaussian", "geometric"])
@pytest.mark.parametrize("size", [None, 3])
@pytest.mark.parametrize(
    "scale", [0, -1, 0.0, -0.0, float("nan"), float("inf"), float("-inf"), 2**53 + 1, 1e300, True, "3", None, 1j]
)
def test_scales_without_a_law_are_errors(name: str, size: int | None, scale: Any) -> None:
    with pytest.raises(ParameterError):
        getattr(noise, name)(scale, size)


@pytest.mark.parametrize("name", ["laplace", "gaussian", "geometric"])
@pytest.mark.parametrize(
    "scales",
    [[1.0, 0.0], [1.0, -2.0], [1.0, float("nan")], [float("inf")], [2.0**53, 2.0**54], ["a"], [True], [1j],
     [Fraction(1, 2), Fraction(0)], [Fraction(1), Fraction(2**53 + 1)]],
    ids=str,
)  # fmt: skip
def test_one_bad_cell_is_an_error(name: str, scales: Any) -> None:
    with pytest.raises(ParameterError):
        getattr(noise, name)(scales)


@pytest.mark.parametrize("scale", ["sNaN", "NaN", "Infinity", "1e400", "1e999999999", "1e-999999999"])
def test_decimals_without_a_scale_are_errors_at_once(scale: str) -> None:
    with pytest.raises(ParameterError):
        noise.laplace(Decimal(scale))
    assert isinstance(noise.laplace(Decimal("0.1")), int)


def test_rows_of_different_lengths_are_an_error() -> None:
    for function in (noise.laplace, noise.gaussian, noise.bernoulli, noise.uniform_below):
        with pytest.raises(ParameterError, match="length"):
            function([[1], [1, 1]])


@pytest.mark.parametrize("size", [-1, (2, -1), 2.5, "3", True])
def test_sizes_that_are_no_shape_are_errors(size: Any) -> None:
    with pytest.raises(ParameterError):
        noise.laplace(1, size)


def test_scales_that_do_not_fit_the_size_are_an_error() -> None:
    with pytest.raises(ParameterError, match="shape"):
        noise.laplace([1, 2, 3], 4)


def test_sigma_or_variance_but_not_both() -> None:
    for arguments in ({}, {"sigma": 1, "variance": 1}):
        with pytest.raises(ParameterError, match="exactly one"):
            noise.gaussian(**arguments)
    assert isinstance(noise.gaussian(variance=Fraction(1, 3)), int)
    with pytest.raises(ParameterError):
        noise.gaussian(variance=2**106 + 1, size=3)
    with pytest.raises(ParameterError):
        noise.gaussian(variance=[2.0**107])


def test_a_callers_error_state_changes_nothing() -> None:
    with np.errstate(all="raise"):
        for mode in ("fast", "hardened"):
            for scale in (1e-9, 3, 1e9):
                for name in ("laplace", "gaussian", "geometric"):
                    getattr(noise, name)(scale, 20_000, mode=mode)
                    getattr(noise, name)([scale] * 100, mode=mode)
            noise.bernoulli_exp([1.0, 1e9], (1000, 2), mode=mode)
            noise.choice(log_weights=np.array([0.0, -1e6]), size=10, mode=mode)
        noise.laplace(1e6, 200_000)
        noise.gaussian(1e6, 200_000)


def test_half_precision_scales_are_read_as_they_are() -> None:
    assert noise.laplace(np.float16([2.0, 60_000])).shape == (2,)
    with pytest.raises(ParameterError):
        noise.laplace(np.array([2**53 + 1]))


def test_the_widest_scale_stays_far_inside_int64() -> None:
    for draws in (noise.laplace(2**53, 10**6), noise.gaussian(2**53, 10**6), noise.geometric(2**53, 10**6)):
        assert np.abs(draws).max() < 2**59


# --- every decision by integers -----------------------------------------------------------------------------

EXACT = {
    "laplace": lambda bits: noise.laplace(Fraction(22, 7), 400, bits=bits),
    "laplace, digits": lambda bits: noise.laplace(10**6, 400, bits=bits),
    "laplace, cells": lambda bits: noise.laplace([0.5, 3, 1e5, 1e12], (100, 4), bits=bits),
    "laplace, hardened": lambda bits: noise.laplace(10**6, 400, bits=bits, mode="hardened"),
    "geometric": lambda bits: noise.geometric(17, 400, bits=bits),
    "gaussian": lambda bits: noise.gaussian(2.5, 400, bits=bits),
    "gaussian, wide": lambda bits: noise.gaussian(10**6, 400, bits=bits),
    "gaussian, cells": lambda bits: noise.gaussian(variance=[0.5, 3, 1e5, 1e12], size=(100, 4), bits=bits),
    "one laplace": lambda bits: [noise.laplace(10**6, bits=bits) for _ in range(200)],
    "one geometric": lambda bits: [noise.geometric(17, bits=bits) for _ in range(200)],
    "one gaussian": lambda bits: [noise.gaussian(40, bits=bits) for _ in range(200)],
    "table, digits": lambda bits: _few(laplace_table(Fraction(10**6), two_sided=True), bits),
    "table, blocks": lambda bits: _few(gaussian_table(Fraction(10**12)), bits),
    "bernoulli": lambda bits: noise.bernoulli(np.linspace(0, 1, 400), bits=bits),
    "bernoulli_exp": lambda bits: noise.bernoulli_exp(np.linspace(0, 9, 400), bits=bits),
}


def _few(table: Any, bits: Any) -> np.ndarray:
    out = np.empty(5000, np.int64)
    table.fill(out, bits)
    return out


@pytest.mark.parametrize("name", EXACT)
def test_floats_and_integers_decide_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With bands as wide as everything, certified integers decide all: the same draws from the same bits."""
    monkeypatch.setattr(draw, "_tables", {})
    quick = EXACT[name](SeededBits(name))
    monkeypatch.setattr(direct, "_BAND", 2.0)
    monkeypatch.setattr(direct, "_LOG_SLACK", 1.0)
    assert np.array_equal(quick, EXACT[name](SeededBits(name)))


def test_parts_of_the_cells_keep_their_own_parameters() -> None:
    scales = np.arange(1.0, 100_001.0)
    cells = many_cells(scales, scales.shape, "scale", 2**53)
    part = cells.part(40_000, 40_010)
    again = part.at(np.array([3, 3, 0]))
    assert part.exactly(0) == 40_001 == part.approximate[0]
    assert [again.exactly(i) for i in range(3)] == [40_004, 40_004, 40_001] == again.approximate.tolist()
