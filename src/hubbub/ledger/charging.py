"""To record one charge: every check first, then the row; inside the caller's transaction.

A `Request` holds its row as it will be written, so that it can be made ready before any lock is taken.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, replace
from typing import Any

from hubbub.errors import BudgetError, PolicyError, QueryError
from hubbub.ledger.accounts import (
    EVERYONE,
    TRAINING,
    Total,
    block_account,
    read_amount,
    table_accounts,
    training_filter,
    write_amount,
)
from hubbub.ledger.books import NOTHING, AccountState, Standing, stated_relation
from hubbub.ledger.budget import Budget, decimal_text, short_text
from hubbub.ledger.charge import Charge
from hubbub.ledger.hash_chain import Connection, Posting, Value, Writer
from hubbub.ledger.process import is_gone, this_process
from hubbub.ledger.proofs import see_row
from hubbub.ledger.readings import is_due, readers
from hubbub.ledger.records import believed, check_state
from hubbub.ledger.remainder import Remaining
from hubbub.ledger.rules import MAX_FAILURES, MAX_FAILURES_ALL, Rules
from hubbub.ledger.under_way import OpenQuestion, UnderWay
from hubbub.remedies import AskLess, DeclareOption

__all__ = [
    "MAX_FAILURES",
    "MAX_FAILURES_ALL",
    "Busy",
    "Locked",
    "Refused",
    "Request",
    "accounts_of",
    "check_failures",
    "check_purpose",
    "check_under_way",
    "record",
]


@dataclass(frozen=True, slots=True)
class Request:
    """A charge that is to be recorded, under a random id.

    owner: the process that works on it; None where it is scheduled (`timetable`). spend: what it adds to every account
    that pays. rules: how many questions may have failed. neighbours: the relation its loss is stated for. once: not if
    this question is under way or answered; of a reading, not if it was paid for since it was looked at.
    """

    charge: Charge
    id: str
    owner: str | None
    spend: Total
    rules: Rules
    neighbours: str | None = None
    once: bool = False

    @classmethod
    def of(cls, charge: Charge, rules: Rules, *, once: bool = False, owned: bool = True) -> Request:
        """A request with a new random id. owned: by this process, which works on it; else by the schedule."""
        question = charge.kind == "question"
        neighbours = stated_relation(charge.details) if question else None
        owner = this_process() if question and owned else None
        return cls(charge, uuid.uuid4().hex, owner, charge.spend, rules, neighbours, once)

    @property
    def row(self) -> tuple[Value, ...]:
        """Its columns, as `schema.COLUMNS` has them."""
        made = self.charge
        return (
            self.id, made.kind, made.space, made.dataset, made.analyst, made.question_key, made.sql,
            write_amount(made.epsilon), *self.spend.written, made.event, made.details, made.policy, made.data_version,
            made.request, made.block, self.owner, made.purpose,
        )  # fmt: skip

    @property
    def space(self) -> str:
        """The unit space."""
        return self.charge.space


def accounts_of(kind: str, dataset: str, analyst: str, block: str | None, details: str = "{}") -> tuple[str, ...]:
    """The accounts that pay for a charge of this kind. details: of the charge, which name its token."""
    match kind:
        case "question" if pays_training(details):
            return (TRAINING,)
        case "question" if block is None:
            return (EVERYONE, *table_accounts(dataset), *readers(kind, analyst, details))
        case "question":
            return (block_account(str(block)), *table_accounts(dataset))
        case "reading":
            return readers(kind, analyst, details)
        case _:
            return (EVERYONE, *readers(kind, analyst, details))


def pays_training(details: str) -> bool:
    """Whether a charge is of a net that is trained elsewhere, and paid from what is set aside for that."""
    if '"training"' not in details:
        return False
    content = json.loads(details)
    return isinstance(content, dict) and content.get("paid_from") == TRAINING


def _check_trainer(books: AccountState, made: Charge, budget: Budget, at: str) -> None:
    """Raise PolicyError for a training by whom, or of what, a steward has set a limit: it would not count there."""
    accounts = accounts_of("question", made.dataset, made.analyst, None)
    for standing in books.standings(made.space, budget, accounts, None, at):
        allowance = standing.allowance
        if allowance is not None and (allowance.over(at) or standing.account != EVERYONE):
            raise PolicyError(
                f"{standing.account} has a limit of its own, or its grant is over, and a training is paid from what "
                f"the budget sets aside for all, beside that limit. Ask the steward, who sets and lifts limits. "
                "Nothing was charged."
            )


class Locked(PolicyError):
    """Too many questions failed: a steward looks first."""


@dataclass(frozen=True)
class Refused:
    """A charge that does not fit: the first account that refused it, and what to say."""

    account: str
    error: BudgetError


@dataclass(frozen=True)
class Busy:
    """A question that has to wait for others of its analyst, and what to say where it waited too long."""

    error: PolicyError


def record(writer: Writer, books: AccountState, request: Request, under_way: UnderWay) -> Refused | Busy | str | None:
    """Record the charge if every account admits it.

    Returns None if it was recorded; the refusal if it does not fit, or has to wait, and then nothing was written; or
    the id of the charge under which the same question is under way or answered, where it is asked `once`.

    Raises:
        PolicyError, QueryError: it may not be charged at all. Nothing was written.
    """
    made, rules = request.charge, request.rules
    space, kind = made.space, made.kind
    budget = books.budget(space)
    if budget is None:
        raise PolicyError(no_budget(space))
    if kind != "reading":
        check_failures(books, space, made.analyst, rules)
    if made.request is not None:
        _check_request(writer.connection, request)
    if request.once and (known := _asked_already(writer, request)) is not None:
        return known
    if request.owner is not None:
        busy = check_under_way(books, under_way, space, made.analyst, request.owner, rules)
        if busy is not None:
            return busy
    if pays_training(made.details):
        _check_trainer(books, made, budget, writer.time)
    sums: list[Posting] = []
    paid: Total | None = None
    after: list[tuple[str, Total]] = []
    full: list[Standing] = []
    accounts = accounts_of(kind, made.dataset, made.analyst, made.block, made.details)
    payer = None if made.block is None else (made.block, made.analyst)
    for standing in books.standings(space, budget, accounts, payer, writer.time):
        books.check_spelling(space, standing.account)
        if standing.paid is not paid:  # often two accounts have paid the same
            paid = standing.paid
            total = paid + request.spend
            cost, written = total.cost, total.written
        held = cost if standing.elsewhere is NOTHING else (total + standing.elsewhere).cost
        if not all(filled.holds(held) for filled in standing.filters):
            full.append(standing)
        after.append((standing.account, total))
        sums.append((space, standing.account, *written))
    if full:  # what is said fits all of them
        if full[0].account == TRAINING:
            return Refused(TRAINING, _training_overrun(request, full[0], budget))
        tightest = min(full, key=lambda standing: standing.left)
        return Refused(tightest.account, overrun(request, tightest, budget, writer.time))
    if request.neighbours is not None:
        _relate(writer, books, space, request.neighbours)
    serial = writer.append_charge(request.row, sums)
    if request.owner is not None:
        under_way.add(OpenQuestion(serial, space, made.analyst, request.owner, writer.time))
    for account, total in after:
        books.post(space, account, total)
    return None


def no_budget(space: str) -> str:
    """What is said where a ledger has no budget for a space."""
    return (
        f"the ledger has no budget for the unit space {space!r}. "
        "Open it with one: `hubbub ledger create` adds those of the policy file."
    )


def check_failures(books: AccountState, space: str, analyst: str, rules: Rules) -> None:
    """Raise PolicyError for an analyst of whom too many questions failed, and where too many of everybody did."""
    allowed, allowed_all = rules.max_failures, rules.max_failures_all
    failures = books.failures(space, analyst)
    if failures >= allowed:
        raise Locked(
            f"{failures} questions of the analyst {analyst!r} failed in the engine, or died there, and {allowed} are "
            "allowed, because that something fails may tell about the data. Stored answers stay readable. A steward "
            f"looks at the incidents (`hubbub history`) and clears this: `hubbub ledger unlock {analyst}`."
        )
    joint = books.joint_failures(space, allowed)
    if joint >= allowed_all:
        raise Locked(
            f"{joint} questions about the unit space {space!r} failed in the engine, or died there, and {allowed_all} "
            "are allowed to all analysts together, because that something fails may tell about the data. Stored "
            "answers stay readable. A steward looks at the incidents (`hubbub history`) and clears this for everybody: "
            "`hubbub ledger unlock --all`."
        )


def check_purpose(charge: Charge, rules: Rules) -> None:
    """Raise QueryError for a question without a purpose, where the policy wants one."""
    if rules.require_purpose and charge.purpose is None:
        raise QueryError(
            "the policy wants to know what a question is asked for (`require_purpose`): say it in a few words, "
            "purpose= in Python, --purpose on the command line. Nothing was charged."
        )


def check_under_way(
    books: AccountState, under_way: UnderWay, space: str, analyst: str, owner: str, rules: Rules
) -> Busy | None:
    """Whether a question has to wait: as many are open as failures may still be seen, its analyst's or everybody's."""
    allowed, allowed_all = rules.max_failures, rules.max_failures_all
    open_now = under_way.blocks(space, analyst, owner, free := allowed - books.failures(space, analyst))
    if open_now:
        return Busy(
            PolicyError(
                f"{open_now} questions of the analyst {analyst!r} are under way, some in other processes, and no more "
                f"than {free} may be: each may turn out to fail, and {allowed} failures are allowed (`max_failures`). "
                "This question waited for them as long as it may. Nothing was charged for it: ask again later."
            )
        )
    others = under_way.keeps_out(space, owner, free := allowed_all - books.joint_failures(space, allowed))
    if others:
        return Busy(
            PolicyError(
                f"{others} other processes have questions about the unit space {space!r} under way, and no more than "
                f"{free} may: each may die of its own, and {allowed_all} failures are allowed to all analysts together "
                "(`max_failures_all`). This question waited for them as long as it may. Nothing was charged for it: "
                "ask again later, or have a steward look at what failed (`hubbub ledger unlock --all`)."
            )
        )
    return None


def _relate(writer: Writer, books: AccountState, space: str, neighbours: str) -> None:
    """The first charge settles the neighbour relation; losses under two of them do not add up."""
    known = books.relation(space)
    if known is not None and known != neighbours:
        keeping = DeclareOption("neighbours", known)
        raise PolicyError(
            f"the ledger's charges of the unit space {space!r} are made for neighbours={known!r}, and this question is "
            f"for {neighbours!r}. Losses under two relations do not add up: declare {keeping.in_python()}, or use "
            "another ledger. Nothing was charged.",
            remedy=keeping,
        )
    if known is None:
        writer.append("relation", space, neighbours)
        books.relate(space, neighbours)


def _check_request(connection: Connection, request: Request) -> None:
    used = connection.execute(
        "SELECT id FROM charge WHERE unit_space = ? AND analyst = ? AND request = ?",
        (request.space, request.charge.analyst, request.charge.request),
    ).fetchone()
    if used is not None:
        raise QueryError(
            f"the idempotency key {request.charge.request!r} was used for charge {used[0]}. Ask for that request's "
            "answer with it, or use a new key."
        )


def _asked_already(writer: Writer, request: Request) -> str | None:
    """The charge of this very question, at no less epsilon, that is answered or that a live process works on.

    One's own, where analysts do not share answers. Of a reading: the answer, where it was paid for meanwhile.
    """
    if request.charge.kind == "reading":
        answer = believed(writer.connection, json.loads(request.charge.details)["release"])
        return None if answer is None or is_due(writer.connection, answer, request.charge) else answer.id
    shared = request.rules.shared_answers
    rows: list[Any] = writer.connection.execute(
        "SELECT charge.serial, charge.id, charge.epsilon, journal.time, charge.owner, step.owner, step.state "
        "FROM charge JOIN journal ON journal.serial = charge.serial LEFT JOIN step ON step.serial = "
        "(SELECT max(last.serial) FROM step AS last WHERE last.charge = charge.serial) "
        "WHERE charge.unit_space = ? AND charge.question_key = ? AND charge.kind = 'question' "
        f"{'' if shared else 'AND charge.analyst = ? '}ORDER BY charge.serial",
        (request.space, request.charge.question_key, *([] if shared else [request.charge.analyst])),
    ).fetchall()
    for serial, known, epsilon, time, first, second, state in rows:
        see_row(writer.connection, serial, unit_space=request.space, question_key=request.charge.question_key)
        check_state(serial, state or "charged")
        if read_amount(epsilon) < request.charge.epsilon or state in ("failed", "lost", "withdrawn"):
            continue
        owner = second or first
        if state in ("stored", "shown") or (owner is not None and not is_gone(owner, time, writer.time)):
            return str(known)
    return None


def _wanting(kind: str, asked: str) -> str:
    """What was asked, of a budget that does not hold it."""
    if kind == "reading":
        return f"somebody already bought this answer, but reading it counts epsilon {asked} against your own limit"
    return f"not enough budget: the {kind} asks for epsilon {asked}"


def _training_overrun(request: Request, standing: Standing, budget: Budget) -> BudgetError:
    """The refusal of a training."""
    ended = standing.allowance is not None
    left, delta = replace(training_filter(budget, over=ended), spent=Total().cost if ended else standing.paid.cost).left
    whole = "nothing" if budget.training is None else f"epsilon {decimal_text(budget.training[0])}"
    asked = decimal_text(request.charge.epsilon)
    rest = (
        "and an older copy of this ledger was put back, so what of it is spent is not known. Fit a model of sums "
        "(`session.fit`), which is paid as questions are"
        if ended
        else f"of which epsilon {short_text(left)} and delta {float(delta):.3g} are left. Plan fewer steps, more noise "
        "or a smaller rate"
    )
    return BudgetError(
        f"not enough budget: this training asks for epsilon {asked} and delta {float(request.spend.delta):.3g}. The "
        f"budget sets {whole} aside for training (`training=` when its ledger is created), {rest}.",
        asked=asked,
        left=decimal_text(left),
    )


def overrun(request: Request, standing: Standing, budget: Budget, at: str) -> BudgetError:
    """The refusal: what was asked, what is left, of what, and what to do."""
    left = Remaining.of(budget, [standing])
    asked, largest = decimal_text(request.charge.epsilon), decimal_text(max(left.question, left.epsilon))
    kind, _, name = standing.account.partition(":")
    whom = {
        "table": f"the table {name!r}",
        "analyst": f"the analyst {name!r}",
        "block": "the reserved block",
        "token": f"the token {name}",
        EVERYONE: f"the unit space {request.space!r}",
    }[kind]
    allowance, remedy = standing.allowance, None
    whole = budget.for_questions if allowance is None or allowance.epsilon is None else allowance.epsilon
    of_whole = "" if kind == "block" else f" of {decimal_text(whole)}"
    if allowance is not None and allowance.over(at):
        ended = "was revoked" if allowance.epsilon is None else f"expired at {allowance.expires}"
        rest = f"what {whom} was granted {ended}. Ask the steward for a grant"
    elif request.spend.delta > left.delta:
        rest = (
            f"its thresholds ask for delta {float(request.spend.delta):.3g}, and {float(left.delta):.3g} of delta is "
            f"left for {whom}. Name the groups, which needs no threshold, or ask for fewer"
        )
    elif not left.question and not left.epsilon:
        rest = f"0{of_whole} is left for {whom}. The budget is spent: no new question fits"
    elif budget.pure:
        remedy = AskLess(largest)
        rest = f"{largest}{of_whole} is left for {whom}. Ask with {remedy.in_python()}"
    else:
        most = short_text(max(left.question, left.epsilon))
        laplace = short_text(left.epsilon)
        rest = f"at most {most}{of_whole} is left for {whom} (with Laplace noise {laplace}). Ask with less"
    return BudgetError(
        f"{_wanting(request.charge.kind, asked)}, and {rest}; what was released before can be read again for free.",
        asked=asked,
        left=largest,
        remedy=() if remedy is None else remedy,
    )
