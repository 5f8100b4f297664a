"""SQLite files and spreadsheets: a value that does not fit is NULL, and changes no other."""

from __future__ import annotations

import base64
import datetime as dt
import sqlite3
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.engines.duckdb import fitted
from hubbub.engines.duckdb.sheets import _FITS, only_sheet
from hubbub.engines.duckdb.sources import Frame, Sheet, SqliteFile, hold
from hubbub.tables.kinds import Kind


def session(table: Any, **more: Any) -> hb.Session:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hb.Session({"v": table}, budget=hb.Budget(10**6), **{"ledger": None} | more)


def declared(path: Path, **more: Any) -> Any:
    columns = {"cost": hb.between(0, 100), "ward": hb.one_of("A", "B")}
    return hb.table(path, unit="id", max_groups=1, max_rows=1, **{"columns": columns, "table": "visits"} | more)


def database(path: Path, *more: tuple[Any, ...]) -> Path:
    with sqlite3.connect(path) as con:
        con.execute(
            "CREATE TABLE visits (id INTEGER PRIMARY KEY, ward VARCHAR(9), cost DECIMAL(9,2), day DATE, at DATETIME, "
            "ok BOOLEAN, any)"
        )
        con.executemany(
            "INSERT INTO visits VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(i, "AB"[i % 2], 10, "2025-01-02", "2025-01-02 03:04:05", i % 2, i) for i in range(40)],
        )
        con.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?, ?, ?)", more)
        con.execute("CREATE VIEW shown AS SELECT * FROM visits")
        con.execute("CREATE TABLE made (id INTEGER, twice INTEGER GENERATED ALWAYS AS (id * 2))")
        con.execute("CREATE VIRTUAL TABLE words USING fts5(id, text)")
    con.close()
    return path


def test_a_sqlite_file_is_asked_like_any_other(tmp_path: Path) -> None:
    for end in (".sqlite", ".db"):
        with session(declared(database(tmp_path / f"v{end}"))) as asked:
            rows = asked.sql("SELECT ward, COUNT(*) AS n, SUM(cost) AS c FROM v GROUP BY ward", epsilon=10_000).rows()
            assert rows == [("A", 20, pytest.approx(200, abs=1)), ("B", 20, pytest.approx(200, abs=1))]
            when = "at = TIMESTAMP '2025-01-02 03:04:05' AND day = DATE '2025-01-02' AND ok"
            assert asked.sql(f"SELECT COUNT(*) AS n FROM v WHERE {when}", epsilon=1000).rows() == [(20,)]


HOSTILE = [
    b"\xff",
    "2025-02-30",
    "x" * 100,
    2**63 - 1,
    -(2**63),
    1e308,
    float("inf"),
    "",
    "0001-01-01",
    "9999-12-31T24:00",
]


@pytest.mark.parametrize("bad", HOSTILE, ids=repr)
def test_a_value_of_another_type_is_null_and_changes_no_other(tmp_path: Path, bad: Any) -> None:
    """Into every column of one row, whatever its declared type: SQLite takes it."""
    plain = hold("v", SqliteFile(str(database(tmp_path / "a.db")), "visits"), {"any": Kind.NUMBER}).table()
    worse = [(1000, *[bad] * 6), (1001, bytes(3), memoryview(b"\xfe"), None, bad, None, None)]
    found = hold("v", SqliteFile(str(database(tmp_path / "b.db", *worse)), "visits"), {"any": Kind.NUMBER}).table()
    assert found.slice(0, 40).to_pylist() == plain.to_pylist()
    assert found.num_rows == 42
    with session(declared(tmp_path / "b.db")) as asked:
        assert (
            asked.sql("SELECT COUNT(*) AS n FROM v WHERE cost >= 0 AND at < DATE '2030-01-01'", epsilon=1000).rows()[0][
                0
            ]
            >= 40
        )


WIDE = [("UTF-16le", "utf-16-le"), ("UTF-16be", "utf-16-be")]


