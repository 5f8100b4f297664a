"""What a session does and a connection cannot, with the reason that is given."""

from __future__ import annotations

from typing import Final, NoReturn

from hubbub.errors import PolicyError

__all__ = ["NOT_HERE", "refuse"]

_WHOLE: Final = "the service answers questions in SQL; this reads whole rows, and is done where the tables are"
_STEWARD: Final = "it is a steward's act, on his pages or by his token"
_TOKEN: Final = "who asks is known by the token: connect with another one"

NOT_HERE: Final = {
    "synthesize": _WHOLE,
    "plan_synthesis": _WHOLE,
    "marginals": _WHOLE,
    "fit": _WHOLE,
    "check_fit": _WHOLE,
    "evaluate": _WHOLE,
    "suggest_bounds": _WHOLE,
    "check_plan": "check each question of it: all together cost at most what they cost one by one",
    "reserve": "a block would hold the budget for as long as somebody forgets it; fix the questions and use plan",
    "refresh": _STEWARD,
    "ledger": "the ledger is behind the wall: history, receipt and remaining tell what is yours to know",
    "as_analyst": _TOKEN,
    "from_policy": "the policy is the service's; connect with its address and a token",
    "fresh=True": "a stored answer is given again for nothing; refine makes it better",
}
"""By name."""


def refuse(name: str) -> NoReturn:
    """Raises PolicyError, with the reason."""
    raise PolicyError(f"{name}: not through a service: {NOT_HERE[name]}. Nothing was charged.")
