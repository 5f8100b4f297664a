"""Certified bounds contain the truth: stored 40-digit references, exact rationals, and random events.

Nothing here is statistical.
"""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hubbub import accounting as acc
from hubbub.accounting import certify, convolution, decompose, lattice, pairs, questions
from hubbub.accounting.questions import bounds, delta_bounds
from hubbub.errors import ParameterError

REFERENCES = json.loads(Path(__file__).with_name("references.json").read_text())


def _event(kind, args):
    match kind:
        case "gaussian":
            return acc.Repeated(acc.Gaussian(args[0]), args[1])
        case "response":
            return acc.Repeated(acc.ApproxDP(args[0], args[1]), args[2])
        case "laplace":
            return acc.Repeated(acc.Laplace(args[0]), args[1])
        case "discrete_laplace":
            return acc.Repeated(acc.DiscreteLaplace(args[0], args[1]), args[2])
        case "discrete_gaussian":
            return acc.Repeated(acc.DiscreteGaussian(args[0], args[1]), args[2])
        case _:
            return acc.Repeated(acc.PoissonSampled(acc.Gaussian(args[0]), args[1]), args[2])


def _truths():
    """Each problem with the truth: for sampled mechanisms the larger of the two directions."""
    for (kind, args), group in itertools.groupby(
        REFERENCES, key=lambda r: (r["kind"], r["args"][:4] if r["kind"] == "sampled" else r["args"])
    ):
        yield kind, args, max(mpmath.mpf(r["delta"]) for r in group)


CASES = list(_truths())


def test_there_are_sixty_references_of_forty_digits():
    assert len(REFERENCES) == 60
    assert sum(len(r["delta"].split("e")[0].replace(".", "").strip("0")) >= 36 for r in REFERENCES) >= 55
    deltas = [float(r["delta"]) for r in REFERENCES]
    assert min(deltas) < 1e-30
    assert max(deltas) > 1e-2
    counts = [next(a for a in r["args"][1:] if isinstance(a, int)) for r in REFERENCES]
    assert {1, 10**6} <= set(counts) | {r["args"][2] for r in REFERENCES if r["kind"] in ("response", "sampled")}


# Those of a hundred thousand samples and more take ten seconds each; their deltas are bounded below in every run.
LEAN = [pytest.param(*c, marks=[pytest.mark.soak] if c[0] == "sampled" and c[1][2] >= 10**5 else []) for c in CASES]


@pytest.mark.parametrize(("kind", "args", "truth"), LEAN, ids=lambda v: str(v)[:40])
def test_epsilon_bounds_contain_the_stored_truth(kind, args, truth):
    event, at = _event(kind, args), [a for a in args if isinstance(a, str)][-1]
    # The delta asked is a float on either side of the truth, so that the epsilon must lie on either side too.
    above, below = Fraction(str(float(truth) * (1 + 1e-13))), Fraction(str(float(truth) * (1 - 1e-13)))
    assert bounds(event, above)[0] <= float(at) * (1 + 1e-15)
    assert bounds(event, below)[1] >= float(at) * (1 - 1e-15)
    low, high = bounds(event, below)
    assert high - low <= 1.01e-3 * high or high == float(acc.pure_epsilon(event) or 0)


@pytest.mark.parametrize(("kind", "args", "truth"), CASES, ids=lambda v: str(v)[:40])
def test_delta_bounds_contain_the_stored_truth_and_are_close(kind, args, truth):
    event, at = _event(kind, args), [a for a in args if isinstance(a, str)][-1]
    low, high = delta_bounds(event, Fraction(at), 0.2)
    assert low <= truth <= high
    assert high <= 1.3 * low + 1e-300


@pytest.mark.parametrize(("most", "least"), [(1000, 2), pytest.param(10**4, 8, marks=pytest.mark.soak)])
def test_each_direction_contains_its_own_truth(most, least):
    checked = 0
    for r in REFERENCES:
        if r["kind"] != "sampled" or r["args"][2] > most:
            continue
        flat = decompose.flatten(_event("sampled", r["args"]))[0]
        plan = certify.Plan(flat, certify.Goal(epsilon=Fraction(r["args"][3])))
        down, up = plan.composed(plan.first_step())[1 if r["args"][4] else 0]
        truth, e = mpmath.mpf(r["delta"]), float(r["args"][3])
        assert down.below(e) <= truth <= up.above(e)
        checked += 1
    assert checked >= least


