"""One SQL statement to a question, through an allow-list.

    SELECT key | COUNT(*) | COUNT(x) | COUNT(DISTINCT unit) | SUM(x) | AVG(x) | an expression of these, ...
    FROM table [WHERE condition] [GROUP BY expression of columns with declared values, ...]
    [HAVING condition on the answer] [ORDER BY columns of the answer] [LIMIT n [OFFSET m]]

A statement whose tables are all public is answered exactly, by any SELECT, in an engine that holds public tables
only. Everything else is refused before anything is read or charged.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hubbub.errors import QueryError
from hubbub.sql.arguments import unread
from hubbub.sql.locate import caret, refuse
from hubbub.sql.read_expression import ExpressionReader
from hubbub.tables.expressions import Column, Expression, columns_in
from hubbub.tables.kinds import Kind
from hubbub.tables.question import Aggregate, Function, Key, Order, Output, Question

__all__ = ["Catalog", "PublicQuestion", "TableInfo", "did_you_mean", "parse"]

MAX_TEXT = 100_000


@dataclass(frozen=True)
class TableInfo:
    """What the reader may know of a table: its columns, and the unit column of a private one."""

    columns: Mapping[str, Kind]
    private: bool
    unit: str | None = None


Catalog = Mapping[str, TableInfo]


@dataclass(frozen=True)
class PublicQuestion:
    """A statement over public tables alone, printed again from its tree."""

    sql: str
    tables: tuple[str, ...]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is not known: the nearest one, or the list.

    >>> did_you_mean("wrad", ["ward", "age"])
    "Did you mean 'ward'?"
    """
    known = sorted(known)
    near = difflib.get_close_matches(name.lower(), {k.lower(): k for k in known}, n=1, cutoff=0.6)
    if near:
        return f"Did you mean {next(k for k in known if k.lower() == near[0])!r}?"
    if not known:
        return "There is none."
    shown = ", ".join(repr(k) for k in known[:8])
    return f"Known: {shown}{', ...' if len(known) > 8 else ''}."


