"""`hubbub init`: a commented policy file for one data file, from its column names and types, never its values.

What only people can know is left to them: bounds and categories stand as comments to fill in, because to read
them off the rows would publish them. Limits and budget are written as choices, with what they mean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import click

from hubbub.cli.console import note
from hubbub.errors import PolicyError
from hubbub.ledger.policy import KINDS, POLICY_NAME

__all__ = ["command", "policy_text"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ELSEWHERE = re.compile(r"postgres(ql)?:|env:|spark:")
_EXAMPLES = {
    "integer": "{ between = [0, 100] }",
    "number": "{ between = [0.0, 1.0] }",
    "text": '{ one_of = ["A", "B", "C"] }',
    "boolean": "{ one_of = [false, true] }",
    "date": '{ between = ["2025-01-01", "2025-12-31"] }',
    "timestamp": '{ between = ["2025-01-01T00:00:00", "2025-12-31T23:59:59"] }',
}


@click.command("init")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--unit", metavar="COLUMN", help="The column that names who is protected.")
@click.option("--each-row", is_flag=True, help="Protect single rows: right only where nobody has two.")
@click.option("--table", metavar="NAME", help="Which table of a DuckDB file.")
@click.option("--sniff", is_flag=True, help="Guess a CSV's types from its rows: a steward's decision.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(POLICY_NAME),
    show_default=True,
    metavar="FILE",
)
def command(file: Path, unit: str | None, each_row: bool, table: str | None, sniff: bool, output: Path) -> None:
    """Write a commented hubbub.toml for FILE, a .parquet, .csv or .duckdb file: names and types, never values."""
    if each_row == (unit is not None):
        raise click.UsageError("say who is protected: --unit COLUMN for a column that names a person, or --each-row.")
    if _ELSEWHERE.match(str(file)):
        raise click.UsageError(
            "init reads a file. A table of Postgres or Spark is declared by hand: under [tables.NAME], "
            'source = "env:VARIABLE" and table = "SCHEMA.NAME", or source = "spark:NAME".'
        )
    columns = _columns(file, table, sniff=sniff)
    _check_unit(file, columns, unit)
    text = policy_text(_relative(file, output), columns, unit=unit, table=table)
    try:
        with output.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise PolicyError(f"{output} exists and is left as it is. Name another file with -o.") from None
    except OSError as error:
        raise PolicyError(f"cannot write {output}: {error.strerror}.") from error
    if file.suffix.lower() == ".csv":
        note(_about_csv(sniffed=sniff))
    note(f"Wrote {output}. Read it through, fill in bounds and categories, then: hubbub ledger create")


def _columns(file: Path, table: str | None, *, sniff: bool) -> list[tuple[str, str]]:
    from hubbub.engines.duckdb.engine import DuckDBEngine
    from hubbub.engines.duckdb.relations import describe
    from hubbub.tables.declare import public

    if not sniff:
        return describe(file, table)
    engine = DuckDBEngine()
    try:
        columns = engine.add(file.stem, public(str(file), table=table)).columns
        return [(name, kind.value) for name, kind in columns.items()]
    finally:
        engine.close()


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
    return "A CSV does not say its types: every column stands as text. Correct [types], or use --sniff."


def policy_text(source: str, columns: Sequence[tuple[str, str]], *, unit: str | None, table: str | None) -> str:
    """The policy file for one table.

    Args:
        source: the data file, as the policy shall name it.
        columns: name and kind of each column, in order.
        unit: the column that names the protected unit; None for each row.
        table: the table in a DuckDB file.
    """
    name = _table_name(source, table)
    usable = [(column, kind) for column, kind in columns if kind in KINDS and column != unit]
    parts = [_HEAD, _table(name, source, unit, table)]
    if source.lower().endswith(".csv"):
        parts.append(_types(name, columns))
    parts.append(_domains(name, usable))
    return "\n".join(parts)


_HEAD = """\
# What may be asked, about whom, and how much. Lines that begin with # are comments.
# Nothing here was read from the rows, and nothing should be: bounds and categories that are
# taken from the data give the data away.

[ledger]
file = "budget.db"        # every charge is kept here; made by: hubbub ledger create

[budget]
epsilon = 1               # the ceiling for all answers together; fixed when the ledger is made
"""


def _table(name: str, source: str, unit: str | None, table: str | None) -> str:
    who = f"unit = {_text(unit)}" if unit is not None else "each_row = true"
    lines = [f"[tables.{_key(name)}]", f"source = {_text(source)}"]
    lines += [f"table = {_text(table)}"] if table is not None else []
    lines += [f"{who.ljust(25)} # who is protected: all rows of one {'value' if unit else 'row'} together"]
    if unit is None:
        lines[-1] = f"{who.ljust(25)} # each row is a person; wrong if anyone has two"
        return "\n".join(lines) + "\n"
    return "\n".join(
        [
            *lines,
            "# Choices, not facts: more counts people more fully, at more noise.",
            f"{'max_groups = 1'.ljust(25)} # in how many groups of one answer a person counts at most",
            f"{'max_rows = 1'.ljust(25)} # with how many rows a person counts in one group at most",
            "",
        ]
    )


def _types(name: str, columns: Sequence[tuple[str, str]]) -> str:
    lines = [f"[tables.{_key(name)}.types]       # {', '.join(KINDS)}"]
    lines += [f"{_key(column)} = {_text(kind if kind in KINDS else 'text')}" for column, kind in columns]
    return "\n".join(lines) + "\n"


def _domains(name: str, columns: Sequence[tuple[str, str]]) -> str:
    lines = [
        f"[tables.{_key(name)}.columns]",
        "# A sum or an average needs bounds, a group needs its values. Write what you know beforehand.",
        *(f"# {_key(column)} = {_EXAMPLES[kind]}" for column, kind in columns),
    ]
    return "\n".join(lines) + "\n"


def _table_name(source: str, table: str | None) -> str:
    name = re.sub(r"\W+", "_", table or Path(source).stem).strip("_").lower() or "data"
    return f"t_{name}" if name[0].isdigit() else name


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    """A TOML basic string; JSON's escapes are TOML's, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
