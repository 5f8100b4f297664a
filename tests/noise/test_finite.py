"""Coins, uniforms and finite choices: exact thresholds by injected bits, frequencies by chi-square."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from counts import part
from hubbub import noise
from hubbub.errors import ParameterError
from hubbub.noise import finite
from hubbub.noise.certified import Uniform, exp_bounds
from seeded import ReplayBits, SeededBits

N = part(2_000_000)
"""Draws of each law: the soak takes all, CI a quarter."""


def _chi_square(counts: np.ndarray, shares: Any) -> float:
    expected = np.asarray(shares, float) * counts.sum()
    assert not counts[expected == 0].any()
    counts, expected = counts[expected > 0], expected[expected > 0]
    if counts.size == 1:
        return 1.0
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), counts.size - 1))


def _coin_share(p: Fraction, **options: Any) -> float:
    """The chi-square p-value of N coins; false alarm 1e-9 where compared with it."""
    heads = int(noise.bernoulli(p, N, bits=SeededBits(str(p)), **options).sum())
    return _chi_square(np.array([N - heads, heads]), [1 - p, p])


@pytest.mark.parametrize("mode", ["fast", "hardened"])
@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 3), Fraction(99, 100), Fraction(1, 10**5)], ids=str)
def test_coins_show_heads_with_probability_p(p: Fraction, mode: str) -> None:
    """n = N, false alarm 1e-9."""
    assert _coin_share(p, mode=mode) >= 1e-9


def test_every_16_bit_prefix_of_a_coin_falls_on_its_side() -> None:
    """All 2^16 prefixes: heads for exactly floor(2^16 p) of them, and one border prefix decided by more bits."""
    every = np.arange(1 << 16, dtype=np.uint16)
    for p in (Fraction(1, 3), Fraction(1, 2), Fraction(2**16 - 1, 2**16), Fraction(1, 10**9), Fraction(0.1)):
        heads = np.empty(1 << 16, np.bool_)
        for start in range(0, 1 << 16, finite.CHUNK):
            part = every[start : start + finite.CHUNK]
            heads[start : start + part.size] = noise.bernoulli(p, part.size, bits=ReplayBits(part.tobytes()))
        sure = int(p * 65536)
        assert heads[:sure].all()
        assert not heads[sure + 1 :].any()


def test_certain_coins_are_certain() -> None:
    for mode in ("fast", "hardened"):
        assert noise.bernoulli(1, 100_000, mode=mode).all()
        assert not noise.bernoulli(0, 100_000, mode=mode).any()
        assert noise.bernoulli_exp(0, 100_000, mode=mode).all()
    assert noise.bernoulli(1) is True
    assert noise.bernoulli(0) is False
    assert noise.bernoulli_exp(Fraction(10) ** 400) is False
    assert not noise.bernoulli_exp([Fraction(10) ** 400, 1e308]).any()
    ends = noise.bernoulli(np.array([0.0, 1.0]), (100_000, 2))
    assert not ends[:, 0].any()
    assert ends[:, 1].all()
    top = ReplayBits(b"\xff" * 800_000)
    assert noise.bernoulli(np.ones(100_000), bits=top).all()
    assert noise.bernoulli_exp(np.zeros(100), bits=ReplayBits(b"\xff" * 800)).all()


@pytest.mark.parametrize("p", [0.1, 1 / 3, 2.0**-60, 1 - 2.0**-53])
def test_a_cell_on_the_border_of_p_is_decided_exactly(p: float) -> None:
    border = int(Fraction(p) * 2**64)
    words = [w for w in (border - 1, border, border + 1, border + 2**11, border - 2**11) if 0 <= w < 2**64]
    raw = np.array(words, np.uint64).tobytes()
    found = noise.bernoulli(np.full(len(words), p), bits=ReplayBits(raw))
    sure = [(w + 1 <= Fraction(p) * 2**64, w >= Fraction(p) * 2**64) for w in words]
    for yes, (below, above) in zip(found, sure, strict=True):
        assert yes or not below
        assert not yes or not above


def test_exponential_coins_by_number_and_by_cell() -> None:
    """n = N, false alarm 1e-9."""
    for x in (Fraction(1, 1000), Fraction(1), 7.5):
        p = float(mpmath.exp(-mpmath.mpf(Fraction(x).numerator) / Fraction(x).denominator))
        for mode in ("fast", "hardened"):
            heads = int(noise.bernoulli_exp(x, N, bits=SeededBits(str(x)), mode=mode).sum())
            assert _chi_square(np.array([N - heads, heads]), [1 - p, p]) >= 1e-9
        heads = int(noise.bernoulli_exp(np.full(N, float(x)), bits=SeededBits(str(x))).sum())
        assert _chi_square(np.array([N - heads, heads]), [1 - p, p]) >= 1e-9
    cells = noise.bernoulli_exp([Fraction(1, 3), 2, 0.5], (1000, 3))
    assert cells.shape == (1000, 3)
    assert cells.dtype == np.bool_


@pytest.mark.parametrize("n", [1, 2, 3, 6, 255, 256, 257, 1000])
def test_uniforms_are_uniform(n: int) -> None:
    """n = N, false alarm 1e-9."""
    draws = noise.uniform_below(n, N, bits=SeededBits(n))
    counts = np.bincount(draws, minlength=n)
    assert counts.size == n
    assert n == 1 or _chi_square(counts, np.full(n, 1 / n)) >= 1e-9


def test_uniforms_beyond_every_machine_word() -> None:
    n = 10**40
    draws = [noise.uniform_below(n, bits=SeededBits(i)) for i in range(2000)]
    assert 0 <= min(draws) < n // 100
    assert n - n // 100 < max(draws) < n
    assert noise.uniform_below(1) == 0
    assert type(noise.uniform_below(5)) is int


def test_uniforms_at_the_edge_of_int64() -> None:
    draws = noise.uniform_below(2**63, 10_000, bits=SeededBits(1))
    assert draws.min() >= 0
    assert draws.max() > 2**62
    odd = noise.uniform_below(2**62 + 1, 10_000, bits=SeededBits(2))
    assert odd.min() >= 0
    assert odd.max() <= 2**62
    with pytest.raises(ParameterError, match="int64"):
        noise.uniform_below(2**63 + 1, 2)


def test_a_bound_for_every_cell() -> None:
    """n = 2e5 per bound, false alarm 1e-9."""
    draws = noise.uniform_below(np.array([1, 3, 10]), (200_000, 3), bits=SeededBits("cells"))
    for column, n in zip(draws.T, (1, 3, 10), strict=True):
        counts = np.bincount(column, minlength=n)
        assert counts.size == n
        assert n == 1 or _chi_square(counts, np.full(n, 1 / n)) >= 1e-9
    assert noise.uniform_below([Fraction(4), 2.0]).shape == (2,)


WEIGHTS = [
    [1, 2, Fraction(1, 2)],
    [0, 1, 0, 0, 3, 0],
    [1],
    [10**40, 10**39],
    np.array([0.1, 0.2, 0.7]),
    np.arange(1, 300),
    [1e-300, 1, 1e-300],
]


@pytest.mark.parametrize("weights", WEIGHTS, ids=lambda w: str(len(w)))
def test_choices_follow_their_weights(weights: Any) -> None:
    """n = N, false alarm 1e-9."""
    exact = [Fraction(w if isinstance(w, Fraction | int) else float(w)) for w in weights]
    shares = [float(w / sum(exact)) for w in exact]
    shares = [share if share > 1e-12 else 0 for share in shares]
    counts = np.bincount(noise.choice(weights, N, bits=SeededBits("w")), minlength=len(shares))
    assert len(shares) == 1 or _chi_square(counts, shares) >= 1e-9


@pytest.mark.parametrize(
    "logs", [[0, 1, -1], [Fraction(1, 3)] * 5, np.linspace(-4, 4, 60), [-1000, 0, -(10**400)], [10**20, 10**20 + 1]]
)
def test_choices_follow_their_exponents(logs: Any) -> None:
    """n = N, false alarm 1e-9."""
    top = max(logs)
    masses = np.array([float(mpmath.exp(-mpmath.mpf(float(min(top - v, 10**9))))) for v in logs])
    counts = np.bincount(noise.choice(log_weights=logs, size=N, bits=SeededBits("l")), minlength=len(masses))
    assert _chi_square(counts, masses / masses.sum()) >= 1e-9


@pytest.mark.parametrize("mode", ["fast", "hardened"])
def test_single_choices(mode: str) -> None:
    """n = 2e4, false alarm 1e-9."""
    bits = SeededBits("single")
    draws = [noise.choice([3, 0, 1], bits=bits, mode=mode) for _ in range(20_000)]
    assert _chi_square(np.bincount(draws, minlength=3), [0.75, 0, 0.25]) >= 1e-9
    assert type(draws[0]) is int


def test_hardened_choices_look_at_every_weight() -> None:
    """Both ways of counting agree, ties and ends included."""
    steps = np.array([0.1, 0.1, 0.4, 0.9, 1.0])
    at = np.concatenate([[-1.0, 0.0, 2.0], steps, np.nextafter(steps, 0), np.linspace(0, 1, 40_000)])
    assert np.array_equal(finite._count_all(steps, at), finite._count_sorted(steps, at))
    bits = SeededBits("hardened")
    noise.choice(range(1, 50), 1000, bits=bits, mode="hardened")
    assert bits.drawn == 16_000


def test_settling_agrees_with_exact_cumulative_shares_on_every_border() -> None:
    weights = [Fraction(1, 7), Fraction(0), Fraction(2), Fraction(5, 3), Fraction(0)]
    table = finite._Weights(weights, None)
    total, running = sum(weights), Fraction(0)
    for i, weight in enumerate(weights[:-2]):
        running += weight
        border = int(running / total * 2**64)
        for word in (border - 1, border + 1):
            found = table.settle(Uniform(word, 64, SeededBits(i)))
            u = Fraction(word, 2**64)
            expected = next(j for j in range(5) if sum(weights[: j + 1]) / total > u)
            assert found == expected
    assert table.settle(Uniform(0, 64, SeededBits(0))) == 0
    assert table.settle(Uniform(2**64 - 1, 64, SeededBits(0))) == 3


def test_settling_exponential_weights_agrees_with_400_bits() -> None:
    logs = [Fraction(0), Fraction(-1), Fraction(-30), Fraction(-1, 2)]
    table = finite._Weights(None, logs)
    masses = [exp_bounds(-v, 400)[0] for v in logs]
    for i in range(3):
        border = (sum(masses[: i + 1]) << 64) // sum(masses)
        for offset in (-1, 0, 1):
            found = table.settle(Uniform(border + offset, 64, SeededBits(i)))
            assert found in ((i,) if offset < 0 else (i + 1,) if offset > 0 else (i, i + 1))


def test_draws_in_the_float_band_are_settled_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the band as wide as everything, every draw is settled, and the result is the same."""
    weights = [1, 0, 2, 3, 0]
    quick = noise.choice(weights, 3000, bits=SeededBits("band"))
    table = finite._Weights(weights, None)
    table.band = 2.0
    slow = np.empty(3000, np.int64)
    finite._choose(slow, table, SeededBits("band"), False)
    assert np.array_equal(quick, slow)


