"""`hubbub report`: the steward's overview of a span of time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hubbub.cli.console import note, printable, show_table
from hubbub.cli.formats import as_csv
from hubbub.cli.options import ledger_option, open_ledger, output_option, policy_option, write
from hubbub.cli.overview import COLUMNS, Account, accounts, page
from hubbub.cli.standing import left_text
from hubbub.ledger.budget import decimal_text

if TYPE_CHECKING:
    from hubbub.ledger.store import Ledger

__all__ = ["command"]

_BOUNDED = "An answer holds no more of one unit than its receipt says; what that leaves out is not in the ±."
_COLUMNS = ("time", "unit space", "analyst", "data set", "epsilon", "outcome", "question", "purpose", "bounded")
_LAST = 20


@click.command("report")
@click.option("--since", metavar="DATE", help="From when on, in ISO 8601, such as 2026-10-01.")
@click.option("--format", "form", type=click.Choice(["text", "csv", "html"]), default="text", show_default=True)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw the budget's course as well, into a .png, .svg or .pdf file; needs the extra plot.",
)
@output_option
@policy_option
@ledger_option
def command(
    since: str | None, form: str, plot: Path | None, output: Path | None, policy: Path | None, ledger: str | None
) -> None:
    """Who spent what, who is near a limit, how the budget was spent, and the last questions, on a page.

    csv: every question. With each stands how much of one unit its answer holds; below, where that is the same for all.
    """
    if form == "text" and output is not None:
        raise click.UsageError("-o takes --format html or csv.")
    with open_ledger(policy, ledger) as book:
        rows = _rows(book, since)
        if form == "csv":
            write(as_csv([name.replace(" ", "_") for name in _COLUMNS], rows), output)
        elif form == "html":
            write(page(book, _accounts(book, rows), *_newest(rows), _foot(rows)), output)
        else:
            _text(book, rows)
        if plot is not None:
            _draw(book, plot)
            note(f"Drew {plot}.")


def _rows(book: Ledger, since: str | None) -> list[tuple[str, ...]]:
    from hubbub.ledger.steward import moment_of

    start = None if since is None else moment_of(since)
    asked = [
        (e.time, e.space, e.analyst, e.dataset, decimal_text(e.epsilon),
         e.state if e.kind == "question" else f"{e.kind}, {e.state}", e.sql, e.purpose or "",
         _bounded(e.details))
        for e in book.record.history(since=start)
    ]  # fmt: skip
    refused = [
        (r.time, r.space, r.analyst, r.dataset, r.asked, f"refused: {r.account} had {r.left} left", r.sql, "", "")
        for r in book.record.refusals(since=start)
    ]
    return sorted([*asked, *refused])


def _bounded(details: str) -> str:
    """How much of one unit an answer holds, from its receipt; nothing where the receipt does not say."""
    receipt = json.loads(details)
    limits = (f"at most {p['max_rows']} rows in each of {p['max_groups']} groups" for p in receipt.get("plans", []))
    return "; ".join(dict.fromkeys(f"{limit} of one unit ({receipt['unit']})" for limit in limits))


def _accounts(book: Ledger, rows: list[tuple[str, ...]]) -> list[Account]:
    return accounts(book, [(space, who, outcome.startswith("refused")) for _, space, who, _, _, outcome, *_ in rows])


def _newest(rows: list[tuple[str, ...]]) -> tuple[list[str], list[list[str]]]:
    """The last questions, the newest first: the columns in which they differ, and those that all want."""
    brief = [(time[:19].replace("T", " "), *(" ".join(text.split()) for text in rest)) for time, *rest in rows[-_LAST:]]
    told = [
        at for at, name in enumerate(_COLUMNS)
        if name in ("time", "epsilon", "question") or len({row[at] for row in brief}) > 1
    ]  # fmt: skip
    return [_COLUMNS[at] for at in told], [[row[at] for at in told] for row in reversed(brief)]


def _foot(rows: list[tuple[str, ...]]) -> str:
    earlier = f"{len(rows) - _LAST:,} earlier ones: --format csv. " if len(rows) > _LAST else ""
    limits = {row[8] for row in rows[-_LAST:]}
    every = f"Each of these: {next(iter(limits))}. " if len(limits) == 1 and limits != {""} else ""
    return earlier + every + (_BOUNDED if any(row[8] for row in rows) else "")


def _text(book: Ledger, rows: list[tuple[str, ...]]) -> None:
    from hubbub.ledger.history import courses, text

    show_table(COLUMNS, [one.row for one in _accounts(book, rows)], right=[2 <= at <= 6 for at in range(len(COLUMNS))])
    for space in book.balance.spaces():
        left = left_text(book, space)
        click.echo(printable(f"\n{space}: {book.balance.budget(space)!r}, {left} left; spent over time:"))
        click.echo(printable(text(courses(book, space))))
    if not rows:
        note("Nothing was asked in this time.")
        return
    heads, newest = _newest(rows)
    click.echo("\nQuestions, the newest first:")
    show_table(heads, newest, right=[name == "epsilon" for name in heads])
    note(_foot(rows))


def _draw(book: Ledger, path: Path) -> None:
    from hubbub.ledger.history import courses, draw
    from hubbub.plots import axes, save

    ax = axes()
    for space in book.balance.spaces():
        draw(courses(book, space), ax)
    ax.set_title("Budget spent")
    save(ax, str(path))
