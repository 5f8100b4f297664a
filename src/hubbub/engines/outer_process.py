"""Where the outer part runs: in a process of its own (`hubbub.engines.outer_child`), kept warm, ended when it is late.

One giant value or a slow function can end that process, and hurts nothing else: whoever asked is told, and the next
statement has a new one. A statement that is interrupted, or given up by another thread, ends its process too, for
half a conversation is none. One that is free waits for the next statement, of whichever session.

Where there can be no such process (no Unix sockets, no Python to start), and in a command that asks one question and
ends, the engine runs inside, within the same bounds of time and memory, as far as it keeps them itself.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

import duckdb
import pyarrow as pa

from hubbub.engines.outer_engine import Binder, Limited, locked, refused, too_late, too_much
from hubbub.engines.outer_frames import Late, receive, send
from hubbub.errors import QueryError
from hubbub.process import asks_once

__all__ = ["Binding", "OuterEngine", "end_all", "engine_of", "keep_ready", "why_inside"]

_GRACE: Final = 2.0
"""Seconds beyond its own bound, after which a process that does not stop is ended."""
_START: Final = 60.0
_IDLE: Final = 2
_KEPT: Final = 8
_LARGE: Final = 2**26  # bytes of a public table that is sent again and again, and not kept
_PASSED: Final = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH")


class OuterEngine(Protocol):
    """An engine that holds some tables. over: whether its time was up."""

    over: bool

    def arrow(self, sql: str) -> pa.Table: ...

    def execute(self, sql: str) -> None: ...


class _Gone(Exception):
    """The process is not there any more."""


class _Child:
    """One process. known: the public tables that it keeps, by the numbers they have there."""

    def __init__(self) -> None:
        here, there = socket.socketpair()
        source = str(Path(__file__).parents[2])
        environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
        environment |= {"PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            self._popen = subprocess.Popen(
                [sys.executable, "-P", "-m", "hubbub.engines.outer_child", str(there.fileno())],
                pass_fds=[there.fileno()],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        finally:
            there.close()
        self._socket, self.pid, self._known, self._numbers = here, os.getpid(), dict[int, pa.Table](), 0
        self.talking = False
        self.held = self._said(time.monotonic() + _START)[0]["ready"]

    def _said(self, until: float) -> tuple[Any, list[pa.Table]]:
        try:
            said = receive(self._socket, until=until)
        except OSError:
            said = None
        if said is None:
            raise _Gone
        return said

    def call(self, said: Mapping[str, Any], tables: Sequence[pa.Table], until: float) -> tuple[Any, list[pa.Table]]:
        """What it says to that. Raises _Gone where it ended, Late where it says nothing until then."""
        self.talking = True
        try:
            send(self._socket, said, tables, until=until)
        except OSError:
            raise _Gone from None
        told = self._said(until)
        self.talking = False
        return told

    def numbered(self, tables: Mapping[str, pa.Table]) -> tuple[dict[str, int], list[int], list[int]]:
        """The numbers of public tables, those that it gets now, and those that it lets go."""
        numbers: dict[str, int] = {}
        new = []
        for name, table in tables.items():
            if table.nbytes > _LARGE:
                continue
            number = next((n for n, known in self._known.items() if known is table), None)
            if number is None:
                self._numbers += 1
                number = self._numbers
                self._known[number] = table
                new.append(number)
            numbers[name] = number
        dropped = [n for n in self._known if n not in numbers.values()][: max(0, len(self._known) - _KEPT)]
        for number in dropped:
            del self._known[number]
        return numbers, new, dropped

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    def end(self) -> None:
        self._socket.close()
        if self.pid == os.getpid():
            self._popen.kill()
            self._popen.wait()


class _Processes:
    """The processes that are free."""

    def __init__(self) -> None:
        self._free: list[_Child] = []
        self._lock = threading.Lock()
        self._ready = False
        self.why_not: str | None = None

    @contextmanager
    def one(self) -> Iterator[_Child | None]:
        """A process, warm if there is one; None where there can be none."""
        child = self._taken()
        try:
            yield child
        finally:
            if child is not None:
                self._back(child)

    def _taken(self) -> _Child | None:
        with self._lock:
            while self._free:
                child = self._free.pop()
                if child.pid == os.getpid() and child.alive:
                    return child
                child.end()
        if self.why_not is not None or asks_once():
            return None
        if not (hasattr(socket, "AF_UNIX") and os.name == "posix" and sys.executable):
            self.why_not = "this platform has no processes of that kind"
            return None
        try:
            return _Child()
        except (OSError, ValueError, _Gone, Late) as error:
            self.why_not = f"none could be started ({type(error).__name__})"
            return None

    def _back(self, child: _Child) -> None:
        with self._lock:
            if not child.talking and len(self._free) < _IDLE:
                self._free.append(child)
                return
            child.end()
            short = self._ready and not self._free
        if short:
            threading.Thread(target=self._start_one, daemon=True).start()

    def _start_one(self) -> None:
        with suppress(Exception), self.one():  # what goes wrong is met by whoever asks next
            pass

    def keep_ready(self) -> None:
        """Start one now, and another whenever the last one was ended."""
        self._ready = True
        self._start_one()

    def end(self) -> None:
        with self._lock:
            while self._free:
                self._free.pop().end()


_PROCESSES: Final = _Processes()


def keep_ready() -> None:
    """Have a process before the first statement, and again after each that ended one: for a service, where one
    statement must not make the next one wait."""
    _PROCESSES.keep_ready()


def end_all() -> None:
    """End the processes that are free."""
    _PROCESSES.end()


atexit.register(end_all)


class _There:
    """An engine in another process."""

    def __init__(self, child: _Child, seconds: float, until: float) -> None:
        self._child, self._seconds, self._until = child, seconds, until
        self.over = False

    def arrow(self, sql: str) -> pa.Table:
        return self._call({"do": "arrow", "sql": sql})[1][0]

    def execute(self, sql: str) -> None:
        self._call({"do": "execute", "sql": sql})

    def open(self, public: Mapping[str, pa.Table], released: Mapping[str, pa.Table], memory: int) -> None:
        """Hold these tables alone."""
        numbers, new, dropped = self._child.numbered(public)
        places = {name: numbers.get(name) for name in (*public, *released)}
        sent = [next(public[name] for name, n in numbers.items() if n == number) for number in new]
        sent += [({**public, **released})[name] for name, number in places.items() if number is None]
        said = {"do": "open", "tables": places, "kept": new, "dropped": dropped}
        self._call({**said, "seconds": self._seconds, "memory": memory}, sent)

    def close(self) -> None:
        """Let the tables go; what was given up in the middle of a word is ended instead."""
        if not self._child.talking:
            with suppress(_Gone, Late):
                self._child.call({"do": "close"}, [], time.monotonic() + _GRACE)

    def described(
        self,
        binder: str,
        sql: str,
        schemas: Mapping[str, pa.Schema],
        released: Mapping[str, Mapping[str, str]],
        memory: int,
    ) -> list[tuple[str, str]]:
        """What `Binder.described` says."""
        said = {"do": "describe", "binder": binder, "sql": sql, "schemas": [*schemas], "released": released}
        empty = [schema.empty_table() for schema in schemas.values()]
        told, _ = self._call({**said, "seconds": self._seconds, "memory": memory}, empty)
        return [(name, kind) for name, kind in told["columns"]]

    def _call(self, said: Mapping[str, Any], tables: Sequence[pa.Table] = ()) -> tuple[Any, list[pa.Table]]:
        try:
            told, answers = self._child.call(said, tables, self._until)
        except Late:
            self.over = True
            raise too_late(self._seconds) from None
        except _Gone:
            raise too_much() from None
        self.over = self.over or told["over"]
        if "refused" in told:
            raise QueryError(told["refused"])
        return told, answers


@contextmanager
def engine_of(
    public: Mapping[str, pa.Table], released: Mapping[str, pa.Table], *, seconds: float, memory: int
) -> Iterator[OuterEngine]:
    """An engine that holds these tables alone, for a limited time. public: tables that the next statement may read too.

    Raises QueryError where it cannot hold them.
    """
    with _PROCESSES.one() as child:
        if child is None:
            with _inside({**public, **released}, seconds, memory) as limited:
                yield limited
            return
        there = _There(child, seconds, time.monotonic() + seconds + _GRACE)
        there.open(public, released, memory)
        try:
            yield there
        finally:
            there.close()


@contextmanager
def _inside(tables: Mapping[str, pa.Table], seconds: float, memory: int) -> Iterator[Limited]:
    try:
        con = locked(tables, memory)
    except (duckdb.Error, RuntimeError) as error:
        raise refused(error) from None
    with con, Limited(con, seconds, memory) as limited:
        yield limited


class Binding:
    """Where statements are bound against tables without rows. Safe to use from several threads."""

    def __init__(self) -> None:
        self._name, self._lock = uuid.uuid4().hex, threading.Lock()
        self._binder: Binder | None = None

    def described(
        self,
        sql: str,
        schemas: Mapping[str, pa.Schema],
        released: Mapping[str, Mapping[str, str]],
        *,
        seconds: float,
        memory: int,
    ) -> list[tuple[str, str]]:
        """The columns of a statement with DuckDB's words for their types. released: the columns of releases, so too.

        Raises QueryError, in the engine's words, where it is refused, and where a bound is reached.
        """
        with _PROCESSES.one() as child:
            if child is not None:
                there = _There(child, seconds, time.monotonic() + seconds + _GRACE)
                return there.described(self._name, sql, schemas, released, memory)
        with self._lock:
            self._binder = self._binder or Binder(memory)
            return self._binder.described(sql, schemas, released, seconds)

    def close(self) -> None:
        with self._lock:
            if self._binder is not None:
                self._binder.close()
                self._binder = None


def why_inside() -> str | None:
    """Why the outer part runs in this process; None where it has one of its own."""
    with _PROCESSES.one() as child:
        return None if child is not None else _PROCESSES.why_not or "this command asks one question and ends"
