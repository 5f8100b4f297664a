"""The way of a question, end to end: what is asked, charged, answered, stored, and refused."""

from __future__ import annotations

import json
import pickle
import threading
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import hubbub as hb
from counts import part
from hubbub.accounting import from_json, pure_epsilon, rho_of_epsilon
from hubbub.mechanisms import recording
from hubbub.session import Session
from people import HUGE, session, visits
from seeded import SeededBits

ROWS = visits().source


def plain(sql: str) -> list[tuple[Any, ...]]:
    """DuckDB's own answer to the same text."""
    con = duckdb.connect()
    con.register("visits", ROWS)
    return con.execute(sql).fetchall()


ORACLE = [
    "SELECT COUNT(*) FROM visits",
    "SELECT COUNT(*), COUNT(age), COUNT(DISTINCT id), SUM(n), AVG(age) FROM visits",
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY ward NULLS FIRST",
    "SELECT ward, AVG(age) AS age, SUM(n) AS n FROM visits WHERE age IS NOT NULL GROUP BY ward HAVING COUNT(*) > 0 "
    "ORDER BY n DESC, ward",
    "SELECT ward, COUNT(DISTINCT id) AS people FROM visits GROUP BY 1 HAVING people > 0 ORDER BY 2 DESC, 1 LIMIT 1",
    "SELECT ok, ward, COUNT(*) AS c FROM visits GROUP BY ok, ward HAVING c > 0 ORDER BY c, ok NULLS LAST, ward",
    "SELECT COUNT(*) FROM visits WHERE age BETWEEN 30 AND 70 AND NOT ok OR ward LIKE '_' AND n IN (2, 5)",
    "SELECT COUNT(*) FROM visits WHERE ok IS NOT TRUE",
    "SELECT COUNT(*) FROM visits WHERE ok IS NULL OR ward IS NULL",
    "SELECT COUNT(*) FROM visits WHERE day >= '1970-02-10' AND day < DATE '1970-05-01'",
    "SELECT COUNT(*) FROM visits WHERE n % 2 = 1 AND n // 2 <= 1 AND n / 2 > 0.4 AND n * 3 - 1 + n > -n",
    "SELECT COUNT(*) FROM visits WHERE ward IN ('A', 'C') AND ward NOT IN ('C')",
    "SELECT COUNT(*) FROM visits WHERE ward ILIKE 'a' AND ward <> 'a'",
    "SELECT AVG(CASE WHEN age > 50 THEN 1 ELSE 0 END) AS share FROM visits WHERE ward IS NOT NULL",
    "SELECT SUM(CASE ward WHEN 'A' THEN n WHEN 'B' THEN -n END) AS s FROM visits",
    "SELECT SUM(2 * n - 1) AS s, AVG(n / 4) AS q FROM visits WHERE age > 20 OR age IS NULL",
    "SELECT COUNT(CASE WHEN age > 50 THEN 1 END) AS old FROM visits WHERE id <> 3",
    "SELECT COUNT(*) FROM visits WHERE ward IN ('A', 'nobody''s')",
    "SELECT COUNT(*) AS c FROM visits AS v WHERE v.id = 1 AND visits.n = 1".replace("visits.n", "v.n"),
    "FROM visits SELECT COUNT(*) AS c WHERE TRUE",
    "SELECT ward, SUM(n) / COUNT(*) AS m, 2 * COUNT(*) - 1 AS k FROM visits GROUP BY ward "
    "HAVING m > 0 ORDER BY m, k, ward",
    "SELECT UPPER(ward) AS w, COUNT(*) AS c FROM visits WHERE ward IS NOT NULL GROUP BY UPPER(ward) "
    "HAVING c > 0 ORDER BY w",
    "SELECT age > 50 AS old, COUNT(*) AS c FROM visits WHERE age IS NOT NULL GROUP BY age > 50 ORDER BY old",
    "SELECT CASE WHEN ward IN ('A', 'B') THEN 'front' ELSE 'back' END AS side, SUM(n) AS n FROM visits "
    "WHERE ward IS NOT NULL GROUP BY 1 ORDER BY 1",
    "SELECT n % 2 AS odd, COUNT(*) AS c FROM visits GROUP BY n % 2 HAVING c > 0 ORDER BY odd",
    "SELECT CAST(FLOOR(age / 10) AS BIGINT) AS decade, COUNT(*) AS c FROM visits WHERE age IS NOT NULL GROUP BY decade "
    "HAVING c > 0 ORDER BY decade",
    "SELECT n, COUNT(*) AS c FROM visits GROUP BY n HAVING c > 0 ORDER BY n DESC",
    "SELECT EXTRACT(month FROM day) AS month, COUNT(*) AS c FROM visits WHERE day IS NOT NULL GROUP BY month "
    "HAVING c > 0 ORDER BY month",
    "SELECT ward || '!' AS w, ok, COUNT(*) AS c FROM visits WHERE ward IS NOT NULL GROUP BY w, ok HAVING c > 0 "
    "ORDER BY w, ok NULLS LAST",
    "SELECT ok, 100 * COUNT(*) / 6 AS percent, ROUND(AVG(n)) AS r FROM visits WHERE ok IS NOT NULL GROUP BY ok "
    "HAVING COUNT(*) > 0 ORDER BY ok",
    "SELECT COUNT(*) FROM visits WHERE COALESCE(ward, 'none') = 'none' OR NULLIF(n, 3) IS NULL",
    "SELECT COUNT(*) FROM visits WHERE LOWER(ward) = 'a' AND UPPER('b') = 'B' AND LENGTH(ward) = 1",
    "SELECT COUNT(*) FROM visits WHERE SUBSTR('xAy', 2, 1) = ward OR LEFT(ward, 1) = 'B' OR ward || '!' = 'C!'",
    "SELECT COUNT(*) FROM visits WHERE EXTRACT(month FROM day) IN (2, 3) OR YEAR(day) = 1971",
    "SELECT COUNT(*) FROM visits WHERE day - DATE '1970-01-01' = 40",
    "SELECT COUNT(*) FROM visits WHERE DATE_TRUNC('month', day) = DATE '1970-02-01'",
    "SELECT SUM(LEAST(age, 50)) AS s, AVG(GREATEST(n, 3)) AS g, SUM(ABS(n - 4)) AS a FROM visits WHERE age IS NOT NULL",
    "SELECT SUM(FLOOR(age / 10)) AS s, AVG(SQRT(n)) AS q, SUM(ROUND(age)) AS r FROM visits",
    "SELECT SUM(CAST(ok AS INTEGER)) AS s FROM visits".replace(
        "CAST(ok AS INTEGER)", "LEAST(GREATEST(CAST(ok AS INTEGER), 0), 1)"
    ),
    "SELECT COUNT(*) FROM visits WHERE CAST(n AS VARCHAR) LIKE '5%' OR TRY_CAST(ward AS INTEGER) IS NOT NULL",
    "SELECT COUNT(*) FROM visits WHERE IF(n > 3, ok, age > 31) AND ward IS NOT DISTINCT FROM 'A'",
    "SELECT COUNT(*) FROM visits WHERE ward IS DISTINCT FROM 'A' AND REPLACE(ward, 'B', 'C') = 'C'",
    "SELECT COUNT(*) FROM visits WHERE DATE_DIFF('day', DATE '1970-01-01', day) > 100 AND MOD(n, 2) = 0",
]


