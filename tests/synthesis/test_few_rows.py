"""Tables of no rows, of rows without a unit, of one row, and of undeclared values alone: none of them is an error.

That a table is empty, or is not, is something about people. So whatever `synthesize` and `marginals` raise after the
charge may depend on what was drawn alone, and the engine's error, which is not a draw, never comes.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.synthesis import synthetic
from hubbub.synthesis.domain import Domain
from hubbub.synthesis.planner import METHODS
from hubbub.synthesis.probe import undeclared
from seeded import SeededBits

pytestmark = pytest.mark.filterwarnings("ignore:ledger=None")

NOTHING: list[tuple[int | None, str | None, float | None]] = []
WORLDS = {
    "no rows": NOTHING,
    "no unit": [(None, "x", 1.0)] * 3,
    "one row": [(1, "x", 1.0)],
    "NULL alone": [(1, None, None)],
    "undeclared alone": [(1, "z", 2.0), (2, "z", 3.0)],
    "not finite": [(1, "x", float("nan")), (2, "y", float("inf"))],
}


def opened(world: str, *, unit: object = "id", neighbours: str = "add_remove") -> hb.Session:
    ids, letters, numbers = ([row[i] for row in WORLDS[world]] for i in range(3))
    frame = pa.table(
        {"id": pa.array(ids, pa.int64()), "a": pa.array(letters, pa.string()), "n": pa.array(numbers, pa.float64())}
    )
    limits = {} if unit is hb.EACH_ROW else {"max_total": 3}
    declared = hb.table(
        frame,
        unit=unit,
        neighbours=neighbours,
        columns={"a": hb.one_of("x", "y"), "n": hb.between(0, 10)},
        **limits,
    )
    session = hb.Session({"v": declared}, budget=hb.Budget(epsilon=3, delta="1e-6"), ledger=None)
    session._bits = SeededBits(7)
    return session


def outcome(session: hb.Session, **asked: object) -> str:
    """What came of a synthetic table: an answer, or that hardly any row has declared values."""
    with session:
        try:
            session.synthesize("v", epsilon=1, **asked)
        except hb.QueryError as error:
            assert "hardly any row has declared values" in str(error)
            return "hardly any"
    return "answered"


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("method", METHODS)
def test_no_table_is_too_small_for_any_method(method: str, world: str) -> None:
    assert outcome(opened(world), method=method) in ("answered", "hardly any")


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("unit", ["id", hb.EACH_ROW], ids=["unit", "each row"])
def test_nor_under_any_relation_unit_or_public_number_of_rows(world: str, neighbours: str, unit: object) -> None:
    for rows in (None, 100_000):
        session = opened(world, unit=unit, neighbours=neighbours)
        assert outcome(session, rows=rows, method="independent") in ("answered", "hardly any")


@pytest.mark.parametrize("world", WORLDS)
def test_nor_with_constraints(world: str) -> None:
    assert outcome(opened(world), constraints=["a = x implies n < 5"], method="tree") in ("answered", "hardly any")


@pytest.mark.parametrize("world", WORLDS)
def test_nor_for_marginals(world: str) -> None:
    with opened(world) as session:
        assert session.marginals("v", [("a", "n"), ("a",)], epsilon=1, assume_rows=10**6).charged


def test_undeclared_rows_of_no_rows_are_none() -> None:
    assert undeclared(np.empty((0, 1), int), [], 2) == 0 == undeclared([[0], [-1]], [-1, -1], 2)


def test_more_rows_than_are_drawn_are_refused_before_the_charge() -> None:
    """They were taken as 50 million, without a word; a bought number beyond is said in the report."""
    with opened("one row") as session:
        for rows in (50_000_001, 2**31 - 1):
            with pytest.raises(hb.ParameterError, match=r"at most 50,000,000 rows. Ask without rows="):
                session.synthesize("v", epsilon=1, rows=rows)
            with pytest.raises(hb.ParameterError, match="at most 50,000,000 rows"):
                session.plan_synthesis("v", epsilon=1, rows=rows)
        assert not session.history()


def test_a_bought_number_of_rows_beyond_those_that_are_drawn_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "_MOST_ROWS", 100)
    domain = Domain(("a",), (2,))
    made = synthetic.synthesize(np.zeros((5_000, 1), np.int64), domain, rho=1, bits=SeededBits(1))
    assert len(made.codes) == 100
    assert any(re.match(r"Of about (4,9|5,0)\d\d rows 100 were drawn", line) for line in made.report.warnings)


def test_noise_alone_does_not_make_a_table_of_millions() -> None:
    """2 sd of the number of rows that is bought are a million, and no more, whatever a unit may add."""
    with opened("one row") as session:
        with pytest.raises(hb.ParameterError, match="declare rows="):
            session.synthesize("v", epsilon=1, rows_per_unit=10**5)
        assert not session.history()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epsilon", [10**5, 10**6, 10**9])
def test_few_rows_at_an_epsilon_whose_noise_has_no_variance_in_doubles(method: str, epsilon: int) -> None:
    """The noise of a whole count is 0 then, but once in ever: the rows come as they are."""
    declared = {"a": hb.one_of("x", "y", "z"), "b": hb.one_of("u", "v"), "n": hb.between(0, 9)}
    for rows in (1, 2, 3, 5, 7, 40):
        letters = [("x", "y")[row % 2] for row in range(rows)]
        frame = pa.table({"id": range(rows), "a": letters, "b": ["u"] * rows, "n": [3] * rows})
        table = hb.table(frame, unit="id", columns=declared, max_total=1)
        with hb.Session({"t": table}, budget=hb.Budget(epsilon=10**13, delta="0.1"), ledger=None) as session:
            made = session.synthesize("t", epsilon=epsilon, columns=["a", "b"], method=method)
            assert len(made.to_pandas()) == rows
            bought = session.marginals("t", [("a", "b"), ("a", "n")], epsilon=epsilon)
            assert round(sum(bought.table("a", "b")["count"].to_pylist())) == rows
