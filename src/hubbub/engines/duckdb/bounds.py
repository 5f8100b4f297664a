"""What the engines of this process may take of its machine: memory, and room on disk for what does not fit into it.

Without bounds DuckDB takes four fifths of the memory, and nine tenths of what is free on the disk. Where it may take no
more, it tells an error.
"""

from __future__ import annotations

from typing import Final

__all__ = ["bound", "settings"]

_SETTINGS: Final = dict[str, str]()


def bound(*, memory: int, disk: int) -> None:
    """Let each engine that is opened from now on take so many bytes."""
    _SETTINGS.update(memory_limit=f"{memory}B", max_temp_directory_size=f"{disk}B")


def settings() -> dict[str, str]:
    """How DuckDB is told."""
    return dict(_SETTINGS)
