"""What a data frame may be read from: a list, as for tables of the catalogue; anything else needs `trusted_view`.

The list: files of Parquet and ORC, rows in memory, and what Spark has computed and kept. Of files it is looked at
whether Spark makes the types of their columns from the rows, and whether a value of one row can make reading fail; the
frame's plan and the footers of its files tell that. What the frame computes is a list as well
(`hubbub.engines.spark.computed`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession, functions

from hubbub.engines.fields import CUT
from hubbub.engines.spark.computed import children_of, unsure
from hubbub.engines.spark.files import (
    Files,
    cut_columns,
    look_again,
    of_another_type,
    of_several_types,
    too_wide,
)
from hubbub.engines.spark.session import FILTERED, PRESERVED, PRUNED, refused_option, refused_setting

__all__ = ["as_texts", "look_at", "physical_of", "read_by_rows", "stored_otherwise", "types_from_rows"]

_PHYSICAL: Final = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp_ntz": "TIMESTAMP",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "binary": "BLOB",
    "void": "NULL",
}
"""Spark's types under the names that `hubbub.engines.fields` knows."""


def physical_of(frame: DataFrame, session: SparkSession) -> list[tuple[str, str]]:
    """The columns of a frame with their physical types; those of which reading makes one of several are marked."""
    merged, physical = _merged(frame, session), list[tuple[str, str]]()
    for i, (name, kind) in enumerate(frame.dtypes):
        base = kind.split("(")[0]
        if base == "decimal":
            word = kind.upper()
        elif base in ("char", "varchar"):
            word = "VARCHAR"
        else:
            word = _PHYSICAL.get(kind, f"{kind}[]")  # of no kind that a question can name
        physical.append((name, f"{word}{CUT}" if i in merged else word))
    return physical


def _merged(frame: DataFrame, session: SparkSession) -> Set[int]:
    """The places of the columns in which two values that are stored are one.

    Of names of folders read as numbers, `01` and `1`; and of what Spark has not written, those that it cuts.
    """
    plan = frame._jdf.queryExecution().analyzed()  # not what is cached: of that the columns have other numbers
    nodes = list(_nodes(plan, None))
    java: Any = frame.sparkSession._jvm
    merged = set[int]()
    for leaf in (_leaf(node, None, java) for node, _, above in nodes if above is None):
        cut = cut_columns(leaf.files, leaf.every, session)
        merged |= leaf.folders | {leaf.numbers[name] for name in cut}
    if not merged:
        return frozenset()
    for node, _, _ in reversed(nodes):  # from the leaves on
        merged |= {made for made, sources in _columns_made(node) if merged & sources}
    output = enumerate(_sequence(plan.output()))
    return {i for i, a in output if a.exprId().id() in merged and not a.dataType().sql().startswith("STRING")}


def _columns_made(node: Any) -> Iterator[tuple[int, Set[int]]]:
    """The numbers of the columns that a node makes, each with those of the columns that it makes it of."""
    kind = node.getClass().getSimpleName()
    lists = {"Project": "projectList", "Aggregate": "aggregateExpressions"}.get(kind)
    for entry in [] if lists is None else _sequence(getattr(node, lists)()):
        yield entry.exprId().id(), {a.exprId().id() for a in _sequence(entry.references().toSeq())}
    if kind == "Union":  # its columns have the numbers of the first one's
        below = [[a.exprId().id() for a in _sequence(child.output())] for child in children_of(node)]
        for made, *sources in zip(_sequence(node.output()), *below, strict=True):
            yield made.exprId().id(), set(sources)


def as_texts(plain: DataFrame) -> DataFrame:
    """A data frame whose CHAR(n) and VARCHAR(n) are texts, without the blanks at the end of the first.

    They say nothing, and are there or not by a setting of who wrote or reads it. plain: with names that need no quotes.
    """
    made: list[Column] = []
    for one in plain.schema.fields:
        kind = str(one.metadata.get(_LENGTH, ""))
        text = plain[one.name].cast("string") if kind else plain[one.name]
        made.append(functions.rtrim(text).alias(one.name) if kind.startswith("char(") else text.alias(one.name))
    return plain.select(made) if any(_LENGTH in field.metadata for field in plain.schema.fields) else plain


