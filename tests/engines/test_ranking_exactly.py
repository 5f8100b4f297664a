"""What ranking in this process answers, held to a few lines of Python that do it one row at a time, in integers.

No engine and no SQL: random rows of units of every shape, hashes that meet, NULL, NaN and infinity, in one part and in
many; the same in every run.
"""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hubbub.engines.duckdb import pieces, ranking
from hubbub.engines.duckdb.pieces import ODD, PART_BITS, Keys
from hubbub.engines.duckdb.ranking import Places
from hubbub.engines.duckdb.room import Room
from hubbub.noise import Grid
from hubbub.sql.emit.ranked import certain, columns_of_rows, few_whole, looked_at, ranks
from hubbub.tables.expressions import Call, Case, Column, IsNull, Literal
from hubbub.tables.kinds import Kind
from hubbub.tables.measure import Bounds, Measurement, MeasurementKind as Counting, Value
from hubbub.tables.plan import Plan

A, B, FLAG = (Column(f"t.{name}", Kind.NUMBER) for name in ("a", "b", "flag"))
SEEN = IsNull(FLAG)
OFTEN = Call("COALESCE", (FLAG, Literal(3)))
FEW = Case((SEEN,), (Literal(1),), Literal(-2))
SELDOM = Case((SEEN,), (Literal(1),), Literal(None))


