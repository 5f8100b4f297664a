"""The page Ask while somebody types: the price follows 300 ms after the last key, a refusal is underlined, and without
scripts a plain form stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

import pytest

import canned
from hubbub.service.pages import views
from hubbub.service.pages.asking import Question

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
EDITOR, BUTTON = ".cm-content", "#line button:not(.second)"


def line_of(form: dict[str, str]) -> str:
    """What the service says of a form: canned, with the question's own position."""
    at = form["sql"].find("visitss")
    wrong = {"refused": {"kind": "query", "text": "unknown table 'visitss'.", "position": [at, at + 7]}}
    check = wrong if at >= 0 else {"told": canned.CHECK}
    return views.line(canned.ADA, Question.of(form), canned.TABLES, check).text


@pytest.fixture
def asking(opened: Any) -> tuple[Any, list[dict[str, str]]]:
    page, heard = opened(), []

    def answer(route: Any) -> None:
        heard.append({name: values[0] for name, values in parse_qs(route.request.post_data).items()})
        route.fulfill(body=line_of(heard[-1]), content_type="text/html")

    page.route("**/line", answer)
    page.goto("/state/ask")
    page.wait_for_selector(EDITOR)
    return page, heard


def test_the_price_follows_the_last_key_once(asking: Any) -> None:
    page, heard = asking
    assert not page.is_visible("textarea#sql")
    page.click(EDITOR)
    page.keyboard.press("Control+End")
    page.keyboard.type(" -- slowly", delay=20)
    assert page.is_disabled(BUTTON)  # what it says is the price of another text
    page.wait_for_selector(f"{BUTTON}:not([disabled])")
    assert len(heard) == 1
    assert heard[0]["sql"] == f"{canned.SQL} -- slowly"
    assert heard[0]["csrf"] == canned.ADA.csrf
    agreed = page.get_attribute("input[name=agreed]", "value")
    assert agreed == replace(canned.QUESTION, sql=f"{canned.SQL} -- slowly").agreed


def test_a_refusal_is_underlined_in_the_editor_and_goes_when_it_is_mended(asking: Any) -> None:
    page, _ = asking
    page.click(EDITOR)
    page.keyboard.press("Control+a")
    page.keyboard.type("SELECT '🙂', COUNT(*) FROM visitss")  # a letter that JavaScript counts as two
    page.wait_for_selector(".cm-lintRange-error")
    assert page.inner_text(".cm-lintRange-error") == "visitss"
    assert page.inner_text("#line mark") == "visitss"
    page.keyboard.press("End")
    page.keyboard.press("Backspace")
    page.wait_for_selector(BUTTON)
    assert page.query_selector(".cm-lintRange-error") is None


def test_a_name_is_inserted_and_the_keyboard_asks(asking: Any) -> None:
    page, heard = asking
    page.click(EDITOR)
    page.keyboard.press("Control+End")
    page.focus("[data-insert=religious]")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"{BUTTON}:not([disabled])")
    assert heard[-1]["sql"].endswith("religious")
    asked = []
    page.route("**/ask", lambda route: (asked.append(route.request.post_data), route.fulfill(body="asked")))
    page.click(EDITOR)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=asked")
    assert len(asked) == 1


def test_of_accuracy_and_amount_the_one_that_was_not_chosen_follows(asking: Any) -> None:
    page, heard = asking
    field = {name: page.locator(f"input[name={name}]:not([type=radio])") for name in ("within", "spend", "most")}
    field["within"].fill("90")
    page.wait_for_selector(f"{BUTTON}:not([disabled])")
    assert (heard[-1]["mode"], heard[-1]["within"]) == ("within", "90")
    assert field["spend"].input_value() == "0.1"
    field["spend"].fill("0.5")  # who types an amount means it
    page.wait_for_selector(f"{BUTTON}:not([disabled])")
    assert (heard[-1]["mode"], heard[-1]["spend"]) == ("spend", "0.5")
    assert (field["within"].input_value(), field["most"].input_value()) == ("180", "0.5")
    assert page.is_checked("input[value=spend]")
    page.check("input[value=within]")
    page.wait_for_selector(f"{BUTTON}:not([disabled])")
    assert (heard[-1]["within"], heard[-1]["most"]) == ("180", "0.5")
    assert page.get_attribute("input[name=agreed]", "value") == Question.of(heard[-1]).agreed


def test_without_scripts_a_plain_form_stays(opened: Any) -> None:
    page = opened(script=False)
    page.goto("/state/ask")
    assert page.is_visible("textarea#sql")
    assert page.is_visible("text=What would it cost now?")
    assert not page.is_visible("#editor")