def test_ndtr_is_as_good_as_the_slack_says():
    z = np.concatenate((np.linspace(-37, 8, 400), np.linspace(-6, 6, 400)))
    pair = pairs.GaussianPair(1.0)
    tails = pair.tails(z + 0.5)
    with mpmath.workdps(50):
        for i, x in enumerate(z):
            point = mpmath.mpf(float(z[i] + 0.5)) - mpmath.mpf("0.5")
            truth = mpmath.ncdf(point)
            # The point itself may have moved by `moved`.
            room = tails.slack[i] + pairs.moved(abs(float(x)) + 1) * (abs(x) + 1)
            assert abs(tails.p_below[i] / truth - 1) <= room


def _exact_delta(losses, epsilon):
    """delta of composed finite mechanisms in exact rationals of P and Q (losses as pairs of Fractions)."""
    p, q = [Fraction(1)], [Fraction(1)]
    for a, b in losses:
        p = [x * y for x in p for y in a]
        q = [x * y for x in q for y in b]
    with mpmath.workdps(40):
        e = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        total = mpmath.mpf(0)
        for x, y in zip(p, q, strict=True):
            gain = mpmath.mpf(x.numerator) / x.denominator - e * mpmath.mpf(y.numerator) / y.denominator
            total += max(mpmath.mpf(0), gain)
        return total


def test_cells_from_both_sides_contain_a_finite_mechanism_off_the_lattice():
    # Likelihood ratios 2, 3/2, 1/2 have losses that no lattice of a rational step holds.
    p, q = [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)], [Fraction(1, 4), Fraction(1, 5), Fraction(11, 20)]
    atoms = pairs.Atoms(
        np.array([math.log(x / y) for x, y in zip(p, q, strict=True)])[::-1].copy(),
        np.array([float(x) for x in p])[::-1].copy(),
        np.array([float(y) for y in q])[::-1].copy(),
    )
    from hubbub.accounting.convolution import convolve

    for h in (0.3, 0.05, 0.007):
        c = lattice.cells(decompose.AtomicSkewed(atoms), h, -50.0)
        up, down = convolve([(lattice.upper(c), 5)], 1.0), convolve([(lattice.lower(c), 5)], 1.0)
        for e in (Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2)):
            truth = _exact_delta([(p, q)] * 5, e)
            assert down.below(float(e)) <= truth <= up.above(float(e))


RATES = st.sampled_from(["0.01", "0.1", "0.5"])
LEAVES = st.one_of(
    st.builds(acc.Laplace, st.sampled_from([1, 3, 10])),
    st.builds(acc.Gaussian, st.sampled_from([1, 4])),
    st.builds(acc.DiscreteLaplace, st.sampled_from([2, 5]), st.sampled_from([1, 2])),
    st.builds(acc.PureDP, st.sampled_from(["0.1", "1/3", "1"])),
    st.builds(acc.RandomizedResponse, st.sampled_from(["0.5", "1"]), st.sampled_from([2, 5])),
    st.builds(lambda s, q: acc.PoissonSampled(acc.Gaussian(s), q), st.sampled_from([1, 2]), RATES),
    st.builds(lambda s, q: acc.PoissonSampled(acc.Laplace(s), q), st.sampled_from([1, 2]), RATES),
)


@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.lists(st.tuples(LEAVES, st.sampled_from([1, 2, 7])), min_size=1, max_size=3))
def test_a_finer_lattice_never_leaves_a_coarser_ones_bounds(parts):
    event = acc.Composed([acc.Repeated(e, n) for e, n in parts])
    coarse, fine = bounds(event, "1e-5", width=0.1), bounds(event, "1e-5", width=0.02)
    assert max(coarse[0], fine[0]) <= min(coarse[1], fine[1])
    assert fine[1] - fine[0] <= 0.02


@settings(max_examples=12, derandomize=True, deadline=None)
@given(LEAVES, st.sampled_from([1, 5, 40]), st.sampled_from(["1e-3", "1e-9"]))
def test_bounds_agree_with_dp_accounting_where_that_is_pessimistic(leaf, times, delta):
    from dp_accounting.pld import privacy_loss_distribution as pld

    match leaf:
        case acc.Laplace():
            theirs = pld.from_laplace_mechanism(float(leaf.scale), value_discretization_interval=1e-3)
        case acc.Gaussian():
            theirs = pld.from_gaussian_mechanism(float(leaf.sigma), value_discretization_interval=1e-3)
        case acc.PoissonSampled() if isinstance(leaf.event, acc.Gaussian):
            theirs = pld.from_gaussian_mechanism(
                float(leaf.event.sigma), sampling_prob=float(leaf.rate), value_discretization_interval=1e-3
            )
        case _:
            return
    low, high = bounds(acc.Repeated(leaf, times), delta)
    found = theirs.self_compose(times).get_epsilon_for_delta(float(delta))
    assert low <= found * (1 + 1e-9)
    assert high >= found - 0.02 * found - 1e-3


