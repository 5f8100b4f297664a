"""`hubbub policy`: check a policy file, say what changed between two, or in the sources, write its JSON Schema."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hubbub.addresses import read_address
from hubbub.cli.console import note, printable
from hubbub.cli.formats import as_json
from hubbub.cli.options import ledger_option, open_ledger, output_option, policy_option, write
from hubbub.errors import PolicyError
from hubbub.file_formats import several_files

if TYPE_CHECKING:
    from hubbub.ledger.policy import Policy

__all__ = ["command"]


@click.group("policy")
def command() -> None:
    """Check a policy file, compare two versions, write its JSON Schema."""


@command.command("check")
@policy_option
def check(policy: Path | None) -> None:
    """Read the policy file and its sources' schemas, and see whether the ledger agrees. Reads no rows."""
    from hubbub.ledger.policy import find_policy, load_policy
    from hubbub.session import Session
    from hubbub.session.open import agree_on_sources, declared_tables, reach

    policy_file = load_policy(policy or find_policy())
    if _is_made(policy_file.ledger):
        given: dict[str, Any] = {"budget": policy_file.budget, "ledger": policy_file.ledger, "_policy": policy_file}
        Session(declared_tables(policy_file), **given, _create_ledger=False, _notes=False).close()
        note(f"{policy_file.path} is sound, and its ledger agrees.")
        return
    for name, source in policy_file.files():
        if not (source.exists() or several_files(source)):
            raise PolicyError(f"{policy_file.path}: the source of {name!r} is missing: {source}.")
    agree_on_sources(policy_file, {table.name: reach(table) for table in policy_file.remote()})
    note(f"{policy_file.path} is sound. Its ledger is not there yet: hubbub ledger create")


def _is_made(ledger: Path | str) -> bool:
    """False only where it is certain that no ledger was made there; else opening it says what is wrong."""
    if isinstance(ledger, Path):
        return ledger.exists()
    with suppress(Exception):  # whose text may hold the address; opening the ledger fails in our words
        import psycopg

        with psycopg.connect(read_address(ledger), connect_timeout=30, application_name="hubbub") as connection:
            return bool(connection.execute("SELECT to_regclass('hubbub.version')").fetchone() != (None,))
    return True


@command.command("diff")
@click.argument("old")
@click.argument("new", required=False)
@policy_option
@ledger_option
def diff(old: str, new: str | None, policy: Path | None, ledger: str | None) -> None:
    """What changed from OLD to NEW (default: the policy file of this folder), in words.

    Each is a file, or the beginning of the hash of a policy that the ledger remembers (`hubbub receipt` shows it).
    """
    from hubbub.ledger.difference import differences
    from hubbub.ledger.policy import find_policy, load_policy

    present = load_policy(policy or find_policy()) if new is None or policy is not None else None
    before = _version(old, policy, ledger)
    after = _version(new, policy, ledger) if new is not None else present
    assert after is not None
    changed = differences(before, after)
    for line in changed:
        click.echo(printable(line))
    if not changed:
        note("Nothing changed but comments and order.")


def _version(named: str, policy: Path | None, ledger: str | None) -> Policy:
    from hubbub.ledger.policy import find_policy, load_policy, read_policy

    if Path(named).is_file():
        return load_policy(named)
    with open_ledger(policy, ledger) as book:
        text = book.record.policy_text(named)
    return read_policy(text, (policy or find_policy()).absolute())


@command.command("drift")
@policy_option
def drift(policy: Path | None) -> None:
    """What moved in the sources since the policy was written: columns that went, came, or hold another type.

    Reads schemas, no rows. Exit code 3 where a question would be refused for it.
    """
    from hubbub.ledger.policy import find_policy, load_policy
    from hubbub.session.drift import drifted

    policy_file = load_policy(policy or find_policy())
    moved = drifted(policy_file)
    for line in (*moved.broken, *moved.new):
        click.echo(printable(line))
    if moved.broken:
        raise PolicyError(f"{len(moved.broken)} of these would refuse questions. Correct {policy_file.path}.")
    note("The sources have every column that the policy names, of a type that fits.")


@command.command("schema")
@output_option
def schema(output: Path | None) -> None:
    """The JSON Schema of hubbub.toml, for editors."""
    from hubbub.ledger.policy_schema import policy_schema

    write(as_json(policy_schema()), output)
