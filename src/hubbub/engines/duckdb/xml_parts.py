"""Parts of a zip archive that are XML, read as a stream: what the spreadsheets .xlsx and .ods are made of.

A part takes the memory of what is kept of it, and a time that grows with its size: nothing that it declares (sizes,
ranges, entities) makes more of it than stands there.
"""

from __future__ import annotations

import codecs
import datetime as dt
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from math import inf
from typing import IO, Any, Final
from xml.parsers import expat

__all__ = ["ODD", "WIDEST", "Columns", "Cut", "Local", "Parser", "fed", "first_of", "iso_moment", "number_of",
           "read_part", "text_of"]  # fmt: skip

ODD: Final = object()
"""A cell that holds something which no column can: a time of day, a span of time, an error value."""

WIDEST: Final = 1 << 14
"""Columns that a sheet has at most."""

Start = Callable[[str, Mapping[str, str]], None]
Parser = Any  # pyexpat's own class has no public name
_PIECE: Final = 1 << 16
_CONTROLS: Final = bytes({*range(32)} - {9, 10, 13})
_MARK: Final = "\uf8ff"
"""Stands before the number of a character that XML forbids, and of this one itself: so no text that is written is read
as another one. It is of Unicode's private use; its bytes stand in the pattern below."""
_FORBIDDEN: Final = re.compile(
    rb"([%b])|(\xef\xbf[\xbe\xbf]|\xef\xa3\xbf)|&#(?:x([\da-fA-F]{1,16})|(\d{1,16}));|(&#x?[\da-fA-F]{17,})"
    % re.escape(_CONTROLS)
)
_ODD: Final = (b"&#", b"\xef\xbf", b"\xef\xa3\xbf")
_BEGUN: Final = re.compile(rb"\xef[\xbf\xa3]?\Z|&(#[\da-fA-Fx]{,18})?\Z")
_MARKED: Final = re.compile(f"{_MARK}([0-9A-F]+);")
_DECLARED: Final = re.compile(rb"(\xef\xbb\xbf)?<\?xml[^>]*?\sencoding\s*=\s*[\"']([^\"']*)")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?)?", re.ASCII)
_DIGITS: Final = len(".123456")
_TIME: Final = re.compile(r"\d\d:\d\d:\d\d(\.\d+)?", re.ASCII)


class Local(dict[str, str]):
    """The last part of an element's name, without its namespace.

    >>> Local()["http://schemas.openxmlformats.org/spreadsheetml/2006/main row"]
    'row'
    """

    def __missing__(self, name: str) -> str:
        self[name] = short = name.rpartition(" ")[2]
        return short


class Cut(dt.datetime):
    """A moment of which a cell holds more than it says. written: what stands there, which no other cell's moment has.

    >>> cut = Cut.of_text("2025-01-02T03:04:05.1234567")
    >>> cut.isoformat(), cut.written
    ('2025-01-02T03:04:05.123456', '2025-01-02T03:04:05.1234567')
    """

    written: str

    @classmethod
    def of_text(cls, text: str) -> Cut:
        return cls.of(dt.datetime.fromisoformat(text), text)

    @classmethod
    def of(cls, moment: dt.datetime, written: str) -> Cut:
        cut = cls(*moment.timetuple()[:6], moment.microsecond)
        cut.written = written
        return cut


class Columns(dict[str, int]):
    """The column of a place, counted from 0, by its letters; one right of every sheet where they are none.

    >>> columns = Columns()
    >>> columns["A"], columns["AB"], columns["XFD"], columns["?"], columns["ABCD"]
    (0, 27, 16383, 16384, 16384)
    """

    def __missing__(self, letters: str) -> int:
        column = 0
        for letter in letters[:4]:
            column = column * 26 + ord(letter) - ord("A") + 1
        known = letters.isascii() and letters.isalpha() and letters.isupper()
        self[letters] = column = min(column - 1, WIDEST) if known else WIDEST
        return column


def _refused(*_: Any) -> None:
    """Raises ValueError: no spreadsheet declares a document type, and one can make a gigabyte of a line."""
    raise ValueError("a document type")


def fed(
    archive: zipfile.ZipFile, part: str, begun: Callable[[Parser], None], *, spaces: bool = True
) -> Iterator[Parser]:
    """Read a part piece by piece: the parser is yielded after each. begun: sets what is called for its elements.
    spaces: whether they are named by name space and name, or as they are written.

    Raises KeyError for a part that is not there, and what the parser or the archive raises for one that is damaged.
    """
    parser = expat.ParserCreate("utf-8", namespace_separator=" " if spaces else None)  # as `_in_utf8` makes the pieces
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refused
    begun(parser)
    given = held = 0
    waiting: list[bytes] = []
    with archive.open(part) as file:
        for piece in _allowed(file):
            waiting.append(piece)
            held += len(piece)
            # The parser looks at a tag that has not ended from its beginning again at each piece: as much of it is
            # given at once as it has had, so that it looks at each byte a few times at most.
            if held >= given - parser.CurrentByteIndex:
                parser.Parse(b"".join(waiting), False)
                given, held = given + held, 0
                waiting.clear()
                yield parser
    parser.Parse(b"".join(waiting), True)
    yield parser


