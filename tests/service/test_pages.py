"""The pages of an analyst: every state is text, forms and pictures and nothing else, whatever stands in it.

The clerk is canned (`canned.Line`): what matters here is what the pages ask of him, and what they make of it.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import canned
from asgi import Client
from hubbub.answer.release import Release
from hubbub.service.pages import Viewer, views
from hubbub.service.pages.answering import snippets
from hubbub.service.pages.asking import Question, example, priced, refused
from hubbub.service.pages.static import _FILES
from hubbub.service.pages.words import amount, number, seconds

pytest.importorskip("starlette", reason="the service needs the extra `serve`")
HOSTILE = "</textarea></title></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'><b> ‮ &lt;"
SITE = "http://testserver"


class Read(HTMLParser):
    """A page as a browser reads it: its tags, its attributes, its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def sound(read: Read) -> None:
    """Scripts of ours alone, nothing that runs, nothing from elsewhere."""
    for tag, attributes in read.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], (tag, attributes)
        for name in ("href", "src", "action", "formaction"):
            address = attributes.get(name)
            assert address is None or re.match(r"(/(?![/\\])|\?|#)", address), (tag, address)
    for attributes in read.all("script"):
        assert re.fullmatch(r"/static/[a-z]+\.[0-9a-f]{12}\.js", attributes.get("src") or "")
        assert attributes["type"] == "module"
    assert not {"iframe", "object", "embed", "base", "img", "b"} & {t for t, a in read.tags if a.get("alt") != ""}


@pytest.mark.parametrize("name", canned.STATES)
def test_every_state_is_sound_and_every_form_says_whose_it_is(name: str) -> None:
    page = canned.STATES[name]()
    read = Read(page.text)
    sound(read)
    posts = page.text.count('method="post"')
    assert page.text.count('name="csrf"') == posts
    assert len(read.all("h1")) == 1
    assert read.text.count(" – hubbub") == 1
    assert len(read.all("style")) == page.text.count(f'<style nonce="{page.nonce}"')
    identities = [a["id"] for _, a in read.tags if a.get("id")]
    assert len(set(identities)) == len(identities)


@pytest.mark.parametrize("name", canned.STATES)
def test_every_picture_has_a_title_a_description_and_a_table(name: str) -> None:
    text = canned.STATES[name]().text
    pictures = re.findall(r"<svg .*?</svg>", text, re.DOTALL)
    for picture in pictures:
        assert re.search(r'<title id="\w+-t">[^<]+</title><desc id="\w+-d">[^<]+</desc>', picture)
        assert 'role="img"' in picture
    assert text.count("<table") >= len(set(re.findall(r"<desc [^>]+>([^<]+)</desc>", text)))


@pytest.mark.parametrize("name", canned.STATES)
def test_every_field_and_every_button_has_a_name(name: str) -> None:
    text = canned.STATES[name]().text
    read = Read(text)
    labelled = {a.get("for") for a in read.all("label")}
    for tag in ("input", "select", "textarea"):
        for field in read.all(tag):
            if field.get("type") not in ("hidden", "radio", "checkbox"):
                assert field.get("id") in labelled or field.get("aria-label"), field
    assert not re.search(r"<button[^>]*>\s*</button>", text)


def poisoned(told: Any) -> Any:
    """The same with hostile texts wherever a person, a policy or an engine could put one."""
    free = {
        "sql",
        "label",
        "by",
        "name",
        "text",
        "analyst",
        "notes",
        "mechanism",
        "unit_note",
        "purpose",
        "short",
        "others",
        "device",
    }
    if isinstance(told, dict):
        return {key: _poison(value) if key in free else poisoned(value) for key, value in told.items()}
    return [poisoned(one) for one in told] if isinstance(told, list) else told


def _poison(value: Any) -> Any:
    if isinstance(value, str):
        return f"{value}{HOSTILE}"
    return [_poison(one) for one in value] if isinstance(value, list) else value


