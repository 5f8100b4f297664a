"""CSV as people have it: delimiters, encodings, decimal commas, dates of another order, packed, without a header.

Whatever stands in one row changes nothing about another: held over random bytes, in every encoding.
"""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import os
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import hubbub as hb
from hubbub.engines.duckdb import csv_files
from hubbub.engines.duckdb.csv_files import csv_header, read_csv
from hubbub.engines.duckdb.written import iso_dates, plain_numbers
from hubbub.file_formats import ENCODINGS, Csv, kind_of_file
from hubbub.tables.kinds import Kind

TEXT = "id;café;am;preis\n1;Österreich;3.4.25 7:05;1.234,50\n2;São;31.12.99 23:59;-0,5\n3;x;30.2.25 1:00;1.5\n"
HOW = Csv(delimiter=";", decimal=",", thousands=".", formats={"am": "%d.%m.%y %H:%M"})
TYPES = {"id": Kind.INTEGER, "café": Kind.TEXT, "am": Kind.TIMESTAMP, "preis": Kind.NUMBER}
READ = {
    "id": ["1", "2", "3"],
    "café": ["Österreich", "São", "x"],
    # Whether there is a 30th of February is for the engine to say.
    "am": ["2025-04-03 07:05:00", "1999-12-31 23:59:00", "2025-02-30 01:00:00"],
    "preis": ["1234.50", "-0.5", None],
}


def read(path: Path, how: Csv, types: dict[str, Kind] | None = None) -> pa.Table:
    return read_csv(str(path), csv_header("t", str(path), how), how, types or {})


def packed(path: Path, rows: bytes) -> Path:
    match path.suffix:
        case ".gz":
            path.write_bytes(gzip.compress(rows[:20]) + gzip.compress(rows[20:]))  # two members are one file
        case ".zst":
            path.write_bytes(pa.compress(rows, "zstd", asbytes=True))
        case ".zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("inner/visits.csv", rows)
        case _:
            path.write_bytes(rows)
    return path


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "csv.zst", "csv.zip"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_file_is_the_same_in_every_encoding_and_packing(tmp_path: Path, encoding: str, suffix: str) -> None:
    text = TEXT if encoding != "utf-16" else TEXT + "4;\N{SNOWMAN};;\n"
    path = packed(tmp_path / f"visits.{suffix}", text.encode(encoding))
    found = read(path, Csv(**{**vars(HOW), "encoding": encoding}), TYPES).slice(0, 3)
    assert found.to_pydict() == READ


def test_a_file_without_a_header_has_the_names_it_is_given(tmp_path: Path) -> None:
    path = packed(tmp_path / "visits.tsv", b"\xef\xbb\xbf1\ta\n2\tb\n")
    how = Csv(names=["id", "ward"])
    assert read(path, how).to_pydict() == {"id": ["1", "2"], "ward": ["a", "b"]}


def test_a_line_break_in_quotes_belongs_to_its_field_only_where_somebody_vouches(tmp_path: Path) -> None:
    path = packed(tmp_path / "v.csv", b'id,note\n1,"two\r\nlines ""quoted"""\r\n2,one\r\n')
    assert read(path, Csv()).to_pydict() == {"id": ["2"], "note": ["one"]}
    found = read(path, Csv(quoted_line_breaks=True)).to_pydict()
    assert sorted(zip(*found.values(), strict=True)) == [("1", 'two\r\nlines "quoted"'), ("2", "one")]


SPECIAL = [b'"', b";", b"\r", b"\x00", b"\xff", b"\xd8", b"\xdc", b"a", b"\x85", b"\xe2\x80\xa8", b" ", b"1", b"\x81"]


def line(unit: int, middle: bytes, encoding: str) -> bytes:
    def e(text: str) -> bytes:
        return text.encode("utf-16-le" if encoding == "utf-16" else encoding)

    middle = middle.replace(b"\n", b"")
    if encoding == "utf-16":  # whole units of two bytes, none of them a line break
        middle = b"".join(b"\x41" + bytes([b]) if b in (0, 10) else bytes([b, 0]) for b in middle)
    return e(f"{unit};") + middle + e(";z\n")


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    encoding=st.sampled_from(ENCODINGS),
    middles=st.lists(st.lists(st.sampled_from(SPECIAL), max_size=6).map(b"".join), min_size=3, max_size=6),
    at=st.integers(0, 5),
    slice_=st.sampled_from([1, 2, 7, 1 << 26]),
)
def test_what_one_line_holds_changes_no_other(
    tmp_path_factory: pytest.TempPathFactory, encoding: str, middles: list[bytes], at: int, slice_: int
) -> None:
    """D has a line of somebody's choosing more than D': every other line is read the same."""

    how = Csv(delimiter=";", encoding=encoding)
    bom = b"\xff\xfe" if encoding == "utf-16" else b""
    head = "id;x;y\n".encode("utf-16-le" if encoding == "utf-16" else encoding)
    lines = [line(i, b"" if i != at else m, encoding) for i, m in enumerate(middles)]
    folder = tmp_path_factory.mktemp("csv")
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "_SLICE", slice_)
        for some in (lines, [one for i, one in enumerate(lines) if i != at]):
            path = packed(folder / "v.csv", bom + head + b"".join(some))
            rows = read(path, how).to_pydict()
            found.append({row for row in zip(*rows.values(), strict=True) if row[0] != str(at)})
    assert found[0] == found[1]
    assert len(found[0]) >= len(lines) - 1


