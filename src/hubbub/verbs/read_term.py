"""One SQL expression as Python text over `hb`: the mirror of `hubbub.verbs.terms` and `hubbub.verbs.functions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from hubbub.errors import QueryError
from hubbub.sql.text.functions import named
from hubbub.tables.aggregates import spelled
from hubbub.verbs.terms import KINDS, PARTS

__all__ = ["refused", "term_text"]

_OPERATORS: Final[dict[type[exp.Expr], str]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.And: "&",
    exp.Or: "|",
    exp.EQ: "==",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_CALLED_OPERATORS: Final = {"FDIV": "//", "FMOD": "%"}
"""Python's operators that are functions in SQL: they round down."""
_SQL_OPERATORS: Final[dict[type[exp.Expr], str]] = {exp.IntDiv: "hb.quotient", exp.Mod: "hb.remainder"}
"""SQL's operators that are functions in Python: they cut off."""
_METHODS: Final = {
    **{word: word.lower() for word in ("ABS", "SIGN", "FLOOR", "CEIL", "ROUND", "SQRT", "EXP", "LOG10", "LOWER")},
    **{word: word.lower() for word in ("UPPER", "REVERSE", "LENGTH", "SUBSTR", "LEFT", "RIGHT", "REPLACE")},
    **{word: word.lower() for word in ("STARTS_WITH", "ENDS_WITH", "CONTAINS")},
    **{word: word.lower() for word in ("POWER", "SPLIT_PART", "EPOCH")},
    "REGEXP_MATCHES": "matches",
    "REGEXP_FULL_MATCH": "full_match",
    "LN": "log",
    "TRIM": "strip",
    "LTRIM": "lstrip",
    "RTRIM": "rstrip",
}
_FUNCTIONS: Final = {name: f"hb.{name.lower()}" for name in ("COALESCE", "NULLIF", "LEAST", "GREATEST")}
_AGGREGATES: Final[dict[type[exp.Expr], tuple[str, str]]] = {
    exp.Sum: ("sum", ""),
    exp.Avg: ("mean", ""),
    exp.Variance: ("var", ""),
    exp.VariancePop: ("var", ", ddof=0"),
    exp.Stddev: ("std", ""),
    exp.StddevSamp: ("std", ""),
    exp.StddevPop: ("std", ", ddof=0"),
    exp.Median: ("median", ""),
    exp.Min: ("min", ""),
    exp.Max: ("max", ""),
    exp.CovarSamp: ("covar", ""),
    exp.CovarPop: ("covar", ", ddof=0"),
    exp.Corr: ("corr", ""),
    exp.FirstValue: ("first", ""),
    exp.LastValue: ("last", ""),
    exp.First: ("first", ""),
    exp.Last: ("last", ""),
}
_BARE: Final[dict[type[exp.Expr], str]] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
}
_PART_METHODS: Final = {word: name for name, word in PARTS.items()}
_CASTS: Final = {
    **{word: kind for kind, word in KINDS.items()},
    "INT": "integer",
    "TEXT": "text",
    "CHAR": "text",
    "DATETIME": "timestamp",
    "TIMESTAMPNTZ": "timestamp",
}

Query = Callable[[exp.Expr], str]


def refused(node: exp.Expr, word: str = "") -> QueryError:
    """The verbs have no word for this."""
    what = (word or node.key).strip("_").upper().replace("_", " ")
    return QueryError(f"{what} cannot be written with verbs: {node.sql(dialect='duckdb')[:80]!r}. Ask it in SQL.")


def term_text(node: exp.Expr, query: Query) -> str:
    """The Python text of an expression; `query` writes a sub-query.

    Raises QueryError for what the verbs have no word for.
    """
    return _Terms(query).text(node)