def hostile_pages() -> Iterator[tuple[str, Any, int]]:
    """Pages in which each text of others is hostile, and how often it must be read as text at least."""
    ada = Viewer(f"ada{HOSTILE}", frozenset({"analyst"}), f"c{HOSTILE}", "3/2", "2")
    question = Question(sql=f"SELECT 1{HOSTILE}", spend=HOSTILE, within=HOSTILE, most=HOSTILE, rows=HOSTILE)
    tables = {
        f"t{HOSTILE}": {**canned.TABLES["survey"], "unit": f"u{HOSTILE}", "columns": {f"c{HOSTILE}": f"k{HOSTILE}"},
                        "declared": {f"c{HOSTILE}": {"one_of": [HOSTILE, "b", "c", "d", "e"], "text": HOSTILE}}}
    }  # fmt: skip
    check = poisoned(canned.CHECK)
    check["types"] = [[f"c{HOSTILE}", "string"], [f"n{HOSTILE}", "int64"], [f"age{HOSTILE}", "double"]]
    no = {"kind": "query", "text": f"no {HOSTILE}\n{HOSTILE}", "position": [7, 12]}
    yield "ask", views.ask(ada, question, tables, check={"told": check}, request=HOSTILE), 10
    yield "ask refused", views.ask(ada, question, tables, check={"refused": no}, request=HOSTILE), 6
    told = {**canned._TOLD, "id": HOSTILE, "incident": HOSTILE}
    yield "waiting", views.waiting(ada, told, sql=HOSTILE, left=3, total=5), 2
    yield "failed", views.failed(ada, told, sql=HOSTILE), 3
    release = canned.answered(
        {f"w{HOSTILE}": [f"a{HOSTILE}", f"b{HOSTILE}"], f"n{HOSTILE}": [5, 7]}, {f"n{HOSTILE}": 2.0},
        bounded=(HOSTILE,), receipt={**poisoned(canned.RECEIPT), "unit": HOSTILE},
    )  # fmt: skip
    shown = views.shown_of(canned.written(release), {"first": "0", "second": "1"})
    yield "answer", views.answer(
        ada, shown, identity="x", given={"first": "0", "second": "1"}, url=SITE,
        refining={"refused": {"text": HOSTILE}, "asked": HOSTILE},
    ), 12  # fmt: skip
    yield "library", views.library(ada, poisoned(canned._ANSWERS)), 3
    history = [{**one, "sql": f"{n}{HOSTILE}", "state": HOSTILE} for n, one in enumerate(canned.HISTORY)]
    yield "mine", views.mine(ada, history, canned.BUDGET), 4
    made = {"token": HOSTILE, "until": HOSTILE}
    who, tokens = poisoned(canned._WHO), poisoned(canned._TOKENS)
    there, devices = {"provider": HOSTILE, "bound": False}, poisoned(canned._DEVICES)
    yield "account", views.account(ada, who, tokens, devices, there, url=SITE, made=made, refusal=no), 8
    yield "entrance", views.entrance(Viewer(), HOSTILE, HOSTILE), 2
    yield "onward", views.onward(ada, HOSTILE), 2
    yield "login", views.login(Viewer(), name=HOSTILE, after=HOSTILE, provider=HOSTILE, refusal=no), 1
    yield "invitation", views.invitation(Viewer(), "k", told={"name": HOSTILE, "kind": HOSTILE}, refusal=no), 2
    yield "more", views.more(ada, epsilon=HOSTILE, reason=HOSTILE, refusal=no), 3
    yield "refusal", views.refusal(ada, no), 2


def test_hostile_texts_are_text() -> None:
    for name, page, least in hostile_pages():
        read = Read(page.text)
        sound(read)
        values = [v for _, attributes in read.tags for v in attributes.values() if v]
        assert sum(HOSTILE in v for v in values) + read.text.count(HOSTILE) >= least, name


