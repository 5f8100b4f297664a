"""The plans of all golden questions: every text that DuckDB is told, bound and optimised, summed, ranked or listed, and
those by which bounds are found for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import counts
import hubbub as hb
from engines.test_plans import SHOWN, faults, plans
from golden.recorded import World, people
from golden.shop import tables as shop_tables
from golden.test_recorded import ASKED, SHOP
from hubbub.engines.duckdb.dialect import DUCKDB
from hubbub.engines.duckdb.relations import arrow_type, image, lists_of
from hubbub.sql.bind.query import PublicQuestion, parse
from hubbub.sql.emit.binding import binding_sql
from hubbub.sql.emit.plan import aggregate_sql, listed_sql, summed
from hubbub.sql.emit.ranked import ranked_sql, ranks
from hubbub.tables.measure import MeasurementKind
from hubbub.tables.plan import Plan, Search, make_plans
from hubbub.tables.relations import leaves, scans

Questions = Sequence[tuple[str, str, dict[str, Any]]]


def texts(world: World, plan: Plan) -> Iterator[tuple[str, str]]:
    """What DuckDB is told for a plan, and which way it is."""
    places = world.engine._places(plan.question.relation)
    yield "summed", aggregate_sql(plan, places, DUCKDB)
    if ranks(plan):
        yield "ranked", ranked_sql(plan, places, DUCKDB)
        units = {places[s.table].key(s.unit)[1] for s in scans(plan.question.relation) if s.unit is not None}
        if units == {"text"}:  # of others the parts are made in this process
            yield "ranked", ranked_sql(plan, places, DUCKDB, parts=6)
    for i, measurement in enumerate(plan.measurements):
        if not summed(measurement):
            yield "listed", listed_sql(plan, places, i, DUCKDB)
    for text in binding_sql(plan, places, DUCKDB):
        yield "prepared", text
    if not plan.private_keys:
        adds = [m for m in plan.measurements if m.counting is MeasurementKind.SUM]
        found = (
            [Search(plan, "groups")] * bool(plan.keys) + [Search(plan, "rows")] + [Search(plan, "x", m) for m in adds]
        )
        for search in found:
            yield "search", aggregate_sql(search.histogram, places, DUCKDB)


def read_by(world: World, plan: Plan) -> dict[str, pa.Schema]:
    """What a plan's texts read: the schemas of tables, by their names."""
    read = {
        leaf.place: pa.schema([(name, arrow_type(kind)) for name, kind in leaf.columns.items()])
        for leaf in leaves(plan.question.relation)
    }
    read |= {name: values().schema for name, values in lists_of(plan, DUCKDB).items()}
    for scan in scans(plan.question.relation):
        known = world.engine._known[scan.table]
        assert known.held is not None
        read[known.relation] = known.held.empty().schema
    return read


def stand_in(con: duckdb.DuckDBPyConnection, read: Mapping[str, pa.Schema]) -> None:
    """Tables without rows."""
    for name, schema in read.items():
        con.register("incoming", schema.empty_table())
        con.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM incoming')


def some(questions: Questions) -> Questions:
    """Each eighth question, and every one that has a word of SQL which none before it has; in the soak, all."""
    known, kept = set[str](), []
    for i, (name, sql, more) in enumerate(questions):
        forms = set(re.findall(r"[A-Z_]{2,}|[-+*/<>=|%]+", sql))
        if counts.SOAK or i % 8 == 0 or not forms <= known:
            kept.append((name, sql, more))
        known |= forms
    return kept


def of_questions(world: World, questions: Questions) -> tuple[dict[str, set[str]], dict[str, int]]:
    """The faults of the plans of questions, by the question; how many plans of each way were seen.

    A text over tables of the same columns has the same plans, whichever question it is of: it is looked at once.
    """
    found: dict[str, set[str]] = {}
    seen = dict.fromkeys(("summed", "ranked", "listed", "prepared", "search", "optimised"), 0)
    known = set[tuple[str, str]]()
    with duckdb.connect() as con:
        con.execute(f"SET disabled_optimizers = '{SHOWN}'")
        for name, sql, more in questions:
            options = {key: more[key] for key in ("params", "keys") if key in more}
            statement = parse(sql, world.catalog, public=world.outer, **options)
            if isinstance(statement, PublicQuestion):
                continue
            for plan in (p for q in statement.questions for p in make_plans(q, image, private_keys=True)):
                read = read_by(world, plan)
                schemas = "".join(f"{place}: {schema.to_string()}; " for place, schema in sorted(read.items()))
                told = list(texts(world, plan))
                for way, _ in told:
                    seen[way] += 1
                new = [(way, text) for way, text in told if (text, schemas) not in known]
                known.update((text, schemas) for _, text in new)
                stand_in(con, read if new else {})
                for way, text in new:
                    for optimized in (False, True):
                        try:
                            listed = plans(con, text, optimized=optimized)
                        except duckdb.Error:
                            assert optimized, text  # the bound plan is always seen
                            continue
                        seen["optimised"] += optimized
                        here = {f for one in listed for f in faults(one, text, optimized=optimized)}
                        found.setdefault(name, set()).update(f"{way}: {fault}" for fault in here)
    return {name: here for name, here in found.items() if here}, seen


@pytest.mark.parametrize(("tables", "questions"), [(shop_tables, SHOP), (people, ASKED)], ids=["shop", "grammar"])
def test_no_golden_question_has_a_cast_but_ours_or_anything_that_raises(tables: Any, questions: Questions) -> None:
    world = World(tables())
    try:
        found, seen = of_questions(world, questions := some(questions))
    finally:
        world.close()
    assert found == {}
    assert seen["summed"] >= len(questions) * 0.8
    assert min(seen.values()) >= 10, seen


def test_no_rows_of_units_that_are_texts_are_ranked_by_a_cast_but_ours() -> None:
    """Units of the questions above are numbers; those that are texts come with a part, and long ones by a hash."""
    rows = pa.table({"id": ["a", "b"], "h": ["x", "y"], "x": [1.0, 2.0], "y": [1, 2]})
    columns = {"x": hb.between(0, 10), "y": hb.between(0, 5)}
    world = World({"v": hb.table(rows, unit="id", max_groups=2, max_rows=2, columns=columns)})
    asked = ("SELECT SUM(x), SUM(y) FROM v", "SELECT h, SUM(x), AVG(y) FROM v GROUP BY h", "SELECT MEDIAN(x) FROM v")
    try:
        found, seen = of_questions(world, [(sql, sql, {}) for sql in asked])
    finally:
        world.close()
    assert found == {}
    assert seen["ranked"] == 2 * len(asked)
