"""Whether what was read is what was charged: of sources that change in this process, and may be again what they were.

A file that was written again has another mark for good, so an answer that is stored for its old one is never given for
other rows. Objects of a store with versions may come back as they were; another question of a session copies a new
edition between the charge of this one and its reading, and an answer of the new rows would be stored for the old.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING

from hubbub.engines.base import Copied
from hubbub.errors import EngineError

if TYPE_CHECKING:
    from hubbub.accounting import Event
    from hubbub.session.data import OpenTables

__all__ = ["SameRows"]


class SameRows:
    """What is here before anything is read. marks: of the tables when the question was charged."""

    def __init__(self, marks: Mapping[str, str | None], data: OpenTables) -> None:
        self._marks, self._engine = marks, data.engine
        self._before = self._here()

    def _here(self) -> dict[str, tuple[str, int] | None]:
        engine = self._engine
        return {name: engine.copied(name) for name in self._marks} if isinstance(engine, Copied) else {}

    def checked(self, steps: Generator[Event, None, str]) -> Generator[Event, None, str]:
        """The steps of a request, with a look after each reading, and before what was read is drawn of.

        Raises:
            EngineError: other rows were read than those of the charge, or may have been.
        """
        while True:
            try:
                event = next(steps)
            except StopIteration as done:  # a statement of several stages reads after its event, too
                self._look()
                return str(done.value)
            self._look()
            yield event

    def _look(self) -> None:
        for name, now in self._here().items():
            if now is not None and (now != self._before[name] or now[0] != self._marks[name]):
                raise EngineError(uuid.uuid4().hex[:12])