def test_the_parser_of_these_tests_sees_what_would_run() -> None:
    with pytest.raises(AssertionError):
        sound(Read("<img src=x onerror=alert(1)>"))
    with pytest.raises(AssertionError):
        sound(Read("<a href='//elsewhere'>x</a>"))
    with pytest.raises(AssertionError):
        sound(Read("<script>1</script>"))


# -- what is said -----------------------------------------------------------------------------------------------


def test_the_line_says_price_groups_errors_and_time() -> None:
    said = priced(canned.CHECK, canned.QUESTION, canned.TABLES)
    assert said.line == (
        "costs 0.1 of 1.5 left (15 such fit)", "5 groups", "n ± 180", "age ± 2.21 if a group has 1,000 values",
        "comes after 1 s",
    )  # fmt: skip
    assert said.button == "Ask: spend 0.1"
    assert said.chart is not None
    assert [point.keys for point in said.chart.points] == [("1",), ("2",), ("3",), ("4",), ("5",)]
    assert {point.look for point in said.chart.points} == {"empty"}


def test_a_group_that_would_drown_is_hatched() -> None:
    assert priced(canned.CHECK, replace(canned.QUESTION, rows="180"), canned.TABLES).drowned
    assert not priced(canned.CHECK, replace(canned.QUESTION, rows="181"), canned.TABLES).drowned
    assert "Too few to see" in canned.STATES["ask-drowned"]().text


def test_the_button_says_its_price_or_that_there_is_none() -> None:
    for name, button in {
        "ask": "Ask: spend 0.1", "ask-stored": "Show: free, answered 3 May 2026", "ask-public": "Show: free",
        "ask-another-s": "Show: counts 0.1 of your own limit",
        "ask-not-enough": "Not enough left",
    }.items():  # fmt: skip
        text = canned.STATES[name]().text
        assert re.search(rf"<button type=\"submit\"( disabled)?>{button}</button>", text), name
    assert " disabled>" in canned.STATES["ask-not-enough"]().text
    assert "costs 0.1, and 0.05 is left" in canned.STATES["ask-not-enough"]().text
    assert 'href="/more?epsilon=1/10&amp;for=SELECT%20rate' in canned.STATES["ask-not-enough"]().text


def test_a_refusal_is_underlined_where_it_says() -> None:
    text = canned.STATES["ask-refused"]().text
    assert "FROM <mark>visitss</mark> GROUP" in text
    assert 'data-start="32" data-end="39"' in text
    assert refused({"kind": "query", "text": "a\nb", "position": [90, 99]}, "short").pieces is None


def test_free_is_said_truly() -> None:
    assert "counts its epsilon against your own limit" in canned.STATES["library"]().text
    assert "Read: counts 0.2 of your own limit" in canned.STATES["library"]().text
    assert "Another&#39;s answer counts against your own limit" in canned.STATES["answer-wards"]().text


def test_two_groups_are_clear_where_their_intervals_do_not_meet() -> None:
    shown = views.shown_of(canned.written(canned._five()), {})
    near, far = shown.compare("0", "1"), shown.compare("0", "4")
    assert near is not None
    assert far is not None
    assert (near.clear, far.clear) == (False, True)
    assert far.text == "5 has more than 1: their 95 % intervals do not meet."
    assert shown.compare("0", "0") is None
    assert shown.compare("0", "9") is None


def test_an_answer_is_read_at_other_levels() -> None:
    wide = [views.shown_of(canned.written(canned._five()), {"level": level}).rows[0][1] for level in ("0.8", "0.99")]
    assert wide == ["~99 ± 117", "~99 ± 243"]
    assert views.shown_of(canned.written(canned._five()), {"level": "0.123", "kind": "x", "column": "y"}).level == 0.95