_LENGTH: Final = "__CHAR_VARCHAR_TYPE_STRING"


def look_at(frame: DataFrame, session: SparkSession) -> bool:
    """Have those files of a frame looked at anew that have changed since they were; to be done before they are. Returns
    whether each is as long as when the frame was made.
    """
    alike = [look_again(leaf.files, session) for leaf in _leaves(frame)]
    return all(alike)


_GUESSED: Final = "spark.sql.sources.partitionColumnTypeInference.enabled"


def types_from_rows(frame: DataFrame, session: SparkSession) -> str | None:
    """Why the types of a data frame's columns may follow from the rows in its files, and what to do; None if not."""
    leaves = _leaves(frame)
    # A folder is named by a value of the rows in it: with one more person's, all numbers of a column may become texts.
    guessed = str(frame.sparkSession.conf.get(_GUESSED)).lower() != "false"
    guessed = guessed or any(kind == "void" for _, kind in frame.dtypes)  # where no folder has a value yet
    if any(leaf.guessed or (guessed and leaf.parted) for leaf in leaves):
        return (
            "Spark guesses the types of its partitions' columns from the names of all folders, so one row can change "
            f"the type of everybody's values. Set {_GUESSED} to false, and read it again: they are then texts, or of "
            "the types of a schema that you give (`spark.read.schema`)."
        )
    if any(of_several_types(leaf.files, session) for leaf in leaves):
        return (
            "its Parquet or ORC files do not have one schema. Which of them Spark reads follows from the rows in them; "
            "write them with the same types."
        )
    return None


def read_by_rows(frame: DataFrame, session: SparkSession, *, again: bool = False) -> str | None:
    """Why what a data frame is read from lets one row change how others are read, or make reading fail, and what to
    do; None if it does not, as far as its plan and the footers of its files tell.

    again: the frame was looked at before. What it computes has changed only where some of it has been cached since.
    """
    same = again and "InMemoryRelation" not in str(_plan(frame)[0].toString())
    for why in (*map(_read_by_rows, _leaves(frame)), None if same else _computed(frame), _skipped(frame)):
        if why is not None:
            return f"{why}; or, where each row is read by itself and reading never fails, declare trusted_view=True."
    why = stored_otherwise(frame, session)
    if why is None:
        return None
    return (
        f"it {why}: one row can make reading fail, or two people one. Leave that column out of the frame, or write the "
        "files anew with Spark; or, where no row does that, declare trusted_view=True."
    )


def stored_otherwise(frame: DataFrame, session: SparkSession) -> str | None:
    """Why the files of a table may hold values that Spark cannot; None if they do not."""
    for leaf in _leaves(frame):
        if "orc" in leaf.form and "true" in (leaf.options.get(_BY_PLACE), _by_place(leaf.session)):
            return f"has files of ORC whose columns are read by their places ({_BY_PLACE})"
        column = too_wide(leaf.files, leaf.read, session)
        if column is not None:
            return (
                f"has files that Spark did not write, or wrote as milliseconds, whose column {column!r} may hold what "
                "Spark cannot"
            )
        column = of_another_type(leaf.files, leaf.schema, leaf.read, session) if leaf.schema else None
        if column is not None:
            return f"has files whose column {column!r} is of another type than Spark is told to read, or cannot be read"
    return None


def _by_place(session: Any) -> str:
    """What a session says by which files are read: not ours, in which a frame is asked."""
    return "" if session is None else str(session.sessionState().newHadoopConf().get(_BY_PLACE)).lower()


