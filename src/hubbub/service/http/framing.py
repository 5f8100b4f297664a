"""Requests that say twice how long they are: they are refused, and their line is closed (RFC 9112, 6.1 and 6.3).

Of two servers in a row one may believe `Content-Length` and the other `Transfer-Encoding`. What the first takes for the
rest of a body is the next request to the second: of whoever comes next on that line, with his token or cookie.
"""

from __future__ import annotations

from typing import Any

from hubbub.service.http.problem import problem

__all__ = ["OneLength"]


class OneLength:
    """An application that is asked nothing of two lengths."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            names = {name for name, _ in scope["headers"]}
            if {b"content-length", b"transfer-encoding"} <= names:
                refused = problem("request", "Content-Length and Transfer-Encoding: send one of them.")
                refused.headers["Connection"] = "close"
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)
