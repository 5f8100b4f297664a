"""The words of each dialect, as recorded: every rule, every function and operator, every reach of a number.

A rule whose text differs by one sign fails here at once and without a server; whether the words mean what they should
is told where they run, in `tests/engines`. `HUBBUB_GOLDEN=write` writes the recordings anew; read the difference before
committing it.
"""

from __future__ import annotations

import datetime as dt
import decimal
import inspect
import itertools
import os
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from engines.corpus import COLUMNS, FORMS, bound
from hubbub.engines.duckdb.dialect import DUCKDB, DUCKDB_PORTABLE, DuckDB
from hubbub.engines.postgres.dialect import POSTGRES, Postgres, whole_constant
from hubbub.engines.spark.dialect import SPARK
from hubbub.errors import HubbubError, QueryError
from hubbub.sql.emit.dialect import Dialect
from hubbub.sql.emit.expression import SAFE, _fits, _reach, _reach_of, _reach_of_function, expression_sql
from hubbub.sql.emit.net import raises
from hubbub.sql.text.functions import UNITS
from hubbub.tables.expressions import Column, Negate
from hubbub.tables.functions import FUNCTIONS
from hubbub.tables.kinds import Kind

FOLDER = Path(__file__).parent / "written"
DIALECTS: Mapping[str, Dialect] = {
    "duckdb": DUCKDB,
    "duckdb-portable": DUCKDB_PORTABLE,
    "duckdb-bare": DuckDB(casts=False, net=False, years=False),
    "postgres": POSTGRES,
    "postgres-latin1": Postgres("sv_SE", encoding="LATIN1"),
    "spark": SPARK,
}
KINDS = [*COLUMNS.values(), Kind.NULL, Kind.OTHER]
TEXTS = ["", "it's", "a\0b", "\0" * 40, "\0" * 41, "Größe ${HOME} \\ ; --", "\u20ac", "\ud800", "a?"]
NOW, DAY = dt.datetime(2025, 3, 30, 2, 30, 0, 5), dt.date(2024, 2, 29)
CONSTANTS = [None, True, False, 0, 7, -7, 2**62, Fraction(1, 3), -0.5, 1e300, "it's", NOW, DAY]
GRID = [
    (0, 0, 10, 0),
    (-3, -8, 8, 2),
    (5, 0, 2**31 - 1, 0),
    (5, 0, 2**31, 0),
    (5, -(2**31), 5, 0),
    (5, -(2**30) - 1, 5, 2**30),
    (5, -5, 2**30 + 1, -(2**30)),
    (-20, 4, 9, -(2**31)),
]

