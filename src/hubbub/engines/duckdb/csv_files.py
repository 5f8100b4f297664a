"""CSV files: one line is one row, whatever stands in the lines around it, and every field a text.

By rule: fields are divided by one character and may stand in double quotes, a doubled quote inside them is one; a line
break always ends a row (unless who declares the file vouches for its quotes); a line with another number of fields,
with a quote that is not closed, or beyond 512 MiB, is left out; an empty field, or one that is not text in the file's
encoding, is NULL.

Numbers with a decimal comma and dates of another order are written anew (`written_anew`), each value from itself alone.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import lzma
import threading
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import pyarrow as pa

from hubbub.engines.duckdb.utf8 import as_utf8
from hubbub.engines.duckdb.written import written_anew
from hubbub.errors import PolicyError
from hubbub.file_formats import COMPRESSED, Csv
from hubbub.late import late
from hubbub.plain import quick
from hubbub.tables.kinds import Kind

__all__ = ["csv_header", "lines_of", "opened", "read_csv"]

arrow_csv = late("pyarrow.csv")

_SLICE = 1 << 26
_LONGEST = 1 << 29
"""Bytes of a line: Arrow reads no piece of 2 GiB, and one person's line would be an error for all."""

_FIRST = 1 << 20
"""Bytes of a header line."""

_LIMIT = threading.Lock()
"""Who holds it may have `csv` take longer fields for a while: how long they may be is one number for the process."""

_NOT_UNPACKED: Final = (
    OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, pa.ArrowException,
)  # fmt: skip
"""What is raised of a file that is not packed as its name says: torn, under a password, by a way that is not known."""


def csv_header(name: str, path: str, how: Csv) -> list[str]:
    """The column names in the first line of a CSV, or those that were declared for one without.

    Raises PolicyError for a file without a usable header, for one in UTF-16 without a byte order mark, and for a zip
    archive that does not hold one file.
    """
    packed = Path(path).suffix.lower() in COMPRESSED
    if how.names is not None and how.encoding != "utf-16" and not packed:
        return list(how.names)
    problem = None
    try:
        with opened(path, how) as file:
            if how.names is not None:
                file.read(1)  # an archive that is none is refused here, and not after a charge
                return list(how.names)
            header = _header(file, how, path)
    except _NOT_UNPACKED:
        raise PolicyError(f"table {name!r}: {path!r} cannot be unpacked as what its name says.") from None
    if header is None:
        problem = f"the first line of the CSV is not a header in {how.encoding.upper()}"
    elif not header or any(not column.strip() for column in header):
        problem = "the first line of the CSV must name every column"
    elif len({c.lower() for c in header}) < len(header):
        problem = "two columns of the CSV have the same name (case aside); rename one"
    if header is None or problem:
        raise PolicyError(f"table {name!r}: {problem}.")
    return header


def _header(file: BinaryIO, how: Csv, path: str) -> list[str] | None:
    """The fields of the first line of a CSV that was just opened; None if they cannot be told.

    As bytes: decoding a buffer of text would look at rows, and fail on them.
    """
    with contextlib.suppress(UnicodeDecodeError, csv.Error):
        line = file.readline(_FIRST).decode("utf-8-sig")
        return next(csv.reader([line], strict=True, delimiter=how.divided_by(path)), [])
    return None


def read_csv(path: str, header: list[str], how: Csv, types: Mapping[str, Kind]) -> pa.Table:
    """The rows of a CSV, by the rule above; values of declared types written as others write them.

    Raises PolicyError where the file that is read has another header, or none.
    """
    divided = how.divided_by(path)
    with opened(path, how) as file:
        if how.names is None and _header(file, how, path) != header:
            raise PolicyError("the columns of a CSV have changed")
        lines = (piece.split(b"\n") for piece in _pieces(file))
        records = _records(lines) if how.quoted_line_breaks else lines
        tables = [_parse(some, header, divided) for some in records]
    rows = pa.concat_tables(tables) if tables else pa.schema([(c, pa.string()) for c in header]).empty_table()
    return written_anew(rows, how, types)


def lines_of(path: str, how: Csv) -> int:
    """How many lines that are not empty stand below the header; with quoted line breaks, how many records."""
    with opened(path, how) as file:
        if how.names is None:
            _header(file, how, path)
        lines = (piece.split(b"\n") for piece in _pieces(file))
        some = _records(lines) if how.quoted_line_breaks else lines
        return sum(bool(line.strip(b"\r")) for lines_here in some for line in lines_here)


