"""`hubbub demo`: a first private answer about real people, and an attack that it withstands.

Everything on the screen happens: the questions go through an ordinary session with a ledger on the disk and
noise from the operating system's bits, so that the private numbers differ from one run to the next.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hubbub.cli.console import stdout_console
from hubbub.cli.survey import ALL, KINDS, Survey, Target, find_survey, right_by_differencing
from hubbub.errors import HubbubError
from hubbub.ledger.budget import decimal_text

if TYPE_CHECKING:
    from rich.console import Console

    from hubbub.answer.release import Release
    from hubbub.session import Session

__all__ = ["OWN", "command"]

_REFUSED: Final = "SELECT AVG(age) AS age FROM survey"
_QUESTION: Final = """\
SELECT rate_marriage,
       COUNT(*) AS women,
       AVG(CASE WHEN affairs > 0 THEN 1 ELSE 0 END) AS affair
FROM survey GROUP BY rate_marriage"""
_EPSILON: Final = Fraction(1)
_ATTACK_EPSILON: Final = Fraction(1, 20)
_BUDGET: Final = 3
_TARGETS_EACH: Final = 10
_RATINGS: Final = ("very poor", "poor", "fair", "good", "very good")
OWN: Final = (
    ("hubbub init people.csv --unit person_id --max-groups 1 --max-rows 1", ""),
    ("hubbub ledger create", "once you filled in hubbub.toml"),
    ('hubbub query "SELECT COUNT(*) AS n FROM people" --epsilon 0.1 --yes', ""),
)
"""The commands that do the same with a file of one's own, and what each does."""


@click.command("demo")
def command() -> None:
    """A first private answer, on real data."""
    path = find_survey()
    with tempfile.TemporaryDirectory(prefix="hubbub-demo-") as folder:
        survey = Survey(path)
        try:
            with _session(path, Path(folder) / "budget.db") as session:
                _Story(stdout_console(), session, survey).tell()
        finally:
            survey.close()


def _session(path: Path, ledger: Path) -> Session:
    import hubbub as hb

    survey = hb.table(
        path,
        unit=hb.EACH_ROW,
        types=KINDS,
        columns={"rate_marriage": hb.one_of(1, 2, 3, 4, 5), "affairs": hb.between(0, 60)},
    )
    return hb.Session({"survey": survey}, budget=hb.Budget(epsilon=_BUDGET), ledger=ledger, analyst="you")


