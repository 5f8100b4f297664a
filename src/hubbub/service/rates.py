"""Limits of one person, all of them public: so many a second, and a few more at once."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Final

__all__ = ["Rate"]

_MANY: Final = 10_000  # names that are remembered; whoever makes more up makes the oldest forgotten


class Rate:
    """So many a second of each name, and so many at once."""

    def __init__(self, a_second: float, burst: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = a_second, burst, clock
        self._left: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def takes(self, who: str) -> bool:
        """Whether one more is within it."""
        with self._lock:
            left, now = self._now(who)
            self._left.pop(who, None)
            self._left[who] = (left - 1, now) if left >= 1 else (left, now)
            if len(self._left) > _MANY:
                del self._left[next(iter(self._left))]
            return left >= 1

    def wait(self, who: str) -> int:
        """Seconds until one more is."""
        with self._lock:
            left, _ = self._now(who)
        return max(1, math.ceil((1 - left) / self._rate))

    def _now(self, who: str) -> tuple[float, float]:
        now = self._clock()
        left, since = self._left.get(who, (self._burst, now))
        return min(self._burst, left + (now - since) * self._rate), now
