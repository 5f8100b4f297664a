"""`hardened`: bytes and look-ups do not depend on the value; memory; attacks on floating-point noise."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub import noise
from hubbub.errors import ParameterError
from hubbub.noise import DiscreteGaussian, DiscreteLaplace, Grid, draw, workers
from seeded import ReplayBits, SeededBits


@pytest.fixture(autouse=True)
def _mode_restored() -> Iterator[None]:
    yield
    noise.set_mode("fast")


def _bytes_of(draw_one: Callable[[SeededBits], Any], n: int) -> tuple[np.ndarray, np.ndarray]:
    bits = SeededBits("bytes")
    values, used = np.empty(n), np.empty(n, np.int64)
    for i in range(n):
        before = bits.drawn
        values[i] = draw_one(bits)
        used[i] = bits.drawn - before
    return values, used


@pytest.mark.parametrize("scale", [1e-3, 1, 10, 4095])
def test_hardened_laplace_takes_the_same_bytes_whatever_it_draws(scale: float) -> None:
    values, used = _bytes_of(lambda bits: noise.laplace(scale, bits=bits, mode="hardened"), 2000)
    assert set(used) == {32}
    assert scale < 1 or len(set(values)) > 3


@pytest.mark.parametrize("top", [0, 1, 2**63, 2**64 - 1])
def test_hardened_draws_in_a_doubtful_cell_take_no_more_bytes(top: int) -> None:
    """Words at the ends of the unit interval are decided by integers, out of bytes drawn beforehand."""
    bits = SeededBits("after")
    first = ReplayBits((top.to_bytes(8, "little") + b"\x17\x80" * 4) * 2)
    first._rest = bits
    noise.laplace(10, bits=first, mode="hardened")
    assert bits.drawn == 0


@pytest.mark.parametrize(
    ("draw_one", "trial"),
    [
        (lambda bits: noise.laplace(10**9, bits=bits, mode="hardened"), 24),
        (lambda bits: noise.gaussian(10, bits=bits, mode="hardened"), 4 * 48),
    ],
    ids=["laplace", "gaussian"],
)
def test_hardened_rejections_are_independent_of_the_value_kept(
    draw_one: Callable[[SeededBits], int], trial: int
) -> None:
    """Bytes come in whole trials; large and small |values| take the same mean. n = 4e3, false alarm 1e-9 (6.1 sd)."""
    values, used = _bytes_of(draw_one, 4000)
    trials = (used - used.min()) / trial
    assert np.array_equal(trials, np.floor(trials))
    large = np.abs(values) > np.median(np.abs(values))
    gap = trials[large].mean() - trials[~large].mean()
    spread = np.sqrt(trials.var() * (1 / large.sum() + 1 / (~large).sum()))
    assert abs(gap) <= 6.1 * spread + 1e-12


def test_hardened_draws_build_and_look_up_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("a table in hardened mode")

    monkeypatch.setattr(draw, "_table", never)
    for name in ("laplace", "gaussian", "geometric"):
        getattr(noise, name)(10, 200_000, mode="hardened")
    with pytest.raises(AssertionError):
        noise.laplace(10, 200_000)


def test_hardened_coins_take_the_same_bytes_whatever_they_show() -> None:
    for p in (Fraction(1, 2), Fraction(1, 3), 0, 1, 1e-9):
        bits = SeededBits("coin")
        noise.bernoulli(p, 5000, bits=bits, mode="hardened")
        assert bits.drawn == 5000 * 16
    bits = SeededBits("coin")
    noise.bernoulli_exp(Fraction(1, 3), 5000, bits=bits, mode="hardened")
    assert bits.drawn == 5000 * 16
    bits = SeededBits("coin")
    noise.bernoulli(np.linspace(0, 1, 5000), bits=bits, mode="hardened")
    assert bits.drawn == 5000 * 16


def test_hardened_draws_follow_the_law(fits: Callable[[np.ndarray, Any], None]) -> None:
    """n = 5e5 each, false alarm 1e-9."""
    bits = SeededBits("hardened")
    fits(noise.laplace(33, 500_000, bits=bits, mode="hardened"), DiscreteLaplace(33))
    fits(noise.gaussian(33, 500_000, bits=bits, mode="hardened"), DiscreteGaussian(33))


def test_a_process_chooses_its_mode() -> None:
    assert noise.mode() == "fast"
    noise.set_mode("hardened")
    assert noise.mode() == "hardened"
    bits = SeededBits("mode")
    noise.laplace(10, bits=bits)
    assert bits.drawn == 32
    with pytest.raises(ParameterError, match="hardened"):
        noise.set_mode("harder")  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        noise.laplace(1, mode="slow")  # type: ignore[call-overload]


def _beyond_output(draw_many: Callable[[int], np.ndarray], n: int) -> int:
    draw_many(1000)
    tracemalloc.start()
    try:
        out = draw_many(n)
        return tracemalloc.get_traced_memory()[1] - out.nbytes
    finally:
        tracemalloc.stop()


DRAWS = {
    "plain": lambda n: noise.laplace(10, n),
    "split": lambda n: noise.laplace(10**6, n),
    "blocks": lambda n: noise.gaussian(10**6, n),
    "hardened": lambda n: noise.laplace(10**6, n, mode="hardened"),
}


@pytest.mark.parametrize("name", DRAWS)
def test_memory_beyond_the_output_does_not_grow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By as many threads as there may be."""
    monkeypatch.setattr(workers, "_idle", lambda: 64)
    assert _beyond_output(DRAWS[name], 8_000_000) < 48 * 2**20


