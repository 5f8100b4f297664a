"""What one unit can change: sensitivities by brute force over small tables, and the exact law of every choice."""

from __future__ import annotations

import itertools
import math
import pickle
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.accounting import BoundedRange, cost
from hubbub.errors import InternalError, ParameterError
from hubbub.mechanisms import epsilon_between
from hubbub.synthesis import Domain, measurements
from hubbub.synthesis.aim import _weights, candidates_of, fit_adaptive
from hubbub.synthesis.marginals import plan_marginals
from hubbub.synthesis.measurements import Curator, choice_epsilon, shares
from hubbub.synthesis.residuals import centre, squared_move
from hubbub.synthesis.setting import Setting, begin
from hubbub.synthesis.tree import choose_tree, independent_counts
from seeded import SeededBits

Integers = NDArray[np.int64]
DOMAIN = Domain(("a", "b", "c"), (2, 2, 2))
RECORDS = [np.array(r) for r in itertools.product(range(2), repeat=3)]
PAIRS = list(itertools.combinations(DOMAIN.columns, 2))
WHOLE = {c: np.arange(2) for c in DOMAIN.columns}


def table(*rows: Integers) -> Integers:
    return np.asfortranarray(np.array(rows, dtype=np.int64).reshape(-1, 3))


def neighbours(
    relation: str, rows: int, others: tuple[Integers, ...] = (RECORDS[0], RECORDS[6])
) -> Iterator[tuple[Integers, Integers]]:
    """Tables of others' rows with a unit of up to `rows` equal rows, or none; exchanged where they replace."""
    # Equal rows are the worst case of a unit: they meet in one cell.
    units = [[], *([r] * k for r in RECORDS for k in range(1, rows + 1))]
    for one, two in itertools.combinations(units, 2):
        if relation == "replace" or not one:
            yield table(*others, *one), table(*others, *two)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_sensitivities_are_those_of_brute_force_and_are_reached(relation: str, rows: int) -> None:
    squared, score = 0, 0
    models = [np.full((2, 2), 1) for _ in PAIRS]
    for one, two in neighbours(relation, rows):
        for columns in [*PAIRS, ("a",), ("a", "b", "c")]:
            move = DOMAIN.count(one, columns) - DOMAIN.count(two, columns)
            squared = max(squared, int((move**2).sum()))
        for columns, model in zip(PAIRS, models, strict=True):
            far = [int(np.abs(DOMAIN.count(t, columns) - model).sum()) for t in (one, two)]
            score = max(score, abs(far[0] - far[1]))
    curator = Curator(table(), DOMAIN, rows, relation)
    assert curator.squared_sensitivity == squared
    assert curator.score_sensitivity >= score
    if relation == "add_remove" or rows == 1:
        assert curator.score_sensitivity == score


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("weights", [None, [1, 3, 2]])
def test_a_choice_is_as_private_as_its_event_says(relation: str, rows: int, weights: list[int] | None) -> None:
    rho = Fraction(1, 8)
    models = [np.array([[3, 0], [0, 1]]), np.array([[1, 1], [1, 1]]), np.array([[0, 2], [2, 0]])]
    worst = 0.0
    for one, two in neighbours(relation, rows):
        laws = [
            Curator(t, DOMAIN, rows, relation).log_probs(PAIRS, models, [1, 0, 2], WHOLE, rho, weights=weights)
            for t in (one, two)
        ]
        difference = laws[0] - laws[1]
        # Bounded range: the loss of all places together lies in an interval of length epsilon.
        worst = max(worst, float(difference.max() - difference.min()), epsilon_between(*laws))
    claimed = float(choice_epsilon(rho))
    assert worst <= claimed * (1 + 1e-9)
    assert worst >= claimed / 2
    assert claimed**2 / 8 <= float(rho)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("rows", [1, 2])
def test_residuals_move_no_further_than_their_plan_is_made_for(relation: str, rows: int) -> None:
    curator = Curator(table(), DOMAIN, rows, relation)
    for one, two in neighbours(relation, rows):
        for columns in [("a",), *PAIRS, ("a", "b", "c")]:
            move = centre(DOMAIN.count(one, columns)) - centre(DOMAIN.count(two, columns))
            assert (move**2).sum() <= curator.marginal_rows**2 * squared_move(DOMAIN.shape(columns))
    plan = plan_marginals(DOMAIN, PAIRS, rho=1, unit_rows=curator.marginal_rows + 1)
    with pytest.raises(InternalError, match="a unit moves"):
        curator.release(plan, WHOLE)


