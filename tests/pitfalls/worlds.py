"""Two tables that differ in one unit, asked the same side by side: the ground of the tests of the pitfalls.

`hold` runs the grey-box audit (`hubbub.audit.audit_session`) under both neighbour relations: with the noise of the
first table frozen, the neighbour must give the same price, errors, schema, rows in the same order, intervals, receipt
and remaining budget to the last bit, each integer must move by no more than its declared sensitivity, and the laws
that were drawn from must cost no more than was charged.
"""

from __future__ import annotations

import datetime as dt
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

import hubbub as hb
from audit.frozen import FrozenBits
from hubbub.audit import Pair, Question, audit_session
from hubbub.session import Session
from people import HUGE

BOTH = ("add_remove", "replace")
PURE, WITH_DELTA = hb.Budget(10**6), hb.Budget(10**6, "1e-2")
NEW = 99

Row = Mapping[str, Any]
Units = Mapping[Any, Sequence[Row]]

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("g", pa.string()),
        ("x", pa.float64()),
        ("n", pa.int64()),
        ("s", pa.string()),
        ("at", pa.timestamp("us")),
    ]
)
COLUMNS = {"g": hb.one_of("A", "B", None), "x": hb.between(0, 100), "n": hb.between(-5, 10)}

BASE: Units = {
    unit: [
        {
            "g": "ABAAC"[(unit + i) % 5],
            "x": 10.0 * unit + i,
            "n": unit % 7,
            "s": f"{unit}",
            "at": dt.datetime(2025, 3, 1),
        }
        for i in range(2)
    ]
    for unit in range(8)
}
"""Eight people with two ordinary rows each; one of their groups is not declared."""

EVERYTHING = (
    "SELECT COUNT(*) AS r, COUNT(x) AS c, SUM(x) AS s, AVG(x) AS m, COUNT(DISTINCT id) AS u FROM t",
    "SELECT g, COUNT(*) AS r, AVG(x) AS m, SUM(n) AS t FROM t GROUP BY g",
    "SELECT VAR_SAMP(x) AS v, MEDIAN(x) AS q, MIN(n) AS low, MAX(x) AS high FROM t",
)
"""Every way in which a number leaves."""


def frame(units: Units, schema: pa.Schema = SCHEMA) -> pa.Table:
    """The rows of these units, in their order; a column that a row leaves out is NULL."""
    rows = [{"id": unit, **row} for unit, of_unit in units.items() for row in of_unit]
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema)


def declared(source: Any, relation: Any = "add_remove", **changes: Any) -> Any:
    options = {"unit": "id", "max_groups": 2, "max_rows": 2, "columns": COLUMNS, "neighbours": relation}
    return hb.table(source, **(options | changes))


def opened(source: Any, relation: Any = "add_remove", budget: hb.Budget = PURE, **changes: Any) -> Session:
    """A session over one table `t` and its ledger in memory."""
    bits = changes.pop("bits", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return Session({"t": declared(source, relation, **changes)}, budget=budget, ledger=None, _bits=bits)


def compare(
    pairs: Sequence[Pair], relation: Any, *questions: str | Question, budget: hb.Budget, **changes: Any
) -> None:
    """The grey-box audit of pairs of sources.

    Raises AssertionError for any violation.
    """
    found = audit_session(
        lambda source: opened(source, relation, budget, bits=FrozenBits(), **changes),
        questions=questions,
        relation=relation,
        neighbours=pairs,
        runs=0,
    )
    assert (found.questions, found.neighbours) == (len(questions), len(pairs))
    assert found.violations == ()


def hold(
    newcomers: Sequence[Sequence[Row]],
    *questions: str | Question,
    base: Units = BASE,
    schema: pa.Schema = SCHEMA,
    made: Any = lambda table: table,
    budget: hb.Budget = PURE,
    **changes: Any,
) -> None:
    """Each newcomer comes to `base`, last or first; the last one takes the place of its first unit, too: nothing but
    noise shows it.

    made: the source that holds a table.
    """
    d, first = made(frame(base, schema)), next(iter(base), 0)
    added = []
    for i, rows in enumerate(newcomers):
        units = {NEW: rows, **base} if i % 2 else {**base, NEW: rows}
        added.append(Pair(f"newcomer {i}", d, made(frame(units, schema))))
    replaced = Pair("replaced", d, made(frame({**base, first: newcomers[-1]}, schema)))
    compare(added, "add_remove", *questions, budget=budget, **changes)
    compare([replaced], "replace", *questions, budget=budget, **changes)


def same(d: Any, other: Any, *questions: str | Question, budget: hb.Budget = PURE, **changes: Any) -> None:
    """The same rows in another form: nothing moves at all."""
    compare([Pair("another form", d, other, same=True)], "add_remove", *questions, budget=budget, **changes)


def answer(source: Any, sql: str, *, budget: hb.Budget | None = None, **changes: Any) -> list[tuple[Any, ...]]:
    """The rows of an answer whose noise is 0 for all practical purposes."""
    with opened(source, budget=budget or hb.Budget(10 * HUGE), **changes) as session:
        return session.sql(sql, epsilon=HUGE).rows()


def finite(rows: Sequence[tuple[Any, ...]]) -> bool:
    """Whether no answer is NULL, NaN or infinite."""
    return all(math.isfinite(value) for row in rows for value in row)
