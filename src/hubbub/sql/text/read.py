"""SQL as it is read: DuckDB's, and what people write who know another dialect."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar, Final

from sqlglot import exp

from hubbub._typing import override
from hubbub.sql.text.templates import put_off

put_off()

from sqlglot.dialects.duckdb import DuckDB  # noqa: E402
from sqlglot.parsers.duckdb import DuckDBParser  # noqa: E402

__all__ = ["FORMS", "AsWritten"]

FORMS: Final = {
    "DATE_TRUNC": "DATE_TRUNC('month', x AT TIME ZONE 'Europe/Rome')",
    "DATETRUNC": "DATE_TRUNC('month', x AT TIME ZONE 'Europe/Rome')",
    "DATE_DIFF": "DATE_DIFF('day', a, b)",
    "DATEDIFF": "DATEDIFF('day', a, b)",
    "TIME_BUCKET": "TIME_BUCKET(INTERVAL 15 MINUTE, x)",
    "LAST_DAY": "LAST_DAY(x)",
    "MOD": "MOD(x, 2)",
    "LOG10": "LOG10(x)",
    "STRFTIME": "STRFTIME(x, '%Y-%m')",
    "LOG": "LN(x) / LN(2)",
    "QUANTILE": "QUANTILE_CONT(x, 0.9)",
    "QUANTILE_CONT": "QUANTILE_CONT(x, 0.9)",
    "QUANTILE_DISC": "QUANTILE_DISC(x, 0.9)",
    "APPROX_QUANTILE": "QUANTILE_CONT(x, 0.9)",
}
"""Functions of which the parser would leave out the last of too many arguments, such as a zone, and what they take."""

_SHARES: Final = ("QUANTILE", "QUANTILE_CONT", "QUANTILE_DISC", "APPROX_QUANTILE")
_MOST: Final = {name: 2 if name in ("LOG", *_SHARES) else form.count(",") + 1 for name, form in FORMS.items()}

_of_units = DuckDBParser.FUNCTIONS["DATEDIFF"]


def _date_diff(args: list[exp.Expr]) -> exp.Expr:
    """DATEDIFF(unit, start, end); of two arguments, as in MySQL and Spark, the days from the second to the first."""
    if len(args) == 2:
        return exp.DateDiff(this=args[0], expression=args[1], unit=exp.Literal.string("day"))
    difference: exp.Expr = _of_units(args)
    return difference


def _as_text(args: list[exp.Expr]) -> exp.Expr:
    """STRFTIME(x, format): the parser's own reading asks for the dialect, too."""
    read: exp.Expr = DuckDBParser.FUNCTIONS["STRFTIME"](args, DuckDB())
    return read


_READ: Final = {
    **DuckDBParser.FUNCTIONS,
    "DATEDIFF": _date_diff,
    "LOG": exp.Log.from_arg_list,
    "STRFTIME": _as_text,
}


def _with_all(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    """A function as it is read, or, of more arguments than it takes, a call that nothing reads."""
    read: Callable[[list[exp.Expr]], exp.Expr] = _READ[name]
    return lambda args: read(args) if len(args) <= _MOST[name] else exp.Anonymous(this=name, expressions=args)


def _share(name: str) -> Callable[[DuckDBParser], exp.Expr]:
    """The same of a function whose first argument may be DISTINCT, which has a parser of its own."""
    whole: Any = SimpleNamespace(from_arg_list=_with_all(name))
    return lambda parser: parser._parse_distinct_arg_function(whole)


class AsWritten(DuckDB):
    """DuckDB's SQL, with DATEDIFF of two arguments and FETCH FIRST, which is LIMIT."""

    class Parser(DuckDBParser):
        FUNCTIONS: ClassVar = {
            **_READ,
            **{name: _with_all(name) for name in FORMS if name in _READ},
        }
        FUNCTION_PARSERS: ClassVar = {**DuckDBParser.FUNCTION_PARSERS, **{name: _share(name) for name in _SHARES}}

        @override
        def _parse_pipe_syntax_query(self, query: exp.Query) -> exp.Query | None:
            """Refused: the parser hangs what stands behind `|>` on the SELECT before it, and drops a LIMIT that is
            aggregated."""
            self.raise_error("|> is not SQL of DuckDB")
            return query

        @override
        def _parse_limit(self, *arguments: Any, **named: Any) -> exp.Expr | None:
            limit: exp.Expr | None = super()._parse_limit(*arguments, **named)
            if not isinstance(limit, exp.Fetch) or limit.args.get("count") is None:
                return limit
            options = limit.args.get("limit_options")
            if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
                return limit
            return exp.Limit(expression=limit.args["count"])
