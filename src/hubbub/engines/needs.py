"""What an engine needs and may not be installed."""

from __future__ import annotations

from importlib.util import find_spec

from hubbub.errors import PolicyError, how_to_install

__all__ = ["needs"]


def needs(module: str, extra: str) -> None:
    """Raises PolicyError where a module is not installed; it says which extra brings it."""
    if find_spec(module) is None:
        raise PolicyError(f"this table needs {module}, which is not installed. {how_to_install(extra)}")