@pytest.mark.soak
@pytest.mark.parametrize("name", DRAWS)
def test_a_hundred_million_draws_take_64_megabytes_beyond_the_output(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_idle", lambda: 64)
    assert _beyond_output(DRAWS[name], 100_000_000) < 64 * 2**20


# --- attacks (pitfalls P5): a true value of 0 against 1 -----------------------------------------------------


def _finer_than_one_allows(outputs: np.ndarray) -> float:
    """The share of outputs that 1 + noise cannot give: off the grid of floats that sums near 1 live on.

    A float sum 1 + z that lands in (-1/2, 1/2) is exact or a multiple of 2^-53 (Sterbenz), so anything finer there
    betrays a true value of 0 (Mironov 2012).
    """
    small = np.abs(outputs) < 0.5
    scaled = outputs[small] * 2.0**53
    return float(np.mean(scaled != np.floor(scaled)) * small.mean())


def _never_drawn(outputs: np.ndarray, shift: float, uniforms: int) -> float:
    """The share of outputs y whose y - shift is not a value of numpy's own inversion, log of a 53-bit uniform."""
    z = np.abs(outputs - shift)
    u = np.exp(-z) * 2.0 ** (uniforms - 1)
    near = np.rint(u)
    candidates = [-np.log((near + k) * 2.0 ** (1 - uniforms)) for k in (-1, 0, 1)]
    return float(np.mean([not any(abs(c[i]) == z[i] for c in candidates) for i in range(z.size)]))


def test_numpys_laplace_betrays_a_true_value_of_zero() -> None:
    """Float Laplace of scale 1: a third of all outputs are impossible for the neighbour."""
    rng = np.random.default_rng(5)
    zero, one = 0 + rng.laplace(0, 1, 20_000), 1 + rng.laplace(0, 1, 20_000)
    assert _finer_than_one_allows(zero) > 0.2
    assert _finer_than_one_allows(one) == 0


def test_numpys_laplace_has_outputs_its_neighbour_cannot_give() -> None:
    """y - 0 is a value of the sampler's inversion for true value 0, and mostly none when the truth was 1."""
    rng = np.random.default_rng(6)
    zero, one = rng.laplace(0, 1, 5000), 1 + rng.laplace(0, 1, 5000)
    assert _never_drawn(one, 0, 53) > _never_drawn(zero, 0, 53) + 0.3


def test_ours_gives_every_output_under_both() -> None:
    grid = Grid(-20)
    scale = Fraction(1) / grid.step
    answers = {
        truth: grid.from_integers(grid.nearest(truth) + noise.laplace(scale, 20_000, bits=SeededBits(truth)))
        for truth in (0, 1)
    }
    law = DiscreteLaplace(scale)
    for outputs in answers.values():
        assert _finer_than_one_allows(outputs) == 0
        steps = grid.to_integers(outputs)
        assert np.array_equal(grid.from_integers(steps), outputs)  # on the grid, whatever the truth
        loss = law.log_pmf(steps) - law.log_pmf(steps - grid.nearest(1))
        assert np.all(np.isfinite(loss))
        assert np.abs(loss).max() <= 1 + 1e-12


def test_ours_repeats_the_same_integers_for_both_truths() -> None:
    """At scale 1, every value seen ten times with truth 0 is seen with truth 1; n = 1e6."""
    zero = noise.laplace(1, 1_000_000, bits=SeededBits("zero"))
    one = 1 + noise.laplace(1, 1_000_000, bits=SeededBits("one"))
    values, counts = np.unique(zero, return_counts=True)
    # A value seen 60 times has mass above 3e-5 (false alarm 1e-4 of it); under the neighbour it is above 1e-5,
    # and then unseen with probability below exp(-10) -- so the bar is 150, below 1e-20.
    assert set(values[counts >= 150]) <= set(one)
