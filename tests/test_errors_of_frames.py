"""No error shows what a frame holds that was passed where a name, a value or a question belongs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.errors import HubbubError, what_was_given

MARK, NUMBER = "Ada Lovelace", 7316522417
HELD = {"id": [MARK, MARK + "2"], "x": [NUMBER, NUMBER + 1], "g": [MARK, "b"]}
TABLE, FRAME = pa.table(HELD), pd.DataFrame(HELD)
GIVEN: dict[str, Any] = {
    "an Arrow table": TABLE,
    "an Arrow column": TABLE.column("g"),
    "a frame": FRAME,
    "a series of texts": FRAME["g"],
    "a series of numbers": FRAME["x"],
    "a row": FRAME.iloc[0],
    "an array": FRAME.to_numpy(),
    "an array of numbers": np.array(HELD["x"]),
    "rows": FRAME.to_dict("records"),
}
SQL = "SELECT g, COUNT(*) AS n FROM v GROUP BY g"


# What each is called with where all is right: a frame then takes the place of one argument after the other.
RIGHT: dict[str, dict[str, Any]] = {
    "table": {"source": TABLE, "unit": "id", "max_rows": 1, "max_groups": 1},
    "public": {"source": TABLE},
    "between": {"low": 0, "high": 1},
    "one_of": {},
    "edges": {},
    "Budget": {"epsilon": 1},
    "Session": {"tables": {}, "budget": hb.Budget(1), "ledger": None},
}
ALSO = ("col", "lit", "text", "count", "mean", "sum", "when", "quantile", "connect", "read_policy")


def _calls(session: hb.Session, given: Any) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each function and method that people call, with the frame in each of its places."""
    for name, right in RIGHT.items():
        function = getattr(hb, name)
        for place in inspect.signature(function).parameters:
            yield f"{name}({place}=)", lambda f=function, p=place, r=right: f(**{**r, p: given})
    yield "one_of()", lambda: hb.one_of(given)
    yield "one_of(1, )", lambda: hb.one_of("a", given)
    yield "one_of(other=)", lambda: hb.one_of("a", other=given)
    yield "one_of(others=)", lambda: hb.one_of("a", others=given)
    yield "one_of(trim=)", lambda: hb.one_of("a", trim=given)
    yield "edges()", lambda: hb.edges(given)
    yield "edges(0, )", lambda: hb.edges(0, given)
    yield "up to", lambda: hb.between(given, "auto")
    yield "of a zone", lambda: hb.between("2020-01-01", "2021-01-01", tz=given)
    yield "declared", lambda: hb.table(TABLE, unit="id", columns={"g": given})
    yield "types", lambda: hb.table(TABLE, unit="id", types={"g": given})
    for name in ALSO:
        function = getattr(hb, name, None)
        if function is not None:
            yield name, lambda f=function: f(given)
            yield f"{name}, second", lambda f=function: f(1, given)
    for name in dir(session):
        method = getattr(session, name)
        if not name.startswith("_") and callable(method) and name not in ("close", "as_analyst"):
            yield name, lambda f=method: f(given)
            yield f"{name}, epsilon", lambda f=method: f(given, epsilon="0.1")
            yield f"{name}, second", lambda f=method: f("v", given, epsilon="0.1")
            for place in inspect.signature(hb.Session.sql).parameters:
                yield f"{name}({place}=)", lambda f=method, p=place: f(SQL, **{"epsilon": "0.1", p: given})
            yield f"{name}, params", lambda f=method: f(f"{SQL}, $a", epsilon="0.1", params={"a": given})
    rows = session.table("v")
    for name in dir(rows):
        method = getattr(rows, name)
        if not name.startswith("_") and callable(method):
            yield f"rows.{name}", lambda f=method: f(given)
            yield f"rows.{name}, second", lambda f=method: f("g", given)


@pytest.mark.parametrize("what", GIVEN)
def test_a_frame_in_a_wrong_place_is_not_shown(what: str) -> None:
    """`hb.table(t, unit=t["id"])` and five other places printed the first rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        declared = hb.table(TABLE, unit="id", max_rows=1, max_groups=1, columns={"g": hb.one_of("a", "b")})
        refused, shown = 0, []
        with hb.Session({"v": declared}, budget=hb.Budget(10), ledger=None) as session:
            for place, call in _calls(session, GIVEN[what]):
                try:
                    call()
                except HubbubError as error:
                    refused += 1
                    said = f"{error!r} {error} {error.__cause__!r} {error.__context__ if error.__cause__ else ''}"
                    shown += [place] if MARK in said or str(NUMBER) in said or f"{NUMBER:,}" in said else []
                except (TypeError, AttributeError, ValueError):
                    pass  # of Python itself, which names arguments
    assert refused > 50
    assert shown == []


def test_plain_values_are_shown_as_they_were_typed() -> None:
    assert [what_was_given(v) for v in ("a", 3, None, True, 2.5)] == ["'a'", "3", "None", "True", "2.5"]
    assert [what_was_given(v) for v in (["a"], TABLE, np.zeros(2))] == ["a list", "a Table", "a ndarray"]
