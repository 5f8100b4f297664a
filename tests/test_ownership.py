"""The promise over the whole SQL subset: adding one unit adds rows of its own, and moves integers by what is claimed.

Random relations (joins, sub-queries, per-unit groups, windows, set operations, semi and anti joins, filters) over
random tables of the worst sort. For D and D + u, and for D with a unit exchanged:

- rows: R(D) is part of R(D + u), and every further row carries the owner u; a row without an owner changes nothing;
- integers: each measurement, of searches and of sums whose bound was found too, is within its l1 and l2 sensitivity,
  distinct counts within C R, a quantile's table within R rows in each of C groups;
- amounts: all parts of a statement together (groupings, several private aggregates) lose no more than its price.

What reads an earlier release meets the same release in both worlds: given what is public already, its integers are
held to the claim like any.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import counts
from answers import Desk
from asked import (
    GREEDY,
    SORT,
    Rows,
    a_newcomer,
    a_visit,
    everybody,
    frames,
    questions,
    relations as owned,
    statements,
    tables,
)
from hubbub.answer.evaluate import EvaluatedStatement
from hubbub.engines.base import Exact
from hubbub.engines.duckdb import engine as embedded, relations
from hubbub.errors import HubbubError, InternalError
from hubbub.tables.aggregate_query import AggregateQuery, Statement
from hubbub.tables.clipping import Norm
from hubbub.tables.declare import Limits
from hubbub.tables.draw_release import draw
from hubbub.tables.estimates import read
from hubbub.tables.measure import Measurement, MeasurementKind, Value
from hubbub.tables.parts import Sums
from hubbub.tables.plan import Plan, Search, make_plans
from hubbub.tables.price import Price, Spend, make_price
from hubbub.tables.relations import leaves, scans
from seeded import SeededBits

BOTH = ["add_remove", "replace"]
_IMAGES: dict[str, list[Any]] = {}


def image(expression: Any, columns: Mapping[Any, tuple[Any, ...]]) -> list[Any]:
    """The values of an expression over declared ones, found once: the same few keys are in thousands of statements."""
    key = repr((expression, columns))  # not by equality, by which 1 is True
    if key not in _IMAGES:
        _IMAGES[key] = relations.image(expression, columns)
    return _IMAGES[key]


def once(write: Callable[..., str]) -> Callable[..., str]:
    """A writer of texts that writes each once: a plan is run on two tables, and its text is the same for both."""
    known: OrderedDict[tuple[Any, ...], tuple[Plan, str]] = OrderedDict()

    def written(plan: Plan, places: Any, *more: Any, **named: Any) -> str:
        key = id(plan), *more, *named.items()
        if key not in known or known[key][0] is not plan:
            known[key] = plan, write(plan, places, *more, **named)
        while len(known) > 200:
            known.popitem(last=False)
        return known[key][1]

    return written


@pytest.fixture(scope="module", autouse=True)
def texts_are_written_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("aggregate_sql", "listed_sql", "ranked_sql"):
            patch.setattr(embedded, name, once(getattr(embedded, name)))
        yield


Plans = Sequence[tuple[Plan, ...]]
"""The plans of a statement, question by question."""
Public = Mapping[str, Any]
"""Tables by name."""


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

    def public(self, question: AggregateQuery, releases: Public) -> Public:
        """The public relations that a question reads, made of the releases of earlier ones."""
        found = {}
        for leaf in leaves(question.relation):
            read_here = {f"released{n}": releases[f"released{n}"] for n in leaf.released}
            found[leaf.place] = self.desk.outer.leaf(leaf, read_here)
        return found

    def exacts(self, plans: Plans, publics: Sequence[Public]) -> list[Exact]:
        """The integers of every plan."""
        return [self.desk.engine.run(p, public) for of, public in zip(plans, publics, strict=True) for p in of]

    def publics(self, statement: Statement, plans: Plans) -> list[Public]:
        """The public relations of every question. What another one reads is released with noise of a fixed seed."""
        wanted = {n for q in statement.questions for leaf in leaves(q.relation) for n in leaf.released}
        found: dict[str, Any] = {}
        publics = []
        for n, (question, of_question) in enumerate(zip(statement.questions, plans, strict=True)):
            publics.append(self.public(question, found))
            if n not in wanted:
                continue
            private = any(plan.private_keys for plan in of_question)
            pure = [plan.for_noise(pure=True) for plan in of_question]
            price = make_price(pure, Spend(epsilon=Fraction(2), delta=Fraction(int(private), 9)))
            drawn = draw(price, [self.desk.engine.run(plan, publics[n]) for plan in pure], SeededBits(n))
            alone = Statement((question,), "", (), ())
            made = EvaluatedStatement(alone, (tuple(read(price, drawn)),), self.desk.outer).releases
            found[f"released{n}"] = made["released0"]
        return publics

    def text(self, question: AggregateQuery) -> str:
        """The text of the owned relation's rows, the owner first."""
        (plan,) = make_plans(
            replace(question, sets=question.sets[:1]), image, limits=Limits(9, 9, None), private_keys=True
        )
        # The text's first stages are the relation's; the last of them holds its rows, the owner first.
        stages = self.desk.engine.compile(plan).split(",\nfiltered AS (")[0]
        last = re.findall(r"^(r\d+) AS \($", stages.removeprefix("WITH "), re.MULTILINE)[-1]
        return f"{stages}\nSELECT * FROM {last}"

    def rows(self, question: AggregateQuery, text: str, public: Public) -> Counter[tuple[str, ...]]:
        """The rows of such a text."""
        views: dict[str, Any] = {place: lambda t=table: t for place, table in public.items()}
        for scan in scans(question.relation):
            known = self.desk.engine._known[scan.table]
            assert known.held is not None
            views[known.relation] = known.held.table
        with self.desk.engine._con.cursor() as cursor:
            for view, load in views.items():
                cursor.register(view, load())
            found = cursor.execute(text).fetchall()
        return Counter(tuple(map(_text, row)) for row in found)


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
        if measurement.counting is MeasurementKind.QUANTILES:
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


