"""One suite for two faces: each test runs as it stands against a session and against a connection to a service.

The service is one for all of them, by a clock that no test waits for, and every question is asked ahead. Epsilon is so
large that there is no noise to speak of; and what is refused must be refused word for word.
"""

from __future__ import annotations

import datetime as dt
import json
import warnings
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.errors import HubbubError
from hubbub.ledger import hash_chain
from people import HUGE, visits
from remote.living import Hurrying, Living
from test_session import ORACLE, plain

pytestmark = pytest.mark.face
BEDS = pa.table({"ward": ["A", "B", "C"], "beds": [3, 4, 5]})
AT = {"epsilon": HUGE}
FRAMES = {
    "count": lambda t: t.agg(hb.count().alias("n")),
    "filter": lambda t: t.filter(hb.col("n") > 2, hb.col("ok")).agg(hb.count().alias("n")),
    "group": lambda t: t.group_by("ward").agg(hb.count().alias("n"), hb.mean("n").alias("m")).order_by("ward"),
    "computed": lambda t: t.with_columns(twice=hb.col("n") * 2).agg(hb.sum("twice").alias("s")),
    "join": lambda t: t.join("beds", on="ward").agg(hb.sum("n").alias("s")),
    "having": lambda t: t.group_by("ward").agg(hb.count().alias("n")).filter(hb.col("n") > 1),
    "limit": lambda t: t.group_by("ward").agg(hb.count().alias("n")).order_by("n", descending=True).limit(1),
    "share": lambda t: t.agg((hb.sum("n") / hb.count()).alias("r")),
    "units": lambda t: t.agg(hb.units().alias("u")),
    "value_counts": lambda t: t.value_counts("ward"),
    "crosstab": lambda t: t.crosstab("ward", "ok"),
    "hist": lambda t: t.hist("age", [0, 32, 64, 128]),
    "describe": lambda t: t.describe("age"),
    "describe all": lambda t: t.describe(),
    "when": lambda t: t.agg(hb.sum(hb.when(hb.col("n") > 3).then(1).otherwise(0)).alias("k")),
    "distinct": lambda t: t.agg(hb.n_distinct("id").alias("d")),
    "rollup": lambda t: t.rollup("ward").agg(hb.count().alias("n")),
}
REFUSED = [
    ("", AT), ("SELECT", AT), ("DROP TABLE visits", AT), ("SELECT 1; SELECT 2", AT), ("SELECT * FROM visits", AT),
    ("SELECT COUNT(*) FROM visit", AT), ("SELECT SUM(foo) FROM visits", AT), ("SELECT COUNT(* FROM visits", AT),
    ("SELECT id FROM visits", AT), ("SELECT ward, COUNT(*) FROM visits", AT), ("SELECT SUM(day) FROM visits", AT),
    ("SELECT day, COUNT(*) FROM visits GROUP BY day", AT), ("SELECT MAX(n) FROM visits, visits v2", AT),
    ("SELECT COUNT(*) FROM visits WHERE ward = $w", AT), ("SELECT COUNT(*) FROM visits WHERE foo(n) = 1", AT),
    ("SELECT id, COUNT(*) FROM visits GROUP BY id", AT), ("SELECT 'quote FROM visits", AT),
    ("SELECT COUNT(*) FROM read_csv('x')", AT), ("INSERT INTO visits VALUES (1)", AT), ("DESCRIBE visit", AT),
    ("SELECT COUNT(*) FROM visits", {}), ("SELECT COUNT(*) FROM visits", {"epsilon": 0}),
    ("SELECT COUNT(*) FROM visits", {"epsilon": -1}), ("SELECT COUNT(*) FROM visits", {"epsilon": "much"}),
    ("SELECT COUNT(*) FROM visits", {"epsilon": 1, "rho": 1}), ("SELECT COUNT(*) FROM visits", {"rho": 1}),
    ("SELECT COUNT(*) FROM visits", {"epsilon": 1, "noise": "gaussian"}),
    ("SELECT COUNT(*) FROM visits", {"epsilon": 1, "noise": "uniform"}),
    ("SELECT COUNT(*) FROM visits", {"within": 5}), ("SELECT COUNT(*) FROM visits", {"within": -5, "at_most": 1}),
    ("SELECT COUNT(*) AS n FROM visits", {"within": {"m": 5}, "at_most": 1}),
    ("SELECT COUNT(*) AS n FROM visits", {"within": 0.001, "at_most": "0.1"}),
    ("SELECT COUNT(*) FROM visits", {"epsilon": 1, "max_groups": 0}),
    ("SELECT COUNT(*) FROM visits", {"epsilon": 1, "max_rows": "few"}),
    ("SELECT COUNT(*) FROM visits", {"epsilon": 1, "bounding": "none"}),
    ("SELECT COUNT(*) FROM visits", {"epsilon": 1, "weights": {"n": 0}}),
    ("SELECT COUNT(*) FROM visits", {"epsilon": 1, "weights": {"m": 2}}),
    ("SELECT COUNT(*) FROM visits", {"epsilon": 1, "weight": "nothing"}),
    ("SELECT COUNT(*) FROM visits", {"epsilon": 1, "assume_rows": 0}),
    ("SELECT COUNT(*) FROM visits", {"epsilon": 1, "nonsense": 2}),
    ("SELECT COUNT(*) FROM visits", {"epsilon": 1, "total_error": 3}),
    ("SELECT COUNT(*) FROM visits WHERE n = ?", {"epsilon": 1, "params": []}),
]  # fmt: skip
CHECKED = [
    ("SELECT COUNT(*) AS n FROM visits WHERE n > 3", {"epsilon": "0.5"}),
    ("SELECT COUNT(*) AS n FROM visits WHERE n > 3", {"epsilon": Fraction(1, 3)}),
    ("SELECT COUNT(*) AS n FROM visits WHERE n > 3", {"within": 30, "at_most": 5}),
    ("SELECT ward, COUNT(*) AS n, AVG(age) AS m FROM visits GROUP BY ward", {"epsilon": 1, "assume_rows": 50}),
    ("SELECT SUM(n) AS s FROM visits WHERE ward = $w", {"epsilon": 1, "params": {"w": "A"}}),
    ("SELECT SUM(n) AS s FROM visits WHERE day > $d", {"epsilon": 1, "params": {"d": dt.date(1970, 2, 1)}}),
    ("SELECT day, COUNT(*) AS n FROM visits GROUP BY day", {"epsilon": 1, "keys": {"day": [dt.date(1970, 1, 1)]}}),
    ("SELECT COUNT(*) AS n, SUM(n) AS s FROM visits", {"epsilon": 1, "weights": {"n": 3}}),
    ("SELECT MEDIAN(age) AS m FROM visits", {"epsilon": 1}),
    ("SELECT COUNT(*) AS n FROM visits", {"epsilon": 1, "max_groups": 1, "max_rows": 2}),
    ("SELECT SUM(beds) AS b FROM beds", {"epsilon": 1}),
    ("DESCRIBE visits", {}),
    ("SHOW TABLES", {}),
]


