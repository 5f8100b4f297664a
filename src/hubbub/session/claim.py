"""The charge that a question is drawn for: taken over, made, or another's who asks the very same at this moment.

Every question takes this way, whether it is asked in SQL or about whole rows: a charge whose process died, or gave it
up, before anything was drawn is taken over, once, and two that ask the same at once pay once. A failure on rows is
charged, counted, and told by the id of an incident alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hubbub.errors import EngineError
from hubbub.ledger.accounts import Total

if TYPE_CHECKING:
    from hubbub.ledger.store import Ledger, StoredRelease

__all__ = ["claimed", "on_rows", "retried"]

_Found = TypeVar("_Found")
_NAMED: Final = ("space", "question_key", "analyst", "epsilon", "block")


def retried(ledger: Ledger, columns: Mapping[str, Any], charge: str | None = None) -> str | None:
    """A charge of this question whose process died before anything was drawn: its one free retry."""
    named = {name: columns[name] for name in _NAMED}
    return ledger.resume(**named, charge=charge, spend=Total.of(columns["cost"]))


def claimed(ledger: Ledger, columns: Mapping[str, Any], *, once: bool) -> tuple[str, StoredRelease | None]:
    """A charge that is now this process's to draw; or, `once`, another's and its answer, which came meanwhile.

    columns: what `Ledger.charge` takes.

    Raises BudgetError if it does not fit, PolicyError if it may not be charged.
    """
    charge = retried(ledger, columns)
    if charge is not None:
        return charge, None
    if once:
        charge, new = ledger.charge_once(**columns)
        if new:
            return charge, None
        # Somebody asks the very same at this moment: theirs is the answer, and it was paid once.
        stored = ledger.await_release(charge)
        if stored is not None:
            ledger.share(stored, columns["analyst"])
            return charge, stored
    return ledger.charge(**columns), None


def on_rows(work: Callable[[], _Found]) -> tuple[_Found | None, str | None]:
    """What `work` makes of people's rows, or the id of an incident: the words of its error may hold rows."""
    try:
        return work(), None
    except EngineError as error:
        return None, error.incident
    except Exception:
        return None, uuid.uuid4().hex[:12]
