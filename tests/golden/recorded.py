"""What a question is to each floor of the house, as one text: its tree, its SQL in all dialects, its cost and answer.

A recording holds what may not change while code is moved: what `check` says, the bound tree of each aggregate query,
the SQL that each engine is told, the event that is charged, the exact integers before noise, and the answer with the
noise of a bit source that the question's own text seeds. Engines' own services are not needed: places are made up,
alike for all.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import hubbub as hb
from asked import COLUMNS, DAYS, FLOATS, GREEDY, INTEGERS, Rows, frames, tables as asked_tables
from hubbub import plain
from hubbub.engines.duckdb.dialect import DUCKDB_PORTABLE
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.engines.duckdb.relations import image
from hubbub.engines.outer import OuterSide
from hubbub.engines.postgres.dialect import POSTGRES
from hubbub.engines.spark.dialect import SPARK
from hubbub.sql.bind.query import PublicQuestion, TableInfo, parse
from hubbub.sql.emit.dialect import Dialect
from hubbub.sql.emit.place import Place
from hubbub.sql.emit.plan import aggregate_sql, listed_sql, summed
from hubbub.tables.aggregates import Function
from hubbub.tables.declare import EachRow, PrivateTable, PublicTable
from hubbub.tables.plan import Plan, make_plans
from hubbub.tables.relations import Scan, leaves, scans
from seeded import SeededBits

DIALECTS: Mapping[str, Dialect] = {"duckdb": DUCKDB_PORTABLE, "postgres": POSTGRES, "spark": SPARK}
BY_CHANCE = {"id", "time", "chain", "data_version"}
"""What the clock decides of a receipt, and identifiers that are drawn."""


class World:
    """Declared tables, whose questions can be recorded."""

    def __init__(self, tables: Mapping[str, PrivateTable | PublicTable]) -> None:
        self.tables = dict(tables)
        self.engine = DuckDBEngine(portable=True)
        self.catalog: dict[str, TableInfo] = {}
        for name, table in self.tables.items():
            schema = self.engine.add(name, table)
            if isinstance(table, PublicTable):
                self.catalog[name] = TableInfo(schema.columns, private=False)
            else:
                unit = None if isinstance(table.unit, EachRow) else table.unit
                self.catalog[name] = TableInfo(schema.columns, private=True, unit=unit, table=table.without_source())
        self.engine.seal()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            self.session = hb.Session(self.tables, budget=hb.Budget(10**6, delta="1e-2"), ledger=None)
        self.outer = OuterSide({n: t for n, t in self.tables.items() if isinstance(t, PublicTable)})

    def close(self) -> None:
        self.session.close()
        self.engine.close()

    def read(self, sql: str, more: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """The parts that no row is needed for, each with its title."""
        options = {name: more[name] for name in ("params", "keys", "weight") if name in more}
        yield "question", sql + "".join(f"\n{name}: {value!r}" for name, value in sorted(options.items()))
        statement = parse(sql, self.catalog, public=self.outer, **options)
        if isinstance(statement, PublicQuestion):
            yield "public", statement.sql
            return
        yield "outer", statement.sql
        weights = {"weights": more["weights"]} if "weights" in more else {}
        yield "check", str(self.session.check(sql, epsilon=1, **options, **weights))
        for number, question in enumerate(statement.questions):
            yield f"tree {number}", tree(question)
            for at, plan in enumerate(make_plans(question, image, private_keys=True)):
                for name, text in self._texts(plan):
                    yield f"{name} {number}.{at}", text

    def answered(self, sql: str, more: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """The parts that are made of rows: integers, and an answer with its receipt."""
        options = {name: more[name] for name in ("params", "keys", "weight") if name in more}
        statement = parse(sql, self.catalog, public=self.outer, **options)
        if isinstance(statement, PublicQuestion):
            return
        for number, question in enumerate(statement.questions):
            for at, plan in enumerate(make_plans(question, image, private_keys=True)):
                if not any(leaf.released for leaf in leaves(plan.question.relation)):
                    public = {leaf.place: self.outer.leaf(leaf, {}) for leaf in leaves(plan.question.relation)}
                    yield f"integers {number}.{at}", integers(self.engine.run(plan, public))
        yield from answer(self.tables, sql, more)

    def _texts(self, plan: Plan) -> Iterator[tuple[str, str]]:
        for name, dialect in DIALECTS.items():
            places = {}
            for scan in scans(plan.question.relation):
                schema = self.catalog[scan.table]
                columns = {c: dialect.quote(c) for c in schema.columns}
                unit = None if scan.each_row else dialect.quote(str(scan.unit))
                places[scan.table] = Place(
                    dialect.quote(scan.table), columns, unit, lambda c, of=columns: (of[c], "integer")
                )
            if not plan.measurements or any(summed(m) for m in plan.measurements) or plan.private_keys:
                yield name, aggregate_sql(plan, places, dialect)
            for i, measurement in enumerate(plan.measurements):
                if not summed(measurement):
                    yield f"{name} listed {i}", listed_sql(plan, places, i, dialect)


def people() -> dict[str, Any]:
    """The tables of the grammar (`asked`) with six people: one who is everywhere, and rows of the worst sort."""
    day = DAYS[1]
    units: dict[Any, Rows] = {
        1: GREEDY,
        2: {"visits": [(0, "A", 50.0, 3, True, day)], "people": [("m", 10)], "items": [(0, 5.0, "A")]},
        3: {"visits": [(1, "C", 99.5, 7, False, DAYS[2]), (2, None, 1.0, -1, None, None)], "people": [], "items": []},
        4: {"visits": [(0, "undeclared", FLOATS[9], INTEGERS[5], True, DAYS[3])], "people": [("f", None)], "items": []},
        5: {"visits": [], "people": [("f", 50), ("A", -7)], "items": []},
        None: {"visits": [(2, "B", 49.999999, 1, True, day)], "people": [("m", 0)], "items": []},
    }
    rows = frames(units)
    return {
        name: table if isinstance(table, PublicTable) else hb.table(rows[name], **_declared(name))
        for name, table in asked_tables("add_remove").items()
    }


def _declared(name: str) -> dict[str, Any]:
    more = {"unit": "visits.id", "through": "vid"} if name == "items" else {"unit": "id"}
    return {**more, "columns": COLUMNS[name], "neighbours": "add_remove", "max_groups": 2, "max_rows": 2}


def tree(node: object, indent: str = "") -> str:
    """A value of ours as a text, a line for each part; what a frozen value hides from its repr is left out."""
    deeper = indent + "  "
    if isinstance(node, Function):
        return f"Function.{node.names.key}"
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        told = (
            ("columns", "declared") if isinstance(node, Scan) else ()
        )  # a table's declarations are not the question's
        fields = [f for f in dataclasses.fields(node) if f.repr and f.name not in told]
        inner = [f"{deeper}{f.name} = {tree(getattr(node, f.name), deeper)}" for f in fields]
        return "\n".join([f"{type(node).__name__}:", *inner]) if inner else type(node).__name__
    if isinstance(node, enum.Enum):
        return f"{type(node).__name__}.{node.name}"
    if isinstance(node, Mapping):
        inner = [f"{deeper}{key!r}: {tree(value, deeper)}" for key, value in node.items()]
        return "\n".join(["mapping", *inner]) if inner else "{}"
    if isinstance(node, tuple | list):
        if not node or all(isinstance(v, str | int | float | bool | None) for v in node):
            return repr(node)
        return "\n".join(["each", *(f"{deeper}- {tree(value, deeper)}" for value in node)])
    if isinstance(node, set | frozenset):
        return repr(sorted(node, key=repr))
    return repr(node)


def integers(found: Any) -> str:
    """The exact integers of a plan: of each vector the first 60 entries that are not zero, each with its place.

    Groups that are found privately have no order of their own: they are shown by their names.
    """
    places = list(range(len(found.vectors[0]))) if found.vectors else []
    lines = []
    if found.groups is not None:
        places = sorted(range(len(found.groups)), key=lambda place: repr(found.groups[place]))
        lines.append(f"groups: {[found.groups[place] for place in places][:60]!r}")
    for i, vector in enumerate(found.vectors):
        some = [(at, vector[place]) for at, place in enumerate(places) if vector[place]]
        total = f", sum {sum(vector)}" if all(isinstance(entry, int) for entry in vector) else ""
        lines.append(f"m{i}: {len(vector)} entries{total}: {some[:60]!r:.4000}")
    return "\n".join(lines)


def answer(tables: Mapping[str, Any], sql: str, more: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The answer with noise of known bits, and its receipt: all but what the clock and the chain decide.

    No quick path is taken: which draws are made of tables depends on what was drawn before.
    """
    options = {name: more[name] for name in ("params", "keys", "weights", "weight") if name in more}
    with warnings.catch_warnings(), plain.only(plain=True):
        warnings.simplefilter("ignore", UserWarning)
        budget = hb.Budget(epsilon=10**6, delta="1e-2")
        with hb.Session(tables, budget=budget, ledger=None, analyst="ada", _bits=SeededBits(sql)) as session:
            release = session.sql(sql, epsilon=1, **options)
            receipt = session.receipt(release.charge_id)
            ends = release.intervals().to_pylist()
    rows = [rounded(row) for row in release.rows()[:40]]
    yield "answer", "\n".join(map(repr, [tuple(release.columns), *rows]))
    yield "intervals", "\n".join(repr(rounded(tuple(row.values()))) for row in ends[:40])
    kept = {name: value for name, value in receipt.items() if name not in BY_CHANCE}
    yield "receipt", json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False)


def rounded(row: Any) -> Any:
    """A row whose floats have twelve digits: the last bit of a sum of floats is the processor's."""
    if isinstance(row, tuple | list):
        return tuple(map(rounded, row))
    if isinstance(row, float) and math.isfinite(row):
        return float(f"{row:.12g}")
    return row
