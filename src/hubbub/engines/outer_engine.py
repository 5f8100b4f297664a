"""The engine over releases and public tables: a DuckDB in memory that holds nothing else, and its bounds.

It runs in a child process (`hubbub.engines.outer_child`), or in this one where there can be none. So it imports nothing
but what it needs.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final

import duckdb
import pyarrow as pa

from hubbub.errors import QueryError

__all__ = ["SHUT", "Binder", "Limited", "empty", "locked", "quiet", "quote", "refused", "too_late", "too_much"]

SHUT: Final[dict[str, str | bool | int | float | list[str]]] = {
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}

_AGAIN: Final = 0.05


def quote(name: str) -> str:
    """A name as DuckDB reads it, whatever stands in it."""
    return '"' + name.replace('"', '""') + '"'


def refused(error: Exception) -> QueryError:
    """What the engine says of a statement."""
    return QueryError(f"the engine refuses this statement: {str(error).splitlines()[0]}")


def empty(*, spills: bool) -> duckdb.DuckDBPyConnection:
    """A new DuckDB in memory; `locked` gives it tables and shuts it."""
    return duckdb.connect(config=SHUT if spills else {**SHUT, "temp_directory": ""})


def locked(
    tables: Mapping[str, Any], memory: int | None = None, *, con: duckdb.DuckDBPyConnection | None = None
) -> duckdb.DuckDBPyConnection:
    """A DuckDB in memory that holds the given tables and can reach nothing else; with a limit it spills nothing.

    con: an `empty` one that spills nothing and was given to nobody, made before it was needed.
    """
    con = con or empty(spills=memory is None)
    if memory is not None:
        con.execute(f"SET memory_limit = '{memory}B'")
    for i, (name, arrow) in enumerate(tables.items()):
        con.register(f"incoming{i}", arrow)
        con.execute(f"CREATE TABLE {quote(name)} AS SELECT * FROM incoming{i}")
        con.unregister(f"incoming{i}")
    con.execute("SET enable_external_access = false")
    con.execute("SET lock_configuration = true")
    return con


def quiet(con: duckdb.DuckDBPyConnection) -> None:
    """Let a connection draw no progress bar: how far a question is depends on the rows.

    It is asked for only where there would be one: in a notebook without ipywidgets there is none, and to set it either
    way is an error.
    """
    if con.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
        con.execute("SET enable_progress_bar = false")


class Limited:
    """A connection whose statements are stopped when they have taken `seconds` together.

    most: how many bytes the answer of one may hold. over: whether the time was up.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, seconds: float, most: int) -> None:
        self._con, self._seconds, self._most = con, seconds, most
        self._ended = threading.Event()
        self.over = False

    def __enter__(self) -> Limited:
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()

    def _watch(self) -> None:
        left = self._seconds
        while not self._ended.wait(left):
            # Again and again: an interrupt that meets no statement is forgotten.
            self.over, left = True, _AGAIN
            self._con.interrupt()

    def arrow(self, sql: str) -> pa.Table:
        """The answer of a statement.

        Raises QueryError, in the engine's words, where it is refused, and where a bound is reached.
        """
        try:
            reader = self._con.sql(sql).to_arrow_reader()
            batches, size = [], 0
            for batch in reader:
                batches.append(batch)
                size += batch.nbytes
                if size > self._most or self.over:
                    break
        except (duckdb.Error, pa.ArrowException, RuntimeError, UnicodeError, OSError, MemoryError) as error:
            if "Query interrupted" in str(error) and not self.over:
                raise KeyboardInterrupt from None
            raise too_late(self._seconds) if self.over else _stopped(error) from None
        if self.over:
            raise too_late(self._seconds)
        if size > self._most:
            raise QueryError(
                f"the answer of this part of the statement would hold more than {self._most:,} bytes; ask for less of "
                "it, with LIMIT or an aggregate."
            )
        return pa.Table.from_batches(batches, reader.schema)

    def execute(self, sql: str) -> None:
        """Run a statement of our own."""
        try:
            self._con.execute(sql)
        except duckdb.Error as error:
            raise too_late(self._seconds) if self.over else _stopped(error) from None


def too_late(seconds: float) -> QueryError:
    """That a statement took longer than it may."""
    return QueryError(
        f"the part of this statement that works on releases and public tables was stopped: it had run for {seconds:g} "
        "seconds, which is as long as it may. Write it so that it makes fewer rows."
    )


def too_much() -> QueryError:
    """That a statement took more memory than it may."""
    return QueryError(
        "the part of this statement that works on releases and public tables was stopped: it needs more memory than it "
        "may have. Write it so that it makes fewer rows."
    )


def _stopped(error: Exception) -> QueryError:
    if isinstance(error, duckdb.OutOfMemoryException | MemoryError) or "Out of Memory" in str(error):
        return too_much()
    return refused(error)


class Binder:
    """Tables without rows, against which statements are bound. Not safe to use from several threads."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._con = locked({}, memory)
        self._bound: dict[str, pa.Schema] = {}

    def described(
        self, sql: str, schemas: Mapping[str, pa.Schema], released: Mapping[str, Mapping[str, str]], seconds: float
    ) -> list[tuple[str, str]]:
        """The columns of a statement with DuckDB's words for their types. released: the columns of releases, so too.

        Raises QueryError, in the engine's words, where it is refused, and where a bound is reached.
        """
        for name, schema in schemas.items():
            if self._bound.get(name) != schema:
                self._con.register("incoming", schema.empty_table())
                self._con.execute(f"CREATE OR REPLACE TABLE {quote(name)} AS SELECT * FROM incoming")
                self._con.unregister("incoming")
                self._bound[name] = schema
        for name, columns in released.items():
            fields = ", ".join(f"{quote(column)} {kind}" for column, kind in columns.items())
            self._con.execute(f"CREATE OR REPLACE TEMP TABLE {quote(name)} ({fields})")
        with Limited(self._con, seconds, self._memory) as binder:
            rows = binder.arrow(f"DESCRIBE {sql}").to_pylist()
        return [(row["column_name"], row["column_type"]) for row in rows]

    def close(self) -> None:
        self._con.close()
