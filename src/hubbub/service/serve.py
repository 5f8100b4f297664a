"""Starting the service: a clerk and a front, each started again where it ends; what they need, and nothing else.

Each is told on its standard input what it needs: the clerk the policy, the front the tokens; both a socket and the
token that opens it. Without TLS the front listens on this machine alone.
"""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from hubbub.errors import PolicyError, how_to_install
from hubbub.noise import system_bits
from hubbub.service.tokens import Tokens

__all__ = ["Service", "listening_place"]

_PATIENCE: Final = 180.0
_PAUSE: Final = 0.2
_PASSED: Final = ("PATH", "HOME", "LANG", "PYTHONPATH")  # to the front: no address of a database, no password


def listening_place(text: str, *, tls: bool) -> tuple[str, int]:
    """The host and port of `HOST:PORT`.

    >>> listening_place("127.0.0.1:8080", tls=False)
    ('127.0.0.1', 8080)

    Raises PolicyError for anything else, and for another machine's eyes without TLS.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or not host:
        raise PolicyError(f"--listen {text!r}: expected HOST:PORT, as in 127.0.0.1:8080.")
    name = host.strip("[]")
    try:
        here = name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        here = False
    if not here and not tls:
        raise PolicyError(
            f"--listen {text}: without TLS the service listens on this machine alone, as on 127.0.0.1:8080: tokens and "
            "answers would be read on their way. Give --tls-cert and --tls-key, or put a server with TLS before it."
        )
    return name, int(port)


@dataclass
class _Child:
    popen: subprocess.Popen[str]
    began: float


class Service:
    """Clerk and front of a policy. say: where what a person should know goes."""

    def __init__(
        self,
        policy: Path,
        tokens: Path,
        *,
        host: str,
        port: int,
        tls: tuple[Path, Path] | None = None,
        say: Callable[[str], None] = print,
    ) -> None:
        self._say = say
        for needed in ("starlette", "uvicorn"):
            if find_spec(needed) is None:
                raise PolicyError(f"the service needs {needed}. {how_to_install('serve')}")
        Tokens.read(tokens)
        self._folder = tempfile.mkdtemp(prefix="hubbub-service-")
        common = {"socket": f"{self._folder}/clerk", "token": system_bits().u64(4).tobytes().hex()}
        self._clerk_told = {**common, "policy": str(policy.absolute())}
        self._front_told = {**common, "tokens": str(tokens.absolute()), "host": host, "port": port}
        if tls is not None:
            self._front_told |= {"cert": str(tls[0]), "key": str(tls[1])}
        self.clerk: _Child | None = None
        self.front: _Child | None = None
        self.ready: dict[str, Any] = {}

    def start(self) -> None:
        """Start both, and wait until the clerk is ready.

        Raises PolicyError where it refuses.
        """
        self._start_clerk()
        self.front = self._spawn("front", self._front_told)

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
            [sys.executable, "-m", f"hubbub.service.{what}"],
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
        if self.front is not None and self.front.popen.poll() is not None:
            self._say("the front ended, and is started again")
            time.sleep(max(0.0, self.front.began + 1 - time.monotonic()))
            self.front = self._spawn("front", self._front_told)
        if self.clerk is not None and self.clerk.popen.poll() is not None:
            self._say("the clerk ended, and is started again; what was running has no answer")
            time.sleep(max(0.0, self.clerk.began + 1 - time.monotonic()))
            try:
                self._start_clerk()
            except PolicyError as error:
                self._say(f"the clerk does not start: {error}")

    def run(self) -> None:
        """Watch until SIGTERM or Ctrl-C, then stop in good order."""
        stopping: list[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda signum, _: stopping.append(signum))
        while not stopping:
            self.watch()
            time.sleep(_PAUSE)
        self._say("stopping: what is running is run to its end")
        self.stop()

    def stop(self) -> None:
        """Stop: the front at once, the clerk once what runs has ended."""
        for child in (self.front, self.clerk):
            if child is not None and child.popen.poll() is None:
                os.kill(child.popen.pid, signal.SIGTERM)
        for child in (self.front, self.clerk):
            if child is not None:
                try:
                    child.popen.wait(_PATIENCE)
                except subprocess.TimeoutExpired:
                    child.popen.kill()
                    child.popen.wait()
                if child.popen.stdout is not None:
                    child.popen.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)
