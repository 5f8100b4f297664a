"""Connections that say nothing keep nobody out: a whole request comes within half a minute, or the line is closed.

A process has so many files open at once. Whoever opened as many connections and said nothing, or half a request, or a
body letter by letter, would keep everybody else out, without an account. So one that waits for the rest of a request is
closed after a time, and where there are very many, the one that has waited longest goes for each that comes. Answers
that are awaited, and streams of events, wait as long as they like.

A handshake of TLS is a connection, too, before it is done: it counts among them, and has a few seconds.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

__all__ = ["PatientLoop", "patient_protocol"]

_LOOK: Final = 10.0  # seconds between two looks
_PATIENCE: Final = 30.0  # seconds for one request, head and body
_MOST: Final = 3000  # connections; the front may have 4,096 files
_SHAKING: Final = 5.0  # seconds for a handshake


class PatientLoop(asyncio.SelectorEventLoop):
    """An event loop that says when a handshake begins, and gives it so long. What asyncio makes of a connection before
    its handshake is done, it shows to nobody; so this one thing of its inside is used (3.11 to 3.14 have it).
    """

    async def create_server(self, *given: Any, **more: Any) -> asyncio.Server:
        """A server whose handshakes have an end."""
        if more.get("ssl") is not None:
            more.setdefault("ssl_handshake_timeout", _SHAKING)
        return await super().create_server(*given, **more)

    def _make_ssl_transport(self, socket: Any, protocol: Any, *given: Any, **more: Any) -> Any:
        made = super()._make_ssl_transport(socket, protocol, *given, **more)  # type: ignore[misc]
        if hasattr(protocol, "handshake_begins"):
            protocol.handshake_begins(made)
        return made


class _Known:
    """The connections that there are, the oldest first; of too many the one that has waited longest goes."""

    def __init__(self, most: int) -> None:
        self._most, self._all = most, dict[Any, None]()

    def add(self, one: Any) -> None:
        self._all[one] = None
        if len(self._all) > self._most:
            oldest = next((each for each in self._all if each.is_waiting()), one)
            self.drop(oldest)  # now, and not when it is closed: the next that comes finds another one
            oldest.hang_up()

    def drop(self, one: Any) -> None:
        self._all.pop(one, None)

    def __contains__(self, one: Any) -> bool:
        return one in self._all


def patient_protocol(*, look: float = _LOOK, patience: float = _PATIENCE, most: int = _MOST) -> type[asyncio.Protocol]:
    """The protocol of a server: uvicorn's, which waits so long."""
    known = _Known(most)

    class Patient(AutoHTTPProtocol):  # type: ignore[misc, valid-type, unused-ignore]
        _seen: tuple[Any, bool] | None = None
        _since = 0.0
        _shaking: Any = None  # what there is of a connection whose handshake is not done

        def hang_up(self) -> None:
            # A handshake that was made in this turn of the loop has its line from the next turn on.
            self.loop.call_soon((self._shaking or self.transport).abort)

        def handshake_begins(self, transport: Any) -> None:
            self._shaking = transport
            known.add(self)
            self.loop.call_later(_SHAKING + 1, self._handshake_over)

        def _handshake_over(self) -> None:
            if self._shaking is not None:  # it failed, which nobody tells a protocol
                known.drop(self)

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._since, self._shaking = self.loop.time(), None
            known.add(self)
            self.loop.call_later(look, self._look)

        def connection_lost(self, exc: Exception | None) -> None:
            known.drop(self)
            super().connection_lost(exc)

        def is_waiting(self) -> bool:
            """Whether the next thing to come is the rest of a request, or of a handshake."""
            if self._shaking is not None:
                return True
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