@pytest.mark.parametrize(("encoding", "codec"), WIDE)
def test_texts_of_16_bits_that_are_no_characters_are_null_and_never_one(
    tmp_path: Path, encoding: str, codec: str
) -> None:
    """SQLite takes two bytes behind half a character for its other half, whatever they are: three people were one."""
    path, placeholder = tmp_path / "v.sqlite", "\u1111\u2222"
    stored = ["\ud800A", "\ud800\u0441", "\ud800\udc41", "A\ud800", "\udc00A", "\ufffd\ufffd", "\ufeffA", "A\0"]
    with sqlite3.connect(path) as con:
        con.execute(f"PRAGMA encoding = '{encoding}'")
        con.execute("CREATE TABLE visits (id TEXT, ward TEXT, n INTEGER)")
        con.executemany("INSERT INTO visits VALUES (?, 'A', 7)", [(f"{i}{placeholder}",) for i in range(len(stored))])
    con.close()
    data = path.read_bytes()
    for i, text in enumerate(stored):
        old, new = (f"{i}{end}".encode(codec, "surrogatepass") for end in (placeholder, text))
        assert data.count(old) == 1
        data = data.replace(old, new)
    path.write_bytes(data)
    rows = hold("v", SqliteFile(str(path), "visits"), {}).table()
    read = [None, None, "\U00010041", None, None, "\ufffd\ufffd", "\ufeffA", "A\0"]
    texts = [None if text is None else f"{i}{text}" for i, text in enumerate(read)]
    assert rows.to_pydict() == {"id": texts, "ward": ["A"] * 8, "n": [7] * 8}
    with session(declared(path, columns={})) as asked:
        assert asked.sql("SELECT COUNT(DISTINCT id) AS n FROM v", epsilon=1000).rows() == [(4,)]


@pytest.mark.parametrize("bad", HOSTILE, ids=repr)
@pytest.mark.parametrize(("encoding", "codec"), WIDE)
def test_a_file_of_16_bits_is_read_as_one_of_8(tmp_path: Path, encoding: str, codec: str, bad: Any) -> None:
    read = []
    for of in ("UTF-8", encoding):
        path = tmp_path / f"{of}.sqlite"
        with sqlite3.connect(path) as con:
            con.execute(f"PRAGMA encoding = '{of}'")
        con.close()
        database(path, (1000, *[bad] * 6), (1001, bytes(3), b"\xfe", None, bad, "\u00e4\U0001f600", b""))
        read.append(hold("v", SqliteFile(str(path), "visits"), {"any": Kind.TEXT}).table())
    assert read[0].to_pylist() == read[1].to_pylist()


@pytest.mark.parametrize("kind", ["DECIMAL(20)", "NUMERIC", "REAL", "DATE", "DATETIME", "BOOLEAN"])
def test_a_unit_whose_values_would_become_one_is_refused(tmp_path: Path, kind: str) -> None:
    """As doubles 2^53 and 2^53 + 1 are one, and as days or moments several texts are: two people would be one unit."""
    path = tmp_path / "v.sqlite"
    with sqlite3.connect(path) as con:
        con.execute(f"CREATE TABLE visits (id {kind})")
        con.executemany("INSERT INTO visits VALUES (?)", [(2**53,), (2**53 + 1,)])
    con.close()
    with pytest.raises(
        hb.PolicyError, match=r"different values could become one unit.*\"integer\"\} or types=.*\"text\"\}"
    ):
        session(declared(path, columns={}))
    if kind == "REAL":
        return  # SQLite itself keeps doubles there
    for types in ({"id": "integer"}, {"id": "text"}):
        with session(declared(path, columns={}, types=types)) as asked:
            assert asked.sql("SELECT COUNT(DISTINCT id) AS n FROM v", epsilon=1000).rows() == [(2,)]
    with pytest.raises(hb.PolicyError, match="different values could become one unit"):
        session(declared(path, columns={}, types={"id": "number"}))


