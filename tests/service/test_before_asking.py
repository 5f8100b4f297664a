"""What the library offers a service: types before asking, empty tables, own answers alone, a cap on aggregates."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from hubbub.ledger.policy import load_policy
from hubbub.ledger.policy_schema import policy_schema
from hubbub.service import clerk
from hubbub.session.check import Check
from hubbub.session.data import OpenTables
from hubbub.session.empty import EmptyTables, schema_of
from hubbub.session.open import private_of, public_of
from hubbub.session.options import Options
from hubbub.session.statement import request_of

COUNT = "SELECT COUNT(*) AS n FROM v"
QUESTIONS = [
    COUNT,
    "SELECT w, COUNT(*) AS n, AVG(x) AS m, MEDIAN(x) AS h FROM v GROUP BY w ORDER BY n DESC LIMIT 1",
    "SELECT x * 2 AS x2, SUM(x) AS s FROM v GROUP BY x",
    "SELECT w FROM v GROUP BY w HAVING COUNT(*) > 3",
    "WITH g AS (SELECT w, COUNT(*) AS n FROM v GROUP BY w) SELECT MAX(n) AS top, 1.5 AS one FROM g",
    "SELECT COUNT(DISTINCT w) AS k, CAST(COUNT(*) AS VARCHAR) AS t FROM v",
]

POLICY = """
[ledger]
file = "l.db"
[budget]
epsilon = 5
[service]
shared_answers = {shared}
max_aggregates = 3
answer_time = 2
[tables.v]
source = "v.parquet"
unit = "id"
max_groups = 1
max_rows = 1
answer_time = 1.5
[tables.v.columns]
x = {{ between = [0, 50] }}
w = {{ one_of = ["a", "b", "c"] }}
"""


@pytest.fixture
def tables():
    rows = pa.table({"id": list(range(90)), "x": [i % 50 for i in range(90)], "w": ["a", "b", "c"] * 30})
    columns = {"x": hb.between(0, 50), "w": hb.one_of("a", "b", "c")}
    return {"v": hb.table(rows, unit="id", columns=columns, max_groups=1, max_rows=1)}


def policy(folder: Path, *, shared: str = "true") -> Path:
    rows = {"id": list(range(90)), "x": [i % 50 for i in range(90)], "w": ["a", "b", "c"] * 30}
    pq.write_table(pa.table(rows), folder / "v.parquet")
    (folder / "hubbub.toml").write_text(POLICY.format(shared=shared))
    return folder / "hubbub.toml"


@pytest.mark.filterwarnings("ignore:ledger=None")
@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_check_says_the_names_and_types_that_the_answer_has(tables, delta):
    budget = hb.Budget(9) if delta is None else hb.Budget(9, delta=delta)
    with hb.Session(tables, budget=budget, ledger=None) as session:
        for sql in QUESTIONS:
            told = session.check(sql, epsilon="0.5").types
            schema = session.sql(sql, epsilon="0.5").to_arrow().schema
            assert told == tuple((field.name, str(field.type)) for field in schema), sql
            assert len(told) == len(schema)
        wire = json.loads(json.dumps(session.check(COUNT, epsilon=1).to_wire()))
        assert Check.from_wire(wire).types == (("n", "int64"),)


@pytest.mark.filterwarnings("ignore:ledger=None")
def test_a_question_about_empty_tables_is_the_same_question(tables):
    with hb.Session(tables, budget=hb.Budget(3), ledger=None) as session:
        described = json.loads(json.dumps(schema_of(session._data)))
        empty = EmptyTables(tables, described)
        for sql in QUESTIONS:
            options = Options(epsilon="0.5")
            pair = [
                request_of(data.ask(sql, options, lambda _: hb.Budget(3)), data, options)
                for data in (session._data, empty)
            ]
            assert pair[0].key("v1") == pair[1].key("v1"), sql
            assert pair[0].details == pair[1].details
        assert empty.mark("v") is None
        empty.close()
        described["v"]["columns"]["x"] = "text"
        with pytest.raises(hb.PolicyError, match="it holds values of type text"):
            EmptyTables(tables, described)
        with pytest.raises(hb.PolicyError, match="described were"):
            EmptyTables(tables, {})


@pytest.mark.parametrize("shared", ["true", "false"])
def test_shared_answers_decides_whether_analysts_reuse_each_others(tmp_path, shared):
    hb.Session.from_policy(policy(tmp_path, shared=shared), create_ledger=True).close()
    with hb.Session.from_policy(tmp_path / "hubbub.toml", analyst="ada") as session:
        bob = session.as_analyst("bob")
        first = session.sql(COUNT, epsilon=1)
        assert bob.check(COUNT, epsilon=1).stored is (shared == "true")
        assert session.check(COUNT, epsilon=1).stored
        answer = bob.sql(COUNT, epsilon=1)
        assert answer.charged is (shared == "false")
        assert session.remaining == Fraction(5) - (1 if shared == "true" else 2)
        if shared == "true":
            assert len(bob.history()) == 2
            assert bob.receipt(first.charge_id)["analyst"] == "ada"
        else:
            assert [entry.analyst for entry in bob.history()] == ["bob"]
            with pytest.raises(hb.PolicyError, match="there is no charge"):
                bob.receipt(first.charge_id)
        assert not session.sql(COUNT, epsilon=1).charged


def test_a_question_has_no_more_aggregates_than_the_policy_allows(tmp_path):
    hb.Session.from_policy(policy(tmp_path), create_ledger=True).close()
    with hb.Session.from_policy(tmp_path / "hubbub.toml") as session:
        session.check("SELECT COUNT(*), SUM(x), AVG(x) FROM v", epsilon=1)
        with pytest.raises(hb.QueryError, match=r"4 aggregates; 3 are allowed \(`max_aggregates`"):
            session.sql("SELECT COUNT(*), SUM(x), AVG(x), MIN(x) FROM v", epsilon=1)
        assert session.remaining == 5


def test_the_section_of_the_service_is_read_and_checked(tmp_path):
    file = policy(tmp_path)
    found = load_policy(file)
    assert (found.service.answer_time, found.service.lanes, found.tables["v"].answer_time) == (2.0, 1, 1.5)
    properties = policy_schema()["properties"]["service"]["properties"]
    assert properties.keys() == type(found.service).__dataclass_fields__.keys()
    more = ("ask_steward_above = 0", 'ask_steward_above = "much"', 'public_url = "ftp://x"', "checks_a_second = 0",
            "logins_a_minute = 0.5", "most_waiting = 0")  # fmt: skip
    for wrong in (*more, "answer_time = 0", "tick = true", 'lanes = "two"', "memory = 0", "colour = 1", "tick = 4000"):
        text = POLICY.format(shared="true").replace("max_aggregates = 3\nanswer_time = 2", wrong)
        file.write_text(text)
        with pytest.raises(hb.PolicyError, match=r"hubbub.toml:\d+: service"):
            load_policy(file)


def test_the_clerk_runs_nobody_s_public_statement_for_long(tmp_path, monkeypatch):
    """A cross join of public tables is planned by counting its rows: for a minute nobody else's question was."""
    file = policy(tmp_path)
    pq.write_table(pa.table({"k": list(range(3000))}), tmp_path / "p.parquet")
    file.write_text(file.read_text() + '\n[public.p]\nsource = "p.parquet"\n')
    read = load_policy(file)
    monkeypatch.setattr(clerk, "_OUTER", 0.3)
    tables = {name: private_of(one) for name, one in read.tables.items()}
    tables |= {name: public_of(one) for name, one in read.public.items()}
    data = clerk.empty_tables(read, schema_of(OpenTables(tables)))
    keys = "SELECT a.k % 5 AS k FROM p AS a, p AS b, p AS c GROUP BY 1"
    sql = f"SELECT q.k, COUNT(*) AS n FROM v JOIN ({keys}) AS q ON v.x = q.k GROUP BY q.k"
    with pytest.raises(hb.QueryError, match=r"0\.3 seconds"):
        data.ask(sql, Options(epsilon="0.5"), lambda _: hb.Budget(3))
    data.close()
