"""The numbers of the statements, one test per line of docs/theorems.md; `test_mutants` shows that each can fail."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from hubbub.accounting import epsilon_of_rho, pure_epsilon, rho
from hubbub.errors import ParameterError
from hubbub.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    GroupThreshold,
    KNormMechanism,
    LaplaceMechanism,
    NoisyMax,
    OptimalGroupSelection,
    PermuteAndFlip,
    QuantileMechanism,
    RandomizedResponse,
    SparseVector,
    StaircaseMechanism,
    above_threshold,
    classic_variance,
    discrete_gaussian_delta,
    epsilon_between,
    gaussian_delta,
    gaussian_for,
    gaussian_sigma,
    k_norm_for,
    laplace_for,
    local_and_central_error,
    plan,
    rank_error,
    response_sample_size,
    weighted_choice,
)
from hubbub.mechanisms.weighted import integer_steps
from hubbub.noise import DiscreteLaplace, Grid
from hubbub.queries import AttributeMeans, Points, Thresholds
from seeded import SeededBits


def near(value: float) -> object:
    """Equal to ten digits."""
    return pytest.approx(value, rel=1e-10)


# Randomised response


def test_m1_two_coins_give_three_quarters_and_ln_3() -> None:
    coins = RandomizedResponse(random_share="1/2")
    assert (coins.yes_given_yes, coins.yes_given_no, coins.odds) == (0.75, 0.25, 3)
    epsilon = pure_epsilon(coins.loss)
    assert epsilon is not None
    assert math.log(3) <= float(epsilon) <= math.log(3) * (1 + 1e-14)
    # P(Yes|Yes)/P(Yes|No) and P(No|No)/P(No|Yes).
    assert math.exp(coins.log_prob(True, True) - coins.log_prob(True, False)) == near(3)
    assert math.exp(coins.log_prob(False, False) - coins.log_prob(False, True)) == near(3)


def test_m1_four_hundred_yes_of_a_thousand_are_thirty_percent() -> None:
    assert RandomizedResponse(random_share="1/2").estimate(400, 1000) == 0.3
    # The expected share of Yes is (1-p)/4 + 3p/4, so p = 2 share - 1/2.
    assert RandomizedResponse(random_share="1/2").estimate(700, 1000) == near(2 * 0.7 - 0.5)


@pytest.mark.parametrize("share", [Fraction(1, 4), Fraction(3, 4)])
def test_m1_any_share_of_random_answers_has_odds_two_over_share_less_one(share: Fraction) -> None:
    coins = RandomizedResponse(random_share=share)
    assert coins.odds == 2 / share - 1
    assert coins.estimate(500, 1000) == 0.5
    p = float(1 - share / 2)
    assert coins.estimate(400, 1000) == near((0.4 - (1 - p)) / (2 * p - 1))


def test_m1_forced_yes_is_zero_one_half_and_a_no_is_proof() -> None:
    forced = RandomizedResponse(forced_yes="1/2")
    assert (float(forced.loss.epsilon), float(forced.loss.delta)) == (0, 0.5)  # type: ignore[attr-defined]
    assert pure_epsilon(forced.loss) is None
    assert forced.log_prob(False, True) == -math.inf
    # In expectation (1+p)/2 answer Yes.
    assert forced.estimate(650, 1000) == near(2 * 0.65 - 1)


def test_m1_bias_form_costs_the_log_of_its_odds() -> None:
    b = 1 / 8
    response = RandomizedResponse(bias="1/8")
    epsilon = pure_epsilon(response.loss)
    assert epsilon is not None
    assert float(epsilon) == near(math.log((0.5 + b) / (0.5 - b)))
    # q(x_i) = (E y_i - 1/2 + b) / 2b, and the variance is at most 1/(16 b^2 n), nearly so for small b.
    assert response.estimate(600, 1000) == near((0.6 - 0.5 + b) / (2 * b))
    assert response.variance(1000, 0.3) == near((1 / 4 - b * b) / (4 * b * b * 1000))
    assert 0.93 / (16 * b * b * 1000) < response.variance(1000, 0.3) <= 1 / (16 * b * b * 1000)


def test_m1_general_form_tells_the_truth_with_logistic_epsilon() -> None:
    response = RandomizedResponse(epsilon="7/10")
    assert response.yes_given_yes == near(math.exp(0.7) / (1 + math.exp(0.7)))
    assert response.yes_given_no == near(1 / (1 + math.exp(0.7)))
    assert pure_epsilon(response.loss) == Fraction(7, 10)


@pytest.mark.parametrize("form", ["forced_yes", "random_share", "bias", "epsilon"])
def test_m1_estimator_is_unbiased_with_exactly_its_variance(form: str) -> None:
    """By enumeration: 7 people say Yes truly, 13 No; the number of Yes is a sum of two binomials."""
    response = RandomizedResponse(**{form: "1/3"})  # type: ignore[arg-type]
    n, true = 20, 7
    law = np.convolve(
        binom.pmf(np.arange(true + 1), true, response.yes_given_yes),
        binom.pmf(np.arange(n - true + 1), n - true, response.yes_given_no),
    )
    estimates = np.array([response.estimate(y, n) for y in range(n + 1)])
    mean = float(law @ estimates)
    assert mean == near(true / n)
    assert float(law @ (estimates - mean) ** 2) == pytest.approx(response.variance(n, true / n), rel=1e-9)


def test_m1_interval_has_exactly_its_tails_at_both_ends() -> None:
    response, n, yes = RandomizedResponse(random_share="1/2"), 60, 24
    low, high = response.interval(yes, n, "0.95")
    rates = [0.25 + 0.5 * end for end in (low, high)]
    assert float(binom.sf(yes - 1, n, rates[0])) == pytest.approx(0.025, rel=1e-7)
    assert float(binom.cdf(yes, n, rates[1])) == pytest.approx(0.025, rel=1e-7)
    for share in np.linspace(0, 1, 41):
        chances = binom.pmf(np.arange(n + 1), n, 0.25 + 0.5 * share)
        ends = [response.interval(y, n, "0.95") for y in range(n + 1)]
        covered = sum(c for c, (a, b) in zip(chances, ends, strict=True) if a <= share <= b)
        assert covered >= 0.95


def test_m1_accuracy_is_hoeffdings_and_holds() -> None:
    response = RandomizedResponse(epsilon=1)
    reach = response.accuracy("0.05", n=200)
    assert reach == near(math.sqrt(math.log(40) / 400) / math.tanh(0.5))
    rate = 0.4 * response.yes_given_yes + 0.6 * response.yes_given_no
    beyond = sum(float(binom.pmf(y, 200, rate)) for y in range(201) if abs(response.estimate(y, 200) - 0.4) > reach)
    assert beyond <= 0.05


def test_m2_k_questions_need_k_squared_people() -> None:
    k, within, beta, epsilon = 10, 0.05, 0.01, 1.0
    n = response_sample_size(k=k, within="0.05", beta="0.01", epsilon=1)
    slope = math.tanh(epsilon / (2 * k))

    def failing(people: int) -> float:
        return 2 * k * math.exp(-2 * people * (within * slope) ** 2)

    assert failing(n) <= beta < failing(n - 1)
    assert n == pytest.approx(2 * k**2 * math.log(2 * k / beta) / (within * epsilon) ** 2, rel=2e-3)


def test_m3_local_error_falls_with_root_n_and_central_error_with_n() -> None:
    for n in (10**4, 10**8):
        local, central = local_and_central_error(n=n, epsilon="1/10")
        assert local == pytest.approx(1 / (0.1 * math.sqrt(n)), rel=1e-3)
        assert central == near(math.sqrt(2) / (0.1 * n))


# Noise on numbers


def test_m4_laplace_scale_is_sensitivity_over_epsilon() -> None:
    assert LaplaceMechanism(sensitivity=1, epsilon="1/10").scale == 10
    assert pure_epsilon(LaplaceMechanism(sensitivity=3, scale=6).loss) == Fraction(1, 2)
    workload = laplace_for(Thresholds(50), neighbours="replace", epsilon=2)
    assert workload.scale == Fraction(49, 2)


def test_m4_laplace_tail_is_exactly_exponential() -> None:
    """P(|Z| > t) = e^(-t/b) / cosh(h/2b) at every half-step t = (m + 1/2) h, so e^(-t/b) as the grid gets finer."""
    for exponent in (0, -3, -10):
        mechanism = LaplaceMechanism(sensitivity=1, scale=2, grid=Grid(exponent))
        h = float(mechanism.step)
        for steps in (0, 5, 40):
            tail = 2 * float(mechanism.error().tail(steps))
            assert tail == near(math.exp(-(steps + 0.5) * h / 2) / math.cosh(h / 4))
    assert math.cosh(2**-10 / 4) == pytest.approx(1, abs=1e-7)


def test_m4_sup_error_is_ln_k_over_beta_times_sensitivity_over_epsilon() -> None:
    k, beta = 100, 0.05
    mechanism = LaplaceMechanism(sensitivity=k, epsilon=1, cells=k)
    assert int(mechanism.accuracy("0.05")) == math.ceil(k * math.log(k / beta))
    beyond = 1 - (1 - 2 * float(mechanism.error().tail(int(mechanism.accuracy("0.05"))))) ** k
    assert 0.8 * beta < beyond <= beta


def test_m4_average_of_values_up_to_b_has_scale_b_over_epsilon_m() -> None:
    """Values in [0, 8], 50 of them, on a grid of 1/1024: the sum moves by 8, its average by 8/50."""
    mechanism = LaplaceMechanism(sensitivity=8, epsilon="1/2", grid=Grid(-10))
    assert mechanism.scale / 50 == Fraction(8) / (Fraction(1, 2) * 50)
    # With probability 1 - delta the error is at most (b / epsilon m) ln(1/delta).
    assert float(mechanism.accuracy("0.01") / 50) == pytest.approx(8 / (0.5 * 50) * math.log(100), rel=1e-4)


def test_m4_rounding_the_answer_costs_nothing() -> None:
    """Laplace noise on a grid of 1/8, rounded to whole numbers: post-processing, so never above epsilon."""
    mechanism = LaplaceMechanism(sensitivity=1, epsilon=1, grid=Grid(-3))
    outputs = np.arange(-30 * 8 - 4, 31 * 8 + 4)
    laws = [np.asarray(mechanism.error().log_pmf(outputs - 8 * x)) for x in (0, 1)]
    rounded = [np.log(np.exp(law).reshape(-1, 8).sum(axis=1)) for law in laws]
    assert epsilon_between(*laws) == near(1)
    assert 0.999 <= epsilon_between(*rounded) <= 1 + 1e-9


def test_m4_noise_for_a_wanted_accuracy_is_the_most_that_keeps_it() -> None:
    mechanism = LaplaceMechanism(sensitivity=1, within=50, confidence="0.95", cells=3)
    inside = (1 - 2 * float(mechanism.error().tail(50))) ** 3
    assert 0.95 <= inside <= 0.9501
    louder = DiscreteLaplace(mechanism.scale * Fraction(101, 100))
    assert (1 - 2 * float(louder.tail(50))) ** 3 < 0.95


def test_m5_five_suggestions_a_person_need_five_times_the_noise() -> None:
    """Noise of scale 1/epsilon on a count of which one person sent 5 is 5 epsilon; scale 5/epsilon repairs it."""
    epsilon = math.log(3)
    wrong = LaplaceMechanism(sensitivity=1, scale=1 / epsilon)
    assert wrong.log_prob(0, 1000) - wrong.log_prob(0, 1005) == near(5 * epsilon)
    one = Points(1).sensitivity("add_remove").of_rows(5)
    right = LaplaceMechanism(sensitivity=one.l1, scale=5 / epsilon)
    assert right.log_prob(0, 1000) - right.log_prob(0, 1005) == near(epsilon)
    assert laplace_for(Points(1), neighbours="add_remove", rows=5, epsilon=2).scale == Fraction(5, 2)


def test_m6_geometric_noise_beats_rounded_laplace_noise() -> None:
    """E|Z| of the rounded Laplace law is e^(1/2b) q/(1-q); of the geometric one that divided by cosh(1/2b)."""
    for scale in (Fraction(1, 2), Fraction(2), Fraction(20)):
        b = float(scale)
        q = math.exp(-1 / b)
        rounded = math.exp(1 / (2 * b)) * q / (1 - q)
        law = LaplaceMechanism(sensitivity=1, scale=scale).error()
        size = 2 * math.fsum(float(law.tail(k)) for k in range(math.ceil(60 * b) + 5))
        assert size == near(rounded / math.cosh(1 / (2 * b)))
        assert size < rounded
        assert law.log_pmf(0) == near(math.log((1 - q) / (1 + q)))


def test_m6_every_integer_is_possible_under_both_neighbours() -> None:
    mechanism = LaplaceMechanism(sensitivity=1, epsilon=1)
    for output in (0, 1, -(10**15), 10**15):
        assert abs(mechanism.log_prob(output, 0) - mechanism.log_prob(output, 1)) <= 1 + 1e-9


def test_m7_classic_gaussian_is_a_variance_and_holds_up_to_epsilon_one() -> None:
    for epsilon, delta in [(1.0, 1e-6), (0.5, 1e-5), (0.1, 0.01)]:
        variance = classic_variance(epsilon, delta)
        assert float(variance) == near(2 * math.log(1.25 / delta) / epsilon**2)
        assert gaussian_delta(epsilon, math.sqrt(variance)) <= delta
    with pytest.raises(ParameterError, match="epsilon <= 1"):
        classic_variance(2, "1e-6")
    assert GaussianMechanism(sensitivity=3, epsilon=1, delta="1e-6", calibration="classic").variance == 9 * (
        classic_variance(1, "1e-6")
    )
    # At epsilon 10 the formula would break its promise.
    assert gaussian_delta(10, math.sqrt(2 * math.log(1.25 / 1e-6)) / 10) > 1e-6


def test_m7_exact_gaussian_calibration_at_one_and_a_millionth() -> None:
    assert gaussian_sigma(1, "1e-6") == near(4.22467888932683)
    assert gaussian_delta(1, 4.22467888932683) == pytest.approx(1e-6, rel=1e-9)
    assert gaussian_delta(0, 1) == near(math.erf(0.5 / math.sqrt(2)))
    discrete = GaussianMechanism(sensitivity=64, epsilon=1, delta="1e-6", calibration="exact")
    assert math.sqrt(discrete.variance) / 64 == pytest.approx(4.22467888932683, rel=3e-4)
    assert discrete_gaussian_delta(1.0, discrete.variance, 64) == pytest.approx(1e-6, rel=1e-3)


def test_m7_d_dimensional_mean_needs_root_d() -> None:
    """The mean of d = 100 bits: l1 = d, l2 = sqrt(d); rho = 1/2 gives sigma = sqrt(d) where Laplace has b = d."""
    gaussian = gaussian_for(AttributeMeans(100), neighbours="replace", rho="1/2")
    laplace = laplace_for(AttributeMeans(100), neighbours="replace", epsilon=1)
    assert gaussian.variance == 100
    assert laplace.scale == 100
    assert rho(gaussian.loss) == Fraction(1, 2)


def test_m7_gaussian_spends_the_rho_of_its_epsilon_and_delta() -> None:
    mechanism = GaussianMechanism(sensitivity=2, epsilon=1, delta="1e-6")
    assert float(epsilon_of_rho(mechanism.rho, "1e-6")) == pytest.approx(1, rel=1e-12)
    assert mechanism.variance == 4 / (2 * mechanism.rho)
    reach = GaussianMechanism(sensitivity=1, sigma=1000, cells=5).accuracy("0.05")
    assert int(reach) == math.ceil(1000 * math.sqrt(2 * math.log(200)))
    tail = 2 * float(GaussianMechanism(sensitivity=1, sigma=1000).error().tail(int(reach)))
    assert 5 * tail <= 0.05
    wanted = GaussianMechanism(sensitivity=1, within=50, confidence="0.95")
    assert 0.95 <= 1 - 2 * float(wanted.error().tail(50)) <= 0.9501


# Selecting


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
def test_m8_noisy_max_stays_within_its_gap(noise: str) -> None:
    mechanism = NoisyMax(epsilon=1, sensitivity=1, noise=noise)
    sides = 1 if noise == "exponential" else 2
    assert mechanism.accuracy("0.05", candidates=8) == near(sides * 2 * math.log(8 / 0.05))
    for gap in range(0, 40, 3):
        scores = [gap] + [0] * 7
        lost = 1 - math.exp(mechanism.log_prob(0, scores))
        if gap > mechanism.accuracy("0.05", candidates=8):
            assert lost <= 0.05
    assert mechanism.error().scale == 2


def test_m9_exponential_mechanism_weighs_by_half_epsilon_over_sensitivity() -> None:
    mechanism = ExponentialMechanism(epsilon=1, sensitivity=3)
    logs = mechanism.log_probs([10, 4])
    assert logs[0] - logs[1] == near(6 * 1 / (2 * 3))
    assert rho(mechanism.loss) == Fraction(1, 8)
    monotone = ExponentialMechanism(epsilon=1, sensitivity=3, monotone=True)
    assert float(np.subtract(*monotone.log_probs([10, 4]))) == near(2)


def test_m9_utility_bound_is_never_violated_beyond_its_probability() -> None:
    """Exactly, over random scores: P(score <= OPT - (2/eps)(ln(|R|/|R_opt|) + t)) <= e^-t; and 1e5 runs agree.

    The runs: n = 100,000 at a bad-event chance p <= e^-1; a frequency above e^-1 + 0.0105 has probability < 1e-9
    (Hoeffding: exp(-2 n 0.0105^2) = 2.7e-10).
    """
    generator = np.random.default_rng(9)
    mechanism = ExponentialMechanism(epsilon=1, sensitivity=1)
    worst = 0.0
    for size, best in itertools.product((2, 20, 500), (1, 2)):
        for t in (0.0, 0.5, 1.0, 3.0):
            gap = mechanism.accuracy(str(math.exp(-t)) if t else "0.999999999", candidates=size, best=best)
            assert gap == pytest.approx(2 * (math.log(size / best) + t), rel=1e-7, abs=1e-7)
            for spread in (1, 5, 40):
                scores = generator.integers(0, spread, size)
                scores[:best], scores[best:] = spread + 1, np.minimum(scores[best:], spread)
                chances = np.exp(mechanism.log_probs(scores))
                bad = float(chances[scores <= scores.max() - gap].sum())
                assert bad <= math.exp(-t) + 1e-8
    # The worst case: all others exactly at the bound, |R| = 1000, t = 1.
    gap = math.ceil(mechanism.accuracy(str(math.exp(-1)), candidates=1000))
    scores = np.array([gap] + [0] * 999)
    steps, unit = integer_steps(scores)
    draws = weighted_choice(steps, mechanism.rate * unit, size=100_000, bits=SeededBits("utility"))
    worst = float((draws != 0).mean())
    exact = 1 - math.exp(mechanism.log_prob(0, scores))
    assert exact <= math.exp(-1)
    assert abs(worst - exact) <= 0.0105
    assert worst <= math.exp(-1) + 0.0105


def test_m9_laplace_is_the_exponential_mechanism_and_saves_its_factor_two() -> None:
    """Scores -|x - h| on a window of integers: Laplace of twice the scale; its loss falls to epsilon/2."""
    mechanism = ExponentialMechanism(epsilon=1, sensitivity=1)
    losses = []
    for half in (3, 30, 300):
        window = np.arange(-half, half + 1)
        at = [mechanism.log_probs(-np.abs(window - x)) for x in (0, 1)]
        losses.append(epsilon_between(*at))
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] == pytest.approx(0.5, rel=1e-6)
    twice = DiscreteLaplace(2)
    assert np.allclose(at[0][250:350], twice.log_pmf(window[250:350]), atol=1e-12)


def test_m9_permute_and_flip_is_never_worse_in_expected_score() -> None:
    for scores in itertools.product(range(0, 9, 2), repeat=3):
        means = [
            float(np.exp(kind(epsilon=1, sensitivity=1).log_probs(list(scores))) @ np.array(scores))
            for kind in (PermuteAndFlip, ExponentialMechanism)
        ]
        assert means[0] >= means[1] - 1e-12
    # At equal epsilon it weighs as the exponential mechanism does: two candidates, the worse one half its chance.
    assert PermuteAndFlip(epsilon=1, sensitivity=1).log_prob(1, [4, 0]) == near(math.log(math.exp(-2) / 2))


def test_m10_sparse_vector_splits_its_budget_one_to_two_c_to_the_two_thirds() -> None:
    mechanism = SparseVector(epsilon=1, positives=4, sensitivity=1)
    first = float(mechanism.threshold_epsilon)
    assert (1 - first) / first == pytest.approx(8 ** (2 / 3), rel=1e-6)
    assert float(mechanism.threshold_noise.scale) == near(1 / first)
    assert float(mechanism.question_noise.scale) == near(2 * 4 / (1 - first))
    monotone = SparseVector(epsilon=1, positives=8, sensitivity=1, monotone=True)
    first = float(monotone.threshold_epsilon)
    assert (1 - first) / first == pytest.approx(4, rel=1e-6)
    assert float(monotone.question_noise.scale) == near(8 / (1 - first))
    numeric = SparseVector(epsilon=1, positives=4, sensitivity=1, answers_epsilon=2)
    assert pure_epsilon(numeric.loss) == 3
    assert numeric.answer_noise.scale == 2


def test_m10_sparse_vector_is_right_beyond_its_margin() -> None:
    """Exactly: k - 1 values alpha below the threshold and one above; a wrong answer has a chance below beta."""
    mechanism, k, beta = above_threshold(epsilon=1, sensitivity=1), 20, 0.05
    alpha = mechanism.accuracy("0.05", questions=k)
    b = [float(law.scale) for law in (mechanism.threshold_noise, mechanism.question_noise)]
    assert alpha == near(b[0] * math.log(2 / beta) + b[1] * math.log(2 * k / beta))
    margin = math.ceil(alpha)
    right = (False,) * (k - 1) + (True,)
    values = [-margin] * (k - 1) + [margin]
    assert math.exp(mechanism.log_prob(right, values, threshold=0)) >= 1 - beta
    closer = [-margin // 3] * (k - 1) + [margin // 3]
    assert math.exp(mechanism.log_prob(right, closer, threshold=0)) < 1 - beta


# K-norm, staircase, quantiles, groups


def test_m11_k_norm_halves_the_error_of_many_cells_that_move_together() -> None:
    """l-infinity ball in d = 2: E|Z_i| = (d+1) b / 2 against d b for Laplace, in the limit of a fine grid (b = 24)."""
    mechanism = KNormMechanism(norm="linf", sensitivity=1, cells=2, epsilon=Fraction(1, 24))
    axis = np.arange(-700, 701)
    sizes = np.maximum(np.abs(axis)[:, None], np.abs(axis)[None, :])
    mass = np.exp(-sizes / 24)
    mean = float((mass * np.abs(axis)[:, None]).sum() / mass.sum())
    assert mean == pytest.approx(3 * 24 / 2, rel=2e-3)
    bits = SeededBits("fine")
    # 4000 draws: the mean of |Z_1| has standard error 0.5; 3.3 is beyond 6.1 of them (false alarm 1e-9).
    drawn = np.array([mechanism.noise(bits=bits) for _ in range(4000)])
    assert abs(np.abs(drawn[:, 0]).mean() - mean) <= 3.3
    assert pure_epsilon(mechanism.loss) == Fraction(1, 24)
    assert mechanism.scale == 24
    assert mechanism.log_ratio((5, 5), (0, 0), (-1, -1)) == near(1 / 24)


def test_m11_accuracy_bound_holds_exactly_and_is_the_gamma_tail() -> None:
    from scipy.stats import gamma

    for norm in ("l1", "linf", "l2"):
        mechanism = KNormMechanism(norm=norm, sensitivity=1, cells=2, epsilon="1/4")  # type: ignore[arg-type]
        reach = mechanism.accuracy("0.05")
        half = {"l1": 1.0, "linf": 0.5, "l2": math.sqrt(0.5)}[norm]
        assert float(gamma.sf((reach - half) / 4, 2)) * math.exp(2 * half / 4) == pytest.approx(0.05, rel=1e-3)
        axis = np.arange(-120, 121)
        points = [[int(a), int(b)] for a, b in itertools.product(axis[60:181], repeat=2)]
        total = math.fsum(math.exp(-float(mechanism.gauge(p)) / 4) for p in points)
        beyond = math.fsum(math.exp(-float(mechanism.gauge(p)) / 4) for p in points if mechanism.gauge(p) > reach)
        assert beyond / total <= 0.05


def test_m11_polytope_of_a_workload_beats_both_balls() -> None:
    """Two nested counts: the columns (1,1) and (0,1) and their negatives span less than the balls that hold them."""
    mechanism = k_norm_for(Thresholds(2), neighbours="add_remove", epsilon="1/2")
    assert mechanism.gauge([1, 1]) == 1
    assert mechanism.gauge([0, 1]) == 1
    assert mechanism.gauge([1, -1]) == 3
    laplace = laplace_for(Thresholds(2), neighbours="add_remove", epsilon="1/2")
    assert laplace.scale == 4
    axis = range(-80, 81)
    mass = {(a, b): math.exp(-float(mechanism.gauge([a, b]) / mechanism.scale)) for a in axis for b in axis}
    mean = math.fsum(m * (abs(a) + abs(b)) / 2 for (a, b), m in mass.items()) / math.fsum(mass.values())
    assert mean < 0.85 * 4


def test_staircase_error_is_the_published_optimum() -> None:
    """E|Z| -> Delta e^(eps/2) / (e^eps - 1) for a fine grid (Geng, Viswanath 2014, Theorem 3), below Laplace's."""
    for epsilon in (1, 3, 6):
        mechanism = StaircaseMechanism(sensitivity=4000, epsilon=epsilon)
        optimum = 4000 * math.exp(epsilon / 2) / math.expm1(epsilon)
        assert mechanism.error().mean_size == pytest.approx(optimum, rel=1e-3)
        assert optimum < 4000 / epsilon
        assert mechanism.width == pytest.approx(4000 / (1 + math.exp(epsilon / 2)), rel=2e-2)
    small = [StaircaseMechanism(sensitivity=7, epsilon=2, width=r).error().mean_size for r in range(1, 8)]
    assert StaircaseMechanism(sensitivity=7, epsilon=2).width == 1 + int(np.argmin(small))
    law = StaircaseMechanism(sensitivity=1, epsilon=1).error()
    assert law.log_pmf(3) == near(float(DiscreteLaplace(1).log_pmf(3)))
    reach = int(StaircaseMechanism(sensitivity=7, epsilon=2).accuracy("0.05"))
    law = StaircaseMechanism(sensitivity=7, epsilon=2).error()
    assert 2 * law.tail(reach) <= 0.05 < 2 * law.tail(reach - 1)


