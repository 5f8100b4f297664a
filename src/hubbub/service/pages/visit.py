"""A visit to a page: who looks, what the address and the form say, and the clerk behind it.

    handler(visit) -> a page, an address to go on to (303), or another response

The session's cookie goes to the clerk with every act, and with an act that changes something the word of the form
(CSRF): the clerk knows by them who asks, and whether he may. Nothing is decided here. A form that comes from elsewhere
is not even handed on (Fetch Metadata: `Sec-Fetch-Site`; and `Origin`, where a browser says one: our own forms have
none, as pages without referrers, and our scripts that of the page).

The cookie is HttpOnly and SameSite=Lax; with TLS it is also Secure and bound to this host (`__Host-`, RFC 6265bis),
also with that of a server before this one, on this machine, which says `X-Forwarded-Proto: https`. On this machine
alone, without TLS, it is called `hubbub`.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import parse_qsl, quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from hubbub.service.http.problem import BODY, STATUS
from hubbub.service.pages.page import Page, Viewer, page_headers
from hubbub.service.pages.words import device

if TYPE_CHECKING:
    from hubbub.service.http.line import ClerkLine

__all__ = ["Handler", "Hosts", "Refused", "Visit", "answered", "go", "inside", "not_found"]

_FIELDS: Final = 100
_WAIT: Final = 20  # requests of one session, or from one place; forms of up to a quarter of a megabyte
_HELD: Final = 600  # seconds between going to a provider and coming back
_NOBODY: Final = ("unauthenticated",)


class Refused(Exception):
    """What the clerk refused: its kind, its words, and all that was told of it."""

    def __init__(self, kind: str, text: str, told: Mapping[str, Any] | None = None) -> None:
        super().__init__(text)
        self.kind, self.text = kind, text
        self.told: Mapping[str, Any] = {"kind": kind, "text": text, **(told or {})}


class Hosts:
    """Where visits come from: the line to the clerk, and how cookies are named. secure: whether there is TLS. caller:
    the place that a visit comes from.
    """

    def __init__(self, line: ClerkLine, *, secure: bool, lines: _Lines | None = None, caller: str = "") -> None:
        self._line, self._secure, self._caller = line, secure, caller
        self._lines = _Lines() if lines is None else lines
        self.cookie = "__Host-hubbub" if secure else "hubbub"
        self._held = f"{self.cookie}-login"

    def seen_by(self, request: Request) -> Hosts:
        """The same for one visit: with TLS also where a server before this one has it."""
        secure = self._secure or request.url.scheme == "https"
        caller = "" if request.client is None else request.client.host
        return Hosts(self._line, secure=secure, lines=self._lines, caller=_network(caller))

    async def ask(self, act: str, given: Mapping[str, Any], proof: Mapping[str, str] | None) -> Any:
        """What the clerk tells; one act at a time of each session, and of each place from where somebody comes who has
        none. Raises Refused.
        """
        async with self._lines.turn((proof or {}).get("session") or f"from {self._caller}"):
            said = await run_in_threadpool(self._line.ask, act, given, proof)
        if "refused" in said:
            told = dict(said["refused"])
            raise Refused(str(told.pop("kind")), str(told.pop("text")), told)
        return said["told"]

    def let_in(self, response: Response, session: str) -> Response:
        """The response, with a session's cookie; as long as the browser is open, and as the clerk lets it."""
        response.set_cookie(self.cookie, session, path="/", secure=self._secure, httponly=True, samesite="lax")
        return response

    def hold(self, response: Response, held: str) -> Response:
        """The response, with what is held of a login that goes by a provider; Lax, since one comes back from there."""
        response.set_cookie(
            self._held, held, max_age=_HELD, path="/", secure=self._secure, httponly=True, samesite="lax"
        )
        return response

    def held(self, request: Request) -> str:
        """What is held of a login."""
        return request.cookies.get(self._held, "")

    def let_go(self, response: Response) -> Response:
        """The response, without what was held."""
        response.delete_cookie(self._held, path="/", secure=self._secure, httponly=True, samesite="lax")
        return response

    def let_out(self, response: Response) -> Response:
        """The response, without a session."""
        response.delete_cookie(self.cookie, path="/", secure=self._secure, httponly=True, samesite="lax")
        return response