def tables():
    return {"visits": visits(), "beds": hb.public(BEDS)}


def opened(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return hb.Session(tables(), budget=hb.Budget(100_000 * HUGE), ledger=folder / "own.db", analyst="ada")


@pytest.fixture(scope="module")
def living(tmp_path_factory):
    clock = Hurrying()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hash_chain, "now", clock.wall)
        made = Living(tmp_path_factory.mktemp("living"), tables(), hb.Budget(100_000 * HUGE), clock=clock)
        yield made
        made.close()


@pytest.fixture(scope="module")
def connection(living):
    """With everything asked ahead."""
    with hb.connect(living.url, token=living.token("ada")) as made:
        for sql in ORACLE:
            made.ask(sql, **AT)
        for frame in FRAMES.values():
            made.ask(frame(made.table("visits")).sql(), **AT)
        yield made


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("reference")) as session:
        yield session


@pytest.fixture(scope="module", params=["session", "connection"])
def face(request, tmp_path_factory):
    if request.param == "connection":
        pytest.importorskip("starlette", reason="the service needs the extra `serve`")
        yield request.getfixturevalue("connection")
        return
    with opened(tmp_path_factory.mktemp("own")) as session:
        yield session


def near(a, b):
    return a == b or (a is not None and b is not None and not isinstance(a, str) and abs(a - b) < 1e-3)


