"""What the ledger's tests share."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from hubbub.ledger.accounts import Total
from hubbub.ledger.store import Charge, Ledger

SPACE = "patient_id"


def asked(epsilon: Fraction | int | str, **changes: Any) -> Charge:
    """A charge whose other columns do not matter."""
    columns: dict[str, Any] = {
        "space": SPACE,
        "dataset": "visits",
        "analyst": "ada",
        "question_key": "k",
        "sql": "SELECT COUNT(*) FROM visits",
    }
    return Charge(epsilon=Fraction(epsilon), **(columns | changes))


def charge(ledger: Ledger, epsilon: Fraction | int | str, **changes: Any) -> str:
    """Charge such a one."""
    return ledger.charges.charge(asked(epsilon, **changes))


def resume(ledger: Ledger, *, epsilon: Fraction, spend: Total | None = None, **columns: Any) -> str | None:
    """Take over such a one, if it was given up."""
    return ledger.charges.resume(asked(epsilon, cost=spend, **columns))


def fork(work: Callable[[], Any]) -> int:
    """Run `work` in a forked child that exits 0, or 1 with its traceback; the child's id."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


def wait(*pids: int) -> list[int]:
    """The children's exit codes; -9 for one that was killed."""
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def as_nobody(work: Callable[[], Any]) -> list[int]:
    """Run `work` in a child without root's rights, which ignore permissions; its exit code."""

    def unprivileged() -> None:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        work()

    return wait(fork(unprivileged))


def apart(step: Callable[[], Any]) -> Any:
    """What a step that a tracer may interrupt returns. CPython 3.11 may take what a tracer raised for an exception that
    is handled still, and it would be the context of errors of other tests; a generator keeps such for itself.
    """
    return next(value() for value in (step,))
