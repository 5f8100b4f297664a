"""Which groups a key has, or why it has none, over declarations and terms of GROUP BY, as recorded.

Each case is a declaration of every column, drawn by a fixed seed, and a key, with the conditions and names that a
question may give it. A recording holds the groups that are answered, and what `check` counts of them, or the refusal
with what would be done about it. `HUBBUB_GOLDEN=write` writes them anew.
"""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from golden.kept import Kept
from seeded import SeededBits

WORLDS, EACH = 36, 16
DAY, HOUR = dt.date(2024, 2, 28), dt.datetime(2024, 2, 28, 23, 30)
ROWS = pa.table(
    {
        "id": [1, 1, 2, 3],
        "n": [1, 3, 7, None],
        "x": [0.25, 0.5, None, 3.0],
        "s": ["a", "b", None, "rest"],
        "d": pa.array([DAY, DAY + dt.timedelta(2), None, dt.date(1999, 12, 31)], pa.date32()),
        "t": pa.array([HOUR, HOUR + dt.timedelta(hours=1), None, HOUR], pa.timestamp("us")),
        "b": [True, False, None, True],
    }
)
Declared = Callable[[], Any]
World = tuple[dict[str, Declared], dict[str, Any], list[tuple[str, dict[str, Any]]]]
DECLARED: dict[str, list[Declared | None]] = {
    "n": [
        *(None, lambda: hb.between(0, 9), lambda: hb.between(-3, 3, nullable=False), lambda: hb.between(0, 5000)),
        *(lambda: hb.between(0.5, 4.5), lambda: hb.between(-7, 70_000), lambda: hb.between(0, 99_999)),
        *(lambda: hb.between(0, 100_000), lambda: hb.between(0, 100_001), lambda: hb.between(2**62, 2**62 + 3)),
        *(lambda: hb.one_of(3, None, 1), lambda: hb.one_of(1.0, 2.0), lambda: hb.one_of(1, 1.0, 2)),
        *(lambda: hb.one_of(1.5, 2), lambda: hb.one_of(2**63 - 1, -(2**63)), lambda: hb.edges(0, 5, 10)),
        *(lambda: hb.one_of(7, others=True), lambda: hb.between(3, "auto")),
    ],
    "x": [
        *(None, lambda: hb.between(0, 1), lambda: hb.between(0, 1, nullable=False), lambda: hb.between(-1000, 1000)),
        *(lambda: hb.between(0, 0.001), lambda: hb.one_of(0.5, 0.25, None), lambda: hb.one_of(1, 2)),
        *(lambda: hb.one_of(1e300, -0.5), lambda: hb.edges(0, 0.5, 1), lambda: hb.between(5, 12_345_678)),
        *(lambda: hb.one_of(1e18, 0.5), lambda: hb.one_of(1e19, 0.5)),
    ],
    "s": [
        *(None, lambda: hb.one_of("a", "b"), lambda: hb.one_of("a", None, other="rest"), lambda: hb.one_of("b", None)),
        *(lambda: hb.one_of("a", others=True), lambda: hb.one_of("2024-02-28", "7"), lambda: hb.one_of(1, 2)),
        lambda: hb.one_of("b", "a", other="more"),
    ],
    "d": [
        *(None, lambda: hb.between("2024-02-27", "2024-03-01"), lambda: hb.between(DAY, dt.date(2024, 3, 1))),
        *(
            lambda: hb.between("2024-02-27", "2024-03-01", nullable=False),
            lambda: hb.between("1900-01-01", "2199-12-31"),
        ),
        *(lambda: hb.between("0001-01-01", "9999-12-31"), lambda: hb.one_of("2024-02-28", "1999-12-31", None)),
        *(lambda: hb.one_of(DAY), lambda: hb.one_of("2024-02-28 05:00:00"), lambda: hb.one_of("28.2.2024")),
        lambda: hb.between("2024-02-27 10:00:00", "2024-03-01 09:00:00"),
    ],
    "t": [
        *(None, lambda: hb.between("2024-02-28", "2024-03-01"), lambda: hb.between(HOUR, dt.datetime(2024, 3, 1))),
        *(
            lambda: hb.between("2024-02-28", "2024-03-01", nullable=False),
            lambda: hb.between("1960-01-01", "2060-01-01"),
        ),
        *(lambda: hb.between("2024-03-30", "2024-04-01", tz="Europe/Rome"), lambda: hb.one_of(HOUR, None)),
        *(lambda: hb.one_of("2024-02-28", "2024-02-28 23:30:00"), lambda: hb.one_of(DAY)),
        lambda: hb.between("0001-01-01", "9999-12-31"),
    ],
    "b": [None, None, lambda: hb.one_of(True), lambda: hb.one_of(False, None, True), lambda: hb.one_of(1)],
}
LIMITS: list[dict[str, Any]] = [
    *[{"max_groups": 2, "max_rows": 2}] * 4,
    {"max_groups": 3, "max_rows": 1, "max_total": 2},
    {},
]
TERMS = [
    *("n", "x", "s", "d", "t", "b", "n + 1", "-n", "n * 2", "n * 7 + 3", "n % 3", "n / 2", "n // 2", "FLOOR(n / 10)"),
    *(
        "FLOOR(x)",
        "ROUND(x, 1)",
        "CEIL(x * 4)",
        "FLOOR(x / 0.25)",
        "ABS(n)",
        "SIGN(x)",
        "LEAST(n, 2)",
        "GREATEST(n, 5)",
    ),
    *("COALESCE(n, -1)", "COALESCE(s, 'none')", "NULLIF(n, 3)", "NULLIF(s, 'a')", "UPPER(s)", "LENGTH(s)", "s || '!'"),
    *("s IS NULL", "n > 2", "n IN (1, 2)", "s LIKE 'a%'", "NOT b", "b AND n > 1", "n BETWEEN 1 AND 3", "x > n"),
    *("EXTRACT(year FROM d)", "EXTRACT(month FROM d)", "EXTRACT(dow FROM d)", "EXTRACT(hour FROM t)"),
    *("DATE_TRUNC('month', d)", "DATE_TRUNC('week', d)", "DATE_TRUNC('year', t)", "DATE_TRUNC('hour', t)"),
    *("DATE_TRUNC('minute', t)", "CAST(t AS DATE)", "CAST(d AS TIMESTAMP)", "DATE_DIFF('day', d, DATE '2024-03-01')"),
    *(
        "d + INTERVAL 1 DAY",
        "d - INTERVAL 1 MONTH",
        "d > DATE '2024-02-28'",
        "CAST(n AS VARCHAR)",
        "CAST(s AS INTEGER)",
    ),
    *("CASE WHEN n > 2 THEN 'much' ELSE 'little' END", "CASE WHEN b THEN 1 WHEN n > 2 THEN 2.5 ELSE 1 END"),
    *("CASE WHEN n > 2 THEN n ELSE 0 END", "CASE s WHEN 'a' THEN 'b' ELSE s END", "CASE WHEN b THEN d END"),
    *(
        "CASE WHEN x > 0.3 THEN TRUE END",
        "CASE WHEN n > 1 THEN NULL ELSE 4 END",
        "IF(b, n, 2)",
        "n + CAST(b AS INTEGER)",
    ),
    *("CASE WHEN n > 2 THEN 9223372036854775807 ELSE -9223372036854775807 END", "n * 4611686018427387904"),
    *("CASE WHEN n > 2 THEN DATE '2024-01-01' ELSE DATE '2023-01-01' END", "CASE WHEN b THEN n ELSE LENGTH(s) END"),
]
NULLS = [
    *("COALESCE(n, -1)", "COALESCE(n, 2)", "COALESCE(d, DATE '2024-02-28')", "COALESCE(d, DATE '1990-01-01')"),
    *(
        "COALESCE(t, TIMESTAMP '2024-02-28 23:30:00')",
        "COALESCE(b, FALSE)",
        "COALESCE(s, 'a')",
        "n IS NULL",
        "d IS NULL",
    ),
    *(
        "EXTRACT(day FROM COALESCE(d, DATE '2024-03-05'))",
        "COALESCE(n % 2, 7)",
        "COALESCE(n, LENGTH(s))",
        "IF(n IS NULL, 1, 2)",
    ),
    *("DATE_TRUNC('month', COALESCE(d, DATE '1990-01-01'))", "NOT COALESCE(b, TRUE)", "COALESCE(NULLIF(n, 2), 4)"),
    *("CASE WHEN d IS NULL THEN 'none' ELSE 'some' END", "COALESCE(CAST(n AS VARCHAR), '-')", "COALESCE(x, 0.5)"),
]
COUNTED = [
    "SELECT k, COUNT(*) AS c FROM (SELECT id, COUNT(*) AS k FROM v GROUP BY id) GROUP BY k",
    "SELECT LEAST(k, 3) AS m, COUNT(*) AS c FROM (SELECT id, COUNT(n) AS k FROM v GROUP BY id) GROUP BY m",
    "SELECT k > 1, COUNT(*) AS c FROM (SELECT id, COUNT(*) AS k FROM v GROUP BY id) GROUP BY 1",
    "SELECT k * 7, COUNT(*) AS c FROM (SELECT id, COUNT(*) AS k FROM v GROUP BY id) GROUP BY 1",
    "SELECT k % 2, COUNT(*) AS c FROM (SELECT id, COUNT(*) AS k FROM v GROUP BY id) GROUP BY 1",
    "SELECT k + n, COUNT(*) AS c FROM (SELECT id, n, COUNT(*) AS k FROM v GROUP BY id, n) GROUP BY 1",
    "SELECT k + 1, COUNT(*) AS c FROM (SELECT id, COUNT(*) AS k FROM v GROUP BY id) GROUP BY 1",
    "SELECT m, COUNT(*) AS c FROM (SELECT id, MAX(n) AS m FROM v GROUP BY id) GROUP BY m",
    "SELECT m, COUNT(*) AS c FROM (SELECT id, SUM(n) AS m FROM v GROUP BY id) GROUP BY m",
    "SELECT m, COUNT(*) AS c FROM (SELECT id, MIN(s) AS m FROM v GROUP BY id) GROUP BY m",
    "SELECT m, COUNT(*) AS c FROM (SELECT id, MIN(d) AS m FROM v GROUP BY id) GROUP BY m",
    "SELECT FLOOR(m), COUNT(*) AS c FROM (SELECT id, AVG(x) AS m FROM v GROUP BY id) GROUP BY 1",
]
WHERES = [
    *("", "", "", "", "n > 2", "n BETWEEN 1 AND 3", "n = 77", "d >= DATE '2024-02-28'", "d < DATE '1800-01-01'"),
    *("x > 0.5", "s = 'a'", "s IN ('a', 'c')", "n IS NOT NULL", "t >= TIMESTAMP '2024-02-28 20:00:00'", "n <> 1", "b"),
]
KEYS: dict[str, list[Any]] = {
    "n": [1, 2, 2**40],
    "s": ["a", "zz", None],
    "x": [0.5],
    "d": ["2024-02-28"],
    "p": ["a", 1],
}


