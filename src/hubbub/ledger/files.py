"""A ledger's SQLite file: made whole or not at all, looked at before it is trusted, its failures put into words.

A new ledger is built under another name and linked to its own, so whoever opens the path finds either nothing or a
whole ledger, however many start together. This is also why an empty file is refused: only a truncated ledger looks like
that, and taking it for a new one would give its budget back.
"""

from __future__ import annotations

import fcntl
import glob
import os
import re
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hubbub.errors import HubbubError, PolicyError
from hubbub.ledger.hash_chain import Connection
from hubbub.ledger.migrate import migrate
from hubbub.ledger.schema import APPLICATION_ID, VERSION, sqlite_schema

__all__ = [
    "UNOPENED",
    "Fill",
    "changed_rules",
    "check_contents",
    "check_file",
    "check_folder",
    "create_file",
    "damaged",
    "finished",
    "flush_folder",
    "hard_link",
    "held_too_long",
    "in_words",
    "locked_in_time",
    "make_tables",
    "open_to_others",
    "too_large_to_open",
    "transaction",
]

Fill = Callable[[Connection], None]

_PAUSE = 0.002
_MOUNTS = "/proc/self/mountinfo"
_CREATE = "Make one with `hubbub ledger create`, or name another file."


def create_file(path: Path, fill: Fill) -> bool:
    """Make a ledger at `path`, whole or not at all; False if something is there already.

    Args:
        path: where; its folder must exist.
        fill: writes the first rows.

    Raises:
        PolicyError: the folder is missing or cannot be written to.
    """
    check_folder(path)
    if os.path.exists(path):  # False, too, for a name that no file can have
        return False
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.new")
    try:
        _build(draft, fill)
        os.link(draft, path)
        flush_folder(path.parent)
    except FileExistsError:
        return False
    except sqlite3.Error as error:
        raise in_words(error, path) from error
    except OSError as error:
        raise PolicyError(
            f"cannot create the ledger {path}: {error.strerror}. It needs a folder on a local disk, "
            "writable to you, that knows hard links."
        ) from error
    finally:
        with suppress(OSError):  # its name may be longer than there may be
            draft.unlink()
    return True


def _build(draft: Path, fill: Fill) -> None:
    # It holds every analyst's questions and answers: its owner's alone, and so are its log and what else SQLite adds.
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    connection = sqlite3.connect(draft, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        with transaction(connection, "BEGIN IMMEDIATE"):
            make_tables(connection, fill)
        connection.execute("PRAGMA journal_mode = WAL")
    finally:
        connection.close()


def make_tables(connection: sqlite3.Connection, fill: Fill | None) -> None:
    for statement in sqlite_schema():
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    if fill is not None:
        fill(connection)


def flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str) -> Iterator[sqlite3.Connection]:
    connection.execute(begin)
    with finished(connection):
        yield connection


@contextmanager
def finished(connection: sqlite3.Connection, before: Callable[[], None] | None = None) -> Iterator[sqlite3.Connection]:
    """Commit what was begun, or leave nothing of it. before: is called just before the COMMIT, and may raise."""
    try:
        yield connection
        if before is not None:
            before()
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise


def check_folder(path: Path) -> None:
    folder = path.parent
    if not folder.is_dir():
        raise PolicyError(f"cannot create the ledger {path}: there is no folder {folder}. Make it first.")
    if os.path.isdir(path):
        raise PolicyError(f"the ledger {path} is a folder. Name a file in it, such as {path / 'budget.db'}.")


def check_file(path: Path, *, is_open: bool) -> None:
    """Refuse what is not a ledger before SQLite opens it, which could change a stranger's database.

    Its header is looked at, and nothing else: beside a write-ahead log, the rest of the file may be of any age.
    """
    if os.path.isdir(path):
        raise PolicyError(f"the ledger {path} is a folder. Name a file in it, such as {path / 'budget.db'}.")
    if not os.path.exists(path):
        raise PolicyError(f"there is no ledger {path}. {_CREATE}")
    if not os.access(path, os.R_OK):
        raise PolicyError(f"cannot read the ledger {path}: permission denied. Ask its owner for access.")
    if path.stat().st_nlink > 1:
        _drop_drafts(path)
        if path.stat().st_nlink > 1:
            raise hard_link(path)
    if _is_mounted(path):
        raise hard_link(path, mounted=True)
    # To close a file drops every lock that this process has on it (POSIX): one that is open already is not looked at.
    if not is_open and _application_id(path) != APPLICATION_ID:
        raise PolicyError(f"{path} is a SQLite file of another program, not a ledger; left as it is. {_CREATE}")


