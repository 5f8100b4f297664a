"""ENTROPY(x): the entropy of the shares of its groups, in bits, from a released count of each.

It is post-processing of one histogram, so its interval is that of the histogram's draws. A noisy count below 0 is taken
for 0; noise makes shares more even, so of few rows the answer is too large (`docs/reference/sql.md`).
"""

from __future__ import annotations

from sqlglot import exp

from hubbub.remedies import Rewrite
from hubbub.sql.bind.context import Reader

__all__ = ["entropy"]


def entropy(reader: Reader, node: exp.Select) -> exp.Select | None:
    """A SELECT of ENTROPY(x) alone, over the counts of x; None for another SELECT.

    Raises QueryError where something stands beside it: other aggregates, GROUP BY, FILTER.
    """
    calls = [call for item in node.expressions for call in item.find_all(exp.Anonymous)]
    asked = [call for call in calls if _is_entropy(call, node)]
    if not asked:
        return None
    item = node.expressions[0]
    call = asked[0]
    clauses = [name for name in ("group", "having", "qualify", "order", "limit", "distinct") if node.args.get(name)]
    if len(node.expressions) != 1 or item.unalias() is not call or len(call.expressions) != 1 or clauses:
        raise reader.refuse(
            "ENTROPY(x) is asked alone: SELECT ENTROPY(x) FROM t WHERE ... Beside others, write it over counts: "
            "SELECT -SUM(p * LOG2(p)) FROM (SELECT n / SUM(n) OVER () AS p FROM (SELECT x, COUNT(*) AS n FROM t GROUP "
            "BY x)) WHERE p > 0.",
            call,
            remedy=Rewrite("SELECT x, COUNT(*) AS n FROM t GROUP BY x"),
        )
    key = call.expressions[0].copy()
    known = exp.Not(this=exp.Is(this=key.copy(), expression=exp.Null()))
    counts = node.copy()
    counts.set("expressions", [exp.alias_(key, "x"), exp.alias_(exp.Count(this=exp.Star(), big_int=True), "n")])
    counts.set("group", exp.Group(expressions=[exp.Literal.number(1)]))
    counts = counts.where(known)
    name = item.alias if isinstance(item, exp.Alias) else "entropy"
    n = exp.Greatest(this=exp.column("n"), expressions=[exp.Literal.number(0)])
    total = exp.Window(this=exp.Sum(this=n.copy()))
    share = exp.Div(this=exp.Mul(this=n, expression=exp.Literal.number("1.0")), expression=total)
    shares = exp.select(exp.alias_(share, "p")).from_(counts.subquery("counted"))
    bits = exp.Mul(this=exp.column("p"), expression=exp.Anonymous(this="log2", expressions=[exp.column("p")]))
    # Subtracted from 0, and not negated: the entropy of a single group is 0, and never -0.
    answer = exp.Sub(this=exp.Literal.number("0.0"), expression=exp.Sum(this=bits))
    return exp.select(exp.alias_(answer, name, quoted=True)).from_(shares.subquery("shared")).where("p > 0")


def _is_entropy(call: exp.Anonymous, node: exp.Select) -> bool:
    return str(call.this).upper() == "ENTROPY" and call.find_ancestor(exp.Select) is node
