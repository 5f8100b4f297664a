"""How long a text can become, and how large an expression, over a whole question.

A text that is long for one person alone is an error, or a wait, that tells of that person: an engine fails beyond a
gigabyte. So every text has a bound that holds for any row:

- a column is cut to its first `CUT` characters where it is scanned (`Dialect.cut`), on every engine;
- an expression's bound follows from its form (`characters`), and a column that a sub-query computes keeps the bound of
  what computes it, through DISTINCT, GROUP BY, windows and set operations (`sizes_in`);
- no text may be longer than 64 columns (`LONGEST`), and no stage may have rows longer than `ROW` (`too_large`);
- an engine may hold each text that an expression makes on its way, with all others of its stage: 1,000 terms
  LENGTH(REPLACE(x, 'a', ...)) are gigabytes for one row, and so are all texts of x || x || x || ..., which are made one
  after the other. Together they are at most `PASSING` rows.

Parts are counted the same way: an engine may write the definition of a column wherever the column stands, so an
expression counts as large as it is when written out down to the scans.

Bounds are in characters. A change of case can make up to three characters of one, once, whatever is applied to it
after that; the limits leave room for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from hubbub.tables.aggregate_query import AggregateQuery
from hubbub.tables.expressions import Call, Column, Expression, Literal, children
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import (
    Combine,
    Distinct,
    Filter,
    Inner,
    Join,
    PerUnit,
    PublicRelation,
    Relation,
    Scan,
    Window,
    WindowCall,
    expressions_in,
)
from hubbub.tables.written_out import WRITTEN_OUT, written_out

__all__ = ["CUT", "LARGEST", "LONGEST", "NAME", "Size", "characters", "made", "sizes_in", "too_large"]

CUT: Final = 65_536
"""A column of texts is cut to so many characters."""
NAME: Final = 64
"""Where public rows repeat rows, a unit with a longer name goes by a hash of it, which is one character longer."""
LONGEST: Final = 64 * CUT
"""No expression makes a longer text."""
ROW: Final = 4 * LONGEST
"""No stage of a question has a row with more characters."""
PASSING: Final = 4
"""The texts that a stage makes of a row on its way have so many times the characters of `ROW`, together."""
LARGEST: Final = 30_000
"""No expression has more parts, written out."""
_OTHER: Final = 400
"""No text of a number, a truth value, a date or a time is longer."""


@dataclass(frozen=True)
class Size:
    """At most how many characters a value has as a text, and how many parts what computes it."""

    characters: int
    parts: int


SCANNED: Final = Size(CUT, 1)
Sizes = Mapping[str, Size]


class _TooLarge(Exception):
    """A limit of this page is passed; the text says which."""


def characters(node: Expression, sizes: Sizes | None = None) -> int:
    """At most how many characters a value has as a text. sizes: of columns that sub-queries compute.

    >>> characters(Call("LEFT", (Column("x", Kind.TEXT), Literal(3))))
    3
    """
    return _Measure(sizes or {}).size(node).characters


def made(node: Expression, sizes: Sizes | None = None) -> int:
    """How many characters the texts count that an expression makes on its way: 0 where it makes none.

    As many as the longest has, at most, or all of them have together by `PASSING`.

    >>> from hubbub.tables.expressions import Compare
    >>> made(Compare("=", Call("CONCAT", (Literal("ab"), Literal("c"))), Literal("d")))
    3
    """
    lengths = _made(_Measure(sizes or {}), [node])
    return max(max(lengths, default=0), sum(lengths) // PASSING)


def _made(measure: _Measure, nodes: Iterable[Expression]) -> list[int]:
    """How long each text is that expressions make on their way. A part that stands in several places counts once."""
    lengths, seen, todo = list[int](), set[int](), list(nodes)
    while todo:
        part = todo.pop()
        if id(part) in seen or isinstance(part, Column | Literal):
            continue
        seen.add(id(part))
        if isinstance(part, Call) and part.name == "CONCAT":
            lengths += _joined(measure, part)
        elif part.kind is Kind.TEXT:
            lengths.append(measure.size(part).characters)
        todo += children(part)
    return lengths


def _joined(measure: _Measure, node: Call) -> list[int]:
    """How long each text is that an engine makes of `a || b || c`: a || b first, and then all of it."""
    return list(itertools.accumulate(measure.size(a).characters for a in node.arguments))[1:]


class _Measure:
    """Sizes of expressions over columns of given sizes. A part that stands in several places is looked at once."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = dict(sizes)
        self.known: dict[int, tuple[Expression, Size]] = {}
        self.longest = 0

    def size(self, node: Expression) -> Size:
        size = self.known.get(id(node))
        if size is None:
            size = self.known[id(node)] = (node, self._size(node))
            self.longest = max(self.longest, size[1].characters)
        return size[1]

    def check(self, *nodes: Expression) -> None:
        """Raises `_TooLarge` where an expression, or a text made inside it, is beyond the limits."""
        for node in nodes:
            if self.size(node).parts > LARGEST:
                raise _TooLarge(
                    "written out, the columns of the sub-queries are too large: their parts stand in it many times "
                    "over. Use each computed column fewer times."
                )
        if self.longest > LONGEST:
            raise _TooLarge(
                f"this would make texts of up to {self.longest:,} characters; at most {LONGEST:,} are made (a column "
                f"counts as {CUT:,}). Join and replace less, here and in the sub-queries, or cut first: "
                "LEFT(x, 1000)."
            )

    def _size(self, node: Expression) -> Size:
        match node:
            case Column(name=name):
                rows = self.sizes.get(name, SCANNED)
                return rows if node.kind is Kind.TEXT else Size(_OTHER, rows.parts)
            case Literal(value=value):
                return Size(len(value) if isinstance(value, str) else _OTHER, 0)
        if isinstance(node, Call) and node.name in WRITTEN_OUT:
            return self.size(written_out(node))
        below = [self.size(child) for child in children(node)]
        parts = 1 + sum(s.parts for s in below)
        return Size(self._characters(node, [s.characters for s in below]) if node.kind is Kind.TEXT else _OTHER, parts)

    def _characters(self, node: Expression, below: list[int]) -> int:
        match node:
            case Call(name="CONCAT"):
                return sum(below)
            case Call(name="REPLACE", arguments=(_, Literal(value=str() as old), Literal(value=str() as new))):
                return below[0] if len(new) <= len(old) or not old else -(-below[0] * len(new) // len(old))
            case Call(name="LEFT", arguments=(_, Literal(value=int() as most))) if most >= 0:
                return min(below[0], most)
            case Call(name="SUBSTR", arguments=(_, _, Literal(value=int() as most))) if most >= 0:
                return min(below[0], most)
        return max(below, default=0)


def sizes_in(node: Relation | PublicRelation, known: Sizes | None = None) -> dict[str, Size]:
    """The sizes of the columns that a relation computes; every other one is `SCANNED`. known: of columns of tables."""
    match node:
        case Scan(place=place) | PublicRelation(place=place):
            return {name: size for name, size in (known or {}).items() if name.partition(".")[0] == place}
        case Filter(source=source):
            return _passing(node, _checked(node, sizes_in(source, known))).sizes
        case Join(left=left, right=right):
            return _passing(node, _checked(node, sizes_in(left, known) | sizes_in(right, known))).sizes
        case PerUnit(source=source, keys=keys, aggregates=aggregates):
            measure = _checked(node, sizes_in(source, known))
            made = {name: measure.size(e) for name, e in keys} | {n: _inner(a, measure) for n, a in aggregates}
        case Distinct(source=source, columns=columns):
            measure = _checked(node, sizes_in(source, known))
            made = {name: measure.size(e) for name, e in columns}
        case Window(source=source, columns=calls):
            measure = _checked(node, sizes_in(source, known))
            made = measure.sizes | {name: _window(call, measure) for name, call in calls}
        case Combine(left=left, right=right, columns=columns_, of_left=of_left, of_right=of_right):
            measure = _checked(node, sizes_in(left, known) | sizes_in(right, known))
            both = zip(columns_, of_left, of_right, strict=True)
            made = {c.name: _larger((measure.size(x), measure.size(y))) for c, x, y in both}
    _check_row(made.values())
    _passing(node, measure)
    return made


def too_large(question: AggregateQuery) -> str | None:
    """Why a question could make texts, or expressions, that no engine can be sure to hold; None where it could not."""
    try:
        measure = _Measure(sizes_in(question.relation))
        looked_at = [k.expression for k in question.keys]
        looked_at += [argument for a in question.aggregates for argument in a.arguments]
        measure.check(*looked_at)
        _check_row(measure.size(e) for e in looked_at)
        _check_passing(measure, looked_at)
    except _TooLarge as error:
        return str(error)
    return None


def _checked(node: Relation, below: dict[str, Size]) -> _Measure:
    measure = _Measure(below)
    measure.check(*expressions_in(node))
    return measure


def _passing(node: Relation, measure: _Measure) -> _Measure:
    _check_passing(measure, expressions_in(node))
    return measure


def _check_passing(measure: _Measure, nodes: Iterable[Expression]) -> None:
    """Raises `_TooLarge` where the texts that a stage makes on its way are beyond `PASSING` rows together."""
    together = sum(_made(measure, nodes))
    if together > PASSING * ROW:
        raise _TooLarge(
            f"this would make texts of up to {together:,} characters together; at most {PASSING * ROW:,} are made "
            f"at once (a column counts as {CUT:,}). Cut first, in a sub-query: LEFT(x, 1000)."
        )


def _inner(inner: Inner, below: _Measure) -> Size:
    size = Size(_OTHER, 0) if inner.argument is None else below.size(inner.argument)
    return Size(size.characters if inner.kind is Kind.TEXT else _OTHER, size.parts + 1)


def _window(call: WindowCall, below: _Measure) -> Size:
    """A window function gives one of its arguments' values, or a number."""
    longest = max((below.size(a).characters for a in call.arguments), default=_OTHER)
    looked_at = (*call.arguments, *call.partition, *(e for e, _, _ in call.order))
    parts = 1 + sum(below.size(e).parts for e in looked_at)
    return Size(longest if call.kind is Kind.TEXT else _OTHER, parts)


def _larger(sizes: Iterable[Size]) -> Size:
    sizes = tuple(sizes)
    return Size(max(s.characters for s in sizes), max(s.parts for s in sizes))


def _check_row(sizes: Iterable[Size]) -> None:
    total = sum(s.characters for s in sizes if s.characters > _OTHER)
    if total > ROW:
        raise _TooLarge(
            f"a row of a sub-query could have {total:,} characters; at most {ROW:,} are made (a column of texts counts "
            f"as {CUT:,}). Name fewer columns of texts, or cut them first: LEFT(x, 1000)."
        )
