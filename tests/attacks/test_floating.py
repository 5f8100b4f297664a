"""Textbook noise in floats names the value; integers on a grid do not."""

from __future__ import annotations

import numpy as np
import pytest

from attacks.helpers import slack
from hubbub import attacks
from hubbub.errors import ParameterError
from hubbub.mechanisms import LaplaceMechanism
from hubbub.noise import Grid, uniform_below
from seeded import SeededBits

OUTPUTS = 20_000


@pytest.mark.parametrize("scale", [1, 2, 10])
def test_most_float_outputs_are_possible_under_one_value_only(scale):
    bits = SeededBits(f"floats {scale}")
    truth = uniform_below(2, OUTPUTS, bits=bits)
    outputs = attacks.float_laplace(truth.astype(float), scale, bits=bits)
    found = attacks.read_floats(outputs, (0.0, 1.0), scale, truth=truth)
    assert found.certain > 0.55
    far = attacks.read_floats(attacks.float_laplace(100.0 + truth, scale, bits=bits), (100, 101), scale, truth=truth)
    assert far.sure.any()
    assert not (far.sure & ~far.right).any()
    assert found.success > found.ceiling(f"1/{scale}") + 2 * slack(OUTPUTS)
    assert not (found.sure & ~found.right).any()  # what is called certain is never wrong
    assert len(found.plot().lines) == 2


@pytest.mark.parametrize(("scale", "values"), [(1, (0, 1)), (2, (0, 1)), (10, (0, 1)), (10, (5, 6))])
def test_integers_on_a_grid_stay_below_the_ceiling(scale, values):
    bits = SeededBits(f"grid {scale} {values}")
    truth = uniform_below(2, OUTPUTS, bits=bits)
    mechanism = LaplaceMechanism(sensitivity=1, scale=scale, grid=Grid(-20), cells=OUTPUTS)
    outputs = mechanism.release(np.where(truth == 1, values[1], values[0]).astype(float), bits=bits)
    found = attacks.read_floats(outputs, values, scale, truth=truth)
    most = found.ceiling(f"1/{scale}") + slack(OUTPUTS)
    broken = attacks.float_laplace(np.where(truth == 1, values[1], values[0]).astype(float), scale, bits=bits)
    assert found.success <= most < attacks.read_floats(broken, values, scale, truth=truth).success


def test_textbook_noise_is_laplace_noise_but_for_its_last_bits():
    noise = attacks.float_laplace(np.zeros(OUTPUTS), 3, bits=SeededBits("law"))
    for t in (1.0, 3.0, 9.0):
        assert abs(float((np.abs(noise) > t).mean()) - np.exp(-t / 3)) <= slack(OUTPUTS, 5e-10)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ParameterError):
        attacks.read_floats([1.0], (0, 1), 0, truth=[1])
    with pytest.raises(ParameterError):
        attacks.read_floats([1.0], (0, 1), 1, truth=[1, 0])
    with pytest.raises(ParameterError):
        attacks.float_laplace([float("nan")], 1)
