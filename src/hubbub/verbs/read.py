"""SQL text to the same question in Python: what one front end can say, so can the other.

The text that `from_sql` gives is an expression over the names `session` and `hb`. It holds names and constants of the
question as Python literals, and nothing else of it.

    SELECT ward, COUNT(*) AS n FROM visits WHERE age > 65 GROUP BY ward
    session.table('visits').filter(hb.col('age') > 65).group_by('ward').agg(hb.count().alias('n'))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hubbub.errors import QueryError
from hubbub.verbs.read_term import refused, term_text

__all__ = ["from_sql"]


def from_sql(text: str) -> str:
    """One SELECT in SQL as Python text: verbs on `session`, terms of `hb`.

    Raises QueryError for text that cannot be read, and for forms that the verbs have no word for.

    >>> print(from_sql("SELECT COUNT(*) AS n FROM visits WHERE age BETWEEN 18 AND 64"))
    session.table('visits').filter(hb.col('age').between(18, 64)).agg(hb.count().alias('n'))
    """
    try:
        statement = sqlglot.parse_one(text, read="duckdb")
    except SqlglotError:
        raise QueryError("this is not SQL that can be read. `hubbub check` says where.") from None
    except RecursionError:
        raise QueryError("the statement is nested too deeply to be read; write it flatter.") from None
    return _query(statement, {})


def _query(node: exp.Expr, around: Mapping[str, str]) -> str:
    if isinstance(node, exp.Subquery | exp.Paren):
        return _query(node.this, around)
    if not isinstance(node, exp.Select | exp.SetOperation):
        raise refused(node)
    clause = node.args.get("with_")
    named = dict(around)
    for cte in () if clause is None else clause.expressions:
        if cte.parent.args.get("recursive") or cte.args["alias"].args.get("columns"):
            raise refused(cte.parent)
        named[cte.alias.lower()] = _query(cte.this, named)
    if isinstance(node, exp.SetOperation):
        return _combined(node, named) + _end(node, named)
    return _Select(node, named).text()


def _combined(node: exp.SetOperation, named: Mapping[str, str]) -> str:
    left, right = _query(node.this, named), _query(node.expression, named)
    distinct = node.args.get("distinct") is not False
    if node.args.get("by_name") or (not distinct and not isinstance(node, exp.Union)):
        raise refused(node)
    if isinstance(node, exp.Union):
        return f"{left}.union({right}{', distinct=True' if distinct else ''})"
    return f"{left}.{'intersect' if isinstance(node, exp.Intersect) else 'minus'}({right})"


def _end(node: exp.Expr, named: Mapping[str, str]) -> str:
    """ORDER BY, LIMIT and OFFSET."""
    end = ""
    order = node.args.get("order")
    if order is not None:
        terms = [_column_or_term(o.this, node, named) for o in order.expressions]
        end += f".order_by({', '.join(terms)}"
        for name, key in (("descending", "desc"), ("nulls_first", "nulls_first")):
            flags = [bool(o.args.get(key)) for o in order.expressions]
            if any(flags):
                end += f", {name}={flags if len(flags) > 1 else flags[0]}"
        end += ")"
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is not None or offset is not None:
        rows = "None" if limit is None else _whole(limit)
        end += f".limit({rows}{'' if offset is None else f', offset={_whole(offset)}'})"
    return end


def _whole(clause: exp.Expr) -> str:
    value = clause.expression
    if not isinstance(value, exp.Literal) or value.is_string or not str(value.this).isdigit():
        raise refused(clause)
    return str(value.this)


def _column_or_term(node: exp.Expr, query: exp.Expr, named: Mapping[str, str]) -> str:
    """A term of ORDER BY: a position and a bare column stand for a name."""
    if isinstance(node, exp.Literal) and not node.is_string:
        place = int(node.name) if node.name.isdigit() else 0
        items = query.expressions if isinstance(query, exp.Select) else []
        if not 1 <= place <= len(items):
            raise refused(node)
        if isinstance(items[place - 1], exp.Alias):
            return repr(items[place - 1].alias)
        node = items[place - 1]
    if isinstance(node, exp.Column) and not node.table and isinstance(node.this, exp.Identifier):
        return repr(node.name)
    return term_text(node, lambda n: _query(n, named))


_KNOWN = {
    *("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct", "with_"),
}


@dataclass
class _Select:
    """One SELECT, clause by clause."""

    node: exp.Select
    named: Mapping[str, str]

    def text(self) -> str:
        for name, value in self.node.args.items():
            if value and name not in _KNOWN:
                raise refused(self.node, name)
        text = self._from()
        where = self.node.args.get("where")
        if where is not None:
            text += f".filter({self._term(where.this)})"
        grouped = self.node.args.get("group") or self.node.args.get("having") or self._aggregates()
        text += self._grouped() if grouped else self._projected()
        if self.node.args.get("distinct") is not None:
            if self.node.args["distinct"].args.get("on"):
                raise refused(self.node.args["distinct"])
            text += ".distinct()"
        return text + _end(self.node, self.named)

    def _term(self, node: exp.Expr) -> str:
        return term_text(node, lambda n: _query(n, self.named))

    def _aggregates(self) -> bool:
        return any(_has_aggregate(item) for item in self.node.expressions)

    def _from(self) -> str:
        origin = self.node.args.get("from_")
        if origin is None:
            raise QueryError("the question names no table: add FROM.")
        text = self._item(origin.this)
        for join in self.node.args.get("joins") or ():
            text += self._join(join)
        return text

    def _item(self, node: exp.Expr) -> str:
        alias = node.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            raise refused(node)
        name = node.alias
        if isinstance(node, exp.Subquery):
            text = _query(node.this, self.named)
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not node.args.get("db"):
            inner = self.named.get(node.name.lower())
            text = f"session.table({node.name!r})" if inner is None else inner
            name = name or ("" if inner is None else node.name)
        else:
            raise refused(node)
        more = [k for k, value in node.args.items() if value and k not in ("this", "alias", "with_")]
        if more:
            raise refused(node, more[0])
        return f"{text}.alias({name!r})" if name else text

    def _join(self, join: exp.Join) -> str:
        kind, side = str(join.args.get("kind") or ""), str(join.args.get("side") or "")
        how = {"": "inner", "INNER": "inner", "SEMI": "semi", "ANTI": "anti", "CROSS": "cross"}.get(kind)
        if side or kind == "OUTER":
            how = "left" if side == "LEFT" and kind in ("", "OUTER") else {"LEFT SEMI": "semi"}.get(f"{side} {kind}")
        if how is None or join.args.get("method"):
            raise refused(join)
        using, condition = join.args.get("using"), join.args.get("on")
        if how == "inner" and not using and condition is None:
            how = "cross"
        on = ""
        if using:
            on = f", on={[c.name for c in using]!r}"
        elif condition is not None:
            on = f", on={self._term(condition)}"
        return f".join({self._item(join.this)}{on}{'' if how == 'inner' else f', how={how!r}'})"

    def _projected(self) -> str:
        items = self.node.expressions
        if len(items) == 1 and isinstance(items[0], exp.Star) and not any(items[0].args.values()):
            return ""
        if any(i.find(exp.Star) is i for i in items[1:]):
            raise refused(self.node, "*")
        if isinstance(items[0], exp.Star):
            return f".with_columns({', '.join(self._named(item) for item in items[1:])})"
        return f".select({', '.join(self._named(item) for item in items)})"

    def _named(self, item: exp.Expr, default: str = "") -> str:
        if isinstance(item, exp.Alias):
            return f"{_called(self._term(item.this))}.alias({item.alias!r})"
        if isinstance(item, exp.Column) and not item.table and isinstance(item.this, exp.Identifier):
            return repr(item.name)
        text = _called(self._term(item))
        return text if _is_aggregate(item) or not default else f"{text}.alias({default!r})"

    def _grouped(self) -> str:
        """GROUP BY, the aggregates, HAVING; then the columns as they stand, where that is not what these give."""
        group = self.node.args.get("group")
        terms, form = ([], "group_by") if group is None else self._terms(group)
        names = self._names(terms)
        keys = [self._key(t, n) for t, n in zip(terms, names, strict=True)]
        places = {t.sql(): n for t, n in zip(terms, names, strict=True)}
        aggregates, shown = [], []
        for i, item in enumerate(self.node.expressions):
            inner = item.this if isinstance(item, exp.Alias) else item
            if inner.sql() in places or (isinstance(inner, exp.Column) and inner.name in names and not inner.table):
                shown.append(places.get(inner.sql(), inner.name))
                continue
            name = item.alias if isinstance(item, exp.Alias) else f"column{i + 1}"
            aggregates.append(f"{_called(self._term(inner))}.alias({name!r})")
            shown.append(name)
        if not aggregates:
            raise refused(self.node, "GROUP BY without an aggregate")
        text = f".{form.replace('SETS', self._sets(group, places))}" if form.startswith("grouping") else ""
        if not text and (keys or form != "group_by"):
            text = f".{form}({', '.join(keys)})"
        text += f".agg({', '.join(aggregates)})"
        having = self.node.args.get("having")
        if having is not None:
            text += f".filter({self._term(having.this)})"
        given = [*names, *(n for n in shown if n not in names)]
        return text if given == shown else f"{text}.select({', '.join(map(repr, shown))})"

    def _terms(self, group: exp.Expr) -> tuple[list[exp.Expr], str]:
        """The different terms of GROUP BY, and the verb."""
        if any(v for k, v in group.args.items() if k != "expressions"):
            raise refused(group)
        items = group.expressions
        special = next((i for i in items if isinstance(i, exp.Rollup | exp.Cube | exp.GroupingSets)), None)
        if special is None:
            return [self._meant(i) for i in items], "group_by"
        if len(items) > 1:
            raise refused(group)
        if isinstance(special, exp.GroupingSets):
            every = {t.sql(): t for s in special.expressions for t in map(self._meant, _members(s))}
            return list(every.values()), "grouping_sets(SETS)"
        return [self._meant(i) for i in special.expressions], "rollup" if isinstance(special, exp.Rollup) else "cube"

    def _sets(self, group: Any, places: Mapping[str, str]) -> str:
        sets = []
        made: set[str] = set()
        for item in group.expressions[0].expressions:
            members = [self._meant(m) for m in _members(item)]
            sets.append(f"[{', '.join(self._key(m, places[m.sql()]) for m in members)}]")
            made |= {m.sql() for m in members}
        return ", ".join(sets)

    def _meant(self, term: exp.Expr) -> exp.Expr:
        """What a term of GROUP BY names: itself, or a column of SELECT by position or alias."""
        if isinstance(term, exp.Literal) and not term.is_string and term.name.isdigit():
            items = self.node.expressions
            if not 1 <= int(term.name) <= len(items):
                raise refused(term)
            term = items[int(term.name) - 1]
        elif isinstance(term, exp.Column) and not term.table:
            same = [i for i in self.node.expressions if isinstance(i, exp.Alias) and i.alias == term.name]
            inner = same[0].this if same else None
            own = inner is None or any(c.name == term.name for c in inner.find_all(exp.Column))
            term = term if own or same is None else same[0]
        return term.this if isinstance(term, exp.Alias) else term

    def _names(self, terms: list[exp.Expr]) -> list[str]:
        """A name for each key: its alias in SELECT, its own, or one made up."""
        aliases = {i.this.sql(): i.alias for i in self.node.expressions if isinstance(i, exp.Alias)}
        return [
            aliases.get(t.sql(), t.name if isinstance(t, exp.Column) else f"key{i + 1}") for i, t in enumerate(terms)
        ]

    def _key(self, term: exp.Expr, name: str) -> str:
        if isinstance(term, exp.Column) and not term.table and term.name == name:
            return repr(name)
        return f"{_called(self._term(term))}.alias({name!r})"


def _members(item: exp.Expr) -> list[exp.Expr]:
    if isinstance(item, exp.Tuple):
        return list(item.expressions)
    return [item.this if isinstance(item, exp.Paren) else item]


def _called(text: str) -> str:
    """A term's text, ready for a method: operations in parentheses."""
    return f"({text})" if text.startswith(("-", "~")) or " " in _outside(text) else text


def _outside(text: str) -> str:
    """The text outside brackets and quotes, where only operators leave blanks."""
    depth, kept, quote, escaped = 0, [], "", False
    for character in text:
        if quote:
            quote = "" if character == quote and not escaped else quote
            escaped = character == "\\" and not escaped
            continue
        if character in "'\"":
            quote = character
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            kept.append(character)
    return "".join(kept)


def _is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, exp.AggFunc | exp.Filter)


def _has_aggregate(node: exp.Expr) -> bool:
    """Whether a column of SELECT holds an aggregate of its own: not in a sub-query, and not one over a window."""
    if isinstance(node, exp.Subquery | exp.Window):
        inner = node.this if isinstance(node, exp.Window) else None
        return inner is not None and any(_has_aggregate(c) for c in inner.iter_expressions())
    return _is_aggregate(node) or any(_has_aggregate(child) for child in node.iter_expressions())
