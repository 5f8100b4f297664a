"""What stands in the files of a table that Spark cannot hold, as their footers tell; no row is read.

Spark's own types of times and decimals are narrower than those of the formats that it reads. A moment of a Parquet
file may be a number of milliseconds, and one beyond the year 294,000 (what Java calls the largest `long`, say) makes
Spark fail on the row that has it; so does a decimal with more digits than its type, and any far moment in ORC. Moments
of 96 bits, and those of ORC, are of nanoseconds: Spark reads microseconds, and two people would be one. Only a file
that Spark itself has written holds nothing of the kind.

So one person's row would decide whether there is an answer, at any epsilon, and no text of ours can stand around the
reading of a column.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

__all__ = ["cuts_moments", "of_another_type", "of_several_types", "too_wide"]

_VERSION: Final = "org.apache.spark.version"
_MOMENTS: Final = ("TIMESTAMP", "TIMESTAMP_NTZ")
_DIGITS: Final = 18
"""Decimals of so many digits Spark reads from Parquet as they are stored, and checks none."""
_AT_ONCE: Final = 16  # footers that are read at a time
_SEEN: WeakKeyDictionary[SparkSession, dict[Any, Any]] = WeakKeyDictionary()
"""What a session of ours has seen: before each charge only files that are new are looked at."""

Stored = Mapping[str, str]
"""Of each column of a file, by its name in small letters, how it is stored; what Spark has written has no columns."""


def too_wide(form: str, columns: Mapping[str, str], files: Sequence[str], session: SparkSession) -> str | None:
    """The column of some file that may hold what Spark fails on; None where there is none.

    form: the class that reads the files, in small letters. columns: those that are read, with their types in Spark.
    """
    asked = {name: kind for name, kind in columns.items() if _narrow(form, kind)}
    if not asked:
        return None
    for stored in _all_stored(form, files, session):
        for name, kind in asked.items():
            if stored is None or _fails(form, kind, stored.get(name.lower())):
                return name
    return None


def cuts_moments(form: str, columns: Mapping[str, str], files: Sequence[str], session: SparkSession) -> bool:
    """Whether some column holds moments that are told apart as they are stored, and no longer as Spark reads them."""
    moments = [name for name, kind in columns.items() if kind in _MOMENTS]
    if not moments:
        return False
    every = _all_stored(form, files, session)
    return any(stored is None or any("int96" in stored.get(m.lower(), "") for m in moments) for stored in every)


def _narrow(form: str, kind: str) -> bool:
    """Whether a type of Spark is narrower than that of some files; nested values are read by nobody's question."""
    if kind in _MOMENTS:
        return True
    digits = re.fullmatch(r"DECIMAL\((\d+),.*\)", kind)
    return digits is not None and ("parquet" not in form or int(digits[1]) > _DIGITS)


def _fails(form: str, kind: str, stored: str | None) -> bool:
    """Whether a column as it is stored in one file may hold what Spark fails on; of None the file has nothing."""
    if stored == "" or "parquet" not in form:
        return stored != ""
    if stored is None:
        return False
    return "MILLIS" in stored if kind in _MOMENTS else not stored.startswith(("int32", "int64"))


def _all_stored(form: str, files: Sequence[str], session: SparkSession) -> Iterable[Stored | None]:
    """What each file says of itself; None of one that does not."""
    reader = next((read for name, read in _READERS.items() if name in form), None)
    if reader is None:
        return []
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return list(threads.map(lambda path: _stored(reader, path, session), files))


def _stored(reader: Any, path: str, session: SparkSession) -> Stored | None:
    java: Any = session._jvm
    seen = _SEEN.setdefault(session, {})
    if path not in seen:
        try:
            # Spark shows addresses and reads names.
            place = java.org.apache.hadoop.fs.Path(unquote(path))
            seen[path] = reader(java, place, session._jsparkSession.sessionState().newHadoopConf())
        except Exception:  # one of Java's; its words name files
            return None
    stored: Stored | None = seen[path]
    return stored


class _BySpark(dict[str, str]):
    """Of a file that Spark has written: each column holds what Spark can hold."""

    def get(self, key: str, default: Any = None) -> str:
        return ""


