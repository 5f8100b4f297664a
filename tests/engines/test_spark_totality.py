"""Spark: no row makes an expression raise, with ANSI mode and without, and the values are DuckDB's (P12, P33, P52)."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot
from sqlglot import exp

import hubbub as hb
from engines import corpus
from hubbub.engines.duckdb.dialect import DUCKDB_PORTABLE
from hubbub.engines.fields import Fields
from hubbub.engines.spark.dialect import SPARK
from hubbub.engines.spark.engine import SparkEngine
from hubbub.sql.emit.expression import expression_sql
from hubbub.tables.expressions import Call, Column, Expression, children
from hubbub.tables.kinds import Kind

AT_ONCE = 20
"""So many expressions stand in one SELECT; Spark compiles each of them."""
FIRST = int(os.environ.get("HUBBUB_SOAK_FROM", "0"))
"""Where a soak that was stopped goes on: it says how far it came."""
IN_CI, SOAK = 40, 500
_PHYSICAL = {"i": "BIGINT", "x": "DOUBLE", "s": "VARCHAR", "b": "BOOLEAN", "d": "DATE", "t": "TIMESTAMP"}

ELSEWHERE = {
    "1_000", "0x10", "nan", "inf", "infinity", "-infinity", "epoch", "12:30", "1e400", "2025-01-31 24:00:00",
    "2025-01-31T10:00:00Z",
}  # fmt: skip
"""Texts that DuckDB alone reads as numbers or times; other engines as is documented."""


def plain_rows() -> pa.Table:
    """The rows of the corpus without texts that engines read, or write in capitals, in ways of their own."""
    table = corpus.rows(160, without="\0")
    texts = [
        None if t is None or not t.isascii() or t in ELSEWHERE or "(" in t or len(t.split("-")[0]) > 4 else t
        for t in table["s"].to_pylist()
    ]
    return table.set_column(table.column_names.index("s"), "s", pa.array(texts, pa.string()))


class Sides:
    """The same rows in a Spark and in DuckDB, in the columns that a scan makes of them."""

    def __init__(self, spark: Any, rows: pa.Table, folder: Any) -> None:
        rows = rows.append_column("n", pa.array(range(len(rows)), pa.int64()))
        pq.write_table(rows, str(folder / "rows.parquet"))
        self.engine = SparkEngine()
        self.engine.add("p", hb.table(spark.read.parquet(str(folder / "rows.parquet")), unit="id"))
        self.session: Any = self.engine._session
        known = self.engine._known["p"]
        shown = ", ".join(f"{sql} AS {SPARK.quote(c)}" for c, sql in known.columns.items())
        self.session.sql(f"SELECT {shown} FROM {known.view}").createOrReplaceTempView("corpus_rows")
        self.duck = duckdb.connect()
        self.duck.register("arrived", rows)
        fields = Fields("p", {**_PHYSICAL, "n": "BIGINT"}, {}, {}, DUCKDB_PORTABLE).expressions()
        shown = ", ".join(f"{e} AS {DUCKDB_PORTABLE.quote(c)}" for c, e in fields.items())
        self.duck.execute(f"CREATE TABLE corpus_rows AS SELECT {shown} FROM arrived")

    def of_spark(self, nodes: list[Expression], ansi: str) -> list[tuple[Any, ...]]:
        self.session.conf.set("spark.sql.ansi.enabled", ansi)
        shown = ", ".join(f"{expression_sql(n, SPARK)} AS c{i}" for i, n in enumerate(nodes))
        return [tuple(r) for r in self.session.sql(f"SELECT n, {shown} FROM corpus_rows ORDER BY n").collect()]

    def of_duckdb(self, nodes: list[Expression]) -> list[tuple[Any, ...]]:
        shown = ", ".join(f"{expression_sql(n, DUCKDB_PORTABLE)} AS c{i}" for i, n in enumerate(nodes))
        return self.duck.execute(f"SELECT n, {shown} FROM corpus_rows ORDER BY n").fetchall()

    def close(self) -> None:
        self.engine.close()
        self.duck.close()


@pytest.fixture(scope="module")
def worst(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    found = Sides(spark, corpus.rows(160), tmp_path_factory.mktemp("worst"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def plain(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    found = Sides(spark, plain_rows(), tmp_path_factory.mktemp("plain"))
    yield found
    found.close()


def chosen(count: int) -> list[tuple[str, Expression]]:
    """Half of depth 1, half of depth 2."""
    texts = [*corpus.some(count // 2, depth=1, seed=4), *corpus.some(count - count // 2, seed=4)]
    return [(text, node) for text in texts[FIRST:] if (node := corpus.bound(text)) is not None]


def _calls(node: Expression) -> Iterator[Expression]:
    yield node
    for child in children(node):
        yield from _calls(child)


def _spelled(node: Expression) -> bool:
    """Whether a number is written as a text: each engine has its own way."""
    return any(
        isinstance(n, Call) and n.name == "CAST_TEXT" and n.arguments[0].kind is Kind.NUMBER for n in _calls(node)
    )


def _near(a: Any, b: Any) -> bool:
    """Equal; where EXP or a logarithm took part, to the last bits."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=1e-13)
    return bool(a == b)