@dataclass
class Scripted(Curator):
    """Takes the places it is told to take, and adds up the logarithm of their probability."""

    script: list[int] = field(default_factory=list)
    log_prob: float = 0.0

    def choose(self, candidates, models, penalties, parts, rho, *, weights=None):  # type: ignore[no-untyped-def]
        place = self.script.pop(0)
        self.log_prob += float(self.log_probs(candidates, models, penalties, parts, rho, weights=weights)[place])
        self.events.append(BoundedRange(choice_epsilon(rho)))
        return place


def public_setting() -> Setting:
    """A setting that was bought from another table: the same for both neighbours."""
    curator = Curator(table(*RECORDS, *RECORDS[:3]), DOMAIN, bits=SeededBits("setting"))
    return begin(curator, Fraction(100), 11.0, parts=4, cells=100)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_the_law_of_a_whole_tree_is_as_private_as_its_events_say(relation: str) -> None:
    setting, rho = public_setting(), Fraction(1, 4)
    assert independent_counts(setting, (0, 1)).sum() in range(9, 14)
    scripts = list(itertools.product(range(3), range(2)))
    worst = 0.0
    # Some cells hold more than the model says, some less, so that a row moves the pairs in different directions.
    for one, two in neighbours(relation, 1, (RECORDS[0],) * 6 + (RECORDS[6],) * 5):
        laws = []
        for data in (one, two):
            law = []
            for script in scripts:
                curator = Scripted(data, DOMAIN, 1, relation, script=list(script))
                edges = choose_tree(curator, setting, rho)
                assert len({c for e in edges for c in e}) == 3
                assert cost(curator.loss).rho <= rho
                law.append(curator.log_prob)
            assert math.fsum(np.exp(law)) == pytest.approx(1, abs=1e-12)
            laws.append(law)
        worst = max(worst, epsilon_between(*laws))
    assert 0 < worst <= 2 * float(choice_epsilon(rho / 2)) * (1 + 1e-9)


def test_every_choice_of_the_adaptive_method_has_the_law_that_its_event_claims() -> None:
    # The first round's choice, for all neighbours, with the weights, models and penalties of the method itself.
    setting = public_setting()
    candidates = candidates_of(setting)
    weights = _weights(candidates, 3)
    model = setting.fit([])
    models = [np.rint(setting.total * model.marginal(c)).astype(np.int64) for c in candidates]
    penalties = [3 * m.size for m in models]
    names = [setting.names(c) for c in candidates]
    worst = 0.0
    for one, two in neighbours("add_remove", 1):
        laws = [
            Curator(t, DOMAIN).log_probs(
                names, models, penalties, setting.parts, Fraction(1, 2), weights=[weights[c] for c in candidates]
            )
            for t in (one, two)
        ]
        worst = max(worst, epsilon_between(*laws))
    assert 0 < worst <= 2 * (1 + 1e-9)


def test_a_choice_is_as_private_beside_counts_that_64_bits_do_not_hold() -> None:
    """A model of 10^30 rows: its counts are no 64-bit numbers, and distances that wrap around move by 2^64."""
    domain = Domain(("a", "b", "c"), (3, 3, 2))
    pairs = list(itertools.combinations(domain.columns, 2))
    with np.errstate(invalid="ignore"):
        models = [np.rint(np.full(domain.shape(c), 1e30 / domain.cells(c))).astype(np.int64) for c in pairs]
    laws = []
    for n in (0, 1, 2):
        curator = Curator(np.zeros((n, 3), np.int64), domain)
        laws.append(curator.log_probs(pairs, models, [0] * 3, None, Fraction(1, 50)))
    epsilon = float(choice_epsilon(Fraction(1, 50)))
    for one, two in itertools.pairwise(laws):
        assert np.abs(one - two).max() <= epsilon


def test_the_adaptive_method_spends_what_it_says() -> None:
    curator = Curator(table(*RECORDS * 20), DOMAIN, bits=SeededBits("adaptive"))
    setting = begin(curator, Fraction(1, 10), 160.0, parts=4, cells=100)
    before = curator.spent
    fitted = fit_adaptive(curator, setting, Fraction(1, 2), rounds=4)
    assert 0 < curator.spent - before <= Fraction(1, 2)
    assert curator.spent - before > Fraction(49, 100)
    assert 1 <= len(fitted.used) <= 4


