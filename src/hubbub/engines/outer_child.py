"""The process of the outer part: releases and public tables, no rows of people, no ledger, no key, no network.

    python -m hubbub.engines.outer_child FD          FD: its socket to the process that asks

It shuts itself in (`hubbub.confine`): it reads what Python and its packages need, and writes nothing. Each statement
has so much memory and so many seconds of processors; what takes more ends this process, and nothing else.

    open       an engine of its own for tables; then arrow, execute, close
    describe   the columns of a statement, against tables without rows
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from hubbub.confine import confine
from hubbub.engines.outer_engine import Binder, Limited, empty, locked, refused
from hubbub.engines.outer_frames import receive, send
from hubbub.errors import QueryError

__all__ = ["main"]

_BINDERS: Final = 8
_BESIDE: Final = 2**29
"""Bytes beside what a statement may use: of Python, of threads."""


class _Server:
    """What is open, and what is kept: tables by the numbers they were given, binders by whose they are."""

    def __init__(self) -> None:
        self._kept: dict[int, pa.Table] = {}
        self._binders: OrderedDict[str, Binder] = OrderedDict()
        self._con: duckdb.DuckDBPyConnection | None = None
        self._limited: Limited | None = None
        self._next: duckdb.DuckDBPyConnection | None = None
        self._left: list[duckdb.DuckDBPyConnection] = []

    def answer(self, said: dict[str, Any], tables: list[pa.Table]) -> tuple[dict[str, Any], list[pa.Table]]:
        """What is said to one thing that was said."""
        answers: list[pa.Table] = []
        told: dict[str, Any] = {}
        try:
            match said["do"]:
                case "open":
                    self._open(said, iter(tables))
                case "arrow":
                    answers.append(self._engine.arrow(said["sql"]))
                case "execute":
                    self._engine.execute(said["sql"])
                case "close":
                    self._close()
                case "describe":
                    told["columns"] = self._described(said, tables)
        except QueryError as error:
            told["refused"] = str(error)
        told["over"] = self._limited is not None and self._limited.over
        return told, answers

    @property
    def _engine(self) -> Limited:
        assert self._limited is not None
        return self._limited

    def _open(self, said: dict[str, Any], sent: Any) -> None:
        self._close()
        for number in said["dropped"]:
            self._kept.pop(number, None)
        for number in said["kept"]:
            self._kept[number] = next(sent)
        held = {name: next(sent) if number is None else self._kept[number] for name, number in said["tables"].items()}
        _bound(said["seconds"], said["memory"])
        try:
            new, self._next = self._next, None
            self._con = locked(held, said["memory"], con=new)
        except (duckdb.Error, RuntimeError, MemoryError) as error:
            raise refused(error) from None
        self._limited = Limited(self._con, said["seconds"], said["memory"]).__enter__()

    def _close(self) -> None:
        if self._con is not None and self._limited is not None:
            self._limited.__exit__(None, None, None)
            self._left.append(self._con)
        self._con = self._limited = None

    def rest(self) -> None:
        """While nobody waits: close what is left, and have an engine ready that has held nothing yet."""
        while self._left:
            self._left.pop().close()
        if self._con is None and self._next is None:
            with suppress(duckdb.Error, RuntimeError, MemoryError):  # then it is made when it is needed
                self._next = empty(spills=False)

    def _described(self, said: dict[str, Any], tables: list[pa.Table]) -> list[tuple[str, str]]:
        _bound(said["seconds"], said["memory"])
        binder = self._binders.pop(said["binder"], None) or Binder(said["memory"])
        self._binders[said["binder"]] = binder
        if len(self._binders) > _BINDERS:
            self._binders.popitem(last=False)[1].close()
        schemas = {name: table.schema for name, table in zip(said["schemas"], tables, strict=True)}
        return binder.described(said["sql"], schemas, said["released"], said["seconds"])


def _bound(seconds: float, memory: int) -> None:
    """So much more memory and so much more time of processors may this process use; what uses more is ended."""
    with suppress(ValueError, OSError):
        used = resource.getrusage(resource.RUSAGE_SELF)
        time = int(used.ru_utime + used.ru_stime + (seconds + 5) * (os.cpu_count() or 1)) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (time, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        data = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
        most = data + 2 * memory + _BESIDE
        resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def main(arguments: list[str]) -> int:
    """Serve the process at the other end of a socket until it ends."""
    connection = socket.socket(fileno=int(arguments[0]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks is interrupted, and ends this one
    held = confine(read=[])
    send(connection, {"ready": vars(held)})
    server = _Server()
    with suppress(OSError):
        while (asked := receive(connection)) is not None:
            send(connection, *server.answer(*asked))
            server.rest()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
