"""`hubbub receipt`: what one charge asked, ran and cost. Kept elsewhere, it shows later that nothing was rewritten."""

from __future__ import annotations

from pathlib import Path

import click

from hubbub.cli.console import note, show_table
from hubbub.cli.formats import as_json
from hubbub.cli.options import key_option, ledger_option, open_ledger, output_option, policy_option, write
from hubbub.errors import PolicyError

__all__ = ["command"]


@click.command("receipt")
@click.argument("charge")
@click.option("--verify", is_flag=True, help="Walk the ledger's chain, and find the receipt's links in it.")
@click.option("--format", "form", type=click.Choice(["json", "table"]), default="json", show_default=True)
@output_option
@policy_option
@ledger_option
@key_option
def command(
    charge: str,
    verify: bool,
    form: str,
    output: Path | None,
    policy: Path | None,
    ledger: str | None,
    key_file: Path | None,
) -> None:
    """What the charge CHARGE asked, ran and cost, and where the ledger's chain stood. The id may be shortened."""
    with open_ledger(policy, ledger, key_file) as book:
        matching = [entry.id for entry in book.record.history() if entry.id.startswith(charge)]
        if len(matching) != 1:
            what = "no charge" if not matching else f"{len(matching)} charges"
            raise PolicyError(
                f"{what} with the id {charge!r} in this ledger. `hubbub history --format csv` lists them."
            )
        receipt = book.record.receipt(matching[0])
        if verify:
            verification = book.record.verify(receipt)
            if not verification.sound:
                raise PolicyError("the ledger is not what it was:\n" + "\n".join(verification.problems))
    if form == "table" and output is None:
        rows = [(key, value if isinstance(value, str) else as_json(value)) for key, value in receipt.items()]
        show_table(("field", "value"), rows, right=(False, False))
    else:
        write(as_json(receipt), output)
    if verify:
        note(f"The chain is sound: {verification.rows} rows, head {verification.head[:16]}.")