RULES: Mapping[str, list[tuple[Any, ...]]] = {
    "constant": [(value,) for value in CONSTANTS],
    "typed": [(value,) for value in CONSTANTS],
    "constant_as": list(itertools.product(CONSTANTS, COLUMNS.values())),
    "real": [(0.1,), (float("inf"),)],
    "in_years": [("x", Kind.DATE), ("x", Kind.TIMESTAMP)],
    "between": [("x", "0", "1")],
    "stored_between": [("x", "0", "1")],
    "key": [("x", kind) for kind in KINDS],
    "cut": [("x",)],
    "pick": [((3, -5, 2**40), "p")],
    "rank": [("x", (-0.5, 1e-300, 0.1)), ("x", ())],
    "operand": [("x", of, to) for of, to in itertools.product(KINDS, KINDS)],
    "column": [("x", of, to) for of, to in itertools.product(KINDS, KINDS)],
    "null": [(kind,) for kind in KINDS],
    "quote": [("ward",), ('a"b',), ("Größe",), ("x_1",), ("\ud800",)],
    "leaf_column": [("ward", 3)],
    "literal": [(text,) for text in TEXTS],
    "text": [(text,) for text in TEXTS],
    "like": [
        ("x", parts, case)
        for parts in (("=a", "%"), ("=50%!", "_", "=\\_"), ("%",), ("=it's",), ("=what?",), ("=\\",), ("=!?", "%"))
        for case in (True, False)
    ],
    **{name: [("x",)] for name in ("double", "finite", "divisor", "floor", "not_nan", "unit_double", "decimal")},
    **{name: [("x",)] for name in ("column_text", "instant", "whole_text", "tried", "millionths", "real_total")},
    **{name: [("x",)] for name in ("whole_sum", "total", "grand_total", "wide")},
    "unit": [("x", kind) for kind in ("BIGINT", "DECIMAL", "TIMESTAMP WITH TIME ZONE", "BLOB")],
    "unit_text": [("x",)],
    "unit_name": [("x", of) for of in ("text", "blob", "decimal", "integer")],
    "own": [("x", kind) for kind in KINDS],
    "row_number": [()],
    "cast": [("x", of, to) for of in KINDS for to in COLUMNS.values()],
    "steps": [("x", -3), ("x", 7)],
    "clamped": [("x", *grid, missing) for grid in GRID for missing in ("NULL", "0")],
    "on_grid": [("x", exponent) for exponent in (-1000, -3, 0, 7, 960, 961, 962, 1000)],
    "total_as": [("x", kind) for kind in COLUMNS.values()],
    "product": [("x", "y")],
    "quotient": [("x", 7)],
    "beside": [("x", kind) for kind in KINDS],
    "divided": [("x", "y")],
    "scaled": [("x", 7, "y")],
    "hash": [("x",), ("x", "y", "z")],
    "first": [("source", "x, y", "unit", "h, x", 5)],
    "same": [("x", "y")],
    "meets": [("x", "d", kind, null) for kind in COLUMNS.values() for null in (True, False)],
    "semi": [("x, y", "l", "r", "a.x = b.x", negated) for negated in (True, False)],
    "extreme": [(word, "x", kind) for word in ("min", "max", "median") for kind in KINDS[:-1]],
    "call": [("DATE_DIFF", ("'MICROSECOND'", "x", "y"), (Kind.TEXT, Kind.TIMESTAMP, Kind.TIMESTAMP))],
    "shown_as": [("ward",), ("x_1",), ("Ward",)],
    "holds": [(text,) for text in TEXTS],
}
"""What each rule is asked; `call` by the expressions below, but for a unit of time that no SQL names."""