def _drop_drafts(path: Path) -> None:
    """Remove the name under which a ledger was made: whoever made it died just before doing so, or is about to."""
    for draft in path.parent.glob(f".{glob.escape(path.name)}.*.new"):
        with suppress(OSError):
            if draft.samefile(path):
                draft.unlink()


def _is_mounted(path: Path) -> bool:
    """Whether a file is itself what was mounted, as into a container, whose folder is another one than the file's own.

    Linux tells (proc(5), mountinfo): the fifth word of a line is a mount point, with white space in octal.
    """
    try:
        lines = Path(_MOUNTS).read_bytes().splitlines()
    except OSError:
        return False
    points = (line.split(b" ")[4] for line in lines if line.count(b" ") > 4)
    place = os.fsencode(os.path.realpath(path))
    return any(re.sub(rb"\\(\d{3})", lambda octal: bytes([int(octal[1], 8)]), point) == place for point in points)


def hard_link(path: Path, *, mounted: bool = False) -> PolicyError:
    """The refusal of a file with two names: by each, SQLite would keep another log beside it."""
    name, way = "another name too (a hard link)", "Remove the other name; a symbolic link does no harm"
    if mounted:
        name, way = "another name too (it is mounted here by itself)", "Mount its folder instead"
    return PolicyError(
        f"the ledger {path} has {name}. Under each name it would be another ledger, with a log of its own, and charges "
        f"would be lost. {way}."
    )


def open_to_others(path: Path, anchor: Path | None = None) -> list[Path]:
    """The files of a ledger that users outside its owner's group may read or write, and those of ledgers beside it.

    Those of an older hubbub are: it made them with what the system gives any file. Backups are found by their header.
    """
    places = [path.with_name(f"{path.name}{suffix}") for suffix in ("", "-wal", "-shm", "-queue")]
    if anchor is not None:
        places += [anchor, anchor.with_name(f"{anchor.name}-lock")]
    for other in sorted(path.parent.iterdir()):
        if other not in places and not other.is_symlink() and other.is_file():
            with suppress(OSError, PolicyError):  # of those that are nobody's ledger
                if _application_id(other) == APPLICATION_ID:
                    places.append(other)
    return [file for file in places if file.exists() and file.stat().st_mode & 0o007]


def _application_id(path: Path) -> int:
    """The number at byte 68 of a SQLite file's header, https://sqlite.org/fileformat.html."""
    with path.open("rb") as file:
        header = file.read(100)
        size = os.fstat(file.fileno()).st_size
    if size < 512 or not header.startswith(b"SQLite format 3\x00"):
        raise PolicyError(
            f"{path} is not a ledger: it does not begin like a SQLite file. If it once was one, it is damaged: "
            f"restore a backup, never start anew in its place. {_CREATE}"
        )
    return int.from_bytes(header[68:72], "big")


def check_contents(connection: sqlite3.Connection, path: Path, read_only: bool) -> None:
    # quick_check does not look whether an index points to the row that it names: one bit gives another's answer.
    verdict = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if verdict != "ok":
        raise damaged(path)
    if (foreign := _foreign_rules(connection)) and not read_only:
        raise PolicyError(
            f"the ledger {path} has rules that are not its own ({foreign}): somebody else added them, and they may "
            "change what it says. No answer is given; look at it, and restore a backup that holds every charge."
        )
    version = _version(connection)
    if 1 <= version < VERSION and not read_only:
        with transaction(connection, "BEGIN IMMEDIATE"):
            version = _version(connection)  # another process may have been quicker
            if version < VERSION:
                migrate(connection, version)
                version = VERSION
    if version != VERSION:
        if version > VERSION:
            next_step = "Update hubbub."
        elif version < 1:
            next_step = "It was made by an unfinished hubbub: create a new one."
        else:
            next_step = "Bring it up to date: `hubbub ledger migrate`."
        raise PolicyError(
            f"the ledger {path} has schema version {version}; this hubbub reads version {VERSION}. {next_step}"
        )


