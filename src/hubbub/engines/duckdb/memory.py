"""The memory of DuckDB in this process: one amount for the engines of all sessions.

DuckDB's own limit holds for one engine, and what an engine has read it keeps, up to that limit, for questions to come.
Two sessions would so take twice the memory of the machine. Here an engine at work may take three quarters of what
those at work beside it leave, and one that rests gives back what it kept as soon as another one works. The limit of an
engine at work stays as it is. How much an engine may take decides what it puts aside on disk, and nothing of what it
says.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Final
from weakref import WeakSet

__all__ = ["Memory", "Part"]

LEAST: Final = 1 << 28
"""What an engine may take at least, in bytes: with less than this DuckDB may not even put rows aside."""


class Memory:
    """An amount of memory, in bytes, for several engines.

    >>> memory = Memory(16 << 30)
    >>> one, two = memory.part(print), memory.part(print)
    >>> with one.at_work(), two.at_work():
    ...     pass
    12884901888
    3221225472
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._parts = WeakSet[Part]()
        self._lock = threading.RLock()

    def part(self, limit: Callable[[int], object]) -> Part:
        """What one engine takes. limit: sets its limit, or raises where it holds more and cannot give it back."""
        part = Part(self, limit)
        with self._lock:  # a set that grows while another thread looks through it is an error there
            self._parts.add(part)
        return part

    def _leave(self, part: Part) -> None:
        with self._lock:
            self._parts.discard(part)

    def _begin(self, part: Part, question: object) -> None:
        with self._lock:
            begins = not part.questions
            part.questions.add(question)
            if not begins:
                return
            others = [other for other in self._parts if other is not part]
            for other in others:
                if not other.questions and (other.limit > LEAST or not other.known):
                    other.set(LEAST)
            allowed = max((self.size - sum(other.limit for other in others)) * 3 // 4, LEAST)
            if part.limit != allowed or not part.known:
                part.set(allowed)


class Part:
    """What one engine takes of the memory.

    limit: in bytes, 0 before its first question. known: whether that is its limit, and not only the most that it can
    be: an interrupt may come between the engine and this note. questions: what it works at.
    """

    def __init__(self, memory: Memory, limit: Callable[[int], object]) -> None:
        self._memory, self._set = memory, limit
        self.limit, self.known = 0, True
        self.questions = set[object]()

    def set(self, limit: int) -> None:
        """Set the engine's limit; it keeps the one that it has where it holds more than this."""
        before = self.limit
        self.known, self.limit = False, max(before, limit)
        after = before
        with contextlib.suppress(Exception):
            self._set(limit)
            after = limit
        self.limit, self.known = after, True

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """While the engine answers a question."""
        question = object()
        try:
            self._memory._begin(self, question)
            yield
        finally:
            self.questions.discard(question)

    def anew(self) -> None:
        """The engine has been opened again, with no limit of ours."""
        if self.limit:
            self.set(self.limit)

    def leave(self) -> None:
        """The engine is closed."""
        self._memory._leave(self)
