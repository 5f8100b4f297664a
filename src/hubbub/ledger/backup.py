"""A backup of a ledger and of what stands beside it, and how one is put back without giving any budget back.

    OUT/            a folder of its own, made whole or not at all, readable to its owner alone
      backup.json   whose ledger it is, the line where it ends, the hash of each file
      ledger.db     one state of the ledger, by SQLite's online backup, while others go on
      service.db    the people of the service, where there are some: copied first, so that the ledger knows their limits

**The rule.** A backup is put back where no ledger is. It is taken as it is only where the anchor names a line that it
holds: the anchor moves before anybody is told of a charge, so nothing was told that the backup does not hold. Anywhere
else it may be older than what was charged, which nothing but the anchor can rule out. Then it is refused; or, where
nothing newer is left and a steward says so, everything that it takes for open is closed (`hubbub.ledger.closing`),
before it is put in its place. The place is taken by a hard link, the last step: whoever is killed before it begins
again, and has at most the people to move aside, who come just before.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hubbub.errors import PolicyError
from hubbub.ledger import anchor
from hubbub.ledger.files import flush_folder
from hubbub.ledger.hash_chain import Head
from hubbub.ledger.keys import check_of
from hubbub.ledger.store import Ledger

__all__ = ["Backup", "back_up", "put_back", "read_backup"]

_LEDGER, _PEOPLE, _ABOUT = "ledger.db", "service.db", "backup.json"
_BESIDE: Final = ("-wal", "-shm", "-journal")


@dataclass(frozen=True)
class Backup:
    """A backup that was read. ledger: the id of the ledger; line, hash: where it ends. people: whether it has any."""

    folder: Path
    ledger: str
    line: int
    hash: str
    time: str
    people: bool


def back_up(ledger: Ledger, target: Path, people: Path | None = None) -> Backup:
    """Write one whole state of a ledger file, and of the file `people`, to the new folder `target`.

    Raises:
        PolicyError: the target exists or cannot be written; or the ledger lives in Postgres.
    """
    if ledger.path is None:
        raise PolicyError(_postgres(ledger.where))
    if target.exists() or target.is_symlink():
        raise PolicyError(f"{target} exists and is left as it is. Name another folder.")
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}.new")
    try:
        draft.mkdir(mode=0o700)
        has_people = people is not None and people.exists()
        if people is not None and has_people:
            _copy_database(people, draft / _PEOPLE)
        ledger.record.backup(draft / _LEDGER)
        head = _head(draft / _LEDGER)
        files = [_LEDGER, *([_PEOPLE] if has_people else [])]
        about = {"backup": 1, "ledger": ledger.id, "line": head.serial, "hash": head.hash, "time": head.time}
        about |= {"files": {name: _digest(draft / name) for name in files}}
        _write(draft / _ABOUT, json.dumps(about, indent=1) + "\n")
        flush_folder(draft)
        os.rename(draft, target)
        flush_folder(target.parent)
    except (OSError, sqlite3.Error) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise PolicyError(f"cannot write the backup {target}: {said}.") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return read_backup(target)


def read_backup(folder: Path) -> Backup:
    """What `back_up` wrote, every file as it was written.

    Raises:
        PolicyError: it is not a backup, or a file of it was changed.
    """
    try:
        about: Mapping[str, Any] = json.loads((folder / _ABOUT).read_text("utf-8"))
        files = dict(about["files"])
        backup = Backup(
            folder, str(about["ledger"]), int(about["line"]), str(about["hash"]), str(about["time"]), _PEOPLE in files
        )
        fits = about["backup"] == 1 and _LEDGER in files and set(files) <= {_LEDGER, _PEOPLE}
    except (OSError, ValueError, KeyError, TypeError):
        fits = False
    if not fits:
        raise PolicyError(f"{folder} is not a backup of a ledger. `hubbub ledger backup` writes one.")
    for name, digest in files.items():
        try:
            written = _digest(folder / name)
        except OSError as error:
            raise PolicyError(f"cannot read {folder / name}: {error.strerror}.") from None
        if written != digest:
            raise PolicyError(f"{folder / name} is not what was written: the backup is damaged. Take another one.")
    return backup


def put_back(
    backup: Backup,
    place: Path,
    *,
    key: bytes | None,
    anchor_at: Path | None,
    people: Path | None = None,
    settle: Callable[[Path], None] = lambda _: None,
    accept_older: bool = False,
    author: str = "hubbub",
    reason: str = "",
) -> bool:
    """Put a backup in the place of a ledger that is gone. Whether it holds everything that was told; else everything
    that it takes for open was closed.

    key: of its chain. anchor_at: the ledger's anchor, where there is one. people: where its people go. settle: what is
    done to their file before it is put there. accept_older: also where something may have been charged since. author,
    reason: for the record.

    Raises:
        PolicyError: something is there already; the backup is damaged; or something may have been charged since.
    """
    place = Path(os.path.realpath(place))
    _check_free(place)
    for_people = people if backup.people else None
    if for_people is not None:
        _check_free(for_people)
    draft = place.with_name(f".{place.name}.{uuid.uuid4().hex}.new")
    folk = None if for_people is None else for_people.with_name(f".{for_people.name}.{uuid.uuid4().hex}.new")
    try:
        _copy_file(backup.folder / _LEDGER, draft)
        key = _key_of(draft, backup, key)
        whole = _checked(draft, backup, key, anchor_at)
        if whole is not None and not accept_older:
            raise PolicyError(_refusal(backup, whole))
        if whole is not None:
            _close(draft, key, anchor_at, author, f"{reason} ({whole})" if reason else whole)
        if folk is not None and for_people is not None:  # first: a ledger without its people serves nobody
            _copy_file(backup.folder / _PEOPLE, folk)
            settle(folk)
            _link(folk, for_people)
        _link(draft, place)
    except OSError as error:
        raise PolicyError(f"cannot put the backup in the place of {place}: {error.strerror}.") from error
    finally:
        for file in (draft, folk):
            for suffix in ("", *_BESIDE, "-queue") if file is not None else ():
                assert file is not None
                file.with_name(f"{file.name}{suffix}").unlink(missing_ok=True)
    return whole is None


def _key_of(draft: Path, backup: Backup, key: bytes | None) -> bytes | None:
    """The key that a copy bears: the one that was given, or none where its chain had none yet.

    Raises PolicyError where it bears another one.
    """
    with Ledger.inspect(draft) as ledger:
        check = ledger.chain.key_check()
        if check is None or (key is not None and check == check_of(key, ledger.id)):
            return key if check is not None else None
    raise PolicyError(
        f"the backup {backup.folder} bears another key than the policy's. If it is of before `hubbub ledger rekey`, "
        "name the key of its time as `key_file`: KEYFILE.until-LINE."
    )


def _checked(draft: Path, backup: Backup, key: bytes | None, anchor_at: Path | None) -> str | None:
    """Walk the whole copy; what stands against taking it as it is, or None.

    Raises PolicyError for one that is damaged.
    """
    with Ledger.inspect(draft, key=key) as ledger:
        verified = ledger.record.verify(head=(backup.line, backup.hash))
        if not verified.sound or ledger.id != backup.ledger:
            raise PolicyError("the backup is not what it was:\n" + "\n".join(verified.problems))
        ledger.name_anchor(anchor_at)
        try:
            at = ledger.chain.anchored()
        except PolicyError:
            # One that bears a later key cannot be told from a forged one; it must be this ledger's all the same.
            if anchor_at is None or (at := anchor.read(anchor_at, ledger.id, ((0, None),))) is None:
                raise
            return f"its anchor names line {at[0]}, and was not written with the backup's key"
        if at is None or not ledger._handle.has_anchor():  # by its own word: a file that was given up moves no more
            return "no anchor tells what was charged since"
        if ledger.chain.holds(*at) and at[0] >= backup.line:  # one that moves is never behind a copy that is made later
            return None
        return f"its anchor names line {at[0]}, and the backup ends with line {backup.line}"


def _refusal(backup: Backup, why: str) -> str:
    return (
        f"the backup {backup.folder} ends with line {backup.line}, of {backup.time[:16]} (UTC), and may be older than "
        f"what was charged: {why}. What was spent since would be forgotten, so it is not put back. Look for a newer "
        "copy of the ledger's file, with its -wal. If there is none, `--accept-older --reason WHY` puts it back with "
        "nothing left to spend, until a steward grants `everyone` the budget less what is known to be charged since."
    )


def _close(draft: Path, key: bytes | None, anchor_at: Path | None, author: str, reason: str) -> None:
    """Close what the copy takes for open; the anchor then names its head, before it is put in its place."""
    with Ledger.manage(draft, key=key, unanchored=True) as ledger:
        ledger.steward.accept_older(author=author, reason=reason, anchor_at=anchor_at)


def _check_free(place: Path) -> None:
    """Refuse a place where something is; and a log that SQLite would read into whatever is put beside it."""
    for suffix in ("", *_BESIDE):
        file = place.with_name(f"{place.name}{suffix}")
        if file.exists() or file.is_symlink():
            raise PolicyError(
                f"{file} is there. A backup is put back where nothing is: move the ledger's files aside, all of "
                f"{place.name}, {place.name}-wal and {place.name}-shm, and keep them: they may hold charges that the "
                "backup does not."
            )


def _copy_database(source: Path, target: Path) -> None:
    """SQLite's online backup of another file of ours."""
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as there,
        closing(sqlite3.connect(target, isolation_level=None)) as copy,
    ):
        there.backup(copy)