class _Lines:
    """Who waits for whom: whoever asks much at once keeps himself waiting, and nobody else; and few of one wait."""

    def __init__(self) -> None:
        self._lines: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def turn(self, whose: str) -> AsyncIterator[None]:
        """Wait until it is this one's next turn. Raises Refused where many wait already."""
        name = hashlib.sha256(whose.encode("utf-8", "replace")).hexdigest()
        lock, waiting = self._lines.get(name) or (asyncio.Lock(), 0)
        if waiting >= _WAIT:
            raise Refused("rate", "many requests of yours wait at this moment; try again in a few seconds.")
        self._lines[name] = lock, waiting + 1
        try:
            async with lock:
                yield
        finally:
            waiting = self._lines[name][1] - 1
            self._lines[name] = lock, waiting
            if not waiting:
                del self._lines[name]


def _network(address: str) -> str:
    """An address, without what its owner chooses himself: of the newer ones, the second half."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if known.version == 4 else str(ipaddress.ip_network((int(known) >> 64 << 64, 64)))


@dataclass(frozen=True)
class Visit:
    """One request. path: the parts of the address that vary; query: what stands behind it; fields: what a form sent;
    held: what is held of a login that goes by a provider.
    """

    hosts: Hosts
    viewer: Viewer
    session: str
    url: str
    path: dict[str, str]
    query: dict[str, str]
    fields: dict[str, list[str]]
    who: Mapping[str, Any]
    agent: str = ""
    held: str = ""

    @property
    def seen(self) -> dict[str, str]:
        """What the browser says of itself, in short, for the list of one's own devices."""
        return {"device": device(self.agent)}

    async def told(self, act: str, /, **given: Any) -> Any:
        """What the clerk tells this visitor. Raises Refused."""
        proof = None
        if self.session:
            proof = {"session": self.session, "csrf": self.field("csrf")}
        return await self.hosts.ask(act, given, proof)

    async def known(self, act: str, /, **given: Any) -> dict[str, Any]:
        """{"told": ...}, or {"refused": ...}, which a page then shows in its place."""
        try:
            return {"told": await self.told(act, **given)}
        except Refused as refused:
            if refused.kind in _NOBODY:
                raise
            return {"refused": refused.told}

    def field(self, name: str) -> str:
        """One field of the form; "" where it is not there."""
        return self.fields.get(name, [""])[0]

    @property
    def form(self) -> dict[str, str]:
        """The first of each field."""
        return {name: values[0] for name, values in self.fields.items()}


