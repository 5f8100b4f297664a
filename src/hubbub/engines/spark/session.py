"""A session of our own beside the one that tables belong to: its settings are ours, and are read back.

A setting can change what a text says before it is parsed (`${...}` is expanded, names are patterns), what it means
(casts, decimals, time zone, calendars) and which rows are read (files that are damaged or gone). So texts run in a
session that `newSession` gives: it shares the cluster, the catalogue and what is cached, and has no temporary function
that could stand before a built-in one. All its settings of SQL are the defaults, but for `SETTINGS`, for those of
`KEPT`, which change no answer, and for static ones, which belong to the cluster and cannot be set. What is set is
remembered as it was when the session was made, and compared before every charge.

Data frames keep the session that they were made in: Spark reads files by the settings of that one. Those settings
by which a row can make reading fail, or leave rows out, are looked at there, and refused (`FRAMES`).
"""

from __future__ import annotations

import contextlib
import subprocess
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "FRAMES",
    "KEPT",
    "SERDES",
    "SETTINGS",
    "java_process",
    "lend",
    "own_session",
    "refused_setting",
    "settings_of",
]

PRESERVED: Final = "spark.sql.preserveCharVarcharTypeInfo"
"""Whether VARCHAR(n) is a type: of such a one ORC reads the first n characters alone, and two people are one."""

SETTINGS: Final[Mapping[str, str]] = {
    # What is rewritten before it is parsed, and how names, numbers and texts are read.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # What has no answer is NULL and no error: below the texts, which hold by themselves, a net.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    # What is behind a condition is computed behind it alone.
    "spark.sql.subexpressionElimination.skipForShortcutExpr": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.datetime.java8API.enabled": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    # How files are read: no date makes reading fail, no damaged file is left out silently.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    # A row group that a filter leaves out is read: whether a file fails may not depend on the rows in it.
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.orc.filterPushdown": "false",
    # Of what is cached likewise: statistics leave NaN out, say, so one person's row would show those of others.
    "spark.sql.inMemoryColumnarStorage.partitionPruning": "false",
    # Read row by row, a decimal with a digit more than its type is an error.
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.parquet.enableNestedColumnVectorizedReader": "true",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.readSideCharPadding": "true",
    PRESERVED: "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Where a row is, is not believed of the name of its file.
    "spark.sql.sources.bucketing.enabled": "false",
    # A limit of time would make one person's many rows an error.
    "spark.sql.broadcastTimeout": "-1",
}

KEPT: Final = (
    "spark.sql.catalog.",
    "spark.sql.defaultCatalog",
    "spark.sql.hive.metastore",
    "spark.sql.adaptive.",
    "spark.sql.shuffle.partitions",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.maxPartitionNum",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.openCostInBytes",
    "spark.sql.inMemoryColumnarStorage.",
)
"""Where tables are, how work is divided: these are taken over from the tables' session."""

_SECRETS: Final = ("fs.", "spark.hadoop.fs.")
"""With what rights a file system is reached: taken over, too."""

FRAMES: Final[Mapping[str, tuple[str, str]]] = {
    # Of days of another calendar a row makes reading fail, or two are one.
    "spark.sql.parquet.datetimeRebaseModeInRead": ("EXCEPTION LEGACY", "CORRECTED"),
    "spark.sql.parquet.int96RebaseModeInRead": ("EXCEPTION LEGACY", "CORRECTED"),
    "spark.sql.avro.datetimeRebaseModeInRead": ("EXCEPTION LEGACY", "CORRECTED"),
    "spark.sql.files.ignoreCorruptFiles": ("true", "false"),
    "spark.sql.files.ignoreMissingFiles": ("true", "false"),
    # Rows are counted by what a file says of itself.
    "spark.sql.parquet.aggregatePushdown": ("true", "false"),
    "spark.sql.orc.aggregatePushdown": ("true", "false"),
    # A column is another than the one of its name, of whose type nothing is known.
    "spark.sql.parquet.fieldId.read.enabled": ("true", "false"),
    # Read row by row, a decimal with a digit more than its type is an error.
    "spark.sql.parquet.enableVectorizedReader": ("false", "true"),
    "spark.sql.parquet.enableNestedColumnVectorizedReader": ("false", "true"),
}
"""What the session of a data frame may not say, one or several words, and what it may."""

FILTERED: Final[Mapping[str, str]] = {
    "parquet": "spark.sql.parquet.filterPushdown",
    "orc": "spark.sql.orc.filterPushdown",
}
"""By the format of files: what may not be true in the session that reads them where a data frame filters them."""
PRUNED: Final = "spark.sql.inMemoryColumnarStorage.partitionPruning"
"""The same of what is cached."""


