"""What a file is by its name, and how a text file writes its values: delimiter, encoding, decimal sign, dates.

>>> kind_of_file("visits.csv.gz"), kind_of_file("visits.pq"), kind_of_file("notes.doc")
('csv', 'parquet', None)
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from hubbub.errors import PolicyError, what_was_given
from hubbub.keywords import named_calls

__all__ = ["DIRECTIVES", "ENCODINGS", "FILES", "Csv", "FileKind", "csv_from", "files_of", "kind_of_file",
           "several_files", "spreadsheet_text"]  # fmt: skip

FileKind = Literal["parquet", "csv", "duckdb", "sqlite", "sheet"]

_KINDS: Final[Mapping[str, FileKind]] = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".duckdb": "duckdb", ".ddb": "duckdb",
    ".db": "duckdb", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".xlsx": "sheet", ".xls": "sheet", ".ods": "sheet",
}  # fmt: skip
COMPRESSED: Final = (".gz", ".zst", ".zip")
FILES: Final = ".parquet, .csv (also .tsv, .csv.gz, .csv.zst, .csv.zip), .duckdb, .sqlite or .xlsx"
"""The files that can be read, for a message."""

ENCODINGS: Final = ("utf-8", "utf-16", "latin-1", "cp1252", "iso-8859-15")
"""Encodings in which where a line ends does not depend on what stands in the lines before it."""

_NUMBER: Final = re.compile(r"[+-]?[\d.,]+(?:[eE][+-]?\d+)?\s?%?")
_FORMULA: Final = "=+-@\uff1d\uff0b\uff0d\uff20"
_SQLITE: Final = b"SQLite format 3\0"


def spreadsheet_text(text: str) -> str:
    """A text as a field of a CSV that a spreadsheet shows and does not run: one that it would take for a formula has an
    apostrophe before it. Numbers stay as they are.

    >>> spreadsheet_text("=HYPERLINK(1)"), spreadsheet_text("-5"), spreadsheet_text("a=b"), spreadsheet_text("-")
    ("'=HYPERLINK(1)", '-5', 'a=b', '-')
    """
    shown = text.strip()
    if len(shown) < 2 or shown[0] not in _FORMULA or _NUMBER.fullmatch(shown):
        return text
    return f"'{text}"


def kind_of_file(path: str | Path) -> FileKind | None:
    """What a file is by the end of its name; a file `.db` of SQLite by its first bytes too. None: none that is read."""
    place = Path(path)
    suffix = place.suffix.lower()
    if suffix in COMPRESSED:
        inner = _KINDS.get(Path(place.stem).suffix.lower())
        return inner if inner == "csv" else None
    if suffix == ".db":
        try:
            with place.open("rb") as file:
                return "sqlite" if file.read(16) == _SQLITE else "duckdb"
        except OSError:
            return "duckdb"
    return _KINDS.get(suffix)


def several_files(path: str | Path) -> bool:
    """Whether a path names several Parquet files: a folder, or a pattern such as `visits/*.parquet`."""
    return os.path.isdir(path) or (not os.path.exists(path) and bool(re.search(r"[*?]", str(path))))


def files_of(path: str | Path) -> list[str]:
    """The files that a path names, each once and without links, in the order of their names: one file, or the Parquet
    files of a folder and of the folders in it, or those that fit a pattern. Not those that begin with `_` or `.`.
    """
    if not several_files(path):
        return [os.path.realpath(path)]
    pattern = os.path.join(glob.escape(str(path)), "**", "*") if os.path.isdir(path) else str(path)
    names = (name for name in glob.glob(pattern, recursive=True) if kind_of_file(name) == "parquet")
    files = (name for name in names if os.path.isfile(name) and Path(name).name[0] not in "_.")
    return sorted({os.path.realpath(name) for name in files})


DIRECTIVES: Final[Mapping[str, str]] = {
    "Y": r"(?P<Y>\d{4})", "y": r"(?P<y>\d{2})", "m": r"(?P<m>\d{1,2})", "d": r"(?P<d>\d{1,2})",
    "b": r"(?P<b>[A-Za-z]{3})", "B": r"(?P<B>[A-Za-z]{3,9})", "H": r"(?P<H>\d{1,2})", "I": r"(?P<I>\d{1,2})",
    "p": r"(?P<p>[AaPp][Mm])", "M": r"(?P<M>\d{1,2})", "S": r"(?P<S>\d{1,2})", "f": r"(?P<f>\d{1,9})", "%": "%",
}  # fmt: skip
"""What a date format may hold, and what each part of it reads, as a regular expression."""


@named_calls
@dataclass(frozen=True)
class Csv:
    """How a CSV writes its rows. What is not said is as in most files: commas, UTF-8, a header line, a decimal point.

    delimiter: one character between fields; a tab in a .tsv file.
    encoding: utf-8, utf-16, latin-1, cp1252 or iso-8859-15.
    decimal: "." or ",", the sign before the fraction. thousands: what may stand between groups of three digits.
    names: the columns of a file without a header line, in order.
    formats: how a date or a time is written, by column: {"day": "%d.%m.%Y"}. %Y %y (69 is 1969, 68 is 2068) %m %d %b %B
        (English) %H %I %p %M %S %f %%.
    quoted_line_breaks: whether a line break inside quotes belongs to its field. Without it a line is a row, whatever
        stands in it. Who says so vouches that a program wrote the file that doubles each quote inside a field: with one
        quote too many in one person's row, the rows behind it would be read as others.

    Raises PolicyError for what no file is written in.
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str | None = None
    names: Sequence[str] | None = None
    formats: Mapping[str, str] = field(default_factory=dict)
    quoted_line_breaks: bool = False

    def __post_init__(self) -> None:
        one = self.delimiter
        fits = isinstance(one, str) and one.isascii() and re.fullmatch(r"[^\w\"'\n\r\0\\.+-]", one)
        if one is not None and not fits:
            raise PolicyError(
                f"csv: delimiter={what_was_given(one)}: expected one character that is not a letter, a digit or a "
                "quote, such as "
                "';' or '\\t'."
            )
        if self.encoding not in ENCODINGS:
            raise PolicyError(f"csv: encoding={what_was_given(self.encoding)}: expected one of {', '.join(ENCODINGS)}.")
        if self.decimal not in (".", ","):
            raise PolicyError(f"csv: decimal={what_was_given(self.decimal)}: expected '.' or ','.")
        if self.thousands is not None and self.thousands not in (".", ",", " ", "'", "_", "\N{NO-BREAK SPACE}"):
            raise PolicyError(
                f"csv: thousands={what_was_given(self.thousands)}: expected '.', ',', a blank, \"'\" or '_'."
            )
        if self.thousands == self.decimal:
            raise PolicyError(
                f"csv: thousands and decimal are both {what_was_given(self.decimal)}; no number could be told."
            )
        if not isinstance(self.quoted_line_breaks, bool):
            raise PolicyError(
                f"csv: quoted_line_breaks={what_was_given(self.quoted_line_breaks)}: expected True or False."
            )
        self._check_names()
        if not isinstance(self.formats, Mapping):
            raise PolicyError(f"csv: formats={what_was_given(self.formats)}: expected a format by column, as a dict.")
        for column, written in self.formats.items():
            _check_format(column, written)

    def _check_names(self) -> None:
        if self.names is None:
            return
        listed = isinstance(self.names, Sequence) and not isinstance(self.names, str)
        names = list(self.names) if listed else []
        if not names or any(not isinstance(name, str) or not name.strip() for name in names):
            raise PolicyError(
                f"csv: names={what_was_given(self.names)}: expected a name for every column of the file, in order."
            )
        if len({name.lower() for name in names}) < len(names):
            raise PolicyError("csv: two of the names are the same (case aside); rename one.")

    def divided_by(self, path: str | Path) -> str:
        """The delimiter of this file."""
        inner = [suffix.lower() for suffix in Path(path).suffixes]
        return self.delimiter or ("\t" if ".tsv" in inner else ",")

    def canonical(self) -> str:
        """A text that is another one where rows would be read otherwise."""
        return repr((self.delimiter, self.encoding, self.decimal, self.thousands,
                     None if self.names is None else tuple(self.names), sorted(self.formats.items()),
                     self.quoted_line_breaks))  # fmt: skip