@pytest.mark.parametrize(
    ("event", "delta", "truth"),
    [
        (acc.Repeated(acc.Laplace(10), 100), "1e-6", 4.6926674147),
        (acc.Repeated(acc.Gaussian(50), 1000), "1e-6", 2.9216005904),
        (acc.Repeated(acc.PoissonSampled(acc.Gaussian("1.1"), "0.01"), 10000), "1e-5", 5.192583445883),
        (acc.Repeated(acc.ApproxDP("0.1", "1e-8"), 20), "1e-6", 1.792829974635),
        (acc.Repeated(acc.BoundedRange("0.2"), 50), "1e-6", 3.291),
        (acc.Repeated(acc.BoundedRange("0.2", adaptive=False), 50), "1e-6", 3.2797),
    ],
    ids=["laplace", "gaussian", "sampled", "response", "adaptive range", "fixed range"],
)
def test_reference_values(event, delta, truth):
    low, high = bounds(event, delta)
    assert low <= truth * (1 + 2e-4)
    assert high >= truth * (1 - 2e-4)
    assert acc.epsilon(event, delta) == pytest.approx(truth, rel=1e-3)


def test_epsilon_of_sampled_gaussians_has_ten_digits():
    event = acc.Repeated(acc.PoissonSampled(acc.Gaussian("1.1"), "0.01"), 10000)
    assert acc.epsilon(event, "1e-5") == pytest.approx(5.192583445883, rel=1e-11)


def test_pure_losses_at_delta_zero_are_exact():
    assert bounds(acc.Repeated(acc.Laplace(10), 100), 0) == (10.0, 10.0)
    low, high = bounds(acc.PoissonSampled(acc.PureDP(1), "0.5"), 0)
    assert low <= math.log1p(0.5 * math.expm1(1)) <= high
    assert bounds(acc.Gaussian(1), 0) == (math.inf, math.inf)


def test_a_class_without_a_worst_pair_is_bounded_by_what_is_known():
    low, high = bounds(acc.ZCDP("0.1"), "1e-6")
    assert low == pytest.approx(acc.epsilon(acc.Gaussian(math.sqrt(5)), "1e-6"), rel=1e-2)
    assert high == pytest.approx(float(acc.epsilon_of_rho("0.1", "1e-6")), rel=1e-12)


def test_parallel_is_the_worst_part():
    event = acc.Parallel([acc.Gaussian(3), acc.Laplace(2)])
    found = bounds(event, "1e-6")
    parts = [bounds(acc.Gaussian(3), "1e-6"), bounds(acc.Laplace(2), "1e-6")]
    assert found[0] <= max(p[1] for p in parts)
    assert found[1] >= max(p[0] for p in parts)


def test_sampling_without_replacement_of_a_single_event_is_the_amplified_profile():
    event = acc.SampledWithoutReplacement(acc.Laplace(1), "0.3")
    inner = acc.Laplace(1)
    for e in (0.1, 0.4):
        base = math.log1p(math.expm1(e) / 0.3)
        truth = 0.3 * delta_bounds(inner, Fraction(base), 1e-3)[1]
        low, high = delta_bounds(event, Fraction(e), 1e-2)
        assert low * 0.99 <= truth <= high * 1.01


@pytest.mark.parametrize("delta", [-0.1, 1, 2, float("nan")])
def test_delta_outside_its_range_is_refused(delta):
    with pytest.raises(ParameterError):
        bounds(acc.PureDP(1), delta)


@pytest.mark.parametrize("points", [2**18, pytest.param(lattice.MOST_POINTS, marks=pytest.mark.soak)])
def test_too_wide_a_composition_says_what_to_relax_and_allocates_little(monkeypatch, points):
    for module in (lattice, convolution, certify):
        monkeypatch.setattr(module, "MOST_POINTS", points)
    event = acc.Repeated(acc.PoissonSampled(acc.Gaussian("0.8"), "0.001"), 10**6)
    with pytest.raises(ParameterError, match="width"):
        bounds(event, "1e-6", width=1e-9)


@pytest.mark.parametrize(
    ("event", "delta", "truth"),
    [
        (acc.Repeated(acc.Laplace(10), 100), "1e-6", 4.6926674147),
        (acc.Repeated(acc.Gaussian(50), 1000), "1e-6", 2.9216005904),
        (acc.Repeated(acc.ApproxDP("0.1", "1e-8"), 20), "1e-6", 1.792829974635),
    ],
)
def test_estimates_with_atoms_have_ten_digits(event, delta, truth):
    assert acc.epsilon(event, delta) == pytest.approx(truth, rel=2e-11)