def test_an_example_is_asked_of_what_is_declared() -> None:
    assert example(canned.TABLES).startswith("SELECT rate_marriage, COUNT(*) AS n\nFROM survey")
    assert example({"t": {"private": True, "declared": {}, "columns": {}}}) == "SELECT COUNT(*) AS n\nFROM t"
    assert example({}) == ""


def test_the_lines_for_programs_send_json_and_wait_for_the_answer() -> None:
    sql = 'SELECT w, COUNT(*) AS n\nFROM t -- it\'s "odd"'
    told = snippets(sql, "0.1", SITE)
    assert list(told) == ["Python", "pandas", "R", "curl"]
    words = shlex.split(told["curl"].partition("$(")[2].rpartition(")\nid=")[0])
    assert json.loads(words[words.index("--json") + 1]) == {"sql": sql, "options": {"epsilon": "0.1"}}
    assert "/api/v1/answers/$id?wait=60" in told["curl"]
    assert json.loads(told["R"].partition("sql = ")[2].partition(",\n")[0]) == sql  # R reads the same escapes
    compile(told["Python"] + "\n" + told["pandas"], "snippet", "exec")
    assert all("hub_" not in text for text in told.values())


def test_words() -> None:
    assert [amount(x) for x in ("0", "1/1000", "1/30000", "2", None)] == ["0", "0.001", "0.0000333…", "2", "no limit"]
    assert [number(x) for x in (None, 0.5, -3, float("inf"), float("nan"))] == ["NULL", "0.5", "−3", "∞", "NULL"]
    assert [seconds(x) for x in (0.2, 61, 3600, 3660)] == ["0.2 s", "1 min 1 s", "1 h", "1 h 1 min"]


# -- what is asked of the clerk -----------------------------------------------------------------------------------


def visit(line: canned.Line, *, session: str | None = "s1", secure: bool = False, scheme: str = "http") -> Client:
    from starlette.applications import Starlette

    from hubbub.service.pages.routes import page_routes

    app = Starlette(routes=page_routes(line, secure=secure))  # type: ignore[arg-type]
    return Client(app, cookies={"hubbub": session} if session else {}, scheme=scheme)


FORM = {"sql": canned.SQL, "mode": "spend", "spend": "0.1", "rows": "1000", "csrf": "c5r7", "request": "r1"}


def acts(line: canned.Line) -> list[str]:
    return [act for act, _, _ in line.asked]


def test_nobody_sees_a_page_and_a_script_is_told_by_its_status() -> None:
    line = canned.Line()
    for session in (None, "stolen"):
        client = visit(line, session=session)
        for path in ("/", "/library", "/mine", "/account", "/a/x", "/a/x/csv"):
            gone = client.get(path)
            assert (gone.status_code, gone.headers["location"].split("&")[0]) == (303, f"/login?next={path}")
        assert client.post("/line", data=FORM).status_code == 401
        assert client.post("/ask", data=FORM).status_code == 303
    assert set(acts(line)) <= {"whoami"}


def test_a_page_has_its_headers() -> None:
    page = visit(canned.Line()).get("/library")
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["cross-origin-opener-policy"] == "same-origin"


def test_what_was_priced_is_asked_with_the_proof_and_the_name_of_the_request() -> None:
    line = canned.Line()
    question = Question.of(FORM)
    went = visit(line).post("/ask", data={**FORM, "agreed": question.agreed})
    assert (went.status_code, went.headers["location"]) == (303, f"/a/{canned.ID}")
    given, proof = next((given, proof) for act, given, proof in line.asked if act == "ask")
    assert given == {"sql": canned.SQL, "options": {"epsilon": "0.1"}, "request": f"r1-{question.agreed}"}
    assert proof == {"session": "s1", "csrf": "c5r7"}


