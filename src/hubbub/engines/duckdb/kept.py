"""A copy of Parquet files in which no unit has more than so many rows.

Which rows of a unit stay is by the hash of all their columns, then by these: it depends on that unit's rows and on no
other's, so the copy is owned as the table is (`hubbub.tables.relations`). Rows without a unit are left out, as every
question leaves them out. Units are told apart here by the values of their column as they stand in the files; where the
engine takes two of these for one unit, it may keep so many of each.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import duckdb

from hubbub.engines.duckdb.parquet import read_parquet
from hubbub.engines.duckdb.relations import _described, _text
from hubbub.errors import PolicyError

__all__ = ["write_kept"]


def write_kept(name: str, files: Sequence[str], unit: str, most: int, place: Path) -> None:
    """Write the copy of a table's files to a place, in one step: whoever reads sees the old one or the new one.

    Raises PolicyError where a file cannot be read, has no such column, or the copy cannot be written.
    """
    place.parent.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix="writing-") as folder:  # for this user alone
        made = Path(folder) / place.name
        con = duckdb.connect(config={"temp_directory": folder, "autoinstall_known_extensions": "false"})
        try:
            con.execute("SET enable_progress_bar = false")
            columns = [_quoted(c) for c in _described(con, read_parquet(files), name, files[0])]
            owner = next((c for c in columns if c.lower() == _quoted(unit).lower()), None)
            if owner is None:
                raise PolicyError(f"table {name!r}: there is no column {unit!r} in its files.")
            every = ", ".join(columns)
            con.execute(
                f"COPY (SELECT {every} FROM {read_parquet(files)} WHERE {owner} IS NOT NULL QUALIFY row_number() OVER "
                f"(PARTITION BY {owner} ORDER BY hash({every}), {every}) <= {most}) "
                f"TO {_text(str(made))} (FORMAT parquet, COMPRESSION zstd)"
            )
            with suppress(OSError):
                made.chmod(0o600)
            os.replace(made, place)
        except (duckdb.Error, OSError) as error:  # whose words may hold values
            raise PolicyError(
                f"table {name!r}: its copy with at most {most:,} rows of a unit cannot be written to {place.parent} "
                f"({type(error).__name__}). Mend the file, or leave rows_kept out."
            ) from None
        finally:
            con.close()


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'
