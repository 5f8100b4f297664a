"""The first lines of the steward's report: who spent what, and who is near a limit."""

from __future__ import annotations

import datetime as dt
import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hubbub.cli.standing import left_of
from hubbub.ledger.accounts import EVERYONE
from hubbub.ledger.budget import short_text
from hubbub.ledger.history import Course, courses
from hubbub.plots.page import html_lines, html_page, html_table

if TYPE_CHECKING:
    from hubbub.ledger.store import Ledger
    from hubbub.plots.chart import Chart

__all__ = ["COLUMNS", "Account", "accounts", "page"]

COLUMNS: Final = ("unit space", "who", "questions", "refused", "spent", "limit", "left", "")
_NEAR: Final = 0.8


@dataclass(frozen=True)
class Account:
    """What everybody together or one analyst spent. asked, refused: how many questions, in the time of the report."""

    space: str
    who: str
    asked: int
    refused: int
    spent: float
    limit: float
    left: str

    @property
    def share(self) -> float:
        """How much of the limit is spent."""
        return self.spent / self.limit if self.limit else 1.0

    @property
    def stands(self) -> str:
        """A word where somebody is near the limit or at it."""
        return "nothing left" if self.left == "0" else "near it" if self.share >= _NEAR else ""

    @property
    def row(self) -> tuple[str, ...]:
        """As a line of a table."""
        numbers = (f"{self.asked:,}", f"{self.refused:,}", f"{self.spent:.4g}", f"{self.limit:.4g}", self.left)
        return (self.space, self.who, *numbers, self.stands)


def accounts(book: Ledger, asked: Sequence[tuple[str, str, bool]]) -> list[Account]:
    """Of each unit space everybody together, then each analyst, who is nearest to the limit first.

    asked: of each question its unit space, its analyst, and whether it was refused.
    """
    listed: list[Account] = []
    for space in book.balance.spaces():
        spent = {c.account: c.epsilons[-1] if c.epsilons else 0.0 for c in courses(book, space)}
        granted = [a.account for a in book.balance.allowances(space) if a.account.startswith("analyst:")]
        known = [*spent, *granted, *(f"analyst:{who}" for where, who, _ in asked if where == space)]
        names = [name for name in dict.fromkeys(known) if name not in (EVERYONE, "analyst:*")]
        ceiling = book.balance.budget(space).for_questions
        here = [(who, refused) for where, who, refused in asked if where == space]
        counts = (sum(not no for _, no in here), sum(no for _, no in here))
        listed.append(
            Account(space, EVERYONE, *counts, spent[EVERYONE], float(ceiling), short_text(left_of(book, space)))
        )
        each = []
        for name in names:
            analyst = name.removeprefix("analyst:")
            counts = (sum(w == analyst and not no for w, no in here), sum(w == analyst and no for w, no in here))
            limit = float(min(ceiling, book.balance.limit(space, analyst)))
            left = short_text(left_of(book, space, analyst=analyst))
            each.append(Account(space, analyst, *counts, spent.get(name, 0.0), limit, left))
        listed += sorted(each, key=lambda one: (-one.share, one.who))
    return listed


def page(book: Ledger, told: Sequence[Account], heads: Sequence[str], rows: Sequence[Sequence[str]], note: str) -> str:
    """The report as HTML: who spent what, how it was spent over time, and the questions, the newest first."""
    parts = [html_table(COLUMNS, [one.row for one in told])]
    for space in book.balance.spaces():
        chart = _course(courses(book, space), f"Spent of {space}")
        if chart is not None:
            parts.append(f"<h2>{html.escape(chart.heading)}</h2>{chart.svg()}")
    parts += ["<h2>Questions, the newest first</h2>", html_table(heads, rows), html_lines([note])]
    return html_page("Who spent what", "".join(parts))


def _course(drawn: Sequence[Course], title: str) -> Chart | None:
    """The epsilon of each account over time, from nothing before the first charge to the last charge of all."""
    from hubbub.plots.chart import Chart, Point

    times = [dt.datetime.fromisoformat(time) for course in drawn for time in course.times]
    if not times:
        return None
    before, end = min(times) - dt.timedelta(seconds=1), max(times)
    points = []
    for course in drawn:
        steps = dict(zip(map(dt.datetime.fromisoformat, course.times), course.epsilons, strict=True))
        steps = {before: 0.0, **steps, end: course.epsilons[-1]}
        points += [Point((time, course.account.removeprefix("analyst:")), spent) for time, spent in steps.items()]
    return Chart("epsilon spent", ("time", "who"), tuple(points), None, title=title, steps=True)
