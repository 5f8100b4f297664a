"""What DuckDB makes of our texts, in the bound and in the optimised plan: no cast that is not ours, and nothing that
could raise outside of a TRY (P33, P52)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import counts
import hubbub as hb
from answers import Desk
from engines.corpus import questions, rows, some
from engines.evaluated import written
from hubbub.engines.duckdb.dialect import DUCKDB, DuckDB
from hubbub.engines.duckdb.relations import LEFT_OUT
from hubbub.sql.emit.dialect import Dialect
from hubbub.sql.emit.plan import aggregate_sql, listed_sql, summed
from hubbub.sql.emit.ranked import ranked_sql, ranks
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import leaves
from sql.test_compile import QUESTIONS
from sql.test_dialects import compiled

UNSEEN = "unused_columns,common_aggregate,partial_aggregate_pushdown"
"""Optimisers after which DuckDB 2.0.0 cannot write some plans as JSON. They move columns and aggregates, no casts."""
SHOWN = ",".join(o for o in LEFT_OUT.split(",") if o != "statistics_propagation") + f",{UNSEEN}"
"""What is off where plans are written: without this one DuckDB 2.0.0 runs all plans, and cannot write some. With it a
plan has casts and rewritings beside those that are run: those to narrower types below.
"""

WHOLE = ("TINYINT", "UTINYINT", "SMALLINT", "USMALLINT", "INTEGER", "UINTEGER", "BIGINT", "UBIGINT", "HUGEINT")
WIDER = {
    (a, b) for i, a in enumerate(WHOLE) for b in WHOLE[i:] if not b.startswith("U") and (a, b) != ("UBIGINT", "BIGINT")
}
"""Casts between whole numbers in which nothing is lost: the only ones that may be the engine's own."""
STATISTICS = {(a, b) for b, a in WIDER} | {("HUGEINT", b) for b in WHOLE}
"""What the optimiser makes narrower where it knows the least and the largest value of a column."""
TOTAL = WIDER | {(a, "DOUBLE") for a in (*WHOLE, "FLOAT", "DECIMAL", "DOUBLE")}
TOTAL |= {(a, "VARCHAR") for a in ("VARCHAR", "ENUM", "UUID")} | {("BOOLEAN", "TINYINT")}
"""Casts that hold for every value."""

COMPARISONS = {"=", "<>", "!=", "<", "<=", ">", ">=", "__between"}
ANY = {"hash", "least", "greatest", "constant_or_null", *COMPARISONS}
OF_DOUBLES = {"+", "-", "*", "/", "floor", "ceil", "trunc", "round_even", "isfinite", "isnan", "sign", "abs"}
OF_TEXTS = {"sha256", "length", "strlen", "starts_with", "ends_with", "contains", "suffix", "prefix", "^@"}
AGGREGATES = {"count", "count_star", "min", "max", "bool_and", "bool_or", "first", "any_value", "arg_min", "median"}
SUMMED = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DECIMAL"}
"""Of doubles nothing is added up."""


def plans(con: duckdb.DuckDBPyConnection, sql: str, *, optimized: bool) -> list[Any]:
    word = str(optimized).lower()
    text = f"SELECT json_serialize_plan(?::VARCHAR, skip_null := true, skip_empty := true, optimize := {word})"
    written_out = con.execute(text, [sql]).fetchall()[0][0]
    found = json.loads(
        re.sub(r":-?(inf|nan)\b", ":0", written_out, flags=re.IGNORECASE)
    )  # a folded constant, which JSON has no word for
    if found["error"]:
        raise duckdb.InternalException(found["error_message"])
    return list(found["plans"])


def _type(node: Any) -> str:
    value = node.get("value")  # of a constant; of an interval's, a text
    of = node.get("return_type") or (value.get("type") if isinstance(value, dict) else None) or {}
    return str(of.get("id", ""))


def faults(plan: Any, sql: str, *, optimized: bool) -> Iterator[str]:
    """What could raise in a plan, outside of TRY, and the casts that are not ours."""
    left = [plan]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            if node.get("type") == "OPERATOR_TRY":
                continue
            yield from _faults(node, sql, optimized=optimized)
            node = node.values()
        left += [value for value in node if isinstance(value, dict | list)]


def _faults(node: Any, sql: str, *, optimized: bool) -> Iterator[str]:
    """Those of one node, without those below."""
    if "expression_class" not in node:
        return
    of, name = [_type(c) for c in node.get("children", [])], node.get("qname", {}).get("path", [""])[-1]
    match node["expression_class"]:
        case "BOUND_FUNCTION" if node["type"] == "OPERATOR_CAST":
            yield from _cast(node, of[0], sql, optimized=optimized)
        case "BOUND_FUNCTION":
            fine = name in ANY or name.startswith(("__internal_compress", "__internal_decompress"))
            fine |= name in OF_DOUBLES and of[0] == "DOUBLE" and set(of) <= {"DOUBLE", "INTEGER"}
            fine |= name in OF_TEXTS and set(of) == {"VARCHAR"}
            fine |= name == ">>" and set(of) == {"UBIGINT"}  # of a hash; only to the left can it raise
            of_hash = [c.get("qname", {}).get("path", [""])[-1] for c in node.get("children", [])][1:] == ["sha256"]
            fine |= name == "||" and of_hash  # 'x' before the 64 digits by which a long name of a unit goes
            if not fine:
                yield f"{name}({', '.join(of)})"
        case "BOUND_AGGREGATE":
            if not (name in AGGREGATES or (name in ("sum", "sum_no_overflow") and set(of) <= SUMMED)):
                yield f"{name}({', '.join(of)})"
        case "BOUND_WINDOW" if name == "sum" and not set(of) <= SUMMED:
            yield f"{name}({', '.join(of)}) OVER"
        case "BOUND_CAST":
            yield "a cast of another form"


