"""A fixed number of paid answers, none of which can be given twice.

The loss of an adaptive run is charged in full when it is opened, for c answers. So a slot is taken *before* the draw
it pays for, in one indivisible step: of threads, or of a signal handler that asks while a question is being answered,
at most c hold a slot together. A slot may be put back only where the theorem gives that answer away (a No of the
sparse vector). A draw that is interrupted keeps its slot. A forked process would answer from a copy of the slots, so
only the process that opened a run may ask.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hubbub.errors import ParameterError, QueryError

__all__ = ["Slots"]


class Slots:
    """`count` slots; `spent` is what a caller hears once there is none."""

    def __init__(self, count: int, spent: str) -> None:
        # One thread may enter again (a signal handler), which the slots themselves bound.
        self._free, self._spent, self._owner, self._lock = [True] * count, spent, os.getpid(), threading.RLock()

    @property
    def left(self) -> int:
        """How many are free now."""
        return len(self._free)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Take a slot, and keep other threads waiting within the block. Raises QueryError where none is left."""
        if os.getpid() != self._owner:
            raise QueryError("this run was opened by another process, which pays for its answers; open one here.")
        with self._lock:
            try:
                # One indivisible step of the interpreter; looking first and taking later would be two.
                self._free.pop()
            except IndexError:
                raise QueryError(self._spent) from None
            yield

    def put_back(self) -> None:
        """The slot just taken was not needed."""
        self._free.append(True)

    def __reduce__(self) -> str:
        raise ParameterError("the answers left in an open run cannot be copied.")
