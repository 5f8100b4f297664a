"""The client of every oracle is a mechanism of its own; names that oracles had before still lead to it."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub import local
from hubbub.errors import ParameterError
from hubbub.local.draws import at_most_exp
from hubbub.local.randomizer import LocalOracle
from local.reports import all_reports, small_oracles
from seeded import SeededBits

ORACLES: list[Any] = [
    *small_oracles(1, 5),
    *(local.OneBitMean(1), local.PiecewiseMean(2, 0, 10), local.HybridMean(3)),
    *(local.BallMean(1, 5, 2), local.HeavyHitters(2, "abc", length=3)),
]
IDS = [o.name for o in ORACLES]


@pytest.mark.parametrize("oracle", ORACLES, ids=IDS)
def test_an_oracle_is_its_randomizer_and_what_it_was_given(oracle: Any) -> None:
    client = oracle.randomizer
    assert isinstance(oracle, LocalOracle)
    assert isinstance(client, local.Randomizer)
    assert oracle.epsilon == client.epsilon
    assert oracle.report_bytes == client.report_type.itemsize
    assert oracle.loss == client.loss or isinstance(oracle, local.Rappor)
    again = type(oracle)(**{n: Fraction(v) if n in ("lower", "upper") else v for n, v in oracle.arguments.items()})
    for other in (again, copy.deepcopy(oracle), pickle.loads(pickle.dumps(oracle))):
        assert other == oracle
        assert hash(other) == hash(oracle)
        assert repr(other) == repr(oracle)
    assert repr(oracle).startswith(f"{type(oracle).__name__}(epsilon=Fraction(")


@pytest.mark.parametrize("oracle", small_oracles(1, 5), ids=lambda o: o.name)
def test_the_client_of_categories_draws_the_reports_of_privatize(oracle: local.FrequencyOracle) -> None:
    places = np.arange(300) % 5
    direct = oracle.privatize(places, bits=SeededBits("same"))
    assert np.array_equal(oracle.randomizer.release(places, bits=SeededBits("same")), direct)
    report = all_reports(oracle)[0]
    for place in range(5):
        chance = oracle.randomizer.chance(report, place)
        assert oracle.randomizer.log_prob(report, place) == pytest.approx(math.log(chance), rel=1e-12)
    for bad in ([5], [0, -1]):
        with pytest.raises(ParameterError, match="place"):
            oracle.randomizer.release(np.array(bad))


@pytest.mark.parametrize("oracle", ORACLES[9:13], ids=IDS[9:13])
def test_the_client_of_numbers_takes_steps_of_the_grid_only(oracle: Any) -> None:
    values = np.linspace(-1, 1, 35).reshape(-1, 5) if isinstance(oracle, local.BallMean) else np.linspace(-1, 1, 35)
    steps = oracle.steps(values)
    direct = oracle.privatize(values, bits=SeededBits("same"))
    assert np.array_equal(oracle.randomizer.release(steps, bits=SeededBits("same")), direct)
    for bad in (steps - steps.min() - 1, steps + 2**20 + 1):
        with pytest.raises(ParameterError, match="step"):
            oracle.randomizer.release(bad)


@pytest.mark.parametrize("epsilon", ["1/100", 1, 20, 500])
@pytest.mark.parametrize("kind", [local.OneBitMean, local.PiecewiseMean, local.HybridMean])
def test_the_law_of_a_step_is_the_same_for_whole_numbers_of_numpy(kind: Any, epsilon: object) -> None:
    """`oracle.steps` makes them; their products left 64 bits, with an error or another chance."""
    oracle = kind(epsilon)
    client, steps = oracle.randomizer, oracle.steps([-1, 0.3, 1])
    reports = np.array([0, 1, client.report_count - 2, client.report_count - 1], client.report_type)
    for step in steps:
        assert client.second_moment(step) == client.second_moment(int(step))
        for report in reports:
            chance = client.chance(int(report), int(step))
            assert client.chance(report, step) == chance
            assert client.log_prob(report, step) == client.log_prob(int(report), int(step))


@pytest.mark.parametrize("epsilon", ["1/4", 1, 4])
def test_no_report_of_a_heavy_hitter_is_more_than_e_to_the_epsilon_likelier_for_another_string(epsilon: str) -> None:
    client = local.HeavyHitters(epsilon, "abc", length=8).randomizer
    reports = client.release(["a"] * 3, bits=SeededBits("heavy"))
    words = ["", "a", "abcabcab", "abcabcac", "z"]
    for level in range(len(client.ends)):
        laws = []
        for word in words:
            law = []
            for answer in range(client.buckets):
                report = reports[0].copy()
                report["level"], report["hashed"]["y"] = level, answer
                law.append(client.chance(report, word))
            laws.append(law)
        assert all(sum(law) == Fraction(1, len(client.ends) << 126) for law in laws)
        assert at_most_exp(max(max(c) / min(c) for c in zip(*laws, strict=True)), client.epsilon)


@pytest.mark.parametrize("oracle", ORACLES, ids=IDS)
def test_names_that_oracles_had_before_lead_to_the_client_and_warn(oracle: Any) -> None:
    moved = [(old, path.removeprefix("randomizer.")) for old, path in oracle._moved.items()]
    had = [(old, new) for old, new in moved if hasattr(oracle.randomizer, new) and old not in dir(oracle)]
    assert {"chance", "log_prob", "parameters", "report_type"} <= {old for old, _ in had}
    for old, new in had:
        with pytest.warns(DeprecationWarning, match=rf"\.{old} is now {type(oracle).__name__}\.randomizer\.{new};"):
            value = getattr(oracle, old)
        assert value == getattr(oracle.randomizer, new)
    for missing in ("most_categories", "_client", "nothing", "__len__"):
        with pytest.raises(AttributeError, match=missing):
            getattr(oracle, missing)
