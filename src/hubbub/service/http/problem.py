"""Refusals: RFC 9457 problem+json, in the library's own words for the declared kinds; anything else is an incident.

A problem has the members `type`, `title`, `status`, `detail` (the library's text) and `kind`; and where there is one
`class` (of the library's error), `position` (from where to where in the SQL), `remedies`, `asked` and `left`,
`retry_after` (seconds, which the header says too), `incident`.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match

__all__ = ["BODY", "STATUS", "HTTPProblem", "object_of", "of_http", "problem"]

BODY: Final = 256 * 1024
"""Bytes of a request."""
STATUS: Final = {
    "query": (422, "The question cannot be asked like this"),
    "unauthenticated": (401, "Nobody is known by this proof"),
    "forbidden": (403, "Not yours to do"),
    "rate": (429, "Too many at once"),
    "policy": (403, "The policy does not allow it"),
    "budget": (409, "The budget does not hold it"),
    "locked": (423, "A steward looks first"),
    "queue": (429, "Too many questions wait"),
    "unknown": (404, "Not found"),
    "engine": (500, "No answer"),
    "incident": (500, "Something went wrong"),
    "away": (503, "The service is not ready"),
    "request": (400, "The request cannot be read"),
    "method": (405, "Not done here by this method"),
    "form": (406, "Not told in this form"),
    "size": (413, "Too long"),
    "type": (415, "Not read in this form"),
}
"""The status and title of each kind."""
_AWAY: Final = 2


class HTTPProblem(Exception):
    """A request that is refused before the clerk hears of it."""

    def __init__(self, kind: str, text: str, **more: Any) -> None:
        super().__init__(text)
        self.kind, self.text, self.more = kind, text, more

    def response(self) -> Response:
        """What is answered."""
        return problem(self.kind, self.text, **self.more)


def problem(kind: str, text: str, **more: Any) -> Response:
    """A refusal of a kind, in its words. more: what else is told, such as retry_after."""
    status, title = STATUS[kind]
    more |= {"retry_after": _AWAY} if kind == "away" else {}
    headers = {"X-Content-Type-Options": "nosniff"}
    headers |= {"Retry-After": str(math.ceil(more["retry_after"]))} if "retry_after" in more else {}
    headers |= {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    headers |= {"Allow": more.pop("allow")} if "allow" in more else {}
    content = {"type": f"/docs#{kind}", "title": title, "status": status, "detail": text, "kind": kind, **more}
    return JSONResponse(content, status, headers, media_type="application/problem+json")


def of_http(request: Request, error: Exception) -> Response:
    """What routing refuses, in the same form."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        matching = [route for route in request.app.routes if route.matches(request.scope)[0] != Match.NONE]
        methods = {method for route in matching for method in route.methods or ()}
        return problem("method", f"{request.method} is not done here.", allow=", ".join(sorted(methods)))
    if status == 404:
        return problem("unknown", "there is nothing here.")
    return problem("request", "this request cannot be read.")


async def object_of(request: Request) -> dict[str, Any]:
    """The JSON object that a request sends; an empty one where it sends nothing.

    Raises HTTPProblem for anything else.
    """
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPProblem("type", "send JSON, with Content-Type: application/json (curl --json does).")
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > BODY:
            raise HTTPProblem("size", f"a request has at most {BODY:,} bytes.")
    if not data:
        return {}
    try:
        body = json.loads(bytes(data), parse_constant=_refused)
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()  # half a character, or 1e999, is no JSON of ours
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise HTTPProblem("request", 'expected a JSON object, such as {"sql": "SELECT ...", "options": {...}}.')
    return body


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
