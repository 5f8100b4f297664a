"""What processes of the service say to each other: JSON on a Unix socket, each piece with its length before it."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any, Final

from hubbub.errors import InternalError

__all__ = ["MOST", "receive", "send"]

MOST: Final = 1 << 26
"""Bytes of one piece."""
_LENGTH: Final = struct.Struct(">I")


def send(connection: socket.socket, said: Any) -> None:
    """Say one thing. Raises OSError where nobody listens, InternalError for what is too long."""
    data = json.dumps(said).encode()
    if len(data) > MOST:
        raise InternalError(f"{len(data)} bytes are more than one process says to another at once")
    connection.sendall(_LENGTH.pack(len(data)) + data)


def receive(connection: socket.socket, *, most: int = MOST) -> Any:
    """What was said, in so many bytes at most; None at the end.

    Raises InternalError for what nobody says here, OSError for a broken line.
    """
    head = _exactly(connection, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > most:
        raise InternalError("another process says more than it may at once")
    data = _exactly(connection, length)
    try:
        return None if data is None else json.loads(data)
    except (ValueError, RecursionError):
        raise InternalError("another process says what is not JSON") from None


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    data = bytearray()
    while len(data) < count:
        piece = connection.recv(min(1 << 20, count - len(data)))
        if not piece:
            return None
        data += piece
    return bytes(data)
