"""Each pitfall has its tests: here by the number in its name, and elsewhere where a room tests it at length.

`test_pNN_...` of this folder holds pitfall NN through the front door, on two tables that differ in one unit.
`ELSEWHERE` names the tests of the rooms that go further: processes that are killed, laws of samplers, other engines.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
IDS = range(1, 33)
ELSEWHERE = {
    1: [
        "test_neighbours.py::test_the_pitfalls_move_nothing_but_the_noise",
        "noise/test_grid.py::test_with_bounds_every_float_has_an_image",
    ],
    2: ["test_hostile.py::test_no_column_of_a_frame_keeps_a_session_from_opening"],
    3: ["engines/test_duckdb.py::test_the_widest_values_of_every_type_are_clamped_not_wrapped"],
    4: ["engines/test_duckdb.py::test_the_order_and_partition_of_rows_do_not_matter"],
    5: [
        "noise/test_modes.py::test_ours_gives_every_output_under_both",
        "noise/test_modes.py::test_numpys_laplace_betrays_a_true_value_of_zero",
        "audit/test_other_audits.py::test_float_laplace_names_its_data_set_and_integers_do_not",
        "attacks/test_floating.py::test_integers_on_a_grid_stay_below_the_ceiling",
    ],
    6: ["engines/test_duckdb.py::test_an_empty_table_and_an_all_null_column_answer_like_any_other"],
    7: ["audit/test_grey_box.py::test_a_group_kept_without_threshold_is_impossible_under_its_law"],
    8: ["mechanisms/test_hostile.py::test_optimal_group_selection_of_any_delta_obeys_both_inequalities"],
    9: ["tables/test_price.py::test_private_groups_are_shown_in_the_order_of_their_keys"],
    10: ["sql/test_compile.py::test_an_expression_has_a_value_or_is_null_on_every_row"],
    11: ["golden/test_refused.py::test_what_would_break_ownership_is_refused"],
    12: [
        "test_hostile.py::test_no_row_makes_a_question_fail",
        "engines/test_postgres.py::test_no_value_of_a_column_makes_the_server_fail",
    ],
    13: ["test_ownership.py::test_one_unit_adds_its_own_rows_and_moves_integers_by_no_more_than_claimed"],
    14: ["engines/test_duckdb.py::test_a_unit_in_four_groups_counts_in_exactly_as_many_as_allowed"],
    15: ["ledger/test_sessions.py::test_engine_failures_keep_their_charges_and_lock_after_three"],
    16: ["tables/test_plan.py::test_what_is_not_declared_is_named"],
    17: ["sql/test_compile.py::test_compiled_text_is_the_golden_text"],
    18: ["test_session.py::test_the_ledger_holds_exactly_what_was_asked_for"],
    19: ["golden/test_golden.py::test_without_noise_the_answer_is_the_plain_engine_s"],
    20: [
        "ledger/test_budget.py::test_what_is_no_positive_number_is_refused",
        "mechanisms/test_hostile.py::test_exact_gaussian_calibration_keeps_delta_where_floats_cancel",
        "audit/test_other_audits.py::test_the_classic_gaussian_formula_is_refuted_beyond_epsilon_one",
    ],
    21: [
        "ledger/test_store.py::test_a_tenth_fits_ten_times_exactly",
        "ledger/test_store.py::test_one_ulp_too_much_is_refused_and_costs_nothing",
        "ledger/test_store.py::test_nothing_can_be_given_back_by_a_negative_charge",
        "ledger/test_budget.py::test_what_is_no_positive_number_is_refused",
    ],
    22: [
        "ledger/test_processes.py::test_sixteen_processes_spend_the_last_of_it_exactly",
        "ledger/test_processes.py::test_killed_before_any_statement_the_ledger_is_right",
        "ledger/test_processes.py::test_killed_at_random_moments_no_answer_lacks_its_charge",
        "test_kill.py::test_no_kill_leaves_an_answer_without_its_charge",
        "ledger/test_chain.py::test_a_receipt_finds_a_ledger_that_was_put_back",
        "ledger/test_store.py::test_a_clock_set_back_does_not_reorder_the_history",
        "ledger/test_file.py::test_a_full_disk_charges_nothing_and_breaks_nothing",
        "ledger/test_life.py::test_a_crash_before_the_draw_allows_one_free_retry",
        "ledger/test_file.py::test_a_lock_held_for_too_long_is_said_and_not_stuck",
    ],
    23: ["ledger/test_limits.py::test_n_analysts_at_their_own_limits_do_not_pass_the_joint_one"],
    24: [
        "ledger/test_processes.py::test_a_fork_carries_no_open_file_and_both_sides_go_on",
        "noise/test_workers.py::test_no_worker_of_a_child_shares_a_stream_with_a_sibling_or_the_parent",
        "test_session.py::test_noise_is_fresh_in_every_session_and_every_draw",
        "audit/test_grey_box.py::test_noise_is_fresh_in_every_question",
    ],
    25: ["engines/test_sessions.py::test_spark_runs_no_python_and_hands_over_one_row_per_group"],
    27: ["test_session.py::test_names_with_quotes_and_unicode_are_parsed_never_pasted"],
    28: ["engines/test_duckdb.py::test_groups_match_declared_values_exactly"],
    29: ["test_hostile.py::test_two_people_stay_two", "engines/test_duckdb.py::test_rows_without_a_unit_are_dropped"],
    30: ["tables/test_estimates.py::test_counts_are_whole_and_may_be_negative"],
    31: ["test_session.py::test_the_event_in_the_ledger_is_the_noise_that_was_added"],
    32: ["test_ownership.py::test_one_unit_adds_its_own_rows_and_moves_integers_by_no_more_than_claimed"],
}
"""Pitfall -> tests of the rooms."""


@cache
def names(file: str) -> frozenset[str]:
    """The names of the tests of a file."""
    tree = ast.parse((TESTS / file).read_text())
    return frozenset(n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name.startswith("test_"))


@pytest.mark.parametrize("number", IDS)
def test_each_pitfall_has_a_test_of_its_own(number: int) -> None:
    here = [name for path in Path(__file__).parent.glob("test_*.py") for name in names(f"pitfalls/{path.name}")]
    assert any(re.match(rf"test_p{number:02}_", name) for name in here)


def test_no_test_is_of_a_pitfall_that_there_is_not() -> None:
    here = [name for path in Path(__file__).parent.glob("test_*.py") for name in names(f"pitfalls/{path.name}")]
    assert {int(m[1]) for name in here if (m := re.match(r"test_p(\d+)_", name))} == set(IDS)


@pytest.mark.parametrize("named", sorted({name for names_ in ELSEWHERE.values() for name in names_}))
def test_every_test_that_is_named_is_there(named: str) -> None:
    file, _, name = named.partition("::")
    assert name in names(file)
