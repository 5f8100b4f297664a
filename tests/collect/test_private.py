"""Noise on shares: sensitivities by brute force, the loss against m - 1 aggregators, the error's law."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from collect.helpers import sharded, verified
from hubbub import accounting as acc
from hubbub.collect import Circuit, Count, Histogram, MultihotCountVec, Prio3, PrivateSum, Sum, SumVec
from hubbub.errors import ParameterError, PolicyError
from hubbub.noise import DiscreteGaussian, DiscreteLaplace, Polya
from seeded import SeededBits


def every(circuit: Circuit) -> Iterator[Any]:
    """Every valid measurement."""
    match circuit:
        case Count():
            yield from (0, 1)
        case Sum(largest):
            yield from range(largest + 1)
        case SumVec(length, largest, _):
            yield from itertools.product(range(largest + 1), repeat=length)
        case Histogram(length, _):
            yield from range(length)
        case MultihotCountVec(length, most, _):
            yield from (v for v in itertools.product((0, 1), repeat=length) if sum(v) <= most)


@pytest.mark.parametrize(
    "circuit",
    [Count(), Sum(5), Sum(8), SumVec(2, 3, 2), SumVec(3, 2, 2), Histogram(4, 2), MultihotCountVec(4, 1, 2),
     MultihotCountVec(4, 2, 2), MultihotCountVec(5, 4, 2)],
    ids=str,
)  # fmt: skip
def test_sensitivities_are_those_of_brute_force_and_are_reached(circuit: Circuit) -> None:
    outputs = []
    for measurement in every(circuit):
        bits = circuit.field.small(circuit.encode([measurement]))
        outputs.append(circuit.field.integers(circuit.truncate(bits)))
    differences = [[a - b for a, b in zip(x, y, strict=True)] for x in outputs for y in outputs]
    assert max(sum(abs(d) for d in row) for row in differences) == circuit.change.l1
    assert max(sum(d * d for d in row) for row in differences) == circuit.change.l2_squared


@pytest.mark.parametrize("circuit", [Count(), Sum(3), Histogram(3, 2)], ids=str)
def test_a_noisy_share_is_as_private_as_its_event_against_everybody_else(circuit: Circuit) -> None:
    """The honest share's law given all else is that of S + N: worst ratio over outputs is e^epsilon, and is reached."""
    plan = PrivateSum(circuit, epsilon="1/2")
    law = DiscreteLaplace(plan.scale)
    reach = 60 * int(plan.scale + 1)
    worst = 0.0
    sums = [circuit.field.integers(circuit.truncate(circuit.field.small(circuit.encode([m])))) for m in every(circuit)]
    for x, y in itertools.permutations(sums, 2):
        per_number = [max(law.log_pmf(z - a) - law.log_pmf(z - b) for z in (-reach, a, b, reach))
                      for a, b in zip(x, y, strict=True)]  # fmt: skip
        worst = max(worst, sum(per_number))
    assert worst == pytest.approx(0.5, rel=1e-12)
    assert acc.cost(plan.loss).epsilon == Fraction(1, 2)
    assert acc.cost(plan.loss_of(3)).epsilon == Fraction(3, 2)


def test_half_of_a_draw_from_each_would_not_be_enough() -> None:
    """Why every aggregator draws in full: one Polya half alone, at scale 10, loses 6 times epsilon at its worst."""
    half = Polya(10, "1/2")
    losses = np.log(half.pmf(np.arange(0, 60))) - np.log(half.pmf(np.arange(1, 61)))
    assert 6.0 < losses.max() / 0.1 < 6.2


