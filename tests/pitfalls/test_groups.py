"""Which groups and rows count, and who owns them: P7 to P9, P11, P13, P14 and P16."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from hubbub.audit import Question
from hubbub.mechanisms import GroupThreshold, recording
from pitfalls.worlds import BASE, COLUMNS, WITH_DELTA, answer, frame, hold, opened, same
from seeded import SeededBits

FOUND = "SELECT s, COUNT(*) AS c FROM t GROUP BY s"


def test_p07_a_public_group_is_there_with_no_row_and_with_one() -> None:
    sql = "SELECT g, COUNT(*) AS c, AVG(x) AS m, MEDIAN(x) AS q FROM t GROUP BY g"
    hold([[{"g": "B", "x": 5.0}]], sql, base={1: [{"g": "A", "x": 1.0}]})


def test_p07_a_private_group_of_one_unit_shows_with_probability_delta_at_most() -> None:
    """Of the very law that is drawn from: a group of nobody never shows, one unit's C groups with delta together."""
    for relation, times in (("add_remove", 1), ("replace", 2)):
        with opened(frame(BASE), relation, WITH_DELTA, max_groups=3) as session, recording() as records:
            session.sql(FOUND, epsilon=1, delta="1e-4")
        (law,) = [r.distribution for r in records if r.norm == "groups"]
        assert isinstance(law, GroupThreshold)
        assert law.groups == 3 * times
        assert law.log_prob(1, 0) == -float("inf")
        assert 0 < 1 - (1 - law.one_unit) ** law.groups <= 1e-4
    alone = [[{"s": f"new {i}", "x": 1.0} for i in range(9)]]
    hold(alone, FOUND, "SELECT s, g, AVG(x) AS m FROM t GROUP BY s, g", budget=WITH_DELTA)


def test_p08_of_lonely_groups_no_more_are_shown_than_delta_says() -> None:
    """100,000 units alone in their groups at delta = 0.01: as many are shown as the law says, give or take 6.2
    standard deviations (probability below 1e-9), and the law says 1,000 at most.
    """
    n, sql = 100_000, "SELECT s, COUNT(DISTINCT id) AS u FROM t GROUP BY s"
    table = pa.table({"id": list(range(n)), "s": [f"s{i}" for i in range(n)]})
    asked: dict[str, Any] = {"budget": hb.Budget(epsilon=10, delta="0.1"), "columns": {}, "bits": SeededBits(8)}
    with opened(table, max_groups=1, max_rows=1, **asked) as session, recording() as records:
        shown = session.sql(sql, epsilon=1, delta="0.01")
    law = records[0].distribution
    assert 0.001 < law.one_unit <= 0.01
    assert abs(len(shown) - n * law.one_unit) <= 6.2 * math.sqrt(n * law.one_unit)


def test_p09_the_order_of_an_answer_is_declared_and_not_the_rows(tmp_path: Path) -> None:
    table = frame(BASE)
    backward = table.take(pa.array(range(len(table) - 1, -1, -1)))
    asked = ("SELECT g, COUNT(*) AS c FROM t GROUP BY g", "SELECT g, COUNT(*) AS c FROM t GROUP BY g LIMIT 2")
    computed = "SELECT UPPER(g) || 'x' AS k, n > 3 AS m, COUNT(*) AS c FROM t GROUP BY 1, 2"
    dictionary = backward.set_column(1, "g", backward["g"].dictionary_encode())
    same(table, dictionary, asked[1], computed)
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    pq.write_table(backward, tmp_path / "b.parquet", row_group_size=5)
    same(tmp_path / "a.parquet", tmp_path / "b.parquet", computed)
    first = [[{"g": "B", "x": 1.0}], [{"g": None, "x": 1.0}], [{"g": "never declared", "x": 1.0}]]
    hold(first, asked[1], computed)
    with opened(table) as session:
        assert [row[0] for row in session.sql(asked[0], epsilon=1).rows()] == ["A", "B", None]
        assert [row[0] for row in session.sql(asked[1], epsilon=1).rows()] == ["A", "B"]


