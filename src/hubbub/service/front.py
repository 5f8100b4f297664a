"""The process of the front: HTTP and tokens; no rows, no ledger, no key.

    python -m hubbub.service.front              told on standard input: socket, token, tokens, host, port

    POST /api/v1/check              what a question would cost; charges nothing
    POST /api/v1/ask                202 with Location and release_at, or 200 with what is stored or public
    GET  /api/v1/answers/{id}       what is told of one's own question; ?wait= seconds until its release

Errors are RFC 9457 problem+json, in the library's own words for the declared kinds; anything else is an incident.
Checks are answered at whole tenths of a second, and so many a second: how long one took is not told to the millisecond.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hubbub.service.confine import confine
from hubbub.service.frames import receive, send
from hubbub.service.tokens import Tokens

__all__ = ["ClerkLine", "Rate", "application", "main"]

_BODY: Final = 256 * 1024
_TICK: Final = 0.1
_WAIT: Final = 60.0
_STATUS: Final = {
    "query": (422, "The question cannot be asked like this"),
    "policy": (403, "The policy does not allow it"),
    "budget": (409, "The budget does not hold it"),
    "locked": (423, "A steward looks first"),
    "queue": (429, "Too many questions wait"),
    "unknown": (404, "Not found"),
    "engine": (500, "No answer"),
    "incident": (500, "Something went wrong"),
    "away": (503, "The service is not ready"),
}


class ClerkLine:
    """The line to the clerk: a connection for each thread, opened anew where anything went wrong on it: what is left on
    it may be said to somebody else."""

    def __init__(self, path: str, token: str) -> None:
        self._path, self._token, self._own = path, token, threading.local()

    def ask(self, act: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """What the clerk says; nothing is asked twice, for it may have been charged."""
        away = {"refused": {"kind": "away", "text": "the service is starting again; ask in a few seconds."}}
        told = None
        try:
            connection = self._connected()
            send(connection, {"act": act, "given": given})
            told = receive(connection)
        except OSError:
            pass
        finally:
            if told is None:
                self._own.connection = None
        return away if told is None else dict(told)

    def _connected(self) -> socket.socket:
        known: socket.socket | None = getattr(self._own, "connection", None)
        if known is not None and not _is_closed(known):
            return known
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._path)
        send(connection, self._token)
        self._own.connection = connection
        return connection


def _is_closed(connection: socket.socket) -> bool:
    """Whether the other end has gone: nothing is said here unasked."""
    with suppress(BlockingIOError):
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    return False


class Rate:
    """So many a second of one analyst, and a few more at once."""

    def __init__(
        self, a_second: float = 5.0, burst: float = 20.0, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = a_second, burst, clock
        self._left: dict[str, tuple[float, float]] = {}

    def takes(self, who: str) -> bool:
        """Whether one more is within it."""
        now = self._clock()
        left, since = self._left.get(who, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._rate)
        self._left[who] = (left - 1, now) if left >= 1 else (left, now)
        return left >= 1


class _Face:
    """The HTTP face: each route with the clerk behind it."""

    def __init__(self, line: ClerkLine, tokens: Tokens) -> None:
        self._line, self._tokens, self._rate = line, tokens, Rate()
        self._turns: dict[str, asyncio.Lock] = {}

    def known(self, act: Callable[[Request, str], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """A route for those whose tokens are known."""

        async def checked(request: Request) -> Response:
            scheme, _, token = request.headers.get("authorization", "").partition(" ")
            name = self._tokens.analyst(token.strip()) if scheme.lower() == "bearer" else None
            if name is None:
                return _problem("policy", "send Authorization: Bearer TOKEN, with a token of this service.", 401)
            return await act(request, name)

        return checked

    async def _told(self, act: str, given: Mapping[str, Any]) -> tuple[Any, Response | None]:
        # One at a time of each analyst: whoever asks much at once keeps himself waiting, and nobody else.
        async with self._turns.setdefault(given["analyst"], asyncio.Lock()):
            said = await run_in_threadpool(self._line.ask, act, given)
        if "refused" in said:
            return None, _problem(said["refused"].pop("kind"), said["refused"].pop("text"), **said["refused"])
        return said["told"], None

    async def check(self, request: Request, name: str) -> Response:
        """What a question would cost."""
        if not self._rate.takes(name):
            return _problem("queue", "five checks a second, twenty at once.", retry_after=1)
        body = await _body_of(request)
        if not isinstance(body, dict):
            return body
        given = {"analyst": name, "sql": body["sql"], "options": body.get("options", {})}
        content, refused = await self._told("check", given)
        await asyncio.sleep(_TICK - time.monotonic() % _TICK)
        return refused or JSONResponse(content)

    async def ask(self, request: Request, name: str) -> Response:
        """Ask: a place in the schedule, or what is stored or public."""
        key = request.headers.get("idempotency-key", "")
        if not 0 < len(key) <= 200:
            return _problem("query", "send Idempotency-Key: a name of this request, of at most 200 characters.", 400)
        body = await _body_of(request)
        if not isinstance(body, dict):
            return body
        given = {"analyst": name, "sql": body["sql"], "options": body.get("options", {}), "request": key}
        content, refused = await self._told("ask", {**given, "purpose": body.get("purpose")})
        if refused is not None or (content["state"] == "answered" and "id" not in content):
            return refused or JSONResponse(_whole(content))
        return JSONResponse(content, 202, {"Location": f"/api/v1/answers/{content['id']}"})

    async def answer(self, request: Request, name: str) -> Response:
        """What is told of a question; waited for, where that is wanted."""
        given = {"analyst": name, "charge": request.path_params["id"]}
        content, refused = await self._told("answer", given)
        with suppress(ValueError):
            wait = float(request.query_params.get("wait", "0"))
            until = time.monotonic() + (min(_WAIT, wait) if wait > 0 else 0.0)  # NaN is nothing
            while refused is None and content["state"] == "asked" and time.monotonic() < until:
                comes = datetime.fromisoformat(content["release_at"]) - datetime.now(UTC)
                await asyncio.sleep(max(_TICK, min(comes.total_seconds(), until - time.monotonic())))
                content, refused = await self._told("answer", given)
        return refused or JSONResponse(_whole(content))


def application(line: ClerkLine, tokens: Tokens) -> Starlette:
    """The HTTP face of a clerk."""
    face = _Face(line, tokens)

    async def healthz(_: Request) -> Response:
        return JSONResponse({"well": True})

    return Starlette(
        routes=[
            Route("/api/v1/check", face.known(face.check), methods=["POST"]),
            Route("/api/v1/ask", face.known(face.ask), methods=["POST"]),
            Route("/api/v1/answers/{id}", face.known(face.answer), methods=["GET"]),
            Route("/healthz", healthz, methods=["GET"]),
        ]
    )


def _problem(kind: str, text: str, status: int | None = None, **more: Any) -> Response:
    code, title = _STATUS[kind]
    headers = {"Retry-After": str(more["retry_after"])} if "retry_after" in more else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    content = {"type": f"about:blank#{kind}", "title": title, "status": status or code, "detail": text, **more}
    return JSONResponse(content, status or code, headers, media_type="application/problem+json")


async def _body_of(request: Request) -> dict[str, Any] | Response:
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > _BODY:
            return _problem("query", f"a question is sent in at most {_BODY:,} bytes.", 413)
    try:
        body = json.loads(bytes(data))
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("sql"), str):
        return _problem("query", 'expected JSON such as {"sql": "SELECT ...", "options": {"epsilon": "0.1"}}.', 400)
    if not isinstance(body.get("options", {}), dict):
        return _problem("query", "options: expected an object.", 400)
    return body


def _whole(content: dict[str, Any]) -> dict[str, Any]:
    """What was told, with the answer as JSON in JSON."""
    return {**content, "answer": json.loads(content["answer"])} if "answer" in content else content


def main() -> int:
    """Be the front that standard input describes."""
    import uvicorn

    told = json.loads(sys.stdin.readline())
    app = application(ClerkLine(told["socket"], told["token"]), Tokens.read(Path(told["tokens"])))
    # It listens, so TCP stays open; of files it reads the system's alone: neither rows, nor ledger, nor key.
    confine(read=[Path(told[name]) for name in ("cert", "key") if told.get(name)], network=True)
    options: dict[str, Any] = {"ssl_certfile": told["cert"], "ssl_keyfile": told["key"]} if told.get("cert") else {}
    uvicorn.run(
        app, host=told["host"], port=told["port"], log_level="warning", access_log=False, server_header=False, **options
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
