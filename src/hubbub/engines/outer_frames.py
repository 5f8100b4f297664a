"""What the process of the outer part and its parent say to each other: JSON, and tables as Arrow, on a socket."""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

__all__ = ["Late", "receive", "send"]

_LENGTH: Final = struct.Struct(">Q")
_PAUSE: Final = 0.05  # seconds after which a signal, or another thread's exception, is met


class Late(Exception):
    """Nothing was said in time."""


def send(connection: socket.socket, said: Any, tables: Sequence[pa.Table] = (), *, until: float | None = None) -> None:
    """Say one thing. until: a time of the monotonic clock.

    Raises Late where it is not heard by then, OSError where nobody listens.
    """
    pieces: list[Any] = []
    for table in tables:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        pieces.append(memoryview(sink.getvalue()))
    head = json.dumps([said, [piece.nbytes for piece in pieces]]).encode()
    try:
        for piece in (_LENGTH.pack(len(head)) + head, *pieces):
            connection.settimeout(None if until is None else max(_PAUSE, until - time.monotonic()))
            connection.sendall(piece)
    except TimeoutError:
        raise Late from None


def receive(connection: socket.socket, *, until: float | None = None) -> tuple[Any, list[pa.Table]] | None:
    """What was said; None at the end. until: a time of the monotonic clock.

    Raises Late where it is not said by then, OSError for a broken line.
    """
    head = _exactly(connection, _LENGTH.size, until)
    if head is None:
        return None
    text = _exactly(connection, _LENGTH.unpack(head)[0], until)
    if text is None:
        return None
    said, lengths = json.loads(text)
    tables = []
    for length in lengths:
        data = _exactly(connection, length, until)
        if data is None:
            return None
        tables.append(pa.ipc.open_stream(pa.py_buffer(data)).read_all())
    return said, tables


def _exactly(connection: socket.socket, count: int, until: float | None) -> bytearray | None:
    data = bytearray(count)
    view, at = memoryview(data), 0
    connection.settimeout(None if until is None else _PAUSE)
    while at < count:
        try:
            size = connection.recv_into(view[at:])
        except TimeoutError:
            if until is not None and time.monotonic() > until:
                raise Late from None
            continue
        if not size:
            return None
        at += size
    return data
