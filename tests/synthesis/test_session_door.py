"""What a session sells: bounded rows, a price from declarations alone, a stored form that comes back."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hubbub.accounting import cost
from hubbub.errors import ParameterError, PolicyError
from hubbub.synthesis import Categories, Edges, Schema
from hubbub.synthesis.session_adapter import SynthesisQuestion, bounded, declared, packed, unpacked
from seeded import SeededBits

COLUMNS = {"age": {"between": [0, 99]}, "ward": {"one_of": ["A", "B"], "null": True}}
ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 3), st.integers(0, 3)), max_size=30)


@given(ROWS, st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_a_unit_keeps_the_same_rows_whoever_else_is_there_and_never_more_than_its_bound(
    rows: list[tuple[int, int, int]], bound: int
) -> None:
    codes = np.array([r[1:] for r in rows], dtype=np.int64).reshape(-1, 2)
    owners = [None if r[0] == 0 else r[0] for r in rows]
    together = sorted(map(tuple, bounded(codes, owners, bound).tolist()))
    apart = []
    for unit in {1, 2, 3, 4}:
        own = [i for i, owner in enumerate(owners) if owner == unit]
        kept = bounded(codes[own], [unit] * len(own), bound).tolist()
        assert len(kept) == min(bound, sum(codes[i, 0] >= 0 for i in own))
        # The order of the rows does not matter.
        assert sorted(kept) == sorted(bounded(codes[own][::-1], [unit] * len(own), bound).tolist())
        apart += map(tuple, kept)
    assert together == sorted(apart)


def test_strange_units_are_units_and_nobody_is_dropped() -> None:
    codes = np.zeros((7, 1), np.int64)
    kept = bounded(codes, [None, float("nan"), np.float64("nan"), "1", 1, [1], 1.0], 1)
    assert len(kept) == 3  # "1", 1 (= 1.0), and what cannot be told apart


def test_a_policy_s_columns_become_a_schema() -> None:
    schema = declared(COLUMNS, {"age": "integer"})
    assert schema.columns == {
        "age": Edges.between(0, 99, bins=100, whole=True, nullable=True),
        "ward": Categories("A", "B", None),
    }
    assert declared(COLUMNS, edges={"age": [0, 18, 99]}, wanted=["age"]).domain.sizes == (3,)
    with pytest.raises(PolicyError, match="'height' is not declared"):
        declared(COLUMNS, wanted=["height"])
    with pytest.raises(PolicyError, match="numbers and categories"):
        declared({"day": {"between": ["2025-01-01", "2025-12-31"]}})
    with pytest.raises(PolicyError, match="no column's domain"):
        declared({})


def test_a_question_is_priced_before_rows_are_read_and_its_answer_costs_no_more() -> None:
    schema = declared(COLUMNS, {"age": "integer"})
    question = SynthesisQuestion("people", schema, Fraction(1, 10), rows_per_unit=2, neighbours="replace")
    assert cost(question.event).rho == Fraction(1, 10)
    assert question.plan(assume_rows=5000).method in ("joint", "marginals")
    codes = schema.encode({"age": [i % 100 for i in range(1000)], "ward": ["A", None] * 500})
    first = question.probe(codes, list(range(1000)), bits=SeededBits("probe"))
    assert not first.hardly_any
    found = question.answer(codes, first=first, bits=SeededBits("door"))
    assert found.rho <= Fraction(1, 10)
    assert cost(found.loss).rho == found.rho  # the probe stands in it
    assert first.event in found.loss.events
    back, report, predicted = unpacked(packed(found), schema)
    assert predicted == dict(found.report.worst(2))
    assert np.array_equal(back, found.codes)
    assert report == str(found.report)
    with pytest.raises(PolicyError, match="ask for it anew"):
        unpacked(packed(found), declared(COLUMNS, wanted=["ward"]))


def test_equal_questions_have_equal_keys_and_others_do_not() -> None:
    schema = declared(COLUMNS)
    base = SynthesisQuestion("people", schema, Fraction(1, 10))
    assert base.key == SynthesisQuestion("people", declared(COLUMNS), Fraction(1, 10)).key
    others = [
        SynthesisQuestion("others", schema, Fraction(1, 10)),
        SynthesisQuestion("people", schema, Fraction(1, 11)),
        SynthesisQuestion("people", declared(COLUMNS, wanted=["ward"]), Fraction(1, 10)),
        SynthesisQuestion("people", schema, Fraction(1, 10), rows_per_unit=2),
        SynthesisQuestion("people", schema, Fraction(1, 10), rows=5),
        SynthesisQuestion("people", schema, Fraction(1, 10), method="tree"),
    ]
    assert len({base.key, *(o.key for o in others)}) == len(others) + 1


def test_bad_questions_are_refused_when_made() -> None:
    schema = Schema({"ward": Categories("A", "B")})
    for options in ({"rho": Fraction(0)}, {"method": "magic"}, {"rows_per_unit": 0}, {"constraints": ("nonsense",)}):
        with pytest.raises(ParameterError):
            SynthesisQuestion(**{"table": "people", "schema": schema, "rho": Fraction(1), **options})  # type: ignore[arg-type]
