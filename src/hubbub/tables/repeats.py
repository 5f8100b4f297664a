"""How much one row can become where it meets public rows, over a whole question.

A public table repeats a row, with all that the row carries, once for each public row that it meets. A text of one
person, or a condition that is true for one person alone, times a large public table is memory or disk that runs out
for that person alone, and so tells of it (`hubbub.tables.growth` bounds the row itself). So of every stage

    rows that one row of a table becomes  x  characters of a row  <=  HELD

where both are told from the question and from public rows:

- a join with public rows takes the rows times as many public rows as are equal in the columns that ON compares with
  an owned value (`met`); one row where those are a key, all of the relation where there are none;
- a join by the unit multiplies the rows of both sides, UNION adds them, and one row for each owner is one row;
- EXISTS and IN (semi and anti joins) give each row once, but an engine may hold the pairs that they look at, with what
  the condition reads (`_pairs`); a text that is equal to a public one is no longer than that. Where the condition is
  nothing but a value that a public one equals, an engine looks each value up once, however many rows list it;
- a text that an expression makes on its way counts like one that is kept: LENGTH(REPLACE(x, 'a', 'aaaa')) is a number;
- a column of texts is cut where it is scanned to what `LEFT` leaves of it at most, if it is read in nothing else
  (`cuts`): the rest would be carried through the join for nobody;
- a unit is carried with every row: one whose name is longer than `NAME` goes by a hash of it where rows are repeated
  (`Dialect.unit_name`), and the column that holds the name is cut to `NAME`, where it is read as the owner's alone;
- texts are as long as `hubbub.tables.growth` says, public ones as long as the longest of them, and what is not a text
  takes `FIXED` characters, as does the row itself.

A unit with many rows of its own is not bounded here: a join of its rows with its rows squares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from hubbub.tables.aggregate_query import AggregateQuery
from hubbub.tables.expressions import (
    Call,
    Column,
    Compare,
    Expression,
    InList,
    IsNull,
    Literal,
    Logic,
    children,
    columns_in,
    columns_of,
)
from hubbub.tables.growth import CUT, NAME, ROW, Size, Sizes, characters, made, sizes_in
from hubbub.tables.kinds import NUMERIC, Kind
from hubbub.tables.relations import (
    Combine,
    Distinct,
    Filter,
    Join,
    PerUnit,
    PublicRelation,
    Relation,
    Scan,
    Window,
    below,
    expressions_in,
    leaves,
    names_read,
    scans,
    single,
)

__all__ = ["FIXED", "HELD", "cuts", "met", "repeated", "repeats_too_much"]

HELD: Final = 4 * ROW
"""The rows that one row becomes have no more characters together: 256 MiB at four bytes each."""
FIXED: Final = 16
"""What is not a text, and a row, is counted as so many characters."""
Most = Callable[[PublicRelation, tuple[tuple[str, Kind], ...]], int | None]


class _TooMuch(Exception):
    """A stage is beyond `HELD`; the text says by how much."""


def met(leaf: PublicRelation, on: Expression | None, *, exactly: bool = False) -> tuple[tuple[str, Kind], ...]:
    """The columns of a public relation that a condition of a join sets equal to something else, and as what kind.

    Of two kinds of numbers, the engine compares doubles: two whole numbers may be one there. exactly: only those that
    are compared with a value of their own kind, which no cast makes another one.
    """
    kinds: dict[str, Kind] = {}
    for term in _terms(on):
        match term:
            case Compare(op="=", left=x, right=y):
                for side, other in ((x, y), (y, x)):
                    own = isinstance(side, Column) and side.name.partition(".")[0] == leaf.place
                    if own and all(n.partition(".")[0] != leaf.place for n in columns_of(other)):
                        assert isinstance(side, Column)
                        if exactly and side.kind is not other.kind:
                            continue
                        name = side.name.partition(".")[2]
                        same = side.kind is other.kind or side.kind not in NUMERIC or kinds.get(name) is side.kind
                        kinds[name] = side.kind if same else Kind.NUMBER
    return tuple(sorted(kinds.items()))


def _terms(on: Expression | None) -> Iterable[Expression]:
    if isinstance(on, Logic) and on.op == "AND":
        return [inner for term in on.terms for inner in _terms(term)]
    return [] if on is None else [on]


def cuts(relation: Relation, looked_at: Iterable[Expression]) -> dict[str, int]:
    """To how many characters columns of texts may be cut where they are scanned, if public rows repeat them.

    LEFT(LEFT(x, m), n) is LEFT(x, n) for n <= m. looked_at: the expressions above the relation.
    """
    if not repeated(relation):
        return {}
    needed: dict[str, int] = {}
    owners = _Owners(relation)
    seen: set[int] = set()  # a part that stands in several places is looked at once

    def look(node: Expression) -> None:
        match node:
            case Column(name=name):
                needed[name] = CUT
            case Call(name="LEFT", arguments=(Column(name=name), Literal(value=int() as most))) if most >= 0:
                needed[name] = max(needed.get(name, 0), min(most, CUT))
            case _ if owners.tells_alike(node):
                pass
            case _ if id(node) not in seen:
                seen.add(id(node))
                for child in children(node):
                    look(child)

    for expression in (*owners.others, *looked_at):
        look(expression)
    # All names of the owner are equally long: UNION compares those of its sides.
    needed |= dict.fromkeys(owners.names, max([NAME, *(needed.get(name, 0) for name in owners.names)]))
    return {name: most for name, most in needed.items() if most < CUT}


class _Owners:
    """The columns of texts that name the owner, and where they are read as that alone: in PARTITION BY, and by
    themselves in sub-queries, whose rows are told apart by the owner anyhow.

    names: of all such columns, those of sub-queries too. others: all other expressions of the relation.
    """

    def __init__(self, relation: Relation) -> None:
        texts = (s for s in scans(relation) if s.unit is not None and s.columns.get(s.unit) is Kind.TEXT)
        self.names = {f"{s.place}.{s.unit}" for s in texts}
        self.others: list[Expression] = []
        self._read(relation)

    def _read(self, node: Relation | PublicRelation) -> None:
        for part in below(node):
            self._read(part)
        match node:
            case PerUnit(keys=named, aggregates=aggregates):
                self._name(named)
                self.others += [inner.argument for _, inner in aggregates if inner.argument is not None]
            case Distinct(columns=named):
                self._name(named)
            case Combine(columns=columns, of_left=left, of_right=right):
                for column, *sides in zip(columns, left, right, strict=True):
                    if all(map(self._is, sides)):
                        self.names.add(column.name)
                    else:  # beside another text the name is compared as a whole
                        self.others += sides
            case Window(columns=columns):
                for _, call in columns:
                    self.others += [*call.arguments, *(e for e, _, _ in call.order)]
                    self.others += [e for e in call.partition if not self._is(e)]
            case _:
                self.others += expressions_in(node)

    def _name(self, named: Iterable[tuple[str, Expression]]) -> None:
        for name, expression in named:
            if self._is(expression):
                self.names.add(name)
            else:
                self.others.append(expression)

    def _is(self, node: Expression) -> bool:
        return isinstance(node, Column) and node.name in self.names

    def tells_alike(self, node: Expression) -> bool:
        """Whether a condition tells the same of a name and of its first `NAME` characters."""
        match node:
            case IsNull(operand=x):
                return self._is(x)
            case (
                Compare(left=x, right=Literal(value=str() as text))
                | Compare(left=Literal(value=str() as text), right=x)
            ):
                return self._is(x) and len(text) < NAME
            case InList(operand=x, values=values):
                return self._is(x) and all(len(str(v.value)) < NAME for v in values)
        return False


def repeated(relation: Relation) -> bool:
    """Whether public rows repeat a row."""
    return any(isinstance(j.right, PublicRelation) and not j.one for j in _joins(relation))


def _joins(node: Relation | PublicRelation) -> Iterator[Join]:
    if isinstance(node, Join):
        yield node
    for part in below(node):
        yield from _joins(part)


def repeats_too_much(question: AggregateQuery, most: Most | None = None) -> str | None:
    """Why a question could make more of one row than every engine can be sure to hold; None where it could not.

    most: how many rows of a public relation are equal in some columns, if not as the relation itself says. What only a
    release will tell (where the relation says None) counts as one row: it is looked at again when that is there.
    """
    looked_at = [k.expression for k in question.keys]
    looked_at += [argument for a in question.aggregates for argument in a.arguments]
    read = names_read(question.relation).union(*map(columns_of, looked_at))
    looked_at = list(dict.fromkeys(looked_at))
    told = most or (lambda leaf, columns: leaf.most(columns))
    cut = {name: Size(most, 1) for name, most in cuts(question.relation, looked_at).items()}
    try:
        _Weigher(read, told, cut).question(question.relation, looked_at)
    except _TooMuch:
        try:  # how long public texts are is asked where it matters alone
            _Weigher(read, told, cut | _texts(question, read)).question(question.relation, looked_at)
        except _TooMuch as error:
            return str(error)
    return None


def _texts(question: AggregateQuery, read: frozenset[str]) -> dict[str, Size]:
    """The sizes of the columns of public texts that are read."""
    texts = {}
    for leaf in leaves(question.relation):
        for name, kind in leaf.columns.items():
            longest = leaf.longest(name) if kind is Kind.TEXT and f"{leaf.place}.{name}" in read else None
            if longest is not None:
                texts[f"{leaf.place}.{name}"] = Size(min(longest, CUT), 1)
    return texts


class _Weigher:
    def __init__(self, read: frozenset[str], most: Most, texts: Mapping[str, Size]) -> None:
        self.read, self.most, self.texts = read, most, texts

    def question(self, relation: Relation, looked_at: Iterable[Expression]) -> None:
        """Raises `_TooMuch` where a stage, or what the question looks at, is beyond `HELD`."""
        rows = self.rows(relation)
        if rows > 1:
            below = sizes_in(relation, self.texts)
            self.check(rows, [_size(e, below) for e in looked_at])

    def rows(self, node: Relation | PublicRelation) -> int:
        """How many rows a row of each table below becomes, at most; every stage is looked at on the way."""
        if isinstance(node, Scan | PublicRelation):
            return 1
        rows = self._rows(node)
        if rows > 1 and not isinstance(node, Filter):
            self.check(rows, self._shown(node))
        if rows > 1 and isinstance(node, Filter):
            self.check(rows, [made(node.condition, sizes_in(node.source, self.texts))])
        return 1 if single(node) else rows

    def _rows(self, node: Relation) -> int:
        match node:
            case Join(left=left, right=right, how=how, on=on, one=one):
                rows = self.rows(left)
                if isinstance(right, PublicRelation):
                    once = one or (how in ("semi", "anti") and _looked_up(right, on))
                    pairs = rows * (1 if once else max(1, self.most(right, met(right, on)) or 1))
                else:
                    pairs = rows * self.rows(right)
                if on is not None:
                    below = sizes_in(left, self.texts) | sizes_in(right, self.texts)
                    self.check(pairs, _pairs(node, on, below) if how in ("semi", "anti") else [made(on, below)])
                return rows if how in ("semi", "anti") else pairs
            case Combine(left=left, right=right, op=("UNION ALL" | "UNION")):
                return self.rows(left) + self.rows(right)
            case Combine(left=left, right=right):
                self.rows(right)
                return self.rows(left)
            case Filter(source=source) | Window(source=source) | Distinct(source=source) | PerUnit(source=source):
                return self.rows(source)
        return 1

    def _shown(self, node: Relation) -> list[int]:
        """The sizes of the columns that a stage holds: where rows are compared, those that nobody reads, too."""
        match node:
            case Distinct(source=source, columns=columns) | PerUnit(source=source, keys=columns):
                below = sizes_in(source, self.texts)
                sizes = [_size(e, below) for _, e in columns]
                more = node.aggregates if isinstance(node, PerUnit) else ()
                return sizes + [_size(inner.argument, below) for _, inner in more if inner.argument is not None]
            case Combine(left=left, right=right, of_left=of_left, of_right=of_right):
                a, b = (sizes_in(side, self.texts) for side in (left, right))
                return [max(_size(x, a), _size(y, b)) for x, y in zip(of_left, of_right, strict=True)]
        computed = sizes_in(node, self.texts)
        sizes = [_size(Column(name, kind), computed) for name, kind in _kinds(node).items() if name in self.read]
        if isinstance(node, Window):
            below = sizes_in(node.source, self.texts)
            sizes += [made(e, below) for e in dict.fromkeys(expressions_in(node))]
        return sizes

    def check(self, rows: int, sizes: Iterable[int]) -> None:
        """Raises `_TooMuch` where so many rows of these columns are beyond `HELD`."""
        row = FIXED + sum(sizes)
        if rows > 1 and rows * row > HELD:
            raise _TooMuch(
                f"one row could become {rows:,} rows, by the public rows that it meets, with up to {row:,} characters "
                f"each; at most {HELD:,} characters are made of a row. Join on a key of the public table, join fewer "
                "of its rows, or cut texts in a sub-query below the join: LEFT(x, 100)."
            )


def _size(node: Expression, below: Sizes) -> int:
    return max(FIXED, made(node, below), characters(node, below) if node.kind is Kind.TEXT else 0)


def _looked_up(leaf: PublicRelation, on: Expression | None) -> bool:
    """Whether a condition says of values of a public relation alone, and nothing else, what they are equal to."""

    def equal(term: Expression) -> bool:
        if not isinstance(term, Compare) or term.op != "=":
            return False
        a, b = ({name.partition(".")[0] == leaf.place for name in columns_of(side)} for side in (term.left, term.right))
        return (a == {True} and True not in b) or (b == {True} and True not in a)

    terms = list(_terms(on))
    return bool(terms) and all(map(equal, terms))


def _pairs(join: Join, on: Expression, below: Sizes) -> list[int]:
    """The sizes of what a semi or anti join looks at in each pair of rows: the columns that its condition reads, and
    the texts that it makes.

    Where the condition is true, a column that it sets equal to a public text is as long as that.
    """
    sizes = {column.name: _size(column, below) for column in columns_in(on)}
    leaf = join.right
    if isinstance(leaf, PublicRelation):
        for term in _terms(on):
            match term:
                case Compare(op="=", left=Column() as x, right=Column() as y):
                    x, y = (x, y) if y.name.partition(".")[0] == leaf.place else (y, x)
                    if y.name.partition(".")[0] == leaf.place:
                        sizes[x.name] = min(sizes[x.name], sizes[y.name])
    return [*sizes.values(), made(on, below)]


def _kinds(node: Relation | PublicRelation) -> dict[str, Kind]:
    """The columns of a relation, and their kinds."""
    match node:
        case Scan(place=place, columns=columns) | PublicRelation(place=place, columns=columns):
            return {f"{place}.{name}": kind for name, kind in columns.items()}
        case Filter(source=source):
            return _kinds(source)
        case Window(source=source, columns=calls):
            return _kinds(source) | {name: call.kind for name, call in calls}
        case Join(left=left, how=("semi" | "anti")):
            return _kinds(left)
        case Join(left=left, right=right):
            return _kinds(left) | _kinds(right)
        case PerUnit(keys=keys, aggregates=aggregates):
            return {name: e.kind for name, e in keys} | {name: inner.kind for name, inner in aggregates}
        case Distinct(columns=named):
            return {name: e.kind for name, e in named}
        case Combine(columns=result):
            return {c.name: c.kind for c in result}
