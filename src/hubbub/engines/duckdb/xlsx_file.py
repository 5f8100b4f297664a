"""The rows of a sheet of an .xlsx file, one after the other: numbers, texts, truth values, days and moments.

What stands right of the first row's last cell is passed over, and rows without a cell are no rows, wherever they are:
a note in the last column or the last row costs what its own few bytes do. A cell is what its own type and style say:
where it says what it is not (an error value of whatever name, a moment beyond all dates) it is of no kind.
"""

from __future__ import annotations

import datetime as dt
import posixpath
import re
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from hubbub.engines.duckdb.xml_parts import (
    ODD,
    WIDEST,
    Columns,
    Cut,
    Parser,
    fed,
    first_of,
    iso_moment,
    number_of,
    read_part,
    text_of,
)

__all__ = ["XlsxFile"]

_ESCAPE: Final = re.compile("_x([0-9A-Fa-f]{4})_")
_LITERAL: Final = re.compile(r'"[^"]*"|[\\_*].')
_SPAN: Final = re.compile(r"\[(h+|m+|s+)\]", re.IGNORECASE)
_DATES: Final = {*range(14, 23), *range(27, 37), 45, 47, *range(50, 59)}  # from 27 and 50 on: those of East Asia
_TRUTHS: Final = {"0": False, "false": False, "1": True, "true": True}
_MOMENT, _ELAPSED = "moment", "elapsed"
_DAY: Final = 86_400_000  # milliseconds


