"""The builders: rows of a table, groups of them, and the answer about the groups.

    Rows     filter, select, with_columns, join, union, distinct, per_unit, ...     rows, as a SELECT without aggregates
    Groups   agg                                                                    a GROUP BY that waits for aggregates
    Answer   filter (HAVING), with_columns, select, order_by, limit, ...            a SELECT with aggregates

A computed column is kept as its expression and put in wherever its name stands, so that most questions are one SELECT.
Where SQL has no such form (a window function in a condition, a verb after LIMIT, an answer grouped again) what there
is becomes a sub-query.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from hubbub.errors import QueryError, what_was_given
from hubbub.moved import Moved
from hubbub.verbs import functions as f, shortcuts as everyday
from hubbub.verbs.facts import NO_FACTS, Facts
from hubbub.verbs.pandas_words import Picked, RowsOfPeople, picked
from hubbub.verbs.selection import NO_TAIL, Selection
from hubbub.verbs.terms import Term, operand, quoted
from hubbub.verbs.tree import Tail, has_window, in_place, named_terms, ordered, printed, source

if TYPE_CHECKING:
    from hubbub.answer.release import Release
    from hubbub.session.check import Check

__all__ = ["Answer", "Groups", "Rows", "rows_of"]

_JOINS: Final = {"inner": "", "left": "LEFT", "semi": "SEMI", "anti": "ANTI", "cross": "CROSS"}


class _Question:
    """What every builder can do: print itself, be checked, be asked."""

    if TYPE_CHECKING:
        session: Any

        def tree(self) -> exp.Query: ...

    def sql(self, *, pretty: bool = False) -> str:
        """The question as SQL text."""
        return printed(self.tree(), pretty=pretty)

    def check(self, **options: Any) -> Check:
        """What it would cost and how good the answer would be; takes what `Session.check` takes."""
        return self._session().check(self.sql(), **options)  # type: ignore[no-any-return]

    def run(self, **options: Any) -> Release:
        """Ask it; takes what `Session.sql` takes."""
        return self._session().sql(self.sql(), **options)  # type: ignore[no-any-return]

    def _session(self) -> Any:
        if self.session is None:
            raise QueryError("this question belongs to no session. Begin with session.table(name).")
        return self.session

    def scalar(self) -> Term:
        """A question with one number for its answer, as a term of another one."""
        return Term(exp.Subquery(this=self.tree()))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}\n{self.sql(pretty=True)}>"


def rows_of(
    session: Any,
    name: str,
    *,
    columns: Sequence[str] | None = None,
    unit: str | None = None,
    each_row: bool = False,
    declared: Mapping[str, object] | None = None,
) -> Rows:
    """All rows of a table of a session.

    columns: their names, where known. unit: the unit's column. each_row: whether each row is a unit. declared: what
    is declared of columns.
    """
    known = None if columns is None else tuple(columns)
    return Rows(session, exp.Table(this=quoted(name)), facts=Facts(known, unit, each_row, dict(declared or {})))


@dataclass(frozen=True, eq=False, repr=False)
class Rows(_Question, RowsOfPeople):
    """Rows of a table, a join, or a sub-query. Begin with `Session.table`."""

    session: Any
    origin: exp.Expr
    joins: tuple[exp.Join, ...] = ()
    conditions: tuple[exp.Expr, ...] = ()
    derived: Mapping[str, exp.Expr] = field(default_factory=dict)
    selected: tuple[str, ...] | None = None
    tail: Tail = NO_TAIL
    facts: Facts = NO_FACTS

    def tree(self) -> exp.Query:
        """The SELECT, as sqlglot's tree."""
        return self.tail.on(self._body(exp.select(*self._shown())))  # type: ignore[no-any-return]

    def _body(self, select: exp.Select) -> exp.Select:
        """A SELECT over these rows."""
        select.set("from_", exp.From(this=self.origin.copy()))
        if self.joins:
            select.set("joins", [join.copy() for join in self.joins])
        if self.conditions:
            select.set("where", exp.Where(this=_all(self.conditions)))
        return select

    def _shown(self) -> list[exp.Expr]:
        if self.selected is not None:
            return [_as(self.derived.get(n, exp.column(quoted(n))), n) for n in self.selected]
        every = self.facts.with_these(self.derived)
        if len(every) < len(self.facts.columns or ()) + len(self.derived):
            return [_as(self.derived.get(n, exp.column(quoted(n))), n) for n in every]
        return [self.facts.star(self.derived), *(_as(node, n) for n, node in self.derived.items())]

    # -- verbs ------------------------------------------------------------------------------------------------

    def filter(self, *conditions: Term) -> Rows:
        """The rows where every condition holds."""
        here = self._open(windows=True)
        nodes = [here._in_place(_condition(c)) for c in conditions]
        if has_window(nodes):
            raise QueryError("a window function cannot stand in a condition; name it first: .with_columns(x=...).")
        return replace(here, conditions=(*here.conditions, *nodes))

    def with_columns(self, *terms: object, **named: object) -> Rows:
        """The rows with further columns; a name there is already is computed anew."""
        here = self._open()
        if has_window(here.derived.values()):
            here = here._settled()
        new = {n: here._in_place(node) for n, node in named_terms(terms, named, "with_columns")}

        def kept(name: str) -> bool:
            return name in new or not any(here.facts.hides(n, name) for n in new)

        shown = None if here.selected is None else tuple(dict.fromkeys([*filter(kept, here.selected), *new]))
        old = {n: node for n, node in here.derived.items() if kept(n)}
        return replace(here, derived={**old, **new}, selected=shown)

    def select(self, *terms: object, **named: object) -> Rows:
        """These columns only."""
        chosen = named_terms(terms, named, "select")
        bare = {n for n, node in chosen if isinstance(node, exp.Column) and node.name == n and not node.table}
        here = self.with_columns(*(Term(node).alias(n) for n, node in chosen if n not in bare))
        return replace(here, selected=tuple(n for n, _ in chosen))

    def alias(self, name: str) -> Rows:
        """The same rows under a name, which `hb.col(..., table=name)` uses."""
        if self._plain() and isinstance(self.origin, exp.Table):
            return replace(self, origin=exp.alias_(self.origin, quoted(name), table=True))
        return self._settled(name)

    def join(self, other: Rows | Answer | str, *, on: object = None, how: str = "inner") -> Rows:
        """The rows beside those of another table.

        on: the name of a column that both have, several of them, or a condition (`hb.col("ward", table="visits") ==
        hb.col("ward", table="wards")`). how: inner, left, semi (rows that have a partner), anti (rows that have
        none), cross (no `on`).
        """
        if how not in _JOINS:
            raise QueryError(f"join: how={what_was_given(how)}; allowed are {', '.join(_JOINS)}.")
        if (on is None) != (how == "cross"):
            raise QueryError("join: every join but a cross join needs `on`: a column's name, names, or a condition.")
        here = self if self._plain() else self._settled()
        there: Rows = self._session().table(other) if isinstance(other, str) else _rows_given(other, "join")
        there = there if there._plain() and not there.joins else there._settled()
        joined = exp.Join(this=here._under_new_name(there.origin))
        joined.set("side" if how == "left" else "kind", _JOINS[how] or None)
        using = [] if on is None or isinstance(on, Term) else _several([on] if isinstance(on, str) else on, "join: on")
        if isinstance(on, Term):
            joined.set("on", on.node)
        elif on is not None:
            joined.set("using", [quoted(n) for n in using])
        facts = here.facts if how in ("semi", "anti") else here.facts.beside(there.facts, using)
        return replace(here, joins=(*here.joins, joined), facts=facts)

    def distinct(self) -> Rows:
        """The different rows."""
        return replace(self._open(), tail=Tail(unique=True))

    def union(self, other: Rows | Answer, *, distinct: bool = False) -> Rows:
        """These rows and those of another question with the same columns; `distinct` drops repeated ones."""
        return self._combined(exp.Union, other, distinct)

    def intersect(self, other: Rows | Answer) -> Rows:
        """The rows that stand in both."""
        return self._combined(exp.Intersect, other, True)

    def minus(self, other: Rows | Answer) -> Rows:
        """The rows that do not stand in the other."""
        return self._combined(exp.Except, other, True)

    def order_by(self, *terms: object, descending: object = False, nulls_first: object = False) -> Rows:
        """In an order; the flags are one for all terms, or one for each."""
        here = self._open()
        order = ordered(terms, descending, nulls_first)
        return replace(here, tail=Tail(tuple(here._in_place(o) for o in order)))  # type: ignore[misc]

    def limit(self, rows: int | None, *, offset: int = 0) -> Rows:
        """The first so many rows, after leaving out `offset`."""
        return replace(self, tail=self.tail.limited(rows, offset))

    # -- groups -----------------------------------------------------------------------------------------------

    def group_by(self, *keys: object, **named: object) -> Groups:
        """Groups of equal keys: columns, or terms with a name."""
        return self._groups(named_terms(keys, named, "group_by"), None)

    def rollup(self, *keys: object, **named: object) -> Groups:
        """Groups by all keys, by all but the last, and so on down to one total."""
        return self._groups(named_terms(keys, named, "rollup"), "ROLLUP")

    def cube(self, *keys: object, **named: object) -> Groups:
        """Groups by every subset of the keys."""
        return self._groups(named_terms(keys, named, "cube"), "CUBE")

    def grouping_sets(self, *sets: Sequence[object]) -> Groups:
        """Groups by each of several lists of keys."""
        lists = [named_terms(_several(s, "grouping_sets"), {}, "grouping_sets") for s in sets]
        every = dict(term for terms in lists for term in terms)
        return self._groups(list(every.items()), [tuple(n for n, _ in terms) for terms in lists])

    def agg(self, *aggregates: object, **named: object) -> Answer:
        """Aggregates over all rows."""
        return self._groups([], None).agg(*aggregates, **named)

    def per_unit(self, unit: str, *aggregates: object, **named: object) -> Rows:
        """One row for each unit, with aggregates of the unit's own rows."""
        return self.group_by(unit).agg(*aggregates, **named)._as_rows()

    def _groups(self, keys: list[tuple[str, exp.Expr]], form: object) -> Groups:
        here = self._open(windows=True)
        return Groups(here, tuple((n, here._in_place(node)) for n, node in keys), form)

    groupby = group_by

    def __getitem__(self, column: str) -> Picked:
        """One column, for its aggregates: `rows["age"].mean()`."""
        return picked(self, column)

    def count(self) -> Answer:
        """How many rows there are."""
        return self.agg(f.count())

    # -- everyday questions -----------------------------------------------------------------------------------

    def value_counts(self, *columns: str) -> Answer:
        """How many rows have each value, the most frequent first."""
        counted: Answer = self.group_by(*columns).agg(f.count()).order_by("count", descending=True)
        return counted

    def crosstab(self, first: object, second: object) -> Answer:
        """How many rows have each pair of values."""
        return self.group_by(first, second).agg(f.count())

    def hist(self, column: str, edges: Sequence[object]) -> Answer:
        """How many rows fall between each two edges: half-open, the last one closed; others are left out.

        Raises QueryError for fewer than two edges, or edges out of order.
        """
        return everyday.hist(self, column, edges)

    def describe(self, *columns: str) -> Answer:
        """Count, mean, standard deviation, and the five quartiles of columns; by default, all with declared bounds.

        Raises QueryError where no column has any.
        """
        return everyday.describe(self, columns)

    # -- sub-queries ------------------------------------------------------------------------------------------

    def _as_rows(self) -> Rows:
        return self

    def _plain(self) -> bool:
        """Whether these are just the rows of FROM."""
        return not (self.conditions or self.derived or self.selected is not None or self.tail)

    def _under_new_name(self, origin: exp.Expr) -> exp.Expr:
        """An item of FROM under a name that no other one here has."""
        taken = {item.alias_or_name.lower() for item in (self.origin, *(j.this for j in self.joins))}
        name = origin.alias_or_name
        if name.lower() not in taken:
            return origin.copy()
        free = next(n for i in itertools.count(2) if (n := f"{name}_{i}").lower() not in taken)
        renamed = origin.copy()
        renamed.set("alias", exp.TableAlias(this=quoted(free)))
        return renamed

    def _in_place(self, node: exp.Expr) -> exp.Expr:
        """A node with the names of computed columns replaced by what they mean."""
        return in_place(node, self.derived, self.facts.hides)

    def _open(self, *, windows: bool = False) -> Rows:
        """These rows, as a sub-query where a verb cannot be added; `windows`: where computed columns hold windows."""
        shut = self.tail or (windows and has_window(self.derived.values()))
        return self._settled() if shut else self

    def _settled(self, alias: str | None = None) -> Rows:
        name = alias or self.origin.alias_or_name or "rows"
        return Rows(self.session, source(self.tree(), name), facts=self.facts.settled(self.derived, self.selected))

    def _combined(self, kind: type[exp.SetOperation], other: Rows | Answer, distinct: bool) -> Rows:
        what = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "minus"}[kind]
        own, those = self._settled().facts.columns, _rows_given(other, what)
        order = Facts(own).order_of(those._settled().facts.columns)
        those = those if order is None else those.select(*order)
        both = kind(this=_operand(self), expression=_operand(those), distinct=distinct)
        return Rows(self.session, source(both, self.origin.alias_or_name or "rows"), facts=self._settled().facts)


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups that wait for their aggregates."""

    rows: Rows
    keys: tuple[tuple[str, exp.Expr], ...]
    form: object = None

    def __getitem__(self, column: str) -> Picked:
        """One column, for its aggregates: `groups["age"].mean()`."""
        return picked(self, column)

    def count(self) -> Answer:
        """How many rows each group has."""
        return self.agg(f.count())

    def agg(self, *aggregates: object, **named: object) -> Answer:
        """Aggregates of each group: `hb.count()`, `hb.mean("age")`, or terms of them."""
        terms = named_terms(aggregates, named, "agg")
        if not terms:
            raise QueryError("agg: name at least one aggregate, such as hb.count().")
        taken = {n.lower() for n, _ in self.keys} & {n.lower() for n, _ in terms}
        if taken:
            raise QueryError(f"agg: {sorted(taken)[0]!r} is a key. Rename the aggregate: .alias('name').")
        nodes = {n: self._with_unit(self.rows._in_place(node)) for n, node in terms}
        return Answer(self, Selection({**{n: node.copy() for n, node in self.keys}, **nodes}))

    def terms(self) -> list[exp.Expr]:
        """The terms of GROUP BY."""
        nodes = dict(self.keys)
        every = [node.copy() for node in nodes.values()]
        if self.form == "ROLLUP":
            return [exp.Rollup(expressions=every)]
        if self.form == "CUBE":
            return [exp.Cube(expressions=every)]
        if isinstance(self.form, list):
            sets = [exp.Tuple(expressions=[nodes[n].copy() for n in names]) for names in self.form]
            return [exp.GroupingSets(expressions=sets)]
        return every

    def _with_unit(self, node: exp.Expr) -> exp.Expr:
        """`hb.units()` with the column of the table's unit."""
        facts = self.rows.facts
        counts = [c for c in node.find_all(exp.Count) if _names_the_unit(c)]
        if counts and facts.unit is None and not facts.each_row:
            raise QueryError("units: the unit's column is not known here. Name it: hb.units('patient_id').")

        def known(node: exp.Expr) -> exp.Expr:
            if facts.each_row and _names_the_unit(node):
                return exp.Count(this=exp.Star())
            if isinstance(node, exp.Column) and node.name == f.THE_UNIT and facts.unit is not None:
                return exp.column(quoted(facts.unit))
            return node

        return node.transform(known) if counts else node


