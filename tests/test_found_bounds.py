"""Bounds that are found in the charge of their answer, as a session sells them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from hubbub.accounting import ZCDP, Composed, DiscreteLaplace, PureDP, from_json
from hubbub.errors import QueryError
from hubbub.session import Session
from hubbub.session.ask import knowing
from hubbub.session.check import Check
from hubbub.session.finding import Finding, told
from hubbub.session.options import Options
from hubbub.session.prepare import PricedStatement
from hubbub.session.run import Order
from hubbub.session.runner import request_again
from hubbub.session.statement import request_of
from people import visits
from seeded import SeededBits

COUNT = "SELECT COUNT(*) AS n FROM t"
SUM = "SELECT SUM(x) AS s FROM t"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def people(units: int = 3000) -> pa.Table:
    """Units with 1, 2, 4 or 8 rows, spread over three wards; x of 2.5 in each row."""
    rows = [(u, "ABC"[(u + i) % 3], 2.5, i) for u in range(units) for i in range(2 ** (u % 4))]
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(("id", "ward", "x", "n"))})


def opened(frame: pa.Table | None = None, *, delta: Any = None, bits: Any = None, **changes: Any) -> Session:
    columns = {"ward": hb.one_of("A", "B", "C"), "x": hb.between(0, "auto"), "n": hb.between(0, 9)}
    arguments: dict[str, Any] = {"unit": "id", "columns": columns, **changes}
    budget = hb.Budget(50) if delta is None else hb.Budget(50, delta)
    frame = people() if frame is None else frame
    return Session({"t": hb.table(frame, **arguments)}, budget=budget, ledger=None, _bits=bits or SeededBits(5))


def test_the_answer_says_what_was_found_and_is_charged_once() -> None:
    with opened() as s:
        r = s.sql(COUNT, epsilon=1, max_rows="auto")
        assert (r.cost, s.remaining) == (1, 49)
        (entry,) = s.history()
    assert abs(r.to_dict()["n"][0] - 11250) < 200
    assert r.text.bounded == ("bounded: at most 8 rows of one id; what that leaves out is not in the ±",)
    assert r.text.notes[0].startswith("found: at most 8 rows of one id; with probability .95 at most ")
    (found,) = r.receipt["found"]
    assert (found["what"], found["bound"]) == ("rows", "8")
    assert r.receipt["max_rows"] == 8
    assert from_json(entry.event) == Composed([DiscreteLaplace(Fraction(10, 3), 1), PureDP(Fraction(7, 10))])
    assert hb.Release.from_wire(r.to_wire()).text.remarks == r.text.remarks


def test_under_a_budget_with_delta_both_are_rhos() -> None:
    with opened(delta=1e-6) as s:
        s.sql(COUNT, epsilon=2, max_rows="auto")
        first, second = from_json(s.history()[0].event).events  # type: ignore[attr-defined]
    assert isinstance(first, ZCDP)
    assert isinstance(second, ZCDP)
    assert first.rho * 85 == second.rho * 15


def test_under_replace_the_histogram_has_twice_the_noise() -> None:
    with opened(neighbours="replace") as s:
        s.sql(COUNT, epsilon=1, max_rows="auto")
        assert from_json(s.history()[0].event).events[0] == DiscreteLaplace(Fraction(20, 3), 2)  # type: ignore[attr-defined]


def test_a_bound_that_was_found_is_not_bought_again() -> None:
    with opened() as s:
        first = s.sql(COUNT, epsilon=1, max_rows="auto")
        more = s.sql(COUNT, epsilon=2, max_rows="auto")
        assert from_json(s.history()[-1].event) == Composed([DiscreteLaplace(4, 8)])
        assert more.error.half_widths()["n"][0] < first.error.half_widths()["n"][0] / 2
        free = s.sql(COUNT, epsilon=1, max_rows="auto")
        assert (free.cost, free.rows()) == (0, more.rows())
        s.as_analyst("bob").sql(COUNT, epsilon=3, max_rows="auto")
        assert isinstance(from_json(s.history()[-1].event).events[-1], PureDP)  # type: ignore[attr-defined]
        s.refresh("t")
        s.sql(COUNT, epsilon=1, max_rows="auto")
        assert isinstance(from_json(s.history()[-1].event).events[-1], PureDP)  # type: ignore[attr-defined]


def test_a_bound_that_was_found_under_a_condition_holds_under_it_again() -> None:
    """It was searched among these rows alone: for all rows together it is bought anew."""
    with opened() as s:
        asked = [f"{COUNT} WHERE ward = 'A'", f"{COUNT} WHERE ward = 'A'", COUNT, f"{COUNT} WHERE ward = 'B'"]
        searched = []
        for epsilon, sql in enumerate(asked, 1):
            assert s.sql(sql, epsilon=epsilon, max_rows="auto").charged
            searched.append(len(from_json(s.history()[-1].event).events) == 2)  # type: ignore[attr-defined]
    assert searched == [True, False, True, False]


def test_a_bound_that_was_found_with_another_public_table_is_bought_anew(tmp_path: Path) -> None:
    wards, ledger = tmp_path / "wards.csv", tmp_path / "budget.db"
    pq.write_table(people(), tmp_path / "v.parquet")
    asked = "SELECT COUNT(*) AS n FROM v JOIN w ON v.ward = w.ward WHERE w.part = 'x'"
    searched = []
    for epsilon, more in ((1, ""), (2, ""), (3, "B,x\n")):
        wards.write_text(f"ward,part\nA,x\nB,y\n{more}")
        tables = {"v": hb.table(tmp_path / "v.parquet", unit="id", max_groups=1), "w": hb.public(wards)}
        with Session(tables, budget=hb.Budget(50), ledger=ledger) as s:
            assert s.sql(asked, epsilon=epsilon, max_rows="auto").charged
            searched.append(len(from_json(s.history()[-1].event).events) == 2)  # type: ignore[attr-defined]
    assert searched == [True, False, True]


def test_too_few_units_give_the_rest_back_and_say_so() -> None:
    with opened(people(20)) as s:
        with pytest.raises(hb.QueryError, match=r"too few units to find a bound.*the rest came back"):
            s.sql(COUNT, epsilon=1, max_rows="auto")
        assert s.remaining == 50 - Fraction(3, 10)
        with pytest.raises(hb.QueryError, match=r"too few units.*Nothing was charged"):
            s.sql(COUNT, epsilon=1, max_rows="auto")
        assert s.remaining == 50 - Fraction(3, 10)


def test_sums_are_clipped_to_what_was_found() -> None:
    with opened() as s:
        r = s.sql(SUM, epsilon=2)
        assert abs(r.to_dict()["s"][0] - 2.5 * 11250) < 300
        assert r.text.bounded[0].startswith("bounded: at most a sum of x of 32 of one id")
        (part,) = r.receipt["measurements"]
        assert Fraction(part["sensitivity"]) * Fraction(part["step"]) == 32
        by_ward = s.sql("SELECT ward, SUM(x) AS s, COUNT(*) AS n FROM t GROUP BY ward", epsilon=9, max_rows="auto",
                        max_groups="auto")  # fmt: skip
    assert all(abs(v - 2.5 * 3750) < 600 for v in by_ward.to_dict()["s"])
    assert {f["what"] for f in by_ward.receipt["found"]} == {"groups", "rows", "x"}


def test_a_sum_is_clipped_by_unit_and_group_whatever_its_rows() -> None:
    frame = pa.table({"id": [*range(2000), *[7] * 1000], "ward": ["A"] * 3000, "x": [1.0] * 3000,
                      "n": [1] * 3000})  # fmt: skip
    with opened(frame) as s:
        r = s.sql(SUM, epsilon=20)
    assert r.receipt["found"][0]["bound"] == "1"
    assert abs(r.to_dict()["s"][0] - 2000) < 5


def test_check_tells_the_error_for_three_bounds_and_reads_nothing() -> None:
    with opened() as s:
        c = s.check(COUNT, epsilon=1, max_rows="auto")
        assert [bound for bound, _ in c.bounds] == [4, 32, 256]
        widths = [column.plus_minus for _, (column,) in c.bounds]
        assert widths[2] == pytest.approx(64 * widths[0], rel=0.1)  # type: ignore[operator]
        assert "bound found" in str(c)
        assert "30 %" in str(c) or "30%" in str(c)
        assert Check.from_wire(json.loads(json.dumps(c.to_wire()))).bounds == c.bounds
        assert s.remaining == 50
        s.sql(COUNT, epsilon=1, max_rows="auto")
        assert s.check(COUNT, epsilon=2, max_rows="auto").bounds == ()  # it is known now


@pytest.mark.parametrize(
    ("sql", "options", "words"),
    [
        ("SELECT AVG(x) FROM t", {"max_rows": "auto"}, "finds a bound for SUM\\(x\\) alone"),
        ("SELECT SUM(x * 2) FROM t", {}, "finds a bound for SUM\\(x\\) alone"),
        ("SELECT SUM(x), SUM(CASE WHEN n > 1 THEN x END) FROM t", {}, "one by one"),
        (COUNT, {"max_rows": "auto", "bounding": "norm"}, "norms are clipped"),
        (SUM, {"bounding": "norm", "max_total": 9}, "norms are clipped"),
        ("SELECT ward, SUM(x) AS s FROM t GROUP BY ward", {"bounding": "norm", "max_groups": 2}, "norms are clipped"),
        (COUNT, {"max_rows": "auto", "epsilon": None, "within": 10, "at_most": 1}, "found in the charge"),
        (COUNT, {"max_rows": "most"}, "max_rows='most'"),
        (COUNT, {"max_total": "auto"}, "max_total='auto'"),
    ],
)
def test_what_cannot_be_found_is_refused_before_the_charge(sql: str, options: dict[str, Any], words: str) -> None:
    with opened() as s:
        with pytest.raises(hb.HubbubError, match=words):
            s.sql(sql, **{"epsilon": 1, **options})
        assert s.remaining == 50


def test_what_is_found_for_a_sum_alone_may_be_declared_or_clamped() -> None:
    with opened() as s, pytest.raises(hb.PolicyError, match="alone") as refused:
        s.sql("SELECT SUM(x * 2) FROM t", epsilon=1)
    assert [remedy.kind for remedy in refused.value.remedies] == ["declare a range", "rewrite"]


def test_a_bound_beside_groups_that_another_question_finds_is_refused_for_what_it_is() -> None:
    """Before, the refusal asked for a budget with delta, under a budget with delta."""
    sql = (
        "WITH a AS (SELECT w, COUNT(*) AS n FROM t GROUP BY w), b AS (SELECT SUM(x) AS s FROM t) SELECT n, s FROM a, b"
    )
    rows = pa.table({"id": [1, 2], "w": ["a", "b"], "x": [1.0, 2.0]})
    table = hb.table(rows, unit="id", max_groups=1, max_rows=1, columns={"x": hb.between(0, "auto")})
    with Session({"t": table}, budget=hb.Budget(3, "1e-6"), ledger=None) as s:
        for ask in (s.check, s.sql):
            with pytest.raises(QueryError, match=r"no bound can be found where the groups are found privately"):
                ask(sql, epsilon=1)
        assert not list(s.history())


def test_an_average_takes_a_range_and_rows_that_are_found() -> None:
    with opened() as s:
        r = s.sql("SELECT AVG(n) AS a, STDDEV(n) AS d FROM t", epsilon=5, max_rows="auto")
        assert abs(r.to_dict()["a"][0] - 2.333) < 0.2
        with pytest.raises(hb.QueryError, match="ask with the bound that was found"):
            r.refine(1)


def test_declared_bounds_are_zero_or_more() -> None:
    assert repr(hb.between(0, "auto")) == "between(0, 'auto')"
    for low in (-1, "2020-01-01", None):
        with pytest.raises(hb.PolicyError):
            hb.between(low, "auto")
    with pytest.raises(hb.PolicyError, match=r"finds one bound.*suggest_bounds.*in two columns"):
        hb.between("auto", "auto")
    with pytest.raises(hb.PolicyError, match="no midpoint"):
        hb.between(0, "auto", nullable=False)
    with pytest.raises(hb.PolicyError, match="holds values of type text"):
        Session({"t": visits(columns={"ward": hb.between(0, "auto")})}, budget=hb.Budget(1), ledger=None)


def test_a_process_without_a_ledger_makes_the_same_request() -> None:
    with opened() as s:
        s.sql(COUNT, epsilon=1, max_rows="auto")
        door, options = s._door, Options.of({"epsilon": 2, "max_rows": "auto"})
        asked = door.data.ask(COUNT, options, door.ledger.balance.budget)
        assert isinstance(asked, PricedStatement)
        request = request_of(knowing(door, asked, options), door.data, options)
        order = door.open(request, sent=True)
        assert isinstance(order, Order)
        again = request_again(Order.from_wire(order.to_wire()), door.data)
        assert (again.event, again.key("v"), again.capped) == (request.event, request.key("v"), False)
        door.ledger.charges.let_go(order.charge)


def test_what_is_declared_auto_is_found_by_each_question_that_gives_no_number() -> None:
    with opened(max_rows="auto", max_groups="auto") as s:
        c = s.check(COUNT, epsilon=1)
        assert [bound for bound, _ in c.bounds] == [4, 32, 256]
        r = s.sql(COUNT, epsilon=1)
        assert r.text.notes[0].startswith("found: at most 8 rows of one id")
        by_ward = s.sql("SELECT ward, COUNT(*) AS n FROM t GROUP BY ward", epsilon=9)
        assert [f["what"] for f in by_ward.receipt["found"]] == ["groups", "rows"]
        given = s.sql("SELECT ward, COUNT(*) AS n FROM t GROUP BY ward", epsilon=1, max_rows=2, max_groups=3)
        assert "found" not in given.receipt
        assert "found" not in s.sql("SELECT COUNT(DISTINCT id) AS n FROM t", epsilon=1).receipt
        assert "found" not in s.sql(COUNT, epsilon=1, max_total=9).receipt
        shown = s.tables["t"]
        assert shown.limits == "max_groups = auto, max_rows = auto"
        assert "auto" in str(s.sql("SHOW TABLES").rows())


def test_a_number_in_all_that_is_declared_stands_for_the_rows_of_an_answer_without_groups() -> None:
    with opened(max_rows="auto", max_groups=3, max_total=5) as s:
        assert "found" not in s.sql(COUNT, epsilon=1).receipt
        by_ward = s.sql("SELECT ward, COUNT(*) AS n FROM t GROUP BY ward", epsilon=9)
        assert [f["what"] for f in by_ward.receipt["found"]] == ["rows"]


def test_what_one_side_of_a_join_declares_auto_is_found_for_both() -> None:
    tables = {
        "t": hb.table(people(), unit="id", max_groups=1, max_rows="auto"),
        "u": hb.table(people(), unit="id", max_groups=1, max_rows=1),
    }
    with Session(tables, budget=hb.Budget(50), ledger=None, _bits=SeededBits(5)) as s:
        r = s.sql("SELECT COUNT(*) AS n FROM t JOIN u ON t.id = u.id AND t.n = u.n", epsilon=5)
        assert [f["what"] for f in r.receipt["found"]] == ["rows"]
        per = s.sql("SELECT COUNT(*) AS n FROM (SELECT id, COUNT(*) AS k FROM t GROUP BY id) WHERE k > 2", epsilon=5)
        assert "found" not in per.receipt


def test_auto_is_declared_in_a_policy_too(tmp_path: Path) -> None:
    pq.write_table(people(), tmp_path / "t.parquet")
    policy = tmp_path / "hubbub.toml"
    text = """
