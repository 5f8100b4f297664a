"""What hostile reviewers of the rebuilt core found, each once."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.engines.outer import OuterSide
from hubbub.mechanisms import recording
from people import HUGE, session, visits


def one_person(**changes: Any) -> Any:
    frame = pa.table({"id": [1], "n": [5]})
    declared: dict[str, Any] = {"unit": "id", "max_groups": 2, "max_rows": 5, "columns": {"n": hb.between(0, 10)}}
    return hb.table(changes.pop("source", frame), **(declared | changes))


def exact(opened: Any, sql: str, **more: Any) -> list[tuple[tuple[Any, ...], Any]]:
    with recording() as records:
        opened.sql(sql, epsilon=1, fresh=True, **more)
    return [(r.values, r.sensitivity) for r in records]


def test_a_full_join_that_keeps_both_sides_apart_is_bounded_like_many_rows() -> None:
    sql = (
        "WITH a AS (SELECT id, COUNT(*) AS k FROM t GROUP BY id), b AS (SELECT id, SUM(n) AS s FROM t GROUP BY id) "
        "SELECT COUNT(*) FROM a FULL JOIN b ON a.id = b.id AND a.k > 100"
    )
    with session(t=one_person()) as opened:
        ((values, sensitivity),) = exact(opened, sql)
    assert values == (2,)
    assert sensitivity >= 2


def test_a_key_that_a_cast_makes_less_than_unique_is_no_key() -> None:
    frame = pa.table({"x": [2.0**62]})
    sql = "SELECT COUNT(*) FROM t JOIN (SELECT 4611686018427387904 + unnest(range(200)) AS k) p ON t.x = p.k"
    with session(t=hb.table(frame, unit=hb.EACH_ROW, max_groups=1, max_rows=3)) as opened:
        ((values, sensitivity),) = exact(opened, sql)
    assert values[0] <= sensitivity


def test_a_row_meets_one_group_alone() -> None:
    table = hb.table(pa.table({"d": [dt.datetime(2020, 1, 1)]}), unit=hb.EACH_ROW)
    twice = [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]
    case = "CASE WHEN d > DATE '2019-01-01' THEN DATE '2020-01-01' ELSE TIMESTAMP '2020-01-01 00:00:00' END"
    with session(t=table) as opened:
        with pytest.raises(hb.PolicyError, match="stands twice"):
            opened.sql("SELECT d, COUNT(*) FROM t GROUP BY d", epsilon=1, keys={"d": twice})
        ((values, _),) = exact(opened, f"SELECT {case} AS k, COUNT(*) FROM t GROUP BY 1")
    assert values == (1,)


def test_a_key_path_ends_in_a_named_unit_of_one_space() -> None:
    orders = pa.table({"row": [1, 2], "oid": [1, 2]})
    items = hb.table(pa.table({"oid": [1]}), unit="orders.row", through="oid", max_groups=1, max_rows=1)
    with (
        pytest.raises(hb.PolicyError, match="the path ends"),
        session(orders=hb.table(orders, unit=hb.EACH_ROW), items=items),
    ):
        pass
    elsewhere = hb.table(pa.table({"oid": [1]}), unit="orders.row", through="oid", unit_space="other")
    with (
        pytest.raises(hb.PolicyError, match="unit_space"),
        session(orders=hb.table(orders, unit="row", unit_space="people"), items=elsewhere),
    ):
        pass
    with (
        pytest.raises(hb.PolicyError, match="back to where"),
        session(a=hb.table(orders, unit="b.row", through="oid"), b=hb.table(orders, unit="a.row", through="oid")),
    ):
        pass


def test_a_wide_number_is_no_error_of_the_engine() -> None:
    sql = "SELECT COUNT(*) AS c FROM (SELECT id, MAX(x) AS m FROM t GROUP BY id) WHERE m > 0"
    found = []
    for x in (5, 2**63 + 5):
        with session(t=one_person(source=pa.table({"id": [1], "x": pa.array([x], pa.uint64())}), columns={})) as opened:
            found.append(opened.sql(sql, epsilon=HUGE).to_arrow().schema)
    assert found[0] == found[1]


def test_two_questions_that_read_a_release_in_another_order_are_two() -> None:
    sql = (
        "SELECT COUNT(*) FROM visits v JOIN (SELECT ward, {} AS lo, {} AS hi FROM visits GROUP BY ward) x USING (ward) "
        "WHERE v.n < x.hi"
    )
    with session() as opened:
        first = opened.sql(sql.format("SUM(n)", "AVG(n)"), epsilon=HUGE)
        second = opened.sql(sql.format("AVG(n)", "SUM(n)"), epsilon=HUGE)
    assert second.charged
    assert first.rows() == [(2,)]
    assert second.rows() == [(3,)]


def test_a_public_file_that_changes_meanwhile_is_met_as_it_was_priced(tmp_path: Path) -> None:
    path = tmp_path / "pub.csv"
    path.write_text("ward,region\nA,x\nB,y\n")
    table = hb.table(pa.table({"ward": ["A"]}), unit=hb.EACH_ROW)
    with session(t=table, pub=hb.public(path)) as opened:
        charge = opened._ledger.charges.charge_once

        def rewritten(asked: Any) -> Any:
            path.write_text("ward,region\n" + "A,x\n" * 1000)
            return charge(asked)

        opened._ledger.charges.charge_once = rewritten  # type: ignore[method-assign]
        release = opened.sql("SELECT COUNT(*) AS c FROM t JOIN pub USING (ward)", epsilon=HUGE)
    assert release.rows() == [(1,)]


def test_what_reads_a_release_cannot_be_refined() -> None:
    with session() as opened:
        release = opened.sql("SELECT COUNT(*) FROM visits WHERE n > (SELECT AVG(n) FROM visits)", epsilon=1)
        with pytest.raises(hb.QueryError, match="refine"):
            release.refine(1)


def test_weights_are_part_of_the_question() -> None:
    sql = "SELECT COUNT(*) AS c, SUM(n) AS s FROM visits"
    with session() as opened:
        opened.sql(sql, epsilon=1, weights={"s": 1000})
        assert opened.sql(sql, epsilon=1).charged


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT SUM(n) AS a1, COUNT(*) AS c, ward FROM visits GROUP BY ward HAVING a1 > 9", [(10.0, 3, "A")]),
        ("SELECT COUNT(*) AS place, ward FROM visits GROUP BY ward HAVING place > 1", [(3, "A")]),
        ("SELECT COUNT(*) AS ward, ward AS w FROM visits GROUP BY ward ORDER BY ward DESC LIMIT 1", [(3, "A")]),
        ("SELECT SUM(n) // 4 AS q FROM visits", [(5.0,)]),
    ],
    ids=["a1", "place", "order", "whole"],
)
def test_names_of_the_answer_mean_what_they_say(sql: str, rows: list[tuple[Any, ...]]) -> None:
    with session() as opened:
        assert opened.sql(sql, epsilon=HUGE).rows() == rows


def test_two_columns_of_one_name_are_refused() -> None:
    sql = (
        "SELECT a.c, b.c, a.ward FROM (SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward) a "
        "JOIN (SELECT ward, SUM(n) AS c FROM visits GROUP BY ward) b ON a.ward = b.ward"
    )
    with session() as opened, pytest.raises(hb.QueryError, match="'c'"):
        opened.sql(sql, epsilon=1)


@pytest.mark.parametrize(
    "more",
    [
        {"params": 5},
        {"params": {"x": 10**5000}},
        {"params": {1: 2}},
        {"keys": 5},
        {"keys": {"ward": 5}},
        {"keys": {"n": [float("nan")]}},
        {"weights": 5},
        {"within": "x", "at_most": 1, "epsilon": None},
        {"within": float("nan"), "at_most": 1, "epsilon": None},
        {"assume_rows": 0},
    ],
    ids=lambda more: next(iter(more)),
)
def test_an_argument_of_another_kind_is_an_error_of_ours(more: dict[str, Any]) -> None:
    with session() as opened:
        with pytest.raises(hb.HubbubError):
            opened.sql("SELECT ward, COUNT(*) FROM visits GROUP BY ward", **({"epsilon": 1} | more))
        assert not opened.history()


def test_the_engine_tells_nothing_of_itself() -> None:
    with session(visits=visits(), wards=hb.public(pa.table({"ward": ["A"]}))) as opened:
        for call in ("current_setting('temp_directory')", "version()", "current_database()"):
            for table in ("visits", "wards"):
                with pytest.raises(hb.QueryError, match="of the engine"):
                    opened.sql(f"SELECT COUNT(*), {call} FROM {table}", epsilon=1)


def test_a_part_that_fails_on_a_release_says_that_it_was_charged() -> None:
    sql = "SELECT COUNT(*) FROM visits WHERE n > (SELECT CAST(CAST(COUNT(*) AS VARCHAR) || 'z' AS INT) FROM visits)"
    with session() as opened:
        with pytest.raises(hb.QueryError, match="was charged"):
            opened.sql(sql, epsilon=1)
        assert [e.state for e in opened.history()] == ["failed"]


ENDLESS = "(SELECT unnest(range(1000000)) AS x) a, (SELECT unnest(range(1000000)) AS y) b"


def short_of_time(opened: Any, seconds: float) -> None:
    opened._data.outer._seconds = seconds


def test_an_endless_outer_part_is_stopped_and_its_private_part_kept() -> None:
    with session(visits=visits(), wards=hb.public(pa.table({"ward": ["A"]}))) as opened:
        short_of_time(opened, 0.3)
        with pytest.raises(hb.QueryError, match=r"0\.3 seconds(.|\n)*charged(.|\n)*stored"):
            opened.sql(f"SELECT COUNT(*) AS c, (SELECT COUNT(*) FROM {ENDLESS} WHERE x + y = 3) FROM visits", epsilon=1)
        assert [e.state for e in opened.history()] == ["shown"]
        assert not opened.sql("SELECT COUNT(*) AS c FROM visits", epsilon=1).charged
        with pytest.raises(hb.QueryError, match="as long as it may"):
            opened.sql(f"SELECT * FROM wards, {ENDLESS}", epsilon=1)


def test_an_outer_part_has_a_bounded_memory_and_a_bounded_answer() -> None:
    wards = {"wards": hb.public(pa.table({"ward": ["A"]}))}
    small = OuterSide(wards, memory=2**25)
    with pytest.raises(hb.QueryError, match="more memory"):
        small.run("SELECT COUNT(DISTINCT x) FROM (SELECT unnest(range(8000000)) AS x)", ("wards",), {})
    with pytest.raises(hb.QueryError, match="33,554,432 bytes"):
        small.run("SELECT unnest(range(8000000)) AS x", (), {})
    assert small.run("SELECT ward FROM wards", ("wards",), {}).to_pydict() == {"ward": ["A"]}


def test_an_outer_part_that_is_slow_to_draw_again_has_an_answer_without_intervals() -> None:
    sql = "SELECT SUM(c) AS s FROM (SELECT COUNT(*) AS c FROM visits), (SELECT unnest(range(200000)) AS x) t"
    with session() as opened:
        release = opened.sql(sql, epsilon=HUGE)
        release._answered.outer._seconds = 0.05  # type: ignore[union-attr]
        assert release.rows() == [(1_200_000.0,)]
        assert "± ?" in str(release)
        with pytest.raises(hb.QueryError, match="Ask for fewer"):
            release.error.draws(100_000)


@pytest.mark.parametrize(
    "value",
    ["DATE 'infinity'", "TIMESTAMP '-infinity'", "TIMESTAMPTZ 'infinity'", "TIME '24:00:00'", "[DATE 'infinity']"],
)
def test_a_time_that_python_has_not_is_null(value: str) -> None:
    with session(visits=visits(), wards=hb.public(pa.table({"ward": ["A"]}))) as opened:
        assert opened.sql(f"SELECT COUNT(*) AS c, {value} AS d FROM visits", epsilon=HUGE).rows() == [(6, None)]
        assert opened.sql(f"SELECT {value} AS d FROM wards", epsilon=1).to_dict() == {"d": [None]}


@pytest.mark.parametrize("value", ["'10'::BIT", "union_value(a := 1)", "'1'::UHUGEINT", "['1'::BIGNUM]"])
def test_a_type_that_no_answer_holds_is_refused_before_the_charge(value: str) -> None:
    with session() as opened:
        with pytest.raises(hb.QueryError, match="cast it to VARCHAR"):
            opened.sql(f"SELECT COUNT(*) AS c, {value} AS d FROM visits", epsilon=1)
        assert not opened.history()


@contextmanager
def small() -> Iterator[Any]:
    """A session with a delta, of a budget that people could live with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        opened = hb.Session({"visits": visits()}, budget=hb.Budget(3, 1e-6), ledger=None)
    with opened:
        yield opened


