"""Terms: expressions over columns, written with Python's operators.

A term is one node of an SQL tree with an optional name. Operators and methods give new terms; what a term means, and
whether it may be asked, the session's reader decides. An operand that is itself an operation goes into parentheses,
so that Python's precedence, and not SQL's, holds.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from sqlglot import exp

from hubbub.arguments import is_number
from hubbub.errors import ParameterError, QueryError, what_was_given

__all__ = ["COMPOUND", "KINDS", "PARTS", "Term", "call", "column", "constant", "operand", "quoted"]

KINDS: Final = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
"""What `cast` takes, and its name in SQL."""

PARTS: Final = {
    "year": "YEAR",
    "quarter": "QUARTER",
    "month": "MONTH",
    "week": "WEEK",
    "day": "DAY",
    "dow": "DOW",
    "doy": "DOY",
    "hour": "HOUR",
    "minute": "MINUTE",
    "second": "SECOND",
}
"""Methods that take a part out of a date or time, and its name in SQL."""

COMPOUND: Final = (exp.Binary, exp.Unary, exp.Between, exp.In, exp.Case)
"""Operations, which go into parentheses beside others."""


def quoted(name: str) -> exp.Identifier:
    """A name, quoted whatever it holds. Raises QueryError for what is not a name."""
    if not isinstance(name, str) or not name or "\x00" in name:
        raise QueryError(f"{what_was_given(name)} is not a name; expected text, as in hb.col('age').")
    return exp.to_identifier(name, quoted=True)


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """A call of an SQL function under exactly this name."""
    return exp.Anonymous(this=name, expressions=[a.copy() for a in arguments])


def constant(value: object) -> exp.Expr:
    """A constant from a Python value: None, numbers, text, dates, times.

    Raises ParameterError for NaN, infinities, times with a zone, and types that SQL has no constant for.
    """
    match value:
        case None:
            return exp.null()
        case bool():
            return exp.true() if value else exp.false()
        case int():
            number: exp.Expr = exp.Literal.number(str(abs(value)))
            return exp.Neg(this=number) if value < 0 else number
        case float() | Decimal() | Fraction():
            return _number(value)
        case str() if "\x00" not in value:
            return exp.Literal.string(value)
        case dt.datetime() if value.tzinfo is None:
            return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), "timestamp")
        case dt.date() if not isinstance(value, dt.datetime):
            return exp.cast(exp.Literal.string(value.isoformat()), "date")
    raise ParameterError(
        f"{what_was_given(value)} cannot stand in a question. Allowed: None, true and false, finite numbers, text "
        "without NUL, dates, and times without a zone."
    )


def _number(value: float | Decimal | Fraction) -> exp.Expr:
    if not is_number(value):
        raise ParameterError(f"{what_was_given(value)} cannot stand in a question: a constant is a finite number.")
    if isinstance(value, Fraction):
        over: exp.Expr = exp.Div(
            this=exp.Literal.number(str(abs(value.numerator))), expression=exp.Literal.number(str(value.denominator))
        )
        return exp.Paren(this=exp.Neg(this=exp.Paren(this=over)) if value < 0 else over)
    text = str(value)
    number = exp.Literal.number(text.lstrip("-"))
    return exp.Neg(this=number) if text.startswith("-") else number


def column(value: object) -> exp.Expr:
    """An argument of a function: a term, the name of a column, or a constant that is not a text."""
    if isinstance(value, Term):
        return value.node
    return exp.column(quoted(value)) if isinstance(value, str) else constant(value)


def operand(value: object) -> exp.Expr:
    """An operand, in parentheses where it is itself an operation: a term, or a constant."""
    node = value.node if isinstance(value, Term) else constant(value)
    return exp.Paren(this=node) if isinstance(node, COMPOUND) and not isinstance(node, exp.Paren) else node


def _binary(kind: type[exp.Expr], *, turned: bool = False) -> Callable[[Any, object], Term]:
    def operate(self: Term, other: object) -> Term:
        sides = (operand(other), operand(self)) if turned else (operand(self), operand(other))
        return Term(kind(this=sides[0], expression=sides[1]))

    return operate


def _called(word: str, *, turned: bool = False) -> Callable[[Any, object], Term]:
    """An operator that is a function in SQL, whose own `//` and `%` cut off where Python's round down."""

    def operate(self: Term, other: object) -> Term:
        sides = (constant_or_term(other), self.node) if turned else (self.node, constant_or_term(other))
        return Term(call(word, *sides))

    return operate


