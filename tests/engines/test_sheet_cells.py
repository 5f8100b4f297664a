"""The cells of .xlsx and .ods, as they are read here: against calamine, and with one cell far away or of no kind."""

from __future__ import annotations

import datetime as dt
import io
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk
from hubbub.engines.duckdb import xml_parts
from hubbub.engines.duckdb.ods_file import OdsFile
from hubbub.engines.duckdb.sheets import read_sheet, sheet_columns, sheet_values
from hubbub.engines.duckdb.sources import Sheet, hold
from hubbub.engines.duckdb.xlsx_file import XlsxFile
from hubbub.engines.duckdb.xml_parts import ODD
from hubbub.tables.kinds import Kind
from people import HUGE

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
REFERS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
SHARED = (
    "<si><t>plain</t></si><si><r><t>a</t></r><r><t xml:space='preserve'> b</t></r><rPh><t>spoken</t></rPh></si>"
    "<si><t> pad </t></si><si><t>x_x000D_y_x0041__xD800_</t></si><si/>"
)
FORMATS = '<numFmt numFmtId="164" formatCode="[h]:mm"/><numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd"/>'
STYLES = (0, 46, 14, 22, 164, 165)


def archive(parts: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in parts.items():
            book.writestr(name, text)
    return made.getvalue()


def xlsx(rows: str, *, more: str = "", before: str = "") -> bytes:
    kinds = {"sheet": "worksheet", "styles": "styles", "sharedStrings": "sharedStrings"}
    links = "".join(f'<Relationship Id="{i}" Type="{REFERS}/{k}" Target="{i}.xml"/>' for i, k in kinds.items())
    xfs = "".join(f'<xf numFmtId="{n}"/>' for n in STYLES)
    return archive(
        {
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
            "_rels/.rels": f'<Relationships xmlns="{PACKAGE}"><Relationship Id="r" Type="{REFERS}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{REFERS}">{more}<sheets><sheet name="S" sheetId="1" '
            'r:id="sheet"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}">{links}</Relationships>',
            "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><numFmts>{FORMATS}</numFmts><cellStyleXfs><xf numFmtId="14"/>'
            f"</cellStyleXfs><cellXfs>{xfs}</cellXfs></styleSheet>",
            "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}">{SHARED}</sst>',
            "xl/sheet.xml": f'{before}<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>',
        }
    )


URN = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for short, name in {"office": "office", "table": "table", "text": "text", "draw": "drawing"}.items()
)


def ods(rows: str) -> bytes:
    return archive(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": "<manifest/>",
            "content.xml": f"<office:document-content {URN}><office:body><office:spreadsheet><table:table "
            f'table:name="S">{rows}</table:table></office:spreadsheet></office:body></office:document-content>',
        }
    )


def read(data: bytes) -> list[list[Any]]:
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        book: Any = XlsxFile(parts) if "xl/workbook.xml" in parts.namelist() else OdsFile(parts)
        return list(book.rows("S"))


def calamine(data: bytes) -> list[list[Any]]:
    """What calamine reads; of what no column can hold, `ODD`, and of nothing, None."""
    reader = pytest.importorskip("python_calamine").CalamineWorkbook
    rows = reader.from_filelike(io.BytesIO(data)).get_sheet_by_name("S").to_python(skip_empty_area=False)
    odd = (dt.time, dt.timedelta)
    return [[None if c == "" else ODD if isinstance(c, odd) else c for c in row] for row in rows]


def inline(text: str) -> str:
    return f'<c t="inlineStr"><is><t>{text}</t></is></c>'


