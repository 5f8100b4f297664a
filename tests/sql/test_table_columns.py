"""A question makes of a table's columns those that it names, and sees all of them."""

from __future__ import annotations

import dataclasses

import pytest

from hubbub.errors import QueryError
from hubbub.sql.bind.query import TableInfo, parse
from hubbub.sql.bind.scope import Scope, Source, TableColumns
from hubbub.tables.columns import between
from hubbub.tables.declare import PrivateTable
from hubbub.tables.expressions import Column, Expression, Literal
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import Scan

WIDE = {"id": Kind.INTEGER, **{f"c{i}": Kind.INTEGER for i in range(200)}}


def described(columns: dict[str, Kind], declared: PrivateTable | None = None) -> TableInfo:
    return TableInfo(columns, True, "id", declared)


def test_a_question_makes_the_columns_that_it_names_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    of_scan = Scan.column

    def counted(scan: Scan, name: str) -> Column:
        made.append(name)
        return of_scan(scan, name)

    monkeypatch.setattr(Scan, "column", counted)
    parse("SELECT SUM(c7) AS s FROM t WHERE c3 > 1 AND C9 < 5", {"t": described(WIDE)})
    assert sorted(made) == ["c3", "c7", "c9"]


def test_a_star_still_shows_every_column_and_a_misspelt_name_is_still_looked_for_among_all() -> None:
    catalog = {"t": described(WIDE)}
    parse("SELECT SUM(c0 + c199) AS s FROM (SELECT * FROM t) AS all_of_it", catalog)
    with pytest.raises(QueryError, match=r"unknown column 'c1999' in table 't'\. Did you mean 'c199'\?"):
        parse("SELECT SUM(c1999) AS s FROM t", catalog)
    with pytest.raises(QueryError, match=r"unknown column 'zzz' in table 't'\. Known: 'c0', 'c1', 'c10', "):
        parse("SELECT SUM(zzz) AS s FROM t", catalog)


def test_a_column_is_found_by_what_it_is_as_among_all_columns() -> None:
    columns = {"id": Kind.INTEGER, "at": Kind.TIMESTAMP, "in.utc": Kind.TIMESTAMP, "t1.at": Kind.TEXT, "AT": Kind.TEXT}
    moved = {"at": between("2024-01-01", "2024-12-31", tz="Europe/Rome")}
    info = described(columns, PrivateTable(None, unit="id", columns=moved))
    scan = Scan("t1", "t", columns, moved, info.declaration.limits, "id", "add_remove", "id")
    shown: dict[str, Expression] = {"at": Literal(1), "in.utc": scan.column("in.utc")}
    source = Source("t", TableColumns(info, scan, shown))
    scope = Scope("", [source])
    every = scope.every()
    assert list(every) == list(columns)
    asked = [*every.values(), scan.column("at"), Literal(2), Column("t2.id", Kind.INTEGER), Column("t1.id", Kind.TEXT)]
    for expression in asked:
        assert scope.names_of(expression) == [name for name, one in every.items() if one == expression]
    assert [source.named(name) for name in ("ID", "at", "At", "T1.AT", "no")] == ["id", "at", None, "t1.at", None]


def test_a_table_that_is_declared_anew_is_read_anew() -> None:
    text = "SELECT SUM(x) AS s FROM t"
    first = described(
        {"id": Kind.INTEGER, "x": Kind.INTEGER}, PrivateTable(None, unit="id", columns={"x": between(0, 5)})
    )
    assert first.folded == {"id": "id", "x": "x"}
    moved = dataclasses.replace(first, columns={"id": Kind.INTEGER, "X": Kind.NUMBER, "x": Kind.INTEGER})
    assert moved.folded == {"id": "id", "x": None}
    asked = [parse(text, {"t": info}) for info in (first, dataclasses.replace(first, columns={"X": Kind.NUMBER}))]
    kinds = [q.aggregates[0].arguments[0].kind for a in asked for q in a.questions]  # type: ignore[union-attr]
    assert kinds == [Kind.INTEGER, Kind.NUMBER]
