"""What is told of a question: its states, here once. The desk and the office tell them, schemas and pages read them.

asked, answered, no answer      it was charged (`hubbub.ledger.timetable`)
waiting, granted                it waits for a steward's yes, or has it, and has no place in the schedule yet
declined, withdrawn             it is not asked
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from hubbub.ledger.schedule import Fate

__all__ = ["FATES", "HELD", "STATES", "Held"]

Held: TypeAlias = Literal["waiting", "granted", "declined", "withdrawn"]
"""The states of a question that was not charged."""

FATES: Final[tuple[str, ...]] = get_args(Fate)
HELD: Final[tuple[str, ...]] = get_args(Held)
STATES: Final = FATES + HELD
