"""What a person sees: errors, notes and tables; colour only where it is wanted, and no stray escape codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

import click

from hubbub.answer.printable import in_one_line, printable
from hubbub.errors import HubbubError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["INTERRUPTED", "note", "on_terminal", "printable", "show_error", "show_table", "stdout_console"]

INTERRUPTED: Final = 130
"""The exit code where a person stopped it, or did not agree."""


def coloured() -> bool | None:
    """Whether to colour: None lets the stream decide."""
    return False if os.environ.get("NO_COLOR") else None


def show_error(error: HubbubError) -> None:
    """One red line with the class of the error, in the words of this place, then the rest of it, such as a caret."""
    first, _, rest = printable(error.said(lambda remedy: remedy.on_the_command_line())).partition("\n")
    click.secho(f"{type(error).__name__}: {first}", fg="red", bold=True, err=True, color=coloured())
    if rest:
        click.echo(rest, err=True)


def note(text: str) -> None:
    """A remark beside the data, on stderr."""
    click.echo(printable(text), err=True)


def on_terminal(stream: Literal["stdin", "stdout"]) -> bool:
    """Whether a person is at the other end."""
    file = getattr(sys, stream)
    return bool(file is not None and file.isatty())


def stdout_console() -> Console:
    """A rich console on stdout; 80 columns where no terminal says otherwise."""
    from rich.console import Console

    width = None if on_terminal("stdout") else 80
    return Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[bool]) -> None:
    """A table on stdout; `right` says which columns are numbers."""
    from rich.box import ASCII2, SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    box = ASCII2 if console.options.ascii_only else SIMPLE_HEAD
    table = Table(box=box, header_style="bold", pad_edge=False, show_edge=False)
    for name, is_number in zip(columns, right, strict=True):
        table.add_column(Text(in_one_line(name)), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(in_one_line(cell)) for cell in row))
    console.print(table)