def _of_parquet(java: Any, place: Any, conf: Any) -> Stored:
    file = java.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(place, conf)
    reader = java.org.apache.parquet.hadoop.ParquetFileReader.open(file)
    try:
        about = reader.getFileMetaData()
        # Arrow hands on what Spark has said of a file that it writes anew.
        if about.getKeyValueMetaData().get(_VERSION) and str(about.getCreatedBy()).startswith("parquet-mr"):
            return _BySpark()
        fields = about.getSchema().getFields()
        columns = [(str(fields[i].getName()), str(fields[i].toString())) for i in range(len(fields))]
    finally:
        reader.close()
    # "optional int64 NAME (TIMESTAMP(MILLIS,true))", where a name may look like anything
    apart = ((name, *text.split(" ", 2)[1:]) for name, text in columns)
    return {name.lower(): f"{kind}{rest.removeprefix(name)}" for name, kind, rest in apart}


def _of_orc(java: Any, place: Any, conf: Any) -> Stored | None:
    files = java.org.apache.orc.OrcFile
    reader = files.createReader(place, files.readerOptions(conf))
    try:
        spark = _VERSION in list(reader.getMetadataKeys()) and str(reader.getSoftwareVersion()).startswith("ORC Java")
    finally:
        reader.close()
    return _BySpark() if spark else None


def _of_avro(java: Any, place: Any, conf: Any) -> Stored | None:
    source = java.org.apache.avro.mapred.FsInput(place, conf)
    try:
        records = java.org.apache.avro.generic.GenericDatumReader()
        reader = java.org.apache.avro.file.DataFileReader.openReader(source, records)
        return _BySpark() if reader.getMetaString(_VERSION) else None
    finally:
        source.close()


_READERS: Final = {"parquet": _of_parquet, "orc": _of_orc, "avro": _of_avro}


def of_several_types(form: str, files: Sequence[str], session: SparkSession) -> bool:
    """Whether Spark finds no one schema for the files of a table. Reads their footers, no rows.

    A file of other types fails where it is read, and which row groups of a frame's files are read follows from the
    rows in them: one person's row would decide whether there is an answer. What Spark says is not handed on: it names
    files, and a partition's folder is named by what is in it.
    """
    return len(files) > 1 and form in _MERGED and _merged(form, files, session) is None


def of_another_type(
    form: str, fields: Sequence[tuple[str, str]], files: Sequence[str], session: SparkSession
) -> str | None:
    """A column that the files hold as a wider type than Spark is told to read: a number is cut off, and two people are
    one, or a value is none, or reading fails once there is a row to be read. None where there is none.
    """
    merged = _merged(form, files, session) if files and form in _MERGED else None
    if merged is None:
        return None
    for name, kind in fields:
        stored = merged.get(name.lower(), kind)
        if stored != kind and not _holds(kind, stored):
            return name
    return None


_MERGED: Final = {"parquetfileformat": "parquet", "parquettable": "parquet", "orcfileformat": "orc", "orctable": "orc"}
_WHOLE: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_HOLD: Final = {
    ("DOUBLE", "FLOAT"),
    ("DOUBLE", "INT"),
    ("STRING", "BINARY"),
    ("TIMESTAMP", "TIMESTAMP_NTZ"),
    ("TIMESTAMP_NTZ", "DATE"),
}


def _merged(form: str, files: Sequence[str], session: SparkSession) -> dict[str, str] | None:
    """The types of the columns of files, by their names in small letters; None where there is no one schema."""
    seen, key = _SEEN.setdefault(session, {}), ("merged", form, *files)
    if key not in seen:
        seen[key] = None
        names = [unquote(name) for name in files]  # Spark shows addresses and reads names
        with contextlib.suppress(Exception):  # Spark's own, or one of Py4J's
            frame = session.read.option("mergeSchema", "true").format(_MERGED[form]).load(names)
            schema: Any = frame._jdf.schema()
            fields = (schema.apply(i) for i in range(schema.size()))
            seen[key] = {field.name().lower(): field.dataType().sql() for field in fields}
    merged: dict[str, str] | None = seen[key]
    return merged


def _holds(kind: str, stored: str) -> bool:
    """Whether each value of one type is the same value in another."""
    if stored == "VOID" or (kind, stored) in _HOLD or "<" in kind:
        return True
    if kind in _WHOLE and stored in _WHOLE:
        return _WHOLE.index(kind) >= _WHOLE.index(stored)
    wide, narrow = _digits(kind), _digits(stored)
    return None not in (wide, narrow) and all(a >= b for a, b in zip(wide or (), narrow or (), strict=True))


def _digits(kind: str) -> tuple[int, int] | None:
    """How many digits a type has before its point, and behind it."""
    if kind in _WHOLE:
        return (3, 5, 10, 20)[_WHOLE.index(kind)], 0
    decimal = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", kind)
    return None if decimal is None else (int(decimal[1]) - int(decimal[2]), int(decimal[2]))
