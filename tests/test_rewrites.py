"""What a refusal says to write instead, written so, is answered: the same columns, for the parts of SQL one by one.

`rewrites.txt` has it: the function that refuses, what was asked (-), and the same with the part that the refusal names
(+). Where that is only one place in the text (a name that is misspelt), the remedy is the whole question.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

import hubbub as hb
from golden.shop import ORDERS, tables
from hubbub.errors import HubbubError
from hubbub.remedies import Attempt, Rewrite
from people import session

MOMENTS = ORDERS.set_column(
    ORDERS.column_names.index("moment"), "moment", ORDERS["moment"].cast(pa.timestamp("us", "UTC"))
)
LIST = Path(__file__).parent / "rewrites.txt"


def _listed() -> list[tuple[str, str, str]]:
    blocks = (block.split("\n") for block in LIST.read_text("utf-8").strip().split("\n\n"))
    return [(site, asked[2:], instead[2:]) for site, asked, instead in blocks]


REWRITTEN = _listed()

WHOLE = {
    "sql/bind/projection.py:_item",
    "sql/bind/query.py:_tables",
    "sql/bind/scope.py:_unknown",
    "sql/bind/scope.py:find",
}
"""Where the remedy is the whole question: nothing is left to fill in."""
GROUPED_OTHERWISE = {
    "sql/bind/aggregate.py:_above",  # a column beside an aggregate: it is a key, which the question forgot
    "sql/bind/group_by.py:group_term",  # GROUP BY ALL
    "sql/bind/groups.py:read_groups",
    "sql/bind/select.py:select",  # public rows on the left are answered row by row: group by their key
    "tables/aggregates/mode.py:values_of",
    "tables/aggregates/top_place.py:made",
    "tables/aggregates/top_place.py:places_asked",  # the most frequent, one in each row
}
"""Where what is written instead is grouped otherwise, and the refusal says so."""
RAISED_BY: dict[str, str | tuple[str, ...]] = {
    "sql/bind/context.py:too_many_names": ("context.py:renamed", "joins.py:_item"),
    "sql/bind/expression.py:_unsupported": ("expression.py:_function", "expression.py:_read"),
    "sql/bind/from_.py:_one_column": ("from_.py:_exists", "from_.py:_in_outer", "from_.py:_among"),
    "sql/bind/group_by.py:same_without_distinct": (
        "aggregate.py:_read_aggregate",
        "per_unit.py:_inner",
        "window.py:_arguments",
    ),
    "sql/bind/joins.py:_no_owner": "joins.py:_all_inner",
    "sql/bind/joins.py:_unseen": "joins.py:_one_by_one",
    "sql/bind/projection.py:_star_refused": "projection.py:_item",
    "sql/bind/query.py:_no_table": "query.py:_statement",
    "sql/bind/query.py:_syntax_error": "query.py:_one_statement",
    "sql/bind/scope.py:_of_several": "scope.py:find",
    "sql/bind/scope.py:_unknown": "scope.py:find",
    "sql/bind/window.py:_unsupported": "window.py:_window",
    "tables/aggregates/top_k.py:made": "aggregate.py:_read_aggregate",
    "tables/aggregates/top_place.py:made": "aggregate.py:_read_aggregate",
}
"""Who raises what another function makes."""


@pytest.fixture(scope="module")
def shop() -> Iterator[hb.Session]:
    limits: dict[str, Any] = {"max_groups": 40, "max_rows": 40, "max_total": 40}
    span = hb.between("1995-01-01", "1996-12-31")
    instants = hb.table(MOMENTS, unit="c_id", columns={"status": hb.one_of("F", "O", "P"), "moment": span}, **limits)
    bands = hb.table(ORDERS, unit="c_id", columns={"total": hb.edges(0, 50, 128)}, **limits)
    rome = {"moment": hb.between("1995-01-01", "1996-12-31", tz="Europe/Rome"), "sent": span}
    clocks = hb.table(MOMENTS.append_column("sent", MOMENTS["moment"]), unit="c_id", columns=rome, **limits)
    with session(**tables(), instants=instants, clocks=clocks, bands=bands) as opened:
        yield opened


@pytest.mark.parametrize(("site", "asked", "instead"), REWRITTEN, ids=[f"{s} {a[:40]}" for s, a, _ in REWRITTEN])
def test_what_is_written_instead_is_answered(shop: hb.Session, site: str, asked: str, instead: str) -> None:
    options: dict[str, Any] = {"epsilon": 1000, "weight": "clerk" if "weighted" in site else None}
    with pytest.raises(HubbubError) as caught:
        shop.sql(asked, **options)
    frames = [f"{frame.path}:{frame.name}" for frame in caught.traceback if "src/hubbub" in str(frame.path)]
    raised = next(frame for frame in reversed(frames) if not frame.endswith(":refuse"))
    assert raised.endswith(RAISED_BY.get(site, site))
    remedy = caught.value.remedy
    assert isinstance(remedy, Rewrite)
    assert remedy.in_python() in str(caught.value)
    assert remedy.sql is not None or site not in WHOLE
    assert remedy.sql in (None, instead)
    attempt, _ = remedy.fill(sql=instead).apply(Attempt(asked, options), {})
    if "WEIGHTED" in instead:
        attempt = attempt.having(weight=None)
    answer = shop.sql(attempt.sql, **attempt.options)
    assert _names(asked) in (None, answer.columns)
    if site not in GROUPED_OTHERWISE and _keys(asked) is not None:
        assert _keys(instead) == _keys(asked)
        assert _keys(asked) != 0 or len(answer) == 1


def test_a_date_at_a_time_zone_is_its_midnight(shop: hb.Session) -> None:
    one, other = (
        shop.check(
            f"SELECT COUNT(*) AS n FROM instants WHERE moment > ({moment} AT TIME ZONE 'Europe/Rome')", epsilon=1
        )
        for moment in ("DATE '1995-07-01'", "TIMESTAMP '1995-07-01 00:00:00'")
    )
    assert one.epsilon == other.epsilon


def _names(sql: str) -> tuple[str, ...] | None:
    """The names that a question gives to its columns; None where it is not SQL that says."""
    try:
        names = sqlglot.parse_one(sql, read="duckdb").named_selects
    except (SqlglotError, AttributeError):
        return None
    return None if "*" in names else tuple(n if n not in names[:i] else f"{n}_2" for i, n in enumerate(names))


def _keys(sql: str) -> int | None:
    """By how many keys a SELECT groups; None where it is no such text, or has rows of its own."""
    try:
        tree = sqlglot.parse_one(sql, read="duckdb")
    except SqlglotError:
        return None
    if not isinstance(tree, exp.Select) or tree.args.get("distinct") or "APPROX_TOP_K" in sql:
        return None
    group = tree.args.get("group")
    return len(group.expressions) if group is not None else 0
