"""`hubbub init`: a commented policy file for one data file, from its column names and types.

No bound or category is ever taken from the rows. Of a CSV up to 256 MiB are looked at for their encoding, where the
header does not tell it; with `--sniff`, rows for their types. The policy then says that the rows were looked at.

What only people can know is left to them: bounds and categories stand as comments to fill in, because to read
them off the rows would publish them. Limits and budget are written as choices, with what they mean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hubbub.cli.console import note, on_terminal
from hubbub.cli.guided import (
    NONE,
    Choices,
    Field,
    ask_choices,
    ask_ledger,
    check_columns,
    choices_options,
    chosen,
    show_prices,
)
from hubbub.cli.init_sources import (
    Source,
    ask_about,
    check_distinct,
    fields_of,
    find_sources,
    public_source,
    with_kinds,
)
from hubbub.cli.ledger import make_ledger
from hubbub.errors import HubbubError, PolicyError
from hubbub.file_formats import Csv
from hubbub.ledger.column_policy import KINDS
from hubbub.ledger.policy import POLICY_NAME, read_policy

__all__ = ["command", "policy_text"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_EXAMPLES = {
    "integer": "{ between = [0, 100] }",
    "number": "{ between = [0.0, 1.0] }",
    "text": '{ one_of = ["A", "B", "C"] }',
    "boolean": "{ one_of = [false, true] }",
    "date": '{ between = ["2025-01-01", "2025-12-31"] }',
    "timestamp": '{ between = ["2025-01-01T00:00:00", "2025-12-31T23:59:59"] }',
}


@click.command("init")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--unit", metavar="COLUMN", help="The column that names who is protected.")
@click.option("--each-row", is_flag=True, help="Protect single rows: right only where nobody has two.")
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME",
    help="Which table of a database, or sheet of a spreadsheet; may be repeated.",
)
@click.option(
    "--public", multiple=True, metavar="FILE", help="A file that protects nobody, to join with; may be repeated."
)
@click.option("--sniff", is_flag=True, help="Guess a CSV's types from its rows: a steward's decision.")
@click.option("--force", is_flag=True, help="Write over a policy under which nothing was charged yet.")
@choices_options
@click.option("--ledger/--no-ledger", default=None, help="Make the ledger too, which fixes the ceiling, or do not.")
@click.option("--yes", is_flag=True, help="Ask nothing: what is not said stays a comment, and the ledger is made.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(POLICY_NAME),
    show_default=True,
    metavar="FILE",
)
def command(
    files: tuple[str, ...],
    unit: str | None,
    each_row: bool,
    tables: tuple[str, ...],
    public: tuple[str, ...],
    sniff: bool,
    force: bool,
    ledger: bool | None,
    yes: bool,
    output: Path,
    **said: Any,
) -> None:
    """Write a commented hubbub.toml for the tables FILE...: names and types, never values.

    FILE is a Parquet file or a folder of them, a CSV, a DuckDB or SQLite file, a spreadsheet, or the address of a
    Postgres database (postgresql://..., env:NAME) with --table. On a terminal, without --unit and --each-row, it asks
    in turn for what only people know. --kind, --values, --bounds and others say it beforehand; --yes asks nothing.
    """
    asking = not yes and unit is None and not each_row and on_terminal("stdin")
    if not asking and each_row == (unit is not None):
        raise click.UsageError("say who is protected: --unit COLUMN for a column that names a person, or --each-row.")
    choices = chosen(**said)
    sources = find_sources(files, tables, unit, output, sniff=sniff, asking=asking)
    sources = [with_kinds(one, choices.kinds) for one in sources]
    _check_kinds(choices, sources)
    if asking:
        sources = [ask_about(one, choices) for one in sources]
        choices = ask_choices(choices, [column for one in sources for column in fields_of(one)])
    check_columns(choices, [column for one in sources for column in fields_of(one)])
    sources += [public_source(file, output, sniff=sniff) for file in public]
    check_distinct(sources)
    looked = "types" if sniff else "the encoding" if any(one.sniffed for one in sources) else ""
    text = "\n".join([_head(choices, looked=looked), *(part for one in sources for part in _parts(one, choices))])
    _check_text(text, output)
    if force:
        _check_unused(output, text)
    _write(text, output, force=force)
    if any(one.types_said for one in sources):
        note(_about_csv(sniffed=sniff, said=bool(choices.kinds) or asking))
    ledger = yes if ledger is None and not asking else ledger
    then = "." if ledger or ledger is None else "; before the first one is asked: hubbub ledger create"
    note(f"Wrote {output}. Read it through, fill in bounds and categories. `hubbub check` then prices questions{then}")
    if choices.columns:
        show_prices(output)
    if ask_ledger(choices.epsilon) if ledger is None else ledger:
        make_ledger(output)


def _check_kinds(choices: Choices, sources: Sequence[Source]) -> None:
    """Raises click's UsageError for a kind of a column that there is not."""
    known = [name for one in sources for name, _ in one.columns]
    for name in choices.kinds:
        if name not in known:
            raise click.UsageError(
                f"no private table has a column {name!r} to give a kind; there are {', '.join(known)}."
            )


def _check_text(text: str, output: Path) -> None:
    """Raises PolicyError, before anything is written, for a policy that could not be read back."""
    from hubbub.session.open import private_of

    for table in read_policy(text, output.absolute()).tables.values():
        private_of(table)


def _write(text: str, output: Path, *, force: bool) -> None:
    try:
        with output.open("w" if force else "x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise PolicyError(
            f"{output} exists and is left as it is. Name another file with -o; --force writes over it while nothing is "
            "charged."
        ) from None
    except OSError as error:
        raise PolicyError(f"cannot write {output}: {error.strerror}.") from error


def _check_unused(output: Path, text: str) -> None:
    """Raises PolicyError where the policy that stands there has a ledger with charges, or one that cannot be read; or
    where its ledger was made with another budget than the new text has.
    """
    if not output.exists():
        return
    from hubbub.ledger.policy import load_policy
    from hubbub.ledger.store import Ledger

    problem = None
    try:
        policy = load_policy(output)
        if isinstance(policy.ledger, Path) and not policy.ledger.exists():
            return
        ledger = Ledger.inspect(policy.ledger, key=policy.key())
        try:
            budgets = {ledger.balance.budget(space) for space in ledger.balance.spaces()}
            if ledger.record.history():
                problem = "its ledger holds charges. Name another file with -o"
            elif budgets - {read_policy(text, output.absolute()).budget}:
                problem = (
                    f"its ledger, {policy.ledger}, was made with another budget, and a ceiling is fixed when a ledger "
                    "is made. Say that budget with --epsilon and --delta; or, as nothing is charged, remove the ledger"
                )
        finally:
            ledger.close()
    except HubbubError:
        problem = "it, or its ledger, cannot be read. Name another file with -o"
    if problem:
        raise PolicyError(f"{output} is left as it is: {problem}.")


def _about_csv(*, sniffed: bool, said: bool) -> str:
    if sniffed:
        return (
            "The types were guessed from the file's rows: a steward's action, as this file may be published. Its "
            "tables are marked looked_at_rows = true, which receipts show."
        )
    if said:
        return "What was not given a kind stands as text in [types]."
    return (
        "A CSV does not say its types: every column stands as text. Correct [types], or say it with --kind "
        "COLUMN=KIND; or run this again with --sniff --force, which guesses types, dates and decimal commas from the "
        "rows: a steward's decision."
    )


def policy_text(source: str, columns: Sequence[tuple[str, str]], *, unit: str | None, table: str | None) -> str:
    """The policy file for one table.

    Args:
        source: the data file, as the policy shall name it.
        columns: name and kind of each column, in order.
        unit: the column that names the protected unit; None for each row.
        table: the table in a DuckDB file.
    """
    one = Source(source, columns, unit, table, types_said=source.lower().endswith(".csv"))
    return "\n".join([_head(NONE), *_parts(one)])


def _parts(one: Source, choices: Choices = NONE) -> list[str]:
    """The sections of a table."""
    name, usable = one.name, fields_of(one)
    section = "public" if one.is_public else "tables"
    head = _public(one) if one.is_public else _table(name, one, choices)
    parts = [head, _csv(section, name, one.csv), _types(section, name, one.columns) if one.types_said else ""]
    return [part for part in (*parts, "" if one.is_public else _domains(name, usable, one.never_null, choices)) if part]


def _public(one: Source) -> str:
    lines = [f"[public.{_key(one.name)}]           # its rows protect nobody, and are answered exactly"]
    lines += [f"source = {_text(one.source)}", *([f"table = {_text(one.table)}"] if one.table is not None else []), ""]
    return "\n".join(lines)


def _csv(section: str, name: str, csv: Csv | None) -> str:
    """How the file is written, where it is not as most are."""
    if csv is None or csv == Csv():
        return ""
    usual = Csv()
    lines = [f"[{section}.{_key(name)}.csv]"]
    for key in ("delimiter", "encoding", "decimal", "thousands"):
        value = getattr(csv, key)
        if value != getattr(usual, key):
            lines.append(f"{key} = {_text(value)}")
    if csv.formats:
        forms = ", ".join(f"{_key(column)} = {_text(form)}" for column, form in csv.formats.items())
        lines.append(f"formats = {{ {forms} }}")
    return "\n".join(lines) + "\n"


_HEAD = """\
# What may be asked, about whom, and how much. Lines that begin with # are comments.
# NOTHING read from the rows, and nothing should be: bounds and categories that are
# taken from the data give the data away.

[ledger]
file = "budget.db"        # every charge is kept here; made by: hubbub ledger create

[budget]
EPSILON # the ceiling for all answers together; fixed when the ledger is made
"""


def _head(choices: Choices, *, looked: str = "") -> str:
    """looked: what was taken from the rows, if anything."""
    budget = f"epsilon = {choices.epsilon}".ljust(25)
    nothing = f"Nothing but {looked} was" if looked else "Nothing here was"
    text = _HEAD.replace("EPSILON", budget).replace("NOTHING", nothing)
    return text if choices.delta is None else f"{text}delta = {choices.delta}\n"


def _table(name: str, one: Source, choices: Choices) -> str:
    unit = one.unit
    who = f"unit = {_text(unit)}" if unit is not None else "each_row = true"
    lines = [f"[tables.{_key(name)}]", f"source = {_text(one.source)}"]
    lines += [f"table = {_text(one.table)}"] if one.table is not None else []
    if one.sniffed:
        lines.append(f"{'looked_at_rows = true'.ljust(25)} # its types or encoding are from the rows; receipts say so")
    lines += [f"{who.ljust(25)} # who is protected: all rows of one {'value' if unit else 'row'} together"]
    if unit is None:
        lines[-1] = f"{who.ljust(25)} # each row is a person; wrong if anyone has two"
        return "\n".join(lines) + "\n"
    lines.append("# Choices, not facts: more counts people more fully, at more noise.")
    if choices.max_groups is None or choices.max_rows is None:
        lines.append('# A number holds for every question; "auto" is found in the charge of each, for a part of it.')
    lines.append(_limit("max_groups", choices.max_groups, "in how many groups of one answer a person counts at most"))
    lines.append(_limit("max_rows", choices.max_rows, "with how many rows a person counts in one group at most"))
    return "\n".join(lines) + "\n"


def _limit(name: str, value: int | None, meaning: str) -> str:
    number = '"auto"' if value is None else value
    return f"{name} = {number}".ljust(25) + f" # {meaning}"


def _types(section: str, name: str, columns: Sequence[tuple[str, str]]) -> str:
    lines = [f"[{section}.{_key(name)}.types]       # {', '.join(KINDS)}"]
    lines += [f"{_key(column)} = {_text(kind if kind in KINDS else 'text')}" for column, kind in columns]
    return "\n".join(lines) + "\n"


def _domains(name: str, columns: Sequence[Field], never_null: frozenset[str], choices: Choices) -> str:
    lines = [
        f"[tables.{_key(name)}.columns]",
        "# A sum or an average needs bounds, a group needs its values. Write what you know beforehand.",
    ]
    if any(column.name in never_null and "between" in _EXAMPLES[column.kind] for column in columns):
        lines.append("# nullable = false: a constraint of the database says so. Counts beside means need less noise.")
    lines += [
        f"{_key(column.name)} = {choices.toml(column)}"
        if column.name in choices.columns
        else f"# {_key(column.name)} = {_example(column.kind, column.name in never_null)}"
        for column in columns
    ]
    return "\n".join(lines) + "\n"


def _example(kind: str, never_null: bool) -> str:
    """What could be declared of a column of a kind. A range may say that the column is never NULL."""
    example = _EXAMPLES[kind]
    return example.replace("] }", "], nullable = false }") if never_null and "between" in example else example


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    """A TOML basic string; JSON's escapes are TOML's, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
