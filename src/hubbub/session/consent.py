"""Whether what would be bought is stored already: then it is free, and nobody has to agree to its cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from hubbub.session.check_bounds import bounds_request
from hubbub.session.whole_rows import ask_marginals

if TYPE_CHECKING:
    from hubbub.session.session import Session

__all__ = ["bounds_are_stored", "marginals_are_stored"]


def marginals_are_stored(session: Session, table: str, marginals: Iterable[Sequence[str]], *, epsilon: str) -> bool:
    """Whether `session.marginals` would return a stored release.

    Raises what it raises before the charge.
    """
    asked = ask_marginals(session._data, session._ledger.balance.budget, table, marginals, epsilon=epsilon)
    return session._door.stored(asked.request(session._data)) is not None


def bounds_are_stored(session: Session, sql: str, **options: Any) -> bool:
    """Whether `session.check_bounds` would return a stored release.

    Raises what it raises before the charge.
    """
    return session._door.stored(bounds_request(session._door, sql, options)) is not None
