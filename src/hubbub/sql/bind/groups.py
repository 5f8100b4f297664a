"""GROUP BY of a private aggregate: its keys, the groups that are known of each, and the groupings that are answered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from hubbub.remedies import Rewrite
from hubbub.sql.bind.from_ import Rows
from hubbub.sql.bind.group_by import group_term, has_aggregate
from hubbub.sql.bind.scope import find_name
from hubbub.sql.text.locate import in_place
from hubbub.sql.text.repairs import behind_word
from hubbub.tables.aggregate_query import Key
from hubbub.tables.expressions import Expression, columns_in, columns_of
from hubbub.tables.groups import fitted, grouped
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import declared_in, names_read

__all__ = ["Groups", "read_groups"]

MAX_SETS: Final = 64
_LEFT_JOIN: Final = "a public table LEFT JOIN people's rows is for GROUP BY on its columns."


@dataclass
class Groups:
    """The keys of a SELECT, each as it was written and under the name it has, and the groupings: sets of keys."""

    rows: Rows
    node: exp.Select
    keys: list[Key] = field(default_factory=list)
    written: list[Expression] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    sets: tuple[tuple[int, ...], ...] = ((),)

    @property
    def wide(self) -> bool:
        """Whether there are several groupings."""
        return len(self.sets) > 1

    def of(self, term: exp.Expr) -> tuple[int, ...]:
        """The numbers of a term's keys: of one, or of several in parentheses."""
        if isinstance(term, exp.Tuple):
            return tuple(dict.fromkeys(self._number(t) for t in term.expressions))
        return (self._number(term.this if isinstance(term, exp.Paren) else term),)

    def _number(self, term: exp.Expr) -> int:
        """The number of a key, which is new unless the same was written before."""
        refuse = self.rows.reader.refuse
        written = group_term(self.rows, term, self.node)
        read = self.rows.expressions().read(written)
        if read in self.written:
            return self.written.index(read)
        if not columns_in(read):
            scope, text = self.rows.scope, self.rows.reader.text
            name = written.name if isinstance(written, exp.Literal) and written.is_string else ""
            there = name and scope.knows(exp.column(name, quoted=True))
            ways = (in_place(exp.to_identifier(name).sql(), text, written),) if there else ()
            hint = "".join(f" Names stand without quotes, or in double ones: {way.example}." for way in ways)
            raise refuse(f"GROUP BY needs a column; this is the same for every row.{hint}", term, remedy=ways)
        if read.kind is Kind.OTHER or read.kind is Kind.NULL:
            raise refuse("GROUP BY needs a column of a known type.", term)
        names = self.rows.scope.names_of(read)
        if isinstance(written, exp.Column) and written.name.lower() not in map(str.lower, (*names, *self.names)):
            names = [written.name]  # of two columns called so, the one that the analyst named by its table
        names = names or [i.alias for i in self.node.expressions if isinstance(i, exp.Alias) and i.this == written]
        self.written.append(read)
        self.names.append(names[0] if names else "")
        self.keys.append(self._key(read, self.names[-1], term))
        return len(self.keys) - 1

    def _key(self, read: Expression, name: str, term: exp.Expr) -> Key:
        """A key, with the groups that a declaration or the question gives it."""
        relation = self.rows.relation
        declared = declared_in(relation, names_read(relation) | columns_of(read))
        key = grouped(read, declared)
        given = find_name(name, self.rows.reader.keys) if name else None
        columns = columns_in(read)
        if given is None and len(columns) == 1:
            given = find_name(columns[0].called, self.rows.reader.keys)  # by the column that the key is made of
        if given is None:
            return key
        self.rows.reader.keys_read.add(given)
        name = name or given
        kind = Key(read).kind
        values = tuple(dict.fromkeys(fitted(v, kind, name) for v in self.rows.reader.keys[given]))  # type: ignore[arg-type]
        return Key(read, values)

    def all_of(self, place: str) -> bool:
        """Whether every key is of columns of one relation, and there is one."""
        names = frozenset[str]().union(*(columns_of(e) for e in self.written))
        return bool(names) and all(n.partition(".")[0] == place for n in names)