def histograms(plan: Plan) -> Iterator[Plan]:
    """Of the searches that this plan's limits could be found by, and a sum's bound."""
    if plan.keys and not plan.private_keys and not plan.one_row:
        yield Search(plan, "groups").histogram
    if not plan.one_row:
        yield Search(plan, "rows").histogram
    for measurement in plan.measurements:
        if measurement.counting is MeasurementKind.SUM:
            yield Search(plan, "t0.n", measurement).histogram


def bounded_sums(plan: Plan) -> Iterator[Plan]:
    """The same with a bound of one step found for each of its sums: a unit's sum in a group is clipped to that."""
    if plan.norm is None and any(m.counting is MeasurementKind.SUM for m in plan.measurements):
        yield replace(plan, measurements=tuple(dict.fromkeys(map(_bounded, plan.measurements))))


def _bounded(measurement: Measurement) -> Measurement:
    if measurement.counting is not MeasurementKind.SUM:
        return measurement
    (value,) = measurement.values
    return Measurement(MeasurementKind.SUM, values=(Value(value.argument, value.grid, 0, 1),), cap=1)


def lost(price: Price, before: list[Exact], after: list[Exact]) -> Fraction:
    """What the whole vector of noisy sums tells of the difference: for each part the l1 distance by its scale."""
    total = Fraction(0)
    for part in price.parts:
        if isinstance(part.part, Sums):
            plan = price.plans[part.plan]
            moved = {
                m: {g: _vector(after[part.plan], i).get(g, 0) - n for g, n in _vector(before[part.plan], i).items()}
                for i, m in enumerate(plan.measurements)
                if any(m == of for vector in part.part.vectors for of, _ in vector)
            }
            for vector in part.part.vectors:
                groups = moved[vector[0][0]]
                distance = sum(abs(sum(moved[m][g] * times for m, times in vector)) for g in groups)
                total += Fraction(distance) * part.amount / part.part.l1
        else:
            total += part.amount
    return total


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
            make_plans(question, image, limits=asked, private_keys=True, norm=norm or "l1")
            for question in statement.questions
        ]
        every = [plan for of_question in plans for plan in of_question]
        price = None
        if not any(plan.private_keys for plan in every) and norm != "l2":
            price = make_price(every, Spend(epsilon=Fraction(1)))
    except HubbubError as error:
        assert not isinstance(error, InternalError), sql
        return False
    searched = [
        tuple(h for plan in of_question for h in (*histograms(plan), *bounded_sums(plan))) for of_question in plans
    ]
    other = {**units, (0 if neighbours == "replace" and units else 9): newcomer}
    found = []
    world.fill(units)
    publics = world.publics(statement, plans)
    texts = [world.text(question) for question in statement.questions]
    for people in (units, other):
        world.fill(people)
        rows = [world.rows(*of) for of in zip(statement.questions, texts, publics, strict=True)]
        found.append((world.exacts(plans, publics), rows, world.exacts(searched, publics)))
    for plan, before, after in zip(every, found[0][0], found[1][0], strict=True):
        compare(plan, before, after, sql)
    for plan, before, after in zip((h for of in searched for h in of), found[0][2], found[1][2], strict=True):
        assert not plan.search or plan.sensitivity(plan.measurements[0]) == (1 if neighbours == "add_remove" else 2)
        compare(plan, before, after, sql)
    assert price is None or lost(price, found[0][0], found[1][0]) <= 1, sql
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
    "sql": statements(),
    "units": everybody,
    "newcomer": a_newcomer,
    "neighbours": st.sampled_from(BOTH),
    "limits": st.tuples(st.integers(1, 3), st.integers(1, 3)),
    "norm": st.sampled_from([None, None, "l1", "l2"]),
}
LEAN = settings(
    max_examples=counts.part(120, 3), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


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


WEIGHT = "LEAST(GREATEST(a, 0), 7)"
WEIGHTED = [
    f"WEIGHTED_COUNT({WEIGHT})",
    f"WEIGHTED_SUM(LEAST(GREATEST(a * 2, -5), 20), {WEIGHT})",
    f"WEIGHTED_AVG(LEAST(GREATEST(a, -5), 20), {WEIGHT})",
    f"WEIGHTED_SUM(LEAST(LENGTH(b), 3), {WEIGHT}) FILTER (WHERE a > 1)",
]


@st.composite
def weighted(draw: Any) -> str:
    """The text of a question whose rows count by weights, over an owned relation."""
    chosen = draw(st.lists(st.sampled_from(WEIGHTED), min_size=1, max_size=2, unique=True))
    key = draw(st.sampled_from([SORT, "", "a > 3"]))
    shown = ", ".join(f"{text} AS c{i}" for i, text in enumerate([*chosen, "COUNT(*)"]))
    return f"SELECT {shown} FROM ({draw(owned(depth=2))}) t{f' GROUP BY {key}' if key else ''}"


@settings(max_examples=counts.part(40, 3), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(**(CASE | {"sql": weighted()}))
def test_one_unit_moves_weighted_integers_by_no_more_than_claimed(
    worlds: dict[str, World],
    sql: str,
    units: dict[Any, Rows],
    newcomer: Rows,
    neighbours: str,
    limits: tuple[int, int],
    norm: Norm | None,
) -> None:
    check(worlds, sql, units, newcomer, neighbours, limits, norm)


ROWS = "(SELECT id, n AS a, ward AS b FROM visits) t"


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("limits", [(1, 2), (2, 1), (2, 2)])
@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*), COUNT(DISTINCT id), SUM(LEAST(GREATEST(a, -5), 20)) FROM {ROWS} GROUP BY {SORT}",
        f"SELECT WEIGHTED_COUNT({WEIGHT}), WEIGHTED_AVG(LEAST(a, 9), {WEIGHT}) FROM {ROWS} WHERE a > -5 GROUP BY a > 3",
        f"SELECT COUNT(*), AVG(LEAST(GREATEST(a, -5), 20)) FROM {ROWS} GROUP BY CUBE ({SORT}, (a > 3))",
        f"SELECT COUNT(t.a), COUNT(DISTINCT b) FROM wards w LEFT JOIN {ROWS} ON t.b = w.ward GROUP BY w.region",
        f"SELECT (SELECT COUNT(*) FROM {ROWS}) AS c, (SELECT MEDIAN(LEAST(GREATEST(a, 0), 9)) FROM {ROWS}) AS d",
        f"SELECT COUNT(*) FROM {ROWS} WHERE a > (SELECT COUNT(*) / 2 FROM {ROWS}) - 50 GROUP BY {SORT}",
    ],
)
def test_a_unit_in_every_group_moves_as_much_as_it_may(
    worlds: dict[str, World], sql: str, limits: tuple[int, int], neighbours: str
) -> None:
    """What random cases seldom reach: a bound that is too low by one group, or one row, is broken here."""
    assert check(worlds, sql, {0: NOBODY, 1: GREEDY}, GREEDY, neighbours, limits)


