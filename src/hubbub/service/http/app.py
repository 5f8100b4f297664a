"""The application: the API's routes, its document, whether it is well; and what counts are told on another port."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from hubbub.service.http.accept import accepted
from hubbub.service.http.api import Face, proof_of
from hubbub.service.http.framing import OneLength
from hubbub.service.http.line import ClerkLine
from hubbub.service.http.metrics import Counts, amounts
from hubbub.service.http.openapi import docs_page, document
from hubbub.service.http.problem import of_http, problem
from hubbub.service.http.routes import API, ROUTES

__all__ = ["application", "counting_application"]

_EITHER: Final = {"json": "application/json", "html": "text/html"}
_PLAIN: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}

_OUTSIDE: Final = [Middleware(OneLength)]


def application(
    line: ClerkLine,
    counts: Counts | None = None,
    *,
    pages: Sequence[BaseRoute] = (),
    refused: Callable[[Request, Response], Awaitable[Response]] | None = None,
) -> Starlette:
    """The HTTP face of a clerk. counts: where requests are counted. pages: further routes. refused: how a browser is
    told what no route takes; programs are told by problem+json.
    """
    counts = Counts() if counts is None else counts
    face = Face(line, counts.refusal)
    # A path with fixed words before the same with a parameter.
    api = sorted(ROUTES, key=lambda to: [part.startswith("{") for part in to.path.split("/")])
    routes: list[BaseRoute] = [
        Route(API + to.path, _counted(face.endpoint(to), f"{to.method} {API}{to.path}", counts), methods=[to.method])
        for to in api
    ]

    async def healthz(_: Request) -> Response:
        return JSONResponse({"well": True}, headers=_PLAIN)

    async def readyz(_: Request) -> Response:
        said = await run_in_threadpool(line.ask, "whoami", {}, None)
        ready = said.get("refused", {}).get("kind") != "away"
        return JSONResponse({"ready": ready}, 200 if ready else 503, headers=_PLAIN)

    async def openapi(_: Request) -> Response:
        return JSONResponse(document(), headers=_PLAIN)

    async def docs(_: Request) -> Response:
        return HTMLResponse(docs_page(), headers=_PLAIN)

    own = {"/healthz": healthz, "/readyz": readyz, "/openapi.json": openapi, "/docs": docs}
    routes += [Route(path, _counted(act, f"GET {path}", counts), methods=["GET"]) for path, act in own.items()]

    async def no_route(request: Request, error: Any) -> Response:
        told = of_http(request, error)
        browser = refused is not None and not request.url.path.startswith(f"{API}/")
        if browser and accepted(request.headers.get("accept", ""), _EITHER) == "html":
            assert refused is not None
            return await refused(request, told)
        return told

    made = Starlette(routes=[*routes, *pages], exception_handlers={HTTPException: no_route}, middleware=_OUTSIDE)
    made.router.redirect_slashes = False  # it leads, with the form that was sent, to whatever host the request names
    return made


def counting_application(line: ClerkLine, counts: Counts) -> Starlette:
    """What is told on the port of counts."""

    async def metrics(request: Request) -> Response:
        said, spent = await run_in_threadpool(line.ask, "metrics", {}, None), ""
        if "authorization" in request.headers:
            told = await run_in_threadpool(line.ask, "spending", {}, proof_of(request))
            if "refused" in told:
                return problem(told["refused"]["kind"], told["refused"]["text"])
            spent = amounts(told["told"])
        return PlainTextResponse(counts.text(said.get("told", {})) + spent, headers=_PLAIN)

    return Starlette(routes=[Route("/metrics", metrics, methods=["GET"])], middleware=_OUTSIDE)


def _counted(
    endpoint: Callable[[Request], Awaitable[Response]], route: str, counts: Counts
) -> Callable[[Request], Awaitable[Response]]:
    async def counted(request: Request) -> Response:
        try:
            response = await endpoint(request)
        except ClientDisconnect:
            raise
        except Exception as error:  # a defect of ours; its words may hold a question, so none of them is told or logged
            incident = uuid.uuid4().hex[:12]
            print(f"incident {incident}: {type(error).__name__} at {route}", file=sys.stderr, flush=True)
            response = problem("incident", f"incident {incident}", incident=incident)
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        counts.request(route, response.status_code)
        return response

    return counted
