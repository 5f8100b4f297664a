"""What a data frame computes: it may choose rows and columns, and compare them; all else is kept first.

A frame is computed anew for each question. In Spark 4 a text that is no number, a sum that does not fit or a place that
a list does not have are errors then, so one person's row would be an error for everybody; LIMIT, SAMPLE, a rank or a
join make one person's row decide about another's. Which of Spark's five hundred functions fail on which value nobody
has written down, and whoever tried to list those that do not has missed some. So the list is short: what stands in it
has a value on every row, by that row alone. What else a steward wants is computed before it is declared (`checkpoint`,
or a Parquet file): its errors are then the steward's, and its rows stand still.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

__all__ = ["children_of", "unsure"]

_NODES: Final = frozenset(
    "Project Filter SubqueryAlias View Union Sort Repartition RepartitionByExpression RebalancePartitions "
    "ResolvedHint InMemoryRelation".split()
)
_TOTAL: Final = frozenset(
    "AttributeReference Literal Alias And Or Not EqualTo EqualNullSafe LessThan LessThanOrEqual GreaterThan "
    "GreaterThanOrEqual In IsNull IsNotNull IsNaN NaNvl AtLeastNNonNulls Coalesce If CaseWhen Between With "
    "CommonExpressionDef CommonExpressionRef GetStructField SortOrder".split()
)
"""What has a value whatever its operands are: names, comparisons, conditions, the field of a struct."""
_PADDED: Final = "CharVarcharCodegenUtils.readSidePadding"
"""By which Spark reads a CHAR(n): blanks are put behind it."""
_WHOLE: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_SPARKS: Final = ("org.apache.spark.sql.catalyst.", "org.apache.spark.sql.execution.columnar.InMemoryRelation")
_NO_ROW: Final = None
_DIGITS_OF_A_DOUBLE: Final = 15
"""Of so many digits each number has a double of its own."""
_INSTEAD: Final = (
    "A frame may choose rows and columns, and compare them. Leave the rest to the questions, or keep what it computes "
    "first (`checkpoint`, or write it as Parquet)"
)


def children_of(node: Any) -> list[Any]:
    """The children of a node of Spark's trees."""
    children = node.children()
    return [children.apply(i) for i in range(children.size())]


def unsure(node: Any, expressions: Iterable[Any], *, literal: bool = False) -> str | None:
    """Why a row may make a node of a plan fail, or decide about another row, and what to do; None if none does.

    expressions: what it computes of what is read. literal: its rows are constants, so these are of people, too.
    """
    kind = _kind(node)
    if kind not in _NODES:
        return f"it is made by {kind!r}: there one row can decide about others, or fail. {_INSTEAD}"
    todo = list(expressions)
    while todo:
        one = todo.pop()
        if not literal and one.foldable() and _has_value(one):
            continue  # no row decides about a constant, but whether it is computed where it fails
        if not _total(one, exact=kind != "Filter"):
            return f"it computes {str(one.prettyName())!r}: it may fail on a row, or follow from others. {_INSTEAD}"
        todo += children_of(one)
    return None


def _total(one: Any, *, exact: bool) -> bool:
    """Whether an expression has a value for all values of its operands, and the same one each time.

    exact: it may be a column, so two values stay two.
    """
    kind = _kind(one)
    if kind == "Cast":
        return _widens(str(one.child().dataType().sql()), str(one.dataType().sql()), exact=exact)
    if kind == "StaticInvoke":
        return f"{one.staticObject().getSimpleName()}.{one.functionName()}" == _PADDED
    return kind in _TOTAL


def _kind(one: Any) -> str:
    """The name of a class of Spark's own; a longer one of any other."""
    name = str(one.getClass().getName()).removesuffix("$")
    return name.rpartition(".")[2] if name.startswith(_SPARKS) else name


def _has_value(one: Any) -> bool:
    """Whether a constant can be computed. What fails does so for those alone for whom a condition lets it be."""
    try:
        one.eval(_NO_ROW)
    except Exception:  # Py4J's
        return False
    return True


def _widens(made: str, to: str, *, exact: bool) -> bool:
    """Whether each value of one type has one in another; exact: and no two have the same.

    >>> [_widens(*kinds, exact=True) for kinds in (("INT", "BIGINT"), ("BIGINT", "INT"), ("INT", "DECIMAL(10,0)"))]
    [True, False, True]
    >>> [_widens("BIGINT", "DOUBLE", exact=exact) for exact in (True, False)]
    [False, True]
    """
    if made in (to, "VOID"):
        return True
    wide, narrow = _digits(to), _digits(made)
    if to == "DOUBLE":
        return made == "FLOAT" or (narrow is not None and (not exact or sum(narrow) <= _DIGITS_OF_A_DOUBLE))
    if wide is None or narrow is None:
        return False
    if to in _WHOLE:
        return made in _WHOLE and _WHOLE.index(to) >= _WHOLE.index(made)
    return all(a >= b for a, b in zip(wide, narrow, strict=True))


def _digits(kind: str) -> tuple[int, int] | None:
    """How many digits a type has before its point, and behind it."""
    if kind in _WHOLE:
        return (3, 5, 10, 19)[_WHOLE.index(kind)], 0
    decimal = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", kind)
    return None if decimal is None else (int(decimal[1]) - int(decimal[2]), int(decimal[2]))
