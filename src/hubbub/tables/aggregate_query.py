"""Questions: what is asked of an owned relation, and the statement that one or more of them stand in.

A *question* is one private aggregate: keys and aggregates over an owned relation (`hubbub.tables.relations`). Its
answer is *released*, hence public, as a table with a column `k0`, `k1`, ... for each key and `a0`, `a1`, ... for each
aggregate. A *statement* is ordinary SQL over such tables and public ones: HAVING, ORDER BY, ratios, joins of two
answers. That part is computed locally, from releases alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubbub.errors import InternalError
from hubbub.tables.aggregates import Aggregate
from hubbub.tables.groups import Key
from hubbub.tables.relations import Relation, scans

__all__ = ["Aggregate", "AggregateQuery", "Key", "Output", "Statement"]


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

    @property
    def space(self) -> str:
        """The unit space that the charge is entered in."""
        return scans(self.relation)[0].space

    @property
    def tables(self) -> tuple[str, ...]:
        """The private tables it reads, each once."""
        return tuple(dict.fromkeys(scan.table for scan in scans(self.relation)))

    @property
    def table(self) -> str:
        """The table that the charge is entered under."""
        return self.tables[0]

    @property
    def unit(self) -> str:
        """What one unit is called."""
        scan = scans(self.relation)[-1] if scans(self.relation)[0].path else None
        unit = (scan or scans(self.relation)[0]).unit
        return unit if unit is not None else "row"

    @property
    def each_row(self) -> bool:
        """Whether each row of the table is a unit of its own."""
        return scans(self.relation)[0].each_row


@dataclass(frozen=True)
class Output:
    """One column of the answer: `what` of question number `question`, or (None) computed from released columns.

    others: further aggregates, each with its question, whose values the column hands on (UNION ALL). exact: it follows
    from keys, constants and public tables alone. noisy: it is computed from noisy numbers for certain.
    """

    name: str
    question: int = 0
    what: Key | Aggregate | None = None
    others: tuple[tuple[int, Aggregate], ...] = ()
    exact: bool = False
    noisy: bool = False

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
