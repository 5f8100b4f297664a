"""No error shows what a frame holds that was passed where a name, a value or a question belongs."""

from __future__ import annotations

import ast
import importlib
import inspect
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.errors import HubbubError, what_was_given
from hubbub.learning import LogisticRegression

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
    "Csv": {},
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
    yield "a format", lambda: hb.Csv(formats={"day": given})
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


def _shows_rows(error: HubbubError) -> bool:
    said = f"{error!r} {error} {error.__cause__!r} {error.__context__ if error.__cause__ else ''}"
    return MARK in said or str(NUMBER) in said or f"{NUMBER:,}" in said


@pytest.mark.parametrize("what", GIVEN)
def test_a_frame_in_a_wrong_place_is_not_shown(what: str) -> None:
    """`hb.table(t, unit=t["id"])` and twenty other places printed the first rows."""
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
                    shown += [place] if _shows_rows(error) else []
                except (TypeError, AttributeError, ValueError):
                    pass  # of Python itself, which names arguments
    assert refused > 50
    assert shown == []


# What is computed with, apart from sessions: each takes arrays where arrays belong, and so frames where they do not.
LIBRARIES = "accounting attacks audit collect games learning local mechanisms noise queries synthesis".split()
CALLED: dict[str, dict[str, Any]] = {
    "accounting.ApproxDP": {"epsilon": 1, "delta": 0.1},
    "accounting.rho_of_epsilon": {"epsilon": 1, "delta": 0.1},
    "local.HybridMean": {"epsilon": 1, "lower": 0, "upper": 1},
    "local.KRR": {"epsilon": 1, "k": 4},
    "mechanisms.QuantileMechanism": {"epsilon": 1, "shares": [0.5]},
    "noise.laplace": {"scale": 1, "size": 2, "mode": "fast"},
    "noise.Grid": {"exponent": 1},
    "queries.Marginals": {"shape": (2, 2)},
    "queries.Points": {"values": 3},
    "synthesis.Edges": {"edges": (0, 1)},
    "synthesis.Categories": {},
    "attacks.uniqueness": {"table": TABLE, "columns": ["g"]},
    "attacks.least_squares_accuracy": {"n": 2, "m": 1, "sigma": 1},
    "synthesis.Constraint": {"columns": ("a",), "allowed": np.zeros((1, 1))},
    "learning.LinearRegression": {},
}


def _of_libraries(given: Any) -> Iterator[tuple[str, Callable[[], object]]]:
    for name, right in CALLED.items():
        room, _, word = name.partition(".")
        function = getattr(importlib.import_module(f"hubbub.{room}"), word, None)
        if function is None:
            continue
        for place, what in inspect.signature(function).parameters.items():
            if what.kind is what.VAR_POSITIONAL:
                yield name, partial(function, given)
            else:
                yield f"{name}({place}=)", partial(function, **{**right, place: given})


@pytest.mark.parametrize("what", [name for name in GIVEN if name != "a row"])
def test_a_library_shows_no_frame_either(what: str) -> None:
    """2,100 of 7,000 calls of accounting, noise, mechanisms, local and queries printed the rows."""
    refused, shown = 0, []
    for place, call in _of_libraries(GIVEN[what]):
        try:
            call()
        except HubbubError as error:
            refused += 1
            shown += [place] if _shows_rows(error) else []
        except (TypeError, AttributeError, ValueError, KeyError):
            pass
    assert refused > 8
    assert shown == []


@pytest.mark.filterwarnings("ignore:ledger=None")
@pytest.mark.parametrize("what", GIVEN)
def test_an_answer_and_a_model_show_no_frame_either(what: str) -> None:
    """`LogisticRegression(target=t["y"])` printed the model with the column in it, `level=` and `within=` the rows."""
    given, shown = GIVEN[what], []
    declared = hb.table(TABLE, unit="id", max_rows=1, max_groups=1, columns={"g": hb.one_of("a", "b")})
    with hb.Session({"v": declared}, budget=hb.Budget(10), ledger=None) as session:
        answer = session.sql(SQL, epsilon=1)
        calls: dict[str, Callable[[], object]] = {
            "level": lambda: answer.intervals(given),
            "rows": lambda: answer.text.rows(given),
            "reliable": lambda: answer.text.rows(reliable=given),
            "draws": lambda: answer.error.draws(given),
            "column": lambda: answer["n"].interval(given),
            "refine": lambda: answer.refine(given),
            "within": lambda: session.check(SQL, within=given),
            "plot": lambda: answer.plot(given),
        }
        for name in ("target", "features", "bins", "positive", "weight", "method"):
            model = LogisticRegression(**{"target": "g", name: given})
            calls[name] = partial(session.fit, model, "v", epsilon=1)
        for place, call in calls.items():
            with pytest.raises((HubbubError, TypeError, ValueError)) as refused:
                call()
            shown += [place] if isinstance(refused.value, HubbubError) and _shows_rows(refused.value) else []
    assert shown == []


def test_no_refusal_of_a_library_writes_what_was_given_by_itself() -> None:
    """Each is written by `what_was_given`: the repr of an argument may be that of a frame."""
    sources = Path(hb.__file__).parent
    bare = []
    for path in (p for room in [*LIBRARIES, "answer", "plots"] for p in sorted((sources / room).rglob("*.py"))):
        raised = [n.exc for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Raise)]
        calls = [
            c for c in raised if isinstance(c, ast.Call) and ast.unparse(c.func) in ("ParameterError", "QueryError")
        ]
        for part in (p for call in calls for p in ast.walk(call)):
            if isinstance(part, ast.FormattedValue) and part.conversion == ord("r"):
                plain = isinstance(part.value, ast.Name | ast.Attribute) and ast.unparse(part.value) != "self"
                bare += [f"{path.name}: {ast.unparse(part.value)}"] if plain else []
    assert bare == []


def test_plain_values_are_shown_as_they_were_typed() -> None:
    assert [what_was_given(v) for v in ("a", 3, None, True, 2.5)] == ["'a'", "3", "None", "True", "2.5"]
    assert [what_was_given(v) for v in (["a"], TABLE, np.zeros(2))] == ["a list", "a Table", "a ndarray"]
