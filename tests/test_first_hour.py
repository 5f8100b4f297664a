"""What people type in their first hour: words of pandas, wrong keywords, dir(), a spelling mistake in a notebook."""

from __future__ import annotations

import importlib
import traceback
from pathlib import Path

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.keywords import named

ROOMS = (
    "accounting", "attacks", "audit", "collect", "games", "learning", "local", "mechanisms", "noise", "plots",
    "queries", "remedies", "remote", "session", "synthesis", "verbs",
)  # fmt: skip


@pytest.fixture
def opened(tmp_path):
    rows = [{"id": i, "ward": "ab"[i % 2], "age": 30 + i % 40} for i in range(400)]
    columns = {"ward": hb.one_of("a", "b"), "age": hb.between(0, 100)}
    t = hb.table(pa.Table.from_pylist(rows), unit="id", max_groups=1, max_rows=1, columns=columns)
    with hb.Session({"t": t}, budget=hb.Budget(epsilon=50), ledger=tmp_path / "b.db") as session:
        yield session


def test_words_of_pandas_are_the_verbs_that_they_mean(opened):
    t = opened.table("t")
    for said, meant in (
        (t["age"].mean(), t.agg(hb.mean("age"))),
        (t["age"].median(), t.agg(hb.median("age"))),
        (t["age"].quantile(0.9), t.agg(hb.quantile("age", 0.9))),
        (t["age"].nunique(), t.agg(hb.n_distinct("age"))),
        (t["ward"].value_counts(), t.value_counts("ward")),
        (t.count(), t.agg(hb.count())),
        (t.groupby("ward").count(), t.group_by("ward").agg(hb.count())),
        (t.groupby("ward")["age"].mean(), t.group_by("ward").agg(hb.mean("age"))),
        (t.filter(hb.col("age") > 40)["age"].max(), t.filter(hb.col("age") > 40).agg(hb.max("age"))),
    ):
        assert said.sql() == meant.sql()
    answer = t.groupby("ward")["age"].mean().run(epsilon=20)
    assert [round(v, -1) for _, v in answer.rows()] == [50, 50]


@pytest.mark.parametrize(
    "shown",
    [lambda t: t.head(), lambda t: t.head(10), lambda t: t.sample(3), lambda t: t.to_pandas(), list, len,
     lambda t: t["age", "ward"], lambda t: t[["age"]], lambda t: t[t["age"]],
     lambda t: t.groupby("ward")["age"].value_counts()],
)  # fmt: skip
def test_what_would_show_rows_is_refused_with_the_way_out(opened, shown):
    with pytest.raises(hb.QueryError, match=r"rows\.|session\.") as refused:
        shown(opened.table("t"))
    assert "NoneType" not in str(refused.value)
    assert opened.history() == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda s: s.sql("SELECT COUNT(*) FROM t", 1), r"sql: only sql is given without a name\. Write session\.sql"),
        (lambda s: s.sql("SELECT COUNT(*) FROM t", epsilom=1), "Did you mean 'epsilon'"),
        (lambda s: s.check(epsilon=1), "check: 'sql' is missing"),
        (lambda _: hb.table("x.csv"), r"table: 'unit' is missing\. Write hb\.table"),
        (
            lambda _: hb.table("x.csv", unit="id", max_group=1),
            "Did you mean 'max_groups'",
        ),
        (lambda _: hb.one_of("a", null=True), "one_of: 'null' is not an argument. Allowed: other, others, trim"),
        (lambda _: hb.between(0), "between: 'high' is missing"),
        (lambda _: hb.between(0, 1, True), "between: only low, high is given without a name"),
        (lambda _: hb.Csv(header=False), "Csv: 'header' is not an argument. Allowed: delimiter"),
        (lambda _: hb.Budget(epsilom=1), "Budget: 'epsilom' is not an argument. Did you mean 'epsilon'"),
        (lambda _: hb.Budget(), "Budget: 'epsilon' is missing. Write hb.Budget"),
        (lambda _: hb.Session({}, budgt=1), "Session: 'budgt' is not an argument. Did you mean 'budget'"),
        (lambda _: hb.Session.from_policy(polcy="x"), "from_policy: 'polcy' is not an argument"),
        (lambda s: s.synthesize("t", epsilom=1), "synthesize: 'epsilom' is not an argument. Did you mean 'epsilon'"),
        (lambda _: hb.connect("https://x"), "connect: 'token' is missing"),
        (lambda _: hb.median("age", 2), "median: only of is given without a name"),
    ],
)
def test_a_call_that_does_not_fit_is_refused_in_our_words(opened, wrong, says):
    with pytest.raises(hb.ParameterError, match=says) as refused:
        wrong(opened)
    assert refused.value.__cause__ is None
    assert opened.history() == []


def test_an_answer_takes_wrong_keywords_in_our_words_too(opened):
    answer = opened.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
    with pytest.raises(hb.ParameterError, match=r"plot: 'levl' is not an argument\. Did you mean 'level'"):
        answer.plot(levl=0.9)


def test_an_error_inside_is_not_taken_for_a_wrong_call():
    @named
    def broken(x: object) -> object:
        return len(x)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="has no len"):
        broken(1)


def test_a_traceback_in_a_notebook_shows_the_cell_and_the_text_alone(opened):
    try:
        opened.sql("SELECT wrad, COUNT(*) FROM t GROUP BY wrad", epsilon=1)
    except hb.QueryError as error:
        shown = "\n".join(error._render_traceback_())
        assert len(traceback.extract_tb(error.__traceback__)) > 3
    assert shown.count("File ") == 1
    assert Path(__file__).name in shown
    assert "QueryError: unknown column 'wrad'" in shown
    assert "^^^^" in shown


@pytest.mark.parametrize("room", ROOMS)
def test_dir_of_a_room_shows_what_it_has_and_nothing_else(room):
    module = importlib.import_module(f"hubbub.{room}")
    shown = dir(module)
    assert set(module.__all__) <= set(shown)
    assert [name for name in shown if not hasattr(module, name)] == []
    assert {"annotations", "importlib", "Any", "TYPE_CHECKING"} & set(shown) == set()
