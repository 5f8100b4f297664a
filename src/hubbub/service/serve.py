"""Starting the service: a clerk and a front, each started again where it ends; what they need, and nothing else.

Each is told on its standard input what it needs: the clerk the policy, the front where to listen; both a socket and
the token that opens it. Without TLS the front listens on this machine alone.

The two may also be started apart, by different users of the system: `only="rows"` keeps the clerk and its runners,
`only="front"` the front, and what is between them lies in a folder that both may enter, the socket and its token. Then
the front's user can read neither rows, nor ledger, nor key, whatever becomes of the front.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from hubbub.errors import PolicyError, how_to_install
from hubbub.noise import system_bits
from hubbub.service.lines import json_line

__all__ = ["Part", "Service", "listening_place"]

_PATIENCE: Final = 60.0  # seconds, beside those that what runs may take
_PAUSE: Final = 0.2
_TOKEN: Final = "line-token"
_PORT: Final = re.compile("[0-9]{1,5}")
_LONGEST: Final = 100  # bytes of a socket's path; Linux takes 107, macOS 103
_NAME: Final = len("/hubbub-service-12345678/clerk")
Part: TypeAlias = Literal["rows", "front"]
"""What of a service is started where its parts run apart."""
_PASSED: Final = ("PATH", "HOME", "LANG", "PYTHONPATH")  # to the front: no address of a database, no password


def listening_place(text: str, *, tls: bool, option: str = "--listen") -> tuple[str, int]:
    """The host and port of `HOST:PORT`.

    >>> listening_place("127.0.0.1:8080", tls=False)
    ('127.0.0.1', 8080)

    Raises PolicyError for anything else, and for another machine's eyes without TLS.
    """
    host, _, port = text.rpartition(":")
    if not host or _PORT.fullmatch(port) is None or int(port) > 65535:
        raise PolicyError(f"{option} {text!r}: expected HOST:PORT, as in 127.0.0.1:8080.")
    name = host.strip("[]")
    try:
        here = name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        here = False
    if not here and not tls:
        raise PolicyError(
            f"{option} {text}: without TLS the service listens on this machine alone, as on 127.0.0.1:8080: tokens and "
            "answers would be read on their way. Give --tls-cert and --tls-key, or put a server with TLS before it."
        )
    return name, int(port)


def folder_of_socket(line: Path | None) -> str:
    """A new folder, or the one that was named, whose socket has a path as short as systems take.

    Raises PolicyError for a named one that is too long.
    """
    if line is None:
        place = tempfile.gettempdir()
        short = len(os.fsencode(place)) + _NAME <= _LONGEST
        return tempfile.mkdtemp(prefix="hubbub-service-", dir=place if short else "/tmp")
    if len(os.fsencode(line)) + _NAME > _LONGEST:
        raise PolicyError(f"--line {line}: a socket's path has at most {_LONGEST} bytes; name a shorter folder.")
    return str(line)


@dataclass
class _Child:
    popen: subprocess.Popen[str]
    began: float


class Service:
    """Clerk and front of a policy. only: one of the two; line: the folder between them, then. say: where what a person
    should know goes.
    """

    def __init__(
        self,
        policy: Path,
        *,
        host: str,
        port: int,
        tls: tuple[Path, Path] | None = None,
        metrics: tuple[str, int] | None = None,
        only: Part | None = None,
        line: Path | None = None,
        log: str = "text",
        request_id: str | None = None,
        say: Callable[[str], None] = print,
    ) -> None:
        self.say = say if log == "text" else lambda said: say(json_line("service", said))
        self.only, self._line, self._place = only, line, (host, port)
        for needed in ("jinja2", "starlette", "uvicorn"):
            if find_spec(needed) is None:
                raise PolicyError(f"the service needs {needed}. {how_to_install('serve')}")
        if line is not None and not line.is_dir():
            raise PolicyError(f"--line {line}: there is no such folder. Make it first, for both users and nobody else.")
        self._folder = folder_of_socket(line)
        self._token = "" if only == "front" else system_bits().u64(4).tobytes().hex()
        common = {"socket": f"{self._folder}/clerk", "token": self._token}
        self._clerk_told = {**common, "policy": str(policy.absolute()), "shared": line is not None, "log": log}
        self._front_told: dict[str, Any] = {**common, "host": host, "port": port, "log": log, "request_id": request_id}
        if tls is not None:
            self._front_told |= {"cert": str(tls[0]), "key": str(tls[1])}
        if metrics is not None:
            self._front_told["metrics"] = metrics
        self.clerk: _Child | None = None
        self.front: _Child | None = None
        self.ready: dict[str, Any] = {}

    def start(self) -> None:
        """Start both, and wait until the clerk is ready and the front listens.

        Raises PolicyError where one of them refuses.
        """
        if self.only != "front":
            self._start_clerk()
            if self._line is not None:
                _write_token(self._line / _TOKEN, self._token)
        if self.only != "rows":
            self._start_front()
            self._await_front()

    def _await_front(self) -> None:
        until = time.monotonic() + _PATIENCE
        while not self._listens():
            if (self.front is not None and self.front.popen.poll() is not None) or time.monotonic() > until:
                raise PolicyError(f"the front does not listen on port {self._place[1]}: is another one there?")
            time.sleep(_PAUSE / 10)

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection(self._place, timeout=1):
            return True
        return False

    def _start_front(self) -> None:
        if self.only == "front":
            self._token = self._awaited_token()
        self.front = self._spawn("front", {**self._front_told, "token": self._token})

    def _awaited_token(self) -> str:
        """The token of a clerk that was started apart; waited for as long as one takes to start."""
        until = time.monotonic() + _PATIENCE
        while not (token := self._written_token()):
            if time.monotonic() > until:
                raise PolicyError(
                    f"there is no clerk in {self._folder}: start `hubbub serve --only rows` with this --line first, by "
                    "a user of the same group."
                )
            time.sleep(_PAUSE)
        return token

    def _written_token(self) -> str:
        try:
            return (Path(self._folder) / _TOKEN).read_text("utf-8")
        except OSError:
            return ""

    def _start_clerk(self) -> None:
        self.clerk = self._spawn("clerk", self._clerk_told)
        assert self.clerk.popen.stdout is not None
        line = self.clerk.popen.stdout.readline()
        told = json.loads(line) if line else {"refused": "the clerk ended before it was ready."}
        if "refused" in told:
            self.clerk.popen.wait()
            raise PolicyError(told["refused"])
        self.ready = told

    def _spawn(self, what: str, told: dict[str, Any]) -> _Child:
        popen = subprocess.Popen(
            [sys.executable, "-P", "-m", f"hubbub.service.{what}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if what == "clerk" else None,
            env=None if what == "clerk" else {name: os.environ[name] for name in _PASSED if name in os.environ},
            text=True,
            start_new_session=True,
        )
        assert popen.stdin is not None
        popen.stdin.write(json.dumps(told) + "\n")
        popen.stdin.close()
        return _Child(popen, time.monotonic())

    def watch(self) -> None:
        """Start again what has ended; once."""
        if self.front is not None and self.only == "front" and self._written_token() not in ("", self._token):
            self.front.popen.terminate()  # the clerk was started anew, with another token
            self.front.popen.wait()
        if self.front is not None and self.front.popen.poll() is not None:
            self.say("the front ended, and is started again")
            time.sleep(max(0.0, self.front.began + 1 - time.monotonic()))
            self._start_front()
        if self.clerk is not None and self.clerk.popen.poll() is not None:
            self.say("the clerk ended, and is started again; what was running has no answer")
            time.sleep(max(0.0, self.clerk.began + 1 - time.monotonic()))
            try:
                self._start_clerk()
            except PolicyError as error:
                self.say(f"the clerk does not start: {error}")

    def run(self) -> None:
        """Watch until SIGTERM or Ctrl-C, then stop in good order."""
        stopping: list[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda signum, _: stopping.append(signum))
        while not stopping:
            self.watch()
            time.sleep(_PAUSE)
        self.say("stopping: what is running is run to its end")
        self.stop()

    def stop(self) -> None:
        """Stop: the front at once, the clerk once what runs has ended."""
        for child in (self.front, self.clerk):
            if child is not None and child.popen.poll() is None:
                os.kill(child.popen.pid, signal.SIGTERM)
        for child in (self.front, self.clerk):
            if child is not None:
                try:
                    child.popen.wait(_PATIENCE + _busy(child))
                except subprocess.TimeoutExpired:
                    child.popen.kill()
                    child.popen.wait()
                if child.popen.stdout is not None:
                    child.popen.stdout.close()
        if self._line is None:
            shutil.rmtree(self._folder, ignore_errors=True)
        elif self.only != "front":
            for name in (_TOKEN, "clerk"):
                (self._line / name).unlink(missing_ok=True)


def _write_token(file: Path, token: str) -> None:
    """The token of a line, for this user and his group."""
    draft = file.with_name(f".{file.name}.new")
    draft.unlink(missing_ok=True)
    with open(draft, "x", encoding="utf-8", opener=lambda name, how: os.open(name, how, 0o600)) as written:
        written.write(token)
        os.fchmod(written.fileno(), 0o640)
    os.replace(draft, file)


def _busy(child: _Child) -> float:
    """How long the clerk says that what runs may take; 0 of who says nothing in time."""
    said = child.popen.stdout
    if said is None or said.closed or not select.select([said], [], [], _PATIENCE)[0]:
        return 0.0
    line = said.readline()
    return float(json.loads(line)["busy"]) if line else 0.0
