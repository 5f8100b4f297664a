"""The acts of the service, who may do them, and what is read of drawn fields, as recorded.

`HUBBUB_GOLDEN=write` writes it anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from golden.kept import Kept
from hubbub.errors import HubbubError
from hubbub.service.acts import ACTS, Act, checked

EACH = 16
ALL = list(ACTS.values())


def _nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


VALUES: Mapping[type, list[Any]] = {
    str: ["a", "", "\ud800", "x" * 30],
    dict: [{}, {"a": {"b": [1]}}, {"a": _nested(31)}, {"a": _nested(32)}],
    list: [[], [{"a": 1}, "b"], _nested(32), _nested(33)],
    int: [0, -3, 10**20],
    bool: [True, False],
}
ODD: list[Any] = [None, True, 1, 1.5, "text", [], {}]


def _given(chance: Random, act: Act, turn: int) -> object:
    """Fields of an act: mostly those that it has, of their kind. turn: which of them is of another, first."""
    needed = {**act.required, **({"passphrase": str, "reason": str} if act.confirmed else {})}
    if turn < len(needed):
        return {name: chance.choice(VALUES[kind]) for name, kind in needed.items()} | {
            [*needed][turn]: chance.choice(ODD)
        }
    if chance.random() < 0.04:
        return chance.choice(ODD)
    given = {name: chance.choice(VALUES[kind]) for name, kind in needed.items() if chance.random() < 0.95}
    given |= {name: chance.choice(VALUES[kind]) for name, kind in act.optional.items() if chance.random() < 0.5}
    names = list(given)
    if names and chance.random() < 0.4:
        given[chance.choice(names)] = chance.choice(ODD)
    if chance.random() < 0.06:
        given[chance.choice(["passphrase", "reason", "more", "y" * 70])] = "z"
    return given


def _said(at: int) -> str:
    act, chance = ALL[at], Random(f"acts {at}")
    told = [repr(act)]
    for turn in range(EACH):
        given = _given(chance, act, turn)
        told.append(ascii(given))
        try:
            told.append(f"    {checked(act, given)!a}")
        except HubbubError as error:
            told.append(f"    {type(error).__name__}: {error}")
    return "\n".join(told)


RECORDED = Kept("acts", _said, len(ALL))


@pytest.mark.parametrize("at", range(len(ALL)), ids=list(ACTS))
def test_an_act_reads_its_fields_as_recorded(at: int) -> None:
    RECORDED.check(at)


def test_the_recordings_hold_what_is_refused_of_every_kind() -> None:
    told = "\n".join(RECORDED.all())
    for text in ("there is no '", "is missing", "is not a text", "is nested deeper", "an object with its fields"):
        assert text in told, text
    for kind in ("an object", "a list", "a whole number", "true or false"):
        assert f"is not {kind}" in told, kind