class XlsxFile:
    """A workbook. sheets: the name of each sheet, and the part that holds it."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._parts = {name.lower(): name for name in archive.namelist()}
        workbook = next(iter(self._related("").get("officeDocument", {}).values()), "xl/workbook.xml")
        related = self._related(workbook)
        self._by_type = {kind: next(iter(parts.values())) for kind, parts in related.items()}
        places = {identity: part for parts in related.values() for identity, part in parts.items()}
        self.sheets: dict[str, str] = {}
        self._from_1904 = False

        def start(name: str, attributes: Mapping[str, str]) -> None:
            if name == "workbookPr":
                self._from_1904 = attributes.get("date1904") in ("1", "true")
            elif name == "sheet":
                identity = next((v for key, v in attributes.items() if key.endswith(" id")), "")
                self.sheets[text_of(attributes["name"])] = places.get(identity, "")

        read_part(archive, self._part(workbook), start)

    def _part(self, path: str) -> str:
        return self._parts.get(path.lower(), path)

    def _related(self, part: str) -> dict[str, dict[str, str]]:
        """What a part refers to: by the last word of its type, and by its id."""
        folder, name = posixpath.split(part)
        related: dict[str, dict[str, str]] = {}

        def start(name: str, attributes: Mapping[str, str]) -> None:
            if name == "Relationship" and attributes.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/" + folder, attributes["Target"])).lstrip("/")
                kind = attributes["Type"].rpartition("/")[2]
                related.setdefault(kind, {})[attributes["Id"]] = target

        listed = self._part(posixpath.join(folder, "_rels", f"{name}.rels"))
        if listed in self._archive.NameToInfo:
            read_part(self._archive, listed, start)
        return related

    def rows(self, sheet: str) -> Iterator[list[Any]]:
        """The rows of a sheet that hold anything, the one that names the columns first."""
        cells, pieces = self._read(sheet)
        for _ in pieces:
            yield from cells.rows
            cells.rows.clear()

    def first(self, sheet: str) -> list[Any]:
        """The row that names the columns. Raises whatever is raised for a sheet that is damaged further on."""
        cells, pieces = self._read(sheet)
        return first_of(pieces, cells.rows) or []

    def _read(self, sheet: str) -> tuple[_Cells, Iterator[Parser]]:
        cells = _Cells(self._strings(), self._styles(), dt.datetime(1904, 1, 1) if self._from_1904 else None)
        return cells, fed(self._archive, self._part(self.sheets[sheet]), cells.begun, spaces=False)

    def _strings(self) -> list[str]:
        """The texts that cells share."""
        part = self._part(self._by_type.get("sharedStrings", ""))
        if part not in self._archive.NameToInfo:
            return []
        texts = _Texts()
        for _ in fed(self._archive, part, texts.begun, spaces=False):
            pass
        return texts.all

    def _styles(self) -> list[str | None]:
        """What the number of a cell of each style is, where it is not just a number."""
        formats: dict[int, str | None] = {**dict.fromkeys(_DATES, _MOMENT), 46: _ELAPSED}
        styles: list[str | None] = []
        inside = ""

        def start(name: str, attributes: Mapping[str, str]) -> None:
            nonlocal inside
            if name == "numFmt":
                formats[_whole(attributes.get("numFmtId"))] = _format(attributes.get("formatCode", ""))
            elif name == "xf" and inside == "cellXfs":
                styles.append(formats.get(_whole(attributes.get("numFmtId"))))
            elif name.startswith("cell"):
                inside = name

        part = self._part(self._by_type.get("styles", ""))
        if part in self._archive.NameToInfo:
            read_part(self._archive, part, start)
        return styles


class _Texts:
    """The texts of a part: of each the runs, without how they are spoken.

    Names of elements are compared as they are written, with the prefix of the outermost one: there are millions.
    """

    def __init__(self) -> None:
        self.all: list[str] = []
        self._runs: list[str] = []
        self._letters: list[str] = []
        self._spoken = self._kept = self._reads = False
        self._deep = 0

    def begun(self, parser: Parser) -> None:
        def outermost(name: str, attributes: Mapping[str, str]) -> None:
            self._named(name.rpartition(":")[0] + ":" * (":" in name))
            parser.StartElementHandler = self._start

        parser.StartElementHandler, parser.EndElementHandler = outermost, self._end
        parser.CharacterDataHandler = self._data

    def _named(self, prefix: str) -> None:
        self._t, self._rph, self._si = (sys.intern(f"{prefix}{name}") for name in ("t", "rPh", "si"))

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == self._t and not self._spoken:
            self._reads, self._kept = True, attributes.get("xml:space") == "preserve"
        elif name == self._rph:
            self._spoken = True
        elif name == self._si:
            self._deep += 1
            self._forget()

    def _data(self, data: str) -> None:
        if self._reads:
            self._letters.append(data)

    def _end(self, name: str) -> None:
        if name == self._t and self._reads:
            self._runs.append(_run(self._read(), kept=self._kept))
        elif name == self._rph:
            self._spoken = False
        elif name == self._si:
            self._deep -= 1
            if not self._deep:  # one inside another is not counted: all that follow would move
                self.all.append("".join(self._runs))

    def _forget(self) -> None:
        """Leave out what was begun and not ended where it should: it is of no other text."""
        self._runs.clear()
        self._letters.clear()
        self._spoken = self._reads = False

    def _read(self) -> str:
        """The text between two marks."""
        text = text_of("".join(self._letters))
        self._letters.clear()
        self._reads = False
        return text


class _Cells(_Texts):
    """The rows of a sheet, as far as it is read. epoch: the first day, where it is not that of 1900."""

    def __init__(self, strings: Sequence[str], styles: Sequence[str | None], epoch: dt.datetime | None) -> None:
        super().__init__()
        self.rows: list[list[Any]] = []
        self._columns = Columns()
        self._width, self._has_names = WIDEST, False
        self._row: list[Any] = []
        self._next = 0
        self._at = -1  # the column of a cell that is read
        self._type = self._style = ""
        self._value: Any = None
        self._made: Mapping[str, Callable[[str], Any]] = {
            "": partial(self._number, other=str),
            "n": partial(self._number, other=lambda text: ODD),
            "s": lambda text: strings[int(text)] if text.isascii() and text.isdigit() else ODD,
            "b": lambda text: _TRUTHS[text.lower()],
            "str": _unescaped,
            "d": iso_moment,
        }
        self._kinds = {str(i): kind for i, kind in enumerate(styles) if kind is not None}
        self._epoch = epoch
        self._inside = False

    def _named(self, prefix: str) -> None:
        super()._named(prefix)
        self._c, self._v, self._r, self._all = (
            sys.intern(f"{prefix}{name}") for name in ("c", "v", "row", "sheetData")
        )

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == self._v:
            self._reads = self._at >= 0
        elif name == self._c and self._inside:
            place = attributes.get("r")
            column = self._columns[place.rstrip("0123456789")] if place else self._next
            self._next, self._value = column + 1, None
            if self._reads or self._letters or self._runs or self._spoken:
                self._forget()
            if column < self._width:
                self._at = column
                self._type, self._style = attributes.get("t", ""), attributes.get("s", "")
        elif name == self._t:
            self._reads = self._at >= 0 and not self._spoken
            self._kept = attributes.get("xml:space") == "preserve"
        elif name == self._r:
            self._row, self._next = [], 0
            self._forget()
        elif name == self._rph:
            self._spoken = True
        elif name == self._all:
            self._inside = True

    def _end(self, name: str) -> None:
        if name == self._v:
            if self._reads and (text := self._read()) and self._type not in ("inlineStr", "is"):
                self._value = self._valued(text)
        elif name == self._c:
            if self._at >= 0:
                self._place()
        elif name == self._t:
            if self._reads:
                self._runs.append(_run(self._read(), kept=self._kept))
        elif name == self._r:
            if self._row:
                self.rows.append(self._row)
                if not self._has_names:
                    self._has_names, self._width = True, len(self._row)
        elif name == self._rph:
            self._spoken = False
        elif name == self._all:
            self._inside = False

    def _place(self) -> None:
        """Put the cell that was read into its row."""
        value = self._value
        if self._runs:
            value = "".join(self._runs)
            self._runs.clear()
        if value is not None and value != "":
            row, at = self._row, self._at
            if at == len(row):
                row.append(value)
            else:
                row.extend([None] * (at + 1 - len(row)))
                row[at] = value
        self._at = -1

    def _valued(self, text: str) -> Any:
        """A cell's value, of its type; of no kind where it says something else."""
        try:
            return self._made[self._type](text)
        except (KeyError, ValueError, IndexError, OverflowError):
            return ODD

    def _number(self, text: str, *, other: Any) -> Any:
        """A number, and by its style a moment. other: what a text is that is no number."""
        try:
            number = number_of(text)
        except ValueError:
            return other(text)
        if "_" in text or not text.isascii() or text[0] <= " " or text[-1] <= " ":
            return other(text)
        kind = self._kinds.get(self._style)
        return number if kind is None else ODD if kind is _ELAPSED else _moment(float(number), self._epoch)


