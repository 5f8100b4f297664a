"""One opened session serves several analysts, each with limits and charges of their own; a check may be sent."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from hubbub.session.check import Check

COUNT = "SELECT COUNT(*) AS n FROM v"


def opened(path: Path, *, delta: str | None = None) -> hb.Session:
    rows = pa.table({"id": list(range(900)), "x": [i % 50 for i in range(900)], "w": ["a", "b", "c"] * 300})
    columns = {"x": hb.between(0, 50), "w": hb.one_of("a", "b", "c")}
    table = hb.table(rows, unit="id", columns=columns, max_groups=1, max_rows=1)
    budget = hb.Budget(3) if delta is None else hb.Budget(3, delta=delta)
    return hb.Session({"v": table}, budget=budget, ledger=path / "l.db", analyst="ada")


def test_each_analyst_pays_for_himself(tmp_path: Path) -> None:
    with opened(tmp_path) as s:
        bob = s.as_analyst("bob")
        s.sql(COUNT, epsilon=1)
        bob.sql("SELECT AVG(x) AS m FROM v", epsilon="0.5")
        assert [(e.analyst, e.epsilon) for e in s.history()] == [("ada", 1), ("bob", Fraction(1, 2))]
        assert s.remaining == bob.remaining == Fraction(3, 2)
        # What ada bought is free for the data, and counts against what bob may learn.
        assert not bob.sql(COUNT, epsilon=1).charged
        assert s.history()[-1].kind == "reading"


def test_the_limit_of_an_analyst_is_his_own(tmp_path: Path) -> None:
    with opened(tmp_path) as s:
        s.as_analyst("eve").close()  # which closes nothing
        with s.as_analyst("eve") as eve:
            from hubbub.ledger.store import Ledger

            with Ledger.manage(tmp_path / "l.db") as steward:
                getattr(steward, "steward", steward).grant("id", "analyst:eve", "0.25", author="boss")
            with pytest.raises(hb.BudgetError, match="eve"):
                eve.sql(COUNT, epsilon="0.5")
            assert not eve.check(COUNT, epsilon="0.5").affordable
            assert s.check(COUNT, epsilon="0.5").affordable
        assert s.sql(COUNT, epsilon="0.5").charged


def test_a_block_of_one_does_not_pay_for_another(tmp_path: Path) -> None:
    with opened(tmp_path) as s:
        bob = s.as_analyst("bob")
        with s.reserve(epsilon=2):
            bob.sql(COUNT, epsilon="0.5")
            assert s.history()[-1].block is None
            with pytest.raises(hb.BudgetError):
                bob.sql("SELECT AVG(x) FROM v", epsilon=1)


@pytest.mark.parametrize("name", ["", " ", "*", "a" * 300, "\ud800", 3, None])
def test_what_is_not_a_name_is_refused(tmp_path: Path, name: object) -> None:
    with opened(tmp_path) as s, pytest.raises(hb.QueryError):
        s.as_analyst(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [None, "1e-6"])
@pytest.mark.parametrize(
    "sql",
    [
        COUNT,
        "SELECT w, COUNT(*) AS n, AVG(x) AS m, MEDIAN(x) AS h FROM v GROUP BY w",
        "SELECT COUNT(*) / 2 AS half FROM v",
    ],
)
def test_a_check_is_the_same_after_the_wire(tmp_path: Path, sql: str, delta: str | None) -> None:
    with opened(tmp_path, delta=delta) as s:
        check = s.check(sql, epsilon="1/3")
        back = Check.from_wire(json.loads(json.dumps(check.to_wire())))
        assert back == check
        assert str(back) == str(check)
        assert json.loads(json.dumps(check.to_wire()))["cost"] == "1/3"


@pytest.mark.parametrize("wire", [{}, {"format": "check 0"}, {"format": "check 1", "epsilon": "x"}])
def test_what_is_not_a_check_is_refused(wire: dict[str, str]) -> None:
    with pytest.raises(hb.ParameterError, match="not a check"):
        Check.from_wire(wire)


def test_what_a_question_is_asked_for_stands_with_its_charge(tmp_path: Path) -> None:
    (tmp_path / "hubbub.toml").write_text(
        '[ledger]\nfile = "l.db"\nrequire_purpose = true\n[budget]\nepsilon = 2\n[tables.v]\nsource = "v.parquet"\n'
        'unit = "id"\nmax_groups = 1\nmax_rows = 1\n'
    )
    pq.write_table(pa.table({"id": list(range(50))}), tmp_path / "v.parquet")
    policy = tmp_path / "hubbub.toml"
    with hb.Session.from_policy(policy, create_ledger=True, analyst="ada") as s:
        with pytest.raises(hb.QueryError, match="asked for"):
            s.sql(COUNT, epsilon="0.5")
        assert s.history() == []
        bob = s.as_analyst("bob", purpose="the yearly report")
        bob.sql(COUNT, epsilon="0.5")
        with bob.reserve(epsilon="0.5"):
            bob.sql(COUNT, epsilon="0.25", fresh=True)
        bob.plan([("SELECT COUNT(*) + 1 AS m FROM v", "0.75")])
        assert {e.purpose for e in s.history() if e.kind != "return"} == {"the yearly report"}
    with hb.Session.from_policy(policy, analyst="ada", purpose="a second look") as s:
        s.sql(COUNT, epsilon="0.1", fresh=True)
        assert s.history()[-1].purpose == "a second look"
    for wrong in ("", "x" * 201, 3):
        with pytest.raises(hb.QueryError, match="purpose"):
            hb.Session.from_policy(policy, purpose=wrong)  # type: ignore[arg-type]
