"""The clerk's end of the line: whoever says the token is heard, and nobody keeps the next from being heard.

A runner that is taken over finds the socket. It may connect as often as it likes and say nothing: of those that have
not said the token few are kept, and the oldest goes for each that comes. Nothing that goes wrong with one of them, not
even that the process has no more files, ends the listening.
"""

from __future__ import annotations

import hmac
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from hubbub.errors import HubbubError
from hubbub.service.frames import receive, send

__all__ = ["Listening"]

_WORD: Final = 1024  # bytes that are kept of whoever has not said the token
_SILENT: Final = 64  # connections that are kept, of those that have not
_PAUSE: Final = 0.05


class Listening:
    """A Unix socket on which whoever knows the token is answered; in threads of its own. shared: with the group.

    answer: what is told of an act, what it is given, and a proof.
    """

    def __init__(self, path: str, token: str, answer: Callable[[str, object, object], Any], *, shared: bool) -> None:
        self._token, self._answer = token.encode(), answer
        self._lock, self._silent = threading.Lock(), dict[socket.socket, None]()
        with suppress(FileNotFoundError):
            os.unlink(path)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(path)
        os.chmod(path, 0o660 if shared else 0o600)
        self._socket.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Hear nobody new."""
        self._socket.close()

    def _accept(self) -> None:
        while self._socket.fileno() >= 0:
            try:
                connection, _ = self._socket.accept()
                self._keep(connection)
                threading.Thread(target=self._hear, args=(connection,), daemon=True).start()
            except (OSError, RuntimeError):  # no more files, or no more threads: some will be free again
                time.sleep(_PAUSE)

    def _keep(self, connection: socket.socket) -> None:
        """Wait for its token, in the place of the one that was waited for longest."""
        with self._lock:
            self._silent[connection] = None
            oldest = next(iter(self._silent)) if len(self._silent) > _SILENT else None
            if oldest is not None:
                del self._silent[oldest]
        if oldest is not None:
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)

    def _hear(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, HubbubError, KeyError, TypeError, ValueError):
            try:
                if not hmac.compare_digest(str(receive(connection, most=_WORD)).encode(), self._token):
                    return
            finally:
                with self._lock:
                    self._silent.pop(connection, None)
            while (asked := receive(connection)) is not None:
                send(connection, self._answer(asked["act"], asked["given"], asked.get("proof")))
