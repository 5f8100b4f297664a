"""What a selection of groups is charged, and from which amounts on there is none."""

from __future__ import annotations

from fractions import Fraction

import pytest

from hubbub.accounting import cost
from hubbub.errors import ParameterError
from hubbub.mechanisms import GroupThreshold, OptimalGroupSelection


@pytest.mark.parametrize("groups", [1, 3, 40])
@pytest.mark.parametrize("amount", ["1/10", "1", "7/2"])
def test_a_threshold_is_charged_for_its_noise_in_every_group_of_a_unit_and_for_delta(groups, amount):
    delta = Fraction(1, 10**6)
    gaussian = cost(GroupThreshold(rho=Fraction(amount), delta=delta, groups=groups).loss)
    assert gaussian.epsilon is None
    assert gaussian.delta == delta
    assert Fraction(amount) * Fraction(999, 1000) < gaussian.rho <= Fraction(amount)
    laplace = GroupThreshold(epsilon=Fraction(amount), delta=delta, groups=groups)
    charged = laplace.loss.epsilon * laplace.loss.groups
    assert Fraction(amount) * Fraction(999, 1000) < charged <= Fraction(amount)
    assert laplace.loss.delta * laplace.loss.groups == delta


@pytest.mark.parametrize("delta", ["1e-6", "1e-30"])
def test_a_selection_of_more_than_a_hundred_thousand_steps_is_refused_at_once(delta):
    shown = OptimalGroupSelection(epsilon="1/300", delta=delta)
    assert shown.always < 100_000
    too_long = Fraction(1, 300) * shown.always / 400_000
    with pytest.raises(ParameterError, match="shows no group for certain"):
        OptimalGroupSelection(epsilon=too_long, delta=delta).probability(1)
