"""A statement asked: its answer, from the ledger or drawn now, and the same asked again with additional budget."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from hubbub.accounting import cost as cost_of
from hubbub.accounting.amounts import ratio
from hubbub.accounting.zcdp import epsilon_of_rho
from hubbub.answer.evaluate import EvaluatedStatement
from hubbub.answer.release import Refinement, Refining, Release
from hubbub.arguments import an_amount
from hubbub.errors import PolicyError, QueryError
from hubbub.ledger.budget import EpsilonLike, decimal_text
from hubbub.ledger.readings import token_of
from hubbub.remedies import GiveOptions
from hubbub.session.check import details, predicted
from hubbub.session.finding import TOO_FEW, bounds_in, public_part, told
from hubbub.session.options import Options
from hubbub.session.prepare import PricedStatement, amount_of
from hubbub.session.refine import refinement
from hubbub.session.run import CHANGED, Door
from hubbub.session.statement import (
    check_drawn_by,
    drawn_plans,
    estimates_of,
    evaluated,
    is_staged,
    key_of,
    largest_epsilon,
    request_of,
)
from hubbub.session.total_error import TotalError
from hubbub.tables.declare import PrivateTable
from hubbub.tables.draw_release import price_of
from hubbub.tables.estimates import combine, expected
from hubbub.tables.plan import Plan
from hubbub.tables.price import make_price
from hubbub.tables.relations import whole_rows_of

if TYPE_CHECKING:
    from hubbub.ledger.store import StoredRelease

__all__ = ["answered", "foreseen", "joined", "knowing", "refuse_nothing", "release_of", "to_refine"]

_ALONE: Final = "the rows changed while they were asked about again: this is the second answer alone, at its own noise."


def answered(
    door: Door,
    asked: PricedStatement,
    options: Options,
    *,
    fresh: bool = False,
    name: str | None = None,
    version: str | None = None,
) -> Release:
    """The stored answer, or a new one: charged, run, drawn, stored. The arguments are those of `Door.open`."""
    asked = knowing(door, asked, options, fresh=fresh)
    stored, charged = door.release(request_of(asked, door.data, options), fresh=fresh, name=name, version=version)
    refuse_nothing(door, stored, charged=charged)
    try:
        return release_of(door, asked, options, stored, charged=charged)
    except QueryError as error:
        if not charged:
            raise
        raise QueryError(
            f"{error}\nThe private part was answered, charged ({stored.charge_id}) and stored: with another outer "
            "part it is free.",
            remedy=error.remedies,
        ) from None


def knowing(door: Door, asked: PricedStatement, options: Options, *, fresh: bool = False) -> PricedStatement:
    """The statement with the bounds that this analyst bought before, in the same search of the same rows, private and
    public.

    Another analyst's are not looked at: to read an answer counts against one's own limit. Nor, through a token with a
    cap, what that has not paid for. fresh: none is.
    """
    if asked.finding is None or fresh:
        return asked
    version = door.version(request_of(asked, door.data, options))
    known: dict[str, Any] = {}
    texts = door.ledger.record.bounds_found(space=asked.space, analyst=door.analyst, version=version, token=door.token)
    for text in texts:
        known |= bounds_in(text, asked.public_rows) or {}
    return asked.knowing(known)


def refuse_nothing(door: Door, stored: StoredRelease, *, charged: bool) -> None:
    """Raises QueryError where a search found no bound."""
    if stored.contents.get("nothing") is None:
        return
    spent = "The search was charged, and the rest came back." if charged else "Nothing was charged."
    limits = [] if stored.entry.analyst == door.analyst else ["your own limit"]
    limits += [] if door.token is None or token_of(stored.entry.details) == door.token else ["the cap of this token"]
    if limits:
        spent = f"It was searched before: what that cost counts against {' and '.join(limits)}, once, and nothing else."
    raise QueryError(
        f'{TOO_FEW}: give a number in place of "auto", or ask at a larger epsilon=.... {spent}',
        remedy=GiveOptions(("epsilon",)),
    )


def total_error(door: Door, asked: PricedStatement, options: Options, stored: StoredRelease) -> TotalError | None:
    """How much wider the intervals of the total are, where that is asked for."""
    if not options.total_error:
        return None
    payload = stored.contents
    record, plans = tuple(payload["found"]), drawn_plans(asked, payload)
    declared = {n: most for n, plan in enumerate(plans) if (most := _declared_rows(door, plan)) is not None}
    swapped = plans[0].neighbours == "replace"
    return TotalError(plans, record, asked.places, swapped, options.rows_per_unit_at_most, declared)


def _declared_rows(door: Door, plan: Plan) -> int | None:
    """How many rows of one unit the table states that a plan's rows are of."""
    scan = whole_rows_of(plan.question.relation)
    declared = None if scan is None else door.data.tables.get(scan.table)
    return declared.rows_per_unit_at_most if isinstance(declared, PrivateTable) else None


