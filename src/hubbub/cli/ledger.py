"""`hubbub ledger`: the steward's dealings with the ledger."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hubbub.cli.console import note
from hubbub.cli.keeping import COMMANDS
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

if TYPE_CHECKING:
    from hubbub.ledger.store import Ledger

__all__ = ["command", "make_ledger"]


@click.group("ledger")
def command() -> None:
    """Create, verify, back up and mend the ledger."""


for _command in COMMANDS:
    command.add_command(_command)


@command.command("create")
@policy_option
def create(policy: Path | None) -> None:
    """Create the ledger that the policy names, with the policy's budget for each unit space, and its limits.

    The budget is the ceiling for everything that is ever asked, and does not change afterwards. A ledger that
    exists already is kept as it is: unit spaces new to it are added, and limits that changed are recorded.
    """
    make_ledger(policy)


def make_ledger(policy: Path | None) -> None:
    """Make the ledger of a policy, or add to it what is new, and say what it holds."""
    from hubbub.session import Session

    with Session.from_policy(policy, create_ledger=True) as session:
        for space in session.ledger.added:
            note(f"A new budget: {session.ledger.balance.budget(space)!r} for the unit space {space!r}.")
        spaces = session.ledger.balance.spaces()
        if session.ledger.added and len(spaces) > 1:
            note(
                f"The ledger holds budgets for {', '.join(map(repr, spaces))}. Be sure that they are about other "
                "people: losses of two unit spaces are not added up."
            )
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
@click.option(
    "--head",
    metavar="N:HASH",
    callback=lambda _context, _option, given: None if given is None else _head(given),
    help="A head that was noted: this line, with this hash (16 characters of it or more), is in the chain.",
)
@click.option(
    "--witness",
    type=click.Path(path_type=Path),
    metavar="PLACE",
    help="What the witness holds, a file or a folder: each line of it is in the chain.",
)
@click.option(
    "--checkpoint",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write where the walk ended to FILE, if nothing was wrong.",
)
@click.option(
    "--from-checkpoint",
    "start",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    metavar="FILE",
    help="Begin where an earlier walk ended, and trust it for what stood before.",
)
@policy_option
@ledger_option
@key_option
def verify(
    receipt: Path | None,
    head: tuple[int, str] | None,
    witness: Path | None,
    checkpoint: Path | None,
    start: Path | None,
    policy: Path | None,
    ledger: str | None,
    key_file: Path | None,
) -> None:
    """Walk the whole chain: every row, every sum, every life of a charge.

    That the chain's end was cut off, or an older copy put back, only a note from outside tells: --receipt, --head,
    --witness, or the policy's anchor.
    """
    try:
        kept = None if receipt is None else json.loads(receipt.read_text("utf-8"))
    except (ValueError, OSError):
        raise PolicyError(f"{receipt} is not a receipt: it is not JSON.") from None
    if isinstance(kept, dict) and "receipt" in kept:  # what `hubbub query --format json` wrote
        kept = kept["receipt"]
    from hubbub.ledger.witness import kept_by_witness

    with open_ledger(policy, ledger, key_file, anchored=False) as book:
        damage = book.record.integrity()
        heads = {} if witness is None else kept_by_witness(witness, book.id)
        verified = book.record.verify(kept, head=head, heads=heads, checkpoint=None if start is None else _text(start))
        if checkpoint is not None and verified.sound and damage == "ok":
            # It will be trusted: for its owner alone.
            with open(checkpoint, "w", encoding="utf-8", opener=lambda name, how: os.open(name, how, 0o600)) as file:
                file.write(book.record.checkpoint(verified))
    problems = [*([] if damage == "ok" else [f"the file: {damage}"]), *verified.problems]
    if problems:
        raise PolicyError("the ledger is not what it was:\n" + "\n".join(problems))
    for line in verified.notes:
        note(f"Note: {line}.")
    note(f"The ledger is sound: {verified.rows} rows. Head: {verified.serial}:{verified.head}")


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (ValueError, OSError):
        raise PolicyError(f"{file} cannot be read as a checkpoint.") from None


def _head(text: str) -> tuple[int, str]:
    """A line and its hash.

    Raises UsageError for anything else.

    >>> _head("17:0123456789abcdef")
    (17, '0123456789abcdef')
    """
    match = re.fullmatch(r"([0-9]{1,18}):([0-9a-f]{16,64})", text.strip())
    if match is None:
        raise click.UsageError("--head: write N:HASH, as `hubbub ledger verify` prints it; 16 characters of it do.")
    return int(match[1]), match[2]


@command.command("anchor")
@click.option("--accept-older", is_flag=True, help="Also where the ledger ends before it: nothing more may be spent.")
@click.option("--yes", is_flag=True, help="Accept an older ledger without asking.")
@click.option("--remove", is_flag=True, help="Let the ledger be opened without its anchor from here on.")
@policy_option
def anchor(accept_older: bool, yes: bool, remove: bool, policy: Path | None) -> None:
    """Make the policy's anchor, the note outside the ledger that shows whether an older copy was put back.

    A ledger that has one is not opened without it; --remove takes that back, on the record.

    With --accept-older the ledger is taken as it is, where newer copies of it are lost. What was spent since is not
    known, so nothing more may be spent until a steward grants it anew (`hubbub grant everyone`).
    """
    from hubbub.ledger.policy import find_policy, load_policy
    from hubbub.ledger.store import Ledger

    policy_file = load_policy(policy or find_policy())
    if remove:
        if accept_older:
            raise click.UsageError("give --remove or --accept-older, not both.")
        with Ledger.manage(
            policy_file.ledger, key=policy_file.key(), anchor=policy_file.anchor, unanchored=True
        ) as book:
            book.steward.remove_anchor(author=me())
        note(f"The ledger has no anchor any more. Take `anchor` out of the policy, and remove {policy_file.anchor}.")
        return
    if accept_older and not yes:
        click.confirm(
            "What was spent since this copy is not known, so nothing more may be spent until a steward grants it anew. "
            "Accept it?",
            abort=True,
            err=True,
        )
    with Ledger.manage(policy_file.ledger, key=policy_file.key(), unanchored=True) as book:
        book.name_anchor(policy_file.anchor)
        line = book.steward.make_anchor(accept_older=accept_older, author=me())
    note(f"The anchor {policy_file.anchor} names line {line} of the ledger.")


@command.command("export")
@output_option
@policy_option
@ledger_option
def export(output: Path | None, policy: Path | None, ledger: str | None) -> None:
    """Every row with its link, as lines of JSON. It holds what was released, and no private row."""
    with open_ledger(policy, ledger) as book:
        if output is None:
            for line in book.record.export():
                click.echo(line)
            return
        try:
            # As the ledger: for its owner alone.
            with open(output, "x", encoding="utf-8", opener=lambda name, how: os.open(name, how, 0o600)) as file:
                file.writelines(f"{line}\n" for line in book.record.export())
        except FileExistsError:
            raise PolicyError(f"{output} exists and is left as it is. Name another file.") from None


@command.command("migrate")
@policy_option
@ledger_option
@key_option
def migrate(policy: Path | None, ledger: str | None, key_file: Path | None) -> None:
    """Bring a ledger of an older hubbub up to date, in one transaction. Asking a question does so too."""
    with manage_ledger(policy, ledger, key_file) as book:
        verified = book.record.verify()
    if not verified.sound:
        raise PolicyError("the ledger is not what it was:\n" + "\n".join(verified.problems))
    note(f"The ledger is up to date: {verified.rows} rows.")


@command.command("unlock")
@click.argument("analyst", required=False)
@click.option("--all", "everybody", is_flag=True, help="The unit space, where too many questions of all failed.")
@click.option("--reason", metavar="TEXT", help="Why; it stands beside your name, in the ledger.")
@space_option
@policy_option
@ledger_option
@key_option
def unlock(
    analyst: str | None,
    everybody: bool,
    reason: str | None,
    unit_space: str | None,
    policy: Path | None,
    ledger: str | None,
    key_file: Path | None,
) -> None:
    """Clear the engine failures of ANALYST, or with --all those that lock a unit space for everybody.

    Look at the incidents first (`hubbub history`): that something failed may tell about the data. Each of the two is a
    record of its own; with --all, analysts at their own limits stay locked. A change of answer times is recorded so,
    too: with --all and a --reason, before the service starts by them.
    """
    if everybody == (analyst is not None):
        raise click.UsageError("name one ANALYST, or give --all.")
    if reason is not None and not reason.strip():
        raise click.UsageError("--reason: say it in a few words.")
    author = me() if reason is None else f"{me()}: {reason.strip()}"
    with manage_ledger(policy, ledger, key_file) as book:
        space = one_space(book, unit_space)
        if analyst is None:
            book.steward.unlock_all(space, author=author)
        else:
            counted = _failures(book, space, analyst)
            book.steward.unlock(space, analyst, author=author)
    note(
        f"{analyst} may ask again. Cleared: {counted}."
        if analyst
        else f"All analysts who are not locked themselves may ask about {space} again."
    )


def _failures(book: Ledger, space: str, analyst: str) -> str:
    """How many failures of an analyst count, in words. Raises UsageError where none of that name failed."""
    counted = {name: count for name, (count, _) in book.balance.failures(space).items() if name is not None}
    if analyst not in counted:
        others = f"those with failures are {', '.join(counted)}" if counted else "nobody's did"
        raise click.UsageError(f"no question of {analyst!r} about {space} failed; {others}. Nothing was recorded.")
    return "1 failure" if counted[analyst] == 1 else f"{counted[analyst]} failures"


@command.command("incident")
@click.argument("incident")
@policy_option
@ledger_option
def incident(incident: str, policy: Path | None, ledger: str | None) -> None:
    """What the engine itself said about INCIDENT, for the steward: it may hold private values."""
    with open_ledger(policy, ledger) as book:
        click.echo(book.record.incident_words(incident))


@command.command("close")
@click.argument("block")
@policy_option
@ledger_option
@key_option
def close(block: str, policy: Path | None, ledger: str | None, key_file: Path | None) -> None:
    """Close the reserved BLOCK of a program that died: what it did not use comes back."""
    with manage_ledger(policy, ledger, key_file) as book:
        book.charges.close_block(block.removeprefix("block:"))
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
                f"The people of {space} were promised {book.balance.budget(space)!r}. Weaken it?", abort=True, err=True
            )
        raised = book.steward.raise_ceiling(space, epsilon, author=me(), reason=reason)
    note(f"The ceiling of {space} is {raised!r} from now on. Write it into the policy too, and tell the people.")


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
    """Declare that TABLE has new rows: stored answers are not given for them. No budget comes back.

    Where the policy says rows_kept, the copy that questions read is written first.
    """
    with manage_ledger(policy, ledger, key_file) as book:
        space = one_space(book, unit_space)
        if ledger is None:
            _copy(policy, table)
        version = book.steward.refresh(space, table, reason=reason)
    note(f"{table} has the data version {version}.")


def _copy(policy: Path | None, table: str) -> None:
    """Write the copy that questions about a table read, if there is to be one."""
    from hubbub.ledger.policy import find_policy, load_policy
    from hubbub.session.copies import write_copy

    write_copy(load_policy(policy or find_policy()), table)