@pytest.mark.parametrize("sql", ORACLE)
def test_at_a_huge_epsilon_the_answer_is_the_engines_own(sql: str) -> None:
    with session() as s:
        found = s.sql(sql, epsilon=HUGE).rows()
    expected = plain(sql)
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert list(mine) == [pytest.approx(float(v), abs=1e-4) if isinstance(v, float) else v for v in theirs]


def test_every_declared_group_is_answered_in_declared_order() -> None:
    wards = hb.one_of("C", "nowhere", "A", None, "B")
    with session(visits=visits(columns={"ward": wards}, max_groups=5)) as s:
        answer = s.sql("SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward", epsilon=HUGE).to_dict()
    assert answer == {"ward": ["C", "nowhere", "A", None, "B"], "c": [1, 0, 3, 1, 1]}


def test_the_groups_of_an_expression_are_its_image() -> None:
    with session(visits=visits(columns={"ward": hb.one_of("b", "a", "A", None), "n": hb.between(2, 5)})) as s:

        def groups(key: str) -> list[Any]:
            return s.sql(f"SELECT {key} AS k, COUNT(*) AS c FROM visits GROUP BY 1", epsilon=HUGE).to_dict()["k"]

        assert groups("UPPER(ward)") == ["B", "A", None]
        assert groups("ward = 'a'") == [False, True, None]
        assert groups("age > 3") == [False, True]
        assert groups("n") == [2, 3, 4, 5]
        assert groups("n // 2") == [1, 2]
        assert groups("CASE WHEN n > 3 THEN 'high' END") == [None, "high"]
        assert groups("MONTH(day)") == list(range(1, 13))
        assert groups("ok") == [False, True]


