"""The session: declared tables, a budget and its ledger, and the one way in which private rows are asked.

`session` is what people hold. Beside it stands what it does, in the order of a question: `open` and `data` (the ledger
and the tables), `options`, `prepare`, `check`; then `run`, the one door to private rows, through which everything goes
that is charged: `statement`, `ask` (SQL), `whole_rows`, `publish` (synthetic tables, marginals), `plan`, `bounds`.
`runner` executes, without a ledger, what another process charged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hubbub.session.session import Session as Session

__all__ = ["Session"]


def __getattr__(name: str) -> Any:
    # When it is asked for: rooms below import the modules beside it.
    if name == "Session":
        from hubbub.session.session import Session

        return Session
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
