"""A client of an ASGI application in this process: one request, one answer, cookies as given."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

__all__ = ["Answer", "Client"]


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode("utf-8")


class Client:
    """Asks an application. cookies: sent with every request. scheme: of the addresses."""

    def __init__(self, app: Any, *, cookies: Mapping[str, str] | None = None, scheme: str = "http") -> None:
        self._app, self._cookies, self._scheme = app, dict(cookies or {}), scheme

    def get(self, path: str, *, headers: Mapping[str, str] | None = None) -> Answer:
        return self._asked("GET", path, b"", dict(headers or {}))

    def post(self, path: str, *, data: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Answer:
        form = {"content-type": "application/x-www-form-urlencoded"}
        return self._asked("POST", path, urlencode(data, doseq=True).encode(), form | dict(headers or {}))

    def _asked(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        plain, _, query = path.partition("?")
        headers = {"host": "testserver", **headers}
        if self._cookies:
            headers["cookie"] = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
            "scheme": self._scheme, "path": plain, "raw_path": plain.encode(), "query_string": query.encode(),
            "root_path": "",
            "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
            "client": ("127.0.0.1", 1), "server": ("testserver", 80), "state": {},
        }  # fmt: skip
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(self._app(scope, receive, send))
        start = next(m for m in sent if m["type"] == "http.response.start")
        content = b"".join(m.get("body", b"") for m in sent if m["type"] == "http.response.body")
        return Answer(start["status"], {k.decode(): v.decode() for k, v in start["headers"]}, content)
