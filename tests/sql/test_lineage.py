"""Which columns of an answer hand on released values, and the intervals they have then."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import counts
import hubbub as hb
from hubbub.answer import evaluate
from hubbub.engines.outer import OuterSide
from hubbub.sql.bind.query import TableInfo, parse
from hubbub.tables.aggregate_query import Statement
from hubbub.tables.kinds import Kind
from people import session, visits

CATALOG = {
    "visits": TableInfo({"id": Kind.INTEGER, "ward": Kind.TEXT, "n": Kind.INTEGER}, private=True, unit="id"),
    "wards": TableInfo({"ward": Kind.TEXT, "beds": Kind.INTEGER}, private=False),
}
WARDS = hb.public(pa.table({"ward": ["A", "B", "C"], "beds": [3, 4, 5]}))
PUBLIC = OuterSide({"wards": WARDS})
WITH = "WITH g AS (SELECT ward, COUNT(*) AS c, SUM(n) AS s, AVG(n) AS m FROM visits GROUP BY ward) "
INNER = "(SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward)"


def told(sql: str) -> list[str]:
    """For each column: the aggregates that it hands on, "exact", or "computed"."""
    found = parse(sql, CATALOG, public=PUBLIC)
    assert isinstance(found, Statement)
    names = [" ".join(f"{n}:{what.function.names.sql}" for n, what in o.cells) for o in found.outputs]
    return [name or ("exact" if o.exact else "computed") for name, o in zip(names, found.outputs, strict=True)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (WITH + "SELECT * FROM g WHERE c > 3", ["exact", "0:COUNT(*)", "0:SUM", "0:AVG"]),
        (WITH + "SELECT s, ward FROM g ORDER BY c LIMIT 2", ["0:SUM", "exact"]),
        (WITH + "SELECT (c) AS d, c + 0, c * 1.0 AS e FROM g", ["0:COUNT(*)", "computed", "computed"]),
        (WITH + "SELECT c, RANK() OVER (ORDER BY c), SUM(c) OVER () FROM g", ["0:COUNT(*)", "computed", "computed"]),
        (WITH + "SELECT ward, beds, c FROM g JOIN wards USING (ward)", ["exact", "exact", "0:COUNT(*)"]),
        (
            WITH + "SELECT g.*, w.beds + 1 FROM g LEFT JOIN wards w ON g.ward = w.ward WHERE s > 0",
            ["exact", "0:COUNT(*)", "0:SUM", "0:AVG", "exact"],
        ),
        (WITH + "SELECT a.c, b.s FROM g a JOIN g b ON a.ward = b.ward", ["0:COUNT(*)", "0:SUM"]),
        (WITH + "SELECT DISTINCT c FROM g", ["0:COUNT(*)"]),
        (WITH + "SELECT MAX(c), ANY_VALUE(ward) FROM g", ["computed", "computed"]),
        (WITH + "SELECT ward AS k, c FROM g UNION ALL SELECT 'sum', s FROM g", ["exact", "0:COUNT(*) 0:SUM"]),
        (WITH + "SELECT c FROM g UNION ALL SELECT beds FROM wards", ["computed"]),
        (WITH + "SELECT c FROM g UNION ALL SELECT NULL", ["0:COUNT(*)"]),
        (WITH + "SELECT ward, c, NULL AS s FROM g UNION ALL BY NAME SELECT s, c, ward FROM g", ["computed"] * 3),
        (WITH + "SELECT (SELECT MAX(s) FROM g) AS top, c FROM g", ["computed", "0:COUNT(*)"]),
        (WITH + ", h(x, y) AS (SELECT ward, c FROM g) SELECT y AS ward, x FROM h", ["0:COUNT(*)", "exact"]),
        (WITH + "SELECT beds AS c, c AS d FROM g, wards", ["exact", "0:COUNT(*)"]),
        (WITH + "SELECT random() AS r, 7 AS seven, UPPER(ward) AS u FROM g", ["computed", "exact", "exact"]),
        (f"SELECT * FROM {INNER}", ["exact", "0:COUNT(*)"]),
        (f"FROM {INNER} SELECT c, ward", ["0:COUNT(*)", "exact"]),
        (f"SELECT * EXCLUDE (ward) FROM {INNER}", ["0:COUNT(*)"]),
        (
            f"SELECT ward, c FROM {INNER} UNION ALL SELECT 'all', COUNT(DISTINCT id) FROM visits",
            ["exact", "0:COUNT(*) 1:COUNT(DISTINCT unit)"],
        ),
        ("SELECT UPPER(ward) AS u, COUNT(*) AS c FROM visits GROUP BY ward", ["exact", "0:COUNT(*)"]),
    ],
)
def test_a_column_is_followed_down_to_the_release(sql: str, expected: list[str]) -> None:
    assert told(sql) == expected


DAYS = "(SELECT n, COUNT(*) AS c FROM t GROUP BY n)"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS k FROM (SELECT n FROM t GROUP BY n HAVING COUNT(*) > 10)",
        f"SELECT COUNT(*) AS k FROM {DAYS} WHERE c > 10",
        f"SELECT MAX(n) AS k FROM {DAYS} WHERE c > 10",
        f"SELECT arg_max(n, c) AS k FROM {DAYS}",
        f"SELECT CAST(GREATEST(0, LEAST(c, 40)) AS BIGINT) AS k FROM {DAYS}",
        f"SELECT CAST(GREATEST(0, LEAST(SUM(c), 40)) AS BIGINT) AS k FROM {DAYS}",
        f"SELECT k FROM (SELECT NTILE(3) OVER (ORDER BY c) AS k FROM {DAYS})",
        f"SELECT k FROM (SELECT RANK() OVER (ORDER BY c) AS k, n FROM {DAYS}) WHERE k < 40",
        f"SELECT (SELECT COUNT(*) FROM {DAYS} WHERE c > 10) AS k, 1 AS one FROM {DAYS} LIMIT 1",
        f"SELECT CAST(LEAST(ABS(c), 40) AS BIGINT) AS k FROM {DAYS} UNION ALL SELECT 7",
        f"SELECT CAST(LEAST(ABS(c), 40) AS BIGINT) AS k FROM {DAYS} UNION ALL SELECT LENGTH(ward) FROM wards",
        f"WITH a AS (SELECT COUNT(*) AS k FROM {DAYS} WHERE c > 10) SELECT k FROM a",
    ],
)
def test_what_a_release_is_computed_into_is_noisy_for_certain(sql: str) -> None:
    found = parse(sql.replace("FROM t ", "FROM visits "), CATALOG, public=PUBLIC)
    assert isinstance(found, Statement)
    assert [o.noisy for o in found.outputs if o.name == "k"] == [True]


def of_days() -> Any:
    rows = pa.table({"id": list(range(400)), "n": [i % 40 for i in range(400)]})
    return hb.table(rows, unit="id", max_groups=1, max_rows=1, columns={"n": hb.between(0, 40)})


def test_a_noisy_number_is_never_taken_for_a_key_because_it_has_the_values_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without its interval it would be shown as exact."""
    monkeypatch.setattr(evaluate, "REPEATED", 5)  # that there are ends is looked at, and no more
    with session(10_000, t=of_days()) as opened:
        assert "k_low" in intervals(opened, f"SELECT COUNT(*) AS k FROM {DAYS} WHERE c > 10")


