"""What a client does, exactly: the law of one report, given what its person has.

A *local randomizer* is the part of a protocol that runs on a device, and all that its privacy depends on. It is a
mechanism as those of `hubbub.mechanisms` are: `loss` is what one report costs, `release` draws reports, `log_prob` is
their law, and `chance` the same as an exact rational. What a report is about is a place among the categories, a step
of a grid, ...; labels, tallies and estimates are the business of the oracle that holds the randomizer.

Privacy is that of one report, replace neighbours: chance(r, v) <= e^epsilon chance(r, v') for all r, v, v'.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from hubbub.accounting.events import Event, PureDP
from hubbub.errors import ParameterError
from hubbub.local.draws import Array, Integers
from hubbub.moved import Moved
from hubbub.noise import Bits

__all__ = ["CategoryRandomizer", "LocalOracle", "Randomizer"]


@dataclass(frozen=True)
class Randomizer(ABC):
    """The base of all clients. epsilon: what one report costs at most."""

    epsilon: Fraction

    @property
    def loss(self) -> Event:
        """What one report costs its person."""
        return PureDP(self.epsilon)

    @property
    @abstractmethod
    def report_type(self) -> np.dtype[Any]:
        """One report on the wire: a little-endian dtype; a bitmap is a sub-array of bytes."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, object]:
        """The derived numbers a client needs: chances as fractions, for the specification on the wire."""

    @abstractmethod
    def release(self, data: Any, *, bits: Bits | None = None) -> Array:
        """Reports, one row for each entry of `data`. bits: only in tests."""

    @abstractmethod
    def chance(self, report: Any, data: Any) -> Fraction:
        """P(report | the person has `data`), exactly."""

    def log_prob(self, output: Any, data: Any) -> float:
        """ln P(report = output | the person has `data`)."""
        chance = self.chance(output, data)
        return math.log(chance.numerator) - math.log(chance.denominator) if chance else -math.inf


@dataclass(frozen=True)
class CategoryRandomizer(Randomizer):
    """The base of clients for categories, by their places 0 .. size - 1.

    A report *supports* some categories: the true one with probability p, each other one with probability q < p.
    """

    size: int

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """The probability that a report supports its person's true category."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """The probability that a report supports one other category."""

    def release(self, data: Integers, *, bits: Bits | None = None) -> Array:
        """Reports for places, shape (n,).

        Raises:
            ParameterError: a place is not one of 0 .. size - 1.
        """
        if data.size and not 0 <= data.min() <= data.max() < self.size:
            raise ParameterError(f"some place is outside 0 .. {self.size - 1}.")
        return self._client(data, bits)

    @abstractmethod
    def chance(self, report: Any, data: int) -> Fraction:
        """P(report | the person's category has the place `data`), exactly."""

    @abstractmethod
    def _client(self, places: Array, bits: Bits | None) -> Array:
        """Reports for places 0 .. k-1, one row for each."""

    # What the server needs of the protocol.

    @abstractmethod
    def _valid(self, reports: Any) -> tuple[Array, int]:
        """The reports that some client could have sent, and how many were not. Never raises."""

    @abstractmethod
    def _supporters(self, reports: Array) -> Integers:
        """How many valid reports support each category, shape (k,)."""


_MOVED: Final = (
    *("alphabet", "bloom_bits", "buckets", "chance", "clamp", "cohorts", "ends", "filters", "flip", "hashes"),
    *("length", "lie", "lines", "log_prob", "miss", "one_bit", "one_if_clear", "one_if_set", "p", "padded"),
    *("parameters", "piecewise", "piecewise_share", "public_name", "q", "report_count", "report_type", "rows"),
    *("second_moment", "width", "window"),
)


class LocalOracle(Moved):
    """What the oracles of this room share: the client, `randomizer`, and what one report of it costs and weighs."""

    _moved = {name: f"randomizer.{name}" for name in _MOVED} | {
        "privatize_places": "randomizer.release",
        "report_loss": "randomizer.loss",
    }

    randomizer: Randomizer

    @property
    def epsilon(self) -> Fraction:
        """What one report costs at most; of RAPPOR, all reports of one value."""
        return self.randomizer.epsilon

    @property
    def loss(self) -> Event:
        """What one report costs its person."""
        return self.randomizer.loss

    @property
    def report_bytes(self) -> int:
        """The size of one report on the wire."""
        return self.randomizer.report_type.itemsize