def refused(opened: Any, ask: Any) -> None:
    """An error of ours whose text can be printed, and nothing charged."""
    before = len(opened.history())
    with pytest.raises(hb.HubbubError) as caught:
        ask()
    str(caught.value).encode()
    assert len(opened.history()) == before


HALF = "\ud800"


@pytest.mark.parametrize("bad", [5, [], b"x", HALF, 1.5, {"a": 1}], ids=ascii)
def test_a_name_of_another_kind_is_refused(bad: Any) -> None:
    sql = "SELECT COUNT(*) FROM visits"
    with session() as opened:
        refused(opened, lambda: opened.sql(sql, epsilon=1, idempotency_key=bad))
        refused(opened, lambda: opened.table(bad).agg(hb.count()).run(epsilon=1))
        refused(opened, lambda: opened.refresh(bad))
        refused(opened, lambda: opened.reserve(epsilon=1, unit_space=bad).__enter__())
        refused(opened, lambda: opened.suggest_bounds(bad, epsilon=1))
        refused(opened, lambda: opened.suggest_bounds("visits", bad, epsilon=1))
        refused(opened, lambda: opened.receipt(bad))
        refused(opened, lambda: opened.plan(bad or None))
        refused(opened, lambda: opened.plan([bad]))
        refused(opened, lambda: opened.plan([(bad, 1)]))
        refused(opened, lambda: opened.plan([(sql, bad if bad not in (5, 1.5) else None)]))
        answer = opened.sql(sql, epsilon=1)
        refused(opened, lambda: answer.intervals(bad))
        refused(opened, lambda: answer[bad])
        refused(opened, lambda: answer.refine(bad if bad not in (5, 1.5) else None))


