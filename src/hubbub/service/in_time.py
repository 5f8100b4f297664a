"""Giving up what takes too long: an exception is raised in the thread that does it, again and again until it has ended.

Once is not enough: what is done may catch it and go on, as a parser does that turns every exception into its own. So it
is none of those that `except Exception` catches, and it comes again. What C code does is given up when it returns.

An exception that was sent and has not come is not taken back but met: where one is taken back, CPython goes on to look
for it at every call and every turn of a loop, and a function that is profiled then never begins.
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


class _Met(BaseException):
    """Raised in the place of what was sent and is not wanted any more."""


def in_time(seconds: float, act: Callable[[], T]) -> T:
    """What an act gives, where it takes no longer.

    What ends too late is given up too, even where the exception was lost in it: Python prints and drops what is raised
    in a callback of the garbage collector or of a weak reference.

    >>> in_time(60, lambda: 41 + 1)
    42

    Raises TooLong.
    """
    me, deciding, over = threading.get_ident(), threading.Lock(), threading.Event()
    done, sent = [False], [False]

    def interrupt(what: type[BaseException]) -> None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(me), ctypes.py_object(what))

    def watch() -> None:
        wait = seconds
        while not over.wait(wait):
            wait = _AGAIN
            with deciding:
                if done[0]:
                    return
                sent[0] = True
                interrupt(_GivenUp)

    def meet() -> None:
        """What was sent comes here at the latest, and nothing comes later."""
        with suppress(_Met):
            interrupt(_Met)
            while True:
                pass

    def settle() -> None:
        """After this nothing is given up any more: never in what this thread does next."""
        while True:
            with suppress(_GivenUp):
                with deciding:
                    done[0] = True
                over.set()
                if sent[0]:
                    meet()
                return

    try:
        try:
            threading.Thread(target=watch, daemon=True).start()
            done_in_time = act()
        finally:
            settle()
        if not sent[0]:
            return done_in_time
    except _GivenUp:
        settle()
    raise TooLong(f"not done in {seconds:g} seconds")
