"""The upper triangle of x x^T: how far one unit moves the integers that get noise, over all rows that there can be."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.learning import PCA, LinearRegression, LogisticRegression
from hubbub.learning.bases import turned
from hubbub.learning.exact import HEAVIEST, Coded, triangle_squared
from hubbub.learning.features import ONE, Categories, Design, Numbers
from hubbub.mechanisms.recording import recording
from seeded import SeededBits

DESIGNS = {
    "values": Design({"a": Categories(("u", "v", "w")), "b": Categories(("x", "y"))}),
    "one value": Design({"a": Categories(("u",))}),
    "a number": Design({"n": Numbers(Fraction(0), Fraction(1), linear=True), "b": Categories(("x", "y"))}),
    "bins": Design({"n": Numbers(Fraction(0), Fraction(4), tuple(map(Fraction, range(5))), nullable=True)}),
    "many": Design({name: Categories(("x", "y")) for name in "abcde"}),
}


def triangle(design: Design, codes: tuple[int, ...]) -> list[int]:
    """What one row adds to the sums that get noise."""
    row = Coded(design, [np.array([c]) for c in codes], np.zeros(1, np.int64))
    return [int(v) for v in row.second_moment()[np.triu_indices(design.width)]]


def told_apart(column: Any) -> list[int]:
    """A code of each row of features; of more than a hundred, of each tenth, with both ends."""
    first = np.unique(column.features, axis=0, return_index=True)[1]
    return [int(c) for i, c in enumerate(first) if len(first) <= 100 or i % 10 == 0 or i == len(first) - 1]


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("as_learned", [False, True])
def test_the_longest_triangle_is_the_one_that_is_charged(name: str, as_learned: bool) -> None:
    """By brute force over all rows: the triangle reaches the bound within 1 %, and goes no further."""
    design = turned(DESIGNS[name]) if as_learned else DESIGNS[name]
    every = itertools.product(*map(told_apart, design.columns.values()))
    moved = max(sum(v * v for v in triangle(design, codes)) for codes in every)
    assert 0.99 * triangle_squared(design) < moved <= triangle_squared(design)
    assert 2 * triangle_squared(design) >= design.norm2**2


def test_many_columns_halve_what_is_charged() -> None:
    """Of d columns of values a row has d + 1 features of 1: (d + 1)(d + 2) / 2 products, of (d + 1)^2."""
    assert triangle_squared(DESIGNS["many"]) == ONE**4 * 6 * 7 // 2
    assert DESIGNS["many"].norm2 ** 2 == ONE**4 * 36


def test_a_half_is_rounded_up() -> None:
    """Two codes of which one is longest, and the other has the largest fourth power."""

    class Odd:
        features = np.array([[3, 0, 0], [2, 2, 2]])
        names = ("p", "q", "r")
        size = 2

    design = Design({"odd": Odd()})  # type: ignore[dict-item]
    twice = (ONE**2 + 12) ** 2 + ONE**4 + 81
    assert twice % 2 == 1
    assert 2 * triangle_squared(design) == twice + 1


COLUMNS: dict[str, Any] = {
    "a": hb.one_of("u", "v"),
    "b": hb.between(0, 4),
    "ill": hb.one_of("no", "yes"),
    "pay": hb.between(0, 100),
    "w": hb.between(0, 5),
}
ROWS = [
    {"a": a, "b": b, "ill": "yes", "pay": pay, "w": 5}
    for a, b, pay in itertools.product(("u", "v", "?"), (-7, 1, 4, None), (0, 1000))
]
MODELS: dict[str, Any] = {
    "moments": LinearRegression(["a", "b"], "pay", method="moments"),
    "newton": LogisticRegression(["a", "b"], "ill", method="newton"),
    "PCA": PCA(["a", "b"]),
}


def drawn(model: Any, rows: list[dict[str, Any]], **how: Any) -> tuple[Any, int]:
    """The integers of the triangle that get noise for the rows of one unit, and the squared sensitivity of that."""
    table = {name: [row[name] for row in rows] for name in COLUMNS}
    with recording() as records:
        fitted = model.fit(
            table, columns=COLUMNS, units=np.zeros(len(rows), int), epsilon=1, delta="1e-6", bits=SeededBits(1), **how
        )
    width = fitted.design_.width + isinstance(model, LinearRegression)
    (record,) = [r for r in records if len(r.values) == width * (width + 1) // 2]
    assert record.norm == "l2_squared"
    return np.array(record.values, object), record.sensitivity


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weight", [None, "w"])
def test_what_gets_noise_moves_by_its_sensitivity_at_most(name: str, weight: str | None) -> None:
    """Every unit of one or of two rows, which joins a table, or takes the place of another."""
    model = type(MODELS[name])(**MODELS[name].get_params() | {"weight": weight})
    one = [drawn(model, [row], rows_per_unit=1) for row in ROWS]
    (joined,) = {squared for _, squared in one}
    moved = max((v * v).sum() for v, _ in one)
    assert 0.99 * joined < moved <= joined
    _, twice = drawn(model, [ROWS[0], ROWS[1]], rows_per_unit=2)
    pairs = itertools.combinations_with_replacement([v for v, _ in one], 2)
    moved = max(((v + w) ** 2).sum() for v, w in pairs)
    assert 0.99 * twice < moved <= twice
    _, replaced = drawn(model, [ROWS[0]], rows_per_unit=1, neighbours="replace")
    assert replaced == 2 * joined
    assert max(((v - w) ** 2).sum() for (v, _), (w, _) in itertools.combinations(one, 2)) <= replaced
    assert min((v * w).sum() for (v, _), (w, _) in itertools.combinations(one, 2)) >= 0
    assert joined % (HEAVIEST**2 if weight else 1) == 0