_BY_PLACE: Final = "orc.force.positional.evolution"
_COMPUTED: Final = "checkpoint"
_BESIDE: Final = "__metadata_col"
"""What Spark says of a column that is not in the files: `_metadata`, with a row's place in its file."""
_PLACE: Final = "_tmp_metadata_row_index"
"""That place, under the name by which Spark fills it in by itself where a schema has it."""
_IN_MEMORY: Final = (_COMPUTED, "LocalRelation", "OneRowRelation", "EmptyRelation", "Range")
_HANDED: Final = {"LocalRelation", "OneRowRelation"}
"""Rows that the program has handed over; of the second kind each is written as what is selected."""
_FILE_TABLES: Final = ("parquettable", "orctable")
_BUCKETS: Final = "spark.sql.sources.bucketing.enabled"
_READS: Final = ("parquetfileformat", "orcfileformat", *_FILE_TABLES)
"""The classes that read formats which keep rows apart."""


def _read_by_rows(leaf: _Leaf) -> str | None:
    option = refused_option(leaf.options)
    if option is not None:
        return f"its files are read with the option {option!r}. Read them without it"
    if leaf.buckets:
        return (
            "its table is cut into buckets, by whose files' names Spark believes a row to be where it is not, and one "
            f"person is several. Set {_BUCKETS} to false in the session of the frame"
        )
    refused = None if leaf.session is None else refused_setting(leaf.session.conf().get)
    if refused is not None:
        key, value, instead = refused
        return f"its files are read by a session that has {key} = {value}. Set it to {instead} there"
    if "orc" in leaf.form and leaf.session is not None and str(leaf.session.conf().get(PRESERVED)).lower() == "true":
        return f"its files of ORC are read as texts of a length, by {PRESERVED} = true. Set it to false there"
    if leaf.of_rows is not None:
        return (
            f"it has {leaf.of_rows!r}, which says of a row where it stands among others, not what it holds. Leave it "
            "out"
        )
    if leaf.kind in _IN_MEMORY or leaf.form in _READS:
        return None
    if leaf.kind == "LogicalRDD":
        return (
            "its rows are those of an RDD (also a list's, or a large Arrow table's), made anew for each question: one "
            "that does not fit its column makes reading fail, or is read as another. Keep what they are first "
            "(`frame.localCheckpoint()`), write them as Parquet with Spark, or make the frame of a small Arrow table"
        )
    return (
        f"it is read by {leaf.form or leaf.kind!r}, where one row may hide others or make reading fail: of a data "
        "frame's sources Parquet, ORC, rows in memory and what Spark has kept are known not to. Write it as Parquet, "
        "or keep it first (`checkpoint`); of a table of Hive, set spark.sql.hive.convertMetastoreParquet and "
        "spark.sql.hive.convertMetastoreOrc to true"
    )


@dataclass(frozen=True)
class _Leaf:
    """What a frame is read from. kind: the class of its node. form: that of what reads files, in small letters, or "".

    read: the columns that the frame reads, with their types. files: addresses. schema: of the files, as JSON.
    parted: whether columns come from the names of folders; guessed: whether it was Spark that found the types of
    such columns, when it was read; folders: which ones, by number, but for texts. every: all its
    columns, with their types, and numbers: what the plan calls them by. of_rows: a column that no file holds, such as
    `_metadata`. session: by whose settings the files are read, a Java
    object. buckets: whether rows are taken to be where the names of files say.
    """

    kind: str
    form: str
    options: Mapping[str, str]
    read: Mapping[str, str]
    files: Files
    schema: str = ""
    parted: bool = False
    guessed: bool = False
    folders: Set[int] = frozenset()
    every: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    of_rows: str | None = None
    session: Any = None
    buckets: bool = False


def _leaves(frame: DataFrame) -> list[_Leaf]:
    """What a frame is read from, with the columns that its plan reads of each.

    Of the frame's own columns those that have others inside are read by nobody: no question can name them. What is
    cached is read as a whole.
    """
    java: Any = frame.sparkSession._jvm
    return [_leaf(node, wanted, java) for node, wanted, above in _nodes(*_plan(frame)) if above is None]


def _plan(frame: DataFrame) -> tuple[Any, Set[int]]:
    plan = frame.select("*")._jdf.queryExecution().withCachedData()  # now: it may be cached since it was made
    java: Any = frame.sparkSession._jvm
    moments = getattr(java.org.apache.spark.sql.catalyst.optimizer, "ComputeCurrentTime$")
    plan = getattr(moments, "MODULE$").apply(plan)  # what is counted from now is a constant
    return plan, {a.exprId().id() for a in _sequence(plan.output()) if "<" not in a.dataType().sql()}


