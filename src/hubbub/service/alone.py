"""One clerk at a time: whoever starts a second one beside it is refused.

A clerk that starts takes for dead what it finds running: it has no answer, and counts as a failure of whoever asked.
That is right where the one before it died, and wrong where it lives. Two clerks would also each end in a database what
the other's runners do there, and read a refresh that the other was told of a moment too late.

So a clerk holds a lock on a file beside its ledger (or beside `service.db`, where the ledger is in a database, which
is of this machine alone) for as long as it lives. The system lets go of it when it ends, however it ends. One that was
stopped runs what it began to its end, and holds it until then.

A file beside may be removed, and a ledger have another name with another file beside it. So the clerk locks the ledger
as well, whatever it is called, where the system keeps such a lock (flock) apart from those of SQLite (fcntl), as Linux
does on a local disk.
"""

from __future__ import annotations

import os
import sys
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
        self._path = place.with_name(f"{place.name}-clerk")
        self._files: list[int] = []
        try:
            self._files.append(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        except OSError as error:
            raise PolicyError(
                f"cannot write {self._path}: {error.strerror}. A service keeps it while it runs."
            ) from None
        try:
            self._take(self._files[0], patience)
            if sys.platform == "linux":
                self._take_itself(place, patience)
        except BaseException:
            self.close()
            raise
        with suppress(OSError):  # of a full disk: it is for people to read
            os.ftruncate(self._files[0], 0)
            os.pwrite(self._files[0], f"{os.getpid()}\n".encode(), 0)

    def _take(self, file: int, patience: float) -> None:
        if not locked_in_time(file, patience):
            raise PolicyError(
                f"another clerk ({self._holder}) serves this ledger, and holds {self._path}. A second one would take "
                "what it runs for dead. Stop it first: it ends once what runs there has ended."
            )

    def _take_itself(self, place: Path, patience: float) -> None:
        """Lock the ledger's own file. To close it would drop the locks of SQLite, which has it open from here on: so it
        is closed last, in `close`.
        """
        with suppress(OSError):  # there is none yet, or it is on a disk that locks nothing that is open to be read
            self._files.append(os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW))
            self._take(self._files[-1], patience)

    @property
    def _holder(self) -> str:
        with suppress(ValueError):
            return f"process {int(os.pread(self._files[0], 20, 0))}"
        return "another process"

    def close(self) -> None:
        """Let another one start; once the ledger is closed."""
        while self._files:
            os.close(self._files.pop())
