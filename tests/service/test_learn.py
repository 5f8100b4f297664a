"""Learn: what it says is what the accounting and the laws say, and its pages are functions of their address."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from urllib.parse import parse_qsl, urlsplit

import pytest

from hubbub.noise import DiscreteLaplace
from hubbub.service.pages import Viewer
from hubbub.service.pages.learn import STEPS, address_of, told
from hubbub.service.pages.learn.steps import PRESSES, half_width
from hubbub.service.pages.learn.view import view
from hubbub.service.pages.learn.village import OTHERS, PEOPLE, TASKS, TOWN_BUDGET, YES
from seeded import SeededBits

ADA = Viewer("ada", frozenset({"analyst"}), "c5r7", "1/2", "2")


def press(step: int, **given: str) -> dict[str, str]:
    """What stands in the address to which a form leads."""
    address = address_of(step, given, bits=SeededBits(str(given)))
    assert address is not None
    assert urlsplit(address).path == f"/learn/{step}"
    return dict(parse_qsl(urlsplit(address).query))


def pressed_ten_times() -> dict[str, str]:
    given: dict[str, str] = {}
    for _ in range(PRESSES):
        given = press(2, **given, ask="one")
    return given


def test_two_exact_answers_tell_what_anybody_said() -> None:
    for one in PEOPLE:
        shown = told(1, {"who": one.name})
        assert shown["everybody"] - shown["others"] == shown["difference"] == one.said_yes
    assert sum(p.said_yes for p in PEOPLE) == YES == OTHERS + 1
    assert told(1, {"who": "<script>"})["who"] == "Zoe"


def test_ten_presses_are_ten_draws_and_no_more() -> None:
    given = pressed_ten_times()
    shown = told(2, given)
    answers = [p["answer"] for p in shown["presses"]]
    assert len(answers) == PRESSES
    assert shown["left"] == 0
    assert len(set(answers)) > 1
    assert shown["presses"][-1]["average"] == pytest.approx(sum(answers) / PRESSES - OTHERS)
    assert told(2, press(2, **given, ask="one"))["presses"] == shown["presses"]
    assert [p["within"] for p in shown["presses"]] == [True] * 3 + [False] * 7


def test_the_average_of_a_thousand_finds_zoe() -> None:
    """A thousand draws of scale 1 have a mean of standard deviation .043: beyond .3 once in 10^11 times."""
    shown = told(2, press(2, heard="17", ask="many"))
    assert abs(shown["many"] - 1) < 0.3
    assert shown["program_spends"] == "1000"


def test_what_may_be_believed_is_what_the_accounting_says() -> None:
    shown = told(3, {"epsilon": "1", "prior": "10"})
    assert (shown["least"], shown["most"]) == ("4", "23")
    odds = math.e / 9
    assert shown["belief"][1] == pytest.approx(odds / (1 + odds))
    rows = {row["epsilon"]: row for row in shown["rows"]}
    assert rows["10"]["most"] == "99.96"  # never "100 in 100": that would be certainty
    assert rows["1"]["most"] == "23"


@pytest.mark.parametrize("epsilon", ["0.1", "0.3", "1", "3", "10"])
def test_an_error_bar_holds_the_truth_nineteen_times_in_twenty(epsilon: str) -> None:
    wide, law = half_width(Fraction(epsilon)), DiscreteLaplace(1 / Fraction(epsilon))
    assert 2 * float(law.tail(wide)) <= 0.05
    assert wide == 0 or 2 * float(law.tail(wide - 1)) > 0.05
    drawn = told(3, press(3, epsilon=epsilon, prior="10", ask="1"))["answers"]
    assert len(drawn) == 20
    assert all(a["holds"] == (abs(a["answer"] - YES) <= wide) for a in drawn)


def test_the_budget_is_enough_for_all_three_but_not_in_equal_parts() -> None:
    spent = told(4, press(4, a="0.6", b="0.3", c="0.1", ask="1"))
    assert (spent["score"], spent["left"], spent["asked"]) == (3, "0", True)
    equal = told(4, press(4, a="0.33", b="0.33", c="0.33", ask="1"))
    assert equal["score"] == 2
    least = [next(e for e in range(1, 101) if half_width(Fraction(e, 100)) <= task.needed) for task in TASKS]
    assert 90 <= sum(least) <= 100 * TOWN_BUDGET


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [("0.9", "0.2", "the budget is 1"), ("x", "0", "number from 0 to 1"), ("", "0", "at least one task")],
)
def test_what_the_budget_does_not_hold_is_not_asked(a: str, b: str, why: str) -> None:
    shown = told(4, press(4, a=a, b=b, ask="1"))
    assert why in shown["trouble"]
    assert not shown["asked"]
    assert all(task["answer"] is None for task in shown["tasks"])


def test_asking_again_shows_the_same_and_a_fourth_question_is_refused() -> None:
    given = press(4, a="0.6", b="0.3", c="0.1", ask="1")
    first, again = told(4, given), told(4, {**given, "again": "1", "another": "1"})
    assert [t["answer"] for t in first["tasks"]] == [t["answer"] for t in again["tasks"]]
    page = view(again, ADA).text
    assert "nothing was spent" in page
    assert "the budget is spent" in page


@pytest.mark.parametrize(
    "given",
    [
        {"heard": "1.2.x"}, {"heard": "9" * 5000}, {"heard": "." * 5000}, {"heard": "-5.٣"}, {"many": "nan"},
        {"epsilon": "1e9", "prior": "-1"}, {"a": "1e999", "b": "0x1", "c": "½", "heard": "1.2.3"}, {"who": "‮"},
        {"a": "1" * 9999, "heard": "1.2.3"}, {"heard": "99999999.1.2"}, {"ask": "one", "heard": "\0"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_whatever_the_address_says_there_is_a_page(step: int, given: dict[str, str]) -> None:
    address_of(step, given)
    page = view(told(step, given), Viewer()).text
    assert f"{step}. {STEPS[step - 1]}" in page


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_page_of_the_same_address_is_the_same(step: int) -> None:
    given = {1: {"who": "Ada"}, 2: pressed_ten_times(), 3: press(3, ask="1"), 4: press(4, a="1", ask="1")}[step]
    pages = [re.sub("[0-9a-f]{32}", "", view(told(step, given), ADA).text) for _ in range(2)]
    assert pages[0] == pages[1]
    assert "<script" not in pages[0]
    assert 'method="post"' not in pages[0]  # nothing changes, so nothing has to be one's own


def test_learn_answers_what_a_sceptical_teacher_asks() -> None:
    """The figures in the answers are those of the steps."""
    page = view(told(4, press(4, a="0.6", b="0.3", c="0.1", ask="1")), ADA).text
    asked = page.partition("What people ask next")[2].partition("</section>")[0]
    assert asked.count("<li><strong>") == 10
    assert f"{YES} and {OTHERS} are not small" in asked
    assert "&nbsp;3 is much of 17" in asked
    assert "±&nbsp;30 is too small" in asked
    assert (half_width(Fraction(1)), half_width(Fraction(1, 10))) == (3, 30)
    assert abs(half_width(Fraction(1, 20)) / half_width(Fraction(1, 10)) - 2) < 0.05  # half the epsilon, twice the ±
