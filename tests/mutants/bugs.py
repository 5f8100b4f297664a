"""More than a hundred privacy bugs, one kind each, planted in the source for tests to find.

Twenty more stand in `audit.planted`, where the grey-box audit finds them. A bug is a text of a module that is replaced
by another; where a room is rebuilt, its bugs are planted again here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["BUGS", "Bug"]


@dataclass(frozen=True)
class Bug:
    """`old` occurs once in the module. what: the bug in words.

    found_by: the test that fails.
    """

    module: str
    old: str
    new: str
    what: str
    found_by: str

    def __str__(self) -> str:
        return f"{self.module.removeprefix('hubbub.')}: {self.what}"


_RANKED: Final = (
    "tests/engines/test_ranking_exactly.py::test_what_units_count_with_is_what_a_few_lines_of_python_say[0]"
)


def _of(module: str, *bugs: tuple[str, str, str, str]) -> tuple[Bug, ...]:
    return tuple(Bug(module, *bug) for bug in bugs)


BUGS: Final[tuple[Bug, ...]] = (
    *_of(
        "hubbub.mechanisms.calibration",
        (
            "return Calibrated(DiscreteLaplace(scale),",
            "return Calibrated(DiscreteLaplace(scale / 2),",
            "half the noise",
            "tests/tables/test_price.py::test_a_pure_charge_is_the_loss_of_what_is_run_exactly",
        ),
        (
            "ev.DiscreteLaplace(scale, sensitivity=needed)",
            "ev.DiscreteLaplace(2 * scale, sensitivity=needed)",
            "half the cost is told",
            "tests/tables/test_price.py::test_a_pure_charge_is_the_loss_of_what_is_run_exactly",
        ),
        (
            "DiscreteGaussian.from_variance(scale)",
            "DiscreteGaussian.from_variance(scale / 2)",
            "half the variance of Gaussian noise",
            "tests/tables/test_price.py::test_a_rho_charge_is_that_very_rho",
        ),
        (
            "ev.ZCDP(needed / (2 * scale))",
            "ev.ZCDP(needed / (4 * scale))",
            "half the rho of sums told",
            "tests/tables/test_price.py::test_a_rho_charge_is_that_very_rho",
        ),
        (
            "    if scale < least:",
            "    if scale < 0:",
            "a variance rounded down",
            "tests/mechanisms/test_calibrated.py::test_rounding_may_only_add_noise_and_the_event_follows_the_noise",
        ),
        (
            "needed = l1 if spend.pure else l2_squared",
            "needed = l1 if spend.pure else l1",
            "Gaussian noise by the l1 sensitivity",
            "tests/mechanisms/test_calibrated.py::test_a_release_records_the_sensitivity_it_was_calibrated_to",
        ),
    ),
    *_of(
        "hubbub.tables.price",
        (
            'if plan.neighbours == "add_remove" else 2 * c',
            'if plan.neighbours == "add_remove" else c',
            "selection under replace",
            "tests/pitfalls/test_groups.py::test_p07_a_private_group_of_one_unit_shows_with_probability_delta_at_most",
        ),
        (
            "delta = spend.delta / private if",
            "delta = spend.delta if",
            "each plan spends the whole delta",
            "tests/tables/test_price.py::test_plans_that_find_groups_privately_share_the_delta",
        ),
        (
            "sensitivity=plan.bounds.rows if by_rows else 1,",
            "sensitivity=1,",
            "a unit's rows left out of the choice among undeclared values",
            "tests/tables/test_top_place.py::test_rows_of_one_unit_are_the_sensitivity_of_a_choice[add_remove]",
        ),
        (
            "items=plan.bounds.groups,",
            "items=1,",
            "a unit's groups left out of the delta of undeclared values",
            "tests/tables/test_top_place.py::test_rows_of_one_unit_are_the_sensitivity_of_a_choice[add_remove]",
        ),
    ),
    *_of(
        "hubbub.mechanisms.top_k",
        (
            "most, rate = self.delta / self.k / self.items, self.rate",
            "most, rate = self.delta / self.k, self.rate",
            "a floor for one item where a unit has several",
            "tests/mechanisms/test_top_k.py::test_a_lower_floor_would_not_keep_delta",
        ),
        (
            "steps, unit = integer_steps(np.append(exact[left], self.floor))\n                chosen",
            "steps, unit = integer_steps(np.append(exact[left], 0))\n                chosen",
            "no floor under undeclared values",
            "tests/mechanisms/test_top_k.py::test_draws_follow_the_law",
        ),
    ),
    *_of(
        "hubbub.tables.aggregates.quantile",
        (
            '(1 if reach.neighbours == "add_remove" else 2)\n        inner',
            "1\n        inner",
            "ranks under replace",
            "tests/tables/test_price.py::test_the_worst_pair_of_tables_reaches_a_medians_share_and_no_more[replace]",
        ),
        (
            "each = amount / reach.groups / len(self.shares)",
            "each = amount / len(self.shares)",
            "quantiles of C groups at one's price",
            "tests/tables/test_price.py::test_a_pure_charge_is_the_loss_of_what_is_run_exactly",
        ),
        (
            "epsilon = amount if pure else epsilon_of_rho(8 * amount)",
            "epsilon = amount if pure else epsilon_of_rho(32 * amount)",
            "brackets at twice the epsilon of their rho",
            "tests/tables/test_price.py::test_a_rho_charge_is_that_very_rho",
        ),
        (
            "whole = each * len(inner) / 3",
            "whole = each * len(inner)",
            "the main quantiles take the brackets' share too",
            "tests/tables/test_price.py::test_a_pure_charge_is_the_loss_of_what_is_run_exactly",
        ),
        (
            "epsilon_of_rho(8 * rounds * whole)",
            "epsilon_of_rho(8 * rounds * rounds * whole)",
            "rounds of a quantile tree not shared",
            "tests/tables/test_price.py::test_a_rho_charge_is_that_very_rho",
        ),
        (
            "return one if self.groups == 1 else Repeated(one, self.groups)",
            "return one",
            "one group's cost told for all groups",
            "tests/tables/test_price.py::test_a_pure_charge_is_the_loss_of_what_is_run_exactly",
        ),
        (
            "return ZCDP(self.rho)",
            "return ZCDP(self.rho / 2)",
            "half the rho of ranks told",
            "tests/tables/test_price.py::test_a_rho_charge_is_that_very_rho",
        ),
    ),
    *_of(
        "hubbub.tables.aggregates.mode",
        (
            "each = amount / reach.groups\n",
            "each = amount\n",
            "choices in C groups at one's price",
            "tests/tables/test_choices.py::test_what_is_charged_for_choices_is_what_runs",
        ),
        (
            'one_way = reach.neighbours == "add_remove"',
            "one_way = True",
            "counts taken to move one way under replace",
            "tests/tables/test_choices.py::test_one_unit_moves_the_law_of_a_choice_by_its_share_at_most[pure-1-replace]",
        ),
        (
            "sensitivity=reach.rows, monotone=one_way",
            "sensitivity=1, monotone=one_way",
            "a unit's rows left out of a choice's sensitivity",
            "tests/tables/test_choices.py::test_one_unit_moves_the_law_of_a_choice_by_its_share_at_most[pure-1-add_remove]",
        ),
        (
            "times = self.groups * self.part.places",
            "times = self.part.places",
            "one group's choice told for all groups",
            "tests/tables/test_choices.py::test_what_is_charged_for_choices_is_what_runs",
        ),
    ),
    *_of(
        "hubbub.tables.aggregates.top_k",
        (
            "each = amount / (reach.groups * self.places)",
            "each = amount / reach.groups",
            "k choices at the price of one",
            "tests/tables/test_choices.py::test_what_is_charged_for_choices_is_what_runs",
        ),
        (
            "sensitivity=reach.rows,",
            "sensitivity=1,",
            "a unit's rows left out of peeling's sensitivity",
            "tests/tables/test_choices.py::test_one_unit_moves_the_law_of_a_choice_by_its_share_at_most[pure-2-add_remove]",
        ),
    ),
    *_of(
        "hubbub.tables.measure",
        (
            "rows = 1 if measurement.counting is MeasurementKind.UNITS else bounds.rows",
            "rows = 1",
            "max_rows left out of sensitivity",
            "tests/tables/test_measure.py::test_the_formulas_are_the_brute_force_maxima",
        ),
        (
            "rows * max(-low, high), rows",
            "rows * high, rows",
            "negative ends left out of sensitivity",
            "tests/tables/test_measure.py::test_the_formulas_are_the_brute_force_maxima",
        ),
        (
            "rows * (high - low)",
            "rows * high",
            "the width under replace counts from 0",
            "tests/tables/test_measure.py::test_the_formulas_are_the_brute_force_maxima",
        ),
        (
            'return c * most if neighbours == "add_remove" else',
            "return c * most if True else",
            "replace priced as add/remove (l1)",
            "tests/tables/test_measure.py::test_the_formulas_are_the_brute_force_maxima",
        ),
        (
            "return c, max(0, 2 * c - groups)",
            "return c, c",
            "two units are taken to share all groups",
            "tests/tables/test_measure.py::test_the_formulas_are_the_brute_force_maxima",
        ),
        (
            "return c * most**2",
            "return most**2",
            "C left out of squared l2",
            "tests/tables/test_measure.py::test_the_formulas_are_the_brute_force_maxima",
        ),
        (
            "for k in (shared, c))",
            "for k in (c,))",
            "replace: only the shared case looked at (l2)",
            "tests/tables/test_measure.py::test_the_formulas_are_the_brute_force_maxima",
        ),
        (
            "return bounds.groups, 0",
            "return 1, 0",
            "C left out where groups are private",
            "tests/tables/test_measure.py::test_private_groups_are_as_many_as_needed",
        ),
        (
            "return self.values[0].low, self.values[0].high",
            "return self.values[0].low + 1, self.values[0].high - 1",
            "the ends of a sum's range left out",
            "tests/tables/test_measure.py::test_the_formulas_are_the_brute_force_maxima",
        ),
        (
            "[a * b for a in (x.low, x.high) for b in (y.low, y.high)]",
            "[x.low * y.low, x.high * y.high]",
            "mixed corners of a product left out",
            "tests/tables/test_measure.py::test_no_unit_moves_any_measurement_further_and_some_reach_it",
        ),
    ),
    *_of(
        "hubbub.tables.clipping",
        (
            "return reach * max(p, q)",
            "return reach * min(p, q)",
            "the smaller end of a clipped sum",
            "tests/tables/test_clipping.py::test_no_unit_moves_further_than_claimed_and_some_nearly_do",
        ),
        (
            "p + q if groups == 1 else 2 * max(p, q)",
            "max(p, q)",
            "clipping under replace as under add/remove (l1)",
            "tests/tables/test_clipping.py::test_no_unit_moves_further_than_claimed_and_some_nearly_do",
        ),
        (
            "2 * (p * p + q * q))",
            "(p * p + q * q))",
            "clipping under replace (l2)",
            "tests/tables/test_clipping.py::test_no_unit_moves_further_than_claimed_and_some_nearly_do",
        ),
        (
            "reach = c * rows * rows <<",
            "reach = c * rows <<",
            "rows not squared in a clipped l2",
            "tests/tables/test_clipping.py::test_under_add_remove_the_noise_is_that_of_dropping_groups",
        ),
        (
            "return min((c * rows * times << WEIGHT_BITS) // below",
            "return min((2 * c * rows * times << WEIGHT_BITS) // below",
            "weights twice too large",
            "tests/tables/test_clipping.py::test_no_unit_moves_further_than_claimed_and_some_nearly_do",
        ),
    ),
    *_of(
        "hubbub.tables.plan",
        (
            "one_row = single(relation)",
            "one_row = True",
            "every table is taken to have one row a unit",
            "tests/tables/test_plan.py::test_counts_move_by_groups_times_rows",
        ),
        (
            '"neighbours": self.neighbours,',
            '"neighbours": "",',
            "one key for both neighbour relations",
            "tests/tables/test_plan.py::test_whatever_changes_an_answer_makes_another_question",
        ),
        (
            '"declared": [[name, repr(self.declared[name])] for name in sorted(self.read & self.declared.keys())],',
            '"declared": [],',
            "one key for different declared bounds",
            "tests/tables/test_plan.py::test_whatever_changes_an_answer_makes_another_question",
        ),
        (
            '"auto" if "rows" in self.auto else self.bounds.rows,',
            '"auto",',
            "one key for different bounds",
            "tests/tables/test_plan.py::test_whatever_changes_an_answer_makes_another_question",
        ),
        (
            '"keys": [canonical(k.expression) for k in self.keys],',
            '"keys": [],',
            "one key for different groups",
            "tests/tables/test_plan.py::test_whatever_changes_an_answer_makes_another_question",
        ),
        (
            "return l1(measurement, self.bounds, self.group_count, self.neighbours)",
            "return l1(measurement, self.bounds, 1, self.neighbours)",
            "one group's sensitivity for all",
            "tests/tables/test_price.py::test_target_u1_count_and_mean_at_epsilon_1",
        ),
    ),
    *_of(
        "hubbub.tables.relations",
        (
            "return one and single(left)",
            "return single(left)",
            "a join with a repeated key keeps one row a unit",
            "tests/test_reviewed.py::test_a_key_that_a_cast_makes_less_than_unique_is_no_key",
        ),
        (
            "return single(source) or all(isinstance(e, Column) and e.name in owners for _, e in keys)",
            "return True",
            "groups by more than the unit taken for one row a unit",
            "tests/sql/test_bounding.py::test_a_person_counts_as_one_row_only_where_no_table_could_give_two",
        ),
        (
            '("INTERSECT" | "EXCEPT" | "INTERSECT ALL" | "EXCEPT ALL"), left=left):\n            return',
            "str(), left=left):\n            return",
            "UNION ALL taken for one row a unit",
            "tests/sql/test_bounding.py::test_a_person_counts_as_one_row_only_where_no_table_could_give_two",
        ),
        (
            'single(right) and (how != "full" or on is None)',
            "single(right)",
            "FULL JOIN with a further condition taken for one row",
            "tests/sql/test_bounding.py::test_a_person_counts_as_one_row_only_where_no_table_could_give_two",
        ),
    ),
    *_of(
        "hubbub.tables.growth",
        (
            "return sum(below)",
            "return max(below, default=0)",
            "joined texts taken to be as long as one",
            "tests/sql/test_growth.py::test_eightfold_three_times_is_refused_through_any_sub_queries[distinct]",
        ),
        (
            "if self.longest > LONGEST:",
            "if False:",
            "no bound on the length of texts",
            "tests/sql/test_growth.py::test_eightfold_three_times_is_refused_through_any_sub_queries[distinct]",
        ),
        (
            "        case Filter(source=source):\n            return _passing",
            "        case Distinct(source=source):\n            return {}\n"
            "        case Filter(source=source):\n            return _passing",
            "DISTINCT starts lengths again",
            "tests/sql/test_growth.py::test_eightfold_three_times_is_refused_through_any_sub_queries[distinct]",
        ),
    ),
    *_of(
        "hubbub.sql.emit.plan",
        (
            'return f"least(n, {rows})"',
            'return "n"',
            "rows of a unit not bounded",
            "tests/sql/test_bounding.py::test_rows_and_values_of_a_unit_are_cut_at_its_rows_and_units_count_once",
        ),
        (
            'return f"least(n{i}, {rows})"',
            'return f"n{i}"',
            "values of a unit not bounded",
            "tests/sql/test_bounding.py::test_rows_and_values_of_a_unit_are_cut_at_its_rows_and_units_count_once",
        ),
        (
            'if measurement.argument is None else f"least(n{i}, 1)"\n        case MeasurementKind.ROWS',
            'if measurement.argument is None else f"n{i}"\n        case MeasurementKind.ROWS',
            "a unit counted once a row",
            "tests/sql/test_bounding.py::test_a_unit_counts_once_though_several_of_its_rows_meet_the_condition",
        ),
        (
            "CASE WHEN n{i} > {rows} THEN",
            "CASE WHEN n{i} > {rows + 1} THEN",
            "sums bounded a row too late",
            "tests/sql/test_bounding.py::test_a_sum_beyond_its_rows_is_scaled_toward_zero",
        ),
        (
            "_order_of_groups(plan, dialect), plan.bounds.groups)\n\n\ndef _too",
            "_order_of_groups(plan, dialect), plan.bounds.groups + 1)\n\n\ndef _too",
            "a group too many kept",
            "tests/sql/test_bounding.py::test_groups_found_privately_are_those_that_rows_have_and_of_each_unit_as_many_as_it_may_be_in",
        ),
        (
            "plan.bounds.groups < plan.group_count)",
            "plan.bounds.groups < plan.group_count - 1)",
            "one group too many not ranked",
            "tests/sql/test_bounding.py::test_of_two_groups_one_is_kept",
        ),
        (
            '*([] if plan.question.each_row else ["unit"])',
            '"unit"',
            "each row's number decides its group",
            "tests/test_ownership.py::test_one_row_more_does_not_change_which_groups_other_rows_keep",
        ),
        (
            "WHERE place <= {plan.bounds.groups}",
            "WHERE place <= {plan.bounds.groups + 1}",
            "a group too many for values of single rows",
            "tests/test_ownership.py::test_one_row_more_does_not_change_which_groups_other_rows_keep",
        ),
        (
            "order, plan.bounds.rows)\n        return",
            "order, plan.bounds.rows + 1)\n        return",
            "a distinct value too many",
            "tests/sql/test_bounding.py::test_of_a_unit_s_different_values_as_many_count_as_it_has_rows",
        ),
        (
            'f"({plan.bounds.rows} - {dialect',
            'f"({plan.bounds.rows + 1} - {dialect',
            "a value too many for quantiles",
            "tests/sql/test_bounding.py::test_of_a_unit_s_values_as_many_are_listed_as_it_has_rows",
        ),
        (
            "least(n, {left}) AS n",
            "n",
            "equal values not bounded in quantiles",
            "tests/sql/test_bounding.py::test_of_a_unit_s_values_as_many_are_listed_as_it_has_rows",
        ),
        (
            'f"unit, {tight}", "unit", order, plan.bounds.groups)',
            'f"unit, {tight}", "unit", order, plan.bounds.groups + 1)',
            "a group too many for values",
            "tests/sql/test_bounding.py::test_of_three_groups_a_unit_keeps_as_many_as_it_may_in_every_measurement",
        ),
        (
            "if value.nullable else str((floor + ceiling) // 2 - centre)",
            "if value.nullable else str(3 * ceiling)",
            "NULL counts as more than the ceiling",
            "tests/sql/test_bounding.py::test_a_value_is_within_its_ends_exactly",
        ),
        (
            "ON {dialect.meets(f'owned.k{i}', f'd{i}', kind, None in domain)}",
            "ON TRUE",
            "each row counts in every group",
            "tests/sql/test_bounding.py::test_where_each_row_is_a_unit_it_is_one_row_of_one_group",
        ),
    ),
    *_of(
        "hubbub.sql.emit.clipping",
        (
            'return f"least({2**WEIGHT_BITS}, {quotient})"',
            "return quotient",
            "weights above one",
            "tests/tables/test_clipping.py::test_the_engine_weighs_as_the_definition_says[1-1-l1]",
        ),
        (
            "OVER (PARTITION BY unit) AS z{i}",
            "OVER (PARTITION BY unit, n) AS z{i}",
            "norms of parts of a unit",
            "tests/tables/test_clipping.py::test_the_engine_weighs_as_the_definition_says[1-1-l1]",
        ),
        (
            "{d - 1})",
            "0)",
            "sizes rounded down",
            "tests/tables/test_clipping.py::test_the_engine_weighs_as_the_definition_says[1-1-l1]",
        ),
    ),
    *_of(
        "hubbub.engines.duckdb.dialect",
        (
            "WHEN {x} <= {floor} THEN {floor - centre} ",
            "WHEN {x} <= {floor - 50} THEN {floor - centre} ",
            "clamped fifty steps below the floor",
            "tests/sql/test_bounding.py::test_a_value_is_within_its_ends_exactly",
        ),
        (
            "OVER (PARTITION BY {partition} ",
            "OVER (PARTITION BY 1 ",
            "other units decide which groups a unit keeps",
            "tests/sql/test_bounding.py::test_of_three_groups_a_unit_keeps_as_many_as_it_may_in_every_measurement",
        ),
        (
            'return f"{a} IS NOT DISTINCT FROM {b}"',
            'return f"{a} = {b}"',
            "NULL groups lost between two stages",
            "tests/sql/test_bounding.py::test_each_declared_group_is_a_place_and_nothing_else_is",
        ),
        (
            'word = "NOT EXISTS" if negated else "EXISTS"',
            'word = "EXISTS" if negated else "NOT EXISTS"',
            "a semi join keeps the others",
            "tests/sql/test_bounding.py::test_a_person_counts_as_one_row_only_where_no_table_could_give_two",
        ),
        (
            "THEN NULL ELSE {self.double(sql)} + 0.0 END",
            "THEN NULL ELSE {self.double(sql)} END",
            "-0.0 and 0.0 are told apart by their order",
            "tests/sql/test_bounding.py::test_zero_and_minus_zero_are_one_person_whichever_row_comes_first",
        ),
    ),
    *_of(
        "hubbub.sql.emit.dialect",
        (
            'return f"(CASE WHEN {size} > {CUT} THEN',
            'return sql\n        return f"(CASE WHEN {size} > {CUT} THEN',
            "columns of texts not cut",
            "tests/sql/test_growth.py::test_a_column_is_cut_to_its_first_characters",
        ),
    ),
    *_of(
        "hubbub.sql.emit.relation",
        (
            "f\"  SELECT {columns}\\n  FROM {below[-1][0]}\\n  GROUP BY {', '.join(['unit', *groups])}\"",
            "f\"  SELECT {columns.replace('unit', 'min(unit) AS unit', 1)}\\n  FROM {below[-1][0]}\\n  GROUP BY {', '.join([*groups, 'TRUE'])}\"",  # noqa: E501
            "groups by everything but the unit",
            "tests/sql/test_bounding.py::test_an_aggregate_of_one_person_sees_that_person_s_rows_alone",
        ),
        (
            '"coalesce(a.unit, b.unit) AS unit" if join.how == "full"',
            '"b.unit AS unit" if join.how == "full"',
            "rows of a FULL JOIN lose their owner",
            "tests/sql/test_bounding.py::test_both_sides_of_a_full_join_are_their_owners",
        ),
        (
            "coalesce({self.sql(condition)}, FALSE)",
            "coalesce({self.sql(condition)}, TRUE)",
            "unknown conditions keep rows",
            "tests/sql/test_bounding.py::test_what_is_not_known_to_be_true_is_no_row",
        ),
        (
            'body += f"\\n  WHERE {unit} IS NOT NULL"',
            'body += ""',
            "rows without an owner kept",
            "tests/engines/test_duckdb.py::test_rows_without_a_unit_are_dropped",
        ),
        (
            "*(ties if by_place else [])",
            "",
            "rows that ORDER BY leaves equal are in the order of the scan",
            "tests/sql/test_bounding.py::test_what_an_order_leaves_equal_is_decided_by_the_rows_and_not_by_their_places",
        ),
        (
            "sum(_by_place(call) for _, call in read) > 1",
            "sum(_by_place(call) for _, call in read) > 99",
            "two windows of one stage put tied rows in orders of their own",
            "tests/engines/test_tied_windows.py::test_two_windows_say_of_each_person_what_they_say_of_another_with_the_same_rows",
        ),
        (
            'return f"count(DISTINCT {x})"',
            'return f"count({x})"',
            "COUNT(DISTINCT) of a unit's rows counts rows",
            "tests/sql/test_bounding.py::test_an_aggregate_of_one_person_sees_that_person_s_rows_alone",
        ),
    ),
    *_of(
        "hubbub.engines.fields",
        (
            'return name, text if base == "UUID" else self.dialect.unit_text(text)\n        if declared',
            'return name, f"lower({text})"\n        if declared',
            "units that differ in case are one",
            "tests/engines/test_duckdb.py::test_text_ids_differ_by_case_and_spaces",
        ),
        (
            "return Kind.DATE, _in_range(sql, Kind.DATE, dialect)",
            "return Kind.DATE, sql",
            "infinite dates are dates",
            "tests/engines/test_duckdb.py::test_a_stored_time_outside_the_years_1_to_9999_is_null[DATE]",
        ),
        (
            "return name, self.dialect.unit(sql, base)",
            "return name, self.dialect.double(sql)",
            "units as rounded numbers",
            "tests/test_hostile.py::test_two_people_stay_two",
        ),
    ),
    *_of(
        "hubbub.mechanisms.groups",
        (
            "threshold = _laplace_threshold(noise.scale, declared / most)",
            "threshold = _laplace_threshold(noise.scale, declared)",
            "C groups at one group's delta (Laplace)",
            "tests/mechanisms/test_privacy.py::test_several_groups_of_a_unit_share_epsilon_and_delta",
        ),
        (
            "threshold = _gaussian_threshold(noise.sigma2, declared / most)",
            "threshold = _gaussian_threshold(noise.sigma2, declared)",
            "C groups at one group's delta (Gaussian)",
            "tests/mechanisms/test_theorems.py::test_group_threshold_is_the_least_that_keeps_delta",
        ),
        (
            "calibrated(spend=spend, l1=most, l2_squared=most)",
            "calibrated(spend=spend, l1=1, l2_squared=1)",
            "C groups at one group's noise",
            "tests/mechanisms/test_privacy.py::test_several_groups_of_a_unit_share_epsilon_and_delta",
        ),
        (
            "np.flatnonzero((exact > 0) & (noisy >= self.threshold))",
            "np.flatnonzero(noisy >= self.threshold)",
            "groups that nobody is in may show",
            "tests/mechanisms/test_sampling.py::test_group_selection_draws_from_its_law",
        ),
        (
            "ev.Threshold(1 / self.noise.scale, self.delta / self.groups, self.groups)",
            "ev.Threshold(1 / self.noise.scale, self.delta / self.groups, 1)",
            "one group's cost told for C",
            "tests/mechanisms/test_privacy.py::test_several_groups_of_a_unit_share_epsilon_and_delta",
        ),
    ),
    *_of(
        "hubbub.tables.draw_release",
        (
            "sensitivity=part.l1 if laplace else part.l2_squared",
            "sensitivity=1",
            "the auditor is told a sensitivity of one",
            "tests/tables/test_price.py::test_every_part_is_drawn_once_with_its_claimed_sensitivity",
        ),
        (
            "order = sorted(range(present.size), key=lambda i: _order(exact.groups[i]))",
            "order = list(range(present.size))",
            "groups shown in the order of the engine",
            "tests/tables/test_price.py::test_private_groups_are_shown_in_the_order_of_their_keys",
        ),
    ),
    *_of(
        "hubbub.accounting.filters",
        (
            'total.delta == 0 and total.epsilon <= self.epsilon\n\n    def _shown(self, charge: Cost) -> str:\n        return "no finite',  # noqa: E501
            'total.epsilon <= 2 * self.epsilon\n\n    def _shown(self, charge: Cost) -> str:\n        return "no finite',  # noqa: E501
            "twice the budget",
            "tests/accounting/test_budget.py::test_ten_tenths_fill_a_budget_of_one_exactly",
        ),
        (
            "return total.rho <= self.rho and total.delta <= self.delta_threshold",
            "return total.rho <= self.rho",
            "delta is not counted",
            "tests/accounting/test_budget.py::test_thresholds_use_their_own_share_of_delta",
        ),
        (
            "            return True\n        return total.rho <= self.rho",
            "            return True\n        return total.rho <= 2 * self.rho",
            "twice the rho",
            "tests/accounting/test_budget.py::test_one_question_at_the_whole_epsilon_fits_once_and_small_ones_far_more_often",
        ),
    ),
    *_of(
        "hubbub.ledger.charging",
        (
            "if not all(filled.holds(held) for filled in standing.filters):",
            "if not any(filled.holds(held) for filled in standing.filters):",
            "one filter that admits is enough",
            "tests/ledger/test_limits.py::test_a_pure_plan_under_delta_holds_its_questions_to_its_epsilon_and_to_its_rho",
        ),
        (
            "books.post(space, account, total)",
            "pass",
            "one's own charges are forgotten until another writes",
            "tests/ledger/test_limits.py::test_an_analyst_stays_within_a_grant_and_the_sum_within_the_ceiling",
        ),
        (
            "return (EVERYONE, *table_accounts(dataset), *readers(kind, analyst, details))",
            "return (*table_accounts(dataset), *readers(kind, analyst, details))",
            "the joint budget is not charged",
            "tests/ledger/test_limits.py::test_an_analyst_stays_within_a_grant_and_the_sum_within_the_ceiling",
        ),
        (
            "return (EVERYONE, *table_accounts(dataset), *readers(kind, analyst, details))",
            "return (EVERYONE, *readers(kind, analyst, details))",
            "a table's limit is not charged",
            "tests/ledger/test_limits.py::test_a_table_has_a_limit_of_its_own",
        ),
        (
            "return (EVERYONE, *table_accounts(dataset), *readers(kind, analyst, details))",
            "return (EVERYONE, *table_accounts(dataset))",
            "an analyst's limit is not charged",
            "tests/ledger/test_limits.py::test_an_analyst_stays_within_a_grant_and_the_sum_within_the_ceiling",
        ),
        (
            "            return readers(kind, analyst, details)",
            "            return ()",
            "reading another's answer counts for nobody",
            "tests/ledger/test_limits.py::test_reading_anothers_answer_is_free_for_all_and_charged_once_to_the_reader",
        ),
        (
            "return (block_account(str(block)), *table_accounts(dataset))",
            "return table_accounts(dataset)",
            "a block pays without end",
            "tests/ledger/test_limits.py::test_a_block_holds_its_part_and_gives_back_the_rest",
        ),
        (
            "if known is not None and known != neighbours:",
            "if False:",
            "two neighbour relations in one sum",
            "tests/ledger/test_claims.py::test_the_first_charge_settles_the_neighbour_relation[sqlite]",
        ),
        (
            "if read_amount(epsilon) < request.charge.epsilon or state",
            "if state",
            "an answer of less epsilon taken for one of more",
            "tests/ledger/test_claims.py::test_two_that_ask_the_same_at_once_pay_once[sqlite]",
        ),
    ),
    *_of(
        "hubbub.ledger.accounts",
        (
            "_held(self.epsilon + other.epsilon) if other.epsilon else self.epsilon,",
            "max(self.epsilon, other.epsilon),",
            "charges do not add up",
            "tests/ledger/test_limits.py::test_an_analyst_stays_within_a_grant_and_the_sum_within_the_ceiling",
        ),
        (
            "_held(self.delta + other.delta) if other.delta else self.delta,",
            "max(self.delta, other.delta),",
            "deltas do not add up",
            "tests/ledger/test_limits.py::test_gaussian_costs_and_thresholds_are_added_exactly",
        ),
        (
            "return cls(cost.epsilon or Fraction(0), cost.rho, cost.delta, int(cost.epsilon is None))",
            "return cls(cost.epsilon or Fraction(0), cost.rho, cost.delta, 0)",
            "what has no pure epsilon counts as 0",
            "tests/ledger/test_limits.py::test_gaussian_costs_and_thresholds_are_added_exactly",
        ),
    ),
    *_of(
        "hubbub.synthesis.measurements",
        (
            "return self.rows_per_unit**2 * (1 if",
            "return self.rows_per_unit * (1 if",
            "rows not squared in a marginal's l2",
            "tests/synthesis/test_selection.py::test_sensitivities_are_those_of_brute_force_and_are_reached[2-add_remove]",
        ),
        (
            'return self.rows_per_unit * (1 if self.neighbours == "add_remove" else 2)\n\n    @property\n    def loss',
            "return self.rows_per_unit\n\n    @property\n    def loss",
            "scores under replace",
            "tests/synthesis/test_selection.py::test_sensitivities_are_those_of_brute_force_and_are_reached[1-replace]",
        ),
        (
            "self.events.extend(noise.event for noise in noises)",
            "self.events.extend(noise.event for noise in noises[:1])",
            "one marginal's cost told for all",
            "tests/synthesis/test_selection.py::test_a_budget_is_split_by_cells_and_never_exceeded",
        ),
        (
            "sensitivity=self.score_sensitivity * max(factors))",
            "sensitivity=self.score_sensitivity)",
            "weights left out of a choice's sensitivity",
            "tests/synthesis/test_selection.py::test_a_choice_is_as_private_as_its_event_says[weights1-1-add_remove]",
        ),
    ),
    *_of(
        "hubbub.session.prepare",
        (
            "parts = [version, self.amount.noise,",
            "parts = [self.amount.noise,",
            "an answer about older rows given for newer ones",
            "tests/ledger/test_sessions.py::test_a_refresh_asks_anew_and_gives_nothing_back",
        ),
    ),
    *_of(
        "hubbub.mechanisms.place_search",
        (
            "moved = 2 if self.replace else 1",
            "moved = 1",
            "the histogram of a search under replace at the price of add/remove",
            "tests/mechanisms/test_place_search.py::"
            "test_under_replace_a_unit_moves_two_counts_and_the_noise_is_twice_as_wide",
        ),
        (
            "        few, one, two = self.thresholds\n        last",
            "        few, one, two = -(10**9), 0, 0\n        last",
            "a search that any noise carries on",
            "tests/mechanisms/test_place_search.py::test_draws_follow_the_law",
        ),
    ),
    *_of(
        "hubbub.session.finding",
        (
            "return self.spend.part(1 - share) if self.due else self.spend",
            "return self.spend",
            "the search for nothing, beside an answer at the whole amount",
            "tests/test_found_bounds.py::test_the_answer_says_what_was_found_and_is_charged_once",
        ),
        (
            'return {**entry, "bound": bound, "place": place, "beyond": search.beyond(entry["noisy"], place)}',
            'return {**entry, "bound": bound, "place": place}',
            "half a bound, and how many exceed the whole one",
            "tests/test_found_bounds.py::test_how_many_exceed_a_bound_is_said_of_the_bound_that_is_used[add_remove]",
        ),
    ),
    *_of(
        "hubbub.session.bounds",
        (
            "outer, inner = search.found(side), search.found(side[::-1])",
            "outer, inner = (max((i for i, n in enumerate(s) if n > 11.6 * search.unit), default=None)"
            " for s in (side, side[::-1]))",
            "one draw of noise at 2^60 is taken for a value",
            "tests/test_suggested_bounds.py::test_the_bounds_are_the_ends_of_the_walks[rows1-8-16]",
        ),
    ),
    *_of(
        "hubbub.session.run",
        (
            "if outcome.used is not None and not _is_enough(outcome.used, outcome.payload, order):",
            "if False:",
            "a runner is believed what its answer cost",
            "tests/service/test_found_in_service.py::test_a_runner_does_not_say_that_an_answer_cost_less_than_it_does",
        ),
        (
            'drawn = event.children[:1] if "nothing" in contents else (event.children[0], event.children[-1])',
            "drawn = event.children[:1]",
            "an answer with a bound is believed to cost its search alone",
            "tests/service/test_found_in_service.py::test_a_runner_does_not_say_that_an_answer_cost_less_than_it_does",
        ),
        (
            'return used.rho == ratio(contents["used"]) == cost_of_steps(cost_of(event).rho, contents)',
            'return used.rho == ratio(contents["used"])',
            "a runner says what the steps of its answer cost",
            "tests/service/test_found_in_service.py::test_a_share_of_the_answer_costs_what_its_steps_say_and_they_are_such_steps",
        ),
    ),
    *_of(
        "hubbub.session.looks",
        (
            "if any(min(each) <= 0 or sum(each) > 1 for each in shares):",
            "if False:",
            "the parts of a step share more than it cost",
            "tests/service/test_found_in_service.py::test_a_share_of_the_answer_costs_what_its_steps_say_and_they_are_such_steps",
        ),
        (
            "first = self.spend.amount / 2 ** (steps - 1)",
            "first = self.spend.amount / 2 ** (steps - 2)",
            "steps that cost twice what was reserved",
            "tests/test_looks.py::test_groups_below_the_floor_need_not_be_exact",
        ),
    ),
    *_of(
        "hubbub.sql.emit.plan",
        (
            'return f"CASE WHEN s{i} > {measurement.cap} THEN {measurement.cap} ELSE s{i} END"',
            'return f"s{i}"',
            "a unit's sum beyond the bound that was found",
            "tests/test_found_bounds.py::test_a_sum_is_clipped_by_unit_and_group_whatever_its_rows",
        ),
    ),
    *_of(
        "hubbub.engines.duckdb.ranking",
        (
            "self.keep = numbers - first < plan.bounds.groups",
            "self.keep = numbers - first <= plan.bounds.groups",
            "ranked in process: a group too many of each unit",
            _RANKED,
        ),
        (
            "1 if measurement.counting is MeasurementKind.UNITS else rows)",
            "rows)",
            "ranked in process: a unit counted once a row",
            _RANKED,
        ),
        (
            "over = np.flatnonzero(count > rows)",
            "over = np.flatnonzero(count > rows + 1)",
            "ranked in process: sums bounded a row too late",
            _RANKED,
        ),
        (
            "return np.minimum(total, measurement.cap)",
            "return total",
            "ranked in process: a unit's sum beyond the bound that was found",
            _RANKED,
        ),
        (
            "kept = numbers - first < self._limit",
            "kept = numbers - first <= self._limit",
            "ranked in process: a value too many of each pair",
            _RANKED,
        ),
        (
            "two_units = same_unit & (ordered[1:] != ordered[:-1])",
            "two_units = same_unit & False",
            "ranked in process: units that share bits are not put in order",
            "tests/engines/test_ranking.py::test_units_and_groups_that_share_their_bits_are_put_in_order[True-0]",
        ),
        (
            "new_unit = _new(unit)",
            "new_unit = _new(unit // 4)",
            "ranked in process: neighbours are one unit",
            _RANKED,
        ),
        (
            "hashed = columns.pop(0) if",
            "hashed = columns.pop(0) ^ np.uint64(len(unit) % 2) << np.uint64(63) if",
            "ranked in process: the number of others' rows decides which groups count",
            _RANKED,
        ),
        (
            "            whole >>= measurement.shift\n",
            "",
            "ranked in process: products finer than they are priced",
            _RANKED,
        ),
    ),
    *_of(
        "hubbub.engines.duckdb.pieces",
        (
            "np.fmax(np.fmin(numbers, float(value.ceiling)), float(value.floor))",
            "np.fmin(numbers, float(value.ceiling))",
            "ranked in process: values below the floor are summed as they are",
            _RANKED,
        ),
        (
            "0 if value.nullable else (value.floor + value.ceiling) // 2 - value.centre",
            "2**20",
            "ranked in process: a NULL counts as more than the ceiling",
            _RANKED,
        ),
        (
            "part = (mixed(names) >> np.uint64(64 - PART_BITS)).astype(np.uint8)",
            "part = (np.arange(len(names)) % (1 << PART_BITS)).astype(np.uint8)",
            "ranked in process: a unit in several parts is bounded in each",
            "tests/engines/test_ranking_exactly.py::test_units_are_cut_into_parts_by_themselves_alone",
        ),
        (
            "names = pa.concat_arrays(unit)",
            "names = pa.array([str(name)[:200] for name in pa.concat_arrays(unit).to_pylist()])",
            "ranked in process: long names that begin alike are one unit",
            "tests/engines/test_ranking.py::test_texts_are_one_unit_only_where_all_of_their_bytes_are[True]",
        ),
    ),
    *_of(
        "hubbub.sql.emit.ranked",
        (
            "all(max(value.floor, -128) <= n <= min(value.ceiling, 127) for n in numbers)",
            "all(-128 <= n <= 127 for n in numbers)",
            "values of a CASE taken to be within the declared range",
            "tests/engines/test_ranking_exactly.py::test_what_is_never_null_and_what_is_a_few_whole_numbers",
        ),
    ),
    *_of(
        "hubbub.session.remembered",
        (
            "json.dumps([sql, options.to_wire(), dict(more)], sort_keys=True)",
            "json.dumps([sql, dict(more)], sort_keys=True)",
            "a question at the price of the same text at less epsilon",
            "tests/test_remembered.py::test_a_key_tells_apart_whatever_is_asked",
        ),
        (
            "if budget(asked.space) != held:",
            "if False:",
            "a question at the price that it had under another budget",
            "tests/test_remembered.py::test_with_another_budget_it_is_worked_out_anew",
        ),
        (
            "own = self._of.get(analyst)\n",
            "own = next(iter(self._of.values()), None)\n",
            "the time of a check tells what another one asked",
            "tests/test_remembered.py::test_a_statement_is_found_by_its_own_analyst_and_key_alone",
        ),
        (
            "if asked.dated or asked.statement.public",
            "if asked.statement.public",
            "yesterday's now() is answered today",
            "tests/test_remembered.py::test_what_follows_from_more_than_the_text_is_not_kept[{'dated': True}]",
        ),
    ),
    *_of(
        "hubbub.session.refine",
        (
            "Linear(first.quantities[quantity].values, linear.terms)",
            "Linear(linear.values, linear.terms)",
            "a free check of refining is told with other values than those released",
            "tests/tables/test_refine.py::test_counts_of_one_law_have_one_half_width",
        ),
    ),
    *_of(
        "hubbub.ledger.schedule",
        (
            "return min(now.wall, self.at.wall + now.running - self.at.running)",
            "return now.wall",
            "a clock that is set forward lets answers out early",
            "tests/service/test_schedule.py::test_a_clock_set_forward_releases_nothing_early_and_one_set_back_neither",
        ),
        (
            "starts[lane], ends, -(-ends // tick) * tick)",
            "starts[lane], ends, ends // tick * tick)",
            "an answer leaves before its run must have ended",
            "tests/service/test_schedule.py::test_nothing_ends_after_its_release_in_four_thousand_random_schedules",
        ),
    ),
    *_of(
        "hubbub.ledger.timetable",
        (
            'state == "drawing" and one.slot.time(at) < one.slot.ends:',
            'state == "drawing":',
            "a result that came too late is told: time tells how long a run took",
            "tests/service/test_timetable.py::test_a_result_counts_only_while_its_window_is_open_and_once",
        ),
        (
            "asked, slot = _reading(asked, paid), _not_before(slot, target.slot)",
            "asked = _reading(asked, paid)",
            "who joins a question is told before it",
            "tests/service/test_timetable.py::test_who_joins_at_a_shorter_answer_time_is_told_when_there_is_an_answer",
        ),
        (
            "if entry is not None and one.capped and used.is_within(entry.spend):",
            "if entry is not None and one.capped:",
            "a run says that it used more than was charged",
            "tests/service/test_found_in_service.py::test_what_a_runner_says_it_used_is_never_more_than_was_charged",
        ),
        (
            "if one.capped or not is_run:",
            "if (one.capped and used is not None) or not is_run:",
            "a link where something comes back alone: the chain tells what was used",
            "tests/service/test_found_in_service.py::test_a_release_adds_as_many_links_whatever_happened[failure]",
        ),
        (
            "for entry in paying(writer.connection, one):",
            "for entry in paying(writer.connection, one)[:1]:",
            "who shares the fate of a question pays what it could have cost",
            "tests/service/test_found_in_service.py::test_who_joins_pays_what_was_used_and_no_more",
        ),
        (
            'kept = used if used is not None and (state == "stored" or not is_run) else entry.spend',
            "kept = used if used is not None else Total()",
            "a failure gives back what was reserved, and so is asked again for nothing",
            "tests/service/test_found_in_service.py::test_a_failure_gives_nothing_back",
        ),
        (
            'if state == "waiting" and changed(one)}',
            "if False}",
            "a question that waits while a public file is edited fails, and locks whoever asked",
            "tests/service/test_edited.py::test_what_waits_while_a_public_file_is_edited_is_not_run",
        ),
        (
            '_draw(writer, one, "changed" if one.serial in others else "drawing")',
            '_draw(writer, one, "drawing")',
            "what was not run counts as a failure",
            "tests/service/test_edited.py::test_what_waits_while_a_public_file_is_edited_is_not_run",
        ),
        (
            '_stage(writer.connection, one.serial, "part", json.dumps([used.written, text]))',
            "return_unused(writer, one.id, used, self._handle.budget(writer.connection, one.space), "
            "self._handle.rules)",
            "what was not used comes back when a run ends",
            "tests/service/test_found_in_service.py::test_nothing_of_their_runs_is_told_before_the_release[20-answer]",
        ),
        (
            '"failure" if text is None else "answer", text)\n                        break',
            '"failure" if text is None else "answer", text)\n'
            "                        self._tell(writer, one, text, used)\n"
            "                        break",
            "an answer is told as soon as it is there",
            "tests/service/test_timetable.py::test_an_answer_is_told_at_its_release_and_not_before",
        ),
    ),
    *_of(
        "hubbub.ledger.readings",
        (
            'return (*own, *((token_account(told["token"]),) if "token" in told else ()))',
            "return own",
            "a token's cap is not charged",
            "tests/service/test_caps.py::test_a_question_is_charged_to_the_token_in_the_same_charge",
        ),
        (
            "told |= {} if paid else",
            "told |= {} if known else",
            "an answer that was asked without a token is read through it for nothing",
            "tests/service/test_caps.py::test_an_answer_that_was_asked_without_the_token_is_read_at_its_cap_once",
        ),
    ),
    *_of(
        "hubbub.ledger.books",
        (
            "if allowance is None and is_token(account):",
            "if False:",
            "a cap that the ledger does not know holds everything",
            "tests/service/test_caps.py::test_a_cap_that_the_ledger_does_not_know_holds_nothing",
        ),
    ),
    *_of(
        "hubbub.session.statement",
        (
            "    check_drawn_by(partial(key_of, asked), stored)\n",
            "",
            "a stored draw is read by another policy's groups",
            "tests/service/test_edited.py::test_no_reading_of_a_stored_draw_forgets_that",
        ),
    ),
    *_of(
        "hubbub.service.sent",
        (
            "if token is not None and token.most is not None and epsilon > token.most:\n        less =",
            "if False:\n        less =",
            "a token's greatest epsilon of a question is not looked at",
            "tests/service/test_caps.py::test_the_greatest_epsilon_of_a_question",
        ),
    ),
    *_of(
        "hubbub.service.gate",
        (
            "if act.needs != KNOWN and not person.may(act.needs):",
            "if False:",
            "an analyst grants himself budget",
            "tests/service/test_gate.py::test_who_may_not_is_refused_before_his_fields_are_looked_at",
        ),
        (
            "if act.confirmed:",
            "if False:",
            "a ceiling is raised without the passphrase",
            "tests/service/test_gate.py::test_what_is_confirmed_is_done_with_the_right_passphrase_and_without_it",
        ),
        (
            'limits = {"token": person.token} if act.limited else {}',
            "limits = {}",
            "a token's limits do not go with what is asked",
            "tests/service/test_gate.py::test_an_act_is_done_in_its_room_for_whoever_proved_to_be_him",
        ),
    ),
    *_of(
        "hubbub.ledger.closing",
        (
            'writer.append("allowance", space, account, None, None, author, reason)',
            "pass",
            "an older copy of a ledger gives its budget once more",
            "tests/ledger/test_closing.py::test_nothing_that_an_older_ledger_takes_for_open_is_given_again[sqlite]",
        ),
        (
            "    _close_blocks(writer)\n",
            "",
            "an older copy of a ledger gives its blocks once more",
            "tests/ledger/test_closing.py::test_nothing_that_an_older_ledger_takes_for_open_is_given_again[sqlite]",
        ),
        (
            "    _close_questions(writer)\n\n\n",
            "\n\n",
            "an older copy of a ledger draws what was drawn since",
            "tests/ledger/test_closing.py::test_nothing_that_an_older_ledger_takes_for_open_is_given_again[sqlite]",
        ),
    ),
    *_of(
        "hubbub.ledger.keys",
        (
            'f"hubbub rekey {nonce} {number}"',
            'f"hubbub rekey {nonce}"',
            "one pad for every block of a key",
            "tests/ledger/test_epochs.py::test_no_two_blocks_of_a_pad_are_the_same",
        ),
    ),
    *_of(
        "hubbub.ledger.accounts",
        (
            "return Fraction(-((-amount.numerator * _GRID) // amount.denominator), _GRID)",
            "return Fraction(amount.numerator * _GRID // amount.denominator, _GRID)",
            "long sums are rounded in the spender's favour",
            "tests/ledger/test_amounts.py::test_a_long_sum_is_rounded_up_and_by_less_than_a_grid_step[rho]",
        ),
        (
            "epsilon = self.epsilon if held.impure else min(self.epsilon, held.epsilon)",
            "epsilon = min(self.epsilon, held.epsilon)",
            "a plan without a pure epsilon bounds the epsilon of its questions by 0",
            "tests/ledger/test_amounts.py::test_what_was_used_of_a_plan_costs_no_more_than_its_parts_nor_than_the_whole",
        ),
    ),
    *_of(
        "hubbub.learning.logistic",
        (
            "residual = 1 if len(problem.target.values) == 2 else 2",
            "residual = 1",
            "the softmax has the residual of two classes",
            "tests/learning/test_logistic.py::"
            "test_the_sensitivity_of_a_step_is_what_one_row_moves_it_by_at_the_worst_weights[3]",
        ),
        (
            "return problem.moved(residual * SCALE**2 * turned(problem.design, fine=fine).norm2)",
            "return problem.moved(residual * SCALE**2)",
            "the length of a row left out of a gradient's sensitivity",
            "tests/learning/test_logistic.py::"
            "test_one_unit_moves_every_sum_by_what_is_charged_at_most[add_remove-1-None-ill]",
        ),
        (
            "squared=descent_squared(problem, fine=plan.fine),",
            "squared=descent_squared(problem),",
            "rows in fine coordinates at the length of those in coarse ones",
            "tests/learning/test_bases.py::test_a_step_is_charged_for_the_coordinates_that_it_is_made_in[ill-20000]",
        ),
    ),
    *_of(
        "hubbub.learning.exact",
        (
            "(design.norm2**2 + fourth) // 2)",
            "design.norm2**2 // 2)",
            "the squares of single features left out of the triangle's sensitivity",
            "tests/learning/test_triangle.py::test_the_longest_triangle_is_the_one_that_is_charged[False-values]",
        ),
    ),
    *_of(
        "hubbub.learning.descent",
        (
            "        noise = noise_of(rho * part, squared)\n        yield",
            "        noise = noise_of(rho, squared)\n        yield",
            "every step of descent at the price of all",
            "tests/learning/test_logistic.py::test_it_costs_what_was_asked_exactly",
        ),
    ),
    *_of(
        "hubbub.learning.cells",
        (
            "moved = problem.moved(len(_in_cells(problem.design)), acute=True)",
            "moved = problem.moved(1, acute=True)",
            "a histogram of several columns at the price of one",
            "tests/learning/test_cells.py::"
            "test_one_unit_moves_the_histogram_by_what_is_charged_at_most[1-add_remove-None]",
        ),
    ),
    *_of(
        "hubbub.learning.pairs",
        (
            "moved = problem.moved(pairs * _residual_squared(problem) * reach**2)",
            "moved = problem.moved(_residual_squared(problem) * reach**2)",
            "tables of every pair of columns at the price of one",
            "tests/learning/test_sought_pairs.py::"
            "test_the_sensitivity_of_the_tables_is_what_one_row_moves_them_by_at_the_worst_weights[2]",
        ),
    ),
    *_of(
        "hubbub.learning.model",
        (
            "return self.rows_per_unit * self.heaviest * (1 if self",
            "return self.heaviest * (1 if self",
            "a fit counts one row of each unit",
            "tests/learning/test_logistic.py::"
            "test_one_unit_moves_every_sum_by_what_is_charged_at_most[add_remove-3-None-ill]",
        ),
        (
            "return 1 if self.weight is None else HEAVIEST",
            "return 1",
            "a fit takes every weight for 1",
            "tests/learning/test_logistic.py::"
            "test_one_unit_moves_every_sum_by_what_is_charged_at_most[add_remove-1-w-ill]",
        ),
    ),
    *_of(
        "hubbub.learning.bayes",
        (
            "counts = len(problem.design.columns) + 1\n",
            "counts = 1\n",
            "counts of every column at the price of one",
            "tests/learning/test_models.py::test_one_unit_moves_every_sum_by_what_is_charged_at_most"
            "[1-add_remove-None-categorical]",
        ),
    ),
    *_of(
        "hubbub.learning.components",
        (
            "problem.moved(triangle_squared(turned(problem.design)), acute=True)",
            "problem.moved(turned(problem.design).norm2)",
            "products of features at the price of features",
            "tests/learning/test_models.py::test_one_unit_moves_every_sum_by_what_is_charged_at_most"
            "[1-add_remove-None-components]",
        ),
    ),
    *_of(
        "hubbub.learning.evaluation",
        (
            "for rows in _of_each_type(self.problem) if fits else ():",
            "for rows in ():",
            "a written model fails on a row, and not where there is none",
            "tests/learning/test_session_fit.py::"
            "test_a_written_model_fails_before_any_row_or_not_at_all[LogisticRegression]",
        ),
    ),
    *_of(
        "hubbub.engines.duckdb.kept",
        (
            "                    if patiently is None:\n                        raise\n",
            "                    raise\n",
            "one person's text decides whether a copy is written",
            "tests/service/test_rows_kept.py::test_a_value_that_no_reader_takes_changes_no_other_and_stops_no_copy",
        ),
        (
            "        if usable(kind, DUCKDB) and not",
            "        if kind and not",
            "a column that no question can use stops a copy",
            "tests/service/test_rows_kept.py::test_a_value_that_no_reader_takes_changes_no_other_and_stops_no_copy",
        ),
    ),
)
