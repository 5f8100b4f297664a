"""`hubbub survey`: plan a survey, randomise answers, add reports up.

hubbub survey plan --categories never,once,often --epsilon 1 --within 0.02 --spec survey.json
hubbub survey privatize --spec survey.json --column answer answers.csv -o reports.jsonl
hubbub survey aggregate --spec survey.json reports.jsonl --plot shares.png
"""

from __future__ import annotations

import csv
import json
import sys
from typing import Any

import click

__all__ = ["command"]


@click.group("survey")
def command() -> None:
    """Ask a question where nobody has to be trusted: plan, privatize, aggregate."""


@command.command("plan")
@click.option("--categories", required=True, help="The answers, separated by commas, or how many there are.")
@click.option("--epsilon", required=True, help="What one report may cost its person.")
@click.option("--within", default="0.02", show_default=True, help="The error of a share to stay within.")
@click.option("--level", default=0.95, show_default=True, help="With which probability.")
@click.option("--spec", "path", type=click.Path(dir_okay=False), help="Write the specification to this file.")
def plan_command(categories: str, epsilon: str, within: str, level: float, path: str | None) -> None:
    """How many people to ask, and the specification that clients and server share."""
    from hubbub.local.files import write_specification
    from hubbub.local.survey import plan

    answers: Any = int(categories) if categories.isdecimal() else [c.strip() for c in categories.split(",")]
    choice = plan(epsilon, answers, within=within, level=level)
    oracle = choice.oracle
    click.echo(f"{oracle.name}, {oracle.size} categories, epsilon {float(oracle.epsilon):g} a report")
    click.echo(f"ask {choice.n:,} people: each share within +-{choice.within:g} of the population's, at {level:.0%}")
    click.echo(
        f"    {choice.n_respondents:,} for the share among those asked; {choice.n_without_privacy:,} without privacy"
    )
    size = f"{oracle.report_bytes} byte{'' if oracle.report_bytes == 1 else 's'}"
    click.echo(f"each report is {size}; one dishonest report can change a count by at most {oracle.influence:.2f}")
    if path:
        write_specification(oracle, path)
        click.echo(f"specification written to {path}", err=True)


@command.command("privatize")
@click.argument("source", type=click.Path(dir_okay=False))
@click.option("--spec", "path", required=True, type=click.Path(dir_okay=False), help="The specification.")
@click.option("--column", required=True, help="The column with the answers.")
@click.option("-o", "--output", "target", required=True, type=click.Path(dir_okay=False), help=".jsonl or .arrow")
@click.option("--unknown", help="The category that answers outside the list count as.")
def privatize_command(source: str, path: str, column: str, target: str, unknown: str | None) -> None:
    """Randomise a CSV column: one report for each row."""
    from hubbub.local.files import privatize_file, read_specification

    n = privatize_file(read_specification(path), source, column, target, unknown=unknown)
    click.echo(f"{n:,} reports written to {target}", err=True)


@command.command("aggregate")
@click.argument("sources", nargs=-1, required=True, type=click.Path(dir_okay=False))
@click.option("--spec", "path", required=True, type=click.Path(dir_okay=False), help="The specification.")
@click.option("--level", default=0.95, show_default=True, help="The level of the intervals.")
@click.option("--project", is_flag=True, help="Also show shares moved to the nearest distribution.")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@click.option("--plot", "picture", type=click.Path(dir_okay=False), help="Write a picture of the shares.")
def aggregate_command(
    sources: tuple[str, ...], path: str, level: float, project: bool, form: str, picture: str | None
) -> None:
    """Add reports up: estimated shares with intervals."""
    from hubbub.local.files import aggregate_file, read_specification

    oracle = read_specification(path)
    estimate = sum((aggregate_file(oracle, source) for source in sources), oracle.empty()).estimate()
    low, high = estimate.interval(level)
    projected = estimate.projected() if project else None
    rows = [
        {
            "category": label,
            "share": float(estimate.shares[i]),
            "low": float(low[i]),
            "high": float(high[i]),
            **({} if projected is None else {"projected": float(projected[i])}),
        }
        for i, label in enumerate(estimate.categories)
    ]
    _show(rows, form)
    click.echo(f"{estimate.n:,} reports, {estimate.dropped:,} dropped; intervals at {level:.0%}", err=True)
    if picture:
        from hubbub import plots

        plots.save(estimate.plot(level), picture)
        click.echo(f"picture written to {picture}", err=True)


def _show(rows: list[dict[str, Any]], form: str) -> None:
    if form == "json":
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    if form == "csv":
        writer = csv.DictWriter(sys.stdout, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return
    width = max(8, *(len(str(row["category"])) for row in rows))
    names = [name for name in rows[0] if name != "category"]
    click.echo("  ".join(["category".ljust(width), *(name.rjust(9) for name in names)]))
    for row in rows:
        click.echo("  ".join([str(row["category"]).ljust(width), *(f"{row[name]:9.4f}" for name in names)]))
