"""The line to the clerk: one act, and what is told of it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from hubbub.service.frames import receive, send

__all__ = ["ClerkLine"]


class ClerkLine:
    """The line to the clerk: a connection for each thread, opened anew where anything went wrong on it: what is left on
    it may be said to somebody else."""

    def __init__(self, path: str, token: str) -> None:
        self._path, self._token, self._own = path, token, threading.local()

    def ask(self, act: str, given: Mapping[str, Any], proof: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What the clerk says of an act, asked with a proof of who asks; nothing is asked twice, for it may have been
        charged.
        """
        away = {"refused": {"kind": "away", "text": "the service is starting again; ask in a few seconds."}}
        told = None
        try:
            connection = self._connected()
            send(connection, {"act": act, "given": given, "proof": proof})
            told = receive(connection)
        except OSError:
            pass
        finally:
            if told is None:
                self._own.connection = None
        return away if told is None else dict(told)

    def _connected(self) -> socket.socket:
        known: socket.socket | None = getattr(self._own, "connection", None)
        if known is not None and not _is_closed(known):
            return known
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._path)
        send(connection, self._token)
        self._own.connection = connection
        return connection


def _is_closed(connection: socket.socket) -> bool:
    """Whether the other end has gone: nothing is said here unasked."""
    with suppress(BlockingIOError):
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    return False
