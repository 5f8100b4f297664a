"""The functions that build terms: columns, constants, choices, aggregates and window functions.

Text as an argument names a column. Aggregates are named after themselves and their column (`mean_age`), unless
`alias` says otherwise. In SQL they are COUNT, SUM, AVG, VAR_SAMP, VAR_POP, STDDEV_SAMP, STDDEV_POP, MEDIAN,
QUANTILE_CONT, MIN, MAX, COVAR_SAMP, COVAR_POP and CORR; further ones are made from their records (`MADE`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from hubbub.arguments import a_fraction
from hubbub.errors import ParameterError, what_was_given
from hubbub.keywords import named
from hubbub.tables.aggregates import FUNCTIONS, Function
from hubbub.verbs.terms import Term, call, column, constant, constant_or_term, operand, quoted

__all__ = [
    "THE_UNIT",
    "When",
    "coalesce",
    "col",
    "concat",
    "corr",
    "count",
    "covar",
    "dense_rank",
    "first",
    "greatest",
    "lag",
    "last",
    "lead",
    "least",
    "lit",
    "max",
    "mean",
    "median",
    "min",
    "n_distinct",
    "nullif",
    "quantile",
    "quotient",
    "rank",
    "remainder",
    "row_number",
    "std",
    "sum",
    "units",
    "var",
    "when",
]

THE_UNIT: Final = "HUBBUB_UNIT"
"""The placeholder of a table's unit column, until the builder that knows it puts it in."""


@named
def col(name: str, *, table: str | None = None) -> Term:
    """A column; `table` says whose, where a join leaves two of one name.

    >>> print(col("age") > 65)
    "age" > 65
    """
    return Term(exp.column(quoted(name), table=None if table is None else quoted(table)))


@named
def lit(value: object) -> Term:
    """A constant.

    >>> print(lit("O'Hara"))
    'O''Hara'
    """
    return Term(constant_or_term(value))


@dataclass(frozen=True)
class When:
    """A CASE under construction: conditions with their values."""

    pairs: tuple[tuple[exp.Expr, exp.Expr], ...]
    condition: Term | None = field(default=None)

    def then(self, value: object) -> When:
        """The value where the last condition holds."""
        if self.condition is None:
            raise ParameterError("then comes once after each when: hb.when(condition).then(value).")
        return When((*self.pairs, (self.condition.node, constant_or_term(value))))

    def when(self, condition: Term) -> When:
        """A further condition, for rows that no earlier one holds for."""
        if self.condition is not None:
            raise ParameterError("a when without its then; write hb.when(condition).then(value).when(...).")
        return When(self.pairs, condition)

    def otherwise(self, value: object) -> Term:
        """The value where no condition holds; this ends the CASE."""
        if self.condition is not None or not self.pairs:
            raise ParameterError("a when without its then; write hb.when(condition).then(value).otherwise(...).")
        ifs = [exp.If(this=c.copy(), true=v.copy()) for c, v in self.pairs]
        return Term(exp.Case(ifs=ifs, default=constant_or_term(value)))

    def end(self) -> Term:
        """The CASE without an otherwise: NULL where no condition holds."""
        return self.otherwise(None)


@named
def when(condition: Term) -> When:
    """The beginning of a CASE.

    >>> print(when(col("age") < 18).then("child").otherwise("adult"))
    CASE WHEN "age" < 18 THEN 'child' ELSE 'adult' END
    """
    return When((), condition)


@named
def coalesce(*values: object) -> Term:
    """The first value that is not NULL."""
    return Term(call("COALESCE", *map(column, values)))


@named
def nullif(value: object, other: object) -> Term:
    """The value, or NULL where it equals the other."""
    return Term(call("NULLIF", column(value), column(other)))


@named
def quotient(value: object, divisor: object) -> Term:
    """SQL's `//`, cut off toward 0: -3 of -7 and 2, where Python's `//` rounds down to -4."""
    return Term(exp.IntDiv(this=operand(_side(value)), expression=operand(_side(divisor))))


@named
def remainder(value: object, divisor: object) -> Term:
    """SQL's `%`, with the sign of the value: -1 of -7 and 2, where Python's `%` is 1."""
    return Term(exp.Mod(this=operand(_side(value)), expression=operand(_side(divisor))))


def _side(value: object) -> Term:
    return Term(column(value))


@named
def least(*values: object) -> Term:
    """The smallest value; NULLs are left out."""
    return Term(call("LEAST", *map(column, values)))


@named
def greatest(*values: object) -> Term:
    """The largest value; NULLs are left out."""
    return Term(call("GREATEST", *map(column, values)))


@named
def concat(*values: object) -> Term:
    """Texts one after the other."""
    first_, *rest = [Term(column(v)) for v in values] or [lit("")]
    return first_.concat(*rest)


def _named(word: str, node: exp.Expr, *arguments: object) -> Term:
    names = [Term(column(a)).name for a in arguments]
    return Term(node, "_".join([word, *(n for n in names if n)]) if all(names) else word)


