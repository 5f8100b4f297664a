"""Which process holds a charge, and whether it is still alive.

An owner is a text "boot/namespace/pid/start". Two processes share a text only if they are the same one: a pid comes
again, its start time does not. Nothing about privacy hangs on the answer: a charge can be drawn by its last owner
only, and once. A wrong guess makes a live process lose its question, or a dead one's question be charged again.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final

__all__ = ["STALE", "is_gone", "this_process"]

STALE: Final = timedelta(hours=1)
"""After this long, the process of another machine is taken to be gone."""


def this_process() -> str:
    """The owner text of this process."""
    return _owner(os.getpid())


@lru_cache(maxsize=8)
def _owner(pid: int) -> str:
    return f"{_place()}/{pid}/{_start(pid)}"


def _place() -> str:
    """The boot and the pid namespace: within one place, pids mean the same."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return "unknown/unknown"


def _start(pid: int) -> str:
    """The start time of a process in clock ticks since boot; empty where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _is_there(pid: int) -> bool:
    """Whether there is a process of that number, whose start is hidden from this user (`hidepid` of /proc)."""
    try:
        os.kill(pid, 0)
    except PermissionError:  # another user's
        return True
    except (OSError, OverflowError):
        return False
    return pid > 0


def is_gone(owner: str, since: str, now: str) -> bool:
    """Whether the process `owner`, last heard of at `since`, is gone.

    Here it is looked for; elsewhere, or where processes cannot be looked at, it is gone after `STALE`.
    """
    *place, pid, start = owner.split("/")
    if "/".join(place) == _place() and start and pid.isascii() and pid.isdigit():
        started = _start(int(pid))
        return started != start if started else not _is_there(int(pid))
    return datetime.fromisoformat(now) - datetime.fromisoformat(since) > STALE
