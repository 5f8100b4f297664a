"""UNION of two columns keeps the group of what neither declares (`one_of(..., other=...)`)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb

ROWS = pa.table({"id": [1, 2, 3, 4], "g": ["A", "X", "Y", None]})
DECLARED = {
    "p": hb.one_of("A", "B", other="rest"),
    "q": hb.one_of("A", "X"),
    "r": hb.one_of("A", "X", other="more"),
    "s": hb.one_of("A", "rest"),
    "n": hb.one_of("B", None),
}


@pytest.mark.parametrize(
    ("query", "groups"),
    [
        ("SELECT id, g FROM p UNION ALL SELECT id, g FROM q", {"A": 2, "B": 0, "X": 2, "rest": 4}),
        ("SELECT id, g FROM q UNION ALL SELECT id, g FROM p", {"A": 2, "X": 2, "B": 0, "rest": 4}),
        ("SELECT id, g FROM p UNION SELECT id, g FROM r", {"A": 1, "B": 0, "X": 1, "rest": 2}),
        ("SELECT id, g FROM r UNION SELECT id, g FROM p", {"A": 1, "X": 1, "B": 0, "more": 2}),
        ("SELECT id, g FROM s INTERSECT SELECT id, g FROM p", {"A": 1, "B": 0, "rest": 3}),
        ("SELECT id, g FROM p EXCEPT SELECT id, g FROM q WHERE g = 'A'", {"A": 0, "B": 0, "X": 1, "rest": 2}),
        ("SELECT id, g FROM p UNION ALL SELECT id, g FROM n", {"A": 2, "B": 0, None: 2, "rest": 4}),
        ("SELECT id, g FROM q UNION ALL SELECT id, g FROM q", {"A": 2, "X": 2}),
    ],
)
def test_what_neither_side_declares_is_the_group_that_one_of_them_names(query: str, groups: dict[Any, int]) -> None:
    tables = {name: hb.table(ROWS, unit="id", max_total=2, columns={"g": what}) for name, what in DECLARED.items()}
    with hb.Session(tables, budget=hb.Budget(epsilon=10**10), ledger=None) as session:
        sql = f"SELECT g, COUNT(*) FROM ({query}) AS t GROUP BY g"
        answer = session.sql(sql, epsilon=10**9, max_groups=2, max_rows=2)
    assert answer.rows() == list(groups.items())
