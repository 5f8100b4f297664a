"""What hostile readers found, each kept as a test: rows that raise, people that merge, answers to another question."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from people import HUGE, engine, session, visits

HIV = pa.table({"id": [1, 2, 3], "name": ["ann", "bob", "carol"], "diag": ["flu", "hiv", "flu"]})


def exact(table: Any, sql: str) -> tuple[tuple[int, ...], ...]:
    with engine("t", table) as (duck, plan):
        return duck.run(plan(sql)).vectors


def count(condition: str) -> Any:
    with session() as s:
        return s.sql(f"SELECT COUNT(*) AS c FROM visits WHERE {condition}", epsilon=HUGE).to_dict()["c"][0]


@pytest.mark.parametrize(
    "like", ["name LIKE 'x' ESCAPE 'é'", "name ILIKE 'bZ' ESCAPE 'z'", "name ILIKE 'xİ' ESCAPE 'i'", r"name LIKE 'b\'"]
)
def test_no_escape_character_makes_a_row_raise(like: str) -> None:
    table = hb.table(HIV, unit="id", max_total=1)
    for name in ("ann", "bob"):
        sql = f"SELECT COUNT(*) FROM t WHERE CASE WHEN name = '{name}' AND diag = 'hiv' THEN {like} ELSE FALSE END"
        try:
            assert exact(table, sql) == ((0,),)
        except hb.QueryError as error:
            assert "escape" in str(error)


def test_an_escape_makes_the_next_character_stand_for_itself() -> None:
    texts = pa.table({"id": list(range(5)), "s": ["100%", "100x", "a_b", "axb", "\\%"]})
    table = hb.table(texts, unit="id", max_total=1)
    for condition, expected in (
        ("s LIKE '100!%' ESCAPE '!'", 1),
        ("s LIKE '100%'", 2),
        ("s LIKE 'a$_b' ESCAPE '$'", 1),
        ("s LIKE 'a_b'", 2),
        (r"s LIKE '\%'", 1),
        (r"s LIKE '\\\%' ESCAPE '\'", 1),
        ("s ILIKE 'A!_B' ESCAPE '!'", 1),
    ):
        assert exact(table, f"SELECT COUNT(*) FROM t WHERE {condition}") == ((expected,),), condition


def test_not_like_is_not_like() -> None:
    assert count("ward LIKE 'A%'") == 3
    for condition in ("ward NOT LIKE 'A%'", "NOT (ward LIKE 'A%')", "ward NOT ILIKE 'a%'", "ward !~~ 'A%'"):
        assert count(condition) == 2
    assert count("ward NOT LIKE 'A!%' ESCAPE '!'") == 5


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward LIMIT 50 PERCENT",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward LIMIT 10%",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward LIMIT 1 BY ward",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward LIMIT 2 WITH TIES",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward FETCH FIRST 3 ROWS WITH TIES",
        "SELECT COUNT(*, n) FROM visits",
        "SELECT COUNT(* EXCLUDE (n)) FROM visits",
        "SELECT SUM(n ORDER BY n) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE day = DATE '1970-01-01 12:00:00'",
        "SELECT COUNT(*) FROM visits WHERE TRIM(ward, 'A') = ''",
    ],
)
def test_a_modifier_that_is_not_read_is_refused(sql: str) -> None:
    with session() as s, pytest.raises(hb.QueryError):
        s.check(sql, epsilon=1)


def test_a_timestamp_constant_is_read() -> None:
    assert count("day = TIMESTAMP '1970-01-01 00:00:00'") == 1
    assert count("CAST(day AS TIMESTAMP) < TIMESTAMP '1970-01-01 00:00:01'") == 1


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (pa.array([0], pa.timestamp("us")), ("2025-01-01", "2025-01-01 00:00:00", "20250101", "2025-W01-3")),
        (pa.array([2.0**53]), (2**53, 2**53 + 1)),
        (pa.array([0], pa.date32()), ("2025-01-01", "2025-W01-3")),
    ],
)
def test_two_names_of_one_group_are_refused(column: Any, values: tuple[Any, ...]) -> None:
    table = hb.table(pa.table({"d": column}), unit=hb.EACH_ROW, columns={"d": hb.one_of(*values)})
    with engine("t", table) as (_, plan), pytest.raises(hb.PolicyError, match="once"):
        plan("SELECT d, COUNT(*) FROM t GROUP BY d")


def test_a_declared_instant_is_matched_in_utc() -> None:
    import datetime as dt

    east = dt.timezone(dt.timedelta(hours=2))
    moments = pa.table({"d": pa.array([dt.datetime(2025, 1, 1), dt.datetime(2025, 1, 1, 2)], pa.timestamp("us"))})
    table = hb.table(moments, unit=hb.EACH_ROW, columns={"d": hb.one_of(dt.datetime(2025, 1, 1, 2, tzinfo=east))})
    assert exact(table, "SELECT d, COUNT(*) FROM t GROUP BY d") == ((1,),)
    with session(t=table) as s:
        assert s.sql("SELECT d, COUNT(*) AS c FROM t GROUP BY d", epsilon=HUGE).rows() == [(dt.datetime(2025, 1, 1), 1)]


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([2**53, 2**53 + 1], pa.decimal128(38, 0)),
        pa.array([2**53, 2**53 + 1], pa.int64()),
        pa.array([2**64 - 1, 2**64 - 2], pa.uint64()),
        pa.array([1000, 1001], pa.timestamp("ns")),
        pa.array([1000, 1001], pa.timestamp("ns", "UTC")),
        pa.array([b"\xff", b"\xfe"], pa.binary()),
        pa.array(["a", "A"]),
        pa.array(["a", "a "]),
    ],
)
def test_two_people_stay_two(ids: Any) -> None:
    table = hb.table(pa.table({"id": ids}), unit="id")
    assert exact(table, "SELECT COUNT(DISTINCT id) FROM t") == ((2,),)


def test_a_unit_that_a_cast_could_merge_is_refused(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("id,v\n9007199254740992,1\n9007199254740993,2\n1.5,1\n2,1\n")
    for word in ("number", "date", "timestamp", "boolean"):
        table = hb.table(tmp_path / "v.csv", unit="id", types={"id": word})
        with pytest.raises(hb.PolicyError, match="one unit"), engine("t", table):
            pass
    whole = hb.table(tmp_path / "v.csv", unit="id", types={"id": "integer"})
    assert exact(whole, "SELECT COUNT(DISTINCT id) FROM t") == ((3,),)  # 1.5 is not a whole number


def test_a_collation_is_refused(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "v.duckdb")) as con:
        con.execute("CREATE TABLE c (id VARCHAR COLLATE nocase, x INTEGER)")
    with (
        pytest.raises(hb.PolicyError, match="collation"),
        engine("t", hb.table(tmp_path / "v.duckdb", table="c", unit="id")),
    ):
        pass


CLEAN = b"".join(b"%d,A\n" % i for i in range(50))


@pytest.mark.parametrize(
    "line",
    [
        b'999,"b\n',
        b'999,"\n',
        b'"999,b\n',
        b"999,b\r\n",
        b"999,b\rc\n",
        b'999,"b\r\n',
        b"999,\xff\xfe\n",
        b"\n",
        b"999\n",
        b"999,a,b,c\n",
        b'999,"a""b"\n',
        b'999,"a"b"\n',
        b"\0\n",
        b"999," + b"x" * 100_000 + b"\n",
    ],
)
@pytest.mark.parametrize("at", ["first", "last"])
def test_one_line_of_a_csv_changes_no_other(tmp_path: Path, line: bytes, at: str) -> None:
    path = tmp_path / "v.csv"
    table = hb.table(path, unit="id", types={"id": "text"}, columns={"w": hb.one_of("A")}, max_total=1)
    path.write_bytes(b"id,w\n" + CLEAN)
    sql = "SELECT COUNT(*) FROM t WHERE id <> '999'"
    before = exact(table, sql)
    path.write_bytes(b"id,w\n" + (line + CLEAN if at == "first" else CLEAN + line))
    assert exact(table, sql) == before == ((50,),)


def test_quoted_fields_of_a_csv_are_read(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_bytes(b'"id","w"\r\n"1","a,b"\r\n2,"say ""A"""\r\n3,\r\n4,""\r\n5,c')
    table = hb.table(
        path,
        unit="id",
        types={"id": "integer"},
        columns={"w": hb.one_of("a,b", 'say "A"', None, "c")},
        max_groups=1,
        max_rows=1,
    )
    assert exact(table, "SELECT w, COUNT(*) FROM t GROUP BY w") == ((1, 1, 2, 1),)


