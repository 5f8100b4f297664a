"""From a statement's tree to owned relations below, private aggregates between, and ordinary SQL above.

Every query in the statement is resolved to one of two things. Either its rows belong to units (`PrivateRelation`). Or
everything it reads is public or released, so it stays what it is, SQL of the user's own, to be run on releases alone
(`PublicQuery`). A SELECT with aggregates over an owned FROM is where one becomes the other: a private aggregate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from hubbub.errors import InternalError, QueryError
from hubbub.remedies import CorrectName, DeclareType, Remedy
from hubbub.spelling import meant_by
from hubbub.sql.bind.renumber import renumbered
from hubbub.sql.bind.scope import Catalog, PublicSide, TableInfo, did_you_mean, find_name, meant
from hubbub.sql.bind.zoned import Moments
from hubbub.sql.text.locate import refuse
from hubbub.sql.text.repairs import kept_names, without_word
from hubbub.tables.aggregate_query import AggregateQuery, Output
from hubbub.tables.declare import EACH_ROW, PrivateTable
from hubbub.tables.expressions import Expression
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import Path, PublicRelation, Relation, Scan, scans

__all__ = ["Cte", "PrivateRelation", "PublicQuery", "Reader"]

MAX_QUERIES = 200


@dataclass(frozen=True)
class PrivateRelation:
    """A query whose rows belong to units: a relation, and its visible columns in order."""

    relation: Relation
    columns: Mapping[str, Expression]


@dataclass(frozen=True)
class PublicQuery:
    """A query over public and released tables: its tree, ready to print.

    outputs: its columns, where it is itself one private aggregate; rowwise: and the expressions, beside the tree, that
    compute them row by row from that aggregate's release.
    """

    tree: exp.Query
    outputs: tuple[Output, ...] | None = None
    rowwise: exp.Select | None = None


@dataclass
class Cte:
    """A named query of WITH: its tree, the names around it, and, if it is outer, its name in the outer part."""

    alias: exp.TableAlias
    query: exp.Query
    around: dict[str, Cte]
    name: str | None = None
    resolving: bool = False


def _no_query(reader: Reader, node: exp.Expr, ctes: dict[str, Cte]) -> PrivateRelation | PublicQuery:
    raise InternalError("this reader looks up tables alone")


@dataclass
class Reader:
    """Reads one statement. What it finds is gathered here: questions, and the outer queries of WITH.

    weight: the column that rows count by, if the question says one. select, set_operation: what reads a query, which
    reads its sub-queries by `resolve`. `hubbub.sql.bind.query` ties that knot; without it tables alone can be looked
    up.
    """

    text: str
    catalog: Catalog
    public: PublicSide | None
    keys: dict[str, tuple[object, ...]] = field(default_factory=dict)
    weight: str | None = None
    keys_read: set[str] = field(default_factory=set)
    questions: list[AggregateQuery] = field(default_factory=list)
    common: list[exp.CTE] = field(default_factory=list)
    moments: dict[str, Moments] = field(default_factory=dict)
    select: Callable[[Reader, exp.Select, dict[str, Cte]], PrivateRelation | PublicQuery] = _no_query
    set_operation: Callable[[Reader, exp.SetOperation, dict[str, Cte]], PrivateRelation | PublicQuery] = _no_query
    _places: int = field(default=0, init=False)
    _queries: int = field(default=0, init=False)

    def refuse(
        self,
        message: str,
        node: exp.Expr | None,
        word: str | None = None,
        *,
        remedy: Remedy | Sequence[Remedy] = (),
    ) -> QueryError:
        return refuse(message, self.text, node, word=word, remedy=remedy)

    def place(self, letter: str) -> str:
        """A name for a node of the relation that no other has."""
        self._places += 1
        return f"{letter}{self._places}"

    # -- resolving ------------------------------------------------------------------------------------------

    def resolve(self, node: exp.Expr, ctes: dict[str, Cte]) -> PrivateRelation | PublicQuery:
        """What a query is.

        Raises QueryError for whatever breaks ownership, or is not on the allow-list.
        """
        self._queries += 1
        if self._queries > MAX_QUERIES:
            raise QueryError(f"the statement holds more than {MAX_QUERIES} queries; write it shorter.")
        if isinstance(node, exp.Subquery):
            self._only_alias(node)
            return self.resolve(node.this, ctes)
        if isinstance(node, exp.Paren):
            return self.resolve(node.this, ctes)
        ctes = self._with(node, ctes)
        if isinstance(node, exp.SetOperation):
            return self.set_operation(self, node, ctes)
        if isinstance(node, exp.Select):
            return self.select(self, node, ctes)
        raise self.refuse(f"{node.key.upper()} is not supported; ask a SELECT.", node, word=node.key)

    def _only_alias(self, node: exp.Subquery) -> None:
        for name, value in node.args.items():
            if value and name not in ("this", "alias", "with_"):
                raise self.refuse(f"{name.strip('_').upper()} is not supported on a sub-query here.", node)

    def _with(self, node: exp.Expr, ctes: dict[str, Cte]) -> dict[str, Cte]:
        """The names that WITH adds."""
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        if clause.args.get("recursive"):
            plain = () if any(map(_reads_itself, clause.expressions)) else without_word(self.text, "RECURSIVE")
            hint = "".join(f" Here nothing recurs: write {way.example}." for way in plain)
            raise self.refuse(f"WITH RECURSIVE is not supported.{hint}", clause, word="RECURSIVE", remedy=plain)
        names = dict(ctes)
        for cte in clause.expressions:
            before = names.get(cte.alias.lower())
            again = before is not None and before is not ctes.get(cte.alias.lower())
            keyed = bool(cte.args.get("key_expressions"))
            if again or keyed or not isinstance(cte.this, exp.Query):
                what = f"names two queries {cte.alias!r}; rename one" if again else "takes queries, without USING KEY"
                raise self.refuse(f"WITH {what}.", cte)
            names[cte.alias.lower()] = Cte(cte.args["alias"], cte.this, dict(names))
        return names

    def named(self, table: exp.Table, ctes: dict[str, Cte]) -> PrivateRelation | PublicQuery | Scan | str:
        """What a table's name stands for: a query of WITH, a declared private table, or (a name) a public one."""
        cte = ctes.get(table.name.lower()) if not table.args.get("db") else None
        if cte is not None:
            return self._common(cte, table)
        name = find_name(table.name, self.catalog)
        if name is None:
            known = [*ctes, *self.catalog]
            raise self.refuse(
                f"unknown table {table.name!r}. {did_you_mean(table.name, known)}",
                table,
                remedy=meant(table.name, known, self.text, table.this),
            )
        return self.scan(name, table) if self.catalog[name].private else name

    def _common(self, cte: Cte, table: exp.Table) -> PrivateRelation | PublicQuery:
        if cte.name is not None:
            return PublicQuery(everything(cte.name))
        if cte.resolving:
            raise self.refuse("WITH RECURSIVE is not supported.", table)
        cte.resolving = True
        relation = self.resolve(cte.query.copy(), cte.around)
        cte.resolving = False
        names = [c.name for c in cte.alias.args.get("columns") or ()]
        if isinstance(relation, PrivateRelation):
            return renamed(self, relation, names, table)
        cte.name = f"with{len(self.common)}"
        columns = [exp.to_identifier(name, quoted=True) for name in names]
        alias = exp.TableAlias(this=exp.to_identifier(cte.name, quoted=True), columns=columns)
        self.common.append(exp.CTE(this=relation.tree, alias=alias))
        return PublicQuery(everything(cte.name))

    # -- the leaves -----------------------------------------------------------------------------------------

    def scan(self, name: str, node: exp.Expr | None) -> Scan:
        """The owned rows of a declared table."""
        info = self.catalog[name]
        table = info.declaration
        path = self._path(name, table, node) if table.path is not None else None
        return Scan(
            place=self.place("t"),
            table=name,
            columns=info.columns,
            declared=table.columns,
            limits=table.limits,
            space=path.scan.space if path is not None and table.unit_space is None else table.space,
            neighbours=table.neighbours,
            unit=info.unit if path is None and table.unit is not EACH_ROW else None,
            path=path,
            unit_type=info.unit_type if path is None else path.scan.unit_type,
        )

    def _path(self, name: str, table: PrivateTable, node: exp.Expr | None) -> Path:
        assert table.path is not None
        own, other, key, _ = table.path
        spelled = find_name(other, self.catalog)
        if spelled is None or not self.catalog[spelled].private:
            raise self.refuse(f"the unit of {name!r} stands in {other!r}, which is not a private table here.", node)
        scan = self.scan(spelled, node)
        if scan.each_row:
            raise self.refuse(
                f"the unit of {name!r} stands in {other!r}, where each row is a unit without a name.", node
            )
        columns = self.catalog[name].columns
        own_name, key_name = find_name(own, columns), find_name(key, scan.columns)
        if own_name is None or key_name is None:
            ways = []
            if key_name is not None or own_name is not None:  # of two slips neither is one alone
                slips = (own, columns) if own_name is None else (key, scan.columns)
                near = meant_by(*slips)
                ways = [] if near is None else [CorrectName(near, slips[0], name, key=own_name is not None)]
            hint = "".join(f" Write {way.in_python()}." for way in ways)
            raise self.refuse(
                f"the unit of {name!r} is reached by {own!r} = {other}.{key}: no such column.{hint}", node, remedy=ways
            )
        if columns[own_name] is not scan.columns[key_name] or columns[own_name] is Kind.OTHER:
            # Keys of texts stay as they are: '7' and '07' would be one key of two people.
            fits = columns[own_name] is Kind.TEXT and scan.columns[key_name] is Kind.INTEGER
            whole = [DeclareType(own_name, Kind.INTEGER.value, name)] if fits else []
            hint = "".join(f" Declare {way.in_python()}." for way in whole)
            raise self.refuse(
                f"the unit of {name!r}: {own!r} and {other}.{key} hold values of two types.{hint}", node, remedy=whole
            )
        return Path(own_name, spelled, key_name, scan)

    def leaf(self, tree: exp.Query, node: exp.Expr) -> PublicRelation:
        """A query over public and released tables, as a relation to join owned rows with."""
        full = self.with_common(tree)
        sql = printed(full)
        tables = public_tables(self, full)
        released = tuple(sorted({int(t.name[8:]) for t in full.find_all(exp.Table) if is_release(t.name)}))
        if self.public is None:
            clause = tree.args.get("from_") if isinstance(tree, exp.Select) else None
            source = clause.this if clause is not None else None
            if not isinstance(source, exp.Table) or source.name not in self.catalog:
                raise self.refuse("public sub-queries cannot be read here.", node)
            columns: dict[str, Kind] = dict(self.catalog[source.name].columns)
        else:
            columns = self.public.describe(sql, tables, self.schemas())
        public = self.public

        def values(column: str) -> tuple[object, ...] | None:
            return None if released or public is None else public.values(sql, tables, column)

        def unique(names: tuple[str, ...]) -> bool:
            return not released and public is not None and public.unique(sql, tables, names)

        def most(names: tuple[tuple[str, Kind], ...]) -> int | None:
            return None if released or public is None else public.most(sql, tables, names)

        def longest(column: str) -> int | None:
            return None if released or public is None else public.longest(sql, tables, column)

        return PublicRelation(self.place("p"), sql, tables, released, columns, values, unique, most, longest)

    def with_common(self, tree: exp.Query) -> exp.Query:
        """A tree under the outer queries of WITH that were read so far."""
        tree = tree.copy()
        if self.common and any(t.name.startswith("with") for t in tree.find_all(exp.Table)):
            tree.set("with_", exp.With(expressions=[c.copy() for c in self.common]))
        return tree

    def schemas(self) -> dict[str, dict[str, Kind]]:
        """The columns of each question's release."""
        schemas = {}
        for i, question in enumerate(self.questions):
            columns = {f"k{j}": key.kind for j, key in enumerate(question.keys)}
            columns |= {f"a{j}": a.kind for j, a in enumerate(question.aggregates)}
            if len(question.sets) > 1:
                columns |= {f"g{j}": Kind.INTEGER for j in range(len(question.keys))}
            schemas[f"released{i}"] = columns | {"place": Kind.INTEGER}
        return schemas

    def ask(self, question: AggregateQuery) -> tuple[int, list[int]]:
        """The number of a question, and where each of its aggregates stands in it. What is asked twice is one."""
        question = renumbered(question)
        same = [
            q
            for q in self.questions
            if (q.relation, q.keys, q.sets) == (question.relation, question.keys, question.sets)
        ]
        known = same[0] if same else question
        i = self.questions.index(known) if same else len(self.questions)
        if not same:
            self.questions.append(question)
        every = tuple(dict.fromkeys((*known.aggregates, *question.aggregates)))
        self.questions[i] = replace(known, aggregates=every)
        places = {a: at for at, a in enumerate(every)}
        return i, [places[a] for a in question.aggregates]