ALIKE = [
    "<c><v>1.5</v></c>", "<c><v>1e400</v></c>", "<c><v>abc</v></c>", "<c><v>1_0</v></c>", '<c t="n"><v>-7</v></c>',
    '<c t="b"><v>1</v></c>', '<c t="b"><v>0</v></c>', '<c t="b"/>', "<c><f>A1</f></c>", "<c><f>A1</f><v>5</v></c>",
    '<c t="str"><v> a &amp; b_x000D_ </v></c>', '<c t="str"><v></v></c>', '<c t="inlineStr"><v>7</v></c>',
    inline(" pad "), inline("a_x0041_\nb"), inline(""),
    '<c t="inlineStr"><is><r><t>a</t></r><r><t xml:space="preserve"> b </t></r><rPh><t>zz</t></rPh></is></c>',
    *(f'<c t="s"><v>{i}</v></c>' for i in range(5)),
    *(f'<c s="2"><v>{v}</v></c>' for v in ("0.5", "1", "59", "61", "45000", "45000.25", "45000.1234567")),
    '<c s="2"><v>2958465.5</v></c>', '<c s="1"><v>1.5</v></c>', '<c s="3"><v>45000.99999999999</v></c>',
    '<c s="4"><v>1.5</v></c>', '<c s="5"><v>1.5</v></c>', '<c s="77"><v>45000</v></c>', '<c s="2"><v>-5</v></c>',
    *(f'<c t="d"><v>{v}</v></c>' for v in ("2025-01-02", "2025-01-02T03:04:05.25", "03:04:05", "2025-02-30", "junk")),
]  # fmt: skip


def test_cells_are_read_as_calamine_reads_them() -> None:
    for more in ("", '<workbookPr date1904="1"/>'):
        for cell in ALIKE:
            if more and "2958465" in cell:
                continue  # beyond the year 9999 there: a number to calamine, of no kind here
            data = xlsx(f"<row>{cell}<c><v>77</v></c></row>", more=more)
            assert read(data) == calamine(data), (cell, more)


@pytest.mark.parametrize("value", ["#SPILL!", "#CALC!", "#DIV/0!", "#whatever"])
def test_an_error_value_is_null_and_changes_no_other(tmp_path: Path, value: str) -> None:
    """One that calamine did not know refused the whole sheet."""
    head = f"<row>{inline('id')}{inline('cost')}</row>"
    rows = "".join(f"<row><c><v>{i}</v></c><c><v>{i}</v></c></row>" for i in range(5))
    (tmp_path / "v.xlsx").write_bytes(xlsx(f'{head}{rows}<row><c><v>9</v></c><c t="e"><v>{value}</v></c></row>'))
    held = hold("v", Sheet(str(tmp_path / "v.xlsx"), None), {"id": Kind.INTEGER, "cost": Kind.NUMBER})
    assert held.table().to_pydict() == {"id": [0, 1, 2, 3, 4, 9], "cost": [0, 1, 2, 3, 4, None]}
    assert sheet_values(str(tmp_path / "v.xlsx"), None, ["id", "cost"]) == {"id": 6, "cost": 6}


@pytest.mark.parametrize(
    "cell",
    [
        *('<c t="s"><v>99</v></c>', '<c t="n"><v>abc</v></c>', '<c t="q"><v>1</v></c>', '<c s="2"><v>1e300</v></c>'),
        *('<c t="b"><v>2</v></c>', '<c t="b"><v>yes</v></c>'),
    ],
)
def test_a_cell_that_is_not_what_it_says_is_of_no_kind(cell: str) -> None:
    assert read(xlsx(f"<row>{cell}<c><v>7</v></c></row>")) == [[ODD, 7.0]]


def number_in_ods(value: object) -> str:
    return f'<table:table-cell office:value-type="float" office:value="{value}"/>'


def row_of_ods(cell: str) -> str:
    return f"<table:table-row>{cell}</table:table-row>"


NAME = '<table:table-cell office:value-type="string"><text:p>id</text:p></table:table-cell>'


@pytest.mark.parametrize("kind", ["text", "integer"])
@pytest.mark.parametrize("form", ["xlsx", "ods"])
def test_numbers_that_a_double_does_not_tell_apart_name_as_many_people(form: str, kind: str, tmp_path: Path) -> None:
    """openpyxl and pandas write whole numbers in full. 1e17 is another way to write one that is there."""
    numbers = [2**53 - 1, 2**53, 2**53 + 1, 10**17, 10**17 + 1, -(2**53) - 1, "1e17"]
    path = tmp_path / f"v.{form}"
    if form == "xlsx":
        rows = "".join(f"<row><c><v>{n}</v></c></row>" for n in numbers)
        path.write_bytes(xlsx(f"<row>{inline('id')}</row>{rows}"))
    else:
        path.write_bytes(ods("".join(map(row_of_ods, (NAME, *map(number_in_ods, numbers))))))
    desk = Desk({"v": hb.table(str(path), unit="id", max_groups=1, max_rows=1, types={"id": kind})})
    assert desk.ask("SELECT COUNT(*) AS n FROM v", HUGE).rows() == [(6,)]
    desk.engine.close()


