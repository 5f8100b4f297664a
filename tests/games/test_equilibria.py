"""Correlated equilibria by linear programming, and what joint privacy gives: three true forms, one false."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub.games import (
    best_manipulation,
    correlated_equilibrium,
    equilibrium_slack,
    influence,
    is_correlated_equilibrium,
    nash_equilibria,
)

CHICKEN = [[[6, 2], [7, 0]], [[6, 7], [2, 0]]]


def test_g2_the_traffic_light_of_chicken_gives_five_and_a_quarter() -> None:
    best = correlated_equilibrium(CHICKEN)
    assert best.law == pytest.approx(np.array([[1 / 2, 1 / 4], [1 / 4, 0]]), abs=1e-9)
    assert best.payoffs == pytest.approx((5.25, 5.25))
    mixed = [e for e in nash_equilibria(CHICKEN) if e.law.min() > 0]
    assert [e.payoffs for e in mixed] == [pytest.approx((14 / 3, 14 / 3))]
    assert mixed[0].law[0, 0] == pytest.approx((2 / 3) ** 2)
    # Not vice versa: it is no product of two laws, so no Nash equilibrium, and better than the symmetric one.
    assert np.linalg.matrix_rank(best.law) == 2
    assert is_correlated_equilibrium(best.law, CHICKEN)
    # Everybody told to be peaceful would rather not be.
    assert equilibrium_slack([[1, 0], [0, 0]], CHICKEN) == 1
    assert not is_correlated_equilibrium([[1, 0], [0, 0]], CHICKEN)


def test_g2_every_nash_equilibrium_is_a_correlated_one() -> None:
    rng, found = np.random.default_rng(22), 0
    for shape in [(2, 2), (2, 3), (3, 3), (4, 4)] * 10:
        game = rng.uniform(size=(2, *shape))
        equilibria = nash_equilibria(game)
        assert len(equilibria) % 2 == 1  # Wilson: a generic game has an odd number of them
        best = correlated_equilibrium(game)
        for nash in equilibria:
            found += 1
            assert is_correlated_equilibrium(nash.law, game)
            assert is_correlated_equilibrium(nash.law, game, coarse=True)
            assert sum(nash.payoffs) <= sum(best.payoffs) + 1e-9
    assert found >= 40


def test_g2_coarse_equilibria_are_more_and_the_program_reaches_its_objective() -> None:
    """By brute force: no law of a fine grid on 2 x 2 profiles is a better equilibrium than what the program finds."""
    rng = np.random.default_rng(23)
    for _ in range(4):
        game = rng.uniform(size=(2, 2, 2))
        aim = rng.uniform(size=(2, 2))
        best = correlated_equilibrium(game, objective=aim)
        coarse = correlated_equilibrium(game, objective=aim, coarse=True)
        assert (coarse.law * aim).sum() >= (best.law * aim).sum() - 1e-9
        assert equilibrium_slack(coarse.law, game, coarse=True) <= 1e-9
        for cut in itertools.product(range(11), repeat=3):
            if sum(cut) <= 10:
                law = np.array([*cut, 10 - sum(cut)]).reshape(2, 2) / 10
                if is_correlated_equilibrium(law, game):
                    assert (law * aim).sum() <= (best.law * aim).sum() + 1e-9


def test_g2_three_players_and_the_slack_by_hand() -> None:
    """All functions from a player's advice to actions; the constant ones for coarse equilibria. Twenty games."""
    rng = np.random.default_rng(24)
    for _ in range(20):
        game, law = rng.uniform(size=(3, 2, 3, 2)), rng.dirichlet(np.ones(12)).reshape(2, 3, 2)
        worst = coarse = 0.0
        for player, size in enumerate((2, 3, 2)):
            for use in itertools.product(range(size), repeat=size):
                gain = 0.0
                for profile in np.ndindex(2, 3, 2):
                    other = list(profile)
                    other[player] = use[profile[player]]
                    gain += law[profile] * (game[player][tuple(other)] - game[player][profile])
                worst = max(worst, gain)
                coarse = max(coarse, gain if len(set(use)) == 1 else 0.0)
        assert equilibrium_slack(law, game) == pytest.approx(worst)
        assert equilibrium_slack(law, game, coarse=True) == pytest.approx(coarse)


def coins(types: tuple[str, ...]) -> np.ndarray:
    """The counterexample: two independent coins for the report t, one coin for both on t'."""
    return np.full((2, 2), 1 / 4) if types[0] == "t" else np.diag([1 / 2, 1 / 2])


SAME = np.eye(2)  # what the first player gets, of type t: 1 where both actions are equal