def test_quantile_weights_fall_with_epsilon_over_twice_the_larger_share() -> None:
    median = QuantileMechanism(shares=["1/2"], lower=0, upper=10, epsilon=1)
    rows = [1] * 10 + [9] * 6
    # The median is 1 (d = 0); between the values 10 - 8 = 2 ranks too many lie below.
    assert median.log_prob([1], rows) - median.log_prob([5], rows) == near(2 * 1.0)
    tenth = QuantileMechanism(shares=["1/10"], lower=0, upper=10, epsilon=1)
    assert tenth.log_prob([1], rows) - tenth.log_prob([5], rows) == near((10 - 1.6) / (2 * 0.9))


def test_quantile_rank_error_stays_within_its_bound() -> None:
    mechanism = QuantileMechanism(shares=["1/2"], lower=0, upper=200, epsilon=1)
    bound = mechanism.accuracy("0.05")
    assert bound == near(math.log(201) + math.log(20))
    rows = list(range(0, 200, 2))
    chances = {v: math.exp(mechanism.log_prob([v], rows)) for v in range(201)}
    assert math.fsum(chances.values()) == near(1)
    beyond = math.fsum(c for v, c in chances.items() if 100 * rank_error(rows, [v], ["1/2"])[0] > bound)
    assert beyond <= 0.05


