"""The process of the front: HTTP; no rows, no ledger, no key, and nothing by which to know who asks.

python -m hubbub.service.front              told on standard input: socket, token, host, port; cert, key, metrics
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final

from hubbub.confine import confine
from hubbub.service.http.app import application, counting_application
from hubbub.service.http.callers import PatientLoop, patient_protocol
from hubbub.service.http.line import ClerkLine
from hubbub.service.http.metrics import Counts
from hubbub.service.lines import RequestLog
from hubbub.service.pages.routes import page_refusal, page_routes

__all__ = ["main"]

_PATIENCE: Final = 3
_AT_ONCE: Final = 128  # connections that are taken in at once, before the oldest of too many are closed


def main() -> int:
    """Be the front that standard input describes."""
    told = json.loads(sys.stdin.readline())
    stay_light()
    line, counts = ClerkLine(told["socket"], told["token"]), Counts()
    secure = bool(told.get("cert"))
    pages, refused = page_routes(line, secure=secure), page_refusal(line, secure=secure)
    say = (lambda text: print(text, file=sys.stderr, flush=True)) if told.get("log") == "json" else None
    whole = RequestLog(application(line, counts, pages=pages, refused=refused), header=told.get("request_id"), say=say)
    apps: list[tuple[Any, dict[str, Any]]] = [(whole, {"host": told["host"], "port": told["port"]})]
    if told.get("metrics"):
        host, port = told["metrics"]
        apps.append((counting_application(line, counts), {"host": host, "port": port}))
    # It listens, so TCP stays open; of files it reads the system's alone: neither rows, nor ledger, nor key.
    confine(read=[Path(told[name]) for name in ("cert", "key") if told.get(name)], network=True)
    if told.get("cert"):
        apps[0][1].update(ssl_certfile=told["cert"], ssl_keyfile=told["key"])
    with asyncio.Runner(loop_factory=PatientLoop) as runner:
        runner.run(_serve(apps))
    return 0


class _Absent:
    """Finds no pandas."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("the front has no pandas", name=name)


def stay_light() -> None:
    """Keep pandas out, if it is installed: pyarrow would load it with the first answer, 48 MB for nothing."""
    sys.meta_path.insert(0, _Absent())


async def _serve(apps: list[tuple[Any, dict[str, Any]]]) -> None:
    """Serve each application at its place until SIGTERM; streams that are open then are ended."""
    import uvicorn

    plain: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False, "ws": "none"}
    plain["timeout_graceful_shutdown"] = _PATIENCE
    plain["backlog"] = _AT_ONCE
    # Whoever is on this machine may say for whom he asks (a server with TLS before this one); nobody else, whatever the
    # environment says. The address tells who waits for whom at the pages before a login, and stands in no log.
    plain |= {"proxy_headers": True, "forwarded_allow_ips": "127.0.0.1,::1"}
    servers = [uvicorn.Server(uvicorn.Config(app, http=patient_protocol(), **plain, **place)) for app, place in apps]
    await asyncio.gather(*(server.serve() for server in servers))


if __name__ == "__main__":
    sys.exit(main())
