"""Spark: rows stay on the cluster; the question goes there as SQL, and bounded integers by group come back.

Tables are of the session that their data frames belong to, or of the active one, or of a local one. Texts run in a
session of our own beside it (`hubbub.engines.spark.session`), whose settings are ours: none of theirs is changed, and
none decides an answer. Each table becomes a temporary view there, with names of our own for itself and its columns. No
Python function runs on a row, and the driver sees one row per group.

A view holds the table as it was when it was looked at: its format, the types of its columns, and, in a catalogue, its
files. What stands under its name by the time of a run is not asked for. A table of the catalogue is looked at again
before every charge.

A table of the catalogue (`spark:hospital.visits`) is a base table of a format that keeps rows apart: Parquet or ORC.
Anything else (a view can mix rows of several people, one line of a CSV can hide others, of Delta and Iceberg nothing
has been tried) is refused, unless the declaration says `trusted_view`. A data frame is one over such files, or of rows
in memory, that chooses rows and columns and computes nothing else.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from hubbub.engines.base import Exact, Located, Schema
from hubbub.engines.base_tables import not_trusted
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.engines.exact import exact
from hubbub.engines.fields import CUT, Fields
from hubbub.engines.spark.dialect import SPARK
from hubbub.engines.spark.frames import as_texts, look_at, physical_of, read_by_rows, stored_otherwise, types_from_rows
from hubbub.engines.spark.located import located_at
from hubbub.engines.spark.session import (
    FORMATS,
    details,
    java_of,
    lend,
    own_session,
    quoted,
    reads_row_by_row,
    refused_setting,
    settings_of,
)
from hubbub.engines.stopping import asker
from hubbub.errors import EngineError, InternalError, PolicyError, QueryError
from hubbub.sql.emit.place import Place
from hubbub.sql.emit.plan import aggregate_sql, listed_sql, summed
from hubbub.sql.emit.rows import rows_sql
from hubbub.tables.declare import EachRow, PrivateTable, PublicTable
from hubbub.tables.plan import Plan
from hubbub.tables.relations import PublicRelation, Scan, leaves, scans
from hubbub.tables.remote import SparkFrame, SparkName

__all__ = ["SparkEngine"]

_JOB_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
"""What names the jobs of a thread, so that they can be cancelled: put back as it was."""
_PAUSE = 0.1  # seconds between two looks at what has no time left


@dataclass(frozen=True)
class _Known:
    """A table: the view it is asked under, its columns and unit as expressions; its name where the catalogue has it."""

    view: str
    columns: Mapping[str, str]
    unit: str | None
    fields: Fields
    physical: Mapping[str, str]
    name: str | None
    trusted: bool
    located: Located


class SparkEngine:
    """The engine of a session whose private tables are in Spark. Safe to use from several threads."""

    returns_rows = False

    def __init__(self) -> None:
        self._local = DuckDBEngine()  # for public tables, which may be files
        self._known: dict[str, _Known] = {}
        self._spark: SparkSession | None = None  # the tables'
        self._session: SparkSession | None = None  # our own
        self._settings: dict[str, str] = {}
        self._own = uuid.uuid4().hex[:12]
        self._tags: dict[str, object] = {}  # of the jobs that run, each with its asker
        self._lock = threading.Lock()
        self._until = math.inf  # when what runs is ended, by the monotonic clock

    def limit(self, seconds: float) -> None:
        """From here on, have the cluster end what runs so many seconds from now; what is asked later is not begun."""
        self._until = time.monotonic() + seconds

        def end() -> None:
            time.sleep(max(0.0, seconds))
            while self._tags:  # a statement may begin another job after its first one was cancelled
                self.interrupt()
                time.sleep(_PAUSE)

        threading.Thread(target=end, daemon=True).start()

    def end_earlier(self) -> None:
        """Nothing: what an earlier driver left is an application of its own, which the cluster ends when it is gone."""

    def add(self, name: str, table: PrivateTable | PublicTable) -> Schema:
        """Make a declared table known; reads its schema, no rows.

        Raises PolicyError for a table that is missing, is a view, or contradicts its declaration.
        """
        if isinstance(table, PublicTable):
            return self._local.add(name, table)
        frame, known_as, parts = self._frame(name, table)
        assert self._session is not None
        physical = _physical(name, frame, self._session)
        fields = Fields(name, physical, dict(table.types), table.columns, SPARK)
        fields.check_names()
        unit, unit_column = None, None
        if not isinstance(table.unit, EachRow) and table.path is None:
            unit_column, unit = fields.unit(table.unit)
        view = f"hubbub_{self._own}_{len(self._known)}"
        self.show(frame, view)
        with _quiet():
            located = located_at(frame, parts, self._spark)
        self._known[name] = _Known(
            view, fields.expressions(), unit, fields, physical, known_as, table.trusted_view, located
        )
        unit_type = fields.unit_type(unit_column) if unit_column is not None else None
        return Schema(fields.kinds(), unit_column, unit_type, zoned=fields.zoned())

    def located(self, name: str) -> Located:
        """Where the catalogue has a table, in full; of a data frame, what it means."""
        known = self._known.get(name)
        return Located() if known is None else known.located

    def _frame(self, name: str, table: PrivateTable) -> tuple[DataFrame, str | None, list[str]]:
        source = table.source
        if not isinstance(source, SparkFrame | SparkName):
            raise PolicyError(f"table {name!r}: a session's private tables are all in Spark, or none is.")
        if isinstance(source, SparkFrame):
            spark = source.frame.sparkSession
        else:
            spark = self._spark or SparkSession.getActiveSession() or _local_session()
        if self._spark is not None and spark is not self._spark:
            raise PolicyError(f"table {name!r} is of another Spark session than the other private tables.")
        _check_up(spark, name)
        if self._session is None:
            self._spark, self._session = spark, own_session(spark)
            self._settings = settings_of(self._session)
        self._check_frames(name)
        if isinstance(source, SparkFrame):
            if source.frame.isStreaming:
                raise PolicyError(f"table {name!r} is a stream; declare a table that can be read more than once.")
            with _listing(name):
                look_at(source.frame, self._session)
                why = types_from_rows(source.frame, self._session)
            if why is not None:
                raise PolicyError(f"table {name!r}: {why} Nothing was charged.")
            self._check_read(name, source.frame, trusted=table.trusted_view)
            return source.frame, None, []
        frame, parts = _named_table(spark, self._session, name, source.name, trusted=table.trusted_view)
        return frame, source.name, parts

    def show(self, frame: DataFrame, view: str) -> None:
        """Make a data frame a view of our session, under names that no setting and no parser reads in another way."""
        assert self._session is not None
        plain = as_texts(frame.toDF(*(SPARK.shown_as(c) for c in frame.columns)))
        lend(plain, self._session, view)

    def seal(self) -> None:
        """After the last `add`."""
        self._local.seal()

    def _check_read(self, name: str, frame: DataFrame, *, trusted: bool, again: bool = False) -> None:
        assert self._session is not None
        with _listing(name):
            whole = look_at(frame, self._session)
            why = None if trusted else read_by_rows(frame, self._session, again=again)
        if not whole:
            why = "its files have changed since the frame was made; read them again, into a new frame and session."
        if why is not None:
            raise PolicyError(f"table {name!r}: {why} Nothing was charged.")

    def _check_frames(self, name: str) -> None:
        assert self._spark is not None
        refused = refused_setting(self._spark.conf.get)
        if refused is not None:
            key, value, instead = refused
            raise PolicyError(
                f"table {name!r}: its Spark session has {key} = {value}: then one row can make reading fail, rows are "
                f"left out silently, or two people are one. Set it to {instead}. Nothing was charged."
            )

    def recheck(self, name: str) -> None:
        """Raises PolicyError where the cluster is gone, the columns of a table of the catalogue have changed, or a
        setting decides an answer; or a row does, as a data frame that is cached since reads all of its columns."""
        known = self._known.get(name)
        if known is None or self._spark is None or self._session is None:
            return
        _check_up(self._spark, name)
        self._check_frames(name)
        if settings_of(self._session) != self._settings:
            raise PolicyError(
                f"table {name!r}: settings of Spark that belong to this session were changed from outside; open a new "
                "session. Nothing was charged."
            )
        if known.name is None:
            self._check_frame_again(name, known, self._session)
            return
        with contextlib.suppress(Exception):  # what was written by another session since is read
            java_of(self._session).sessionState().catalog().invalidateAllCachedTables()
        frame, _ = _named_table(self._spark, self._session, name, known.name, trusted=known.trusted)
        if [*_physical(name, frame, self._session).items()] != [*known.physical.items()]:
            raise PolicyError(
                f"the columns of the table {name!r} have changed; open a new session. Nothing was charged."
            )
        self.show(frame, known.view)

    def _check_frame_again(self, name: str, known: _Known, session: SparkSession) -> None:
        frame = session.table(known.view)
        self._check_read(name, frame, trusted=known.trusted, again=True)
        now = _physical(name, frame, session).values()
        if any(CUT in one and one != before for one, before in zip(now, known.physical.values(), strict=True)):
            raise PolicyError(
                f"table {name!r}: its files have changed, and hold more than Spark reads of them; open a new session "
                "with a new frame. Nothing was charged."
            )

    def mark(self, name: str) -> str | None:
        """None: of a table in Spark only a refresh tells."""
        return None

    def compile(self, plan: Plan) -> str:
        """The SQL text that `run` runs (beside one for each list of values, if quantiles are asked)."""
        return aggregate_sql(plan, self._places(plan), SPARK)

    def texts(self, plan: Plan) -> tuple[list[int], list[str]]:
        """The measurements that are not sums, and the texts: one for each of them, then that of the sums if any."""
        places = self._places(plan)
        listed = [i for i, m in enumerate(plan.measurements) if not summed(m)]
        texts = [listed_sql(plan, places, i, SPARK) for i in listed]
        if len(listed) < len(plan.measurements) or plan.private_keys:
            texts.append(aggregate_sql(plan, places, SPARK))
        return listed, texts

    def _places(self, plan: Plan) -> dict[str, Place]:
        return self._places_of({scan.table for scan in scans(plan.question.relation)})

    def _places_of(self, names: Collection[str]) -> dict[str, Place]:
        return {n: Place(k.view, k.columns, k.unit, k.fields.key) for n, k in self._known.items() if n in names}

    def prepare(self, plan: Plan) -> None:
        """Whether Spark takes every text of a plan: it parses and analyses them, and plans and runs none.

        Planning is left out with care: for rows that the program has handed over it computes on them.

        Raises QueryError where a text would grow beyond all use, or Spark does not take it.
        """
        _, texts = self.texts(plan)
        assert self._spark is not None
        assert self._session is not None
        stubs = "".join(f"{leaf.place} AS ({_stub(leaf)}),\n" for leaf in leaves(plan.question.relation))
        for text in texts:
            why = None
            try:
                with _quiet():
                    self._session.sql(_with(stubs, text))
            except AnalysisException as error:
                why = error.getCondition() or "it cannot be read"
            except Exception:  # Py4J's, with its own words; it is told apart by whether Spark still answers
                if not _is_up(self._spark):
                    return  # for `run` to find
                why = "it is nested too deeply"
            if why is not None:
                raise QueryError(
                    f"Spark does not take this form of question ({why}); ask in another way. Nothing was charged."
                )

    def run(self, plan: Plan, public: Mapping[str, Any] | None = None) -> Exact:
        """Run the private part of a question.

        Raises EngineError, with an incident id alone, whatever Spark says: its words may hold rows.
        """
        listed, texts = self.texts(plan)
        with _quiet():
            answers = self._answers(texts, public or {})
        if answers is None:
            raise EngineError(uuid.uuid4().hex[:12])
        main = answers[-1] if len(texts) > len(listed) else []
        return exact(plan, main, dict(zip(listed, answers, strict=False)))

    def totals(
        self, scan: Scan, columns: Sequence[str], write: Callable[[str, Any], str], public: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        """The rows of a text of sums over the owned rows of a table (`InPlace`).

        Raises EngineError, with an incident id alone, if Spark fails.
        """
        places = self._places_of({one.table for one in scans(scan)})
        with _quiet():
            answers = self._answers([write(rows_sql(scan, places, columns, SPARK), SPARK)], public)
        if answers is None:
            raise EngineError(uuid.uuid4().hex[:12])
        return answers[0]

    def _answers(self, texts: Sequence[str], public: Mapping[str, Any]) -> list[list[tuple[Any, ...]]] | None:
        """The rows of each text; None if Spark failed, for whatever reason."""
        assert self._spark is not None
        assert self._session is not None
        views, before, context = {}, [], self._spark.sparkContext
        tag = f"hubbub-{uuid.uuid4().hex[:12]}"
        try:
            before = [(key, context.getLocalProperty(key)) for key in _JOB_GROUP]
            for place, table in public.items():
                views[place] = f"hubbub_{self._own}_{uuid.uuid4().hex[:12]}"
                lend(self._public(table), self._session, views[place])
            stages = "".join(f"{place} AS (SELECT * FROM {view}),\n" for place, view in views.items())
            with self._lock:
                self._tags[tag] = asker()
            context.setJobGroup(tag, "hubbub", interruptOnCancel=True)
            answers = []
            for text in texts:
                if time.monotonic() >= self._until:
                    return None
                rows = self._session.sql(_with(stages, text)).collect()
                answers.append([tuple(row) for row in rows])
            return answers
        except Exception:  # its words may hold rows: nothing of it goes further
            return None
        finally:
            set_again: Any = context.setLocalProperty  # None unsets a property, which its types leave out
            with contextlib.suppress(Exception):  # a cluster that is gone cannot be tidied
                for key, value in before:
                    set_again(key, value)
                for view in views.values():
                    self._session.catalog.dropTempView(view)
            with self._lock:
                self._tags.pop(tag, None)

    def _public(self, table: pa.Table) -> DataFrame:
        assert self._spark is not None
        kinds = {f.name: _spark_type(str(f.type)) for f in table.schema}
        schema = ", ".join(f"{SPARK.quote(name)} {kind}" for name, kind in kinds.items())
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        return self._spark.createDataFrame(rows, schema)

    def words(self, incident: str) -> str | None:
        """What Spark said of an incident is in its own log."""
        return None

    def rows(self, scan: Scan, columns: Sequence[str]) -> Any:
        """Raises PolicyError: rows never leave the cluster."""
        raise PolicyError(
            f"the rows of {scan.table!r} stay on their cluster: synthetic tables and sets of marginals are made of "
            "files and frames."
        )

    def interrupt(self, asker: object = None) -> None:
        """Stop what is running; or, of that, only what runs for one asker."""
        with self._lock:
            tags = [tag for tag, whose in self._tags.items() if asker is None or whose is asker]
        if self._spark is not None:
            for tag in tags:
                self._spark.sparkContext.cancelJobGroup(tag)

    def close(self) -> None:
        """Stop what is running and drop our views; the Spark session is its owner's."""
        with contextlib.suppress(Exception):  # a cluster that is gone cannot be tidied
            self.interrupt()
            for known in self._known.values():
                if self._session is not None:
                    self._session.catalog.dropTempView(known.view)
        self._local.close()


