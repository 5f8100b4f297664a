"""Row expressions: the generic walk, and intervals that hold what they say."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st

from hubbub.errors import InternalError
from hubbub.tables.columns import between, one_of
from hubbub.tables.expressions import (
    Arithmetic,
    Call,
    Case,
    Column,
    Compare,
    Expression,
    Literal,
    Negate,
    canonical,
    children,
    columns_of,
    rebuild,
    whole,
)
from hubbub.tables.kinds import Kind
from hubbub.tables.spans import span

A, B = Column("a", Kind.INTEGER), Column("b", Kind.NUMBER)
DECLARED = {"a": between(-3, 5), "b": one_of(0.5, 2, None)}

numbers: st.SearchStrategy[Expression] = st.recursive(
    st.sampled_from([A, B, Literal(2), Literal(Fraction(-1, 2)), Literal(0)]),
    lambda inner: st.one_of(
        st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "/", "//", "%", "DIV", "MOD"]), inner, inner),
        st.builds(Negate, inner),
        st.builds(lambda c, x, y: Case((Compare("<", c, Literal(1)),), (x,), y), inner, inner, inner),
        st.builds(lambda f, x: Call(f, (x,)), st.sampled_from(["ABS", "SIGN", "FLOOR", "CEIL", "CAST_INTEGER"]), inner),
        st.builds(lambda f, x, y: Call(f, (x, y)), st.sampled_from(["LEAST", "GREATEST", "COALESCE"]), inner, inner),
        st.builds(lambda x, y: Call("NULLIF", (x, y)), inner, inner),
    ),
    max_leaves=6,
)


def value(node: Expression, row: dict[str, Fraction]) -> Fraction | None:
    """The exact value of a numeric expression on one row; an oracle in rationals."""
    match node:
        case Column(name=name):
            return row[name]
        case Literal(value=number):
            return None if number is None else Fraction(number)  # type: ignore[arg-type]
        case Negate(operand=operand):
            inner = value(operand, row)
            return None if inner is None else -inner
        case Case(conditions=(Compare(left=left),), values=(yes,), default=no):
            decided = value(left, row)
            return value(yes if decided is not None and decided < 1 else no, row)
        case Call(name=name, arguments=arguments):
            found = [value(a, row) for a in arguments]
            known = [v for v in found if v is not None]
            if name == "NULLIF":
                return None if found[0] == found[1] else found[0]
            if not known or (found[0] is None and name not in ("LEAST", "GREATEST", "COALESCE")):
                return None
            return {
                "ABS": lambda: abs(known[0]),
                "SIGN": lambda: Fraction((known[0] > 0) - (known[0] < 0)),
                "FLOOR": lambda: Fraction(math.floor(known[0])),
                "CEIL": lambda: Fraction(math.ceil(known[0])),
                "CAST_INTEGER": lambda: Fraction(round(known[0])),
                "LEAST": lambda: min(known),
                "GREATEST": lambda: max(known),
                "COALESCE": lambda: known[0],
            }[name]()
        case Arithmetic(op=op, left=left, right=right):
            x, y = value(left, row), value(right, row)
            if x is None or y is None or (op in ("/", "//", "%", "DIV", "MOD") and y == 0):
                return None
            return {
                "+": lambda: x + y,
                "-": lambda: x - y,
                "*": lambda: x * y,
                "/": lambda: x / y,
                "//": lambda: Fraction(x // y),
                "%": lambda: x - y * (x // y),
                "DIV": lambda: Fraction(math.trunc(x / y)),
                "MOD": lambda: x - y * math.trunc(x / y),
            }[op]()
    raise AssertionError(node)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(numbers, st.integers(-3, 5), st.sampled_from([Fraction(1, 2), Fraction(2)]))
def test_an_interval_holds_every_value_of_declared_columns(node: Expression, a: int, b: Fraction) -> None:
    found = span(node, DECLARED)
    exact = value(node, {"a": Fraction(a), "b": b})
    if found is not None and exact is not None:
        assert found[0] is None or found[0] <= exact
        assert found[1] is None or exact <= found[1]
    if whole(node) and exact is not None:
        assert exact.denominator == 1
    assert found is not None or exact is None


def test_what_is_not_bounded_has_no_end() -> None:
    c = Column("c", Kind.NUMBER)
    assert span(Arithmetic("+", A, c), DECLARED) == (None, None)
    assert span(Arithmetic("/", B, A), DECLARED) == (None, None)
    assert span(Arithmetic("MOD", A, c), DECLARED) == (-3, 5)
    assert span(Arithmetic("MOD", c, A), DECLARED) == (-5, 5)
    assert span(Arithmetic("MOD", A, Literal(3)), DECLARED) == (-2, 2)
    assert span(Arithmetic("MOD", Call("ABS", (c,)), Literal(-3)), DECLARED) == (0, 3)
    assert span(Arithmetic("DIV", A, Literal(2)), DECLARED) == (-1, 2)
    assert span(Literal(None), {}) is None
    assert span(Call("ABS", (c,)), {}) == (0, None)
    assert span(Call("LEAST", (Call("GREATEST", (c, Literal(-2))), Literal(7))), {}) == (-2, 7)
    assert span(Call("EXTRACT", (Literal("MONTH"), Column("d", Kind.DATE))), {}) == (1, 12)
    low, high = span(Call("LN", (Call("EXP", (A,)),)), DECLARED) or (None, None)
    assert low is not None
    assert high is not None
    assert -3.0000001 < low <= -3
    assert 5 <= high < 5.0000001


@pytest.mark.parametrize(("name", "arguments"), [("FOO", (A,)), ("NULLIF", (A,))])
def test_a_call_is_of_a_known_function_with_enough_arguments(name: str, arguments: tuple[Expression, ...]) -> None:
    with pytest.raises(InternalError):
        Call(name, arguments)


@given(numbers)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_one_walk_reaches_every_node(node: Expression) -> None:
    assert rebuild(node, lambda child: child) == node
    for child in children(node):
        assert columns_of(child) <= columns_of(node)
    swapped = rebuild(node, lambda child: A if child == B else child)
    assert (canonical(swapped) == canonical(node)) == (swapped == node)


def test_constants_of_different_kinds_are_different_questions() -> None:
    forms = [repr(canonical(Literal(v))) for v in (1, Fraction(1), "1", True, None)]
    assert len(set(forms)) == len(forms)
