"""Models of rows that stay in Postgres or Spark: the whole numbers are those of rows in this process, charged alike."""

from __future__ import annotations

import itertools
import math
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from engines.places import Postgres, Spark
from hubbub.accounting import rho_of_epsilon
from hubbub.engines.duckdb.dialect import DUCKDB
from hubbub.engines.postgres.dialect import Postgres as PostgresDialect
from hubbub.errors import PolicyError
from hubbub.learning import PCA, AdditiveModel, CategoricalNB, GaussianNB, LinearRegression, LogisticRegression
from hubbub.learning.exact import Coded
from hubbub.learning.features import ONE, Categories, Design, Numbers, Scoring
from hubbub.learning.model import Problem
from hubbub.learning.pushed import Pushed, coding
from hubbub.mechanisms.calibration import Spend
from hubbub.session import Session
from hubbub.session.data import OpenTables
from hubbub.tables.kinds import Kind
from seeded import SeededBits

COLUMNS = {
    "age": hb.between(0, 100, nullable=False),
    "score": hb.between(-1, 1),
    "job": hb.one_of("a", "b", "it's", None),
    "room": hb.one_of(1, 2, 3),
    "well": hb.one_of(True, False),
    "ill": hb.one_of("yes", "no"),
    "w": hb.between(0, 4, nullable=False),
}


def frame(n: int = 400, seed: int = 0) -> pa.Table:
    """Values in and out of what is declared, on the cuts and beside them, NULL, NaN, infinite, -0.0."""
    rng = np.random.default_rng(seed)
    cuts = np.array(Numbers(Fraction(-1), Fraction(1), linear=True)._cuts)
    odd = [None, math.nan, math.inf, -math.inf, -0.0, 0.0, 1e300, 5e-324]
    score = [*odd, *cuts[:100], *np.nextafter(cuts[:100], -9), *rng.normal(0, 1, n)][:n]
    return pa.table(
        {
            "age": pa.array([None, -5, 101, 2**62, *rng.integers(0, 101, n).tolist()][:n], pa.int64()),
            "score": pa.array([None if v is None else float(v) for v in score], pa.float64()),
            "job": pa.array(rng.choice(np.array(["a", "b", "it's", "A", "a ", None], object), n).tolist(), pa.string()),
            "room": pa.array(rng.integers(0, 5, n).tolist(), pa.int64()),
            "well": pa.array(rng.choice(np.array([True, False, None], object), n).tolist(), pa.bool_()),
            "ill": pa.array(rng.choice(np.array(["yes", "no", "maybe", None], object), n).tolist(), pa.string()),
            "w": pa.array(rng.integers(-1, 6, n).tolist(), pa.int64()),
        }
    )


def declared(rows: pa.Table) -> dict[str, Any]:
    return {"t": hb.table(rows, unit=hb.EACH_ROW, columns=COLUMNS)}


Make = Callable[[pa.Table], Any]