def _cast(node: Any, of: str, sql: str, *, optimized: bool) -> Iterator[str]:
    to, at = _type(node), node["query_location"]
    ours = at < len(sql) and sql[at:].lstrip("(").startswith(("CAST(", "TRY_CAST("))
    if node["children"][0].get("expression_class") == "BOUND_CONSTANT" or (ours and node["function_data"]["try_cast"]):
        return
    if ours and sql[at:].startswith("CAST(key AS "):
        return  # a declared value, which stands in the text
    if (of, to) not in (TOTAL if ours else WIDER | (STATISTICS if optimized else set())):
        yield f"{'our' if ours else 'its own'} cast of {of} to {to}"


def found_in(con: duckdb.DuckDBPyConnection, sql: str) -> set[str]:
    """The faults of the bound plan, and of the optimised one."""
    con.execute(f"SET disabled_optimizers = '{SHOWN}'")
    found: set[str] = set()
    for optimized in (False, True):
        for plan in plans(con, sql, optimized=optimized):
            found.update(faults(plan, sql, optimized=optimized))
    return found


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute("CREATE TABLE visits (id BIGINT, ward VARCHAR, age DOUBLE, n BIGINT, ok BOOLEAN, day DATE)")
        yield made


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_golden_text_has_no_cast_but_ours_and_nothing_that_raises(con: Any, question: str) -> None:
    assert found_in(con, compiled(question, DUCKDB)) == set()


def texts(desk: Desk, sql: str, dialect: Dialect = DUCKDB) -> Iterator[tuple[str, dict[str, Any]]]:
    """The texts of a question, each with the public relations that it reads; none where it is refused."""
    try:
        plans = desk.plans(sql)
    except hb.HubbubError:
        return
    for plan in plans:
        places = desk.engine._places(plan.question.relation)
        public = {leaf.place: desk.outer.leaf(leaf, {}) for leaf in leaves(plan.question.relation)}
        yield aggregate_sql(plan, places, dialect), public
        if ranks(plan):
            yield ranked_sql(plan, places, dialect), public
            yield ranked_sql(plan, places, dialect, parts=6), public
        for i, measurement in enumerate(plan.measurements):
            if not summed(measurement):
                yield listed_sql(plan, places, i, dialect), public


@pytest.fixture(scope="module")
def asked() -> Iterator[tuple[duckdb.DuckDBPyConnection, Desk]]:
    held = rows(60)
    desk = Desk(
        {"p": hb.table(held, unit="id", max_groups=2, max_rows=2, max_total=4), "w": hb.public(rows(20, seed=9))}
    )
    with duckdb.connect() as made:
        made.register("held", held)
        made.execute("CREATE TABLE source0 AS SELECT * FROM held")
        yield made, desk
    desk.engine.close()


def of_questions(asked: Any, count: int, dialect: Dialect = DUCKDB) -> tuple[dict[str, set[str]], int, int]:
    """The faults of the texts of so many questions; how many bound plans, and how many optimised ones, were seen."""
    con, desk = asked
    found: dict[str, set[str]] = {}
    bound = optimised = 0
    con.execute(f"SET disabled_optimizers = '{SHOWN}'")
    for question in questions(count, seed=3):
        for sql, public in texts(desk, question, dialect):
            for place, table in public.items():
                con.register("incoming", pa.table(table))
                con.execute(f'CREATE OR REPLACE TABLE "{place}" AS SELECT * FROM incoming')
            here: set[str] = set()
            for optimized in (False, True):
                try:
                    listed = plans(con, sql, optimized=optimized)
                except duckdb.Error:
                    assert optimized  # the bound plan is always seen
                    continue
                bound, optimised = bound + (not optimized), optimised + optimized
                here.update(f for plan in listed for f in faults(plan, sql, optimized=optimized))
            if here:
                found[question] = here
    return found, bound, optimised


def test_no_text_has_a_cast_but_ours_or_anything_that_raises(asked: Any) -> None:
    """Set operations, joins, lists, sub-queries, windows, keys."""
    found, bound, optimised = of_questions(asked, counts.part(150, 2))
    assert found == {}
    assert optimised > bound // 2 > 20


def test_a_cast_left_to_the_engine_is_seen(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dialect, "column", lambda self, sql, of, to: self.null(to) if of is Kind.NULL else sql)
    found, *_ = of_questions(asked, counts.part(150, 2), DuckDB(casts=False))
    assert any(fault == "its own cast of DATE to TIMESTAMP" for of in found.values() for fault in of)


def of_expressions(con: duckdb.DuckDBPyConnection, dialect: Dialect, count: int = 200) -> set[str]:
    """The faults of expressions of both depths, as one text."""
    shown = ", ".join(text for _, text in written([*some(count, depth=1), *some(count // 3, seed=8)], dialect))
    return found_in(con, f"SELECT {shown} FROM source0")


def test_no_expression_has_a_cast_but_ours_or_anything_that_raises(asked: Any) -> None:
    assert of_expressions(asked[0], DUCKDB, counts.part(200, 2)) == set()


def test_a_net_left_out_is_seen(asked: Any) -> None:
    found = of_expressions(asked[0], DuckDB(net=False))
    assert {name.split("(")[0] for name in found} >= {"date_trunc", "date_diff", "upper", "substring", "left", "sqrt"}
