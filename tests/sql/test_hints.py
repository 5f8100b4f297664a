"""What a refusal adds for a newcomer."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import hubbub as hb
from people import session, visits


def test_somebody_who_wants_rows_is_told_questions_that_are_answered() -> None:
    """For nothing; and what is told is answered as it stands."""
    told: list[str] = []
    with session() as opened:
        for sql in (
            "SELECT * FROM visits LIMIT 5",
            "SELECT age FROM visits",
            "SELECT * FROM visits ORDER BY 1 LIMIT 2",
        ):
            with pytest.raises(hb.QueryError, match="rows of people are never shown") as caught:
                opened.sql(sql, epsilon=1)
            told = re.findall(r"SELECT .*?(?=; or |\.$)", str(caught.value).splitlines()[0])
            assert told == ["SELECT COUNT(*) FROM visits", "SELECT ward, COUNT(*), AVG(age) FROM visits GROUP BY ward"]
        assert [len(opened.sql(one, epsilon=1).to_arrow()) for one in told] == [1, 4]


def test_a_limit_below_an_aggregate_is_another_mistake() -> None:
    with session() as opened, pytest.raises(hb.QueryError, match="LIMIT below an aggregate"):
        opened.check("SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 5)", epsilon=1)


def test_tables_of_other_people_cannot_be_joined() -> None:
    other = hb.table(pa.table({"pid": [1], "y": [2]}), unit="pid", max_groups=1, max_rows=1)
    with session(visits=visits(), other=other) as opened:
        for sql in (
            "SELECT COUNT(*) FROM visits JOIN other ON id = pid",
            "SELECT COUNT(*) FROM (SELECT id FROM visits UNION ALL SELECT pid FROM other)",
        ):
            with pytest.raises(hb.QueryError, match="'visits' and 'other' protect different people"):
                opened.check(sql, epsilon=1)


@pytest.mark.parametrize(
    ("type_", "bounds", "why", "way"),
    [
        (pa.int64(), (0, 200_000), "200,001 values, and at most 10,000 are listed", "FLOOR(income / 10000)"),
        (pa.float64(), (0, 200_000), "fractions cannot be listed", "FLOOR(income / 10000)"),
        (pa.float64(), (-1, 1), "fractions cannot be listed", "FLOOR(income / 0.1)"),
        (pa.timestamp("us"), ("2010-01-01", "2025-01-01"), "moments cannot be listed", "EXTRACT(year FROM income)"),
        (pa.date32(), ("1900-01-01", "2025-01-01"), "values, and at most 10,000", "EXTRACT(year FROM income)"),
    ],
)
def test_a_range_that_is_too_long_to_list_is_refused_with_a_way_out(
    type_: pa.DataType, bounds: tuple[object, object], why: str, way: str
) -> None:
    """And the way out is answered."""
    frame = pa.table({"id": [1], "income": pa.array([None], type_)})
    table = hb.table(frame, unit="id", max_groups=1, max_rows=1, columns={"income": hb.between(*bounds)})
    with session(t=table) as opened:
        with pytest.raises(hb.PolicyError) as caught:
            opened.check("SELECT income, COUNT(*) FROM t GROUP BY income", epsilon=1)
        assert why in str(caught.value)
        assert way in str(caught.value)
        assert 10 <= (opened.check(f"SELECT {way} AS k, COUNT(*) FROM t GROUP BY 1", epsilon=1).groups or 0) <= 200
