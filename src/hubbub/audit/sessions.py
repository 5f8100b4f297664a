"""The grey-box audit of a whole session: every question on every nasty neighbour, from SQL to the released table.

For each pair of tables two sessions with the same declarations are opened, and every question is asked of both, the
second time with the noise of the first. Beyond `grey_box.compare` it must hold that the price told by `check`, the
answer's schema, rows, order and intervals, its receipt, and what is left of the budget are the same; that the charge
is in the ledger before the first draw; and that the laws drawn from cost no more than the ledger was charged.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hubbub.accounting import cost as cost_of, from_json
from hubbub.audit.fixtures import UNIT, open_people, people
from hubbub.audit.grey_box import Observed, Violation, compare, fresh, observe, spent
from hubbub.audit.neighbours import Pair, Relation, pairs
from hubbub.audit.questions import QUESTIONS, Question
from hubbub.errors import ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

    from hubbub.ledger.store import Entry
    from hubbub.session import Session

__all__ = ["SessionAudit", "audit_session"]

Open = Callable[[Any], "Session"]

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
    unit: str = UNIT,
    questions: Sequence[str | Question] = QUESTIONS,
    epsilon: str = "0.5",
    relation: Relation = "add_remove",
    neighbours: Iterable[Pair] | None = None,
    runs: int = 8,
) -> SessionAudit:
    """Ask every question on every neighbour of `table`.

    open_session: a table -> a session over it, with enough budget for all questions and declared for `relation`; by
    default the audit's own. neighbours: pairs of what `open_session` takes; by default the nasty ones of `pairs`.
    questions: SQL, or a `Question`. epsilon: of questions that name no amount. runs: how often each question is asked
    of one table, for the freshness of its noise; 0 for none.

    Raises ParameterError where a question is refused on every table, because nothing was audited then.
    """
    opener = open_session or (lambda frame: open_people(frame, relation))
    asked = [Question(q) if isinstance(q, str) else q for q in questions]
    tried = list(neighbours if neighbours is not None else pairs(table or people(), unit, relation=relation))
    violations: list[tuple[str, str, Violation]] = []
    base: dict[int, list[Observed]] = {}
    for pair in tried:
        if id(pair.d) not in base:
            base = {id(pair.d): _ask(opener, pair.d, asked, epsilon, None)}
            _refuse_refused(asked, base[id(pair.d)])
        replayed = _ask(opener, pair.d_prime, asked, epsilon, base[id(pair.d)])
        for question, first, second in zip(asked, base[id(pair.d)], replayed, strict=True):
            violations += [(str(question), pair.name, v) for v in compare(first, second, same=pair.same)]
            violations += [(str(question), pair.name, v) for v in _charged(first, second)]
    if runs:
        with _opened(opener, tried[0].d) as session:
            for question in asked:
                again = partial(_anew, opener, tried[0].d, session, question, epsilon)
                violations += [(str(question), "the same table again", v) for v in fresh(again, None, runs=runs)]
    return SessionAudit(len(asked), len(tried), tuple(violations))


def _opened(opener: Open, frame: Any) -> Session:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return opener(frame)


def _refuse_refused(questions: Sequence[Question], runs: Sequence[Observed]) -> None:
    for question, run in zip(questions, runs, strict=True):
        if run.raised is not None:
            raise ParameterError(f"{question} is not answered at all ({run.raised[0]}: {run.raised[1]}); ask another.")


def _ask(
    opener: Open, frame: Any, questions: Sequence[Question], epsilon: str, frozen: Sequence[Observed] | None
) -> list[Observed]:
    with _opened(opener, frame) as session:
        return [_observed(session, q, epsilon, None if frozen is None else frozen[i]) for i, q in enumerate(questions)]


def _observed(session: Session, question: Question, epsilon: str, frozen: Observed | None) -> Observed:
    charges = len(_asked(session))
    early: list[bool] = []

    def before() -> None:
        early.append(len(_asked(session)) == charges)

    def run(_: None) -> dict[str, Any]:
        answer = _answer(session, question, epsilon)
        last = _asked(session)[-1]
        return {
            **answer,
            "left": str(session.remaining),
            "drawn before the charge": any(early),
            "charges": len(_asked(session)) - charges,
            "event": last.event,
        }

    return observe(run, None, frozen=None if frozen is None else frozen.records, before=before)


def _asked(session: Session) -> list[Entry]:
    """The charges of questions; what comes back of one is an entry of its own."""
    return [entry for entry in session.history() if entry.kind == "question"]


def _answer(session: Session, question: Question, epsilon: str) -> dict[str, Any]:
    """All that is shown of an answer, but ids and times."""
    options = {"epsilon": epsilon, **question.options}
    if question.verb != "sql":
        return _whole(session, question, options)
    price = session.check(question.text, **options)
    release = session.sql(question.text, **options, fresh=True)
    answer = release.to_arrow()
    # Intervals of what is computed from releases are simulated, records are sampled from a model: randomness of their
    # own, which is frozen where a test passes its bits.
    shown = None if session._bits is None else str(release)
    return {
        "price": str(price),
        "schema": [(f.name, str(f.type)) for f in answer.schema],
        "rows": answer.to_pylist(),
        "shown": shown,
        "cost": str(release.cost),
        "receipt": {k: str(v) for k, v in release.receipt.items() if k not in _VARYING},
    }


def _anew(opener: Open, frame: Any, session: Session, question: Question, epsilon: str, _: None) -> dict[str, Any]:
    """The answer with noise of its own. Bounds that were bought are read, not drawn, as often as they are asked for: a
    session that has not bought them buys them.
    """
    if question.verb != "suggest_bounds":
        return _answer(session, question, epsilon)
    with _opened(opener, frame) as other:
        return _answer(other, question, epsilon)


def _whole(session: Session, question: Question, options: dict[str, Any]) -> dict[str, Any]:
    """A synthetic table, marginals, or what is told of bounds."""
    if question.verb == "check_bounds":
        check = session.check_bounds(question.text, **options, fresh=True)
        return {"cost": str(check.cost), "shown": str(check), "limits": check.to_wire()["limits"]}
    if question.verb == "suggest_bounds":
        columns = options.pop("columns")
        return {"bounds": str(session.suggest_bounds(question.text, *columns, **options))}
    if question.verb == "synthesize":
        plan = session.plan_synthesis(question.text, **options)
        synthesis = session.synthesize(question.text, **options, fresh=True)
        rows = None if session._bits is None else synthesis.to_dict()
        return {
            "price": str(plan),
            "report": synthesis.report,
            "cost": str(synthesis.cost),
            "size": len(synthesis),
            "rows": rows,
        }
    wanted = options.pop("marginals")
    tables = session.marginals(question.text, wanted, **options, fresh=True)
    return {"cost": str(tables.cost), "rows": [tables.table(*columns).to_pydict() for columns in wanted]}


def _charged(run: Observed, replayed: Observed) -> list[Violation]:
    """Whether the charge came first, there is one, and it holds what was drawn."""
    if run.raised is not None or not isinstance(run.answer, dict) or "event" not in run.answer:
        return []
    charges = []
    if run.answer["drawn before the charge"]:
        charges.append(Violation("cost", "noise was drawn before the charge was in the ledger"))
    if run.answer["charges"] != 1:
        charges.append(Violation("cost", f"{run.answer['charges']} charges for one question"))
    drawn, charged = spent(run.records, replayed.records), cost_of(from_json(run.answer["event"]))
    pure = charged.epsilon is not None and drawn.epsilon is not None and drawn.epsilon <= charged.epsilon
    if not ((pure or drawn.rho <= charged.rho) and drawn.delta <= charged.delta):
        charges.append(Violation("cost", f"the noise drawn costs {drawn}; charged: {charged}"))
    return charges