@pytest.mark.parametrize(
    "change",
    [{"sql": "SELECT COUNT(*) FROM survey"}, {"spend": "1"}, {"mode": "within", "within": "20"}, {"agreed": ""}],
)
def test_what_was_not_priced_is_not_asked(change: dict[str, str]) -> None:
    line = canned.Line()
    page = visit(line).post("/ask", data={**FORM, "agreed": Question.of(FORM).agreed, **change})
    assert page.status_code == 200
    assert "ask" not in acts(line)
    assert "check" in acts(line)
    assert ("changed since its price" in page.text) == (change != {"agreed": ""})


def test_a_form_from_another_site_is_not_handed_on() -> None:
    line = canned.Line()
    for site in ("cross-site", "same-site"):
        page = visit(line).post("/ask", data=FORM, headers={"Sec-Fetch-Site": site})
        assert page.status_code == 403
    for origin in ("https://evil.example", "http://testserver.evil.example", "http://testserver:81", "testserver", ""):
        page = visit(line).post("/ask", data=FORM, headers={"Origin": origin})
        assert page.status_code == 403
    assert line.asked == []
    for origin in ("null", "http://testserver", "https://TestServer"):  # a server before this one has TLS
        page = visit(line).post("/ask", data=FORM, headers={"Origin": origin, "Sec-Fetch-Site": "same-origin"})
        assert page.status_code != 403
    assert line.asked != []


def test_a_form_is_bounded() -> None:
    line = canned.Line()
    assert visit(line).post("/check", data={"sql": "x" * 300_000}).status_code == 422
    assert visit(line).post("/check", data={f"f{n}": "x" for n in range(200)}).status_code == 422
    assert line.asked == []


def test_the_live_line_is_two_pieces_of_the_page() -> None:
    line = canned.Line()
    piece = visit(line).post("/line", data=FORM)
    assert [a["id"] for a in Read(piece.text).all("div") if a.get("id")] == ["line", "drawing"]
    busy = canned.Line(check={"refused": {"kind": "rate", "text": "too many", "retry_after": 1}})
    assert visit(busy).post("/line", data=FORM).status_code == 429


def test_a_question_waits_is_answered_or_has_no_answer() -> None:
    for told, words in (
        (canned._TOLD, "Your answer comes at 09:00:05 UTC"),
        ({**canned._TOLD, "state": "no answer"}, "There is no answer to this question"),
    ):
        page = visit(canned.Line(answer=told)).get(f"/a/{canned.ID}").text
        assert words in page
        assert re.search(r'[Ee]psilon <span class="amount">0\.1</span>', page), "it says what it cost"
    assert "The receipt, line by line" in visit(canned.Line()).get(f"/a/{canned.ID}").text
    limits = visit(canned.Line(answer={**canned._TOLD, "state": "answered", "bounds": canned.BOUNDS}))
    for words in ("What the limits of a question leave out", "max_rows = 4", "Too few people to recommend a limit"):
        assert words in limits.get(f"/a/{canned.ID}").text
    few = {"refused": {"kind": "query", "text": "too few units to find a bound: ask at a larger epsilon."}}
    assert "too few units to find a bound" in visit(canned.Line(answer=few)).get(f"/a/{canned.ID}").text
    unknown = {"refused": {"kind": "unknown", "text": "there is no such question of yours."}}
    page = visit(canned.Line(answer=unknown)).get("/a/y")
    assert page.status_code == 404
    assert "there is no such question of yours." in page.text


def test_a_question_that_a_steward_looks_at_first_is_followed_by_its_address() -> None:
    held = {"state": "waiting", "id": "w2", "asked_at": "2026-11-23T09:00:00Z"}
    page = visit(canned.Line(answer=held)).get("/a/w2").text
    assert "A steward looks at this question first" in page
    assert "GROUP BY rate_marriage" in page
    no = visit(canned.Line(answer={**held, "state": "declined", "reason": "too dear"})).get("/a/w2").text
    assert "too dear" in no
    yes = visit(canned.Line(answer={**held, "state": "granted"})).get("/a/w2").text
    assert "A steward said yes" in yes
    assert "It did not get an answer" not in yes
    back = visit(canned.Line(answer={**held, "state": "withdrawn"})).get("/a/w2").text
    assert "This question was taken back" in back
    became = visit(canned.Line()).get("/a/w2")  # it got its yes, and is a question of its own
    assert (became.status_code, became.headers["location"]) == (303, f"/a/{canned.ID}")