@pytest.mark.parametrize("bad", [5, [], b"x", HALF, "", {"a": 1}], ids=ascii)
def test_a_session_is_not_opened_under_a_name_of_another_kind(bad: Any) -> None:
    for options in ({"analyst": bad}, {"ledger": bad} if bad not in (HALF, "") else {"budget": bad}):
        with pytest.raises(hb.HubbubError):
            hb.Session({"visits": visits()}, **({"budget": hb.Budget(1), "ledger": None} | options))
    with pytest.raises(hb.HubbubError):
        hb.Session.from_policy(bad if bad != "" else "nowhere.toml")
    if isinstance(bad, str):
        with pytest.raises(hb.HubbubError):
            hb.Session({bad: visits()}, budget=hb.Budget(1), ledger=None)
        with pytest.raises(hb.HubbubError):
            hb.Session({"visits": visits(unit_space=bad or HALF)}, budget=hb.Budget(1), ledger=None)


@pytest.mark.parametrize(
    "more",
    [
        {"rows": 0},
        {"rows": True},
        {"rows": 2.5},
        {"rows_per_unit": 0},
        {"rows_per_unit": "x"},
        {"columns": "ward"},
        {"columns": 5},
        {"columns": [HALF]},
        {"edges": 5},
        {"edges": {"age": 5}},
        {"edges": {"age": ["x"]}},
        {"constraints": "age < 3 implies ward = A"},
        {"constraints": [5]},
        {"method": 5},
        {"thorough": "no"},
        {"fresh": "no"},
        {"epsilon": 10**400},
        {"epsilon": None},
    ],
    ids=str,
)
def test_a_synthetic_table_is_not_asked_for_with_arguments_of_another_kind(more: dict[str, Any]) -> None:
    with small() as opened:
        refused(opened, lambda: opened.synthesize("visits", **({"epsilon": 1} | more)))
        if more.keys() & {"edges", "rows_per_unit", "fresh", "epsilon"}:
            refused(opened, lambda: opened.marginals("visits", [("ward",)], **({"epsilon": 1} | more)))


