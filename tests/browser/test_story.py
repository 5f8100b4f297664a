"""The whole story by the keyboard alone: learn, be invited, ask, be refused, refine, ask for more; grant, revoke."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.story import StoryWorld

PASSPHRASE = "seven green bicycles sing"
pytestmark = pytest.mark.xdist_group("story")  # one world for both tests
GROUPS = "SELECT w, COUNT(*) AS n FROM v GROUP BY w"


class Keys:
    """A page of which only the keys are used."""

    def __init__(self, page: Any) -> None:
        from playwright.sync_api import expect

        self.page, self.expect = page, expect

    def to(self, what: Any) -> None:
        """Tab until it has the focus."""
        for _ in range(90):  # looked for each time: the live line may have put another in its place
            if what.first.evaluate("e => e === document.activeElement || e.contains(document.activeElement)"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"the Tab key does not lead to {what}")

    def press(self, role: str, name: str | re.Pattern[str], *, key: str = "Enter", within: Any = None) -> None:
        """Go to a button, link or box, and press it."""
        self.to((within or self.page).get_by_role(role, name=name))
        self.page.keyboard.press(key)

    def write(self, label: str | re.Pattern[str], text: str, *, within: Any = None) -> None:
        """Go to a field, and write over what it holds."""
        self.to((within or self.page).get_by_label(label))
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(text)

    def question(self, sql: str, epsilon: str) -> None:
        """Write a question, and what it may cost."""
        editor = self.page.locator(".cm-content")
        self.expect(editor).to_be_visible()
        self.to(editor)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(sql)
        self.write("epsilon to spend", epsilon)

    def sees(self, text: str | re.Pattern[str]) -> None:
        """It stands on the page."""
        self.expect(self.page.get_by_text(text).first).to_be_visible()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoryWorld]:
    with StoryWorld(Path(tmp_path_factory.mktemp("story"))) as running:
        yield running


def test_a_newcomer_learns_by_the_keyboard(opened: Any, world: StoryWorld) -> None:
    keys = Keys(opened(home=world.url))
    keys.page.goto("/learn")
    keys.press("button", "Ask both")
    keys.sees("So Zoe said yes.")
    keys.press("link", "On to step 2")
    keys.press("button", "Ask, with noise")
    for left in range(9, 0, -1):
        keys.press("button", f"Ask with fresh noise ({left} left)")
    keys.press("button", re.compile("Let a program ask"))
    keys.sees(re.compile("The average of 1,000 answers is"))
    keys.press("link", "On to step 3")
    keys.press("button", "Ask twenty times, and see")
    keys.sees(re.compile("Who believed 10 in 100 may now believe at most 23 in 100"))
    keys.press("link", "On to step 4")
    for place, amount in enumerate(("0.6", "0.3", "0.1")):
        keys.to(keys.page.get_by_label("Spend epsilon").nth(place))
        keys.page.keyboard.type(amount)
    keys.press("button", "Ask the three questions")
    keys.sees(re.compile("3 of 3 answers are of use"))
    keys.press("button", "Ask a fourth question")
    keys.sees(re.compile("the budget is spent"))


def test_the_story(opened: Any, world: StoryWorld) -> None:
    stella = _steward_comes(opened, world)
    ada = _analyst_comes(opened, world, _invited(stella))
    _refused_and_answered(ada)
    _refined(ada)
    _asks_for_more(ada)
    _granted(stella)
    _asked_again(ada)
    _incident(ada, stella, world)
    _revoked(ada, stella)
    with world.locked():
        asked = [str(entry.epsilon) for entry in world.ledger.record.history(analyst="ada")]
        assert sorted(asked) == ["1/10", "1/2", "1/2", "1/4"], "what was pressed is what was charged, once each"
        assert world.ledger.record.verify().problems == ()


def _steward_comes(opened: Any, world: StoryWorld) -> Keys:
    stella = Keys(opened(home=world.url))
    stella.page.goto(world.invitation("stella", "steward"))
    stella.write("Choose a passphrase", PASSPHRASE)
    stella.press("button", "Begin")
    stella.press("link", "Today")
    stella.sees("Nothing waits for you")
    return stella


def _invited(stella: Keys) -> str:
    stella.press("link", "People")
    stella.write("Name", "ada")
    stella.press("button", "Make a link")
    stella.sees("A link for ada")
    return str(stella.page.locator("pre.once").inner_text())


def _analyst_comes(opened: Any, world: StoryWorld, link: str) -> Keys:
    ada = Keys(opened(home=world.url))
    ada.page.goto(re.sub(r"^(https?://[^/]*)?", world.url, link.strip()))
    ada.write("Choose a passphrase", PASSPHRASE)
    ada.press("button", "Begin")
    ada.press("link", "ada")
    ada.press("button", "Log out")
    ada.write("Name", "ada")
    ada.write("Passphrase", PASSPHRASE)
    ada.press("button", "Log in")
    ada.sees("Your question, in SQL")
    return ada


def _refused_and_answered(ada: Keys) -> None:
    ada.question("SELECT x FROM v", "0.5")
    ada.sees("Nothing was spent.")
    ada.question(GROUPS, "0.5")
    ada.press("button", "Ask: spend 0.5")
    ada.sees(re.compile("Your answer comes at"))
    ada.sees("The numbers")
    ada.press("link", "99 %")
    ada.sees("Each ± at 99 %")


def _refined(ada: Keys) -> None:
    ada.write("Spend this much more", "0.25")
    ada.press("button", "What would it give?")
    ada.press("button", "Refine: spend 0.25 more")
    ada.sees(re.compile("Your answer comes at"))
    ada.sees("The numbers")


def _asks_for_more(ada: Keys) -> None:
    ada.press("link", "Ask")
    ada.question("SELECT COUNT(*) AS n FROM v", "0.5")
    ada.press("link", "Ask the steward for more")
    ada.write("How much more", "0.5")
    ada.write("What for", "the report needs the total")
    ada.press("button", "Send the request")
    ada.sees("Your request is with the stewards")


def _granted(stella: Keys) -> None:
    stella.press("link", "Today")
    stella.press("link", re.compile("ada asks for"))
    yes = stella.page.locator("form.yes")
    stella.write("Reason, for the log", "the report", within=yes)
    stella.write("Your passphrase", PASSPHRASE, within=yes)
    stella.press("button", "Yes, grant it")
    stella.sees("Decided: yes.")


def _asked_again(ada: Keys) -> None:
    ada.press("link", "Ask")
    ada.question("SELECT COUNT(*) AS n FROM v", "0.5")
    ada.press("button", "Ask: spend 0.5")
    ada.sees("The numbers")


def _incident(ada: Keys, stella: Keys, world: StoryWorld) -> None:
    world.outcome = "failure"
    ada.press("link", "Ask")
    ada.question("SELECT COUNT(*) AS n FROM v WHERE w = 'a'", "0.1")
    ada.press("button", "Ask: spend 0.1")
    ada.sees("There is no answer to this question")
    world.outcome = "answer"
    stella.press("link", "Incidents")
    stella.press("button", re.compile("Read what the engine said"))
    stella.sees("private words")


def _revoked(ada: Keys, stella: Keys) -> None:
    stella.press("link", "People")
    stella.press("link", "ada")
    stella.to(stella.page.get_by_text("Change the limit"))
    stella.page.keyboard.press("Enter")
    stella.press("button", "Let nothing more be spent")
    stella.sees(re.compile("Nothing more may be spent"))
    ada.press("link", "Ask")
    ada.question("SELECT COUNT(*) AS n FROM v WHERE w = 'b'", "0.1")
    ada.expect(ada.page.get_by_role("button", name="Ask: spend 0.1")).not_to_be_visible()
    ada.press("link", "Library")
    ada.sees("Show: free")
