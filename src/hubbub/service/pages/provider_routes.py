"""Coming in by a provider: going there, coming back, and binding one's account there.

    GET  /login/provider             to the provider; from a link of an invitation: to bind
    GET  /invitation/KEY/provider
    POST /account/provider           to bind, behind the passphrase
    GET  /login/provider/on          to the provider, from the page that this answers with
    GET  /login/provider/back        where the provider sends people

A form may lead to this service alone (the policy of the content), so what begins with a form goes on by a link.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from starlette.responses import Response

from hubbub.service.pages import views
from hubbub.service.pages.page import Page, page_headers
from hubbub.service.pages.visit import Handler, Refused, Visit, go, inside

__all__ = ["OPEN", "ROUTES", "provider"]


async def provider(visit: Visit) -> str | None:
    """What the provider is called; None where there is none, or nobody to say so."""
    try:
        told: dict[str, str | None] = await visit.hosts.ask("ways", {}, None)
    except Refused:
        return None
    return told["provider"]


async def _begin(visit: Visit) -> Page | Response:
    given: dict[str, Any] = {"then": inside(visit.query.get("next", "/"))}
    if "key" in visit.path:
        given = {"then": "/learn", "key": visit.path["key"]}
    try:
        told = await visit.hosts.ask("begin", given, None)
    except Refused as refused:
        return await _refused(visit, refused)
    return visit.hosts.hold(go(told["address"]), told["held"])


async def _begin_binding(visit: Visit) -> Page | Response:
    try:
        told = await visit.told("begin_binding", passphrase=visit.field("passphrase"))
    except Refused as refused:
        if refused.kind == "unauthenticated":
            raise
        tokens, devices, binding = [await visit.told(act) for act in ("tokens", "devices", "binding")]
        return views.account(visit.viewer, visit.who, tokens, devices, binding, url=visit.url, refusal=refused.told)
    page = views.onward(visit.viewer, str(await provider(visit)))
    shown = Response(page.text, 200, page_headers(page.nonce), "text/html")
    return visit.hosts.hold(shown, told["held"])


async def _onward(visit: Visit) -> Page | Response:
    try:
        told = await visit.hosts.ask("onward", {"held": visit.held}, None)
    except Refused as refused:
        return await _refused(visit, refused)
    return go(told["address"])


async def _back(visit: Visit) -> Page | Response:
    given: dict[str, Any] = {name: visit.query[name] for name in ("code", "iss", "error") if name in visit.query}
    try:
        told = await visit.hosts.ask(
            "finish", {"held": visit.held, "state": visit.query.get("state", ""), **visit.seen, **given}, None
        )
    except Refused as refused:
        return await _refused(visit, refused)
    return visit.hosts.let_go(visit.hosts.let_in(go(inside(told["then"])), told["session"]))


async def _refused(visit: Visit, refused: Refused) -> Page:
    return views.login(visit.viewer, provider=await provider(visit), refusal=refused.told)


ROUTES: Final[Sequence[tuple[str, str, Handler]]] = (("POST", "/account/provider", _begin_binding),)
"""The pages of whoever is logged in."""

OPEN: Final[Sequence[tuple[str, str, Handler]]] = (
    ("GET", "/login/provider", _begin),
    ("GET", "/login/provider/on", _onward),
    ("GET", "/login/provider/back", _back),
    ("GET", "/invitation/{key}/provider", _begin),
)
"""The pages of everybody."""
