"""The one door: exact noise on exact integers, and its exact privacy."""

from __future__ import annotations

import pickle
from fractions import Fraction

import pytest

from hubbub.errors import InternalError
from hubbub.mechanisms import add_noise, recording
from hubbub.noise import DiscreteLaplace
from seeded import SeededBits

LAW = DiscreteLaplace(Fraction(7, 2))


def test_noise_is_added_to_each_value_and_nothing_else_happens() -> None:
    values = (0, -5, 10**30)
    released = add_noise(values, sensitivity=1, distribution=LAW, bits=SeededBits(1))
    drawn = LAW.sample(3, bits=SeededBits(1))
    assert released == tuple(v + int(z) for v, z in zip(values, drawn, strict=True))


def test_the_record_shows_exactly_what_was_done_and_only_inside_the_block() -> None:
    with recording() as outer:
        add_noise((3,), sensitivity=2, distribution=LAW, bits=SeededBits(1))
        with recording() as inner:
            add_noise((4,), sensitivity=5, distribution=LAW, bits=SeededBits(2))
    add_noise((6,), sensitivity=1, distribution=LAW, bits=SeededBits(3))
    assert [(r.values, r.sensitivity, r.distribution) for r in outer] == [((3,), 2, LAW)]
    assert [r.values for r in inner] == [(4,)]


def test_a_record_neither_prints_nor_pickles_private_integers() -> None:
    with recording() as records:
        add_noise((424242,), sensitivity=1, distribution=LAW)
    assert "424242" not in repr(records)
    with pytest.raises(InternalError, match="pickled"):
        pickle.dumps(records)


@pytest.mark.parametrize(("values", "sensitivity"), [((1.0,), 1), ((True,), 1), ((1,), 0), ((1,), 1.0), ((1,), -1)])
def test_only_integers_with_a_whole_sensitivity_pass(values: tuple[object, ...], sensitivity: object) -> None:
    with pytest.raises(InternalError):
        add_noise(values, sensitivity=sensitivity, distribution=LAW)  # type: ignore[arg-type]


@pytest.mark.parametrize("sensitivity", [1, 3])
def test_the_ratio_of_neighbours_is_at_most_e_to_the_sensitivity_over_scale(sensitivity: int) -> None:
    """Exact: log-probabilities of each output under the value and the value moved by the sensitivity."""
    loss = sensitivity / LAW.scale
    worst = max(abs(LAW.log_pmf(y) - LAW.log_pmf(y - sensitivity)) for y in range(-60, 61))
    assert worst == pytest.approx(float(loss), rel=1e-12)