MOMENTS = {
    "xlsx": [
        *(
            f'<c s="2"><v>{v}</v></c>'
            for v in ("59", "61", "45000", "45000.1", "45000.1000000001", "45000.10000000002")
        ),
        *(f'<c t="d"><v>2025-01-02T03:04:05{part}</v></c>' for part in ("", ".123456", ".1234567", ".1234568")),
    ],
    "ods": [
        f'<table:table-cell office:value-type="date" office:date-value="2025-01-02T03:04:05{part}"/>'
        for part in ("", ".123456", ".1234567", ".1234568")
    ],
}
NOBODY = ['<c s="2"><v>60</v></c>', '<c s="2"><v>60.5</v></c>', "<c><v>1e400</v></c>", "<c><v>-1e401</v></c>"]
"""The 29th of February 1900, and numbers beyond all."""


@pytest.mark.parametrize("form", MOMENTS)
def test_moments_that_are_told_apart_where_they_stand_name_as_many_people(form: str, tmp_path: Path) -> None:
    """As texts: by milliseconds, or microseconds, two of them were one person. Days 59 and 60 of 1900 were, too."""
    path = tmp_path / f"v.{form}"
    if form == "xlsx":
        rows = "".join(f"<row>{one}</row>" for one in [*MOMENTS[form], *NOBODY])
        path.write_bytes(xlsx(f"<row>{inline('id')}</row>{rows}"))
    else:
        path.write_bytes(ods("".join(map(row_of_ods, (NAME, *MOMENTS[form])))))
    desk = Desk({"v": hb.table(str(path), unit="id", max_groups=1, max_rows=1, types={"id": "text"})})
    assert desk.ask("SELECT COUNT(*) AS n FROM v", HUGE).rows() == [(len(MOMENTS[form]),)]
    desk.engine.close()


def test_truth_values_of_ods_are_those_that_it_knows() -> None:
    cells = [
        f'<table:table-cell office:value-type="boolean" office:boolean-value="{v}"/>' for v in ("true", "false", "2")
    ]
    assert read(ods("".join(map(row_of_ods, cells)))) == [[True], [False], [ODD]]


def test_the_first_day_of_1904_is_a_day_where_days_begin_there() -> None:
    cell = '<row><c s="2"><v>0</v></c></row>'
    assert read(xlsx(cell, more='<workbookPr date1904="1"/>')) == [[dt.date(1904, 1, 1)]]
    assert read(xlsx(cell)) == [[ODD]]


def test_a_cell_far_away_costs_nothing_but_itself(tmp_path: Path) -> None:
    """A note in the last column, and one in the last row: every row had the width of the longest one."""
    head = f'<row r="1">{inline("id")}{inline("cost")}</row>'
    rows = "".join(f'<row r="{i}"><c r="A{i}"><v>{i}</v></c><c r="B{i}"><v>1</v></c></row>' for i in range(2, 302))
    note = inline("a").replace("<c", "<c r='XFD302'", 1)
    far = f'<row r="302"><c r="A302"><v>9</v></c>{note}</row>'
    below = '<row r="1048576"><c r="A1048576"><v>10</v></c></row>'
    schema = pa.schema([("id", pa.int64()), ("cost", pa.float64())])
    types = {"id": Kind.INTEGER, "cost": Kind.NUMBER}
    peaks = []
    for name, more in (("plain", ""), ("far", far), ("below", below)):
        path = tmp_path / f"{name}.xlsx"
        path.write_bytes(xlsx(head + rows + more))
        tracemalloc.start()
        assert sheet_columns("v", str(path), None) == ["id", "cost"]
        got = read_sheet(str(path), None, schema, types)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert got.num_rows == 300 + bool(more)
        assert got.column("id").to_pylist()[:300] == list(range(2, 302))
    assert max(peaks[1:]) < 1.2 * peaks[0]


