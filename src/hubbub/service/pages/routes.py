"""Where the pages of an analyst are, and what their forms do.

    GET  /  /ask?q=&spend=    the form, with a price where there is a question
    POST /check  /line        the price: the whole page, or its two pieces for the live line
    POST /ask                 charges what was priced, and goes on to /a/ID; another text than that is priced first
    GET  /a/ID  /a/ID/csv     waiting, the answer, or that there is none; the answer as a file
    POST /a/ID/read  .../refine
    GET  /library  /mine  /account  /more  /login  /invitation/KEY  /enter/KEY  /static/NAME
    POST /enter/KEY           uses the link up, as a look at it does not

A price is looked at for nothing, and answered at whole tenths of a second, as the API's checks are.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hubbub.errors import HubbubError
from hubbub.noise import system_bits
from hubbub.service.pages import office_routes, provider_routes, views
from hubbub.service.pages.asking import Question, example, proposal
from hubbub.service.pages.files import FORMS, file_of
from hubbub.service.pages.page import Page
from hubbub.service.pages.static import pack, static_file
from hubbub.service.pages.visit import Handler, Hosts, Refused, Visit, answered, go, inside, not_found
from hubbub.service.states import HELD

if TYPE_CHECKING:
    from hubbub.service.http.line import ClerkLine

__all__ = ["OPEN", "ROUTES", "page_refusal", "page_routes"]

_TICK: Final = 0.1
_YEAR: Final = 31_536_000
_OTHER: Final = {"q": "sql", "having": "having", "order": "order", "limit": "limit"}
_LONGEST_ADDRESS: Final = 8_000


def _name() -> str:
    """A name for what a form will do, so that sent twice it is done once."""
    return system_bits().u64(2).tobytes().hex()


# -- asking ---------------------------------------------------------------------------------------------------


async def _ask_form(visit: Visit) -> Page | str:
    if "analyst" not in visit.viewer.roles:
        return next((place.path for place in visit.viewer.places if place.path != "/"), "/account")
    tables = await visit.told("tables")
    question = Question(sql=visit.query.get("q", "") or example(tables))
    if spend := visit.query.get("spend", "").strip():
        question = replace(question, mode="spend", spend=spend)
    return await _priced(visit, question, tables)


async def _priced(visit: Visit, question: Question, tables: Mapping[str, Any], *, changed: bool = False) -> Page:
    question, check = await _check(visit, question) if question.sql else (question, None)
    return views.ask(visit.viewer, question, tables, check=check, request=_name(), changed=changed)


async def _check(visit: Visit, question: Question) -> tuple[Question, dict[str, Any]]:
    """The question with its price; where its width is the page's, with the width that goes with it."""
    bare = question.at("") if question.to_propose else question
    told = await visit.known("check", sql=bare.sql, options=bare.options)
    width = proposal(told["told"]) if question.to_propose and "told" in told else ""
    if width:
        wide = bare.at(width)
        at_width = await visit.known("check", sql=wide.sql, options=wide.options)
        bare, told = (wide, at_width) if "told" in at_width else (bare, told)
    elif told.get("refused", {}).get("kind") == "query":
        told = await _at_more(visit, question, told)
    await asyncio.sleep(_TICK - time.monotonic() % _TICK)
    return bare, told


async def _at_more(visit: Visit, question: Question, told: dict[str, Any]) -> dict[str, Any]:
    """A refusal with what its width would cost, where that is more than it may and less than is left."""
    left = visit.viewer.left
    if left is None or not isinstance(question.options.get("within"), float):
        return told
    more = replace(question, most=left)
    checked = await visit.known("check", sql=more.sql, options=more.options)
    return {"refused": {**told["refused"], "would": checked["told"]["epsilon"]}} if "told" in checked else told


async def _check_form(visit: Visit) -> Page:
    return await _priced(visit, Question.of(visit.form), await visit.told("tables"))


async def _line(visit: Visit) -> Page | Response:
    question = Question.of(visit.form)
    tables = await visit.told("tables")
    question, check = await _check(visit, question)
    if check.get("refused", {}).get("kind") in ("rate", "away"):
        return Response("", 429, {"Cache-Control": "no-store"})
    return views.line(visit.viewer, question, tables, check)


