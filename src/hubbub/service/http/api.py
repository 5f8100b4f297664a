"""The API: each route with the clerk behind it, who knows by the proof who asks, and whether he may.

Checks are answered at whole tenths of a second: how long one took is not told to the millisecond.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from hubbub.errors import QueryError
from hubbub.service.acts import checked
from hubbub.service.http import events
from hubbub.service.http.accept import FORMS, form_of
from hubbub.service.http.line import ClerkLine
from hubbub.service.http.problem import HTTPProblem, object_of, problem
from hubbub.service.http.routes import API, RouteTo

__all__ = ["Face", "proof_of"]

_TICK: Final = 0.1
_SOON: Final = 0.01  # seconds between two looks when a release is due
_WAIT: Final = 60.0
_TURNS: Final = 1000
_KEY: Final = 200
_JSON: Final = {"json": "application/json"}
_STREAM: Final = {"events": "text/event-stream"}

_Proof: TypeAlias = Mapping[str, Any]


def proof_of(request: Request) -> dict[str, str] | None:
    """The token that a request bears, as the clerk takes it."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return {"token": token.strip()} if scheme.lower() == "bearer" and token.strip() else None


class Refused(Exception):
    """What the clerk refused, as the response that says so."""

    def __init__(self, response: Response) -> None:
        self.response = response


class Face:
    """The HTTP face: each route with the clerk behind it. counted: told the kind of each refusal."""

    def __init__(self, line: ClerkLine, counted: Callable[[str], None] = lambda _: None) -> None:
        self._line, self._counted = line, counted
        self._turns: dict[str, asyncio.Lock] = {}
        self._streams: dict[str, int] = {}

    def endpoint(self, to: RouteTo) -> Callable[[Request], Awaitable[Response]]:
        """The endpoint of a route."""
        shape = getattr(self, f"_{to.shape}")

        async def endpoint(request: Request) -> Response:
            try:
                proof = proof_of(request)
                if proof is None:
                    raise HTTPProblem(
                        "unauthenticated", "send Authorization: Bearer TOKEN, with a token of this service."
                    )
                response: Response = await shape(to, request, proof)
            except HTTPProblem as error:
                self._counted(error.kind)
                response = error.response()
            except Refused as error:
                response = error.response
            response.headers.setdefault("Cache-Control", "no-store")
            return response

        return endpoint

    async def told(self, act: str, given: Mapping[str, Any], proof: _Proof | None) -> Any:
        """What the clerk tells of an act.

        Raises Refused, with what is answered then.
        """
        # One at a time of each token: whoever asks much at once keeps himself waiting, and nobody else.
        turn = _turn(proof)
        if len(self._turns) > _TURNS:
            self._turns = {name: lock for name, lock in self._turns.items() if lock.locked()}
        async with self._turns.setdefault(turn, asyncio.Lock()):
            said = await run_in_threadpool(self._line.ask, act, given, proof)
        if "refused" in said:
            more = dict(said["refused"])
            kind = more.pop("kind")
            self._counted(kind)
            raise Refused(problem(kind, more.pop("text"), **more))
        return said["told"]

    # -- the shapes of routes -----------------------------------------------------------------------------------

    async def _plain(self, to: RouteTo, request: Request, proof: _Proof) -> Response:
        form_of(request, _JSON)
        content = await self.told(to.act, await _given(to, request), proof)
        return JSONResponse(content, to.status)

    async def _check(self, to: RouteTo, request: Request, proof: _Proof) -> Response:
        try:
            return await self._plain(to, request, proof)
        finally:
            await asyncio.sleep(_TICK - time.monotonic() % _TICK)

    async def _ask(self, to: RouteTo, request: Request, proof: _Proof) -> Response:
        """A place in the schedule: 202, with its place; or what is stored or public."""
        form_of(request, _JSON)
        content = await self.told(to.act, await _given(to, request), proof)
        if "answer" in content or "bounds" in content:
            return JSONResponse(_whole(content))
        return JSONResponse(content, to.status, {"Location": f"{API}/answers/{content['id']}"})

    async def _plan(self, to: RouteTo, request: Request, proof: _Proof) -> Response:
        form_of(request, _JSON)
        content = await self.told(to.act, await _given(to, request), proof)
        return JSONResponse({"questions": [_whole(each) for each in content]}, to.status)

    async def _answer(self, to: RouteTo, request: Request, proof: _Proof) -> Response:
        """What is told of a question; waited for, where that is wanted."""
        form = form_of(request)
        given = {**await _given(to, request), "form": form}
        until = time.monotonic() + _number(request, "wait", 0.0, _WAIT)
        content = await self.told(to.act, given, proof)
        while content["state"] in ("asked", "waiting", "granted") and time.monotonic() < until:
            await asyncio.sleep(max(_SOON, min(_comes(content), until - time.monotonic())))
            content = await self.told(to.act, given, proof)
        vary = {"Vary": "Accept"}
        if form not in content:
            return JSONResponse(_whole(content), 200 if form == "json" or content["state"] != "asked" else 202, vary)
        data = content[form].encode() if form == "csv" else base64.b64decode(content[form])
        return Response(data, 200, vary, media_type=FORMS[form])

    async def _events(self, to: RouteTo, request: Request, proof: _Proof) -> Response:
        form_of(request, _STREAM)
        turn = _turn(proof)
        if self._streams.get(turn, 0) >= events.STREAMS:
            raise HTTPProblem("rate", f"{events.STREAMS} streams at once.", retry_after=5)
        ended = self._opened(turn)
        try:
            first = await self.told(to.act, {}, proof)
        except BaseException:
            ended()
            raise

        async def look() -> list[dict[str, Any]] | None:
            nonlocal first
            known, first = first, None
            try:
                waiting: list[dict[str, Any]] | None = known or await self.told(to.act, {}, proof)
            except Refused:
                return None
            return waiting

        headers = {"X-Accel-Buffering": "no"}
        return _Stream(events.stream(look), media_type="text/event-stream", headers=headers, ended=ended)

    def _opened(self, turn: str) -> Callable[[], None]:
        """Count one more stream, before anything is waited for; what is called when it has ended."""
        self._streams[turn] = self._streams.get(turn, 0) + 1

        def ended() -> None:
            self._streams[turn] -= 1
            if not self._streams[turn]:
                del self._streams[turn]

        return ended