def _copy_file(source: Path, target: Path) -> None:
    file = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(file, "wb") as copy, source.open("rb") as there:
        shutil.copyfileobj(there, copy)
        copy.flush()
        os.fsync(copy.fileno())


def _link(draft: Path, place: Path) -> None:
    """Give the draft its name, unless that is taken. It is whole: no log is left beside it."""
    log = draft.with_name(f"{draft.name}-wal")
    if log.exists() and log.stat().st_size:
        raise PolicyError(f"what was written to {draft} did not leave its log. Nothing was put back; try again.")
    os.link(draft, place)
    draft.unlink()
    flush_folder(place.parent)


def _write(file: Path, text: str) -> None:
    with open(file, "x", encoding="utf-8", opener=lambda name, how: os.open(name, how, 0o600)) as written:
        written.write(text)
        written.flush()
        os.fsync(written.fileno())


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _head(file: Path) -> Head:
    """Where a copy ends. It is not a ledger in its place: nothing is opened for writing."""
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?immutable=1", uri=True)) as copy:
        serial, time, digest = copy.execute(
            "SELECT serial, time, hash FROM journal ORDER BY serial DESC LIMIT 1"
        ).fetchone()
    return Head(int(serial), str(time), str(digest))


def _postgres(where: str) -> str:
    return (
        f"the ledger {where} lives in Postgres, whose own tool backs it up, from one snapshot: `pg_dump "
        "--schema=hubbub --format=custom`. After a pg_restore, `hubbub ledger restore --accept-older`, given no "
        "backup, takes the older ledger with nothing left to spend."
    )
