"""What the owner of a table declares, and what a wrong declaration is told."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.errors import PolicyError
from hubbub.tables.columns import Between, OneOf


def test_bounds_are_read_as_they_are_written() -> None:
    assert hb.between(0.1, 0.3) == Between(Fraction(1, 10), Fraction(3, 10))
    assert hb.between("2025-01-01", "2025-12-31").low == dt.date(2025, 1, 1)
    assert hb.between("2025-01-01 10:00", "2025-12-31 11:00").high == dt.datetime(2025, 12, 31, 11)


@pytest.mark.parametrize(
    ("low", "high", "says"),
    [
        (1, 1, "lower bound must be below"),
        (2, 1, "lower bound must be below"),
        (Decimal("0.1"), Decimal("0.10000000000000000001"), "not the same double"),
        (Fraction(10**17), Fraction(10**17 + 1, 1) + Fraction(1, 2), "not the same double"),
        (np.datetime64("NaT"), dt.datetime(2026, 1, 1), "NaT.*; expected a number"),
        (float("nan"), 1, "finite"),
        (0, float("inf"), "finite"),
        (None, 1, "expected a number"),
        (True, 2, "expected a number"),
        ("old", "new", "ISO"),
        (0, "2025-01-01", "two kinds"),
        (dt.date(2025, 1, 1), dt.datetime(2025, 1, 2), "two kinds"),
        ([0], 1, "expected a number"),
        (b"1", b"3", "expected a number"),
        (np.bool_(False), 1, "expected a number"),
        (np.datetime64("2025-01-01T00:00:00.000000001"), dt.datetime(2026, 1, 1), "expected a number"),
        (pd.NaT, dt.datetime(2026, 1, 1), "expected a number"),
        pytest.param(0, 10**400, "beyond 1.79e308; bounds are finite", id="beyond a double"),
        (0, Fraction(10**400, 3), "beyond 1.79e308; bounds are finite"),
        (dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5))), dt.datetime(2026, 1, 1), "years 1 to 9999"),
        ("2025-01-02T00:30:00+01:00", "2025-01-01T23:30:00", "lower bound must be below"),
    ],
)
def test_wrong_bounds_are_refused(low: object, high: object, says: str) -> None:
    with pytest.raises(hb.PolicyError, match=says):
        hb.between(low, high)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_a_bound_beyond_the_years_of_a_zone_is_refused_and_not_taken_for_another_hour(zone: str) -> None:
    ends = [dt.datetime(1, 1, 1, 0, 30, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, 23, 30, tzinfo=dt.UTC)]
    with pytest.raises(hb.PolicyError, match="years 1 to 9999"):
        hb.between(*ends, tz=zone)
    assert hb.between(*ends) == hb.between(*(end.replace(tzinfo=None) for end in ends))


def test_neighbouring_whole_numbers_are_bounds_of_a_column_of_integers() -> None:
    assert hb.between(2**53, 2**53 + 1).high == 2**53 + 1


@pytest.mark.parametrize("nothing", [np.datetime64("NaT"), np.timedelta64("NaT"), pd.NaT], ids=repr)
def test_nat_declares_no_group_of_null(nothing: Any) -> None:
    with pytest.raises(hb.PolicyError, match="NaT"):
        hb.one_of(dt.date(2025, 1, 1), nothing)


def test_bounds_with_an_offset_are_the_moments_that_they_name() -> None:
    """They may stand beside plain ones, which are in UTC, or in the column's zone."""
    low, high = "2025-01-01T00:00:00+02:00", "2025-01-09T23:59:59"
    assert hb.between(low, high) == hb.between("2024-12-31T22:00:00", high)
    in_rome = hb.between(low, high, tz="Europe/Rome")
    assert in_rome == hb.between("2024-12-31T23:00:00", high, tz="Europe/Rome")
    at = pa.table({"id": [1, 2], "at": [dt.datetime(2024, 12, 31, 23), dt.datetime(2025, 1, 2, 23)]})
    columns: dict[str, Any] = {
        "at": hb.between("2025-01-01T00:00:00+01:00", "2025-01-03T23:00:00+01:00", tz="Europe/Rome")
    }
    tables: dict[str, Any] = {"t": hb.table(at, unit="id", max_groups=1, max_rows=1, columns=columns)}
    with (
        pytest.warns(UserWarning, match="ledger=None"),
        hb.Session(tables, budget=hb.Budget(epsilon=10**9), ledger=None) as session,
    ):
        days = session.sql("SELECT CAST(at AS DATE) AS d, COUNT(*) AS c FROM t GROUP BY 1", epsilon=10**6).rows()
    assert days == [(dt.date(2025, 1, 1), 1), (dt.date(2025, 1, 2), 0), (dt.date(2025, 1, 3), 1)]


@pytest.mark.parametrize("other", [hb.one_of("2025-01-01", "2025-01-02"), hb.one_of(dt.date(2025, 1, 1))])
def test_days_that_are_declared_as_texts_are_days(other: Any) -> None:
    """They have a first and a last one, and stand beside others in UNION."""
    days = pa.table({"id": [1, 2], "d": pa.array([dt.date(2025, 1, 1), dt.date(2025, 1, 2)])})
    tables: dict[str, Any] = {
        name: hb.table(days, unit="id", max_groups=2, max_rows=2, columns={"d": declared})
        for name, declared in (("a", hb.one_of("2025-01-01", "2025-01-02")), ("b", other))
    }
    both = "(SELECT id, d FROM a UNION ALL SELECT id, d FROM b) AS q"
    with pytest.warns(UserWarning, match="ledger="), hb.Session(tables, budget=hb.Budget("1e9"), ledger=None) as s:
        assert s.sql("SELECT AVG(DAY(d)) AS m FROM a", epsilon=10**7).rows() == [(pytest.approx(1.5, abs=1e-3),)]
        assert s.sql(f"SELECT SUM(YEAR(d)) FROM {both}", epsilon=10**7).rows() == [(pytest.approx(8100, abs=1),)]
        counted = s.sql(f"SELECT d, COUNT(*) FROM {both} GROUP BY d", epsilon=10**7).rows()
    assert counted == [(dt.date(2025, 1, 1), 2), (dt.date(2025, 1, 2), 2)]