SMALLEST = f"{decimal.Context(prec=400).power(2, -SAFE):f}"
EDGES = [f"{word}(s, {n})" for word in ("LEFT", "RIGHT") for n in ("0", "1", "-1", "-2", "99999999999", "-99999999999")]
EDGES += [f"ROUND(x, {n})" for n in (0, 1, -1, 14, 15, 16, -15, -16)]
EDGES += [
    f"SUBSTR(s, {first}{more})"
    for first in ("0", "1", "2", "-1", "-2", "99999999999", "-99999999999")
    for more in ("", ", 0", ", 1", ", 5", ", -1", ", -5", ", 99999999999")
]
EDGES += [f"DATE_DIFF('{unit}', t, t)" for unit in (*sorted(UNITS), "MICROSECOND")]
EDGES += [
    "NULL",
    "0",
    "-9223372036854775808",
    "'it''s'",
    "x IN (1, NULL, 1e300)",
    "i IN (1, 2)",
    "d IN (t)",
    "s LIKE NULL",
]
EDGES += [f"{a} {op} {b}" for op in "+-*/%" for a, b in ("xx", "xi", "ix", "ii")]
EDGES += [
    f"x {op} {n}"
    for op in ("+", "*", "/", "//", "%")
    for n in ("0", "0.5", "1e-91", "1e-90", "1e90", "1e91", "(-1e91)")
]
EDGES += [
    f"x {op} {n}" for op in ("+", "*", "/", "//", "%") for n in ("NULL", "1e-400", "7e-91", f"{2**300}.0", SMALLEST)
]
EDGES += [
    "ROUND(x * x * x * i)",
    "ROUND(x * x * x * i, 3)",
    "d IN (TIMESTAMP '2025-01-31 12:00:00')",
    "t IN (DATE '2025-01-31')",
]
EDGES += [
    "-NULL",
    "NULL + x",
    "NULL * NULL",
    "x + NULLIF(NULL, NULL)",
    "REPLACE(s, NULL, NULL)",
    "REPLACE(NULL, 'a', 'b')",
    "CONTAINS(s, NULL)",
]
EDGES += [
    "STARTS_WITH(NULL, s)",
    "ENDS_WITH(NULL, s)",
    "LEFT(NULL, 2)",
    "RIGHT(s, NULL)",
    "ROUND(x, NULL)",
    "ABS(NULL)",
    "LENGTH(NULL)",
]
EDGES += [
    "EXTRACT(YEAR FROM NULL)",
    "LAST_DAY(d)",
    "LAST_DAY(t)",
    "TIME_BUCKET(INTERVAL '12 hours', t)",
    "DATE_TRUNC('month', NULL)",
    "DATE_DIFF('day', NULL, t)",
    "SUBSTR(NULL, 1)",
    "SUBSTR(s, NULL, 2)",
]
EDGES += [f"CAST(NULL AS {kind})" for kind in ("BIGINT", "DOUBLE", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP")]
EDGES += [f"{n} / x" for n in ("0", "1", "1e-91", "1e91")]
EDGES += ["*".join("x" * n) for n in range(2, 8)] + [" + ".join("x" * n) for n in (3, 30)]
EDGES += [
    "x * x / (x * x)",
    "x / x / x / x",
    "x % x % x",
    "(x // x) // x",
    "-(x * x)",
    "-(-x)",
    "-x",
    "-(-i)",
    "-i + x",
]
EDGES += [
    f"{f}({a})" for f in ("FDIV", "FMOD") for a in ("x, x", "x, i", "i, x", "i, i", "x, 0", "x, 1e-91", "x, NULL")
]
EDGES += ["FMOD(FMOD(x, x), x)", "FDIV(FDIV(x, x), x)", "FDIV(i, 3) * i"]
EDGES += ["(x + 1) * (x + 1) * (x + 1)", "(i + 1) * x", "(i // 3) * i", "FLOOR(x) * FLOOR(x) * FLOOR(x) * FLOOR(x)"]
EDGES += [
    f"{f}({inner})" for f in ("ROUND", "SIGN", "EXP", "ABS") for inner in ("x * x", "x * x * x", "i", "1e91", "x / x")
]
EDGES += [f"{f}(x) * {f}(x) * x" for f in ("ABS", "SQRT", "FLOOR", "CEIL", "SIGN", "EXP", "LN", "LOG10", "ROUND")]
EDGES += ["SQRT(x * x) + ABS(x * x) - ROUND(x * x * x)", "CASE WHEN x > 0 THEN x * x ELSE 1e91 END * x"]
EDGES += [
    "CASE WHEN b THEN d ELSE t END",
    "LEAST(d, t)",
    "GREATEST(1, 2.5, x)",
    "COALESCE(i, x, NULL)",
    "NULLIF(i, 2.5)",
]


def _told(call: Any, *given: Any) -> str:
    """What a rule writes, or how it refuses."""
    try:
        return str(call(*given))
    except HubbubError as error:
        return f"{type(error).__name__}: {error}"


def _shown(value: Any) -> str:
    return value.name if isinstance(value, Kind) else ascii(value)


def rules(dialect: Dialect) -> Iterator[str]:
    for name in ("name", "types", "checked", "spelling", "portable", "casts"):
        yield f"{name}\n    {getattr(dialect, name)}"
    for name, asked in RULES.items():
        for given in asked if hasattr(dialect, name) else []:
            yield f"{name}({', '.join(map(_shown, given))})\n    {_told(getattr(dialect, name), *given)}"


def expressions(dialect: Dialect) -> Iterator[str]:
    """Each form with a column of each kind in each place, and the edges."""
    filled = (form.format(*chosen) for form, places in FORMS for chosen in itertools.product(COLUMNS, repeat=places))
    for text in dict.fromkeys((*filled, *EDGES)):
        if (node := bound(text)) is not None:
            yield f"{text}\n    {_told(expression_sql, node, dialect)}"


def nets() -> Iterator[str]:
    """Whether a node has a net of its own."""
    filled = (form.format(*chosen) for form, places in FORMS for chosen in itertools.product(COLUMNS, repeat=places))
    for text in dict.fromkeys((*COLUMNS, *filled, *EDGES)):
        if (node := bound(text)) is not None:
            yield f"{text}\n    {raises(node)}"


def reaches() -> Iterator[str]:
    """The magnitudes that an engine's arithmetic is known to stay in."""
    some = [(-SAFE, SAFE), (0, 64), (-1, 0), (-60, 11), (3, 9), (-950, -900), (900, 1024)]
    for op, a, b in itertools.product(("+", "-", "*", "/", "//", "%", "DIV", "MOD"), some, some):
        yield f"{a} {op} {b}\n    {_reach_of(op, a, b)}"
    for name, of in itertools.product(("ABS", "SQRT", "FLOOR", "CEIL", "SIGN", "EXP", "LN", "LOG10", "ROUND"), some):
        yield f"{name} of {of}\n    {_reach_of_function(name, of)}"
    for reach, room in itertools.product(
        [(-1000, 1000), (-1001, 0), (0, 1001), (-948, 948), (-949, 0), (0, 949)], (0, 52)
    ):
        yield f"{reach} with room {room}\n    {_fits(reach, room)}, {_fits(reach)}"
    for text in EDGES:
        if (node := bound(text)) is not None and node.kind in (Kind.INTEGER, Kind.NUMBER):
            yield f"{text}\n    {_reach(node)}"


def _hold(name: str, found: Iterator[str]) -> None:
    file, text = FOLDER / f"{name}.txt", "\n".join(found) + "\n"
    if os.environ.get("HUBBUB_GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(text.encode(errors="backslashreplace"))
    assert text.encode(errors="backslashreplace") == file.read_bytes(), f"{file.name} has changed"


@pytest.mark.parametrize("name", DIALECTS)
def test_every_rule_is_written_as_recorded(name: str) -> None:
    _hold(f"rules-{name}", rules(DIALECTS[name]))


@pytest.mark.parametrize("name", ["duckdb", "duckdb-bare", "postgres", "spark"])
def test_every_form_is_written_as_recorded(name: str) -> None:
    _hold(f"forms-{name}", expressions(DIALECTS[name]))


def test_every_net_is_as_recorded() -> None:
    _hold("nets", nets())


def test_every_reach_of_a_number_is_as_recorded() -> None:
    _hold("reaches", reaches())


def test_the_longest_text_of_an_expression_is_written_and_no_longer_one() -> None:
    """200,000 characters, which `"<name>"` has; a sign doubles what it stands before."""
    assert len(expression_sql(Column("x" * 199_998, Kind.TEXT), DUCKDB)) == 200_000
    with pytest.raises(QueryError, match="too complex: divisions, remainders or CASE"):
        expression_sql(Column("x" * 199_999, Kind.TEXT), DUCKDB)
    with pytest.raises(QueryError, match="too complex: divisions or remainders"):
        expression_sql(Negate(Negate(Column("x" * 199_998, Kind.NUMBER))), DUCKDB)


def test_no_rule_of_a_dialect_is_left_out() -> None:
    """`call` is asked by the forms: each function of SQL is in one."""
    found = {n for d in DIALECTS.values() for n, _ in inspect.getmembers(type(d), inspect.isfunction) if n[0] != "_"}
    assert found == set(RULES)
    text = "".join((*(form for form, _ in FORMS), *EDGES))
    assert {
        n for n in FUNCTIONS if not n.startswith("CAST_") and n not in ("CONCAT", "DATE_ADD") and n not in text
    } == set()


@pytest.mark.parametrize(
    ("text", "kept"),
    [("3", 3), ("(-3)", -3), ("1e30", 2**31 - 2), ("-1e30", -(2**31) + 2), (str(2**31), 2**31 - 2), ("0", 0)],
)
def test_a_number_of_characters_lies_within_32_bits_whatever_was_asked(text: str, kept: int) -> None:
    assert whole_constant(text) == kept
