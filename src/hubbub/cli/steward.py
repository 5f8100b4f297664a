"""`hubbub steward`: what only somebody who may see rows may run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hubbub.addresses import ObjectAddress
from hubbub.cli.console import note, on_terminal
from hubbub.cli.options import policy_option, show
from hubbub.errors import PolicyError

if TYPE_CHECKING:
    from hubbub.engines.duckdb.inspect import TableReport
    from hubbub.ledger.policy import Policy
    from hubbub.tables.declare import PrivateTable

__all__ = ["command"]


@click.group("steward")
def command() -> None:
    """What a steward may ask of the rows themselves. Not for analysts."""


@command.command("check-data")
@click.argument("names", nargs=-1, metavar="[TABLE]...")
@click.option("--may-see-rows", is_flag=True, help="Say that you are permitted to see the rows themselves.")
@policy_option
@click.option("--format", "form", type=click.Choice(["table", "json", "csv", "md"]), default="table")
def check_data(names: tuple[str, ...], may_see_rows: bool, policy: Path | None, form: str) -> None:
    """How many values of each column fail, are outside what is declared, or are NULL: none, below 1 %, to 10 %, more.

    For a steward who is permitted to see the rows; nothing here is private. It charges nothing, since it answers no
    analyst, shows no value and writes no file.
    """
    from hubbub.engines.duckdb.inspect import inspect_rows
    from hubbub.ledger.policy import find_policy, load_policy

    policy_file = load_policy(policy or find_policy())
    for name in names:
        if name not in policy_file.tables:
            raise PolicyError(f"the policy has no private table {name!r}; it has {', '.join(policy_file.tables)}.")
    _permitted(may_see_rows)
    rows = []
    for name in names or tuple(policy_file.tables):
        with _on_this_machine(policy_file, name) as declared:
            if declared is None:
                note(f"{name}: its rows are in a database; ask there.")
                continue
            report = inspect_rows(name, declared)
        if said := _about(report):
            note(said)
        rows += [(name, c.name, c.kind, c.null, c.failing, c.outside or "") for c in report.columns]
    show(("table", "column", "kind", "null", "failing", "outside"), rows, form, right=[False] * 6)
    note(
        "This was taken from the rows, for a steward alone: do not pass it on. If you now change what is declared of a "
        "table, add looked_at_rows = true to its section of the policy: what follows from a look is outside the proof, "
        "and receipts then say so."
    )


def _permitted(said: bool) -> None:
    """Raises PolicyError where nobody says that he may see the rows."""
    if said:
        return
    if not on_terminal("stdin"):
        raise PolicyError("this looks at the rows themselves; say that you are permitted to see them: --may-see-rows.")
    if not click.confirm("This looks at the rows themselves. Are you permitted to see them?", err=True):
        raise PolicyError("nothing was read.")


@contextlib.contextmanager
def _on_this_machine(policy: Policy, name: str) -> Iterator[PrivateTable | None]:
    """A table whose rows can be read here: a file, or a copy of an object, which goes afterwards. None for others."""
    from hubbub.engines.objects.copies import copied
    from hubbub.session.open import private_of

    declared = private_of(policy.tables[name])
    if isinstance(declared.source, ObjectAddress):
        with copied(declared.source, csv=declared.csv is not None) as copy:
            yield replace(declared, source=str(copy))
    else:
        yield declared if isinstance(declared.source, str) else None


def _about(report: TableReport) -> str | None:
    if report.left_out in (None, "none"):
        return None
    return (
        f"{report.name}: {report.left_out} of its lines are not rows: they have another number of fields, or a quote "
        "that is not closed."
    )
