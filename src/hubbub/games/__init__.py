"""Games: mechanisms for people who answer to their advantage.

Auction        `DigitalGoodsAuction` sells unlimited copies at a price that no bid moves much; `revenue`
Truthfulness   `truthfulness` says what other reports gain at most, from its event; `best_deviation` tries all;
               `on_behalf`, `draw_gains`
Equilibria     `correlated_equilibrium` by linear programming, `is_correlated_equilibrium`, `nash_equilibria`;
               `best_manipulation` and `influence` of a mediator
Congestion     `CongestionGame`, `PrivateMediator`: advice on noisy loads
Data           `MinCostAuction` and `FairQuery` buy bits that can be verified, `PeerPrediction` pays for bits that
               cannot; `commitment_share`
"""

from hubbub.games.auction import DigitalGoodsAuction, revenue
from hubbub.games.buying import FairQuery, MinCostAuction, Sale, commitment_share
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
from hubbub.games.peer_prediction import PeerPrediction, Survey
from hubbub.games.truthfulness import Deviation, Truthfulness, best_deviation, draw_gains, on_behalf, truthfulness

__all__ = [
    "Advice",
    "CongestionGame",
    "Deviation",
    "DigitalGoodsAuction",
    "Equilibrium",
    "FairQuery",
    "Manipulation",
    "MinCostAuction",
    "PeerPrediction",
    "PrivateMediator",
    "Sale",
    "Survey",
    "Truthfulness",
    "best_deviation",
    "best_manipulation",
    "commitment_share",
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


def __dir__() -> list[str]:
    return sorted(__all__)
