"""Ask: how far off an answer may be comes first, and of accuracy and amount the one that was not chosen follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest

import canned
from hubbub.service.pages.asking import Question, example
from service.test_pages import FORM, Read, visit

pytest.importorskip("starlette", reason="the service needs the extra `serve`")


def _by_width(given: Mapping[str, Any]) -> Any:
    """A check at 0.1 predicts ± 183.2; one that asks for a width costs 0.097, and predicts it."""
    wide = given["options"].get("within")
    if wide is None:
        return {**canned.CHECK, "columns": [{**canned.CHECK["columns"][0], "plus_minus": 183.2}]}
    if wide > 190:
        return {"refused": {"kind": "query", "text": "no such width"}}
    return {**canned.CHECK, "epsilon": "97/1000", "cost": "97/1000",
            "columns": [{**canned.CHECK["columns"][0], "plus_minus": float(wide)}]}  # fmt: skip


def _filled(text: str) -> dict[str, str]:
    """What stands in the form of a page, with the choice that is made."""
    fields = [a for a in Read(text).all("input") if a.get("type") != "radio" or "checked" in a]
    return {a["name"]: a.get("value", "") for a in fields if a.get("name")}


def test_accuracy_comes_first_and_the_price_follows() -> None:
    line = canned.Line(check=_by_width)
    page = visit(line).get("/")
    told = _filled(page.text)
    assert (told["mode"], told["within"], told["most"], told["spend"]) == ("within", "190", "0.1", "0.097")
    assert page.text.index('value="within"') < page.text.index('value="spend"')
    asked = [given["options"] for act, given, _ in line.asked if act == "check"]
    assert asked == [{"epsilon": "0.1"}, {"within": 190.0, "at_most": "0.1"}]
    assert told["agreed"] == Question.of(told | {"sql": example(canned.TABLES)}).agreed
    spent = _filled(visit(line).post("/check", data={**FORM, "spend": "0.3"}).text)
    assert (spent["mode"], spent["within"], spent["spend"], spent["most"]) == ("spend", "190", "0.3", "0.3")


@pytest.mark.parametrize("column", [{}, {"stored": True, "cost": "0"}, {"affordable": False}, {"plus_minus": None}])
def test_a_width_is_proposed_where_it_leads_to_a_price(column: dict[str, Any]) -> None:
    """Not in place of what is stored at that price already, and not where no error is predicted."""
    size = {"plus_minus": 183.2, **{k: v for k, v in column.items() if k == "plus_minus"}}
    check = {**canned.CHECK, **column, "columns": [{**canned.CHECK["columns"][0], **size}]}
    line = canned.Line(check=check)
    told = _filled(visit(line).get("/").text)
    asked = [given["options"] for act, given, _ in line.asked if act == "check"]
    assert (told["within"], len(asked)) == (("190", 2) if column == {} else ("", 1))


def test_the_proposed_width_follows_the_question_and_an_own_one_stays() -> None:
    line = canned.Line(check=_by_width)
    own = {**FORM, "mode": "within", "most": "0.1", "proposed": "190"}
    for within, asked in (("190", [{"epsilon": "0.1"}, {"within": 190.0, "at_most": "0.1"}]),
                          ("50", [{"within": 50.0, "at_most": "0.1"}]), ("", [{"epsilon": "0.1"}])):  # fmt: skip
        line.asked.clear()
        piece = visit(line).post("/line", data={**own, "within": within})
        assert [given["options"] for act, given, _ in line.asked if act == "check"] == asked
        told = next(a for a in Read(piece.text).all("div") if a.get("id") == "line")
        assert told["data-within"] == within
        assert told["data-epsilon"] == ("0.1" if within == "" else "0.097")
    line.told["check"] = {"refused": {"kind": "query", "text": "no such table"}}
    assert "data-within" not in visit(line).post("/line", data={**own, "within": "190"}).text


def test_a_width_that_costs_more_than_it_may_says_what_it_costs() -> None:
    def check(given: Mapping[str, Any]) -> Any:
        if given["options"].get("at_most") == "0.1":
            return {"refused": {"kind": "query", "text": "that width cannot be met at epsilon 0.1."}}
        return {**canned.CHECK, "epsilon": "147/1000"}

    line = canned.Line(check=check)
    own = {**FORM, "mode": "within", "within": "20", "most": "0.1", "proposed": "190"}
    told = visit(line).post("/line", data=own).text
    assert "it would cost epsilon <strong>0.147</strong>: write it after" in told
    asked = [given["options"]["at_most"] for act, given, _ in line.asked if act == "check"]
    assert asked == ["0.1", "3/2"], "no more than what is left"
    line.told["check"] = {"refused": {"kind": "query", "text": "no such table"}}
    assert "it would cost" not in visit(line).post("/line", data=own).text
    line.asked.clear()
    visit(line).post("/line", data={**own, "mode": "spend"})
    visit(line).post("/line", data={**own, "within": "10 %"})
    assert [act for act, _, _ in line.asked].count("check") == 2


def test_a_width_that_cannot_be_had_leaves_the_price_of_what_can() -> None:
    line = canned.Line(check=lambda given: _by_width({"options": {**given["options"], **(
        {"within": 1000.0} if "within" in given["options"] else {})}}))  # fmt: skip
    told = _filled(visit(line).get("/").text)
    assert (told["within"], told["spend"]) == ("", "0.1")


def test_a_stored_answer_is_changed_at_its_own_amount() -> None:
    line = canned.Line()
    assert "&amp;spend=1/10" in canned.STATES["answer"]().text
    told = _filled(visit(line).get(f"/ask?q={quote(canned.SQL)}&spend=1/10").text)
    assert (told["mode"], told["spend"]) == ("spend", "1/10")
    assert [given["options"] for act, given, _ in line.asked if act == "check"] == [{"epsilon": "1/10"}]


def test_the_page_says_what_readers_stumbled_over() -> None:
    """What is not spent yet, whose answer it is, and what somebody who is locked may do."""
    for name in ("ask", "ask-another-s"):
        assert "Nothing is spent before you press." in canned.STATES[name]().text
    assert "Nothing is spent before" not in canned.STATES["ask-not-enough"]().text
    assert "stored, an answer of another person, answered 3 May 2026" in canned.STATES["ask-another-s"]().text
    assert "another person" not in canned.STATES["ask-stored"]().text
    locked = canned.STATES["ask-locked"]().text
    assert "You cannot ask fresh questions until a steward has looked." in locked
    assert "notice-locked" in locked
