"""`hubbub init`: a commented policy file for one data file, from its column names and types, never its values.

What only people can know is left to them: bounds and categories stand as comments to fill in, because to read
them off the rows would publish them. Limits and budget are written as choices, with what they mean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hubbub.addresses import OBJECTS, ObjectAddress
from hubbub.cli.console import note, on_terminal
from hubbub.cli.guided import NONE, Choices, ask_choices, ask_unit, check_columns, choices_options, chosen, show_prices
from hubbub.cli.sniff import dialect_of, guess_types
from hubbub.errors import HubbubError, PolicyError
from hubbub.file_formats import Csv, kind_of_file, several_files
from hubbub.ledger.policy import KINDS, POLICY_NAME

if TYPE_CHECKING:
    from hubbub.engines.base import Schema

__all__ = ["command", "policy_text"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ELSEWHERE = re.compile(r"postgres(ql)?:|env:|spark:|s3://|gs://")
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
@click.option("--table", metavar="NAME", help="Which table of a database, or sheet of a spreadsheet.")
@click.option(
    "--public", multiple=True, metavar="FILE", help="A file that protects nobody, to join with; may be repeated."
)
@click.option("--sniff", is_flag=True, help="Guess a CSV's types from its rows: a steward's decision.")
@click.option("--force", is_flag=True, help="Write over a policy under which nothing was charged yet.")
@choices_options
@click.option("--yes", is_flag=True, help="Ask nothing: what is not said stays a comment to fill in.")
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
    table: str | None,
    public: tuple[str, ...],
    sniff: bool,
    force: bool,
    yes: bool,
    output: Path,
    **said: Any,
) -> None:
    """Write a commented hubbub.toml for the tables FILE...: names and types, never values.

    FILE is a Parquet file or a folder of them, a CSV, a DuckDB or SQLite file, a spreadsheet, or the address of a
    Postgres database (postgresql://..., env:NAME) with --table. On a terminal, without --unit and --each-row, it asks
    in turn for what only people know. --values, --bounds and others say it beforehand; --yes asks nothing.
    """
    asking = not yes and unit is None and not each_row and on_terminal("stdin")
    if not asking and each_row == (unit is not None):
        raise click.UsageError("say who is protected: --unit COLUMN for a column that names a person, or --each-row.")
    if table is not None and len(files) > 1:
        raise click.UsageError("--table is for one source; write one policy, and paste the other's section into it.")
    choices = chosen(**said)
    sources = [_source(file, table, unit, output, sniff=sniff) for file in files]
    if asking:
        asked = [ask_unit(one.name, one.columns) for one in sources]
        sources = [replace(one, unit=who) for one, who in zip(sources, asked, strict=True)]
        choices = ask_choices(choices, [column for one in sources for column in _usable(one)])
    check_columns(choices, [column for one in sources for column in _usable(one)])
    sources += [_source(file, None, None, output, sniff=sniff, is_public=True) for file in public]
    _distinct(sources)
    text = "\n".join([_head(choices), *(part for one in sources for part in _parts(one, choices))])
    if force:
        _check_unused(output)
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
    if any(one.types_said for one in sources):
        note(_about_csv(sniffed=sniff))
    note(
        f"Wrote {output}. Read it through, fill in bounds and categories. `hubbub check` then prices questions; "
        "before the first one is asked: hubbub ledger create"
    )
    if choices.columns:
        show_prices(output)


@dataclass(frozen=True)
class Source:
    """A table of the policy to be written. source: as the policy shall name it; columns: name and kind, in order.

    never_null: the columns that a constraint of a database keeps from being NULL.
    """

    source: str
    columns: Sequence[tuple[str, str]]
    unit: str | None
    table: str | None = None
    csv: Csv | None = None
    types_said: bool = False
    never_null: frozenset[str] = frozenset()
    is_public: bool = False

    @property
    def name(self) -> str:
        return _table_name(self.source, self.table)


def _source(
    file: str, table: str | None, unit: str | None, output: Path, *, sniff: bool, is_public: bool = False
) -> Source:
    """What can be told of a table without its rows; with `sniff` the types of a CSV, by them."""
    from hubbub.engines.duckdb.relations import describe, never_null
    from hubbub.engines.objects.copies import copied

    if _ELSEWHERE.match(file):
        if is_public:
            raise click.UsageError("a public table is a file; write its rows to one.")
        if file.startswith(OBJECTS):
            with copied(ObjectAddress(file)) as copy:
                return replace(_source(str(copy), table, unit, output, sniff=sniff), source=file)
        there = _schema_there(file, table, unit)
        columns = [(name, kind.value) for name, kind in there.columns.items()]
        return Source(file, columns, unit, table, never_null=there.never_null)
    path = Path(file)
    if not (path.exists() or several_files(path)):
        raise PolicyError(f"there is no file {file!r}.")
    kind = "parquet" if several_files(path) else kind_of_file(path)
    csv = dialect_of(path) if kind == "csv" else None
    columns = describe(path, table, csv)
    if csv is not None and sniff:
        types, csv, unsure = guess_types(path, csv)
        for column in unsure:
            said = f"{column} is taken as {csv.formats[column]}; %m/%d/%Y would fit as well"
            note(f"{file}: {said}. Correct it in the policy if so.")
        columns = list(types.items())
    _check_unit(path, columns, unit)
    written = kind in ("csv", "sheet")
    kept = never_null(path, table) if kind == "duckdb" and table is not None else frozenset[str]()
    return Source(_relative(path, output), columns, unit, table, csv, written, kept, is_public)


def _schema_there(address: str, table: str | None, unit: str | None) -> Schema:
    """The columns of a table that an engine elsewhere holds, by its catalogue."""
    from hubbub.session.open import schema_of
    from hubbub.tables.declare import EACH_ROW, table as declare

    if table is None and not address.startswith("spark:"):
        raise click.UsageError('a database needs the table too: --table "SCHEMA.NAME".')
    declared = declare(address, unit=EACH_ROW if unit is None else unit, table=table)
    return schema_of(address, declared)


def _distinct(sources: Sequence[Source]) -> None:
    names = [one.name for one in sources]
    for name in names:
        if names.count(name) > 1:
            raise PolicyError(f"two of the tables would be called {name!r}; rename a file, or write two policies.")


def _check_unused(output: Path) -> None:
    """Raises PolicyError where the policy that stands there has a ledger with charges, or one that cannot be read."""
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
            if ledger.record.history():
                problem = "its ledger holds charges"
        finally:
            ledger.close()
    except HubbubError:
        problem = "it, or its ledger, cannot be read"
    if problem:
        raise PolicyError(f"{output} is left as it is: {problem}. Name another file with -o.")


def _check_unit(file: Path, columns: Sequence[tuple[str, str]], unit: str | None) -> None:
    import difflib

    names = [name for name, _ in columns]
    if unit is None or unit in names:
        return
    close = difflib.get_close_matches(unit, names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise PolicyError(f"{file} has no column {unit!r}; it has {', '.join(names)}.{hint}")


def _relative(file: Path, output: Path) -> str:
    try:
        return file.absolute().relative_to(output.absolute().parent).as_posix()
    except ValueError:
        return file.absolute().as_posix()


def _about_csv(*, sniffed: bool) -> str:
    if sniffed:
        return "The types were guessed from the file's rows: a steward's action, as this file may be published."
    return (
        "A CSV does not say its types: every column stands as text. Correct [types]; or run this again with --sniff "
        "--force, which guesses types, dates and decimal commas from the rows: a steward's decision."
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


def _usable(one: Source) -> list[tuple[str, str]]:
    """The columns of which something may be declared, and their kinds."""
    return [(column, kind) for column, kind in one.columns if kind in KINDS and column != one.unit]


def _parts(one: Source, choices: Choices = NONE) -> list[str]:
    """The sections of a table."""
    name, usable = one.name, _usable(one)
    section = "public" if one.is_public else "tables"
    head = _public(one) if one.is_public else _table(name, one.source, one.unit, one.table, choices)
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
# Nothing here was read from the rows, and nothing should be: bounds and categories that are
# taken from the data give the data away.

[ledger]
file = "budget.db"        # every charge is kept here; made by: hubbub ledger create

[budget]
EPSILON # the ceiling for all answers together; fixed when the ledger is made
"""


def _head(choices: Choices) -> str:
    budget = f"epsilon = {choices.epsilon}".ljust(25)
    text = _HEAD.replace("EPSILON", budget)
    return text if choices.delta is None else f"{text}delta = {choices.delta}\n"


def _table(name: str, source: str, unit: str | None, table: str | None, choices: Choices) -> str:
    who = f"unit = {_text(unit)}" if unit is not None else "each_row = true"
    lines = [f"[tables.{_key(name)}]", f"source = {_text(source)}"]
    lines += [f"table = {_text(table)}"] if table is not None else []
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


def _domains(name: str, columns: Sequence[tuple[str, str]], never_null: frozenset[str], choices: Choices) -> str:
    lines = [
        f"[tables.{_key(name)}.columns]",
        "# A sum or an average needs bounds, a group needs its values. Write what you know beforehand.",
    ]
    if any(column in never_null and "between" in _EXAMPLES[kind] for column, kind in columns):
        lines.append("# nullable = false: a constraint of the database says so. Counts beside means need less noise.")
    lines += [
        f"{_key(column)} = {choices.toml(column, kind)}"
        if column in choices.columns
        else f"# {_key(column)} = {_example(kind, column in never_null)}"
        for column, kind in columns
    ]
    return "\n".join(lines) + "\n"


def _example(kind: str, never_null: bool) -> str:
    """What could be declared of a column of a kind. A range may say that the column is never NULL."""
    example = _EXAMPLES[kind]
    return example.replace("] }", "], nullable = false }") if never_null and "between" in example else example


def _table_name(source: str, table: str | None) -> str:
    if source.startswith("spark:"):
        source = source.rpartition(":")[2].rpartition(".")[2]
    stem = Path(source.partition("?")[0]).name.partition(".")[0]
    name = re.sub(r"\W+", "_", (table or stem).rpartition(".")[2]).strip("_").lower() or "data"
    return f"t_{name}" if name[0].isdigit() else name


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    """A TOML basic string; JSON's escapes are TOML's, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
