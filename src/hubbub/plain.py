"""Quick paths: the places where two ways lead to the same integers, and the switch that takes none of them.

With HUBBUB_PLAIN=1 in the environment every question goes the plain way: slower, and for the tests, which hold that the
two ways agree. It is read once, when this module is imported. The page "Quick paths" of the documentation is this
register in words; a test holds that they agree.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["QUICK_PATHS", "QuickPath", "only", "quick"]


@dataclass(frozen=True)
class QuickPath:
    """One place. module: where it is chosen. held_by: the test that holds both ways to the same integers."""

    module: str
    when: str
    why: str
    held_by: str


QUICK_PATHS: Final = {
    "ranking": QuickPath(
        "hubbub.engines.duckdb.engine",
        "a unit has more groups than count, or there are two sums or more; units are whole numbers or texts, and no "
        "text that names a group is longer than 256 bytes",
        "an order of rows is a function of unit, hash and group alone; sums are of integers",
        "tests/engines/test_ranking.py",
    ),
    "units by name": QuickPath(
        "hubbub.engines.duckdb.engine",
        "rows are ranked, and units are texts",
        "a dictionary numbers them, in which two are one only where all of their bytes are; one longer than 64 bytes "
        "goes by its SHA-256",
        "tests/engines/test_ranking.py",
    ),
    "found groups": QuickPath(
        "hubbub.engines.duckdb.engine",
        "rows are ranked, and 65,536 groups or fewer are found, by keys without a fraction",
        "groups are numbered by their values; of equal hashes the order is that of SQL, NULL last",
        "tests/engines/test_ranking.py",
    ),
    "listed values": QuickPath(
        "hubbub.engines.duckdb.engine",
        "rows are ranked, for quantiles or a choice among values",
        "of a unit with too many values the first count by (hash, value), as in the window; DuckDB gives the hashes",
        "tests/engines/test_ranking.py",
    ),
    "parquet": QuickPath(
        "hubbub.engines.duckdb.engine",
        "no value of the columns asked for makes DuckDB's reader fail",
        "the other reading has every column in the same type, from the same bytes",
        "tests/engines/test_parquet.py",
    ),
    "kept": QuickPath(
        "hubbub.engines.duckdb.kept",
        "a copy with so many rows of a unit is written, and no value makes DuckDB's reader fail",
        "the other reading has every column in the same type, from the same bytes",
        "tests/service/test_rows_kept.py",
    ),
    "csv": QuickPath(
        "hubbub.engines.duckdb.csv_files",
        "a line of a CSV has no quote",
        "without quotes a field is what stands between two delimiters",
        "tests/engines/test_plain.py",
    ),
    "utf8": QuickPath(
        "hubbub.engines.duckdb.utf8",
        "every text of a column is UTF-8",
        "a text that is UTF-8 is its own bytes",
        "tests/engines/test_plain.py",
    ),
    "pandas": QuickPath(
        "hubbub.engines.duckdb.pandas_columns",
        "pyarrow takes a whole column of pandas",
        "a value is there what pyarrow makes of it alone, or NULL",
        "tests/engines/test_plain.py",
    ),
    "declared lists": QuickPath(
        "hubbub.sql.emit.lists",
        "more than a hundred values are declared, all of one column's type",
        "the text reads from a table what would stand in it; which way is taken follows from declarations",
        "tests/engines/test_lists.py",
    ),
    "columns alone": QuickPath(
        "hubbub.engines.columns_alone",
        "SQL over releases only names columns of one",
        "the columns are picked that the statement names, in the order of their places",
        "tests/engines/test_columns_alone.py",
    ),
    "noise tables": QuickPath(
        "hubbub.noise.draw",
        "many draws of one law are asked for",
        "both ways draw from the law exactly",
        "tests/noise/test_tables.py",
    ),
    "noise threads": QuickPath(
        "hubbub.noise.workers",
        "a large draw, and processors that are idle",
        "each part is drawn once, from bits of its own",
        "tests/noise/test_workers.py",
    ),
}
"""By name, in the order of the page."""

_plain = os.environ.get("HUBBUB_PLAIN") == "1"


def quick(path: str) -> bool:
    """Whether a quick path may be taken.

    >>> quick("ranking") or _plain
    True
    """
    if path not in QUICK_PATHS:
        raise KeyError(f"{path!r} is not a quick path of the register")
    return not _plain


@contextlib.contextmanager
def only(*, plain: bool) -> Iterator[None]:
    """Within the block the plain ways alone, or the quick ones where they serve; for tests."""
    global _plain
    before, _plain = _plain, plain
    try:
        yield
    finally:
        _plain = before