def test_a_key_that_a_function_changes_still_tells_rows_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "REPEATED", 5)
    with session(10_000, t=of_days()) as opened:
        table = intervals(opened, f"SELECT ABS(n) AS k, SUM(c) AS s FROM {DAYS} GROUP BY k")
        assert "k_low" not in table
        assert "s_low" in table


@pytest.fixture
def opened() -> Iterator[hb.Session]:
    with session(10_000, visits=visits(), wards=WARDS) as found:
        yield found


def intervals(opened: hb.Session, sql: str) -> dict[str, Any]:
    found: dict[str, Any] = opened.sql(sql, epsilon=1).intervals(0.95).to_pydict()
    return found


def by_ward(table: dict[str, Any], *columns: str) -> dict[Any, Any]:
    rows = zip(*(table[c] for name in columns for c in (f"{name}_low", f"{name}_high")), strict=True)
    return dict(zip(table["ward"], rows, strict=True))


def test_values_handed_on_have_the_intervals_of_the_release(opened: hb.Session) -> None:
    """The same release is read plainly and through every kind of outer part: the intervals are equal, to the bit."""
    plain = by_ward(
        intervals(opened, "SELECT ward, COUNT(*) AS c, SUM(n) AS s, AVG(n) AS m FROM visits GROUP BY ward"),
        "c",
        "s",
        "m",
    )
    for rest in (
        "SELECT *, RANK() OVER (ORDER BY c) AS place FROM g",
        "SELECT ward, c, s, m FROM g WHERE s IS NOT NULL ORDER BY s DESC LIMIT 3",
        "SELECT * FROM (SELECT * FROM g UNION ALL SELECT * FROM g WHERE c IS NULL)",
        "SELECT g.ward, c, s, m, beds FROM wards JOIN g USING (ward)",
    ):
        found = by_ward(intervals(opened, WITH + rest), "c", "s", "m")
        assert len(found) >= 3
        assert {ward: plain[ward] for ward in found} == found