def random_value(rng: Random) -> Value:
    argument = rng.choice([A, A, B, OFTEN, FEW, SELDOM])
    floor = rng.choice([-9, 0, 0, 0, -300, -40_000, -(2**40)])
    ceiling = floor + rng.choice([9, 127, 128, 255, 2**15, 2**16 - 1, 2**20, 2**31, 2**32 - 1, 2**45])
    if argument in (FEW, SELDOM):
        floor, ceiling = rng.choice([(-2, 1), (-100, 100), (-5, 70_000)])
    centre = rng.choice([0, (floor + ceiling) // 2])
    return Value(argument, Grid(0), floor, ceiling, centre, rng.random() < 0.6)


def random_measurement(rng: Random, values: list[Value]) -> Measurement:
    match rng.choice(["rows", "units", "units of", "values", "sum", "sum", "capped", "product", "product"]):
        case "rows":
            return Measurement(Counting.ROWS)
        case "units":
            return Measurement(Counting.UNITS)
        case "units of":
            return Measurement(Counting.UNITS, rng.choice([A, FLAG, SEEN]))
        case "values":
            return Measurement(Counting.VALUES, rng.choice([A, B, FLAG, SEEN]))
        case "capped":
            nonnegative = Value(B, Grid(0), 0, rng.choice([9, 2**40]), 0)
            return Measurement(Counting.SUM, None, (nonnegative,), cap=rng.randint(1, 20))
        case "product":
            small = [v for v in values if max(abs(v.low), v.high) < 2**30] or [Value(A, Grid(0), -9, 9, 0)]
            pair = rng.choice(small), rng.choice(small)
            return Measurement(Counting.PRODUCT, None, pair, shift=rng.choice([0, 1, 7]), centre=rng.choice([0, 3]))
    return Measurement(Counting.SUM, None, (rng.choice(values),))


def random_plan(rng: Random) -> Plan:
    values = [random_value(rng) for _ in range(3)]
    measured = [random_measurement(rng, values) for _ in range(rng.randint(1, 4))]
    if rng.random() < 0.5:
        floor = rng.choice([-9, 0, 40])
        listed = Value(rng.choice([A, B]), Grid(0), floor, floor + rng.choice([1, 12, 200]), 0, rng.random() < 0.5)
        measured.insert(rng.randrange(len(measured) + 1), Measurement(Counting.QUANTILES, None, (listed,)))
    if rng.random() < 0.3:
        measured.insert(rng.randrange(len(measured) + 1), Measurement(Counting.DISTINCT, A))
    sizes = rng.choice([(), (1,), (5,), (3, 4), None, (None, None)])
    domains = (None,) if sizes is None else tuple(s if s is None else tuple(range(s)) for s in sizes)
    bounds = Bounds(rng.randint(1, 4), rng.randint(1, 3))
    return Plan(None, (), False, bounds, domains, tuple(dict.fromkeys(measured)), {})  # type: ignore[arg-type]


def random_units(rng: Random) -> tuple[list[Any], pa.DataType]:
    back = pow(int(ODD), -1, 2**64)  # times this, numbers share their highest bits once they are mixed
    match rng.choice(["signed", "small", "wide", "text"]):
        case "signed":
            return [(i * back % 2**64) - 2**63 if i % 3 else i - 7 for i in range(14)], pa.int64()
        case "small":
            return list(range(-6, 8)), pa.int8()
        case "wide":
            return [2**64 - 1 - i if i % 2 else i * back % 2**64 for i in range(14)], pa.uint64()
    return [*"abcdefghijk", "", "a\0", "x" * 300], pa.string()


Row = dict[str, Any]


def random_rows(rng: Random, plan: Plan, units: list[Any]) -> list[Row]:
    """Rows with what `ranked_sql` gives of each; a hash is a function of the unit and the group."""
    hashes: dict[Any, int] = defaultdict(lambda: rng.choice([0, 1, 5, 2**64 - 1, rng.getrandbits(64)]))
    count = plan.group_count
    found = [None, "a", "b", "", "c"]
    here = units[: rng.choice([1, 3, len(units)])]
    numbers = [None, 0.0, -0.0, 0.5, 1.5, 2.5, -1.5, -7.0, 33.3, 1e300, math.inf, -math.inf, math.nan, 2.0**44 + 1]
    numbers += [127.0, 128.0, 250.0, 2.0**15, 65_000.0, 2.0**31, 4e9]
    rows: list[Row] = []
    for _ in range(rng.choice([0, 1, 30, 120])):
        unit = rng.choice(here)
        group = tuple(rng.choice(found) for _ in plan.domains) if plan.private_keys else rng.randrange(count or 1)
        row = {"unit": unit, "group": group, "hash": hashes[unit, group], "u": hash(unit) % 64}
        row |= {"a": rng.choice(numbers), "b": rng.choice([None, 3.0, 4.0]), "flag": rng.choice([None, 2.0])}
        rows.append(row)
    return rows


def of(argument: Any, row: Row) -> float | None:
    """What an expression is in a row."""
    if argument in (A, B, FLAG):
        return row[argument.name[2:]]
    missing = row["flag"] is None
    if argument == SEEN:
        return float(missing)
    if argument == OFTEN:
        return 3.0 if missing else row["flag"]
    return 1.0 if missing else -2.0 if argument == FEW else None


def batches(rng: Random, plan: Plan, rows: list[Row], kind: pa.DataType) -> list[pa.RecordBatch]:
    what = columns_of_rows(plan)
    columns: list[Any] = [pa.array([r["unit"] for r in rows], kind)]
    if not pa.types.is_integer(kind):
        columns.append(pa.array([r["u"] for r in rows], pa.uint8()))
    if plan.private_keys:
        columns += [pa.array([r["group"][i] for r in rows], pa.string()) for i in range(what.keys)]
    elif what.keys:
        columns.append(pa.array([r["group"] for r in rows], pa.int32()))
    if what.hashed:
        columns.append(pa.array([r["hash"] for r in rows], pa.uint64()))
    for value in what.values:
        columns.append(pa.array([of(value.argument, r) for r in rows], pa.float64()))
        if few_whole(value):
            columns[-1] = columns[-1].cast(pa.int8())
    columns += [pa.array([int(of(e, r) is not None) for r in rows], pa.int8()) for e in what.counted]
    table = pa.table(columns, [f"c{i}" for i in range(len(columns))])
    size = rng.choice([3, 7, 200])
    # Slices, so that columns begin within their buffers.
    return [b for i in range(0, len(rows), size) for b in table.slice(i, size).to_batches()]


def steps(value: Value, row: Row) -> int | None:
    """A row's integer: rounded half to even, clamped, NaN above all; None where it is left out."""
    x = of(value.argument, row)
    if x is None:
        return None if value.nullable else (value.floor + value.ceiling) // 2 - value.centre
    if math.isnan(x) or x >= value.ceiling:
        return value.ceiling - value.centre
    return (value.floor if x <= value.floor else round(Fraction(x))) - value.centre


def part(measurement: Measurement, limit: int, rows: list[Row]) -> int:
    """What a unit counts with in a group, of which these are its rows."""
    there = [r for r in rows if measurement.argument is None or of(measurement.argument, r) is not None]
    if measurement.counting is Counting.UNITS:
        return min(1, len(there))
    if not measurement.values:
        return min(limit, len(there))
    integers = [[steps(v, r) for v in measurement.values] for r in rows]
    kept = [i for i in integers if None not in i]
    if measurement.counting is Counting.PRODUCT:
        total = sum((i * j >> measurement.shift) - measurement.centre for i, j in kept)
    else:
        total = sum(i for (i,) in kept)
    if measurement.cap:
        return min(total, measurement.cap)
    if len(kept) > limit:
        total = abs(total) * limit // len(kept) * (1 if total > 0 else -1)
    return total


def by_hand(plan: Plan, rows: list[Row], places: Any) -> tuple[dict[Any, list[int]], dict[int, dict[Any, int]]]:
    """The sums of each group in which some unit counts; of each list, how often each step of a group is there."""
    pairs: dict[Any, dict[Any, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        pairs[row["unit"]][row["group"]].append(row)
    ranked = columns_of_rows(plan).hashed
    sums: dict[Any, list[int]] = {}
    lists: dict[int, dict[Any, int]] = {
        i: defaultdict(int) for i, m in enumerate(plan.measurements) if m.counting is Counting.QUANTILES
    }
    added = [m for m in plan.measurements if m.counting not in (Counting.DISTINCT, Counting.QUANTILES)]
    for groups in pairs.values():
        order = sorted(groups, key=lambda g: (groups[g][0]["hash"], in_order(g)))
        for group in order[: plan.bounds.groups] if ranked else order:
            parts = [part(m, plan.bounds.rows, groups[group]) for m in added]
            sums[group] = [a + b for a, b in zip(sums.get(group, [0] * len(added)), parts, strict=True)]
            for i, counted in lists.items():
                value = plan.measurements[i].values[0]
                listed = [s + value.centre for r in groups[group] if (s := steps(value, r)) is not None]
                listed.sort(key=lambda s: (places(value)[1][s - value.floor], s))
                for step in listed[: plan.bounds.rows]:
                    counted[group, step] += 1
    return sums, lists


def in_order(group: Any) -> Any:
    return tuple((v is None, v) for v in group) if isinstance(group, tuple) else group


def hashed_steps(rng: Random) -> Any:
    """The order in which values are kept: `Places` for the room, the hashes themselves for the hand."""
    made: dict[Any, Any] = {}

    def places(value: Value) -> Any:
        ends = value.floor, value.ceiling
        if ends not in made:
            hashed = np.array([rng.choice([3, rng.getrandbits(64)]) for _ in range(ends[1] - ends[0] + 1)], np.uint64)
            made[ends] = Places(value.floor, hashed), hashed.tolist()
        return made[ends]

    return places


def numbered(plan: Plan, key: tuple[Any, ...]) -> Any:
    """A group's key as the rows have it: the number of a public one."""
    if plan.private_keys:
        return key
    number = 0
    for size, place in zip((len(d) for d in plan.domains if d is not None), key, strict=True):
        number = number * size + place
    return number


@pytest.mark.parametrize("start", range(0, 400, 40))
def test_what_units_count_with_is_what_a_few_lines_of_python_say(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(start, start + 40):
        rng = Random(seed)
        plan, (units, kind) = random_plan(rng), random_units(rng)
        rows, places = random_rows(rng, plan, units), hashed_steps(rng)
        monkeypatch.setattr(pieces, "FEW_ROWS", rng.choice([1, 40, 10**6]))
        monkeypatch.setattr(ranking, "TALLIED", rng.choice([1, 1 << 24]))
        cut = batches(rng, plan, rows, kind)
        expected, listed = by_hand(plan, rows, places)
        with Room(10**9).share() as share:
            found = ranking.bounded(cut, plan, share, lambda value, at=places: at(value)[0])
        assert found is not None, seed
        width = len(plan.domains)
        sums = {numbered(plan, row[:width]): list(row[width:]) for row in found.sums}
        assert len(sums) == len(found.sums), seed
        assert sums == expected, seed
        assert set(found.lists) == set(listed), seed
        assert list(map(in_order, sums)) == sorted(map(in_order, sums)), seed
        for i, counted in listed.items():
            histogram = found.lists[i]
            names = histogram.names
            keys = histogram.group.tolist() if names is None else [names[g] for g in histogram.group]
            seen = dict(zip(zip(keys, histogram.step.tolist(), strict=True), histogram.count.tolist(), strict=True))
            assert seen == counted, seed
            order = list(zip(histogram.group.tolist(), histogram.step.tolist(), strict=True))
            assert order == sorted(set(order)), seed


def test_a_few_whole_numbers_are_kept_about_a_centre_beyond_their_type() -> None:
    value = Value(Case((SEEN,), (Literal(125),), Literal(121)), Grid(0), 120, 140, 130)
    assert few_whole(value)
    (whole,) = pieces._clamped(pa.array([125, 121], pa.int8()), value)
    assert whole.tolist() == [-5, -9]


def test_units_are_cut_into_parts_by_themselves_alone() -> None:
    """All rows of a unit are in one part, and no part has all of them."""
    plan = Plan(None, (), False, Bounds(1, 1), (), (Measurement(Counting.ROWS),), {})  # type: ignore[arg-type]
    unit = np.random.default_rng(3).integers(-(2**63), 2**63 - 1, 500).repeat(3)
    table = pa.table({"unit": np.concatenate([unit, unit])})
    with pytest.MonkeyPatch.context() as patch, Room(10**7).share() as share:
        patch.setattr(pieces, "FEW_ROWS", 100)
        parts = pieces.parts_of(table.to_batches(max_chunksize=70), columns_of_rows(plan), None, share)
    assert parts is not None
    assert len(parts) == 2**PART_BITS
    held = [set(np.concatenate([p[0] for p in part.pieces]).tolist()) for part in parts if part.pieces]
    assert sum(map(len, held)) == len(set.union(*held)) == 500
    assert len(held) > 50
    assert sum(part.rows for part in parts) == len(table)
    for part in (p for p in parts if p.pieces):
        split, (units, _) = part.taken()
        assert len(set((pieces.mixed(units) >> np.uint64(64 - split)).tolist())) == 1
        assert split == PART_BITS
        assert not part.pieces


def test_a_part_says_how_much_it_holds() -> None:
    plan = Plan(None, (), False, Bounds(1, 1), (), (Measurement(Counting.VALUES, A),), {})  # type: ignore[arg-type]
    table = pa.table({"unit": np.arange(1000), "y": np.ones(1000, np.int8)})
    for size, fits in ((9_999, False), (11_000, True)):
        with Room(size).share() as share:
            parts = pieces.parts_of(table.to_batches(), columns_of_rows(plan), None, share)
            assert (parts is not None) == fits
            assert (share._held >= 10_000) == fits
    assert parts is not None
    assert sum(part.nbytes for part in parts) == 10_000


@pytest.mark.parametrize(("columns", "most"), [(1, 3), (2, 3), (2, 4)])
def test_of_too_many_groups_none_is_numbered(columns: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "MOST_FOUND", most)
    keys = Keys()
    arrays = [pa.array(["a", "b", "a", "b"]), pa.array(["x", "x", "y", "y"])][:columns]
    assert (keys.of(arrays) is None) == (columns == 2 and most == 3)
    one_more = [pa.array([f"{i}" for i in range(most)])] * columns
    assert keys.of(one_more) is None


def test_a_sum_is_left_to_the_engine_from_the_size_on_where_it_might_not_fit() -> None:
    """64 bits less one of room: the largest row times the rows of a pair must stay below 2^62."""
    for low, high, rows, fits in (
        (0, 2**61, 1, True), (0, 2**61, 2, False), (-(2**61), 1, 2, False), (-(2**61), 1, 1, True),
        (0, 2**62 - 1, 1, True), (0, 2**62, 1, False),
    ):  # fmt: skip
        value = Value(OFTEN, Grid(0), low, high, 0)
        plan = Plan(None, (), False, Bounds(1, 1), (), (Measurement(Counting.SUM, None, (value,)),), {})  # type: ignore[arg-type]
        table = pa.table({"unit": [0] * rows + [1], "x": np.ones(rows + 1)})
        with Room(10**6).share() as share:
            found = ranking.bounded(table.to_batches(), plan, share, lambda value: Places(0, np.zeros(1, np.uint64)))
        assert (found is not None) == fits, (low, high, rows)


def made(*measured: Measurement, domains: Any = (), **more: Any) -> Plan:
    keys = tuple(type("Key", (), {"kind": k})() for k in more.pop("kinds", ()))
    bounds = more.pop("bounds", Bounds(1, 1))
    return Plan(None, keys, more.pop("one_row", False), bounds, domains, measured, {}, **more)  # type: ignore[arg-type]


SUM, OTHER = (Measurement(Counting.SUM, None, (Value(x, Grid(0), 0, 9),)) for x in (A, B))
ROWS, LISTS = Measurement(Counting.ROWS), Measurement(Counting.QUANTILES, None, (Value(A, Grid(0), 0, 9),))


def test_what_is_ranked_here() -> None:
    """Lists, two sums or more, and sums of groups that a unit may have too many of; of keys that Python orders."""
    four = (tuple(range(4)),)
    product = Measurement(Counting.PRODUCT, None, (SUM.values[0], SUM.values[0]))
    distinct = Measurement(Counting.DISTINCT, A)
    assert ranks(made(LISTS))
    assert ranks(made(SUM, OTHER))
    assert ranks(made(SUM, product))
    assert not ranks(made(SUM))
    assert not ranks(made(SUM, ROWS))
    assert not ranks(made(ROWS))
    assert ranks(made(ROWS, domains=four, kinds=[Kind.NUMBER]))
    assert not ranks(made(distinct, domains=four, kinds=[Kind.NUMBER]))
    assert not ranks(made(ROWS, domains=four, kinds=[Kind.NUMBER], bounds=Bounds(4, 1)))
    assert not ranks(made(LISTS, one_row=True))
    assert not ranks(made(LISTS, search=object()))
    assert (
        not ranks(made(SUM, OTHER, norm="l1", domains=four, kinds=[Kind.TEXT]))
        or not made(SUM, OTHER, norm="l1", domains=four, kinds=[Kind.TEXT]).clipping
    )
    for kind in (Kind.TEXT, Kind.INTEGER, Kind.DATE, Kind.TIMESTAMP, Kind.BOOLEAN):
        assert ranks(made(LISTS, domains=(None,), kinds=[kind]))
        assert ranks(made(LISTS, domains=(None, (1, 2)), kinds=[kind, Kind.NUMBER]))
    assert not ranks(made(LISTS, domains=(None,), kinds=[Kind.NUMBER]))
    assert not ranks(made(LISTS, domains=(None, None), kinds=[Kind.TEXT, Kind.NUMBER]))


def test_which_columns_the_rows_have() -> None:
    counts = (Measurement(Counting.VALUES, A), Measurement(Counting.VALUES, FLAG), Measurement(Counting.UNITS, SEEN))
    distinct = Measurement(Counting.DISTINCT, B)
    plan = made(SUM, *counts, distinct, OTHER, SUM, LISTS, domains=((1, 2), (3, 4)), kinds=[Kind.INTEGER] * 2)
    what = columns_of_rows(plan)
    # A is told by its value, SEEN is always there, and what is counted by its values is not looked at.
    assert (what.keys, what.hashed, what.counted) == (1, True, (FLAG,))
    assert what.values == (SUM.values[0], OTHER.values[0])
    assert looked_at(plan) == (0, 1, 2, 3, 5, 6, 7)
    assert columns_of_rows(made(SUM)).keys == 0
    assert not columns_of_rows(made(SUM)).hashed
    assert columns_of_rows(made(SUM, domains=(None, (1, 2), None))).keys == 3
    assert not columns_of_rows(made(SUM, domains=((1, 2),), bounds=Bounds(2, 1))).hashed


def test_what_is_never_null_and_what_is_a_few_whole_numbers() -> None:
    both = Case((SEEN,), (Literal(1),), OFTEN)
    for node, sure in (
        (Literal(1), True), (Literal(None), False), (Literal(0), True), (SEEN, True), (A, False), (FEW, True),
        (SELDOM, False), (Case((SEEN,), (A,), Literal(1)), False), (OFTEN, True), (Call("COALESCE", (A, B)), False),
        (both, True), (Call("ABS", (Literal(1),)), False),
    ):  # fmt: skip
        assert certain(node) == sure, node
    for node, floor, ceiling, few in (
        (FEW, -2, 1, True), (FEW, -1, 1, False), (FEW, -2, 0, False), (SELDOM, 1, 1, True), (A, 0, 1, False),
        (Literal(127), 0, 500, True), (Literal(128), 0, 500, False), (Literal(-128), -200, 0, True),
        (Literal(-129), -200, 0, False), (Literal(None), 0, 1, True), (Literal(True), 0, 1, False),
        (Literal(Fraction(1)), 0, 1, False), (both, 0, 9, False),
    ):  # fmt: skip
        assert few_whole(Value(node, Grid(0), floor, ceiling)) == few, (node, floor, ceiling)
    assert not few_whole(Value(FEW, Grid(-1), -2, 1))
    assert not few_whole(Value(FEW, Grid(0), -2, 1, clock=object()))  # type: ignore[arg-type]
