"""A small object store that speaks S3 over HTTP on this machine: what pyarrow's file system asks of one, no more."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

ACCESS, SECRET = "AKIDEXAMPLE", "a-secret-that-is-shown-to-nobody"


class Store:
    """The objects, by bucket and key, and when each was written. before: what happens as an object is sent."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.written: dict[str, float] = {}
        self.sent: list[str] = []
        self.before: Any = lambda path: None
        self.address = ""

    def put(self, path: str, body: bytes, at: float = 1_700_000_000.0) -> None:
        self.objects[path], self.written[path] = body, at

    def url(self, path: str, keys: str = "env:STORE_KEYS@") -> str:
        return f"s3://{keys}{path}?endpoint_override={self.address}&scheme=http&region=eu-south-1"


def _handler(store: Store) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None: ...

        def _send(self, status: int, body: bytes = b"", **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            if "Content_Length" not in headers:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _object(self) -> tuple[str, bytes | None]:
            if f"Credential={ACCESS}/" not in self.headers.get("Authorization", ""):
                return "", None
            path = unquote(urlsplit(self.path).path).lstrip("/")
            return path, store.objects.get(path)

        def _facts(self, path: str, body: bytes) -> dict[str, str]:
            tag = hashlib.sha256(body).hexdigest()[:32]
            return {"ETag": f'"{tag}"', "Last_Modified": formatdate(store.written[path], usegmt=True)}

        def do_HEAD(self) -> None:
            path, body = self._object()
            if body is None:
                return self._send(403 if not path else 404)
            return self._send(200, Content_Length=str(len(body)), **self._facts(path, body))

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            if "list-type" in query:
                return self._list(query)
            path, _ = self._object()
            store.before(path)
            _, body = self._object()
            if body is None:
                return self._send(403 if not path else 404)
            store.sent.append(path)
            asked = self.headers.get("Range")
            if asked is None:
                return self._send(200, body, **self._facts(path, body))
            first, last = asked.removeprefix("bytes=").split("-")
            part = body[int(first) : int(last or len(body)) + 1]
            span = f"bytes {first}-{int(first) + len(part) - 1}/{len(body)}"
            return self._send(206, part, Content_Range=span, **self._facts(path, body))

        def _list(self, query: dict[str, list[str]]) -> None:
            bucket = unquote(urlsplit(self.path).path).strip("/")
            prefix = query.get("prefix", [""])[0]
            keys = sorted(k.partition("/")[2] for k in store.objects if k.startswith(f"{bucket}/{prefix}"))
            keys = keys[: int(query.get("max-keys", ["1000"])[0])]
            found = "".join(
                f"<Contents><Key>{key}</Key><LastModified>2023-11-14T22:13:20.000Z</LastModified>"
                f"<Size>{len(store.objects[f'{bucket}/{key}'])}</Size></Contents>"
                for key in keys
            )
            body = (
                '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
                f"<Name>{bucket}</Name><Prefix>{prefix}</Prefix><KeyCount>{len(keys)}</KeyCount>"
                f"<MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{found}</ListBucketResult>"
            )
            self._send(200, body.encode(), Content_Type="application/xml")

    return Handler


@contextmanager
def store() -> Iterator[Store]:
    """A store as long as it is used."""
    kept = Store()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(kept))
    server.daemon_threads = True
    kept.address = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
