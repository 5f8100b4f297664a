"""A witness: once a day the head of the chain leaves the machine, so that a ledger that was put back is found.

What is sent is one line of JSON: the ledger's id, a day, and the number and hash of the last line before that day began
(UTC). When it is sent therefore tells nothing: it says what the chain was at midnight. No amount, name, text or answer
is in it. Analysts are told hashes and no line numbers, because numbers count what others asked: so a witness is a place
that analysts do not read.

    a folder            a file for each day, `ID-2026-11-23.json`, never written again
    a list of words     a command; the line is its standard input
    https://...         a POST of the line

`verify(heads=...)` compares the lines that came back from there: one that is gone or another one is a ledger that was
put back or rewritten. A witness tells within a day; an anchor (`hubbub.ledger.anchor`) tells at once, on this machine.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from hubbub.errors import PolicyError
from hubbub.late import late
from hubbub.ledger.files import flush_folder

if TYPE_CHECKING:
    from hubbub.ledger.store import Ledger

__all__ = ["WitnessPlace", "Witnessed", "bear_witness", "kept_by_witness", "read_witness"]

web = late("urllib.request")

WitnessPlace: TypeAlias = "Path | str | tuple[str, ...]"
"""A folder, an https address, or a command with its arguments."""

_PATIENCE: Final = 30.0
_MOST: Final = 1 << 24


@dataclass(frozen=True)
class Witnessed:
    """The last line of a ledger before a day began."""

    ledger: str
    day: str
    line: int
    hash: str

    def text(self) -> str:
        """As it is sent."""
        return json.dumps({"ledger": self.ledger, "day": self.day, "line": self.line, "hash": self.hash}) + "\n"

    @classmethod
    def read(cls, text: str) -> Witnessed:
        """What `text` wrote.

        Raises:
            PolicyError: it is none.
        """
        try:
            told: Mapping[str, Any] = json.loads(text)
            one = cls(told["ledger"], told["day"], told["line"], told["hash"])
            fits = all(isinstance(part, str) for part in (one.ledger, one.day, one.hash)) and type(one.line) is int
        except (ValueError, TypeError, KeyError, RecursionError):
            fits = False
        if not fits:
            raise PolicyError("this is not what a ledger sent to a witness: JSON with its day, line and hash.")
        return one


def bear_witness(ledger: Ledger, place: WitnessPlace) -> Witnessed | None:
    """Send the ledger's head as of last midnight, if it has one. A folder that has it is left as it is.

    Raises:
        PolicyError: the place does not take it. The ledger is as it was; send it again later.
    """
    testimony = ledger.chain.testimony()
    if testimony is None:
        return None
    match place:
        case Path():
            _into_folder(place, testimony)
        case str():
            _post(place, testimony)
        case _:
            _run(place, testimony)
    return testimony


def _into_folder(folder: Path, testimony: Witnessed) -> None:
    target = folder / f"{testimony.ledger}-{testimony.day}.json"
    try:
        with open(target, "x", encoding="utf-8", opener=lambda name, how: os.open(name, how, 0o600)) as file:
            file.write(testimony.text())
            file.flush()
            os.fsync(file.fileno())
        flush_folder(folder)
    except FileExistsError:
        known = target.read_text("utf-8")
        if not known:  # whoever began it was killed
            target.unlink()
            _into_folder(folder, testimony)
        elif known != testimony.text():
            raise PolicyError(
                f"the witness {target} names another line than the ledger holds: the ledger was put back or rewritten "
                "since. `hubbub ledger verify --witness` says more."
            ) from None
    except OSError as error:
        raise PolicyError(f"cannot write the witness {target}: {error.strerror}.") from None


def _run(command: tuple[str, ...], testimony: Witnessed) -> None:
    try:
        done = subprocess.run(
            command, input=testimony.text(), text=True, timeout=_PATIENCE, capture_output=True, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PolicyError(f"the witness's command {command[0]!r} did not run: {type(error).__name__}.") from None
    if done.returncode:
        raise PolicyError(f"the witness's command {command[0]!r} ended with {done.returncode}.")


def _post(address: str, testimony: Witnessed) -> None:
    request = web.Request(
        address, data=testimony.text().encode(), headers={"Content-Type": "application/json"}, method="POST"
    )
    try:
        with web.urlopen(request, timeout=_PATIENCE) as answer:  # https alone (`read_witness`)
            answer.read(1024)
    except (OSError, ValueError) as error:
        raise PolicyError(f"the witness at the policy's address did not take it: {type(error).__name__}.") from None


def read_witness(value: object, folder: Path) -> WitnessPlace | None:
    """What a policy names: a folder, relative to its own, an https address, or a list of words; None for none."""
    match value:
        case str() if value.startswith("https://"):
            return value
        case str() if value and "://" not in value:
            return folder / value
        case list() if value and all(isinstance(word, str) and word for word in value):
            return (*value,)
        case _:
            return None


def kept_by_witness(place: Path, ledger: str) -> dict[str, tuple[int, str]]:
    """The lines and hashes that a file or a folder of a witness holds for a ledger, by what they are called.

    Raises:
        PolicyError: it cannot be read, holds none for this ledger, or what is not testimony.
    """
    files = sorted(place.glob("*.json")) if place.is_dir() else [place]
    told: list[Witnessed] = []
    try:
        for file in files:
            if file.stat().st_size > _MOST:
                raise PolicyError(f"{file} is too long for what a ledger sent to a witness.")
            told += [Witnessed.read(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError):
        raise PolicyError(f"cannot read what the witness {place} holds.") from None
    mine = [one for one in told if one.ledger == ledger]
    if not mine:
        raise PolicyError(f"the witness {place} holds nothing of this ledger: see whether it is another one's.")
    kept: dict[str, tuple[int, str]] = {}
    for one in mine:  # a day that was sent again may tell of another state, and both have to stand
        again = sum(name.startswith(f"the witness of {one.day}") for name in kept)
        if (one.line, one.hash) not in kept.values():
            kept[f"the witness of {one.day}{f', sent again ({again})' if again else ''}"] = one.line, one.hash
    return kept
