"""The forms that ownership refuses, each before anything is charged, with its words and its caret."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import hubbub as hb
from golden.refused import REFUSED
from golden.shop import tables
from people import session


@pytest.fixture(scope="module")
def shop() -> Iterator[hb.Session]:
    with session(epsilon=10, **tables()) as opened:
        yield opened


@pytest.mark.parametrize(("sql", "says", "under"), REFUSED, ids=[sql[:60] for sql, _, _ in REFUSED])
def test_what_would_break_ownership_is_refused(shop: hb.Session, sql: str, says: str, under: str | None) -> None:
    with pytest.raises((hb.QueryError, hb.PolicyError)) as caught:
        shop.sql(sql, epsilon=1)
    message = str(caught.value)
    assert says in message
    if under is not None:
        line, carets = message.splitlines()[-2:]
        start = carets.index("^")
        assert line[start : start + carets.count("^")] == under
    assert shop.history() == []