@pytest.mark.parametrize("bad", [None, 5, "ward", {"ward": 1}, [5], ["ward"], [None], [(HALF,)], [b"x"]], ids=ascii)
def test_marginals_are_sets_of_columns(bad: Any) -> None:
    with small() as opened:
        refused(opened, lambda: opened.marginals("visits", bad, epsilon=1))


def regions() -> Any:
    return hb.public(pa.table({"ward": ["A", "B", "D"], "region": ["x", "x", "y"]}))


ON = "FROM wards w LEFT JOIN visits v ON w.ward = v.ward"


@pytest.mark.parametrize(
    "shown",
    [
        "COUNT(*)",
        "COUNT(1)",
        "COUNT(w.region)",
        "COUNT(*) FILTER (WHERE w.region = 'x')",
        "COUNT(COALESCE(v.n, 0))",
        "COUNT_IF(v.n IS NULL)",
        "COUNT(CASE WHEN v.n > 1 THEN 1 ELSE 0 END)",
        "AVG(COALESCE(v.n, 0))",
        "SUM(COALESCE(v.n, 1))",
    ],
)
def test_a_public_row_without_people_is_not_counted_in_silence(shown: str) -> None:
    with session(visits=visits(), wards=regions()) as opened:
        for tables in (ON, "FROM visits v RIGHT JOIN wards w ON w.ward = v.ward"):
            with pytest.raises(hb.QueryError, match=r"public row(.|\n)*v\.id"):
                opened.sql(f"SELECT w.ward, {shown} AS c {tables} GROUP BY w.ward", epsilon=1)
        assert not opened.history()


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("COUNT(v.id)", [3, 1, 0]),
        ("COUNT(DISTINCT v.id)", [3, 1, 0]),
        ("COUNT(v.n + 1)", [3, 1, 0]),
        ("COUNT(*) FILTER (WHERE v.n IS NOT NULL AND w.region = 'x')", [3, 1, 0]),
        ("COUNT_IF(v.n > 1)", [2, 1, 0]),
        ("SUM(v.n)", [10, 2, 0]),
        ("SUM(COALESCE(v.n, 0))", [10, 2, 0]),
        ("SUM(CASE WHEN v.n > 1 THEN 1 ELSE 0 END)", [2, 1, 0]),
        ("COUNT(DATE_TRUNC('month', v.day))", [3, 1, 0]),
    ],
)
def test_what_leaves_a_public_row_without_people_out_is_answered(shown: str, expected: list[int]) -> None:
    with session(visits=visits(), wards=regions()) as opened:
        rows = opened.sql(f"SELECT w.ward, {shown} AS c {ON} GROUP BY w.ward", epsilon=HUGE).rows()
    assert [round(float(c), 3) for _, c in rows] == expected


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (
            "SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward ORDER BY ALL",
            [("A", 3), ("B", 1), ("C", 1), (None, 1)],
        ),
        (
            "SELECT COUNT(*) AS c, ward FROM visits GROUP BY ward ORDER BY ALL DESC NULLS LAST LIMIT 3",
            [(3, "A"), (1, "C"), (1, "B")],
        ),
        ("SELECT COUNT(*) AS c FROM visits ORDER BY ALL", [(6,)]),
        (
            "SELECT ward, SUM(COUNT(*)) FILTER (WHERE ward <> 'A') OVER () AS s FROM visits GROUP BY ward LIMIT 1",
            [("A", 2.0)],
        ),
        ("SELECT ward, COUNT(*) AS c, c / SUM(c) OVER () AS share FROM visits GROUP BY ward LIMIT 1", [("A", 3, 0.5)]),
        ("SELECT ward, MAX(ward) OVER () AS last FROM visits GROUP BY ward HAVING COUNT(*) > 2", [("A", "A")]),
        ("SELECT SUM(n) AS ward, ward AS w FROM visits GROUP BY ward LIMIT 1", [(10.0, "A")]),
    ],
    ids=["all", "all-desc", "all-one", "filter", "names", "key", "column-first"],
)
def test_sql_above_the_aggregate_that_was_refused(sql: str, rows: list[tuple[Any, ...]]) -> None:
    with session() as opened:
        assert opened.sql(sql, epsilon=HUGE).rows() == rows


