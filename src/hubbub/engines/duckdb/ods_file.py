"""The rows of a sheet of an .ods file, one after the other: numbers, texts, truth values, days and moments.

What stands right of the first row's last cell is passed over, and rows without a cell are no rows. A cell or a row that
says how often it is repeated is made so often, but no cell beyond the first row's last one, and no row more often than
a sheet has rows. A cell that counts more blanks than a cell can hold is of no kind.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from hubbub.engines.duckdb.xml_parts import ODD, WIDEST, Parser, fed, first_of, iso_moment, number_of, text_of

__all__ = ["OdsFile"]

_PART: Final = "content.xml"
_TABLE: Final = "urn:oasis:names:tc:opendocument:xmlns:table:1.0 "
_OFFICE: Final = "urn:oasis:names:tc:opendocument:xmlns:office:1.0 "
_TEXT: Final = "urn:oasis:names:tc:opendocument:xmlns:text:1.0 "
_DRAWING: Final = "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0 "
_TRUTHS: Final[Mapping[str, Any]] = {"true": True, "false": False}
_NAME, _ROW = _TABLE + "table", _TABLE + "table-row"
_CELLS: Final = {_TABLE + "table-cell", _TABLE + "covered-table-cell"}
_BESIDE: Final = {_OFFICE + "annotation", _TEXT + "note", _TEXT + "ruby-text"}
_ROWS: Final = 1 << 20
_LONGEST: Final = 1 << 16  # blanks of a cell that are counted and not written; a cell holds 32,767 characters


class OdsFile:
    """A workbook. sheets: the name of each sheet, and which one it is."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.sheets: dict[str, int] = {}
        for _ in fed(archive, _PART, self._begun):
            pass

    def _begun(self, parser: Parser) -> None:
        """Names of sheets; what is in them is not looked at."""
        depth = 0

        def start(name: str, attributes: Mapping[str, str]) -> None:
            nonlocal depth
            if name == _NAME:
                if depth == 0:
                    self.sheets.setdefault(text_of(attributes.get(_TABLE + "name", "")), len(self.sheets))
                depth += 1

        def end(name: str) -> None:
            nonlocal depth
            depth -= name == _NAME

        parser.StartElementHandler, parser.EndElementHandler = start, end

    def rows(self, sheet: str) -> Iterator[list[Any]]:
        """The rows of a sheet that hold anything, the one that names the columns first."""
        cells = _Cells(sheet)
        for _ in fed(self._archive, _PART, cells.begun):
            for row, times in cells.rows:
                for _ in range(times):
                    yield row
            cells.rows.clear()

    def first(self, sheet: str) -> list[Any]:
        """The row that names the columns. Raises whatever is raised for a file that is damaged further on."""
        cells = _Cells(sheet)
        row, _ = first_of(fed(self._archive, _PART, cells.begun), cells.rows) or ([], 1)
        return row


class _Cells:
    """The rows of a sheet, as far as it is read, and how often each is repeated."""

    def __init__(self, sheet: str) -> None:
        self.rows: list[tuple[list[Any], int]] = []
        self._sheet, self._done = sheet, False
        self._tables = self._beside = 0  # how deep in tables, and in what stands beside a cell's own text
        self._reads = False
        self._width, self._named = WIDEST, False
        self._row: list[Any] = []
        self._next, self._times, self._repeated = 0, 1, 1
        self._value: Any = None
        self._text: list[str] | None = None  # of a cell that is read
        self._in_line = False
        self._blanks = 0  # of a cell's text that are counted

    def begun(self, parser: Parser) -> None:
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._data

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == _NAME:
            if self._tables == 0:
                self._reads = not self._done and text_of(attributes.get(_TABLE + "name", "")) == self._sheet
            self._tables += 1
        elif not self._reads or self._tables > 1:
            return
        elif name == _ROW:
            self._row, self._next = [], 0
            self._times = _count(attributes.get(_TABLE + "number-rows-repeated"), _ROWS)
        elif name in _CELLS:
            self._repeated = _count(attributes.get(_TABLE + "number-columns-repeated"), WIDEST)
            self._value = _valued(attributes)
            is_text = self._value is None and attributes.get(_OFFICE + "value-type") == "string"
            self._text, self._blanks = [] if is_text and self._next < self._width else None, 0
        elif name in _BESIDE or name.startswith(_DRAWING):
            self._beside += 1
        elif self._text is not None and not self._beside:
            self._mark(name, attributes, self._text)

    def _mark(self, name: str, attributes: Mapping[str, str], text: list[str]) -> None:
        """Blanks and line breaks that an element of a text stands for."""
        if name == _TEXT + "p":
            text.append("\n" if text else "")
            self._in_line = True
        elif name == _TEXT + "s":
            count = _count(attributes.get(_TEXT + "c"), _LONGEST)
            self._blanks += count
            if self._blanks > _LONGEST:
                self._value, self._text = ODD, None
            else:
                text.append(" " * count)
        elif name in (_TEXT + "tab", _TEXT + "line-break"):
            text.append("\t" if name.endswith("tab") else "\n")

    def _data(self, data: str) -> None:
        if self._in_line and self._text is not None and not self._beside:
            self._text.append(data)

    def _end(self, name: str) -> None:
        if name == _NAME:
            self._tables -= 1
            if self._tables == 0 and self._reads:
                self._reads, self._done = False, True
        elif not self._reads or self._tables > 1:
            return
        elif name in _CELLS:
            value = self._value if self._text is None else text_of("".join(self._text))
            self._text, self._in_line = None, False
            until = min(self._next + self._repeated, self._width)
            if value is not None and value != "" and self._next < until:
                self._row.extend([None] * (self._next - len(self._row)))
                self._row.extend([value] * (until - self._next))
            self._next += self._repeated
        elif name == _ROW and self._row:
            self.rows.append((self._row, self._times))
            if not self._named:
                self._named, self._width = True, len(self._row)
        elif name == _TEXT + "p" and not self._beside:
            self._in_line = False
        elif name in _BESIDE or name.startswith(_DRAWING):
            self._beside -= 1


def _count(written: str | None, most: int) -> int:
    """How often something is repeated: once, where no number is written."""
    return min(int(written[:20]), most) if written and written.isascii() and written.isdigit() else 1


def _valued(attributes: Mapping[str, str]) -> Any:
    """What a cell's own attributes say that it holds; None where they say nothing."""
    if (number := attributes.get(_OFFICE + "value")) is not None:
        with suppress(ValueError):
            return number_of(number)
        return ODD
    if (truth := attributes.get(_OFFICE + "boolean-value")) is not None:
        return _TRUTHS.get(truth.lower(), ODD)
    if (moment := attributes.get(_OFFICE + "date-value")) is not None:
        return iso_moment(moment)
    if attributes.get(_OFFICE + "time-value") is not None:
        return ODD
    said = attributes.get(_OFFICE + "string-value")
    return None if said is None else text_of(said)
