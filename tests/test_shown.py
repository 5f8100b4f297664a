"""What a notebook shows of a session: tables, checks, history, marginals, synthetic rows; every text escaped."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Iterator
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.ledger.budget import short_text

HOSTILE = "<script>alert(1)</script>&"


class Whole(HTMLParser):
    """HTML whose elements are closed in order, of the few that we write."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag in "div table thead tbody tr th td p svg rect line text title desc g style".split()
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_data(self, data: str) -> None:
        self.cells.append(data)


@pytest.fixture
def session() -> Iterator[hb.Session]:
    rows = pa.table({"id": range(100), "ward": ["A", HOSTILE] * 50, "age": [30, 40] * 50})
    visits = hb.table(
        rows, unit="id", max_groups=1, max_rows=1,
        columns={"ward": hb.one_of("A", HOSTILE), "age": hb.between(0, 120)},
    )  # fmt: skip
    wards = hb.public(pa.table({"ward": ["A"], "beds": [3]}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with hb.Session({"visits": visits, "wards": wards}, budget=hb.Budget(100, "1e-6"), ledger=None) as opened:
            yield opened


def test_the_tables_of_a_session_are_shown_as_declared(session: hb.Session) -> None:
    tables = session.tables
    assert list(tables) == ["visits", "wards"]
    visits = tables["VISITS"]
    assert visits.schema == {c.name: c.kind for c in visits.columns}
    assert next(iter(visits.schema)) in session.sql("DESCRIBE visits").rows()[0]
    assert (visits.unit, visits.limits) == ("id", "max_groups = 1, max_rows = 1")
    assert {c.name: c.kind for c in visits.columns} == {"id": "integer", "ward": "text", "age": "integer"}
    assert {c.name: c.declared for c in visits.columns}["age"] == "between(0, 120)"
    assert tables["wards"].unit is None
    assert "protects id; max_groups = 1" in repr(visits)
    assert "wards" in repr(tables)
    assert "visit" not in tables
    with pytest.raises(hb.QueryError, match="Did you mean"):
        tables["visit"]
    for shown in (tables, visits, tables["wards"], session):
        Whole(shown._repr_html_())
    assert HOSTILE in "".join(Whole(visits._repr_html_()).cells)


def test_a_history_is_a_list_that_shows_itself(session: hb.Session) -> None:
    assert repr(session.history()) == "nothing was asked yet"
    Whole(session.history()._repr_html_())
    session.sql("SELECT COUNT(*) AS n FROM visits WHERE ward = $w", epsilon=1, params={"w": HOSTILE})
    (entry,) = session.history()
    assert entry.dataset == "visits"
    assert "SELECT COUNT(*)" in repr(session.history())
    assert "visits" in Whole(session.history()._repr_html_()).cells


def test_a_check_and_an_answer_say_what_they_cost(session: hb.Session) -> None:
    check = session.check("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
    cells = Whole(check._repr_html_()).cells
    assert any("cost: epsilon 1" in cell for cell in cells)
    assert "n" in cells
    answer = session.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
    left = f"epsilon {short_text(session.remaining)} of the joint budget is left"
    assert f"charged epsilon 1; {left}" in Whole(answer._repr_html_()).cells
    again = session.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
    assert left in Whole(again._repr_html_()).cells
    Whole(session.check("SELECT COUNT(*) AS n FROM wards", epsilon=1)._repr_html_())


def test_what_is_published_says_nothing_of_what_is_left(session: hb.Session, tmp_path: Path) -> None:
    answer = session.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
    folder = answer.publish(tmp_path / "out")
    page = (folder / "index.html").read_text("utf-8")
    assert "charged epsilon 1" in page
    assert "is left" not in page


def test_a_budget_and_what_is_left_of_it_are_shown(session: hb.Session) -> None:
    session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    left = session.remaining
    assert isinstance(left, Fraction)
    said = f"epsilon {short_text(left)} of 100 is left"
    assert Whole(left._repr_html_()).cells == [said]  # type: ignore[attr-defined]
    assert type(left / 2) is Fraction
    assert repr(left) == repr(left + 0)
    assert pickle.loads(pickle.dumps(left)) == left
    for again in (copy.copy(left), copy.deepcopy(left)):
        assert (again, again._repr_html_()) == (left, left._repr_html_())  # type: ignore[attr-defined]
    cells = Whole(hb.Budget(3, 1e-6, training=(1, 1e-7))._repr_html_()).cells
    assert {"epsilon", "3", "delta", "0.000001", "training", "(1, 0.0000001)"} <= set(cells)


def test_a_marginal_is_drawn_by_the_model_of_all_charts(session: hb.Session) -> None:
    sold = session.marginals("visits", [("ward",), ("ward", "age")], epsilon=10)
    drawn = sold.plot()
    assert (drawn.measure, drawn.keys, len(drawn.points)) == ("count", ("ward",), 2)
    filled = sold.table("ward").to_pydict()
    assert [(p.value, p.low, p.high) for p in drawn.points] == list(
        zip(filled["count"], filled["count_low"], filled["count_high"], strict=True)
    )
    assert sold.plot("ward", "age").keys == ("ward", "age")
    Whole(drawn._repr_html_().replace("<figure>", "").replace("</figure>", ""))
    assert "<script" not in drawn._repr_html_()


def test_marginals_and_synthetic_rows_are_shown_and_tabled(session: hb.Session) -> None:
    sold = session.marginals("visits", [("ward",), ("ward", "age")], epsilon=10)
    assert sold.tables == [("ward",), ("ward", "age")]
    assert sold.table(("ward", "age")).equals(sold.table("ward", "age"))
    assert list(sold.to_pandas("ward").columns) == ["ward", "count", "count_low", "count_high"]
    cells = Whole(sold._repr_html_()).cells
    assert "charged epsilon 10" in cells
    assert HOSTILE in cells
    made = session.synthesize("visits", columns=["ward", "age"], epsilon=10)
    cells = Whole(made._repr_html_()).cells
    assert f"{len(made):,} synthetic rows; charged epsilon 10" in cells


@pytest.mark.parametrize("budget", [("1e400",), ("1e400", "1e-9"), ("1e-400",)], ids=str)
def test_what_is_left_is_shown_of_a_budget_that_is_no_float(budget: tuple[str, ...]) -> None:
    """The answer of a question that was charged, too: it is what the repr of it raised on."""
    visits = hb.table(pa.table({"id": range(10)}), unit="id", max_rows=1, max_groups=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with hb.Session({"visits": visits}, budget=hb.Budget(*budget), ledger=None) as session:
            for each in (lambda: session.check("SELECT COUNT(*) AS n FROM visits", epsilon="1/3"), lambda: session):
                assert repr(each())
                assert Whole(each()._repr_html_()).cells
            if budget[0] == "1e400":
                assert "n" in repr(session.sql("SELECT COUNT(*) AS n FROM visits", epsilon="1/3"))
    assert short_text(Fraction(1, 3 * 10**400)) == "3.33333E-401"
