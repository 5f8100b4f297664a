"""What drawn questions are called, how far one unit moves what is measured for them, and what they cost, as recorded.

The questions of the golden list, and some more, with options and declarations drawn by chance. No row is read. A name
that changes makes a question new that was answered before: it would be charged again. `HUBBUB_GOLDEN=write` writes it
anew.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import itertools
import json
from collections.abc import Iterator
from functools import lru_cache
from random import Random
from typing import Any

import pytest

import hubbub as hb
from golden.kept import Kept
from golden.queries import GOLDEN
from golden.recorded import World
from golden.test_checks import AMOUNTS, DECLARED, DELTA, GAUSSIAN, LIMITS, declared
from golden.test_keys import error_of
from hubbub import plain
from hubbub.accounting.codec import to_json
from hubbub.engines.duckdb.known import _columns_read
from hubbub.errors import HubbubError
from hubbub.mechanisms.place_search import PLACES
from hubbub.session.finding import Finding, bounds_in
from hubbub.session.options import Options
from hubbub.session.prepare import PricedStatement, ask
from hubbub.sql.emit.plan import summed
from hubbub.tables.plan import Plan
from seeded import SeededBits

COUNT, PARTS = 320, 20
NOW = dt.datetime(2025, 3, 30, 2, 30)
MORE = [
    "SELECT name, COUNT(*) FROM customer GROUP BY name",
    "SELECT phone, COUNT(*), SUM(balance) FROM customer GROUP BY phone",
    "SELECT phone, segment, COUNT(DISTINCT c_id), AVG(balance) FROM customer GROUP BY phone, segment",
    "SELECT o_id, COUNT(*) FROM orders GROUP BY o_id",
    "SELECT phone, COUNT(*) AS n FROM customer GROUP BY phone ORDER BY n DESC LIMIT 3",
    "SELECT o_id, COUNT(DISTINCT c_id) AS n FROM orders WHERE clerk > 2 GROUP BY o_id ORDER BY n DESC LIMIT 2",
    "SELECT phone, MEDIAN(balance) FROM customer GROUP BY phone",
    "SELECT name, STDDEV(balance), COUNT(balance) FROM customer GROUP BY name",
    "SELECT APPROX_TOP_K(part, 3) AS a, MODE(priority) AS b FROM lineitem l JOIN orders o ON l.o_id = o.o_id",
    "SELECT status, CORR(total, clerk), REGR_SLOPE(total, clerk), GEOMEAN(total + 1) FROM orders GROUP BY status",
    "SELECT status, QUANTILE_CONT(total, [0.1, 0.5, 0.9]), MIN(total), MAX(clerk) FROM orders GROUP BY status",
    "SELECT status, SUM(3), AVG(2), COUNT(1), SUM(clerk - clerk) FROM orders GROUP BY status",
    "SELECT SUM(total) / COUNT(*), VAR_POP(total), COVAR_SAMP(total, clerk) FROM orders",
]
PLACED = [
    "SELECT name, TOP_PLACE(3) FROM customer GROUP BY name",
    "SELECT o_id, TOP_PLACE(5) AS p FROM orders WHERE clerk > 2 GROUP BY o_id ORDER BY p",
    "SELECT segment, TOP_PLACE(2) FROM customer GROUP BY segment",
    "SELECT LENGTH(name) AS l, TOP_PLACE(2) FROM customer GROUP BY l",
    "SELECT m, TOP_PLACE(2) FROM (SELECT c_id, MAX(name) AS m FROM customer GROUP BY c_id) GROUP BY m",
    "SELECT name, TOP_PLACE(3), COUNT(*) FROM customer GROUP BY name",
    "SELECT name, TOP_PLACE(51) FROM customer GROUP BY name",
    "SELECT APPROX_TOP_K(name, 3) FROM customer",
    "SELECT APPROX_TOP_K(UPPER(name), 2) AS w FROM customer WHERE balance > 0",
    "SELECT APPROX_TOP_K(m, 2) FROM (SELECT c_id, MAX(name) AS m FROM customer GROUP BY c_id)",
    "SELECT APPROX_TOP_K(segment, 2), MODE(segment) FROM customer",
    "SELECT APPROX_TOP_K(segment, 4) FROM customer",
    "SELECT MODE(m) FROM (SELECT c_id, MAX(segment) AS m FROM customer GROUP BY c_id)",
    "SELECT MODE(name), MODE(UPPER(segment)), MODE(balance) FROM customer",
    "SELECT MODE(nation), MODE(CASE WHEN balance > 0 THEN 'in' ELSE 'out' END), MODE(balance > 0) FROM customer",
    "SELECT MODE(day), MODE(EXTRACT(month FROM day)) FILTER (WHERE clerk > 2), APPROX_TOP_K(status, 2) FROM orders",
]
SUMS = [
    "SELECT SUM(total) FROM orders",
    "SELECT status, SUM(total), COUNT(*) FROM orders GROUP BY status",
    "SELECT SUM(total), SUM(clerk), COUNT(total) FROM orders WHERE clerk > 2",
    "SELECT SUM(CASE WHEN clerk > 2 THEN total ELSE 0 END), SUM(total) FILTER (WHERE clerk > 5) FROM orders",
    "SELECT part, SUM(qty) AS q, SUM(price) AS p FROM lineitem GROUP BY part",
    "SELECT (SELECT SUM(total) FROM orders) / (SELECT COUNT(*) FROM lineitem) AS each",
    "SELECT (SELECT SUM(total) FROM orders) - (SELECT SUM(total) FROM orders WHERE clerk > 2) AS rest",
    "SELECT status, priority, COUNT(*) FROM orders GROUP BY ROLLUP (status, priority)",
]
NULLED = [
    "SELECT CORR(total, NULL), COVAR_POP(NULL, clerk), REGR_SLOPE(total, NULLIF(1, 1)) FROM orders",
    "SELECT COVAR_SAMP(total, 5), REGR_SLOPE(total, 2), REGR_R2(3, clerk), CORR(total, total) FROM orders",
    "SELECT SUM(NULL), AVG(NULL), COUNT(NULL), COUNT(DISTINCT NULL) FROM orders",
    "SELECT VAR_POP(2), STDDEV(total - total), GEOMEAN(3) FROM orders",
]
AUTO: list[dict[str, Any]] = [
    *({}, {"max_groups": "auto"}, {"max_rows": "auto"}, {"max_groups": "auto", "max_rows": "auto"}),
    {"max_groups": 2, "max_rows": "auto", "weights": None},
]
Asked = tuple[str, dict[str, Any], int, bool]


@lru_cache(maxsize=len(DECLARED) + 2)
def _world(how: int) -> World:
    """The shop; below 0 with sums whose bounds are found, under one relation of neighbours and the other."""
    if how >= 0:
        return World(declared(DECLARED[how]))
    tables = declared({} if how == -1 else {"neighbours": "replace"})
    for name, column in (("orders", "total"), ("lineitem", "qty")):
        columns = {**tables[name].columns, column: hb.between(0, "auto")}
        tables[name] = dataclasses.replace(tables[name], columns=columns)
    return World(tables)


def _drawn() -> Iterator[Asked]:
    """A question, its options, the number of its declarations, and whether the budget has a delta."""
    chance = Random("priced")
    questions = [*(entry for family in GOLDEN.values() for entry in family), *MORE, *MORE, *MORE]
    chance.shuffle(questions)
    for at in range(COUNT):
        entry = questions[at % len(questions)]
        sql, more = (entry, {}) if isinstance(entry, str) else entry
        kept = {name: more[name] for name in ("params", "keys", "weights", "weight") if name in more}
        options = {**chance.choice(AMOUNTS), **chance.choice(LIMITS), **kept}
        yield (
            sql,
            options,
            chance.randrange(len(DECLARED)),
            chance.random() < (0.95 if GAUSSIAN & options.keys() else 0.5),
        )


DRAWN = list(_drawn())
DRAWN += [
    (sql, {"epsilon": 20, **limits}, -1 - at % 2, at % 3 > 0)
    for at, (sql, limits) in enumerate(itertools.product(SUMS, AUTO))
]
DRAWN += [(sql, {"epsilon": 2}, how, delta) for sql in [*NULLED, *PLACED] for how in (0, 4) for delta in (False, True)]


def _digest(value: object) -> str:
    return hashlib.sha256(str(value).encode()).hexdigest()[:16]


def _measured(plan: Plan) -> Iterator[str]:
    bounded = f"{plan.group_count} {plan.auto} {plan.norm}"
    yield f"  {_digest(plan.key())} {plan.question.tables} {bounded} read {sorted(plan.read)}"
    columns = _columns_read(plan.question.relation, plan.read)
    yield f"    columns {[f'{table}: {sorted(some)}' for table, some in sorted(columns.items())]}"
    for measurement in plan.measurements:
        name = json.dumps(measurement.canonical())
        yield f"    {_digest(name)} {name:.160} {'clipped' if plan.clips(measurement) else ''}"
        if summed(measurement) and not plan.to_find:
            moves = plan.sensitivity(measurement), plan.squared_sensitivity(measurement)
            yield f"      moves {moves} / {plan.fineness(measurement)}"


def _found(asked: PricedStatement, finding: Finding, at: int) -> Iterator[str]:
    """What is to be found, and what is found in counts that are drawn; then what is left to be found with that."""
    yield f"  find {finding.due} {finding.search!r} {finding.rest} {_digest(to_json(finding.event))}"
    yield f"    {[_digest(plan.key()) for plan in finding.histograms]}"
    chance, events = Random(at), list[str]()

    def counted(plan: Plan, number: int) -> list[int]:
        few, many = chance.choice([(20, 3), (400, 1), (90_000, 0.2)])
        return [int(few * 2.0 ** (-place * many * chance.random())) for place in range(PLACES)]

    steps = finding.find(counted, SeededBits(at))
    while True:
        try:
            events.append(to_json(next(steps)))
        except StopIteration as end:
            outcome = end.value
            break
        except HubbubError as error:
            yield f"    {len(events)} {_digest(events)} {error_of(error)}"
            return
    yield f"    {len(events)} {_digest(events)} {'too few' if outcome is None else ''}".rstrip()
    if outcome is None:
        return
    plans, record = outcome
    for entry in record:
        yield f"    {' '.join(str(entry[name]) for name in ('what', 'bound', 'place', 'beyond', 'plan', 'part'))}"
    assert bounds_in(json.dumps({"found": record})) is not None
    yield f"    {[_digest(plan.key()) for plan in plans]} {_digest(to_json(finding.price(plans).event))}"
    first = record[:1]
    knows = asked.knowing({entry["key"]: {k: v for k, v in entry.items() if k != "plan"} for entry in first})
    assert knows.finding is not None
    yield f"    with one {knows.finding.due} {_digest(to_json(knows.event))} {knows.price.epsilon} {knows.price.rho}"


def _said(at: int) -> str:
    sql, options, how, delta = DRAWN[at]
    told = [f"-- {json.dumps([options, DECLARED[how] if how >= 0 else how, delta], default=str)}", sql]
    budget = hb.Budget(10**6, **(DELTA if delta else {}))
    try:
        world = _world(how)
        asked = ask(sql, world.catalog, world.outer, Options(**options), lambda _: budget, NOW)
    except HubbubError as error:
        return "\n".join([*told, error_of(error)])
    if not isinstance(asked, PricedStatement):
        return "\n".join([*told, "public"])
    told.append(f"{asked.key('v')[:16]} {asked.space} {asked.dataset} {asked.amount} {asked.dated}")
    for plans in asked.plans:
        for plan in plans:
            told += _measured(plan)
    told += [
        f"  {part.plan} {part.share} {part.amount} {_digest(repr(part.draws))} {part.draws!r:.120} {part.note}"
        for part in asked.price.parts
    ]
    told.append(f"  {_digest(to_json(asked.event))} {asked.price.epsilon} {asked.price.rho} {asked.price.delta}")
    if asked.finding is not None:
        with plain.only(plain=True):  # a table of the noise that another test made has other draws
            told += _found(asked, asked.finding, at)
    if asked.looks is not None:
        told += [f"  look {_digest(to_json(price.event))} {price.rho}" for price in asked.looks.prices]
    return "\n".join(told)


PRICED = Kept("priced", _said, len(DRAWN))


@pytest.mark.parametrize("part", range(PARTS))
def test_names_moves_and_costs_are_as_recorded(part: int) -> None:
    for at in range(part, len(DRAWN), PARTS):
        PRICED.check(at)


def test_the_recordings_hold_costs_of_every_kind() -> None:
    texts = PRICED.all()
    assert sum("Error: " not in text for text in texts) > COUNT // 2
    told = "\n".join(texts)
    for text in (
        "DiscreteLaplace",
        "DiscreteGaussian",
        "clipped",
        "GroupThreshold",
        "look ",
        '"cap"',
        '"auto"',
        "public",
    ):
        assert text in told, text