def find_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` stands for: the same, or the only one that differs in case alone."""
    known = list(known)
    if name in known:
        return name
    folded = [k for k in known if k.lower() == name.lower()]
    return folded[0] if len(folded) == 1 else None


def parse(text: str, catalog: Catalog) -> Question | PublicQuestion:
    """Read one statement.

    Raises QueryError for anything that is not on the allow-list, with a caret at its place.
    """
    if not isinstance(text, str):
        raise QueryError(f"a question is SQL text; got {type(text).__name__}.")
    if len(text) > MAX_TEXT:
        raise QueryError(f"the statement has {len(text):,} characters; at most {MAX_TEXT:,} are read.")
    try:
        statement = _one_statement(text)
        tables = _tables(statement, text, catalog)
        if tables and not any(catalog[t].private for t in tables):
            return PublicQuestion(_print_public(statement, catalog), tuple(tables))
        return _Reader(text, catalog).question(statement)
    except RecursionError:
        raise QueryError("the statement is nested too deeply to be read; write it flatter.") from None


def _one_statement(text: str) -> exp.Expr:
    """The only statement of a text, a SELECT. What else there may be is refused by its tokens, unparsed."""
    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
        while tokens and tokens[-1].token_type.name == "SEMICOLON":
            tokens.pop()
        if not tokens:
            raise QueryError("the statement is empty. Ask something like: SELECT COUNT(*) FROM table")
        first = tokens[0]
        if first.text.upper() not in ("SELECT", "WITH", "FROM", "("):
            message = f"{first.text.upper()} is not a question. Only SELECT is allowed."
            raise QueryError(f"{message}\n{caret(text, first.start, first.end)}")
        end = next((t for t in tokens if t.token_type.name == "SEMICOLON"), None)
        if end is not None:
            raise QueryError(f"one statement at a time: this text holds several.\n{caret(text, end.start, end.end)}")
        statement = sqlglot.parse_one(text, read="duckdb")
    except SqlglotError as error:
        raise _syntax_error(text, error) from None
    if not isinstance(statement, exp.Query):
        raise refuse("this is not a question. Only SELECT is allowed.", text, statement)
    return statement


def _syntax_error(text: str, error: SqlglotError) -> QueryError:
    details = getattr(error, "errors", None)
    if not details or details[0].get("highlight") is None:
        return QueryError("this is not SQL that can be read: a quote or a comment is not closed, perhaps.")
    first = details[0]
    start = max(0, len(first["start_context"] or ""))
    context = (first["start_context"] or "") + first["highlight"]
    at = text.find(context)
    start = at + len(first["start_context"] or "") if at >= 0 else 0
    end = start + len(first["highlight"]) - 1
    return QueryError(f"this is not SQL that can be read, from here on:\n{caret(text, start, end)}")


def _tables(statement: exp.Expr, text: str, catalog: Catalog) -> list[str]:
    """The names of all tables a statement reads; refuses unknown ones and table functions."""
    own = {cte.alias.lower() for cte in statement.find_all(exp.CTE)}
    found = []
    for node in statement.find_all(exp.Table):
        if not isinstance(node.this, exp.Identifier):
            what = node.this.sql_name() if isinstance(node.this, exp.Func) else str(node.this)
            raise refuse(f"{what.upper()} reads from outside; only declared tables can be asked.", text, node)
        if node.args.get("db") or node.args.get("catalog"):
            raise refuse("table names have one part: the name declared in the session.", text, node)
        name = find_name(node.name, catalog)
        if name is None and node.name.lower() in own:
            continue
        if name is None:
            raise refuse(f"unknown table {node.name!r}. {did_you_mean(node.name, catalog)}", text, node.this)
        found.append(name)
    return found


def _print_public(statement: exp.Expr, catalog: Catalog) -> str:
    return statement.sql(dialect="duckdb", identify=True, comments=False)


_REFUSED_CLAUSES = {
    "with_": "WITH",
    "joins": "JOIN",
    "laterals": "LATERAL",
    "distinct": "DISTINCT",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "sample": "SAMPLE",
    "into": "INTO",
    "hint": "a hint",
    "pivots": "PIVOT",
    "match": "MATCH_RECOGNIZE",
    "connect": "CONNECT BY",
    "prewhere": "PREWHERE",
    "distribute": "DISTRIBUTE BY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "locks": "FOR UPDATE",
    "kind": "SELECT AS",
}
_READ_CLAUSES = {"expressions", "from_", "where", "group", "having", "order", "limit", "offset"}


@dataclass
class _Reader:
    """Reads one private SELECT."""

    text: str
    catalog: Catalog
    table: str = ""
    alias: str = ""
    info: TableInfo = field(default_factory=lambda: TableInfo({}, private=True))
    keys: list[Key] = field(default_factory=list)
    aggregates: list[Aggregate] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    _rows: ExpressionReader = field(init=False)

    def refuse(self, message: str, node: exp.Expr | None, word: str | None = None) -> QueryError:
        return refuse(message, self.text, node, word=word)

    def question(self, node: exp.Expr) -> Question:
        if not isinstance(node, exp.Select):
            raise self.refuse(f"{node.key.upper()} is not supported; ask one SELECT.", node, word=node.key)
        self._clauses(node)
        self._from(node)
        rows = self._rows = ExpressionReader(self.text, self._row_column, self._no_aggregate)
        where = node.args.get("where")
        condition = rows.condition(where.this, "WHERE") if where else None
        self._group_by(node, rows)

        def aggregate(item: exp.Expr) -> Expression:
            return self._released(self._aggregate(item, rows))

        above = ExpressionReader(self.text, lambda n: self._released(self._key_named(n)), aggregate, self._key_of)
        for item in node.expressions:
            self._output(item, above)
        answer = ExpressionReader(self.text, self._released_column, aggregate, self._key_of)
        having = node.args.get("having")
        filtering = ExpressionReader(self.text, self._key_or_released, aggregate, self._key_of)
        released_condition = filtering.condition(having.this, "HAVING") if having else None
        order = tuple(self._order(term, answer) for term in (node.args.get("order") or exp.Order()).expressions)
        if not self.aggregates:
            raise self.refuse(
                "every answer is an aggregate, such as COUNT(*) or AVG(x); rows of people are never shown.",
                node.expressions[0] if node.expressions else node,
            )
        return Question(
            table=self.table,
            where=condition,
            keys=tuple(self.keys),
            aggregates=tuple(self.aggregates),
            outputs=tuple(self.outputs),
            having=released_condition,
            order=order,
            limit=self._whole_number(node, "limit"),
            offset=self._whole_number(node, "offset") or 0,
        )

    def _known(self, *nodes: exp.Expr) -> None:
        """Refuse a modifier that would be ignored."""
        for node in nodes:
            modifier = unread(node)
            if modifier is not None:
                raise self.refuse(f"{modifier} is not supported here.", node)

    def _clauses(self, node: exp.Expr) -> None:
        clauses = [node.args.get(name) for name in ("group", "order", "limit", "offset")]
        for clause in clauses:
            if clause is not None:
                self._known(clause, *clause.expressions if isinstance(clause, exp.Order) else ())
        for name, value in node.args.items():
            if not value or name in _READ_CLAUSES:
                continue
            word = _REFUSED_CLAUSES.get(name, name.strip("_").upper())
            place = value[0] if isinstance(value, list) else value
            raise self.refuse(
                f"{word} is not supported in a private question.",
                place if isinstance(place, exp.Expr) else None,
                word=word if word.isupper() else None,
            )

    def _from(self, node: exp.Expr) -> None:
        source = node.args.get("from_")
        if source is None:
            raise self.refuse("the question names no table: add FROM.", node)
        table = source.this
        if not isinstance(table, exp.Table):
            raise self.refuse("a sub-query in FROM is not supported; name a table.", table)
        for name, value in table.args.items():
            if value and name not in ("this", "alias"):
                word = _REFUSED_CLAUSES.get(name, name.strip("_").upper())
                raise self.refuse(f"{word} is not supported in a private question.", table, word=word)
        alias = table.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            raise self.refuse("renaming columns in FROM is not supported.", table)
        self.table = find_name(table.name, self.catalog) or table.name
        self.alias = table.alias or table.name
        self.info = self.catalog[self.table]

    def _row_column(self, node: exp.Column) -> Column:
        if not isinstance(node.this, exp.Identifier):
            raise self.refuse("'*' is not a value.", node)
        if node.args.get("db") or (node.table and node.table.lower() not in (self.alias.lower(), self.table.lower())):
            raise self.refuse(f"{node.sql()!r}: no such table in this question.", node)
        name = find_name(node.name, self.info.columns)
        if name is None:
            hint = did_you_mean(node.name, self.info.columns)
            raise self.refuse(f"unknown column {node.name!r} in table {self.table!r}. {hint}", node)
        kind = self.info.columns[name]
        if kind is Kind.OTHER:
            raise self.refuse(
                f"the column {name!r} is of a type that questions cannot use. If it holds text or numbers, declare "
                f'types={{"{name}": "text"}}.',
                node,
            )
        return Column(name, kind)

    def _no_aggregate(self, node: exp.Expr) -> Expression:
        raise self.refuse("an aggregate or window cannot stand here; conditions on answers go into HAVING.", node)

    def _group_by(self, node: exp.Expr, rows: ExpressionReader) -> None:
        group = node.args.get("group")
        if group is None:
            return
        for name, value in group.args.items():
            if value and name != "expressions":
                raise self.refuse(f"GROUP BY {name.upper()} is not supported; name the columns.", group, word=name)
        for term in group.expressions:
            key = Key(rows.read(self._group_term(term, node)))
            if not columns_in(key.expression):
                raise self.refuse("GROUP BY needs a column; this is the same for every row.", term)
            if key not in self.keys:
                self.keys.append(key)

    def _group_term(self, term: exp.Expr, select: exp.Expr) -> exp.Expr:
        """What a term of GROUP BY names: itself, or a column of SELECT by position or alias."""
        if isinstance(term, exp.Literal) and not term.is_string and str(term.this).isdigit():
            place = int(term.this)
            if not 1 <= place <= len(select.expressions):
                raise self.refuse(f"GROUP BY {place}: SELECT has {len(select.expressions)} columns.", term)
            term = select.expressions[place - 1]
        elif isinstance(term, exp.Column) and find_name(term.name, self.info.columns) is None:
            named = [i for i in select.expressions if isinstance(i, exp.Alias) and i.alias.lower() == term.name.lower()]
            term = named[0] if named else term
        return term.this if isinstance(term, exp.Alias) else term

    def _output(self, item: exp.Expr, answer: ExpressionReader) -> None:
        if isinstance(item, exp.Alias):
            self._known(item)
        inner = item.this if isinstance(item, exp.Alias) else item
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
            raise self.refuse("'*' would show rows of people; ask for aggregates such as COUNT(*).", inner, word="*")
        read = answer.read(inner)
        what = self._meaning(read)
        name = item.alias if isinstance(item, exp.Alias) else _default_name(what)
        taken = {o.name.lower() for o in self.outputs}
        if name.lower() in taken and isinstance(item, exp.Alias):
            raise self.refuse(f"two columns of the answer are named {name!r}.", item)
        unique, i = name, 2
        while unique.lower() in taken:
            unique, i = f"{name}_{i}", i + 1
        self.outputs.append(Output(unique, what))

    def _meaning(self, read: Expression) -> Key | Aggregate | Expression:
        """A released column as the key or aggregate it holds; anything else as it is."""
        if isinstance(read, Column):
            return self.keys[int(read.name[1:])] if read.name[0] == "k" else self.aggregates[int(read.name[1:])]
        return read

    def _key_of(self, node: exp.Expr) -> Column | None:
        """The released column of a piece of SQL that stands in GROUP BY, word for word or not."""
        if not any(not isinstance(key.expression, Column) for key in self.keys) or isinstance(node, exp.Column):
            return None
        if next(node.find_all(exp.AggFunc, exp.Window), None) is not None:
            return None
        try:
            read = Key(self._rows.read(node))
        except QueryError:
            return None
        return self._released(read) if read in self.keys else None

    def _key_named(self, node: exp.Column) -> Key:
        key = Key(self._row_column(node))
        if key not in self.keys:
            raise self.refuse(
                f"the column {node.name!r} is neither in GROUP BY nor inside an aggregate; rows of people are "
                "never shown.",
                node,
            )
        return key

    def _aggregate(self, node: exp.Expr, rows: ExpressionReader) -> Aggregate:
        if isinstance(node, exp.Count | exp.Sum | exp.Avg | exp.Distinct):
            self._known(node, *[n for n in (node.this,) if isinstance(n, exp.Star | exp.Distinct)])
        match node:
            case exp.Window():
                raise self.refuse("window functions (OVER) are not supported.", node)
            case exp.Filter():
                raise self.refuse(
                    "FILTER is not supported; write COUNT(CASE WHEN ... THEN 1 END) or put it into WHERE.",
                    node,
                )
            case exp.Count(this=exp.Star()):
                found = Aggregate(Function.COUNT_ROWS)
            case exp.Count(this=exp.Distinct() as distinct):
                found = self._count_units(distinct, node)
            case exp.Count(this=exp.Expr() as argument):
                found = Aggregate(Function.COUNT_VALUES, rows.read(argument))
            case exp.Sum(this=exp.Distinct()) | exp.Avg(this=exp.Distinct()):
                raise self.refuse("DISTINCT inside SUM and AVG is not supported.", node)
            case exp.Sum():
                found = Aggregate(Function.SUM, rows.number(node.this, "SUM"))
            case exp.Avg():
                found = Aggregate(Function.AVG, rows.number(node.this, "AVG"))
            case _:
                name = node.sql_name() if isinstance(node, exp.Func) else node.key.upper()
                raise self.refuse(
                    f"the aggregate {name} is not supported. Allowed: COUNT(*), COUNT(x), COUNT(DISTINCT unit), "
                    "SUM(x), AVG(x).",
                    node,
                )
        if found not in self.aggregates:
            self.aggregates.append(found)
        return found

    def _count_units(self, distinct: exp.Expr, node: exp.Expr) -> Aggregate:
        columns = distinct.expressions
        name = columns[0].name if len(columns) == 1 and isinstance(columns[0], exp.Column) else ""
        if self.info.unit is not None and find_name(name, self.info.columns) == self.info.unit:
            return Aggregate(Function.COUNT_UNITS)
        unit = f"COUNT(DISTINCT {self.info.unit})" if self.info.unit else "nothing here, as each row is a unit"
        raise self.refuse(f"COUNT(DISTINCT ...) counts units only: {unit}.", node)

    def _released(self, what: Key | Aggregate) -> Column:
        """The released column of a key or an aggregate."""
        if isinstance(what, Key):
            return Column(f"k{self.keys.index(what)}", what.kind)
        kind = Kind.NUMBER if what.function in (Function.SUM, Function.AVG) else Kind.INTEGER
        return Column(f"a{self.aggregates.index(what)}", kind)

    def _released_column(self, node: exp.Column) -> Expression:
        """A column above the aggregate: a name of the answer first, then a key."""
        named = [o for o in self.outputs if o.name.lower() == node.name.lower()] if not node.table else []
        if not named:
            return self._released(self._key_named(node))
        what = named[0].what
        return self._released(what) if isinstance(what, Key | Aggregate) else what

    def _key_or_released(self, node: exp.Column) -> Expression:
        """A column of HAVING: a key first, as in SQL, then a name of the answer."""
        name = find_name(node.name, self.info.columns)
        if name is not None and Key(Column(name, self.info.columns[name])) in self.keys:
            return self._released(self._key_named(node))
        return self._released_column(node)

    def _order(self, term: exp.Expr, answer: ExpressionReader) -> Order:
        by = term.this
        if isinstance(by, exp.Literal) and not by.is_string and str(by.this).isdigit():
            place = int(by.this)
            if not 1 <= place <= len(self.outputs):
                raise self.refuse(f"ORDER BY {place}: the answer has {len(self.outputs)} columns.", by)
            what = self.outputs[place - 1].what
            read: Expression = self._released(what) if isinstance(what, Key | Aggregate) else what
        else:
            read = answer.read(by)
        return Order(read, bool(term.args.get("desc")), bool(term.args.get("nulls_first")))

    def _whole_number(self, node: exp.Expr, name: str) -> int | None:
        clause = node.args.get(name)
        if clause is None:
            return None
        value = clause.expression
        if isinstance(value, exp.Literal) and not value.is_string and str(value.this).isdigit():
            return min(int(value.this), 2**62)
        raise self.refuse(f"{name.upper()} takes a whole number.", clause, word=name)


def _default_name(what: Key | Aggregate | Expression) -> str:
    if isinstance(what, Key):
        return what.expression.name if isinstance(what.expression, Column) else "key"
    if not isinstance(what, Aggregate):
        return "value"
    word = {
        Function.COUNT_ROWS: "count",
        Function.COUNT_VALUES: "count",
        Function.COUNT_UNITS: "units",
        Function.SUM: "sum",
        Function.AVG: "avg",
    }[what.function]
    return f"{word}_{what.argument.name}" if isinstance(what.argument, Column) else word
