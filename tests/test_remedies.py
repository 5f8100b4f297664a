"""What a refusal says to do is data, and does what it says: each remedy is applied, and the question is then answered.

A remedy may change what was asked or declared; the answer has the columns that were asked for, and as many groups as
are declared or named.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.errors import ParameterError
from hubbub.remedies import REMEDIES, Attempt, DeclareRange, GiveKeys, Rewrite, TrimBlanks, read_remedy
from hubbub.service.pages.asking import refused as on_a_page
from remedied import DELTA, PEOPLE, PURE, SEEN, Case, answered_after, refused, table
from test_remedies_of_declarations import CASES as OF_DECLARATIONS
from test_remedies_of_options import CASES as OF_OPTIONS
from test_remedies_of_tables import CASES as OF_TABLES


def _created(place: Path) -> None:
    hb.Session({"t": table()}, budget=DELTA, ledger=place).close()


SUM, BY_WARD = "SELECT SUM(n) AS x FROM t", "SELECT ward, COUNT(*) AS x FROM t GROUP BY ward"
RANGE = {"columns": {"n": hb.between(0, 4)}}
DECLARED = {
    "ward": hb.one_of("A", "B", "C"),
    "n": hb.between(0, 4),
    "age": hb.between(0, 99),
    "day": hb.between("2024-01-01", "2024-12-31"),
}
CASES = {
    "undeclared range": Case(
        "tables/measure.py:_undeclared_range",
        SUM,
        {0: {"low": 0, "high": 4}, 1: {"sql": "SELECT SUM(LEAST(GREATEST(n, 0), 4)) AS x FROM t"}},
    ),
    "undeclared days": Case(
        "tables/measure.py:_undeclared_range",
        "SELECT MEDIAN(day) AS x FROM t",
        {0: {"low": "2024-01-01", "high": "2024-12-31"}},
    ),
    "a computed range": Case(
        "tables/measure.py:_computed_without_end",
        "SELECT SUM(m) AS x FROM (SELECT id, SUM(n) AS m FROM t GROUP BY id)",
        {0: {"sql": "SELECT SUM(LEAST(m, 20)) AS x FROM (SELECT id, SUM(n) AS m FROM t GROUP BY id)"}},
        table=lambda: table(**RANGE),
    ),
    "a number of rows": Case(
        "tables/measure.py:_computed_without_end",
        "SELECT SUM(m) AS x FROM (SELECT id, COUNT(*) AS m FROM t GROUP BY id)",
        {0: {"sql": "SELECT SUM(LEAST(m, 20)) AS x FROM (SELECT id, COUNT(*) AS m FROM t GROUP BY id)"}, 1: {}},
        table=lambda: hb.table(PEOPLE, unit="id"),
    ),
    "a bound that is found for sums alone": Case(
        "tables/measure.py:_found_for_sums_alone",
        "SELECT MEDIAN(n) AS x FROM t",
        {0: {"low": 0, "high": 4}, 1: {"sql": "SELECT MEDIAN(LEAST(n, 4)) AS x FROM t"}},
        table=lambda: table(columns={"n": hb.between(0, "auto")}),
    ),
    "a range that does not follow": Case(
        "tables/measure.py:_without_range",
        "SELECT SUM(length(ward)) AS x FROM t",
        {0: {"sql": "SELECT SUM(LEAST(GREATEST(length(ward), 0), 9)) AS x FROM t"}},
    ),
    "a logarithm": Case(
        "tables/measure.py:_endless",
        "SELECT SUM(LN(n)) AS x FROM t",
        {0: {"sql": "SELECT SUM(LN(GREATEST(n, 1))) AS x FROM t"}},
        table=lambda: table(**RANGE),
    ),
    "a division": Case(
        "tables/measure.py:_endless",
        "SELECT SUM(1 / n) AS x FROM t",
        {0: {"sql": "SELECT SUM(1 / GREATEST(n, 1)) AS x FROM t"}},
        table=lambda: table(**RANGE),
    ),
    "undeclared groups": Case(
        "tables/groups.py:_undeclared",
        BY_WARD,
        {0: {"values": ("A", "B", "C")}, 1: {"values": ("A", "B", "C")}, 2: {}},
        ("ward", "x"),
        3,
    ),
    "a key without a name": Case(
        "tables/groups.py:_keys_of",
        "SELECT COUNT(*) AS x FROM t GROUP BY LEFT(ward, 1)",
        {1: {"values": ("A", "B", "C"), "sql": "SELECT LEFT(ward, 1) AS part, COUNT(*) AS x FROM t GROUP BY 1"}},
        ("part", "x"),
        3,
        table=lambda: table(columns={"ward": hb.text()}),
    ),
    "groups by a number of rows": Case(
        "tables/groups.py:_undeclared",
        "SELECT m, COUNT(*) AS x FROM (SELECT id, COUNT(*) AS m FROM t GROUP BY id) GROUP BY m",
        {
            0: {
                "sql": "SELECT LEAST(m, 20) AS m, COUNT(*) AS x FROM (SELECT id, COUNT(*) AS m FROM t GROUP BY id) "
                "GROUP BY LEAST(m, 20)"
            },
            1: {},
        },
        ("m", "x"),
        21,
        table=lambda: hb.table(PEOPLE, unit="id"),
    ),
    "too many groups": Case(
        "tables/groups.py:_too_many",
        "SELECT age, COUNT(*) AS x FROM t GROUP BY age",
        {
            0: {"sql": "SELECT FLOOR(age / 10) AS age, COUNT(*) AS x FROM t GROUP BY FLOOR(age / 10)"},
            1: {"values": tuple(range(10))},
        },
        ("age", "x"),
        10,
        table=lambda: table(columns={"age": hb.between(0, 99)}),
    ),
    "an undeclared value": Case(
        "tables/conditions.py:_of_list",
        "SELECT COUNT(*) AS x FROM t WHERE ward = 'C'",
        {0: {}},
        table=lambda: table(columns={"ward": hb.one_of("A", "B")}),
    ),
    "a declared value that is misspelt": Case(
        "session/prepare.py:_noted",
        "SELECT COUNT(*) AS x FROM t WHERE UPPER(ward) = 'CARDIOLGY' AND n < 3",
        {0: {}, 1: {}},
        table=lambda: table(columns={"ward": hb.one_of("cardiology", "neurology"), "n": hb.between(0, 4)}),
    ),
    "a parameter": Case("sql/bind/query.py:_fill", "SELECT COUNT(*) AS x FROM t WHERE n > $least", {0: {"value": 2}}),
    "a type": Case(
        "sql/bind/scope.py:column",
        "SELECT COUNT(ward) AS x FROM t",
        {0: {}},
        table=lambda: hb.table(
            PEOPLE.select(["id", "ward"]).to_pandas().astype({"ward": object}), unit="id", max_groups=1, max_rows=1
        ),
    ),
    "limits": Case(
        "tables/plan.py:_bounds",
        "SELECT COUNT(*) AS x FROM t",
        {0: {"values": (2,)}, 1: {"values": (1, 2)}},
        table=lambda: hb.table(PEOPLE, unit="id"),
    ),
    "limits of groups": Case(
        "tables/plan.py:_bounds",
        BY_WARD,
        {0: {"values": (1, 2)}},
        ("ward", "x"),
        3,
        table=lambda: hb.table(PEOPLE, unit="id", columns={"ward": hb.one_of("A", "B", "C")}),
    ),
    "rho": Case(
        "session/prepare.py:amount_of",
        "SELECT COUNT(*) AS x FROM t",
        {0: {}, 1: {"values": (2,)}},
        options={"rho": "0.1"},
    ),
    "no amount": Case(
        "session/options.py:check",
        "SELECT COUNT(*) AS x FROM t",
        {0: {"values": (1,)}, 1: {"values": ("0.1",)}, 2: {"values": (20, 4)}},
        budget=DELTA,
        options={},
    ),
    "half of within": Case(
        "session/options.py:check", "SELECT COUNT(*) AS x FROM t", {0: {"values": (4,)}}, options={"within": 20}
    ),
    "within": Case(
        "session/check.py:smallest_spend",
        "SELECT COUNT(*) AS x FROM t",
        {0: {"values": (30,)}},
        options={"within": 4, "at_most": "0.1"},
    ),
    "another budget": Case(
        "ledger/store.py:_agree", "SELECT COUNT(*) AS x FROM t", {0: {}}, budget=PURE, before=_created
    ),
    "too much": Case("ledger/charging.py:overrun", "SELECT COUNT(*) AS x FROM t", {0: {}}, options={"epsilon": 50}),
    "the most frequent": Case(
        "tables/aggregates/mode.py:_without_values",
        "SELECT MODE(n) AS x FROM t",
        {
            0: {"values": (0, 1, 2, 3, 4)},
            1: {"low": 0, "high": 4},
            2: {"sql": "SELECT MODE(LEAST(GREATEST(n, 0), 4)) AS x FROM t"},
        },
    ),
    "the most frequent of items that nobody knows": Case(
        "tables/aggregates/mode.py:_without_values",
        "SELECT APPROX_TOP_K(ward, 2) AS x, COUNT(*) AS n FROM t",
        {
            0: {"values": ("A", "B", "C")},
            3: {
                "sql": "SELECT x, n FROM (SELECT APPROX_TOP_K(ward, 2) AS x FROM t) "
                "CROSS JOIN (SELECT COUNT(*) AS n FROM t)"
            },
        },
        ("x", "n"),
        budget=DELTA,
    ),
    "the most frequent of items that nobody knows, without delta": Case(
        "tables/aggregates/top_place.py:needs_delta",
        "SELECT APPROX_TOP_K(ward, 2) AS x FROM t",
        {0: {}, 1: {"values": ("A", "B", "C")}},
    ),
    "the most frequent of an expression of declared values": Case(
        "tables/aggregates/top_place.py:places_asked",
        "SELECT APPROX_TOP_K(UPPER(ward), 1) AS x FROM t",
        {
            0: {
                "sql": "SELECT x FROM (SELECT UPPER(ward) AS x, COUNT(*) AS n FROM t GROUP BY 1) "
                "ORDER BY n DESC LIMIT 1"
            }
        },
        budget=DELTA,
        table=lambda: table(columns={"ward": hb.one_of("A", "B", "C")}),
    ),
    "synthesis without delta": Case(
        "session/whole_rows.py:_rho",
        "t",
        {0: {}},
        ("ward",),
        0,
        table=lambda: table(columns={"ward": hb.one_of("A", "B", "C")}),
        ask="synthesize",
    ),
    "rows of a unit": Case(
        "session/whole_rows.py:rows_that_count",
        "t",
        {0: {"values": (1,)}, 1: {"values": (1,)}},
        ("ward",),
        0,
        table=lambda: hb.table(PEOPLE, unit="id", columns={"ward": hb.one_of("A", "B", "C")}),
        budget=DELTA,
        ask="synthesize",
    ),
    "hardly any row": Case(
        "session/publish.py:synthetic_table",
        "t",
        {0: {"column": "spaced"}},
        ("spaced",),
        0,
        table=lambda: table(columns={"spaced": hb.one_of("A", "B")}),
        budget=DELTA,
        options={"epsilon": 10},
        ask="synthesize",
    ),
    "when clocks are set": Case(
        "sql/bind/zoned.py:_shown",
        "SELECT COUNT(*) AS x FROM t WHERE seen AT TIME ZONE 'Europe/Rome' > '2024-01-02'",
        {0: {"low": "2024-01-01", "high": "2024-12-31"}},
        table=lambda: hb.table(SEEN, unit="id", max_groups=1, max_rows=1),
    ),
    "clocks that are set too often": Case(
        "tables/zones.py:local",
        "SELECT COUNT(*) AS x FROM t WHERE seen AT TIME ZONE 'Europe/Rome' > '2024-01-02'",
        {0: {"low": "2024-01-01", "high": "2024-12-31"}},
        table=lambda: hb.table(
            SEEN, unit="id", max_groups=1, max_rows=1, columns={"seen": hb.between("0001-01-01", "9999-12-31")}
        ),
    ),
    "rows of people": Case(
        "sql/text/hints.py:questions_instead",
        "SELECT * FROM t",
        {0: {}},
        ("count",),
    ),
    "rows of people by group": Case(
        "sql/text/hints.py:questions_instead",
        "SELECT n FROM t",
        {1: {}},
        ("ward", "count", "avg_n"),
        3,
        table=lambda: table(columns={"ward": hb.one_of("A", "B", "C"), "n": hb.between(0, 4)}),
    ),
    **{
        f"{written}, which is not supported": Case(
            "sql/text/hints.py:ways",
            f"SELECT {written} AS x FROM t",
            {0: {"sql": f"SELECT {instead} AS x FROM t"}},
            table=lambda: table(columns=DECLARED),
        )
        for written, instead in (
            ("AVERAGE(n)", "AVG(n)"),
            ("ANY_VALUE(n)", "MEDIAN(n)"),
            ("KURTOSIS(n)", "MEDIAN(n)"),
            ("AVG(TRUNC(age))", "AVG(SIGN(age) * FLOOR(ABS(age)))"),
            ("AVG(CBRT(n + 1))", "AVG(POWER(n + 1, 0.5))"),
            ("AVG(AGE(day, DATE '2025-01-01'))", "AVG(DATE_DIFF('day', day, DATE '2025-01-01'))"),
            ("AVG(NVL2(n, 1, 0))", "AVG(COALESCE(n, 0))"),
            ("SUM(CASE WHEN STRPOS(ward, 'A') > 0 THEN 1 ELSE 0 END)", "SUM(IF(CONTAINS(ward, 'A'), 1, 0))"),
            ("COUNT(REGEXP_EXTRACT(ward, 'A'))", "COUNT(*) FILTER (WHERE REGEXP_MATCHES(ward, '^[A-C]'))"),
            ("SUM(LENGHT(ward))", "SUM(LEAST(LENGTH(ward), 9))"),
        )
    },
    "a list of rows": Case(
        "sql/text/hints.py:ways",
        "SELECT STRING_AGG(ward, ',') AS x FROM t",
        {0: {"sql": "SELECT ward, COUNT(*) AS x FROM t GROUP BY ward"}},
        ("ward", "x"),
        3,
        table=lambda: table(columns=DECLARED),
    ),
    "the row that decides": Case(
        "sql/text/hints.py:ways",
        "SELECT ARG_MAX(ward, n) AS x FROM t",
        {0: {"sql": "SELECT x FROM (SELECT ward AS x, SUM(n) AS s FROM t GROUP BY ward) ORDER BY s DESC LIMIT 1"}},
        table=lambda: table(columns=DECLARED),
    ),
    "a histogram": Case(
        "sql/text/hints.py:ways",
        "SELECT HISTOGRAM(age) AS x FROM t",
        {0: {"sql": "SELECT FLOOR(age / 10) AS band, COUNT(*) AS x FROM t GROUP BY 1"}},
        ("band", "x"),
        10,
        table=lambda: table(columns=DECLARED),
    ),
    "a window of a column that the answer has not": Case(
        "sql/bind/aggregate.py:_check_windowed",
        "SELECT ward, SUM(n) OVER () AS x FROM t GROUP BY ward",
        {0: {"sql": "SELECT ward, SUM(SUM(n)) OVER () AS x FROM t GROUP BY ward"}},
        ("ward", "x"),
        3,
        table=lambda: table(columns=DECLARED),
    ),
    "the mean of a day": Case(
        "sql/bind/aggregate.py:_argument",
        "SELECT AVG(day) AS x FROM t",
        {0: {"sql": "SELECT AVG(DATE_DIFF('day', DATE '2020-01-01', day)) AS x FROM t"}},
        table=lambda: table(columns=DECLARED),
    ),
    "a power of two columns": Case(
        "sql/bind/rewritten.py:_power",
        "SELECT AVG(POWER(n + 1, n)) AS x FROM t",
        {0: {"sql": "SELECT AVG(EXP(n * LN(n + 1))) AS x FROM t"}},
        table=lambda: table(columns=DECLARED),
    ),
    "a window over everybody": Case(
        "sql/bind/window.py:_window",
        "SELECT AVG(LEAST(m, 4)) AS x FROM (SELECT MAX(n) OVER () AS m FROM t)",
        {0: {"sql": "SELECT AVG(LEAST(m, 4)) AS x FROM (SELECT MAX(n) OVER (PARTITION BY id) AS m FROM t)"}},
        table=lambda: table(columns=DECLARED),
    ),
    "the geometric mean from 0 on": Case(
        "tables/aggregates/geometric.py:_logarithm",
        "SELECT GEOMEAN(n) AS x FROM t",
        {0: {"sql": "SELECT GEOMEAN(GREATEST(n, 1)) AS x FROM t"}},
        table=lambda: table(columns=DECLARED),
    ),
    "a weight below 0": Case(
        "tables/aggregates/weighted.py:_weight",
        "SELECT WEIGHTED_COUNT(n) AS x FROM t",
        {0: {}, 1: {"sql": "SELECT WEIGHTED_COUNT(GREATEST(n, 0)) AS x FROM t"}},
        table=lambda: table(columns={"n": hb.between(-4, 4)}),
    ),
    "an error within bounds that are found": Case(
        "session/finding.py:refuse_beside",
        "SELECT COUNT(*) AS x FROM t",
        {0: {"values": (20,)}},
        table=lambda: hb.table(PEOPLE, unit="id"),
        options={"within": 20, "at_most": 20, "max_rows": "auto"},
    ),
    "rows that are public too": Case(
        "sql/bind/unmatched.py:refuse_unmatched",
        "SELECT w.ward, COUNT(*) AS x FROM (VALUES ('A'), ('B')) AS w(ward) LEFT JOIN t ON w.ward = t.ward GROUP BY 1",
        {
            0: {
                "sql": "SELECT w.ward, COUNT(t.id) AS x FROM (VALUES ('A'), ('B')) AS w(ward) "
                "LEFT JOIN t ON w.ward = t.ward GROUP BY 1"
            }
        },
        ("ward", "x"),
        2,
        table=lambda: table(columns=DECLARED),
    ),
}
"""Every refusal that has a remedy, and what is filled in."""

ELSEWHERE = {
    "tables/price.py:assemble",  # tests/tables/test_price.py: no session comes so far
    "session/whole_rows.py:ask_marginals",  # test_marginals_that_would_be_noise
    "synthesis/session_adapter.py:hardly_any",  # the text of synthetic_table
}


EACH = [(name, at) for name, case in CASES.items() for at in case.fill]


@pytest.mark.parametrize(("name", "at"), EACH, ids=[f"{name}, {at}" for name, at in EACH])
def test_a_remedy_that_is_applied_is_answered(name: str, at: int, tmp_path: Path) -> None:
    case = CASES[name]
    assert answered_after(case, at, tmp_path / "another.db") == (case.columns, case.groups)


def test_every_kind_of_remedy_is_applied() -> None:
    everywhere = (CASES, OF_OPTIONS, OF_DECLARATIONS, OF_TABLES)
    cases = [(case, at) for room in everywhere for case in room.values() for at in case.fill]
    kinds = {refused(case)[0].remedies[at].kind for case, at in cases}
    assert kinds | {"correct the policy file"} == set(REMEDIES)  # test_a_policy_that_is_put_right_is_read


def test_a_blank_is_never_guessed() -> None:
    attempt, tables = Attempt(SUM, {"epsilon": 1}, PURE), {"t": table()}
    with pytest.raises(ParameterError, match=r"fill in what only you know: remedy.fill\(low=..., high=...\)"):
        DeclareRange("n").apply(attempt, tables)
    with pytest.raises(ParameterError, match="of which table"):
        DeclareRange("n", 0, 4).apply(attempt, {**tables, "u": table()})
    applied = DeclareRange("n", 0, 4, table="u").apply(attempt, {**tables, "u": table()})[1]
    assert set(applied["u"].columns) == {"n"}
    assert applied["t"] == tables["t"]
    with pytest.raises(ParameterError, match="not a part"):
        DeclareRange("n").fill(middle=2)


def test_each_face_has_its_own_words_and_what_was_asked_stays() -> None:
    keys = GiveKeys("ward")
    error = hb.QueryError(f"give {keys.in_python()}.\n  {keys.in_python()}", remedy=keys)
    assert (
        error.said(lambda remedy: remedy.on_the_command_line())
        == f"give --keys 'ward=VALUE,VALUE'.\n  {keys.in_python()}"
    )
    assert hb.QueryError("plain").remedy is None
    assert TrimBlanks().missing == ("column",)


@pytest.mark.parametrize("wire", [{}, {"remedy": "sudo"}, {"remedy": "give keys"}, {"remedy": "give keys", "no": 1}])
def test_what_is_not_a_remedy_is_not_read(wire: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="not a remedy"):
        read_remedy(wire)


def test_marginals_that_would_be_noise(tmp_path: Path) -> None:
    tables = {"t": table(columns={"ward": hb.one_of("A", "B", "C")})}
    with hb.Session(tables, budget=DELTA, ledger=tmp_path / "a.db") as session:
        with pytest.raises(ParameterError, match="assume_rows") as caught:
            session.marginals("t", [["ward"]], epsilon="0.01", assume_rows=1)
        remedy = caught.value.remedy
        assert remedy is not None
        attempt, _ = remedy.fill(values=(10**6,)).apply(Attempt("t", {"epsilon": "0.01", "assume_rows": 1}), tables)
        assert session.marginals("t", [["ward"]], **attempt.options).table("ward").num_rows == 3


PYTHON_ALONE = ("hb.", "columns={", "types={", "params={", "epsilon=", "at_most=", "within=")
"""What is written in Python, and neither on a page nor at the command line."""
FACES = {
    "on_a_page": ("--keys", "--epsilon", "--at-most", "--within", "-p "),
    "on_the_command_line": ("a page has", '"spend', '"be within'),
}


@pytest.mark.parametrize("face", FACES)
def test_each_face_says_remedies_in_its_own_words(face: str) -> None:
    """None has another one's words, but what only Python and other programs can say, which a page says so of."""
    for case in {**CASES, **OF_OPTIONS, **OF_DECLARATIONS, **OF_TABLES}.values():
        for remedy in refused(case)[0].remedies:
            said = getattr(remedy, face)().replace(
                "`hubbub ledger raise --epsilon NUMBER", ""
            )  # a steward's, everywhere
            if isinstance(remedy, Rewrite):
                assert said == remedy.in_python()  # SQL is the same everywhere
            elif "from a program" not in said:
                assert not [word for word in (*PYTHON_ALONE, *FACES[face]) if word in said], said


def test_a_page_shows_the_words_of_a_page() -> None:
    error, _ = refused(CASES["undeclared range"])
    told = {"kind": "policy", "text": str(error), "remedies": [remedy.to_wire() for remedy in error.remedies]}
    shown = on_a_page(told).text
    assert "n = { between = [low, high] } under the columns of its table in the policy file (a steward writes" in shown
    assert "LEAST(GREATEST(n, low), high)" in shown
    assert "hb.between" not in shown
    assert on_a_page({**told, "remedies": [{"remedy": "of a later version"}]}).text == str(error).partition("\n")[0]