def test_equal_values_of_two_aggregates_have_the_wider_interval(opened: hb.Session) -> None:
    """A count and a sum of 100 times the noise in one column: each row has its own, a tie the wider one."""
    sql = WITH + "SELECT ward, c AS v FROM g UNION ALL SELECT ward, s FROM g"
    table = intervals(opened, sql)
    widths = [high - low for low, high in zip(table["v_low"], table["v_high"], strict=True)]
    values = table["v"]
    counts, sums = set(values[:4]), set(values[4:])
    assert max(widths[4:]) > 10 * min(w for w, v in zip(widths[:4], values[:4], strict=True) if v not in sums)
    assert all(w == max(widths) for w, v in zip(widths, values, strict=True) if v in sums)
    assert len(counts) + len(sums) > 2


def test_check_tells_the_error_of_what_is_handed_on_and_nothing_of_keys(opened: hb.Session) -> None:
    plain = opened.check("SELECT ward, COUNT(*) AS c, SUM(n) AS s, AVG(n) AS m FROM visits GROUP BY ward", epsilon=1)
    found = opened.check(WITH + "SELECT *, c / beds AS per FROM g JOIN wards USING (ward)", epsilon=1)
    assert found.columns[:3] == plain.columns
    assert [c.name for c in found.columns] == ["c", "s", "m", "per"]
    assert found.columns[3].plus_minus is None
    upper = opened.check("SELECT UPPER(ward) AS ward, COUNT(*) AS c FROM visits GROUP BY ward", epsilon=1)
    assert [c.name for c in upper.columns] == ["c"]


def test_a_weight_is_for_what_is_handed_on_too(opened: hb.Session) -> None:
    sql = WITH + "SELECT ward, c, s FROM g"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        even, heavy = (opened.check(sql, epsilon=1, weights={"c": w}) for w in (1, 1000))
    assert (heavy.columns[0].plus_minus or 0) < (even.columns[0].plus_minus or 0)


@pytest.mark.parametrize(
    "number", ["0.1", "beds / 3", "CAST(beds AS DECIMAL(9, 3)) + 0.001", "beds::HUGEINT", "'NaN'::DOUBLE"]
)
def test_exact_numbers_of_every_type_tell_rows_apart(
    opened: hb.Session, number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate, "REPEATED", counts.part(300, 5))  # the ends are not looked at closely
    sql = WITH + f"SELECT {number} AS k, ward, c + 1 AS more, RANK() OVER (ORDER BY c) FROM g JOIN wards USING (ward)"
    table = intervals(opened, sql)
    assert len(table["more_low"]) == 3
    assert all(low < high for low, high in zip(table["more_low"], table["more_high"], strict=True))


def test_rows_of_numbers_from_public_tables_are_told_apart_by_them(opened: hb.Session) -> None:
    """A number of a public table is exact, so a computed column beside it has draws row by row."""
    table = intervals(opened, WITH + "SELECT beds, c * 2 AS twice FROM wards JOIN g USING (ward) ORDER BY c")
    assert "beds_low" not in table
    assert all(
        low < value < high
        for value, low, high in zip(*(table[f"twice{e}"] for e in ("", "_low", "_high")), strict=True)
    )
