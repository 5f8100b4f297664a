"""Row expressions from sqlglot's tree, through an allow-list of node types.

One `match`, no fallback: a node type that has no case is refused by name, with a caret.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Literal as OneWord

from sqlglot import exp

from hubbub.errors import QueryError
from hubbub.remedies import Remedy, Rewrite
from hubbub.sql.bind.calendars import calendar_call, iso_year
from hubbub.sql.bind.constants import check_constant, number_of, temporal
from hubbub.sql.bind.kinds import IN_WORDS, ONE_KIND, wrong_kind
from hubbub.sql.bind.like import like
from hubbub.sql.bind.rewritten import compared, constant_date, extracted, rewritten, with_interval
from hubbub.sql.bind.zoned import (
    Moments,
    by_moments,
    cast_moment,
    no_offset,
    of_one_clock,
    only_here,
    same_moment,
    says_moment,
    says_offset,
)
from hubbub.sql.text.arguments import unread
from hubbub.sql.text.calls import with_other_arguments
from hubbub.sql.text.functions import cast_name, named
from hubbub.sql.text.hints import ALLOWED, instead, ways
from hubbub.sql.text.locate import in_place, refuse, written
from hubbub.sql.text.repairs import called_otherwise, without_brackets, without_order
from hubbub.tables.aggregates import names
from hubbub.tables.expressions import (
    Arithmetic,
    ArithmeticOp,
    Call,
    Case,
    Compare,
    CompareOp,
    Expression,
    InList,
    IsNull,
    Literal,
    Logic,
    Negate,
    Not,
    children,
    common_kind,
    comparable,
)
from hubbub.tables.functions import FUNCTIONS
from hubbub.tables.growth import LARGEST, LONGEST, characters
from hubbub.tables.kinds import NUMERIC, TEMPORAL, Kind

__all__ = ["ExpressionReader", "function_name"]

_ARITHMETIC: dict[type[exp.Expr], ArithmeticOp] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "DIV",
    exp.Mod: "MOD",
}
_SIGNS = {"DIV": "//", "MOD": "%"}
_COMPARE: dict[type[exp.Expr], CompareOp] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
MAX_DEPTH = 100
_SAME = {
    Kind.INTEGER: "CAST_INTEGER",
    Kind.NUMBER: "CAST_NUMBER",
    Kind.TEXT: "CAST_TEXT",
    Kind.BOOLEAN: "CAST_BOOLEAN",
    Kind.DATE: "CAST_DATE",
    Kind.TIMESTAMP: "CAST_TIMESTAMP",
}
_CASTABLE = {
    *((cast, kind) for kind, cast in _SAME.items()),
    *(("CAST_TEXT", kind) for kind in _SAME),
    *((cast, Kind.TEXT) for cast in _SAME.values()),
    *(("CAST_INTEGER", kind) for kind in (Kind.NUMBER, Kind.BOOLEAN)),
    *(("CAST_NUMBER", kind) for kind in (Kind.INTEGER, Kind.BOOLEAN)),
    ("CAST_BOOLEAN", Kind.INTEGER),
    ("CAST_DATE", Kind.TIMESTAMP),
    ("CAST_TIMESTAMP", Kind.DATE),
}

_CALLED: dict[type[exp.Expr], str] = {
    exp.Array: "a list, [...],",
    exp.Bracket: "an element, x[...],",
    exp.Struct: "a structure, {...},",
    exp.Lambda: "a lambda",
    exp.Tuple: "a row, (a, b),",
}


def function_name(node: exp.Expr, text: str) -> str:
    """What a reader would call this piece of SQL."""
    if type(node) in _CALLED:
        return _CALLED[type(node)]
    if isinstance(node, exp.RegexpLike) and "start" not in node.meta:
        return "the operator ~"
    if isinstance(node, exp.Func):
        return f"the function {written(node, text)}"
    return f"{node.key.upper().replace('_', ' ')}"


_ORDERLESS = (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count, exp.Median)
"""Aggregates that are the same in whichever order the rows come."""
_NAMED = tuple(name for name in FUNCTIONS if not name.startswith("CAST_"))
"""The functions that SQL calls by their name."""
_FORMS = {"SPLIT_PART": "SPLIT_PART(x, ',', 1)", "EXTRACT": "EXTRACT(month FROM day)", "REPLACE": "REPLACE(x, 'a', '')"}


@dataclass(frozen=True)
class ExpressionReader:
    """Reads expressions of one text.

    column: turns a column (or, above the aggregate, a key or an alias) into an expression.
    aggregate: turns an aggregate into an expression, or refuses it.
    known: an expression that a whole piece of SQL stands for (a term of GROUP BY), tried first; None for no such.
    subquery: reads a sub-query (scalar, EXISTS, or IN with one); None where none may stand.
    """

    text: str
    column: Callable[[exp.Column], Expression]
    aggregate: Callable[[exp.Expr], Expression]
    known: Callable[[exp.Expr], Expression | None] = lambda _: None
    subquery: Callable[[exp.Expr], Expression | None] = lambda _: None
    moments: dict[str, Moments] = field(default_factory=dict)
    depth: list[None] = field(default_factory=list)
    sizes: dict[int, tuple[Expression, int]] = field(default_factory=dict)

    def refuse(self, message: str, node: exp.Expr, *, remedy: Remedy | Sequence[Remedy] = ()) -> QueryError:
        return refuse(message, self.text, node, remedy=remedy)

    def only_known_arguments(self, *nodes: exp.Expr) -> None:
        """Refuse a modifier that would be ignored."""
        for node in nodes:
            modifier = unread(node)
            if isinstance(node, exp.Column) and modifier is not None:
                way = in_place(f"{node.table}.{node.name}", self.text, node)
                raise self.refuse(
                    f"{node.sql()}: a column is named by itself or with its table: {way.example}.", node, remedy=way
                )
            if isinstance(node.parent, _ORDERLESS) and isinstance(node, exp.Order) and modifier is not None:
                plain = without_order(self.text, node.expressions[0])
                hint = "".join(f": {way.example}" for way in plain)
                said = f"ORDER BY inside an aggregate changes nothing here; leave it out{hint}."
                raise self.refuse(said, node, remedy=plain)
            if modifier is not None:
                raise self.refuse(f"{modifier} is not supported here.", node)

    def condition(self, node: exp.Expr, where: str) -> Expression:
        """A truth value.

        Raises QueryError where the expression is something else.
        """
        read = self.read(node)
        if read.kind not in (Kind.BOOLEAN, Kind.NULL):
            says, way = wrong_kind(f"{where} needs a condition", read.kind, (Kind.BOOLEAN,))
            raise self.refuse(says, node, remedy=way)
        return read

    def number(self, node: exp.Expr, where: str) -> Expression:
        read = self.read(node)
        if read.kind not in NUMERIC and read.kind is not Kind.NULL:
            says, way = wrong_kind(f"{where} needs a number", read.kind, NUMERIC)
            raise self.refuse(says, node, remedy=way)
        return read

    def read(self, node: exp.Expr) -> Expression:
        """One expression.

        Raises QueryError, with a caret, for anything that is not on the allow-list or nested too deeply.
        """
        self.depth.append(None)
        try:
            if len(self.depth) > MAX_DEPTH:
                raise QueryError(f"the expression is nested more than {MAX_DEPTH} deep; write it flatter.")
            if not isinstance(node, exp.Expr):
                raise QueryError("an argument is missing: a function is written without what it looks at.")
            stands_for = self.known(node)
            expression = self._read(node) if stands_for is None else stands_for
            if self._size(expression) > LARGEST:
                raise self.refuse(
                    "written out, this expression is too large: its parts stand in it many times over (by CASE with a "
                    "subject, BETWEEN, IS DISTINCT FROM, or sub-queries that use a column several times).",
                    node,
                )
            return expression
        finally:
            self.depth.pop()

    def _size(self, node: Expression) -> int:
        """How many parts an expression has, constants left out; one that stands in it twice counts twice."""
        if isinstance(node, Literal):
            return 0
        known = self.sizes.get(id(node))
        if known is None:
            known = self.sizes[id(node)] = (node, 1 + sum(map(self._size, children(node))))
        return known[1]

    def _read(self, node: exp.Expr) -> Expression:
        if isinstance(node, exp.AggFunc | exp.Window | exp.Filter | exp.WithinGroup | exp.IgnoreNulls):
            return self.aggregate(node)
        if isinstance(node, exp.Subquery | exp.Exists) or (isinstance(node, exp.In) and node.args.get("query")):
            expression = self.subquery(node)
            if expression is None:
                raise self.refuse("a sub-query is not supported here; ask its question on its own.", node)
            return expression
        dated = calendar_call(self, node)
        if dated is not None:
            return dated
        if type(node) in _CALLED or (isinstance(node, exp.Func) and unread(node) and named(node) is None):
            raise self._unsupported(node)
        self.only_known_arguments(node)
        if type(node) in _ARITHMETIC:
            return self.arithmetic(_ARITHMETIC[type(node)], node)
        if type(node) in _COMPARE:
            return self._compare(_COMPARE[type(node)], node)
        match node:
            case exp.Paren():
                return self.read(node.this)
            case exp.Column():
                return self.column(node)
            case exp.Literal() | exp.Boolean() | exp.Null():
                return self._constant(node)
            case exp.Cast():
                return self._cast(node)
            case exp.If():
                return self._if(node)
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                return self._distinct(node)
            case exp.Neg():
                return self._negate(node)
            case exp.And():
                return self._logic("AND", node)
            case exp.Or():
                return self._logic("OR", node)
            case exp.Not():
                return Not(self.condition(node.this, "NOT"))
            case exp.Between():
                return self._between(node)
            case exp.In() if not isinstance(node.this, exp.Tuple):
                return self._in(node)
            case exp.Is():
                return self._is(node)
            case exp.Like() | exp.ILike() | exp.Escape() if not isinstance(node.expression, exp.Any | exp.All):
                return like(self, node)
            case exp.Case():
                return self._case(node)
            case _:
                return self._function(node)

    def _function(self, node: exp.Expr) -> Expression:
        expression = rewritten(self, node)
        if expression is not None:
            return expression
        called = named(node)
        if called is not None:
            return self.call(node, *called)
        raise self._unsupported(node)

    def _unsupported(self, node: exp.Expr) -> QueryError:
        called = (written(node, self.text), (*_NAMED, *names())) if isinstance(node, exp.Func) else ("", ())
        other = with_other_arguments(self.text, node, called[0])
        if other is not None:
            return self.refuse(other[0], node, remedy=other[1])
        named = without_brackets(self.text, node)
        hint = "".join(f"A name stands without brackets: {way.example}. " for way in named)
        return refuse(
            f"{function_name(node, self.text)} is not supported. {hint or instead(*called)}{ALLOWED}",
            self.text,
            node,
            remedy=named or called_otherwise(self.text, called[0], ways(*called)),
        )

    def arithmetic(self, op: ArithmeticOp, node: exp.Expr) -> Expression:
        if isinstance(node.this, exp.Interval) and op == "+":
            node = exp.Add(this=node.expression, expression=node.this)
        if isinstance(node.expression, exp.Interval):
            return with_interval(self, op, node)
        left, right = self.read(node.this), self.read(node.expression)
        date = constant_date(left, right, 1 if op == "+" else -1) if op in "+-" else None
        if date is not None:
            return date
        if op == "-" and left.kind is Kind.DATE and right.kind is Kind.DATE:
            return Call("DATE_DIFF", (Literal("DAY"), right, left))
        if op == "-" and {left.kind, right.kind} <= TEMPORAL:
            raise self.refuse(
                "a time less a time is a duration, which is not a number; write DATE_DIFF('hour', start, end), or "
                "EXTRACT(epoch FROM end - start) for seconds.",
                node,
                remedy=Rewrite("DATE_DIFF('hour', start, end)"),
            )
        for side, place in ((left, node.this), (right, node.expression)):
            if side.kind not in NUMERIC and side.kind is not Kind.NULL:
                says, way = wrong_kind(f"'{_SIGNS.get(op, op)}' needs a number", side.kind, NUMERIC)
                raise self.refuse(says, place, remedy=way)
        return Arithmetic(op, left, right)

    def _logic(self, word: OneWord["AND", "OR"], node: exp.Expr) -> Expression:
        kind = exp.And if word == "AND" else exp.Or
        terms: list[exp.Expr] = []
        while isinstance(node, kind):  # a chain of a thousand ANDs is a left-deep tree
            terms.append(node.expression)
            node = node.this
        terms.append(node)
        return Logic(word, tuple(self.condition(term, word) for term in reversed(terms)))

    def _negate(self, node: exp.Expr) -> Expression:
        operand = self.number(node.this, "'-'")
        if isinstance(operand, Literal) and isinstance(operand.value, int | Fraction):
            return Literal(-operand.value)
        return Negate(operand)

    def _constant(self, node: exp.Expr) -> Literal:
        match node:
            case exp.Null():
                return Literal(None)
            case exp.Boolean():
                return Literal(bool(node.this))
            case exp.Literal(is_string=True):
                return Literal(str(node.this))
            case exp.Literal():
                return Literal(number_of(self, node))
        raise self.refuse("this is not a constant.", node)

    def _cast(self, node: exp.Expr) -> Expression:
        """A cast that gives NULL where a value has no counterpart; DATE '...' and TIMESTAMP '...' are constants."""
        target = cast_name(node.args["to"])
        moment = cast_moment(self, node, target)
        if moment is not None:
            return moment
        if target in ("CAST_DATE", "CAST_TIMESTAMP") and isinstance(node.this, exp.Literal) and node.this.is_string:
            literal = temporal(self, str(node.this.this), node, strictly=target == "CAST_DATE")
            if target == "CAST_DATE" or isinstance(literal.value, dt.datetime):
                return literal
            assert isinstance(literal.value, dt.date)
            return Literal(dt.datetime(literal.value.year, literal.value.month, literal.value.day))
        operand = self.read(node.this)
        if target is None or ((target, operand.kind) not in _CASTABLE and operand.kind is not Kind.NULL):
            raise self.refuse(
                f"a cast of {IN_WORDS[operand.kind]} to {node.args['to'].sql('duckdb')} is not supported; there are "
                "BIGINT, DOUBLE, VARCHAR, BOOLEAN, DATE and TIMESTAMP, without widths.",
                node,
                remedy=Rewrite("DOUBLE"),
            )
        if target == _SAME.get(operand.kind):
            return operand
        if target == "CAST_TEXT" and operand.kind is Kind.NUMBER and _of_integers(operand):
            operand = Call("CAST_INTEGER", (operand,))  # computed in doubles here, a whole number in SQL: 6, not 6.0
        return Call(target, (operand,))

    def _if(self, node: exp.Expr) -> Expression:
        default = node.args.get("false")
        yes, no = self.read(node.args["true"]), self.read(default) if default else Literal(None)
        return self._one_kind(Case((self.condition(node.this, "IF"),), (yes,), no), (yes, no), "IF", node)

    def _distinct(self, node: exp.Expr) -> Expression:
        left, right = self.aligned(self.read(node.this), self.read(node.expression), node)
        both = Logic("AND", (IsNull(left), IsNull(right)))
        known = Logic("AND", (Not(IsNull(left)), Not(IsNull(right)), Compare("=", left, right)))
        same = Logic("OR", (both, known))
        return same if isinstance(node, exp.NullSafeEQ) else Not(same)

    def _one_kind(self, result: Expression, parts: tuple[Expression, ...], word: str, node: exp.Expr) -> Expression:
        of_one_clock(self, node, *parts)
        for part in parts:
            if not comparable(result.kind, part.kind) or part.kind is Kind.OTHER:
                raise self.refuse(
                    f"the values of {word} must be of one kind; here {IN_WORDS[result.kind]} and "
                    f"{IN_WORDS[part.kind]}. Write {ONE_KIND.example}.",
                    node,
                    remedy=ONE_KIND,
                )
        return result

    def call(self, node: exp.Expr, name: str, nodes: list[exp.Expr]) -> Expression:
        arguments = extracted(self, nodes[0].name, nodes[1]) if name == "EXTRACT" and len(nodes) == 2 else None
        if arguments is not None:
            return arguments
        return self.applied(node, name, nodes, tuple(self.read(argument) for argument in nodes))

    def applied(
        self, node: exp.Expr, name: str, nodes: list[exp.Expr], arguments: tuple[Expression, ...]
    ) -> Expression:
        """A function of arguments that were read: read again at each depth, they would be read 2^depth times."""
        function = FUNCTIONS[name]
        if name == "EXTRACT" and arguments[0] == Literal("ISOYEAR") and arguments[1].kind in TEMPORAL:
            return iso_year(arguments[1])
        if name == "CONCAT":
            arguments = tuple(Call("CAST_TEXT", (a,)) if a.kind is Kind.INTEGER else a for a in arguments)
        if len(arguments) < function.least or (len(arguments) > len(function.takes) and not function.more):
            way = Rewrite(_FORMS.get(name) or f"{name}({', '.join('xyz'[: function.least])})")
            said = f"{name} does not take {len(arguments)} arguments; write {way.example}."
            raise self.refuse(said, node, remedy=way)
        for i, argument in enumerate(arguments):
            takes = function.takes[min(i, len(function.takes) - 1)]
            if argument.kind not in takes or argument.kind is Kind.OTHER:
                words = " or ".join(sorted({IN_WORDS[k] for k in takes - {Kind.NULL, Kind.OTHER}}))
                says, way = wrong_kind(f"{name} takes {words} here", argument.kind, takes)
                raise self.refuse(says, nodes[i], remedy=way)
            if i in function.constants:
                check_constant(self, name, argument, nodes[i])
        of_one_clock(self, node, *arguments)
        call = Call(name, arguments)
        self.check_length(call, node)
        return (
            self._one_kind(call, arguments, name, node)
            if function.result_kind is None and name != "DATE_TRUNC"
            else call
        )

    def check_length(self, call: Call, node: exp.Expr) -> None:
        """Refuse what would make texts too long."""
        if characters(call) > LONGEST:
            raise self.refuse(
                "this would make texts too long; replace and join less, or cut first: LEFT(x, 1000).",
                node,
                remedy=Rewrite("LEFT(x, 1000)"),
            )

    def _compare(self, op: CompareOp, node: exp.Expr) -> Expression:
        durations = compared(self, op, node)
        if durations is not None:
            return durations
        left, right = self.aligned(self.read(node.this), self.read(node.expression), node)
        return Compare(op, left, right)

    def aligned(self, left: Expression, right: Expression, node: exp.Expr) -> tuple[Expression, Expression]:
        """The two sides, a text constant beside a date read as a date, and moments by moments."""
        moments = by_moments(self, left, right, node)
        if moments is not None:
            return moments
        of_one_clock(self, node, left, right)
        left, right = self._as_temporal(left, right, node), self._as_temporal(right, left, node)
        if not comparable(left.kind, right.kind):
            raise self.refuse(
                f"{IN_WORDS[left.kind]} cannot be compared with {IN_WORDS[right.kind]}; write both sides in one kind: "
                f"{ONE_KIND.example}.",
                node,
                remedy=ONE_KIND,
            )
        return left, right

    def _as_temporal(self, side: Expression, other: Expression, node: exp.Expr) -> Expression:
        if isinstance(side, Literal) and isinstance(side.value, str) and other.kind in (Kind.DATE, Kind.TIMESTAMP):
            if not only_here(self):
                no_offset(self, side.value, node)
            return temporal(self, side.value, node)
        return side

    def _between(self, node: exp.Expr) -> Expression:
        if says_moment(self, node.args["low"]) or says_moment(self, node.args["high"]):
            sides = (exp.GTE, node.args["low"]), (exp.LTE, node.args["high"])
            return Logic("AND", tuple(self.read(kind(this=node.this, expression=end)) for kind, end in sides))
        value = self.read(node.this)
        value_low, low = self.aligned(value, self.read(node.args["low"]), node)
        value_high, high = self.aligned(value, self.read(node.args["high"]), node)
        return Logic("AND", (Compare(">=", value_low, low), Compare("<=", value_high, high)))

    def _in(self, node: exp.Expr) -> Expression:
        if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
            raise self.refuse(
                "IN with a sub-query is not supported; list the values: IN (1, 2).", node, remedy=Rewrite("IN (1, 2)")
            )
        operand = self.read(node.this)
        moments = [says_moment(self, item) for item in node.expressions]
        offsets = (item.is_string and says_offset(item.this) for item in node.expressions)
        if operand.kind is Kind.TIMESTAMP and (any(moments) or any(offsets)):
            return Logic("OR", tuple(map(partial(self._same, operand, node), node.expressions, moments)))
        values: list[Literal] = []
        kind = operand.kind
        for item in node.expressions:
            value = self._as_temporal(self.read(item), operand, item)
            if not isinstance(value, Literal):
                raise self.refuse(
                    "IN takes constants only; for others write x = y OR x = 1.", item, remedy=Rewrite("x = y")
                )
            if not comparable(kind, value.kind):
                raise self.refuse(
                    f"{IN_WORDS[kind]} cannot be compared with {IN_WORDS[value.kind]}; write both in one kind: "
                    f"{ONE_KIND.example}.",
                    item,
                    remedy=ONE_KIND,
                )
            values.append(value)
            kind = common_kind((kind, value.kind))
        return InList(operand, tuple(values))

    def _same(self, operand: Expression, node: exp.Expr, item: exp.Expr, moment: bool) -> Expression:
        if moment:
            return same_moment(self, operand, item, node)
        return Compare("=", *self.aligned(operand, self.read(item), item))

    def _is(self, node: exp.Expr) -> Expression:
        operand = self.read(node.this)
        match node.expression:
            case exp.Null():
                return IsNull(operand)
            case exp.Boolean(this=truth) if operand.kind in (Kind.BOOLEAN, Kind.NULL):
                return Logic("AND", (Not(IsNull(operand)), operand if truth else Not(operand)))
        raise self.refuse(
            "IS takes NULL, TRUE or FALSE; for others write x IS NOT DISTINCT FROM y.",
            node,
            remedy=Rewrite("x IS NOT DISTINCT FROM y"),
        )

    def _case(self, node: exp.Expr) -> Expression:
        subject = node.args.get("this")
        operand = None if subject is None else self.read(subject)
        conditions, values = [], []
        for branch in node.args["ifs"]:
            self.only_known_arguments(branch)
            if operand is None:
                conditions.append(self.condition(branch.this, "WHEN"))
            else:
                left, right = self.aligned(operand, self.read(branch.this), branch.this)
                conditions.append(Compare("=", left, right))
            values.append(self.read(branch.args["true"]))
        default = node.args.get("default")
        case = Case(tuple(conditions), tuple(values), self.read(default) if default else Literal(None))
        return self._one_kind(case, (*case.values, case.default), "CASE", node)


def _of_integers(node: Expression) -> bool:
    """Whether SQL takes an expression for a whole number: + - * // % of whole numbers."""
    match node:
        case Arithmetic(op=op, left=left, right=right):
            return op != "/" and _of_integers(left) and _of_integers(right)
        case Negate(operand=operand):
            return _of_integers(operand)
    return node.kind is Kind.INTEGER
