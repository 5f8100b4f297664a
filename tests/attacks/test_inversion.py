"""A model that fits its people exactly gives their secrets away; a private one does not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attacks.helpers import slack
from hubbub import attacks
from hubbub.errors import ParameterError
from hubbub.noise import gaussian, uniform_below
from seeded import SeededBits


def clinic(n: int, d: int, bits: SeededBits):
    """n people with d attributes of -1 and 1 and an outcome from -3 to 3 that has nothing to do with them."""
    return 2 * uniform_below(2, (n, d), bits=bits) - 1, uniform_below(7, n, bits=bits) - 3


def test_a_model_with_more_weights_than_people_tells_every_member_s_attribute():
    bits = SeededBits("overfit")
    x, y = clinic(400, 250, bits)
    model = attacks.fit_linear(x[:200], y[:200])
    found = attacks.invert_model(model, x, y, position=7, values=[-1, 1], members=np.arange(400) < 200)
    assert found.success == 1
    assert found.advantage > 0.3
    assert found.advantage > found.ceiling("0.5") + 0.05
    assert len(found.plot().lines) == 2


@pytest.mark.parametrize("epsilon", ["0.1", "0.4"])
def test_a_private_model_gives_less_than_the_ceiling(epsilon):
    """Means of 8 models: 1,600 members and as many others."""
    private, exact = [], []
    members = np.arange(400) < 200
    for seed in range(8):
        bits = SeededBits(f"private {epsilon} {seed}")
        x, y = clinic(400, 201, bits)
        for model, advantages in (
            (attacks.fit_linear(x[:200], y[:200], epsilon=epsilon, bound=3, bits=bits), private),
            (attacks.fit_linear(x[:200], y[:200]), exact),
        ):
            found = attacks.invert_model(model, x, y, position=7, values=[-1, 1], members=members)
            advantages.append(found.advantage)
    assert np.mean(private) <= found.ceiling(epsilon) + 2 * slack(1600)
    assert np.mean(exact) > found.ceiling(epsilon) + 2 * slack(1600)


def test_with_little_privacy_the_private_model_is_the_exact_one():
    bits = SeededBits("huge")
    x, y = clinic(400, 5, bits)
    exact, private = attacks.fit_linear(x, y), attacks.fit_linear(x, y, epsilon=10**9, bound=3, bits=bits)
    assert np.allclose(exact.weights, private.weights, atol=1e-4)


def test_a_model_that_is_true_of_everybody_tells_members_and_others_alike():
    """Science is not a leak: y = 2 x_0 + noise, which the model learns; inversion is as right for strangers."""
    bits = SeededBits("science")
    x, _ = clinic(4000, 3, bits)
    y = 2 * x[:, 0] + gaussian(sigma=1, size=4000, bits=bits)
    model = attacks.fit_linear(x[:2000], y[:2000])
    found = attacks.invert_model(model, x, y, position=0, values=[-1, 1], members=np.arange(4000) < 2000)
    assert found.success > 0.9
    assert abs(found.advantage) <= 2 * slack(2000, 5e-10)


def test_the_guess_is_the_likeliest_value_by_bayes():
    model = attacks.LinearModel(np.array([1.0, 2.0]), intercept=1.0)
    x, y = [[3.0, 1.0]], [4.9]
    prior, sigma = [0.95, 0.05], 1.0
    weigh = [p * math.exp(-((4.9 - 1 - 3 - 2 * v) ** 2) / 2) for p, v in zip(prior, (0, 1), strict=True)]
    expected = float(np.argmax(weigh))
    assert expected == 0  # the prior wins here ...
    assert attacks.invert_model(model, x, y, position=1, values=[0, 1], prior=prior, sigma=sigma).guesses[0] == 0
    assert attacks.invert_model(model, x, y, position=1, values=[0, 1]).guesses[0] == 0
    assert attacks.invert_model(model, x, [5.2], position=1, values=[0, 1]).guesses[0] == 1  # ... and not alone here
    assert attacks.invert_model(model, x, [5.2], position=1, values=[0, 1], prior=prior, sigma=1).guesses[0] == 0
    assert attacks.invert_model(model, x, [5.2], position=1, values=[0, 1], prior=prior, sigma=0.1).guesses[0] == 1


@pytest.mark.parametrize(
    ("x", "y", "options"),
    [([[0.5]], [1], {"bound": 1}), ([[1]], [3], {"bound": 2}), ([[1]], [1], {}), ([[1]], [0.5], {"bound": 1})],
)
def test_a_private_model_takes_only_what_its_sensitivity_covers(x, y, options):
    with pytest.raises(ParameterError):
        attacks.fit_linear(x, y, epsilon=1, **options)


def test_what_does_not_fit_is_refused():
    model = attacks.LinearModel(np.array([1.0, 2.0]))
    with pytest.raises(ParameterError):
        attacks.invert_model(model, [[1.0]], [1], position=0, values=[0])
    with pytest.raises(ParameterError):
        attacks.invert_model(model, [[1.0, 2.0]], [1], position=0, values=[0, 1], prior=[0.5, 0.5])
    with pytest.raises(ParameterError, match="members"):
        _ = attacks.invert_model(model, [[1.0, 2.0]], [1], position=0, values=[0, 1]).advantage
