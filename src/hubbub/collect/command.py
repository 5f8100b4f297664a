"""`hubbub collect`: sums over people whom no single company can look at."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

__all__ = ["command"]

DOES_NOT_HOLD: Final = 3
"""The exit code where a vector does not hold, or is none."""


@click.group("collect")
def command() -> None:
    """Sums over people without a centre that has to be trusted."""


@command.command("check-vectors")
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE...")
def check_vectors(files: tuple[Path, ...]) -> int:
    """Replay test vectors of draft-irtf-cfrg-vdaf-20: Prio3's, and XofTurboShake128's.

    A line for each file; exit code 0 if all of them hold, 3 if one does not or cannot be checked.
    """
    from hubbub.collect.vectors import check_vector, read_vector
    from hubbub.errors import PolicyError

    failed = 0
    for path in files:
        try:
            found = list(check_vector(read_vector(path)))
        except PolicyError as error:
            found = [f"it cannot be checked: {error}"]
        click.echo(f"{path.name}: {'; '.join(found) or 'holds'}")
        failed += bool(found)
    return DOES_NOT_HOLD if failed else 0