def test_more_is_asked_for_with_a_reason_and_taken_back() -> None:
    line = canned.Line()
    filled = visit(line).get("/more?epsilon=1/10&for=SELECT+%3C1").text
    assert "To ask:\nSELECT &lt;1" in filled
    assert 'value="1/10"' in filled
    page = visit(line).post("/more", data={"epsilon": "0.5", "reason": "the study", "csrf": "c5r7"})
    assert "Your request is with the stewards" in page.text
    assert ("request_budget", {"epsilon": "0.5", "reason": "the study"}) in [(a, g) for a, g, _ in line.asked]
    assert visit(line).post("/more/withdraw", data={"request": "w1", "csrf": "c5r7"}).headers["location"] == "/more"
    no = canned.Line(request_budget={"refused": {"kind": "query", "text": "say what it is for."}})
    assert "say what it is for." in visit(no).post("/more", data={"epsilon": "9", "reason": "", "csrf": "c5r7"}).text


def test_an_answer_is_downloaded_in_every_form() -> None:
    client = visit(canned.Line())
    got = {form: client.get(f"/a/{canned.ID}/{form}?level=0.9") for form in ("csv", "json", "arrow", "parquet", "svg")}
    assert all(file.status_code == 200 and "attachment" in file.headers["content-disposition"] for file in got.values())
    assert got["csv"].text.splitlines()[0] == '"rate_marriage","n","n_low","n_high","age","age_low","age_high"'
    assert pa.ipc.open_stream(got["arrow"].content).read_all().column("n").to_pylist() == canned.FIVE["n"]
    assert Release.from_wire(got["json"].text).cost == Fraction(1, 10)
    assert got["svg"].text.startswith("<svg")
    assert client.get(f"/a/{canned.ID}/exe").status_code == 404


def test_an_answer_is_sorted_and_filtered_by_its_address() -> None:
    line = canned.Line()
    page = visit(line).get(f"/a/{canned.ID}?order=n+DESC&limit=3&level=0.9")
    assert page.status_code == 200
    assert next(given for act, given, _ in line.asked if act == "answer") == {
        "charge": canned.ID, "order": "n DESC", "limit": "3",
    }  # fmt: skip
    visit(line).get(f"/a/{canned.ID}/csv?q=SELECT+1")
    assert line.asked[-1][1] == {"charge": canned.ID, "sql": "SELECT 1"}
    text = canned.STATES["answer-sorted"]().text
    assert 'value="n &gt; 500"' in text
    assert "&amp;q=SELECT%20rate_marriage" in text  # every link and download keeps it
    assert "As it was asked" in text
    no = canned.Line(
        answer=lambda given: {"refused": {"kind": "query", "text": "not drawn."}} if "having" in given
        else {**canned._TOLD, "state": "answered", "answer": canned.written(canned._five()), "clauses": None}
    )  # fmt: skip
    page = visit(no).get(f"/a/{canned.ID}?having=SUM(x)+>+3")
    assert page.status_code == 200
    assert "The numbers" in page.text


def test_a_stored_answer_is_shown_in_the_words_in_which_it_was_asked() -> None:
    stored = {**canned._TOLD, "state": "answered", "answer": canned.written(canned._five())}
    for sql, added in ((canned.SQL, ""), (f"{canned.SQL} ORDER BY n", "?q=SELECT%20rate_marriage")):
        form = {**FORM, "sql": sql}
        went = visit(canned.Line(ask=stored)).post("/ask", data={**form, "agreed": Question.of(form).agreed})
        assert went.headers["location"].startswith(f"/a/{canned.ID}{added}")
        assert len(went.headers["location"]) < 300


