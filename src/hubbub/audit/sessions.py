"""The grey-box audit of a whole session: every question on every nasty neighbour, from SQL to the released table.

For each pair of tables two sessions with the same declarations are opened, and every question is asked of both, the
second time with the noise of the first. Beyond `grey_box.compare` it must hold that the price told by `check`, the
answer's schema, rows and order, its receipt, and what is left of the budget are the same; that the charge is in the
ledger before the first draw; and that the laws drawn from cost no more than the ledger was charged.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hubbub.accounting import cost as cost_of, from_json
from hubbub.audit import questions as asked
from hubbub.audit.grey_box import Observed, Violation, compare, fresh, observe, spent
from hubbub.audit.neighbours import Pair, Relation, pairs
from hubbub.errors import ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

    from hubbub.session import Session

__all__ = ["SessionAudit", "audit_session", "open_people"]

Open = Callable[["pa.Table"], "Session"]

_VARYING = {"id", "time", "chain", "data_version", "policy"}


@dataclass(frozen=True)
class SessionAudit:
    """What was found. violations: (question, neighbour, violation). questions, neighbours: how many were tried."""

    questions: int
    neighbours: int
    violations: tuple[tuple[str, str, Violation], ...]


def audit_session(
    open_session: Open | None = None,
    table: pa.Table | None = None,
    *,
    unit: str = asked.UNIT,
    questions: Sequence[str] = asked.QUESTIONS,
    epsilon: str = "0.5",
    relation: Relation = "add_remove",
    neighbours: Iterable[Pair] | None = None,
) -> SessionAudit:
    """Ask every question on every neighbour of `table`.

    open_session: a table -> a session over it, with enough budget for all questions and declared for `relation`; by
    default the audit's own. neighbours: pairs of tables; by default the nasty ones of `pairs`.

    Raises ParameterError where a question is refused on every table, because nothing was audited then.
    """
    opener = open_session or (lambda frame: open_people(frame, relation))
    tried = list(neighbours if neighbours is not None else pairs(table or asked.people(), unit, relation=relation))
    found: list[tuple[str, str, Violation]] = []
    base: dict[int, list[Observed]] = {}
    for pair in tried:
        if id(pair.d) not in base:
            base = {id(pair.d): _ask(opener, pair.d, questions, epsilon, None)}
            _refuse_refused(questions, base[id(pair.d)])
        replayed = _ask(opener, pair.d_prime, questions, epsilon, base[id(pair.d)])
        for sql, first, second in zip(questions, base[id(pair.d)], replayed, strict=True):
            found += [(sql, pair.name, v) for v in compare(first, second, same=pair.same)]
            found += [(sql, pair.name, v) for v in _charged(first)]
    with opener(tried[0].d) as session:
        for sql in questions:
            reused = fresh(lambda _, sql=sql: session.sql(sql, epsilon=epsilon, fresh=True), None)  # type: ignore[misc]
            found += [(sql, "the same table again", v) for v in reused]
    return SessionAudit(len(questions), len(tried), tuple(found))


def _refuse_refused(questions: Sequence[str], runs: Sequence[Observed]) -> None:
    for sql, run in zip(questions, runs, strict=True):
        if run.raised is not None:
            raise ParameterError(f"{sql!r} is not answered at all ({run.raised[0]}: {run.raised[1]}); ask another.")


def _ask(
    opener: Open, frame: Any, questions: Sequence[str], epsilon: str, frozen: Sequence[Observed] | None
) -> list[Observed]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        session = opener(frame)
    with session:
        return [
            _question(session, sql, epsilon, None if frozen is None else frozen[i]) for i, sql in enumerate(questions)
        ]


def _question(session: Session, sql: str, epsilon: str, frozen: Observed | None) -> Observed:
    charges = len(session.history())
    early: list[bool] = []

    def before() -> None:
        early.append(len(session.history()) == charges)

    def run(_: None) -> dict[str, Any]:
        price = session.check(sql, epsilon=epsilon)
        release = session.sql(sql, epsilon=epsilon, fresh=True)
        answer = release.to_arrow()
        return {
            "price": str(price),
            "schema": [(f.name, str(f.type)) for f in answer.schema],
            "rows": answer.to_pylist(),
            "cost": str(release.cost),
            "receipt": {k: str(v) for k, v in release.receipt.items() if k not in _VARYING},
            "left": str(session.remaining),
            "drawn before the charge": any(early),
            "event": session.history()[-1].event,
        }

    return observe(run, None, frozen=None if frozen is None else frozen.records, before=before)


def _charged(run: Observed) -> list[Violation]:
    """Whether the charge came first, and holds what was drawn."""
    if run.raised is not None:
        return []
    found = []
    if run.answer["drawn before the charge"]:
        found.append(Violation("cost", "noise was drawn before the charge was in the ledger"))
    drawn, charged = spent(run.records), cost_of(from_json(run.answer["event"]))
    pure = charged.epsilon is not None and drawn.epsilon is not None and drawn.epsilon <= charged.epsilon
    if not ((pure or drawn.rho <= charged.rho) and drawn.delta <= charged.delta):
        found.append(Violation("cost", f"the noise drawn costs {drawn}; charged: {charged}"))
    return found


def open_people(frame: pa.Table, relation: Relation = "add_remove") -> Session:
    """A session, kept in memory, over a table of the shape of `questions.people`."""
    from hubbub.ledger.budget import Budget
    from hubbub.session import Session
    from hubbub.tables.declare import table

    declared = table(
        frame,
        unit=asked.UNIT,
        neighbours=relation,
        columns=asked.columns(),
        max_groups=asked.MAX_GROUPS,
        max_rows=asked.MAX_ROWS,
    )
    return Session({"t": declared}, budget=Budget(10**6), ledger=None)
