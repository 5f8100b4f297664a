"""Modules that are imported when they are first used: most questions need none of these, and each takes its time."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["late"]


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
