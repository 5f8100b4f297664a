"""Row expressions: the generic walk, and intervals that hold what they say."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings, strategies as st

from hubbub.tables.declare import between, one_of
from hubbub.tables.expressions import (
    Arithmetic,
    Case,
    Column,
    Compare,
    Expression,
    Interval,
    Literal,
    Negate,
    canonical,
    children,
    columns_of,
    interval,
    rebuild,
    whole,
)
from hubbub.tables.kinds import Kind

A, B = Column("a", Kind.INTEGER), Column("b", Kind.NUMBER)
DECLARED = {"a": between(-3, 5), "b": one_of(0.5, 2, None)}

numbers: st.SearchStrategy[Expression] = st.recursive(
    st.sampled_from([A, B, Literal(2), Literal(Fraction(-1, 2)), Literal(0)]),
    lambda inner: st.one_of(
        st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner, inner),
        st.builds(Negate, inner),
        st.builds(lambda c, x, y: Case((Compare("<", c, Literal(1)),), (x,), y), inner, inner, inner),
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
        case Arithmetic(op=op, left=left, right=right):
            x, y = value(left, row), value(right, row)
            if x is None or y is None or (op in ("/", "//", "%") and y == 0):
                return None
            return {
                "+": lambda: x + y,
                "-": lambda: x - y,
                "*": lambda: x * y,
                "/": lambda: x / y,
                "//": lambda: Fraction(x // y),
                "%": lambda: x - y * (x // y),
            }[op]()
    raise AssertionError(node)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(numbers, st.integers(-3, 5), st.sampled_from([Fraction(1, 2), Fraction(2)]))
def test_an_interval_holds_every_value_of_declared_columns(node: Expression, a: int, b: Fraction) -> None:
    found = interval(node, DECLARED)
    exact = value(node, {"a": Fraction(a), "b": b})
    if isinstance(found, Interval) and exact is not None:
        assert found.low <= exact <= found.high
    if whole(node) and exact is not None:
        assert exact.denominator == 1
    assert found is not None or exact is None


def test_a_missing_bound_is_named() -> None:
    assert interval(Arithmetic("+", A, Column("c", Kind.NUMBER)), DECLARED) == "c"
    assert interval(Arithmetic("/", B, A), DECLARED) == ""
    assert interval(Literal(None), {}) is None


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
