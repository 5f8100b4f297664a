"""Spark: no byte of a constant or a name, no setting, no function of somebody's session decides an answer."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from engines.places import Embedded, Spark, answer
from hubbub.engines.spark.dialect import SPARK
from hubbub.engines.spark.session import FILTERED, FRAMES, SETTINGS, lend, own_session, reads_row_by_row, settings_of
from people import visits

ROWS = visits().source
pytestmark = pytest.mark.filterwarnings("ignore:ledger=None")

PIECES = [
    "${env:HUBBUB_HELD}", "${system:user.name}", "${spark.master}", "${", "$", "{{", "}}", "$$", "$1", "?",
    ":name", "@x",
    "--", "/*", "*/", "/*+ BROADCAST(a) */", "\\", "\\\\", "\\u0041", "\\x41", "\\n", "'", '"', "`", "''", '""', "``",
    "\N{LEFT SINGLE QUOTATION MARK}", "\N{FULLWIDTH APOSTROPHE}", "\N{MODIFIER LETTER APOSTROPHE}", "u&'\\0041'",
    "U&'a'",
    "r'x'", "X'41'", "`a.*`", "(a|b)?+.+", ";", "\0", "\ufeff", "\ufffd", "\uffff", "\u2028", "\u0085",
    "\N{GRINNING FACE}",
    "e\u0301", "\u00e9", "\N{SNOWMAN}", "ab", "é", "%", "_", "!", "%%", "%s", "\r", "\n", "\r\n", " ", "\t", "",
    *map(chr, range(1, 32)), "\x7f", "\x80", "\x9f",
]  # fmt: skip
HOSTILE = {
    "spark.sql.variable.substitute": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.datetime.java8API.enabled": "true",
    "spark.sql.legacy.literal.pickMinimumPrecision": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "true",
    "spark.sql.legacy.castComplexTypesToString.enabled": "true",
    "spark.sql.legacy.ctePrecedencePolicy": "LEGACY",
    "spark.sql.legacy.doLooseUpcast": "true",
    "spark.sql.readSideCharPadding": "false",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.groupByAliases": "false",
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.crossJoin.enabled": "false",
    "spark.sql.parquet.binaryAsString": "true",
}
"""Settings that a session may come with, each other than ours or than the default."""


@pytest.fixture
def theirs(spark: Any) -> Any:
    """A session of somebody else on the same cluster, whose settings nobody else sees."""
    return spark.newSession()


def constants(count: int) -> list[str]:
    """Every piece alone, and random ones together."""
    random_ones = random.Random(15)
    mixed = ("".join(random_ones.choices(PIECES, k=random_ones.randint(2, 6))) for _ in range(count))
    return list(dict.fromkeys([*PIECES, *mixed]))


@pytest.mark.parametrize("count", [150, pytest.param(5_000, marks=pytest.mark.soak)])
def test_a_constant_comes_back_as_it_was_written_under_every_setting(
    theirs: Any, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_HELD", "x' OR 'a'='a")
    texts = constants(count)
    singles = [{}, HOSTILE, *({key: value} for key, value in HOSTILE.items() if "parser" in key or "ansi" in key)]
    for settings in singles:
        session = theirs.newSession()
        for key, value in settings.items():
            session.conf.set(key, value)
        for at in range(0, len(texts), 300):
            some = texts[at : at + 300]
            shown = ", ".join(f"{SPARK.literal(t)} AS c{i}" for i, t in enumerate(some))
            (row,) = session.sql(f"SELECT {shown}").collect()
            assert list(row) == some, settings
        likes = ", ".join(SPARK.like(SPARK.literal(t), (f"={t}",), ignore_case=False) for t in texts[:120])
        (row,) = session.sql(f"SELECT {likes}").collect()
        assert all(row), settings


def test_the_test_above_sees_a_constant_that_is_expanded(theirs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain way to quote, as most programs do it, fails at five of the constructs."""
    found = [
        theirs.sql("SELECT '" + t.replace("'", "\\'") + "'").collect()[0][0] for t in ("$", "${spark.master}", "a")
    ]
    assert found == ["$", theirs.conf.get("spark.master"), "a"]


