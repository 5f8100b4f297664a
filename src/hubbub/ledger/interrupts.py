"""Ctrl-C comes before or after a transaction, never within one.

Python runs the handler of a signal between any two of its steps, in the main thread, and the handler of Ctrl-C raises
there. No order of `try` and `finally` is safe against that: it may raise just after a lock was taken and before the
`try`, or inside the `finally` that gives it back. So while a lock is held, the handlers that were set in Python are put
off: the signal is noted, and its handler runs at the end, or where `check` is called, which every wait does.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Final, Self

__all__ = ["Undisturbed", "let_in"]

_NAMES: Final = ("SIGINT", "SIGTERM", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGPROF")
_SIGNALS: Final = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))

# Those of the C module, where there is one: Python's own make an enumeration of every answer, which takes longer.
_quick: Final = getattr(signal, "_signal", signal)
_get: Final = _quick.getsignal
_set: Final = _quick.signal

_Handler = Callable[[int, FrameType | None], Any]


class Undisturbed:
    """A context in which no handler of a signal runs but where `check` lets it. Within another one it does nothing."""

    _active: Undisturbed | None = None  # that of the main thread

    def __init__(self) -> None:
        self._handlers: dict[int, _Handler] = {}
        self._came: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread() or Undisturbed._active is not None:
            return self  # no handler runs in another thread
        try:
            for number in _SIGNALS:
                handler = _get(number)
                if callable(handler):
                    self._handlers[number] = handler
            for number in self._handlers:
                _set(number, self._note)
            Undisturbed._active = self
        except BaseException as error:
            self._restore()
            if not isinstance(error, ValueError):  # which it is outside the main interpreter: no handler runs there
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if Undisturbed._active is self:
            Undisturbed._active = None
            self._restore()
            self.check()

    def check(self) -> None:
        """Run the handlers of what came meanwhile: where Ctrl-C did, this raises KeyboardInterrupt."""
        holder = Undisturbed._active if not self._handlers else self
        while holder is not None and holder._came and threading.current_thread() is threading.main_thread():
            number, frame = holder._came.pop(0)
            holder._handlers[number](number, frame)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came.append((number, frame))

    def _restore(self) -> None:
        """Set the handlers again, that of Ctrl-C last: once it is set, it may raise."""
        for number in reversed(self._handlers):
            _set(number, self._handlers[number])


def let_in() -> None:
    """Inside a long work that changes nothing: a good moment for what came."""
    if Undisturbed._active is not None:
        Undisturbed._active.check()
