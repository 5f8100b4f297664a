"""`hubbub collect`: sums over people whom no single company can look at.

hubbub collect create survey --length 4 --epsilon 1 --budget 3
hubbub collect client --task survey/task.json answers.txt -o one.reports
hubbub collect leader survey/leader --inbox in --outbox out
hubbub collect helper survey/helper --inbox in --outbox out
hubbub collect collector survey/collector --from 1764000000 --to 1764003600 --outbox out
"""

from __future__ import annotations

import json
import time as clock
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from hubbub.collect.aggregators import Helper, Leader

__all__ = ["command"]

DOES_NOT_HOLD: Final = 3
"""The exit code where a vector does not hold, or a message was refused."""

_folder = click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
_inbox = click.option(
    "--inbox", required=True, type=click.Path(file_okay=False, path_type=Path), help="The folder to read messages from."
)
_outbox = click.option(
    "--outbox", required=True, type=click.Path(file_okay=False, path_type=Path), help="The folder to write them to."
)


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
            problems = list(check_vector(read_vector(path)))
        except PolicyError as error:
            problems = [f"it cannot be checked: {error}"]
        click.echo(f"{path.name}: {'; '.join(problems) or 'holds'}")
        failed += bool(problems)
    return DOES_NOT_HOLD if failed else 0


@command.command("create")
@_folder
@click.option("--largest", type=int, help="Numbers from 0 to this: the circuit Sum, or SumVec with --length.")
@click.option("--length", type=int, help="So many buckets (Histogram), or places of a vector.")
@click.option("--most", type=int, help="Vectors of 0 and 1 with at most so many ones: MultihotCountVec, with --length.")
@click.option("--epsilon", help="What one report costs, at discrete Laplace noise.")
@click.option("--rho", help="Or at discrete Gaussian noise, in zCDP.")
@click.option("--budget", required=True, help="The epsilon that each aggregator may spend on its clients in all.")
@click.option("--delta", help="The delta beside it, where --rho is given.")
@click.option("--reports-per-client", default=1, show_default=True, help="That one client may send for a batch.")
@click.option("--min-batch", default=100, show_default=True, help="Release no batch of fewer reports.")
@click.option("--window", default=3600, show_default=True, help="Seconds; batches are of whole windows.")
def create_command(
    folder: Path,
    largest: int | None,
    length: int | None,
    most: int | None,
    epsilon: str | None,
    rho: str | None,
    budget: str,
    delta: str | None,
    reports_per_client: int,
    min_batch: int,
    window: int,
) -> None:
    """Make a task, and the folders of its three parties. Without --length and --largest: Count."""
    from hubbub.collect import PrivateSum
    from hubbub.collect.create import create
    from hubbub.ledger.budget import Budget

    plan = PrivateSum(_circuit(largest, length, most), epsilon=epsilon, rho=rho)
    task = create(
        folder,
        plan,
        budget=Budget(budget, delta),
        reports_per_client=reports_per_client,
        min_batch=min_batch,
        window=window,
    )
    click.echo(
        f"{plan.circuit.name}, task {task.id.hex()[:16]}; a total is within {plan.error.half_width(0.95):,} at 95 %"
    )
    click.echo(
        f"give {folder}/leader, {folder}/helper and {folder}/collector each to its party, and task.json to clients"
    )


def _circuit(largest: int | None, length: int | None, most: int | None) -> Any:
    import math

    from hubbub.collect.circuits import circuit

    parameters: dict[str, int] = {}
    if length is not None:
        bits = 1 if largest is None else max(1, largest.bit_length())
        parameters = {"length": length, "chunk_length": max(1, math.isqrt(max(1, length * bits)))}
    if largest is not None:
        parameters["max_measurement"] = largest
    if most is not None:
        parameters["max_weight"] = most
    return circuit(parameters)


