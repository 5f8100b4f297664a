"""Every argument of every node is looked at, or the node is refused.

sqlglot hangs modifiers on its nodes as arguments (NOT on LIKE, PERCENT on LIMIT, EXCLUDE on *). One that nobody reads
would make the question that is answered another than the one that was asked.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

__all__ = ["unread"]

_READ: Final[dict[type[exp.Expr], frozenset[str]]] = {
    kind: frozenset(names.split())
    for kind, names in (
        (exp.Like, "this expression negate"),
        (exp.ILike, "this expression negate"),
        (exp.Literal, "this is_string"),
        (exp.Column, "this table"),
        (exp.Identifier, "this quoted"),
        (exp.Table, "this alias"),
        (exp.TableAlias, "this"),
        (exp.Alias, "this alias"),
        (exp.Cast, "this to _type"),
        (exp.TryCast, "this to _type safe"),
        (exp.Between, "this low high"),
        (exp.In, "this expressions query unnest field"),
        (exp.Case, "this ifs default"),
        (exp.AtTimeZone, "this zone"),
        (exp.ConvertTimezone, "source_tz target_tz timestamp"),
        (exp.If, "this true false"),
        (exp.Count, "this big_int"),
        (exp.RowNumber, ""),
        (exp.Lag, "this offset default"),
        (exp.Lead, "this offset default"),
        (exp.Distinct, "expressions"),
        (exp.Ordered, "this desc nulls_first"),
        (exp.Order, "expressions"),
        (exp.Group, "expressions all rollup cube grouping_sets totals"),
        (exp.Limit, "expression"),
        (exp.Offset, "expression"),
        (exp.Round, "this decimals"),
        (exp.Floor, "this"),
        (exp.Ceil, "this"),
        (exp.Trim, "this position"),
        (exp.Substring, "this start length"),
        (exp.Replace, "this expression replacement"),
        (exp.Least, "this expressions ignore_nulls"),
        (exp.Greatest, "this expressions ignore_nulls"),
        (exp.Coalesce, "this expressions"),
        (exp.DPipe, "this expression safe"),
        (exp.TimestampTrunc, "this unit"),
        (exp.DateTrunc, "this unit"),
        (exp.DateDiff, "this expression unit date_part_boundary"),
        (exp.Concat, "expressions safe coalesce"),
        (exp.ConcatWs, "expressions safe coalesce"),
        (exp.SplitPart, "this delimiter part_index"),
        (exp.Anonymous, "this expressions"),
        (exp.AnonymousAggFunc, "this expressions"),
        (exp.Star, ""),
    )
}
_PLAIN: Final = frozenset({"this", "expression"})


def unread(node: exp.Expr) -> str | None:
    """The name of an argument of `node` that means something and is not read; None if there is none."""
    read = _READ.get(type(node), _PLAIN)
    for name, value in node.args.items():
        meant = value is not None and value is not False and value != []
        if meant and name not in read:
            return name.strip("_").upper().replace("_", " ")
    return None
