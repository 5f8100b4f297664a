"""Asking a service of hubbub's from elsewhere: `hubbub.connect(url, token=...)` offers what `Session` does.

    wire          HTTP with a token; a refusal is raised again as the error that it was, word for word
    tables        what is declared, as the session shows it
    answers       an answer as it was sent, which fetches other levels and refinements where it was released
    connection    check, sql, table, plan, history, receipt, what is left
    not_here      what a session does and a connection cannot, each with its reason

Nothing of the rows is here, and nothing of the ledger: who asks is known by his token alone. Beside hubbub itself this
needs Python's own library and pyarrow.
"""

from __future__ import annotations

from hubbub.remote.connection import Connection, connect
from hubbub.remote.not_here import NOT_HERE

__all__ = ["NOT_HERE", "Connection", "connect"]


def __dir__() -> list[str]:
    return sorted(__all__)