def test_what_numpy_holds_is_read_whole() -> None:
    assert hb.between(0, np.int64(2**53 + 1)).high == 2**53 + 1
    assert hb.edges(0, np.uint64(2**64 - 1)).high == 2**64 - 1
    assert hb.between(np.float64(0.1), np.float32(0.5)) == hb.between(0.1, 0.5)
    first, last = "2025-01-01", "2025-01-02"
    assert hb.between(np.datetime64(first), np.datetime64(last)) == hb.between(first, last)
    moments = np.datetime64(first, "ns"), np.datetime64(last, "ns")
    assert hb.between(*moments) == hb.between("2025-01-01T00:00:00", "2025-01-02T00:00:00")
    assert hb.one_of(*moments).values == (dt.datetime(2025, 1, 1), dt.datetime(2025, 1, 2))


def test_edges_that_are_one_double_make_no_two_groups() -> None:
    """Values are doubles: of two such edges, all that is there would fall into one of two groups of one name."""
    with pytest.raises(hb.PolicyError, match="must increase"):
        hb.edges(0, Decimal("0.1"), Decimal("0.10000000000000000001"), 1)


@pytest.mark.parametrize(
    "declare",
    [
        lambda: hb.between(0, 1, nullable="no"),  # type: ignore[call-overload]
        lambda: hb.edges(0, 1, nullable=0),  # type: ignore[arg-type]
        lambda: hb.between(0, "auto", tz="Europe/Rome"),
        lambda: hb.one_of("a", other="\ud800"),
        lambda: hb.one_of(10**5000, 1),
    ],
)
def test_words_that_would_be_read_otherwise_are_refused(declare: Callable[[], object]) -> None:
    with pytest.raises(hb.PolicyError):
        declare()


def test_values_keep_their_order_and_none_is_one_of_them() -> None:
    assert hb.one_of("B", "A", None).values == ("B", "A", None)
    assert hb.one_of(np.int64(3), np.int64(1)).values == (3, 1)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ((), "at least one"),
        (("A", "A"), "twice"),
        ((0.0, -0.0), "twice"),
        (("A", 1), "mixed kinds"),
        ((float("nan"),), "never match"),
        ((["A", "B"],), r"one_of\(\*list\)"),
        ((object(),), "expected text"),
    ],
)
def test_wrong_values_are_refused(values: tuple[object, ...], says: str) -> None:
    with pytest.raises(hb.PolicyError, match=says):
        hb.one_of(*values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"unit": ""}, "EACH_ROW"),
        ({"unit": None}, "EACH_ROW"),
        ({"unit": "id", "max_groups": 0}, "max_groups=0"),
        ({"unit": "id", "max_rows": True}, "max_rows=True"),
        ({"unit": "id", "max_total": 2.5}, "max_total=2.5"),
        ({"unit": "id", "neighbours": "both"}, "add_remove"),
        ({"unit": "id", "columns": {"a": (0, 1)}}, r"hb\.between"),
        ({"unit": "id", "types": {"a": "int"}}, "integer"),
    ],
)
def test_wrong_tables_are_refused(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(hb.PolicyError, match=says):
        hb.table("people.parquet", **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "held"), [(2**63 - 1, True), (2**63, False), (-(2**63), True), (-(2**63) - 1, False)]
)
def test_a_declared_number_is_one_that_its_column_can_hold(value: int, held: bool) -> None:
    table = hb.table(pa.table({"id": [1], "n": [1]}), unit="id", columns={"n": hb.one_of(1, value)})
    with hb.Session({"p": table}, budget=hb.Budget(epsilon=1), ledger=None) as session:
        sql = "SELECT n, COUNT(*) FROM p GROUP BY n"
        if held:
            assert session.check(sql, epsilon=1, max_groups=1, max_rows=1)
            return
        with pytest.raises(PolicyError, match="holds values of type integer, which are never equal to that"):
            session.check(sql, epsilon=1, max_groups=1, max_rows=1)


def test_a_source_is_a_path_or_a_frame() -> None:
    with pytest.raises(hb.PolicyError, match="expected a path"):
        hb.table({"a": [1]}, unit="a")
    with pytest.raises(hb.PolicyError, match="expected a path"):
        hb.public(3)


def test_declarations_print_as_they_are_written() -> None:
    assert repr(hb.between(0, 2.5, nullable=False)) == "between(0, 2.5, nullable=False)"
    assert repr(OneOf(("A", None))) == "one_of('A', None)"
    assert repr(hb.EACH_ROW) == "EACH_ROW"
    assert "people" not in repr(hb.table("people.parquet", unit="id"))


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": 5},
        {"columns": "x"},
        {"types": 5},
        {"through": 5},
        {"through": [[]]},
        {"bounding": [1]},
        {"neighbours": ["add_remove"]},
    ],
)
def test_what_is_no_mapping_is_refused_in_our_words(changes: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match=f"^{next(iter(changes))}"):
        hb.table("people.parquet", unit="id", **changes)
