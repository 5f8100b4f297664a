"""Spark: a unit's integers come of its rows alone, whatever names it, and however rows are ordered and divided."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import hubbub as hb
from answers import Desk
from asked import a_newcomer, everybody, frames, questions, tables as asked_tables
from engines.places import answer
from engines.test_contract import near
from engines.test_spark_values import frame
from hubbub.engines.duckdb.relations import image
from hubbub.engines.spark.engine import SparkEngine
from hubbub.errors import HubbubError
from hubbub.sql.bind.query import TableInfo
from hubbub.tables.declare import Limits, PrivateTable
from hubbub.tables.plan import Plan, make_plans
from hubbub.tables.relations import leaves
from hubbub.tables.remote import remote

FEW: dict[str, Any] = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}
TINY = "CAST('0.0000000001' AS DECIMAL(38,10))"
UNITS = {
    "TINYINT": "CAST(id AS TINYINT)",
    "INT": "CAST(id AS INT)",
    "DECIMAL(10,2)": "CAST(id / 4 AS DECIMAL(10,2))",
    "DECIMAL(38,10)": f"CAST(CAST(id AS DECIMAL(20,0)) * 1234567890 + {TINY} AS DECIMAL(38,10))",
    "FLOAT": "CAST(id / 8 AS FLOAT)",
    "DOUBLE": "id / 1e300",
    "STRING": "concat(IF(id % 2 = 0, 'A', 'a '), id)",
    "BINARY": "CAST(id AS BINARY)",
    "DATE": "date_add(DATE'1500-01-01', CAST(id AS INT) * 30000)",
    "TIMESTAMP": "timestamp_micros(id * 1743298200000001)",
    "TIMESTAMP_NTZ": "CAST(CAST(timestamp_micros(id * 1743298200000001) AS STRING) AS TIMESTAMP_NTZ)",
}
"""A value of each type that may name a unit, for each of the numbers that the generator gives to people."""


class Reordered:
    """The tables of the grammar in Spark, with units of one type, and nothing declared of their numbers."""

    def __init__(self, spark: Any, kind: str) -> None:
        self.spark, self.unit, self.engine = spark, UNITS[kind], SparkEngine()
        declared, empty = asked_tables("add_remove", undeclared=True), frames({})
        self.desk = Desk({"wards": declared["wards"]})
        for name, table in declared.items():
            if not isinstance(table, PrivateTable):
                self.engine.add(name, table)
                continue
            # Trusted: of a unit far from these its casts would be an error.
            table = replace(table, source=remote(self.frame(empty[name])), trusted_view=True)
            schema = self.engine.add(name, table)
            self.desk.catalog[name] = TableInfo(
                schema.columns, True, schema.unit, table.without_source(), schema.unit_type
            )
        self.engine.seal()

    def frame(self, table: pa.Table) -> Any:
        found = frame(self.spark, table)
        return found.selectExpr(*(f"{self.unit} AS id" if c == "id" else c for c in found.columns))

    def plans(self, sql: str, limits: tuple[int, int]) -> list[Plan]:
        """None where a question is refused."""
        try:
            found = self.desk.statement(sql).questions
            return [p for q in found for p in make_plans(q, image, limits=Limits(*limits, None), private_keys=True)]
        except HubbubError as error:
            assert str(error)
            return []

    def answers(self, plan: Plan, rows: dict[str, pa.Table]) -> list[tuple[Any, ...]]:
        """The integers of rows as they come, and of the same ones the other way round in three partitions."""
        public = {leaf.place: self.desk.outer.leaf(leaf, {}) for leaf in leaves(plan.question.relation)}
        found = []
        for turned in (False, True):
            for name, known in self.engine._known.items():
                shown = self.frame(rows[name])
                if turned:
                    down = [shown[c].desc() for c in shown.columns]
                    shown = shown.repartition(3).sortWithinPartitions(*down)
                self.engine.show(shown, known.view)
            found.append(answer(self.engine, plan, public))
        return found

    def close(self) -> None:
        self.engine.close()
        self.desk.engine.close()


CASE: dict[str, Any] = {
    "units": everybody.filter(lambda units: len(units) > 1),
    "newcomer": a_newcomer,
    "limits": st.sampled_from([(1, 1), (2, 2), (9, 9)]),
}


# Each takes Spark some seconds: a small one here, fifteen of each type in the soak.
@pytest.mark.parametrize(
    ("kind", "examples"),
    [("DECIMAL(38,10)", 1), *(pytest.param(k, 15, marks=pytest.mark.soak) for k in UNITS)],
)
def test_no_order_of_rows_decides_an_answer_and_neighbours_are_near(spark: Any, kind: str, examples: int) -> None:
    world, asked = Reordered(spark, kind), []

    @settings(max_examples=50 * examples, **FEW)
    @given(sql=questions(depth=0 if examples == 1 else 3), **CASE)
    def reordered(sql: str, units: Any, newcomer: Any, limits: tuple[int, int]) -> None:
        plans = world.plans(sql, limits) if len(asked) < examples else []
        for plan in plans:
            one, two = (world.answers(plan, frames(people)) for people in (units, {**units, 9: newcomer}))
            assert one[0] == one[1], sql
            assert two[0] == two[1], sql
            near(plan, one[0], two[0], sql)
        asked.extend([sql] * bool(plans))

    reordered()
    world.close()
    assert len(asked) == examples


@pytest.mark.parametrize("inner", ["MIN", "MAX", "MEDIAN"])
def test_which_of_two_zeros_comes_first_decides_nothing(spark: Any, tmp_path: Path, inner: str) -> None:
    """0.0 and -0.0 are equal to Spark: which is the smallest of a unit follows from the order of its rows."""
    asked = f"SELECT id, CAST({inner}(CASE WHEN i = 1 THEN -x ELSE x - 1 END) AS VARCHAR) AS t FROM v GROUP BY id"
    found = set()
    for rows in ([(0.0, 1), (1.0, 2)], [(1.0, 2), (0.0, 1)]):
        frame_of = spark.createDataFrame([(u, x, i) for u in range(3) for x, i in rows], "id INT, x DOUBLE, i INT")
        tables = {"v": hb.table(frame_of.coalesce(1).localCheckpoint(), unit="id", max_rows=2, max_groups=1)}
        with hb.Session(tables, budget=hb.Budget(10**6), ledger=tmp_path / f"{len(found)}{rows[0][1]}.db") as session:
            answer_of = session.sql(f"SELECT COUNT(*) AS n FROM ({asked}) AS p WHERE t LIKE '-%'", epsilon=10**5)
            found.add(answer_of.to_pandas()["n"][0])
    assert found == {0}