def test_a_window_over_a_column_of_people_says_what_to_write() -> None:
    with session() as opened:
        for sql in (
            "SELECT ward, SUM(n) OVER () FROM visits GROUP BY ward",
            "SELECT COUNT(*), LAG(n + 1) IGNORE NULLS OVER (ORDER BY 1) FROM visits",
        ):
            with pytest.raises(hb.QueryError, match=r"rows of the answer(.|\n)*\(SUM\(n\)\) OVER"):
                opened.sql(sql, epsilon=1)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY n)",
        "SELECT COUNT(*) FROM (SELECT id, COUNT(*) AS k FROM visits GROUP BY id ORDER BY k)",
        "SELECT COUNT(*) FROM visits WHERE id IN (SELECT id FROM visits ORDER BY n)",
        "SELECT COUNT(*) FROM (SELECT id FROM visits UNION SELECT id FROM visits ORDER BY id)",
        "WITH t AS (SELECT n FROM visits ORDER BY ALL) SELECT SUM(n) FROM t",
    ],
)
def test_an_order_that_nobody_sees_is_refused(sql: str) -> None:
    with session() as opened, pytest.raises(hb.QueryError, match="ORDER BY below an aggregate"):
        opened.sql(sql, epsilon=1)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        ("random()", "function RANDOM "),
        ("string_agg(ward, ',')", "aggregate STRING_AGG "),
        ("bool_and(ok)", "aggregate BOOL_AND "),
        ("arg_max((n), age)", "aggregate ARG_MAX "),
        ("any_value(n)", "aggregate ANY_VALUE "),
        ("SUM(regexp_replace(ward, 'a', 'b'))", "function REGEXP_REPLACE "),
        ("SUM([n])", r"a list, \[...\], "),
        ("SUM(cbrt(n))", "function CBRT "),
    ],
)
def test_a_refusal_names_a_function_as_it_was_written(call: str, word: str) -> None:
    with session() as opened, pytest.raises(hb.QueryError, match=rf"{word}is not supported"):
        opened.sql(f"SELECT {call} FROM visits", epsilon=1)


