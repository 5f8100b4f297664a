"""How a budget was spent over time: the composed loss after every charge, of everyone and of each analyst.

Under a pure budget the loss is the sum of epsilons. Under one with delta it is the smaller of that sum, while all was
pure, and the epsilon that the sum of rhos means at the budget's own delta (`accounting.epsilon_of_rho`). The numbers
are the ledger's own sums, rounded for the eye; they decide nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hubbub.ledger.accounts import EVERYONE, Total
from hubbub.ledger.budget import Budget

if TYPE_CHECKING:
    from hubbub.ledger.store import Ledger

__all__ = ["Course", "courses", "draw", "loss", "text"]

_BLOCKS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Course:
    """The losses of one account: after each charge, its time (ISO 8601) and the epsilon spent until then."""

    account: str
    times: tuple[str, ...]
    epsilons: tuple[float, ...]
    limit: float


def loss(budget: Budget, total: Total) -> float:
    """The epsilon that a total means under a budget of this kind."""
    from hubbub.accounting import epsilon_of_rho

    pure = None if total.impure or total.delta else float(total.epsilon)
    if budget.pure:
        return float(total.epsilon)
    by_rho = float(epsilon_of_rho(total.rho, budget.delta_conversion))
    return by_rho if pure is None else min(pure, by_rho)


def courses(ledger: Ledger, space: str, *, points: int = 200) -> list[Course]:
    """The course of the joint budget, then of each analyst; at most about `points` points each, the last included.

    Raises PolicyError for a space that the ledger does not know.
    """
    budget = ledger.balance.budget(space)
    with ledger._handle.reading() as connection:
        rows = connection.execute(
            "SELECT journal.time, charge.sums FROM charge JOIN journal ON journal.serial = charge.serial "
            "WHERE charge.unit_space = ? ORDER BY charge.serial",
            (space,),
        ).fetchall()
    courses_by_account: dict[str, list[tuple[str, Total]]] = {EVERYONE: []}
    for time, sums in rows:
        for _, account, *amounts in json.loads(sums):
            if account == EVERYONE or account.startswith("analyst:"):
                courses_by_account.setdefault(account, []).append((time, Total.read(*amounts)))
    limits = {a.account: float(a.epsilon or 0) for a in ledger.balance.allowances(space)}
    ceiling = float(budget.for_questions)
    return [
        Course(
            account,
            tuple(time for time, _ in kept),
            tuple(loss(budget, total) for _, total in kept),
            min(ceiling, limits.get(account, limits.get("analyst:*", ceiling) if account != EVERYONE else ceiling)),
        )
        for account, steps in courses_by_account.items()
        for kept in [_thinned(steps, points)]
    ]


def _thinned(steps: Sequence[tuple[str, Total]], points: int) -> Sequence[tuple[str, Total]]:
    stride = max(1, len(steps) // points)
    kept = list(steps[::stride])
    return kept if not steps or kept[-1] is steps[-1] else [*kept, steps[-1]]


def text(drawn: Sequence[Course], *, width: int = 40) -> str:
    """One line for each account: its course as a row of bars against its limit, and where it stands."""
    names = max((len(course.account) for course in drawn), default=0)
    lines = []
    for course in drawn:
        step = max(1, -(-len(course.epsilons) // width))
        heights = [max(course.epsilons[i : i + step]) for i in range(0, len(course.epsilons), step)]
        bars = "".join(_BLOCKS[min(8, round(8 * e / course.limit)) if course.limit else 8] for e in heights)
        last = course.epsilons[-1] if course.epsilons else 0.0
        lines.append(f"{course.account.ljust(names)}  {bars.ljust(min(width, 40))}  {last:.6g} of {course.limit:.6g}")
    return "\n".join(lines)


def draw(drawn: Sequence[Course], ax: Any = None) -> Any:
    """The same as curves over time, with each limit as a dotted line; returns matplotlib axes (extra `plot`)."""
    from datetime import datetime

    from hubbub.plots import axes

    ax = axes(ax)
    for course in drawn:
        if not course.times:
            continue
        times = [datetime.fromisoformat(time) for time in course.times]
        # Everyone's lies below the analysts', wide and pale: a single analyst's is the same line.
        everyone = {"linewidth": 6, "alpha": 0.35, "zorder": 1.5, "solid_capstyle": "butt"}
        look = everyone if course.account == EVERYONE else {"linewidth": 1.5}
        (line,) = ax.step(times, course.epsilons, where="post", label=course.account, **look)
        ax.axhline(course.limit, linestyle=":", linewidth=1, color=line.get_color())
    ax.set_ylabel("epsilon spent")
    ax.set_ylim(bottom=0)
    ax.figure.autofmt_xdate()
    if any(course.times for course in drawn):
        ax.legend()
    return ax
