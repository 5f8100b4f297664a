"""DESCRIBE, SHOW TABLES and SUMMARIZE tell what is declared, for nothing, and look at no row."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.errors import QueryError


@pytest.fixture
def session() -> hb.Session:
    visits = pa.table({"patient": [1, 2], "ward": ["A", "it's"], "cost": [3.5, 999.0], "note": ["x", None]})
    columns = {"ward": hb.one_of("A", "it's", None), "cost": hb.between(0, 499.5, nullable=False)}
    tables = {
        "visits": hb.table(visits, unit="patient", max_groups=2, max_rows=3, columns=columns),
        "wards": hb.public(pa.table({"ward": ["A"], "beds": [3]})),
    }
    return hb.Session(tables, budget=hb.Budget(1), ledger=None)


def test_a_table_is_described_by_what_is_declared_of_it(session: hb.Session) -> None:
    found = session.sql("DESCRIBE visits;")
    assert not found.charged
    assert found.to_arrow().to_pylist() == [
        {"column_name": "patient", "column_type": "integer", "declared": None, "role": "unit"},
        {"column_name": "ward", "column_type": "text", "declared": "one_of('A', \"it's\", None)", "role": None},
        {"column_name": "cost", "column_type": "number", "declared": "between(0, 499.5, nullable=False)", "role": None},
        {"column_name": "note", "column_type": "text", "declared": None, "role": None},
    ]


def test_a_summary_has_the_declared_ends_and_not_those_of_the_rows(session: hb.Session) -> None:
    (ward, cost) = session.sql("summarize table visits").to_arrow().to_pylist()[1:3]
    assert (ward["groups"], ward["may_be_null"], ward["min"]) == (3, True, None)
    assert (cost["min"], cost["max"], cost["may_be_null"]) == ("0", "499.5", False)


def test_tables_are_shown_with_their_limits(session: hb.Session) -> None:
    visits, wards = session.sql("SHOW TABLES").to_arrow().to_pylist()
    assert (visits["kind"], visits["unit"], visits["max_groups"], visits["max_rows"]) == ("private", "patient", 2, 3)
    assert (wards["kind"], wards["columns"], wards["unit"]) == ("public", "ward, beds", None)


def test_nothing_is_charged_and_check_says_so(session: hb.Session) -> None:
    before = session.remaining
    assert session.check("DESCRIBE visits").epsilon == 0
    session.sql("SUMMARIZE visits")
    assert session.remaining == before


@pytest.mark.parametrize("text", ["DESCRIBE wrads", "DESCRIBE SELECT 1", "SHOW", "SUMMARIZE visits wards"])
def test_what_names_no_table_is_refused(session: hb.Session, text: str) -> None:
    with pytest.raises(QueryError, match=r"wards|takes the name of a table"):
        session.sql(text)


def test_another_statement_is_told_what_there_is(session: hb.Session) -> None:
    with pytest.raises(QueryError, match=r"Only SELECT is allowed; DESCRIBE"):
        session.sql("DROP TABLE visits", epsilon=1)


def test_a_refusal_with_a_caret_says_where_in_the_text_it_is(session):
    for text, word in (
        ("SELECT SUM(foo) FROM visits", "foo"),
        ("DROP TABLE visits", "DROP"),
        ("DESCRIBE nothing", "nothing"),
    ):
        with pytest.raises(hb.QueryError) as refused:
            session.check(text, epsilon=1)
        start, end = refused.value.position
        assert text[start:end] == word
