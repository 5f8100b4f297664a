"""The first step of a synthetic table: its counts move as little as is claimed, and it is paid within the whole."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from hubbub.accounting import ZCDP, cost
from hubbub.mechanisms.recording import recording
from hubbub.synthesis.measurements import Curator
from hubbub.synthesis.probe import SHARE, Probe, probe, undeclared
from hubbub.synthesis.session_adapter import SynthesisQuestion, bounded, declared
from seeded import SeededBits

SCHEMA = declared({"w": {"one_of": ["A", "B"]}, "v": {"one_of": ["x", "y"]}})


def question(**changes) -> SynthesisQuestion:
    return SynthesisQuestion("t", SCHEMA, Fraction(1, 2), **changes)


def counts(table: list[tuple[int, tuple[int, int]]], rows_per_unit: int) -> tuple[int, int]:
    """a and b of rows (unit, codes), exactly."""
    codes = np.array([codes for _, codes in table]).reshape(-1, 2)
    units = [unit for unit, _ in table]
    return len(bounded(codes, units, rows_per_unit)), undeclared(codes, units, rows_per_unit)


@pytest.mark.parametrize("rows_per_unit", [1, 2, 3])
def test_one_unit_moves_the_counts_by_no_more_than_their_sensitivity(rows_per_unit: int) -> None:
    """Every multiset of up to five rows that one unit may have, beside others, under both relations."""
    kinds = [(0, 0), (1, 0), (-1, 0), (0, -1), (-1, -1)]
    others = [(1, (0, 0)), (1, (-1, 0)), (2, (1, 0)), (2, (1, 0)), (2, (0, -1))]
    mine = [[(0, row) for row in rows] for n in range(6) for rows in itertools.combinations_with_replacement(kinds, n)]
    base = counts(others, rows_per_unit)
    added = {tuple(np.subtract(counts(others + rows, rows_per_unit), base)) for rows in mine}
    squared = rows_per_unit**2
    assert all(a >= 0 and b >= 0 and a + b <= rows_per_unit for a, b in added)
    assert max(a * a + b * b for a, b in added) == squared  # add_remove, both counts
    assert max(a * a for a, _ in added) == squared  # add_remove, the first alone
    swaps = [np.subtract(x, y) for x in added for y in added]
    assert max(int(d[0] ** 2) for d in swaps) == squared  # replace, the first alone
    assert max(int(d @ d) for d in swaps) == 2 * squared  # replace, both


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("rows", [None, 1000])
@pytest.mark.parametrize("rows_per_unit", [1, 3])
def test_the_event_is_that_of_the_noise_and_within_its_share(
    neighbours: str, rows: int | None, rows_per_unit: int
) -> None:
    rho = Fraction(1, 100)
    with recording() as records:
        found = probe(900, 100, rho=rho, rows=rows, rows_per_unit=rows_per_unit, neighbours=neighbours)
    (record,) = records
    squared = rows_per_unit**2 * (2 if rows is None and neighbours == "replace" else 1)
    assert record.values == ((900,) if rows else (900, 100))
    assert record.sensitivity == squared
    assert record.distribution.sigma2 == found.variance
    assert found.event == ZCDP(squared / (2 * found.variance))
    assert Fraction(99, 100) * rho <= cost(found.event).rho <= rho


def test_it_stops_where_the_upper_end_is_below_a_tenth_of_the_rows() -> None:
    cases = [(0, 9, 100, True), (0, 10, 100, False), (-5, 14, 100, True), (11, 0, 100, False)]
    for declared_rows, reach, rows, stops in cases:
        assert Probe(declared_rows, rows, reach, ZCDP(1), Fraction(1)).hardly_any is stops


def test_whole_tables_are_hardly_ever_stopped_and_broken_ones_always() -> None:
    """2,000 rows: the noise would have to be wrong by more than 12 of its sigmas. 100 of either kind."""
    whole = np.zeros((2000, 2), np.int64)
    broken = whole.copy()
    broken[100:, 0] = -1  # one row in twenty is whole
    units = list(range(2000))
    for rows, relation in itertools.product((None, 2000), ("add_remove", "replace")):
        asked = question(rows=rows, neighbours=relation)
        for i in range(25):
            bits = SeededBits(f"{rows} {relation} {i}")
            assert not asked.probe(whole, units, bits=bits).hardly_any
            assert asked.probe(broken, units, bits=bits).hardly_any


def test_what_is_left_is_planned_for_and_both_steps_cost_no_more_than_was_asked(monkeypatch) -> None:
    monkeypatch.delattr(Curator, "total")  # the number of rows is not bought twice
    codes = np.array([[i % 2, i // 2 % 2] for i in range(500)])
    for rows in (None, 500):
        asked = question(rows=rows)
        with recording() as records:
            first = asked.probe(codes, None, bits=SeededBits("first"))
            found = asked.answer(codes, first=first, bits=SeededBits("second"))
        assert len(records) > 1
        assert asked.rho * SHARE * Fraction(9, 10) < cost(first.event).rho <= asked.rho * SHARE
        assert found.rho == cost(found.loss).rho <= asked.rho
        if rows is None:
            assert len(found.codes) == first.declared
