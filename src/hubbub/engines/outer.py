"""The outer part of a statement: any SQL over releases and public tables, in an engine that holds nothing else.

Before a question is charged the statement is bound against empty tables, so that what the engine would refuse is
refused for nothing. Public tables are read when first needed, and again when their file has changed.

A statement is anybody's, so it runs in a process of its own (`hubbub.engines.outer_process`), within bounds: of memory
(nothing is spilled to disk), of the size of its answer, and of time. The bounds look at public data alone, so reaching
one tells nothing.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa

from hubbub.engines.columns_alone import columns_alone
from hubbub.engines.displayable import shown
from hubbub.engines.duckdb.dialect import DUCKDB, quote
from hubbub.engines.duckdb.relations import load_public
from hubbub.engines.duckdb.sources import stamp_of
from hubbub.engines.fields import normalised
from hubbub.engines.outer_engine import locked
from hubbub.engines.outer_process import Binding, OuterEngine, engine_of
from hubbub.errors import QueryError
from hubbub.remedies import Rewrite
from hubbub.tables.columns import Scalar
from hubbub.tables.declare import PublicTable
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import PublicRelation

__all__ = ["OuterSide", "most_equal"]

MOST_VALUES = 1_000_000

SECONDS = 60.0
"""A statement, or all runs of one that is run again for other draws of the noise, may take so long."""

MEMORY = 2**30
"""So many bytes, and three times what its tables hold, may a statement use; its answer may hold as many."""

_NOT_SHOWN = re.compile(r"\b(UNION|BIT|BIGNUM|UHUGEINT|VARIANT|GEOMETRY|TIME WITH TIME ZONE)\b")
"""Types that Arrow has not, or that DuckDB hands over as other values than they are, wherever in a type they stand."""
_NAMED = re.compile(r"""("(?:[^"]|"")*"|'(?:[^']|'')*')""")
"""What stands in a type by anybody's choice: the names of a structure's fields, the values of an ENUM."""