@pytest.mark.parametrize(("options", "m"), [({"epsilon": 1}, 2), ({"epsilon": "1/3"}, 3), ({"rho": "1/10"}, 2)])
def test_the_error_is_the_convolution_of_all_aggregators_noise(options: dict[str, Any], m: int) -> None:
    """6,000 totals of a histogram of 4: chi-square over 40 bins, false alarm 1e-9; and the law is the convolution."""
    from scipy.stats import chi2

    plan, bits = PrivateSum(Histogram(4, 2), aggregators=m, **options), SeededBits(f"{options}")
    one = DiscreteLaplace(plan.scale) if "epsilon" in options else DiscreteGaussian.from_variance(plan.variance)
    x = np.arange(-400, 401)
    masses = one.pmf(x)
    total = masses
    for _ in range(m - 1):
        total = np.convolve(total, masses, "same")
    p = plan.circuit.field.modulus
    truth, errors = [5, 0, 2, 7], []
    for _ in range(1500):
        shares = [[p - 3, 1, p // 2, 9]] + [[0] * 4] * (m - 2)
        last = [(t - sum(column)) % p for t, column in zip(truth, zip(*shares, strict=True), strict=True)]
        found = plan.total([plan.noisy(share, bits=bits) for share in (*shares, last)], 14)
        errors += [v - t for v, t in zip(found.values, truth, strict=True)]
    edges = np.searchsorted(np.cumsum(total), np.arange(1, 40) / 40)
    counts = np.bincount(np.searchsorted(edges, np.array(errors) + 400, "left"), minlength=40)
    cumulative = np.concatenate([[0], np.cumsum(total)[edges], [1]])
    expected = np.diff(cumulative) * len(errors)
    kept = expected > 5
    statistic = float(((counts - expected) ** 2 / np.maximum(expected, 1e-9))[kept].sum())
    assert chi2.sf(statistic, kept.sum() - 1) > 1e-9
    for level in (0.5, 0.9, 0.95, 0.999):
        width = plan.error.half_width(level)
        inside = np.abs(x) <= width
        assert total[inside].sum() >= level - 1e-12
        assert width == 0 or total[np.abs(x) < width].sum() < level + 1e-12
    assert plan.error.variance == pytest.approx(float((total * x**2).sum()), rel=1e-9)


def test_wide_gaussian_sums_are_gaussian() -> None:
    narrow, wide = (PrivateSum(Sum(10**k), rho="1/10").error for k in (1, 4))
    assert wide.half_width(0.95) / narrow.half_width(0.95) == pytest.approx(1000, rel=0.01)


def test_a_private_total_of_real_reports_covers_the_truth() -> None:
    """200 batches of a count of 30 in 50 at epsilon 1, level .9: at least 148 covered (binomial tail below 1e-9)."""
    pytest.importorskip("Crypto.Hash.TurboSHAKE128", reason="pycryptodome (extra collect) is not installed")
    prio3, bits = Prio3(Count()), SeededBits("real")
    plan = PrivateSum(prio3.circuit, epsilon=1)
    _, shares = verified(prio3, *sharded(prio3, [1] * 30 + [0] * 20, bits))
    covered = 0
    for _ in range(200):
        ((low, high),) = plan.total([plan.noisy(s, bits=bits) for s in shares], 50).intervals("9/10")
        covered += low <= 30 <= high
    assert covered >= 148


def test_negative_totals_are_decoded_as_such() -> None:
    plan = PrivateSum(Count(), epsilon=1)
    p = plan.circuit.field.modulus
    assert plan.total([[p - 5], [2]], 1).values == (-3,)


@pytest.mark.parametrize(
    "build",
    [
        lambda: PrivateSum(Count()),
        lambda: PrivateSum(Count(), epsilon=1, rho=1),
        lambda: PrivateSum(Count(), epsilon=0),
        lambda: PrivateSum(Count(), epsilon=1, aggregators=1),
        lambda: PrivateSum(Count(), epsilon=1).variance,
        lambda: PrivateSum(Count(), rho=1).scale,
        lambda: PrivateSum(Count(), epsilon=1).total([[1]], 1),
    ],
)
def test_what_is_no_plan_is_refused(build: Any) -> None:
    with pytest.raises(ParameterError):
        build()


def test_what_does_not_fit_the_field_is_refused() -> None:
    PrivateSum(Sum(2**40), epsilon=1).checked_count(2**20)
    with pytest.raises(PolicyError, match="do not fit"):
        PrivateSum(Sum(2**40), epsilon=1).checked_count(2**23)
    with pytest.raises(PolicyError, match="do not fit"):
        PrivateSum(Sum(2**40), rho=Fraction(1, 2**60)).checked_count(1)


def test_scale_and_variance_are_the_sensitivities_over_the_budget() -> None:
    assert PrivateSum(MultihotCountVec(10, 3, 3), epsilon="1/2").scale == 12
    assert PrivateSum(SumVec(3, 4, 2), rho="1/2").variance == 48
    assert math.isclose(float(acc.rho(PrivateSum(SumVec(3, 4, 2), rho="1/2").loss)), 0.5)