def test_a_day_of_a_sheet_is_no_unit(tmp_path: Path) -> None:
    path = sheet(tmp_path / "v.xlsx", [["id"], [Day("45000.25")], [Day("45000.5")]])
    for kind in ("date", "timestamp", "boolean", "number"):
        with pytest.raises(hb.PolicyError, match="different values could become one unit"):
            session(declared(path, table=None, columns={}, types={"id": kind}))
    with session(declared(path, table=None, columns={}, types={"id": "text"})) as asked:
        assert asked.sql("SELECT COUNT(DISTINCT id) AS n FROM v", epsilon=1000).rows() == [(2,)]


@pytest.mark.parametrize(
    ("inner", "word"),
    [("shown", "is a view"), ("made", "generated columns"), ("words", "virtual"), ("visit", "visits")],
)
def test_what_is_no_base_table_of_sqlite_is_refused(tmp_path: Path, inner: str, word: str) -> None:
    with pytest.raises(hb.PolicyError, match=word):
        session(declared(database(tmp_path / "v.sqlite"), table=inner, columns={}))


def test_a_trigger_of_the_name_of_its_table_hides_no_table(tmp_path: Path) -> None:
    path = database(tmp_path / "v.db")
    with sqlite3.connect(path) as con:
        con.execute("CREATE TRIGGER visits AFTER INSERT ON visits BEGIN SELECT 1; END")
    con.close()
    with session(declared(path)) as asked:
        assert asked.sql("SELECT COUNT(*) AS n FROM v", epsilon=10_000).rows() == [(40,)]


def test_a_base_table_may_be_called_virtual(tmp_path: Path) -> None:
    path = database(tmp_path / "v.db")
    with sqlite3.connect(path) as con:
        con.execute("CREATE TABLE virtual_visits AS SELECT * FROM visits")
    con.close()
    with session(declared(path, table="virtual_visits")) as asked:
        assert asked.sql("SELECT COUNT(*) AS n FROM v", epsilon=10_000).rows() == [(40,)]


def test_a_trusted_view_of_sqlite_is_read(tmp_path: Path) -> None:
    with session(declared(database(tmp_path / "v.sqlite"), table="shown", trusted_view=True)) as asked:
        assert asked.sql("SELECT COUNT(*) AS n FROM v", epsilon=1000).rows() == [(40,)]


def test_a_file_that_another_program_writes_is_refused(tmp_path: Path) -> None:
    path = database(tmp_path / "v.sqlite")
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("DELETE FROM visits WHERE id < 10")
    writer.commit()
    with pytest.raises(hb.PolicyError, match="-wal beside it"):
        session(declared(path))
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    writer.close()
    with session(declared(path)) as asked:
        assert asked.sql("SELECT COUNT(*) AS n FROM v", epsilon=1000).rows() == [(30,)]
    (tmp_path / "none.sqlite").write_bytes(b"no database")
    with pytest.raises(hb.PolicyError, match="cannot be opened as a SQLite file"):
        session(declared(tmp_path / "none.sqlite"))


class Span(str):
    """A number in a cell of the style [h]:mm:ss."""


class Day(str):
    """A number in a cell of a date's style."""


CELL = {
    Span: '<c s="1"><v>{}</v></c>',
    Day: '<c s="2"><v>{}</v></c>',
    str: '<c t="inlineStr"><is><t>{}</t></is></c>',
    bool: '<c t="b"><v>{:d}</v></c>',
    type(None): "<c/>",
}