def test_measurements_have_the_variance_that_they_state_and_are_centred() -> None:
    # 2^16 cells: the mean of squares has a relative sd of .0055; 6.1 sd is 3.4 % (false alarm 1e-9).
    wide = Domain(("a", "b"), (256, 256))
    curator = Curator(np.zeros((0, 2), np.int64), wide, 2, "replace", SeededBits("variance"))
    (found,) = curator.measure([("a", "b")], None, [Fraction(1, 50)])
    assert found.variance == 200
    assert float((found.counts**2).mean()) == pytest.approx(200, rel=0.034)
    assert abs(float(found.counts.mean())) < 6.1 * math.sqrt(200 / 2**16)
    assert curator.spent == Fraction(8, 400)


def test_measurements_over_parts_are_the_values_summed() -> None:
    codes = table(*RECORDS, RECORDS[3])
    curator = Curator(codes, DOMAIN, bits=SeededBits("parts"))
    parts = {"a": np.array([0, 0]), "b": np.array([0, 1]), "c": np.array([0, 1])}
    (found,) = curator.measure([("a", "b")], parts, [Fraction(10**6)])
    # sigma^2 = 1/64, the least step: noise of 0 up to a chance of 1e-13 a cell.
    assert found.counts.tolist() == DOMAIN.count(codes, ("b",)).reshape(1, 2).tolist()


def test_a_budget_is_split_by_cells_and_never_exceeded() -> None:
    split = shares(Fraction(1, 3), [1, 10, 100, 7])
    assert sum(split) == Fraction(1, 3)
    curator = Curator(table(*RECORDS), DOMAIN, 3, "replace", SeededBits("budget"))
    curator.measure(PAIRS, WHOLE, [Fraction(1, 7)] * 3)
    curator.total(Fraction(1, 11))
    assert Fraction(3, 7) + Fraction(1, 11) - Fraction(1, 100) < curator.spent <= Fraction(3, 7) + Fraction(1, 11)


def test_a_curator_refuses_what_it_cannot_price() -> None:
    with pytest.raises(ParameterError, match="neighbours"):
        Curator(table(), DOMAIN, 1, "both")
    with pytest.raises(ParameterError, match="rows_per_unit"):
        Curator(table(), DOMAIN, 0)
    curator = Curator(table(), DOMAIN)
    with pytest.raises(ParameterError, match="positive"):
        curator.measure([("a",)], None, [Fraction(0)])
    with pytest.raises(InternalError, match="pickled"):
        pickle.dumps(curator)
    assert "array" not in repr(curator)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_noise_is_drawn_with_exactly_the_variance_that_is_charged_and_recorded(
    relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where variances have more digits than a float: 1941 rows at rho = 61e-12 once cost more than was asked."""
    rng = random.Random(7)
    asked: list[tuple[int, Fraction]] = [(1941, Fraction(61, 10**12)), (1, Fraction(1, 2)), (1, Fraction(10**30))]
    asked += [(rng.randint(1, 5000), Fraction(rng.randint(1, 999), 10 ** rng.randint(1, 20))) for _ in range(200)]
    drawn: list[Fraction] = []
    recorded: list[Fraction] = []
    original = measurements.gaussian

    def watched(**given: Any) -> Any:
        drawn.extend({Fraction(v) for v in given["variance"].tolist()})
        return original(**{**given, "variance": np.minimum(given["variance"], 2.0**100)})

    def through(truth: Any, **given: Any) -> Any:
        recorded.append(given["law"].sigma2)
        return given["draw"]()

    monkeypatch.setattr(measurements, "gaussian", watched)
    monkeypatch.setattr(measurements, "through", through)
    for rows, rho in asked:
        drawn.clear(), recorded.clear()
        curator = Curator(table(), DOMAIN, rows, relation, bits=SeededBits("variance"))
        curator.measure([("a",)], None, [rho])
        (charged,) = curator.events
        variance = Fraction(curator.squared_sensitivity) / (2 * charged.rho)
        assert drawn == recorded == [variance]
        assert charged.rho <= rho
        # Rounded up by a sixty-fourth, or a unit in the last place, at most.
        exact = Fraction(curator.squared_sensitivity) / (2 * rho)
        assert exact <= variance <= max(exact + Fraction(1, 64), exact * (1 + Fraction(1, 2**51)))