@pytest.mark.soak
@settings(max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(**(CASE | {"sql": statements(depth=4)}))
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


@settings(max_examples=counts.part(40, 2), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(sql=questions(depth=2), units=everybody)
def test_rows_without_an_owner_change_nothing(worlds: dict[str, World], sql: str, units: dict[Any, Rows]) -> None:
    world = worlds["add_remove"]
    try:
        (question, *_) = world.desk.statement(sql).questions
        make_plans(question, image, limits=Limits(9, 9, None), private_keys=True)
    except HubbubError:
        return
    found, text = [], world.text(question)
    for people in (units, {**units, None: NOBODY}):
        world.fill(people)
        found.append(world.rows(question, text, world.public(question, {})))
    assert found[0] == found[1], sql


@pytest.fixture(scope="module")
def rows_as_units() -> Iterator[dict[str, World]]:
    found = {neighbours: World(neighbours, each_row=True) for neighbours in BOTH}
    yield found
    for world in found.values():
        world.desk.engine.close()


@settings(max_examples=counts.part(50, 2), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
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
        found.append([world.desk.engine.run(plan, world.public(plan.question, {})) for plan in plans])
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
        found.append(world.desk.engine.run(plan, world.public(question, {})).vectors)
    assert found[0] == found[1] == found[2]
    for measurement, vector in zip(plan.measurements, found[0], strict=True):
        counts = [sum(n for _, n in group) for group in vector] if measurement.values else vector
        assert sum(counts) == 40, measurement.counting
