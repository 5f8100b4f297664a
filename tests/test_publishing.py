"""Synthetic tables, marginals and suggested bounds, by way of a session."""

from __future__ import annotations

import dataclasses
import datetime as dt
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.learning import LogisticRegression
from hubbub.mechanisms.recording import recording
from hubbub.session import Session
from hubbub.tables.columns import Between
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
        with pytest.raises(hb.QueryError, match="not a private table"):
            pure.synthesize("u", epsilon=1)
        assert not [*pure.history(), *bare.history()]


def test_bounds_are_suggested_from_noisy_counts_alone(opened: Session) -> None:
    found = opened.suggest_bounds("t", "age", epsilon=1)["age"]
    assert isinstance(found, Between)
    assert (found.low, found.high) == (0, 128)
    assert opened.suggest_bounds("t", epsilon=1) == {"max_total": 2}
    assert len(opened.history()) == 2


def test_two_that_ask_for_the_same_marginals_at_once_pay_once(opened: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    read, answers = opened._data.engine.rows, []

    def slowly(*asked: Any) -> Any:
        time.sleep(0.5)
        return read(*asked)

    monkeypatch.setattr(opened._data.engine, "rows", slowly)
    both = [threading.Thread(target=lambda: answers.append(opened.marginals("t", [("sex",)], epsilon=1))) for _ in "ab"]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert sorted(found.charged for found in answers) == [False, True]
    assert len(opened.history()) == 1
    assert answers[0].table("sex") == answers[1].table("sex")


def test_marginals_that_were_interrupted_before_the_draw_have_their_free_retry(
    opened: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(opened._data.engine, "rows", interrupted)
        with pytest.raises(KeyboardInterrupt):
            opened.marginals("t", [("sex",)], epsilon=1)
    assert [e.state for e in opened.history()] == ["withdrawn"]
    opened.marginals("t", [("sex",)], epsilon=1)
    assert [e.state for e in opened.history()] == ["shown"]


def test_whatever_the_reader_of_rows_raises_is_a_failure_and_counts(
    opened: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> Any:
        raise MemoryError("Ada, 36, lives here")

    monkeypatch.setattr(opened._data.engine, "rows", failing)
    with pytest.raises(hb.EngineError) as told:
        opened.marginals("t", [("sex",)], epsilon=1)
    assert "Ada" not in f"{told.value}{told.value.__cause__}{told.value.__context__}"
    assert [e.state for e in opened.history()] == ["failed"]
    assert opened.ledger.balance.failures("id")[opened.analyst] == (1, 3)


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


@pytest.mark.parametrize("way", ["marginals", "synthesize"])
def test_a_stored_answer_is_given_for_the_unit_that_it_protects_alone(way: str, tmp_path: Path) -> None:
    """Bounded by person, a household moves it by as many rows as it has people: that is another answer."""
    frame = pa.table({"id": np.arange(N), "home": np.arange(N) // 2, "sex": ["m", "f"] * (N // 2)})

    def asked(unit: Any, **columns: Any) -> bool:
        table = hb.table(
            frame, unit=unit, unit_space="s", max_groups=1, max_rows=2, columns={"sex": hb.one_of("m", "f"), **columns}
        )
        with Session({"t": table}, budget=hb.Budget(50, 1e-6), ledger=tmp_path / "l.db", analyst="ada") as s:
            if way == "marginals":
                return s.marginals("t", [("sex",)], epsilon=1, rows_per_unit=2).charged
            return s.synthesize("t", epsilon=3, columns=["sex"], rows=N, rows_per_unit=2).charged

    assert asked(hb.EACH_ROW)  # first: afterwards no row is charged to what was promised to people
    assert [asked("id"), asked("id"), asked("home"), asked("home")] == [True, False, True, False]
    assert not asked("id", home=hb.between(0, N))  # of a column that is not read, nothing is asked


@pytest.mark.parametrize("way", ["marginals", "synthesize"])
def test_rows_whose_unit_stands_elsewhere_are_charged_where_sql_charges_them(way: str) -> None:
    people = pa.table({"person": np.arange(N), "home": np.arange(N) % 50})
    visits = pa.table({"who": np.arange(N), "sex": ["m", "f"] * (N // 2)})
    tables = {
        "people": hb.table(people, unit="person", unit_space="s", max_groups=1, max_rows=1),
        "visits": hb.table(
            visits,
            unit="people.person",
            through={"who": "person"},
            max_groups=1,
            max_rows=1,
            columns={"sex": hb.one_of("m", "f")},
        ),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        opened = Session(tables, budget=hb.Budget(20, 1e-6), ledger=None)
    with opened as s:
        s.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
        if way == "marginals":
            s.marginals("visits", [("sex",)], epsilon=1, rows_per_unit=1)
        else:
            s.synthesize("visits", epsilon=3, columns=["sex"], rows=N)
        first, second = s.history()
        assert (first.space, first.dataset) == (second.space, second.dataset)


BROKEN = pa.table({"id": np.arange(2 * N), "sex": [" m", " f"] * N})


def broken(**changes: Any) -> Any:
    """Rows of which none has a declared value: there are blanks before them."""
    return hb.table(BROKEN, unit="id", max_groups=1, max_rows=1, columns={"sex": hb.one_of("m", "f", **changes)})


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("rows", [None, 2 * N])
def test_rows_without_declared_values_cost_a_fiftieth_and_nothing_else_is_drawn(rows: Any, neighbours: str) -> None:
    """One line of history for the charge, one for what came back; asked again it is said again, for nothing."""
    table = dataclasses.replace(broken(), neighbours=neighbours)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        opened = Session({"t": table}, budget=hb.Budget(20, 1e-6), ledger=None, _bits=SeededBits(3))
    with opened as s:
        whole = s.ledger.balance.question("id", 3).rho
        with (
            recording() as records,
            pytest.raises(hb.QueryError, match="hardly any row has declared values: check") as said,
        ):
            s.synthesize("t", epsilon=3, rows=rows)
        assert "A fiftieth of the amount was charged, and the rest came back." in str(said.value)
        assert len(records) == 1
        assert whole / 51 < s.ledger.balance.total("id").rho <= whole / 50
        assert [entry.kind for entry in s.history()] == ["question", "return"]
        assert s.history()[0].epsilon == 3
        with recording() as records, pytest.raises(hb.QueryError, match=r"hardly any row.* Nothing was charged\."):
            s.synthesize("t", epsilon=3, rows=rows)
        assert not records
        assert len(s.history()) == 2
        assert s.ledger.record.verify().sound


def test_the_whole_amount_is_asked_for_before_a_row_is_read() -> None:
    """Though a fiftieth would be enough for what comes of it: else the first step would tell what is there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        opened = Session({"t": broken()}, budget=hb.Budget(2, 1e-6), ledger=None)
    with opened as s, recording() as records:
        with pytest.raises(hb.BudgetError):
            s.synthesize("t", epsilon=3)
        assert not records
        assert not s.history()


def test_with_trim_the_same_rows_make_a_table() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        opened = Session({"t": broken(trim=True)}, budget=hb.Budget(20, 1e-6), ledger=None, _bits=SeededBits(3))
    with opened as s:
        made = s.synthesize("t", epsilon=3)
        assert abs(len(made) - 2 * N) < N / 5
        assert [entry.kind for entry in s.history()] == ["question"]


def test_days_that_are_declared_as_texts_are_days_of_rows_as_they_are_of_questions() -> None:
    frame = pa.table({"id": range(N), "day": [dt.date(2025, 1, 1 + i % 2) for i in range(N)], "k": ["a"] * N})
    declared = hb.table(
        frame,
        unit="id",
        max_groups=1,
        max_rows=1,
        columns={"day": hb.one_of("2025-01-01", "2025-01-02"), "k": hb.one_of("a", "b")},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        opened = Session({"t": declared}, budget=hb.Budget(20, 1e-6), ledger=None, _bits=SeededBits(3))
    with opened as s:
        counted = s.marginals("t", [["day"]], epsilon=3).table("day").to_pylist()
        assert [row["day"] for row in counted] == [dt.date(2025, 1, 1), dt.date(2025, 1, 2)]
        assert all(abs(row["count"] - N / 2) < N / 10 for row in counted)
        with pytest.raises(hb.PolicyError, match="'day' holds dates"):
            s.fit(LogisticRegression(target="k", features=["day"]), "t", epsilon=1)


SETTINGS: list[dict[str, Any]] = [
    {"rows": rows, "epsilon": epsilon, "method": method, "columns": columns}
    for columns in (["age", "sex"], ["age", "sex", "job"])
    for method in ("auto", "joint", "independent", "tree", "marginals", "adaptive", "uniform")
    for rows, epsilon in ((None, "1e-4"), (10, "1e-3"))
] + [
    {"epsilon": "1e-5"},
    {"constraints": ["age < 18 implies sex = m", "sex = m implies age >= 18", "sex = f implies age < 18"]},
    {"constraints": ["sex = m implies sex = f", "sex = f implies sex = m"]},
    {"constraints": ["sex = m implies sex = f", "sex = f implies sex = m"], "method": "joint", "columns": ["sex"]},
    {"constraints": ["age < 20 implies sex = m"]},
    {"constraints": ["nothing"]},
    {"rows": 0},
    {"rows": -1},
    {"rows": 10**5, "columns": ["sex"], "epsilon": "1e-4"},
    {"rows_per_unit": 2**31 - 1, "epsilon": "1e-9"},
    {"rows_per_unit": 0},
    {"epsilon": "1e-40"},
    {"epsilon": 10**6},
    {"method": "magic"},
    {"columns": []},
    {"columns": ["height"]},
    {"edges": {"age": [5]}},
    {"edges": {"age": [-1e308, 1e308]}},
    {"edges": {"height": [0, 1]}},
    {"thorough": "yes"},
]
SETS: list[dict[str, Any]] = [
    {"marginals": [("sex",)], "epsilon": epsilon, "rows_per_unit": rows, "weights": weights}
    for epsilon in ("1e-40", "1e-6", 1)
    for rows in (1, 2**31 - 1)
    for weights in (None, [0], [1e308], [-1])
] + [
    {"marginals": []},
    {"marginals": [()]},
    {"marginals": [("sex", "sex")]},
    {"marginals": [("age", "sex", "job")], "assume_rows": 1},
    {"marginals": [("sex",)], "edges": {"age": [5]}},
]
BOUNDS: list[Any] = [(), ("age",), ("sex",), ("height",), ("age", "age"), ("AGE", "age")]


def test_whatever_declarations_rule_out_is_refused_before_the_charge() -> None:
    """Of every setting: an answer, or a refusal that charged nothing; never an engine's failure."""
    asked: list[tuple[str, dict[str, Any], Any]] = [
        *(("synthesize", {"epsilon": "1/10"} | setting, ()) for setting in SETTINGS),
        *(("marginals", {"epsilon": "1/10"} | setting, ()) for setting in SETS),
        *(("suggest_bounds", {"epsilon": epsilon}, columns) for columns in BOUNDS for epsilon in ("1e-40", "1/100")),
    ]
    refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with Session({"t": people()}, budget=hb.Budget(10**7, 1e-6), ledger=None, _bits=SeededBits(3)) as session:
            for method, setting, columns in asked:
                before = len(session.history())
                try:
                    getattr(session, method)("t", *columns, **setting)
                except hb.EngineError as error:
                    raise AssertionError(f"{method} {columns} {setting} failed after its charge") from error
                except hb.HubbubError as error:
                    if "hardly any row" in str(error):  # said by the noisy first step, which is charged
                        continue
                    refused += 1
                    assert len(session.history()) == before, (method, columns, setting)
            assert "failed" not in {entry.state for entry in session.history()}
    assert refused > 20
