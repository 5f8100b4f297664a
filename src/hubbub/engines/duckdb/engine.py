"""The embedded engine: DuckDB in this process, reading Parquet, CSV, DuckDB files and frames in place.

Shut in: no extension is loaded, variables of the program are not visible as tables, and once a session's tables
are known the engine can open nothing else (`enable_external_access = false`), and its settings are locked.
Spilled rows go to a folder that only this user can read, removed on close, or by the next session where none closed it.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import duckdb
import pyarrow as pa

from hubbub.engines.base import Exact, Located, Schema
from hubbub.engines.duckdb.binder import Binder
from hubbub.engines.duckdb.bounds import statements
from hubbub.engines.duckdb.dialect import DUCKDB, DUCKDB_PORTABLE, DuckDB
from hubbub.engines.duckdb.known import Views, _Call, _check_single, _columns_read, _Failed, _fill, _Known, _replaced
from hubbub.engines.duckdb.memory import Memory
from hubbub.engines.duckdb.parquet import by_name
from hubbub.engines.duckdb.pieces import PART_BITS
from hubbub.engines.duckdb.ranking import Answers, Places, bounded, has_long_keys
from hubbub.engines.duckdb.relations import (
    _NO_SUCH_FORM,
    _SHUT,
    _attach,
    _bytes,
    _parquet,
    _relation,
    _text,
    _whole,
    arrow_type,
    lists_of,
)
from hubbub.engines.duckdb.room import Room
from hubbub.engines.duckdb.sources import READINGS, ParquetFile, overwritten, source_of, stamp_of, stats_of
from hubbub.engines.duckdb.spill import Spill
from hubbub.engines.exact import exact
from hubbub.engines.fields import Fields
from hubbub.engines.outer_engine import quiet
from hubbub.errors import EngineError, PolicyError, QueryError
from hubbub.file_formats import files_of
from hubbub.plain import quick
from hubbub.sql.emit.binding import binding_sql
from hubbub.sql.emit.place import Place
from hubbub.sql.emit.plan import aggregate_sql, columns_read, listed_sql, summed
from hubbub.sql.emit.ranked import looked_at, ranked_sql, ranks
from hubbub.sql.emit.rows import rows_sql
from hubbub.tables.declare import EachRow, PrivateTable, PublicTable
from hubbub.tables.measure import MeasurementKind, Value
from hubbub.tables.plan import Plan
from hubbub.tables.relations import Relation, Scan, leaves, scans

__all__ = ["DuckDBEngine"]


BATCH = 1 << 18
"""How many rows come from the engine at a time, where they are ranked in this process."""

ROOM = Room(0)
"""What all sessions of this process rank rows in: a quarter of what DuckDB takes for itself."""
MEMORY = Memory(0)
"""What the engines of all sessions of this process take."""

Rows = list[tuple[Any, ...]]
T = TypeVar("T")


class DuckDBEngine:
    """The embedded engine of one session. Safe to use from several threads."""

    returns_rows = True

    def __init__(self, *, portable: bool = False) -> None:
        # The portable hash keeps the same groups of a unit as other engines do; DuckDB's own is faster.
        self._dialect = DuckDB(portable=portable, lists_beside=True)
        self._spill = Spill.made()
        self._folder = self._spill.folder
        self._known: dict[str, _Known] = {}
        self._attached: list[tuple[str, str, str]] = []
        self._paths: list[str] = [self._folder]
        self._files: dict[str, str] = {}
        self._behind: dict[str, str] = {}  # the file behind each of these names, where one may be a link
        self._read_as: dict[str, str] = {}  # which table of a file is read, and how the fields of a CSV are
        self._stamped: dict[str, tuple[int, ...]] = {}  # the files of databases, as they were when they were opened
        self._lost: str | None = None  # a table whose file was another one when it had to be opened again
        self._looked_at: dict[str, object] = {}
        self._bound: WeakValueDictionary[int, Plan] = WeakValueDictionary()  # plans that DuckDB took
        self._sealed = False
        self._con: Any = None
        self._incidents: dict[str, str] = {}
        self._steps: dict[tuple[int, int], Places] = {}
        self._running: dict[int, _Call] = {}
        self._memory = MEMORY.part(lambda size: self._con.cursor().execute(f"SET memory_limit = '{size}B'"))
        self._open()

    def _open(self) -> None:
        """A connection with all that is known. Without a usable one, and with `_lost` said, where a database is no
        longer the file that it was: its rows would be taken for those of the version that is charged.
        """
        if self._con is not None:
            self._con.close()
        self._con = duckdb.connect(
            config={**_SHUT, "temp_directory": self._folder, "preserve_insertion_order": "false"}
        )
        for statement in statements():
            self._con.execute(statement)
        quiet(self._con)
        # The rows of one person may hold more than 2 GiB of texts, beyond which a plain column of Arrow's is an error.
        self._con.execute("SET arrow_large_buffer_size = true")
        ((limit,),) = self._con.execute("SELECT current_setting('memory_limit')").fetchall()
        MEMORY.size, ROOM.size = _bytes(limit), _bytes(limit) // 4
        self._memory.anew()
        self._binder = Binder(self._con)
        for path, alias, name in self._attached:
            try:
                _attach(self._con, path, alias, name)
            except PolicyError:
                self._lost = name
            # Looked at once more: what was there before it was opened may not be what was opened.
            if self._lost or not self._is_the_same(name):
                self._lost = self._lost or name
                self._con.close()
                return
        if self._sealed:
            self.seal()

    def _is_the_same(self, name: str) -> bool:
        """Whether the name of a file leads to what it led to; and whether nobody has written a database since."""
        try:
            return os.path.realpath(self._files[name]) == self._behind[name] and self._stamped.get(name) in (
                None,
                stamp_of(self._files[name]),
            )
        except OSError:
            return False

    def add(self, name: str, table: PrivateTable | PublicTable) -> Schema:
        """Make a declared table known; reads its schema, no rows.

        Raises PolicyError for a source that is missing or whose schema contradicts the declaration.
        """
        place = f"source{len(self._known)}"
        stamp = None
        with contextlib.suppress(OSError, ValueError):
            if isinstance(table.source, str):
                self._behind[name] = os.path.realpath(table.source)
                stamp = stamp_of(table.source)
        relation, physical, held, patient = _relation(self._con, place, name, table)
        if isinstance(table.source, str):
            self._paths += files_of(table.source)
            self._files[name] = table.source
            self._read_as[name] = "" if table.csv is None else f" {table.csv.canonical()}"
            self._read_as[name] += "" if table.inner_table is None else f" table {table.inner_table!r}"
            if relation.startswith(f"{place}."):
                self._attached.append((os.path.realpath(table.source), place, name))
                if stamp is not None:  # looked at before it was opened: one that came between is refused later
                    self._stamped[name] = stamp
        declared = table.columns if isinstance(table, PrivateTable) else {}
        fields = Fields(name, physical, dict(table.types), declared, DUCKDB)
        fields.check_names()
        unit, unit_column = None, None
        if isinstance(table, PrivateTable) and not isinstance(table.unit, EachRow) and table.path is None:
            unit_column, unit = fields.unit(table.unit)
            _check_single(name, unit_column, fields.kinds()[unit_column], source_of(name, table))

        def key(column: str) -> tuple[str, str]:
            spelled = fields.unit(column)[0]
            _check_single(name, spelled, fields.kinds()[spelled], source_of(name, table))
            return fields.key(column)

        types = physical if isinstance(source_of(name, table), ParquetFile) else None
        self._known[name] = _Known(relation, fields.expressions(), unit, key, held, patient, types)
        unit_type = fields.unit_type(unit_column) if unit_column is not None else None
        return Schema(
            fields.kinds(),
            unit_column,
            unit_type,
            zoned=fields.zoned() | (held.zoned if held is not None else frozenset()),
        )

    def located(self, name: str) -> Located:
        """Files and frames are where their declaration says."""
        return Located()

    def seal(self) -> None:
        """After the last `add`: nothing else can be opened, no setting changed but how much memory it may take."""
        paths = ", ".join(_text(p) for path in self._paths for p in (path, by_name(path)))
        self._con.execute(f"SET allowed_paths = [{paths}]")
        self._con.execute("SET enable_external_access = false")
        self._con.execute("SET allowed_configs = ['memory_limit']")
        self._con.execute("SET lock_configuration = true")
        self._sealed = True

    def recheck(self, name: str) -> None:
        """Raises PolicyError where the columns of a source are no longer those that the session was opened on."""
        self._check_lost()
        known = self._known[name]
        if known.held is not None:
            try:
                same = known.held.unchanged()
            except OSError:
                self.mark(name)  # says that it is gone
                same = False
        elif known.physical is not None:
            same = self._same_columns(name, known)
        else:
            return
        if not same:
            raise PolicyError(
                f"the columns or the files of the table {name!r} have changed; open a new session. Nothing was charged."
            )

    def _same_columns(self, name: str, known: _Known) -> bool:
        """Whether a Parquet file still has the columns, of the types, for which the text of each value was written.

        A cast that cannot fail on whole numbers fails on texts, and so on one person's. Looked at once for each stamp.
        """
        try:
            stamp = stamp_of(self._files[name])
        except OSError:
            self.mark(name)  # says that it is gone
            return False
        if self._looked_at.get(name) != stamp:
            path = self._files[name]
            try:
                source = ParquetFile(path, tuple(files_of(path)))
                relation, physical, patient = _parquet(self._con.cursor(), name, source)
            except PolicyError:  # of several files one is of other columns, or may not be opened any more
                return False
            if (relation, physical, patient) != (known.relation, known.physical, known.patient):
                return False
            self._looked_at[name] = stamp
        return True

    def mark(self, name: str) -> str | None:
        """A text that changes when a file does, though its size and time be set to what they were, with its path, and
        with what is declared to be read of it, and how.

        None for a frame, of which only a refresh tells. Of the device nothing is said: its number is another one after
        a restart.

        Raises PolicyError for a file that is gone, and for a database that was replaced or written: the old one stays
        open, and its rows would be taken for the new one's.
        """
        self._check_lost()
        path = self._files.get(name)
        if path is None:
            return None
        try:
            files = stats_of(path)
        except OSError:
            files = []
        if not files:
            raise PolicyError(f"the source of the table {name!r} is gone. Nothing was charged.")
        if not self._is_the_same(name):
            raise _replaced(name)
        stamp = " ".join(f"{f.st_ino} {f.st_size} {f.st_mtime_ns} {f.st_ctime_ns}" for f in files)
        return f"{stamp} {os.path.realpath(path)}{self._read_as[name]}"

    def _check_lost(self) -> None:
        """Raises PolicyError where the engine could not be opened again, for any table: nothing can be read."""
        if self._lost is not None:
            raise _replaced(self._lost)

    def compile(self, plan: Plan) -> str:
        """The SQL text of what `run` adds up, beside one for each list of values, if quantiles are asked.

        `run` may have the same integers by other means: where rows are ranked (`hubbub.engines.duckdb.ranking`), and
        where many values are declared (`hubbub.sql.emit.lists`).
        """
        dialect = DUCKDB_PORTABLE if self._dialect.portable else DUCKDB
        return aggregate_sql(plan, self._places(plan.question.relation), dialect)

    def prepare(self, plan: Plan) -> None:
        """Whether DuckDB binds every text of a plan. Frames stand there without rows; of files it reads the schema.

        Raises QueryError where a text would grow beyond all use, or DuckDB does not take it; PolicyError where the
        columns of a source have changed.
        """
        for name in {scan.table for scan in scans(plan.question.relation)}:
            self.recheck(name)
        if self._bound.get(id(plan)) is plan:
            return
        texts = binding_sql(plan, self._places(plan.question.relation), self._dialect)
        known = [self._known[scan.table] for scan in scans(plan.question.relation)]
        frames = {k.relation: k.held for k in known if k.held is not None}
        public = {
            leaf.place: pa.schema([(name, arrow_type(kind)) for name, kind in leaf.columns.items()]).empty_table()
            for leaf in leaves(plan.question.relation)
        }
        lists = {name: values().slice(0, 0) for name, values in lists_of(plan, self._dialect).items()}
        try:
            self._binder.bind(texts, frames, {**public, **lists})
        except _NO_SUCH_FORM:
            raise QueryError(
                "the engine does not take this form of question; ask in another way. Nothing was charged."
            ) from None
        except duckdb.Error:
            return  # a file or the engine itself is broken, which is for `run` to find
        self._bound[id(plan)] = plan

    def _places(self, relation: Relation, asked: Mapping[str, Collection[str]] | None = None) -> dict[str, Place]:
        tables = {scan.table for scan in scans(relation)}
        if asked is None:
            return {name: self._known[name].place(None) for name in tables}
        return {name: self._known[name].place(self._view(name), asked.get(name, ())) for name in tables}

    def _view(self, table: str) -> str:
        """What the patient reading of a table fills."""
        return f"patient{list(self._known).index(table)}"

    def _loads(self, relation: Relation, asked: Mapping[str, Collection[str]] | None = None) -> Views:
        """What has to be there for the tables of a relation. asked: of each, what the patient reading reads."""
        loads: dict[str, Any] = {}
        for scan in scans(relation):
            known = self._known[scan.table]
            if known.held is not None:
                loads[known.relation] = known.held.table
            if asked is not None and known.patient is not None:
                loads[self._view(scan.table)] = known.patiently(asked.get(scan.table, ()))
        return loads

    def _readings(self, relation: Relation, names: Collection[str], call: _Call) -> Iterator[tuple[Any, Views]]:
        """Where the tables of a relation are: in the quick reading; then, where some value made that fail, in one that
        fails on none. That a value did must not show. names: of the columns that are read.
        """
        tables = {scan.table for scan in scans(relation)}
        if quick("parquet") or not any(self._known[name].patient for name in tables):
            yield self._places(relation), self._loads(relation)
        if not call.stopped.is_set() and any(self._known[name].patient for name in tables):
            asked = _columns_read(relation, names)
            yield self._places(relation, asked), self._loads(relation, asked)

    def run(self, plan: Plan, public: Mapping[str, Any] | None = None) -> Exact:
        """Run the private part of a question.

        Raises EngineError, with an incident id alone, if DuckDB fails.
        """
        leaves: Views = {place: lambda t=table: t for place, table in (public or {}).items()}  # type: ignore[misc]
        return self._read(
            plan.question.relation,
            columns_read(plan),
            lambda places, views, call: self._answers(plan, places, {**leaves, **views}, call),
        )

    def rows(self, scan: Scan, columns: Sequence[str]) -> pa.Table:
        """The owned rows of a declared table, and in the column "" a number for each unit: never leaves the process.

        Raises EngineError, with an incident id alone, if DuckDB fails.
        """
        table = self._read(
            scan,
            {f"{scan.place}.{column}" for column in columns},
            lambda places, views, call: self._table(rows_sql(scan, places, columns, DUCKDB), views, call),
        )
        return table.rename_columns([*columns, *([""] if len(table.column_names) > len(columns) else [])])

    def _read(
        self, relation: Relation, names: Collection[str], ask: Callable[[dict[str, Place], Views, _Call], T | None]
    ) -> T:
        """What `ask` makes of the tables of a relation, from files that stayed as they were while they were read.

        Two readings of one file are joined by the row's number (`Patient`). Of a file that was written anew between
        them, that number joins one person's row to another's, so what was found is thrown away and read again.

        Raises EngineError where the engine fails, or a file changes at each reading or in its columns.
        """
        read = {scan.table for scan in scans(relation)}
        files = sorted(name for name in read if self._known[name].physical is not None)
        with self._call() as call:
            for _ in range(READINGS):
                before = self._stamps(files)
                if before is None:
                    call.words = "a file is gone, or its columns have changed since the charge"
                    break
                answer = None
                for places, views in self._readings(relation, names, call):
                    answer = ask(places, views, call)
                    if answer is not None:
                        break
                opened = [(self._files[name], self._stamped[name]) for name in read & self._stamped.keys()]
                if self._stamps(files) == before and not any(overwritten(*one) for one in opened):
                    if answer is not None:
                        return answer
                    break
                call.words = "a file was written anew while it was read"
                if call.stopped.is_set():
                    break
        raise EngineError(self._incident(call))

    def _stamps(self, files: Sequence[str]) -> list[tuple[int, ...]] | None:
        """What tells whether any of these files is written anew; None where one no longer has its columns."""
        try:
            stamps = [stamp_of(self._files[name]) for name in files]
            return stamps if all(self._same_columns(name, self._known[name]) for name in files) else None
        except (OSError, PolicyError):
            return None

    def _table(self, sql: str, views: Views, call: _Call) -> pa.Table | None:
        try:
            with self._reading(views, call) as cursor:
                return cursor.sql(sql).to_arrow_table()
        except _Failed:
            return None

    def _answers(self, plan: Plan, places: Mapping[str, Place], views: Views, call: _Call) -> Exact | None:
        """The exact integers of a plan; None if the engine failed.

        By the texts that `compile` gives, or ranked in this process where that is the quicker way.
        """
        numbers = range(len(plan.measurements))
        views = {**views, **lists_of(plan, self._dialect)}
        try:
            ranked = None
            with contextlib.suppress(_Failed):  # that the quicker way fails is for the text to mend, and no answer
                ranked = self._ranked(plan, places, views, call)
            known = () if ranked is None else looked_at(plan)
            listed = [i for i in numbers if i not in known and not summed(plan.measurements[i])]
            lists: dict[int, Any] = {
                i: self._rows(listed_sql(plan, places, i, self._dialect), views, call) for i in listed
            }
            if ranked is not None:
                return exact(plan, ranked.sums, {**lists, **ranked.lists})
            adds = len(listed) < len(numbers) or plan.private_keys
            return exact(
                plan, self._rows(aggregate_sql(plan, places, self._dialect), views, call) if adds else [], lists
            )
        except _Failed:
            return None

    def _ranked(self, plan: Plan, places: Mapping[str, Place], views: Views, call: _Call) -> Answers | None:
        """What the texts of a plan answer, ranked in this process; None where that is not the way.

        Whole numbers name units as they are, and texts by a dictionary; whatever else does is compared by the engine.
        """
        listed = any(m.counting is MeasurementKind.QUANTILES for m in plan.measurements)
        allowed = quick("ranking") and (quick("found groups") or not plan.private_keys)
        if not (allowed and (quick("listed values") or not listed) and ranks(plan)) or self._dialect.portable:
            return None
        for parts in (0, PART_BITS):
            with self._reading(views, call) as cursor:
                rows = cursor.sql(text := ranked_sql(plan, places, self._dialect, parts=parts))
                unit, *keys = map(str, rows.types[: 1 + bool(parts) + len(plan.domains) * plan.private_keys])
                if "HUGEINT" in keys or not (_whole(unit) or (unit == "VARCHAR" and quick("units by name"))):
                    return None
                if has_long_keys(cursor, text, keys[bool(parts) :]):
                    return None
                if _whole(unit) or parts:
                    with ROOM.share() as share:
                        batches = rows.to_arrow_reader(BATCH)
                        return bounded(batches, plan, share, self._order_of_steps, call.stopped.is_set)
        return None

    def _order_of_steps(self, value: Value) -> Places:
        """In which order a unit's values are kept: by the hash of their steps, as `listed_sql` has it."""
        ends = value.floor, value.ceiling
        if ends not in self._steps:
            steps = f"SELECT CAST(range AS BIGINT) AS x FROM range({ends[0]}, {ends[1] + 1})"
            text = f"SELECT {self._dialect.hash('x')} AS h FROM ({steps}) ORDER BY x"
            hashed = self._con.cursor().sql(text).fetchnumpy()
            self._steps[ends] = Places(value.floor, hashed["h"])
        return self._steps[ends]

    def _rows(self, sql: str, views: Views, call: _Call) -> Rows:
        with self._reading(views, call) as cursor:
            rows: Rows = cursor.execute(sql).fetchall()  # a relation would be bound twice
            return rows

    @contextlib.contextmanager
    def _reading(self, views: Views, call: _Call) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection of this call's own that holds these views. Raises _Failed if the engine fails.

        How it failed can depend on private rows, so nothing of it goes further: no text, no cause, no context. Its
        words are kept for the steward (`words`).
        """
        if call.stopped.is_set():
            raise _Failed
        try:
            with self._cursor(call) as cursor:
                _fill(cursor, views, call.stopped.is_set)
                yield cursor
                return
        except Exception as error:  # whatever it was, its words may hold rows
            call.words = str(error)
        self._mend()
        raise _Failed

    def _mend(self) -> None:
        """A new connection where DuckDB refuses everything on the old one, as it does after an internal error: to the
        files that were open, or to none (`_open`).

        The error itself does not tell: of rows that come in batches, all errors are Arrow's.
        """
        try:
            self._con.cursor().execute("SELECT 1").fetchall()
        except duckdb.Error:
            self._open()

    @contextlib.contextmanager
    def _call(self) -> Iterator[_Call]:
        call = _Call()
        self._running[id(call)] = call
        try:
            with self._memory.at_work():
                yield call
        finally:
            del self._running[id(call)]

    @contextlib.contextmanager
    def _cursor(self, call: _Call) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection of its own, which `interrupt` stops; to stop the one it is from would not."""
        call.cursor = self._con.cursor()
        try:
            yield call.cursor
        finally:
            call.cursor = None

    def _incident(self, call: _Call) -> str:
        """A new id, under which the engine's last words in a call are kept until somebody asks for them once."""
        incident = uuid.uuid4().hex[:12]
        if call.words is not None:
            self._incidents[incident] = call.words
        return incident

    def words(self, incident: str) -> str | None:
        """What the engine said of an incident, once: it may hold rows, and is the steward's alone."""
        return self._incidents.pop(incident, None)

    def interrupt(self, asker: object = None) -> None:
        """Stop what is running, and what it would run next; or, of that, only what runs for one asker."""
        for call in list(self._running.values()):
            if asker is not None and call.whose is not asker:
                continue
            call.stopped.set()
            cursor = call.cursor
            if cursor is not None:
                cursor.interrupt()

    def close(self) -> None:
        """Close the engine and remove what it spilled."""
        self._memory.leave()
        self._con.close()
        self._spill.remove()
