"""`hubbub ledger`: the steward's dealings with the ledger."""

from __future__ import annotations

import json
from pathlib import Path

import click

from hubbub.cli.console import note
from hubbub.cli.options import (
    epsilon_option,
    key_option,
    ledger_option,
    manage_ledger,
    me,
    one_space,
    open_ledger,
    output_option,
    policy_option,
    space_option,
)
from hubbub.errors import PolicyError
from hubbub.ledger.budget import decimal_text

__all__ = ["command"]


@click.group("ledger")
def command() -> None:
    """Create, verify, back up and mend the ledger."""


@command.command("create")
@policy_option
def create(policy: Path | None) -> None:
    """Create the ledger that the policy names, with the policy's budget for each unit space, and its limits.

    The budget is the ceiling for everything that is ever asked, and does not change afterwards. A ledger that
    exists already is kept as it is: unit spaces new to it are added, and limits that changed are recorded.
    """
    from hubbub.session import Session

    with Session.from_policy(policy, create_ledger=True) as session:
        ceiling = decimal_text(session.budget.epsilon)
        left = decimal_text(session.remaining)
    note(f"The ledger is ready: epsilon {left} of {ceiling} is left.")


@command.command("verify")
@click.option(
    "--receipt",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    metavar="FILE",
    help="A receipt that was kept: find its links in the chain.",
)
@policy_option
@ledger_option
@key_option
def verify(receipt: Path | None, policy: Path | None, ledger: str | None, key_file: Path | None) -> None:
    """Walk the whole chain: every row, every sum, every life of a charge."""
    try:
        kept = None if receipt is None else json.loads(receipt.read_text("utf-8"))
    except (ValueError, OSError):
        raise PolicyError(f"{receipt} is no receipt: it is not JSON.") from None
    if isinstance(kept, dict) and "receipt" in kept:  # what `hubbub query --format json` wrote
        kept = kept["receipt"]
    with open_ledger(policy, ledger, key_file) as book:
        damage = book.integrity()
        found = book.verify(kept)
    problems = [*([] if damage == "ok" else [f"the file: {damage}"]), *found.problems]
    if problems:
        raise PolicyError("the ledger is not what it was:\n" + "\n".join(problems))
    note(f"The ledger is sound: {found.rows} rows. Head: line {found.serial}, {found.head}.")


@command.command("export")
@output_option
@policy_option
@ledger_option
def export(output: Path | None, policy: Path | None, ledger: str | None) -> None:
    """Every row with its link, as lines of JSON. It holds what was released, and no private row."""
    with open_ledger(policy, ledger) as book:
        if output is None:
            for line in book.export():
                click.echo(line)
            return
        try:
            with output.open("x", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in book.export())
        except FileExistsError:
            raise PolicyError(f"{output} exists and is left as it is. Name another file.") from None


@command.command("backup")
@click.argument("target", type=click.Path(path_type=Path))
@policy_option
@ledger_option
def backup(target: Path, policy: Path | None, ledger: str | None) -> None:
    """Write one whole state of the ledger to the new file TARGET, while others go on.

    Never put it back in the ledger's place: what was spent since would be forgotten.
    """
    with open_ledger(policy, ledger) as book:
        book.backup(target)
    note(f"Wrote {target}.")


@command.command("migrate")
@policy_option
@ledger_option
@key_option
def migrate(policy: Path | None, ledger: str | None, key_file: Path | None) -> None:
    """Bring a ledger of an older hubbub up to date, in one transaction. Asking a question does so too."""
    with manage_ledger(policy, ledger, key_file) as book:
        found = book.verify()
    if not found.sound:
        raise PolicyError("the ledger is not what it was:\n" + "\n".join(found.problems))
    note(f"The ledger is up to date: {found.rows} rows.")


@command.command("unlock")
@click.argument("analyst")
@space_option
@policy_option
@ledger_option
@key_option
def unlock(
    analyst: str, unit_space: str | None, policy: Path | None, ledger: str | None, key_file: Path | None
) -> None:
    """Clear the engine failures of ANALYST, after looking at the incidents."""
    with manage_ledger(policy, ledger, key_file) as book:
        book.unlock(one_space(book, unit_space), analyst, author=me())
    note(f"{analyst} may ask again.")


@command.command("incident")
@click.argument("incident")
@policy_option
@ledger_option
def incident(incident: str, policy: Path | None, ledger: str | None) -> None:
    """What the engine itself said about INCIDENT, for the steward: it may hold private values."""
    with open_ledger(policy, ledger) as book:
        click.echo(book.incident_words(incident))


@command.command("close")
@click.argument("block")
@policy_option
@ledger_option
@key_option
def close(block: str, policy: Path | None, ledger: str | None, key_file: Path | None) -> None:
    """Close the reserved BLOCK of a program that died: what it did not use comes back."""
    with manage_ledger(policy, ledger, key_file) as book:
        book.close_block(block.removeprefix("block:"))
    note("The block is closed; what it did not use came back.")


@command.command("raise")
@epsilon_option
@click.option("--reason", required=True, help="Why, for the record.")
@click.option("--yes", is_flag=True, help="Raise without asking.")
@space_option
@policy_option
@ledger_option
@key_option
def raise_(
    epsilon: str,
    reason: str,
    yes: bool,
    unit_space: str | None,
    policy: Path | None,
    ledger: str | None,
    key_file: Path | None,
) -> None:
    """Raise the ceiling of a unit space to EPSILON: a weaker promise than people were given, on the record."""
    with manage_ledger(policy, ledger, key_file) as book:
        space = one_space(book, unit_space)
        if not yes:
            click.confirm(
                f"The people of {space} were promised {book.budget(space)!r}. Weaken it?", abort=True, err=True
            )
        found = book.raise_ceiling(space, epsilon, author=me(), reason=reason)
    note(f"The ceiling of {space} is {found!r} from now on. Write it into the policy too, and tell the people.")


@command.command("refresh")
@click.argument("table")
@click.option("--reason", default="declared", help="Why, for the record.")
@space_option
@policy_option
@ledger_option
@key_option
def refresh(
    table: str,
    reason: str,
    unit_space: str | None,
    policy: Path | None,
    ledger: str | None,
    key_file: Path | None,
) -> None:
    """Declare that TABLE has new rows: stored answers are not given for them. No budget comes back."""
    with manage_ledger(policy, ledger, key_file) as book:
        version = book.refresh(one_space(book, unit_space), table, reason=reason)
    note(f"{table} has the data version {version}.")