class OuterSide:
    """Public tables and releases. Safe to use from several threads. seconds, memory: the bounds of one statement.

    look: looks at a public table by its name when its files were read, and raises where they may not be shown.
    """

    def __init__(
        self,
        tables: Mapping[str, PublicTable],
        *,
        seconds: float = SECONDS,
        memory: int = MEMORY,
        look: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._tables = dict(tables)
        self.look = look
        self._seconds, self._memory = seconds, memory
        self._read: dict[str, tuple[object, pa.Table]] = {}
        self._lock = threading.RLock()
        self._binding = Binding()
        self._values: dict[tuple[object, ...], Any] = {}
        self._around: OuterSide | None = None

    def limit(self, seconds: float) -> None:
        """So long may a statement take from now on."""
        self._seconds = seconds

    def pinned(self) -> OuterSide:
        """The public tables as they are now, for one question: what it is priced by is what it meets, whatever happens
        to their files meanwhile."""
        with self._lock:
            for name in self._read:
                self.table(name)
            now = OuterSide(self._tables, seconds=self._seconds, memory=self._memory)
            now._read, now._values, now._around = dict(self._read), self._values, self
            return now

    def describe(
        self,
        sql: str,
        tables: tuple[str, ...],
        released: Mapping[str, Mapping[str, Kind]],
        *,
        answer: bool = False,
    ) -> dict[str, Kind]:
        """The columns of a statement, in order, from schemas alone. answer: it is the whole statement, to be shown.

        Raises QueryError, in the engine's words, where it is refused, and where a column of an answer cannot be shown.
        """
        named = columns_alone(sql)
        if named is not None and not tables:
            return {name: released[named.table][column] for column, name in named.pairs}
        schemas = {name: self.table(name).schema for name in tables}
        types = {Kind.NULL: DUCKDB.types[Kind.INTEGER], **DUCKDB.types}
        typed = {name: {c: types[k] for c, k in columns.items()} for name, columns in released.items()}
        binding = (self._around or self)._binding
        written = binding.described(sql, schemas, typed, seconds=self._seconds, memory=self._memory)
        for name, kind in written if answer else ():
            if _NOT_SHOWN.search(_NAMED.sub("", kind)):
                raise QueryError(
                    f"the column {name!r} is of the type {kind}, which no answer holds; cast it to VARCHAR."
                )
        columns = [(name, normalised(kind, "", DUCKDB)[0]) for name, kind in written]
        names = [name.lower() for name, _ in columns]
        twice = next((name for i, (name, _) in enumerate(columns) if name.lower() in names[:i]), None)
        if twice is not None:
            other = Rewrite(f'AS "{twice}_2"')
            said = f"two columns of this part are named {twice!r}; give one another name: {other.example}."
            raise QueryError(said, remedy=other)
        return dict(columns)

    def values(self, sql: str, tables: tuple[str, ...], column: str) -> tuple[Scalar, ...] | None:
        """The different values of a public column, in order, NULL last; None where there are over a million."""
        kind = self.describe(sql, tables, {})[column]
        value = _usual(f"TRY_CAST({quote(column)} AS {DUCKDB.types.get(kind, 'VARCHAR')})", kind)
        listed = self._once(
            ("values", sql, column),
            tables,
            f"SELECT DISTINCT {value} FROM relation ORDER BY 1 NULLS LAST LIMIT {MOST_VALUES + 1}",
            version_of=sql,
        )
        values = tuple(v for v in listed.column(0).to_pylist() if v == v)
        return None if len(values) > MOST_VALUES else values

    def unique(self, sql: str, tables: tuple[str, ...], columns: tuple[str, ...]) -> bool:
        """Whether no two rows of a public relation are equal in these columns; rows with a NULL meet nothing."""
        # As they are met: two values that one type makes one are one.
        kinds = self.describe(sql, tables, {})
        values = [_usual(f"TRY_CAST({quote(c)} AS {DUCKDB.types.get(kinds[c], 'VARCHAR')})", kinds[c]) for c in columns]
        names = ", ".join(values)
        known = " AND ".join(f"{value} IS NOT NULL" for value in values)
        counted = self._once(
            ("unique", sql, columns),
            tables,
            f"SELECT 1 FROM relation WHERE {known} GROUP BY {names} HAVING count(*) > 1 LIMIT 1",
            version_of=sql,
        )
        return bool(counted.num_rows == 0)

    def most(self, sql: str, tables: tuple[str, ...], columns: tuple[tuple[str, Kind], ...]) -> int:
        """How many rows of a public relation are equal in these columns at most, each as a value of a kind; of none,
        how many rows there are.
        """
        values = [_usual(f"TRY_CAST({quote(c)} AS {DUCKDB.types.get(kind, 'VARCHAR')})", kind) for c, kind in columns]
        return int(self._once(("most", sql, columns), tables, _most(values), version_of=sql).column(0)[0].as_py() or 0)

    def longest(self, sql: str, tables: tuple[str, ...], column: str) -> int:
        """How many characters the longest text of a public column has."""
        text = f"SELECT max(length(TRY_CAST({quote(column)} AS VARCHAR))) FROM relation"
        return int(self._once(("longest", sql, column), tables, text, version_of=sql).column(0)[0].as_py() or 0)

    def leaf(self, leaf: PublicRelation, released: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of a public relation, each column of its kind's type: NaN is NULL, times lie in years 1 to 9999."""
        columns = []
        for name, kind in leaf.columns.items():
            if kind in (Kind.OTHER, Kind.NULL):
                columns.append(f"CAST(NULL AS BIGINT) AS {quote(name)}")
                continue
            value = f"TRY_CAST({quote(name)} AS {DUCKDB.types[kind]})"
            columns.append(f"{_usual(value, kind)} AS {quote(name)}")
        if leaf.released:
            return self.run(f"SELECT {', '.join(columns)} FROM ({leaf.sql})", leaf.tables, released)
        rows = self._once(("relation", leaf.sql), leaf.tables, leaf.sql)
        return self.run(f"SELECT {', '.join(columns)} FROM relation", (), {"relation": rows})

    def run(self, sql: str, tables: tuple[str, ...], released: Mapping[str, pa.Table]) -> pa.Table:
        """The answer of a statement, each value one that can be shown (`hubbub.engines.displayable`).

        Raises QueryError, in the engine's words (nothing here is private), and where a bound is reached.
        """
        named = columns_alone(sql)
        answer = None if named is None else named.of(released)
        if answer is not None:
            return shown(answer)
        with self.open(tables, released) as engine:
            return shown(engine.arrow(sql))

    @contextmanager
    def open(self, tables: tuple[str, ...], released: Mapping[str, pa.Table]) -> Iterator[OuterEngine]:
        """An engine that holds these public tables and releases alone, for a limited time."""
        public = {name: self.table(name) for name in tables}
        memory = self._memory + 3 * sum(table.nbytes for table in (*public.values(), *released.values()))
        with engine_of(public, released, seconds=self._seconds, memory=memory) as engine:
            yield engine

    def table(self, name: str) -> pa.Table:
        """A public table, read once as long as none of its files changes, comes or goes."""
        declared = self._tables[name]
        if self._around is not None:
            with self._lock:
                if name not in self._read:
                    self._around.table(name)
                    self._read[name] = self._around._read[name]
                return self._read[name][1]
        stamp: object = None
        if isinstance(declared.source, str):
            with suppress(OSError, ValueError):  # of one that is gone, reading it says so
                stamp = stamp_of(declared.source)
        with self._lock:
            known = self._read.get(name)
            if known is None or known[0] != stamp:
                rows = load_public({name: declared})[name]
                self.look(name)
                self._read[name] = known = (stamp, rows)
                self._values = {}  # another one: what is pinned keeps its own
            return known[1]

    def fingerprint(self, name: str) -> str:
        """A digest of a public table's rows: other rows are another question."""
        table = self.table(name)
        with self._lock:
            values, key = self._values, ("fingerprint", name, id(table))
            if key not in values:
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, table.schema) as writer:
                    writer.write_table(table)
                values.setdefault(key, ((table,), hashlib.sha256(memoryview(sink.getvalue())).hexdigest()))
            fingerprint: str = values[key][1]
            return fingerprint

    def _once(
        self, key: tuple[object, ...], tables: tuple[str, ...], sql: str, *, version_of: str | None = None
    ) -> pa.Table:
        """The answer of a public statement, run once as long as its tables do not change. of: a statement whose answer
        it reads as `relation`.

        What a question is priced by (its values are few, its rows are unique) is so said of the very rows that it
        meets later, even where random() or LIMIT stands in the statement. Sides that were pinned at one time share what
        is kept, and each has a lock of its own: so the first answer stays, whoever comes second, and it is kept by the
        tables that were read, which are held as long as it is.
        """
        held = tuple(self.table(name) for name in tables)
        with self._lock:
            values, key = self._values, (*key, *map(id, held))
            if key not in values:
                relation = (
                    {} if version_of is None else {"relation": self._once(("relation", version_of), tables, version_of)}
                )
                answer = self.run(sql, () if version_of is not None else tables, relation)
                values.setdefault(key, (held, answer))
            table: pa.Table = values[key][1]
            return table

    def close(self) -> None:
        self._binding.close()


def _most(values: Sequence[str]) -> str:
    """The most rows of `relation` in which some values are equal; NULL meets nothing."""
    if not values:
        return "SELECT count(*) FROM relation"
    known = " AND ".join(f"{value} IS NOT NULL" for value in values)
    return f"SELECT max(n) FROM (SELECT count(*) AS n FROM relation WHERE {known} GROUP BY {', '.join(values)})"


def most_equal(table: pa.Table, columns: tuple[tuple[str, Kind], ...]) -> int:
    """How many rows of a table, as `OuterSide.leaf` gives it, are equal in these columns at most."""
    with locked({"relation": table}, MEMORY + 3 * table.nbytes) as con:
        values = [f"CAST({quote(c)} AS {DUCKDB.types.get(kind, 'VARCHAR')})" for c, kind in columns]
        return int(con.sql(_most(values)).fetchall()[0][0] or 0)


def _usual(value: str, kind: Kind) -> str:
    """A public value as it is met by people's rows: what is told of it (its values, whether it is a key) is of this."""
    match kind:
        case Kind.TEXT:
            return DUCKDB.cut(value)
        case Kind.NUMBER:
            return f"(CASE WHEN isfinite({value}) THEN {value} + 0.0 END)"
        case Kind.DATE:
            return f"(CASE WHEN {value} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {value} END)"
        case Kind.TIMESTAMP:
            return (
                f"(CASE WHEN {value} BETWEEN TIMESTAMP '0001-01-01 00:00:00' AND "
                f"TIMESTAMP '9999-12-31 23:59:59.999999' THEN {value} END)"
            )
    return value