def test_the_place_of_a_cell_is_what_it_says() -> None:
    rows = (
        '<row r="2"><c r="B2"><v>1</v></c><c><v>2</v></c></row><row r="7"><c r="C7"><v>5</v></c><c r="A7"><v>3</v></c>'
        '<c r="??7"><v>4</v></c></row><row/><row><c r="AAAA9"><v>4</v></c><c><v>4</v></c></row>'
        "<row><c><v>8</v></c></row>"
    )
    assert read(xlsx(rows)) == [[None, 1, 2], [3, None, 5], [8]]


def cell(kind: str, value: str = "", inner: str = "") -> str:
    name = {"float": "value", "percentage": "value"}.get(kind, f"{kind}-value")
    value = f'office:{name}="{value}"' if value else ""
    return f'<table:table-cell office:value-type="{kind}" {value}>{inner}</table:table-cell>'


CELLS_OF_ODS = [
    cell("float", "1.5"), cell("percentage", "0.5"), cell("date", "2025-01-02"),
    cell("date", "2025-01-02T03:04:05.123456789"),
    cell("time", "PT03H04M05S"), cell("boolean", "true"), cell("boolean", "false"),
    cell("string", "said", "<text:p>shown</text:p>"),
    cell("string", inner="<text:p>a<text:s text:c='3'/>b<text:span>c</text:span></text:p><text:p>d</text:p>"),
    cell("string", inner="<text:p/>"), cell("date", "x"), "<table:covered-table-cell/>",
]  # fmt: skip


def test_cells_of_ods_are_read_as_calamine_reads_them() -> None:
    for one in CELLS_OF_ODS:
        data = ods(f"<table:table-row>{one}{cell('float', '77')}</table:table-row>")
        got = [[None] * (2 - len(row)) + row for row in calamine(data)]
        assert read(data) == got, one


def test_what_stands_beside_the_text_of_a_cell_is_not_its_text() -> None:
    note = "<office:annotation><text:p>note</text:p></office:annotation>"
    frame = "<draw:frame><draw:text-box><text:p>drawn</text:p></draw:text-box></draw:frame>"
    text = "<text:p>x<text:tab/>y<text:line-break/>z</text:p>"
    cells = cell("string", inner=f"\n {note}\n {text}\n{frame} ") + cell("float", "no number")
    assert read(ods(f"<table:table-row>{cells}</table:table-row>")) == [["x\ty\nz", ODD]]


def test_what_is_repeated_in_ods_is_held_to_the_sheet() -> None:
    """Programs write the rest of a row or a sheet as one cell that is repeated, and rows that are alike as one."""
    seven, many = cell("float", "7"), 'table:number-columns-repeated="999999999"'
    head = "".join(cell("string", inner=f"<text:p>{name}</text:p>") for name in "ab")
    rows = (
        f"<table:table-row>{head}<table:table-cell {many}/></table:table-row>"
        '<table:table-row table:number-rows-repeated="3">'
        f'{seven}</table:table-row><table:table-row table:number-rows-repeated="1048000"><table:table-cell {many}/>'
        f'</table:table-row><table:table-row><table:table-cell table:number-columns-repeated="16383"/>{seven}'
        f"</table:table-row><table:table-row>{seven.replace('<table:table-cell', f'<table:table-cell {many}')}"
        '</table:table-row><table:table-row table:number-rows-repeated="99999999999999999999999"/>'
    )
    assert read(ods(rows)) == [["a", "b"], [7], [7], [7], [7, 7]]


@pytest.mark.parametrize("blanks", ["<text:s text:c='9999999'/>" * 2, "<text:s text:c='32767'/>" * 3,
                                    "<text:s text:c='65536'/>" * 20_000])  # fmt: skip