@named
def count(of: object = None) -> Term:
    """Rows; or, of a column or term, the rows where it is not NULL."""
    if of is None:
        return Term(exp.Count(this=exp.Star()), "count")
    return _named("count", exp.Count(this=column(of)), of)


@named
def units(of: str | None = None) -> Term:
    """Units (people): COUNT(DISTINCT unit). The unit's column is that of the table, unless named."""
    node = exp.column(quoted(THE_UNIT if of is None else of))
    return Term(exp.Count(this=exp.Distinct(expressions=[node])), "units")


@named
def n_distinct(of: object) -> Term:
    """Different values that are not NULL."""
    return _named("n_distinct", exp.Count(this=exp.Distinct(expressions=[column(of)])), of)


@named
def sum(of: object) -> Term:
    """The sum."""
    return _named("sum", exp.Sum(this=column(of)), of)


@named
def mean(of: object) -> Term:
    """The mean of the values that are not NULL."""
    return _named("mean", exp.Avg(this=column(of)), of)


def _freedom(ddof: int) -> str:
    if isinstance(ddof, bool) or ddof not in (0, 1):
        raise ParameterError(
            f"ddof={what_was_given(ddof)}: allowed are 1 (of a sample) and 0 (of the whole population)."
        )
    return "SAMP" if ddof else "POP"


@named
def var(of: object, *, ddof: int = 1) -> Term:
    """The variance: of a sample (ddof=1), or of the whole population (ddof=0)."""
    return _named("var", call(f"VAR_{_freedom(ddof)}", column(of)), of)


@named
def std(of: object, *, ddof: int = 1) -> Term:
    """The standard deviation: of a sample (ddof=1), or of the whole population (ddof=0)."""
    return _named("std", call(f"STDDEV_{_freedom(ddof)}", column(of)), of)


@named
def median(of: object) -> Term:
    """The median."""
    return _named("median", call("MEDIAN", column(of)), of)


@named
def quantile(of: object, fraction: float) -> Term:
    """The value below which a fraction of the values lies.

    Raises ParameterError for a fraction outside [0, 1].
    """
    share = constant(a_fraction(fraction, "quantile: fraction"))
    return _named("quantile", call("QUANTILE_CONT", column(of), share), of)


@named
def min(of: object) -> Term:
    """The smallest value, found privately as a quantile."""
    return _named("min", exp.Min(this=column(of)), of)


@named
def max(of: object) -> Term:
    """The largest value, found privately as a quantile."""
    return _named("max", exp.Max(this=column(of)), of)


@named
def covar(of: object, other: object, *, ddof: int = 1) -> Term:
    """The covariance: of a sample (ddof=1), or of the whole population (ddof=0)."""
    return _named("covar", call(f"COVAR_{_freedom(ddof)}", column(of), column(other)), of, other)


@named
def corr(of: object, other: object) -> Term:
    """Pearson's correlation."""
    return _named("corr", call("CORR", column(of), column(other)), of, other)


def _made(function: Function) -> Callable[..., Term]:
    """The verb of an aggregate, from its record: columns or terms, as many as it looks at, then constants."""
    names = function.names

    def verb(*arguments: object) -> Term:
        if len(arguments) < function.arity:
            raise ParameterError(f"{names.verb} takes {names.forms[0]}, a column or term for each letter.")
        columns, constants = arguments[: function.arity], arguments[function.arity :]
        node = call(names.spellings[0], *map(column, columns), *map(constant, constants))
        return _named(names.verb, node, *columns)

    verb.__name__ = verb.__qualname__ = names.verb
    verb.__doc__ = f"{names.forms[0]} in SQL."
    return verb


MADE: Final = {f.names.verb: _made(f) for f in FUNCTIONS.values() if f.names.verb}
"""The verbs of aggregates whose records name one; each is also a name of `hubbub` itself."""


@named
def row_number() -> Term:
    """The row's number in its window, from 1; needs `.over(unit, order_by=...)`."""
    return Term(call("ROW_NUMBER"))


@named
def rank() -> Term:
    """The row's rank in its window, with gaps after ties."""
    return Term(call("RANK"))


@named
def dense_rank() -> Term:
    """The row's rank in its window, without gaps."""
    return Term(call("DENSE_RANK"))


def _shifted(word: str, value: object, steps: int) -> Term:
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
        raise ParameterError(f"{word.lower()}: steps={what_was_given(steps)}; allowed is a whole number from 0.")
    more = () if steps == 1 else (exp.Literal.number(str(steps)),)
    return Term(call(word, column(value), *more))


@named
def lag(of: object, steps: int = 1) -> Term:
    """The value some rows before, in its window."""
    return _shifted("LAG", of, steps)


@named
def lead(of: object, steps: int = 1) -> Term:
    """The value some rows after, in its window."""
    return _shifted("LEAD", of, steps)


@named
def first(of: object) -> Term:
    """The first value of its window."""
    return Term(call("FIRST_VALUE", column(of)))


@named
def last(of: object) -> Term:
    """The last value of its window, up to the row itself."""
    return Term(call("LAST_VALUE", column(of)))
