"""Options and steps that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hubbub.cli.console import on_terminal, printable

if TYPE_CHECKING:
    from hubbub.ledger.store import Ledger
    from hubbub.session import Session

__all__ = [
    "chosen_format",
    "epsilon_option",
    "format_option",
    "ledger_option",
    "open_ledger",
    "open_session",
    "output_option",
    "policy_option",
    "write",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

policy_option = click.option(
    "--policy",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The policy file; default: the nearest hubbub.toml, upward from here.",
)
ledger_option = click.option(
    "--ledger",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The ledger file; default: the one the policy file names.",
)
epsilon_option = click.option(
    "--epsilon",
    required=True,
    metavar="NUMBER",
    help="What the question may cost: 0.5, or a ratio such as 1/3. Read exactly as written.",
)
output_option = click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the data here instead of to stdout.",
)


def format_option(*more: str) -> Callable[[_Function], _Function]:
    """The option `--format`, with `more` formats than the usual ones."""
    choice = click.Choice(["table", "json", "csv", "md", *more])
    return click.option("--format", "form", type=choice, help="Default: table on a terminal, else csv.")


def chosen_format(form: str | None, output: Path | None = None) -> str:
    """The format that was named; else a table for a person, CSV for a pipe or a file."""
    return form or ("table" if output is None and on_terminal("stdout") else "csv")


def open_session(policy: Path | None) -> Session:
    """The session of a policy file; its ledger must exist."""
    from hubbub.session import Session

    return Session.from_policy(policy)


def open_ledger(policy: Path | None, ledger: Path | None) -> Ledger:
    """The ledger, for reading: the one named, or that of the policy file."""
    from hubbub.ledger.policy import find_policy, load_policy
    from hubbub.ledger.store import Ledger

    return Ledger.inspect(ledger or load_policy(policy or find_policy()).ledger)


def write(text: str, output: Path | None) -> None:
    """Data as text: to stdout, or to a file."""
    if output is None:
        click.echo(printable(text) if on_terminal("stdout") else text)
    else:
        output.write_text(text + "\n", encoding="utf-8")
