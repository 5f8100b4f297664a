"""What an engine itself said about a failure: for the steward alone.

An engine's words may hold private values, so they never reach the analyst, nor the ledger, whose rows stay for ever.
They are kept in files of a folder that only its owner may enter (mode 0700): beside a ledger file, `NAME-incidents`;
for a ledger elsewhere, in the user's state folder. Whoever runs the questions owns it; the steward may delete any.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from hubbub.errors import PolicyError

__all__ = ["keep", "read"]

_LONGEST = 100_000


def keep(ledger: Path | None, incident: str, words: str) -> Path:
    """Write the words of an incident, the first 100,000 characters; the file.

    Raises:
        PolicyError: the folder cannot be written.
    """
    file = _file(ledger, incident)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as out:
            out.write(words[:_LONGEST])
    except OSError as error:
        raise PolicyError(f"cannot keep the incident {incident} in {file.parent}: {error.strerror}.") from error
    return file


def read(ledger: Path | None, incident: str) -> str:
    """The words of an incident.

    Raises:
        PolicyError: there are none here, or they are not for this user.
    """
    file = _file(ledger, incident)
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        why = "none is kept there" if isinstance(error, FileNotFoundError) else error.strerror
        raise PolicyError(f"no words of an incident {incident} can be read in {file.parent}: {why}.") from error


def _file(ledger: Path | None, incident: str) -> Path:
    if not re.fullmatch(r"[0-9A-Za-z-]{1,64}", incident):
        raise PolicyError(f"{incident!r} is not the id of an incident. `hubbub history` names them.")
    if ledger is not None:
        return ledger.with_name(f"{ledger.name}-incidents") / f"{incident}.txt"
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "hubbub" / "incidents" / f"{incident}.txt"
