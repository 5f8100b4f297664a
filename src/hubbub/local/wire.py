"""Reports on the wire: a specification that both sides hold, and fixed-width bytes, as JSON lines or Arrow.

The *specification* is a JSON object with everything a client needs; its chances are fractions over 2^64, so that a
client in any language can be exact. Its *key*, the first 16 hex digits of the SHA-256 of its canonical JSON, travels
with each report, so that reports for another survey are not counted. docs/reference/local-wire-format.md has the
format, and test vectors.

Whatever arrives is data from strangers: a line that is not JSON, another version, another key, the wrong width, a value
out of range is dropped and counted, and nothing raises.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hubbub.accounting.amounts import number
from hubbub.errors import ParameterError
from hubbub.local.direct import DirectEncoding
from hubbub.local.draws import Array
from hubbub.local.hadamard import HadamardResponse
from hubbub.local.hashing import LocalHashing
from hubbub.local.heavy import HeavyHitters
from hubbub.local.means import HybridMean, OneBitMean, PiecewiseMean
from hubbub.local.randomizer import Randomizer
from hubbub.local.rappor import Rappor
from hubbub.local.sketch import CountMeanSketch
from hubbub.local.subset import SubsetSelection
from hubbub.local.unary import OptimizedUnary, SymmetricUnary
from hubbub.local.vectors import BallMean

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "VERSION",
    "Wired",
    "aggregate_arrow",
    "aggregate_json",
    "from_bytes",
    "from_specification",
    "key",
    "specification",
    "to_arrow",
    "to_bytes",
    "to_json",
]

VERSION = 1
_KINDS: dict[str, Any] = {
    kind.name: kind
    for kind in (
        DirectEncoding,
        SymmetricUnary,
        OptimizedUnary,
        SubsetSelection,
        LocalHashing,
        HadamardResponse,
        CountMeanSketch,
        Rappor,
        OneBitMean,
        PiecewiseMean,
        HybridMean,
        BallMean,
        HeavyHitters,
    )
}
_CHUNK = 1 << 16


class Wired(Protocol):
    """What travels: any oracle of this room."""

    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> dict[str, object]: ...
    @property
    def randomizer(self) -> Randomizer: ...
    def aggregate(self, reports: Any) -> Any: ...


def specification(oracle: Wired) -> dict[str, object]:
    """The JSON object that says everything a client and a server must agree on.

    Raises ParameterError for labels that are not texts, whole numbers, truth values or None.
    """
    labels = oracle.arguments.get("categories")
    if isinstance(labels, list) and not all(v is None or isinstance(v, str | int) for v in labels):
        raise ParameterError("some label is neither a text, a whole number, a truth value nor None; name it by a text.")
    return {
        "hubbub": "local",
        "version": VERSION,
        "oracle": oracle.name,
        "arguments": oracle.arguments,
        "derived": oracle.randomizer.parameters,
        "report_bytes": oracle.randomizer.report_type.itemsize,
    }


def canonical(specified: dict[str, object]) -> bytes:
    """UTF-8 JSON with sorted keys and no spaces."""
    return json.dumps(specified, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def key(oracle: Wired) -> str:
    """16 hex digits that name the specification.

    >>> key(DirectEncoding(1, 4))
    'cd596033b56a8b41'
    """
    return hashlib.sha256(canonical(specification(oracle))).hexdigest()[:16]


def from_specification(specified: Any) -> Any:
    """The oracle of a specification.

    Raises ParameterError for a version or oracle that is not known, and where the chances in it are not those that this
    version computes, so that a specification cannot weaken a client.
    """
    if isinstance(specified, str | bytes):
        try:
            specified = json.loads(specified)
        except (ValueError, RecursionError):
            raise ParameterError("the specification is not JSON; pass what `specification` made.") from None
    if not isinstance(specified, dict) or specified.get("hubbub") != "local" or specified.get("version") != VERSION:
        raise ParameterError(f"this is not a specification of version {VERSION}; pass what `specification` made.")
    kind, arguments = _KINDS.get(str(specified.get("oracle"))), specified.get("arguments")
    if kind is None or not isinstance(arguments, dict):
        raise ParameterError(f"the specification names no known oracle; known are {', '.join(_KINDS)}.")
    try:
        oracle = kind(**{name: _number(name, value) for name, value in arguments.items()})
    except ParameterError:
        raise
    except (TypeError, ValueError, ZeroDivisionError):
        raise ParameterError(f"the specification's arguments do not fit {kind.__name__}.") from None
    if canonical(specification(oracle)) != canonical(specified):
        raise ParameterError("the specification's derived numbers are not those of its arguments; make it anew.")
    return oracle


def _number(name: str, value: Any) -> Any:
    """Rationals travel as texts; labels and public names stay as they are."""
    # A specification comes from outside: "1e30000000" is a short text, and a number that nobody could hold.
    return number(value, name) if name in ("lower", "upper", "radius") else value


def to_bytes(oracle: Wired, reports: Any) -> Array:
    """Reports as rows of bytes, shape (n, report_bytes)."""
    kind = oracle.randomizer.report_type
    array = np.ascontiguousarray(reports, dtype=kind.base)
    return array.reshape(-1, *kind.shape).view(np.uint8).reshape(-1, kind.itemsize)


def from_bytes(oracle: Wired, rows: Array) -> Array:
    """The reports in rows of bytes; what is out of range is for `aggregate` to drop."""
    kind = oracle.randomizer.report_type
    return np.ascontiguousarray(rows).view(kind.base).reshape(-1, *kind.shape)


def to_json(oracle: Wired, reports: Any) -> Iterator[str]:
    """One line per report: {"k": key, "r": base64url of its bytes without padding, "v": version}."""
    name = key(oracle)
    for row in to_bytes(oracle, reports):
        text = base64.urlsafe_b64encode(row.tobytes()).rstrip(b"=").decode()
        yield f'{{"k":"{name}","r":"{text}","v":{VERSION}}}'


def _report(line: object, name: str, width: int) -> bytes | None:
    """The bytes of one line, or None."""
    if not isinstance(line, str | bytes | bytearray) or len(line) > 4 * width + 1000:
        return None
    try:
        report = json.loads(line)
        if not isinstance(report, dict) or report.get("k") != name:
            return None
        if type(report.get("v")) is not int or report["v"] != VERSION:  # True and 1.0 are other spellings
            return None
        text = report.get("r")
        if not isinstance(text, str) or len(text) != -(-width * 4 // 3):
            return None
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, RecursionError, binascii.Error):
        return None
    # One report has one spelling: stray bits in its last digit are refused.
    same = base64.urlsafe_b64encode(data).rstrip(b"=").decode() == text
    return data if same and len(data) == width else None


def aggregate_json(oracle: Wired, lines: Iterable[str | bytes]) -> Any:
    """The tally of reports in JSON lines, read as a stream; empty lines are skipped, bad ones dropped and counted."""
    name, width = key(oracle), oracle.randomizer.report_type.itemsize
    total = _tally(oracle, [])
    kept: list[bytes] = []
    dropped = 0
    for line in lines:
        if isinstance(line, str | bytes | bytearray) and not line.strip():
            continue
        report = _report(line, name, width)
        if report is None:
            dropped += 1
            continue
        kept.append(report)
        if len(kept) == _CHUNK:
            total = total + _tally(oracle, kept)
            kept.clear()
    return _with_dropped(total + _tally(oracle, kept), dropped)


def _tally(oracle: Wired, reports: list[bytes]) -> Any:
    rows = np.frombuffer(b"".join(reports), np.uint8).reshape(-1, oracle.randomizer.report_type.itemsize)
    return oracle.aggregate(from_bytes(oracle, rows))


def _with_dropped(tally: Any, dropped: int) -> Any:
    return dataclasses.replace(tally, dropped=tally.dropped + dropped)


def to_arrow(oracle: Wired, reports: Any) -> pa.Table:
    """A table with one column `report` of fixed-size binaries; the specification is the schema's metadata."""
    import pyarrow as pa

    rows = to_bytes(oracle, reports)
    kind = pa.binary(oracle.randomizer.report_type.itemsize)
    schema = pa.schema([pa.field("report", kind, nullable=False)], {b"hubbub.local": canonical(specification(oracle))})
    column = pa.FixedSizeBinaryArray.from_buffers(kind, len(rows), [None, pa.py_buffer(rows.tobytes())])
    return pa.table([column], schema=schema)


def aggregate_arrow(oracle: Wired, batches: Any) -> Any:
    """The tally of Arrow record batches (a table, a reader, any iterable of batches), read as a stream.

    A batch with another column or width is dropped whole, each of its rows counted; so are NULLs.
    """
    import pyarrow as pa

    width = oracle.randomizer.report_type.itemsize
    total = _tally(oracle, [])
    for batch in batches.to_batches() if isinstance(batches, pa.Table) else batches:
        names = batch.schema.names
        if names.count("report") != 1 or batch.schema.field("report").type != pa.binary(width):
            total = _with_dropped(total, batch.num_rows)
            continue
        column = batch.column(names.index("report"))
        total = _with_dropped(total, column.null_count)
        column = column.drop_null()
        data = np.frombuffer(column.buffers()[1] or b"", np.uint8)[: (column.offset + len(column)) * width]
        rows = data.reshape(-1, width)[column.offset :]
        total = total + oracle.aggregate(from_bytes(oracle, rows))
    return total
