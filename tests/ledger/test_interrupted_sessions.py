"""Ctrl-C at any line between a charge and its answer: nothing is left charged that nobody works on."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from types import FrameType
from typing import Any

import pytest

import hubbub as hb
import hubbub.ledger.life
import hubbub.session.run
from hubbub.ledger.charging import Request
from hubbub.ledger.store import Ledger
from ledger.helpers import apart
from people import session

pytestmark = pytest.mark.usefixtures("ctrl_c")

COUNT = "SELECT COUNT(*) AS n FROM visits"
_FILES = {module.__file__ for module in (hubbub.session.run, hubbub.ledger.life, contextlib)}


class At:
    """Sends this process a real signal just before the n-th line, after a charge was recorded, that hands it on."""

    def __init__(self, number: int) -> None:
        self.left = number

    def begin(self) -> None:
        """From here on, in the callers too."""
        sys.settrace(self)
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename in _FILES:
                frame.f_trace = self
            frame = frame.f_back  # type: ignore[assignment]

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename not in _FILES:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGINT)
        return self


def interrupted_at_every_line(ledger: Ledger, step: Callable[[], object], after: Callable[[int], None]) -> int:
    """Does it again and again, interrupted one line later each time, until it comes through; how many lines it has."""
    number, recorded = 0, ledger.charges._recorded
    while True:
        number += 1 if number < 60 else 11
        at = At(number)

        def begin(made: Request, at: At = at) -> Any:
            outcome = recorded(made)
            at.begin()
            return outcome

        with contextlib.suppress(KeyboardInterrupt), pytest.MonkeyPatch.context() as patch:
            patch.setattr(ledger.charges, "_recorded", begin)
            try:
                apart(step)
            finally:
                sys.settrace(None)
        after(number)
        if at.left > 0:
            return number


def test_a_question_interrupted_at_any_line_leaves_no_charge_that_nobody_works_on() -> None:
    """Before, one interrupted just after its commit stood as charged until the session closed, and was paid again."""
    with session(epsilon=10**6) as s:
        s.sql(COUNT, epsilon=1)
        ledger, amounts = s._ledger, count(1)  # each its own: an equal one would be taken over, and not charged

        def nothing_is_open(number: int) -> None:
            with ledger._handle.reading() as connection:
                assert not list(ledger.charges._under_way.look(connection).all), f"line {number}"

        assert (
            interrupted_at_every_line(ledger, lambda: s.sql(COUNT, epsilon=next(amounts), fresh=True), nothing_is_open)
            > 100
        )


def test_a_block_interrupted_at_any_line_gives_its_budget_back() -> None:
    """Before, one interrupted just after its commit was held for ever."""
    with session(epsilon=1) as s:

        def reserved() -> None:
            with s.reserve(epsilon=1):
                pass

        def nothing_is_held(number: int) -> None:
            try:
                reserved()
            except hb.BudgetError as error:
                raise AssertionError(f"line {number}") from error

        assert interrupted_at_every_line(s._ledger, reserved, nothing_is_held) > 30