def test_a_browser_is_told_by_a_page_what_no_route_takes_and_a_program_by_json() -> None:
    from hubbub.service.http.app import application
    from hubbub.service.pages.routes import page_refusal, page_routes

    def broken(given: Any) -> Any:
        raise RuntimeError("SELECT secret")

    line: Any = canned.Line(answers=broken)
    pages, refused = page_routes(line, secure=False), page_refusal(line, secure=False)
    app = application(line, pages=pages, refused=refused)
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for session in ({"hubbub": "s1"}, {}):
        client = Client(app, cookies=session)
        for path, status, title in (
            ("/nowhere", 404, "There is nothing here"), ("/a/x/y/z", 404, "There is nothing here"),
            ("/check", 405, "This is not a page"), ("/more/withdraw", 405, "This is not a page"),
        ):  # fmt: skip
            page = client.get(path, headers=browser)
            assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
            assert title in page.text
            assert page.headers["content-security-policy"].startswith("default-src 'none'")
            assert ("Library" in page.text) == bool(session)
            sound(Read(page.text))
            assert (page.headers.get("allow") == "POST") == (status == 405)
            for other in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
                told = client.get(path, headers=other)
                assert (told.status_code, told.headers["content-type"]) == (status, "application/problem+json")
        told = client.get("/api/v1/nowhere", headers=browser)
        assert (told.status_code, told.headers["content-type"]) == (404, "application/problem+json")


