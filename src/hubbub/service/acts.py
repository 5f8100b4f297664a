"""The acts of the service: what each needs, and what it is given. One table, by which the clerk lets in.

The front hands on what it is asked, with the proof that it was given: a token, or a page's session. It says nowhere who
asks; the clerk knows by the proof, looks here whether he may, and then calls the act with that person. HTTP's routes,
the OpenAPI document and the matrix of who may what are made from this table as well.

    needs       the scopes of which one is enough; "known": any proof does; none: no proof is asked for
    required    the fields, and what each is; optional ones may be left out, or be null
    changes     a page's session must send its form's word (CSRF)
    confirmed   the act weakens what was promised: it is given the passphrase again, and a reason
    page        a session's alone, never a token's
    limited     `token=`: the limits of the token go with it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from hubbub.errors import QueryError
from hubbub.ledger.charge import checked_text

__all__ = ["ACTS", "CHECK", "KNOWN", "READS", "STEWARD", "Act", "checked"]

CHECK: Final = ("check",)
ASK: Final = ("ask",)
STEWARD: Final = ("steward",)
READS: Final = ("steward", "auditor")
KNOWN: Final = ("known",)
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True)
class Act:
    """One act: where it is done, who may, and what it is given."""

    name: str
    room: Literal["desk", "declared", "people", "registry", "office", "requests", "archive", "elsewhere"]
    needs: tuple[str, ...]
    required: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    optional: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    changes: bool = False
    confirmed: bool = False
    page: bool = False
    limited: bool = False


_QUESTION: Final = {"sql": str, "options": dict}
_ONE: Final = {"charge": str}
_PURPOSE: Final = {"purpose": str}
_SHOWN: Final = {"level": str, "form": str}
_OTHER: Final = {"sql": str, "having": str, "order": str, "limit": str}
_NAME: Final = {"name": str}
_DEVICE: Final = {"device": str}
_TOKEN: Final = {"label": str, "scopes": list, "days": int, "most": str, "cap": str}
_UNTIL: Final = {"space": str, "until": str}
_SURE: Final = {"passphrase": str}
_DECISION: Final = {"epsilon": str, "until": str, "passphrase": str}
_PAGE: Final = {"after": int, "most": int}

_ALL: Final = (
    Act("metrics", "desk", ()),
    Act("login", "people", (), {"name": str, "passphrase": str}, _DEVICE),
    Act("invited", "people", (), {"key": str}),
    Act("accept", "people", (), {"key": str, "passphrase": str}, _DEVICE),
    Act("enter", "people", (), {"key": str}, _DEVICE),
    Act("ways", "elsewhere", ()),
    Act("begin", "elsewhere", (), optional={"then": str, "key": str}),
    Act("onward", "elsewhere", (), {"held": str}),
    Act("finish", "elsewhere", (), {"held": str, "state": str}, {"code": str, "iss": str, "error": str, **_DEVICE}),
    Act("binding", "elsewhere", KNOWN, page=True),
    Act("begin_binding", "elsewhere", KNOWN, {"passphrase": str}, changes=True, page=True),
    Act("whoami", "people", KNOWN),
    Act("logout", "people", KNOWN, changes=True, page=True),
    Act("devices", "people", KNOWN, page=True),
    Act("end_device", "people", KNOWN, {"device": str}, changes=True, page=True),
    Act("end_other_devices", "people", KNOWN, changes=True, page=True),
    Act("change_passphrase", "people", KNOWN, {"old": str, "new": str}, changes=True, page=True),
    Act("tokens", "people", KNOWN),
    Act("create_token", "people", KNOWN, optional=_TOKEN, changes=True),
    Act("end_token", "people", KNOWN, {"token": str}, changes=True),
    Act("tables", "declared", (*CHECK, *READS)),
    Act("bound_costs", "declared", READS),
    Act("policy_changes", "archive", READS),
    Act("check", "desk", CHECK, _QUESTION, limited=True),
    Act("ask", "desk", ASK, {**_QUESTION, "request": str}, _PURPOSE, changes=True, limited=True),
    Act(
        "check_bounds", "desk", ASK, {**_QUESTION, "request": str}, {"at": str, **_PURPOSE}, changes=True, limited=True
    ),
    Act("answer", "desk", ASK, _ONE, {**_SHOWN, **_OTHER}, limited=True),
    Act("read", "desk", ASK, _ONE, _SHOWN, changes=True, limited=True),
    Act("answers", "desk", ASK, optional={"most": int}),
    Act("check_refine", "desk", ASK, {**_ONE, "epsilon": str}, limited=True),
    Act("refine", "desk", ASK, {**_ONE, "epsilon": str, "request": str}, _PURPOSE, changes=True, limited=True),
    Act("plan", "desk", ASK, {"questions": list, "request": str}, _PURPOSE, changes=True, limited=True),
    Act("budget", "desk", CHECK, limited=True),
    Act("table", "declared", CHECK, {"name": str}),
    Act("cancel", "desk", ASK, _ONE, changes=True),
    Act("history", "desk", ASK),
    Act("receipt", "desk", ASK, _ONE),
    Act("events", "desk", ASK),
    Act("request_budget", "requests", ASK, {"epsilon": str, "reason": str}, {"space": str}, changes=True),
    Act("my_requests", "requests", ASK),
    Act("withdraw_request", "requests", ASK, {"request": str}, changes=True),
    Act("people", "office", READS),
    Act("requests", "requests", READS, optional={"state": str}),
    Act("spaces", "office", READS),
    Act("spending", "office", (*READS, "metrics")),
    Act("limits", "office", READS),
    Act("charges", "archive", READS, optional={**_PAGE, "analyst": str}),
    Act("chain", "archive", READS, optional={"receipt": dict}),
    Act("begin_chain", "archive", READS, optional={"receipt": dict, "head": str}, changes=True),
    Act("chain_walk", "archive", READS),
    Act("audit", "archive", READS, optional={**_PAGE, "before": int}),
    Act("verify_audit", "archive", READS, optional={"head": str}),
    Act("invite", "registry", STEWARD, {**_NAME, "roles": list}, _SURE, changes=True),
    Act("set_roles", "registry", STEWARD, {**_NAME, "roles": list}, _SURE, changes=True),
    Act("disable", "registry", STEWARD, _NAME, changes=True),
    Act("enable", "registry", STEWARD, _NAME, changes=True),
    Act("leave", "office", STEWARD, _NAME, changes=True),
    Act("reset", "registry", STEWARD, _NAME, _SURE, changes=True),
    Act("tokens_of", "registry", STEWARD, _NAME),
    Act("end_token_of", "registry", STEWARD, {"token": str}, changes=True),
    Act("decide", "requests", STEWARD, {"request": str, "yes": bool, "reason": str}, _DECISION, changes=True),
    Act("grant", "office", STEWARD, {"account": str, "epsilon": str}, _UNTIL, changes=True, confirmed=True),
    Act("revoke_grant", "office", STEWARD, {"account": str}, {"space": str, "reason": str}, changes=True),
    Act("unlock", "office", STEWARD, {}, {"analyst": str, "space": str}, changes=True, confirmed=True),
    Act("raise_ceiling", "office", STEWARD, {"space": str, "epsilon": str}, changes=True, confirmed=True),
    Act("refresh", "office", STEWARD, {"table": str, "reason": str}, changes=True),
    Act("incidents", "archive", STEWARD),
    Act("incident", "archive", STEWARD, {"incident": str}, changes=True),
)

ACTS: Final[Mapping[str, Act]] = MappingProxyType({act.name: act for act in _ALL})
"""Every act, by name."""


def checked(act: Act, given: object) -> dict[str, Any]:
    """What an act is given, without the optional fields that are null.

    Raises QueryError for what is not a field of it, what is missing, and what is of another kind.
    """
    if not isinstance(given, dict):
        raise QueryError(f"{act.name}: expected an object with its fields.")
    secret = {"passphrase": str, "reason": str} if act.confirmed else {}
    known = {**act.required, **secret, **act.optional}
    fields = {name: value for name, value in given.items() if value is not None or name in act.required}
    for name in given:
        if name not in known:
            raise QueryError(f"{act.name}: there is no {name!r:.60}. Known: {', '.join(known) or 'nothing'}.")
    for name in (*act.required, *secret):
        if name not in fields:
            raise QueryError(f"{act.name}: {name!r} is missing.")
    for name, value in fields.items():
        if isinstance(value, str):
            checked_text(value, name)
        if not isinstance(value, known[name]) or (isinstance(value, bool) and known[name] is not bool):
            raise QueryError(f"{act.name}: {name!r} is not {_KINDS[known[name]]}.")
        if isinstance(value, dict | list) and not _is_flat(value):
            raise QueryError(f"{act.name}: {name!r} is nested deeper than {_DEEPEST} levels.")
    return fields


def _is_flat(value: dict[Any, Any] | list[Any]) -> bool:
    """Whether what is sent has an end before whoever reads it has none."""
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        pieces = (one.values() if isinstance(one, dict) else one for one in level)
        level = [each for piece in pieces for each in piece if isinstance(each, dict | list)]
    return not level


_DEEPEST: Final = 32
_KINDS: Final = {str: "a text", dict: "an object", list: "a list", int: "a whole number", bool: "true or false"}