def read_groups(rows: Rows, node: exp.Select) -> Groups:
    """The keys of GROUP BY, and the groupings that are answered.

    Raises QueryError for what is not a key, and for too many groupings.
    """
    reader, group = rows.reader, node.args.get("group")
    groups = Groups(rows, node)
    if group is None:
        if rows.kept is not None:
            raise reader.refuse(_LEFT_JOIN, node, remedy=Rewrite("GROUP BY"))
        return groups
    terms = _terms(node, group)
    if group.args.get("totals"):
        raise reader.refuse("WITH TOTALS is not supported; use ROLLUP.", group, remedy=Rewrite("ROLLUP"))
    plain = [t for t in terms if not isinstance(t, exp.Rollup | exp.Cube | exp.GroupingSets)]
    expanded = [_groupings(groups, t) for t in terms if isinstance(t, exp.Rollup | exp.Cube | exp.GroupingSets)]
    sets = [tuple(sorted(_joined([groups.of(t) for t in plain])))]
    repeated = False
    for more, again in expanded:
        # One after the other: CUBE (a, a, ...) is of few groupings and of very many combinations.
        combined = len(sets) * len(more)
        sets = _distinct((one, other) for one in sets for other in more)
        repeated = repeated or again or len(sets) < combined
        if len(sets) > MAX_SETS:
            raise reader.refuse(f"{len(sets)} groupings in one question; at most {MAX_SETS} are answered.", group)
    if repeated and group.args.get("all") is not False:  # which is how the parser reads GROUP BY DISTINCT
        once = behind_word(reader.text, "GROUP BY", "DISTINCT")
        raise reader.refuse(
            f"one grouping is listed twice here, and SQL answers it twice. If it is wanted once, write {once.example}.",
            group,
            word="GROUP BY",
            remedy=once,
        )
    if rows.kept is not None and not groups.all_of(rows.kept.place):
        raise reader.refuse(_LEFT_JOIN, group, remedy=Rewrite("GROUP BY"))
    groups.sets = tuple(sets)
    return groups


def _terms(node: exp.Select, group: exp.Group) -> list[exp.Expr]:
    """The terms of GROUP BY; `a, b WITH ROLLUP` is ROLLUP (a, b)."""
    terms = list(group.expressions)
    if group.args.get("all") and not terms:
        terms = [i.unalias() for i in node.expressions if not has_aggregate(i)]
    for name in ("rollup", "cube", "grouping_sets"):
        for term in group.args.get(name) or []:
            terms = [*terms, term] if term.expressions else [type(term)(expressions=terms)]
    return terms


def _groupings(groups: Groups, term: exp.Rollup | exp.Cube | exp.GroupingSets) -> tuple[list[tuple[int, ...]], bool]:
    """The sets of keys that ROLLUP, CUBE or GROUPING SETS stands for, once each, and whether one stands there twice."""
    parts = [groups.of(t) for t in term.expressions]
    if isinstance(term, exp.Cube):
        return _cube(parts)
    listed = [_joined(parts[:i]) for i in range(len(parts), -1, -1)] if isinstance(term, exp.Rollup) else parts
    sets = _distinct((one, ()) for one in listed)
    return sets, len(sets) < len(listed)


def _cube(parts: list[tuple[int, ...]]) -> tuple[list[tuple[int, ...]], bool]:
    """The unions of parts, those of more parts first; of so many that they are refused, only a few more than that.
    And whether two are the same.
    """
    sets: list[tuple[int, ...]] = [()]
    repeated = False
    for part in parts:
        before = len(sets)
        sets = _distinct((one, other) for one in sets for other in ((), part))
        repeated = repeated or len(sets) < 2 * before
        if len(sets) > MAX_SETS:
            return sets, repeated
    held = {one: [i for i, part in enumerate(parts) if set(part) <= set(one)] for one in sets}
    return sorted(sets, key=lambda one: (-len(held[one]), held[one])), repeated


def _distinct(pairs: Iterable[tuple[tuple[int, ...], tuple[int, ...]]]) -> list[tuple[int, ...]]:
    """The union of each pair, once each."""
    return list(dict.fromkeys(tuple(sorted({*one, *other})) for one, other in pairs))


def _joined(parts: object) -> tuple[int, ...]:
    return tuple(dict.fromkeys(i for part in parts for i in part))  # type: ignore[attr-defined]