def test_p09_private_groups_stand_in_the_order_of_their_keys() -> None:
    units = {i: [{"s": "zyx"[i % 3], "n": i % 2}] for i in range(600)}
    backward = dict(reversed(units.items()))
    found = []
    for people in (units, backward):
        with opened(frame(people), budget=WITH_DELTA) as session:
            sql = "SELECT s, n, COUNT(*) AS c FROM t GROUP BY s, n"
            found.append([row[:2] for row in session.sql(sql, epsilon=50, keys={"n": [0, 1]}).rows()])
    assert found[0] == found[1] == [(s, n) for s in "xyz" for n in (0, 1)]


NOT_BY_ROW = [
    "SELECT COUNT(*) FROM (SELECT id, RANK() OVER (ORDER BY x) AS k FROM t) WHERE k > 5",
    "SELECT COUNT(*) FROM (SELECT id, ROW_NUMBER() OVER () AS k FROM t) WHERE k > 5",
    "SELECT COUNT(*) FROM (SELECT id, LAG(x) OVER (ORDER BY n) AS k FROM t) WHERE k > 5",
    "SELECT COUNT(*) FROM (SELECT id, DENSE_RANK() OVER (PARTITION BY g ORDER BY x) AS k FROM t) WHERE k > 1",
    "SELECT COUNT(*) FROM (SELECT id, x - AVG(x) OVER () AS d FROM t) WHERE d > 0",
    "SELECT COUNT(*) FROM (SELECT id, NTILE(4) OVER (ORDER BY x) AS q FROM t) WHERE q = 1",
    "SELECT COUNT(*) FROM (SELECT id, x FROM t ORDER BY x LIMIT 5)",
    "SELECT COUNT(*) FROM (SELECT * FROM t OFFSET 3)",
    "SELECT COUNT(*) FROM t TABLESAMPLE 10 PERCENT",
    "SELECT COUNT(*) FROM (SELECT * FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY g ORDER BY x) = 1)",
    "SELECT COUNT(*) FROM t WHERE rowid > 5",
    "SELECT COUNT(*) FROM (SELECT DISTINCT ON (g) id, g FROM t)",
    "SELECT COUNT(*) FROM (SELECT g, COUNT(*) OVER (PARTITION BY g) AS k FROM t) WHERE k > 1",
    "SELECT COUNT(*) FROM t a JOIN t b ON a.g = b.g",
    "SELECT COUNT(*) FROM t a WHERE x > ALL (SELECT x FROM t b WHERE b.g = a.g)",
    "SELECT COUNT(*) FROM t WHERE random() < 0.5",
    "WITH RECURSIVE r AS (SELECT id FROM t UNION ALL SELECT id FROM r) SELECT COUNT(*) FROM r",
]
BY_UNIT = [
    "SELECT COUNT(*) AS c FROM (SELECT id, RANK() OVER (PARTITION BY id ORDER BY x) AS k FROM t) WHERE k > 1",
    "SELECT COUNT(*) AS c FROM (SELECT id, LAG(x) OVER (PARTITION BY id ORDER BY n, x) AS k FROM t) WHERE k > 5",
    "SELECT COUNT(*) AS c FROM (SELECT id, x - AVG(x) OVER (PARTITION BY id) AS d FROM t) WHERE d > 0",
    "SELECT COUNT(*) AS c FROM (SELECT * FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY x DESC) = 1)",
    "SELECT COUNT(*) AS c FROM (SELECT DISTINCT id, g FROM t)",
]


@pytest.mark.parametrize("sql", NOT_BY_ROW)
def test_p11_what_looks_at_other_peoples_rows_is_refused(sql: str) -> None:
    with opened(frame(BASE)) as session:
        with pytest.raises(hb.QueryError):
            session.sql(sql, epsilon=1)
        assert session.history() == []


def test_p11_the_same_within_a_unit_is_answered() -> None:
    many = [{"g": g, "x": x, "n": n} for g in "ABC" for x in (1.0, 1.0, float("nan")) for n in (1, 2)]
    hold([many], *BY_UNIT)


