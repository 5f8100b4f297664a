"""Where the pages of stewards and auditors are, and what their forms do.

    handler(visit) -> a page, or where to go on to (303)

A visit has the acts of one person: `told(act, **given)` asks the clerk with the proof that came along, and raises what
he refuses. A form that did something leads on to the page, which names it by a word of `_DONE`; one that was refused
shows the page with the refusal in it. A link that is shown once is shown at once.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final
from urllib.parse import quote

from hubbub.service.pages import office
from hubbub.service.pages.learn import STEPS, address_of, told as learned
from hubbub.service.pages.learn.view import view as learn_view
from hubbub.service.pages.page import Page
from hubbub.service.pages.visit import Handler, Refused, Visit

__all__ = ["OPEN", "ROUTES"]

_LAST: Final = 2**62
"""Beyond every line of a log."""
_SHOWN: Final = 100
_LOOKS: Final = 10
_PAUSE: Final = 0.1
_DONE: Final = {
    "granted": "Granted. It holds from now on.",
    "revoked": "Nothing more may be spent. Stored answers stay.",
    "unlocked": "Unlocked.",
    "roles": "The roles are changed.",
    "disabled": "Let in no more. Tokens and pages ended at once.",
    "enabled": "Let in again.",
    "left": "Has left. Tokens and grants ended; the answers stay.",
    "ended": "The token has ended.",
    "yes": "Decided: yes.",
    "no": "Decided: no. The reason was told.",
    "refreshed": "A new version. Questions are asked of the new rows from now on.",
}


async def _learn(visit: Visit) -> Page | str:
    step = visit.path.get("step", "1")
    if step not in [str(n + 1) for n in range(len(STEPS))]:
        return "/learn/1"
    to = address_of(int(step), visit.query)
    return to or learn_view(learned(int(step), visit.query), visit.viewer)


async def _today(visit: Visit) -> Page | str:
    """The chain is not looked through here: when it last was, the log says."""
    newest = await visit.told("audit", before=_LAST, most=1000)
    walk = next((line for line in newest if line["act"] == "chain verified"), None)
    given = {
        "requests": await visit.told("requests", state="open"),
        "people": await visit.told("people"),
        "incidents": await visit.told("incidents"),
        "spaces": await visit.told("spaces"),
        "links": walk and walk["about"]["links"],
        "sound": walk is None or walk["about"]["sound"],
        "verified": walk and walk["time"],
    }
    return office.today(given, visit.viewer)


async def _people(visit: Visit) -> Page | str:
    return office.people({"people": await visit.told("people"), **_done(visit)}, visit.viewer)


async def _invite(visit: Visit) -> Page | str:
    name = _field(visit, "name")
    given: dict[str, Any] = {}
    try:
        who = {"name": name, "roles": visit.fields.get("roles", [])}
        given["link"] = {
            "name": name,
            **await visit.told("invite", **who, passphrase=_field(visit, "passphrase") or None),
        }
    except Refused as error:
        given["refused"] = error.text
    return office.people({"people": await visit.told("people"), **given}, visit.viewer)


async def _person(visit: Visit, **given: Any) -> Page | str:
    name = visit.path["name"]
    one = next((p for p in await visit.told("people") if p["name"] == name), None)
    if one is None:
        raise Refused("unknown", "there is nobody of this name.")
    more = {"person": one, "tokens": await visit.told("tokens_of", name=name)}
    more["charges"] = await visit.told("charges", analyst=name, most=_SHOWN)
    return office.person({**more, **_done(visit), **given}, visit.viewer)


async def _change(visit: Visit) -> Page | str:
    """What one form of a person's page does."""
    name, act = visit.path["name"], visit.path["act"]
    space, reason = _field(visit, "space"), _field(visit, "reason")
    account, sure = f"analyst:{name}", {"passphrase": _field(visit, "passphrase"), "reason": reason}
    try:
        match act:
            case "grant":
                until = _field(visit, "until") or None
                await visit.told(
                    "grant", account=account, epsilon=_field(visit, "epsilon"), space=space, until=until, **sure
                )
                word = "granted"
            case "revoke":
                await visit.told("revoke_grant", account=account, space=space, reason=reason)
                word = "revoked"
            case "unlock":
                await visit.told("unlock", analyst=name, space=space, **sure)
                word = "unlocked"
            case "roles":
                roles = visit.fields.get("roles", [])
                await visit.told("set_roles", name=name, roles=roles, passphrase=sure["passphrase"] or None)
                word = "roles"
            case "disable" | "enable" | "leave":
                await visit.told(act, name=name)
                word = {"disable": "disabled", "enable": "enabled", "leave": "left"}[act]
            case "end-token":
                await visit.told("end_token_of", token=_field(visit, "token"))
                word = "ended"
            case "reset":
                return await _person(
                    visit, link=await visit.told("reset", name=name, passphrase=sure["passphrase"] or None)
                )
            case _:
                raise Refused("unknown", "there is no such form.")
    except Refused as error:
        return await _person(visit, refused=error.text, opened=act)
    return f"/people/{quote(name, safe='')}?done={word}"


async def _requests(visit: Visit, **given: Any) -> Page | str:
    return office.requests({"requests": await visit.told("requests"), **_done(visit), **given}, visit.viewer)


async def _decide(visit: Visit) -> Page | str:
    yes = bool(_field(visit, "yes"))
    more = {name: _field(visit, name) for name in ("epsilon", "until", "passphrase") if _field(visit, name)}
    try:
        await visit.told(
            "decide", request=_field(visit, "request"), yes=yes, reason=_field(visit, "reason"), **(more if yes else {})
        )
    except Refused as error:
        return await _requests(visit, refused=error.text)
    return f"/requests?done={'yes' if yes else 'no'}"


