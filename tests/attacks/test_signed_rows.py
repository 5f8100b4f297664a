"""Signed rows: nobody private makes valid ones, who copies is exposed, and the count itself is answered well."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from hubbub import attacks
from hubbub.attacks import hardness_report, signed_rows, valid_share
from hubbub.errors import ParameterError
from hubbub.synthesis import Domain, synthesize
from seeded import SeededBits

DOMAIN = Domain(tuple(f"byte {i}" for i in range(112)), (256,) * 112)


def private(method: str, epsilon: str):
    def curator(rows):
        bits = SeededBits(f"{method} {epsilon}")
        codes = rows.astype(np.int64)
        return synthesize(codes, DOMAIN, epsilon=epsilon, delta="1e-6", rows=len(rows), method=method, bits=bits).codes

    return curator


def test_all_true_rows_are_valid_and_no_forgery_is() -> None:
    data = signed_rows(60, bits=SeededBits("rows"))
    assert data.rows.shape == (60, 112)
    assert valid_share(data.rows, data.key) == 1
    assert len(set(data.messages)) == 60
    forged = data.rows.copy()
    forged[np.arange(60), np.arange(60) % 80] ^= 1  # one bit of the message, or of the signature
    assert valid_share(forged, data.key) == 0
    other = signed_rows(60, bits=SeededBits("another key"))
    assert valid_share(other.rows, data.key) == 0
    # Somebody else's valid signatures under the name of this key.
    assert valid_share(np.hstack([other.rows[:, :80], data.rows[:, 80:]]), data.key) == 0
    assert valid_share(np.hstack([data.rows[:, :80], other.rows[:, 80:]]), data.key) == 0  # and the other way round
    assert valid_share(np.vstack([data.rows, other.rows]), data.key) == 0.5


@pytest.mark.parametrize(("method", "epsilon"), [("uniform", "1"), ("independent", "1"), ("independent", "20")])
def test_no_private_synthesiser_makes_a_valid_row(method: str, epsilon: str) -> None:
    found = hardness_report(private(method, epsilon), n=80, bits=SeededBits("data"))
    assert (found.truth, found.synthetic, found.success, found.copied) == (1, 0, 0, 0)


@pytest.mark.soak
@pytest.mark.parametrize("method", ["tree", "marginals", "adaptive"])
def test_none_of_the_methods_that_look_at_pairs_does(method: str) -> None:
    try:
        found = hardness_report(private(method, "1"), n=200, bits=SeededBits("pairs"))
    except ParameterError:  # refuses what it cannot serve
        return
    assert (found.synthetic, found.copied) == (0, 0)


def test_the_same_query_asked_is_answered_within_its_bound() -> None:
    found = hardness_report(lambda rows: rows[:0], n=100, epsilon="1/2", bits=SeededBits("count"))
    assert (found.synthetic, found.rows) == (0, 0)
    assert abs(found.counted - 1) <= 4 * found.within
    # ln(1/beta)/(epsilon n), rounded up to a whole row.
    assert found.within == pytest.approx(math.ceil(math.log(20) / 0.5) / 100)


def test_a_copying_curator_is_accurate_and_linkage_names_every_row() -> None:
    found = hardness_report(lambda rows: rows[::-1], n=40, bits=SeededBits("copy"))
    assert (found.synthetic, found.copied) == (1, 1)
    data = signed_rows(40, bits=SeededBits("names"))
    released = {"message": np.array(data.messages)[::-1]}
    named = {"message": np.array(data.messages)}
    linked = attacks.link(released, named, ["message"], truth=np.arange(40)[::-1])
    assert linked.success == 1


def test_the_chance_of_a_copy_is_n_times_that_of_one_message() -> None:
    """n (e^eps r 2^-128 + delta); (n r) times the one is too much delta."""
    n, rows, epsilon, delta = 1000, 500, 1.0, Fraction(1, 10**7)
    one = math.e * rows * 2.0**-128 + float(delta)
    assert attacks.copied_chance(n, rows, epsilon=1, delta=delta) == pytest.approx(n * one)
    assert attacks.copied_chance(n, rows, epsilon=1) == pytest.approx(n * rows * math.e * 2.0**-128)
    assert attacks.copied_chance(10**9, rows, epsilon=epsilon, delta="0.01") == 1
    # Nearly reached: a curator that shows each row with chance delta is (0, delta)-DP.
    shown = -math.expm1(n * math.log1p(-float(delta)))
    assert 0.9999 * n * float(delta) < shown <= attacks.copied_chance(n, rows, epsilon=0, delta=delta)


def test_three_bars_are_drawn() -> None:
    pytest.importorskip("matplotlib")
    found = hardness_report(lambda rows: rows[:3], n=5, bits=SeededBits("bars"))
    assert [t.get_text() for t in found.plot().get_xticklabels()] == ["true rows", "synthetic rows", "the count, asked"]


@pytest.mark.parametrize(
    "act",
    [
        lambda: signed_rows(0),
        lambda: valid_share(np.zeros((2, 5), int), bytes(32)),
        lambda: valid_share(np.full((2, 112), 256), bytes(32)),
        lambda: valid_share(np.zeros((2, 112)), bytes(32)),
        lambda: attacks.copied_chance(1, 1, epsilon=-1),
        lambda: hardness_report(lambda rows: rows[0], n=3),
    ],
)
def test_what_does_not_fit_is_refused(act) -> None:
    with pytest.raises(ParameterError):
        act()
