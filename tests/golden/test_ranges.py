"""What one person can move an aggregate by, or why it has no bound, over declarations and arguments, as recorded.

Each case is a declaration of every column, drawn by a fixed seed as in `golden.test_keys`, and an aggregate of an
expression, under conditions. A recording holds the noise that is drawn, with how far the answer is forecast to
be off, or the refusal with what would be done about it. `HUBBUB_GOLDEN=write` writes them anew.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import hubbub as hb
from golden.kept import Kept
from golden.test_keys import DECLARED, ROWS, WHERES, Declared, error_of

WORLDS, EACH = 30, 16
TERMS = [
    *("n", "x", "b", "d", "s", "n + x", "n - x", "n * x", "n / x", "x / n", "n // 3", "n % 4", "-n", "ABS(n)", "n * n"),
    *("LN(x)", "LN(n)", "LOG10(x + 1)", "LOG10(n * n)", "SQRT(x)", "SQRT(n - 3)", "EXP(x)", "EXP(n)", "POWER(x, 2)"),
    *("POWER(n, 0.5)", "POWER(x, -1)", "1 / x", "1 / (n + 1)", "1 / (1 + x * x)", "SIGN(n)", "FLOOR(x)", "CEIL(x)"),
    *("ROUND(x, 1)", "ROUND(n, -1)", "LEAST(n, 5)", "GREATEST(x, 1)", "LEAST(GREATEST(x, 0), 2)", "COALESCE(n, 0)"),
    *("COALESCE(x, 7)", "NULLIF(n, 0)", "CASE WHEN b THEN n ELSE 0 END", "CASE WHEN n > 2 THEN x END", "IF(b, n, x)"),
    *("CASE WHEN b THEN 1 ELSE 0 END", "LENGTH(s)", "CAST(s AS INTEGER)", "CAST(x AS INTEGER)", "CAST(n AS DOUBLE)"),
    *(
        "EXTRACT(year FROM d)",
        "EXTRACT(hour FROM t)",
        "DATE_DIFF('day', d, DATE '2024-03-01')",
        "EXTRACT(epoch FROM t)",
    ),
    *("DATE_DIFF('hour', t, TIMESTAMP '2024-03-01')", "n + 1000000", "n * 1000000000000", "x * 0", "n - n"),
    *("LN(x / n)", "LN(1 / (x + 1))", "1 / LN(n)", "CASE WHEN n BETWEEN 1 AND 3 THEN n END", "x * 1e300", "x * 1e-300"),
]
AGGREGATES = [
    *("SUM({})", "SUM({})", "AVG({})", "AVG({})", "COUNT({})", "VAR_POP({})", "STDDEV({})", "MEDIAN({})", "MAX({})"),
    *("QUANTILE_CONT({}, 0.9)", "COUNT(DISTINCT {})", "GEOMEAN({})", "COVAR_POP({}, x)", "CORR(n, {})", "MODE({})"),
    *("REGR_SLOPE({}, n)", "SUM({}) / COUNT(*)", "SUM({}) FILTER (WHERE b)", "MIN({})"),
]
COMPUTED = [
    "SELECT SUM(k) FROM (SELECT id, COUNT(*) AS k FROM v GROUP BY id)",
    "SELECT AVG(LN(k)) FROM (SELECT id, COUNT(*) AS k FROM v GROUP BY id)",
    "SELECT SUM(k * 2 + 1) FROM (SELECT id, COUNT(n) AS k FROM v GROUP BY id)",
    "SELECT SUM(m) FROM (SELECT id, SUM(n) AS m FROM v GROUP BY id)",
    "SELECT AVG(m) FROM (SELECT id, AVG(x) AS m FROM v GROUP BY id)",
    "SELECT SUM(1 / m) FROM (SELECT id, MAX(n) AS m FROM v GROUP BY id)",
    "SELECT AVG(m) FROM (SELECT n * x AS m FROM v WHERE n > 1)",
    "SELECT SUM(r) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY id ORDER BY n) AS r FROM v)",
    "SELECT SUM(n - p) FROM (SELECT n, LAG(n) OVER (PARTITION BY id ORDER BY t) AS p FROM v)",
]
LIMITS: list[dict[str, Any]] = [*[{"max_total": 3}, {"max_total": 2, "max_groups": 1, "max_rows": 2}] * 3, {}]
World = tuple[dict[str, Declared], dict[str, Any], list[str]]


def _drawn() -> Iterator[World]:
    """How the table is declared, its limits, and the questions that it is asked."""
    chance = Random("ranges")
    for _ in range(WORLDS):
        drawn = {name: chance.choice(some) for name, some in DECLARED.items()}
        limits, asked = chance.choice(LIMITS), list[str]()
        for _ in range(EACH):
            if chance.random() < (0.15 if limits else 0.6):
                asked.append(chance.choice(COMPUTED))
                continue
            where = chance.choice(WHERES)
            term = chance.choice(AGGREGATES).format(chance.choice(TERMS))
            asked.append(f"SELECT {term} FROM v" + (f" WHERE {where}" if where else ""))
        yield {name: made for name, made in drawn.items() if made is not None}, limits, asked


DRAWN = list(_drawn())


def _said(world: World) -> str:
    """What is recorded of one table."""
    makes, limits, questions = world
    try:
        declared = {name: make() for name, make in makes.items()}
        table = hb.table(ROWS, unit="id", columns=declared, **limits)
        told = [", ".join([*(f"{name}: {what!r}" for name, what in declared.items()), repr(limits)])]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            session = hb.Session({"v": table}, budget=hb.Budget(10**9), ledger=None)
    except hb.HubbubError as error:
        return error_of(error)
    with session:
        for sql in questions:
            told.append(sql)
            try:
                check = session.check(sql, epsilon=1)
            except hb.HubbubError as error:
                told.append(f"    {error_of(error)}")
                continue
            off = [None if c.plus_minus is None else f"{c.plus_minus:.6g}" for c in check.columns]
            told.append(f"    {off} {[str(note) for note in check.notes]} {check.mechanism}")
    return "\n".join(told)


RANGES = Kept("ranges", lambda at: _said(DRAWN[at]), WORLDS)


@pytest.mark.parametrize("at", range(WORLDS))
def test_the_ranges_of_arguments_are_as_recorded(at: int) -> None:
    RANGES.check(at)


def test_the_recordings_hold_bounds_and_refusals() -> None:
    told = "\n".join(RANGES.all())
    for text in ("falls without end", "divides by", "cannot tell how small or large", "no limit is declared"):
        assert text in told, text
    answers = [line for line in told.splitlines() if line.startswith("    [")]
    assert len(answers) > WORLDS * EACH // 4