def test_g2_misreporting_and_obeying_a_correlated_equilibrium_may_gain_half() -> None:
    """The form that is false: no influence, exact equilibria of every reported game, and yet a gain of 1/2."""
    types = ("t", "-")
    assert influence(coins, types, 0, ["t", "t'"]) == 0
    for report, payoff in (("t", SAME), ("t'", np.zeros((2, 2)))):
        game = np.array([payoff, np.zeros((2, 2))])
        assert equilibrium_slack(coins((report, "-")), game) == 0
    found = best_manipulation(coins, SAME, types, 0, ["t", "t'"], uses="obey")
    assert (found.report, found.honest, found.best, found.gain) == ("t'", 0.5, 1.0, 0.5)


def randomised(rng: np.random.Generator, shape: tuple[int, ...]) -> Callable[[tuple[int, ...]], np.ndarray]:
    """A mediator whose advice depends on three reported types of the first player, anyhow."""
    laws = rng.dirichlet(np.full(int(np.prod(shape)), 0.7), size=3).reshape(3, *shape)
    return lambda types: laws[types[0]]


def test_g2_ex_post_best_replies_bound_every_misreport_and_every_use() -> None:
    """(a): alpha is how far an advised action is from the best reply to the others' advice, as drawn, on average."""
    rng = np.random.default_rng(25)
    for _ in range(50):
        mediator, utility = randomised(rng, (3, 2, 2)), rng.uniform(size=(3, 2, 2))
        types = (0, 0, 0)
        v = influence(mediator, types, 0, range(3))
        alpha = float((mediator(types) * (utility.max(axis=0, keepdims=True) - utility)).sum())
        gain = best_manipulation(mediator, utility, types, 0, range(3)).gain
        assert gain <= alpha + v + 1e-12
    # Here advice that is no best reply is the worse for it, and the counterexample has alpha = 1/2.
    assert float((coins(("t", "-")) * (1 - SAME)).sum()) == 0.5


def test_g2_coarse_advice_bounds_misreports_followed_by_a_fixed_action() -> None:
    """(b); that "any use" is not bounded so is shown by the counterexample, where alpha and v are 0."""
    rng = np.random.default_rng(26)
    for _ in range(50):
        mediator, utility = randomised(rng, (2, 2)), rng.uniform(size=(2, 2))
        types = (0, 0)
        v, game = influence(mediator, types, 0, range(3)), np.array([utility, np.zeros((2, 2))])
        alpha = equilibrium_slack(mediator(types), game, coarse=True)
        assert best_manipulation(mediator, utility, types, 0, range(3), uses="fixed").gain <= alpha + v + 1e-12
    gains = [best_manipulation(coins, SAME, ("t", "-"), 0, ["t", "t'"], uses=u).gain for u in ("fixed", "obey", "any")]
    assert gains == [0, 0.5, 0.5]


def test_g2_a_billboard_bounds_what_is_made_of_it() -> None:
    """(c): the first player is shown a sign; alpha and v are about functions of it, and (sign, others' advice)."""
    rng = np.random.default_rng(27)
    for _ in range(30):
        laws = rng.dirichlet(np.full(12, 0.7), size=3).reshape(3, 3, 2, 2)  # sign, own advice, other's advice

        def mediator(types: tuple[int, ...], laws: np.ndarray = laws) -> np.ndarray:
            return laws[types[0]].sum(axis=1)  # the sign takes the place of the advice

        utility = rng.uniform(size=(2, 2))
        own = laws[0]
        honest = float((own.sum(axis=0) * utility).sum())
        pays = np.einsum("sj,aj->sa", own.sum(axis=1), utility)
        alpha = float(pays.max(axis=1).sum()) - honest
        moved = [laws[r].sum(axis=1) for r in range(3)]
        v = max(float(np.maximum(m - moved[0], 0).sum()) for m in moved)
        best = max(float(np.einsum("sj,aj->sa", mediator((r,)), utility).max(axis=1).sum()) for r in range(3))
        assert best - honest <= alpha + v + 1e-12


@pytest.mark.parametrize(
    "act",
    [
        lambda: correlated_equilibrium([1, 2]),
        lambda: correlated_equilibrium([[1, 2], [3, 4]]),
        lambda: correlated_equilibrium(CHICKEN, objective=[1, 2]),
        lambda: correlated_equilibrium(np.zeros((2, 400, 400))),
        lambda: equilibrium_slack([[1, 1], [0, 0]], CHICKEN),
        lambda: equilibrium_slack([[1, 0]], CHICKEN),
        lambda: nash_equilibria(np.zeros((3, 2, 2, 2))),
        lambda: best_manipulation(coins, SAME, ("t", "-"), 0, ["t"], uses="some"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_is_refused(act: Callable[[], object]) -> None:
    with pytest.raises(ParameterError):
        act()