class _Terms:
    """Writes terms; `query` writes a sub-query."""

    def __init__(self, query: Query) -> None:
        self.query = query

    def text(self, node: exp.Expr) -> str:
        kind = type(node)
        if _constant(node):
            return _constant_text(node)
        sign = _operator(node)
        if sign is not None:
            one, other = _sides(node)
            left = self.on(one) if _constant(one) and _constant(other) else self.beside(one)
            return f"{left} {sign} {self.beside(other)}"
        if kind in _SQL_OPERATORS:
            return f"{_SQL_OPERATORS[kind]}({self.arguments([node.this, node.expression])})"
        if kind in _BARE:
            return f"hb.{_BARE[kind]}()"
        if kind in _AGGREGATES:
            name, more = _AGGREGATES[kind]
            operands = [node.this, *([node.expression] if isinstance(node.args.get("expression"), exp.Expr) else [])]
            return f"hb.{name}({self.arguments(operands)}{more})"
        for write in (self._value, self._condition, self._aggregate):
            text = write(node)
            if text is not None:
                return text
        return _function(node, self.on, self.text, self.arguments)

    def term(self, inner: exp.Expr) -> str:
        """A term, on which operators and methods work; a constant is wrapped."""
        text = self.text(inner)
        return f"hb.lit({text})" if _constant(inner) else text

    def beside(self, inner: exp.Expr) -> str:
        text = self.text(inner)
        return text if _constant(inner) or isinstance(inner, exp.Paren) or not _operation(inner) else f"({text})"

    def on(self, inner: exp.Expr) -> str:
        """A term before the dot of a method."""
        term = self.term(inner)
        return f"({term})" if _operation(inner) and not isinstance(inner, exp.Paren) else term

    def argument(self, inner: exp.Expr) -> str:
        """An argument that may be a column's name."""
        if isinstance(inner, exp.Column) and not inner.table and isinstance(inner.this, exp.Identifier):
            return repr(inner.name)
        return self.term(inner) if isinstance(inner, exp.Literal) and inner.is_string else self.text(inner)

    def arguments(self, items: list[exp.Expr]) -> str:
        return ", ".join(map(self.argument, items))

    def _value(self, node: exp.Expr) -> str | None:
        match node:
            case exp.Column() if isinstance(node.this, exp.Identifier) and not node.args.get("db"):
                return f"hb.col({node.name!r}{f', table={node.table!r}' if node.table else ''})"
            case exp.Paren():
                return self.text(node.this) if not _operation(node.this) else f"({self.text(node.this)})"
            case exp.Neg():
                return f"-{self.on(node.this)}"
            case exp.Case() if node.this is None:
                pairs = [f".when({self.term(i.this)}).then({self.text(i.args['true'])})" for i in node.args["ifs"]]
                default = node.args.get("default")
                end = ".end()" if default is None else f".otherwise({self.text(default)})"
                return f"hb{''.join(pairs)}{end}"
            case exp.Cast() if _cast(node) is not None:
                return f"{self.on(node.this)}.cast({_cast(node)!r})"
            case exp.Subquery():
                return f"{self.query(node.this)}.scalar()"
            case exp.Window():
                return _window(node, self.on, self.argument)
        return None

    def _condition(self, node: exp.Expr) -> str | None:
        match node:
            case exp.Not(this=exp.Is(expression=exp.Null()) as inner):
                return f"{self.on(inner.this)}.is_not_null()"
            case exp.Not():
                return f"~{self.on(node.this)}"
            case exp.Is(expression=exp.Null()):
                return f"{self.on(node.this)}.is_null()"
            case exp.Is(expression=exp.Boolean() as value):
                return f"hb.coalesce({self.term(node.this)}, {not value.this}) == {bool(value.this)}"
            case exp.Between():
                return f"{self.on(node.this)}.between({self.text(node.args['low'])}, {self.text(node.args['high'])})"
            case exp.In() if node.args.get("query") is not None:
                return f"{self.on(node.this)}.is_in({self.query(node.args['query'])})"
            case exp.In() if all(map(_constant, node.expressions)):
                return f"{self.on(node.this)}.is_in([{', '.join(map(self.text, node.expressions))}])"
            case exp.Like() | exp.ILike() if _constant(node.expression):
                word = "like" if isinstance(node, exp.Like) else "ilike"
                return f"{self.on(node.this)}.{word}({self.text(node.expression)})"
        return None

    def _aggregate(self, node: exp.Expr) -> str | None:
        match node:
            case exp.Filter():
                return f"{self.text(node.this)}.where({self.term(node.expression.this)})"
            case exp.Count(this=exp.Star()):
                return "hb.count()"
            case exp.Count(this=exp.Distinct() as distinct) if len(distinct.expressions) == 1:
                return f"hb.n_distinct({self.arguments(distinct.expressions)})"
            case exp.Count(this=exp.Expr() as counted) if not node.expressions:
                return f"hb.count({self.arguments([counted])})"
            case exp.PercentileCont() | exp.Quantile() if _constant(node.expression or exp.Star()):
                return f"hb.quantile({self.arguments([node.this])}, {self.text(node.expression)})"
            case exp.Lag() | exp.Lead():
                steps = node.args.get("offset")
                if node.args.get("default") is not None:
                    raise refused(node)
                word = "lag" if isinstance(node, exp.Lag) else "lead"
                return f"hb.{word}({self.arguments([node.this])}{'' if steps is None else f', {self.text(steps)}'})"
        return None