@pytest.mark.parametrize(
    ("kind", "args", "truth"),
    [c for c in CASES if c[0] in ("laplace", "response", "discrete_laplace", "discrete_gaussian")],
    ids=lambda v: str(v)[:30],
)
def test_estimates_of_stored_references_have_eight_digits(kind, args, truth):
    if kind == "laplace" and args[2] == "1.9":
        pytest.skip("within a lattice step of the largest loss the estimate is the certified upper bound")
    at = [a for a in args if isinstance(a, str)][-1]
    assert acc.delta(_event(kind, args), Fraction(at)) == pytest.approx(float(truth), rel=1e-8)


def test_gaussian_calibration_is_the_last_float_that_fits():
    x = acc.calibrate(lambda sigma: acc.Gaussian(sigma), 1, "1e-6")
    assert x == pytest.approx(4.22467888932683, rel=1e-14)
    with mpmath.workdps(60):

        def delta(sigma):
            mu = 1 / mpmath.mpf(sigma)
            return mpmath.ncdf(mu / 2 - 1 / mu) - mpmath.e * mpmath.ncdf(-mu / 2 - 1 / mu)

        assert delta(x) <= mpmath.mpf(10) ** -6 < delta(math.nextafter(x, 0.0))


def test_calibration_asks_few_parameters() -> None:
    """A few for the bracket, few for the estimate between them (26 halves would do), few for the certified bound."""
    asked = []

    def make(sigma):
        asked.append(sigma)
        return acc.Repeated(acc.PoissonSampled(acc.Gaussian(sigma), 0.02), 3000)

    acc.calibrate(make, 3, "1e-5")
    assert len(asked) <= 24


@pytest.mark.parametrize(
    ("off", "ends"),
    [
        (lambda x: math.log(3 / x**1.3), (1.0, 4.0)),
        (lambda x: x - 0.3, (1.0, 0.25)),
        (lambda x: 1.0 if x < 2.2 else -1.0, (1.0, 4.0)),
        (lambda x: math.inf if x < 2.2 else -math.inf, (1.0, 4.0)),
        (lambda x: -math.inf if x > 2 else 3 - x, (1.0, 4.0)),
        (lambda x: math.inf if x < 2 else 2.5 - x, (1.0, 4.0)),
        (lambda x: 1 / (x - 0.5) ** 8 - 1e-9, (1.0, 64.0)),
        (lambda x: 1.0, (1.0, 4.0)),
    ],
)
def test_a_bracket_closes_around_a_root_whatever_the_function(off, ends) -> None:
    asked = []
    bad, good = questions._approach(lambda x: asked.append(x) or off(x), *ends, 1e-7)
    assert abs(bad / good - 1) <= 1.1e-7
    assert off(bad) > 0
    assert off(good) <= 0 or good == pytest.approx(ends[1], rel=1e-12)
    assert len(asked) <= 2 + questions._STEPS + 30


@pytest.mark.parametrize(("first", "size", "h"), [(-700, 400, 1e-3), (0, 400, 1e-3), (300, 400, 1e-3), (-2, 5, 1.0)])
def test_the_growth_of_a_tilted_sum_is_bounded_from_above_and_closely(first: int, size: int, h: float) -> None:
    """Against a sum in 40 digits; beyond moderate exponents the plain sum is taken."""
    draw = np.random.default_rng(5)
    mass = draw.dirichlet(np.full(size, 0.3)) * np.exp(-draw.uniform(0, 200, size))
    measure, theta = lattice.Measure(h, first, mass, 0.0, 0.0), 1.5
    w, k0, _, _ = convolution._tilt(measure, theta)
    shifts = np.array([-900.0, -2.0, -0.01, 0.01, 1.0, 5.0, 900.0]) / (250 * h)
    for some in (shifts[1:-1], shifts):
        found = convolution._grown(measure, w, some, theta, k0)
        with mpmath.workdps(40):
            at = [mpmath.mpf(h) * (first + k) for k in range(mass.size)]

            def log_sum(s, at=at):
                return mpmath.log(
                    mpmath.fsum(mpmath.mpf(float(m)) * mpmath.exp(s * x) for m, x in zip(mass, at, strict=True))
                )

            truth = [log_sum(theta + mpmath.mpf(float(s))) - log_sum(mpmath.mpf(theta)) for s in some]
        for value, true in zip(found, truth, strict=True):
            assert abs(value - float(true)) < 1e-10 * max(1.0, abs(float(true)))
            assert value >= float(true) or some.size > 5 or size < 400


def test_calibration_of_sampled_noise_is_on_the_safe_side_to_ten_digits():
    def make(sigma):
        return acc.Repeated(acc.PoissonSampled(acc.Gaussian(sigma), "0.02"), 3000)

    x = acc.calibrate(make, 3, "1e-5")
    assert bounds(make(x), "1e-5")[0] <= 3
    # Certified on the lattice of the search, whose upper bound lies within its width of the truth.
    assert 3 * (1 - 3e-3) <= acc.epsilon(make(x), "1e-5") <= 3