@dataclass(frozen=True, eq=False, repr=False)
class Answer(_Question, Moved):
    """An answer: keys and aggregates of groups, chosen among and computed with."""

    _moved = {"rows": "groups.rows"} | {n: f"selection.{n}" for n in ("columns", "having", "names", "shown", "tail")}

    groups: Groups
    selection: Selection

    @property
    def session(self) -> Any:
        return self.groups.rows.session

    def tree(self) -> exp.Query:
        """The SELECT, as sqlglot's tree."""
        chosen = self.selection
        tree = self.groups.rows._body(exp.select(*(_as(chosen.columns[n], n) for n in chosen.names())))
        keys = self.groups.terms()
        if keys:
            tree.set("group", exp.Group(expressions=keys))
        if chosen.having:
            tree.set("having", exp.Having(this=_all(chosen.having)))
        return chosen.tail.on(tree)  # type: ignore[no-any-return]

    def filter(self, *conditions: Term) -> Any:
        """The rows of the answer where every condition holds: HAVING."""
        nodes = [self._meant(_condition(c)) for c in conditions]
        if self.selection.tail or has_window(nodes):
            return self._as_rows().filter(*conditions)
        return self._with(having=(*self.selection.having, *nodes))

    def with_columns(self, *terms: object, **named: object) -> Any:
        """The answer with further columns, computed from it."""
        if self.selection.tail:
            return self._as_rows().with_columns(*terms, **named)
        new = {n: self._meant(node) for n, node in named_terms(terms, named, "with_columns")}
        shown = self.selection.shown
        shown = None if shown is None else tuple(dict.fromkeys([*shown, *new]))
        return self._with(columns={**self.selection.columns, **new}, shown=shown)

    def select(self, *terms: object, **named: object) -> Any:
        """These columns of the answer only."""
        if self.selection.tail:
            return self._as_rows().select(*terms, **named)
        chosen = named_terms(terms, named, "select")
        new = {n: self._meant(node) for n, node in chosen}
        return self._with(columns={**self.selection.columns, **new}, shown=tuple(new))

    def order_by(self, *terms: object, descending: object = False, nulls_first: object = False) -> Any:
        """In an order; the flags are one for all terms, or one for each."""
        if self.selection.tail:
            return self._as_rows().order_by(*terms, descending=descending, nulls_first=nulls_first)
        names = self.selection.names()
        hidden = {n: node for n, node in self.selection.columns.items() if n not in names}
        order = [in_place(o, hidden) for o in ordered(terms, descending, nulls_first)]
        return self._with(tail=Tail(tuple(order)))  # type: ignore[arg-type]

    def limit(self, rows: int | None, *, offset: int = 0) -> Answer:
        """The first so many rows, after leaving out `offset`."""
        return self._with(tail=self.selection.tail.limited(rows, offset))

    def _with(self, **changes: Any) -> Answer:
        return replace(self, selection=replace(self.selection, **changes))

    def alias(self, name: str) -> Rows:
        """The answer as rows under a name, which `hb.col(..., table=name)` uses."""
        return self._as_rows(name)

    def join(self, other: Rows | Answer | str, *, on: object = None, how: str = "inner") -> Rows:
        """The answer beside another one, or a public table; takes what `Rows.join` takes."""
        return self._as_rows().join(other, on=on, how=how)

    def union(self, other: Rows | Answer, *, distinct: bool = False) -> Rows:
        """The rows of both answers."""
        return self._as_rows().union(other, distinct=distinct)

    def distinct(self) -> Rows:
        """The different rows of the answer."""
        return self._as_rows().distinct()

    def group_by(self, *keys: object, **named: object) -> Groups:
        """Groups of the answer's rows."""
        return self._as_rows().group_by(*keys, **named)

    def agg(self, *aggregates: object, **named: object) -> Answer:
        """Aggregates over the answer's rows."""
        return self._as_rows().agg(*aggregates, **named)

    groupby = group_by

    def _meant(self, node: exp.Expr) -> exp.Expr:
        return self.groups._with_unit(in_place(node, self.selection.columns))

    def _as_rows(self, alias: str | None = None) -> Rows:
        # A key that is the unit's column keeps being it: these are then rows of units again.
        facts = self.groups.rows.facts
        kept = facts.unit is not None and any(
            n == facts.unit and isinstance(node, exp.Column) and node.name == n for n, node in self.groups.keys
        )
        return Rows(
            self.session,
            source(self.tree(), alias or "answer"),
            facts=Facts(self.selection.names(), facts.unit if kept else None),
        )


