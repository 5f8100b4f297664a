"""Games: mechanisms for people who answer to their advantage.

Auction        `DigitalGoodsAuction` sells unlimited copies at a price that no bid moves much; `revenue`
Truthfulness   `truthfulness` says what other reports gain at most, from its event; `best_deviation` tries all;
               `on_behalf`, `draw_gains`
Equilibria     `correlated_equilibrium` by linear programming, `is_correlated_equilibrium`, `nash_equilibria`;
               `best_manipulation` and `influence` of a mediator
Congestion     `CongestionGame`, `PrivateMediator`: advice on noisy loads
"""

from hubbub.games.auction import DigitalGoodsAuction, revenue
from hubbub.games.congestion import Advice, CongestionGame, PrivateMediator, draw_regret
from hubbub.games.equilibria import (
    Equilibrium,
    Manipulation,
    best_manipulation,
    correlated_equilibrium,
    equilibrium_slack,
    influence,
    is_correlated_equilibrium,
    nash_equilibria,
)
from hubbub.games.truthfulness import Deviation, Truthfulness, best_deviation, draw_gains, on_behalf, truthfulness

__all__ = [
    "Advice",
    "CongestionGame",
    "Deviation",
    "DigitalGoodsAuction",
    "Equilibrium",
    "Manipulation",
    "PrivateMediator",
    "Truthfulness",
    "best_deviation",
    "best_manipulation",
    "correlated_equilibrium",
    "draw_gains",
    "draw_regret",
    "equilibrium_slack",
    "influence",
    "is_correlated_equilibrium",
    "nash_equilibria",
    "on_behalf",
    "revenue",
    "truthfulness",
]