async def _tables(visit: Visit, **given: Any) -> Page | str:
    declared, costs = await visit.told("tables"), await visit.told("bound_costs")
    shown = [office.declared_table(name, table, costs.get(name)) for name, table in declared.items()]
    changes = await visit.told("policy_changes")
    return office.tables({"tables": shown, **changes, **_done(visit), **given}, visit.viewer)


async def _refresh(visit: Visit) -> Page | str:
    try:
        await visit.told("refresh", table=_field(visit, "table"), reason=_field(visit, "reason"))
    except Refused as error:
        return await _tables(visit, refused=error.text)
    return "/tables?done=refreshed"


async def _incidents(visit: Visit, **given: Any) -> Page | str:
    return office.incidents({"incidents": await visit.told("incidents"), **given}, visit.viewer)


async def _words(visit: Visit) -> Page | str:
    incident = _field(visit, "incident")
    try:
        told = await visit.told("incident", incident=incident)
    except Refused as error:
        return await _incidents(visit, refused=error.text)
    return await _incidents(visit, shown=incident, words=told["words"])


async def _chain_form(visit: Visit) -> Page | str:
    """The form; or how far a walk is that was begun with it, and then what it found."""
    walk = await visit.told("chain_walk")
    if walk.get("state") == "walking" and "walk" not in visit.query:
        return "/chain?walk=1"
    if walk.get("state") == "walking":
        return office.chain({"chains": [], "walk": walk}, visit.viewer)
    if "walk" not in visit.query or walk.get("state") not in ("done", "failed"):
        return office.chain({"chains": []}, visit.viewer)
    given: dict[str, Any] = {"chains": [], "head": walk["head"]}
    if walk["state"] == "failed":
        return office.chain({**given, "refused": walk["problem"]}, visit.viewer)
    ledger, head = walk["found"], walk["head"]
    try:
        log = await visit.told("verify_audit", **({"head": head} if head else {}))
    except Refused as error:
        return office.chain({**given, "refused": error.text}, visit.viewer)
    log = {**log, "links": log["lines"], "notes": [], "at": ledger["at"]}
    chains = [{**ledger, "name": "Ledger", "kept": walk["receipt"]}, {**log, "name": "Log", "kept": bool(head)}]
    return office.chain({**given, "chains": chains}, visit.viewer)


async def _chain(visit: Visit) -> Page | str:
    receipt, head = _field(visit, "receipt").strip(), _field(visit, "head").strip()
    kept = _receipt_of(receipt)
    given: dict[str, Any] = {"receipt": receipt, "head": head, "chains": []}
    if receipt and kept is None:
        text = "That is not a receipt: expected the JSON of an answer, or of its receipt."
        return office.chain({**given, "refused": text}, visit.viewer)
    try:
        walk = await visit.told("begin_chain", **({} if kept is None else {"receipt": kept}), head=head)
        for _ in range(_LOOKS):  # most ledgers are walked by then
            if walk["state"] != "walking":
                break
            await asyncio.sleep(_PAUSE)
            walk = await visit.told("chain_walk")
    except Refused as error:
        return office.chain({**given, "refused": error.text}, visit.viewer)
    return "/chain?walk=1"


def _receipt_of(text: str) -> dict[str, Any] | None:
    """A receipt, written as JSON: by itself, or in the answer that it came with."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(told, dict) and isinstance(told.get("receipt"), dict):
        told = told["receipt"]
    return told if isinstance(told, dict) and "chain" in told else None


async def _charges(visit: Visit) -> Page | str:
    after = visit.query.get("after", "")
    start = int(after) if after.isdecimal() and len(after) < 9 else 0
    charges = await visit.told("charges", after=start, most=_SHOWN)
    more = start + _SHOWN if len(charges) == _SHOWN else None
    given = {"charges": charges, "spaces": await visit.told("spaces"), "limits": await visit.told("limits")}
    return office.charges({**given, "more": more}, visit.viewer)


async def _log(visit: Visit) -> Page | str:
    before = visit.query.get("before", "")
    start = int(before) if before.isdecimal() and len(before) < 18 else _LAST
    lines = await visit.told("audit", before=start, most=_SHOWN)
    return office.log({"lines": lines, "more": lines[-1]["serial"] if len(lines) == _SHOWN else None}, visit.viewer)


async def _attacks(visit: Visit) -> Page | str:
    return office.attacks(visit.query.get("epsilon", "1"), visit.viewer)


def _field(visit: Visit, name: str) -> str:
    return (visit.fields.get(name) or [""])[0]


def _done(visit: Visit) -> dict[str, Any]:
    return {"done": _DONE.get(visit.query.get("done", ""))}


OPEN: Final[tuple[tuple[str, str, Handler], ...]] = (
    ("GET", "/learn", _learn),
    ("GET", "/learn/{step}", _learn),
)
"""The pages of everybody: who has no account yet may learn."""

ROUTES: Final[tuple[tuple[str, str, Handler], ...]] = (
    ("GET", "/today", _today),
    ("GET", "/people", _people),
    ("POST", "/people/invite", _invite),
    ("GET", "/people/{name}", _person),
    ("POST", "/people/{name}/{act}", _change),
    ("GET", "/requests", _requests),
    ("POST", "/requests/decide", _decide),
    ("GET", "/tables", _tables),
    ("POST", "/tables/refresh", _refresh),
    ("GET", "/incidents", _incidents),
    ("POST", "/incidents/words", _words),
    ("GET", "/chain", _chain_form),
    ("POST", "/chain", _chain),
    ("GET", "/charges", _charges),
    ("GET", "/log", _log),
    ("GET", "/attacks", _attacks),
)
"""Each page and each form: how it is asked, where, and what is done."""
