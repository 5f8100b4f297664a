"""What the engines of this process may take of its machine: memory, room on disk for what does not fit into it, cores.

Without bounds DuckDB takes four fifths of the memory, nine tenths of what is free on the disk, and a thread on each
core. Where it may take no more memory or room, it tells an error.
"""

from __future__ import annotations

from typing import Final

__all__ = ["bound", "statements"]

_SETTINGS: Final = dict[str, str]()


def bound(*, memory: int, disk: int, threads: int) -> None:
    """Let each engine that is opened from now on take so many bytes, and so many threads."""
    _SETTINGS.update(memory_limit=f"{memory}B", max_temp_directory_size=f"{disk}B", threads=str(threads))


def statements() -> list[str]:
    """How DuckDB is told. By statements: of a configuration that a connection is made with it holds no room on disk."""
    return [f"SET {name} = '{value}'" for name, value in _SETTINGS.items()]