def _part(word: str) -> Callable[[Any], Term]:
    def extract(self: Term) -> Term:
        return Term(exp.Extract(this=exp.var(word), expression=operand(self)))

    extract.__doc__ = f"The {word.lower()} of a date or time."
    return extract


def _method(word: str, about: str) -> Callable[..., Term]:
    def apply(self: Term, *arguments: object) -> Term:
        return Term(call(word, self.node, *map(constant_or_term, arguments)))

    apply.__doc__ = about
    return apply


def constant_or_term(value: object) -> exp.Expr:
    """An argument of a method: a term, or a constant."""
    return value.node if isinstance(value, Term) else constant(value)


class Term:
    """An expression over columns. Build one with `hubbub.col`, `hubbub.lit`, `hubbub.when` or an aggregate.

    `==` and the other comparisons give terms, and so do `&`, `|` and `~`; a term has no truth value of its own.
    """

    __slots__ = ("_name", "_node")

    def __init__(self, node: exp.Expr, name: str | None = None) -> None:
        self._node = node
        self._name = name

    @property
    def node(self) -> exp.Expr:
        """A copy of the tree."""
        return self._node.copy()

    @property
    def name(self) -> str | None:
        """The name it has in an answer: its alias, or that of a bare column."""
        return self._name or (self._node.name if isinstance(self._node, exp.Column) else None)

    def alias(self, name: str) -> Term:
        """The same under a name."""
        quoted(name)
        return Term(self._node, name)

    def __str__(self) -> str:
        return self._node.sql(dialect="duckdb")

    def __repr__(self) -> str:
        return f"<{self}{'' if self._name is None else f' AS {self._name}'}>"

    def __bool__(self) -> bool:
        raise QueryError(
            f"the condition {self} has no truth value in Python. Write & for and, | for or, ~ for not, each side in "
            "parentheses, and .between or .is_in."
        )

    __hash__ = None  # type: ignore[assignment]

    __add__, __radd__ = _binary(exp.Add), _binary(exp.Add, turned=True)
    __sub__, __rsub__ = _binary(exp.Sub), _binary(exp.Sub, turned=True)
    __mul__, __rmul__ = _binary(exp.Mul), _binary(exp.Mul, turned=True)
    __truediv__, __rtruediv__ = _binary(exp.Div), _binary(exp.Div, turned=True)
    __floordiv__, __rfloordiv__ = _called("FDIV"), _called("FDIV", turned=True)
    __mod__, __rmod__ = _called("FMOD"), _called("FMOD", turned=True)
    __and__, __rand__ = _binary(exp.And), _binary(exp.And, turned=True)
    __or__, __ror__ = _binary(exp.Or), _binary(exp.Or, turned=True)
    __lt__, __le__ = _binary(exp.LT), _binary(exp.LTE)
    __gt__, __ge__ = _binary(exp.GT), _binary(exp.GTE)
    __eq__ = _binary(exp.EQ)  # type: ignore[assignment]
    __ne__ = _binary(exp.NEQ)  # type: ignore[assignment]

    def __neg__(self) -> Term:
        return Term(exp.Neg(this=operand(self)))

    def __pow__(self, exponent: object) -> Term:
        return self.power(exponent)

    def __invert__(self) -> Term:
        return Term(exp.Not(this=operand(self)))

    def __abs__(self) -> Term:
        return self.abs()

    def is_in(self, values: object) -> Term:
        """Whether it is one of some constants, or one of the values of a builder's only column."""
        if hasattr(values, "tree"):
            return Term(exp.In(this=operand(self), query=exp.Subquery(this=values.tree())))
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise QueryError(f"is_in takes several values, as in .is_in(['A', 'B']); found {what_was_given(values)}.")
        return Term(exp.In(this=operand(self), expressions=[constant(v) for v in values]))

    def is_null(self) -> Term:
        """Whether it is NULL."""
        return Term(exp.Is(this=operand(self), expression=exp.null()))

    def is_not_null(self) -> Term:
        """Whether it is not NULL."""
        return Term(exp.Not(this=exp.Is(this=operand(self), expression=exp.null())))

    def between(self, low: object, high: object) -> Term:
        """Whether low <= it <= high."""
        return Term(exp.Between(this=operand(self), low=operand(low), high=operand(high)))

    def like(self, pattern: str) -> Term:
        """Whether text matches a pattern: % is any text, _ one character."""
        return Term(exp.Like(this=operand(self), expression=constant(pattern)))

    def ilike(self, pattern: str) -> Term:
        """`like` that ignores case."""
        return Term(exp.ILike(this=operand(self), expression=constant(pattern)))

    def cast(self, kind: str) -> Term:
        """As another kind: integer, number, text, boolean, date or timestamp; NULL where that fails."""
        if kind not in KINDS:
            raise QueryError(f"cast: {what_was_given(kind)} is not a kind. Allowed: {', '.join(KINDS)}.")
        return Term(exp.cast(self.node, KINDS[kind], dialect="duckdb"))

    def concat(self, *others: object) -> Term:
        """Text after text."""
        node = operand(self)
        for other in others:
            node = exp.DPipe(this=node, expression=operand(other))
        return Term(node)

    def trunc(self, unit: str) -> Term:
        """The beginning of the year, quarter, month, week, day, hour, minute or second."""
        return Term(call("DATE_TRUNC", constant(unit), self.node))

    def diff(self, other: object, unit: str = "day") -> Term:
        """How many boundaries of `unit` lie from this date or time to another one."""
        return Term(call("DATE_DIFF", constant(unit), self.node, constant_or_term(other)))

    def shift(self, amount: int, unit: str = "day") -> Term:
        """This date or time some days, or other units, later; earlier where the amount is below 0."""
        interval = exp.Interval(this=exp.Literal.string(str(int(amount))), unit=exp.var(unit.upper()))
        return Term(exp.Add(this=operand(self), expression=interval))

    def over(self, *partition: object, order_by: object = (), descending: bool = False) -> Term:
        """An aggregate or window function over the rows that agree in `partition`, which holds the unit.

        order_by: one column or term, or several.
        """
        terms = order_by if isinstance(order_by, list | tuple) else [order_by]
        order = [exp.Ordered(this=column(t), desc=descending, nulls_first=False) for t in terms]
        window = exp.Window(this=self.node, partition_by=[column(p) for p in partition], over="OVER")
        if order:
            window.set("order", exp.Order(expressions=order))
        return Term(window, self._name)

    def where(self, condition: Term) -> Term:
        """An aggregate of the rows where a condition holds."""
        return Term(exp.Filter(this=self.node, expression=exp.Where(this=condition.node)), self._name)

    abs = _method("ABS", "Without its sign.")
    sign = _method("SIGN", "-1, 0 or 1.")
    floor = _method("FLOOR", "Rounded down.")
    ceil = _method("CEIL", "Rounded up.")
    round = _method("ROUND", "Rounded, to a number of decimals if given.")
    sqrt = _method("SQRT", "The square root; NULL below 0.")
    exp = _method("EXP", "e to its power.")
    power = _method("POWER", "To a constant power.")
    log = _method("LN", "The natural logarithm; NULL for 0 and below.")
    log10 = _method("LOG10", "The logarithm to base 10; NULL for 0 and below.")
    lower = _method("LOWER", "In small letters.")
    upper = _method("UPPER", "In capitals.")
    strip = _method("TRIM", "Without spaces at both ends.")
    lstrip = _method("LTRIM", "Without spaces at its beginning.")
    rstrip = _method("RTRIM", "Without spaces at its end.")
    reverse = _method("REVERSE", "Backwards.")
    length = _method("LENGTH", "The number of characters.")
    substr = _method("SUBSTR", "The part from a position (1 is the first), so many characters long.")
    left = _method("LEFT", "The first characters.")
    right = _method("RIGHT", "The last characters.")
    replace = _method("REPLACE", "With one text in the place of another.")
    starts_with = _method("STARTS_WITH", "Whether text begins so.")
    ends_with = _method("ENDS_WITH", "Whether text ends so.")
    contains = _method("CONTAINS", "Whether text holds another.")
    split_part = _method("SPLIT_PART", "The n-th part of a text between separators; '' beyond the last.")
    matches = _method("REGEXP_MATCHES", "Whether a regular expression is found in a text.")
    full_match = _method("REGEXP_FULL_MATCH", "Whether a regular expression fits a whole text.")
    epoch = _method("EPOCH", "The seconds since 1970-01-01.")
    fill_null = _method("COALESCE", "With a constant in the place of NULL.")

    year, quarter, month = _part("YEAR"), _part("QUARTER"), _part("MONTH")
    week, day, dow, doy = _part("WEEK"), _part("DAY"), _part("DOW"), _part("DOY")
    hour, minute, second = _part("HOUR"), _part("MINUTE"), _part("SECOND")