@contextlib.contextmanager
def opened(path: str, how: Csv) -> Iterator[BinaryIO]:
    """The bytes of a file in UTF-8: unpacked, and out of another encoding.

    What is not a character of the encoding becomes bytes that are not UTF-8, which make NULL of their field alone.

    Raises PolicyError for a file in UTF-16 without a byte order mark: its first two bytes would be taken for one.
    """
    with contextlib.ExitStack() as stack:
        file: BinaryIO = stack.enter_context(open(path, "rb"))
        match Path(path).suffix.lower():
            case ".gz":
                file = cast(BinaryIO, stack.enter_context(gzip.GzipFile(fileobj=file)))
            case ".zst":
                unpacked = stack.enter_context(pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd"))
                file = cast(BinaryIO, io.BufferedReader(_Read(unpacked)))
            case ".zip":
                archive = stack.enter_context(zipfile.ZipFile(file))
                inside = [i for i in archive.infolist() if not i.is_dir() and not i.filename.startswith("__MACOSX")]
                if len(inside) != 1:
                    raise PolicyError(f"{path!r} holds {len(inside)} files; a zip archive of one CSV is read.")
                file = cast(BinaryIO, stack.enter_context(archive.open(inside[0])))
        if how.encoding != "utf-8":
            if how.encoding == "utf-16":
                file = cast(BinaryIO, io.BufferedReader(_Read(file)))
                _check_mark(cast(io.BufferedReader, file).peek(2)[:2], path)
            file = cast(BinaryIO, io.BufferedReader(_Recoded(file, how.encoding)))
        elif how.names is not None:
            file = cast(BinaryIO, io.BufferedReader(_Read(file)))
            if cast(io.BufferedReader, file).peek(3)[:3] == codecs.BOM_UTF8:
                file.read(3)
        yield file


def _check_mark(first: bytes, path: str) -> None:
    """Raises PolicyError where the first bytes of a file in UTF-16 do not say its byte order: one person's first
    character could say another one. An empty file needs none.
    """
    if first and first not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        raise PolicyError(
            f"{path!r}: a file in UTF-16 begins with a byte order mark, and this one does not. Save it with one, or in "
            "UTF-8. Nothing was charged."
        )


class _Read(io.RawIOBase):
    """What has `read`, as a stream that can be buffered."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._inner.read(len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)


class _Recoded(_Read):
    """The bytes of another encoding as UTF-8; of what is no character, bytes that are not UTF-8."""

    def __init__(self, inner: Any, encoding: str) -> None:
        super().__init__(inner)
        wide = encoding == "utf-16"
        self._decoder = codecs.getincrementaldecoder(encoding)("surrogatepass" if wide else "surrogateescape")
        self._first, self._rest = wide, b""

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            chunk = self._inner.read(1 << 20)
            if not chunk:
                return 0
            self._rest = self._decoder.decode(chunk).encode("utf-8", "surrogatepass")
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def _pieces(file: Any) -> Iterator[bytes]:
    """The rest of a file in pieces of whole lines, without those that are longer than `_LONGEST`."""
    rest: list[bytes] = []  # of a line whose end is still to come; nothing of one that is too long already
    size = 0

    def begun() -> bytes:
        return b"".join(rest) if size <= _LONGEST else b""

    while chunk := file.read(_SLICE):
        first, end, after = chunk.partition(b"\n")
        size += len(first)
        if size <= _LONGEST:
            rest.append(first)
        else:
            rest = []
        if end:
            whole, end, last = after.rpartition(b"\n")
            yield begun() + b"\n" + whole + end
            rest, size = [last], len(last)
    if rest:
        yield begun()


def _records(pieces: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """Lines joined while a quote is open; nothing of a record that is longer than `_LONGEST`."""
    begun: list[bytes] = []
    size, is_open = 0, False
    for lines in pieces:
        whole = []
        # Behind the last line break of a piece stands nothing: no line of the file.
        for line in lines[:-1] if lines[-1] == b"" else lines:
            closes = line.count(b'"') % 2 == 1
            if not is_open and not closes:
                whole.append(line)
                continue
            size += len(line) + 1
            if size <= _LONGEST:
                begun.append(line)
            else:
                begun.clear()
            is_open = is_open != closes
            if not is_open:
                whole.append(b"\n".join(begun))
                begun, size = [], 0
        yield whole


def _parse(lines: list[bytes], header: list[str], divided: str) -> pa.Table:
    """The rows of whole lines: those without quotes together, by Arrow; the others one by one."""
    plain, quoted = [], []
    between = divided.encode()
    for line in lines:
        bare = line.removesuffix(b"\r")
        if b'"' not in bare and b"\r" in bare:
            continue  # a line ends once: what stands behind another end has no place
        if b'"' in bare or not quick("csv"):
            fields = _fields(bare, divided)
            if bare and fields is not None and len(fields) == len(header):
                quoted.append([_decoded(field) for field in fields])
        elif bare.count(between) == len(header) - 1 and bare:
            plain.append(bare)
    columns = zip(*quoted, strict=True) if quoted else [[]] * len(header)
    one_by_one = pa.table([pa.array(column, pa.string()) for column in columns], names=header)
    return pa.concat_tables([_split(plain, header, divided), one_by_one])


def _split(lines: list[bytes], header: list[str], divided: str) -> pa.Table:
    """Lines that have one field for each column and no quotes, as a table. Arrow divides them; it drops none.

    A line of our own stands first and is cut off again: Arrow would take a byte order mark off the first line it sees.
    """
    text = b"\n".join([divided.encode().join([b"x"] * len(header)), *lines, b""])
    parsed = arrow_csv.read_csv(
        pa.BufferReader(text),
        read_options=arrow_csv.ReadOptions(column_names=header, block_size=len(text) + 1, use_threads=False),
        parse_options=arrow_csv.ParseOptions(
            delimiter=divided, quote_char=False, double_quote=False, escape_char=False, newlines_in_values=False
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types={column: pa.binary() for column in header}, strings_can_be_null=True, null_values=[""]
        ),
    )
    return pa.table([as_utf8(column.slice(1)) for column in parsed.columns], names=header)


def _fields(line: bytes, divided: str) -> list[str] | None:
    """The fields of one line; None if its quotes do not pair up."""
    text = line.decode("utf-8", "surrogateescape")
    with contextlib.suppress(csv.Error):
        return _split_one(text, divided)
    # A field may be too long: looked at before, the limit could be what another thread has it be for a while.
    with _LIMIT, contextlib.ExitStack() as stack, contextlib.suppress(csv.Error):
        before = csv.field_size_limit()
        stack.callback(csv.field_size_limit, before)
        csv.field_size_limit(max(before, len(text)))
        return _split_one(text, divided)
    return None


def _split_one(text: str, divided: str) -> list[str] | None:
    return next(csv.reader([text], strict=True, delimiter=divided), None)


def _decoded(text: str) -> str | None:
    with contextlib.suppress(UnicodeEncodeError):
        text.encode("utf-8")
        return text or None
    return None
