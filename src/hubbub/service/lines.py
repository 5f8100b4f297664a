"""Lines of the service's log, for a steward: of submissions and releases, and of requests by their routes.

No line holds a question, a value, a token, a passphrase or what a link holds. As JSON each is an object: its time, who
says it (service, clerk, front), and what.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Final

from hubbub.service.people.store import now

__all__ = ["RequestLog", "json_line"]

_FINE: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_KEYS: Final = re.compile(r"\b(hub|inv)_\w+")
_NOT_FOUND: Final = 404


def json_line(who: str, what: str, **more: Any) -> str:
    """A line as JSON."""
    return json.dumps({"time": now(), "from": who, "line": what, **more})


class RequestLog:
    """An application whose requests have names, each a line. header: of the server before it, which may name them; else
    they are named here. say: takes the line; None: no lines.
    """

    def __init__(self, app: Any, *, header: str | None, say: Callable[[str], None] | None) -> None:
        self._app, self._say = app, say
        self._header = None if header is None else header.lower().encode("latin-1")

    async def __call__(self, scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name, status = self._named(scope), 0

        async def named(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], (b"x-request-id", name.encode())]}
            await send(message)

        try:
            await self._app(scope, receive, named)
        finally:
            if self._say is not None:
                self._say(json_line("front", "request", request=name, status=status, **_place(scope, status)))

    def _named(self, scope: Any) -> str:
        """What the header says, if that is a name; else a new one."""
        given = next((value for key, value in scope["headers"] if key == self._header), b"").decode("latin-1")
        return given if _FINE.fullmatch(given) else uuid.uuid4().hex


def _place(scope: Any, status: int) -> dict[str, str]:
    """Method and path, without what a link holds, or what somebody wrote who was lost."""
    path = "(no such path)" if status == _NOT_FOUND else _KEYS.sub("(key)", scope["path"])
    return {"method": scope["method"], "path": path}