def test_a_logarithm_to_another_base_is_said_as_a_quotient() -> None:
    with session() as opened:
        for call in ("log2(n)", "LOG(2, n)"):
            with pytest.raises(hb.QueryError, match=r"write \(LN\(n\) / LN\(2\)\)\."):
                opened.sql(f"SELECT SUM({call}) FROM visits", epsilon=1)


def test_a_refusal_below_the_aggregate_names_a_function_as_it_was_written() -> None:
    for call in ("string_agg(ward, ',')", "approx_count_distinct(n)", "any_value(n)"):
        word = call.partition("(")[0].upper()
        with session() as opened:
            with pytest.raises(hb.QueryError, match=f"{word} is not supported"):
                opened.sql(f"SELECT COUNT(*) FROM (SELECT id, {call} AS x FROM visits GROUP BY id)", epsilon=1)
    with session() as opened, pytest.raises(hb.QueryError, match="RANGE reads from outside"):
        opened.sql("SELECT COUNT(*) FROM visits, range(3)", epsilon=1)


SIGNED = "WHERE CAST(k AS VARCHAR) LIKE '-%'"


@pytest.mark.parametrize(
    "rows",
    [
        "(SELECT x AS k FROM t)",
        "(SELECT DISTINCT x AS k FROM t)",
        "(SELECT DISTINCT x * n AS k FROM t)",
        "(SELECT id, x AS k FROM t GROUP BY id, x)",
        "(SELECT id, x * n AS k FROM t GROUP BY id, x * n)",
        "(SELECT id, MIN(x) AS k FROM t GROUP BY id)",
        "(SELECT id, MAX(x * n) AS k FROM t GROUP BY id)",
        "(SELECT x AS k FROM t UNION SELECT x FROM t)",
        "(SELECT FIRST_VALUE(x * n) OVER (PARTITION BY id ORDER BY x * n) AS k FROM t)",
        "(SELECT CAST(s AS DOUBLE) AS k FROM t)",
        "(SELECT typed AS k FROM t)",
    ],
)
def test_the_sign_of_zero_shows_nowhere(rows: str) -> None:
    """Of -0.0 and 0.0, which are equal, the one that the engine meets first would stand for both."""
    found = set()
    for x in ([0.0, -0.0], [-0.0, 0.0], [0.0, 0.0]):
        frame = pa.table({"id": [1, 1], "x": x, "n": [1, -1], "s": ["-0", "0"], "typed": ["-0.0", "0"]})
        table = one_person(source=frame, types={"typed": "number"}, columns={})
        with session(t=table) as opened:
            ((values, _),) = exact(opened, f"SELECT COUNT(*) FROM {rows} {SIGNED}")
        found.add(values)
    assert found == {(0,)}


