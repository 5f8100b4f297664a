"""The words that people who know pandas type first: those that fit are verbs of ours, and the others say why not.

rows.groupby("ward")["age"].mean()      rows.group_by("ward").agg(hb.mean("age"))
rows["age"].median()                    rows.agg(hb.median("age"))
rows.count()                            rows.agg(hb.count())
rows.head()                             refused: rows of people are never shown
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from hubbub.errors import QueryError
from hubbub.remedies import Rewrite
from hubbub.verbs import functions as f

if TYPE_CHECKING:
    from hubbub.verbs.rows import Answer, Groups, Rows

__all__ = ["Picked", "RowsOfPeople", "picked"]

_SHOWN = (
    "rows of people are never shown: every answer is an aggregate. Ask rows.count(), rows.groupby('ward').count(), or "
    "rows.describe(); session.tables shows what is declared, and session.synthesize makes up rows like them."
)
_REFUSED = ("head", "sample", "to_pandas", "to_polars", "to_arrow", "to_dict", "to_csv", "iterrows", "itertuples")


class RowsOfPeople:
    """What pandas would show of rows, and nobody here can see."""

    if not TYPE_CHECKING:  # to a type checker they are not there at all

        def __getattr__(self, name: str) -> Callable[..., NoReturn]:
            if name not in _REFUSED:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

            def refuse(*_: object, **__: object) -> NoReturn:
                raise QueryError(f"{name}: {_SHOWN}", remedy=_counted(self))

            return refuse

    def __iter__(self) -> NoReturn:
        raise QueryError(f"to go through the rows: {_SHOWN}", remedy=_counted(self))

    def __len__(self) -> NoReturn:
        raise QueryError(
            "len: how many rows there are is an answer: rows.count().run(epsilon=0.1).", remedy=_counted(self)
        )

    def __bool__(self) -> bool:
        return True


def _counted(rows: Any) -> Rewrite:
    """The question how many rows there are, for somebody who wanted to see them."""
    return Rewrite("rows.count()", rows.count().sql())


@dataclass(frozen=True)
class Picked:
    """One column of some rows, or of their groups: its aggregates are questions."""

    source: Rows | Groups
    column: str

    def count(self) -> Answer:
        """How many values there are that are not NULL."""
        return self.source.agg(f.count(self.column))

    def nunique(self) -> Answer:
        """How many different values there are."""
        return self.source.agg(f.n_distinct(self.column))

    def sum(self) -> Answer:
        """Their sum; needs declared bounds, as all that follow do."""
        return self.source.agg(f.sum(self.column))

    def mean(self) -> Answer:
        """Their mean."""
        return self.source.agg(f.mean(self.column))

    def median(self) -> Answer:
        """Their median."""
        return self.source.agg(f.median(self.column))

    def std(self) -> Answer:
        """Their standard deviation."""
        return self.source.agg(f.std(self.column))

    def var(self) -> Answer:
        """Their variance."""
        return self.source.agg(f.var(self.column))

    def min(self) -> Answer:
        """About the smallest of them: one person alone cannot move it far."""
        return self.source.agg(f.min(self.column))

    def max(self) -> Answer:
        """About the largest of them: one person alone cannot move it far."""
        return self.source.agg(f.max(self.column))

    def quantile(self, q: float) -> Answer:
        """Their q-quantile."""
        return self.source.agg(f.quantile(self.column, q))

    def value_counts(self) -> Answer:
        """How many rows have each value, the most frequent first. Raises QueryError for groups."""
        counted = getattr(self.source, "value_counts", None)  # rows have it, groups do not
        if counted is None:
            raise QueryError("value_counts: group by the column too: rows.groupby('ward', 'age').count().")
        answer: Answer = counted(self.column)
        return answer


def picked(source: Rows | Groups, column: object) -> Picked:
    """`rows["age"]`. Raises QueryError for anything but one column's name."""
    if isinstance(column, str):
        return Picked(source, column)
    if isinstance(column, list):
        raise QueryError("[...]: name one column, as in rows['age'].mean(); of several: rows.agg(hb.mean('age'), ...).")
    raise QueryError(
        "[...]: name one column, as in rows['age'].mean(). To choose rows: rows.filter(hb.col('age') > 65)."
    )
