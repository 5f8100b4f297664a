"""Privacy is approximate truthfulness: the exact numbers, and every joint misreport tried."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from hubbub import accounting as acc
from hubbub.errors import ParameterError
from hubbub.games import DigitalGoodsAuction, best_deviation, draw_gains, on_behalf, truthfulness
from hubbub.mechanisms import ExponentialMechanism, NoisyMax

GRID = (0.0, 0.25, 0.5, 0.75, 1.0)


def gain(event: acc.Event, **options: Any) -> float:
    return truthfulness(event, **{"neighbours": "replace", **options}).gain


def near(value: float) -> object:
    return pytest.approx(value, abs=1e-9)


def test_g1_the_gain_is_the_hyperbolic_tangent_of_half_epsilon_and_reached() -> None:
    assert gain(acc.PureDP("0.1")) == near(math.tanh(0.05)) == near(0.049958375)
    assert gain(acc.PureDP("0.1"), agents=5) == near(math.tanh(0.25)) == near(0.244918662)
    # Randomised response reaches it: two reports, and the utility of being believed.
    truth = math.exp(0.1) / (1 + math.exp(0.1))
    law = np.log([[truth, 1 - truth], [1 - truth, truth]])
    found = best_deviation(lambda r: law[r[0]], [0], coalition=[0], alternatives=[0, 1], utility=[0, 1])
    assert found.gain == near(math.tanh(0.05))
    assert found.reports == (1,)


def test_g1_groups_of_five_under_known_noise() -> None:
    assert gain(acc.DiscreteLaplace(10), agents=5) == near(0.222171705)
    assert gain(acc.DiscreteGaussian(10), agents=5) == pytest.approx(0.19749, abs=5e-6)
    assert gain(acc.Gaussian(10), agents=5) == pytest.approx(0.19741, abs=5e-6)
    assert gain(acc.BoundedRange("0.1")) == pytest.approx(0.024995, abs=5e-7)
    assert gain(acc.BoundedRange("0.1"), agents=5) == pytest.approx(0.124353, abs=5e-7)


def test_g1_composing_first_is_the_whole_gain() -> None:
    """Ten runs of .1: .12254; tanh(.5) is .46212, the textbook's e - 1 1.71828. By the binomial law of the signs."""
    ten = truthfulness(acc.PureDP("0.1"), neighbours="replace", runs=10)
    p = math.exp(0.1) / (1 + math.exp(0.1))
    binomial = sum(
        math.comb(10, i) * max(0.0, p**i * (1 - p) ** (10 - i) - (1 - p) ** i * p ** (10 - i)) for i in range(11)
    )
    assert ten.gain == near(binomial) == near(0.122536224)
    assert ten.gain < math.tanh(0.5) < ten.factor - 1
    assert (round(math.tanh(0.5), 5), round(ten.factor - 1, 5)) == (0.46212, 1.71828)


def test_g1_an_exchanged_report_is_two_steps_of_add_remove() -> None:
    one = truthfulness(acc.PureDP("0.1"), neighbours="add_remove")
    assert one.gain == near(math.tanh(0.1))
    assert one.deviation == acc.Group(acc.PureDP("0.1"), 2)
    sampled = acc.SampledWithoutReplacement(acc.Laplace(1), "1/2")
    assert 0 < truthfulness(sampled, neighbours="replace").gain < gain(acc.Laplace(1))
    with pytest.raises(ParameterError, match="'replace' neighbours"):
        truthfulness(sampled, neighbours="add_remove")


def test_g1_with_delta_it_is_in_the_number() -> None:
    found = truthfulness(acc.ApproxDP("0.1", "0.01"), neighbours="replace")
    assert found.gain == near((math.expm1(0.1) + 0.02) / (math.exp(0.1) + 1))
    assert found.factor == math.inf


def vote(make: Callable[..., Any], candidates: int) -> Callable[[Sequence[int]], Any]:
    """A private vote: each voter names a candidate; an exchanged vote moves two counts by one."""
    mechanism = make(epsilon="1/2", sensitivity=1)
    return lambda votes: mechanism.log_probs([list(votes).count(c) for c in range(candidates)])


@pytest.mark.parametrize("make", [ExponentialMechanism, NoisyMax])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_g1_no_coalition_of_voters_gains_more(make: Callable[..., Any], size: int) -> None:
    """All votes of five on three candidates, all joint misreports, the worst utility for each."""
    law, bound, most = vote(make, 3), gain(make(epsilon="1/2", sensitivity=1).loss, agents=size), 0.0
    for votes in itertools.combinations_with_replacement(range(3), 5):
        for coalition in {tuple(votes.index(v) for v in set(votes))[:size]}:
            if len(coalition) == size:
                most = max(most, best_deviation(law, votes, coalition=coalition, alternatives=range(3)).gain)
    assert 0.4 * bound < most <= bound + 1e-12


@pytest.mark.parametrize("size", [1, 2, 3])
def test_g1_no_coalition_of_bidders_gains_more(size: int) -> None:
    auction = DigitalGoodsAuction(steps=4, highest=1, epsilon="1/2", neighbours="replace")
    bound, most = gain(auction.loss, agents=size), 0.0
    for bids in itertools.combinations_with_replacement(GRID, 4):
        found = best_deviation(auction, bids, coalition=range(size), alternatives=GRID)
        most = max(most, found.gain)
    assert 0.3 * bound < most <= bound + 1e-12