def sheet(path: Path, *sheets: list[list[Any]]) -> Path:
    """A workbook by hand: what Excel writes, without what it adds."""
    names = [f"Sheet{i + 1}" for i in range(len(sheets))]
    with zipfile.ZipFile(path, "w") as book:
        parts = "".join(
            f'<Override PartName="/xl/worksheets/{n}.xml" ContentType="application/vnd.openxmlformats-officedocument.'
            'spreadsheetml.worksheet+xml"/>'
            for n in names
        )
        book.writestr(
            "[Content_Types].xml",
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName='
            '"/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'  # noqa: E501
            '<Override PartName="/xl/styles.xml" ContentType="application/vnd.openxmlformats-'
            f'officedocument.spreadsheetml.styles+xml"/>{parts}</Types>',
        )
        at = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
        of = "http://schemas.openxmlformats.org/package/2006/relationships"
        main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
        book.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{of}"><Relationship Id="r" Type="{at}/officeDocument" Target="xl/workbook.xml"/>'
            "</Relationships>",
        )
        listed = "".join(f'<sheet name="{n}" sheetId="{i + 1}" r:id="r{i}"/>' for i, n in enumerate(names))
        book.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{main}" xmlns:r="{at}"><sheets>{listed}</sheets></workbook>'
        )
        links = "".join(
            f'<Relationship Id="r{i}" Type="{at}/worksheet" Target="worksheets/{n}.xml"/>' for i, n in enumerate(names)
        )
        links += f'<Relationship Id="s" Type="{at}/styles" Target="styles.xml"/>'
        book.writestr("xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{of}">{links}</Relationships>')
        styles = "".join(f'<xf numFmtId="{n}"/>' for n in (0, 46, 14))
        book.writestr("xl/styles.xml", f'<styleSheet xmlns="{main}"><cellXfs count="3">{styles}</cellXfs></styleSheet>')
        for name, rows in zip(names, sheets, strict=True):
            cells = [[CELL.get(type(v), "<c><v>{}</v></c>").format(v) for v in row] for row in rows]
            body = "".join(f"<row>{''.join(row)}</row>" for row in cells)
            text = f'<worksheet xmlns="{main}"><sheetData>{body}</sheetData></worksheet>'
            book.writestr(f"xl/worksheets/{name}.xml", text)
    return path


HEAD = ["id", "zip", "cost", "ok", "day"]
ROWS = [[i, 2138, 10.5, True, "2025-01-02"] for i in range(20)]
TYPES = {"id": Kind.INTEGER, "cost": Kind.NUMBER, "ok": Kind.BOOLEAN, "day": Kind.DATE}


def test_a_sheet_is_asked_like_any_other(tmp_path: Path) -> None:
    path = sheet(tmp_path / "v.xlsx", [HEAD, *ROWS, [None] * 5])
    types = {"id": "integer", "cost": "number", "ok": "boolean"}
    with session(declared(path, table=None, types=types, columns={"cost": hb.between(0, 100)})) as asked:
        (row,) = asked.sql(
            "SELECT COUNT(*) AS n, SUM(cost) AS c FROM v WHERE zip = '2138' AND ok", epsilon=10_000
        ).rows()
        assert row == (20, pytest.approx(210, abs=1))


@pytest.mark.parametrize("bad", ["x", -1.5, True, 2**60, None, "2025-02-30"])
def test_a_cell_of_another_type_is_null_and_changes_no_other(tmp_path: Path, bad: Any) -> None:
    one = sheet(tmp_path / "a.xlsx", [HEAD, *ROWS])
    two = sheet(tmp_path / "b.xlsx", [HEAD, *ROWS, [99, bad, bad, bad, bad]])
    found = []
    for path in (one, two):
        held = hold("v", Sheet(str(path), None), TYPES)
        found.append(held.table())
    assert found[1].slice(0, 20).to_pylist() == found[0].to_pylist()
    assert found[1].num_rows == 21


BEYOND = ["1e9", "-1e9", "1e300", "-1e15", "2958466", "-1", "NaN", "1e18"]


@pytest.mark.parametrize(
    "row",
    [
        [99, 1, 1, True, None, "a note"],
        [99, 1, 1, True, None, None, None, 3],
        [None, None, None, None, None, "a note"],
        *([99, 1, 1, True, of(v)] for v in BEYOND for of in (Span, Day)),
    ],
    ids=repr,
)
def test_a_row_that_is_longer_or_cannot_be_held_changes_no_other(tmp_path: Path, row: list[Any]) -> None:
    """The reader widens every row to the longest one, and gives up on the whole sheet for one cell beyond all dates."""
    plain = hold("v", Sheet(str(sheet(tmp_path / "a.xlsx", [HEAD, *ROWS])), None), TYPES).table()
    for at in (0, 7, 20):
        rows = [HEAD, *ROWS[:at], row, *ROWS[at:]]
        found = hold("v", Sheet(str(sheet(tmp_path / "b.xlsx", rows)), None), TYPES).table()
        others = pa.concat_tables([found.slice(0, at), found.slice(at + found.num_rows - 20)])
        assert others.to_pylist() == plain.to_pylist()
        assert found.num_rows in (20, 21)


def test_a_text_that_no_column_can_hold_is_null_and_refuses_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow's columns hold no text of 2 GiB: one in a cell ended every question in an error, after its charge."""
    import pandas as pd

    monkeypatch.setattr(fitted, "_LONGEST", 20)
    texts = ["a" * 20, "a" * 21, "\N{EURO SIGN}" * 7, "\N{EURO SIGN}" * 6, "b"]
    rows: list[list[Any]] = [["id", "zip"], *map(list, enumerate(texts))]
    sources: list[Any] = [
        Sheet(str(sheet(tmp_path / "v.xlsx", rows)), None),
        Frame(pd.DataFrame({"id": range(5), "zip": pd.Series(texts, dtype=object)})),
    ]
    for source in sources:
        read = hold("v", source, {"id": Kind.INTEGER, "zip": Kind.TEXT}).table()
        assert read.column("zip").to_pylist() == [texts[0], None, None, texts[3], "b"], source


# A workbook of Excel 97 as xlwt writes it, with the rows (id, w), (7, =1/0) and (8, B): zlib, base 85.
OLD = (
    "c-rk)J!n)x5dQY%{z)$H#fy-L$8liPm_}@DlBWSpWr$iRBIqS|MM${FA&3?ljaLeSm0}Y}V-vOT4=uE_5F%O#f^es$m7rje+&VM2k6dDk9GI"
    "Z8-(zRz&Cc%5?aa=--M0%~W%glr6{|3S7Swbckp`Kf5)WQnP`lR526c>zw)m$IkC7uIVLWep6J;N=zpHTYAoPkT@R`bKoWt-`v5?tB42lgo#"
    "WwU4Rk%x%B)Y_^4xwX0w+Ov2nlFSN5XlXp{iIt_r?B7;_wF}QeA3BETM|6(6Y29&Bzw_`*Br%HZmPO&7zaz^xyiq?AsuSP9LR4&g<_$Uo2(#"
    "34xGaeodLcFJN0G8$~RZ8K=Pj}<<T|dx110#4SiMuyiCdUQA^#y#}~=x%yXg09M6;IFHjjwa1xeH>#o?eZ4%6_MDu7D-jk4aDJ?JF`}Xe0=!"
    "kztB-4_p>*;(4TL6u#+=DtNrA3So-Cm)4gkF<Tw+Y`ZG(~|(b<aqrVGhrT&UI<+p?UTR-upWn_+7-8zaD*>E`RZN6F)yxy_A~&;LjpUE0CxD"
    "{LG+F^{G3z8PEKnR%Yve6591!8i+Zrv0a=0tadCRA*?5~{>H1LjJ{f>f7wZh%tKn%cDvZ)nN`t7F^aTeg$NJftTBWmLuAdA%MKZEI`Eho%2U"
    "foz{0}9!otGB!op(Xq0EOqf86p>AZ(5kQFE`eM5Si0N&Z_L!xTN|>0o*YMXF1<*i`&%MOX!6sde@V?h6?wX!a5&Fe-LTG#$Tm98`_JXWbp$K"
    "evUNoxj$Mof|y=FE$0gr~"
)
FORMULA = bytes([0x1E, 1, 0, 0x1E, 0, 0, 6])


def test_an_xls_on_which_its_reader_gives_up_is_refused_in_our_words(tmp_path: Path) -> None:
    """What a library in Rust raises there is no Exception: it went through every session and question as it was."""
    pytest.importorskip("python_calamine")
    path = tmp_path / "v.xls"
    book = zlib.decompress(base64.b85decode(OLD))
    at = book.index(FORMULA)
    path.write_bytes(book)
    types = {"id": Kind.INTEGER, "w": Kind.TEXT}
    held = hold("v", Sheet(str(path), None), types)
    assert held.table().to_pylist() == [{"id": 7, "w": None}, {"id": 8, "w": "B"}]
    with session(hb.table(path, unit="id", types={"id": "integer"}, max_groups=1, max_rows=1)) as asked:
        refused = [book[:at] + bad + book[at + 7 :] for bad in (b"\x20" * 7, b"\x19\x04\xff\xff\x00\x00\x00")]
        error = book[: at - 26] + b"\x05\x02" + book[at - 24 : at - 16] + b"\x2c\x01" + book[at - 14 :]
        for bad in (*refused, error, book[:3000]):
            path.write_bytes(bad)
            with pytest.raises(hb.PolicyError, match=r"v.xls': it cannot be read as a spreadsheet"):
                hold("v", Sheet(str(path), None), types)
            with pytest.raises(Exception, match=r"."):  # a PanicException is none
                held.table()
            with pytest.raises(hb.PolicyError, match="cannot be read as a spreadsheet"):
                asked.sql("SELECT COUNT(*) AS n FROM v", epsilon=1)
            assert only_sheet(str(path)) is None


def test_a_sheet_may_begin_anywhere_but_above(tmp_path: Path) -> None:
    """A column that is empty but for one person's cell is a column all the same: without a name."""
    for more in ([], [["x", 2, 3]]):
        path = sheet(tmp_path / "v.xlsx", [[None, "id", "cost"], [None, 1, 2], *more])
        with pytest.raises(hb.PolicyError, match="first row of the sheet must name every column"):
            hold("v", Sheet(str(path), None), TYPES)


def test_which_sheet_and_a_first_row_are_said(tmp_path: Path) -> None:
    two = sheet(tmp_path / "v.xlsx", [["a"], [1]], [HEAD, *ROWS])
    with pytest.raises(hb.PolicyError, match="has the sheets Sheet1, Sheet2; say which with table="):
        session(declared(two, table=None, types={"id": "integer"}))
    with pytest.raises(hb.PolicyError, match="no sheet 'Sheet3'"):
        session(declared(two, table="Sheet3", types={"id": "integer"}))
    with session(declared(two, table="Sheet2", types={"id": "integer"}, columns={})) as asked:
        assert asked.sql("SELECT COUNT(*) AS n FROM v", epsilon=1000).rows() == [(20,)]
    with pytest.raises(hb.PolicyError, match="has no types"):
        session(declared(two, table="Sheet2", columns={}))
    (tmp_path / "none.xlsx").write_bytes(b"no workbook")
    with pytest.raises(hb.PolicyError, match="cannot be read as a spreadsheet"):
        session(declared(tmp_path / "none.xlsx", table=None, types={"id": "integer"}))
    for head in ([["a", 1]], [["a", "A"]], []):
        with pytest.raises(hb.PolicyError, match=r"first row|same name"):
            session(declared(sheet(tmp_path / "w.xlsx", head), table=None, types={"a": "text"}))


def test_a_date_of_a_sheet_is_a_date() -> None:
    """The reader gives dates of cells with a date's style; a text that looks like one is a text."""
    assert _FITS[Kind.DATE](dt.datetime(2025, 1, 2, 3)) == dt.date(2025, 1, 2)
    assert _FITS[Kind.DATE]("2025-01-02") is None
    assert _FITS[Kind.TIMESTAMP](dt.date(2025, 1, 2)) == dt.datetime(2025, 1, 2)
    assert _FITS[Kind.TEXT](dt.date(2025, 1, 2)) == "2025-01-02"
