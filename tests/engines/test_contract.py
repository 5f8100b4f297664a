"""One contract for every engine: the same tables, the same bounds, the same integers before noise.

The reference is DuckDB with the hash that all engines have. Compared are the golden list, on a shop, and random
questions over random tables of the worst sort (`asked`), which are held to the claimed sensitivities, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import hubbub as hb
from asked import a_unit, everybody, frames, questions
from engines.places import Embedded, Postgres, Spark, answer
from golden.queries import QUERIES
from golden.shop import FRAMES, tables as shop_tables
from hubbub.engines.base import Located
from hubbub.engines.duckdb.relations import image
from hubbub.errors import HubbubError
from hubbub.sql.bind.query import PublicQuestion, parse
from hubbub.tables.declare import Limits
from hubbub.tables.kinds import Kind
from hubbub.tables.measure import MeasurementKind
from hubbub.tables.plan import Plan, make_plans
from hubbub.tables.relations import leaves

SETTINGS: dict[str, Any] = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


@pytest.fixture(scope="module")
def shops(postgres_server: str) -> Iterator[tuple[Embedded, Postgres]]:
    here, there = Embedded(shop_tables(), FRAMES), Postgres(postgres_server, shop_tables(), FRAMES)
    yield here, there
    here.close()
    there.close()


def _golden(here: Embedded, sql: str, more: Mapping[str, Any]) -> list[Plan]:
    options = {name: more[name] for name in ("params", "keys") if name in more}
    statement = parse(sql, here.desk.catalog, public=here.desk.outer, **options)
    if isinstance(statement, PublicQuestion):
        return []  # nothing of it is private
    return [plan for q in statement.questions for plan in make_plans(q, image, private_keys=True)]


def _reads_releases(plan: Plan) -> bool:
    return any(leaf.released for leaf in leaves(plan.question.relation))


@pytest.mark.parametrize(("sql", "more"), QUERIES, ids=[sql[:60] for sql, _ in QUERIES])
def test_the_golden_list_gives_the_same_integers(
    shops: tuple[Embedded, Postgres], sql: str, more: dict[str, Any]
) -> None:
    here, there = shops
    for plan in _golden(here, sql, more):
        if _reads_releases(plan):
            continue  # its public relation is made of a noisy answer
        public = here.public(plan)
        assert answer(there.engine, plan, public) == answer(here.engine, plan, public)


@pytest.fixture(scope="module")
def clusters(spark: Any) -> Iterator[tuple[Embedded, Spark]]:
    here, there = Embedded(shop_tables(), FRAMES), Spark(spark, shop_tables(), FRAMES)
    yield here, there
    here.close()
    there.close()


# Each takes Spark about a second: one in eight here, all of them in the soak.
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    ("sql", "more"),
    [pytest.param(*q, marks=() if i % 8 == 0 else pytest.mark.soak) for i, q in enumerate(QUERIES)],
    ids=[sql[:60] for sql, _ in QUERIES],
)
def test_the_golden_list_gives_the_same_integers_in_spark(
    clusters: tuple[Embedded, Spark], sql: str, more: dict[str, Any], ansi: str
) -> None:
    here, there = clusters
    there.set("spark.sql.ansi.enabled", ansi)
    for plan in _golden(here, sql, more):
        if not _reads_releases(plan):
            public = here.public(plan)
            assert answer(there.engine, plan, public) == answer(here.engine, plan, public)


def _plans(here: Embedded, sql: str, limits: tuple[int, int]) -> list[Plan]:
    """The plans of a random question; none where it is refused."""
    try:
        statement = here.desk.statement(sql)
        return [
            plan
            for question in statement.questions
            for plan in make_plans(question, image, limits=Limits(*limits, None), private_keys=True)
        ]
    except HubbubError as error:
        assert str(error)
        return []


def _entries(vector: Any) -> dict[Any, Any]:
    return vector if isinstance(vector, dict) else dict(enumerate(vector))


def near(plan: Plan, before: tuple[Any, ...], after: tuple[Any, ...], why: str) -> None:
    """Two answers about neighbouring tables are as near as the plan claims."""
    for measurement, one, two in zip(plan.measurements, map(_entries, before), map(_entries, after), strict=True):
        if measurement.counting is MeasurementKind.QUANTILES:
            continue
        moved = [two.get(g, 0) - one.get(g, 0) for g in one.keys() | two.keys()]
        assert sum(map(abs, moved)) <= plan.sensitivity(measurement), why
        assert sum(m * m for m in moved) <= plan.squared_sensitivity(measurement), why


def _tamed(rows: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """The same rows with no number of a magnitude that Postgres does not calculate with."""

    def tame(value: Any) -> Any:
        beyond = isinstance(value, float) and value != 0 and not 2.0**-300 <= abs(value) <= 2.0**300
        return 1e60 if beyond and value > 1 else -1e60 if beyond and value < -1 else 1e-60 if beyond else value

    return {
        name: pa.table({f.name: pa.array(map(tame, table[f.name].to_pylist()), f.type) for f in table.schema})
        for name, table in rows.items()
    }


def _answers(worlds: tuple[Embedded, Any], plan: Plan, rows: dict[str, pa.Table]) -> list[tuple[Any, ...]]:
    public = worlds[0].public(plan)
    for world in worlds:
        world.fill(rows)
    return [answer(world.engine, plan, public) for world in worlds]


def _alike(worlds: tuple[Embedded, Any], plan: Plan, rows: dict[str, pa.Table], why: str) -> tuple[Any, ...]:
    """The answer of the second engine, which is the first one's, or differs as is documented.

    Where groups are found privately by a number with a fraction, each engine writes its text for the hash in its own
    way: there they are compared with all of a unit's groups kept. Beyond 2^300 Postgres does not calculate: there they
    are compared on smaller numbers.
    """
    here, there = _answers(worlds, plan, rows)
    if here == there:
        return there
    if any(d is None and k.kind is Kind.NUMBER for k, d in zip(plan.keys, plan.domains, strict=True)):
        everything = replace(plan, bounds=replace(plan.bounds, groups=1000))
        one, two = _answers(worlds, everything, rows)
        if one == two:
            return there
        plan = everything
    assert isinstance(worlds[1], Postgres), why
    one, two = _answers(worlds, plan, _tamed(rows))
    assert one == two, why
    return there


def hold(worlds: tuple[Embedded, Any], sql: str, units: Any, newcomer: Any, limits: tuple[int, int]) -> None:
    """Both engines give the same integers before and after somebody comes, and these are near each other."""
    for plan in _plans(worlds[0], sql, limits):
        found = [_alike(worlds, plan, frames(people), sql) for people in (units, {**units, 9: newcomer})]
        near(plan, found[0], found[1], sql)


CASE: dict[str, Any] = {
    "sql": questions(),
    "units": everybody,
    "newcomer": a_unit,
    "limits": st.sampled_from([(1, 1), (2, 2), (9, 9)]),
}


@settings(max_examples=20, **SETTINGS)
@given(**CASE)
def test_neighbours_are_as_near_in_postgres_as_claimed(
    worlds: tuple[Embedded, Postgres], sql: str, units: Any, newcomer: Any, limits: tuple[int, int]
) -> None:
    hold(worlds, sql, units, newcomer, limits)


@pytest.mark.soak
@settings(max_examples=2_000, **SETTINGS)
@given(**CASE)
def test_neighbours_are_as_near_in_postgres_as_claimed_at_length(
    worlds: tuple[Embedded, Postgres], sql: str, units: Any, newcomer: Any, limits: tuple[int, int]
) -> None:
    hold(worlds, sql, units, newcomer, limits)


@pytest.mark.soak
@settings(max_examples=40, **SETTINGS)
@given(**CASE)
def test_neighbours_are_as_near_in_spark_as_claimed(
    spark_worlds: tuple[Embedded, Spark], sql: str, units: Any, newcomer: Any, limits: tuple[int, int]
) -> None:
    hold(spark_worlds, sql, units, newcomer, limits)


@settings(max_examples=3, **SETTINGS)
@given(**CASE)
def test_some_neighbours_are_as_near_in_spark_as_claimed(
    spark_worlds: tuple[Embedded, Spark], sql: str, units: Any, newcomer: Any, limits: tuple[int, int]
) -> None:
    hold(spark_worlds, sql, units, newcomer, limits)


# -- where a source is -----------------------------------------------------------------------------------------------


def _located(engine: Any, names: list[str]) -> None:
    """An engine finds a table at one place, at each asking, and no two tables at the same."""
    found = [engine.located(name) for name in names]
    assert found == [engine.located(name) for name in names]
    assert all(isinstance(one, Located) and isinstance(hash(one.here), int) for one in found)
    for key in (lambda one: one.place, lambda one: one.here):
        known = [key(one) for one in found if key(one) is not None]
        assert len(set(known)) == len(known)
    assert all(one.inner is None or one.place is not None for one in found)


def test_an_engine_says_where_it_found_each_table(shops: tuple[Embedded, Postgres]) -> None:
    for world in shops:
        _located(world.engine, ["customer", "orders", "lineitem"])


def test_spark_says_where_it_found_each_table(clusters: tuple[Embedded, Spark]) -> None:
    _located(clusters[1].engine, ["customer", "orders", "lineitem"])


def test_a_partition_and_its_parent_are_one_source(shops: tuple[Embedded, Postgres]) -> None:
    """Before, the same rows had two budgets in one session."""
    con, url = shops[1].con, shops[1].url
    con.execute("CREATE TABLE whole (id bigint, x bigint) PARTITION BY LIST (x)")
    con.execute("CREATE TABLE one PARTITION OF whole FOR VALUES IN (1)")
    con.execute("CREATE TABLE two PARTITION OF whole FOR VALUES IN (2) PARTITION BY LIST (id)")
    con.execute("CREATE TABLE deep PARTITION OF two FOR VALUES IN (7)")
    con.execute("CREATE TABLE apart (id bigint, x bigint)")
    con.execute("GRANT SELECT ON whole, one, two, deep, apart TO reader")
    for a, b in itertools.permutations(["whole", "one", "two", "deep", "apart"], 2):
        tables = {
            name: hb.table(url, table=name, unit="id", unit_space=space, max_total=1)
            for name, space in ((a, "people"), (b, "others"))
        }
        if "apart" in (a, b):
            hb.Session(tables, budget=hb.Budget(epsilon=1), ledger=None).close()
            continue
        with pytest.raises(hb.PolicyError, match="two unit spaces"):
            hb.Session(tables, budget=hb.Budget(epsilon=1), ledger=None)
