"""Who may what, from the OpenAPI document: every route, by nobody, by everybody, and by those who may no more.

Nothing here names a route: what the document says (`security`, `x-needs`) is what must hold. Whoever may not is told
403, never 404; whoever is not known 401; and the question of another is 404 in the words of one that never was.
"""

from __future__ import annotations

import json

import pytest

pytest.importorskip("starlette", reason="the service needs the extra `serve`")

from hubbub.service.http import events
from hubbub.service.http.openapi import document
from hubbub.service.people import keys
from service.faces import FaceWorld, one_event
from service.helpers import COUNT
from service.test_processes import called

OPERATIONS = [
    (method.upper(), path, operation)
    for path, methods in document()["paths"].items()
    for method, operation in methods.items()
]
WHO = {
    "nobody": None,
    "forged": None,
    "expired": None,
    "revoked": None,
    "disabled": None,
    "another analyst": {"check", "ask"},
    "check-only": {"check"},
    "auditor": {"auditor"},
    "steward": {"steward"},
}
BODY = {"string": "x", "object": {}, "array": [], "integer": 1, "boolean": True}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "_N", 2)
        patch.setattr(events, "stream", one_event)
        made = FaceWorld(tmp_path_factory.mktemp("matrix"), patch)
        one = made.desk.ask("ada", COUNT, {"epsilon": "0.1"}, "first")
        made.until(5)
        made.first = one["id"]
        made.tokens = {
            "nobody": None,
            "forged": made.token("ada")[:-1] + "!",
            "expired": made.token("old", days=1),
            "revoked": made.token("ada"),
            "disabled": made.token("gone"),
            "another analyst": made.token("bob"),
            "check-only": made.token("bob", scopes=["check"]),
            "a third": made.token("cy"),
            "auditor": made.token("aud", "auditor"),
            "steward": made.token("sue", "steward"),
        }
        made.people.keys.end(made.tokens["revoked"].split("_")[1], by="the test")
        made.people.roll.disable("gone", by="the test")
        with made.people.store.writing() as connection:
            connection("UPDATE token SET until = '2020-01-01T00:00:00.000000Z' WHERE person = 'old'")
        yield made
        made.close()


def request(world, method, path, operation, token):
    """A request as the document describes it, about what is another's."""
    for parameter in operation.get("parameters", []):
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", world.first if parameter["name"] == "id" else "x")
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    fields = {name: schema["properties"][name] for name in schema.get("required", ())}
    body = {name: BODY.get(each.get("type"), "x") for name, each in fields.items()}
    headers = [("Idempotency-Key", "k"), ("Content-Type", "application/json")]
    headers += [] if token is None else [("Authorization", f"Bearer {token}")]
    status, told, content = called(world.app, method, path, body=json.dumps(body).encode(), headers=headers)
    return status, told, json.loads(content) if "json" in told["content-type"] else content


@pytest.mark.parametrize("who", WHO)
def test_every_route_by_everybody(world, who):
    scopes = WHO[who]
    for method, path, operation in OPERATIONS:
        status, told, content = request(world, method, path, operation, world.tokens[who])
        needs = operation.get("x-needs")
        place = f"{who}: {method} {path}: {status} {content}"
        if operation.get("security") == []:
            assert status == 200, place
        elif scopes is None:
            assert (status, content["kind"], told["www-authenticate"]) == (401, "unauthenticated", "Bearer"), place
        elif path.endswith("/events") and scopes & set(needs):
            assert (status, content[:22]) == (200, b"id: 1\nevent: waiting\nd"), place
        elif needs == ["known"] or scopes & set(needs):
            assert status not in (401, 405, 500), place
            assert status != 403 or content["kind"] != "forbidden" or "passphrase" in content["detail"], place
        else:
            assert (status, content["kind"]) == (403, "forbidden"), place


def test_another_s_question_is_told_as_one_that_never_was(world):
    """By every route that names a question."""
    named = [each for each in OPERATIONS if "{id}" in each[1] and not each[1].endswith("/read")]
    assert len(named) >= 5
    for method, path, operation in named:
        other = request(world, method, path, operation, world.tokens["a third"])
        never = request(world, method, path.replace("{id}", "0" * 32), operation, world.tokens["a third"])
        assert (other[0], other[2]) == (never[0], never[2]), path


def test_the_matrix_finds_a_route_that_lets_everybody_in(world, monkeypatch):
    monkeypatch.setattr(type(world.gate), "_admitted", lambda self, act, proof: self._people.prove(proof))
    with pytest.raises(AssertionError, match=r"check-only: "):
        test_every_route_by_everybody(world, "check-only")