def _drawn(seed: str, worlds: int, terms: list[str]) -> Iterator[World]:
    """How the table is declared, and the questions that it is asked, with their options."""
    chance = Random(seed)
    for _ in range(worlds):
        drawn = {name: chance.choice(some) for name, some in DECLARED.items()}
        limits, asked = chance.choice(LIMITS if terms is TERMS else LIMITS[:5]), list[tuple[str, dict[str, Any]]]()
        for _ in range(EACH):
            if terms is TERMS and chance.random() < (0.15 if limits else 0.8):
                asked.append((chance.choice(COUNTED), {}))
                continue
            term, where, name = chance.choice(terms), chance.choice(WHERES), chance.choice(["", "", " AS p"])
            called = "p" if name else term if term in DECLARED else ""
            keys = {"keys": {called: KEYS[called]}} if called in KEYS and chance.random() < 0.15 else {}
            where = f" WHERE {where}" if where else ""
            asked.append((f"SELECT {term}{name}, COUNT(*) AS c FROM v{where} GROUP BY 1", keys))
        declared = {name: made for name, made in drawn.items() if made is not None}
        yield declared, limits, asked


DRAWN = [*_drawn("keys", WORLDS - 8, TERMS), *_drawn("nulls", 8, NULLS)]


def _short(groups: list[Any]) -> str:
    shown = list(map(repr, groups))
    return ", ".join(shown if len(shown) <= 30 else [*shown[:12], f"... {len(shown)} ...", *shown[-12:]])


