"""`hubbub query`: ask a question, privately.

The question is checked first, so that the prompt can say what it costs and what is left; a stored answer is free
and needs no consent. The answer's columns come with `<column>_low` and `<column>_high` in CSV, JSON, Arrow and
Parquet, and as `value ± half-width` in a table and in Markdown.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from hubbub.arguments import RELIABLE, a_share
from hubbub.cli.console import INTERRUPTED, note, on_terminal, show_table
from hubbub.cli.formats import as_csv, as_json, as_markdown
from hubbub.cli.options import (
    chosen_format,
    format_option,
    open_session,
    output_option,
    params_option,
    policy_option,
    purpose_option,
    question_options,
    question_text,
    terms_given,
    terms_options,
    write,
)
from hubbub.cli.standing import left_after, more_like
from hubbub.errors import PolicyError
from hubbub.ledger.budget import decimal_text, short_text

if TYPE_CHECKING:
    from hubbub.answer.release import Release
    from hubbub.session import Session

__all__ = ["agree", "command", "say_cost", "show_release"]

BINARY = ("arrow", "parquet")


@click.command("query")
@question_options
@params_option
@terms_options
@policy_option
@purpose_option
@click.option("--yes", is_flag=True, help="Spend without asking; needed where no person can answer.")
@click.option("--fresh", is_flag=True, help="Draw and charge again, even if a stored answer would be free.")
@format_option(*BINARY)
@click.option(
    "--level", type=float, default=0.95, show_default=True, help="How likely the intervals hold the bounded truth."
)
@click.option(
    "--reliable",
    type=float,
    default=0.3,
    show_default=True,
    help="In a table, mark with ~ what is off by more than this part of it.",
)
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.svg", help="Draw the answer as well."
)
@output_option
def command(
    sql: str | None,
    file: Path | None,
    params: dict[str, object],
    policy: Path | None,
    purpose: str | None,
    yes: bool,
    fresh: bool,
    form: str | None,
    level: float,
    reliable: float,
    plot: Path | None,
    output: Path | None,
    **terms: Any,
) -> None:
    """Ask the question SQL, privately, at the cost of --epsilon (or --rho, or --within)."""
    asked, given = question_text(sql, file), terms_given(terms, params)
    chosen = chosen_format(form, output)
    _check_output(chosen, level, reliable, output)
    _check_plot(plot)
    with open_session(policy, purpose) as session:
        agree(session, asked, yes=yes, fresh=fresh, **given)
        release = session.sql(asked, fresh=fresh, **given)
        left, more = left_after(session, release), more_like(session, release)
    try:
        show_release(release, chosen, level, output, reliable=reliable)
        if plot is not None:
            release.plot(level=level).save(plot)
            note(f"Drew {plot}.")
    except OSError as error:
        if output is None and plot is None:
            raise
        file = error.filename or output or plot
        raise PolicyError(
            f"cannot write {file}: {error.strerror}. The answer is stored: ask again, it is free."
        ) from error
    say_cost(release, left, more)


def say_cost(release: Release, left: str | None, more: str = "") -> None:
    """What an answer cost, and what is left for others like it (`left_after`, `more_like`)."""
    for told in release.text.remarks:
        note(told)
    if left is None:
        note("Public tables only: free.")
    elif release.charged:
        note(f"Charged epsilon {decimal_text(release.cost)}; {left} is left{more}. Asked again, it is free.")
    else:
        note(f"A stored answer: nothing charged; epsilon {left} is left{more}.")


def _check_output(form: str, level: float, reliable: float, output: Path | None) -> None:
    """Refuse before the charge what would fail after it."""
    a_share(reliable)
    if not 0 < level < 1:
        raise click.UsageError(f"--level {level}: allowed is a number between 0 and 1, such as 0.95.")
    if form in BINARY and output is None and on_terminal("stdout"):
        raise click.UsageError(f"--format {form} is binary: name a file with -o, or redirect stdout.")
    if output is not None and not output.parent.is_dir():
        raise click.UsageError(f"-o {output}: there is no folder {output.parent}.")


def _check_plot(plot: Path | None) -> None:
    if plot is not None and plot.suffix.lower() != ".svg":
        raise click.UsageError(f"--plot {plot}: a picture of an answer is SVG. Use a name that ends in .svg.")
    if plot is not None and not plot.parent.is_dir():
        raise click.UsageError(f"--plot {plot}: there is no folder {plot.parent}.")


def agree(session: Session, sql: str, *, yes: bool, fresh: bool, **given: Any) -> None:
    """Check the question, and get consent for what it costs. yes: it is given; asking does the same checks."""
    if yes:
        return
    check = session.check(sql, **given)
    free = (check.stored and not fresh) or not check.epsilon
    if free or not check.affordable:  # what is not affordable is refused by the session, with its reasons
        return
    if not on_terminal("stdin"):
        raise click.UsageError(
            f"this question costs epsilon {decimal_text(check.epsilon)} of the {short_text(check.left)} left, "
            "and nobody is there to agree: add --yes."
        )
    asked = f"This costs epsilon {decimal_text(check.epsilon)} of the {short_text(check.left)} left. Ask?"
    if not click.confirm(asked, err=True):
        note("Not asked; nothing was charged.")
        raise click.exceptions.Exit(INTERRUPTED)


def show_release(release: Release, form: str, level: float, output: Path | None, *, reliable: float = RELIABLE) -> None:
    """An answer in one of the formats, to stdout or to a file; beside a file of CSV, what it cannot say itself."""
    from hubbub.answer.release import text_table

    match form:
        case "table" if output is None:
            show_table(release.columns, release.text.rows(level, reliable=reliable), right=_right(release, level))
        case "table":
            shown = text_table(release.columns, release.text.rows(level, reliable=reliable))
            write("\n".join([shown, *release.text.remarks]), output)
        case "md":
            rows = release.text.rows(level, reliable=reliable)
            shown = as_markdown(release.columns, rows, right=_right(release, level))
            write("\n\n".join([shown, *(remark for remark in release.text.remarks)]), output)
        case "csv":
            table = release.intervals(level)
            write(as_csv(table.column_names, [list(row.values()) for row in table.to_pylist()]), output)
            if output is not None:
                write(as_json(_beside(release, level, output)), output.with_name(f"{output.name}-metadata.json"))
        case "json":
            write(as_json(_document(release, level)), output)
        case _:
            _write_binary(release, form, level, output)


def _right(release: Release, level: float) -> list[bool]:
    """Which columns are numbers, by their being estimates."""
    estimates = release.error.half_widths(level)
    return [name in estimates for name in release.columns]


def _beside(release: Release, level: float, output: Path) -> dict[str, object]:
    """What a file of CSV cannot say itself, under the name that "CSV on the Web" looks for (W3C 2015, section 5.3)."""
    context = "http://www.w3.org/ns/csvw"
    return {"@context": context, "url": output.name, "notes": list(release.text.remarks)} | _about(release, level)


def _about(release: Release, level: float) -> dict[str, object]:
    return {
        "level": level,
        "cost": release.cost,
        "charged": release.charged,
        "charge": release.charge_id,
        "bounded": release.text.bounded,
        "receipt": dict(release.receipt),
    }


def _document(release: Release, level: float) -> dict[str, object]:
    return {"rows": release.intervals(level).to_pylist(), **_about(release, level), "notes": release.text.notes}


def _write_binary(release: Release, form: str, level: float, output: Path | None) -> None:
    if output is None:
        sys.stdout.flush()
        _stream(release, form, level, sys.stdout.buffer)
    else:
        with output.open("wb") as file:
            _stream(release, form, level, file)


def _stream(release: Release, form: str, level: float, file: BinaryIO) -> None:
    """Parquet, or an Arrow IPC stream, which `pyarrow.ipc.open_stream` and `polars.read_ipc_stream` read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = release.intervals(level).replace_schema_metadata({"hubbub.notes": "\n".join(release.text.remarks)})
    if form == "parquet":
        held = io.BytesIO()  # Parquet wants to know where it stands, which a pipe cannot say
        pq.write_table(table, held)
        file.write(held.getvalue())
        return
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
