"""`hubbub budget`: what has been spent of each unit space's budget, and what is left."""

from __future__ import annotations

from pathlib import Path

import click

from hubbub.cli.console import show_table
from hubbub.cli.formats import as_csv, as_json, as_markdown
from hubbub.cli.options import chosen_format, format_option, ledger_option, open_ledger, policy_option, write
from hubbub.ledger.budget import decimal_text

__all__ = ["command"]

_COLUMNS = ("unit space", "epsilon", "spent", "left", "charges")
_RIGHT = (False, True, True, True, True)


@click.command("budget")
@policy_option
@ledger_option
@format_option()
def command(policy: Path | None, ledger: Path | None, form: str | None) -> None:
    """What has been spent, and what is left."""
    with open_ledger(policy, ledger) as book:
        rows = [
            (space, *map(decimal_text, (book.ceiling(space), book.spent(space), book.remaining(space))),
             str(len(book.history(space))))
            for space in book.spaces()
        ]  # fmt: skip
    match chosen_format(form):
        case "json":
            keys = [name.replace(" ", "_") for name in _COLUMNS]
            write(as_json([dict(zip(keys, row, strict=True)) | {"charges": int(row[-1])} for row in rows]), None)
        case "csv":
            write(as_csv([name.replace(" ", "_") for name in _COLUMNS], rows), None)
        case "md":
            write(as_markdown(_COLUMNS, rows, right=_RIGHT), None)
        case _:
            show_table(_COLUMNS, rows, right=_RIGHT)
