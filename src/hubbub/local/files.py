"""Surveys in files: a CSV column in, reports out; reports in, a tally out. Everything is read as a stream.

Reports are JSON lines, or an Arrow IPC file where the name ends in .arrow. A CSV is read as text: UTF-8, one header
line, and labels match as they are written, blanks at the ends removed.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hubbub.errors import ParameterError, PolicyError, what_was_given
from hubbub.local.oracle import FrequencyOracle, Tally
from hubbub.local.wire import (
    Wired,
    aggregate_arrow,
    aggregate_json,
    canonical,
    from_specification,
    specification,
    to_arrow,
    to_json,
)

__all__ = ["aggregate_file", "privatize_file", "read_specification", "write_specification"]

_ROWS = 1 << 16
_LONGEST = 1 << 20


def write_specification(oracle: Wired, path: str | Path) -> None:
    """Write the survey's specification as JSON."""
    Path(path).write_text(json.dumps(specification(oracle), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_specification(path: str | Path) -> FrequencyOracle:
    """The oracle of a specification file. Raises PolicyError where it is not a readable survey of categories."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise PolicyError(
            f"the specification {str(path)!r} cannot be read; make one with: hubbub survey plan"
        ) from None
    oracle = from_specification(text)
    if not isinstance(oracle, FrequencyOracle):
        raise PolicyError("the specification is not one of a survey with categories; use it from Python.")
    return oracle


def _texts(path: Path, column: str) -> Iterator[list[str]]:
    """The column's values in lists of up to 2^16."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        if header.count(column) != 1:
            raise PolicyError(
                f"the file has no single column named {what_was_given(column)}. Its header: {', '.join(header[:20])}."
            )
        place = header.index(column)
        values = (row[place].strip() if place < len(row) else "" for row in rows if row)
        while some := list(islice(values, _ROWS)):
            yield some


def _places(oracle: FrequencyOracle) -> Callable[[str], int]:
    """From a text to the place of the category that prints like it; -1 for others."""
    if oracle.labels is None:
        size = oracle.size

        def number(text: str) -> int:
            value = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else -1
            return value if value < size else -1

        return number
    table = {str(label): place for place, label in enumerate(oracle.labels)}
    return lambda text: table.get(text, -1)


def privatize_file(
    oracle: FrequencyOracle, source: str | Path, column: str, target: str | Path, *, unknown: str | None = None
) -> int:
    """Randomise one CSV column; how many reports were written. `unknown`: the category that other answers count as.

    Raises ParameterError, before the target is touched, for an answer that is not a category, without `unknown`.
    """
    path, place = Path(source), _places(oracle)
    other = -1 if unknown is None else place(unknown)
    try:
        if other < 0 and any(place(text) < 0 for some in _texts(path, column) for text in some):
            raise ParameterError(
                "some answer is not one of the categories. Say which category it counts as: --unknown CATEGORY."
            )
        batches = (np.array([place(text) for text in some], np.int64) for some in _texts(path, column))
        return _write(oracle, (oracle.randomizer.release(np.where(p < 0, other, p)) for p in batches), Path(target))
    except csv.Error:
        raise PolicyError("the CSV file cannot be read: it holds a field that is too long, or a zero byte.") from None
    except OSError as error:
        raise PolicyError(f"a file cannot be read or written: {error.strerror or 'unknown reason'}.") from None


def _write(oracle: FrequencyOracle, reports: Iterator[Any], target: Path) -> int:
    n = 0
    if target.suffix == ".arrow":
        import pyarrow as pa

        schema = to_arrow(oracle, oracle.randomizer.release(np.empty(0, np.int64))).schema
        with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for some in reports:
                writer.write_table(to_arrow(oracle, some))
                n += len(some)
        return n
    with target.open("w", encoding="ascii", newline="\n") as file:
        for some in reports:
            file.writelines(line + "\n" for line in to_json(oracle, some))
            n += len(some)
    return n


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines, each cut at 2^20 bytes (which makes it malformed), so that no line fills the memory."""
    while line := file.readline(_LONGEST):
        yield line
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(_LONGEST)


def aggregate_file(oracle: FrequencyOracle, path: str | Path) -> Tally:
    """The tally of a file of reports; what is malformed is dropped and counted.

    Raises PolicyError where the file cannot be read, or an Arrow file is of another survey.
    """
    source = Path(path)
    try:
        if source.suffix == ".arrow":
            import pyarrow as pa

            with pa.memory_map(str(source)) as mapped, pa.ipc.open_file(mapped) as reader:
                if (reader.schema.metadata or {}).get(b"hubbub.local") != canonical(specification(oracle)):
                    raise PolicyError("the Arrow file holds reports of another survey, or of another version of this.")
                batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
                tally: Tally = aggregate_arrow(oracle, batches)
                return tally
        with source.open("rb") as file:
            summed: Tally = aggregate_json(oracle, _lines(file))
            return summed
    except (OSError, ValueError):
        # pyarrow's errors of damaged files are ValueErrors; ours of a wrong survey is not.
        raise PolicyError(f"{str(source)!r} cannot be read as reports.") from None
