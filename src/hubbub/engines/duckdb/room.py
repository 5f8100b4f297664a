"""The memory in which rows are ranked: one amount for all questions of this process, whatever sessions ask them.

Each question says how much it holds, as often as that grows. What would not fit is refused, and the question is then
answered by the text, which the engine runs in memory of its own and on disk. Both ways have the same integers, so that
what others ask decides how long an answer takes, and nothing of what it says.
"""

from __future__ import annotations

import threading
from types import TracebackType

__all__ = ["Room", "Share"]


class Room:
    """An amount of memory, in bytes, that several questions share.

    >>> room = Room(10)
    >>> with room.share() as one, room.share() as two:
    ...     one.holds(7), two.holds(4), two.holds(3)
    (True, False, True)
    >>> room.held
    0
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.held = 0
        self._lock = threading.Lock()

    def share(self) -> Share:
        """What one question holds: nothing at first, and nothing once it has ended."""
        return Share(self)

    def _change(self, more: int) -> bool:
        with self._lock:
            if more > 0 and self.held + more > self.size:
                return False
            self.held += more
            return True


class Share:
    """What one question holds of a room."""

    def __init__(self, room: Room) -> None:
        self._room, self._held = room, 0

    def holds(self, size: int) -> bool:
        """Whether the question may hold so many bytes from now on; if not, it holds what it did."""
        fits = self._room._change(size - self._held)
        self._held = size if fits else self._held
        return fits

    def __enter__(self) -> Share:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.holds(0)