NAMES = [
    "v.lue",
    "value",
    "(a|b)?+.+",
    "${spark.master}",
    "`",
    "a`b",
    "Größe",
    "select",
    "C0",
    "unit",
    "x_41",
    " ",
    "a b",
]


def test_a_column_of_any_name_is_itself(theirs: Any) -> None:
    """Beside `(a|b)?+.+`, a pattern that every name fits, and one that is expanded before a statement is parsed."""
    for key, value in HOSTILE.items():
        theirs.conf.set(key, value)
    frame = theirs.range(8).toDF("id")
    for i, _ in enumerate(NAMES):
        frame = frame.withColumn(f"n{i}", (frame["id"] + i) % 8)
    frame = frame.toDF("id", *NAMES).localCheckpoint()
    table = hb.table(frame, unit="id", max_total=1)
    with hb.Session({"v": table}, budget=hb.Budget(10**9), ledger=None) as session:
        each = " AND ".join(f'"{name}" = (id + {i}) % 8' for i, name in enumerate(NAMES))
        assert session.sql(f"SELECT COUNT(*) AS n FROM v WHERE {each}", epsilon=10**6).rows() == [(8,)]


def test_public_columns_of_any_name_are_themselves(theirs: Any) -> None:
    names = ["k", *(n for n in NAMES if n.strip())]
    public = hb.public(pa.table({n: [i, i + 1] for i, n in enumerate(names)}))
    table = hb.table(theirs.range(2), unit="id", max_total=1)
    with hb.Session({"v": table, "w": public}, budget=hb.Budget(10**9), ledger=None) as session:
        each = " AND ".join(f'w."{name}" = w.k + {i}' for i, name in enumerate(names))
        sql = f"SELECT COUNT(*) AS n FROM v JOIN w ON v.id = w.k WHERE {each}"
        assert session.sql(sql, epsilon=10**6).rows() == [(2,)]


