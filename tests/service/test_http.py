"""The HTTP face: one table of routes, its document, forms of answers, and what is refused before the clerk hears of it.

The clerk here is a desk by the test's clock behind the real gate, or one that says what the test wants.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import fields

import pyarrow as pa
import pytest

from hubbub.service.acts import ACTS
from hubbub.service.http import events
from hubbub.service.http.accept import FORMS, accepted
from hubbub.service.http.app import application, counting_application
from hubbub.service.http.metrics import Counts
from hubbub.service.http.openapi import document
from hubbub.service.http.routes import API, ROUTES
from hubbub.service.http.schemas import FIELDS, OPTIONS
from hubbub.session.options import Options
from service.faces import PageOnly, analyst, faced  # noqa: F401
from service.helpers import COUNT
from service.test_processes import Line, called

pytest.importorskip("starlette", reason="the service needs the extra `serve`")
MINE = [("Authorization", "Bearer hub_x")]
KEYED = [*MINE, ("Idempotency-Key", "r")]
ASKED = {"id": "f" * 32, "state": "asked", "release_at": "2026-01-01T00:00:00Z"}


def body_of(**fields):
    return json.dumps(fields).encode()


def test_every_act_of_a_token_has_a_route_and_every_route_an_act():
    with_routes = {to.act for to in ROUTES}
    elsewhere = {name for name, act in ACTS.items() if act.page or not act.needs}
    assert with_routes == set(ACTS) - elsewhere
    assert len({(to.method, to.path) for to in ROUTES}) == len(ROUTES)
    for to in ROUTES:
        known = {*to.does.required, *to.does.optional}
        assert {*to.places.values(), *to.query.values()} <= known, to.path
        assert set(to.places) == {part[1:-1] for part in to.path.split("/") if part.startswith("{")}
        assert to.method in ("POST", "PUT") or set(to.required) == set(), to.path
        assert to.does.changes == (to.method != "GET") or to.act in ("check", "check_refine"), to.path


def test_the_document_is_valid_and_names_all_options():
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(document())
    assert set(OPTIONS) == {field.name for field in fields(Options)}
    assert {path for path in document()["paths"] if path.startswith(API)} == {API + to.path for to in ROUTES}
    body = document()["paths"][f"{API}/ask"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["properties"]) == {"sql", "options", "purpose"}
    assert body["properties"]["sql"] == FIELDS["sql"]


def test_the_plain_pages_and_the_two_booleans():
    app = application(Line({"refused": {"kind": "unauthenticated", "text": "who?"}}))
    assert json.loads(called(app, "GET", "/openapi.json")[2]) == document()
    status, sent, page = called(app, "GET", "/docs")
    assert (status, sent["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"/api/v1/ask" in page
    assert b"<script" not in page
    assert called(app, "GET", "/readyz")[::2] == (200, b'{"ready":true}')
    away = application(Line({"refused": {"kind": "away", "text": "away"}}))
    assert called(away, "GET", "/readyz")[::2] == (503, b'{"ready":false}')
    assert called(away, "GET", "/healthz")[::2] == (200, b'{"well":true}')


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "status", "kind"),
    [
        ("GET", "/api/v1/ask", KEYED, b"", 405, "method"),
        ("POST", "/api/v1/nothing", KEYED, b"", 404, "unknown"),
        ("POST", "/api/v1/check", [*MINE, ("Accept", "text/csv")], body_of(sql=COUNT), 406, "form"),
        ("POST", "/api/v1/check", [*MINE, ("Content-Type", "text/plain")], body_of(sql=COUNT), 415, "type"),
        ("POST", "/api/v1/check", MINE, b"x" * 300_000, 413, "size"),
        ("POST", "/api/v1/check", MINE, b'{"sql": "x", "options": {"epsilon": NaN}}', 400, "request"),
        ("POST", "/api/v1/check", MINE, b'{"sql": "x", "options": {"epsilon": 1e999}}', 400, "request"),
        ("POST", "/api/v1/check", MINE, b'{"sql": "x", "options": {"weight": "\\ud800"}}', 400, "request"),
        ("POST", "/api/v1/ask", KEYED, b'{"sql": "x", "options": {"\\udfff": 1}}', 400, "request"),
        ("POST", "/api/v1/check", MINE, b"[" * 100_000, 400, "request"),
        ("POST", "/api/v1/ask", MINE, body_of(sql=COUNT), 400, "request"),
        ("POST", "/api/v1/ask", [*MINE, ("Idempotency-Key", "x" * 201)], body_of(sql=COUNT), 400, "request"),
        ("POST", "/api/v1/ask", KEYED, body_of(sql=COUNT, request="mine"), 400, "request"),
        ("POST", "/api/v1/answers/a/refine", KEYED, body_of(epsilon="1", charge="b"), 400, "request"),
        ("GET", "/api/v1/answers/a?wait=61", MINE, b"", 400, "request"),
        ("GET", "/api/v1/answers/a?level=nan", MINE, b"", 400, "request"),
        ("GET", "/api/v1/answers/a?format=xls", MINE, b"", 400, "request"),
        ("GET", "/api/v1/answers/a", [*MINE, ("Accept", "image/png")], b"", 406, "form"),
        ("GET", "/api/v1/answers?most=x", MINE, b"", 400, "request"),
        ("GET", "/api/v1/budget", [("Authorization", "Basic x")], b"", 401, "unauthenticated"),
    ],
)
def test_what_is_refused_before_the_clerk_hears_of_it(method, path, headers, body, status, kind):
    line = Line({"told": ASKED})
    found, sent, content = called(application(line), method, path, body=body, headers=headers)
    assert (found, sent["content-type"]) == (status, "application/problem+json"), content
    problem = json.loads(content)
    assert (problem["kind"], problem["status"], problem["type"]) == (kind, status, f"/docs#{kind}")
    assert line.asked == []
    assert (sent.get("allow") == "POST") == (status == 405)
    assert sent["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/healthz/", "/api/v1/me/", "/api/v1/ask/", "//healthz", "//x.example/healthz/"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_address_leads_to_the_host_that_a_request_names(method, path):
    line = Line({"told": ASKED})
    headers = [*KEYED, ("Host", "x.example")]
    status, sent, _ = called(application(line), method, path, body=b"{}", headers=headers)
    assert status == 404
    assert "location" not in sent


def test_a_refusal_carries_what_a_client_raises_again():
    refused = {"kind": "query", "text": "words", "class": "ParameterError", "position": [7, 10], "remedies": [{"a": 1}]}
    status, _, content = called(application(Line({"refused": refused})), "GET", "/api/v1/budget", headers=MINE)
    problem = json.loads(content)
    assert status == 422
    assert {name: problem[name] for name in ("class", "position", "remedies")} == {
        name: refused[name] for name in ("class", "position", "remedies")
    }


def test_a_defect_of_the_front_is_an_incident_without_words(capsys):
    class Broken(Line):
        def ask(self, act, given, proof=None):
            raise RuntimeError("private words")

    status, _, content = called(application(Broken(None)), "GET", "/api/v1/budget", headers=MINE)
    assert (status, json.loads(content)["kind"]) == (500, "incident")
    said = capsys.readouterr().err + content.decode()
    assert "private words" not in said
    assert json.loads(content)["incident"] in said


@pytest.mark.parametrize(
    ("header", "form"),
    [
        ("", "json"),
        ("*/*", "json"),
        ("text/csv", "csv"),
        ("text/*;q=0.9, application/json;q=0.1", "csv"),
        ("application/vnd.apache.arrow.stream, application/json", "json"),
        ("application/vnd.apache.arrow.stream, application/json;q=0", "arrow"),
        ("application/json;q=0", None),
        ("*/*, application/json;q=0.1", "arrow"),
        ("image/png", None),
        ("text/csv;q=x", "csv"),
    ],
)
def test_the_form_follows_the_header(header, form):
    assert accepted(header, FORMS) == form


def test_an_answer_in_each_form(faced):  # noqa: F811
    app, world = faced
    token = analyst(world, "ada")
    headers = [("Authorization", f"Bearer {token}")]
    asked = body_of(sql="SELECT w, COUNT(*) AS n FROM v GROUP BY w", options={"epsilon": "1"})
    status, sent, content = called(app, "POST", "/api/v1/ask", body=asked, headers=[*headers, ("Idempotency-Key", "k")])
    place = sent["location"]
    assert status == 202
    assert called(app, "GET", f"{place}?format=csv", headers=headers)[0] == 202
    world.until(5)
    status, sent, content = called(app, "GET", f"{place}?level=0.9", headers=headers)
    assert (status, sent["vary"], sent["cache-control"]) == (200, "Accept", "no-store")
    assert "0.9" in json.loads(content)["answer"]["ends"]
    status, sent, content = called(app, "GET", place, headers=[*headers, ("Accept", "text/csv")])
    assert sent["content-type"] == "text/csv; charset=utf-8"
    assert content.startswith(b'"w","n","n_low","n_high"\n')
    status, sent, content = called(app, "GET", f"{place}?format=arrow", headers=headers)
    table = pa.ipc.open_stream(content).read_all()
    assert table.column_names == ["w", "n"]
    receipt = json.loads(called(app, "GET", f"{place}/receipt", headers=headers)[2])
    assert receipt["state"] == "answered"
    told = json.loads(called(app, "GET", "/api/v1/history", headers=headers)[2])
    assert [each["epsilon"] for each in told] == ["1"]


def test_counts_are_told_on_another_port_and_nothing_of_a_run_among_them():
    counts, line = Counts(), Line({"told": {"hubbub_questions_total": 2, "hubbub_virtual_queue": 1}})
    app = application(line, counts)
    called(app, "GET", "/healthz")
    called(app, "GET", "/api/v1/answers/a?wait=61", headers=MINE)
    assert called(app, "GET", "/metrics")[0] == 404
    text = called(counting_application(line, counts), "GET", "/metrics")[2].decode()
    assert 'hubbub_requests_total{route="GET /healthz",status="200"} 1' in text
    assert 'hubbub_requests_total{route="GET /api/v1/answers/{id}",status="400"} 1' in text
    assert 'hubbub_refusals_total{kind="request"} 1' in text
    assert "# TYPE hubbub_virtual_queue gauge\nhubbub_virtual_queue 1\n" in text


def test_amounts_are_told_to_whom_they_are_for(faced):  # noqa: F811
    """Without a token the counts alone; with one that may, what was spent in all and by analyst."""
    _, world = faced
    app = counting_application(world.line, Counts())
    world.person('ada "x"\\', "analyst")
    world.person("aud", "auditor")
    world.desk.ask('ada "x"\\', COUNT, {"epsilon": "1/4"}, "r")
    plain = called(app, "GET", "/metrics")[2].decode()
    assert "epsilon" not in plain
    proof = [("Authorization", f"Bearer {world.token('aud', scopes=['metrics'])}")]
    status, _, told = called(app, "GET", "/metrics", headers=proof)
    assert status == 200
    lines = told.decode().splitlines()
    assert 'hubbub_epsilon_spent{space="patient_id"} 0.25' in lines
    assert 'hubbub_epsilon_budget{space="patient_id"} 30.0' in lines
    assert 'hubbub_analyst_epsilon_spent{space="patient_id",analyst="ada \\"x\\"\\\\"} 0.25' in lines
    whole = told
    world.until(2)  # the run is over, and nothing of it is told before its release
    assert called(app, "GET", "/metrics", headers=proof)[2] == whole
    for token, status in ((world.token("ada", "analyst"), 403), ("hub_00000000_" + "a" * 32, 401), ("", 401)):
        refused = called(app, "GET", "/metrics", headers=[("Authorization", f"Bearer {token}")])
        assert refused[0] == status
        assert b"epsilon_" not in refused[2]


def test_releases_come_as_events():
    told = [
        [{"id": "a", "before": 0, "seconds": 0.06}, {"id": "b", "before": 1, "seconds": 0.3}],
        [{"id": "b", "before": 0, "seconds": 0.06}],
        [],
        None,
    ]

    async def look():
        return told.pop(0)

    async def all_of_them():
        return [event async for event in events.stream(look, pause=0.05)]

    said = asyncio.run(all_of_them())
    assert [each.split("\n")[1] for each in said] == [
        "event: waiting", "event: released", "event: waiting", "event: released", "event: waiting",
    ]  # fmt: skip
    assert [each.split("\n")[0] for each in said] == [f"id: {k}" for k in range(1, 6)]
    assert '{"id": "a"}' in said[1]


def test_so_many_streams_of_one_token_also_where_all_begin_at_once():
    app = application(Line({"told": []}))

    async def many():
        one = {
            "type": "http", "method": "GET", "path": "/api/v1/events", "raw_path": b"/api/v1/events",
            "query_string": b"", "headers": [(k.lower().encode(), v.encode()) for k, v in MINE],
            "http_version": "1.1", "scheme": "http", "server": ("x", 80), "root_path": "",
        }  # fmt: skip
        said, gone = [], asyncio.Event()

        async def receive():
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            if message["type"] == "http.response.start":
                said.append(message["status"])

        for _ in range(2):  # those of the first time have ended by the second
            gone.clear()
            visits = [asyncio.create_task(app(dict(one), receive, send)) for _ in range(2 * events.STREAMS)]
            wanted = len(said) + len(visits)
            while len(said) < wanted:
                await asyncio.sleep(0.01)
            gone.set()
            await asyncio.gather(*visits)
        return said

    said = asyncio.run(asyncio.wait_for(many(), 20))
    assert (said.count(200), said.count(429)) == (2 * events.STREAMS, 2 * events.STREAMS)


def test_pages_alone_log_out():
    assert set(PageOnly) == {name for name, act in ACTS.items() if act.page}