[budget]
epsilon = 10
[ledger]
file = "ledger.db"
[tables.t]
source = "t.parquet"
unit = "id"
max_groups = "auto"
max_rows = "auto"
[tables.t.columns]
x = { between = [0, "auto"] }
"""
    policy.write_text(text)
    with Session.from_policy(policy, create_ledger=True) as s:
        assert [bound for bound, _ in s.check(COUNT, epsilon=1).bounds] == [4, 32, 256]
        assert s.check(SUM, epsilon=1).bounds
    policy.write_text(text.replace('[0, "auto"]', '["auto", "auto"]'))
    with pytest.raises(hb.PolicyError, match="suggest_bounds"):
        Session.from_policy(policy)
    policy.write_text(text.replace('max_rows = "auto"', 'max_rows = "some"'))
    with pytest.raises(hb.PolicyError, match="max_rows"):
        Session.from_policy(policy)


def test_norms_are_clipped_to_numbers() -> None:
    with pytest.raises(hb.PolicyError, match='give numbers, not "auto"'):
        opened(max_rows="auto", bounding="norm")
    with pytest.raises(hb.PolicyError, match="whole number"):
        opened(max_total="auto")


def bought(s: Session) -> int:
    """How many searches the last charge paid for."""
    event = from_json(s.history()[-1].event)
    return sum(isinstance(part, DiscreteLaplace) and part.sensitivity == 1 for part in event.events[:-1])  # type: ignore[attr-defined]


def test_the_bound_of_the_whole_table_serves_questions_under_conditions_and_in_groups() -> None:
    by_ward = "SELECT ward, COUNT(*) AS n FROM t GROUP BY ward"
    with opened(max_groups=3) as s:
        s.sql(COUNT, epsilon=2, max_rows="auto")
        assert bought(s) == 1
        for sql in (f"{COUNT} WHERE n > 2", by_ward, f"{COUNT} WHERE ward = 'A' AND n < 5",
                    "SELECT COUNT(*) AS c, AVG(n) AS a FROM t WHERE n > 1"):  # fmt: skip
            told = s.check(sql, epsilon=1, max_rows="auto")
            assert told.bounds == ()
            r = s.sql(sql, epsilon=1, max_rows="auto")
            assert bought(s) == 0
            assert r.receipt["found"][0]["bound"] == "8"
        s.sql(SUM, epsilon=2)
        assert bought(s) == 1
        s.sql(f"{SUM} WHERE n > 3", epsilon=1)
        s.sql("SELECT ward, SUM(x) AS s FROM t GROUP BY ward", epsilon=1)
        assert bought(s) == 0


def test_the_bound_of_fewer_rows_does_not_serve_more() -> None:
    with opened(max_groups=3) as s:
        s.sql(f"{COUNT} WHERE n > 5", epsilon=5, max_rows="auto")
        for sql in (COUNT, f"{COUNT} WHERE n > 4", "SELECT ward, COUNT(*) AS n FROM t GROUP BY ward"):
            s.sql(sql, epsilon=1, max_rows="auto")
            assert bought(s) == 1
            s.refresh("t")
            s.sql(f"{COUNT} WHERE n > 5", epsilon=5, max_rows="auto", fresh=True)


def test_the_number_of_groups_serves_the_same_groups_under_a_condition_alone() -> None:
    by_ward = "SELECT ward, COUNT(*) AS n FROM t {} GROUP BY ward"
    limits: dict[str, Any] = {"max_groups": "auto", "max_rows": 2}
    with opened() as s:
        s.sql(by_ward.format(""), epsilon=5, **limits)
        s.sql(by_ward.format("WHERE n > 2"), epsilon=1, **limits)
        assert bought(s) == 0
        s.sql("SELECT n, COUNT(*) AS c FROM t GROUP BY n", epsilon=1, keys={"n": [1, 2, 3]}, **limits)
        assert bought(s) == 1


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_how_many_exceed_a_bound_is_said_of_the_bound_that_is_used(
    monkeypatch: pytest.MonkeyPatch, neighbours: str
) -> None:
    """Where the noise for the bound that was found does not fit, half of it is used; no bound below the first place."""
    priced = Finding.price
    frame = pa.table({"id": [u for u in range(3000) for _ in range(2 ** (u % 4))], "n": [1] * 11250})

    def narrow(finding: Finding, plans: Any) -> Any:
        if any(plan.bounds.rows > 2 and not plan.search for plan in plans) and not finding.known:
            raise QueryError("the noise does not fit")
        return priced(finding, plans)

    with opened(frame, columns={}, max_groups=1, neighbours=neighbours) as s:
        known = s.sql(COUNT, epsilon=2, max_rows="auto").receipt["found"][0]
    with opened(frame, columns={}, max_groups=1, neighbours=neighbours) as s:
        asked = s._data.ask(COUNT, Options(epsilon="2", max_rows="auto"), lambda _: hb.Budget(50))
        assert isinstance(asked, PricedStatement)
        assert asked.finding is not None
        with monkeypatch.context() as patched:
            patched.setattr(Finding, "price", narrow)
            steps = asked.finding.find(lambda plan, _: s._data.run(plan, {}).vectors[0], SeededBits(5))
            next(steps)
            with pytest.raises(StopIteration) as ended:
                next(steps)
            (plan,), (entry,) = ended.value.value
            patched.setattr(Finding, "price", Mock(side_effect=QueryError("it never fits")))
            steps = asked.finding.find(lambda plan, _: s._data.run(plan, {}).vectors[0], SeededBits(5))
            next(steps)
            with pytest.raises(QueryError, match="never fits"):
                next(steps)
    assert (known["bound"], entry["bound"], plan.bounds.rows) == ("8", "2", 2)
    # Of 3,000 units a quarter has 4 rows, and a quarter 8.
    assert entry["beyond"] > 1500 > 750 > known["beyond"]
    assert "at most 2 rows of one id; with probability .95 at most 1," in told((plan,), (entry,))[0]


@pytest.mark.parametrize(
    "auto", [{"max_rows": "auto"}, {"max_groups": "auto"}, {"max_rows": "auto", "max_groups": "auto"}]
)
@pytest.mark.parametrize("many", [100, 101, 900])
def test_bounds_are_found_in_groups_of_a_long_list(many: int, auto: dict[str, Any]) -> None:
    """The values of a long list stand beside the text, and a search reads them too."""
    frame = pa.table({"id": [i % 500 for i in range(3000)], "n": [i % many for i in range(3000)]})
    table = hb.table(frame, unit="id", max_groups=9, max_rows=9, columns={"n": hb.between(0, many - 1)})
    with Session({"t": table}, budget=hb.Budget(50), ledger=None, _bits=SeededBits(5)) as s:
        counted = s.sql("SELECT n, COUNT(*) AS a FROM t GROUP BY n", epsilon=20, **auto)
        assert sum(row[1] for row in counted.rows()) == pytest.approx(3000, rel=0.1)


def test_a_zero_of_case_adds_nothing_where_values_start_above_it() -> None:
    rows = pa.table(
        {"id": list(range(3000)), "x": [5 + i % 3 for i in range(3000)], "b": [i < 2500 for i in range(3000)]}
    )
    table = hb.table(rows, unit="id", max_total=1, columns={"x": hb.between(5, "auto")})
    with hb.Session({"v": table}, budget=hb.Budget(epsilon=1000), ledger=None) as s:
        found = s.sql("SELECT SUM(CASE WHEN b THEN x ELSE 0 END) AS s FROM v", epsilon=100).rows()[0][0]
    assert abs(found - sum(5 + i % 3 for i in range(2500))) < 100
