"""The pages of stewards and auditors: every state is there, says what it was told, and takes it as text."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

import canned
import canned_office as told
from browser_site import _TODAY, ANALYST, AUDITOR, STATES, STEWARD
from hubbub.ledger.wording import commitment
from hubbub.service.pages import office
from hubbub.service.pages.simulated import EPSILONS, simulated
from seeded import SeededBits


@pytest.mark.parametrize("name", [name for name in STATES if name not in canned.STATES])
def test_a_state_is_a_page_in_which_what_was_told_is_text(name: str) -> None:
    page = STATES[name]()
    assert "<script>" not in page.text
    assert "<b>mallory" not in page.text
    assert page.text.count("<h1") == 1
    ids = re.findall(r'\bid="([^"]*)"', page.text)
    assert len(ids) == len(set(ids))
    for form in re.findall(r'<form method="post".*?</form>', page.text, re.DOTALL):
        assert 'name="csrf" value="c5r7"' in form


def test_today_names_what_waits_and_nothing_else() -> None:
    page = STATES["today"]().text
    for waits in (
        'asks for <span class="amount">0.5</span> more',
        "waits for a yes",
        "ben</bdi></strong> is locked",
        "1 incident",
        "new one",
    ):
        assert waits in page
    assert "Nothing waits for you" not in page
    assert "Nothing waits for you" in STATES["today-quiet"]().text
    invited = {**told.PEOPLE[1], "passphrase": False, "link_until": "2026-11-24T09:00:00.000000Z"}
    pupils = [{**invited, "name": f"pupil {n}"} for n in range(30)]
    page = office.today({**_TODAY, "people": pupils}, STEWARD).text
    assert "<strong>30 people</strong> are invited" in page
    assert "pupil 7" not in page
    assert "The records are not what they were" in STATES["today-broken"]().text


def test_a_request_proposes_the_limit_that_it_would_take() -> None:
    page = office.requests({"requests": told.REQUESTS}, STEWARD).text
    assert 'name="epsilon" inputmode="decimal" value="2.5"' in page  # 2 now, and one half more
    assert "1.2</span> is left of" in page


def test_a_question_that_costs_more_than_is_left_says_what_to_do_first() -> None:
    page = office.requests({"requests": told.REQUESTS}, STEWARD).text
    assert "That is more than is left." in page
    assert 'href="/people/ben"' in page
    rich = [{**told.REQUESTS[1], "left": "1"}]
    assert "more than is left" not in office.requests({"requests": rich}, STEWARD).text


def test_a_bar_says_what_it_shows_and_a_locked_person_is_not_just_active() -> None:
    assert "<strong>1.2 of 3 left</strong>" in STATES["today"]().text
    assert "<strong>1.2 of 3 left</strong>" in STATES["charges"]().text
    locked = STATES["person-locked"]().text
    assert "<strong>0.7 of 2 left</strong>, 1.3 spent." in locked
    assert "active, but locked" in locked
    assert "1 line does not fit" in STATES["chain-broken"]().text


def test_a_table_says_what_each_bound_costs() -> None:
    declared = {**told.DECLARED["survey"], "limits": {"max_rows": 1, "max_total": 4}}
    costs = {"max_rows": {"by": "ward", "epsilon": "0.1", "widths": [[1, 30.0], [2, 60.0]]}}
    said = {bound: text for bound, _, text in office.declared_table("survey", declared, costs)["bounds"]}
    assert said == {"max_rows": "A count by ward is ± 30 at epsilon 0.1; it would be ± 60 with 2.", "max_total": ""}


def test_what_the_policy_file_says_otherwise_is_said() -> None:
    assert "It says what holds here." in STATES["tables"]().text
    assert "<li><bdi>The limit of each analyst changes from epsilon 2 to epsilon 1.5.</bdi></li>" in (
        STATES["tables-changed"]().text
    )
    assert "It cannot be read any more" in STATES["tables-unread"]().text


def test_a_person_has_what_was_asked_and_a_text_that_was_removed_is_none() -> None:
    page = STATES["person"]().text
    assert "SELECT rate_marriage, COUNT(*) AS n FROM survey WHERE age &gt; 28 GROUP BY rate_marriage" in page
    lost = office.person(
        {"person": told.PEOPLE[0], "tokens": [], "charges": [{**told.CHARGES[0], "state": "lost"}]}, STEWARD
    )
    assert "<bdi>no answer</bdi>" in lost.text
    removed = [{**told.CHARGES[0], "sql": sql} for sql in (None, commitment("00", "SELECT 1"))]
    page = office.person({"person": told.PEOPLE[0], "tokens": [], "charges": removed}, STEWARD).text
    assert page.count("(its text was removed)") == 2
    assert "What <bdi>audrey</bdi> asked" not in office.person({"person": told.PEOPLE[1], "tokens": []}, STEWARD).text


def test_what_weakens_asks_for_the_passphrase_again() -> None:
    page = STATES["person-locked"]().text
    forms = dict(re.findall(r'action="/people/ben/([\w-]+)"(.*?)</form>', page, re.DOTALL))
    for weakens in ("unlock", "grant"):
        assert 'name="passphrase"' in forms[weakens]
        assert 'name="reason"' in forms[weakens]


def test_each_role_is_led_to_its_own_pages() -> None:
    leads = [{place.key for place in viewer.places} for viewer in (ANALYST, STEWARD, AUDITOR)]
    assert leads[0] & {"people", "requests", "charges", "log", "chain"} == set()
    assert leads[1] >= {"today", "people", "requests", "tables", "incidents", "chain", "attacks"}
    assert leads[2] == {"charges", "log", "chain", "attacks", "learn"}


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_attacks_are_right_on_exact_answers_and_held_down_on_private_ones(epsilon: str) -> None:
    """2,000 guesses: a share lies .05 above the bound with probability e^-10 at most (Hoeffding); the draw is fixed."""
    for one in simulated(Fraction(epsilon), bits=SeededBits(epsilon)):
        assert one["exact"] == 1
        assert one["private"] <= one["most"] + 0.05
    subtraction = simulated(Fraction(epsilon), bits=SeededBits(epsilon))[0]
    assert subtraction["private"] > 0.5 or epsilon in ("0.1", "0.5")
