"""Who is alone in a few columns, whose name comes back, whose secret the counts give away."""

from __future__ import annotations

import csv
import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from attacks.helpers import slack
from hubbub import attacks
from hubbub.errors import ParameterError
from hubbub.noise import uniform_below
from seeded import SeededBits

ADULT = Path(__file__).parents[3] / "shared/data/adult/adult.data"


@pytest.mark.parametrize(("people", "cells"), [(2000, 1000), (5000, 10_000), (3000, 500)])
def test_the_share_of_unique_people_is_exp_of_minus_people_over_cells(people, cells):
    found = attacks.uniqueness({"cell": uniform_below(cells, people, bits=SeededBits(people))}, ["cell"])
    expected = attacks.expected_uniqueness(people, cells)
    assert expected == pytest.approx(math.exp(-(people - 1) / cells), rel=0.02)
    # A person moves the share by at most 2/people: McDiarmid, false alarm below 1e-9.
    assert abs(found.success - expected) <= 2 * slack(people, 5e-10)
    assert found.people == people
    assert found.unique == round(found.success * people)


def test_a_handful_of_columns_makes_everybody_unique():
    bits = SeededBits("columns")
    table = {f"c{i}": uniform_below(10, 2000, bits=bits) for i in range(6)}
    shares = [attacks.uniqueness(table, [f"c{i}" for i in range(k)]).success for k in range(1, 7)]
    assert shares[0] == 0
    assert shares == sorted(shares)
    assert shares[-1] > 0.99
    assert len(attacks.uniqueness(table, ["c0"]).plot().lines) == 1


def test_columns_of_text_nan_and_none_are_values_like_any_other():
    table = {"a": ["x", None, float("nan"), float("nan"), "x"], "b": [1, 1, 1, 1, 1]}
    found = attacks.uniqueness(table, ["a", "b"])
    assert (found.unique, found.occupied) == (1, 3)
    assert sorted(found.sizes.tolist()) == [1, 2, 2, 2, 2]


def test_linkage_gives_names_back():
    names = {"zip": [1, 1, 2, 3, 3], "sex": ["f", "m", "f", "f", "f"], "name": list("ABCDE")}
    release = {"zip": [2, 1, 3, 1], "sex": ["f", "f", "f", "m"], "illness": list("wxyz")}
    found = attacks.link(release, names, ["zip", "sex"], truth=[2, 0, 4, 1])
    assert sorted(zip(found.rows.tolist(), found.names.tolist(), strict=True)) == [(0, 2), (1, 0), (3, 1)]
    assert (found.success, found.precision) == (0.75, 1.0)  # row 2 could be D or E
    wrong = attacks.link(release, names, ["zip", "sex"], truth=[-1, 0, 4, 1])
    assert wrong.precision == pytest.approx(2 / 3)
    assert attacks.link(release, names, ["zip", "sex"]).precision is None
    assert found.success > found.ceiling("0.1")
    assert len(found.plot().lines) == 2


def test_equal_numbers_are_linked_whatever_their_type():
    release = {"zip": np.array([1.0, 2.0]), "vip": np.array([True, False], dtype=object)}
    names = {"zip": np.array([Decimal(2), 1], dtype=object), "vip": np.array([False, True])}
    found = attacks.link(release, names, ["zip", "vip"], truth=[1, 0])
    assert found.success == 1
    mixed = {"zip": np.array([1, True, "1", None], dtype=object)}
    assert attacks.uniqueness(mixed, ["zip"]).success == 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_is_a_table(library):
    frame = pytest.importorskip(library).DataFrame({"a": [1, 1, 2], "b": ["x", "x", "y"], "ill": [True, False, True]})
    assert attacks.uniqueness(frame, ["a", "b"]).unique == 1
    assert attacks.secrets_from_counts(frame, ["a", "b"], "ill").certain == pytest.approx(1 / 3)


def test_a_table_that_does_not_fit_into_memory_is_refused():
    names = np.arange(10_000)
    with pytest.raises(ParameterError, match="fewer values"):
        attacks.secret_counts({"a": names, "b": names}, ["a"], "b")


def people(n: int, cells: int, bits: SeededBits) -> dict[str, object]:
    return {"cell": uniform_below(cells, n, bits=bits), "ill": uniform_below(2, n, bits=bits)}


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1"])
def test_exact_counts_give_secrets_away_and_private_counts_stay_below_the_ceiling(epsilon):
    n, bits = 4000, SeededBits(f"secrets {epsilon}")
    table = people(n, 40_000, bits)
    exact = attacks.secrets_from_counts(table, ["cell"], "ill")
    assert exact.certain >= attacks.expected_uniqueness(n, 40_000) - 2 * slack(n)
    assert exact.success > 0.94
    private = attacks.secrets_from_counts(table, ["cell"], "ill", epsilon=epsilon, bits=bits)
    assert private.success <= private.ceiling(epsilon) + 2 * slack(n)
    assert exact.success > exact.ceiling(epsilon) + 2 * slack(n)  # so the test can fail


def test_what_a_group_says_of_its_members_is_no_attack_on_them():
    """In a cell of a thousand of whom all are ill, everybody is known to be ill, in the data or not."""
    table = {"cell": [0] * 1000 + [1] * 1000, "ill": [1] * 1000 + [0] * 1000}
    private = attacks.secrets_from_counts(table, ["cell"], "ill", epsilon="0.5", bits=SeededBits(1))
    assert (private.success, private.baseline) == (1.0, 1.0)
    assert private.ceiling("0.5") == 1
    assert len(private.plot().lines) == 3


def test_the_counts_are_the_exact_ones():
    table = {"cell": [0, 0, 1], "ill": [1, 1, 0]}
    assert attacks.secret_counts(table, ["cell"], "ill").tolist() == [[0, 2], [1, 0]]


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ({"a": [1]}, ["b"]),
        ({"a": []}, ["a"]),
        ({"a": [1, 2], "b": [1]}, ["a", "b"]),
        ({}, []),
        ({"a": [[1, 2]]}, ["a"]),
        ({"a": np.array([{}, {}], dtype=object)}, ["a"]),
    ],
)
def test_tables_that_cannot_be_read_are_refused(table, columns):
    with pytest.raises(ParameterError):
        attacks.uniqueness(table, columns)


@pytest.mark.skipif(not ADULT.exists(), reason="UCI Adult is not here")
def test_census_records_are_unique_in_a_few_columns_and_their_income_is_read_from_counts():
    with ADULT.open() as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if len(row) == 15]
    assert len(rows) == 32_561
    places = {"age": 0, "job": 6, "family": 7, "race": 8, "sex": 9, "hours": 12, "from": 13, "income": 14}
    columns = {name: [row[i] for row in rows] for name, i in places.items()}
    known = ["age", "job", "family", "race", "sex", "hours", "from"]
    exact = attacks.secrets_from_counts(columns, known, "income")
    assert attacks.uniqueness(columns, known).success > 0.35
    assert exact.success > 0.9
    assert exact.certain > 0.5
    private = attacks.secrets_from_counts(columns, known, "income", epsilon="0.1", bits=SeededBits("adult"))
    # Classes are of very different sizes, so the mean is dominated by many independent noises: n = 32,561 people.
    assert private.success <= private.ceiling("0.1") + 2 * slack(len(rows))
    assert exact.success > private.ceiling("0.1") + 0.05
    assert np.isfinite(private.baseline)