def rows_near(one, two):
    return len(one) == len(two) and all(
        len(a) == len(b) and all(near(x, y) for x, y in zip(a, b, strict=True)) for a, b in zip(one, two, strict=True)
    )


@pytest.mark.parametrize("sql", ORACLE)
def test_an_answer_without_noise_is_the_plain_engine_s(face, sql):
    answer = face.sql(sql, **AT)
    kind = (lambda rows: sorted(rows, key=repr)) if "ORDER BY" not in sql else list
    assert rows_near(kind(answer.rows()), kind(plain(sql)))


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_is_the_same_sql_and_the_same_answer(face, reference, name):
    question = FRAMES[name](face.table("visits"))
    known = FRAMES[name](reference.table("visits"))
    assert question.sql() == known.sql()
    answer, expected = question.run(**AT), known.run(**AT)
    assert answer.to_arrow().schema.equals(expected.to_arrow().schema)
    if "describe" not in name:  # a quantile may lie anywhere between two of these few values
        assert rows_near(answer.rows(), expected.rows())


@pytest.mark.parametrize(("sql", "options"), REFUSED, ids=[f"{k} {s[:40]}" for k, (s, _) in enumerate(REFUSED)])
def test_a_refusal_is_the_same_word_for_word(face, reference, sql, options):
    refused = []
    for asked in (face, reference):
        for act in (asked.check, asked.sql):
            with pytest.raises(HubbubError) as error:
                act(sql, **options)
            told = error.value
            refused.append((type(told), str(told), told.position, [r.to_wire() for r in told.remedies]))
    assert refused[0] == refused[2]
    assert refused[1] == refused[3]


@pytest.mark.parametrize(("sql", "options"), CHECKED, ids=[s for s, _ in CHECKED])
def test_a_check_is_the_same(face, reference, sql, options):
    one, two = face.check(sql, **options), reference.check(sql, **options)
    assert one.types == two.types
    assert str(one).split("left:")[0] == str(two).split("left:")[0]
    assert (one.columns, one.mechanism, one.notes, one.cost) == (two.columns, two.mechanism, two.notes, two.cost)


@pytest.fixture
def answer(face):
    return face.sql("SELECT ward, COUNT(*) AS n, AVG(age) AS m FROM visits GROUP BY ward", epsilon=8)


def test_an_answer_in_all_its_forms(answer):
    assert answer.columns == ("ward", "n", "m")
    assert len(answer) == 4
    assert answer.to_arrow().schema.types == [pa.string(), pa.int64(), pa.float64()]
    assert answer.to_dict()["ward"] == ["A", "B", "C", None]
    assert list(answer.to_pandas().columns) == ["ward", "n", "m"]
    assert answer.to_polars().shape == (4, 3)
    assert pa.table(answer).equals(answer.to_arrow())
    assert json.loads(answer.to_wire())["format"] == "release 1"
    assert "±" in str(answer)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.97, 0.999])