@pytest.mark.parametrize(
    "call",
    [
        lambda: noise.bernoulli(1.5),
        lambda: noise.bernoulli(-0.1, 5),
        lambda: noise.bernoulli(float("nan")),
        lambda: noise.bernoulli([0.5, 2]),
        lambda: noise.bernoulli([0.5, float("nan")]),
        lambda: noise.bernoulli([[0.5, 0.1]], 3),
        lambda: noise.bernoulli(True),
        lambda: noise.bernoulli_exp(-1),
        lambda: noise.bernoulli_exp([1, -1]),
        lambda: noise.bernoulli_exp([1, float("inf")]),
        lambda: noise.uniform_below(0),
        lambda: noise.uniform_below(2.5),
        lambda: noise.uniform_below([3, 0]),
        lambda: noise.uniform_below([3, 2.5]),
        lambda: noise.choice([]),
        lambda: noise.choice([0, 0]),
        lambda: noise.choice([1, -1]),
        lambda: noise.choice(np.array([1, -1])),
        lambda: noise.choice(np.array([1, np.nan])),
        lambda: noise.choice([1, float("inf")]),
        lambda: noise.choice([1], log_weights=[1]),
        lambda: noise.choice(),
        lambda: noise.choice(log_weights=[float("nan")]),
        lambda: noise.choice([1, 2], -1),
    ],
)
def test_what_is_no_probability_is_an_error(call: Any) -> None:
    with pytest.raises(ParameterError):
        call()


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(0.1), Fraction(1, 10**9)], ids=str)
def test_the_border_prefix_of_a_coin_goes_either_way(p: Fraction) -> None:
    border = int(p * 65536).to_bytes(2, "little")
    assert noise.bernoulli(p, 1, bits=ReplayBits(border + bytes(8)))[0]
    assert not noise.bernoulli(p, 1, bits=ReplayBits(border + b"\xff" * 8))[0]