def test_the_case_of_the_units_name_makes_no_second_budget() -> None:
    with session(epsilon=1, a=visits(unit="id"), b=visits(unit="ID")) as s:
        s.sql("SELECT COUNT(DISTINCT id) FROM b", epsilon=1)
        with pytest.raises(hb.BudgetError):
            s.sql("SELECT COUNT(*) FROM a", epsilon=1)


def test_one_budget_has_one_neighbour_relation(tmp_path: Path) -> None:
    with pytest.raises(hb.PolicyError, match="one relation"), session(a=visits(), b=visits(neighbours="replace")):
        pass
    with session(epsilon=1, ledger=tmp_path / "b.db") as s:
        s.sql("SELECT COUNT(*) FROM visits", epsilon="0.5")
    changed = visits(neighbours="replace")
    with (
        pytest.raises(hb.PolicyError, match="add_remove"),
        session(epsilon=1, ledger=tmp_path / "b.db", visits=changed),
    ):
        pass


def test_a_release_of_one_unit_is_none_of_another(tmp_path: Path) -> None:
    frame = pa.table({"id": [1, 2, 3], "hh": [1, 1, 1]})
    charged = []
    for unit in (hb.EACH_ROW, "id", "hh"):
        table = hb.table(frame, unit=unit, max_total=1, unit_space="people")  # type: ignore[arg-type]
        with session(epsilon=3, ledger=tmp_path / "b.db", t=table) as s:
            charged.append(s.sql("SELECT COUNT(*) FROM t", epsilon=1).charged)
    assert charged == [True, True, True]


