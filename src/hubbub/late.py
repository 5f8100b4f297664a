"""Modules that are imported when they are first used: most questions need none of these, and each takes its time."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["late", "late_names"]


class _Late:
    """A module's names, from the module, which is imported when the first is asked for."""

    def __init__(self, name: str) -> None:
        self._module_name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._module_name), name)


def late(name: str) -> Any:
    """The module of this name, imported when it is first used.

    >>> late("colorsys").rgb_to_hls(0.0, 0.0, 0.0)
    (0.0, 0.0, 0.0)
    """
    return _Late(name)


def late_names(package: str, homes: Mapping[str, str], bound: dict[str, Any]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names come from its modules. homes: the module of each. bound: its names."""

    def named(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        # Bound once: later look-ups do not come here.
        bound[name] = value
        return value

    return named
