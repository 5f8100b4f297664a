"""The search of a bound: its exact law on neighbours, and how far it can go wrong."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.accounting import ZCDP, DiscreteLaplace, cost
from hubbub.mechanisms.calibration import Spend
from hubbub.mechanisms.place_search import PLACES, PlaceSearch
from seeded import SeededBits

DATA = Path(os.environ.get("HUBBUB_DATA", Path(__file__).parents[3] / "shared/data/cdnow"))
PURE = [Spend(epsilon=Fraction(e)) for e in ("1", "1/4")]
RHO = Spend(rho=Fraction(1, 8))
TABLES = [
    {1: 30, 2: 12, 3: 4, 5: 1},
    {1: 3, 2: 3, 3: 3},
    {1: 90, 4: 40, 5: 11},
    {},
    {9: 200, 10: 3, 11: 3, 12: 3, 13: 3},
]


def counts(places: dict[int, int]) -> list[int]:
    return [places.get(place, 0) for place in range(PLACES)]


def loss(p: Any, q: Any, least: float = 1e-12) -> float:
    """least: what is below it is left out of the sums of `chances`."""
    seen = (p > least) | (q > least)
    with np.errstate(divide="ignore"):
        return float(np.abs(np.log(p[seen]) - np.log(q[seen])).max())


@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.parametrize(
    "spend", [PURE[0], Spend(epsilon=Fraction(2)), pytest.param(PURE[1], marks=pytest.mark.soak)], ids=str
)
def test_the_law_of_the_place_moves_by_no_more_than_epsilon_for_one_unit_at_any_place(
    table: dict[int, int], spend: Spend
) -> None:
    search = PlaceSearch(spend)
    before = search.chances(counts(table))
    assert before.sum() == pytest.approx(1, abs=1e-9)
    for place in (0, 1, max(table, default=0) + 1, 20, 40):  # above all others, too
        after = search.chances(counts({**table, place: table.get(place, 0) + 1}))
        assert loss(before, after) <= float(spend.epsilon or 0) + 1e-6


@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.parametrize("spend", [RHO, Spend(rho=Fraction(1, 2))], ids=str)
def test_the_law_of_the_place_diverges_by_no_more_than_rho_allows_for_one_unit_at_any_place(
    table: dict[int, int], spend: Spend
) -> None:
    """Renyi divergences of the place, both ways: at most rho times the order (Bun, Steinke 2016, Definition 1.1)."""
    search = PlaceSearch(spend)
    before = search.chances(counts(table))
    for place in (0, 1, max(table, default=0) + 1, 20, 40):
        after = search.chances(counts({**table, place: table.get(place, 0) + 1}))
        for order in (1.5, 2.0, 4.0, 16.0):
            for p, q in ((before, after), (after, before)):
                seen = (p > 1e-12) & (q > 1e-12)
                divergence = math.log((p[seen] ** order * q[seen] ** (1 - order)).sum()) / (order - 1)
                assert divergence <= float(spend.rho or 0) * order + 1e-6


def test_half_the_noise_of_a_rho_is_found_by_the_same_divergences() -> None:
    """Planted: the places of two tables drawn at four times the rho diverge by more than the rho allows."""
    p, q = (PlaceSearch(Spend(rho=Fraction(1, 2))).chances(counts(table)) for table in ({1: 4}, {1: 3}))
    assert math.log((p**2 / np.maximum(q, 1e-300))[q > 1e-12].sum()) > float(RHO.rho or 0) * 2


def test_under_replace_a_unit_moves_two_counts_and_the_noise_is_twice_as_wide() -> None:
    spend = Spend(epsilon=Fraction(2))
    search = PlaceSearch(spend, replace=True)
    assert search.law.scale == 1
    assert cost(search.event).epsilon == 2
    before = search.chances(counts({1: 30, 2: 12, 3: 4}))
    after = search.chances(counts({1: 29, 2: 12, 3: 4, 40: 1}))
    assert loss(before, after) <= 2 + 1e-6
    once = PlaceSearch(spend)
    assert loss(once.chances(counts({1: 30, 2: 9, 3: 9})), once.chances(counts({1: 30, 2: 8, 3: 10}))) > 0


def unsound(table: list[int], epsilon: float, times: float = 15) -> Any:
    """The law of the search that does not stop where one should: on while count + nu >= T + r, nu and r exponential."""
    scale, threshold = 2 / epsilon, times / epsilon
    above = [sum(table[k + 1 :]) for k in range(len(table))]
    r = np.linspace(0, 40 * scale, 40_001)
    weight = np.exp(-r / scale) / scale * (r[1] - r[0])
    chances, on = [], np.ones_like(r)
    for count in above:
        goes_on = np.exp(-np.maximum(threshold + r - count, 0) / scale)
        chances.append(float((weight * on * (1 - goes_on)).sum()))
        on = on * goes_on
    return np.array([*chances, float((weight * on).sum())])


def test_the_search_that_utility_called_the_winner_has_no_finite_loss() -> None:
    """One unit above all multiplies the chance to reach place k by e^(k epsilon / 2): found by the same check."""
    table = counts({1: 1})
    more = counts({1: 1, 40: 1})
    assert loss(unsound(table, 1.0), unsound(more, 1.0), 1e-200) > 15
    assert loss(PlaceSearch(PURE[0]).chances(table), PlaceSearch(PURE[0]).chances(more)) <= 1 + 1e-6


def tail(search: PlaceSearch, reach: int) -> float:
    """P(Z >= reach)."""
    return float(search.law.tail(reach - 1))


def runs_past(search: PlaceSearch, places: int = PLACES) -> float:
    """P(the walk passes four empty places in a row, or starts at one), over the values of each two: for every table."""
    few, one, two = search.thresholds
    span = math.ceil(40 * search.unit)
    z = np.arange(-span, span + 1)
    pmf = np.exp(np.array([search.law.log_pmf(int(x)) for x in z]))
    state = pmf
    for _ in range(4):
        upto = np.concatenate([[0], np.cumsum(state)])
        state = (upto[-1] - upto[np.clip(np.minimum(one, two - z) + span, 0, len(z))]) * pmf
    return float(state.sum()) + places * tail(search, few)


@pytest.mark.parametrize(
    "spend",
    [*(Spend(epsilon=Fraction(e)) for e in ("2", "3/10", "9/100", "3/100")), RHO, Spend(rho=Fraction(1, 500))],
    ids=str,
)
def test_the_bound_is_three_doublings_too_high_with_a_millionth_at_most_whatever_the_table(spend: Spend) -> None:
    assert runs_past(PlaceSearch(spend)) <= 1e-6


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_the_exact_law_agrees(table: dict[int, int]) -> None:
    for spend in (PURE[0], RHO):
        chances = PlaceSearch(spend).chances(counts(table))
        assert chances[max(table, default=0) + 4 : PLACES].sum() <= 1e-6


def test_draws_follow_the_law() -> None:
    """4,000 draws of seeded bits; each frequency within 5 standard deviations (false alarm below 1e-5, fixed bits)."""
    search, table, bits = PlaceSearch(PURE[0]), counts(TABLES[0]), SeededBits("place")
    drawn = [search.found(search.release(table, bits=bits)) for _ in range(4000)]
    chances = search.chances(table)
    for place in range(8):
        expected = chances[place] * 4000
        assert abs(drawn.count(place) - expected) <= 5 * math.sqrt(expected + 1)


def test_a_gap_of_one_place_is_walked_over_where_many_lie_beyond() -> None:
    search = PlaceSearch(PURE[0])
    assert search.found(counts({1: 100, 3: 100})) == 3
    assert search.found(counts({1: 100, 4: 100})) == 1  # two empty places end it: that units lie beyond is said
    assert search.beyond(counts({1: 100, 4: 100}), 1) >= 100
    assert search.found(counts({40: 100})) == 40
    assert search.beyond(counts({40: 100}), 40) == 0
    assert search.found(counts({1: 17})) is None


@pytest.mark.parametrize("spend", [PURE[0], RHO], ids=str)
def test_what_is_told_of_the_units_beyond_holds_nineteen_times_in_twenty_and_more(spend: Spend) -> None:
    """400 draws: at most 20 misses expected at the bound; it is wide, so none at all is seen."""
    search, bits = PlaceSearch(spend), SeededBits("beyond")
    table = counts({1: 300, 2: 80, 3: 20, 4: 6, 5: 2, 7: 1})
    misses = 0
    for _ in range(400):
        noisy = search.release(table, bits=bits)
        place = search.found(noisy)
        misses += place is not None and sum(table[place + 1 :]) > search.beyond(noisy, place)
    assert misses <= 20


@pytest.mark.parametrize("spend", [PURE[0], RHO], ids=str)
@pytest.mark.parametrize("draws", [1, 7, 40])
def test_the_margin_is_above_the_quantile_of_the_sum(spend: Spend, draws: int) -> None:
    search = PlaceSearch(spend)
    span = math.ceil(40 * search.unit)
    pmf = np.exp(np.array([search.law.log_pmf(z) for z in range(-span, span + 1)]))
    law = pmf
    for _ in range(draws - 1):
        law = np.convolve(law, pmf)
    middle = len(law) // 2
    margin = search.margin(draws, 0.01)
    assert law[middle + margin + 1 :].sum() <= 0.01
    assert law[middle + margin // 4 :].sum() > 0.01  # and is not idle


def test_events_are_those_of_the_noise() -> None:
    assert PlaceSearch(PURE[0]).event == DiscreteLaplace(1, 1)
    assert PlaceSearch(RHO).event == ZCDP(Fraction(1, 8))
    assert PlaceSearch(RHO).law.sigma2 == 4
    assert PlaceSearch(RHO, replace=True).law.sigma2 == 8


@pytest.mark.skipif(not (DATA / "cdnow_transactions.csv").exists(), reason="the shared data folder is not there")
@pytest.mark.parametrize(
    ("total", "epsilon", "goal"),
    [("rows", "1", 0.95), ("dollars", "1", 1.1), pytest.param("rows", "3/10", 1.7, marks=pytest.mark.soak)],
)
def test_on_real_purchases_the_laws_and_the_errors_are_within_their_goals(
    total: str, epsilon: str, goal: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """150 runs: the standard error of a root mean square is 6 % of it; a fifth is allowed. The chances are exact."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    from benchmarks.bounds import customers, measured

    monkeypatch.setenv("HUBBUB_DATA", str(DATA))
    line = measured(*customers()[total], Fraction(epsilon), 150)
    assert line["rms"] <= 1.2 * goal
    assert line["above"] <= 1e-6
    assert line["below"] <= 1e-3


@pytest.mark.parametrize("epsilon", [1, 500, 2_400, 10**6])
def test_how_many_are_beyond_is_known_at_any_epsilon(epsilon: int) -> None:
    search = PlaceSearch(Spend(epsilon=Fraction(epsilon)))
    assert 1 <= search.margin(30, 0.001) <= 200
