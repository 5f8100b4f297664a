"""Texts of others in a real browser: what stands in SQL, aliases, names and reasons is text, and nothing of it runs.

The policy of the content would stop what ran; here nothing is there that it would have to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import canned_office as told
from browser_site import _LINK, _TODAY, _TOKENS, AUDITOR, STEWARD
from hubbub.service.pages import Page, office, page_headers
from service.test_pages import HOSTILE, hostile_pages

FREE = {
    "analyst", "changes", "columns", "decision", "problem", "label", "name", "problems", "purpose", "reason", "sql",
    "text", "unit", "words", "who", "act", "about",
}  # fmt: skip
FOREIGN = """() => ({
  scripts: [...document.scripts].filter(s => !s.src).length,
  images: document.images.length - document.querySelectorAll(".brand img").length,
  bold: document.querySelectorAll("b").length,
  handlers: [...document.querySelectorAll("*")].flatMap(e => [...e.attributes]).filter(a => /^on/.test(a.name)).length,
})"""
TEXT = (
    """() => document.body.innerText + [...document.querySelectorAll("input, textarea")].map(e => e.value).join(" ")"""
)


def poisoned(what: Any, *, free: bool = False) -> Any:
    """What was told, with something hostile at the end of each text that somebody chose."""
    if isinstance(what, dict):
        return {key: poisoned(value, free=free or key in FREE) for key, value in what.items()}
    if isinstance(what, list | tuple):
        return [poisoned(one, free=free) for one in what]
    return f"{what}{HOSTILE}" if free and isinstance(what, str) else what


PAGES: dict[str, Callable[[], Page]] = {
    "today": lambda: office.today(poisoned(_TODAY), STEWARD),
    "people": lambda: office.people(poisoned({"people": told.PEOPLE, "link": _LINK}), STEWARD),
    "person": lambda: office.person(
        poisoned({"person": told.PEOPLE[2], "tokens": _TOKENS, "charges": told.CHARGES}), STEWARD
    ),
    "requests": lambda: office.requests(poisoned({"requests": told.REQUESTS}), STEWARD),
    "tables": lambda: office.tables(poisoned({"tables": told.TABLES, "changes": told.CHANGES}), STEWARD),
    "incidents": lambda: office.incidents(
        poisoned({"incidents": told.INCIDENTS, "shown": "5ad37e753933", "words": "no memory"}), STEWARD
    ),
    "chain": lambda: office.chain(poisoned({"chains": told.BROKEN}), AUDITOR),
    "charges": lambda: office.charges(poisoned({"charges": told.CHARGES, "spaces": told.SPACES}), AUDITOR),
    "log": lambda: office.log(poisoned({"lines": told.LINES}), AUDITOR),
}
ANALYST = {name: page for name, page, _ in hostile_pages()}


@pytest.mark.parametrize("name", [*PAGES, *ANALYST])
def test_what_others_wrote_is_text(seen: Any, name: str) -> None:
    made, page, dialogs = ANALYST.get(name) or PAGES[name](), seen(width=1280), []
    headers = page_headers(made.nonce) | {"Content-Type": "text/html; charset=utf-8"}
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.route("**/hostile", lambda route: route.fulfill(body=made.text, headers=headers))
    page.goto("/hostile")
    page.wait_for_load_state("networkidle")
    assert page.evaluate(FOREIGN) == {"scripts": 0, "images": 0, "bold": 0, "handlers": 0}
    assert "<script>alert(1)</script>" in page.evaluate(TEXT)
    assert dialogs == []
    page.unroute("**/hostile")
