"""What a mechanism gave, as a matrix of floats: one row per output, the same columns for both data sets.

The first four columns say that and what was raised, the kind of the output, and its length; an exception, another
dtype or another length is an output like any other. Then come the values, padded with NaN: numbers as they are, text
and other objects as a checksum; where integers leave the 53 bits of a float, their low 32 bits follow in columns of
their own. The map may be any function fixed before the counting samples are drawn: it can lose power, never
soundness.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError

__all__ = ["HEAD", "Layout", "Run", "draw", "draw_once", "layout_of", "matrix"]

Floats = NDArray[np.float64]
Run = Callable[[Any, int], Any]

HEAD = 4
_MOST_COLUMNS = 4096
_EXACT = 2**53
_SINGLES = 4096


@dataclass(frozen=True)
class Layout:
    """How many values an output has at most, and whether integers have columns for their low bits."""

    width: int
    low_bits: bool = False

    @property
    def columns(self) -> int:
        """Columns of the matrix."""
        return HEAD + self.width * (1 + self.low_bits)


def draw(run: Run, data: Any, size: int) -> list[Any]:
    """Outputs of `run(data, size)`, as a list of arrays whose first axes add up to `size`; exceptions stay exceptions.

    A batch that raises is asked again one output at a time, because a single output may have raised. What is thrown
    away raised more often than what is asked instead: these outputs are good to learn from, and not to be counted.

    Raises ParameterError where the first axis of what `run` gives is not `size`.
    """
    try:
        given = run(data, size)
    except Exception as error:  # a stranger's callable: what it raises is what it answers
        if size == 1:
            return [error]
        return [part for _ in range(min(size, _SINGLES)) for part in draw(run, data, 1)]
    return [_checked(given, size)]


def draw_once(run: Run, data: Any, size: int, *, singly: bool) -> list[Any]:
    """Outputs to be counted: none is drawn a second time.

    singly: one by one, so that what raises is an output like any other. Otherwise a batch that raises gives nothing;
    its outputs are missing, and must be counted against the bound.
    """
    if singly:
        return [part for _ in range(size) for part in draw(run, data, 1)]
    try:
        given = run(data, size)
    except Exception:  # a stranger's callable may raise whatever it likes
        return []
    return [_checked(given, size)]


def _checked(given: Any, size: int) -> NDArray[Any]:
    try:
        array = np.asarray(given)
    except ValueError:
        array = np.empty(len(given), dtype=object)
        array[:] = given
    if array.ndim == 0 or array.shape[0] != size:
        raise ParameterError(
            f"run(data, {size}) gave an array of shape {array.shape}; give {size} outputs along the first axis."
        )
    return array


def layout_of(*drawn: list[Any]) -> Layout:
    """A layout that holds these outputs."""
    parts = [p for some in drawn for p in some if not isinstance(p, BaseException)]
    width = max((_width(p) for p in parts), default=1)
    return Layout(min(max(width, 1), _MOST_COLUMNS), any(_beyond_floats(p) for p in parts))


def _width(part: NDArray[Any]) -> int:
    if part.dtype == object:
        return max((_flat(v).size for v in part), default=1)
    return int(np.prod(part.shape[1:])) * (2 if part.dtype.kind == "c" else 1)


def _flat(value: Any) -> NDArray[Any]:
    if isinstance(value, str | bytes) or value is None:
        return np.array([value], dtype=object)
    return np.asarray(value, dtype=object).ravel()


def _beyond_floats(part: NDArray[Any]) -> bool:
    if part.dtype.kind in "iu" and part.dtype.itemsize == 8 and part.size:
        return bool(int(part.max()) > _EXACT or int(part.min()) < -_EXACT)
    whole = (v for row in part for v in _flat(row)) if part.dtype == object else ()
    return any(isinstance(v, int) and abs(v) > _EXACT for v in whole)


def matrix(drawn: list[Any], layout: Layout) -> Floats:
    """The outputs as rows of a matrix, by the layout, in the order in which they were drawn."""
    if len(drawn) == 1:
        return _rows(drawn[0], layout)
    sizes = [1 if isinstance(part, BaseException) else len(part) for part in drawn]
    ends = np.cumsum(sizes, dtype=np.int64)
    out = np.empty((int(ends[-1]) if drawn else 0, layout.columns))
    alike: dict[Any, list[int]] = {}
    for i, part in enumerate(drawn):
        raised = isinstance(part, BaseException)
        alike.setdefault(("raised", i) if raised else (part.dtype.str, part.shape[1:]), []).append(i)
    for same in alike.values():
        parts = [drawn[i] for i in same]
        places = np.concatenate([np.arange(ends[i] - sizes[i], ends[i]) for i in same])
        out[places] = _rows(np.concatenate(parts) if len(parts) > 1 else parts[0], layout)
    return out


def _rows(part: Any, layout: Layout) -> Floats:
    if isinstance(part, BaseException):
        out = np.full((1, layout.columns), np.nan)
        out[0, :HEAD] = 1.0, _code(f"{type(part).__name__}: {part}"), 0.0, 0.0
        return out
    if part.dtype == object:
        return _object_rows(part, layout)
    out = np.full((part.shape[0], layout.columns), np.nan)
    wide = part.reshape(part.shape[0], -1)
    if wide.dtype.kind in "SUmMV":
        return _object_rows(np.fromiter((list(row) for row in wide.tolist()), dtype=object, count=len(wide)), layout)
    if wide.dtype.kind == "c":
        wide = np.concatenate([wide.real, wide.imag], axis=1)
    out[:, :HEAD] = 0.0, 0.0, _code(part.dtype.str), wide.shape[1]
    used = min(wide.shape[1], layout.width)
    out[:, HEAD : HEAD + used] = wide[:, :used]
    if layout.low_bits and wide.dtype.kind in "iu":
        out[:, HEAD + layout.width : HEAD + layout.width + used] = wide[:, :used] & wide.dtype.type(2**31 - 1)
    return out


def _object_rows(part: NDArray[Any], layout: Layout) -> Floats:
    out = np.full((len(part), layout.columns), np.nan)
    for i, value in enumerate(part):
        row = _flat(value)
        out[i, :HEAD] = 0.0, 0.0, _code("object"), row.size
        for j, item in enumerate(row[: layout.width]):
            out[i, HEAD + j] = _number(item)
            if layout.low_bits and isinstance(item, int):
                out[i, HEAD + layout.width + j] = item & (2**31 - 1)
    return out


def _number(item: Any) -> float:
    if item is None:
        return float("nan")
    if isinstance(item, bool | int | float | np.number | np.bool_):
        try:
            return float(item.real)
        except OverflowError:
            return float("inf")
    return _code(f"{type(item).__name__}: {item}")


def _code(text: str) -> float:
    """A number that stands for a text."""
    return float(zlib.crc32(text.encode("utf-8", "backslashreplace")) + 1)
