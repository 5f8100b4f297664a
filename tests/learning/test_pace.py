"""Steps that are longer in the own features of bins: what they follow, how long they may be, and that nothing else
moves."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.accounting import cost, rho_of_epsilon
from hubbub.audit import replay
from hubbub.learning import AdditiveModel
from hubbub.learning.bases import either, own_features
from hubbub.learning.features import Categories, Design, Numbers
from hubbub.learning.pace import Pace
from hubbub.mechanisms.recording import recording
from seeded import SeededBits

DECLARED: dict[str, Any] = {
    "gain": hb.between(0, 99_999),
    "job": hb.one_of("a", "b"),
    "rich": hb.one_of("no", "yes"),
    "pay": hb.between(0, 100),
}
N = 2500
MANY = 4_000_000


def people(n: int = N) -> dict[str, Any]:
    """One of 50 gains 5,178 and one of 50 4,386: of these all are rich, of those nobody."""
    rng = np.random.default_rng(3)
    gain = np.zeros(n, np.int64)
    gain[: n // 50], gain[n // 50 : n // 25] = 5178, 4386
    rich = np.where(gain == 5178, 1, np.where(gain == 4386, 0, rng.random(n) < 0.3))
    return {
        "gain": gain,
        "job": rng.choice(["a", "b"], n),
        "rich": np.where(rich, "yes", "no"),
        "pay": 50 * rich + rng.integers(0, 9, n),
    }


def fitted(table: Any = None, **parameters: Any) -> AdditiveModel:
    given: dict[str, Any] = {"target": "rich", "rows": N} | parameters
    rows = people() if table is None else table
    return AdditiveModel(["gain", "job"], **given).fit(
        rows, columns=DECLARED, epsilon=60, delta="1e-6", bits=SeededBits(3)
    )


def paced(gradient: Any, *, steps: int = 100, limit: float = 30.0, deviation: float = 1.0) -> list[float]:
    """The factor of one own feature in each step."""
    pace = Pace([slice(1, 2)], [np.array([limit])], steps)
    factors = [pace.factors(t, np.array([[9.0, gradient(t)]]), deviation) for t in range(steps)]
    assert all(f[0] == 1 for f in factors)
    return [float(f[1]) for f in factors]


def test_steps_grow_after_the_second_and_the_third_window_with_the_energy_that_is_left() -> None:
    # Over ten steps, 0.5 each is 5, squared 25 against 10 of the noise: an energy of 1.5, and thrice as far.
    assert paced(lambda _: 0.5) == [1.0] * 20 + [3.0] * 10 + [9.0] * 70
    assert paced(lambda t: 0.5 * (t < 20)) == [1.0] * 20 + [3.0] * 80
    assert paced(lambda t: 0.5 * (20 <= t < 30)) == [1.0] * 30 + [3.0] * 70


def test_what_all_columns_learn_first_makes_no_step_longer() -> None:
    assert paced(lambda t: 50.0 * (t < 10)) == [1.0] * 100


def test_a_step_is_tenfold_at_most_at_once_and_thirtyfold_in_all_and_within_its_limit() -> None:
    assert paced(lambda _: 50.0) == [1.0] * 20 + [10.0] * 10 + [30.0] * 70
    assert paced(lambda _: 50.0, limit=1.5) == [1.0] * 20 + [1.5] * 80


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7, 32])
def test_few_steps_are_paced_too(steps: int) -> None:
    assert len(paced(lambda _: 1.0, steps=steps)) == steps


def test_noise_alone_hardly_makes_a_step_longer() -> None:
    rng = np.random.default_rng(4)
    grown = 0
    for _ in range(40):
        pace = Pace([slice(0, 16)], [np.full(16, 30.0)], 100)
        for t in range(100):
            factors = pace.factors(t, rng.normal(0, 2, (1, 16)), 2.0)
        grown += bool(factors.max() > 2)
    assert grown <= 3


def test_the_curvature_of_own_features_grows_by_a_40th_at_most() -> None:
    third = Numbers(Fraction(0), Fraction(3), tuple(map(Fraction, range(4))), linear=True, nullable=True)
    design = either(Design({"job": Categories(("a", "b")), "x": third}))[1]
    shares = np.array([0.9, 0.02, 0.0001])
    pace = Pace.of(design, {"x": shares}, 10)
    for t in range(10):
        factors = pace.factors(t, np.full((1, design.width), 100.0), 1.0)
    own = own_features(design)["x"]
    assert factors[own].tolist() == pytest.approx([1 + 1 / 9, 6, 30])
    assert float(((factors[own] - 1) * shares).max()) / 4 == pytest.approx(1 / 40)
    assert set(np.delete(factors, np.r_[own])) == {1.0}
    # Each bin has one own feature, of a half.
    features = design.columns["x"].features
    start = design.starts[1]
    assert features[:-1, own.start - start : own.stop - start].max(axis=1).tolist() == [128] * (len(features) - 1)
    assert not features[-1, own.start - start : own.stop - start].any()


def test_rare_bins_are_learned_further_and_the_sums_and_the_cost_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    with recording() as records:
        model = fitted()
    monkeypatch.setattr(Pace, "_grow", lambda self: None)
    with recording() as before:
        slow = fitted()
    assert [r.sensitivity for r in records] == [r.sensitivity for r in before]
    assert cost(model.loss_).rho == cost(slow.loss_).rho <= rho_of_epsilon(60, "1e-6")
    rare = next(label for label in model.effects_["gain"] if label.startswith("[51"))
    ahead, behind = (float(m.effects_["gain"][rare][0]) for m in (model, slow))
    assert ahead > behind + 0.2


def test_a_number_is_learned_in_steps_of_one_length(monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[Any] = []
    monkeypatch.setattr(Pace, "_grow", lambda self: places.extend(self.places))
    fitted(target="pay")
    assert places == []
    fitted()
    assert len(places) == 2  # of one column, twice


def test_without_a_bought_histogram_all_steps_are_of_one_length(monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[Any] = []
    monkeypatch.setattr(Pace, "_grow", lambda self: places.extend(self.places))
    fitted(bins=16)
    assert places == []


def test_one_row_moves_the_sums_of_paced_steps_by_what_is_charged_at_most() -> None:
    rows = {k: np.asarray(v, object) for k, v in people(60).items()}
    other = {k: np.append(v, [w]) for (k, v), w in zip(rows.items(), (5178, "a", "yes", 9), strict=True)}

    def run(data: dict[str, Any]) -> str:
        return fitted({k: list(v) for k, v in data.items()}, rows=MANY).to_json()

    assert replay(run, rows, other) == []
    assert replay(run, other, rows) == []