async def _ask(visit: Visit) -> Page | str:
    question, agreed = Question.of(visit.form), visit.field("agreed")
    if not agreed or agreed != question.agreed:
        return await _priced(visit, question, await visit.told("tables"), changed=bool(agreed))
    request = f"{visit.field('request')[:64]}-{agreed}"
    try:
        told = await visit.told("ask", sql=question.sql, options=question.options, request=request)
    except Refused as refused:
        if refused.kind in ("unauthenticated", "forbidden"):
            raise
        tables = await visit.told("tables")
        return views.ask(visit.viewer, question, tables, check={"refused": refused.told}, request=_name())
    if told.get("id"):
        return f"/a/{told['id']}{_as_asked(question.sql, told)}"
    return views.answer(visit.viewer, views.shown_of(told["answer"], {}), sql=question.sql)


# -- answers --------------------------------------------------------------------------------------------------


def _as_asked(sql: str, told: Mapping[str, Any]) -> str:
    """What is added to the address of a stored answer to a question that was asked in other words."""
    if told.get("answer") is None or views.read(told["answer"]).receipt.get("sql") == sql:
        return ""
    added = f"?q={quote(sql)}"
    return added if len(added) <= _LONGEST_ADDRESS else ""


def _other(query: Mapping[str, str]) -> dict[str, str]:
    """What an answer is to be shown as the answer to, where an address says that."""
    return {field: query[name] for name, field in _OTHER.items() if name in query}


async def _answer(visit: Visit) -> Page | str:
    identity, other, no = visit.path["id"], _other(visit.query), None
    told = await visit.known("answer", charge=identity, **other)
    if "refused" in told and other:
        told, no = await visit.known("answer", charge=identity), told["refused"]
    if "refused" in told:
        raise Refused(told["refused"]["kind"], told["refused"]["text"], told["refused"])
    told = told["told"]
    if told.get("id", identity) != identity:
        return f"/a/{told['id']}"  # a question that got its yes
    if told.get("answer") is not None:
        shown = _shown(told["answer"], visit.query)
        return views.answer(
            visit.viewer,
            shown,
            identity=identity,
            given=visit.query,
            refining=await _refining(visit, identity, str(shown.release.epsilon)) if shown.estimates else None,
            request=_name(),
            url=visit.url,
            clauses=told.get("clauses"),
            edited={} if no else other,
            no=no,
        )
    if told.get("bounds") is not None:
        return views.bounds(visit.viewer, told["bounds"])
    if told["state"] in HELD:
        mine = await visit.told("my_requests")
        return views.held(visit.viewer, told, sql=next((str(w.get("sql")) for w in mine if w["id"] == identity), ""))
    receipt = (await visit.known("receipt", charge=identity)).get("told", {})
    sql, cost = str(receipt.get("sql") or ""), str(receipt.get("epsilon") or "")
    if told["state"] != "asked":
        return views.failed(visit.viewer, told, sql=sql, cost=cost)
    events = (await visit.known("events")).get("told", [])
    event: Mapping[str, Any] = next((one for one in events if one["id"] == identity), {})
    total = views.seconds_between(receipt.get("time"), told["release_at"])
    left = float(event.get("seconds", _left(told["release_at"])))
    before = int(event.get("before", 0))
    return views.waiting(visit.viewer, told, sql=sql, left=min(left, total), total=total, before=before, cost=cost)


def _left(release_at: str) -> float:
    return (datetime.fromisoformat(release_at) - datetime.now(UTC)).total_seconds()


def _shown(text: str, given: Mapping[str, str]) -> views.ShownAnswer:
    try:
        return views.shown_of(text, given)
    except HubbubError as error:
        raise Refused("incident", str(error)) from None


async def _refining(visit: Visit, identity: str, epsilon: str) -> dict[str, Any] | None:
    """What refining would give, at what was asked, or as much again as it was drawn at; None where nobody asked and it
    cannot be.
    """
    asked = visit.query.get("refine", "").strip()
    told = await visit.known("check_refine", charge=identity, epsilon=asked or epsilon)
    if "refused" in told and not asked:
        return None
    return {**told, "asked": asked or views.amount(epsilon).rstrip("…")}


async def _refine(visit: Visit) -> str:
    told = await visit.told(
        "refine", charge=visit.path["id"], epsilon=visit.field("epsilon"), request=visit.field("request")[:64]
    )
    return f"/a/{told['id']}"


async def _read(visit: Visit) -> str:
    await visit.told("read", charge=visit.path["id"])
    return f"/a/{visit.path['id']}"


