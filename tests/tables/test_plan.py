"""Plans: one for each grouping, with the limits and the groups it needs and no others."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction
from typing import NoReturn

import pytest

import hubbub as hb
from hubbub.tables.aggregate_query import Aggregate, AggregateQuery, Key
from hubbub.tables.aggregates import FUNCTIONS
from hubbub.tables.columns import Declaration
from hubbub.tables.declare import Limits
from hubbub.tables.expressions import Column, Compare, Literal
from hubbub.tables.groups import fitted
from hubbub.tables.kinds import Kind
from hubbub.tables.measure import Bounds, MeasurementKind
from hubbub.tables.plan import Plan, Search, make_plans
from hubbub.tables.relations import Scan

AGE, WARD, YEAR = Column("t0.age", Kind.NUMBER), Column("t0.ward", Kind.TEXT), Column("t0.year", Kind.INTEGER)
COUNT, UNITS = Aggregate(FUNCTIONS["COUNT_ROWS"]), Aggregate(FUNCTIONS["COUNT_UNITS"])
COLUMNS: dict[str, Declaration] = {
    "age": hb.between(-10, 100),
    "ward": hb.one_of("A", "B", "C"),
    "year": hb.between(2020, 2024),
}
LIMITS = Limits(groups=2, rows=3)


def nothing_computed(*_: object) -> NoReturn:
    raise AssertionError("no key here is an expression")


def plans(
    *aggregates: Aggregate,
    keys: tuple[Column, ...] = (),
    sets: tuple[tuple[int, ...], ...] | None = None,
    declared: Limits = LIMITS,
    unit: str | None = "id",
    neighbours: str = "add_remove",
    asked: Limits | None = None,
    private_keys: bool = False,
    unit_type: str | None = None,
) -> tuple[Plan, ...]:
    kinds = {"id": Kind.INTEGER, "age": Kind.NUMBER, "ward": Kind.TEXT, "year": Kind.INTEGER, "city": Kind.TEXT}
    scan = Scan("t0", "t", kinds, COLUMNS, declared, "id", neighbours, unit, unit_type=unit_type)  # type: ignore[arg-type]
    chosen = sets if sets is not None else (tuple(range(len(keys))),)
    question = AggregateQuery(scan, tuple(Key(k) for k in keys), aggregates, chosen)
    return make_plans(question, nothing_computed, limits=asked, private_keys=private_keys)


def plan(*aggregates: Aggregate, **arguments: object) -> Plan:
    (found,) = plans(*aggregates, **arguments)  # type: ignore[arg-type]
    return found


def test_counts_move_by_groups_times_rows() -> None:
    grouped = plan(COUNT, keys=(WARD,))
    assert [grouped.sensitivity(m) for m in grouped.measurements] == [6]
    assert [grouped.squared_sensitivity(m) for m in grouped.measurements] == [18]
    whole = plan(COUNT)
    assert [whole.sensitivity(m) for m in whole.measurements] == [6]
    assert plan(COUNT, declared=Limits(total=5)).bounds == Bounds(1, 5)
    units = plan(UNITS, keys=(WARD,), declared=Limits(groups=2))
    assert [units.sensitivity(m) for m in units.measurements] == [2]
    assert units.bounds == Bounds(2, 1)
    assert plan(UNITS).bounds == Bounds(1, 1)


def test_what_the_question_says_goes_before_what_is_declared() -> None:
    assert plan(COUNT, keys=(WARD,), asked=Limits(groups=1)).bounds == Bounds(1, 3)
    assert plan(COUNT, asked=Limits(total=4)).bounds == Bounds(1, 4)


def test_a_row_that_is_its_own_unit_moves_a_count_by_one() -> None:
    rows = plan(COUNT, keys=(WARD,), unit=None)
    assert [rows.sensitivity(m) for m in rows.measurements] == [1]
    replaced = plan(COUNT, keys=(WARD,), unit=None, neighbours="replace")
    assert [replaced.sensitivity(m) for m in replaced.measurements] == [2]


def test_every_grouping_is_a_plan_of_its_own() -> None:
    found = plans(COUNT, keys=(WARD, YEAR), sets=((0, 1), (0,), ()))
    assert [p.group_count for p in found] == [15, 3, 1]
    assert [p.bounds for p in found] == [Bounds(2, 3), Bounds(2, 3), Bounds(1, 6)]
    assert [len(list(p.groups())) for p in found] == [15, 3, 1]


def test_groups_are_found_privately_only_where_nothing_declares_them() -> None:
    city = Column("t0.city", Kind.TEXT)
    with pytest.raises(hb.PolicyError, match=r"hb\.one_of"):
        plan(COUNT, keys=(city,))
    found = plan(COUNT, keys=(city, WARD), private_keys=True)
    assert found.private_keys
    assert found.group_count is None
    assert {m.counting for m in found.measurements} == {MeasurementKind.ROWS, MeasurementKind.UNITS}
    public = plan(COUNT, keys=(WARD,), private_keys=True)
    assert not public.private_keys
    assert {m.counting for m in public.measurements} == {MeasurementKind.ROWS}


def test_the_order_of_select_does_not_make_another_question() -> None:
    total = Aggregate(FUNCTIONS["SUM"], (AGE,))
    assert plan(COUNT, total, keys=(WARD,)).key() == plan(total, COUNT, keys=(WARD,)).key()
    assert plan(COUNT, keys=(WARD,)).key() != plan(COUNT, keys=(YEAR,)).key()


def test_whatever_changes_an_answer_makes_another_question() -> None:
    """A stored answer is given for the same key: every part of a plan that an answer depends on stands in it."""
    median = [Aggregate(FUNCTIONS["QUANTILE"], (AGE,), fraction=Fraction(k, 4)) for k in (1, 2)]
    found = [
        plan(COUNT, keys=(WARD,)),
        plan(UNITS, keys=(WARD,)),
        plan(COUNT, keys=(YEAR,)),
        plan(COUNT, keys=(WARD, YEAR)),
        plan(COUNT),
        plan(COUNT, keys=(WARD,), asked=Limits(groups=1)),
        plan(COUNT, keys=(WARD,), asked=Limits(rows=1)),
        plan(COUNT, keys=(WARD,), asked=Limits(bounding="norm")),
        plan(COUNT, keys=(WARD,), neighbours="replace"),
        plan(COUNT, keys=(WARD,), unit="year"),
        plan(COUNT, keys=(WARD,), unit_type="text"),
        plan(Aggregate(FUNCTIONS["SUM"], (AGE,)), keys=(WARD,)),
        plan(Aggregate(FUNCTIONS["AVG"], (AGE,)), keys=(WARD,)),
        plan(Aggregate(FUNCTIONS["SUM"], (YEAR,)), keys=(WARD,)),
        *(plan(m, keys=(WARD,)) for m in median),
        replace(plan(COUNT, keys=(WARD,)), domains=(("A", "B"),)),
        *(replace(plan(COUNT, keys=(WARD,)), keys=(Key(Column(f"t0.{c}", Kind.TEXT)),)) for c in ("city", "town")),
        replace(plan(COUNT, keys=(WARD,)), declared={"t0.ward": hb.one_of("C", "B", "A")}),
        *(replace(plan(COUNT, keys=(WARD, YEAR)), declared={f"t0.{c}": hb.one_of(2020)}) for c in ("ward", "year")),
        replace(plan(COUNT, keys=(WARD,)), one_row=not plan(COUNT, keys=(WARD,)).one_row),
    ]
    assert len({p.key() for p in found}) == len(found)


def test_a_bound_is_known_again_by_the_columns_that_decide_it() -> None:
    """The same declaration of another column is another search; that of a column that is not looked at is none."""
    asked = plan(COUNT, keys=(WARD, YEAR))
    by_column = [Search(replace(asked, declared={f"t0.{c}": hb.one_of(2020)}), "rows") for c in ("ward", "year")]
    assert by_column[0].key != by_column[1].key
    with_age = Search(replace(asked, declared={f"t0.{c}": hb.one_of(2020) for c in ("ward", "age")}), "rows")
    assert with_age.key == by_column[0].key


def test_a_bound_that_was_found_is_the_plans_and_is_found_no_more() -> None:
    asked = plan(COUNT, keys=(WARD,), declared=Limits(), asked=Limits(auto=("groups", "rows")))
    assert asked.auto == ("groups", "rows")
    rows = asked.with_found("rows", Fraction(5))
    assert (rows.bounds, rows.auto) == (Bounds(asked.bounds.groups, 5), ("groups",))
    groups = rows.with_found("groups", Fraction(2))
    assert (groups.bounds, groups.auto) == (Bounds(2, 5), ())
    assert rows.with_found("groups", Fraction(8)).bounds == Bounds(3, 5)  # there are no more


@pytest.mark.parametrize(
    ("keys", "declared", "says"),
    [
        ((AGE,), LIMITS, r"hb\.edges"),
        ((WARD,), Limits(rows=1), "max_groups"),
        ((WARD,), Limits(groups=1), "max_rows"),
        ((), Limits(groups=1), "max_total"),
    ],
)
def test_what_is_not_declared_is_named(keys: tuple[Column, ...], declared: Limits, says: str) -> None:
    with pytest.raises(hb.PolicyError, match=says):
        plan(COUNT, keys=keys, declared=declared)


def test_a_condition_has_the_groups_false_and_true() -> None:
    old = Compare(">", AGE, Literal(65))
    assert plan(COUNT, keys=(old,)).domains == ((False, True),)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "kind"),
    [("A", Kind.INTEGER), (1.5, Kind.INTEGER), (True, Kind.INTEGER), (1, Kind.TEXT), (2**70, Kind.INTEGER)],
)
def test_a_value_the_column_cannot_hold_is_refused(value: object, kind: Kind) -> None:
    with pytest.raises(hb.PolicyError, match="never equal"):
        fitted(value, kind, "c")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "kind", "held"),
    [
        ("2024-05-01T01:00:00+02:00", Kind.TIMESTAMP, dt.datetime(2024, 4, 30, 23)),
        ("2024-05-01T01:00:00Z", Kind.TIMESTAMP, dt.datetime(2024, 5, 1, 1)),
        ("2024-05-01 01:00:00", Kind.TIMESTAMP, dt.datetime(2024, 5, 1, 1)),
        ("2024-05-01", Kind.TIMESTAMP, dt.datetime(2024, 5, 1)),
        ("2024-05-01", Kind.DATE, dt.date(2024, 5, 1)),
        (dt.date(2024, 5, 1), Kind.TIMESTAMP, dt.datetime(2024, 5, 1)),
        (1.0, Kind.INTEGER, 1),
        (1, Kind.NUMBER, 1.0),
    ],
)
def test_a_declared_value_is_held_as_the_column_holds_it(value: object, kind: Kind, held: object) -> None:
    found = fitted(value, kind, "c")  # type: ignore[arg-type]
    assert (found, type(found)) == (held, type(held))
