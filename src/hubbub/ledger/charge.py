"""One charge, before it is made: every column spelled out once."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from hubbub.errors import QueryError, what_was_given
from hubbub.ledger.accounts import Total, pure_cost
from hubbub.ledger.budget import parse_epsilon

if TYPE_CHECKING:
    from hubbub.accounting import Cost
    from hubbub.ledger.records import Kind

__all__ = ["Charge", "checked_analyst", "checked_purpose", "checked_text"]

_LONGEST: Final = 200  # characters of an analyst's name, and of a purpose
_ASKED: Final = ("question", "block", "plan")


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What is asked for, by whom, and what it costs.

    space: the unit space that pays. dataset: the name of the data set asked about; of several, joined by
    `accounts.TOGETHER`. analyst: who asks. question_key: equal for equal questions; `find_release` looks it up. sql:
    the question, as people read it. epsilon: what was asked for, exact and positive. event: what will be run, as JSON.
    details: sensitivity, scale and what else a receipt shows, as JSON. cost: the exact cost of the event; `epsilon`,
    pure, unless said. policy: the hash of the policy it is asked under (`remember_policy`). data_version: the id of the
    data's rows. request: the idempotency key of the analyst's request. block: the reserved block that pays instead of
    the joint budget. purpose: what it is asked for, at most 200 characters. kind: a question, unless said.

    Raises:
        ParameterError: epsilon is not a positive rational.
        QueryError: a text is not valid Unicode; the analyst's name or the purpose is too long, or none.

    >>> Charge(space="pid", analyst="ada", epsilon=Fraction("0.1"), sql="SELECT COUNT(*) FROM visits").kind
    'question'
    """

    space: str
    analyst: str
    epsilon: Fraction
    sql: str
    dataset: str = ""
    question_key: str = ""
    event: str = "{}"
    details: str = "{}"
    cost: Cost | Total | None = None
    policy: str | None = None
    data_version: str | None = None
    request: str | None = None
    block: str | None = None
    purpose: str | None = None
    kind: Kind = "question"

    @property
    def spend(self) -> Total:
        """What it adds to every account that pays."""
        cost = pure_cost(self.epsilon) if self.cost is None else self.cost
        return cost if isinstance(cost, Total) else Total.of(cost)

    def __post_init__(self) -> None:
        if self.kind in _ASKED:
            object.__setattr__(self, "epsilon", parse_epsilon(self.epsilon))
        for text, what in ((self.dataset, "data set"), (self.question_key, "question key"), (self.sql, "question")):
            checked_text(text, what)
        checked_analyst(self.analyst)
        checked_purpose(self.purpose)


def checked_analyst(name: str) -> str:
    """The name of an analyst who asks, or a QueryError where it is none.

    It is written with every charge and refusal, so it is short.
    """
    checked_text(name, "analyst")
    if name == "*":
        raise QueryError(
            "'*' is not an analyst: it stands for each who has no limit of their own. Nothing was charged."
        )
    if len(name) > _LONGEST:
        raise QueryError(
            f"the analyst's name has {len(name)} characters; {_LONGEST} are allowed: {name[:20]!r}... Name a shorter "
            "one. Nothing was charged."
        )
    return name


def checked_purpose(purpose: str | None) -> str | None:
    """What a question is asked for, or a QueryError where it is not a text of at most 200 characters."""
    if purpose is None:
        return None
    if not isinstance(purpose, str) or not purpose.strip():
        raise QueryError(f"purpose={what_was_given(purpose)}: expected a text that says what for. Nothing was charged.")
    if len(checked_text(purpose, "purpose")) > _LONGEST:
        raise QueryError(
            f"the purpose has {len(purpose)} characters; {_LONGEST} are allowed: {purpose[:20]!r}... Say it in fewer. "
            "Nothing was charged."
        )
    return purpose


def checked_text(text: str, what: str) -> str:
    """`text`, or a QueryError where it is not valid Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise QueryError(
            f"the {what} is not valid Unicode: character {error.start + 1} is half of a surrogate pair."
        ) from None
    return text
