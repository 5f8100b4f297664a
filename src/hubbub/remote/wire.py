"""HTTP with a token: one connection for each thread, kept open; refusals raised again as what they were.

Every request may be sent again: one that charges bears a name (Idempotency-Key) under which it is charged once. So what
breaks off is tried once more, and what is told to wait (429, 503 with Retry-After) waits, for as long as it may.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import urlencode, urlsplit

from hubbub import errors
from hubbub.errors import BudgetError, EngineError, HubbubError, PolicyError, QueryError

if TYPE_CHECKING:
    import ssl

__all__ = ["Wire", "raised_again", "understood"]

_PATIENCE: Final = 90.0  # seconds without a byte
_LONGEST: Final = 1 << 28
_SHORTEST: Final = 0.1  # seconds between two requests, where a service says that none need be waited
_KINDS: Final[Mapping[str, type[HubbubError]]] = {
    "query": QueryError,
    "request": QueryError,
    "form": QueryError,
    "method": QueryError,
    "size": QueryError,
    "type": QueryError,
    "budget": BudgetError,
    "incident": errors.InternalError,
}


def _seconds(said: str | None) -> float | None:
    """The seconds that a service says to wait; None where it says none. A date is none: the clocks may differ."""
    return max(_SHORTEST, float(said)) if said and said.isascii() and said.isdigit() else None


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Wire:
    """The line to a service. patience: seconds that requests wait where the service says that they may come again."""

    def __init__(self, url: str, token: str, *, patience: float, context: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
            shown = "url" if "@" in url else f"url={url!r:.200}"  # what stands before an @ may be a password
            raise PolicyError(f"{shown}: expected the address of a service, as in https://data.example.org.")
        if not isinstance(token, str) or not token.strip() or not token.isascii() or not token.isprintable():
            raise PolicyError("token: expected a token of the service, as its pages or `hubbub token create` show it.")
        if parts.scheme == "http" and not _is_here(parts.hostname):
            warnings.warn(
                f"{parts.hostname} is asked without TLS: all who see the traffic read the token and the answers. Use "
                "an https:// address.",
                stacklevel=5,
            )
        self.url, self._parts, self._token = url.rstrip("/"), parts, token.strip()
        self._patience, self._context, self._own = patience, context, threading.local()

    def get(self, path: str, **query: Any) -> Any:
        """What is told at a place."""
        given = {name: value for name, value in query.items() if value is not None}
        return self._told("GET", f"{path}?{urlencode(given)}" if given else path, None, None)

    def post(self, path: str, body: Mapping[str, Any], *, key: str | None = None) -> Any:
        """What is told of an act. key: the name of the request."""
        return self._told("POST", path, json.dumps(body).encode(), key)

    def _told(self, method: str, path: str, body: bytes | None, key: str | None) -> Any:
        until = time.monotonic() + self._patience
        while True:
            status, wait, told = self._asked(method, path, body, key)
            if status < 400:
                return told
            if wait is None or time.monotonic() + wait > until:
                raise_again(told)
            time.sleep(wait)

    def _asked(self, method: str, path: str, body: bytes | None, key: str | None) -> tuple[int, float | None, Any]:
        """The status, the seconds after which it may be tried again, and what is told."""
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        headers |= {} if body is None else {"Content-Type": "application/json"}
        headers |= {} if key is None else {"Idempotency-Key": key}
        for again in (True, False):
            connection = self._connected()
            try:
                connection.request(method, f"{self._parts.path.rstrip('/')}/api/v1{path}", body, headers)
                response = connection.getresponse()
                data = response.read(_LONGEST)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if not again:
                    raise PolicyError(
                        f"the service at {self.url} does not answer ({type(error).__name__}). Whatever was charged is "
                        "answered under the same idempotency key."
                    ) from None
                continue
            return response.status, _seconds(response.headers.get("Retry-After")), self._read(data)
        raise AssertionError("unreachable")

    def _read(self, data: bytes) -> Any:
        with understood():
            return json.loads(data)

    def _connected(self) -> http.client.HTTPConnection:
        known: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if known is None:
            host, port = str(self._parts.hostname), self._parts.port
            if self._parts.scheme == "https":
                known = http.client.HTTPSConnection(host, port, timeout=_PATIENCE, context=self._context)
            else:
                known = http.client.HTTPConnection(host, port, timeout=_PATIENCE)
            self._own.connection = known
        return known

    def close(self) -> None:
        """Hang up; the next request calls again."""
        known, self._own.connection = getattr(self._own, "connection", None), None
        if known is not None:
            known.close()


@contextmanager
def understood() -> Iterator[None]:
    """What a service told is read here, and nothing asked of it: its own refusals may be ValueErrors, too.

    Raises PolicyError where it is of a form that none of ours tells, whatever that raised.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise PolicyError(
            f"the service told something that is not understood ({type(error).__name__}): it is not one of hubbub's, "
            "or of another version. What was charged, if anything, is answered under the same idempotency key."
        ) from error


def raise_again(told: Any) -> NoReturn:
    """Raises the error that a problem was."""
    raise raised_again(told if isinstance(told, Mapping) else {})


def raised_again(problem: Mapping[str, Any]) -> HubbubError:
    """The error that a problem was: its class, its words, its place in the text, its ways out.

    >>> error = raised_again({"kind": "query", "class": "ParameterError", "detail": "no", "position": [7, 10]})
    >>> type(error).__name__, str(error), error.position
    ('ParameterError', 'no', (7, 10))
    """
    text, kind = str(problem.get("detail", "the service refused, and did not say why.")), str(problem.get("kind"))
    if kind == "engine" and "incident" in problem:
        return EngineError(str(problem["incident"]))
    named = getattr(errors, str(problem.get("class")), None)
    made = named if isinstance(named, type) and issubclass(named, HubbubError) else _KINDS.get(kind, PolicyError)
    if made is BudgetError:
        error: HubbubError = BudgetError(text, asked=str(problem.get("asked", "")), left=str(problem.get("left", "")))
    else:
        error = PolicyError(text) if made is EngineError else made(text)
    position = problem.get("position")
    if isinstance(position, list) and len(position) == 2 and all(type(each) is int for each in position):
        error.position = position[0], position[1]
    error.remedies = _remedies(problem.get("remedies", ()))
    return error


def _remedies(wire: Any) -> tuple[Any, ...]:
    """The ways out that this version knows: one that it does not know leaves the refusal as it is."""
    if not wire or not isinstance(wire, list):
        return ()
    from hubbub.remedies import read_remedy

    known = []
    for each in wire:
        with suppress(HubbubError):
            known.append(read_remedy(each))
    return tuple(known)