def test_w5_twenty_nine_quantiles_of_a_thousand_rows() -> None:
    """Mean rank error of 20 tables at epsilon 1: at most .018 (the target), where one by one it is four times more."""
    shares = [Fraction(i, 30) for i in range(1, 30)]
    generator, errors = np.random.default_rng(5), []
    mechanism = QuantileMechanism(shares=shares, lower=0, upper=1, epsilon=1, grid=Grid(-20))
    assert mechanism.rounds == 5
    assert pure_epsilon(mechanism.loss) == 1
    for trial in range(20):
        rows = generator.uniform(0, 1, 1000)
        found = mechanism.release(rows, bits=SeededBits(f"w5-{trial}"))
        assert list(found) == sorted(found)
        errors.append(float(rank_error(rows, found, shares).mean()))
    assert 0.006 < float(np.mean(errors)) <= 0.009


def test_optimal_group_selection_grows_geometrically_to_certainty() -> None:
    mechanism = OptimalGroupSelection(epsilon=1, delta="1e-5")
    for n in range(1, 8):
        assert float(mechanism.probability(n)) == near(1e-5 * math.expm1(n) / math.expm1(1))
    # From the other end: 1 - pi(n) falls by e^eps a step, less delta.
    rests = [1 - mechanism.probability(n) for n in range(mechanism.always - 6, mechanism.always)]
    for before, after in itertools.pairwise(rests):
        assert float(after) == near(float(before - Fraction(1, 10**5)) * math.exp(-1))
    assert mechanism.probability(mechanism.always) == 1
    assert mechanism.probability(0) == 0
    # Half way at (1/eps) ln(half / delta) or so; the threshold of plain Laplace noise comes later.
    half = next(n for n in range(100) if mechanism.probability(n) >= Fraction(1, 2))
    assert half == 12
    assert GroupThreshold(epsilon=1, delta="1e-5").threshold > half


