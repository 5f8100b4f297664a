"""Releases as they come, as server-sent events (WHATWG HTML, 9.2): what waits, and what was told since.

    event: waiting    data: [{"id", "before", "seconds"}]     at the beginning, and whenever it changes
    event: released   data: {"id"}                            its release has come: fetch the answer

All of it follows from submissions and declared times: the clerk's act `events` says no more. Ids of events count within
a connection.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

__all__ = ["STREAMS", "released", "stream"]

STREAMS: Final = 20
"""Streams of one token at once."""
_PAUSE, _WAITING, _BEAT = 5.0, 1.0, 15.0


async def stream(
    look: Callable[[], Awaitable[list[dict[str, Any]] | None]], *, pause: float = _PAUSE
) -> AsyncIterator[str]:
    """The events of one analyst, for as long as somebody listens and `look` says what waits."""
    number, known, quiet = 0, None, 0.0
    while (waiting := await look()) is not None:
        now = {each["id"] for each in waiting}
        said: list[tuple[str, Any]] = [("released", {"id": each}) for each in released(known, now)]
        if known != now:
            said.append(("waiting", waiting))
        for event, data in said:
            number += 1
            yield f"id: {number}\nevent: {event}\ndata: {json.dumps(data)}\n\n"
        known = now
        comes = min((each["seconds"] for each in waiting), default=pause)
        wait = max(0.05, min(comes, _WAITING if waiting else pause))
        quiet = 0.0 if said else quiet + wait
        if quiet >= _BEAT:
            quiet = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(wait)


def released(known: set[str] | None, now: set[str]) -> list[str]:
    """What waits no more.

    >>> released({"a", "b"}, {"b"}), released(None, {"b"})
    (['a'], [])
    """
    return sorted((known or set()) - now)
