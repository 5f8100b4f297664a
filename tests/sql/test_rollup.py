"""`GROUP BY a, b WITH ROLLUP`, as MySQL and T-SQL write it, has the totals of ROLLUP (a, b)."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk
from hubbub.errors import QueryError

COLUMNS = {"a": hb.one_of(1, 2), "b": hb.one_of("x", "y")}


@pytest.fixture(scope="module")
def desk() -> Desk:
    rows = pa.table({"id": [1, 2, 3], "a": [1, 2, 2], "b": ["x", "x", "y"]})
    return Desk({"t": hb.table(rows, unit="id", max_groups=4, max_rows=1, columns=COLUMNS)})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a, b WITH ROLLUP", "ROLLUP (a, b)"),
        ("a, b WITH CUBE", "CUBE (a, b)"),
        ("a WITH ROLLUP", "ROLLUP (a)"),
        ("ALL a", "a"),
    ],
)
def test_totals_are_those_of_the_words_that_stand_behind(desk: Desk, written: str, meant: str) -> None:
    one, other = (desk.statement(f"SELECT COUNT(*) AS n FROM t GROUP BY {by}") for by in (written, meant))
    assert one.questions == other.questions


def test_totals_of_totals_are_refused(desk: Desk) -> None:
    with pytest.raises(QueryError):
        desk.statement("SELECT COUNT(*) AS n FROM t GROUP BY a WITH ROLLUP WITH CUBE")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (f"DISTINCT CUBE ({', '.join(['a'] * 60)})", "CUBE (a)"),
        (f"DISTINCT {', '.join(['ROLLUP (a)'] * 60)}", "ROLLUP (a)"),
        (f"DISTINCT {', '.join(['CUBE (b, a)'] * 30)}", "CUBE (b, a)"),
        ("DISTINCT CUBE (a, (a, b), b)", "GROUPING SETS ((a, b), (a), (b), ())"),
    ],
)
def test_combinations_are_not_made_to_find_few_groupings(desk: Desk, written: str, meant: str) -> None:
    """2^60 of them would hold whoever reads the question for as long as he lives."""
    one, other = (desk.statement(f"SELECT COUNT(*) AS n FROM t GROUP BY {by}") for by in (written, meant))
    assert one.questions == other.questions


def test_too_many_groupings_are_refused_as_soon_as_they_are_too_many(desk: Desk) -> None:
    terms = ", ".join(f"a + {i}" for i in range(60))
    for by in (f"CUBE ({terms})", ", ".join(f"ROLLUP (a + {i})" for i in range(60))):
        with pytest.raises(QueryError, match="128 groupings in one question; at most 64"):
            desk.statement(f"SELECT COUNT(*) AS n FROM t GROUP BY {by}")
