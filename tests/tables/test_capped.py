"""A number of one unit's rows is capped at its limit, and the answer says so."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.errors import PolicyError, QueryError
from people import HUGE, session

PER_UNIT = "(SELECT id, COUNT(*) AS n FROM v GROUP BY id) p"
NUMBERED = "(SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY x) AS n FROM v) p"
ROWS = pa.table({"id": [1] * 9 + [2] * 2 + [3], "x": list(range(12))})


def _asked(text: str, **limits: int) -> Any:
    with session(epsilon=10**7 * HUGE, v=hb.table(ROWS, unit="id", **limits)) as s:
        return s.sql(text, epsilon=HUGE)


def test_a_mean_of_numbers_of_rows_counts_each_as_its_limit() -> None:
    answer = _asked(f"SELECT AVG(n) FROM {PER_UNIT}", max_groups=2, max_rows=2)
    assert answer.rows()[0][0] == pytest.approx((4 + 2 + 1) / 3, abs=1e-3)
    assert answer.notes == (
        "note: n counts as at most 4: with so many rows one unit counts (max_total, or max_groups times max_rows).",
    )


def test_as_a_group_the_last_number_is_that_many_or_more() -> None:
    answer = _asked(f"SELECT n, COUNT(*) AS c FROM {PER_UNIT} GROUP BY n", max_groups=4, max_rows=1)
    assert dict(answer.rows()) == {0: 0, 1: 1, 2: 1, 3: 0, 4: 1}
    assert "n = 4 is 4 or more" in str(answer)


def test_positions_of_a_units_rows_are_capped_alike() -> None:
    answer = _asked(f"SELECT n, COUNT(*) AS c FROM {NUMBERED} GROUP BY n", max_groups=4, max_rows=9, max_total=4)
    assert dict(answer.rows()) == {1: 3, 2: 2, 3: 1, 4: 6}


def test_nothing_is_said_where_where_keeps_the_number_below_its_limit() -> None:
    text = f"SELECT n, COUNT(*) AS c FROM {PER_UNIT} WHERE n <= 2 GROUP BY n"
    answer = _asked(text, max_groups=4, max_rows=1)
    assert answer.notes == ()
    assert dict(answer.rows()) == {0: 0, 1: 1, 2: 1}


def test_nothing_is_said_where_the_question_caps_it_lower() -> None:
    answer = _asked(f"SELECT LEAST(n, 2) AS k, COUNT(*) AS c FROM {PER_UNIT} GROUP BY 1", max_groups=4, max_rows=1)
    assert answer.notes == ()
    assert _asked(f"SELECT AVG(LEAST(n, 2)) AS m FROM {PER_UNIT}", max_groups=2, max_rows=2).notes == ()


@pytest.mark.parametrize("source", [PER_UNIT, NUMBERED])
def test_without_a_limit_the_refusal_shows_the_cap(source: str) -> None:
    with pytest.raises(QueryError, match=r"LEAST\(COUNT\(\*\), 20\): LEAST\(n, 20\); or declare max_total"):
        _asked(f"SELECT AVG(n) FROM {source}", max_rows=5)
    with pytest.raises(PolicyError, match=r"GROUP BY LEAST\(n, 20\)"):
        _asked(f"SELECT n, COUNT(*) FROM {source} GROUP BY n", max_groups=5)
