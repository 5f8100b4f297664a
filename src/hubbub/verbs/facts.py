"""What is known of the columns of some rows, and what a column's name stands for: names ignore case, as in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp

from hubbub.verbs.terms import quoted

__all__ = ["NO_FACTS", "Facts", "spelled"]


@dataclass(frozen=True)
class Facts:
    """What is known of the columns of some rows: their names (None: not all known), the unit's, what is declared.

    listed: of a join in which names stand twice, all names of its tables.
    """

    columns: tuple[str, ...] | None = None
    unit: str | None = None
    each_row: bool = False
    declared: Mapping[str, object] = field(default_factory=dict)
    listed: tuple[str, ...] | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """All names that are known."""
        return self.columns or self.listed or ()

    def beside(self, other: Facts, using: Iterable[str]) -> Facts:
        """Of the rows of a join with others, whose columns of these names are one with this one's."""
        merged = {name.lower() for name in using}
        known = (*self.names, *(name for name in other.names if name.lower() not in merged))
        if not (self.names and other.names):
            return replace(self, columns=None, listed=None)
        several = len({name.lower() for name in known}) < len(known)
        return replace(self, columns=None if several else known, listed=known if several else None)

    def settled(self, derived: Iterable[str], selected: tuple[str, ...] | None) -> Facts:
        """Of the same rows as a sub-query: with further columns, or of these alone."""
        shown = selected if selected is not None or self.columns is None else self.with_these(derived)
        listed = None if shown is not None or self.listed is None else (*self.listed, *derived)
        computed = {spelled(name, self.names) for name in derived} | set(derived)
        kept = {n: d for n, d in self.declared.items() if n not in computed and (not shown or n in shown)}
        return replace(self, columns=shown, listed=listed, declared=kept)

    def with_these(self, derived: Iterable[str]) -> tuple[str, ...]:
        """The names of all columns, with those of further ones; one that there is already stands in its place."""
        anew = {spelled(name, self.names): name for name in derived}
        return tuple(dict.fromkeys([*(anew.get(name, name) for name in self.columns or ()), *derived]))

    def star(self, derived: Iterable[str]) -> exp.Star:
        """`*` of the rows of a join, without the columns that are computed anew."""
        anew = dict.fromkeys(spelled(name, dict.fromkeys(self.listed or ())) for name in derived)
        left_out = [quoted(name) for name in anew if name is not None]
        return exp.Star(except_=left_out) if left_out else exp.Star()

    def order_of(self, others: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """Columns in the order of these, where they are the same by name, and stand otherwise: SQL would put them
        together by position. None for any others.
        """
        names = [spelled(name, others or ()) for name in self.names]
        same = others is not None and len(others) == len(names) and None not in names and tuple(names) != others
        return tuple(name for name in names if name is not None) if same else None

    def hides(self, name: str, other: str) -> bool:
        """Whether a column of one name takes the place of another: they differ in case at most, and are not two."""
        same = name.lower() == other.lower()
        return same and (name == other or not (name in self.names and other in self.names))


NO_FACTS: Final = Facts()


def spelled(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` stands for: the same, or the only one that differs in case alone."""
    known = list(known)
    if name in known:
        return name
    folded = [k for k in known if k.lower() == name.lower()]
    return folded[0] if len(folded) == 1 else None
