"""Names of test cases are the same in every process, or the workers of pytest-xdist would not agree on them."""

from __future__ import annotations

import re


def pytest_make_parametrize_id(val: object) -> str | None:
    """A function or an object is named by its name, never by its address."""
    if callable(val) and hasattr(val, "__name__"):
        return str(val.__name__)
    return re.sub(r" at 0x[0-9a-f]+", "", repr(val)) if " at 0x" in repr(val) else None
