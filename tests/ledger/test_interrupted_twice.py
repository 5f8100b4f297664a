"""A second Ctrl-C, while a charge is given up because of the first, leaves no lock held and no charge to nobody."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Any

import pytest

import hubbub.session.run
from ledger.helpers import apart, asked
from ledger.test_interrupted_sessions import COUNT, At
from people import session

pytestmark = pytest.mark.usefixtures("ctrl_c")


def test_a_second_interrupt_at_any_line_while_a_charge_is_given_up() -> None:
    """Before, one at the first lines left the charge open until the session closed: others of its analyst waited."""
    with session(epsilon=10**6) as s:
        s.sql(COUNT, epsilon=1)
        ledger, number, at, asked_for = s._ledger, 0, At(0), 0
        (space,) = ledger.balance.spaces()
        while at.left <= 0:
            number += 1 if number < 60 else 7
            at, asked_for = At(number), asked_for + 2

            def first(*_: Any, at: At = at, **__: Any) -> Any:
                at.begin()
                raise KeyboardInterrupt

            with contextlib.suppress(KeyboardInterrupt), pytest.MonkeyPatch.context() as patch:
                patch.setattr(hubbub.session.run, "execute", first)
                try:
                    apart(lambda number=number: s.sql(COUNT, epsilon=2 * number, fresh=True))
                finally:
                    sys.settrace(None)
            beside: list[str] = []
            charge = asked("0.001", space=space, analyst="beside")
            other = threading.Thread(
                target=lambda beside=beside, charge=charge: beside.append(ledger.charges.charge(charge)), daemon=True
            )
            other.start()
            other.join(20)
            assert beside, f"a lock is held after line {number}"
            ledger.charges.let_go(*beside)
            s.sql(COUNT, epsilon=2 * number + 1, fresh=True)
            with ledger._handle.reading() as connection:
                assert not ledger.charges._under_way.look(connection).all, f"line {number}"
        assert number > 20
        assert ledger.balance.spent(space) >= sum(range(2, asked_for + 2))  # each charge stays
        assert ledger.record.verify().problems == ()
