"""What to do about a refusal, as data: `error.remedy`, which each face says in its own words.

A remedy changes what was asked or what is declared so that the question is then answered, with the same columns and as
many groups. What only a person can know, such as the range of a column, is a blank: `fill` it, never from the rows.

>>> remedy = DeclareRange("age")
>>> remedy.in_python()
'columns={"age": hb.between(low, high)}'
>>> remedy.on_a_page()
'age = { between = [low, high] } under the columns of its table in the policy file (a steward writes it)'
>>> remedy.fill(low=0, high=120).in_python()
'columns={"age": hb.between(0, 120)}'
>>> read_remedy(remedy.to_wire()) == remedy
True
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hubbub.errors import ParameterError
from hubbub.remedies.asked import (
    AskLess,
    GiveKeys,
    GiveOptions,
    GiveParameter,
    KeepBudget,
    LeaveOut,
    Rewrite,
    UseDelta,
)
from hubbub.remedies.base import Attempt, Remedy, from_json
from hubbub.remedies.declared import (
    AllowOthers,
    DeclareLimits,
    DeclareRange,
    DeclareType,
    DeclareValues,
    TrimBlanks,
)
from hubbub.remedies.mended import (
    CallTable,
    CorrectName,
    CorrectPolicy,
    DeclareColumn,
    DeclareOption,
    DeclareTypes,
    DeclareWithout,
)

__all__ = [
    "REMEDIES",
    "AllowOthers",
    "AskLess",
    "Attempt",
    "CallTable",
    "CorrectName",
    "CorrectPolicy",
    "DeclareColumn",
    "DeclareLimits",
    "DeclareOption",
    "DeclareRange",
    "DeclareType",
    "DeclareTypes",
    "DeclareValues",
    "DeclareWithout",
    "GiveKeys",
    "GiveOptions",
    "GiveParameter",
    "KeepBudget",
    "LeaveOut",
    "Remedy",
    "Rewrite",
    "TrimBlanks",
    "UseDelta",
    "read_remedy",
]

REMEDIES: Final[Mapping[str, type[Remedy]]] = {
    remedy.kind: remedy
    for remedy in (
        DeclareRange, DeclareValues, AllowOthers, TrimBlanks, DeclareType, DeclareLimits, GiveKeys, GiveParameter,
        GiveOptions, LeaveOut, UseDelta, KeepBudget, AskLess, Rewrite, CorrectName, CorrectPolicy, DeclareColumn,
        DeclareOption, DeclareTypes, DeclareWithout, CallTable,
    )
}  # fmt: skip
"""All kinds of remedy that there are, by the name they have on the wire."""


def read_remedy(wire: Mapping[str, Any]) -> Remedy:
    """What `to_wire` wrote.

    Raises ParameterError for anything else.
    """
    try:
        parts = {name: from_json(value) for name, value in wire.items() if name != "remedy"}
        return REMEDIES[wire["remedy"]](**parts)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ParameterError("this is not a remedy of this version of hubbub.") from None


def __dir__() -> list[str]:
    return sorted(__all__)