def _check_up(spark: SparkSession, name: str) -> None:
    if not _is_up(spark):
        raise PolicyError(
            f"table {name!r}: its Spark has stopped; open a new session, with frames of a Spark that runs. Nothing was "
            "charged."
        )


def _is_up(spark: SparkSession) -> bool:
    """Whether the session's Java still answers, and has not been told to stop."""
    with contextlib.suppress(Exception):
        java: Any = spark.sparkContext._jsc
        return not java.sc().isStopped()
    return False


def _with(stages: str, text: str) -> str:
    """A text with stages of ours before its own. What it is expanded from before it is parsed is in no text of ours."""
    statement = f"WITH {stages}{text.removeprefix('WITH ')}"
    if "${" in statement:
        raise InternalError("a text for Spark holds what it would expand")
    return statement


def _stub(leaf: PublicRelation) -> str:
    """A relation without rows that has the columns of a public one."""
    columns = [f"{SPARK.null(kind)} AS {SPARK.quote(name)}" for name, kind in leaf.columns.items()]
    return f"SELECT {', '.join(columns) or '1 AS one'} WHERE FALSE"


def _physical(table: str, frame: DataFrame, session: SparkSession) -> dict[str, str]:
    physical: dict[str, str] = {}
    with _listing(table):
        columns = physical_of(frame, session)
    for name, kind in columns:
        if name in physical:
            raise PolicyError(f"table {table!r} has two columns {name!r}; rename one.")
        physical[name] = kind
    return physical


