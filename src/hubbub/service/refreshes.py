"""A refresh, as the clerk has it: what questions read is there before the version is.

One that a steward declares here copies what is to be copied, and has the runners open the tables anew, and only then is
its version written. One that was declared beside the service, by `hubbub ledger refresh`, is noticed by its version.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from hubbub.errors import HubbubError
from hubbub.ledger.policy import Policy
from hubbub.service.lanes import Lanes
from hubbub.session.copies import copied

if TYPE_CHECKING:
    from hubbub.ledger.store import Ledger

__all__ = ["Refreshes"]


class Refreshes:
    """The refreshes of the tables of a policy. log: where it goes that one failed."""

    def __init__(self, policy: Policy, ledger: Ledger, lanes: Lanes, log: Callable[[str], None]) -> None:
        self._policy, self._ledger, self._lanes, self._log = policy, ledger, lanes, log
        self._known = ledger.versions.newest()
        self._done: set[str] = set()  # the versions whose rows were read anew before they were written

    def before(self, table: str) -> None:
        """Have questions read the new rows of a table, whose version is written then.

        Raises PolicyError where they cannot be copied or opened.
        """
        copied(self._policy, table)
        self._lanes.renew(table)

    def written(self, version: str) -> None:
        """Take a version for one whose rows are read: `before` was called for it. Where it could not be written, the
        next one is another, and its rows may be.
        """
        self._done.add(version)

    def look(self) -> None:
        """See whether a version was written beside the service."""
        newest = self._ledger.versions.newest()
        for (space, table), version in newest.items():
            known = self._known.get((space, table))
            if known not in (None, version) and table in self._policy.tables and version not in self._done:
                threading.Thread(target=self._renew, args=(table,), daemon=True).start()
        self._known = newest
        self._done -= {*newest.values()}

    def _renew(self, table: str) -> None:
        try:
            self._lanes.renew(table)
        except HubbubError as error:
            self._log(f"table {table!r} was refreshed, and is not read anew: {error}")