async def _file(visit: Visit) -> Response:
    identity, form = visit.path["id"], visit.path["form"]
    told = await visit.told("answer", charge=identity, **_other(visit.query))
    if form in FORMS and told.get("answer") is not None:
        made = file_of(_shown(told["answer"], visit.query), form, told["answer"], identity)
        if made is not None:
            return made
    raise Refused("unknown", "there is no such file.")


async def _library(visit: Visit) -> Page:
    return views.library(visit.viewer, await visit.told("answers"))


async def _mine(visit: Visit) -> Page:
    return views.mine(visit.viewer, await visit.told("history"), await visit.told("budget"))


async def _more_form(visit: Visit) -> Page:
    asked, sql = visit.query.get("epsilon", ""), visit.query.get("for", "")
    reason = f"To ask:\n{sql}\n\nbecause " if sql else ""
    return views.more(visit.viewer, epsilon=asked, reason=reason, requests=await visit.told("my_requests"))


async def _more(visit: Visit) -> Page:
    epsilon, reason = visit.field("epsilon").strip(), visit.field("reason").strip()
    told = await visit.known("request_budget", epsilon=epsilon, reason=reason)
    requests = await visit.told("my_requests")
    if "told" in told:
        return views.more(visit.viewer, sent=True, requests=requests)
    return views.more(visit.viewer, epsilon=epsilon, reason=reason, requests=requests, refusal=told["refused"])


async def _withdraw(visit: Visit) -> str:
    await visit.told("withdraw_request", request=visit.field("request"))
    return "/more"


# -- one's own account ----------------------------------------------------------------------------------------


async def _account(
    visit: Visit, *, made: Mapping[str, Any] | None = None, refusal: Mapping[str, Any] | None = None
) -> Page:
    tokens, devices = await visit.told("tokens"), await visit.told("devices")
    binding = await visit.told("binding")
    return views.account(visit.viewer, visit.who, tokens, devices, binding, url=visit.url, made=made, refusal=refusal)


async def _account_form(visit: Visit) -> Page:
    return await _account(visit)


async def _token(visit: Visit) -> Page:
    given: dict[str, Any] = {name: visit.field(name).strip() or None for name in ("label", "most", "cap")}
    days = visit.field("days").strip()
    if days:
        if not days.isascii() or not days.isdigit() or len(days) > 4:
            return await _account(visit, refusal={"kind": "query", "text": "days: expected a whole number."})
        given["days"] = int(days)
    told = await visit.known("create_token", **given, scopes=visit.fields.get("scopes", []))
    return await _account(visit, made=told.get("told"), refusal=told.get("refused"))


async def _end_token(visit: Visit) -> str:
    await visit.told("end_token", token=visit.field("token"))
    return "/account"


async def _end_device(visit: Visit) -> Page | str:
    told = await visit.known("end_device", device=visit.field("device"))
    return await _account(visit, refusal=told["refused"]) if "refused" in told else "/account#devices"


async def _end_other_devices(visit: Visit) -> str:
    await visit.told("end_other_devices")
    return "/account#devices"


async def _passphrase(visit: Visit) -> Page | Response:
    told = await visit.known("change_passphrase", old=visit.field("old"), new=visit.field("new"))
    if "refused" in told:
        return await _account(visit, refusal=told["refused"])
    return visit.hosts.let_in(go("/account"), told["told"]["session"])


async def _logout(visit: Visit) -> Response:
    await visit.told("logout")
    return visit.hosts.let_out(go("/login"))


# -- coming in ------------------------------------------------------------------------------------------------


async def _login_form(visit: Visit) -> Page | str:
    if visit.viewer.name:
        return inside(visit.query.get("next", "/"))
    after, ended = inside(visit.query.get("next", "/")), "ended" in visit.query
    return views.login(visit.viewer, after=after, ended=ended, provider=await provider_routes.provider(visit))


async def _login(visit: Visit) -> Page | Response:
    name, after = visit.field("name").strip(), inside(visit.field("next"))
    try:
        told = await visit.hosts.ask(
            "login", {"name": name, "passphrase": visit.field("passphrase"), **visit.seen}, None
        )
    except Refused as refused:
        provider = await provider_routes.provider(visit)
        return views.login(visit.viewer, name=name, after=after, provider=provider, refusal=refused.told)
    return visit.hosts.let_in(go(after), told["session"])


async def _invitation_form(visit: Visit) -> Page:
    key = visit.path["key"]
    try:
        told = await visit.hosts.ask("invited", {"key": key}, None)
    except Refused as refused:
        return views.invitation(visit.viewer, key, gone=refused.text)
    return views.invitation(visit.viewer, key, told=told, provider=await provider_routes.provider(visit))


