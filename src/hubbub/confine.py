"""Shutting a process in: what it may still open after it was told what it needs.

    no_new_privs, undumpable        no program it starts gains rights; no other process of the user reads its memory
    limits                          no core files; data, files and open files bounded
    Landlock (Linux 5.13 on)        reads what it was told alone, writes to its own folder alone; from 6.7 on no TCP

Landlock holds for the calling thread and those that it starts: it is called before an engine starts its own. DuckDB
needs /sys. What a kernel does not have is not there: `confine` says what holds, and `hubbub doctor` shows it.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["Held", "confine", "landlock_version", "undumpable"]

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same on every architecture
_PATH, _VERSION = 1, 1
_NO_NEW_PRIVS, _DUMPABLE = 38, 4
_FILES: Final = {1: 13, 2: 14, 3: 15, 5: 16}  # since which version how many rights of files there are
_READ_FILE, _READ_FOLDER, _EXECUTE, _WRITE_FILE = 1 << 2, 1 << 3, 1 << 0, 1 << 1
_READING: Final = _READ_FILE | _READ_FOLDER | _EXECUTE
_TCP: Final = 0b11
_SCOPES: Final = 0b11  # abstract sockets and signals of processes outside


@dataclass(frozen=True)
class Held:
    """What holds. landlock: its version, 0 without it. network: whether TCP is still open."""

    landlock: int
    undumpable: bool
    no_new_privs: bool
    network: bool


def _system() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def landlock_version() -> int:
    """The version of Landlock that this kernel has; 0 without it."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(_system().syscall(_CREATE, None, 0, _VERSION)))


def confine(
    *, read: Iterable[Path], write: Iterable[Path] = (), network: bool = False, data: int | None = None
) -> Held:
    """Shut this process in. read: files and folders that it may read; write: folders that are its own. network: whether
    it may go on to connect. data: bytes of memory of its own.
    """
    limits = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 4096)]
    limits += [] if data is None else [(resource.RLIMIT_DATA, data)]
    for which, most in limits:
        with suppress(ValueError, OSError):
            hard = resource.getrlimit(which)[1]
            least = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(which, (least, least))
    if not sys.platform.startswith("linux"):
        return Held(0, False, False, True)
    system = _system()
    quiet = system.prctl(_DUMPABLE, 0, 0, 0, 0) == 0
    bound = system.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    version = landlock_version()
    if version and bound and not _landlock(system, version, [*_needed(), *read], list(write), network):
        version = 0
    return Held(version, quiet, bound, network or version < 4)


def undumpable() -> bool:
    """Let no other process of the user read this one's memory. Whether that holds."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(_system().prctl(_DUMPABLE, 0, 0, 0, 0) == 0)


def _needed() -> list[Path]:
    """What Python, its packages and the engines read; nothing of the user's."""
    own = Path(__file__).resolve().parents[1]
    places = ["/usr", "/lib", "/lib64", "/bin", "/etc", "/proc", "/sys", sys.prefix, sys.base_prefix]
    # Not all of /dev: in /dev/shm anybody's files may lie.
    places += [f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")]
    return [*(Path(place) for place in places), own, *(Path(p) for p in sys.path if p.endswith("site-packages"))]


def _landlock(system: Any, version: int, read: list[Path], write: list[Path], network: bool) -> bool:
    every = (1 << _FILES[max(v for v in _FILES if v <= version)]) - 1
    tcp = 0 if network or version < 4 else _TCP
    asked = struct.pack("<QQQ", every, tcp, _SCOPES if version >= 6 else 0)[: 24 if version >= 6 else 16]
    rules = system.syscall(_CREATE, asked, len(asked) if version >= 4 else 8, 0)
    if rules < 0:
        return False
    try:
        for place in read:
            _allow(system, rules, place, _READING)
        for place in write:
            _allow(system, rules, place, every)
        _allow(system, rules, Path("/dev/null"), _READ_FILE | _WRITE_FILE)
        return bool(system.syscall(_RESTRICT, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow(system: Any, rules: int, place: Path, rights: int) -> None:
    with suppress(OSError):
        file = os.open(place, os.O_PATH | os.O_CLOEXEC)
        try:
            of_files = rights if place.is_dir() else rights & (_READ_FILE | _WRITE_FILE | _EXECUTE)
            rule = struct.pack("<Qi", of_files, file)
            system.syscall(_ADD, rules, _PATH, rule, 0)
        finally:
            os.close(file)
