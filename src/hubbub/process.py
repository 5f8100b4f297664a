"""What this process is: a command's own, which may arrange it as it likes, or somebody else's program."""

from __future__ import annotations

__all__ = ["asks_once", "begin_command", "is_command"]

_this = {"command": False, "once": False}


def begin_command(*, once: bool) -> None:
    """This process is a command's and nobody else's. once: it asks one question, and ends."""
    _this.update(command=True, once=once)


def is_command() -> bool:
    """Whether this process is a command's."""
    return _this["command"]


def asks_once() -> bool:
    """Whether this process ends after one question."""
    return _this["once"]