async def _invitation(visit: Visit) -> Page | Response:
    key = visit.path["key"]
    try:
        told = await visit.hosts.ask(
            "accept", {"key": key, "passphrase": visit.field("passphrase"), **visit.seen}, None
        )
    except Refused as refused:
        try:
            about = await visit.hosts.ask("invited", {"key": key}, None)
        except Refused:
            return views.invitation(visit.viewer, key, gone=refused.text)
        provider = await provider_routes.provider(visit)
        return views.invitation(visit.viewer, key, told=about, provider=provider, refusal=refused.told)
    return visit.hosts.let_in(go("/learn"), told["session"])


async def _enter_form(visit: Visit) -> Page:
    """What looks at links before people do (mail, chats, browsers) uses none up."""
    try:
        told = await visit.hosts.ask("invited", {"key": visit.path["key"]}, None)
    except Refused as refused:
        return views.invitation(visit.viewer, "", gone=refused.text)
    return views.entrance(visit.viewer, visit.path["key"], told["name"])


async def _enter(visit: Visit) -> Page | Response:
    try:
        told = await visit.hosts.ask("enter", {"key": visit.path["key"], **visit.seen}, None)
    except Refused as refused:
        return views.invitation(visit.viewer, "", gone=refused.text)
    return visit.hosts.let_in(go("/learn" if visit.field("first") == "learn" else "/"), told["session"])


ROUTES: Final[Sequence[tuple[str, str, Handler]]] = (
    ("GET", "/", _ask_form),
    ("GET", "/ask", _ask_form),
    ("POST", "/ask", _ask),
    ("POST", "/check", _check_form),
    ("POST", "/line", _line),
    ("GET", "/a/{id}", _answer),
    ("POST", "/a/{id}/read", _read),
    ("POST", "/a/{id}/refine", _refine),
    ("GET", "/a/{id}/{form}", _file),
    ("GET", "/library", _library),
    ("GET", "/mine", _mine),
    ("GET", "/more", _more_form),
    ("POST", "/more", _more),
    ("POST", "/more/withdraw", _withdraw),
    ("GET", "/account", _account_form),
    ("POST", "/account/token", _token),
    ("POST", "/account/token/end", _end_token),
    ("POST", "/account/device/end", _end_device),
    ("POST", "/account/device/others", _end_other_devices),
    ("POST", "/account/passphrase", _passphrase),
    ("POST", "/logout", _logout),
)
"""The pages of whoever is logged in."""

OPEN: Final[Sequence[tuple[str, str, Handler]]] = (
    ("GET", "/login", _login_form),
    ("POST", "/login", _login),
    ("GET", "/invitation/{key}", _invitation_form),
    ("POST", "/invitation/{key}", _invitation),
    ("GET", "/enter/{key}", _enter_form),
    ("POST", "/enter/{key}", _enter),
)
"""The pages of everybody."""


async def _static(request: Request) -> Response:
    file = static_file(request.path_params["name"])
    if file is None:
        return Response("", 404)
    headers = {
        "Cache-Control": f"public, max-age={_YEAR}, immutable",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Vary": "Accept-Encoding",
    }
    packs = "gzip" in request.headers.get("accept-encoding", "")
    content = file.packed if packs else file.content
    return Response(content, headers=headers | ({"Content-Encoding": "gzip"} if packs else {}), media_type=file.kind)


def page_refusal(line: ClerkLine, *, secure: bool) -> Callable[[Request, Response], Awaitable[Response]]:
    """What a browser is shown where no route takes its request: a page of the same status."""
    return not_found(Hosts(line, secure=secure), views.refusal)


def page_routes(line: ClerkLine, *, secure: bool) -> list[BaseRoute]:
    """The routes of all pages. secure: whether there is TLS."""
    hosts = Hosts(line, secure=secure)
    pack()
    made: list[BaseRoute] = [Route("/static/{name}", _static, methods=["GET"])]
    tables = (
        (True, ROUTES),
        (False, OPEN),
        (True, office_routes.ROUTES),
        (False, office_routes.OPEN),
        (True, provider_routes.ROUTES),
        (False, provider_routes.OPEN),
    )
    for known, table in tables:
        for method, path, handler in table:
            made.append(Route(path, answered(hosts, handler, views.refusal, known=known), methods=[method]))
    return made
