"""Walks over the ledger that go on while pages look: one of each person, and how far it is.

A walk reads every line, in one transaction, which may take minutes. So it reads by a handle of its own, and the ledger
that questions are charged in does not wait for it. Walks of several people take turns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from hubbub.errors import HubbubError

if TYPE_CHECKING:
    from hubbub.ledger.verify import Verification

__all__ = ["Walk", "Walking", "Walks"]

Walking: TypeAlias = "Callable[[Mapping[str, Any] | None, Callable[[int], None]], Verification]"
"""Verifies the ledger and a receipt, and tells after some lines how many it has looked at."""


@dataclass
class Walk:
    """A walk. lines: those there were at its beginning; done: those it has looked at. head: a note about the log that
    came with it, kept: whether a receipt did. verified: what it came to, once it has ended; problem: why it could not.
    """

    lines: int
    head: str
    kept: bool
    done: int = 0
    verified: Verification | None = None
    problem: str = ""

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self.verified is not None or bool(self.problem)


class Walks:
    """Of each person the last walk."""

    def __init__(self) -> None:
        self._last: dict[str, Walk] = {}
        self._lock, self._turn = threading.Lock(), threading.Lock()

    def begin(
        self,
        name: str,
        walking: Walking,
        *,
        lines: int,
        receipt: Mapping[str, Any] | None,
        head: str,
        ended: Callable[[Verification], None],
    ) -> None:
        """Begin one; nothing happens where one of his is under way. ended: what is done when it has ended."""
        with self._lock:
            last = self._last.get(name)
            if last is not None and not last.ended:
                return
            walk = self._last[name] = Walk(lines, head, receipt is not None)

        def told(done: int) -> None:
            walk.done = done

        def go() -> None:
            try:
                with self._turn:
                    verified = walking(receipt, told)
                ended(verified)
            except HubbubError as error:
                walk.problem = str(error)
            except BaseException:
                walk.problem = "it could not be read to its end."
                raise
            else:
                walk.verified = verified

        threading.Thread(target=go, daemon=True).start()

    def of(self, name: str) -> Walk | None:
        """The last one of somebody, if there was one."""
        with self._lock:
            return self._last.get(name)