def bad_text() -> Any:
    offsets, data = pa.py_buffer(b"\0\0\0\0\1\0\0\0\3\0\0\0"), pa.py_buffer(b"a\xff\xfe")
    return pa.Array.from_buffers(pa.string(), 2, [None, offsets, data])


FAR = 2**62


@pytest.mark.parametrize(
    ("column", "questions"),
    [
        (
            bad_text(),
            ["v ILIKE 'A%'", "v = 'x'", "LOWER(v) = 'a'", "REVERSE(v) = 'a'", "LENGTH(v) > 0", "TRIM(v) = 'a'"],
        ),
        (pa.array([FAR, 0], pa.timestamp("ms")), ["v > '2020-01-01'", "CAST(v AS TEXT) = 'a'", "YEAR(v) = 1970"]),
        (pa.array([FAR, 0], pa.timestamp("ms", "UTC")), ["v > '2020-01-01'", "DATE_TRUNC('month', v) IS NULL"]),
        (pa.array([-(2**63), -(2**63) + 2, -9223372022400000001], pa.timestamp("us")), ["CAST(v AS TEXT) = 'a'"]),
        (
            pa.array([2**31 - 1, -(2**31), 0], pa.date32()),
            ["CAST(v AS TIMESTAMP) > '2020-01-01'", "v - DATE '2020-01-01' > 1"],
        ),
        (pa.array(["a", "b"]).dictionary_encode(), ["v = 'x'", "v = 'a'"]),
        (pa.nulls(2), ["v = 'x'", "v = 1", "v IS NULL", "COALESCE(v, 'a') = 'a'"]),
    ],
    ids=["utf8", "ms", "s-utc", "us", "date", "dictionary", "null"],
)
@pytest.mark.parametrize("way", ["frame", "parquet"])
def test_no_row_makes_a_question_fail(tmp_path: Path, column: Any, questions: list[str], way: str) -> None:
    source: Any = pa.table({"id": list(range(len(column))), "v": column})
    if way == "parquet":
        pq.write_table(source, tmp_path / "v.parquet")
        source = tmp_path / "v.parquet"
    with engine("t", hb.table(source, unit="id", max_total=1)) as (duck, plan):
        for question in questions:
            duck.run(plan(f"SELECT COUNT(*), COUNT(v) FROM t WHERE {question}"))
        assert duck.run(plan("SELECT COUNT(*) FROM t")).vectors == ((len(column),),)


def test_an_engine_that_broke_answers_the_next_question() -> None:
    with session(epsilon=2) as s:
        s._engine._con.close()
        with pytest.raises(hb.EngineError):
            s.sql("SELECT COUNT(*) FROM visits", epsilon=1)
        s._engine._open()
        assert s.sql("SELECT COUNT(*) FROM visits WHERE n > 0", epsilon=1).charged


