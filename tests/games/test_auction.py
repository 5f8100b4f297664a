"""The digital-goods auction earns what McSherry and Talwar promise, exactly."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from hubbub.accounting import pure_epsilon
from hubbub.errors import ParameterError
from hubbub.games import DigitalGoodsAuction, revenue
from hubbub.mechanisms import epsilon_between
from seeded import SeededBits

NEIGHBOURS = ("add_remove", "replace")


def test_m15_the_optimum_of_one_one_three_is_fragile() -> None:
    bids = ["1", "1", "3.01"]
    assert revenue(bids, 1) == 3
    assert revenue(bids, "1.01") == Fraction(101, 100)
    assert revenue(bids, "3.01") == Fraction(301, 100)


def test_scores_are_exact_revenues_also_for_floats_on_the_price() -> None:
    auction = DigitalGoodsAuction(steps=10, highest=1, epsilon=1)
    bids = [0.1, 0.2, 0.30000000000000004, 0.3, 0.7, 1.5, -2.0, float("nan")]
    clean = [b for b in bids if not math.isnan(b)]
    unit = Fraction(1, 10)
    assert [int(s) * unit for s in auction.scores(bids)] == [revenue(clean, p) for p in auction.prices]
    assert auction.scores([]).tolist() == [0] * 10


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_m15_expected_revenue_is_within_alpha_n_and_its_logarithm(neighbours: str) -> None:
    generator, epsilon, steps = np.random.default_rng(15), 0.5, 20
    auction = DigitalGoodsAuction(steps=steps, highest=1, epsilon="1/2", neighbours=neighbours)  # type: ignore[arg-type]
    saved = 1 if neighbours == "add_remove" else 2
    for n in (5, 50, 2000):
        gap = n / steps + saved * math.log(steps) / epsilon
        assert auction.expected_gap(n=n) == pytest.approx(gap, rel=1e-12)
        for t in (0.5, 3.0):
            assert auction.accuracy(str(math.exp(-t)), n=n) == pytest.approx(gap + saved * t / epsilon, rel=1e-12)
        for bids in (generator.uniform(0, 1, n), generator.beta(1, 9, n), np.full(n, 0.999), np.zeros(n)):
            best = max(float(b) * (i + 1) for i, b in enumerate(sorted(bids, reverse=True)))
            assert auction.expected_revenue(bids) >= best - gap
            chances = np.exp(auction.mechanism.log_probs(auction.scores(bids)))
            earned = auction.scores(bids) / steps
            for t in (0.5, 3.0):
                assert float(chances[earned <= best - gap - saved * t / epsilon].sum()) <= math.exp(-t)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_the_price_is_private_and_nearly_all_of_epsilon_is_used(neighbours: str) -> None:
    auction = DigitalGoodsAuction(steps=4, highest=1, epsilon=1, neighbours=neighbours)  # type: ignore[arg-type]
    grid, worst = [0.0, 0.25, 0.5, 0.75, 1.0], 0.0
    for bids in itertools.combinations_with_replacement(grid, 3):
        for bid in grid:
            other = [*bids, bid] if neighbours == "add_remove" else [*bids[1:], bid]
            laws = [[auction.log_prob(p, b) for p in auction.prices] for b in (bids, other)]
            worst = max(worst, epsilon_between(*laws))
    assert 0.3 < worst <= 1 + 1e-9
    assert pure_epsilon(auction.loss) == 1
    many = [0.1] * 200
    laws = [[auction.log_prob(p, b) for p in auction.prices] for b in (many, [*many, 1.0])]
    assert epsilon_between(*laws) <= 1 + 1e-9


def test_g1_lying_gains_at_most_the_factor_that_privacy_allows() -> None:
    """Exactly, over all bids on a grid: replacing a bid costs 2 epsilon under add/remove calibration."""
    auction, others = DigitalGoodsAuction(steps=5, highest=1, epsilon="1/2"), [0.2, 0.4, 0.4, 0.9, 1.0]
    for value in np.linspace(0, 1, 11):
        honest = auction.expected_gain(valuation=float(value), bid=float(value), others=others)
        for bid in np.linspace(0, 1, 11):
            assert auction.expected_gain(valuation=float(value), bid=float(bid), others=others) <= (
                math.exp(2 * 0.5) * honest + 1e-12
            )


def test_the_price_is_drawn_from_the_grid() -> None:
    auction = DigitalGoodsAuction(steps=10, highest="3.5", epsilon=2)
    price = auction.release(np.full(500, 3.2), bits=SeededBits(1))
    assert price in auction.prices
    assert price == Fraction(63, 20)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"steps": 0}, "at least 1"),
        ({"steps": 2.5}, "at least 1"),
        ({"highest": "x"}, "not a finite number"),
        ({"highest": float("inf")}, "finite"),
        ({"highest": 0}, "above 0"),
        ({"neighbours": "none"}, "add_remove"),
        ({"epsilon": 0}, "above 0"),
    ],
)
def test_bad_parameters_say_what_is_allowed(options: dict, text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        DigitalGoodsAuction(**{"steps": 5, "highest": 1, "epsilon": 1, **options})


def test_bids_are_compared_exactly_also_where_they_are_no_floats() -> None:
    auction = DigitalGoodsAuction(steps=3, highest=1, epsilon=1)
    bids = [Fraction(1, 3), "2/3", "0.1", 1, 5]
    assert [int(s) * Fraction(1, 3) for s in auction.scores(bids)] == [revenue(bids, p) for p in auction.prices]
    assert auction.scores([Fraction(1, 3)]).tolist() == [1, 0, 0]
    tenths = DigitalGoodsAuction(steps=1, highest="0.3", epsilon=1)
    assert tenths.scores(["0.3"]).tolist() == [1]
    assert auction.scores(np.array([2**53 + 1, 0])).tolist() == [1, 2, 3]
    # A buyer who bids exactly the price buys: with one price the gain is certain.
    assert tenths.expected_gain(valuation=0.5, bid="0.3", others=[]) == pytest.approx(0.2)  # type: ignore[arg-type]


@pytest.mark.parametrize("bid", ["x", None, float("nan"), -1, "-1", "1e999999999", object(), True, [1]])
def test_a_bid_that_is_no_number_buys_nothing_and_raises_nothing(bid: object) -> None:
    auction = DigitalGoodsAuction(steps=4, highest=1, epsilon=1)
    assert auction.scores([bid, 1]).tolist() == auction.scores([1]).tolist() == [1, 2, 3, 4]
    assert auction.scores([float("inf"), bid]).tolist() == [1, 2, 3, 4]
    assert revenue([bid, 1], 1) == 1


def test_numpys_error_state_does_not_tell_about_bids() -> None:
    auction = DigitalGoodsAuction(steps=2, highest=1, epsilon=1)
    old = np.seterr(all="raise")
    try:
        for n in (1410, 1420, 10**5):
            assert auction.release([1.0] * n, bits=SeededBits(n)) == 1
            assert auction.expected_revenue([1.0] * n) == n
    finally:
        np.seterr(**old)
