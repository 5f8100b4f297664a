"""What a policy file declares of columns: their values, and their types."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from hubbub.ledger.policy_values import PolicyValues
from hubbub.ledger.service_policy import is_found

__all__ = ["KINDS", "read_columns", "read_types"]

KINDS: Final = ("integer", "number", "text", "boolean", "date", "timestamp")
_ENDS: Final = (int, float, str, datetime.date, datetime.time)


def read_columns(reader: PolicyValues, at: tuple[str, ...], body: object) -> Mapping[str, Mapping[str, Any]]:
    """What `[tables.NAME.columns]` declares of each column. Raises PolicyError, with the line, for what is wrong."""
    section = reader.section(at, body)
    return MappingProxyType({name: _domain(reader, (*at, name), value) for name, value in section.items()})


def read_types(reader: PolicyValues, at: tuple[str, ...], body: object) -> Mapping[str, str]:
    """The kind that `[tables.NAME.types]` names of each column. Raises PolicyError, with the line."""
    section = reader.section(at, body)
    return MappingProxyType({name: reader.choice((*at, name), kind, KINDS) for name, kind in section.items()})


def _domain(reader: PolicyValues, at: tuple[str, ...], body: object) -> Mapping[str, Any]:
    section = reader.section(at, body, example="{ between = [0, 120] } or { one_of = [...] }")
    reader.known(at, section, ("between", "nullable", "tz", "one_of", "null", "other", "others", "trim", "edges"))
    owners = [name for name in ("between", "one_of", "edges") if name in section]
    if len(owners) != 1 and not (not owners and "trim" in section):
        raise reader.wrong(
            at,
            "declare between = [low, high], one_of = [values] or edges = [e0, e1, ...], exactly one of them; of "
            "text whose values are not declared, trim = true",
        )
    owner = owners[0] if owners else "trim"
    flags = {"one_of": ("null", "others", "trim"), "trim": ()}.get(owner, ("nullable",))
    others = {"one_of": ["other"], "between": ["tz"]}.get(owner, [])
    reader.known(at, section, (owner, *flags, *others))
    for choice in (*flags, *(["trim"] if owner == "trim" else [])):
        if not isinstance(section.get(choice, False), bool):
            raise reader.wrong(at, f"{choice} is {section[choice]!r}; allowed: true or false")
    if owner == "between":
        _check_interval(reader, at, section["between"])
        reader.text((*at, "tz"), section.get("tz"))
    elif owner == "edges":
        _check_edges(reader, at, section["edges"])
    elif owner == "one_of":
        reader.text((*at, "other"), section.get("other"))
        _check_values(reader, at, section["one_of"])
    return MappingProxyType(section)


def _check_interval(reader: PolicyValues, at: tuple[str, ...], ends: object) -> None:
    if not isinstance(ends, list) or len(ends) != 2:
        raise reader.wrong(at, f"between is {ends!r}; allowed: a list of two values, [low, high]")
    low, high = ends
    if is_found(reader, at, low, high):
        return
    if any(isinstance(end, float) and not math.isfinite(end) for end in ends):
        raise reader.wrong(at, f"between is {ends!r}; both ends must be finite")
    if not isinstance(low, _ENDS) or isinstance(low, bool) or isinstance(high, bool):
        raise reader.wrong(at, f"between is {ends!r}; allowed: numbers, dates, times or ISO text")
    try:
        ordered = low < high
    except TypeError:
        raise reader.wrong(at, f"between is {ends!r}; both ends must be of one kind") from None
    if not ordered:
        turned = reader.lines.corrected(at, f"[{low}, {high}]", f"[{high}, {low}]") if low != high else ()
        raise reader.wrong(at, f"between is {ends!r}; the first end must be below the second", turned)


def _check_edges(reader: PolicyValues, at: tuple[str, ...], ends: object) -> None:
    numbers = isinstance(ends, list) and all(isinstance(e, int | float) and not isinstance(e, bool) for e in ends)
    if not isinstance(ends, list) or len(ends) < 2 or not numbers or any(not math.isfinite(e) for e in ends):
        raise reader.wrong(at, f"edges is {ends!r}; allowed: a list of two numbers or more, in increasing order")
    if any(a >= b for a, b in itertools.pairwise(ends)):
        raise reader.wrong(at, f"edges is {ends!r}; the numbers must increase")


def _check_values(reader: PolicyValues, at: tuple[str, ...], values: object) -> None:
    if not isinstance(values, list) or not values:
        raise reader.wrong(at, f"one_of is {values!r}; allowed: a list of one value or more")
    for value in values:
        if not isinstance(value, _ENDS):
            raise reader.wrong(at, f"one_of holds {value!r}; allowed: text, numbers, dates, times, true, false")