def _as(node: exp.Expr, name: str) -> exp.Expr:
    """A column of SELECT; a bare column of that name needs no alias."""
    if isinstance(node, exp.Column) and node.name == name and not node.table:
        return node.copy()
    return exp.alias_(node.copy(), quoted(name))


def _operand(rows: Rows) -> exp.Expr:
    """A side of UNION: in parentheses where it has an end of its own."""
    if rows.selected is None and rows.facts.star(rows.derived).args.get("except_"):
        # By position: what is computed anew stands where it stood, or two columns of one name are refused.
        rows = replace(rows, selected=replace(rows.facts, columns=rows.facts.names).with_these(rows.derived))
    tree = rows.tree()
    return exp.Subquery(this=tree) if rows.tail.written_last else tree


def _rows_given(other: object, what: str) -> Rows:
    if not isinstance(other, Rows | Answer):
        raise QueryError(
            f"{what} takes another question, such as session.table('visits'); found {type(other).__name__}. Nothing "
            "was charged."
        )
    return other._as_rows()


def _several(values: object, what: str) -> list[Any]:
    """The members of a list, of which a text is none."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise QueryError(
            f"{what} takes lists of columns, such as ['ward', 'sex']; found {type(values).__name__}. Nothing was "
            "charged."
        )
    return list(values)


def _condition(term: object) -> exp.Expr:
    if not isinstance(term, Term):
        raise QueryError(f"filter takes conditions, such as hb.col('age') > 65; found {type(term).__name__}.")
    return term.node


def _all(conditions: Sequence[exp.Expr]) -> exp.Expr:
    """The conjunction of conditions."""
    if len(conditions) == 1:
        return conditions[0].copy()
    every = operand(Term(conditions[0].copy()))
    for condition in conditions[1:]:
        every = exp.And(this=every, expression=operand(Term(condition.copy())))
    return every


def _names_the_unit(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, exp.Count) else None
    operand = inner.expressions[0] if isinstance(inner, exp.Distinct) and inner.expressions else None
    return isinstance(operand, exp.Column) and operand.name == f.THE_UNIT