REBOUND = [
    # the key that rows are bounded by is overwritten below the aggregate
    "SELECT k, COUNT(*) AS c FROM (SELECT id, CASE WHEN x > 5 THEN 'A' ELSE 'B' END AS k FROM (SELECT id, LEAST(x, 9) "
    "AS x, g FROM t)) GROUP BY k",
    # groups of a unit become rows, and are grouped again
    "SELECT big, COUNT(*) AS c, SUM(LEAST(k, 5)) AS s FROM (SELECT id, g, COUNT(*) AS k, COUNT(*) > 2 AS big FROM t "
    "GROUP BY id, g) GROUP BY big",
    # a unit's rows meet each other: their number is squared
    "SELECT a.g, COUNT(*) AS c, SUM(b.n) AS s FROM t a JOIN t b ON a.id = b.id GROUP BY a.g",
    # renamed, filtered, doubled
    Question(
        "SELECT h, COUNT(*) FROM (SELECT id, g AS h FROM t WHERE n > 1 UNION ALL SELECT id, 'A' FROM t) GROUP BY h",
        {"keys": {"h": ["B", "A"]}},
    ),
    # every row in one group after all
    "SELECT 1 = n - n + 1 AS k, COUNT(*) AS c, AVG(x) AS m FROM t GROUP BY 1",
    "SELECT g, n > 3 AS k, COUNT(*) AS c, COUNT(DISTINCT id) AS u FROM t GROUP BY ROLLUP (g, (n > 3))",
]


def test_p13_contributions_are_bounded_where_they_are_counted() -> None:
    everywhere = [{"g": g, "x": 10.0 * n, "n": n} for g in ("A", "B", None, "other") for n in range(-5, 11)]
    hold([everywhere], *REBOUND)


@pytest.mark.parametrize("keep", [1, 2, 3, 4])
def test_p14_as_many_groups_of_a_unit_are_kept_as_are_paid_for(keep: int) -> None:
    people, groups = 60, "abcd"
    table = pa.table({"id": [i for i in range(people) for _ in groups], "g": [*groups] * people})
    columns = {"g": hb.one_of(*groups)}
    rows = answer(table, "SELECT g, COUNT(*) AS c FROM t GROUP BY g", max_groups=keep, max_rows=1, columns=columns)
    assert sum(count for _, count in rows) == keep * people
    units = answer(
        table, "SELECT g, COUNT(DISTINCT id) AS c FROM t GROUP BY g", max_groups=keep, max_rows=1, columns=columns
    )
    assert units == rows


@pytest.mark.parametrize(
    ("sql", "changes"),
    [
        ("SELECT AVG(y) FROM t", {}),
        ("SELECT SUM(x + y) FROM t", {}),
        ("SELECT MEDIAN(y) FROM t", {}),
        ("SELECT MAX(y) FROM t", {}),
        ("SELECT s, COUNT(*) FROM t GROUP BY s", {}),
        ("SELECT y, COUNT(*) FROM t GROUP BY y", {}),
        ("SELECT COUNT(*) FROM t", {"max_groups": None, "max_rows": None}),
        ("SELECT g, COUNT(*) FROM t GROUP BY g", {"max_groups": None}),
        ("SELECT g, SUM(x) FROM t GROUP BY g", {"max_rows": None}),
    ],
)
def test_p16_no_bound_category_or_limit_is_taken_from_the_rows(sql: str, changes: dict[str, Any]) -> None:
    table = frame(BASE).append_column("y", pa.array([1.0] * 16))
    texts = []
    for rows in (table, table.slice(0, 0)):
        with opened(rows, **changes) as session:
            with pytest.raises(hb.PolicyError, match=r"[Dd]eclare") as caught:
                session.sql(sql, epsilon=1)
            assert session.history() == []
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("wrong", [(1, 0), (float("nan"), 1), (0, float("inf")), (None, 1)])
def test_p16_a_declared_range_is_finite_and_the_right_way_round(wrong: tuple[Any, Any]) -> None:
    with pytest.raises(hb.HubbubError):
        opened(frame(BASE), columns={**COLUMNS, "x": hb.between(*wrong)})


@pytest.mark.parametrize("budget", [hb.Budget(3), hb.Budget(3, "1e-6")], ids=["pure", "with delta"])
def test_p13_a_constant_has_no_sensitivity_under_either_norm(budget: hb.Budget) -> None:
    """Found by the grammar: the norm of what never moves was the root of -1."""
    with opened(frame(BASE), budget=budget, bounding="norm") as session:
        release = session.sql("SELECT g, AVG(1) AS one, SUM(0) AS none, COUNT(*) AS c FROM t GROUP BY g", epsilon=1)
        assert [row[1:3] for row in release.rows()] == [(1.0, pytest.approx(0, abs=0.1))] * 3
