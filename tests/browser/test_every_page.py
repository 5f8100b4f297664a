"""Every page in every state: axe objects to nothing, in light, dark, at 320 px and at 200 % zoom; as the picture."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from browser_site import STATES
from golden_pictures import PICTURES, looked_at
from hubbub.service.pages import static_file

HERE = Path(__file__).parent
AXE = (HERE / "axe/axe.min.js").read_text("utf-8")
ALL = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "rules": {"color-contrast-enhanced": {"enabled": True}, "target-size": {"enabled": True}},
}
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast", "color-contrast-enhanced", "link-in-text-block"]}}
CUT = """[...document.querySelectorAll(".scroll, pre")].filter(e => e.scrollWidth > e.clientWidth + 1)
  .map(e => e.getAttribute("aria-label") || e.textContent)"""
LOOKS: dict[str, dict[str, Any]] = {
    "light": {},
    "dark": {"scheme": "dark"},
    "narrow": {"width": 320, "height": 640},
    "zoomed": {"width": 640, "height": 450, "scale": 2},
}


def violations(page: Any, rules: dict[str, Any] = ALL) -> list[str]:
    """What axe, which the page has, objects to: rule, place, and why."""
    asked = json.dumps({**rules, "resultTypes": ["violations"]})
    told = page.evaluate(f"axe.run(document, {asked}).then(told => told.violations)")
    return [f"{v['id']}: {node['target']} {node['failureSummary'][:300]}" for v in told for node in v["nodes"]]


def test_the_vendored_axe_is_the_one_that_its_page_names() -> None:
    told = (HERE / "axe/README.md").read_text("utf-8")
    assert hashlib.sha256((HERE / "axe/axe.min.js").read_bytes()).hexdigest() in told


def test_axe_is_able_to_object(opened: Any) -> None:
    page = opened()
    page.set_content("<html><body><img src='data:,'><p style='color:#666'>pale</p></body></html>")
    page.evaluate(AXE)
    objections = " ".join(violations(page))
    for rule in ("image-alt", "html-has-lang", "color-contrast-enhanced"):
        assert rule in objections


@pytest.mark.parametrize("state", STATES)
def test_axe_objects_to_nothing(seen: Any, state: str) -> None:
    page, wrong = seen(width=1280), {}
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"/state/{state}")
    page.evaluate(AXE)
    wrong["light"] = violations(page)
    page.emulate_media(color_scheme="dark")
    wrong["dark"] = violations(page, COLOURS)  # the same elements: only colours differ
    for look in ("narrow", "zoomed"):
        page.set_viewport_size({"width": LOOKS[look]["width"], "height": LOOKS[look]["height"]})
        wrong[look] = violations(page)
        if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            wrong[look].append("wider than the window")
        if look == "narrow" and (cut := page.evaluate(CUT)):
            wrong[look].append(f"cut off: {cut}")
    assert {look: said for look, said in wrong.items() if said} == {}


@pytest.mark.parametrize("name", PICTURES)
def test_a_page_looks_as_its_golden_picture(seen: Any, name: str) -> None:
    state, look = PICTURES[name]
    page = seen(**LOOKS[look])
    page.goto(f"/state/{state}")
    assert looked_at(name, page.screenshot(full_page=True)) == ""


def test_the_first_page_is_light(opened: Any) -> None:
    """250 KB at most, packed, with all that it loads; and it can be used before the editor has come."""
    page, loaded = opened(), []
    page.on("requestfinished", lambda request: loaded.append(urlsplit(request.url).path))
    page.goto("/state/ask")
    page.locator(".cm-content").wait_for()
    files = [static_file(path.removeprefix("/static/")) for path in loaded if path.startswith("/static/")]
    assert len(files) >= 3
    whole = sum(len(file.packed) for file in files if file is not None)
    assert whole + len(gzip.compress(STATES["ask"]().text.encode())) <= 250_000


def test_the_first_page_is_usable_before_any_script(opened: Any) -> None:
    """What a question needs, two small files bring: the page and its style. Scripts come later, and only add to it."""
    page, asked = opened(), []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    page.route("**/*.js", lambda route: None)  # never answered
    page.goto("/state/ask", wait_until="commit")
    page.get_by_role("button", name="Ask: spend 0.1").wait_for()
    page.locator("textarea#sql").press_sequentially(" -- usable")
    assert page.locator("textarea#sql").input_value().count("-- usable") == 1
    needed = [path for path in asked if not path.endswith((".js", ".svg"))]
    assert len(needed) == 2, needed
    style = static_file(needed[1].removeprefix("/static/"))
    assert style is not None
    assert len(style.packed) + len(gzip.compress(STATES["ask"]().text.encode())) <= 16_000
    blocking = page.evaluate("[...document.scripts].filter(s => s.type !== 'module').length")
    assert blocking == 0
    page.unroute_all(behavior="ignoreErrors")


def test_without_scripts_a_question_is_a_plain_form(opened: Any) -> None:
    page = opened(script=False)
    page.goto("/state/ask")
    assert page.locator("textarea[name=sql]").is_visible()
    assert page.get_by_role("button", name="What would it cost now?").is_visible()


def test_a_walk_tells_how_far_it_is_without_a_new_page(opened: Any) -> None:
    page, told = opened(), STATES["chain-walking"]().text
    page.goto("/state/chain-walking")
    page.evaluate("window.same = true")
    later = told.replace('value="34000"', 'value="99000"').replace("34,000 of", "99,000 of")
    page.route("**/state/chain-walking", lambda route: route.fulfill(body=later, content_type="text/html"))
    page.get_by_text("99,000 of 148,211 lines.").wait_for()
    assert page.evaluate("[window.same, document.getElementById('bar').value]") == [True, 99000]
    page.unroute("**/state/chain-walking")
    page.route(
        "**/state/chain-walking", lambda route: route.fulfill(body=STATES["chain"]().text, content_type="text/html")
    )
    page.get_by_text("and all fit").first.wait_for()