@pytest.mark.parametrize("limit", [131_072, 100, 1 << 20])
def test_a_field_is_as_long_as_it_is_in_quotes_or_not(tmp_path: Path, limit: int) -> None:
    """Python's csv takes 131,072 characters; and how many is one number for the process, which anybody may set."""
    long = 'a""b,' * 60_000
    path = packed(tmp_path / "v.csv", f'id,x\n1,"{long}"\n2,{"c" * 300_000}\n3,"d"\n4,"{long}\n'.encode())
    before = csv.field_size_limit(limit)
    try:
        rows = read(path, Csv()).to_pydict()
        assert csv.field_size_limit() == limit
    finally:
        csv.field_size_limit(before)
    assert dict(zip(rows["id"], rows["x"], strict=True)) == {"1": 'a"b,' * 60_000, "2": "c" * 300_000, "3": "d"}


def test_a_field_is_as_long_as_it_is_while_another_thread_reads_a_longer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another library holds the limit low, and what is read of it may be what another thread of ours has made of it."""
    real = csv.field_size_limit
    before = real(100)
    monkeypatch.setattr(csv, "field_size_limit", lambda *a: real(*a) if a or csv_files._LIMIT.locked() else 1 << 20)
    try:
        assert csv_files._fields(f'1,"{"a" * 200}"'.encode(), ",") == ["1", "a" * 200]
        assert real() == 100
    finally:
        real(before)


@pytest.mark.parametrize("names", [None, ["id", "x"]])
def test_a_file_in_utf_16_says_its_byte_order(tmp_path: Path, names: list[str] | None) -> None:
    """Without a mark, a first row that begins with U+FFFE would turn the bytes of all others."""
    head = "" if names else "id,x\n"
    for order, mark in (("le", b"\xff\xfe"), ("be", b"\xfe\xff")):
        bare = f"{head}1,a\n2,b\n".encode(f"utf-16-{order}")
        path = packed(tmp_path / "v.csv", mark + bare)
        assert sorted(read(path, Csv(encoding="utf-16", names=names)).to_pydict()["x"]) == ["a", "b"]
        with pytest.raises(hb.PolicyError, match="byte order mark"):
            csv_header("v", str(packed(tmp_path / "v.csv", bare)), Csv(encoding="utf-16", names=names))
    if names:
        assert read(packed(tmp_path / "v.csv", b""), Csv(encoding="utf-16", names=names)).num_rows == 0


def test_every_day_of_two_centuries_is_read_in_every_form() -> None:
    days = [dt.date(1969, 1, 1) + dt.timedelta(days=7 * i) for i in range(5_100)]
    truth = [day.isoformat() for day in days]
    for form in ("%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%d %b %Y", "%B %d, %Y", "%d-%m-%y"):
        texts = [day.strftime(form) for day in days]
        assert iso_dates(pa.chunked_array([texts]), form, dates=True).to_pylist() == [
            day if form != "%d-%m-%y" or dt.date.fromisoformat(day).year < 2069 else f"19{day[2:]}" for day in truth
        ]


def test_every_minute_of_a_day_is_read_in_both_clocks() -> None:
    times = [dt.datetime(2025, 2, 3) + dt.timedelta(minutes=i) for i in range(1440)]
    truth = [str(time) for time in times]
    for form in ("%d.%m.%Y %H:%M", "%d.%m.%Y %I:%M %p"):
        texts = [time.strftime(form) for time in times]
        assert iso_dates(pa.chunked_array([texts]), form, dates=False).to_pylist() == truth


def test_what_is_not_in_the_form_is_null() -> None:
    wrong = ["", "2025-01-02", "1.2", "1.2.25", "1.2.20255", "a1.2.2025", "1.2.2025b", "1.2.2025\n3", "١.٢.٢٠٢٥", None]
    assert iso_dates(pa.chunked_array([wrong]), "%d.%m.%Y", dates=True).to_pylist() == [None] * len(wrong)
    hours = ["1.2.2025 0:00 AM", "1.2.2025 13:00 PM", "1.2.2025 7:00 XM"]
    assert iso_dates(pa.chunked_array([hours]), "%d.%m.%Y %I:%M %p", dates=False).to_pylist() == [None] * 3


def test_numbers_are_those_that_are_written_and_no_others() -> None:
    right = {
        "1.234,5": "1234.5",
        "-1.234.567": "-1234567",
        "0,25": "0.25",
        ",5": ".5",
        "12": "12",
        " 7 ": "7",
        "1,5e3": "1.5e3",
    }
    assert plain_numbers(pa.chunked_array([list(right)]), ",", ".").to_pylist() == list(right.values())
    wrong = ["1.5", "1.23", "12.34.567", "1,2,3", "1 234", "x", "1.234,5 EUR", "١", None, "0x10", "nan"]
    assert plain_numbers(pa.chunked_array([wrong]), ",", ".").to_pylist() == [None] * len(wrong)
    assert plain_numbers(pa.chunked_array([["1'234.5", "1,234"]]), ".", "'").to_pylist() == ["1234.5", None]


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ({"delimiter": ";;"}, "delimiter"), ({"delimiter": "\0"}, "delimiter"),
        ({"delimiter": "a"}, "delimiter"), ({"delimiter": '"'}, "delimiter"),
        ({"encoding": "utf-7"}, "encoding"), ({"encoding": "shift_jis"}, "encoding"), ({"decimal": ";"}, "decimal"),
        ({"thousands": ".", "decimal": "."}, "both"), ({"names": []}, "names"), ({"names": ["a", "A"]}, "same"),
        ({"names": "ab"}, "names"), ({"formats": {"d": "%m.%Y"}}, "does not say a day"),
        ({"formats": {"d": "%Y-%m-%d %M"}}, "hour"), ({"formats": {"d": "%Y-%m-%d %I"}}, "hour"),
        ({"formats": {"d": "%Q"}}, "%Q"), ({"formats": {"d": "%Y%Y%m%d"}}, "twice"), ({"formats": 3}, "formats"),
        ({"quoted_line_breaks": 1}, "quoted_line_breaks"), ({"colour": 1}, "unknown key"),
    ],
)  # fmt: skip
def test_what_no_file_is_written_in_is_refused(said: dict[str, Any], word: str) -> None:
    with pytest.raises(hb.PolicyError, match=word):
        hb.table("v.csv", unit="id", csv=said)


def test_the_kind_of_a_file_is_in_its_name(tmp_path: Path) -> None:
    named = {"a.csv": "csv", "a.TSV": "csv", "a.csv.gz": "csv", "a.parquet.gz": None, "a.gz": None, "a.db": "duckdb"}
    assert {name: kind_of_file(name) for name in named} == named
    (tmp_path / "a.db").write_bytes(b"SQLite format 3\0" + bytes(84))
    assert kind_of_file(tmp_path / "a.db") == "sqlite"


def declared(path: Path, how: Csv, **more: Any) -> Any:
    types = {"id": "integer", "café": "text", "am": "timestamp", "preis": "number"} | more
    columns = {"preis": hb.between(0, 2000), "café": hb.one_of("Österreich", "São", "x")}
    return hb.table(path, unit="id", csv=how, types=types, max_groups=1, max_rows=1, columns=columns)


def session(table: Any) -> hb.Session:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hb.Session({"visits": table}, budget=hb.Budget(10**6), ledger=None)


def test_a_european_file_is_asked_like_any_other(tmp_path: Path) -> None:
    path = packed(tmp_path / "visits.csv", TEXT.encode("latin-1"))
    with session(declared(path, Csv(**{**vars(HOW), "encoding": "latin-1"}))) as asked:
        of = "SELECT SUM(preis) AS a, COUNT(am) AS n FROM visits WHERE café IN ('Österreich', 'São')"
        assert asked.sql(of, epsilon=900_000).rows() == [(pytest.approx(1234.5, abs=0.1), 2)]
        in_april = "SELECT COUNT(*) AS n FROM visits WHERE am >= TIMESTAMP '2025-04-01' AND am < TIMESTAMP '2025-05-01'"
        assert asked.sql(in_april, epsilon=1000).rows() == [(1,)]
        no_day = "SELECT COUNT(*) AS n FROM visits WHERE am IS NULL"
        assert asked.sql(no_day, epsilon=1000).rows() == [(1,)]


def test_a_file_that_is_read_otherwise_is_other_data(tmp_path: Path) -> None:
    """An answer is not given again for a reading that would have another one."""
    path, question = packed(tmp_path / "visits.csv", TEXT.encode()), "SELECT SUM(preis) AS a FROM visits"
    ledger = tmp_path / "budget.db"
    charged = []
    for how in (HOW, HOW, Csv(**{**vars(HOW), "thousands": None})):
        with hb.Session({"visits": declared(path, how)}, budget=hb.Budget(10**6), ledger=ledger) as asked:
            charged.append(asked.sql(question, epsilon=1000).charged)
    assert charged == [True, False, True]


def test_a_format_of_no_date_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    path = packed(tmp_path / "visits.csv", TEXT.encode())
    with pytest.raises(hb.PolicyError, match="not declared as a date"):
        session(declared(path, HOW, am="text"))
    with pytest.raises(hb.PolicyError, match="has a format for 'day'"):
        session(declared(path, Csv(delimiter=";", formats={"day": "%d.%m.%Y"})))
    with zipfile.ZipFile(tmp_path / "two.csv.zip", "w") as archive:
        archive.writestr("a.csv", "id\n")
        archive.writestr("b.csv", "id\n")
    with pytest.raises(hb.PolicyError, match="holds 2 files"):
        session(declared(tmp_path / "two.csv.zip", Csv()))


def _damaged() -> dict[str, bytes]:
    made = {}
    body = TEXT.encode() * 400
    made["torn.csv.gz"], made["odd.csv.gz"] = b"no gzip at all", gzip.compress(body)[:15] + b"\xff" * 9
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        with zipfile.ZipFile(packed := io.BytesIO(), "w", method) as archive:
            archive.writestr("v.csv", body)
        whole = packed.getvalue()
        central = whole.rindex(b"PK\x01\x02")
        for name, at, change in (
            ("byte", 60, lambda b: b ^ 255),
            ("password", 6, lambda b: b | 1),
            ("way", 8, lambda b: 99),
        ):
            changed = bytearray(whole)
            for place in (at,) if name == "byte" else (at, central + at + 2):
                changed[place] = change(changed[place])
            made[f"{name}{method}.csv.zip"] = bytes(changed)
    return made


@pytest.mark.parametrize(("name", "content"), _damaged().items(), ids=list(_damaged()))
def test_a_file_that_is_not_packed_as_its_name_says_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(hb.PolicyError, match="cannot be unpacked"):
        session(declared(tmp_path / name, Csv()))
    with pytest.raises(hb.PolicyError, match="cannot be unpacked"):  # nothing else is read of it without a header
        session(declared(tmp_path / name, Csv(names=["id", "café", "am", "preis"])))


def test_a_packed_file_without_a_header_may_be_empty(tmp_path: Path) -> None:
    (tmp_path / "v.csv.gz").write_bytes(gzip.compress(b""))
    assert csv_header("v", str(tmp_path / "v.csv.gz"), Csv(names=["id", "preis"])) == ["id", "preis"]


def test_a_policy_says_it_in_the_same_words(tmp_path: Path) -> None:
    packed(tmp_path / "visits.csv", TEXT.encode("cp1252"))
    text = """
    [ledger]
    file = "budget.db"
    [budget]
    epsilon = 1000
    [tables.visits]
    source = "visits.csv"
    unit = "id"
    max_groups = 1
    max_rows = 1
    [tables.visits.csv]
    delimiter = ";"
    encoding = "cp1252"
    decimal = ","
    thousands = "."
    formats = { am = "%d.%m.%y %H:%M" }
    [tables.visits.types]
    id = "integer"
    am = "timestamp"
    preis = "number"
    """
    (tmp_path / "hubbub.toml").write_text(text)
    from hubbub.ledger.policy import load_policy

    policy = load_policy(tmp_path / "hubbub.toml")
    assert policy.tables["visits"].csv == Csv(**{**vars(HOW), "encoding": "cp1252"})
    (tmp_path / "hubbub.toml").write_text(text.replace('";"', '";;"'))
    with pytest.raises(hb.PolicyError, match=r"tables.visits.csv: delimiter"):
        load_policy(tmp_path / "hubbub.toml")


@pytest.mark.parametrize("end", ["parquet", "csv", "sqlite", "duckdb", "xlsx"])
def test_a_file_whose_name_is_not_text_is_refused_in_words(tmp_path: Path, end: str) -> None:
    """Before, engines raised errors of their own of it."""
    named = os.fsdecode(os.path.join(os.fsencode(tmp_path), b"v\xff." + end.encode()))
    Path(named).write_bytes(b"id,x\n1,2\n")
    for source in (named, Path(named)):
        with pytest.raises(hb.PolicyError, match="a name that is not UTF-8"):
            hb.table(source, unit="id", max_groups=1, max_rows=1)
        with pytest.raises(hb.PolicyError, match="a name that is not UTF-8"):
            hb.public(source)