def renamed(reader: Reader, relation: PrivateRelation, names: list[str], node: exp.Expr) -> PrivateRelation:
    """An owned query under the names of `AS t(a, b)`."""
    if not names:
        return relation
    if len(names) > len(relation.columns):
        raise too_many_names(reader, len(names), len(relation.columns), node)
    return PrivateRelation(relation.relation, under_names(names, relation.columns))


def same_units(reader: Reader, left: Relation, right: Relation, node: exp.Expr) -> None:
    """Raises QueryError where the owners of two relations cannot be compared."""
    a, b = scans(left)[0], scans(right)[0]
    if a.space != b.space:
        raise reader.refuse(
            f"{a.table!r} and {b.table!r} protect different people ({a.table!r} is of the unit space {a.space!r}, "
            f"{b.table!r} of {b.space!r}) and cannot be joined: a row would belong to two. Ask each on its own. "
            "Tables about the same people are declared with one unit_space.",
            node,
        )
    if a.neighbours != b.neighbours:
        raise reader.refuse(f"{a.table!r} and {b.table!r} are declared with different neighbours.", node)
    if a.unit_type != b.unit_type:
        raise reader.refuse(
            f"the units of {a.table!r} are of type {a.unit_type}, those of {b.table!r} {b.unit_type}: to compare "
            "them would need a cast that could make two people one. Store them in one type.",
            node,
        )


