"""Time as an audit sees it: a function that gives seconds, and a moment that must not be passed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Clock", "Deadline"]

Clock = Callable[[], float]


@dataclass(frozen=True)
class Deadline:
    """A moment of a clock.

    >>> Deadline(3.0, lambda: 2.0).passed, Deadline(3.0, lambda: 4.0).passed
    (False, True)
    """

    moment: float
    clock: Clock

    @property
    def passed(self) -> bool:
        """Whether the moment has come."""
        return self.clock() > self.moment