def test_rows_in_no_group_are_dropped_from_every_aggregate() -> None:
    with session(visits=visits(columns={"n": hb.between(2, 3)})) as s:
        found = s.sql("SELECT n, COUNT(*) AS c, SUM(n) AS s FROM visits GROUP BY n", epsilon=HUGE)
        assert found.rows() == [(2, 1, 2.0), (3, 1, 3.0)]


def test_a_computed_column_has_an_interval_that_covers() -> None:
    """A ratio of two counts, some draws at 95 %; false alarm below 1e-9 (6.2 standard deviations)."""
    people = pa.table({"id": list(range(3_000)), "ok": [i % 3 == 0 for i in range(3_000)]})
    declared = hb.table(people, unit="id", max_total=1)
    sql = "SELECT 100 * SUM(CASE WHEN ok THEN 1 ELSE 0 END) / COUNT(*) AS percent FROM people"
    inside, draws = 0, part(100, 2)
    with session(epsilon=20, bits=SeededBits("ratio"), people=declared) as s:
        for turn in range(draws):
            release = s.sql(sql, epsilon="0.2", fresh=True)
            table = release.intervals().to_pydict()
            assert table["percent_low"][0] <= table["percent"][0] <= table["percent_high"][0]
            inside += table["percent_low"][0] <= 100 / 3 <= table["percent_high"][0]
            assert turn > 4 or release.intervals().to_pydict() == table  # the same each time it is read
    assert abs(inside / draws - 0.95) < 6.2 * (0.05 * 0.95 / draws) ** 0.5
    check_says = "follows from the other columns"
    with session(epsilon=1, people=declared) as s:
        assert check_says in str(s.check(sql, epsilon=1))


def test_a_computed_key_is_exact() -> None:
    with session(epsilon=1) as s:
        release = s.sql("SELECT ward || '?' AS w, COUNT(*) AS c FROM visits GROUP BY ward", epsilon=1)
    assert release.to_dict()["w"] == ["A?", "B?", "C?", None]
    assert release.intervals().column_names == ["w", "c", "c_low", "c_high"]


@pytest.mark.parametrize("epsilon", ["0.1", 0.1, Fraction(1, 10)])
def test_the_ledger_holds_exactly_what_was_asked_for(epsilon: Any) -> None:
    with session(epsilon=1) as s:
        release = s.sql("SELECT ward, AVG(age), COUNT(*) FROM visits GROUP BY ward", epsilon=epsilon)
        assert release.cost == Fraction(1, 10)
        assert release.charged
        (entry,) = s.history()
        assert entry.epsilon == Fraction(1, 10)
        assert pure_epsilon(from_json(entry.event)) == Fraction(1, 10)
        assert s.remaining == Fraction(9, 10)


def test_the_event_in_the_ledger_is_the_noise_that_was_added() -> None:
    with session(epsilon=1) as s, recording() as records:
        s.sql("SELECT ward, AVG(age), COUNT(*) FROM visits GROUP BY ward", epsilon=1)
        event = from_json(s.history()[0].event)
    recorded = [(r.distribution.scale, r.sensitivity) for r in records]
    assert [(e.scale, e.sensitivity) for e in event.events] == recorded  # type: ignore[attr-defined]


def test_ten_times_a_tenth_is_all_and_one_more_is_refused() -> None:
    with session(epsilon=1) as s:
        for _ in range(10):
            s.sql("SELECT COUNT(*) FROM visits", epsilon=0.1, fresh=True)
        assert s.remaining == 0
        with pytest.raises(hb.BudgetError) as caught:
            s.sql("SELECT COUNT(*) FROM visits", epsilon="1e-9", fresh=True)
    assert "0 of 1 is left" in str(caught.value)
    assert caught.value.left == "0"


def test_the_same_question_again_is_free_and_the_same() -> None:
    with session(epsilon=1) as s:
        first = s.sql("SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward", epsilon=0.5)
        for text in (
            "SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward",
            "select COUNT(*) AS c, ward from VISITS group by 2",
            "SELECT ward AS w, COUNT(*) AS c FROM visits v GROUP BY w ORDER BY c DESC",
        ):
            again = s.sql(text, epsilon=0.25)
            assert not again.charged
            assert again.cost == 0
            assert again.epsilon == Fraction(1, 2)
            assert sorted(again.to_dict()["c"]) == sorted(first.to_dict()["c"])  # type: ignore[type-var]
        assert s.check("SELECT ward, COUNT(*) FROM visits GROUP BY ward", epsilon=0.1).stored
        assert s.remaining == Fraction(1, 2)
        assert len(s.history()) == 1


