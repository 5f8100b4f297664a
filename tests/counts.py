"""How often a test repeats what chance decides: `make soak` all of it, everything else a part."""

from __future__ import annotations

import os

SOAK = os.environ.get("HUBBUB_SOAK") == "1"


def part(full: int, by: int = 4) -> int:
    """A count of the soak, and elsewhere a part of it."""
    return full if SOAK else max(1, full // by)
