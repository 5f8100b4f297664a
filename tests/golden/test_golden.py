"""The golden list against an independent oracle: plain DuckDB on the same tables and the same text."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import hubbub as hb
from golden.queries import GOLDEN, QUERIES
from golden.shop import FRAMES, tables
from people import HUGE, session


@pytest.fixture(scope="module")
def shop() -> Iterator[hb.Session]:
    with session(epsilon=10**6 * HUGE, **tables()) as opened:
        yield opened


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        for name, frame in FRAMES.items():
            con.register(name, frame)
        yield con


def test_the_list_is_as_long_as_it_has_to_be() -> None:
    assert len(QUERIES) >= 150
    assert len({sql for sql, _ in QUERIES}) == len(QUERIES)
    assert len(GOLDEN) >= 25


def _cell(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, list | tuple):
        return [_cell(v) for v in value]
    if hasattr(value, "hour") or hasattr(value, "year"):
        return str(value).removesuffix(" 00:00:00")
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    return float(value) if not isinstance(value, str) else value


def _near(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_near(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-4, abs_tol=tolerance)
    return bool(a == b)


def _order(row: list[Any]) -> str:
    return repr([round(v, 1) + 0.0 if isinstance(v, float) else v for v in row])


@pytest.mark.parametrize(("sql", "more"), QUERIES, ids=[sql[:60] for sql, _ in QUERIES])
def test_without_noise_the_answer_is_the_plain_engine_s(
    shop: hb.Session, plain: duckdb.DuckDBPyConnection, sql: str, more: dict[str, Any]
) -> None:
    """Tolerance: 1e-4 of the value (sums are on a grid of 2^22 steps), or what the query says for spreads and ranks."""
    options = {name: more[name] for name in ("params", "keys", "weights", "weight") if name in more}
    found = [list(map(_cell, row)) for row in shop.sql(sql, epsilon=HUGE, **options).rows()]
    text, params = more.get("plain", sql), more.get("params")
    asked = plain.execute(text, params) if params and "plain" not in more else plain.execute(text)
    expected = [list(map(_cell, row)) for row in asked.fetchall()]
    if "ORDER BY" not in text.rsplit(")", 1)[-1]:
        found, expected = sorted(found, key=_order), sorted(expected, key=_order)
    assert len(found) == len(expected), (found, expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs, strict=True):
            assert _near(a, b, more.get("tolerance", 1e-3)), (found, expected)