@pytest.fixture(params=["postgres", "spark"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    made: list[Any] = []
    fixture: Any = request.getfixturevalue("postgres_server" if request.param == "postgres" else "spark")

    def there(rows: pa.Table) -> Any:
        made.append((Postgres if request.param == "postgres" else Spark)(fixture, declared(rows), {"t": rows}))
        return made[-1]

    yield there
    for one in made:
        one.close()


def both(make: Make, model: Any, rows: pa.Table) -> tuple[Coded, Pushed, Problem]:
    there = make(rows)
    problem = model.problem(COLUMNS, spend=Spend(rho=Fraction(1)), whole=frozenset({"age", "room", "w"}))
    data = OpenTables(there.tables)
    kinds = data.catalog["t"].columns

    def totals(write: Any, public: Any) -> list[tuple[Any, ...]]:
        return data.totals("t", problem.columns, write, public)

    return problem.encode(rows, None), Pushed(problem, kinds, totals, problem.design), problem


FEATURES = ["age", "score", "job", "room", "well"]


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_sums_are_those_of_rows_in_this_process(make: Make, weight: str | None, seed: int) -> None:
    model = LogisticRegression(FEATURES, "ill", bins={"age": 5}, method="newton", weight=weight)
    here, there, problem = both(make, model, frame(seed=seed))
    assert there.mass() == here.mass() > 0
    assert (there.second_moment() == here.second_moment()).all()
    rng = np.random.default_rng(seed)
    for scale in (0, 1 << 12, 1 << 17, 1 << 32):
        weights = rng.integers(-scale, scale + 1, problem.design.width)
        assert there.logistic_sums(weights) == here.logistic_sums(weights)
    for one, other in zip(there.by_class(2), here.by_class(2), strict=True):
        assert one.total == other.total
        for a, b in zip(one.of_code, other.of_code, strict=True):
            assert (a == b).all()


def test_a_number_as_the_target(make: Make) -> None:
    model = LinearRegression(["score", "job"], "age", method="moments")
    here, there, problem = both(make, model, frame(120))
    assert there.target_sum(512) == here.target_sum(512)
    beside = Design({**problem.design.columns, "": Numbers(Fraction(0), Fraction(100), linear=True)})
    assert (there.beside_target(beside).second_moment() == here.beside_target(beside).second_moment()).all()
    assert here.beside_target(beside).second_moment()[0, 0] == ONE**2 * here.mass()


def test_a_table_without_rows(make: Make) -> None:
    model = LogisticRegression(FEATURES, "ill", method="newton")
    here, there, problem = both(make, model, frame(0))
    assert there.mass() == 0
    assert not there.second_moment().any()
    assert there.logistic_sums(np.ones(problem.design.width, np.int64)) == [0] * problem.design.width
    assert [s.total for s in there.by_class(2)] == [0, 0]
    assert here.mass() == 0


def scorings(design: Design, outputs: int, seed: int) -> Iterator[Scoring]:
    """On the edges of steps and beside them, of equal outputs, far beyond the ends, and as large as is allowed."""
    rng = np.random.default_rng(seed)
    size = 1 + len(design.columns)
    for scale, add in (
        (1 << 13, 0),
        (1 << 23, 0),
        (1 << 23, 1),
        (1, -1),
        (((1 << 62) // outputs - 8) // (4 * size), 3),
    ):
        parts = [rng.integers(-4, 5, (outputs, c.size)) * scale for c in design.columns.values()]
        yield Scoring(tuple(int(v) for v in rng.integers(-4, 5, outputs) * scale + add), tuple(parts))


def test_scores_are_counted_as_rows_in_this_process_are(make: Make) -> None:
    rows = frame(150)
    for target, outputs in (("ill", 2), ("room", 3), ("age", 1)):
        model: Any = LinearRegression if outputs == 1 else CategoricalNB
        here, there, problem = both(make, model(["score", "job", "well"], target), rows)
        for scoring in itertools.islice(scorings(problem.design, outputs if outputs > 2 else 1, 0), 0, None, 2):
            same_counts(here, there, scoring, outputs)


def same_counts(here: Coded, there: Pushed, scoring: Scoring, outputs: int) -> None:
    assert scoring.fits(here.design, len(scoring.starts))
    if outputs == 1:
        assert here.errors(scoring, 512)[0] > 0
        assert there.errors(scoring, 512) == here.errors(scoring, 512)
    elif outputs == 2:
        assert sum(here.by_score(scoring, 1 << 23, 10)) == here.mass() > 0
        assert there.by_score(scoring, 1 << 23, 10) == here.by_score(scoring, 1 << 23, 10)
    else:
        assert sum(here.by_best(scoring)) == here.mass() > 0
        assert there.by_best(scoring) == here.by_best(scoring)


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_the_statements_of_an_evaluation_count_what_numpy_counts(outputs: int) -> None:
    """Run by DuckDB, whose division of whole numbers goes down where others' goes toward zero."""
    model: Any = LinearRegression if outputs == 1 else CategoricalNB
    _counts_alike(model(["job", "well"], {1: "age", 2: "ill", 3: "room"}[outputs]), outputs)


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_pair_of_columns_has_one_code_there_too(outputs: int) -> None:
    pairs = [("job", "well"), ("score", "job")]
    _counts_alike(AdditiveModel(["job", "well", "score"], {1: "age", 2: "ill"}[outputs], pairs=pairs), outputs)


def _counts_alike(model: Any, outputs: int) -> None:
    rows = frame(300)
    problem = model.problem(COLUMNS, spend=Spend(rho=Fraction(1)), whole=frozenset({"age", "room", "w"}))
    names = ", ".join(f"{name} AS c{i}" for i, name in enumerate(problem.columns))

    def totals(write: Any, public: Any) -> list[tuple[Any, ...]]:
        with duckdb.connect() as con:
            con.register("rows_of_people", rows)
            return con.execute(write(f"SELECT {names} FROM rows_of_people", DUCKDB)).fetchall()

    kinds = {
        "score": Kind.NUMBER,
        "room": Kind.INTEGER,
        "age": Kind.INTEGER,
        "job": Kind.TEXT,
        "well": Kind.BOOLEAN,
        "ill": Kind.TEXT,
    }
    there = Pushed(problem, kinds, totals, problem.design)
    for seed in range(2):
        for scoring in scorings(problem.design, outputs if outputs > 2 else 1, seed):
            same_counts(problem.encode(rows, None), there, scoring, outputs)


def open_session(tables: Any) -> Session:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return Session(tables, budget=hb.Budget(9, 1e-6), ledger=None, _bits=SeededBits(5))


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(["age", "job"], "ill", method="newton"),
        CategoricalNB(["room", "job"], "ill"),
        GaussianNB(["age", "score"], "ill"),
        LinearRegression(["room", "job"], "age", method="moments"),
        LinearRegression(["room", "job"], "age", method="mean"),
        PCA(["room", "well"]),
    ],
    ids=lambda m: f"{type(m).__name__}-{getattr(m, 'method', '')}",
)
def test_the_same_noise_gives_the_same_model(make: Make, model: Any) -> None:
    rows = frame(150)
    with open_session(declared(rows)) as here, open_session(make(rows).tables) as there:
        fits = [s.fit(model, "t", epsilon=2) for s in (here, there)]
        assert fits[0].to_json() == fits[1].to_json()
        assert fits[1].charged
        assert not there.fit(model, "t", epsilon=2).charged
        (one,), (other,) = here._data.spaces().values(), there._data.spaces().values()
        spent = [s.ledger.balance.left(n).rho for s, n in ((here, one), (there, other))]
        assert spent[0] == spent[1]
        assert rho_of_epsilon(9, Fraction(1, 2 * 10**6)) > spent[0]


def test_what_cannot_be_fitted_there_is_refused_with_the_way_out(make: Make) -> None:
    rows = frame(10)
    there = make(rows)
    with open_session(there.tables) as s:
        for model, says in (
            (LogisticRegression(["age"], "ill"), "method='newton'"),
            (LinearRegression(["room"], "age"), "method='moments'"),
            (hb.learning.KMeans(["age"], n_clusters=2), "naive Bayes"),
            (hb.learning.AdditiveModel(["age"], "ill"), "naive Bayes"),
        ):
            with pytest.raises(PolicyError, match=says):
                s.fit(model, "t", epsilon=1)
        with pytest.raises(PolicyError, match="stay where they are"):
            s.fit([CategoricalNB(["job"], "ill"), CategoricalNB(["room"], "ill")], "t", epsilon=1)
        assert not s.history()
    owned = {"t": replace(there.tables["t"], unit="age", max_total=1)}
    here = CategoricalNB(["job"], "ill").fit(rows, columns=COLUMNS, epsilon=1)
    with open_session(owned) as s:
        for asked in (
            lambda: s.fit(CategoricalNB(["job"], "ill"), "t", epsilon=1),
            lambda: s.evaluate(here, "t", epsilon=1),
        ):
            with pytest.raises(PolicyError, match="each row is its own unit"):
                asked()
        assert not s.history()


def test_the_same_noise_gives_the_same_evaluation(make: Make) -> None:
    rows = frame(150)
    fitted = [
        model.fit(rows, columns=COLUMNS, epsilon=3, delta="1e-6", bits=SeededBits(1))
        for model in (
            LogisticRegression(["age", "job"], "ill"),
            CategoricalNB(["job", "well"], "room"),
            LinearRegression(["room", "job"], "age"),
        )
    ]
    with open_session(declared(rows)) as here, open_session(make(rows).tables) as there:
        for model in fitted:
            one, other = (s.evaluate(model, "t", epsilon=1) for s in (here, there))
            assert replace(one, charge_id="") == replace(other, charge_id="")
            assert other.charged
            assert not there.evaluate(model, "t", epsilon=1).charged
        assert here.remaining == there.remaining < 9


@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 513])
def test_duckdb_ranks_and_picks_as_bisect_does(size: int) -> None:
    cuts = sorted(np.random.default_rng(size).normal(size=size).tolist())
    near = [n for c in cuts for n in (c, math.nextafter(c, 9), math.nextafter(c, -9))]
    for x in [-math.inf, math.inf, 0.0, -0.0, *near[:30]]:
        text = f"SELECT {DUCKDB.rank(DUCKDB.real(x), cuts)}, {DUCKDB.pick(range(size + 1), str(bisect_right(cuts, x)))}"
        assert duckdb.sql(text).fetchall() == [(bisect_right(cuts, x),) * 2]


