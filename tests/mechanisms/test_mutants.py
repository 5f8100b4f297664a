"""Each theorem test fails when its constant is changed by 1 %, up or down."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from games import test_auction
from learning import test_learning
from mechanisms import test_broken, test_calibrated, test_privacy, test_theorems
from mechanisms.mutants import Mutant, in_place
from queries import test_queries

# (module, place of the constant, the test that must fail); `test-argument` gives a parameter.
RESPONSE = [
    ("return ¤(2 - s) / s\n", "test_m1_two_coins_give_three_quarters_and_ln_3"),
    ("return 1 - ¤s / 2, s / 2", "test_m1_four_hundred_yes_of_a_thousand_are_thirty_percent"),
    ("return 1 - s / 2, ¤s / 2", "test_m1_four_hundred_yes_of_a_thousand_are_thirty_percent"),
    ("ev.ApproxDP(0, ¤1 - self.parameter)", "test_m1_forced_yes_is_zero_one_half_and_a_no_is_proof"),
    ("return Fraction(1), ¤s\n", "test_m1_forced_yes_is_zero_one_half_and_a_no_is_proof"),
    ("return ¤(1 + 2 * s) / (1 - 2 * s) if", "test_m1_bias_form_costs_the_log_of_its_odds"),
    ("return Fraction(1, 2) + ¤s, Fraction(1, 2) - s", "test_m1_bias_form_costs_the_log_of_its_odds"),
    ("return 1 / (1 + math.exp(§-float(s))), lie", "test_m1_general_form_tells_the_truth_with_logistic_epsilon"),
    ("return §spread / whole_number(n", "test_m1_estimator_is_unbiased_with_exactly_its_variance-bias"),
    ('rest = §beta_of(1 - amount(level, "level")) / 2', "test_m1_interval_has_exactly_its_tails_at_both_ends"),
    ("return §math.sqrt((math.log(2 * shares)", "test_m1_accuracy_is_hoeffdings_and_holds"),
    ("math.tanh(§float(each) / 2)", "test_m2_k_questions_need_k_squared_people"),
]
LAPLACE = [
    (
        "noise = ¤calibrated(spend=Spend(epsilon=epsilon_of(epsilon)), l1=steps).scale",
        "test_m4_laplace_scale_is_sensitivity_over_epsilon",
    ),
    ('noise = ¤positive(scale, "scale") / step', "test_m4_laplace_tail_is_exactly_exponential"),
    ('noise = ¤positive(scale, "scale") / step', "test_m5_five_suggestions_a_person_need_five_times_the_noise"),
    (
        "math.ceil(§float(self.step_scale) * math.log(self.cells / beta_of(beta))",
        "test_m4_sup_error_is_ln_k_over_beta_times_sensitivity_over_epsilon",
    ),
    ("return ¤self.step_scale * self.step", "test_m4_average_of_values_up_to_b_has_scale_b_over_epsilon_m"),
    ("return DiscreteLaplace(¤self.step_scale)", "test_m6_geometric_noise_beats_rounded_laplace_noise"),
    ("noise = ¤steps / _epsilon_within(", "test_m4_noise_for_a_wanted_accuracy_is_the_most_that_keeps_it"),
]
GAUSSIAN = [
    ("digits_up(¤2 * Fraction(ln(", "test_m7_classic_gaussian_is_a_variance_and_holds_up_to_epsilon_one"),
    (
        "upper, lower = §1 / (2 * sigma) - epsilon * sigma, -1",
        "test_m7_exact_gaussian_calibration_at_one_and_a_millionth",
    ),
    (
        "middle = §epsilon * float(variance) / sensitivity",
        "test_m7_exact_gaussian_calibration_at_one_and_a_millionth",
    ),
    ('variance = ¤_variance_of(epsilon_of(rho, name="rho"), squared)', "test_m7_d_dimensional_mean_needs_root_d"),
    ("return ¤self.squared_steps / (2 * self.variance_steps)", "test_m7_d_dimensional_mean_needs_root_d"),
    (
        "lambda: ¤_variance_of(rho_of_epsilon(e, d), squared)",
        "test_m7_gaussian_spends_the_rho_of_its_epsilon_and_delta",
    ),
    ("reach = §math.sqrt(2 *", "test_m7_gaussian_spends_the_rho_of_its_epsilon_and_delta"),
    ("    return Fraction(§low) ** 2", "test_m7_gaussian_spends_the_rho_of_its_epsilon_and_delta"),
]
RATE = "return ¤self.epsilon / (self.sensitivity if"
SELECTION = [
    (RATE, "test_m9_exponential_mechanism_weighs_by_half_epsilon_over_sensitivity"),
    (RATE, "test_m9_laplace_is_the_exponential_mechanism_and_saves_its_factor_two"),
    (RATE, "test_m9_permute_and_flip_is_never_worse_in_expected_score"),
    (RATE, "test_m8_noisy_max_stays_within_its_gap-exponential"),
    ("return §one_sided if", "test_m8_noisy_max_stays_within_its_gap-exponential"),
    ("else §2 * one_sided", "test_m8_noisy_max_stays_within_its_gap-laplace"),
    (
        "return §(math.log(candidates / best) - math.log(beta_of(beta)))",
        "test_m9_utility_bound_is_never_violated_beyond_its_probability",
    ),
]
SPLIT = "test_m10_sparse_vector_splits_its_budget_one_to_two_c_to_the_two_thirds"
SPARSE = [
    ("factor = §(self.positives if", SPLIT),
    ("return DiscreteLaplace(¤self.sensitivity / self.threshold_epsilon)", SPLIT),
    ("return DiscreteLaplace(¤shift /", SPLIT),
    ("return DiscreteLaplace(¤self.positives * self.sensitivity / self.answers_epsilon)", SPLIT),
    (
        "return §float(self.threshold_noise.scale) * math.log(2 / chance)",
        "test_m10_sparse_vector_is_right_beyond_its_margin",
    ),
]
K_NORM = [
    (
        "return ¤self.sensitivity / self.epsilon",
        "test_m11_k_norm_halves_the_error_of_many_cells_that_move_together",
    ),
    (
        "chance = §beta_of(beta) * math.exp(-2 * c / b)",
        "test_m11_accuracy_bound_holds_exactly_and_is_the_gamma_tail",
    ),
]
STAIRCASE = [
    ("return §1 / (2 * one_side - 1)", "test_staircase_error_is_the_published_optimum"),
    ("return §2 * self.top * (", "test_staircase_error_is_the_published_optimum"),
]
QUANTILES = [
    (
        "return ¤self.epsilon / (self.rounds * 2 * self.rows",
        "test_quantile_weights_fall_with_epsilon_over_twice_the_larger_share",
    ),
    (
        "return §(math.log(self.high - self.low + 1) - math.log(beta_of(beta))) / rate",
        "test_quantile_rank_error_stays_within_its_bound",
    ),
]
GROUPS = [
    ("most = min(¤growth * before + delta, 1", "test_optimal_group_selection_grows_geometrically_to_certainty"),
    ("1 - ¤(1 - before - delta) / growth)", "test_optimal_group_selection_grows_geometrically_to_certainty"),
    ("spend = Spend(epsilon=¤epsilon_of(epsilon))", "test_group_threshold_is_the_least_that_keeps_delta"),
    ('spend = Spend(rho=¤epsilon_of(rho, name="rho"))', "test_group_threshold_is_the_least_that_keeps_delta"),
]
STATED = "test_q6_planner_states_each_strategys_theorem"
LOCAL = "test_m3_local_error_falls_with_root_n_and_central_error_with_n"
PLANNER = [
    ('_noisy("laplace", §l1 / (e * rows) * math.log(k / chance)', STATED),
    ("§2 * _squared(l1 / (e * rows))", STATED),
    ("variance = §l2_squared / (2 * rho) / rows**2", STATED),
    ("largest = §math.sqrt(math.log(2 * k / beta) / (2 * n)) / slope", STATED),
    ("noise = §2 / (epsilon * n)", STATED),
    ("gap = §4 * math.log(2 * k * rounds / beta)", STATED),
    ("+ §2 * math.log(2 * rounds / beta)", STATED),
    ("math.sqrt(§32 * rho / (5 * rounds))", STATED),
    ("return §math.sqrt(response.variance(rows, 0.5)), math", LOCAL),
    ("§math.sqrt(2) / (float(epsilon_of(epsilon)) * rows)", LOCAL),
]
LEARNER = [
    ("same = §2 * math.log(", "test_m14_sample_size_has_both_terms"),
    ("private = §4 * (", "test_m14_sample_size_has_both_terms"),
    ("return §self.mechanism.accuracy(", "test_m14_excess_mistakes_stay_within_two_ln_c_over_epsilon_n"),
]
ORACLE = [
    ("root = §(sampling +", "test_q7_tolerance_needs_rows_for_sampling_and_for_noise"),
    ('epsilon=¤amount(epsilon, "epsilon") / self.queries', "test_q7_the_oracle_answers_within_its_tolerance"),
]
REVENUE = "test_m15_expected_revenue_is_within_alpha_n_and_its_logarithm"
AUCTION = [
    ("return §float(self.highest) / self.steps * (n + math.log(self.steps) /", f"{REVENUE}-add_remove"),
    ("return float(self.highest) / self.steps * (n + §gap)", f"{REVENUE}-replace"),
]
CALIBRATION = [
    ("least = ¤Fraction(needed)", "test_the_noise_is_that_of_the_spend_and_so_is_the_event"),
    ("Calibrated(DiscreteLaplace(¤scale),", "test_the_noise_is_that_of_the_spend_and_so_is_the_event"),
    ("ev.DiscreteLaplace(¤scale, ", "test_the_noise_is_that_of_the_spend_and_so_is_the_event"),
    ("DiscreteGaussian.from_variance(¤scale)", "test_the_noise_is_that_of_the_spend_and_so_is_the_event"),
    ("ev.ZCDP(¤needed / (2 * scale))", "test_the_noise_is_that_of_the_spend_and_so_is_the_event"),
]
MODULES: list[tuple[str, list[tuple[str, str]], ModuleType]] = [
    ("hubbub.mechanisms.randomized_response", RESPONSE, test_theorems),
    ("hubbub.mechanisms.calibration", CALIBRATION, test_calibrated),
    ("hubbub.mechanisms.laplace", LAPLACE, test_theorems),
    ("hubbub.mechanisms.gaussian", GAUSSIAN, test_theorems),
    ("hubbub.mechanisms.selection", SELECTION, test_theorems),
    ("hubbub.mechanisms.sparse", SPARSE, test_theorems),
    ("hubbub.mechanisms.knorm", K_NORM, test_theorems),
    ("hubbub.mechanisms.staircase", STAIRCASE, test_theorems),
    ("hubbub.mechanisms.quantiles", QUANTILES, test_theorems),
    ("hubbub.mechanisms.groups", GROUPS, test_theorems),
    ("hubbub.mechanisms.planner", PLANNER, test_theorems),
    ("hubbub.learning.finite_class", LEARNER, test_learning),
    ("hubbub.learning.statistical_queries", ORACLE, test_learning),
    ("hubbub.games.auction", AUCTION, test_auction),
]
CASES = [(Mutant(module, text), where, test) for module, places, where in MODULES for text, test in places]

# Sensitivities are whole numbers: there the constant is changed by one.
WHOLE = [
    (
        Mutant("hubbub.queries.families", "else ±2 * (self.values > 1)"),
        "test_a_partition_has_two_over_n_under_replace_and_one_under_add_remove",
    ),
    (
        Mutant("hubbub.queries.families", "return _ones(±self.size)"),
        "test_the_mean_of_d_bits_has_l1_d_over_n_and_l2_root_d_over_n",
    ),
    (
        Mutant("hubbub.queries.families", "moved = ±middle * (m + 1 - middle)"),
        "test_a_million_queries_need_no_dense_matrix",
    ),
    (
        Mutant("hubbub.queries.workload", "k = Fraction(±self.size)\n"),
        "test_k_counting_queries_have_sensitivity_k_over_n_under_replace",
    ),
    (
        Mutant("hubbub.queries.sensitivity", "±self.l2_squared * rows**2"),
        "test_a_unit_of_five_rows_moves_a_count_by_five",
    ),
]


def run(module: ModuleType, test: str) -> None:
    """Run one test function, with its one argument if there is one."""
    name, _, argument = test.partition("-")
    getattr(module, name)(*([argument] if argument else []))


@pytest.mark.parametrize("case", CASES, ids=lambda c: str(c[0]))
@pytest.mark.parametrize("factor", ["1.01", "0.99"])
def test_a_constant_off_by_one_percent_is_noticed(case: tuple[Mutant, ModuleType, str], factor: str) -> None:
    mutant, module, test = case
    with in_place(mutant, factor, module), pytest.raises(AssertionError):
        run(module, test)


@pytest.mark.parametrize("case", WHOLE, ids=lambda c: str(c[0]))
@pytest.mark.parametrize("step", ["1", "-1"])
def test_a_sensitivity_off_by_one_is_noticed(case: tuple[Mutant, str], step: str) -> None:
    with in_place(case[0], step, test_queries), pytest.raises(AssertionError):
        run(test_queries, case[1])


def test_a_response_off_by_one_percent_fails_the_privacy_check() -> None:
    mutant = Mutant("hubbub.mechanisms.randomized_response", "(self.categories - 1) * math.exp(§-float(self.epsilon))")
    with in_place(mutant, "1.01", test_privacy), pytest.raises(AssertionError):
        test_privacy.test_randomised_response_laws_are_tight_in_all_forms()


def test_unchanged_modules_pass_the_same_tests() -> None:
    """The harness itself fails nothing: a factor of 1 leaves every test passing, and nothing is left behind."""
    for mutant, module, test in CASES[:: len(CASES) // 8]:
        with in_place(mutant, "1", module):
            run(module, test)
    laplace = importlib.import_module("hubbub.mechanisms.laplace")
    assert laplace.LaplaceMechanism is test_theorems.LaplaceMechanism is test_broken.LaplaceMechanism
