"""Questions: what is asked of an owned relation, and the statement that one or more of them stand in.

A *question* is one private aggregate: keys and aggregates over an owned relation (`hubbub.tables.relations`). Its
answer is *released*, hence public, as a table with a column `k0`, `k1`, ... for each key and `a0`, `a1`, ... for each
aggregate. A *statement* is ordinary SQL over such tables and public ones: HAVING, ORDER BY, ratios, joins of two
answers. That part is computed locally, from releases alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from hubbub.errors import InternalError
from hubbub.tables.columns import Scalar
from hubbub.tables.expressions import Expression, whole
from hubbub.tables.kinds import NUMERIC, TEMPORAL, Kind
from hubbub.tables.relations import Relation

__all__ = ["Aggregate", "AggregateQuery", "Function", "Key", "Output", "Statement"]


class Function(Enum):
    """The private aggregates. The value of each member is its name in SQL."""

    COUNT_ROWS = "COUNT(*)"
    COUNT_VALUES = "COUNT"
    COUNT_UNITS = "COUNT(DISTINCT unit)"
    COUNT_DISTINCT = "COUNT(DISTINCT ...)"
    SUM = "SUM"
    AVG = "AVG"
    VAR_POP = "VAR_POP"
    VAR_SAMP = "VAR_SAMP"
    STDDEV_POP = "STDDEV_POP"
    STDDEV_SAMP = "STDDEV_SAMP"
    COVAR_POP = "COVAR_POP"
    COVAR_SAMP = "COVAR_SAMP"
    CORR = "CORR"
    QUANTILE = "QUANTILE_CONT"
    MIN = "MIN"
    MAX = "MAX"


COUNTS = frozenset({Function.COUNT_ROWS, Function.COUNT_VALUES, Function.COUNT_UNITS, Function.COUNT_DISTINCT})
QUANTILES = frozenset({Function.QUANTILE, Function.MIN, Function.MAX})


@dataclass(frozen=True)
class Aggregate:
    """One private aggregate.

    arguments: none for COUNT(*), two for COVAR and CORR, else one. COUNT_UNITS may have one: then it counts units
    with a row where it is not NULL. fraction: the share of a quantile, in [0, 1].
    """

    function: Function
    arguments: tuple[Expression, ...] = ()
    fraction: Fraction | None = None

    @property
    def argument(self) -> Expression | None:
        """The first argument, if there is one."""
        return self.arguments[0] if self.arguments else None

    @property
    def kind(self) -> Kind:
        """The kind of its released column: quantiles of dates and times are dates and times."""
        if self.function in QUANTILES and self.argument is not None and self.argument.kind in TEMPORAL:
            return self.argument.kind
        return Kind.INTEGER if self.function in COUNTS else Kind.NUMBER


@dataclass(frozen=True)
class Key:
    """One term of GROUP BY. groups: those that are answered, where the question or a declaration lists them; else
    `hubbub.tables.groups` finds them.
    """

    expression: Expression
    groups: tuple[Scalar, ...] | None = None

    @property
    def kind(self) -> Kind:
        """The kind of its groups: whole numbers stay whole, whatever computes them."""
        return Kind.INTEGER if self.expression.kind in NUMERIC and whole(self.expression) else self.expression.kind


@dataclass(frozen=True)
class AggregateQuery:
    """One private aggregate over an owned relation.

    sets: the groupings that are answered, each as positions of `keys`; one with all keys unless the question has
    ROLLUP, CUBE or GROUPING SETS. names: what the analyst calls each key, if anything.
    """

    relation: Relation
    keys: tuple[Key, ...]
    aggregates: tuple[Aggregate, ...]
    sets: tuple[tuple[int, ...], ...]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.aggregates or not self.sets:
            raise InternalError("a question without an aggregate, or without a grouping")


@dataclass(frozen=True)
class Output:
    """One column of the answer: `what` of question number `question`, or (None) computed from released columns.

    others: further aggregates, each with its question, whose values the column hands on (UNION ALL). exact: it follows
    from keys, constants and public tables alone.
    """

    name: str
    question: int = 0
    what: Key | Aggregate | None = None
    others: tuple[tuple[int, Aggregate], ...] = ()
    exact: bool = False

    @property
    def cells(self) -> tuple[tuple[int, Aggregate], ...]:
        """The aggregates whose values the column hands on as they are, each with its question."""
        return ((self.question, self.what), *self.others) if isinstance(self.what, Aggregate) else ()


@dataclass(frozen=True)
class Statement:
    """One statement with at least one private aggregate.

    questions: its private aggregates, each after those whose releases it reads. sql: the outer part, over tables
    `released0`, `released1`, ... and the public ones named in `public`. outputs: the columns of the answer.
    rowwise: where each row of the answer is computed from one row of one release: the SQL that computes the outputs
    for every row and every draw of that release, in the order of its columns `draw` and `place`; `sql` then gives
    the column `place` after the outputs.
    """

    questions: tuple[AggregateQuery, ...]
    sql: str
    public: tuple[str, ...]
    outputs: tuple[Output, ...]
    rowwise: str | None = None