@pytest.mark.parametrize(("value", "encoding"), [("a\0b", "UTF8"), ("\ud800", "UTF8"), ("\u2603", "LATIN1")])
def test_a_declared_value_that_the_database_cannot_hold_is_no_rows(value: str, encoding: str) -> None:
    """Its constant was refused where rows are asked, so that every such fit failed after its charge."""
    dialect = PostgresDialect(encoding=encoding)
    with_it, without = (coding(Categories(("a", *more, "c")), "x", Kind.TEXT, dialect) for more in ((value,), ("b",)))
    constant = dialect.constant_as("b", Kind.TEXT)
    assert with_it == without.replace(f"WHEN x = {constant} THEN 1 ", "").replace(f" WHEN x = {constant} THEN 1", "")


@pytest.mark.parametrize("kind", [Kind.TEXT, Kind.NUMBER, Kind.INTEGER])
@pytest.mark.parametrize("value", [["a"], 10**400, -(10**400), math.inf, True])
def test_a_value_that_only_a_text_of_a_model_names_is_no_rows(value: Any, kind: Kind) -> None:
    """A list, or a number of 400 digits, was an error where the statement was written: after the charge."""
    dialect = PostgresDialect(encoding="UTF8")
    assert coding(Categories((value,)), "x", kind, dialect).count("WHEN") == 1
    null = coding(Categories((math.nan,)), "x", kind, dialect)
    assert "IS NULL THEN 0" in null
    assert null.count("WHEN") == 1
