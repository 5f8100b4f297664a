"""Games: mechanisms for people who answer to their advantage.

Auction        `DigitalGoodsAuction` sells unlimited copies at a price that no bid moves much; `revenue`
Truthfulness   `truthfulness` says what other reports gain at most, from its event; `best_deviation` tries all;
               `on_behalf`, `draw_gains`
"""

from hubbub.games.auction import DigitalGoodsAuction, revenue
from hubbub.games.truthfulness import Deviation, Truthfulness, best_deviation, draw_gains, on_behalf, truthfulness

__all__ = [
    "Deviation",
    "DigitalGoodsAuction",
    "Truthfulness",
    "best_deviation",
    "draw_gains",
    "on_behalf",
    "revenue",
    "truthfulness",
]
