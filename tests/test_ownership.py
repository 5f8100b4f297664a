"""The promise over the whole SQL subset: adding one unit adds rows of its own, and moves integers by what is claimed.

Random relations (joins, sub-queries, per-unit groups, windows, set operations, semi and anti joins, filters) over
random tables of the worst sort. For D and D + u, and for D with a unit exchanged:

- rows: R(D) is part of R(D + u), and every further row carries the owner u; a row without an owner changes nothing;
- integers: each measurement is within its l1 and l2 sensitivity, distinct counts within C R, a quantile's table within
  R rows in each of C groups.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from answers import Desk
from asked import Rows, a_unit, a_visit, everybody, frames, questions, tables
from hubbub.engines.contract import Exact
from hubbub.engines.duckdb import image
from hubbub.errors import HubbubError
from hubbub.tables.clipping import Norm
from hubbub.tables.declare import Limits
from hubbub.tables.measure import Counting
from hubbub.tables.plan import Plan, make_plans
from hubbub.tables.question import Question
from hubbub.tables.relations import leaves, scans

BOTH = ["add_remove", "replace"]


class World:
    """A desk whose tables can be filled anew, and that says what the engine would say."""

    def __init__(self, neighbours: str, *, each_row: bool = False) -> None:
        self.desk = Desk(tables(neighbours, each_row=each_row))

    def fill(self, units: dict[Any, Rows]) -> None:
        for name, table in frames(units).items():
            if name not in self.desk.engine._known:
                continue
            held = self.desk.engine._known[name].held
            assert held is not None
            held._table = table

    def public(self, question: Question) -> dict[str, Any]:
        return {leaf.place: self.desk.outer.leaf(leaf, {}) for leaf in leaves(question.relation)}

    def rows(self, question: Question) -> Counter[tuple[str, ...]]:
        """The rows of the owned relation, the owner first."""
        (plan,) = make_plans(
            replace(question, sets=question.sets[:1]), image, limits=Limits(9, 9, None), private_keys=True
        )
        # The text's first stages are the relation's; the last of them holds its rows, the owner first.
        stages = self.desk.engine.compile(plan).split(",\nfiltered AS (")[0]
        last = re.findall(r"^(r\d+) AS \($", stages.removeprefix("WITH "), re.MULTILINE)[-1]
        views: dict[str, Any] = {place: lambda t=table: t for place, table in self.public(question).items()}
        for scan in scans(question.relation):
            known = self.desk.engine._known[scan.table]
            assert known.held is not None
            views[known.relation] = known.held.table
        found = self.desk.engine._rows(f"{stages}\nSELECT * FROM {last}", views)
        assert found is not None, "the engine failed on a row"
        return Counter(tuple(map(_text, row)) for row in found)

    def exact(self, plan: Plan) -> Exact:
        return self.desk.engine.run(plan, self.public(plan.question))


def _text(value: Any) -> str:
    return repr(value + 0.0) if isinstance(value, float) else repr(value)


@pytest.fixture(scope="module")
def worlds() -> Iterator[dict[str, World]]:
    found = {neighbours: World(neighbours) for neighbours in BOTH}
    yield found
    for world in found.values():
        world.desk.engine.close()


def _vector(exact: Exact, i: int) -> dict[Any, Any]:
    """One measurement as a mapping from group to entry."""
    vector = exact.vectors[i]
    return dict(zip(exact.groups if exact.groups is not None else range(len(vector)), vector, strict=True))


def compare(plan: Plan, before: Exact, after: Exact, why: str) -> None:
    """Two answers of the engine are as near as the plan claims."""
    for i, measurement in enumerate(plan.measurements):
        one, two = _vector(before, i), _vector(after, i)
        if measurement.counting is Counting.QUANTILES:
            touched = 0
            for group in one.keys() | two.keys():
                x, y = Counter(dict(one.get(group, ()))), Counter(dict(two.get(group, ())))
                gone, come = (x - y).total(), (y - x).total()
                touched += bool(gone or come)
                assert max(gone, come) <= plan.bounds.rows, why
                assert not gone or plan.neighbours == "replace", why
            assert touched <= plan.bounds.groups * (1 if plan.neighbours == "add_remove" else 2), why
            continue
        moved = [two.get(g, 0) - one.get(g, 0) for g in one.keys() | two.keys()]
        assert sum(map(abs, moved)) <= plan.sensitivity(measurement), why
        assert sum(m * m for m in moved) <= plan.squared_sensitivity(measurement), why


def check(
    worlds: dict[str, World],
    sql: str,
    units: dict[Any, Rows],
    newcomer: Rows,
    neighbours: str,
    limits: tuple[int, int],
    norm: Norm | None = None,
) -> bool:
    """Whether the question was answered, and then that it keeps the promise. norm: of the clipping, if norms are."""
    world = worlds[neighbours]
    try:
        statement = world.desk.statement(sql)
        asked = Limits(*limits, None, "groups" if norm is None else "norm")
        plans = [
            plan
            for question in statement.questions
            for plan in make_plans(question, image, limits=asked, private_keys=True, norm=norm or "l1")
        ]
    except HubbubError as error:
        assert str(error)
        return False
    other = {**units, (0 if neighbours == "replace" and units else 9): newcomer}
    found = []
    for people in (units, other):
        world.fill(people)
        found.append(([world.exact(p) for p in plans], [world.rows(q) for q in statement.questions]))
    for plan, before, after in zip(plans, found[0][0], found[1][0], strict=True):
        compare(plan, before, after, sql)
    for before_rows, after_rows in zip(found[0][1], found[1][1], strict=True):
        changed = (before_rows - after_rows) + (after_rows - before_rows)
        assert {row[0] for row in changed} <= ({"9"} if len(other) > len(units) else {"0"}), sql
        assert neighbours == "replace" or not before_rows - after_rows, sql
    return True


NOBODY: Rows = {
    "visits": [(0, "A", 1.0, 1, True, None), (-5, "B", 2.0, 2, False, None)] * 2,
    "people": [("m", 3)],
    "items": [],
}


CASE: dict[str, Any] = {
    "sql": questions(),
    "units": everybody,
    "newcomer": a_unit,
    "neighbours": st.sampled_from(BOTH),
    "limits": st.tuples(st.integers(1, 3), st.integers(1, 3)),
    "norm": st.sampled_from([None, None, "l1", "l2"]),
}
LEAN = settings(max_examples=250, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@LEAN
@given(**CASE)
def test_one_unit_adds_its_own_rows_and_moves_integers_by_no_more_than_claimed(
    worlds: dict[str, World],
    sql: str,
    units: dict[Any, Rows],
    newcomer: Rows,
    neighbours: str,
    limits: tuple[int, int],
    norm: Norm | None,
) -> None:
    check(worlds, sql, units, newcomer, neighbours, limits, norm)


@pytest.mark.soak
@settings(max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(**(CASE | {"sql": questions(depth=4)}))
def test_the_same_in_thousands_of_cases(
    worlds: dict[str, World],
    sql: str,
    units: dict[Any, Rows],
    newcomer: Rows,
    neighbours: str,
    limits: tuple[int, int],
    norm: Norm | None,
) -> None:
    check(worlds, sql, units, newcomer, neighbours, limits, norm)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(sql=questions(depth=2), units=everybody)
def test_rows_without_an_owner_change_nothing(worlds: dict[str, World], sql: str, units: dict[Any, Rows]) -> None:
    world = worlds["add_remove"]
    try:
        (question, *_) = world.desk.statement(sql).questions
    except HubbubError:
        return
    found = []
    for people in (units, {**units, None: NOBODY}):
        world.fill(people)
        found.append(world.rows(question))
    assert found[0] == found[1], sql


@pytest.fixture(scope="module")
def rows_as_units() -> Iterator[dict[str, World]]:
    found = {neighbours: World(neighbours, each_row=True) for neighbours in BOTH}
    yield found
    for world in found.values():
        world.desk.engine.close()


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    sql=questions(each_row=True),
    rows=st.lists(a_visit, max_size=8),
    newcomer=a_visit,
    at=st.integers(0, 8),
    neighbours=st.sampled_from(BOTH),
    limits=st.tuples(st.integers(1, 3), st.integers(1, 3)),
)
def test_one_row_that_is_a_unit_does_the_same_wherever_it_stands(
    rows_as_units: dict[str, World],
    sql: str,
    rows: list[Any],
    newcomer: Any,
    at: int,
    neighbours: str,
    limits: tuple[int, int],
) -> None:
    """Public tables repeat rows, so a row is bounded like any unit; which groups it keeps is its own matter."""
    world = rows_as_units[neighbours]
    try:
        (question,) = world.desk.statement(sql).questions
        plans = make_plans(question, image, limits=Limits(*limits, None), private_keys=True)
    except HubbubError:
        return
    other = [*rows[:at], newcomer, *rows[at + (neighbours == "replace") :]]
    found = []
    for visits in (rows, other):
        world.fill({1: {"visits": visits, "people": [], "items": []}})
        found.append([world.exact(plan) for plan in plans])
    for plan, before, after in zip(plans, *found, strict=True):
        compare(plan, before, after, sql)


def test_one_row_more_does_not_change_which_groups_other_rows_keep(rows_as_units: dict[str, World]) -> None:
    """Forty rows, each in two regions of which one is kept; a row that meets no ward stands first, or last."""
    world = rows_as_units["add_remove"]
    asked = "COUNT(*), COUNT(DISTINCT n), MEDIAN(x) FROM visits v"
    sql = f"SELECT w.region, {asked} JOIN wards w ON v.ward = w.ward GROUP BY 1"
    (question,) = world.desk.statement(sql).questions
    (plan,) = make_plans(question, image, limits=Limits(1, 1, None))
    many = [(0, "B", float(i), i, True, None) for i in range(40)]
    stranger = (0, "nobody's", 1.0, 1, True, None)
    found = []
    for visits in (many, [stranger, *many], [*many, stranger]):
        world.fill({1: {"visits": visits, "people": [], "items": []}})
        found.append(world.exact(plan).vectors)
    assert found[0] == found[1] == found[2]