def test_g1_the_expected_gain_of_a_coalition_is_within_factor_and_bound() -> None:
    """Two of five buyers, every pair of bids: their gains together, in [0, 2]."""
    auction = DigitalGoodsAuction(steps=5, highest=1, epsilon="1/2", neighbours="replace")
    others, values = [0.2, 0.4, 1.0], (0.8, 0.6)
    honest = auction.expected_gain(valuation=0.8, bid=0.8, others=others, coalition=[(0.6, 0.6)])
    alone = [auction.expected_gain(valuation=v, bid=v, others=[*others, w]) for v, w in (values, values[::-1])]
    assert honest == pytest.approx(sum(alone))
    bound = truthfulness(auction.loss, neighbours="replace", agents=2)
    for one, two in itertools.product(GRID, GRID):
        lying = auction.expected_gain(valuation=0.8, bid=one, others=others, coalition=[(0.6, two)])
        assert lying <= bound.factor * honest + 1e-12
        assert lying <= honest + 2 * bound.gain + 1e-12


def test_g1_two_auctions_on_the_same_bids_compose() -> None:
    auction = DigitalGoodsAuction(steps=4, highest=1, epsilon="1/2", neighbours="replace")
    bound, most = gain(auction.loss, runs=2), 0.0

    def both(bids: Sequence[float]) -> Any:
        once = auction.log_probs(list(bids))
        return (once[:, None] + once[None, :]).ravel()

    for bids in itertools.combinations_with_replacement(GRID, 3):
        most = max(most, best_deviation(both, bids, coalition=[0], alternatives=GRID).gain)
    assert most <= bound + 1e-12 < 2 * gain(auction.loss)


def test_g1_the_bad_news_any_report_is_as_good_as_the_truth() -> None:
    """Nothing is special about the true report: from each of all reports to each other one within the bound."""
    law, bound = vote(ExponentialMechanism, 3), gain(acc.BoundedRange("1/2"))
    laws = [np.exp(law((malicious, 0, 0, 1, 2))) for malicious in range(3)]
    for one, other in itertools.permutations(laws, 2):
        assert 0 < np.maximum(one - other, 0).sum() <= bound


def test_g1_a_mechanism_that_is_not_private_exceeds_every_bound() -> None:
    def plurality(votes: Sequence[int]) -> Any:
        counts = [list(votes).count(c) for c in range(3)]
        return np.log(np.where(np.arange(3) == int(np.argmax(counts)), 1.0, 1e-300))

    found = best_deviation(plurality, (0, 0, 1, 1, 2), coalition=[4], alternatives=range(3), utility=[0, 0.5, 1])
    assert (found.gain, found.reports) == (pytest.approx(0.5), (0, 0, 1, 1, 1))
    assert found.gain > gain(acc.PureDP("1/2"))


def test_truth_and_revenue_hold_together_as_the_number_of_buyers_grows() -> None:
    """Asymptotic truthfulness: epsilon = n^(-1/2); both what a lie gains and the share of revenue lost fall to 0."""
    lies, lost = [], []
    for n in (100, 10_000, 1_000_000):
        auction = DigitalGoodsAuction(steps=round(n**0.5), highest=1, epsilon=n**-0.5, neighbours="replace")
        lies.append(gain(auction.loss))
        lost.append(auction.expected_gap(n=n) / n)
    assert lies[2] < 0.001 < lies[0] == pytest.approx(0.025, abs=1e-3)
    assert lost[2] < 0.02 < lost[1] < lost[0]


def test_a_coordinator_may_lie_on_behalf_of_the_participants() -> None:
    """An auction that halves all bids makes doubling them best; doubled on their behalf, the truth is best."""
    auction = DigitalGoodsAuction(steps=4, highest=1, epsilon=1, neighbours="replace")

    def halving(bids: Sequence[float]) -> Any:
        return auction.log_probs([b / 2 for b in bids])

    direct = on_behalf(halving, [lambda b: 2 * b] * 3)
    for bids in itertools.product(GRID, repeat=3):
        assert np.allclose(direct(bids), auction.log_probs(list(bids)))


def test_gains_are_drawn() -> None:
    pytest.importorskip("matplotlib")
    drawn = draw_gains(acc.PureDP("0.1"), neighbours="replace", sizes=[1, 2, 3], exact=[0.0, 0.1, 0.1])
    assert list(drawn.lines[0].get_ydata()) == pytest.approx([math.tanh(k / 20) for k in (1, 2, 3)])
    assert len(drawn.lines) == 4


@pytest.mark.parametrize(
    "act",
    [
        lambda: truthfulness(acc.PureDP(1), neighbours="none"),  # type: ignore[arg-type]
        lambda: truthfulness(acc.PureDP(1), neighbours="replace", agents=0),
        lambda: truthfulness(acc.PureDP(1), neighbours="replace", runs=0),
        lambda: best_deviation(lambda r: [0.0], [1], coalition=[1], alternatives=[0]),
        lambda: best_deviation(lambda r: [0.0], [1, 2], coalition=[1, 1], alternatives=[0]),
        lambda: best_deviation(lambda r: [0.0], [1], coalition=[0], alternatives=[0], utility=[2]),
        lambda: best_deviation(lambda r: [0.0], [1], coalition=[0], alternatives=[0], utility=[1, 1]),
        lambda: best_deviation(lambda r: [0.0], [1] * 9, coalition=range(9), alternatives=range(9)),
    ],
)
def test_what_does_not_fit_is_refused(act: Callable[[], object]) -> None:
    with pytest.raises(ParameterError):
        act()
