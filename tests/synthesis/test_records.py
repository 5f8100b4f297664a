"""Rows to codes and back, and constraints: functions of one row and of declarations only."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hubbub.errors import ParameterError
from hubbub.synthesis import Categories, Constraint, Domain, Edges, Schema, constraint
from seeded import SeededBits

HOSTILE = [
    None, math.nan, math.inf, -math.inf, 1e308, -0.0, "", "x", b"bytes", [], {}, 2**70, True, datetime.date(2025, 1, 1)
]  # fmt: skip


def people() -> Schema:
    return Schema(
        {
            "age": Edges([0, 18, 65, 120], whole=True, nullable=True),
            "income": Edges.between(0, 1000, bins=4),
            "ward": Categories("A", "B", None, other="elsewhere"),
            "smokes": Categories("no", "yes"),
        }
    )


def test_a_row_s_code_depends_on_that_row_alone() -> None:
    rows = {"age": [17, None, 80], "income": [0, 999, 5000], "ward": ["A", None, "Z"], "smokes": ["no", "yes", "no"]}
    together = people().encode(rows)
    for i in range(3):
        alone = people().encode({name: [column[i]] for name, column in rows.items()})
        assert np.array_equal(alone[0], together[i])
    assert together.tolist() == [[0, 0, 0, 0], [3, 3, 2, 1], [2, 3, 3, 0]]


@pytest.mark.parametrize("value", HOSTILE)
def test_no_value_raises_or_makes_a_new_code(value: object) -> None:
    rows = {"age": [value], "income": [value], "ward": [value], "smokes": ["no"]}
    codes = people().encode(rows)
    people().domain.records(codes)
    assert len(codes) == 1


def test_undeclared_categories_drop_the_row_unless_an_other_is_declared() -> None:
    rows = {"age": [1, 2], "income": [1, 2], "ward": ["?", "A"], "smokes": ["maybe", "yes"]}
    assert people().encode(rows).tolist() == [[0, 0, 0, 1]]


def test_one_and_true_and_text_are_different_categories() -> None:
    column = Categories(1, True, "1", None)
    assert column.codes([1, 1.0, True, "1", None, math.nan, np.int64(1)]).tolist() == [0, 0, 1, 2, 3, 3, 0]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 1)), max_size=20))
@settings(max_examples=50, deadline=None)
def test_decoding_and_encoding_again_gives_the_codes(rows: list[tuple[int, ...]]) -> None:
    codes = np.array(rows, dtype=np.int64).reshape(-1, 4)
    table = people().decode(codes, bits=SeededBits("decode"))
    # The value "elsewhere" is itself undeclared, so it comes back as `other`.
    assert np.array_equal(people().encode(table), codes)


def test_whole_bins_hold_each_whole_number_once() -> None:
    column = Edges.between(0, 99, bins=32, whole=True)
    codes = column.codes(list(range(100)))
    assert column.bins <= 32
    assert np.bincount(codes).sum() == 100
    assert Edges.between(0, 9, bins=32, whole=True).size == 10


@pytest.mark.parametrize("edges", [[], [1], [1, 1], [2, 1], [0, math.inf], [0, math.nan]])
def test_edges_that_are_none_are_refused(edges: list[float]) -> None:
    with pytest.raises(ParameterError, match="ascending"):
        Edges(edges)


def test_a_missing_domain_says_how_to_declare_it() -> None:
    with pytest.raises(ParameterError, match="never read from private rows"):
        Schema({"age": None})  # type: ignore[dict-item]
    with pytest.raises(ParameterError, match="never read from private rows"):
        Categories()
    with pytest.raises(ParameterError, match="has no column 'age'"):
        people().encode({"ward": []})


def test_a_constraint_in_words_is_the_table_it_says() -> None:
    found = constraint("age < 18 and ward != A implies smokes = no", people())
    assert found.columns == ("age", "ward", "smokes")
    for age in range(4):
        for ward in range(4):
            for smokes in range(2):
                # Missing values (age 3, ward 2) fulfil no condition.
                bound = age == 0 and ward in (1, 3)
                assert found.allowed[age, ward, smokes] == (not bound or smokes == 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age < 18", "implies"),
        ("age < 20 implies smokes = no", "declare an edge there"),
        ("height < 20 implies smokes = no", "no column 'height'"),
        ("age < x implies smokes = no", "give a number"),
        ("age implies smokes = no", "not a condition"),
        ("age = 18 implies smokes = no", "both sides"),
    ],
)
def test_constraints_that_cannot_be_decided_by_codes_are_refused(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        constraint(text, people())


def test_classes_tell_apart_what_a_constraint_tells_apart() -> None:
    found = Constraint(("a", "b"), np.array([[True, True], [True, True], [True, False]]))
    assert found.classes("a")[0] == found.classes("a")[1] != found.classes("a")[2]
    assert len(set(found.classes("b").tolist())) == 2
    turned = Constraint(("b", "a"), found.allowed.T).over(Domain(("a", "b"), (3, 2)))
    assert np.array_equal(turned.allowed, found.allowed)


def test_constraints_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ParameterError, match="allows nothing"):
        Constraint(("a",), np.array([False, False]))
    with pytest.raises(ParameterError, match="axes"):
        Constraint(("a", "b"), np.array([True]))
    with pytest.raises(ParameterError, match="shape"):
        Constraint(("a",), np.array([True])).over(Domain(("a",), (2,)))