@command.command("client")
@click.argument("source", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--task", "task_file", required=True, type=click.Path(dir_okay=False, path_type=Path), help="task.json.")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="NAME.reports")
@click.option("--time", type=int, help="Seconds since 1970; now, unless given.")
def client_command(source: Path, task_file: Path, output: Path, time: int | None) -> None:
    """Make reports of the measurements in SOURCE: one a line, a number, or a list such as [0, 1, 0]."""
    from hubbub.collect.client import write_reports
    from hubbub.collect.task import read_task

    task = read_task(task_file)
    n = write_reports(task, _measurements(source), int(clock.time()) if time is None else time, output)
    click.echo(f"{n:,} reports written to {output}", err=True)


def _measurements(source: Path) -> Iterator[Any]:
    from hubbub.errors import PolicyError, QueryError

    try:
        with source.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    try:
                        yield json.loads(line)
                    except (ValueError, RecursionError):
                        raise QueryError(f"line {number} of {source} is neither a number nor a list of them.") from None
    except (OSError, UnicodeDecodeError):
        raise PolicyError(f"{source} cannot be read as lines of text.") from None


@command.command("leader")
@_folder
@_inbox
@_outbox
def leader_command(folder: Path, inbox: Path, outbox: Path) -> int:
    """Take up reports, answers and queries; write jobs, batches and the leader's shares.

    May be killed and run again at any moment: no report is lost or counted twice. Exit code 3 if a message was refused.
    """
    from hubbub.collect.aggregators import Leader

    return _work(Leader(folder, int(clock.time())), inbox, outbox)


@command.command("helper")
@_folder
@_inbox
@_outbox
def helper_command(folder: Path, inbox: Path, outbox: Path) -> int:
    """Take up jobs and batches; write answers and the helper's shares.

    May be killed and run again at any moment: no report is lost or counted twice. Exit code 3 if a message was refused.
    """
    from hubbub.collect.aggregators import Helper

    return _work(Helper(folder), inbox, outbox)


def _work(party: Leader | Helper, inbox: Path, outbox: Path) -> int:
    refused = 0
    try:
        for name, refusal in party.work(inbox, outbox):
            if refusal:
                refused += 1
                shown = "".join(c if c.isprintable() else "?" for c in f"{name}: {refusal}")
                click.echo(shown, err=True)
        left_out = ", ".join(f"{count:,} {reason}" for reason, count in party.store.dropped().items())
        click.echo(f"{party.store.counted():,} reports counted; left out: {left_out or 'none'}", err=True)
    finally:
        party.close()
    return DOES_NOT_HOLD if refused else 0


@command.command("collector")
@_folder
@click.argument("shares", nargs=-1, type=click.Path(dir_okay=False, path_type=Path), metavar="[SHARE...]")
@click.option("--from", "low", type=int, help="The start of the batch, in seconds since 1970.")
@click.option("--to", "high", type=int, help="Its end.")
@click.option("--outbox", type=click.Path(file_okay=False, path_type=Path), help="The folder to write the query to.")
@click.option("--level", default=0.95, show_default=True, help="The level of the intervals.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def collector_command(
    folder: Path,
    shares: tuple[Path, ...],
    low: int | None,
    high: int | None,
    outbox: Path | None,
    level: float,
    form: str,
) -> None:
    """Ask for a batch (--from, --to, --outbox), or show its total from the two SHAREs."""
    from hubbub.collect.collector import ask, collect

    if not shares:
        if low is None or high is None or outbox is None:
            raise click.UsageError("give the two .share files; or, to ask for a batch, --from, --to and --outbox.")
        click.echo(f"query written to {ask(folder, low, high, outbox)}", err=True)
        return
    total = collect(folder, list(shares))
    width = total.half_width(level)
    if form == "json":
        click.echo(json.dumps({"reports": total.reports, "totals": total.values, "half_width": width, "level": level}))
        return
    click.echo(f"{total.reports:,} reports; each total is within {width:,} of the truth at {level:.0%}")
    for place, value in enumerate(total.values):
        click.echo(f"{place}\t{value}")