@contextlib.contextmanager
def _listing(table: str) -> Iterator[None]:
    """What Spark raises of files that it cannot list or look at is told in words of ours: its own name them."""
    failed = False
    with _quiet():
        try:
            yield
        except Exception:  # Spark's own, or one of Py4J's
            failed = True
    if failed:
        raise PolicyError(f"table {table!r}: Spark cannot look at its files. Nothing was charged.")


def _named_table(
    spark: SparkSession, own: SparkSession, name: str, known_as: str, *, trusted: bool
) -> tuple[DataFrame, list[str]]:
    """A table of the catalogue, read in our session, and its whole name; a view as the tables' session understands it.

    Raises PolicyError for one that is missing or cannot be read, and, unless it is trusted, for a view and for a format
    in which one row can change another.
    """
    entry, frame = None, None
    about: dict[str, str] = {}
    after: dict[str, str] = {}
    with _quiet(), contextlib.suppress(Exception):  # the words of a metastore are its own
        entry = spark.catalog.getTable(known_as)
    if entry is None:
        raise PolicyError(f"table {name!r}: Spark's catalogue has no table {known_as!r}.")
    kind = entry.tableType
    base = kind in ("MANAGED", "EXTERNAL")
    if not base and not trusted:
        raise not_trusted(name, known_as, f"is a {'temporary view' if kind == 'TEMPORARY' else kind.lower()}")
    parts = [part for part in (entry.catalog, *(entry.namespace or ()), entry.name) if part]
    whole = quoted(parts)
    with _quiet(), contextlib.suppress(Exception):
        if base and not trusted:
            about = details(own, whole)
        frame = own.table(whole) if base else spark.table(known_as)
        if base and not trusted:
            after = details(own, whole)  # of a table in its place, the frame may be
    if frame is None:
        raise PolicyError(f"table {name!r}: Spark cannot read {known_as!r}. Nothing was charged.")
    if about != after:
        raise PolicyError(f"table {name!r}: {known_as!r} was changed while it was looked at; ask again.")
    why = reads_row_by_row(about) if base and not trusted else None
    if why is None and base and not trusted:
        with _listing(name):
            why = stored_otherwise(frame, own)
    if why is not None:
        raise PolicyError(
            f"table {name!r}: {known_as!r} {why}; there one row may change how others are read, or make reading fail. "
            f"Name a table of {', '.join(FORMATS)} with options of its own; or, where each row is read by itself and "
            "reading never fails, declare trusted_view = true."
        )
    return frame, parts


def _local_session() -> SparkSession:
    """The program's session, or one of our own: master and catalogue are then those of `spark-defaults.conf`.

    Our own shows nothing that depends on rows: no log, no progress, no web page with the metrics of a question.
    """
    if SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()
    builder: Any = SparkSession.builder.appName("hubbub")
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class _Quiet(logging.Filter):
    """Drops what pyspark writes of an error in a thread of ours: it holds the value that a row failed on."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        return record.thread not in self.threads


_QUIET = _Quiet()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """In this thread, errors of Spark are raised and not written."""
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_QUIET)  # once: a filter that is there is not added again
    me = threading.get_ident()
    inner = me in _QUIET.threads
    _QUIET.threads.add(me)
    try:
        yield
    finally:
        if not inner:
            _QUIET.threads.discard(me)


def _spark_type(arrow: str) -> str:
    types = {"int64": "BIGINT", "double": "DOUBLE", "bool": "BOOLEAN", "date32[day]": "DATE"}
    return "TIMESTAMP_NTZ" if arrow.startswith("timestamp") else types.get(arrow, "STRING")
