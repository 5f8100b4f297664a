"""`hubbub serve`: the demo as a program that starts it sees it, a first steward, and lines that hold nothing."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

import hubbub as hb
from hubbub.cli import serve
from hubbub.errors import PolicyError
from hubbub.ledger.policy import load_policy
from hubbub.service import demo
from hubbub.service.lines import RequestLog
from hubbub.service.people.at_home import opened_people
from hubbub.service.people.people import link_of
from hubbub.service.serve import folder_of_socket
from service.test_before_asking import policy as write_policy

pytest.importorskip("starlette", reason="the service needs the extra `serve`")


def asked(url, token, path, body=None, key="k"):
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key, "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, data, headers), timeout=60) as found:
            return found.status, json.loads(found.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def opened(link, method="POST"):
    """A link as a browser opens it, and as its button does (POST), without what follows: the status, and the cookie."""
    parts = urllib.parse.urlsplit(link)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    connection.request(method, parts.path)
    answer = connection.getresponse()
    connection.close()
    return answer.status, answer.headers.get("Set-Cookie", "")


def test_the_demo_says_in_one_line_where_it_is_and_answers(tmp_path):
    """Nothing here hangs on how fast the machine is but the patience of a minute."""
    pytest.importorskip("statsmodels", reason="the survey ships with statsmodels (extra demo)")
    command = [sys.executable, "-m", "hubbub", "serve", "--demo", "--json", "--log", "json"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with (tmp_path / "log").open("w") as log:
        started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
    try:
        assert select.select([started.stdout], [], [], 90)[0]
        told = json.loads(started.stdout.readline())
        assert list(told) == ["url", "analyst", "steward", "auditor", "postgres", "mcp"]
        assert told["postgres"] is told["mcp"] is None
        url, tokens = told["url"], {role: told[role]["token"] for role in demo.DEMO}
        for role in demo.DEMO:
            assert told[role]["link"].startswith(f"{url}/enter/inv_")
        for tried in range(3):  # on a machine that does much else a run may not end within its second
            grouped = "SELECT rate_marriage, COUNT(*) AS n FROM survey GROUP BY rate_marriage"
            question = {"sql": f"{grouped} LIMIT {5 + tried}", "options": {"epsilon": "1/2"}}
            status, one = asked(url, tokens["analyst"], "/api/v1/ask", question, key=f"k{tried}")
            assert (status, one["state"]) == (202, "asked")
            status, answer = asked(url, tokens["analyst"], f"/api/v1/answers/{one['id']}?wait=30")
            if answer["state"] == "answered":
                break
        assert (status, answer["state"]) == (200, "answered")
        assert len(hb.Release.from_wire(json.dumps(answer["answer"])).rows()) == 5
        status, left = asked(url, tokens["analyst"], "/api/v1/budget")
        spent = Fraction(1 + tried, 2)
        assert left["spaces"][0]["epsilon"] == "3"
        assert left["spaces"][0]["yours"] == {"left": str(2 - spent), "limit": "2", "spent": str(spent)}
        assert asked(url, tokens["auditor"], "/api/v1/ask", question)[0] == 403
        assert asked(url, "hub_00000000_" + "a" * 32, "/api/v1/budget")[0] == 401
        assert opened(told["analyst"]["link"], "GET") == (200, "")  # a look uses nothing up
        status, cookie = opened(told["analyst"]["link"])
        assert (status, cookie.partition("=")[2][:1] != "") == (303, True)
        assert opened(told["analyst"]["link"])[0] != 303  # once
    finally:
        started.send_signal(signal.SIGTERM)
        assert started.wait(60) == 0
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines() if line.startswith("{")]
    assert {line["from"] for line in lines} == {"service", "clerk", "front"}
    text = (tmp_path / "log").read_text()
    assert not re.search(r"hub_\w{8}_|inv_\w|SELECT|rate_marriage", text)
    assert list(tmp_path.glob("hubbub-*")) == []


def test_the_demo_declares_the_survey(tmp_path):
    pytest.importorskip("statsmodels", reason="the survey ships with statsmodels (extra demo)")
    from hubbub.cli.survey import find_survey

    file, tokens = demo.set_up(tmp_path, find_survey(), "http://127.0.0.1:1")
    said = load_policy(file)
    survey = said.tables["survey"]
    assert (said.budget.epsilon, said.analysts, said.service.answer_time, said.service.lanes) == (3, {"ada": 2}, 1, 1)
    assert survey.unit is None
    assert set(survey.columns) == {
        "rate_marriage", "religious", "educ", "age", "yrs_married", "children", "affairs",
    }  # fmt: skip
    assert {"occupation", "occupation_husb"} <= set(survey.types)
    people = opened_people(said)
    assert {people.prove({"token": tokens[role]}).name for role in demo.DEMO} == set(demo.DEMO.values())
    links = demo.entrances(file, "http://127.0.0.1:1")
    key = links["steward"].rpartition("/")[2]
    assert people.enter(key)["name"] == "stella"
    with pytest.raises(hb.errors.HubbubError):
        people.enter(key)
    people.close()


class Quiet:
    """A service that is ready at once, and stopped."""

    ready = {"respawn": 0.1, "held": {}}  # noqa: RUF012
    only = None

    def __init__(self, policy, **more):
        self.more, self.stopped = more, False

    def start(self):
        pass

    def run(self):
        pass

    def say(self, line):
        print(line)

    stop = run


def test_a_first_start_shows_one_link_for_a_steward_and_no_second_one(tmp_path, monkeypatch):
    file = write_policy(tmp_path)
    hb.Session.from_policy(file, create_ledger=True).close()
    monkeypatch.setattr("hubbub.service.serve.Service", Quiet)

    def served(*more):
        return CliRunner().invoke(serve.command, ["--policy", str(file), *more], standalone_mode=False).stdout

    shown = re.search(r"chooses a passphrase at (http://127.0.0.1:8080)/invitation/(inv_\w+)", served())
    people = opened_people(load_policy(file))
    assert people.invited(shown[2])["name"] == "steward"
    assert "invitation" not in served()
    people.accept(shown[2], "correct horse battery")
    nobody = dict.fromkeys(("analyst", "steward", "auditor", "postgres", "mcp"))
    assert json.loads(served("--json").splitlines()[0]) == {"url": "http://127.0.0.1:8080"} | nobody
    people.close()


def request(app, path, headers=(), status=200):
    said = []

    async def serve_one(scope, receive, send):
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def run():
        async def receive():
            return {"type": "http.request"}

        async def send(message):
            said.append(message)

        scope = {"type": "http", "method": "GET", "path": path, "headers": list(headers), "query_string": b"t=hub_x"}
        await app(serve_one)(scope, receive, send)

    asyncio.run(run())
    return dict(said[0]["headers"])[b"x-request-id"].decode()


def test_a_request_is_named_by_the_server_before_it_or_here():
    lines = []

    def app(inner):
        return RequestLog(inner, header="X-Request-Id", say=lines.append)

    named = [(b"x-request-id", b"abc-1")]
    assert request(app, "/x", named) == "abc-1"
    for wrong in (b"", b"a b", b"a" * 65, b'"}\n{"'):
        assert re.fullmatch("[0-9a-f]{32}", request(app, "/x", [(b"x-request-id", wrong)]))
    assert re.fullmatch("[0-9a-f]{32}", request(lambda inner: RequestLog(inner, header=None, say=None), "/x", named))
    assert json.loads(lines[0])["request"] == "abc-1"


def test_lines_hold_no_key_of_a_link_and_nothing_that_somebody_lost_wrote():
    lines = []

    def app(inner):
        return RequestLog(inner, header=None, say=lines.append)

    request(app, "/invitation/inv_abcdef")
    request(app, "/enter/inv_abcdef", status=303)
    request(app, "/hub_12345678_secret", status=404)
    assert [json.loads(line)["path"] for line in lines] == ["/invitation/(key)", "/enter/(key)", "(no such path)"]
    assert not any("hub_" in line or "inv_" in line for line in lines)


def test_a_link_leads_to_the_page_s_place():
    assert link_of("enter", "inv_x", "http://127.0.0.1:8080") == "http://127.0.0.1:8080/enter/inv_x"
    assert Path(link_of("invitation", "inv_x")).parts == ("/", "invitation", "inv_x")


def test_a_socket_stands_in_a_folder_of_a_short_name(tmp_path, monkeypatch):
    """A socket's path has about a hundred bytes; a folder for temporary files may have more, as on macOS."""
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    folder = folder_of_socket(None)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{folder}/clerk")
    shutil.rmtree(folder)
    with pytest.raises(PolicyError, match="name a shorter folder"):
        folder_of_socket(deep)