class _Stream(StreamingResponse):
    """A stream of events. ended: called once it is sent, or cannot be, also where nothing of it was."""

    def __init__(self, content: Any, *, ended: Callable[[], None], **more: Any) -> None:
        super().__init__(content, **more)
        self._ended = ended

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


async def _given(to: RouteTo, request: Request) -> dict[str, Any]:
    """The fields of an act, from where they stand in a request.

    Raises HTTPProblem for a field that cannot be read.
    """
    for name in request.query_params:
        if name not in to.query and not (name == "wait" and to.shape == "answer"):
            raise HTTPProblem("request", f"there is no {name!r:.60} in the query of this route.")
    given: dict[str, Any] = {field: request.path_params[name] for name, field in to.places.items()}
    for name, field in to.query.items():
        written = request.query_params.get(name)
        if written is None or name == "format":
            continue
        if {**to.does.required, **to.does.optional}[field] is int:
            given[field] = round(_number(request, name, 0, 10**9, whole=True))
        elif name == "level":
            _number(request, name, 0.0, 1.0)
            given[field] = written
        else:
            given[field] = written
    if to.keyed:
        key = request.headers.get("idempotency-key", "")
        if not 0 < len(key) <= _KEY:
            raise HTTPProblem("request", f"send Idempotency-Key: a name of this request, of 1 to {_KEY} characters.")
        given["request"] = key
    if to.method in ("POST", "PUT"):
        body = await object_of(request)
        taken = set(given) & set(body)
        if taken:
            raise HTTPProblem("request", f"{min(taken)!r:.60} stands in the path or a header, not in the body.")
        given |= body
        if "options" in to.required:
            given.setdefault("options", {})
    try:
        return checked(to.does, given)
    except QueryError as error:  # the clerk looks too; here it costs him nothing
        raise HTTPProblem("request", str(error)) from None


def _number(request: Request, name: str, least: float, most: float, *, whole: bool = False) -> float:
    """A number of the query, within its bounds; 0 where it is not there."""
    written = request.query_params.get(name)
    if written is None:
        return 0.0
    try:
        number = float(int(written)) if whole else float(written)
    except ValueError:
        number = math.nan
    if not least <= number <= most:
        raise HTTPProblem("request", f"{name}: expected a number from {least:g} to {most:g}.")
    return number


def _comes(content: Mapping[str, Any]) -> float:
    """Seconds until a question is told; a second where that is not known yet."""
    if "release_at" not in content:
        return 1.0
    comes = (datetime.fromisoformat(content["release_at"]) - datetime.now(UTC)).total_seconds()
    return comes if comes > -1 else _TICK  # long due: the clerk is slow, and is not asked more for it


def _turn(proof: _Proof | None) -> str:
    return hashlib.sha256(json.dumps(proof, sort_keys=True).encode()).hexdigest()


def _whole(content: dict[str, Any]) -> dict[str, Any]:
    """What was told, with the answer as JSON in JSON."""
    return {**content, "answer": json.loads(content["answer"])} if "answer" in content else content