def go(where: str) -> Response:
    """A response that leads on, and tells nobody from where."""
    return RedirectResponse(where, 303, {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"})


def inside(where: str) -> str:
    """An address of this service, and no other."""
    plain = where.startswith("/") and not where.startswith(("//", "/\\")) and where.isprintable() and "\\" not in where
    return where if plain else "/"


Handler: TypeAlias = "Callable[[Visit], Awaitable[Page | str | Response]]"


def answered(
    hosts: Hosts, handler: Handler, refusal: Callable[[Viewer, Mapping[str, Any]], Page], *, known: bool = True
) -> Callable[[Request], Awaitable[Response]]:
    """A route for a handler. known: whether it needs a session; refusal: the page of what was refused."""

    async def route(request: Request) -> Response:
        return await visited(request, hosts.seen_by(request))

    async def visited(request: Request, hosts: Hosts) -> Response:
        viewer = Viewer()
        try:
            fields = await _form_of(request)
            session = request.cookies.get(hosts.cookie, "")
            who: Mapping[str, Any] = {}
            if session:
                viewer, who = await _viewer(hosts, session, known=known)
            if known and not viewer.name:
                raise Refused("unauthenticated", "log in.")
            own = session if viewer.name else ""
            url = f"{request.url.scheme}://{request.url.netloc}"
            path = {name: str(value) for name, value in request.path_params.items()}
            given = dict(request.query_params), fields, who, request.headers.get("user-agent", ""), hosts.held(request)
            made = await handler(Visit(hosts, viewer, own, url, path, *given))
            return _response(made)
        except Refused as refused:
            if refused.kind in _NOBODY and known:
                return _to_login(request, ended=hosts.cookie in request.cookies)
            status = STATUS.get(refused.kind, (500, ""))[0]
            return _response(refusal(viewer, refused.told), status)
        except ClientDisconnect:
            raise
        except Exception as error:  # a defect of ours; its words may hold a question, so none of them is told or logged
            incident = uuid.uuid4().hex[:12]
            print(f"incident {incident}: {type(error).__name__} at a page", file=sys.stderr, flush=True)
            return _response(refusal(viewer, {"kind": "incident", "text": _OURS.format(incident)}), 500)

    return route


_OURS: Final = "This is a mistake of the service, and not of yours. Tell a steward its name: incident {}."
_NOWHERE: Final = {
    404: {"kind": "unknown", "text": "Nothing is at this address. It may be mistyped, or of another service."},
    405: {"kind": "method", "text": "This address takes a form, and is not opened by itself. Nothing was done."},
}


def not_found(
    hosts: Hosts, refusal: Callable[[Viewer, Mapping[str, Any]], Page]
) -> Callable[[Request, Response], Awaitable[Response]]:
    """What a browser is shown of a request that no route takes; told: what a program would be told."""

    async def shown(request: Request, told: Response) -> Response:
        own, viewer = hosts.seen_by(request), Viewer()
        session = request.cookies.get(own.cookie, "")
        if session:
            viewer, _ = await _viewer(own, session, known=False)
        page = refusal(viewer, _NOWHERE.get(told.status_code, {"kind": "request", "text": "It cannot be read."}))
        made = _response(page, told.status_code)
        if "allow" in told.headers:
            made.headers["Allow"] = told.headers["allow"]
        return made

    return shown


async def _viewer(hosts: Hosts, session: str, *, known: bool) -> tuple[Viewer, Mapping[str, Any]]:
    """Who looks, and what the clerk tells of him; nobody, where the session has ended and none is needed."""
    proof = {"session": session, "csrf": ""}
    try:
        who = await hosts.ask("whoami", {}, proof)
    except Refused:
        if known:
            raise
        return Viewer(), {}
    roles, left, limit = frozenset(who["roles"]), None, None
    if "analyst" in roles:
        budget = await hosts.ask("budget", {}, proof)
        yours = [space["yours"] for space in budget["spaces"]]
        tightest = min(yours, key=lambda each: Fraction(str(each["left"])), default=None)
        if tightest is not None:
            left, limit = str(tightest["left"]), str(tightest["limit"])
    return Viewer(who["name"], roles, who["csrf"], left, limit), who


async def _form_of(request: Request) -> dict[str, list[str]]:
    """The fields of a form. Raises Refused for one from elsewhere, and for too much."""
    if request.method in ("GET", "HEAD"):
        return {}
    origin, host = request.headers.get("origin", "null"), request.headers.get("host", "")
    elsewhere = origin != "null" and origin.partition("://")[2].lower() != host.lower()
    if elsewhere or request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refused("forbidden", "this form was sent from another site.")
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > BODY:
            raise Refused("query", f"a form is sent in at most {BODY:,} bytes.")
    fields: dict[str, list[str]] = {}
    try:
        sent = parse_qsl(data.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_FIELDS)
    except ValueError:
        raise Refused("query", f"a form has at most {_FIELDS} fields.") from None
    for name, value in sent:
        fields.setdefault(name, []).append(value)
    return fields


def _response(made: Page | str | Response, status: int = 200) -> Response:
    if isinstance(made, Response):
        return made
    if isinstance(made, str):
        return go(made)
    return Response(made.text, status, page_headers(made.nonce), "text/html")


def _to_login(request: Request, *, ended: bool) -> Response:
    """To the form to log in, and from there back here; a script is told by the status."""
    if request.method != "GET":
        if request.url.path == "/line":
            return Response("", 401, {"Cache-Control": "no-store"})
        return _response("/login?ended=1" if ended else "/login")
    here = request.url.path
    return _response(f"/login?next={quote(here, safe='/')}{'&ended=1' if ended else ''}")