def _function(node: exp.Expr, on: Query, text: Query, arguments: Callable[[list[exp.Expr]], str]) -> str:
    called = [str(node.this).upper()] if isinstance(node, exp.Anonymous) else getattr(node, "sql_names", list)()
    aggregate = spelled(*called)
    if aggregate is not None and aggregate.names.verb:
        own = [v for v in (node.args.get("this"), node.args.get("expression")) if isinstance(v, exp.Expr)]
        return f"hb.{aggregate.names.verb}({arguments([*own, *node.expressions])})"
    function = named(node)
    if function is None:
        raise refused(node)
    name, given = function
    first, rest = given[0], given[1:]
    if name == "EXTRACT" and rest and first.name.upper() in _PART_METHODS:
        return f"{on(rest[0])}.{_PART_METHODS[first.name.upper()]}()"
    if name == "DATE_TRUNC":
        return f"{on(rest[0])}.trunc({first.name.lower()!r})"
    if name == "DATE_DIFF":
        return f"{on(rest[0])}.diff({text(rest[1])}, {first.name.lower()!r})"
    if name == "CONCAT":
        return f"{on(first)}.concat({', '.join(map(text, rest))})"
    if name in _FUNCTIONS:
        return f"{_FUNCTIONS[name]}({arguments(given)})"
    if name in _METHODS:
        return f"{on(first)}.{_METHODS[name]}({', '.join(map(text, rest))})"
    raise refused(node)


def _window(node: exp.Window, on: Query, argument: Query) -> str:
    if node.args.get("spec") or node.args.get("alias"):
        raise refused(node)
    partition = [argument(p) for p in node.args.get("partition_by") or ()]
    order = node.args.get("order")
    terms = order.expressions if order is not None else []
    down = {bool(o.args.get("desc")) for o in terms}
    if len(down) > 1 or any(o.args.get("nulls_first") for o in terms):
        raise refused(node)
    by = [f"order_by=[{', '.join(argument(o.this) for o in terms)}]"] if terms else []
    return f"{on(node.this)}.over({', '.join([*partition, *by, *(['descending=True'] if True in down else [])])})"


def _operator(node: exp.Expr) -> str | None:
    """Python's sign for it, between its two sides."""
    if isinstance(node, exp.Anonymous) and len(node.expressions) == 2:
        return _CALLED_OPERATORS.get(str(node.this).upper())
    return _OPERATORS.get(type(node))


def _sides(node: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    one, other = node.expressions if isinstance(node, exp.Anonymous) else (node.this, node.expression)
    return one, other


def _operation(node: exp.Expr) -> bool:
    """Whether its text is a Python operation, which needs parentheses beside others."""
    return (
        _operator(node) is not None
        or isinstance(node, exp.Not | exp.Neg)
        or (isinstance(node, exp.Is) and not isinstance(node.expression, exp.Null))
    )


def _cast(node: exp.Cast) -> str | None:
    target = node.args["to"]
    word = target.this.name if hasattr(target.this, "name") else str(target.this)
    return None if target.expressions else _CASTS.get(word)


def _constant(node: exp.Expr) -> bool:
    if isinstance(node, exp.Neg):
        return isinstance(node.this, exp.Literal) and not node.this.is_string
    if type(node) is exp.Cast and isinstance(node.this, exp.Literal) and node.this.is_string:
        return False
    return isinstance(node, exp.Literal | exp.Null | exp.Boolean)


def _constant_text(node: exp.Expr) -> str:
    match node:
        case exp.Null():
            return "None"
        case exp.Boolean():
            return repr(bool(node.this))
        case exp.Neg():
            return f"-{_constant_text(node.this)}"
    if node.args.get("is_string"):
        return repr(str(node.this))
    number = str(node.this)
    if (
        not number.replace(".", "", 1)
        .replace("e", "", 1)
        .replace("E", "", 1)
        .replace("-", "")
        .replace("+", "")
        .isdigit()
    ):
        raise refused(node)
    return repr(int(number)) if number.isdigit() else repr(float(number))