class _Story:
    """The demo's screen, chapter by chapter."""

    def __init__(self, console: Console, session: Session, survey: Survey) -> None:
        self.console = console
        self.session = session
        self.survey = survey
        self.plain = console.options.ascii_only

    def tell(self) -> None:
        self.introduction()
        self.refusal()
        self.price()
        answer = self.answer()
        self.again(answer)
        self.attack()
        self.ending()

    def say(self, text: str = "", style: str | None = None) -> None:
        width = min(80, self.console.width)
        self.console.print(textwrap.fill(text, width, replace_whitespace=False), style=style, soft_wrap=True)

    def chapter(self, title: str) -> None:
        self.say()
        self.say(f"{'#' if self.plain else '▌'} {title}", "bold cyan")

    def code(self, text: str) -> None:
        for line in text.splitlines():
            self.say(f"    {line}", "green")

    def introduction(self) -> None:
        self.say("hubbub: you hear the room, never the person", "bold")
        self.say()
        self.say(
            "The table: 6,366 women on their marriages, and on their affairs (Fair 1978). It is public "
            "by now; here it is treated as the secret it was. Each row is one woman, and is protected. "
            f"Everything that is ever asked shares one budget, epsilon {_BUDGET}."
        )

    def refusal(self) -> None:
        self.chapter("A question that one woman could sway is refused")
        self.code(_REFUSED)
        try:
            self.session.sql(_REFUSED, epsilon=_EPSILON)
        except HubbubError as error:
            self.say(f"{type(error).__name__}: {error}", "red")
            self.say("Nothing was charged: the refusal came before any row was read.")

    def price(self) -> None:
        self.chapter("check: what a question costs, and how exact it will be")
        self.code(_QUESTION)
        check = self.session.check(_QUESTION, epsilon=_EPSILON)
        for column in check.columns:
            assumed = f"  ({column.unit_note})" if column.unit_note else ""
            self.say(f"{column.name:>10}  ± {column.plus_minus:.2g}{assumed}")
        cost, left = decimal_text(check.epsilon), decimal_text(check.left)
        self.say(f"{'cost':>10}  epsilon {cost} of the {left} left; no row was read for this")

    def answer(self) -> Release:
        self.chapter("The answer: how a woman rates her marriage, and whether she had an affair")
        release = self.session.sql(_QUESTION, epsilon=_EPSILON)
        self.table(release)
        self.say("± and the grey end of a bar: the truth is within, 19 times in 20.", "dim")
        return release

    def table(self, release: Release) -> None:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
        table.add_column("her marriage")
        table.add_column("women", justify="right")
        table.add_column("had an affair", justify="right")
        table.add_column("")
        intervals = release.intervals(0.95).to_pylist()
        reach = release.error.half_widths(0.95)
        for row, women, affair in zip(intervals, reach["women"], reach["affair"], strict=True):
            table.add_row(
                _RATINGS[row["rate_marriage"] - 1],
                f"{row['women']:,} ± {women:.0f}",
                f"{100 * row['affair']:.1f} % ± {100 * affair:.1f}",
                Text.assemble(*self.bar(row["affair_low"], row["affair_high"])),
            )
        self.console.print(table)

    def bar(self, low: float, high: float, width: int = 26) -> Sequence[tuple[str, str]]:
        solid = round(max(0.0, low) * width)
        grey = max(1, round(min(1.0, high) * width) - solid)
        full, shade = ("#", "-") if self.plain else ("█", "▒")
        return ((full * solid, "magenta"), (shade * grey, "bright_black"))

    def again(self, first: Release) -> None:
        self.chapter("The same question again is free")
        second = self.session.sql(_QUESTION, epsilon=_EPSILON)
        same = "the same numbers" if second.rows() == first.rows() else "OTHER NUMBERS"
        self.say(
            f"Charged: {decimal_text(second.cost)}. It is the stored answer, {same}: asking often, and "
            "averaging, gains an attacker nothing."
        )

    def attack(self) -> None:
        self.chapter('The attack: "all but one"')
        self.say(
            "You know a woman's age, children, schooling, jobs: enough to name her row. Ask how many had "
            "an affair, then how many when she is left out. Subtract."
        )
        self.code(ALL)
        self.code(f"{ALL}\n  AND NOT (age = 42 AND yrs_married = 23 AND ...)")
        targets = self.survey.targets(_TARGETS_EACH)
        exact = [self.survey.count(ALL) - self.survey.count(t.all_but_her) for t in targets]
        private = [self.private(ALL) - self.private(t.all_but_her) for t in targets]
        self.attacked(targets, exact, private)
        self.score(targets, exact, private)

    def private(self, sql: str) -> int:
        ((count,),) = self.session.sql(sql, epsilon=_ATTACK_EPSILON).rows()
        assert isinstance(count, int)
        return count

    def attacked(self, targets: Sequence[Target], exact: Sequence[int], private: Sequence[int]) -> None:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
        table.add_column("the woman")
        table.add_column("truth", justify="right")
        table.add_column("exact answers", justify="right")
        table.add_column("private answers", justify="right")
        for target, one, other in list(zip(targets, exact, private, strict=True))[:4]:
            truth = "yes" if target.had_affair else "no"
            table.add_row(str(target), truth, f"{one:+d}: {_guess(one)}", f"{other:+d}: {_guess(other)}")
        table.add_row(f"... and {len(targets) - 4} more")
        self.console.print(table)

    def score(self, targets: Sequence[Target], exact: Sequence[int], private: Sequence[int]) -> None:
        def right(differences: Sequence[int]) -> int:
            return sum((d > 0) == t.had_affair for d, t in zip(differences, targets, strict=True))

        n = len(targets)
        self.say(f"Exact answers told {right(exact)} of {n} secrets.", "bold red")
        self.say(f"Private answers got {right(private)} of {n} right; a coin would get about {n // 2}.", "bold green")
        epsilon, rate = decimal_text(_ATTACK_EPSILON), right_by_differencing(_ATTACK_EPSILON)
        self.say(f"(At epsilon {epsilon} a question, theory says {rate:.1%} for each woman.)")

    def ending(self) -> None:
        self.chapter("What is left")
        spent, asked = _BUDGET - self.session.remaining, len(self.session.history())
        full, rest = ("#", ".") if self.plain else ("█", "░")
        done = round(40 * spent / _BUDGET)
        self.say(f"{full * done}{rest * (40 - done)}  {decimal_text(self.session.remaining)} of {_BUDGET} is left")
        self.say(
            f"{asked} answers are charged in the ledger, each before it was computed. When the budget is "
            "spent, the ledger says no, to all attackers together."
        )
        self.chapter("Your own file")
        entering = Path(sys.executable).parent / "activate"
        if shutil.which("hubbub") is None and entering.exists():  # as after `make demo`
            self.console.print(f"    . {os.path.relpath(entering)}", style="green", soft_wrap=True)
        for line, about in OWN:
            self.console.print(f"    {line:<42} {about}".rstrip(), style="green", soft_wrap=True)


def _guess(difference: int) -> str:
    return "yes" if difference > 0 else "no"
