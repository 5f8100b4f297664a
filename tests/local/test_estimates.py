"""Unbiased, with the variance they state, and intervals that cover: simulated in groups, every n and error stated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import norm

from hubbub import local
from hubbub.errors import ParameterError
from hubbub.local.estimate import normal_quantile
from hubbub.local.hashes import public_bucket, public_seeds
from local.reports import supports
from seeded import SeededBits

ORACLES = [
    local.DirectEncoding(1, 4),
    local.SymmetricUnary(1, 8),
    local.OptimizedUnary(1, 8),
    local.SubsetSelection(1, 8),
    local.LocalHashing(1, 8),
    local.LocalHashing(1, 8, buckets=2),
    local.HadamardResponse(1, 8),
]
IDS = ["direct", "symmetric", "optimized", "subset", "hashing", "binary", "hadamard"]


def grouped(oracle: local.FrequencyOracle, groups: int, size: int, share: float, name: str) -> np.ndarray:
    """Supporters of category 0 in many groups of one size, of whom exactly a share holds it."""
    values = np.tile(np.where(np.arange(size) < round(share * size), 0, 2), groups).astype(np.uint8)
    out = []
    for part in np.array_split(values.reshape(groups, size), 20):
        reports = oracle.privatize(part.reshape(-1), bits=SeededBits(f"{name} {len(out)}"))
        out.append(supports(oracle, reports, 0).reshape(len(part), size).sum(axis=1))
    return np.concatenate(out)


@pytest.mark.parametrize("oracle", ORACLES, ids=IDS)
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_estimates_are_unbiased_and_vary_as_stated(oracle: local.FrequencyOracle, share: float) -> None:
    # 100,000 groups of 30: a sample variance has relative sd sqrt(2/100,000) (1 + 1/60) = .45 %, so 3 % is 6.6 sd:
    # false alarm 4e-11. The mean is held to 6.2 sd: 6e-10.
    groups, size = 100_000, 30
    p, q = float(oracle.randomizer.p), float(oracle.randomizer.q)
    estimates = (grouped(oracle, groups, size, share, f"variance {share}") / size - q) / (p - q)
    theory = oracle.variance(size, share)
    assert abs(estimates.mean() - share) < 6.2 * math.sqrt(theory / groups)
    assert abs(estimates.var() / theory - 1) < 0.03


@pytest.mark.parametrize("oracle", ORACLES, ids=IDS)
def test_intervals_cover_95_percent_within_1(oracle: local.FrequencyOracle) -> None:
    # 20,000 groups of 400: sd of a coverage .154 %, so 1 % is 6.5 sd: 8e-11 beside what the lattice of counts does.
    groups, size, share = 20_000, 400, 0.25
    p, q = float(oracle.randomizer.p), float(oracle.randomizer.q)
    shares = (grouped(oracle, groups, size, share, "coverage") / size - q) / (p - q)
    one = oracle.estimate(oracle.privatize([0]))
    estimate = local.Estimate(range(groups), size, 0, shares, np.zeros(groups), one.base, one.slope)
    low, high = estimate.interval(0.95)
    assert abs(float(np.mean((low <= share) & (share <= high))) - 0.95) < 0.01


@pytest.mark.parametrize("oracle", ORACLES, ids=IDS)
def test_a_tally_counts_the_supporters(oracle: local.FrequencyOracle) -> None:
    reports = oracle.privatize(np.arange(5000) % oracle.size, bits=SeededBits("tally"))
    counts = [int(supports(oracle, reports, c).sum()) for c in range(oracle.size)]
    assert oracle.aggregate(reports).counts.tolist() == counts


def test_intervals_for_the_population_cover_people_drawn_at_random() -> None:
    # 20,000 surveys of 400 people, each a Yes with chance .3: 6.5 sd are 1 %.
    oracle = local.DirectEncoding(1, 4)
    people = np.random.default_rng(3).random(8_000_000) < 0.3
    reports = oracle.privatize(np.where(people, 0, 2), bits=SeededBits("population"))
    p, q = oracle.randomizer.p, oracle.randomizer.q
    shares = ((reports == 0).reshape(20_000, 400).mean(axis=1) - float(q)) / float(p - q)
    one = oracle.estimate(reports[:1])
    estimate = local.Estimate(range(20_000), 400, 0, shares, np.zeros(20_000), one.base, one.slope)
    low, high = estimate.interval(0.95, of="population")
    assert abs(float(np.mean((low <= 0.3) & (high >= 0.3))) - 0.95) < 0.01
    assert np.all(high - low >= np.subtract(*estimate.interval(0.95)[::-1]) - 1e-12)


def test_the_variance_factors_at_epsilon_1_and_16_categories() -> None:
    e = math.e
    assert round(local.SubsetSelection(1, 16).variance_factor, 2) == 3.11
    assert round(local.OptimizedUnary(1, 16).variance_factor, 2) == 3.68
    assert local.OptimizedUnary(1, 16).variance_factor == pytest.approx(4 * e / (e - 1) ** 2, rel=1e-12)
    assert local.DirectEncoding(1, 16).variance_factor == pytest.approx((14 + e) / (e - 1) ** 2, rel=1e-12)
    h = math.exp(0.5)
    assert local.SymmetricUnary(1, 16).variance_factor == pytest.approx(h / (h - 1) ** 2, rel=1e-12)
    assert local.HadamardResponse(1, 16).variance_factor == pytest.approx(((e + 1) / (e - 1)) ** 2, rel=1e-12)
    g = 4
    hashing = (e - 1 + g) ** 2 / ((e - 1) ** 2 * (g - 1))
    assert local.LocalHashing(1, 16).variance_factor == pytest.approx(hashing, rel=1e-8)


@pytest.mark.parametrize("epsilon", ["1/10", 1, 2, 4, 6])
@pytest.mark.parametrize("k", [2, 3, 16, 100])
def test_subset_selection_is_the_best_and_picks_its_best_width(epsilon: object, k: int) -> None:
    subset = local.SubsetSelection(epsilon, k)
    widths = [local.SubsetSelection(epsilon, k, width=w).variance_factor for w in range(1, k)]
    assert subset.variance_factor == min(widths)
    others = (local.DirectEncoding, local.OptimizedUnary, local.SymmetricUnary, local.HadamardResponse)
    assert all(subset.variance_factor <= kind(epsilon, k).variance_factor * (1 + 1e-12) for kind in others)
    buckets = [local.LocalHashing(epsilon, k, buckets=g).variance_factor for g in range(2, 12)]
    assert local.LocalHashing(epsilon, k).variance_factor <= min(buckets)


def test_the_default_is_the_best_that_fits() -> None:
    assert isinstance(local.best_oracle(1, 16), local.SubsetSelection)
    assert isinstance(local.best_oracle(1, 16, report_bytes=4), local.SubsetSelection)
    assert isinstance(local.best_oracle(4, 16), local.DirectEncoding)
    assert isinstance(local.best_oracle(1, 100_000), local.LocalHashing)
    assert isinstance(local.best_oracle(1, 100_000, report_bytes=4), local.HadamardResponse)


def test_the_sketch_varies_as_stated_over_its_public_hashes() -> None:
    # 1,500 sketches of 4,000 reports: relative sd of a sample variance 3.7 %, pooled over 4 categories about 2 %;
    # 20 % is beyond 6.2 sd even for one alone at 5.4 sd (7e-8) and pooled far beyond 1e-9.
    shares = np.array([0.6, 0.2, 0.15, 0.05])
    values = np.repeat(np.arange(4), (4000 * shares).astype(int))
    found = []
    for i in range(1500):
        oracle = local.CountMeanSketch(2, 4, hashes=8, buckets=16, public_name=f"sketch {i}")
        found.append(oracle.estimate(oracle.privatize(values, bits=SeededBits(i))).shares)
    theory = np.array([oracle.variance(4000, f) for f in shares]) + oracle.hash_variance(shares)
    assert np.all(np.abs(np.mean(found, axis=0) - shares) < 6.2 * np.sqrt(theory / 1500))
    assert abs(float((np.var(found, axis=0) / theory).mean()) - 1) < 0.2
    assert np.all(oracle.hash_variance(shares)[1:] > oracle.variance(4000, 0.0) / 20)


def test_rappor_is_unbiased_and_varies_as_stated() -> None:
    # 120,000 groups of 30 in 2 cohorts: a sample variance (kurtosis 3.04 or less) has sd .41 %, so 3 % is over 7 sd
    # (3e-12); means at 6.5 sd, 8e-11. Six of each: false alarm below 7e-10. Given the sizes of the cohorts estimates
    # are unbiased, so their variance is the mean of those.
    groups, size, shares = 120_000, 30, np.array([15, 6, 3, 3, 2, 1]) / 30
    oracle = local.Rappor(6, 6, cohorts=2, bloom_bits=16)
    values = np.tile(np.repeat(np.arange(6), (30 * shares).round().astype(int)), groups // 20)
    found, first = [], []
    for i in range(20):
        reports = oracle.privatize(values, bits=SeededBits(f"rappor {i}"))
        ones = np.unpackbits(reports["bits"], axis=1).reshape(-1, size, 16)
        second = (reports["cohort"] == 1).reshape(-1, size, 1)
        sums = np.stack([(ones * ~second).sum(axis=1), (ones * second).sum(axis=1)], axis=1)
        people = np.stack([size - second.sum(axis=1), second.sum(axis=1)], axis=1)
        excess = (sums - people * float(oracle.randomizer.q)) / float(oracle.randomizer.p - oracle.randomizer.q)
        filters = np.array([oracle.randomizer.filters(np.full(6, j), np.arange(6)).T for j in range(2)], float)
        grams = np.einsum("jmu,jmv->juv", filters, filters)
        right = np.einsum("jmu,rjm->ru", filters, excess)
        found.append(np.linalg.solve(np.einsum("rj,juv->ruv", people[:, :, 0], grams), right[:, :, None])[:, :, 0])
        first.append(people[:, 0, 0])
    assert oracle.estimate(reports[:size]).shares == pytest.approx(found[-1][0], abs=1e-9)
    sizes, often = np.unique(np.concatenate(first), return_counts=True)
    theory = np.array([oracle.variances([s, size - s], shares) for s in sizes]).T @ often / groups
    all_ = np.concatenate(found)
    assert np.all(np.abs(all_.mean(axis=0) - shares) < 6.5 * np.sqrt(theory / groups))
    assert np.all(np.abs(all_.var(axis=0) / theory - 1) < 0.03)
    with pytest.raises(ParameterError, match="filters"):
        _ = oracle.variance_factor


def test_rappor_and_the_sketch_state_the_variance_at_the_true_shares() -> None:
    # One survey of 100,000 people each: the ratio has sd .1 % for RAPPOR, .22 % for the sketch (168 and 25 other
    # surveys), so 3 % is 13 sd: far below 1e-9.
    shares = np.array([0.5, 0.2, 0.1, 0.1, 0.06, 0.04])
    values = np.repeat(np.arange(6), np.round(100_000 * shares).astype(int))
    rappor = local.Rappor(6, 6, cohorts=4, bloom_bits=16)
    tally = rappor.aggregate(rappor.privatize(values, bits=SeededBits("rappor")))
    assert tally.estimate().variance == pytest.approx(rappor.variances(tally.counts[:, -1], shares), rel=0.03)
    sketch = local.CountMeanSketch(4, 6, hashes=4096, buckets=256)
    estimate = sketch.estimate(sketch.privatize(values, bits=SeededBits("sketch")))
    exact = sketch.variances(100_000, shares) + sketch.hash_bias(shares) ** 2
    assert estimate.variance == pytest.approx(exact, rel=0.03)
    for call in (lambda: sketch.variances(9, shares[1:]), lambda: rappor.variances([9], shares)):
        with pytest.raises(ParameterError, match="shape"):
            call()


def test_the_sketch_varies_as_stated_given_its_public_hashes() -> None:
    # 120,000 groups of 30: 3 % of a variance is over 7 sd (3e-12), means at 6.5 sd, 8e-11. Four of each: below 4e-10.
    groups, size, shares = 120_000, 30, np.array([18, 6, 4, 2]) / 30
    oracle = local.CountMeanSketch(2, 4, hashes=4, buckets=4, public_name="sketch")
    values = np.tile(np.repeat(np.arange(4), (30 * shares).round().astype(int)), groups)
    reports = oracle.privatize(values, bits=SeededBits("given"))
    seeds = public_seeds(4, "sketch")[reports["hash"]]
    bits = np.unpackbits(reports["bits"], axis=1)
    theory, means = oracle.variances(size, shares), shares + oracle.hash_bias(shares)
    for v in range(4):
        places = public_bucket(seeds, v, 4).astype(np.int64)
        supporters = bits[np.arange(len(bits)), places].reshape(groups, size).sum(axis=1)
        found = (supporters / size - float(oracle.randomizer.q)) / float(oracle.randomizer.p - oracle.randomizer.q)
        assert abs(found.mean() - means[v]) < 6.5 * math.sqrt(theory[v] / groups)
        assert abs(found.var() / theory[v] - 1) < 0.03
    # These hashes are far from the average over all.
    assert np.abs(theory / [oracle.variance(size, f) for f in shares] - 1).max() > 0.03
    assert np.abs(oracle.hash_bias(shares)).max() > 0.03


def test_the_variance_of_a_large_sketch_is_never_too_small_and_within_a_part_of_one_over_its_hashes() -> None:
    small = local.CountMeanSketch(4, 512, hashes=64, buckets=16)
    large = local.CountMeanSketch(4, 513, hashes=64, buckets=16)
    shares = 1 / np.arange(1, 513)
    shares /= shares.sum()
    ratio = large.variances(1000, np.append(shares, 0))[:512] / small.variances(1000, shares)
    assert ratio.min() >= 1 - 1e-12
    assert 1 < ratio.max() < 1 + 1 / 64
    assert large.hash_bias(np.append(shares, 0))[:512] == pytest.approx(small.hash_bias(shares), abs=1e-12)


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=30))
@settings(max_examples=200, deadline=None)
def test_the_projection_is_the_nearest_distribution(shares: list[float]) -> None:
    values = np.array(shares)
    found = local.simplex_projection(values)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1, abs=1e-9)
    # Nearest: the angle to every corner of the simplex is at least a right one.
    away = values - found
    assert all(away @ (corner - found) <= 1e-9 for corner in np.eye(values.size))


def test_projection_lowers_the_error_and_leaves_distributions_alone() -> None:
    assert local.simplex_projection(np.array([0.25, 0.75])).tolist() == [0.25, 0.75]
    oracle = local.SubsetSelection(1, 64)
    truth = np.full(64, 1 / 64)
    estimate = oracle.estimate(oracle.privatize(np.arange(64_000) % 64, bits=SeededBits("projection")))
    assert np.sum((estimate.projected() - truth) ** 2) < np.sum((estimate.shares - truth) ** 2)
    assert estimate.counts.sum() == pytest.approx(64_000, rel=1e-9)


def test_simultaneous_intervals_are_wider_and_quantiles_are_normal() -> None:
    estimate = ORACLES[3].estimate(ORACLES[3].privatize(np.arange(4000) % 8, bits=SeededBits("wide")))
    one, all_ = estimate.interval(0.9), estimate.interval(0.9, simultaneous=True)
    assert np.all(all_[0] <= one[0])
    assert np.all(all_[1] > one[1])
    assert normal_quantile(0.95) == pytest.approx(norm.isf(0.025), rel=1e-9)
    for level in (0, 1, -1, 2, float("nan"), True):
        with pytest.raises(ParameterError, match="level"):
            normal_quantile(level)
    with pytest.raises(ParameterError, match="population"):
        estimate.interval(of="everybody")  # type: ignore[arg-type]


def test_one_lying_report_moves_a_count_by_at_most_its_influence() -> None:
    for oracle in ORACLES:
        reports = oracle.privatize(np.zeros(99, int), bits=SeededBits("liars"))
        other = np.concatenate([reports[1:], oracle.privatize(np.array([1]), bits=SeededBits("liar"))])
        moved = np.abs(oracle.estimate(other).counts - oracle.estimate(reports).counts)
        assert moved.max() <= oracle.influence * (1 + 1e-12)


def test_no_reports_estimate_to_nothing_and_the_whole_interval() -> None:
    for oracle in [*ORACLES, local.CountMeanSketch(1, 4, hashes=2, buckets=4), local.Rappor(1, 4)]:
        estimate = oracle.empty().estimate()
        low, high = estimate.interval(0.95)
        assert estimate.n == 0
        assert np.isfinite(estimate.shares).all(), oracle.name
        assert np.all(low <= high)


def test_a_plot_has_a_whisker_for_every_category() -> None:
    pytest.importorskip("matplotlib")
    oracle = local.DirectEncoding(1, ["a", "b", "c"])
    ax = oracle.estimate(oracle.privatize(["a", "b", "c"] * 50, bits=SeededBits("plot"))).plot(0.9)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["a", "b", "c"]
    assert "90%" in ax.get_ylabel()


@pytest.mark.parametrize("kind", [type(oracle) for oracle in ORACLES])
def test_an_epsilon_of_which_no_chance_is_drawn_is_refused_in_words(kind: Any) -> None:
    """Of 1e-30 both chances are one as drawn, and a variance was a division by zero."""
    for epsilon in ("1e-10", "1e-30", "1e-300"):
        with pytest.raises(ParameterError, match="Give a larger epsilon"):
            kind(epsilon, 8)
    assert 1e17 < kind("1e-9", 8).variance_factor < 1e20