def own_session(session: SparkSession) -> SparkSession:
    """A session on the same cluster whose settings are `SETTINGS`, those of `KEPT`, and else the defaults."""
    own = session.newSession()
    for key in _set_keys(own):
        if key.startswith("spark.sql.") and not key.startswith(KEPT):
            with contextlib.suppress(Exception):  # static ones are the cluster's
                own.conf.unset(key)
    for key in _set_keys(session):
        if key.startswith((*KEPT, *_SECRETS)):
            value = session.conf.get(key)
            with contextlib.suppress(Exception):
                if value is not None:
                    own.conf.set(key, value)
    for key, value in SETTINGS.items():
        own.conf.set(key, value)
    own.catalog.setCurrentCatalog(session.catalog.currentCatalog())
    with contextlib.suppress(Exception):  # tables are looked for under their whole names
        own.catalog.setCurrentDatabase(session.catalog.currentDatabase())
    return own


def _set_keys(session: SparkSession) -> list[str]:
    return [row[0] for row in session.sql("SET").collect()]


def settings_of(session: SparkSession) -> dict[str, str]:
    """What is set of SQL in a session; secrets are not shown by Spark."""
    return {row[0]: row[1] for row in session.sql("SET").collect() if row[0].startswith("spark.sql.")}


def refused_setting(setting: Callable[[str], Any]) -> tuple[str, str, str] | None:
    """A setting of a data frame's session that `FRAMES` refuses: its name, its value, and the one to set.

    setting: what the session says of a name.
    """
    for key, (refused, instead) in FRAMES.items():
        with contextlib.suppress(Exception):  # one that this Spark does not have
            value = str(setting(key))
            if value.upper() in refused.upper().split():
                return key, value, instead
    return None


def lend(frame: DataFrame, to: SparkSession, view: str) -> None:
    """Show a data frame of one session in another of the same cluster, as a temporary view there.

    What the frame computes stays as its own session has understood it.
    """
    passed, spark = f"hubbub_{uuid.uuid4().hex}", frame.sparkSession
    shared = to.conf.get("spark.sql.globalTempDatabase")
    frame.createOrReplaceGlobalTempView(passed)
    try:
        to.table(f"{shared}.{passed}").createOrReplaceTempView(view)
    finally:
        spark.catalog.dropGlobalTempView(passed)


def quoted(parts: Sequence[str]) -> str:
    """A name of several parts as Spark reads it."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def details(session: SparkSession, name: str) -> dict[str, str]:
    """What the catalogue says of a table, from the last heading of its description on: columns stand above it."""
    details: dict[str, str] = {}
    for row in session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect():
        key, value = str(row[0]), str(row[1])
        if key == "# Detailed Table Information":
            details = {}
        else:
            details.setdefault(key, value)
    return details


FORMATS: Final = ("parquet", "orc")
SERDES: Final = {
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
}
_OPTIONS: Final[Mapping[str, Sequence[str] | None]] = {
    **dict.fromkeys(("path", "paths", "basepath", "serialization.format", "recursivefilelookup", "pathglobfilter")),
    **dict.fromkeys(("compression", "parquet.compression", "orc.compress")),
    **dict.fromkeys(("ignorecorruptfiles", "ignoremissingfiles"), ("false",)),
    **dict.fromkeys(("datetimerebasemode", "int96rebasemode"), ("corrected",)),
}
"""With what options files may be read: by name in small letters, the values that one may have; None for all."""


def refused_option(options: Mapping[str, str]) -> str | None:
    """The first option of which it is not known that each row is read by itself; None if there is none."""
    for key, value in options.items():
        low = key.lower()
        allowed = _OPTIONS.get(low)
        if low not in _OPTIONS and not low.startswith(_SECRETS):
            return f"{low}"
        if allowed is not None and value.lower() not in allowed:
            return f"{low}={value}"
    return None


def reads_row_by_row(about: Mapping[str, str]) -> str | None:
    """Why a table's format is not one of those that keep the values of a row apart from all others; None if it is."""
    provider = about.get("Provider", "").lower()
    if provider == "hive" and about.get("Serde Library") in SERDES:
        provider = "parquet"
    if provider not in FORMATS:
        return f"is of the format {provider or 'of its catalogue'!r}"
    options = about.get("Storage Properties", "[]").strip("[]")
    pairs = [option.partition("=") for option in filter(None, options.split(", "))]
    refused = refused_option({key: value for key, _, value in pairs})
    return None if refused is None else f"is read with the option {refused!r}"


def java_process() -> subprocess.Popen[bytes] | None:
    """The Java that this process started for its driver; None where it started none."""
    process: Any = getattr(SparkContext._gateway, "proc", None)
    return process if isinstance(process, subprocess.Popen) else None


def java_of(session: SparkSession) -> Any:
    """The Java session below one of Python."""
    return session._jsparkSession
