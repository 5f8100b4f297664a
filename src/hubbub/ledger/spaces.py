"""How a ledger spells the unit spaces that it knows: older ones took every spelling for a space of its own."""

from __future__ import annotations

from hubbub.errors import PolicyError
from hubbub.ledger.accounts import EVERYONE
from hubbub.ledger.books import latest_allowances
from hubbub.ledger.hash_chain import Connection
from hubbub.spelling import one_spelling

__all__ = ["recorded_space"]


def recorded_space(connection: Connection, space: str) -> str | None:
    """The spelling under which a unit space has its budget; None where it has none.

    Raises:
        PolicyError: it has several, and a steward has not ended all but one.
    """
    known = [name for (name,) in connection.execute("SELECT name FROM unit_space ORDER BY name").fetchall()]
    if not all(isinstance(name, str) for name in known):
        raise PolicyError(
            "the ledger's unit spaces are damaged: the name of one is not a text. No answer is given; restore a backup "
            "that holds every charge."
        )
    same = [name for name in known if one_spelling(name) == one_spelling(space)]
    if len(same) > 1:
        same = [name for name in same if not _is_ended(connection, name)] or same
    if len(same) > 1:
        raise PolicyError(
            f"the ledger holds several budgets for one unit space, by its spellings {', '.join(map(repr, same))}: the "
            "same people may have been asked about under each. Look at what each has spent (`hubbub budget`), and end "
            f"all but one: `hubbub revoke everyone --unit-space {same[-1]!r}`. What was spent under it still counts. "
            "Nothing was charged."
        )
    return same[0] if same else None


def _is_ended(connection: Connection, space: str) -> bool:
    said = latest_allowances(connection, space, [EVERYONE]).get(EVERYONE)
    return said is not None and said.epsilon is None