def _run(text: str, *, kept: bool) -> str:
    return _unescaped(text if kept else text.strip(" \t\r\n"))


def _unescaped(text: str) -> str:
    """A text with the characters that XML cannot hold.

    >>> _unescaped("a_x000D_b_x005F_"), _unescaped("_xD800_")
    ('a\\rb_', '_xD800_')
    """
    return _ESCAPE.sub(_character, text) if "_x" in text else text


def _character(written: re.Match[str]) -> str:
    code = int(written.group(1), 16)
    return written.group() if 0xD800 <= code < 0xE000 else chr(code)


def _whole(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else 0


def _format(code: str) -> str | None:
    """What a format makes of a number.

    >>> [_format(code) for code in ("0.00", "yyyy\\\\-mm", "[h]:mm", '0 "days"', "[$-404]d/m", "[Red]0;-d")]
    [None, 'moment', 'elapsed', None, 'moment', None]
    """
    first = _LITERAL.sub("", code).partition(";")[0]
    if _SPAN.search(first):
        return _ELAPSED
    return _MOMENT if re.search("[dmyhs]", re.sub(r"\[[^\]]*\]", "", first), re.IGNORECASE) else None


def _moment(number: float, epoch: dt.datetime | None) -> Any:
    """The day or moment of a number of days. epoch: the day 0, where it is not that of 1900, whose February has 29: the
    last of these is no day.

    >>> _moment(45000.0, None), _moment(59.0, None), _moment(61.0, None), _moment(0.5, None) is ODD
    (datetime.date(2023, 3, 15), datetime.date(1900, 2, 28), datetime.date(1900, 3, 1), True)
    >>> _moment(60.0, None) is ODD, _moment(45000.5, None), _moment(45000.5000000001, None).written
    (True, datetime.datetime(2023, 3, 15, 12, 0), '45000.5000000001')
    >>> _moment(0.0, dt.datetime(1904, 1, 1)), _moment(0.0, None) is ODD
    (datetime.date(1904, 1, 1), True)
    """
    if not (number >= 1 or (number == 0 and epoch is not None)):  # a time of day
        return ODD
    if epoch is None and 60 <= number < 61:
        return ODD
    start = epoch or dt.datetime(1899, 12, 30 if number >= 60 else 31)
    since = dt.timedelta(milliseconds=int(number * _DAY + 0.5))
    if number.is_integer():
        return (start + since).date()
    return start + since if since / dt.timedelta(days=1) == number else Cut.of(start + since, repr(number))
