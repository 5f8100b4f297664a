"""One clerk at a time: whoever starts a second one beside it is refused.

A clerk that starts takes for dead what it finds running: it has no answer, and counts as a failure of whoever asked.
That is right where the one before it died, and wrong where it lives. Two clerks would also each end in a database what
the other's runners do there, and read a refresh that the other was told of a moment too late.

So a clerk holds a lock on a file beside its ledger (or beside `service.db`, where the ledger is in a database, which
is of this machine alone) for as long as it lives. The system lets go of it when it ends, however it ends. One that was
stopped runs what it began to its end, and holds it until then.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from hubbub.errors import PolicyError
from hubbub.ledger.files import locked_in_time
from hubbub.ledger.policy import Policy
from hubbub.service.people.at_home import place_of

__all__ = ["Alone"]


class Alone:
    """The lock of a policy's clerk, held until `close`. patience: seconds to wait for one that is just ending.

    Raises PolicyError where another clerk holds it for longer, or the file cannot be written.
    """

    def __init__(self, policy: Policy, *, patience: float = 10.0) -> None:
        place = Path(os.path.realpath(policy.ledger if isinstance(policy.ledger, Path) else place_of(policy)))
        path = place.with_name(f"{place.name}-clerk")
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise PolicyError(f"cannot write {path}: {error.strerror}. A service keeps it while it runs.") from None
        try:
            self._take(path, patience)
        except BaseException:
            os.close(self._file)
            raise

    def _take(self, path: Path, patience: float) -> None:
        if not locked_in_time(self._file, patience):
            raise PolicyError(
                f"another clerk ({self._holder}) serves this ledger, and holds {path}. A second one would take "
                "what it runs for dead. Stop it first: it ends once what runs there has ended."
            )
        with suppress(OSError):  # of a full disk: it is for people to read
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    @property
    def _holder(self) -> str:
        with suppress(ValueError):
            return f"process {int(os.pread(self._file, 20, 0))}"
        return "another process"

    def close(self) -> None:
        """Let another one start."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)
