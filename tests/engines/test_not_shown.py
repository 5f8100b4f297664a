"""What an answer would show as another value than it is, is refused for nothing, however deep it stands in a type."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import hubbub as hb
from hubbub.engines.outer import OuterSide

VALUES = (
    *("'101'::BIT", "1::BIGNUM", "340282366920938463463374607431768211455::UHUGEINT", "1::VARIANT"),
    *("'10:00:00+02'::TIMETZ", "union_value(a := 1)"),
)
AROUND = ("{}", "[{}]", "{{'x': {}}}", "{{'x': [{{'y': {}}}]}}", "MAP {{1: {}}}", "MAP {{1: [[{}]]}}")
SHOWN = (
    *("{'my BIT': 1}", "{'a UNION': 1, 'bit': 2}", "[1]", "MAP {1: 'UHUGEINT'}", "'x'::ENUM('BIT', 'x')"),
    *("'10:00:00'::TIME", "TIMESTAMPTZ '2020-01-01'", "[1::HUGEINT]"),
)


@pytest.fixture(scope="module")
def outer() -> Iterator[OuterSide]:
    side = OuterSide({})
    yield side
    side.close()


@pytest.mark.parametrize("value", VALUES)
def test_a_value_that_no_answer_holds_is_refused_however_deep_it_stands(outer: OuterSide, value: str) -> None:
    """Within a structure the greatest UHUGEINT was -1, and a BIT its bytes; a time lost its zone."""
    for around in AROUND:
        with pytest.raises(hb.QueryError, match="which no answer holds; cast it to VARCHAR"):
            outer.describe(f"SELECT {around.format(value)} AS x", (), {}, answer=True)
    outer.describe(f"SELECT CAST({value} AS VARCHAR) AS x", (), {}, answer=True)


@pytest.mark.parametrize("value", SHOWN)
def test_what_is_only_named_like_such_a_type_is_shown(outer: OuterSide, value: str) -> None:
    outer.describe(f"SELECT {value} AS x", (), {}, answer=True)
