"""Giving up what takes too long: an exception is raised in the thread that does it, again and again until it has ended.

Once is not enough: what is done may catch it and go on, as a parser does that turns every exception into its own. So it
is none of those that `except Exception` catches, and it comes again. What C code does is given up when it returns.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

__all__ = ["TooLong", "in_time"]

_AGAIN: Final = 0.25  # seconds
T = TypeVar("T")


class TooLong(Exception):
    """It took too long, and was given up."""


class _GivenUp(BaseException):
    """Raised in what is given up."""


def in_time(seconds: float, act: Callable[[], T]) -> T:
    """What an act gives, where it takes no longer.

    >>> in_time(60, lambda: 41 + 1)
    42

    Raises TooLong.
    """
    me, deciding, over, done = threading.get_ident(), threading.Lock(), threading.Event(), [False]

    def interrupt(what: type[_GivenUp] | None) -> None:
        given = None if what is None else ctypes.py_object(what)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(me), given)

    def watch() -> None:
        wait = seconds
        while not over.wait(wait):
            wait = _AGAIN
            with deciding:
                if done[0]:
                    return
                interrupt(_GivenUp)

    def settle() -> None:
        """After this nothing is given up any more: never in what this thread does next."""
        while True:
            with suppress(_GivenUp):
                with deciding:
                    done[0] = True
                    interrupt(None)
                over.set()
                return

    try:
        try:
            threading.Thread(target=watch, daemon=True).start()
            return act()
        finally:
            settle()
    except _GivenUp:
        settle()
        raise TooLong(f"not done in {seconds:g} seconds") from None