def _computed(frame: DataFrame) -> str | None:
    """Why what a frame computes may fail on a row, or makes one row decide about another's, and what to do."""
    nodes = list(_nodes(*_plan(frame)))
    kinds = {node.getClass().getSimpleName() for node, _, above in nodes if above is None}
    for node, _, expressions in nodes:
        if expressions is None:
            continue
        # Of rows that the program has handed over Spark computes all, before it leaves out what nobody reads.
        every = _sequence(node.expressions()) if kinds & _HANDED else expressions
        why = unsure(node, every, literal="OneRowRelation" in kinds)
        if why is not None:
            return why
    return None


def _skipped(frame: DataFrame) -> str | None:
    """Why rows may be left out that a frame's filter takes, and what to do.

    Spark skips a part of a file, or of what is cached, whose statistics tell that no row of it fits. They compare in
    another way than Spark (-0.0 is less than 0.0, NaN is left out, a day of 1582 is another), so one person's row in
    that part shows those of all others in it.
    """
    java: Any = frame.sparkSession._jvm
    for node, kept in _filtered(_plan(frame)[0], above=False):
        if kept:
            session, key = node.cacheBuilder().cachedPlan().session(), PRUNED
        else:
            leaf = _leaf(node, None, java)
            session, key = leaf.session, next((key for form, key in FILTERED.items() if form in leaf.form), "")
        if session is not None and key and str(session.conf().get(key)).lower() != "false":
            again = ", `unpersist` what is cached, and cache it again" if kept else ""
            return (
                f"it filters what its session skips by statistics ({key} = true), which compare -0.0, NaN and old days "
                f"in another way: one row decides whether others are seen. Set {key} to false{again}, or leave the "
                "filter to the questions"
            )
    return None


def _filtered(plan: Any, *, above: bool) -> Iterator[tuple[Any, bool]]:
    """What a plan reads below a filter: its leaves, and, with True, what is cached that filters what else is.

    above: whether there is a filter above. One of our own session, above what is cached, skips nothing.
    """
    kind = plan.getClass().getSimpleName()
    if kind == "InMemoryRelation":
        inner, filtered = plan.cacheBuilder().logicalPlan(), False
        for node, kept in _filtered(inner, above=False):
            filtered = True
            yield node, kept
        if filtered and _SCAN in str(plan.cacheBuilder().cachedPlan().toString()):
            yield plan, True
        return
    below = children_of(plan)
    if not below and above:
        yield plan, False
    for child in below:
        yield from _filtered(child, above=above or kind == "Filter")


_SCAN: Final = "InMemoryTableScan"
"""Of Spark: what reads that which is cached."""


