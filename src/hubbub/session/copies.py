"""Copies of tables, made by a process of its own for whoever is to hold no rows: those that a policy's `rows_kept` asks
for, of at most so many rows of one unit; and those of objects, for the runners of a service.

How long a question takes depends on the rows that it reads, and `max_rows` bounds what counts, not what is read: so one
person with very many rows may make a question of the service miss its answer time, and that it was not answered is
told. Where questions read a copy with at most `rows_kept` rows of a unit, one person's share of any run is that many
rows. The copy is written when the ledger is created and at each refresh, whose time is public, and stands in the folder
`rows_kept` beside the policy file, for its owner alone. Everything that the policy opens reads it: the service, Python,
the command line.

    python -m hubbub.session.copies POLICY TABLE            write one; for the clerk of the service, which holds no rows
    python -m hubbub.session.copies POLICY TABLE FOLDER     copy a table's objects there, and say where they are
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from hubbub.addresses import ObjectAddress
from hubbub.engines.duckdb.kept import write_kept
from hubbub.errors import HubbubError, PolicyError
from hubbub.file_formats import files_of
from hubbub.ledger.policy import Policy, TablePolicy, load_policy
from hubbub.tables.declare import PrivateTable

__all__ = ["copied", "copied_objects", "copy_place", "read_from_copy", "write_copy", "write_missing"]

_PASSED: Final = ("PATH", "HOME", "LANG", "PYTHONPATH", "TMPDIR")
_OF_STORES: Final = ("AWS_", "GOOGLE_", "CLOUDSDK_", "SSL_CERT_")
"""What the names of variables begin with in which the tools of object stores look for keys and settings."""


def copy_place(policy: Policy, table: TablePolicy) -> Path | None:
    """Where the copy of a table is whose `rows_kept` asks for one: by the policy, the table, its source,
    its unit and the number of rows, so that what was copied of another source is not taken for this one's.
    """
    if table.rows_kept is None:
        return None
    assert isinstance(table.source, Path)
    source = os.path.relpath(table.source, policy.path.parent)
    name, origin = (
        hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]
        for parts in ((policy.path.name, table.name), (source, table.unit))
    )
    return policy.path.parent / "rows_kept" / f"{name}.{origin}.{table.rows_kept}.parquet"


def read_from_copy(policy: Policy, table: TablePolicy, declared: PrivateTable) -> PrivateTable:
    """The table as questions read it: from its copy, where it has one."""
    place = copy_place(policy, table)
    return declared if place is None else replace(declared, copy=os.fspath(place))


def write_missing(policy: Policy) -> None:
    """Write the copies that were not written yet, or of another number of rows.

    Raises PolicyError where one cannot be written.
    """
    for name, table in policy.tables.items():
        place = copy_place(policy, table)
        if place is not None and not place.exists():
            write_copy(policy, name)


def write_copy(policy: Policy, name: str) -> None:
    """Write the copy of a table anew, where its policy asks for one; those of other numbers of rows go.

    Raises PolicyError where it cannot be written.
    """
    table = policy.tables.get(name)
    place = None if table is None else copy_place(policy, table)
    if table is None or place is None:
        return
    assert isinstance(table.source, Path)
    assert table.unit is not None
    assert table.rows_kept is not None
    write_kept(name, files_of(os.fspath(table.source)), table.unit, table.rows_kept, place)
    for old in place.parent.glob(f"{place.name.partition('.')[0]}.*"):
        if old != place:
            old.unlink(missing_ok=True)


def copied(policy: Policy, name: str) -> None:
    """As `write_copy`, in a process of its own: the rows are never in this one.

    Raises PolicyError, in its words.
    """
    table = policy.tables.get(name)
    if table is not None and copy_place(policy, table) is not None:
        _elsewhere(policy, name)


def copied_objects(policy: Policy, name: str, folder: Path) -> str:
    """Copy the objects of a table into a folder that is made, in a process of its own: their file, or the folder of
    their files.

    Raises PolicyError, in its words.
    """
    address = policy.tables[name].source
    assert isinstance(address, ObjectAddress)
    own = (address.user or "").removeprefix("env:")
    return _elsewhere(policy, name, os.fspath(folder), keys=lambda known: known == own or known.startswith(_OF_STORES))


def _elsewhere(policy: Policy, *arguments: str, keys: Callable[[str], bool] = lambda _: False) -> str:
    """What a process of this module says. keys: which variables it has beside the usual ones."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "hubbub.session.copies", str(policy.path), *arguments],
        env={name: value for name, value in os.environ.items() if name in _PASSED or keys(name)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise PolicyError(done.stdout.strip() or f"table {arguments[0]!r}: its copy was not written.")
    return done.stdout.rstrip("\n")


def main(arguments: list[str]) -> int:
    """Write one copy; say why not."""
    try:
        policy, name = load_policy(Path(arguments[0])), arguments[1]
        if arguments[2:]:
            print(_copy_objects(policy.tables[name], Path(arguments[2])), flush=True)
        else:
            write_copy(policy, name)
    except HubbubError as error:
        print(error, flush=True)
        return 1
    return 0


def _copy_objects(table: TablePolicy, folder: Path) -> str:
    from hubbub.engines.objects.copies import copy_of

    assert isinstance(table.source, ObjectAddress)
    return copy_of(table.source, folder, csv=table.csv is not None).path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