def error_of(error: hb.HubbubError) -> str:
    ways = [way.in_python() for way in getattr(error, "remedies", ())]
    return f"{type(error).__name__}: {error}" + "".join(f"\n    way: {way}" for way in ways)


def _said(world: World) -> str:
    """What is recorded of one table."""
    makes, limits, questions = world
    try:
        declared = {name: make() for name, make in makes.items()}
        table = hb.table(ROWS, unit="id", columns=declared, **limits)
    except hb.HubbubError as error:
        return error_of(error)
    told = [", ".join([*(f"{name}: {what!r}" for name, what in declared.items()), repr(limits)])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        budget = hb.Budget(10**9)
        try:
            session = hb.Session({"v": table}, budget=budget, ledger=None, _bits=SeededBits("keys"))
        except hb.HubbubError as error:
            return "\n".join([*told, error_of(error)])
        with session:
            for sql, options in questions:
                told.append(f"{sql}  {options or ''}".rstrip())
                try:
                    told.append(f"    {_short([row[0] for row in session.sql(sql, epsilon=1, **options).rows()])}")
                except hb.HubbubError as error:
                    told.append(f"    {error_of(error)}")
    return "\n".join(told)


GROUPS = Kept("keys", lambda at: _said(DRAWN[at]), WORLDS)


@pytest.mark.parametrize("at", range(WORLDS))
def test_the_groups_of_keys_are_as_recorded(at: int) -> None:
    GROUPS.check(at)


def test_the_recordings_hold_groups_and_refusals_of_every_kind() -> None:
    told = "\n".join(GROUPS.all())
    assert told.count("\n    ") > WORLDS * EACH // 2
    for text in (
        "possible values are declared",
        "not listed",
        "out of range",
        "limit is declared",
        "...",
        "is declared",
    ):
        assert text in told, text
    assert sum("Error" not in line for line in told.splitlines() if line.startswith("    ")) > WORLDS * EACH // 3
