"""Bounds that are bought by `suggest_bounds`: those of the search, which no draw of noise far away moves."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.mechanisms.calibration import Spend
from hubbub.mechanisms.place_search import PlaceSearch
from hubbub.session.bounds import FARTHEST, MOST_ROWS, bounds_at, largest_place, shown
from hubbub.tables.columns import Between
from mechanisms.test_place_search import runs_past
from seeded import SeededBits

Rule = Callable[[Mapping[int, int], PlaceSearch], list[int]]
SEARCHES = [PlaceSearch(Spend(epsilon=Fraction(e)), replace) for e in ("1", "1/10") for replace in (False, True)]
TABLES = [{45: 60}, {45: 900, 46: 300, 47: 20}, {-3: 40, -2: 40, 0: 5, 1: 40, 2: 40}, {0: 900}, {}]
"""Units by place, in parts of ten: of the search at epsilon .1 ten times as many."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def outermost(rows: Mapping[int, int], search: PlaceSearch) -> list[int]:
    """Planted: the rule of before, the outermost place above what noise does once in a thousand times."""
    threshold = 11.6 * search.unit
    return [place for place, n in rows.items() if n > threshold]


def far_chance(rule: Rule, table: Mapping[int, int], search: PlaceSearch) -> float:
    """The chance that one draw at one of the places beyond all values, the others without noise, moves an end by more
    than three places: exact, since a rule that takes a draw for a value takes each larger one.
    """
    scaled = {place: int(n * search.unit) for place, n in table.items()}
    reach, chance = max((abs(place) for place in table), default=0), 0.0
    for place in {10, 60, 101, FARTHEST} | {-10, -60, -101, -FARTHEST}:
        if abs(place) <= reach + 3:
            continue
        least, most = 0, 2000 * int(search.unit)
        while least < most:
            draw = (least + most) // 2
            taken = place in rule({**scaled, place: draw}, search)
            least, most = (least, draw) if taken else (draw + 1, most)
        chance = max(chance, float(search.law.tail(least - 1)))
    return 2 * FARTHEST * chance


@pytest.mark.parametrize("search", SEARCHES, ids=str)
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_a_draw_far_away_is_taken_for_a_value_once_in_300_000_times_at_most(
    table: dict[int, int], search: PlaceSearch
) -> None:
    assert far_chance(shown, table, search) <= 3e-6


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_planted_the_outermost_place_above_a_threshold_is_such_a_draw_once_in_some_thousand_times(
    table: dict[int, int],
) -> None:
    assert far_chance(outermost, table, SEARCHES[0]) > 2e-4


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_four_walks_stay_within_three_places_of_all_values_but_for_one_in_a_hundred_thousand(
    search: PlaceSearch,
) -> None:
    assert 4 * runs_past(search, FARTHEST) <= 1e-5


@pytest.mark.parametrize(
    ("rows", "low", "high"),
    [
        ({45: 900, 46: 300, 47: 20}, 8, 64),
        ({45: 900, 101: 17}, 8, 16),  # 2^60: below what a walk starts at, above the threshold of before
        ({45: 900, 46: 5, 48: 5}, 8, 32),  # on while the next is above 3.2 scales
        ({-44: 500, -43: 40, 43: 40, 44: 500}, -8, 8),
        ({-44: 500, -43: 40}, -8, -2),
        ({0: 900}, 0, 1),
        ({0: 12, 42: 900}, 0, 2),
        ({42: 900}, 1, 2),
    ],
)
def test_the_bounds_are_the_ends_of_the_walks(rows: dict[int, int], low: int, high: int) -> None:
    bounds = bounds_at(shown(rows, SEARCHES[0]))
    assert bounds is not None
    assert (bounds.low, bounds.high) == (low, high)


def test_too_few_units_tell_nothing() -> None:
    assert bounds_at(shown({45: 17}, SEARCHES[0])) is None
    assert largest_place({0: 17}, SEARCHES[0]) is None
    assert largest_place({0: 900, 3: 30, 2: 5, 1: 40, MOST_ROWS: 17}, SEARCHES[0]) == 3


def test_what_is_charged_is_the_search() -> None:
    """The event of the histogram, and bounds that hold what the table holds."""
    frame = pa.table({"id": range(3000), "x": [float(i % 100) for i in range(3000)]})
    table = hb.table(frame, unit="id", max_groups=1, max_rows=1, columns={})
    for neighbours in ("add_remove", "replace"):
        changed: Any = hb.table(frame, unit="id", neighbours=neighbours) if neighbours == "replace" else table
        with hb.Session({"t": changed}, budget=hb.Budget(50), ledger=None, _bits=SeededBits(neighbours)) as s:
            bounds = s.suggest_bounds("t", "x", epsilon=1)["x"]
            assert isinstance(bounds, Between)
            assert (bounds.low, bounds.high) == (0, 128)
            assert s.suggest_bounds("t", epsilon=1) == {"max_total": 1}
            assert s.remaining == 48