def test_a_better_answer_or_another_question_is_charged() -> None:
    with session(epsilon=10) as s:
        s.sql("SELECT COUNT(*) FROM visits", epsilon=1)
        assert s.sql("SELECT COUNT(*) FROM visits", epsilon=2).charged
        assert s.sql("SELECT COUNT(*) FROM visits", epsilon=1, fresh=True).charged
        assert s.sql("SELECT COUNT(*) FROM visits WHERE n > 1", epsilon=1).charged
        assert s.sql("SELECT COUNT(*) FROM visits WHERE n > 1.0", epsilon=1).charged
        assert s.remaining == 4


def test_choosing_among_released_rows_is_free() -> None:
    with session() as s:
        s.sql("SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward", epsilon=HUGE)
        top = s.sql("SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward ORDER BY c DESC LIMIT 1", epsilon=HUGE)
        assert (top.rows(), top.charged, len(top)) == ([("A", 3)], False, 1)
        none = s.sql("SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward HAVING c > 99", epsilon=HUGE)
        assert (none.rows(), none.to_arrow().num_rows, str(none) != "") == ([], 0, True)


def test_check_reads_no_rows_and_charges_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with session(epsilon=1) as s:
        monkeypatch.setattr(s._engine, "run", lambda *_: pytest.fail("check ran the engine"))
        check = s.check("SELECT ward, COUNT(*) AS c, AVG(age) AS a FROM visits GROUP BY ward", epsilon=0.5)
        assert not s.history()
    assert (check.epsilon, check.left, check.affordable, check.stored, check.groups) == (
        Fraction(1, 2),
        1,
        True,
        False,
        4,
    )
    assert [c.name for c in check.columns] == ["c", "a"]
    assert "± " in str(check)
    assert "cost: epsilon 0.5; left: 1" in str(check)


def test_check_predicts_the_interval_that_the_release_has() -> None:
    sql = "SELECT ward, COUNT(*) AS c, SUM(n) AS s, COUNT(DISTINCT id) AS u FROM visits GROUP BY ward"
    with session(epsilon=1) as s:
        check = {c.name: c.plus_minus for c in s.check(sql, epsilon=1).columns}
        reach = s.sql(sql, epsilon=1).error.half_widths(0.95)
    assert {name: [w] * 4 for name, w in check.items()} == reach


REFUSALS: list[tuple[str, Any, type[Exception], str]] = [
    ("SELECT SUM(height) FROM visits", 1, hb.QueryError, "unknown column"),
    ("SELECT AVG(id) FROM visits", 1, hb.PolicyError, "no declared bounds"),
    ("SELECT id, COUNT(*) FROM visits GROUP BY id", 1, hb.QueryError, "every answer is an aggregate"),
    ("SELECT day, COUNT(*) FROM visits GROUP BY day", 1, hb.PolicyError, "possible values are declared"),
    ("SELECT COUNT(*) FROM visits a JOIN visits b ON a.n = b.n", 1, hb.QueryError, "joined on their unit"),
    ("SELECT age, COUNT(*) FROM visits GROUP BY age", 1, hb.PolicyError, "declared as between"),
    (
        "SELECT UPPER(w), COUNT(*) FROM t GROUP BY 1".replace("w)", "ward)").replace("t G", "visits G"),
        20,
        hb.BudgetError,
        "20",
    ),
    ("SELECT age / n, COUNT(*) FROM visits GROUP BY 1", 1, hb.PolicyError, "an expression of age"),
    ("SELECT COUNT(*) FROM visits", 0, hb.ParameterError, "greater than zero"),
    ("SELECT COUNT(*) FROM visits", -1, hb.ParameterError, "greater than zero"),
    ("SELECT COUNT(*) FROM visits", float("nan"), hb.ParameterError, "finite"),
    ("SELECT COUNT(*) FROM visits", float("inf"), hb.ParameterError, "finite"),
    ("SELECT COUNT(*) FROM visits", None, hb.QueryError, "asked at one amount"),
    ("SELECT COUNT(*) FROM visits", "0.5; DROP TABLE charge", hb.ParameterError, "not a number"),
    ("SELECT COUNT(*) FROM visits", 11, hb.BudgetError, "asks for epsilon 11, and 10 of 10 is left"),
    ("SELECT COUNT(*) FROM visits", "1e-40", hb.QueryError, "64-bit"),
    ("COPY visits TO 'x'", 1, hb.QueryError, "not a question"),
]