def _check_format(column: object, written: object) -> None:
    """Raises PolicyError for a format that names no day, or what cannot be read."""
    if not isinstance(column, str) or not isinstance(written, str):
        raise PolicyError(
            f'csv: formats={{{column!r}: {what_was_given(written)}}}: expected text, such as {{"day": "%d.%m.%Y"}}.'
        )
    parts = re.findall(r"%(.?)", written.replace("%%", ""))
    unknown = [part for part in parts if part not in DIRECTIVES]
    if unknown:
        known = " ".join(f"%{part}" for part in DIRECTIVES)
        raise PolicyError(
            f"csv: the format {what_was_given(written)} of {what_was_given(column)} has %{unknown[0]}; allowed: "
            f"{known}."
        )
    if len(set(parts)) < len(parts):
        raise PolicyError(f"csv: the format {what_was_given(written)} of {what_was_given(column)} has a part twice.")
    years, months = set(parts) & set("Yy"), set(parts) & set("mbB")
    hours = set(parts) & set("HI")
    if len(years) != 1 or len(months) != 1 or "d" not in parts:
        raise PolicyError(
            f"csv: the format {what_was_given(written)} of {what_was_given(column)} does not say a day: it needs "
            "%Y or %y, %m, %b or %B, and %d."
        )
    if ("I" in parts) != ("p" in parts) or len(hours) > 1 or (not hours and set(parts) & set("MSfp")):
        raise PolicyError(
            f"csv: the format {what_was_given(written)} of {what_was_given(column)} does not say an hour: minutes "
            "need %H, or %I with %p."
        )


def csv_from(how: Csv | Mapping[str, Any] | None) -> Csv:
    """How a CSV is written: as given, or by the words of a policy.

    Raises PolicyError for what no file is written in.
    """
    if isinstance(how, Csv):
        return how
    if how is None:
        return Csv()
    if not isinstance(how, Mapping):
        raise PolicyError(f"csv={what_was_given(how)}: expected hb.Csv(...), or the same as a dict.")
    allowed = list(Csv.__dataclass_fields__)
    for name in how:
        if name not in allowed:
            raise PolicyError(f"csv: unknown key {what_was_given(name)}; allowed: {', '.join(allowed)}.")
    return Csv(**how)