def bisected(sides: Sides, nodes: list[Expression], ansi: str) -> tuple[list[tuple[Any, ...]], list[Expression]]:
    """The answers, and the expressions that raise."""
    try:
        return sides.of_spark(nodes, ansi), []
    except Exception:
        if len(nodes) == 1:
            return [], nodes
        half = len(nodes) // 2
        return [], [n for part in (nodes[:half], nodes[half:]) for n in bisected(sides, part, ansi)[1]]


@pytest.mark.parametrize("count", [IN_CI, pytest.param(SOAK, marks=pytest.mark.soak)])
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_no_row_makes_an_expression_raise(worst: Sides, count: int, ansi: str) -> None:
    found = chosen(count)
    for at in range(0, len(found), AT_ONCE):
        texts, nodes = zip(*found[at : at + AT_ONCE], strict=True)
        raising = bisected(worst, list(nodes), ansi)[1]
        assert not [t for t, n in zip(texts, nodes, strict=True) if n in raising], f"from {FIRST + at}"


@pytest.mark.parametrize("count", [IN_CI, pytest.param(SOAK, marks=pytest.mark.soak)])
def test_each_row_has_the_value_that_duckdb_gives_it(plain: Sides, count: int) -> None:
    found = [(text, node) for text, node in chosen(count) if not _spelled(node)]
    assert len(found) > count * 0.7
    for at in range(0, len(found), AT_ONCE):
        texts, nodes = zip(*found[at : at + AT_ONCE], strict=True)
        one, two = plain.of_spark(list(nodes), "false"), plain.of_duckdb(list(nodes))
        wrong = [
            (texts[i - 1], a[i], b[i], a[0])
            for a, b in zip(one, two, strict=True)
            for i in range(1, len(a))
            if not _near(a[i], b[i])
        ]
        assert not wrong, (FIRST + at, wrong[:5])


@pytest.mark.parametrize("count", [90, pytest.param(None, marks=pytest.mark.soak)])
def test_nothing_tells_minus_zero_from_zero(worst: Sides, count: int | None) -> None:
    """A unit's smallest or first value is one of the two by the order of its rows, which other rows decide."""
    pairs, told = corpus.zeros(count), []
    assert any("AS VARCHAR" in one for one, _ in pairs)
    for at in range(0, len(pairs), AT_ONCE // 2):
        texts = pairs[at : at + AT_ONCE // 2]
        nodes = [node for pair in texts for text in pair if (node := corpus.bound(text)) is not None]
        rows = worst.of_spark(nodes, "false")
        told += [text for k, text in enumerate(texts) if any(r[2 * k + 1] != r[2 * k + 2] for r in rows)]
    assert told == []


def test_no_text_holds_a_cast_that_can_raise() -> None:
    """Beside those of constants, and those to a text or to bytes."""
    columns = Fields("p", _PHYSICAL, {}, {}, SPARK).expressions().values()
    texts = [expression_sql(node, SPARK) for _, node in chosen(300)]
    for text in (*columns, *texts):
        for cast in sqlglot.parse_one(text, read="spark").find_all(exp.Cast):
            if isinstance(cast, exp.TryCast):
                continue
            constant = isinstance(cast.this, exp.Literal | exp.Null | exp.HexString)
            assert constant or cast.to.this in (exp.DType.TEXT, exp.DType.BINARY), cast.sql("spark")


def test_a_constant_place_in_a_text_is_of_32_bits() -> None:
    s = Column("s", Kind.TEXT)
    for place in (2**40, -(2**40)):
        node = corpus.bound(f"SUBSTR(s, {place})")
        assert node is None or str(abs(place)) not in expression_sql(node, SPARK), s
