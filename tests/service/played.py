"""Two players for the audit: one at the desk, and one who has what clients have, HTTP and a token."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from hubbub.errors import HubbubError
from hubbub.service.http.app import counting_application
from service.faces import FaceWorld
from service.helpers import World
from service.planted import Disconnect


class AtDesk:
    """A world as a client sees it, who stands at the desk itself."""

    def __init__(self, world: World) -> None:
        self.world = world

    def until(self, seconds: float) -> None:
        self.world.until(seconds)

    def ask(self, who: str, sql: str, options: Mapping[str, Any], key: str) -> Any:
        return self.world.desk.ask(who, sql, options, key)

    def check(self, who: str, sql: str, options: Mapping[str, Any]) -> Any:
        return self.world.desk.check(who, sql, options)

    def see(self, what: str, who: str, charge: str) -> Any:
        desk = self.world.desk
        match what:
            case "answer" | "receipt":
                return getattr(desk, what)(who, charge)
            case "history" | "events":
                return getattr(desk, what)(who)
            case "metrics":
                return desk.metrics()
        return list(self.world.lines)

    def leave(self, how: str, who: str, charge: str) -> Any:
        if how == "cancel":
            return self.world.desk.cancel(who, charge)
        return self.world.desk.disconnected(who, charge)

    def restart(self) -> None:
        self.world.restart()


class Refused(HubbubError):
    """What an HTTP face refused: its status, its headers and its problem are its words."""


class ByHTTP(AtDesk):
    """The same by HTTP: each act is a request with a token, and status, headers and body are what is told."""

    def __init__(self, world: FaceWorld) -> None:
        super().__init__(world)
        self.world: FaceWorld = world
        self._tokens: dict[str, str] = {}

    def ask(self, who: str, sql: str, options: Mapping[str, Any], key: str) -> Any:
        return self._told(who, "POST", "/api/v1/ask", {"sql": sql, "options": dict(options)}, key)

    def check(self, who: str, sql: str, options: Mapping[str, Any]) -> Any:
        return self._told(who, "POST", "/api/v1/check", {"sql": sql, "options": dict(options)})

    def see(self, what: str, who: str, charge: str) -> Any:
        match what:
            case "answer" | "receipt":
                return self._told(who, "GET", f"/api/v1/answers/{charge}" + ("/receipt" if what == "receipt" else ""))
            case "history":
                return self._told(who, "GET", "/api/v1/history")
            case "metrics":
                return self._told(who, "GET", "/metrics")
            case "events":
                return self._events(who)
        return list(self.world.lines)

    def leave(self, how: str, who: str, charge: str) -> Any:
        if how == "cancel":
            return self._told(who, "POST", f"/api/v1/answers/{charge}/cancel")
        return self._hung_up(who, charge)

    def _told(self, who: str, method: str, path: str, body: Any = None, key: str = "") -> Any:
        sent = asyncio.run(self._sent(who, method, path, body, key))
        start, content = sent[0], b"".join(message.get("body", b"") for message in sent[1:])
        headers = sorted((name.decode(), value.decode()) for name, value in start["headers"])
        is_json = any(name == "content-type" and "json" in value for name, value in headers)
        told = json.loads(content) if is_json else content.decode().splitlines()
        if start["status"] >= 400:
            raise Refused(json.dumps([start["status"], headers, told]))
        about = {"status": start["status"], "headers": headers}
        return {**told, "http": about} if isinstance(told, dict) else [told, about]

    def _events(self, who: str) -> Any:
        """The first event of a stream, which is then hung up."""
        sent = asyncio.run(self._sent(who, "GET", "/api/v1/events", over=lambda sent: len(sent) > 1))
        return [message.get("body", b"").decode() for message in sent[1:]]

    def _hung_up(self, who: str, charge: str) -> Any:
        """Wait for an answer, and hang up as soon as the clerk was asked for it; unless it was there."""
        asked: list[str] = []
        line, plain = self.world.line, self.world.line.ask
        line.ask = lambda *given: asked.append("once") or plain(*given)  # type: ignore[method-assign]
        try:
            path = f"/api/v1/answers/{charge}?wait=60"
            sent = asyncio.run(self._sent(who, "GET", path, over=lambda _: bool(asked)))
        finally:
            line.ask = plain  # type: ignore[method-assign]
        if not sent and isinstance(self.world.desk, Disconnect):
            self.world.desk.disconnected(who, charge)  # the planted front tells its clerk who went away
        return None

    async def _sent(
        self,
        who: str,
        method: str,
        path: str,
        body: Any = None,
        key: str = "",
        *,
        over: Callable[[list[Any]], bool] = lambda _: False,
    ) -> list[Any]:
        """What an application sends, until it is done or the connection is over."""
        if who not in self._tokens:
            self._tokens[who] = self.world.token(who)
        app = counting_application(self.world.line, self.world.counts) if path == "/metrics" else self.world.app
        headers = {"content-type": "application/json", "idempotency-key": key or "none"}
        headers |= {} if path == "/metrics" else {"authorization": f"Bearer {self._tokens[who]}"}
        scope = {
            "type": "http", "method": method, "path": path.partition("?")[0],
            "query_string": path.partition("?")[2].encode(), "scheme": "http", "root_path": "",
            "http_version": "1.1", "headers": [(n.encode(), v.encode()) for n, v in headers.items()],
        }  # fmt: skip
        content = b"" if body is None else json.dumps(body).encode()
        sent, bodies = list[Any](), [content]

        async def receive() -> Any:
            if not bodies:
                await asyncio.Event().wait()  # the client says no more; that he hangs up is a cancelled task
            return {"type": "http.request", "body": bodies.pop(), "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await _until(app(scope, receive, send), lambda: over(sent))
        return sent


async def _until(served: Awaitable[None], over: Callable[[], bool]) -> None:
    """Serve a request until it is done, or over: then a moment more, and it is hung up."""
    task = asyncio.ensure_future(served)
    while not task.done() and not over():
        await asyncio.wait([task], timeout=0.005)
    await asyncio.wait([task], timeout=0.05)
    if not task.done():
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    elif not task.cancelled():
        task.result()