def test_a_defect_is_a_page_that_names_an_incident_and_no_words(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(given: Any) -> Any:
        raise RuntimeError("SELECT secret")

    page = visit(canned.Line(answers=broken)).get("/library")
    assert page.status_code == 500
    assert "This is a mistake of the service" in page.text
    incident = re.search(r"incident ([0-9a-f]{12})", page.text)
    assert incident is not None
    said = capsys.readouterr().err
    assert incident[1] in said
    assert "secret" not in said + page.text


def test_logging_in_sets_a_cookie_that_scripts_do_not_see_and_leads_inside_alone() -> None:
    for after, to in (("/mine", "/mine"), ("//evil", "/"), ("https://evil", "/"), ("/\\evil", "/"), ("", "/")):
        for secure, name in ((False, "hubbub="), (True, "__Host-hubbub=")):
            form = {"name": "ada", "passphrase": "x", "next": after}
            went = visit(canned.Line(), session=None, secure=secure).post("/login", data=form)
            assert (went.status_code, went.headers["location"]) == (303, to)
            cookie = went.headers["set-cookie"]
            assert cookie.startswith(name)
            assert "HttpOnly" in cookie
            assert "SameSite=lax" in cookie
            assert ("Secure" in cookie) == secure
    behind = visit(canned.Line(), session=None, scheme="https")  # a server with TLS
    cookie = behind.post("/login", data={"name": "ada", "passphrase": "x", "next": "/"}).headers["set-cookie"]
    assert cookie.startswith("__Host-hubbub=")
    assert "Secure" in cookie
    wrong = canned.Line(login={"refused": {"kind": "unauthenticated", "text": "name and passphrase do not fit."}})
    page = visit(wrong, session=None).post("/login", data={"name": "ada", "passphrase": "wrong one"})
    assert "do not fit" in page.text
    assert "wrong one" not in page.text


def test_a_token_is_shown_once_and_a_link_opens_a_page() -> None:
    line = canned.Line()
    page = visit(line).post(
        "/account/token", data={"label": "x", "scopes": ["check"], "days": "30", "most": "", "csrf": "c5r7"}
    )
    assert canned._MADE["token"] in page.text
    given = next(given for act, given, _ in line.asked if act == "create_token")
    assert given == {"label": "x", "most": None, "cap": None, "days": 30, "scopes": ["check"]}
    shown = visit(line, session=None).get("/enter/k")
    assert (shown.status_code, "set-cookie" in shown.headers) == (200, False)
    assert not any(act == "enter" for act, _, _ in line.asked)  # what looks at links uses none up
    went = visit(line, session=None).post("/enter/k", data={})
    assert (went.status_code, went.headers["location"]) == (303, "/")
    went = visit(line, session=None).post("/enter/k", data={"first": "learn"})
    assert (went.status_code, went.headers["location"]) == (303, "/learn")
    assert visit(line).post("/logout", data={"csrf": "c5r7"}).headers["location"] == "/login"


def test_static_files_are_kept_for_good_and_packed() -> None:
    client = visit(canned.Line(), session=None)
    for file in _FILES.values():
        got = client.get(f"/static/{file.name}", headers={"Accept-Encoding": "gzip"})
        assert gzip.decompress(got.content) == client.get(f"/static/{file.name}").content == file.content
        assert "immutable" in got.headers["cache-control"]
    assert client.get("/static/style.css").status_code == 404


def test_the_first_page_is_small() -> None:
    page = canned.STATES["ask"]()
    needed = set(re.findall(r'/static/([\w.-]+)"', page.text))
    size = len(gzip.compress(page.text.encode())) + sum(len(f.packed) for f in _FILES.values() if f.name in needed)
    assert len(needed) >= 4  # the style sheet, the icon, the script and the editor
    assert size <= 250_000


def test_the_front_loads_no_engine_to_show_an_answer() -> None:
    heavy = ["duckdb", "sqlglot", "scipy", "cryptography", "matplotlib", "pandas"]
    program = (
        "import sys; from hubbub.service.front import stay_light; stay_light(); import canned\n"
        "canned.STATES['answer'](); from hubbub.service.pages import views, files\n"
        "text = canned.written(canned._five()); shown = views.shown_of(text, {})\n"
        "files.file_of(shown, 'csv', text, 'x')\n"
        f"print([m for m in {heavy!r} if sys.modules.get(m)])"
    )
    tests = str(Path(__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.strip() == "[]"


def test_what_was_read_leads_to_the_answer_that_was_read() -> None:
    links = re.findall(r'href="/a/(\w+)"', canned.STATES["mine"]().text)
    assert links == [f"{3:032x}", canned.ID, f"{1:032x}", f"{0:032x}"]


def test_who_tries_to_log_in_many_times_keeps_nobody_elsewhere_waiting() -> None:
    from starlette.requests import Request

    from hubbub.service.pages.visit import Hosts, Refused

    class Slow(canned.Line):
        def ask(self, act: str, given: Any, proof: Any = None) -> dict[str, Any]:
            told.append(given["name"])
            go.wait(10 if given["name"] == "eve" else 0)
            return {"told": given["name"]}

    told, go = list[str](), threading.Event()

    async def many() -> list[Any]:
        hosts = Hosts(Slow(), secure=True)  # type: ignore[arg-type]

        def login(name: str, address: str) -> Any:
            scope = {"type": "http", "client": (address, 1), "scheme": "https", "server": ("x", 443), "path": "/",
                     "headers": [], "query_string": b""}  # fmt: skip
            return hosts.seen_by(Request(scope)).ask("login", {"name": name}, None)

        tries = [asyncio.create_task(login("eve", f"2001:db8::{n:x}")) for n in range(1, 31)]
        assert await asyncio.wait_for(login("ada", "2001:db8:0:1::1"), 5) == "ada"
        assert await asyncio.wait_for(login("ada", "192.0.2.1"), 5) == "ada"
        go.set()
        return await asyncio.gather(*tries, return_exceptions=True)

    said = asyncio.run(many())
    assert said.count("eve") == 20
    assert sum(isinstance(each, Refused) and each.kind == "rate" for each in said) == 10
    assert sorted(told[:3]) == ["ada", "ada", "eve"]
