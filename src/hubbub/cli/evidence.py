"""`hubbub evidence`: what an auditor takes away, and can check by himself."""

from __future__ import annotations

from pathlib import Path

import click

from hubbub.cli.console import note
from hubbub.cli.options import key_option, ledger_option, open_ledger, policy_option
from hubbub.errors import PolicyError

__all__ = ["command"]


@click.command("evidence")
@click.argument("target", type=click.Path(dir_okay=False, path_type=Path), metavar="OUT.zip")
@click.option("--with-answers", is_flag=True, help="The answers too: what analysts were told, for who may read it.")
@policy_option
@ledger_option
@key_option
def command(target: Path, with_answers: bool, policy: Path | None, ledger: str | None, key_file: Path | None) -> None:
    """Write evidence for an auditor: totals in words, receipts, the chain, policies, and a check that needs no hubbub.

    The same state of the ledger gives the same bytes. Questions are in it with their texts, answers only if you say so.
    """
    from hubbub.ledger.evidence import write_evidence

    with open_ledger(policy, ledger, key_file) as book:
        verified = write_evidence(book, target, with_answers=with_answers)
    note(f"Wrote {target}: the ledger up to line {verified.serial}.")
    if not verified.sound:
        raise PolicyError("the ledger is not what it was, and the evidence says so:\n" + "\n".join(verified.problems))
