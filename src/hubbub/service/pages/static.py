"""The style sheet and the scripts: read once, served under names that hold their hash, and so kept for good.

They are read when the module is loaded: a front that is shut in opens no file later.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Final

__all__ = ["StaticFile", "pack", "static_file", "static_url"]

_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, eq=False)
class StaticFile:
    """A file as it is sent. name: as it is asked for, with its hash; kind: its media type."""

    name: str
    kind: str
    content: bytes

    @cached_property
    def packed(self) -> bytes:
        """The same for those who accept gzip. There is no secret in it, so that its length tells nothing."""
        return gzip.compress(self.content, 9, mtime=0)


def _read() -> dict[str, StaticFile]:
    """The files by their plain names."""
    read = {}
    for file in sorted(files("hubbub.service.pages").joinpath("static").iterdir(), key=lambda f: f.name):
        stem, _, ending = file.name.rpartition(".")
        if ending in _TYPES:
            content = file.read_bytes()
            name = f"{stem}.{hashlib.sha256(content).hexdigest()[:12]}.{ending}"
            read[file.name] = StaticFile(name, _TYPES[ending], content)
    return read


_FILES: Final = _read()
_ASKED: Final = {file.name: file for file in _FILES.values()}


def pack() -> None:
    """Pack all files now, so that nobody's first page waits for it."""
    for file in _FILES.values():
        _ = file.packed


def static_url(name: str) -> str:
    """Where a file is served, by its plain name.

    >>> static_url("style.css").startswith("/static/style.")
    True
    """
    return f"/static/{_FILES[name].name}"


def static_file(asked: str) -> StaticFile | None:
    """The file that is asked for by its name with the hash; None for any other."""
    return _ASKED.get(asked)
