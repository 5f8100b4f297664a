"""Events: exact, frozen, refused when wrong, and readable for ever."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from fractions import Fraction

import pytest

from hubbub import accounting as acc
from hubbub.accounting import codec
from hubbub.errors import ParameterError

EVERY = [
    acc.PureDP("0.1"),
    acc.ApproxDP(1, "1e-6"),
    acc.ZCDP("1/8"),
    acc.GaussianDP(0.5),
    acc.Laplace(0.1, 3),
    acc.DiscreteLaplace("7/3", 2),
    acc.Gaussian(1.1),
    acc.DiscreteGaussian(2, 3),
    acc.RandomizedResponse(1, 4),
    acc.BoundedRange("0.2", adaptive=False),
    acc.Threshold(1, "1e-9", groups=3),
    acc.PoissonSampled(acc.Gaussian(1), 0.01),
    acc.SampledWithoutReplacement(acc.Laplace(1), "1/3"),
    acc.Composed([acc.PureDP(1), acc.Repeated(acc.Gaussian(2), 5)]),
    acc.Repeated(acc.PureDP(1), 3),
    acc.Parallel([acc.PureDP(1), acc.Gaussian(2)]),
    acc.Group(acc.Laplace(1), 3),
]


def test_a_budget_amount_means_what_was_written_and_a_scale_means_the_float():
    assert acc.PureDP(0.1).epsilon == Fraction(1, 10)
    assert acc.Laplace(0.1).scale == Fraction(0.1) != Fraction(1, 10)


@pytest.mark.parametrize("event", EVERY, ids=lambda e: type(e).__name__)
def test_every_event_survives_json_and_is_frozen(event):
    text = acc.to_json(event)
    assert acc.from_json(text) == event
    assert acc.to_json(acc.from_json(text)) == text
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.epsilon = 0


def test_the_registry_knows_every_event():
    assert {type(e) for e in EVERY} == set(codec._REGISTRY.values())


def test_what_version_1_wrote_loads():
    stored = (
        '{"event": {"event": {"event": {"sensitivity": "1", "sigma": "11/10", "type": "gaussian"}, "rate": "1/100", '
        '"type": "poisson_sampled"}, "times": 10000, "type": "repeated"}, "hubbub.event": 1}'
    )
    assert acc.from_json(stored) == acc.Repeated(acc.PoissonSampled(acc.Gaussian("11/10"), "0.01"), 10000)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"hubbub.event": 2, "event": {}}', "newer"),
        ('{"hubbub.event": 1, "event": {"type": "os.system"}}', "unknown"),
        ('{"hubbub.event": 1, "event": {"type": "pure_dp"}}', "fields"),
        ('{"hubbub.event": 1, "event": {"type": "pure_dp", "epsilon": "1", "x": "2"}}', "fields"),
        ('{"hubbub.event": 1, "event": {"type": "pure_dp", "epsilon": 0.5}}', "amounts"),
        ('{"hubbub.event": 1, "event": {"type": "pure_dp", "epsilon": "1e999999999"}}', "finite"),
        ("[]", "no event"),
        ("{", "not JSON"),
    ],
)
def test_foreign_json_is_refused_with_what_to_do(text, says):
    with pytest.raises(ParameterError, match=says):
        acc.from_json(text)


def test_deep_nesting_is_refused():
    event = {"type": "pure_dp", "epsilon": "1"}
    for _ in range(200):
        event = {"type": "repeated", "event": event, "times": 1}
    with pytest.raises(ParameterError, match="deeper"):
        acc.from_json(json.dumps({"hubbub.event": 1, "event": event}))


@pytest.mark.parametrize(
    "make",
    [
        lambda: acc.PureDP(-1),
        lambda: acc.PureDP(float("nan")),
        lambda: acc.PureDP(float("inf")),
        lambda: acc.PureDP(True),
        lambda: acc.PureDP("many"),
        lambda: acc.ApproxDP(1, 1),
        lambda: acc.ApproxDP(1, -0.1),
        lambda: acc.Gaussian(0),
        lambda: acc.Laplace(-1),
        lambda: acc.DiscreteLaplace(1, 0.5),
        lambda: acc.RandomizedResponse(1, 1),
        lambda: acc.Threshold(1, "1e-6", groups=0),
        lambda: acc.PoissonSampled(acc.PureDP(1), 1.5),
        lambda: acc.PoissonSampled("PureDP", 0.5),
        lambda: acc.Composed([]),
        lambda: acc.Repeated(acc.PureDP(1), 0),
        lambda: acc.Repeated(acc.PureDP(1), 2.0),
        lambda: acc.Group(acc.PureDP(1), 0),
        lambda: acc.BoundedRange(1, adaptive="yes"),
    ],
)
def test_wrong_parameters_are_refused(make):
    with pytest.raises(ParameterError):
        make()


def test_mixing_neighbour_relations_is_refused():
    poisson = acc.PoissonSampled(acc.Gaussian(1), 0.1)
    swap = acc.SampledWithoutReplacement(acc.Gaussian(1), 0.1)
    assert acc.neighbours(acc.Composed([poisson, acc.Laplace(1)])) == "add_remove"
    assert acc.neighbours(swap) == "replace"
    assert acc.neighbours(acc.Gaussian(1)) == "either"
    for make in (lambda: acc.Composed([poisson, swap]), lambda: acc.PoissonSampled(swap, 0.5)):
        with pytest.raises(ParameterError, match="neighbour"):
            make()


def test_the_light_half_loads_no_numbers():
    code = (
        "import sys, hubbub.accounting as a, hubbub.accounting.meaning as m; a.ZCDPFilter.of(3, "
        "'1e-6').largest; "
        "m.explain(1); print([x for x in ('numpy', 'scipy', 'matplotlib', 'pyarrow') if x in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