def test_zero_is_one_group_one_value_and_one_key() -> None:
    frame = pa.table({"id": [1, 1], "x": [0.0, -0.0], "n": [1, 2]})
    with session(t=one_person(source=frame, columns={})) as opened:
        for sql in (
            "SELECT COUNT(DISTINCT x) FROM t",
            "SELECT COUNT(*) FROM (SELECT DISTINCT x FROM t)",
            "SELECT COUNT(*) FROM t JOIN (SELECT CAST('-0' AS DOUBLE) AS k) p ON t.x = p.k WHERE n = 1",
            "SELECT COUNT(*) FROM t a JOIN t b ON a.id = b.id AND a.x = b.x AND a.n = 1 AND b.n = 2",
        ):
            assert exact(opened, sql)[0][0] == (1,), sql


def test_a_group_found_privately_is_shown_without_the_sign_of_zero() -> None:
    for x in (0.0, -0.0):
        frame = pa.table({"id": list(range(5000)), "x": [x] * 5000, "n": [-1] * 5000})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            opened = hb.Session(
                {"t": hb.table(frame, unit="id", max_groups=1, max_rows=1)}, budget=hb.Budget(3, 1e-6), ledger=None
            )
        with opened:
            ((key, _),) = opened.sql("SELECT x * n AS k, COUNT(*) FROM t GROUP BY x * n", epsilon=1).rows()
        assert str(key) == "0.0"


def test_an_infinite_number_keeps_its_text() -> None:
    frame = pa.table({"id": [1], "x": [float("inf")]})
    with session(t=one_person(source=frame, columns={})) as opened:
        ((values, _),) = exact(opened, "SELECT COUNT(*) FROM t WHERE CAST(x AS VARCHAR) = 'inf'")
    assert values == (1,)


def test_what_is_left_is_shown_in_digits_that_people_read() -> None:
    sql = "SELECT COUNT(*) FROM visits"
    with small() as opened:
        assert "left: 3; " in str(opened.check(sql, epsilon=1))
        assert opened.remaining == 3
        opened.sql(sql, epsilon="0.7")
        checked = opened.check("SELECT SUM(n) FROM visits", epsilon="0.1")
        shown = str(checked).partition("left: ")[2].partition(";")[0]
        assert len(shown) <= 8
        assert 0 < opened.remaining - Fraction(shown) < Fraction(1, 1000)
        assert opened.check("SELECT SUM(n) FROM visits", epsilon=shown).affordable
        assert opened.check("SELECT SUM(n) FROM visits", epsilon=opened.remaining).affordable
    with small() as opened:
        opened.sql(sql, epsilon=3)
        assert opened.remaining < Fraction(1, 10**6)


def nested(form: str, times: int, start: str = "n") -> str:
    for _ in range(times):
        start = form.format(start)
    return start


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*) FROM visits WHERE {nested('(1 / {0})', 30)} > 1",
        f"SELECT COUNT(*) FROM visits WHERE {nested('({0} % (n + 1))', 30)} > 1",
        f"SELECT COUNT(*) FROM visits WHERE {nested('NULLIF({0}, 1)', 30)} > 1",
        f"SELECT COUNT(*) FROM visits WHERE {nested('CAST(CAST({0} AS VARCHAR) AS DOUBLE)', 20)} > 1",
        f"SELECT COUNT(*) FROM visits WHERE {nested('({0} IS DISTINCT FROM ok)', 30, 'ok')}",
        f"SELECT COUNT(*) FROM visits WHERE {nested('({0} BETWEEN ok AND ok)', 30, 'ok')}",
        f"SELECT COUNT(*) FROM visits WHERE {nested('CASE {0} WHEN 1 THEN 2 WHEN 3 THEN 4 ELSE 5 END', 30)} > 1",
        f"SELECT COUNT(*) FROM {nested('(SELECT a + a AS a, id FROM {0}) t', 40, '(SELECT n AS a, id FROM visits) t')}"
        " WHERE a > 1",
        f"SELECT MEDIAN({nested('(1 / {0})', 30)}) FROM visits",
    ],
    ids=["div", "mod", "nullif", "cast", "distinct", "between", "case", "sub-queries", "median"],
)
def test_what_doubles_when_it_is_written_is_refused_before_the_charge(sql: str) -> None:
    with session() as opened:
        for ask in (opened.check, opened.sql):
            refused(opened, lambda ask=ask: ask(sql, epsilon=1))


