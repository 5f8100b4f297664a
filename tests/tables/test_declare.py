"""What the owner of a table declares, and what a wrong declaration is told."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import numpy as np
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
        (float("nan"), 1, "finite"),
        (0, float("inf"), "finite"),
        (None, 1, "expected a number"),
        (True, 2, "expected a number"),
        ("old", "new", "ISO"),
        (0, "2025-01-01", "two kinds"),
        (dt.date(2025, 1, 1), dt.datetime(2025, 1, 2), "two kinds"),
        ([0], 1, "expected a number"),
    ],
)
def test_wrong_bounds_are_refused(low: object, high: object, says: str) -> None:
    with pytest.raises(hb.PolicyError, match=says):
        hb.between(low, high)


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
