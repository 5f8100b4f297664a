"""How a CSV is written, by its header line; and what its columns hold, where a steward asks, by its rows.

Whoever asks for the second reads the rows and writes what they show into a policy that may be published: a type, and
the form of dates and numbers; never a value.
"""

from __future__ import annotations

import codecs
import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from hubbub.file_formats import Csv

__all__ = ["dialect_of", "encoding_of_rows", "guess_types"]

_DELIMITERS: Final = (",", ";", "\t", "|")
_WHOLE: Final = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})")
_NUMBERS: Final[Mapping[tuple[str, str | None], re.Pattern[str]]] = {
    (decimal, thousands): re.compile(
        rf"[+-]?(?:[1-9][0-9]{{0,2}}(?:{re.escape(thousands)}[0-9]{{3}})+|0|[1-9][0-9]*)(?:{re.escape(decimal)}[0-9]+)?"
        if thousands
        else rf"[+-]?(?:0|[1-9][0-9]*)(?:{re.escape(decimal)}[0-9]+)?(?:[eE][+-]?[0-9]+)?"
    )
    for decimal, thousands in ((".", None), (",", None), (",", "."), (".", ","))
}
_DATES: Final = tuple("%Y-%m-%d;%d.%m.%Y;%d/%m/%Y;%m/%d/%Y;%d-%m-%Y;%Y/%m/%d;%Y%m%d;%d.%m.%y;%d %b %Y".split(";"))
_TIMES: Final = ("%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p")
_MOMENTS: Final = tuple(f"{day}{gap}{time}" for day in _DATES for gap in " T" for time in _TIMES)
_BYTES: Final = 1 << 28
_NOT_CP1252: Final = (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d")
_ROWS: Final = 100_000
"""So many rows are looked at."""


def dialect_of(path: Path) -> Csv:
    """How a CSV is written, by what stands before its first row: the mark of its encoding, and its header line."""
    from hubbub.engines.duckdb.csv_files import opened

    for encoding in ("utf-16", "utf-8", "cp1252"):
        with path.open("rb") as file:
            if encoding == "utf-16" and file.read(2) not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                continue
        how = Csv(encoding=encoding)
        with opened(str(path), how) as lines:
            line = lines.readline(1 << 20)
        try:
            header = line.decode("utf-8-sig")
        except UnicodeDecodeError:
            continue
        if ".tsv" in (suffix.lower() for suffix in path.suffixes):
            return how
        most = max(_DELIMITERS, key=header.count)
        return how if most == "," or not header.count(most) else replace(how, delimiter=most)
    return Csv()


def encoding_of_rows(path: Path, how: Csv) -> str:
    """The encoding that the rows show, of a file whose header is UTF-8: where they have other bytes, cp1252.

    Looks at the first 256 MiB, unpacked: a steward's look at the rows. cp1252 lacks five bytes; with one of them the
    file is latin-1.
    """
    from hubbub.engines.duckdb.csv_files import opened

    if how.encoding != "utf-8":
        return how.encoding
    utf8, other, unread = codecs.getincrementaldecoder("utf-8")(), "utf-8", _BYTES
    with opened(str(path), how) as lines:
        while unread > 0 and (part := lines.read(1 << 20)):
            unread -= len(part)
            if other == "utf-8":
                try:
                    utf8.decode(part)
                except UnicodeDecodeError:
                    other = "cp1252"
            if any(byte in part for byte in _NOT_CP1252) and other == "cp1252":
                return "latin-1"
    return other


def guess_types(path: Path, how: Csv) -> tuple[dict[str, str], Csv, list[str]]:
    """The kind of each column, and how numbers and dates are written, from the first rows: a steward's decision.

    And the columns whose days could as well be months.

    A column of codes stays text: digits with a zero in front, or words such as yes and no.
    """
    from hubbub.engines.duckdb.csv_files import csv_header, read_csv

    header = csv_header(path.stem, str(path), how)
    rows = read_csv(str(path), header, how, {}).slice(0, _ROWS)
    values = {name: sorted({v.strip() for v in rows.column(name).to_pylist() if v and v.strip()}) for name in header}
    signs = next(((d, t) for (d, t) in _NUMBERS if _writes_numbers(values.values(), d, t)), (".", None))
    types, formats, unsure = {}, {}, []
    for name, some in values.items():
        kind, form = _kind(some, _NUMBERS[signs])
        types[name] = kind
        if form is not None:
            formats[name] = form
            swapped = form.replace("%d/%m", "%m/%d")
            if swapped != form and all(_is(value, swapped) for value in some):
                unsure.append(name)
    decimal, thousands = signs
    return types, replace(how, decimal=decimal, thousands=thousands, formats=formats), unsure


def _writes_numbers(columns: Iterable[Sequence[str]], decimal: str, thousands: str | None) -> bool:
    """Whether some column is of numbers that are written so, and not so that another way would do."""
    pattern = _NUMBERS[decimal, thousands]
    marks = (decimal,) if thousands is None else (decimal, thousands)
    for some in columns:
        there = all(any(mark in value for value in some) for mark in marks)
        if there and some and all(map(pattern.fullmatch, some)) and _date(some) is None:
            return True
    return False


def _kind(values: Sequence[str], numbers: re.Pattern[str]) -> tuple[str, str | None]:
    """The kind of a column of these texts, and the format of its dates where that is not ISO's."""
    if not values:
        return "text", None
    tests: tuple[tuple[str, Callable[[str], object]], ...] = (
        ("boolean", lambda value: value.lower() in ("true", "false")),
        ("integer", _WHOLE.fullmatch),
        ("number", numbers.fullmatch),
    )
    dates = _date(values)
    if dates is not None:
        return dates
    for kind, test in tests:
        if all(map(test, values)):
            return kind, None
    return "text", None


def _date(values: Sequence[str]) -> tuple[str, str | None] | None:
    """The kind of a column of dates or times and their format; None where they are none, or could be several."""
    for kind, forms in (("date", _DATES), ("timestamp", _MOMENTS)):
        fitting = [form for form in forms if all(_is(value, form) for value in values)]
        if fitting:
            form = fitting[0]
            return kind, None if form.startswith("%Y-%m-%d") else form
    return None


def _is(value: str, form: str) -> bool:
    try:
        return 1900 <= dt.datetime.strptime(value, form).year < 2100 and (form != "%Y%m%d" or len(value) == 8)
    except ValueError:
        return False
