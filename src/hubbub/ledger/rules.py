"""What a policy says of every question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["MAX_FAILURES", "MAX_FAILURES_ALL", "Rules"]

MAX_FAILURES: Final = 3
"""After so many engine failures an analyst waits for a steward."""

MAX_FAILURES_ALL: Final = 10
"""After so many in one unit space everybody does."""


@dataclass(frozen=True)
class Rules:
    """How many questions may fail, of one analyst and of all together; whether each says what it is asked for; and
    whether analysts see and reuse each other's stored answers.
    """

    max_failures: int = MAX_FAILURES
    max_failures_all: int = MAX_FAILURES_ALL
    require_purpose: bool = False
    shared_answers: bool = True
