"""`hubbub synth`: a synthetic table in place of a private one.

TABLE is a private table of the policy file, which declares the domain of its columns, its units and their bounds. All
of it goes through `Session.synthesize`, the one door to private rows: the whole cost is charged before a row is read,
the table is stored in the ledger, then written, and asked for again it is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hubbub.cli.console import note, printable
from hubbub.cli.options import agree, epsilon_option, open_session, policy_option, purpose_option, rows_per_unit_option
from hubbub.cli.standing import left_text
from hubbub.errors import PolicyError
from hubbub.ledger.budget import decimal_text

if TYPE_CHECKING:
    from hubbub.ledger.policy import Policy, TablePolicy
    from hubbub.session.publish import SyntheticTable

__all__ = ["command"]

_SUFFIXES = (".parquet", ".csv")


@click.command("synth")
@click.argument("table", metavar="TABLE")
@epsilon_option
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to write the synthetic table: .parquet or .csv. Without it only the plan is shown.",
)
@policy_option
@purpose_option
@click.option("--columns", metavar="A,B,...", help="These columns only; default: all that are declared.")
@click.option("--edges", multiple=True, metavar="COLUMN=E0,E1,...", help="Bins of a column, instead of equal ones.")
@click.option("--constraint", "constraints", multiple=True, metavar="TEXT", help="'age < 18 implies married = no'.")
@click.option("--target", metavar="COLUMN", help="To be learned from it: say which of its relations are kept.")
@rows_per_unit_option
@click.option("--rows", type=click.IntRange(1), metavar="N", help="How many rows there are, if public; else bought.")
@click.option("--method", default="auto", show_default=True, metavar="NAME", help="How to model the table.")
@click.option("--thorough", is_flag=True, help="Let the slow adaptive method be picked.")
@click.option("--assume-rows", type=click.IntRange(1), default=10_000, show_default=True, help="Rows to predict for.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Draw predicted errors.")
@click.option("--yes", is_flag=True, help="Spend without asking; needed where no person can answer.")
@click.option("--fresh", is_flag=True, help="Draw and charge again, even if a stored table would be free.")
@click.option("--force", is_flag=True, help="Replace the output file if it is there.")
def command(
    table: str,
    epsilon: str,
    output: Path | None,
    policy: Path | None,
    purpose: str | None,
    plot: Path | None,
    assume_rows: int,
    yes: bool,
    fresh: bool,
    force: bool,
    **options: Any,
) -> None:
    """A synthetic table in place of the private TABLE, named by its name or its file, at the cost of --epsilon."""
    from hubbub.ledger.policy import find_policy, load_policy

    read = load_policy(policy or find_policy())
    _check_output(output, read, force=force)
    declared = _table(read, table)
    asked = _arguments(options)
    with open_session(read.path, purpose) as session:
        plan = session.plan_synthesis(declared.name, epsilon=epsilon, assume_rows=assume_rows, **asked)
        if output is None:
            note(str(plan))
            note("Nothing was charged. Name a file with -o to make the synthetic table.")
            return
        if fresh or not plan.stored:
            note(str(plan))
            agree(epsilon, yes=yes)
        made = session.synthesize(declared.name, epsilon=epsilon, fresh=fresh, **asked)
        space = session.ledger.record.receipt(made.charge_id)["unit_space"]
        left = left_text(session.ledger, space, dataset=declared.name, analyst=session.analyst)
    try:
        _write(made, output)
    except OSError as error:
        raise PolicyError(
            f"cannot write {output}: {error.strerror}. The table is stored: ask again, it is free."
        ) from error
    if plot is not None:
        from hubbub.plots import save

        save(made.plot(), str(plot))
    click.echo(printable(made.report))
    said = f"Charged epsilon {decimal_text(made.cost)}; {left}" if made.charged else "Stored: nothing charged; " + left
    note(f"{said} is left. Wrote {output}.")


def _check_output(output: Path | None, policy: Policy, *, force: bool) -> None:
    """Refuse before the charge what would fail, or destroy something, after it."""
    if output is None:
        return
    if output.suffix not in _SUFFIXES:
        raise click.UsageError(f"-o {output}: a synthetic table is written as {' or '.join(_SUFFIXES)}.")
    if not output.parent.is_dir():
        raise click.UsageError(f"-o {output}: there is no folder {output.parent}.")
    sources = [*(t.source for t in policy.tables.values()), *(t.source for t in policy.public.values())]
    if any(isinstance(source, Path) and source.resolve() == output.resolve() for source in sources):
        raise click.UsageError(f"-o {output}: this file is a source of the policy; name another.")
    if output.exists() and not force:
        raise click.UsageError(f"-o {output}: this file exists; add --force to replace it, or name another.")


def _table(policy: Policy, asked: str) -> TablePolicy:
    """The private table of this name, or with this source."""
    if asked in policy.tables:
        return policy.tables[asked]
    place = Path(asked).resolve()
    having = [t for t in policy.tables.values() if isinstance(t.source, Path) and t.source.resolve() == place]
    if len(having) == 1:
        return having[0]
    if having:
        raise PolicyError(
            f"{asked!r} is the source of {', '.join(t.name for t in having)} in {policy.path}; name the table."
        )
    known = ", ".join(f"{t.name} ({getattr(t.source, 'name', t.source)})" for t in policy.tables.values())
    raise PolicyError(
        f"{asked!r} is not a private table of {policy.path}, which declares {known or 'none'}. Declare its columns' "
        "domains there: they are never read from private rows. `hubbub init FILE --unit COLUMN` writes a first policy."
    )


def _arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `Session.synthesize` that these options stand for."""
    return {
        "columns": options["columns"].split(",") if options["columns"] else None,
        "edges": dict(map(_edges, options["edges"])) or None,
        "constraints": options["constraints"],
        "rows_per_unit": options["rows_per_unit"],
        "rows": options["rows"],
        "method": options["method"],
        "thorough": options["thorough"],
        "target": options["target"],
    }


def _edges(text: str) -> tuple[str, list[float]]:
    name, _, numbers = text.partition("=")
    try:
        return name, [float(n) for n in numbers.split(",")]
    except ValueError:
        raise click.UsageError(f"--edges {text}: write COLUMN=E0,E1,... with numbers, ascending.") from None


def _write(made: SyntheticTable, output: Path) -> None:
    if output.suffix == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(made.to_arrow(), output)
    else:
        from hubbub.cli.formats import as_csv

        data = made.to_dict()
        output.write_text(as_csv(list(data), list(zip(*data.values(), strict=True))) + "\n", encoding="utf-8")