def _allowed(file: IO[bytes]) -> Iterator[bytes]:
    """The pieces of a part in UTF-8, with a mark and a number for a character that XML forbids: one cell would refuse
    them all. Programs write what they are given: openpyxl does U+FFFF, others a vertical tab.
    """
    pieces = _in_utf8(file)
    rest = next(pieces, b"")
    while rest:
        more = next(pieces, b"")
        begun = _BEGUN.search(rest, max(0, len(rest) - 20)) if more else None
        piece, rest = (rest, more) if begun is None else (rest[: begun.start()], rest[begun.start() :] + more)
        odd = any(some in piece for some in _ODD) or len(piece.translate(None, _CONTROLS)) < len(piece)
        yield _FORBIDDEN.sub(_escaped, piece) if odd else piece


def _in_utf8(file: IO[bytes]) -> Iterator[bytes]:
    """The pieces of a part in UTF-8, whatever it is written in; half a character of UTF-16 is one by its number, and so
    is a byte that is not UTF-8: that a cell holds it refuses no other.

    Raises ValueError for an encoding that the parser does not have, and for bytes that are not of it.
    """
    piece = file.read(_PIECE)
    decoded = _decoder(piece)
    while piece:
        more = file.read(_PIECE)
        made = decoded(piece, not more).encode("utf-8", "xmlcharrefreplace")
        if made:
            yield made
        piece = more


def _decoder(first: bytes) -> Callable[[bytes, bool], str]:
    """What makes text of the pieces of a part that begins so, told which is the last.

    Raises ValueError for an encoding that the parser does not have: it has those of one character for each byte.
    """
    if b"\0" in first[:2] or first[:2] in (b"\xff\xfe", b"\xfe\xff"):
        order = "" if b"\0" not in first[:2] else "-be" if first[:1] == b"\0" else "-le"
        wide: Callable[[bytes, bool], str] = codecs.getincrementaldecoder(f"utf-16{order}")("surrogatepass").decode
        return wide
    declared = _DECLARED.match(first)
    name = "utf-8" if declared is None else declared.group(2).decode("ascii", "replace").lower()
    if name in ("utf-8", "utf8"):
        narrow: Callable[[bytes, bool], str] = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        return narrow
    letters = ""
    with suppress(LookupError):
        letters = bytes(range(256)).decode(name, "replace").replace("\ufffd", "\ufffe")  # which stands for none
    if len(letters) != 256:
        raise ValueError("an encoding of another kind")
    return lambda piece, _: codecs.charmap_decode(piece, "strict", letters)[0]


def _escaped(match: re.Match[bytes]) -> bytes:
    """What stands for a character that XML forbids, or is the mark; a reference to another one as it was written.

    One of more digits than any program writes is no character's, whatever it says.
    """
    control, last, hexadecimal, decimal, endless = match.groups()
    if endless:
        code = 0x110000
    elif control or last:
        code = ord(control) if control else ord(last.decode())
    else:
        code = int(hexadecimal, 16) if hexadecimal else int(decimal)
    known = code in (9, 10, 13) or 32 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000
    return match.group() if known and chr(code) != _MARK else f"{_MARK}{code:X};".encode()


def text_of(written: str) -> str:
    """A text of a part with the characters that XML forbids in it; for what is no character, half of one.

    >>> text_of("a\\uf8ffB;b"), text_of("\\uf8ffF8FF;"), text_of("\\uf8ffD800;"), text_of("\\uf8ff110000;")
    ('a\\x0bb', '\\uf8ff', '\\ud800', '\\udfff')
    """
    return _MARKED.sub(_unmarked, written) if _MARK in written else written


def _unmarked(match: re.Match[str]) -> str:
    code = int(match.group(1), 16)
    return chr(code) if code < 0x110000 else "\udfff"


def first_of(pieces: Iterator[Parser], made: Sequence[Any]) -> Any:
    """The first of what is made of a part; the rest is looked through for damage, and nothing made of it."""
    for parser in pieces:
        if made:
            parser.StartElementHandler = parser.EndElementHandler = parser.CharacterDataHandler = None
    return made[0] if made else None


def read_part(archive: zipfile.ZipFile, part: str, start: Start) -> None:
    """Call `start` for each element of a part, with its name without namespace."""
    local = Local()

    def begun(parser: Parser) -> None:
        parser.StartElementHandler = lambda name, attributes: start(local[name], attributes)

    for _ in fed(archive, part, begun):
        pass


def number_of(text: str) -> float | int:
    """A number; a whole one that is too large for a double to tell from the next stays whole.

    Raises ValueError where the text is none.

    >>> number_of("1.50"), number_of("1e3"), number_of("9007199254740993"), number_of("1e17"), number_of("1e400")
    (1.5, 1000.0, 9007199254740993, 100000000000000000, inf)
    """
    number = float(text)
    if 2**53 <= abs(number) < inf and (exact := Decimal(text)) == exact.to_integral_value():
        return int(exact)
    return number


def iso_moment(text: str) -> Any:
    """A day or a moment; the text where it is neither.

    >>> iso_moment("2025-01-02"), iso_moment("2025-01-02T03:04:05"), iso_moment("2025-01-02T03:04:05Z")
    (datetime.date(2025, 1, 2), datetime.datetime(2025, 1, 2, 3, 4, 5), '2025-01-02T03:04:05Z')
    """
    if _TIME.fullmatch(text):
        return ODD
    if written := _MOMENT.fullmatch(text):
        with suppress(ValueError):
            if len(written.group(2) or "") > _DIGITS:
                return Cut.of_text(text)
            return dt.datetime.fromisoformat(text) if written.group(1) else dt.date.fromisoformat(text)
    return text