def test_group_threshold_is_the_least_that_keeps_delta() -> None:
    for epsilon, delta, groups in [(1, "1e-5", 1), ("1/2", "1e-9", 4), (3, "0.3", 1)]:
        mechanism = GroupThreshold(epsilon=epsilon, delta=delta, groups=groups)
        law = DiscreteLaplace(groups / Fraction(epsilon))
        assert mechanism.noise == law
        each = float(Fraction(delta)) / groups
        assert float(law.tail(mechanism.threshold - 2)) <= each < float(law.tail(mechanism.threshold - 3))
    gaussian = GroupThreshold(rho="1/8", delta="1e-6", groups=2)
    tails = [float(gaussian.noise.tail(gaussian.threshold - k)) for k in (2, 3)]
    assert tails[0] <= 5e-7 < tails[1]
    assert gaussian.noise.variance == pytest.approx(8, rel=1e-9)


# The planner


def test_q6_planner_states_each_strategys_theorem() -> None:
    k, n, universe, epsilon, beta = 100, 10**6, 2**20, 1.0, 0.05
    found = {p.strategy: p for p in plan(n=n, universe=universe, epsilon=1, delta="1e-6", queries=k).predictions}
    assert found["laplace"].max_error == near(k * math.log(k / beta) / (epsilon * n))
    assert found["laplace"].mean_squared_error == near(2 * (k / (epsilon * n)) ** 2)
    own = float(GaussianMechanism(squared_sensitivity=k, epsilon=1, delta="1e-6").variance) / n**2
    assert found["gaussian"].mean_squared_error == near(own)
    assert found["gaussian"].max_error == near(math.sqrt(2 * own * math.log(2 * k / beta)))
    response = RandomizedResponse(epsilon=Fraction(1, k))
    assert found["randomised response"].max_error == near(response.accuracy(Fraction(1, 2000), n=n))
    assert found["randomised response"].mean_squared_error == pytest.approx(response.variance(n, 0.5), rel=1e-4)
    small = min(
        math.sqrt(math.log(2 * k) / (2 * m)) + 2 / (epsilon * n) * (m * math.log(universe) + math.log(1 / beta))
        for m in range(1, 20_000)
    )
    assert found["small database"].max_error == near(small)
    rho_all = 0.5 * k / (own * n**2)
    weights = min(
        2 * math.sqrt(math.log(universe) / t)
        + (4 * math.log(2 * k * t / beta) + 2 * math.log(2 * t / beta)) / (math.sqrt(32 * rho_all / (5 * t)) * n)
        for t in range(10_000, 60_000)
    )
    assert found["multiplicative weights"].max_error == near(weights)
    pure = {p.strategy: p for p in plan(n=n, universe=universe, epsilon=1, queries=k).predictions}
    assert "gaussian" not in pure
    weights = min(
        2 * math.sqrt(math.log(universe) / t) + t * (4 * math.log(2 * k * t / beta) + 2 * math.log(2 * t / beta)) / n
        for t in range(1, 4000)
    )
    assert pure["multiplicative weights"].max_error == near(weights)


