"""Answers without a session: a statement read, planned, priced, run and drawn, with nothing charged. For tests."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from hubbub.answer.evaluate import EvaluatedStatement
from hubbub.answer.release import Release
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.engines.duckdb.relations import image
from hubbub.engines.outer import OuterSide
from hubbub.sql.bind.query import PublicQuestion, TableInfo, parse
from hubbub.tables.aggregate_query import Statement
from hubbub.tables.declare import EachRow, PrivateTable, PublicTable
from hubbub.tables.draw_release import draw
from hubbub.tables.estimates import read
from hubbub.tables.plan import Plan, make_plans
from hubbub.tables.price import Spend, make_price


class Desk:
    """Tables that can be asked at any epsilon, for nothing."""

    def __init__(self, tables: Mapping[str, PrivateTable | PublicTable], *, bits: Any = None) -> None:
        self.tables, self.bits = dict(tables), bits
        self.engine = DuckDBEngine()
        self.catalog: dict[str, TableInfo] = {}
        for name, table in self.tables.items():
            schema = self.engine.add(name, table)
            if isinstance(table, PublicTable):
                self.catalog[name] = TableInfo(schema.columns, private=False)
            else:
                unit = None if isinstance(table.unit, EachRow) else table.unit
                self.catalog[name] = TableInfo(schema.columns, private=True, unit=unit, table=table.without_source())
        self.engine.seal()
        self.outer = OuterSide({n: t for n, t in self.tables.items() if isinstance(t, PublicTable)})

    def statement(self, sql: str) -> Statement:
        found = parse(sql, self.catalog, public=self.outer)
        assert not isinstance(found, PublicQuestion), sql
        return found

    def plans(self, sql: str) -> list[Plan]:
        return [plan for q in self.statement(sql).questions for plan in make_plans(q, image)]

    def ask(self, sql: str, epsilon: Any = 1, charge: str = "one") -> Release:
        statement = self.statement(sql)
        plans = [make_plans(q, image) for q in statement.questions]
        every = [p for of_question in plans for p in of_question]
        price = make_price(every, Spend(epsilon=Fraction(str(epsilon))))
        drawn = read(price, draw(price, [self.engine.run(p) for p in every], self.bits))
        estimates, at = [], 0
        for of_question in plans:
            estimates.append(drawn[at : at + len(of_question)])
            at += len(of_question)
        answered = EvaluatedStatement(statement, tuple(estimates), self.outer, self.bits)
        return Release(Fraction(1), True, charge, {}, Fraction(1), _answered=answered)