def _leaf(node: Any, wanted: Set[int] | None, java: Any) -> _Leaf:
    kind, output = node.getClass().getSimpleName(), _sequence(node.output())
    if kind == "DataSourceV2ScanRelation":  # of what is cached
        kind, node = "DataSourceV2Relation", node.relation()
    read = {a.name(): a.dataType().sql() for a in output if wanted is None or a.exprId().id() in wanted}
    options: Mapping[str, str] = {}
    form, listed, schema, parts, session, cut = "", None, None, None, None, False
    if kind == "LogicalRelation":
        relation = node.relation()
        form = _form(relation)
        if form == "hadoopfsrelation":
            form, schema = _form(relation.fileFormat()), relation.dataSchema()
            options = _lowered(java.scala.jdk.javaapi.CollectionConverters.asJava(relation.options()))
            listed, parts, session = relation.location(), relation.partitionSchema(), relation.sparkSession()
            cut = relation.bucketSpec().isDefined() and str(session.conf().get(_BUCKETS)).lower() != "false"
    elif kind == "DataSourceV2Relation":
        table = node.table()
        form, options = _form(table), _lowered(node.options())
        if form in _FILE_TABLES:
            schema, listed, session = table.dataSchema(), table.fileIndex(), table.sparkSession()
            parts = listed.partitionSchema()
    elif kind == "LogicalRDD":
        kind = _COMPUTED if node.rdd().isCheckpointed() else kind  # by Spark, which has read each value
    files = Files(form) if listed is None else Files(form, list(listed.inputFiles()), _listing(listed, java), listed)
    parted = set() if parts is None else {name.lower() for name, _ in _fields(parts)}
    typed = [a for a in output if a.name().lower() in parted and not a.dataType().sql().startswith("STRING")]
    guessed = {a.name().lower() for a in typed} - _given(listed, java) if typed else set()
    beside = [a.name() for a in output if a.metadata().contains(_BESIDE) or a.name().lower() == _PLACE]
    return _Leaf(
        kind,
        form,
        options,
        read,
        files,
        "" if schema is None else schema.json(),
        bool(parted),
        bool(guessed),
        {a.exprId().id() for a in typed},
        {a.name(): a.dataType().sql() for a in output},
        {a.name(): a.exprId().id() for a in output},
        next(iter(beside), None),
        session,
        cut,
    )


def _form(reader: Any) -> str:
    """The class of what reads files, in small letters; a longer name for one that is not Spark's own, as Hive's is."""
    name = str(reader.getClass().getName())
    return (name.rpartition(".")[2] if name.startswith(_SPARKS) else name).lower()


_SPARKS: Final = "org.apache.spark.sql.execution.datasources."


def _given(listed: Any, java: Any) -> set[str]:
    """The columns, in small letters, of whose folders somebody has said the types: by a schema, or in the catalogue."""
    kind = listed.getClass()
    if kind.getSimpleName() == "CatalogFileIndex":
        return {name.lower() for name, _ in _fields(listed.partitionSchema())}
    while kind is not None:
        for own in kind.getDeclaredFields():
            if str(own.getName()).endswith("userSpecifiedSchema"):
                own.setAccessible(True)
                schema = own.get(listed)
                return {name.lower() for name, _ in _fields(schema.get())} if schema.isDefined() else set()
        kind = kind.getSuperclass()
    return set()


def _listing(listed: Any, java: Any) -> str:
    """What Spark knows of files: names, lengths, times of change."""
    none = getattr(getattr(java.scala.collection.immutable, "Nil$"), "MODULE$")
    return str(listed.listFiles(none, none).toString())


def _nodes(plan: Any, wanted: Set[int] | None) -> Iterator[tuple[Any, Set[int] | None, list[Any] | None]]:
    """The nodes of a plan, each with the attributes that are read of it (None for all of them), and what it computes
    (None where it is a leaf)."""
    for subquery in _sequence(plan.subqueries()):
        yield from _nodes(subquery, None)
    children, kind = children_of(plan), plan.getClass().getSimpleName()
    if kind == "InMemoryRelation":
        yield from _nodes(plan.cacheBuilder().logicalPlan(), None)
        return
    if not children:
        yield plan, wanted, None
        return
    if kind == "Project":
        entries = [e for e in _sequence(plan.projectList()) if wanted is None or e.exprId().id() in wanted]
        wanted = {a.exprId().id() for e in entries for a in _sequence(e.references().toSeq())}
        yield plan, wanted, entries
    else:
        if kind == "Filter" and wanted is not None:
            wanted = wanted | {a.exprId().id() for a in _sequence(plan.references().toSeq())}
        elif kind not in ("SubqueryAlias", "View"):
            wanted = None
        yield plan, wanted, _sequence(plan.expressions())
    for child in children:
        yield from _nodes(child, wanted)


def _sequence(scala: Any) -> list[Any]:
    return [scala.apply(i) for i in range(scala.size())]


def _fields(schema: Any) -> list[tuple[str, str]]:
    return [(field.name(), field.dataType().sql()) for field in _sequence(schema)]


def _lowered(options: Any) -> dict[str, str]:
    return {str(key).lower(): str(options[key]).lower() for key in options}
