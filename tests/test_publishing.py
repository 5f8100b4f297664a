"""Synthetic tables, marginals and suggested bounds, by way of a session."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.session import Session
from hubbub.tables.declare import Between
from seeded import SeededBits

N = 3000


def people(**changes: Any) -> Any:
    age = np.arange(N) * 37 % 100
    sex = (np.arange(N) * 11 % 7) % 2
    frame = pa.table(
        {
            "id": np.arange(N) // 2,
            "age": age,
            "sex": [["m", "f"][i] for i in sex],
            "job": [f"j{(a // 20 + s) % 5}" for a, s in zip(age, sex, strict=True)],
        }
    )
    declared: dict[str, Any] = {
        "unit": "id",
        "max_groups": 1,
        "max_rows": 2,
        "columns": {
            "age": hb.edges(0, 18, 40, 65, 100),
            "sex": hb.one_of("m", "f"),
            "job": hb.one_of(*[f"j{i}" for i in range(5)]),
        },
    }
    return hb.table(frame, **(declared | changes))


@pytest.fixture
def opened() -> Iterator[Session]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with Session({"t": people()}, budget=hb.Budget(20, 1e-6), ledger=None, _bits=SeededBits(7)) as session:
            yield session


def test_a_synthetic_table_has_the_marginals_is_charged_once_and_then_free(opened: Session) -> None:
    planned = opened.plan_synthesis("t", epsilon=3)
    assert not opened.history()
    found = opened.synthesize("t", epsilon=3)
    assert found.charged
    assert found.cost == 3
    assert found.to_arrow().column_names == ["age", "sex", "job"]
    assert abs(len(found) - N) < N / 5
    share = [rows.count("f") / len(rows) for rows in (found.to_dict()["sex"], people().source["sex"].to_pylist())]
    assert share[0] == pytest.approx(share[1], abs=0.1)
    assert planned.method
    again = opened.synthesize("t", epsilon=3)
    assert not again.charged
    assert again.cost == 0
    (entry,) = [e for e in opened.history() if e.kind == "question"]
    assert entry.sql == "synthetic table of t"


def test_a_constraint_is_never_violated(opened: Session) -> None:
    found = opened.synthesize("t", epsilon=3, columns=["age", "sex"], constraints=["age < 18 implies sex = m"])
    rows = found.to_dict()
    assert all(sex == "m" for age, sex in zip(rows["age"], rows["sex"], strict=True) if age is not None and age < 18)


def test_marginals_fit_together_and_have_intervals(opened: Session) -> None:
    found = opened.marginals("t", [("sex", "job"), ("age",)], epsilon=5)
    assert found.charged
    of_sex, of_both = found.table("sex"), found.table("sex", "job")
    counts = of_sex["count"].to_pylist()
    both = np.array(of_both["count"].to_pylist()).reshape(2, 5)
    assert both.sum(axis=1) == pytest.approx(counts)
    truth = people().source["sex"].to_pylist().count("m")
    low, high = of_sex["count_low"][0].as_py(), of_sex["count_high"][0].as_py()
    assert low - 50 <= truth <= high + 50
    assert not opened.marginals("t", [("sex", "job"), ("age",)], epsilon=5).charged


def test_synthesis_needs_a_delta_and_declared_columns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        pure = Session({"t": people()}, budget=hb.Budget(5), ledger=None)
        bare = Session({"t": people(columns={})}, budget=hb.Budget(5, 1e-6), ledger=None)
    with pure, bare:
        with pytest.raises(hb.PolicyError, match="no delta"):
            pure.synthesize("t", epsilon=1)
        with pytest.raises(hb.PolicyError, match="declared"):
            bare.marginals("t", [("job",)], epsilon=1)
        with pytest.raises(hb.QueryError, match="no private table"):
            pure.synthesize("u", epsilon=1)
        assert not [*pure.history(), *bare.history()]


def test_bounds_are_suggested_from_noisy_counts_alone(opened: Session) -> None:
    found = opened.suggest_bounds("t", "age", epsilon=1)["age"]
    assert isinstance(found, Between)
    assert (found.low, found.high) == (0, 128)
    assert opened.suggest_bounds("t", epsilon=1) == {"max_total": 2}
    assert len(opened.history()) == 2


def test_a_failure_on_rows_is_charged_and_says_only_an_incident(
    opened: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> Any:
        raise ValueError("Ada, 36, lives here")

    monkeypatch.setattr("hubbub.synthesis.records.Schema.places", failing)
    with pytest.raises(hb.EngineError) as told:
        opened.synthesize("t", epsilon=3)
    assert "Ada" not in f"{told.value}{told.value.__cause__}{told.value.__context__}"
    assert [e.state for e in opened.history()] == ["failed"]