def release_of(
    door: Door, asked: PricedStatement, options: Options, stored: StoredRelease, *, charged: bool
) -> Release:
    """The answer to this statement from a stored draw, which may have been bought at a larger epsilon.

    Raises QueryError for the draw of another question.
    """
    receipt = door.receipt(stored)
    lines: tuple[str, ...] = ()
    record = stored.contents.get("found", ())
    if record:
        check_drawn_by(partial(key_of, asked), stored)
        plans = drawn_plans(asked, stored.contents)
        shown = details(price_of(plans, stored.contents))
        lines = told(plans, record)
        receipt |= {k: shown[k] for k in ("measurements", "plans", "max_groups", "max_rows")}
        receipt |= {"found": [public_part(entry) for entry in record]}
    used = stored.contents.get("used")
    epsilon = stored.epsilon
    if used is not None:
        budget = door.ledger.balance.budget(asked.space)
        epsilon = min(epsilon, epsilon_of_rho(ratio(used), budget.delta_conversion))
        steps = len(stored.contents["looks"])
        lines = (
            f"stopped after step {steps}: of epsilon {decimal_text(stored.epsilon)}, {float(epsilon):.3g} was used",
        )
    left = largest_epsilon(door.ledger.balance.budget(asked.space), door.ledger.balance.left(asked.space))
    return Release(
        cost=epsilon if charged else Fraction(0),
        charged=charged,
        charge_id=stored.charge_id,
        receipt=receipt,
        epsilon=epsilon,
        _notes=(*lines, *asked.notes),
        _answered=evaluated(door, asked, stored, total_error(door, asked, options, stored)),
        refine=Refining(
            lambda epsilon: refined(door, asked, options, stored, epsilon),
            lambda epsilon: foreseen(door, asked, options, stored, epsilon)[0],
        ),
        _left=left,
    )


def refined(
    door: Door, asked: PricedStatement, options: Options, stored: StoredRelease, epsilon: EpsilonLike
) -> Release:
    """The same question asked again with additional budget, both answers combined.

    Both are of the same rows, by their version before the charge and after the draw. Where it is another one only
    then, the second answer is given alone.

    Raises QueryError where it would not help, or the rows have changed: nothing is charged then.
    """
    more, amount, version = to_refine(door, asked, options, stored, epsilon)
    again = answered(door, more, amount, fresh=True, version=version)
    if not _is_still(door, asked, options, version):
        return replace(again, _notes=(*again.text.notes, _ALONE))
    return joined(door, asked, stored, again)


def to_refine(
    door: Door, asked: PricedStatement, options: Options, stored: StoredRelease, epsilon: EpsilonLike
) -> tuple[PricedStatement, Options, str]:
    """What is asked to refine an answer, with its options, and the version of the rows that both draws are of.

    Raises QueryError where it would not help, or the rows have changed.
    """
    request = request_of(asked, door.data, options)
    version = door.version(request)
    forecast, more, amount = foreseen(door, asked, options, stored, epsilon)
    if not forecast.helps:
        amounts = (forecast.epsilon * 2**k for k in range(1, 8))
        enough = next((e for e in amounts if foreseen(door, asked, options, stored, str(e))[0].helps), None)
        ways = [] if enough is None else [GiveOptions(("epsilon",), (decimal_text(enough),))]
        hint = "".join(f" With {way.in_python()} it would." for way in ways)
        raise QueryError(
            f"refine at epsilon {decimal_text(forecast.epsilon)} would not make this answer better.{hint} Nothing "
            f"was charged.\n{forecast}",
            remedy=ways,
        )
    if request.key(version) != stored.entry.question_key:
        raise QueryError(CHANGED)
    return more, amount, version


