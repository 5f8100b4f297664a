"""Structural constraints: combinations of values that no record may have, declared by the user.

A constraint is a table of booleans over some columns: which combinations are possible. It is public and never checked
against private rows; a model gives impossible cells no mass, and rounding never puts a record there (`sampling`), so no
synthetic record violates one.

Text: conditions `column op value`, joined by `and`, on both sides of `implies`:

    age < 18 implies married = no
    age < 15 and region = north implies income < 1000

op is one of = != < <= > >=; a missing value fulfils no condition. For bins a condition has to be decided by the bin.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError, what_was_given
from hubbub.remedies import GiveOptions
from hubbub.spelling import meant_by
from hubbub.synthesis.domain import Domain
from hubbub.synthesis.records import Categories, Edges, Schema

__all__ = ["Constraint", "constraint"]

Flags = NDArray[np.bool_]

_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_CONDITION: Final = re.compile(r"""\s*("[^"]+"|[^\s<>=!]+)\s*(!=|<=|>=|<|>|=)\s*("[^"]*"|'[^']*'|\S.*?)\s*$""")


@dataclass(frozen=True)
class Constraint:
    """Which combinations of some columns' codes are possible: a boolean table of shape (size_j for j in columns)."""

    columns: tuple[str, ...]
    allowed: Flags

    def __post_init__(self) -> None:
        allowed = np.asarray(self.allowed, dtype=np.bool_)
        object.__setattr__(self, "allowed", allowed)
        said = self.columns if type(self.columns) is tuple else what_was_given(self.columns)
        if allowed.ndim != len(self.columns) or len(set(self.columns)) != len(self.columns) or not self.columns:
            raise ParameterError(f"a constraint over {said} has a table of {allowed.ndim} axes; give one each.")
        if not allowed.any():
            raise ParameterError(f"a constraint over {said} allows nothing; no record could exist.")

    def over(self, domain: Domain) -> Constraint:
        """The same, its columns in the order of a domain. Raises ParameterError where it does not fit it."""
        columns = domain.marginal(self.columns)
        allowed = np.transpose(self.allowed, [self.columns.index(c) for c in columns])
        if allowed.shape != domain.shape(columns):
            raise ParameterError(
                f"a constraint over {columns} has the shape {allowed.shape}; the domain has {domain.shape(columns)}."
            )
        return Constraint(columns, allowed)

    def classes(self, column: str) -> NDArray[np.int64]:
        """For each code of a column the class of codes that the constraint treats alike."""
        axis = self.columns.index(column)
        rows = np.moveaxis(self.allowed, axis, 0).reshape(self.allowed.shape[axis], -1)
        return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)

    def holds(self, codes: NDArray[np.int64], domain: Domain) -> Flags:
        """Which records are possible. codes: (n, d)."""
        return np.asarray(self.allowed[tuple(codes[:, domain.place(c)] for c in self.columns)])


def constraint(text: str, schema: Schema, beside: Sequence[str] = ()) -> Constraint:
    """The constraint that a text states, over the codes of a schema. beside: all that are given with it, itself too.

    >>> people = Schema({"age": Edges([0, 18, 120]), "married": Categories("no", "yes")})
    >>> constraint("age < 18 implies married = no", people).allowed
    array([[ True, False],
           [ True,  True]])

    Raises ParameterError for text that does not parse, unknown columns, and conditions inside a bin.
    """
    sides = re.split(r"\s+implies\s+", text.strip(), flags=re.IGNORECASE)
    if len(sides) != 2:
        raise ParameterError(
            f"constraint {what_was_given(text)}: expected 'condition implies condition', as in 'a < 1 implies b = x'."
        )
    before, after = (_conditions(side, text, schema, beside) for side in sides)
    columns = schema.domain.marginal(sorted({c for c, _ in (*before, *after)}))
    return Constraint(columns, ~_all(before, columns, schema) | _all(after, columns, schema))


def _conditions(side: str, text: str, schema: Schema, beside: Sequence[str]) -> list[tuple[str, Flags]]:
    return [_condition(part, text, schema, beside) for part in re.split(r"\s+and\s+", side, flags=re.IGNORECASE)]


def _condition(part: str, text: str, schema: Schema, beside: Sequence[str]) -> tuple[str, Flags]:
    match = _CONDITION.match(part)
    if match is None:
        raise ParameterError(
            f"constraint {what_was_given(text)}: {what_was_given(part)} is not a condition; write one as in age < 18."
        )
    name, sign, value = match[1].strip('"'), match[2], match[3].strip("\"'")
    if name not in schema.columns:
        ways = _meant(match, text, schema, beside)
        raise ParameterError(
            f"constraint {what_was_given(text)}: no column {what_was_given(name)}; declared are "
            f"{', '.join(schema.columns)}."
            f"{''.join(f' Write {way.in_python()}.' for way in ways)}",
            remedy=ways,
        )
    column = schema.columns[name]
    if isinstance(column, Categories):
        return name, _of_categories(column, sign, value)
    return name, _of_bins(column, sign, value, text)


def _meant(match: re.Match[str], text: str, schema: Schema, beside: Sequence[str]) -> tuple[GiveOptions, ...]:
    """All constraints with the column that was meant by the one of a condition; nothing where it is not plain which."""
    near = meant_by(match[1].strip('"'), schema.columns)
    if near is None or text.count(match.string) != 1:
        return ()
    named = near if re.fullmatch(r"[^\s<>=!\"]+", near) else f'"{near}"'
    start, end = match.span(1)
    instead = text.replace(match.string, f"{match.string[:start]}{named}{match.string[end:]}")
    try:
        constraint(instead, schema)
    except ParameterError:
        return ()
    return (GiveOptions(("constraints",), ([instead if one == text else one for one in beside or (text,)],)),)


def _of_categories(column: Categories, sign: str, value: str) -> Flags:
    compare = _OPERATORS[sign]
    flags = []
    for known in column.values:
        if known is None:
            flags.append(False)
        elif isinstance(known, str | bool):
            flags.append(compare(str(known).lower() if isinstance(known, bool) else known, value))
        else:
            flags.append(compare(known, _float(value)))
    return np.array(flags)


def _of_bins(column: Edges, sign: str, value: str, text: str) -> Flags:
    limit = _float(value)
    ends = [e - 1 if column.whole else e for e in column.edges[1:]]
    flags = []
    for low, high in zip(column.edges[:-1], ends, strict=True):
        least, most = _OPERATORS[sign](low, limit), _OPERATORS[sign](max(low, high), limit)
        # Bins of reals are half open: x < e holds for all of a bin that ends at e.
        if not column.whole and sign in ("<", ">="):
            most = (high <= limit) if sign == "<" else (low >= limit)
        inside = sign in ("=", "!=") and low < limit < high
        if least != most or inside:
            raise ParameterError(
                f"constraint {what_was_given(text)}: the bin from {low:g} to {high:g} holds numbers on both sides "
                f"of {value}; declare an edge there."
            )
        flags.append(bool(least))
    return np.array([*flags, *([False] if column.nullable else [])])


def _float(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ParameterError(f"a constraint compares a number with {what_was_given(value)}; give a number.") from None


def _all(conditions: Sequence[tuple[str, Flags]], columns: tuple[str, ...], schema: Schema) -> Flags:
    out = np.ones(schema.domain.shape(columns), np.bool_)
    for name, flags in conditions:
        out &= flags.reshape([-1 if c == name else 1 for c in columns])
    return out
