"""The tables that `hubbub init` is given: columns and kinds, from files' schemas and databases' catalogues.

No row is read, but of a CSV: up to 256 MiB are looked at for their encoding, where the header does not tell it, and
rows for types that a steward asks to be guessed (`hubbub.cli.sniff`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hubbub.addresses import OBJECTS, ObjectAddress
from hubbub.cli.console import note
from hubbub.cli.declared import date_format, number_signs
from hubbub.cli.guided import Choices, Field, ask_kinds, ask_tables, ask_unit
from hubbub.cli.sniff import dialect_of, encoding_of_rows, guess_types
from hubbub.errors import PolicyError
from hubbub.file_formats import Csv, kind_of_file, several_files
from hubbub.ledger.column_policy import KINDS

if TYPE_CHECKING:
    from hubbub.engines.base import Schema

__all__ = ["Source", "ask_about", "check_distinct", "fields_of", "find_sources", "public_source", "with_kinds"]

_ELSEWHERE = re.compile(r"postgres(ql)?:|env:|spark:|s3://|gs://")


@dataclass(frozen=True)
class Source:
    """A table of the policy to be written. source: as the policy shall name it; columns: name and kind, in order.

    never_null: the columns that a constraint of a database keeps from being NULL. sniffed: whether rows were looked at.
    """

    source: str
    columns: Sequence[tuple[str, str]]
    unit: str | None
    table: str | None = None
    csv: Csv | None = None
    types_said: bool = False
    never_null: frozenset[str] = frozenset()
    is_public: bool = False
    sniffed: bool = False

    @property
    def name(self) -> str:
        return _table_name(self.source, self.table)


def find_sources(
    files: Sequence[str], tables: Sequence[str], unit: str | None, output: Path, *, sniff: bool, asking: bool
) -> list[Source]:
    """The private tables that a policy is to be written for. tables: of one database or spreadsheet; where none are
    named and somebody may be asked, of each database those that he names.

    Raises click's UsageError, and PolicyError for what cannot be read.
    """
    if tables and len(files) > 1:
        raise click.UsageError("--table is for one source; write one policy, and paste the other's section into it.")
    sources = []
    for file in files:
        named: Sequence[str | None] = list(tables)
        if not tables and asking and (there := _tables_in(file)) is not None:
            named = ask_tables(file, there)
        sources += [_source(file, table, unit, output, sniff=sniff) for table in named or [None]]
    return sources


def public_source(file: str, output: Path, *, sniff: bool) -> Source:
    """A public table: a file."""
    return _source(file, None, None, output, sniff=sniff, is_public=True)


def _tables_in(file: str) -> list[str] | None:
    """The tables of a database; none where its catalogue was not asked; None for what is not a database."""
    from hubbub.engines.duckdb.relations import tables_in

    if _ELSEWHERE.match(file):
        return None if file.startswith((*OBJECTS, "spark:")) else []
    path = Path(file)
    return tables_in(path) if path.is_file() and kind_of_file(path) in ("duckdb", "sqlite") else None


def with_kinds(one: Source, kinds: Mapping[str, tuple[str, str]]) -> Source:
    """The table with what was said of its columns: their kinds, and how dates and numbers are written.

    Raises click's UsageError for a column of a source that says its kinds itself.
    """
    said = {name: kinds[name] for name, _ in one.columns if name in kinds}
    if said and not one.types_said:
        first = next(iter(said))
        raise click.UsageError(
            f"{first}: {one.source} says itself what its columns hold; --kind is for CSV and sheets."
        )
    how = one.csv or Csv()
    written = {name: example for name, (_, example) in said.items() if example}
    if written and one.csv is None:
        raise click.UsageError(f"{one.source}: a spreadsheet holds numbers and dates as such; leave the example out.")
    numbers = [name for name in written if said[name][0] == "number"]
    forms = {name: date_format(example) for name, example in written.items() if name not in numbers}
    kept = {name: form for name, form in how.formats.items() if name not in said}
    signs = {number_signs(written[name]) for name in numbers}
    if len(signs) > 1:
        raise click.UsageError(f"{one.source}: a file writes its numbers in one way; the examples show two.")
    decimal, thousands = signs.pop() if signs else (how.decimal, how.thousands)
    formats = kept | {name: form for name, form in forms.items() if form is not None}
    columns = [(name, said[name][0] if name in said else kind) for name, kind in one.columns]
    csv = None if one.csv is None else replace(how, decimal=decimal, thousands=thousands, formats=formats)
    return replace(one, columns=columns, csv=csv)


def ask_about(one: Source, choices: Choices) -> Source:
    """The table with what is said of it in turn: who is protected, and what its columns hold."""
    one = replace(one, unit=ask_unit(one.name, one.columns))
    if not one.types_said or one.csv is None:
        return one
    columns = [column for column in fields_of(one) if column.name not in choices.kinds]
    return with_kinds(one, ask_kinds(columns, comma=one.csv.delimiter == ";"))


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
    looked = False
    if csv is not None and (shown := encoding_of_rows(path, csv)) != csv.encoding:
        note(
            f"{file}: its rows hold bytes that are not UTF-8. It is taken as {shown}; correct the policy if it is not."
        )
        csv, looked = replace(csv, encoding=shown), not is_public
    columns, sniffed = describe(path, table, csv), csv is not None and (sniff or looked)
    if csv is not None and sniff:
        types, csv, unsure = guess_types(path, csv)
        for column in unsure:
            said = f"{column} is taken as {csv.formats[column]}; %m/%d/%Y would fit as well"
            note(f"{file}: {said}. Correct it in the policy if so.")
        columns = list(types.items())
    _check_unit(path, columns, unit)
    written = kind in ("csv", "sheet")
    kept = never_null(path, table) if kind == "duckdb" and table is not None else frozenset[str]()
    return Source(_relative(path, output), columns, unit, table, csv, written, kept, is_public, sniffed)


def _schema_there(address: str, table: str | None, unit: str | None) -> Schema:
    """The columns of a table that an engine elsewhere holds, by its catalogue."""
    from hubbub.session.open import schema_of
    from hubbub.tables.declare import EACH_ROW, table as declare

    if table is None and not address.startswith("spark:"):
        raise click.UsageError('a database needs the table too: --table "SCHEMA.NAME".')
    declared = declare(address, unit=EACH_ROW if unit is None else unit, table=table)
    return schema_of(address, declared)


def check_distinct(sources: Sequence[Source]) -> None:
    """Raises PolicyError where two tables would have one name."""
    names = [one.name for one in sources]
    for name in names:
        if names.count(name) > 1:
            raise PolicyError(f"two of the tables would be called {name!r}; rename a file, or write two policies.")


def _check_unit(file: str | Path, columns: Sequence[tuple[str, str]], unit: str | None) -> None:
    """Raises PolicyError for a unit that is not a column."""
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


def _table_name(source: str, table: str | None) -> str:
    if source.startswith("spark:"):
        source = source.rpartition(":")[2].rpartition(".")[2]
    stem = Path(source.partition("?")[0]).name.partition(".")[0]
    name = re.sub(r"\W+", "_", (table or stem).rpartition(".")[2]).strip("_").lower() or "data"
    return f"t_{name}" if name[0].isdigit() else name


def fields_of(one: Source) -> list[Field]:
    """The columns of which something may be declared."""
    forms = {} if one.csv is None else one.csv.formats
    return [Field(name, kind, forms.get(name)) for name, kind in one.columns if kind in KINDS and name != one.unit]
