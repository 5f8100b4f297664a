"""One act after the other of each person, through whatever tokens and sessions: whoever asks much at once keeps himself
waiting, and nobody else.

What two people ask at once is planned in turn; so each of them has at most one statement there, however long his take.
And few of one person wait: each has a thread of the front, which has few of them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hubbub.service.people.person import TooMany

__all__ = ["Turns"]

_MOST: Final = 8  # of one person, with the one that is done


class Turns:
    """Whose turn it is."""

    def __init__(self) -> None:
        self._lock, self._people = threading.Lock(), dict[str, tuple[threading.Lock, int]]()

    @contextmanager
    def of(self, name: str) -> Iterator[bool]:
        """Wait until it is this person's next turn, and have it. Whether there was any waiting.

        Raises TooMany where many of his wait already.
        """
        with self._lock:
            turn, waiting = self._people.get(name) or (threading.Lock(), 0)
            if waiting >= _MOST:
                raise TooMany(f"{_MOST} requests of one person at once; try again in a second.", 1)
            self._people[name] = turn, waiting + 1
        try:
            with turn:
                yield waiting > 0
        finally:
            with self._lock:
                left = self._people[name][1] - 1
                self._people[name] = turn, left
                if not left:
                    del self._people[name]
