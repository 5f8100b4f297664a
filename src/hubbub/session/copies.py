"""The copies that a policy's `rows_kept` asks for: of a table, at most so many rows of one unit.

How long a question takes depends on the rows that it reads, and `max_rows` bounds what counts, not what is read: so one
person with very many rows may make a question of the service miss its answer time, and that it was not answered is
told. Where questions read a copy with at most `rows_kept` rows of a unit, one person's share of any run is that many
rows. The copy is written when the ledger is created and at each refresh, whose time is public, and stands in the folder
`rows_kept` beside the policy file, for its owner alone. Everything that the policy opens reads it: the service, Python,
the command line.

    python -m hubbub.session.copies POLICY TABLE        write one; for the clerk of the service, which holds no rows
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from hubbub.engines.duckdb.kept import write_kept
from hubbub.errors import HubbubError, PolicyError
from hubbub.file_formats import files_of
from hubbub.ledger.policy import Policy, TablePolicy, load_policy
from hubbub.tables.declare import PrivateTable

__all__ = ["copied", "copy_place", "read_from_copy", "write_copy", "write_missing"]

_PASSED: Final = ("PATH", "HOME", "LANG", "PYTHONPATH", "TMPDIR")


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
    if table is None or copy_place(policy, table) is None:
        return
    own = {name: os.environ[name] for name in _PASSED if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "hubbub.session.copies", str(policy.path), name],
        env=own,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise PolicyError(done.stdout.strip() or f"table {name!r}: its copy was not written.")


def main(arguments: list[str]) -> int:
    """Write one copy; say why not."""
    try:
        write_copy(load_policy(Path(arguments[0])), arguments[1])
    except HubbubError as error:
        print(error, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