def joined(door: Door, asked: PricedStatement, stored: StoredRelease, again: Release) -> Release:
    """Two answers to the same question about the same rows, combined."""
    first = asked.grouped(estimates_of(asked, stored))
    second = again._answered
    assert isinstance(second, EvaluatedStatement)
    # Quantiles are taken from the last of the two: the dearer one.
    dearer = 1 if again.epsilon > stored.epsilon else -1
    both = tuple(
        tuple(combine([a, b][::dearer]) for a, b in zip(firsts, seconds, strict=True))
        for firsts, seconds in zip(first, second.estimates, strict=True)
    )
    epsilon = stored.epsilon + again.epsilon
    # What is told of it is told of both draws: they were charged one by one, and both are in it.
    before = json.loads(stored.entry.details)
    receipt = {**again.receipt, "epsilon": decimal_text(epsilon), "refined": stored.charge_id}
    rhos = [again.receipt.get("rho"), before.get("rho")]
    if None not in rhos:
        receipt["rho"] = str(sum(map(ratio, rhos), Fraction(0)))
    charges = ((stored.charge_id, before), (again.charge_id, again.receipt))
    receipt["measurements"] = [{**part, "charge": c} for c, told in charges for part in told["measurements"]]
    return replace(
        again,
        epsilon=epsilon,
        receipt=receipt,
        _answered=EvaluatedStatement(asked.statement, both, asked.outer, door.bits),
        refine=Refining(),
    )


def foreseen(
    door: Door, asked: PricedStatement, options: Options, stored: StoredRelease, epsilon: EpsilonLike
) -> tuple[Refinement, PricedStatement, Options]:
    """What asking again would cost and how good both draws together would be, and what is asked then.

    Raises QueryError for questions that are not the same when they are drawn anew, and where the rows have changed.
    """
    epsilon = an_amount(epsilon)
    if any(plan.private_keys for plans in asked.plans for plan in plans):
        raise QueryError("refine is for public groups: groups found privately differ from draw to draw.")
    if is_staged(asked):
        raise QueryError(
            "refine is for questions whose private parts do not read another's release: drawn anew, that would "
            "make them other questions."
        )
    if asked.looks is not None:
        raise QueryError("an answer that was bought step by step is refined by asking for a smaller share.")
    if asked.finding is not None:
        raise QueryError(
            "refine is for bounds that are given: ask with the bound that was found (it stands in the receipt), and "
            "refine that."
        )
    request = request_of(asked, door.data, options)
    if request.key(door.version(request)) != stored.entry.question_key:
        raise QueryError(CHANGED)
    budget = door.ledger.balance.budget(asked.space)
    flat = [plan for plans in asked.plans for plan in plans]
    noise = None if budget.pure else asked.amount.noise
    same = replace(options.at(epsilon), rho=None, noise=noise, delta=None, weights=None)
    amount = amount_of(budget, flat, same)
    more = replace(asked, amount=amount, price=make_price(flat, amount.spend), weights="")
    cost = cost_of(more.price.event)
    whose: dict[str, Any] = {"analyst": door.analyst, "block": door.block, "token": door.token}
    paying = {"dataset": asked.dataset, **whose}
    left = door.ledger.balance.left(asked.space, **paying)
    bought = price_of(flat, stored.contents)
    ranks = [
        {c.name: c.ranks for c in predicted(price, asked.statement.outputs, asked.places, 1000) if c.ranks is not None}
        for price in (bought, more.price)
    ]
    forecast = refinement(
        evaluated(door, asked, stored),
        asked.grouped(expected(more.price)),
        ranks=[ranks[0], {name: min(now, ranks[1][name]) for name, now in ranks[0].items()}],
    )
    shown = left.epsilon if more.amount.spend.pure else largest_epsilon(budget, left)
    fits = door.ledger.balance.admits(cost, space=asked.space, **paying)
    return replace(forecast, epsilon=amount.epsilon, left=shown, fits=fits), more, same


def _is_still(door: Door, asked: PricedStatement, options: Options, version: str) -> bool:
    """Whether the rows are those of a version, after a charge."""
    with suppress(PolicyError):  # a source that is gone
        return door.version(request_of(asked, door.data, options)) == version
    return False