def _rules(connection: sqlite3.Connection) -> dict[str, str]:
    """The triggers and views of a ledger, by name."""
    rules = connection.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('trigger', 'view')").fetchall()
    return {str(name): " ".join(str(sql).split()) for name, sql in rules}


_OWN_RULES = {text.split()[2]: " ".join(text.split()) for text in sqlite_schema() if text.startswith("CREATE TRIGGER")}
_OWN_TEXTS = frozenset(_OWN_RULES.values())
_OLD_RULE = re.compile(
    r"CREATE TRIGGER ([a-z_]+)_no_(update|delete) BEFORE (UPDATE|DELETE) ON \1 "
    r"BEGIN SELECT RAISE\(ABORT, '[a-z -]+'\); END"
)


def _foreign_rules(connection: sqlite3.Connection) -> str:
    """The rules that are not a ledger's own, by their text: a name says nothing about what a trigger does.

    In an older schema those of tables that are no more are known by their name and form.
    """
    foreign = {name: sql for name, sql in _rules(connection).items() if sql not in _OWN_TEXTS}
    if foreign and 1 <= _version(connection) < VERSION:
        foreign = {name: sql for name, sql in foreign.items() if not _OLD_RULE.fullmatch(sql.replace('"', ""))}
    return ", ".join(sorted(foreign))


def changed_rules(connection: sqlite3.Connection) -> str:
    """What is wrong with the triggers by which a ledger only grows; empty where nothing is."""
    there = _rules(connection)
    wrong = sorted(name for name in there.keys() | _OWN_RULES.keys() if there.get(name) != _OWN_RULES.get(name))
    return f"its rules were changed: {', '.join(wrong[:5])}" if wrong else ""


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def damaged(path: Path | None) -> PolicyError:
    return PolicyError(
        f"the ledger {path or 'in memory'} is damaged, so no answer is given. Restore a backup "
        "that holds every charge, never an older one: what was spent since would be forgotten."
    )


def too_large_to_open(path: Path | None) -> PolicyError:
    """The refusal where SQLite asks for more memory than there is while it reads which tables there are."""
    return PolicyError(
        f"the ledger {path or 'in memory'} cannot be opened: SQLite asked for more memory than there is, as it does "
        "where a page is damaged. No answer is given. If memory is not short, restore a backup that holds every "
        "charge, never an older one: what was spent since would be forgotten."
    )


UNOPENED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH)
"""What SQLite says where the system does not let it open a file, or write to it."""

UNSURE = (
    "This step may have been recorded; it is not known, so no answer is given. Ask again: what was recorded is found "
    "then, and not charged twice."
)
"""What is said where a step may have been recorded."""


def locked_in_time(file: int, patience: float) -> bool:
    """Lock an open file until it is closed, and wait at most `patience` seconds for who holds it; False if he still
    does then. The system lets go of a lock whose holder ends, however he ends.
    """
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(_PAUSE)


def held_too_long(path: Path | None) -> PolicyError:
    """The refusal where others did not let go in time."""
    where = f"the ledger {path}" if path is not None else "the ledger in memory"
    return PolicyError(
        f"{where} is held by another process for too long. This step was not recorded, so no answer is given. Try "
        "again later."
    )


def in_words(error: sqlite3.Error, path: Path | None) -> HubbubError:
    """SQLite's failure as a refusal: by its primary result code, https://sqlite.org/rescode.html."""
    where = f"the ledger {path}" if path is not None else "the ledger in memory"
    after = "This step was not recorded, so no answer is given."
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return held_too_long(path)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return damaged(path)
        case code if code in UNOPENED:
            said = f"cannot write to {where}. {after} The file and its folder must be writable to you."
        case sqlite3.SQLITE_FULL:
            said = f"no room for {where}: the disk is full. {after} Free some space."
        case sqlite3.SQLITE_IOERR:
            said = f"the disk refused to read or write {where} ({error}). {after} "
            said += "See to the disk: its space, its quota, its health."
        case _:
            said = f"{where} could not be used: {error}. {after} See to the file."
    return PolicyError(said)
