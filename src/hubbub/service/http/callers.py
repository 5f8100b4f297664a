"""Connections that say nothing keep nobody out: a whole request comes within half a minute, or the line is closed.

A process has so many files open at once. Whoever opened as many connections and said nothing, or half a request, or a
body letter by letter, would keep everybody else out, without an account. So one that waits for the rest of a request is
closed after a time, and where there are very many, the one that has waited longest goes for each that comes. Answers
that are awaited, and streams of events, wait as long as they like.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

__all__ = ["patient_protocol"]

_LOOK: Final = 10.0  # seconds between two looks
_PATIENCE: Final = 30.0  # seconds for one request, head and body
_MOST: Final = 3000  # connections; the front may have 4,096 files


def patient_protocol(*, look: float = _LOOK, patience: float = _PATIENCE, most: int = _MOST) -> type[asyncio.Protocol]:
    """The protocol of a server: uvicorn's, which waits so long."""
    known: dict[Any, None] = {}  # the oldest first

    class Patient(AutoHTTPProtocol):  # type: ignore[misc, valid-type, unused-ignore]
        _seen: tuple[Any, bool] | None = None
        _since = 0.0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            known[self] = None
            self._since = self.loop.time()
            if len(known) > most:
                oldest = next((one for one in known if one.is_waiting()), self)
                known.pop(oldest)  # now, and not when it is closed: the next that comes finds another one
                oldest.transport.abort()
            self.loop.call_later(look, self._look)

        def connection_lost(self, exc: Exception | None) -> None:
            known.pop(self, None)
            super().connection_lost(exc)

        def is_waiting(self) -> bool:
            """Whether the next thing to come is the rest of a request."""
            cycle = self.cycle
            return cycle is None or cycle.more_body or cycle.response_complete

        def _look(self) -> None:
            if self not in known:
                return
            seen = self.cycle, self.is_waiting()
            if seen != self._seen:
                self._since = self.loop.time() if self._seen is not None else self._since
                self._seen = seen
            if seen[1] and self.loop.time() - self._since > patience:
                self.transport.abort()
            else:
                self.loop.call_later(look, self._look)

    return Patient
