"""What a question costs and how good its answer is, over the options and declarations that it may have, as recorded.

Each line of the design is a question of the golden list with options drawn by a fixed seed: limits found or given,
norms, pure budgets, Laplace noise, weights, goals, neighbours that replace. A recording holds what `check` says, or
the refusal; and for those that are answered, the receipt's measurements and the first
rows with their intervals, from bits that the question's own text seeds. `HUBBUB_GOLDEN=write` writes them anew.
"""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import hubbub as hb
from golden.kept import Kept
from golden.queries import GOLDEN
from golden.recorded import rounded
from golden.shop import tables
from hubbub import plain
from hubbub.tables.declare import PrivateTable
from seeded import SeededBits

COUNT = 100
PARTS = 20
DELTA = {"delta": "1e-6"}
AMOUNTS: list[dict[str, Any]] = [
    *({"epsilon": e} for e in (1, "1/3", 20, 400)),
    {"rho": "1/50"},
    *({"epsilon": 2, "noise": noise} for noise in ("laplace", "gaussian")),
    {"within": "10 %", "at_most": 30},
    {"within": "25 %", "at_least": 10, "at_most": 50},
    {"within": 40, "at_most": 10},
    {"epsilon": 1, "delta": "1e-8"},
]
LIMITS: list[dict[str, Any]] = [
    *({}, {}, {"max_groups": "auto"}, {"max_rows": "auto"}, {"max_groups": "auto", "max_rows": "auto"}),
    *({"max_groups": 1}, {"max_groups": 2, "max_rows": 3}, {"max_total": 5}, {"max_rows": 1}),
    *({"bounding": "norm"}, {"bounding": "norm", "max_groups": 3, "max_rows": 2}),
    *({"total_error": True}, {"total_error": True, "rows_per_unit_at_most": 8, "max_rows": 2}),
    *({"max_groups": 5, "max_rows": "auto", "total_error": True}, {"assume_rows": 7}),
]
DECLARED: list[dict[str, Any]] = [
    *({}, {}, {}),
    {"max_groups": "auto", "max_rows": "auto", "max_total": None},
    {"max_groups": 2, "max_rows": 3, "max_total": None},
    {"max_groups": None, "max_rows": None, "max_total": 4},
    {"neighbours": "replace"},
    {"neighbours": "replace", "max_groups": 2, "max_rows": "auto", "max_total": None},
    {"bounding": "norm"},
    {"bounding": "norm", "max_groups": 3, "max_rows": 2, "max_total": None},
    {"rows_per_unit_at_most": 6},
]
WEIGHTS = {"qty": "lineitem", "clerk": "orders"}
GAUSSIAN = {"rho", "noise", "within", "delta"}
"""What mostly needs a budget with delta."""
Asked = tuple[str, dict[str, Any], dict[str, Any], bool]


def _drawn() -> Iterator[Asked]:
    """A question, its options, how tables are declared, and whether the budget has a delta."""
    chance = Random("checks")
    questions = [entry for family in GOLDEN.values() for entry in family]
    for entry in chance.choices(questions, k=COUNT):
        sql, more = (entry, {}) if isinstance(entry, str) else entry
        kept = {name: more[name] for name in ("params", "keys", "weights", "weight") if name in more}
        options = {**chance.choice(AMOUNTS), **chance.choice(LIMITS), **kept}
        column = chance.choice([*WEIGHTS, None, None])
        if column and f"FROM {WEIGHTS[column]}" in sql:
            options["weight"] = column
        how = chance.choice(DECLARED)
        if "auto" in [*options.values(), *how.values()] and options.get("epsilon") in (1, "1/3", 2):
            options["epsilon"] = 400
        yield sql, options, how, chance.random() < (0.95 if GAUSSIAN & options.keys() else 0.4)


DRAWN = list(_drawn())


def declared(how: dict[str, Any]) -> dict[str, Any]:
    return {
        name: dataclasses.replace(table, **how) if isinstance(table, PrivateTable) and how else table
        for name, table in tables().items()
    }


def _said(asked: Asked) -> str:
    """What is recorded of one question."""
    sql, options, how, delta = asked
    head = f"-- {json.dumps([options, how, delta], default=str)}\n{sql}"
    try:
        tables_of = declared(how)
    except hb.HubbubError as error:
        return f"{head}\n{type(error).__name__}: {error}"
    budget = hb.Budget(10**6, **(DELTA if delta else {}))
    with warnings.catch_warnings(), plain.only(plain=True):
        warnings.simplefilter("ignore", UserWarning)
        with hb.Session(tables_of, budget=budget, ledger=None, _bits=SeededBits(sql)) as session:
            try:
                check = session.check(sql, **options)
                told = [repr(check), str(check)]
                release = session.sql(sql, **options)
            except hb.HubbubError as error:
                return f"{head}\n{type(error).__name__}: {error}"
            receipt = session.receipt(release.charge_id) if release.charge_id else {}
            told += [json.dumps(receipt.get(name), sort_keys=True) for name in ("charged", "plans", "measurements")]
            # Rows of public tables alone come in no order of their own.
            told += sorted(repr(rounded(row)) for row in release.rows())[:3]
            told += sorted(repr(rounded(tuple(row.values()))) for row in release.intervals().to_pylist())[:3]
            told += [str(note) for note in release.text.notes]
    return "\n".join([head, *told])


CHECKS = Kept("checks", lambda at: _said(DRAWN[at]), COUNT)


@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_said_before_and_after_a_charge_is_as_recorded(part: int) -> None:
    for at in range(part, COUNT, PARTS):
        CHECKS.check(at)


def test_the_recordings_hold_refusals_and_answers_of_every_option() -> None:
    answered = [asked for asked, text in zip(DRAWN, CHECKS.all(), strict=True) if "Error: " not in text]
    assert len(answered) > COUNT // 2
    for name in ("max_groups", "max_rows", "max_total", "bounding", "total_error", "weight", "noise", "rho", "within"):
        assert any(name in options for _, options, _, _ in answered), name
    for name in ("max_groups", "max_total", "neighbours", "bounding"):
        assert any(name in how for _, _, how, _ in answered), name
