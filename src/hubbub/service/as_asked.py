"""Whether what waits is still what was asked and charged: the policy may be edited meanwhile, or a public file.

A question that waits while a public table changes, or over a restart of the service with another policy, stands for
another one when it is to start. It is not run then. That follows from declarations and public tables alone, so nothing
of rows is told by it. Where such a file changes between that look and the run itself, the run fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hubbub.errors import HubbubError
from hubbub.ledger.wording import is_commitment

if TYPE_CHECKING:
    from hubbub.ledger.store import Ledger
    from hubbub.ledger.timetable import Scheduled
    from hubbub.session.empty import EmptyTables
    from hubbub.session.run import Request

__all__ = ["AsAsked"]


class AsAsked:
    """The questions that wait. again: one as it is planned now, from its own words. log: where a line goes."""

    def __init__(
        self,
        data: EmptyTables,
        ledger: Ledger,
        *,
        again: Callable[[Scheduled], Request],
        log: Callable[[str], None],
    ) -> None:
        self._data, self._ledger, self._again, self._log = data, ledger, again, log
        self._public: dict[str, dict[str, str]] = {}  # the public tables of a question, with digests of their rows
        self._others = set[str]()

    def submitted(self, one: Scheduled, made: Request) -> None:
        """It was charged now: note which public tables it reads."""
        if made.public:
            self._public[one.id] = {name: self._data.outer.fingerprint(name) for name in made.public}

    def started_again(self) -> None:
        """The service started again: compare what waits with what was charged."""
        for one in self._ledger.timetable.waiting():
            entry = self._ledger.record.entry(one.id)
            try:
                made = None if is_commitment(one.ask) else self._again(one)
            except HubbubError:  # it was planned when it was asked
                self._others.add(one.id)
                continue
            if made is not None and made.key(entry.data_version or "") != entry.question_key:
                self._others.add(one.id)
            elif made is not None:
                self.submitted(one, made)

    def changed(self, one: Scheduled) -> bool:
        """Whether a question that is to start is another one by now."""
        known = self._public.get(one.id, {})
        try:
            another = one.id in self._others or any(self._data.outer.fingerprint(n) != was for n, was in known.items())
        except HubbubError:  # a file that is gone
            another = True
        if another:
            self._log(f"{one.id} is not run, and costs nothing: what it reads is declared otherwise since it was asked")
        return another

    def finished(self, one: Scheduled) -> None:
        """It was run: nothing has to be known of it any more."""
        self._public.pop(one.id, None)