def test_blanks_that_no_cell_can_hold_make_no_text(blanks: str) -> None:
    """They are counted and not written: a file of 1.3 KB made a text of 625 MB."""
    odd, full = (cell("string", inner=f"<text:p>a{b}b</text:p>") for b in (blanks, "<text:s text:c='32767'/>"))
    tracemalloc.start()
    rows = read(ods(f"<table:table-row>{odd}{full}{cell('float', '77')}</table:table-row>"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == [[ODD, "a" + " " * 32767 + "b", 77]]
    assert peak < 16 << 20


NOT_OF_A_SHEET = [
    "<c><t>7</t>1<v>2<rPh><t>3</t></rPh></v></c>", "<is><t>7<rPh><t>8</t></rPh>9</t></is>",
    "<t>7<rPh>8<t>9</t></rPh>1</t>", "<t>7<c r='Z1'><t>8</t></c>9</t>", "<v>7<c><v>8</v></c><t>9</t>1</v>",
    "<rPh><c/>7<rPh/><t>8</t></rPh>", "<t>7<rPh><t>8</t><t>9</t></rPh></t><t>1<t/>2</t>",
    "<v>7<t>8<v>9</v>1</t>2</v>", "<rPh><t>7</t><c><v>8</v></c></rPh>",
]  # fmt: skip


@pytest.mark.parametrize("inner", NOT_OF_A_SHEET)
def test_what_was_begun_in_a_cell_reaches_no_other(inner: str) -> None:
    """Before, a text in how a text is spoken was the beginning of the next person's text."""
    head = f"<row>{inline('a')}{inline('b')}</row>"
    others = f"<row><c>\n<v>77</v>\n</c>{inline('B')}</row><row><c><v>5</v></c>{inline('')}<c t='s'><v>0</v></c></row>"
    for odd in (f"<row><c>{inner}</c></row>", f"<row><c t='inlineStr'>{inner}</c></row>", f"<row>{inner}</row>"):
        rows = read(xlsx(f"{head}{odd}{others}"))
        assert rows[-2:] == [[77, "B"], [5]], odd


def test_what_was_begun_in_a_shared_text_reaches_no_other() -> None:
    for odd in (
        "<si><t>7<rPh><t>8</t></rPh>9</t></si>",
        "<si><rPh><si><t>7</t></si><t>8</t></rPh></si>",
        "<si><t>7<si/></t>8</si>",
    ):
        parts = zipfile.ZipFile(io.BytesIO(xlsx("<row><c t='s'><v>1</v></c><c t='s'><v>2</v></c></row>")))
        text = {name: parts.read(name).decode() for name in parts.namelist()}
        text["xl/sharedStrings.xml"] = f"<sst>{odd}<si><t>B</t></si><si>\n<t>C</t></si></sst>"
        assert read(archive(text)) == [["B", "C"]], odd


LONG = "x" * (1 << 16)


@pytest.mark.parametrize(("row", "most"), [
    (row_of_ods(cell("string", LONG)), 30), (row_of_ods(cell("string", inner=f"<!--{LONG}-->")), 30),
    (row_of_ods(cell("string", inner=f"<text:p>{LONG}</text:p>")), 2000),
])  # fmt: skip
def test_a_tag_without_an_end_is_looked_at_a_few_times(row: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser begins at its beginning with each piece: an attribute of 32 MB, 30 KB when packed, took half a minute.
    What has an end, a text among it, is read piece by piece."""
    monkeypatch.setattr(xml_parts, "_PIECE", 64)
    data = ods(row_of_ods(cell("float", "1")) * 20 + row + row_of_ods(cell("float", "2")) * 20)
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        pieces = sum(1 for _ in xml_parts.fed(parts, "content.xml", lambda _: None))
    assert most / 3 < pieces < most + 100
    assert [len(read(data)), read(data)[-1]] == [40 + ("--" not in row), [2]]


FORBIDDEN = ["\x0b", "\uffff", "\ufffe", "&#11;", "&#xFFFF;", "&#xD800;", "&#99999999;", "&#0;"]
FORBIDDEN += ["\uf8ff", "&#xF8FF;", "\uf8ffB;", "_xFFFF", "&#xFFFFFFFFFFFF;", "&#65;"]


def test_a_character_that_xml_forbids_is_its_own_cell_s_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """openpyxl writes U+FFFF, others a vertical tab, and a reader of XML then refuses the whole part; wherever a piece
    of it ends.
    """
    texts = [f"{i}{text}" for i, text in enumerate(FORBIDDEN)] * 3
    meant = ["0\x0b", "1\uffff", "2\ufffe", "3\x0b", "4\uffff", "5\ud800", "6\udfff", "7\0"]
    meant = [*meant, "8\uf8ff", "9\uf8ff", "10\uf8ffB;", "11_xFFFF", "12\udfff", "13A"] * 3
    data = xlsx("".join(f"<row>{inline(text)}</row>" for text in texts))
    for size in range(64, 128):
        monkeypatch.setattr(xml_parts, "_PIECE", size)
        assert [row[0] for row in read(data)] == meant
        rows = [f"<table:table-row>{cell('string', inner=f'<text:p>{t}</text:p>')}</table:table-row>" for t in texts]
        assert [row[0] for row in read(ods("".join(rows)))] == meant


NOT_UTF8 = [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80"]


@pytest.mark.parametrize("bad", NOT_UTF8)
def test_bytes_that_are_not_utf_8_are_their_own_cell_s_alone(bad: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """One cell refused the whole sheet, or ended a question. CSV, Parquet and SQLite have NULL there."""
    others = ["\u20ac", "\U0001f600", "a\xe9"]
    cells = [others[0], "PLACE", *others[1:]]
    as_ods = [f"<table:table-row>{cell('string', inner=f'<text:p>{t}</text:p>')}</table:table-row>" for t in cells]
    for data, part in (
        (xlsx("".join(f"<row>{inline(t)}</row>" for t in cells)), "xl/sheet.xml"),
        (ods("".join(as_ods)), "content.xml"),
    ):
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            held: dict[str, Any] = {name: parts.read(name) for name in parts.namelist()}
        held[part] = held[part].replace(b"PLACE", bad)
        for size in (1 << 16, 64, 65, 66, 67):
            monkeypatch.setattr(xml_parts, "_PIECE", size)
            (one,), (odd,), *rest = read(archive(held))
            assert [one, *(text for (text,) in rest)] == others
            with pytest.raises(UnicodeEncodeError):
                odd.encode()


@pytest.mark.parametrize("end", ["xlsx", "ods"])
def test_no_two_texts_are_one_for_a_character_that_xml_forbids(end: str, tmp_path: Path) -> None:
    """Each names a person of its own; what is no character, nobody."""
    texts = ["n", "a\x0b", "a_x000b", "a\uffff", "a_xFFFF", "a\uf8ff", "a\uf8ffB;", "a&#x110000;", "a&#xD800;"]
    if end == "xlsx":
        data = xlsx("".join(f"<row>{inline(text)}</row>" for text in texts))
    else:
        texts += ["a_x000B_", "a_xFFFF_"]
        rows = (cell("string", inner=f"<text:p>{text}</text:p>") for text in texts)
        data = ods("".join(f"<table:table-row>{row}</table:table-row>" for row in rows))
    path = tmp_path / f"t.{end}"
    path.write_bytes(data)
    desk = Desk({"t": hb.table(str(path), unit="n", types={"n": "text"}, max_groups=1, max_rows=1)})
    assert desk.ask("SELECT COUNT(DISTINCT n) AS c FROM t", HUGE).rows() == [(len(texts) - 3,)]
    desk.engine.close()


def written_in(name: str, codec: str, texts: list[str]) -> bytes:
    """A sheet of one column, in an encoding, with halves of characters where they are."""
    data = xlsx(
        "".join(f"<row>{inline(text)}</row>" for text in texts), before=f'<?xml version="1.0" encoding="{name}"?>'
    )
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        held: dict[str, Any] = {one: parts.read(one) for one in parts.namelist()}
    held["xl/sheet.xml"] = held["xl/sheet.xml"].decode().replace("HALF", "\ud800").encode(codec, "surrogatepass")
    return archive(held)


def test_a_part_in_another_encoding_is_read_as_it_is() -> None:
    text = "\u00ef\u00bf\u00be"  # in Latin-1 the bytes of U+FFFE in UTF-8
    for name in ("utf-16", "iso-8859-1"):
        assert read(written_in(name, name, [text])) == [[text]]


WIDE = [("utf-16", "utf-16"), ("utf-16", "utf-16-le"), ("utf-16", "utf-16-be")]


@pytest.mark.parametrize(("name", "codec"), [*WIDE, ("iso-8859-1", "latin-1"), ("windows-1252", "cp1252")])
def test_in_no_encoding_two_texts_are_one(name: str, codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that looks as what stands for a forbidden character is itself, and such a character its cell's alone."""
    texts = ["a\x0b", "a&#11;", "a&#xF8FF;B;", "a&#xF8FF;", "&#x00000000000000000000F8FF;41;", "A", "\u00e9"]
    meant: list[str | None] = ["a\x0b", "a\x0b", "a\uf8ffB;", "a\uf8ff", None, "A", "\u00e9"]
    if "utf-16" in codec:
        texts += ["\uf8ff41;", "\uf8ff", "\uffff", "\U0001f600", "aHALF"]
        meant += ["\uf8ff41;", "\uf8ff", "\uffff", "\U0001f600", None]
    data = written_in(name, codec, texts * 3)
    for size in (*range(150, 170), 2**16):
        monkeypatch.setattr(xml_parts, "_PIECE", size)
        made = [None if any("\ud800" <= c <= "\udfff" for c in row[0]) else row[0] for row in read(data)]
        assert made == meant * 3


@pytest.mark.parametrize("name", ["utf-7", "idna", "base64", "nonsense", "utf-16", "punycode"])
def test_an_encoding_that_no_sheet_has_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"encoding|codec"):
        read(xlsx(f"<row>{inline('a')}</row>", before=f'<?xml version="1.0" encoding="{name}"?>'))


def test_a_damaged_file_is_refused_before_a_question(tmp_path: Path) -> None:
    """Whatever of it is damaged, and one that declares a document type: a line of it can stand for a gigabyte."""
    rows = f"<row>{inline('id')}</row>" + "<row><c><v>1</v></c></row>" * 9000
    whole = xlsx(rows)
    bomb = '<!DOCTYPE w [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
    damaged = [whole[:-100], whole.replace(b"xl/workbook.xml", b"xl/workbookk.xm"), xlsx(rows, before=bomb), b""]
    for data in [*damaged, xlsx(rows[:-6])]:
        (tmp_path / "v.xlsx").write_bytes(data)
        with pytest.raises(hb.PolicyError, match="cannot be read as a spreadsheet"):
            sheet_columns("v", str(tmp_path / "v.xlsx"), None)
    (tmp_path / "v.ods").write_bytes(ods("<table:table-row>"))
    with pytest.raises(hb.PolicyError, match="cannot be read as a spreadsheet"):
        sheet_columns("v", str(tmp_path / "v.ods"), None)


def test_numbers_of_every_format_of_dates_that_no_file_spells_out_are_dates(monkeypatch: pytest.MonkeyPatch) -> None:
    """ECMA-376, 18.8.30. Before, those of Chinese, Japanese and Korean programs (27 to 36, 50 to 58) were numbers, and
    a column of dates was NULL, without a word.
    """
    dates = {*range(14, 23), *range(27, 37), 45, 47, *range(50, 59)}
    monkeypatch.setitem(globals(), "STYLES", tuple(range(60)))
    cells = "".join(f'<c s="{n}"><v>45000.25</v></c>' for n in range(60) if n != 46)
    (row,) = read(xlsx(f"<row>{cells}</row>"))
    moments = {n for n, value in zip((n for n in range(60) if n != 46), row, strict=True) if value != 45000.25}
    assert moments == dates
    assert set(row) == {45000.25, dt.datetime(2023, 3, 15, 6)}
