"""Questions that are asked every day, as verbs: a histogram by edges, a description of columns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from hubbub.errors import QueryError, what_was_given
from hubbub.tables.columns import Between, Edges
from hubbub.verbs import functions as f
from hubbub.verbs.terms import Term, constant

if TYPE_CHECKING:
    from hubbub.verbs.rows import Answer, Rows

__all__ = ["describe", "hist"]

QUARTILES: Final = (("min", 0), ("q25", 0.25), ("median", 0.5), ("q75", 0.75), ("max", 1))


def hist(rows: Rows, column: str, edges: Sequence[object]) -> Answer:
    """How many rows fall between each two edges: half-open, the last one closed; others are left out.

    Raises QueryError for fewer than two edges, or edges out of order.
    """
    ends = list(edges)
    if len(ends) < 2 or any(not a < b for a, b in itertools.pairwise(ends)):  # type: ignore[operator]
        raise QueryError(
            f"hist: {what_was_given(ends)}: give at least two edges in increasing order, as in [0, 18, 65, 120]."
        )
    x = f.col(column)
    labels = [f"[{a}, {b})" for a, b in itertools.pairwise(ends)]
    labels[-1] = labels[-1][:-1] + "]"
    ifs = [exp.If(this=(x < b).node, true=constant(t)) for b, t in zip(ends[1:-1], labels, strict=False)]
    last = constant(labels[-1])
    # Without inner edges there is one bin: still a CASE, so that the group is a label and known beforehand.
    bins = exp.Case(ifs=ifs or [exp.If(this=(x <= ends[-1]).node, true=last)], default=last.copy())
    return rows.filter(x.between(ends[0], ends[-1])).group_by(Term(bins).alias(column)).agg(f.count())


def describe(rows: Rows, columns: Sequence[str]) -> Answer:
    """Count, mean, standard deviation and the five quartiles of columns; by default, all with declared bounds.

    Dates and times have no mean and no standard deviation.

    Raises QueryError where no column has any.
    """
    ranged = [n for n, d in rows.facts.declared.items() if isinstance(d, Between | Edges)]
    chosen = columns or ranged
    if not chosen:
        raise QueryError("describe: no column has declared bounds. Name one, or declare the bounds of one.")
    terms = []
    for n in chosen:
        terms.append(f.count(n).alias(f"{n}_count"))
        what = rows.facts.declared.get(n)
        if not isinstance(what, Between) or what.numeric:
            terms += [f.mean(n).alias(f"{n}_mean"), f.std(n).alias(f"{n}_std")]
        terms += [f.quantile(n, q).alias(f"{n}_{word}") for word, q in QUARTILES]
    return rows.agg(*terms)
