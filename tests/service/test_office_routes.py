"""What the forms of stewards ask the clerk for, and what a page shows when he refuses."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

import canned_office as canned
from browser_site import AUDITOR, STEWARD
from hubbub.service.pages import Page, Viewer
from hubbub.service.pages.office_routes import OPEN, ROUTES, Refused

TEMPLATES = Path(__file__).parents[2] / "src/hubbub/service/pages/templates"
TOLD = {
    "people": canned.PEOPLE,
    "requests": canned.REQUESTS,
    "incidents": canned.INCIDENTS,
    "incident": {"words": "Out of Memory <b>"},
    "tables": canned.DECLARED,
    "spaces": canned.SPACES,
    "limits": canned.LIMITS,
    "chain": canned.CHAINS[0],
    "begin_chain": {"state": "done"},
    "chain_walk": {
        "state": "done",
        "done": 1482,
        "lines": 1482,
        "head": "9f2c",
        "receipt": True,
        "found": canned.CHAINS[0],
    },
    "verify_audit": {"lines": 97, "head": "03be", "sound": True, "problems": []},
    "audit": canned.LINES,
    "charges": canned.CHARGES,
    "tokens_of": [],
    "bound_costs": canned.COSTS,
    "policy_changes": {"changes": canned.CHANGES, "problem": ""},
    "invite": {"link": "http://h/invitation/inv_x", "until": "2026-11-29T09:00:00Z"},
    "reset": {"link": "http://h/invitation/inv_y", "until": "2026-11-29T09:00:00Z"},
}


class Visiting:
    """A visit that notes what is asked of the clerk, who refuses one act."""

    def __init__(self, viewer: Viewer = STEWARD, refuses: str = "", **more: Any) -> None:
        self.viewer, self.refuses = viewer, refuses
        self.path, self.query, self.fields = more.get("path", {}), more.get("query", {}), more.get("fields", {})
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def told(self, act: str, /, **given: Any) -> Any:
        self.asked.append((act, given))
        if act == self.refuses:
            raise Refused("policy", f"no {act} <today>")
        return TOLD.get(act, {})


def visit(method: str, path: str, visiting: Visiting) -> Page | str:
    handler = next(h for m, p, h in (*ROUTES, *OPEN) if (m, p) == (method, path))
    return asyncio.run(handler(visiting))


@pytest.mark.parametrize(("method", "path"), [(m, p) for m, p, _ in (*ROUTES, *OPEN) if m == "GET"])
def test_every_page_is_there(method: str, path: str) -> None:
    shown = visit(method, path, Visiting(path={"name": "ada", "step": "2"}))
    assert isinstance(shown, Page)
    assert "<h1" in shown.text


ADA = {"account": "analyst:ada"}
FORMS = [
    ("grant", {"space": ["survey"], "epsilon": ["2.5"], "reason": ["r"], "passphrase": ["p"], "until": [""]},
     ("grant", {**ADA, "space": "survey", "epsilon": "2.5", "until": None, "reason": "r", "passphrase": "p"})),
    ("revoke", {"space": ["survey"], "reason": ["r"]}, ("revoke_grant", {**ADA, "space": "survey", "reason": "r"})),
    ("unlock", {"space": ["survey"], "reason": ["r"], "passphrase": ["p"]},
     ("unlock", {"analyst": "ada", "space": "survey", "reason": "r", "passphrase": "p"})),
    ("roles", {"roles": ["analyst", "auditor"]},
     ("set_roles", {"name": "ada", "roles": ["analyst", "auditor"], "passphrase": None})),
    ("disable", {}, ("disable", {"name": "ada"})),
    ("leave", {}, ("leave", {"name": "ada"})),
    ("end-token", {"token": ["1f"]}, ("end_token_of", {"token": "1f"})),
]  # fmt: skip


@pytest.mark.parametrize(("form", "fields", "act"), FORMS, ids=[f[0] for f in FORMS])
def test_a_form_asks_for_its_act_and_leads_on(form: str, fields: dict[str, list[str]], act: tuple[str, Any]) -> None:
    visiting = Visiting(path={"name": "ada", "act": form}, fields=fields)
    led = visit("POST", "/people/{name}/{act}", visiting)
    assert visiting.asked == [act]
    assert isinstance(led, str)
    shown = visit("GET", "/people/{name}", Visiting(path={"name": "ada"}, query={"done": led.split("=")[1]}))
    assert isinstance(shown, Page)
    assert "notice-done" in shown.text


@pytest.mark.parametrize(("form", "fields", "act"), FORMS, ids=[f[0] for f in FORMS])
def test_a_refusal_stands_on_the_page(form: str, fields: dict[str, list[str]], act: tuple[str, Any]) -> None:
    shown = visit(
        "POST", "/people/{name}/{act}", Visiting(path={"name": "ada", "act": form}, fields=fields, refuses=act[0])
    )
    assert isinstance(shown, Page)
    assert f"no {act[0]} &lt;today&gt;" in shown.text


def test_a_link_is_shown_once_and_in_no_address() -> None:
    shown = visit("POST", "/people/invite", Visiting(fields={"name": ["eve"], "roles": ["analyst"]}))
    assert isinstance(shown, Page)
    assert "inv_x" in shown.text


def test_a_decision_hands_on_what_its_button_says() -> None:
    fields = {"request": ["r1"], "reason": ["so"], "epsilon": ["2.5"], "passphrase": ["p"], "until": [""]}
    yes = Visiting(fields={**fields, "yes": ["1"]})
    assert visit("POST", "/requests/decide", yes) == "/requests?done=yes"
    assert yes.asked == [
        ("decide", {"request": "r1", "yes": True, "reason": "so", "epsilon": "2.5", "passphrase": "p"})
    ]
    no = Visiting(fields=fields)
    assert visit("POST", "/requests/decide", no) == "/requests?done=no"
    assert no.asked == [("decide", {"request": "r1", "yes": False, "reason": "so"})]


def test_the_words_of_an_incident_are_asked_for_by_a_press_alone() -> None:
    looking = Visiting()
    visit("GET", "/incidents", looking)
    assert [act for act, _ in looking.asked] == ["incidents"]
    shown = visit("POST", "/incidents/words", Visiting(fields={"incident": ["5ad37e753933"]}))
    assert isinstance(shown, Page)
    assert "Out of Memory &lt;b&gt;" in shown.text


def test_what_was_kept_is_compared() -> None:
    receipt = '{"chain": {"ledger": "l", "charge": {"hash": "9f2c"}}}'
    for pasted in (receipt, f'{{"rows": [], "receipt": {receipt}}}'):
        looking = Visiting(AUDITOR, fields={"head": [" 9f2c "], "receipt": [pasted]})
        assert visit("POST", "/chain", looking) == "/chain?walk=1"
        assert looking.asked == [("begin_chain", {"receipt": json.loads(receipt), "head": "9f2c"})]
    looking = Visiting(AUDITOR, query={"walk": "1"})
    shown = visit("GET", "/chain", looking)
    assert isinstance(shown, Page)
    assert shown.text.count("What you kept is among them") == 2
    assert looking.asked == [("chain_walk", {}), ("verify_audit", {"head": "9f2c"})]


def test_a_walk_shows_how_far_it_is_and_then_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    walk = {"state": "walking", "done": 34_000, "lines": 148_211, "head": "", "receipt": False}
    monkeypatch.setitem(TOLD, "begin_chain", walk)
    monkeypatch.setitem(TOLD, "chain_walk", walk)
    monkeypatch.setattr("hubbub.service.pages.office_routes._PAUSE", 0)
    assert visit("POST", "/chain", Visiting(AUDITOR)) == "/chain?walk=1"
    assert visit("GET", "/chain", Visiting(AUDITOR)) == "/chain?walk=1"
    shown = visit("GET", "/chain", Visiting(AUDITOR, query={"walk": "1"}))
    assert isinstance(shown, Page)
    assert '<progress id="bar" max="148211" value="34000"' in shown.text
    assert "34,000 of 148,211 lines" in shown.text
    monkeypatch.setitem(TOLD, "chain_walk", {**walk, "state": "failed", "problem": "it is <gone>."})
    failed = visit("GET", "/chain", Visiting(AUDITOR, query={"walk": "1"}))
    assert isinstance(failed, Page)
    assert "it is &lt;gone&gt;." in failed.text
    new = visit("GET", "/chain", Visiting(AUDITOR))
    assert isinstance(new, Page)
    assert "Look through every line" in new.text
    assert "gone" not in new.text


def test_what_is_not_a_receipt_is_not_compared() -> None:
    for pasted in ("9f2c", "[]", '{"receipt": 1}', "[" * 20_000):
        looking = Visiting(AUDITOR, fields={"receipt": [pasted]})
        shown = visit("POST", "/chain", looking)
        assert isinstance(shown, Page)
        assert "That is not a receipt" in shown.text
        assert looking.asked == []


def test_today_walks_no_chain() -> None:
    looking = Visiting()
    visit("GET", "/today", looking)
    assert {act for act, _ in looking.asked} == {"audit", "requests", "people", "incidents", "spaces"}


def test_nobody_of_this_name_is_refused_and_a_draw_leads_on() -> None:
    with pytest.raises(Refused):
        visit("GET", "/people/{name}", Visiting(path={"name": "nobody"}))
    assert str(visit("GET", "/learn/{step}", Visiting(path={"step": "2"}, query={"ask": "one"}))).startswith(
        "/learn/2?"
    )
    assert visit("GET", "/learn/{step}", Visiting(path={"step": "9"})) == "/learn/1"


def test_every_form_of_the_templates_has_a_route() -> None:
    posts = [re.sub(r"\{\w+\}", "[^/]+", path) for method, path, _ in ROUTES if method == "POST"]
    for name in ("people", "person", "requests", "declared", "incidents", "chain"):
        text = (TEMPLATES / f"{name}.html").read_text()
        for action in re.findall(r'ui\.form\(("[^"]*"|told\.path ~ "[^"]*")', text):
            address = action.replace("told.path ~ ", "").strip('"')
            address = f"/people/x{address}" if "told.path" in action else address
            assert any(re.fullmatch(post, address) for post in posts), address