def too_many_names(reader: Reader, given: int, there: int, node: exp.Expr) -> QueryError:
    """What refuses `AS t(a, b, c)` of fewer columns."""
    alias = node.args.get("alias") or exp.TableAlias()
    listed = alias.args.get("columns") or ()
    ways = kept_names(reader.text, listed, there) if len(listed) == given else ()
    hint = "".join(f": write ({way.example})" for way in ways)
    return reader.refuse(f"{given} names for {there} columns{hint}.", node, remedy=ways)


def under_names(names: Sequence[str], columns: Mapping[str, Expression]) -> dict[str, Expression]:
    """Columns of which the first have other names. Of two that are called n then the later one is n_1, as in DuckDB."""
    called: dict[str, Expression] = {}
    for name, column in zip((*names, *list(columns)[len(names) :]), columns.values(), strict=True):
        unique, i = name, 1
        while find_name(unique, called) is not None:
            unique, i = f"{name}_{i}", i + 1
        called[unique] = column
    return called


def _reads_itself(cte: exp.Expr) -> bool:
    return any(table.name.lower() == cte.alias.lower() for table in cte.this.find_all(exp.Table))


def everything(name: str) -> exp.Select:
    """SELECT * of a table."""
    return exp.select("*").from_(exp.Table(this=exp.to_identifier(name, quoted=True)))


def is_release(name: str) -> bool:
    return name.startswith("released") and name[8:].isdigit()


def printed(tree: exp.Expr, *, last: bool = False) -> str:
    """A tree as DuckDB's SQL, every name quoted, comments left out. last: nobody looks at the tree again; to print it
    changes it, so that it is copied else."""
    return tree.sql(dialect="duckdb", identify=True, comments=False, copy=not last)


def public_tables(reader: Reader, full: exp.Expr) -> tuple[str, ...]:
    """The public tables of a text that is to run outside, in order.

    Raises QueryError if a private one is left in it: a SELECT that stands where nobody has looked for one, as in
    `SUBSTR (SELECT ...)`.
    """
    tables = sorted({t.name for t in full.find_all(exp.Table) if t.name in reader.catalog})
    for name in tables:
        if reader.catalog[name].private:
            raise reader.refuse(
                f"a sub-query of {name!r} stands where none is read; put it into brackets of its own, or ask its "
                "question on its own.",
                None,
            )
    return tuple(tables)


__all__ += [
    "TableInfo",
    "everything",
    "is_release",
    "printed",
    "public_tables",
    "renamed",
    "same_units",
    "too_many_names",
    "under_names",
]
