"""SQL as it is read: DuckDB's, and what people write who know another dialect."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp

from hubbub._typing import override
from hubbub.sql.text.templates import put_off

put_off()

from sqlglot.dialects.duckdb import DuckDB  # noqa: E402
from sqlglot.parsers.duckdb import DuckDBParser  # noqa: E402

__all__ = ["AsWritten"]

_of_units = DuckDBParser.FUNCTIONS["DATEDIFF"]


def _date_diff(args: list[exp.Expr]) -> exp.Expr:
    """DATEDIFF(unit, start, end); of two arguments, as in MySQL and Spark, the days from the second to the first."""
    if len(args) == 2:
        return exp.DateDiff(this=args[0], expression=args[1], unit=exp.Literal.string("day"))
    difference: exp.Expr = _of_units(args)
    return difference


class AsWritten(DuckDB):
    """DuckDB's SQL, with DATEDIFF of two arguments and FETCH FIRST, which is LIMIT."""

    class Parser(DuckDBParser):
        FUNCTIONS: ClassVar = {**DuckDBParser.FUNCTIONS, "DATEDIFF": _date_diff}

        @override
        def _parse_limit(self, *arguments: Any, **named: Any) -> exp.Expr | None:
            limit: exp.Expr | None = super()._parse_limit(*arguments, **named)
            if not isinstance(limit, exp.Fetch) or limit.args.get("count") is None:
                return limit
            options = limit.args.get("limit_options")
            if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
                return limit
            return exp.Limit(expression=limit.args["count"])
