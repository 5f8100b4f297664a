"""`hubbub history`: every charge in the ledger, oldest first."""

from __future__ import annotations

from pathlib import Path

import click

from hubbub.cli.console import show_table
from hubbub.cli.formats import as_csv, as_json, as_markdown
from hubbub.cli.options import chosen_format, format_option, ledger_option, open_ledger, policy_option, write
from hubbub.ledger.budget import decimal_text
from hubbub.ledger.store import Entry

__all__ = ["command"]

_COLUMNS = ("time", "analyst", "data set", "epsilon", "state", "question")
_RIGHT = (False, False, False, True, False, False)


@click.command("history")
@policy_option
@ledger_option
@format_option()
def command(policy: Path | None, ledger: str | None, form: str | None) -> None:
    """Every charge: who asked what, what for where that was said, and what it cost."""
    with open_ledger(policy, ledger) as book:
        entries = book.record.history()
    match chosen_format(form):
        case "json":
            write(as_json([_whole(entry) for entry in entries]), None)
        case "csv":
            whole = [_whole(entry) for entry in entries]
            write(as_csv(list(_FIELDS), [list(row.values()) for row in whole]), None)
        case "md":
            write(as_markdown(_COLUMNS, [_brief(entry) for entry in entries], right=_RIGHT), None)
        case _ if not entries:
            click.echo("Nothing has been asked yet.", err=True)
        case _:
            show_table(_COLUMNS, [_brief(entry) for entry in entries], right=_RIGHT)


_FIELDS = ("id", "time", "unit_space", "dataset", "analyst", "epsilon", "state", "incident", "sql", "purpose")


def _whole(entry: Entry) -> dict[str, str | None]:
    epsilon = decimal_text(entry.epsilon)
    values = (entry.id, entry.time, entry.space, entry.dataset, entry.analyst, epsilon, entry.state)
    return dict(zip(_FIELDS, (*values, entry.incident, entry.sql, entry.purpose), strict=True))


def _brief(entry: Entry) -> tuple[str, ...]:
    time = entry.time[:19].replace("T", " ")
    return (
        time,
        entry.analyst,
        entry.dataset,
        decimal_text(entry.epsilon),
        entry.state,
        " ".join(entry.sql.split()) + ("" if entry.purpose is None else f"  [{' '.join(entry.purpose.split())}]"),
    )
