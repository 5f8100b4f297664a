"""The private mediator: regret within its bound, charged for its loads, and telling others' advice little."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from hubbub import accounting as acc
from hubbub.errors import ParameterError
from hubbub.games import CongestionGame, PrivateMediator, draw_regret, truthfulness
from hubbub.games.congestion import _drawn
from hubbub.mechanisms import epsilon_between
from hubbub.noise import DiscreteLaplace, uniform_below
from seeded import SeededBits

TASTES = [[0.0, 0.3, 0.6, 0.9], [0.9, 0.6, 0.3, 0.0], [0.5, 0.0, 0.5, 0.0], [0.2, 0.2, 0.2, 0.2], [1.0, 0.0, 1.0, 0.2]]


def game() -> CongestionGame:
    costs = [lambda x: x, lambda x: 0.2 + 0.6 * x, lambda x: x * x, lambda x: 0.5]
    return CongestionGame(costs=costs, tastes=TASTES, slope=2)


def test_g2_the_loss_is_that_of_the_loads() -> None:
    """T rounds of loads of which a replaced type moves two by one: rho = T/sigma^2."""
    mediator = PrivateMediator(game(), rounds=60, rho="0.03")
    sigma2 = mediator.noise.variance
    assert acc.rho(mediator.loss) == Fraction(3, 100) == 60 / sigma2
    assert mediator.loss == acc.Repeated(acc.ZCDP(Fraction(1, 2000)), 60)
    assert PrivateMediator(game(), rounds=60, rho=1).regret(n=10) == pytest.approx(0.10748, abs=1e-5)
    # What misreporting can gain beyond the regret: between a Gaussian of the same rho and Pinsker's sqrt(rho/2).
    v = truthfulness(mediator.loss, neighbours="replace").gain
    assert math.erf(math.sqrt(2 * 0.03) / 2 / math.sqrt(2)) <= v <= math.sqrt(0.03 / 2) + 1e-12


@pytest.mark.parametrize("n", [300, 3000])
def test_g2_regret_is_within_its_bound_and_the_price_of_privacy_goes(n: int) -> None:
    """No false alarm: the bound fails with probability 1e-9 at most."""
    types = uniform_below(5, n, bits=SeededBits(f"types {n}"))
    found = {}
    for rho in ("0.0003", "0.03", "3"):
        mediator = PrivateMediator(game(), rounds=60, rho=rho)
        advice = mediator.advise(types, bits=SeededBits(f"advice {n} {rho}"))
        assert advice.routes.shape == (n,)
        assert set(np.unique(advice.routes)) <= set(range(4))
        assert advice.mean <= advice.worst <= mediator.regret(n=n, beta=Fraction(1, 10**9))
        found[rho] = advice.mean
    # At 3,000 players even rho = 3e-4 costs hardly anything; sqrt(ln 4/120) = .1075 is what learning may lose.
    assert found["3"] < 0.1075
    if n == 3000:
        assert found["0.0003"] < found["3"] + 0.02


def test_g2_regret_falls_with_the_rounds_and_the_advice_is_followed_by_all_types() -> None:
    types = uniform_below(5, 2000, bits=SeededBits("types"))
    few, many = (PrivateMediator(game(), rounds=t, rho=1).advise(types, bits=SeededBits("b")).mean for t in (4, 100))
    assert many < few
    advice = PrivateMediator(game(), rounds=100, rho=1).advise(types, bits=SeededBits("follow"))
    # Whose tastes point to a route goes there more often than others do.
    assert (advice.routes[types == 1] == 3).mean() > (advice.routes[types == 0] == 3).mean()


def test_g2_others_learn_of_a_type_only_what_the_loads_tell() -> None:
    """Two players, two types, two routes, two rounds, by enumeration: joint privacy of the second player's advice.

    Round 1: a player's play is a coin by type. The load of route 0 is published with discrete Laplace noise. Round 2:
    each plays by own type and what is public. Advice: the play of a random round.
    """
    first = {0: 0.8, 1: 0.3}  # P(route 0 | type) in round 1
    noise, window = DiscreteLaplace(2), np.arange(-200, 203)

    def second(kind: int) -> np.ndarray:  # P(route 0 | public load) in round 2
        return 1 / (1 + np.exp((window - 1) * (1 if kind else 0.2)))

    def law(one: int, two: int) -> np.ndarray:
        """ln P(public load, the second player's advice)."""
        out = np.zeros((len(window), 2))
        for a, b in itertools.product((0, 1), repeat=2):
            chance = (first[one] if a == 0 else 1 - first[one]) * (first[two] if b == 0 else 1 - first[two])
            public = chance * np.exp(noise.log_pmf(window - (2 - a - b)))
            out[:, b] += public / 2
            out[:, 0] += public / 2 * second(two)
            out[:, 1] += public / 2 * (1 - second(two))
        return np.log(out)

    for two in (0, 1):
        found = epsilon_between(law(0, two), law(1, two))
        assert 0.1 < found <= 1 / 2 + 1e-12
        advised = [np.logaddexp.reduce(law(one, two), axis=0) for one in (0, 1)]
        assert epsilon_between(*advised) <= found


def test_plays_are_drawn_by_the_weights_of_the_type() -> None:
    weights = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])
    types = np.repeat([0, 1], 20_000)
    plays = _drawn(weights, types, SeededBits("plays"))
    for kind in (0, 1):
        seen = np.bincount(plays[types == kind], minlength=3) / 20_000
        assert np.abs(seen - weights[kind]).max() <= 0.024  # Hoeffding at 1e-9


def test_regret_is_drawn() -> None:
    pytest.importorskip("matplotlib")
    drawn = draw_regret({100: [(0.1, 0.2), (1, 0.1)], 1000: [(0.1, 0.1), (1, 0.1)]}, 0.1075)
    assert len(drawn.lines) == 3


@pytest.mark.parametrize(
    "act",
    [
        lambda: CongestionGame(costs=[lambda x: x], tastes=[[0.0]], slope=1),
        lambda: CongestionGame(costs=[lambda x: x] * 2, tastes=[[0.0]], slope=1),
        lambda: CongestionGame(costs=[lambda x: x] * 2, tastes=[[0.0, 2.0]], slope=1),
        lambda: CongestionGame(costs=[lambda x: 2 * x] * 2, tastes=[[0.0, 0.0]], slope=2),
        lambda: CongestionGame(costs=[lambda x: x] * 2, tastes=[[0.0, 0.0]], slope=0.5),
        lambda: PrivateMediator(game(), rounds=0, rho=1),
        lambda: PrivateMediator(game(), rounds=5, rho=0),
        lambda: PrivateMediator(game(), rounds=5, rho=1).advise([5]),
        lambda: PrivateMediator(game(), rounds=5, rho=1).advise([]),
        lambda: PrivateMediator(game(), rounds=5, rho=1).advise([[0]]),
        lambda: PrivateMediator(game(), rounds=5, rho=1).advise([0.5]),
    ],
)
def test_what_does_not_fit_is_refused(act) -> None:
    with pytest.raises(ParameterError):
        act()
