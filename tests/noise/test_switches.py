"""Chi-square of n = 4e6 draws on both sides of every change of path; those too slow for every run are `soak`.

The changes: a table or a split (scale 128, sigma 300); one more binary digit split off (powers of two); digits drawn
apart without a table (scale 2^12, and proposals of that scale: sigma 2^12 - 1); four proposals at once (fewer than
1024 Gaussians); a table or none (2^17 or 2^15 draws); one draw or many; `fast` or `hardened`. Each test fails with
probability 1e-9 for a random source of bits; the source is fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from counts import part
from hubbub import noise, plain
from hubbub.noise import DiscreteGaussian, DiscreteLaplace, Geometric, direct, draw
from hubbub.noise.parameters import approximation, one_cell
from hubbub.noise.tables import gaussian_table, laplace_table
from seeded import SeededBits

N = part(4_000_000)
"""Draws of each law: the soak takes all, CI a quarter."""
Fits = Callable[[np.ndarray, Any], None]
TINY = Fraction(1, 10**6)

SPLITS = [128 - TINY, 128, 256 - TINY, 256, 2**20 - TINY, 2**20, 2**53 - TINY, 2**53]
BLOCKS = [300 - TINY, 300, 512 - TINY, 512, 2**20 - TINY, 2**20, 2**53 - TINY, 2**53]
DIGITS = [Fraction(1, 20), 4096 - TINY, 4096, 8192 - TINY, 8192, 2**53]
PROPOSALS = [Fraction(1, 20), 1 - TINY, 1, 4095 - TINY, 4095, 2**53]


def _filled(table: Any, seed: str) -> np.ndarray:
    out = np.empty(N, np.int64)
    table.fill(out, SeededBits(seed))
    return out


def _direct(many: Any, parameter: Fraction, seed: str, spare: bool) -> np.ndarray:
    return draw._in_chunks(many, one_cell(parameter), (N,), SeededBits(seed), spare)


@pytest.mark.parametrize("scale", SPLITS, ids=str)
def test_laplace_and_geometric_tables(scale: Any, fits: Fits) -> None:
    fits(_filled(laplace_table(Fraction(scale), two_sided=True), f"l{scale}"), DiscreteLaplace(scale))
    fits(_filled(laplace_table(Fraction(scale), two_sided=False), f"g{scale}"), Geometric(scale))


@pytest.mark.parametrize("sigma", BLOCKS, ids=str)
def test_gaussian_tables(sigma: Any, fits: Fits) -> None:
    fits(_filled(gaussian_table(Fraction(sigma) ** 2), f"s{sigma}"), DiscreteGaussian(sigma))


@pytest.mark.soak
@pytest.mark.parametrize("spare", [False, True], ids=["fast", "hardened"])
@pytest.mark.parametrize("scale", DIGITS, ids=str)
def test_laplace_and_geometric_without_tables(scale: Any, spare: bool, fits: Fits) -> None:
    fits(_direct(direct.laplace, Fraction(scale), f"l{scale}", spare), DiscreteLaplace(scale))
    fits(_direct(direct.geometric, Fraction(scale), f"g{scale}", spare), Geometric(scale))


@pytest.mark.soak
@pytest.mark.parametrize("spare", [False, True], ids=["fast", "hardened"])
@pytest.mark.parametrize("sigma", PROPOSALS, ids=str)
def test_gaussian_without_tables(sigma: Any, spare: bool, fits: Fits) -> None:
    fits(_direct(direct.gaussian, Fraction(sigma) ** 2, f"s{sigma}", spare), DiscreteGaussian(sigma))


def _batches(draw_some: Callable[[int], np.ndarray], sizes: tuple[int, ...]) -> np.ndarray:
    parts, total = [], 0
    while total < N:
        parts += [draw_some(size) for size in sizes]
        total += sum(sizes)
    return np.concatenate(parts)


@pytest.mark.soak
@pytest.mark.parametrize("sigma", [Fraction(7, 10), Fraction(40), Fraction(5000)], ids=str)
def test_batches_of_gaussians_below_and_above_four_proposals_at_once(sigma: Fraction, fits: Fits) -> None:
    bits = SeededBits("batches")
    cell = one_cell(sigma**2)
    fits(_batches(lambda n: direct.gaussian(cell, n, bits, False), (1023, 1024, 1025)), DiscreteGaussian(sigma))


@pytest.mark.parametrize("mode", ["fast", pytest.param("hardened", marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("law", "limit"),
    [(DiscreteLaplace(Fraction(77, 3)), 1 << 17), (Geometric(1000), 1 << 17), (DiscreteGaussian(500), 1 << 15)],
    ids=str,
)
def test_numbers_of_draws_below_and_above_a_table(
    law: Any, limit: int, mode: noise.Mode, fits: Fits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draw, "_tables", {})
    bits = SeededBits(str(law))
    draws = {
        DiscreteLaplace: lambda n: draw.laplace_draws(law.scale, n, bits, mode),
        Geometric: lambda n: draw.geometric_draws(law.scale, n, bits, mode),
        DiscreteGaussian: lambda n: draw.gaussian_draws(law.sigma2, n, bits, mode),
    }[type(law)]
    below = _batches(draws, (limit - 1,))
    assert not draw._tables
    fits(below, law)
    with plain.only(plain=False):
        above = _batches(draws, (limit, limit - 1))
    assert bool(draw._tables) == (mode == "fast")
    fits(above, law)


@pytest.mark.soak
@pytest.mark.parametrize("scale", [Fraction(3, 2), 4096 - TINY, Fraction(4096)], ids=str)
@pytest.mark.parametrize(
    ("one", "law", "power"),
    [
        (direct.laplace_one, DiscreteLaplace, 1),
        (direct.geometric_one, Geometric, 1),
        (direct.gaussian_one, DiscreteGaussian, 2),
    ],
    ids=["laplace", "geometric", "gaussian"],
)
def test_single_draws(one: Any, law: Any, power: int, scale: Fraction, fits: Fits) -> None:
    bits = _Words(f"one{scale}")
    parameter = scale**power
    b = approximation(parameter)
    fits(np.array([one(b, lambda: parameter, bits) for _ in range(N)]), law(scale))


class _Words(SeededBits):
    """Single words out of a larger pool, as the production source gives them."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self._pool: list[int] = []

    def word(self) -> int:
        if not self._pool:
            self._pool = self.u64(1 << 12).tolist()
        return self._pool.pop()


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["fast", "hardened"])
@pytest.mark.parametrize("p", [Fraction(1, 65537), Fraction(1, 65536), Fraction(1, 3), Fraction(65535, 65536)], ids=str)
def test_coins(p: Fraction, mode: noise.Mode) -> None:
    from scipy.stats import binom

    heads = int(noise.bernoulli(p, N, bits=SeededBits(str(p)), mode=mode).sum())
    assert 2 * min(binom.cdf(heads, N, float(p)), binom.sf(heads - 1, N, float(p))) >= 1e-9


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["fast", "hardened"])
def test_choices(mode: noise.Mode) -> None:
    from scipy.stats import chi2

    weights = [Fraction(1, k) for k in range(1, 40)]
    shares = np.array([float(w / sum(weights)) for w in weights])
    for given in ({"weights": weights}, {"log_weights": [Fraction(-k, 7) for k in range(39)]}):
        if "log_weights" in given:
            shares = np.exp(-np.arange(39) / 7)
            shares /= shares.sum()
        counts = np.bincount(noise.choice(**given, size=N, bits=SeededBits("choice"), mode=mode), minlength=39)
        assert chi2.sf(((counts - N * shares) ** 2 / (N * shares)).sum(), 38) >= 1e-9
