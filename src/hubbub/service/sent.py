"""What is sent to the desk: how it stands in the schedule, and what of it is not taken."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from hubbub.errors import PolicyError, QueryError
from hubbub.ledger.budget import decimal_text
from hubbub.ledger.wording import is_commitment
from hubbub.remedies import AskLess

if TYPE_CHECKING:
    from hubbub.ledger.timetable import Scheduled
    from hubbub.service.forms import Shown
    from hubbub.service.people.person import TokenLimits
    from hubbub.session.run import Request

__all__ = ["as_sent", "capped", "check_form", "check_most", "finds", "is_about_bounds", "question_text"]

_LONGEST_SQL: Final = 100_000


def as_sent(made: Request) -> dict[str, Any]:
    """What is asked, as it stands in the schedule: with its kind where it is not in SQL, and whether it may use less
    than it is charged.
    """
    kind = {} if made.kind == "sql" else {"kind": made.kind}
    return {**made.ask(), **kind, **({"capped": True} if made.capped else {})}


def capped(token: TokenLimits | None) -> str | None:
    """The token that the ledger counts."""
    return None if token is None else token.account


def is_about_bounds(one: Scheduled) -> bool:
    """Whether it was asked about a question's limits."""
    return bool(json.loads(one.ask).get("kind") == "bounds")


def finds(one: Scheduled) -> bool:
    """Whether bounds are found for it."""
    return not is_commitment(one.ask) and "known" in json.loads(one.ask)


def check_form(one: Scheduled, shown: Shown) -> None:
    """Raises QueryError for a form in which the answer of a question is not written."""
    if shown.form != "json" and is_about_bounds(one):
        raise QueryError("what limits leave out is told as JSON, and in no other form.")


def check_most(token: TokenLimits | None, epsilon: Fraction) -> None:
    """Raises PolicyError where a token may not ask at so much."""
    if token is not None and token.most is not None and epsilon > token.most:
        less = AskLess(decimal_text(token.most))
        raise PolicyError(
            f"this token asks at epsilon {decimal_text(token.most)} at most, and the question at "
            f"{decimal_text(epsilon)}. Ask with {less.in_python()}, or with another token. Nothing was charged.",
            remedy=less,
        )


def question_text(sql: object) -> str:
    """The text of a question, which has an end.

    Raises QueryError for anything else.
    """
    if not isinstance(sql, str) or len(sql) > _LONGEST_SQL:
        raise QueryError(f"a question is a text of at most {_LONGEST_SQL:,} characters. Nothing was charged.")
    return sql