def test_the_environment_and_the_cluster_s_settings_cannot_be_asked_for(
    theirs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = {**os.environ, "HUBBUB_HELD": "hunter2"}["HOME"]
    table = hb.table(theirs.range(20).selectExpr("id", "'x' AS t"), unit="id", max_total=1)
    with hb.Session({"v": table}, budget=hb.Budget(10**9), ledger=None) as session:
        for sql, n in ((f"'${{env:HOME}}' = '{held}'", 0), ("t || '${spark.master}' LIKE 'xl%'", 0), ("t < '${'", 0)):
            assert session.sql(f"SELECT COUNT(*) AS n FROM v WHERE {sql}", epsilon=10**6).rows() == [(n,)]


QUESTIONS = [
    "SELECT ward, COUNT(*), SUM(n), AVG(age) FROM visits GROUP BY ward",
    "SELECT COUNT(*) FROM visits WHERE LOWER(ward) = 'a' AND COALESCE(age, 0) < 60 AND day < DATE '2026-01-01'",
    "SELECT COUNT(DISTINCT n), MEDIAN(n) FROM visits WHERE LENGTH(REPLACE(ward, 'A', '\\\\$')) > 0",
    "SELECT COUNT(*) FROM (SELECT id, SUM(age) AS s, COUNT(*) AS k FROM visits GROUP BY id) AS p WHERE s / k > 10",
    "SELECT COUNT(*) FROM visits WHERE CAST(day AS TEXT) LIKE '2025%' AND EXTRACT(YEAR FROM day) = 2025",
]


def _shadowed(theirs: Any) -> None:
    """Functions of the session that have the names of built-in ones."""
    for name in ("lower", "coalesce", "length", "replace", "md5", "abs", "rint", "sum", "count", "least", "concat_ws"):
        theirs.udf.register(name, lambda *_: "hijacked")


def test_no_setting_and_no_function_of_a_session_decides_an_answer(theirs: Any) -> None:
    for key, value in HOSTILE.items():
        theirs.conf.set(key, value)
    theirs.conf.set("spark.sql.functionResolution.sessionOrder", "first")
    before = settings_of(theirs)
    _shadowed(theirs)
    assert theirs.sql("SELECT lower('A')").collect()[0][0] in ("hijacked", "a")
    tables = {"visits": visits(max_groups=2, max_rows=2)}
    here, there = Embedded(tables, {"visits": ROWS}), Spark(theirs, tables, {"visits": ROWS})
    for sql in QUESTIONS:
        for plan in here.desk.plans(sql):
            there.engine.prepare(plan)
            assert answer(there.engine, plan, {}) == answer(here.engine, plan, {}), sql
    assert settings_of(theirs) == before  # none of theirs is changed
    here.close()
    there.close()


def test_our_session_has_our_settings_and_else_the_defaults(theirs: Any) -> None:
    """Those that it takes over change no answer; one that a cluster was started with is put back, too."""
    theirs.conf.set("spark.sql.shuffle.partitions", "3")
    theirs.conf.set("spark.sql.broadcastTimeout", "3")  # one person's many rows would be an error
    ours = own_session(theirs)
    found = settings_of(ours)
    assert {key: found[key] for key in SETTINGS} == SETTINGS
    assert found["spark.sql.shuffle.partitions"] == "3"
    assert found["spark.sql.broadcastTimeout"] == "-1"
    static = {"spark.sql.warehouse.dir", "spark.sql.artifact.isolation.enabled", "spark.sql.catalogImplementation"}
    assert found.keys() <= {*SETTINGS, *static, "spark.sql.shuffle.partitions"}


def test_a_setting_that_is_changed_from_outside_is_noticed_before_the_charge(theirs: Any) -> None:
    with hb.Session({"v": hb.table(theirs.range(4), unit="id")}, budget=hb.Budget(1), ledger=None) as session:
        session._engine._session.conf.set("spark.sql.variable.substitute", "true")
        with pytest.raises(hb.PolicyError, match=r"changed from outside.*Nothing was charged"):
            session.sql("SELECT COUNT(DISTINCT id) FROM v", epsilon=1)
        assert session.remaining == 1


def test_a_text_that_spark_does_not_take_is_refused_before_the_charge(
    theirs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hb.Session({"v": hb.table(theirs.range(4), unit="id")}, budget=hb.Budget(1), ledger=None) as session:
        deep = "WITH a AS (\n SELECT 1 AS x\n)\nSELECT " + "(" * 3_000 + "x" + ")" * 3_000 + " FROM a"
        for text in ("WITH a AS (\n SELECT x\n)\nSELECT 1", "WITH a AS (SELECT 1)\nSELEC", deep):
            monkeypatch.setattr(session._engine, "texts", lambda _, text=text: ([], [text]))
            with pytest.raises(hb.QueryError, match="Nothing was charged"):
                session.sql("SELECT COUNT(DISTINCT id) FROM v", epsilon=1)
        assert session.remaining == 1


@pytest.fixture
def ancient(tmp_path: Path) -> str:
    """Dates before 1582 in a file that does not say by which calendar they were written."""
    import datetime as dt

    import pyarrow.parquet as pq

    path = str(tmp_path / "ancient.parquet")
    days = [dt.date(1000, 1, 1), dt.date(2000, 1, 1)]
    times = pa.array([dt.datetime(1000, 1, 1), dt.datetime(2000, 1, 1)], pa.timestamp("us"))
    pq.write_table(pa.table({"id": [1, 2], "day": days, "at": times}), path)
    return path


def test_a_setting_by_which_one_date_makes_reading_fail_is_refused(theirs: Any, ancient: str) -> None:
    """Spark reads a data frame's files by the settings of the frame's own session, not by ours."""
    frame = theirs.read.parquet(ancient)
    sql = "SELECT COUNT(*) AS n FROM v WHERE day = DATE '1000-01-01' AND at < TIMESTAMP '1000-01-01 00:00:01'"
    table = hb.table(frame, unit="id", max_total=1)
    with hb.Session({"v": table}, budget=hb.Budget(10**9), ledger=None) as session:
        assert session.sql(sql, epsilon=10**6).rows() == [(1,)]
        before = session.remaining
        for key, word, allowed in (
            (key, word, allowed) for key, (words, allowed) in FRAMES.items() for word in words.split()
        ):
            theirs.conf.set(key, word)
            with pytest.raises(hb.PolicyError, match=key):
                session.sql("SELECT COUNT(*) AS m FROM v", epsilon=1)
            with pytest.raises(hb.PolicyError, match=key):
                hb.Session({"v": table}, budget=hb.Budget(1), ledger=None)
            theirs.conf.set(key, allowed)
        assert session.remaining == before


@pytest.mark.parametrize("damage", ["junk", "gone", pytest.param("cut", marks=pytest.mark.soak)])
def test_a_file_that_is_damaged_or_gone_is_an_error_and_leaves_no_row_out(
    theirs: Any, tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs nothing where it is seen before the charge."""
    theirs.range(20).repartition(2).write.parquet(str(tmp_path / "rows"))
    frame = theirs.read.parquet(str(tmp_path / "rows"))
    with hb.Session({"v": hb.table(frame, unit="id")}, budget=hb.Budget(10**9), ledger=None) as session:
        assert session.sql("SELECT COUNT(DISTINCT id) AS n FROM v", epsilon=10**6).rows() == [(20,)]
        file = next((tmp_path / "rows").glob("*.parquet"))
        for beside in (tmp_path / "rows").glob(".*.crc"):
            beside.unlink()
        if damage == "gone":
            file.unlink()
        else:
            file.write_bytes(b"PAR1" + b"junk" * 9 + b"PAR1" if damage == "junk" else file.read_bytes()[:50])
        before = session.remaining
        with pytest.raises(hb.PolicyError, match=r"changed since the frame was made|or cannot be read"):
            session.sql("SELECT COUNT(*) AS m FROM v WHERE id < 100", epsilon=1, max_total=1)
        assert session.remaining == before
        monkeypatch.setattr(session._engine, "recheck", lambda _: None)
        with pytest.raises(hb.EngineError):
            session.sql("SELECT COUNT(*) AS m FROM v WHERE id < 100", epsilon=1, max_total=1)
        assert session.remaining == before - 1


def test_a_frame_is_lent_and_nothing_of_it_is_left_where_others_see(theirs: Any) -> None:
    ours = own_session(theirs)
    lend(theirs.range(3), ours, "mine")
    assert ours.table("mine").count() == 3
    assert not [t for t in theirs.catalog.listTables("global_temp") if t.name.startswith("hubbub_")]
    assert "mine" not in [t.name for t in theirs.catalog.listTables()]


def test_two_columns_of_one_name_and_streams_are_refused(theirs: Any) -> None:
    twice = theirs.range(3).selectExpr("id", "id AS x", "id AS x")
    with pytest.raises(hb.PolicyError, match="two columns 'x'"):
        hb.Session({"v": hb.table(twice, unit="id")}, budget=hb.Budget(1), ledger=None)
    stream = theirs.readStream.format("rate").load()
    with pytest.raises(hb.PolicyError, match="is a stream"):
        hb.Session({"v": hb.table(stream, unit="value")}, budget=hb.Budget(1), ledger=None)


def _declared(name: str, **options: Any) -> Any:
    return replace(hb.table(f"spark:{name}", unit="id", max_total=1), **options)


FORMATS = {
    "parquet": "USING parquet",
    "orc": "USING orc",
    "compressed": "USING parquet OPTIONS (compression 'gzip')",
}
OTHERS = {
    "csv": "USING csv",
    "multiline": "USING csv OPTIONS (multiLine 'true')",
    "json": "USING json OPTIONS (mode 'FAILFAST')",
    "strange": "USING parquet OPTIONS (datetimeRebaseMode 'EXCEPTION')",
    "skipping": "USING parquet OPTIONS (ignoreCorruptFiles 'true')",
}


def test_formats_that_are_not_known_are_not_read_row_by_row() -> None:
    hive = "org.apache.hadoop.hive."
    known = [{"Provider": p} for p in ("parquet", "ORC")]
    known.append({"Provider": "hive", "Serde Library": hive + "ql.io.orc.OrcSerde"})
    known.append({"Provider": "parquet", "Storage Properties": "[path=a, compression=gzip]"})
    assert [reads_row_by_row(about) for about in known] == [None] * len(known)
    others = [{}, *({"Provider": p} for p in ("jdbc", "text", "delta", "iceberg", "com.x.Source", "hive"))]
    others.append({"Provider": "hive", "Serde Library": hive + "serde2.lazy.LazySimpleSerDe"})
    others.append({"Provider": "parquet", "Storage Properties": "[path=a, mergeSchema=true]"})
    assert all(map(reads_row_by_row, others))


def test_a_table_of_the_catalogue_is_of_a_format_that_keeps_rows_apart(spark: Any) -> None:
    """Even where its columns have the names of what the catalogue tells of a table."""
    made = {**FORMATS, **OTHERS}
    try:
        for name, using in made.items():
            spark.sql(f"CREATE TABLE {name}_rows (id BIGINT, `Provider` BIGINT, `Type` BIGINT) {using}")
        for name in FORMATS:
            with hb.Session({"v": _declared(f"{name}_rows")}, budget=hb.Budget(10**9), ledger=None) as session:
                spark.sql(f"INSERT INTO {name}_rows VALUES (1, 1, 1), (2, 2, 2)")
                assert session.sql("SELECT COUNT(*) AS n FROM v", epsilon=10**6).rows() == [(2,)]
        for name in OTHERS:
            with pytest.raises(hb.PolicyError, match=r"(format|option).*trusted_view"):
                hb.Session({"v": _declared(f"{name}_rows")}, budget=hb.Budget(1), ledger=None)
        trusted = _declared("csv_rows", trusted_view=True)
        hb.Session({"v": trusted}, budget=hb.Budget(1), ledger=None).close()
    finally:
        for name in made:
            spark.sql(f"DROP TABLE IF EXISTS {name}_rows")


def test_files_of_several_types_are_refused(theirs: Any, tmp_path: Path) -> None:
    """Spark skips a part of a file by the rows in it: a unit that is NULL in all of them, and the file never fails."""
    for name, unit, value in (("a", [1, 2], [1, 2]), ("b", [None, None], ["one", "two"])):
        kinds = {"id": pa.array(unit, pa.int64()), "x": pa.array(value)}
        pq.write_table(pa.table(kinds), tmp_path / f"{name}.parquet")
    frame = theirs.read.schema("id long, x long").parquet(str(tmp_path))
    with pytest.raises(hb.PolicyError, match="do not have one schema") as refused:
        hb.Session({"v": hb.table(frame, unit="id", max_total=1)}, budget=hb.Budget(1), ledger=None)
    assert str(tmp_path) not in str(refused.value)  # the name of a partition's folder is what is in it
    one = theirs.read.parquet(str(tmp_path / "a.parquet"), str(tmp_path / "a.parquet"))
    hb.Session({"v": hb.table(one, unit="id", max_total=1)}, budget=hb.Budget(1), ledger=None).close()


OTHERS_FOLDERS = [["1", "2"], ["1", "2.5"], ["2025-01-31"], ["2025-01-31 10:00:00"], ["true"], [None]]


@pytest.mark.parametrize("others", OTHERS_FOLDERS)
@pytest.mark.parametrize("one", ["x", "1.5", "9223372036854775808", "2025-02-30", "01", "1"])
def test_no_folder_of_one_person_decides_a_type(spark: Any, tmp_path: Path, others: list[Any], one: str) -> None:
    """A column by which files are divided is in the folders' names alone: Spark makes one type of all of them."""
    theirs, kinds = spark.newSession(), "id BIGINT, g STRING, x DOUBLE"
    for world, values in (("d", others), ("d1", [*others, one])):
        rows = [(i, value, float(i)) for i, value in enumerate(values, 1)]
        theirs.createDataFrame(rows, kinds).write.partitionBy("g").parquet(f"{tmp_path}/{world}")
    for world in ("d", "d1"):
        declared = hb.table(theirs.read.parquet(f"{tmp_path}/{world}"), unit="id", max_total=1)
        with pytest.raises(hb.PolicyError, match="guesses the types") as refused:
            hb.Session({"v": declared}, budget=hb.Budget(1), ledger=None)
        assert str(tmp_path) not in str(refused.value)
    theirs.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    types = set()
    for world in ("d", "d1"):
        reader = theirs.read.schema(kinds) if others == [None] else theirs.read
        frame = reader.parquet(f"{tmp_path}/{world}")
        types.add(tuple(sorted(frame.dtypes)))
        hb.Session({"v": hb.table(frame, unit="id", max_total=1)}, budget=hb.Budget(1), ledger=None).close()
    assert len(types) == 1


GIVEN = "id BIGINT, x INT"
READS: list[tuple[str, dict[str, str], str | None, bool]] = [
    ("csv", {"header": "true"}, None, False),
    ("csv", {"header": "true"}, GIVEN, False),
    ("json", {}, None, False),
    ("json", {}, GIVEN, False),
    ("parquet", {}, None, True),
    ("parquet", {"datetimeRebaseMode": "Corrected", "ignoreCorruptFiles": "False"}, None, True),
    ("parquet", {"modifiedAfter": "2020-01-01T00:00:00"}, None, False),
    ("parquet", {"datetimeRebaseMode": "EXCEPTION"}, None, False),
    ("parquet", {"ignoreCorruptFiles": "true"}, None, False),
    ("orc", {"ignoreMissingFiles": "true"}, None, False),
    ("xml", {"rowTag": "row"}, "x DOUBLE, id BIGINT", False),
]


@pytest.mark.parametrize("sources", ["csv,json,parquet,orc,xml,text,avro", ""])
@pytest.mark.parametrize(("form", "options", "schema", "fine"), READS)
def test_no_option_of_a_reader_lets_one_row_decide_of_others(
    spark: Any, tmp_path: Path, sources: str, form: str, options: dict[str, str], schema: str | None, fine: bool
) -> None:
    """Spark makes one type of all values of a CSV or JSON column: one person's row would change everybody's."""
    theirs = spark.newSession()
    theirs.conf.set("spark.sql.sources.useV1SourceList", sources)
    for key in FILTERED.values():
        theirs.conf.set(key, "false")
    worlds = ([(1, "2"), (2, "3")], [(1, "2"), (2, "3"), (3, "x")])
    for i, rows in enumerate(worlds):
        place = f"{tmp_path}/{i}"
        made = theirs.createDataFrame(rows, "id BIGINT, x STRING").write.option("header", "true")
        made.option("rowTag", "row").format(form).save(place)
        reader = theirs.read.options(**options).format(form)
        frame = (reader if schema is None else reader.schema(schema)).load(place)
        for shown in (frame, frame.filter("id > 0").union(frame), frame.select("x", "id").cache()):
            declared = hb.table(shown, unit="id", max_total=1)
            if fine:
                hb.Session({"v": declared}, budget=hb.Budget(1), ledger=None).close()
                continue
            with pytest.raises(hb.PolicyError, match="trusted_view") as refused:
                hb.Session({"v": declared}, budget=hb.Budget(1), ledger=None)
            assert str(tmp_path) not in str(refused.value)
        trusted = hb.table(frame, unit="id", max_total=1, trusted_view=True)
        hb.Session({"v": trusted}, budget=hb.Budget(1), ledger=None).close()