@pytest.mark.parametrize("offset", [-1, 1])
def test_a_choice_on_the_border_of_64_bits_is_settled_by_128(offset: int) -> None:
    logs = [Fraction(0), Fraction(-1), Fraction(-30), Fraction(-1, 2)]
    table = finite._Weights(None, logs)
    masses = [exp_bounds(-v, 400)[0] for v in logs]
    for i in range(3):
        wide = (sum(masses[: i + 1]) << 128) // sum(masses) + offset
        u = Uniform(wide >> 64, 64, ReplayBits((wide & (2**64 - 1)).to_bytes(8, "little")))
        assert table.settle(u) == (i if offset < 0 else i + 1)


@pytest.mark.parametrize("error", [-(2.0**-46), 0, 2.0**-46])
@pytest.mark.parametrize("mode", ["fast", "hardened"])
def test_choices_stand_float_errors_within_the_band(error: float, mode: str) -> None:
    """Cumulative shares off by as much as floats may be, and U as close to the border 1/3: the draws do not change."""
    table = finite._Weights([1, 2], None)
    table.cumulative[0] += error
    border = 2**64 // 3
    words = [border + k for k in (-(2**17), -(2**12), -1, 1, 2**12, 2**17)]
    out = np.empty(6, np.int64)
    spare = mode == "hardened"
    finite._choose(out, table, ReplayBits(np.array(words, np.uint64).tobytes()), spare)
    assert out.tolist() == [0, 0, 0, 1, 1, 1]
