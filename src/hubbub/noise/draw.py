"""Which method draws: tables in bulk, no tables for few draws or for a scale per cell.

Both methods are exact, so the choice shows in the time only; it depends on the number of draws and on the
scales asked for, which are public. In `hardened` mode nothing is looked up in a table whose index depends
on the draw, and the number of random bytes is independent of what is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol, overload

import numpy as np

from hubbub.errors import ParameterError, what_was_given
from hubbub.noise import direct
from hubbub.noise.bits import Bits, system_bits
from hubbub.noise.parameters import (
    MAX_SCALE,
    Cells,
    Integers,
    Number,
    Size,
    approximation,
    cell_shape,
    drawable,
    is_array,
    many_cells,
    one_cell,
    positive,
    shape_of,
)
from hubbub.noise.tables import gaussian_table, laplace_table
from hubbub.noise.workers import in_parts
from hubbub.plain import quick

__all__ = ["Mode", "gaussian", "geometric", "laplace", "mode", "set_mode"]

Mode = Literal["fast", "hardened"]
_MODES: tuple[Mode, ...] = ("fast", "hardened")
_mode: Mode = "fast"

_Many = Callable[[Cells, int, Bits, bool], Integers]
_One = Callable[[float, Callable[[], Fraction], Bits], int]


class _Table(Protocol):
    def fill(self, out: Integers, bits: Bits) -> None: ...


@dataclass(frozen=True, slots=True)
class _Law:
    """The ways to draw from one family. A table pays for itself from `worth_a_table` draws on, roughly."""

    name: str
    many: _Many
    one: _One
    table: Callable[[Fraction], _Table]
    worth_a_table: int


_LAPLACE = _Law("laplace", direct.laplace, direct.laplace_one, lambda b: laplace_table(b, two_sided=True), 1 << 17)
_GEOMETRIC = _Law(
    "geometric", direct.geometric, direct.geometric_one, lambda b: laplace_table(b, two_sided=False), 1 << 17
)
_GAUSSIAN = _Law("gaussian", direct.gaussian, direct.gaussian_one, gaussian_table, 1 << 15)

# A table takes about a megabyte; the oldest goes first.
_MOST_TABLES = 16
_tables: dict[tuple[str, Fraction], _Table] = {}
# Draws from a table are filled in parts of at most this many; more than one thread pays from here on.
_PART = 1 << 19
# The same for draws without a table, which take longer each.
_MANY_CELLS = 1 << 17


def mode() -> Mode:
    """The mode of draws that name none."""
    return _mode


def set_mode(name: Mode) -> None:
    """Choose the process-wide mode: `fast` (the default), or `hardened`, as a service does when it starts."""
    global _mode
    _mode = checked_mode(name)


def checked_mode(name: Mode | None) -> Mode:
    """The mode asked for, or the process-wide one."""
    if name is None:
        return _mode
    if name not in _MODES:
        raise ParameterError(f"mode is {what_was_given(name)}; it is 'fast' or 'hardened'")
    return name


def _in_chunks(
    many: _Many, cells: Cells, shape: tuple[int, ...], bits: Bits, spare: bool, threads: bool = False
) -> Integers:
    n = math.prod(shape)
    out: Integers = np.empty(n, np.int64)

    def chunk(start: int, stop: int) -> None:
        # A caller's np.seterr must not turn exp(-1000) = 0 into an exception that depends on the draw.
        with np.errstate(all="ignore"):
            out[start:stop] = many(cells.part(start, stop), stop - start, bits, spare)

    in_parts(chunk, n, direct.CHUNK, threads=threads and n >= _MANY_CELLS)
    return out.reshape(shape)


def _draws(law: _Law, parameter: Fraction, size: Size, bits: Bits | None, mode: Mode | None) -> int | Integers:
    source = system_bits() if bits is None else bits
    hardened = checked_mode(mode) == "hardened"
    if size is None:
        if hardened:
            return int(_in_chunks(law.many, one_cell(parameter), (1,), source, True)[0])
        return law.one(approximation(parameter), lambda: parameter, source)
    shape = shape_of(size)
    table = None if hardened or not quick("noise tables") else _table(law, parameter, math.prod(shape))
    if table is None:
        return _in_chunks(law.many, one_cell(parameter), shape, source, hardened)
    out: Integers = np.empty(math.prod(shape), np.int64)
    fill = table.fill
    # A source that a test passes is used in one order; the production source has a stream for each thread.
    threads = bits is None and out.size >= _PART
    in_parts(lambda start, stop: fill(out[start:stop], source), out.size, _PART, threads=threads)
    return out.reshape(shape)


def _table(law: _Law, parameter: Fraction, n: int) -> _Table | None:
    """A table where n draws are worth building one, or where one is at hand."""
    key = (law.name, parameter)
    table = _tables.get(key)
    if table is None and n >= law.worth_a_table:
        table = law.table(parameter)
        # No lock, which a fork or a signal handler could find taken for ever; at worst some table is built twice.
        for oldest in list(_tables)[: max(0, len(_tables) - _MOST_TABLES + 1)]:
            _tables.pop(oldest, None)
        _tables[key] = table
    return table


def laplace_draws(scale: Fraction, size: Size, bits: Bits | None, mode: Mode | None) -> int | Integers:
    """Discrete Laplace draws of one scale."""
    return _draws(_LAPLACE, drawable(scale, "scale"), size, bits, mode)


def geometric_draws(scale: Fraction, size: Size, bits: Bits | None, mode: Mode | None) -> int | Integers:
    """Geometric draws of one scale."""
    return _draws(_GEOMETRIC, drawable(scale, "scale"), size, bits, mode)


def gaussian_draws(sigma2: Fraction, size: Size, bits: Bits | None, mode: Mode | None) -> int | Integers:
    """Discrete Gaussian draws of one parameter sigma^2."""
    if sigma2 > MAX_SCALE**2:
        raise ParameterError(
            f"sigma^2 is about 2^{math.ceil(sigma2).bit_length() - 1}; draws are int64, so sigma may be at "
            "most 2^53. Use a coarser grid"
        )
    return _draws(_GAUSSIAN, sigma2, size, bits, mode)


def _cell_draws(cells: Cells, shape: tuple[int, ...], bits: Bits | None, mode: Mode | None, many: _Many) -> Integers:
    hardened = checked_mode(mode) == "hardened"
    source = system_bits() if bits is None else bits
    return _in_chunks(many, cells, shape, source, hardened, threads=bits is None and not hardened)


@overload
def laplace(scale: Number, size: None = None, *, bits: Bits | None = None, mode: Mode | None = None) -> int: ...
@overload
def laplace(scale: Any, size: Any = None, *, bits: Bits | None = None, mode: Mode | None = None) -> Integers: ...
def laplace(scale: Any, size: Any = None, *, bits: Bits | None = None, mode: Mode | None = None) -> int | Integers:
    """Discrete Laplace noise, P(X = x) proportional to exp(-|x|/scale): a Python int, or int64 of shape
    `size`.

    `scale` is an int, a float or a Fraction, taken exactly, or an array with a scale for every cell.

    Raises ParameterError unless 0 < scale <= 2^53.
    """
    if is_array(scale):
        shape = cell_shape(scale, size)
        return _cell_draws(many_cells(scale, shape, "scale", MAX_SCALE), shape, bits, mode, direct.laplace)
    return laplace_draws(positive(scale, "scale"), size, bits, mode)


@overload
def geometric(scale: Number, size: None = None, *, bits: Bits | None = None, mode: Mode | None = None) -> int: ...
@overload
def geometric(scale: Any, size: Any = None, *, bits: Bits | None = None, mode: Mode | None = None) -> Integers: ...
def geometric(scale: Any, size: Any = None, *, bits: Bits | None = None, mode: Mode | None = None) -> int | Integers:
    """One-sided noise, P(K = k) proportional to exp(-k/scale) for k >= 0; otherwise as `laplace`."""
    if is_array(scale):
        shape = cell_shape(scale, size)
        return _cell_draws(many_cells(scale, shape, "scale", MAX_SCALE), shape, bits, mode, direct.geometric)
    return geometric_draws(positive(scale, "scale"), size, bits, mode)


@overload
def gaussian(
    sigma: Number | None = None,
    size: None = None,
    *,
    variance: Number | None = None,
    bits: Bits | None = None,
    mode: Mode | None = None,
) -> int: ...
@overload
def gaussian(
    sigma: Any = None,
    size: Any = None,
    *,
    variance: Any = None,
    bits: Bits | None = None,
    mode: Mode | None = None,
) -> Integers: ...
def gaussian(
    sigma: Any = None,
    size: Any = None,
    *,
    variance: Any = None,
    bits: Bits | None = None,
    mode: Mode | None = None,
) -> int | Integers:
    """Discrete Gaussian noise, P(X = x) proportional to exp(-x^2/(2 sigma^2)): a Python int, or int64 of
    shape `size`.

    Give `sigma`, or `variance` = sigma^2 where sigma itself is irrational; either may be an array with one
    for every cell. Numbers are taken exactly. Raises ParameterError unless 0 < sigma <= 2^53.
    """
    if (sigma is None) == (variance is None):
        raise ParameterError("give exactly one of sigma and variance")
    if variance is None:
        if is_array(sigma):
            shape = cell_shape(sigma, size)
            roots = many_cells(sigma, shape, "sigma", MAX_SCALE)
            cells = Cells(roots.approximate**2, lambda i: roots.exactly(i) ** 2)
            return _cell_draws(cells, shape, bits, mode, direct.gaussian)
        return gaussian_draws(positive(sigma, "sigma") ** 2, size, bits, mode)
    if is_array(variance):
        shape = cell_shape(variance, size)
        cells = many_cells(variance, shape, "variance", MAX_SCALE**2)
        return _cell_draws(cells, shape, bits, mode, direct.gaussian)
    return gaussian_draws(positive(variance, "variance"), size, bits, mode)
