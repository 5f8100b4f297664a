"""What stands in the files of a table that Spark cannot hold, as their footers tell; no row is read.

Spark's own types of times and decimals are narrower than those of the formats that it reads. A moment of a Parquet
file may be a number of milliseconds, and one beyond the year 294,000 (what Java calls the largest `long`, say) makes
Spark fail on the row that has it; so does a decimal with more digits than its type, and any far moment in ORC. Moments
of 96 bits, and those of ORC, are of nanoseconds: Spark reads microseconds, and two people would be one. Only a file
that Spark itself has written, with no milliseconds, holds nothing of the kind.

So one person's row would decide whether there is an answer, at any epsilon, and no text of ours can stand around the
reading of a column.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from hubbub.engines.spark.session import java_of

__all__ = ["Files", "cut_columns", "look_again", "of_another_type", "of_several_types", "too_wide"]

_VERSION: Final = "org.apache.spark.version"
_TOLD: Final = "org.apache.spark.sql.parquet.row.metadata"
_REBASED: Final = ("org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96")
_MOMENT: Final = "TIMESTAMP"
_DIGITS: Final = 18
"""Decimals of so many digits Spark reads from Parquet as they are stored, and checks none."""
_AT_ONCE: Final = 16  # footers that are read at a time
_STAMPS: Final = "stamps"  # no address: these have a colon
_LENGTHS: Final = "lengths"
_SEEN: WeakKeyDictionary[SparkSession, dict[Any, Any]] = WeakKeyDictionary()
"""What a session of ours has seen: before each charge only files that are new, or have changed, are looked at."""

Stored = Mapping[str, str]
"""Of each column of a file, by its name in small letters, how it is stored; what Spark has written has no columns."""


@dataclass(frozen=True)
class Files:
    """The files that Spark lists of a table, and what reads them.

    form: the class that reads them, in small letters. addresses: in Spark's order. listing: Spark's own words of them,
    with lengths and times of change: another listing is looked at anew. index: Spark's, a Java object.
    """

    form: str = ""
    addresses: Sequence[str] = ()
    listing: str = ""
    index: Any = field(default=None, compare=False)


def too_wide(files: Files, columns: Mapping[str, str], session: SparkSession) -> str | None:
    """The column of some file that may hold what Spark fails on; None where there is none.

    columns: those that are read, with their types in Spark.
    """
    form = files.form
    for stored in _all_stored(files, session):
        for name, kind in columns.items():
            text = None if stored is None else stored.get(name.lower())
            if _misread(kind, text or "") or (_narrow(form, kind) and (stored is None or _fails(form, kind, text))):
                return name
    return None


def cut_columns(files: Files, columns: Mapping[str, str], session: SparkSession) -> Set[str]:
    """Which columns may hold values that are told apart as they are stored, and no longer as Spark reads them.

    Parquet and ORC store whole numbers and decimals in more bits than their types need, of which Spark reads the last
    ones, and checks none; of moments of 96 bits it reads microseconds; and of the days of another calendar it makes one
    of two. What Spark has written holds none of that, but for days of before version 3.
    """
    asked = {name: kind for name, kind in columns.items() if _may_be_cut(files.form, kind)}
    if not asked:
        return frozenset()
    every = _all_stored(files, session)
    return {
        name
        for name, kind in asked.items()
        if any(stored is None or _cuts(files.form, kind, stored.get(name.lower())) for stored in every)
    }


def _may_be_cut(form: str, kind: str) -> bool:
    words = set(re.findall(r"\w+", kind))
    return bool(words & (_CUT_OF_ORC if "orc" in form else _CUT_OF_PARQUET))


_CUT_OF_PARQUET: Final = {"TINYINT", "SMALLINT", "DATE", _MOMENT, "TIMESTAMP_NTZ", "DECIMAL"}
_CUT_OF_ORC: Final = _CUT_OF_PARQUET | {"INT"}
"""Types of Spark, or those inside one; ORC knows no width of whole numbers, and days are such."""


def _cuts(form: str, kind: str, stored: str | None) -> bool:
    """Whether two values of a column as it is stored in one file may be one of this type; None where it is in none."""
    if stored == "" or "parquet" not in form:
        return stored != ""
    if stored is None:
        return False
    if "TINYINT" in kind or "SMALLINT" in kind:
        return True
    if (_MOMENT in kind or "DATE" in kind) and ("int96" in stored or _OLD in stored):
        return True
    return any(_wider(int(digits), stored) for digits in re.findall(r"DECIMAL\((\d+),", kind))


def _wider(digits: int, stored: str) -> bool:
    """Whether decimals of so many digits are stored in more bytes than Spark reads of them."""
    if digits > _DIGITS:
        return False
    most = 4 if digits <= _DIGITS // 2 else 8
    fixed = re.findall(r"fixed_len_byte_array\((\d+)\)", stored)
    return "binary" in stored or any(int(n) > most for n in fixed) or (most == 4 and "int64" in stored)


def _misread(kind: str, stored: str) -> bool:
    """Whether Spark reads a column of Parquet as a type that it cannot read once there is a row, or is not that one."""
    if stored == _OTHERWISE:
        return True
    told = re.findall(r"DECIMAL\((\d+),", kind)
    if told and re.search(r"INTEGER\(\d+,false\)", stored):
        return kind != "DECIMAL(20,0)" or "INTEGER(64,false)" not in stored
    # Of more bytes than its digits need, a decimal is read as one of so many digits alone.
    own = re.findall(r"DECIMAL\((\d+),", stored)
    return told != own and any(_wider(int(digits), stored) for digits in own)


def _narrow(form: str, kind: str) -> bool:
    """Whether a type of Spark, or one inside it, is narrower than that of some files."""
    return _MOMENT in kind or _has_decimals(form, kind)


def _has_decimals(form: str, kind: str) -> bool:
    return any("parquet" not in form or int(digits) > _DIGITS for digits in re.findall(r"DECIMAL\((\d+),", kind))


def _fails(form: str, kind: str, stored: str | None) -> bool:
    """Whether a column as it is stored in one file may hold what Spark fails on; of None the file has nothing."""
    if stored == "" or "parquet" not in form:
        return stored != ""
    if stored is None:
        return False
    # Of a column that has others inside, `stored` says what each of those is.
    return (_MOMENT in kind and "MILLIS" in stored) or (
        _has_decimals(form, kind) and re.search("binary|fixed_len|float|double", stored) is not None
    )


def _all_stored(files: Files, session: SparkSession) -> Iterable[Stored | None]:
    """What each file says of itself; None of one that does not."""
    reader = next((read for name, read in _READERS.items() if name in files.form), None)
    if reader is None:
        return []
    seen = _seen(files, session)
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return list(threads.map(lambda path: _stored(reader, path, session, seen), files.addresses))


def _seen(files: Files, session: SparkSession) -> dict[Any, Any]:
    """What was seen of files; nothing where another listing of the same ones was: one of them may have changed."""
    seen: dict[Any, Any] = _SEEN.setdefault(session, {}).setdefault((files.form, *files.addresses), {})
    if seen.get("") != files.listing:
        seen.clear()
        seen[""] = files.listing
    return seen


def look_again(files: Files, session: SparkSession) -> bool:
    """Forget what was seen of files of which one has another length or time of change since. Returns whether each is as
    long as the frame's listing says, which is that of when it was made: Spark reads of a file what lies within that.
    """
    if not any(name in files.form for name in _READERS):
        return True
    java: Any = session._jvm
    conf = java_of(session).sessionState().newHadoopConf()

    def stamp(path: str) -> tuple[int, int] | None:
        with contextlib.suppress(Exception):  # one that is gone is looked at, and found gone
            place = java.org.apache.hadoop.fs.Path(unquote(path))
            status = place.getFileSystem(conf).getFileStatus(place)
            return status.getLen(), status.getModificationTime()
        return None

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        now = list(threads.map(stamp, files.addresses))
    seen = _seen(files, session)
    if seen.get(_STAMPS) != now:
        seen.clear()
        seen.update({"": files.listing, _STAMPS: now, _LENGTHS: _listed_lengths(files.index, java)})
    return bool(seen[_LENGTHS] == [None if one is None else one[0] for one in now])


def _listed_lengths(index: Any, java: Any) -> list[int]:
    """The lengths of files as Spark has listed them, in the order of their addresses."""
    if index.getClass().getSimpleName() == "CatalogFileIndex":
        index = index.filterPartitions(getattr(getattr(java.scala.collection.immutable, "Nil$"), "MODULE$"))
    every = index.allFiles()
    return [int(every.apply(i).getLen()) for i in range(every.size())]


def _stored(reader: Any, path: str, session: SparkSession, seen: dict[Any, Any]) -> Stored | None:
    java: Any = session._jvm
    if path not in seen:
        try:
            # Spark shows addresses and reads names.
            place = java.org.apache.hadoop.fs.Path(unquote(path))
            seen[path] = reader(java, place, java_of(session).sessionState())
        except Exception:  # one of Java's; its words name files
            return None
    stored: Stored | None = seen[path]
    return stored


class _BySpark(dict[str, str]):
    """Of a file that Spark has written: each column holds what Spark can hold, but for those that stand here.

    Of its least moments Spark makes milliseconds that it cannot read.
    """

    def get(self, key: str, default: Any = None) -> str:
        return super().get(key, "")


def _of_parquet(java: Any, place: Any, state: Any) -> Stored:
    file = java.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(place, state.newHadoopConf())
    reader = java.org.apache.parquet.hadoop.ParquetFileReader.open(file)
    try:
        about = reader.getFileMetaData()
        said = about.getKeyValueMetaData()
        # Arrow hands on what Spark has said of a file that it writes anew.
        version, spark = said.get(_VERSION), str(about.getCreatedBy()).startswith("parquet-mr")
        spark = spark and version is not None
        rebased = not spark and any(said.get(key) is not None for key in _REBASED)
        old = version is not None and (rebased or int(str(version).split(".")[0]) < _CALENDAR)
        fields = about.getSchema().getFields()
        columns = [(str(fields[i].getName()), str(fields[i].toString())) for i in range(len(fields))]
        told = None if spark else said.get(_TOLD)
        other = set() if told is None else _told_otherwise(java, about.getSchema(), str(told), state)
    finally:
        reader.close()
    # "optional int64 NAME (TIMESTAMP(MILLIS,true))", where a name may look like anything
    apart = ((name, *text.split(" ", 2)[1:]) for name, text in columns)
    stored = {name.lower(): f"{kind}{rest.removeprefix(name)}" for name, kind, rest in apart}
    if old:
        stored = {name: f"{text} {_OLD}" for name, text in stored.items()}
    stored |= dict.fromkeys(other, _OTHERWISE)
    if not spark:
        return stored
    days = re.compile("DATE|TIMESTAMP|int96" if old else "MILLIS")
    return _BySpark({name: text for name, text in stored.items() if days.search(text)})


_CALENDAR: Final = 3
"""The version of Spark since which days are those of one calendar."""
_OLD: Final = "days of another calendar"
_OTHERWISE: Final = "of another type than is said"


def _told_otherwise(java: Any, schema: Any, told: str, state: Any) -> Set[str]:
    """The columns of a file, in small letters, of which somebody says another type than they are stored in.

    Spark believes it. told: a schema as its JSON, which a program that writes the file anew has handed on.
    """
    converter = java.org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter(state.conf())
    own = {name.lower(): dict(_flat("", kind)) for name, kind in _columns(str(converter.convert(schema).json()))}
    said = {name.lower(): dict(_flat("", kind)) for name, kind in _columns(told)}
    return {n for n, parts in own.items() if any(not _holds(said.get(n, {}).get(at, ""), k) for at, k in parts.items())}


def _of_orc(java: Any, place: Any, state: Any) -> Stored | None:
    files = java.org.apache.orc.OrcFile
    reader = files.createReader(place, files.readerOptions(state.newHadoopConf()))
    try:
        spark = _VERSION in list(reader.getMetadataKeys()) and str(reader.getSoftwareVersion()).startswith("ORC Java")
    finally:
        reader.close()
    return _BySpark() if spark else None


_READERS: Final = {"parquet": _of_parquet, "orc": _of_orc}


def of_several_types(files: Files, session: SparkSession) -> bool:
    """Whether Spark finds no one schema for the files of a table. Reads their footers, no rows.

    A file of other types fails where it is read, and which row groups of a frame's files are read follows from the
    rows in them: one person's row would decide whether there is an answer. What Spark says is not handed on: it names
    files, and a partition's folder is named by what is in it.
    """
    several = len(files.addresses) > 1 and files.form in _MERGED
    return several and _schema(files, files.addresses, session) is None


def of_another_type(files: Files, schema: str, read: Iterable[str], session: SparkSession) -> str | None:
    """A column that the files hold as a wider type than Spark is told to read: a number is cut off, and two people are
    one, or a value is none, or reading fails once there is a row to be read. None where there is none.

    schema: what Spark is told, as its JSON. read: the columns that are read, by name.
    """
    if not files.addresses or files.form not in _MERGED:
        return None
    told = {name: dict(_flat(name.lower(), kind)) for name, kind in _columns(schema) if name in read}
    merged = _schema(files, files.addresses, session)
    # Where there is no one schema, each file has its own.
    every = [merged] if merged is not None else [_schema(files, [one], session) for one in files.addresses]
    for stored in every:
        for name, parts in told.items():
            if stored is None or any(not _holds(kind, stored.get(part, kind)) for part, kind in parts.items()):
                return name
            # Columns of such names ORC reads by their places.
            if "orc" in files.form and name.lower() not in stored and any(n.startswith("_col") for n in stored):
                return name
    return None


_MERGED: Final = {"parquetfileformat": "parquet", "parquettable": "parquet", "orcfileformat": "orc", "orctable": "orc"}
_WHOLE: Final = ("byte", "short", "integer", "long")
_HOLD: Final = {
    ("double", "float"),
    ("double", "integer"),
    ("string", "binary"),
    ("timestamp", "timestamp_ntz"),
}
"""Not a date in a moment: Parquet holds days that are beyond all moments, and then reading fails."""


def _schema(files: Files, addresses: Sequence[str], session: SparkSession) -> dict[str, str] | None:
    """The types of the columns of files, by their names in small letters, and of what is inside them; None if Spark
    finds several schemas.
    """
    seen, key = _seen(files, session), ("schema", *addresses)
    if key not in seen:
        seen[key] = None
        # Spark shows addresses and reads patterns of names.
        names = [re.sub(r"[\\*?\[\]{}]", r"\\\g<0>", unquote(name)) for name in addresses]
        with contextlib.suppress(Exception):  # Spark's own, or one of Py4J's
            frame = session.read.option("mergeSchema", "true").format(_MERGED[files.form]).load(names)
            columns = _columns(frame._jdf.schema().json())
            seen[key] = {part: kind for name, column in columns for part, kind in _flat(name.lower(), column)}
    schema: dict[str, str] | None = seen[key]
    return schema


def _columns(schema: str) -> list[tuple[str, Any]]:
    """The columns of a schema that is JSON, by name, with their types."""
    return [(field["name"], field["type"]) for field in json.loads(schema)["fields"]]


def _flat(place: str, kind: Any) -> Iterator[tuple[str, str]]:
    """A column's type and those inside it, each by its place.

    >>> list(_flat("a", {"type": "array", "elementType": "long"}))
    [('a', 'array'), ('a/0', 'long')]
    """
    if isinstance(kind, str):
        yield place, "string" if kind.startswith(("char(", "varchar(")) else kind
        return
    yield place, kind["type"]
    inside = [kind.get(part) for part in ("elementType", "keyType", "valueType", "sqlType") if part in kind]
    for i, one in enumerate(inside):
        yield from _flat(f"{place}/{i}", one)
    for one in kind.get("fields", []):
        yield from _flat(f"{place}.{one['name'].lower()}", one["type"])


def _holds(kind: str, stored: str) -> bool:
    """Whether each value of one type is the same value in another."""
    if kind == stored or stored == "void" or (kind, stored) in _HOLD:
        return True
    if kind in _WHOLE:
        return stored in _WHOLE and _WHOLE.index(kind) >= _WHOLE.index(stored)
    wide, narrow = _digits(kind), _digits(stored)
    if wide is None or narrow is None:
        return False
    # To another scale each decimal is computed, and what is stored may have a digit more than its type.
    same = not stored.startswith("decimal") or wide[1] == narrow[1]
    return same and wide[0] >= narrow[0] and wide[1] >= narrow[1]


def _digits(kind: str) -> tuple[int, int] | None:
    """How many digits a type has before its point, and behind it."""
    if kind in _WHOLE:
        return 20 if kind == "long" else 10, 0  # Spark reads a decimal from all of 32 or 64 bits
    decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", kind)
    return None if decimal is None else (int(decimal[1]) - int(decimal[2]), int(decimal[2]))
