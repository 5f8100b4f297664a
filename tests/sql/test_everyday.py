"""What people write who know other dialects: VALUES, DATEDIFF of two, ENTROPY, keys by column, and names misspelt."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.errors import PolicyError, QueryError
from people import HUGE, session

ROWS = pa.table(
    {
        "id": [*range(8), 0],
        "ward": ["A", "A", "A", "A", "B", "B", "C", None, "A"],
        "zip": ["10", "10", "11", "12", "10", "11", "11", "11", "10"],
        "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
    }
)


def _asked(text: str, epsilon: Any = HUGE, rows: int = 3, **more: Any) -> Any:
    columns = {"ward": hb.one_of("A", "B", "C"), "x": hb.between(0, 10)}
    table = hb.table(ROWS, unit="id", max_groups=2, max_rows=rows, columns=columns)
    with session(epsilon=10**7 * HUGE, v=table) as s:
        return s.sql(text, epsilon=epsilon, **more)


def test_values_are_public_rows_and_a_repeated_key_is_bounded_after_the_join() -> None:
    listed = "(VALUES ('A', 1), ('B', 2)) AS f(ward, level)"
    answer = _asked(f"SELECT level, COUNT(*) AS n FROM v JOIN {listed} USING (ward) GROUP BY level")
    assert dict(answer.rows()) == {1: 5, 2: 2}
    often = ", ".join(["('A')"] * 7)
    text = f"SELECT COUNT(*) AS n FROM v JOIN (VALUES {often}) AS f(ward) USING (ward)"
    assert _asked(text, rows=1).rows() == [(4 * 2,)]  # four units, each with max_groups * max_rows = 2 of its 7 or 14
    assert _asked("WITH f(w) AS (VALUES ('B')) SELECT COUNT(*) AS n FROM v WHERE ward IN (SELECT w FROM f)").rows() == [
        (2,)
    ]


@pytest.mark.parametrize(
    "cell", ["v.ward", "(SELECT MAX(x) FROM v)", "MAX(x)", "random()", "current_setting('x')", "getenv('HOME')"]
)
def test_values_hold_constants_alone(cell: str) -> None:
    with pytest.raises(QueryError):
        _asked(f"SELECT COUNT(*) FROM v JOIN (VALUES ({cell})) AS f(w) ON f.w = v.ward")


def test_entropy_is_that_of_the_noisy_shares() -> None:
    (bits,) = _asked("SELECT ENTROPY(ward) AS bits FROM v").rows()[0]
    assert bits == pytest.approx(-sum(p * math.log2(p) for p in (5 / 8, 2 / 8, 1 / 8)), abs=1e-6)
    noisy = _asked("SELECT ENTROPY(ward) AS bits FROM v", epsilon=1)
    low, high = (noisy.intervals().column(f"bits_{end}")[0].as_py() for end in ("low", "high"))
    assert low <= high
    with pytest.raises(QueryError, match="asked alone"):
        _asked("SELECT ENTROPY(ward), COUNT(*) FROM v")


def test_keys_are_named_by_the_alias_or_by_the_column() -> None:
    for name in ("area", "zip"):
        answer = _asked("SELECT LEFT(zip, 1) AS area, COUNT(*) AS n FROM v GROUP BY 1", keys={name: ["1", "2"]})
        assert dict(answer.rows()) == {"1": 9, "2": 0}
    with pytest.raises(QueryError, match="does not group by 'x'"):
        _asked("SELECT ward, COUNT(*) FROM v GROUP BY ward", keys={"x": [1]})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT ward, CONUT(*) FROM v GROUP BY ward", r"no aggregate CONUT. Did you mean COUNT\?[^\n]*\n.*\n +\^{6}"),
        ("SELECT ward, SUMM(x) AS s FROM v GROUP BY ward", r"no aggregate SUMM. Did you mean SUM\?"),
        ("SELECT ARG_MAX(ward, x) FROM v", "the group with the largest total"),
        ("SELECT DATE_TRUNC('mont', DATE '2025-01-01'), COUNT(*) FROM v GROUP BY 1", "Did you mean MONTH"),
        ("SELECT AVG(x) FROM v WHERE warb = 'A'", "Did you mean 'ward'"),
        ("SELECT DATE_FORMAT(DATE '2025-01-01', 'yyyy-MM'), COUNT(*) FROM v GROUP BY 1", "TO_CHAR reads 'YYYY-MM'"),
        ("SELECT COUNT(*) FROM v WHERE ward SIMILAR TO 'A%'", "write LIKE"),
        ("SELECT COUNT(*) FROM v WHERE ward SIMILAR TO '(A|B)_'", "write LIKE"),
    ],
)
def test_a_misspelt_name_is_shown_where_it_stands(text: str, words: str) -> None:
    with pytest.raises((QueryError, PolicyError), match=words):
        _asked(text)


def test_what_is_no_aggregate_may_stand_above_one() -> None:
    assert _asked("SELECT ward, trunc(SUM(x)) AS s FROM v GROUP BY ward").rows()[1] == ("B", 11)
    assert _asked("SELECT APPROX_COUNT_DISTINCT(id) AS n FROM v").rows() == [(8,)]


@pytest.mark.parametrize(
    "question",
    [
        "COUNT(*) FROM v WHERE (ward, x) IN ()",
        "COUNT(*) FROM v WHERE (ward, x) IN UNNEST([1])",
        "COUNT(*) FROM v WHERE ward LIKE ANY ()",
        "COUNT(*) FROM v WHERE ward LIKE ALL ([])",
        "APPROX_TOP_K(NULL, 3) FROM v",
        "MODE(NULL) FROM v",
    ],
)
def test_what_is_empty_is_refused_in_our_words(question: str) -> None:
    with pytest.raises((QueryError, PolicyError)):
        _asked(f"SELECT {question}")


def test_the_entropy_of_one_group_is_zero_and_not_minus_zero() -> None:
    (bits,) = _asked("SELECT ENTROPY(ward) AS bits FROM v WHERE ward = 'A'", epsilon=1000).rows()[0]
    assert str(bits) == "0.0"