def test_intervals_at_any_level(answer, level):
    table = answer.intervals(level)
    assert table.column_names == ["ward", "n", "n_low", "n_high", "m", "m_low", "m_high"]
    widths, wider = answer.error.half_widths(level)["n"], answer.error.half_widths(0.9995)["n"]
    assert all(a <= b for a, b in zip(widths, wider, strict=True))
    with pytest.raises(hb.ParameterError, match="a level lies between 0 and 1"):
        answer.intervals(2)


def test_a_stored_answer_is_free_and_the_same(face, answer):
    before = face.remaining
    again = face.sql("SELECT ward, COUNT(*) AS n, AVG(age) AS m FROM visits GROUP BY ward", epsilon=8)
    assert (again.charged, again.cost) == (False, 0)
    assert again.to_arrow().equals(answer.to_arrow())
    assert face.remaining == before
    assert face.check("SELECT AVG(age) AS m, COUNT(*) AS n, ward FROM visits GROUP BY ward", epsilon=8).stored


def test_a_charge_is_what_was_asked(face):
    before = face.remaining
    answer = face.sql("SELECT COUNT(*) AS n FROM visits WHERE n > 4", epsilon="0.25")
    assert (answer.charged, answer.cost, answer.epsilon) == (True, Fraction(1, 4), Fraction(1, 4))
    assert before - face.remaining == Fraction(1, 4)
    receipt = face.receipt(answer.charge_id)
    assert (receipt["id"], receipt["analyst"], receipt["epsilon"]) == (answer.charge_id, "ada", "0.25")
    assert receipt["charged"]["epsilon"] == "0.25"
    (entry,) = [each for each in face.history() if each.id == answer.charge_id]
    assert (entry.sql, entry.epsilon, entry.kind, entry.analyst) == (receipt["sql"], Fraction(1, 4), "question", "ada")
    assert entry.state in ("stored", "shown")
    assert "n > 4" in repr(face.history())


def test_a_request_with_a_name_is_charged_once(face):
    one = face.sql("SELECT COUNT(*) AS n FROM visits WHERE n > 1", epsilon=1, idempotency_key="mine")
    before = face.remaining
    two = face.sql("SELECT COUNT(*) AS n FROM visits WHERE n > 1", epsilon=1, idempotency_key="mine")
    assert two.charge_id == one.charge_id
    assert two.to_arrow().equals(one.to_arrow())
    assert face.remaining == before
    with pytest.raises(hb.QueryError, match="the idempotency key 'mine' stands for another question"):
        face.sql("SELECT COUNT(*) AS n FROM visits WHERE n > 1", epsilon=2, idempotency_key="mine")


def test_a_budget_that_is_spent_says_what_was_asked_and_what_is_left(face, reference):
    told = []
    for asked in (face, reference):
        with pytest.raises(hb.BudgetError, match="the question asks for epsilon 1000000000000000000") as refused:
            asked.sql("SELECT COUNT(*) FROM visits WHERE n = 77", epsilon=10**18)
        told.append(refused.value)
        assert not asked.check("SELECT COUNT(*) FROM visits WHERE n = 77", epsilon=10**18).affordable
    assert told[0].asked == told[1].asked
    assert Fraction(told[0].left) <= 100_000 * HUGE
    assert told[0].remedy is not None


def test_a_refined_answer_is_better_and_told_before(face):
    first = face.sql("SELECT SUM(n) AS s FROM visits", epsilon="0.5")
    told = first.refine.check("0.5")
    assert (told.epsilon, told.helps, told.fits) == (Fraction(1, 2), True, True)
    (name, now, then, unit) = told.columns[0]
    assert (name, unit) == ("s", "")
    assert then < now
    better = first.refine("0.5")
    assert better.epsilon == 1
    assert better.error.half_widths()["s"][0] == pytest.approx(then, rel=0.05)
    with pytest.raises(hb.QueryError, match="cannot be refined"):
        better.refine("0.5")
    with pytest.raises(hb.QueryError, match="would not make this answer better"):
        first.refine("0.0000001")


