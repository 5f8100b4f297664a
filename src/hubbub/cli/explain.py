"""`hubbub explain`: what an epsilon means for one person, in numbers and words."""

from __future__ import annotations

from pathlib import Path

import click

from hubbub.cli.console import note, printable

__all__ = ["command"]


@click.command("explain")
@click.option("--epsilon", required=True, metavar="NUMBER", help="The epsilon to explain.")
@click.option("--delta", default="0", show_default=True, metavar="NUMBER", help="The delta beside it.")
@click.option("--prior", metavar="P", help="What an attacker believed before, between 0 and 1.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw it as well, into a .png, .svg or .pdf file; needs the extra plot.",
)
def command(epsilon: str, delta: str, prior: str | None, plot: Path | None) -> None:
    """What an epsilon means for one person: odds, an attacker's best guess, and a bet."""
    from hubbub.accounting import meaning

    click.echo(printable(meaning.explain(epsilon, delta, prior)))
    if plot is not None:
        from hubbub.plots import save

        save(meaning.plot(epsilon, delta), str(plot))
        note(f"Drew {plot}.")
