"""No message shows a name of ours: a position (`0`, `k1`), a place (`t0`, `w2`), a release."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import pyarrow as pa
import pytest

import hubbub as hb
from golden.refused import REFUSED
from golden.shop import tables
from hubbub.tables.declare import PrivateTable
from people import session

OURS = re.compile(
    r"(?<![\w.'\"$^])(?:released|drawn|with|column|[kagctdsuwprxz])\d+\b(?!\s*[=)]?\s*')"  # places, cells, releases
    r"|\bkeys=\{\"\w?\d+\"|\bcolumns=\{\"\w?\d+\"|(?i:group by) (?:an expression of )?\w?\d+\b"  # columns 0, k1
    r"|\bFLOOR\(\w?\d|FROM \w?\d+\)|column '?[a-z]?\d+[.']"
)

SOURCES = {
    "groups by the unit": "SELECT id, MIN({c}) AS zebra FROM visits GROUP BY id",
    "a key by the unit": "SELECT id, {c} AS zebra, COUNT(*) AS n FROM visits GROUP BY id, {c}",
    "a window": "SELECT id, LAG({c}) OVER (PARTITION BY id ORDER BY age) AS zebra FROM visits",
    "distinct": "SELECT DISTINCT id, {c} AS zebra FROM visits",
    "a union": "SELECT id, {c} AS zebra FROM visits UNION SELECT id, {c} FROM visits WHERE age > 3",
    "in an expression": "SELECT id, CASE WHEN age > 3 THEN MIN({c}) OVER (PARTITION BY id) END AS zebra FROM visits",
    "two levels": "SELECT id, m AS zebra FROM (SELECT id, MAX({c}) AS m FROM visits GROUP BY id)",
    "a join": "SELECT a.id, b.m AS zebra FROM visits a JOIN (SELECT id, MAX({c}) AS m FROM visits GROUP BY id) b "
    "ON a.id = b.id",
}
COLUMNS = {"at": "DATE_TRUNC('quarter', {z})", "age": "{z} / 7", "free": "LOWER({z})", "endless": "{z} + 1"}
ASKED = ("SELECT {z}, COUNT(*) FROM f GROUP BY 1", "SELECT {e} AS q, COUNT(*) FROM f GROUP BY 1",
         "SELECT {e}, COUNT(*) FROM f GROUP BY {e}", "SELECT SUM({z}) FROM f", "SELECT AVG({e}) FROM f",
         "SELECT MEDIAN({z}) FROM f", "SELECT {e} AS q, SUM({z}) AS s FROM f GROUP BY ROLLUP(q)")  # fmt: skip


def people() -> PrivateTable:
    frame = pa.table(
        {
            "id": [1, 1, 2],
            "at": pa.array([0, 10**12, 2 * 10**12], pa.timestamp("us")),
            "age": [30.5, 31.0, 77.0],
            "free": ["x", "y", "z"],
            "endless": [1.5, 2.5, 3.5],
        }
    )
    columns = {"at": hb.between("2022-01-01T00:00:00", "2024-12-31T00:00:00"), "age": hb.between(0, 120)}
    return hb.table(frame, unit="id", max_groups=2, max_rows=2, columns=columns)


def test_a_computed_column_is_called_as_the_question_calls_it() -> None:
    """Whatever made it, at whatever depth: 8 sources, 4 columns, 7 questions."""
    seen = 0
    with session(visits=people()) as s:
        for (kind, source), (column, expression), asked in itertools.product(SOURCES.items(), COLUMNS.items(), ASKED):
            e = expression.format(z="zebra")
            sql = f"WITH f AS ({source.format(c=column)}) {asked.format(z='zebra', e=e)}"
            try:
                s.check(sql, epsilon=1)
            except (hb.QueryError, hb.PolicyError) as error:
                message = str(error).split("\n")[0]
                seen += 1
                assert not OURS.search(message), (kind, sql, message)
                own = ("GROUP BY", "group by", "declared bounds", "can get")
                if any(word in message for word in own):
                    # Of an expression, or of a table's column under another name, what stands in the text is told.
                    assert "zebra" in message or any(own in message for own in COLUMNS), (kind, sql, message)
    assert seen > 120


@pytest.fixture(scope="module")
def shop() -> Iterator[hb.Session]:
    with session(epsilon=10, **tables()) as opened:
        yield opened


@pytest.mark.parametrize("sql", [sql for sql, *_ in REFUSED], ids=[sql[:60] for sql, *_ in REFUSED])
def test_no_refusal_shows_a_place_or_position(shop: hb.Session, sql: str) -> None:
    with pytest.raises((hb.QueryError, hb.PolicyError)) as caught:
        shop.sql(sql, epsilon=1)
    message = str(caught.value).split("\n")[0]
    assert not [word for word in OURS.findall(message) if word not in sql], message


def test_a_declared_value_of_another_type_is_told_by_the_column() -> None:
    with session(visits=hb.table(pa.table({"id": [1], "n": [2]}), unit="id", max_groups=1, max_rows=1,
                                 columns={"n": hb.one_of("a")})) as s:  # fmt: skip
        with pytest.raises(hb.PolicyError, match="column 'n' is declared"):
            s.check("SELECT n, COUNT(*) FROM visits GROUP BY n", epsilon=1)


@pytest.mark.parametrize(
    ("message", "ours"),
    [
        ("you can only group by an expression of 0 if", True),
        ('declare them: columns={"k1": hb.one_of(...)}', True),
        ("GROUP BY FLOOR(0 / 100)", True),
        ("no column released0", True),
        ("the column t1.age has", True),
        ("GROUP BY FLOOR(age / 100) or 10,000 values", False),
    ],
)
def test_the_search_for_our_names_finds_them(message: str, ours: bool) -> None:
    assert bool(OURS.search(message)) == ours
