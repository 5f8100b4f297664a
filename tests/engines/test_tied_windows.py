"""Windows over rows that tie: what they say together of a person's rows follows from these alone.

Of rows that are equal in all that is read it is all the same which comes first, but not to two windows at once: as
DuckDB sorted everybody's rows, each put another first. One person more moved what was counted of two thousand others.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk
from people import HUGE

PEOPLE, ROWS = 700, 6
"""Everybody has the same rows, four of which are equal: so whatever is counted of one is counted of each."""
ORDERS = ("ORDER BY n", "ORDER BY n DESC", "ORDER BY m, n", "ORDER BY m DESC")
PARTS = ("id", "id, n", "id, m")
FORMS = [
    *(f"ROW_NUMBER() OVER (PARTITION BY {part} {order})" for part in PARTS for order in (*ORDERS, "")),
    *(f"LAG(k, 1, 9) OVER (PARTITION BY {part} {order})" for part, order in zip(PARTS, ORDERS, strict=False)),
    *(f"FIRST_VALUE(k) OVER (PARTITION BY {part} {order})" for part, order in zip(PARTS, ORDERS[::-1], strict=False)),
    *(
        f"COUNT(k) OVER (PARTITION BY id {order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
        for order in ORDERS[:2]
    ),
]
FIRST = ("ROW_NUMBER() OVER (PARTITION BY id ORDER BY n)", "LEAD(k, 1, 9) OVER (PARTITION BY id ORDER BY m)")


@pytest.fixture(scope="module")
def desk() -> Any:
    mine = [(1, 1, 2), (1, 1, 2), (1, 1, 2), (1, 1, 2), (1, 2, 1), (2, 1, 1)]
    rows = [(person, *row) for person in range(PEOPLE) for row in mine]
    columns = zip(*rows, strict=True)
    table = pa.table(dict(zip(("id", "n", "m", "k"), columns, strict=True)))
    desk = Desk({"v": hb.table(table, unit="id", max_groups=1, max_rows=ROWS)})
    yield desk
    desk.engine.close()


@pytest.mark.parametrize("first", FIRST)
def test_two_windows_say_of_each_person_what_they_say_of_another_with_the_same_rows(desk: Any, first: str) -> None:
    wrong = []
    for form, stage in product(FORMS, ("{0} AS r, {1} AS q FROM v", "*, {1} AS q FROM (SELECT *, {0} AS r FROM v)")):
        inside = stage.format(first, form)
        sql = f"SELECT SUM(LEAST(GREATEST(r * 7 + q * r, 0), 1000)) AS s FROM (SELECT id, {inside}) AS w"
        ((total,),) = desk.ask(sql, HUGE).rows()
        if total % PEOPLE:
            wrong.append((inside, total))
    assert wrong == []
