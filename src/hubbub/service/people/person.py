"""A person as an act sees him, and the refusals of one who may not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from hubbub.errors import HubbubError, PolicyError, QueryError

__all__ = [
    "ROLES",
    "SCOPES",
    "NotAllowed",
    "NotKnown",
    "Person",
    "TokenLimits",
    "TooMany",
    "checked_roles",
    "checked_scopes",
    "scopes_of",
]

ROLES: Final = ("analyst", "steward", "auditor")
"""What a person may be, in this order."""
SCOPES: Final = {
    "check": "analyst", "ask": "analyst", "steward": "steward", "auditor": "auditor", "metrics": "auditor",
}  # fmt: skip
"""What a token may do, and the role that its person must have. Whoever may ask may check; an auditor's may read the
amounts in metrics.
"""


class NotKnown(HubbubError):
    """Nobody is known by this proof: it was never one, or it has ended."""


class NotAllowed(HubbubError):
    """Who asks is known, and may not do this."""


class TooMany(PolicyError):
    """More at once than one person may. retry_after: seconds until it may be tried again."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(frozen=True)
class TokenLimits:
    """What one token may spend. most: the greatest epsilon of one question. cap: what it may learn in all, which the
    ledger holds as the account `token:ID`.
    """

    id: str
    most: Fraction | None = None
    cap: Fraction | None = None

    @property
    def account(self) -> str | None:
        """The token that the ledger counts; None where it has no cap."""
        return None if self.cap is None else self.id


@dataclass(frozen=True)
class Person:
    """Who asks, known by a proof. scopes: what this proof lets him do. token: its limits; None for a page's session.
    until: when the proof ends. session: what is kept of a session; csrf: the word of its forms.
    """

    name: str
    roles: tuple[str, ...]
    scopes: frozenset[str]
    until: str
    token: TokenLimits | None = None
    session: str | None = None
    csrf: str | None = None

    def may(self, needs: Iterable[str]) -> bool:
        """Whether one of these scopes is his."""
        return bool(self.scopes.intersection(needs))


def scopes_of(roles: Iterable[str]) -> frozenset[str]:
    """All that people of these roles may do.

    >>> sorted(scopes_of(["analyst"]))
    ['ask', 'check']
    """
    have = set(roles)
    return frozenset(scope for scope, role in SCOPES.items() if role in have)


def checked_roles(roles: Iterable[str]) -> tuple[str, ...]:
    """Roles in their order, each once.

    Raises QueryError for none, and for what is not a role.
    """
    given = [roles] if isinstance(roles, str) else list(roles)
    if not given or not all(role in ROLES for role in given):
        raise QueryError(f"roles {given!r:.80}: expected one or more of {', '.join(ROLES)}.")
    return tuple(role for role in ROLES if role in given)


def checked_scopes(scopes: Iterable[str], roles: Iterable[str]) -> frozenset[str]:
    """The scopes of a token of somebody who has these roles.

    Raises QueryError for none, for what is not a scope, and for one of another role.
    """
    given, allowed = list(scopes), scopes_of(roles)
    if not given or not all(isinstance(scope, str) and scope in allowed for scope in given):
        raise QueryError(
            f"scopes {given!r:.80}: expected one or more of {', '.join(s for s in SCOPES if s in allowed)}."
        )
    return frozenset(given) | ({"check"} if "ask" in given else set())
