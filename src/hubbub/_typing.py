"""`override`, which Python has from 3.12 on: it says that a method takes the place of one above, and mypy checks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["override"]

if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method):
        return method
