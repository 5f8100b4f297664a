"""Spark: one person's value, of any of its types, changes no answer by more than one person can.

Whatever the session of the frame is set to: ANSI mode, code that Spark writes, plans that adapt, old parsers.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

import counts
from engines.one_value import ODD, ROWS
from engines.test_one_value import QUESTIONS, answers_of, moved

pytestmark = pytest.mark.filterwarnings("ignore")

LEAST, MOST = "timestamp_micros(-9223372036854775807L - 1L)", "timestamp_micros(9223372036854775807L)"
MOMENTS = "timestamp_seconds(1704067200 + 86400 * (id % 3))"
TYPES: dict[str, tuple[str, list[str]]] = {
    "bigint": ("id % 3", ["9223372036854775807L", "-9223372036854775807L - 1L", "NULL"]),
    "int": ("id % 3", ["2147483647", "-2147483648"]),
    "double": ("id % 3", ["double('NaN')", "double('Infinity')", "-0.0D", "1.7976931348623157E308D", "4.9E-324D"]),
    "float": ("id % 3", ["float('NaN')", "float('-Infinity')", "3.4028234E38F"]),
    "decimal(38,0)": ("id % 3", ["99999999999999999999999999999999999999BD"]),
    "decimal(38,37)": ("id % 3", ["-9.9999999999999999999999999999999999999BD"]),
    "decimal(18,2)": ("id % 3", ["9999999999999999.99BD"]),
    "date": (
        "date_add(DATE'2024-01-01', cast(id % 3 as int))",
        ["date_from_unix_date(100000000)", "date_from_unix_date(-100000000)", "DATE'0001-01-01'", "DATE'9999-12-31'"],
    ),
    "timestamp": (MOMENTS, [MOST, LEAST]),
    "timestamp_ntz": (MOMENTS, [MOST, LEAST]),
    "string": (
        "concat('v', id % 3)",
        ["repeat('a', 1000000)", "''", "cast(X'ffc3' as string)", "'1e999'", "repeat('9', 5000)", "'%_'", "'infinity'"],
    ),
    "binary": ("cast(concat('b', id % 3) as binary)", ["X''", "cast(repeat('z', 100000) as binary)"]),
    "boolean": ("id % 2 = 0", ["NULL"]),
}
"""How the values of others are made, and one person's."""
WAYS: list[dict[str, str]] = [
    {},
    {"spark.sql.ansi.enabled": "false", "spark.sql.codegen.wholeStage": "false"},
    {"spark.sql.adaptive.enabled": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
    {"spark.sql.legacy.timeParserPolicy": "LEGACY", "spark.sql.autoBroadcastJoinThreshold": "-1"},
]
IN_CI = ("double", "timestamp", "string")


@pytest.mark.parametrize("kind", [k if k in IN_CI else pytest.param(k, marks=pytest.mark.soak) for k in TYPES])
def test_one_value_changes_no_answer_by_more_than_one_person_can(spark: Any, tmp_path: Path, kind: str) -> None:
    at, (usual, odds) = list(TYPES).index(kind), TYPES[kind]
    cases = product(WAYS, odds) if counts.SOAK else [(WAYS[at % len(WAYS)], odds[at % len(odds)])]
    questions = QUESTIONS if counts.SOAK else QUESTIONS[at % 6 :: 6]
    for i, (way, odd) in enumerate(cases):
        theirs = spark.newSession()
        answers = []
        for j, value in enumerate((usual, f"if(id = {ODD}, cast({odd} as {kind}), cast({usual} as {kind}))")):
            row = "id div 2 AS id", "if(id % 2 = 0, 'x', 'y') AS g", "1 + id % 4 AS n", f"cast({value} as {kind}) AS c"
            folder = str(tmp_path / f"{i}-{j}")
            theirs.range(ROWS).selectExpr(*row).repartition(2).write.parquet(folder)
            for key, setting in way.items():
                theirs.conf.set(key, setting)
            answers.append(answers_of(theirs.read.parquet(folder), questions))
            for key in way:
                theirs.conf.unset(key)
        before, after = answers
        assert before.keys() == after.keys(), (way, odd)
        assert {q: (rows, after[q]) for q, rows in before.items() if moved(q, rows, after[q])} == {}, (way, odd)
