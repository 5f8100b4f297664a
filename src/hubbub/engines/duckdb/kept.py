"""A copy of Parquet files in which no unit has more than so many rows.

Which rows of a unit stay is by the hash of all their columns, and of equal hashes by their order in the files: it
depends on that unit's rows and on no other's, so the copy is owned as the table is (`hubbub.tables.relations`). They
are chosen by their numbers alone: a long text that many rows of one person share is written out for none of them.

Rows without a unit are left out, as every question leaves them out. Units are told apart here by the values of their
column as they stand in the files; where the engine takes two of these for one unit, it may keep so many of each.

A value on which DuckDB's reader fails is NULL here as it is in every question, and no reason for another copy or none
(`hubbub.engines.duckdb.parquet`); a column that no question can use, whose values may make it fail for good, is left
empty.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa

from hubbub.engines.duckdb.dialect import DUCKDB, quote
from hubbub.engines.duckdb.parquet import NUMBERS, Patient, read_parquet
from hubbub.engines.duckdb.relations import _SHUT, _parquet, _text
from hubbub.engines.duckdb.sources import ParquetFile, stamp_of
from hubbub.engines.fields import CUT, usable
from hubbub.engines.outer_engine import quiet
from hubbub.errors import PolicyError
from hubbub.plain import quick
from hubbub.remedies import CorrectName
from hubbub.spelling import meant_by
from hubbub.sql.bind.scope import did_you_mean

__all__ = ["write_kept"]


def write_kept(name: str, files: Sequence[str], unit: str, most: int, place: Path) -> None:
    """Write the copy of a table's files to a place, in one step: whoever reads sees the old one or the new one.

    Raises PolicyError where a file cannot be read, has no such column, or the copy cannot be written.
    """
    place.parent.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix="writing-") as folder:  # for this user alone
        made = Path(folder) / place.name
        con = duckdb.connect(config={**_SHUT, "temp_directory": folder})
        try:
            quiet(con)
            before = [stamp_of(file) for file in files]
            _, physical, patient = _parquet(con, name, ParquetFile(files[0], tuple(files)))
            copy = partial(_copy, con, physical, _owner(name, physical, unit), most, made)
            patiently = None if patient is None else partial(_patiently, con, patient, copy)
            if patiently is not None and not quick("kept"):
                patiently()
            else:
                try:
                    copy(read_parquet(files, numbered=True))
                except duckdb.Error:
                    if patiently is None:
                        raise
                    patiently()
            if [stamp_of(file) for file in files] != before:  # two readings are joined by the row's number
                raise PolicyError(f"table {name!r}: a file was written anew while it was copied; copy it again.")
            with suppress(OSError):
                made.chmod(0o600)
            os.replace(made, place)
        except (duckdb.Error, OSError, pa.ArrowException) as error:  # whose words may hold values
            raise PolicyError(
                f"table {name!r}: its copy with at most {most:,} rows of a unit cannot be written to {place.parent} "
                f"({type(error).__name__}). Mend the file, or leave rows_kept out."
            ) from None
        finally:
            con.close()


def _patiently(con: duckdb.DuckDBPyConnection, patient: Patient, copy: Callable[[str], None]) -> None:
    patient.fill(con, "patient_rows")
    copy(patient.relation("patient_rows", numbered=True))


def _owner(name: str, physical: Mapping[str, str], unit: str) -> str:
    """The column of the unit, quoted. Raises PolicyError where there is none."""
    owner = next((c for c in physical if c.lower() == unit.lower()), None)
    if owner is None:
        near = meant_by(unit, physical)
        raise PolicyError(
            f"table {name!r}: there is no column {unit!r} in its files. {did_you_mean(unit, physical)}",
            remedy=() if near is None else CorrectName(near, unit, name),
        )
    return quote(owner)


def _copy(
    con: duckdb.DuckDBPyConnection, physical: Mapping[str, str], owner: str, most: int, made: Path, relation: str
) -> None:
    """Copy of a relation the columns that a question can use, of the first rows of each unit. Not a unit that is cut
    where it is read (`CUT`): the copy would hold it as one that is not.
    """
    shown = ", ".join(
        quote(c)
        if usable(kind, DUCKDB) and not (kind.endswith(CUT) and quote(c) == owner)
        else f"CAST(NULL AS INTEGER[]) AS {quote(c)}"
        for c, kind in physical.items()
    )
    every, numbers = ", ".join(map(quote, physical)), ", ".join(NUMBERS)
    rows = f"(SELECT {numbers}, {shown} FROM {relation}) AS read_rows"
    stored = next(kind for c, kind in physical.items() if quote(c) == owner).removesuffix(CUT)
    # A long name goes by its hash: it stands there once for each row, too.
    name = DUCKDB.unit_name(owner, {"VARCHAR": "text", "BLOB": "blob"}.get(stored, stored))
    # What is joined first is read through: with the rows on the other side, each text would be written out.
    con.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE kept_rows AS SELECT {numbers} "
        f"FROM (SELECT {numbers}, {name} AS owner_name, hash({every}) AS place FROM {rows} WHERE {owner} IS NOT NULL) "
        f"QUALIFY row_number() OVER (PARTITION BY owner_name ORDER BY place, {numbers}) <= {most}"
    )
    con.execute(
        f"COPY (SELECT {every} FROM {rows} SEMI JOIN kept_rows USING ({numbers})) "
        f"TO {_text(str(made))} (FORMAT parquet, COMPRESSION zstd)"
    )
