"""A few ratings find a row, unless every row was randomised by its owner."""

from __future__ import annotations

import numpy as np
import pytest

from attacks.helpers import slack
from hubbub import attacks
from hubbub.errors import ParameterError
from hubbub.noise import choice, uniform_below
from seeded import SeededBits


def films(users: int, items: int, each: int, bits: SeededBits) -> attacks.RatingTable:
    """Users rate films whose popularity falls like 1/rank, with 1 to 5 stars on some day of two years."""
    weights = [1 / (i + 5) for i in range(items)]
    item = np.asarray(choice(weights, (users, each), bits=bits))
    pairs = np.unique(np.stack([np.repeat(np.arange(users), each), item.ravel()], 1), axis=0)
    n = len(pairs)
    return attacks.RatingTable(
        pairs[:, 0], pairs[:, 1], uniform_below(5, n, bits=bits) + 1, uniform_below(730, n, bits=bits)
    )


def known_of(table: attacks.RatingTable, targets, count: int, bits: SeededBits):
    """`count` ratings of each target: days two weeks off either way, and the last rating wrong altogether."""
    known = []
    for user in targets:
        mine = np.flatnonzero(table.users == user)
        mine = mine[np.argsort(uniform_below(1 << 40, len(mine), bits=bits))][:count]
        shift = uniform_below(29, len(mine), bits=bits) - 14
        entries = [(table.items[i], table.ratings[i], table.days[i] + s) for i, s in zip(mine, shift, strict=True)]
        entries[-1] = (entries[-1][0], 6 - entries[-1][1], entries[-1][2] + 300)
        known.append(entries)
    return known


def test_eight_ratings_one_of_them_wrong_name_nearly_every_row():
    bits = SeededBits("films")
    table = films(3000, 800, 40, bits)
    targets = np.arange(0, 3000, 30)
    found = attacks.deanonymise(table, known_of(table, targets, 8, bits), targets)
    assert found.success >= 0.95
    assert found.wrong <= 0.01
    assert found.rows == 3000
    assert len(found.plot().lines) == 1


def test_somebody_who_is_not_in_the_data_is_not_named():
    bits = SeededBits("absent")
    table = films(3000, 800, 40, bits)
    targets = np.arange(0, 3000, 30)
    known = known_of(table, targets, 8, bits)
    stays = ~np.isin(table.users, targets)
    without = attacks.RatingTable(table.users[stays], table.items[stays], table.ratings[stays], table.days[stays])
    found = attacks.deanonymise(without, known, targets)
    assert found.wrong <= 0.25
    assert found.success == 0


def test_the_score_is_that_of_the_paper():
    table = attacks.RatingTable(
        ["u", "u", "v", "v", "w"], ["a", "b", "a", "c", "c"], [5, 3, 1, 2, 2], [0, 10, 20, 0, 1]
    )
    (match,) = attacks.deanonymise(table, [[("a", 4, 30), ("b", 3, 10)]], ["u"]).matches
    # Both a (two rows) and b (one row) weigh 1 / ln 2.
    near = np.exp(-1 / 1.5) + np.exp(-30 / 30) + 2
    other = np.exp(-3 / 1.5) + np.exp(-10 / 30)
    assert match.score == pytest.approx(near / np.log(2))
    assert match.eccentricity == pytest.approx((near - other) / np.std([near, other, 0]))
    assert match.best == 0


def test_rare_items_alone_name_rows_without_any_rating():
    table = attacks.RatingTable(["u", "u", "v", "w", "w"], ["rare", "hit", "hit", "hit", "odd"])
    found = attacks.deanonymise(table, [[("rare",)], [("odd",), ("hit",)], [("never",)]], ["u", "w", "v"])
    assert found.right.tolist() == [True, True, False]


@pytest.mark.parametrize("epsilon", ["0.5", "1"])
def test_rows_randomised_by_their_owners_stay_below_the_ceiling(epsilon):
    bits = SeededBits(f"rows {epsilon}")
    table = films(400, 30, 12, bits)
    bare = attacks.RatingTable(table.users, table.items)
    targets = np.arange(400)
    known = [[(item,) for item in table.items[table.users == user]] for user in targets]
    assert attacks.deanonymise(bare, known, targets).best_guess > 0.5
    private = attacks.deanonymise(attacks.randomised_rows(bare, epsilon, bits=bits), known, targets)
    assert private.rows == 400
    assert private.best_guess <= private.ceiling(epsilon) + slack(400)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ParameterError):
        attacks.RatingTable([1, 2], [1])
    with pytest.raises(ParameterError):
        attacks.deanonymise(attacks.RatingTable([1], [1]), [], [])