def test_texts_cannot_be_made_to_explode() -> None:
    big = "x" * 90
    nested = "ward"
    for i in range(6):
        nested = f"REPLACE({nested}, '{'Ax'[i > 0]}', '{big}')"
    with session() as s, pytest.raises(hb.QueryError, match="too long"):
        s.check(f"SELECT COUNT(*) FROM visits WHERE {nested} = 'a'", epsilon=1)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame({"id": [1, 2], "secret": ["alice-hiv", "bob"]}), HIV], ids=["pandas", "arrow"]
)
def test_a_release_does_not_carry_the_table(frame: Any) -> None:
    with session(epsilon=1, t=hb.table(frame, unit="id", max_total=1)) as s:
        release = s.sql("SELECT COUNT(*) FROM t", epsilon=1)
    for text in (pickle.dumps(release.to_dict()), pickle.dumps(release.receipt), repr(release).encode()):
        assert b"hiv" not in text
    for thing in (release, hb.table(frame, unit="id")):
        with pytest.raises(hb.PolicyError, match="pickled"):
            pickle.dumps(thing)


class Failing:
    """A stream that fails half-way, with a private value in its words."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        def batches() -> Any:
            yield pa.record_batch({"id": [1]})
            raise RuntimeError("alice-hiv")

        return pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), batches()).__arrow_c_stream__()


def test_a_failing_stream_is_an_incident_after_the_charge() -> None:
    with session(epsilon=1, t=hb.table(Failing(), unit="id", max_total=1)) as s:
        s.check("SELECT COUNT(*) FROM t", epsilon=1)
        with pytest.raises(hb.EngineError) as caught:
            s.sql("SELECT COUNT(*) FROM t", epsilon=1)
        assert (caught.value.__context__, caught.value.__cause__) == (None, None)
        assert (s.remaining, s.history()[0].state) == (0, "failed")


ODD_COLUMNS: dict[str, Any] = {
    "NaT among objects": (pd.Series([pd.NaT, pd.Timestamp("2025-01-01")], dtype=object), "timestamp"),
    "a time before time": (pd.Series([pd.Timestamp("2025-01-01", tz="Asia/Tokyo"), None], dtype=object), "timestamp"),
    "cut": (pd.cut(pd.Series([1.0, 2.0]), [0, 1, 2]), None),
    "nullable categories": (pd.Series([1, 2], dtype="Int64").astype("category"), None),
    "zoned categories": (pd.Series(pd.date_range("2025-01-01", periods=2, tz="UTC")).astype("category"), None),
    "mixed categories": (pd.Series([1, "alice"], dtype="category"), None),
    "empty categories": (pd.Series([None, None], dtype="category"), None),
    "a surrogate": (pd.Series(["\ud800", "a"], dtype=object), "text"),
    "complex": (pd.Series([1j, 2j]), None),
    "sparse": (pd.Series(pd.arrays.SparseArray([1, 0])), None),
    "intervals": (pd.Series(pd.interval_range(0, 2)), None),
    "periods": (pd.Series(pd.period_range("2025-01", periods=2, freq="M")), None),
}


@pytest.mark.parametrize("name", ODD_COLUMNS)
def test_no_column_of_a_frame_keeps_a_session_from_opening(name: str) -> None:
    column, word = ODD_COLUMNS[name]
    frame = pd.DataFrame({"id": [1, 2], "v": column})
    table = hb.table(frame, unit="id", max_total=1, types={"v": word} if word else {})
    assert exact(table, "SELECT COUNT(*) FROM t") == ((2,),)


def test_columns_of_one_name_are_refused() -> None:
    frame = pd.DataFrame([[1, 2, 3]], columns=["id", 1, "1"])
    with pytest.raises(hb.PolicyError, match="same name"), engine("t", hb.table(frame, unit="id")):
        pass


def test_a_type_that_text_cannot_stand_for_is_refused() -> None:
    frame = pa.table({"id": [1], "v": pa.array([b"x"]), "w": pa.array([["x"]], pa.list_(pa.string()))})
    for column in ("v", "w"):
        with (
            pytest.raises(hb.PolicyError, match="the source says"),
            engine("t", hb.table(frame, unit="id", types={column: "text"})),
        ):
            pass


@pytest.mark.parametrize("bad", [b"3,A,\xff\n", b"\xff\n", b"\xff,\xff,\xff\n", b'"\xff\n', b'3,"\xff"\n', b"3\xff,\n"])
@pytest.mark.parametrize("at", ["first", "last"])
def test_a_bad_line_in_a_bad_encoding_changes_no_other(tmp_path: Path, bad: bytes, at: str) -> None:
    path = tmp_path / "v.csv"
    path.write_bytes(b"id,w\n" + (bad + CLEAN if at == "first" else CLEAN + bad))
    table = hb.table(path, unit="id", types={"id": "text"}, max_total=1)
    assert exact(table, "SELECT COUNT(*) FROM t WHERE id <> '3'") == ((49,),)


@pytest.mark.parametrize("before", [b"", b"7,A\n", b'"8",A\n', b"\xef\xbb\n"])
def test_a_byte_order_mark_in_a_row_is_part_of_it(tmp_path: Path, before: bytes) -> None:
    path = tmp_path / "v.csv"
    path.write_bytes(b"id,w\n" + before + b"\xef\xbb\xbf5,A\n5,A\n")
    table = hb.table(path, unit="id", types={"id": "text"}, max_total=1)
    assert exact(table, "SELECT COUNT(DISTINCT id) FROM t WHERE id LIKE '%5'") == ((2,),)


def test_columns_that_moved_under_a_session_are_noticed_before_the_charge(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_bytes(b"id,visit\n1,v\n2,v\n")
    with session(epsilon=2, t=hb.table(path, unit="id", types={"id": "text"}, max_total=1)) as s:
        assert s.sql("SELECT COUNT(*) FROM t", epsilon=1).charged
        path.write_bytes(b"visit,id\n" + b"".join(b"v%d,1\n" % i for i in range(50)))
        with pytest.raises(hb.PolicyError, match="have changed"):
            s.sql("SELECT COUNT(*) FROM t WHERE id = '1'", epsilon=1)
        assert s.remaining == 1


BAD = pa.Array.from_buffers(
    pa.string(), 4, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0"), pa.py_buffer(b"aab\xff")]
)
GOOD = pa.array(["a", "a", "b", None])
EDGE = 253402300799999999  # 9999-12-31 23:59:59.999999 in microseconds


@pytest.mark.parametrize(
    ("column", "options"),
    [
        (pa.array([EDGE, EDGE, 0, None], pa.timestamp("us")), {}),
        (pa.array([EDGE, EDGE + 1, 0, -(2**62)], pa.timestamp("us")), {}),
        (pa.array([0, 100, 1000, 1100], pa.timestamp("ns")), {"use_deprecated_int96_timestamps": True}),
        (pa.array([EDGE // 10**6, 1, 2, None], pa.timestamp("s")), {"use_deprecated_int96_timestamps": True}),
        (pa.array([1.5, 2.5, 3.0, None], pa.float16()), {}),
        (pa.array([1, 2, 3, None], pa.timestamp("ms", "UTC")), {}),
        (pa.array([2**62, 2, 2, None], pa.int64()), {}),
        (pa.array([b"x", b"y", b"y", None]), {}),
    ],
    ids=["open end", "beyond", "int96", "int96 far", "float16", "ms-utc", "int64", "bytes"],
)
def test_both_ways_of_reading_parquet_give_the_same_integers(
    tmp_path: Path, column: Any, options: dict[str, Any]
) -> None:
    """Which way is taken depends on whether some text is not UTF-8, so nothing else may depend on the way."""
    found = []
    for text in (GOOD, BAD):
        pq.write_table(pa.table({"id": [1, 2, 3, 4], "s": text, "v": column}), tmp_path / "v.parquet", **options)
        asked = []
        for unit in ("id",) if options else ("id", "v"):  # a moment of 96 bits names no unit
            table = hb.table(tmp_path / "v.parquet", unit=unit, max_total=1)
            with engine("t", table) as (duck, plan):
                kind = duck._known["t"].columns["v"]
                value = "COUNT(v), " if kind != "NULL" else ""
                asked.append(
                    duck.run(plan(f"SELECT {value}COUNT(*), COUNT(DISTINCT {unit}) FROM t WHERE s = 'a' OR s = 'b'"))
                )
        found.append([exact.vectors for exact in asked])
    assert found[0] == found[1]


def test_a_folders_name_is_no_column(tmp_path: Path) -> None:
    folder = tmp_path / "year=2020"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1, 2], "s": GOOD.slice(0, 2)}), folder / "v.parquet")
    with pytest.raises(hb.QueryError, match="unknown column"):
        exact(hb.table(folder / "v.parquet", unit="id", max_total=1), "SELECT COUNT(*) FROM t WHERE year = 2020")


def test_texts_inside_an_extension_type_are_held_to_utf8() -> None:
    wrapped = pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "x", "y"), bad_text())
    frame = pa.table({"id": [1, 2], "v": wrapped})
    assert exact(hb.table(frame, unit="id", max_total=1), "SELECT COUNT(*) FROM t WHERE UPPER(v) = 'A'") == ((1,),)


def test_a_long_chain_of_remainders_is_refused_at_once() -> None:
    with session() as s, pytest.raises(hb.QueryError, match="too complex"):
        s.sql("SELECT COUNT(*) FROM visits WHERE n" + " % 3" * 60 + " = 1", epsilon=1)


def test_a_plan_may_ask_one_question_twice() -> None:
    sql = "SELECT COUNT(*) FROM visits"
    for pair in (("0.1", "1"), ("1", "0.1")):
        with session(epsilon=1) as s:
            one, two = s.plan([(sql, pair[0]), (sql, pair[1])])
            assert one.rows() == two.rows()
            assert s.remaining == 0


@pytest.mark.parametrize(
    ("columns", "key"),
    [
        ({"n": hb.between(2**64, 2**64 + 5)}, "n"),
        ({"n": hb.between(2**64, 2**64 + 5)}, "n % 3"),
        ({"age": hb.between(10**30, 10**30 + 5)}, "FLOOR(age)"),
        ({}, "TRUE"),
        ({}, "1 + 1"),
    ],
)
def test_groups_that_no_answer_can_hold_are_refused_before_the_charge(columns: dict[str, Any], key: str) -> None:
    with session(visits=visits(columns=columns)) as s:
        with pytest.raises(hb.HubbubError):
            s.sql(f"SELECT COUNT(*) FROM visits GROUP BY {key}", epsilon=1)
        assert s.history() == []


def test_having_means_the_key_before_a_name_of_the_answer() -> None:
    with session() as s:
        sql = "SELECT LOWER(ward) AS ward, COUNT(*) AS c FROM visits GROUP BY visits.ward HAVING ward = 'A'"
        assert s.sql(sql, epsilon=HUGE).rows() == [("a", 3)]


@pytest.mark.parametrize("cast", ["CAST(age AS DECIMAL(10, 0))", "CAST(n AS TINYINT)", "CAST(age AS FLOAT)"])
def test_a_cast_with_a_width_is_refused(cast: str) -> None:
    with session() as s, pytest.raises(hb.QueryError, match="without widths"):
        s.check(f"SELECT COUNT({cast}) FROM visits", epsilon=1)


def test_one_and_true_are_two_constants() -> None:
    with session() as s, pytest.raises(hb.QueryError, match="neither in GROUP BY"):
        s.sql(
            "SELECT CASE WHEN n > 3 THEN 1 ELSE 0 END AS b, COUNT(*) FROM visits "
            "GROUP BY CASE WHEN n > 3 THEN TRUE ELSE FALSE END",
            epsilon=HUGE,
        )


def test_null_of_a_nullable_range_can_be_a_group_of_an_expression() -> None:
    frame = pa.table({"id": [1, 2, 3], "n": [None, 1, 2]})
    with session(t=hb.table(frame, unit="id", max_groups=1, max_rows=1, columns={"n": hb.between(1, 2)})) as s:
        for key, expected in (
            ("COALESCE(n, -1)", {1: 1, 2: 1, -1: 1}),
            ("n IS NULL", {False: 2, True: 1}),
            ("n", {1: 1, 2: 1}),
        ):
            rows = s.sql(f"SELECT {key} AS k, COUNT(*) AS c FROM t GROUP BY {key}", epsilon=HUGE).rows()
            assert dict(rows) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 / (COUNT(*) - COUNT(*)) AS r FROM visits",
        "SELECT CASE WHEN COUNT(*) > 100 THEN COUNT(*) END AS c FROM visits GROUP BY ward",
        "SELECT COUNT(*) * 1e308 * 10 AS c FROM visits",
        "SELECT ward, COUNT(*) / 2 AS h FROM visits GROUP BY ward HAVING COUNT(*) > 100",
        "SELECT ward, COUNT(*) / 2 AS h FROM visits GROUP BY ward LIMIT 0",
        "SELECT ward, COUNT(*) / 2 AS h FROM visits GROUP BY ward ORDER BY h DESC LIMIT 2",
    ],
)
def test_a_paid_answer_can_always_be_shown(sql: str) -> None:
    with session() as s:
        release = s.sql(sql, epsilon=HUGE)
    assert str(release)
    assert release.intervals().num_rows == len(release)
    assert all(len(v) == len(release) for v in release.error.half_widths().values())


def test_a_block_is_spent_by_its_own_thread_only() -> None:
    import threading

    with session(epsilon=2) as s:
        failures: list[Exception] = []

        def other() -> None:
            try:
                s.sql("SELECT COUNT(*) FROM visits WHERE n > 1", epsilon=1)
            except hb.HubbubError as error:
                failures.append(error)

        with s.reserve(epsilon=1):
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            assert failures == []
            s.sql("SELECT COUNT(*) FROM visits", epsilon=1)
        assert s.remaining == 0


def test_a_block_pays_for_its_own_people_only() -> None:
    frame = pa.table({"person": [1, 2], "house": [1, 1]})
    a = hb.table(frame, unit="person", max_total=1)
    b = hb.table(pa.table({"house": [1, 1]}), unit="house", max_total=1)
    with session(epsilon=1, a=a, b=b) as s:
        with s.reserve(epsilon=1, unit_space="person"), pytest.raises(hb.PolicyError, match="pays for the unit space"):
            s.sql("SELECT COUNT(*) FROM b", epsilon=1)
        assert "question" not in {e.kind for e in s.history()}
        with s.reserve(epsilon=1, unit_space="person") as block:
            s.analyst = "eve"
            with pytest.raises(hb.PolicyError, match="another analyst"):
                s.sql("SELECT COUNT(*) FROM a", epsilon=1)
            assert block


def test_a_ledger_that_begins_with_a_plan_opens_again(tmp_path: Path) -> None:
    for _ in range(2):
        with session(epsilon=1, ledger=tmp_path / "b.db") as s:
            (answer,) = s.plan([("SELECT COUNT(*) FROM visits", 1)])
            assert len(answer) == 1


def test_a_plan_that_a_table_cannot_hold_charges_nothing() -> None:
    with session(epsilon=4) as s:
        s._ledger.steward.record_limits("id", {"table:visits": hb.Budget(1).epsilon})
        plan = [("SELECT COUNT(*) FROM visits", 1), ("SELECT COUNT(*) FROM visits WHERE n > 1", 1)]
        with pytest.raises(hb.BudgetError, match="the plan asks for epsilon 2"):
            s.plan(plan)
        assert s.remaining == 4


def test_an_analyst_who_is_no_longer_named_may_spend_what_each_may() -> None:
    one, two, three = (hb.Budget(e).epsilon for e in (1, 2, 3))
    with session(epsilon=3) as s:
        s._ledger.steward.record_limits("id", {"analyst:*": one, "analyst:bob": two})
        s._ledger.steward.record_limits("id", {"analyst:*": one})
        s.analyst = "bob"
        with pytest.raises(hb.BudgetError):
            s.sql("SELECT COUNT(*) FROM visits", epsilon="2.5")
        assert s.ledger.balance.policy_limits("id") == {"analyst:*": one}
        assert s.sql("SELECT COUNT(*) FROM visits", epsilon=1).charged
        assert three > two


def test_what_a_public_sub_query_says_is_what_people_s_rows_meet() -> None:
    """random() in it: the values that groups are made of, and the rows that are joined, are those of one run."""
    from hubbub.engines.outer import OuterSide
    from hubbub.tables.kinds import Kind
    from hubbub.tables.relations import PublicRelation

    outer = OuterSide({"w": hb.public(pa.table({"k": list(range(50))}))})
    sql = 'SELECT floor(random() * 40) AS r FROM "w"'
    values = outer.values(sql, ("w",), "r")
    unique = outer.unique(sql, ("w",), ("r",))
    leaf = PublicRelation("p1", sql, ("w",), (), {"r": Kind.NUMBER}, lambda _: values, lambda _: unique)
    met = outer.leaf(leaf, {}).column("r").to_pylist()
    assert sorted(set(met)) == list(values or ())
    assert unique is (len(set(met)) == len(met)) is False
