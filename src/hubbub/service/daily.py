"""What the clerk does once a day: the head of the chain goes to the witness, and old texts go from the ledger.

Both follow the calendar alone. What is sent says what the chain was at midnight, and what is removed is what was asked
so many days before: neither depends on a run, and when it happens tells nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from hubbub.errors import HubbubError
from hubbub.ledger.removing import days_ago
from hubbub.ledger.witness import bear_witness

if TYPE_CHECKING:
    from hubbub.ledger.policy import Policy
    from hubbub.ledger.store import Ledger
    from hubbub.service.people.people import People

__all__ = ["Daily"]

_LOOK: Final = 60.0
_AGAIN: Final = 60  # looks between two tries where one failed
_AUTHOR: Final = "the policy"


class Daily:
    """The daily acts of a service. log: where a line goes for the steward. people: whose requests hold words, too. day:
    the calendar.
    """

    def __init__(
        self,
        policy: Policy,
        ledger: Ledger,
        log: Callable[[str], None],
        *,
        people: People | None = None,
        day: Callable[[], str] = lambda: datetime.now(UTC).date().isoformat(),
    ) -> None:
        self._policy, self._ledger, self._log, self._day = policy, ledger, log, day
        self._people = people
        self._done: dict[str, str] = {}  # the day on which each act was done last
        self._failed: dict[str, int] = {}
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Look once a minute, in a thread of its own, if there is anything to do at all."""
        if self._policy.witness is not None or self._policy.keep_texts is not None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            self.look()
            if self._closing.wait(_LOOK):
                return

    def look(self) -> None:
        """Do what this day wants and was not done yet; what failed is tried again within the hour."""
        witness, days = self._policy.witness, self._policy.keep_texts
        if witness is not None:
            self._once("the witness", lambda: bear_witness(self._ledger, witness))
        if days is not None:
            before = days_ago(days)[:10] + "T"  # as of midnight, whenever it is done
            self._once("removing texts", lambda: self._remove_words(before))

    def _remove_words(self, before: str) -> None:
        self._ledger.steward.redact_before(before, author=_AUTHOR)
        if self._people is not None:
            self._people.wishes.remove_words(before, by=_AUTHOR)

    def _once(self, what: str, act: Callable[[], object]) -> None:
        day = self._day()
        if self._done.get(what) == day:
            return
        if self._failed.get(what, 0) % _AGAIN == 0:
            try:
                act()
            except HubbubError as error:
                self._log(f"{what}: {error}")
            else:
                self._done[what], self._failed[what] = day, 0
                return
        self._failed[what] = self._failed.get(what, 0) + 1

    def close(self) -> None:
        """Stop looking, once what is under way is done."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(_LOOK)
