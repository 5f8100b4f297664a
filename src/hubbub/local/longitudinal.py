"""Asking the same people again: memoised answers, and what repetition costs.

Fresh reports of one value at epsilon each add up: t of them cost t epsilon, and who averages them learns the value. A
*memoised* client draws its report once per value and repeats it (Erlingsson, Pihur, Korolova 2014, the "permanent"
response). With one report M[v] for every value v, the sequence M[x_1], M[x_2], ... of a person whose answers take c
different values is c reports and the *pattern* of when which is repeated. So two histories with the same pattern are
c epsilon apart; a value that never changes costs epsilon, however often it is asked for.

The pattern is not hidden: that and when an answer changed is plain to see, and no epsilon bounds what follows from it.
`Rappor` blurs it: with `Rappor`, the memory keeps the permanent response and each report is randomised once more.
"""

from __future__ import annotations

import base64
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from hubbub.accounting.amounts import Number
from hubbub.accounting.events import Event, PureDP, Repeated
from hubbub.errors import ParameterError
from hubbub.local.draws import Array
from hubbub.local.oracle import FrequencyOracle, epsilon_above_zero, whole
from hubbub.local.rappor import Rappor
from hubbub.local.wire import from_bytes, to_bytes
from hubbub.noise import Bits

__all__ = ["Memory", "repeated_loss"]


def repeated_loss(epsilon: Number, rounds: int, *, memoised: bool, values: int = 1) -> Event:
    """What `rounds` reports of one person cost: fresh ones add up; memoised ones cost epsilon per different value, for
    histories with the same pattern of changes.

    >>> repeated_loss(1, 365, memoised=True), repeated_loss(1, 365, memoised=False).times
    (PureDP(epsilon=Fraction(1, 1)), 365)
    """
    each, times = epsilon_above_zero(epsilon), whole(rounds, "rounds", 1, 1 << 40)
    if memoised:
        return PureDP(each * min(whole(values, "values", 1, 1 << 40), times))
    return Repeated(PureDP(each), times)


class Memory:
    """One person's device: the report for each value is drawn once. Keep it with `state`, or the promise ends.

    >>> from hubbub.local import DirectEncoding
    >>> memory = Memory(DirectEncoding(1, 4))
    >>> int(memory.report(2)) == int(memory.report(2)), memory.loss.epsilon
    (True, Fraction(1, 1))
    """

    def __init__(self, oracle: FrequencyOracle, state: Mapping[str, str] | None = None) -> None:
        self.oracle = oracle
        self._kept: dict[int, Array] = {}
        for place, text in (state or {}).items():
            self._kept[_number(place)] = self._restored(_number(place), text)

    def report(self, value: Hashable, *, bits: Bits | None = None) -> Any:
        """The report for this value: the one drawn before, if there is one."""
        place = int(self.oracle.indexes([value])[0])
        if place not in self._kept:
            self._kept[place] = self._draw(value, bits)
        kept = self._kept[place]
        if isinstance(self.oracle, Rappor):
            return self.oracle.instantaneous(kept, bits=bits)[0]
        return kept[0]

    @property
    def loss(self) -> Event:
        """What all reports so far cost, for histories with the same pattern of changes.

        It tells how many different values this person had, which is private: do not publish it, nor a sum of it.
        """
        return PureDP(self.oracle.epsilon * len(self._kept))

    def state(self) -> dict[str, str]:
        """Base64 of what to keep, by category. As secret as the answers."""
        return {
            str(place): base64.b64encode(to_bytes(self.oracle, kept).tobytes()).decode()
            for place, kept in self._kept.items()
        }

    def _draw(self, value: Hashable, bits: Bits | None) -> Array:
        if isinstance(self.oracle, Rappor):
            return self.oracle.permanent([value], bits=bits)
        return self.oracle.privatize([value], bits=bits)

    def _restored(self, place: int, text: str) -> Array:
        try:
            data = np.frombuffer(base64.b64decode(text, validate=True), np.uint8)
        except ValueError:
            data = np.empty(0, np.uint8)
        if not 0 <= place < self.oracle.size or data.size != self.oracle.report_bytes:
            raise ParameterError("the memory's state is not one of this oracle; restore what `state` returned.")
        return from_bytes(self.oracle, data[None, :])


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() else -1
