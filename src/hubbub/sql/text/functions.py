"""Row functions in SQL: how each is written by people, and how each is written for DuckDB.

Where a function could raise, `hubbub.sql.emit.net` says so, and a `TRY` is put around it. Numbers are doubles, and what
is not finite is made NULL around them; so are dates and times beyond the years 1 to 9999.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sqlglot import exp

from hubbub.tables.patterns import LOOKED_AT

__all__ = ["MOVES", "READ", "UNITS", "WRITE", "cast_name", "named"]

MOVES: Final = {
    "YEAR": ("MONTH", 12),
    "QUARTER": ("MONTH", 3),
    "MONTH": ("MONTH", 1),
    "WEEK": ("DAY", 7),
    "DAY": ("DAY", 1),
    "HOUR": ("SECOND", 3600),
    "MINUTE": ("SECOND", 60),
    "SECOND": ("SECOND", 1),
}
"""The units of an INTERVAL in those of DATE_ADD: a number of months, days or seconds."""
UNITS: Final = frozenset({"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"})

Arguments = list[exp.Expr]


def _plain(*names: str) -> Callable[[exp.Expr], Arguments]:
    """The arguments under these names, lists spread out, missing ones left out."""

    def read(node: exp.Expr) -> Arguments:
        arguments: Arguments = []
        for name in names:
            value = node.args.get(name)
            if isinstance(value, list):
                arguments += value
            elif isinstance(value, exp.Expr):
                arguments.append(value)
        return arguments

    return read


def _unit(node: exp.Expr, name: str = "unit") -> exp.Expr:
    value = node.args.get(name)
    return exp.Literal.string(value.name.upper() if isinstance(value, exp.Expr) else "DAY")


READ: Final[dict[type[exp.Expr], tuple[str, Callable[[exp.Expr], Arguments]]]] = {
    exp.Abs: ("ABS", _plain("this")),
    exp.Sign: ("SIGN", _plain("this")),
    exp.Floor: ("FLOOR", _plain("this", "decimals")),
    exp.Ceil: ("CEIL", _plain("this", "decimals")),
    exp.Round: ("ROUND", _plain("this", "decimals")),
    exp.Sqrt: ("SQRT", _plain("this")),
    exp.Exp: ("EXP", _plain("this")),
    exp.Ln: ("LN", _plain("this")),
    exp.Least: ("LEAST", _plain("this", "expressions")),
    exp.Greatest: ("GREATEST", _plain("this", "expressions")),
    exp.Coalesce: ("COALESCE", _plain("this", "expressions")),
    exp.Nullif: ("NULLIF", _plain("this", "expression")),
    exp.Lower: ("LOWER", _plain("this")),
    exp.Upper: ("UPPER", _plain("this")),
    exp.Reverse: ("REVERSE", _plain("this")),
    exp.Length: ("LENGTH", _plain("this")),
    exp.Substring: ("SUBSTR", _plain("this", "start", "length")),
    exp.Left: ("LEFT", _plain("this", "expression")),
    exp.Right: ("RIGHT", _plain("this", "expression")),
    exp.Replace: ("REPLACE", _plain("this", "expression", "replacement")),
    exp.DPipe: ("CONCAT", _plain("this", "expression")),
    exp.Pow: ("POWER", _plain("this", "expression")),
    exp.TimeToUnix: ("EPOCH", _plain("this")),
    exp.RegexpLike: ("REGEXP_MATCHES", _plain("this", "expression")),
    exp.RegexpFullMatch: ("REGEXP_FULL_MATCH", _plain("this", "expression")),
    exp.SplitPart: ("SPLIT_PART", _plain("this", "delimiter", "part_index")),
    exp.StartsWith: ("STARTS_WITH", _plain("this", "expression")),
    exp.EndsWith: ("ENDS_WITH", _plain("this", "expression")),
    exp.Contains: ("CONTAINS", _plain("this", "expression")),
    exp.TimestampTrunc: ("DATE_TRUNC", lambda n: [_unit(n), n.this]),
    exp.DateTrunc: ("DATE_TRUNC", lambda n: [_unit(n), n.this]),
    exp.Extract: ("EXTRACT", lambda n: [exp.Literal.string(n.name.upper()), n.expression]),
    exp.DateDiff: ("DATE_DIFF", lambda n: [_unit(n), n.expression, n.this]),
    **{
        node: ("EXTRACT", lambda n, part=part: [exp.Literal.string(part), n.this])  # type: ignore[misc]
        for node, part in (
            (exp.Year, "YEAR"),
            (exp.Quarter, "QUARTER"),
            (exp.Month, "MONTH"),
            (exp.Week, "WEEK"),
            (exp.Day, "DAY"),
            (exp.DayOfMonth, "DAY"),
            (exp.DayOfWeek, "DOW"),
            (exp.DayOfWeekIso, "ISODOW"),
            (exp.DayOfYear, "DOY"),
            (exp.WeekOfYear, "WEEK"),
            (exp.Hour, "HOUR"),
            (exp.Minute, "MINUTE"),
            (exp.Second, "SECOND"),
        )
    },
}
"""How sqlglot's nodes are read: the function's name, and its arguments in order."""

_ANONYMOUS: Final = {"DATE_PART": "EXTRACT", "DATEPART": "EXTRACT"}
_PARTS: Final = {"WEEKDAY": "DOW", "ISOYEAR": "ISOYEAR"}
"""Functions of DuckDB that are one part of a date: there WEEKDAY is DAYOFWEEK, Sunday is 0."""


def named(node: exp.Expr) -> tuple[str, Arguments] | None:
    """The function and the arguments of a call, or None for one that is not on the list."""
    kind = type(node)
    if kind in READ:
        name, arguments = READ[kind]
        return name, arguments(node)
    if isinstance(node, exp.Trim) and node.args.get("expression") is None:
        return {"LEADING": "LTRIM", "TRAILING": "RTRIM"}.get(str(node.args.get("position")), "TRIM"), [node.this]
    if isinstance(node, exp.Log) and isinstance(node.args.get("expression"), exp.Expr) and node.name == "10":
        return "LOG10", [node.expression]
    if isinstance(node, exp.Log) and node.args.get("expression") is None:
        return "LOG10", [node.this]
    if isinstance(node, exp.Anonymous) and str(node.this).upper() in _PARTS and len(node.expressions) == 1:
        return "EXTRACT", [exp.Literal.string(_PARTS[str(node.this).upper()]), *node.expressions]
    if isinstance(node, exp.Anonymous) and str(node.this).upper() in _ANONYMOUS:
        part, *rest = node.expressions or [exp.Null()]
        return "EXTRACT", [exp.Literal.string(part.name.upper()), *rest]
    return None


_CASTS: Final = {
    "INTEGER": ("INT", "BIGINT"),
    "NUMBER": ("DOUBLE",),
    "TEXT": ("TEXT", "VARCHAR", "CHAR"),
    "BOOLEAN": ("BOOLEAN",),
    "DATE": ("DATE",),
    "TIMESTAMP": ("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"),
}


def cast_name(target: exp.Expr) -> str | None:
    """The function that casts to an SQL type, or None for a type that is not on the list, or has parameters or a
    collation."""
    if target.expressions or target.args.get("collate") is not None:
        return None
    word = target.this.name if hasattr(target.this, "name") else str(target.this)
    return next((f"CAST_{kind}" for kind, words in _CASTS.items() if word in words), None)


def _call(name: str) -> Callable[[Sequence[str]], str]:
    return lambda a: f"{name}({', '.join(a)})"


def _try_cast(target: str) -> Callable[[Sequence[str]], str]:
    return lambda a: f"TRY_CAST({a[0]} AS {target})"


_QUOTE: Final = "'"

WRITE: Final[dict[str, Callable[[Sequence[str]], str]]] = {
    **{name: _call(name.lower()) for name in ("ABS", "FLOOR", "CEIL", "ROUND", "SQRT", "EXP", "LN", "LOG10")},
    **{name: _call(name.lower()) for name in ("LEAST", "GREATEST", "COALESCE", "LOWER", "UPPER", "TRIM", "LTRIM")},
    **{name: _call(name.lower()) for name in ("RTRIM", "REVERSE", "STARTS_WITH", "ENDS_WITH", "CONTAINS", "REPLACE")},
    **{name: _call(name.lower()) for name in ("LEFT", "RIGHT", "DATE_DIFF", "DATE_TRUNC")},
    "SIGN": lambda a: f"CAST(sign({a[0]}) AS DOUBLE)",
    "NULLIF": lambda a: f"(CASE WHEN {a[0]} = {a[1]} THEN NULL ELSE {a[0]} END)",
    "LENGTH": lambda a: f"CAST(length({a[0]}) AS BIGINT)",
    "SUBSTR": _call("substring"),
    "CONCAT": lambda a: f"({' || '.join(a)})",
    "SPLIT_PART": _call("split_part"),
    "REGEXP_MATCHES": lambda a: f"regexp_matches(left({a[0]}, {LOOKED_AT}), {a[1]})",
    "DATE_ADD": lambda a: f"({a[2]} + INTERVAL {a[1]} {a[0].strip(_QUOTE)})",
    "TIME_BUCKET": lambda a: f"time_bucket(to_microseconds({a[0]}), CAST({a[1]} AS TIMESTAMP))",
    "LAST_DAY": lambda a: f"last_day({a[0]})",
    "EXTRACT": lambda a: f"TRY_CAST(date_part({a[0]}, {a[1]}) AS BIGINT)",
    "CAST_INTEGER": _try_cast("BIGINT"),
    "CAST_NUMBER": _try_cast("DOUBLE"),
    "CAST_TEXT": _try_cast("VARCHAR"),
    "CAST_BOOLEAN": _try_cast("BOOLEAN"),
    "CAST_DATE": _try_cast("DATE"),
    "CAST_TIMESTAMP": _try_cast("TIMESTAMP"),
}
"""How each function is written for DuckDB, from the texts of its arguments."""