def test_a_plan_is_asked_whole(face):
    asked = [("SELECT COUNT(*) AS n FROM visits WHERE n = 5", "0.5"), ("SELECT SUM(beds) AS b FROM beds", 1)]
    before = face.remaining
    one, two = face.plan([*asked, *asked])[:2]
    assert (one.epsilon, two.to_dict()) == (Fraction(1, 2), {"b": [12]})
    assert before - face.remaining == Fraction(1, 2)
    with pytest.raises(hb.BudgetError):
        face.plan([("SELECT COUNT(*) FROM visits WHERE n = 6", 10**14)] * 2)
    for wrong in ("SELECT 1", [("a",)], None):
        with pytest.raises(hb.QueryError, match="expected pairs of SQL and epsilon"):
            face.plan(wrong)


def test_public_tables_are_exact_and_free(face):
    before = face.remaining
    answer = face.sql("SELECT ward, beds FROM beds ORDER BY beds DESC LIMIT 1", epsilon=1)
    assert (answer.rows(), answer.charged, answer.cost) == ([("C", 5)], False, 0)
    assert answer.intervals().column_names == ["ward", "beds"]
    assert face.remaining == before


@pytest.mark.parametrize("sql", ["DESCRIBE visits", "SHOW TABLES", "SUMMARIZE visits"])
def test_what_is_declared_is_told_as_a_table(face, reference, sql):
    assert face.sql(sql).to_arrow().equals(reference.sql(sql).to_arrow())


def test_the_declared_tables(face, reference):
    assert repr(face.tables) == repr(reference.tables)
    assert sorted(face.tables) == ["beds", "visits"]
    assert face.tables["VISITS"] == reference.tables["visits"]
    assert "visits" in face.tables
    assert repr(face.tables["visits"]) == repr(reference.tables["visits"])
    with pytest.raises(hb.QueryError, match="there is no table 'visit'"):
        face.tables["visit"]


def test_a_table_that_is_unknown_is_refused_when_it_is_asked(face):
    with pytest.raises(hb.QueryError, match="unknown table"):
        face.table("visit").agg(hb.count()).check(epsilon=1)
    for wrong in (3, "", None):
        with pytest.raises(hb.QueryError):
            face.table(wrong)


def test_who_asks_and_of_what(face):
    assert face.analyst == "ada"
    assert face.budget.epsilon == 100_000 * HUGE
    assert face.budget.pure


@pytest.mark.parametrize("params", [{"w": "A"}, ["A"]])
def test_values_are_given_apart(face, params):
    sql = f"SELECT COUNT(*) AS n FROM visits WHERE ward = {'$w' if isinstance(params, dict) else '?'}"
    assert face.sql(sql, params=params, **AT).rows() == [(3,)]


@pytest.mark.parametrize(
    "value", [dt.date(1970, 2, 10), "1970-02-10", np.datetime64("1970-02-10").item()], ids=["date", "text", "numpy"]
)
def test_values_of_all_kinds_are_sent(face, value):
    sql = "SELECT COUNT(*) AS n FROM visits WHERE day >= $d"
    assert face.sql(sql, params={"d": value}, **AT).rows() == [(4,)]


def test_keys_are_given_with_the_question(face):
    keys = {"day": [dt.date(1970, 1, 1), dt.date(1970, 2, 10)]}
    answer = face.sql("SELECT day, COUNT(*) AS n FROM visits GROUP BY day", keys=keys, **AT)
    assert answer.rows() == [(dt.date(1970, 1, 1), 1), (dt.date(1970, 2, 10), 1)]


def test_a_receipt_of_what_there_is_not(face):
    with pytest.raises(hb.PolicyError):
        face.receipt("0" * 32)
    with pytest.raises(hb.QueryError):
        face.receipt("")


def test_it_is_not_pickled(face):
    import pickle

    with pytest.raises(hb.PolicyError, match="cannot be pickled"):
        pickle.dumps(face)
