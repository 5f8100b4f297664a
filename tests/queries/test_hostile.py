"""Sensitivities that were too small once: huge entries, other universes, rows outside of them."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub.queries import (
    AttributeMeans,
    Conjunctions,
    InnerProducts,
    Linear,
    Points,
    Predicates,
    Stack,
    Workload,
    brute_force,
)


def test_a_flipped_bit_moves_a_whole_column_also_in_a_stack() -> None:
    flips = InnerProducts([[3, 4], [1, -2]])
    for workload in (flips, Stack([flips]), Stack([Stack([InnerProducts([[3, 4]])]), InnerProducts([[1, -2]])])):
        for neighbours in ("add_remove", "replace"):
            found = workload.sensitivity(neighbours)  # type: ignore[arg-type]
            assert (found.l1, found.l2_squared, found.linf) == (6, 20, 4)
            assert sorted(workload.moves(neighbours).tolist()) == [[3, 1], [4, -2]]  # type: ignore[arg-type]


def test_moves_are_differences_of_columns_under_replace() -> None:
    assert {tuple(abs(v) for v in m) for m in Points(3).moves("replace").tolist()} == {
        (0, 0, 0),
        (1, 1, 0),
        (1, 0, 1),
        (0, 1, 1),
    }
    with pytest.raises(ParameterError, match="add_remove"):
        InnerProducts([[1]]).moves("Replace")  # type: ignore[arg-type]


def test_a_stack_is_of_one_universe_row_by_row() -> None:
    one, other = (Predicates([lambda x: x == 1], universe=np.array(u)) for u in ([0, 1], [1, 0]))
    with pytest.raises(ParameterError, match="same rows in the same order"):
        Stack([one, other])
    with pytest.raises(ParameterError, match="one universe"):
        Stack([InnerProducts([[1, 1]]), Points(2)])
    assert Stack([one, Points(2)]).sensitivity("add_remove").l1 == 2
    assert Stack([one, one]).sensitivity("add_remove").l1 == 2
    assert Stack([AttributeMeans(3), Conjunctions(3, t=1)]).sensitivity("add_remove").l1 == 6


def test_a_stack_of_unknown_universes_adds_up() -> None:
    class Own(Workload):
        size, universe = 1, 2

        def evaluate(self, rows: Any) -> Any:
            return np.array([len(rows)])

        def column(self, x: int) -> Any:
            return np.array([x])

    assert Own().domain is None
    stacked = Stack([Own(), Own()])
    found = stacked.sensitivity("add_remove")
    assert (found.l1, found.attained) == (2, False)
    with pytest.raises(ParameterError, match="universe"):
        stacked.moves("add_remove")
    domain: Hashable = Stack([Points(2), Points(2)]).domain
    assert domain == Points(2).domain


def test_rows_outside_the_universe_satisfy_nothing() -> None:
    above = Predicates([lambda x, t=t: x > t for t in (30, 60, 90)], universe=np.arange(50))
    assert above.sensitivity("add_remove").l1 == 1
    assert above.evaluate(np.array([100])).tolist() == [0, 0, 0]
    assert above.evaluate(np.array([40, 100, 40, -1])).tolist() == [2, 0, 0]
    assert above.evaluate(np.array([40.0, 40.5, np.nan, 2.0**60])).tolist() == [1, 0, 0]
    # Also predicates that look at other rows: they only ever see the universe.
    crowd = Predicates([lambda x: x > x.mean()], universe=np.arange(10))
    assert crowd.evaluate(np.array([9, 9, 9, 9])).tolist() == [4]
    pairs = Predicates([lambda r: r[:, 0] == r[:, 1]], universe=np.array([[0, 0], [0, 1], [1, 1]]))
    assert pairs.evaluate(np.array([[0, 0], [5, 5], [1, 1]])).tolist() == [2]
    with pytest.raises(ParameterError, match="the universe has"):
        pairs.evaluate(np.array([1, 2]))


@pytest.mark.parametrize("rows", [1, 7, 8, 16, 1000])
def test_linear_answers_do_not_wrap(rows: int) -> None:
    workload = Linear([[0.001, 1.0]])
    assert workload.unit <= Fraction(1, 2**59)
    assert (workload.evaluate(np.ones(rows, int)) * workload.unit).tolist() == [rows]
    assert workload.shares(np.ones(rows, int)).tolist() == [1.0]
    assert (workload.answers(np.array([0, rows])) * workload.unit).tolist() == [rows]


@pytest.mark.parametrize("k", [7, 8, 16, 17])
def test_linear_norms_do_not_wrap(k: int) -> None:
    for neighbours in ("add_remove", "replace"):
        moved = 1 if neighbours == "add_remove" else 1 - Fraction(0.001)
        assert Linear([[0.001, 1.0]] * k).sensitivity(neighbours).l1 == k * moved  # type: ignore[arg-type]


def test_entries_of_any_size_are_exact() -> None:
    assert Linear([[-(2**63)]]).sensitivity("add_remove").l1 == 2**63
    assert Linear([[3 * 2**61, -3 * 2**61]]).sensitivity("replace").l1 == 3 * 2**62
    assert Linear([[1e-9, 1.0]]).sensitivity("add_remove").l1 == 1
    assert Linear([["1e-3", "-1/2"]]).unit == Fraction(1, 1000)
    sums = InnerProducts([[2**62, 2**62, 2**62]])
    assert sums.evaluate(np.ones(3, int)).tolist() == [3 * 2**62]
    assert InnerProducts([[-(2**63)], [2**62]]).sensitivity("replace").l1 == 2**63 + 2**62
    assert InnerProducts(np.array([[2**64 - 1]], np.uint64)).sensitivity("replace").l1 == 2**64 - 1
    unsigned = brute_force(np.array([[0], [5]], np.uint64), "replace")
    assert unsigned.l1 == 5
    assert Linear([[3]]).adjoint(np.array([2**62])).tolist() == [3 * 2**62]


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda: Linear([[1e-300, 1.0]]), "common unit"),
        (lambda: Linear([["x"]]), "not a number"),
        (lambda: Linear([["1e999999999"]]), "not a number"),
        (lambda: Linear([[None]]), "NoneType"),
        (lambda: InnerProducts([[0.5]]), "whole numbers"),
        (lambda: brute_force(np.array([[0.5]]), "replace"), "whole numbers"),
        (lambda: Predicates([lambda x: x > 1], universe=[]), "no rows"),
    ],
)
def test_what_does_not_fit_is_refused(act: object, text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        act()  # type: ignore[operator]