def test_what_is_long_but_does_not_double_is_answered() -> None:
    with session() as opened:
        for condition in (
            " AND ".join(f"n <> {i}" for i in range(100, 2000)),
            f"n IN ({', '.join(map(str, range(5000)))})",
            nested("ROUND({0})", 12) + " < 100",
            nested("({0} + 1)", 12) + " < 100",
        ):
            assert opened.sql(f"SELECT COUNT(*) FROM visits WHERE {condition}", epsilon=HUGE).rows() == [(6,)]
        assert opened.sql("SELECT MEDIAN(n) AS m FROM visits", epsilon=HUGE).charged


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP"])
@pytest.mark.parametrize("far", ["infinity", "-infinity", "290000-01-01", "10000-01-01", "0001-01-01 (BC)"])
def test_a_time_that_python_has_not_takes_no_groups_place(kind: str, far: str) -> None:
    last = "9999-12-31" if kind == "DATE" else "9999-12-31 23:59:59.999999"
    for rows in ([far, *[last] * 2_000], [*[last] * 2_000, *[far] * 2_000]):
        table = hb.table(pa.table({"u": range(len(rows)), "t": rows}), unit="u", max_groups=1, max_rows=1)
        with hb.Session({"p": table}, budget=hb.Budget(10**6, "1e-5"), ledger=None) as session:
            found = session.sql(f"SELECT CAST(t AS {kind}) AS k, COUNT(*) AS n FROM p GROUP BY k", epsilon=1000).rows()
        of_last = [n for k, n in found if k is not None and k.year == 9999]
        assert len(of_last) == 1
        assert abs(of_last[0] - 2_000) < 100


def test_rows_that_are_units_stay_apart_under_distinct() -> None:
    """Two people's equal rows stay two, whatever else the question reads."""
    table = hb.table(pa.table({"x": [1, 1, 1, 2, 2]}), unit=hb.EACH_ROW)
    tables = {"t": table, "w": hb.public(pa.table({"n": [1]}))}
    with hb.Session(tables, budget=hb.Budget(10**9), ledger=None) as session:
        for text, more in (
            ("SELECT COUNT(*) AS n FROM (SELECT DISTINCT x FROM t)", {}),
            ("SELECT COUNT(*) AS n FROM (SELECT DISTINCT x FROM t) p JOIN w ON w.n >= 1", {"max_total": 1}),
            ("SELECT COUNT(*) AS n FROM (SELECT DISTINCT 1 AS one FROM t)", {}),
        ):
            assert session.sql(text, epsilon=10**6, **more).rows() == [(5,)]


@pytest.mark.parametrize("call", ["MIN(x, 2)", "COUNT(x, id)", "FIRST_VALUE(x, 3)"])
def test_an_argument_that_a_window_does_not_read_is_refused(call: str) -> None:
    """`MIN(x, 2) OVER` was answered as `MIN(x)`: another question than the one that was asked."""
    table = hb.table(pa.table({"id": [1, 1], "x": [3, 1]}), unit="id", max_total=5)
    with hb.Session({"t": table}, budget=hb.Budget(10**9), ledger=None) as session:
        left = session.remaining
        with pytest.raises(hb.QueryError):
            session.sql(f"SELECT COUNT(*) FROM (SELECT id, {call} OVER (PARTITION BY id) AS m FROM t)", epsilon=1)
        assert session.remaining == left


def test_a_path_that_is_compared_in_another_kind_is_another_question(tmp_path: Path) -> None:
    """'01' and 1 are one order where both are numbers: the rows are others, and so are their owners."""
    (tmp_path / "orders.csv").write_text("oid,cust\n01,1\n1,2\n2,2\n")
    (tmp_path / "items.csv").write_text("oid,x\n1,3\n01,4\n 2,9\n")

    def asked(kind: str) -> Any:
        orders = hb.table(tmp_path / "orders.csv", unit="cust", types={"oid": kind}, max_total=5)
        items = hb.table(
            tmp_path / "items.csv", unit="orders.cust", through="oid", types={"oid": kind, "x": "integer"}, max_total=5
        )
        tables = {"orders": orders, "items": items}
        with hb.Session(tables, budget=hb.Budget(5), ledger=tmp_path / "l.db", analyst="a") as opened:
            return opened.sql("SELECT COUNT(*) FROM items", epsilon=1)

    assert asked("text").charged
    assert asked("integer").charged
    assert not asked("text").charged
