"""Options that do not go together, or with a question: the remedy changes or leaves out the option that is named."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.learning import CategoricalNB, LogisticRegression
from remedied import DELTA, PEOPLE, PURE, Case, answered_after, table

COUNT, BY_WARD = "SELECT COUNT(*) AS x FROM t", "SELECT ward, COUNT(*) AS x FROM t GROUP BY ward"
WARDS: dict[str, Any] = {"columns": {"ward": hb.one_of("A", "B", "C"), "n": hb.between(0, 4)}}
WITH_DAYS = {"columns": {**WARDS["columns"], "day": hb.between("2024-01-01", "2024-12-31")}}
COUNTED = ("count", "count_low", "count_high")
SHARE = {"within": "50 %", "at_most": 10}
FOUND = {"columns": {"n": hb.between(0, "auto"), "ward": hb.one_of("A", "B", "C")}}


def unlimited(**declared: Any) -> Any:
    return hb.table(PEOPLE, unit="id", **declared)


ABOVE, NAMED = "SELECT COUNT(*) AS x FROM t WHERE n > ?", "SELECT COUNT(*) AS x FROM t WHERE n > $least"


def _wards() -> Any:
    return table(**WARDS)


def _two_wards() -> Any:
    return table(columns={"ward": hb.one_of("A", "B"), "n": hb.between(0, 4)})


def _one_kind() -> Any:
    return table(columns={**WARDS["columns"], "kind": hb.one_of("x")})


def _weighed() -> Any:
    return table(columns={"n": hb.between(0, 4)})


CASES = {
    "a share under a pure budget": Case("session/looks.py:refuse_looks", COUNT, {0: {}, 1: {}}, options=SHARE),
    "a share with Laplace noise": Case(
        "session/looks.py:refuse_looks", COUNT, {0: {}, 2: {}}, options={**SHARE, "noise": "laplace"}, budget=DELTA
    ),
    "a share of groups that are found": Case(
        "session/looks.py:refuse_looks",
        BY_WARD,
        {0: {"values": ({"ward": ["A", "B", "C"]},)}},
        ("ward", "x"),
        3,
        options=SHARE,
        budget=DELTA,
    ),
    "a share of what is drawn whole": Case(
        "session/looks.py:refuse_looks",
        "SELECT APPROX_TOP_K(ward, 2) AS x, COUNT(*) AS n FROM t",
        {0: {"values": (4,)}},
        ("x", "n"),
        options=SHARE,
        budget=DELTA,
        table=lambda: table(**WARDS),
    ),
    "a share of parts that read another": Case(
        "session/looks.py:refuse_looks",
        "SELECT COUNT(*) AS x FROM t WHERE n <= (SELECT AVG(n) FROM t)",
        {0: {"values": (4,)}},
        options=SHARE,
        budget=DELTA,
        table=lambda: table(**WARDS),
    ),
    "an error of a column that has none": Case(
        "session/check.py:_beyond",
        COUNT,
        {0: {"values": (20,)}},
        options={"within": {"y": 4}, "at_most": 10},
    ),
    "a floor without a share": Case(
        "session/options.py:_check_share", COUNT, {0: {}}, options={"within": 20, "at_most": 10, "at_least": 5}
    ),
    "what the truth is, of no total": Case(
        "session/options.py:check",
        COUNT,
        {0: {}, 1: {}},
        options={"epsilon": 4, "rows_per_unit_at_most": 3, "max_rows": "auto"},
        table=unlimited,
    ),
    "Laplace noise at a rho": Case(
        "session/prepare.py:amount_of", COUNT, {0: {}}, options={"rho": "0.1", "noise": "laplace"}, budget=DELTA
    ),
    "the total error of a mean": Case(
        "session/total_error.py:refuse_total_error",
        "SELECT AVG(n) AS x FROM t",
        {0: {"sql": "SELECT SUM(n) AS x FROM t"}},
        options={"epsilon": 4, "total_error": True, "max_rows": "auto"},
        table=lambda: unlimited(**WARDS),
    ),
    "a total error without a histogram": Case(
        "session/total_error.py:refuse_total_error",
        COUNT,
        {0: {}},
        options={"epsilon": 40, "total_error": True},
    ),
    "a total error of groups that are dropped": Case(
        "session/total_error.py:refuse_total_error",
        BY_WARD,
        {0: {"values": (3,)}},
        ("ward", "x"),
        3,
        options={"epsilon": 40, "total_error": True, "max_rows": "auto", "max_groups": 1},
        table=lambda: unlimited(**WARDS),
    ),
    "no noise that fits": Case("tables/price.py:_checked", COUNT, {0: {"values": (4,)}}, options={"epsilon": "1e-30"}),
    "two sums of one column whose bound is found": Case(
        "tables/plan.py:_with_auto",
        "SELECT SUM(n) AS x, SUM(IF(ward = 'A', n, 0)) AS y FROM t",
        {0: {"low": 0, "high": 4}},
        ("x", "y"),
        table=lambda: table(**FOUND),
        options={"epsilon": 40},
    ),
    "bounds found for groups that are found": Case(
        "tables/plan.py:no_bound_beside",
        BY_WARD,
        {0: {"values": ({"ward": ["A", "B", "C"]},)}},
        ("ward", "x"),
        3,
        options={"epsilon": 40, "max_groups": 1, "max_rows": "auto"},
        budget=DELTA,
        table=unlimited,
    ),
    "bounds found where norms are clipped": Case(
        "tables/plan.py:no_bound_beside",
        "SELECT ward, SUM(n) AS x FROM t GROUP BY ward",
        {0: {}},
        ("ward", "x"),
        3,
        options={"epsilon": 40, "bounding": "norm"},
        table=lambda: table(**FOUND),
    ),
    **{
        f"an option that has not its form: {options}": Case(
            site,
            sql,
            dict(enumerate(fills)),
            columns,
            groups,
            table_of,
            DELTA,
            {"epsilon": 4, **options},
        )
        for site, sql, options, fills, columns, groups, table_of in (
            ("session/options.py:of", COUNT, {"max_row": 1}, [{"values": (1,)}], ("x",), 1, table),
            ("session/options.py:of", COUNT, {"zzz": 1}, [{}], ("x",), 1, table),
            ("session/options.py:_check_rest", COUNT, {"weight": ""}, [{"values": ("n",)}], ("x",), 1, _weighed),
            ("session/options.py:_check_rest", COUNT, {"assume_rows": 0}, [{}], ("x",), 1, table),
            (
                "session/options.py:check",
                COUNT,
                {"epsilon": None, "within": -1, "at_most": 10},
                [{"values": (20,)}],
                ("x",),
                1,
                table,
            ),
            (
                "session/options.py:_check_share",
                COUNT,
                {"epsilon": None, "within": "wide", "at_most": 10},
                [{"values": (20,)}],
                ("x",),
                1,
                table,
            ),
            (
                "session/options.py:_check_share",
                COUNT,
                {"epsilon": None, **SHARE, "at_least": 0},
                [{}],
                ("x",),
                1,
                table,
            ),
            ("session/options.py:_check_limits", BY_WARD, {"bounding": "both"}, [{}, {}], ("ward", "x"), 3, _wards),
            ("session/options.py:_check_limits", COUNT, {"max_rows": 0}, [{"values": (1,)}], ("x",), 1, table),
            ("session/options.py:_check_limits", COUNT, {"max_groups": "two"}, [{"values": (1,)}], ("x",), 1, table),
            ("session/options.py:_check_limits", COUNT, {"max_total": 1.5}, [{"values": (1,)}], ("x",), 1, table),
            ("session/prepare.py:_weights", COUNT, {"weights": 3}, [{}], ("x",), 1, table),
            ("session/prepare.py:_weights", COUNT, {"weights": {"y": 3}}, [{}], ("x",), 1, table),
            ("session/prepare.py:_weights", COUNT, {"weights": {"x": 0}}, [{}], ("x",), 1, table),
            ("session/prepare.py:amount_of", COUNT, {"noise": "normal"}, [{}, {}], ("x",), 1, table),
            ("sql/bind/query.py:_keys", BY_WARD, {"keys": "ward"}, [{}], ("ward", "x"), 3, _wards),
            (
                "sql/bind/query.py:_keys",
                BY_WARD,
                {"keys": {"ward": "A"}},
                [{"values": ("A", "B")}],
                ("ward", "x"),
                2,
                table,
            ),
            (
                "sql/bind/query.py:_keys",
                BY_WARD,
                {"keys": {"ward": [["A"]]}},
                [{"values": ("A", "B")}],
                ("ward", "x"),
                2,
                table,
            ),
            ("sql/bind/query.py:_fill", ABOVE, {"params": 2}, [{"values": ([2],)}], ("x",), 1, table),
            ("sql/bind/query.py:_fill", ABOVE, {"params": []}, [{"values": ([2],)}], ("x",), 1, table),
            ("sql/bind/query.py:_fill", ABOVE, {"params": [2, 3]}, [{"values": ([2],)}], ("x",), 1, table),
            ("sql/bind/query.py:_fill", COUNT, {"params": {"least": 2}}, [{}], ("x",), 1, table),
            ("sql/bind/query.py:_no_value", ABOVE, {"params": [2**1000]}, [{"values": ([2],)}], ("x",), 1, table),
            (
                "sql/bind/query.py:_no_value",
                NAMED,
                {"params": {"least": math.nan}},
                [{"value": 2}],
                ("x",),
                1,
                table,
            ),
            ("sql/bind/query.py:_no_value", NAMED, {"params": {"least": [2]}}, [{"value": 2}], ("x",), 1, table),
        )
    },
    **{
        f"an option of a synthetic table: {options}": Case(
            site,
            "t",
            {0: {}},
            ("ward",),
            0,
            lambda: table(columns={"ward": hb.one_of("A", "B", "C")}),
            DELTA,
            {"epsilon": 4, **options},
            ask="synthesize",
        )
        for site, options in (
            ("session/whole_rows.py:_cuts", {"edges": [0, 18]}),
            ("session/whole_rows.py:_cuts", {"edges": {"ward": ["x"], "n": 3}}),
            ("session/whole_rows.py:ask_synthesis", {"target": "x"}),
            ("synthesis/planner.py:plan_synthesis", {"method": "trees"}),
            ("synthesis/planner.py:plan_synthesis", {"method": "copula"}),
            ("synthesis/synthetic.py:check_rows", {"rows": 2**31 - 1}),
            (
                "synthesis/constraints.py:_condition",
                {"constraints": ["ward = A implies ward != B", "wards = A implies ward != C"]},
            ),
        )
    },
    "a synthetic table that would be noise": Case(
        "synthesis/synthetic.py:prepared",
        "t",
        {0: {"values": (4,)}, 1: {}},
        ("ward",),
        0,
        lambda: table(columns={"ward": hb.one_of("A", "B", "C")}),
        DELTA,
        {"epsilon": "0.01", "rows": 100},
        ask="synthesize",
    ),
    **{
        f"a table by another name: {ask}": Case(
            site, "tt", {0: {}}, columns, 0, lambda: table(**WARDS), DELTA, {"epsilon": 4} if paid else {}, ask=ask
        )
        for ask, site, columns, paid in (
            ("synthesize", "session/shown.py:not_private", ("ward", "n"), True),
            ("marginals", "session/shown.py:not_private", ("ward", *COUNTED), True),
            ("suggest_bounds", "session/shown.py:not_private", ("n",), True),
            ("refresh", "session/session.py:refresh", (), False),
            ("tables", "session/shown.py:__getitem__", tuple(PEOPLE.column_names), False),
        )
    },
    "a unit space by another name": Case(
        "session/data.py:space",
        "",
        {0: {}},
        ("id",),
        0,
        options={"epsilon": 4, "unit_space": "people"},
        ask="reserve",
    ),
    "weights of marginals that are no numbers": Case(
        "session/whole_rows.py:_weights",
        "t",
        {0: {}},
        ("ward", *COUNTED),
        0,
        lambda: table(**WARDS),
        DELTA,
        {"epsilon": 4, "weights": [None]},
        ask="marginals",
    ),
    "a weight that is no number": Case(
        "sql/bind/weighted.py:_column",
        COUNT,
        {0: {"values": ("n",)}},
        options={"epsilon": 4, "weight": "ward"},
        table=_weighed,
    ),
    **{
        f"a column of a synthetic table: {columns}": Case(
            "synthesis/session_adapter.py:declared",
            "t",
            dict(enumerate(fills)),
            tuple(columns),
            0,
            lambda: table(**WITH_DAYS),
            DELTA,
            {"epsilon": 4, "columns": columns},
            ask="synthesize",
        )
        for columns, fills in (
            (["ward", "age"], [{"values": tuple(range(90))}, {"low": 0, "high": 99}]),
            (["ward", "day"], [{"values": tuple(f"2024-01-{i:02}" for i in range(1, 29))}]),
        )
    },
    "too few people for a search": Case(
        "session/ask.py:refuse_nothing",
        COUNT,
        {0: {"values": (40,)}},
        options={"epsilon": "0.01", "max_rows": "auto"},
        table=unlimited,
    ),
    "bounds looked at for groups that are found": Case(
        "session/check_bounds.py:_all_searches",
        BY_WARD,
        {0: {"values": ({"ward": ["A", "B", "C"]},)}},
        (),
        0,
        table=unlimited,
        budget=DELTA,
        ask="check_bounds",
    ),
    "keys without a value": Case(
        "sql/bind/query.py:_keys",
        BY_WARD,
        {0: {"values": ("A", "B", "C")}},
        ("ward", "x"),
        3,
        options={"epsilon": 4, "keys": {"ward": []}},
    ),
    "keys of what is not grouped": Case(
        "sql/bind/query.py:_check_keys",
        COUNT,
        {0: {"sql": BY_WARD}},
        ("ward", "x"),
        2,
        options={"epsilon": 4, "keys": {"ward": ["A", "B"]}},
    ),
    "a weight of public rows": Case(
        "sql/bind/query.py:parse",
        COUNT,
        {0: {}},
        options={"epsilon": 4, "weight": "n"},
        table=lambda: hb.public(PEOPLE),
    ),
    "how many are named, of values that nobody declared": Case(
        "sql/bind/undeclared_top.py:top_of_undeclared",
        "SELECT APPROX_TOP_K(ward, 0) AS x FROM t",
        {0: {"sql": "SELECT APPROX_TOP_K(ward, 3) AS x FROM t"}},
        budget=DELTA,
    ),
    "declared values of another type": Case(
        "tables/groups.py:fitted",
        "SELECT n, COUNT(*) AS x FROM t GROUP BY n",
        {0: {"values": (0, 1)}},
        ("n", "x"),
        2,
        table=lambda: table(columns={"n": hb.one_of("a", "b")}),
    ),
    "declared values that are one": Case(
        "tables/groups.py:_values",
        "SELECT day, COUNT(*) AS x FROM t GROUP BY day",
        {0: {"values": ("2024-01-01", "2024-01-02")}},
        ("day", "x"),
        2,
        table=lambda: table(columns={"day": hb.one_of("2024-01-01", "20240101")}),
    ),
    "the most frequent of NULL": Case(
        "tables/aggregates/mode.py:values_of",
        "SELECT MODE(ward) AS x FROM t",
        {0: {"values": ("A", "B", "C")}},
        table=lambda: table(columns={"ward": hb.one_of(None)}),
    ),
    "the most frequent of too many": Case(
        "tables/aggregates/mode.py:values_of",
        "SELECT MODE(ward) AS x FROM t",
        {0: {"sql": "SELECT ward AS x FROM t GROUP BY ward ORDER BY COUNT(*) DESC LIMIT 1"}},
        table=lambda: table(columns={"ward": hb.one_of(*"ABC", *(f"ward {i}" for i in range(1000)))}),
    ),
}
CASES |= {
    f"an epsilon that is no amount: {epsilon!r}": Case(
        "arguments.py:an_amount", COUNT, {0: {"values": (1,)}}, options={"epsilon": epsilon}
    )
    for epsilon in (0, "a lot")
}
CASES |= {
    f"a model of what is not declared, or without delta: {site}": Case(
        site, "t", {0: filled}, (), 0, table_of, budget, {"epsilon": 4, "model": model}, ask="fit"
    )
    for site, model, filled, table_of, budget in (
        (
            "learning/model.py:rho",
            LogisticRegression(target="ward", method="newton", positive="A"),
            {},
            _two_wards,
            PURE,
        ),
        ("learning/model.py:_weight", CategoricalNB(target="ward", weight="age"), {"high": 99}, _wards, DELTA),
        ("learning/model.py:_target", CategoricalNB(target="kind"), {"values": ("x", "y")}, _wards, DELTA),
        ("learning/targets.py:of", CategoricalNB(target="kind"), {"values": ("x", "y")}, _one_kind, DELTA),
        (
            "learning/features.py:column_of",
            CategoricalNB(target="ward", features=["kind"]),
            {"values": ("x", "y")},
            _wards,
            DELTA,
        ),
    )
}
CASES |= {
    f"rows of people in Python: {word}": Case(f"verbs/pandas_words.py:{site}", "t", {0: {}}, (), 0, ask=word)
    for word, site in (("head", "refuse"), ("iter", "__iter__"), ("len", "__len__"))
}
EACH = [(name, at) for name, case in CASES.items() for at in case.fill]


@pytest.mark.parametrize(("name", "at"), EACH, ids=[f"{name}, {at}" for name, at in EACH])
def test_a_remedy_that_is_applied_is_answered(name: str, at: int, tmp_path: Path) -> None:
    case = CASES[name]
    assert answered_after(case, at, tmp_path / "another.db") == (case.columns, case.groups)