@pytest.mark.parametrize(("sql", "epsilon", "kind", "says"), REFUSALS, ids=[f"{s[:30]}-{e}" for s, e, _, _ in REFUSALS])
def test_what_is_refused_is_refused_before_anything_is_charged_or_read(
    sql: str, epsilon: Any, kind: type[Exception], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session(epsilon=10) as s:
        monkeypatch.setattr(s._engine, "run", lambda *_: pytest.fail("rows were read"))
        with pytest.raises(kind, match=says):
            s.sql(sql, epsilon=epsilon)
        if kind is not hb.BudgetError:
            with pytest.raises(kind, match=says):
                s.check(sql, epsilon=epsilon)
        assert s.history() == []
        assert s.remaining == 10


def test_an_engine_failure_keeps_its_charge_and_its_words_for_the_steward(tmp_path: Path) -> None:
    with session(epsilon=1, ledger=tmp_path / "budget.db") as s:
        s._engine._known["visits"] = replace(s._engine._known["visits"], relation="gone", columns={}, held=None)
        s._engine.prepare = lambda plan: None  # type: ignore[method-assign]  # which would have found it
        with pytest.raises(hb.EngineError) as told:
            s.sql("SELECT COUNT(*) FROM visits", epsilon=0.25)
        (entry,) = s.history()
        assert (entry.state, s.remaining) == ("failed", Fraction(3, 4))
        assert entry.incident in str(told.value)
        assert "gone" not in str(told.value)
        assert "gone" in s._ledger.record.incident_words(entry.incident)


def test_the_charge_is_durable_before_any_row_is_read(tmp_path: Path) -> None:
    seen: list[str] = []
    with session(epsilon=1, ledger=tmp_path / "b.db") as s:
        run = s._engine.run

        def watched(plan: Any, public: Any) -> Any:
            with session(epsilon=1, ledger=tmp_path / "b.db") as other:
                seen.extend(f"{e.state} {e.epsilon}" for e in other.history())
            return run(plan, public)

        s._engine.run = watched  # type: ignore[method-assign]
        s.sql("SELECT COUNT(*) FROM visits", epsilon="0.5")
        assert [e.state for e in s.history()] == ["shown"]
    assert seen == ["charged 1/2"]


def test_a_second_session_reads_what_the_first_released(tmp_path: Path) -> None:
    sql = "SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward"
    with session(epsilon=1, ledger=tmp_path / "b.db") as s:
        first = s.sql(sql, epsilon=1)
    with session(epsilon=1, ledger=tmp_path / "b.db") as s:
        again = s.sql(sql, epsilon=1)
        assert (again.rows(), again.charged, s.remaining) == (first.rows(), False, 0)
        with pytest.raises(hb.BudgetError):
            s.sql(sql, epsilon=1, fresh=True)
    with pytest.raises(hb.PolicyError, match="2"), session(epsilon=2, ledger=tmp_path / "b.db"):
        pass


def test_a_changed_declaration_is_another_question(tmp_path: Path) -> None:
    sql = "SELECT SUM(n) FROM visits"
    for limits in ({"max_total": 3}, {"max_total": 4}, {"max_total": 4, "columns": {"n": hb.between(0, 50)}}):
        with session(epsilon=3, ledger=tmp_path / "b.db", visits=visits(**limits)) as s:
            assert s.sql(sql, epsilon=1).charged
    assert s is not None


def test_tables_of_one_unit_share_a_budget_and_others_do_not() -> None:
    rows = visits(unit=hb.EACH_ROW)
    with session(epsilon=1, a=visits(), b=visits(), c=rows) as s:
        s.sql("SELECT COUNT(*) FROM a", epsilon="0.75")
        with pytest.raises(hb.BudgetError):
            s.sql("SELECT COUNT(*) FROM b", epsilon="0.5")
        s.sql("SELECT COUNT(*) FROM c", epsilon="0.5")


def test_public_tables_are_exact_and_free() -> None:
    wards = hb.public(pa.table({"ward": ["A", "B"], "beds": [3, 4]}))
    with session(epsilon=1, visits=visits(), wards=wards) as s:
        answer = s.sql("SELECT SUM(beds) AS beds FROM wards", epsilon=1)
        assert (answer.rows(), answer.cost, s.history()) == ([(7,)], 0, [])
        assert s.check("SELECT * FROM wards", epsilon=1).cost == 0
        with pytest.raises(hb.QueryError, match="of the engine"):
            s.sql("SELECT getenv('HOME') FROM wards", epsilon=1)
        with pytest.raises(hb.QueryError, match="unknown table"):
            s.sql("SELECT * FROM wards, frame0", epsilon=1)


def test_threads_may_ask_at_once() -> None:
    with session(epsilon=100) as s:
        answers: list[Any] = []

        def ask(i: int) -> None:
            answers.append(s.sql(f"SELECT ward, COUNT(*) FROM visits WHERE n > {i} GROUP BY ward", epsilon=1))

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(answers) == 8
        assert s.remaining == 92


def test_noise_is_fresh_in_every_session_and_every_draw() -> None:
    drawn = set()
    for _ in range(3):
        with session(epsilon=1) as s:
            for _ in range(4):
                drawn.add(
                    tuple(s.sql("SELECT ward, COUNT(*) FROM visits GROUP BY ward", epsilon="0.01", fresh=True).rows())
                )
    assert len(drawn) == 12  # 4 cells of scale 4,000 each: a repeat has probability below 1e-12


def test_a_session_takes_no_seed_and_is_not_pickled() -> None:
    with pytest.raises(hb.ParameterError, match="'seed' is not an argument"):
        Session({"visits": visits()}, budget=hb.Budget(1), ledger=None, seed=1)  # type: ignore[call-arg]
    with session(epsilon=1) as s, pytest.raises(hb.PolicyError, match="pickled"):
        pickle.dumps(s)


def test_a_ledger_in_memory_says_so() -> None:
    with pytest.warns(UserWarning, match="forgotten when this program ends") as said:
        Session({"visits": visits()}, budget=hb.Budget(1), ledger=None).close()
    assert said[0].filename == __file__
    with session(epsilon=1) as s:
        assert "memory" in repr(s)


@pytest.mark.parametrize(
    ("tables", "budget", "says"),
    [
        ({}, hb.Budget(1), "expected a mapping"),
        ({"visits": ROWS}, hb.Budget(1), "wrap it"),
        ({"v": visits(), "V": visits()}, hb.Budget(1), "differ in case"),
        ({"": visits()}, hb.Budget(1), "not a table name"),
        ({"v": visits()}, 3, "expected a budget"),
    ],
)
def test_a_wrong_session_is_refused(tables: Any, budget: Any, says: str) -> None:
    with pytest.raises(hb.PolicyError, match=says):
        Session(tables, budget=budget, ledger=None)


def test_under_a_budget_with_delta_small_questions_cost_their_rho() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        opened = Session({"visits": visits()}, budget=hb.Budget(epsilon=1, delta=1e-6), ledger=None)
    with opened as s:
        rho = rho_of_epsilon(1, Fraction(1, 2 * 10**6))
        fitting = int(rho / Fraction(1, 5000))  # a question at 0.02 with one measurement is 0.0002-zCDP
        assert fitting > 75
        for _ in range(fitting):
            s.sql("SELECT COUNT(*) FROM visits", epsilon="0.02", noise="laplace", fresh=True)
        with pytest.raises(hb.BudgetError, match="for the unit space 'id'"):
            s.sql("SELECT COUNT(*) FROM visits", epsilon="0.02", noise="laplace", fresh=True)
        assert s.remaining < Fraction(1, 8)  # as Gaussian noise, which costs less


def test_under_a_budget_with_delta_the_noise_is_gaussian_and_costs_the_rho_of_its_epsilon() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        opened = Session({"visits": visits()}, budget=hb.Budget(epsilon=1, delta=1e-6), ledger=None)
    with opened as s, recording() as records:
        first = s.sql("SELECT COUNT(*) FROM visits", epsilon="0.5")
        s.sql("SELECT COUNT(*) FROM visits", rho="0.001", fresh=True)
        noises = [type(r.distribution).__name__ for r in records]
        assert noises == ["DiscreteGaussian"] * 2
        assert first.receipt["measurements"][0]["plan"] == 0  # type: ignore[index]
        fitting = 0
        while True:
            try:
                s.sql("SELECT COUNT(*) FROM visits", epsilon="0.1", fresh=True)
            except hb.BudgetError:
                break
            fitting += 1
        # A question at epsilon/10 costs about a hundredth of the rho: far more than ten fit.
        assert fitting > 20


def test_groups_found_privately_need_a_delta() -> None:
    people = pa.table({"id": list(range(400)), "city": ["big" if i < 390 else f"small{i}" for i in range(400)]})
    table = hb.table(people, unit="id", max_groups=1, max_rows=1)
    sql = "SELECT city, COUNT(DISTINCT id) AS n FROM t GROUP BY city"
    with session(epsilon=1, t=table) as s, pytest.raises(hb.PolicyError, match="budget with delta"):
        s.sql(sql, epsilon=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        opened = Session({"t": table}, budget=hb.Budget(epsilon=4, delta=1e-6), ledger=None)
    with opened as s:
        found = s.sql(sql, epsilon=2).to_dict()
        assert found["city"] == ["big"]
        given = s.sql(sql, epsilon="0.5", keys={"city": ["big", "nowhere"]})
        assert given.to_dict()["city"] == ["big", "nowhere"]


def test_a_stored_answer_is_not_handed_out_for_another_aggregate_of_the_same_numbers() -> None:
    """A median and another quantile look at the same values, a mean and a sum at the same vectors."""
    ages = pa.table({"id": list(range(101)), "x": list(range(101))})
    table = hb.table(ages, unit="id", max_total=1, columns={"x": hb.between(0, 128)})
    with session(t=table) as s:
        assert s.sql("SELECT MEDIAN(x) FROM t", epsilon=HUGE).rows() == [(50.0,)]
        assert s.sql("SELECT QUANTILE_CONT(x, 0.9) FROM t", epsilon=HUGE).rows() == [(90.0,)]
        assert s.sql("SELECT SUM(x), AVG(x) FROM t", epsilon=HUGE).rows()[0] == pytest.approx((5050, 50), abs=0.01)
        assert s.sql("SELECT AVG(x) FROM t", epsilon=HUGE).rows()[0] == pytest.approx((50,), abs=0.01)
        assert s.sql("SELECT VAR_POP(x) FROM t", epsilon=HUGE).rows()[0] == pytest.approx((850,), abs=0.1)


def test_several_private_aggregates_are_one_charge() -> None:
    sql = "SELECT ward, COUNT(*) / (SELECT COUNT(*) FROM visits) AS share FROM visits GROUP BY ward"
    with session(epsilon=1) as s:
        release = s.sql(sql, epsilon="0.5")
        (entry,) = s.history()
        assert (release.cost, entry.epsilon, s.remaining) == (Fraction(1, 2), Fraction(1, 2), Fraction(1, 2))
        assert {m["plan"] for m in release.receipt["measurements"]} == {0, 1}  # type: ignore[index, union-attr]


def test_one_unit_over_several_tables_is_charged_once_to_one_budget() -> None:
    frame = pa.table({"ID": [1, 2, 3], "sex": ["m", "f", "f"]})
    sexes = {"sex": hb.one_of("m", "f")}
    people = hb.table(frame, unit="ID", unit_space="p", max_groups=1, max_rows=1, columns=sexes)
    with session(epsilon=1, visits=visits(unit_space="p"), people=people) as s:
        s.sql("SELECT sex, COUNT(*) FROM visits v JOIN people p ON v.id = p.ID GROUP BY sex", epsilon="0.75")
        assert s.remaining == Fraction(1, 4)
        with pytest.raises(hb.BudgetError):
            s.sql("SELECT COUNT(*) FROM people", epsilon="0.5")


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    duckdb.connect().execute(
        f"COPY (SELECT range AS id, CASE WHEN range % 2 = 0 THEN 'A' ELSE 'B' END AS ward, range % 90 AS age "
        f"FROM range(1000)) TO '{tmp_path}/v.parquet' (FORMAT parquet)"
    )
    (tmp_path / "hubbub.toml").write_text(
        '[ledger]\nfile = "budget.db"\n[budget]\nepsilon = 3\n[tables.v]\nsource = "v.parquet"\nunit = "id"\n'
        "max_groups = 1\nmax_rows = 1\n[tables.v.columns]\nage = { between = [0, 120] }\n"
        'ward = { one_of = ["A", "B"] }\n'
    )
    return tmp_path / "hubbub.toml"


def test_a_policy_file_makes_the_session_it_describes(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(hb.PolicyError, match="hubbub ledger create"):
        Session.from_policy(policy)
    monkeypatch.chdir(policy.parent)
    with Session.from_policy(create_ledger=True) as s:
        answer = s.sql("SELECT ward, COUNT(*) AS c, AVG(age) AS a FROM v GROUP BY ward", epsilon=3)
        assert abs(answer.to_dict()["c"][0] - 500) < 200  # type: ignore[operator]
    with Session.from_policy(policy) as s:
        assert s.remaining == 0


def test_names_with_quotes_and_unicode_are_parsed_never_pasted() -> None:
    odd = 'x"; DROP TABLE t; --'
    frame = pa.table({"id": [1, 2], odd: ["é'; --", "b"], "hubbub_unit": [1, 2], "k0": [5, 6]})
    declared = hb.table(
        frame, unit="id", max_groups=2, max_rows=1, columns={odd: hb.one_of("é'; --", "b"), "k0": hb.between(0, 10)}
    )
    with session(**{"ta ble": declared}) as s:
        quoted = '"' + odd.replace('"', '""') + '"'
        found = s.sql(
            f'SELECT {quoted} AS g, COUNT(*) AS c, SUM(k0) AS s FROM "ta ble" '
            f"WHERE hubbub_unit > 0 AND {quoted} <> 'x' GROUP BY g",
            epsilon=HUGE,
        )
        assert found.rows() == [("é'; --", 1, 5.0), ("b", 1, 6.0)]


def test_no_error_text_depends_on_rows() -> None:
    """The same refusals, word for word, over two tables that differ in every row."""
    other = pa.table({c: ROWS.column(c).slice(0, 1) for c in ROWS.column_names})
    texts = []
    for source in (ROWS, other):
        found = []
        with session(epsilon=10, visits=visits(source=source)) as s:
            for sql, epsilon, _, _ in REFUSALS:
                with pytest.raises(hb.HubbubError) as caught:
                    s.sql(sql, epsilon=epsilon)
                found.append(str(caught.value))
        texts.append(found)
    assert texts[0] == texts[1]


def test_a_receipt_says_what_was_done_and_holds_no_private_number() -> None:
    with session(epsilon=1, bits=SeededBits(1)) as s:
        release = s.sql("SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward", epsilon=1)
    receipt = dict(release.receipt)
    assert receipt["id"] == release.charge_id
    assert receipt["neighbours"] == "add_remove"
    assert receipt["unit"] == "id"
    assert receipt["measurements"] == [
        {"plan": 0, "counts": "rows", "step": "1", "sensitivity": 40, "scale": "40", "epsilon": "1"}
    ]
    json.dumps(receipt)


def test_nothing_warns_on_the_way() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with session() as s:
            str(s.sql(ORACLE[3], epsilon=HUGE))


@pytest.mark.parametrize("value", [2**63, 2**64 - 1, 10**38 - 1, 10**38, -(2**127) + 1, 5])
def test_a_group_found_privately_can_be_read_whatever_its_whole_number(value: int, tmp_path: Path) -> None:
    path = tmp_path / "wide.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(f"CREATE TABLE wide AS SELECT i AS id, {value}::HUGEINT AS k FROM range(2000) t(i)")
    table = hb.table(path, table="wide", unit="id", max_groups=1, max_rows=1)
    with Session({"t": table}, budget=hb.Budget(epsilon=4, delta=1e-6), ledger=None) as s:
        release = s.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=1, delta=1e-7)
        ((key, count),) = release.rows()
        assert int(key) == value
        assert abs(count - 2000) < 100
        assert release.intervals().num_rows == 1
        assert str(value) in str(release)


@pytest.mark.parametrize("budget", [hb.Budget(1), hb.Budget(1, "1e-6")])
def test_a_plan_is_priced_before_it_is_charged(tmp_path: Path, budget: hb.Budget) -> None:
    people = hb.table(pa.table({"id": ["a", "b"], "age": [1, 2]}), unit="id", max_groups=1, max_rows=1)
    plan = [(f"SELECT COUNT(*) FROM people WHERE age > {age}", "0.25") for age in (0, 1, 0)]
    with hb.Session({"people": people}, budget=budget, ledger=str(tmp_path / "plan.db")) as session:
        before = session.check_plan(plan)
        assert (before.epsilon, before.drawn, before.free, before.fits) == (Fraction(1, 2), 2, 1, True)
        assert not session.check_plan([(sql, 3 * i + 1) for i, (sql, _) in enumerate(plan[:2])]).fits
        assert session.ledger.balance.total("id").cost.rho == 0
        session.plan(plan)
        entry = next(e for e in session.history() if e.kind == "plan") if hasattr(session, "history") else None
        assert entry is None or entry.spend.cost == before.cost
        after = session.check_plan(plan)
        assert (after.epsilon, after.left, after.drawn, after.free, after.fits) == (0, None, 0, 3, True)