def test_q6_planner_picks_noise_for_few_queries_and_synthetic_data_for_many() -> None:
    few = plan(n=10**6, universe=2**10, epsilon=1, delta="1e-6", queries=3)
    many = plan(n=10**6, universe=2**10, epsilon=1, delta="1e-6", queries=10**9)
    assert few.best.strategy == "laplace"
    assert many.best.strategy in ("small database", "multiplicative weights")
    middle = plan(n=10**6, universe=2**10, epsilon=1, delta="1e-6", queries=1000)
    assert middle.best.strategy == "gaussian"
    assert middle.table().splitlines()[1].startswith("gaussian")


def test_q6_errors_scale_as_the_statements_say() -> None:
    """In n: 1/n for noise, n^(-1/3) for the small database, n^(-1/2) for weights with delta, 1/sqrt(n) locally."""
    slopes = {"laplace": 1, "gaussian": 1, "small database": 1 / 3, "multiplicative weights": 1 / 2}
    slopes["randomised response"] = 1 / 2
    both = [
        {p.strategy: p.max_error for p in plan(n=n, universe=2**40, epsilon=1, delta="1e-6", queries=500).predictions}
        for n in (10**9, 10**12)
    ]
    for strategy, slope in slopes.items():
        # Multiplicative weights carry a logarithm of the number of rounds.
        assert math.log10(both[0][strategy] / both[1][strategy]) / 3 == pytest.approx(slope, abs=0.02)


def test_q6_a_workloads_own_sensitivity_counts() -> None:
    histogram = plan(n=1000, universe=500, epsilon=1, workload=Points(500))
    assert histogram.best.strategy == "laplace"
    assert histogram.best.max_error == near(2 * math.log(500 / 0.05) / 1000)
