"""An answer as another process reads it: the table, and the ends of its intervals at the levels people ask for.

    text = release.to_wire()                one JSON document, amounts as exact texts
    answer = Release.from_wire(text)        the same answer, without an engine, a ledger or the SQL above the aggregates

Everything in it was released already. What needs the laws of the noise (other levels, draws) stays with the sender.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from hubbub.accounting.amounts import ratio
from hubbub.arguments import a_level
from hubbub.errors import ParameterError, QueryError
from hubbub.file_formats import spreadsheet_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hubbub.answer.release import Release

__all__ = ["LEVELS", "SentAnswer", "arrow_stream", "csv_text", "read_release", "written_release"]

_FORMAT: Final = "release 1"
LEVELS: Final = (0.5, 0.68, 0.8, 0.9, 0.95, 0.99, 0.999)
"""The levels at which intervals are sent."""


@dataclass(frozen=True, eq=False)
class SentAnswer:
    """What was sent of an answer. sent: the ends of the intervals, by level and position of the column."""

    table: pa.Table
    keys: tuple[int, ...]
    numbers: tuple[int, ...]
    choices: frozenset[int]
    promises: tuple[str, ...]
    sent: Mapping[float, Mapping[int, tuple[Any, Any]]]
    bounded: tuple[str, ...] = ()
    ranges: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    stopped: bool = False

    def ends(self, i: int, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """The ends of a column's intervals.

        Raises ParameterError for a level that was not sent.
        """
        if level not in self.sent:
            shown = ", ".join(f"{known:g}" for known in self.sent)
            raise ParameterError(f"level={level:g}: this answer was sent with intervals at {shown}. Take one of these.")
        return self.sent[level].get(i)

    def draws(self, n: int | None = None) -> Any:
        """Raises QueryError: other draws of the noise are made where the answer is."""
        raise QueryError("an answer that was sent has no draws; its intervals are there. Ask where it was released.")


def written_release(release: Release, level: float | None = None) -> str:
    """A release as one JSON document. level: one more at which its intervals are written."""
    answered, table = release._answered, release.to_arrow()
    ends = {
        str(level): {str(i): [_numbers(end) for end in both] for i, both in release._every_end(level).items()}
        for level in dict.fromkeys([*LEVELS, *([] if level is None else [a_level(level)])])
    }
    wire = {
        "format": _FORMAT,
        "cost": str(release.cost),
        "charged": release.charged,
        "charge_id": release.charge_id,
        "epsilon": str(release.epsilon),
        "receipt": dict(release.receipt),
        "notes": list(release.text.notes),
        "table": base64.b64encode(arrow_stream(table)).decode("ascii"),
        "exact": answered is None,
        "keys": [] if answered is None else list(answered.keys),
        "numbers": [] if answered is None else list(answered.numbers),
        "choices": [] if answered is None else sorted(answered.choices),
        "promises": [] if answered is None else list(answered.promises),
        "bounded": list(release.text.bounded),
        "ranges": {} if answered is None else {str(i): list(both) for i, both in answered.ranges.items()},
        "ends": {} if answered is None else ends,
    }
    return json.dumps(wire, default=str)


def arrow_stream(table: pa.Table) -> bytes:
    """A table as Arrow's IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def csv_text(table: pa.Table) -> str:
    """A table as CSV, in which no name and no text is a spreadsheet's formula."""
    import pyarrow.csv as pc

    columns = [
        pa.array([None if v is None else spreadsheet_text(v) for v in column.to_pylist()], pa.string())
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        else column
        for column in table.columns
    ]
    sink = pa.BufferOutputStream()
    pc.write_csv(pa.table(columns, names=[spreadsheet_text(name) for name in table.column_names]), sink)
    return bytes(sink.getvalue().to_pybytes()).decode("utf-8")


def read_release(text: str) -> dict[str, Any]:
    """What `written_release` wrote, as the fields of a release.

    Raises ParameterError for anything else.
    """
    try:
        wire = json.loads(text)
        if wire["format"] != _FORMAT:
            raise ValueError("the release of another hubbub")
        with pa.ipc.open_stream(base64.b64decode(wire["table"])) as stream:
            table = stream.read_all()
        sent = {
            float(level): {int(i): (_array(low), _array(high)) for i, (low, high) in ends.items()}
            for level, ends in wire["ends"].items()
        }
        answer = SentAnswer(
            table,
            tuple(wire["keys"]),
            tuple(wire["numbers"]),
            frozenset(wire["choices"]),
            tuple(wire["promises"]),
            sent,
            tuple(wire["bounded"]),
            {int(i): (float(low), float(high)) for i, (low, high) in wire["ranges"].items()},
        )
        return {
            "cost": ratio(wire["cost"]),
            "charged": bool(wire["charged"]),
            "charge_id": str(wire["charge_id"]),
            "receipt": dict(wire["receipt"]),
            "epsilon": ratio(wire["epsilon"]),
            "_notes": tuple(wire["notes"]),
            "_answered": None if wire["exact"] else answer,
            "_exact": table if wire["exact"] else None,
        }
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, pa.ArrowException):
        raise ParameterError("this is not an answer of this version of hubbub.") from None


def _numbers(end: Any) -> list[float | str | None]:
    """Floats as JSON: NaN, which is NULL, as null; infinite ones as text."""
    return [None if np.isnan(x) else float(x) if np.isfinite(x) else str(float(x)) for x in np.asarray(end, float)]


def _array(numbers: list[float | str | None]) -> NDArray[np.float64]:
    return np.array([np.nan if x is None else float(x) for x in numbers], np.float64)
