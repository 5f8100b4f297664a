"""Numbers and dates as a file writes them, written as ISO and SQL do: each value from itself alone, NULL if it is none.

"1.234,56" is 1234.56 where a file has a decimal comma and dots between thousands; "03.04.2025" is 2025-04-03 where its
dates are "%d.%m.%Y". Whether there is such a day is for the engine to say, as of any text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from hubbub.file_formats import DIRECTIVES, Csv
from hubbub.late import late
from hubbub.tables.kinds import Kind

__all__ = ["iso_dates", "plain_numbers", "written_anew"]

pc = late("pyarrow.compute")

_MONTHS = ("january february march april may june july august september october november december").split()
_PIVOT = 69
"""Two digits from here on are a year of the 1900s, as in POSIX."""


def written_anew(table: pa.Table, how: Csv, types: Mapping[str, Kind]) -> pa.Table:
    """A table of texts in which numbers and dates of declared types are written as SQL writes them."""
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = types.get(name)
        if kind in (Kind.INTEGER, Kind.NUMBER) and (how.decimal != "." or how.thousands is not None):
            column = plain_numbers(column, how.decimal, how.thousands)
        elif kind in (Kind.DATE, Kind.TIMESTAMP) and name in how.formats:
            column = iso_dates(column, how.formats[name], dates=kind is Kind.DATE)
        columns.append(column)
    return pa.table(columns, names=table.column_names)


def plain_numbers(column: Any, decimal: str, thousands: str | None) -> Any:
    """Numbers with a point and no signs between thousands; NULL where a text is not such a number.

    >>> plain_numbers(pa.chunked_array([["1.234,5", " -7 ", "1.5", "x"]]), ",", ".").to_pylist()
    ['1234.5', '-7', None, None]
    """
    groups = rf"[0-9]{{1,3}}(?:{re.escape(thousands)}[0-9]{{3}})+|" if thousands is not None else ""
    number = rf"^\s*([+-]?(?:{groups}[0-9]+)?(?:{re.escape(decimal)}[0-9]*)?(?:[eE][+-]?[0-9]{{1,9}})?)\s*$"
    fits = pc.match_substring_regex(column, number)
    kept = pc.utf8_trim_whitespace(pc.if_else(fits, column, pa.scalar(None, pa.string())))
    if thousands is not None:
        kept = pc.replace_substring(kept, thousands, "")
    return pc.replace_substring(kept, decimal, ".")


def iso_dates(column: Any, written: str, *, dates: bool) -> Any:
    """Dates or times as ISO writes them; NULL where a text is not in this form. dates: without the time of day.

    >>> iso_dates(pa.chunked_array([["3.4.25 7:05", "x"]]), "%d.%m.%y %H:%M", dates=False).to_pylist()
    ['2025-04-03 07:05:00', None]
    """
    parts = pc.extract_regex(column, _pattern(written))
    read = {field.name: pc.struct_field(parts, field.name) for field in parts.type}
    day = pc.binary_join_element_wise(_year(read), _month(read), _two(read["d"]), "-")
    if dates or not read.keys() & set("HI"):
        return day
    seconds = _two(read["S"]) if "S" in read else pa.scalar("00")
    minutes = _two(read["M"]) if "M" in read else pa.scalar("00")
    if "f" in read:
        seconds = pc.binary_join_element_wise(seconds, pc.utf8_slice_codeunits(read["f"], 0, 6), ".")
    time = pc.binary_join_element_wise(_hour(read), minutes, seconds, ":")
    return pc.binary_join_element_wise(day, time, " ")


def _pattern(written: str) -> str:
    """The regular expression of a format; blanks around a value are nothing."""
    pieces = re.split(r"%(.)", written)
    patterns = [re.escape(piece) if i % 2 == 0 else DIRECTIVES[piece] for i, piece in enumerate(pieces)]
    return rf"^\s*{''.join(patterns)}\s*$"


def _two(column: Any) -> Any:
    return pc.utf8_lpad(column, 2, "0")


def _text(numbers: Any) -> Any:
    return _two(numbers.cast(pa.string()))


def _year(read: Mapping[str, Any]) -> Any:
    if "Y" in read:
        return read["Y"]
    century = pc.if_else(pc.greater_equal(read["y"], f"{_PIVOT}"), "19", "20")
    return pc.binary_join_element_wise(century, read["y"], "")


def _month(read: Mapping[str, Any]) -> Any:
    if "m" in read:
        return _two(read["m"])
    short = "b" in read
    names = pa.array([month[:3] if short else month for month in _MONTHS])
    place = pc.index_in(pc.ascii_lower(read["b" if short else "B"]), names)
    return _text(pc.add(place, 1))


def _hour(read: Mapping[str, Any]) -> Any:
    """The hour of the day; twelve in the morning is 0. NULL for an hour of twelve that is none."""
    if "H" in read:
        return _two(read["H"])
    hour = read["I"].cast(pa.int32())
    there = pc.and_(pc.greater_equal(hour, 1), pc.less_equal(hour, 12))
    twelve = pc.if_else(pc.equal(hour, 12), 0, hour)
    later = pc.if_else(pc.equal(pc.ascii_lower(read["p"]), "pm"), 12, 0)
    return _text(pc.if_else(there, pc.add(twelve, later), pa.scalar(None, pa.int32())))
