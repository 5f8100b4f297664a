"""The OpenAPI document (3.1), made from the table of routes and that of acts; and a plain page that shows it."""

from __future__ import annotations

import html
from functools import lru_cache
from typing import Any, Final

from hubbub.service.http.accept import FORMS
from hubbub.service.http.problem import STATUS
from hubbub.service.http.routes import API, ROUTES, RouteTo
from hubbub.service.http.schemas import FIELDS, KINDS, SCHEMAS

__all__ = ["docs_page", "document"]

_OPEN: Final = (
    ("/healthz", "Whether the front is there", "well"),
    ("/readyz", "Whether questions are taken", "ready"),
)
_REFUSED: Final = ("400", "401", "403", "404", "406", "409", "413", "415", "422", "423", "429", "500", "503")


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for to in ROUTES:
        paths.setdefault(API + to.path, {})[to.method.lower()] = _operation(to)
    for path, summary, word in _OPEN:
        shown = {"type": "object", "properties": {word: {"type": "boolean"}}, "required": [word]}
        responses = {code: {"description": summary, "content": _content(shown)} for code in ("200", "503")}
        paths[path] = {"get": {"operationId": word, "summary": summary, "security": [], "responses": responses}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hubbub",
            "version": "1",
            "description": "Differentially private answers about people, through a wall. Amounts are texts.",
        },
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {code: _problem(code) for code in _REFUSED},
        },
        "security": [{"token": []}],
    }


def _operation(to: RouteTo) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": to.act,
        "summary": to.summary,
        "tags": [_room(to)],
        "x-needs": list(to.does.needs),
        "parameters": _parameters(to),
        "responses": {**_told(to), **{code: {"$ref": f"#/components/responses/{code}"} for code in _REFUSED}},
    }
    if to.method in ("POST", "PUT"):
        fields = {**to.required, **to.optional}
        body = {
            "type": "object",
            "properties": {name: FIELDS.get(name, KINDS[kind]) for name, kind in fields.items()},
            "required": [name for name in to.required if name != "options"],
            "additionalProperties": False,
        }
        operation["requestBody"] = {"required": bool(body["required"]), "content": _content(body)}
    return operation


def _room(to: RouteTo) -> str:
    needs = to.does.needs
    return (
        "anybody known" if needs == ("known",) else "analyst" if {"check", "ask"} & set(needs) else " or ".join(needs)
    )


def _parameters(to: RouteTo) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in to.places
    ]
    fields = {**to.does.required, **to.does.optional}
    for name, field in to.query.items():
        schema = FIELDS.get(field, KINDS[fields[field]])
        told.append({"name": name, "in": "query", "required": False, "schema": schema})
    if to.shape == "answer":
        wait = {"type": "number", "minimum": 0, "maximum": 60}
        told.append({"name": "wait", "in": "query", "required": False, "schema": wait})
    if to.keyed:
        key = {"type": "string", "pattern": "^[!-~]{1,200}$"}
        told.append({"name": "Idempotency-Key", "in": "header", "required": True, "schema": key})
    return told


_EVENT: Final = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "event": {"enum": ["waiting", "released"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["id", "event", "data"],
    "additionalProperties": False,
}
"""Each event of the stream: before OpenAPI 3.2, that is what the schema of such a media type describes."""


def _told(to: RouteTo) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{to.told}"}
    told: dict[str, Any] = {"description": to.summary, "content": _content(schema)}
    match to.shape:
        case "events":
            return {"200": {"description": to.summary, "content": {"text/event-stream": {"schema": _EVENT}}}}
        case "ask":
            place = {"Location": {"schema": {"type": "string"}, "description": "Where its answer will be"}}
            answer = {"description": "Stored, or public", "content": _content({"$ref": "#/components/schemas/Answer"})}
            return {"202": {**told, "headers": place}, "200": answer}
        case "answer":
            other = {media: {"schema": {"type": "string"}} for form, media in FORMS.items() if form != "json"}
            return {"200": {**told, "content": {**told["content"], **other}}, "202": told}
    return {str(to.status): told}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _problem(code: str) -> dict[str, Any]:
    titles = dict.fromkeys(title for status, title in STATUS.values() if str(status) == code)
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    told: dict[str, Any] = {"description": "; ".join(titles), "content": content}
    if code in ("429", "503"):
        told["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds"}}
    return told


@lru_cache(maxsize=1)
def docs_page() -> str:
    """The document as a plain page: no script, no style of others."""
    rows = []
    for to in ROUTES:
        fields = [*(f"<b>{html.escape(n)}</b>" for n in to.required), *map(html.escape, to.optional)]
        cells = [
            f"<code>{to.method} {html.escape(API + to.path)}</code>",
            html.escape(to.summary),
            html.escape(" or ".join(to.does.needs)),
            ", ".join(fields),
            html.escape(", ".join([*to.query, *(["wait"] if to.shape == "answer" else [])])),
        ]
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    kinds = "".join(
        f'<tr id="{kind}"><td><code>{kind}</code></td><td>{status}</td><td>{html.escape(title)}</td></tr>'
        for kind, (status, title) in STATUS.items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>hubbub: the HTTP API</title>'
        "</head><body><main><h1>The HTTP API</h1><p>Send <code>Authorization: Bearer TOKEN</code>. Bodies are JSON; "
        'amounts are texts, such as "0.1" or "1/3". The whole, for machines: <a href="/openapi.json">'
        "openapi.json</a> (3.1).</p>"
        "<h2>Routes</h2><table><thead><tr><th>route</th><th>what</th><th>needs</th><th>body (needed fields first)</th>"
        f"<th>query</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
        "<h2>Refusals</h2><p><code>application/problem+json</code>, with the library's own text in <code>detail</code>."
        "</p><table><thead><tr><th>kind</th><th>status</th><th>what</th></tr></thead>"
        f"<tbody>{kinds}</tbody></table></main></body></html>"
    )
